//! StableHLO `fft`: discrete Fourier transforms over the last one to three dimensions.

use crate::view::SyncPtr;
use crate::{DType, Dst, Pool, Src};
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftDirection, FftNum, FftPlanner};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

/// The number of elements that justify a chunk.
const CHUNK: usize = 8192;
/// The number of columns that are transformed together: one or two cache lines.
const STRIP: usize = 8;

/// The kinds of transform, named as in StableHLO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FftKind {
    /// Complex to complex, forward.
    Fft,
    /// Complex to complex, inverse, scaled by one over the number of elements.
    Ifft,
    /// Real to the non-redundant half of the transform.
    Rfft,
    /// The non-redundant half of a transform to the real array, scaled as in `Ifft`.
    Irfft,
}

/// An element type for which transforms are implemented.
trait Real: FftNum + crate::view::Element {
    /// Returns the plans of the process for this type.
    fn planner() -> &'static Mutex<FftPlanner<Self>>;
    /// Returns `1 / n`.
    fn reciprocal(n: usize) -> Self;
    /// Returns `exp(-2 pi i k / n)` for `k <= n / 2`. The table is computed at most once per process and
    /// length.
    fn turns(n: usize) -> Arc<[Complex<Self>]>;
}

/// Tables of roots of unity by length.
type Turns<T> = Mutex<HashMap<usize, Arc<[Complex<T>]>>>;

fn cached_turns<T: Real>(cache: &Turns<T>, n: usize, narrow: impl Fn(f64) -> T) -> Arc<[Complex<T>]> {
    let mut cache = cache.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let table = cache.entry(n).or_insert_with(|| {
        (0..=n / 2)
            .map(|k| {
                let (sin, cos) = (std::f64::consts::TAU * k as f64 / n as f64).sin_cos();
                Complex::new(narrow(cos), narrow(-sin))
            })
            .collect()
    });
    table.clone()
}

impl Real for f32 {
    fn planner() -> &'static Mutex<FftPlanner<f32>> {
        static PLANNER: LazyLock<Mutex<FftPlanner<f32>>> = LazyLock::new(|| Mutex::new(FftPlanner::new()));
        &PLANNER
    }
    fn reciprocal(n: usize) -> f32 {
        (1.0 / n as f64) as f32
    }
    fn turns(n: usize) -> Arc<[Complex<f32>]> {
        static TURNS: LazyLock<Turns<f32>> = LazyLock::new(Default::default);
        cached_turns(&TURNS, n, |v| v as f32)
    }
}

impl Real for f64 {
    fn planner() -> &'static Mutex<FftPlanner<f64>> {
        static PLANNER: LazyLock<Mutex<FftPlanner<f64>>> = LazyLock::new(|| Mutex::new(FftPlanner::new()));
        &PLANNER
    }
    fn reciprocal(n: usize) -> f64 {
        1.0 / n as f64
    }
    fn turns(n: usize) -> Arc<[Complex<f64>]> {
        static TURNS: LazyLock<Turns<f64>> = LazyLock::new(Default::default);
        cached_turns(&TURNS, n, |v| v)
    }
}

/// Returns the plan for a length. It is created at most once per process, because this takes milliseconds for
/// long transforms.
fn plan<T: Real>(length: usize, inverse: bool) -> Arc<dyn Fft<T>> {
    let direction = if inverse { FftDirection::Inverse } else { FftDirection::Forward };
    // A panic during planning leaves the cache without that plan, but otherwise consistent.
    let mut planner = T::planner().lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    planner.plan_fft(length, direction)
}

/// Creates the plans that [`fft`] needs with these arguments, so that its first call is as fast as later
/// ones. `dtype` is the type of the input.
pub fn fft_prepare(kind: FftKind, dtype: DType, length: &[usize]) {
    fn prepare<T: Real>(kind: FftKind, length: &[usize]) {
        let inverse = matches!(kind, FftKind::Ifft | FftKind::Irfft);
        let Some((last, outer)) = length.split_last().filter(|_| !length.contains(&0)) else { return };
        for n in outer {
            drop(plan::<T>(*n, inverse));
        }
        match kind {
            FftKind::Fft | FftKind::Ifft => drop(plan::<T>(*last, inverse)),
            FftKind::Rfft | FftKind::Irfft => drop(RealPlan::<T>::new(*last, inverse)),
        }
    }
    match dtype {
        DType::F32 | DType::C64 => prepare::<f32>(kind, length),
        _ => prepare::<f64>(kind, length),
    }
}

/// Transforms the last `length.len()` dimensions, whose sizes are `length`; the leading dimensions are
/// batches. Types: C64 to C64 or C128 to C128; `Rfft` takes F32 or F64 and writes `length / 2 + 1` complex
/// elements along the last dimension; `Irfft` does the opposite. Allocates memory for a few lines per thread,
/// and for a copy of the input in an `Irfft` of several dimensions.
///
/// # Panics
/// Panics if types or shapes do not match.
pub fn fft(pool: &Pool, input: Src<'_>, out: Dst<'_>, kind: FftKind, length: &[usize]) {
    use DType as D;
    match (kind, input.dtype(), out.dtype()) {
        (FftKind::Fft | FftKind::Ifft, D::C64, D::C64)
        | (FftKind::Rfft, D::F32, D::C64)
        | (FftKind::Irfft, D::C64, D::F32) => run::<f32>(pool, input, out, kind, length),
        (FftKind::Fft | FftKind::Ifft, D::C128, D::C128)
        | (FftKind::Rfft, D::F64, D::C128)
        | (FftKind::Irfft, D::C128, D::F64) => run::<f64>(pool, input, out, kind, length),
        (_, from, to) => panic!("fft: {kind:?} of {from:?} to {to:?}"),
    }
}

fn run<T: Real>(pool: &Pool, input: Src<'_>, mut out: Dst<'_>, kind: FftKind, length: &[usize]) {
    check_shapes(input.dims(), out.dims(), kind, length);
    if out.is_empty() || input.is_empty() {
        return;
    }
    let inverse = matches!(kind, FftKind::Ifft | FftKind::Irfft);
    let scale = if inverse { T::reciprocal(length.iter().product()) } else { T::one() };
    let last = length[length.len() - 1];
    // The number of complex elements of a row of a real transform.
    let half = last / 2 + 1;
    let rows = input.len() / if kind == FftKind::Irfft { half } else { last };
    let (source, target) = (SyncPtr::from_raw(input.as_ptr().cast_mut()), SyncPtr::new(&mut out));
    // SAFETY: for all passes, `fft` checked the types, and `check_shapes` the shapes. The arrays have
    // `rows` rows, of `last` real or complex elements or of `last / 2 + 1` complex ones. `input` is only
    // read.
    unsafe {
        match kind {
            FftKind::Fft | FftKind::Ifft => {
                complex_rows::<T>(pool, source, target, rows, last, inverse, scale);
                columns::<T>(pool, target, rows, length, last, inverse);
            }
            FftKind::Rfft => {
                let (from, to) = ((source, last), (target, half));
                real_rows::<T, T, Complex<T>>(pool, from, to, rows, last, false, &|row, from, to| {
                    row.forward(from, to)
                });
                columns::<T>(pool, target, rows, length, half, false);
            }
            FftKind::Irfft if length.len() == 1 => {
                let (from, to) = ((source, half), (target, last));
                real_rows::<T, Complex<T>, T>(pool, from, to, rows, last, true, &|row, from, to| {
                    row.inverse(from, to, scale);
                });
            }
            FftKind::Irfft => {
                let mut copy = zeros::<T>(input.len());
                copy.as_mut_ptr().copy_from_nonoverlapping(input.as_ptr().cast(), input.len());
                let middle = SyncPtr::from_raw(copy.as_mut_ptr().cast());
                columns::<T>(pool, middle, rows, length, half, true);
                let (from, to) = ((middle, half), (target, last));
                real_rows::<T, Complex<T>, T>(pool, from, to, rows, last, true, &|row, from, to| {
                    row.inverse(from, to, scale);
                });
            }
        }
    }
}

/// Checks the shapes of a transform.
///
/// # Panics
/// Panics if the shapes do not match.
fn check_shapes(input: &[usize], out: &[usize], kind: FftKind, length: &[usize]) {
    let describe = || format!("fft: {kind:?} of {input:?} by {length:?} to {out:?}");
    let rank = input.len();
    assert!((1..=3).contains(&length.len()) && length.len() <= rank && out.len() == rank, "{}", describe());
    let last = length[length.len() - 1];
    let mut half = length.to_vec();
    half[length.len() - 1] = if last == 0 { 0 } else { last / 2 + 1 };
    let (from, to) = match kind {
        FftKind::Fft | FftKind::Ifft => (length, length),
        FftKind::Rfft => (length, &half[..]),
        FftKind::Irfft => (&half[..], length),
    };
    let (batch, out_batch) = (&input[..rank - length.len()], &out[..rank - length.len()]);
    assert!(
        batch == out_batch && input[batch.len()..] == *from && out[batch.len()..] == *to,
        "{}",
        describe()
    );
}

/// Transforms rows of `n` complex elements and scales them.
///
/// # Safety
/// `rows` of them must be readable at `from` and writable at `to`. The areas must be aligned, and must not
/// overlap.
unsafe fn complex_rows<T: Real>(
    pool: &Pool,
    from: SyncPtr,
    to: SyncPtr,
    rows: usize,
    n: usize,
    inverse: bool,
    scale: T,
) {
    let plan = plan::<T>(n, inverse);
    let part = (CHUNK / n).max(1);
    pool.run(rows.div_ceil(part), &|chunk| {
        let first = chunk * part * n;
        let len = part.min(rows - chunk * part) * n;
        // SAFETY: guaranteed by the caller; chunks have different rows.
        let (from, to) = unsafe {
            (
                std::slice::from_raw_parts(from.get().cast::<Complex<T>>().add(first), len),
                std::slice::from_raw_parts_mut(to.get().cast::<Complex<T>>().add(first), len),
            )
        };
        to.copy_from_slice(from);
        plan.process_with_scratch(to, &mut zeros(plan.get_inplace_scratch_len()));
        if inverse {
            to.iter_mut().for_each(|v| *v = v.scale(scale));
        }
    });
}

/// Transforms rows of `n` real elements to or from complex ones by `work(row, from, to)`.
///
/// # Safety
/// There must be `rows` of them on one side, and `rows` of `n / 2 + 1` complex elements on the other. `from`
/// must be readable and `to` writable; both must be aligned for `A` and `B`, the types of their elements, and
/// must not overlap.
unsafe fn real_rows<T: Real, A: Send + Sync, B: Send + Sync>(
    pool: &Pool,
    (from, from_len): (SyncPtr, usize),
    (to, to_len): (SyncPtr, usize),
    rows: usize,
    n: usize,
    inverse: bool,
    work: &(dyn Fn(&mut RealRow<'_, T>, &[A], &mut [B]) + Sync),
) {
    let shared = RealPlan::<T>::new(n, inverse);
    let part = (CHUNK / n).max(1);
    pool.run(rows.div_ceil(part), &|chunk| {
        let mut row = RealRow::new(&shared);
        for number in chunk * part..rows.min((chunk + 1) * part) {
            // SAFETY: guaranteed by the caller; chunks have different rows.
            let (from, to) = unsafe {
                (
                    std::slice::from_raw_parts(from.get().cast::<A>().add(number * from_len), from_len),
                    std::slice::from_raw_parts_mut(to.get().cast::<B>().add(number * to_len), to_len),
                )
            };
            work(&mut row, from, to);
        }
    });
}

/// Transforms every dimension but the last, in place.
///
/// # Safety
/// `data` must be an array of `rows * inner` complex elements that nothing else accesses. Its last dimensions
/// are those of `length`, the last of which is `inner`.
unsafe fn columns<T: Real>(
    pool: &Pool,
    data: SyncPtr,
    rows: usize,
    length: &[usize],
    inner: usize,
    inverse: bool,
) {
    for (d, n) in length[..length.len() - 1].iter().copied().enumerate() {
        let plan = plan::<T>(n, inverse);
        let total = rows * inner;
        let inner: usize = length[d + 1..length.len() - 1].iter().product::<usize>() * inner;
        let outer = total / (n * inner);
        let strips = inner.div_ceil(STRIP);
        let part = (CHUNK / (n * STRIP)).max(1);
        pool.run((outer * strips).div_ceil(part), &|chunk| {
            let mut lines = zeros::<T>(n * STRIP);
            let mut scratch = zeros(plan.get_inplace_scratch_len());
            for number in chunk * part..(outer * strips).min((chunk + 1) * part) {
                let (first, strip) = (number / strips * n * inner, number % strips * STRIP);
                let width = STRIP.min(inner - strip);
                let start = data.get().cast::<Complex<T>>().wrapping_add(first + strip);
                for k in 0..n {
                    for i in 0..width {
                        // SAFETY: element k of column strip + i < inner of block number / strips.
                        lines[i * n + k] = unsafe { *start.add(k * inner + i) };
                    }
                }
                plan.process_with_scratch(&mut lines[..width * n], &mut scratch);
                for k in 0..n {
                    for i in 0..width {
                        // SAFETY: as above; no other strip contains the element.
                        unsafe { *start.add(k * inner + i) = lines[i * n + k] };
                    }
                }
            }
        });
    }
}

fn zeros<T: Real>(n: usize) -> Vec<Complex<T>> {
    vec![Complex::new(T::zero(), T::zero()); n]
}

/// The plan of real transforms of one length. Those of even length are computed as complex ones of half the
/// length.
struct RealPlan<T> {
    n: usize,
    plan: Arc<dyn Fft<T>>,
    /// `exp(-2 pi i k / n)` for `k <= n / 2`, for even lengths.
    turns: Arc<[Complex<T>]>,
}

/// A [`RealPlan`] with scratch memory.
struct RealRow<'a, T> {
    plan: &'a RealPlan<T>,
    line: Vec<Complex<T>>,
    scratch: Vec<Complex<T>>,
}

impl<T: Real> RealPlan<T> {
    fn new(n: usize, inverse: bool) -> Self {
        if n.is_multiple_of(2) {
            Self { n, plan: plan(n / 2, inverse), turns: T::turns(n) }
        } else {
            Self { n, plan: plan(n, inverse), turns: Arc::new([]) }
        }
    }
}

impl<'a, T: Real> RealRow<'a, T> {
    fn new(plan: &'a RealPlan<T>) -> Self {
        Self { plan, line: zeros(plan.plan.len()), scratch: zeros(plan.plan.get_inplace_scratch_len()) }
    }

    /// Computes the first half of the transform of real numbers.
    fn forward(&mut self, from: &[T], to: &mut [Complex<T>]) {
        let Self { plan: RealPlan { n, plan, turns }, line, scratch } = self;
        if n % 2 == 1 {
            for (l, v) in line.iter_mut().zip(from) {
                *l = Complex::new(*v, T::zero());
            }
            plan.process_with_scratch(line, scratch);
            to.copy_from_slice(&line[..to.len()]);
            return;
        }
        for (l, v) in line.iter_mut().zip(from.chunks_exact(2)) {
            *l = Complex::new(v[0], v[1]);
        }
        plan.process_with_scratch(line, scratch);
        // The transforms of the even and the odd elements are the symmetric and antisymmetric parts of
        // `line`.
        let (half, one_half) = (n / 2, T::reciprocal(2));
        for (k, t) in to.iter_mut().enumerate() {
            let (a, b) =
                (line[if k == half { 0 } else { k }], line[if k == 0 { 0 } else { half - k }].conj());
            let (even, odd) = ((a + b).scale(one_half), (a - b).scale(one_half));
            let odd = Complex::new(odd.im, -odd.re);
            *t = even + turns[k] * odd;
        }
    }

    /// Computes the real numbers whose transform has this first half, times `n * scale`. The imaginary parts
    /// of the constant and of the highest frequency are ignored.
    fn inverse(&mut self, from: &[Complex<T>], to: &mut [T], scale: T) {
        let Self { plan: RealPlan { n, plan, turns }, line, scratch } = self;
        if n % 2 == 1 {
            for (k, l) in line.iter_mut().enumerate() {
                *l = if k < from.len() { from[k] } else { from[*n - k].conj() };
            }
            line[0].im = T::zero();
            plan.process_with_scratch(line, scratch);
            for (t, l) in to.iter_mut().zip(&*line) {
                *t = l.re * scale;
            }
            return;
        }
        let half = n / 2;
        let at = |k: usize| if k == 0 || k == half { Complex::new(from[k].re, T::zero()) } else { from[k] };
        for (k, l) in line.iter_mut().enumerate() {
            let (a, b) = (at(k), at(half - k).conj());
            let (even, odd) = (a + b, (a - b) * turns[k].conj());
            *l = even + Complex::new(-odd.im, odd.re);
        }
        plan.process_with_scratch(line, scratch);
        for (t, l) in to.chunks_exact_mut(2).zip(&*line) {
            (t[0], t[1]) = (l.re * scale, l.im * scale);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Array, indices};

    type C = Complex<f64>;

    /// Computes the transform by its definition: a sum over all elements for each result.
    fn naive(values: &[C], dims: &[usize], inverse: bool) -> Vec<C> {
        let total: usize = dims.iter().product();
        indices(dims)
            .map(|k| {
                let sum: C = indices(dims)
                    .zip(values)
                    .map(|(j, v)| {
                        let turns: f64 =
                            (0..dims.len()).map(|d| (j[d] * k[d] % dims[d]) as f64 / dims[d] as f64).sum();
                        let angle = std::f64::consts::TAU * turns * if inverse { 1.0 } else { -1.0 };
                        v * C::from_polar(1.0, angle)
                    })
                    .sum();
                if inverse { sum / total as f64 } else { sum }
            })
            .collect()
    }

    fn random(n: usize) -> Vec<C> {
        (0..n as u64)
            .map(|i| {
                let bits = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                C::new((bits >> 40) as f64 / 1e7 - 0.8, (bits & 0xff_ffff) as f64 / 1e7 - 0.8)
            })
            .collect()
    }

    #[track_caller]
    fn close(got: &[C], want: &[C], tolerance: f64) {
        let scale = want.iter().map(|v| v.norm()).fold(1.0, f64::max);
        for (g, w) in got.iter().zip(want) {
            assert!((g - w).norm() < tolerance * scale, "{g} is not {w}");
        }
        assert_eq!(got.len(), want.len());
    }

    fn pairs(values: &[C]) -> Vec<[f64; 2]> {
        values.iter().map(|v| [v.re, v.im]).collect()
    }

    fn back(array: &Array) -> Vec<C> {
        array.values::<[f64; 2]>().iter().map(|v| C::new(v[0], v[1])).collect()
    }

    const SHAPES: [&[usize]; 11] =
        [&[1], &[2], &[7], &[16], &[97], &[60], &[3, 4], &[5, 1], &[8, 9], &[2, 3, 4], &[4, 1, 5]];

    fn with_batch(batch: usize, dims: &[usize]) -> Vec<usize> {
        [&[batch], dims].concat()
    }

    #[test]
    fn complex_transforms_equal_the_definition() {
        for dims in SHAPES {
            for (kind, inverse) in [(FftKind::Fft, false), (FftKind::Ifft, true)] {
                let n: usize = dims.iter().product();
                let values = random(3 * n);
                let input = Array::of(DType::C128, &with_batch(3, dims), &pairs(&values));
                let mut out = Array::new(DType::C128, &with_batch(3, dims));
                fft(&Pool::inline(), input.src(), out.dst(), kind, dims);
                let want: Vec<C> = values.chunks(n).flat_map(|v| naive(v, dims, inverse)).collect();
                close(&back(&out), &want, 1e-12);
                let single: Vec<[f32; 2]> = values.iter().map(|v| [v.re as f32, v.im as f32]).collect();
                let input = Array::of(DType::C64, &with_batch(3, dims), &single);
                let mut out = Array::new(DType::C64, &with_batch(3, dims));
                fft(&Pool::inline(), input.src(), out.dst(), kind, dims);
                let got: Vec<C> =
                    out.values::<[f32; 2]>().iter().map(|v| C::new(v[0].into(), v[1].into())).collect();
                close(&got, &want, 1e-5);
            }
        }
    }

    #[test]
    fn real_transforms_give_the_first_half_and_back() {
        for dims in SHAPES {
            let n: usize = dims.iter().product();
            let values: Vec<C> = random(2 * n).iter().map(|v| C::new(v.re, 0.0)).collect();
            let last = dims[dims.len() - 1];
            let mut half = dims.to_vec();
            half[dims.len() - 1] = last / 2 + 1;
            let input =
                Array::of(DType::F64, &with_batch(2, dims), &values.iter().map(|v| v.re).collect::<Vec<_>>());
            let mut out = Array::new(DType::C128, &with_batch(2, &half));
            fft(&Pool::inline(), input.src(), out.dst(), FftKind::Rfft, dims);
            let full: Vec<C> = values.chunks(n).flat_map(|v| naive(v, dims, false)).collect();
            let want: Vec<C> = full.chunks(last).flat_map(|row| row[..last / 2 + 1].to_vec()).collect();
            close(&back(&out), &want, 1e-12);
            let mut again = Array::new(DType::F64, &with_batch(2, dims));
            fft(&Pool::inline(), out.src(), again.dst(), FftKind::Irfft, dims);
            let again: Vec<C> = again.values::<f64>().iter().map(|v| C::new(*v, 0.0)).collect();
            close(&again, &values, 1e-12);
        }
    }

    #[test]
    fn inverse_real_transforms_ignore_what_a_real_result_cannot_have() {
        // Imaginary parts of the constant and of the highest frequency.
        let input = Array::of(DType::C128, &[3], &[[4.0, 9.0], [0.0, 0.0], [0.0, 9.0]]);
        let mut out = Array::new(DType::F64, &[4]);
        fft(&Pool::inline(), input.src(), out.dst(), FftKind::Irfft, &[4]);
        assert_eq!(out.values::<f64>(), [1.0; 4]);
    }
}
