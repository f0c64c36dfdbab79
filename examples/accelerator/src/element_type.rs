//! The element types that the device supports, and the representation of elements in registers.
//!
//! A register holds one element of any type in its low bits. The remaining bits are zero.

use pjrt_stablehlo::ir::{ElementKind, ElementType};

/// Returns `true` if the device computes with a type.
pub(crate) fn is_supported(ty: ElementType) -> bool {
    match ty.kind() {
        ElementKind::Boolean => true,
        ElementKind::Float => ty == ElementType::F32,
        ElementKind::SignedInteger | ElementKind::UnsignedInteger => [8, 16, 32, 64].contains(&ty.bits()),
        _ => false,
    }
}

/// Loads dense elements of this size into registers.
pub(crate) fn load(dense: &[u8], element_size: usize) -> Vec<u64> {
    let element = |bytes: &[u8]| {
        let mut register = [0; 8];
        register[..element_size].copy_from_slice(bytes);
        u64::from_le_bytes(register)
    };
    dense.chunks_exact(element_size).map(element).collect()
}

/// Stores registers as dense elements of this size.
pub(crate) fn store(registers: &[u64], element_size: usize) -> Vec<u8> {
    let mut dense = Vec::with_capacity(registers.len() * element_size);
    for register in registers {
        dense.extend_from_slice(&register.to_le_bytes()[..element_size]);
    }
    dense
}

/// Returns the value of a register of an integer or boolean type.
pub(crate) fn integer(ty: ElementType, register: u64) -> i128 {
    if ty.kind() == ElementKind::SignedInteger {
        let unused = 64 - ty.bits();
        i128::from((register << unused) as i64 >> unused)
    } else {
        i128::from(register)
    }
}

/// Returns the register of an integer or boolean type for a value, which is truncated to the bits of the
/// type.
pub(crate) fn from_integer(ty: ElementType, value: i128) -> u64 {
    let unused = 64 - ty.bits();
    (value as u64) << unused >> unused
}

/// Returns the smallest and the largest integer of a type.
pub(crate) fn limits(ty: ElementType) -> (i128, i128) {
    if ty.kind() == ElementKind::SignedInteger {
        let half = 1 << (ty.bits() - 1);
        (-half, half - 1)
    } else {
        (0, (1 << ty.bits()) - 1)
    }
}

/// Returns the value of a register of type f32.
pub(crate) fn float(register: u64) -> f32 {
    f32::from_bits(register as u32)
}

/// Returns the register of type f32 for a value.
pub(crate) fn from_float(value: f32) -> u64 {
    u64::from(value.to_bits())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_keep_elements_of_every_size() {
        for size in [1, 2, 4, 8] {
            let dense: Vec<u8> = (0..24).collect();
            let registers = load(&dense, size);
            assert_eq!((registers.len(), store(&registers, size)), (24 / size, dense));
        }
    }

    #[test]
    fn integers_have_their_sign_and_wrap() {
        use ElementType as T;
        assert_eq!(integer(T::I8, 0xff), -1);
        assert_eq!(integer(T::Ui8, 0xff), 255);
        assert_eq!(from_integer(T::I8, 128), 0x80);
        assert_eq!(from_integer(T::Ui64, -1), u64::MAX);
        assert_eq!(limits(T::I8), (-128, 127));
        assert_eq!(limits(T::Ui64), (0, i128::from(u64::MAX)));
        assert_eq!(limits(T::I1), (0, 1));
    }
}
