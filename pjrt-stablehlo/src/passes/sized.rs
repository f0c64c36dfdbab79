//! Tensors with sizes beside them.

use super::rewrite::{Rewriter, mismatch, unsupported};
use crate::Error;
use crate::build::Builder;
use crate::ir::ops::Pad;
use crate::ir::{ComparisonDirection, Dim, ElementType, Op, OpId, Operation, TensorType, Type, ValueId};

/// Whether sizes of a tensor are unknown, and all of these have bounds.
pub(super) fn is_bounded(ty: &TensorType) -> bool {
    ty.is_dynamic() && (0..ty.rank()).all(|dim| ty.dim(dim) != Dim::Dynamic { bound: None })
}

/// The type with the bounds as sizes.
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

/// The type of a size.
pub(super) fn scalar() -> TensorType {
    TensorType::new(ElementType::I32, [])
}

/// A tensor of definite size, and how many indices of each dimension count, where that is not all of them.
#[derive(Clone)]
pub(super) struct Sized {
    pub(super) value: ValueId,
    pub(super) sizes: Vec<Option<ValueId>>,
}

impl Sized {
    /// The sizes of one dimension after another, as said by a function.
    pub(super) fn new(value: ValueId, rank: usize, size: impl FnMut(usize) -> Option<ValueId>) -> Self {
        Sized { value, sizes: (0..rank).map(size).collect() }
    }

    /// Fails where one of the dimensions has padding.
    pub(super) fn require_whole(&self, dims: impl IntoIterator<Item = usize>) -> Result<(), Error> {
        match dims.into_iter().find(|&dim| self.sizes.get(dim).is_some_and(Option::is_some)) {
            Some(dim) => Err(not_along(dim)),
            None => Ok(()),
        }
    }
}

pub(super) fn not_along(dim: usize) -> Error {
    unsupported(format!(
        "the size of dimension {dim} is not known before the program runs, and the operation is not computed along \
         such a dimension"
    ))
}

/// The declared type of a result.
pub(super) fn result_type(r: &Rewriter<'_>, op: &Operation, index: usize) -> Result<TensorType, Error> {
    let ty = r.nth_result(op, index)?;
    if ty.is_dynamic() && !is_bounded(&ty) {
        return Err(unsupported(format!("expected a bound for each size that is not known, found {ty}")));
    }
    Ok(ty)
}

/// A tensor cut to these sizes, and padded to them.
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

/// A tensor with edges of a scalar.
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

/// A tensor with a scalar in the place of its padding along these dimensions.
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

/// Where the index of a dimension is below its size.
pub(super) fn counting(b: &mut Builder, all: &[i64], dim: usize, size: ValueId) -> ValueId {
    let index = b.iota(ElementType::I32, all, dim as i64);
    let size = b.broadcast_scalar(size, all);
    b.compare(ComparisonDirection::Lt, index, size)
}

/// The operation on the tensors, with its regions; results of the bounds' sizes.
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

/// The result of the operation on the tensors as they are.
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
