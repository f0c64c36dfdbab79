//! The sections of the file: strings, dialects and operation names, properties, and resources.

use std::ops::Range;

use super::cursor::{Cursor, malformed};
use crate::ir::{Attribute, Str};
use crate::{Bytes, Error, ErrorKind};

/// The first bytes of MLIR bytecode.
pub(crate) const MAGIC: &[u8] = b"ML\xefR";

/// The newest supported version of the bytecode format.
pub(super) const NEWEST_FORMAT: u64 = 6;
/// The first format in which dialects have versions.
pub(super) const FORMAT_DIALECT_VERSIONS: u64 = 1;
/// The first format in which isolated regions have their own sections.
pub(super) const FORMAT_LAZY_REGIONS: u64 = 2;
/// The first format with use-list orders.
pub(super) const FORMAT_USE_LIST_ORDERS: u64 = 3;
/// The first format that omits unknown locations of block arguments.
pub(super) const FORMAT_ELIDED_LOCATIONS: u64 = 4;
/// The first format in which operations have properties.
pub(super) const FORMAT_PROPERTIES: u64 = 5;
/// The first format in which the sizes of operand and result groups are not attributes.
pub(super) const FORMAT_SEGMENT_SIZES: u64 = 6;

pub(super) const SECTION_STRINGS: u8 = 0;
pub(super) const SECTION_DIALECTS: u8 = 1;
pub(super) const SECTION_ENTRIES: u8 = 2;
pub(super) const SECTION_ENTRY_OFFSETS: u8 = 3;
pub(super) const SECTION_IR: u8 = 4;
const SECTION_RESOURCES: u8 = 5;
const SECTION_RESOURCE_OFFSETS: u8 = 6;
const SECTION_DIALECT_VERSION: u8 = 7;
pub(super) const SECTION_PROPERTIES: u8 = 8;
const SECTION_COUNT: usize = 9;

/// The bits of the mask that states which parts of an operation follow.
pub(super) mod mask {
    pub(in super::super) const ATTRIBUTES: u8 = 1;
    pub(in super::super) const RESULTS: u8 = 2;
    pub(in super::super) const OPERANDS: u8 = 4;
    pub(in super::super) const SUCCESSORS: u8 = 8;
    pub(in super::super) const REGIONS: u8 = 16;
    pub(in super::super) const USE_LIST_ORDERS: u8 = 32;
    pub(in super::super) const PROPERTIES: u8 = 64;
}

const SECTION_NAMES: [&str; SECTION_COUNT] = [
    "string",
    "dialect",
    "attribute and type",
    "attribute and type offset",
    "IR",
    "resource",
    "resource offset",
    "dialect version",
    "properties",
];

/// An operation name of the file.
pub(super) struct OpName {
    /// The index of the dialect.
    pub(super) dialect: usize,
    /// The name without the dialect.
    pub(super) name: Str,
    /// `true` if the writer knew the operation. Its properties then have the operation's own encoding, otherwise they
    /// are a dictionary.
    pub(super) registered: bool,
}

/// A resource: constant data outside the attributes.
pub(super) struct Resource {
    pub(super) key: Str,
    /// The range of the data; `None` for a declaration, or if the data is not a blob.
    pub(super) blob: Option<Range<usize>>,
}

/// The contents of the file except attributes, types and code.
pub(super) struct File {
    pub(super) input: Bytes,
    pub(super) format: u64,
    /// The writer of the file, such as `StableHLO_v1.13.7` or `MLIR19.0.0git`.
    pub(super) producer: String,
    pub(super) strings: Vec<Attribute>,
    pub(super) dialects: Vec<Str>,
    pub(super) op_names: Vec<OpName>,
    pub(super) properties: Vec<Range<usize>>,
    pub(super) resources: Vec<Resource>,
    sections: [Option<Range<usize>>; SECTION_COUNT],
}

/// Reads the header of a section, and returns its id and range.
pub(super) fn section(cursor: &mut Cursor<'_>) -> Result<(u8, Range<usize>), Error> {
    let head = cursor.byte()?;
    let length = cursor.varint()?;
    let id = head & 0x7f;
    if usize::from(id) >= SECTION_COUNT {
        return Err(cursor.error(format!("expected a section, found number {id}")));
    }
    if head & 0x80 != 0 {
        let alignment = cursor.varint()?;
        cursor.align(alignment)?;
    }
    Ok((id, cursor.take(length)?))
}

impl File {
    /// Reads the header and all sections except attributes, types and code.
    pub(super) fn read(input: Bytes) -> Result<File, Error> {
        let bytes = input.clone();
        let mut cursor = Cursor::new(&bytes, 0..bytes.len());
        cursor.take(4)?;
        let format = cursor.varint()?;
        if format > NEWEST_FORMAT {
            let message =
                format!("bytecode format {format} is not supported, expected at most {NEWEST_FORMAT}");
            return Err(Error::new(ErrorKind::Unsupported, message).at_offset(4));
        }
        let producer = String::from_utf8_lossy(cursor.null_terminated()?).into_owned();
        let mut sections = [const { None }; SECTION_COUNT];
        while !cursor.is_empty() {
            let start = cursor.position();
            let (id, range) = section(&mut cursor)?;
            let name = SECTION_NAMES[usize::from(id)];
            if sections[usize::from(id)].replace(range).is_some() {
                return Err(malformed(start, format!("expected one {name} section, found a second")));
            }
        }
        let mut file = File {
            input,
            format,
            producer,
            strings: Vec::new(),
            dialects: Vec::new(),
            op_names: Vec::new(),
            properties: Vec::new(),
            resources: Vec::new(),
            sections,
        };
        file.read_strings(&bytes)?;
        file.read_properties(&bytes)?;
        file.read_dialects(&bytes)?;
        file.read_resources(&bytes)?;
        Ok(file)
    }

    /// Returns the range of a required section.
    pub(super) fn required(&self, id: u8) -> Result<Range<usize>, Error> {
        self.sections[usize::from(id)].clone().ok_or_else(|| {
            malformed(self.input.len(), format!("the {} section is missing", SECTION_NAMES[usize::from(id)]))
        })
    }

    /// Returns the string at an index.
    pub(super) fn string(&self, cursor: &Cursor<'_>, index: u64) -> Result<&Attribute, Error> {
        let string = usize::try_from(index).ok().and_then(|index| self.strings.get(index));
        string.ok_or_else(|| {
            cursor
                .error(format!("expected the index of one of {} strings, found {index}", self.strings.len()))
        })
    }

    /// Returns the string at an index, which must be UTF-8.
    pub(super) fn text(&self, cursor: &Cursor<'_>, index: u64) -> Result<Str, Error> {
        match self.string(cursor, index)? {
            Attribute::String(text) => Ok(text.clone()),
            _ => Err(cursor.error("expected a name in UTF-8")),
        }
    }

    fn read_strings(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let range = self.required(SECTION_STRINGS)?;
        let mut cursor = Cursor::new(bytes, range.clone());
        let count = cursor.count()?;
        let mut end = range.end;
        let mut strings = Vec::with_capacity(count);
        for _ in 0..count {
            let size = cursor.varint()?;
            let start =
                usize::try_from(size).ok().filter(|&size| size > 0).and_then(|size| end.checked_sub(size));
            let Some(start) = start.filter(|&start| start >= cursor.position()) else {
                return Err(
                    cursor.error(format!("a string of {size} bytes is out of bounds of the string section"))
                );
            };
            // The last byte is a null byte.
            strings.push(match std::str::from_utf8(&bytes[start..end - 1]) {
                Ok(text) => Attribute::String(text.into()),
                Err(_) => Attribute::Bytes(self.input.slice(start..end - 1).unwrap_or_default()),
            });
            end = start;
        }
        if cursor.position() != end {
            return Err(cursor.error("expected the strings immediately after their sizes"));
        }
        strings.reverse();
        self.strings = strings;
        Ok(())
    }

    fn read_dialects(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let mut cursor = Cursor::new(bytes, self.required(SECTION_DIALECTS)?);
        let count = cursor.count()?;
        for _ in 0..count {
            let (index, versioned) = if self.format < FORMAT_DIALECT_VERSIONS {
                (cursor.varint()?, false)
            } else {
                cursor.varint_with_flag()?
            };
            self.dialects.push(self.text(&cursor, index)?);
            if versioned {
                let (id, _) = section(&mut cursor)?;
                if id != SECTION_DIALECT_VERSION {
                    return Err(
                        cursor.error(format!("expected a dialect version section, found number {id}"))
                    );
                }
            }
        }
        if self.format >= FORMAT_ELIDED_LOCATIONS {
            cursor.count()?;
        }
        while !cursor.is_empty() {
            let (dialect, count) = self.dialect_group(&mut cursor)?;
            for _ in 0..count {
                let (index, registered) = if self.format < FORMAT_PROPERTIES {
                    (cursor.varint()?, true)
                } else {
                    cursor.varint_with_flag()?
                };
                let name = self.text(&cursor, index)?;
                self.op_names.push(OpName { dialect, name, registered });
            }
        }
        Ok(())
    }

    /// Reads the header of a group of entries of one dialect, and returns the index of the dialect and the number of
    /// entries.
    pub(super) fn dialect_group(&self, cursor: &mut Cursor<'_>) -> Result<(usize, usize), Error> {
        let dialect = cursor.varint()?;
        let index = usize::try_from(dialect).ok().filter(|&index| index < self.dialects.len());
        let index = index.ok_or_else(|| {
            cursor.error(format!(
                "expected the index of one of {} dialects, found {dialect}",
                self.dialects.len()
            ))
        })?;
        Ok((index, cursor.count()?))
    }

    fn read_properties(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let Some(range) = self.sections[usize::from(SECTION_PROPERTIES)].clone() else { return Ok(()) };
        let mut cursor = Cursor::new(bytes, range);
        if cursor.is_empty() {
            return Ok(());
        }
        let count = cursor.count()?;
        for _ in 0..count {
            let size = cursor.varint()?;
            self.properties.push(cursor.take(size)?);
        }
        cursor.finish("the properties section")
    }

    fn read_resources(&mut self, bytes: &[u8]) -> Result<(), Error> {
        const KIND_BLOB: u8 = 0;
        let data = self.sections[usize::from(SECTION_RESOURCES)].clone();
        let offsets = self.sections[usize::from(SECTION_RESOURCE_OFFSETS)].clone();
        let (Some(data), Some(offsets)) = (data, offsets) else { return Ok(()) };
        let mut data = Cursor::new(bytes, data);
        let mut offsets = Cursor::new(bytes, offsets);
        let external_groups = offsets.count()?;
        let mut group = 0;
        while group < external_groups || !offsets.is_empty() {
            // The name of an external group, or the index of a dialect. Both are indices.
            let owner = offsets.varint()?;
            let external = group < external_groups;
            if !external && owner >= self.dialects.len() as u64 {
                return Err(offsets.error(format!("expected the index of a dialect, found {owner}")));
            }
            let count = offsets.count()?;
            for _ in 0..count {
                let index = offsets.varint()?;
                let key = self.text(&offsets, index)?;
                let size = offsets.varint()?;
                let kind = offsets.byte()?;
                let range = data.take(size)?;
                if external {
                    continue;
                }
                let mut blob = None;
                if kind == KIND_BLOB && !range.is_empty() {
                    let mut entry = Cursor::new(bytes, range);
                    let alignment = entry.varint()?;
                    let size = entry.varint()?;
                    entry.align(alignment)?;
                    blob = Some(entry.take(size)?);
                    entry.finish("the resource")?;
                }
                self.resources.push(Resource { key, blob });
            }
            group += 1;
        }
        Ok(())
    }
}
