//! Formats arrays and their elements for printing.

use std::fmt::Write as _;

use super::{Array, number};

/// Formats an array for printing: its type and its first elements.
pub(crate) fn array_text(array: &Array) -> String {
    const SHOWN: usize = 16;
    let dims: String = array.dims.iter().map(|dim| format!("{dim}x")).collect();
    let name = array.element_type.stablehlo_name();
    let mut text = format!("tensor<{dims}{name}> [");
    let size = array.element_type.byte_size().max(1);
    for (index, element) in array.bytes.chunks_exact(size).take(SHOWN).enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        // Writing to a string does not fail.
        let _ = write!(text, "{comma}{}", element_text(name, element));
    }
    let more = if array.bytes.len() / size > SHOWN { ", ..." } else { "" };
    text + more + "]"
}

/// Formats an element as a number, or as its bits if this crate does not compute with its type.
pub(crate) fn element_text(name: &str, bytes: &[u8]) -> String {
    match number::reals(name, bytes).as_deref() {
        // An f32 is printed as f32, which has fewer digits than f64.
        Some([real]) if name != "f64" => return number_text(*real as f32),
        Some([real]) => return number_text(*real),
        Some([real, imaginary]) if name == "complex<f32>" => {
            return format!("({}, {})", number_text(*real as f32), number_text(*imaginary as f32));
        }
        Some([real, imaginary]) => return format!("({}, {})", number_text(*real), number_text(*imaginary)),
        _ => {}
    }
    let mut wide = [0_u8; 8];
    let len = bytes.len().min(8);
    wide[..len].copy_from_slice(&bytes[..len]);
    let unsigned = u64::from_le_bytes(wide);
    let shift = 64 - 8 * len.max(1);
    match name {
        "i1" => (unsigned != 0).to_string(),
        _ if name.starts_with("ui") => unsigned.to_string(),
        _ if name.starts_with('i') => ((unsigned << shift) as i64 >> shift).to_string(),
        _ => format!("{unsigned:#x}"),
    }
}

/// Formats a number with an exponent if it would otherwise have many zeros.
fn number_text<F: Copy + Into<f64> + std::fmt::Display + std::fmt::LowerExp>(number: F) -> String {
    let size = number.into().abs();
    if size.is_finite() && size != 0.0 && !(1e-5..1e16).contains(&size) {
        format!("{number:e}")
    } else {
        number.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::ElementType;

    #[test]
    fn elements_are_shown_as_numbers() {
        let array = Array {
            element_type: ElementType::S32,
            dims: vec![2],
            bytes: [1_i32, -2].map(i32::to_le_bytes).concat(),
        };
        assert_eq!(array_text(&array), "tensor<2xi32> [1, -2]");
        assert_eq!(element_text("f32", &f32::from_bits(1).to_le_bytes()), "1e-45");
        assert_eq!(element_text("f64", &(-1e300_f64).to_le_bytes()), "-1e300");
        assert_eq!(element_text("f64", &f64::NEG_INFINITY.to_le_bytes()), "-inf");
        let truth = Array { element_type: ElementType::PRED, dims: vec![], bytes: vec![1] };
        assert_eq!(array_text(&truth), "tensor<i1> [true]");
    }
}
