//! Arrays whose elements the host provides later.

use std::fmt;

use super::values::Value;
use super::world::World;
use crate::conform::harness::Finding;
use pjrt_testing::host::{AliasHandle, Buffer, Code, HostArray, Semantics, TransferManager};

/// The error of arrays that the host sets to an error.
pub(super) const ERROR: (Code, &str) = (Code::DATA_LOSS, "the host lost these elements");

/// The object through which the host provides the elements of an array.
pub(super) enum Promise {
    Alias(AliasHandle, usize),
    Transfer(TransferManager),
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Alias(..) => "PJRT_Client_CreateAliasBuffer",
            Self::Transfer(_) => "a transfer manager",
        })
    }
}

impl Promise {
    /// Creates an array without elements in a memory. Returns `None` if the plugin lacks the functions.
    pub(super) fn new(
        world: &World<'_>,
        value: &Value,
        memory: usize,
        by_transfer: bool,
    ) -> Result<Option<(Self, Buffer)>, Finding> {
        let place = world.memories[memory].1;
        let Value { element_type, dims, .. } = value;
        // The layout of an alias and the sizes of pieces are those on the device, where several elements may share a byte.
        if !element_type.fills_bytes() {
            return Ok(None);
        }
        if by_transfer {
            let what = format!("a transfer manager of {value} in memory {memory}");
            let manager = world.client.transfer_manager(&[(*element_type, dims.clone())], place);
            let Some(manager) = world.try_feature("transfer managers", *element_type, &what, manager)? else {
                return Ok(None);
            };
            let array = manager.retrieve(0)?;
            return Ok(Some((Self::Transfer(manager), array)));
        }
        let what = format!("an alias of {value} in memory {memory}");
        let alias = world.client.alias(*element_type, dims, place);
        let alias = world.try_feature("aliases", *element_type, &what, alias)?;
        Ok(alias.map(|(array, handle)| (Self::Alias(handle, memory), array)))
    }

    /// Provides the elements, or the error.
    pub(super) fn keep(self, world: &World<'_>, value: &Value, fails: bool) -> Result<(), Finding> {
        match self {
            Self::Alias(handle, _) if fails => match world.client.fulfill(handle, Err(ERROR)) {
                // The call may return the host's error too.
                Err(own) if own.message.contains(ERROR.1) => {}
                outcome => outcome?,
            },
            Self::Alias(handle, memory) => {
                let array = HostArray {
                    semantics: Semantics::ImmutableOnlyDuringCall,
                    ..HostArray::new(&value.bytes, value.element_type, &value.dims)
                };
                let source = world.client.upload(&array, None, Some(world.memories[memory].1))?.buffer;
                world.client.fulfill(handle, Ok(&source))?;
            }
            Self::Transfer(manager) if fails => manager.fail(0, ERROR.0, ERROR.1)?,
            Self::Transfer(manager) => drop(manager.write(0, &value.bytes, 0, true)?),
        }
        Ok(())
    }
}
