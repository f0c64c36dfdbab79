//! Read, check and print StableHLO programs without MLIR or LLVM.
