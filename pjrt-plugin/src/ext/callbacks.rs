//! The Callback extension, which notifies a host of a fatal error before the plugin aborts the process.

use std::ffi::c_void;
use std::fmt;
use std::sync::Mutex;

use pjrt_sys::{
    PJRT_Callback_Extension, PJRT_Callback_InvokeCallback_Args, PJRT_Callback_PrefatalArgs,
    PJRT_Callback_RegisterCallback_Args, PJRT_Callback_Type, PJRT_Callback_Type_Prefatal, PJRT_Error_Code,
    PJRT_Extension_Base, PJRT_Extension_Type_Callback, SizedStruct,
};

use crate::abi::args::{View, chars, handle, input, null};
use crate::abi::client_state::ClientState;
use crate::abi::guard::shim;
use crate::client::PjrtClient;
use crate::core::host_memory::HostPointer;
use crate::core::sync::lock;
use crate::error::{Error, Result};

/// Notifies hosts of fatal errors before the plugin aborts the process (`PJRT_Callback_Extension`), so that they can log
/// them. See the [example](crate::ext#example).
///
/// The other type of callback of the extension applies only to TPUs.
pub trait Callbacks: PjrtClient {
    /// Returns the host's callbacks, which the client owns.
    fn prefatal_callbacks(&self) -> &PrefatalCallbacks;
}

/// The host's callbacks for fatal errors. See [`Callbacks`].
#[derive(Default)]
pub struct PrefatalCallbacks(Mutex<Vec<(Callback, HostPointer)>>);

type Callback = unsafe extern "C" fn(*mut c_void, *mut c_void);

impl PrefatalCallbacks {
    /// Creates an empty list of callbacks.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Notifies the host of an error after which the plugin will abort the process. The callbacks run on this thread, in the
    /// order of their registration.
    pub fn invoke(&self, error: &Error) {
        let message = error.to_string();
        let mut args = PJRT_Callback_PrefatalArgs {
            struct_size: PJRT_Callback_PrefatalArgs::STRUCT_SIZE,
            error_code: PJRT_Error_Code(error.code() as u32),
            error_message: chars(message.as_bytes()),
            error_message_size: message.len(),
        };
        // SAFETY: the struct is that of this type of callback, and lives during the call.
        unsafe { self.call((&raw mut args).cast()) };
    }

    /// # Safety
    ///
    /// `args` is the argument struct of this type of callback.
    unsafe fn call(&self, args: *mut c_void) {
        // The lock is not held during the calls, because a callback may register another one.
        let all = lock(&self.0).clone();
        for (callback, user_arg) in all {
            // SAFETY: the host allows calls of the callback with this struct and its argument.
            unsafe { callback(args, user_arg.get()) };
        }
    }
}

impl fmt::Debug for PrefatalCallbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrefatalCallbacks({})", lock(&self.0).len())
    }
}

pub(super) fn link<C: Callbacks>(next: *mut PJRT_Extension_Base) -> *mut PJRT_Extension_Base {
    super::leak(PJRT_Callback_Extension {
        base: PJRT_Extension_Base {
            struct_size: PJRT_Callback_Extension::STRUCT_SIZE,
            type_: PJRT_Extension_Type_Callback,
            next,
        },
        register_callback: Some(shim(register_callback::<C>)),
        invoke_callback: Some(shim(invoke_callback::<C>)),
    })
}

/// Returns an error for the types of callbacks that only TPUs have.
fn check(type_: PJRT_Callback_Type) -> Result<()> {
    if type_ == PJRT_Callback_Type_Prefatal {
        return Ok(());
    }
    Err(Error::unimplemented(format!("callbacks of type {} (PJRT_Callback_Type) are not supported", type_.0))
        .with_hint(format!(
            "the plugin supports type {}, callbacks for fatal errors",
            PJRT_Callback_Type_Prefatal.0
        )))
}

/// Registers a callback.
fn register_callback<C: Callbacks>(args: View<'_, PJRT_Callback_RegisterCallback_Args>) -> Result<()> {
    let client = handle!(args.client: ClientState<C>)?;
    check(input!(args.type_))?;
    let callback = input!(args.callback).ok_or_else(|| null("callback"))?;
    lock(&client.client.prefatal_callbacks().0).push((callback, HostPointer(input!(args.user_arg))));
    Ok(())
}

/// Calls all callbacks, as the plugin does before it aborts the process.
fn invoke_callback<C: Callbacks>(args: View<'_, PJRT_Callback_InvokeCallback_Args>) -> Result<()> {
    let client = handle!(args.client: ClientState<C>)?;
    check(input!(args.type_))?;
    // SAFETY: the field is the argument struct of this type.
    unsafe { client.client.prefatal_callbacks().call(input!(args.args)) };
    Ok(())
}
