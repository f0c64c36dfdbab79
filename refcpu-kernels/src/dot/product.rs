//! Matrix products of different element types: the type of the computation, and the conversions of operands
//! and results.

use super::engine::Compute;
use super::gemm::{self, GemmShape, Output};
use super::matvec;
use super::operand::{Index, Left, Matrices, Right};
use crate::number::{Load, Target};
use crate::scratch::Scratch;
use crate::{ComputeType, DType, Pool, Src};
use half::{bf16, f16};
use std::ops::Range;

/// Returns the type in which products of these types are computed: one of `F32`, `F64`, `S32`, `S64`, `C64`,
/// `C128`.
///
/// # Panics
/// Panics if the result is an integer and an operand is not, or if an operand is complex and the result is
/// not.
pub(crate) fn compute_type(lhs: DType, rhs: DType, out: DType) -> ComputeType {
    let all = [lhs, rhs, out];
    let is_integer = |d: DType| !d.is_float() && !d.is_complex();
    let fits = if is_integer(out) {
        is_integer(lhs) && is_integer(rhs)
    } else {
        out.is_complex() || !lhs.is_complex() && !rhs.is_complex()
    };
    assert!(fits, "product of {lhs:?} and {rhs:?} as {out:?}");
    let double = all.iter().any(|d| matches!(d, DType::F64 | DType::C128));
    match (out.is_complex(), is_integer(out)) {
        (true, _) if double => ComputeType::C128,
        (true, _) => ComputeType::C64,
        (_, true) if out.size() == 8 => ComputeType::S64,
        (_, true) => ComputeType::S32,
        _ if double => ComputeType::F64,
        _ => ComputeType::F32,
    }
}

/// Evaluates an expression with a name for the Rust type that [`compute_type`] returned.
macro_rules! with_compute {
    ($compute:expr, $U:ident => $body:expr) => {
        match $compute {
            $crate::ComputeType::F32 => {
                type $U = f32;
                $body
            }
            $crate::ComputeType::F64 => {
                type $U = f64;
                $body
            }
            $crate::ComputeType::S32 => {
                type $U = i32;
                $body
            }
            $crate::ComputeType::S64 => {
                type $U = i64;
                $body
            }
            $crate::ComputeType::C64 => {
                type $U = [f32; 2];
                $body
            }
            _ => {
                type $U = [f64; 2];
                $body
            }
        }
    };
}
pub(crate) use with_compute;

/// A type in which products are computed, with the conversions from and to other element types.
pub(crate) trait Operands: Compute + Target {
    /// Passes an array to a function as a batch of matrices; `outer` and `inner` are as in [`Matrices`].
    fn with_operand(
        src: Src<'_>,
        batch: &Index,
        outer: &Index,
        inner: &Index,
        then: &mut dyn FnMut(&Operand<'_, Self>),
    );

    /// Passes the elements of an array to `visitor`: in place if a packing kernel can convert them, otherwise
    /// those of a converted copy.
    fn visit(src: Src<'_>, visitor: impl Visit<Self>);
}

/// A function that is generic over the type of an array's elements.
pub(crate) trait Visit<U> {
    /// Calls the function. The elements are readable during the call.
    fn visit<T: Load<U>>(self, elements: *const T);
}

/// A matrix operand of any element type.
pub(crate) struct Operand<'a, U> {
    side: &'a dyn Side<U>,
}

impl<U> Operand<'_, U> {
    /// Returns the operand for the driver, as the left side of a product.
    pub(crate) fn left(&self) -> &dyn Left<U> {
        self.side
    }

    /// Returns the operand for the driver, as the right side of a product.
    pub(crate) fn right(&self) -> &dyn Right<U> {
        self.side
    }
}

/// A batch of matrices that can be either side of a product, or be multiplied by a vector.
trait Side<U>: Left<U> + Right<U> {
    /// Multiplies by a vector. Sums over the inner index if `over_inner`, otherwise over the outer one.
    /// Returns `false` if the matrix does not have suitable strides.
    ///
    /// # Safety
    /// See [`matvec::multiply`]; for the sizes in `count` and `depth`.
    #[allow(
        clippy::too_many_arguments,
        reason = "the operands of a leaf loop; a struct would be made on every call"
    )]
    unsafe fn times_vector(
        &self,
        pool: &Pool,
        batch: usize,
        over_inner: bool,
        count: usize,
        depth: usize,
        x: *const U,
        y: *mut U,
    ) -> bool;

    /// Returns `true` if [`Self::times_vector`] is supported.
    fn can_multiply_vectors(&self) -> bool;
}

impl<U: Compute, T: Load<U>> Side<U> for Matrices<'_, T> {
    fn can_multiply_vectors(&self) -> bool {
        matches!((self.outer.stride(), self.inner.stride()), (Some(1), Some(_)) | (Some(_), Some(1)))
    }

    unsafe fn times_vector(
        &self,
        pool: &Pool,
        batch: usize,
        over_inner: bool,
        count: usize,
        depth: usize,
        x: *const U,
        y: *mut U,
    ) -> bool {
        let (Some(outer), Some(inner)) = (self.outer.stride(), self.inner.stride()) else { return false };
        let (along, across) = if over_inner { (inner, outer) } else { (outer, inner) };
        let depth_adjacent = along == 1;
        if !depth_adjacent && across != 1 {
            return false;
        }
        let ptr = self.ptr.wrapping_add(self.batch.at(batch));
        let stride = if depth_adjacent { across } else { along };
        // SAFETY: guaranteed by the caller.
        unsafe { matvec::multiply(pool, matvec::Matrix { ptr, count, depth, stride, depth_adjacent }, x, y) };
        true
    }
}

macro_rules! operands {
    ($($u:ty, [$($dtype:pat => $t:ty,)*];)*) => {$(
        impl Operands for $u {
            fn with_operand(
                src: Src<'_>,
                batch: &Index,
                outer: &Index,
                inner: &Index,
                then: &mut dyn FnMut(&Operand<'_, Self>),
            ) {
                match src.dtype() {
                    $($dtype => {
                        let ptr = src.as_ptr().cast::<$t>();
                        then(&Operand { side: &Matrices { ptr, batch, outer, inner } });
                    })*
                    _ => {
                        let mut converted = <$u>::array_of(src);
                        let ptr = converted.ptr::<$u>().cast_const();
                        then(&Operand { side: &Matrices { ptr, batch, outer, inner } });
                    }
                }
            }

            fn visit(src: Src<'_>, visitor: impl Visit<Self>) {
                match src.dtype() {
                    $($dtype => visitor.visit(src.as_ptr().cast::<$t>()),)*
                    _ => visitor.visit(<$u>::array_of(src).ptr::<$u>().cast_const()),
                }
            }
        }
    )*};
}
operands! {
    f32, [DType::F32 => f32, DType::BF16 => bf16, DType::F16 => f16,];
    f64, [DType::F64 => f64, DType::F32 => f32,];
    i32, [
        DType::S32 | DType::U32 => i32,
        DType::S8 | DType::S4 | DType::S2 => i8,
        DType::U8 | DType::U4 | DType::U2 | DType::Pred => u8,
    ];
    i64, [DType::S64 | DType::U64 => i64,];
    [f32; 2], [DType::C64 => [f32; 2],];
    [f64; 2], [DType::C128 => [f64; 2],];
}

/// Computes a batch of products, with a vector kernel if one side is a vector.
///
/// # Safety
/// `out` must describe memory that is valid for the results and that nothing else accesses.
pub(crate) unsafe fn multiply<U: Operands>(
    pool: &Pool,
    shape: GemmShape,
    a: &Operand<'_, U>,
    b: &Operand<'_, U>,
    out: &Output<U>,
) {
    let GemmShape { batch, rows, cols, depth } = shape;
    let big = batch < 16 || rows * cols * depth >= 1 << 14;
    let contiguous = rows == 1 || (cols == 1 && out.row == 1);
    let matrix = if rows == 1 { b.side } else { a.side };
    if !(big && contiguous && matrix.can_multiply_vectors()) {
        // SAFETY: guaranteed by the caller.
        unsafe { gemm::multiply(pool, shape, a.left(), b.right(), out) };
        return;
    }
    let count = rows * cols;
    let one = |pool: &Pool, member: usize| {
        let mut vector = Scratch::new::<U>(depth);
        let mut results = out.store.map(|_| Scratch::new::<U>(count));
        let at = out.batch.at(member);
        // SAFETY: the vector is packed as a whole to scratch memory of its length (a single row or column is
        // adjacent in any packing), the matrix is read within its bounds, and the results of this member are
        // exclusively accessible, as the caller guarantees.
        unsafe {
            let x: Range<usize> = 0..depth;
            if rows == 1 {
                a.left().pack(member, 0..1, x, vector.ptr());
            } else {
                b.right().pack(member, x, 0..1, 1, vector.ptr());
            }
            let y = match &mut results {
                Some(results) => results.ptr(),
                None => out.ptr.get().cast::<U>().wrapping_add(at),
            };
            let done = matrix.times_vector(pool, member, rows != 1, count, depth, vector.ptr(), y);
            debug_assert!(done, "can_multiply_vectors returned true");
            if let (Some(results), Some(store)) = (&mut results, out.store) {
                (store.row)(results.ptr(), out.ptr.get().wrapping_add(at * store.size), count);
            }
        }
    };
    if batch >= 16 {
        pool.run(batch, &|member| one(&Pool::inline(), member));
    } else {
        (0..batch).for_each(|member| one(pool, member));
    }
}
