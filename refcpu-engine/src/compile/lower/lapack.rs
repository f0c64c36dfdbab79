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
use refcpu_kernels::ReduceOp;
use refcpu_kernels::linalg::{LinalgOp, SvdVectors, TransposeA, TriangularSolve};
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

/// A call of a routine.
struct Call<'a> {
    attributes: Attributes<'a>,
    operands: &'a [ValueId],
    /// The types of the results that the program declares.
    results: &'a [Shape],
    /// The type of the matrices: that of the first operand, or of the last one if it has more dimensions.
    matrices: Shape,
}

impl<'a> Call<'a> {
    fn new(
        scope: &Scope<'_>,
        attributes: Attributes<'a>,
        operands: &'a [ValueId],
        results: &'a [Shape],
    ) -> Self {
        let (first, last) = (scope.shape(operands[0]), scope.shape(operands[operands.len() - 1]));
        let matrices = if first.rank() < last.rank() { last } else { first };
        Self { attributes, operands, results, matrices }
    }

    /// Returns the batch dimensions.
    fn batch(&self) -> &[usize] {
        &self.matrices.dims[..self.matrices.rank() - 2]
    }

    /// Returns the numbers of rows and columns of a matrix.
    fn sizes(&self) -> (usize, usize) {
        let batch = self.batch().len();
        (self.matrices.dims[batch], self.matrices.dims[batch + 1])
    }

    /// Returns whether the routine reads the lower triangle of a matrix.
    fn is_lower(&mut self) -> Result<bool> {
        Ok(self.attributes.letter("uplo", b"LU")? == b'L')
    }

    /// Returns whether the call requests the vectors that an attribute is about.
    fn asks_for(&mut self, attribute: &'static str) -> Result<bool> {
        Ok(self.attributes.letter(attribute, b"NV")? == b'V')
    }
}

/// Adds the operations of a routine, and returns their results.
type Lower = fn(&mut Scope<'_>, &mut Call<'_>) -> Result<Vec<ValueId>>;

/// The routines: the names without the letter of the element type, the number of operands, and the function that lowers a call.
const ROUTINES: &[(&[&str], usize, Lower)] = &[
    (&["gees"], 1, gees),
    (&["geev"], 1, geev),
    (&["gehrd"], 1, gehrd),
    (&["geqp3"], 2, |s, c| s.linalg_results(LinalgOp::Geqp3, c.operands.to_vec())),
    (&["geqrf"], 1, geqrf),
    (&["gesdd", "gesvd"], 1, gesdd),
    (&["getrf"], 1, getrf),
    (&["gtsv"], 4, gtsv),
    (&["orgqr", "ungqr"], 2, |s, c| {
        s.checked(Core::QrProduct, c.operands.to_vec(), vec![c.matrices.clone()])
    }),
    (&["ormqr", "unmqr"], 3, ormqr),
    (&["potrf"], 1, potrf),
    (&["syevd", "heevd"], 1, syevd),
    (&["sytrd", "hetrd"], 1, sytrd),
    (&["trsm"], 2, trsm),
];

fn potrf(s: &mut Scope<'_>, c: &mut Call<'_>) -> Result<Vec<ValueId>> {
    let (a, lower, rank) = (c.operands[0], c.is_lower()?, c.matrices.rank());
    let cholesky = Core::Cholesky(core_ops::Cholesky { lower });
    let factor = s.checked(cholesky, vec![a], vec![c.matrices.clone()])?[0];
    // The other triangle is that of the operand.
    let index = c.matrices.with_dtype(DType::S32);
    let (row, column) = (s.b.iota(index.clone(), rank - 2), s.b.iota(index, rank - 1));
    let inside = if lower { Direction::Ge } else { Direction::Le };
    let inside = s.b.compare(inside, row, column);
    Ok(vec![s.b.select(inside, factor, a), s.info(factor, c.batch())])
}

fn geqrf(s: &mut Scope<'_>, c: &mut Call<'_>) -> Result<Vec<ValueId>> {
    let (rows, columns) = c.sizes();
    let scales = c.matrices.with_dims(&[c.batch(), &[rows.min(columns)]].concat());
    s.checked(Core::QrFactor, c.operands.to_vec(), vec![c.matrices.clone(), scales])
}

fn ormqr(s: &mut Scope<'_>, c: &mut Call<'_>) -> Result<Vec<ValueId>> {
    let (left, transpose) = (c.attributes.flag("left")?, c.attributes.flag("transpose")?);
    s.linalg_results(LinalgOp::Ormqr { left, transpose }, c.operands.to_vec())
}

fn getrf(s: &mut Scope<'_>, c: &mut Call<'_>) -> Result<Vec<ValueId>> {
    let factors = s.linalg_results(LinalgOp::Lu, c.operands.to_vec())?;
    // LAPACK numbers rows from 1.
    let one = s.b.number(s.shape(factors[1]), 1.0);
    let swaps = s.b.tile(TileOp::Add, &[factors[1], one]);
    Ok(vec![factors[0], swaps, s.first_zero(factors[0], c.batch())])
}

fn trsm(s: &mut Scope<'_>, c: &mut Call<'_>) -> Result<Vec<ValueId>> {
    let spec = TriangularSolve {
        left_side: c.attributes.letter("side", b"LR")? == b'L',
        lower: c.is_lower()?,
        unit_diagonal: c.attributes.letter("diag", b"NU")? == b'U',
        transpose_a: match c.attributes.letter("trans_x", b"NTC")? {
            b'N' => TransposeA::NoTranspose,
            b'T' => TransposeA::Transpose,
            _ => TransposeA::Adjoint,
        },
    };
    let solution = s.shape(c.operands[1]);
    s.checked(Core::TriangularSolve(spec), c.operands.to_vec(), vec![solution])
}

fn geev(s: &mut Scope<'_>, c: &mut Call<'_>) -> Result<Vec<ValueId>> {
    let (left, right) = (c.asks_for("compute_left")?, c.asks_for("compute_right")?);
    let found = s.linalg_results(LinalgOp::Eig { left, right }, c.operands.to_vec())?;
    let mut vectors = found[1..].iter().copied();
    let dtype = c.matrices.dtype;
    let mut results = if dtype.is_float() { s.parts(found[0], dtype) } else { vec![found[0]] };
    let unasked = c.matrices.with_dtype(s.shape(found[0]).dtype);
    for asked in [left, right] {
        let found = if asked { vectors.next() } else { None };
        results.push(found.unwrap_or_else(|| s.b.constant(Constant::zero(unasked.clone()))));
    }
    results.push(s.info(found[0], c.batch()));
    Ok(results)
}

fn syevd(s: &mut Scope<'_>, c: &mut Call<'_>) -> Result<Vec<ValueId>> {
    let lower = c.is_lower()?;
    // LAPACK's values are unspecified if the call does not request the vectors.
    c.asks_for("mode")?;
    let found = s.linalg_results(LinalgOp::Eigh { lower }, c.operands.to_vec())?;
    Ok(vec![found[0], found[1], s.info(found[1], c.batch())])
}

fn gehrd(s: &mut Scope<'_>, c: &mut Call<'_>) -> Result<Vec<ValueId>> {
    let (low, high) = (c.attributes.size("low")?, c.attributes.size("high")?);
    let (_, columns) = c.sizes();
    if (low, high) != (1, columns) {
        let why = format!(
            "gehrd of the rows {low} to {high} of matrices of {columns} rows is not supported; it must cover all rows"
        );
        return Err(CompileError::unimplemented(why));
    }
    let mut results = s.linalg_results(LinalgOp::Hessenberg, c.operands.to_vec())?;
    results.push(s.nothing_wrong(c.batch()));
    Ok(results)
}

fn gees(s: &mut Scope<'_>, c: &mut Call<'_>) -> Result<Vec<ValueId>> {
    let vectors = c.asks_for("mode")?;
    if c.attributes.letter("sort", b"NS")? == b'S' {
        return Err(CompileError::unimplemented("a Schur form with sorted eigenvalues is not supported"));
    }
    let mut results = s.linalg_results(LinalgOp::Schur { vectors }, c.operands.to_vec())?;
    let form = results[0];
    if !vectors {
        results.push(s.b.constant(Constant::zero(c.matrices.clone())));
    }
    results.extend(s.eigenvalues(form));
    let info = s.info(form, c.batch());
    results.extend([s.nothing_wrong(c.batch()), info]);
    Ok(results)
}

fn gesdd(s: &mut Scope<'_>, c: &mut Call<'_>) -> Result<Vec<ValueId>> {
    let vectors = match c.attributes.letter("mode", b"ASN")? {
        b'A' => SvdVectors::Full,
        b'S' => SvdVectors::Thin,
        _ => SvdVectors::Nothing,
    };
    let found = s.linalg_results(LinalgOp::Svd(vectors), c.operands.to_vec())?;
    let mut results = vec![c.operands[0]];
    results.extend(&found);
    for unasked in c.results.iter().take(4).skip(results.len()) {
        results.push(s.b.constant(Constant::zero(unasked.clone())));
    }
    results.push(s.info(found[0], c.batch()));
    Ok(results)
}

fn sytrd(s: &mut Scope<'_>, c: &mut Call<'_>) -> Result<Vec<ValueId>> {
    let lower = c.is_lower()?;
    let mut results = s.linalg_results(LinalgOp::Tridiagonal { lower }, c.operands.to_vec())?;
    results.push(s.nothing_wrong(c.batch()));
    Ok(results)
}

fn gtsv(s: &mut Scope<'_>, c: &mut Call<'_>) -> Result<Vec<ValueId>> {
    let solve = LinalgOp::TridiagonalSolve { perturb_singular: false };
    let x = s.linalg_results(solve, c.operands.to_vec())?[0];
    // LAPACK's values of the diagonals are unspecified.
    Ok([&c.operands[..3], &[x, s.info(x, c.batch())]].concat())
}

impl Scope<'_> {
    /// Lowers a call of a routine; returns `None` for other targets.
    ///
    /// # Errors
    /// Returns an error if the operands, attributes or results do not fit the routine.
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
        let Some((_, count, lower)) = ROUTINES.iter().find(|(names, ..)| names.contains(&routine)) else {
            return Ok(None);
        };
        if seen.len() != *count {
            return Err(CompileError::invalid(format!(
                "{routine} does not take {} operands: expected {count}",
                seen.len()
            )));
        }
        let mut routine_call = Call::new(self, Attributes::new(target, entries), &seen, shapes);
        let mut results = lower(self, &mut routine_call)?;
        routine_call.attributes.check_all_read()?;
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

    /// Returns the `info` of a routine that cannot fail: 0 for each matrix of a batch.
    fn nothing_wrong(&mut self, batch: &[usize]) -> ValueId {
        self.b.constant(Constant::zero(Shape::new(DType::S32, batch)))
    }

    /// Returns the `info` of each matrix of a batch: 1 if its result is NaN, otherwise 0.
    fn info(&mut self, found: ValueId, batch: &[usize]) -> ValueId {
        let shape = self.shape(found);
        if shape.is_empty() {
            return self.nothing_wrong(batch);
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
