//! Random arrays, and host memory with random strides that contains them.

use std::fmt;

use crate::array::random::Random;
use crate::conform::harness::{Expected, Verdict, elements_at, offsets, reordered};
use pjrt_testing::host::{ElementType, Layout};

/// An array: its elements are dense and row-major.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Value {
    pub(super) element_type: ElementType,
    pub(super) dims: Vec<i64>,
    pub(super) bytes: Vec<u8>,
}

/// Writes type and dimensions, such as `F32[2, 3]`.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.element_type, self.dims)
    }
}

/// Returns the number of values of an element that occupies one byte in host memory, or `None` for other elements.
fn values_of_a_byte(element_type: ElementType) -> Option<usize> {
    Some(match element_type.stablehlo_name() {
        "i1" | "i1s" | "ui1" => 2,
        "i2" | "ui2" => 4,
        "i4" | "ui4" | "f4E2M1FN" => 16,
        "f6E2M3FN" | "f6E3M2FN" => 64,
        "i8" | "ui8" => 256,
        _ => return None,
    })
}

/// Returns `true` if elements are integers, for which all bits are allowed.
fn is_integer(element_type: ElementType) -> bool {
    element_type.stablehlo_name().trim_start_matches("ui").trim_start_matches('i').parse::<u32>().is_ok()
}

impl Value {
    /// Returns random elements, of which none is NaN or infinite.
    pub(super) fn random(random: &mut Random, element_type: ElementType, dims: &[i64]) -> Self {
        let (size, part) = (element_type.byte_size(), element_type.alignment());
        let len = dims.iter().product::<i64>() as usize * size;
        let of_byte = values_of_a_byte(element_type);
        let integer = is_integer(element_type);
        let byte = |at: usize| match of_byte {
            Some(values) => random.below(values) as u8,
            None if integer || !(at + 1).is_multiple_of(part) => random.next() as u8,
            // The exponent of numbers near 1, and the sign.
            None => 0x31 + random.below(9) as u8 + 0x80 * random.below(2) as u8,
        };
        Self { element_type, dims: dims.to_vec(), bytes: (0..len).map(byte).collect() }
    }

    /// Compares elements with those of this array.
    pub(super) fn check(&self, what: &str, read: &[u8]) -> Verdict {
        self.check_ordered(what, None, read)
    }

    /// Compares elements with those of this array, in the order of dimensions from major to minor in which they were read.
    pub(super) fn check_ordered(&self, what: &str, order: Option<&[usize]>, read: &[u8]) -> Verdict {
        let used = self.element_type.used_bits();
        let masked = |bytes: &[u8]| bytes.iter().map(|byte| byte & used).collect::<Vec<u8>>();
        let ordered = order.map(|order| self.ordered(order));
        let expected = masked(ordered.as_ref().unwrap_or(&self.bytes));
        let what = format!("{what} {self}");
        let dims: Vec<i64> = match order {
            Some(order) => order.iter().map(|dim| self.dims[*dim]).collect(),
            None => self.dims.clone(),
        };
        // The search for an order of dimensions is meant for few of them.
        let dims = if dims.len() > 5 { vec![self.len() as i64] } else { dims };
        Expected::new(&what, &expected, self.element_type, &dims).check(&masked(read))
    }

    /// Returns the number of elements.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() / self.element_type.byte_size().max(1)
    }

    /// Returns the elements in the order in which a layout stores them; `order` is from major to minor.
    pub(super) fn ordered(&self, order: &[usize]) -> Vec<u8> {
        let size = self.element_type.byte_size();
        reordered(&self.bytes, size, &self.dims, order)
    }
}

/// Host memory with strides, and the array that it contains.
#[derive(Clone)]
pub(super) struct Strided {
    pub(super) value: Value,
    pub(super) bytes: Vec<u8>,
    /// `None` if the host passes no strides.
    pub(super) strides: Option<Vec<i64>>,
    /// The offset of the element whose indices are all 0.
    pub(super) first: usize,
}

/// The largest host memory of an array with strides.
const MOST_BYTES: i64 = 4 << 20;

impl Strided {
    /// Describes dense memory without strides.
    pub(super) fn dense(value: Value) -> Self {
        Self { bytes: value.bytes.clone(), value, strides: None, first: 0 }
    }

    /// Puts an array into memory with random strides: permuted, padded, negative or zero. Along dimensions with a stride of
    /// zero, the elements are equal. `odd` permits strides that are not multiples of the elements' alignment.
    pub(super) fn random(random: &mut Random, value: Value, odd: bool) -> Self {
        let size = value.element_type.byte_size() as i64;
        let mut order: Vec<usize> = (0..value.dims.len()).collect();
        if !random.one_in(3) {
            random.shuffle(&mut order);
        }
        let is_plain = random.one_in(3);
        let (mut strides, mut next, mut before) = (vec![0; order.len()], size, 0);
        for dim in order {
            let count = value.dims[dim].max(1);
            let padding = match random.below(if is_plain { 1 } else { 6 }) {
                3 if odd => 1 + random.below(7) as i64,
                4 => size * (1 + random.below(3) as i64),
                5 if odd => 64 + random.below(64) as i64,
                _ => 0,
            };
            let stride = next + padding;
            let way = random.below(if is_plain { 1 } else { 12 });
            strides[dim] = match way {
                // Nothing reads beyond the only element of the dimension.
                _ if count == 1 && way > 6 => random.next() as i64 >> 24,
                10 => 0,
                11 => -stride,
                _ => stride,
            };
            if count > 1 && strides[dim] != 0 {
                before += if strides[dim] < 0 { (count - 1) * stride } else { 0 };
                next = count.saturating_mul(stride);
            }
        }
        if next > MOST_BYTES {
            return Self::dense(value);
        }
        Self::filled(random, value, strides, before as usize, next as usize)
    }

    /// Writes the elements to memory of this size, and reads the array that this results in.
    fn filled(random: &mut Random, value: Value, strides: Vec<i64>, first: usize, size: usize) -> Self {
        let width = value.element_type.byte_size();
        let mut bytes: Vec<u8> = (0..size.max(width)).map(|_| random.next() as u8).collect();
        // A plugin that ignores the strides reads a dense array from the first element.
        bytes.resize(bytes.len() + value.bytes.len(), 0x5A);
        let places = offsets(&value.dims, &strides, first);
        for (place, element) in places.iter().zip(value.bytes.chunks(width)) {
            bytes[*place..place + width].copy_from_slice(element);
        }
        let read = elements_at(&bytes, &places, width);
        Self { value: Value { bytes: read, ..value }, bytes, strides: Some(strides), first }
    }
}

/// Returns the layout that stores the dimensions in this order, from major to minor.
pub(super) fn layout(order: &[usize]) -> Layout {
    Layout::MinorToMajor(order.iter().rev().map(|dim| *dim as i64).collect())
}

/// Returns random dimensions of this number: mostly small arrays, some without elements, some with one, and some large ones.
pub(super) fn random_dims(random: &mut Random, rank: usize) -> Vec<i64> {
    let most = match random.below(16) {
        0 => 1,
        1..=8 => 40,
        9..=13 => 500,
        14 => 5000,
        _ => 30_000,
    };
    let mut dims = vec![1_i64; rank];
    let mut places: Vec<usize> = (0..rank).collect();
    random.shuffle(&mut places);
    let mut left = most;
    for place in places {
        let largest = if rank > 4 { left.min(4) } else { left.min(1 + most) };
        dims[place] = 1 + random.below(largest as usize) as i64;
        left /= dims[place];
    }
    if rank > 0 && random.one_in(16) {
        dims[random.below(rank)] = 0;
    }
    dims
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strided_memory_contains_the_array() {
        let mut random = Random::new(7, 0);
        for round in 0..400 {
            let rank = round % 13;
            let dims = random_dims(&mut random, rank);
            assert!(dims.iter().product::<i64>() <= 40_000, "{dims:?}");
            let value = Value::random(&mut random, ElementType::S32, &dims);
            let strided = Strided::random(&mut random, value, true);
            if let Some(strides) = &strided.strides {
                let places = offsets(&dims, strides, strided.first);
                let read = elements_at(&strided.bytes, &places, 4);
                assert!(read == strided.value.bytes, "{dims:?} {strides:?}");
            }
        }
    }

    #[test]
    fn elements_are_reordered() {
        let value = Value { element_type: ElementType::U8, dims: vec![2, 3], bytes: vec![1, 2, 3, 4, 5, 6] };
        assert_eq!(value.ordered(&[1, 0]), [1, 4, 2, 5, 3, 6]);
        assert_eq!(value.ordered(&[0, 1]), value.bytes);
    }
}
