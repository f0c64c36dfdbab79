//! `chlo.scan` as a loop.

use super::rewriter::Rewriter;
use super::rules::mismatch;
use super::{attributes, unsupported};
use crate::Error;
use crate::build::Builder;
use crate::ir::ops::{DynamicSlice, DynamicUpdateSlice, While};
use crate::ir::{Attribute, ComparisonDirection, ElementType, Operation, TensorType, ValueId};

/// `chlo.scan`: for each index of a dimension, the region takes that slice of each input and the carries, and gives a
/// slice of each output and the next carries.
///
/// The loop's state is the index, the outputs as far as they are written, and the carries.
pub(super) fn scan<'m>(r: &mut Rewriter<'m>, op: &'m Operation) -> Result<Vec<ValueId>, Error> {
    let operands = r.tensors(op)?;
    let carries = carry_count(op, &operands)?;
    let (inputs, initial) = operands.split_at(operands.len() - carries);
    let (inputs, initial) = (inputs.to_vec(), initial.to_vec());
    let outputs = op.results.len().checked_sub(carries).ok_or_else(|| mismatch(op))?;
    let dimension = usize::try_from(attributes::integer(op, "dimension")?).map_err(|_| mismatch(op))?;
    let is_reverse = attributes::get(op, "is_reverse").is_some_and(|value| value.as_bool() == Some(true));
    let count = match (attributes::get(op, "scan_dim_size").and_then(Attribute::as_i64), inputs.first()) {
        (_, Some(&input)) => r.b.dims(input).get(dimension).copied().ok_or_else(|| mismatch(op))?,
        (Some(count), None) => count,
        (None, None) => return Err(unsupported("expected an input or an attribute 'scan_dim_size'")),
    };
    let mut output_types = Vec::new();
    for index in 0..outputs {
        let ty = r.nth_result(op, index)?;
        super::rewriter::definite(&ty)?;
        output_types.push(ty);
    }
    for ty in inputs.iter().map(|&input| r.b.tensor(input)).chain(output_types.iter().cloned()) {
        super::rewriter::definite(&ty)?;
        if ty.dims().get(dimension) != Some(&count) {
            return Err(unsupported(format!("expected size {count} of dimension {dimension}, found {ty}")));
        }
    }

    let counter = TensorType::new(ElementType::I64, []);
    let mut state = vec![r.b.integer(0, counter.clone())];
    for ty in &output_types {
        state.push(r.b.number_of_type(0.0, ty.clone()));
    }
    state.extend(initial);
    let types: Vec<_> = state.iter().map(|&value| r.b.body.ty(value).clone()).collect();
    let id = r.b.add_op(While {}, &state, types.clone());

    r.b.region(id, types.clone(), |b, state| {
        let limit = b.integer(count, counter);
        vec![b.compare(ComparisonDirection::Lt, state[0], limit)]
    });

    let outer = r.b.begin_region(id, types);
    let state = r.b.arguments();
    let index = state[0];
    let place = if is_reverse {
        let ty = r.b.tensor(index);
        let last = r.b.integer(count - 1, ty);
        r.b.subtract(last, index)
    } else {
        index
    };
    let mut arguments: Vec<ValueId> =
        inputs.iter().map(|&input| slice_at(&mut r.b, input, dimension, place)).collect();
    arguments.extend(&state[1 + outputs..]);
    let written = state[1..=outputs].to_vec();
    let target = r.b.block;
    let next = move |b: &mut Builder, returned: Vec<ValueId>| {
        let one = b.number(1.0, index);
        let mut state = vec![b.add(index, one)];
        for (&output, &slice) in written.iter().zip(&returned) {
            state.push(update_at(b, output, dimension, place, slice));
        }
        state.extend(&returned[written.len().min(returned.len())..]);
        b.return_values(&state);
    };
    r.b.set_block(outer);
    r.inline_region(op, 0, arguments, target, Box::new(next))?;
    Ok(r.b.body.op(id).results.skip(1).collect())
}

/// How many of the operands are initial carries: the last, as many as `operandSegmentSizes` says.
fn carry_count(op: &Operation, operands: &[ValueId]) -> Result<usize, Error> {
    let sizes = attributes::integers(op, "operandSegmentSizes")?;
    let sizes = sizes.or(attributes::integers(op, "operand_segment_sizes")?);
    match sizes.as_deref() {
        Some(&[inputs, carries])
            if inputs >= 0 && inputs.checked_add(carries) == Some(operands.len() as i64) =>
        {
            usize::try_from(carries).map_err(|_| mismatch(op))
        }
        _ => Err(unsupported(
            "expected an attribute 'operandSegmentSizes' with the numbers of inputs and carries",
        )),
    }
}

/// The start of a slice: an index in one dimension, 0 in the others.
fn start_at(b: &mut Builder, rank: usize, dimension: usize, index: ValueId) -> Vec<ValueId> {
    let zero = b.number(0.0, index);
    (0..rank).map(|other| if other == dimension { index } else { zero }).collect()
}

/// The slice at an index of a dimension, without that dimension.
fn slice_at(b: &mut Builder, x: ValueId, dimension: usize, index: ValueId) -> ValueId {
    let ty = b.tensor(x);
    let mut sizes = ty.dims().to_vec();
    sizes[dimension] = 1;
    let mut operands = vec![x];
    operands.extend(start_at(b, ty.rank(), dimension, index));
    let slice = b.op(DynamicSlice { slice_sizes: sizes.clone().into() }, &operands);
    sizes.remove(dimension);
    b.reshape(slice, &sizes)
}

/// A tensor with the slice at an index of a dimension replaced.
fn update_at(b: &mut Builder, x: ValueId, dimension: usize, index: ValueId, slice: ValueId) -> ValueId {
    let ty = b.tensor(x);
    let mut sizes = ty.dims().to_vec();
    sizes[dimension] = 1;
    let slice = b.reshape(slice, &sizes);
    let mut operands = vec![x, slice];
    operands.extend(start_at(b, ty.rank(), dimension, index));
    b.op(DynamicUpdateSlice {}, &operands)
}
