//! Constant arrays.

use super::Shape;
use super::check::{Check, counts, need, same};
use super::operation::{Cost, Execution, Operation};
use pjrt_stablehlo::Bytes;
use refcpu_kernels::DType;

/// A constant array. Cloning is cheap.
#[derive(Clone, PartialEq, Eq)]
pub struct Constant {
    /// The type of the array.
    pub shape: Shape,
    /// `true` if `bytes` is a single element that all elements equal.
    pub splat: bool,
    /// The elements: little-endian, row-major.
    pub bytes: Bytes,
}

impl Constant {
    /// Creates a constant whose elements are all equal.
    pub fn splat(shape: Shape, element: impl Into<Bytes>) -> Self {
        let bytes = element.into();
        assert_eq!(bytes.len(), shape.dtype.size(), "the bytes are not one element of {shape}");
        Self { shape, splat: true, bytes }
    }

    /// Creates a constant from all its elements.
    pub fn dense(shape: Shape, elements: impl Into<Bytes>) -> Self {
        let bytes = elements.into();
        assert_eq!(bytes.len(), shape.bytes(), "the bytes are not the elements of {shape}");
        let splat = shape.len() == 1;
        Self { shape, splat, bytes }
    }

    /// Creates an integer scalar. The value wraps to the type.
    pub fn integer(dtype: DType, value: i64) -> Self {
        assert!(!dtype.is_float() && !dtype.is_complex());
        Self::splat(Shape::scalar(dtype), value.to_le_bytes()[..dtype.size()].to_vec())
    }

    /// Creates a constant of zeros or false values.
    pub fn zero(shape: Shape) -> Self {
        let size = shape.dtype.size();
        Self::splat(shape, vec![0; size])
    }

    /// Returns the bytes of the element that all elements equal; `None` if all elements are stored.
    pub fn element(&self) -> Option<&[u8]> {
        self.splat.then_some(&*self.bytes)
    }

    /// Returns the same elements with other dimensions. A splat may change its number of elements.
    pub fn with_dims(&self, dims: &[usize]) -> Self {
        let shape = self.shape.with_dims(dims);
        if self.splat { Self { shape, ..self.clone() } } else { Self::dense(shape, self.bytes.clone()) }
    }

    /// Returns the bytes of all elements.
    pub fn to_dense(&self) -> Vec<u8> {
        if self.splat { self.bytes.repeat(self.shape.len()) } else { self.bytes.to_vec() }
    }

    /// Returns the elements as integers, with 0 and 1 for booleans; `None` for other types, or if there are more than `limit`.
    pub fn integers(&self, limit: usize) -> Option<Vec<i64>> {
        let dtype = self.shape.dtype;
        if dtype.is_float() || dtype.is_complex() || self.shape.len() > limit {
            return None;
        }
        let one = |e: &[u8]| {
            let mut all =
                [if dtype.compute().is_signed_integer() && e[e.len() - 1] >= 0x80 { 0xff } else { 0 }; 8];
            all[..e.len()].copy_from_slice(e);
            i64::from_le_bytes(all)
        };
        let given: Vec<i64> = self.bytes.chunks_exact(dtype.size()).map(one).collect();
        Some(if self.splat { vec![given[0]; self.shape.len()] } else { given })
    }

    /// Returns the integer that all elements equal; `None` if they are not integers, or if all elements are stored.
    pub fn as_integer(&self) -> Option<i64> {
        let element = Constant::splat(Shape::scalar(self.shape.dtype), self.element()?.to_vec());
        element.integers(1)?.first().copied()
    }

    /// Returns whether all bits of all elements are zero: 0, +0.0 or false.
    pub fn is_zero(&self) -> bool {
        self.element().is_some_and(|e| e.iter().all(|b| *b == 0))
    }

    /// Returns whether all elements are one. Only splats are recognized.
    pub fn is_one(&self) -> bool {
        let d = self.shape.dtype;
        match d {
            DType::F32 => self.element() == Some(&1f32.to_le_bytes()[..]),
            DType::F64 => self.element() == Some(&1f64.to_le_bytes()[..]),
            _ if d.is_float() || d.is_complex() => false,
            _ => self.as_integer() == Some(1),
        }
    }

    /// Returns the reciprocal of a constant with equal elements, if these are powers of two: division by them is exactly the
    /// multiplication by their reciprocals.
    pub fn exact_reciprocal(&self) -> Option<Self> {
        let element = self.element()?;
        let exact = |x: f64, smallest: f64| {
            let is_power = x.to_bits() & ((1 << 52) - 1) == 0 && x.is_normal();
            (is_power && x.recip().abs() >= smallest && x.abs() >= smallest).then(|| x.recip())
        };
        let bytes = match self.shape.dtype {
            DType::F32 => {
                let x = f64::from(f32::from_le_bytes(element.try_into().ok()?));
                (exact(x, f64::from(f32::MIN_POSITIVE))? as f32).to_le_bytes().to_vec()
            }
            DType::F64 => {
                exact(f64::from_le_bytes(element.try_into().ok()?), f64::MIN_POSITIVE)?.to_le_bytes().to_vec()
            }
            _ => return None,
        };
        Some(Self::splat(self.shape.clone(), bytes))
    }
}

impl Operation for Constant {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 0, 1)?;
        same(&self.shape, y[0])?;
        let expected = if self.splat { self.shape.dtype.size() } else { self.shape.bytes() };
        need(self.bytes.len() == expected, "the number of bytes of the constant does not fit its type")
    }

    fn cost(&self, _x: &[&Shape], _y: &[&Shape]) -> Option<Cost> {
        None
    }

    fn execution(&self, _x: &[&Shape], _y: &[&Shape]) -> Execution {
        Execution::Compiled
    }
}

impl std::hash::Hash for Constant {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.shape.hash(state);
        (*self.bytes).hash(state);
    }
}

impl std::fmt::Debug for Constant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let dtype = self.shape.dtype;
        let shown = self.bytes.chunks_exact(dtype.size().max(1)).take(8).map(|e| match dtype {
            DType::F32 => f32::from_le_bytes(e.try_into().expect("4 bytes")).to_string(),
            DType::F64 => f64::from_le_bytes(e.try_into().expect("8 bytes")).to_string(),
            _ if dtype.is_float() || dtype.is_complex() => {
                e.iter().rev().fold("0x".to_string(), |s, b| s + &format!("{b:02x}"))
            }
            _ => {
                Constant::splat(Shape::scalar(dtype), e.to_vec()).as_integer().unwrap_or_default().to_string()
            }
        });
        let shown = shown.collect::<Vec<_>>().join(", ");
        let more = if !self.splat && self.shape.len() > 8 { ", ..." } else { "" };
        write!(f, "{}({shown}{more})", if self.splat { "splat" } else { "dense" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_extend_by_their_sign() {
        let c = Constant::dense(Shape::new(DType::S8, &[2]), vec![0xff, 1]);
        assert_eq!(c.integers(2), Some(vec![-1, 1]));
        let c = Constant::dense(Shape::new(DType::U8, &[2]), vec![0xff, 1]);
        assert_eq!(c.integers(2), Some(vec![255, 1]));
        assert_eq!(c.integers(1), None);
        assert_eq!(Constant::integer(DType::S32, -5).as_integer(), Some(-5));
    }

    #[test]
    fn a_splat_stands_for_all_elements() {
        let c = Constant::integer(DType::S16, 3).with_dims(&[2, 2]);
        assert_eq!(c.to_dense(), [3, 0, 3, 0, 3, 0, 3, 0]);
        assert_eq!(c.integers(4), Some(vec![3; 4]));
    }
}
