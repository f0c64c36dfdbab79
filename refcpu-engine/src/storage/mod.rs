//! Memory: allocation, arrays, and the views that kernels receive.
//!
//! This is the only module of the crate with `unsafe` code. It guarantees:
//!
//! * Every byte of a view is initialized, and stays allocated while the view exists.
//! * A view for writing is the only access to its bytes. The exception is a view for reading at the same address, and only if
//!   the caller states that the kernel works in place.
//! * Memory that others may read is never written: foreign memory, constants, and arrays with more than one holder.
//!
//! [`Frame::access`] checks these when it creates views. A wrong plan can therefore cause wrong results or a panic, but no
//! access out of bounds and no data race.

mod allocator;
mod array;
mod frame;
mod rows;
mod view;

pub use allocator::{Allocator, AllocatorOptions, Block, OutOfMemory, Statistics};
pub use array::{Array, ForeignBytes, HUGE_ARRAY, byte_len};
pub use frame::Frame;
pub use rows::{Part, Rows};
pub use view::View;
