//! The file format of suites: a ZIP archive with an index and one blob of programs and arrays.

use std::fs;
use std::io::{Cursor, Read, Write};
use std::path::Path;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use zip::write::SimpleFileOptions;
use zip::{DateTime, ZipArchive, ZipWriter};

use super::options::Selection;
use crate::array::Array;
use pjrt_testing::host::ElementType;

/// The name of the suite of models, whose programs depend on those of the others.
pub(super) const MODELS: &str = "models";

/// The suites of this program.
const SUITES: [(&str, &[u8]); 3] = [
    ("operations", include_bytes!("../../data/numerics/ops.zip")),
    ("operations", include_bytes!("../../data/numerics/dimensions.zip")),
    (MODELS, include_bytes!("../../data/numerics/models.zip")),
];

/// The version of the format.
const VERSION: u32 = 1;
const INDEX: &str = "index.json";
const DATA: &str = "data.bin";
/// The maximum size of each member of an archive. The size that the archive states need not be true.
const MAX_MEMBER: u64 = 1 << 30;

/// A suite: cases, and the blob that contains their programs and arrays.
pub(super) struct Suite {
    pub(super) name: String,
    index: Index,
    data: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct Index {
    version: u32,
    tolerances: Vec<Tolerance>,
    cases: Vec<Case>,
}

/// A program with inputs and expected results.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Case {
    /// The operation or the model.
    pub(super) op: String,
    /// The element type, as StableHLO names it.
    pub(super) element: String,
    /// The name of the case among those of the operation and element type.
    pub(super) name: String,
    /// The offset and the length of the program in the blob.
    program: (usize, usize),
    inputs: Vec<Place>,
    results: Vec<Expected>,
}

/// An array in the blob.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Place {
    #[serde(rename = "type")]
    element: String,
    dims: Vec<i64>,
    at: usize,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Expected {
    #[serde(flatten)]
    place: Place,
    /// The index of the tolerance.
    within: usize,
}

/// The distance that a result may have. An element passes if any of the distances permits it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Tolerance {
    /// The reason for the distances.
    pub(super) reason: String,
    /// The distance in units of the last place: the number of steps to the next floating-point number.
    #[serde(default)]
    pub(super) ulps: u64,
    /// The distance relative to the expected number.
    #[serde(default)]
    pub(super) relative: f64,
    /// The distance.
    #[serde(default)]
    pub(super) absolute: f64,
    /// `true` if a zero may have either sign.
    #[serde(default)]
    pub(super) any_zero: bool,
}

impl Suite {
    /// Reads the suites that the selection names, or those in this program's data.
    pub(super) fn selected(selection: &Selection) -> Result<Vec<Self>, String> {
        if selection.suite.is_empty() {
            return SUITES.iter().map(|(name, bytes)| Self::parse(name, bytes)).collect();
        }
        selection.suite.iter().map(|path| Self::read(path)).collect()
    }

    /// Returns the suites of programs of one operation in this program's data, which are read once.
    pub(super) fn operations() -> Result<&'static [Self], String> {
        static OPERATIONS: LazyLock<Result<Vec<Suite>, String>> = LazyLock::new(|| {
            let of_operations = SUITES.iter().filter(|(name, _)| *name != MODELS);
            of_operations.map(|(name, bytes)| Suite::parse(name, bytes)).collect()
        });
        OPERATIONS.as_deref().map_err(Clone::clone)
    }

    fn read(path: &Path) -> Result<Self, String> {
        let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Self::parse(&name, &bytes).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn parse(name: &str, bytes: &[u8]) -> Result<Self, String> {
        let not_a_suite = |error: &dyn std::fmt::Display| {
            format!("not a suite: {error}; --record makes suites of programs")
        };
        let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| not_a_suite(&error))?;
        let mut member = |name: &str| {
            let file = archive.by_name(name).map_err(|error| not_a_suite(&error))?;
            let mut data = Vec::new();
            file.take(MAX_MEMBER).read_to_end(&mut data).map_err(|error| not_a_suite(&error))?;
            Ok::<_, String>(data)
        };
        let (index, data) = (member(INDEX)?, member(DATA)?);
        let index: Index = serde_json::from_slice(&index).map_err(|error| not_a_suite(&error))?;
        if index.version != VERSION {
            return Err(format!(
                "it has version {} of the format; this program reads version {VERSION}",
                index.version
            ));
        }
        Ok(Self { name: name.to_owned(), index, data })
    }

    /// Returns the cases that the selection permits.
    pub(super) fn cases<'a>(&'a self, selection: &Selection) -> impl Iterator<Item = &'a Case> {
        self.index.cases.iter().filter(|case| {
            (selection.op.is_empty() || selection.op.contains(&case.op))
                && (selection.element.is_empty() || selection.element.contains(&case.element))
                && !selection.skip.iter().any(|text| case.label().contains(text))
        })
    }

    /// Returns the program of a case.
    pub(super) fn program(&self, case: &Case) -> Result<&[u8], String> {
        let (at, len) = case.program;
        self.slice(at, len)
            .ok_or_else(|| format!("the program of {} is not in the suite's data", case.label()))
    }

    /// Returns the inputs of a case.
    pub(super) fn inputs(&self, case: &Case) -> Result<Vec<Array>, String> {
        case.inputs.iter().map(|place| self.array(case, place)).collect()
    }

    /// Returns the expected results of a case, with their tolerances.
    pub(super) fn expected(&self, case: &Case) -> Result<Vec<(Array, &Tolerance)>, String> {
        let expected = |expected: &Expected| {
            let tolerance = self.index.tolerances.get(expected.within);
            let tolerance = tolerance.ok_or_else(|| format!("{} has an unknown tolerance", case.label()))?;
            Ok((self.array(case, &expected.place)?, tolerance))
        };
        case.results.iter().map(expected).collect()
    }

    fn array(&self, case: &Case, place: &Place) -> Result<Array, String> {
        let array = || {
            let element_type = ElementType::by_stablehlo_name(&place.element)?;
            let size = place.dims.iter().try_fold(element_type.byte_size(), |size, dim| {
                size.checked_mul(usize::try_from(*dim).ok()?)
            });
            let bytes = self.slice(place.at, size?)?.to_vec();
            Some(Array { element_type, dims: place.dims.clone(), bytes })
        };
        array().ok_or_else(|| format!("an array of {} is not in the suite's data", case.label()))
    }

    fn slice(&self, at: usize, len: usize) -> Option<&[u8]> {
        self.data.get(at..at.checked_add(len)?)
    }
}

impl Case {
    /// Returns the dimensions of the inputs.
    pub(super) fn operands(&self) -> Vec<Vec<i64>> {
        self.inputs.iter().map(|place| place.dims.clone()).collect()
    }

    /// Returns the operation, the element type and the name.
    pub(super) fn label(&self) -> String {
        format!("{} {} {}", self.op, self.element, self.name)
    }
}

/// A suite that is being made.
#[derive(Default)]
pub(super) struct Builder {
    tolerances: Vec<Tolerance>,
    cases: Vec<Case>,
    data: Vec<u8>,
}

impl Builder {
    /// Adds a recorded case. All results have the same tolerance.
    pub(super) fn add(
        &mut self,
        op: &str,
        program: &[u8],
        inputs: &[Array],
        results: &[Array],
        tolerance: &Tolerance,
    ) {
        self.add_named((op, "recorded"), program, inputs, results, tolerance);
    }

    /// Adds a case of this operation and name. All results have the same tolerance.
    pub(super) fn add_named(
        &mut self,
        (op, name): (&str, &str),
        program: &[u8],
        inputs: &[Array],
        results: &[Array],
        tolerance: &Tolerance,
    ) {
        let within = self.tolerances.iter().position(|known| known == tolerance).unwrap_or_else(|| {
            self.tolerances.push(tolerance.clone());
            self.tolerances.len() - 1
        });
        let element =
            inputs.first().or(results.first()).map_or("", |array| array.element_type.stablehlo_name());
        let case = Case {
            op: op.to_owned(),
            element: element.to_owned(),
            name: name.to_owned(),
            program: (self.push(program), program.len()),
            inputs: inputs.iter().map(|array| self.place(array)).collect(),
            results: results.iter().map(|array| Expected { place: self.place(array), within }).collect(),
        };
        self.cases.push(case);
    }

    fn place(&mut self, array: &Array) -> Place {
        let element = array.element_type.stablehlo_name().to_owned();
        Place { element, dims: array.dims.clone(), at: self.push(&array.bytes) }
    }

    fn push(&mut self, bytes: &[u8]) -> usize {
        let at = self.data.len();
        self.data.extend(bytes);
        at
    }

    /// Returns the suite.
    pub(super) fn finish(self, name: &str) -> Suite {
        let index = Index { version: VERSION, tolerances: self.tolerances, cases: self.cases };
        Suite { name: name.to_owned(), index, data: self.data }
    }

    /// Writes the suite to a file.
    pub(super) fn write(self, path: &Path) -> Result<(), String> {
        let Suite { index, data, .. } = self.finish("");
        let index = serde_json::to_vec(&index).map_err(|error| error.to_string())?;
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default().last_modified_time(DateTime::default());
        for (name, data) in [(INDEX, index), (DATA, data)] {
            archive.start_file(name, options).map_err(|error| error.to_string())?;
            archive.write_all(&data).map_err(|error| error.to_string())?;
        }
        let bytes = archive.finish().map_err(|error| error.to_string())?.into_inner();
        fs::write(path, bytes).map_err(|error| format!("{}: {error}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn everything() -> Selection {
        let (op, element, skip, suite, options) = Default::default();
        Selection { op, element, skip, suite, options, dump: None }
    }

    #[test]
    fn every_case_has_its_arrays_its_tolerances_and_a_name_of_its_own() {
        let mut labels = std::collections::BTreeSet::new();
        for suite in Suite::selected(&everything()).unwrap() {
            for case in suite.cases(&everything()) {
                assert!(labels.insert(case.label()), "{} occurs twice", case.label());
                let module = pjrt_stablehlo::parse(suite.program(case).unwrap().to_vec())
                    .unwrap_or_else(|error| panic!("{}: {error}", case.label()));
                let main = module.main().expect("a suite's programs have a function main");
                let (inputs, expected) = (suite.inputs(case).unwrap(), suite.expected(case).unwrap());
                assert_eq!(main.argument_types().len(), inputs.len(), "{}", case.label());
                assert_eq!(main.result_types().len(), expected.len(), "{}", case.label());
                assert!(
                    expected.iter().all(|(_, tolerance)| !tolerance.reason.is_empty()),
                    "{}",
                    case.label()
                );
            }
        }
        assert!(labels.len() > 2000, "{}", labels.len());
    }

    #[test]
    fn files_that_are_no_suites_are_refused() {
        let refused = |bytes: &[u8]| Suite::parse("x", bytes).err().unwrap_or_default();
        assert!(refused(b"PK").contains("not a suite"));
        let whole = SUITES[1].1;
        for len in (0..whole.len()).step_by(997) {
            assert!(refused(&whole[..len]).contains("not a suite"), "{len}");
        }
    }

    #[test]
    fn a_suite_whose_arrays_are_missing_is_an_error() {
        let mut suite = Suite::parse("models", SUITES[1].1).unwrap();
        suite.data.clear();
        let case = suite.index.cases[0].clone();
        assert!(
            suite.program(&case).is_err() && suite.inputs(&case).is_err() && suite.expected(&case).is_err()
        );
    }
}
