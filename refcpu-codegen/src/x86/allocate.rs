//! Linear-scan register allocation.

use crate::ir::{Function, Inst, InstructionSet, Interval, Liveness, Reg, Scalar, Type};

/// The place of a register's value in the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The register of this number, of the kind that the type requires.
    Machine(u8),
    /// Memory of the frame, at this offset in bytes.
    Frame(u32),
    /// One element in memory of the frame, at this offset in bytes, which instructions repeat: a constant vector of AVX-512.
    Repeated(u32),
}

/// A kind of machine registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    General,
    Vector,
    Mask,
}

/// The registers of a kind that can be allocated for a type. Those of `kept` have the same values after a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pool<'a> {
    pub(crate) kind: Kind,
    pub(crate) kept: &'a [u8],
    pub(crate) lost: &'a [u8],
}

/// The places of all registers.
#[derive(Debug)]
pub(crate) struct Allocation {
    pub(crate) places: Vec<Place>,
    /// The size of the frame in bytes.
    pub(crate) frame: u32,
}

/// An interval that occupies a machine register.
#[derive(Clone, Copy)]
struct Active {
    interval: Interval,
    number: u8,
    kind: Kind,
}

/// Assigns a place to each register of a function. Registers whose intervals overlap have different places. `pool` returns the
/// machine registers for values of a type.
pub(crate) fn allocate<'a>(f: &Function, liveness: &Liveness, pool: impl Fn(Type) -> Pool<'a>) -> Allocation {
    let mut result = Allocation { places: vec![Place::Frame(u32::MAX); f.regs.len()], frame: 0 };
    let mut active: Vec<Active> = Vec::new();
    let constants = constants(f);
    let weights = weights(f);
    let value = |i: &Interval| density(i) * weights[i.reg.0 as usize];
    for interval in &liveness.intervals {
        // A register that is last read by the instruction that assigns this one is free: reads come first.
        active.retain(|a| a.interval.end >= interval.start);
        let ty = f.type_of(interval.reg);
        let pool = pool(ty);
        let kind = pool.kind;
        let lost = if interval.crosses_call { &[] } else { pool.lost };
        let usable = || lost.iter().chain(pool.kept).copied();
        let taken = |n: u8| active.iter().any(|a| a.kind == kind && a.number == n);
        if let Some(number) = usable().find(|n| !taken(*n)) {
            result.places[interval.reg.0 as usize] = Place::Machine(number);
            active.push(Active { interval: *interval, number, kind });
            continue;
        }
        let victim = (0..active.len())
            .filter(|i| active[*i].kind == kind && usable().any(|n| n == active[*i].number))
            .min_by(|i, j| value(&active[*i].interval).total_cmp(&value(&active[*j].interval)));
        match victim.filter(|v| value(&active[*v].interval) < value(interval)) {
            Some(v) => {
                let old = active[v].interval;
                result.places[old.reg.0 as usize] = result.memory(f, old.reg, &constants);
                result.places[interval.reg.0 as usize] = Place::Machine(active[v].number);
                active[v].interval = *interval;
            }
            None => {
                result.places[interval.reg.0 as usize] = result.memory(f, interval.reg, &constants);
            }
        }
    }
    result
}

/// Returns the accesses per unit of length, by which intervals are chosen for machine registers.
fn density(i: &Interval) -> f32 {
    i.weight / (i.end - i.start + 1) as f32
}

/// Returns, for each register, the cost of its memory relative to other registers: less for a constant, which most instructions
/// read without a load of its own, and more for a variable. A loop carries variables from one iteration to the next, which
/// would begin with waiting for memory.
fn weights(f: &Function) -> Vec<f32> {
    let mut weights: Vec<f32> = f.constants().iter().map(|c| if c.is_some() { 0.25 } else { 1.0 }).collect();
    let mut assigned = vec![false; f.regs.len()];
    for dst in f.blocks.iter().flat_map(|b| &b.insts).filter_map(Inst::def) {
        if std::mem::replace(&mut assigned[dst.0 as usize], true) {
            weights[dst.0 as usize] = 4.0;
        }
    }
    weights
}

/// Returns, for each register, whether it is a vector of AVX-512 that only one constant assigns.
fn constants(f: &Function) -> Vec<bool> {
    let is_vector = |ty: &Type| f.set == InstructionSet::Avx512 && ty.lanes > 1 && ty.scalar.size() >= 4;
    let mut constants: Vec<bool> = f.regs.iter().map(is_vector).collect();
    let mut assigned = vec![false; f.regs.len()];
    for inst in f.blocks.iter().flat_map(|b| &b.insts) {
        let Some(dst) = inst.def().map(|r| r.0 as usize) else { continue };
        let again = std::mem::replace(&mut assigned[dst], true);
        constants[dst] &= !again && matches!(inst, Inst::Constant { .. });
    }
    constants
}

impl Allocation {
    /// Allocates memory of the frame for a register.
    fn memory(&mut self, f: &Function, reg: Reg, constants: &[bool]) -> Place {
        let ty = f.type_of(reg);
        if !constants[reg.0 as usize] {
            return self.slot(ty);
        }
        match self.slot(Type::one(Scalar::I64)) {
            Place::Frame(at) => Place::Repeated(at),
            place => place,
        }
    }

    /// Allocates memory of the frame.
    fn slot(&mut self, ty: Type) -> Place {
        let size = if ty.is_general() { 8 } else { ty.size().next_multiple_of(8) as u32 };
        let at = self.frame.next_multiple_of(size);
        self.frame = at + size;
        Place::Frame(at)
    }
}
