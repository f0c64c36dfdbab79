//! Constant tensors.

use std::borrow::Cow;

use super::floats::float_value;
use super::{ElementType, TensorType};
use crate::Bytes;

/// A constant tensor: a type and its elements.
///
/// The data is a window of the program's bytes wherever the format allows it: nothing is expanded or copied until
/// [`Literal::dense_bytes`] is called. Readers guarantee that the length of the data fits the type.
#[derive(Clone, Debug)]
pub struct Literal {
    ty: TensorType,
    data: LiteralData,
}

/// How a [`Literal`]'s elements are stored.
///
/// Elements are little-endian and row-major, each in whole bytes ([`ElementType::byte_width`]): 2- and 4-bit
/// integers and 4- and 6-bit floats take one byte, value in the low bits; the others are zero in a [`Literal`]. Complex
/// numbers are real part, then imaginary part. Quantized elements are of the storage type.
#[derive(Clone, Debug)]
pub enum LiteralData {
    /// All elements, one after the other. `i1` takes one byte an element, 0 or 1.
    Dense(Bytes),
    /// One element that stands for all of them. `i1` is one byte, 0 or 1.
    Splat(Bytes),
    /// `i1` elements as bits, least significant bit first.
    Bits(Bytes),
}

/// Why [`Literal::new`] or [`Literal::dense_bytes`] could not do it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LiteralError {
    /// The type has dimensions of unknown size, or more elements than can be addressed.
    #[error("{0} has no definite size")]
    Unsized(TensorType),
    /// The data is too long or too short.
    #[error("{ty} takes {expected} bytes of data, found {found}")]
    Length {
        /// The type.
        ty: TensorType,
        /// Bytes that the type takes.
        expected: u64,
        /// Bytes that were given.
        found: u64,
    },
    /// Bit-packed data is for `i1` only.
    #[error("{0} cannot be stored as bits")]
    NotBoolean(TensorType),
    /// There are bits behind those of the elements.
    #[error("the bits of {0} go on behind its last element")]
    Bits(TensorType),
    /// There is not enough memory for the expanded data.
    #[error("no memory for the {0} bytes of a constant")]
    OutOfMemory(u64),
}

impl Literal {
    /// A literal of the given type and data.
    ///
    /// # Errors
    /// When the length of the data does not fit the type, or the type has no definite size.
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

    /// The literal of a blob in MLIR's form: all elements, or one for all. Booleans are bits or bytes.
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

    fn of_booleans(ty: TensorType, blob: Bytes, elements: u64) -> Result<Literal, LiteralError> {
        let len = blob.len() as u64;
        let data = match *blob {
            // Writers mark a splat of true with all ones, because one byte can be eight elements as well.
            [0xff] => LiteralData::Splat([1].as_slice().into()),
            // MLIR wrote bits until 2026.
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

    /// The type.
    pub fn ty(&self) -> &TensorType {
        &self.ty
    }

    /// The type with the storage type in place of a quantized one: what the constant's text shows.
    pub fn storage_ty(&self) -> TensorType {
        match self.ty.quantization() {
            None => self.ty.clone(),
            Some(quantization) => TensorType::new(quantization.storage_type, self.ty.dims()),
        }
    }

    /// The elements as they are stored.
    pub fn data(&self) -> &LiteralData {
        &self.data
    }

    /// Number of elements.
    pub fn num_elements(&self) -> u64 {
        self.ty.num_elements().unwrap_or(0)
    }

    /// Bytes that [`Literal::dense_bytes`] gives.
    pub fn dense_len(&self) -> u64 {
        self.num_elements().saturating_mul(self.ty.storage_type().byte_width() as u64)
    }

    /// The bytes of the one element that all elements equal, when the literal is stored so or has one element.
    pub fn splat(&self) -> Option<Cow<'_, [u8]>> {
        match &self.data {
            LiteralData::Splat(bytes) => Some(Cow::Borrowed(bytes)),
            LiteralData::Dense(bytes) if self.num_elements() == 1 => Some(Cow::Borrowed(bytes)),
            LiteralData::Bits(bytes) if self.num_elements() == 1 => Some(Cow::Owned(vec![bytes[0] & 1])),
            _ => None,
        }
    }

    /// All elements, dense, row-major, little-endian, `i1` as bytes: borrowed when they are stored so, otherwise
    /// expanded.
    ///
    /// # Errors
    /// When the expanded data does not fit into memory. A splat of a few bytes can stand for any number of bytes;
    /// compare [`Literal::dense_len`] with what you are willing to spend.
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

    /// The elements of an integer, index or `i1` literal (of a quantized one: as they are stored), sign- or zero-extended; `ui64` values above `i64::MAX`
    /// wrap.
    ///
    /// `None` when the element type is another, or for more than `limit` elements.
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
    /// The elements of a literal of floats of any width, each of which `f64` holds exactly.
    ///
    /// `None` when the element type is another, or for more than `limit` elements.
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

    /// The elements of a literal of complex numbers: real and imaginary part.
    ///
    /// `None` when the element type is another, or for more than `limit` elements.
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

    /// The elements of an `i1` literal.
    ///
    /// `None` when the element type is another, or for more than `limit` elements.
    pub fn to_bools(&self, limit: usize) -> Option<Vec<bool>> {
        if self.ty.element_type() != ElementType::I1 || self.num_elements() > limit as u64 {
            return None;
        }
        Some((0..self.num_elements()).map(|index| self.boolean(index)).collect())
    }
}

/// The value of a float element in its stored bytes.
fn float(ty: ElementType, bytes: &[u8]) -> f64 {
    let raw = bytes.iter().rev().fold(0u64, |value, &byte| value << 8 | u64::from(byte));
    float_value(ty, raw)
}

/// The value of an integer element in its stored bytes.
pub(crate) fn integer_value(ty: ElementType, element: &[u8]) -> i64 {
    let raw = element.iter().rev().fold(0u64, |value, &byte| value << 8 | u64::from(byte));
    let unused = 64 - ty.bits().clamp(1, 64);
    if ty.kind() == super::ElementKind::SignedInteger {
        (raw << unused) as i64 >> unused
    } else {
        (raw << unused >> unused) as i64
    }
}

/// Elements of a few bits with zeros above them, which some writers fill with the sign or leave undefined.
fn low_bits(bytes: Bytes, used: u32) -> Bytes {
    let mask = !(u8::MAX << used);
    if bytes.iter().all(|byte| byte & !mask == 0) {
        return bytes;
    }
    bytes.iter().map(|byte| byte & mask).collect::<Vec<u8>>().into()
}

impl PartialEq for Literal {
    /// Same type and same elements, however they are stored.
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
    /// Element `index` of an `i1` literal.
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
