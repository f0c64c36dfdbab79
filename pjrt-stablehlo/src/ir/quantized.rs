//! Quantized element types.

use std::fmt;
use std::hash::{Hash, Hasher};

use super::{DYNAMIC, ElementKind, ElementType, Ints};

/// The parameters of a quantized element type: `real = (stored - zero_point) * scale`.
///
/// StableHLO specification, "Quantized types".
#[derive(Clone, Debug)]
pub struct QuantizedType {
    /// The integer type in which elements are stored. MLIR's `u8`, a signless type with a mark, and `ui8` are the same.
    pub storage_type: ElementType,
    /// The float type that elements stand for.
    pub expressed_type: ElementType,
    /// Least stored value.
    pub storage_min: i64,
    /// Greatest stored value.
    pub storage_max: i64,
    /// Scales: one for the whole tensor, one for each index of [`QuantizedType::axis`], or one for each block of
    /// [`QuantizedType::blocks`], the last dimension of the grid first.
    pub scales: Box<[f64]>,
    /// Zero points, as many as scales.
    pub zero_points: Box<[i64]>,
    /// The dimension along which the parameters differ; `None` when they are the same for the whole tensor or of blocks.
    pub axis: Option<u32>,
    /// The blocks that have parameters of their own ("sub-channel quantization"); `None` when there are none.
    pub blocks: Option<QuantizationBlocks>,
}

/// How a tensor is cut into blocks, each with a scale and a zero point of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QuantizationBlocks {
    /// Dimensions that are cut, each with the size of a block along it. Along the others a block is as large as the tensor.
    pub sizes: Box<[(u32, i64)]>,
    /// Number of blocks along each dimension of the tensor.
    pub grid: Ints,
}

impl QuantizationBlocks {
    /// Whether the blocks make up a tensor of these sizes.
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
    /// Least and greatest value of the storage type; the greatest is at most that of 64 bits with a sign.
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

    /// `2.0:10`.
    fn fmt_parameters(&self, f: &mut fmt::Formatter<'_>, index: usize) -> fmt::Result {
        super::fmt_finite(f, self.scales.get(index).copied().unwrap_or_default())?;
        match self.zero_points.get(index) {
            Some(&zero) if zero != 0 => write!(f, ":{zero}"),
            _ => Ok(()),
        }
    }

    /// `{{2.0:10, 3.0:20}, {4.0:30, 5.0:40}}`.
    fn fmt_grid(&self, f: &mut fmt::Formatter<'_>, grid: &[i64]) -> fmt::Result {
        // After how many blocks a brace of each dimension opens and closes, from the outermost.
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
