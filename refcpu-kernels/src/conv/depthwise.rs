//! Depthwise convolutions: each feature has its own kernel, and the features of the arrays are adjacent.

use crate::Pool;
use crate::isa::{Isa, multiversion};
use crate::number::{Accumulator, Load, Store};
use crate::scratch::Scratch;
use crate::view::SyncPtr;
use crate::window::Axis;

/// The number of features that are accumulated in registers at a time.
const LANES: usize = 64;
/// The number of multiply-adds of a chunk, which take some microseconds.
const CHUNK: usize = 1 << 17;

/// A depthwise convolution. Strides count elements; features are adjacent in all three arrays.
pub(super) struct Depthwise<'a> {
    /// The axes of the windows, one per spatial dimension.
    pub axes: &'a [Axis],
    /// `true` for each spatial dimension in which the kernel is reversed.
    pub reversal: &'a [bool],
    /// The input's strides, per spatial dimension.
    pub input: Vec<usize>,
    /// The kernel's strides, per spatial dimension.
    pub kernel: Vec<usize>,
    /// The output's strides, per spatial dimension.
    pub output: Vec<usize>,
    /// The size of the batch, and the strides of the batch dimensions of input and output.
    pub batch: (usize, usize, usize),
    /// The number of features.
    pub features: usize,
}

impl Depthwise<'_> {
    /// Runs the convolution. Results are stored by `store`, if given.
    ///
    /// # Safety
    /// The arrays must be valid for the sizes and strides, and nothing else may access the output.
    pub(super) unsafe fn run<U: Accumulator, T: Load<U>>(
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
