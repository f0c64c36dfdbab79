//! Sharding rules: which dimensions of an operation's operands and results are split together.
//!
//! The terms are those of [Shardy](https://openxla.org/shardy/sdy_dialect). Every dimension consists of factors. A factor that
//! several tensors share is split in the same way in all of them. The matrix product `([i, k], [k, j]) -> ([i, j])` has two
//! pass-through factors, `i` and `j`, and one reduction factor, `k`, along which partial results are reduced.

mod ops;
mod reducer;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use ops::{is_about_order, propagation_rule, rule_of, shapes};
pub(crate) use reducer::{begins_with_neutral, combiner, reducer, reduction_by};

use pjrt_stablehlo::ir::{OpCode, Operation};

/// A function that returns the rule of a custom call with operands and results of these dimensions; `None` if the call needs
/// its operands whole. [`Options::call_rule`](crate::Options::call_rule) takes one.
///
/// ```
/// use pjrt_sharding::{CallRule, FactorKind, Options, RuleBuilder};
/// use pjrt_stablehlo::ir::Op;
///
/// // Calls of `square` are elementwise.
/// let call_rule: CallRule = |op, operands, results| {
///     let Op::CustomCall(call) = &op.kind else { return None };
///     let mut rule = RuleBuilder::new(operands, results);
///     rule.pointwise(|_| Some(FactorKind::PassThrough));
///     (&*call.call_target_name == "square").then(|| rule.finish())
/// };
/// let options = Options { num_partitions: 2, call_rule, ..Options::default() };
/// # let _ = options;
/// ```
pub type CallRule = fn(&Operation, &[Vec<usize>], &[Vec<usize>]) -> Option<ShardingRule>;

/// The sharding rule of an operation: the factors of its tensors, and what a split along each of them requires. [`RuleBuilder`]
/// makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardingRule {
    /// The factors that the dimensions consist of.
    pub factors: Vec<Factor>,
    /// For each operand and each of its dimensions, the indices in `factors` of its factors, the major one first.
    pub operands: Vec<TensorMapping>,
    /// For each result and each of its dimensions, the indices in `factors` of its factors, the major one first.
    pub results: Vec<TensorMapping>,
    /// For each operand, the value that may fill the last shard of an uneven split without changing the results.
    pub padding: Vec<Padding>,
    /// The operation that combines the partial results of reduction factors; `None` if there are none, or if the rule does not
    /// state it.
    pub reducer: Option<OpCode>,
}

/// For each dimension of a tensor, the indices of its factors in [`ShardingRule::factors`]. [`RuleBuilder`] has an example.
pub type TensorMapping = Vec<Vec<usize>>;

/// A factor of dimensions. [`RuleBuilder`] has an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Factor {
    /// The number of elements along the factor.
    pub size: usize,
    /// The requirement of the operation when its tensors are split along the factor.
    pub kind: FactorKind,
    /// `true` if propagation does not carry a split along the factor from one tensor to another.
    pub blocks_propagation: bool,
}

/// The requirement of an operation when its tensors are split along a factor. [`RuleBuilder`] has an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactorKind {
    /// None: each partition computes its part of the results from its parts of the operands.
    PassThrough,
    /// The partitions compute partial results, which an all-reduce combines.
    Reduction,
    /// Each partition needs all elements along the factor.
    NeedReplication,
    /// Each partition needs elements of other partitions' parts (a collective permute).
    Permutation,
}

/// The value that fills the part of an operand's shard that lies outside the array.
///
/// ```
/// use pjrt_sharding::Padding;
/// use pjrt_stablehlo::ir::OpCode;
///
/// assert_eq!(Padding::neutral(Some(OpCode::Maximum)), Padding::Lowest);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// Any value: no element of a result depends on it.
    Any,
    /// Zeros.
    Zero,
    /// Ones.
    One,
    /// The lowest value of the element type; minus infinity for floats.
    Lowest,
    /// The highest value of the element type; infinity for floats.
    Highest,
    /// Elements with all bits set.
    AllOnes,
    /// Unknown, because the rule does not state the operation that combines partial results.
    Unknown,
}

impl Padding {
    /// Returns the neutral element of a reduction by this operation; [`Padding::Unknown`] for other operations and for
    /// `None`.
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
    /// Returns whether tensors can be split along a factor with no communication other than a reduction of the results.
    pub fn can_be_cut(&self, factor: usize) -> bool {
        matches!(self.factors[factor].kind, FactorKind::PassThrough | FactorKind::Reduction)
    }

    /// Returns whether a factor is a pass-through factor of all tensors of rank 1 or more.
    pub fn is_batching(&self, factor: usize) -> bool {
        let has =
            |tensor: &TensorMapping| tensor.is_empty() || tensor.iter().any(|dim| dim.contains(&factor));
        self.factors[factor].kind == FactorKind::PassThrough
            && self.operands.iter().chain(&self.results).all(has)
    }

    /// Returns the reduction factors.
    pub(crate) fn reduction_factors(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.factors.len()).filter(|factor| self.factors[*factor].kind == FactorKind::Reduction)
    }
}

/// A builder of sharding rules, which adds one factor at a time.
///
/// ```
/// use pjrt_sharding::{FactorKind, RuleBuilder};
///
/// // The product of a 4x8 matrix and an 8x2 matrix.
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
    /// Begins the rule of an operation with operands and results of these dimensions.
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

    /// Adds a factor to these dimensions, which are pairs of a tensor's index and a dimension. In a dimension that already has
    /// factors, the new one is the minor one. The size of the factor is the greatest common divisor of those of the dimensions.
    /// Returns the index of the factor.
    pub fn factor(
        &mut self,
        kind: FactorKind,
        operands: impl IntoIterator<Item = (usize, usize)>,
        results: impl IntoIterator<Item = (usize, usize)>,
    ) -> usize {
        let (operands, results): (Vec<_>, Vec<_>) =
            (operands.into_iter().collect(), results.into_iter().collect());
        let of_operands = operands.iter().map(|(tensor, dim)| self.operands[*tensor][*dim]);
        let sizes = of_operands.chain(results.iter().map(|(tensor, dim)| self.results[*tensor][*dim]));
        let size = sizes.fold(0, common_divisor);
        self.factor_of_size(size, kind, operands, results)
    }

    /// Adds a factor of this size to these dimensions. If the size is that of none of them, as along a dimension that a slice
    /// shortens, the factor must not be one that tensors can be split along without communication.
    pub fn factor_of_size(
        &mut self,
        size: usize,
        kind: FactorKind,
        operands: impl IntoIterator<Item = (usize, usize)>,
        results: impl IntoIterator<Item = (usize, usize)>,
    ) -> usize {
        let number = self.rule.factors.len();
        for (tensor, dim) in operands {
            self.rule.operands[tensor][dim].push(number);
        }
        for (tensor, dim) in results {
            self.rule.results[tensor][dim].push(number);
        }
        self.rule.factors.push(Factor { size, kind, blocks_propagation: false });
        number
    }

    /// Adds one factor for each dimension of the first result for which `kind` returns a kind. The factor is in the same
    /// dimension of all tensors of the same rank and size. A pass-through factor is added only if all operands of this rank
    /// have that size.
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

    /// Adds a pass-through factor for each of the first `dims` dimensions, which are batch dimensions of all tensors.
    /// Returns `false`, and adds none, if the tensors differ in these sizes.
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

    /// Returns whether a factor of these dimensions of the first operand and the first result would be the major one of both.
    fn begins(&self, operand: Option<usize>, result: Option<usize>) -> bool {
        operand.is_none_or(|dim| self.rule.operands[0][dim].is_empty())
            && result.is_none_or(|dim| self.rule.results[0][dim].is_empty())
    }

    /// Excludes the major factor of a dimension of the first result from propagation.
    fn block(&mut self, dim: Option<usize>) {
        if let Some(factor) = dim.and_then(|dim| self.rule.results[0][dim].first()) {
            self.rule.factors[*factor].blocks_propagation = true;
        }
    }

    /// Sets the operation that combines partial results along reduction factors.
    pub fn reduced_by(&mut self, reducer: OpCode) {
        self.rule.reducer = Some(reducer);
    }

    /// Returns the rule. A dimension that its factors do not cover gets another factor, which needs replication, unless it has
    /// one that needs communication. Operands with reduction factors are padded with the neutral element.
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
                let known = tensors(&mut self.rule)[tensor][dim].clone();
                // The other factors need not have the size of the dimension.
                if !known.iter().all(|factor| self.rule.can_be_cut(*factor)) {
                    continue;
                }
                let product = known.iter().map(|factor| self.rule.factors[*factor].size).product::<usize>();
                let left = size.checked_div(product).unwrap_or(1);
                if left != 1 || known.is_empty() {
                    let number = self.rule.factors.len();
                    let kind = FactorKind::NeedReplication;
                    self.rule.factors.push(Factor { size: left, kind, blocks_propagation: false });
                    tensors(&mut self.rule)[tensor][dim].push(number);
                }
            }
        }
    }
}

/// Returns the greatest common divisor.
pub(crate) fn common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { common_divisor(b, a % b) }
}
