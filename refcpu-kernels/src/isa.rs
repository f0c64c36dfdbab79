//! The instruction sets that hot loops are compiled for, and the choice among them.
//!
//! A loop body is written once as an `#[inline(always)]` function, generic over [`Isa`], and instantiated
//! inside thin `#[target_feature]` wrappers (`multiversion!`). The choice is made once per process.

use std::sync::OnceLock;

/// An instruction set that loops exist for. Later ones contain earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The instructions that the compilation target guarantees.
    Baseline,
    /// x86-64 with AVX2, FMA, BMI and F16C.
    Avx2,
    /// The instructions of [`Self::Avx2`], and AVX-512 F, VL, DQ, BW and CD.
    Avx512,
}

/// The properties of an instruction set that a loop body can use, as constants.
pub trait Isa: Copy + 'static {
    /// `true` if `mul_add` is one instruction; otherwise it is a slow library call.
    const FMA: bool;
}

/// [`Level::Baseline`] as a Rust type.
#[derive(Clone, Copy, Debug)]
pub struct Baseline;
/// [`Level::Avx2`] as a Rust type.
#[derive(Clone, Copy, Debug)]
pub struct Avx2;
/// [`Level::Avx512`] as a Rust type.
#[derive(Clone, Copy, Debug)]
pub struct Avx512;

impl Isa for Baseline {
    const FMA: bool = cfg!(any(target_feature = "fma", target_arch = "aarch64"));
}
impl Isa for Avx2 {
    const FMA: bool = true;
}
impl Isa for Avx512 {
    const FMA: bool = true;
}

fn detect() -> Level {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        let avx2 = has!("avx2")
            && has!("fma")
            && has!("bmi1")
            && has!("bmi2")
            && has!("lzcnt")
            && has!("popcnt")
            && has!("f16c");
        let avx512 =
            has!("avx512f") && has!("avx512vl") && has!("avx512dq") && has!("avx512bw") && has!("avx512cd");
        match (avx2, avx512) {
            (true, true) => Level::Avx512,
            (true, false) => Level::Avx2,
            _ => Level::Baseline,
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    Level::Baseline
}

/// Returns the best level that this machine supports, or a lower one if the environment variable `REFCPU_ISA`
/// selects it (`baseline`, `avx2`, `avx512`).
pub fn level() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| {
        let wanted = match std::env::var("REFCPU_ISA").as_deref() {
            Ok("baseline") => Level::Baseline,
            Ok("avx2") => Level::Avx2,
            _ => Level::Avx512,
        };
        detect().min(wanted)
    })
}

/// Defines `fn NAME<generics>(args) -> R`, which calls the instantiation of `BODY::<I, generics>` for the
/// [`level`] of this machine.
///
/// `BODY` must be an `#[inline(always)]` function (or unsafe function) whose first type parameter is the
/// [`Isa`].
macro_rules! multiversion {
    ($(#[$meta:meta])* $vis:vis unsafe fn $name:ident $(<$($g:ident $(: $b:path)?),*>)? ($($arg:ident : $t:ty),* $(,)?) $(-> $r:ty)? = $body:ident) => {
        $(#[$meta])*
        $vis unsafe fn $name $(<$($g $(: $b)?),*>)? ($($arg: $t),*) $(-> $r)? {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512cd,avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
            unsafe fn avx512 $(<$($g $(: $b)?),*>)? ($($arg: $t),*) $(-> $r)? {
                // SAFETY: the conditions are those of the body, which the caller guarantees.
                unsafe { $body::<$crate::isa::Avx512 $(, $($g),*)?>($($arg),*) }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
            unsafe fn avx2 $(<$($g $(: $b)?),*>)? ($($arg: $t),*) $(-> $r)? {
                // SAFETY: the conditions are those of the body, which the caller guarantees.
                unsafe { $body::<$crate::isa::Avx2 $(, $($g),*)?>($($arg),*) }
            }
            match $crate::isa::level() {
                // SAFETY: `level` returns what the running machine supports; the rest is guaranteed by the
                // caller.
                #[cfg(target_arch = "x86_64")]
                $crate::isa::Level::Avx512 => unsafe { avx512 $(::<$($g),*>)? ($($arg),*) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                $crate::isa::Level::Avx2 => unsafe { avx2 $(::<$($g),*>)? ($($arg),*) },
                // SAFETY: the conditions are those of the body, which the caller guarantees.
                _ => unsafe { $body::<$crate::isa::Baseline $(, $($g),*)?>($($arg),*) },
            }
        }
    };
}
#[allow(unused_imports, reason = "some combinations of features have no multiversioned kernels")]
pub(crate) use multiversion;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_is_stable_and_no_better_than_the_machine() {
        assert_eq!(level(), level());
        assert!(level() <= detect());
    }
}
