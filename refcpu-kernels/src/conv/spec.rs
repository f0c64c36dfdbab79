//! The description of a convolution, and the sizes that follow from it.

use crate::window::{Axis, WindowSpec};

/// The dimension numbers, window and groups of a convolution.
///
/// Each list over spatial dimensions has one entry per spatial dimension, in the order in which the spatial
/// dimensions of the three arrays correspond.
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
    /// The distance between windows, at least 1.
    pub strides: Vec<usize>,
    /// The padding before and after the (dilated) input. Negative padding crops.
    pub padding: Vec<(i64, i64)>,
    /// The distance between elements of the dilated input, at least 1. The holes between them are zero.
    pub lhs_dilation: Vec<usize>,
    /// The distance between elements of the dilated kernel, at least 1.
    pub rhs_dilation: Vec<usize>,
    /// `true` for the dimensions in which the kernel is reversed.
    pub reversal: Vec<bool>,
    /// The number of groups into which input and output features are divided. Each group of output features
    /// depends only on its group of input features.
    pub feature_groups: usize,
    /// The number of groups into which the batch and the output features are divided. Each group of output
    /// features depends only on its group of the batch.
    pub batch_groups: usize,
}

impl ConvSpec {
    /// Returns the windows over the spatial dimensions.
    pub(super) fn window(&self, rhs: &[usize]) -> WindowSpec {
        WindowSpec {
            size: self.kernel_spatial.iter().map(|d| rhs[*d]).collect(),
            strides: self.strides.clone(),
            base_dilations: self.lhs_dilation.clone(),
            window_dilations: self.rhs_dilation.clone(),
            padding: self.padding.clone(),
        }
    }

    /// Returns the dimensions of the result.
    ///
    /// # Errors
    /// Returns an error if dimension numbers are not a permutation, a list has the wrong length, groups do
    /// not divide features or batch, a stride or dilation is zero, or a size overflows.
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
                    "the {name} dimension numbers {a}, {b}, {rest:?} are not a permutation of the {rank} dimensions"
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
            return Err(format!(
                "the lists of the window have lengths {lens:?}; expected {spatial}, the number of spatial dimensions"
            ));
        }
        self.check_groups(lhs, rhs)?;
        let window = self.window(rhs);
        let base: Vec<usize> = self.input_spatial.iter().map(|d| lhs[*d]).collect();
        let mut out = vec![0; spatial + 2];
        for (d, n) in self.output_spatial.iter().zip(window.output_dims(&base)?) {
            out[*d] = n;
        }
        out[self.output_batch] = lhs[self.input_batch] / self.batch_groups;
        out[self.output_feature] = rhs[self.kernel_output_feature];
        Ok(out)
    }

    /// Returns an error if the groups do not divide the features or the batch.
    fn check_groups(&self, lhs: &[usize], rhs: &[usize]) -> Result<(), String> {
        let (batch, features) = (lhs[self.input_batch], lhs[self.input_feature]);
        let (inputs, outputs) = (rhs[self.kernel_input_feature], rhs[self.kernel_output_feature]);
        let (fg, bg) = (self.feature_groups, self.batch_groups);
        if fg == 0 || bg == 0 || (fg > 1 && bg > 1) {
            return Err(format!(
                "{fg} feature groups and {bg} batch groups; expected positive numbers, one of which is 1"
            ));
        }
        if inputs.checked_mul(fg) != Some(features) || !outputs.is_multiple_of(fg) {
            return Err(format!(
                "{fg} feature groups of {inputs} features must contain the {features} input features, and divide the \
                 {outputs} output features"
            ));
        }
        if !batch.is_multiple_of(bg) || !outputs.is_multiple_of(bg) {
            return Err(format!(
                "{bg} batch groups must divide the batch ({batch}) and the output features ({outputs})"
            ));
        }
        Ok(())
    }
}

/// The sizes of the arrays of a convolution.
pub(super) struct Sizes<'a> {
    pub spec: &'a ConvSpec,
    /// The dimensions of the left operand.
    pub input: &'a [usize],
    /// The dimensions of the right operand.
    pub kernel: &'a [usize],
    /// The dimensions of the result.
    pub output: &'a [usize],
    /// The axes of the windows, one per spatial dimension.
    pub axes: Vec<Axis>,
    /// The number of groups, of features or of the batch.
    pub groups: usize,
    /// The number of input features per group.
    pub inputs: usize,
    /// The number of output features per group.
    pub outputs: usize,
}

impl<'a> Sizes<'a> {
    pub(super) fn new(
        spec: &'a ConvSpec,
        input: &'a [usize],
        kernel: &'a [usize],
        output: &'a [usize],
    ) -> Self {
        let spatial: Vec<usize> = spec.input_spatial.iter().map(|d| input[*d]).collect();
        let groups = spec.feature_groups.max(spec.batch_groups);
        Self {
            spec,
            input,
            kernel,
            output,
            axes: spec.window(kernel).axes(&spatial),
            groups,
            inputs: kernel[spec.kernel_input_feature],
            outputs: kernel[spec.kernel_output_feature] / groups,
        }
    }
}

/// Returns the stride of a dimension of a dense array.
pub(super) fn stride(dims: &[usize], d: usize) -> usize {
    dims[d + 1..].iter().product()
}
