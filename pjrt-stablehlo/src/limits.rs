//! All caps on what readers accept, in one place.
//!
//! They are far beyond what compilers and frameworks write, and there so that hostile input cannot make a reader
//! overflow its stack or take memory out of proportion.

/// Elements that a list-valued attribute of an operation (dimensions, replica groups) may have.
pub const MAX_ATTRIBUTE_ELEMENTS: usize = 1 << 24;

/// Depth to which types and attributes may nest.
///
/// Readers, the printer and `Drop` recurse this deep; with it and [`MAX_LOCATION_NESTING`] a stack of 512 KiB is enough for
/// everything that this crate does, in builds without optimisation too.
pub const MAX_NESTING: u32 = 64;

/// Depth to which locations may nest; a part of a location that nests deeper is replaced by an unknown location.
pub const MAX_LOCATION_NESTING: u32 = 256;

/// Depth to which regions may nest.
pub const MAX_REGION_DEPTH: usize = 512;

/// Parts of one attribute, each counted as often as it occurs in it.
pub const MAX_ATTRIBUTE_WEIGHT: u32 = 1 << 22;

/// Parts of one type, each counted as often as it occurs in it.
pub const MAX_TYPE_WEIGHT: u32 = 1 << 17;

/// Blocks that a quantized type may have which gives one scale for all of them.
pub const MAX_EQUAL_BLOCKS: u64 = 1 << 10;

/// Dimensions that a tensor may have.
pub const MAX_RANK: usize = 128;

/// Axes that a mesh of devices may have.
pub const MAX_MESH_AXES: usize = 128;

/// Numbers and entries in dimension lists, layouts and other attributes of operations that one program may have for each byte of
/// input, beyond [`ATTRIBUTE_NUMBERS_BASE`].
pub const ATTRIBUTE_NUMBERS_PER_BYTE: usize = 64;

/// Numbers in attributes of operations that any program may have.
pub const ATTRIBUTE_NUMBERS_BASE: usize = 1 << 20;

/// Operations that a function may have once the functions that it calls are inlined into it, by
/// [`decompose`](crate::decompose::decompose).
pub const MAX_INLINED_OPS: usize = 1 << 20;

/// Operations that a function may have once it is decomposed ([`decompose`](crate::decompose::decompose)), unless it had more:
/// a special function becomes some hundred.
pub const MAX_DECOMPOSED_OPS: usize = 1 << 21;

/// Operations and values that an HLO program may become for each of its bytes, beyond [`EXPANSION_BASE`]: computations that
/// several operations share become a region of each.
pub const EXPANSION_PER_BYTE: usize = 16;

/// Operations and values that any HLO program may become.
pub const EXPANSION_BASE: usize = 1 << 18;
