//! Programs that must have the same results when they are interpreted and as machine code.

use crate::machine::{Assembler, Code, Formula, Label, Matrices, Outside, Place, Start, run};
use crate::reduce::ArgReduceOp;
use crate::region::{Direction, Order, Val};
use crate::tile::TileOp;
use crate::{DType, Dst, Pool, ReduceOp, Src};

/// A generator of pseudo-random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n
    }

    /// Returns the bytes of numbers whose sums and products are rounded, so that their order matters.
    fn rounded(&mut self, dtype: DType, len: usize) -> Vec<u8> {
        if !dtype.is_float() {
            return self.bytes(dtype, len);
        }
        let numbers = (0..len).map(|_| self.below(1 << 20) as f32 / 300_000.0 - 1.7);
        match dtype {
            DType::F32 => numbers.flat_map(f32::to_le_bytes).collect(),
            _ => numbers.flat_map(|x| (f64::from(x) / 3.0).to_le_bytes()).collect(),
        }
    }

    /// Returns the bytes of small numbers.
    fn bytes(&mut self, dtype: DType, len: usize) -> Vec<u8> {
        let number = |r: &mut Self| r.below(19) as i32 - 9;
        let bytes = |r: &mut Self| match dtype {
            DType::F32 => (number(r) as f32 / 4.0).to_le_bytes().to_vec(),
            DType::F64 => (f64::from(number(r)) / 4.0).to_le_bytes().to_vec(),
            DType::S64 => i64::from(number(r)).to_le_bytes().to_vec(),
            DType::Pred => vec![r.below(2) as u8],
            _ => number(r).to_le_bytes().to_vec(),
        };
        (0..len).flat_map(|_| bytes(self)).collect()
    }
}

/// The type and length of the arrays that programs read and write.
const ARRAYS: [(DType, usize); 4] = [(DType::F32, 40), (DType::F64, 40), (DType::S32, 40), (DType::S64, 40)];
/// The iterations of random loops: fewer than those after which a program is compiled by itself.
const ITERATIONS: u128 = 7;

struct Generator {
    r: Random,
    asm: Assembler,
}

impl Generator {
    /// Returns a value of the type, computed from others.
    fn operation(&mut self, values: &[Val]) -> Option<Val> {
        let a = values[self.r.below(values.len())];
        let same: Vec<Val> = values.iter().copied().filter(|v| v.dtype() == a.dtype()).collect();
        let [b, c] = [(); 2].map(|()| same[self.r.below(same.len())]);
        let kind = self.r.below(8);
        let (direction, to) = (
            [Direction::Eq, Direction::Lt, Direction::Ge, Direction::Ne][self.r.below(4)],
            ARRAYS[self.r.below(4)].0,
        );
        let op = TileOp::ALL[self.r.below(18)];
        let builder = self.asm.builder();
        match kind {
            0 => {
                let p = builder.compare(direction, Order::Partial, a, b).ok()?;
                builder.select(p, b, c).ok()
            }
            1 => builder.compare(direction, Order::Partial, a, b).ok(),
            2 => builder.convert(a, to).ok(),
            3 => builder.clamp(a, b, c).ok(),
            4 => builder.op(TileOp::Sqrt, &[a]).or_else(|_| builder.op(TileOp::Negate, &[a])).ok(),
            _ => builder.op(op, &[a, b]).ok(),
        }
    }

    /// Loads from, or stores to, a window of an array that an index moves.
    fn window(&mut self, index: Place, write: bool, place: Place) {
        let Some(number) = ARRAYS.iter().position(|a| a.0 == place.dtype()) else { return };
        let limit = ARRAYS[number].1 - place.len();
        let start = [Start { index, limit: limit / 2, step: 1 + self.r.below(2) }];
        let outside = [Outside::Clamp, Outside::Skip][self.r.below(2)];
        let (dtype, len) = ARRAYS[number];
        if write {
            let array = self.asm.write(number, dtype, len).unwrap();
            self.asm.store(array, &start, &[0], place.len(), outside, place).unwrap();
        } else {
            let array = self.asm.read(number, dtype, len).unwrap();
            self.asm.load(array, &start, &[0], place.len(), place).unwrap();
        }
    }
}

impl Generator {
    /// Moves elements of an array in cells, or one of them. Returns the result.
    fn movement(&mut self, values: &[Val], len: usize, counter: Place) -> Val {
        let v = values[self.r.below(values.len())];
        let from = self.asm.full(v, len).unwrap();
        let to = self.asm.cells(v.dtype(), len).unwrap();
        let [source, target] = [from, to].map(|p| self.asm.array_of(p).unwrap());
        let chosen = [Start { index: counter, limit: len - 1, step: 1 }];
        match self.r.below(5) {
            0 => {
                let (first, step) = (self.r.below(len), self.r.below(len) + 1);
                let runs: Vec<usize> = (0..len).map(|i| (first + i * step) % len).collect();
                self.asm.load(source, &[], &runs, 1, to).unwrap();
            }
            1 => {
                let part = self.asm.cells(v.dtype(), 1 + self.r.below(len)).unwrap();
                let rest = len - part.len() + 1;
                let [read, written] = [(); 2].map(|()| self.r.below(rest));
                self.asm.copy(from, to).unwrap();
                self.asm.load(source, &[], &[read], part.len(), part).unwrap();
                self.asm.store(target, &[], &[written], part.len(), Outside::Clamp, part).unwrap();
            }
            2 => {
                let one = self.asm.cells(v.dtype(), 1).unwrap();
                let index = [Start { index: counter, limit: len - 1, step: 1 }];
                let outside = [Outside::Clamp, Outside::Skip][self.r.below(2)];
                self.asm.load(source, &[], &[self.r.below(len)], 1, one).unwrap();
                self.asm.copy(from, to).unwrap();
                self.asm.store(target, &index, &[0], 1, outside, one).unwrap();
            }
            3 => {
                let one = self.asm.cells(v.dtype(), 1).unwrap();
                self.asm.load(source, &chosen, &[0], 1, one).unwrap();
                return self.asm.value(one).unwrap();
            }
            _ => {
                let part = 1 + self.r.below(len);
                let moving = [Start { index: counter, limit: len - part, step: 1 }];
                let read = self.asm.cells(v.dtype(), part).unwrap();
                self.asm.load(source, &moving, &[0], part, read).unwrap();
                self.asm.copy(from, to).unwrap();
                self.asm.store(target, &moving, &[0], part, Outside::Clamp, read).unwrap();
            }
        }
        self.asm.value(to).unwrap()
    }
}

/// Generates a program: a loop over values of one length, with branches, windows and operations.
fn generate(seed: u64) -> Code {
    let mut g = Generator { r: Random(seed * 0x9e37_79b9 + 77), asm: Assembler::new(4, 4) };
    let len = [1, 1, 2, 3, 8, 13, 16][g.r.below(7)];
    let types: Vec<DType> = (0..3 + g.r.below(5)).map(|_| ARRAYS[g.r.below(4)].0).collect();
    let carried: Vec<Place> = types
        .iter()
        .map(|dtype| {
            let place = g.asm.cells(*dtype, len).unwrap();
            let bytes = g.r.bytes(*dtype, len);
            let initial = g.asm.constant(*dtype, &bytes).unwrap();
            g.asm.copy(initial, place).unwrap();
            place
        })
        .collect();
    let counter = g.asm.cells(DType::S32, 1).unwrap();
    let zero = g.asm.constant(DType::S32, &[0; 4]).unwrap();
    g.asm.copy(zero, counter).unwrap();
    let top = g.asm.label();
    g.asm.bind(top);
    g.asm.enter();
    let mut values: Vec<Val> = carried.iter().map(|p| g.asm.value(*p).unwrap()).collect();
    for _ in 0..2 + g.r.below(14) {
        if let Some(v) = g.operation(&values) {
            values.push(v);
        }
        if g.r.below(3) == 0 {
            let moved = g.movement(&values, len, counter);
            values.push(moved);
        }
        if g.r.below(4) == 0 {
            let v = values[g.r.below(values.len())];
            let place = g.asm.full(v, len).unwrap();
            g.window(counter, true, place);
        }
        if g.r.below(4) == 0 {
            let place = g.asm.cells(ARRAYS[g.r.below(4)].0, len).unwrap();
            g.window(counter, false, place);
            values.push(g.asm.value(place).unwrap());
        }
    }
    branch(&mut g, counter, &carried, &values);
    let moves: Vec<(Place, Place)> = carried
        .iter()
        .filter_map(|to| {
            let fitting: Vec<Val> = values.iter().copied().filter(|v| v.dtype() == to.dtype()).collect();
            let v = *fitting.last()?;
            Some((g.asm.full(v, len).unwrap(), *to))
        })
        .collect();
    g.asm.copy_all(&moves).unwrap();
    count(&mut g.asm, counter, ITERATIONS, top);
    for place in &carried {
        g.window(zero, true, *place);
    }
    g.asm.finish().unwrap()
}

/// Adds a switch whose branches replace a carried value, or do not.
fn branch(g: &mut Generator, index: Place, carried: &[Place], values: &[Val]) {
    let to = carried[g.r.below(carried.len())];
    let fitting: Vec<Val> = values.iter().copied().filter(|v| v.dtype() == to.dtype()).collect();
    let places: Vec<Place> = fitting.iter().map(|v| g.asm.full(*v, to.len()).unwrap()).collect();
    let kept = g.asm.cells(to.dtype(), to.len()).unwrap();
    let labels: Vec<Label> = (0..3).map(|_| g.asm.label()).collect();
    let end = g.asm.label();
    g.asm.switch(index, &labels).unwrap();
    for label in labels {
        g.asm.bind(label);
        let from = places[g.r.below(places.len())];
        g.asm.copy(from, kept).unwrap();
        g.asm.jump(end);
    }
    g.asm.bind(end);
    g.window(index, true, kept);
}

/// Ends the block: increments a counter, and jumps if it is below a number.
fn count(asm: &mut Assembler, counter: Place, iterations: u128, top: Label) {
    let old = asm.value(counter).unwrap();
    let one = asm.builder().constant(DType::S32, 1).unwrap();
    let next = asm.builder().op(TileOp::Add, &[old, one]).unwrap();
    let next = asm.place(next).unwrap();
    asm.copy_all(&[(next, counter)]).unwrap();
    asm.leave();
    asm.enter();
    let now = asm.value(counter).unwrap();
    let end = asm.builder().constant(DType::S32, iterations).unwrap();
    let more = asm.builder().compare(Direction::Lt, Order::Partial, now, end).unwrap();
    let more = asm.place(more).unwrap();
    asm.jump_if(more, top).unwrap();
    asm.leave();
}

/// Runs a program on arrays, and returns the results. Every NaN is the same one.
fn results(code: &Code, seed: u64) -> Vec<Vec<u8>> {
    let mut r = Random(seed + 1);
    let inputs: Vec<Vec<u8>> = ARRAYS.iter().map(|(dtype, len)| r.bytes(*dtype, *len)).collect();
    let mut outputs = inputs.clone();
    let dims: Vec<[usize; 1]> = ARRAYS.iter().map(|a| [a.1]).collect();
    let reads: Vec<Src<'_>> = inputs
        .iter()
        .zip(&dims)
        .zip(ARRAYS)
        .map(|((b, dims), (dtype, _))| Src::new(b, dtype, dims))
        .collect();
    let mut writes: Vec<Dst<'_>> = outputs
        .iter_mut()
        .zip(&dims)
        .zip(ARRAYS)
        .map(|((b, dims), (dtype, _))| Dst::new(b, dtype, dims))
        .collect();
    let mut call = |_: usize, _: &[Src<'_>], _: &mut [Dst<'_>]| Err("nothing is called");
    assert_eq!(run(code, &reads, &mut writes, &mut call, &|| false), Ok(true));
    for bytes in outputs[0].chunks_mut(4) {
        let x = f32::from_le_bytes(bytes.try_into().unwrap());
        bytes.copy_from_slice(&if x.is_nan() { f32::NAN } else { x }.to_le_bytes());
    }
    for bytes in outputs[1].chunks_mut(8) {
        let x = f64::from_le_bytes(bytes.try_into().unwrap());
        bytes.copy_from_slice(&if x.is_nan() { f64::NAN } else { x }.to_le_bytes());
    }
    outputs
}

/// Compiles a program. Returns `false` if this machine does not support that.
fn compile(code: &Code) -> bool {
    let compiled = code.native.compiled(&code.program).is_some();
    assert_eq!(compiled, crate::isa::level() >= crate::isa::Level::Avx2, "{code:?}");
    compiled
}

#[test]
fn random_programs_have_the_same_results_as_machine_code() {
    for seed in 0..1500 {
        let code = generate(seed);
        let expected = results(&code, seed);
        assert!(code.native.program.get().is_none());
        if compile(&code) {
            assert_eq!(results(&code, seed), expected, "seed {seed}: {code:?}");
        }
    }
}

#[test]
fn machine_code_continues_a_loop_that_the_interpreter_began() {
    let mut asm = Assembler::new(0, 1);
    let out = asm.write(0, DType::S32, 2).unwrap();
    let counter = asm.constant(DType::S32, &[0; 4]).unwrap();
    let (i, x) = (asm.cells(DType::S32, 1).unwrap(), asm.cells(DType::S32, 1).unwrap());
    asm.copy(counter, i).unwrap();
    asm.copy(counter, x).unwrap();
    let top = asm.label();
    asm.bind(top);
    asm.enter();
    let [old, index] = [x, i].map(|p| asm.value(p).unwrap());
    let factor = asm.builder().constant(DType::S32, 1_103_515_245).unwrap();
    let product = asm.builder().op(TileOp::Multiply, &[old, factor]).unwrap();
    let next = asm.builder().op(TileOp::Add, &[product, index]).unwrap();
    let next = asm.place(next).unwrap();
    asm.copy_all(&[(next, x)]).unwrap();
    count(&mut asm, i, 50_000, top);
    asm.store(out, &[], &[0], 1, Outside::Clamp, x).unwrap();
    asm.store(out, &[], &[1], 1, Outside::Clamp, i).unwrap();
    let code = asm.finish().unwrap();
    let expected = (0..50_000).fold(0i32, |x, i| x.wrapping_mul(1_103_515_245).wrapping_add(i));
    let pauses = std::cell::Cell::new(0);
    for _ in 0..2 {
        let mut bytes = vec![0u8; 8];
        let mut call = |_: usize, _: &[Src<'_>], _: &mut [Dst<'_>]| Err("nothing is called");
        let stop = || {
            pauses.set(pauses.get() + 1);
            false
        };
        let dims = [2];
        let result = run(&code, &[], &mut [Dst::new(&mut bytes, DType::S32, &dims)], &mut call, &stop);
        assert_eq!(result, Ok(true));
        assert_eq!(bytes[..4], expected.to_le_bytes());
        assert_eq!(bytes[4..], 50_000i32.to_le_bytes());
    }
    if compile(&code) {
        assert!(pauses.get() < 10, "the interpreter pauses more often: {}", pauses.get());
    }
}

type Kernel<'a> = &'a dyn Fn(&[Src<'_>], &mut [Dst<'_>]);

/// Runs a program that makes one call per iteration, interpreted and as machine code, and compares the results.
fn same_in_both(code: &Code, outputs: &[(DType, usize)], iterations: u32, kernel: Kernel<'_>) {
    let mut calls = 0;
    let mut found: Vec<Vec<Vec<u8>>> = Vec::new();
    for compiled in [false, true] {
        if compiled && !compile(code) {
            continue;
        }
        let mut bytes: Vec<Vec<u8>> = outputs.iter().map(|(t, n)| vec![0; n * t.size()]).collect();
        let mut call = |_: usize, reads: &[Src<'_>], writes: &mut [Dst<'_>]| {
            calls += 1;
            kernel(reads, writes);
            Ok::<(), ()>(())
        };
        let dims: Vec<[usize; 1]> = outputs.iter().map(|(_, n)| [*n]).collect();
        let mut writes: Vec<Dst<'_>> = bytes
            .iter_mut()
            .zip(outputs)
            .zip(&dims)
            .map(|((b, (dtype, _)), dims)| Dst::new(b, *dtype, dims))
            .collect();
        run(code, &[], &mut writes, &mut call, &|| false).unwrap();
        found.push(bytes);
    }
    assert_eq!(calls, iterations, "machine code calls no kernel: {code:?}");
    assert!(found.iter().all(|f| *f == found[0]), "{found:?} by {code:?}");
}

/// Compares the results of a formula with those of the kernel, for random operands.
fn same_as_kernel(
    formula: Formula,
    dtype: DType,
    dims: [&[usize]; 3],
    seed: u64,
    kernel: &dyn Fn(&[Src<'_>], Dst<'_>),
) {
    same_as_kernel_from(formula, dtype, dims, seed, None, kernel);
}

/// Like [`same_as_kernel`]; the second operand is `init` if there is one.
fn same_as_kernel_from(
    formula: Formula,
    dtype: DType,
    dims: [&[usize]; 3],
    seed: u64,
    init: Option<u8>,
    kernel: &dyn Fn(&[Src<'_>], Dst<'_>),
) {
    let len = dims.map(|d| d.iter().product::<usize>());
    let mut r = Random(seed + 5);
    let bytes = [0, 1].map(|k| match init.filter(|_| k == 1) {
        Some(init) => of_integer(dtype, init),
        None => r.rounded(dtype, len[k]),
    });
    // Arrays that a loop writes are in registers.
    for iterations in [1, 3] {
        let mut asm = Assembler::new(0, 1);
        let mut places = [0, 1].map(|k| asm.constant(dtype, &bytes[k]).unwrap());
        let (zero, counter, top) =
            (asm.constant(DType::S32, &[0; 4]).unwrap(), asm.cells(DType::S32, 1).unwrap(), asm.label());
        asm.copy(zero, counter).unwrap();
        asm.bind(top);
        asm.enter();
        if iterations > 1 {
            places = [0, 1].map(|k| {
                let place = asm.cells(dtype, len[k]).unwrap();
                asm.copy(places[k], place).unwrap();
                place
            });
        }
        let arrays = places.map(|p| asm.array_of(p).unwrap());
        let result = asm.cells(dtype, len[2]).unwrap();
        let array = asm.array_of(result).unwrap();
        let reads = [(arrays[0], dims[0]), (arrays[1], dims[1])];
        asm.call(0, Some(formula), &reads, &[(array, dims[2])]).unwrap();
        if iterations > 1 {
            count(&mut asm, counter, iterations, top);
        } else {
            asm.leave();
        }
        let out = asm.write(0, dtype, len[2]).unwrap();
        asm.store(out, &[], &[0], len[2], Outside::Clamp, result).unwrap();
        let code = asm.finish().unwrap();
        same_in_both(&code, &[(dtype, len[2])], iterations as u32, &|r, w| kernel(r, w[0].reborrow()));
    }
}

fn of_integer(dtype: DType, value: u8) -> Vec<u8> {
    match dtype {
        DType::F32 => f32::from(value).to_le_bytes().to_vec(),
        DType::F64 => f64::from(value).to_le_bytes().to_vec(),
        DType::S64 => i64::from(value).to_le_bytes().to_vec(),
        _ => i32::from(value).to_le_bytes().to_vec(),
    }
}

#[test]
fn reductions_combine_elements_in_the_order_of_the_kernel() {
    for dtype in [DType::F32, DType::F64, DType::S32, DType::S64] {
        for op in [ReduceOp::Add, ReduceOp::Multiply, ReduceOp::Minimum, ReduceOp::Maximum] {
            for n in [1, 2, 3, 7, 8, 9, 15, 16, 23, 32, 63] {
                for rows in [1, 2] {
                    let kernel = |r: &[Src<'_>], w: Dst<'_>| {
                        crate::reduce::reduce(&Pool::inline(), op, r[0], r[1], w, &[1]);
                    };
                    let dims: [&[usize]; 3] = [&[rows, n], &[], &[rows]];
                    same_as_kernel(Formula::Rows(op, n), dtype, dims, (n * rows) as u64, &kernel);
                }
            }
        }
    }
}

#[test]
fn reductions_of_columns_combine_elements_in_the_order_of_the_kernel() {
    for dtype in [DType::F32, DType::F64, DType::S32, DType::S64] {
        for op in [ReduceOp::Add, ReduceOp::Multiply, ReduceOp::Minimum, ReduceOp::Maximum] {
            for rows in [1, 2, 3, 7, 8, 9, 16, 17, 25, 40] {
                for inner in [2, 3, 4, 5, 8, 11, 16] {
                    let outer = if rows < 8 { 2 } else { 1 };
                    if outer * rows * inner > 256 {
                        continue;
                    }
                    let kernel = |r: &[Src<'_>], w: Dst<'_>| {
                        crate::reduce::reduce(&Pool::inline(), op, r[0], r[1], w, &[1]);
                    };
                    let dims: [&[usize]; 3] = [&[outer, rows, inner], &[], &[outer, inner]];
                    let formula = Formula::Columns { op, rows, inner };
                    same_as_kernel(formula, dtype, dims, (rows * inner) as u64, &kernel);
                }
            }
        }
    }
}

#[test]
fn reductions_of_booleans_are_those_of_the_kernel() {
    for op in [ReduceOp::And, ReduceOp::Or, ReduceOp::Xor] {
        for n in [1, 2, 3, 5, 8, 9, 16, 24, 31, 63] {
            for seed in 0..4 {
                let rows = |r: &[Src<'_>], w: Dst<'_>| {
                    crate::reduce::reduce(&Pool::inline(), op, r[0], r[1], w, &[1]);
                };
                same_as_kernel(Formula::Rows(op, n), DType::Pred, [&[2, n], &[], &[2]], seed, &rows);
                let columns = |r: &[Src<'_>], w: Dst<'_>| {
                    crate::reduce::reduce(&Pool::inline(), op, r[0], r[1], w, &[0]);
                };
                let formula = Formula::Columns { op, rows: n, inner: 3 };
                same_as_kernel(formula, DType::Pred, [&[n, 3], &[], &[3]], seed, &columns);
            }
        }
    }
}

#[test]
fn cumulative_operations_combine_elements_in_the_order_of_the_kernel() {
    for dtype in [DType::F32, DType::F64, DType::S32, DType::S64] {
        for op in [ReduceOp::Add, ReduceOp::Multiply, ReduceOp::Minimum, ReduceOp::Maximum] {
            for (n, inner) in
                [(2, 1), (3, 1), (8, 1), (32, 1), (33, 1), (70, 1), (2, 2), (5, 3), (9, 8), (40, 4)]
            {
                for reverse in [false, true] {
                    let outer = if n * inner < 40 { 3 } else { 1 };
                    let mut spec = crate::window::WindowSpec::new(vec![1, n, 1]);
                    spec.padding[1] = if reverse { (0, n as i64 - 1) } else { (n as i64 - 1, 0) };
                    let dims = [outer, n, inner];
                    let formula = Formula::of_windows(op, &dims, &spec).unwrap();
                    assert_eq!(formula, Formula::Cumulative { op, n, inner, reverse });
                    let neutral = matches!(op, ReduceOp::Minimum | ReduceOp::Maximum);
                    let kernel = |r: &[Src<'_>], w: Dst<'_>| {
                        crate::window::reduce_window(&Pool::inline(), op, r[0], r[1], w, &spec);
                    };
                    let init = (!neutral).then_some(u8::from(op == ReduceOp::Multiply));
                    let dims: [&[usize]; 3] = [&dims, &[], &dims];
                    same_as_kernel_from(formula, dtype, dims, (n * inner) as u64, init, &kernel);
                }
            }
        }
    }
}

#[test]
fn extremes_are_the_first_ones_as_in_the_kernel() {
    for dtype in [DType::F32, DType::F64, DType::S32, DType::S64] {
        for (maximum, op) in [(true, ArgReduceOp::Maximum), (false, ArgReduceOp::Minimum)] {
            for (rows, n) in [(1, 1), (1, 2), (1, 9), (1, 40), (3, 4), (7, 5), (2, 16)] {
                for index in [DType::S32, DType::S64] {
                    let mut bytes = Random((rows * n) as u64).bytes(dtype, rows * n);
                    if dtype == DType::F32 && n > 8 {
                        bytes[12..16].copy_from_slice(&f32::NAN.to_le_bytes());
                        bytes[20..24].copy_from_slice(&f32::NAN.to_le_bytes());
                    }
                    let mut asm = Assembler::new(0, 2);
                    let place = asm.constant(dtype, &bytes).unwrap();
                    let from = asm.array_of(place).unwrap();
                    let places = [dtype, index].map(|t| asm.cells(t, rows).unwrap());
                    let arrays = places.map(|p| asm.array_of(p).unwrap());
                    let writes = [(arrays[0], &[rows][..]), (arrays[1], &[rows][..])];
                    asm.call(0, Some(Formula::Extremes { maximum, n }), &[(from, &[rows, n])], &writes)
                        .unwrap();
                    for (k, place) in places.into_iter().enumerate() {
                        let out = asm.write(k, place.dtype(), rows).unwrap();
                        asm.store(out, &[], &[0], rows, Outside::Clamp, place).unwrap();
                    }
                    let code = asm.finish().unwrap();
                    same_in_both(&code, &[(dtype, rows), (index, rows)], 1, &|r, w| {
                        let [values, indices] = w else { panic!("two results") };
                        let (values, indices) = (values.reborrow(), indices.reborrow());
                        crate::reduce::arg_reduce(&Pool::inline(), op, r[0], values, indices, 1);
                    });
                }
            }
        }
    }
}

#[test]
fn products_of_matrices_add_in_the_order_of_the_kernel() {
    for dtype in [DType::F32, DType::F64] {
        for (batch, rows, depth, cols) in [
            (1, 2, 2, 2),
            (1, 3, 3, 3),
            (1, 4, 7, 5),
            (1, 8, 8, 8),
            (1, 2, 40, 8),
            (3, 2, 3, 2),
            (2, 4, 4, 4),
            (1, 5, 1, 3),
            (17, 2, 2, 2),
            (1, 6, 6, 10),
        ] {
            for transposed in [false, true] {
                let shapes = if transposed {
                    [[batch, depth, rows], [batch, cols, depth]]
                } else {
                    [[batch, rows, depth], [batch, depth, cols]]
                };
                let strides = |s: [usize; 3], swap: bool| {
                    if swap { [s[1] * s[2], 1, s[2]] } else { [s[1] * s[2], s[2], 1] }
                };
                let (lhs, rhs) = (strides(shapes[0], transposed), strides(shapes[1], transposed));
                let dims = crate::dot::DotDims {
                    lhs_batch: vec![0],
                    rhs_batch: vec![0],
                    lhs_contract: vec![if transposed { 1 } else { 2 }],
                    rhs_contract: vec![if transposed { 2 } else { 1 }],
                };
                let kernel = |r: &[Src<'_>], w: Dst<'_>| {
                    crate::dot::dot_general(&Pool::inline(), r[0], r[1], w, &dims);
                };
                let formula = Formula::Matrices(Matrices { batch, rows, cols, depth, lhs, rhs });
                let dims: [&[usize]; 3] = [&shapes[0], &shapes[1], &[batch, rows, cols]];
                same_as_kernel(formula, dtype, dims, (rows * depth) as u64, &kernel);
            }
        }
    }
}

#[test]
fn products_add_in_the_order_of_the_kernel() {
    for dtype in [DType::F32, DType::F64] {
        for depth in [1, 2, 3, 4, 7, 8, 11, 16, 24, 32, 40] {
            for count in [1, 2, 3, 5, 8, 16] {
                let dot = |lhs: usize, rhs: usize| {
                    move |r: &[Src<'_>], w: Dst<'_>| {
                        let mut dims = crate::dot::DotDims::matmul();
                        (dims.lhs_contract, dims.rhs_contract) = (vec![lhs], vec![rhs]);
                        crate::dot::dot_general(&Pool::inline(), r[0], r[1], w, &dims);
                    }
                };
                if depth * count > 128 && depth % 8 != 0 {
                    continue;
                }
                let seed = (depth * count) as u64;
                let by_rows = Formula::MatrixVector { matrix: 0, depth, stride: depth, adjacent: true };
                let dims: [&[usize]; 3] = [&[count, depth], &[depth], &[count]];
                same_as_kernel(by_rows, dtype, dims, seed, &dot(1, 0));
                if count > 1 && depth > 1 {
                    let by_columns =
                        Formula::MatrixVector { matrix: 1, depth, stride: count, adjacent: false };
                    let dims: [&[usize]; 3] = [&[depth], &[depth, count], &[count]];
                    same_as_kernel(by_columns, dtype, dims, seed, &dot(0, 0));
                }
            }
        }
    }
}

#[test]
fn a_formula_that_does_not_match_its_arrays_is_refused() {
    let mut asm = Assembler::new(0, 0);
    let [a, b, c] = [6, 3, 2].map(|n| {
        let place = asm.cells(DType::F32, n).unwrap();
        asm.array_of(place).unwrap()
    });
    let mut call = |formula| asm.call(0, Some(formula), &[(a, &[2, 3]), (b, &[3])], &[(c, &[2])]).is_ok();
    let product = |depth, stride| Formula::MatrixVector { matrix: 0, depth, stride, adjacent: true };
    assert!(call(product(3, 3)));
    assert!(!call(product(3, 4)));
    assert!(!call(product(2, 3)));
    assert!(!call(Formula::Rows(ReduceOp::Add, 3)));
}
