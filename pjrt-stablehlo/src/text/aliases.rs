//! Aliases of attributes, types and locations: `#loc1 = loc("f")`, `!t = tensor<f32>`.
//!
//! MLIR prints aliases of locations after their uses, so the definitions are found beforehand and read at the first use
//! or where they stand, whichever comes first.

use super::lexer::{Kind, Token};
use super::parser::Parser;
use crate::ir::{Attribute, Type};
use crate::limits::MAX_ATTRIBUTE_WEIGHT;
use crate::{Error, ErrorKind};

/// An alias' definition.
pub(super) struct Alias {
    /// Where the value begins.
    start: usize,
    state: State,
}

enum State {
    Unread,
    BeingRead,
    Read(Value),
}

/// An alias' value.
#[derive(Clone)]
struct Value {
    /// The value; a type as [`Attribute::Type`].
    attribute: Attribute,
    /// Where the value ends.
    end: usize,
    /// How deep the value nests.
    depth: u32,
    /// Tokens of the value, those of aliases in it included.
    weight: u64,
}

impl<'a> Parser<'a> {
    /// Finds the definitions that begin a line.
    pub(super) fn find_aliases(&mut self) {
        let text = self.text;
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
        for start in starts {
            let line = text[start..].trim_start_matches([' ', '\t']);
            if !line.starts_with(['#', '!']) {
                continue;
            }
            let name = super::lexer::next(text, text.len() - line.len());
            let equals = super::lexer::next(text, name.end);
            let is_name = matches!(name.kind, Kind::Hash | Kind::Exclamation);
            if is_name && &text[equals.start..equals.end] == "=" {
                let name = &text[name.start..name.end];
                self.aliases.entry(name).or_insert(Alias { start: equals.end, state: State::Unread });
            }
        }
    }

    /// A definition, of which the token is the name.
    pub(super) fn alias_definition(&mut self) -> Result<(), Error> {
        let name_token = self.token;
        let name = self.advance();
        let start = self.token.end;
        self.expect("=")?;
        let alias = self.aliases.entry(name).or_insert(Alias { start, state: State::Unread });
        if alias.start != start {
            return Err(self.error_at(name_token.start, format!("alias '{name}' is defined twice")));
        }
        let value = self.alias_value(name, name_token)?;
        self.seek(value.end);
        Ok(())
    }

    /// The value of the alias whose name is the token.
    pub(super) fn alias(&mut self) -> Result<Attribute, Error> {
        let token = self.token;
        let name = self.found();
        let value = self.alias_value(name, token)?;
        self.seek(token.end);
        self.weight += value.weight;
        self.check_depth(self.depth + value.depth)?;
        Ok(value.attribute)
    }

    fn alias_value(&mut self, name: &'a str, used_at: Token) -> Result<Value, Error> {
        let Some(alias) = self.aliases.get_mut(name) else {
            return Err(self.error_at(used_at.start, format!("alias '{name}' is not defined")));
        };
        let start = alias.start;
        match &alias.state {
            State::Read(value) => return Ok(value.clone()),
            State::BeingRead => {
                return Err(self.error_at(used_at.start, format!("alias '{name}' contains itself")));
            }
            State::Unread => alias.state = State::BeingRead,
        }
        let (outer_deepest, outer_weight) = (self.deepest, self.weight);
        (self.deepest, self.weight) = (self.depth, 0);
        self.seek(start);
        let attribute = self.nested(|parser| {
            if name.starts_with('!') { parser.ty().map(Attribute::Type) } else { parser.attribute() }
        })?;
        let value = Value {
            attribute,
            end: self.previous_end,
            depth: self.deepest - self.depth,
            weight: self.weight,
        };
        (self.deepest, self.weight) = (outer_deepest.max(self.deepest), outer_weight);
        if value.weight > u64::from(MAX_ATTRIBUTE_WEIGHT) {
            let message = format!("alias '{name}' has more than {MAX_ATTRIBUTE_WEIGHT} parts");
            return Err(self.other_error_at(ErrorKind::TooLarge, start, message));
        }
        if let Some(alias) = self.aliases.get_mut(name) {
            alias.state = State::Read(value.clone());
        }
        Ok(value)
    }

    /// The type of the alias whose name is the token.
    pub(super) fn type_alias(&mut self) -> Result<Type, Error> {
        let start = self.token.start;
        match self.alias()? {
            Attribute::Type(ty) => Ok(ty),
            other => Err(self.error_at(start, format!("expected a type, found {}", other.kind()))),
        }
    }
}
