//! `select` and `clamp`.

use super::Kernel;
use super::arithmetic::Num;
use super::loops::{Ternary, ternary_masked};
use crate::ComputeType;
use crate::isa::Isa;
use std::marker::PhantomData;

struct Pick<T>(PhantomData<T>);
impl<T: Copy> Ternary for Pick<T> {
    type A = u8;
    type B = T;
    type C = T;
    type R = T;
    #[inline(always)]
    fn apply<I: Isa>(p: u8, a: T, b: T) -> T {
        if p != 0 { a } else { b }
    }
}

struct Clamp<T>(PhantomData<T>);
impl<T: Num> Ternary for Clamp<T> {
    type A = T;
    type B = T;
    type C = T;
    type R = T;
    #[inline(always)]
    fn apply<I: Isa>(low: T, x: T, high: T) -> T {
        x.maximum(low).minimum(high)
    }
}

/// Returns the loop of `select` for elements of this type: only the size matters.
pub(super) fn select(ty: ComputeType, mask: u8) -> Option<Kernel> {
    fn of<T: Copy>(mask: u8) -> Option<Kernel> {
        match mask {
            0 => Some(ternary_masked::<Pick<T>, 0>()),
            2 => Some(ternary_masked::<Pick<T>, 2>()),
            4 => Some(ternary_masked::<Pick<T>, 4>()),
            6 => Some(ternary_masked::<Pick<T>, 6>()),
            _ => None,
        }
    }
    match ty {
        ComputeType::C64 => (mask == 0).then(ternary_masked::<Pick<[u32; 2]>, 0>),
        ComputeType::C128 => (mask == 0).then(ternary_masked::<Pick<[u64; 2]>, 0>),
        _ => match ty.size() {
            1 => of::<u8>(mask),
            2 => of::<u16>(mask),
            4 => of::<u32>(mask),
            _ => of::<u64>(mask),
        },
    }
}

/// Returns the loop of `clamp`.
pub(super) fn clamp(ty: ComputeType, mask: u8) -> Option<Kernel> {
    fn of<T: Num>(mask: u8) -> Option<Kernel> {
        match mask {
            0 => Some(ternary_masked::<Clamp<T>, 0>()),
            5 => Some(ternary_masked::<Clamp<T>, 5>()),
            _ => None,
        }
    }
    match ty {
        ComputeType::Pred | ComputeType::U8 => of::<u8>(mask),
        ComputeType::U16 => of::<u16>(mask),
        ComputeType::U32 => of::<u32>(mask),
        ComputeType::U64 => of::<u64>(mask),
        ComputeType::S8 => of::<i8>(mask),
        ComputeType::S16 => of::<i16>(mask),
        ComputeType::S32 => of::<i32>(mask),
        ComputeType::S64 => of::<i64>(mask),
        ComputeType::F32 => of::<f32>(mask),
        ComputeType::F64 => of::<f64>(mask),
        ComputeType::C64 | ComputeType::C128 => None,
    }
}
