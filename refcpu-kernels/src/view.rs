//! Views of dense row-major arrays that kernels read ([`Src`]) and write ([`Dst`]).

use crate::DType;
use std::marker::PhantomData;
use std::ptr::NonNull;

mod sealed {
    /// Restricts [`super::Element`] to types for which every bit pattern is a value.
    pub trait Sealed {}
}

/// A Rust type for array elements: plain data for which every bit pattern is valid.
pub trait Element: sealed::Sealed + Copy + Send + Sync + 'static {}

macro_rules! elements {
    ($($t:ty),*) => {$(impl sealed::Sealed for $t {} impl Element for $t {})*};
}
elements!(
    u8,
    u16,
    u32,
    u64,
    i8,
    i16,
    i32,
    i64,
    f32,
    f64,
    half::f16,
    half::bf16,
    [f32; 2],
    [f64; 2],
    [u8; 16]
);

/// A dense row-major array that a kernel reads.
#[derive(Clone, Copy)]
pub struct Src<'a> {
    ptr: NonNull<u8>,
    dtype: DType,
    dims: &'a [usize],
    bytes: PhantomData<&'a [u8]>,
}

/// A dense row-major array that a kernel writes.
///
/// Its contents before the kernel runs are unspecified, unless the kernel is documented to update in place.
pub struct Dst<'a> {
    ptr: NonNull<u8>,
    dtype: DType,
    dims: &'a [usize],
    bytes: PhantomData<&'a mut [u8]>,
}

// SAFETY: a `Src` only provides shared access to plain bytes that stay readable for 'a.
unsafe impl Send for Src<'_> {}
// SAFETY: as above; shared reads of plain bytes need no synchronization.
unsafe impl Sync for Src<'_> {}
// SAFETY: a `Dst` has exclusive access to its bytes for 'a, and any thread may write plain bytes.
unsafe impl Send for Dst<'_> {}

fn byte_len(dtype: DType, dims: &[usize]) -> usize {
    dims.iter()
        .try_fold(dtype.size(), |n, d| n.checked_mul(*d))
        .expect("array size overflows the address space")
}

impl<'a> Src<'a> {
    /// Creates a view of `bytes` as an array.
    ///
    /// # Panics
    /// Panics if the length is not that of the array, or if the bytes are not aligned for the element type.
    pub fn new(bytes: &'a [u8], dtype: DType, dims: &'a [usize]) -> Self {
        assert_eq!(bytes.len(), byte_len(dtype, dims), "{dtype:?}{dims:?}");
        // SAFETY: the slice is readable for 'a, has the array's length (checked above) and alignment (checked
        // by from_raw).
        unsafe { Self::from_raw(NonNull::from(bytes).cast(), dtype, dims) }
    }

    /// Creates a view of the array at `ptr`.
    ///
    /// # Safety
    /// The array's bytes must be initialized and readable for `'a`, and nothing may write them during `'a`,
    /// except through a [`Dst`] with the same address that is passed to the same kernel call, if that kernel
    /// is documented to work in place.
    ///
    /// # Panics
    /// Panics if `ptr` is not aligned for the element type.
    pub unsafe fn from_raw(ptr: NonNull<u8>, dtype: DType, dims: &'a [usize]) -> Self {
        assert!(ptr.addr().get().is_multiple_of(dtype.align()), "unaligned {dtype:?} array");
        Self { ptr, dtype, dims, bytes: PhantomData }
    }

    /// Returns the element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the sizes of the dimensions, outermost first.
    pub fn dims(&self) -> &'a [usize] {
        self.dims
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.dims.iter().product()
    }

    /// Returns `true` if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the address of the first byte.
    pub fn as_ptr(&self) -> *const u8 {
        self.ptr.as_ptr()
    }

    /// Returns the array's bytes.
    pub fn bytes(&self) -> &'a [u8] {
        // SAFETY: the contract of `from_raw` guarantees that these bytes are initialized, readable and not
        // written for 'a.
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr(), self.len() * self.dtype.size()) }
    }

    /// Returns the elements as values of a type of the same size.
    ///
    /// # Panics
    /// Panics if `T` has a different size or a stricter alignment than the element type guarantees.
    pub fn as_slice<T: Element>(&self) -> &'a [T] {
        assert_eq!(size_of::<T>(), self.dtype.size(), "elements of {:?} have a different size", self.dtype);
        assert!(self.ptr.cast::<T>().is_aligned());
        // SAFETY: as in `bytes`; the size equals the element's and the pointer is aligned (both checked), and
        // every bit pattern is a `T` by the contract of `Element`.
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr().cast(), self.len()) }
    }

    /// Returns a view of the same elements with other dimensions.
    ///
    /// # Panics
    /// Panics if the number of elements differs.
    pub fn reshape<'b>(&self, dims: &'b [usize]) -> Src<'b>
    where
        'a: 'b,
    {
        assert_eq!(self.len(), dims.iter().product::<usize>(), "{:?} as {dims:?}", self.dims);
        Src { ptr: self.ptr, dtype: self.dtype, dims, bytes: PhantomData }
    }
}

impl<'a> Dst<'a> {
    /// Creates a view of `bytes` as an array.
    ///
    /// # Panics
    /// Panics if the length is not that of the array, or if the bytes are not aligned for the element type.
    pub fn new(bytes: &'a mut [u8], dtype: DType, dims: &'a [usize]) -> Self {
        assert_eq!(bytes.len(), byte_len(dtype, dims), "{dtype:?}{dims:?}");
        // SAFETY: the slice is exclusively writable for 'a, and has the array's length (checked above).
        unsafe { Self::from_raw(NonNull::from(bytes).cast(), dtype, dims) }
    }

    /// Creates a view of the array at `ptr`.
    ///
    /// # Safety
    /// The array's bytes must be initialized and writable for `'a`, and nothing else may read or write them
    /// during `'a`, except through a [`Src`] with the same address that is passed to the same kernel call, if
    /// that kernel is documented to work in place.
    ///
    /// # Panics
    /// Panics if `ptr` is not aligned for the element type.
    pub unsafe fn from_raw(ptr: NonNull<u8>, dtype: DType, dims: &'a [usize]) -> Self {
        assert!(ptr.addr().get().is_multiple_of(dtype.align()), "unaligned {dtype:?} array");
        Self { ptr, dtype, dims, bytes: PhantomData }
    }

    /// Returns the element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the sizes of the dimensions, outermost first.
    pub fn dims(&self) -> &'a [usize] {
        self.dims
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.dims.iter().product()
    }

    /// Returns `true` if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the address of the first byte. Kernels that split the array among threads write through it.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    /// Returns the array's bytes.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the contract of `from_raw` guarantees that these bytes are initialized and exclusively
        // accessible for 'a, and `&mut self` prevents a second slice from existing at the same time.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.as_ptr(), self.len() * self.dtype.size()) }
    }

    /// Returns the elements as values of a type of the same size.
    ///
    /// # Panics
    /// Panics if `T` has a different size or a stricter alignment than the element type guarantees.
    pub fn as_mut_slice<T: Element>(&mut self) -> &mut [T] {
        assert_eq!(size_of::<T>(), self.dtype.size(), "elements of {:?} have a different size", self.dtype);
        assert!(self.ptr.cast::<T>().is_aligned());
        // SAFETY: as in `bytes_mut`; the size equals the element's and the pointer is aligned (both checked),
        // and every bit pattern is a `T` by the contract of `Element`.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.as_ptr().cast(), self.len()) }
    }

    /// Returns a second view of the same array, with a shorter lifetime.
    pub fn reborrow(&mut self) -> Dst<'_> {
        Dst { ptr: self.ptr, dtype: self.dtype, dims: self.dims, bytes: PhantomData }
    }

    /// Returns a view of the same elements with other dimensions.
    ///
    /// # Panics
    /// Panics if the number of elements differs.
    pub fn reshape<'b>(self, dims: &'b [usize]) -> Dst<'b>
    where
        'a: 'b,
    {
        assert_eq!(self.len(), dims.iter().product::<usize>(), "{:?} as {dims:?}", self.dims);
        Dst { ptr: self.ptr, dtype: self.dtype, dims, bytes: PhantomData }
    }
}

/// The address of an array that the chunks of a kernel write, each its own part.
#[derive(Clone, Copy)]
pub(crate) struct SyncPtr(*mut u8);

// SAFETY: the pointer is only dereferenced in unsafe code, which proves that chunks write disjoint parts.
unsafe impl Send for SyncPtr {}
// SAFETY: as above.
unsafe impl Sync for SyncPtr {}

impl SyncPtr {
    /// Returns the start of `dst`.
    pub(crate) fn new(dst: &mut Dst<'_>) -> Self {
        Self(dst.as_mut_ptr())
    }

    /// Wraps the start of memory that is not an array, such as scratch memory.
    pub(crate) fn from_raw(ptr: *mut u8) -> Self {
        Self(ptr)
    }

    /// Returns the pointer. This is a method, so that closures capture the whole wrapper instead of its
    /// field.
    pub(crate) fn get(self) -> *mut u8 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_gives_back_the_elements_it_was_made_of() {
        let values = [1.0f32, 2.0, 3.0, 4.0];
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let mut aligned = [0f32; 4];
        let mut dst = Dst::new(bytemuck_mut(&mut aligned), DType::F32, &[2, 2]);
        dst.bytes_mut().copy_from_slice(&bytes);
        assert_eq!(dst.as_mut_slice::<f32>(), &values);
    }

    fn bytemuck_mut(v: &mut [f32]) -> &mut [u8] {
        // SAFETY: f32 has no padding and any bytes are valid f32s; the length in bytes is that of the slice.
        unsafe { std::slice::from_raw_parts_mut(v.as_mut_ptr().cast(), size_of_val(v)) }
    }
}
