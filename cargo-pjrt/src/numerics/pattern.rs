//! The relation of a wrong result to the expected one.

use crate::array::strided::{displaced, order_of};
use crate::array::{Array, element_text, number, position};

/// The fewest different elements from which a relation is seen.
const LEAST: usize = 3;

/// Describes how a wrong result follows from the expected one, if a simple relation explains all its wrong elements. `wrong` are
/// the numbers of the wrong elements, in row-major order. `is_move` says that the operation only moves elements: the elements of
/// others may be equal in several rows.
pub(super) fn pattern(expected: &Array, found: &Array, wrong: &[usize], is_move: bool) -> Option<String> {
    let displaced = || displaced(&elements(expected), &elements(found), wrong).filter(|_| is_move);
    order(expected, found)
        .or_else(|| splat(expected, found))
        .or_else(|| values(expected, found, wrong))
        .or_else(displaced)
        .or_else(|| place(&expected.dims, wrong))
}

fn elements(array: &Array) -> Vec<&[u8]> {
    array.bytes.chunks_exact(array.element_type.byte_size().max(1)).collect()
}

/// Recognizes the expected elements in the order of other dimensions, or in the opposite order.
fn order(expected: &Array, found: &Array) -> Option<String> {
    let (expected_elements, found_elements) = (elements(expected), elements(found));
    let is_reversed = found_elements.iter().rev().eq(&expected_elements);
    if expected_elements.len() >= LEAST && is_reversed {
        return Some("the elements are in the opposite order".to_owned());
    }
    let (order, is_inverse) = order_of(&expected.dims, &expected_elements, &found_elements)?;
    let of = if is_inverse { "the inverse of the order" } else { "the order" };
    Some(format!("the elements are the expected ones in {of} of the dimensions {order:?}"))
}

/// Recognizes an array of which each element is the first of the expected ones.
fn splat(expected: &Array, found: &Array) -> Option<String> {
    let (expected, found) = (elements(expected), elements(found));
    let first = expected.first().filter(|_| expected.len() > LEAST)?;
    found.iter().all(|element| element == first).then(|| {
        "each element is the first one of the expected array: the plugin probably takes it for one repeated value".to_owned()
    })
}

/// Recognizes wrong numbers that are the expected ones with their highest bit as the sign, or with the sign as the highest bit.
fn signedness(wanted: &[f64], given: &[f64]) -> Option<String> {
    const BITS: [i32; 4] = [8, 16, 32, 64];
    let is_signed = |unsigned: &[f64], signed: &[f64], bits: i32| {
        let modulus = 2_f64.powi(bits);
        let is_one = |(u, s): (&f64, &f64)| *u >= modulus / 2.0 && *s < 0.0 && near(s + modulus, *u);
        unsigned.iter().zip(signed).all(is_one)
    };
    let text = |bits: i32, which, (from, to)| {
        format!(
            "each wrong number is 2^{bits} too {which}: the plugin probably takes {from} numbers of {bits} bits for {to} ones"
        )
    };
    BITS.into_iter().find_map(|bits| match () {
        () if is_signed(wanted, given, bits) => Some(text(bits, "small", ("unsigned", "signed"))),
        () if is_signed(given, wanted, bits) => Some(text(bits, "large", ("signed", "unsigned"))),
        () => None,
    })
}

/// Recognizes wrong elements that are zero, the negative or the reciprocal of the expected ones, or numbers with the wrong sign.
fn values(expected: &Array, found: &Array, wrong: &[usize]) -> Option<String> {
    let numbers = |array: &Array| -> Option<Vec<f64>> {
        let name = array.element_type.stablehlo_name();
        let one = |at: &usize| -> Option<f64> {
            let element = *elements(array).get(*at)?;
            match number::reals(name, element).as_deref() {
                _ if name == "i1" => None,
                Some([number]) => Some(*number),
                _ => element_text(name, element).parse().ok(),
            }
        };
        wrong.iter().map(one).collect()
    };
    let (wanted, given) = (numbers(expected)?, numbers(found)?);
    let all = |is_right: fn((&f64, &f64)) -> bool| wanted.iter().zip(&given).all(is_right);
    if let Some(text) = signedness(&wanted, &given).filter(|_| !wrong.is_empty()) {
        return Some(text);
    }
    if wrong.len() < LEAST {
        return None;
    }
    let text = match () {
        () if given.iter().all(|given| *given == 0.0) => "all wrong elements are zero",
        () if all(|(wanted, given)| near(*given, -wanted)) => {
            "each wrong element is the negative of the expected one, as if operands changed places"
        }
        () if all(|(wanted, given)| near(given * wanted, 1.0)) => {
            "each wrong element is the reciprocal of the expected one, as if operands changed places"
        }
        () => return None,
    };
    Some(text.to_owned())
}

fn near(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 0.01 * expected.abs()
}

/// Recognizes wrong elements that are all those from an index of a dimension on, or those of its first indices.
fn place(dims: &[i64], wrong: &[usize]) -> Option<String> {
    let total = usize::try_from(dims.iter().product::<i64>()).ok()?;
    if wrong.is_empty() || wrong.len() == total {
        return None;
    }
    let positions: Vec<Vec<usize>> = wrong.iter().map(|at| position(*at, dims)).collect();
    dims.iter().enumerate().find_map(|(number, dim)| {
        let size = usize::try_from(*dim).ok()?;
        let indices = || positions.iter().map(|position| position[number]);
        let (first, last) = (indices().min()?, indices().max()?);
        let is_whole = wrong.len() == total / size * (last - first + 1);
        match (first, last) {
            _ if !is_whole => None,
            (0, last) => {
                Some(format!("the wrong elements are those up to index {last} of dimension {number}"))
            }
            (first, last) if last + 1 == size => {
                Some(format!("the wrong elements are those from index {first} of dimension {number} on"))
            }
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pjrt_testing::host::ElementType;

    fn text(expected: &[f32], found: &[f32]) -> String {
        let array = |values: &[f32]| Array {
            element_type: ElementType::F32,
            dims: vec![2, 3],
            bytes: values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        };
        let wrong: Vec<usize> = (0..expected.len()).filter(|at| expected[*at] != found[*at]).collect();
        pattern(&array(expected), &array(found), &wrong, true).unwrap_or_default()
    }

    #[test]
    fn numbers_whose_highest_bit_became_the_sign_are_named() {
        let expected = [4_294_967_296.0 - 256.0, 2_147_483_648.0, 3.0, 7.0, 9.0, 11.0];
        let text_of = |found: &[f32]| text(&expected, found);
        let signed = text_of(&[-256.0, -2_147_483_648.0, 3.0, 7.0, 9.0, 11.0]);
        assert!(
            signed.contains("2^32 too small") && signed.contains("unsigned numbers of 32 bits for signed")
        );
        let unsigned = text(&[-1.0, -128.0, 3.0, 7.0, 9.0, 11.0], &[255.0, 128.0, 3.0, 7.0, 9.0, 11.0]);
        assert!(unsigned.contains("2^8 too large"), "{unsigned}");
        let other = text(&[200.0, 2.0, 3.0, 7.0, 9.0, 11.0], &[-40.0, 2.0, 3.0, 7.0, 9.0, 11.0]);
        assert!(!other.contains("too small"), "{other}");
    }

    #[test]
    fn simple_relations_are_named() {
        let expected = [1.0, 2.0, 4.0, -8.0, 16.0, 0.5];
        let cases: [([f32; 6], &str); 10] = [
            ([1.0; 6], "the first one of the expected array"),
            ([-8.0, 16.0, 0.5, -8.0, 16.0, 0.5], "belongs 3 places further on"),
            ([0.5, 16.0, -8.0, 4.0, 2.0, 1.0], "opposite order"),
            ([1.0, -8.0, 2.0, 16.0, 4.0, 0.5], "in the order of the dimensions [1, 0]"),
            ([1.0, 4.0, 16.0, 2.0, -8.0, 0.5], "in the inverse of the order of the dimensions [1, 0]"),
            ([-1.0, -2.0, -4.0, 8.0, -16.0, -0.5], "the negative"),
            ([1.0, 0.5, 0.25, -0.125, 0.0625, 2.0], "the reciprocal"),
            ([1.0, 2.0, 4.0, 0.0, 0.0, 0.0], "are zero"),
            ([1.0, 2.0, 4.5, -8.0, 16.0, 0.75], "from index 2 of dimension 1 on"),
            ([1.0, 2.5, 4.0, -8.0, 16.0, 0.75], ""),
        ];
        for (found, part) in cases {
            let text = text(&expected, &found);
            assert!(text.contains(part) && (part.is_empty() == text.is_empty()), "{found:?}: {text}");
        }
    }
}
