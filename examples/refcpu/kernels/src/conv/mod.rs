//! Convolutions of any rank: StableHLO's `convolution`.

use crate::number::{Accumulator, Number, with_number};
use crate::window::{Axis, WindowSpec};
use crate::{Dst, Pool, Src};

/// The dimension numbers, window and groups of a convolution.
///
/// The lists over spatial dimensions have one entry per spatial dimension, in the order in which the three arrays' spatial
/// dimensions correspond.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConvSpec {
    /// The batch dimension of the left operand.
    pub input_batch: usize,
    /// The feature dimension of the left operand.
    pub input_feature: usize,
    /// The spatial dimensions of the left operand.
    pub input_spatial: Vec<usize>,
    /// The input feature dimension of the kernel (the right operand).
    pub kernel_input_feature: usize,
    /// The output feature dimension of the kernel.
    pub kernel_output_feature: usize,
    /// The spatial dimensions of the kernel.
    pub kernel_spatial: Vec<usize>,
    /// The batch dimension of the result.
    pub output_batch: usize,
    /// The feature dimension of the result.
    pub output_feature: usize,
    /// The spatial dimensions of the result.
    pub output_spatial: Vec<usize>,
    /// Distance between windows, at least 1.
    pub strides: Vec<usize>,
    /// Padding before and after the (dilated) input; negative crops.
    pub padding: Vec<(i64, i64)>,
    /// Distance that the input's elements are spread to, at least 1; the holes between are zero.
    pub lhs_dilation: Vec<usize>,
    /// Distance that the kernel's elements are spread to, at least 1.
    pub rhs_dilation: Vec<usize>,
    /// True where the kernel is read backwards.
    pub reversal: Vec<bool>,
    /// Groups that input and output features are split into; each group of outputs sees its group of inputs only.
    pub feature_groups: usize,
    /// Groups that the batch and the output features are split into; each group of outputs sees its group of the batch only.
    pub batch_groups: usize,
}

impl ConvSpec {
    /// The dimensions of the result, or a message that says what does not fit the operands.
    ///
    /// # Errors
    /// Dimension numbers are not a permutation, lists have the wrong length, groups do not divide features or batch, a stride or
    /// dilation is zero, or a size overflows.
    pub fn output_dims(&self, lhs: &[usize], rhs: &[usize]) -> Result<Vec<usize>, String> {
        let spatial = self.input_spatial.len();
        let numbers = [
            ("input", self.input_batch, self.input_feature, &self.input_spatial, lhs.len()),
            (
                "kernel",
                self.kernel_input_feature,
                self.kernel_output_feature,
                &self.kernel_spatial,
                rhs.len(),
            ),
            ("output", self.output_batch, self.output_feature, &self.output_spatial, spatial + 2),
        ];
        for (name, a, b, rest, rank) in numbers {
            let mut all: Vec<usize> = [a, b].into_iter().chain(rest.iter().copied()).collect();
            all.sort_unstable();
            if rank != spatial + 2 || !all.iter().copied().eq(0..rank) {
                return Err(format!(
                    "{name} dimension numbers {a}, {b}, {rest:?} for an array of rank {rank}"
                ));
            }
        }
        let lens = [
            self.strides.len(),
            self.padding.len(),
            self.lhs_dilation.len(),
            self.rhs_dilation.len(),
            self.reversal.len(),
        ];
        if lens.iter().any(|n| *n != spatial) {
            return Err(format!("window lists of lengths {lens:?} for {spatial} spatial dimensions"));
        }
        let (batch, features) = (lhs[self.input_batch], lhs[self.input_feature]);
        let (inputs, outputs) = (rhs[self.kernel_input_feature], rhs[self.kernel_output_feature]);
        let (fg, bg) = (self.feature_groups, self.batch_groups);
        if fg == 0 || bg == 0 || (fg > 1 && bg > 1) {
            return Err(format!("{fg} feature groups and {bg} batch groups"));
        }
        if inputs.checked_mul(fg) != Some(features) || !outputs.is_multiple_of(fg) {
            return Err(format!(
                "{fg} feature groups of {inputs} for {features} input and {outputs} output features"
            ));
        }
        if !batch.is_multiple_of(bg) || !outputs.is_multiple_of(bg) {
            return Err(format!("{bg} batch groups for a batch of {batch} and {outputs} output features"));
        }
        let window = WindowSpec {
            size: self.kernel_spatial.iter().map(|d| rhs[*d]).collect(),
            strides: self.strides.clone(),
            base_dilations: self.lhs_dilation.clone(),
            window_dilations: self.rhs_dilation.clone(),
            padding: self.padding.clone(),
        };
        let base: Vec<usize> = self.input_spatial.iter().map(|d| lhs[*d]).collect();
        let mut out = vec![0; spatial + 2];
        for (d, n) in self.output_spatial.iter().zip(window.output_dims(&base)?) {
            out[*d] = n;
        }
        out[self.output_batch] = batch / bg;
        out[self.output_feature] = outputs;
        Ok(out)
    }
}

/// Convolves `lhs` with the kernel `rhs`, into `out`.
///
/// Operands and result may have different element types; accumulation is as in [`dot_general`](crate::dot::dot_general).
/// Scratch memory is bounded by a constant per thread plus the size of the kernel, except that operands of 4-, 6- and 8-bit
/// float types, and mixed types, are converted as a whole.
///
/// # Panics
/// If `spec` does not fit the operands, or `out` has other dimensions than [`ConvSpec::output_dims`].
pub fn convolution(pool: &Pool, lhs: Src<'_>, rhs: Src<'_>, out: Dst<'_>, spec: &ConvSpec) {
    let _ = pool;
    let expected = spec.output_dims(lhs.dims(), rhs.dims()).unwrap_or_else(|message| panic!("{message}"));
    assert_eq!(out.dims(), expected, "convolution of {:?} and {:?} by {spec:?}", lhs.dims(), rhs.dims());
    assert!(lhs.dtype() == out.dtype() && rhs.dtype() == out.dtype());
    with_number!(out.dtype(), T => simple::<T>(lhs, rhs, out, spec), small float => panic!("convolution of {:?}", lhs.dtype()))
}

fn simple<T: Number>(lhs: Src<'_>, rhs: Src<'_>, mut out: Dst<'_>, spec: &ConvSpec) {
    let n = spec.input_spatial.len();
    let axes: Vec<Axis> = (0..n)
        .map(|d| {
            Axis::new(
                lhs.dims()[spec.input_spatial[d]],
                rhs.dims()[spec.kernel_spatial[d]],
                spec.strides[d],
                spec.lhs_dilation[d],
                spec.rhs_dilation[d],
                spec.padding[d],
            )
            .expect("checked")
        })
        .collect();
    let flat = |dims: &[usize], at: &[usize]| dims.iter().zip(at).fold(0, |f, (n, i)| f * n + i);
    let (a, b) = (lhs.as_slice::<T>(), rhs.as_slice::<T>());
    let dims = out.dims().to_vec();
    let inputs = rhs.dims()[spec.kernel_input_feature];
    let outputs = rhs.dims()[spec.kernel_output_feature];
    let mut at = vec![0; n + 2];
    let taps: usize = axes.iter().map(|x| x.size).product();
    for o in out.as_mut_slice::<T>() {
        let feature = at[spec.output_feature];
        let fg = feature / (outputs / spec.feature_groups).max(1);
        let bg = feature / (outputs / spec.batch_groups).max(1);
        let (mut l, mut r) = (vec![0; n + 2], vec![0; n + 2]);
        l[spec.input_batch] = bg * dims[spec.output_batch] + at[spec.output_batch];
        r[spec.kernel_output_feature] = feature;
        let mut acc = T::Acc::ZERO;
        for tap in 0..taps {
            let mut rest = tap;
            let mut inside = true;
            for d in (0..n).rev() {
                let k = rest % axes[d].size;
                rest /= axes[d].size;
                r[spec.kernel_spatial[d]] = if spec.reversal[d] { axes[d].size - 1 - k } else { k };
                match axes[d].position(at[spec.output_spatial[d]], k) {
                    Some(i) => l[spec.input_spatial[d]] = i,
                    None => inside = false,
                }
            }
            if !inside {
                continue;
            }
            for i in 0..inputs {
                l[spec.input_feature] = fg * inputs + i;
                r[spec.kernel_input_feature] = i;
                acc = acc.plus(a[flat(lhs.dims(), &l)].widen().times(b[flat(rhs.dims(), &r)].widen()));
            }
        }
        *o = T::narrow(acc);
        for d in (0..n + 2).rev() {
            at[d] += 1;
            if at[d] < dims[d] {
                break;
            }
            at[d] = 0;
        }
    }
}
