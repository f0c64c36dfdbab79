//! Arrays of every element type and of many shapes.

use super::upload::same_elements;
use crate::conform::harness::{self, Context, Finding, Verdict, check_array, is_brief};
use pjrt_testing::host::{Buffer, Client, Code, Device, ElementType, HostArray, in_traced_step};

/// An array with which each way to create or to read arrays is checked.
#[derive(Clone)]
pub(super) struct Shaped {
    pub(super) element_type: ElementType,
    pub(super) dims: Vec<i64>,
    pub(super) bytes: Vec<u8>,
}

/// The shapes: each rank up to 5 and one of 9, with dimensions of 0 and of 1, and matrices whose rows and columns are a little more
/// than those of tiles. They differ from those of the arrays of other checks.
const SHAPES: &[&[i64]] = &[
    &[],
    &[1],
    &[11],
    &[0],
    &[3, 6],
    &[1, 13],
    &[6, 0],
    &[2, 1, 3],
    &[2, 0, 3],
    &[2, 9, 4],
    &[2, 33, 3],
    &[2, 2, 130],
    &[2, 3, 2, 2],
    &[1, 2, 1, 3, 2],
    &[1, 2, 1, 1, 2, 1, 1, 1, 3],
];

/// Returns all element types of the plugin's version of the C API that arrays can have.
pub(super) fn element_types(context: &Context) -> impl Iterator<Item = ElementType> {
    harness::element_types(context.minor())
}

/// Returns the bits of an element that occupies one byte in host memory, or `None` for wider elements.
fn bits_of_a_byte(element_type: ElementType) -> Option<u32> {
    Some(match element_type.stablehlo_name() {
        "i1" | "i1s" | "ui1" => 1,
        "i2" | "ui2" => 2,
        "i4" | "ui4" | "f4E2M1FN" => 4,
        "f6E2M3FN" | "f6E3M2FN" => 6,
        _ => return None,
    })
}

impl Shaped {
    /// Creates an array of numbers that are neither NaN nor infinite. Neighboring elements differ as far as the type
    /// permits, and so do the elements of arrays with consecutive numbers.
    pub(super) fn new(element_type: ElementType, dims: &[i64], number: usize) -> Self {
        let (size, bits_of_a_byte) = (element_type.byte_size(), bits_of_a_byte(element_type));
        let mixed = |index: usize| index.wrapping_mul(0x9E37_79B1) >> 7;
        let byte = |at: usize| {
            let (index, place) = (at / size, at % size);
            match bits_of_a_byte {
                Some(bits) => ((mixed(index) + number) % (1 << bits)) as u8,
                // The lowest bits of a number tell elements apart that are far from each other.
                None if size > 1 && place == 0 => (37 * index + number) as u8,
                None => {
                    let is_last = place + 1 == size || place + 1 == element_type.alignment();
                    let sign = if is_last { (mixed(index) + number) as u8 % 2 * 0x80 } else { 0 };
                    sign + 0x31 + ((5 * index + index / 9 * 2 + 3 * place + number) % 9) as u8
                }
            }
        };
        let len = dims.iter().product::<i64>() as usize * size;
        Self { element_type, dims: dims.to_vec(), bytes: (0..len).map(byte).collect() }
    }

    pub(super) fn host(&self) -> HostArray<'_> {
        HostArray::new(&self.bytes, self.element_type, &self.dims)
    }

    /// Returns the smallest number of bytes that holds the elements on a device, where several may share a byte.
    pub(super) fn least_size(&self) -> usize {
        match bits_of_a_byte(self.element_type) {
            Some(bits) if !self.element_type.fills_bytes() => (self.bytes.len() * bits as usize).div_ceil(8),
            _ => self.bytes.len(),
        }
    }

    /// Compares the elements of an array with those of this one. If they are right only a moment later, the message says so.
    pub(super) fn check_array(&self, what: &str, array: &Buffer) -> Verdict {
        check_array(array, |read| self.check(what, read))
    }

    /// Compares elements with those of this array.
    pub(super) fn check(&self, what: &str, read: &[u8]) -> Verdict {
        same_elements(self.element_type, &self.dims, read, &self.bytes).map_err(|finding| match finding {
            Finding::Wrong(why) => Finding::Wrong(format!(
                "{what}, {self}: {}",
                why.replacen("the array that was read back: ", "", 1)
            )),
            other => other,
        })
    }
}

/// Writes type and dimensions, such as `F32[2, 3]`.
impl std::fmt::Display for Shaped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{:?}", self.element_type, self.dims)
    }
}

/// Returns all types, and those first whose elements differ most, because wrong elements of the others say less.
fn wide_types_first(context: &Context) -> Vec<ElementType> {
    let mut types: Vec<_> = element_types(context).collect();
    types.sort_by_key(|element_type| ![ElementType::F32, ElementType::S32].contains(element_type));
    types
}

/// Returns the arrays of a type and of all shapes.
fn samples(element_type: ElementType) -> Vec<Shaped> {
    let of_shape =
        |(at, dims): (usize, &&[i64])| Shaped::new(element_type, dims, element_type.0 as usize + at);
    SHAPES.iter().enumerate().map(of_shape).collect()
}

/// Uploads an array to a device. Returns `None` if the plugin does not support the type.
pub(super) fn uploaded(
    client: &Client,
    device: Device<'_>,
    sample: &Shaped,
) -> Result<Option<Buffer>, Finding> {
    match client.upload(&sample.host(), Some(device), None) {
        Err(error) if [Code::UNIMPLEMENTED, Code::INVALID_ARGUMENT].contains(&error.code) => Ok(None),
        uploaded => Ok(Some(uploaded?.buffer)),
    }
}

/// The maximum number of devices of which each is checked.
const DEVICES: usize = 4;

/// The types that stand for all on devices other than the first.
const OF_OTHER_DEVICES: [ElementType; 4] =
    [ElementType::PRED, ElementType::S32, ElementType::F32, ElementType(15)];

/// The types that stand for all in checks that run again.
const AGAIN: [ElementType; 2] = [ElementType::PRED, ElementType::F32];

/// Runs a check with the uploaded array of each type and shape that the plugin supports, on the first device, and of
/// a few types on the others. A check that [runs again](is_brief) uses fewer types, on the first device. If all of them lack
/// the feature, the check is unsupported.
pub(super) fn for_each_sample(
    context: &Context,
    client: &Client,
    work: impl Fn(Device<'_>, &Shaped, &Buffer) -> Verdict,
) -> Verdict {
    let (mut checked, mut lacking) = (false, None);
    let devices = if is_brief() { vec![client.device()?] } else { client.addressable_devices()? };
    for (index, device) in devices.into_iter().take(DEVICES).enumerate() {
        let is_used = |element_type: &ElementType| match () {
            () if is_brief() => AGAIN.contains(element_type),
            () => index == 0 || OF_OTHER_DEVICES.contains(element_type),
        };
        for element_type in wide_types_first(context).into_iter().filter(is_used) {
            for sample in samples(element_type) {
                let Some(array) = uploaded(client, device, &sample)? else { break };
                match in_traced_step(&sample.to_string(), || work(device, &sample, &array)) {
                    Err(why @ (Finding::Unsupported(_) | Finding::NotApplicable(_))) => lacking = Some(why),
                    verdict => {
                        verdict?;
                        checked = true;
                    }
                }
            }
        }
    }
    match lacking {
        Some(why) if !checked => Err(why),
        _ if checked => Ok(()),
        _ => Err(Finding::Unsupported("no array can be uploaded".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighboring_arrays_and_elements_differ() {
        for number in (1..=33).filter(|number| *number != 23) {
            let element_type = ElementType(number);
            let of = |number| Shaped::new(element_type, &[], number).bytes;
            assert_ne!(of(1), of(2), "{element_type}");
            let many = Shaped::new(element_type, &[36], 5);
            let mut elements: Vec<&[u8]> = many.bytes.chunks(element_type.byte_size()).collect();
            elements.sort_unstable();
            elements.dedup();
            assert!(
                elements.len() >= if element_type.fills_bytes() && number != 1 { 9 } else { 2 },
                "{element_type}"
            );
        }
    }
}
