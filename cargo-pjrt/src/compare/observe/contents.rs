//! The contents of arrays on devices.

use super::fact::array;
use super::observer::Observer;
use crate::session::log::Shape;
use pjrt_testing::host::{Buffer, CopyLayout, Layout, Result};

/// Notes the contents of an array, in row-major order.
pub(super) fn contents(observer: &Observer, what: &str, buffer: &Buffer) -> Result<()> {
    let shape =
        Shape { element_type: buffer.element_type()?.stablehlo_name().to_owned(), dims: buffer.dims()? };
    array(what, &shape, &read(buffer, shape.dims.len())?, &observer.scratch);
    Ok(())
}

/// Reads an array in row-major order. A plugin that gets no layout returns the elements in the order of the
/// array's own layout, which may be another one.
fn read(buffer: &Buffer, rank: usize) -> Result<Vec<u8>> {
    let row_major: Vec<i64> = (0..rank as i64).rev().collect();
    match buffer.memory_layout() {
        Ok(Some(order)) if order != row_major => {
            let layout = CopyLayout::Layout(Layout::MinorToMajor(row_major));
            buffer.read_into(buffer.host_size(&layout)?, &layout)
        }
        _ => buffer.read(),
    }
}
