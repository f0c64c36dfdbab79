//! Checks of bitcasts between element types.

use super::entry::{Entry, check};
use super::samples::{Shaped, element_types, uploaded};
use super::shapes::PROPERTIES;
use crate::conform::harness::{Context, Finding, Verdict, equal};
use pjrt_testing::host::{Client, Code, CopyLayout, Device, ElementType, Layout};

pub(super) const CHECKS: &[Entry] = &[
    check(
        "shapes/bitcasts_to_other_types",
        "PJRT_Buffer_Bitcast to each type of the same and of another width has this type, these dimensions, this layout and the same bytes.",
        other_bitcasts,
        "PJRT_Buffer_Bitcast when element_type=7 give element_type=3",
    )
    .header("PJRT_Buffer_Bitcast", "Bitcasts the buffer to a new type, dimensions, and layout.")
    .since(98),
];

/// Checks the bitcast of an array to a type with these dimensions.
fn is_bitcast(client: &Client, from: &Shaped, to: ElementType, dims: &[i64], device: Device<'_>) -> Verdict {
    let what = format!("a bitcast of {from}");
    let same_width = to.byte_size() == from.element_type.byte_size();
    // A plugin may donate the source.
    let Some(source) = uploaded(client, device, from)? else { return Ok(()) };
    let cast = match source.bitcast(to, dims) {
        // The header names no widths that a plugin has to support.
        Err(error)
            if error.code == Code::UNIMPLEMENTED || !same_width && error.code == Code::INVALID_ARGUMENT =>
        {
            return Ok(());
        }
        cast => cast.map_err(|error| Finding::Wrong(format!("{what} to {to}{dims:?} fails: {error}")))?,
    };
    let expected = Shaped { element_type: to, dims: dims.to_vec(), bytes: from.bytes.clone() };
    for property in PROPERTIES {
        property.check(&what, &cast, &expected, device)?;
    }
    expected.check_array(&format!("{what} to another type"), &cast)?;
    if let (Ok(Some(order)), true) = (cast.memory_layout(), dims.len() > 1) {
        let dense: Vec<i64> = (0..dims.len() as i64).rev().collect();
        equal(&format!("the layout of {what} to {to}{dims:?} without a layout"), order, dense)?;
    }
    Ok(())
}

fn other_bitcasts(context: &Context) -> Verdict {
    let client = context.client()?;
    let device = client.device()?;
    // These divide into elements of each width.
    let sources: [(ElementType, &[i64]); 4] = [
        (ElementType::F32, &[12]),
        (ElementType::U8, &[48]),
        (ElementType(15), &[3]),
        (ElementType::F64, &[]),
    ];
    for (element_type, dims) in sources {
        let from = Shaped::new(element_type, dims, 1);
        let Some(source) = uploaded(&client, device, &from)? else { continue };
        // This tells whether the function exists.
        drop(source.bitcast(element_type, dims)?);
        for to in element_types(context).filter(|to| to.fills_bytes() && *to != ElementType::PRED) {
            let count = from.bytes.len() / to.byte_size();
            if count * to.byte_size() != from.bytes.len()
                || uploaded(&client, device, &Shaped::new(to, &[1], 0))?.is_none()
            {
                continue;
            }
            let count = count as i64;
            let mut shapes = vec![vec![count], vec![1, count], vec![count, 1, 1]];
            shapes.extend((count == 1).then(Vec::new));
            shapes.extend((count % 3 == 0).then(|| vec![3, count / 3]));
            for dims in shapes {
                is_bitcast(&client, &from, to, &dims, device)?;
            }
        }
    }
    with_a_layout(&client, device)
}

/// Checks a bitcast to a column-major layout, if the plugin accepts one.
fn with_a_layout(client: &Client, device: Device<'_>) -> Verdict {
    let from = Shaped::new(ElementType::F32, &[6], 1);
    for order in [vec![1, 0], vec![0, 1]] {
        let Some(source) = uploaded(client, device, &from)? else { return Ok(()) };
        let layout = Layout::MinorToMajor(order.clone());
        let Ok(cast) = source.bitcast_to(ElementType::F32, &[2, 3], Some(&layout)) else { continue };
        let at = |index: usize| if order == [1, 0] { index } else { index % 3 * 2 + index / 3 };
        let bytes = (0..6).flat_map(|index| from.bytes[4 * at(index)..4 * at(index) + 4].to_vec()).collect();
        let expected = Shaped { bytes, ..Shaped::new(ElementType::F32, &[2, 3], 0) };
        // Without a layout, the host would receive the elements in the order of the device.
        let read = cast.read_into(expected.bytes.len(), &CopyLayout::Layout(Layout::dense(2)))?;
        expected.check(&format!("a bitcast with the layout {order:?}"), &read)?;
        if let Ok(Some(got)) = cast.memory_layout() {
            equal("the layout of a bitcast with a layout", got, order)?;
        }
    }
    Ok(())
}
