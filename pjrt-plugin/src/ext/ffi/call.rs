//! Calls of handlers: conversion of slices and attributes to the structs that handlers read.

use std::ffi::{c_char, c_int, c_void};
use std::fmt;
use std::marker::PhantomData;
use std::ptr;

use super::c_api::*;
use super::{registry, runtime};
use crate::element_type::ElementType;
use crate::error::{Error, Result};
use crate::layout::dense_size;
use crate::user_data::UserData;

/// The handler of a custom call: a C function with the interface of XLA's FFI that the host has registered. See the
/// [example](super).
#[derive(Clone, Copy)]
pub struct Handler {
    function: XLA_FFI_Handler,
    traits: u32,
}

/// An array that a handler reads. It is dense and row-major; an element of less than a byte occupies one byte.
#[derive(Debug, Clone, Copy)]
pub struct Array<'a> {
    /// The type of the elements.
    pub element_type: ElementType,
    /// The dimensions.
    pub dims: &'a [i64],
    /// The bytes.
    pub data: &'a [u8],
}

/// An array that a handler writes, in the same form as [`Array`].
#[derive(Debug)]
pub struct ArrayMut<'a> {
    /// The type of the elements.
    pub element_type: ElementType,
    /// The dimensions.
    pub dims: &'a [i64],
    /// The bytes.
    pub data: &'a mut [u8],
}

/// The value of an attribute of a custom call, from its `backend_config` or `mhlo.backend_config`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Attribute {
    /// A number, as its type and its bytes in native byte order.
    Scalar(ElementType, Vec<u8>),
    /// A list of numbers, as their type and their bytes in native byte order.
    Array(ElementType, Vec<u8>),
    /// A string.
    String(String),
    /// A dictionary of attributes by name.
    Dictionary(Vec<(String, Attribute)>),
}

macro_rules! scalars {
    ($($name:ident $ty:ty, $element_type:ident;)*) => {$(
        #[doc = concat!("Creates a scalar of type `", stringify!($ty), "`.")]
        #[must_use]
        pub fn $name(value: $ty) -> Self {
            Self::Scalar(ElementType::$element_type, value.to_ne_bytes().to_vec())
        }
    )*};
}

impl Attribute {
    scalars! {
        s8 i8, S8;
        s16 i16, S16;
        s32 i32, S32;
        s64 i64, S64;
        u8 u8, U8;
        u16 u16, U16;
        u32 u32, U32;
        u64 u64, U64;
        f32 f32, F32;
        f64 f64, F64;
    }

    /// Creates a scalar of type `pred`.
    #[must_use]
    pub fn pred(value: bool) -> Self {
        Self::Scalar(ElementType::Pred, vec![u8::from(value)])
    }
}

/// The arguments of a call of a handler. See the [example](super).
#[derive(Debug)]
pub struct Call<'a> {
    /// The operands.
    pub arguments: Vec<Array<'a>>,
    /// The destinations of the results.
    pub results: Vec<ArrayMut<'a>>,
    /// The attributes, in any order.
    pub attributes: &'a [(String, Attribute)],
    /// The data that the host passes to handlers: [`Execution::user_data`](crate::Execution::user_data).
    pub user_data: &'a UserData,
    /// The index of the device among the devices of this process.
    pub device_ordinal: i32,
    /// The launch id.
    pub run_id: i64,
}

impl Handler {
    /// Returns the handler that a host has registered for a platform and a target of custom calls, or `None` if there is
    /// none. The name of the platform is not case-sensitive.
    #[must_use]
    pub fn find(platform: &str, target: &str) -> Option<Self> {
        registry::find_handler(platform, target)
    }

    /// Returns whether the handler does the same work in every call, so that the work may be recorded once and replayed
    /// (`XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE`).
    #[must_use]
    pub fn is_command_buffer_compatible(&self) -> bool {
        self.traits & 1 != 0
    }

    /// Creates the handler of a function of the host, after checking the version of XLA's FFI for which it was compiled.
    ///
    /// # Safety
    ///
    /// `handler` is not null, and is an `XLA_FFI_Handler` that can be called until the process ends.
    pub(super) unsafe fn from_raw(handler: *mut c_void, traits: u32) -> Result<Self> {
        // SAFETY: the caller's contract: the pointer is a function of this type.
        let function = unsafe { std::mem::transmute::<*mut c_void, XLA_FFI_Handler>(handler) };
        let mut metadata = XLA_FFI_Metadata {
            struct_size: size_of::<XLA_FFI_Metadata>(),
            api_version: XLA_FFI_Api_Version {
                struct_size: size_of::<XLA_FFI_Api_Version>(),
                extension_start: ptr::null_mut(),
                major_version: -1,
                minor_version: -1,
            },
            traits: 0,
            state_type_id: XLA_FFI_TypeId { type_id: 0 },
        };
        let mut question = XLA_FFI_Metadata_Extension {
            extension_base: XLA_FFI_Extension_Base {
                struct_size: size_of::<XLA_FFI_Metadata_Extension>(),
                type_: EXTENSION_METADATA,
                next: ptr::null_mut(),
            },
            metadata: &raw mut metadata,
        };
        let mut frame = frame(ptr::null_mut());
        frame.extension_start = (&raw mut question).cast();
        // SAFETY: the caller's contract, and a frame with this extension only requests metadata.
        runtime::outcome(unsafe { function(&raw mut frame) })?;
        let (major, minor) = (metadata.api_version.major_version, metadata.api_version.minor_version);
        match (major, minor) {
            (-1, _) => Err(Error::invalid_argument(
                "the function does not report the version of XLA's FFI for which it was compiled",
            )
            .with_hint("define it with XLA_FFI_DEFINE_HANDLER, or handle XLA_FFI_Extension_Metadata")),
            (MAJOR, 0..=MINOR) => Ok(Self { function, traits: traits | metadata.traits }),
            _ => Err(Error::invalid_argument(format!(
                "the function was compiled for version {major}.{minor} of XLA's FFI, but the plugin supports {MAJOR}.0 to {MAJOR}.{MINOR}"
            ))),
        }
    }

    pub(super) fn from_function(function: XLA_FFI_Handler, traits: u32) -> Result<Self> {
        // SAFETY: the pointer is a handler, because a handler that registers others has passed it.
        unsafe { Self::from_raw(function as *mut c_void, traits) }
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        ptr::fn_addr_eq(self.function, other.function)
    }

    /// Runs the handler, and waits until it is complete even if it works asynchronously.
    ///
    /// # Errors
    ///
    /// Returns the error of the handler, INTERNAL if the size of an array's data does not match its dimensions, or
    /// INVALID_ARGUMENT if the dimensions are negative or their size overflows the address space.
    pub fn call(&self, mut call: Call<'_>) -> Result<()> {
        let arguments: Vec<XLA_FFI_Buffer> = call
            .arguments
            .iter()
            .map(|array| {
                buffer(array.element_type, array.dims, array.data.as_ptr().cast_mut(), array.data.len())
            })
            .collect::<Result<_>>()?;
        let results: Vec<XLA_FFI_Buffer> = call
            .results
            .iter_mut()
            .map(|array| buffer(array.element_type, array.dims, array.data.as_mut_ptr(), array.data.len()))
            .collect::<Result<_>>()?;
        let (mut arguments, mut results) = (List::new(arguments), List::new(results));
        let mut attributes = Attributes::new(call.attributes);
        let mut context = runtime::Context::new(call.user_data.clone(), call.device_ordinal, call.run_id);
        let mut frame = frame((&raw mut context).cast());
        (frame.args.size, frame.args.types, frame.args.args) = arguments.parts();
        (frame.rets.size, frame.rets.types, frame.rets.rets) = results.parts();
        frame.attrs = attributes.frame();
        // SAFETY: the host registered the function as a handler. The frame contains the arrays, whose sizes match their
        // dimensions, and the attributes. All of it lives until the handler is complete, which `wait` ensures.
        let outcome = runtime::outcome(unsafe { (self.function)(&raw mut frame) });
        // SAFETY: the field is null or a future that the handler created with the runtime's function. This is its last use.
        outcome.and_then(|()| unsafe { runtime::wait(frame.future) })
    }
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handler")
    }
}

/// Returns a frame without arguments, results and attributes.
fn frame(context: *mut XLA_FFI_ExecutionContext) -> XLA_FFI_CallFrame {
    let no_extension = ptr::null_mut();
    XLA_FFI_CallFrame {
        struct_size: CALL_FRAME_STRUCT_SIZE,
        extension_start: no_extension,
        api: runtime::api(),
        ctx: context,
        stage: STAGE_EXECUTE,
        args: XLA_FFI_Args {
            struct_size: size_of::<XLA_FFI_Args>(),
            extension_start: no_extension,
            size: 0,
            types: ptr::null_mut(),
            args: ptr::null_mut(),
        },
        rets: XLA_FFI_Rets {
            struct_size: size_of::<XLA_FFI_Rets>(),
            extension_start: no_extension,
            size: 0,
            types: ptr::null_mut(),
            rets: ptr::null_mut(),
        },
        attrs: Attributes::new(&[]).frame(),
        future: ptr::null_mut(),
    }
}

fn buffer(element_type: ElementType, dims: &[i64], data: *mut u8, len: usize) -> Result<XLA_FFI_Buffer> {
    let size = dense_size(dims, element_type.byte_size())?;
    if size != len {
        return Err(Error::internal(format!(
            "an array {element_type}{dims:?} of a custom call needs {size} bytes; found {len}"
        )));
    }
    Ok(XLA_FFI_Buffer {
        struct_size: size_of::<XLA_FFI_Buffer>(),
        extension_start: ptr::null_mut(),
        dtype: element_type.xla_number(),
        data: data.cast(),
        rank: dims.len() as i64,
        dims: dims.as_ptr().cast_mut(),
    })
}

/// Arrays in the form that a handler reads: pointers, and a kind for each.
struct List {
    kinds: Vec<c_int>,
    pointers: Vec<*mut c_void>,
    _buffers: Vec<XLA_FFI_Buffer>,
}

impl List {
    fn new(mut buffers: Vec<XLA_FFI_Buffer>) -> Self {
        let start = buffers.as_mut_ptr();
        let pointers = (0..buffers.len()).map(|index| start.wrapping_add(index).cast()).collect();
        Self { kinds: vec![BUFFER; buffers.len()], pointers, _buffers: buffers }
    }

    fn parts(&mut self) -> (i64, *mut c_int, *mut *mut c_void) {
        (self.pointers.len() as i64, self.kinds.as_mut_ptr(), self.pointers.as_mut_ptr())
    }
}

/// Attributes in the form that a handler reads: sorted by name, with a pointer to a struct of the kind of each. This value
/// owns the targets of the pointers, in allocations that do not move.
struct Attributes<'a> {
    kinds: Vec<c_int>,
    name_pointers: Vec<*mut XLA_FFI_ByteSpan>,
    pointers: Vec<*mut c_void>,
    _names: Vec<XLA_FFI_ByteSpan>,
    _values: Vec<Value<'a>>,
    _attributes: PhantomData<&'a Attribute>,
}

/// The target of the pointer to an attribute. It consists of vectors with one element because pointers into them are created
/// before they are moved here. Moving a box would invalidate them.
#[expect(dead_code, reason = "it is read through pointers")]
enum Value<'a> {
    Scalar(Vec<XLA_FFI_Scalar>, Vec<u128>),
    Array(Vec<XLA_FFI_Array>, Vec<u128>),
    String(Vec<XLA_FFI_ByteSpan>),
    Dictionary(Vec<XLA_FFI_Attrs>, Box<Attributes<'a>>),
}

/// Copies bytes to memory that is aligned for every element type.
fn aligned(bytes: &[u8]) -> Vec<u128> {
    let word = |chunk: &[u8]| {
        let mut word = [0; 16];
        word[..chunk.len()].copy_from_slice(chunk);
        u128::from_ne_bytes(word)
    };
    // An empty slice also gets an element, so that it has an address.
    if bytes.is_empty() { vec![0] } else { bytes.chunks(16).map(word).collect() }
}

impl<'a> Attributes<'a> {
    fn new(attributes: &'a [(String, Attribute)]) -> Self {
        let mut sorted: Vec<&(String, Attribute)> = attributes.iter().collect();
        sorted.sort_by(|a, b| a.0.cmp(&b.0));
        let span = |text: &str| XLA_FFI_ByteSpan { ptr: text.as_ptr().cast::<c_char>(), len: text.len() };
        let mut names: Vec<XLA_FFI_ByteSpan> = sorted.iter().map(|(name, _)| span(name)).collect();
        let (mut kinds, mut pointers, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for (_, attribute) in sorted {
            let (kind, pointer, value) = match attribute {
                Attribute::Scalar(element_type, bytes) => {
                    let mut data = aligned(bytes);
                    let dtype = element_type.xla_number();
                    let mut scalar = vec![XLA_FFI_Scalar { dtype, value: data.as_mut_ptr().cast() }];
                    (ATTRIBUTE_SCALAR, scalar.as_mut_ptr().cast(), Value::Scalar(scalar, data))
                }
                Attribute::Array(element_type, bytes) => {
                    let mut data = aligned(bytes);
                    let size = bytes.len() / element_type.byte_size().max(1);
                    let dtype = element_type.xla_number();
                    let mut array = vec![XLA_FFI_Array { dtype, size, data: data.as_mut_ptr().cast() }];
                    (ATTRIBUTE_ARRAY, array.as_mut_ptr().cast(), Value::Array(array, data))
                }
                Attribute::String(text) => {
                    let mut span = vec![span(text)];
                    (ATTRIBUTE_STRING, span.as_mut_ptr().cast(), Value::String(span))
                }
                Attribute::Dictionary(inner) => {
                    let mut inner = Box::new(Attributes::new(inner));
                    let mut frame = vec![inner.frame()];
                    (ATTRIBUTE_DICTIONARY, frame.as_mut_ptr().cast(), Value::Dictionary(frame, inner))
                }
            };
            kinds.push(kind);
            pointers.push(pointer);
            values.push(value);
        }
        let start = names.as_mut_ptr();
        let name_pointers = (0..names.len()).map(|index| start.wrapping_add(index)).collect();
        Self { kinds, name_pointers, pointers, _names: names, _values: values, _attributes: PhantomData }
    }

    fn frame(&mut self) -> XLA_FFI_Attrs {
        XLA_FFI_Attrs {
            struct_size: size_of::<XLA_FFI_Attrs>(),
            extension_start: ptr::null_mut(),
            size: self.pointers.len() as i64,
            types: self.kinds.as_mut_ptr(),
            names: self.name_pointers.as_mut_ptr(),
            attrs: self.pointers.as_mut_ptr(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::slice::from_raw_parts;

    use super::*;
    use crate::error::ErrorCode;

    /// Returns true and writes the metadata, if a frame requests them. Every handler calls it first.
    unsafe fn is_question(frame: *mut XLA_FFI_CallFrame) -> bool {
        // SAFETY: the frame is one of this module's.
        unsafe {
            let extension = (*frame).extension_start;
            if extension.is_null() {
                return false;
            }
            assert_eq!((*extension).type_, EXTENSION_METADATA);
            let metadata = (*extension.cast::<XLA_FFI_Metadata_Extension>()).metadata;
            (*metadata).api_version.major_version = MAJOR;
            (*metadata).api_version.minor_version = MINOR;
            (*metadata).traits = 1;
            true
        }
    }

    fn failure(api: *const XLA_FFI_Api, text: &str) -> *mut XLA_FFI_Error {
        let message = CString::new(text).unwrap();
        let mut args = XLA_FFI_Error_Create_Args {
            struct_size: size_of::<XLA_FFI_Error_Create_Args>(),
            extension_start: ptr::null_mut(),
            message: message.as_ptr(),
            errc: ErrorCode::OutOfRange as u32,
        };
        // SAFETY: the table is the runtime's.
        unsafe { ((*api).XLA_FFI_Error_Create)(&raw mut args) }
    }

    /// Adds the attribute `by` to each number, with memory, user data and a thread of the runtime's, and completes a future
    /// there. An attribute `fail` makes it fail, in the future if it is true.
    unsafe extern "C" fn add(frame: *mut XLA_FFI_CallFrame) -> *mut XLA_FFI_Error {
        struct Work {
            input: *const f32,
            output: *mut f32,
            len: usize,
            by: f32,
            fail: bool,
            future: *mut XLA_FFI_Future,
        }
        unsafe extern "C" fn work(data: *mut c_void) {
            // SAFETY: the pointer is the box that `add` scheduled.
            let work = unsafe { Box::from_raw(data.cast::<Work>()) };
            for index in 0..work.len {
                // SAFETY: the runtime keeps the arrays until the future is complete.
                unsafe { work.output.add(index).write(work.input.add(index).read() + work.by) };
            }
            let api = runtime::api();
            if work.fail {
                let mut args = XLA_FFI_Future_SetError_Args {
                    struct_size: size_of::<XLA_FFI_Future_SetError_Args>(),
                    extension_start: ptr::null_mut(),
                    future: work.future,
                    error: failure(api, "too late"),
                };
                // SAFETY: the future is completed once.
                assert!(unsafe { ((*api).XLA_FFI_Future_SetError)(&raw mut args) }.is_null());
            } else {
                let mut args = XLA_FFI_Future_SetAvailable_Args {
                    struct_size: size_of::<XLA_FFI_Future_SetAvailable_Args>(),
                    extension_start: ptr::null_mut(),
                    future: work.future,
                };
                // SAFETY: the future is completed once.
                assert!(unsafe { ((*api).XLA_FFI_Future_SetAvailable)(&raw mut args) }.is_null());
            }
        }
        // SAFETY: the frame is one of this module's, and the functions those of its table.
        unsafe {
            if is_question(frame) {
                return ptr::null_mut();
            }
            let (frame, api) = (&mut *frame, &*(*frame).api);
            let names = from_raw_parts(frame.attrs.names, frame.attrs.size as usize);
            let name = |span: &*mut XLA_FFI_ByteSpan| {
                std::str::from_utf8(from_raw_parts((**span).ptr.cast::<u8>(), (**span).len)).unwrap()
            };
            let names: Vec<&str> = names.iter().map(name).collect();
            assert!(names.is_sorted());
            let place = |wanted: &str| names.iter().position(|name| *name == wanted);
            let scalar = |place: usize| {
                assert_eq!(*frame.attrs.types.add(place), ATTRIBUTE_SCALAR);
                &*(*frame.attrs.attrs.add(place)).cast::<XLA_FFI_Scalar>()
            };
            let by = scalar(place("by").unwrap());
            assert_eq!(by.dtype, 11);
            let fail = place("fail").map(|place| *scalar(place).value.cast::<bool>());
            if fail == Some(false) {
                return failure(api, "at once");
            }
            // User data of type 7 is a number that is added, too.
            let mut type_id = XLA_FFI_TypeId { type_id: 7 };
            let mut data = XLA_FFI_ExecutionContext_Get_Args {
                struct_size: size_of::<XLA_FFI_ExecutionContext_Get_Args>(),
                extension_start: ptr::null_mut(),
                ctx: frame.ctx,
                type_id: &raw mut type_id,
                data: ptr::null_mut(),
            };
            let error = (api.XLA_FFI_ExecutionContext_Get)(&raw mut data);
            if !error.is_null() {
                return error;
            }
            let mut memory = XLA_FFI_DeviceMemory_Allocate_Args {
                struct_size: size_of::<XLA_FFI_DeviceMemory_Allocate_Args>(),
                extension_start: ptr::null_mut(),
                ctx: frame.ctx,
                size: 100,
                alignment: 64,
                data: ptr::null_mut(),
            };
            // Left to the runtime to free.
            assert!((api.XLA_FFI_DeviceMemory_Allocate)(&raw mut memory).is_null());
            assert!(memory.data.addr().is_multiple_of(64) && !memory.data.is_null());
            memory.data.cast::<u8>().write_bytes(1, 100);
            let input = &*(*frame.args.args).cast::<XLA_FFI_Buffer>();
            let output = &*(*frame.rets.rets).cast::<XLA_FFI_Buffer>();
            assert_eq!((input.dtype, input.rank, *input.dims), (11, 1, 4));
            let mut future = XLA_FFI_Future_Create_Args {
                struct_size: 16,
                extension_start: ptr::null_mut(),
                future: ptr::null_mut(),
            };
            assert!((api.XLA_FFI_Future_Create)(&raw mut future).is_null());
            frame.future = future.future;
            let data = Box::new(Work {
                input: input.data.cast(),
                output: output.data.cast(),
                len: 4,
                by: *by.value.cast::<f32>() + *data.data.cast::<f32>(),
                fail: fail == Some(true),
                future: future.future,
            });
            let mut schedule = XLA_FFI_ThreadPool_Schedule_Args {
                struct_size: size_of::<XLA_FFI_ThreadPool_Schedule_Args>(),
                extension_start: ptr::null_mut(),
                ctx: frame.ctx,
                task: Some(work),
                data: Box::into_raw(data).cast(),
            };
            (api.XLA_FFI_ThreadPool_Schedule)(&raw mut schedule)
        }
    }

    fn run(extra: &[(String, Attribute)], user_data: &UserData) -> Result<Vec<f32>> {
        let handler = Handler::from_function(add, 0)?;
        assert!(handler.is_command_buffer_compatible());
        let input: Vec<u8> =
            [1.0_f32, 2.0, 3.0, 4.0].iter().flat_map(|number| number.to_ne_bytes()).collect();
        let mut output = vec![0; 16];
        let mut attributes = vec![
            ("with".to_owned(), Attribute::Dictionary(vec![("z".to_owned(), Attribute::pred(true))])),
            ("by".to_owned(), Attribute::f32(10.0)),
            ("a".to_owned(), Attribute::String("text".to_owned())),
            ("list".to_owned(), Attribute::Array(ElementType::S64, vec![0; 24])),
        ];
        attributes.extend_from_slice(extra);
        handler.call(Call {
            arguments: vec![Array { element_type: ElementType::F32, dims: &[4], data: &input }],
            results: vec![ArrayMut { element_type: ElementType::F32, dims: &[4], data: &mut output }],
            attributes: &attributes,
            user_data,
            device_ordinal: 1,
            run_id: 2,
        })?;
        Ok(output.as_chunks().0.iter().map(|bytes| f32::from_ne_bytes(*bytes)).collect())
    }

    fn hundred() -> UserData {
        static HUNDRED: f32 = 100.0;
        let mut user_data = UserData::default();
        user_data.add(7, (&raw const HUNDRED).cast_mut().cast());
        user_data
    }

    #[test]
    fn a_handler_gets_arrays_attributes_and_user_data_and_may_finish_later() {
        assert_eq!(run(&[], &hundred()).unwrap(), [111.0, 112.0, 113.0, 114.0]);
    }

    #[test]
    fn the_error_of_a_handler_is_that_of_the_call() {
        for (later, text) in [(false, "at once"), (true, "too late")] {
            let error = run(&[("fail".to_owned(), Attribute::pred(later))], &hundred()).unwrap_err();
            assert_eq!((error.code(), error.message()), (ErrorCode::OutOfRange, text));
        }
        let error = run(&[], &UserData::default()).unwrap_err();
        assert_eq!(error.code(), ErrorCode::NotFound);
        assert!(error.message().contains("no user data with the type id 7"), "{error}");
    }

    #[test]
    fn an_array_that_is_shorter_than_its_dimensions_say_is_refused() {
        let handler = Handler::from_function(add, 0).unwrap();
        let error = handler
            .call(Call {
                arguments: vec![Array { element_type: ElementType::F32, dims: &[4], data: &[0; 15] }],
                results: vec![],
                attributes: &[],
                user_data: &UserData::default(),
                device_ordinal: 0,
                run_id: 0,
            })
            .unwrap_err();
        assert!(
            error.message().contains("an array f32[4] of a custom call needs 16 bytes; found 15"),
            "{error}"
        );
    }

    #[test]
    fn a_function_that_does_not_say_its_version_is_no_handler() {
        unsafe extern "C" fn silent(_: *mut XLA_FFI_CallFrame) -> *mut XLA_FFI_Error {
            ptr::null_mut()
        }
        unsafe extern "C" fn newer(frame: *mut XLA_FFI_CallFrame) -> *mut XLA_FFI_Error {
            // SAFETY: the frame requests metadata.
            unsafe {
                let question = (*frame).extension_start.cast::<XLA_FFI_Metadata_Extension>();
                (*(*question).metadata).api_version.major_version = MAJOR + 1;
            }
            ptr::null_mut()
        }
        let error = Handler::from_function(silent, 0).unwrap_err();
        assert!(error.message().contains("does not report the version"), "{error}");
        let error = Handler::from_function(newer, 0).unwrap_err();
        assert!(error.message().contains("version 1.-1 of XLA's FFI"), "{error}");
    }
}
