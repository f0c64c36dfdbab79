//! The strings, dialects, attributes and types of a file that is being written.

use std::collections::HashMap;
use std::hash::Hash;
use std::rc::Rc;

use super::output::Output;
use crate::ir::{Attribute, DictionaryAttribute, Location, LocationKind, Str, TensorType, Type};
use crate::limits::{MAX_LOCATION_NESTING, MAX_NESTING};
use crate::versions::Version;
use crate::{Error, ErrorKind};

/// Encodes an attribute or a type; returns `None` if the dialect does not have it.
type Encode<T> = fn(&mut Encoder, &T) -> Result<Option<Output>, Error>;

/// Encodes a location.
type EncodeLocation = fn(&mut Encoder, &Location) -> Result<Output, Error>;

/// The functions that encode the entries of a dialect.
pub(super) struct Writer {
    pub(super) name: &'static str,
    pub(super) attribute: Encode<Attribute>,
    pub(super) ty: Encode<Type>,
    /// Encodes a location, which only `builtin` has.
    pub(super) location: Option<EncodeLocation>,
}

/// The encodings of attributes and types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Home {
    /// Those of the dialects that define them.
    Native,
    /// Those of VHLO.
    Vhlo,
}

/// The first version of VHLO whose programs may contain attributes and operations of other dialects.
const MIXED_DIALECTS: Version = Version::new(1, 11, 0);

/// The first version of VHLO whose readers know locations that are ranges of a file.
const FILE_RANGES: Version = Version::new(1, 9, 0);

/// Distinct items in the order of their first occurrence.
pub(super) struct Pool<T> {
    items: Vec<Rc<T>>,
    indices: HashMap<Rc<T>, u64>,
}

impl<T: Eq + Hash> Pool<T> {
    pub(super) fn new() -> Self {
        Pool { items: Vec::new(), indices: HashMap::new() }
    }

    /// Returns the index of an item, which is added unless there is an equal one.
    pub(super) fn add(&mut self, item: T) -> u64 {
        if let Some(&index) = self.indices.get(&item) {
            return index;
        }
        let (item, index) = (Rc::new(item), self.items.len() as u64);
        self.items.push(Rc::clone(&item));
        self.indices.insert(item, index);
        index
    }

    pub(super) fn items(&self) -> impl ExactSizeIterator<Item = &T> {
        self.items.iter().map(|item| &**item)
    }
}

/// An encoded attribute or type.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct Encoded {
    pub(super) dialect: u64,
    /// `true` if the entry has its dialect's own encoding, `false` if it is text.
    pub(super) custom: bool,
    pub(super) bytes: Vec<u8>,
}

/// The tables of a file. Equal entries are written once.
pub(super) struct Encoder {
    /// The functions that encode the entries of dialects.
    writers: &'static [Writer],
    /// The version of VHLO that is written; `None` if the program is written without VHLO.
    version: Option<Version>,
    pub(super) strings: Pool<Vec<u8>>,
    pub(super) dialects: Pool<Str>,
    pub(super) attributes: Pool<Encoded>,
    pub(super) types: Pool<Encoded>,
    /// The indices of types that have been written.
    known_types: HashMap<(Home, Type), u64>,
    /// The indices of locations that have been written, by their addresses.
    known_locations: HashMap<*const LocationKind, u64>,
    /// The number of attributes and types that contain the current one.
    depth: u32,
    /// The number of locations that contain the current one.
    location_depth: u32,
}

impl Encoder {
    pub(super) fn new(writers: &'static [Writer], version: Option<Version>) -> Self {
        Encoder {
            writers,
            version,
            strings: Pool::new(),
            dialects: Pool::new(),
            attributes: Pool::new(),
            types: Pool::new(),
            known_types: HashMap::new(),
            known_locations: HashMap::new(),
            depth: 0,
            location_depth: 0,
        }
    }

    /// Returns an error unless the version that is written has what a later version introduced.
    pub(super) fn require(&self, since: Version, what: impl FnOnce() -> String) -> Result<(), Error> {
        match self.version {
            Some(version) if (version.major, version.minor) < (since.major, since.minor) => {
                let what = what();
                let message =
                    format!("VHLO {version} does not have {what}, which needs VHLO {since} or newer");
                Err(Error::new(ErrorKind::Unsupported, message))
            }
            _ => Ok(()),
        }
    }

    /// Returns `true` if readers of the file know locations that are ranges.
    pub(super) fn has_file_ranges(&self) -> bool {
        self.version.is_none_or(|version| version >= FILE_RANGES)
    }

    /// Returns an error unless the version that is written allows attributes and operations of other dialects.
    pub(super) fn require_mixed_dialects(&self, what: impl FnOnce() -> String) -> Result<(), Error> {
        self.require(MIXED_DIALECTS, what)
    }

    /// Returns the index of a string.
    pub(super) fn string(&mut self, text: &[u8]) -> u64 {
        self.strings.add(text.to_vec())
    }

    /// Returns the index of a dialect.
    pub(super) fn dialect(&mut self, name: &str) -> u64 {
        self.dialects.add(name.into())
    }

    /// Returns the index of an attribute that has been encoded.
    pub(super) fn add_attribute(&mut self, dialect: &str, out: Output) -> u64 {
        let dialect = self.dialect(dialect);
        self.attributes.add(Encoded { dialect, custom: true, bytes: out.into_bytes() })
    }

    /// Returns the index of an attribute that is written as text.
    pub(super) fn text_attribute(&mut self, dialect: &str, text: &str) -> u64 {
        let dialect = self.dialect(dialect);
        self.attributes.add(Encoded { dialect, custom: false, bytes: null_terminated(text) })
    }

    /// Runs a function for the parts of an attribute or type. The depth is limited because the function recurses.
    fn nested<T>(&mut self, encode: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if self.depth >= MAX_NESTING {
            let message = format!("an attribute or type is nested more than {MAX_NESTING} deep");
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        self.depth += 1;
        let encoded = encode(self);
        self.depth -= 1;
        encoded
    }

    /// Returns the functions of the dialects that may contain an attribute or type, in the order in which they are tried.
    fn candidates(&self, home: Home) -> impl Iterator<Item = &'static Writer> + use<> {
        let is_candidate = move |writer: &&Writer| match writer.name {
            "vhlo" => home == Home::Vhlo,
            "stablehlo" | "quant" => home == Home::Native,
            _ => true,
        };
        self.writers.iter().filter(is_candidate)
    }

    /// Returns the index of an attribute.
    pub(super) fn attribute(&mut self, home: Home, attribute: &Attribute) -> Result<u64, Error> {
        if let Attribute::Location(location) = attribute {
            return self.location(location);
        }
        self.nested(|encoder| {
            for writer in encoder.candidates(home) {
                if let Some(out) = (writer.attribute)(encoder, attribute)? {
                    if home == Home::Vhlo && writer.name != "vhlo" {
                        encoder.require_mixed_dialects(|| format!("{} in VHLO", attribute.kind()))?;
                    }
                    return Ok(encoder.add_attribute(writer.name, out));
                }
            }
            let Attribute::Opaque(text) = attribute else {
                let message = format!("{} cannot be written as bytecode here", attribute.kind());
                return Err(Error::new(ErrorKind::Unsupported, message));
            };
            if home == Home::Vhlo {
                encoder.require_mixed_dialects(|| format!("the attribute #{text}"))?;
            }
            Ok(encoder.opaque_attribute(text))
        })
    }

    /// Returns the index of an attribute that is known by its text without `#`.
    fn opaque_attribute(&mut self, text: &str) -> u64 {
        /// The attributes of `builtin` whose text has no `#`.
        const BUILTIN: &[&str] = &["affine_map", "affine_set", "strided", "distinct"];
        let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
        let name = &text[..end];
        if BUILTIN.contains(&name) {
            return self.text_attribute("builtin", text);
        }
        self.text_attribute(name, &format!("#{text}"))
    }

    /// Returns the index of an attribute of a given dialect.
    pub(super) fn attribute_of(&mut self, dialect: &str, attribute: &Attribute) -> Result<u64, Error> {
        let writers = self.writers;
        let writer = writers.iter().find(|writer| writer.name == dialect);
        let out = match writer {
            Some(writer) => self.nested(|encoder| (writer.attribute)(encoder, attribute))?,
            None => None,
        };
        let Some(out) = out else {
            let message = format!("{} is not an attribute of dialect '{dialect}'", attribute.kind());
            return Err(Error::new(ErrorKind::Unsupported, message));
        };
        Ok(self.add_attribute(dialect, out))
    }

    /// Returns the indices of attributes of a given dialect.
    pub(super) fn attributes_of(
        &mut self,
        dialect: &str,
        attributes: impl Iterator<Item = Attribute>,
    ) -> Result<Vec<u64>, Error> {
        attributes.map(|attribute| self.attribute_of(dialect, &attribute)).collect()
    }

    /// Writes a list of attributes.
    pub(super) fn attributes(
        &mut self,
        home: Home,
        out: &mut Output,
        attributes: &[Attribute],
    ) -> Result<(), Error> {
        out.count(attributes.len());
        for attribute in attributes {
            out.varint(self.attribute(home, attribute)?);
        }
        Ok(())
    }

    /// Writes the entries of a dictionary.
    pub(super) fn dictionary(
        &mut self,
        home: Home,
        out: &mut Output,
        entries: &DictionaryAttribute,
    ) -> Result<(), Error> {
        out.count(entries.len());
        for (name, value) in entries.entries() {
            out.varint(self.attribute(home, &Attribute::String(name.clone()))?);
            out.varint(self.attribute(home, value)?);
        }
        Ok(())
    }

    /// Returns the index of a type.
    pub(super) fn ty(&mut self, home: Home, ty: &Type) -> Result<u64, Error> {
        let key = (home, ty.clone());
        if let Some(&index) = self.known_types.get(&key) {
            return Ok(index);
        }
        let index = self.nested(|encoder| {
            for writer in encoder.candidates(home) {
                if let Some(out) = (writer.ty)(encoder, ty)? {
                    if home == Home::Vhlo && writer.name != "vhlo" {
                        let message = format!("VHLO does not have the type {ty}");
                        return Err(Error::new(ErrorKind::Unsupported, message));
                    }
                    let dialect = encoder.dialect(writer.name);
                    return Ok(encoder.types.add(Encoded { dialect, custom: true, bytes: out.into_bytes() }));
                }
            }
            encoder.text_type(home, ty)
        })?;
        self.known_types.insert(key, index);
        Ok(index)
    }

    /// Returns the index of a type that is written as text.
    fn text_type(&mut self, home: Home, ty: &Type) -> Result<u64, Error> {
        let text = ty.to_string();
        if home == Home::Vhlo {
            self.require_mixed_dialects(|| format!("the type {text}"))?;
        }
        let name = text.trim_start_matches('!');
        let end = name.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(name.len());
        let dialect = self.dialect(if text.starts_with('!') { &name[..end] } else { "builtin" });
        Ok(self.types.add(Encoded { dialect, custom: false, bytes: null_terminated(&text) }))
    }

    /// Writes a list of types.
    pub(super) fn types(&mut self, home: Home, out: &mut Output, types: &[Type]) -> Result<(), Error> {
        out.count(types.len());
        for ty in types {
            out.varint(self.ty(home, ty)?);
        }
        Ok(())
    }

    /// Returns the index of a tensor's bounds or other encoding; `None` if it has none.
    pub(super) fn encoding(&mut self, home: Home, tensor: &TensorType) -> Result<Option<u64>, Error> {
        if !tensor.bounds().is_empty() {
            return self.attribute(home, &Attribute::Bounds(tensor.bounds().into())).map(Some);
        }
        let Some(text) = tensor.encoding() else { return Ok(None) };
        if home == Home::Vhlo {
            let message = format!("VHLO does not have tensors with the encoding {text}");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        Ok(Some(match text.strip_prefix('#') {
            Some(text) => self.opaque_attribute(text),
            None => self.text_attribute("builtin", text),
        }))
    }

    /// Returns the index of a location.
    pub(super) fn location(&mut self, location: &Location) -> Result<u64, Error> {
        let address: *const LocationKind = location.kind();
        if let Some(&index) = self.known_locations.get(&address) {
            return Ok(index);
        }
        let writers = self.writers;
        let encode = writers.iter().find_map(|writer| Some((writer.name, writer.location?)));
        let (dialect, encode) = encode.expect("the dialect 'builtin' has locations");
        if self.location_depth >= MAX_LOCATION_NESTING {
            let message = format!("a location is nested more than {MAX_LOCATION_NESTING} deep");
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        self.location_depth += 1;
        let out = encode(self, location);
        self.location_depth -= 1;
        let out = out?;
        let index = self.add_attribute(dialect, out);
        self.known_locations.insert(address, index);
        Ok(index)
    }
}

/// Returns the bytes of a text that ends with a null byte.
fn null_terminated(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0);
    bytes
}
