//! The array kernels of refcpu: ahead-of-time compiled leaf loops over dense arrays.
//!
//! Everything here is a plain function over [`Src`] and [`Dst`] views, the element types of [`DType`], and a
//! [`Pool`] to run on. Nothing here knows StableHLO or PJRT: the compiler lowers programs to calls of these functions.
//!
//! A kernel checks the shapes that it is given (a caller's mistake is a panic with both shapes in its message, never
//! an out-of-bounds access) and allocates nothing that grows with the data, unless its documentation says so.
#![allow(
    clippy::extra_unused_type_parameters,
    reason = "a body that is compiled once per instruction set takes the set as a parameter, whether it names it or not"
)]
#![allow(clippy::type_complexity, reason = "what a chunk's callback is given stands where it is called")]

pub mod conv;
pub mod convert;
pub mod copy;
pub mod dot;
pub mod dtype;
mod few;
pub mod fft;
pub mod index;
pub mod isa;
pub mod linalg;
pub mod machine;
mod math;
mod number;
pub mod pool;
pub mod reduce;
pub mod region;
pub mod rng;
mod scratch;
pub mod sort;
#[cfg(test)]
mod testing;
pub mod tile;
pub mod view;
pub mod window;

pub use dtype::{ComputeType, DType};
pub use pool::Pool;
pub use view::{Dst, Element, Src};
