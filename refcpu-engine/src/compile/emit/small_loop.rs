//! Compiles loops over small values to programs of the register machine.
//!
//! A loop qualifies if the values that its steps compute are small, and if it changes the larger arrays that it carries in
//! place, by reading and writing windows of them. All other loops use ordinary steps. The overhead of one step exceeds the
//! arithmetic of a small loop.

use super::select::{InstructionKind, kernel};
use crate::graph::{
    Body, Constant, Definition, GatherDims, Graph, Node, Op, Reducer, ScatterDims, Shape, ValueId, iota, ops,
};
use crate::plan::{Kernel, SmallLoop};
use refcpu_kernels::DType;
use refcpu_kernels::machine::{Array, Assembler, Outside, Place, Start};
use refcpu_kernels::reduce::ReduceOp;
use refcpu_kernels::region::Val;

/// The maximum number of elements of an array that a step computes.
const LONGEST: usize = 2048;

/// The maximum number of elements of an array that is copied into cells because the loop does not change it.
const KEPT: usize = 256;

/// The maximum number of contiguous runs of a window.
const MAX_RUNS: usize = 256;

/// The maximum nesting depth of loops and branches.
const MAX_DEPTH: usize = 32;

/// A compiled loop, and the operands that it reads as arrays, by index.
pub(super) struct Compiled {
    pub(super) code: SmallLoop,
    pub(super) captured: Vec<usize>,
}

/// Compiles a loop; returns `None` if it does not qualify. The results are the carried values, which contain the initial values
/// before the loop.
pub(super) fn small_loop(graph: &Graph, node: &Node) -> Option<Compiled> {
    let Op::While(ops::While { carried, condition, body }) = &node.op else { return None };
    let shapes: Vec<&Shape> = node.operands.iter().map(|v| graph.shape(*v)).collect();
    if shapes.iter().any(|s| s.is_empty()) {
        return None;
    }
    let captured: Vec<usize> = (*carried..node.operands.len())
        .filter(|k| graph.constant(node.operands[*k]).is_none_or(|c| !c.splat))
        .collect();
    let mut l = Lowering {
        asm: Assembler::new(captured.len(), *carried),
        calls: Vec::new(),
        versions: Vec::new(),
        depth: 0,
    };
    let mut bound = Vec::new();
    let mut kept = Vec::new();
    for (j, shape) in shapes[..*carried].iter().enumerate() {
        let array = l.asm.write(j, shape.dtype, shape.len()).ok()?;
        let same_start = |i: usize| same_value(graph, node.operands[i], node.operands[j]);
        if changes_in_place(body, j) {
            bound.push(Bound::Array(l.changing(array)));
        } else if let Some(Bound::Cells(place)) = twin(body, j, same_start).map(|i| &bound[i]) {
            let place = *place;
            kept.push((array, place));
            bound.push(Bound::Cells(place));
        } else {
            let place = l.small(shape)?;
            l.asm.load(array, &[], &[0], shape.len(), place).ok()?;
            kept.push((array, place));
            bound.push(Bound::Cells(place));
        }
    }
    for (k, v) in node.operands.iter().enumerate().skip(*carried) {
        bound.push(match (captured.iter().position(|c| *c == k), graph.constant(*v)) {
            (None, Some(constant)) => Bound::Constant(constant.clone()),
            (position, _) => {
                let shape = shapes[k];
                let array = l.asm.read(position?, shape.dtype, shape.len()).ok()?;
                if shape.len() <= KEPT {
                    let place = l.small(shape)?;
                    l.asm.load(array, &[], &[0], shape.len(), place).ok()?;
                    Bound::Cells(place)
                } else {
                    Bound::Array(Held { array, changing: None })
                }
            }
        });
    }
    l.turn(condition, body, *carried, &bound)?;
    for (array, place) in kept {
        l.asm.store(array, &[], &[0], place.len(), Outside::Clamp, place).ok()?;
    }
    let code = l.asm.finish().ok()?;
    Some(Compiled { code: SmallLoop { code, calls: l.calls }, captured })
}

/// Returns whether two values of a graph are identical, or constants with the same elements.
fn same_value(graph: &Graph, a: ValueId, b: ValueId) -> bool {
    a == b || graph.constant(a).is_some_and(|c| graph.constant(b) == Some(c))
}

/// Returns an earlier carried value that equals carried value `j` in every iteration, as the counters of nested loops do: both
/// have the same initial value, and the same operation changes them.
fn twin(body: &Graph, j: usize, same_start: impl Fn(usize) -> bool) -> Option<usize> {
    let (parameters, results) = (body.parameters(), body.results());
    let change = body.node_of(results[j]).filter(|n| matches!(n.op, Op::Tile(_)))?;
    (0..j).find(|i| {
        let twins = [parameters[*i], parameters[j]];
        let same = |a: ValueId, b: ValueId| [a, b] == twins || same_value(body, a, b);
        body.shape(twins[0]) == body.shape(twins[1])
            && body.node_of(results[*i]).is_some_and(|n| {
                n.op == change.op && n.operands.iter().zip(&change.operands).all(|(a, b)| same(*a, *b))
            })
            && same_start(*i)
    })
}

/// Returns whether parameter `j` of a loop's body is an array that is changed in place, or that is too large to copy.
fn changes_in_place(body: &Graph, j: usize) -> bool {
    let parameter = body.parameters()[j];
    let unchanged = body.results()[j] == parameter && body.shape(parameter).len() <= KEPT;
    in_place(body, j) && !unchanged
}

/// Returns whether result `j` of a loop's body is parameter `j`, with changes to windows only.
fn in_place(body: &Graph, j: usize) -> bool {
    origin(body, body.results()[j], 0) == Some(j)
}

/// Returns the parameter that a value is, possibly with changes to windows; `None` for other values.
fn origin(graph: &Graph, value: ValueId, depth: usize) -> Option<usize> {
    if depth > MAX_DEPTH {
        return None;
    }
    let mut value = value;
    loop {
        let index = match graph.definition(value) {
            Definition::Parameter(p) => return Some(p as usize),
            Definition::Result { index, .. } => index as usize,
        };
        let node = graph.node_of(value)?;
        value = match &node.op {
            Op::DynamicUpdateSlice => node.operands[0],
            Op::Scatter(ops::Scatter { dims, .. })
                if node.results == 1 && is_single_scatter(graph, node, dims) =>
            {
                node.operands[0]
            }
            Op::Barrier => node.operands[index],
            Op::While(ops::While { body, .. }) => {
                if origin(body, body.results()[index], depth + 1) != Some(index) {
                    return None;
                }
                node.operands[index]
            }
            Op::Case(ops::Case { branches }) => {
                let mut all = branches.iter().map(|b| origin(b, b.results()[index], depth + 1));
                let first = all.next()??;
                if !all.all(|o| o == Some(first)) {
                    return None;
                }
                node.operands[1 + first]
            }
            _ => return None,
        };
    }
}

/// An array outside the cells, or one of the loop's own.
#[derive(Clone, Copy)]
struct Held {
    array: Array,
    /// For an array that is changed in place: its number, and the number of changes that this value includes.
    changing: Option<(usize, u32)>,
}

/// The argument for a parameter of a body.
#[derive(Clone)]
enum Bound {
    Cells(Place),
    Array(Held),
    Constant(Constant),
}

/// The location of a value in the block that computes it.
#[derive(Clone, Copy)]
enum Loc {
    /// A value with one element for each element of its shape, or with one element that all of them equal.
    Val(Val),
    Array(Held),
}

/// Runs of consecutive elements: the start of each, and their common length.
struct Runs {
    starts: Vec<usize>,
    len: usize,
}

struct Lowering {
    asm: Assembler,
    calls: Vec<Kernel>,
    /// For each array, the number of its changes so far.
    versions: Vec<u32>,
    depth: usize,
}

impl Lowering {
    /// Allocates cells for a value; returns `None` if the value is too large.
    fn small(&mut self, shape: &Shape) -> Option<Place> {
        if shape.len() > LONGEST { None } else { self.asm.cells(shape.dtype, shape.len()).ok() }
    }

    fn changing(&mut self, array: Array) -> Held {
        self.versions.push(0);
        Held { array, changing: Some((self.versions.len() - 1, 0)) }
    }

    /// Returns the array of a value; `None` if the array was changed after it had this value.
    fn current(&self, held: Held) -> Option<Array> {
        match held.changing {
            Some((number, version)) if self.versions[number] != version => None,
            _ => Some(held.array),
        }
    }

    /// Compiles a loop whose carried values are at the first of `bound`.
    fn turn(&mut self, condition: &Graph, body: &Graph, carried: usize, bound: &[Bound]) -> Option<()> {
        // The loop changes carried arrays while it reads others, so they must be distinct.
        let numbers: Vec<usize> = bound.iter().filter_map(number_of).collect();
        let mine = bound[..carried].iter().filter_map(number_of);
        if mine.into_iter().any(|n| numbers.iter().filter(|m| **m == n).count() > 1) {
            return None;
        }
        let (top, end) = (self.asm.label(), self.asm.label());
        let go_on = self.condition(condition, bound)?;
        self.asm.jump_if_not(go_on, end).ok()?;
        self.asm.bind(top);
        self.asm.enter();
        let results = self.graph(body, bound)?;
        // The values with the most pending operations are stored first, so that counters are changed last and in place. A value
        // that shares the cells of an earlier one changes with it.
        let place = |j: usize| match &bound[j] {
            Bound::Cells(place) => Some(*place),
            _ => None,
        };
        let own = |j: &usize| place(*j).is_none_or(|p| (0..*j).all(|i| place(i) != Some(p)));
        let mut order: Vec<usize> = (0..carried).filter(own).collect();
        order.sort_by_key(|j| match results[*j] {
            Loc::Val(v) => std::cmp::Reverse(self.asm.pending(v)),
            Loc::Array(_) => std::cmp::Reverse(usize::MAX),
        });
        let mut moves = Vec::new();
        let mut after = bound.to_vec();
        for j in order {
            match (&bound[j], results[j]) {
                (Bound::Cells(to), loc) => {
                    let v = self.val(loc, body.shape(body.results()[j]))?;
                    moves.push((self.asm.place(v).ok()?, *to));
                }
                (Bound::Array(old), Loc::Array(new)) if number_of(&bound[j]) == new.changing.map(|c| c.0) => {
                    self.current(new)?;
                    debug_assert!(old.array == new.array);
                    after[j] = Bound::Array(new);
                }
                _ => return None,
            }
        }
        self.asm.copy_all(&moves).ok()?;
        self.asm.leave();
        let go_on = self.condition(condition, &after)?;
        self.asm.jump_if(go_on, top).ok()?;
        self.asm.bind(end);
        Some(())
    }

    fn condition(&mut self, condition: &Graph, bound: &[Bound]) -> Option<Place> {
        self.asm.enter();
        let result = *self.graph(condition, bound)?.first()?;
        let v = self.val(result, condition.shape(condition.results()[0]))?;
        let place = self.asm.place(v).ok()?;
        self.asm.leave();
        Some(place)
    }

    /// Compiles a graph into the innermost block. Returns the locations of its results.
    fn graph(&mut self, graph: &Graph, bound: &[Bound]) -> Option<Vec<Loc>> {
        if self.depth >= MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let mut values: Vec<Option<Loc>> = vec![None; graph.num_values()];
        for (p, b) in graph.parameters().iter().zip(bound) {
            values[p.index()] = Some(match b {
                Bound::Cells(place) => Loc::Val(self.asm.value(*place).ok()?),
                Bound::Array(held) => Loc::Array(*held),
                Bound::Constant(c) => {
                    Loc::Val(self.asm.builder().constant_bytes(c.shape.dtype, &c.bytes).ok()?)
                }
            });
        }
        for node in graph.nodes() {
            let results = self.node(graph, node, &values)?;
            for (r, loc) in node.results().zip(results) {
                values[r.index()] = Some(loc);
            }
        }
        self.depth -= 1;
        graph.results().iter().map(|r| values[r.index()]).collect()
    }

    /// Returns a value as one of the block.
    fn val(&mut self, loc: Loc, shape: &Shape) -> Option<Val> {
        match loc {
            Loc::Val(v) => Some(v),
            Loc::Array(held) => {
                let array = self.current(held)?;
                let place = self.small(shape)?;
                self.asm.load(array, &[], &[0], shape.len(), place).ok()?;
                self.asm.value(place).ok()
            }
        }
    }

    /// Returns a value as an array.
    fn array(&mut self, loc: Loc, shape: &Shape) -> Option<Array> {
        match loc {
            Loc::Array(held) => self.current(held),
            Loc::Val(v) => {
                let place = self.asm.full(v, shape.len()).ok()?;
                self.asm.array_of(place).ok()
            }
        }
    }

    /// Allocates an array in cells. Returns its cells, the array and its location as a value.
    fn fresh(&mut self, shape: &Shape) -> Option<(Place, Array, Loc)> {
        let place = self.small(shape)?;
        let array = self.asm.array_of(place).ok()?;
        Some((place, array, Loc::Val(self.asm.value(place).ok()?)))
    }

    fn node(&mut self, graph: &Graph, node: &Node, values: &[Option<Loc>]) -> Option<Vec<Loc>> {
        let locs: Vec<Loc> = node.operands.iter().map(|v| values[v.index()]).collect::<Option<Vec<_>>>()?;
        let shapes: Vec<&Shape> = node.operands.iter().map(|v| graph.shape(*v)).collect();
        let results: Vec<&Shape> = node.results().map(|r| graph.shape(r)).collect();
        if shapes.iter().chain(&results).any(|s| s.is_empty()) {
            return None;
        }
        let result = *results.first()?;
        // A value of one element that all elements equal is the same for every shape.
        let uniform = match locs.first() {
            Some(Loc::Val(v)) => self.asm.len(*v) == 1,
            _ => false,
        };
        let one = |loc: Loc| Some(vec![loc]);
        match &node.op {
            Op::Constant(c) if c.splat => {
                one(Loc::Val(self.asm.builder().constant_bytes(c.shape.dtype, &c.bytes).ok()?))
            }
            Op::Constant(c) if c.shape.len() <= LONGEST => {
                let place = self.asm.constant(c.shape.dtype, &c.bytes).ok()?;
                one(Loc::Val(self.asm.value(place).ok()?))
            }
            Op::Barrier => Some(locs),
            Op::Reshape => one(locs[0]),
            Op::Broadcast(_) | Op::Transpose(_) | Op::Slice(_) | Op::Reverse(_) | Op::DynamicSlice
                if uniform =>
            {
                one(locs[0])
            }
            Op::Broadcast(ops::Broadcast { dims }) if shapes[0].len() == result.len() && dims.is_sorted() => {
                one(locs[0])
            }
            Op::Broadcast(_) if shapes[0].len() == 1 => {
                let v = self.val(locs[0], shapes[0])?;
                one(Loc::Val(v))
            }
            Op::Transpose(ops::Transpose { permutation }) => {
                let moved: Vec<usize> =
                    permutation.iter().copied().filter(|d| shapes[0].dims[*d] != 1).collect();
                if moved.is_sorted() { one(locs[0]) } else { self.call(graph, node, &locs) }
            }
            Op::Iota(ops::Iota { dim }) => {
                let coordinates = iota(result, *dim).filter(|_| result.len() <= LONGEST)?;
                let place = self.asm.constant(result.dtype, &coordinates.to_dense()).ok()?;
                one(Loc::Val(self.asm.value(place).ok()?))
            }
            Op::Slice(ops::Slice { start, stride }) => {
                let runs = runs(&shapes[0].dims, &result.dims, start, stride)?;
                let from = self.array(locs[0], shapes[0])?;
                let (place, _, loc) = self.fresh(result)?;
                self.asm.load(from, &[], &runs.starts, runs.len, place).ok()?;
                one(loc)
            }
            Op::DynamicSlice => {
                let starts = self.starts(&locs[1..], &shapes[1..], shapes[0], &result.dims)?;
                let window = whole_window(&shapes[0].dims, &result.dims)?;
                let from = self.array(locs[0], shapes[0])?;
                let (place, _, loc) = self.fresh(result)?;
                self.asm.load(from, &starts, &window.starts, window.len, place).ok()?;
                one(loc)
            }
            Op::DynamicUpdateSlice => {
                let starts = self.starts(&locs[2..], &shapes[2..], shapes[0], &shapes[1].dims)?;
                let window = whole_window(&shapes[0].dims, &shapes[1].dims)?;
                let update = self.val(locs[1], shapes[1])?;
                let update = self.asm.full(update, shapes[1].len()).ok()?;
                one(self.update(locs[0], shapes[0], &starts, &window, Outside::Clamp, update)?)
            }
            Op::Gather(dims) => match single_gather(dims, shapes[0], shapes[1]) {
                true => {
                    let index = self.components(locs[1], shapes[1], &dims.start_index_map)?;
                    let starts = window_starts(shapes[0], &dims.slice_sizes, &index, false)?;
                    let window = whole_window(&shapes[0].dims, &dims.slice_sizes)?;
                    let from = self.array(locs[0], shapes[0])?;
                    let (place, _, loc) = self.fresh(result)?;
                    self.asm.load(from, &starts, &window.starts, window.len, place).ok()?;
                    one(loc)
                }
                false => self.call(graph, node, &locs),
            },
            Op::Scatter(ops::Scatter { dims, combiner })
                if node.results == 1 && is_single_scatter(graph, node, dims) =>
            {
                let sizes = scatter_window(dims, shapes[0], shapes[2]);
                let index = self.components(locs[1], shapes[1], &dims.scatter_dims_to_operand_dims)?;
                let starts = window_starts(shapes[0], &sizes, &index, true)?;
                let window = whole_window(&shapes[0].dims, &sizes)?;
                let mut update = self.val(locs[2], shapes[2])?;
                match combiner {
                    None => {}
                    Some(Reducer::Op(op)) if same_arithmetic(*op, result.dtype) => {
                        let from = self.array(locs[0], shapes[0])?;
                        let (place, _, loc) = self.fresh(shapes[2])?;
                        self.asm.load(from, &starts, &window.starts, window.len, place).ok()?;
                        let Loc::Val(old) = loc else { return None };
                        update = self.asm.builder().op(ops::tile_op(*op), &[old, update]).ok()?;
                    }
                    Some(_) => return None,
                }
                let update = self.asm.full(update, shapes[2].len()).ok()?;
                one(self.update(locs[0], shapes[0], &starts, &window, Outside::Skip, update)?)
            }
            Op::Concatenate(ops::Concatenate { dim }) => {
                let (_, array, loc) = self.fresh(result)?;
                let mut at = 0;
                for (from, shape) in locs.iter().zip(&shapes) {
                    let mut start = vec![0; result.rank()];
                    start[*dim] = at;
                    at += shape.dims[*dim];
                    let window = runs(&result.dims, &shape.dims, &start, &vec![1; result.rank()])?;
                    let v = self.val(*from, shape)?;
                    let part = self.asm.full(v, shape.len()).ok()?;
                    self.asm.store(array, &[], &window.starts, window.len, Outside::Clamp, part).ok()?;
                }
                one(loc)
            }
            Op::While(ops::While { carried, condition, body }) => {
                self.inner_loop(graph, node, *carried, condition, body, &locs)
            }
            Op::Case(ops::Case { branches }) => self.case(graph, node, branches, &locs),
            Op::Collective(_) | Op::HostSend(_) | Op::HostReceive(_) => None,
            Op::Manual(_) | Op::Foreign(_) => None,
            op if node.results == 1 && op.is_elementwise(&shapes, result) => {
                let args = locs
                    .iter()
                    .zip(&shapes)
                    .map(|(loc, shape)| self.val(*loc, shape))
                    .collect::<Option<Vec<_>>>()?;
                if result.len() > LONGEST && args.iter().any(|a| self.asm.len(*a) > 1) {
                    return None;
                }
                one(Loc::Val(op.emit(self.asm.builder(), &args, result.dtype).ok()?))
            }
            _ => self.call(graph, node, &locs),
        }
    }

    /// Changes a window of an array: in place if the loop owns the array, otherwise in a copy.
    fn update(
        &mut self,
        of: Loc,
        shape: &Shape,
        starts: &[Start],
        window: &Runs,
        outside: Outside,
        update: Place,
    ) -> Option<Loc> {
        if let Loc::Array(Held { array, changing: Some((number, version)) }) = of {
            if self.versions[number] != version {
                return None;
            }
            self.asm.store(array, starts, &window.starts, window.len, outside, update).ok()?;
            self.versions[number] += 1;
            return Some(Loc::Array(Held { array, changing: Some((number, version + 1)) }));
        }
        let old = self.val(of, shape)?;
        let old = self.asm.full(old, shape.len()).ok()?;
        let (place, array, loc) = self.fresh(shape)?;
        self.asm.copy(old, place).ok()?;
        self.asm.store(array, starts, &window.starts, window.len, outside, update).ok()?;
        Some(loc)
    }

    /// Returns the dimensions along which a window moves, from one start index for each dimension.
    fn starts(
        &mut self,
        locs: &[Loc],
        shapes: &[&Shape],
        array: &Shape,
        sizes: &[usize],
    ) -> Option<Vec<Start>> {
        let mut index = Vec::new();
        for (d, (loc, shape)) in locs.iter().zip(shapes).enumerate() {
            if array.dims[d] > sizes[d] {
                let v = self.val(*loc, shape)?;
                index.push((d, self.asm.place(v).ok()?));
            }
        }
        window_starts(array, sizes, &index, false)
    }

    /// Returns the components of an index vector: the dimension that each component is for, and its location.
    fn components(&mut self, loc: Loc, shape: &Shape, map: &[usize]) -> Option<Vec<(usize, Place)>> {
        let v = self.val(loc, shape)?;
        let vector = self.asm.place(v).ok()?;
        let mut all = Vec::new();
        for (i, d) in map.iter().enumerate() {
            let place = if vector.len() == 1 {
                vector
            } else {
                let array = self.asm.array_of(vector).ok()?;
                let one = self.asm.cells(shape.dtype, 1).ok()?;
                self.asm.load(array, &[], &[i], 1, one).ok()?;
                one
            };
            all.push((*d, place));
        }
        Some(all)
    }

    /// Compiles a node to a call of its kernel.
    fn call(&mut self, graph: &Graph, node: &Node, locs: &[Loc]) -> Option<Vec<Loc>> {
        let (InstructionKind::Call(kernel), operands) = kernel(graph, node).ok()? else { return None };
        debug_assert_eq!(operands, node.operands);
        let reads = locs
            .iter()
            .zip(&node.operands)
            .map(|(loc, v)| Some((self.array(*loc, graph.shape(*v))?, &*graph.shape(*v).dims)))
            .collect::<Option<Vec<_>>>()?;
        let mut results = Vec::new();
        let mut writes = Vec::new();
        for r in node.results() {
            let shape = graph.shape(r);
            let (_, array, loc) = self.fresh(shape)?;
            writes.push((array, &*shape.dims));
            results.push(loc);
        }
        self.asm.call(self.calls.len(), &reads, &writes).ok()?;
        self.calls.push(kernel);
        Some(results)
    }

    /// Returns the argument that a value is to a body. Code of bodies follows the code of this block, so the value is computed
    /// first.
    fn bound(&mut self, loc: Loc) -> Option<Bound> {
        Some(match loc {
            Loc::Val(v) => Bound::Cells(self.asm.place(v).ok()?),
            Loc::Array(held) => {
                self.current(held)?;
                Bound::Array(held)
            }
        })
    }

    fn inner_loop(
        &mut self,
        graph: &Graph,
        node: &Node,
        carried: usize,
        condition: &Body,
        body: &Body,
        locs: &[Loc],
    ) -> Option<Vec<Loc>> {
        let mut bound = Vec::new();
        let mut initial = Vec::new();
        for (j, loc) in locs.iter().enumerate() {
            let shape = graph.shape(node.operands[j]);
            if j >= carried {
                bound.push(self.bound(*loc)?);
                continue;
            }
            match loc {
                Loc::Array(held) if changes_in_place(body, j) && held.changing.is_some() => {
                    bound.push(self.bound(*loc)?);
                }
                loc => {
                    let v = self.val(*loc, shape)?;
                    let same_start =
                        |i: usize| matches!((locs[i], loc), (Loc::Val(a), Loc::Val(b)) if a == *b);
                    if let Some(Bound::Cells(place)) = twin(body, j, same_start).map(|i| &bound[i]) {
                        bound.push(Bound::Cells(*place));
                        continue;
                    }
                    let from = self.asm.place(v).ok()?;
                    let place = self.small(shape)?;
                    initial.push((from, place));
                    bound.push(Bound::Cells(place));
                }
            }
        }
        for (from, to) in initial {
            self.asm.copy(from, to).ok()?;
        }
        let before = self.versions.clone();
        self.turn(condition, body, carried, &bound)?;
        // Only arrays that the loop carries may have changed, because its next iteration reads the others again.
        let mine: Vec<usize> = bound[..carried].iter().filter_map(number_of).collect();
        let others_changed = (0..before.len()).any(|n| before[n] != self.versions[n] && !mine.contains(&n));
        if others_changed {
            return None;
        }
        bound[..carried].iter().map(|b| self.after(b)).collect()
    }

    /// Returns the present location of a carried value.
    fn after(&mut self, bound: &Bound) -> Option<Loc> {
        match bound {
            Bound::Cells(place) => Some(Loc::Val(self.asm.value(*place).ok()?)),
            Bound::Array(held) => {
                let changing = held.changing.map(|(n, _)| (n, self.versions[n]));
                Some(Loc::Array(Held { changing, ..*held }))
            }
            Bound::Constant(_) => None,
        }
    }

    fn case(&mut self, graph: &Graph, node: &Node, branches: &[Body], locs: &[Loc]) -> Option<Vec<Loc>> {
        let index = self.val(locs[0], graph.shape(node.operands[0]))?;
        let index = self.asm.place(index).ok()?;
        let bound = locs[1..].iter().map(|loc| self.bound(*loc)).collect::<Option<Vec<_>>>()?;
        // An array that all branches return, changed in place or not, keeps its location.
        let mut homes = Vec::new();
        for (k, r) in node.results().enumerate() {
            let mut origins = branches.iter().map(|b| origin(b, b.results()[k], 0));
            let first = origins.next()?;
            let kept = first.filter(|p| origins.all(|o| o == Some(*p)));
            homes.push(match kept.map(|p| &bound[p]) {
                Some(Bound::Array(held)) if held.changing.is_some() => Bound::Array(*held),
                _ => Bound::Cells(self.small(graph.shape(r))?),
            });
        }
        let end = self.asm.label();
        let labels: Vec<_> = branches.iter().map(|_| self.asm.label()).collect();
        self.asm.switch(index, &labels).ok()?;
        let before = self.versions.clone();
        let mut latest = before.clone();
        for (branch, label) in branches.iter().zip(&labels) {
            self.versions.clone_from(&before);
            self.asm.bind(*label);
            self.asm.enter();
            let results = self.graph(branch, &bound)?;
            for (k, (loc, home)) in results.iter().zip(&homes).enumerate() {
                match (home, loc) {
                    (Bound::Cells(place), loc) => {
                        let shape = branch.shape(branch.results()[k]);
                        let v = self.val(*loc, shape)?;
                        let from = self.asm.place(v).ok()?;
                        self.asm.copy(from, *place).ok()?;
                    }
                    (Bound::Array(_), Loc::Array(held)) => {
                        if held.changing.map(|c| c.0) != number_of(home) {
                            return None;
                        }
                        self.current(*held)?;
                    }
                    _ => return None,
                }
            }
            self.asm.leave();
            self.asm.jump(end);
            for (l, v) in latest.iter_mut().zip(&self.versions) {
                *l = (*l).max(*v);
            }
        }
        self.asm.bind(end);
        // An array that any branch changes counts as changed, whichever branch runs.
        self.versions = latest;
        homes.iter().map(|home| self.after(home)).collect()
    }
}

/// Returns the number of an array that is changed in place.
fn number_of(bound: &Bound) -> Option<usize> {
    match bound {
        Bound::Array(held) => held.changing.map(|c| c.0),
        _ => None,
    }
}

fn strides(dims: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; dims.len()];
    for d in (1..dims.len()).rev() {
        strides[d - 1] = strides[d] * dims[d];
    }
    strides
}

/// Returns the runs of a slice of an array; `None` if there are too many.
fn runs(dims: &[usize], sizes: &[usize], start: &[usize], stride: &[usize]) -> Option<Runs> {
    let steps = strides(dims);
    let mut len = 1;
    let mut split = dims.len();
    // A run covers the trailing dimensions that the slice takes completely, and the dimension before them.
    while split > 0 && stride[split - 1] == 1 {
        split -= 1;
        len *= sizes[split];
        if sizes[split] != dims[split] {
            break;
        }
    }
    // The first run begins at the start of the slice in all dimensions.
    let first: usize = start.iter().zip(&steps).map(|(s, step)| s * step).sum();
    let mut starts = vec![first];
    for d in 0..split {
        if starts.len().checked_mul(sizes[d])? > MAX_RUNS {
            return None;
        }
        let step = stride[d] * steps[d];
        starts = starts.iter().flat_map(|s| (0..sizes[d]).map(move |i| s + i * step)).collect();
    }
    Some(Runs { starts, len })
}

/// Returns the runs of a window at the origin.
fn whole_window(dims: &[usize], sizes: &[usize]) -> Option<Runs> {
    runs(dims, sizes, &vec![0; dims.len()], &vec![1; dims.len()])
}

/// Returns the dimensions along which a window moves. If indices are checked, these include the dimensions along which it
/// cannot move.
fn window_starts(
    array: &Shape,
    sizes: &[usize],
    index: &[(usize, Place)],
    checked: bool,
) -> Option<Vec<Start>> {
    let steps = strides(&array.dims);
    let mut starts = Vec::new();
    for (d, index) in index {
        let limit = array.dims[*d].checked_sub(sizes[*d])?;
        if limit > 0 || checked {
            starts.push(Start { index: *index, limit, step: steps[*d] });
        }
    }
    Some(starts)
}

/// Returns whether a gather has only one index vector.
fn single_gather(dims: &GatherDims, array: &Shape, indices: &Shape) -> bool {
    dims.operand_batching_dims.is_empty()
        && indices.len() == dims.start_index_map.len()
        && !array.is_empty()
        && dims.offset_dims.is_sorted()
}

/// Returns whether a scatter has only one index vector, and an update that this compiler supports.
fn is_single_scatter(graph: &Graph, node: &Node, dims: &ScatterDims) -> bool {
    let shape = |i: usize| graph.shape(node.operands[i]);
    node.operands.len() == 3
        && dims.input_batching_dims.is_empty()
        && shape(1).len() == dims.scatter_dims_to_operand_dims.len()
        && dims.update_window_dims.is_sorted()
        && (0..shape(0).rank()).all(|d| scatter_window(dims, shape(0), shape(2))[d] <= shape(0).dims[d])
}

/// Returns whether the kernel of a scatter combines elements bit for bit as a region does.
fn same_arithmetic(op: ReduceOp, dtype: DType) -> bool {
    match op {
        ReduceOp::Add => true,
        ReduceOp::Multiply => !dtype.is_complex(),
        // The order of positive and negative zero is unspecified.
        ReduceOp::Minimum | ReduceOp::Maximum => !dtype.is_float(),
        ReduceOp::And | ReduceOp::Or | ReduceOp::Xor => true,
    }
}

/// Returns the size of a scatter's windows in each dimension of the array.
fn scatter_window(dims: &ScatterDims, array: &Shape, updates: &Shape) -> Vec<usize> {
    let mut window = dims.update_window_dims.iter();
    (0..array.rank())
        .map(|d| {
            if dims.inserted_window_dims.contains(&d) || dims.input_batching_dims.contains(&d) {
                1
            } else {
                window.next().map_or(1, |w| updates.dims[*w])
            }
        })
        .collect()
}
