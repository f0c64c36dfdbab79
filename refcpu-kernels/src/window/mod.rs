//! Sliding windows: `reduce_window` and `select_and_scatter`.

mod cumulative;
mod kernel;
mod select;
mod slide;
mod spec;
#[cfg(test)]
mod tests;

pub(crate) use spec::Axis;
pub use spec::WindowSpec;

use crate::ReduceOp;
use crate::number::{
    Accumulator, BitAnd, BitOr, BitXor, Greatest, Least, Monoid, Product, Store, Sum, Target, wrap_sub_byte,
};
use crate::scratch::Scratch;
use crate::view::SyncPtr;
use crate::{ComputeType, DType, Dst, Pool, Src};

/// Reduces every window of `input` (StableHLO's `reduce_window` with one operand and a body of one
/// operation).
///
/// `init` has rank 0; `input`, `init` and `out` have the same type. Padding and the holes of base dilation
/// have the value `init`, which is also combined with every result once. 16-bit and smaller floats are
/// accumulated in f32, and rounded once. Windows that cover all elements before (or after) each position, as
/// in cumulative sums, take time linear in the size of the input.
///
/// # Panics
/// Panics if a shape or type does not match, if `spec` is not valid for the input, or if the operation is not
/// defined on the type.
pub fn reduce_window(
    pool: &Pool,
    op: ReduceOp,
    input: Src<'_>,
    init: Src<'_>,
    mut out: Dst<'_>,
    spec: &WindowSpec,
) {
    let axes = check(input.dims(), out.dims(), spec);
    assert!(op.supports(out.dtype()), "{op:?} is not defined for {:?}", out.dtype());
    assert!(
        input.dtype() == out.dtype() && init.dtype() == out.dtype() && init.dims().is_empty(),
        "reduce_window of {:?} from {:?}{:?} into {:?}",
        input.dtype(),
        init.dtype(),
        init.dims(),
        out.dtype(),
    );
    let op = op.for_storage(out.dtype());
    let extreme = matches!(op, ReduceOp::Minimum | ReduceOp::Maximum);
    if out.dtype() == DType::U64 && extreme {
        // These are compared as unsigned integers, so no conversion is needed.
        let (src, to) = (input.as_ptr().cast::<u64>(), SyncPtr::new(&mut out).get().cast::<u64>());
        // SAFETY: the pointers are those of the arrays, whose shapes were checked.
        unsafe { extremes(pool, op, &axes, src, init.as_slice::<u64>()[0], to) };
        return;
    }
    macro_rules! with {
        ($A:ty, $method:ident) => {
            converted::<$A>(input, init, &mut out, |src, init, to| {
                // SAFETY: as above, for arrays that were converted.
                unsafe { $method(pool, op, &axes, src, init, to) }
            })
        };
    }
    match compute_type(out.dtype()) {
        ComputeType::F32 => with!(f32, arithmetic),
        ComputeType::F64 => with!(f64, arithmetic),
        ComputeType::S32 if extreme => with!(i32, extremes),
        ComputeType::S32 => with!(i32, bits),
        ComputeType::C64 => with!([f32; 2], arithmetic),
        ComputeType::C128 => with!([f64; 2], arithmetic),
        _ if extreme => with!(i64, extremes),
        _ => with!(i64, bits),
    }
    wrap_sub_byte(out.dtype(), out.bytes_mut());
}

/// Returns the size of the dimension and the number of elements after it for windows over all elements before each position
/// along one dimension, or after it; the flag is `true` for those after it.
pub(crate) fn cumulative(input: &[usize], spec: &WindowSpec) -> Option<(usize, usize, bool)> {
    spec.output_dims(input).ok()?;
    let c = cumulative::Cumulative::of(&spec.axes(input))?;
    Some((c.n, c.inner, c.reverse))
}

/// Checks the shapes, and returns the axes of the windows.
fn check(input: &[usize], windows: &[usize], spec: &WindowSpec) -> Vec<Axis> {
    let expected = spec.output_dims(input).unwrap_or_else(|message| panic!("{message}"));
    assert_eq!(windows, expected, "windows {spec:?} over {input:?}");
    spec.axes(input)
}

/// Returns the type in which windows over elements of a type are computed: one of `F32`, `F64`, `S32`, `S64`,
/// `C64`, `C128`, which represents all its values (or, for `U64`, all its bits).
fn compute_type(dtype: DType) -> ComputeType {
    match dtype.compute() {
        ComputeType::Pred | ComputeType::S8 | ComputeType::S16 | ComputeType::U8 | ComputeType::U16 => {
            ComputeType::S32
        }
        ComputeType::U32 | ComputeType::U64 => ComputeType::S64,
        other => other,
    }
}

/// The elements of an array as values of another type, in place if possible.
enum Values<'a, A> {
    InPlace(Src<'a>),
    Converted(Scratch, std::marker::PhantomData<A>),
}

impl<'a, A: Target> Values<'a, A> {
    fn new(src: Src<'a>) -> Self {
        match A::store(src.dtype()) {
            None => Self::InPlace(src),
            Some(_) => Self::Converted(A::array_of(src), std::marker::PhantomData),
        }
    }

    fn ptr(&mut self) -> *const A {
        match self {
            Self::InPlace(src) => src.as_ptr().cast(),
            Self::Converted(scratch, _) => scratch.ptr(),
        }
    }
}

/// Calls `run` with input, initial value and output as values of type `A`, and stores the output.
fn converted<A: Target>(
    input: Src<'_>,
    init: Src<'_>,
    out: &mut Dst<'_>,
    run: impl FnOnce(*const A, A, *mut A),
) {
    let init = {
        let mut one = A::array_of(init);
        // SAFETY: the array has one element.
        unsafe { *one.ptr::<A>() }
    };
    let mut values = Values::<A>::new(input);
    stored(out, |to| run(values.ptr(), init, to));
}

/// Calls `run` with memory for the elements of `out` as values of type `A`, and stores them.
fn stored<A: Target>(out: &mut Dst<'_>, run: impl FnOnce(*mut A)) {
    let Some(Store { row, .. }) = A::store(out.dtype()) else {
        run(out.as_mut_ptr().cast());
        return;
    };
    let n = out.len();
    let mut scratch = Scratch::new::<A>(n);
    run(scratch.ptr());
    // SAFETY: `run` has written all `n` values, and `out` has as many elements, of the type that `store`
    // expects.
    unsafe { row(scratch.ptr(), out.as_mut_ptr(), n) };
}

/// Reduces windows by one operation.
///
/// # Safety
/// For as many elements as the axes specify, `src` must be readable and `dst` writable; nothing else may
/// access `dst`.
unsafe fn reduce_windows<A: Accumulator, M: Monoid<A>>(
    pool: &Pool,
    axes: &[Axis],
    src: *const A,
    init: A,
    dst: *mut A,
) {
    let harmless = M::combine(init, init) == init || axes.iter().all(Axis::is_unpadded);
    // SAFETY: guaranteed by the caller.
    unsafe {
        if !harmless {
            slide::slide_with_padding::<A, M>(pool, axes, src, init, dst);
        } else if let Some(cumulative) = cumulative::Cumulative::of(axes) {
            cumulative.run::<A, M>(pool, src, init, dst);
        } else {
            slide::slide::<A, M>(pool, axes, src, init, dst);
        }
    }
}

/// Runs [`reduce_windows`] with addition, multiplication, minimum or maximum.
///
/// # Safety
/// See [`reduce_windows`].
unsafe fn arithmetic<A: Accumulator>(
    pool: &Pool,
    op: ReduceOp,
    axes: &[Axis],
    src: *const A,
    init: A,
    dst: *mut A,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match op {
            ReduceOp::Multiply => reduce_windows::<A, Product>(pool, axes, src, init, dst),
            ReduceOp::Minimum => reduce_windows::<A, Least>(pool, axes, src, init, dst),
            ReduceOp::Maximum => reduce_windows::<A, Greatest>(pool, axes, src, init, dst),
            _ => reduce_windows::<A, Sum>(pool, axes, src, init, dst),
        }
    }
}

/// Runs [`reduce_windows`] with minimum or maximum.
///
/// # Safety
/// See [`reduce_windows`].
unsafe fn extremes<A: Accumulator>(
    pool: &Pool,
    op: ReduceOp,
    axes: &[Axis],
    src: *const A,
    init: A,
    dst: *mut A,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match op {
            ReduceOp::Minimum => reduce_windows::<A, Least>(pool, axes, src, init, dst),
            _ => reduce_windows::<A, Greatest>(pool, axes, src, init, dst),
        }
    }
}

/// Runs [`reduce_windows`] with an operation on integers whose bits do not depend on the sign.
///
/// # Safety
/// See [`reduce_windows`].
unsafe fn bits<A: Accumulator>(
    pool: &Pool,
    op: ReduceOp,
    axes: &[Axis],
    src: *const A,
    init: A,
    dst: *mut A,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match op {
            ReduceOp::Multiply => reduce_windows::<A, Product>(pool, axes, src, init, dst),
            ReduceOp::And => reduce_windows::<A, BitAnd>(pool, axes, src, init, dst),
            ReduceOp::Or => reduce_windows::<A, BitOr>(pool, axes, src, init, dst),
            ReduceOp::Xor => reduce_windows::<A, BitXor>(pool, axes, src, init, dst),
            _ => reduce_windows::<A, Sum>(pool, axes, src, init, dst),
        }
    }
}

/// The comparison by which [`select_and_scatter`] keeps the element that is selected so far. If `selected OP
/// element` is false, the next element of the window is selected. A comparison with NaN is false.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SelectOp {
    /// Selects the first greatest element, as the gradient of max pooling does.
    Ge,
    /// Selects the last greatest element.
    Gt,
    /// Selects the first smallest element.
    Le,
    /// Selects the last smallest element.
    Lt,
}

/// Scatters each element of `source` to the element that `select` selects in its window of `operand`, and
/// combines with `scatter` (StableHLO's `select_and_scatter`).
///
/// `operand`, `source`, `init` and `out` have the same type; `init` has rank 0, `out` has the dimensions of
/// `operand`, and `source` has one element per window. Each result is `init`, combined with the sources that
/// are scattered to it in the order of the windows. Padding is never selected; a window that lies completely
/// in the padding scatters nothing. `spec` must have no dilations.
///
/// # Panics
/// Panics if a shape or type does not match, if `spec` is not valid for the operand or has dilations, if the
/// type is complex, or if `scatter` is not defined on the type.
#[allow(
    clippy::too_many_arguments,
    reason = "the operands of a leaf loop; a struct would be made on every call"
)]
pub fn select_and_scatter(
    pool: &Pool,
    select: SelectOp,
    scatter: ReduceOp,
    operand: Src<'_>,
    source: Src<'_>,
    init: Src<'_>,
    mut out: Dst<'_>,
    spec: &WindowSpec,
) {
    let axes = check(operand.dims(), source.dims(), spec);
    let dtype = out.dtype();
    assert!(
        out.dims() == operand.dims()
            && init.dims().is_empty()
            && [operand, source, init].iter().all(|s| s.dtype() == dtype),
        "select_and_scatter of {:?}{:?}, {:?}{:?} from {:?}{:?} into {:?}{:?}",
        operand.dtype(),
        operand.dims(),
        source.dtype(),
        source.dims(),
        init.dtype(),
        init.dims(),
        out.dtype(),
        out.dims(),
    );
    assert!(scatter.supports(dtype) && !dtype.is_complex(), "{scatter:?} is not defined for {dtype:?}");
    assert!(
        axes.iter().all(|a| a.base_dilation == 1 && a.window_dilation == 1),
        "select_and_scatter by {spec:?}"
    );
    let scatter = scatter.for_storage(dtype);
    let size = dtype.size();
    if dtype == DType::U64 {
        out.bytes_mut().chunks_exact_mut(size).for_each(|element| element.copy_from_slice(init.bytes()));
        let to = out.as_mut_ptr().cast::<u64>();
        // SAFETY: the pointers are those of the arrays, whose shapes were checked, and `out` holds the
        // initial value.
        unsafe {
            scatter_windows(pool, select, scatter, &axes, operand.as_ptr().cast(), source.as_ptr().cast(), to)
        };
        return;
    }
    macro_rules! with {
        ($A:ty) => {{
            let (mut operand, mut source) = (Values::<$A>::new(operand), Values::<$A>::new(source));
            let n = out.len();
            let mut one = <$A>::array_of(init);
            stored::<$A>(&mut out, |to| {
                // SAFETY: as above, for arrays that were converted; `to` has room for `n` values.
                unsafe {
                    let init = *one.ptr::<$A>();
                    (0..n).for_each(|i| *to.add(i) = init);
                    scatter_windows(pool, select, scatter, &axes, operand.ptr(), source.ptr(), to);
                }
            })
        }};
    }
    match compute_type(dtype) {
        ComputeType::F32 => with!(f32),
        ComputeType::F64 => with!(f64),
        ComputeType::S32 => with!(i32),
        _ => with!(i64),
    }
    wrap_sub_byte(dtype, out.bytes_mut());
}

/// Scatters to `out`, which contains the initial value everywhere.
///
/// # Safety
/// See [`select::run`].
unsafe fn scatter_windows<A: kernel::Ordered>(
    pool: &Pool,
    select: SelectOp,
    scatter: ReduceOp,
    axes: &[Axis],
    operand: *const A,
    source: *const A,
    out: *mut A,
) {
    let combine: Option<fn(A, A) -> A> = match scatter {
        ReduceOp::Add => None,
        ReduceOp::Multiply => Some(A::times),
        ReduceOp::Minimum => Some(A::least),
        ReduceOp::Maximum => Some(A::greatest),
        ReduceOp::And => Some(A::bit_and),
        ReduceOp::Or => Some(A::bit_or),
        ReduceOp::Xor => Some(A::bit_xor),
    };
    // SAFETY: guaranteed by the caller.
    unsafe {
        match select {
            SelectOp::Ge => select::run::<A, kernel::Ge>(pool, axes, operand, source, out, combine),
            SelectOp::Gt => select::run::<A, kernel::Gt>(pool, axes, operand, source, out, combine),
            SelectOp::Le => select::run::<A, kernel::Le>(pool, axes, operand, source, out, combine),
            SelectOp::Lt => select::run::<A, kernel::Lt>(pool, axes, operand, source, out, combine),
        }
    }
}
