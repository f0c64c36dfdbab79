//! The reader of MLIR text: the generic form, and the custom assembly of StableHLO, CHLO, `func` and Shardy.
//!
//! The reader makes one pass over the text. It keeps nested regions, locations and aliases on a stack rather than
//! recursing; types and attributes may nest to a depth of [`MAX_NESTING`](crate::limits::MAX_NESTING). Memory is
//! proportional to the length of the text: at most 16 bytes of constants for each byte, and small structures for each
//! operation, type and attribute.

mod aliases;
mod assembly;
mod assembly_others;
mod assembly_regions;
mod assembly_types;
mod attributes;
mod dense;
mod dialect_attributes;
mod elements;
mod functions;
pub(crate) mod lexer;
mod locations;
mod module;
mod operations;
mod parser;
mod pending;
mod quantized;
mod regions;
mod scopes;
pub(crate) mod sharding;
mod shardy;
mod types;
mod values;

#[cfg(test)]
mod default_tests;

use crate::ir::{DictionaryAttribute, Location, LocationKind};
use crate::verify::HandedOn;
use crate::{Error, ErrorKind, Module};

/// The number of bytes at the start of a program that decide whether it is text.
const PROBED: usize = 256;

/// Returns `true` if the byte may occur in text. NUL is whitespace, as in MLIR.
fn is_text(byte: u8) -> bool {
    byte >= b' ' || byte.is_ascii_whitespace() || byte == 0
}

/// Returns the text of a program; `None` if it is not text.
pub(crate) fn recognise(program: &[u8]) -> Option<&str> {
    let mut probed = program[..program.len().min(PROBED)].iter();
    if !probed.all(|&byte| is_text(byte)) || program.first() == Some(&0) {
        return None;
    }
    std::str::from_utf8(program).ok()
}

/// Returns an error for a program that begins like text but is not text.
pub(crate) fn damage(program: &[u8]) -> Option<Error> {
    const STARTS: &[&str] =
        &["module", "builtin.module", "\"builtin.", "func.", "\"func.", "sdy.", "#", "!", "//", "{-#"];
    let begin = program.iter().position(|byte| !byte.is_ascii_whitespace())?;
    if !STARTS.iter().any(|start| program[begin..].starts_with(start.as_bytes())) {
        return None;
    }
    let not_utf8 = std::str::from_utf8(program).err().map(|error| error.valid_up_to());
    let control = program.iter().take(PROBED).position(|&byte| !is_text(byte));
    let (offset, problem) = match (not_utf8, control) {
        (Some(offset), control) if control.is_none_or(|control| offset < control) => (offset, "is not UTF-8"),
        (_, Some(offset)) => (offset, "is a control character"),
        _ => return None,
    };
    let message = format!("the program begins like MLIR text, but byte {:#04x} {problem}", program[offset]);
    Some(Error::new(ErrorKind::Malformed, message).at_offset(offset))
}

/// The operations, functions and meshes whose location is replaced by their place in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Places {
    /// None.
    Nowhere,
    /// The operations without a location.
    WhereUnknown,
    /// All.
    Everywhere,
}

/// Reads and verifies a program.
pub(crate) fn parse(text: &str) -> Result<Module, Error> {
    let module = read(text, Places::Nowhere)?;
    let Err(error) = crate::verify::check(&module, HandedOn::Equal) else { return Ok(module) };
    drop(module);
    // The text is read again to find the place, so that programs without errors need no memory for places.
    let again = |places: Places| {
        let module = read(text, places)?;
        crate::verify::check(&module, HandedOn::Equal)
    };
    if error.location.is_unknown() {
        return Err(again(Places::WhereUnknown).err().unwrap_or(error));
    }
    let place = again(Places::Everywhere).err().map(|placed| placed.location);
    Err(match place.as_ref().map(Location::kind) {
        Some(LocationKind::File { file, line, column, .. }) if *file == Location::PROGRAM_TEXT => {
            placed(error, text, *line, *column)
        }
        _ => error,
    })
}

/// Adds the place in the text to an error, which keeps the location in the source program.
fn placed(error: Error, text: &str, line: u32, column: u32) -> Error {
    let lines = text.split_inclusive('\n').take((line as usize).saturating_sub(1));
    let start: usize = lines.map(str::len).sum();
    let message = format!("line {line}, column {column}: {}", error.message);
    Error { message, ..error }.at_offset(start + (column as usize).saturating_sub(1))
}

/// Reads a dictionary attribute: `{a = 1, b}`.
pub(crate) fn parse_dictionary(text: &str) -> Result<DictionaryAttribute, Error> {
    let mut parser = parser::Parser::new(text, Places::Nowhere);
    let dictionary = parser.dictionary()?;
    if parser.token.kind == lexer::Kind::End {
        Ok(dictionary)
    } else {
        Err(parser.expected("the end of the text"))
    }
}

/// Reads a module without verifying it. The syntax and the types of operands are checked.
fn read(text: &str, places: Places) -> Result<Module, Error> {
    parser::Parser::new(text, places).module()
}
