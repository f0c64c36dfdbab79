//! The rules for `cholesky`, `triangular_solve` and `fft`, and for the custom calls of QR factorizations.

use crate::Error;
use crate::build::Builder;
use crate::formulas::{fourier, linear_algebra as formulas};
use crate::ir::ops::CustomCall;
use crate::ir::{ElementType, Op, Operation, TensorType, ValueId};
use crate::passes::rewrite::{Rewriter, mismatch, unsupported};

/// The targets of the calls, by which [`CoreOps`](crate::passes::CoreOps) contains the operations: LAPACK's `geqrf` and `orgqr`.
const QR: &str = "Qr";
const HOUSEHOLDER_PRODUCT: &str = "ProductOfElementaryHouseholderReflectors";

/// Returns the target of a custom call that represents one of the operations.
pub(crate) fn target_of_call(call: &CustomCall) -> Option<&'static str> {
    [QR, HOUSEHOLDER_PRODUCT].into_iter().find(|target| *target == &*call.call_target_name)
}

/// Decomposes `cholesky`.
pub(super) fn cholesky(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let Op::Cholesky(cholesky) = &op.kind else { return Err(mismatch(op)) };
    let [a] = r.operands(op)?;
    let element = r.b.element(a);
    let a = widened(&mut r.b, a);
    let factor = formulas::cholesky(&mut r.b, a, cholesky.lower);
    Ok(r.b.convert(factor, element))
}

/// Decomposes `triangular_solve`.
pub(super) fn triangular_solve(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let Op::TriangularSolve(solve) = &op.kind else { return Err(mismatch(op)) };
    let [a, b] = r.operands(op)?;
    let element = r.b.element(a);
    let (a, b) = (widened(&mut r.b, a), widened(&mut r.b, b));
    let solution = formulas::triangular_solve(&mut r.b, a, b, solve);
    Ok(r.b.convert(solution, element))
}

/// Decomposes `fft`.
pub(super) fn fft(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let Op::Fft(fft) = &op.kind else { return Err(mismatch(op)) };
    let [x] = r.operands(op)?;
    if let Some(length) = fft.fft_length.iter().find(|length| !fourier::is_transformable(**length)) {
        return Err(unsupported(format!(
            "{} of length {length} cannot be decomposed, because it has a prime factor above {}",
            op.kind.name(),
            fourier::MAX_FACTOR
        )));
    }
    Ok(fourier::fft(&mut r.b, x, fft.fft_type, &fft.fft_length))
}

/// Decomposes a call. The verifier does not check the types of custom calls.
pub(crate) fn custom_call<'m>(r: &mut Rewriter<'m>, op: &'m Operation) -> Result<Vec<ValueId>, Error> {
    let Op::CustomCall(call) = &op.kind else { return Err(mismatch(op)) };
    let operands = r.tensors(op)?;
    let types: Vec<TensorType> = operands.iter().map(|&operand| r.b.tensor(operand)).collect();
    let is_matrix =
        |ty: &TensorType| ty.rank() >= 2 && (ty.element_type().is_float() || ty.element_type().is_complex());
    let [matrix, others @ ..] = &types[..] else { return Err(mismatch(op)) };
    if matrix.num_elements().is_none() || !is_matrix(matrix) {
        return Err(unsupported(format!("expected matrices of floats of static sizes, found {matrix}")));
    }
    let last = matrix.rank() - 1;
    let (rows, columns) = (matrix.dims()[last - 1], matrix.dims()[last]);
    let element = matrix.element_type();
    let is_product = target_of_call(call) == Some(HOUSEHOLDER_PRODUCT);
    let results = match (others, &operands[..]) {
        (&[], &[a]) if !is_product => {
            let a = widened(&mut r.b, a);
            formulas::qr(&mut r.b, a).to_vec()
        }
        ([factors], &[a, taus])
            if is_product
                && factors.element_type() == element
                && factors.rank() == last
                && factors.dims()[..last - 1] == matrix.dims()[..last - 1]
                && (0..=columns.min(rows)).contains(&factors.dims()[last - 1]) =>
        {
            let (a, taus) = (widened(&mut r.b, a), widened(&mut r.b, taus));
            vec![formulas::householder_product(&mut r.b, a, taus)]
        }
        _ => return Err(mismatch(op)),
    };
    let results: Vec<ValueId> = results.into_iter().map(|result| r.b.convert(result, element)).collect();
    for (index, &result) in results.iter().enumerate() {
        if op.results.len() != results.len() || r.nth_result(op, index)? != r.b.tensor(result) {
            return Err(mismatch(op));
        }
    }
    Ok(results)
}

/// Converts floats that are narrower than f32.
fn widened(b: &mut Builder, x: ValueId) -> ValueId {
    let element = b.element(x);
    let is_narrow = element.is_float() && element.byte_width() < ElementType::F32.byte_width();
    if is_narrow { b.convert(x, ElementType::F32) } else { x }
}
