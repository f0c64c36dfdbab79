//! The names and attributes of operations in the file, and their conversion to operations of the op table.

use super::cursor::Cursor;
use super::entries::Entries;
use super::sections::{FORMAT_SEGMENT_SIZES, File, OpName};
use crate::ir::{
    Attribute, ChannelHandle, ConvDimensionNumbers, DictionaryAttribute, DotAlgorithm, DotDimensionNumbers,
    ElementType, GatherDimensionNumbers, Ints, Location, Op, OpCode, OtherOp, Presence,
    ScatterDimensionNumbers, Str, Type, is_unknown, own_attributes,
};
use crate::limits::{ATTRIBUTE_NUMBERS_BASE, ATTRIBUTE_NUMBERS_PER_BYTE, MAX_ATTRIBUTE_ELEMENTS};
use crate::{Error, ErrorKind};

/// The meaning of an operation name of the file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// `builtin.module`.
    Module,
    /// `vhlo.func_v1` or `func.func`.
    Function,
    /// `sdy.mesh`.
    Mesh,
    /// `vhlo.return_v1`, whose meaning depends on its parent.
    Return,
    /// `builtin.unrealized_conversion_cast` between a VHLO type and the corresponding type of another dialect, which
    /// occurs next to Shardy's operations among VHLO's.
    Cast,
    /// An operation of the op table.
    Table(OpCode),
    /// Another operation.
    Other,
}

/// An operation name of the file, with the information that follows from it.
pub(super) struct KnownName {
    pub(super) meaning: Meaning,
    /// The full name in the file.
    pub(super) name: Str,
    /// `true` if the operation belongs to VHLO.
    is_vhlo: bool,
    registered: bool,
    /// The inherent attributes in the order of their encoding.
    attributes: Option<Vec<(Str, Presence)>>,
}

/// Returns the attributes of VHLO that correspond to an attribute of StableHLO.
fn vhlo_parts(code: OpCode, attribute: &'static str) -> &'static [&'static str] {
    match (code, attribute) {
        (OpCode::Convolution | OpCode::DynamicConv, "dimension_numbers") => &[
            "input_batch_dimension",
            "input_feature_dimension",
            "input_spatial_dimensions",
            "kernel_input_feature_dimension",
            "kernel_output_feature_dimension",
            "kernel_spatial_dimensions",
            "output_batch_dimension",
            "output_feature_dimension",
            "output_spatial_dimensions",
        ],
        (OpCode::DotGeneral, "dot_dimension_numbers") => &[
            "lhs_batching_dimensions",
            "rhs_batching_dimensions",
            "lhs_contracting_dimensions",
            "rhs_contracting_dimensions",
        ],
        (OpCode::DotGeneral, "algorithm") => &[
            "lhs_precision_type",
            "rhs_precision_type",
            "accumulation_type",
            "lhs_component_count",
            "rhs_component_count",
            "num_primitive_operations",
            "allow_imprecise_accumulation",
        ],
        (OpCode::Gather | OpCode::DynamicGather, "dimension_numbers") => &[
            "offset_dims",
            "collapsed_slice_dims",
            "operand_batching_dims",
            "start_indices_batching_dims",
            "start_index_map",
            "index_vector_dim",
        ],
        (OpCode::Scatter, "scatter_dimension_numbers") => &[
            "update_window_dims",
            "inserted_window_dims",
            "input_batching_dims",
            "scatter_indices_batching_dims",
            "scatter_dims_to_operand_dims",
            "index_vector_dim",
        ],
        (OpCode::Send | OpCode::Recv, "channel_handle") => &["channel_id", "channel_type"],
        (_, "channel_handle") => &["channel_id"],
        _ => &[],
    }
}

/// Returns `true` if the second form of an operation in VHLO has the attribute, but the first does not.
fn is_new_in_second_form(code: OpCode, attribute: &str) -> bool {
    match attribute {
        "result_accuracy"
        | "operand_batching_dims"
        | "start_indices_batching_dims"
        | "input_batching_dims"
        | "scatter_indices_batching_dims"
        | "result_tilings" => true,
        "source_target_pairs" => matches!(code, OpCode::Send | OpCode::Recv),
        "has_dynamic_root" => code == OpCode::CollectiveBroadcast,
        other => vhlo_parts(OpCode::DotGeneral, "algorithm").contains(&other) && code == OpCode::DotGeneral,
    }
}

/// Returns the attributes of a form of an operation in VHLO, sorted by name as in bytecode.
fn vhlo_attributes(code: OpCode, form: u32) -> Vec<(Str, Presence)> {
    let mut names = Vec::new();
    for spec in code.info().attributes {
        match vhlo_parts(code, spec.name) {
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

/// Returns the attributes of operations outside VHLO, sorted by name; `None` if they are not known.
fn native_attributes(name: &str) -> Option<Vec<(Str, Presence)>> {
    if let Some(own) = own_attributes(name) {
        return Some(own.iter().map(|&(name, presence)| (name.into(), presence)).collect());
    }
    let code = OpCode::from_name(name)?;
    let mut names: Vec<(Str, Presence)> = Vec::new();
    for spec in code.info().attributes {
        let presence = match spec.required {
            true => Presence::Required,
            false if is_new_in_second_form(code, spec.name) || spec.name == "algorithm" => Presence::Since(1),
            false => Presence::Optional,
        };
        names.push((spec.name.into(), presence));
    }
    names.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    Some(names)
}

impl KnownName {
    /// Determines the meaning of an operation name of the file.
    pub(super) fn new(file: &File, op: &OpName) -> Result<KnownName, Error> {
        let dialect = &*file.dialects[op.dialect];
        let name: Str = format!("{dialect}.{}", op.name).into();
        let unsupported = |message: String| Err(Error::new(ErrorKind::Unsupported, message));
        if dialect == "vhlo" {
            let Some((mnemonic, form)) = op
                .name
                .rsplit_once("_v")
                .and_then(|(mnemonic, form)| Some((mnemonic, form.parse::<u32>().ok()?)))
            else {
                return unsupported(format!("unknown operation '{name}' of VHLO"));
            };
            let (meaning, attributes) = match mnemonic {
                "func" => {
                    let names = ["arg_attrs", "function_type", "res_attrs", "sym_name", "sym_visibility"];
                    (Meaning::Function, names.iter().map(|&name| (name.into(), Presence::Required)).collect())
                }
                "return" => (Meaning::Return, Vec::new()),
                _ => {
                    let stablehlo = match mnemonic {
                        "call" => "func.call".to_owned(),
                        mnemonic => format!("stablehlo.{mnemonic}"),
                    };
                    let code = OpCode::from_name(&stablehlo);
                    let newest = code.and_then(|code| code.info().vhlo).map_or(0, |form| form.newest);
                    match code {
                        Some(code) if (1..=newest).contains(&form) => {
                            (Meaning::Table(code), vhlo_attributes(code, form))
                        }
                        Some(_) => {
                            return unsupported(format!(
                                "the form of operation '{name}' is newer than those that are supported"
                            ));
                        }
                        None => return unsupported(format!("unknown operation '{name}' of VHLO")),
                    }
                }
            };
            return Ok(KnownName {
                meaning,
                name,
                is_vhlo: true,
                registered: op.registered,
                attributes: Some(attributes),
            });
        }
        if is_unknown(&name) {
            return unsupported(format!("unknown operation '{name}'"));
        }
        let meaning = match &*name {
            "builtin.module" => Meaning::Module,
            "func.func" => Meaning::Function,
            "sdy.mesh" => Meaning::Mesh,
            "builtin.unrealized_conversion_cast" => Meaning::Cast,
            other => OpCode::from_name(other).map_or(Meaning::Other, Meaning::Table),
        };
        let attributes = native_attributes(&name);
        Ok(KnownName { meaning, name, is_vhlo: false, registered: op.registered, attributes })
    }
}

/// The attributes of an operation of the file.
#[derive(Default)]
pub(super) struct RawAttributes {
    /// The inherent attributes, by their names in the file.
    own: Vec<(Str, Attribute)>,
    /// The attributes of the dictionary, which contains the inherent attributes in older files.
    dictionary: DictionaryAttribute,
}

/// Returns the greatest number of [`Presence::Since`] that the writer supported. Operations outside VHLO are not
/// versioned, so it follows from the number of attributes.
fn age(attributes: &[(Str, Presence)], mut cursor: Cursor<'_>) -> u8 {
    let since = |presence: &Presence| match *presence {
        Presence::Since(since) => since,
        _ => 0,
    };
    let newest = attributes.iter().map(|(_, presence)| since(presence)).max().unwrap_or(0);
    if newest == 0 {
        return 0;
    }
    let mut count = 0;
    while !cursor.is_empty() && cursor.varint().is_ok() {
        count += 1;
    }
    let known = |age: u8| attributes.iter().filter(|(_, presence)| since(presence) <= age).count();
    (0..=newest).rev().find(|&age| known(age) == count).unwrap_or(newest)
}

impl RawAttributes {
    /// Reads an operation's properties and its dictionary, replacing the previous contents.
    pub(super) fn read(
        &mut self,
        file: &File,
        entries: &mut Entries,
        name: &KnownName,
        dictionary: DictionaryAttribute,
        properties: Option<Cursor<'_>>,
    ) -> Result<(), Error> {
        let own = &mut self.own;
        own.clear();
        self.dictionary = dictionary;
        if let Some(mut cursor) = properties {
            if !name.registered {
                let index = cursor.varint()?;
                let attribute = entries.attribute(file, &cursor, index)?;
                if let Attribute::Dictionary(properties) = attribute {
                    own.extend_from_slice(properties.entries());
                }
            } else {
                let Some(attributes) = &name.attributes else {
                    let message =
                        format!("the encoding of operation '{}' and its attributes is not known", name.name);
                    return Err(Error::new(ErrorKind::Unsupported, message).at_offset(cursor.position()));
                };
                own.reserve_exact(attributes.len());
                let age = age(attributes, cursor);
                let are_sizes_behind = file.format >= FORMAT_SEGMENT_SIZES;
                for (attribute_name, presence) in attributes {
                    let (index, present) = match *presence {
                        Presence::Since(since) if since > age => continue,
                        Presence::SegmentSizes(_) if are_sizes_behind => continue,
                        Presence::Optional | Presence::Since(_) => cursor.varint_with_flag()?,
                        Presence::Required | Presence::SegmentSizes(_) => (cursor.varint()?, true),
                    };
                    if present {
                        own.push((attribute_name.clone(), entries.attribute(file, &cursor, index)?.clone()));
                    }
                }
                if are_sizes_behind {
                    for (attribute_name, presence) in attributes {
                        if let Presence::SegmentSizes(groups) = *presence {
                            let values = cursor.sparse_array(groups)?.into();
                            let sizes = Attribute::IntegerArray { ty: ElementType::I32, values };
                            own.push((attribute_name.clone(), sizes));
                        }
                    }
                }
            }
            cursor.finish("the operation's properties")?;
        }
        Ok(())
    }

    pub(super) fn get(&self, name: &str) -> Option<&Attribute> {
        let own = self.own.iter().find(|(key, _)| *key == name).map(|(_, attribute)| attribute);
        own.or_else(|| self.dictionary.get(name))
    }

    /// Returns the discardable attributes of an operation.
    pub(super) fn discardable(&self, name: &KnownName) -> DictionaryAttribute {
        self.others(|key| {
            name.attributes.as_ref().is_some_and(|names| names.iter().any(|(own, _)| own == key))
        })
    }

    /// Returns the attributes of the dictionary for which `is_own` returns `false`.
    fn others(&self, is_own: impl Fn(&Str) -> bool) -> DictionaryAttribute {
        if self.dictionary.entries().iter().any(|(key, _)| is_own(key)) {
            let kept = self.dictionary.entries().iter().filter(|(key, _)| !is_own(key));
            return DictionaryAttribute::new(kept.cloned().collect());
        }
        self.dictionary.clone()
    }

    /// Returns all attributes, including inherent ones, except those with these names.
    pub(super) fn without(&self, names: &[&str]) -> DictionaryAttribute {
        let is_named = |key: &Str| names.iter().any(|&name| *key == name);
        let own = self.own.iter().filter(|(key, _)| !is_named(key));
        if own.clone().next().is_none() {
            return self.others(is_named);
        }
        let others = self.dictionary.entries().iter().filter(|(key, _)| !is_named(key));
        let mut kept: Vec<_> = own.chain(others).cloned().collect();
        kept.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        DictionaryAttribute::new(kept)
    }
}

/// The number of elements that attributes of operations may still have.
pub(super) struct Budget(usize);

impl Budget {
    pub(super) fn new(input_len: usize) -> Self {
        Budget(input_len.saturating_mul(ATTRIBUTE_NUMBERS_PER_BYTE).saturating_add(ATTRIBUTE_NUMBERS_BASE))
    }

    /// Returns the remaining number.
    pub(super) fn left(&self) -> usize {
        self.0
    }

    /// Counts the elements of an attribute that becomes a field of an operation.
    fn charge(&mut self, attribute: &Attribute) -> Result<(), Error> {
        self.charge_entries(attribute.numbers())
    }

    /// Counts dictionary entries that are examined once for each operation with the dictionary.
    pub(super) fn charge_entries(&mut self, count: usize) -> Result<(), Error> {
        self.0 = self.0.checked_sub(count).ok_or_else(|| {
            Error::new(ErrorKind::TooLarge, "the attributes of the program's operations have too many elements and dictionary entries in total")
        })?;
        Ok(())
    }
}

/// Creates the operation of the op table with these attributes.
pub(super) fn table_op(
    name: &KnownName,
    code: OpCode,
    attributes: &RawAttributes,
    budget: &mut Budget,
    location: &Location,
) -> Result<Op, Error> {
    let mut failure = None;
    let op = Op::from_attributes(code, &mut |wanted| {
        let found = if name.is_vhlo {
            from_vhlo(code, wanted, attributes)
        } else {
            Ok(attributes.get(wanted).cloned())
        };
        match found {
            Ok(Some(attribute)) => {
                // The value of a constant is shared rather than copied.
                if code != OpCode::Constant
                    && let Err(error) = budget.charge(&attribute)
                {
                    failure.get_or_insert(error);
                    return None;
                }
                Some(attribute)
            }
            Ok(None) => None,
            Err(message) => {
                failure.get_or_insert(Error::new(ErrorKind::Invalid, message));
                None
            }
        }
    });
    if let Some(error) = failure {
        return Err(error.in_op(code.info().name, location));
    }
    op.map_err(|error| Error::new(ErrorKind::Invalid, error.message()).in_op(code.info().name, location))
}

/// Creates an operation outside the op table.
pub(super) fn other_op(name: &KnownName, attributes: RawAttributes) -> (Op, DictionaryAttribute) {
    let discardable = attributes.discardable(name);
    let is_own = |key: &Str| name.attributes.iter().flatten().any(|(own, _)| own == key);
    let further = attributes.dictionary.entries().iter().filter(|(key, _)| is_own(key)).cloned();
    let mut properties = attributes.own;
    properties.extend(further);
    properties.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    let properties = DictionaryAttribute::new(properties);
    (Op::Other(Box::new(OtherOp { name: name.name.clone(), properties })), discardable)
}

/// Returns an attribute of StableHLO from the corresponding attributes of VHLO; `None` if it has its default.
fn from_vhlo(
    code: OpCode,
    wanted: &'static str,
    attributes: &RawAttributes,
) -> Result<Option<Attribute>, String> {
    let get = |name: &str| attributes.get(name);
    let parts = Parts { names: vhlo_parts(code, wanted), attributes };
    Ok(match (code, wanted) {
        (OpCode::Convolution | OpCode::DynamicConv, "dimension_numbers") => {
            Some(Attribute::ConvDimensionNumbers(parts.convolution_numbers()?.into()))
        }
        (OpCode::DotGeneral, "dot_dimension_numbers") => {
            Some(Attribute::DotDimensionNumbers(parts.dot_numbers()?.into()))
        }
        (OpCode::DotGeneral, "algorithm") => {
            parts.dot_algorithm()?.map(|algorithm| Attribute::DotAlgorithm(algorithm.into()))
        }
        (OpCode::Gather | OpCode::DynamicGather, "dimension_numbers") => {
            Some(Attribute::GatherDimensionNumbers(parts.gather_numbers()?.into()))
        }
        (OpCode::Scatter, "scatter_dimension_numbers") => {
            Some(Attribute::ScatterDimensionNumbers(parts.scatter_numbers()?.into()))
        }
        // The version is an i64 in VHLO, and an i32 in StableHLO.
        (OpCode::Composite, "version") => match get(wanted) {
            Some(&Attribute::Integer { value, ty: ElementType::I64 }) if i32::try_from(value).is_ok() => {
                Some(Attribute::Integer { value, ty: ElementType::I32 })
            }
            other => other.cloned(),
        },
        (OpCode::Send | OpCode::Recv, "channel_handle") => {
            let (handle, channel_type) = (parts.integer(0)?, parts.integer(1)?);
            Some(Attribute::ChannelHandle(ChannelHandle { handle, channel_type }))
        }
        (_, "channel_handle") => match parts.integer(0)? {
            0 => None,
            handle => Some(Attribute::ChannelHandle(ChannelHandle { handle, channel_type: 0 })),
        },
        (OpCode::CustomCall, "operand_layouts" | "result_layouts") => {
            // Both lists are empty if the program gives no layouts.
            let is_empty = |name| get(name).and_then(Attribute::as_array).is_none_or(<[_]>::is_empty);
            let neither = is_empty("operand_layouts") && is_empty("result_layouts");
            if neither { None } else { get(wanted).cloned() }
        }
        (OpCode::CustomCall, "result_tilings") | (OpCode::Infeed, "layout") => {
            get(wanted).filter(|array| array.as_array().is_none_or(|array| !array.is_empty())).cloned()
        }
        (OpCode::CustomCall, "backend_config") => get(wanted)
            .filter(|config| config.as_dictionary().is_none_or(|config| !config.is_empty()))
            .cloned(),
        _ => get(wanted).cloned(),
    })
}

/// The VHLO attributes that make up an attribute of StableHLO, by their index in [`vhlo_parts`].
struct Parts<'a> {
    names: &'static [&'static str],
    attributes: &'a RawAttributes,
}

impl Parts<'_> {
    fn get(&self, part: usize) -> Option<&Attribute> {
        self.attributes.get(self.names[part])
    }

    fn typed<T>(
        &self,
        part: usize,
        expected: &str,
        convert: impl Fn(&Attribute) -> Option<T>,
    ) -> Result<T, String> {
        let attribute = self.get(part);
        attribute.and_then(convert).ok_or_else(|| {
            let found = attribute.map_or("nothing", Attribute::kind);
            format!("attribute '{}': expected {expected}, found {found}", self.names[part])
        })
    }

    fn integer(&self, part: usize) -> Result<i64, String> {
        self.typed(part, "an integer", Attribute::as_i64)
    }

    fn boolean(&self, part: usize) -> Result<bool, String> {
        self.typed(part, "a boolean", Attribute::as_bool)
    }

    fn ty(&self, part: usize) -> Result<Type, String> {
        self.typed(part, "a type", |attribute| match attribute {
            Attribute::Type(ty) => Some(ty.clone()),
            _ => None,
        })
    }

    fn integers(&self, part: usize) -> Result<Ints, String> {
        self.typed(part, "integers", |attribute| match attribute {
            Attribute::Elements(literal) => literal.to_i64s(MAX_ATTRIBUTE_ELEMENTS).map(Into::into),
            Attribute::IntegerArray { values, .. } => Some((**values).into()),
            _ => None,
        })
    }

    /// Returns integers that older forms of an operation do not have.
    fn integers_or_none(&self, part: usize) -> Result<Ints, String> {
        if self.get(part).is_none() {
            return Ok(Ints::default());
        }
        self.integers(part)
    }

    fn convolution_numbers(&self) -> Result<ConvDimensionNumbers, String> {
        Ok(ConvDimensionNumbers {
            input_batch_dimension: self.integer(0)?,
            input_feature_dimension: self.integer(1)?,
            input_spatial_dimensions: self.integers(2)?,
            kernel_input_feature_dimension: self.integer(3)?,
            kernel_output_feature_dimension: self.integer(4)?,
            kernel_spatial_dimensions: self.integers(5)?,
            output_batch_dimension: self.integer(6)?,
            output_feature_dimension: self.integer(7)?,
            output_spatial_dimensions: self.integers(8)?,
        })
    }

    fn dot_numbers(&self) -> Result<DotDimensionNumbers, String> {
        Ok(DotDimensionNumbers {
            lhs_batching_dimensions: self.integers(0)?,
            rhs_batching_dimensions: self.integers(1)?,
            lhs_contracting_dimensions: self.integers(2)?,
            rhs_contracting_dimensions: self.integers(3)?,
        })
    }

    /// Reads the algorithm of a dot product; `None` if the operation has none.
    fn dot_algorithm(&self) -> Result<Option<DotAlgorithm>, String> {
        // The first form of the operation has no algorithm; in the second form, each part of an absent algorithm is
        // `none`.
        if matches!(self.get(0), None | Some(Attribute::Type(Type::None))) {
            return Ok(None);
        }
        Ok(Some(DotAlgorithm {
            lhs_precision_type: self.ty(0)?,
            rhs_precision_type: self.ty(1)?,
            accumulation_type: self.ty(2)?,
            lhs_component_count: self.integer(3)?,
            rhs_component_count: self.integer(4)?,
            num_primitive_operations: self.integer(5)?,
            allow_imprecise_accumulation: self.boolean(6)?,
        }))
    }

    fn gather_numbers(&self) -> Result<GatherDimensionNumbers, String> {
        Ok(GatherDimensionNumbers {
            offset_dims: self.integers(0)?,
            collapsed_slice_dims: self.integers(1)?,
            operand_batching_dims: self.integers_or_none(2)?,
            start_indices_batching_dims: self.integers_or_none(3)?,
            start_index_map: self.integers(4)?,
            index_vector_dim: self.integer(5)?,
        })
    }

    fn scatter_numbers(&self) -> Result<ScatterDimensionNumbers, String> {
        Ok(ScatterDimensionNumbers {
            update_window_dims: self.integers(0)?,
            inserted_window_dims: self.integers(1)?,
            input_batching_dims: self.integers_or_none(2)?,
            scatter_indices_batching_dims: self.integers_or_none(3)?,
            scatter_dims_to_operand_dims: self.integers(4)?,
            index_vector_dim: self.integer(5)?,
        })
    }
}
