//! The values and types of the new body that correspond to those of the old body.

use std::sync::Arc;

use super::errors::{definite, unsupported};
use super::rewriter::{Frame, Rewriter, Values};
use crate::Error;
use crate::ir::{Body, DictionaryAttribute, Function, Operation, TensorType, Type, ValueId};

impl<'m> Rewriter<'m> {
    /// Copies the attributes of a replaced operation to the new operation that computes its results.
    pub(crate) fn keep_attributes(&mut self, op: &Operation, values: &[ValueId], first_new: usize) {
        let Some(&first) = values.first().filter(|_| !op.attributes.is_empty()) else { return };
        if let Some(id) = self.b.body.defining_op(first)
            && id.index() >= first_new
            && self.b.body.op(id).results.eq(values.iter().copied())
        {
            self.b.body.op_mut(id).attributes = op.attributes.clone();
        }
    }

    /// Records the values of the new body that replace the results of an operation.
    pub(crate) fn bind(&mut self, op: &Operation, values: Vec<ValueId>) {
        let activation = self.frame().activation;
        let mut rest = values.into_iter();
        for result in op.results {
            let ty = self.activations[activation].function.body.ty(result);
            let values = match self.leaf_count(ty) {
                1 => rest.next().map(Values::One),
                count => Some(Values::Many(rest.by_ref().take(count).collect())),
            };
            self.activations[activation].values[result.index()] = values;
        }
    }

    pub(super) fn frame(&self) -> &Frame<'m> {
        self.frames.last().expect("an operation is in a block that is being copied")
    }

    /// Returns the index of the function that is being copied.
    pub(crate) fn function_index(&self) -> usize {
        self.activations[self.frame().activation].index
    }

    /// Returns the old body that is being copied.
    pub(crate) fn old_body(&self) -> &'m Body {
        let function: &'m Function = self.activations[self.frame().activation].function;
        &function.body
    }

    /// Returns the type of a value of the old body.
    pub(crate) fn old_type(&self, value: ValueId) -> &'m Type {
        self.old_body().ty(value)
    }

    /// Returns the values of the new body that replace values of the old body.
    pub(crate) fn flat(&self, values: &[ValueId]) -> Vec<ValueId> {
        let map = &self.activations[self.frame().activation].values;
        let found = values
            .iter()
            .map(|value| map[value.index()].as_ref().expect("values are defined before they are used"));
        found.flat_map(Values::as_slice).copied().collect()
    }

    /// Returns the operands of an operation, which must be `N` tensors of static shape.
    pub(crate) fn operands<const N: usize>(&self, op: &Operation) -> Result<[ValueId; N], Error> {
        let values = self.tensors(op)?;
        for &value in &values {
            definite(&self.b.tensor(value))?;
        }
        <[ValueId; N]>::try_from(values)
            .map_err(|values| unsupported(format!("expected {N} operands, found {}", values.len())))
    }

    /// Returns the operands of an operation, which must be tensors.
    pub(crate) fn tensors(&self, op: &Operation) -> Result<Vec<ValueId>, Error> {
        let values = self.flat(&op.operands);
        for (index, &value) in values.iter().enumerate() {
            let ty = self.b.body.ty(value);
            if ty.as_tensor().is_none() {
                return Err(unsupported(format!("operand {index}: expected a tensor, found {ty}")));
            }
        }
        Ok(values)
    }

    /// Returns the type of the first result, which must be a tensor.
    pub(crate) fn any_result(&self, op: &Operation) -> Result<TensorType, Error> {
        self.nth_result(op, 0)
    }

    /// Returns the type of a result, which must be a tensor.
    pub(crate) fn nth_result(&self, op: &Operation, index: usize) -> Result<TensorType, Error> {
        let ty = op.results.get(index).map(|result| self.old_type(result));
        match ty {
            Some(Type::Tensor(tensor)) => Ok(tensor.clone()),
            Some(other) => Err(unsupported(format!("result {index}: expected a tensor, found {other}"))),
            None => Err(unsupported(format!(
                "the operation has no result {index}; it has {} results",
                op.results.len()
            ))),
        }
    }

    /// Returns the type of the first result, which must be a tensor of static shape.
    pub(crate) fn result(&self, op: &Operation) -> Result<TensorType, Error> {
        let ty = self.any_result(op)?;
        definite(&ty)?;
        Ok(ty)
    }

    /// Returns the elements of a small tensor of integers of the new body, if they are known.
    pub(crate) fn known(&self, value: ValueId) -> Option<Arc<[i64]>> {
        self.known.borrow_mut().get(&self.b.body, value)
    }

    /// Returns the elements of a value of the new body, which must be a small constant of integers.
    pub(crate) fn constant_integers(&self, value: ValueId, what: &str) -> Result<Arc<[i64]>, Error> {
        self.known(value).ok_or_else(|| {
            unsupported(format!(
                "{what} is not a constant, so the shapes of the program depend on its data; compile the program \
                 with static shapes"
            ))
        })
    }

    /// Returns the types of an operation's results in the new body.
    pub(crate) fn result_types(&self, op: &Operation) -> Vec<Type> {
        op.results.flat_map(|result| self.convert(self.old_type(result))).collect()
    }

    /// Returns the types of the values that replace a value of this type.
    pub(super) fn convert(&self, ty: &Type) -> Vec<Type> {
        self.pass.converted(ty).unwrap_or_else(|| vec![ty.clone()])
    }

    pub(super) fn convert_all(&self, types: &[Type]) -> Vec<Type> {
        types.iter().flat_map(|ty| self.convert(ty)).collect()
    }

    /// Returns `true` if calls of functions are inlined.
    pub(crate) fn inlines_calls(&self) -> bool {
        self.pass.inlines_calls()
    }

    /// Returns the number of values that replace a value of this type.
    pub(crate) fn leaf_count(&self, ty: &Type) -> usize {
        self.pass.converted(ty).map_or(1, |parts| parts.len())
    }

    /// Returns the attributes of arguments or results, repeated for each part of a tuple.
    pub(super) fn spread(
        &self,
        attributes: &[DictionaryAttribute],
        types: &[Type],
    ) -> Vec<DictionaryAttribute> {
        let each = attributes.iter().zip(types);
        each.flat_map(|(attributes, ty)| std::iter::repeat_n(attributes.clone(), self.leaf_count(ty)))
            .collect()
    }
}
