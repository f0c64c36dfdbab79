//! Quantized element types.

use std::fmt;
use std::hash::{Hash, Hasher};

use super::{DYNAMIC, ElementKind, ElementType, Ints};

/// The parameters of a quantized element type: `real = (stored - zero_point) * scale`.
///
/// StableHLO specification, section "Quantized types".
#[derive(Clone, Debug)]
pub struct QuantizedType {
    /// The integer type that stores elements. MLIR's signless `u8` and `ui8` are represented by the same type.
    pub storage_type: ElementType,
    /// The float type that elements represent.
    pub expressed_type: ElementType,
    /// The minimum stored value.
    pub storage_min: i64,
    /// The maximum stored value.
    pub storage_max: i64,
    /// The scales: one for the whole tensor, one for each index of [`QuantizedType::axis`], or one for each block of
    /// [`QuantizedType::blocks`] with the last dimension of the grid varying fastest.
    pub scales: Box<[f64]>,
    /// The zero points, one for each scale.
    pub zero_points: Box<[i64]>,
    /// The dimension along which the parameters vary; `None` for parameters of the whole tensor or of blocks.
    pub axis: Option<u32>,
    /// The blocks that have their own parameters ("sub-channel quantization"); `None` if there are no blocks.
    pub blocks: Option<QuantizationBlocks>,
}

/// The division of a tensor into blocks with a scale and a zero point each.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QuantizationBlocks {
    /// The divided dimensions, each with the size of a block along it. Along the other dimensions a block spans the
    /// tensor.
    pub sizes: Box<[(u32, i64)]>,
    /// The number of blocks along each dimension of the tensor.
    pub grid: Ints,
}

impl QuantizationBlocks {
    /// Returns `true` if the blocks exactly cover a tensor of these sizes.
    pub(crate) fn fill(&self, dims: &[i64]) -> bool {
        let is_dimension = |&(dimension, size): &(u32, i64)| (dimension as usize) < dims.len() && size > 0;
        let size_along = |dimension: usize| {
            let size = self.sizes.iter().find(|(cut, _)| *cut as usize == dimension);
            size.map_or(dims[dimension], |&(_, size)| size)
        };
        self.grid.len() == dims.len()
            && self.sizes.iter().all(is_dimension)
            && (0..dims.len()).all(|dimension| {
                dims[dimension] == DYNAMIC
                    || self.grid[dimension].checked_mul(size_along(dimension)) == Some(dims[dimension])
            })
    }
}

impl QuantizedType {
    /// Returns the minimum and maximum value of the storage type. The maximum is at most `i64::MAX`.
    pub(crate) fn full_range(storage_type: ElementType) -> (i64, i64) {
        let bits = storage_type.bits().clamp(1, 64);
        if storage_type.kind() == ElementKind::UnsignedInteger {
            (0, i64::MAX >> 63_u32.saturating_sub(bits))
        } else {
            (i64::MIN >> (64 - bits), i64::MAX >> (64 - bits))
        }
    }

    fn scale_bits(&self) -> impl Iterator<Item = u64> + '_ {
        self.scales.iter().map(|scale| scale.to_bits())
    }

    /// Writes `2.0:10`.
    fn fmt_parameters(&self, f: &mut fmt::Formatter<'_>, index: usize) -> fmt::Result {
        super::fmt_finite(f, self.scales.get(index).copied().unwrap_or_default())?;
        match self.zero_points.get(index) {
            Some(&zero) if zero != 0 => write!(f, ":{zero}"),
            _ => Ok(()),
        }
    }

    /// Writes `{{2.0:10, 3.0:20}, {4.0:30, 5.0:40}}`.
    fn fmt_grid(&self, f: &mut fmt::Formatter<'_>, grid: &[i64]) -> fmt::Result {
        // The number of blocks between the braces of each dimension, from the outermost.
        let mut rows = vec![1usize; grid.len()];
        for index in (0..grid.len()).rev() {
            let inner = rows.get(index + 1).copied().unwrap_or(1);
            rows[index] = inner.saturating_mul(usize::try_from(grid[index]).unwrap_or(0)).max(1);
        }
        for index in 0..self.scales.len() {
            f.write_str(if index == 0 { "" } else { ", " })?;
            rows.iter().filter(|&&row| index.is_multiple_of(row)).try_for_each(|_| f.write_str("{"))?;
            self.fmt_parameters(f, index)?;
            rows.iter().filter(|&&row| (index + 1).is_multiple_of(row)).try_for_each(|_| f.write_str("}"))?;
        }
        Ok(())
    }
}

impl PartialEq for QuantizedType {
    fn eq(&self, other: &Self) -> bool {
        let key = |ty: &Self| (ty.storage_type, ty.expressed_type, ty.storage_min, ty.storage_max, ty.axis);
        key(self) == key(other)
            && self.blocks == other.blocks
            && self.zero_points == other.zero_points
            && self.scale_bits().eq(other.scale_bits())
    }
}

impl Eq for QuantizedType {}

impl Hash for QuantizedType {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.storage_type, self.expressed_type, self.storage_min, self.storage_max, self.axis).hash(state);
        self.blocks.hash(state);
        self.zero_points.hash(state);
        self.scale_bits().for_each(|bits| bits.hash(state));
    }
}

impl fmt::Display for QuantizedType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.storage_type.kind() == ElementKind::UnsignedInteger { "u" } else { "i" };
        write!(f, "!quant.uniform<{sign}{}", self.storage_type.bits())?;
        if (self.storage_min, self.storage_max) != Self::full_range(self.storage_type) {
            write!(f, "<{}:{}>", self.storage_min, self.storage_max)?;
        }
        write!(f, ":{}", self.expressed_type)?;
        if let Some(blocks) = &self.blocks {
            f.write_str(":{")?;
            for (index, (dimension, size)) in blocks.sizes.iter().enumerate() {
                write!(f, "{}{dimension}:{size}", if index == 0 { "" } else { ", " })?;
            }
            f.write_str("}, ")?;
            self.fmt_grid(f, &blocks.grid)?;
        } else if let Some(axis) = self.axis {
            write!(f, ":{axis}, ")?;
            self.fmt_grid(f, &[self.scales.len() as i64])?;
        } else {
            f.write_str(", ")?;
            self.fmt_grid(f, &[])?;
        }
        f.write_str(">")
    }
}
