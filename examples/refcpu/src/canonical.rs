//! The canonical form of elements of less than a byte, which kernels require.
//!
//! Hosts store such an element in the low bits of a byte, whose upper bits are unspecified. Kernels require the upper bits
//! to be the sign extension of a signed type, and zero for an unsigned type.

use refcpu_kernels::DType;

/// Returns the number of upper bits of a byte that an element does not use. Booleans use the whole byte, 0 or 1.
fn unused_bits(dtype: DType) -> u32 {
    if dtype == DType::Pred { 0 } else { 8_u32.saturating_sub(dtype.bits() as u32) }
}

fn canonical(byte: u8, unused: u32, is_signed: bool) -> u8 {
    let shifted = byte << unused;
    if is_signed { (shifted.cast_signed() >> unused).cast_unsigned() } else { shifted >> unused }
}

/// Returns whether the bytes of a host may differ from the canonical form.
pub(crate) fn may_differ(dtype: DType) -> bool {
    unused_bits(dtype) > 0
}

/// Sets the upper bits of all elements to the canonical form.
pub(crate) fn make_canonical(dtype: DType, bytes: &mut [u8]) {
    let (unused, is_signed) = (unused_bits(dtype), dtype.compute().is_signed_integer());
    if unused > 0 {
        bytes.iter_mut().for_each(|byte| *byte = canonical(*byte, unused, is_signed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(dtype: DType, mut bytes: [u8; 4]) -> [u8; 4] {
        make_canonical(dtype, &mut bytes);
        bytes
    }

    #[test]
    fn upper_bits_are_the_sign_or_zero() {
        assert_eq!(of(DType::S4, [0x97, 0x08, 0xff, 0x10]), [7, 0xf8, 0xff, 0]);
        assert_eq!(of(DType::S2, [0xfd, 0x02, 0xff, 0x04]), [1, 0xfe, 0xff, 0]);
        assert_eq!(of(DType::U4, [0x97, 0x08, 0xff, 0x10]), [7, 8, 15, 0]);
        assert_eq!(of(DType::F6E3M2FN, [0xc1, 0x3f, 0x7f, 0x40]), [1, 0x3f, 0x3f, 0]);
        assert_eq!(of(DType::S8, [0x97, 8, 0xff, 0x10]), [0x97, 8, 0xff, 0x10]);
        assert!(!may_differ(DType::Pred) && !may_differ(DType::F8E3M4) && may_differ(DType::F4E2M1FN));
    }
}
