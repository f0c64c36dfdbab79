//! The attributes of MLIR's `builtin` dialect.

use super::elements::Element;
use super::lexer::{Kind, unquoted};
use super::parser::{Parser, shortened};
use crate::Error;
use crate::ir::float_value;
use crate::ir::{Attribute, DictionaryAttribute, ElementType, Str, Type};

impl<'a> Parser<'a> {
    /// Reads an attribute.
    pub(super) fn attribute(&mut self) -> Result<Attribute, Error> {
        match self.token.kind {
            Kind::String => self.string_attribute(),
            Kind::Symbol => self.symbol_attribute(),
            Kind::Integer | Kind::Float => self.number_attribute(),
            Kind::Hash if !self.found().contains('.') && !self.is_bracket_next() => self.alias(),
            Kind::Hash => self.nested(Self::dialect_attribute),
            Kind::Exclamation => self.ty().map(Attribute::Type),
            Kind::Punctuation => match self.found() {
                "[" => {
                    let elements = self.nested(|parser| parser.list("[", "]", Self::attribute))?;
                    Ok(Attribute::Array(elements.into()))
                }
                "{" => Ok(Attribute::Dictionary(self.dictionary()?)),
                "-" => self.number_attribute(),
                "(" => self.ty().map(Attribute::Type),
                _ => Err(self.expected("an attribute")),
            },
            Kind::Bare => self.keyword_attribute(),
            _ => Err(self.expected("an attribute")),
        }
    }

    fn keyword_attribute(&mut self) -> Result<Attribute, Error> {
        let start = self.token.start;
        match self.found() {
            "unit" => {
                self.advance();
                Ok(Attribute::Unit)
            }
            "true" | "false" => Ok(Attribute::Bool(self.boolean()?)),
            "loc" => {
                let location = self.optional_location()?;
                Ok(Attribute::Location(location.unwrap_or_default()))
            }
            "array" => self.dense_array(),
            "dense" => self.dense(),
            "dense_resource" => self.dense_resource(),
            kind @ ("sparse" | "opaque" | "affine_map" | "affine_set" | "strided" | "distinct") => {
                Err(self.unsupported_at(start, format!("attributes '{kind}<...>' are not supported")))
            }
            _ => match self.ty() {
                Ok(ty) => Ok(Attribute::Type(ty)),
                Err(error) if error.offset == Some(start) => Err(self.expected("an attribute")),
                Err(error) => Err(error),
            },
        }
    }

    /// Reads a string, which must be UTF-8.
    pub(super) fn string(&mut self) -> Result<Str, Error> {
        let start = self.token.start;
        let quoted = self.expect_kind(Kind::String, "a string")?;
        self.utf8(unquoted(quoted), start)
    }

    /// Reads a string, and replaces bytes that are not UTF-8.
    pub(super) fn lossy_string(&mut self) -> Result<Str, Error> {
        let quoted = self.expect_kind(Kind::String, "a string")?;
        Ok(String::from_utf8_lossy(&unquoted(quoted)).as_ref().into())
    }

    fn utf8(&self, bytes: Vec<u8>, at: usize) -> Result<Str, Error> {
        match String::from_utf8(bytes) {
            Ok(text) => Ok(text.into()),
            Err(_) => Err(self.error_at(at, "expected a string in UTF-8")),
        }
    }

    fn string_attribute(&mut self) -> Result<Attribute, Error> {
        let quoted = self.expect_kind(Kind::String, "a string")?;
        let attribute = match String::from_utf8(unquoted(quoted)) {
            Ok(text) => Attribute::String(text.into()),
            Err(error) => Attribute::Bytes(error.into_bytes().into()),
        };
        // The type of a string has no meaning.
        if self.eat(":") {
            self.ty()?;
        }
        Ok(attribute)
    }

    /// Reads `@name` or `@"name"`, and returns the name.
    pub(super) fn symbol(&mut self) -> Result<Str, Error> {
        let start = self.token.start;
        let name = &self.expect_kind(Kind::Symbol, "a symbol such as @main")?[1..];
        if name.starts_with('"') { self.utf8(unquoted(name), start) } else { Ok(name.into()) }
    }

    fn symbol_attribute(&mut self) -> Result<Attribute, Error> {
        let mut path = vec![self.symbol()?];
        while self.eat("::") {
            path.push(self.symbol()?);
        }
        Ok(Attribute::Symbol(path.into()))
    }

    /// Reads `{a = 1, b}`.
    pub(super) fn dictionary(&mut self) -> Result<DictionaryAttribute, Error> {
        let entries = self.nested(|parser| parser.list("{", "}", Self::entry))?;
        self.sorted(entries)
    }

    /// Reads `{a = 1, b}`, which is optional.
    pub(super) fn optional_dictionary(&mut self) -> Result<DictionaryAttribute, Error> {
        if self.at("{") { self.dictionary() } else { Ok(DictionaryAttribute::default()) }
    }

    fn entry(&mut self) -> Result<(Str, Attribute), Error> {
        let start = self.token.start;
        let name: Str = match self.token.kind {
            Kind::Bare => self.advance().into(),
            Kind::String => self.string()?,
            _ => return Err(self.expected("the name of an attribute")),
        };
        if name.is_empty() {
            return Err(self.error_at(start, "expected the name of an attribute, found an empty string"));
        }
        let value = if self.eat("=") { self.attribute()? } else { Attribute::Unit };
        Ok((name, value))
    }

    /// Returns a dictionary of these entries, sorted by name as in MLIR.
    pub(super) fn sorted(&self, mut entries: Vec<(Str, Attribute)>) -> Result<DictionaryAttribute, Error> {
        entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        if let Some(pair) = entries.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(self.error(format!("attribute '{}' is given twice", shortened(&pair[0].0))));
        }
        Ok(DictionaryAttribute::new(entries))
    }

    /// Reads `5`, `-5 : i32`, `1.5 : f32` or `0x7FC00000 : f32`.
    fn number_attribute(&mut self) -> Result<Attribute, Error> {
        let start = self.token.start;
        let negative = self.eat("-");
        let kind = self.token.kind;
        if !matches!(kind, Kind::Integer | Kind::Float) {
            return Err(self.expected("a number"));
        }
        let digits = self.advance();
        let ty = if self.eat(":") {
            let at = self.token.start;
            match self.ty()? {
                Type::Scalar(ty) if !ty.is_complex() => ty,
                other => {
                    return Err(self.error_at(at, format!("expected a numeric type, found {other}")));
                }
            }
        } else if kind == Kind::Integer {
            ElementType::I64
        } else {
            ElementType::F64
        };
        if ty.is_float() && kind == Kind::Integer && !digits.starts_with("0x") {
            return Err(self.error_at(
                start,
                format!("expected a number with a decimal point for {ty}, found {digits}"),
            ));
        }
        self.number(digits, negative, ty, start)
    }

    /// Returns a number with these digits as an attribute.
    fn number(&self, digits: &str, negative: bool, ty: ElementType, at: usize) -> Result<Attribute, Error> {
        let element = Element { text: digits, negative };
        let raw = match element.bits(ty) {
            Ok(raw) => raw,
            Err(message) => return Err(self.error_at(at, message)),
        };
        Ok(if ty == ElementType::I1 {
            Attribute::Bool(raw != 0)
        } else if ty.is_float() {
            Attribute::Float { value: float_value(ty, raw), ty }
        } else {
            Attribute::Integer { value: crate::ir::integer_value(ty, &raw.to_le_bytes()), ty }
        })
    }

    /// Reads `array<i64: 1, 2>`.
    fn dense_array(&mut self) -> Result<Attribute, Error> {
        self.advance();
        self.expect("<")?;
        let at = self.token.start;
        let ty = match self.ty()? {
            Type::Scalar(ty) if is_array_element(ty) => ty,
            other => {
                let message = format!("expected 'i1' or a numeric type of whole bytes, found {other}");
                return Err(self.error_at(at, message));
            }
        };
        let mut raws = Vec::new();
        if self.eat(":") {
            loop {
                raws.push(self.array_element(ty)?);
                if !self.eat(",") {
                    break;
                }
            }
        }
        self.expect(">")?;
        Ok(if ty.is_float() {
            Attribute::FloatArray { ty, values: raws.into_iter().map(|raw| float_value(ty, raw)).collect() }
        } else {
            let value = |raw: u64| crate::ir::integer_value(ty, &raw.to_le_bytes());
            Attribute::IntegerArray { ty, values: raws.into_iter().map(value).collect() }
        })
    }

    fn array_element(&mut self, ty: ElementType) -> Result<u64, Error> {
        let start = self.token.start;
        let negative = self.eat("-");
        if ty == ElementType::I1 {
            if negative || !(self.at("true") || self.at("false")) {
                return Err(self.expected("'true' or 'false'"));
            }
        } else if !matches!(self.token.kind, Kind::Integer | Kind::Float) {
            return Err(self.expected("a number"));
        }
        let text = self.advance();
        Element { text, negative }.bits(ty).map_err(|message| self.error_at(start, message))
    }
}

/// Returns `true` if `array<...>` may have elements of this type.
fn is_array_element(ty: ElementType) -> bool {
    let whole_bytes = ty.bits().is_multiple_of(8) && !ty.is_complex() && ty != ElementType::Index;
    ty == ElementType::I1 || whole_bytes
}
