//! The order of operations in reports: those that others decompose into come first.

use std::collections::{BTreeMap, BTreeSet};

use pjrt_stablehlo::passes::decompositions;

/// The name of the operation of programs that return their arguments.
pub(super) const IDENTITY: &str = "identity";

/// The operation that spreads scalars over arrays, which most programs of other operations contain.
pub(super) const BROADCAST: &str = "broadcast_in_dim";

/// The operations whose programs come first, because those of other operations depend on them.
const FIRST: [&str; 2] = [IDENTITY, BROADCAST];

/// The operations that each operation may be decomposed into, by name without the dialect.
pub(crate) struct Order(BTreeMap<&'static str, Vec<&'static str>>);

impl Order {
    /// Reads the decompositions of `pjrt_stablehlo`.
    pub(crate) fn new() -> Self {
        let mut all = BTreeMap::new();
        for rule in decompositions() {
            // CHLO's functions come last, and some have the names of operations that they are decomposed into.
            all.entry(without_dialect(rule.op)).or_insert_with(|| names(rule.into));
        }
        Order(all)
    }

    /// Returns the operations that an operation may be decomposed into, directly or by way of others.
    pub(super) fn parts(&self, op: &str) -> BTreeSet<&'static str> {
        let mut found = BTreeSet::new();
        let mut open: Vec<&'static str> = self.0.get(op).cloned().unwrap_or_default();
        while let Some(part) = open.pop() {
            if part != op && found.insert(part) {
                open.extend(self.0.get(part).into_iter().flatten());
            }
        }
        found
    }

    /// Returns the key by which operations are sorted: those that all others depend on, then those with fewer parts.
    pub(crate) fn key<'a>(&self, op: &'a str) -> (usize, usize, &'a str) {
        let place = FIRST.iter().position(|first| *first == op).unwrap_or(FIRST.len());
        (place, self.parts(op).len(), op)
    }
}

/// Returns the names of operations in a description, which are in backquotes.
fn names(text: &'static str) -> Vec<&'static str> {
    text.split('`').skip(1).step_by(2).map(without_dialect).collect()
}

fn without_dialect(name: &'static str) -> &'static str {
    name.rsplit_once('.').map_or(name, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_comes_after_those_that_it_is_decomposed_into() {
        let order = Order::new();
        let mut names = [
            "tan",
            "erf",
            "add",
            "broadcast_in_dim",
            "identity",
            "asin",
            "sine",
            "atan2",
            "multiply",
            "exponential",
        ];
        names.sort_by_key(|op| order.key(op));
        let place = |op: &str| names.iter().position(|name| *name == op);
        assert_eq!((place("identity"), place("broadcast_in_dim")), (Some(0), Some(1)));
        for (whole, part) in [("tan", "sine"), ("erf", "exponential"), ("asin", "atan2"), ("erf", "multiply")]
        {
            assert!(place(whole) > place(part), "{names:?}");
        }
        assert!(order.parts("acosh").contains("exponential"), "by way of sqrt");
    }
}
