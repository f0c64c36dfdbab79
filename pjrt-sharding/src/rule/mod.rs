//! Sharding rules: which dimensions of an operation's operands and results are cut together.
//!
//! The terms are those of [Shardy](https://openxla.org/shardy/sdy_dialect): every dimension consists of factors, and a factor
//! that several tensors share is cut alike in all of them. The product of matrices `([i, k], [k, j]) -> ([i, j])` has two
//! pass-through factors, and one, `k`, along which partial results are reduced.

mod ops;
mod reducer;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use ops::{is_about_order, propagation_rule, rule_of, shapes};
pub(crate) use reducer::{begins_with_neutral, reducer};

use pjrt_stablehlo::ir::{OpCode, Operation};

/// Returns the rule of a custom call with operands and results of these sizes; `None` if it needs its operands whole.
pub type CallRule = fn(&Operation, &[Vec<usize>], &[Vec<usize>]) -> Option<ShardingRule>;

/// How an operation can run on parts of its tensors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardingRule {
    /// The factors that dimensions consist of.
    pub factors: Vec<Factor>,
    /// For each operand and each of its dimensions the factors that it consists of, the major one first.
    pub operands: Vec<TensorMapping>,
    /// The same for results.
    pub results: Vec<TensorMapping>,
    /// For each operand, what the last shard of an uneven split is filled up with so that the result does not change.
    pub padding: Vec<Padding>,
    /// The operation by which partial results combine that reduction factors leave; `None` where there are none, or where the
    /// rule does not say.
    pub reducer: Option<OpCode>,
}

/// The factors of each dimension of a tensor.
pub type TensorMapping = Vec<Vec<usize>>;

/// A factor of dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Factor {
    /// Number of elements.
    pub size: usize,
    /// What an operation needs whose tensors are cut along it.
    pub kind: FactorKind,
    /// Whether a cut along it is not spread from one tensor to another.
    pub blocks_propagation: bool,
}

/// What an operation needs whose tensors are cut along a factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactorKind {
    /// Nothing: partitions compute their parts of the results from their parts of the operands.
    PassThrough,
    /// Partitions compute partial results, which are reduced.
    Reduction,
    /// Partitions need the whole of it.
    NeedReplication,
    /// Partitions need parts of others (a collective permute).
    Permutation,
}

/// What an operand's shard is filled up with where there are no elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// Anything: no element of a result depends on it.
    Any,
    /// Zeros.
    Zero,
    /// Ones.
    One,
    /// The lowest element of the type, which is minus infinity for floats.
    Lowest,
    /// The highest element of the type.
    Highest,
    /// Elements of which every bit is one.
    AllOnes,
    /// The rule does not say by which operation partial results combine, so there is nothing known to be neutral.
    Unknown,
}

impl Padding {
    /// Returns the neutral element of a reduction.
    pub fn neutral(reducer: Option<OpCode>) -> Self {
        match reducer {
            Some(OpCode::Add | OpCode::Or) => Self::Zero,
            Some(OpCode::Multiply) => Self::One,
            Some(OpCode::Maximum) => Self::Lowest,
            Some(OpCode::Minimum) => Self::Highest,
            Some(OpCode::And) => Self::AllOnes,
            _ => Self::Unknown,
        }
    }
}

impl ShardingRule {
    /// Whether tensors can be cut along a factor with no other communication than a reduction of results.
    pub fn can_be_cut(&self, factor: usize) -> bool {
        matches!(self.factors[factor].kind, FactorKind::PassThrough | FactorKind::Reduction)
    }

    /// Whether a factor is a pass-through factor of all tensors that have dimensions.
    pub fn is_batching(&self, factor: usize) -> bool {
        let has =
            |tensor: &TensorMapping| tensor.is_empty() || tensor.iter().any(|dim| dim.contains(&factor));
        self.factors[factor].kind == FactorKind::PassThrough
            && self.operands.iter().chain(&self.results).all(has)
    }

    /// The factors along which operands may be cut and results are partial then.
    pub(crate) fn reduction_factors(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.factors.len()).filter(|factor| self.factors[*factor].kind == FactorKind::Reduction)
    }
}

/// Makes a rule, factor by factor.
///
/// ```
/// use pjrt_sharding::{FactorKind, RuleBuilder};
///
/// // The product of matrices of 4 by 8 and of 8 by 2 elements.
/// let (operands, results) = ([vec![4, 8], vec![8, 2]], [vec![4, 2]]);
/// let mut rule = RuleBuilder::new(&operands, &results);
/// rule.factor(FactorKind::PassThrough, [(0, 0)], [(0, 0)]);
/// rule.factor(FactorKind::PassThrough, [(1, 1)], [(0, 1)]);
/// rule.factor(FactorKind::Reduction, [(0, 1), (1, 0)], []);
/// let rule = rule.finish();
/// assert_eq!(rule.operands, [[[0], [2]], [[2], [1]]]);
/// assert_eq!(rule.factors[2].size, 8);
/// ```
pub struct RuleBuilder<'a> {
    operands: &'a [Vec<usize>],
    results: &'a [Vec<usize>],
    rule: ShardingRule,
}

impl<'a> RuleBuilder<'a> {
    /// Begins the rule of an operation with operands and results of these sizes.
    pub fn new(operands: &'a [Vec<usize>], results: &'a [Vec<usize>]) -> Self {
        let none = |shapes: &[Vec<usize>]| shapes.iter().map(|dims| vec![vec![]; dims.len()]).collect();
        let rule = ShardingRule {
            factors: vec![],
            operands: none(operands),
            results: none(results),
            padding: vec![],
            reducer: None,
        };
        Self { operands, results, rule }
    }

    /// Adds a factor of these dimensions, given as positions of tensors and of dimensions in them, as a minor one where they have
    /// others. Returns its number.
    pub fn factor(
        &mut self,
        kind: FactorKind,
        operands: impl IntoIterator<Item = (usize, usize)>,
        results: impl IntoIterator<Item = (usize, usize)>,
    ) -> usize {
        let number = self.rule.factors.len();
        let mut size = 0;
        for (tensor, dim) in operands {
            self.rule.operands[tensor][dim].push(number);
            size = common_divisor(size, self.operands[tensor][dim]);
        }
        for (tensor, dim) in results {
            self.rule.results[tensor][dim].push(number);
            size = common_divisor(size, self.results[tensor][dim]);
        }
        self.rule.factors.push(Factor { size, kind, blocks_propagation: false });
        number
    }

    /// Adds a factor for each dimension of the first result that `kind` gives one for: of the same dimension of all tensors that
    /// have its rank and its size. A pass-through factor needs all operands of its rank to have that size.
    pub fn pointwise(&mut self, kind: impl Fn(usize) -> Option<FactorKind>) {
        let Some(first) = self.results.first() else { return };
        for (dim, size) in first.iter().enumerate() {
            let Some(kind) = kind(dim) else { continue };
            let is_other = |dims: &Vec<usize>| dims.len() == first.len() && dims[dim] != *size;
            if kind == FactorKind::PassThrough && self.operands.iter().any(is_other) {
                continue;
            }
            let with = |tensors: &[Vec<usize>]| -> Vec<(usize, usize)> {
                let has = |i: &usize| tensors[*i].len() == first.len() && tensors[*i][dim] == *size;
                (0..tensors.len()).filter(has).map(|i| (i, dim)).collect()
            };
            self.factor(kind, with(self.operands), with(self.results));
        }
    }

    /// Adds a factor for each of the first dimensions of all tensors, which count members of a batch. Returns false where they
    /// have other sizes.
    pub fn batch(&mut self, dims: usize) -> bool {
        let (operands, results) = (self.operands, self.results);
        let all = || operands.iter().chain(results);
        let Some(largest) = all().max_by_key(|dims| dims.len()) else { return false };
        if (0..dims)
            .any(|dim| largest.get(dim).is_none() || all().any(|dims| dims.get(dim) != largest.get(dim)))
        {
            return false;
        }
        for dim in 0..dims {
            let with = |tensors: &[Vec<usize>]| (0..tensors.len()).map(|i| (i, dim)).collect::<Vec<_>>();
            self.factor(FactorKind::PassThrough, with(operands), with(results));
        }
        true
    }

    /// Sets the operation by which partial results combine along reduction factors.
    pub fn reduced_by(&mut self, reducer: OpCode) {
        self.rule.reducer = Some(reducer);
    }

    /// Returns the rule. What is left of dimensions are factors of their own that need replication; operands that have reduction
    /// factors are padded with the neutral element.
    pub fn finish(mut self) -> ShardingRule {
        self.complete(self.operands, |rule| &mut rule.operands);
        self.complete(self.results, |rule| &mut rule.results);
        let mut rule = self.rule;
        let is_reduced = |factor: &usize| rule.factors[*factor].kind == FactorKind::Reduction;
        let padding = |operand: &TensorMapping| match operand.iter().flatten().any(is_reduced) {
            true => Padding::neutral(rule.reducer),
            false => Padding::Any,
        };
        rule.padding = rule.operands.iter().map(padding).collect();
        rule
    }

    fn complete(&mut self, shapes: &[Vec<usize>], tensors: fn(&mut ShardingRule) -> &mut Vec<TensorMapping>) {
        for (tensor, dims) in shapes.iter().enumerate() {
            for (dim, size) in dims.iter().enumerate() {
                let known = &tensors(&mut self.rule)[tensor][dim];
                let known =
                    known.clone().iter().map(|factor| self.rule.factors[*factor].size).product::<usize>();
                let left = size.checked_div(known).unwrap_or(1);
                if left != 1 || tensors(&mut self.rule)[tensor][dim].is_empty() {
                    let number = self.rule.factors.len();
                    let kind = FactorKind::NeedReplication;
                    self.rule.factors.push(Factor { size: left, kind, blocks_propagation: false });
                    tensors(&mut self.rule)[tensor][dim].push(number);
                }
            }
        }
    }
}

fn common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { common_divisor(b, a % b) }
}
