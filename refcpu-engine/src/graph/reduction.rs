//! Reductions of dimensions and of windows.

use super::Shape;
use super::body::{Body, Reducer};
use super::check::{Check, counts, is_index, need, need_dims, same};
use super::operation::{Cost, Device, Operation, elements, two};
use refcpu_kernels::reduce::{self, ArgReduceOp, ReduceOp};
use refcpu_kernels::tile::TileOp;
use refcpu_kernels::window::{self, SelectOp, WindowSpec};
use refcpu_kernels::{Dst, Src};

/// Inputs, then initial values; as many results.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reduce {
    /// The dimensions that go.
    pub dims: Vec<usize>,
    /// How elements combine.
    pub reducer: Reducer,
}

impl Operation for Reduce {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        inputs_and_initial_values(x, y)?;
        need_dims(&self.dims, x[0].rank(), "no such dimensions")?;
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

/// The extreme value along a dimension and its index: two results.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArgReduce {
    /// The dimension that goes.
    pub dim: usize,
    /// Which extreme.
    pub op: ArgReduceOp,
}

impl Operation for ArgReduce {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 1, 2)?;
        let dim = self.dim;
        need(dim < x[0].rank() && x[0].dims[dim] > 0 && !x[0].dtype.is_complex(), "no such dimension")?;
        let mut kept = x[0].dims.to_vec();
        kept.remove(dim);
        results_have(y, &kept)?;
        need(x[0].dtype == y[0].dtype, "element types differ")?;
        need(is_index(&Shape::scalar(y[1].dtype)), "indices are integers")
    }

    fn cost(&self, x: &[&Shape], _y: &[&Shape]) -> Option<Cost> {
        Cost::flops(elements(x, 0))
    }

    fn run(&self, device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
        let (values, indices) = two(w);
        reduce::arg_reduce(device.pool, self.op, r[0], values, indices, self.dim);
    }
}

/// Inputs, then initial values; as many results.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReduceWindow {
    /// The windows.
    pub window: WindowSpec,
    /// How elements combine.
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

/// Operand, source, initial value; selection and scatter that kernels know.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SelectAndScatter {
    /// The windows.
    pub window: WindowSpec,
    /// Which element of a window is selected.
    pub select: SelectOp,
    /// How sources combine.
    pub scatter: ReduceOp,
}

impl Operation for SelectAndScatter {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 3, 1)?;
        same(x[0], y[0])?;
        same(x[2], &Shape::scalar(y[0].dtype))?;
        let (window, dtype) = (&self.window, y[0].dtype);
        let expected = window.output_dims(&x[0].dims)?;
        need(x[1].dtype == dtype && *x[1].dims == *expected, "one source for each window")?;
        let plain = window.base_dilations.iter().chain(&window.window_dilations).all(|d| *d == 1);
        need(plain && self.scatter.supports(dtype) && !dtype.is_complex(), "not for this type or window")
    }

    fn cost(&self, x: &[&Shape], y: &[&Shape]) -> Option<Cost> {
        of_windows(&self.window, x, y)
    }

    fn run(&self, device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
        let (select, scatter, out) = (self.select, self.scatter, w[0].reborrow());
        window::select_and_scatter(device.pool, select, scatter, r[0], r[1], r[2], out, &self.window);
    }
}

/// The elementwise operation that combines two arrays as a reduction combines elements.
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

/// As many inputs of the same dimensions as results, of their element types; then as many initial values.
fn inputs_and_initial_values(x: &[&Shape], y: &[&Shape]) -> Check {
    let n = y.len();
    need(n > 0 && x.len() == 2 * n, "as many initial values as inputs")?;
    for (i, result) in y.iter().enumerate() {
        need(x[i].dims == x[0].dims && x[i].dtype == result.dtype, "inputs of other sizes or types")?;
        same(x[n + i], &Shape::scalar(result.dtype))?;
    }
    Ok(())
}

fn results_have(y: &[&Shape], dims: &[usize]) -> Check {
    need(y.iter().all(|s| *s.dims == *dims), "sizes differ")
}

fn of_windows(window: &WindowSpec, x: &[&Shape], y: &[&Shape]) -> Option<Cost> {
    Cost::flops(elements(y, 0).max(elements(x, 0)) * window.size.iter().product::<usize>() as f64)
}
