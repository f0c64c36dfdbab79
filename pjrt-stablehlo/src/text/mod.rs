//! Reads MLIR text: the generic form and the custom assembly of StableHLO, CHLO, `func` and Shardy.
//!
//! The text is read once, from start to end, token by token. Operations in nested regions are kept on a stack rather
//! than read by recursion; types, attributes and locations nest at most [`MAX_NESTING`](crate::limits::MAX_NESTING)
//! deep. Memory grows with the text: at most 16 bytes of constants for each byte of text, and small structures for each
//! operation, type and attribute.

mod aliases;
mod assembly;
mod assembly_regions;
mod attributes;
mod dense;
mod dialect_attributes;
mod elements;
mod floats;
mod functions;
mod lexer;
mod locations;
mod module;
mod operations;
mod parser;
mod quantized;
mod regions;
mod scopes;
mod shardy;
mod types;

#[cfg(test)]
mod tests;

use crate::{Error, Module};

/// Reads a module; nothing but the syntax and the types of operands has been verified.
///
/// Operations without a location have none, or with `place_ops` the place in the text.
pub(crate) fn read(text: &str, place_ops: bool) -> Result<Module, Error> {
    parser::Parser::new(text, place_ops)?.module()
}
