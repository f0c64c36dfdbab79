//! Passes over functions: what is known of registers, and what shortens the code.

use super::function::{End, Function, Inst, Reg, Relation};
use super::live::{Set, live_in};
use super::verify::can_choose;
use std::collections::HashMap;

impl Function {
    /// Returns the largest value of each register that only constants and [`End::Count`] assign.
    pub(crate) fn largest(&self) -> Vec<Option<u64>> {
        let mut largest = vec![Some(0); self.regs.len()];
        for block in &self.blocks {
            for inst in &block.insts {
                let Some(dst) = inst.def() else { continue };
                let old = &mut largest[dst.0 as usize];
                *old = match inst {
                    Inst::Constant { bits, .. } => old.map(|old| old.max(*bits)),
                    _ => None,
                };
            }
            if let Some(End::Count { counter, limit, .. }) = &block.end {
                let old = &mut largest[counter.0 as usize];
                *old = old.map(|old| old.max(u64::from(*limit)));
            }
        }
        largest
    }

    /// Returns the bits of each register that a single instruction assigns, a constant.
    pub(crate) fn constants(&self) -> Vec<Option<u64>> {
        let mut constants = vec![None; self.regs.len()];
        let mut assigned = vec![false; self.regs.len()];
        for block in &self.blocks {
            for inst in &block.insts {
                let Some(dst) = inst.def().map(|r| r.0 as usize) else { continue };
                let again = std::mem::replace(&mut assigned[dst], true);
                constants[dst] = match inst {
                    Inst::Constant { bits, .. } if !again => Some(*bits),
                    _ => None,
                };
            }
            if let Some(End::Count { counter, .. }) = &block.end {
                constants[counter.0 as usize] = None;
                assigned[counter.0 as usize] = true;
            }
        }
        constants
    }

    /// Removes the instructions whose results nothing needs. Blocks without an end need what their instructions need.
    ///
    /// # Panics
    /// Panics if an end names a block that does not exist.
    pub fn remove_unused(&mut self) {
        let mut changed = true;
        while changed {
            changed = false;
            let live = live_in(self);
            for block in &mut self.blocks {
                let mut set = Set::new(self.regs.len());
                if let Some(end) = &block.end {
                    end.targets(|t| set.add(&live[t.0 as usize]));
                    end.uses(|r| set.insert(r));
                }
                let before = block.insts.len();
                let mut kept = Vec::with_capacity(before);
                for inst in std::mem::take(&mut block.insts).into_iter().rev() {
                    if let Some(r) = inst.def() {
                        if !set.contains(r) && !matches!(inst, Inst::Call { .. }) {
                            continue;
                        }
                        set.remove(r);
                    }
                    inst.uses(|r| set.insert(r));
                    kept.push(inst);
                }
                kept.reverse();
                changed |= kept.len() < before;
                block.insts = kept;
            }
        }
    }

    /// Joins comparisons with the selections that are their only users.
    pub fn join_selections(&mut self) {
        let mut uses = vec![0u32; self.regs.len()];
        for block in &self.blocks {
            block.insts.iter().for_each(|i| i.uses(|r| uses[r.0 as usize] += 1));
            block.end.iter().for_each(|e| e.uses(|r| uses[r.0 as usize] += 1));
        }
        let (types, set) = (&self.regs, self.set);
        for block in &mut self.blocks {
            // The comparisons so far whose operands have not changed since, by result.
            let mut compared: HashMap<Reg, (usize, Relation, Reg, Reg)> = HashMap::new();
            let mut unused = Vec::new();
            for at in 0..block.insts.len() {
                if let Inst::Select { dst, condition, a, b } = block.insts[at]
                    && let Some((first, relation, x, y)) = compared.get(&condition).copied()
                    && uses[condition.0 as usize] == 1
                    && can_choose(relation, types[x.0 as usize], types[dst.0 as usize], set)
                {
                    block.insts[at] = Inst::Choose { relation, dst, x, y, a, b };
                    unused.push(first);
                }
                if let Some(dst) = block.insts[at].def() {
                    compared.retain(|r, (_, _, x, y)| ![*r, *x, *y].contains(&dst));
                }
                if let Inst::Compare { relation, dst, a, b } = block.insts[at]
                    && dst != a
                    && dst != b
                {
                    compared.insert(dst, (at, relation, a, b));
                }
            }
            let mut at = 0;
            block.insts.retain(|_| {
                at += 1;
                !unused.contains(&(at - 1))
            });
        }
    }
}
