//! Convolutions as products of matrices ("im2col"): the patches of the input that the windows cover, with one
//! row per output position and one column per kernel element and input feature, times the kernel.

use super::patches::{Over, PatchLayout, Patches};
use super::spec::{Sizes, stride};
use crate::dot::{GemmShape, Index, Operand, Operands, Output, Visit, multiply, multiply_blocks};
use crate::number::Load;
use crate::view::SyncPtr;
use crate::{Dst, Pool, Src};

/// A convolution as a batch of matrix products.
pub(super) struct PatchProduct<'a> {
    sizes: &'a Sizes<'a>,
    /// The dimensions of the rows of the patches with their sizes, in the order of the output in memory.
    rows: Vec<(Over, usize)>,
    /// The number of row dimensions that belong to the batch of products.
    fixed: usize,
    /// The dimensions of the columns with their sizes and the strides of the kernel. They are in the order of
    /// the kernel in memory, so that the kernel has few strides.
    cols: Vec<(Over, usize, usize)>,
    /// `true` if the features of the output are adjacent: they are the columns of the products. Otherwise
    /// they are the rows, the dimensions inside them are the columns, and those outside belong to the batch.
    features_inside: bool,
}

/// The offsets in the kernel of the groups and members of the batch, of the columns of the patches, and of
/// the output features.
struct KernelIndex {
    batch: Index,
    depth: Index,
    feature: Index,
}

fn product(dims: &[(Over, usize)]) -> usize {
    dims.iter().map(|d| d.1).product()
}

impl<'a> PatchProduct<'a> {
    pub(super) fn new(sizes: &'a Sizes<'a>) -> Self {
        let Sizes { spec, kernel, output, .. } = *sizes;
        let mut cols = vec![(Over::Channel, sizes.inputs, stride(kernel, spec.kernel_input_feature))];
        let spatial = sizes.axes.iter().zip(&spec.kernel_spatial).enumerate();
        cols.extend(spatial.map(|(d, (axis, of))| (Over::Spatial(d), axis.size, stride(kernel, *of))));
        cols.sort_by_key(|c| std::cmp::Reverse(c.2));
        let over = |d: usize| {
            let over = spec.output_spatial.iter().position(|s| *s == d).map_or(Over::Channel, Over::Spatial);
            (over, output[d])
        };
        let features_inside = stride(output, spec.output_feature) == 1;
        Self {
            sizes,
            rows: (0..output.len()).filter(|d| *d != spec.output_feature).map(over).collect(),
            fixed: if features_inside { 0 } else { spec.output_feature },
            cols,
            features_inside,
        }
    }

    /// Convolves arrays of the sizes from which this was created.
    pub(super) fn convolve<U: Operands>(&self, pool: &Pool, lhs: Src<'_>, rhs: Src<'_>, out: &mut Dst<'_>) {
        let (output, shape, kernel) = (self.output::<U>(out), self.shape(), self.kernel_index());
        // Without padding and holes, and with kernels of one element, the input itself is the matrix.
        let is_pointwise = self.sizes.axes.iter().all(|a| a.size == 1 && a.is_unpadded() && a.low == 0);
        if is_pointwise {
            return self.multiply_in_place::<U>(pool, lhs, rhs, &kernel, &output);
        }
        let column_dims = self.cols.iter().map(|c| (c.0, c.1)).collect();
        let layout =
            PatchLayout::new(self.sizes, self.rows.clone(), self.fixed, column_dims, self.group_stride());
        let features_inside = self.features_inside;
        let (outer, inner) =
            if features_inside { (&kernel.depth, &kernel.feature) } else { (&kernel.feature, &kernel.depth) };
        U::with_operand(rhs, &kernel.batch, outer, inner, &mut |kernel| {
            U::visit(lhs, Call { pool, layout: &layout, kernel, features_inside, shape, output: &output });
        });
    }

    /// Multiplies the input and the kernel as matrices, without copying patches.
    fn multiply_in_place<U: Operands>(
        &self,
        pool: &Pool,
        lhs: Src<'_>,
        rhs: Src<'_>,
        kernel: &KernelIndex,
        output: &Output<U>,
    ) {
        let Sizes { spec, input, groups, inputs, .. } = *self.sizes;
        let dim = |(over, size): &(Over, usize)| match over {
            Over::Channel => (*size, stride(input, spec.input_batch)),
            Over::Spatial(d) => (*size, stride(input, spec.input_spatial[*d]) * self.sizes.axes[*d].stride),
        };
        let members = self.rows[..self.fixed].iter().map(dim);
        let batch = Index::new([(groups, self.group_stride())].into_iter().chain(members));
        let position = Index::new(self.rows[self.fixed..].iter().map(dim));
        let feature = Index::new([(inputs, stride(input, spec.input_feature))]);
        let (left, right) = if self.features_inside {
            ((lhs, &batch, &position, &feature), (rhs, &kernel.batch, &kernel.depth, &kernel.feature))
        } else {
            ((rhs, &kernel.batch, &kernel.feature, &kernel.depth), (lhs, &batch, &feature, &position))
        };
        let shape = self.shape();
        U::with_operand(left.0, left.1, left.2, left.3, &mut |a| {
            // SAFETY: the caller has exclusive access to the output, which describes its groups, members,
            // rows and columns.
            let multiply = &mut |b: &Operand<'_, U>| unsafe { multiply(pool, shape, a, b, output) };
            U::with_operand(right.0, right.1, right.2, right.3, multiply);
        });
    }

    /// Returns the sizes of the products.
    fn shape(&self) -> GemmShape {
        let (members, positions) = (product(&self.rows[..self.fixed]), product(&self.rows[self.fixed..]));
        let outputs = self.sizes.outputs;
        let (rows, cols) = if self.features_inside { (positions, outputs) } else { (outputs, positions) };
        let depth = self.cols.iter().map(|c| c.1).product();
        GemmShape { batch: self.sizes.groups * members, rows, cols, depth }
    }

    /// Returns the distance between the inputs of groups, in elements.
    fn group_stride(&self) -> usize {
        let Sizes { spec, input, output, inputs, .. } = *self.sizes;
        if spec.feature_groups > 1 {
            inputs * stride(input, spec.input_feature)
        } else if spec.batch_groups > 1 {
            output[spec.output_batch] * stride(input, spec.input_batch)
        } else {
            0
        }
    }

    fn kernel_index(&self) -> KernelIndex {
        let Sizes { spec, kernel, groups, outputs, .. } = *self.sizes;
        let feature_stride = stride(kernel, spec.kernel_output_feature);
        let members = product(&self.rows[..self.fixed]);
        KernelIndex {
            // All members of a group have the same kernel.
            batch: Index::new([(groups, outputs * feature_stride), (members, 0)]),
            depth: Index::new(self.cols.iter().map(|c| (c.1, c.2))),
            feature: Index::new([(outputs, feature_stride)]),
        }
    }

    fn output<U: Operands>(&self, out: &mut Dst<'_>) -> Output<U> {
        let Sizes { spec, kernel, output, groups, outputs, .. } = *self.sizes;
        let feature_stride = stride(output, spec.output_feature);
        let members = (0..self.fixed).map(|d| (output[d], stride(output, d)));
        Output {
            batch: Index::new([(groups, outputs * feature_stride)].into_iter().chain(members)),
            row: if self.features_inside { kernel[spec.kernel_output_feature] } else { feature_stride },
            store: U::store(out.dtype()),
            ptr: SyncPtr::new(out),
        }
    }
}

/// The product of patches and kernel for an input of any type.
struct Call<'a, U> {
    pool: &'a Pool,
    layout: &'a PatchLayout,
    kernel: &'a Operand<'a, U>,
    features_inside: bool,
    shape: GemmShape,
    output: &'a Output<U>,
}

impl<U: Operands> Visit<U> for Call<'_, U> {
    fn visit<T: Load<U>>(self, lhs: *const T) {
        let patches = Patches { ptr: lhs, layout: self.layout };
        // SAFETY: the layout was derived from the sizes of the input, which outlives the call. The caller has
        // exclusive access to the output, which describes its groups, members, rows and columns.
        unsafe {
            if self.features_inside {
                multiply_blocks(self.pool, self.shape, &patches, self.kernel.right(), self.output);
            } else {
                multiply_blocks(self.pool, self.shape, self.kernel.left(), &patches, self.output);
            }
        }
    }
}
