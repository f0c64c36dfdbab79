//! Refinement of result types from those of the operands.

use super::rewriter::Rewriter;
use crate::infer::{Context, Inferred, Shape, results};
use crate::ir::{OpId, Operation, TensorType, Type};
use crate::{Error, ErrorKind};

impl Rewriter<'_> {
    /// Refines the types of an operation's results from its operands and regions. `chosen` may return the shape of a
    /// result with a declared type.
    pub(crate) fn narrow(
        &mut self,
        id: OpId,
        chosen: impl Fn(&Self, &Operation, &TensorType, usize) -> Option<TensorType>,
    ) -> Result<(), Error> {
        let body = &self.b.body;
        let op = body.op(id);
        if !op.results.iter().any(|value| is_dynamic(body.ty(value))) {
            return Ok(());
        }
        let in_op = |error: Error| error.in_op(op.kind.name(), &op.location);
        let rules = results(&Context { module: self.module, body, op }).map_err(in_op)?;
        let mut refined = Vec::new();
        for (index, (value, rule)) in op.results.iter().zip(rules).enumerate() {
            let Type::Tensor(declared) = body.ty(value) else {
                if let Inferred::Type(ty) = rule.inferred {
                    refined.push((value, ty));
                }
                continue;
            };
            let found = match rule.inferred {
                Inferred::Type(Type::Tensor(tensor)) => Some(tensor),
                Inferred::Shape { dims, .. } => Some(declared.with_dims(dims)),
                _ => chosen(self, op, declared, index),
            };
            let Some(found) = found else { continue };
            let ty = meet(declared, &found).ok_or_else(|| {
                let message =
                    format!("result {index} has the declared type {declared}, which does not agree with the inferred type {found}");
                invalid(message).in_op(op.kind.name(), &op.location)
            })?;
            refined.push((value, ty.into()));
        }
        for (value, ty) in refined {
            self.b.body.set_type(value, ty);
        }
        self.known.get_mut().note(&self.b.body, id);
        Ok(())
    }
}

/// Combines the declared and the inferred type of a tensor: the element type of the first, and the sizes that either of
/// them states.
pub(crate) fn meet(declared: &TensorType, found: &TensorType) -> Option<TensorType> {
    if !declared.is_dynamic() {
        return Some(declared.clone());
    }
    let mut shape = Shape::of(declared);
    shape.intersect(found).then(|| shape.like(declared))
}

/// Returns `true` if a type or one of its parts has a dynamic size.
pub(crate) fn is_dynamic(ty: &Type) -> bool {
    match ty {
        Type::Tensor(tensor) => tensor.is_dynamic(),
        Type::Tuple(parts) | Type::Future(parts) => parts.iter().any(is_dynamic),
        _ => false,
    }
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, message)
}
