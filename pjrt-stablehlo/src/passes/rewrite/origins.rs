//! Which operations of a program those of a rewritten one come from.

use crate::ir::{OpId, Str};

/// The operations of the program that those of a rewritten one are parts of: those that were decomposed.
#[derive(Default)]
pub(crate) struct Origins {
    /// Names of decomposed operations; what an operation has is one more than an index into them.
    names: Vec<Str>,
    /// For each function, by the index of an operation; where there is nothing, the operation is the program's own.
    pub(super) functions: Vec<Vec<u32>>,
}

impl Origins {
    /// The name of the operation that was decomposed into this one.
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
