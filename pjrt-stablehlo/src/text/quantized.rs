//! Quantized types: `!quant.uniform<i8:f32:0, {0.1:-30, 0.5}>`.

use super::lexer::Kind;
use super::parser::Parser;
use crate::Error;
use crate::ir::{ElementType, QuantizedType, Type};

impl Parser<'_> {
    /// What follows `!quant.uniform`.
    pub(super) fn quantized(&mut self) -> Result<QuantizedType, Error> {
        self.expect("<")?;
        let start = self.token.start;
        let name = self.bare("a storage type")?;
        let (signed, bits) = match name.split_once(['i', 'u']) {
            Some(("", bits)) if name.starts_with('i') => (true, bits),
            Some(("", bits)) => (false, bits.trim_start_matches('i')),
            Some(("s", bits)) => (true, bits),
            _ => return Err(self.error_at(start, format!("expected a storage type, found '{name}'"))),
        };
        let storage_type = ElementType::from_name(&format!("{}i{bits}", if signed { "" } else { "u" }));
        let storage_type = storage_type.filter(|ty| ty.is_integer() && ty.bits() <= 32);
        let Some(storage_type) = storage_type else {
            return Err(self.error_at(start, format!("expected a storage type, found '{name}'")));
        };
        let bits = storage_type.bits();
        let (mut storage_min, mut storage_max) =
            if signed { (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1) } else { (0, (1i64 << bits) - 1) };
        if self.eat("<") {
            let at = self.token.start;
            let range = storage_min..=storage_max;
            storage_min = self.integer()?;
            self.expect(":")?;
            storage_max = self.integer()?;
            self.expect(">")?;
            if !range.contains(&storage_min) || !range.contains(&storage_max) || storage_min >= storage_max {
                return Err(self.error_at(at, format!("expected a range of {name}")));
            }
        }
        self.expect(":")?;
        let at = self.token.start;
        let Type::Scalar(expressed_type) = self.ty()? else {
            return Err(self.error_at(at, "expected a float type"));
        };
        if !expressed_type.is_float() {
            return Err(self.error_at(at, format!("expected a float type, found {expressed_type}")));
        }
        let mut axis = None;
        if self.eat(":") {
            if self.at("{") {
                let message =
                    "quantized types with scales for blocks of several dimensions are not supported";
                return Err(self.unsupported_at(self.token.start, message));
            }
            let at = self.token.start;
            let value = u32::try_from(self.integer()?);
            axis = Some(value.map_err(|_| self.error_at(at, "expected a dimension"))?);
        }
        self.expect(",")?;
        let pairs = if axis.is_some() { self.list("{", "}", Self::scale)? } else { vec![self.scale()?] };
        self.expect(">")?;
        let (scales, zero_points): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        Ok(QuantizedType {
            storage_type,
            expressed_type,
            storage_min,
            storage_max,
            scales: scales.into(),
            zero_points: zero_points.into(),
            axis,
            signed,
        })
    }

    /// `0.5:-20`: a scale and a zero point, 0 where it is left out.
    fn scale(&mut self) -> Result<(f64, i64), Error> {
        let negative = self.eat("-");
        let scale = match self.token.kind {
            Kind::Float | Kind::Integer => self.found().parse::<f64>().ok(),
            _ => None,
        };
        let Some(scale) = scale else { return Err(self.expected("a scale")) };
        self.advance();
        let zero_point = if self.eat(":") { self.integer()? } else { 0 };
        Ok((if negative { -scale } else { scale }, zero_point))
    }
}
