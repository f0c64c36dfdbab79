//! Sliding windows: `reduce_window` and `select_and_scatter`.

mod spec;

pub(crate) use spec::Axis;
pub use spec::WindowSpec;

use crate::number::{Accumulator, Monoid, Number, with_number};
use crate::reduce::{ReduceOp, with_monoid};
use crate::{Dst, Pool, Src};

/// Reduces every window of `input` (StableHLO's `reduce_window` with one operand and a body of one operation).
///
/// `init` has rank 0; `input`, `init` and `out` have one type. Padding and the holes of base dilation count as `init`,
/// which is also combined once into every result. 16-bit and smaller floats accumulate in f32 and are rounded once.
/// Windows that cover everything before (or after) each position, as cumulative sums are written, take time linear in
/// the size of the input.
///
/// # Panics
/// If a shape or type does not fit, `spec` is not valid for the input, or the operation is not defined on the type.
pub fn reduce_window(
    pool: &Pool,
    op: ReduceOp,
    input: Src<'_>,
    init: Src<'_>,
    out: Dst<'_>,
    spec: &WindowSpec,
) {
    let _ = pool;
    let expected = spec.output_dims(input.dims()).unwrap_or_else(|message| panic!("{message}"));
    assert_eq!(out.dims(), expected, "reduce_window of {:?} by {spec:?}", input.dims());
    assert!(op.supports(out.dtype()), "{op:?} of {:?}", out.dtype());
    assert!(input.dtype() == out.dtype() && init.dtype() == out.dtype() && init.dims().is_empty());
    let op = op.for_storage(out.dtype());
    with_number!(out.dtype(), T => with_monoid!(op, M => simple::<T, M>(input, init, out, spec)), small float => panic!("reduce_window of {:?}", input.dtype()))
}

/// The comparison by which [`select_and_scatter`] keeps the element selected so far: it moves to the next element of the
/// window when `selected OP element` is false. A comparison with NaN is false.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SelectOp {
    /// Selects the first greatest element: what the gradient of max pooling does.
    Ge,
    /// Selects the last greatest element.
    Gt,
    /// Selects the first smallest element.
    Le,
    /// Selects the last smallest element.
    Lt,
}

/// Scatters each element of `source` to the element of its window of `operand` that `select` picks (StableHLO's
/// `select_and_scatter`), combining with `scatter`.
///
/// `operand`, `source`, `init` and `out` have one type; `init` has rank 0, `out` the dimensions of `operand`, `source`
/// one element per window. Each result is `init` combined with the sources that were scattered to it, in the order of
/// the windows. Padding is never selected; a window that lies wholly in the padding scatters nothing. `spec` must have no dilations.
///
/// # Panics
/// If a shape or type does not fit, `spec` is not valid for the operand or has dilations, the type is complex, or
/// `scatter` is not defined on the type.
#[allow(clippy::too_many_arguments)]
pub fn select_and_scatter(
    pool: &Pool,
    select: SelectOp,
    scatter: ReduceOp,
    operand: Src<'_>,
    source: Src<'_>,
    init: Src<'_>,
    out: Dst<'_>,
    spec: &WindowSpec,
) {
    let _ = pool;
    let expected = spec.output_dims(operand.dims()).unwrap_or_else(|message| panic!("{message}"));
    assert_eq!(source.dims(), expected, "select_and_scatter of {:?} by {spec:?}", operand.dims());
    assert!(scatter.supports(out.dtype()) && !out.dtype().is_complex(), "{scatter:?} of {:?}", out.dtype());
    let op = scatter.for_storage(out.dtype());
    with_number!(out.dtype(), T => with_monoid!(op, M => scatter_simple::<T, M>(select, operand, source, init, out, spec)), small float => panic!("select_and_scatter of {:?}", operand.dtype()))
}

fn next_index(at: &mut [usize], dims: &[usize]) {
    for d in (0..at.len()).rev() {
        at[d] += 1;
        if at[d] < dims[d] {
            return;
        }
        at[d] = 0;
    }
}

fn simple<T: Number, M: Monoid<T::Acc>>(input: Src<'_>, init: Src<'_>, mut out: Dst<'_>, spec: &WindowSpec) {
    let init = init.as_slice::<T>()[0].widen();
    let x = input.as_slice::<T>();
    let mut at = vec![0; out.dims().len()];
    let dims = out.dims().to_vec();
    for o in out.as_mut_slice::<T>() {
        let mut acc = init;
        spec.for_each_position(input.dims(), &at, |p| {
            acc = M::combine(acc, p.map_or(init, |p| x[p].widen()))
        });
        *o = T::narrow(acc);
        next_index(&mut at, &dims);
    }
}

fn scatter_simple<T: Number, M: Monoid<T::Acc>>(
    select: SelectOp,
    operand: Src<'_>,
    source: Src<'_>,
    init: Src<'_>,
    mut out: Dst<'_>,
    spec: &WindowSpec,
) {
    let x = operand.as_slice::<T>();
    let init = init.as_slice::<T>()[0];
    let o = out.as_mut_slice::<T>();
    o.fill(init);
    let mut at = vec![0; source.dims().len()];
    for s in source.as_slice::<T>() {
        let mut selected: Option<usize> = None;
        spec.for_each_position(operand.dims(), &at, |p| {
            let Some(p) = p else { return };
            let keep = selected.is_some_and(|q| {
                let (a, b) = (x[q].widen(), x[p].widen());
                let nan = a != a || b != b;
                !nan && match select {
                    SelectOp::Ge => a == b || a.greatest(b) == a,
                    SelectOp::Gt => a != b && a.greatest(b) == a,
                    SelectOp::Le => a == b || a.least(b) == a,
                    SelectOp::Lt => a != b && a.least(b) == a,
                }
            });
            if !keep {
                selected = Some(p);
            }
        });
        if let Some(p) = selected {
            o[p] = T::narrow(M::combine(o[p].widen(), s.widen()));
        }
        next_index(&mut at, source.dims());
    }
}
