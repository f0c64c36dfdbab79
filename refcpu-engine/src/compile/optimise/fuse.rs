//! Chooses the values that are stored as arrays, and those that are computed inside the regions of their users.
//!
//! A producer is inlined into its consumers if nothing is then computed much more often than before. The plan has
//! instructions for the remaining arrays.

use crate::graph::{Graph, Node, Op, Reducer, Shape, Uses, ValueId, ops};
use refcpu_kernels::DType;
use refcpu_kernels::ReduceOp;
use refcpu_kernels::tile::TileOp;

/// The maximum number of operations of one region.
const REGION_NODES: usize = 256;

/// The maximum cost of operations that may be computed several times instead of being stored.
const CHEAP: u32 = 3;

/// The maximum number of elements of an array that may be read in any order.
const SMALL: usize = 4096;

/// Splat constants of more bytes than this are filled when they are needed instead of being stored.
pub(crate) const STORED_SPLAT: usize = 4096;

/// The choice for each value of a graph.
pub(crate) struct Fusion {
    inlined: Vec<bool>,
}

impl Fusion {
    /// Chooses an array for each value.
    pub(crate) fn none(graph: &Graph) -> Self {
        Self { inlined: vec![false; graph.num_values()] }
    }

    /// Returns whether the value is computed where it is used, and has no array.
    pub(crate) fn is_inlined(&self, value: ValueId) -> bool {
        self.inlined[value.index()]
    }
}

/// The role of a node in regions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// The node computes elements.
    Compute,
    /// The node moves elements.
    Move,
    /// The node cannot be in a region.
    Outside,
}

/// Chooses the values of a graph that are inlined.
pub(crate) fn fuse(graph: &Graph, uses: &Uses) -> Fusion {
    let roles: Vec<Role> = graph.nodes().iter().map(|n| role(graph, n)).collect();
    let mut f = Choice {
        graph,
        roles,
        inlined: vec![false; graph.num_values()],
        root: vec![None; graph.num_values()],
        cost: costs(graph),
        size: vec![0; graph.num_values()],
    };
    for (n, node) in graph.nodes().iter().enumerate().rev() {
        if node.results == 1 {
            f.choose(n, node.first_result, uses);
        }
    }
    f.force_arrays();
    Fusion { inlined: f.inlined }
}

struct Choice<'g> {
    graph: &'g Graph,
    roles: Vec<Role>,
    inlined: Vec<bool>,
    /// The only array whose region computes the value; `None` if there are several.
    root: Vec<Option<ValueId>>,
    /// The cost of computing one element, including all operands that may be inlined.
    cost: Vec<u32>,
    /// The number of operations in the region of an array.
    size: Vec<usize>,
}

impl Choice<'_> {
    fn choose(&mut self, n: usize, v: ValueId, uses: &Uses) {
        self.root[v.index()] = Some(v);
        self.size[v.index()] = 1;
        if self.roles[n] == Role::Outside || uses.is_result(v) || uses.of(v).is_empty() {
            return;
        }
        let mut root: Option<Option<ValueId>> = None;
        let mut distinct = 0;
        let mut last = u32::MAX;
        for user in uses.of(v) {
            if *user == last {
                continue;
            }
            last = *user;
            distinct += 1;
            if !self.admits(*user, v) {
                return;
            }
            let r = self.root[self.graph.nodes()[*user as usize].first_result.index()];
            root = Some(match root {
                None => r,
                Some(before) if before == r => r,
                Some(_) => None,
            });
        }
        let one_root = root.flatten();
        // A value that a movement reads beside others is computed again at the indices of the movement.
        let again = distinct > 1 && uses.of(v).iter().any(|user| self.roles[*user as usize] == Role::Move);
        let repeated = one_root.is_none() || again;
        if repeated && (distinct > 8 || self.cost[v.index()] > CHEAP) {
            return;
        }
        if let Some(r) = one_root {
            if self.size[r.index()] >= REGION_NODES {
                return;
            }
            let free = self.roles[n] == Role::Move || self.graph.constant(v).is_some();
            self.size[r.index()] += usize::from(!free);
        }
        self.inlined[v.index()] = true;
        self.root[v.index()] = one_root;
    }

    /// Returns whether a node can compute its operand `v` itself.
    fn admits(&self, user: u32, v: ValueId) -> bool {
        let node = &self.graph.nodes()[user as usize];
        match self.roles[user as usize] {
            Role::Compute => true,
            Role::Move => {
                let result = node.first_result;
                let (from, to) = (self.graph.shape(v), self.graph.shape(result));
                // A movement that is stored as an array is a copy of an array.
                if !self.inlined[result.index()] {
                    return false;
                }
                match &node.op {
                    Op::Broadcast(_) => {
                        let repeats = to.len() > from.len();
                        !repeats || from.len() <= 1 || self.cost[v.index()] <= CHEAP
                    }
                    Op::Reshape => same_but_units(&from.dims, &to.dims) || self.is_uniform(v),
                    _ => true,
                }
            }
            Role::Outside => fused_reduction(self.graph, node) == Some(v),
        }
    }

    /// Returns whether all elements of a value equal one known element.
    fn is_uniform(&self, v: ValueId) -> bool {
        self.graph.constant(v).is_some_and(|c| c.splat)
    }

    /// Stores the operands of reshapes as arrays where the reshape changes indices. In a region, a reshape can only read an
    /// array, or an operand with the same indices.
    fn force_arrays(&mut self) {
        for node in self.graph.nodes() {
            if matches!(node.op, Op::Reshape) {
                let operand = node.operands[0];
                let kept = self.inlined[node.first_result.index()];
                let same = same_but_units(
                    &self.graph.shape(operand).dims,
                    &self.graph.shape(node.first_result).dims,
                );
                if !(kept && (same || self.is_uniform(operand))) {
                    self.inlined[operand.index()] = false;
                }
            }
        }
    }
}

/// Returns whether the shapes differ only in dimensions of size one.
pub(super) fn same_but_units(a: &[usize], b: &[usize]) -> bool {
    a.iter().filter(|d| **d != 1).eq(b.iter().filter(|d| **d != 1))
}

fn role(graph: &Graph, node: &Node) -> Role {
    if node.results != 1 {
        return Role::Outside;
    }
    let result = graph.shape(node.first_result);
    let operands: Vec<&Shape> = node.operands.iter().map(|v| graph.shape(*v)).collect();
    match &node.op {
        Op::Iota(_) => {
            if result.dtype == DType::Pred {
                Role::Outside
            } else {
                Role::Compute
            }
        }
        Op::Constant(c) if c.splat => Role::Compute,
        // These move elements. Access with large strides is allowed only for small arrays.
        Op::Broadcast(_) | Op::Reshape => Role::Move,
        Op::Transpose(ops::Transpose { permutation }) => {
            let innermost_stays = permutation.last().is_none_or(|p| p + 1 == permutation.len());
            if innermost_stays || result.len() <= SMALL { Role::Move } else { Role::Outside }
        }
        Op::Slice(ops::Slice { stride, .. }) => {
            if stride.last().is_none_or(|s| *s == 1) || result.len() <= SMALL {
                Role::Move
            } else {
                Role::Outside
            }
        }
        Op::Reverse(_) => Role::Move,
        op if op.is_elementwise(&operands, result) => Role::Compute,
        _ => Role::Outside,
    }
}

/// Returns the cost of computing one element of each value, as if all operands were inlined. Costs saturate.
fn costs(graph: &Graph) -> Vec<u32> {
    let mut cost = vec![0u32; graph.num_values()];
    for node in graph.nodes() {
        let own: u32 = match &node.op {
            Op::Constant(_) | Op::Broadcast(_) | Op::Reshape => 0,
            Op::Tile(op) => match op {
                TileOp::Add
                | TileOp::Subtract
                | TileOp::Multiply
                | TileOp::Maximum
                | TileOp::Minimum
                | TileOp::And
                | TileOp::Or
                | TileOp::Xor
                | TileOp::Not
                | TileOp::Negate
                | TileOp::Abs => 1,
                _ => 8,
            },
            Op::Iota(_) | Op::Slice(_) | Op::Convert | Op::Compare(_) | Op::Select => 1,
            _ => 4,
        };
        let operands: u32 = node.operands.iter().map(|v| cost[v.index()]).fold(0, u32::saturating_add);
        for r in node.results() {
            cost[r.index()] = own.saturating_add(operands);
        }
    }
    cost
}

/// Returns the input of a reduction that can run as part of a region; `None` for other reductions. Such a reduction is over the
/// innermost dimensions, by a single operation, and begins with its identity.
pub(crate) fn fused_reduction(graph: &Graph, node: &Node) -> Option<ValueId> {
    let (_, _, input) = fused_reduction_parts(graph, node)?;
    Some(input)
}

/// Returns the operation, the number of innermost dimensions, and the input of such a reduction.
pub(super) fn fused_reduction_parts(graph: &Graph, node: &Node) -> Option<(ReduceOp, usize, ValueId)> {
    let Op::Reduce(ops::Reduce { dims, reducer: Reducer::Op(op) }) = &node.op else { return None };
    let [input, init] = *node.operands else { return None };
    let shape = graph.shape(input);
    let first = shape.rank() - dims.len();
    if dims.is_empty() || !dims.iter().all(|d| *d >= first) || shape.is_empty() {
        return None;
    }
    let init = graph.constant(init)?;
    is_identity(*op, init.element()?, shape.dtype).then_some((*op, dims.len(), input))
}

/// Returns whether combining with this element changes nothing. Only common types are recognized.
pub(super) fn is_identity(op: ReduceOp, element: &[u8], dtype: DType) -> bool {
    use ReduceOp as R;
    let zero = element.iter().all(|b| *b == 0);
    let ones = element.iter().all(|b| *b == 0xff);
    let Some((top, rest)) = element.split_last() else { return false };
    let is = |of_top: u8, of_rest: u8| *top == of_top && rest.iter().all(|b| *b == of_rest);
    let is_integer = |signed: bool| {
        let compute = dtype.compute();
        dtype.is_computed_directly()
            && if signed { compute.is_signed_integer() } else { compute.is_unsigned_integer() }
    };
    match (dtype, op) {
        (_, R::Maximum) if is_integer(true) => is(0x80, 0),
        (_, R::Minimum) if is_integer(true) => is(0x7f, 0xff),
        (_, R::Maximum) if is_integer(false) => zero,
        (_, R::Minimum) if is_integer(false) => ones,
        (DType::F32, R::Add) => zero,
        (DType::F32, R::Maximum) => element == f32::NEG_INFINITY.to_le_bytes(),
        (DType::F32, R::Minimum) => element == f32::INFINITY.to_le_bytes(),
        (DType::F32, R::Multiply) => element == 1f32.to_le_bytes(),
        (DType::F64, R::Add) => zero,
        (DType::F64, R::Maximum) => element == f64::NEG_INFINITY.to_le_bytes(),
        (DType::F64, R::Minimum) => element == f64::INFINITY.to_le_bytes(),
        (DType::F64, R::Multiply) => element == 1f64.to_le_bytes(),
        (DType::BF16, R::Add) | (DType::F16, R::Add) => zero,
        (DType::BF16, R::Maximum) => element == 0xff80u16.to_le_bytes(),
        (DType::F16, R::Maximum) => element == 0xfc00u16.to_le_bytes(),
        (DType::BF16, R::Minimum) => element == 0x7f80u16.to_le_bytes(),
        (DType::F16, R::Minimum) => element == 0x7c00u16.to_le_bytes(),
        (DType::Pred, R::Add | R::Maximum | R::Or | R::Xor) => zero,
        (DType::Pred, R::Multiply | R::Minimum | R::And) => element == [1],
        (d, R::Add | R::Or | R::Xor) if d.is_computed_directly() && !d.is_complex() => zero,
        (d, R::And) if d.is_computed_directly() && !d.is_complex() => ones,
        _ => false,
    }
}
