//! The custom calls that JAX uses for operations whose sizes are operands.

use super::rewrite::{Replacement, Rewriter};
use crate::ir::ops::{CustomCall, ReduceWindow, RngBitGenerator};
use crate::ir::{
    Attribute, DictionaryAttribute, ElementType, EnumValue, Op, Operation, OtherOp, Type, ValueId,
};

/// Returns the operation that a call represents, if the sizes are known.
pub(super) fn replacement<'m>(
    r: &mut Rewriter<'m>,
    op: &'m Operation,
    call: &'m CustomCall,
) -> Option<Replacement<'m>> {
    match &*call.call_target_name {
        "stablehlo.dynamic_reduce_window" => reduce_window(r, op, call),
        "stablehlo.dynamic_rng_bit_generator" => rng_bit_generator(r, op),
        "stablehlo.dynamic_top_k" => top_k(r, op),
        _ => None,
    }
}

/// Replaces a call with these operands: inputs, initial values, window sizes, strides, base dilations, window
/// dilations, padding.
fn reduce_window<'m>(
    r: &mut Rewriter<'m>,
    op: &'m Operation,
    call: &'m CustomCall,
) -> Option<Replacement<'m>> {
    let values = r.flat(&op.operands);
    let (tensors, numbers) = values.split_at(values.len().checked_sub(5)?);
    let numbers: Option<Vec<_>> = numbers.iter().map(|&value| r.known(value)).collect();
    let [sizes, strides, base_dilations, window_dilations, padding] = numbers?.try_into().ok()?;
    let [callee] = &*call.called_computations else { return None };
    let kind = Op::ReduceWindow(Box::new(ReduceWindow {
        window_dimensions: (*sizes).into(),
        window_strides: (*strides).into(),
        base_dilations: (*base_dilations).into(),
        window_dilations: (*window_dilations).into(),
        padding: padding.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect(),
    }));
    let results = r.result_types(op);
    Some(Replacement::Region(r.b.add_op(kind, tensors, results), callee))
}

/// Replaces a call with these operands: a state, and the shape of the random bits.
fn rng_bit_generator<'m>(r: &mut Rewriter<'m>, op: &'m Operation) -> Option<Replacement<'m>> {
    let [state, shape] = <[ValueId; 2]>::try_from(r.flat(&op.operands)).ok()?;
    let dims = r.known(shape).filter(|dims| dims.iter().all(|&size| size >= 0))?;
    let Some(Attribute::Enum(EnumValue::RngAlgorithm(rng_algorithm))) = op.attributes.get("rng_algorithm")
    else {
        return None;
    };
    let mut results = r.result_types(op);
    let [_, Type::Tensor(bits)] = &mut *results else { return None };
    *bits = bits.with_dims(&*dims);
    let kind = Op::RngBitGenerator(RngBitGenerator { rng_algorithm: *rng_algorithm });
    let id = r.b.add_op(kind, &[state], results);
    Some(Replacement::Values(r.b.body.op(id).results.collect()))
}

/// Replaces a call with these operands: a tensor, and the number of elements to select.
fn top_k<'m>(r: &mut Rewriter<'m>, op: &'m Operation) -> Option<Replacement<'m>> {
    let [x, k] = <[ValueId; 2]>::try_from(r.flat(&op.operands)).ok()?;
    let &[k] = &*r.known(k)? else { return None };
    let mut dims = r.b.body.ty(x).as_tensor()?.static_dims()?.to_vec();
    let last = dims.last_mut().filter(|size| (0..=**size).contains(&k))?;
    *last = k;
    let mut results = r.result_types(op);
    for result in &mut results {
        let Type::Tensor(tensor) = result else { return None };
        *tensor = tensor.with_dims(dims.clone());
    }
    let k = Attribute::Integer { value: k, ty: ElementType::I64 };
    let properties = DictionaryAttribute::new(vec![("k".into(), k)]);
    let id = r.b.add_op(Op::Other(OtherOp { name: "chlo.top_k".into(), properties }.into()), &[x], results);
    Some(Replacement::Values(r.b.body.op(id).results.collect()))
}
