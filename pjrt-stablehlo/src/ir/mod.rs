//! The intermediate representation: modules, functions, operations, types, attributes.

mod attribute;
mod body;
mod codec;
mod defaults;
mod element_type;
mod enums;
mod literal;
mod location;
mod module;
mod op;
mod op_attributes;
pub mod ops;
mod own_attributes;
mod quantized;
mod replica_groups;
mod sharding;
mod string;
mod types;

pub use attribute::{Attribute, DictionaryAttribute};
pub use body::{
    Block, BlockId, Body, Definition, OpId, Operation, Region, RegionId, Value, ValueId, ValueRange,
};
pub use element_type::{ElementKind, ElementType};
pub use enums::{
    ComparisonDirection, ComparisonType, CustomCallApiVersion, EnumValue, FftType, Precision,
    ResultAccuracyMode, RngAlgorithm, RngDistribution, TransposeKind,
};
pub(crate) use literal::integer_value;
pub use literal::{Literal, LiteralData, LiteralError};
pub use location::{BriefLocation, Location, LocationKind};
pub use module::{Function, MeshDeclaration, Module, Visibility};
pub use op::{AttributeError, AttributeSpec, GroupSpec, OpInfo, OtherOp, Trait, Variadicity, VhloForm};
pub use op_attributes::{
    BackendConfig, ChannelHandle, ConvDimensionNumbers, DotAlgorithm, DotDimensionNumbers,
    GatherDimensionNumbers, IntPairs, Ints, Layouts, MeshReference, OutputOperandAlias, PrecisionConfig,
    ResultAccuracy, ScatterDimensionNumbers, Tilings,
};
pub use ops::{Op, OpCode};
pub(crate) use own_attributes::{Presence, is_unknown, own_attributes, similar_operation};
pub use quantized::{QuantizationBlocks, QuantizedType};
pub use replica_groups::{ReplicaGroupMeshAxes, ReplicaGroups};
pub use sharding::{AxisRef, DimensionSharding, Mesh, MeshAxis, SubAxis, TensorSharding};
pub use string::Str;
pub use types::{DYNAMIC, Dim, FunctionType, TensorType, Type};

use std::fmt;

/// Writes bytes between quotes as MLIR does: printable ASCII as it is, the rest as `\xx`.
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

/// Writes a finite float with the decimal point that MLIR wants: `1.0e0`.
pub(crate) fn fmt_finite(f: &mut fmt::Formatter<'_>, value: f64) -> fmt::Result {
    let text = format!("{value:e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) if !mantissa.contains('.') => write!(f, "{mantissa}.0e{exponent}"),
        _ => f.write_str(&text),
    }
}
