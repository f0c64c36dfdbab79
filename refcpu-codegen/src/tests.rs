//! Random functions, which the interpreter and machine code must execute alike.

use crate::ir::{
    Access, Array, BinaryOp, Block, End, Function, Index, Inst, InstructionSet, Reg, Relation, Scalar, Type,
    UnaryOp, can_choose, is_type,
};
use crate::{Compiled, Error, interpret};

/// A generator of pseudo-random numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn choose<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

const SETS: [InstructionSet; 2] = [InstructionSet::Avx2, InstructionSet::Avx512];
const SCALARS: [Scalar; 7] =
    [Scalar::Bool, Scalar::I32, Scalar::I64, Scalar::F32, Scalar::F64, Scalar::I8, Scalar::I16];
/// The number of elements of each array.
const LEN: usize = 41;

/// Returns the bits of a number of the type, often one that operations treat specially.
fn number(r: &mut Random, scalar: Scalar) -> u64 {
    match scalar {
        Scalar::Bool => r.next() & 1,
        Scalar::I8 => r.next() & 0xff,
        Scalar::I16 => r.next() & 0xffff,
        Scalar::I32 => u64::from(match r.below(4) {
            0 => r.next() as u32,
            1 => (r.below(40) as i32 - 4).cast_unsigned(),
            _ => r.choose(&[0, 1, u32::MAX, 1 << 31, (1 << 31) - 1, 31, 32]),
        }),
        Scalar::I64 => match r.below(4) {
            0 => r.next() << 11,
            1 => (r.below(80) as i64 - 8).cast_unsigned(),
            _ => r.choose(&[0, 1, u64::MAX, 1 << 63, (1 << 63) - 1, 63, 64, 1 << 32]),
        },
        Scalar::F32 => u64::from(
            match r.below(3) {
                0 => r.next() as i32 as f32 / 65536.0,
                1 => r.below(20) as f32 / 4.0 - 2.0,
                _ => r.choose(&[
                    0.0,
                    -0.0,
                    f32::NAN,
                    f32::INFINITY,
                    f32::NEG_INFINITY,
                    1e-40,
                    -2147483648.0,
                    2e9,
                    3e9,
                ]),
            }
            .to_bits(),
        ),
        Scalar::F64 => match r.below(3) {
            0 => r.next() as i64 as f64 / 65536.0,
            1 => r.below(20) as f64 / 4.0 - 2.0,
            _ => r.choose(&[
                0.0,
                -0.0,
                f64::NAN,
                f64::INFINITY,
                f64::NEG_INFINITY,
                5e-324,
                -9.3e18,
                9.2e18,
                1e300,
            ]),
        }
        .to_bits(),
    }
}

/// Returns the bytes of one array for each element type.
fn arrays(r: &mut Random) -> Vec<Vec<u8>> {
    SCALARS
        .iter()
        .map(|s| (0..LEN).flat_map(|_| number(r, *s).to_le_bytes()[..s.size()].to_vec()).collect())
        .collect()
}

/// Returns the lengths of vectors of booleans.
fn booleans(set: InstructionSet) -> &'static [u8] {
    &[2, 4, 8, 16][..if set == InstructionSet::Avx512 { 4 } else { 3 }]
}

/// Returns the sizes of vectors in bytes.
fn vectors(set: InstructionSet) -> &'static [usize] {
    &[8, 16, 32, 64][..if set == InstructionSet::Avx512 { 4 } else { 3 }]
}

/// Returns a choice of elements of two values, often one with an order that machine code treats specially.
fn shuffled(r: &mut Random, dst: Type, operands: [Type; 2]) -> [u8; 16] {
    let [a, b] = operands.map(|ty| usize::from(ty.lanes));
    let (kind, first, swapped) = (r.below(7), r.below(a + b), r.below(2) * a);
    let n = usize::from(dst.lanes);
    let mut lanes = [0xff; 16];
    for (i, lane) in lanes[..n].iter_mut().enumerate() {
        let random = r.below(a + b);
        let chosen = match kind {
            0 => first,
            1 => first + i,
            2 => i / 2 + if i % 2 == 0 { 0 } else { a },
            3 => {
                if i < n / 2 {
                    i
                } else {
                    a + i - n / 2
                }
            }
            4 => {
                if i == first {
                    a
                } else {
                    i
                }
            }
            5 => swapped + (i & !3 | (i % 4) ^ (first % 4)),
            _ => random,
        };
        *lane = (chosen % (a + b)) as u8;
    }
    lanes
}

/// A random function under construction.
struct Generator {
    r: Random,
    f: Function,
    /// The registers that have values.
    regs: Vec<Reg>,
    /// The counter of the loop, which only its end changes.
    counter: Reg,
    arrays: Vec<Array>,
}

impl Generator {
    fn random_type(&mut self) -> Type {
        let scalar = self.r.choose(&SCALARS);
        if self.r.below(3) > 0 {
            return Type::one(scalar);
        }
        if scalar == Scalar::Bool {
            return Type::vector(scalar, self.r.choose(booleans(self.f.set)));
        }
        let bytes = self.r.choose(vectors(self.f.set));
        let ty = Type::vector(scalar, (bytes / scalar.size()) as u8);
        if is_type(ty, self.f.set) { ty } else { Type::one(scalar) }
    }

    fn of(&mut self, wanted: impl Fn(Type) -> bool) -> Option<Reg> {
        let fitting: Vec<Reg> = self.regs.iter().copied().filter(|r| wanted(self.f.type_of(*r))).collect();
        (!fitting.is_empty()).then(|| self.r.choose(&fitting))
    }

    fn access(&mut self, ty: Type) -> Access {
        let array = self.arrays[SCALARS.iter().position(|s| *s == ty.scalar).unwrap()];
        let size = ty.scalar.size() as u64;
        let mut left = (LEN - usize::from(ty.lanes)) as u64;
        let offset = self.r.next() % (left + 1);
        left -= offset;
        let mut indices = Vec::new();
        for _ in 0..self.r.below(3) {
            let integer = |t: Type| t.lanes == 1 && matches!(t.scalar, Scalar::I32 | Scalar::I64);
            let random = if self.r.below(2) == 0 { self.of(integer) } else { None };
            let reg = random.unwrap_or(self.counter);
            let step = self.r.next() % 4;
            let most = left.checked_div(step).unwrap_or(1 << 39);
            let limit = self.r.next() % (most + 1);
            left -= limit * step;
            indices.push(Index { reg, limit, step: step * size });
        }
        Access { array, offset: offset * size, indices }
    }

    /// Returns a register for a result: a new one, or one that has a value.
    fn result(&mut self, ty: Type) -> Reg {
        if self.r.below(2) == 0
            && let Some(old) = self.of(|t| t == ty)
        {
            return old;
        }
        let new = self.f.reg(ty);
        self.f.push(Inst::Constant { dst: new, bits: 0 });
        self.regs.push(new);
        new
    }

    fn instruction(&mut self) -> Option<()> {
        let set = self.f.set;
        let ty = self.random_type();
        let inst = match self.r.below(12) {
            0 => Inst::Constant { bits: number(&mut self.r, ty.scalar), dst: self.result(ty) },
            1 => {
                let op = self.r.choose(UnaryOp::ALL);
                let a = self.of(|from| op.is_defined(from, ty, set))?;
                Inst::Unary { op, a, dst: self.result(ty) }
            }
            2 | 3 => {
                let op = self.r.choose(BinaryOp::ALL);
                let a = self.of(|t| op.is_defined(t, set))?;
                let ty = self.f.type_of(a);
                let b = self.of(|t| t == ty)?;
                Inst::Binary { op, a, b, dst: self.result(ty) }
            }
            4 => {
                let relation = self.r.choose(Relation::ALL);
                let a = self.of(|t| relation.is_defined(t, set))?;
                let ty = self.f.type_of(a);
                let b = self.of(|t| t == ty)?;
                let boolean = Type { scalar: Scalar::Bool, ..ty };
                if self.r.below(2) == 0 && can_choose(relation, ty, ty, set) {
                    let condition = self.f.reg(boolean);
                    self.f.push(Inst::Compare { relation, dst: condition, a, b });
                    let (a, b) = (self.of(|t| t == ty)?, self.of(|t| t == ty)?);
                    let dst = self.result(ty);
                    self.f.push(Inst::Select { condition, a, b, dst });
                    return Some(());
                }
                Inst::Compare { relation, a, b, dst: self.result(boolean) }
            }
            5 => {
                let condition =
                    self.of(|t| t.scalar == Scalar::Bool && (t.lanes == 1 || t.lanes == ty.lanes))?;
                let ty = if ty.scalar.is_narrow() { Type { scalar: Scalar::I32, ..ty } } else { ty };
                let (a, b) = (self.of(|t| t == ty)?, self.of(|t| t == ty)?);
                Inst::Select { condition, a, b, dst: self.result(ty) }
            }
            6 => {
                let a = self.of(|t| t.scalar.is_float())?;
                let ty = self.f.type_of(a);
                let (b, c) = (self.of(|t| t == ty)?, self.of(|t| t == ty)?);
                Inst::Fma { a, b, c, dst: self.result(ty) }
            }
            7 => Inst::Load { at: self.access(ty), dst: self.result(ty) },
            8 => {
                let a = self.of(|t| t.scalar == ty.scalar && !t.scalar.is_narrow())?;
                let b = self.of(|t| t.scalar == ty.scalar)?;
                let lanes = shuffled(&mut self.r, ty, [a, b].map(|r| self.f.type_of(r)));
                Inst::Shuffle { a, b, lanes, dst: self.result(ty) }
            }
            9 => {
                let relation = self.r.choose(Relation::ALL);
                let a = self.of(|t| !t.is_general() && !t.scalar.is_narrow())?;
                let ty = self.f.type_of(a);
                let b = self.of(|t| t == ty)?;
                let x = self.of(|t| can_choose(relation, t, ty, set))?;
                let compared = self.f.type_of(x);
                let y = self.of(|t| t == compared)?;
                Inst::Choose { relation, x, y, a, b, dst: self.result(ty) }
            }
            10 if matches!(ty.scalar, Scalar::I32 | Scalar::I64) => {
                Inst::Sequence { first: self.r.next() as u32, dst: self.result(ty) }
            }
            _ if self.r.below(12) == 0 => {
                Inst::Call { number: self.r.next() as u32, dst: self.result(Type::one(Scalar::I64)) }
            }
            _ => {
                let src = self.of(|_| true)?;
                let at = self.access(self.f.type_of(src));
                Inst::Store { src, at }
            }
        };
        self.f.push(inst);
        Some(())
    }

    /// Ends a block by going on to one of two later blocks.
    fn forward(&mut self, then: Block, otherwise: Block) -> End {
        let (relation, set) = (self.r.choose(Relation::ALL), self.f.set);
        if self.r.below(3) > 0
            && let Some(a) = self.of(|t| relation.is_defined(t, set) && t.lanes == 1)
        {
            let ty = self.f.type_of(a);
            let b = self.of(|t| t == ty).unwrap_or(a);
            return End::Compare { relation, a, b, then, otherwise };
        }
        match self.of(|t| t == Type::one(Scalar::Bool)) {
            Some(condition) => End::If { condition, then, otherwise },
            None => End::Jump(otherwise),
        }
    }
}

/// Generates a function: straight blocks with branches forward, in a loop of a few iterations. Registers that have values at
/// its end are stored.
fn generate(seed: u64, set: InstructionSet) -> Function {
    let mut f = Function::with_instruction_set(set);
    let counter = f.reg(Type::one(Scalar::I64));
    let mut g = Generator { r: Random(seed | 1), f, regs: Vec::new(), counter, arrays: Vec::new() };
    g.r.next();
    g.arrays = SCALARS.iter().map(|s| g.f.array(LEN * s.size())).collect();
    let count = 1 + g.r.below(4);
    let blocks: Vec<Block> = (0..count + 3).map(|_| g.f.block()).collect();
    g.f.select(blocks[0]);
    let (step, iterations) = (1 + g.r.below(3) as u32, g.r.below(4) as u32);
    g.f.push(Inst::Constant { dst: counter, bits: 0 });
    for _ in 0..3 + g.r.below(40) {
        let ty = g.random_type();
        let dst = g.f.reg(ty);
        let at = g.access(ty);
        g.f.push(Inst::Load { dst, at });
        g.regs.push(dst);
    }
    g.f.end(End::Jump(blocks[1]));
    let everywhere = g.regs.clone();
    for b in 1..=count {
        g.f.select(blocks[b]);
        g.regs.clone_from(&everywhere);
        for _ in 0..g.r.below(25) {
            let _ = g.instruction();
        }
        let end = g.forward(blocks[b + 1], blocks[(b + 2).min(count + 1)]);
        g.f.end(end);
    }
    g.f.select(blocks[count + 1]);
    g.regs = everywhere;
    let (then, otherwise) = (blocks[1], blocks[count + 2]);
    g.f.end(End::Count { counter, step, limit: step * iterations, then, otherwise });
    g.f.select(blocks[count + 2]);
    for src in g.regs.clone() {
        let at = g.access(g.f.type_of(src));
        g.f.push(Inst::Store { src, at });
    }
    g.f.end(End::Return(seed as u32));
    g.f
}

/// Replaces every NaN with the same one: the sign and payload of a computed NaN are unspecified.
fn same_nan(arrays: &mut [Vec<u8>]) {
    for bytes in arrays[3].chunks_mut(4) {
        if f32::from_le_bytes(bytes.try_into().unwrap()).is_nan() {
            bytes.copy_from_slice(&f32::NAN.to_le_bytes());
        }
    }
    for bytes in arrays[4].chunks_mut(8) {
        if f64::from_le_bytes(bytes.try_into().unwrap()).is_nan() {
            bytes.copy_from_slice(&f64::NAN.to_le_bytes());
        }
    }
}

fn answer(number: u32, calls: &mut Vec<u32>) -> u64 {
    calls.push(number);
    u64::from(number) * 7 + calls.len() as u64
}

/// A function that executes machine code on arrays, with answers to its calls.
type Run<'a> = &'a dyn Fn(&Compiled, &mut [Vec<u8>], &mut dyn FnMut(u32) -> u64) -> u32;

/// Executes a function in both ways, and compares arrays, calls and results. `run` executes machine code on the arrays.
fn compare(f: &Function, seed: u64, run: Run<'_>) {
    let mut expected = arrays(&mut Random(seed | 1));
    let mut found = expected.clone();
    let mut calls = Vec::new();
    let mut slices: Vec<&mut [u8]> = expected.iter_mut().map(|a| &mut **a).collect();
    let result = interpret(f, &mut slices, &mut |n, _| answer(n, &mut calls)).unwrap();
    let code = match Compiled::new(f) {
        Err(Error::Unsupported) => return,
        code => code.unwrap_or_else(|e| panic!("{e}\n{f}")),
    };
    let mut answered = Vec::new();
    assert_eq!(run(&code, &mut found, &mut |n| answer(n, &mut answered)), result);
    same_nan(&mut expected);
    same_nan(&mut found);
    assert!(expected == found && calls == answered, "seed {seed}\n{f}\n{expected:?}\n{found:?}");
}

fn on_slices(code: &Compiled, arrays: &mut [Vec<u8>], call: &mut dyn FnMut(u32) -> u64) -> u32 {
    let mut slices: Vec<&mut [u8]> = arrays.iter_mut().map(|a| &mut **a).collect();
    code.call(&mut slices, call)
}

#[test]
fn machine_code_has_the_results_of_the_interpreter() {
    for seed in 0..3000u64 {
        compare(&generate(seed * 0x9e37_79b9 + 1, SETS[seed as usize % 2]), seed, &on_slices);
    }
}

#[test]
fn removed_and_joined_instructions_change_no_result() {
    let (mut removed, mut joined) = (0, 0);
    for seed in 0..2000u64 {
        let f = generate(seed * 0x2545_f491 + 11, SETS[seed as usize % 2]);
        let mut g = f.clone();
        g.remove_unused();
        removed += f.instructions() - g.instructions();
        let before = g.instructions();
        g.join_selections();
        joined += before - g.instructions();
        let results = [&f, &g].map(|f| {
            let mut arrays = arrays(&mut Random(seed | 1));
            let mut calls = Vec::new();
            let mut slices: Vec<&mut [u8]> = arrays.iter_mut().map(|a| &mut **a).collect();
            let result = interpret(f, &mut slices, &mut |n, _| answer(n, &mut calls)).unwrap();
            same_nan(&mut arrays);
            (result, calls, arrays)
        });
        assert!(results[0] == results[1], "seed {seed}\n{f}\n{g}");
    }
    assert!(removed > 1000 && joined > 10, "{removed} removed, {joined} joined");
}

/// Executes machine code on arrays that begin behind, or end in front of, a page without access.
#[cfg(all(target_arch = "x86_64", unix))]
fn on_guarded(at_end: bool) -> impl Fn(&Compiled, &mut [Vec<u8>], &mut dyn FnMut(u32) -> u64) -> u32 {
    move |code, arrays, call| {
        let mut guarded: Vec<_> =
            arrays.iter().map(|a| crate::memory::guarded::Guarded::new(a, at_end)).collect();
        let result = code.call(&mut guarded.iter_mut().map(|g| g.bytes()).collect::<Vec<_>>(), call);
        arrays.iter_mut().zip(&mut guarded).for_each(|(a, g)| a.copy_from_slice(g.bytes()));
        result
    }
}

#[cfg(all(target_arch = "x86_64", unix))]
#[test]
fn machine_code_stays_inside_its_arrays() {
    for seed in 0..300u64 {
        let f = generate(seed * 0x1234_5677 + 3, SETS[seed as usize % 2]);
        compare(&f, seed, &on_guarded(true));
        compare(&f, seed, &on_guarded(false));
    }
}

/// Executes an instruction on every pair of special numbers.
fn exhaust(set: InstructionSet, ty: Type, inst: impl Fn(Reg, Reg, Reg) -> Inst, result: Type) {
    exhaust_few(set, ty, inst, result, 100);
}

/// Executes an operation on random numbers and a constant.
fn exhaust_constants(set: InstructionSet, op: BinaryOp, ty: Type) {
    let mut r = Random(u64::from(ty.lanes) + 5);
    for _ in 0..12 {
        let bits = number(&mut r, ty.scalar);
        let constant = |f: &mut Function, b: Reg| f.push(Inst::Constant { dst: b, bits });
        exhaust_from(set, ty, |dst, a, b| Inst::Binary { op, dst, a, b }, ty, 8, constant);
        exhaust_from(set, ty, |dst, a, b| Inst::Binary { op, dst, a: b, b: a }, ty, 8, constant);
    }
}

/// Executes an instruction on arrays of random numbers.
fn exhaust_few(
    set: InstructionSet,
    ty: Type,
    inst: impl Fn(Reg, Reg, Reg) -> Inst,
    result: Type,
    seeds: u64,
) {
    exhaust_from(set, ty, inst, result, seeds, |_, _| {});
}

/// Executes an instruction on arrays of random numbers, after another one that may assign its second operand.
fn exhaust_from(
    set: InstructionSet,
    ty: Type,
    inst: impl Fn(Reg, Reg, Reg) -> Inst,
    result: Type,
    seeds: u64,
    assign: impl Fn(&mut Function, Reg),
) {
    let mut f = Function::with_instruction_set(set);
    let arrays: Vec<Array> = SCALARS.iter().map(|s| f.array(LEN * s.size())).collect();
    let array = |s: Scalar| arrays[SCALARS.iter().position(|t| *t == s).unwrap()];
    let (a, b, dst) = (f.reg(ty), f.reg(ty), f.reg(result));
    let block = f.block();
    f.select(block);
    let size = ty.scalar.size();
    f.push(Inst::Load { dst: a, at: Access::fixed(array(ty.scalar), 0) });
    assign(&mut f, b);
    if f.instructions() == 2 {
        f.push(Inst::Load { dst: b, at: Access::fixed(array(ty.scalar), size * 20) });
    }
    f.push(inst(dst, a, b));
    f.push(Inst::Store { src: dst, at: Access::fixed(array(result.scalar), result.scalar.size() * 25) });
    f.end(End::Return(0));
    for seed in 0..seeds {
        compare(&f, seed * 977 + 13, &on_slices);
    }
}

#[test]
fn every_operation_has_the_results_of_the_interpreter() {
    for set in SETS {
        let mut types: Vec<Type> = SCALARS.map(Type::one).to_vec();
        for scalar in &SCALARS[1..] {
            types.extend(vectors(set).iter().map(|b| Type::vector(*scalar, (b / scalar.size()) as u8)));
        }
        types.retain(|t| is_type(*t, set));
        types.extend(booleans(set).iter().map(|lanes| Type::vector(Scalar::Bool, *lanes)));
        types.retain(|t| t.lanes != 1 || t.size() <= 8);
        for ty in types.clone() {
            for op in BinaryOp::ALL.iter().copied().filter(|op| op.is_defined(ty, set)) {
                exhaust(set, ty, |dst, a, b| Inst::Binary { op, dst, a, b }, ty);
                exhaust_constants(set, op, ty);
            }
            shuffles(set, ty, &types);
            for relation in Relation::ALL.iter().copied().filter(|r| r.is_defined(ty, set)) {
                let result = Type { scalar: Scalar::Bool, ..ty };
                if can_choose(relation, ty, ty, set) {
                    let choice = |dst, a, b| Inst::Choose { relation, dst, x: a, y: b, a, b };
                    exhaust_few(set, ty, choice, ty, 30);
                    let other = |dst, a, b| Inst::Choose { relation, dst, x: a, y: b, a: b, b: a };
                    exhaust_few(set, ty, other, ty, 30);
                }
                exhaust(set, ty, |dst, a, b| Inst::Compare { relation, dst, a, b }, result);
            }
            for to in &types {
                for op in UnaryOp::ALL.iter().copied().filter(|op| op.is_defined(ty, *to, set)) {
                    exhaust(set, ty, |dst, a, _| Inst::Unary { op, dst, a }, *to);
                }
            }
        }
    }
}

/// Executes shuffles of two values of a type to all types with the same elements.
fn shuffles(set: InstructionSet, ty: Type, types: &[Type]) {
    let mut r = Random(u64::from(ty.lanes) + 99);
    let same = |to: &&Type| to.scalar == ty.scalar && !ty.scalar.is_narrow();
    for to in types.iter().filter(same) {
        for _ in 0..40 {
            let lanes = shuffled(&mut r, *to, [ty, ty]);
            exhaust_few(set, ty, |dst, a, b| Inst::Shuffle { dst, a, b, lanes }, *to, 3);
        }
    }
}

/// Returns the error for a function with one instruction on registers a, b (I32), c (F32) and an array of 8 bytes.
fn error_of(inst: impl Fn([Reg; 3], Array) -> Inst) -> String {
    let mut f = Function::new();
    let array = f.array(8);
    let [a, b, c] = [Scalar::I32, Scalar::I32, Scalar::F32].map(|s| f.reg(Type::one(s)));
    let block = f.block();
    f.select(block);
    for dst in [a, b, c] {
        f.push(Inst::Constant { dst, bits: 1 });
    }
    f.push(inst([a, b, c], array));
    f.end(End::Return(0));
    interpret(&f, &mut [&mut [0; 8]], &mut |_, _| 0).err().map_or(String::new(), |e| e.to_string())
}

#[test]
fn what_breaks_a_rule_is_refused() {
    let fixed = |array, offset| Access::fixed(array, offset);
    assert_eq!(error_of(|[a, ..], array| Inst::Load { dst: a, at: fixed(array, 4) }), "");
    for (rule, error) in [
        ("access ends", error_of(|[a, ..], array| Inst::Load { dst: a, at: fixed(array, 5) })),
        ("access ends", error_of(|[a, ..], array| Inst::Store { src: a, at: fixed(array, usize::MAX) })),
        (
            "access ends",
            error_of(|[a, b, _], array| Inst::Store {
                src: a,
                at: Access { array, offset: 0, indices: vec![Index { reg: b, limit: 2, step: 4 }] },
            }),
        ),
        (
            "expected an integer",
            error_of(|[a, _, c], array| Inst::Store {
                src: a,
                at: Access { array, offset: 0, indices: vec![Index { reg: c, limit: 1, step: 4 }] },
            }),
        ),
        ("expected", error_of(|[a, b, c], _| Inst::Binary { op: BinaryOp::Add, dst: a, a: b, b: c })),
        (
            "not defined",
            error_of(|[_, _, c], _| Inst::Binary { op: BinaryOp::ShiftLeft, dst: c, a: c, b: c }),
        ),
        ("does not exist", error_of(|[a, ..], _| Inst::Unary { op: UnaryOp::Copy, dst: a, a: Reg(9) })),
        ("does not exist", error_of(|[a, ..], _| Inst::Load { dst: a, at: fixed(Array(3), 0) })),
        ("does not fit", error_of(|[a, ..], _| Inst::Constant { dst: a, bits: 1 << 32 })),
    ] {
        assert!(error.contains(rule), "{error}");
    }
}

#[test]
fn a_register_without_a_value_is_refused() {
    let mut f = Function::new();
    let r = f.reg(Type::one(Scalar::I32));
    let (first, second) = (f.block(), f.block());
    f.select(first);
    f.end(End::Jump(second));
    f.select(second);
    f.push(Inst::Unary { op: UnaryOp::Copy, dst: r, a: r });
    f.end(End::Return(0));
    let error = interpret(&f, &mut [], &mut |_, _| 0).unwrap_err().to_string();
    assert!(error.contains("before it is assigned"), "{error}");
}

#[test]
fn a_panic_of_a_call_reaches_the_caller() {
    let mut f = Function::new();
    let dst = f.reg(Type::one(Scalar::I64));
    let block = f.block();
    f.select(block);
    f.push(Inst::Call { dst, number: 3 });
    f.push(Inst::Call { dst, number: 4 });
    f.end(End::Return(0));
    let Ok(code) = Compiled::new(&f) else { return };
    let mut numbers = Vec::new();
    let run = std::panic::AssertUnwindSafe(|| {
        code.call(&mut [], &mut |n| {
            numbers.push(n);
            panic!("call {n}")
        })
    });
    let panic = std::panic::catch_unwind(run).unwrap_err();
    assert_eq!(panic.downcast_ref::<String>().unwrap(), "call 3");
    assert_eq!(numbers, [3]);
}

#[cfg(all(target_arch = "x86_64", unix))]
#[test]
fn code_beyond_the_limit_is_refused_and_freed_code_does_not_count() {
    let refused = crate::memory::CodeMemory::new(&[0xc3], 0).unwrap_err();
    assert_eq!(refused, Error::Full { limit: 0 });
    let mut f = Function::new();
    let start = f.block();
    f.select(start);
    f.end(End::Return(7));
    // Each occupies a page, so all of them together would exceed the limit.
    for _ in 0..crate::MAX_CODE_BYTES / 4096 + 1 {
        match Compiled::new(&f) {
            Ok(code) => assert_eq!(code.call(&mut [], &mut |_| 0), 7),
            Err(error) => return assert_eq!(error, Error::Unsupported),
        }
    }
}
