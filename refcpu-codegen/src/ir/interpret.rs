//! The interpreter, which defines the results of machine code.

use super::error::Error;
use super::function::{
    Access, BinaryOp, End, Function, Inst, MAX_VECTOR, Reg, Relation, Scalar, Type, UnaryOp,
};
use super::verify::verify;

/// The value of a register: its elements, one after the other as in memory.
type Value = [u8; MAX_VECTOR];

/// Executes a function on its arrays. `call` answers the function's calls: it receives the number and the arrays. Returns the
/// value that the function returns.
///
/// # Errors
/// Returns an error if the function is invalid.
///
/// # Panics
/// Panics if the number or the sizes of the arrays are not those that the function declares.
pub fn interpret(
    f: &Function,
    arrays: &mut [&mut [u8]],
    call: &mut dyn FnMut(u32, &mut [&mut [u8]]) -> u64,
) -> Result<u32, Error> {
    verify(f)?;
    let sizes: Vec<u64> = arrays.iter().map(|a| a.len() as u64).collect();
    assert_eq!(sizes, f.arrays, "the arrays of the function");
    let mut state = State { f, regs: vec![[0; MAX_VECTOR]; f.regs.len()], arrays };
    let mut block = 0;
    loop {
        let body = &f.blocks[block];
        for inst in &body.insts {
            state.execute(inst, call);
        }
        block = match body.end.as_ref().expect("verified") {
            End::Jump(to) => to.0,
            End::Compare { relation, a, b, then, otherwise } => {
                if state.holds(*relation, *a, *b, 0) {
                    then.0
                } else {
                    otherwise.0
                }
            }
            End::If { condition, then, otherwise } => {
                if state.word(*condition, 0) != 0 {
                    then.0
                } else {
                    otherwise.0
                }
            }
            End::Count { counter, step, limit, then, otherwise } => {
                let next = state.word(*counter, 0).wrapping_add(u64::from(*step));
                let more = next <= u64::from(*limit);
                state.assign(*counter, |_, _| if more { next } else { 0 });
                if more { then.0 } else { otherwise.0 }
            }
            End::Return(value) => return Ok(*value),
        } as usize;
    }
}

struct State<'a, 'b> {
    f: &'a Function,
    regs: Vec<Value>,
    arrays: &'a mut [&'b mut [u8]],
}

/// Returns element `lane` of a value as bits.
fn lane(value: &Value, scalar: Scalar, lane: usize) -> u64 {
    let size = scalar.size();
    let mut word = [0; 8];
    word[..size].copy_from_slice(&value[lane * size..][..size]);
    u64::from_le_bytes(word)
}

fn set_lane(value: &mut Value, scalar: Scalar, lane: usize, bits: u64) {
    let size = scalar.size();
    value[lane * size..][..size].copy_from_slice(&bits.to_le_bytes()[..size]);
}

impl State<'_, '_> {
    fn word(&self, r: Reg, at: usize) -> u64 {
        lane(&self.regs[r.0 as usize], self.f.type_of(r).scalar, at)
    }

    /// Assigns a register, element by element.
    fn assign(&mut self, dst: Reg, element: impl Fn(&Self, usize) -> u64) {
        let ty = self.f.type_of(dst);
        let mut value = [0; MAX_VECTOR];
        for at in 0..usize::from(ty.lanes) {
            set_lane(&mut value, ty.scalar, at, element(self, at));
        }
        self.regs[dst.0 as usize] = value;
    }

    fn signed(&self, r: Reg, at: usize) -> i64 {
        match self.f.type_of(r).scalar {
            Scalar::I32 => i64::from(self.word(r, at) as i32),
            _ => self.word(r, at).cast_signed(),
        }
    }

    fn holds(&self, relation: Relation, a: Reg, b: Reg, at: usize) -> bool {
        let scalar = self.f.type_of(a).scalar;
        let (x, y) = (self.word(a, at), self.word(b, at));
        let order = match scalar {
            Scalar::F32 => f32::from_bits(x as u32).partial_cmp(&f32::from_bits(y as u32)),
            Scalar::F64 => f64::from_bits(x).partial_cmp(&f64::from_bits(y)),
            _ if matches!(relation, Relation::LtUnsigned | Relation::LeUnsigned) => Some(x.cmp(&y)),
            _ => Some(self.signed(a, at).cmp(&self.signed(b, at))),
        };
        match relation {
            Relation::Eq => order.is_some_and(|o| o.is_eq()),
            Relation::Ne => order.is_none_or(|o| o.is_ne()),
            Relation::Lt | Relation::LtUnsigned => order.is_some_and(|o| o.is_lt()),
            Relation::Le | Relation::LeUnsigned => order.is_some_and(|o| o.is_le()),
        }
    }

    fn address(&self, at: &Access) -> usize {
        let mut offset = at.offset;
        for i in &at.indices {
            offset += u64::try_from(self.signed(i.reg, 0)).unwrap_or(0).min(i.limit) * i.step;
        }
        offset as usize
    }

    fn fma(&mut self, dst: Reg, operands: [Reg; 3]) {
        let scalar = self.f.type_of(dst).scalar;
        self.assign(dst, |s, at| {
            let [x, y, z] = operands.map(|r| s.word(r, at));
            if scalar == Scalar::F32 {
                let [x, y, z] = [x, y, z].map(|w| f32::from_bits(w as u32));
                u64::from(x.mul_add(y, z).to_bits())
            } else {
                f64::from_bits(x).mul_add(f64::from_bits(y), f64::from_bits(z)).to_bits()
            }
        });
    }

    fn shuffle(&mut self, dst: Reg, [a, b]: [Reg; 2], lanes: &[u8; 16]) {
        let first = usize::from(self.f.type_of(a).lanes);
        self.assign(dst, |s, at| match usize::from(lanes[at]) {
            lane if lane < first => s.word(a, lane),
            lane => s.word(b, lane - first),
        });
    }

    fn execute(&mut self, inst: &Inst, call: &mut dyn FnMut(u32, &mut [&mut [u8]]) -> u64) {
        let ty = |s: &Self, r: &Reg| s.f.type_of(*r);
        match inst {
            Inst::Constant { dst, bits } => self.assign(*dst, |_, _| *bits),
            Inst::Sequence { dst, first } => self.assign(*dst, |_, at| u64::from(*first) + at as u64),
            Inst::Unary { op, dst, a } => {
                let (from, to) = (ty(self, a), ty(self, dst));
                self.assign(*dst, |s, at| {
                    let at = match op {
                        UnaryOp::Splat => 0,
                        UnaryOp::High => at + usize::from(to.lanes),
                        _ => at,
                    };
                    unary(*op, from, to, s.word(*a, at))
                });
            }
            Inst::Binary { op, dst, a, b } => {
                let scalar = ty(self, dst).scalar;
                self.assign(*dst, |s, at| binary(*op, scalar, s.word(*a, at), s.word(*b, at)));
            }
            Inst::Fma { dst, a, b, c } => self.fma(*dst, [*a, *b, *c]),
            Inst::Compare { relation, dst, a, b } => {
                self.assign(*dst, |s, at| u64::from(s.holds(*relation, *a, *b, at)));
            }
            Inst::Select { dst, condition, a, b } => {
                let single = ty(self, condition).lanes == 1;
                self.assign(*dst, |s, at| {
                    let condition = s.word(*condition, if single { 0 } else { at });
                    s.word(if condition != 0 { *a } else { *b }, at)
                });
            }
            Inst::Choose { relation, dst, x, y, a, b } => {
                self.assign(*dst, |s, at| s.word(if s.holds(*relation, *x, *y, at) { *a } else { *b }, at));
            }
            Inst::Shuffle { dst, a, b, lanes } => self.shuffle(*dst, [*a, *b], lanes),
            Inst::Load { dst, at } => {
                let (from, size) = (self.address(at), ty(self, dst).size());
                let mut value = [0; MAX_VECTOR];
                value[..size].copy_from_slice(&self.arrays[at.array.0 as usize][from..from + size]);
                self.regs[dst.0 as usize] = value;
            }
            Inst::Store { src, at } => {
                let (to, size) = (self.address(at), ty(self, src).size());
                let value = self.regs[src.0 as usize];
                self.arrays[at.array.0 as usize][to..to + size].copy_from_slice(&value[..size]);
            }
            Inst::Call { dst, number } => {
                let answer = call(*number, self.arrays);
                self.assign(*dst, |_, _| answer);
            }
        }
    }
}

fn unary(op: UnaryOp, from: Type, to: Type, x: u64) -> u64 {
    let float = |f32s: fn(f32) -> f32, f64s: fn(f64) -> f64| match from.scalar {
        Scalar::F32 => u64::from(f32s(f32::from_bits(x as u32)).to_bits()),
        _ => f64s(f64::from_bits(x)).to_bits(),
    };
    match op {
        UnaryOp::Copy
        | UnaryOp::Splat
        | UnaryOp::Low
        | UnaryOp::High
        | UnaryOp::Extend
        | UnaryOp::Reinterpret => x,
        UnaryOp::Negate if from.scalar.is_float() => float(|x| -x, |x| -x),
        UnaryOp::Negate => x.wrapping_neg(),
        UnaryOp::Abs => float(f32::abs, f64::abs),
        UnaryOp::Sqrt => float(f32::sqrt, f64::sqrt),
        UnaryOp::Floor => float(f32::floor, f64::floor),
        UnaryOp::Ceil => float(f32::ceil, f64::ceil),
        UnaryOp::RoundEven => float(f32::round_ties_even, f64::round_ties_even),
        UnaryOp::Convert => convert(from.scalar, to.scalar, x),
    }
}

fn convert(from: Scalar, to: Scalar, x: u64) -> u64 {
    use Scalar::{Bool, F32, F64, I8, I16, I32, I64};
    let f32s = |x: f32| u64::from(x.to_bits());
    match (from, to) {
        (Bool | I64, I32 | I64) | (I32, I8 | I16) => x,
        (I8, I32) => u64::from(i32::from(x as i8).cast_unsigned()),
        (I16, I32) => u64::from(i32::from(x as i16).cast_unsigned()),
        (I32, I64) => i64::from(x as i32).cast_unsigned(),
        (Bool | I64, F32) => f32s(x.cast_signed() as f32),
        (Bool | I64, F64) => (x.cast_signed() as f64).to_bits(),
        (I32, F32) => f32s(x as i32 as f32),
        (I32, F64) => f64::from(x as i32).to_bits(),
        (F32, F64) => f64::from(f32::from_bits(x as u32)).to_bits(),
        (F64, F32) => f32s(f64::from_bits(x) as f32),
        (F32, I32) => u64::from((f32::from_bits(x as u32) as i32).cast_unsigned()),
        (F64, I64) => (f64::from_bits(x) as i64).cast_unsigned(),
        _ => unreachable!("the conversion is not defined"),
    }
}

macro_rules! integers {
    ($name:ident, $u:ty, $s:ty) => {
        fn $name(op: BinaryOp, a: $u, b: $u) -> $u {
            let (x, y) = (a.cast_signed(), b.cast_signed());
            let distance = |b: $u| u32::try_from(b).unwrap_or(u32::MAX);
            match op {
                BinaryOp::Add => a.wrapping_add(b),
                BinaryOp::Subtract => a.wrapping_sub(b),
                BinaryOp::Multiply => a.wrapping_mul(b),
                BinaryOp::Divide => {
                    if b == 0 {
                        !0
                    } else {
                        x.wrapping_div(y).cast_unsigned()
                    }
                }
                BinaryOp::DivideUnsigned => a.checked_div(b).unwrap_or(!0),
                BinaryOp::Remainder => {
                    if b == 0 {
                        a
                    } else {
                        x.wrapping_rem(y).cast_unsigned()
                    }
                }
                BinaryOp::RemainderUnsigned => a.checked_rem(b).unwrap_or(a),
                BinaryOp::Maximum => x.max(y).cast_unsigned(),
                BinaryOp::Minimum => x.min(y).cast_unsigned(),
                BinaryOp::Least | BinaryOp::Greatest => {
                    unreachable!("the operation is not defined on integers")
                }
                BinaryOp::And => a & b,
                BinaryOp::Or => a | b,
                BinaryOp::Xor => a ^ b,
                BinaryOp::ShiftLeft => a.checked_shl(distance(b)).unwrap_or(0),
                BinaryOp::ShiftRight => a.checked_shr(distance(b)).unwrap_or(0),
                BinaryOp::ShiftRightSigned => (x >> b.min(<$u>::BITS as $u - 1)).cast_unsigned(),
            }
        }
    };
}
integers!(binary32, u32, i32);
integers!(binary64, u64, i64);

macro_rules! floats {
    ($name:ident, $t:ident) => {
        fn $name(op: BinaryOp, a: $t, b: $t) -> $t {
            match op {
                BinaryOp::Add => a + b,
                BinaryOp::Subtract => a - b,
                BinaryOp::Multiply => a * b,
                BinaryOp::Divide => a / b,
                BinaryOp::Maximum if a.is_nan() => a,
                BinaryOp::Maximum if a == b => $t::from_bits(a.to_bits() & b.to_bits()),
                BinaryOp::Maximum => {
                    if a > b {
                        a
                    } else {
                        b
                    }
                }
                BinaryOp::Minimum if a.is_nan() => a,
                BinaryOp::Minimum if a == b => $t::from_bits(a.to_bits() | b.to_bits()),
                BinaryOp::Minimum => {
                    if a < b {
                        a
                    } else {
                        b
                    }
                }
                BinaryOp::Least if a <= b || a.is_nan() => a,
                BinaryOp::Greatest if a >= b || a.is_nan() => a,
                BinaryOp::Least | BinaryOp::Greatest => b,
                _ => unreachable!("the operation is not defined on floats"),
            }
        }
    };
}
floats!(float32, f32);
floats!(float64, f64);

fn binary(op: BinaryOp, scalar: Scalar, a: u64, b: u64) -> u64 {
    match scalar {
        _ if matches!(op, BinaryOp::And | BinaryOp::Or | BinaryOp::Xor) => binary64(op, a, b),
        Scalar::F32 => u64::from(float32(op, f32::from_bits(a as u32), f32::from_bits(b as u32)).to_bits()),
        Scalar::F64 => float64(op, f64::from_bits(a), f64::from_bits(b)).to_bits(),
        Scalar::I64 => binary64(op, a, b),
        Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::Bool => u64::from(binary32(op, a as u32, b as u32)),
    }
}
