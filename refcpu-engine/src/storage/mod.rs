//! Memory: where arrays live, who may write them, and how kernels get at them.
//!
//! This is the only module of the crate with `unsafe` code. What it guarantees to the rest:
//!
//! * every byte that a view shows is initialised and stays allocated while the view exists;
//! * a view to write is the only access to its bytes, except for a view to read of the very same address, and only
//!   where the caller says that the kernel works in place;
//! * memory that others may see (foreign memory, constants, arrays with more than one holder) is never written.
//!
//! All three are checked where views are made ([`Frame::access`]), so a wrong plan can give wrong results or a panic,
//! but never an access out of bounds or a data race.

mod allocator;
mod array;
mod frame;

pub use allocator::{Allocator, AllocatorOptions, Block, OutOfMemory, Statistics};
pub use array::{Array, ForeignBytes, HUGE_ARRAY, byte_len};
pub use frame::{Frame, View};
