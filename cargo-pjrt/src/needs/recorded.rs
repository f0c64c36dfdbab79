//! The recorded programs: functions of JAX in tiers. `tests/python/needs_programs.py` writes the files.

use clap::builder::PossibleValuesParser;

use super::source::Source;
use crate::run::Job;

/// The names and the programs of the tiers, from the first that a device needs to the last.
const TIERS: &[(&str, &str)] = &[
    ("arithmetic", include_str!("../../data/needs/arithmetic.mlir")),
    ("indexing", include_str!("../../data/needs/indexing.mlir")),
    ("random", include_str!("../../data/needs/random.mlir")),
    ("control_flow", include_str!("../../data/needs/control_flow.mlir")),
    ("linear_algebra", include_str!("../../data/needs/linear_algebra.mlir")),
    ("training", include_str!("../../data/needs/training.mlir")),
];

/// The text before the name of a program in a file.
const NAME: &str = "// ----- ";

/// Returns the parser of the name of a tier.
pub(super) fn tier_names() -> PossibleValuesParser {
    PossibleValuesParser::new(TIERS.iter().map(|(name, _)| *name))
}

/// Returns the programs of the tiers with these names and of the required tiers, or of all tiers if the first list is empty.
pub(super) fn recorded(tiers: &[String], required: &[String]) -> Vec<Source> {
    let is_in = |list: &[String], tier: &str| list.iter().any(|name| name == tier);
    let chosen =
        TIERS.iter().filter(|(tier, _)| tiers.is_empty() || is_in(tiers, tier) || is_in(required, tier));
    let programs = chosen.flat_map(|(tier, file)| {
        let required = is_in(required, tier);
        file.split(NAME).filter(|part| !part.is_empty()).map(move |part| {
            let (name, text) = part.split_once('\n').unwrap_or((part, ""));
            Source { tier: (*tier).to_owned(), name: name.to_owned(), required, job: Ok(Job::of_text(text)) }
        })
    });
    programs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_programs_are_valid_and_have_names() {
        let programs = recorded(&[], &[]);
        assert!(programs.len() > 60, "{}", programs.len());
        for program in &programs {
            let module = program.job.as_ref().unwrap().module();
            assert!(module.is_ok(), "{}/{}: {module:?}", program.tier, program.name);
            assert!(!program.name.contains(' ') && !program.name.is_empty());
        }
        let [random, indexing] = ["random", "indexing"].map(|tier| [tier.to_owned()]);
        assert!(recorded(&random, &[]).len() < programs.len());
        let both = recorded(&random, &indexing);
        assert!(both.iter().all(|program| program.required == (program.tier == "indexing")));
        assert!(both.len() > recorded(&random, &random).len());
    }
}
