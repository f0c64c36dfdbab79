//! Which dimensions of an operation's operands and results are cut together.

use crate::compile::lower::{is_along_the_last_dimension, parameters};
use crate::compile::propagate::kept_by_reshape;
use pjrt_stablehlo::ir::{Attribute, Body, Op, OpCode, Operation, Trait, ops};

/// How an operation may run on parts: dimensions that belong to one factor are cut alike, and those without one are not cut.
pub(super) struct Rule {
    /// For each operand and each of its dimensions, the factor.
    pub(super) operands: Vec<Vec<Option<usize>>>,
    /// The same for results.
    pub(super) results: Vec<Vec<Option<usize>>>,
    /// Number of factors.
    pub(super) factors: usize,
    /// Factors that results lack: where these are cut, partitions have parts of the reduction by this operation.
    pub(super) reduced: Vec<usize>,
    /// How these combine.
    pub(super) by: OpCode,
}

/// Sizes of an operation's operands, or results.
type Shapes<'a> = &'a [Vec<usize>];

impl Rule {
    fn new(operands: Shapes<'_>, results: Shapes<'_>) -> Self {
        let none = |shapes: Shapes<'_>| shapes.iter().map(|dims| vec![None; dims.len()]).collect();
        Self {
            operands: none(operands),
            results: none(results),
            factors: 0,
            reduced: vec![],
            by: OpCode::Add,
        }
    }

    /// Adds a factor of these dimensions, given as positions of arrays and of dimensions in them.
    fn factor(
        &mut self,
        operands: impl IntoIterator<Item = (usize, usize)>,
        results: impl IntoIterator<Item = (usize, usize)>,
    ) -> usize {
        let factor = self.factors;
        self.factors += 1;
        for (array, dim) in operands {
            self.operands[array][dim] = Some(factor);
        }
        for (array, dim) in results {
            self.results[array][dim] = Some(factor);
        }
        factor
    }

    /// Adds a factor for each of these dimensions of all arrays that have the rank of the first result.
    fn alike(&mut self, rank: usize, keep: impl Fn(usize) -> bool) {
        for dim in (0..rank).filter(|dim| keep(*dim)) {
            let with = |arrays: &[Vec<Option<usize>>]| {
                (0..arrays.len()).filter(|i| arrays[*i].len() == rank).map(|i| (i, dim)).collect::<Vec<_>>()
            };
            let (operands, results) = (with(&self.operands), with(&self.results));
            self.factor(operands, results);
        }
    }
}

/// Positions in a program's list of dimensions.
fn list(dims: &[i64]) -> Vec<usize> {
    dims.iter().map(|dim| *dim as usize).collect()
}

/// The rule of an operation; `None` where it needs its operands whole.
///
/// `operands` and `results` are the sizes of its arrays; of what is no tensor they are empty. `reducer` is what the region of
/// a reduction does to its two arguments, if it is one operation.
pub(super) fn rule(
    op: &Operation,
    operands: Shapes<'_>,
    results: Shapes<'_>,
    reducer: Option<OpCode>,
) -> Option<Rule> {
    let mut rule = Rule::new(operands, results);
    let rank = results.first().map_or(0, Vec::len);
    match &op.kind {
        _ if op.info().has(Trait::Elementwise) => rule.alike(rank, |_| true),
        Op::Map(_) => rule.alike(rank, |_| true),
        Op::Composite(o) if is_along_the_last_dimension(&o.name) => rule.alike(rank, |dim| dim + 1 < rank),
        // The others that are no calls of their decompositions are elementwise.
        Op::Composite(_) => rule.alike(rank, |_| true),
        Op::BitcastConvert(_) => {
            let common = rank.min(operands[0].len());
            for dim in (0..common).filter(|dim| operands[0][*dim] == results[0][*dim]) {
                rule.factor([(0, dim)], [(0, dim)]);
            }
        }
        Op::Constant(_) | Op::Iota(_) => rule.alike(rank, |_| true),
        Op::BroadcastInDim(o) => {
            let to = list(&o.broadcast_dimensions);
            for (dim, size) in results[0].iter().enumerate() {
                let from = to.iter().position(|j| *j == dim);
                let from = from.filter(|i| operands[0][*i] == *size);
                rule.factor(from.map(|i| (0, i)), [(0, dim)]);
            }
        }
        Op::Reshape(_) => {
            for (i, j) in kept_by_reshape(&operands[0], &results[0]) {
                rule.factor([(0, i)], [(0, j)]);
            }
        }
        Op::Transpose(o) => {
            for (j, i) in list(&o.permutation).into_iter().enumerate() {
                rule.factor([(0, i)], [(0, j)]);
            }
        }
        Op::Reduce(o) => reduce(&mut rule, operands, &list(&o.dimensions), reducer),
        Op::DotGeneral(o) => dot(&mut rule, o),
        Op::Convolution(o) => convolution(&mut rule, o),
        Op::Slice(o) => {
            let whole = |dim: usize| o.start_indices[dim] == 0 && operands[0][dim] == results[0][dim];
            rule.alike(rank, whole);
        }
        Op::Reverse(o) => rule.alike(rank, |dim| !o.dimensions.contains(&(dim as i64))),
        Op::Pad(o) => {
            let no = |numbers: &[i64], dim: usize| numbers[dim] == 0;
            rule.alike(rank, |dim| {
                no(&o.edge_padding_low, dim) && no(&o.edge_padding_high, dim) && no(&o.interior_padding, dim)
            });
            if rank == 0 {
                return None;
            }
        }
        Op::Concatenate(o) => rule.alike(rank, |dim| dim as i64 != o.dimension),
        Op::DynamicSlice(_) => {
            for dim in (0..rank).filter(|dim| operands[0][*dim] == results[0][*dim]) {
                rule.factor([(0, dim)], [(0, dim)]);
            }
        }
        Op::DynamicUpdateSlice(_) => {
            for dim in (0..rank).filter(|dim| operands[0][*dim] == operands[1][*dim]) {
                rule.factor([(0, dim), (1, dim)], [(0, dim)]);
            }
        }
        Op::Gather(o) => gather(&mut rule, o, operands, results),
        Op::Scatter(o) => scatter(&mut rule, o, operands, reducer)?,
        Op::Sort(o) => {
            let dim = if o.dimension < 0 { o.dimension + rank as i64 } else { o.dimension };
            rule.alike(rank, |d| d as i64 != dim);
        }
        Op::Fft(o) => rule.alike(rank, |dim| dim + o.fft_length.len() < rank),
        Op::Cholesky(_) => rule.alike(rank, |dim| dim + 2 < rank),
        Op::TriangularSolve(o) => {
            rule.alike(rank, |dim| dim + 2 < rank);
            // Every column of the right side is a system of its own, or every row.
            let free = if o.left_side { rank - 1 } else { rank - 2 };
            rule.factor([(1, free)], [(0, free)]);
        }
        Op::ReduceWindow(o) => {
            let single = |dim: usize| {
                o.window_dimensions[dim] == 1
                    && o.window_strides.get(dim).is_none_or(|n| *n == 1)
                    && o.base_dilations.get(dim).is_none_or(|n| *n == 1)
                    && o.padding.get(dim).is_none_or(|n| *n == [0, 0])
            };
            rule.alike(rank, single);
        }
        Op::SelectAndScatter(o) => {
            let single = |dim: usize| {
                o.window_dimensions.get(dim).is_none_or(|n| *n == 1)
                    && o.window_strides.get(dim).is_none_or(|n| *n == 1)
                    && o.padding.get(dim).is_none_or(|n| *n == [0, 0])
            };
            rule.alike(rank, single);
        }
        Op::OptimizationBarrier(_) => {
            for (array, dims) in results.iter().enumerate() {
                for dim in 0..dims.len() {
                    rule.factor([(array, dim)], [(array, dim)]);
                }
            }
        }
        Op::AllReduce(_) => {
            for (array, dims) in results.iter().enumerate() {
                for dim in 0..dims.len() {
                    rule.factor([(array, dim)], [(array, dim)]);
                }
            }
        }
        Op::CustomCall(o) => custom_call(&mut rule, op, o, operands, results)?,
        _ => return None,
    }
    Some(rule)
}

/// What an operation's region does to its two arguments, if that is one operation that parts can be reduced by.
pub(super) fn reducer(body: &Body, op: &Operation) -> Option<OpCode> {
    let [region] = op.regions[..] else { return None };
    let [block] = body.region(region).blocks[..] else { return None };
    let block = body.block(block);
    let [combine, end] = block.ops[..] else { return None };
    let (combine, end) = (body.op(combine), body.op(end));
    let mut used = combine.operands.to_vec();
    used.sort_unstable();
    let is_all = used == block.arguments && *end.operands == [combine.results.get(0)?];
    Some(combine.kind.code()).filter(|code| is_all && is_reduction(*code))
}

fn is_reduction(code: OpCode) -> bool {
    use OpCode::{Add, And, Maximum, Minimum, Multiply, Or};
    matches!(code, Add | And | Maximum | Minimum | Multiply | Or)
}

fn reduce(rule: &mut Rule, operands: Shapes<'_>, gone: &[usize], reducer: Option<OpCode>) {
    let inputs = operands.len() / 2;
    let mut kept = 0;
    for dim in 0..operands[0].len() {
        let of_inputs = (0..inputs).map(|i| (i, dim));
        if !gone.contains(&dim) {
            rule.factor(of_inputs, (0..inputs).map(|i| (i, kept)));
            kept += 1;
        } else if let Some(by) = reducer.filter(|_| inputs == 1) {
            let factor = rule.factor(of_inputs, []);
            rule.reduced.push(factor);
            rule.by = by;
        }
    }
}

fn dot(rule: &mut Rule, o: &ops::DotGeneral) {
    let numbers = &o.dot_dimension_numbers;
    let (lhs_batch, rhs_batch) =
        (list(&numbers.lhs_batching_dimensions), list(&numbers.rhs_batching_dimensions));
    let (lhs_contract, rhs_contract) =
        (list(&numbers.lhs_contracting_dimensions), list(&numbers.rhs_contracting_dimensions));
    let mut result = 0..;
    for (l, r) in lhs_batch.iter().zip(&rhs_batch) {
        rule.factor([(0, *l), (1, *r)], result.next().map(|j| (0, j)));
    }
    for (operand, taken) in [(0, [&lhs_batch, &lhs_contract]), (1, [&rhs_batch, &rhs_contract])] {
        for dim in 0..rule.operands[operand].len() {
            if taken.iter().all(|taken| !taken.contains(&dim)) {
                rule.factor([(operand, dim)], result.next().map(|j| (0, j)));
            }
        }
    }
    for (l, r) in lhs_contract.iter().zip(&rhs_contract) {
        let factor = rule.factor([(0, *l), (1, *r)], []);
        rule.reduced.push(factor);
    }
}

fn convolution(rule: &mut Rule, o: &ops::Convolution) {
    let numbers = &o.dimension_numbers;
    let at = |dim: i64| dim as usize;
    if o.batch_group_count != 1 {
        return;
    }
    rule.factor([(0, at(numbers.input_batch_dimension))], [(0, at(numbers.output_batch_dimension))]);
    if o.feature_group_count != 1 {
        return;
    }
    let output = (0, at(numbers.output_feature_dimension));
    rule.factor([(1, at(numbers.kernel_output_feature_dimension))], [output]);
    let inputs = [(0, at(numbers.input_feature_dimension)), (1, at(numbers.kernel_input_feature_dimension))];
    let factor = rule.factor(inputs, []);
    rule.reduced.push(factor);
}

fn gather(rule: &mut Rule, o: &ops::Gather, operands: Shapes<'_>, results: Shapes<'_>) {
    let numbers = &o.dimension_numbers;
    let (offsets, vector) = (list(&numbers.offset_dims), numbers.index_vector_dim as usize);
    let batching = list(&numbers.operand_batching_dims);
    let indices_batching = list(&numbers.start_indices_batching_dims);
    let collapsed = list(&numbers.collapsed_slice_dims);
    let batch = (0..results[0].len()).filter(|j| !offsets.contains(j));
    for (i, j) in (0..operands[1].len()).filter(|dim| *dim != vector).zip(batch) {
        // A batching dimension of the indices is one of the operand too.
        let of_operand = indices_batching.iter().position(|dim| *dim == i).map(|at| (0, batching[at]));
        rule.factor([(1, i)].into_iter().chain(of_operand), [(0, j)]);
    }
    let windows = (0..operands[0].len()).filter(|d| !collapsed.contains(d) && !batching.contains(d));
    for (i, j) in windows.zip(&offsets) {
        if o.slice_sizes[i] as usize == operands[0][i] {
            rule.factor([(0, i)], [(0, *j)]);
        }
    }
}

fn scatter(rule: &mut Rule, o: &ops::Scatter, operands: Shapes<'_>, reducer: Option<OpCode>) -> Option<()> {
    let numbers = &o.scatter_dimension_numbers;
    let inputs = (operands.len() - 1) / 2;
    let (windows, vector) = (list(&numbers.update_window_dims), numbers.index_vector_dim as usize);
    let batching = list(&numbers.input_batching_dims);
    let indices_batching = list(&numbers.scatter_indices_batching_dims);
    let inserted = list(&numbers.inserted_window_dims);
    let updates = operands.last()?;
    let of_updates = (0..updates.len()).filter(|j| !windows.contains(j));
    for (i, j) in (0..operands[inputs].len()).filter(|dim| *dim != vector).zip(of_updates) {
        let Some(at) = indices_batching.iter().position(|dim| *dim == i) else {
            // Each partition makes some of the updates; what these give is reduced.
            if let Some(by) = reducer.filter(|by| inputs == 1 && *by != OpCode::Multiply) {
                let factor = rule.factor([(1, i), (2, j)], []);
                rule.reduced.push(factor);
                rule.by = by;
            }
            continue;
        };
        let arrays = (0..inputs).flat_map(|k| [(k, batching[at]), (inputs + 1 + k, j)]);
        rule.factor(arrays.chain([(inputs, i)]), (0..inputs).map(|k| (k, batching[at])));
    }
    let kept = (0..operands[0].len()).filter(|d| !inserted.contains(d) && !batching.contains(d));
    for (i, j) in kept.zip(&windows).filter(|(i, j)| operands[0][*i] == updates[**j]) {
        let arrays = (0..inputs).flat_map(|k| [(k, i), (inputs + 1 + k, *j)]);
        rule.factor(arrays, (0..inputs).map(|k| (k, i)));
    }
    Some(())
}

/// Calls that give their operand and say where it is to be.
const PLACES: &[&str] = &[
    "annotate_device_placement",
    "LayoutConstraint",
    "MoveToHost",
    "MoveToDevice",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
];

/// Calls that compute every element of a batch for itself.
fn custom_call(
    rule: &mut Rule,
    op: &Operation,
    call: &ops::CustomCall,
    operands: Shapes<'_>,
    results: Shapes<'_>,
) -> Option<()> {
    let most = operands.iter().map(Vec::len).max()?;
    // What JAX says of a call that any partitioner may cut along its first dimensions.
    let said = op.attributes.get("mhlo.frontend_attributes").and_then(Attribute::as_dictionary);
    let said = said.and_then(|said| said.get("num_batch_dims")).and_then(Attribute::as_str);
    let target = &*call.call_target_name;
    let rank = results.first().map_or(0, Vec::len);
    if PLACES.contains(&target) && operands == results {
        rule.alike(rank, |_| true);
        return Some(());
    }
    if target == "ApproxTopK" {
        let dim = parameters(op, call).and_then(|d| d.get("reduction_dim")).and_then(Attribute::as_i64)?;
        let dim = if dim < 0 { dim + rank as i64 } else { dim };
        rule.alike(rank, |d| d as i64 != dim);
        return Some(());
    }
    let batch = match said.and_then(|said| said.parse().ok()) {
        Some(batch) => batch,
        None if target == "refcpu.lu_pivots_to_permutation" => most.checked_sub(1)?,
        None if is_linear_algebra(target) => most.checked_sub(2)?,
        None => return None,
    };
    for dim in 0..batch {
        let size = *operands.iter().find(|dims| dims.len() == most)?.get(dim)?;
        let with = |arrays: Shapes<'_>| {
            let all = (0..arrays.len()).map(|i| (i, dim)).collect::<Vec<_>>();
            arrays.iter().all(|dims| dims.get(dim) == Some(&size)).then_some(all)
        };
        rule.factor(with(operands)?, with(results)?);
    }
    Some(())
}

fn is_linear_algebra(target: &str) -> bool {
    target.starts_with("lapack_")
        || target.starts_with("refcpu.")
        || matches!(target, "Qr" | "ProductOfElementaryHouseholderReflectors")
}

/// Operands of which an operation may be given addends of the array, all spread alike: it gives the addends of its result.
///
/// `widens` says of a conversion that every element stays the number that it is.
pub(super) fn linear_in(op: &Operation, reducer: Option<OpCode>, widens: bool) -> Vec<usize> {
    let all: Vec<usize> = (0..op.operands.len()).collect();
    match &op.kind {
        Op::Add(_) | Op::Subtract(_) | Op::Negate(_) => all,
        Op::Convert(_) if widens => all,
        Op::Concatenate(_) | Op::Real(_) | Op::Imag(_) | Op::Complex(_) => all,
        Op::Reshape(_) | Op::Transpose(_) | Op::BroadcastInDim(_) | Op::Slice(_) | Op::Reverse(_) => all,
        Op::DynamicSlice(_) | Op::Gather(_) => vec![0],
        Op::DynamicUpdateSlice(_) => vec![0, 1],
        Op::Select(_) => vec![1, 2],
        Op::Reduce(_) if reducer == Some(OpCode::Add) && op.operands.len() == 2 => vec![0],
        _ => vec![],
    }
}
