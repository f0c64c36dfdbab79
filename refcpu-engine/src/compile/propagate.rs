//! How arrays are split that the program does not say it of: as those that they are computed from, or with.
//!
//! An operation relates dimensions of its operands and results: all arrays of an elementwise sum can be split alike. What
//! the program says is spread along such relations until nothing changes, first through operations that move no element,
//! then through all. Where two splits of an array contradict each other, the first in the program's order stays.

use crate::graph::{Graph, ManualSpec, Node, Op, ValueId, ops};
use crate::plan::Sharding;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// How a dimension is split: the part that each partition has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Cut {
    pub(super) parts: usize,
    pub(super) of_partition: Rc<[usize]>,
}

/// What is known about an array.
#[derive(Clone, Debug)]
pub(super) struct Split {
    pub(super) dims: Vec<Option<Cut>>,
    /// Dimensions whose split may not change.
    pub(super) closed: Vec<bool>,
}

impl Split {
    /// An array of this rank, of which nothing is known.
    pub(super) fn open(rank: usize) -> Self {
        Self { dims: vec![None; rank], closed: vec![false; rank] }
    }

    /// An array that every partition has whole.
    pub(super) fn whole(rank: usize) -> Self {
        Self { dims: vec![None; rank], closed: vec![true; rank] }
    }

    /// An array that is not split yet, and may not be where `closed` says so.
    pub(super) fn unsplit(closed: Vec<bool>) -> Self {
        Self { dims: vec![None; closed.len()], closed }
    }

    /// An array that is split so, where `closed` says so for good.
    pub(super) fn new(sharding: &Sharding, closed: Vec<bool>) -> Self {
        let cut = |(dim, parts): (usize, &usize)| {
            let of_partition = sharding.position.iter().map(|position| position[dim]).collect();
            (*parts > 1).then_some(Cut { parts: *parts, of_partition })
        };
        Self { dims: sharding.parts.iter().enumerate().map(cut).collect(), closed }
    }

    /// The same as a sharding; None where nothing is split.
    pub(super) fn sharding(&self, partitions: usize) -> Option<Sharding> {
        self.dims.iter().any(Option::is_some).then(|| Sharding {
            parts: self.dims.iter().map(|cut| cut.as_ref().map_or(1, |cut| cut.parts)).collect(),
            position: (0..partitions)
                .map(|p| {
                    self.dims.iter().map(|cut| cut.as_ref().map_or(0, |cut| cut.of_partition[p])).collect()
                })
                .collect(),
            summed: false,
        })
    }

    /// What was found for an array that is to be split so, if it is a finer split of dimensions that are open here; else
    /// this split itself.
    pub(super) fn settled(&self, found: Option<Sharding>, partitions: usize) -> Option<Sharding> {
        let cuts = found.as_ref().map(|found| Self::new(found, self.closed.clone()).dims);
        let fits = |d: usize| {
            let cut = cuts.as_ref().and_then(|cuts| cuts[d].as_ref());
            cut == self.dims[d].as_ref() || self.dims[d].is_none() && !self.closed[d]
        };
        if (0..self.dims.len()).all(fits) { found } else { self.sharding(partitions) }
    }

    /// Splits a dimension of this size if it may be, and if the parts of all dimensions together are spread evenly over
    /// the partitions: no axis of a mesh can split two of them.
    fn take(&mut self, dim: usize, size: usize, cut: &Cut) -> bool {
        if self.closed[dim] || self.dims[dim].is_some() || size == 0 || !size.is_multiple_of(cut.parts) {
            return false;
        }
        let cuts: Vec<&Cut> = self.dims.iter().flatten().chain([cut]).collect();
        let tiles = cuts.iter().try_fold(1usize, |tiles, cut| tiles.checked_mul(cut.parts));
        let partitions = cut.of_partition.len();
        let Some(tiles) = tiles.filter(|tiles| partitions.is_multiple_of(*tiles)) else { return false };
        let mut holders = vec![0; tiles];
        for p in 0..partitions {
            holders[cuts.iter().fold(0, |tile, cut| tile * cut.parts + cut.of_partition[p])] += 1;
        }
        if holders.iter().any(|n| *n != partitions / tiles) {
            return false;
        }
        self.dims[dim] = Some(cut.clone());
        true
    }
}

/// What a program says about its arrays.
#[derive(Default)]
pub(super) struct Said {
    /// Arrays whose split is given; of one array the first counts.
    pub(super) splits: Vec<(ValueId, Split)>,
    /// Arrays of one group (by its number) are split alike.
    pub(super) groups: Vec<(i64, ValueId)>,
    /// Dimensions that an operation says can be split alike.
    pub(super) alike: Vec<Vec<(ValueId, usize)>>,
    /// Arrays whose split the program asks to see, with the names that it has for them.
    pub(super) inspected: Vec<(String, ValueId)>,
}

/// Dimensions that can be split alike.
struct Factor {
    members: Vec<(ValueId, usize)>,
    /// True if no element moves between partitions that way.
    in_place: bool,
}

/// Spreads what is said over the whole program. Gives the split of each value, by its index.
pub(super) fn propagate(graph: &Graph, said: Said, partitions: usize) -> Vec<Option<Sharding>> {
    let mut splits: Vec<Option<Split>> = vec![None; graph.num_values()];
    for (value, split) in said.splits {
        splits[value.index()].get_or_insert(split);
    }
    let mut factors = Vec::new();
    for node in graph.nodes() {
        if let Op::Manual(ops::Manual { spec, .. }) = &node.op {
            for (value, cuts) in node.results().zip(&spec.outputs) {
                splits[value.index()] = Some(manual(spec, cuts, partitions));
            }
            for (value, cuts) in node.operands.iter().zip(&spec.inputs) {
                splits[value.index()].get_or_insert_with(|| manual(spec, cuts, partitions));
            }
        }
        factors_of(graph, node, &mut factors);
    }
    factors.extend(of_groups(graph, &said.groups));
    factors.extend(said.alike.into_iter().map(|members| Factor { members, in_place: true }));
    let mut splits: Vec<Split> = (splits.into_iter().zip(graph.values()))
        .map(|(split, value)| split.unwrap_or_else(|| Split::open(graph.shape(value).rank())))
        .collect();
    for all in [false, true] {
        loop {
            let mut changed = false;
            let forward = factors.iter().filter(|f| all || f.in_place);
            for factor in forward.clone().chain(forward.rev()) {
                changed |= spread(graph, &mut splits, factor);
            }
            if !changed {
                break;
            }
        }
    }
    splits.iter().map(|split| split.sharding(partitions)).collect()
}

/// Splits the members of a factor that can be as those that are.
fn spread(graph: &Graph, splits: &mut [Split], factor: &Factor) -> bool {
    let mut changed = false;
    for (from, dim) in &factor.members {
        let Some(cut) = splits[from.index()].dims[*dim].clone() else { continue };
        for (to, dim) in &factor.members {
            changed |= splits[to.index()].take(*dim, graph.shape(*to).dims[*dim], &cut);
        }
    }
    changed
}

fn of_groups(graph: &Graph, groups: &[(i64, ValueId)]) -> Vec<Factor> {
    let mut members: HashMap<i64, Vec<ValueId>> = HashMap::new();
    for (group, value) in groups {
        members.entry(*group).or_default().push(*value);
    }
    let mut all: Vec<_> = members.into_iter().collect();
    all.sort_unstable_by_key(|(group, _)| *group);
    let mut factors = Vec::new();
    for (_, values) in all {
        let rank = values.iter().map(|v| graph.shape(*v).rank()).min().unwrap_or(0);
        let of_dim = |dim| Factor { members: values.iter().map(|v| (*v, dim)).collect(), in_place: true };
        factors.extend((0..rank).map(of_dim));
    }
    factors
}

/// How a manual computation has one of its arrays: along its axes as given, otherwise as one likes.
fn manual(spec: &ManualSpec, cuts: &[Vec<usize>], partitions: usize) -> Split {
    let position = |partition: usize| {
        let at = spec.device_ids.iter().position(|id| *id == partition).unwrap_or(partition);
        move |axis: usize| at / spec.mesh[axis + 1..].iter().product::<usize>() % spec.mesh[axis]
    };
    let dim = |axes: &Vec<usize>| {
        let part = |p| axes.iter().fold(0, |part, axis| part * spec.mesh[*axis] + position(p)(*axis));
        let parts: usize = axes.iter().map(|axis| spec.mesh[*axis]).product();
        (parts > 1).then(|| Cut { parts, of_partition: (0..partitions).map(part).collect() })
    };
    let dims: Vec<Option<Cut>> = cuts.iter().map(dim).collect();
    Split { closed: dims.iter().map(Option::is_some).collect(), dims }
}

/// Adds the factors of an operation.
fn factors_of(graph: &Graph, node: &Node, factors: &mut Vec<Factor>) {
    let dims = |value: ValueId| &*graph.shape(value).dims;
    let mut add = |members: Vec<(ValueId, usize)>, in_place: bool| {
        factors.push(Factor { members, in_place });
    };
    let arrays: Vec<ValueId> = node.operands.iter().copied().chain(node.results()).collect();
    let Some(first) = node.results().next() else { return };
    let result = dims(first);
    match &node.op {
        Op::Broadcast(ops::Broadcast { dims: to }) => {
            let from = dims(node.operands[0]);
            for (i, j) in to.iter().enumerate().filter(|(i, j)| from[*i] == result[**j]) {
                add(vec![(node.operands[0], i), (first, *j)], true);
            }
        }
        Op::Reshape => {
            for (i, j) in kept_by_reshape(dims(node.operands[0]), result) {
                add(vec![(node.operands[0], i), (first, j)], true);
            }
        }
        Op::Transpose(ops::Transpose { permutation }) => {
            for (j, i) in permutation.iter().enumerate() {
                add(vec![(node.operands[0], *i), (first, j)], true);
            }
        }
        Op::Reduce(ops::Reduce { dims: gone, .. }) => kept_by_reduction(graph, node, gone, &mut add),
        Op::ArgReduce(ops::ArgReduce { dim, .. }) => kept_by_reduction(graph, node, &[*dim], &mut add),
        Op::Dot(dot) => {
            let (lhs, rhs) = (node.operands[0], node.operands[1]);
            let mut j = 0;
            for (l, r) in dot.lhs_batch.iter().zip(&dot.rhs_batch) {
                add(vec![(lhs, *l), (rhs, *r), (first, j)], true);
                j += 1;
            }
            for (operand, taken) in
                [(lhs, [&dot.lhs_batch, &dot.lhs_contract]), (rhs, [&dot.rhs_batch, &dot.rhs_contract])]
            {
                let free = (0..dims(operand).len()).filter(|d| taken.iter().all(|t| !t.contains(d)));
                for d in free {
                    add(vec![(operand, d), (first, j)], false);
                    j += 1;
                }
            }
            for (l, r) in dot.lhs_contract.iter().zip(&dot.rhs_contract) {
                add(vec![(lhs, *l), (rhs, *r)], false);
            }
        }
        Op::Convolution(conv) => {
            let (lhs, rhs) = (node.operands[0], node.operands[1]);
            if conv.batch_groups == 1 {
                add(vec![(lhs, conv.input_batch), (first, conv.output_batch)], false);
            }
            add(vec![(rhs, conv.kernel_output_feature), (first, conv.output_feature)], false);
        }
        Op::Gather(gather) => {
            let (operand, indices) = (node.operands[0], node.operands[1]);
            let left_out = |d: &usize| {
                gather.collapsed_slice_dims.contains(d) || gather.operand_batching_dims.contains(d)
            };
            let windows = (0..dims(operand).len()).filter(|d| !left_out(d));
            for (i, j) in windows.zip(&gather.offset_dims).filter(|(i, j)| dims(operand)[*i] == result[**j]) {
                add(vec![(operand, i), (first, *j)], false);
            }
            let batch = (0..result.len()).filter(|j| !gather.offset_dims.contains(j));
            for (i, j) in (0..dims(indices).len()).filter(|d| *d != gather.index_vector_dim).zip(batch) {
                // A batching dimension of the indices is one of the operand too, and nothing is gathered across it.
                let at = gather.start_indices_batching_dims.iter().position(|dim| *dim == i);
                let batching = at.map(|at| (operand, gather.operand_batching_dims[at]));
                let members = batching.into_iter().chain([(indices, i), (first, j)]);
                add(members.collect(), at.is_some());
            }
        }
        // The first elements of a dimension that is sorted are not those that were there.
        Op::Sort(ops::Sort { dim, .. }) | Op::SortBy(ops::SortBy { dim, .. }) => {
            alike(graph, &arrays, |d| d != *dim, &mut add)
        }
        Op::TopK(_) => alike(graph, &arrays, |d| d + 1 < result.len(), &mut add),
        Op::Scatter(_) => {
            let inputs = (node.operands.len() - 1) / 2;
            for (input, output) in node.operands[..inputs].iter().zip(node.results()) {
                alike(graph, &[*input, output], |_| true, &mut add);
            }
        }
        Op::DynamicSlice | Op::DynamicUpdateSlice => {
            let whole = if node.op == Op::DynamicSlice { 1 } else { 2 };
            let arrays: Vec<ValueId> = node.operands[..whole].iter().copied().chain([first]).collect();
            alike(graph, &arrays, |_| true, &mut add);
        }
        Op::Fft(ops::Fft { lengths, .. }) => {
            let kept = result.len() - lengths.len();
            alike(graph, &arrays, |d| d < kept, &mut add);
        }
        Op::Cholesky(_) | Op::TriangularSolve(_) | Op::QrFactor | Op::QrProduct | Op::Linalg(_) => {
            let batch = arrays.iter().map(|v| dims(*v).len()).max().unwrap_or(0).saturating_sub(2);
            alike(graph, &arrays, |d| d < batch, &mut add);
        }
        Op::While(ops::While { carried, .. }) => {
            for (before, after) in node.operands[..*carried].iter().zip(node.results()) {
                alike(graph, &[*before, after], |_| true, &mut add);
            }
        }
        Op::Barrier => {
            for (operand, result) in node.operands.iter().zip(node.results()) {
                alike(graph, &[*operand, result], |_| true, &mut add);
            }
        }
        Op::Select | Op::Clamp | Op::Tile(_) | Op::Compare(_) | Op::Convert | Op::Map(_) => {
            alike(graph, &arrays, |_| true, &mut add);
        }
        Op::ReducePrecision(_) | Op::Bitcast => alike(graph, &arrays, |_| true, &mut add),
        Op::Slice(_) | Op::Reverse(_) | Op::Pad(_) | Op::Concatenate(_) => {
            alike(graph, &arrays, |_| true, &mut add);
        }
        Op::ReduceWindow(ops::ReduceWindow { window, .. })
        | Op::SelectAndScatter(ops::SelectAndScatter { window, .. }) => {
            let arrays: Vec<ValueId> = arrays.iter().copied().filter(|v| !dims(*v).is_empty()).collect();
            alike(graph, &arrays, |d| window.size[d] == 1, &mut add);
        }
        Op::Manual(ops::Manual { spec, body }) => kept_by_body(node, spec, body, &mut add),
        Op::Constant(_)
        | Op::Iota(_)
        | Op::Case(_)
        | Op::RngBits(_)
        | Op::RngUniform
        | Op::RngNormal
        | Op::Collective(_)
        | Op::PartitionId
        | Op::ReplicaId
        | Op::HostSend(_)
        | Op::HostReceive(_)
        | Op::Foreign(_) => {}
    }
}

/// Relates equal dimensions of the arrays that have the first one's rank.
fn alike(
    graph: &Graph,
    arrays: &[ValueId],
    keep: impl Fn(usize) -> bool,
    add: &mut impl FnMut(Vec<(ValueId, usize)>, bool),
) {
    let Some(last) = arrays.last() else { return };
    let most = &graph.shape(*last).dims;
    for d in (0..most.len()).filter(|d| keep(*d)) {
        let has = |v: &&ValueId| graph.shape(**v).dims.get(d) == Some(&most[d]);
        add(arrays.iter().filter(has).map(|v| (*v, d)).collect(), true);
    }
}

/// The inputs of a reduction are the first operands, as many as there are results.
fn kept_by_reduction(
    graph: &Graph,
    node: &Node,
    gone: &[usize],
    add: &mut impl FnMut(Vec<(ValueId, usize)>, bool),
) {
    let inputs: Vec<ValueId> = match node.op {
        Op::ArgReduce(_) => vec![node.operands[0]],
        _ => node.operands[..node.results as usize].to_vec(),
    };
    let Some(first) = inputs.first() else { return };
    for d in gone {
        add(inputs.iter().map(|v| (*v, *d)).collect(), true);
    }
    for (j, i) in (0..graph.shape(*first).rank()).filter(|d| !gone.contains(d)).enumerate() {
        let of_inputs = inputs.iter().map(|v| (*v, i));
        add(of_inputs.chain(node.results().map(|v| (v, j))).collect(), true);
    }
}

/// Relates the dimensions of the arrays of a manual computation that its body relates and that it does not cut itself.
fn kept_by_body(
    node: &Node,
    spec: &ManualSpec,
    body: &Graph,
    add: &mut impl FnMut(Vec<(ValueId, usize)>, bool),
) {
    if (0..spec.mesh.len()).all(|axis| spec.axes.contains(&axis) || spec.mesh[axis] == 1) {
        // What it does not cut is whole on each device.
        return;
    }
    let mut factors = Vec::new();
    for node in body.nodes() {
        factors_of(body, node, &mut factors);
    }
    // Each dimension of a value in the body belongs to the set of the first one that it is found to be related to.
    let mut sets: HashMap<(ValueId, usize), usize> = HashMap::new();
    let mut merged: Vec<usize> = Vec::new();
    for factor in &factors {
        let known = factor.members.iter().filter_map(|member| sets.get(member));
        let known: Vec<usize> = known.map(|set| root(&merged, *set)).collect();
        let set = known.first().copied().unwrap_or(merged.len());
        if set == merged.len() {
            merged.push(set);
        }
        for other in known {
            merged[other] = set;
        }
        sets.extend(factor.members.iter().map(|member| (*member, set)));
    }
    let outside = (node.operands.iter().copied().chain(node.results()))
        .zip(body.parameters().iter().chain(body.results()))
        .zip(spec.inputs.iter().chain(&spec.outputs));
    let mut related: BTreeMap<usize, Vec<(ValueId, usize)>> = BTreeMap::new();
    for ((value, inside), cuts) in outside {
        for (dim, _) in cuts.iter().enumerate().filter(|(_, axes)| axes.is_empty()) {
            // What no operation touches is related to itself, as an argument is to a result that it is.
            let set = *sets.entry((*inside, dim)).or_insert_with(|| {
                merged.push(merged.len());
                merged.len() - 1
            });
            related.entry(root(&merged, set)).or_default().push((value, dim));
        }
    }
    for members in related.into_values() {
        add(members, false);
    }
}

fn root(merged: &[usize], mut set: usize) -> usize {
    while merged[set] != set {
        set = merged[set];
    }
    set
}

/// The pairs of dimensions whose parts stay where they are: equal ones, and the major-most of those that are split up or
/// put together.
pub(super) fn kept_by_reshape(from: &[usize], to: &[usize]) -> Vec<(usize, usize)> {
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
    use crate::compile::{CompileOptions, compile};

    /// The shardings of a program's results on a mesh of 2 by 2, each as `parts at position of every partition`.
    fn results(program: &str) -> Vec<Option<Sharding>> {
        let text =
            format!("module {{ sdy.mesh @mesh = <[\"x\"=2, \"y\"=2]> func.func public @main{program} }}");
        let module = pjrt_stablehlo::parse(text.as_bytes()).unwrap();
        let options = CompileOptions {
            num_partitions: 4,
            use_spmd_partitioning: true,
            propagate_to_results: vec![true],
            ..CompileOptions::default()
        };
        let plan = compile(&module, &options).unwrap();
        plan.results.into_iter().map(|result| result.sharding).collect()
    }

    /// A sharding along these axes of the mesh: 0 is `x`, 1 is `y`.
    fn along(axes: &[Option<usize>]) -> Option<Sharding> {
        Some(Sharding {
            parts: axes.iter().map(|axis| if axis.is_some() { 2 } else { 1 }).collect(),
            position: (0..4)
                .map(|p| axes.iter().map(|axis| axis.map_or(0, |axis| [p / 2, p % 2][axis])).collect())
                .collect(),
            summed: false,
        })
    }

    const XY: &str = "{sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {\"y\"}]>}";

    #[test]
    fn an_elementwise_result_is_split_as_its_operand() {
        let program = format!(
            "(%a: tensor<8x2xf32> {XY}) -> tensor<8x2xf32> {{
               %c = stablehlo.constant dense<2.0> : tensor<8x2xf32>
               %r = stablehlo.multiply %a, %c : tensor<8x2xf32>
               return %r : tensor<8x2xf32> }}"
        );
        assert_eq!(results(&program), [along(&[Some(0), Some(1)])]);
    }

    #[test]
    fn a_manual_computation_passes_splits_along_other_axes_on() {
        let program = format!(
            "(%a: tensor<8x2xf32> {XY}) -> tensor<2x8xf32> {{
               %r = sdy.manual_computation(%a) in_shardings=[<@mesh, [{{?}}, {{\"y\"}}]>]
                   out_shardings=[<@mesh, [{{\"y\"}}, {{?}}]>] manual_axes={{\"y\"}} (%b: tensor<8x1xf32>) {{
                 %t = stablehlo.transpose %b, dims = [1, 0] : (tensor<8x1xf32>) -> tensor<1x8xf32>
                 %s = stablehlo.add %t, %t : tensor<1x8xf32>
                 sdy.return %s : tensor<1x8xf32>
               }} : (tensor<8x2xf32>) -> tensor<2x8xf32>
               return %r : tensor<2x8xf32> }}"
        );
        assert_eq!(results(&program), [along(&[Some(1), Some(0)])]);
    }

    #[test]
    fn no_two_dimensions_of_a_product_are_split_along_one_axis() {
        let program = format!(
            "(%a: tensor<8x2xf32> {XY}) -> tensor<8x8xf32> {{
               %r = stablehlo.dot_general %a, %a, contracting_dims = [1] x [1]
                 : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x8xf32>
               return %r : tensor<8x8xf32> }}"
        );
        assert_eq!(results(&program), [along(&[Some(0), None])]);
    }

    #[test]
    fn dimensions_move_with_transpositions_reshapes_and_reductions() {
        let program = format!(
            "(%a: tensor<8x6xf32> {XY}) -> (tensor<6x8xf32>, tensor<48xf32>, tensor<8xf32>) {{
               %t = stablehlo.transpose %a, dims = [1, 0] : (tensor<8x6xf32>) -> tensor<6x8xf32>
               %f = stablehlo.reshape %a : (tensor<8x6xf32>) -> tensor<48xf32>
               %z = stablehlo.constant dense<0.0> : tensor<f32>
               %s = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1]
                 : (tensor<8x6xf32>, tensor<f32>) -> tensor<8xf32>
               return %t, %f, %s : tensor<6x8xf32>, tensor<48xf32>, tensor<8xf32> }}"
        );
        assert_eq!(results(&program), [along(&[Some(1), Some(0)]), along(&[Some(0)]), along(&[Some(0)])]);
    }

    #[test]
    fn a_constraint_goes_before_what_operands_suggest() {
        let program = format!(
            "(%a: tensor<8x2xf32> {XY}) -> tensor<8x2xf32> {{
               %n = stablehlo.negate %a : tensor<8x2xf32>
               %r = sdy.sharding_constraint %n <@mesh, [{{}}, {{\"x\"}}]> : tensor<8x2xf32>
               return %r : tensor<8x2xf32> }}"
        );
        assert_eq!(results(&program), [along(&[None, Some(0)])]);
    }

    #[test]
    fn a_constraint_that_gives_a_result_decides_how_it_is_split() {
        let function = |result: &str| {
            format!(
                "(%a: tensor<8x2xf32> {XY}) -> tensor<8x2xf32> {{
                   %r = func.call @f(%a) : (tensor<8x2xf32>) -> tensor<8x2xf32>
                   return %r : tensor<8x2xf32> }}
                 func.func private @f(%a: tensor<8x2xf32>) -> tensor<8x2xf32> {{
                   %b = sdy.sharding_constraint %a <@mesh, [{{}}, {{}}]> : tensor<8x2xf32>
                   %r = sdy.sharding_constraint %b {result} : tensor<8x2xf32>
                   return %r : tensor<8x2xf32> }}"
            )
        };
        assert_eq!(results(&function("<@mesh, [{}, {\"x\"}]>")), [along(&[None, Some(0)])]);
        assert_eq!(results(&function("<@mesh, [{}, {}]>")), [None]);
        assert_eq!(results(&function("<@mesh, [{\"x\"}, {?}]>")), [along(&[Some(0), Some(1)])]);
    }

    #[test]
    fn arrays_of_a_group_are_split_alike() {
        let program = format!(
            "(%a: tensor<8x2xf32> {XY}) -> tensor<8x2xf32> {{
               %i = stablehlo.iota dim = 0 : tensor<8x2xf32>
               sdy.sharding_group %a group_id=0 : tensor<8x2xf32>
               sdy.sharding_group %i group_id=0 : tensor<8x2xf32>
               return %i : tensor<8x2xf32> }}"
        );
        assert_eq!(results(&program), [along(&[Some(0), Some(1)])]);
    }

    #[test]
    fn what_the_program_says_of_a_result_stays_and_open_dimensions_may_be_split() {
        let closed = "{sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}";
        let open = "{sdy.sharding = #sdy.sharding<@mesh, [{?}, {}]>}";
        let program = format!(
            "(%a: tensor<8x2xf32> {XY}) -> (tensor<8x2xf32> {closed}, tensor<8x2xf32> {open}) {{
               %n = stablehlo.negate %a : tensor<8x2xf32>
               %e = stablehlo.exponential %a : tensor<8x2xf32>
               return %n, %e : tensor<8x2xf32>, tensor<8x2xf32> }}"
        );
        assert_eq!(results(&program), [None, along(&[Some(0), None])]);
    }

    #[test]
    fn arrays_that_do_not_divide_stay_whole() {
        let program = format!(
            "(%a: tensor<8x2xf32> {XY}) -> tensor<7x2xf32> {{
               %r = stablehlo.slice %a [0:7, 0:2] : (tensor<8x2xf32>) -> tensor<7x2xf32>
               return %r : tensor<7x2xf32> }}"
        );
        assert_eq!(results(&program), [along(&[None, Some(1)])]);
    }

    #[test]
    fn only_equal_sizes_and_major_parts_keep_their_place_in_a_reshape() {
        assert_eq!(kept_by_reshape(&[8, 3], &[8, 3]), [(0, 0), (1, 1)]);
        assert_eq!(kept_by_reshape(&[2, 3, 4], &[6, 4]), [(0, 0), (2, 1)]);
        assert_eq!(kept_by_reshape(&[6, 1, 4], &[1, 2, 3, 4]), [(0, 1), (2, 3)]);
        assert!(kept_by_reshape(&[0, 4], &[4, 0]).is_empty());
    }
}
