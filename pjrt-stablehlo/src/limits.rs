//! All caps on what readers accept, in one place.
//!
//! They are far beyond what compilers and frameworks write, and there so that hostile input cannot make a reader
//! overflow its stack or take memory out of proportion.

/// Elements that a list-valued attribute of an operation (dimensions, replica groups) may have.
pub const MAX_ATTRIBUTE_ELEMENTS: usize = 1 << 24;

/// Depth to which types and attributes may nest.
pub const MAX_NESTING: usize = 256;

/// Depth to which regions may nest.
pub const MAX_REGION_DEPTH: usize = 512;
