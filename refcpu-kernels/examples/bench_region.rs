//! Times fused regions on the workloads of the project's performance notes: `cargo run --release --example
//! bench_region`.
//!
//! Prints the best of several runs, in microseconds, on one thread and on all.

use refcpu_kernels::region::{Access, Builder, Direction, Order, Region, RegionError, Val, run, run_scalar};
use refcpu_kernels::tile::TileOp::*;
use refcpu_kernels::{DType, Dst, Pool, ReduceOp, Src};
use std::time::Instant;

type Result<T> = std::result::Result<T, RegionError>;

/// A page-aligned array of any type.
struct Array {
    words: Vec<[u64; 8]>,
    dtype: DType,
    dims: Vec<usize>,
}

impl Array {
    fn new(dtype: DType, dims: &[usize], mut value: impl FnMut(usize) -> f64) -> Self {
        let n: usize = dims.iter().product();
        let mut a =
            Self { words: vec![[0; 8]; (n * dtype.size()).div_ceil(64).max(1)], dtype, dims: dims.to_vec() };
        let bytes = a.bytes_mut();
        for (i, b) in bytes.chunks_exact_mut(dtype.size()).enumerate() {
            let v = value(i);
            match dtype {
                DType::F32 => b.copy_from_slice(&(v as f32).to_le_bytes()),
                DType::F64 => b.copy_from_slice(&v.to_le_bytes()),
                DType::BF16 => b.copy_from_slice(&(((v as f32).to_bits() >> 16) as u16).to_le_bytes()),
                DType::F16 => b.copy_from_slice(&half::f16::from_f64(v).to_le_bytes()),
                _ => b.copy_from_slice(&(v as i64).to_le_bytes()[..dtype.size()]),
            }
        }
        a
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        let n = self.dims.iter().product::<usize>() * self.dtype.size();
        // SAFETY: the words hold at least that many initialized bytes.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), n) }
    }

    fn src(&self) -> Src<'_> {
        let n = self.dims.iter().product::<usize>() * self.dtype.size();
        // SAFETY: as in `bytes_mut`.
        let bytes = unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), n) };
        Src::new(bytes, self.dtype, &self.dims)
    }

    fn dst(&mut self) -> Dst<'_> {
        let n = self.dims.iter().product::<usize>() * self.dtype.size();
        // SAFETY: as in `bytes_mut`.
        let bytes = unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), n) };
        Dst::new(bytes, self.dtype, &self.dims)
    }
}

fn best(mut f: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    let start = Instant::now();
    let mut runs = 0;
    while runs < 5 || (start.elapsed().as_millis() < 400 && runs < 2000) {
        let t = Instant::now();
        f();
        best = best.min(t.elapsed().as_secs_f64() * 1e6);
        runs += 1;
    }
    best
}

fn bench(name: &str, pools: &[Pool], region: &Region, inputs: &[&Array], out: DType) {
    let inputs: Vec<Src<'_>> = inputs.iter().map(|a| a.src()).collect();
    let mut output = Array::new(out, region.output_dims(0), |_| 0.0);
    print!("{name:28} {:3} ops, estimate {:9.1} us:", region.ops(), region.estimated_ns() / 1000.0);
    for pool in pools {
        let us = best(|| run(pool, region, &inputs, &mut [output.dst()]));
        print!("  {}T {us:9.2} us", pool.threads());
    }
    println!();
}

fn chain(
    dims: &[usize],
    dtypes: &[DType],
    build: impl FnOnce(&mut Builder, &[Val]) -> Result<Val>,
) -> Result<Region> {
    let mut b = Builder::new(dims);
    let inputs = dtypes.iter().map(|d| b.linear_input(*d)).collect::<Result<Vec<_>>>()?;
    let v = build(&mut b, &inputs)?;
    b.output(v)?;
    b.finish()
}

fn gelu(b: &mut Builder, x: Val) -> Result<Val> {
    let d = x.dtype();
    let [half, one, s, c] = [0.5, 1.0, 0.797_884_560_802_865_4, 0.044715].map(|v| b.constant_f64(d, v));
    let (half, one, s, c) = (half?, one?, s?, c?);
    let x2 = b.op(Multiply, &[x, x])?;
    let x3 = b.op(Multiply, &[x2, x])?;
    let m = b.op(Multiply, &[c, x3])?;
    let a = b.op(Add, &[x, m])?;
    let a = b.op(Multiply, &[s, a])?;
    let t = b.op(Tanh, &[a])?;
    let t = b.op(Add, &[one, t])?;
    let t = b.op(Multiply, &[half, t])?;
    b.op(Multiply, &[x, t])
}

fn main() -> Result<()> {
    let pools = [Pool::inline(), Pool::new(Pool::default_threads())];
    let m4 = [4 << 20];
    let x = Array::new(DType::F32, &m4, |i| (i % 10_007) as f64 * 1e-3 - 5.0);
    let only = std::env::args().nth(1).unwrap_or_default();
    let wanted = |name: &str| name.contains(&only);

    for n in [1usize, 64, 512] {
        let r = chain(&[n], &[DType::F32, DType::F32], |b, v| {
            let s = b.op(Multiply, &[v[0], v[1]])?;
            let s = b.op(Subtract, &[s, v[0]])?;
            b.op(Maximum, &[s, v[1]])
        })?;
        let a = Array::new(DType::F32, &[n], |i| i as f64);
        let mut out = Array::new(DType::F32, &[n], |_| 0.0);
        let us = best(|| {
            for _ in 0..100 {
                run(&pools[1], &r, &[a.src(), a.src()], &mut [out.dst()]);
            }
        });
        println!("small region, {n} elements: {:.1} ns", us * 10.0);
    }
    {
        let mut b = Builder::new(&[]);
        let v = [b.linear_input(DType::F32)?, b.linear_input(DType::F32)?];
        let p = b.compare(Direction::Lt, Order::Total, v[0], v[1])?;
        b.output(p)?;
        let r = b.finish()?;
        let a = Array::new(DType::F32, &[], |_| 1.0);
        let c = Array::new(DType::F32, &[], |_| 2.0);
        let mut out = Array::new(DType::Pred, &[], |_| 0.0);
        let us = best(|| {
            for _ in 0..100 {
                run_scalar(&r, &[a.src(), c.src()], &mut [out.dst()]);
            }
        });
        println!("scalar comparator: {:.1} ns", us * 10.0);
    }

    for op in [
        Exponential,
        Log,
        Tanh,
        Logistic,
        Sine,
        Cosine,
        Tan,
        Erf,
        Erfc,
        ErfInv,
        ExponentialMinusOne,
        LogPlusOne,
        Sqrt,
        Rsqrt,
        Cbrt,
        Atan,
        Asin,
        Acos,
        Sinh,
        Asinh,
        RoundNearestAfz,
        Abs,
    ] {
        let name = format!("{op:?} f32 4M");
        if wanted(&name) {
            bench(&name, &pools, &chain(&m4, &[DType::F32], |b, v| b.op(op, &[v[0]]))?, &[&x], DType::F32);
        }
    }
    let xd = Array::new(DType::F64, &[1 << 20], |i| (i % 10_007) as f64 * 1e-3 - 5.0);
    for op in [Exponential, Log, Tanh, Logistic, Sine, Erf, Erfc, ErfInv, LogPlusOne] {
        let name = format!("{op:?} f64 1M");
        if wanted(&name) {
            bench(
                &name,
                &pools,
                &chain(&[1 << 20], &[DType::F64], |b, v| b.op(op, &[v[0]]))?,
                &[&xd],
                DType::F64,
            );
        }
    }
    for op in [Add, Divide, Power, Atan2, Maximum, Remainder] {
        let name = format!("{op:?} f32 4M");
        if wanted(&name) {
            bench(&name, &pools, &chain(&m4, &[DType::F32; 2], |b, v| b.op(op, v))?, &[&x, &x], DType::F32);
        }
    }
    if wanted("gelu") {
        bench("gelu f32 4M", &pools, &chain(&m4, &[DType::F32], |b, v| gelu(b, v[0]))?, &[&x], DType::F32);
        let xb = Array::new(DType::BF16, &m4, |i| (i % 10_007) as f64 * 1e-3 - 5.0);
        bench(
            "gelu bf16 4M",
            &pools,
            &chain(&m4, &[DType::BF16], |b, v| gelu(b, v[0]))?,
            &[&xb],
            DType::BF16,
        );
        let xh = Array::new(DType::F16, &m4, |i| (i % 10_007) as f64 * 1e-3 - 5.0);
        bench("gelu f16 4M", &pools, &chain(&m4, &[DType::F16], |b, v| gelu(b, v[0]))?, &[&xh], DType::F16);
    }
    if wanted("axpy") {
        let big = [16 << 20];
        let a = Array::new(DType::F32, &big, |i| i as f64);
        let y = Array::new(DType::F32, &big, |i| i as f64);
        let r = chain(&big, &[DType::F32; 2], |b, v| {
            let c = b.constant_f64(DType::F32, 2.5)?;
            let p = b.op(Multiply, &[c, v[0]])?;
            b.op(Add, &[p, v[1]])
        })?;
        bench("axpy f32 16M", &pools, &r, &[&a, &y], DType::F32);
    }
    if wanted("where") {
        let r = chain(&m4, &[DType::F32; 2], |b, v| {
            let p = b.compare(Direction::Gt, Order::Partial, v[0], v[1])?;
            b.select(p, v[0], v[1])
        })?;
        bench("where_cmp f32 4M", &pools, &r, &[&x, &x], DType::F32);
    }
    if wanted("bitmix") {
        let xi = Array::new(DType::U32, &m4, |i| i as f64);
        let r = chain(&m4, &[DType::U32], |b, v| {
            let mut h = v[0];
            for (shift, factor) in [(16u32, 0x85eb_ca6bu32), (13, 0xc2b2_ae35), (16, 0x27d4_eb2f)] {
                let s = b.constant(DType::U32, u128::from(shift))?;
                let f = b.constant(DType::U32, u128::from(factor))?;
                let t = b.op(ShiftRightLogical, &[h, s])?;
                h = b.op(Xor, &[h, t])?;
                h = b.op(Multiply, &[h, f])?;
            }
            Ok(h)
        })?;
        bench("bitmix u32 4M", &pools, &r, &[&xi], DType::U32);
    }
    if wanted("bias") {
        let dims = [4096, 1024];
        let bias = Array::new(DType::F32, &[1024], |i| i as f64);
        let mut b = Builder::new(&dims);
        let v = b.linear_input(DType::F32)?;
        let w = b.input(DType::F32, Access::broadcast(2, &[1024], &[1]))?;
        let s = b.op(Add, &[v, w])?;
        let zero = b.constant_f64(DType::F32, 0.0)?;
        let s = b.op(Maximum, &[s, zero])?;
        b.output(s)?;
        bench("bias relu 4096x1024", &pools, &b.finish()?, &[&x, &bias], DType::F32);
        for cols in [4usize, 33, 64, 200] {
            let rows = (4 << 20) / cols;
            let bias = Array::new(DType::F32, &[cols], |i| i as f64);
            let mut b = Builder::new(&[rows, cols]);
            let v = b.linear_input(DType::F32)?;
            let w = b.input(DType::F32, Access::broadcast(2, &[cols], &[1]))?;
            let s = b.op(Add, &[v, w])?;
            b.output(s)?;
            bench(&format!("bias {rows}x{cols}"), &pools, &b.finish()?, &[&x, &bias], DType::F32);
        }
    }
    if wanted("reduce") {
        for (rows, cols, op) in [
            (1usize, 4 << 20, ReduceOp::Add),
            (4096, 1024, ReduceOp::Add),
            (4096, 1024, ReduceOp::Maximum),
            (65_536, 64, ReduceOp::Add),
            (1 << 18, 16, ReduceOp::Add),
        ] {
            let mut b = Builder::new(&[rows, cols]);
            let v = b.linear_input(DType::F32)?;
            b.reduce_output(v, op, 1)?;
            bench(&format!("reduce {op:?} {rows}x{cols}"), &pools, &b.finish()?, &[&x], DType::F32);
        }
    }
    if wanted("convert") {
        for d in [DType::BF16, DType::F16, DType::F8E4M3FN, DType::S32, DType::S8, DType::F64] {
            let r = chain(&m4, &[DType::F32], |b, v| b.convert(v[0], d))?;
            bench(&format!("convert f32 to {}", d.mlir_name()), &pools, &r, &[&x], d);
        }
    }
    Ok(())
}
