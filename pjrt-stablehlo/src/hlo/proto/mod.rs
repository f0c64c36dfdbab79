//! XLA's protocol buffers, as far as the reader uses them.
//!
//! Messages and field numbers are those of XLA's `hlo.proto`, `xla_data.proto` and `xla.proto`. Fields without a use here
//! are left out, and skipped in what a host sends. Instructions stay encoded until they are read, one at a time: decoded
//! they take far more memory than their bytes.

mod array;
mod attribute;
mod instruction;
mod module;
mod sharding;

pub(super) use array::*;
pub(super) use attribute::*;
pub(super) use instruction::*;
pub(super) use module::*;
pub(super) use sharding::*;
