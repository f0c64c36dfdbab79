//! Checks of the properties of arrays, with arrays of every element type and of many shapes.

use super::devices::id_of;
use super::samples::{Shaped, for_each_sample};
use crate::conform::harness::{Check, Context, Finding, READBACK_SIZE, Source, Users, Verdict, equal};
use pjrt_testing::host::{Buffer, Code, CopyLayout, Device, Error};

/// Returns a property as text, and the text that is expected. Returns `None` if the plugin does not have it.
type Get = fn(&Buffer, &Shaped, Device<'_>) -> Result<Option<(String, String)>, Error>;

/// A property of an array that a function of the plugin reports.
pub(super) struct Property {
    pub(super) name: &'static str,
    function: &'static str,
    /// Returns the property as text, and the text that is expected. Returns `None` if the plugin does not have it.
    get: Get,
    text: &'static str,
    fault: &'static str,
}

/// Returns a value and the expected one as texts.
fn texts<T: std::fmt::Debug>(got: T, expected: T) -> Option<(String, String)> {
    Some((format!("{got:?}"), format!("{expected:?}")))
}

pub(super) const PROPERTIES: &[Property] = &[
    Property {
        name: "element_type",
        function: "PJRT_Buffer_ElementType",
        get: |array, sample, _| Ok(texts(array.element_type()?, sample.element_type)),
        text: "Returns the type of the array elements of a buffer.",
        fault: "PJRT_Buffer_ElementType of_type 14 of_rank 0 set type_=5",
    },
    Property {
        name: "dimensions",
        function: "PJRT_Buffer_Dimensions",
        get: |array, sample, _| Ok(texts(array.dims()?, sample.dims.clone())),
        text: "Returns the array shape of `buffer`, i.e. the size of each dimension.",
        fault: "PJRT_Buffer_Dimensions of_type 14 of_rank 3 set num_dims=2",
    },
    Property {
        name: "unpadded_dimensions",
        function: "PJRT_Buffer_UnpaddedDimensions",
        get: |array, sample, _| Ok(texts(array.unpadded_dims()?, sample.dims.clone())),
        text: "Returns the unpadded array shape of `buffer`, which is that of a static array.",
        fault: "PJRT_Buffer_UnpaddedDimensions of_type 14 of_rank 3 set num_dims=2",
    },
    Property {
        name: "dynamic_dimensions",
        function: "PJRT_Buffer_DynamicDimensionIndices",
        get: |array, _, _| Ok(texts(array.dynamic_dims()?, Vec::new())),
        text: "Returns the indices of dynamically-sized dimensions, or an empty list if all dimensions are static.",
        fault: "PJRT_Buffer_DynamicDimensionIndices of_rank 2 set num_dynamic_dims=1 dynamic_dim_indices=zeros",
    },
    Property {
        name: "size_on_the_device",
        function: "PJRT_Buffer_OnDeviceSizeInBytes",
        get: |array, sample, _| {
            let (size, least) = (array.on_device_size()?, sample.least_size());
            Ok(Some((
                format!("{size}"),
                if size < least { format!("at least {least}") } else { format!("{size}") },
            )))
        },
        text: "Gets the number of bytes of the buffer storage on the device.",
        fault: "PJRT_Buffer_OnDeviceSizeInBytes of_type 15 set on_device_size_in_bytes=8",
    },
    Property {
        name: "size_of_a_readback",
        function: "PJRT_Buffer_ToHostBuffer",
        get: |array, sample, _| Ok(texts(array.host_size(&CopyLayout::Unsaid)?, sample.bytes.len())),
        text: "If `dst` is nullptr, then `dst_size` is set to the size needed.",
        fault: "PJRT_Buffer_ToHostBuffer of_type 15 of_rank 0 when dst=0 set dst_size=8",
    },
    Property {
        name: "memory_layout",
        function: "PJRT_Buffer_GetMemoryLayout",
        get: |array, sample, _| {
            let Some(order) = array.memory_layout()? else { return Ok(None) };
            let mut sorted = order.clone();
            sorted.sort_unstable();
            Ok(match sorted == (0..sample.dims.len() as i64).collect::<Vec<_>>() {
                true => texts(order.clone(), order),
                false => {
                    Some((format!("{order:?}"), format!("an order of {} dimensions", sample.dims.len())))
                }
            })
        },
        text: "Returns the memory layout of the data in this buffer.",
        fault: "PJRT_Buffer_GetMemoryLayout of_type 14 of_rank 3 shorten_layout",
    },
    Property {
        name: "device",
        function: "PJRT_Buffer_Device",
        get: |array, _, device| match array.device()? {
            on if on.is_null() => Ok(texts("a null pointer", "a device")),
            on => Ok(texts(id_of(on)?, id_of(device)?)),
        },
        text: "Returns this buffer's storage device.",
        fault: "PJRT_Buffer_Device of_type 14 of_rank 3 set device=null",
    },
    Property {
        name: "is_not_deleted",
        function: "PJRT_Buffer_IsDeleted",
        get: |array, _, _| Ok(texts(array.is_deleted()?, false)),
        text: "True if and only if PJRT_Buffer_Delete has previously been called.",
        fault: "PJRT_Buffer_IsDeleted of_type 14 of_rank 0 set is_deleted=1",
    },
];

impl Property {
    /// Compares the property of an array with the expected one.
    pub(super) fn check(&self, what: &str, array: &Buffer, sample: &Shaped, device: Device<'_>) -> Verdict {
        let Some((got, expected)) = self.of(array, sample, device) else { return Ok(()) };
        if got == expected {
            return Ok(());
        }
        let function = match self.name {
            "size_of_a_readback" => format!("{READBACK_SIZE} by {}", self.function),
            _ => self.function.to_owned(),
        };
        Err(Finding::Wrong(format!("{function} of {what}, {sample}, is {got}; expected {expected}")))
    }

    fn of(&self, array: &Buffer, sample: &Shaped, device: Device<'_>) -> Option<(String, String)> {
        match (self.get)(array, sample, device) {
            Ok(texts) => texts,
            Err(error) if error.code == Code::UNIMPLEMENTED => None,
            Err(error) => Some((format!("the error {error}"), "a result".to_owned())),
        }
    }
}

/// The sentence about the types and ranks of arrays.
pub(super) const TYPES: &str =
    "The enum PJRT_Buffer_Type lists the element types of arrays, and no function excludes a type or a rank.";

/// Returns a check for each property.
pub(super) fn by_property() -> Vec<Check> {
    let check = |property: &'static Property| Check {
        rule: format!(
            "{} is right for arrays of every element type and rank, on each device.",
            property.function
        )
        .into(),
        source: Source::Header { place: property.function, text: property.text },
        fault: property.fault.into(),
        users: Users::Callers(property.function),
        run: Box::new(move |context| has_property(context, property)),
        ..of_name(&format!("shapes/{}", property.name))
    };
    PROPERTIES.iter().map(check).collect()
}

/// Returns a check with this name, and without the rest.
pub(super) fn of_name(name: &str) -> Check {
    Check {
        name: name.to_owned(),
        rule: "".into(),
        source: Source::Advice { text: "" },
        is_of_the_table: false,
        since: 0,
        needed_by: &[],
        users: Users::These(&[]),
        needed_since: 0,
        fault: "".into(),
        also: &[],
        run: Box::new(|_| Ok(())),
    }
}

fn has_property(context: &Context, property: &Property) -> Verdict {
    let client = context.client()?;
    for_each_sample(context, &client, |device, sample, array| {
        let first = property.of(array, sample, device);
        property.check("an array that was uploaded", array, sample, device)?;
        equal(&format!("{} on the second call", property.function), property.of(array, sample, device), first)
    })
}

/// Returns `true` if the properties and the elements of an uploaded array are right. If they are not, other checks say so.
pub(super) fn is_good(device: Device<'_>, sample: &Shaped, source: &Buffer) -> bool {
    let has_all = PROPERTIES.iter().all(|property| property.check("", source, sample, device).is_ok());
    has_all && source.read().is_ok_and(|read| sample.check("", &read).is_ok())
}
