//! The verdicts on the failures of plugins.

use anyhow::Result;

use super::kit::Outcome;
use super::plugins::Plugin;
use super::proofs::{self, Proof, Proofs, Shown};

/// The verdict on a failure.
struct Verdict {
    /// The names of the packages.
    plugins: &'static [&'static str],
    check: &'static str,
    text: &'static str,
    proof: Option<Proof>,
}

const XLA_CPU: &[&str] = &["lammps-jax-pjrt-cpu", "fastatomstruct-xla-cpu"];
const XLA_CPU_0_106: &[&str] = &["fastatomstruct-xla-cpu"];

const VERDICTS: &[Verdict] = &[
    Verdict {
        plugins: XLA_CPU,
        check: "compile/executable_outlives_the_loaded_one",
        text: "An error of XLA: the header says of `PJRT_LoadedExecutable_GetExecutable` that the caller frees the \
               executable, and names no other lifetime. The executable refers to memory of the loaded program, which is \
               used after it is freed.",
        proof: Some(proofs::EXECUTABLE),
    },
    Verdict {
        plugins: XLA_CPU,
        check: "outliving/descriptions_of_programs",
        text: "The same error as `compile/executable_outlives_the_loaded_one`.",
        proof: Some(proofs::EXECUTABLE),
    },
    Verdict {
        plugins: XLA_CPU,
        check: "memory/overflowing_sizes",
        text: "An error of XLA: the size of an array overflows 64 bits, and the function throws a C++ exception through the C \
               API, which ends the process, instead of an error.",
        proof: Some(proofs::IMPOSSIBLE),
    },
    Verdict {
        plugins: XLA_CPU,
        check: "special/error_spreads",
        text: "An error of XLA: the header says of `PJRT_Client_CreateErrorBuffer` that \"the execution will fail with the \
               given error code and message\". The execution fails with the code INTERNAL.",
        proof: Some(proofs::ARGUMENT),
    },
    Verdict {
        plugins: XLA_CPU,
        check: "extension/memory_descriptions",
        text: "An error of XLA: the extension's header says that the function returns all memory descriptions of the \
               device. The list is empty, while the device has three memories.",
        proof: Some(proofs::DESCRIPTIONS),
    },
    Verdict {
        plugins: XLA_CPU,
        check: "extension/functions_of_PhaseCompile",
        text: "An error of XLA: the plugin has the extension, but the functions that create and destroy a compiler, which \
               the other functions take as an argument, are null pointers. XLA's own tests of the extension replace them \
               with functions of a sample plugin.",
        proof: Some(proofs::PHASES),
    },
    Verdict {
        plugins: XLA_CPU_0_106,
        check: "compile/delete",
        text: "An error of XLA, which 0.115 does not have: the header says of `PJRT_LoadedExecutable_IsDeleted` \"True if \
               and only if PJRT_LoadedExecutable_Delete has previously been called\".",
        proof: Some(proofs::DELETED),
    },
    Verdict {
        plugins: XLA_CPU_0_106,
        check: "topology/round_trip",
        text: "An error of this build: no compiler is registered for its platform.",
        proof: Some(proofs::TOPOLOGY),
    },
    Verdict {
        plugins: XLA_CPU_0_106,
        check: "compile/ahead_and_load",
        text: "The same error as `topology/round_trip`.",
        proof: Some(proofs::TOPOLOGY),
    },
    Verdict {
        plugins: XLA_CPU_0_106,
        check: "topology/serialized_again",
        text: "The same error as `topology/round_trip`.",
        proof: Some(proofs::TOPOLOGY),
    },
    Verdict {
        plugins: XLA_CPU_0_106,
        check: "texts/serialized_topology",
        text: "The same error as `topology/round_trip`.",
        proof: Some(proofs::TOPOLOGY),
    },
    Verdict {
        plugins: XLA_CPU_0_106,
        check: "layouts/device_layouts",
        text: "An error of XLA, which 0.115 does not have: the header says that `device_layout` is the layout of the buffer, \
               and that memory without strides is dense and row-major. The plugin reads the memory in the order of the layout.",
        proof: Some(proofs::DEVICE_LAYOUT),
    },
    Verdict {
        plugins: XLA_CPU_0_106,
        check: "random/arrays",
        text: "The same error as `layouts/device_layouts`.",
        proof: Some(proofs::DEVICE_LAYOUT),
    },
    Verdict {
        plugins: XLA_CPU_0_106,
        check: "shapes/default_layouts",
        text: "An error of XLA, which 0.115 does not have: the default layout of types with fewer than 8 bits is not that of \
               their arrays.",
        proof: Some(proofs::DEFAULT_LAYOUT),
    },
    Verdict {
        plugins: XLA_CPU_0_106,
        check: "failures/after_upload_with_too_few_strides",
        text: "An error of XLA, which 0.115 does not have: an upload with too few strides ends the process.",
        proof: Some(proofs::STRIDES),
    },
    Verdict {
        plugins: &["jax-cuda12-pjrt"],
        check: "client/can_be_made",
        text: "The machine has no GPU. The rules that need a client do not apply.",
        proof: None,
    },
];

/// A failure with its verdict.
pub(super) struct Judged {
    pub(super) check: String,
    /// The kit's message.
    pub(super) message: String,
    pub(super) verdict: &'static str,
    /// The proof's name and the essential line of its output.
    pub(super) proof: Option<(&'static str, String)>,
}

/// Finds the verdicts on a plugin's failures, and proves them. Complains about failures without a verdict,
/// verdicts without a failure, and proofs that show no bug.
pub(super) fn judge(
    plugin: &Plugin,
    outcome: &Outcome,
    proofs: &Proofs,
    complaints: &mut Vec<String>,
) -> Result<Vec<Judged>> {
    let verdicts = || VERDICTS.iter().filter(|verdict| verdict.plugins.contains(&plugin.name));
    let title = plugin.title();
    let mut judged = Vec::new();
    for failure in outcome.failures() {
        let (check, message) = (&failure.name, &failure.message);
        let Some(verdict) = verdicts().find(|verdict| verdict.check == *check) else {
            complaints.push(format!("{title} fails {check}, which has no verdict: {message}"));
            continue;
        };
        let proof =
            match verdict.proof.map(|proof| Ok::<_, anyhow::Error>((proof, proofs.show(proof, plugin)?))) {
                None => None,
                Some(shown) => match shown? {
                    (proof, Shown::Bug(line)) => Some((proof.name, line)),
                    (proof, Shown::NoBug(printed)) => {
                        let name = proof.name;
                        complaints.push(format!("docs/proofs/{name}.c shows no bug of {title}: {printed}"));
                        None
                    }
                },
            };
        judged.push(Judged { check: check.clone(), message: message.clone(), verdict: verdict.text, proof });
    }
    for verdict in verdicts() {
        if !outcome.failures().any(|failure| failure.name == verdict.check) {
            complaints.push(format!(
                "{title} does not fail {}: remove its verdict, {:?}",
                verdict.check, verdict.text
            ));
        }
    }
    Ok(judged)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use super::super::kit::Row;
    use super::*;

    /// Returns the complaints about a plugin without a device that fails these checks.
    fn complaints(checks: &[&str]) -> Vec<String> {
        let row = |name: &&str| -> Row {
            let row =
                serde_json::json!({"name": name, "needed_by": [], "status": "wrong", "message": "no GPU"});
            serde_json::from_value(row).unwrap()
        };
        let outcome = Outcome {
            version: (0, 112),
            rows: checks.iter().map(row).collect(),
            duration: Duration::ZERO,
            failures_by_profile: Vec::new(),
        };
        let plugin = Plugin { name: "jax-cuda12-pjrt", version: "0", library: PathBuf::new() };
        let mut complaints = Vec::new();
        judge(&plugin, &outcome, &Proofs { folder: PathBuf::new() }, &mut complaints).unwrap();
        complaints
    }

    #[test]
    fn each_failure_has_a_verdict_and_each_verdict_a_failure() {
        assert_eq!(complaints(&["client/can_be_made"]), [""; 0]);
        let unknown = complaints(&["client/can_be_made", "area/rule"]);
        assert_eq!(unknown, ["jax-cuda12-pjrt 0 fails area/rule, which has no verdict: no GPU"]);
        let stale = complaints(&[]);
        assert!(stale.len() == 1 && stale[0].contains("does not fail client/can_be_made"), "{stale:?}");
    }
}
