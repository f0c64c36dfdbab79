//! Printing of modules in MLIR's generic form, which every MLIR parser with the dialects reads.

mod attribute;
mod module;
