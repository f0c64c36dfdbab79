//! The array kernels of refcpu: loops over dense arrays that are compiled ahead of time.
//!
//! All kernels are plain functions of [`Src`] and [`Dst`] views with the element types of [`DType`], which
//! run on a [`Pool`]. They do not depend on StableHLO or PJRT: the compiler lowers programs to calls of these
//! functions.
//!
//! A kernel checks the shapes of its arguments. If a caller passes wrong shapes, the kernel panics with the
//! shapes in its message, and never accesses memory out of bounds. Kernels allocate no memory that grows with
//! the data, unless their documentation states otherwise.
#![allow(
    clippy::extra_unused_type_parameters,
    reason = "a body that is compiled once per instruction set has the set as a parameter even if it does not use it"
)]
#![allow(
    clippy::type_complexity,
    reason = "the arguments of a chunk's callback are described where it is called"
)]

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
mod native;
mod number;
pub mod pool;
pub mod reduce;
mod reduce_op;
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
pub use reduce_op::ReduceOp;
pub use view::{Dst, Element, Src};
