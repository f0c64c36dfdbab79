//! The names of values in scope.

use std::collections::HashMap;

use crate::ir::ValueId;

/// The values that a name refers to, which are consecutive.
#[derive(Clone, Copy)]
pub(super) struct Named {
    pub(super) first: ValueId,
    pub(super) count: u32,
}

/// The names in the function that is being read.
#[derive(Default)]
pub(super) struct Scopes<'a> {
    names: HashMap<&'a str, Named>,
    /// The names in the order of their definitions. They are removed at the end of their regions.
    defined: Vec<&'a str>,
    /// For each open region, the length of `defined` at its start.
    regions: Vec<usize>,
}

impl<'a> Scopes<'a> {
    pub(super) fn enter(&mut self) {
        self.regions.push(self.defined.len());
    }

    pub(super) fn leave(&mut self) {
        let start = self.regions.pop().unwrap_or(0);
        for name in self.defined.drain(start..) {
            self.names.remove(name);
        }
    }

    /// Names values until the region ends; returns `false` if the name was in scope already.
    pub(super) fn define(&mut self, name: &'a str, values: Named) -> bool {
        let is_new = self.names.insert(name, values).is_none();
        if is_new {
            self.defined.push(name);
        }
        is_new
    }

    pub(super) fn get(&self, name: &str) -> Option<Named> {
        self.names.get(name).copied()
    }
}
