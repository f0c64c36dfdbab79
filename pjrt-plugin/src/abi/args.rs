//! Views of the structs that a host passes. Their layout is that of the host's version of the C API.
//!
//! A struct begins with its size in the host's version. Fields that end beyond that size do not exist. Reading one returns
//! zero, which is the default of every field, and writing one does nothing.

use std::ffi::c_char;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::slice::from_raw_parts;

use pjrt_sys::{PJRT_Buffer_Type, SizedStruct};

pub(crate) use crate::abi::handle::null;
use crate::element_type::ElementType;
use crate::error::{Error, Result};

/// A host's struct of some version.
pub(crate) struct View<'a, T> {
    start: NonNull<u8>,
    size: usize,
    host: PhantomData<&'a mut T>,
}

impl<'a, T: SizedStruct> View<'a, T> {
    /// # Safety
    ///
    /// `args` is null, or points to a struct of type `T` of any version of the C API: `struct_size` bytes of it are readable
    /// and writable while the view lives, and every pointer among its inputs is null, or points to what the C API requires
    /// for as long as the C API requires.
    #[inline]
    pub(crate) unsafe fn new(args: *mut T) -> Result<Self> {
        let Some(start) = NonNull::new(args.cast::<u8>()) else {
            return Err(Error::invalid_argument(format!("the pointer to {} is null", T::NAME)));
        };
        // SAFETY: a struct of any version begins with its size (`SizedStruct`).
        let size = unsafe { start.cast::<usize>().read_unaligned() };
        Ok(Self { start, size, host: PhantomData })
    }

    /// Returns a field of the struct. `project` converts the address of a struct to that of the field.
    ///
    /// # Safety
    ///
    /// `project` returns the address of a field of the struct at its argument, and zero in all bytes is a valid value of
    /// that field.
    #[inline(always)]
    pub(crate) unsafe fn field<F: Copy>(&self, project: impl FnOnce(*mut T) -> *mut F) -> Field<'_, F> {
        let mut like = MaybeUninit::<T>::uninit();
        let offset = project(like.as_mut_ptr()).addr() - like.as_mut_ptr().addr();
        let in_size = offset + size_of::<F>() <= self.size;
        // SAFETY: the field lies within the size, which `new`'s contract makes part of the host's struct.
        let start = in_size.then(|| unsafe { self.start.add(offset) }.cast());
        Field { start, view: PhantomData }
    }

    /// Returns the size that the host declared, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Returns a view of the same struct with another size.
    ///
    /// # Safety
    ///
    /// `size` bytes of the struct are readable and writable.
    pub(crate) unsafe fn with_size(&self, size: usize) -> View<'_, T> {
        View { start: self.start, size, host: PhantomData }
    }

    /// Limits the lifetime of a reference to that of the view.
    pub(crate) fn tie<'v, X: ?Sized>(&'v self, value: &'a X) -> &'v X {
        value
    }
}

/// A field of a host's struct, which the host's version may lack.
pub(crate) struct Field<'v, F> {
    start: Option<NonNull<F>>,
    view: PhantomData<&'v F>,
}

impl<F: Copy> Field<'_, F> {
    /// Returns the value of the field, or zero if the host's struct does not have it.
    #[inline(always)]
    pub(crate) fn read(self) -> F {
        match self.start {
            // SAFETY: the contracts of `View::new` and `View::field`: the field can be read and holds an `F`.
            Some(start) => unsafe { start.read_unaligned() },
            // SAFETY: `View::field`'s contract: zero is a valid value.
            None => unsafe { std::mem::zeroed() },
        }
    }

    /// Writes the field, if the host's struct has it.
    #[inline(always)]
    pub(crate) fn write(self, value: F) {
        if let Some(start) = self.start {
            // SAFETY: the contracts of `View::new` and `View::field`: the field can be written and holds an `F`.
            unsafe { start.write_unaligned(value) }
        }
    }
}

/// Returns a field of a view.
macro_rules! field {
    ($view:ident.$field:ident) => {{
        // SAFETY: the closure returns the address of a field, and zero is a valid value of every field (`SizedStruct`).
        #[allow(unused_unsafe, reason = "some callers are in an unsafe block")]
        let field = unsafe { $view.field(|start| &raw mut (*start).$field) };
        field
    }};
}

/// Reads a field. The value is zero if the host's struct does not have the field.
macro_rules! input {
    ($view:ident.$field:ident) => {
        $crate::abi::args::field!($view.$field).read()
    };
}

/// Writes a field, if the host's struct has it.
macro_rules! output {
    ($view:ident.$field:ident = $value:expr) => {
        $crate::abi::args::field!($view.$field).write($value)
    };
}

/// Borrows the object that the handle in a field points to; an INVALID_ARGUMENT error if there is none.
macro_rules! handle {
    ($view:ident.$field:ident: $ty:ty) => {{
        let pointer = $crate::abi::args::input!($view.$field);
        // SAFETY: the view's contract makes the pointer null or a handle of the kind that the field's type says, which lives
        // at least until the call returns; the view is dropped before that.
        unsafe { $crate::abi::handle::borrow::<$ty>(pointer, stringify!($field)) }
            .map(|object| $view.tie(object))
    }};
}

/// Borrows the bytes that a pointer field and a size field describe. A null pointer with a size other than zero is an error.
macro_rules! bytes {
    ($view:ident.$field:ident, $size:ident) => {
        $crate::abi::args::slice!($view.$field as u8, $size)
    };
}

/// Borrows the array that a pointer field and a length field describe. A null pointer with a length other than zero is an
/// error.
macro_rules! slice {
    ($view:ident.$field:ident as $ty:ty, $size:ident) => {{
        let (pointer, size) = ($crate::abi::args::input!($view.$field), $crate::abi::args::input!($view.$size));
        // SAFETY: the view's contract makes the pointer null or the start of an array of that many elements, which lives until
        // the call returns; the view is dropped before that.
        unsafe { $crate::abi::args::borrowed_slice::<$ty>(pointer.cast(), size, stringify!($field)) }
            .map(|slice| $view.tie(slice))
    }};
}

/// Writes the pointer and the size of a string, which an object of the plugin owns, to two fields.
macro_rules! output_str {
    ($view:ident.$field:ident, $size:ident = $text:expr) => {{
        let text: &str = $text;
        $crate::abi::args::output!($view.$field = $crate::abi::args::chars(text.as_bytes()));
        $crate::abi::args::output!($view.$size = text.len());
    }};
}

/// Writes the pointer and the length of an array, which an object of the plugin owns, to two fields.
macro_rules! output_slice {
    ($view:ident.$field:ident, $size:ident = $slice:expr) => {{
        let slice = $slice;
        $crate::abi::args::output!($view.$field = slice.as_ptr().cast_mut().cast());
        $crate::abi::args::output!($view.$size = slice.len());
    }};
}

pub(crate) use {bytes, field, handle, input, output, output_slice, output_str, slice};

/// Borrows an array of the host. `name` names it in errors.
///
/// # Safety
///
/// `pointer` is null or the start of `len` elements that can be read for `'a`.
#[inline(always)]
pub(crate) unsafe fn borrowed_slice<'a, T>(pointer: *const T, len: usize, name: &str) -> Result<&'a [T]> {
    if len == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(null(name));
    }
    if len > isize::MAX as usize / size_of::<T>().max(1) || !pointer.is_aligned() {
        return Err(no_array(name, len));
    }
    // SAFETY: the pointer is not null, aligned, and the caller's contract makes the elements readable.
    Ok(unsafe { from_raw_parts(pointer, len) })
}

#[cold]
fn no_array(name: &str, len: usize) -> Error {
    Error::invalid_argument(format!(
        "'{name}' is not an array of {len} elements: its pointer is misaligned, or its size overflows the address space"
    ))
}

/// Returns the pointer to bytes as C's `char` pointer.
pub(crate) fn chars(bytes: &[u8]) -> *const c_char {
    bytes.as_ptr().cast()
}

/// Copies a string of the host, with replacement characters for invalid UTF-8.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the element type with a number of `PJRT_Buffer_Type`.
#[inline]
pub(crate) fn element_type(number: PJRT_Buffer_Type) -> Result<ElementType> {
    ElementType::from_number(number.0).ok_or_else(|| {
        Error::invalid_argument(format!(
            "{} is not the number of a supported element type (PJRT_Buffer_Type)",
            number.0
        ))
    })
}
