//! The plugin before there is a client.
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

/// A plugin's attributes, with the life of the process.
struct Attributes {
    all: NamedValues,
    /// Without the one that kills hosts which are older than it.
    for_old_hosts: NamedValues,
}

/// By the type of the client: one binary may hold several plugins.
static ATTRIBUTES: LazyLock<Mutex<HashMap<TypeId, &'static Attributes>>> = LazyLock::new(Mutex::default);

fn attributes<C: PjrtClient>() -> &'static Attributes {
    if let Some(known) = lock(&ATTRIBUTES).get(&TypeId::of::<C>()) {
        return known;
    }
    // The author is asked with no lock held; of two that ask at once, one's answer is dropped.
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

/// `PJRT_Plugin_Attributes`. Hosts abort on an error. Up to C API 0.70 they declare the struct as 24 bytes, although it has always had
/// `num_attributes` behind those; it must be written for them too. Such a host may be so old that it dies of a StableHLO
/// version newer than its own, and it does well without the attribute.
pub(crate) fn plugin_attributes<C: PjrtClient>(args: View<'_, PJRT_Plugin_Attributes_Args>) -> Result<()> {
    let attributes = attributes::<C>();
    if args.size() >= PJRT_Plugin_Attributes_Args::STRUCT_SIZE {
        output_slice!(args.attributes, num_attributes = attributes.all.as_slice());
        Ok(())
    } else {
        write_short(&args, attributes.for_old_hosts.as_slice())
    }
}

/// Fills a struct that declares less than it has.
fn write_short(args: &View<'_, PJRT_Plugin_Attributes_Args>, values: &[PJRT_NamedValue]) -> Result<()> {
    // SAFETY: hosts that declare 24 bytes pass a struct of 32: the size was wrong in the header, not the struct.
    let args = unsafe { args.with_size(PJRT_Plugin_Attributes_Args::STRUCT_SIZE) };
    output_slice!(args.attributes, num_attributes = values);
    Ok(())
}
