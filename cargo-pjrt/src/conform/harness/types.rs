//! Element types that the plugin accepts, for checks of arrays whose type does not matter.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use pjrt_testing::host::{Client, Code, ElementType, HostArray, Result};

/// For each width in bytes, the types that stand for it, the most common one first.
const OF_WIDTH: &[(usize, &[ElementType])] = &[
    (1, &[ElementType::U8, ElementType::S8]),
    (2, &[ElementType(7), ElementType(3), ElementType(13), ElementType(10)]),
    (4, &[ElementType(8), ElementType::S32, ElementType::F32]),
    (8, &[ElementType(9), ElementType::S64, ElementType::F64, ElementType(14)]),
];

/// Returns all element types of a minor version of the C API that arrays can have.
pub(crate) fn element_types(minor: i32) -> impl Iterator<Item = ElementType> {
    const TOKEN: u32 = 23;
    let all = (1..=33).filter(|number| *number != TOKEN).map(ElementType);
    all.filter(move |element_type| element_type.since() <= minor)
}

/// Returns `true` if the plugin accepts arrays of this type.
pub(crate) fn accepts(client: &Client, element_type: ElementType) -> Result<bool> {
    static KNOWN: Mutex<Option<HashMap<ElementType, bool>>> = Mutex::new(None);
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known().get_or_insert_default().get(&element_type) {
        return Ok(*known);
    }
    let element = [1; 16];
    let array = HostArray::new(&element[..element_type.byte_size()], element_type, &[1]);
    let outcome = client.upload(&array, Some(client.device()?), None);
    // Other errors are for the check to find.
    let refused =
        outcome.is_err_and(|error| [Code::UNIMPLEMENTED, Code::INVALID_ARGUMENT].contains(&error.code));
    known().get_or_insert_default().insert(element_type, !refused);
    Ok(!refused)
}

/// Returns a type for each width that the plugin accepts, the widest first.
pub(crate) fn accepted_widths(client: &Client) -> Result<Vec<ElementType>> {
    let mut found = Vec::new();
    for (_, types) in OF_WIDTH.iter().rev() {
        for element_type in *types {
            if accepts(client, *element_type)? {
                found.push(*element_type);
                break;
            }
        }
    }
    Ok(found)
}

/// Returns the type of the smallest elements that the plugin accepts: U8, or a wider one on devices that have no bytes.
pub(crate) fn narrowest(client: &Client) -> Result<ElementType> {
    Ok(accepted_widths(client)?.last().copied().unwrap_or(ElementType::U8))
}
