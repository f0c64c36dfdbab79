//! The names and attributes of operations in the file, and their conversion to operations of the op table.

use super::correspondence::{
    VHLO_FUNCTION, from_vhlo, is_new_in_second_form, stablehlo_name, vhlo_attributes,
};
use super::cursor::Cursor;
use super::entries::Entries;
use super::sections::{FORMAT_SEGMENT_SIZES, File, OpName};
use crate::ir::{
    Attribute, DictionaryAttribute, ElementType, Location, Op, OpCode, OtherOp, Presence, Str, is_unknown,
    own_attributes,
};
use crate::limits::{ATTRIBUTE_NUMBERS_BASE, ATTRIBUTE_NUMBERS_PER_BYTE};
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

/// Returns the attributes of operations outside VHLO, sorted by name; `None` if they are not known.
pub(super) fn native_attributes(name: &str) -> Option<Vec<(Str, Presence)>> {
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
                    let names = VHLO_FUNCTION.iter();
                    (Meaning::Function, names.map(|&name| (name.into(), Presence::Required)).collect())
                }
                "return" => (Meaning::Return, Vec::new()),
                _ => {
                    let code = OpCode::from_name(&stablehlo_name(mnemonic));
                    let newest = code.and_then(|code| code.info().vhlo).map_or(0, |form| form.newest());
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
        // A call of VHLO has only some of the attributes of `func.call`; the dictionary contains the others.
        let further = match name.meaning {
            Meaning::Table(code) => code.info().attributes,
            _ => &[],
        };
        self.others(|key| {
            name.attributes.iter().flatten().any(|(own, _)| own == key)
                || further.iter().any(|spec| *key == spec.name)
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
            from_vhlo(code, wanted, &|name| attributes.get(name))
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
