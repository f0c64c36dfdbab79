//! Comparison of a result with the expected one.

use super::message::{Fault, Measure};
use super::order::IDENTITY;
use super::pattern::pattern;
use super::suite::Tolerance;
use crate::array::float_format::FloatFormat;
use crate::array::{Array, element_text, number, position};
use pjrt_testing::host::ElementType;

/// The outcome of a comparison.
#[derive(Debug)]
pub(super) struct Comparison {
    /// The largest error, if the elements are floating-point or complex numbers.
    pub(super) largest: Option<Measure>,
    /// The elements that are wrong, if there are any.
    pub(super) fault: Option<Fault>,
}

/// The operations that move elements without computing with them. Their results are compared bit by bit.
const MOVES: [&str; 14] = [
    IDENTITY,
    "broadcast_in_dim",
    "concatenate",
    "constant",
    "dynamic_slice",
    "dynamic_update_slice",
    "gather",
    "optimization_barrier",
    "pad",
    "reshape",
    "reverse",
    "select",
    "slice",
    "transpose",
];

/// Returns a tolerance with which results are wrong if something else was computed, and right if the device has few bits or no
/// denormal numbers.
pub(super) fn coarse(expected: &Array) -> Tolerance {
    let name = expected.element_type.stablehlo_name();
    let elements = expected.bytes.chunks_exact(expected.element_type.byte_size().max(1));
    let parts = elements.filter_map(|element| number::reals(name, element)).flatten();
    let largest = parts.map(f64::abs).filter(|part| part.is_finite()).fold(0.0, f64::max);
    let is_float = FloatFormat::of(expected.element_type).is_some();
    let reason = if is_float {
        "two percent of the element, and of the largest one"
    } else {
        "integers and truth values are exact"
    };
    Tolerance {
        reason: reason.to_owned(),
        relative: 0.02,
        absolute: 0.02 * largest,
        any_zero: true,
        ..Tolerance::default()
    }
}

/// Compares a result of an operation or model with the expected one. `index` is the number of the result.
pub(super) fn compare(
    op: &str,
    index: usize,
    expected: &Array,
    found: &Array,
    tolerance: &Tolerance,
) -> Comparison {
    let whole = |expected: String, found: String| {
        let (wrong, total, position, largest) = (0, 0, Vec::new(), None);
        let tolerance = "the result must have the type that the program states".to_owned();
        let fault = Fault {
            result: index,
            wrong,
            total,
            position,
            expected,
            found,
            largest,
            tolerance,
            pattern: None,
        };
        Comparison { largest: None, fault: Some(fault) }
    };
    if (expected.element_type, &expected.dims) != (found.element_type, &found.dims) {
        return whole(shape(expected), shape(found));
    }
    if expected.bytes.len() != found.bytes.len() {
        return whole(format!("{} bytes", expected.bytes.len()), format!("{} bytes", found.bytes.len()));
    }
    let is_move = MOVES.contains(&op);
    let size = expected.element_type.byte_size().max(1);
    let name = expected.element_type.stablehlo_name();
    let (mut largest, mut first, mut wrong) = (None::<Measure>, None, Vec::new());
    let pairs = expected.bytes.chunks_exact(size).zip(found.bytes.chunks_exact(size));
    for (at, (wanted, given)) in pairs.enumerate() {
        let (measure, is_right) = match is_move {
            true => (None, wanted == given),
            false => judge(expected.element_type, wanted, given, tolerance),
        };
        largest = match (largest, measure) {
            (Some(largest), Some(measure)) => Some(largest.max(measure)),
            (largest, measure) => largest.or(measure),
        };
        if !is_right {
            wrong.push(at);
            first.get_or_insert((at, wanted, given));
        }
    }
    // Truth values of other bits look equal.
    let with_bits =
        |wanted: &[u8], given: &[u8]| is_move || element_text(name, wanted) == element_text(name, given);
    let fault = first.map(|(at, wanted, given)| Fault {
        result: index,
        wrong: wrong.len(),
        total: expected.bytes.len() / size,
        position: position(at, &expected.dims),
        expected: text(name, wanted, with_bits(wanted, given)),
        found: text(name, given, with_bits(wanted, given)),
        largest,
        tolerance: tolerance.reason.clone(),
        pattern: pattern(expected, found, &wrong, is_move),
    });
    Comparison { largest, fault }
}

/// Returns the type of an array as StableHLO writes it.
fn shape(array: &Array) -> String {
    let dims: String = array.dims.iter().map(|dim| format!("{dim}x")).collect();
    format!("tensor<{dims}{}>", array.element_type.stablehlo_name())
}

/// Formats an element, with its bits if these were compared.
fn text(name: &str, element: &[u8], with_bits: bool) -> String {
    let number = element_text(name, element);
    if !with_bits {
        return number;
    }
    let bits: String = element.iter().rev().map(|byte| format!("{byte:02x}")).collect();
    format!("{number} (0x{bits})")
}

/// Returns the error of an element, if it is a floating-point or complex number, and whether the tolerance permits the element.
fn judge(
    element_type: ElementType,
    wanted: &[u8],
    given: &[u8],
    tolerance: &Tolerance,
) -> (Option<Measure>, bool) {
    let name = element_type.stablehlo_name();
    let (Some(w), Some(g)) = (number::reals(name, wanted), number::reals(name, given)) else {
        let used = element_type.used_bits();
        let is_equal = wanted.iter().zip(given).all(|(w, g)| w & used == g & used);
        return (None, is_equal);
    };
    let is_same = |(w, g): (&f64, &f64)| {
        let same_zero = tolerance.any_zero || *w != 0.0 || w.is_sign_negative() == g.is_sign_negative();
        w.is_nan() && g.is_nan() || w == g && same_zero
    };
    if w.iter().zip(&g).all(is_same) {
        return (Some(Measure::default()), true);
    }
    // Equal infinities have no distance, and the other part of a complex number has its own magnitude.
    let apart = |(w, g): (&f64, &f64)| if w == g { 0.0 } else { w - g };
    let distance = w.iter().zip(&g).map(apart).fold(0.0, f64::hypot);
    let magnitude = w.iter().copied().filter(|part| part.is_finite()).fold(0.0, f64::hypot);
    // NaN where a number is expected, and the other way round, is infinitely far.
    let distance = if distance.is_nan() { f64::INFINITY } else { distance };
    let relative = match distance / magnitude {
        // The quotient of different numbers is not zero, although it may be rounded to zero.
        0.0 if distance > 0.0 => f64::MIN_POSITIVE,
        quotient if magnitude > 0.0 => quotient,
        _ => f64::INFINITY,
    };
    let ulps = if distance == 0.0 { 0.0 } else { steps(element_type, (wanted, given), (&w, &g), relative) };
    let share = |error: f64, bound: f64| if error == 0.0 { f64::INFINITY } else { error / bound };
    // A zero of the wrong sign has no distance, and no tolerance permits it.
    let of_tolerance = share(ulps, tolerance.ulps as f64)
        .min(share(distance, tolerance.absolute + tolerance.relative * magnitude));
    (Some(Measure { ulps, relative, of_tolerance }), of_tolerance <= 1.0)
}

/// Returns the distance of two different elements in units of the last place.
fn steps(element_type: ElementType, bytes: (&[u8], &[u8]), parts: (&[f64], &[f64]), relative: f64) -> f64 {
    let all = || parts.0.iter().chain(parts.1);
    let format = FloatFormat::of(element_type).filter(|_| parts.0.len() == 1);
    match format {
        _ if all().any(|part| part.is_nan()) => f64::INFINITY,
        Some(format) => {
            // The bits of floating-point numbers are ordered as the numbers are, apart from their signs.
            let ordered = |bytes: &[u8]| {
                let bits = format.split(bytes).first().copied().unwrap_or_default();
                let magnitude = (bits & !format.sign()).cast_signed();
                i128::from(if bits & format.sign() == 0 { magnitude } else { -magnitude })
            };
            (ordered(bytes.0) - ordered(bytes.1)).unsigned_abs() as f64
        }
        // A complex number's modulus has the precision of its parts.
        None if element_type.alignment() == 8 => relative / f64::EPSILON,
        None => relative / f64::from(f32::EPSILON),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32s(values: &[f32]) -> Array {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Array { element_type: ElementType::F32, dims: vec![values.len() as i64], bytes }
    }

    fn within(ulps: u64, absolute: f64, any_zero: bool) -> Tolerance {
        Tolerance { reason: "a reason".into(), ulps, relative: 0.0, absolute, any_zero }
    }

    fn is_right(expected: f32, found: f32, tolerance: &Tolerance) -> bool {
        compare("add", 0, &f32s(&[expected]), &f32s(&[found]), tolerance).fault.is_none()
    }

    #[test]
    fn exact_results_have_the_sign_of_zero_and_any_nan() {
        let exact = within(0, 0.0, false);
        assert!(is_right(f32::NAN, -f32::NAN, &exact) && is_right(f32::INFINITY, f32::INFINITY, &exact));
        assert!(!is_right(0.0, -0.0, &exact) && is_right(0.0, -0.0, &within(0, 0.0, true)));
        assert!(!is_right(1.0, 1.0_f32.next_up(), &exact));
        assert!(!is_right(1.0, f32::NAN, &within(1 << 40, 1e300, true)));
        assert!(!is_right(f32::NAN, 1.0, &within(1 << 40, 1e300, true)));
        assert!(!is_right(f32::INFINITY, -f32::INFINITY, &within(4, 1e30, true)));
    }

    #[test]
    fn distances_are_counted_in_steps_across_zero_and_up_to_infinity() {
        let two = within(2, 0.0, true);
        let tiny = f32::from_bits(1);
        assert!(is_right(tiny, -tiny, &two) && !is_right(tiny, f32::from_bits(4), &two));
        assert!(is_right(f32::MAX, f32::INFINITY, &two) && !is_right(1.0, 1.0 + 3.0 * f32::EPSILON, &two));
        assert!(is_right(0.0, 1e-7, &within(0, 1e-6, true)) && !is_right(0.0, 1e-5, &within(0, 1e-6, true)));
    }

    #[test]
    fn the_first_wrong_element_and_the_largest_error_are_named() {
        let mut expected = f32s(&[1.0, 2.0, 3.0, 4.0]);
        let mut found = f32s(&[1.0, 2.0, 3.5, 5.0]);
        (expected.dims, found.dims) = (vec![2, 2], vec![2, 2]);
        let fault = compare("add", 1, &expected, &found, &within(1, 0.0, true)).fault.unwrap();
        assert_eq!((fault.result, fault.wrong, fault.total, &fault.position[..]), (1, 2, 4, &[1, 0][..]));
        assert_eq!((fault.expected.as_str(), fault.found.as_str()), ("3", "3.5"));
        assert_eq!(fault.largest.unwrap().relative, 0.25);
        found.dims = vec![4];
        assert_eq!(
            compare("add", 0, &expected, &found, &within(1, 0.0, true)).fault.unwrap().found,
            "tensor<4xf32>"
        );
    }

    #[test]
    fn moved_elements_are_compared_and_shown_as_bits() {
        let exact = within(0, 0.0, false);
        let nans = [f32::from_bits(0x7fc0_0001), f32::from_bits(0x7fc0_0002)].map(|nan| f32s(&[nan]));
        let fault = compare("transpose", 0, &nans[0], &nans[1], &exact).fault.unwrap();
        assert_eq!((fault.expected.as_str(), fault.largest), ("NaN (0x7fc00001)", None));
        assert!(compare("add", 0, &nans[0], &nans[1], &exact).fault.is_none());
    }

    #[test]
    fn complex_numbers_differ_by_their_modulus_and_integers_not_at_all() {
        let complex = |re: f32, im: f32| Array {
            element_type: ElementType::by_stablehlo_name("complex<f32>").unwrap(),
            dims: vec![],
            bytes: [re.to_le_bytes(), im.to_le_bytes()].concat(),
        };
        let right = |a: &Array, b: &Array| compare("add", 0, a, b, &within(4, 0.0, true)).fault.is_none();
        assert!(right(&complex(1.0, 0.0), &complex(1.0, f32::EPSILON)));
        assert!(!right(&complex(1.0, 0.0), &complex(1.0, 1e-4)));
        let infinite = complex(f32::INFINITY, 1.0);
        assert!(right(&infinite, &complex(f32::INFINITY, 1.0 + f32::EPSILON)));
        assert!(!right(&infinite, &complex(f32::INFINITY, 2.0)) && !right(&infinite, &complex(1e38, 1.0)));
        let wide = |im: f64| Array {
            element_type: ElementType::by_stablehlo_name("complex<f64>").unwrap(),
            dims: vec![],
            bytes: [1e300_f64.to_le_bytes(), im.to_le_bytes()].concat(),
        };
        assert!(right(&wide(0.0), &wide(1e-300)), "the quotient is rounded to zero");
        let integer =
            |n: i32| Array { element_type: ElementType::S32, dims: vec![], bytes: n.to_le_bytes().into() };
        assert!(right(&integer(3), &integer(3)) && !right(&integer(3), &integer(4)));
        let element_type = ElementType::by_stablehlo_name("i4").unwrap();
        let small = |byte: u8| Array { element_type, dims: vec![], bytes: vec![byte] };
        assert!(right(&small(0xF8), &small(0x08)) && !right(&small(0xF8), &small(0x07)));
    }
}
