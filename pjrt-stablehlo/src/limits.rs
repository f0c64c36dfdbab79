//! The limits of readers and passes.
//!
//! The limits far exceed the programs of compilers and frameworks. They prevent hostile input from overflowing the stack or
//! using a disproportionate amount of memory. Programs beyond a limit are errors of kind
//! [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge).
//!
//! ```
//! use pjrt_stablehlo::{ErrorKind, limits};
//!
//! let rank = limits::MAX_RANK + 1;
//! let ty = format!("tensor<{}f32>", "1x".repeat(rank));
//! let program = format!("func.func @main(%x: {ty}) -> {ty} {{ return %x : {ty} }}");
//! assert_eq!(pjrt_stablehlo::parse(program).unwrap_err().kind, ErrorKind::TooLarge);
//! ```

/// The maximum number of elements in a list-valued attribute of an operation, such as dimensions or replica groups.
pub const MAX_ATTRIBUTE_ELEMENTS: usize = 1 << 24;

/// The maximum nesting depth of types and attributes.
///
/// Readers, the printer and `Drop` recurse to this depth. With this limit and [`MAX_LOCATION_NESTING`], a stack of 512
/// KiB is sufficient for all functions of this crate, including in builds without optimization.
pub const MAX_NESTING: u32 = 64;

/// The maximum nesting depth of locations. Readers replace deeper parts of a location with an unknown location.
pub const MAX_LOCATION_NESTING: u32 = 256;

/// The maximum nesting depth of regions.
pub const MAX_REGION_DEPTH: usize = 512;

/// The maximum number of parts of one attribute. A part that occurs several times is counted each time.
pub const MAX_ATTRIBUTE_WEIGHT: u32 = 1 << 22;

/// The maximum number of parts of one type. A part that occurs several times is counted each time.
pub const MAX_TYPE_WEIGHT: u32 = 1 << 17;

/// The maximum number of blocks in a quantized type with one scale for all of its blocks.
pub const MAX_EQUAL_BLOCKS: u64 = 1 << 10;

/// The maximum rank of a tensor.
pub const MAX_RANK: usize = 128;

/// The maximum number of axes of a mesh.
pub const MAX_MESH_AXES: usize = 128;

/// The maximum number of elements in operations' attributes (dimension lists, layouts and so on) per byte of a program,
/// in addition to [`ATTRIBUTE_NUMBERS_BASE`].
pub const ATTRIBUTE_NUMBERS_PER_BYTE: usize = 64;

/// The number of elements in operations' attributes that every program may have.
pub const ATTRIBUTE_NUMBERS_BASE: usize = 1 << 20;

/// The maximum number of operations in a function after [`decompose`](crate::passes::decompose) or
/// [`refine_shapes`](crate::passes::refine_shapes) has inlined the functions that it calls.
pub const MAX_INLINED_OPS: usize = 1 << 20;

/// The maximum number of operations in a function after [`decompose`](crate::passes::decompose), unless it had more
/// before. A special function expands to some hundred operations.
pub const MAX_DECOMPOSED_OPS: usize = 1 << 21;

/// The maximum number of operations and values that are created per byte of an HLO program, in addition to
/// [`EXPANSION_BASE`]. A computation that several operations share is copied into a region of each.
pub const EXPANSION_PER_BYTE: usize = 16;

/// The number of operations and values that every HLO program may create.
pub const EXPANSION_BASE: usize = 1 << 18;
