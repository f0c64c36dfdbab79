//! Conversion between [`Attribute`]s and the typed attributes of operations.
//!
//! There is one codec for each encoding of an attribute in StableHLO programs. The op table selects the codec of each
//! attribute.

use std::marker::PhantomData;

use super::*;

/// An error about an attribute of an operation in the op table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("attribute '{attribute}' of {op}: expected {expected}, found {found}")]
pub(crate) struct AttributeError {
    /// The operation.
    pub(crate) op: Str,
    /// The attribute.
    pub(crate) attribute: &'static str,
    /// The expected attribute.
    pub(crate) expected: &'static str,
    /// The attribute that was found, or `nothing`.
    pub(crate) found: Str,
}

impl AttributeError {
    /// Returns the message without the operation, for errors that state the operation separately.
    pub(crate) fn message(&self) -> String {
        format!("attribute '{}': expected {}, found {}", self.attribute, self.expected, self.found)
    }
}

/// An encoding of a typed attribute.
pub(crate) trait Codec {
    /// The typed attribute.
    type Value;
    /// The expected attribute, for messages.
    const EXPECTED: &'static str;
    /// `true` if the attribute has no default.
    const REQUIRED: bool;
    /// Returns the typed form of an attribute; `None` if the attribute does not have the expected kind.
    fn decode(attribute: &Attribute) -> Option<Self::Value>;
    /// Returns the default of an absent attribute; `None` if the attribute is required.
    fn absent() -> Option<Self::Value> {
        None
    }
    /// Returns `true` if programs can omit the attribute because it has its default.
    fn is_default(_value: &Self::Value) -> bool {
        false
    }
    /// Returns the attribute for a typed value; `None` if no attribute represents it.
    fn encode(value: &Self::Value) -> Option<Attribute>;
}

impl ReplicaGroups {
    /// Returns the groups that an attribute describes; `None` if it is neither a matrix of integers nor mesh axes.
    pub(crate) fn from_attribute(attribute: &Attribute) -> Option<Self> {
        Groups::decode(attribute)
    }
}

/// Decodes the attribute `name` of the operation `op`.
pub(crate) fn decode<C: Codec>(
    op: &'static str,
    name: &'static str,
    attribute: Option<Attribute>,
) -> Result<C::Value, AttributeError> {
    let value = match &attribute {
        Some(attribute) => C::decode(attribute),
        None => C::absent(),
    };
    value.ok_or_else(|| {
        let found = attribute.map_or_else(|| "nothing".to_owned(), |attribute| attribute.description());
        AttributeError { op: op.into(), attribute: name, expected: C::EXPECTED, found: found.into() }
    })
}

/// Encodes a typed attribute, and adds its name. Returns `None` for a default unless `all` attributes are wanted.
pub(crate) fn encode<C: Codec>(name: &'static str, value: &C::Value, all: bool) -> Option<(Str, Attribute)> {
    if !all && C::is_default(value) {
        return None;
    }
    C::encode(value).map(|attribute| (name.into(), attribute))
}

macro_rules! required {
    () => {
        true
    };
    ($absent:expr) => {
        false
    };
}

macro_rules! codecs {
    ($($(#[doc = $doc:literal])+ $name:ident: $value:ty = $expected:literal,
        decode |$attribute:ident| $decode:expr, $(absent $absent:expr,
        default |$value_name:ident| $default:expr,)? encode |$it:ident| $encode:expr;)*) => {
        $(
            $(#[doc = $doc])+
            pub(crate) struct $name;

            impl Codec for $name {
                type Value = $value;
                const EXPECTED: &'static str = $expected;

                fn decode($attribute: &Attribute) -> Option<$value> {
                    $decode
                }

                const REQUIRED: bool = required!($($absent)?);

                $(fn absent() -> Option<$value> {
                    Some($absent)
                }

                fn is_default($value_name: &$value) -> bool {
                    $default
                })?

                fn encode($it: &$value) -> Option<Attribute> {
                    $encode
                }
            }
        )*
    };
}

fn integer(value: i64, ty: ElementType) -> Option<Attribute> {
    Some(Attribute::Integer { value, ty })
}

/// Returns the value of an integer attribute of this type.
fn typed_integer(attribute: &Attribute, expected: ElementType) -> Option<i64> {
    match *attribute {
        Attribute::Integer { value, ty } if ty == expected => Some(value),
        _ => None,
    }
}

fn boolean(attribute: &Attribute) -> Option<bool> {
    match *attribute {
        Attribute::Bool(value) => Some(value),
        _ => None,
    }
}

/// Returns integers of this type, encoded as an array, or as dense elements as in older programs.
fn ints(attribute: &Attribute, expected: ElementType) -> Option<Ints> {
    match attribute {
        Attribute::IntegerArray { values, ty } if *ty == expected => Some((**values).into()),
        Attribute::Elements(literal) | Attribute::Resource { value: literal, .. }
            if literal.ty().element_type() == expected =>
        {
            literal.to_i64s(crate::limits::MAX_ATTRIBUTE_ELEMENTS).map(Into::into)
        }
        _ => None,
    }
}

/// Returns a layout: a list of dimensions.
fn layout(attribute: &Attribute) -> Option<Ints> {
    ints(attribute, ElementType::Index)
}

fn int_array(values: &[i64]) -> Attribute {
    Attribute::IntegerArray { ty: ElementType::I64, values: values.into() }
}

fn matrix(attribute: &Attribute) -> Option<(usize, Ints)> {
    let Attribute::Elements(literal) = attribute else { return None };
    let columns = match literal.ty().dims() {
        [_, columns] => usize::try_from(*columns).ok()?,
        _ => return None,
    };
    Some((columns, ints(attribute, ElementType::I64)?))
}

fn int_elements(dims: &[i64], values: &[i64], ty: ElementType) -> Option<Attribute> {
    let width = ty.byte_width();
    let bytes: Vec<u8> =
        values.iter().flat_map(|value| value.to_le_bytes().into_iter().take(width)).collect();
    Literal::new(TensorType::new(ty, dims), LiteralData::Dense(bytes.into())).ok().map(Attribute::Elements)
}

fn pairs(attribute: &Attribute) -> Option<IntPairs> {
    let (2, values) = matrix(attribute)? else { return None };
    Some(values.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect())
}

fn pair_elements(pairs: &[[i64; 2]]) -> Option<Attribute> {
    let values: Vec<i64> = pairs.iter().flatten().copied().collect();
    int_elements(&[pairs.len() as i64, 2], &values, ElementType::I64)
}

fn symbol(attribute: &Attribute) -> Option<Str> {
    match attribute {
        Attribute::Symbol(path) if path.len() == 1 => Some(path[0].clone()),
        Attribute::String(name) => Some(name.clone()),
        _ => None,
    }
}

fn symbol_attribute(name: &Str) -> Attribute {
    Attribute::Symbol([name.clone()].into())
}

fn list<T>(attribute: &Attribute, element: impl Fn(&Attribute) -> Option<T>) -> Option<Box<[T]>> {
    attribute.as_array()?.iter().map(element).collect()
}

fn array<T>(values: &[T], element: impl Fn(&T) -> Option<Attribute>) -> Option<Attribute> {
    values.iter().map(element).collect::<Option<Vec<_>>>().map(|elements| Attribute::Array(elements.into()))
}

fn layout_attribute(layout: &Ints) -> Option<Attribute> {
    int_elements(&[layout.len() as i64], layout, ElementType::Index)
}

codecs! {
    /// `5 : i64`.
    I64: i64 = "an integer of type i64",
        decode |attribute| typed_integer(attribute, ElementType::I64),
        encode |value| integer(*value, ElementType::I64);
    /// `5 : i32`.
    I32: i64 = "an integer of type i32",
        decode |attribute| typed_integer(attribute, ElementType::I32),
        encode |value| integer(*value, ElementType::I32);
    /// `5 : i32`; 0 if absent.
    OptionalI32: i64 = "an integer of type i32",
        decode |attribute| typed_integer(attribute, ElementType::I32),
        absent 0,
        default |value| *value == 0,
        encode |value| integer(*value, ElementType::I32);
    /// `5 : i64`; -1 if absent.
    SortDimension: i64 = "an integer of type i64",
        decode |attribute| typed_integer(attribute, ElementType::I64),
        absent -1,
        default |value| *value == -1,
        encode |value| integer(*value, ElementType::I64);
    /// `1.0 : f32`.
    F32: f32 = "a float of type f32",
        decode |attribute| match attribute {
            Attribute::Float { value, ty: ElementType::F32 } => Some(*value as f32),
            _ => None,
        },
        encode |value| Some(Attribute::Float { value: f64::from(*value), ty: ElementType::F32 });
    /// `true`.
    Bool: bool = "a boolean",
        decode |attribute| boolean(attribute),
        encode |value| Some(Attribute::Bool(*value));
    /// `true`; `false` if absent.
    OptionalBool: bool = "a boolean",
        decode |attribute| boolean(attribute),
        absent false,
        default |value| !*value,
        encode |value| Some(Attribute::Bool(*value));
    /// `unit` for `true`; absent for `false`.
    UnitFlag: bool = "unit",
        decode |attribute| attribute.as_bool(),
        absent false,
        default |value| !*value,
        encode |value| Some(if *value { Attribute::Unit } else { Attribute::Bool(false) });
    /// `"text"`.
    Text: Str = "a string",
        decode |attribute| match attribute {
            Attribute::String(text) => Some(text.clone()),
            _ => None,
        },
        encode |value| Some(Attribute::String(value.clone()));
    /// `"text"`; empty if absent.
    OptionalText: Str = "a string",
        decode |attribute| Text::decode(attribute),
        absent Str::default(),
        default |value| value.is_empty(),
        encode |value| Text::encode(value);
    /// `@name`.
    Symbol: Str = "a symbol reference",
        decode |attribute| symbol(attribute),
        encode |value| Some(symbol_attribute(value));
    /// `[@a, @b]`; empty if absent.
    OptionalSymbols: Box<[Str]> = "an array of symbol references",
        decode |attribute| list(attribute, symbol),
        absent Box::default(),
        default |value| value.is_empty(),
        encode |value| array(value, |name| Some(symbol_attribute(name)));
    /// `array<i64: 1, 2>`.
    IntArray: Ints = "integers of type i64",
        decode |attribute| ints(attribute, ElementType::I64),
        encode |value| Some(int_array(value));
    /// `array<i64: 1, 2>`; empty if absent.
    OptionalIntArray: Ints = "integers of type i64",
        decode |attribute| ints(attribute, ElementType::I64),
        absent Ints::default(),
        default |value| value.is_empty(),
        encode |value| Some(int_array(value));
    /// `array<i64: 1, 2>`; strides and dilations, which readers set to ones if absent.
    Factors: Ints = "integers of type i64",
        decode |attribute| ints(attribute, ElementType::I64),
        absent Ints::default(),
        default |value| value.iter().all(|&value| value == 1),
        encode |value| Some(int_array(value));
    /// `array<i1: true, false>`; all `false` if absent, which readers fill in.
    OptionalBoolArray: Box<[bool]> = "booleans",
        decode |attribute| Some(ints(attribute, ElementType::I1)?.iter().map(|&value| value != 0).collect()),
        absent Box::default(),
        default |value| value.iter().all(|&value| !value),
        encode |value| Some(Attribute::IntegerArray {
            ty: ElementType::I1,
            values: value.iter().map(|&value| i64::from(value)).collect(),
        });
    /// `dense<[[0, 1]]> : tensor<1x2xi64>`.
    PairMatrix: IntPairs = "pairs of integers of type i64",
        decode |attribute| pairs(attribute),
        encode |value| pair_elements(value);
    /// `dense<[[0, 1]]> : tensor<1x2xi64>`; empty if absent.
    OptionalPairs: IntPairs = "pairs of integers of type i64",
        // MLIR's verifier accepts an empty attribute of any shape here.
        decode |attribute| match attribute {
            Attribute::Elements(literal) if literal.num_elements() == 0 => Some(IntPairs::default()),
            attribute => pairs(attribute),
        },
        absent IntPairs::default(),
        default |value| value.is_empty(),
        encode |value| pair_elements(value);
    /// `dense<[[0, 1]]> : tensor<1x2xi64>`; zeros if absent, which readers fill in.
    Padding: IntPairs = "pairs of integers of type i64",
        decode |attribute| pairs(attribute),
        absent IntPairs::default(),
        default |value| value.iter().flatten().all(|&value| value == 0),
        encode |value| pair_elements(value);
    /// `dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>` or `#stablehlo.replica_group_mesh_axes<...>`.
    Groups: ReplicaGroups = "a matrix of integers of type i64, or mesh axes",
        decode |attribute| match attribute {
            Attribute::ReplicaGroupMeshAxes(axes) => Some(ReplicaGroups::MeshAxes(Box::new((**axes).clone()))),
            matrix_attribute => {
                let (group_size, ids) = matrix(matrix_attribute)?;
                Some(ReplicaGroups::Dense { group_size, ids })
            }
        },
        encode |value| match value {
            ReplicaGroups::Dense { group_size, ids } => {
                let rows = ids.len().checked_div(*group_size).unwrap_or(0);
                int_elements(&[rows as i64, *group_size as i64], ids, ElementType::I64)
            }
            ReplicaGroups::MeshAxes(axes) => Some(Attribute::ReplicaGroupMeshAxes((**axes).clone().into())),
        };
    /// `#stablehlo.channel_handle<handle = 1, type = 0>`.
    Channel: ChannelHandle = "a channel handle",
        decode |attribute| match attribute {
            Attribute::ChannelHandle(handle) => Some(*handle),
            _ => None,
        },
        encode |value| Some(Attribute::ChannelHandle(*value));
    /// `#stablehlo.channel_handle<...>`; optional.
    OptionalChannel: Option<ChannelHandle> = "a channel handle",
        decode |attribute| Channel::decode(attribute).map(Some),
        absent None,
        default |value| value.is_none(),
        encode |value| Some(Attribute::ChannelHandle(value.unwrap_or_default()));
    /// `[#stablehlo<precision DEFAULT>, ...]`; empty if absent.
    Precisions: PrecisionConfig = "an array of precisions",
        decode |attribute| list(attribute, Case::<Precision>::decode),
        absent PrecisionConfig::default(),
        default |value| value.iter().all(|&case| case == Precision::Default),
        encode |value| array(value, |case| Some(Attribute::Enum((*case).into())));
    /// `#stablehlo.dot_algorithm<...>`; optional.
    Algorithm: Option<DotAlgorithm> = "a dot algorithm",
        decode |attribute| match attribute {
            Attribute::DotAlgorithm(algorithm) => Some(Some((**algorithm).clone())),
            _ => None,
        },
        absent None,
        default |value| value.is_none(),
        encode |value| Some(match value {
            Some(algorithm) => Attribute::DotAlgorithm(algorithm.clone().into()),
            None => Attribute::Type(Type::None),
        });
    /// `#stablehlo.dot<...>`.
    DotDimensions: DotDimensionNumbers = "dot dimension numbers",
        decode |attribute| match attribute {
            Attribute::DotDimensionNumbers(numbers) => Some((**numbers).clone()),
            _ => None,
        },
        encode |value| Some(Attribute::DotDimensionNumbers(value.clone().into()));
    /// `#stablehlo.conv<...>`.
    ConvDimensions: ConvDimensionNumbers = "convolution dimension numbers",
        decode |attribute| match attribute {
            Attribute::ConvDimensionNumbers(numbers) => Some((**numbers).clone()),
            _ => None,
        },
        encode |value| Some(Attribute::ConvDimensionNumbers(value.clone().into()));
    /// `#stablehlo.gather<...>`.
    GatherDimensions: GatherDimensionNumbers = "gather dimension numbers",
        decode |attribute| match attribute {
            Attribute::GatherDimensionNumbers(numbers) => Some((**numbers).clone()),
            _ => None,
        },
        encode |value| Some(Attribute::GatherDimensionNumbers(value.clone().into()));
    /// `#stablehlo.scatter<...>`.
    ScatterDimensions: ScatterDimensionNumbers = "scatter dimension numbers",
        decode |attribute| match attribute {
            Attribute::ScatterDimensionNumbers(numbers) => Some((**numbers).clone()),
            _ => None,
        },
        encode |value| Some(Attribute::ScatterDimensionNumbers(value.clone().into()));
    /// `#stablehlo.result_accuracy<...>`; the default accuracy if absent.
    Accuracy: ResultAccuracy = "a result accuracy",
        decode |attribute| match attribute {
            Attribute::ResultAccuracy(accuracy) => Some(**accuracy),
            _ => None,
        },
        absent ResultAccuracy::default(),
        default |value| *value == ResultAccuracy::default(),
        encode |value| Some(Attribute::ResultAccuracy((*value).into()));
    /// `#stablehlo<comparison_type FLOAT>`; `NOTYPE` if absent.
    OptionalComparisonType: ComparisonType = "a comparison type",
        decode |attribute| Case::<ComparisonType>::decode(attribute),
        absent ComparisonType::NoType,
        default |value| *value == ComparisonType::NoType,
        encode |value| Some(Attribute::Enum((*value).into()));
    /// `4 : i32`; `API_VERSION_ORIGINAL` if absent.
    OptionalApiVersion: CustomCallApiVersion = "a custom call API version",
        decode |attribute| match attribute {
            Attribute::Integer { value, ty: ElementType::I32 } => {
                CustomCallApiVersion::from_code(u64::try_from(*value).ok()?)
            }
            other => Case::decode(other),
        },
        absent CustomCallApiVersion::Original,
        default |value| *value == CustomCallApiVersion::Original,
        encode |value| integer(value.code() as i64, ElementType::I32);
    /// `dense<...> : tensor<...>`.
    Value: Literal = "dense elements",
        decode |attribute| match attribute {
            Attribute::Elements(literal) | Attribute::Resource { value: literal, .. } => Some(literal.clone()),
            _ => None,
        },
        encode |value| Some(Attribute::Elements(value.clone()));
    /// `{a = 1}`; empty if absent.
    OptionalDictionary: DictionaryAttribute = "a dictionary",
        decode |attribute| attribute.as_dictionary().cloned(),
        absent DictionaryAttribute::default(),
        default |value| value.is_empty(),
        encode |value| Some(Attribute::Dictionary(value.clone()));
    /// `"text"` or `{a = 1}`; an empty text if absent.
    Config: BackendConfig = "a string or a dictionary",
        decode |attribute| match attribute {
            Attribute::String(text) => Some(BackendConfig::Bytes((&**text).into())),
            Attribute::Bytes(bytes) => Some(BackendConfig::Bytes(bytes.clone())),
            Attribute::Dictionary(entries) => Some(BackendConfig::Dictionary(entries.clone())),
            _ => None,
        },
        absent BackendConfig::default(),
        default |value| matches!(value, BackendConfig::Bytes(bytes) if bytes.is_empty()),
        encode |value| match value {
            BackendConfig::Bytes(bytes) => Some(Attribute::Bytes(bytes.clone())),
            BackendConfig::Dictionary(entries) => Some(Attribute::Dictionary(entries.clone())),
        };
    /// `[dense<[1, 0]> : tensor<2xindex>]`; optional.
    OptionalLayouts: Option<Layouts> = "an array of layouts",
        decode |attribute| list(attribute, layout).map(Some),
        absent None,
        default |value| value.is_none(),
        encode |value| array(value.as_deref().unwrap_or_default(), layout_attribute);
    /// `[[dense<[8, 128]> : tensor<2xindex>]]`; optional.
    OptionalTilings: Option<Tilings> = "an array of tilings",
        decode |attribute| list(attribute, |tiling| list(tiling, layout)).map(Some),
        absent None,
        default |value| value.is_none(),
        encode |value| array(value.as_deref().unwrap_or_default(), |tiling| array(tiling, layout_attribute));
    /// `[#stablehlo.output_operand_alias<...>]`; empty if absent.
    Aliases: Box<[OutputOperandAlias]> = "an array of output operand aliases",
        decode |attribute| list(attribute, |alias| match alias {
            Attribute::OutputOperandAlias(alias) => Some((**alias).clone()),
            _ => None,
        }),
        absent Box::default(),
        default |value| value.is_empty(),
        encode |value| array(value, |alias| Some(Attribute::OutputOperandAlias(alias.clone().into())));
    /// `[...]`; optional.
    OptionalArray: Option<Box<[Attribute]>> = "an array",
        decode |attribute| Some(Some(attribute.as_array()?.into())),
        absent None,
        default |value| value.is_none(),
        encode |value| Some(Attribute::Array(value.as_deref().unwrap_or_default().into()));
    /// `#sdy.sharding<...>`.
    Sharding: TensorSharding = "a sharding",
        decode |attribute| match attribute {
            Attribute::Sharding(sharding) => Some((**sharding).clone()),
            _ => None,
        },
        encode |value| Some(Attribute::Sharding(value.clone().into()));
    /// `#sdy.sharding_per_value<...>`.
    Shardings: Box<[TensorSharding]> = "a sharding per value",
        decode |attribute| match attribute {
            Attribute::ShardingPerValue(shardings) => Some((**shardings).into()),
            _ => None,
        },
        encode |value| Some(Attribute::ShardingPerValue((**value).into()));
    /// `#sdy<manual_axes{...}>`.
    ManualAxes: Box<[Str]> = "manual axes",
        decode |attribute| match attribute {
            Attribute::ManualAxes(axes) => Some((**axes).into()),
            _ => None,
        },
        encode |value| Some(Attribute::ManualAxes((**value).into()));
}

/// A case of an enumeration: `#stablehlo<comparison_direction EQ>`.
pub(crate) struct Case<T>(PhantomData<T>);

impl<T: TryFrom<EnumValue> + Into<EnumValue> + Copy> Codec for Case<T> {
    type Value = T;
    const EXPECTED: &'static str = "a case of its enumeration";
    const REQUIRED: bool = true;

    fn decode(attribute: &Attribute) -> Option<T> {
        match attribute {
            Attribute::Enum(value) => T::try_from(*value).ok(),
            _ => None,
        }
    }

    fn encode(value: &T) -> Option<Attribute> {
        Some(Attribute::Enum((*value).into()))
    }
}

pub(crate) type Direction = Case<ComparisonDirection>;
pub(crate) type FftKind = Case<FftType>;
pub(crate) type Distribution = Case<RngDistribution>;
pub(crate) type Generator = Case<RngAlgorithm>;
pub(crate) type TransposeCase = Case<TransposeKind>;
