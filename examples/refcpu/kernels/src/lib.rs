//! The array kernels of refcpu.
