//! Lowers custom calls of handlers that the host has registered (XLA's typed foreign function interface).

use super::custom_call::parameters;
use super::{CompileError, Result, Scope, dtype_of, extended, to_usize};
use crate::graph::{ForeignAttribute, ForeignCall, Op as Core, Shape, ValueId, verify_node};
use pjrt_stablehlo::ir::{Attribute, DictionaryAttribute, ElementType, Operation, TensorType, Type, ops};
use refcpu_kernels::DType;

impl Scope<'_> {
    /// Lowers a call of a handler. With a `refusal`, the call is of a target of refcpu that does not accept it, and fails when
    /// it runs. Errors occur at run time because the call may be in a branch that is never taken.
    pub(super) fn foreign_call(
        &mut self,
        op: &Operation,
        call: &ops::CustomCall,
        operands: &[ValueId],
        results: &[Shape],
        refusal: Option<CompileError>,
    ) -> Result<Vec<ValueId>> {
        let mut arrays = op.operands.iter().copied().chain(op.results);
        if arrays.any(|v| !matches!(self.function.body.ty(v), Type::Tensor(_))) {
            return Err(CompileError::unimplemented("the operands and results of a handler must be arrays"));
        }
        let order = |layouts: &Option<Box<[Box<[i64]>]>>, array: usize, rank: usize| match layouts {
            Some(layouts) => major_to_minor(layouts.get(array).map_or(&[], |layout| layout), rank),
            None => Ok((0..rank).collect()),
        };
        let mut arranged = Vec::with_capacity(operands.len());
        for (i, operand) in operands.iter().enumerate() {
            let order = order(&call.operand_layouts, i, self.b.shape(*operand).rank())?;
            arranged.push(if order.is_sorted() { *operand } else { self.b.transpose(*operand, &order) });
        }
        let orders =
            results.iter().enumerate().map(|(i, shape)| order(&call.result_layouts, i, shape.rank()));
        let orders: Vec<Vec<usize>> = orders.collect::<Result<_>>()?;
        let shapes = results.iter().zip(&orders).map(|(shape, order)| {
            shape.with_dims(&order.iter().map(|dim| shape.dims[*dim]).collect::<Vec<_>>())
        });
        let dims = |shape: &Shape| shape.dims.iter().map(|size| *size as i64).collect::<Vec<_>>();
        let attributes = parameters(op, call).map_or(Ok(vec![]), dictionary)?;
        let aliases = call.output_operand_aliases.iter().map(|alias| {
            let result = alias.output_tuple_indices.first().map_or(Ok(0), |index| to_usize(*index))?;
            Ok((to_usize(alias.operand_index)?, result))
        });
        let foreign = ForeignCall {
            target: call.call_target_name.to_string(),
            attributes,
            has_side_effect: call.has_side_effect,
            operand_dims: operands.iter().map(|operand| dims(self.b.shape(*operand))).collect(),
            result_dims: results.iter().map(dims).collect(),
            aliases: aliases.collect::<Result<_>>()?,
            refusal: refusal.map(|error| self.placed(op, error).to_string()),
        };
        let before = self.b.graph().nodes().len();
        let made = self.b.node(Core::Foreign(Box::new(foreign)), arranged, shapes.collect());
        if let Some(node) = self.b.graph().nodes().get(before) {
            verify_node(self.b.graph(), node).map_err(CompileError::invalid)?;
        }
        let arrange = |(value, order): (ValueId, Vec<usize>)| {
            if order.is_sorted() { value } else { self.b.transpose(value, &inverse(&order)) }
        };
        Ok(made.into_iter().zip(orders).map(arrange).collect())
    }
}

/// Converts a layout, which lists dimensions from minor to major, to the order from major to minor.
fn major_to_minor(layout: &[i64], rank: usize) -> Result<Vec<usize>> {
    let order: Vec<usize> = layout.iter().rev().map(|dim| to_usize(*dim)).collect::<Result<_>>()?;
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..rank) {
        return Err(CompileError::invalid(format!(
            "the layout {layout:?} is not a permutation of {rank} dimensions"
        )));
    }
    Ok(order)
}

fn inverse(permutation: &[usize]) -> Vec<usize> {
    let mut inverse = vec![0; permutation.len()];
    for (at, dim) in permutation.iter().enumerate() {
        inverse[*dim] = at;
    }
    inverse
}

fn dictionary(entries: &DictionaryAttribute) -> Result<Vec<(String, ForeignAttribute)>> {
    entries.entries().iter().map(|(name, value)| Ok((name.to_string(), attribute(name, value)?))).collect()
}

/// Converts an attribute to the form that handlers receive.
fn attribute(name: &str, value: &Attribute) -> Result<ForeignAttribute> {
    let unknown = || {
        CompileError::unimplemented(format!(
            "the attribute {name:?} is {}, but handlers take numbers, arrays of numbers, strings and dictionaries",
            value.kind()
        ))
    };
    Ok(match value {
        Attribute::Bool(value) => ForeignAttribute::Scalar(DType::Pred, vec![u8::from(*value)]),
        Attribute::Integer { value, ty } => {
            let dtype = dtype(*ty)?;
            ForeignAttribute::Scalar(dtype, integer(*value, dtype).ok_or_else(unknown)?)
        }
        Attribute::Float { value, ty } => {
            let dtype = dtype(*ty)?;
            ForeignAttribute::Scalar(dtype, float(*value, dtype).ok_or_else(unknown)?)
        }
        Attribute::String(text) => ForeignAttribute::String(text.to_string()),
        Attribute::IntegerArray { ty, values } => {
            let dtype = dtype(*ty)?;
            let bytes: Option<Vec<Vec<u8>>> = values.iter().map(|value| integer(*value, dtype)).collect();
            ForeignAttribute::Array(dtype, bytes.ok_or_else(unknown)?.concat())
        }
        Attribute::FloatArray { ty, values } => {
            let dtype = dtype(*ty)?;
            let bytes: Option<Vec<Vec<u8>>> = values.iter().map(|value| float(*value, dtype)).collect();
            ForeignAttribute::Array(dtype, bytes.ok_or_else(unknown)?.concat())
        }
        Attribute::Elements(value) | Attribute::Resource { value, .. } => {
            let dtype = dtype_of(value.ty())?;
            let bytes = value.dense_bytes().map_err(|error| CompileError::invalid(error.to_string()))?;
            ForeignAttribute::Array(dtype, extended(bytes.into_owned(), dtype))
        }
        Attribute::Array(values) => array(name, values)?.ok_or_else(unknown)?,
        Attribute::Dictionary(entries) => ForeignAttribute::Dictionary(dictionary(entries)?),
        _ => return Err(unknown()),
    })
}

/// Converts a list of numbers; returns `None` if its elements are not numbers of one type.
fn array(name: &str, values: &[Attribute]) -> Result<Option<ForeignAttribute>> {
    let mut all: Option<(DType, Vec<u8>)> = None;
    for value in values {
        let ForeignAttribute::Scalar(dtype, bytes) = attribute(name, value)? else { return Ok(None) };
        let (of_all, so_far) = all.get_or_insert((dtype, vec![]));
        if *of_all != dtype {
            return Ok(None);
        }
        so_far.extend(bytes);
    }
    Ok(all.map(|(dtype, bytes)| ForeignAttribute::Array(dtype, bytes)))
}

fn dtype(ty: ElementType) -> Result<DType> {
    dtype_of(&TensorType::new(ty, []))
}

/// Returns the bytes of an integer; `None` for types of less than a byte.
fn integer(value: i64, dtype: DType) -> Option<Vec<u8>> {
    match dtype {
        DType::Pred => Some(vec![u8::from(value != 0)]),
        _ if dtype.bits() >= 8 => Some(value.to_le_bytes()[..dtype.size()].to_vec()),
        _ => None,
    }
}

/// Returns the bytes of a float; `None` for types that the interface of handlers does not have.
fn float(value: f64, dtype: DType) -> Option<Vec<u8>> {
    match dtype {
        DType::F32 => Some((value as f32).to_le_bytes().to_vec()),
        DType::F64 => Some(value.to_le_bytes().to_vec()),
        _ => None,
    }
}
