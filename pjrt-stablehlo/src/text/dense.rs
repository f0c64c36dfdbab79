//! `dense<...>` and `dense_resource<...>`.

use std::collections::HashMap;

use super::elements::Elements;
use super::lexer::{Kind, comment_end, string_end};
use super::parser::{Parser, Resource};
use crate::ir::{Attribute, ElementType, Literal, LiteralData, Str, TensorType, Type};
use crate::{Bytes, Error};

/// The length of the alignment before a resource's contents, in bytes.
const RESOURCE_HEADER: usize = 4;

impl<'a> Parser<'a> {
    /// Reads `dense<[1, 2]> : tensor<2xi32>`. The elements precede their type and can number millions, so their end is
    /// found first, and they are then read without the lexer.
    pub(super) fn dense(&mut self) -> Result<Attribute, Error> {
        self.advance();
        if !self.at("<") {
            return Err(self.expected("'<'"));
        }
        let start = self.token.end;
        let Some(end) = elements_end(self.text.as_bytes(), start) else {
            return Err(
                self.error_at(start, "expected '>' at the end of the elements, found the end of the text")
            );
        };
        self.seek(end);
        self.expect(">")?;
        self.expect(":")?;
        let at = self.token.start;
        let Type::Tensor(ty) = self.ty()? else {
            return Err(self.error_at(at, "expected the type of a tensor"));
        };
        self.literal(ty, start, end).map(Attribute::Elements)
    }

    /// Reads the elements between two bytes of the text as a constant of this type.
    fn literal(&mut self, ty: TensorType, start: usize, end: usize) -> Result<Literal, Error> {
        let text = &self.text[start..end];
        let content = text.trim_ascii();
        if content.starts_with('"') {
            let blob = self.blob(start + text.len() - text.trim_ascii_start().len(), end)?;
            let few =
                ty.element_type() == ElementType::I1 && (2..=8).contains(&ty.num_elements().unwrap_or(0));
            if few && blob.len() == 1 && !matches!(blob[0], 0 | 0xff) {
                let message = "one byte represents the bits of up to 8 booleans in MLIR before 2026, and one value of \
                               all of them since then: expected 0x00, 0xFF, or a byte for each boolean";
                return Err(self.error_at(start, message));
            }
            return Literal::from_blob(ty, blob).map_err(|error| self.error_at(start, error.to_string()));
        }
        let failed = |error: crate::ir::LiteralError| self.error_at(start, error.to_string());
        if content.is_empty() {
            return Literal::new(ty, LiteralData::Dense(Bytes::default())).map_err(failed);
        }
        let element = ty.storage_type();
        let count = ty.num_elements().unwrap_or(0);
        let mut elements = Elements::new(text, element, count);
        let fault = |(at, message): (usize, String)| self.error_at(start + at, message);
        let data = if elements.is_list() {
            elements.nested(ty.dims()).map_err(fault)?;
            // MLIR treats a list of equal elements as a splat.
            let bytes = elements.bytes;
            let width = element.byte_width();
            match bytes.split_at_checked(width) {
                Some((first, rest)) if count > 1 && rest.chunks_exact(width).all(|other| other == first) => {
                    LiteralData::Splat(first.into())
                }
                _ => LiteralData::Dense(bytes.into()),
            }
        } else {
            elements.single().map_err(fault)?;
            let bytes = elements.bytes.into();
            if count == 1 { LiteralData::Dense(bytes) } else { LiteralData::Splat(bytes) }
        };
        Literal::new(ty, data).map_err(failed)
    }

    /// Decodes `"0x..."` between two bytes of the text.
    fn blob(&self, start: usize, end: usize) -> Result<Bytes, Error> {
        let quoted = self.text[start..end].trim_ascii_end();
        let digits = quoted.strip_prefix("\"0x").and_then(|rest| rest.strip_suffix('"'));
        let Some(digits) = digits else {
            return Err(self.error_at(start, "expected the elements as a string that begins with '0x'"));
        };
        let digits = digits.as_bytes();
        if !digits.len().is_multiple_of(2) {
            return Err(self.error_at(start, "expected an even number of hexadecimal digits"));
        }
        let digit = |byte: u8| (byte as char).to_digit(16);
        let mut bytes = Vec::with_capacity(digits.len() / 2);
        for (index, pair) in digits.chunks_exact(2).enumerate() {
            let (Some(high), Some(low)) = (digit(pair[0]), digit(pair[1])) else {
                return Err(self.error_at(start + 3 + index * 2, "expected hexadecimal digits"));
            };
            bytes.push((high << 4 | low) as u8);
        }
        Ok(bytes.into())
    }

    /// Reads `dense_resource<name> : tensor<2xi32>`, whose contents are at the end of the text.
    pub(super) fn dense_resource(&mut self) -> Result<Attribute, Error> {
        self.advance();
        self.expect("<")?;
        let at = self.token.start;
        let name: Str = match self.token.kind {
            Kind::String => self.string()?,
            _ => self.bare("the name of a resource")?.into(),
        };
        self.expect(">")?;
        self.expect(":")?;
        let type_at = self.token.start;
        let Type::Tensor(ty) = self.ty()? else {
            return Err(self.error_at(type_at, "expected the type of a tensor"));
        };
        if self.resources.is_none() {
            self.resources = Some(self.find_resources()?);
        }
        let resource = self.resources.as_ref().and_then(|resources| resources.get(&*name).cloned());
        let blob = match resource {
            Some(Resource::Read(blob)) => blob,
            Some(Resource::Place(start, end)) => {
                let blob = self.blob(start, end)?;
                let Some(blob) = blob.slice(RESOURCE_HEADER.min(blob.len())..blob.len()) else {
                    return Err(self.error_at(start, "expected a string with the contents of the resource"));
                };
                let read = Resource::Read(blob.clone());
                self.resources.get_or_insert_default().insert(name.to_string(), read);
                blob
            }
            None => {
                let message = format!("the program has no contents of the resource '{name}'");
                return Err(self.error_at(at, message));
            }
        };
        let value = Literal::from_blob(ty, blob).map_err(|error| self.error_at(at, error.to_string()))?;
        Ok(Attribute::Resource { name, value })
    }

    /// Finds the contents of resources: `{-# dialect_resources: { builtin: { name: "0x..." } } #-}`.
    fn find_resources(&mut self) -> Result<HashMap<String, Resource>, Error> {
        let (token, previous_end) = (self.token, self.previous_end);
        let mut found = HashMap::new();
        if let Some(start) = self.text.rfind("{-#") {
            self.seek(start);
            self.resource_sections(&mut found)?;
        }
        (self.token, self.previous_end) = (token, previous_end);
        Ok(found)
    }

    /// Checks and skips the part of the text between `{-#` and `#-}`.
    pub(super) fn skip_resources(&mut self) -> Result<(), Error> {
        self.resource_sections(&mut HashMap::new())
    }

    fn resource_sections(&mut self, found: &mut HashMap<String, Resource>) -> Result<(), Error> {
        self.expect("{-#")?;
        while !self.eat("#-}") {
            self.bare("a section of resources")?;
            self.expect(":")?;
            self.list("{", "}", |parser| {
                parser.resource_key()?;
                parser.expect(":")?;
                parser.list("{", "}", |parser| {
                    let key = parser.resource_key()?;
                    parser.expect(":")?;
                    let (start, end) = (parser.token.start, parser.token.end);
                    let Kind::String = parser.token.kind else {
                        // Information for tools. Attributes might refer to such entries as resources.
                        return match parser.bare("a string or a boolean")? {
                            "true" | "false" => Ok(()),
                            _ => Err(parser.error_at(start, "expected a string or a boolean")),
                        };
                    };
                    let place = Resource::Place(start, end);
                    found.insert(key.to_string(), place);
                    parser.advance();
                    Ok(())
                })
            })?;
            if !self.at("#-}") {
                self.expect(",")?;
            }
        }
        Ok(())
    }

    fn resource_key(&mut self) -> Result<Str, Error> {
        match self.token.kind {
            Kind::String => self.string(),
            _ => Ok(self.bare("a name")?.into()),
        }
    }
}

/// Returns the position of the `>` that ends the elements.
fn elements_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    loop {
        at += bytes[at..].iter().position(|byte| matches!(byte, b'>' | b'"' | b'/'))?;
        at = match bytes[at] {
            b'>' => return Some(at),
            b'"' => string_end(bytes, at)?,
            _ if bytes[at..].starts_with(b"//") => comment_end(bytes, at),
            _ => at + 1,
        };
    }
}
