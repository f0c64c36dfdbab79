//! StableHLO `fft`: discrete Fourier transforms over the last one to three dimensions.

use crate::{DType, Dst, Pool, Src};
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftDirection, FftNum, FftPlanner};
use std::sync::{Arc, LazyLock, Mutex};

/// The kinds of transform, named as in StableHLO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FftKind {
    /// Complex to complex, forward.
    Fft,
    /// Complex to complex, inverse, scaled by one over the number of elements.
    Ifft,
    /// Real to the non-redundant half of its transform.
    Rfft,
    /// The non-redundant half of a transform to the real array, scaled as `Ifft`.
    Irfft,
}

/// A type that transforms exist for.
trait Real: FftNum + crate::view::Element {
    /// The process's plans for this type.
    fn planner() -> &'static Mutex<FftPlanner<Self>>;
    /// `1 / n`.
    fn reciprocal(n: usize) -> Self;
}

impl Real for f32 {
    fn planner() -> &'static Mutex<FftPlanner<f32>> {
        static PLANNER: LazyLock<Mutex<FftPlanner<f32>>> = LazyLock::new(|| Mutex::new(FftPlanner::new()));
        &PLANNER
    }
    fn reciprocal(n: usize) -> f32 {
        (1.0 / n as f64) as f32
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
}

/// The plan for one length, made at most once per process. Making one takes milliseconds for long transforms.
fn plan<T: Real>(length: usize, inverse: bool) -> Arc<dyn Fft<T>> {
    let direction = if inverse { FftDirection::Inverse } else { FftDirection::Forward };
    // A panic while planning leaves the planner's cache without that plan and otherwise whole.
    let mut planner = T::planner().lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    planner.plan_fft(length, direction)
}

/// Makes the plans that [`fft`] with these arguments needs, so that the first call is as fast as the others. `dtype` is
/// that of the input.
pub fn fft_prepare(kind: FftKind, dtype: DType, length: &[usize]) {
    let inverse = matches!(kind, FftKind::Ifft | FftKind::Irfft);
    for n in length.iter().copied().filter(|n| *n > 0) {
        match dtype {
            DType::F32 | DType::C64 => drop(plan::<f32>(n, inverse)),
            _ => drop(plan::<f64>(n, inverse)),
        }
    }
}

/// Transforms the last `length.len()` dimensions, each of the length given there; all dimensions before are batches.
/// Types: C64 to C64 or C128 to C128; `Rfft` takes F32 or F64 and writes `length / 2 + 1` complex elements along the last
/// dimension; `Irfft` the other way round. Takes memory for two copies of one transform.
///
/// # Panics
/// If types or shapes do not fit.
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

fn run<T: Real>(_pool: &Pool, input: Src<'_>, mut out: Dst<'_>, kind: FftKind, length: &[usize]) {
    let rank = input.dims().len();
    let describe = || format!("fft: {kind:?} of {:?} by {length:?} to {:?}", input.dims(), out.dims());
    assert!(
        (1..=3).contains(&length.len()) && length.len() <= rank && out.dims().len() == rank,
        "{}",
        describe()
    );
    let batch_rank = rank - length.len();
    let mut half = length.to_vec();
    half[length.len() - 1] = if length[length.len() - 1] == 0 { 0 } else { length[length.len() - 1] / 2 + 1 };
    let (from, to) = match kind {
        FftKind::Fft | FftKind::Ifft => (length, length),
        FftKind::Rfft => (length, &half[..]),
        FftKind::Irfft => (&half[..], length),
    };
    assert!(
        input.dims()[..batch_rank] == out.dims()[..batch_rank]
            && input.dims()[batch_rank..] == *from
            && out.dims()[batch_rank..] == *to,
        "{}",
        describe()
    );
    if out.is_empty() || input.is_empty() {
        return;
    }
    let (from_len, to_len, full) =
        (from.iter().product::<usize>(), to.iter().product::<usize>(), length.iter().product::<usize>());
    let inverse = matches!(kind, FftKind::Ifft | FftKind::Irfft);
    let batches = input.len() / from_len;
    let zero = Complex::new(T::zero(), T::zero());
    let mut work = vec![zero; full];
    let last = length[length.len() - 1];
    for b in 0..batches {
        match kind {
            FftKind::Rfft => {
                // SAFETY: type and length were checked; a real array is read as its own type.
                let values = unsafe {
                    std::slice::from_raw_parts(input.as_ptr().cast::<T>().add(b * from_len), from_len)
                };
                for (w, v) in work.iter_mut().zip(values) {
                    *w = Complex::new(*v, T::zero());
                }
            }
            _ => {
                // SAFETY: type and length were checked; `Complex<T>` is two `T`, as the array's elements are.
                let values = unsafe {
                    std::slice::from_raw_parts(
                        input.as_ptr().cast::<Complex<T>>().add(b * from_len),
                        from_len,
                    )
                };
                if kind == FftKind::Irfft {
                    complete(values, &mut work, length, last / 2 + 1);
                } else {
                    work.copy_from_slice(values);
                }
            }
        }
        transform(&mut work, length, inverse);
        let scale = if inverse { T::reciprocal(full) } else { T::one() };
        if kind == FftKind::Irfft {
            // SAFETY: as above, for writing.
            let values = unsafe {
                std::slice::from_raw_parts_mut(out.as_mut_ptr().cast::<T>().add(b * to_len), to_len)
            };
            for (v, w) in values.iter_mut().zip(&work) {
                *v = w.re * scale;
            }
        } else {
            // SAFETY: as above, for writing.
            let values = unsafe {
                std::slice::from_raw_parts_mut(out.as_mut_ptr().cast::<Complex<T>>().add(b * to_len), to_len)
            };
            let kept = to[to.len() - 1];
            for (v, w) in values.chunks_exact_mut(kept).zip(work.chunks_exact(last)) {
                for (v, w) in v.iter_mut().zip(w) {
                    *v = w.scale(scale);
                }
            }
        }
    }
}

/// Fills the redundant half of a Hermitian array from its first `half` columns.
fn complete<T: Real>(from: &[Complex<T>], to: &mut [Complex<T>], length: &[usize], half: usize) {
    let last = length[length.len() - 1];
    let outer = &length[..length.len() - 1];
    for (row, line) in to.chunks_exact_mut(last).enumerate() {
        // The row at the negated index of every outer dimension.
        let (mut rest, mut mirror, mut step) = (row, 0, 1);
        for n in outer.iter().rev() {
            mirror += (n - rest % n) % n * step;
            step *= n;
            rest /= n;
        }
        for (k, v) in line.iter_mut().enumerate() {
            *v = if k < half { from[row * half + k] } else { from[mirror * half + last - k].conj() };
        }
    }
}

/// Transforms every dimension of one array.
fn transform<T: Real>(work: &mut [Complex<T>], length: &[usize], inverse: bool) {
    for (d, n) in length.iter().copied().enumerate() {
        let plan = plan::<T>(n, inverse);
        let inner: usize = length[d + 1..].iter().product();
        if inner == 1 {
            plan.process(work);
            continue;
        }
        let mut line = vec![Complex::new(T::zero(), T::zero()); n];
        for block in work.chunks_exact_mut(n * inner) {
            for i in 0..inner {
                for (k, l) in line.iter_mut().enumerate() {
                    *l = block[k * inner + i];
                }
                plan.process(&mut line);
                for (k, l) in line.iter().enumerate() {
                    block[k * inner + i] = *l;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::test_array::{Array, indices};

    type C = Complex<f64>;

    /// The definition: a sum over all elements for each result.
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
