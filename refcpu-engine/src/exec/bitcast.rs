//! `bitcast_convert` between types whose elements do not line up byte by byte.

use refcpu_kernels::{DType, Dst, Src};

/// Writes the bits of `from`, in order, to the elements of `to`: the first element is in the lowest bits.
pub(super) fn bitcast(from: Src<'_>, mut to: Dst<'_>) {
    let (source, target) = (from.dtype(), to.dtype());
    let out_size = target.size();
    let out = to.bytes_mut();
    // As many bits as the wider element has; element counts fit exactly.
    let (mut bits, mut have) = (0u128, 0usize);
    let mut at = 0;
    for element in from.bytes().chunks_exact(source.size()) {
        let mut all = [0u8; 16];
        all[..element.len()].copy_from_slice(element);
        bits |= (u128::from_le_bytes(all) & mask(source.bits())) << have;
        have += source.bits();
        while have >= target.bits() {
            let value = extended(bits & mask(target.bits()), target);
            out[at..at + out_size].copy_from_slice(&value.to_le_bytes()[..out_size]);
            at += out_size;
            bits = bits.checked_shr(target.bits() as u32).unwrap_or(0);
            have -= target.bits();
        }
    }
}

fn mask(bits: usize) -> u128 {
    if bits >= 128 { u128::MAX } else { (1 << bits) - 1 }
}

/// Sub-byte signed integers lie sign-extended in their byte.
fn extended(value: u128, dtype: DType) -> u128 {
    let bits = dtype.bits();
    let negative = bits < 8 && dtype.compute().is_signed_integer() && value >> (bits - 1) & 1 == 1;
    if negative { value | !mask(bits) } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_element_is_in_the_lowest_bits() {
        let mut out = [0u8; 2];
        bitcast(Src::new(&[0xe1], DType::S8, &[1]), Dst::new(&mut out, DType::S4, &[1, 2]));
        assert_eq!(out, [1, 0xfe]);
        let mut back = [0u8; 1];
        bitcast(Src::new(&out, DType::S4, &[1, 2]), Dst::new(&mut back, DType::U8, &[1]));
        assert_eq!(back, [0xe1]);
    }
}
