//! Locations: `loc("jit(f)"("f.py":12:4 to :19))`.

use super::lexer::Kind;
use super::parser::Parser;
use crate::Error;
use crate::ir::{Attribute, Location, LocationKind};

/// The file name of places in the text that is being read.
const THE_TEXT: &str = "program";

impl Parser<'_> {
    /// `loc(...)`, where it stands.
    pub(super) fn optional_location(&mut self) -> Result<Option<Location>, Error> {
        if !self.at("loc") {
            return Ok(None);
        }
        self.advance();
        self.expect("(")?;
        let location = self.location()?;
        self.expect(")")?;
        Ok(Some(location))
    }

    /// A location, or the place in the text where none is given and places are asked for.
    pub(super) fn location_or_place(&mut self, start: usize) -> Result<Location, Error> {
        match self.optional_location()? {
            Some(location) if !(self.place_ops && location.is_unknown()) => Ok(location),
            _ if self.place_ops => {
                let place = self.place(start);
                let line = u32::try_from(place.line).unwrap_or(0);
                let column = u32::try_from(place.column).unwrap_or(0);
                Ok(Location::new(LocationKind::File {
                    file: THE_TEXT.into(),
                    line,
                    column,
                    end_line: line,
                    end_column: column,
                }))
            }
            _ => Ok(Location::UNKNOWN),
        }
    }

    /// What is between the parentheses of `loc`.
    fn location(&mut self) -> Result<Location, Error> {
        self.nested(|parser| match parser.token.kind {
            Kind::Hash => {
                let start = parser.token.start;
                match parser.alias()? {
                    Attribute::Location(location) => Ok(location),
                    other => {
                        Err(parser.error_at(start, format!("expected a location, found {}", other.kind())))
                    }
                }
            }
            Kind::String => parser.named_location(),
            Kind::Bare => parser.keyword_location(),
            _ => Err(parser.expected("a location")),
        })
    }

    /// `"f.py":12:4`, `"name"` or `"name"(child)`.
    fn named_location(&mut self) -> Result<Location, Error> {
        let name = self.string()?;
        if self.eat(":") {
            let line = self.position()?;
            self.expect(":")?;
            let column = self.position()?;
            let (mut end_line, mut end_column) = (line, column);
            if self.eat("to") {
                if !self.at(":") {
                    end_line = self.position()?;
                }
                self.expect(":")?;
                end_column = self.position()?;
            }
            return Ok(Location::new(LocationKind::File { file: name, line, column, end_line, end_column }));
        }
        let mut child = Location::UNKNOWN;
        if self.eat("(") {
            child = self.location()?;
            self.expect(")")?;
        }
        Ok(Location::new(LocationKind::Name { name, child }))
    }

    fn keyword_location(&mut self) -> Result<Location, Error> {
        if self.eat("unknown") {
            return Ok(Location::UNKNOWN);
        }
        if self.eat("callsite") {
            self.expect("(")?;
            let callee = self.location()?;
            self.expect("at")?;
            let caller = self.location()?;
            self.expect(")")?;
            return Ok(Location::new(LocationKind::CallSite { callee, caller }));
        }
        if self.eat("fused") {
            let mut metadata = None;
            if self.eat("<") {
                metadata = Some(self.attribute()?);
                self.expect(">")?;
            }
            let parts = self.list("[", "]", Self::location)?;
            return Ok(Location::new(LocationKind::Fused { parts, metadata }));
        }
        Err(self.expected("a location"))
    }

    /// A line or column; what does not fit into 32 bits is unknown.
    fn position(&mut self) -> Result<u32, Error> {
        Ok(u32::try_from(self.integer()?).unwrap_or(0))
    }
}
