//! The parser's state, and the functions that all of its parts use.

use std::collections::HashMap;

use super::Places;
use super::lexer::{self, Kind, Token};
use super::scopes::Scopes;
use crate::ir::{Attribute, Function, Type};
use crate::limits::{ATTRIBUTE_NUMBERS_BASE, ATTRIBUTE_NUMBERS_PER_BYTE, MAX_NESTING};
use crate::{Bytes, Error, ErrorKind};

/// The maximum number of characters of a token in messages.
const MAX_SHOWN: usize = 40;

/// The parser of MLIR text. The other files of this folder add its methods.
pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    /// The current token, which has not been consumed.
    pub(super) token: Token,
    /// The end of the last consumed token.
    pub(super) previous_end: usize,
    /// The operations whose location is replaced by their place in the text.
    pub(super) places: Places,
    /// The aliases, by name with `#` or `!`.
    pub(super) aliases: HashMap<&'a str, Alias>,
    /// The missing aliases of the definition that is being read; `None` outside definitions.
    pub(super) missing_aliases: Option<Vec<(&'a str, Token)>>,
    /// The types that have been read, by their text.
    pub(super) types: HashMap<&'a str, Type>,
    /// The contents of `dialect_resources`, by name. They are located on first use.
    pub(super) resources: Option<HashMap<String, Resource>>,
    /// The values in scope.
    pub(super) scopes: Scopes<'a>,
    /// The function that is being read.
    pub(super) function: Function,
    /// The number of elements that attributes of operations may still have.
    pub(super) attribute_numbers: usize,
    /// The number of types and attributes that enclose the current token.
    pub(super) depth: u32,
    /// The maximum depth since the start of an alias' value.
    pub(super) deepest: u32,
    /// The number of tokens of types and attributes that have been read. Those of aliases are counted on each use.
    pub(super) weight: u64,
    /// The place that was computed last.
    last_place: Place,
}

/// The definition of an alias.
pub(super) struct Alias {
    /// The byte at which the value begins.
    pub(super) start: usize,
    pub(super) state: AliasState,
}

pub(super) enum AliasState {
    Unread,
    BeingRead,
    Read(AliasValue),
}

/// The value of an alias.
#[derive(Clone)]
pub(super) struct AliasValue {
    /// The value. A type is represented as [`Attribute::Type`].
    pub(super) attribute: Attribute,
    /// The byte at which the value ends.
    pub(super) end: usize,
    /// The nesting depth of the value.
    pub(super) depth: u32,
    /// The number of tokens in the value, including those of aliases in it.
    pub(super) weight: u64,
}

/// The contents of a resource. They are decoded once, and shared by all uses.
#[derive(Clone)]
pub(super) enum Resource {
    /// The start and end of their string in the text.
    Place(usize, usize),
    Read(Bytes),
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str, places: Places) -> Self {
        let attribute_numbers =
            text.len().saturating_mul(ATTRIBUTE_NUMBERS_PER_BYTE).saturating_add(ATTRIBUTE_NUMBERS_BASE);
        let mut parser = Parser {
            text,
            token: lexer::next(text, 0),
            previous_end: 0,
            places,
            aliases: HashMap::new(),
            missing_aliases: None,
            types: HashMap::new(),
            resources: None,
            scopes: Scopes::default(),
            function: Function::default(),
            attribute_numbers,
            depth: 0,
            deepest: 0,
            weight: 0,
            last_place: Place::default(),
        };
        parser.find_aliases();
        parser
    }

    /// Returns the text of the current token.
    pub(super) fn found(&self) -> &'a str {
        &self.text[self.token.start..self.token.end]
    }

    /// Continues at a byte of the text.
    pub(super) fn seek(&mut self, at: usize) {
        self.token = lexer::next(self.text, at);
    }

    /// Consumes the current token, and returns its text.
    pub(super) fn advance(&mut self) -> &'a str {
        let found = self.found();
        self.weight += 1;
        self.previous_end = self.token.end;
        self.seek(self.token.end);
        found
    }

    /// Returns `true` if the current token is this punctuation or keyword.
    pub(super) fn at(&self, expected: &str) -> bool {
        matches!(self.token.kind, Kind::Punctuation | Kind::Bare) && self.found() == expected
    }

    /// Consumes the current token if it is this punctuation or keyword.
    pub(super) fn eat(&mut self, expected: &str) -> bool {
        let found = self.at(expected);
        if found {
            self.advance();
        }
        found
    }

    /// Consumes this punctuation or keyword, or returns an error.
    pub(super) fn expect(&mut self, expected: &str) -> Result<(), Error> {
        if self.eat(expected) { Ok(()) } else { Err(self.expected(&format!("'{expected}'"))) }
    }

    /// Consumes a token of a kind, or returns an error.
    pub(super) fn expect_kind(&mut self, kind: Kind, what: &str) -> Result<&'a str, Error> {
        if self.token.kind == kind { Ok(self.advance()) } else { Err(self.expected(what)) }
    }

    /// Consumes a name or keyword, or returns an error.
    pub(super) fn bare(&mut self, what: &str) -> Result<&'a str, Error> {
        self.expect_kind(Kind::Bare, what)
    }

    /// Returns an error at the current token.
    pub(super) fn error(&self, message: impl AsRef<str>) -> Error {
        self.error_at(self.token.start, message)
    }

    /// Returns an error at a byte of the text.
    pub(super) fn error_at(&self, offset: usize, message: impl AsRef<str>) -> Error {
        let Place { line, column, .. } = Place::default().moved(self.text, offset);
        let message = format!("line {line}, column {column}: {}", message.as_ref());
        Error::new(ErrorKind::Malformed, message).at_offset(offset)
    }

    /// Returns an error of this kind at a byte of the text.
    pub(super) fn other_error_at(&self, kind: ErrorKind, offset: usize, message: impl AsRef<str>) -> Error {
        Error { kind, ..self.error_at(offset, message) }
    }

    /// Returns an error about an unsupported construct at a byte of the text.
    pub(super) fn unsupported_at(&self, offset: usize, message: impl AsRef<str>) -> Error {
        self.other_error_at(ErrorKind::Unsupported, offset, message)
    }

    /// Returns the error that the current token is not the expected one.
    pub(super) fn expected(&self, what: &str) -> Error {
        let found = self.found();
        self.error(match self.token.kind {
            Kind::End => format!("expected {what}, found the end of the text"),
            Kind::Punctuation if matches!(found, "%" | "^" | "#" | "!" | "@") => {
                let next = self.text[self.token.end..].chars().next().unwrap_or(' ');
                format!("expected {what}, found '{found}' before {next:?}, which cannot begin a name")
            }
            Kind::Damaged => format!("expected {what}, found {}", lexer::string_problem(found)),
            _ => format!("expected {what}, found '{}'", shortened(found)),
        })
    }

    /// Returns the line and column of a byte. Increasing positions are found without a search from the start.
    pub(super) fn place(&mut self, offset: usize) -> Place {
        self.last_place = self.last_place.moved(self.text, offset);
        self.last_place
    }

    /// Reads something inside a type or attribute, and checks the nesting depth.
    pub(super) fn nested<T>(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.depth += 1;
        self.check_depth(self.depth)?;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// Records a nesting depth, and checks it.
    pub(super) fn check_depth(&mut self, depth: u32) -> Result<(), Error> {
        self.deepest = self.deepest.max(depth);
        if depth > MAX_NESTING {
            let message = format!("types and attributes are nested more than {MAX_NESTING} deep");
            return Err(self.other_error_at(ErrorKind::TooLarge, self.token.start, message));
        }
        Ok(())
    }

    /// Reads elements between brackets, separated by commas.
    pub(super) fn list<T>(
        &mut self,
        open: &str,
        close: &str,
        mut element: impl FnMut(&mut Self) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        self.expect(open)?;
        let mut elements = Vec::new();
        if self.eat(close) {
            return Ok(elements);
        }
        loop {
            elements.push(element(self)?);
            if !self.eat(",") {
                if !self.at(close) {
                    return Err(self.expected(&format!("',' or '{close}'")));
                }
                self.advance();
                return Ok(elements);
            }
        }
    }

    /// Reads an `i64`, with an optional sign.
    pub(super) fn integer(&mut self) -> Result<i64, Error> {
        let start = self.token.start;
        let negative = self.eat("-");
        let digits = self.expect_kind(Kind::Integer, "an integer")?;
        let value = match digits.strip_prefix("0x") {
            Some(digits) => i128::from_str_radix(digits, 16),
            None => digits.parse(),
        };
        let value = value.ok().map(|value| if negative { -value } else { value });
        value.and_then(|value| i64::try_from(value).ok()).ok_or_else(|| {
            self.error_at(start, format!("expected a 64-bit integer, found '{}'", shortened(digits)))
        })
    }

    /// Reads `[1, 2]`.
    pub(super) fn integers(&mut self) -> Result<Vec<i64>, Error> {
        self.list("[", "]", Self::integer)
    }

    /// Reads `true` or `false`.
    pub(super) fn boolean(&mut self) -> Result<bool, Error> {
        if self.eat("true") {
            Ok(true)
        } else if self.eat("false") {
            Ok(false)
        } else {
            Err(self.expected("'true' or 'false'"))
        }
    }

    /// Skips from the current token, an opening bracket, to the matching bracket. Returns the text including both.
    pub(super) fn balanced(&mut self) -> Result<&'a str, Error> {
        let start = self.token.start;
        let mut closers = Vec::new();
        loop {
            match self.found() {
                "(" => closers.push(")"),
                "[" => closers.push("]"),
                "{" => closers.push("}"),
                "<" => closers.push(">"),
                _ if matches!(self.token.kind, Kind::End | Kind::Damaged) => {
                    let closer = closers.last().copied().unwrap_or("a bracket");
                    return Err(self.expected(&format!("'{closer}'")));
                }
                _ if closers.is_empty() => return Err(self.expected("a bracket")),
                found @ (")" | "]" | "}" | ">") if closers.pop() != Some(found) => {
                    return Err(self.error(format!("'{found}' does not match the open bracket")));
                }
                _ => {}
            }
            let end = self.token.end;
            self.advance();
            if closers.is_empty() {
                return Ok(&self.text[start..end]);
            }
        }
    }
}

/// Returns a text for a message, truncated if it is long.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// A place in a text.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// The line, counted from 1.
    pub(super) line: usize,
    /// The byte in the line, counted from 1.
    pub(super) column: usize,
    offset: usize,
}

impl Default for Place {
    fn default() -> Self {
        Place { line: 1, column: 1, offset: 0 }
    }
}

impl Place {
    /// Returns the place of a byte. The search starts at this place if the byte comes after it.
    fn moved(self, text: &str, offset: usize) -> Place {
        let known = if self.offset <= offset { self } else { Place::default() };
        let between = text.as_bytes().get(known.offset..offset).unwrap_or_default();
        match between.iter().rposition(|&byte| byte == b'\n') {
            None => Place { column: known.column + between.len(), offset, ..known },
            Some(last) => {
                let breaks = between.iter().filter(|&&byte| byte == b'\n').count();
                Place { line: known.line + breaks, column: between.len() - last, offset }
            }
        }
    }
}
