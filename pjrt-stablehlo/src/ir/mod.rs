//! The intermediate representation: modules, functions, operations, types and attributes.
//!
//! ```
//! use pjrt_stablehlo::ir::{Attribute, BriefLocation, Function, Op, Type};
//!
//! let module = pjrt_stablehlo::parse(
//!     r#"func.func @main(%x: tensor<2x3xf32> {jax.buffer_donor = true}) -> tensor<2x3xf32> {
//!         %0 = stablehlo.cosine %x : tensor<2x3xf32> loc("model.py":12:4)
//!         return %0 : tensor<2x3xf32>
//!     }"#
//!         .to_owned(),
//! )?;
//! let main: &Function = module.main().unwrap();
//! assert_eq!(main.argument_attribute(0, "jax.buffer_donor"), Some(&Attribute::Bool(true)));
//!
//! let (_, cosine) = main.ops().next().unwrap();
//! assert!(matches!(cosine.kind, Op::Cosine(_)));
//! assert_eq!(cosine.location.brief().to_string(), "\"model.py\":12:4");
//!
//! let Type::Tensor(tensor) = main.body.ty(cosine.result()) else { panic!("expected a tensor") };
//! assert_eq!(tensor.dims(), [2, 3]);
//! # Ok::<(), pjrt_stablehlo::Error>(())
//! ```

mod attribute;
mod backend_config;
mod body;
pub(crate) mod chlo_attributes;
mod codec;
mod defaults;
mod define_ops;
mod dim;
mod element_type;
mod enums;
pub(crate) mod error;
mod fields;
mod floats;
mod ids;
pub mod indexing;
mod ints;
mod last_uses;
mod literal;
mod location;
mod module;
mod op;
mod op_attributes;
mod op_info;
mod operation;
pub mod ops;
mod own_attributes;
mod quantized;
mod ragged_dot;
mod reducer;
mod replica_groups;
pub mod scalar;
mod sharding;
mod string;
mod types;

pub use attribute::{Attribute, DictionaryAttribute};
pub use backend_config::BackendConfig;
pub use body::{Block, Body, Definition, Region, Value};
pub(crate) use codec::AttributeError;
pub use dim::{DYNAMIC, Dim};
pub use element_type::{ElementKind, ElementType};
pub use enums::{
    ComparisonDirection, ComparisonType, CustomCallApiVersion, EnumValue, FftType, Precision,
    ResultAccuracyMode, RngAlgorithm, RngDistribution, TransposeKind,
};
pub(crate) use fields::{FieldReader, FieldWriter, Fields};
pub(crate) use floats::{float_bits, float_value};
pub use ids::{BlockId, OpId, RegionId, ValueId, ValueRange};
pub use ints::{IntPairs, Ints};
pub use last_uses::LastUses;
pub(crate) use literal::integer_value;
pub use literal::{Literal, LiteralData, LiteralError};
pub use location::{BriefLocation, Location, LocationKind};
pub use module::{Function, MeshDeclaration, Module, Visibility};
pub use op_attributes::{
    ChannelHandle, ConvDimensionNumbers, DotAlgorithm, DotDimensionNumbers, GatherDimensionNumbers, Layouts,
    OutputOperandAlias, PrecisionConfig, ReplicaGroups, ResultAccuracy, ScatterDimensionNumbers, Tilings,
};
pub use op_info::{AttributeSpec, GroupSpec, OpInfo, Trait, Variadicity, VhloForm};
pub use operation::Operation;
pub use ops::{Op, OpCode, OtherOp};
pub(crate) use own_attributes::{Presence, is_unknown, own_attributes, similar_operation};
pub use quantized::{QuantizationBlocks, QuantizedType};
pub(crate) use ragged_dot::RaggedDotDimensionNumbers;
pub use reducer::Reducer;
pub use sharding::{
    AxisRef, DimensionSharding, Mesh, MeshAxis, MeshReference, Reduction, ReplicaGroupMeshAxes, SubAxis,
    TensorSharding,
};
pub use string::Str;
pub use types::{FunctionType, TensorType, Type};

use std::fmt;

/// Writes bytes between quotes in MLIR's syntax: printable ASCII is written as it is, other bytes are written as `\xx`.
pub(crate) fn fmt_quoted(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    f.write_str("\"")?;
    let mut rest = bytes;
    while !rest.is_empty() {
        let plain = rest
            .iter()
            .take_while(|&&byte| (b' '..=b'~').contains(&byte) && byte != b'"' && byte != b'\\')
            .count();
        f.write_str(std::str::from_utf8(&rest[..plain]).unwrap_or_default())?;
        rest = &rest[plain..];
        if let [byte, tail @ ..] = rest {
            match byte {
                b'\\' => f.write_str("\\\\")?,
                byte => write!(f, "\\{byte:02X}")?,
            }
            rest = tail;
        }
    }
    f.write_str("\"")
}

/// Writes a finite float with the decimal point that MLIR's syntax requires: `1.0e0`.
pub(crate) fn fmt_finite(f: &mut fmt::Formatter<'_>, value: f64) -> fmt::Result {
    let text = format!("{value:e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) if !mantissa.contains('.') => write!(f, "{mantissa}.0e{exponent}"),
        _ => f.write_str(&text),
    }
}
