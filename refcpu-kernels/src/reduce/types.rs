//! The types that a reduction reads and accumulates.

use super::driver::{Layout, Results, run};
use crate::number::{
    Accumulator, BitAnd, BitOr, BitXor, Greatest, Least, Load, Product, Store, Sum, Target,
    small_float_values,
};
use crate::view::SyncPtr;
use crate::{DType, Dst, Pool, ReduceOp, Src};
use half::{bf16, f16};

/// A reduction whose accumulator type is known.
struct Call<'a, A> {
    pool: &'a Pool,
    op: ReduceOp,
    src: *const u8,
    layout: &'a Layout,
    results: Results<A>,
}

impl<A: Accumulator> Call<'_, A> {
    /// Runs the addition, multiplication, minimum or maximum of elements of type `T`.
    fn arithmetic<T: Load<A>>(&self) {
        let src = self.src.cast::<T>();
        // SAFETY: `Reduction` takes the pointers from a `Src` and a `Dst` of these types and of the layout's
        // sizes.
        unsafe {
            match self.op {
                ReduceOp::Multiply => run::<A, T, Product>(self.pool, self.layout, src, &self.results),
                ReduceOp::Minimum => run::<A, T, Least>(self.pool, self.layout, src, &self.results),
                ReduceOp::Maximum => run::<A, T, Greatest>(self.pool, self.layout, src, &self.results),
                _ => run::<A, T, Sum>(self.pool, self.layout, src, &self.results),
            }
        }
    }

    /// Runs operations whose bits do not depend on the sign: all but minimum and maximum.
    fn bits<T: Load<A>>(&self) {
        let src = self.src.cast::<T>();
        // SAFETY: as above.
        unsafe {
            match self.op {
                ReduceOp::Multiply => run::<A, T, Product>(self.pool, self.layout, src, &self.results),
                ReduceOp::And => run::<A, T, BitAnd>(self.pool, self.layout, src, &self.results),
                ReduceOp::Or => run::<A, T, BitOr>(self.pool, self.layout, src, &self.results),
                ReduceOp::Xor => run::<A, T, BitXor>(self.pool, self.layout, src, &self.results),
                _ => run::<A, T, Sum>(self.pool, self.layout, src, &self.results),
            }
        }
    }

    /// Runs minimum and maximum.
    fn extremes<T: Load<A>>(&self) {
        let src = self.src.cast::<T>();
        // SAFETY: as above.
        unsafe {
            match self.op {
                ReduceOp::Minimum => run::<A, T, Least>(self.pool, self.layout, src, &self.results),
                _ => run::<A, T, Greatest>(self.pool, self.layout, src, &self.results),
            }
        }
    }

    /// Runs operations on booleans.
    fn logic(&self)
    where
        u8: Load<A>,
    {
        let src = self.src.cast::<u8>();
        // SAFETY: as above.
        unsafe {
            match self.op {
                ReduceOp::And => run::<A, u8, BitAnd>(self.pool, self.layout, src, &self.results),
                ReduceOp::Or => run::<A, u8, BitOr>(self.pool, self.layout, src, &self.results),
                _ => run::<A, u8, BitXor>(self.pool, self.layout, src, &self.results),
            }
        }
    }

    /// Runs a sum of elements of a narrower type.
    fn sum<T: Load<A>>(&self) {
        // SAFETY: as above.
        unsafe { run::<A, T, Sum>(self.pool, self.layout, self.src.cast::<T>(), &self.results) }
    }
}

/// A reduction of arrays of any types.
pub(super) struct Reduction<'a> {
    pub(super) pool: &'a Pool,
    pub(super) op: ReduceOp,
    pub(super) input: Src<'a>,
    pub(super) init: Src<'a>,
    pub(super) layout: &'a Layout,
}

impl<'a> Reduction<'a> {
    /// Reduces the input, which is not empty, into `out`.
    ///
    /// # Panics
    /// Panics if the combination of types is not supported.
    pub(super) fn run(&self, out: &mut Dst<'_>) {
        use DType as D;
        let (op, from, to) = (self.op, self.input.dtype(), out.dtype());
        let out = SyncPtr::new(out);
        let src = self.input.as_ptr();
        let is_extreme = self.is_extreme();
        // An accumulator with the same bits as an element of `out`.
        macro_rules! same {
            ($A:ty) => {{
                // SAFETY: `init` has one element, of the size of the accumulator; it may be unaligned for
                // complex types.
                let init = unsafe { self.init.as_ptr().cast::<$A>().read_unaligned() };
                self.call(src, init, None, out)
            }};
        }
        let narrow = || self.call(src, self.narrow_init(to), f32::store(to), out);
        match (from, to) {
            (D::F32, D::F32) => same!(f32).arithmetic::<f32>(),
            (D::F64, D::F64) => same!(f64).arithmetic::<f64>(),
            (D::C64, D::C64) => same!([f32; 2]).arithmetic::<[f32; 2]>(),
            (D::C128, D::C128) => same!([f64; 2]).arithmetic::<[f64; 2]>(),
            (D::BF16, D::BF16 | D::F32) => narrow().arithmetic::<bf16>(),
            (D::F16, D::F16 | D::F32) => narrow().arithmetic::<f16>(),
            (D::S32, D::S32) if is_extreme => same!(i32).extremes::<i32>(),
            (D::S64, D::S64) if is_extreme => same!(i64).extremes::<i64>(),
            (D::U64, D::U64) if is_extreme => same!(u64).extremes::<u64>(),
            (D::S32, D::S32) | (D::U32, D::U32) if !is_extreme => same!(i32).bits::<i32>(),
            (D::S64, D::S64) | (D::U64, D::U64) if !is_extreme => same!(i64).bits::<i64>(),
            (D::Pred, D::Pred) => same!(u8).logic(),
            (D::Pred | D::U2 | D::U4 | D::U8, D::S32 | D::U32) if op == ReduceOp::Add => {
                same!(i32).sum::<u8>();
            }
            (D::S2 | D::S4 | D::S8, D::S32 | D::U32) if op == ReduceOp::Add => same!(i32).sum::<i8>(),
            _ => self.run_converted(to, out),
        }
    }

    /// Converts the whole input to the type of an accumulator, and reduces the copy.
    fn run_converted(&self, to: DType, out: SyncPtr) {
        let (from, init) = (self.input.dtype(), self.init);
        let is_extreme = self.is_extreme();
        let fits = !from.is_complex() || to.is_complex();
        macro_rules! converted {
            ($A:ty, $init:expr, $store:expr, $method:ident) => {{
                // The copy must live until the call has returned.
                let mut array = <$A>::array_of(self.input);
                self.call::<$A>(array.ptr::<u8>(), $init, $store, out).$method::<$A>()
            }};
        }
        let int = || wide_init(to, init.bytes());
        match to {
            DType::F64 if fits => converted!(f64, init.as_slice::<f64>()[0], None, arithmetic),
            DType::C64 => converted!([f32; 2], init.as_slice::<[f32; 2]>()[0], None, arithmetic),
            DType::C128 => converted!([f64; 2], init.as_slice::<[f64; 2]>()[0], None, arithmetic),
            float if fits && float.is_float() => {
                converted!(f32, self.narrow_init(to), f32::store(to), arithmetic);
            }
            // All values of smaller integers, and of unsigned ones that are compared, fit into the next wider
            // signed type.
            DType::U64 | DType::S64 if fits && !is_extreme => converted!(i64, int(), None, bits),
            DType::S64 | DType::U32 if fits && is_extreme => converted!(i64, int(), i64::store(to), extremes),
            int32 if fits && int32 != DType::U64 && is_extreme => {
                converted!(i32, int() as i32, i32::store(to), extremes);
            }
            int32 if fits && int32 != DType::U64 => converted!(i32, int() as i32, i32::store(to), bits),
            _ => panic!("reduce of {from:?} into {to:?}"),
        }
    }

    fn call<A>(&self, src: *const u8, init: A, store: Option<Store<A>>, ptr: SyncPtr) -> Call<'a, A> {
        let Self { pool, op, layout, .. } = *self;
        Call { pool, op, src, layout, results: Results { ptr, store, init } }
    }

    fn is_extreme(&self) -> bool {
        matches!(self.op, ReduceOp::Minimum | ReduceOp::Maximum)
    }

    /// Returns the initial value, which is a float of at most 32 bits.
    fn narrow_init(&self, dtype: DType) -> f32 {
        match (dtype, self.init.bytes()) {
            (DType::F32, _) => self.init.as_slice::<f32>()[0],
            (_, [byte]) => small_float_values(dtype)[usize::from(*byte)],
            (_, bytes) => {
                let bits = u16::from_le_bytes([bytes[0], bytes[1]]);
                crate::convert::narrow_to_f32(dtype, bits).expect("a float of at most 16 bits")
            }
        }
    }
}

/// Returns the value of one element of an integer type.
fn wide_init(dtype: DType, bytes: &[u8]) -> i64 {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let spare = 64 - 8 * bytes.len() as u32;
    let bits = u64::from_le_bytes(wide);
    if dtype.compute().is_signed_integer() { (bits << spare) as i64 >> spare } else { bits as i64 }
}
