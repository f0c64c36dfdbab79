//! `bitcast_convert`.

use crate::graph::Shape;
use crate::graph::operation::{Check, Cost, Device, Execution, Operation, counts, need};
use refcpu_kernels::region::{Builder, RegionError, Val};
use refcpu_kernels::{DType, Dst, Src};

/// Reinterprets bits as another type. If the widths differ, the minor dimension grows or shrinks accordingly.
#[derive(Debug)]
pub struct Bitcast;

impl Operation for Bitcast {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 1, 1)?;
        if self.execution(x, y) == Execution::Elementwise {
            return need(x[0].dims == y[0].dims, "the dimensions of the operand and the result differ");
        }
        let bits = |s: &Shape| s.len().checked_mul(s.dtype.bits());
        need(bits(x[0]) == bits(y[0]), "the operand and the result have different numbers of bits")
    }

    fn cost(&self, _x: &[&Shape], _y: &[&Shape]) -> Option<Cost> {
        Some(Cost::default())
    }

    fn execution(&self, x: &[&Shape], y: &[&Shape]) -> Execution {
        if x[0].dtype.bits() == y[0].dtype.bits() { Execution::Elementwise } else { Execution::Kernel }
    }

    fn emit(&self, b: &mut Builder, args: &[Val], result: DType) -> Result<Val, RegionError> {
        b.bitcast(args[0], result)
    }

    fn run(&self, _device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
        bitcast(r[0], w[0].reborrow());
    }
}

/// Writes the bits of `from` in order to the elements of `to`. The first element is in the lowest bits.
fn bitcast(from: Src<'_>, mut to: Dst<'_>) {
    let (source, target) = (from.dtype(), to.dtype());
    let out_size = target.size();
    let out = to.bytes_mut();
    // Holds as many bits as the wider element has. The numbers of bits of both arrays are equal.
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

/// Sign-extends a signed integer of less than a byte, as its byte is stored.
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
