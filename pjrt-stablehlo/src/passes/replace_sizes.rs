//! Replacement of dynamic sizes with bounds.
//!
//! A value of a bounded type becomes a tensor in which each bounded dimension has the size of its bound, and, for each
//! such dimension, an `i32` scalar with the number of valid indices. The elements at other indices are padding of
//! unspecified value. Operations whose results would depend on padding replace it first.

use super::CoreOps;
use super::bounded_moves as moves;
use super::rewrite::{Pass, Replacement, Rewriter, mismatch, unsupported};
use super::sized::{
    Sized, add_op, array, at_bounds, counting, dim, dynamic_dims, fitted, is_bounded, masked, result_type,
    same_op, scalar,
};
use crate::Error;
use crate::build::Builder;
use crate::ir::ops::{Concatenate, DotGeneral, DynamicUpdateSlice, Reduce, ReduceWindow, Sort};
use crate::ir::{Dim, Module, Op, OpCode, Operation, TensorType, Trait, Type, ValueId};

/// Operations that pass on their operands, or those of their regions. The sizes accompany their tensors.
const CARRIERS: &[OpCode] =
    &[OpCode::Case, OpCode::FuncCall, OpCode::If, OpCode::OptimizationBarrier, OpCode::While];

/// The pass that replaces sizes with bounds.
pub(super) struct ReplaceSizes;

impl ReplaceSizes {
    /// Creates the pass for a program.
    ///
    /// # Errors
    /// Returns an error if an argument or result of `main` has a dynamic size.
    pub(super) fn new(module: &Module) -> Result<Self, Error> {
        check_interface(module)?;
        Ok(ReplaceSizes)
    }

    /// Returns `true` if a value of the program has a bounded size that the set does not keep.
    pub(super) fn is_needed(module: &Module, core: &CoreOps) -> bool {
        !core.keeps_bounded_sizes() && has_bounds(module)
    }
}

impl Pass for ReplaceSizes {
    fn converted(&self, ty: &Type) -> Option<Vec<Type>> {
        ty.as_tensor().filter(|ty| is_bounded(ty)).map(converted)
    }

    fn replacement<'m>(&self, r: &mut Rewriter<'m>, op: &'m Operation) -> Result<Replacement<'m>, Error> {
        Ok(replacement(r, op)?.map_or(Replacement::Copy, Replacement::Values))
    }
}

/// Returns `true` if a value of the module has a bounded size.
fn has_bounds(module: &Module) -> bool {
    let is = |ty: &Type| match ty {
        Type::Tuple(parts) => parts.iter().any(|part| part.as_tensor().is_some_and(is_bounded)),
        ty => ty.as_tensor().is_some_and(is_bounded),
    };
    module.functions().iter().any(|function| {
        let mut types = function.ty.inputs.iter().chain(&function.ty.results);
        types.any(is) || function.body.values().any(|(_, value)| is(&value.ty))
    })
}

/// Returns an error if an argument or result of `main` has a dynamic size, because callers cannot pass or receive the
/// sizes.
fn check_interface(module: &Module) -> Result<(), Error> {
    let Some(main) = module.main() else { return Ok(()) };
    let first = |types: &[Type]| types.iter().position(|ty| ty.as_tensor().is_some_and(is_bounded));
    let wrong = |what: &str, index: usize, ty: &Type| {
        unsupported(format!(
            "{what} {index} of '{}' has the type {ty} of dynamic size; declare it with the size of its bound, \
             and add a {what} for the size",
            main.name
        ))
    };
    match (first(&main.ty.inputs), first(&main.ty.results)) {
        (Some(index), _) => Err(wrong("argument", index, &main.ty.inputs[index])),
        (_, Some(index)) => Err(wrong("result", index, &main.ty.results[index])),
        _ => Ok(()),
    }
    .map_err(|error| error.in_op("func.func", &main.location))
}

/// Returns the types of the values that replace a value of a bounded type.
fn converted(ty: &TensorType) -> Vec<Type> {
    let sizes = dynamic_dims(ty).map(|_| scalar().into());
    std::iter::once(at_bounds(ty).into()).chain(sizes).collect()
}

/// Returns the results of an operation with bounded operands or results; `None` if the operation can be copied.
fn replacement<'m>(r: &mut Rewriter<'m>, op: &'m Operation) -> Result<Option<Vec<ValueId>>, Error> {
    let is = |&value: &ValueId| r.old_type(value).as_tensor().is_some_and(is_bounded);
    let concerns = op.operands.iter().any(is) || op.results.into_iter().any(|value| is(&value));
    if !concerns || CARRIERS.contains(&op.kind.code()) {
        return Ok(None);
    }
    let operands = operands(r, op)?;
    let results = match &op.kind {
        Op::GetDimensionSize(o) => vec![get_dimension_size(r, op, &operands, o.dimension)?],
        Op::SetDimensionSize(o) => vec![set_dimension_size(r, op, &operands, o.dimension)?],
        Op::Reduce(o) => reduce(r, op, &operands, o)?,
        Op::Sort(o) => sort(r, op, &operands, o)?,
        Op::DotGeneral(o) => vec![dot_general(r, op, &operands, o)?],
        Op::Concatenate(o) => vec![concatenate(r, op, &operands, o)?],
        Op::ReduceWindow(o) => reduce_window(r, op, &operands, o)?,
        Op::Map(_) => with_regions(r, op, &operands)?,
        // The last two dimensions are those of matrices, the others are batch dimensions.
        Op::Cholesky(_) | Op::TriangularSolve(_) => {
            vec![batched(r, op, &operands, operands[0].sizes.len().saturating_sub(2))?]
        }
        Op::Fft(o) => {
            vec![batched(r, op, &operands, operands[0].sizes.len().saturating_sub(o.fft_length.len()))?]
        }
        Op::Convolution(o) => {
            let numbers = &o.dimension_numbers;
            let batch = dim(numbers.input_batch_dimension)?;
            let [lhs, rhs] = array(op, &operands)?;
            lhs.require_whole((0..lhs.sizes.len()).filter(|&dim| dim != batch || o.batch_group_count != 1))?;
            rhs.require_whole(0..rhs.sizes.len())?;
            let (value, to) = (same_op(r, op, &operands)?, dim(numbers.output_batch_dimension)?);
            let size = lhs.sizes[batch];
            vec![Sized::new(value, lhs.sizes.len(), |dim| size.filter(|_| dim == to))]
        }
        Op::Select(_) | Op::BitcastConvert(_) => vec![elementwise(r, op, &operands)?],
        _ if op.info().has(Trait::Elementwise) => vec![elementwise(r, op, &operands)?],
        _ => match moves::moved(r, op, &operands)? {
            Some(result) => vec![result],
            None => {
                return Err(unsupported(
                    "the operation does not support dynamic sizes, which the set of core operations requires to be replaced",
                ));
            }
        },
    };
    bound(r, op, results).map(Some)
}

/// Returns the operands with their sizes.
fn operands(r: &Rewriter<'_>, op: &Operation) -> Result<Vec<Sized>, Error> {
    let operand = |&old: &ValueId| {
        let Type::Tensor(ty) = r.old_type(old) else {
            return Err(unsupported(format!("expected a tensor, found {}", r.old_type(old))));
        };
        if ty.is_dynamic() && !is_bounded(ty) {
            return Err(unsupported(format!("expected a bound for each dynamic size, found {ty}")));
        }
        let values = r.flat(&[old]);
        let mut rest = values[1..].iter().copied();
        let is_dynamic = |dim| matches!(ty.dim(dim), Dim::Dynamic { .. });
        Ok(Sized::new(values[0], ty.rank(), |dim| is_dynamic(dim).then(|| rest.next()).flatten()))
    };
    op.operands.iter().map(operand).collect()
}

/// Returns the results in the new body, with the declared bounds and the sizes of dimensions that the declared types
/// leave open.
fn bound(r: &mut Rewriter<'_>, op: &Operation, results: Vec<Sized>) -> Result<Vec<ValueId>, Error> {
    let mut values = Vec::new();
    for (index, result) in results.into_iter().enumerate() {
        let ty = result_type(r, op, index)?;
        values.push(fitted(&mut r.b, result.value, at_bounds(&ty).dims())?);
        for dim in dynamic_dims(&ty) {
            let full = r.b.dims(result.value)[dim];
            let size = result.sizes.get(dim).copied().flatten();
            values.push(match size {
                Some(size) => size,
                None => r.b.integer(full, scalar()),
            });
        }
    }
    Ok(values)
}

fn elementwise(r: &mut Rewriter<'_>, op: &Operation, operands: &[Sized]) -> Result<Sized, Error> {
    let ty = at_bounds(&result_type(r, op, 0)?);
    let rank = ty.rank();
    let mut values = Vec::with_capacity(operands.len());
    for x in operands {
        values.push(if x.sizes.len() == rank { fitted(&mut r.b, x.value, ty.dims())? } else { x.value });
    }
    let id = add_op(r, op, op.kind.clone(), &values)?;
    let value = r.b.body.op(id).result();
    let full = operands.iter().filter(|x| x.sizes.len() == rank);
    Ok(Sized::new(value, rank, |dim| full.clone().find_map(|x| x.sizes[dim])))
}

/// Replaces `map`, an elementwise operation with a region.
fn with_regions(r: &mut Rewriter<'_>, op: &Operation, operands: &[Sized]) -> Result<Vec<Sized>, Error> {
    Ok(vec![elementwise(r, op, operands)?])
}

/// Replaces an operation whose leading dimensions are batch dimensions.
fn batched(r: &mut Rewriter<'_>, op: &Operation, operands: &[Sized], batches: usize) -> Result<Sized, Error> {
    for x in operands {
        x.require_whole(batches..x.sizes.len())?;
    }
    let value = same_op(r, op, operands)?;
    Ok(Sized::new(value, operands[0].sizes.len(), |dim| operands.iter().find_map(|x| x.sizes[dim])))
}

fn get_dimension_size(
    r: &mut Rewriter<'_>,
    op: &Operation,
    operands: &[Sized],
    dimension: i64,
) -> Result<Sized, Error> {
    let [x] = array(op, operands)?;
    let dim = dim(dimension)?;
    let size = *x.sizes.get(dim).ok_or_else(|| mismatch(op))?;
    let full = r.b.dims(x.value)[dim];
    let value = size.unwrap_or_else(|| r.b.integer(full, scalar()));
    Ok(Sized::new(value, 0, |_| None))
}

fn set_dimension_size(
    r: &mut Rewriter<'_>,
    op: &Operation,
    operands: &[Sized],
    dimension: i64,
) -> Result<Sized, Error> {
    let [x, size] = array(op, operands)?;
    let dim = dim(dimension)?;
    let full = *r.b.dims(x.value).get(dim).ok_or_else(|| mismatch(op))?;
    // A size beyond the bound is undefined behavior; clamping prevents accesses out of bounds.
    let (none, all) = (r.b.integer(0, scalar()), r.b.integer(full, scalar()));
    let size = r.b.maximum(size.value, none);
    let size = r.b.minimum(size, all);
    let mut result = x.clone();
    result.sizes[dim] = Some(size);
    Ok(result)
}

fn reduce(r: &mut Rewriter<'_>, op: &Operation, operands: &[Sized], o: &Reduce) -> Result<Vec<Sized>, Error> {
    let dims = o.dimensions.iter().map(|&d| dim(d)).collect::<Result<Vec<_>, Error>>()?;
    let (inputs, initial) = operands.split_at(operands.len() / 2);
    let mut values = Vec::with_capacity(operands.len());
    for (x, initial) in inputs.iter().zip(initial) {
        values.push(masked(&mut r.b, x, dims.iter().copied(), initial.value));
    }
    values.extend(initial.iter().map(|x| x.value));
    let id = add_op(r, op, op.kind.clone(), &values)?;
    let results: Vec<ValueId> = r.b.body.op(id).results.collect();
    let kept: Vec<usize> = (0..inputs[0].sizes.len()).filter(|d| !dims.contains(d)).collect();
    let size = |d: usize| inputs.iter().find_map(|x| x.sizes[kept[d]]);
    Ok(results.into_iter().map(|value| Sized::new(value, kept.len(), size)).collect())
}

fn reduce_window(
    r: &mut Rewriter<'_>,
    op: &Operation,
    operands: &[Sized],
    o: &ReduceWindow,
) -> Result<Vec<Sized>, Error> {
    let inputs = &operands[..operands.len() / 2];
    let rank = inputs[0].sizes.len();
    let at = |list: &[i64], dim: usize, default: i64| list.get(dim).copied().unwrap_or(default);
    let is_trivial = |dim: usize| {
        at(&o.window_dimensions, dim, 1) == 1
            && at(&o.window_strides, dim, 1) == 1
            && at(&o.base_dilations, dim, 1) == 1
            && o.padding.get(dim).is_none_or(|&ends| ends == [0, 0])
    };
    for x in inputs {
        x.require_whole((0..rank).filter(|&dim| !is_trivial(dim)))?;
    }
    let values: Vec<ValueId> = operands.iter().map(|x| x.value).collect();
    let id = add_op(r, op, op.kind.clone(), &values)?;
    let results: Vec<ValueId> = r.b.body.op(id).results.collect();
    let size = |dim: usize| inputs.iter().find_map(|x| x.sizes[dim]);
    Ok(results.into_iter().map(|value| Sized::new(value, rank, size)).collect())
}

/// Replaces `sort`. A further operand marks padding, which sorts last.
fn sort<'m>(
    r: &mut Rewriter<'m>,
    op: &'m Operation,
    operands: &[Sized],
    o: &Sort,
) -> Result<Vec<Sized>, Error> {
    let rank = operands[0].sizes.len();
    let along = usize::try_from(if o.dimension < 0 { o.dimension + rank as i64 } else { o.dimension });
    let along = along.ok().filter(|&dim| dim < rank).ok_or_else(|| mismatch(op))?;
    let sizes: Vec<_> = (0..rank).map(|dim| operands.iter().find_map(|x| x.sizes[dim])).collect();
    let mut values: Vec<ValueId> = operands.iter().map(|x| x.value).collect();
    let Some(size) = sizes[along] else {
        let id = add_op(r, op, op.kind.clone(), &values)?;
        let results = r.b.body.op(id).results.collect::<Vec<_>>().into_iter();
        return Ok(results.map(|value| Sized { value, sizes: sizes.clone() }).collect());
    };
    let dims = r.b.dims(values[0]);
    values.push(counting(&mut r.b, &dims, along, size));
    let types: Vec<Type> = values.iter().map(|&value| r.b.tensor(value).into()).collect();
    let scalars = values.iter().flat_map(|&value| {
        let ty = Type::from(r.b.tensor(value).with_dims([]));
        [ty.clone(), ty]
    });
    let scalars: Vec<Type> = scalars.collect();
    let kind = Op::Sort(Sort { dimension: along as i64, is_stable: o.is_stable });
    let id = r.b.add_op(kind, &values, types);
    let outer = r.b.begin_region(id, scalars);
    let mut arguments = r.b.arguments();
    let target = r.b.block();
    r.b.set_block(outer);
    let [a, c] = arguments.split_off(arguments.len() - 2)[..] else { return Err(mismatch(op)) };
    let before = move |b: &mut Builder, returned: Vec<ValueId>| {
        let c_is_padding = b.not(c);
        let is_less = b.or(returned[0], c_is_padding);
        let is_before = b.and(is_less, a);
        b.return_values(&[is_before]);
    };
    r.inline_region(op, 0, arguments, target, Box::new(before))?;
    let results: Vec<ValueId> = r.b.body.op(id).results.collect();
    let results = results.into_iter().take(operands.len());
    Ok(results.map(|value| Sized { value, sizes: sizes.clone() }).collect())
}

fn dot_general(
    r: &mut Rewriter<'_>,
    op: &Operation,
    operands: &[Sized],
    o: &DotGeneral,
) -> Result<Sized, Error> {
    let [lhs, rhs] = array(op, operands)?;
    let numbers = &o.dot_dimension_numbers;
    let list = |dims: &[i64]| dims.iter().map(|&d| dim(d)).collect::<Result<Vec<_>, Error>>();
    let (lhs_batch, rhs_batch) =
        (list(&numbers.lhs_batching_dimensions)?, list(&numbers.rhs_batching_dimensions)?);
    let (lhs_sum, rhs_sum) =
        (list(&numbers.lhs_contracting_dimensions)?, list(&numbers.rhs_contracting_dimensions)?);
    let mut values = Vec::with_capacity(2);
    // Each operand is masked with the sizes of both, because zero times padding may be NaN.
    for (x, other, dims, others) in [(lhs, rhs, &lhs_sum, &rhs_sum), (rhs, lhs, &rhs_sum, &lhs_sum)] {
        let mut x = x.clone();
        for (&d, &e) in dims.iter().zip(others) {
            x.sizes[d] = x.sizes[d].or(other.sizes[e]);
        }
        let zero = r.b.zeros(r.b.tensor(x.value).with_dims([]));
        values.push(masked(&mut r.b, &x, dims.iter().copied(), zero));
    }
    let id = add_op(r, op, op.kind.clone(), &values)?;
    let value = r.b.body.op(id).result();
    let batch = lhs_batch.iter().zip(&rhs_batch).map(|(&d, &e)| lhs.sizes[d].or(rhs.sizes[e]));
    let free = |x: &Sized, batch: &[usize], sum: &[usize]| -> Vec<Option<ValueId>> {
        let free = (0..x.sizes.len()).filter(|d| !batch.contains(d) && !sum.contains(d));
        free.map(|d| x.sizes[d]).collect()
    };
    let sizes = batch.chain(free(lhs, &lhs_batch, &lhs_sum)).chain(free(rhs, &rhs_batch, &rhs_sum));
    Ok(Sized { value, sizes: sizes.collect() })
}

/// Replaces `concatenate`. Each operand is written after the valid elements of the preceding ones, over their padding.
fn concatenate(
    r: &mut Rewriter<'_>,
    op: &Operation,
    operands: &[Sized],
    o: &Concatenate,
) -> Result<Sized, Error> {
    let along = dim(o.dimension)?;
    let rank = operands[0].sizes.len();
    let mut dims = at_bounds(&result_type(r, op, 0)?).dims().to_vec();
    let mut fits = Vec::with_capacity(operands.len());
    for x in operands {
        let own = r.b.dims(x.value);
        dims[along] = *own.get(along).ok_or_else(|| mismatch(op))?;
        fits.push(fitted(&mut r.b, x.value, &dims)?);
    }
    dims[along] = operands.iter().map(|x| r.b.dims(x.value)[along]).sum();
    let element = r.b.tensor(operands[0].value).with_dims(dims.clone());
    let size = |dim: usize| operands.iter().find_map(|x| x.sizes[dim]);
    if operands.iter().all(|x| x.sizes[along].is_none()) {
        let kind = Op::Concatenate(Concatenate { dimension: o.dimension });
        let value = r.b.op_of_type(kind, &fits, element);
        return Ok(Sized::new(value, rank, size));
    }
    let mut value = r.b.zeros(element.clone());
    let zero = r.b.integer(0, scalar());
    let mut end = zero;
    for (x, fit) in operands.iter().zip(fits) {
        let mut parts = vec![value, fit];
        parts.extend((0..rank).map(|dim| if dim == along { end } else { zero }));
        value = r.b.op(DynamicUpdateSlice {}, &parts);
        let full = r.b.dims(x.value)[along];
        let counted = x.sizes[along].unwrap_or_else(|| r.b.integer(full, scalar()));
        end = r.b.add(end, counted);
    }
    Ok(Sized::new(value, rank, |dim| if dim == along { Some(end) } else { size(dim) }))
}
