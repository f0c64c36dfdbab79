//! The processor, which carries out programs: hardware, in a real plugin.

use std::sync::Arc;

use crate::program::{Command, Kernel, Program};

/// A command of the queue: a program with the addresses of its arrays. It owns no memory of the device.
pub struct Launch {
    pub program: Arc<Program>,
    /// The address of each value of the program.
    pub addresses: Vec<usize>,
    /// The addresses of the outputs.
    pub targets: Vec<usize>,
}

impl Launch {
    /// Carries out the commands, and copies the results to the outputs.
    pub fn carry_out(&self, ram: &mut [u8]) {
        for Command { kernel, operands, result } in &self.program.commands {
            let operands: Vec<Vec<f32>> = operands.iter().map(|operand| self.read(ram, *operand)).collect();
            write(ram, self.addresses[*result], &compute(kernel, &operands));
        }
        // An output may be in the memory of an argument that is another output, so all are read first.
        let results: Vec<Vec<f32>> =
            self.program.results.iter().map(|value| self.read(ram, *value)).collect();
        for (target, result) in self.targets.iter().zip(results) {
            write(ram, *target, &result);
        }
    }

    fn read(&self, ram: &[u8], value: usize) -> Vec<f32> {
        let elements = self.program.values[value].dims.iter().product::<i64>() as usize;
        let bytes = &ram[self.addresses[value]..][..4 * elements];
        bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
    }
}

fn write(ram: &mut [u8], address: usize, elements: &[f32]) {
    for (bytes, element) in ram[address..].as_chunks_mut().0.iter_mut().zip(elements) {
        *bytes = element.to_le_bytes();
    }
}

fn compute(kernel: &Kernel, operands: &[Vec<f32>]) -> Vec<f32> {
    match kernel {
        Kernel::Constant(elements) => elements.clone(),
        Kernel::Unary(function) => operands[0].iter().map(|x| function(*x)).collect(),
        Kernel::Binary(function) => {
            operands[0].iter().zip(&operands[1]).map(|(x, y)| function(*x, *y)).collect()
        }
        Kernel::Contraction { rank, dims, strides } => contract(*rank, dims, strides, operands),
    }
}

/// Sums products of elements of the operands. The first dimensions, as many as `rank`, are those of the result.
fn contract(rank: usize, dims: &[i64], strides: &[Vec<i64>], operands: &[Vec<f32>]) -> Vec<f32> {
    let (outer, inner) = dims.split_at(rank);
    let count = |dims: &[i64]| dims.iter().product::<i64>();
    // A copy, which is the sum of one element, keeps the sign of zeros.
    let zero = if inner.is_empty() { -0.0 } else { 0.0 };
    let initial = operands.get(strides.len()).map_or(zero, |initial| initial[0]);
    let element = |number: i64| {
        let product = |position: i64| {
            let factor = |(operand, strides): (&Vec<f32>, &Vec<i64>)| {
                let (of_result, of_sum) = strides.split_at(rank);
                operand[offset(number, outer, of_result) + offset(position, inner, of_sum)]
            };
            operands.iter().zip(strides).map(factor).product::<f32>()
        };
        (0..count(inner)).map(product).fold(initial, |sum, product| sum + product)
    };
    (0..count(outer)).map(element).collect()
}

/// Returns the offset of the element with a number, counted in row-major order.
fn offset(mut number: i64, dims: &[i64], strides: &[i64]) -> usize {
    let mut offset = 0;
    for (dim, stride) in dims.iter().zip(strides).rev() {
        offset += number % dim * stride;
        number /= dim;
    }
    offset as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_keep_the_sign_of_zeros_and_sums_begin_with_a_positive_zero() {
        let copied = contract(1, &[2], &[vec![1]], &[vec![-0.0, 1.0]]);
        assert_eq!(copied.iter().map(|x| x.to_bits()).collect::<Vec<_>>(), [1 << 31, 1.0_f32.to_bits()]);
        let sum = contract(0, &[2], &[vec![1]], &[vec![-0.0, -0.0]]);
        assert_eq!(sum[0].to_bits(), 0);
    }
}
