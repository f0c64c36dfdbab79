//! Passes over functions: what is known of registers, and what shortens the code.

use super::function::{BinaryOp, End, Function, Inst, Reg, Relation, Scalar, Type};
use super::live::{Set, live_in};
use super::verify::can_choose;
use std::collections::HashMap;

impl Function {
    /// Returns the largest value of each register that only constants and [`End::Count`] assign, and of each register of I64 with one
    /// value that is a sum or product of such registers, or a difference between a constant and such a register.
    pub(crate) fn largest(&self) -> Vec<Option<u64>> {
        let mut largest = self.largest_counts();
        let (sums, constants) = (self.sums(), self.constants());
        // A sum may have a product as an operand.
        for _ in 0..2 {
            for (dst, op, a, b) in &sums {
                let Some(y) = largest[b.0 as usize] else { continue };
                let value = match op {
                    BinaryOp::Add => largest[a.0 as usize].and_then(|x| x.checked_add(y)),
                    BinaryOp::Multiply => largest[a.0 as usize].and_then(|x| x.checked_mul(y)),
                    _ => constants[a.0 as usize].filter(|x| *x >= y),
                };
                largest[dst.0 as usize] = value.filter(|n| *n <= u64::from(u32::MAX));
            }
        }
        largest
    }

    /// Returns the sums, products and differences of single I64 that are the only value of their register.
    fn sums(&self) -> Vec<(Reg, BinaryOp, Reg, Reg)> {
        let mut assigned = vec![0u32; self.regs.len()];
        for block in &self.blocks {
            let counter = match &block.end {
                Some(End::Count { counter, .. }) => Some(*counter),
                _ => None,
            };
            let all = block.insts.iter().filter_map(Inst::def).chain(counter);
            all.for_each(|reg| assigned[reg.0 as usize] += 1);
        }
        let insts = self.blocks.iter().flat_map(|block| &block.insts);
        let sums = insts.filter_map(|inst| match *inst {
            Inst::Binary {
                op: op @ (BinaryOp::Add | BinaryOp::Multiply | BinaryOp::Subtract),
                dst,
                a,
                b,
            } => Some((dst, op, a, b)),
            _ => None,
        });
        sums.filter(|(dst, ..)| assigned[dst.0 as usize] == 1 && self.type_of(*dst) == Type::one(Scalar::I64))
            .collect()
    }

    /// Returns the largest value of each register that only constants and [`End::Count`] assign.
    fn largest_counts(&self) -> Vec<Option<u64>> {
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

#[cfg(test)]
mod tests {
    use super::super::function::UnaryOp;
    use super::*;

    #[test]
    fn sums_products_and_differences_of_counters_are_limited() {
        let mut f = Function::new();
        let block = f.block();
        let [counter, factor, product, sum, rest, below, twice] =
            [(); 7].map(|()| f.reg(Type::one(Scalar::I64)));
        f.push(Inst::Constant { dst: counter, bits: 0 });
        f.push(Inst::Constant { dst: factor, bits: 100 });
        f.push(Inst::Binary { op: BinaryOp::Multiply, dst: product, a: counter, b: factor });
        f.push(Inst::Binary { op: BinaryOp::Add, dst: sum, a: product, b: counter });
        f.push(Inst::Binary { op: BinaryOp::Subtract, dst: rest, a: factor, b: counter });
        f.push(Inst::Binary { op: BinaryOp::Subtract, dst: below, a: factor, b: product });
        f.push(Inst::Binary { op: BinaryOp::Add, dst: twice, a: counter, b: counter });
        f.push(Inst::Unary { op: UnaryOp::Copy, dst: twice, a: sum });
        let otherwise = f.block();
        f.end(End::Count { counter, step: 1, limit: 9, then: block, otherwise });
        f.select(otherwise);
        f.end(End::Return(0));
        let largest = f.largest();
        let of = |reg: Reg| largest[reg.0 as usize];
        assert_eq!([counter, product, sum, rest].map(of), [Some(9), Some(900), Some(909), Some(100)]);
        // A difference may be negative, and a register with two values may have another one.
        assert_eq!([below, twice].map(of), [None, None]);
    }
}
