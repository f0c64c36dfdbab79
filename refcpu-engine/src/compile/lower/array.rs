//! Lowers operations that move, combine, multiply and order elements.

use super::reducer::{Binary, binary, reducer, select};
use super::{CompileError, Result, Scope, to_usize, usizes};
use crate::compile::optimise;
use crate::graph::{Body, Graph, Op as Core, Reducer, Shape, ValueId, ops as core_ops};
use pjrt_stablehlo::ir::{
    ConvDimensionNumbers, FftType, Op, OpId, Operation, RngAlgorithm as Algorithm, TransposeKind, ops,
};
use refcpu_kernels::DType;
use refcpu_kernels::conv::ConvSpec;
use refcpu_kernels::dot::DotDims;
use refcpu_kernels::fft::FftKind;
use refcpu_kernels::linalg::{TransposeA, TriangularSolve};
use refcpu_kernels::rng::RngAlgorithm;
use refcpu_kernels::window::WindowSpec;

/// Converts `values`; an empty list means one in each of `rank` dimensions.
fn or_ones(values: &[i64], rank: usize) -> Result<Vec<usize>> {
    if values.is_empty() { Ok(vec![1; rank]) } else { usizes(values) }
}

/// Converts pairs of padding; an empty list means no padding.
fn padding(pairs: &[[i64; 2]], rank: usize) -> Vec<(i64, i64)> {
    if pairs.is_empty() { vec![(0, 0); rank] } else { pairs.iter().map(|p| (p[0], p[1])).collect() }
}

impl<'m> Scope<'m> {
    /// Lowers an operation of this file; returns `None` for other operations.
    pub(super) fn array_op(&mut self, id: OpId, op: &'m Operation) -> Result<Option<Vec<ValueId>>> {
        let families =
            [Self::movement_op, Self::reduction_op, Self::product_op, Self::order_op, Self::solver_op];
        for family in families {
            if let Some(values) = family(self, id, op)? {
                return Ok(Some(values));
            }
        }
        Ok(None)
    }

    /// Lowers operations that move elements.
    fn movement_op(&mut self, _id: OpId, op: &'m Operation) -> Result<Option<Vec<ValueId>>> {
        let one = |v: ValueId| Ok(Some(vec![v]));
        match &op.kind {
            Op::Reshape(_) => {
                let (x, shape) = (self.operand(op, 0)?, self.result_shape(op)?);
                one(self.b.add(Core::Reshape, &[x], shape))
            }
            Op::BroadcastInDim(o) => {
                let (x, shape) = (self.operand(op, 0)?, self.result_shape(op)?);
                one(self.broadcast_in_dim(x, &usizes(&o.broadcast_dimensions)?, shape))
            }
            Op::Broadcast(_) => {
                let (x, shape) = (self.operand(op, 0)?, self.result_shape(op)?);
                let skip = shape.rank() - self.shape(x).rank();
                let dims = (skip..shape.rank()).collect();
                one(self.b.add(Core::Broadcast(core_ops::Broadcast { dims }), &[x], shape))
            }
            Op::Transpose(o) => {
                let (x, shape) = (self.operand(op, 0)?, self.result_shape(op)?);
                one(self.b.add(
                    Core::Transpose(core_ops::Transpose { permutation: usizes(&o.permutation)? }),
                    &[x],
                    shape,
                ))
            }
            Op::Slice(o) => {
                let (x, shape) = (self.operand(op, 0)?, self.result_shape(op)?);
                let (start, stride) = (usizes(&o.start_indices)?, usizes(&o.strides)?);
                one(self.b.add(Core::Slice(core_ops::Slice { start, stride }), &[x], shape))
            }
            Op::Reverse(o) => {
                let (x, shape) = (self.operand(op, 0)?, self.result_shape(op)?);
                one(self.b.add(
                    Core::Reverse(core_ops::Reverse { dims: usizes(&o.dimensions)? }),
                    &[x],
                    shape,
                ))
            }
            Op::Pad(o) => {
                let (x, value, shape) = (self.operand(op, 0)?, self.operand(op, 1)?, self.result_shape(op)?);
                let pad = Core::Pad(core_ops::Pad {
                    low: o.edge_padding_low.to_vec(),
                    high: o.edge_padding_high.to_vec(),
                    interior: o.interior_padding.to_vec(),
                });
                one(self.b.add(pad, &[x, value], shape))
            }
            Op::Concatenate(o) => {
                let (inputs, shape) = (self.flat(&op.operands)?, self.result_shape(op)?);
                let dim = to_usize(o.dimension)?;
                let parts = inputs.iter().map(|v| 0..self.b.shape(*v).dims[dim]).collect();
                one(self.b.add(Core::Concatenate(core_ops::Concatenate { dim, parts }), &inputs, shape))
            }
            _ => Ok(None),
        }
    }

    /// Lowers reductions over dimensions and over windows.
    fn reduction_op(&mut self, id: OpId, op: &'m Operation) -> Result<Option<Vec<ValueId>>> {
        let one = |v: ValueId| Ok(Some(vec![v]));
        match &op.kind {
            Op::Reduce(o) => {
                let shapes = self.result_shapes(op)?;
                let operands = self.flat(&op.operands)?;
                let operands = self.promoted(operands, &shapes);
                let dims = usizes(&o.dimensions)?;
                let scalars: Vec<Shape> =
                    shapes.iter().chain(&shapes).map(|s| Shape::scalar(s.dtype)).collect();
                let block = self.region(id, 0)?;
                let body = self.scalar_body(block, &scalars)?;
                if self.declared(block)? != scalars {
                    // The elements are narrower than the accumulators, so accumulators must not be combined with each other.
                    return Ok(Some(optimise::reduce(&mut self.b, &body, &operands, &shapes, &dims)));
                }
                Ok(Some(self.reduce(operands, shapes, dims, body)))
            }
            Op::ReduceWindow(o) => self.reduce_window(id, op, o).map(Some),
            Op::SelectAndScatter(o) => one(self.select_and_scatter(id, op, o)?),
            _ => Ok(None),
        }
    }

    fn reduce_window(&mut self, id: OpId, op: &'m Operation, o: &ops::ReduceWindow) -> Result<Vec<ValueId>> {
        let shapes = self.result_shapes(op)?;
        let operands = self.flat(&op.operands)?;
        let operands = self.promoted(operands, &shapes);
        let rank = shapes.first().map_or(0, Shape::rank);
        let window = WindowSpec {
            size: usizes(&o.window_dimensions)?,
            strides: or_ones(&o.window_strides, rank)?,
            base_dilations: or_ones(&o.base_dilations, rank)?,
            window_dilations: or_ones(&o.window_dilations, rank)?,
            padding: padding(&o.padding, rank),
        };
        window.output_dims(&self.shape(operands[0]).dims).map_err(CompileError::invalid)?;
        let scalars: Vec<Shape> = shapes.iter().chain(&shapes).map(|s| Shape::scalar(s.dtype)).collect();
        let reducer = reducer(self.scalar_body(self.region(id, 0)?, &scalars)?);
        Ok(self.b.node(Core::ReduceWindow(core_ops::ReduceWindow { window, reducer }), operands, shapes))
    }

    fn select_and_scatter(
        &mut self,
        id: OpId,
        op: &'m Operation,
        o: &ops::SelectAndScatter,
    ) -> Result<ValueId> {
        let shape = self.result_shape(op)?;
        let operands = self.flat(&op.operands)?;
        let rank = shape.rank();
        let mut window = WindowSpec::new(or_ones(&o.window_dimensions, rank)?);
        window.strides = or_ones(&o.window_strides, rank)?;
        window.padding = padding(&o.padding, rank);
        window.output_dims(&shape.dims).map_err(CompileError::invalid)?;
        let scalars = vec![Shape::scalar(shape.dtype); 2];
        let selection = self.scalar_body(self.region(id, 0)?, &scalars)?;
        let scatter = self.scalar_body(self.region(id, 1)?, &scalars)?;
        let select = select(&selection).ok_or_else(|| {
            CompileError::unimplemented("select_and_scatter is supported only if its selection compares its two arguments with GE, GT, LE or LT")
        })?;
        let Some(Binary::Op(scatter)) = binary(&scatter) else {
            return Err(CompileError::unimplemented(
                "select_and_scatter is supported only if its scatter is a single operation",
            ));
        };
        let kind = Core::SelectAndScatter(core_ops::SelectAndScatter { window, select, scatter });
        Ok(self.b.node(kind, operands, vec![shape])[0])
    }

    /// Lowers products, convolutions and Fourier transforms.
    fn product_op(&mut self, _id: OpId, op: &'m Operation) -> Result<Option<Vec<ValueId>>> {
        let one = |v: ValueId| Ok(Some(vec![v]));
        match &op.kind {
            Op::DotGeneral(o) => {
                let (l, r, shape) = (self.operand(op, 0)?, self.operand(op, 1)?, self.result_shape(op)?);
                let n = &o.dot_dimension_numbers;
                let dims = DotDims {
                    lhs_batch: usizes(&n.lhs_batching_dimensions)?,
                    rhs_batch: usizes(&n.rhs_batching_dimensions)?,
                    lhs_contract: usizes(&n.lhs_contracting_dimensions)?,
                    rhs_contract: usizes(&n.rhs_contracting_dimensions)?,
                };
                one(self.dot(l, r, dims, shape)?)
            }
            Op::Convolution(o) => {
                let (l, r, shape) = (self.operand(op, 0)?, self.operand(op, 1)?, self.result_shape(op)?);
                let spatial = o.dimension_numbers.input_spatial_dimensions.len();
                let spec = conv_spec(
                    &o.dimension_numbers,
                    [&o.window_strides, &o.lhs_dilation, &o.rhs_dilation],
                    padding(&o.padding, spatial),
                    &o.window_reversal,
                    [o.feature_group_count, o.batch_group_count],
                )?;
                one(self.convolution(l, r, spec, shape)?)
            }
            Op::Fft(o) => {
                let (x, shape) = (self.operand(op, 0)?, self.result_shape(op)?);
                let kind = match o.fft_type {
                    FftType::Fft => FftKind::Fft,
                    FftType::Ifft => FftKind::Ifft,
                    FftType::Rfft => FftKind::Rfft,
                    FftType::Irfft => FftKind::Irfft,
                    other => {
                        return Err(CompileError::unimplemented(format!(
                            "the FFT type {other} is not supported"
                        )));
                    }
                };
                one(self.b.add(
                    Core::Fft(core_ops::Fft { kind, lengths: usizes(&o.fft_length)? }),
                    &[x],
                    shape,
                ))
            }
            _ => Ok(None),
        }
    }

    /// Lowers operations that order and map elements.
    fn order_op(&mut self, id: OpId, op: &'m Operation) -> Result<Option<Vec<ValueId>>> {
        match &op.kind {
            Op::Sort(o) => {
                let operands = self.flat(&op.operands)?;
                let shapes = self.result_shapes(op)?;
                let rank = shapes.first().map_or(0, Shape::rank) as i64;
                if rank == 0 {
                    return Ok(Some(operands));
                }
                let dim = to_usize(if o.dimension < 0 { o.dimension + rank } else { o.dimension })?;
                let scalars: Vec<Shape> =
                    shapes.iter().flat_map(|s| [Shape::scalar(s.dtype), Shape::scalar(s.dtype)]).collect();
                let comparator = self.scalar_body(self.region(id, 0)?, &scalars)?;
                let sort = Core::SortBy(core_ops::SortBy { dim, comparator: Body::new(comparator) });
                Ok(Some(self.b.node(sort, operands, shapes)))
            }
            Op::Map(_) => {
                let operands = self.flat(&op.operands)?;
                let shapes = self.result_shapes(op)?;
                let scalars: Vec<Shape> =
                    operands.iter().map(|v| Shape::scalar(self.b.shape(*v).dtype)).collect();
                let body = self.scalar_body(self.region(id, 0)?, &scalars)?;
                Ok(Some(self.b.node(Core::Map(Body::new(body)), operands, shapes)))
            }
            _ => Ok(None),
        }
    }

    /// Lowers matrix factorizations, linear systems and random numbers.
    fn solver_op(&mut self, _id: OpId, op: &'m Operation) -> Result<Option<Vec<ValueId>>> {
        let one = |v: ValueId| Ok(Some(vec![v]));
        match &op.kind {
            Op::Cholesky(o) => {
                let (x, shape) = (self.operand(op, 0)?, self.result_shape(op)?);
                one(self.decomposition(Core::Cholesky(core_ops::Cholesky { lower: o.lower }), &[x], shape))
            }
            Op::TriangularSolve(o) => {
                let (a, b, shape) = (self.operand(op, 0)?, self.operand(op, 1)?, self.result_shape(op)?);
                let transpose_a = match o.transpose_a {
                    TransposeKind::NoTranspose => TransposeA::NoTranspose,
                    TransposeKind::Transpose => TransposeA::Transpose,
                    TransposeKind::Adjoint => TransposeA::Adjoint,
                    other => {
                        return Err(CompileError::invalid(format!("unknown kind of transposition: {other}")));
                    }
                };
                let spec = TriangularSolve {
                    left_side: o.left_side,
                    lower: o.lower,
                    unit_diagonal: o.unit_diagonal,
                    transpose_a,
                };
                one(self.decomposition(Core::TriangularSolve(spec), &[a, b], shape))
            }
            Op::RngBitGenerator(o) => {
                let state = self.operand(op, 0)?;
                let shapes = self.result_shapes(op)?;
                let algorithm = match o.rng_algorithm {
                    Algorithm::ThreeFry => RngAlgorithm::ThreeFry,
                    Algorithm::Default | Algorithm::Philox => RngAlgorithm::Philox,
                    other => {
                        return Err(CompileError::unimplemented(format!(
                            "the random number generator {other} is not supported"
                        )));
                    }
                };
                Ok(Some(self.b.node(Core::RngBits(algorithm), vec![state], shapes)))
            }
            Op::Rng(o) => {
                let (a, b, shape) = (self.operand(op, 0)?, self.operand(op, 1)?, self.result_shape(op)?);
                let uniform = o.rng_distribution == pjrt_stablehlo::ir::RngDistribution::Uniform;
                let core = if uniform { Core::RngUniform } else { Core::RngNormal };
                one(self.b.add(core, &[a, b], shape))
            }
            _ => Ok(None),
        }
    }

    /// Adds a broadcast by StableHLO's rule, which stretches dimensions of size one.
    pub(super) fn broadcast_in_dim(&mut self, x: ValueId, map: &[usize], shape: Shape) -> ValueId {
        let from = self.shape(x);
        let kept: Vec<usize> = (0..from.rank()).filter(|d| from.dims[*d] == shape.dims[map[*d]]).collect();
        let x = if kept.len() == from.rank() {
            x
        } else {
            let dims: Vec<usize> = kept.iter().map(|d| from.dims[*d]).collect();
            self.b.reshape(x, &dims)
        };
        let dims = kept.iter().map(|d| map[*d]).collect();
        self.b.add(Core::Broadcast(core_ops::Broadcast { dims }), &[x], shape)
    }

    /// Converts operands to the element types that their regions combine. These are the types of the results, and may be wider
    /// than those of the operands. The operands are one or more groups with one operand for each result.
    pub(super) fn promoted(&mut self, operands: Vec<ValueId>, results: &[Shape]) -> Vec<ValueId> {
        operands.into_iter().zip(results.iter().cycle()).map(|(v, r)| self.b.convert(v, r.dtype)).collect()
    }

    /// Adds a reduction in its simplest form.
    pub(super) fn reduce(
        &mut self,
        operands: Vec<ValueId>,
        shapes: Vec<Shape>,
        dims: Vec<usize>,
        body: Graph,
    ) -> Vec<ValueId> {
        let reducer = reducer(body);
        if let (Reducer::Op(op), [shape]) = (&reducer, &shapes[..])
            && dims.is_empty()
        {
            // The initial value is combined with the single element.
            let init = self.b.spread(operands[1], &shape.dims);
            return vec![self.b.tile(core_ops::tile_op(*op), &[init, operands[0]])];
        }
        self.b.node(Core::Reduce(core_ops::Reduce { dims, reducer }), operands, shapes)
    }

    /// Converts the operands of a product to one type, since kernels multiply elements of one type. The type of the result
    /// represents the elements of both.
    fn of_one_type(&mut self, l: ValueId, r: ValueId, result: DType) -> (ValueId, ValueId) {
        if self.b.shape(l).dtype == self.b.shape(r).dtype {
            return (l, r);
        }
        (self.b.convert(l, result), self.b.convert(r, result))
    }

    /// Adds a product.
    pub(super) fn dot(&mut self, l: ValueId, r: ValueId, dims: DotDims, shape: Shape) -> Result<ValueId> {
        let expected =
            dims.output_dims(&self.b.shape(l).dims, &self.b.shape(r).dims).map_err(CompileError::invalid)?;
        if *shape.dims != *expected {
            return Err(CompileError::invalid(format!(
                "the result is {shape}, but its dimensions must be {expected:?}"
            )));
        }
        let (l, r) = self.of_one_type(l, r, shape.dtype);
        Ok(self.b.add(Core::Dot(dims), &[l, r], shape))
    }

    pub(super) fn convolution(
        &mut self,
        l: ValueId,
        r: ValueId,
        spec: ConvSpec,
        shape: Shape,
    ) -> Result<ValueId> {
        let expected =
            spec.output_dims(&self.b.shape(l).dims, &self.b.shape(r).dims).map_err(CompileError::invalid)?;
        if *shape.dims != *expected {
            return Err(CompileError::invalid(format!(
                "the result is {shape}, but its dimensions must be {expected:?}"
            )));
        }
        let (l, r) = self.of_one_type(l, r, shape.dtype);
        Ok(self.b.add(Core::Convolution(Box::new(spec)), &[l, r], shape))
    }

    /// Adds a matrix factorization or linear system. Floats of one byte are computed as f32.
    fn decomposition(&mut self, op: Core, operands: &[ValueId], shape: Shape) -> ValueId {
        let narrow = shape.dtype;
        if !narrow.is_float() || narrow.size() > 1 {
            return self.b.add(op, operands, shape);
        }
        let operands: Vec<ValueId> = operands.iter().map(|v| self.b.convert(*v, DType::F32)).collect();
        let wide = self.b.add(op, &operands, shape.with_dtype(DType::F32));
        self.b.convert(wide, narrow)
    }
}

/// Converts the attributes of a convolution: strides, dilation of the input and of the kernel, padding, reversal, and the group
/// counts of features and of the batch.
pub(super) fn conv_spec(
    n: &ConvDimensionNumbers,
    [strides, lhs_dilation, rhs_dilation]: [&[i64]; 3],
    padding: Vec<(i64, i64)>,
    reversal: &[bool],
    [feature_groups, batch_groups]: [i64; 2],
) -> Result<ConvSpec> {
    let spatial = n.input_spatial_dimensions.len();
    Ok(ConvSpec {
        input_batch: to_usize(n.input_batch_dimension)?,
        input_feature: to_usize(n.input_feature_dimension)?,
        input_spatial: usizes(&n.input_spatial_dimensions)?,
        kernel_input_feature: to_usize(n.kernel_input_feature_dimension)?,
        kernel_output_feature: to_usize(n.kernel_output_feature_dimension)?,
        kernel_spatial: usizes(&n.kernel_spatial_dimensions)?,
        output_batch: to_usize(n.output_batch_dimension)?,
        output_feature: to_usize(n.output_feature_dimension)?,
        output_spatial: usizes(&n.output_spatial_dimensions)?,
        strides: or_ones(strides, spatial)?,
        padding,
        lhs_dilation: or_ones(lhs_dilation, spatial)?,
        rhs_dilation: or_ones(rhs_dilation, spatial)?,
        reversal: if reversal.is_empty() { vec![false; spatial] } else { reversal.to_vec() },
        feature_groups: to_usize(feature_groups)?,
        batch_groups: to_usize(batch_groups)?,
    })
}
