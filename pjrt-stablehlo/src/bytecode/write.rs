//! The writer of MLIR bytecode: the container, and the parts of an operation before its regions.

use std::collections::HashMap;
use std::rc::Rc;

use super::body::write_body;
use super::builtin;
use super::correspondence::{VHLO_FUNCTION, vhlo_name};
use super::dialects::WRITERS;
use super::encoder::{Encoded, Encoder, Home, Pool};
use super::ops::native_attributes;
use super::output::Output;
use super::sections::{
    FORMAT_DIALECT_VERSIONS, FORMAT_ELIDED_LOCATIONS, FORMAT_LAZY_REGIONS, FORMAT_PROPERTIES,
    FORMAT_SEGMENT_SIZES, NEWEST_FORMAT, SECTION_DIALECTS, SECTION_ENTRIES, SECTION_ENTRY_OFFSETS,
    SECTION_IR, SECTION_PROPERTIES, SECTION_STRINGS, mask,
};
use crate::ir::{
    Attribute, DictionaryAttribute, ElementType, Function, Location, MeshDeclaration, Module, Presence, Str,
    Type,
};
use crate::versions::{CURRENT_VERSION, MINIMUM_VERSION, Version};
use crate::{Error, ErrorKind};

/// The first bytes of MLIR bytecode.
pub(crate) const MAGIC: &[u8] = b"ML\xefR";

/// The writer that files without VHLO name.
const PRODUCER: &str = concat!("pjrt-stablehlo ", env!("CARGO_PKG_VERSION"));

/// The first versions of VHLO with the formats of bytecode in which they are written.
const FORMATS: &[((u32, u32), u64)] = &[((0, 9), 0), ((0, 10), 1), ((0, 12), 3), ((0, 14), 4), ((0, 15), 6)];

/// Writes a module as StableHLO bytecode: MLIR bytecode with the operations, attributes and types of the `stablehlo`
/// dialect and the others that the module uses.
///
/// The bytecode has no compatibility guarantee, like that of MLIR's own writer: the reader must have the newest form of
/// each operation that the module contains. [`write_portable_artifact`] writes for readers of other versions.
/// [`parse`](crate::parse) reads an equal module from the result, except that resources become dense elements.
///
/// # Errors
/// Returns an error of kind [`ErrorKind::Invalid`] if an operation lacks a required attribute or uses a value that is
/// not defined before it, [`ErrorKind::TooLarge`] if an attribute or type exceeds a [limit](crate::limits), and
/// [`ErrorKind::Unsupported`] if an attribute has no encoding.
///
/// # Panics
/// Panics if an operation refers to values or regions of another body.
///
/// ```
/// let text = "func.func @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }";
/// let module = pjrt_stablehlo::parse(text.to_owned())?;
/// let bytecode: Vec<u8> = pjrt_stablehlo::write_bytecode(&module)?;
/// assert_eq!(pjrt_stablehlo::parse(bytecode)?.to_string(), module.to_string());
/// # Ok::<(), pjrt_stablehlo::Error>(())
/// ```
pub fn write_bytecode(module: &Module) -> Result<Vec<u8>, Error> {
    Writer::new(None, NEWEST_FORMAT).write(module, PRODUCER)
}

/// Writes a module as a portable artifact: StableHLO in its versioned form VHLO, as MLIR bytecode.
///
/// Every StableHLO library of `version` or newer reads the artifact, with
/// `mlir::stablehlo::deserializePortableArtifact`. Operations, attributes and types outside VHLO, such as Shardy's, are
/// written in the encoding of their dialect.
///
/// # Errors
/// Returns an error of kind [`ErrorKind::Unsupported`] that names the operation and the version that is needed if
/// `version` cannot express the module, and if `version` is not between
/// [`MINIMUM_VERSION`] and [`CURRENT_VERSION`]. Returns the errors of [`write_bytecode`].
///
/// # Panics
/// Panics if an operation refers to values or regions of another body.
///
/// ```
/// use pjrt_stablehlo::versions::Version;
/// use pjrt_stablehlo::write_portable_artifact;
///
/// let text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
///     %0 = stablehlo.tan %x : tensor<4xf32>
///     return %0 : tensor<4xf32>
/// }";
/// let module = pjrt_stablehlo::parse(text.to_owned())?;
/// let artifact: Vec<u8> = write_portable_artifact(&module, Version::new(1, 9, 0))?;
/// assert_eq!(pjrt_stablehlo::parse(artifact)?.source_version, Some(Version::new(1, 9, 0)));
///
/// let error = write_portable_artifact(&module, Version::new(1, 0, 0)).unwrap_err();
/// assert!(error.to_string().contains("stablehlo.tan: VHLO 1.0.0 does not have this operation, which needs VHLO 1.4.0"));
/// # Ok::<(), pjrt_stablehlo::Error>(())
/// ```
pub fn write_portable_artifact(module: &Module, version: Version) -> Result<Vec<u8>, Error> {
    let number = |version: Version| (version.major, version.minor);
    if !(number(MINIMUM_VERSION)..=number(CURRENT_VERSION)).contains(&number(version)) {
        let message = format!(
            "VHLO {version} is not supported, expected a version from {MINIMUM_VERSION} to {CURRENT_VERSION}"
        );
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    let formats = FORMATS.iter().filter(|(since, _)| *since <= number(version));
    let format = formats.map(|(_, format)| *format).max().unwrap_or(0);
    Writer::new(Some(version), format).write(module, &format!("StableHLO_v{version}"))
}

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
    fn new(version: Option<Version>, format: u64) -> Self {
        Writer {
            encoder: Encoder::new(WRITERS, version),
            version,
            format,
            op_names: Pool::new(),
            forms: HashMap::new(),
            properties: Pool::new(),
        }
    }

    fn write(mut self, module: &Module, producer: &str) -> Result<Vec<u8>, Error> {
        let mut code = Output::default();
        code.varint_with_flag(1, false);
        self.module(module, &mut code).map_err(|error| error.in_op("builtin.module", &module.location))?;
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
        file.section(SECTION_IR, &code);
        file.section(SECTION_STRINGS, &self.strings());
        if self.format >= FORMAT_PROPERTIES {
            let mut properties = Output::default();
            properties.count(self.properties.items().len());
            self.properties.items().for_each(|item| properties.blob(item));
            file.section(SECTION_PROPERTIES, &properties);
        }
        Ok(file.into_bytes())
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

    fn module(&mut self, module: &Module, code: &mut Output) -> Result<(), Error> {
        let name = module.name.iter().map(|name| ("sym_name".into(), Attribute::String(name.clone())));
        let head = OpHead {
            form: self.native_form("builtin.module")?,
            location: &module.location,
            own: name.collect(),
            discardable: &module.attributes,
            result_types: Vec::new(),
            operands: Vec::new(),
            regions: (1, true),
        };
        self.op_head(code, head)?;
        let mut region = Output::default();
        // One block, without values.
        region.count(1);
        region.count(0);
        region.varint_with_flag((module.meshes().len() + module.functions().len()) as u64, false);
        for mesh in module.meshes() {
            self.mesh(mesh, &mut region).map_err(|error| error.in_op("sdy.mesh", &mesh.location))?;
        }
        for function in module.functions() {
            let written = self.function(function, &mut region);
            written.map_err(|error| error.in_op("func.func", &function.location))?;
        }
        self.isolated_region(code, &region);
        Ok(())
    }

    /// Writes the region of an operation whose regions are isolated.
    pub(super) fn isolated_region(&self, out: &mut Output, region: &Output) {
        if self.format >= FORMAT_LAZY_REGIONS {
            out.section(SECTION_IR, region);
        } else {
            out.append(region);
        }
    }

    fn mesh(&mut self, mesh: &MeshDeclaration, out: &mut Output) -> Result<(), Error> {
        self.encoder.require_mixed_dialects(|| "meshes of Shardy".to_owned())?;
        let head = OpHead {
            form: self.native_form("sdy.mesh")?,
            location: &mesh.location,
            own: mesh.own_attributes(),
            discardable: &mesh.attributes,
            result_types: Vec::new(),
            operands: Vec::new(),
            regions: (0, false),
        };
        self.op_head(out, head)
    }

    fn function(&mut self, function: &Function, out: &mut Output) -> Result<(), Error> {
        let mut own = function.own_attributes();
        let form = match self.version {
            None => self.native_form("func.func")?,
            Some(_) => {
                for &name in VHLO_FUNCTION {
                    if !own.iter().any(|(known, _)| *known == name) {
                        let is_list = name.ends_with("_attrs");
                        let empty = if is_list { Attribute::Array([].into()) } else { "".into() };
                        own.push((name.into(), empty));
                    }
                }
                let attributes = VHLO_FUNCTION.iter().map(|&name| (name.into(), Presence::Required));
                self.form("vhlo.func_v1", || Some(attributes.collect()))?
            }
        };
        let head = OpHead {
            form,
            location: &function.location,
            own,
            discardable: &function.attributes,
            result_types: Vec::new(),
            operands: Vec::new(),
            regions: (1, true),
        };
        self.op_head(out, head)?;
        let region = write_body(self, &function.body)?;
        self.isolated_region(out, &region);
        Ok(())
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
