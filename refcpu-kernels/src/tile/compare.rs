//! Comparisons.

use super::Kernel;
use super::loops::{Binary, binary};
use super::{Direction, Order};
use crate::ComputeType;
use crate::isa::Isa;
use std::marker::PhantomData;

macro_rules! relations {
    ($($name:ident $op:tt $bound:ident;)*) => {$(
        struct $name<T>(PhantomData<T>);
        impl<T: Copy + $bound> Binary for $name<T> {
            type A = T;
            type B = T;
            type R = u8;
            #[inline(always)]
            fn apply<I: Isa>(a: T, b: T) -> u8 {
                u8::from(a $op b)
            }
        }
    )*};
}
relations! {
    Eq == PartialEq;
    Ne != PartialEq;
    Ge >= PartialOrd;
    Gt > PartialOrd;
    Le <= PartialOrd;
    Lt < PartialOrd;
}

/// A float as an integer that sorts as totalOrder does.
trait TotalKey: Copy {
    type Key: PartialOrd;
    fn key(self) -> Self::Key;
}
impl TotalKey for f32 {
    type Key = i32;
    #[inline(always)]
    fn key(self) -> i32 {
        let b = self.to_bits() as i32;
        b ^ ((b >> 31) as u32 >> 1) as i32
    }
}
impl TotalKey for f64 {
    type Key = i64;
    #[inline(always)]
    fn key(self) -> i64 {
        let b = self.to_bits() as i64;
        b ^ ((b >> 63) as u64 >> 1) as i64
    }
}

struct Total<T, R>(PhantomData<(T, R)>);
impl<T: TotalKey, R: Binary<A = T::Key, B = T::Key, R = u8>> Binary for Total<T, R> {
    type A = T;
    type B = T;
    type R = u8;
    #[inline(always)]
    fn apply<I: Isa>(a: T, b: T) -> u8 {
        R::apply::<I>(a.key(), b.key())
    }
}

/// Returns the loop of a comparison.
pub(super) fn kernel(direction: Direction, order: Order, ty: ComputeType, mask: u8) -> Option<Kernel> {
    use ComputeType as C;
    macro_rules! all {
        ($t:ty) => {
            match direction {
                Direction::Eq => binary::<Eq<$t>>(mask),
                Direction::Ne => binary::<Ne<$t>>(mask),
                Direction::Ge => binary::<Ge<$t>>(mask),
                Direction::Gt => binary::<Gt<$t>>(mask),
                Direction::Le => binary::<Le<$t>>(mask),
                Direction::Lt => binary::<Lt<$t>>(mask),
            }
        };
    }
    macro_rules! total {
        ($t:ty, $k:ty) => {
            match direction {
                Direction::Eq => binary::<Total<$t, Eq<$k>>>(mask),
                Direction::Ne => binary::<Total<$t, Ne<$k>>>(mask),
                Direction::Ge => binary::<Total<$t, Ge<$k>>>(mask),
                Direction::Gt => binary::<Total<$t, Gt<$k>>>(mask),
                Direction::Le => binary::<Total<$t, Le<$k>>>(mask),
                Direction::Lt => binary::<Total<$t, Lt<$k>>>(mask),
            }
        };
    }
    macro_rules! equality {
        ($t:ty) => {
            match direction {
                Direction::Eq => binary::<Eq<$t>>(mask),
                Direction::Ne => binary::<Ne<$t>>(mask),
                _ => None,
            }
        };
    }
    match (ty, order) {
        (C::F32, Order::Total) => total!(f32, i32),
        (C::F64, Order::Total) => total!(f64, i64),
        (C::F32, Order::Partial) => all!(f32),
        (C::F64, Order::Partial) => all!(f64),
        (C::Pred | C::U8, _) => all!(u8),
        (C::U16, _) => all!(u16),
        (C::U32, _) => all!(u32),
        (C::U64, _) => all!(u64),
        (C::S8, _) => all!(i8),
        (C::S16, _) => all!(i16),
        (C::S32, _) => all!(i32),
        (C::S64, _) => all!(i64),
        (C::C64, _) => equality!([f32; 2]),
        (C::C128, _) => equality!([f64; 2]),
    }
}
