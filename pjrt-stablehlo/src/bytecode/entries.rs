//! The tables of attributes and types, whose entries are decoded when they are first needed.
//!
//! Entries refer to each other in any order. Decoding an entry does not decode others recursively: it records the
//! missing entries, they are decoded first, and the entry is decoded again. Thus neither nesting nor cycles can
//! overflow the stack.

use super::asm;
use super::cursor::{Cursor, malformed};
use super::sections::{File, SECTION_ENTRIES, SECTION_ENTRY_OFFSETS};
use crate::ir::{
    Attribute, DictionaryAttribute, ElementType, FieldReader, Ints, Location, Str, TensorType, Type,
};
use crate::limits::{MAX_ATTRIBUTE_WEIGHT, MAX_NESTING, MAX_TYPE_WEIGHT};
use crate::{Error, ErrorKind};

/// Decodes an attribute or a type.
type Decode<T> = fn(&mut Decoder<'_>) -> Result<T, Error>;

/// The functions that decode the entries of a dialect.
pub(super) struct Dialect {
    pub(super) name: &'static str,
    /// Decodes an attribute; `None` if the dialect has no attributes.
    pub(super) attribute: Option<Decode<Attribute>>,
    /// Decodes a type; `None` if the dialect has no types.
    pub(super) ty: Option<Decode<Type>>,
}

/// The state of an entry.
enum State<T> {
    /// Not decoded yet.
    Encoded,
    /// Waiting for the entries that it refers to.
    Waiting,
    /// Decoded.
    Decoded(T),
}

struct Entry<T> {
    start: usize,
    end: usize,
    dialect: u32,
    /// `true` if the entry has its dialect's own encoding, `false` if it is text.
    custom: bool,
    /// The nesting depth, which is 1 for an entry without references.
    depth: u32,
    /// The number of entries that it consists of, each counted as often as it is referred to.
    weight: u32,
    state: State<T>,
}

/// An entry of either table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Node {
    Attribute(u32),
    Type(u32),
}

/// Both tables.
pub(super) struct Entries {
    /// The dialects that can be decoded.
    dialects: &'static [Dialect],
    attributes: Vec<Entry<Attribute>>,
    types: Vec<Entry<Type>>,
    /// The lists of [`Entries::resolve`], kept for reuse.
    missing: Vec<Node>,
    path: Vec<(Node, u32)>,
}

/// The maximum number of attempts at decoding an entry. Every attempt except the last ends with missing entries; typed
/// lists need several.
const MAX_ATTEMPTS: u32 = 16;

impl Entries {
    /// Reads the places of all entries, which are decoded by the functions of `dialects`.
    pub(super) fn read(file: &File, input: &[u8], dialects: &'static [Dialect]) -> Result<Entries, Error> {
        let entries = file.required(SECTION_ENTRIES)?;
        let mut offsets = Cursor::new(input, file.required(SECTION_ENTRY_OFFSETS)?);
        let attribute_count = offsets.count()?;
        let type_count = offsets.count()?;
        let mut position = entries.start;
        let attributes = read_table(file, &mut offsets, attribute_count, &mut position, entries.end)?;
        let types = read_table(file, &mut offsets, type_count, &mut position, entries.end)?;
        offsets.finish("the offsets of attributes and types")?;
        Ok(Entries { dialects, attributes, types, missing: Vec::new(), path: Vec::new() })
    }

    /// Returns the attribute at an index that was read from `cursor`.
    pub(super) fn attribute(
        &mut self,
        file: &File,
        cursor: &Cursor<'_>,
        index: u64,
    ) -> Result<&Attribute, Error> {
        let index = attribute_index(self, cursor, index)?;
        if !matches!(self.attributes[index as usize].state, State::Decoded(_)) {
            self.resolve(file, Node::Attribute(index))?;
        }
        match &self.attributes[index as usize].state {
            State::Decoded(attribute) => Ok(attribute),
            _ => Err(cursor.error("an attribute refers to itself")),
        }
    }

    /// Returns the type at an index that was read from `cursor`.
    pub(super) fn ty(&mut self, file: &File, cursor: &Cursor<'_>, index: u64) -> Result<Type, Error> {
        let index = type_index(self, cursor, index)?;
        if !matches!(self.types[index as usize].state, State::Decoded(_)) {
            self.resolve(file, Node::Type(index))?;
        }
        match &self.types[index as usize].state {
            State::Decoded(ty) => Ok(ty.clone()),
            _ => Err(cursor.error("a type refers to itself")),
        }
    }

    /// Decodes an entry and all entries that it refers to.
    fn resolve(&mut self, file: &File, node: Node) -> Result<(), Error> {
        let mut missing = std::mem::take(&mut self.missing);
        let mut path = std::mem::take(&mut self.path);
        path.clear();
        path.push((node, 0));
        let resolved = self.resolve_path(file, &mut path, &mut missing);
        (self.missing, self.path) = (missing, path);
        resolved
    }

    /// Decodes the last entry of a path after all entries that it refers to, and then the rest of the path.
    fn resolve_path(
        &mut self,
        file: &File,
        path: &mut Vec<(Node, u32)>,
        missing: &mut Vec<Node>,
    ) -> Result<(), Error> {
        while let Some((node, attempts)) = path.pop() {
            if self.is_decoded(node) {
                continue;
            }
            self.decode(file, node, missing)?;
            if missing.is_empty() {
                continue;
            }
            let offset = self.offset(node);
            if attempts >= MAX_ATTEMPTS {
                return Err(malformed(
                    offset,
                    "an attribute or type cannot be resolved: its parts have unexpected kinds",
                ));
            }
            self.set_waiting(node);
            path.push((node, attempts + 1));
            for node in missing.drain(..) {
                if self.is_waiting(node) {
                    return Err(malformed(offset, "an attribute or type refers to itself"));
                }
                path.push((node, 0));
            }
        }
        Ok(())
    }

    /// Decodes one entry, or adds the entries that must be decoded first to `missing`.
    fn decode(&mut self, file: &File, node: Node, missing: &mut Vec<Node>) -> Result<(), Error> {
        let (start, end, dialect, custom) = match node {
            Node::Attribute(index) => self.attributes[index as usize].place(),
            Node::Type(index) => self.types[index as usize].place(),
        };
        missing.clear();
        let cursor = Cursor::new(&file.input, start..end);
        let mut decoder = Decoder { file, entries: self, cursor, missing, depth: 0, weight: 0 };
        let dialect = &*file.dialects[dialect as usize];
        match node {
            Node::Attribute(index) => {
                let decoded = decoder.decode_attribute(dialect, custom);
                let Decoder { missing, depth, weight, .. } = decoder;
                if !missing.is_empty() {
                    return Ok(());
                }
                let mut attribute = decoded?;
                let (mut depth, mut weight) = (depth + 1, weight.saturating_add(1));
                let max_depth = match &attribute {
                    Attribute::Location(location) => location.max_nesting(),
                    _ => MAX_NESTING,
                };
                if depth > max_depth || weight > MAX_ATTRIBUTE_WEIGHT {
                    // A location that nests too deeply is no reason to reject a program.
                    if !matches!(attribute, Attribute::Location(_)) {
                        return Err(too_nested(start));
                    }
                    attribute = Attribute::Location(Location::UNKNOWN);
                    (depth, weight) = (1, 1);
                }
                let entry = &mut self.attributes[index as usize];
                (entry.depth, entry.weight, entry.state) = (depth, weight, State::Decoded(attribute));
            }
            Node::Type(index) => {
                let decoded = decoder.decode_type(dialect, custom);
                let Decoder { missing, depth, weight, .. } = decoder;
                if !missing.is_empty() {
                    return Ok(());
                }
                let ty = decoded?;
                let (depth, weight) = (depth + 1, weight.saturating_add(1));
                if depth > MAX_NESTING || weight > MAX_TYPE_WEIGHT {
                    return Err(too_nested(start));
                }
                let entry = &mut self.types[index as usize];
                (entry.depth, entry.weight, entry.state) = (depth, weight, State::Decoded(ty));
            }
        }
        Ok(())
    }

    fn is_decoded(&self, node: Node) -> bool {
        match node {
            Node::Attribute(index) => matches!(self.attributes[index as usize].state, State::Decoded(_)),
            Node::Type(index) => matches!(self.types[index as usize].state, State::Decoded(_)),
        }
    }

    fn is_waiting(&self, node: Node) -> bool {
        match node {
            Node::Attribute(index) => matches!(self.attributes[index as usize].state, State::Waiting),
            Node::Type(index) => matches!(self.types[index as usize].state, State::Waiting),
        }
    }

    fn set_waiting(&mut self, node: Node) {
        match node {
            Node::Attribute(index) => self.attributes[index as usize].state = State::Waiting,
            Node::Type(index) => self.types[index as usize].state = State::Waiting,
        }
    }

    fn offset(&self, node: Node) -> usize {
        match node {
            Node::Attribute(index) => self.attributes[index as usize].start,
            Node::Type(index) => self.types[index as usize].start,
        }
    }
}

impl<T> Entry<T> {
    fn place(&self) -> (usize, usize, u32, bool) {
        (self.start, self.end, self.dialect, self.custom)
    }
}

fn too_nested(offset: usize) -> Error {
    let message =
        format!("an attribute or type is nested more than {MAX_NESTING} deep, or has too many parts");
    Error::new(ErrorKind::TooLarge, message).at_offset(offset)
}

fn attribute_index(entries: &Entries, cursor: &Cursor<'_>, index: u64) -> Result<u32, Error> {
    checked_index(cursor, index, entries.attributes.len(), "attributes")
}

fn type_index(entries: &Entries, cursor: &Cursor<'_>, index: u64) -> Result<u32, Error> {
    checked_index(cursor, index, entries.types.len(), "types")
}

fn checked_index(cursor: &Cursor<'_>, index: u64, len: usize, what: &str) -> Result<u32, Error> {
    u32::try_from(index)
        .ok()
        .filter(|&index| (index as usize) < len)
        .ok_or_else(|| cursor.error(format!("expected the index of one of {len} {what}, found {index}")))
}

fn read_table<T>(
    file: &File,
    offsets: &mut Cursor<'_>,
    count: usize,
    position: &mut usize,
    end: usize,
) -> Result<Vec<Entry<T>>, Error> {
    let mut table = Vec::with_capacity(count);
    while table.len() < count {
        let (dialect, group) = file.dialect_group(offsets)?;
        if group > count - table.len() {
            return Err(
                offsets.error(format!("expected at most {} entries, found {group}", count - table.len()))
            );
        }
        for _ in 0..group {
            let (size, custom) = offsets.varint_with_flag()?;
            let start = *position;
            let Some(entry_end) = usize::try_from(size).ok().filter(|&size| size <= end - start) else {
                return Err(
                    offsets.error(format!("an entry of {size} bytes is out of bounds of its section"))
                );
            };
            *position = start + entry_end;
            let dialect = dialect as u32;
            table.push(Entry {
                start,
                end: *position,
                dialect,
                custom,
                depth: 0,
                weight: 0,
                state: State::Encoded,
            });
        }
    }
    Ok(table)
}

/// Decodes one entry. A reference to an entry that has not been decoded is recorded, and returns a placeholder.
pub(super) struct Decoder<'a> {
    pub(super) file: &'a File,
    entries: &'a Entries,
    pub(super) cursor: Cursor<'a>,
    missing: &'a mut Vec<Node>,
    depth: u32,
    weight: u32,
}

impl Decoder<'_> {
    fn dialect(&self, name: &str) -> Option<&'static Dialect> {
        self.entries.dialects.iter().find(|dialect| dialect.name == name)
    }

    fn decode_attribute(&mut self, dialect: &str, custom: bool) -> Result<Attribute, Error> {
        if !custom {
            let text = self.cursor.null_terminated()?;
            self.cursor.finish("the attribute's text")?;
            return Ok(asm::attribute(text));
        }
        let Some(decode) = self.dialect(dialect).and_then(|dialect| dialect.attribute) else {
            return Err(self.unsupported(format!("attributes of dialect '{dialect}'")));
        };
        let attribute = decode(self)?;
        if self.missing.is_empty() {
            self.cursor.finish("the attribute")?;
        }
        Ok(attribute)
    }

    fn decode_type(&mut self, dialect: &str, custom: bool) -> Result<Type, Error> {
        if !custom {
            let text = self.cursor.null_terminated()?;
            self.cursor.finish("the type's text")?;
            return Ok(asm::ty(text));
        }
        let Some(decode) = self.dialect(dialect).and_then(|dialect| dialect.ty) else {
            return Err(self.unsupported(format!("types of dialect '{dialect}'")));
        };
        let ty = decode(self)?;
        if self.missing.is_empty() {
            self.cursor.finish("the type")?;
        }
        Ok(ty)
    }

    pub(super) fn unsupported(&self, what: String) -> Error {
        Error::new(ErrorKind::Unsupported, format!("{what} are not supported"))
            .at_offset(self.cursor.position())
    }

    /// Reads a reference to an attribute. Returns `unit` if the attribute has not been decoded.
    pub(super) fn attribute(&mut self) -> Result<Attribute, Error> {
        let index = self.cursor.varint()?;
        self.attribute_at(index)
    }

    fn attribute_at(&mut self, index: u64) -> Result<Attribute, Error> {
        let index = attribute_index(self.entries, &self.cursor, index)?;
        let entry = &self.entries.attributes[index as usize];
        if let State::Decoded(attribute) = &entry.state {
            self.depth = self.depth.max(entry.depth);
            self.weight = self.weight.saturating_add(entry.weight);
            return Ok(attribute.clone());
        }
        self.missing.push(Node::Attribute(index));
        Ok(Attribute::Unit)
    }

    /// Reads a reference to an optional attribute.
    pub(super) fn optional_attribute(&mut self) -> Result<Option<Attribute>, Error> {
        let (index, present) = self.cursor.varint_with_flag()?;
        if present { self.attribute_at(index).map(Some) } else { Ok(None) }
    }

    /// Reads a reference to a type. Returns `none` if the type has not been decoded.
    pub(super) fn ty(&mut self) -> Result<Type, Error> {
        let index = self.cursor.varint()?;
        let index = type_index(self.entries, &self.cursor, index)?;
        let entry = &self.entries.types[index as usize];
        if let State::Decoded(ty) = &entry.state {
            self.depth = self.depth.max(entry.depth);
            self.weight = self.weight.saturating_add(entry.weight);
            return Ok(ty.clone());
        }
        self.missing.push(Node::Type(index));
        Ok(Type::None)
    }

    /// Reads a list whose elements `element` reads.
    pub(super) fn list<T>(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let count = self.cursor.count()?;
        (0..count).map(|_| element(self)).collect()
    }

    pub(super) fn attributes(&mut self) -> Result<Vec<Attribute>, Error> {
        self.list(Self::attribute)
    }

    pub(super) fn types(&mut self) -> Result<Vec<Type>, Error> {
        self.list(Self::ty)
    }

    /// Reads a reference to an attribute, and converts it. Returns the default while entries are missing.
    pub(super) fn typed<T: Default>(
        &mut self,
        expected: &str,
        convert: impl FnOnce(Attribute) -> Option<T>,
    ) -> Result<T, Error> {
        let attribute = self.attribute()?;
        if !self.missing.is_empty() {
            return Ok(T::default());
        }
        let kind = attribute.kind();
        convert(attribute).ok_or_else(|| self.cursor.error(format!("expected {expected}, found {kind}")))
    }

    /// Reads a reference to a string attribute.
    pub(super) fn string_attribute(&mut self) -> Result<Str, Error> {
        self.typed("a string", |attribute| match attribute {
            Attribute::String(text) => Some(text),
            _ => None,
        })
    }

    /// Reads a reference to a string attribute in a location, and replaces bytes that are not UTF-8.
    pub(super) fn location_name(&mut self) -> Result<Str, Error> {
        self.typed("a string", |attribute| match attribute {
            Attribute::String(text) => Some(text),
            Attribute::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).as_ref().into()),
            _ => None,
        })
    }

    /// Reads a reference to a location.
    pub(super) fn location(&mut self) -> Result<Location, Error> {
        self.typed("a location", |attribute| match attribute {
            Attribute::Location(location) => Some(location),
            _ => None,
        })
    }

    /// Reads a reference to a tensor type.
    pub(super) fn tensor_type(&mut self) -> Result<TensorType, Error> {
        match self.ty()? {
            Type::Tensor(tensor) => Ok(tensor),
            _ if !self.missing.is_empty() => Ok(TensorType::new(ElementType::I1, [])),
            other => Err(self.cursor.error(format!("expected a tensor type, found {other}"))),
        }
    }

    /// Reads a reference to a string of the string section.
    pub(super) fn string(&mut self) -> Result<Attribute, Error> {
        let index = self.cursor.varint()?;
        self.file.string(&self.cursor, index).cloned()
    }

    /// Reads a reference to a string of the string section, which must be UTF-8.
    pub(super) fn text(&mut self) -> Result<Str, Error> {
        let index = self.cursor.varint()?;
        self.file.text(&self.cursor, index)
    }

    /// Returns `true` if the decoded value is incomplete because entries are missing.
    pub(super) fn is_incomplete(&self) -> bool {
        !self.missing.is_empty()
    }

    /// Reads a dictionary of named attributes.
    pub(super) fn dictionary(&mut self) -> Result<Attribute, Error> {
        let entries = self.list(|decoder| Ok((decoder.string_attribute()?, decoder.attribute()?)))?;
        let dictionary = DictionaryAttribute::new(entries);
        // The names of missing entries are empty, too.
        if !self.is_incomplete() && dictionary.entries().iter().any(|(name, _)| name.is_empty()) {
            return Err(self
                .cursor
                .error("expected a name for each entry of a dictionary, found an empty string"));
        }
        let twice = dictionary.entries().windows(2).find(|pair| pair[0].0 == pair[1].0);
        if let Some([(name, _), _]) = twice.filter(|_| !self.is_incomplete()) {
            return Err(self
                .cursor
                .error(format!("expected one entry named '{name}' in a dictionary, found two")));
        }
        Ok(Attribute::Dictionary(dictionary))
    }
}

/// Structured attributes of the `stablehlo` dialect contain their fields in order.
impl FieldReader for Decoder<'_> {
    type Error = Error;

    fn integer(&mut self, _name: &'static str) -> Result<i64, Error> {
        self.cursor.signed()
    }

    fn integers(&mut self, _name: &'static str) -> Result<Ints, Error> {
        self.cursor.signed_list().map(Into::into)
    }

    fn ty(&mut self, _name: &'static str) -> Result<Type, Error> {
        Decoder::ty(self)
    }

    fn boolean(&mut self, _name: &'static str) -> Result<bool, Error> {
        Ok(self.cursor.byte()? != 0)
    }
}
