//! LAPACK's routines by the names that JAX's CPU backend has for them: `jax.ffi` calls them, and programs that were exported
//! for that backend do.

use super::{CompileError, Result, Scope};
use crate::graph::{Constant, Op as Core, Shape, ValueId};
use pjrt_stablehlo::ir::{Layouts, ops};
use refcpu_kernels::DType;
use refcpu_kernels::linalg::LinalgOp;
use refcpu_kernels::tile::TileOp;

/// The routine that a target is for, without the letter of its element type.
fn routine(target: &str) -> Option<&str> {
    let name = target.strip_prefix("lapack_")?.strip_suffix("_ffi")?;
    name.strip_prefix(['s', 'd', 'c', 'z'])
}

impl Scope<'_> {
    /// A call of a routine that refcpu has; None for others.
    ///
    /// # Errors
    /// If operands and results are not the routine's.
    pub(super) fn lapack(
        &mut self,
        call: &ops::CustomCall,
        operands: &[ValueId],
        shapes: &[Shape],
    ) -> Result<Option<Vec<ValueId>>> {
        let op = match (routine(&call.call_target_name), operands.len(), shapes.len()) {
            (Some("geqrf"), 1, 2) => Core::QrFactor,
            (Some("orgqr" | "ungqr"), 2, 1) => Core::QrProduct,
            (Some("getrf"), 1, 3) => Core::Linalg(LinalgOp::Lu),
            _ => return Ok(None),
        };
        let layout = |layouts: &Option<Layouts>, i: usize| {
            layouts.as_ref().and_then(|layouts| layouts.get(i)).map(|layout| layout.to_vec())
        };
        let matrix = self.by_columns(operands[0], layout(&call.operand_layouts, 0))?;
        let whole = self.shape(matrix);
        let Some(batch) = whole.rank().checked_sub(2) else {
            return Err(CompileError::invalid(format!("a matrix is expected, not {whole}")));
        };
        let least = whole.dims[batch].min(whole.dims[batch + 1]);
        let of_least = [&whole.dims[..batch], &[least]].concat();
        let of_rows = [&whole.dims[..batch], &[whole.dims[batch]]].concat();
        let expected = match op {
            Core::QrFactor => vec![whole.clone(), whole.with_dims(&of_least)],
            Core::QrProduct => vec![whole.clone()],
            _ => vec![
                whole.clone(),
                Shape::new(DType::S32, &of_least),
                Shape::new(DType::S32, &whole.dims[..batch]),
            ],
        };
        if expected != shapes || op == Core::QrProduct && self.shape(operands[1]).rank() != batch + 1 {
            return Err(CompileError::invalid(format!("the results are to be {expected:?}")));
        }
        let mut results = match op {
            Core::Linalg(_) => {
                let shapes = vec![whole, expected[1].clone(), Shape::new(DType::S32, &of_rows)];
                let factors = self.b.node(op, vec![matrix], shapes);
                // LAPACK counts rows from 1, and says with a number that nothing was wrong.
                let one = self.b.constant(Constant::splat(expected[1].clone(), 1i32.to_le_bytes().to_vec()));
                let swaps = self.b.tile(TileOp::Add, &[factors[1], one]);
                vec![factors[0], swaps, self.b.constant(Constant::zero(expected[2].clone()))]
            }
            op => {
                let rest = operands[1..].iter().copied();
                self.b.node(op, [matrix].into_iter().chain(rest).collect(), expected)
            }
        };
        results[0] = self.laid_out(results[0], layout(&call.result_layouts, 0))?;
        Ok(Some(results))
    }

    /// The matrices that a routine sees which reads columns: those of the program if they lie so, otherwise what the
    /// elements amount to in the order in which they lie.
    fn by_columns(&mut self, value: ValueId, layout: Option<Vec<i64>>) -> Result<ValueId> {
        let dims = self.shape(value).dims.to_vec();
        if dims.len() < 2 || lies_by_columns(dims.len(), layout)? {
            return Ok(value);
        }
        let turned = swapped(&dims);
        let value = self.b.reshape(value, &turned);
        Ok(self.b.transpose(value, &last_two_swapped(dims.len())))
    }

    /// The opposite for a result.
    fn laid_out(&mut self, value: ValueId, layout: Option<Vec<i64>>) -> Result<ValueId> {
        let dims = self.shape(value).dims.to_vec();
        if lies_by_columns(dims.len(), layout)? {
            return Ok(value);
        }
        let value = self.b.transpose(value, &last_two_swapped(dims.len()));
        Ok(self.b.reshape(value, &dims))
    }
}

fn swapped(dims: &[usize]) -> Vec<usize> {
    last_two_swapped(dims.len()).into_iter().map(|d| dims[d]).collect()
}

fn last_two_swapped(rank: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rank).collect();
    order.swap(rank - 2, rank - 1);
    order
}

/// True if columns of the matrices are contiguous, false if rows are, which is the default.
fn lies_by_columns(rank: usize, layout: Option<Vec<i64>>) -> Result<bool> {
    let Some(minor_to_major) = layout else { return Ok(false) };
    let of_rows: Vec<i64> = (0..rank as i64).rev().collect();
    let mut of_columns = of_rows.clone();
    of_columns.swap(0, 1);
    match minor_to_major {
        layout if layout == of_columns => Ok(true),
        layout if layout == of_rows => Ok(false),
        layout => Err(CompileError::unimplemented(format!("the layout {layout:?} of matrices"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_letter_of_the_element_type_is_not_part_of_the_routine() {
        assert_eq!(routine("lapack_sgeqrf_ffi"), Some("geqrf"));
        assert_eq!(routine("lapack_zungqr_ffi"), Some("ungqr"));
        assert_eq!(routine("lapack_geqrf"), None);
        assert_eq!(routine("cusolver_geqrf_ffi"), None);
    }

    #[test]
    fn rows_are_contiguous_unless_the_layout_says_otherwise() {
        assert!(!lies_by_columns(3, None).unwrap());
        assert!(!lies_by_columns(3, Some(vec![2, 1, 0])).unwrap());
        assert!(lies_by_columns(3, Some(vec![1, 2, 0])).unwrap());
        assert!(lies_by_columns(3, Some(vec![0, 1, 2])).is_err());
    }
}
