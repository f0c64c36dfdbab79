//! Parses the rules that a program states for its custom calls (`sdy.sharding_rule`).

use super::{Factor, FactorKind, Padding, ShardingRule, TensorMapping};
use pjrt_stablehlo::ir::{Attribute, Operation};

impl ShardingRule {
    /// Returns the rule that the program states for an operation with tensors of these dimensions; `None` if it states none, or
    /// one that does not fit the tensors.
    pub(crate) fn of_attribute(
        op: &Operation,
        operands: &[Vec<usize>],
        results: &[Vec<usize>],
    ) -> Option<Self> {
        let Some(Attribute::Opaque(text)) = op.attributes.get("sdy.sharding_rule") else { return None };
        let fits = |tensors: &[TensorMapping], shapes: &[Vec<usize>]| {
            tensors.iter().map(Vec::len).eq(shapes.iter().map(Vec::len))
        };
        Self::parse(text).filter(|rule| fits(&rule.operands, operands) && fits(&rule.results, results))
    }

    /// Parses a rule such as `sdy.op_sharding_rule<([i, kj], [k])->([i, j]) {i=4, j=2, k=8} reduction={k}, custom>`.
    fn parse(text: &str) -> Option<Self> {
        let mut reader = Reader { rest: text.strip_prefix("sdy.op_sharding_rule<")?, names: vec![] };
        let operands = reader.tensors()?;
        reader.eat("->").then_some(())?;
        let results = reader.tensors()?;
        let factor = Factor { size: 1, kind: FactorKind::PassThrough, blocks_propagation: false };
        let mut factors = vec![factor; reader.names.len()];
        reader.eat("{").then_some(())?;
        while !reader.eat("}") {
            let factor = reader.factor()?;
            reader.eat("=").then_some(())?;
            factors.get_mut(factor)?.size = reader.number()?;
            reader.eat(",");
        }
        let kinds = ["reduction", "need_replication", "permutation", "blocked_propagation"];
        while let Some(kind) = kinds.into_iter().find(|kind| reader.eat(kind)) {
            reader.eat("={").then_some(())?;
            while !reader.eat("}") {
                let factor = reader.factor()?;
                let factor = factors.get_mut(factor)?;
                match kind {
                    "reduction" => factor.kind = FactorKind::Reduction,
                    "need_replication" => factor.kind = FactorKind::NeedReplication,
                    "permutation" => factor.kind = FactorKind::Permutation,
                    _ => factor.blocks_propagation = true,
                }
                reader.eat(",");
            }
        }
        let is_reduced = |factor: &usize| factors[*factor].kind == FactorKind::Reduction;
        let padding = |operand: &TensorMapping| match operand.iter().flatten().any(is_reduced) {
            true => Padding::Unknown,
            false => Padding::Any,
        };
        let padding = operands.iter().map(padding).collect();
        Some(Self { factors, operands, results, padding, reducer: None })
    }
}

struct Reader<'a> {
    rest: &'a str,
    /// The names of the factors, in order of first appearance.
    names: Vec<&'a str>,
}

impl<'a> Reader<'a> {
    fn eat(&mut self, token: &str) -> bool {
        let Some(rest) = self.rest.trim_start().strip_prefix(token) else { return false };
        self.rest = rest;
        true
    }

    fn number(&mut self) -> Option<usize> {
        let text = self.rest.trim_start();
        let (number, rest) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
        self.rest = rest;
        number.parse().ok()
    }

    /// Reads a factor: a letter, optionally with a number, such as `i` or `z_1`.
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

    /// Reads the factors of each dimension of a list of tensors, such as `([i, jk], [])`.
    fn tensors(&mut self) -> Option<Vec<TensorMapping>> {
        let mut tensors = vec![];
        self.eat("(").then_some(())?;
        while !self.eat(")") {
            let mut dims = vec![];
            self.eat("[").then_some(())?;
            while !self.eat("]") {
                let mut factors = vec![];
                if !self.eat("*") {
                    factors.push(self.factor()?);
                }
                while let Some(factor) = self.factor() {
                    factors.push(factor);
                }
                dims.push(factors);
                self.eat(",");
            }
            tensors.push(dims);
            self.eat(",");
        }
        Some(tensors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_says_the_kind_of_every_factor() {
        let text = "sdy.op_sharding_rule<([i, kj], [k, z_1])->([i, j, *], []) {i=4, j=2, k=8, z_1=3} reduction={k} \
                    need_replication={z_1} blocked_propagation={i}, custom>";
        let rule = ShardingRule::parse(text).unwrap();
        assert_eq!(rule.operands, [[vec![0], vec![1, 2]], [vec![1], vec![3]]]);
        assert_eq!(rule.results, [vec![vec![0], vec![2], vec![]], vec![]]);
        let factor = |size, kind| Factor { size, kind, blocks_propagation: false };
        let expected = [
            Factor { blocks_propagation: true, ..factor(4, FactorKind::PassThrough) },
            factor(8, FactorKind::Reduction),
            factor(2, FactorKind::PassThrough),
            factor(3, FactorKind::NeedReplication),
        ];
        assert_eq!(rule.factors, expected);
        assert_eq!(rule.padding, [Padding::Unknown, Padding::Unknown]);
    }

    #[test]
    fn what_is_no_rule_says_nothing() {
        for text in [
            "",
            "sdy.op_sharding_rule<",
            "sdy.op_sharding_rule<([i])",
            "sdy.op_sharding_rule<([i])->([I]) {i=2}>",
            "sdy.op_sharding_rule<([i])->([i]) {i}>",
            "sdy.op_sharding_rule<([i])->([i]) {i=2} reduction={k}>",
        ] {
            assert_eq!(ShardingRule::parse(text), None, "{text}");
        }
    }
}
