//! The shardings that a program states.

use crate::error::Result;
use crate::hlo_sharding::{self, HloSharding};
use crate::mesh::{mesh_of, of_shardy, with_partial};
use crate::sharding::Sharding;
use crate::split::Split;
use pjrt_stablehlo::Module;
use pjrt_stablehlo::ir::{Attribute, BackendConfig, Operation, TensorSharding, ops};

/// The sharding of an array as an attribute, a constraint or an annotation states it.
pub(crate) struct Said {
    /// The sharding; `None` if every partition holds the whole array.
    pub(crate) sharding: Option<Sharding>,
    /// For each dimension, whether propagation may split it further.
    pub(crate) open: Vec<bool>,
}

impl Said {
    /// Returns the sharding that the attributes of a parameter or result state; `None` if they state none. If the array
    /// is unreduced, `open` has no entry for the dimension of the sharding that counts the partial results.
    ///
    /// # Errors
    /// Returns an error if the form of the sharding is not supported, or if the sharding does not fit the array.
    pub(crate) fn of_attributes<'m>(
        module: &'m Module,
        attribute: impl Fn(&str) -> Option<&'m Attribute>,
        dims: &[usize],
        partitions: usize,
    ) -> Result<Option<Self>> {
        if let Some(Attribute::Sharding(sharding)) = attribute("sdy.sharding") {
            let open = open_dims(sharding, dims);
            return Ok(Some(Self { sharding: with_partial(module, sharding, dims, partitions)?, open }));
        }
        let text = attribute("mhlo.sharding").and_then(Attribute::as_str);
        text.map(|text| Self::of_hlo(text, dims, partitions)).transpose()
    }

    /// Parses an `mhlo.sharding` of an array.
    ///
    /// # Errors
    /// Returns an error if the form of the sharding is not supported, or if the sharding does not fit the array.
    fn of_hlo(text: &str, dims: &[usize], partitions: usize) -> Result<Self> {
        let parsed = hlo_sharding::parse(text, dims, partitions)?;
        let open = vec![parsed == HloSharding::Unknown; dims.len()];
        let sharding = if let HloSharding::Tiled(sharding) = parsed { Some(sharding) } else { None };
        Ok(Self { sharding, open })
    }

    /// Returns the split of each dimension that is stated. Partial results are not part of it.
    pub(crate) fn split(&self) -> Split {
        let closed: Vec<bool> = self.open.iter().map(|open| !open).collect();
        Split::new(self.sharding.as_ref(), closed)
    }
}

/// Returns the split that a constraint states; `None` if the array cannot be split in this way.
pub(crate) fn constraint(
    module: &Module,
    sharding: &TensorSharding,
    dims: &[usize],
    partitions: usize,
) -> Option<Split> {
    let open = open_dims(sharding, dims);
    let sharding = of_shardy(module, sharding, dims, partitions).ok()?;
    Some(Said { sharding, open }.split())
}

/// Returns the split that a custom call `Sharding` states; `None` if it states none, or one that the array cannot have.
pub(crate) fn annotation(
    op: &Operation,
    call: &ops::CustomCall,
    dims: &[usize],
    partitions: usize,
) -> Option<Split> {
    let text = op.attributes.get("mhlo.sharding").and_then(Attribute::as_str)?;
    let mut said = Said::of_hlo(text, dims, partitions).ok()?;
    if let BackendConfig::Bytes(config) = &call.backend_config {
        for dim in unspecified_dims(&String::from_utf8_lossy(config)) {
            *said.open.get_mut(dim)? = true;
        }
    }
    Some(said.split())
}

/// Returns the dimensions that a custom call `Sharding` leaves open, from its configuration `unspecified_dims=[0,1]`.
fn unspecified_dims(config: &str) -> Vec<usize> {
    let list = config.strip_prefix("unspecified_dims=[").and_then(|rest| rest.strip_suffix(']'));
    list.map_or(vec![], |list| list.split(',').filter_map(|dim| dim.trim().parse().ok()).collect())
}

/// Returns the partition on which alone an operation runs; `None` if the program does not state one. The results are then those
/// of this partition.
pub(crate) fn single_partition(module: &Module, op: &Operation) -> Option<usize> {
    match op.attributes.get("sdy.sharding") {
        Some(Attribute::ShardingPerValue(shardings)) => {
            let mesh = mesh_of(module, shardings.first()?).ok()?;
            match &*mesh.device_ids {
                [device] if mesh.axes.is_empty() => usize::try_from(*device).ok(),
                _ => None,
            }
        }
        _ => {
            let text = op.attributes.get("mhlo.sharding").and_then(Attribute::as_str)?;
            text.strip_prefix("{maximal device=")?.strip_suffix('}')?.parse().ok()
        }
    }
}

fn open_dims(sharding: &TensorSharding, dims: &[usize]) -> Vec<bool> {
    (0..dims.len()).map(|d| sharding.dim_shardings.get(d).is_some_and(|dim| !dim.is_closed)).collect()
}
