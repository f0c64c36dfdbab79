//! The numbers in constants, and their bits.

use super::lexer::skip_space;
use super::parser::shortened;
use crate::ir::float_bits;
use crate::ir::{ElementKind, ElementType};

/// A number in the text.
#[derive(Clone, Copy)]
pub(super) struct Element<'a> {
    /// The digits, or `true` or `false`.
    pub(super) text: &'a str,
    /// `true` if a minus sign precedes the digits.
    pub(super) negative: bool,
}

impl Element<'_> {
    /// Returns the bits of the number in a type that is not complex, or a message.
    pub(super) fn bits(self, ty: ElementType) -> Result<u64, String> {
        let bits = if ty.is_float() { self.float_bits(ty) } else { self.integer_bits(ty) };
        bits.ok_or_else(|| {
            let sign = if self.negative { "-" } else { "" };
            let form = if ty.is_float() { ", with a decimal point or in hexadecimal" } else { "" };
            format!("expected a number of type {ty}{form}, found '{sign}{}'", shortened(self.text))
        })
    }

    fn float_bits(self, ty: ElementType) -> Option<u64> {
        if let Some(digits) = self.text.strip_prefix("0x") {
            let raw = u64::from_str_radix(digits, 16).ok()?;
            let fits = ty.bits() >= 64 || raw >> ty.bits() == 0;
            return (fits && !self.negative).then_some(raw);
        }
        // Floats have a decimal point in MLIR.
        if !self.text.starts_with(|c: char| c.is_ascii_digit()) || !self.text.contains('.') {
            return None;
        }
        let value: f64 = self.text.parse().ok()?;
        Some(float_bits(ty, if self.negative { -value } else { value }))
    }

    fn integer_bits(self, ty: ElementType) -> Option<u64> {
        if ty == ElementType::I1 && !self.negative {
            match self.text {
                "true" => return Some(1),
                "false" => return Some(0),
                _ => {}
            }
        }
        let magnitude = match self.text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok()?,
            None => decimal(self.text.as_bytes())?,
        };
        let bits = ty.bits();
        let mask = u64::MAX >> (64 - bits.clamp(1, 64));
        let least = 1u64 << (bits.clamp(1, 64) - 1);
        let fits = match (self.negative, ty.kind()) {
            (true, ElementKind::UnsignedInteger) => magnitude == 0,
            (true, _) => magnitude <= least,
            (false, _) => magnitude <= mask,
        };
        let value = if self.negative { magnitude.wrapping_neg() } else { magnitude };
        fits.then_some(value & mask)
    }
}

/// Returns the value of decimal digits; `None` if it does not fit.
fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |value, &digit| {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// The reader of the elements of a `dense<...>`.
pub(super) struct Elements<'a> {
    text: &'a str,
    at: usize,
    ty: ElementType,
    width: usize,
    /// The bytes of the elements that have been read.
    pub(super) bytes: Vec<u8>,
}

/// The position of an error in the elements, and the message.
pub(super) type Fault = (usize, String);

impl<'a> Elements<'a> {
    /// Creates a reader of the text between the angle brackets.
    pub(super) fn new(text: &'a str, ty: ElementType, count: u64) -> Self {
        let part = ty.complex_part().unwrap_or(ty);
        // Each element takes at least one character.
        let count = usize::try_from(count).unwrap_or(usize::MAX).min(text.len());
        let bytes = Vec::with_capacity(count * ty.byte_width());
        Elements { text, at: 0, ty, width: part.byte_width(), bytes }
    }

    /// Reads one element, which must be the only one.
    pub(super) fn single(&mut self) -> Result<(), Fault> {
        self.element()?;
        self.end()
    }

    fn end(&mut self) -> Result<(), Fault> {
        self.space();
        if self.at == self.text.len() { Ok(()) } else { Err(self.expected("'>'")) }
    }

    /// Returns `true` if the elements are in brackets.
    pub(super) fn is_list(&mut self) -> bool {
        self.space();
        self.next() == Some(b'[')
    }

    /// Reads elements in nested brackets of these sizes.
    pub(super) fn nested(&mut self, dims: &[i64]) -> Result<(), Fault> {
        #[derive(Clone, Copy, PartialEq)]
        enum After {
            Comma,
            Open,
            Value,
        }
        // The number of elements that have been read in each open bracket.
        let mut counts: Vec<i64> = Vec::with_capacity(dims.len());
        let mut after = After::Comma;
        loop {
            self.space();
            match (self.next(), after) {
                (Some(b'['), After::Comma | After::Open) if counts.len() < dims.len() => {
                    self.at += 1;
                    counts.push(0);
                    after = After::Open;
                    continue;
                }
                (Some(b']'), After::Open) if counts.len() < dims.len() => {
                    return Err(self.expected(&format!("elements in {} brackets", dims.len())));
                }
                (Some(b']'), After::Open | After::Value) => {
                    let size = dims[counts.len() - 1];
                    let count = counts.pop().unwrap_or(0);
                    if count != size {
                        let message = format!("expected {size} elements in brackets, found {count}");
                        return Err((self.at, message));
                    }
                    self.at += 1;
                    if counts.is_empty() {
                        return self.end();
                    }
                }
                (Some(b','), After::Value) => {
                    self.at += 1;
                    after = After::Comma;
                    continue;
                }
                (_, After::Value) => return Err(self.expected("',' or ']'")),
                _ if counts.len() == dims.len() && !dims.is_empty() => self.element()?,
                _ => return Err(self.expected(&format!("elements in {} brackets", dims.len()))),
            }
            // An element or a bracket has ended.
            if let Some(count) = counts.last_mut() {
                *count += 1;
            }
            after = After::Value;
        }
    }

    fn next(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        self.at = skip_space(self.text.as_bytes(), self.at);
    }

    fn expected(&self, what: &str) -> Fault {
        let found = match &self.text[self.at..] {
            "" => "'>'".to_owned(),
            rest => format!("'{}'", shortened(rest)),
        };
        (self.at, format!("expected {what}, found {found}"))
    }

    /// Reads one element: a number, or two in parentheses.
    fn element(&mut self) -> Result<(), Fault> {
        let Some(part) = self.ty.complex_part() else { return self.number(self.ty) };
        let parentheses = self.next() == Some(b'(');
        if !parentheses {
            return Err(self.expected("'(' of a complex number"));
        }
        self.at += 1;
        self.number(part)?;
        self.space();
        if self.next() != Some(b',') {
            return Err(self.expected("','"));
        }
        self.at += 1;
        self.number(part)?;
        self.space();
        if self.next() != Some(b')') {
            return Err(self.expected("')'"));
        }
        self.at += 1;
        Ok(())
    }

    fn number(&mut self, ty: ElementType) -> Result<(), Fault> {
        self.space();
        let start = self.at;
        let negative = self.next() == Some(b'-');
        if negative {
            self.at += 1;
            self.space();
        }
        let bytes = self.text.as_bytes();
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'+' | b'-');
        let len = bytes[self.at..].iter().take_while(|byte| is_part(byte)).count();
        let text = &self.text[self.at..self.at + len];
        if len == 0 {
            return Err(self.expected(&format!("a number of type {ty}")));
        }
        let raw = Element { text, negative }.bits(ty).map_err(|message| (start, message))?;
        self.at += len;
        self.bytes.extend_from_slice(&raw.to_le_bytes()[..self.width]);
        Ok(())
    }
}
