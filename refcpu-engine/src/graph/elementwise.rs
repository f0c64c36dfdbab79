//! Translates elementwise nodes to regions of the kernels, for execution and constant folding.

use super::operation::Execution;
use super::{Constant, Op, Shape};
use refcpu_kernels::region::{Builder, RegionError, Val, run};
use refcpu_kernels::{DType, Dst, Pool, Src};

/// The maximum number of elements of a constant that is folded element by element.
const FOLD_LIMIT: usize = 1024;

impl Op {
    /// Returns whether a node of this operation computes each element of its result from the elements of its operands at the
    /// same index.
    pub(crate) fn is_elementwise(&self, operands: &[&Shape], result: &Shape) -> bool {
        self.operation().execution(operands, &[result]) == Execution::Elementwise
    }

    /// Adds an elementwise operation to a region.
    ///
    /// # Errors
    /// If the kernels do not support the operation for these types.
    pub(crate) fn emit(&self, b: &mut Builder, args: &[Val], result: DType) -> Result<Val, RegionError> {
        self.operation().emit(b, args, result)
    }
}

/// Evaluates an elementwise operation on constants; `None` if the result is large, or if the kernels do not support the
/// operation.
pub fn fold(op: &Op, operands: &[&Constant], result: &Shape) -> Option<Constant> {
    let splat = operands.iter().all(|c| c.splat);
    if !splat && result.len() > FOLD_LIMIT {
        return None;
    }
    if splat && operands.iter().any(|c| c.shape.is_empty()) {
        return Some(Constant::zero(result.clone()));
    }
    let dims: &[usize] = if splat { &[] } else { &result.dims };
    let mut b = Builder::new(dims);
    let args =
        operands
            .iter()
            .map(|c| {
                if c.splat {
                    b.constant_bytes(c.shape.dtype, &c.bytes)
                } else {
                    b.linear_input(c.shape.dtype)
                }
            })
            .collect::<Result<Vec<_>, _>>()
            .ok()?;
    let value = op.emit(&mut b, &args, result.dtype).ok()?;
    if value.dtype() != result.dtype {
        return None;
    }
    b.output(value).ok()?;
    let region = b.finish().ok()?;
    let aligned: Vec<Aligned> =
        operands.iter().filter(|c| !c.splat).map(|c| Aligned::copy(&c.bytes)).collect();
    let inputs = operands.iter().filter(|c| !c.splat).zip(&aligned);
    let srcs: Vec<Src<'_>> = inputs.map(|(c, a)| Src::new(a.bytes(), c.shape.dtype, dims)).collect();
    let len = dims.iter().product::<usize>() * result.dtype.size();
    let mut out = Aligned::zeros(len);
    run(&Pool::inline(), &region, &srcs, &mut [Dst::new(out.bytes_mut(), result.dtype, dims)]);
    let bytes = out.bytes().to_vec();
    Some(if splat { Constant::splat(result.clone(), bytes) } else { Constant::dense(result.clone(), bytes) })
}

/// Returns the coordinates along a dimension as a constant; `None` if the element type has no numbers.
pub fn iota(shape: &Shape, dim: usize) -> Option<Constant> {
    let mut b = Builder::new(&shape.dims);
    let value = b.iota(shape.dtype, dim).ok()?;
    b.output(value).ok()?;
    let region = b.finish().ok()?;
    let mut out = Aligned::zeros(shape.bytes());
    run(&Pool::inline(), &region, &[], &mut [Dst::new(out.bytes_mut(), shape.dtype, &shape.dims)]);
    Some(Constant::dense(shape.clone(), out.bytes().to_vec()))
}

/// Bytes that are aligned for every element type.
struct Aligned {
    words: Vec<[u8; 16]>,
    len: usize,
    skip: usize,
}

impl Aligned {
    fn zeros(len: usize) -> Self {
        let words = vec![[0u8; 16]; len / 16 + 2];
        let address = words.as_flattened().as_ptr().addr();
        Self { words, len, skip: address.next_multiple_of(16) - address }
    }

    fn copy(bytes: &[u8]) -> Self {
        let mut a = Self::zeros(bytes.len());
        a.bytes_mut().copy_from_slice(bytes);
        a
    }

    fn bytes(&self) -> &[u8] {
        &self.words.as_flattened()[self.skip..self.skip + self.len]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.words.as_flattened_mut()[self.skip..self.skip + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refcpu_kernels::tile::TileOp;

    #[test]
    fn constants_fold_with_the_kernels_arithmetic() {
        let c = |v: i64| Constant::integer(DType::S32, v).with_dims(&[3]);
        let shape = Shape::new(DType::S32, &[3]);
        let sum = fold(&Op::Tile(TileOp::Add), &[&c(2), &c(i64::from(i32::MAX))], &shape).unwrap();
        assert_eq!(sum.integers(3), Some(vec![i64::from(i32::MIN + 1); 3]));
        let dense = Constant::dense(
            shape.clone(),
            [1i32, 2, 3].iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>(),
        );
        let sum = fold(&Op::Tile(TileOp::Multiply), &[&c(2), &dense], &shape).unwrap();
        assert_eq!(sum.integers(3), Some(vec![2, 4, 6]));
    }
}
