//! The C interface between a runtime and the handlers of custom calls: the parts of XLA's FFI 0.3 that this crate uses.
//!
//! Handlers are compiled against XLA's headers, which determine the names, the order and the types of the fields.

#![allow(non_camel_case_types, non_snake_case, reason = "the names are those of the headers")]

use std::ffi::{c_char, c_int, c_void};

/// The version of the interface.
pub(super) const MAJOR: c_int = 0;
pub(super) const MINOR: c_int = 3;

/// A handler. It returns null, or an error that the runtime frees.
pub(super) type XLA_FFI_Handler = unsafe extern "C" fn(*mut XLA_FFI_CallFrame) -> *mut XLA_FFI_Error;

/// An error. The runtime defines its content.
#[repr(C)]
pub(super) struct XLA_FFI_Error {
    _private: [u8; 0],
}

/// The context of an execution, from which handlers read its data. The runtime defines its content.
#[repr(C)]
pub(super) struct XLA_FFI_ExecutionContext {
    _private: [u8; 0],
}

/// The completion of asynchronous work. The runtime defines its content.
#[repr(C)]
pub(super) struct XLA_FFI_Future {
    _private: [u8; 0],
}

/// Declares structs that begin with their size and a linked list of extensions.
macro_rules! structs {
    ($($name:ident [$size:literal] { $($field:ident: $ty:ty,)* })*) => {$(
        #[repr(C)]
        pub(super) struct $name {
            pub(super) struct_size: usize,
            pub(super) extension_start: *mut XLA_FFI_Extension_Base,
            $(pub(super) $field: $ty,)*
        }
        #[cfg(target_pointer_width = "64")]
        const _: () = assert!(size_of::<$name>() == $size);
    )*};
}

#[repr(C)]
pub(super) struct XLA_FFI_Extension_Base {
    pub(super) struct_size: usize,
    pub(super) type_: c_int,
    pub(super) next: *mut XLA_FFI_Extension_Base,
}

/// The extension of a call frame that requests the metadata of a handler.
pub(super) const EXTENSION_METADATA: c_int = 1;
/// The stage in which a handler runs its computation.
pub(super) const STAGE_EXECUTE: c_int = 3;
/// The only kind of arguments and results.
pub(super) const BUFFER: c_int = 1;
pub(super) const ATTRIBUTE_ARRAY: c_int = 1;
pub(super) const ATTRIBUTE_DICTIONARY: c_int = 2;
pub(super) const ATTRIBUTE_SCALAR: c_int = 3;
pub(super) const ATTRIBUTE_STRING: c_int = 4;

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct XLA_FFI_ByteSpan {
    pub(super) ptr: *const c_char,
    pub(super) len: usize,
}

#[repr(C)]
pub(super) struct XLA_FFI_Scalar {
    pub(super) dtype: u32,
    pub(super) value: *mut c_void,
}

#[repr(C)]
pub(super) struct XLA_FFI_Array {
    pub(super) dtype: u32,
    pub(super) size: usize,
    pub(super) data: *mut c_void,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct XLA_FFI_TypeId {
    pub(super) type_id: i64,
}

#[repr(C)]
pub(super) struct XLA_FFI_Handler_Bundle {
    pub(super) instantiate: Option<XLA_FFI_Handler>,
    pub(super) prepare: Option<XLA_FFI_Handler>,
    pub(super) initialize: Option<XLA_FFI_Handler>,
    pub(super) execute: Option<XLA_FFI_Handler>,
}

#[repr(C)]
pub(super) struct XLA_FFI_Metadata {
    pub(super) struct_size: usize,
    pub(super) api_version: XLA_FFI_Api_Version,
    pub(super) traits: u32,
    pub(super) state_type_id: XLA_FFI_TypeId,
}

#[repr(C)]
pub(super) struct XLA_FFI_Metadata_Extension {
    pub(super) extension_base: XLA_FFI_Extension_Base,
    pub(super) metadata: *mut XLA_FFI_Metadata,
}

structs! {
    XLA_FFI_Api_Version [24] { major_version: c_int, minor_version: c_int, }
    XLA_FFI_Error_Create_Args [32] { message: *const c_char, errc: u32, }
    XLA_FFI_Error_GetMessage_Args [32] { error: *mut XLA_FFI_Error, message: *const c_char, }
    XLA_FFI_Error_Destroy_Args [24] { error: *mut XLA_FFI_Error, }
    XLA_FFI_Buffer [48] { dtype: u32, data: *mut c_void, rank: i64, dims: *mut i64, }
    XLA_FFI_Args [40] { size: i64, types: *mut c_int, args: *mut *mut c_void, }
    XLA_FFI_Rets [40] { size: i64, types: *mut c_int, rets: *mut *mut c_void, }
    XLA_FFI_Attrs [48] { size: i64, types: *mut c_int, names: *mut *mut XLA_FFI_ByteSpan, attrs: *mut *mut c_void, }
    XLA_FFI_CallFrame [176] {
        api: *const XLA_FFI_Api,
        ctx: *mut XLA_FFI_ExecutionContext,
        stage: c_int,
        args: XLA_FFI_Args,
        rets: XLA_FFI_Rets,
        attrs: XLA_FFI_Attrs,
        future: *mut XLA_FFI_Future,
    }
    XLA_FFI_Handler_Register_Args [88] {
        name: XLA_FFI_ByteSpan,
        platform: XLA_FFI_ByteSpan,
        bundle: XLA_FFI_Handler_Bundle,
        traits: u32,
    }
    XLA_FFI_Type_Register_Args [48] {
        name: XLA_FFI_ByteSpan,
        type_id: *mut XLA_FFI_TypeId,
        type_info: *const c_void,
    }
    XLA_FFI_ExecutionContext_Get_Args [40] {
        ctx: *mut XLA_FFI_ExecutionContext,
        type_id: *mut XLA_FFI_TypeId,
        data: *mut c_void,
    }
    XLA_FFI_State_Args [48] {
        ctx: *mut XLA_FFI_ExecutionContext,
        stage: c_int,
        type_id: *mut XLA_FFI_TypeId,
        state: *mut c_void,
    }
    XLA_FFI_Stream_Get_Args [32] { ctx: *mut XLA_FFI_ExecutionContext, stream: *mut c_void, }
    XLA_FFI_DeviceMemory_Allocate_Args [48] {
        ctx: *mut XLA_FFI_ExecutionContext,
        size: usize,
        alignment: usize,
        data: *mut c_void,
    }
    XLA_FFI_DeviceMemory_Free_Args [40] { ctx: *mut XLA_FFI_ExecutionContext, size: usize, data: *mut c_void, }
    XLA_FFI_ThreadPool_Schedule_Args [40] {
        ctx: *mut XLA_FFI_ExecutionContext,
        task: Option<unsafe extern "C" fn(*mut c_void)>,
        data: *mut c_void,
    }
    XLA_FFI_ThreadPool_NumThreads_Args [32] { ctx: *mut XLA_FFI_ExecutionContext, num_threads: *mut i64, }
    XLA_FFI_Future_Create_Args [24] { future: *mut XLA_FFI_Future, }
    XLA_FFI_Future_SetAvailable_Args [24] { future: *mut XLA_FFI_Future, }
    XLA_FFI_Future_SetError_Args [32] { future: *mut XLA_FFI_Future, error: *mut XLA_FFI_Error, }
    XLA_FFI_RunId_Get_Args [32] { ctx: *mut XLA_FFI_ExecutionContext, run_id: i64, }
    XLA_FFI_DeviceOrdinal_Get_Args [32] { ctx: *mut XLA_FFI_ExecutionContext, device_ordinal: i32, }
    XLA_FFI_Api [192] {
        api_version: XLA_FFI_Api_Version,
        internal_api: *const c_void,
        XLA_FFI_Error_Create: Function<XLA_FFI_Error_Create_Args>,
        XLA_FFI_Error_GetMessage: unsafe extern "C" fn(*mut XLA_FFI_Error_GetMessage_Args),
        XLA_FFI_Error_Destroy: unsafe extern "C" fn(*mut XLA_FFI_Error_Destroy_Args),
        XLA_FFI_Handler_Register: Function<XLA_FFI_Handler_Register_Args>,
        XLA_FFI_Stream_Get: Function<XLA_FFI_Stream_Get_Args>,
        XLA_FFI_Type_Register: Function<XLA_FFI_Type_Register_Args>,
        XLA_FFI_ExecutionContext_Get: Function<XLA_FFI_ExecutionContext_Get_Args>,
        XLA_FFI_State_Set: Function<XLA_FFI_State_Args>,
        XLA_FFI_State_Get: Function<XLA_FFI_State_Args>,
        XLA_FFI_DeviceMemory_Allocate: Function<XLA_FFI_DeviceMemory_Allocate_Args>,
        XLA_FFI_DeviceMemory_Free: Function<XLA_FFI_DeviceMemory_Free_Args>,
        XLA_FFI_ThreadPool_Schedule: Function<XLA_FFI_ThreadPool_Schedule_Args>,
        XLA_FFI_ThreadPool_NumThreads: Function<XLA_FFI_ThreadPool_NumThreads_Args>,
        XLA_FFI_Future_Create: Function<XLA_FFI_Future_Create_Args>,
        XLA_FFI_Future_SetAvailable: Function<XLA_FFI_Future_SetAvailable_Args>,
        XLA_FFI_Future_SetError: Function<XLA_FFI_Future_SetError_Args>,
        XLA_FFI_RunId_Get: Function<XLA_FFI_RunId_Get_Args>,
        XLA_FFI_DeviceOrdinal_Get: Function<XLA_FFI_DeviceOrdinal_Get_Args>,
    }
}

/// A function of the runtime's table. It returns null, or an error that the handler frees.
pub(super) type Function<Args> = unsafe extern "C" fn(*mut Args) -> *mut XLA_FFI_Error;

#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(size_of::<XLA_FFI_Metadata>() == 48 && size_of::<XLA_FFI_Metadata_Extension>() == 32);
    assert!(size_of::<XLA_FFI_Scalar>() == 16 && size_of::<XLA_FFI_Array>() == 24);
    assert!(std::mem::offset_of!(XLA_FFI_CallFrame, args) == 40);
    assert!(std::mem::offset_of!(XLA_FFI_CallFrame, future) == 168);
};

/// The size of a call frame according to the header, which does not include the last field.
pub(super) const CALL_FRAME_STRUCT_SIZE: usize = std::mem::offset_of!(XLA_FFI_CallFrame, future);
