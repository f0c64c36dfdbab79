//! Depthwise convolutions: each feature has its own kernel, and the features of the arrays are adjacent.

use super::spec::{Sizes, stride};
use crate::dot::{Operands, Visit};
use crate::isa::{Isa, multiversion};
use crate::number::{Accumulator, Load, Store};
use crate::scratch::Scratch;
use crate::view::SyncPtr;
use crate::window::Axis;
use crate::{Dst, Pool, Src};

/// The number of features that are accumulated in registers at a time.
const LANES: usize = 64;
/// The number of multiply-adds of a chunk, which take some microseconds.
const CHUNK: usize = 1 << 17;

/// A depthwise convolution. Strides count elements; features are adjacent in all three arrays.
pub(super) struct Depthwise<'a> {
    /// The axes of the windows, one per spatial dimension.
    axes: &'a [Axis],
    /// `true` for each spatial dimension in which the kernel is reversed.
    reversal: &'a [bool],
    /// The input's strides, per spatial dimension.
    input: Vec<usize>,
    /// The kernel's strides, per spatial dimension.
    kernel: Vec<usize>,
    /// The output's strides, per spatial dimension.
    output: Vec<usize>,
    /// The size of the batch, and the strides of the batch dimensions of input and output.
    batch: (usize, usize, usize),
    /// The number of features.
    features: usize,
}

impl<'a> Depthwise<'a> {
    /// Returns the description of a convolution, if it is depthwise and its features are adjacent.
    pub(super) fn new(sizes: &'a Sizes<'_>) -> Option<Self> {
        let Sizes { spec, input, kernel, output, .. } = *sizes;
        let all_adjacent = [
            stride(input, spec.input_feature),
            stride(kernel, spec.kernel_output_feature),
            stride(output, spec.output_feature),
        ] == [1; 3];
        let is_depthwise = spec.feature_groups > 1 && sizes.inputs == 1 && sizes.outputs == 1;
        let strides = |dims: &[usize], of: &[usize]| of.iter().map(|d| stride(dims, *d)).collect();
        (is_depthwise && all_adjacent).then(|| Self {
            axes: &sizes.axes,
            reversal: &sizes.spec.reversal,
            input: strides(input, &spec.input_spatial),
            kernel: strides(kernel, &spec.kernel_spatial),
            output: strides(output, &spec.output_spatial),
            batch: (
                output[spec.output_batch],
                stride(input, spec.input_batch),
                stride(output, spec.output_batch),
            ),
            features: sizes.groups,
        })
    }

    /// Convolves arrays of the sizes from which this was created.
    pub(super) fn convolve<U: Operands>(&self, pool: &Pool, lhs: Src<'_>, rhs: Src<'_>, out: &mut Dst<'_>) {
        let (mut kernel, store) = (U::array_of(rhs), U::store(out.dtype()));
        let to = SyncPtr::new(out);
        U::visit(lhs, Call { pool, depthwise: self, kernel: kernel.ptr(), store, to });
    }

    /// Runs the convolution. Results are stored by `store`, if given.
    ///
    /// # Safety
    /// The arrays must be valid for the sizes and strides, and nothing else may access the output.
    unsafe fn run<U: Accumulator, T: Load<U>>(
        &self,
        pool: &Pool,
        lhs: *const T,
        rhs: *const U,
        out: SyncPtr,
        store: Option<Store<U>>,
    ) {
        let outputs: usize = self.axes.iter().map(|a| a.outputs).product();
        let taps: usize = self.axes.iter().map(|a| a.size).product();
        let total = self.batch.0 * outputs;
        let per_chunk = (CHUNK / (taps * self.features).max(1)).max(1);
        let (lhs, rhs) = (SyncPtr::from_raw(lhs.cast_mut().cast()), SyncPtr::from_raw(rhs.cast_mut().cast()));
        let body = |chunk: usize| {
            let mut seen = Vec::with_capacity(taps);
            let mut results = store.map(|_| Scratch::new::<U>(self.features));
            for i in chunk * per_chunk..total.min((chunk + 1) * per_chunk) {
                let to = self.taps(i / outputs, i % outputs, &mut seen);
                // SAFETY: the offsets are those of elements of the arrays, whose features are adjacent; only
                // this chunk writes these output positions.
                unsafe {
                    let (x, w) = (lhs.get().cast::<T>().cast_const(), rhs.get().cast::<U>().cast_const());
                    match (store, &mut results) {
                        (Some(store), Some(results)) => {
                            weigh::<U, T>(x, w, &seen, self.features, results.ptr());
                            (store.row)(results.ptr(), out.get().add(to * store.size), self.features);
                        }
                        _ => weigh::<U, T>(x, w, &seen, self.features, out.get().cast::<U>().add(to)),
                    }
                }
            }
        };
        let chunks = total.div_ceil(per_chunk);
        if chunks == 1 { body(0) } else { pool.run(chunks, &body) }
    }

    /// Collects the offsets in input and kernel of the elements that output position `o` combines, and
    /// returns the offset of the output position.
    fn taps(&self, batch: usize, mut o: usize, seen: &mut Vec<(usize, usize)>) -> usize {
        seen.clear();
        seen.push((batch * self.batch.1, 0));
        let mut to = batch * self.batch.2;
        for (d, axis) in self.axes.iter().enumerate().rev() {
            let here = o % axis.outputs;
            o /= axis.outputs;
            to += here * self.output[d];
            let before = seen.len();
            for k in 0..axis.size {
                let from = if self.reversal[d] { axis.size - 1 - k } else { k };
                if let Some(i) = axis.position(here, k) {
                    for j in 0..before {
                        let (x, w) = seen[j];
                        seen.push((x + i * self.input[d], w + from * self.kernel[d]));
                    }
                }
            }
            seen.drain(..before);
        }
        to
    }
}

/// The arguments of [`Depthwise::run`], for an input of any type.
struct Call<'a, U> {
    pool: &'a Pool,
    depthwise: &'a Depthwise<'a>,
    kernel: *const U,
    store: Option<Store<U>>,
    to: SyncPtr,
}

impl<U: Accumulator> Visit<U> for Call<'_, U> {
    fn visit<T: Load<U>>(self, lhs: *const T) {
        // SAFETY: `Depthwise::new` derived the strides from the sizes of the arrays, which outlive the call.
        unsafe { self.depthwise.run::<U, T>(self.pool, lhs, self.kernel, self.to, self.store) };
    }
}

multiversion! {
    /// Sums `x[tap] * w[tap]` over the taps, for each of `n` adjacent features.
    ///
    /// # Safety
    /// `n` elements must be readable at the offsets of each tap, and writable at `out`, which does not
    /// overlap them.
    unsafe fn weigh<U: Accumulator, T: Load<U>>(x: *const T, w: *const U, taps: &[(usize, usize)], n: usize, out: *mut U) = weigh_body
}

/// # Safety
/// See [`weigh`].
#[inline(always)]
unsafe fn weigh_body<I: Isa, U: Accumulator, T: Load<U>>(
    x: *const T,
    w: *const U,
    taps: &[(usize, usize)],
    n: usize,
    out: *mut U,
) {
    let fma = |acc: U, a: U, b: U| if I::FMA { acc.plus_product(a, b) } else { acc.plus(a.times(b)) };
    let mut i = 0;
    while i < n {
        let len = LANES.min(n - i);
        let mut acc = [U::ZERO; LANES];
        // SAFETY: `i + len` is at most `n`.
        unsafe {
            for (a, b) in taps {
                let (x, w) = (x.add(a + i), w.add(b + i));
                if len == LANES {
                    for (l, acc) in acc.iter_mut().enumerate() {
                        *acc = fma(*acc, (*x.add(l)).load(), *w.add(l));
                    }
                } else {
                    for (l, acc) in acc[..len].iter_mut().enumerate() {
                        *acc = fma(*acc, (*x.add(l)).load(), *w.add(l));
                    }
                }
            }
            std::ptr::copy_nonoverlapping(acc.as_ptr(), out.add(i), len);
        }
        i += len;
    }
}
