//! Small programs as MLIR text: those that are read, and those that are refused.

mod reading;
mod refusals;
