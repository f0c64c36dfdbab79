//! Constant tensors.

use std::borrow::Cow;

use super::floats::float_value;
use super::{ElementType, TensorType};
use crate::Bytes;

/// A constant tensor: a type and its elements.
///
/// The data is a slice of the program's bytes wherever the format allows it. It is expanded or copied only by
/// [`Literal::dense_bytes`] and the other conversions. The length of the data always fits the type.
#[derive(Clone, Debug)]
pub struct Literal {
    ty: TensorType,
    data: LiteralData,
}

/// The storage of a [`Literal`]'s elements.
///
/// Elements are little-endian and in row-major order, and take whole bytes each ([`ElementType::byte_width`]): elements
/// of fewer than 8 bits occupy the low bits of a byte whose other bits are zero. Complex numbers consist of the real
/// part followed by the imaginary part. Quantized elements are stored as their storage type.
#[derive(Clone, Debug)]
pub enum LiteralData {
    /// All elements in order. An `i1` takes one byte, 0 or 1.
    Dense(Bytes),
    /// One element, which every element equals. An `i1` takes one byte, 0 or 1.
    Splat(Bytes),
    /// Elements of type `i1` as bits, least significant bit first.
    Bits(Bytes),
}

/// An error of [`Literal::new`] or [`Literal::dense_bytes`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LiteralError {
    /// The type has a dynamic dimension, or more elements than can be addressed.
    #[error("{0} has a dynamic dimension or more elements than can be addressed")]
    Unsized(TensorType),
    /// The length of the data does not fit the type.
    #[error("{ty} takes {expected} bytes of data, found {found}")]
    Length {
        /// The type of the literal.
        ty: TensorType,
        /// The number of bytes that the type takes.
        expected: u64,
        /// The number of bytes that were given.
        found: u64,
    },
    /// The data is bit-packed, but the element type is not `i1`.
    #[error("bit-packed data for {0}, expected element type i1")]
    NotBoolean(TensorType),
    /// A bit after those of the elements is set.
    #[error("a bit after the last element of {0} is set, expected 0")]
    Bits(TensorType),
    /// The expanded data does not fit into memory.
    #[error("cannot allocate the {0} bytes of a constant")]
    OutOfMemory(u64),
}

impl Literal {
    /// Creates a literal from its type and data.
    ///
    /// # Errors
    /// Returns an error if the type has a dynamic dimension or more elements than can be addressed, if the length of the
    /// data does not fit the type, or if the data is [`LiteralData::Bits`] and the element type is not `i1`.
    pub fn new(ty: TensorType, data: LiteralData) -> Result<Literal, LiteralError> {
        let elements = ty.num_elements().ok_or_else(|| LiteralError::Unsized(ty.clone()))?;
        let width = ty.storage_type().byte_width() as u64;
        let (found, expected) = match &data {
            LiteralData::Dense(bytes) => (bytes.len(), elements.checked_mul(width)),
            LiteralData::Splat(bytes) => (bytes.len(), Some(width)),
            LiteralData::Bits(bytes) => {
                if ty.element_type() != ElementType::I1 {
                    return Err(LiteralError::NotBoolean(ty));
                }
                (bytes.len(), Some(elements.div_ceil(8)))
            }
        };
        let expected = expected.ok_or_else(|| LiteralError::Unsized(ty.clone()))?;
        if found as u64 != expected {
            return Err(LiteralError::Length { ty, expected, found: found as u64 });
        }
        let used = match ty.storage_type() {
            ElementType::I1 => 8,
            other => other.bits(),
        };
        let data = match data {
            LiteralData::Dense(bytes) if used < 8 => LiteralData::Dense(low_bits(bytes, used)),
            LiteralData::Splat(bytes) if used < 8 => LiteralData::Splat(low_bits(bytes, used)),
            other => other,
        };
        Ok(Literal { ty, data })
    }

    /// Creates a literal from the bytes that MLIR stores: all elements, or one element for all. An `i1` takes a bit or
    /// a byte.
    pub(crate) fn from_blob(ty: TensorType, blob: Bytes) -> Result<Literal, LiteralError> {
        let elements = ty.num_elements().ok_or_else(|| LiteralError::Unsized(ty.clone()))?;
        if ty.element_type() == ElementType::I1 {
            return Self::of_booleans(ty, blob, elements);
        }
        let data = if elements != 1 && blob.len() == ty.storage_type().byte_width() {
            LiteralData::Splat(blob)
        } else {
            LiteralData::Dense(blob)
        };
        Literal::new(ty, data)
    }

    /// Returns the bytes that MLIR stores, the inverse of [`Literal::from_blob`]: one element if all equal it. An `i1`
    /// takes a bit, as in all versions of MLIR.
    pub(crate) fn to_blob(&self) -> Cow<'_, [u8]> {
        let is_boolean = self.ty.element_type() == ElementType::I1;
        match &self.data {
            LiteralData::Splat(element) if is_boolean && self.num_elements() != 1 => {
                Cow::Borrowed(if element[0] != 0 { &[0xff] } else { &[0] })
            }
            LiteralData::Dense(elements) | LiteralData::Splat(elements) if is_boolean => {
                let byte =
                    |bits: &[u8]| bits.iter().rev().fold(0, |byte, &bit| byte << 1 | u8::from(bit != 0));
                Cow::Owned(elements.chunks(8).map(byte).collect())
            }
            LiteralData::Dense(bytes) | LiteralData::Splat(bytes) | LiteralData::Bits(bytes) => {
                Cow::Borrowed(bytes)
            }
        }
    }

    fn of_booleans(ty: TensorType, blob: Bytes, elements: u64) -> Result<Literal, LiteralError> {
        let len = blob.len() as u64;
        let data = match *blob {
            // Writers encode a splat of `true` as a byte of ones, because a single byte can also be eight elements.
            [0xff] => LiteralData::Splat([1].as_slice().into()),
            // MLIR wrote one bit for each element until 2026.
            _ if len == elements.div_ceil(8) && len != elements => {
                let unused = (len * 8 - elements) as u32;
                if blob.last().is_some_and(|last| last.leading_zeros() < unused) {
                    return Err(LiteralError::Bits(ty));
                }
                LiteralData::Bits(blob)
            }
            [byte] if elements == 1 => LiteralData::Dense([byte & 1].as_slice().into()),
            [byte] => LiteralData::Splat([u8::from(byte != 0)].as_slice().into()),
            _ if blob.iter().all(|&byte| byte <= 1) => LiteralData::Dense(blob),
            _ => LiteralData::Dense(blob.iter().map(|&byte| u8::from(byte != 0)).collect::<Vec<u8>>().into()),
        };
        Literal::new(ty, data)
    }

    /// Returns the type of the literal.
    pub fn ty(&self) -> &TensorType {
        &self.ty
    }

    /// Returns the type with the storage type in place of a quantized one, as in the constant's text.
    pub fn storage_tensor_type(&self) -> TensorType {
        match self.ty.quantization() {
            None => self.ty.clone(),
            Some(quantization) => TensorType::new(quantization.storage_type, self.ty.dims()),
        }
    }

    /// Returns the elements in their stored form.
    pub fn data(&self) -> &LiteralData {
        &self.data
    }

    /// Returns the number of elements.
    pub fn num_elements(&self) -> u64 {
        self.ty.num_elements().unwrap_or(0)
    }

    /// Returns the length in bytes of the data that [`Literal::dense_bytes`] returns.
    pub fn dense_len(&self) -> u64 {
        self.num_elements().saturating_mul(self.ty.storage_type().byte_width() as u64)
    }

    /// Returns the bytes of the element that all elements equal, if the literal is stored as a splat or has one
    /// element.
    pub fn splat(&self) -> Option<Cow<'_, [u8]>> {
        match &self.data {
            LiteralData::Splat(bytes) => Some(Cow::Borrowed(bytes)),
            LiteralData::Dense(bytes) if self.num_elements() == 1 => Some(Cow::Borrowed(bytes)),
            LiteralData::Bits(bytes) if self.num_elements() == 1 => Some(Cow::Owned(vec![bytes[0] & 1])),
            _ => None,
        }
    }

    /// Returns all elements in the form of [`LiteralData::Dense`]: borrowed if the literal stores that form, otherwise
    /// expanded.
    ///
    /// # Errors
    /// Returns an error if the expanded data does not fit into memory. A splat of a few bytes can expand to any number
    /// of bytes; compare [`Literal::dense_len`] with the memory that the caller can afford.
    pub fn dense_bytes(&self) -> Result<Cow<'_, [u8]>, LiteralError> {
        let too_large = || LiteralError::OutOfMemory(self.dense_len());
        let len = usize::try_from(self.dense_len()).map_err(|_| too_large())?;
        let mut dense = Vec::new();
        match &self.data {
            LiteralData::Dense(bytes) => return Ok(Cow::Borrowed(bytes)),
            LiteralData::Splat(bytes) => {
                dense.try_reserve_exact(len).map_err(|_| too_large())?;
                if let [byte] = **bytes {
                    dense.resize(len, byte);
                } else {
                    (0..self.num_elements()).for_each(|_| dense.extend_from_slice(bytes));
                }
            }
            LiteralData::Bits(bytes) => {
                dense.try_reserve_exact(len).map_err(|_| too_large())?;
                dense.extend((0..len).map(|index| bytes[index / 8] >> (index % 8) & 1));
            }
        }
        Ok(Cow::Owned(dense))
    }

    /// Returns the elements of an integer, `index` or `i1` literal, or the stored integers of a quantized one, sign- or
    /// zero-extended to `i64`. Values of `ui64` above `i64::MAX` wrap.
    ///
    /// Returns `None` for other element types, and for more than `limit` elements.
    pub fn to_i64s(&self, limit: usize) -> Option<Vec<i64>> {
        let ty = self.ty.storage_type();
        if !(ty.is_integer() || ty == ElementType::I1) || self.num_elements() > limit as u64 {
            return None;
        }
        let bytes = self.dense_bytes().ok()?;
        Some(bytes.chunks_exact(ty.byte_width()).map(|element| integer_value(ty, element)).collect())
    }
}

impl Literal {
    /// Returns the elements of a literal of floats of any width, each of which `f64` represents exactly.
    ///
    /// Returns `None` for other element types, and for more than `limit` elements.
    ///
    /// ```
    /// use pjrt_stablehlo::ir::{ElementType, Literal, LiteralData, TensorType};
    ///
    /// let ty = TensorType::new(ElementType::BF16, [3]);
    /// let literal = Literal::new(ty, LiteralData::Splat(vec![0xc0, 0x3f].into())).unwrap();
    /// assert_eq!(literal.to_f64s(10), Some(vec![1.5; 3]));
    /// assert_eq!(literal.to_i64s(10), None);
    /// ```
    pub fn to_f64s(&self, limit: usize) -> Option<Vec<f64>> {
        let ty = self.ty.storage_type();
        if !ty.is_float() || self.num_elements() > limit as u64 {
            return None;
        }
        Some(self.dense_bytes().ok()?.chunks_exact(ty.byte_width()).map(|bytes| float(ty, bytes)).collect())
    }

    /// Returns the real and imaginary parts of the elements of a complex literal.
    ///
    /// Returns `None` for other element types, and for more than `limit` elements.
    pub fn to_complex_f64s(&self, limit: usize) -> Option<Vec<[f64; 2]>> {
        let ty = self.ty.storage_type();
        let part = ty.complex_part()?;
        if self.num_elements() > limit as u64 {
            return None;
        }
        let parts = |bytes: &[u8]| {
            let (real, imaginary) = bytes.split_at(part.byte_width());
            [float(part, real), float(part, imaginary)]
        };
        Some(self.dense_bytes().ok()?.chunks_exact(ty.byte_width()).map(parts).collect())
    }

    /// Returns the elements of an `i1` literal.
    ///
    /// Returns `None` for other element types, and for more than `limit` elements.
    pub fn to_bools(&self, limit: usize) -> Option<Vec<bool>> {
        if self.ty.element_type() != ElementType::I1 || self.num_elements() > limit as u64 {
            return None;
        }
        Some((0..self.num_elements()).map(|index| self.boolean(index)).collect())
    }
}

/// Returns the value of a float with these stored bytes.
fn float(ty: ElementType, bytes: &[u8]) -> f64 {
    let raw = bytes.iter().rev().fold(0u64, |value, &byte| value << 8 | u64::from(byte));
    float_value(ty, raw)
}

/// Returns the value of an integer with these stored bytes.
pub(crate) fn integer_value(ty: ElementType, element: &[u8]) -> i64 {
    let raw = element.iter().rev().fold(0u64, |value, &byte| value << 8 | u64::from(byte));
    let unused = 64 - ty.bits().clamp(1, 64);
    if ty.kind() == super::ElementKind::SignedInteger {
        (raw << unused) as i64 >> unused
    } else {
        (raw << unused >> unused) as i64
    }
}

/// Clears the bits above elements of fewer than 8 bits, which some writers leave undefined or fill with the sign.
fn low_bits(bytes: Bytes, used: u32) -> Bytes {
    let mask = !(u8::MAX << used);
    if bytes.iter().all(|byte| byte & !mask == 0) {
        return bytes;
    }
    bytes.iter().map(|byte| byte & mask).collect::<Vec<u8>>().into()
}

impl PartialEq for Literal {
    /// Compares types and elements; the stored forms may differ.
    fn eq(&self, other: &Self) -> bool {
        if self.ty != other.ty {
            return false;
        }
        match (&self.data, &other.data) {
            (LiteralData::Dense(a), LiteralData::Dense(b))
            | (LiteralData::Splat(a), LiteralData::Splat(b)) => a == b,
            (LiteralData::Splat(splat), LiteralData::Dense(dense))
            | (LiteralData::Dense(dense), LiteralData::Splat(splat)) => {
                dense.chunks_exact(splat.len().max(1)).all(|element| *element == **splat)
            }
            (LiteralData::Bits(_), _) | (_, LiteralData::Bits(_)) => {
                (0..self.num_elements()).all(|index| self.boolean(index) == other.boolean(index))
            }
        }
    }
}

impl Literal {
    /// Returns element `index` of an `i1` literal.
    fn boolean(&self, index: u64) -> bool {
        let index = index as usize;
        match &self.data {
            LiteralData::Dense(bytes) => bytes[index] != 0,
            LiteralData::Splat(bytes) => bytes[0] != 0,
            LiteralData::Bits(bytes) => bytes[index / 8] >> (index % 8) & 1 != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_unpack_least_significant_first() {
        let ty = TensorType::new(ElementType::I1, [10]);
        let packed = Literal::new(ty.clone(), LiteralData::Bits(vec![0b101, 0b10].into())).unwrap();
        let dense = packed.dense_bytes().unwrap().into_owned();
        assert_eq!(dense, [1, 0, 1, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(packed, Literal::new(ty, LiteralData::Dense(dense.into())).unwrap());
    }

    #[test]
    fn bits_above_an_element_do_not_count() {
        let of = |bytes: [u8; 2]| {
            let data = LiteralData::Dense(bytes.to_vec().into());
            Literal::new(TensorType::new(ElementType::I4, [2]), data).unwrap()
        };
        assert_eq!(of([0xff, 0x07]), of([0x0f, 0x37]));
        assert_eq!(of([0xff, 0x07]).to_i64s(2), Some(vec![-1, 7]));
        assert_eq!(*of([0xff, 0x37]).dense_bytes().unwrap(), [0x0f, 0x07]);
    }

    #[test]
    fn length_must_fit_the_type() {
        let ty = TensorType::new(ElementType::F32, [2, 3]);
        let error = Literal::new(ty, LiteralData::Dense(vec![0; 20].into())).unwrap_err();
        assert_eq!(error.to_string(), "tensor<2x3xf32> takes 24 bytes of data, found 20");
    }

    #[test]
    fn floats_of_every_width_have_their_value() {
        use ElementType as T;
        let types =
            [T::F64, T::F32, T::F16, T::BF16, T::F8E4M3FN, T::F8E5M2, T::F8E4M3FNUZ, T::F8E4M3, T::F8E3M4];
        for ty in types.into_iter().chain([T::F6E2M3FN, T::F6E3M2FN, T::F4E2M1FN, T::F8E8M0FNU]) {
            let numbers = if ty == T::F8E8M0FNU { [0.5, 1.0, 4.0] } else { [-1.5, 0.5, 2.0] };
            let stored = numbers.iter().flat_map(|&number| {
                crate::ir::float_bits(ty, number).to_le_bytes().into_iter().take(ty.byte_width())
            });
            let data = LiteralData::Dense(stored.collect::<Vec<u8>>().into());
            let literal = Literal::new(TensorType::new(ty, [3]), data).unwrap();
            assert_eq!(literal.to_f64s(3), Some(numbers.to_vec()), "{ty}");
            assert_eq!(literal.to_f64s(2), None);
        }
    }

    #[test]
    fn complex_numbers_and_booleans_have_their_value() {
        let bytes: Vec<u8> = [1.5f32, -2.0].iter().flat_map(|part| part.to_le_bytes()).collect();
        let literal =
            Literal::new(TensorType::new(ElementType::ComplexF32, [2]), LiteralData::Splat(bytes.into()));
        let literal = literal.unwrap();
        assert_eq!(literal.to_complex_f64s(2), Some(vec![[1.5, -2.0]; 2]));
        assert_eq!((literal.to_f64s(2), literal.to_bools(2)), (None, None));
        let bits = Literal::new(TensorType::new(ElementType::I1, [3]), LiteralData::Bits(vec![0b101].into()));
        assert_eq!(bits.unwrap().to_bools(3), Some(vec![true, false, true]));
    }

    #[test]
    fn integers_extend_from_their_own_width() {
        let literal = |ty, bytes: &[u8]| {
            Literal::new(TensorType::new(ty, [bytes.len() as i64]), LiteralData::Dense(bytes.into())).unwrap()
        };
        assert_eq!(literal(ElementType::I4, &[0x0f, 0x07, 0xff]).to_i64s(3), Some(vec![-1, 7, -1]));
        assert_eq!(literal(ElementType::Ui4, &[0x0f, 0xff]).to_i64s(3), Some(vec![15, 15]));
        assert_eq!(literal(ElementType::I8, &[0x80]).to_i64s(0), None);
    }

    #[test]
    fn booleans_are_bits_bytes_or_splats() {
        let read = |len: i64, blob: &[u8]| {
            let literal = Literal::from_blob(TensorType::new(ElementType::I1, [len]), blob.into()).unwrap();
            literal.to_i64s(100).unwrap()
        };
        assert_eq!(read(3, &[0xff]), [1, 1, 1]);
        assert_eq!(read(3, &[0b101]), [1, 0, 1]);
        assert_eq!(read(10, &[0]), [0; 10]);
        assert_eq!(read(10, &[0b11, 0b10]), [1, 1, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(read(1, &[1]), [1]);
        assert_eq!(read(2, &[1, 0]), [1, 0]);
        assert_eq!(read(0, &[]), [0; 0]);
    }
}
