//! The FFI extension: custom calls whose handlers are C functions, written against the headers of XLA's FFI.

mod c_api;
mod call;
mod registry;
mod runtime;

use pjrt_sys::{
    PJRT_Extension_Base, PJRT_Extension_Type_FFI, PJRT_FFI_Extension, PJRT_FFI_Register_Handler_Args,
    PJRT_FFI_Type_Register_Args, PJRT_FFI_UserData_Add_Args, SizedStruct,
};

pub use call::{Array, ArrayMut, Attribute, Call, Handler};

use crate::abi::args::{View, bytes, handle, input, null, output, text};
use crate::abi::execute::ExecuteContext;
use crate::abi::guard::shim;
use crate::client::PjrtClient;
use crate::error::Result;

/// Lets hosts register handlers of custom calls, and hand data to them with an execution (`PJRT_FFI_Extension`).
///
/// It has no methods: `impl Ffi for MyClient {}`. The SDK keeps what hosts register; a plugin that
/// comes to a custom call with the typed FFI asks [`Handler::find`] for it and runs [`Handler::call`] with slices of its
/// memory, so this is for devices whose memory the host can read and write.
///
/// JAX sends handlers to a plugin of its own platform name if the plugin's Python package passes them on, see
/// [the book](https://github.com/pjrt-plugin/pjrt-plugin/blob/main/docs/writing-a-plugin.md#extensions).
pub trait Ffi: PjrtClient {}

pub(super) fn link<C: Ffi>(next: *mut PJRT_Extension_Base) -> *mut PJRT_Extension_Base {
    super::leak(PJRT_FFI_Extension {
        base: PJRT_Extension_Base {
            struct_size: PJRT_FFI_Extension::STRUCT_SIZE,
            type_: PJRT_Extension_Type_FFI,
            next,
        },
        type_register: Some(shim(type_register::<C>)),
        user_data_add: Some(shim(user_data_add::<C>)),
        register_handler: Some(shim(register_handler::<C>)),
    })
}

/// The number of a type. What can be done with its values is of no use here: the host keeps those that it adds.
fn type_register<C: Ffi>(args: View<'_, PJRT_FFI_Type_Register_Args>) -> Result<()> {
    let name = text(bytes!(args.type_name, type_name_size)?);
    output!(args.type_id = registry::register_type(&name, input!(args.type_id))?);
    Ok(())
}

/// Puts a value into a context, which the next execution with this context takes along. It stays the host's.
fn user_data_add<C: Ffi>(args: View<'_, PJRT_FFI_UserData_Add_Args>) -> Result<()> {
    let context = handle!(args.context: ExecuteContext)?;
    let value = input!(args.user_data);
    context.change(|all| all.add(value.type_id, value.data));
    Ok(())
}

/// Registers a handler for a platform: this one, or any that the host names.
fn register_handler<C: Ffi>(args: View<'_, PJRT_FFI_Register_Handler_Args>) -> Result<()> {
    let target = text(bytes!(args.target_name, target_name_size)?);
    let platform = text(bytes!(args.platform_name, platform_name_size)?);
    let handler = input!(args.handler);
    if handler.is_null() {
        return Err(null("handler"));
    }
    // SAFETY: the field is an `XLA_FFI_Handler*`.
    let handler = unsafe { Handler::from_raw(handler, input!(args.traits).0) }
        .map_err(|error| error.context(format!("the handler of '{target}' for the platform '{platform}'")))?;
    registry::register_handler(&platform, &target, handler)
}
