//! The difference between two arrays, such as a plugin's and the recorded one.

use crate::array::{element_text, number, position};
use crate::session::log::Shape;
use pjrt_testing::host::ElementType;

/// Formats a shape as a StableHLO type.
pub(crate) fn in_words(shape: &Shape) -> String {
    let dims: String = shape.dims.iter().map(|dim| format!("{dim}x")).collect();
    format!("tensor<{dims}{}>", shape.element_type)
}

/// The difference between two arrays.
#[derive(Debug, PartialEq)]
pub(crate) enum Difference {
    /// The bits are the same.
    None,
    /// No elements differ by more than the tolerance.
    WithinTolerance,
    /// Elements differ by more than the tolerance, or the shapes differ. Describes the difference.
    Beyond(String),
}

/// Describes how an array differs from another one. `names` contains the origins of the two, such as
/// `["in the recording", "here"]`.
pub(crate) fn difference(
    there: (&Shape, &[u8]),
    here: (&Shape, &[u8]),
    tolerance: f64,
    names: [&str; 2],
) -> Difference {
    let [name_there, name_here] = names;
    if there.0 != here.0 {
        return Difference::Beyond(format!("it is {} {name_here}", in_words(here.0)));
    }
    if there.1.len() != here.1.len() {
        let (there, here) = (there.1.len(), here.1.len());
        return Difference::Beyond(format!("it has {here} bytes {name_here}, but {there} {name_there}"));
    }
    let name = &there.0.element_type;
    let element_type = ElementType::by_stablehlo_name(name);
    let used = element_type.map_or(0xFF, ElementType::used_bits);
    let same =
        |there: &[u8], here: &[u8]| there.iter().zip(here).all(|(there, here)| (there ^ here) & used == 0);
    if same(there.1, here.1) {
        return Difference::None;
    }
    let size = element_type.map_or(1, ElementType::byte_size).max(1);
    let (len, dims) = (there.1.len(), &there.0.dims);
    let (mut first, mut count, mut largest) = (None, 0, 0.0_f64);
    let pairs = there.1.chunks_exact(size).zip(here.1.chunks_exact(size));
    for (index, (there, here)) in pairs.enumerate().filter(|(_, (there, here))| !same(there, here)) {
        let distance = distance(name, there, here);
        if distance > tolerance {
            count += 1;
            largest = largest.max(distance);
            first.get_or_insert((index, there, here));
        }
    }
    let Some((index, there, here)) = first else { return Difference::WithinTolerance };
    let shown = |element: &[u8]| element_text(name, element);
    let relative = if largest.is_finite() {
        format!("; the largest difference, relative to the larger number or to 1, is {largest:e}")
    } else {
        String::new()
    };
    Difference::Beyond(format!(
        "{count} of {} elements differ, the first at {:?}: {} {name_there}, {} {name_here}{relative}",
        len / size,
        position(index, dims),
        shown(there),
        shown(here),
    ))
}

/// Returns the difference of two unequal elements, relative to the larger one or to 1, whichever is larger.
/// Returns infinity if they are not finite numbers.
fn distance(type_name: &str, there: &[u8], here: &[u8]) -> f64 {
    let (Some(there), Some(here)) = (number::reals(type_name, there), number::reals(type_name, here)) else {
        return f64::INFINITY;
    };
    let apart = |(there, here): (&f64, &f64)| {
        if there == here || there.is_nan() && here.is_nan() {
            return 0.0;
        }
        let apart = (there - here).abs() / there.abs().max(here.abs()).max(1.0);
        if apart.is_nan() { f64::INFINITY } else { apart }
    };
    there.iter().zip(&here).map(apart).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 2] = ["in the recording", "here"];

    fn f32s(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    #[test]
    fn arrays_differ_by_the_bits_or_beyond_the_tolerance() {
        let shape = Shape { element_type: "f32".into(), dims: vec![2, 2] };
        let compare = |there: &[f32], here: &[f32], tolerance| {
            difference((&shape, &f32s(there)), (&shape, &f32s(here)), tolerance, NAMES)
        };
        let recorded = [1.0, 2.0, f32::NAN, 1000.0];
        assert_eq!(compare(&recorded, &recorded, 0.0), Difference::None);
        let close = [1.0, 2.0, -f32::NAN, 1000.1];
        assert_eq!(compare(&recorded, &close, 1e-3), Difference::WithinTolerance);
        let Difference::Beyond(how) = compare(&recorded, &close, 1e-5) else { panic!("it is too far") };
        assert!(how.ends_with("e-5") && how.contains("relative to the larger number or to 1"), "{how}");
        assert!(how.contains("1 of 4 elements") && how.contains("[1, 1]: 1000 in the recording"), "{how}");
        // A zero of the other sign, and infinity.
        assert_eq!(compare(&[0.0; 4], &[-0.0; 4], 0.0), Difference::WithinTolerance);
        assert!(matches!(compare(&[1.0; 4], &[f32::INFINITY; 4], 10.0), Difference::Beyond(_)));
    }

    #[test]
    fn bits_that_belong_to_no_element_may_differ() {
        let compare = |element_type: &str, there: u8, here: u8| {
            let shape = Shape { element_type: element_type.into(), dims: vec![1] };
            difference((&shape, &[there]), (&shape, &[here]), 0.0, NAMES)
        };
        assert_eq!(compare("i2", 0xFE, 0x02), Difference::None);
        assert_eq!(compare("i4", 0xF8, 0x08), Difference::None);
        assert!(matches!(compare("i4", 0xF8, 0xF9), Difference::Beyond(_)));
        assert!(matches!(compare("i8", 0xFE, 0x02), Difference::Beyond(_)));
    }

    #[test]
    fn integers_and_shapes_must_be_the_same() {
        let shape = Shape { element_type: "i32".into(), dims: vec![1] };
        let other = Shape { element_type: "i32".into(), dims: vec![] };
        assert!(matches!(
            difference((&shape, &[1, 0, 0, 0]), (&shape, &[2, 0, 0, 0]), 1.0, NAMES),
            Difference::Beyond(_)
        ));
        assert!(matches!(
            difference((&shape, &[1, 0, 0, 0]), (&other, &[1, 0, 0, 0]), 1.0, NAMES),
            Difference::Beyond(_)
        ));
    }
}
