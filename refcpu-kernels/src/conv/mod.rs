//! Convolutions of any rank: StableHLO's `convolution`.

mod depthwise;
mod patches;
mod phases;
#[cfg(test)]
mod tests;

use self::depthwise::Depthwise;
use self::patches::{Geometry, Over, Patches};
use crate::dot::{
    Index, Operand, Operands, Output, Shape, Visit, compute_type, multiply, multiply_blocks, with_compute,
};
use crate::number::{Accumulator, Load, Store};
use crate::view::SyncPtr;
use crate::window::WindowSpec;
use crate::{Dst, Pool, Src};

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
    fn window(&self, rhs: &[usize]) -> WindowSpec {
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
        let window = self.window(rhs);
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

/// Convolves `lhs` with the kernel `rhs`, and writes the result to `out`.
///
/// Operands and result may have different element types; accumulation is as in
/// [`dot_general`](crate::dot::dot_general). Scratch memory is bounded by some megabytes, plus the size of
/// the kernel, plus one table entry per output position and kernel element of each single dimension. Operands
/// of 4-, 6- and 8-bit float types, and of unusual combinations of types, are converted as a whole. A dilated
/// input needs additional scratch memory of the size of the part of the result that depends on the same
/// kernel elements, because each such part is computed separately.
///
/// # Panics
/// Panics if `spec` does not match the operands, if the dimensions of `out` are not
/// [`ConvSpec::output_dims`], or if the types are not supported (see
/// [`dot_general`](crate::dot::dot_general)).
pub fn convolution(pool: &Pool, lhs: Src<'_>, rhs: Src<'_>, mut out: Dst<'_>, spec: &ConvSpec) {
    let expected = spec.output_dims(lhs.dims(), rhs.dims()).unwrap_or_else(|message| panic!("{message}"));
    assert_eq!(out.dims(), expected, "convolution of {:?} and {:?} by {spec:?}", lhs.dims(), rhs.dims());
    if out.is_empty() {
        return;
    }
    if phases::fit(lhs, rhs, out.dims(), spec) {
        return phases::convolve(pool, lhs, rhs, &mut out, spec);
    }
    whole(pool, lhs, rhs, &mut out, spec);
}

/// Computes [`convolution`] including the holes, for a result that has elements.
fn whole(pool: &Pool, lhs: Src<'_>, rhs: Src<'_>, out: &mut Dst<'_>, spec: &ConvSpec) {
    with_compute!(compute_type(lhs.dtype(), rhs.dtype(), out.dtype()), U => typed::<U>(pool, lhs, rhs, out, spec))
}

/// Returns the stride of a dimension of a dense array.
fn stride(dims: &[usize], d: usize) -> usize {
    dims[d + 1..].iter().product()
}

fn typed<U: Operands>(pool: &Pool, lhs: Src<'_>, rhs: Src<'_>, out: &mut Dst<'_>, spec: &ConvSpec) {
    let axes =
        spec.window(rhs.dims()).axes(&spec.input_spatial.iter().map(|d| lhs.dims()[*d]).collect::<Vec<_>>());
    let (x, w, y) = (lhs.dims(), rhs.dims(), out.dims().to_vec());
    let groups = spec.feature_groups.max(spec.batch_groups);
    let inputs = w[spec.kernel_input_feature];
    let outputs = w[spec.kernel_output_feature] / groups;
    let all_adjacent = [
        stride(x, spec.input_feature),
        stride(w, spec.kernel_output_feature),
        stride(&y, spec.output_feature),
    ] == [1; 3];
    if spec.feature_groups > 1 && inputs == 1 && outputs == 1 && all_adjacent {
        let depthwise = Depthwise {
            axes: &axes,
            reversal: &spec.reversal,
            input: spec.input_spatial.iter().map(|d| stride(x, *d)).collect(),
            kernel: spec.kernel_spatial.iter().map(|d| stride(w, *d)).collect(),
            output: spec.output_spatial.iter().map(|d| stride(&y, *d)).collect(),
            batch: (y[spec.output_batch], stride(x, spec.input_batch), stride(&y, spec.output_batch)),
            features: groups,
        };
        let (mut kernel, store, to) = (U::array_of(rhs), U::store(out.dtype()), SyncPtr::new(out));
        let visit = Weigh { pool, depthwise: &depthwise, kernel: kernel.ptr(), store, to };
        U::visit(lhs, visit);
        return;
    }
    // The columns of the input's matrix are in the order of the kernel in memory, so that the kernel has few
    // strides.
    let mut cols = vec![(Over::Channel, inputs, stride(w, spec.kernel_input_feature))];
    cols.extend(
        axes.iter().enumerate().map(|(d, a)| (Over::Spatial(d), a.size, stride(w, spec.kernel_spatial[d]))),
    );
    cols.sort_by_key(|c| std::cmp::Reverse(c.2));
    let depth: usize = cols.iter().map(|c| c.1).product();
    // The rows are in the order of the output in memory. The dimensions inside the output's feature dimension
    // are the columns of the product, and those outside are its batch. If there are none inside, all of them
    // are rows and the features are columns.
    let order: Vec<usize> = (0..y.len()).filter(|d| *d != spec.output_feature).collect();
    let over = |d: &usize| {
        let over = spec.output_spatial.iter().position(|s| s == d).map_or(Over::Channel, Over::Spatial);
        (over, y[*d])
    };
    let rows: Vec<(Over, usize)> = order.iter().map(over).collect();
    let features_inside = stride(&y, spec.output_feature) == 1;
    let fixed = if features_inside { 0 } else { order.iter().filter(|d| **d < spec.output_feature).count() };
    let positions: usize = rows[fixed..].iter().map(|r| r.1).product();
    let members: usize = rows[..fixed].iter().map(|r| r.1).product();
    let group_stride = match (spec.feature_groups > 1, spec.batch_groups > 1) {
        (true, _) => inputs * stride(x, spec.input_feature),
        (_, true) => y[spec.output_batch] * stride(x, spec.input_batch),
        _ => 0,
    };
    let batch = groups * members;
    let out_feature = stride(&y, spec.output_feature);
    let member_strides = order[..fixed].iter().map(|d| (y[*d], stride(&y, *d)));
    let out_batch = Index::new([(groups, outputs * out_feature)].into_iter().chain(member_strides));
    // All members of a group have the same kernel.
    let kernel_batch = Index::new([(groups, outputs * stride(w, spec.kernel_output_feature)), (members, 0)]);
    let kernel_depth = Index::new(cols.iter().map(|c| (c.1, c.2)));
    let kernel_feature = Index::new([(outputs, stride(w, spec.kernel_output_feature))]);
    let column_dims: Vec<(Over, usize)> = cols.iter().map(|c| (c.0, c.1)).collect();
    let store = U::store(out.dtype());
    let ptr = SyncPtr::new(out);
    let output = Output {
        ptr,
        batch: out_batch,
        row: if features_inside { w[spec.kernel_output_feature] } else { out_feature },
        store,
    };
    // Without padding and holes, and with kernels of one element, the input itself is the matrix.
    let pointwise = axes.iter().all(|a| a.size == 1 && a.is_unpadded() && a.low == 0);
    if pointwise {
        let dim = |(over, size): &(Over, usize)| match over {
            Over::Channel => (*size, stride(x, spec.input_batch)),
            Over::Spatial(d) => (*size, stride(x, spec.input_spatial[*d]) * axes[*d].stride),
        };
        let member_dims = rows[..fixed].iter().map(dim);
        let input_batch = Index::new([(groups, group_stride)].into_iter().chain(member_dims));
        let position = Index::new(rows[fixed..].iter().map(dim));
        let feature = Index::new([(inputs, stride(x, spec.input_feature))]);
        let shape = |rows, cols| Shape { batch, rows, cols, depth };
        // SAFETY: this call has exclusive access to `out`, and the output describes its groups, members, rows
        // and columns.
        let product = |shape, a: &Operand<'_, U>, b: &Operand<'_, U>| unsafe {
            multiply(pool, shape, a, b, &output);
        };
        if features_inside {
            let shape = shape(positions, outputs);
            U::with_operand(lhs, &input_batch, &position, &feature, &mut |a| {
                let product = &mut |b: &Operand<'_, U>| product(shape, a, b);
                U::with_operand(rhs, &kernel_batch, &kernel_depth, &kernel_feature, product);
            });
        } else {
            let shape = shape(outputs, positions);
            U::with_operand(rhs, &kernel_batch, &kernel_feature, &kernel_depth, &mut |a| {
                let product = &mut |b: &Operand<'_, U>| product(shape, a, b);
                U::with_operand(lhs, &input_batch, &feature, &position, product);
            });
        }
        return;
    }
    let geometry = Geometry::new(spec, &axes, x, rows, fixed, column_dims, group_stride);
    let (outer, inner) =
        if features_inside { (kernel_depth, kernel_feature) } else { (kernel_feature, kernel_depth) };
    let (rows, cols) = if features_inside { (positions, outputs) } else { (outputs, positions) };
    let shape = Shape { batch, rows, cols, depth };
    U::with_operand(rhs, &kernel_batch, &outer, &inner, &mut |kernel| {
        U::visit(lhs, Product { pool, geometry: &geometry, kernel, features_inside, shape, output: &output });
    });
}

/// The arguments of [`Depthwise::run`], for an input of any type.
struct Weigh<'a, U> {
    pool: &'a Pool,
    depthwise: &'a Depthwise<'a>,
    kernel: *const U,
    store: Option<Store<U>>,
    to: SyncPtr,
}

impl<U: Accumulator> Visit<U> for Weigh<'_, U> {
    fn visit<T: Load<U>>(self, lhs: *const T) {
        // SAFETY: `typed` derived the description from the shapes of the arrays, which outlive the call.
        unsafe { self.depthwise.run::<U, T>(self.pool, lhs, self.kernel, self.to, self.store) };
    }
}

/// The product of patches and kernel for an input of any type.
struct Product<'a, U> {
    pool: &'a Pool,
    geometry: &'a Geometry,
    kernel: &'a Operand<'a, U>,
    features_inside: bool,
    shape: Shape,
    output: &'a Output<U>,
}

impl<U: Operands> Visit<U> for Product<'_, U> {
    fn visit<T: Load<U>>(self, lhs: *const T) {
        let patches = Patches { ptr: lhs, geometry: self.geometry };
        // SAFETY: as for `Weigh`; this call has exclusive access to `out`, and the output describes its
        // groups, members, rows and columns.
        unsafe {
            if self.features_inside {
                multiply_blocks(self.pool, self.shape, &patches, self.kernel.right(), self.output);
            } else {
                multiply_blocks(self.pool, self.shape, self.kernel.left(), &patches, self.output);
            }
        }
    }
}
