//! The assembler, which creates programs.

use super::Code;
use super::program::instr::{Instr, Op, scalar_op};
use super::program::{
    ArrayId, ArraySpec, Base, Call, Cell, Formula, MAX_CELLS, Operand, Outside, Place, Program, ScalarKernel,
    Start, Vector, Window, cells_of, optimise,
};
use crate::region::node::Node;
use crate::region::{Access, Builder, RegionError, Val};
use crate::tile::{self, Opcode};
use crate::{ComputeType, DType};
use std::collections::HashMap;
use std::sync::Arc;

/// A jump target in the program.
#[derive(Clone, Copy, Debug)]
pub struct Label(usize);

/// Creates a program, instruction by instruction.
///
/// Values of the [`Builder`] belong to the block in which they were created. [`Self::place`] stores a value
/// in cells, which inner blocks can [read](Self::value). All arguments are checked: no program can access
/// memory other than its own and that of its operands and results.
#[derive(Default)]
pub struct Assembler {
    pub(super) instrs: Vec<Instr>,
    pub(super) labels: Vec<Option<usize>>,
    blocks: Vec<Block>,
    /// The number of allocated cells.
    cells: usize,
    /// The initial contents of cells.
    initial: Vec<(Cell, Vec<u8>)>,
    constants: HashMap<Vec<u8>, Cell>,
    arrays: Vec<ArraySpec>,
    windows: Vec<Window>,
    kernels: Vec<ScalarKernel>,
    vectors: Vec<Vector>,
    copies: Vec<(Place, Place)>,
    splats: Vec<(Place, Place)>,
    calls: Vec<Call>,
    switches: Vec<Vec<Label>>,
    reads: usize,
    writes: usize,
}

/// Straight-line code: its values, and the places of those that are stored.
struct Block {
    builder: Builder,
    inputs: Vec<Place>,
    places: Vec<Option<Place>>,
    splats: HashMap<(u32, usize), Place>,
}

fn fail<T>(message: impl Into<String>) -> Result<T, RegionError> {
    Err(RegionError(message.into()))
}

/// Returns the element type whose representation in memory is a register type.
fn dtype_of(ty: ComputeType) -> DType {
    match ty {
        ComputeType::Pred => DType::Pred,
        ComputeType::S8 => DType::S8,
        ComputeType::S16 => DType::S16,
        ComputeType::S32 => DType::S32,
        ComputeType::S64 => DType::S64,
        ComputeType::U8 => DType::U8,
        ComputeType::U16 => DType::U16,
        ComputeType::U32 => DType::U32,
        ComputeType::U64 => DType::U64,
        ComputeType::F32 => DType::F32,
        ComputeType::F64 => DType::F64,
        ComputeType::C64 => DType::C64,
        ComputeType::C128 => DType::C128,
    }
}

impl Assembler {
    /// Creates an empty program with this number of operands and results.
    pub fn new(reads: usize, writes: usize) -> Self {
        Self { reads, writes, ..Self::default() }
    }

    /// Begins a block.
    pub fn enter(&mut self) {
        self.blocks.push(Block {
            builder: Builder::new(&[]),
            inputs: Vec::new(),
            places: Vec::new(),
            splats: HashMap::new(),
        });
    }

    /// Ends the innermost block and discards its values.
    pub fn leave(&mut self) {
        self.blocks.pop();
    }

    /// Returns the builder of the innermost block's arithmetic.
    ///
    /// # Panics
    /// Panics outside any block.
    pub fn builder(&mut self) -> &mut Builder {
        &mut self.block().builder
    }

    fn block(&mut self) -> &mut Block {
        self.blocks.last_mut().expect("inside a block")
    }

    /// Allocates cells for `len` elements.
    ///
    /// # Errors
    /// Returns an error if `len` is zero, or if the program needs too many cells.
    pub fn cells(&mut self, dtype: DType, len: usize) -> Result<Place, RegionError> {
        if len == 0 || len > MAX_CELLS * 8 {
            return fail(format!(
                "cannot allocate cells for {len} elements; expected 1 to {}",
                MAX_CELLS * 8
            ));
        }
        // Vectors that are longer than the rest of an array can be loaded and stored too.
        let bytes = cells_of(dtype, len) * 8;
        let count = if bytes <= 64 { bytes.next_power_of_two() } else { bytes.next_multiple_of(64) } / 8;
        // Short arrays are aligned to cache lines.
        let start = if count > 2 { self.cells.next_multiple_of(8) } else { self.cells };
        if start + count > MAX_CELLS {
            return fail("the program has too many cells");
        }
        self.cells = start + count;
        Ok(Place { cell: start as Cell, dtype, len })
    }

    /// Allocates cells that initially hold these elements.
    ///
    /// # Errors
    /// Returns the same errors as [`Self::cells`], and an error if the bytes are not whole elements.
    pub fn constant(&mut self, dtype: DType, bytes: &[u8]) -> Result<Place, RegionError> {
        if !bytes.len().is_multiple_of(dtype.size()) {
            return fail(format!("{} bytes of {dtype:?}", bytes.len()));
        }
        let len = bytes.len() / dtype.size();
        if let Some(cell) = self.constants.get(bytes) {
            return Ok(Place { cell: *cell, dtype, len });
        }
        let place = self.cells(dtype, len)?;
        self.constants.insert(bytes.to_vec(), place.cell);
        self.initial.push((place.cell, bytes.to_vec()));
        Ok(place)
    }

    /// Returns the contents of a place as a value of the innermost block. The contents must not change while the block uses
    /// the value.
    ///
    /// # Errors
    /// Returns an error if the block is too large.
    pub fn value(&mut self, place: Place) -> Result<Val, RegionError> {
        let block = self.block();
        if let Some(i) = block.inputs.iter().position(|p| *p == place) {
            // An input that was already added is found by its number.
            let raw = block.builder.push(Node::Input { index: i as u32, ty: place.dtype.raw_type() })?;
            let id = block.builder.decoded(raw, place.dtype)?;
            return Ok(Val { id, dtype: place.dtype });
        }
        block.inputs.push(place);
        block.builder.input(place.dtype, Access::scalar(0))
    }

    /// Returns the number of elements of a value, which is one if all elements are equal.
    pub fn len(&mut self, v: Val) -> usize {
        self.node_len(v.id)
    }

    fn node_len(&mut self, id: u32) -> usize {
        // Operands have smaller numbers. Few lengths occur, so the search descends until it finds a long
        // input.
        let block = self.block();
        let mut stack = vec![id];
        let mut seen = std::collections::HashSet::new();
        while let Some(id) = stack.pop() {
            if let Some(Some(place)) = block.places.get(id as usize) {
                if place.len > 1 {
                    return place.len;
                }
                continue;
            }
            match &block.builder.nodes[id as usize] {
                Node::Input { index, .. } => {
                    let len = block.inputs[*index as usize].len;
                    if len > 1 {
                        return len;
                    }
                }
                node => stack.extend(node.args().iter().filter(|a| seen.insert(**a))),
            }
        }
        1
    }

    /// Returns the number of operations that storing a value takes.
    pub fn pending(&mut self, v: Val) -> usize {
        self.wanted(v.id).len()
    }

    /// Returns the place of a value, after computing the value if necessary. The place has a single element if the value is
    /// computed from single elements only.
    ///
    /// # Errors
    /// Returns an error if the program needs too many cells, if the block is too large or contains coordinates, if operands
    /// differ in length, or if an operation is not implemented for its types.
    ///
    /// # Panics
    /// Panics outside any block.
    pub fn place(&mut self, v: Val) -> Result<Place, RegionError> {
        let node = self.builder().encoded(v)?;
        let place = self.computed(node)?;
        Ok(Place { dtype: v.dtype, ..place })
    }

    /// Returns the place of a value with all of its `len` elements.
    ///
    /// # Errors
    /// Returns the same errors as [`Self::place`], and an error if the value has a different number of elements.
    pub fn full(&mut self, v: Val, len: usize) -> Result<Place, RegionError> {
        let node = self.builder().encoded(v)?;
        let place = self.computed(node)?;
        let place = if place.len == len {
            place
        } else if place.len == 1 {
            self.spread(node, len)?
        } else {
            return fail(format!("found {} elements; expected {len}", place.len));
        };
        Ok(Place { dtype: v.dtype, ..place })
    }

    /// Stores `len` copies of a single element.
    fn spread(&mut self, node: u32, len: usize) -> Result<Place, RegionError> {
        if let Some(place) = self.block().splats.get(&(node, len)) {
            return Ok(*place);
        }
        let one = self.computed(node)?;
        let place = match self.block().builder.nodes[node as usize] {
            Node::Const { bits, .. } => {
                let element = &bits.to_le_bytes()[..one.dtype.size()];
                self.constant(one.dtype, &element.repeat(len))?
            }
            _ => {
                let place = self.cells(one.dtype, len)?;
                self.splat(one, place)?;
                place
            }
        };
        self.block().splats.insert((node, len), place);
        Ok(place)
    }

    fn splat(&mut self, from: Place, to: Place) -> Result<(), RegionError> {
        let x = self.index(self.splats.len())?;
        self.splats.push((to, from));
        self.push(Op::Splat, to.cell, [from.cell; 3], x);
        Ok(())
    }

    /// Returns the place of a node's value in its register form.
    fn computed(&mut self, node: u32) -> Result<Place, RegionError> {
        let block = self.block();
        block.places.resize(block.builder.nodes.len(), None);
        if let Some(place) = block.places[node as usize] {
            return Ok(place);
        }
        // Operands have smaller numbers than the nodes that use them.
        let mut wanted = self.wanted(node);
        wanted.sort_unstable();
        for id in wanted {
            let place = self.compute(id)?;
            self.block().places[id as usize] = Some(place);
        }
        Ok(self.block().places[node as usize].expect("just computed"))
    }

    /// Returns the nodes that must be computed to store a node, including the node itself.
    fn wanted(&mut self, node: u32) -> Vec<u32> {
        let block = self.block();
        let mut wanted = vec![];
        let mut stack = vec![node];
        let mut seen = vec![false; node as usize + 1];
        while let Some(id) = stack.pop() {
            let placed = block.places.get(id as usize).is_some_and(Option::is_some);
            if placed || std::mem::replace(&mut seen[id as usize], true) {
                continue;
            }
            wanted.push(id);
            stack.extend(block.builder.nodes[id as usize].args());
        }
        wanted
    }

    /// Computes a node whose operands have places.
    fn compute(&mut self, id: u32) -> Result<Place, RegionError> {
        let node = self.block().builder.nodes[id as usize].clone();
        let dtype = dtype_of(node.ty());
        match node {
            Node::Input { index, .. } => Ok(Place { dtype, ..self.block().inputs[index as usize] }),
            Node::Const { bits, .. } => self.constant(dtype, &bits.to_le_bytes()[..dtype.size()]),
            Node::Iota { .. } => fail("a block cannot contain coordinates"),
            Node::Op { opcode: Opcode::Reinterpret, args: [from, ..], .. } => {
                Ok(Place { dtype, ..self.computed_place(from) })
            }
            Node::Op { opcode, ty, .. } => self.operation(opcode, ty, node.args()),
        }
    }

    /// Returns the place of a node that was computed.
    fn computed_place(&mut self, node: u32) -> Place {
        self.block().places[node as usize].expect("operands precede their users")
    }

    /// Adds the instruction of an operation.
    fn operation(&mut self, opcode: Opcode, ty: ComputeType, args: &[u32]) -> Result<Place, RegionError> {
        let types: Vec<ComputeType> =
            args.iter().map(|a| self.block().builder.nodes[*a as usize].ty()).collect();
        // Operands that the operation does not have repeat the first one.
        let mut src = [self.computed_place(args[0]); 3];
        for (place, a) in src.iter_mut().zip(args) {
            *place = self.computed_place(*a);
        }
        let len = src.iter().map(|p| p.len).max().unwrap_or(1);
        if src.iter().any(|p| p.len != 1 && p.len != len) {
            return fail(format!("operands of {opcode:?} have the lengths {:?}", src.map(|p| p.len)));
        }
        let dst = self.cells(dtype_of(ty), len)?;
        if len == 1 && src.iter().chain([&dst]).all(|p| p.bytes() <= 8) {
            self.scalar_operation(opcode, ty, &types, dst, src)?;
        } else {
            self.vector_operation(opcode, ty, &types, dst, src, args)?;
        }
        Ok(dst)
    }

    /// Adds the instruction of an operation on single elements of at most eight bytes.
    fn scalar_operation(
        &mut self,
        opcode: Opcode,
        ty: ComputeType,
        types: &[ComputeType],
        dst: Place,
        src: [Place; 3],
    ) -> Result<(), RegionError> {
        let [a, b, c] = src.map(|p| p.cell);
        if let Some((op, swapped)) = scalar_op(opcode, ty, types[0]) {
            self.push(op, dst.cell, if swapped { [b, a, c] } else { [a, b, c] }, 0);
            return Ok(());
        }
        let Some(kernel) = tile::kernel(opcode, ty, types) else {
            return fail(format!("{opcode:?} of {types:?} to {ty:?} is not implemented"));
        };
        let x = self.index(self.kernels.len())?;
        self.kernels.push(ScalarKernel { kernel, opcode, to: ty, from: types[0] });
        self.push(Op::Kernel, dst.cell, [a, b, c], x);
        Ok(())
    }

    /// Adds the instruction of an operation on short arrays. Single elements among the operands are repeated
    /// if there is no loop for them.
    fn vector_operation(
        &mut self,
        opcode: Opcode,
        ty: ComputeType,
        types: &[ComputeType],
        dst: Place,
        mut src: [Place; 3],
        args: &[u32],
    ) -> Result<(), RegionError> {
        let n = dst.len;
        let scalars = (0..args.len()).filter(|k| src[*k].len < n);
        let mask = scalars.fold(0u8, |mask, k| mask | 1 << k);
        let masked = tile::kernel_with_scalars(opcode, ty, types, mask);
        let Some(kernel) = masked.or_else(|| tile::kernel(opcode, ty, types)) else {
            return fail(format!("{opcode:?} of {types:?} to {ty:?} is not implemented"));
        };
        if masked.is_none() {
            for (place, a) in src.iter_mut().zip(args).filter(|(place, _)| place.len < n) {
                *place = self.spread(*a, n)?;
            }
        }
        let first = src[0];
        src[args.len()..].fill(first);
        let x = self.index(self.vectors.len())?;
        self.vectors.push(Vector { kernel, opcode, to: ty, from: types[0], dst, src, n });
        self.push(Op::Vector, dst.cell, src.map(|p| p.cell), x);
        Ok(())
    }

    fn push(&mut self, op: Op, dst: Cell, [a, b, c]: [Cell; 3], x: u16) {
        self.instrs.push(Instr { op, dst, a, b, c, x });
    }

    fn index(&self, n: usize) -> Result<u16, RegionError> {
        u16::try_from(n).map_err(|_| RegionError("the program has more than 65536 parts of one kind".into()))
    }

    /// Declares operand `number`, an array of `len` elements.
    ///
    /// # Errors
    /// Returns an error if there is no such operand.
    pub fn read(&mut self, number: usize, dtype: DType, len: usize) -> Result<ArrayId, RegionError> {
        if number >= self.reads {
            return fail(format!("there is no operand {number}; the program has {}", self.reads));
        }
        self.array(ArraySpec { base: Base::Read(number), dtype, len })
    }

    /// Declares result `number`, an array of `len` elements, which has its initial value when the program
    /// begins.
    ///
    /// # Errors
    /// Returns an error if there is no such result.
    pub fn write(&mut self, number: usize, dtype: DType, len: usize) -> Result<ArrayId, RegionError> {
        if number >= self.writes {
            return fail(format!("there is no result {number}; the program has {}", self.writes));
        }
        self.array(ArraySpec { base: Base::Write(number), dtype, len })
    }

    /// Declares cells as an array.
    ///
    /// # Errors
    /// Returns an error if there are too many arrays.
    pub fn array_of(&mut self, place: Place) -> Result<ArrayId, RegionError> {
        self.array(ArraySpec { base: Base::Cells(place.cell), dtype: place.dtype, len: place.len })
    }

    fn array(&mut self, spec: ArraySpec) -> Result<ArrayId, RegionError> {
        let same = |a: &ArraySpec| a.base == spec.base && a.dtype == spec.dtype && a.len == spec.len;
        if let Some(i) = self.arrays.iter().position(same) {
            return Ok(ArrayId(i as u16));
        }
        let n = self.index(self.arrays.len())?;
        self.arrays.push(spec);
        Ok(ArrayId(n))
    }

    /// Reads a window: the elements `runs[i]..runs[i] + run` for each `i`, shifted by the indices of
    /// `starts`.
    ///
    /// # Errors
    /// Returns an error if the window exceeds the array for indices within their limits, or if its number of
    /// elements is not that of `to`.
    pub fn load(
        &mut self,
        array: ArrayId,
        starts: &[Start],
        runs: &[usize],
        run: usize,
        to: Place,
    ) -> Result<(), RegionError> {
        let x = self.window(array, starts, runs, run, Outside::Clamp, to)?;
        self.push(Op::Load, to.cell, [to.cell; 3], x);
        Ok(())
    }

    /// Writes a window; see [`Self::load`].
    ///
    /// # Errors
    /// Returns the same errors as [`Self::load`], and an error if the array is read-only.
    pub fn store(
        &mut self,
        array: ArrayId,
        starts: &[Start],
        runs: &[usize],
        run: usize,
        outside: Outside,
        from: Place,
    ) -> Result<(), RegionError> {
        if matches!(self.arrays[usize::from(array.0)].base, Base::Read(_)) {
            return fail("an operand cannot be written");
        }
        let x = self.window(array, starts, runs, run, outside, from)?;
        self.push(Op::Store, from.cell, [from.cell; 3], x);
        Ok(())
    }

    fn window(
        &mut self,
        array: ArrayId,
        starts: &[Start],
        runs: &[usize],
        run: usize,
        outside: Outside,
        place: Place,
    ) -> Result<u16, RegionError> {
        let spec = self.arrays[usize::from(array.0)];
        let size = spec.dtype.size();
        let moved = starts.iter().try_fold(0usize, |n, s| n.checked_add(s.limit.checked_mul(s.step)?));
        let end = moved
            .and_then(|m| m.checked_add(runs.iter().copied().max().unwrap_or(0)))
            .and_then(|m| m.checked_add(run));
        if end.is_none_or(|e| e > spec.len) || runs.len() * run != place.len || spec.dtype != place.dtype {
            return fail("the window exceeds its array");
        }
        if starts.iter().any(|s| s.index.len != 1 || s.index.dtype.is_float() || s.index.dtype.is_complex()) {
            return fail("an index must be a single integer");
        }
        let window = Window {
            array,
            starts: starts
                .iter()
                .map(|s| (s.index.cell, s.index.dtype, s.limit as i64, s.step * size))
                .collect(),
            runs: runs.iter().map(|r| r * size).collect(),
            run: run * size,
            outside,
        };
        let x = self.index(self.windows.len())?;
        self.windows.push(window);
        Ok(x)
    }

    /// Copies a value to another place; a single element is repeated.
    ///
    /// # Errors
    /// Returns an error if types or lengths differ.
    pub fn copy(&mut self, from: Place, to: Place) -> Result<(), RegionError> {
        if from.dtype != to.dtype || (from.len != to.len && from.len != 1) {
            return fail(format!("{from:?} cannot be copied to {to:?}"));
        }
        if from.cell == to.cell {
            return Ok(());
        }
        if from.len != to.len {
            return self.splat(from, to);
        }
        if to.bytes() <= 8 && to.len == 1 {
            self.push(Op::Mov, to.cell, [from.cell; 3], 0);
            return Ok(());
        }
        let x = self.index(self.copies.len())?;
        self.copies.push((to, from));
        self.push(Op::Copy, to.cell, [from.cell; 3], x);
        Ok(())
    }

    /// Copies values to other places simultaneously: a place may be both read and written.
    ///
    /// # Errors
    /// Returns the same errors as [`Self::copy`].
    pub fn copy_all(&mut self, moves: &[(Place, Place)]) -> Result<(), RegionError> {
        let mut rest: Vec<(Place, Place)> = moves.iter().filter(|(f, t)| f.cell != t.cell).copied().collect();
        while !rest.is_empty() {
            let read = |p: &Place, rest: &[(Place, Place)], but: usize| {
                rest.iter().enumerate().any(|(i, (from, _))| i != but && from.cell == p.cell)
            };
            match (0..rest.len()).find(|i| !read(&rest[*i].1, &rest, *i)) {
                Some(i) => {
                    let (from, to) = rest.remove(i);
                    self.copy(from, to)?;
                }
                None => {
                    // The remaining copies form cycles: one value is stored temporarily.
                    let from = rest[0].0;
                    let aside = self.cells(from.dtype, from.len)?;
                    self.copy(from, aside)?;
                    rest.iter_mut().filter(|(f, _)| *f == from).for_each(|(f, _)| *f = aside);
                }
            }
        }
        Ok(())
    }

    /// Adds a call of the program's caller, which receives the number `what` and these arrays. Machine code uses the formula
    /// instead, if there is one.
    ///
    /// # Errors
    /// Returns an error if dimensions do not match the arrays, if a result is an operand of the program, or if the formula does not
    /// match the arrays.
    pub fn call(
        &mut self,
        what: usize,
        formula: Option<Formula>,
        reads: &[(ArrayId, &[usize])],
        writes: &[(ArrayId, &[usize])],
    ) -> Result<(), RegionError> {
        let operands = |list: &[(ArrayId, &[usize])]| {
            list.iter()
                .map(|(array, dims)| {
                    let spec = self.arrays[usize::from(array.0)];
                    if dims.iter().product::<usize>() != spec.len {
                        return fail(format!("{dims:?} of {} elements", spec.len));
                    }
                    Ok(Operand { array: *array, dtype: spec.dtype, dims: (*dims).into() })
                })
                .collect::<Result<Vec<_>, _>>()
        };
        let (reads, writes) = (operands(reads)?, operands(writes)?);
        // The results are in cells that contain no operand, so that the arrays of a call are disjoint.
        let range = |o: &Operand| match self.arrays[usize::from(o.array.0)] {
            ArraySpec { base: Base::Cells(cell), dtype, len } => Some(Place { cell, dtype, len }.cells()),
            _ => None,
        };
        for (i, w) in writes.iter().enumerate() {
            let Some(mine) = range(w) else { return fail("a call can only write to cells") };
            let others = reads.iter().chain(&writes[..i]).filter_map(range);
            if others.into_iter().any(|o| o.start < mine.end && mine.start < o.end) {
                return fail("the arrays of a call overlap");
            }
        }
        if formula.is_some_and(|f| !f.fits(&self.arrays, &reads, &writes)) {
            return fail("the formula does not match the arrays of the call");
        }
        let x = self.index(self.calls.len())?;
        self.calls.push(Call { what, formula, reads, writes });
        self.push(Op::Call, 0, [0; 3], x);
        Ok(())
    }

    /// Creates a label, which must be [bound](Self::bind).
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Binds a label to the next instruction.
    pub fn bind(&mut self, label: Label) {
        self.labels[label.0] = Some(self.instrs.len());
    }

    /// Jumps to a label.
    pub fn jump(&mut self, to: Label) {
        self.push(Op::Jump, 0, [0; 3], to.0 as u16);
    }

    /// Jumps back to the start of a loop if a boolean is true.
    ///
    /// # Errors
    /// Returns an error if the predicate is not a single boolean.
    pub fn jump_if(&mut self, predicate: Place, to: Label) -> Result<(), RegionError> {
        self.conditional(Op::JumpIf, predicate, to)
    }

    /// Jumps to a label if a boolean is false.
    ///
    /// # Errors
    /// Returns an error if the predicate is not a single boolean.
    pub fn jump_if_not(&mut self, predicate: Place, to: Label) -> Result<(), RegionError> {
        self.conditional(Op::JumpIfNot, predicate, to)
    }

    fn conditional(&mut self, op: Op, predicate: Place, to: Label) -> Result<(), RegionError> {
        if predicate.dtype != DType::Pred || predicate.len != 1 {
            return fail("a condition must be a single boolean");
        }
        self.push(op, 0, [predicate.cell; 3], to.0 as u16);
        Ok(())
    }

    /// Jumps to one of several labels by an index (i32), or to the last label if the index is out of range.
    ///
    /// # Errors
    /// Returns an error if the index is not a single i32, or if there are no labels.
    pub fn switch(&mut self, index: Place, to: &[Label]) -> Result<(), RegionError> {
        if index.dtype != DType::S32 || index.len != 1 || to.is_empty() {
            return fail("an index must be a single i32");
        }
        let x = self.index(self.switches.len())?;
        self.switches.push(to.to_vec());
        self.push(Op::Switch, 0, [index.cell; 3], x);
        Ok(())
    }

    /// Returns the finished program.
    ///
    /// # Errors
    /// Returns an error if the program is too long, or if a label is not bound.
    pub fn finish(mut self) -> Result<Code, RegionError> {
        self.push(Op::End, 0, [0; 3], 0);
        if self.instrs.len() > usize::from(u16::MAX) || self.labels.len() > usize::from(u16::MAX) {
            return fail("the program has too many instructions");
        }
        let labels: Vec<usize> = self
            .labels
            .iter()
            .map(|l| l.ok_or_else(|| RegionError("a label is not bound".into())))
            .collect::<Result<_, _>>()?;
        // Vectors that begin with the last elements of an array can be loaded.
        let mut cells = vec![0u64; self.cells + 8];
        for (cell, bytes) in &self.initial {
            for (to, word) in cells[usize::from(*cell)..].iter_mut().zip(bytes.chunks(8)) {
                let mut all = [0; 8];
                all[..word.len()].copy_from_slice(word);
                *to = u64::from_le_bytes(all);
            }
        }
        let switches = self.switches.iter().map(|s| s.iter().map(|l| l.0 as u16).collect()).collect();
        let mut program = Program {
            instrs: self.instrs,
            cells,
            arrays: self.arrays,
            windows: self.windows,
            kernels: self.kernels,
            vectors: self.vectors,
            copies: self.copies,
            splats: self.splats,
            calls: self.calls,
            switches,
            reads: self.reads,
            writes: self.writes,
        };
        optimise::optimise(&mut program, labels);
        program.check();
        Ok(Code { program, native: Arc::default() })
    }
}
