//! Writing: every program that is read must be the same module after it was written as bytecode and read again.

use std::ops::RangeInclusive;

use pjrt_stablehlo::versions::{CURRENT_VERSION, MINIMUM_VERSION, Version};
use pjrt_stablehlo::{Error, ErrorKind, Module, parse, write_bytecode, write_portable_artifact};

use crate::files::{captured, corpus, folder, report};

/// Returns the difference between a module and what was written of it; `None` if there is none. `text` prints both.
fn difference(module: &Module, written: Vec<u8>, text: impl Fn(&Module) -> String) -> Option<String> {
    let found = match parse(written) {
        Ok(module) => text(&module),
        Err(error) => return Some(format!("not read: {error}")),
    };
    let expected = text(module);
    let differs = expected.lines().zip(found.lines()).find(|(expected, found)| expected != found);
    if let Some((expected, found)) = differs {
        return Some(format!("expected {expected}\n    found {found}"));
    }
    (expected != found).then(|| "the numbers of lines differ".to_owned())
}

/// VHLO represents an absent channel by channel 0.
const NO_CHANNEL: &str = "channel_handle = #stablehlo.channel_handle<handle = 0, type = 0>";

/// Returns the text of a module without what VHLO does not express.
fn text(module: &Module, locations: bool) -> String {
    let text = if locations { format!("{module:#}") } else { module.to_string() };
    text.replace(&format!(", {NO_CHANNEL}"), "").replace(&format!("{NO_CHANNEL}, "), "")
}

/// Returns the difference between a program and what was written of it without VHLO.
fn native_difference(module: &Module) -> Option<String> {
    match write_bytecode(module) {
        Ok(written) => difference(module, written, |module| format!("{module:#}")),
        Err(error) => Some(error.to_string()),
    }
}

/// The programs of both folders that are read, by name.
fn programs() -> Option<Vec<(String, Module)>> {
    let (records, captures) = (folder("PJRT_CORPUS")?, folder("PJRT_CAPTURED")?);
    let mut programs = Vec::new();
    for record in corpus(&records) {
        for (form, program) in &record.forms {
            programs.push((format!("{} {form}", record.name), program.clone()));
        }
    }
    programs.extend(captured(&captures, "mlir-bytecode"));
    programs.extend(captured(&captures, "mlir-text"));
    Some(programs.into_iter().filter_map(|(name, program)| Some((name, parse(program).ok()?))).collect())
}

#[test]
fn every_program_is_the_same_after_writing_without_vhlo() {
    let Some(programs) = programs() else { return };
    let failure = |(name, module): &(String, Module)| {
        native_difference(module).map(|difference| format!("{name}: {difference}"))
    };
    let failures: Vec<_> = programs.iter().filter_map(failure).collect();
    report("programs without VHLO", programs.len(), &failures);
}

/// Returns the difference between a program and an artifact of it. Older readers have no locations that are ranges.
fn artifact_difference(module: &Module, version: Version) -> Result<Option<String>, Error> {
    let written = write_portable_artifact(module, version)?;
    Ok(difference(module, written, |module| text(module, version >= Version::new(1, 9, 0))))
}

#[test]
fn every_program_is_the_same_after_writing_as_an_artifact_of_its_version_and_the_newest() {
    let Some(programs) = programs() else { return };
    let (mut failures, mut total) = (Vec::new(), 0);
    for (name, module) in &programs {
        for version in [Some(CURRENT_VERSION), module.source_version].into_iter().flatten() {
            total += 1;
            let difference =
                artifact_difference(module, version).unwrap_or_else(|error| Some(error.to_string()));
            failures.extend(difference.map(|difference| format!("{name} {version}: {difference}")));
        }
    }
    report("artifacts", total, &failures);
}

#[test]
fn an_artifact_of_any_version_is_the_same_program_or_an_error() {
    let Some(programs) = programs() else { return };
    let versions =
        |major, minors: RangeInclusive<u32>| minors.map(move |minor| Version::new(major, minor, 0));
    let old = versions(MINIMUM_VERSION.major, MINIMUM_VERSION.minor..=20);
    let versions: Vec<_> = old.chain(versions(CURRENT_VERSION.major, 0..=CURRENT_VERSION.minor)).collect();
    let (mut failures, mut written) = (Vec::new(), 0);
    for (index, (name, module)) in programs.iter().enumerate() {
        let version = versions[index % versions.len()];
        match artifact_difference(module, version) {
            Ok(None) => written += 1,
            Ok(Some(difference)) => failures.push(format!("{name} {version}: {difference}")),
            Err(error) if error.kind == ErrorKind::Unsupported && error.to_string().contains("VHLO") => {}
            Err(error) => failures.push(format!("{name} {version}: {error}")),
        }
    }
    report("artifacts of any version", programs.len(), &failures);
    assert!(written > programs.len() / 2, "{written} of {} programs were written", programs.len());
}
