//! Aliases of attributes, types and locations: `#loc1 = loc("f")`, `!t = tensor<f32>`.
//!
//! MLIR prints the aliases of locations after their uses. Therefore definitions are found in advance, and read at the
//! first use or at their position, whichever comes first.
//!
//! Reading a definition does not read other definitions recursively. It records the missing aliases; they are read
//! first, and the definition is read again. Thus chains of aliases need no stack.

use super::lexer::{Kind, Token};
use super::parser::{Alias, AliasState, AliasValue, Parser};
use crate::ir::{Attribute, Location, Type};
use crate::limits::MAX_ATTRIBUTE_WEIGHT;
use crate::{Error, ErrorKind};

/// The maximum number of attempts at reading a definition. Every attempt except the last ends with missing aliases.
const MAX_ATTEMPTS: u32 = 16;

impl<'a> Parser<'a> {
    /// Finds the definitions, which begin at the start of lines.
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
                self.aliases.entry(name).or_insert(Alias { start: equals.end, state: AliasState::Unread });
            }
        }
    }

    /// Reads a definition. The current token is its name.
    pub(super) fn alias_definition(&mut self) -> Result<(), Error> {
        let name_token = self.token;
        let name = self.advance();
        if name.contains('.') {
            let message = format!(
                "expected an alias name without '.', found '{name}', which would be an attribute or type of a dialect"
            );
            return Err(self.error_at(name_token.start, message));
        }
        let start = self.token.end;
        self.expect("=")?;
        let alias = self.aliases.entry(name).or_insert(Alias { start, state: AliasState::Unread });
        if alias.start != start {
            return Err(self.error_at(name_token.start, format!("alias '{name}' is defined twice")));
        }
        let value = self.alias_value(name, name_token)?;
        self.seek(value.end);
        Ok(())
    }

    /// Reads the use of an alias. The current token is its name.
    pub(super) fn alias(&mut self) -> Result<Attribute, Error> {
        let token = self.token;
        let name = self.found();
        let value = self.use_alias(name, token)?;
        self.check_depth(self.depth + value.depth)?;
        Ok(value.attribute)
    }

    /// Reads the use of a location's alias, and returns the location and its nesting depth. The current token is the
    /// name.
    pub(super) fn location_alias(&mut self) -> Result<(Location, u32), Error> {
        let token = self.token;
        let name = self.found();
        let value = self.use_alias(name, token)?;
        match value.attribute {
            Attribute::Location(location) => Ok((location, value.depth)),
            _ if self.is_incomplete() => Ok((Location::UNKNOWN, 1)),
            other => Err(self.error_at(token.start, format!("expected a location, found {}", other.kind()))),
        }
    }

    /// Consumes the current token, which is the name of an alias, and returns the alias' value.
    fn use_alias(&mut self, name: &'a str, token: Token) -> Result<AliasValue, Error> {
        let value = self.alias_value(name, token)?;
        self.previous_end = token.end;
        self.seek(token.end);
        self.weight += value.weight;
        Ok(value)
    }

    /// Returns `true` if the current definition is incomplete because aliases are missing.
    pub(super) fn is_incomplete(&self) -> bool {
        self.missing_aliases.as_ref().is_some_and(|missing| !missing.is_empty())
    }

    /// Returns the value of an alias. Inside a definition, returns a placeholder if the alias has not been read yet.
    fn alias_value(&mut self, name: &'a str, used_at: Token) -> Result<AliasValue, Error> {
        match self.aliases.get(name).map(|alias| &alias.state) {
            None => Err(self.error_at(used_at.start, format!("alias '{name}' is not defined"))),
            Some(AliasState::Read(value)) => Ok(value.clone()),
            Some(AliasState::BeingRead) => Err(self.contains_itself(name, used_at)),
            Some(AliasState::Unread) => {
                if let Some(missing) = &mut self.missing_aliases {
                    missing.push((name, used_at));
                    return Ok(AliasValue {
                        attribute: Attribute::Unit,
                        end: used_at.end,
                        depth: 0,
                        weight: 0,
                    });
                }
                self.resolve_alias(name, used_at)
            }
        }
    }

    /// Reads a definition after those that it needs.
    fn resolve_alias(&mut self, name: &'a str, used_at: Token) -> Result<AliasValue, Error> {
        let mut path = vec![(name, used_at, 0)];
        loop {
            let Some(&(next, next_used_at, attempts)) = path.last() else {
                return self.alias_value(name, used_at);
            };
            let missing = match self.aliases.get_mut(next) {
                Some(Alias { state: AliasState::Read(_), .. }) => Vec::new(),
                Some(alias) => {
                    alias.state = AliasState::BeingRead;
                    let start = alias.start;
                    self.read_alias(next, start)?
                }
                None => {
                    return Err(self.error_at(next_used_at.start, format!("alias '{next}' is not defined")));
                }
            };
            if missing.is_empty() {
                path.pop();
                continue;
            }
            if attempts >= MAX_ATTEMPTS {
                let message = format!(
                    "the definition of alias '{next}' cannot be resolved: its aliases have unexpected kinds"
                );
                return Err(self.error_at(next_used_at.start, message));
            }
            if let Some(last) = path.last_mut() {
                last.2 += 1;
            }
            for (name, used_at) in missing {
                if matches!(self.aliases.get(name), Some(Alias { state: AliasState::BeingRead, .. })) {
                    return Err(self.contains_itself(name, used_at));
                }
                path.push((name, used_at, 0));
            }
        }
    }

    /// Reads the definition at a byte. Returns the aliases that must be read first.
    fn read_alias(&mut self, name: &'a str, start: usize) -> Result<Vec<(&'a str, Token)>, Error> {
        let (outer_depth, outer_deepest, outer_weight) = (self.depth, self.deepest, self.weight);
        (self.deepest, self.weight) = (self.depth, 0);
        self.missing_aliases = Some(Vec::new());
        self.seek(start);
        let read = self.nested(|parser| {
            if name.starts_with('!') { parser.ty().map(Attribute::Type) } else { parser.attribute() }
        });
        let missing = self.missing_aliases.take().unwrap_or_default();
        let (depth, weight) = (self.deepest - outer_depth, self.weight);
        (self.depth, self.deepest, self.weight) = (outer_depth, outer_deepest, outer_weight);
        if !missing.is_empty() {
            return Ok(missing);
        }
        let attribute = read?;
        if weight > u64::from(MAX_ATTRIBUTE_WEIGHT) {
            let message = format!("alias '{name}' has more than {MAX_ATTRIBUTE_WEIGHT} parts");
            return Err(self.other_error_at(ErrorKind::TooLarge, start, message));
        }
        let value = AliasValue { attribute, end: self.previous_end, depth, weight };
        if let Some(alias) = self.aliases.get_mut(name) {
            alias.state = AliasState::Read(value);
        }
        Ok(missing)
    }

    fn contains_itself(&self, name: &str, used_at: Token) -> Error {
        self.error_at(used_at.start, format!("alias '{name}' contains itself"))
    }

    /// Reads the use of a type's alias. The current token is the name.
    pub(super) fn type_alias(&mut self) -> Result<Type, Error> {
        let start = self.token.start;
        match self.alias()? {
            Attribute::Type(ty) => Ok(ty),
            _ if self.is_incomplete() => Ok(Type::None),
            other => Err(self.error_at(start, format!("expected a type, found {}", other.kind()))),
        }
    }
}
