//! Write PJRT plugins for JAX, PyTorch/XLA, GoMLX and ZML in safe Rust.
