//! Names of values in scope.

use std::collections::HashMap;

use super::lexer::Kind;
use super::parser::{Parser, shortened};
use crate::Error;
use crate::ir::{Type, ValueId};

/// What a name stands for: consecutive values.
#[derive(Clone, Copy)]
struct Named {
    first: ValueId,
    count: u32,
}

/// The names of the function that is being read.
#[derive(Default)]
pub(super) struct Scopes<'a> {
    names: HashMap<&'a str, Named>,
    /// Names in the order of their definitions, to forget when their regions end.
    defined: Vec<&'a str>,
    /// Where in `defined` each region that is being read begins.
    regions: Vec<usize>,
}

impl<'a> Scopes<'a> {
    pub(super) fn enter(&mut self) {
        self.regions.push(self.defined.len());
    }

    pub(super) fn leave(&mut self) {
        let start = self.regions.pop().unwrap_or(0);
        for name in self.defined.drain(start..) {
            self.names.remove(name);
        }
    }
}

impl<'a> Parser<'a> {
    /// Names values. `at` is where the name is. Names of enclosing regions cannot be given again.
    pub(super) fn define(
        &mut self,
        name: &'a str,
        first: ValueId,
        count: u32,
        at: usize,
    ) -> Result<(), Error> {
        if self.scopes.names.insert(name, Named { first, count }).is_some() {
            return Err(self.error_at(at, format!("value '{}' is defined twice", shortened(name))));
        }
        self.scopes.defined.push(name);
        Ok(())
    }

    /// A use of a value: `%name` or `%name#1`.
    pub(super) fn value(&mut self) -> Result<ValueId, Error> {
        let token = self.token;
        let name = self.expect_kind(Kind::Value, "a value")?;
        let mut index = 0;
        if self.token.kind == Kind::Hash && self.token.start == token.end {
            let number = self.found()[1..].parse::<u32>();
            index = number.map_err(|_| self.expected("the number of a result"))?;
            self.advance();
        }
        let Some(&named) = self.scopes.names.get(name) else {
            return Err(self.error_at(token.start, format!("value '{name}' is used and not defined before")));
        };
        if index >= named.count {
            let message = match named.count {
                1 => format!("'{name}' is one value, and has no part #{index}"),
                count => format!("'{name}' has results #0 to #{}, found #{index}", count - 1),
            };
            return Err(self.error_at(token.start, message));
        }
        Ok(ValueId(named.first.0 + index))
    }

    /// Values separated by commas, as long as values follow.
    pub(super) fn values(&mut self) -> Result<Vec<ValueId>, Error> {
        let mut values = Vec::new();
        if self.token.kind != Kind::Value {
            return Ok(values);
        }
        values.push(self.value()?);
        while self.at(",") && self.is_value_next() {
            self.advance();
            values.push(self.value()?);
        }
        Ok(values)
    }

    /// Whether a value comes after the token.
    fn is_value_next(&self) -> bool {
        super::lexer::next(self.text, self.token.end).kind == Kind::Value
    }

    /// Fails unless values have these types.
    pub(super) fn check_types(&self, values: &[ValueId], types: &[Type], at: usize) -> Result<(), Error> {
        if values.len() != types.len() {
            let message = format!("expected types of {} operands, found {}", values.len(), types.len());
            return Err(self.error_at(at, message));
        }
        for (index, (&value, ty)) in values.iter().zip(types).enumerate() {
            let actual = self.function.body.ty(value);
            if actual != ty {
                let message =
                    format!("operand {index}: expected {actual}, the type of the value, found {ty}");
                return Err(self.error_at(at, message));
            }
        }
        Ok(())
    }
}
