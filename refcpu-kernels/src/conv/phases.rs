//! Convolutions of dilated inputs, without the zeros between the input's elements.
//!
//! The output positions that depend on the same kernel elements are called a phase. They are equally spaced,
//! and the windows at these positions have the same equally spaced kernel elements over elements of the
//! input, and the others over holes. A phase is a convolution of the undilated input with this part of the
//! kernel.

use super::spec::ConvSpec;
use super::undivided;
use crate::copy::{slice, spread};
use crate::few::Few;
use crate::scratch::Scratch;
use crate::{DType, Dst, Pool, Src};
use std::ptr::NonNull;

/// The number of multiply-adds, including those with zeros, below which a convolution is not divided into
/// phases.
const WORTH: usize = 1 << 17;
/// The maximum number of phases.
const MAX_PHASES: usize = 64;

/// A spatial dimension of a phase.
#[derive(Clone, Copy, Debug)]
struct Phase {
    /// The first output position, the distance between positions and their number.
    outputs: (usize, usize, usize),
    /// The first kernel element, the distance between elements and their number.
    taps: (usize, usize, usize),
    /// The position of the input's first element relative to the first element of the first window.
    low: i64,
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Returns `true` if [`convolve`] is faster. Its results are the same except for the rounding of sums.
pub(super) fn fit(lhs: Src<'_>, rhs: Src<'_>, out: &[usize], spec: &ConvSpec) -> bool {
    let inputs = rhs.dims()[spec.kernel_input_feature];
    let depthwise = spec.feature_groups > 1 && inputs == 1;
    let work = || {
        let taps: usize = spec.kernel_spatial.iter().map(|d| rhs.dims()[*d]).product();
        out.iter().product::<usize>().saturating_mul(taps).saturating_mul(inputs)
    };
    let phases = || {
        spec.lhs_dilation
            .iter()
            .zip(&spec.strides)
            .try_fold(1usize, |n, (dilation, stride)| n.checked_mul(dilation / gcd(*stride, *dilation)))
    };
    spec.lhs_dilation.iter().any(|d| *d > 1)
        && !depthwise
        && !lhs.is_empty()
        && work() >= WORTH
        && phases().is_some_and(|n| n <= MAX_PHASES)
        && all_finite(rhs)
}

/// Returns `true` if no element is infinite or NaN, which would make a product with zero NaN. Returns `false`
/// for types that are not examined.
fn all_finite(array: Src<'_>) -> bool {
    fn all<T: crate::view::Element>(array: Src<'_>, finite: impl Fn(&T) -> bool) -> bool {
        array.as_slice::<T>().iter().all(finite)
    }
    match array.dtype() {
        DType::F32 => all::<f32>(array, |v| v.is_finite()),
        DType::F64 => all::<f64>(array, |v| v.is_finite()),
        DType::F16 => all::<half::f16>(array, |v| v.is_finite()),
        DType::BF16 => all::<half::bf16>(array, |v| v.is_finite()),
        DType::C64 => all::<[f32; 2]>(array, |v| v[0].is_finite() && v[1].is_finite()),
        DType::C128 => all::<[f64; 2]>(array, |v| v[0].is_finite() && v[1].is_finite()),
        other => !other.is_float(),
    }
}

/// Returns the phases of a spatial dimension, without those that contain no kernel element.
fn phases(spec: &ConvSpec, d: usize, size: usize, outputs: usize) -> Vec<Phase> {
    let (stride, dilation, spacing) = (spec.strides[d], spec.lhs_dilation[d], spec.rhs_dilation[d]);
    let period = dilation / gcd(stride, dilation);
    let every = dilation / gcd(spacing, dilation);
    // The position of element `k` of window `o`, in distances between the dilated input's elements.
    let place = |o: usize, k: usize| (o * stride + k * spacing) as i64 - spec.padding[d].0;
    (0..period.min(outputs))
        .filter_map(|o| {
            let k = (0..every.min(size)).find(|k| place(o, *k).rem_euclid(dilation as i64) == 0)?;
            Some(Phase {
                outputs: (o, period, (outputs - o).div_ceil(period)),
                taps: (k, every, (size - k).div_ceil(every)),
                low: -(place(o, k) / dilation as i64),
            })
        })
        .collect()
}

/// Computes [`convolution`](super::convolution) phase by phase.
pub(super) fn convolve(pool: &Pool, lhs: Src<'_>, rhs: Src<'_>, out: &mut Dst<'_>, spec: &ConvSpec) {
    let all: Vec<Vec<Phase>> = (0..spec.strides.len())
        .map(|d| phases(spec, d, rhs.dims()[spec.kernel_spatial[d]], out.dims()[spec.output_spatial[d]]))
        .collect();
    let seen = |phases: &Vec<Phase>| phases.iter().map(|p| p.outputs.2).sum::<usize>();
    if (0..all.len()).any(|d| seen(&all[d]) < out.dims()[spec.output_spatial[d]]) {
        // Some positions only see holes.
        out.bytes_mut().fill(0);
    }
    for number in 0..all.iter().map(Vec::len).product() {
        let mut rest = number;
        let mut phase: Few<Phase> = Few::new();
        for phases in &all {
            phase.push(phases[rest % phases.len()]);
            rest /= phases.len();
        }
        one(pool, lhs, rhs, out, spec, &phase);
    }
}

/// Computes the convolution of one phase.
fn one(pool: &Pool, lhs: Src<'_>, rhs: Src<'_>, out: &mut Dst<'_>, spec: &ConvSpec, phase: &[Phase]) {
    let mut mine = spec.clone();
    let (mut kernel_dims, mut out_dims) = (rhs.dims().to_vec(), out.dims().to_vec());
    let (mut kernel_start, mut kernel_step) = (vec![0; kernel_dims.len()], vec![1; kernel_dims.len()]);
    let (mut out_start, mut out_step) = (vec![0; out_dims.len()], vec![1; out_dims.len()]);
    for (d, p) in phase.iter().enumerate() {
        let (stride, dilation, spacing) = (spec.strides[d], spec.lhs_dilation[d], spec.rhs_dilation[d]);
        let ((first, period, outputs), (tap, every, taps)) = (p.outputs, p.taps);
        mine.lhs_dilation[d] = 1;
        mine.strides[d] = period * stride / dilation;
        mine.rhs_dilation[d] = every * spacing / dilation;
        let extent = (outputs - 1) * mine.strides[d] + (taps - 1) * mine.rhs_dilation[d] + 1;
        let input = lhs.dims()[spec.input_spatial[d]];
        mine.padding[d] = (p.low, extent as i64 - input as i64 - p.low);
        let (k, o) = (spec.kernel_spatial[d], spec.output_spatial[d]);
        let last = tap + every * (taps - 1);
        kernel_start[k] = if spec.reversal[d] { rhs.dims()[k] - 1 - last } else { tap };
        (kernel_step[k], kernel_dims[k]) = (every, taps);
        (out_start[o], out_step[o], out_dims[o]) = (first, period, outputs);
    }
    let (mut kernel, mut result) = (room(rhs.dtype(), &kernel_dims), room(out.dtype(), &out_dims));
    // SAFETY: the blocks were allocated for these arrays, and nothing else accesses them; the kernels write
    // all elements before they are read.
    unsafe {
        let (k, r) = (NonNull::new_unchecked(kernel.ptr()), NonNull::new_unchecked(result.ptr()));
        slice(pool, rhs, Dst::from_raw(k, rhs.dtype(), &kernel_dims), &kernel_start, &kernel_step);
        let part = Src::from_raw(k, rhs.dtype(), &kernel_dims);
        undivided::convolve(pool, lhs, part, &mut Dst::from_raw(r, out.dtype(), &out_dims), &mine);
        let part = Src::from_raw(r, out.dtype(), &out_dims);
        spread(pool, part, out.reborrow(), &out_start, &out_step);
    }
}

/// Allocates memory for an array.
fn room(dtype: DType, dims: &[usize]) -> Scratch {
    Scratch::new::<u8>(dims.iter().product::<usize>() * dtype.size())
}
