//! Locations, such as `loc("jit(f)"("f.py":12:4 to :19))`, which are read without recursion.

use super::Places;
use super::lexer::Kind;
use super::parser::Parser;
use crate::Error;
use crate::ir::{Attribute, Location, LocationKind, Str};

/// A location with parts that are being read.
enum Open {
    /// `"name"(`.
    Name(Str),
    /// `callsite(`.
    Callee,
    /// `callsite(callee at`, with the callee's nesting depth.
    Caller(Location, u32),
    /// `fused<metadata>[`, with the parts that have been read and their maximum nesting depth.
    Fused { metadata: Option<Attribute>, parts: Vec<Location>, depth: u32 },
}

impl Parser<'_> {
    /// Reads `loc(...)`, which is optional.
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

    /// Reads an optional location. If it is absent, or depending on [`Places`], returns the place in the text.
    pub(super) fn location_or_place(&mut self, start: usize) -> Result<Location, Error> {
        let location = self.optional_location()?.unwrap_or_default();
        match self.places {
            Places::Nowhere => Ok(location),
            Places::WhereUnknown if !location.is_unknown() => Ok(location),
            Places::WhereUnknown | Places::Everywhere => {
                let place = self.place(start);
                let line = u32::try_from(place.line).unwrap_or(0);
                let column = u32::try_from(place.column).unwrap_or(0);
                Ok(Location::new(LocationKind::File {
                    file: Location::PROGRAM_TEXT.into(),
                    line,
                    column,
                    end_line: line,
                    end_column: column,
                }))
            }
        }
    }

    /// Reads the contents of the parentheses of `loc`.
    fn location(&mut self) -> Result<Location, Error> {
        let mut open = Vec::new();
        loop {
            let Some((mut location, mut depth)) = self.location_start(&mut open)? else { continue };
            // Completes the locations of which this is the last part.
            loop {
                if depth > location.max_nesting() {
                    // A location that nests too deeply is no reason to reject a program.
                    (location, depth) = (Location::UNKNOWN, 1);
                }
                location = match open.pop() {
                    None => {
                        self.deepest = self.deepest.max(self.depth + depth);
                        return Ok(location);
                    }
                    Some(Open::Name(name)) => {
                        self.expect(")")?;
                        Location::new(LocationKind::Name { name, child: location })
                    }
                    Some(Open::Callee) => {
                        self.expect("at")?;
                        open.push(Open::Caller(location, depth));
                        break;
                    }
                    Some(Open::Caller(callee, callee_depth)) => {
                        self.expect(")")?;
                        depth = depth.max(callee_depth);
                        Location::new(LocationKind::CallSite { callee, caller: location })
                    }
                    Some(Open::Fused { metadata, mut parts, depth: others }) => {
                        parts.push(location);
                        depth = depth.max(others);
                        if self.eat(",") {
                            open.push(Open::Fused { metadata, parts, depth });
                            break;
                        }
                        if !self.eat("]") {
                            return Err(self.expected("',' or ']'"));
                        }
                        Location::new(LocationKind::Fused { parts, metadata })
                    }
                };
                depth += 1;
            }
        }
    }

    /// Reads the start of a location. Returns the location and its depth if it has no parts; otherwise its first part
    /// follows.
    fn location_start(&mut self, open: &mut Vec<Open>) -> Result<Option<(Location, u32)>, Error> {
        match self.token.kind {
            Kind::Hash => return self.location_alias().map(Some),
            Kind::String => return self.named_location(open),
            _ => {}
        }
        if self.eat("unknown") {
            return Ok(Some((Location::UNKNOWN, 1)));
        }
        if self.eat("callsite") {
            self.expect("(")?;
            open.push(Open::Callee);
            return Ok(None);
        }
        if self.eat("fused") {
            let (mut metadata, mut depth) = (None, 0);
            if self.eat("<") {
                let deepest = std::mem::replace(&mut self.deepest, self.depth);
                metadata = Some(self.nested(Self::attribute)?);
                depth = self.deepest - self.depth;
                self.deepest = self.deepest.max(deepest);
                self.expect(">")?;
            }
            self.expect("[")?;
            let parts = Vec::new();
            if self.eat("]") {
                return Ok(Some((Location::new(LocationKind::Fused { parts, metadata }), depth + 1)));
            }
            open.push(Open::Fused { metadata, parts, depth });
            return Ok(None);
        }
        Err(self.expected("a location"))
    }

    /// Reads `"f.py":12:4`, `"name"` or `"name"(child)`.
    fn named_location(&mut self, open: &mut Vec<Open>) -> Result<Option<(Location, u32)>, Error> {
        let name = self.lossy_string()?;
        if self.eat(":") {
            let line = self.position()?;
            let column = if self.eat(":") { self.position()? } else { 0 };
            let (mut end_line, mut end_column) = (line, column);
            if self.eat("to") {
                if !self.at(":") {
                    end_line = self.position()?;
                }
                self.expect(":")?;
                end_column = self.position()?;
            }
            let kind = LocationKind::File { file: name, line, column, end_line, end_column };
            return Ok(Some((Location::new(kind), 2)));
        }
        if self.eat("(") {
            open.push(Open::Name(name));
            return Ok(None);
        }
        Ok(Some((Location::new(LocationKind::Name { name, child: Location::UNKNOWN }), 2)))
    }

    /// Reads a line or column number.
    fn position(&mut self) -> Result<u32, Error> {
        let start = self.token.start;
        let what = "a line or column of up to 32 bits";
        if self.token.kind != Kind::Integer {
            return Err(self.expected(what));
        }
        let found = self.integer().ok().and_then(|number| u32::try_from(number).ok());
        found.ok_or_else(|| self.error_at(start, format!("expected {what}")))
    }
}
