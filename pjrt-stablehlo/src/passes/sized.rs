//! Tensors with their sizes as values.

use super::rewrite::{Rewriter, mismatch, unsupported};
use crate::Error;
use crate::build::Builder;
use crate::ir::ops::Pad;
use crate::ir::{ComparisonDirection, Dim, ElementType, Op, OpId, Operation, TensorType, Type, ValueId};

/// Returns `true` if the tensor has dynamic sizes, all of which have bounds.
pub(super) fn is_bounded(ty: &TensorType) -> bool {
    ty.is_dynamic() && (0..ty.rank()).all(|dim| ty.dim(dim) != Dim::Dynamic { bound: None })
}

/// Returns the type with the bounds as sizes.
pub(super) fn at_bounds(ty: &TensorType) -> TensorType {
    if !ty.is_dynamic() {
        return ty.clone();
    }
    let size = |dim| match ty.dim(dim) {
        Dim::Static(size) => size,
        Dim::Dynamic { bound } => bound.unwrap_or(crate::ir::DYNAMIC),
    };
    ty.with_dims((0..ty.rank()).map(size).collect::<Vec<_>>())
}

pub(super) fn dynamic_dims(ty: &TensorType) -> impl Iterator<Item = usize> + '_ {
    (0..ty.rank()).filter(|&dim| matches!(ty.dim(dim), Dim::Dynamic { .. }))
}

/// Returns the type of sizes.
pub(super) fn scalar() -> TensorType {
    TensorType::new(ElementType::I32, [])
}

/// A tensor of static shape, with the number of valid indices of each dimension that has padding.
#[derive(Clone)]
pub(super) struct Sized {
    pub(super) value: ValueId,
    pub(super) sizes: Vec<Option<ValueId>>,
}

impl Sized {
    /// Creates a tensor whose dimensions have the sizes that a function returns.
    pub(super) fn new(value: ValueId, rank: usize, size: impl FnMut(usize) -> Option<ValueId>) -> Self {
        Sized { value, sizes: (0..rank).map(size).collect() }
    }

    /// Returns an error if one of the dimensions has padding.
    pub(super) fn require_whole(&self, dims: impl IntoIterator<Item = usize>) -> Result<(), Error> {
        match dims.into_iter().find(|&dim| self.sizes.get(dim).is_some_and(Option::is_some)) {
            Some(dim) => Err(not_along(dim)),
            None => Ok(()),
        }
    }
}

pub(super) fn not_along(dim: usize) -> Error {
    unsupported(format!(
        "dimension {dim} has a dynamic size, and the operation is not supported along \
         such a dimension"
    ))
}

/// Returns the declared type of a result.
pub(super) fn result_type(r: &Rewriter<'_>, op: &Operation, index: usize) -> Result<TensorType, Error> {
    let ty = r.nth_result(op, index)?;
    if ty.is_dynamic() && !is_bounded(&ty) {
        return Err(unsupported(format!("expected a bound for each dynamic size, found {ty}")));
    }
    Ok(ty)
}

/// Slices and pads a tensor to these sizes.
pub(super) fn fitted(b: &mut Builder, value: ValueId, dims: &[i64]) -> Result<ValueId, Error> {
    let has = b.dims(value);
    if has.len() != dims.len() {
        return Err(unsupported(format!("expected sizes {dims:?}, found {has:?}")));
    }
    let common: Vec<i64> = has.iter().zip(dims).map(|(&a, &b)| a.min(b)).collect();
    let mut value = value;
    if common != has {
        value = b.slice(value, &vec![0; dims.len()], &common);
    }
    if common != dims {
        let high = dims.iter().zip(&common).map(|(to, from)| to - from).collect();
        let zero = b.zeros(b.tensor(value).with_dims([]));
        value = padded(b, value, zero, vec![0; dims.len()], high);
    }
    Ok(value)
}

/// Pads a tensor with a scalar.
pub(super) fn padded(b: &mut Builder, x: ValueId, edge: ValueId, low: Vec<i64>, high: Vec<i64>) -> ValueId {
    let ty = b.tensor(x);
    let dims: Vec<i64> =
        ty.dims().iter().zip(low.iter().zip(&high)).map(|(size, (l, h))| size + l + h).collect();
    let kind = Op::Pad(Pad {
        interior_padding: vec![0; low.len()].into(),
        edge_padding_low: low.into(),
        edge_padding_high: high.into(),
    });
    b.op_of_type(kind, &[x, edge], ty.with_dims(dims))
}

/// Replaces the padding of a tensor along these dimensions by a scalar.
pub(super) fn masked(
    b: &mut Builder,
    x: &Sized,
    dims: impl IntoIterator<Item = usize>,
    fill: ValueId,
) -> ValueId {
    let all = b.dims(x.value);
    let mut value = x.value;
    for dim in dims {
        let Some(size) = x.sizes[dim] else { continue };
        let counts = counting(b, &all, dim, size);
        let fill = b.broadcast_scalar(fill, &all);
        value = b.select(counts, value, fill);
    }
    value
}

/// Returns a tensor of booleans that are `true` where the index along `dim` is less than `size`.
pub(super) fn counting(b: &mut Builder, all: &[i64], dim: usize, size: ValueId) -> ValueId {
    let index = b.iota(ElementType::I32, all, dim as i64);
    let size = b.broadcast_scalar(size, all);
    b.compare(ComparisonDirection::Lt, index, size)
}

/// Adds the operation on the padded tensors, with its regions. The results have the bounds as sizes.
pub(super) fn add_op(
    r: &mut Rewriter<'_>,
    op: &Operation,
    kind: Op,
    operands: &[ValueId],
) -> Result<OpId, Error> {
    let types = (0..op.results.len()).map(|index| Ok(at_bounds(&result_type(r, op, index)?).into()));
    let types = types.collect::<Result<Vec<Type>, Error>>()?;
    let id = r.b.add_op(kind, operands, types);
    for &region in &op.regions {
        r.copy_region(region, id);
    }
    Ok(id)
}

/// Adds the operation on the padded tensors, and returns its result.
pub(super) fn same_op(r: &mut Rewriter<'_>, op: &Operation, operands: &[Sized]) -> Result<ValueId, Error> {
    let values: Vec<ValueId> = operands.iter().map(|x| x.value).collect();
    let id = add_op(r, op, op.kind.clone(), &values)?;
    Ok(r.b.body.op(id).result())
}

pub(super) fn array<'s, const N: usize>(
    op: &Operation,
    operands: &'s [Sized],
) -> Result<&'s [Sized; N], Error> {
    operands.try_into().map_err(|_| mismatch(op))
}

pub(super) fn dim(dimension: i64) -> Result<usize, Error> {
    usize::try_from(dimension).map_err(|_| unsupported(format!("there is no dimension {dimension}")))
}
