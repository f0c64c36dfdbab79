//! The arguments of a program, as the command line describes them.

use std::path::Path;

use crate::array::{Array, npy, number};
use pjrt_testing::host::ElementType;

/// Returns the size of an array in bytes.
fn size_of((element_type, dims): &(ElementType, Vec<i64>)) -> Result<usize, String> {
    let size = dims.iter().try_fold(element_type.byte_size(), |size, dim| {
        usize::try_from(*dim).ok().and_then(|dim| size.checked_mul(dim))
    });
    size.ok_or_else(|| format!("the array {element_type}{dims:?} is too large"))
}

/// Checks one value of `--args` on the command line.
pub(super) fn argument(word: &str) -> Result<String, String> {
    if fill_by_name(word).is_some() || word.ends_with(".npy") || Path::new(word).exists() {
        return Ok(word.to_owned());
    }
    Err("neither an existing file nor one of zeros, ones, random".to_owned())
}

/// Returns the arrays for the parameters that the command line describes.
pub(super) fn arguments(
    words: &[String],
    parameters: &[(ElementType, Vec<i64>)],
) -> Result<Vec<Array>, String> {
    let all = match words {
        [word] => fill_by_name(word),
        _ => None,
    };
    if let Some(fill) = all {
        let array = |(index, parameter): (usize, &(ElementType, Vec<i64>))| {
            let mut bytes = vec![0; size_of(parameter)?];
            fill(parameter.0, index as u64, &mut bytes)
                .map_err(|why| format!("parameter {index}: {why}; pass .npy files instead"))?;
            Ok(Array { element_type: parameter.0, dims: parameter.1.clone(), bytes })
        };
        return parameters.iter().enumerate().map(array).collect();
    }
    if let Some(word) = words.iter().find(|word| fill_by_name(word).is_some()) {
        return Err(format!(
            "{word:?} applies to all parameters and must be the only argument; otherwise, pass one .npy file per parameter"
        ));
    }
    if words.len() != parameters.len() {
        return Err(format!(
            "the program has {} parameters; found {} file{}",
            parameters.len(),
            words.len(),
            if words.len() == 1 { "" } else { "s" }
        ));
    }
    let array = |(word, parameter): (&String, &(ElementType, Vec<i64>))| {
        let array = npy::read(Path::new(word), parameter.0).map_err(|error| format!("{word}: {error}"))?;
        matching(array, parameter).map_err(|error| format!("{word}: {error}"))
    };
    words.iter().zip(parameters).map(array).collect()
}

/// Reads the arguments from a folder of `.npy` files. If there is no such folder, all elements are zero.
pub(crate) fn replayed_arguments(
    from: &Path,
    parameters: &[(ElementType, Vec<i64>)],
) -> Result<Vec<Array>, String> {
    if !from.exists() {
        return arguments(&["zeros".to_owned()], parameters);
    }
    let array = |(index, parameter): (usize, &(ElementType, Vec<i64>))| {
        let path = from.join(format!("{index}.npy"));
        let array = npy::read(&path, parameter.0).and_then(|array| matching(array, parameter));
        array.map_err(|error| format!("{}: {error}", path.display()))
    };
    parameters.iter().enumerate().map(array).collect()
}

/// Checks that an array has the type and the dimensions of a parameter.
fn matching(array: Array, parameter: &(ElementType, Vec<i64>)) -> Result<Array, String> {
    if (array.element_type, &array.dims) == (parameter.0, &parameter.1) {
        return Ok(array);
    }
    let (element_type, dims) = parameter;
    Err(format!(
        "the array has type {}{:?}, but the parameter has type {element_type}{dims:?}",
        array.element_type, array.dims
    ))
}

/// A function that fills an array; its second argument, the seed, is the parameter's number.
type Fill = fn(ElementType, u64, &mut [u8]) -> Result<(), String>;

/// Returns the function for `zeros`, `ones` or `random`.
fn fill_by_name(word: &str) -> Option<Fill> {
    match word {
        "zeros" => Some(|_, _, _| Ok(())),
        "ones" => Some(|element_type, _, bytes| fill_with(element_type, bytes, || 1.0)),
        "random" => Some(|element_type, seed, bytes| {
            let mut state = seed;
            fill_with(element_type, bytes, || uniform(&mut state))
        }),
        _ => None,
    }
}

/// Returns the next number between -1 and 1 of a SplitMix64 sequence. Equal seeds produce equal sequences.
fn uniform(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut bits = *state;
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^= bits >> 31;
    (bits >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

/// Fills an array with numbers. Integers are scaled to the range from -8 to 8.
fn fill_with(
    element_type: ElementType,
    bytes: &mut [u8],
    mut next: impl FnMut() -> f64,
) -> Result<(), String> {
    let name = element_type.stablehlo_name();
    let integer = |number: f64| if number == 1.0 { 1 } else { (number * 8.0) as i64 };
    let part = match name {
        "complex<f32>" => 4,
        "complex<f64>" => 8,
        _ => element_type.byte_size().max(1),
    };
    for element in bytes.chunks_exact_mut(part) {
        let number = next();
        if number::set_real(name, element, number) {
            continue;
        }
        match name {
            "i1" => element[0] = (integer(number) & 1) as u8,
            _ if name.starts_with("ui") => {
                element.copy_from_slice(&integer(number).unsigned_abs().to_le_bytes()[..part]);
            }
            _ if name.starts_with('i') => element.copy_from_slice(&integer(number).to_le_bytes()[..part]),
            _ => return Err(format!("cannot generate numbers of type {name}")),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_arguments_are_the_same_every_time_and_differ_between_parameters() {
        let parameters = vec![(ElementType::F32, vec![8]), (ElementType::F32, vec![8])];
        let once = arguments(&["random".into()], &parameters).unwrap();
        assert_eq!(once, arguments(&["random".into()], &parameters).unwrap());
        assert_ne!(once[0].bytes, once[1].bytes);
        let first = f32::from_le_bytes(*once[0].bytes.first_chunk().unwrap());
        assert!((-1.0..1.0).contains(&first) && first != 0.0, "{first}");
    }

    #[test]
    fn arguments_that_do_not_fit_are_refused_by_name() {
        let parameters = vec![(ElementType::F32, vec![8])];
        let error = arguments(&["a.npy".into(), "b.npy".into()], &parameters).unwrap_err();
        assert!(error.contains("1 parameters"), "{error}");
        let f8 = vec![(ElementType::by_stablehlo_name("f8E5M2").unwrap(), vec![1])];
        assert!(arguments(&["random".into()], &f8).unwrap_err().contains("f8E5M2"));
    }
}
