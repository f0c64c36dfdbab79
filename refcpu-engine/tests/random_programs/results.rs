//! Comparison of arrays.

use pjrt_stablehlo::Bytes;
use pjrt_stablehlo::ir::{ElementType, Literal, LiteralData, TensorType};
use refcpu_engine::storage::Array;

/// The difference that is permitted between numbers.
#[derive(Clone, Copy)]
pub(crate) struct Tolerance {
    /// Units in the last place.
    pub(crate) units: f64,
    /// `true` if zeros of both signs are equal.
    pub(crate) any_zero: bool,
}

/// Returns a description of the first element in which two arrays differ.
pub(crate) fn difference(expected: &Array, found: &Array, tolerance: Tolerance) -> Option<String> {
    if (expected.dtype(), expected.dims()) != (found.dtype(), found.dims()) {
        return Some(format!("the types differ: {expected:?}, {found:?}"));
    }
    if expected.bytes() == found.bytes() {
        return None;
    }
    let element = ElementType::from_name(expected.dtype().mlir_name()).unwrap();
    let (expected, found) = (numbers(expected, element), numbers(found, element));
    let place = (0..expected.len()).find(|&at| !are_close(element, expected[at], found[at], tolerance))?;
    Some(format!("element {place} of {element}: expected {:?}, found {:?}", expected[place], found[place]))
}

/// Returns the parts of the elements.
fn numbers(array: &Array, element: ElementType) -> Vec<[f64; 2]> {
    let dims: Vec<i64> = array.dims().iter().map(|&size| size as i64).collect();
    let data = LiteralData::Dense(Bytes::from(array.bytes().unwrap().to_vec()));
    let literal = Literal::new(TensorType::new(element, dims), data).unwrap();
    if let Some(complex) = literal.to_complex_f64s(usize::MAX) {
        return complex;
    }
    // Integers are compared as bits, which a float may not represent.
    let integers = || array.bytes().unwrap().chunks_exact(element.byte_width()).map(exact).collect();
    let reals = literal.to_f64s(usize::MAX).map(|all| all.into_iter().map(|real| [real, 0.0]).collect());
    reals.unwrap_or_else(integers)
}

/// Returns the two halves of an integer's bits.
fn exact(bytes: &[u8]) -> [f64; 2] {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(wide);
    [(bits >> 32) as f64, (bits & 0xffff_ffff) as f64]
}

fn are_close(element: ElementType, expected: [f64; 2], found: [f64; 2], tolerance: Tolerance) -> bool {
    let size = expected[0].abs().max(expected[1].abs());
    let part = element.complex_part().unwrap_or(element);
    let is_close = |expected: f64, found: f64| {
        // The number after the largest one is infinite.
        let found = if found.is_infinite() && expected.is_finite() {
            limit(part).copysign(found).min(f64::MAX).max(-f64::MAX)
        } else {
            found
        };
        let is_same_zero = tolerance.any_zero || expected.is_sign_negative() == found.is_sign_negative();
        if expected == 0.0 && found == 0.0 {
            return is_same_zero || tolerance.units > 0.0 && element.is_complex();
        }
        let is_equal = expected == found || expected.is_nan() && found.is_nan();
        is_equal || (expected - found).abs() <= tolerance.units * unit(part, size)
    };
    is_close(expected[0], found[0]) && is_close(expected[1], found[1])
}

/// Returns the least power of two that is more than all numbers of a type.
fn limit(element: ElementType) -> f64 {
    if element.is_float() { 2f64.powi(1 << (element.exponent_bits() - 1).min(10)) } else { f64::INFINITY }
}

/// Returns the distance of a number from the next one of its type.
fn unit(element: ElementType, size: f64) -> f64 {
    if !element.is_float() || !size.is_finite() {
        return 0.0;
    }
    let least = 2 - (1 << (element.exponent_bits() - 1));
    let exponent = if size == 0.0 { least } else { (size.log2().floor() as i32).max(least) };
    2f64.powi(exponent - element.mantissa_bits() as i32)
}
