//! Attributes: constant data attached to operations, functions and modules.

use std::sync::Arc;

use super::{
    AxisRef, ChannelHandle, ConvDimensionNumbers, DimensionSharding, DotAlgorithm, DotDimensionNumbers,
    ElementType, EnumValue, GatherDimensionNumbers, Literal, Location, Mesh, MeshAxis, OutputOperandAlias,
    ReplicaGroupMeshAxes, ResultAccuracy, ScatterDimensionNumbers, Str, SubAxis, TensorSharding, Type,
};
use crate::Bytes;

/// A constant attached to an operation, function, argument or module. Cheap to clone.
///
/// The attributes that StableHLO defines for an operation are typed fields of its [`Op`](super::Op) struct. This type
/// represents the others: discardable attributes (`mhlo.sharding`, `jax.result_info`), the elements of dictionaries,
/// and attributes of operations outside the op table.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Attribute {
    /// `unit`: has no value; its presence is the information.
    Unit,
    /// `true` or `false`.
    Bool(bool),
    /// `5 : i64`.
    Integer {
        /// The value. For `ui64` values above `i64::MAX`, the `i64` with the same bits.
        value: i64,
        /// The type: an integer type or `index`.
        ty: ElementType,
    },
    /// `1.0 : f32`.
    Float {
        /// The value, which `f64` represents exactly for every float type.
        value: f64,
        /// The type.
        ty: ElementType,
    },
    /// `"text"`.
    String(Str),
    /// A string that is not UTF-8.
    Bytes(Bytes),
    /// A type.
    Type(Type),
    /// `[a, b]`.
    Array(Arc<[Attribute]>),
    /// `{a = 1, b = 2}`.
    Dictionary(DictionaryAttribute),
    /// `@name` or `@outer::@inner`.
    Symbol(Arc<[Str]>),
    /// `array<i64: 1, 2>`, of any integer type.
    IntegerArray {
        /// The type of the elements; `i1` for booleans.
        ty: ElementType,
        /// The values.
        values: Arc<[i64]>,
    },
    /// `array<f32: 1.0, 2.0>`.
    FloatArray {
        /// The type of the elements.
        ty: ElementType,
        /// The values.
        values: Arc<[f64]>,
    },
    /// `dense<[1, 2]> : tensor<2xi64>`.
    Elements(Literal),
    /// `dense_resource<name> : tensor<2xi64>`, with the contents of the resource.
    Resource {
        /// The name of the resource.
        name: Str,
        /// The contents.
        value: Literal,
    },
    /// A source location.
    Location(Location),
    /// A case of a StableHLO enumeration.
    Enum(EnumValue),
    /// `#stablehlo.dot`.
    DotDimensionNumbers(Arc<DotDimensionNumbers>),
    /// `#stablehlo.dot_algorithm`.
    DotAlgorithm(Arc<DotAlgorithm>),
    /// `#stablehlo.conv`.
    ConvDimensionNumbers(Arc<ConvDimensionNumbers>),
    /// `#stablehlo.gather`.
    GatherDimensionNumbers(Arc<GatherDimensionNumbers>),
    /// `#stablehlo.scatter`.
    ScatterDimensionNumbers(Arc<ScatterDimensionNumbers>),
    /// `#stablehlo.channel_handle`.
    ChannelHandle(ChannelHandle),
    /// `#stablehlo.result_accuracy`.
    ResultAccuracy(Arc<ResultAccuracy>),
    /// `#stablehlo.output_operand_alias`.
    OutputOperandAlias(Arc<OutputOperandAlias>),
    /// `#stablehlo.replica_group_mesh_axes`.
    ReplicaGroupMeshAxes(Arc<ReplicaGroupMeshAxes>),
    /// `#stablehlo.bounds`.
    Bounds(Arc<[i64]>),
    /// `#sdy.mesh` or `#stablehlo.mesh`.
    Mesh(Arc<Mesh>),
    /// `#stablehlo.axis_ref` or `#sdy.axis_ref`.
    AxisRef(Arc<AxisRef>),
    /// `#sdy.sub_axis_info` or `#stablehlo.sub_axis_info`, a part of an [`Attribute::AxisRef`].
    SubAxis(SubAxis),
    /// `#sdy.mesh_axis` or `#stablehlo.mesh_axis`, a part of an [`Attribute::Mesh`].
    MeshAxis(Arc<MeshAxis>),
    /// `#sdy.dimension_sharding`, a part of an [`Attribute::Sharding`].
    DimensionSharding(Arc<DimensionSharding>),
    /// `#sdy.sharding`.
    Sharding(Arc<TensorSharding>),
    /// `#sdy.sharding_per_value`.
    ShardingPerValue(Arc<[TensorSharding]>),
    /// `#sdy.manual_axes`.
    ManualAxes(Arc<[Str]>),
    /// An attribute of a dialect that this crate does not model, as text without the leading `#`.
    Opaque(Str),
}

impl Attribute {
    /// Returns the text of a string attribute; `None` for other attributes.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Attribute::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the size of the attribute in 64-bit numbers, for the limits of readers.
    pub(crate) fn numbers(&self) -> usize {
        match self {
            Attribute::Elements(literal) | Attribute::Resource { value: literal, .. } => {
                usize::try_from(literal.num_elements()).unwrap_or(usize::MAX)
            }
            Attribute::IntegerArray { values, .. } => values.len(),
            Attribute::FloatArray { values, .. } => values.len(),
            Attribute::Bounds(values) => values.len(),
            Attribute::Array(elements) => {
                elements.iter().fold(elements.len(), |sum, element| sum.saturating_add(element.numbers()))
            }
            Attribute::DotDimensionNumbers(numbers) => {
                numbers.lhs_batching_dimensions.len()
                    + numbers.rhs_batching_dimensions.len()
                    + numbers.lhs_contracting_dimensions.len()
                    + numbers.rhs_contracting_dimensions.len()
            }
            Attribute::ConvDimensionNumbers(numbers) => {
                numbers.input_spatial_dimensions.len()
                    + numbers.kernel_spatial_dimensions.len()
                    + numbers.output_spatial_dimensions.len()
            }
            Attribute::GatherDimensionNumbers(numbers) => {
                numbers.offset_dims.len()
                    + numbers.collapsed_slice_dims.len()
                    + numbers.operand_batching_dims.len()
                    + numbers.start_indices_batching_dims.len()
                    + numbers.start_index_map.len()
            }
            Attribute::ScatterDimensionNumbers(numbers) => {
                numbers.update_window_dims.len()
                    + numbers.inserted_window_dims.len()
                    + numbers.input_batching_dims.len()
                    + numbers.scatter_indices_batching_dims.len()
                    + numbers.scatter_dims_to_operand_dims.len()
            }
            Attribute::Mesh(mesh) => mesh.numbers(),
            Attribute::Sharding(sharding) => sharding.numbers(),
            Attribute::ShardingPerValue(shardings) => {
                shardings.iter().map(TensorSharding::numbers).fold(0, usize::saturating_add)
            }
            Attribute::ReplicaGroupMeshAxes(groups) => {
                groups.mesh.numbers() + AxisRef::NUMBERS * groups.axes.len()
            }
            Attribute::ManualAxes(axes) => 2 * axes.len(),
            _ => 1,
        }
    }

    /// Returns the value of an integer attribute; `None` for other attributes.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Attribute::Integer { value, .. } => Some(*value),
            _ => None,
        }
    }

    /// Returns the value of a boolean attribute, or `true` for `unit`; `None` for other attributes.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Attribute::Bool(value) => Some(*value),
            Attribute::Unit => Some(true),
            _ => None,
        }
    }

    /// Returns the elements of an array attribute; `None` for other attributes.
    pub fn as_array(&self) -> Option<&[Attribute]> {
        match self {
            Attribute::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// Returns the entries of a dictionary attribute; `None` for other attributes.
    pub fn as_dictionary(&self) -> Option<&DictionaryAttribute> {
        match self {
            Attribute::Dictionary(entries) => Some(entries),
            _ => None,
        }
    }

    /// Returns the kind of the attribute with its article, for messages: "an integer".
    pub fn kind(&self) -> &'static str {
        match self {
            Attribute::Unit => "unit",
            Attribute::Bool(_) => "a boolean",
            Attribute::Integer { .. } => "an integer",
            Attribute::Float { .. } => "a float",
            Attribute::String(_) => "a string",
            Attribute::Bytes(_) => "a string that is not UTF-8",
            Attribute::Type(_) => "a type",
            Attribute::Array(_) => "an array",
            Attribute::Dictionary(_) => "a dictionary",
            Attribute::Symbol(_) => "a symbol reference",
            Attribute::IntegerArray { .. } => "a dense integer array",
            Attribute::FloatArray { .. } => "a dense float array",
            Attribute::Elements(_) => "dense elements",
            Attribute::Resource { .. } => "a dense resource",
            Attribute::Location(_) => "a location",
            Attribute::Enum(value) => value.names().0,
            Attribute::DotDimensionNumbers(_) => "dot dimension numbers",
            Attribute::DotAlgorithm(_) => "a dot algorithm",
            Attribute::ConvDimensionNumbers(_) => "convolution dimension numbers",
            Attribute::GatherDimensionNumbers(_) => "gather dimension numbers",
            Attribute::ScatterDimensionNumbers(_) => "scatter dimension numbers",
            Attribute::ChannelHandle(_) => "a channel handle",
            Attribute::ResultAccuracy(_) => "a result accuracy",
            Attribute::OutputOperandAlias(_) => "an output operand alias",
            Attribute::ReplicaGroupMeshAxes(_) => "mesh axes of replica groups",
            Attribute::Bounds(_) => "bounds",
            Attribute::Mesh(_) => "a mesh",
            Attribute::AxisRef(_) => "a reference to a mesh axis",
            Attribute::SubAxis(_) => "a part of a mesh axis",
            Attribute::MeshAxis(_) => "a mesh axis",
            Attribute::DimensionSharding(_) => "a dimension's sharding",
            Attribute::Sharding(_) => "a sharding",
            Attribute::ShardingPerValue(_) => "a sharding per value",
            Attribute::ManualAxes(_) => "manual axes",
            Attribute::Opaque(_) => "an attribute of an unknown dialect",
        }
    }
}

impl Attribute {
    /// Returns the kind and the type of the attribute, for messages.
    pub(crate) fn description(&self) -> String {
        match self {
            Attribute::Integer { ty, .. } | Attribute::Float { ty, .. } => {
                format!("{} of type {ty}", self.kind())
            }
            Attribute::IntegerArray { ty, .. } | Attribute::FloatArray { ty, .. } => {
                format!("an array of {ty}")
            }
            Attribute::Elements(literal) => format!("dense elements of type {}", literal.ty()),
            Attribute::Resource { value, .. } => format!("a dense resource of type {}", value.ty()),
            Attribute::Type(ty) => format!("the type {ty}"),
            _ => self.kind().to_owned(),
        }
    }
}

impl From<&str> for Attribute {
    fn from(text: &str) -> Self {
        Attribute::String(text.into())
    }
}

impl From<bool> for Attribute {
    fn from(value: bool) -> Self {
        Attribute::Bool(value)
    }
}

impl From<i64> for Attribute {
    /// Creates an attribute of type `i64`.
    fn from(value: i64) -> Self {
        Attribute::Integer { value, ty: ElementType::I64 }
    }
}

/// Named attributes, sorted by name. Takes the size of two pointers, and is cheap to clone.
///
/// ```
/// use pjrt_stablehlo::ir::{Attribute, DictionaryAttribute};
///
/// let attributes = DictionaryAttribute::new(vec![("b".into(), 1.into()), ("a".into(), true.into())]);
/// assert_eq!(attributes.get("b").and_then(Attribute::as_i64), Some(1));
/// assert_eq!(attributes.entries()[0].0, "a");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DictionaryAttribute(Option<Arc<[(Str, Attribute)]>>);

impl DictionaryAttribute {
    /// Creates a dictionary and sorts its entries by name, as MLIR does. If several entries have one name,
    /// [`DictionaryAttribute::get`] returns the first.
    pub fn new(mut entries: Vec<(Str, Attribute)>) -> Self {
        if !entries.is_sorted_by(|(one, _), (other, _)| one <= other) {
            entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        }
        DictionaryAttribute(if entries.is_empty() { None } else { Some(entries.into()) })
    }

    /// Returns the dictionaries of arguments or results, or an empty list if all dictionaries are empty.
    pub(crate) fn unless_empty(dictionaries: Vec<DictionaryAttribute>) -> Vec<DictionaryAttribute> {
        if dictionaries.iter().all(DictionaryAttribute::is_empty) { Vec::new() } else { dictionaries }
    }

    /// Returns the entries, sorted by name.
    pub fn entries(&self) -> &[(Str, Attribute)] {
        self.0.as_deref().unwrap_or_default()
    }

    /// Returns the attribute with this name; `None` if there is none.
    pub fn get(&self, name: &str) -> Option<&Attribute> {
        self.entries().iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries().len()
    }

    /// Returns `true` if the dictionary is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}
