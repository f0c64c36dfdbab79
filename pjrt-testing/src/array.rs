//! Arrays in host memory.

use crate::host::{ElementType, Error, Result};

/// A dense, row-major array in host memory.
///
/// ```
/// use pjrt_testing::{Array, ElementType};
///
/// let matrix = Array::new(&[2, 3], &[1_i32, 2, 3, 4, 5, 6])?;
/// assert_eq!((matrix.element_type, matrix.dims.as_slice()), (ElementType::S32, &[2, 3][..]));
/// assert_eq!(matrix.elements::<i32>()?, [1, 2, 3, 4, 5, 6]);
///
/// // An element type that Rust lacks: the bytes of two bf16 numbers.
/// let bf16 = ElementType::by_stablehlo_name("bf16").unwrap();
/// let ones = Array { element_type: bf16, dims: vec![2], bytes: vec![0x80, 0x3f, 0x80, 0x3f] };
/// # assert!(ones.elements::<f32>().is_err());
/// # Ok::<(), pjrt_testing::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Array {
    /// The element type.
    pub element_type: ElementType,
    /// The dimensions.
    pub dims: Vec<i64>,
    /// The elements as bytes. Elements of less than a byte occupy one byte each.
    pub bytes: Vec<u8>,
}

mod sealed {
    /// Conversions between an element and its bytes.
    pub trait Bytes: Sized {
        /// Appends the bytes of the element.
        fn append(&self, bytes: &mut Vec<u8>);
        /// Returns the element with these bytes, which have its size.
        fn from_bytes(bytes: &[u8]) -> Self;
    }
}

use sealed::Bytes;

/// A Rust type that is the type of array elements. Arrays of other element types are created from bytes.
pub trait Element: Bytes + Copy {
    /// The element type in PJRT.
    const TYPE: ElementType;
}

macro_rules! elements {
    ($($type:ty: $number:literal;)*) => {
        $(
            impl Element for $type {
                const TYPE: ElementType = ElementType($number);
            }

            impl Bytes for $type {
                fn append(&self, bytes: &mut Vec<u8>) {
                    bytes.extend(self.to_le_bytes());
                }

                fn from_bytes(bytes: &[u8]) -> Self {
                    let mut own = [0; size_of::<$type>()];
                    own.copy_from_slice(bytes);
                    Self::from_le_bytes(own)
                }
            }
        )*
    };
}

// The numbers are those of `PJRT_Buffer_Type`.
elements! {
    i8: 2; i16: 3; i32: 4; i64: 5;
    u8: 6; u16: 7; u32: 8; u64: 9;
    f32: 11; f64: 12;
}

impl Element for bool {
    const TYPE: ElementType = ElementType::PRED;
}

impl Bytes for bool {
    fn append(&self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(*self));
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        bytes.iter().any(|byte| *byte != 0)
    }
}

impl Array {
    /// Creates an array with these dimensions from its elements, row by row.
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if the number of elements is not the product of the dimensions.
    pub fn new<T: Element>(dims: &[i64], elements: &[T]) -> Result<Self> {
        let size = |size: usize, dim: &i64| usize::try_from(*dim).ok().and_then(|dim| size.checked_mul(dim));
        if dims.iter().try_fold(1, size) != Some(elements.len()) {
            let message = format!("the dimensions {dims:?} do not fit {} elements", elements.len());
            return Err(Error::of_caller("Array::new", message));
        }
        let mut bytes = Vec::with_capacity(size_of_val(elements));
        elements.iter().for_each(|element| element.append(&mut bytes));
        Ok(Self { element_type: T::TYPE, dims: dims.to_vec(), bytes })
    }

    /// Creates an array without dimensions.
    #[must_use]
    pub fn scalar<T: Element>(element: T) -> Self {
        Self { dims: Vec::new(), ..Self::from([element]) }
    }

    /// Returns the elements, row by row.
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if the elements have another type.
    pub fn elements<T: Element>(&self) -> Result<Vec<T>> {
        if self.element_type != T::TYPE {
            let message =
                format!("the array has elements of type {}; expected {}", self.element_type, T::TYPE);
            return Err(Error::of_caller("Array::elements", message));
        }
        Ok(self.bytes.chunks_exact(size_of::<T>()).map(T::from_bytes).collect())
    }
}

/// Creates an array of one dimension.
impl<T: Element, const N: usize> From<[T; N]> for Array {
    fn from(elements: [T; N]) -> Self {
        let mut bytes = Vec::with_capacity(size_of_val(&elements));
        elements.iter().for_each(|element| element.append(&mut bytes));
        Self { element_type: T::TYPE, dims: vec![N as i64], bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Code;

    #[test]
    fn elements_have_the_size_of_their_type() {
        fn check<T: Element + std::fmt::Debug + PartialEq>(element: T, name: &str) {
            assert_eq!((T::TYPE.byte_size(), T::TYPE.stablehlo_name()), (size_of::<T>(), name));
            let array = Array::scalar(element);
            assert_eq!((array.dims.len(), array.elements::<T>().unwrap()), (0, vec![element]));
        }
        check(true, "i1");
        check(-1_i8, "i8");
        check(-2_i16, "i16");
        check(-3_i32, "i32");
        check(-4_i64, "i64");
        check(1_u8, "ui8");
        check(2_u16, "ui16");
        check(3_u32, "ui32");
        check(4_u64, "ui64");
        check(0.5_f32, "f32");
        check(0.25_f64, "f64");
    }

    #[test]
    fn dimensions_and_types_that_do_not_fit_are_refused() {
        for dims in [&[2_i64, 2][..], &[-3], &[], &[i64::MAX, i64::MAX]] {
            assert_eq!(Array::new(dims, &[1.0_f32; 3]).unwrap_err().code, Code::INVALID_ARGUMENT, "{dims:?}");
        }
        let message = Array::from([1.0_f32]).elements::<i32>().unwrap_err().message;
        assert_eq!(message, "the array has elements of type F32; expected S32");
    }
}
