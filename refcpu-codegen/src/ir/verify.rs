//! The rules of the intermediate representation.

use super::error::Error;
use super::function::{Access, End, Function, Inst, InstructionSet, Reg, Relation, Scalar, Type};
use super::live::{Liveness, liveness};

/// The largest size of an array, so that offsets fit into 32-bit displacements and products do not overflow.
const MAX_ARRAY: u64 = 1 << 46;

/// Checks a function, and returns the liveness of its registers.
///
/// # Errors
/// Returns the first violation of a rule.
pub(crate) fn verify(f: &Function) -> Result<Liveness, Error> {
    if f.blocks.is_empty() {
        return Err(fail(0, 0, "a function has at least one block".into()));
    }
    if let Some(r) = f.regs.iter().position(|ty| !is_type(*ty, f.set)) {
        let rule = format!("register {r} has the type {}, which {:?} does not have", f.regs[r], f.set);
        return Err(fail(0, 0, rule));
    }
    if f.arrays.iter().any(|bytes| *bytes > MAX_ARRAY) {
        return Err(fail(0, 0, format!("an array has more than {MAX_ARRAY} bytes")));
    }
    for (b, block) in f.blocks.iter().enumerate() {
        for (i, inst) in block.insts.iter().enumerate() {
            instruction(f, inst).map_err(|rule| fail(b, i, rule))?;
        }
        end(f, block.end.as_ref()).map_err(|rule| fail(b, block.insts.len(), rule))?;
    }
    let liveness = liveness(f);
    match liveness.unassigned {
        Some(r) => Err(fail(0, 0, format!("register {} may be read before it is assigned", r.0))),
        None => Ok(liveness),
    }
}

fn fail(block: usize, instruction: usize, rule: String) -> Error {
    Error::Invalid { block, instruction, rule }
}

pub(crate) fn is_type(ty: Type, set: InstructionSet) -> bool {
    match ty.scalar {
        _ if ty.lanes == 1 => true,
        Scalar::I8 | Scalar::I16 if set == InstructionSet::Avx2 || ty.lanes > 16 => false,
        Scalar::Bool => matches!(ty.lanes, 2 | 4 | 8) || ty.lanes == 16 && set == InstructionSet::Avx512,
        _ => ty.lanes.is_power_of_two() && (8..=set.vector()).contains(&ty.size()),
    }
}

fn exists(f: &Function, r: Reg) -> Result<Type, String> {
    f.regs.get(r.0 as usize).copied().ok_or_else(|| format!("register {} does not exist", r.0))
}

fn expect(what: &str, found: Type, expected: Type) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what} has the type {found}; expected {expected}")) }
}

fn instruction(f: &Function, inst: &Inst) -> Result<(), String> {
    let mut missing = Ok(());
    inst.uses(|r| {
        if let Err(e) = exists(f, r) {
            missing = Err(e);
        }
    });
    missing?;
    let dst = inst.def().map(|r| exists(f, r)).transpose()?;
    let (dst, ty) = (dst.unwrap_or(Type::one(Scalar::I64)), |r: Reg| f.type_of(r));
    let boolean = Type::one(Scalar::Bool);
    match inst {
        Inst::Constant { bits, .. } => constant(*bits, dst)?,
        Inst::Sequence { .. } => {
            if !matches!(dst.scalar, Scalar::I32 | Scalar::I64) {
                return Err(format!("a sequence of {dst} is not defined"));
            }
        }
        Inst::Unary { op, a, .. } => {
            if !op.is_defined(ty(*a), dst, f.set) {
                return Err(format!("{op:?} from {} to {dst} is not defined", ty(*a)));
            }
        }
        Inst::Binary { op, a, b, .. } => {
            expect("the first operand", ty(*a), dst)?;
            expect("the second operand", ty(*b), dst)?;
            if !op.is_defined(dst, f.set) {
                return Err(format!("{op:?} of {dst} is not defined"));
            }
        }
        Inst::Fma { a, b, c, .. } => {
            for r in [a, b, c] {
                expect("an operand", ty(*r), dst)?;
            }
            if !dst.scalar.is_float() {
                return Err(format!("a fused product and sum of {dst} is not defined"));
            }
        }
        Inst::Compare { relation, a, b, .. } => {
            expect("the result", dst, Type { lanes: ty(*a).lanes, ..boolean })?;
            expect("the second operand", ty(*b), ty(*a))?;
            if !relation.is_defined(ty(*a), f.set) {
                return Err(format!("{relation:?} of {} is not defined", ty(*a)));
            }
        }
        Inst::Select { condition, a, b, .. } => select(dst, ty(*condition), [ty(*a), ty(*b)])?,
        Inst::Choose { relation, x, y, a, b, .. } => choose(f, *relation, dst, [*x, *y, *a, *b])?,
        Inst::Shuffle { a, b, lanes, .. } => shuffle(dst, [ty(*a), ty(*b)], lanes)?,
        Inst::Load { at, .. } => access(f, at, dst)?,
        Inst::Store { src, at } => access(f, at, ty(*src))?,
        Inst::Call { .. } => expect("the answer", dst, Type::one(Scalar::I64))?,
    }
    Ok(())
}

fn select(dst: Type, condition: Type, [a, b]: [Type; 2]) -> Result<(), String> {
    let boolean = Type::one(Scalar::Bool);
    if condition != boolean {
        expect("the condition", condition, Type { lanes: dst.lanes, ..boolean })?;
    }
    if dst.scalar.is_narrow() {
        return Err(format!("a selection of {dst} is not defined"));
    }
    expect("the first value", a, dst)?;
    expect("the second value", b, dst)
}

/// Returns whether values of these types can be the operands of a choice and its result.
pub(crate) fn can_choose(relation: Relation, compared: Type, result: Type, set: InstructionSet) -> bool {
    let fits = compared.lanes == result.lanes && compared.scalar.size() == result.scalar.size();
    let in_vectors = ![compared, result].iter().any(|ty| ty.is_general() || ty.scalar.is_narrow());
    fits && in_vectors && relation.is_defined(compared, set)
}

fn choose(f: &Function, relation: Relation, dst: Type, [x, y, a, b]: [Reg; 4]) -> Result<(), String> {
    let compared = f.type_of(x);
    expect("the second operand", f.type_of(y), compared)?;
    expect("the first value", f.type_of(a), dst)?;
    expect("the second value", f.type_of(b), dst)?;
    if can_choose(relation, compared, dst, f.set) {
        return Ok(());
    }
    Err(format!("a choice of {dst} by {relation:?} of {compared} is not defined"))
}

fn shuffle(dst: Type, operands: [Type; 2], lanes: &[u8; 16]) -> Result<(), String> {
    for (number, ty) in operands.into_iter().enumerate() {
        expect("an operand of a shuffle", Type { lanes: 1, ..ty }, Type::one(dst.scalar))?;
        if ty.scalar.is_narrow() {
            return Err(format!("a shuffle of {ty}, its operand {number}, is not defined"));
        }
    }
    let count = operands[0].lanes + operands[1].lanes;
    match lanes[..usize::from(dst.lanes)].iter().find(|l| **l >= count) {
        Some(lane) => Err(format!("element {lane} of a shuffle is not one of the {count} of its operands")),
        None => Ok(()),
    }
}

fn constant(bits: u64, ty: Type) -> Result<(), String> {
    let bytes = ty.scalar.size();
    let fits = match ty.scalar {
        Scalar::Bool => bits <= 1,
        _ => bytes == 8 || bits >> (8 * bytes) == 0,
    };
    if fits { Ok(()) } else { Err(format!("the constant {bits:#x} does not fit into {ty}")) }
}

fn access(f: &Function, at: &Access, ty: Type) -> Result<(), String> {
    let Some(bytes) = f.arrays.get(at.array.0 as usize) else {
        return Err(format!("array {} does not exist", at.array.0));
    };
    for i in &at.indices {
        let index = f.type_of(i.reg);
        if index.lanes != 1 || !matches!(index.scalar, Scalar::I32 | Scalar::I64) {
            return Err(format!("an index has the type {index}; expected an integer"));
        }
    }
    match at.end(ty.size()) {
        Some(end) if end <= *bytes => Ok(()),
        end => Err(format!("an access ends at byte {end:?} of an array of {bytes} bytes")),
    }
}

fn end(f: &Function, end: Option<&End>) -> Result<(), String> {
    let Some(end) = end else { return Err("a block has an end".into()) };
    let mut result = Ok(());
    end.uses(|r| {
        if let Err(e) = exists(f, r) {
            result = Err(e);
        }
    });
    end.targets(|t| {
        if t.0 as usize >= f.blocks.len() {
            result = Err(format!("block {} does not exist", t.0));
        }
    });
    result?;
    match end {
        End::Compare { relation, a, b, .. } => {
            let ty = f.type_of(*a);
            expect("the second operand", f.type_of(*b), ty)?;
            if !relation.is_defined(ty, f.set) || ty.lanes > 1 {
                return Err(format!("a branch by {relation:?} of {ty} is not defined"));
            }
        }
        End::Count { counter, step, limit, .. } => {
            expect("the counter", f.type_of(*counter), Type::one(Scalar::I64))?;
            if [*step, *limit].iter().any(|n| i32::try_from(*n).is_err()) {
                return Err(format!("a counter with step {step} and limit {limit} exceeds 31 bits"));
            }
        }
        End::If { condition, .. } => expect("the condition", f.type_of(*condition), Type::one(Scalar::Bool))?,
        End::Jump(_) | End::Return(_) => {}
    }
    Ok(())
}
