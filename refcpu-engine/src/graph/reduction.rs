//! Reductions over dimensions and over windows.

use super::Shape;
use super::body::{Body, Reducer};
use super::check::{Check, counts, is_index, need, need_dims, same};
use super::operation::{Cost, Device, Operation, elements, two};
use refcpu_kernels::ReduceOp;
use refcpu_kernels::reduce::{self, ArgReduceOp};
use refcpu_kernels::tile::TileOp;
use refcpu_kernels::window::{self, SelectOp, WindowSpec};
use refcpu_kernels::{Dst, Src};

/// A reduction. The operands are the inputs, then as many initial values; there is one result for each input.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reduce {
    /// The reduced dimensions.
    pub dims: Vec<usize>,
    /// The function that combines elements.
    pub reducer: Reducer,
}

impl Operation for Reduce {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        inputs_and_initial_values(x, y)?;
        need_dims(&self.dims, x[0].rank(), "dims is not a list of distinct dimensions")?;
        let kept = (0..x[0].rank()).filter(|d| !self.dims.contains(d)).map(|d| x[0].dims[d]);
        results_have(y, &kept.collect::<Vec<_>>())?;
        self.reducer.verify(y)
    }

    fn cost(&self, x: &[&Shape], _y: &[&Shape]) -> Option<Cost> {
        Cost::flops(elements(x, 0))
    }

    fn bodies(&self) -> Vec<&Body> {
        self.reducer.body().into_iter().collect()
    }

    fn run(&self, device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
        reduce::reduce(device.pool, self.reducer.op(), r[0], r[1], w[0].reborrow(), &self.dims);
    }
}

/// The extreme value along a dimension and its index, which are two results.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArgReduce {
    /// The reduced dimension.
    pub dim: usize,
    /// The kind of extreme value: minimum or maximum.
    pub op: ArgReduceOp,
}

impl Operation for ArgReduce {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 1, 2)?;
        let dim = self.dim;
        need(
            dim < x[0].rank() && x[0].dims[dim] > 0 && !x[0].dtype.is_complex(),
            "the dimension is empty or not less than the rank, or the elements are complex",
        )?;
        let mut kept = x[0].dims.to_vec();
        kept.remove(dim);
        results_have(y, &kept)?;
        need(x[0].dtype == y[0].dtype, "the element types of the operand and the values differ")?;
        need(is_index(&Shape::scalar(y[1].dtype)), "the type of the indices is not an integer type")
    }

    fn cost(&self, x: &[&Shape], _y: &[&Shape]) -> Option<Cost> {
        Cost::flops(elements(x, 0))
    }

    fn run(&self, device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
        let (values, indices) = two(w);
        reduce::arg_reduce(device.pool, self.op, r[0], values, indices, self.dim);
    }
}

/// A reduction over windows. The operands are the inputs, then as many initial values; there is one result for each input.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReduceWindow {
    /// The windows.
    pub window: WindowSpec,
    /// The function that combines elements.
    pub reducer: Reducer,
}

impl Operation for ReduceWindow {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        inputs_and_initial_values(x, y)?;
        results_have(y, &self.window.output_dims(&x[0].dims)?)?;
        self.reducer.verify(y)
    }

    fn cost(&self, x: &[&Shape], y: &[&Shape]) -> Option<Cost> {
        of_windows(&self.window, x, y)
    }

    fn bodies(&self) -> Vec<&Body> {
        self.reducer.body().into_iter().collect()
    }

    fn run(&self, device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
        window::reduce_window(device.pool, self.reducer.op(), r[0], r[1], w[0].reborrow(), &self.window);
    }
}

/// A `select_and_scatter` that the kernels implement. The operands are the array, the source and the initial value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SelectAndScatter {
    /// The windows.
    pub window: WindowSpec,
    /// The selected element of a window.
    pub select: SelectOp,
    /// The operation that combines sources.
    pub scatter: ReduceOp,
}

impl Operation for SelectAndScatter {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 3, 1)?;
        same(x[0], y[0])?;
        same(x[2], &Shape::scalar(y[0].dtype))?;
        let (window, dtype) = (&self.window, y[0].dtype);
        let expected = window.output_dims(&x[0].dims)?;
        need(
            x[1].dtype == dtype && *x[1].dims == *expected,
            "the dimensions or the type of the source do not fit the windows",
        )?;
        let plain = window.base_dilations.iter().chain(&window.window_dilations).all(|d| *d == 1);
        need(
            plain && self.scatter.supports(dtype) && !dtype.is_complex(),
            "the windows are dilated, or the element type is not supported",
        )
    }

    fn cost(&self, x: &[&Shape], y: &[&Shape]) -> Option<Cost> {
        of_windows(&self.window, x, y)
    }

    fn run(&self, device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
        let (select, scatter, out) = (self.select, self.scatter, w[0].reborrow());
        window::select_and_scatter(device.pool, select, scatter, r[0], r[1], r[2], out, &self.window);
    }
}

/// Returns the elementwise operation that combines two arrays in the same way as a reduction combines elements.
pub(crate) fn tile_op(op: ReduceOp) -> TileOp {
    match op {
        ReduceOp::Add => TileOp::Add,
        ReduceOp::Multiply => TileOp::Multiply,
        ReduceOp::Minimum => TileOp::Minimum,
        ReduceOp::Maximum => TileOp::Maximum,
        ReduceOp::And => TileOp::And,
        ReduceOp::Or => TileOp::Or,
        ReduceOp::Xor => TileOp::Xor,
    }
}

/// Checks the operands of a reduction: as many inputs as results, with equal dimensions and the results' element types, then as
/// many initial values.
fn inputs_and_initial_values(x: &[&Shape], y: &[&Shape]) -> Check {
    let n = y.len();
    need(n > 0 && x.len() == 2 * n, "the number of operands is not twice the number of results")?;
    for (i, result) in y.iter().enumerate() {
        need(
            x[i].dims == x[0].dims && x[i].dtype == result.dtype,
            "the inputs differ in dimensions, or an input and its result differ in element type",
        )?;
        same(x[n + i], &Shape::scalar(result.dtype))?;
    }
    Ok(())
}

fn results_have(y: &[&Shape], dims: &[usize]) -> Check {
    need(
        y.iter().all(|s| *s.dims == *dims),
        "the dimensions of the results do not follow from those of the operands",
    )
}

fn of_windows(window: &WindowSpec, x: &[&Shape], y: &[&Shape]) -> Option<Cost> {
    Cost::flops(elements(y, 0).max(elements(x, 0)) * window.size.iter().product::<usize>() as f64)
}
