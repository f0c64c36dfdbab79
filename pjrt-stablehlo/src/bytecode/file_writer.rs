//! The tables of a file that is being written, its sections, and the parts of an operation before its regions.

use std::collections::HashMap;
use std::rc::Rc;

use super::builtin;
use super::correspondence::vhlo_name;
use super::dialects::WRITERS;
use super::encoder::{Encoded, Encoder, Home, Pool};
use super::ops::native_attributes;
use super::output::Output;
use super::sections::{
    FORMAT_DIALECT_VERSIONS, FORMAT_ELIDED_LOCATIONS, FORMAT_LAZY_REGIONS, FORMAT_PROPERTIES,
    FORMAT_SEGMENT_SIZES, MAGIC, SECTION_DIALECTS, SECTION_ENTRIES, SECTION_ENTRY_OFFSETS, SECTION_IR,
    SECTION_PROPERTIES, SECTION_STRINGS, mask,
};
use crate::ir::{Attribute, DictionaryAttribute, ElementType, Location, Presence, Str, Type};
use crate::versions::Version;
use crate::{Error, ErrorKind};

/// The largest [`Presence::Since`] whose attributes all readers have. Newer attributes are written only if an operation has them,
/// because properties are encoded without names.
const COMMON_AGE: u8 = 2;

/// An operation name of the file.
pub(super) struct Form {
    index: u64,
    /// The inherent attributes in the order of their encoding; `None` if they are not known.
    attributes: Option<Vec<(Str, Presence)>>,
    /// The encodings of the operation's attributes and types.
    home: Home,
}

/// The parts of an operation before its regions.
pub(super) struct OpHead<'a> {
    pub(super) form: Rc<Form>,
    pub(super) location: &'a Location,
    pub(super) own: Vec<(Str, Attribute)>,
    pub(super) discardable: &'a DictionaryAttribute,
    pub(super) result_types: Vec<&'a Type>,
    pub(super) operands: Vec<u64>,
    /// The number of regions, and whether they use no values of enclosing regions.
    pub(super) regions: (usize, bool),
}

/// The tables of a file that is being written.
pub(super) struct Writer {
    pub(super) encoder: Encoder,
    /// The version of VHLO; `None` if the module is written without VHLO.
    pub(super) version: Option<Version>,
    pub(super) format: u64,
    /// The dialect and the name of each operation name, and whether the attributes have the operation's own encoding.
    op_names: Pool<(u64, u64, bool)>,
    forms: HashMap<String, Rc<Form>>,
    properties: Pool<Vec<u8>>,
}

impl Writer {
    pub(super) fn new(version: Option<Version>, format: u64) -> Self {
        Writer {
            encoder: Encoder::new(WRITERS, version),
            version,
            format,
            op_names: Pool::new(),
            forms: HashMap::new(),
            properties: Pool::new(),
        }
    }

    /// Returns the file with this IR section.
    pub(super) fn finish(mut self, producer: &str, code: &Output) -> Vec<u8> {
        let mut file = Output::default();
        file.bytes(MAGIC);
        file.varint(self.format);
        file.bytes(producer.as_bytes());
        file.byte(0);
        let dialects = self.dialects();
        file.section(SECTION_DIALECTS, &dialects);
        let (offsets, entries) = self.entries();
        file.section(SECTION_ENTRY_OFFSETS, &offsets);
        file.section(SECTION_ENTRIES, &entries);
        file.section(SECTION_IR, code);
        file.section(SECTION_STRINGS, &self.strings());
        if self.format >= FORMAT_PROPERTIES {
            let mut properties = Output::default();
            properties.count(self.properties.items().len());
            self.properties.items().for_each(|item| properties.blob(item));
            file.section(SECTION_PROPERTIES, &properties);
        }
        file.into_bytes()
    }

    fn dialects(&mut self) -> Output {
        let mut out = Output::default();
        out.count(self.encoder.dialects.items().len());
        let names: Vec<Str> = self.encoder.dialects.items().cloned().collect();
        for name in names {
            let index = self.encoder.string(name.as_bytes());
            if self.format < FORMAT_DIALECT_VERSIONS {
                out.varint(index);
            } else {
                out.varint_with_flag(index, false);
            }
        }
        if self.format >= FORMAT_ELIDED_LOCATIONS {
            out.count(self.op_names.items().len());
        }
        let names: Vec<_> = self.op_names.items().copied().collect();
        for group in names.chunk_by(|(one, ..), (other, ..)| one == other) {
            out.varint(group[0].0);
            out.count(group.len());
            for &(_, name, registered) in group {
                if self.format < FORMAT_PROPERTIES {
                    out.varint(name);
                } else {
                    out.varint_with_flag(name, registered);
                }
            }
        }
        out
    }

    /// Returns the sections of the places and of the contents of attributes and types.
    fn entries(&self) -> (Output, Output) {
        let (mut offsets, mut entries) = (Output::default(), Output::default());
        offsets.count(self.encoder.attributes.items().len());
        offsets.count(self.encoder.types.items().len());
        for pool in [&self.encoder.attributes, &self.encoder.types] {
            let items: Vec<&Encoded> = pool.items().collect();
            for group in items.chunk_by(|one, other| one.dialect == other.dialect) {
                offsets.varint(group[0].dialect);
                offsets.count(group.len());
                for item in group {
                    offsets.varint_with_flag(item.bytes.len() as u64, item.custom);
                    entries.bytes(&item.bytes);
                }
            }
        }
        (offsets, entries)
    }

    fn strings(&self) -> Output {
        let mut out = Output::default();
        let strings: Vec<&Vec<u8>> = self.encoder.strings.items().collect();
        out.count(strings.len());
        strings.iter().rev().for_each(|text| out.count(text.len() + 1));
        for text in strings {
            out.bytes(text);
            out.byte(0);
        }
        out
    }

    /// Returns the operation name with this text in the file. `attributes` returns the inherent attributes.
    pub(super) fn form(
        &mut self,
        name: &str,
        attributes: impl FnOnce() -> Option<Vec<(Str, Presence)>>,
    ) -> Result<Rc<Form>, Error> {
        if let Some(form) = self.forms.get(name) {
            return Ok(Rc::clone(form));
        }
        let Some((dialect, mnemonic)) = name.split_once('.') else {
            let message = format!("expected the name of an operation with its dialect, found '{name}'");
            return Err(Error::new(ErrorKind::Unsupported, message));
        };
        let home = if dialect == "vhlo" { Home::Vhlo } else { Home::Native };
        let attributes = attributes();
        let (dialect, mnemonic) = (self.encoder.dialect(dialect), self.encoder.string(mnemonic.as_bytes()));
        let index = self.op_names.add((dialect, mnemonic, attributes.is_some()));
        let form = Rc::new(Form { index, attributes, home });
        self.forms.insert(name.to_owned(), Rc::clone(&form));
        Ok(form)
    }

    /// Returns the operation name of an operation outside VHLO.
    pub(super) fn native_form(&mut self, name: &str) -> Result<Rc<Form>, Error> {
        self.form(name, || native_attributes(name))
    }

    /// Writes the parts of an operation before its regions.
    pub(super) fn op_head(&mut self, out: &mut Output, head: OpHead<'_>) -> Result<(), Error> {
        let OpHead { form, location, own, discardable, result_types, operands, regions } = head;
        let (own, others) = self.divide(&form, own, discardable);
        let mut parts = Output::default();
        let mut present = 0;
        parts.varint(self.encoder.location(location)?);
        if !others.is_empty() {
            present |= mask::ATTRIBUTES;
            let entries = DictionaryAttribute::new(others);
            parts.varint(builtin::encode_dictionary(&mut self.encoder, form.home, &entries)?);
        }
        if let Some(properties) = self.op_properties(&form, &own)? {
            present |= mask::PROPERTIES;
            parts.varint(properties);
        }
        if !result_types.is_empty() {
            present |= mask::RESULTS;
            parts.count(result_types.len());
            for ty in result_types {
                parts.varint(self.encoder.ty(form.home, ty)?);
            }
        }
        if !operands.is_empty() {
            present |= mask::OPERANDS;
            parts.count(operands.len());
            operands.iter().for_each(|&operand| parts.varint(operand));
        }
        let (count, isolated) = regions;
        if count > 0 {
            present |= mask::REGIONS;
            parts.varint_with_flag(count as u64, isolated);
        }
        out.varint(form.index);
        out.byte(present);
        out.bytes(&parts.into_bytes());
        Ok(())
    }

    /// Writes an operation that converts the type of an operand.
    pub(super) fn cast_head(
        &mut self,
        out: &mut Output,
        form: &Form,
        location: &Location,
        ty: u64,
        operand: u64,
    ) -> Result<(), Error> {
        out.varint(form.index);
        out.byte(mask::RESULTS | mask::OPERANDS);
        out.varint(self.encoder.location(location)?);
        for index in [ty, operand] {
            out.count(1);
            out.varint(index);
        }
        Ok(())
    }

    /// Divides the attributes of an operation into its properties and the entries of its dictionary, which contains all
    /// attributes in old formats.
    #[expect(clippy::type_complexity, reason = "two lists of named attributes")]
    fn divide(
        &self,
        form: &Form,
        mut own: Vec<(Str, Attribute)>,
        discardable: &DictionaryAttribute,
    ) -> (Vec<(Str, Attribute)>, Vec<(Str, Attribute)>) {
        let mut others = Vec::new();
        for (name, attribute) in discardable.entries() {
            if own.iter().any(|(known, _)| known == name) {
                continue;
            }
            let is_own = form.attributes.iter().flatten().any(|(known, _)| known == name);
            if is_own { &mut own } else { &mut others }.push((name.clone(), attribute.clone()));
        }
        if let Some(known) = &form.attributes {
            // VHLO does not have all attributes of calls.
            let is_known = |name: &Str| known.iter().any(|(known, _)| known == name);
            let (known, unknown): (Vec<_>, Vec<_>) = own.into_iter().partition(|(name, _)| is_known(name));
            (own, others) = (known, [others, unknown].concat());
        }
        if self.format < FORMAT_PROPERTIES {
            others.append(&mut own);
        }
        (own, others)
    }

    /// Returns the index of an operation's properties; `None` if the operation has none.
    fn op_properties(&mut self, form: &Form, own: &[(Str, Attribute)]) -> Result<Option<u64>, Error> {
        if self.format < FORMAT_PROPERTIES {
            return Ok(None);
        }
        let mut out = Output::default();
        let Some(attributes) = &form.attributes else {
            if own.is_empty() {
                return Ok(None);
            }
            let entries = DictionaryAttribute::new(own.to_vec());
            out.varint(builtin::encode_dictionary(&mut self.encoder, form.home, &entries)?);
            return Ok(Some(self.properties.add(out.into_bytes())));
        };
        let mut sizes_behind = Output::default();
        for (name, presence) in attributes {
            let attribute = own.iter().find(|(known, _)| known == name).map(|(_, attribute)| attribute);
            if let Presence::SegmentSizes(groups) = *presence
                && self.format >= FORMAT_SEGMENT_SIZES
            {
                sizes_behind.sparse_array(&segment_sizes(name, attribute, groups)?);
                continue;
            }
            let index = match attribute {
                Some(attribute) => Some(self.encoder.attribute(form.home, attribute)?),
                None => None,
            };
            match (presence, index) {
                (Presence::Since(since), None) if *since > COMMON_AGE => {}
                (Presence::Optional | Presence::Since(_), index) => {
                    out.varint_with_flag(index.unwrap_or(0), index.is_some());
                }
                (Presence::Required | Presence::SegmentSizes(_), Some(index)) => out.varint(index),
                (Presence::Required | Presence::SegmentSizes(_), None) => return Err(missing(name)),
            }
        }
        if attributes.is_empty() {
            return Ok(None);
        }
        out.bytes(&sizes_behind.into_bytes());
        Ok(Some(self.properties.add(out.into_bytes())))
    }

    /// Writes the region of an operation whose regions are isolated.
    pub(super) fn isolated_region(&self, out: &mut Output, region: &Output) {
        if self.format >= FORMAT_LAZY_REGIONS {
            out.section(SECTION_IR, region);
        } else {
            out.append(region);
        }
    }

    /// Returns the name of a form of an operation in VHLO.
    pub(super) fn vhlo_form_name(stablehlo: &'static str, form: u32) -> String {
        format!("vhlo.{}_v{form}", vhlo_name(stablehlo))
    }
}

fn missing(name: &str) -> Error {
    Error::new(ErrorKind::Invalid, format!("attribute '{name}': expected a value, found nothing"))
}

/// Returns the sizes of operand or result groups.
fn segment_sizes(name: &str, attribute: Option<&Attribute>, groups: usize) -> Result<Vec<i64>, Error> {
    match attribute {
        Some(Attribute::IntegerArray { ty: ElementType::I32, values }) if values.len() == groups => {
            Ok(values.to_vec())
        }
        Some(other) => {
            let message = format!("attribute '{name}': expected {groups} sizes, found {}", other.kind());
            Err(Error::new(ErrorKind::Invalid, message))
        }
        None => Err(missing(name)),
    }
}
