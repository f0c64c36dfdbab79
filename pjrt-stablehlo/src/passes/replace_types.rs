//! Replacement of quantized types by their storage types, and of tuples and futures by their parts.

use super::rewrite::{Pass, Replacement, Rewriter, mismatch, unsupported};
use super::{CoreOps, quantized, quantized_flow};
use crate::Error;
use crate::ir::{Literal, Module, Op, Operation, TensorType, Type, ValueId};

/// The pass that replaces the types that a set does not keep. It keeps other operations.
pub(super) struct ReplaceTypes<'c> {
    core: &'c CoreOps,
}

impl<'c> ReplaceTypes<'c> {
    /// Creates the pass for a program.
    ///
    /// # Errors
    /// Returns an error if quantization parameters would be lost.
    pub(super) fn new(module: &Module, core: &'c CoreOps) -> Result<Self, Error> {
        if !core.keeps_quantized_types() {
            quantized_flow::check(module)?;
        }
        Ok(ReplaceTypes { core })
    }

    /// Returns `true` if a value of the program has a type that the set does not keep.
    pub(super) fn is_needed(module: &Module, core: &CoreOps) -> bool {
        let is_foreign = |ty: &Type| match ty {
            Type::Tensor(tensor) => tensor.quantization().is_some() && !core.keeps_quantized_types(),
            Type::Tuple(_) => !core.keeps_tuples(),
            Type::Future(_) => !core.keeps_futures(),
            _ => false,
        };
        module.functions().iter().any(|function| {
            let mut types = function.ty.inputs.iter().chain(&function.ty.results);
            types.any(is_foreign) || function.body.values().any(|(_, value)| is_foreign(&value.ty))
        })
    }

    fn converts(&self, ty: &TensorType) -> bool {
        ty.quantization().is_some() && !self.core.keeps_quantized_types()
    }

    /// Returns a type with storage types in place of quantized ones that are not kept, including in tuples.
    fn stored(&self, ty: &Type) -> Type {
        match ty {
            Type::Tensor(tensor) if self.converts(tensor) => {
                TensorType::new(tensor.storage_type(), tensor.dims()).into()
            }
            Type::Tuple(parts) => Type::Tuple(parts.iter().map(|part| self.stored(part)).collect()),
            Type::Future(parts) => Type::Future(parts.iter().map(|part| self.stored(part)).collect()),
            other => other.clone(),
        }
    }
}

impl Pass for ReplaceTypes<'_> {
    fn converted(&self, ty: &Type) -> Option<Vec<Type>> {
        match ty {
            Type::Tensor(tensor) if !self.converts(tensor) => return None,
            Type::Tensor(_) | Type::Tuple(_) | Type::Future(_) => {}
            _ => return None,
        }
        let mut leaves = Vec::new();
        let mut work = vec![ty];
        while let Some(ty) = work.pop() {
            match ty {
                Type::Tuple(parts) if !self.core.keeps_tuples() => work.extend(parts.iter().rev()),
                Type::Future(parts) if !self.core.keeps_futures() => work.extend(parts.iter().rev()),
                other => leaves.push(self.stored(other)),
            }
        }
        Some(leaves)
    }

    fn replacement<'m>(&self, r: &mut Rewriter<'m>, op: &'m Operation) -> Result<Replacement<'m>, Error> {
        if !self.core.keeps_quantized_types() && quantized::replaces(r, op) {
            return Ok(Replacement::Values(quantized::replacement(r, op)?));
        }
        match &op.kind {
            Op::Constant(constant) if self.converts(constant.value.ty()) => {
                let value = Literal::new(constant.value.storage_tensor_type(), constant.value.data().clone());
                let value = value.map_err(|error| unsupported(error.to_string()))?;
                return Ok(Replacement::Values(vec![r.b.constant(value)]));
            }
            Op::AsyncDone(_) if !self.core.keeps_futures() => {
                return Ok(Replacement::Values(r.flat(&op.operands)));
            }
            Op::AsyncStart(_) if !self.core.keeps_futures() => {
                return r.start(op).map(|()| Replacement::Blocks);
            }
            _ => {}
        }
        if !self.core.keeps_tuples()
            && let Some(parts) = parts(r, op)?
        {
            return Ok(Replacement::Values(parts));
        }
        quantized::check_move(r, op)?;
        Ok(Replacement::Copy)
    }
}

/// Returns the values that replace the result of `tuple` or `get_tuple_element`.
fn parts(r: &Rewriter<'_>, op: &Operation) -> Result<Option<Vec<ValueId>>, Error> {
    match &op.kind {
        Op::Tuple(_) => Ok(Some(r.flat(&op.operands))),
        Op::GetTupleElement(get) => {
            let Type::Tuple(parts) = r.old_type(op.operand(0)) else { return Err(mismatch(op)) };
            let index = usize::try_from(get.index).unwrap_or(usize::MAX).min(parts.len());
            let skipped: usize = parts[..index].iter().map(|ty| r.leaf_count(ty)).sum();
            let count = parts.get(index).map_or(0, |ty| r.leaf_count(ty));
            Ok(Some(r.flat(&op.operands)[skipped..][..count].to_vec()))
        }
        Op::CustomCall(call) => {
            let mut values = op.operands.iter().copied().chain(op.results);
            let has_tuples = values.any(|value| matches!(r.old_type(value), Type::Tuple(_)));
            if has_tuples && (call.operand_layouts.is_some() || !call.output_operand_aliases.is_empty()) {
                return Err(unsupported("tuples with layouts or aliases cannot be replaced by their parts"));
            }
            Ok(None)
        }
        _ => Ok(None),
    }
}
