//! The first programs: they return their arguments, or spread a scalar over an array, so that a device that cannot do this is
//! told so before anything else.

use std::ops::Range;

use pjrt_stablehlo::build::Builder as Body;
use pjrt_stablehlo::ir::{self, Module, TensorType};

use super::elements::COLUMNS;
use super::options::Selection;
use super::order::{BROADCAST, IDENTITY};
use super::suite::{Builder, Suite, Tolerance};
use crate::array::{Array, number};
use pjrt_testing::host::ElementType;

/// The oldest version of VHLO, which every plugin reads.
const VERSION: pjrt_stablehlo::versions::Version = pjrt_stablehlo::versions::MINIMUM_VERSION;

/// The shape of the arguments and their number, by name. Two large arrays show whether an array has memory for all its elements, and
/// matrices whose rows and columns are a little more than those of tiles, whether the tiles of an array overlap.
const SHAPES: [(&str, &[i64], usize); 8] = [
    ("scalar", &[], 1),
    ("vector", &[7], 1),
    ("cube", &[2, 3, 5], 1),
    ("two of 9 rows", &[2, 9, 4], 1),
    ("two of 33 rows", &[2, 33, 3], 1),
    ("two of 130 columns", &[2, 2, 130], 1),
    ("empty", &[0], 1),
    ("two of 1000", &[1000], 2),
];

/// The sizes of arrays over which a scalar is spread, by name: one of each rank.
const SPREADS: [(&str, &[i64]); 4] = [
    ("scalar_to_rank_1", &[7]),
    ("scalar_to_rank_2", &[3, 5]),
    ("scalar_to_rank_3", &[2, 3, 5]),
    ("scalar_to_rank_4", &[2, 1, 3, 5]),
];

/// Returns the suites that the selection names, or those of this program: the first programs, and those in its data.
///
/// # Errors
/// Returns an error if a suite cannot be read, or if a program cannot be written.
pub(super) fn suites(selection: &Selection) -> Result<Vec<Suite>, String> {
    let mut suites = Suite::selected(selection)?;
    if selection.suite.is_empty() {
        suites.insert(0, first()?);
    }
    Ok(suites)
}

/// Returns the suite of programs that return their arguments, or spread them.
fn first() -> Result<Suite, String> {
    let tolerance = Tolerance {
        reason: "no tolerance: the program computes nothing".to_owned(),
        ulps: 0,
        relative: 0.0,
        absolute: 0.0,
        any_zero: false,
    };
    let mut builder = Builder::default();
    for (element, _) in COLUMNS {
        let element_type = ElementType::by_stablehlo_name(element)
            .ok_or_else(|| format!("there is no element type {element}"))?;
        for (name, dims, arguments) in SHAPES {
            let count = dims.iter().product::<i64>() as usize;
            let array = |at| {
                let bytes = elements_of(element_type, at * count..(at + 1) * count);
                Array { element_type, dims: dims.to_vec(), bytes }
            };
            let arrays: Vec<Array> = (0..arguments).map(array).collect();
            let program = program(element, &vec![dims; arguments], None)?;
            builder.add_named((IDENTITY, name), &program, &arrays, &arrays, &tolerance);
        }
        for (name, dims) in SPREADS {
            let count = dims.iter().product::<i64>() as usize;
            let scalar = Array { element_type, dims: Vec::new(), bytes: elements_of(element_type, 0..1) };
            let spread = Array { element_type, dims: dims.to_vec(), bytes: scalar.bytes.repeat(count) };
            let program = program(element, &[&[]], Some(dims))?;
            builder.add_named((BROADCAST, name), &program, &[scalar], &[spread], &tolerance);
        }
    }
    Ok(builder.finish("operations"))
}

/// Returns the bytes of the elements of these numbers, which are all different, as far as the type permits.
fn elements_of(element_type: ElementType, numbers: Range<usize>) -> Vec<u8> {
    let (name, size) = (element_type.stablehlo_name(), element_type.byte_size());
    let mut bytes = Vec::with_capacity(numbers.len() * size);
    for at in numbers {
        let mut element = vec![0; size];
        let integer = if name == "i1" { u64::from(at % 3 == 0) } else { at as u64 + 1 };
        let part_size = if name.starts_with("complex") { size / 2 } else { size };
        let mut parts = element.chunks_exact_mut(part_size).zip([0.0, 0.5]);
        let is_real = parts.all(|(part, more)| number::set_real(name, part, integer as f64 + more));
        if !is_real {
            element.iter_mut().zip(integer.to_le_bytes()).for_each(|(byte, value)| *byte = value);
        }
        bytes.extend(element);
    }
    bytes
}

/// Returns a program that returns its arguments, or spreads them over arrays of these sizes, as a portable artifact.
fn program(element: &str, arguments: &[&[i64]], spread: Option<&[i64]>) -> Result<Vec<u8>, String> {
    let element_type = ir::ElementType::from_name(element)
        .ok_or_else(|| format!("StableHLO has no element type {element}"))?;
    let mut body = Body::new(arguments.iter().map(|dims| TensorType::new(element_type, *dims).into()));
    let mut results: Vec<_> = (0..arguments.len()).map(|index| body.argument(index)).collect();
    if let Some(dims) = spread {
        results.iter_mut().for_each(|result| *result = body.broadcast_scalar(*result, dims));
    }
    let function = body.finish("main", &results).map_err(|error| error.to_string())?;
    let mut module = Module::new();
    module.add_function(function).map_err(|function| format!("there are two functions {}", function.name))?;
    pjrt_stablehlo::write_portable_artifact(&module, VERSION).map_err(|error| error.to_string())
}
