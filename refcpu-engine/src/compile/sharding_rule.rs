//! Which dimensions of a custom call's operands and results can be cut together, as the program says (`sdy.sharding_rule`).

use pjrt_stablehlo::ir::{Attribute, Operation};

/// For each operand or result and each of its dimensions the factor of which it consists, or the first of several: the one that
/// a cut into parts cuts. `None` where a dimension may not be cut.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ShardingRule {
    pub(super) operands: Vec<Vec<Option<usize>>>,
    pub(super) results: Vec<Vec<Option<usize>>>,
    /// Number of factors.
    pub(super) factors: usize,
}

impl ShardingRule {
    /// The rule of an operation with arrays of these ranks, if it has one that fits them.
    pub(super) fn of(op: &Operation, operands: &[usize], results: &[usize]) -> Option<Self> {
        let Some(Attribute::Opaque(text)) = op.attributes.get("sdy.sharding_rule") else { return None };
        let fits = |arrays: &[Vec<Option<usize>>], ranks: &[usize]| {
            arrays.iter().map(Vec::len).eq(ranks.iter().copied())
        };
        Self::parse(text).filter(|rule| fits(&rule.operands, operands) && fits(&rule.results, results))
    }

    /// Reads a rule such as `sdy.op_sharding_rule<([i, kj], [k])->([i, j]) {i=4, j=2, k=8} reduction={k}, custom>`.
    fn parse(text: &str) -> Option<Self> {
        let mut reader = Reader { rest: text.strip_prefix("sdy.op_sharding_rule<")?, names: vec![] };
        let operands = reader.arrays()?;
        reader.eat("->").then_some(())?;
        let results = reader.arrays()?;
        // Their sizes are those of the arrays.
        reader.eat("{").then_some(())?;
        reader.rest = reader.rest.split_once('}')?.1;
        let mut whole = vec![];
        loop {
            let kind = ["reduction", "need_replication", "permutation", "blocked_propagation"]
                .into_iter()
                .find(|kind| reader.eat(kind));
            let Some(kind) = kind else { break };
            reader.eat("={").then_some(())?;
            while !reader.eat("}") {
                let factor = reader.factor()?;
                reader.eat(",");
                if matches!(kind, "need_replication" | "blocked_propagation") {
                    whole.push(factor);
                }
            }
        }
        let cut = |arrays: Vec<Vec<Option<usize>>>| -> Vec<Vec<Option<usize>>> {
            let dims = |dims: Vec<Option<usize>>| {
                dims.into_iter().map(|dim| dim.filter(|factor| !whole.contains(factor))).collect()
            };
            arrays.into_iter().map(dims).collect()
        };
        Some(Self { operands: cut(operands), results: cut(results), factors: reader.names.len() })
    }
}

struct Reader<'a> {
    rest: &'a str,
    /// The factors, in the order in which they came.
    names: Vec<&'a str>,
}

impl<'a> Reader<'a> {
    fn eat(&mut self, token: &str) -> bool {
        let Some(rest) = self.rest.trim_start().strip_prefix(token) else { return false };
        self.rest = rest;
        true
    }

    /// A letter, perhaps with a number: `i`, `z_1`.
    fn factor(&mut self) -> Option<usize> {
        let text = self.rest.trim_start();
        text.starts_with(|c: char| c.is_ascii_lowercase()).then_some(())?;
        let end = match text[1..].strip_prefix('_') {
            Some(number) => 2 + number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len()),
            None => 1,
        };
        let (name, rest) = text.split_at(end);
        self.rest = rest;
        let known = self.names.iter().position(|known| *known == name);
        Some(known.unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        }))
    }

    /// `([i, jk], [])`: the first factor of each dimension.
    fn arrays(&mut self) -> Option<Vec<Vec<Option<usize>>>> {
        let mut arrays = vec![];
        self.eat("(").then_some(())?;
        while !self.eat(")") {
            let mut dims = vec![];
            self.eat("[").then_some(())?;
            while !self.eat("]") {
                let first = if self.eat("*") { None } else { Some(self.factor()?) };
                while self.factor().is_some() {}
                dims.push(first);
                self.eat(",");
            }
            arrays.push(dims);
            self.eat(",");
        }
        Some(arrays)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_of_one_factor_are_cut_together_and_those_to_be_whole_are_not_cut() {
        let text = "sdy.op_sharding_rule<([i, kj], [k, z_1])->([i, j, *], []) {i=4, j=2, k=8, z_1=3} reduction={k} \
                    need_replication={z_1}, custom>";
        let expected = ShardingRule {
            operands: vec![vec![Some(0), Some(1)], vec![Some(1), None]],
            results: vec![vec![Some(0), Some(2), None], vec![]],
            factors: 4,
        };
        assert_eq!(ShardingRule::parse(text), Some(expected));
    }

    #[test]
    fn what_is_no_rule_says_nothing() {
        for text in [
            "",
            "sdy.op_sharding_rule<",
            "sdy.op_sharding_rule<([i])",
            "sdy.op_sharding_rule<([i])->([I]) {i=2}>",
        ] {
            assert_eq!(ShardingRule::parse(text), None, "{text}");
        }
    }
}
