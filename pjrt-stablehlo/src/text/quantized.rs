//! Quantized types: `!quant.uniform<i8:f32:0, {0.1:-30, 0.5}>`.

use super::lexer::Kind;
use super::parser::Parser;
use crate::Error;
use crate::ir::{ElementType, QuantizationBlocks, QuantizedType, Type};

impl Parser<'_> {
    /// Reads the part of a type after `!quant.uniform`.
    pub(super) fn quantized(&mut self) -> Result<QuantizedType, Error> {
        self.expect("<")?;
        let name = self.found();
        let storage_type = self.storage_type()?;
        let (storage_min, storage_max) = self.storage_range(name, storage_type)?;
        self.expect(":")?;
        let expressed_type = self.expressed_type()?;
        let (mut axis, mut block_sizes) = (None, None);
        if self.eat(":") {
            if self.at("{") {
                block_sizes = Some(self.list("{", "}", Self::block_size)?);
            } else {
                axis = Some(self.dimension()?);
            }
        }
        self.expect(",")?;
        let mut blocks = None;
        let pairs = match (axis, block_sizes) {
            (None, None) => vec![self.scale()?],
            (_, None) => self.list("{", "}", Self::scale)?,
            (_, Some(sizes)) => {
                let (mut grid, mut pairs) = (Vec::new(), Vec::new());
                self.block_scales(0, &mut grid, &mut pairs)?;
                blocks = Some(QuantizationBlocks { sizes: sizes.into(), grid: grid.into() });
                pairs
            }
        };
        if pairs.is_empty() {
            return Err(self.expected("a scale"));
        }
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
            blocks,
        })
    }

    /// `i8`, `u8`, `si8` or `ui8`.
    fn storage_type(&mut self) -> Result<ElementType, Error> {
        let start = self.token.start;
        let name = self.bare("a storage type")?;
        let digits = match name.split_once(['i', 'u']) {
            Some(("", digits)) if name.starts_with('i') => Some(("i", digits)),
            Some(("", digits)) => Some(("ui", digits.trim_start_matches('i'))),
            Some(("s", digits)) => Some(("i", digits)),
            _ => None,
        };
        digits
            .and_then(|(sign, digits)| ElementType::from_name(&format!("{sign}{digits}")))
            .filter(|ty| ty.is_integer() && ty.bits() <= 32)
            .ok_or_else(|| self.error_at(start, format!("expected a storage type, found '{name}'")))
    }

    /// `<-100:100>`, a part of the range of the storage type, or nothing, which means all of it.
    fn storage_range(&mut self, name: &str, storage_type: ElementType) -> Result<(i64, i64), Error> {
        let (min, max) = QuantizedType::full_range(storage_type);
        if !self.eat("<") {
            return Ok((min, max));
        }
        let at = self.token.start;
        let first = self.integer()?;
        self.expect(":")?;
        let last = self.integer()?;
        self.expect(">")?;
        let range = min..=max;
        if !range.contains(&first) || !range.contains(&last) || first >= last {
            return Err(self.error_at(
                at,
                format!(
                    "expected a minimum and a larger maximum in the range of {name}, found {first} and {last}"
                ),
            ));
        }
        Ok((first, last))
    }

    /// `f32`: the type of the numbers that the stored integers represent.
    fn expressed_type(&mut self) -> Result<ElementType, Error> {
        let at = self.token.start;
        let Type::Scalar(expressed_type) = self.ty()? else {
            return Err(self.error_at(at, "expected a float type"));
        };
        if !expressed_type.is_float() {
            return Err(self.error_at(at, format!("expected a float type, found {expressed_type}")));
        }
        Ok(expressed_type)
    }

    fn dimension(&mut self) -> Result<u32, Error> {
        let at = self.token.start;
        u32::try_from(self.integer()?).map_err(|_| self.error_at(at, "expected a dimension"))
    }

    /// Reads `0:32`: a dimension, and the size of blocks along it.
    fn block_size(&mut self) -> Result<(u32, i64), Error> {
        let dimension = self.dimension()?;
        self.expect(":")?;
        Ok((dimension, self.integer()?))
    }

    /// Reads `{{0.5:-20, 0.25}, {0.5, 0.25}}`: scales and zero points of a grid of blocks. The first lists determine
    /// the size of the grid.
    fn block_scales(
        &mut self,
        depth: usize,
        grid: &mut Vec<i64>,
        pairs: &mut Vec<(f64, i64)>,
    ) -> Result<(), Error> {
        let start = self.token.start;
        if !self.at("{") {
            if depth < grid.len() {
                return Err(self.expected("'{'"));
            }
            pairs.push(self.scale()?);
            return Ok(());
        }
        let is_first = pairs.is_empty();
        if is_first {
            grid.push(0);
        }
        if depth >= grid.len() {
            return Err(self.expected("a scale"));
        }
        let count = self
            .list("{", "}", |parser| parser.nested(|parser| parser.block_scales(depth + 1, grid, pairs)))?;
        let count = count.len() as i64;
        if is_first {
            grid[depth] = count;
        }
        if count == 0 || grid[depth] != count {
            return Err(
                self.error_at(start, format!("expected {} blocks, found {count}", grid[depth].max(1)))
            );
        }
        Ok(())
    }

    /// Reads `0.5:-20`: a scale and an optional zero point.
    fn scale(&mut self) -> Result<(f64, i64), Error> {
        let negative = self.eat("-");
        let scale = match self.token.kind {
            Kind::Float => self.found().parse::<f64>().ok(),
            _ => None,
        };
        let Some(scale) = scale else { return Err(self.expected("a scale such as 1.0")) };
        self.advance();
        let zero_point = if self.eat(":") { self.integer()? } else { 0 };
        Ok((if negative { -scale } else { scale }, zero_point))
    }
}
