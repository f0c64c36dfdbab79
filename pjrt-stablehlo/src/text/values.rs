//! Definitions and uses of values.

use super::lexer::Kind;
use super::parser::{Parser, shortened};
use super::scopes::Named;
use crate::Error;
use crate::ir::{Type, ValueId};

impl<'a> Parser<'a> {
    /// Names values. `at` is the position of the name. Names of enclosing regions cannot be redefined.
    pub(super) fn define(
        &mut self,
        name: &'a str,
        first: ValueId,
        count: u32,
        at: usize,
    ) -> Result<(), Error> {
        if self.scopes.define(name, Named { first, count }) {
            return Ok(());
        }
        Err(self.error_at(at, format!("value '{}' is defined twice", shortened(name))))
    }

    /// Reads the use of a value: `%name` or `%name#1`.
    pub(super) fn value(&mut self) -> Result<ValueId, Error> {
        let token = self.token;
        let name = self.expect_kind(Kind::Value, "a value")?;
        let mut index = 0;
        if self.token.kind == Kind::Hash && self.token.start == token.end {
            let number = self.found()[1..].parse::<u32>();
            index = number.map_err(|_| self.expected("the number of a result"))?;
            self.advance();
        }
        let Some(named) = self.scopes.get(name) else {
            return Err(self.error_at(token.start, format!("value '{name}' is used before its definition")));
        };
        if index >= named.count {
            let message = match named.count {
                1 => format!("'{name}' is a single value and has no result #{index}"),
                count => format!("'{name}' has results #0 to #{}, found #{index}", count - 1),
            };
            return Err(self.error_at(token.start, message));
        }
        Ok(ValueId(named.first.0 + index))
    }

    /// Reads values that are separated by commas; none if no value follows.
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

    /// Returns `true` if a value follows the current token.
    fn is_value_next(&self) -> bool {
        super::lexer::next(self.text, self.token.end).kind == Kind::Value
    }

    /// Returns an error unless values have these types.
    pub(super) fn check_types(&self, values: &[ValueId], types: &[Type], at: usize) -> Result<(), Error> {
        if values.len() != types.len() {
            let message = format!("expected types of {} operands, found {}", values.len(), types.len());
            return Err(self.error_at(at, message));
        }
        for (index, (&value, ty)) in values.iter().zip(types).enumerate() {
            let actual = self.function.body.ty(value);
            if actual != ty {
                let message = format!("operand {index}: the value has type {actual}, found {ty}");
                return Err(self.error_at(at, message));
            }
        }
        Ok(())
    }
}
