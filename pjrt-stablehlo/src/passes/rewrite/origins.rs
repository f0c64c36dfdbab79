//! The operations of a program that those of a rewritten program come from.

use crate::ir::{OpId, Str};

/// For the operations of a rewritten program, the operation of the original program that was decomposed into them.
#[derive(Default)]
pub(crate) struct Origins {
    /// The names of decomposed operations. Operations refer to them by index plus one.
    names: Vec<Str>,
    /// For each function, the references by index of the operation. Operations without a reference belong to the
    /// original program.
    pub(super) functions: Vec<Vec<u32>>,
}

impl Origins {
    /// Returns the name of the operation that was decomposed into this one.
    pub(crate) fn name(&self, function: usize, op: OpId) -> Option<&Str> {
        let origin = *self.functions.get(function)?.get(op.index())?;
        self.names.get((origin as usize).checked_sub(1)?)
    }

    pub(crate) fn number(&mut self, name: &str) -> u32 {
        let known = self.names.iter().position(|known| **known == *name);
        let index = known.unwrap_or_else(|| {
            self.names.push(name.into());
            self.names.len() - 1
        });
        index as u32 + 1
    }
}
