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
        Some([real]) => return real_text(name, *real),
        Some([real, imaginary]) => {
            return format!("({}, {})", real_text(name, *real), real_text(name, *imaginary));
        }
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

/// Formats a number. Very small and very large numbers are printed with an exponent, because their other form
/// has hundreds of digits.
fn real_text(name: &str, real: f64) -> String {
    let is_plain = real == 0.0 || !real.is_finite() || (1e-6..1e16).contains(&real.abs());
    // An f32 is printed as f32, which has fewer digits than f64.
    match (name.contains("f64"), is_plain) {
        (true, true) => real.to_string(),
        (true, false) => format!("{real:e}"),
        (false, true) => (real as f32).to_string(),
        (false, false) => format!("{:e}", real as f32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pjrt_testing::host::ElementType;

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
        assert_eq!(element_text("f64", &1_u64.to_le_bytes()), "5e-324");
        assert_eq!(element_text("complex<f32>", &[0, 0, 128, 63, 1, 0, 0, 0]), "(1, 1e-45)");
    }
}
