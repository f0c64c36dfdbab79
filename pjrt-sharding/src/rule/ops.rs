//! The table of sharding rules by operation.

use super::{CallRule, FactorKind, Padding, RuleBuilder, ShardingRule, begins_with_neutral, reducer};
use FactorKind::{NeedReplication, PassThrough, Permutation, Reduction};
use pjrt_stablehlo::ir::{Attribute, Body, Op, OpCode, Operation, Trait, Type, ValueId, ops};

/// Composites that operate along the last dimension of their arrays. The other composites of CHLO are elementwise.
const ALONG_THE_LAST_DIMENSION: &[&str] = &["chlo.top_k"];

/// Custom calls that return their operands, and state or query their placement.
const PLACES: &[&str] = &[
    "annotate_device_placement",
    "InspectSharding",
    "LayoutConstraint",
    "MoveToDevice",
    "MoveToHost",
    "Sharding",
];

/// Returns whether a call only constrains the order of execution: it keeps its operands alive, or orders their computations.
pub(crate) fn is_about_order(op: &Operation, call: &ops::CustomCall) -> bool {
    op.results.is_empty() && matches!(&*call.call_target_name, "dce_sink" | "control_dep")
}

/// Returns the dimensions of values, which are empty for a value that is not a tensor; `None` if the dimensions of a tensor are
/// not static.
pub(crate) fn shapes(body: &Body, values: impl Iterator<Item = ValueId>) -> Option<Vec<Vec<usize>>> {
    values
        .map(|value| match body.ty(value) {
            Type::Tensor(ty) => ty.static_dims()?.iter().map(|dim| usize::try_from(*dim).ok()).collect(),
            _ => Some(vec![]),
        })
        .collect()
}

/// Returns the rule for propagation through an operation: the rule that the program states for it, or else the rule of the table.
pub(crate) fn propagation_rule(body: &Body, op: &Operation, calls: CallRule) -> Option<ShardingRule> {
    let operands = shapes(body, op.operands.iter().copied())?;
    let results = shapes(body, op.results.iter())?;
    ShardingRule::of_attribute(op, &operands, &results)
        .or_else(|| of_op(body, op, &operands, &results, calls))
}

/// Returns the rule by which an operation can run on parts; `None` if it needs its operands whole. A rule that the program
/// states for a custom call does not count, because it does not define the call on parts.
pub(crate) fn rule_of(body: &Body, op: &Operation, calls: CallRule) -> Option<ShardingRule> {
    let operands = shapes(body, op.operands.iter().copied())?;
    let results = shapes(body, op.results.iter())?;
    of_op(body, op, &operands, &results, calls)
}

/// The state of building the rule of one operation.
struct Rule<'a> {
    body: &'a Body,
    op: &'a Operation,
    /// The dimensions of each operand.
    operands: &'a [Vec<usize>],
    /// The dimensions of each result.
    results: &'a [Vec<usize>],
    builder: RuleBuilder<'a>,
}

fn of_op(
    body: &Body,
    op: &Operation,
    operands: &[Vec<usize>],
    results: &[Vec<usize>],
    calls: CallRule,
) -> Option<ShardingRule> {
    let mut rule = Rule { body, op, operands, results, builder: RuleBuilder::new(operands, results) };
    let rank = results.first().map_or(0, Vec::len);
    match &op.kind {
        Op::CustomCall(o) => {
            if let Some(rule) = calls(op, operands, results) {
                return Some(rule);
            }
            rule.custom_call(o)?;
        }
        Op::DotGeneral(_) | Op::Convolution(_) => rule.product(),
        Op::Reduce(_) | Op::ReduceWindow(_) | Op::SelectAndScatter(_) => rule.reduction(),
        Op::Gather(_) | Op::Scatter(_) | Op::DynamicSlice(_) | Op::DynamicUpdateSlice(_) => {
            rule.indexing()?
        }
        Op::Sort(o) => {
            let dim = if o.dimension < 0 { o.dimension + rank as i64 } else { o.dimension };
            rule.kept(|d| d as i64 != dim);
        }
        Op::Fft(o) => rule.kept(|dim| dim + o.fft_length.len() < rank),
        Op::Cholesky(_) => rule.kept(|dim| dim + 2 < rank),
        Op::TriangularSolve(o) => {
            rule.kept(|dim| dim + 2 < rank);
            // Each column of the right-hand side, or each row for `left_side = false`, is an independent system.
            let free = if o.left_side { rank - 1 } else { rank - 2 };
            rule.builder.factor(PassThrough, [(1, free)], [(0, free)]);
        }
        _ => rule.movement_or_pointwise(rank)?,
    }
    Some(rule.finish())
}

/// Converts dimension numbers of the program to indices.
fn list(dims: &[i64]) -> Vec<usize> {
    dims.iter().map(|dim| *dim as usize).collect()
}

impl Rule<'_> {
    fn finish(self) -> ShardingRule {
        let Self { op, builder, .. } = self;
        let mut rule = builder.finish();
        if let (Op::Scatter(_), [_, indices, _]) = (&op.kind, &mut rule.padding[..]) {
            // Neutral updates have no effect, wherever their indices point.
            *indices = Padding::Any;
        }
        rule
    }

    /// Adds pass-through factors for these dimensions of all tensors with the rank and sizes of the first result.
    fn kept(&mut self, keep: impl Fn(usize) -> bool) {
        self.builder.pointwise(|dim| keep(dim).then_some(PassThrough));
    }

    /// Does the same, and adds factors of another kind for the other dimensions of equal sizes.
    fn kept_or(&mut self, other: FactorKind, keep: impl Fn(usize) -> bool) {
        self.builder.pointwise(|dim| Some(if keep(dim) { PassThrough } else { other }));
    }

    /// Adds a pass-through factor for each dimension of each result and of the operand with the same index.
    fn each_alike(&mut self) {
        for (tensor, dims) in self.results.iter().enumerate() {
            for dim in 0..dims.len() {
                self.builder.factor(PassThrough, [(tensor, dim)], [(tensor, dim)]);
            }
        }
    }

    fn movement_or_pointwise(&mut self, rank: usize) -> Option<()> {
        match &self.op.kind {
            Op::Composite(o) if ALONG_THE_LAST_DIMENSION.contains(&&*o.name) => {
                self.kept(|dim| dim + 1 < rank)
            }
            Op::Composite(_) | Op::Map(_) | Op::Constant(_) | Op::Iota(_) => self.kept(|_| true),
            Op::OptimizationBarrier(_) | Op::AllReduce(_) => self.each_alike(),
            Op::BroadcastInDim(o) => {
                let to = list(&o.broadcast_dimensions);
                for (dim, size) in self.results[0].iter().enumerate() {
                    let from = to.iter().position(|j| *j == dim);
                    let from = from.filter(|i| self.operands[0][*i] == *size);
                    self.builder.factor(PassThrough, from.map(|i| (0, i)), [(0, dim)]);
                }
            }
            Op::Reshape(_) => {
                for (i, j) in kept_by_reshape(&self.operands[0], &self.results[0]) {
                    self.builder.factor(PassThrough, [(0, i)], [(0, j)]);
                }
            }
            Op::Transpose(o) => {
                for (j, i) in list(&o.permutation).into_iter().enumerate() {
                    self.builder.factor(PassThrough, [(0, i)], [(0, j)]);
                }
            }
            // A slice that keeps the size of a dimension begins at its first element.
            Op::Slice(_) => self.kept(|_| true),
            Op::BitcastConvert(_) => {
                for dim in 0..rank.min(self.operands[0].len()) {
                    if self.operands[0][dim] == self.results[0][dim] {
                        self.builder.factor(PassThrough, [(0, dim)], [(0, dim)]);
                    }
                }
            }
            Op::Reverse(o) => self.kept_or(Permutation, |dim| !o.dimensions.contains(&(dim as i64))),
            Op::Pad(o) => {
                let no = |numbers: &[i64], dim: usize| numbers[dim] == 0;
                self.kept_or(Permutation, |dim| {
                    no(&o.edge_padding_low, dim)
                        && no(&o.edge_padding_high, dim)
                        && no(&o.interior_padding, dim)
                });
            }
            Op::Concatenate(o) => self.kept_or(NeedReplication, |dim| dim as i64 != o.dimension),
            _ if self.op.info().has(Trait::Elementwise) => self.kept(|_| true),
            _ => return None,
        }
        Some(())
    }

    fn product(&mut self) {
        match &self.op.kind {
            Op::DotGeneral(o) => self.dot(o),
            Op::Convolution(o) => self.convolution(o),
            _ => {}
        }
    }

    fn dot(&mut self, o: &ops::DotGeneral) {
        let numbers = &o.dot_dimension_numbers;
        let (lhs_batch, rhs_batch) =
            (list(&numbers.lhs_batching_dimensions), list(&numbers.rhs_batching_dimensions));
        let (lhs_contract, rhs_contract) =
            (list(&numbers.lhs_contracting_dimensions), list(&numbers.rhs_contracting_dimensions));
        let mut result = 0..;
        for (l, r) in lhs_batch.iter().zip(&rhs_batch) {
            self.builder.factor(PassThrough, [(0, *l), (1, *r)], result.next().map(|j| (0, j)));
        }
        for (operand, taken) in [(0, [&lhs_batch, &lhs_contract]), (1, [&rhs_batch, &rhs_contract])] {
            for dim in 0..self.operands[operand].len() {
                if taken.iter().all(|taken| !taken.contains(&dim)) {
                    self.builder.factor(PassThrough, [(operand, dim)], result.next().map(|j| (0, j)));
                }
            }
        }
        for (l, r) in lhs_contract.iter().zip(&rhs_contract) {
            self.builder.factor(Reduction, [(0, *l), (1, *r)], []);
        }
        self.builder.reduced_by(OpCode::Add);
    }

    fn convolution(&mut self, o: &ops::Convolution) {
        let numbers = &o.dimension_numbers;
        let at = |dim: i64| dim as usize;
        if o.batch_group_count == 1 {
            let output = (0, at(numbers.output_batch_dimension));
            self.builder.factor(PassThrough, [(0, at(numbers.input_batch_dimension))], [output]);
        }
        let is_plain = o.batch_group_count == 1 && o.feature_group_count == 1;
        let output = (0, at(numbers.output_feature_dimension));
        let kernel = (1, at(numbers.kernel_output_feature_dimension));
        self.builder.factor(if is_plain { PassThrough } else { NeedReplication }, [kernel], [output]);
        if is_plain {
            let input = (0, at(numbers.input_feature_dimension));
            let kernel = (1, at(numbers.kernel_input_feature_dimension));
            self.builder.factor(Reduction, [input, kernel], []);
            self.builder.reduced_by(OpCode::Add);
        }
    }

    fn reduction(&mut self) {
        match &self.op.kind {
            Op::Reduce(o) => self.reduce(&list(&o.dimensions)),
            Op::ReduceWindow(o) => self.kept(|dim| {
                o.window_dimensions[dim] == 1
                    && o.window_strides.get(dim).is_none_or(|n| *n == 1)
                    && o.base_dilations.get(dim).is_none_or(|n| *n == 1)
                    && o.padding.get(dim).is_none_or(|n| *n == [0, 0])
            }),
            Op::SelectAndScatter(o) => self.kept(|dim| {
                o.window_dimensions.get(dim).is_none_or(|n| *n == 1)
                    && o.window_strides.get(dim).is_none_or(|n| *n == 1)
                    && o.padding.get(dim).is_none_or(|n| *n == [0, 0])
            }),
            _ => {}
        }
    }

    fn reduce(&mut self, gone: &[usize]) {
        let inputs = self.operands.len() / 2;
        let reducer = reducer(self.body, self.op)
            .filter(|reducer| inputs == 1 && begins_with_neutral(self.body, self.op, *reducer));
        let mut kept = 0;
        for dim in 0..self.operands[0].len() {
            let of_inputs = (0..inputs).map(|i| (i, dim));
            if gone.contains(&dim) {
                self.builder.factor(
                    if reducer.is_some() { Reduction } else { NeedReplication },
                    of_inputs,
                    [],
                );
            } else {
                self.builder.factor(PassThrough, of_inputs, (0..inputs).map(|i| (i, kept)));
                kept += 1;
            }
        }
        if let Some(reducer) = reducer {
            self.builder.reduced_by(reducer);
        }
    }

    fn indexing(&mut self) -> Option<()> {
        match &self.op.kind {
            Op::DynamicSlice(_) => {
                for dim in
                    (0..self.results[0].len()).filter(|dim| self.operands[0][*dim] == self.results[0][*dim])
                {
                    self.builder.factor(PassThrough, [(0, dim)], [(0, dim)]);
                }
            }
            Op::DynamicUpdateSlice(_) => {
                for dim in 0..self.results[0].len() {
                    if self.operands[0][dim] == self.operands[1][dim] {
                        self.builder.factor(PassThrough, [(0, dim), (1, dim)], [(0, dim)]);
                    } else {
                        self.builder.factor(NeedReplication, [(0, dim)], [(0, dim)]);
                    }
                }
            }
            Op::Gather(o) => self.gather(o),
            Op::Scatter(o) => self.scatter(o)?,
            _ => {}
        }
        Some(())
    }

    fn gather(&mut self, o: &ops::Gather) {
        let numbers = &o.dimension_numbers;
        let (offsets, vector) = (list(&numbers.offset_dims), numbers.index_vector_dim as usize);
        let batching = list(&numbers.operand_batching_dims);
        let indices_batching = list(&numbers.start_indices_batching_dims);
        let collapsed = list(&numbers.collapsed_slice_dims);
        let batch = (0..self.results[0].len()).filter(|j| !offsets.contains(j));
        for (i, j) in (0..self.operands[1].len()).filter(|dim| *dim != vector).zip(batch) {
            // A batching dimension of the indices is also one of the operand.
            let of_operand = indices_batching.iter().position(|dim| *dim == i).map(|at| (0, batching[at]));
            self.builder.factor(PassThrough, [(1, i)].into_iter().chain(of_operand), [(0, j)]);
        }
        let windows = (0..self.operands[0].len()).filter(|d| !collapsed.contains(d) && !batching.contains(d));
        for (i, j) in windows.zip(&offsets) {
            if o.slice_sizes[i] as usize == self.operands[0][i] {
                self.builder.factor(PassThrough, [(0, i)], [(0, *j)]);
            }
        }
    }

    fn scatter(&mut self, o: &ops::Scatter) -> Option<()> {
        let numbers = &o.scatter_dimension_numbers;
        let inputs = (self.operands.len() - 1) / 2;
        let (windows, vector) = (list(&numbers.update_window_dims), numbers.index_vector_dim as usize);
        let batching = list(&numbers.input_batching_dims);
        let indices_batching = list(&numbers.scatter_indices_batching_dims);
        let inserted = list(&numbers.inserted_window_dims);
        let updates = self.operands.last()?;
        let reducer = reducer(self.body, self.op).filter(|by| inputs == 1 && *by != OpCode::Multiply);
        let of_updates = (0..updates.len()).filter(|j| !windows.contains(j));
        for (i, j) in (0..self.operands[inputs].len()).filter(|dim| *dim != vector).zip(of_updates) {
            let updates = (0..inputs).map(|k| (inputs + 1 + k, j)).chain([(inputs, i)]);
            if let Some(at) = indices_batching.iter().position(|dim| *dim == i) {
                let of_inputs = || (0..inputs).map(|k| (k, batching[at]));
                self.builder.factor(PassThrough, of_inputs().chain(updates), of_inputs());
            } else if let Some(reducer) = reducer {
                // Each partition applies some of the updates, and the results are reduced.
                self.builder.factor(Reduction, updates, []);
                self.builder.reduced_by(reducer);
            }
        }
        let of_window: Vec<usize> =
            (0..self.operands[0].len()).filter(|d| !inserted.contains(d) && !batching.contains(d)).collect();
        for dim in (0..self.operands[0].len()).filter(|dim| !batching.contains(dim)) {
            let of_inputs = || (0..inputs).map(|k| (k, dim));
            let of_updates = of_window.iter().position(|d| *d == dim).map(|at| windows[at]);
            match of_updates.filter(|j| self.operands[0][dim] == updates[*j]) {
                Some(j) => {
                    let updates = (0..inputs).map(|k| (inputs + 1 + k, j));
                    self.builder.factor(PassThrough, of_inputs().chain(updates), of_inputs())
                }
                None => self.builder.factor(NeedReplication, of_inputs(), of_inputs()),
            };
        }
        Some(())
    }

    /// Adds the factors of a call that every compiler implements, or of one whose number of batch dimensions JAX states.
    fn custom_call(&mut self, call: &ops::CustomCall) -> Option<()> {
        if PLACES.contains(&&*call.call_target_name) && self.operands == self.results {
            self.each_alike();
            return Some(());
        }
        let said = self.op.attributes.get("mhlo.frontend_attributes").and_then(Attribute::as_dictionary)?;
        let batch = said.get("num_batch_dims").and_then(Attribute::as_str)?.parse().ok()?;
        self.builder.batch(batch).then_some(())
    }
}

/// Returns the pairs of dimensions whose parts stay in place: equal dimensions, and the major dimensions of those that the
/// reshape splits or merges.
fn kept_by_reshape(from: &[usize], to: &[usize]) -> Vec<(usize, usize)> {
    let (mut i, mut j, mut pairs) = (0, 0, Vec::new());
    if from.contains(&0) {
        return pairs;
    }
    while i < from.len() && j < to.len() {
        if from[i] == 1 || to[j] == 1 {
            (i, j) = if from[i] == 1 { (i + 1, j) } else { (i, j + 1) };
            continue;
        }
        pairs.push((i, j));
        let (mut left, mut right) = (from[i], to[j]);
        while left != right {
            if left < right {
                i += 1;
                left *= from[i];
            } else {
                j += 1;
                right *= to[j];
            }
        }
        (i, j) = (i + 1, j + 1);
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_equal_sizes_and_major_parts_keep_their_place_in_a_reshape() {
        assert_eq!(kept_by_reshape(&[8, 3], &[8, 3]), [(0, 0), (1, 1)]);
        assert_eq!(kept_by_reshape(&[2, 3, 4], &[6, 4]), [(0, 0), (2, 1)]);
        assert_eq!(kept_by_reshape(&[6, 1, 4], &[1, 2, 3, 4]), [(0, 1), (2, 3)]);
        assert!(kept_by_reshape(&[0, 4], &[4, 0]).is_empty());
    }
}
