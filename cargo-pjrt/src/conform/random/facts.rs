//! What the functions that describe an array return, compared with the model and with earlier calls.

use std::fmt::Debug;

use super::values::Value;
use super::world::{Place, World};
use crate::conform::harness::{Finding, Verdict, ensure, equal, if_supported, is_in_memory, is_on_device};
use pjrt_testing::host::{Buffer, Code, CopyLayout, Error, Returned};

/// What a function returned first.
#[derive(Default)]
pub(super) struct Facts {
    dims: Option<(Returned, Vec<u8>)>,
    size: Option<usize>,
    layout: Option<Option<Vec<i64>>>,
    layout_text: Option<String>,
}

/// Compares a value with the one that the function returned first.
fn as_before<T: PartialEq + Debug + Clone>(what: &str, first: &mut Option<T>, now: T) -> Verdict {
    match first {
        None => {
            *first = Some(now);
            Ok(())
        }
        Some(first) => {
            ensure!(*first == now, "{what} was {first:?} at first, and is {now:?} later");
            Ok(())
        }
    }
}

/// Returns the value of a function, or `None` if the plugin lacks the function.
fn supported<T>(outcome: Result<T, Error>) -> Result<Option<T>, Finding> {
    match outcome {
        Err(error) if error.code == Code::UNIMPLEMENTED => Ok(None),
        outcome => Ok(Some(outcome?)),
    }
}

impl Facts {
    /// Calls the functions that describe an array. `made` says how the array was created.
    pub(super) fn compare(
        &mut self,
        world: &World<'_>,
        array: &Buffer,
        value: &Value,
        place: Place,
        is_deleted: bool,
        made: &str,
    ) -> Verdict {
        equal(&format!("PJRT_Buffer_IsDeleted of {made}"), array.is_deleted()?, is_deleted)?;
        equal(&format!("PJRT_Buffer_ElementType of {made}"), array.element_type()?, value.element_type)?;
        equal(&format!("PJRT_Buffer_Dimensions of {made}"), array.dims()?, value.dims.clone())?;
        self.held_dims(array, made)?;
        if is_deleted {
            return Ok(());
        }
        if let Some(dims) = supported(array.unpadded_dims())? {
            equal(&format!("PJRT_Buffer_UnpaddedDimensions of {made}"), dims, value.dims.clone())?;
        }
        if let Some(dynamic) = supported(array.dynamic_dims())? {
            equal(&format!("PJRT_Buffer_DynamicDimensionIndices of {made}"), dynamic, Vec::new())?;
        }
        let device = world.devices[world.device_of(place)];
        is_on_device(made, array, device, "The plugin probably ignores the destination")?;
        self.memory(world, array, place, made)?;
        self.layouts(array, value, made)?;
        if let Some(size) = supported(array.on_device_size())? {
            // An array that has no memory yet may have the size of its dense elements, and a padded one later.
            let before = self.size.replace(size).unwrap_or(0);
            ensure!(
                before <= size,
                "PJRT_Buffer_OnDeviceSizeInBytes of {made} was {before} before, and is {size} later"
            );
            let least =
                if value.element_type.fills_bytes() { value.bytes.len() } else { value.bytes.len() / 8 };
            ensure!(
                size >= least,
                "PJRT_Buffer_OnDeviceSizeInBytes of {made} is {size}; expected at least {least}"
            );
        }
        Ok(())
    }

    /// Reads the dimensions again at the address that was returned first.
    fn held_dims(&mut self, array: &Buffer, made: &str) -> Verdict {
        if self.dims.is_none() {
            let returned = array.returned_dims()?;
            let bytes = returned.read()?;
            self.dims = Some((returned, bytes));
        }
        let Some((returned, first)) = &self.dims else { return Ok(()) };
        ensure!(
            returned.read()? == *first,
            "the dimensions of {made} at the address that PJRT_Buffer_Dimensions returned first have changed"
        );
        Ok(())
    }

    fn memory(&self, world: &World<'_>, array: &Buffer, place: Place, made: &str) -> Verdict {
        let expected = match place {
            Place::Memory(number) => world.memories[number].1,
            Place::Device(device) => world.devices[device].default_memory()?,
        };
        if_supported(is_in_memory(made, array, expected, "The plugin probably ignores the destination"))
    }

    /// Compares the functions for layouts with each other and with earlier calls.
    fn layouts(&mut self, array: &Buffer, value: &Value, made: &str) -> Verdict {
        let rank = value.dims.len() as i64;
        let order = supported(array.memory_layout())?;
        if let Some(order) = order {
            if let Some(order) = &order {
                let mut sorted = order.clone();
                sorted.sort_unstable();
                let what = format!("the sorted minor_to_major of PJRT_Buffer_GetMemoryLayout of {made}");
                equal(&what, sorted, (0..rank).collect())?;
            }
            as_before(&format!("the minor_to_major of {made}"), &mut self.layout, order)?;
        }
        if let Some(text) = supported(array.layout_text())? {
            let written = minor_to_major(&text);
            if let (Some(Some(order)), Some(written)) = (&self.layout, written) {
                let what = format!("the order of dimensions in the serialized layout {text:?} of {made}");
                equal(&what, written, order.clone())?;
            }
            as_before(&format!("the serialized layout of {made}"), &mut self.layout_text, text)?;
        }
        let size = array.host_size(&CopyLayout::Unsaid)?;
        equal(&format!("dst_size of PJRT_Buffer_ToHostBuffer of {made}"), size, value.bytes.len())
    }

    /// Returns `true` if the bytes on the device are those of a dense row-major array.
    pub(super) fn is_dense(&self, array: &Buffer, value: &Value) -> Result<bool, Finding> {
        let row_major: Vec<i64> = (0..value.dims.len() as i64).rev().collect();
        let size = supported(array.on_device_size())?;
        Ok(size == Some(value.bytes.len()) && supported(array.memory_layout())? == Some(Some(row_major)))
    }
}

/// Returns the order of dimensions of a layout as text, such as `{1,0}` or `{1,0:T(8,128)}`.
fn minor_to_major(text: &str) -> Option<Vec<i64>> {
    let inner = text.strip_prefix('{')?.strip_suffix('}')?.split(':').next()?;
    let dims = inner.split(',').map(str::trim).filter(|dim| !dim.is_empty());
    dims.map(|dim| dim.parse().ok()).collect()
}
