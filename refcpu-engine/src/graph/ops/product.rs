//! Dot products and convolutions.

use crate::graph::Shape;
use crate::graph::operation::{Check, Cost, Device, Operation, counts, elements, need};
use refcpu_kernels::conv::{ConvSpec, convolution};
use refcpu_kernels::dot::{DotDims, dot_general};
use refcpu_kernels::{Dst, Src};

impl Operation for DotDims {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 2, 1)?;
        let expected = self.output_dims(&x[0].dims, &x[1].dims)?;
        need(*y[0].dims == *expected, "the dimensions of the result do not follow from those of the operands")
    }

    fn cost(&self, x: &[&Shape], y: &[&Shape]) -> Option<Cost> {
        let depth: usize = self.lhs_contract.iter().map(|d| x[0].dims[*d]).product();
        Some(Cost { products: 2.0 * elements(y, 0) * depth as f64, ..Cost::default() })
    }

    fn run(&self, device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
        dot_general(device.pool, r[0], r[1], w[0].reborrow(), self);
    }
}

impl Operation for ConvSpec {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 2, 1)?;
        let expected = self.output_dims(&x[0].dims, &x[1].dims)?;
        need(*y[0].dims == *expected, "the dimensions of the result do not follow from those of the operands")
    }

    fn cost(&self, x: &[&Shape], y: &[&Shape]) -> Option<Cost> {
        let features = x[1].dims[self.kernel_output_feature].max(1);
        let per_output = elements(x, 1) / features as f64;
        Some(Cost { products: 2.0 * elements(y, 0) * per_output, ..Cost::default() })
    }

    fn run(&self, device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
        convolution(device.pool, r[0], r[1], w[0].reborrow(), self);
    }
}
