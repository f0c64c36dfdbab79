//! StableHLO `rng`: numbers of a distribution. StableHLO leaves the generator to the implementation, which uses Philox.

use super::philox::philox_blocks;
use crate::view::SyncPtr;
use crate::{DType, Dst, Pool, Src};
use half::{bf16, f16};

/// The number of elements in a chunk, a multiple of that of a block.
const CHUNK: usize = 16 << 10;
/// The number of elements for which bits are generated at a time.
const BLOCK: usize = 512;

/// Fills `out` with numbers that are uniformly distributed from `low` (inclusive) to `high` (exclusive). The
/// bounds are arrays of one element, with the type of `out`. The same seed generates the same numbers.
///
/// # Panics
/// Panics if types differ, if bounds have a different number of elements, or if the type is complex or narrower
/// than 8 bits (except `Pred`, for which both values have the same probability).
pub fn rng_uniform(pool: &Pool, seed: u64, low: Src<'_>, high: Src<'_>, mut out: Dst<'_>) {
    let dtype = out.dtype();
    check("rng_uniform", &low, &high, &out);
    macro_rules! integer {
        ($t:ty, $wide:ty) => {{
            let (low, high) = (low.as_slice::<$t>()[0], high.as_slice::<$t>()[0]);
            let span = (high as $wide).wrapping_sub(low as $wide) as u64;
            generate::<$t>(pool, seed, &mut out, &|bits| {
                // The high half of a product spreads 64 bits over any span without division.
                low.wrapping_add(((u128::from(bits) * u128::from(span)) >> 64) as $t)
            })
        }};
    }
    macro_rules! float {
        ($t:ty, $in:ty, $bits:literal, $read:expr, $round:expr) => {{
            let (low, high): ($in, $in) = ($read(low.as_slice::<$t>()[0]), $read(high.as_slice::<$t>()[0]));
            generate::<$t>(pool, seed, &mut out, &|bits| {
                let unit = (bits >> (64 - $bits)) as $in * (1.0 / (1u64 << $bits) as $in);
                let value: $t = $round(low + unit * (high - low));
                // Rounding may reach the excluded bound.
                if $read(value) < high || high <= low { value } else { $round(low) }
            })
        }};
    }
    match dtype {
        DType::Pred => generate::<u8>(pool, seed, &mut out, &|bits| (bits >> 63) as u8),
        DType::S8 => integer!(i8, i64),
        DType::S16 => integer!(i16, i64),
        DType::S32 => integer!(i32, i64),
        DType::S64 => integer!(i64, i64),
        DType::U8 => integer!(u8, u64),
        DType::U16 => integer!(u16, u64),
        DType::U32 => integer!(u32, u64),
        DType::U64 => integer!(u64, u64),
        DType::F16 => float!(f16, f32, 11, f16::to_f32, f16::from_f32),
        DType::BF16 => float!(bf16, f32, 8, bf16::to_f32, bf16::from_f32),
        DType::F32 => float!(f32, f32, 24, std::convert::identity::<f32>, std::convert::identity::<f32>),
        DType::F64 => float!(f64, f64, 53, std::convert::identity::<f64>, std::convert::identity::<f64>),
        other => panic!("rng_uniform: output of type {other:?} is not supported"),
    }
}

/// Fills `out` with normally distributed numbers; `mean` and `deviation` are arrays of one element of its
/// type. The same seed generates the same numbers.
///
/// # Panics
/// Panics if types differ, if a parameter has a different number of elements, or if the type is not f16, bf16,
/// f32 or f64.
pub fn rng_normal(pool: &Pool, seed: u64, mean: Src<'_>, deviation: Src<'_>, mut out: Dst<'_>) {
    check("rng_normal", &mean, &deviation, &out);
    macro_rules! float {
        ($t:ty, $read:expr, $round:expr) => {{
            let (mean, deviation): (f64, f64) =
                ($read(mean.as_slice::<$t>()[0]), $read(deviation.as_slice::<$t>()[0]));
            generate::<$t>(pool, seed, &mut out, &|bits| $round(mean + deviation * normal(bits)))
        }};
    }
    match out.dtype() {
        DType::F16 => float!(f16, f16::to_f64, f16::from_f64),
        DType::BF16 => float!(bf16, bf16::to_f64, bf16::from_f64),
        DType::F32 => float!(f32, f64::from, |v: f64| v as f32),
        DType::F64 => float!(f64, std::convert::identity::<f64>, std::convert::identity::<f64>),
        other => panic!("rng_normal: output of type {other:?} is not supported"),
    }
}

#[track_caller]
fn check(what: &str, a: &Src<'_>, b: &Src<'_>, out: &Dst<'_>) {
    let fits = a.dtype() == out.dtype() && b.dtype() == out.dtype() && a.len() == 1 && b.len() == 1;
    assert!(fits, "{what}: {:?} and {:?} for {:?}{:?}", a.dtype(), b.dtype(), out.dtype(), out.dims());
}

/// Returns a normally distributed number from 64 bits: Box and Muller's transform of two 32-bit halves.
fn normal(bits: u64) -> f64 {
    let unit = |half: u64| (half as f64 + 0.5) / 4_294_967_296.0;
    let (radius, angle) = (unit(bits >> 32), unit(bits & 0xffff_ffff));
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

/// Writes `make` of 64 random bits to each element.
fn generate<T: crate::view::Element>(
    pool: &Pool,
    seed: u64,
    out: &mut Dst<'_>,
    make: &(dyn Fn(u64) -> T + Sync),
) {
    let n = out.as_mut_slice::<T>().len();
    let output = SyncPtr::new(out);
    pool.run(n.div_ceil(CHUNK), &|chunk| {
        let mut words = [0u32; 2 * BLOCK];
        for first in (chunk * CHUNK..n.min((chunk + 1) * CHUNK)).step_by(BLOCK) {
            philox_blocks(seed, (first / 2) as u128, &mut words);
            for (i, pair) in words.chunks_exact(2).take(n - first).enumerate() {
                let bits = u64::from(pair[0]) | u64::from(pair[1]) << 32;
                // SAFETY: first + i < n, and chunks, which are whole blocks, write different elements.
                unsafe { output.get().cast::<T>().add(first + i).write(make(bits)) }
            }
        }
    });
}
