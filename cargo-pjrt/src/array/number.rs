//! Conversions between array elements and numbers.

use half::{bf16, f16};

/// Returns the real number that the bytes represent, or both parts of a complex number. Returns `None` for
/// integers and for types that this crate does not compute with.
pub(crate) fn reals(type_name: &str, element: &[u8]) -> Option<Vec<f64>> {
    let f32s = || element.as_chunks().0.iter().map(|bytes| f64::from(f32::from_le_bytes(*bytes))).collect();
    let f64s = || element.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
    Some(match type_name {
        "f16" => vec![f16::from_le_bytes(*element.first_chunk()?).to_f64()],
        "bf16" => vec![bf16::from_le_bytes(*element.first_chunk()?).to_f64()],
        "f32" | "complex<f32>" => f32s(),
        "f64" | "complex<f64>" => f64s(),
        _ => return None,
    })
}

/// Overwrites a real element, or one part of a complex element, with a value. `part` has the size of the real
/// number. Returns `false` if this crate does not compute with the type.
pub(crate) fn set_real(type_name: &str, part: &mut [u8], value: f64) -> bool {
    match type_name {
        "f16" => part.copy_from_slice(&f16::from_f64(value).to_le_bytes()),
        "bf16" => part.copy_from_slice(&bf16::from_f64(value).to_le_bytes()),
        "f32" | "complex<f32>" => part.copy_from_slice(&(value as f32).to_le_bytes()),
        "f64" | "complex<f64>" => part.copy_from_slice(&value.to_le_bytes()),
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_were_written() {
        for (name, size) in [("f16", 2), ("bf16", 2), ("f32", 4), ("f64", 8)] {
            let mut bytes = vec![0; size];
            assert!(set_real(name, &mut bytes, -1.5));
            assert_eq!(reals(name, &bytes), Some(vec![-1.5]), "{name}");
        }
        assert_eq!(reals("complex<f32>", &[0, 0, 128, 63, 0, 0, 0, 64]), Some(vec![1.0, 2.0]));
        assert_eq!(reals("i32", &[0; 4]), None);
    }
}
