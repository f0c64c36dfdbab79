//! Rules for `einsum` and `unary_einsum`, whose equations have a letter for each dimension, as in `ab,bc->ac`.

use crate::ir::ops::DotGeneral;
use crate::ir::{DotDimensionNumbers, Op, OpCode, Operation, TensorType, ValueId};
use crate::passes::rewrite::{Rewriter, mismatch, unsupported};
use crate::{Error, ErrorKind};

/// Decomposes `einsum`.
pub(super) fn einsum(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let Op::Einsum(einsum) = &op.kind else { return Err(mismatch(op)) };
    let ([lhs, rhs], result) = (r.operands(op)?, r.result(op)?);
    let config = &*einsum.einsum_config;
    let (inputs, output) = config.split_once("->").ok_or_else(|| malformed(config))?;
    let (left, right) = inputs.split_once(',').ok_or_else(|| malformed(config))?;
    let (left, right, output) = (letters(left, config)?, letters(right, config)?, letters(output, config)?);
    let (lhs, left) = sum_unused(r, lhs, left, &[&right[..], &output].concat(), config)?;
    let (rhs, right) = sum_unused(r, rhs, right, &[&left[..], &output].concat(), config)?;
    let (left_dims, right_dims) = (r.b.dims(lhs), r.b.dims(rhs));
    // Letters of both operands are batching dimensions if they are in the result, otherwise contracting dimensions.
    let mut batching = (Vec::new(), Vec::new());
    let mut contracting = (Vec::new(), Vec::new());
    for (i, letter) in left.iter().enumerate() {
        if let Some(j) = right.iter().position(|other| other == letter) {
            let pairs = if output.contains(letter) { &mut batching } else { &mut contracting };
            pairs.0.push(i as i64);
            pairs.1.push(j as i64);
            let (of_left, of_right) = (left_dims[i], right_dims[j]);
            if of_left != of_right {
                return Err(invalid(format!(
                    "expected equal sizes of '{letter}' in {config:?}, found {of_left} and {of_right}"
                )));
            }
        }
    }
    let batch = batching.0.iter().map(|&dimension| left[dimension as usize]);
    let lefts = left.iter().copied().filter(|letter| !right.contains(letter));
    let rights = right.iter().copied().filter(|letter| !left.contains(letter));
    let made: Vec<char> = batch.chain(lefts).chain(rights).collect();
    let size = |letter: &char| {
        let from =
            |letters: &[char], dims: &[i64]| Some(dims[letters.iter().position(|other| other == letter)?]);
        from(&left, &left_dims).or_else(|| from(&right, &right_dims))
    };
    let dims: Option<Vec<i64>> = made.iter().map(size).collect();
    let kind = Op::DotGeneral(Box::new(DotGeneral {
        dot_dimension_numbers: DotDimensionNumbers {
            lhs_batching_dimensions: batching.0.into(),
            rhs_batching_dimensions: batching.1.into(),
            lhs_contracting_dimensions: contracting.0.into(),
            rhs_contracting_dimensions: contracting.1.into(),
        },
        precision_config: Box::default(),
        algorithm: None,
    }));
    let product = r.b.op_of_type(kind, &[lhs, rhs], result.with_dims(dims.ok_or_else(|| malformed(config))?));
    let value = arrange(r, product, &made, &output, config)?;
    declared(r, value, &result)
}

/// Decomposes `unary_einsum`: sums over the letters that are not in the result.
pub(super) fn unary_einsum(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let Op::UnaryEinsum(einsum) = &op.kind else { return Err(mismatch(op)) };
    let ([x], result) = (r.operands(op)?, r.result(op)?);
    let config = &*einsum.einsum_config;
    let (input, output) = config.split_once("->").ok_or_else(|| malformed(config))?;
    let (input, output) = (letters(input, config)?, letters(output, config)?);
    let (sum, made) = sum_unused(r, x, input, &output, config)?;
    let value = arrange(r, sum, &made, &output, config)?;
    declared(r, value, &result)
}

/// Returns the value, which must have the declared shape.
fn declared(r: &Rewriter<'_>, value: ValueId, result: &TensorType) -> Result<ValueId, Error> {
    let ty = r.b.tensor(value);
    if ty.dims() == result.dims() {
        return Ok(value);
    }
    Err(invalid(format!("result 0: expected {}, found {result}", result.with_dims(ty.dims()))))
}

fn malformed(config: &str) -> Error {
    unsupported(format!("expected a configuration such as \"ab,bc->ac\", found {config:?}"))
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

fn letters(text: &str, config: &str) -> Result<Vec<char>, Error> {
    let letters: Vec<char> = text.trim().chars().collect();
    if let Some(other) = letters.iter().find(|letter| !letter.is_alphabetic()) {
        return Err(unsupported(format!("expected letters, found {other:?} in {config:?}")));
    }
    if letters.iter().enumerate().any(|(index, letter)| letters[..index].contains(letter)) {
        return Err(unsupported(format!(
            "diagonals are not supported: {text:?} in {config:?} repeats a letter"
        )));
    }
    Ok(letters)
}

/// Sums over the dimensions whose letters occur nowhere else.
fn sum_unused(
    r: &mut Rewriter<'_>,
    x: ValueId,
    letters: Vec<char>,
    used: &[char],
    config: &str,
) -> Result<(ValueId, Vec<char>), Error> {
    let rank = r.b.tensor(x).rank();
    if rank != letters.len() {
        return Err(unsupported(format!(
            "expected {rank} letters for a tensor of rank {rank}, found {} in {config:?}",
            letters.len()
        )));
    }
    let unused = (0..rank).filter(|&dimension| !used.contains(&letters[dimension]));
    let unused: Vec<i64> = unused.map(|dimension| dimension as i64).collect();
    if unused.is_empty() {
        return Ok((x, letters));
    }
    let sum = r.b.reduce(x, &unused, OpCode::Add, 0.0);
    let kept = letters.into_iter().filter(|letter| used.contains(letter)).collect();
    Ok((sum, kept))
}

fn arrange(
    r: &mut Rewriter<'_>,
    x: ValueId,
    made: &[char],
    output: &[char],
    config: &str,
) -> Result<ValueId, Error> {
    let permutation: Option<Vec<i64>> = output
        .iter()
        .map(|letter| made.iter().position(|other| other == letter).map(|position| position as i64))
        .collect();
    let permutation = permutation.filter(|permutation| permutation.len() == made.len());
    Ok(r.b.transpose(x, &permutation.ok_or_else(|| malformed(config))?))
}
