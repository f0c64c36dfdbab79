//! The Callback extension: a host is told of a fatal error before the plugin ends the process.

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

/// Lets hosts be told of an error that the process will not survive (`PJRT_Callback_Extension`), so that they can write down
/// what happened.
///
/// The extension's other kind of callback, about slices of TPUs, is not for
/// other devices.
pub trait Callbacks: PjrtClient {
    /// Where the client keeps the host's callbacks.
    fn prefatal_callbacks(&self) -> &PrefatalCallbacks;
}

/// The host's callbacks for fatal errors.
#[derive(Default)]
pub struct PrefatalCallbacks(Mutex<Vec<(Callback, HostPointer)>>);

type Callback = unsafe extern "C" fn(*mut c_void, *mut c_void);

impl PrefatalCallbacks {
    /// None so far.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells the host of an error after which the plugin will end the process: calls back, on this thread, in the order of
    /// registration.
    pub fn invoke(&self, error: &Error) {
        let message = error.to_string();
        let mut args = PJRT_Callback_PrefatalArgs {
            struct_size: PJRT_Callback_PrefatalArgs::STRUCT_SIZE,
            error_code: PJRT_Error_Code(error.code() as u32),
            error_message: chars(message.as_bytes()),
            error_message_size: message.len(),
        };
        // SAFETY: the struct is the one of this type of callback, and lives during the call.
        unsafe { self.call((&raw mut args).cast()) };
    }

    /// # Safety
    ///
    /// `args` is what these callbacks take.
    unsafe fn call(&self, args: *mut c_void) {
        // A callback may register another one, so not under the lock.
        let all = lock(&self.0).clone();
        for (callback, user_arg) in all {
            // SAFETY: the host gave the callback to be called with this struct and its own argument.
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

/// Refuses what only TPUs have.
fn check(type_: PJRT_Callback_Type) -> Result<()> {
    if type_ == PJRT_Callback_Type_Prefatal {
        return Ok(());
    }
    Err(Error::unimplemented(format!("this plugin has no callbacks of type {}", type_.0))
        .with_hint(format!("it has those of type {}, for fatal errors", PJRT_Callback_Type_Prefatal.0)))
}

/// Registers a callback.
fn register_callback<C: Callbacks>(args: View<'_, PJRT_Callback_RegisterCallback_Args>) -> Result<()> {
    let client = handle!(args.client: ClientState<C>)?;
    check(input!(args.type_))?;
    let callback = input!(args.callback).ok_or_else(|| null("callback"))?;
    lock(&client.client.prefatal_callbacks().0).push((callback, HostPointer(input!(args.user_arg))));
    Ok(())
}

/// Calls all callbacks, as the plugin would.
fn invoke_callback<C: Callbacks>(args: View<'_, PJRT_Callback_InvokeCallback_Args>) -> Result<()> {
    let client = handle!(args.client: ClientState<C>)?;
    check(input!(args.type_))?;
    // SAFETY: the field is the struct that belongs to the type.
    unsafe { client.client.prefatal_callbacks().call(input!(args.args)) };
    Ok(())
}
