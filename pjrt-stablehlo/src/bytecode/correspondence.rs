//! The correspondence between the attributes of operations in StableHLO and in VHLO.

use std::borrow::Cow;

use crate::ir::{
    Attribute, BackendConfig, Body, ChannelHandle, ConvDimensionNumbers, CustomCallApiVersion, DotAlgorithm,
    DotDimensionNumbers, ElementType, FieldReader, FieldWriter, Fields, GatherDimensionNumbers, Ints,
    Literal, LiteralData, Op, OpCode, OpId, Precision, Presence, ResultAccuracy, ScatterDimensionNumbers,
    Str, TensorType, Type, ValueId,
};
use crate::limits::MAX_ATTRIBUTE_ELEMENTS;
use crate::{Error, ErrorKind};

/// The attributes of VHLO's functions, sorted by name.
pub(super) const VHLO_FUNCTION: &[&str] =
    &["arg_attrs", "function_type", "res_attrs", "sym_name", "sym_visibility"];

/// The operations whose names in VHLO are not those of StableHLO: the name without the form, and the full name.
const RENAMED: &[(&str, &str)] = &[("call", "func.call"), ("return", "func.return")];

/// Returns the full name of the operation with this name in VHLO, without the form.
pub(super) fn stablehlo_name(vhlo: &str) -> Cow<'static, str> {
    match RENAMED.iter().find(|(name, _)| *name == vhlo) {
        Some((_, name)) => Cow::Borrowed(name),
        None => Cow::Owned(format!("stablehlo.{vhlo}")),
    }
}

/// Returns the name in VHLO, without the form, of the operation with this full name.
pub(super) fn vhlo_name(stablehlo: &'static str) -> &'static str {
    match RENAMED.iter().find(|(_, name)| *name == stablehlo) {
        Some((name, _)) => name,
        None => stablehlo.trim_start_matches("stablehlo."),
    }
}

/// The correspondence between an attribute of StableHLO and attributes of VHLO.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Correspondence {
    /// An attribute with the same name and value.
    Same,
    /// An attribute for each field.
    ConvNumbers,
    DotNumbers,
    GatherNumbers,
    ScatterNumbers,
    /// An attribute for each field; if there is no algorithm, each is the type `none`.
    Algorithm,
    /// A version of type `i32`; in VHLO, version 0 has type `i64`, like the default.
    Version,
    /// The number of the channel, which is 0 if there is no channel.
    Channel,
    /// The number and the type of the channel.
    TypedChannel,
    /// A list of layouts. The lists of operands and of results are empty if the program gives no layouts.
    Layouts,
    /// A list that is empty in VHLO if it is absent in StableHLO.
    List,
    /// A string or a dictionary; an empty dictionary is no configuration.
    Config,
    /// A case of an enumeration in VHLO, and its number in StableHLO.
    ApiVersion,
    /// One precision for each operand in VHLO; StableHLO omits defaults.
    Precisions,
    /// Pairs, which are a list without elements in VHLO if there are none.
    Pairs,
}

use Correspondence::*;

fn correspondence(code: OpCode, attribute: &str) -> Correspondence {
    match (code, attribute) {
        (OpCode::Convolution | OpCode::DynamicConv, "dimension_numbers") => ConvNumbers,
        (OpCode::DotGeneral, "dot_dimension_numbers") => DotNumbers,
        (OpCode::DotGeneral, "algorithm") => Algorithm,
        (OpCode::Gather | OpCode::DynamicGather, "dimension_numbers") => GatherNumbers,
        (OpCode::Scatter, "scatter_dimension_numbers") => ScatterNumbers,
        (OpCode::Composite, "version") => Version,
        (OpCode::Send | OpCode::Recv, "channel_handle") => TypedChannel,
        (_, "channel_handle") => Channel,
        (OpCode::CustomCall, "operand_layouts" | "result_layouts") => Layouts,
        (OpCode::CustomCall, "result_tilings") | (OpCode::Infeed, "layout") => List,
        (OpCode::CustomCall, "backend_config") => Config,
        (OpCode::CustomCall, "api_version") => ApiVersion,
        (_, "precision_config") => Precisions,
        (OpCode::Send | OpCode::Recv, "source_target_pairs") => Pairs,
        _ => Same,
    }
}

impl Correspondence {
    /// Returns the names of the attributes in VHLO; empty if there is one with the same name.
    fn parts(self) -> &'static [&'static str] {
        match self {
            ConvNumbers => ConvDimensionNumbers::NAMES,
            DotNumbers => DotDimensionNumbers::NAMES,
            GatherNumbers => GatherDimensionNumbers::NAMES,
            ScatterNumbers => ScatterDimensionNumbers::NAMES,
            Algorithm => DotAlgorithm::NAMES,
            TypedChannel => &["channel_id", "channel_type"],
            Channel => &["channel_id"],
            Same | Version | Layouts | List | Config | ApiVersion | Precisions | Pairs => &[],
        }
    }
}

/// Returns `true` if the second form of an operation in VHLO has the attribute, but the first does not.
pub(super) fn is_new_in_second_form(code: OpCode, attribute: &str) -> bool {
    match attribute {
        "result_accuracy"
        | "operand_batching_dims"
        | "start_indices_batching_dims"
        | "input_batching_dims"
        | "scatter_indices_batching_dims"
        | "result_tilings" => true,
        "source_target_pairs" => matches!(code, OpCode::Send | OpCode::Recv),
        "has_dynamic_root" => code == OpCode::CollectiveBroadcast,
        other => code == OpCode::DotGeneral && DotAlgorithm::NAMES.contains(&other),
    }
}

/// Returns the attributes of a form of an operation in VHLO, sorted by name as in bytecode.
pub(super) fn vhlo_attributes(code: OpCode, form: u32) -> Vec<(Str, Presence)> {
    let mut names = Vec::new();
    for spec in code.info().attributes {
        match correspondence(code, spec.name).parts() {
            [] => names.push(spec.name),
            parts => names.extend(parts),
        }
    }
    if code == OpCode::FuncCall {
        names = vec!["callee"];
    }
    if form == 1 {
        names.retain(|name| !is_new_in_second_form(code, name));
        if code == OpCode::DynamicConv {
            // The operand with this name takes precedence.
            names.push("padding");
        }
    }
    names.sort_unstable();
    names.into_iter().map(|name| (name.into(), Presence::Required)).collect()
}

/// Returns the attributes of VHLO that correspond to an attribute of StableHLO, which is complete even if it has its
/// default.
pub(super) fn to_vhlo(code: OpCode, name: &Str, attribute: Attribute) -> Vec<(Str, Attribute)> {
    let correspondence = correspondence(code, name);
    let mut parts = PartWriter(Vec::new());
    // Writing parts cannot fail.
    let Ok(()) = match (correspondence, &attribute) {
        (ConvNumbers, Attribute::ConvDimensionNumbers(numbers)) => numbers.write_fields(&mut parts),
        (DotNumbers, Attribute::DotDimensionNumbers(numbers)) => numbers.write_fields(&mut parts),
        (GatherNumbers, Attribute::GatherDimensionNumbers(numbers)) => numbers.write_fields(&mut parts),
        (ScatterNumbers, Attribute::ScatterDimensionNumbers(numbers)) => numbers.write_fields(&mut parts),
        (Algorithm, Attribute::DotAlgorithm(algorithm)) => algorithm.write_fields(&mut parts),
        (Algorithm, none) => {
            parts.0.extend(correspondence.parts().iter().map(|&part| (part.into(), none.clone())));
            Ok(())
        }
        (Channel | TypedChannel, Attribute::ChannelHandle(channel)) => {
            let values = [channel.handle, channel.channel_type];
            let values = correspondence.parts().iter().zip(values);
            parts.0.extend(values.map(|(&part, value)| (part.into(), value.into())));
            Ok(())
        }
        _ => Ok(()),
    };
    if !parts.0.is_empty() {
        return parts.0;
    }
    let attribute = match (correspondence, attribute) {
        (Version, Attribute::Integer { value: 0, .. }) => 0.into(),
        (ApiVersion, Attribute::Integer { value, .. }) => {
            let case = u64::try_from(value).ok().and_then(CustomCallApiVersion::from_code);
            Attribute::Enum(case.unwrap_or(CustomCallApiVersion::Original).into())
        }
        (Precisions, Attribute::Array(precisions)) if precisions.is_empty() => {
            let default = || Attribute::Enum(Precision::Default.into());
            Attribute::Array([default(), default()].into())
        }
        (Pairs, Attribute::Elements(pairs)) if pairs.num_elements() == 0 => {
            Attribute::IntegerArray { ty: ElementType::I64, values: [].into() }
        }
        // VHLO has no `unit`.
        (_, Attribute::Unit) => true.into(),
        (_, attribute) => attribute,
    };
    vec![(name.clone(), attribute)]
}

/// Returns the first feature of an operation that the first form of VHLO's operation does not have, given the
/// attributes of the second form; `None` if the first form expresses the operation.
pub(super) fn first_form_lacks(body: &Body, id: OpId, attributes: &[(Str, Attribute)]) -> Option<String> {
    let op = body.op(id);
    let code = op.kind.code();
    let one_operand = matches!(
        code,
        OpCode::AllGather | OpCode::AllReduce | OpCode::AllToAll | OpCode::CollectiveBroadcast
    );
    if one_operand && op.operands.len() != 1 {
        return Some(format!("this operation with {} operands", op.operands.len()));
    }
    if code == OpCode::Composite && !op.regions.is_empty() {
        return Some("composites with regions".to_owned());
    }
    let is_neutral = |attribute: &Attribute| match attribute {
        Attribute::Type(Type::None) | Attribute::Bool(false) => true,
        Attribute::IntegerArray { values, .. } => values.is_empty(),
        Attribute::Array(elements) => elements.is_empty(),
        Attribute::ResultAccuracy(accuracy) => **accuracy == ResultAccuracy::default(),
        _ => false,
    };
    let lacking = attributes
        .iter()
        .find(|(name, attribute)| is_new_in_second_form(code, name) && !is_neutral(attribute));
    lacking.map(|(name, _)| format!("the attribute '{name}' of this operation"))
}

/// Returns the padding of `dynamic_conv` in the first form of VHLO, whose operand with that name takes precedence.
pub(super) fn first_form_padding(body: &Body, id: OpId) -> Result<Attribute, Error> {
    let rank = body.op(id).operands.first().and_then(|&lhs| Some(body.ty(lhs).as_tensor()?.rank()));
    let spatial = rank.unwrap_or(0).saturating_sub(2);
    let ty = TensorType::new(ElementType::I64, [spatial as i64, 2]);
    let zeros = vec![0; ElementType::I64.byte_width() * 2 * spatial];
    Literal::new(ty, LiteralData::Dense(zeros.into()))
        .map(Attribute::Elements)
        .map_err(|error| Error::new(ErrorKind::Invalid, error.to_string()))
}

/// Returns the features of an operation that an existing form of VHLO's operation gained later, with the versions.
pub(super) fn introduced_later(body: &Body, id: OpId) -> Vec<((u32, u32), &'static str)> {
    let op = body.op(id);
    let element = |value: ValueId| match body.ty(value) {
        Type::Tensor(tensor) => Some((tensor.element_type(), tensor.quantization())),
        _ => None,
    };
    let mut features = Vec::new();
    let operands = op.operands.iter().filter_map(|&operand| element(operand));
    match &op.kind {
        Op::Reduce(_)
        | Op::ReduceWindow(_)
        | Op::ReduceScatter(_)
        | Op::AllReduce(_)
        | Op::Scatter(_)
        | Op::SelectAndScatter(_) => {
            let result = op.results.into_iter().next().and_then(element);
            if operands.take(1).any(|operand| Some(operand) != result) {
                features.push(((0, 17), "a result whose element type is not that of the operand"));
            }
        }
        Op::CustomCall(call) => {
            if matches!(call.backend_config, BackendConfig::Dictionary(_)) {
                features.push(((1, 3), "custom calls with a dictionary as configuration"));
            }
            if call.api_version == CustomCallApiVersion::TypedFfi {
                features.push(((1, 3), "custom calls of the typed foreign function interface"));
            }
            if op.operands.iter().any(|&operand| matches!(body.ty(operand), Type::Future(_))) {
                features.push(((1, 17), "custom calls with futures as operands"));
            }
        }
        _ => {}
    }
    features
}

/// Collects the fields of a structured attribute as attributes of VHLO.
struct PartWriter(Vec<(Str, Attribute)>);

impl FieldWriter for PartWriter {
    type Error = std::convert::Infallible;

    fn integer(&mut self, name: &'static str, value: &i64) -> Result<(), Self::Error> {
        self.0.push((name.into(), (*value).into()));
        Ok(())
    }

    fn integers(&mut self, name: &'static str, values: &Ints) -> Result<(), Self::Error> {
        let values = Attribute::IntegerArray { ty: ElementType::I64, values: (**values).into() };
        self.0.push((name.into(), values));
        Ok(())
    }

    fn ty(&mut self, name: &'static str, ty: &Type) -> Result<(), Self::Error> {
        self.0.push((name.into(), Attribute::Type(ty.clone())));
        Ok(())
    }

    fn boolean(&mut self, name: &'static str, value: &bool) -> Result<(), Self::Error> {
        self.0.push((name.into(), (*value).into()));
        Ok(())
    }
}

/// Returns an attribute of StableHLO from the corresponding attributes of VHLO, which `get` returns by name; `None` if
/// it has its default.
pub(super) fn from_vhlo<'a>(
    code: OpCode,
    wanted: &'static str,
    get: &dyn Fn(&str) -> Option<&'a Attribute>,
) -> Result<Option<Attribute>, String> {
    let mut parts = Parts { code, get };
    Ok(match correspondence(code, wanted) {
        ConvNumbers => {
            Some(Attribute::ConvDimensionNumbers(ConvDimensionNumbers::read_fields(&mut parts)?.into()))
        }
        DotNumbers => {
            Some(Attribute::DotDimensionNumbers(DotDimensionNumbers::read_fields(&mut parts)?.into()))
        }
        GatherNumbers => {
            Some(Attribute::GatherDimensionNumbers(GatherDimensionNumbers::read_fields(&mut parts)?.into()))
        }
        ScatterNumbers => {
            Some(Attribute::ScatterDimensionNumbers(ScatterDimensionNumbers::read_fields(&mut parts)?.into()))
        }
        // The first form of the operation has no algorithm.
        Algorithm => match get(DotAlgorithm::NAMES[0]) {
            None | Some(Attribute::Type(Type::None)) => None,
            Some(_) => Some(Attribute::DotAlgorithm(DotAlgorithm::read_fields(&mut parts)?.into())),
        },
        Version => match get(wanted) {
            Some(&Attribute::Integer { value, ty: ElementType::I64 }) if i32::try_from(value).is_ok() => {
                Some(Attribute::Integer { value, ty: ElementType::I32 })
            }
            other => other.cloned(),
        },
        TypedChannel => {
            let (handle, channel_type) = (parts.integer("channel_id")?, parts.integer("channel_type")?);
            Some(Attribute::ChannelHandle(ChannelHandle { handle, channel_type }))
        }
        Channel => match parts.integer("channel_id")? {
            0 => None,
            handle => Some(Attribute::ChannelHandle(ChannelHandle { handle, channel_type: 0 })),
        },
        Layouts => {
            let is_empty = |name| get(name).and_then(Attribute::as_array).is_none_or(<[_]>::is_empty);
            let neither = is_empty("operand_layouts") && is_empty("result_layouts");
            if neither { None } else { get(wanted).cloned() }
        }
        List => get(wanted).filter(|array| array.as_array().is_none_or(|array| !array.is_empty())).cloned(),
        Config => get(wanted)
            .filter(|config| config.as_dictionary().is_none_or(|config| !config.is_empty()))
            .cloned(),
        Same | ApiVersion | Precisions | Pairs => get(wanted).cloned(),
    })
}

/// Reads the fields of a structured attribute from attributes of VHLO.
struct Parts<'f, 'a> {
    code: OpCode,
    get: &'f dyn Fn(&str) -> Option<&'a Attribute>,
}

impl Parts<'_, '_> {
    fn typed<T>(
        &self,
        part: &'static str,
        expected: &str,
        convert: impl Fn(&Attribute) -> Option<T>,
    ) -> Result<T, String> {
        let attribute = (self.get)(part);
        attribute.and_then(convert).ok_or_else(|| {
            let found = attribute.map_or("nothing", Attribute::kind);
            format!("attribute '{part}': expected {expected}, found {found}")
        })
    }
}

impl FieldReader for Parts<'_, '_> {
    type Error = String;

    fn integer(&mut self, name: &'static str) -> Result<i64, String> {
        self.typed(name, "an integer", Attribute::as_i64)
    }

    fn integers(&mut self, name: &'static str) -> Result<Ints, String> {
        if (self.get)(name).is_none() && is_new_in_second_form(self.code, name) {
            return Ok(Ints::default());
        }
        self.typed(name, "integers", |attribute| match attribute {
            Attribute::Elements(literal) => literal.to_i64s(MAX_ATTRIBUTE_ELEMENTS).map(Into::into),
            Attribute::IntegerArray { values, .. } => Some((**values).into()),
            _ => None,
        })
    }

    fn ty(&mut self, name: &'static str) -> Result<Type, String> {
        self.typed(name, "a type", |attribute| match attribute {
            Attribute::Type(ty) => Some(ty.clone()),
            _ => None,
        })
    }

    fn boolean(&mut self, name: &'static str) -> Result<bool, String> {
        self.typed(name, "a boolean", Attribute::as_bool)
    }
}
