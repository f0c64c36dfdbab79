//! The positions at which registers hold values that are still needed.

use super::function::{Block, End, Function, Inst, Reg};

/// A set of registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Set(Vec<u64>);

impl Set {
    pub(super) fn new(registers: usize) -> Self {
        Self(vec![0; registers.div_ceil(64)])
    }

    pub(super) fn insert(&mut self, r: Reg) {
        self.0[r.0 as usize / 64] |= 1 << (r.0 % 64);
    }

    pub(super) fn remove(&mut self, r: Reg) {
        self.0[r.0 as usize / 64] &= !(1 << (r.0 % 64));
    }

    pub(super) fn contains(&self, r: Reg) -> bool {
        self.0[r.0 as usize / 64] >> (r.0 % 64) & 1 != 0
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }

    fn iter(&self) -> impl Iterator<Item = Reg> + '_ {
        self.0.iter().enumerate().flat_map(|(word, bits)| {
            let mut bits = *bits;
            std::iter::from_fn(move || {
                let bit = (bits != 0).then(|| bits.trailing_zeros())?;
                bits &= bits - 1;
                Some(Reg(word as u32 * 64 + bit))
            })
        })
    }
}

/// The part of the program during which a register is needed: from one position to another, inclusive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interval {
    pub(crate) reg: Reg,
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// The number of accesses, weighted by the depth of loops.
    pub(crate) weight: f32,
    /// `true` if the register is needed across a call.
    pub(crate) crosses_call: bool,
}

/// The intervals of a function's registers, in the order of their starts. Instruction `i` of the function, counted through all
/// blocks including their ends, reads at position `2 * i` and writes at `2 * i + 1`.
pub(crate) struct Liveness {
    pub(crate) intervals: Vec<Interval>,
    /// A register that may be read before it is assigned.
    pub(crate) unassigned: Option<Reg>,
}

/// Computes the intervals. All blocks must have ends whose targets exist.
pub(crate) fn liveness(f: &Function) -> Liveness {
    let live_in = live_in(f);
    let mut all: Vec<Option<Interval>> = vec![None; f.regs.len()];
    let depth = depths(f);
    let mut touch = |reg: Reg, at: u32, weight: f32| {
        let fresh = Interval { reg, start: at, end: at, weight: 0.0, crosses_call: false };
        let interval = all[reg.0 as usize].get_or_insert(fresh);
        interval.start = interval.start.min(at);
        interval.end = interval.end.max(at);
        interval.weight += weight;
    };
    let mut calls = Vec::new();
    let mut at = 0;
    for (b, block) in f.blocks.iter().enumerate() {
        let weight = 8f32.powi(depth[b].min(6));
        live_in[b].iter().for_each(|r| touch(r, at, 0.0));
        for inst in &block.insts {
            inst.uses(|r| touch(r, at, weight));
            if let Some(r) = inst.def() {
                touch(r, at + 1, weight);
            }
            if matches!(inst, Inst::Call { .. }) {
                calls.push(at);
            }
            at += 2;
        }
        if let Some(end) = &block.end {
            end.uses(|r| touch(r, at, weight));
            if let End::Count { counter, .. } = end {
                touch(*counter, at + 1, weight);
            }
            end.targets(|t| live_in[t.0 as usize].iter().for_each(|r| touch(r, at + 1, 0.0)));
        }
        at += 2;
    }
    let mut intervals: Vec<Interval> = all.into_iter().flatten().collect();
    for i in &mut intervals {
        let next = calls.partition_point(|c| *c < i.start);
        i.crosses_call = calls.get(next).is_some_and(|c| *c < i.end);
    }
    intervals.sort_by_key(|i| (i.start, i.reg));
    Liveness { intervals, unassigned: live_in.first().and_then(|s| s.iter().next()) }
}

impl Function {
    /// Returns the registers whose values each of these blocks or the blocks after it need. Blocks without an end need what their
    /// instructions need.
    ///
    /// # Panics
    /// Panics if an end names a block that does not exist.
    pub fn needed_at(&self, blocks: &[Block]) -> Vec<Vec<Reg>> {
        let live = live_in(self);
        blocks.iter().map(|b| live[b.0 as usize].iter().collect()).collect()
    }
}

/// Returns the registers that are needed at the start of each block.
pub(super) fn live_in(f: &Function) -> Vec<Set> {
    let n = f.regs.len();
    let mut live: Vec<Set> = vec![Set::new(n); f.blocks.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for (b, block) in f.blocks.iter().enumerate().rev() {
            let mut set = Set::new(n);
            if let Some(end) = &block.end {
                end.targets(|t| set.add(&live[t.0 as usize]));
                end.uses(|r| set.insert(r));
            }
            for inst in block.insts.iter().rev() {
                if let Some(r) = inst.def() {
                    set.remove(r);
                }
                inst.uses(|r| set.insert(r));
            }
            if set != live[b] {
                live[b] = set;
                changed = true;
            }
        }
    }
    live
}

/// Returns the number of loops around each block. A loop is what lies between a block and a jump back to it.
fn depths(f: &Function) -> Vec<i32> {
    let mut depth = vec![0; f.blocks.len()];
    for (b, block) in f.blocks.iter().enumerate() {
        if let Some(end) = &block.end {
            end.targets(|t| {
                let t = t.0 as usize;
                if t <= b {
                    depth[t..=b].iter_mut().for_each(|d| *d += 1);
                }
            });
        }
    }
    depth
}
