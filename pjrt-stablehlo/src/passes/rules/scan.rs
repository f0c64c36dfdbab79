//! `chlo.scan` as a loop.

use super::attributes;
use crate::Error;
use crate::build::Builder;
use crate::formulas::scan::Scan;
use crate::ir::{Attribute, Operation, ValueId};
use crate::passes::rewrite::{Rewriter, definite, mismatch, unsupported};

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
        definite(&ty)?;
        output_types.push(ty);
    }
    for ty in inputs.iter().map(|&input| r.b.tensor(input)).chain(output_types.iter().cloned()) {
        definite(&ty)?;
        if ty.dims().get(dimension) != Some(&count) {
            return Err(unsupported(format!("expected size {count} of dimension {dimension}, found {ty}")));
        }
    }

    let scan = Scan {
        dimension,
        steps: count,
        is_reverse,
        inputs: &inputs,
        initial: &initial,
        outputs: &output_types,
    };
    let step = scan.begin(&mut r.b);
    let (id, arguments, target) = (step.op, step.arguments.clone(), step.block);
    let end = move |b: &mut Builder, returned: Vec<ValueId>| step.end(b, &returned);
    r.inline_region(op, 0, arguments, target, Box::new(end))?;
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
