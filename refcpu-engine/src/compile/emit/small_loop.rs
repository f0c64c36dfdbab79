//! Compiles loops over small values to programs of the register machine.
//!
//! A loop qualifies if the values that its steps compute are small, and if it changes the larger arrays that it carries in
//! place, by reading and writing windows of them. All other loops use ordinary steps. The overhead of one step exceeds the
//! arithmetic of a small loop.

use super::formula::formula;
use super::in_place::{KEPT, MAX_DEPTH, changes_in_place, origin, same_value, twin};
use super::select::{InstructionKind, kernel};
use super::windows::{
    Runs, few_gathers, few_scatters, moved_runs, padded_runs, runs, same_arithmetic, scatter_window,
    whole_window, window_starts,
};
use crate::graph::{Body, Constant, GatherDims, Graph, Node, Op, Reducer, Shape, iota, ops};
use crate::plan::{Kernel, SmallLoop};
use refcpu_kernels::machine::{ArrayId, Assembler, Outside, Place, Start};
use refcpu_kernels::region::Val;

/// The maximum number of elements of an array that a step computes.
const LONGEST: usize = 2048;

/// The number of elements from which an array is long: shorter ones are in registers.
const LONG: usize = 32;

/// A compiled loop, and the operands that it reads as arrays, by index.
pub(super) struct Compiled {
    pub(super) code: SmallLoop,
    pub(super) captured: Vec<usize>,
}

/// Compiles a loop; returns `None` if it does not qualify. The results are the carried values, which contain the initial values
/// before the loop.
pub(super) fn small_loop(graph: &Graph, node: &Node) -> Option<Compiled> {
    let mut in_place = InPlace::Allowed;
    let first = compiled(graph, node, &mut in_place);
    // An inner loop that reads an array after a change of it needs copies.
    if first.is_some() || in_place == InPlace::Allowed {
        first
    } else {
        compiled(graph, node, &mut InPlace::Refused)
    }
}

/// Whether inner loops change long arrays in place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InPlace {
    Refused,
    Allowed,
    /// Allowed, and a loop does.
    Used,
}

/// Compiles a loop; returns `None` if it does not qualify.
fn compiled(graph: &Graph, node: &Node, in_place: &mut InPlace) -> Option<Compiled> {
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
        in_place,
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

/// An array outside the cells, or one of the loop's own.
#[derive(Clone, Copy)]
struct Held {
    array: ArrayId,
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

/// The operands of a node, and their types.
struct Operands<'a> {
    locs: &'a [Loc],
    shapes: &'a [&'a Shape],
}

struct Lowering<'a> {
    asm: Assembler,
    calls: Vec<Kernel>,
    /// For each array, the number of its changes so far.
    versions: Vec<u32>,
    depth: usize,
    in_place: &'a mut InPlace,
}

impl Lowering<'_> {
    /// Allocates cells for a value; returns `None` if the value is too large.
    fn small(&mut self, shape: &Shape) -> Option<Place> {
        if shape.len() > LONGEST { None } else { self.asm.cells(shape.dtype, shape.len()).ok() }
    }

    fn changing(&mut self, array: ArrayId) -> Held {
        self.versions.push(0);
        Held { array, changing: Some((self.versions.len() - 1, 0)) }
    }

    /// Returns the array of a value; `None` if the array was changed after it had this value.
    fn current(&self, held: Held) -> Option<ArrayId> {
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
    fn array(&mut self, loc: Loc, shape: &Shape) -> Option<ArrayId> {
        match loc {
            Loc::Array(held) => self.current(held),
            Loc::Val(v) => {
                let place = self.asm.full(v, shape.len()).ok()?;
                self.asm.array_of(place).ok()
            }
        }
    }

    /// Allocates an array in cells. Returns its cells, the array and its location as a value.
    fn fresh(&mut self, shape: &Shape) -> Option<(Place, ArrayId, Loc)> {
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
        let x = Operands { locs: &locs, shapes: &shapes };
        let one = match &node.op {
            Op::Constant(c) if c.splat || c.shape.len() <= LONGEST => self.constant(c)?,
            Op::Iota(ops::Iota { dim }) => {
                let coordinates = iota(result, *dim).filter(|_| result.len() <= LONGEST)?;
                self.dense(&coordinates)?
            }
            Op::Barrier => return Some(locs),
            op if self.keeps_elements(op, &x, result) => locs[0],
            Op::Broadcast(_) if shapes[0].len() == 1 => Loc::Val(self.val(locs[0], shapes[0])?),
            Op::Slice(slice) => self.slice(slice, &x, result)?,
            Op::DynamicSlice => self.dynamic_slice(&x, result)?,
            Op::DynamicUpdateSlice => self.dynamic_update_slice(&x)?,
            Op::Broadcast(_) | Op::Transpose(_) | Op::Reverse(_)
                if moved_runs(&node.op, &shapes[0].dims, &result.dims).is_some() =>
            {
                let runs = moved_runs(&node.op, &shapes[0].dims, &result.dims)?;
                self.window(&x, &[], &runs, result)?
            }
            Op::Pad(pad) if padded_runs(pad, shapes[0], result).is_some() => self.pad(pad, &x, result)?,
            Op::Gather(dims) if few_gathers(dims, shapes[0], shapes[1], result).is_some() => {
                self.gather(dims, &x, result)?
            }
            Op::Scatter(scatter) if node.results == 1 && few_scatters(graph, node, scatter).is_some() => {
                self.scatter(scatter, &x, few_scatters(graph, node, scatter)?)?
            }
            Op::Concatenate(concatenate) => self.concatenate(concatenate, &x, result)?,
            Op::While(ops::While { carried, condition, body }) => {
                return self.inner_loop(graph, node, *carried, condition, body, &locs);
            }
            Op::Case(ops::Case { branches }) => return self.case(graph, node, branches, &locs),
            Op::Collective(_) | Op::HostSend(_) | Op::HostReceive(_) => return None,
            Op::Manual(_) | Op::Foreign(_) => return None,
            op if node.results == 1 && op.is_elementwise(&shapes, result) => {
                self.elementwise(op, &x, result)?
            }
            _ => return self.call(graph, node, &locs),
        };
        Some(vec![one])
    }

    fn constant(&mut self, constant: &Constant) -> Option<Loc> {
        if !constant.splat {
            return self.dense(constant);
        }
        Some(Loc::Val(self.asm.builder().constant_bytes(constant.shape.dtype, &constant.bytes).ok()?))
    }

    /// Adds a constant with all its elements in cells.
    fn dense(&mut self, constant: &Constant) -> Option<Loc> {
        let place = self.asm.constant(constant.shape.dtype, &constant.to_dense()).ok()?;
        Some(Loc::Val(self.asm.value(place).ok()?))
    }

    /// Returns whether the result has the elements of the first operand, in the same order.
    fn keeps_elements(&mut self, op: &Op, x: &Operands<'_>, result: &Shape) -> bool {
        let (Some(loc), Some(from)) = (x.locs.first(), x.shapes.first()) else { return false };
        // A value of one element that represents all is the same under every shape.
        let is_uniform = matches!(loc, Loc::Val(v) if self.asm.len(*v) == 1);
        match op {
            Op::Reshape => true,
            Op::Broadcast(_) | Op::Transpose(_) | Op::Slice(_) | Op::Reverse(_) | Op::DynamicSlice
                if is_uniform =>
            {
                true
            }
            Op::Broadcast(ops::Broadcast { dims }) => from.len() == result.len() && dims.is_sorted(),
            Op::Transpose(ops::Transpose { permutation }) => {
                permutation.iter().filter(|d| from.dims[**d] != 1).is_sorted()
            }
            _ => false,
        }
    }

    fn slice(&mut self, slice: &ops::Slice, x: &Operands<'_>, result: &Shape) -> Option<Loc> {
        let runs = runs(&x.shapes[0].dims, &result.dims, &slice.start, &slice.stride)?;
        self.window(x, &[], &runs, result)
    }

    fn dynamic_slice(&mut self, x: &Operands<'_>, result: &Shape) -> Option<Loc> {
        let starts = self.starts(&x.locs[1..], &x.shapes[1..], x.shapes[0], &result.dims)?;
        let window = whole_window(&x.shapes[0].dims, &result.dims)?;
        self.window(x, &starts, &window, result)
    }

    fn gather(&mut self, dims: &GatherDims, x: &Operands<'_>, result: &Shape) -> Option<Loc> {
        let window = whole_window(&x.shapes[0].dims, &dims.slice_sizes)?;
        let n = few_gathers(dims, x.shapes[0], x.shapes[1], result)?;
        if n == 1 {
            let index = self.components(x.locs[1], x.shapes[1], &dims.start_index_map, 0)?;
            let starts = window_starts(x.shapes[0], &dims.slice_sizes, &index, false)?;
            return self.window(x, &starts, &window, result);
        }
        let from = self.array(x.locs[0], x.shapes[0])?;
        let (_, array, loc) = self.fresh(result)?;
        let len = result.len() / n;
        for vector in 0..n {
            let index = self.components(x.locs[1], x.shapes[1], &dims.start_index_map, vector)?;
            let starts = window_starts(x.shapes[0], &dims.slice_sizes, &index, false)?;
            let slice = self.asm.cells(result.dtype, len).ok()?;
            self.asm.load(from, &starts, &window.starts, window.len, slice).ok()?;
            self.asm.store(array, &[], &[vector * len], len, Outside::Clamp, slice).ok()?;
        }
        Some(loc)
    }

    fn pad(&mut self, pad: &ops::Pad, x: &Operands<'_>, result: &Shape) -> Option<Loc> {
        let window = padded_runs(pad, x.shapes[0], result)?;
        let value = self.val(x.locs[1], x.shapes[1])?;
        let value = self.asm.place(value).ok()?;
        let v = self.val(x.locs[0], x.shapes[0])?;
        let part = self.asm.full(v, x.shapes[0].len()).ok()?;
        let (place, array, loc) = self.fresh(result)?;
        self.asm.copy(value, place).ok()?;
        self.asm.store(array, &[], &window.starts, window.len, Outside::Clamp, part).ok()?;
        Some(loc)
    }

    /// Copies a window of the first operand.
    fn window(&mut self, x: &Operands<'_>, starts: &[Start], window: &Runs, result: &Shape) -> Option<Loc> {
        let from = self.array(x.locs[0], x.shapes[0])?;
        let (place, _, loc) = self.fresh(result)?;
        self.asm.load(from, starts, &window.starts, window.len, place).ok()?;
        Some(loc)
    }

    fn dynamic_update_slice(&mut self, x: &Operands<'_>) -> Option<Loc> {
        let (shape, of_update) = (x.shapes[0], x.shapes[1]);
        let starts = self.starts(&x.locs[2..], &x.shapes[2..], shape, &of_update.dims)?;
        let window = whole_window(&shape.dims, &of_update.dims)?;
        let update = self.val(x.locs[1], of_update)?;
        let update = self.asm.full(update, of_update.len()).ok()?;
        self.update(x.locs[0], shape, &starts, &window, Outside::Clamp, update)
    }

    fn scatter(&mut self, scatter: &ops::Scatter, x: &Operands<'_>, n: usize) -> Option<Loc> {
        let (dims, shape, of_update) = (&scatter.dims, x.shapes[0], x.shapes[2]);
        let sizes = scatter_window(dims, shape, of_update);
        let window = whole_window(&shape.dims, &sizes)?;
        let len = of_update.len() / n;
        let updates = self.val(x.locs[2], of_update)?;
        let is_uniform = n == 1 || self.asm.len(updates) == 1;
        let mut of = x.locs[0];
        if n > 1 && !matches!(of, Loc::Array(Held { changing: Some(_), .. })) {
            of = self.copied(of, shape)?;
        }
        for vector in 0..n {
            let index =
                self.components(x.locs[1], x.shapes[1], &dims.scatter_dims_to_operand_dims, vector)?;
            let starts = window_starts(shape, &sizes, &index, true)?;
            let mut update = updates;
            if !is_uniform {
                let all = self.array(x.locs[2], of_update)?;
                let part = self.asm.cells(shape.dtype, len).ok()?;
                self.asm.load(all, &[], &[vector * len], len, part).ok()?;
                update = self.asm.value(part).ok()?;
            }
            match &scatter.combiner {
                None => {}
                Some(Reducer::Op(op)) if same_arithmetic(*op, shape.dtype) => {
                    let array = self.array(of, shape)?;
                    let old = self.asm.cells(shape.dtype, len).ok()?;
                    self.asm.load(array, &starts, &window.starts, window.len, old).ok()?;
                    let old = self.asm.value(old).ok()?;
                    update = self.asm.builder().op(ops::tile_op(*op), &[old, update]).ok()?;
                }
                Some(_) => return None,
            }
            let update = self.asm.full(update, len).ok()?;
            of = match of {
                Loc::Val(_) if n > 1 => {
                    let array = self.array(of, shape)?;
                    self.asm.store(array, &starts, &window.starts, window.len, Outside::Skip, update).ok()?;
                    of
                }
                of => self.update(of, shape, &starts, &window, Outside::Skip, update)?,
            };
        }
        Some(of)
    }

    /// Copies a value to cells of its own, which the caller may change before anything else reads them.
    fn copied(&mut self, of: Loc, shape: &Shape) -> Option<Loc> {
        let old = self.val(of, shape)?;
        let old = self.asm.full(old, shape.len()).ok()?;
        let (place, _, loc) = self.fresh(shape)?;
        self.asm.copy(old, place).ok()?;
        Some(loc)
    }

    fn concatenate(
        &mut self,
        ops::Concatenate { dim, parts }: &ops::Concatenate,
        x: &Operands<'_>,
        result: &Shape,
    ) -> Option<Loc> {
        let (_, array, loc) = self.fresh(result)?;
        let (mut at, stride) = (0, vec![1; result.rank()]);
        for (k, (loc, whole)) in x.locs.iter().zip(x.shapes).enumerate() {
            let mut start = vec![0; result.rank()];
            let mut dims = whole.dims.to_vec();
            dims[*dim] = parts[k].len();
            let shape = Shape::new(whole.dtype, &dims);
            let from = if shape == **whole {
                *loc
            } else {
                start[*dim] = parts[k].start;
                let (locs, shapes) = (&[*loc], &[*whole]);
                self.slice(
                    &ops::Slice { start: start.clone(), stride: stride.clone() },
                    &Operands { locs, shapes },
                    &shape,
                )?
            };
            start[*dim] = at;
            at += shape.dims[*dim];
            let window = runs(&result.dims, &shape.dims, &start, &stride)?;
            let v = self.val(from, &shape)?;
            let part = self.asm.full(v, shape.len()).ok()?;
            self.asm.store(array, &[], &window.starts, window.len, Outside::Clamp, part).ok()?;
        }
        Some(loc)
    }

    fn elementwise(&mut self, op: &Op, x: &Operands<'_>, result: &Shape) -> Option<Loc> {
        let args = x.locs.iter().zip(x.shapes).map(|(loc, shape)| self.val(*loc, shape));
        let args = args.collect::<Option<Vec<_>>>()?;
        if result.len() > LONGEST && args.iter().any(|a| self.asm.len(*a) > 1) {
            return None;
        }
        Some(Loc::Val(op.emit(self.asm.builder(), &args, result.dtype).ok()?))
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
    fn components(
        &mut self,
        loc: Loc,
        shape: &Shape,
        map: &[usize],
        number: usize,
    ) -> Option<Vec<(usize, Place)>> {
        let v = self.val(loc, shape)?;
        let vector = self.asm.place(v).ok()?;
        let mut all = Vec::new();
        for (i, d) in map.iter().enumerate() {
            let place = if vector.len() == 1 {
                vector
            } else {
                let array = self.asm.array_of(vector).ok()?;
                let one = self.asm.cells(shape.dtype, 1).ok()?;
                self.asm.load(array, &[], &[number * map.len() + i], 1, one).ok()?;
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
        let shapes: Vec<&Shape> = node.operands.iter().map(|v| graph.shape(*v)).collect();
        let results_of: Vec<&Shape> = node.results().map(|r| graph.shape(r)).collect();
        let constants: Vec<Option<&Constant>> = node.operands.iter().map(|v| graph.constant(*v)).collect();
        let formula = formula(&node.op, &shapes, &constants, &results_of);
        self.asm.call(self.calls.len(), formula, &reads, &writes).ok()?;
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
                loc if *self.in_place != InPlace::Refused
                    && shape.len() >= LONG
                    && changes_in_place(body, j) =>
                {
                    *self.in_place = InPlace::Used;
                    let v = self.val(*loc, shape)?;
                    let from = self.asm.full(v, shape.len()).ok()?;
                    let place = self.small(shape)?;
                    let array = self.asm.array_of(place).ok()?;
                    initial.push((from, place));
                    bound.push(Bound::Array(self.changing(array)));
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
