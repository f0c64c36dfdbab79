//! Names of values in scope.

use std::collections::HashMap;

use crate::ir::ValueId;

/// What a name stands for: consecutive values.
#[derive(Clone, Copy)]
pub(super) struct Named {
    pub(super) first: ValueId,
    pub(super) count: u32,
}

/// The names of the function that is being read.
#[derive(Default)]
pub(super) struct Scopes<'a> {
    names: HashMap<&'a str, Named>,
    /// Names in the order of their definitions, to forget when their regions end.
    defined: Vec<&'a str>,
    /// Where in `defined` each region that is being read begins.
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
