//! The table of sharding rules by operation.

use super::{
    CallRule, FactorKind, Padding, RuleBuilder, ShardingRule, begins_with_neutral, common_divisor, reducer,
};
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
            rule.kept_or(NeedReplication, |d| d as i64 != dim);
            // The elements of a single row move between all partitions.
            let is_row = results[0].iter().enumerate().all(|(d, size)| d as i64 == dim || *size == 1);
            rule.builder.block(is_row.then_some(dim as usize));
        }
        Op::Fft(o) => {
            rule.resized(NeedReplication, |dim| dim + o.fft_length.len() < rank);
            let is_resized = operands[0].last() != results[0].last();
            rule.builder.block(is_resized.then_some(rank - 1));
        }
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

    /// Adds a factor for each dimension of the first operand and the first result, which have the same rank: a pass-through
    /// factor for the dimensions to keep, and one of another kind, of the operand's size, for the others.
    fn resized(&mut self, other: FactorKind, keep: impl Fn(usize) -> bool) {
        for (dim, size) in self.operands[0].iter().enumerate() {
            let kind = if keep(dim) { PassThrough } else { other };
            self.builder.factor_of_size(*size, kind, [(0, dim)], [(0, dim)]);
        }
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
                self.kept_or(NeedReplication, |dim| dim + 1 < rank)
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
            Op::Reshape(_) => self.reshape(),
            Op::Transpose(o) => {
                for (j, i) in list(&o.permutation).into_iter().enumerate() {
                    self.builder.factor(PassThrough, [(0, i)], [(0, j)]);
                }
            }
            // A slice that keeps the size of a dimension begins at its first element.
            Op::Slice(_) => self.resized(Permutation, |dim| self.operands[0][dim] == self.results[0][dim]),
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
                self.resized(Permutation, |dim| {
                    no(&o.edge_padding_low, dim)
                        && no(&o.edge_padding_high, dim)
                        && no(&o.interior_padding, dim)
                });
            }
            Op::Concatenate(o) => self.concatenate(o.dimension as usize),
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
        let lhs = |dim: i64| Some((0, dim as usize));
        let rhs = |dim: i64| Some((1, dim as usize));
        let out = |dim: i64| Some((0, dim as usize));
        let (groups, batch_groups) = (o.feature_group_count as usize, o.batch_group_count as usize);
        let is_plain = groups == 1 && batch_groups == 1;
        // The partitions of a convolution with groups need all of its features.
        let kind = |plain: FactorKind| if is_plain { plain } else { NeedReplication };
        let (batch, features) = (lhs(numbers.input_batch_dimension), lhs(numbers.input_feature_dimension));
        let outputs = rhs(numbers.kernel_output_feature_dimension);
        let (to_batch, to_features) =
            (out(numbers.output_batch_dimension), out(numbers.output_feature_dimension));
        let builder = &mut self.builder;
        if batch_groups > 1 {
            builder.factor_of_size(
                batch_groups,
                NeedReplication,
                batch.into_iter().chain(outputs),
                to_features,
            );
        }
        let size = self.results[0][numbers.output_batch_dimension as usize];
        let batch_kind = if batch_groups == 1 { PassThrough } else { NeedReplication };
        builder.factor_of_size(size, batch_kind, batch, to_batch);
        let spatial = numbers.input_spatial_dimensions.iter().zip(&*numbers.kernel_spatial_dimensions);
        for ((from, window), to) in spatial.zip(&*numbers.output_spatial_dimensions) {
            let (size, windows) = (self.operands[1][*window as usize], self.results[0][*to as usize]);
            // Partitions along the windows exchange the elements at their borders; those along the elements of a window reduce
            // partial sums as well. The larger one of the two determines the split.
            if windows >= size {
                let size = windows.min(self.operands[0][*from as usize]);
                builder.factor_of_size(size, Permutation, lhs(*from), out(*to));
            } else {
                let size = size.min(self.operands[0][*from as usize]);
                builder.factor_of_size(size, NeedReplication, lhs(*from).into_iter().chain(rhs(*window)), []);
            }
        }
        if groups > 1 {
            builder.factor_of_size(groups, NeedReplication, features.into_iter().chain(outputs), to_features);
        }
        let inputs = rhs(numbers.kernel_input_feature_dimension);
        let size = self.operands[1][numbers.kernel_input_feature_dimension as usize];
        builder.factor_of_size(size, kind(Reduction), features.into_iter().chain(inputs), []);
        let size = self.results[0][numbers.output_feature_dimension as usize] / (groups * batch_groups);
        if size > 1 || is_plain {
            builder.factor_of_size(size, kind(PassThrough), outputs, to_features);
        }
        if is_plain {
            builder.reduced_by(OpCode::Add);
        }
    }

    /// Adds the factors of the windows of the first operands, one for each result.
    fn windows(&mut self, is_kept: impl Fn(usize) -> bool) {
        for (dim, size) in self.results[0].iter().enumerate() {
            let all = || (0..self.results.len()).map(|tensor| (tensor, dim));
            let kind = if is_kept(dim) { PassThrough } else { Permutation };
            self.builder.factor_of_size(*size, kind, all(), all());
        }
    }

    fn concatenate(&mut self, along: usize) {
        for (dim, size) in self.results[0].iter().enumerate() {
            let kind = if dim == along { Permutation } else { PassThrough };
            let operands = (0..self.operands.len()).map(|tensor| (tensor, dim));
            self.builder.factor_of_size(*size, kind, operands, [(0, dim)]);
        }
    }

    /// Adds the factors that the operand and the result of a reshape have in common. Partitions need all elements along a factor
    /// that is not the major one of a dimension.
    fn reshape(&mut self) {
        for (size, from, to) in factors_of_reshape(&self.operands[0], &self.results[0]) {
            let is_major = self.builder.begins(from, to);
            let kind = if is_major && from.is_some() && to.is_some() { PassThrough } else { NeedReplication };
            self.builder.factor_of_size(size, kind, from.map(|dim| (0, dim)), to.map(|dim| (0, dim)));
        }
    }

    fn reduction(&mut self) {
        match &self.op.kind {
            Op::Reduce(o) => self.reduce(&list(&o.dimensions)),
            Op::ReduceWindow(o) => self.windows(|dim| {
                o.window_dimensions[dim] == 1
                    && o.window_strides.get(dim).is_none_or(|n| *n == 1)
                    && o.base_dilations.get(dim).is_none_or(|n| *n == 1)
                    && o.padding.get(dim).is_none_or(|n| *n == [0, 0])
            }),
            Op::SelectAndScatter(o) => {
                for (dim, size) in self.results[0].iter().enumerate() {
                    let is_kept = o.window_dimensions.get(dim).is_none_or(|n| *n == 1)
                        && o.window_strides.get(dim).is_none_or(|n| *n == 1)
                        && o.padding.get(dim).is_none_or(|n| *n == [0, 0]);
                    let kind = if is_kept { PassThrough } else { Permutation };
                    let source = is_kept.then_some((1, dim));
                    self.builder.factor_of_size(
                        *size,
                        kind,
                        [(0, dim)].into_iter().chain(source),
                        [(0, dim)],
                    );
                }
            }
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
            } else {
                self.builder.factor(NeedReplication, updates, []);
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

/// Returns the factors of the dimensions before and after a reshape, in order: the size of each, and the dimensions that contain
/// it.
fn factors_of_reshape(from: &[usize], to: &[usize]) -> Vec<(usize, Option<usize>, Option<usize>)> {
    let mut factors = vec![];
    if from.contains(&0) {
        return factors;
    }
    let (mut i, mut j) = (0, 0);
    // The sizes of what is left of the current dimensions, and the products of the factors so far.
    let (mut left, mut right) = (1, 1);
    let (mut before, mut after) = (1, 1);
    while i < from.len() || j < to.len() {
        if i < from.len() && from[i] == 1 {
            factors.push((1, Some(i), None));
            i += 1;
            continue;
        }
        if j < to.len() && to[j] == 1 {
            factors.push((1, None, Some(j)));
            j += 1;
            continue;
        }
        if left == 1 {
            left = from.get(i).copied().unwrap_or(1);
        }
        if right == 1 {
            right = to.get(j).copied().unwrap_or(1);
        }
        let common = common_divisor(left, right);
        if before == after && common > 1 {
            factors.push((common, Some(i), Some(j)));
            (left, right, before, after) = (left / common, right / common, before * common, after * common);
            i += usize::from(left == 1);
            j += usize::from(right == 1);
        } else if before <= after {
            // Factors without a counterpart, until the products are equal again.
            let size = if before == after { left } else { separate(left, common, before, after) };
            factors.push((size, Some(i), None));
            (left, before) = (left / size, before * size);
            i += usize::from(left == 1);
        } else {
            let size = separate(right, common, after, before);
            factors.push((size, None, Some(j)));
            (right, after) = (right / size, after * size);
            j += usize::from(right == 1);
        }
    }
    factors
}

/// Returns the size of the next factor without a counterpart: one that makes the products of the factors equal if there is one, or
/// else one that leaves the common divisor to the factors after it.
fn separate(left: usize, common: usize, product: usize, other: usize) -> usize {
    if other.is_multiple_of(product) && left.is_multiple_of(other / product) {
        other / product
    } else if left > common {
        left / common
    } else {
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reshape_keeps_the_factors_that_its_dimensions_have_in_common() {
        let both = |size, i, j| (size, Some(i), Some(j));
        assert_eq!(factors_of_reshape(&[8, 3], &[8, 3]), [both(8, 0, 0), both(3, 1, 1)]);
        assert_eq!(factors_of_reshape(&[2, 3, 4], &[6, 4]), [both(2, 0, 0), both(3, 1, 0), both(4, 2, 1)]);
        assert_eq!(
            factors_of_reshape(&[6, 1, 4], &[1, 2, 3, 4]),
            [(1, None, Some(0)), both(2, 0, 1), both(3, 0, 2), (1, Some(1), None), both(4, 2, 3)]
        );
        assert_eq!(
            factors_of_reshape(&[2, 3], &[3, 2]),
            [(2, Some(0), None), (3, None, Some(0)), (3, Some(1), None), (2, None, Some(1))]
        );
        assert!(factors_of_reshape(&[0, 4], &[4, 0]).is_empty());
    }
}
