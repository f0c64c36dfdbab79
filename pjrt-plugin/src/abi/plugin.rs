//! Functions of the plugin that need no client.
//!
//! `PJRT_Plugin_Initialize`, `PJRT_Plugin_Attributes`.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use pjrt_sys::{PJRT_NamedValue, PJRT_Plugin_Attributes_Args, PJRT_Plugin_Initialize_Args, SizedStruct};

use crate::abi::args::{View, output_slice};
use crate::abi::c_arrays::NamedValues;
use crate::attributes::STABLEHLO_CURRENT_VERSION;
use crate::client::PjrtClient;
use crate::core::panic_guard;
use crate::core::sync::lock;
use crate::error::Result;

/// A plugin's attributes, which live as long as the process.
struct Attributes {
    all: NamedValues,
    /// The attributes without the StableHLO version, on which hosts abort that are older than that version.
    for_old_hosts: NamedValues,
}

/// The attributes by the type of the client, because one binary may contain several plugins.
static ATTRIBUTES: LazyLock<Mutex<HashMap<TypeId, &'static Attributes>>> = LazyLock::new(Mutex::default);

fn attributes<C: PjrtClient>() -> &'static Attributes {
    if let Some(known) = lock(&ATTRIBUTES).get(&TypeId::of::<C>()) {
        return known;
    }
    // The author's function is called without the lock. If two threads call it concurrently, one result is dropped.
    let values = C::plugin_attributes();
    let old = values.values().iter().filter(|(name, _)| name != STABLEHLO_CURRENT_VERSION);
    let attributes =
        Attributes { all: NamedValues::new(values.values()), for_old_hosts: NamedValues::new(old) };
    lock(&ATTRIBUTES).entry(TypeId::of::<C>()).or_insert_with(|| Box::leak(Box::new(attributes)))
}

/// `PJRT_Plugin_Initialize`.
pub(crate) fn plugin_initialize<C: PjrtClient>(_args: View<'_, PJRT_Plugin_Initialize_Args>) -> Result<()> {
    panic_guard::install_hook();
    C::initialize()
}

/// `PJRT_Plugin_Attributes`. Hosts abort on an error. Up to C API 0.70 they declare a struct size of 24 bytes, which
/// excludes `num_attributes`, although the struct has that field; it must be written for them too. Such a host may abort on
/// a StableHLO version newer than its own, and does not need the attribute, so it does not receive it.
pub(crate) fn plugin_attributes<C: PjrtClient>(args: View<'_, PJRT_Plugin_Attributes_Args>) -> Result<()> {
    let attributes = attributes::<C>();
    if args.size() >= PJRT_Plugin_Attributes_Args::STRUCT_SIZE {
        output_slice!(args.attributes, num_attributes = attributes.all.as_slice());
        Ok(())
    } else {
        write_short(&args, attributes.for_old_hosts.as_slice())
    }
}

/// Writes to a struct that is larger than its declared size.
fn write_short(args: &View<'_, PJRT_Plugin_Attributes_Args>, values: &[PJRT_NamedValue]) -> Result<()> {
    // SAFETY: hosts that declare 24 bytes pass a struct of 32 bytes. Only the declared size in their header is wrong.
    let args = unsafe { args.with_size(PJRT_Plugin_Attributes_Args::STRUCT_SIZE) };
    output_slice!(args.attributes, num_attributes = values);
    Ok(())
}
