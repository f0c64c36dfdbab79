//! The peephole optimizer, and the check that the resulting instructions stay inside the cells.

use super::instr::{Instr, Op};
use super::{ArraySpec, Base, Cell, Operand, Place, Program};
use std::ops::Range;

/// Replaces labels with instruction indices in jumps, and combines instructions where this does not change
/// results.
///
/// `labels` contains the index of the instruction that follows each label.
pub(crate) fn optimise(code: &mut Program, mut labels: Vec<usize>) {
    let mut reads = vec![0u32; code.cells.len()];
    for i in &code.instrs {
        for range in code.reads_of(i) {
            reads[range].iter_mut().for_each(|n| *n += 1);
        }
    }
    let starts = block_starts(&code.instrs, &labels);
    multiply_add(&mut code.instrs, &mut reads, &starts);
    write_where_wanted(code, &reads, &starts);
    compact(&mut code.instrs, &mut labels);
    let starts = block_starts(&code.instrs, &labels);
    compare_and_jump(&mut code.instrs, &reads, &starts);
    compact(&mut code.instrs, &mut labels);
    for i in &mut code.instrs {
        if matches!(i.op, Op::Jump | Op::JumpIf | Op::JumpIfNot | Op::AddJumpLtS32 | Op::AddJumpLtS64)
            || i.op.is_compare_jump()
        {
            i.x = labels[usize::from(i.x)] as u16;
        }
    }
    for label in code.switches.iter_mut().flatten() {
        *label = labels[usize::from(*label)] as u16;
    }
}

/// Returns for each instruction whether control can reach it other than from the preceding instruction.
fn block_starts(instrs: &[Instr], labels: &[usize]) -> Vec<bool> {
    let mut starts = vec![false; instrs.len() + 1];
    labels.iter().for_each(|l| starts[*l] = true);
    for (at, i) in instrs.iter().enumerate() {
        if is_jump(i.op) {
            starts[at + 1] = true;
        }
    }
    starts
}

fn is_jump(op: Op) -> bool {
    matches!(op, Op::Jump | Op::JumpIf | Op::JumpIfNot | Op::Switch | Op::End) || op.is_compare_jump()
}

/// Removes instructions that do nothing.
fn compact(instrs: &mut Vec<Instr>, labels: &mut [usize]) {
    let mut place = Vec::with_capacity(instrs.len() + 1);
    let mut kept = 0;
    for i in instrs.iter() {
        place.push(kept);
        kept += usize::from(i.op != Op::Nop);
    }
    place.push(kept);
    labels.iter_mut().for_each(|l| *l = place[*l]);
    instrs.retain(|i| i.op != Op::Nop);
}

/// Combines a multiplication with the addition or subtraction that is the only user of the product.
fn multiply_add(instrs: &mut [Instr], reads: &mut [u32], starts: &[bool]) {
    for at in 0..instrs.len() {
        let product = instrs[at];
        let (add, sub, fused) = match product.op {
            Op::MulF32 => (Op::AddF32, Op::SubF32, [Op::MulAddF32, Op::MulSubF32, Op::NegMulAddF32]),
            Op::MulF64 => (Op::AddF64, Op::SubF64, [Op::MulAddF64, Op::MulSubF64, Op::NegMulAddF64]),
            // There is no instruction for this subtraction.
            Op::MulI32 => (Op::AddI32, Op::Nop, [Op::MulAddI32; 3]),
            Op::MulI64 => (Op::AddI64, Op::Nop, [Op::MulAddI64; 3]),
            _ => continue,
        };
        if reads[usize::from(product.dst)] != 1 {
            continue;
        }
        // Within a block, no cell of a value is written twice, so the factors are unchanged.
        let user = (at + 1..instrs.len())
            .take_while(|i| !starts[*i])
            .find(|i| instrs[*i].op.scalar_reads().is_some() && reads_scalar(&instrs[*i], product.dst));
        let Some(user) = user else { continue };
        let sum = &mut instrs[user];
        let d = product.dst;
        let (op, c) = match (sum.op == add, sum.op == sub) {
            (true, _) if sum.a == d => (fused[0], sum.b),
            (true, _) => (fused[0], sum.a),
            (_, true) if sum.a == d => (fused[1], sum.b),
            (_, true) => (fused[2], sum.a),
            _ => continue,
        };
        *sum = Instr { op, dst: sum.dst, a: product.a, b: product.b, c, x: 0 };
        instrs[at].op = Op::Nop;
        reads[usize::from(d)] = 0;
    }
}

fn reads_scalar(i: &Instr, cell: Cell) -> bool {
    let count = i.op.scalar_reads().unwrap_or(0);
    [i.a, i.b, i.c][..count].contains(&cell)
}

/// Replaces the destination of an instruction whose result is then copied with that of the copy.
fn write_where_wanted(code: &mut Program, reads: &[u32], starts: &[bool]) {
    for at in 0..code.instrs.len() {
        let mov = code.instrs[at];
        let whole = match mov.op {
            Op::Mov => usize::from(mov.a)..usize::from(mov.a) + 1,
            Op::Copy => code.copies[usize::from(mov.x)].1.cells(),
            _ => continue,
        };
        if reads[whole.clone()].iter().any(|n| *n != 1) {
            continue;
        }
        let target = usize::from(mov.dst)..usize::from(mov.dst) + whole.len();
        // Searches for the instruction that computes the value, with no access to the target in between.
        let mut found = None;
        for i in (0..at).rev() {
            if starts[i + 1] {
                break;
            }
            let instr = code.instrs[i];
            let writes = code.writes_of(&instr);
            if writes.clone().is_some_and(|w| overlap(&w, &whole)) {
                found = (writes == Some(whole.clone())).then_some(i);
                break;
            }
            let touched = writes.is_some_and(|w| overlap(&w, &target)) || code.reads_any(&instr, &target);
            if touched {
                break;
            }
        }
        let Some(i) = found else { continue };
        let instr = code.instrs[i];
        match instr.op {
            // The destination of a vector operation must be disjoint from its operands.
            Op::Vector if !code.reads_any(&instr, &target) => {
                let v = &mut code.vectors[usize::from(instr.x)];
                v.dst.cell = mov.dst;
            }
            Op::Splat if !code.reads_any(&instr, &target) => {
                code.splats[usize::from(instr.x)].0.cell = mov.dst
            }
            Op::Load if !code.reads_any(&instr, &target) => {}
            Op::Kernel if [instr.a, instr.b, instr.c].contains(&mov.dst) => continue,
            op if op.scalar_reads().is_some() => {}
            _ => continue,
        }
        code.instrs[i].dst = mov.dst;
        code.instrs[at].op = Op::Nop;
    }
}

/// Combines comparisons with the jumps at the end of loops, and increments with both.
fn compare_and_jump(instrs: &mut [Instr], reads: &[u32], starts: &[bool]) {
    for at in 1..instrs.len() {
        let (compare, jump) = (instrs[at - 1], instrs[at]);
        let Some(op) = compare.op.jump() else { continue };
        let once = reads[usize::from(compare.dst)] == 1;
        if jump.op != Op::JumpIf || jump.a != compare.dst || starts[at] || !once {
            continue;
        }
        instrs[at] = Instr { op, x: jump.x, ..compare };
        instrs[at - 1].op = Op::Nop;
        let Some(before) = at.checked_sub(2) else { continue };
        let count = instrs[before];
        let (add, joined) = match op {
            Op::JumpLtS32 => (Op::AddI32, Op::AddJumpLtS32),
            Op::JumpLtS64 => (Op::AddI64, Op::AddJumpLtS64),
            _ => continue,
        };
        let step = if count.a == count.dst { count.b } else { count.a };
        let counts = count.op == add && (count.a == count.dst || count.b == count.dst) && step != count.dst;
        if counts && compare.a == count.dst && compare.b != count.dst && !starts[at - 1] {
            instrs[at] = Instr { op: joined, dst: count.dst, a: step, b: compare.b, c: compare.b, x: jump.x };
            instrs[before].op = Op::Nop;
        }
    }
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

impl Program {
    /// Returns `true` if an instruction reads any of the cells, or writes one only partially.
    fn reads_any(&self, i: &Instr, cells: &Range<usize>) -> bool {
        self.reads_of(i).iter().any(|r| overlap(r, cells))
    }

    fn operand_cells(&self, o: &Operand) -> Option<Range<usize>> {
        self.array_cells(usize::from(o.array.0))
    }

    pub(crate) fn array_cells(&self, array: usize) -> Option<Range<usize>> {
        match self.arrays[array] {
            ArraySpec { base: Base::Cells(cell), dtype, len } => Some(Place { cell, dtype, len }.cells()),
            _ => None,
        }
    }

    /// Returns the cells that an instruction reads, or writes only partially.
    pub(crate) fn reads_of(&self, i: &Instr) -> Vec<Range<usize>> {
        let one = |c: Cell| usize::from(c)..usize::from(c) + 1;
        let x = usize::from(i.x);
        match i.op {
            Op::Vector => self.vectors[x].src.iter().map(Place::cells).collect(),
            Op::Copy => vec![self.copies[x].1.cells()],
            Op::Splat => vec![self.splats[x].1.cells()],
            Op::Load | Op::Store => {
                let w = &self.windows[x];
                let mut all: Vec<_> = w.starts.iter().map(|s| one(s.0)).collect();
                all.extend(self.array_cells(usize::from(w.array.0)));
                if i.op == Op::Store {
                    all.push(self.moved(i));
                }
                all
            }
            Op::Call => {
                let c = &self.calls[x];
                c.reads.iter().chain(&c.writes).filter_map(|o| self.operand_cells(o)).collect()
            }
            Op::JumpIf | Op::JumpIfNot | Op::Switch => vec![one(i.a)],
            Op::AddJumpLtS32 | Op::AddJumpLtS64 => vec![one(i.a), one(i.b), one(i.dst)],
            op if op.is_compare_jump() => vec![one(i.a), one(i.b)],
            op => [i.a, i.b, i.c][..op.scalar_reads().unwrap_or(0)].iter().map(|c| one(*c)).collect(),
        }
    }

    /// Returns the cells that an instruction writes.
    pub(crate) fn writes_of(&self, i: &Instr) -> Option<Range<usize>> {
        let x = usize::from(i.x);
        match i.op {
            Op::Vector => Some(self.vectors[x].dst.cells()),
            Op::Copy => Some(self.copies[x].0.cells()),
            Op::Splat => Some(self.splats[x].0.cells()),
            Op::Load => Some(self.moved(i)),
            op if op.scalar_reads().is_some() => Some(usize::from(i.dst)..usize::from(i.dst) + 1),
            _ => None,
        }
    }

    /// Returns the cells that a window is loaded to or stored from.
    pub(crate) fn moved(&self, i: &Instr) -> Range<usize> {
        let w = &self.windows[usize::from(i.x)];
        let start = usize::from(i.dst);
        start..start + (w.runs.len() * w.run).div_ceil(8)
    }

    /// Checks that instructions stay inside the cells and the program.
    ///
    /// # Panics
    /// Panics if an instruction does not, which is a bug of the assembler.
    pub(crate) fn check(&self) {
        for i in &self.instrs {
            let mut ranges = self.reads_of(i);
            ranges.extend(self.writes_of(i));
            ranges.extend([i.dst, i.a, i.b, i.c].map(|c| usize::from(c)..usize::from(c) + 1));
            assert!(ranges.iter().all(|r| r.end <= self.cells.len()), "{i:?} accesses cells out of bounds");
            let jumps = is_jump(i.op) || matches!(i.op, Op::AddJumpLtS32 | Op::AddJumpLtS64);
            let target = usize::from(i.x);
            assert!(!jumps || i.op == Op::Switch || target < self.instrs.len(), "{i:?} jumps out");
        }
        assert!(self.switches.iter().flatten().all(|t| usize::from(*t) < self.instrs.len()));
        assert!(matches!(self.instrs.last(), Some(Instr { op: Op::End, .. })));
    }
}
