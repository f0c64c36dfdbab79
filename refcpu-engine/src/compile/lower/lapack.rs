//! Lowers calls of LAPACK routines by the names of JAX's CPU backend. `jax.ffi` uses these names, and so do programs that were
//! exported for that backend.
//!
//! The routines read matrices in column-major order, and return what those of LAPACK do. The exception is a matrix that cannot
//! be factored: all of its results are NaN, and its `info` is 1.
//! a matrix are NaN, and what a routine says about it (`info`) is 1.

use super::linalg::Attributes;
use super::{CompileError, Result, Scope};
use crate::graph::{Constant, Definition, Op as Core, Reducer, Shape, ValueId, ops as core_ops, verify_node};
use pjrt_stablehlo::ir::{DictionaryAttribute, Layouts, ops};
use refcpu_kernels::DType;
use refcpu_kernels::linalg::{LinalgOp, SvdVectors, TransposeA, TriangularSolve};
use refcpu_kernels::reduce::ReduceOp;
use refcpu_kernels::region::Direction;
use refcpu_kernels::tile::TileOp;

/// Returns the element type and the routine of a target.
fn routine(target: &str) -> Option<(DType, &str)> {
    let name = target.strip_prefix("lapack_")?.strip_suffix("_ffi")?;
    let (letter, routine) = name.split_at_checked(1)?;
    let dtype = match letter {
        "s" => DType::F32,
        "d" => DType::F64,
        "c" => DType::C64,
        "z" => DType::C128,
        _ => return None,
    };
    Some((dtype, routine))
}

impl Scope<'_> {
    /// Lowers a call of a routine; returns `None` for other targets.
    ///
    /// # Errors
    /// If the operands, attributes or results do not fit the routine.
    pub(super) fn lapack(
        &mut self,
        call: &ops::CustomCall,
        entries: Option<&DictionaryAttribute>,
        operands: &[ValueId],
        shapes: &[Shape],
    ) -> Result<Option<Vec<ValueId>>> {
        let target = &*call.call_target_name;
        let Some((dtype, routine)) = routine(target) else { return Ok(None) };
        let rank = operands.iter().map(|v| self.shape(*v).rank()).max().unwrap_or(0);
        let is_other = |v: &&ValueId| self.b.shape(**v).rank() == rank && self.b.shape(**v).dtype != dtype;
        if rank < 2 || operands.iter().any(|v| is_other(&v)) {
            return Err(CompileError::invalid(format!(
                "the operands of {target} must be matrices of {}",
                dtype.mlir_name()
            )));
        }
        let layout = |layouts: &Option<Layouts>, i: usize| {
            layouts.as_ref().and_then(|layouts| layouts.get(i)).map(|layout| layout.to_vec())
        };
        let mut seen = Vec::with_capacity(operands.len());
        for (i, operand) in operands.iter().enumerate() {
            let is_matrix = self.shape(*operand).rank() == rank;
            let layout = layout(&call.operand_layouts, i);
            seen.push(if is_matrix { self.by_columns(*operand, layout)? } else { *operand });
        }
        let mut attributes = Attributes::new(target, entries);
        let Some(mut results) = self.routine(routine, &mut attributes, &seen, shapes)? else {
            return Ok(None);
        };
        attributes.check_all_read()?;
        for (i, result) in results.iter_mut().enumerate() {
            if self.shape(*result).rank() == rank {
                *result = self.laid_out(*result, layout(&call.result_layouts, i))?;
            }
        }
        let found: Vec<Shape> = results.iter().map(|v| self.shape(*v)).collect();
        if found != shapes {
            return Err(CompileError::invalid(format!(
                "the results must have the types {found:?}, but the program declares {shapes:?}"
            )));
        }
        Ok(Some(results))
    }

    /// Adds the operations of a routine, whose name does not include the letter of its element type, and returns their results;
    /// `None` if refcpu does not implement it. `shapes` are the types that the program declares.
    fn routine(
        &mut self,
        name: &str,
        attributes: &mut Attributes<'_>,
        operands: &[ValueId],
        shapes: &[Shape],
    ) -> Result<Option<Vec<ValueId>>> {
        let (first, last) = (self.shape(operands[0]), self.shape(operands[operands.len() - 1]));
        let whole = if first.rank() < last.rank() { &last } else { &first };
        let (batch, tail) = whole.dims.split_at(whole.rank() - 2);
        let is_real = whole.dtype.is_float();
        let with = |tail: &[usize]| whole.with_dims(&[batch, tail].concat());
        let nothing_wrong = Constant::zero(Shape::new(DType::S32, batch));
        Ok(Some(match (name, operands) {
            ("potrf", [a]) => {
                let lower = attributes.letter("uplo", b"LU")? == b'L';
                let factor = self.checked(
                    Core::Cholesky(core_ops::Cholesky { lower }),
                    vec![*a],
                    vec![whole.clone()],
                )?[0];
                // The other triangle is that of the operand.
                let index = whole.with_dtype(DType::S32);
                let (row, column) = (
                    self.b.iota(index.clone(), whole.rank() - 2),
                    self.b.iota(index.clone(), whole.rank() - 1),
                );
                let inside = if lower { Direction::Ge } else { Direction::Le };
                let inside = self.b.compare(inside, row, column);
                vec![self.b.select(inside, factor, *a), self.info(factor, batch)]
            }
            ("geqrf", [a]) => {
                let least = tail[0].min(tail[1]);
                self.checked(Core::QrFactor, vec![*a], vec![whole.clone(), with(&[least])])?
            }
            ("orgqr" | "ungqr", [a, scales]) => {
                self.checked(Core::QrProduct, vec![*a, *scales], vec![whole.clone()])?
            }
            ("ormqr" | "unmqr", [a, scales, c]) => {
                let (left, transpose) = (attributes.flag("left")?, attributes.flag("transpose")?);
                self.linalg_results(LinalgOp::Ormqr { left, transpose }, vec![*a, *scales, *c])?
            }
            ("geqp3", [a, columns]) => self.linalg_results(LinalgOp::Geqp3, vec![*a, *columns])?,
            ("getrf", [a]) => {
                let factors = self.linalg_results(LinalgOp::Lu, vec![*a])?;
                // LAPACK numbers rows from 1.
                let swaps = self.shape(factors[1]);
                let one = self.b.number(swaps, 1.0);
                let swaps = self.b.tile(TileOp::Add, &[factors[1], one]);
                vec![factors[0], swaps, self.first_zero(factors[0], batch)]
            }
            ("trsm", [a, b]) => {
                let spec = TriangularSolve {
                    left_side: attributes.letter("side", b"LR")? == b'L',
                    lower: attributes.letter("uplo", b"LU")? == b'L',
                    unit_diagonal: attributes.letter("diag", b"NU")? == b'U',
                    transpose_a: match attributes.letter("trans_x", b"NTC")? {
                        b'N' => TransposeA::NoTranspose,
                        b'T' => TransposeA::Transpose,
                        _ => TransposeA::Adjoint,
                    },
                };
                self.checked(Core::TriangularSolve(spec), vec![*a, *b], vec![last])?
            }
            ("geev", [a]) => {
                let left = attributes.letter("compute_left", b"NV")? == b'V';
                let right = attributes.letter("compute_right", b"NV")? == b'V';
                let found = self.linalg_results(LinalgOp::Eig { left, right }, vec![*a])?;
                let mut vectors = found[1..].iter().copied();
                let mut results = if is_real { self.parts(found[0], whole.dtype) } else { vec![found[0]] };
                let unasked = whole.with_dtype(self.shape(found[0]).dtype);
                for asked in [left, right] {
                    let found = if asked { vectors.next() } else { None };
                    results.push(found.unwrap_or_else(|| self.b.constant(Constant::zero(unasked.clone()))));
                }
                results.push(self.info(found[0], batch));
                results
            }
            ("syevd" | "heevd", [a]) => {
                let lower = attributes.letter("uplo", b"LU")? == b'L';
                // LAPACK's values are unspecified if the call does not request the vectors.
                attributes.letter("mode", b"NV")?;
                let found = self.linalg_results(LinalgOp::Eigh { lower }, vec![*a])?;
                vec![found[0], found[1], self.info(found[1], batch)]
            }
            ("gehrd", [a]) => {
                let (low, high) = (attributes.size("low")?, attributes.size("high")?);
                if (low, high) != (1, tail[1]) {
                    return Err(CompileError::unimplemented(format!(
                        "gehrd of the rows {low} to {high} of matrices of {} rows is not supported; it must cover all rows",
                        tail[1]
                    )));
                }
                let mut results = self.linalg_results(LinalgOp::Hessenberg, vec![*a])?;
                results.push(self.b.constant(nothing_wrong));
                results
            }
            ("gees", [a]) => {
                let vectors = attributes.letter("mode", b"NV")? == b'V';
                if attributes.letter("sort", b"NS")? == b'S' {
                    return Err(CompileError::unimplemented(
                        "a Schur form with sorted eigenvalues is not supported",
                    ));
                }
                let mut results = self.linalg_results(LinalgOp::Schur { vectors }, vec![*a])?;
                let form = results[0];
                if !vectors {
                    results.push(self.b.constant(Constant::zero(whole.clone())));
                }
                results.extend(self.eigenvalues(form));
                let info = self.info(form, batch);
                results.extend([self.b.constant(nothing_wrong), info]);
                results
            }
            ("gesdd" | "gesvd", [a]) => {
                let vectors = match attributes.letter("mode", b"ASN")? {
                    b'A' => SvdVectors::Full,
                    b'S' => SvdVectors::Thin,
                    _ => SvdVectors::Nothing,
                };
                let found = self.linalg_results(LinalgOp::Svd(vectors), vec![*a])?;
                let mut results = vec![*a];
                results.extend(&found);
                for unasked in shapes.iter().take(4).skip(results.len()) {
                    results.push(self.b.constant(Constant::zero(unasked.clone())));
                }
                results.push(self.info(found[0], batch));
                results
            }
            ("sytrd" | "hetrd", [a]) => {
                let lower = attributes.letter("uplo", b"LU")? == b'L';
                let mut results = self.linalg_results(LinalgOp::Tridiagonal { lower }, vec![*a])?;
                results.push(self.b.constant(nothing_wrong));
                results
            }
            ("gtsv", [below, main, above, _]) => {
                let solve = LinalgOp::TridiagonalSolve { perturb_singular: false };
                let x = self.linalg_results(solve, operands.to_vec())?[0];
                // LAPACK's values of the diagonals are unspecified.
                vec![*below, *main, *above, x, self.info(x, batch)]
            }
            (
                "potrf" | "geqrf" | "orgqr" | "ungqr" | "ormqr" | "unmqr" | "geqp3" | "getrf" | "trsm"
                | "geev" | "syevd" | "heevd" | "gehrd" | "gees" | "gesdd" | "gesvd" | "sytrd" | "hetrd"
                | "gtsv",
                _,
            ) => {
                return Err(CompileError::invalid(format!(
                    "{name} does not take {} operands",
                    operands.len()
                )));
            }
            _ => return Ok(None),
        }))
    }

    /// Adds an operation, and checks that its operands and results fit.
    fn checked(&mut self, op: Core, operands: Vec<ValueId>, shapes: Vec<Shape>) -> Result<Vec<ValueId>> {
        let results = self.b.node(op, operands, shapes);
        let graph = self.b.graph();
        let Definition::Result { node, .. } = graph.definition(results[0]) else {
            return Err(CompileError::internal("the definition of a node's result is a parameter"));
        };
        verify_node(graph, &graph.nodes()[node as usize]).map_err(CompileError::invalid)?;
        Ok(results)
    }

    /// Returns the `info` of each matrix of a batch: 1 if its result is NaN, otherwise 0.
    fn info(&mut self, found: ValueId, batch: &[usize]) -> ValueId {
        let shape = self.shape(found);
        if shape.is_empty() {
            return self.b.constant(Constant::zero(Shape::new(DType::S32, batch)));
        }
        let mut corner = vec![1; shape.rank()];
        corner[..batch.len()].copy_from_slice(batch);
        let one = self.b.slice(found, &vec![0; shape.rank()], &corner);
        let one = self.b.reshape(one, batch);
        let one = match shape.dtype {
            DType::C64 | DType::C128 => self.parts(one, real_of(shape.dtype))[0],
            _ => one,
        };
        let wrong = self.b.compare(Direction::Ne, one, one);
        self.b.convert(wrong, DType::S32)
    }

    /// Returns the index, from 1, of the first zero on the diagonal of each matrix; 0 if there is none.
    fn first_zero(&mut self, matrices: ValueId, batch: &[usize]) -> ValueId {
        let shape = self.shape(matrices);
        let least = shape.dims[batch.len()].min(shape.dims[batch.len() + 1]);
        let diagonal = self.diagonal(matrices, 0, least);
        let zero = self.b.constant(Constant::zero(self.shape(diagonal)));
        let is_zero = self.b.compare(Direction::Eq, diagonal, zero);
        let index = Shape::new(DType::S32, &[batch, &[least]].concat());
        let one = self.b.number(index.clone(), 1.0);
        let position = self.b.iota(index.clone(), batch.len());
        let position = self.b.tile(TileOp::Add, &[position, one]);
        let none = self.b.number(index, f64::from(i32::MAX));
        let position = self.b.select(is_zero, position, none);
        let most = self.b.number(Shape::scalar(DType::S32), f64::from(i32::MAX));
        let first = Core::Reduce(core_ops::Reduce {
            dims: vec![batch.len()],
            reducer: Reducer::Op(ReduceOp::Minimum),
        });
        let of_matrix = Shape::new(DType::S32, batch);
        let first = self.b.add(first, &[position, most], of_matrix.clone());
        let most = self.b.number(of_matrix.clone(), f64::from(i32::MAX));
        let is_there = self.b.compare(Direction::Ne, first, most);
        let zero = self.b.constant(Constant::zero(of_matrix));
        self.b.select(is_there, first, zero)
    }

    /// Slices `count` elements of each matrix along a diagonal. The first is at index `start` in row-major order, and each of
    /// the others is one row and one column after the previous one.
    fn diagonal(&mut self, matrices: ValueId, start: usize, count: usize) -> ValueId {
        let shape = self.shape(matrices);
        let (batch, tail) = shape.dims.split_at(shape.rank() - 2);
        let flat = self.b.reshape(matrices, &[batch, &[tail[0] * tail[1]]].concat());
        let result = shape.with_dims(&[batch, &[count]].concat());
        if count == 0 {
            return self.b.constant(Constant::zero(result));
        }
        let (mut from, mut step) = (vec![0; batch.len()], vec![1; batch.len()]);
        from.push(start);
        step.push(tail[1] + 1);
        self.b.add(Core::Slice(core_ops::Slice { start: from, stride: step }), &[flat], result)
    }

    /// Returns the eigenvalues of Schur forms, for real ones as real and imaginary parts. The two eigenvalues of a 2x2 block
    /// have its diagonal element, which occurs twice, as their real part. Their imaginary parts are the square roots of the
    /// product of its other elements.
    fn eigenvalues(&mut self, forms: ValueId) -> Vec<ValueId> {
        let shape = self.shape(forms);
        let n = shape.dims[shape.rank() - 1];
        let main = self.diagonal(forms, 0, n);
        if !shape.dtype.is_float() {
            return vec![main];
        }
        let below = self.diagonal(forms, n, n.saturating_sub(1));
        let above = self.diagonal(forms, 1, n.saturating_sub(1));
        let zero = self.b.constant(Constant::zero(self.shape(below)));
        let is_block = self.b.compare(Direction::Ne, below, zero);
        let [below, above] = [below, above].map(|v| {
            let size = self.b.tile(TileOp::Abs, &[v]);
            self.b.tile(TileOp::Sqrt, &[size])
        });
        let size = self.b.tile(TileOp::Multiply, &[below, above]);
        let size = self.b.select(is_block, size, zero);
        let nothing = self.b.constant(Constant::zero(Shape::scalar(shape.dtype)));
        let of_main = self.shape(main);
        let mut padded = |low: i64, high: i64| {
            let along = |n: i64| {
                let mut all = vec![0; of_main.rank()];
                all[of_main.rank() - 1] = n;
                all
            };
            let pad = Core::Pad(core_ops::Pad { low: along(low), high: along(high), interior: along(0) });
            self.b.add(pad, &[size, nothing], of_main.clone())
        };
        let more = i64::from(n > 0);
        let (first, second) = (padded(0, more), padded(more, 0));
        vec![main, self.b.tile(TileOp::Subtract, &[first, second])]
    }

    /// Returns the real and the imaginary part.
    fn parts(&mut self, value: ValueId, real: DType) -> Vec<ValueId> {
        let shape = self.shape(value).with_dtype(real);
        [TileOp::Real, TileOp::Imag].map(|op| self.b.add(Core::Tile(op), &[value], shape.clone())).to_vec()
    }

    /// Returns the matrices that a routine sees when it reads memory in column-major order: those of the program if their
    /// layout is column-major, otherwise the same elements rearranged.
    fn by_columns(&mut self, value: ValueId, layout: Option<Vec<i64>>) -> Result<ValueId> {
        let dims = self.shape(value).dims.to_vec();
        if dims.len() < 2 || lies_by_columns(dims.len(), layout)? {
            return Ok(value);
        }
        let turned = swapped(&dims);
        let value = self.b.reshape(value, &turned);
        Ok(self.b.transpose(value, &last_two_swapped(dims.len())))
    }

    /// Does the opposite for a result.
    fn laid_out(&mut self, value: ValueId, layout: Option<Vec<i64>>) -> Result<ValueId> {
        let dims = self.shape(value).dims.to_vec();
        if lies_by_columns(dims.len(), layout)? {
            return Ok(value);
        }
        let value = self.b.transpose(value, &last_two_swapped(dims.len()));
        Ok(self.b.reshape(value, &dims))
    }
}

/// Returns the type of the parts of a complex number.
fn real_of(dtype: DType) -> DType {
    if dtype == DType::C128 { DType::F64 } else { DType::F32 }
}

fn swapped(dims: &[usize]) -> Vec<usize> {
    last_two_swapped(dims.len()).into_iter().map(|d| dims[d]).collect()
}

fn last_two_swapped(rank: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rank).collect();
    order.swap(rank - 2, rank - 1);
    order
}

/// Returns whether the matrices are column-major; the default is row-major.
fn lies_by_columns(rank: usize, layout: Option<Vec<i64>>) -> Result<bool> {
    let Some(minor_to_major) = layout else { return Ok(false) };
    let of_rows: Vec<i64> = (0..rank as i64).rev().collect();
    let mut of_columns = of_rows.clone();
    of_columns.swap(0, 1);
    match minor_to_major {
        layout if layout == of_columns => Ok(true),
        layout if layout == of_rows => Ok(false),
        layout => Err(CompileError::unimplemented(format!(
            "the layout {layout:?} of matrices is neither row-major nor column-major"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_letter_is_the_element_type() {
        assert_eq!(routine("lapack_sgeqrf_ffi"), Some((DType::F32, "geqrf")));
        assert_eq!(routine("lapack_zungqr_ffi"), Some((DType::C128, "ungqr")));
        assert_eq!(routine("lapack_xgeqrf_ffi"), None);
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
