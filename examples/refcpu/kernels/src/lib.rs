//! The array kernels of refcpu: ahead-of-time compiled leaf loops over dense arrays.
//!
//! Everything here is a plain function over [`Src`] and [`Dst`] views, the element types of [`DType`], and a
//! [`Pool`] to run on. Nothing here knows StableHLO or PJRT: the compiler lowers programs to calls of these functions.
//!
//! A kernel checks the shapes that it is given (a caller's mistake is a panic with both shapes in its message, never
//! an out-of-bounds access) and allocates nothing that grows with the data, unless its documentation says so.

pub mod copy;
pub mod conv;
pub mod dot;
pub mod reduce;
pub mod window;
pub mod convert;
pub mod dtype;
pub mod isa;
pub mod fft;
mod number;
pub mod index;
pub mod linalg;
mod math;
pub mod pool;
pub mod region;
pub mod tile;
pub mod rng;
mod scratch;
pub mod sort;
#[cfg(test)]
mod testing;
pub mod view;

pub use dtype::{ComputeType, DType};
pub use pool::Pool;
pub use view::{Dst, Element, Src};
