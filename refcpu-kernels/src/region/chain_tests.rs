//! Random regions, which the interpreter and machine code must execute alike.

use super::*;
use crate::testing::Array;
use crate::tile::TileOp;
use crate::{Dst, Pool, Src};

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

const TYPES: [DType; 14] = [
    DType::Pred,
    DType::S32,
    DType::U32,
    DType::S64,
    DType::U64,
    DType::F32,
    DType::F32,
    DType::F64,
    DType::BF16,
    DType::BF16,
    DType::S8,
    DType::U8,
    DType::S16,
    DType::U16,
];

/// Types and operations that machine code has, so that a region of them often is a single chain.
const CHAIN_TYPES: [DType; 4] = [DType::F32, DType::F32, DType::S32, DType::U32];
const CHAIN_OPS: [TileOp; 12] = [
    TileOp::Add,
    TileOp::Subtract,
    TileOp::Multiply,
    TileOp::Maximum,
    TileOp::Minimum,
    TileOp::And,
    TileOp::Or,
    TileOp::Xor,
    TileOp::Negate,
    TileOp::Abs,
    TileOp::Exponential,
    TileOp::Tanh,
];

const SHAPES: [&[usize]; 9] =
    [&[7], &[100], &[1000], &[700, 3], &[5, 130], &[3, 1, 64], &[2, 600], &[9, 1000], &[3, 5000]];
/// Shapes whose rows are a few vectors.
const SHORT_ROWS: [&[usize]; 5] = [&[16, 16], &[37, 32], &[70, 64], &[5, 6, 96], &[300, 48]];

/// Returns the bytes of a number of the type, often one that operations treat specially.
fn number(r: &mut Random, dtype: DType) -> Vec<u8> {
    let float = match r.below(4) {
        0 => r.choose(&[0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e-40, 1e30, 3e9]),
        1 => r.below(20) as f64 / 4.0 - 2.0,
        _ => r.next() as i32 as f64 / f64::from(1u32 << 28),
    };
    let integer = match r.below(3) {
        0 => r.choose(&[0, 1, -1, i64::MIN, i64::MAX, 31, 32, 63]),
        1 => r.below(40) as i64 - 4,
        _ => (r.next() << 11) as i64,
    };
    match dtype {
        DType::Pred => vec![(integer & 1) as u8],
        DType::F32 => (float as f32).to_le_bytes().to_vec(),
        DType::F64 => float.to_le_bytes().to_vec(),
        DType::BF16 => half::bf16::from_f64(float).to_le_bytes().to_vec(),
        _ => integer.to_le_bytes()[..dtype.size()].to_vec(),
    }
}

fn array(r: &mut Random, dtype: DType, dims: &[usize]) -> Array {
    let mut array = Array::unset(dtype, dims);
    array.dst().bytes_mut().chunks_exact_mut(dtype.size()).for_each(|e| e.copy_from_slice(&number(r, dtype)));
    array
}

/// Returns an access to an array of the shape `dims`, and the number of elements that it needs.
fn access(r: &mut Random, dims: &[usize]) -> (Access, usize) {
    let linear = Access::linear(dims);
    let access = match r.below(8) {
        0 => Access::scalar(dims.len()),
        1 => {
            let kept = r.below(dims.len());
            let strides = linear.strides.iter().enumerate();
            Access { offset: 0, strides: strides.map(|(i, s)| if i == kept { *s } else { 0 }).collect() }
        }
        2 => {
            // The elements of a row in the other order.
            let last = dims.len() - 1;
            let strides = linear.strides.iter().enumerate();
            Access {
                offset: dims[last] - 1,
                strides: strides.map(|(i, s)| if i == last { -s } else { *s }).collect(),
            }
        }
        3 => Access { offset: 1, strides: linear.strides.iter().map(|s| 2 * s).collect() },
        _ => linear,
    };
    let len = access.bounds(dims).unwrap().1 + 1;
    (access, len)
}

struct Generator {
    r: Random,
    b: Builder,
    values: Vec<Val>,
    /// The number of inputs, which are the first values.
    inputs: usize,
    types: &'static [DType],
    ops: &'static [TileOp],
}

impl Generator {
    /// Returns whether the bits of the value are specified, also if it is NaN: operations return any NaN.
    fn has_specified_bits(&self, value: Val) -> bool {
        let is_float = matches!(value.dtype(), DType::F32 | DType::F64 | DType::BF16);
        !is_float || self.values[..self.inputs].contains(&value)
    }

    fn of(&mut self, wanted: impl Fn(DType) -> bool) -> Option<Val> {
        let fitting: Vec<Val> = self.values.iter().copied().filter(|v| wanted(v.dtype())).collect();
        (!fitting.is_empty()).then(|| self.r.choose(&fitting))
    }

    /// Adds a random operation, if its operands exist.
    fn operation(&mut self) -> Option<()> {
        let a = self.of(|_| true)?;
        let b = self.of(|t| t == a.dtype())?;
        let c = self.of(|t| t == a.dtype())?;
        let value = match self.r.below(12) {
            0 => {
                let is_total =
                    self.r.below(3) == 0 && self.has_specified_bits(a) && self.has_specified_bits(b);
                let order = if is_total { Order::Total } else { Order::Partial };
                let all = [
                    Direction::Eq,
                    Direction::Ne,
                    Direction::Lt,
                    Direction::Le,
                    Direction::Gt,
                    Direction::Ge,
                ];
                let direction = self.r.choose(&all);
                self.b.compare(direction, order, a, b)
            }
            1 => {
                let p = self.of(|t| t == DType::Pred)?;
                self.b.select(p, a, b)
            }
            2 => self.b.clamp(a, b, c),
            3 => {
                let to = self.r.choose(self.types);
                self.b.convert(a, to)
            }
            4 => {
                let to = self.r.choose(self.types);
                if !self.has_specified_bits(a) {
                    return None;
                }
                self.b.bitcast(a, to)
            }
            5 => {
                let dtype = self.r.choose(self.types);
                let bytes = number(&mut self.r, dtype);
                self.b.constant_bytes(dtype, &bytes)
            }
            6 if self.types.len() == TYPES.len() => {
                let dim = self.r.below(self.b.dims().len());
                self.b.iota(a.dtype(), dim)
            }
            _ => {
                let op = self.r.choose(self.ops);
                self.b.op(op, &[a, b][..op.arity()])
            }
        };
        self.values.push(value.ok()?);
        Some(())
    }
}

/// Builds a random region, with arrays for its inputs. Every second one has only types and operations of machine code, and no
/// reductions.
fn generate(seed: u64) -> (Region, Vec<Array>) {
    let is_chain = seed % 2 == 1;
    let mut r = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    r.next();
    let dims: &[usize] = if is_chain { r.choose(&SHORT_ROWS) } else { r.choose(&SHAPES) };
    let (types, ops): (&[DType], &[TileOp]) =
        if is_chain { (&CHAIN_TYPES, &CHAIN_OPS) } else { (&TYPES, TileOp::ALL) };
    let mut g = Generator { r, b: Builder::new(dims), values: vec![], inputs: 0, types, ops };
    let mut arrays = vec![];
    for _ in 0..1 + g.r.below(6) {
        let dtype = g.r.choose(g.types);
        let (access, len) = access(&mut g.r, dims);
        arrays.push(array(&mut g.r, dtype, &[len]));
        g.values.push(g.b.input(dtype, access).unwrap());
    }
    g.inputs = g.values.len();
    for _ in 0..g.r.below(40) {
        let _ = g.operation();
    }
    let trailing = 1 + g.r.below(dims.len());
    for _ in 0..1 + g.r.below(3) {
        let recent = g.values.len().saturating_sub(1 + g.r.below(6));
        let value = g.values[recent];
        let reduce = g.r.choose(&[ReduceOp::Add, ReduceOp::Maximum, ReduceOp::Minimum]);
        if is_chain || g.r.below(3) > 0 || g.b.reduce_output(value, reduce, trailing).is_err() {
            g.b.output(value).unwrap();
        }
    }
    (g.b.finish().unwrap(), arrays)
}

/// Executes a region. If possible, the first output is in the place of an input.
fn execute(region: &Region, arrays: &[Array], in_place: bool) -> Vec<Array> {
    let mut arrays = arrays.to_vec();
    let dims = |k: usize| region.output_dims(k).to_vec();
    let dtype = |k: usize| region.outputs()[k].dtype;
    let mut results: Vec<Array> =
        (0..region.outputs().len()).map(|k| Array::unset(dtype(k), &dims(k))).collect();
    let len = results[0].dims.iter().product::<usize>();
    let alias = (0..arrays.len())
        .find(|i| in_place && region.may_alias(*i, 0) && arrays[*i].dims.iter().product::<usize>() == len);
    if let Some(i) = alias {
        results[0].words.clone_from(&arrays[i].words);
    }
    let bytes: Vec<(*const u8, usize)> = arrays
        .iter_mut()
        .enumerate()
        .map(|(i, a)| match alias {
            Some(aliased) if aliased == i => (results[0].words.as_ptr().cast(), a.bytes().len()),
            _ => (a.bytes().as_ptr(), a.bytes().len()),
        })
        .collect();
    let inputs: Vec<Src<'_>> = bytes
        .iter()
        .zip(&arrays)
        // SAFETY: the bytes belong to `arrays` or `results`, which live until the end of the function.
        .map(|((p, n), a)| Src::new(unsafe { std::slice::from_raw_parts(*p, *n) }, a.dtype, &a.dims))
        .collect();
    let mut outputs: Vec<Dst<'_>> = results.iter_mut().map(Array::dst).collect();
    run(&Pool::inline(), region, &inputs, &mut outputs);
    results
}

/// Returns whether the bytes of two elements are equal, or both are NaN, whose sign and payload are unspecified.
fn is_same(dtype: DType, a: &[u8], b: &[u8]) -> bool {
    let is_nan = |x: &[u8]| match dtype {
        DType::F32 | DType::C64 => {
            x.chunks(4).any(|part| f32::from_le_bytes(part.try_into().unwrap()).is_nan())
        }
        DType::F64 | DType::C128 => {
            x.chunks(8).any(|part| f64::from_le_bytes(part.try_into().unwrap()).is_nan())
        }
        DType::BF16 => half::bf16::from_le_bytes(x.try_into().unwrap()).is_nan(),
        _ => false,
    };
    a == b || is_nan(a) && is_nan(b)
}

/// Compares the interpreter and machine code. Returns the number of rows of a tile, or `None` if there is no machine code.
fn compare(seed: u64) -> Option<usize> {
    let (region, arrays) = generate(seed);
    let expected = [false, true].map(|in_place| execute(&region, &arrays, in_place));
    let tile_rows = region.native.compiled(&region)?.loops.tile_rows;
    for (in_place, expected) in [false, true].into_iter().zip(&expected) {
        let found = execute(&region, &arrays, in_place);
        for (k, (e, f)) in expected.iter().zip(&found).enumerate() {
            let size = e.dtype.size();
            let elements = e.bytes().chunks(size).zip(f.bytes().chunks(size)).enumerate();
            for (i, (x, y)) in elements {
                assert!(
                    is_same(e.dtype, x, y),
                    "seed {seed}, in place: {in_place}, output {k}, element {i}: {x:?} and {y:?}\n{region}"
                );
            }
        }
    }
    Some(tile_rows)
}

#[test]
fn chains_have_the_results_of_the_interpreter() {
    if crate::native::instruction_set().is_none() {
        return;
    }
    let first: u64 = std::env::var("REFCPU_CHAIN_SEED").map_or(0, |s| s.parse().unwrap());
    let compiled: Vec<usize> = (first..first + 2000).filter_map(compare).collect();
    assert!(compiled.len() > 400, "only {} of 2000 regions have a chain", compiled.len());
    let short_rows = compiled.iter().filter(|rows| **rows > 1).count();
    assert!(short_rows > 40, "only {short_rows} regions have tiles of several rows");
}
