//! Prints modules in MLIR's generic form, which every MLIR parser that knows the dialects reads.

mod attribute;
mod module;
