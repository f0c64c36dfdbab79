//! A small host, which uses raw pointers as C hosts do.

#![allow(dead_code, reason = "no test uses all of it")]

use std::slice;

use pjrt_plugin::CompileOptions;
use pjrt_sys::*;
// Links the plugin, whose only symbol for hosts is the one below.
use refcpu as _;

unsafe extern "C" {
    fn GetPjrtApi() -> *const PJRT_Api;
}

pub(crate) fn api() -> &'static PJRT_Api {
    // SAFETY: the function takes nothing, and its table lives as long as the process.
    unsafe { &*GetPjrtApi() }
}

/// Returns the struct of an extension, which it finds as hosts do.
pub(crate) fn extension<T>(type_: PJRT_Extension_Type) -> &'static T {
    let mut next = api().extension_start.cast_const();
    loop {
        assert!(!next.is_null(), "there is no extension of type {}", type_.0);
        // SAFETY: the plugin made the chain, which lives as long as the process; the type says which struct it is.
        unsafe {
            if (*next).type_ == type_ {
                return &*next.cast::<T>();
            }
            next = (*next).next;
        }
    }
}

pub(crate) type Result<T> = std::result::Result<T, (u32, String)>;

/// Calls a function of the table or of an extension, and returns the struct.
macro_rules! call {
    ($table:expr, $function:ident($args:ident { $($field:ident $(: $value:expr)?),* $(,)? })) => {{
        #[allow(unused_mut, clippy::needless_update, reason = "some calls give every field")]
        let mut args = $args { $($field $(: $value)?,)* ..SizedStruct::zeroed() };
        // SAFETY: the struct is filled in as the API says, with pointers that the plugin gave or that live here.
        $crate::c_host::take_error(unsafe { ($table.$function.unwrap())(&raw mut args) }).map(|()| args)
    }};
}
pub(crate) use call;

pub(crate) fn take_error(error: *mut PJRT_Error) -> Result<()> {
    if error.is_null() {
        return Ok(());
    }
    let mut message = PJRT_Error_Message_Args { error, ..SizedStruct::zeroed() };
    let mut code = PJRT_Error_GetCode_Args { error, ..SizedStruct::zeroed() };
    let mut destroy = PJRT_Error_Destroy_Args { error, ..SizedStruct::zeroed() };
    // SAFETY: the error is the plugin's, and destroyed once, after it was read.
    unsafe {
        (api().PJRT_Error_Message.unwrap())(&raw mut message);
        assert!((api().PJRT_Error_GetCode.unwrap())(&raw mut code).is_null());
        let text = String::from_utf8(bytes(message.message.cast(), message.message_size).to_vec()).unwrap();
        (api().PJRT_Error_Destroy.unwrap())(&raw mut destroy);
        Err((code.code.0, text))
    }
}

pub(crate) fn bytes<'a>(start: *const u8, len: usize) -> &'a [u8] {
    // SAFETY: the plugin gave address and length of bytes that live.
    if len == 0 { &[] } else { unsafe { slice::from_raw_parts(start, len) } }
}

/// A client, destroyed at the end.
pub(crate) struct Client(pub(crate) *mut PJRT_Client);

impl Client {
    pub(crate) fn new() -> Self {
        Self::with_options(&[])
    }

    pub(crate) fn with_options(options: &[PJRT_NamedValue]) -> Self {
        let args = call!(
            api(),
            PJRT_Client_Create(PJRT_Client_Create_Args {
                create_options: options.as_ptr(),
                num_options: options.len(),
            })
        );
        Self(args.unwrap().client)
    }

    pub(crate) fn device(&self) -> *mut PJRT_Device {
        let args = call!(api(), PJRT_Client_Devices(PJRT_Client_Devices_Args { client: self.0 })).unwrap();
        assert!(args.num_devices > 0);
        // SAFETY: the plugin gave an array of devices.
        unsafe { *args.devices }
    }

    pub(crate) fn upload(&self, data: &[u8]) -> *mut PJRT_Buffer {
        let dims = [data.len() as i64];
        let args = call!(
            api(),
            PJRT_Client_BufferFromHostBuffer(PJRT_Client_BufferFromHostBuffer_Args {
                client: self.0,
                data: data.as_ptr().cast(),
                type_: PJRT_Buffer_Type_U8,
                dims: dims.as_ptr(),
                num_dims: 1,
                host_buffer_semantics: PJRT_HostBufferSemantics_kImmutableOnlyDuringCall,
                device: self.device(),
            })
        )
        .unwrap();
        finish(args.done_with_host_buffer).unwrap();
        args.buffer
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        call!(api(), PJRT_Client_Destroy(PJRT_Client_Destroy_Args { client: self.0 })).unwrap();
    }
}

pub(crate) fn finish(event: *mut PJRT_Event) -> Result<()> {
    let outcome = call!(api(), PJRT_Event_Await(PJRT_Event_Await_Args { event }));
    call!(api(), PJRT_Event_Destroy(PJRT_Event_Destroy_Args { event })).unwrap();
    outcome.map(drop)
}

pub(crate) fn download(src: *mut PJRT_Buffer) -> Result<Vec<u8>> {
    let size = call!(api(), PJRT_Buffer_ToHostBuffer(PJRT_Buffer_ToHostBuffer_Args { src }))?.dst_size;
    let mut data = vec![0_u8; size];
    let args = call!(
        api(),
        PJRT_Buffer_ToHostBuffer(PJRT_Buffer_ToHostBuffer_Args {
            src,
            dst: data.as_mut_ptr().cast(),
            dst_size: size
        })
    )?;
    finish(args.event).map(|()| data)
}

pub(crate) fn destroy(buffer: *mut PJRT_Buffer) {
    call!(api(), PJRT_Buffer_Destroy(PJRT_Buffer_Destroy_Args { buffer })).unwrap();
}

pub(crate) fn compile(
    client: &Client,
    program: &str,
    options: &CompileOptions,
) -> Result<*mut PJRT_LoadedExecutable> {
    let options = options.encode();
    let program = PJRT_Program {
        code: program.as_ptr().cast_mut().cast(),
        code_size: program.len(),
        format: "mlir".as_ptr().cast(),
        format_size: 4,
        ..SizedStruct::zeroed()
    };
    let args = call!(
        api(),
        PJRT_Client_Compile(PJRT_Client_Compile_Args {
            client: client.0,
            program: &raw const program,
            compile_options: options.as_ptr().cast(),
            compile_options_size: options.len(),
        })
    )?;
    Ok(args.executable)
}
