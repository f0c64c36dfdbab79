//! The Custom_Partitioner extension: functions of the host that say how custom calls are divided among partitions.

mod partitioner;
mod registry;

use pjrt_sys::{
    PJRT_Custom_Partitioner_Extension, PJRT_Extension_Base, PJRT_Extension_Type_Custom_Partitioner,
    PJRT_Register_Batch_Partitionable_Args, PJRT_Register_Custom_Partitioner_Args, SizedStruct,
};

pub use partitioner::{CustomPartitioner, Partition, ShardedArray};

use crate::abi::args::{View, bytes, input, text};
use crate::abi::guard::shim;
use crate::client::PjrtClient;
use crate::error::{Error, Result};

/// Lets hosts register functions that say how custom calls of a name are divided among the partitions of a program
/// (`PJRT_Custom_Partitioner_Extension`). JAX registers one for its `custom_partitioning`, whose calls have the target
/// `CustomSPMDPartitioning`.
///
/// It has no methods: `impl CustomPartitioners for MyClient {}`. The SDK keeps what
/// hosts register, for the whole process; a compiler that partitions programs asks [`CustomPartitioner::find`] for it where it
/// comes to such a call, and puts the program that [`CustomPartitioner::partition`] gives in its place.
pub trait CustomPartitioners: PjrtClient {}

pub(super) fn link<C: CustomPartitioners>(next: *mut PJRT_Extension_Base) -> *mut PJRT_Extension_Base {
    super::leak(PJRT_Custom_Partitioner_Extension {
        base: PJRT_Extension_Base {
            struct_size: PJRT_Custom_Partitioner_Extension::STRUCT_SIZE,
            type_: PJRT_Extension_Type_Custom_Partitioner,
            next,
        },
        register_custom_partitioner: Some(shim(register_custom_partitioner::<C>)),
        register_batch_partitionable: Some(shim(register_batch_partitionable::<C>)),
    })
}

/// The target of custom calls that a host names.
fn target(name: &[u8]) -> Result<String> {
    if name.is_empty() {
        return Err(Error::invalid_argument("'name' is empty; it must be the target of custom calls"));
    }
    Ok(text(name))
}

/// Registers a partitioner. It is the plugin's from here on; one that is refused stays the host's.
fn register_custom_partitioner<C: CustomPartitioners>(
    args: View<'_, PJRT_Register_Custom_Partitioner_Args>,
) -> Result<()> {
    let target = target(bytes!(args.name, name_size)?)?;
    // SAFETY: the field is null or a `JAX_CustomCallPartitioner_Callbacks` that the host gives up.
    let partitioner = unsafe { CustomPartitioner::from_raw(input!(args.callbacks)) }
        .map_err(|error| error.context(format!("the partitioner of '{target}'")))?;
    registry::register(C::PLATFORM_NAME, target, partitioner);
    Ok(())
}

/// Notes that custom calls of a name may be split along batch dimensions.
fn register_batch_partitionable<C: CustomPartitioners>(
    args: View<'_, PJRT_Register_Batch_Partitionable_Args>,
) -> Result<()> {
    registry::register_batch_partitionable(C::PLATFORM_NAME, target(bytes!(args.name, name_size)?)?);
    Ok(())
}
