//! The Custom_Partitioner extension: functions of the host that partition custom calls.

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

/// Accepts functions of the host that partition custom calls (`PJRT_Custom_Partitioner_Extension`). JAX registers one for
/// `custom_partitioning`, whose calls have the target `CustomSPMDPartitioning`. See the [example](crate::ext#example).
///
/// The trait has no methods: `impl CustomPartitioners for MyClient {}`. The SDK stores the registered functions for the
/// whole process. A compiler that partitions programs looks them up with [`CustomPartitioner::find`], and replaces the
/// custom call with the program that [`CustomPartitioner::partition`] returns.
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

/// Reads the target of custom calls that a host passes.
fn target(name: &[u8]) -> Result<String> {
    if name.is_empty() {
        return Err(Error::invalid_argument(
            "'name' must be the target of custom calls, found an empty string",
        ));
    }
    Ok(text(name))
}

/// Registers a partitioner and takes ownership of it. If the call fails, the host keeps the ownership.
fn register_custom_partitioner<C: CustomPartitioners>(
    args: View<'_, PJRT_Register_Custom_Partitioner_Args>,
) -> Result<()> {
    let target = target(bytes!(args.name, name_size)?)?;
    // SAFETY: the field is null or a `JAX_CustomCallPartitioner_Callbacks` whose ownership the host passes.
    let partitioner = unsafe { CustomPartitioner::from_raw(input!(args.callbacks)) }
        .map_err(|error| error.context(format!("the partitioner of '{target}'")))?;
    registry::register(C::PLATFORM_NAME, target, partitioner);
    Ok(())
}

/// Registers that custom calls of a target may be split along batch dimensions.
fn register_batch_partitionable<C: CustomPartitioners>(
    args: View<'_, PJRT_Register_Batch_Partitionable_Args>,
) -> Result<()> {
    registry::register_batch_partitionable(C::PLATFORM_NAME, target(bytes!(args.name, name_size)?)?);
    Ok(())
}
