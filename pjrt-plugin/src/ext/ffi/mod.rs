//! The FFI extension: custom calls whose handlers are C functions that implement XLA's FFI.
//!
//! A plugin looks up the handler of a custom call and calls it:
//!
//! ```
//! use pjrt_plugin::ext::UserData;
//! use pjrt_plugin::ext::ffi::{Array, ArrayMut, Attribute, Call, Handler};
//! use pjrt_plugin::{ElementType, Error, Result};
//!
//! /// Runs a custom call with an operand and a result of bytes.
//! fn custom_call(target: &str, operand: &[u8], result: &mut [u8], user_data: &UserData) -> Result<()> {
//!     let handler = Handler::find("chips", target)
//!         .ok_or_else(|| Error::unimplemented(format!("no handler of the custom call '{target}' is registered")))?;
//!     let (operand_dims, result_dims) = ([operand.len() as i64], [result.len() as i64]);
//!     handler.call(Call {
//!         arguments: vec![Array { element_type: ElementType::U8, dims: &operand_dims, data: operand }],
//!         results: vec![ArrayMut { element_type: ElementType::U8, dims: &result_dims, data: result }],
//!         attributes: &[("factor".to_owned(), Attribute::f32(2.0))],
//!         user_data,
//!         device_ordinal: 0,
//!         run_id: 0,
//!     })
//! }
//! # assert!(custom_call("unknown", &[], &mut [], &UserData::default()).is_err());
//! ```

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

/// Accepts the host's handlers of custom calls, and data for them (`PJRT_FFI_Extension`).
///
/// The trait has no methods: `impl Ffi for MyClient {}`. The SDK stores the registered handlers. To run a custom call with
/// the typed FFI, a plugin looks up its handler with [`Handler::find`], and calls it with [`Handler::call`] and slices of
/// its memory, so the memory of the device must be host-accessible. See the [example](self).
///
/// JAX passes handlers only to platforms that it knows; for others, the plugin's Python package must forward them. See [the
/// book](https://github.com/pjrt-plugin/pjrt-plugin/blob/main/docs/writing-a-plugin.md#extensions).
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

/// Registers a type and returns its id. The functions of the type are not needed, because the host owns the values that it
/// adds.
fn type_register<C: Ffi>(args: View<'_, PJRT_FFI_Type_Register_Args>) -> Result<()> {
    let name = text(bytes!(args.type_name, type_name_size)?);
    output!(args.type_id = registry::register_type(&name, input!(args.type_id))?);
    Ok(())
}

/// Adds a value to a context, which the next execution with this context receives. The host owns the value.
fn user_data_add<C: Ffi>(args: View<'_, PJRT_FFI_UserData_Add_Args>) -> Result<()> {
    let context = handle!(args.context: ExecuteContext)?;
    let value = input!(args.user_data);
    context.change(|all| all.add(value.type_id, value.data));
    Ok(())
}

/// Registers a handler for any platform.
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
