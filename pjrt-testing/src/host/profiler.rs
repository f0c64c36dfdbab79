//! Sessions of the profiler (the Profiler extension), which has a function table and errors of its own.

use std::ptr;

use pjrt_sys::*;

use super::called;
use super::error::{Code, Error, Result};
use super::host_memory::HostMemory;
use super::plugin::Plugin;
use super::slices::{given, text};

/// A session, which is destroyed when it is dropped.
#[derive(Debug)]
pub struct Profiler {
    api: *const PLUGIN_Profiler_Api,
    raw: *mut PLUGIN_Profiler,
}

/// Fills in a struct, calls a function of the profiler's table, and returns the struct after the call.
macro_rules! call {
    ($api:expr, $function:ident $args:ident { $($field:ident $(: $value:expr)?),* $(,)? }) => {{
        #[allow(clippy::needless_update, reason = "some structs have no other fields")]
        let mut args = $args {
            struct_size: <$args as SizedStruct>::STRUCT_SIZE,
            $($field $(: $value)?,)*
            ..SizedStruct::zeroed()
        };
        const NAME: &str = stringify!($args).split_at(stringify!($args).len() - "_Args".len()).0;
        called::note_extension_function(NAME);
        // SAFETY: the table is the plugin's. The struct is filled in as the interface requires.
        unsafe {
            match (*$api).$function {
                None => Err(Error::missing(NAME)),
                Some(function) => take($api, NAME, function(&raw mut args)).map_or(Ok(args), Err),
            }
        }
    }};
}

/// Reads and destroys an error of the profiler.
///
/// # Safety
///
/// The table and the error are the plugin's.
unsafe fn take(
    api: *const PLUGIN_Profiler_Api,
    function: &'static str,
    error: *mut PLUGIN_Profiler_Error,
) -> Option<Error> {
    if error.is_null() {
        return None;
    }
    let (mut message, mut code) =
        (PLUGIN_Profiler_Error_Message_Args::zeroed(), PLUGIN_Profiler_Error_GetCode_Args::zeroed());
    (message.struct_size, message.error) = (PLUGIN_Profiler_Error_Message_Args::STRUCT_SIZE, error);
    (code.struct_size, code.error) = (PLUGIN_Profiler_Error_GetCode_Args::STRUCT_SIZE, error);
    let mut destroyed = PLUGIN_Profiler_Error_Destroy_Args::zeroed();
    (destroyed.struct_size, destroyed.error) = (PLUGIN_Profiler_Error_Destroy_Args::STRUCT_SIZE, error);
    // SAFETY: guaranteed by the caller. The text is read before the error is destroyed, once.
    unsafe {
        if let Some(function) = (*api).error_message {
            function(&raw mut message);
        }
        if let Some(function) = (*api).error_get_code {
            function(&raw mut code);
        }
        let message = text(message.message, message.message_size);
        if let Some(function) = (*api).error_destroy {
            function(&raw mut destroyed);
        }
        let code = Code(code.code.cast_unsigned());
        Some(Error { code, is_of_success: false, ..Error::broken(function, message) })
    }
}

impl Plugin {
    /// Creates a session (`PLUGIN_Profiler_Create`), with the default options of hosts.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error, or UNIMPLEMENTED if the plugin has no profiler.
    pub fn profiler(self) -> Result<Profiler> {
        const NAME: &str = "PLUGIN_Profiler_Create";
        let missing = || Error {
            message: "the plugin does not have the extension Profiler".to_owned(),
            ..Error::missing(NAME)
        };
        let extension = self.extension(PJRT_Extension_Type_Profiler.0).ok_or_else(missing)?;
        // SAFETY: the type says which struct this is.
        let api = unsafe { (*extension.cast::<PJRT_Profiler_Extension>()).profiler_api };
        if api.is_null() {
            return Err(missing());
        }
        let options = "";
        let args = call!(api, create PLUGIN_Profiler_Create_Args { options: options.as_ptr().cast() })?;
        if args.profiler.is_null() {
            return Err(Error::broken(NAME, "it succeeded, but the profiler is a null pointer"));
        }
        Ok(Profiler { api, raw: args.profiler })
    }
}

impl Profiler {
    /// Starts tracing (`PLUGIN_Profiler_Start`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn start(&self) -> Result<()> {
        call!(self.api, start PLUGIN_Profiler_Start_Args { profiler: self.raw }).map(drop)
    }

    /// Stops tracing (`PLUGIN_Profiler_Stop`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn stop(&self) -> Result<()> {
        call!(self.api, stop PLUGIN_Profiler_Stop_Args { profiler: self.raw }).map(drop)
    }

    /// Returns the trace, a serialized `XSpace` (`PLUGIN_Profiler_CollectData`): the function returns its size, and then fills
    /// memory of this size.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn collect(&self) -> Result<Vec<u8>> {
        const NAME: &str = "PLUGIN_Profiler_CollectData";
        let sized = call!(self.api, collect_data PLUGIN_Profiler_CollectData_Args { profiler: self.raw })?;
        // A plugin may return the address of the bytes already.
        // SAFETY: the plugin returned the address of this many bytes.
        let at_once = unsafe { given::<u8>(NAME, sized.buffer.cast_const(), sized.buffer_size_in_bytes) };
        let at_once = if sized.buffer.is_null() { None } else { Some(at_once?.to_vec()) };
        let size = sized.buffer_size_in_bytes;
        let destination = HostMemory::destination(size, 0);
        let buffer = ptr::with_exposed_provenance_mut(destination.exposed());
        call!(
            self.api,
            collect_data PLUGIN_Profiler_CollectData_Args { profiler: self.raw, buffer, buffer_size_in_bytes: size }
        )?;
        let copied = destination.written(NAME)?;
        match at_once {
            Some(bytes) if bytes != copied => {
                let message =
                    "the bytes that it copies differ from those at the address that it returned before";
                Err(Error::broken(NAME, message))
            }
            _ => Ok(copied),
        }
    }

    /// Returns the trace, which the session then lacks (`PLUGIN_Profiler_Consume`, `PLUGIN_Profiler_Serialize`), or `None` if the
    /// table of the plugin ends before these functions.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn consume(&self) -> Result<Option<Vec<u8>>> {
        const NAME: &str = "PLUGIN_Profiler_Serialize";
        // SAFETY: the table has at least its size.
        if unsafe { (*self.api).struct_size } < PLUGIN_Profiler_Api::STRUCT_SIZE {
            return Ok(None);
        }
        let consume_result =
            call!(self.api, consume PLUGIN_Profiler_Consume_Args { profiler: self.raw })?.result;
        let serialized =
            call!(self.api, serialize PLUGIN_Profiler_Serialize_Args { profiler: self.raw, consume_result });
        let read = serialized.and_then(|args| {
            // SAFETY: the plugin returned the address of this many bytes, which live as long as the result.
            unsafe { given::<u8>(NAME, args.serialized_bytes, args.serialized_size) }.map(<[u8]>::to_vec)
        });
        let mut destroyed = PLUGIN_Profiler_ConsumeResult_Destroy_Args {
            struct_size: PLUGIN_Profiler_ConsumeResult_Destroy_Args::STRUCT_SIZE,
            consume_result,
        };
        // SAFETY: the result is the plugin's, and destroyed once.
        unsafe {
            if let Some(function) = (*self.api).consume_result_destroy {
                function(&raw mut destroyed);
            }
        }
        read.map(Some)
    }
}

impl Drop for Profiler {
    fn drop(&mut self) {
        drop(call!(self.api, destroy PLUGIN_Profiler_Destroy_Args { profiler: self.raw }));
    }
}
