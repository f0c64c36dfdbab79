//! Checks of two processes that use the plugin one after the other, as runs of a program do that share a cache of executables.

use super::agreement::same;
use super::entry::{Entry, check};
use crate::conform::harness::{
    Context, Finding, Identity, SUM, Verdict, ask_another, compile_and_keep_add, ensure, run_serialized,
};
use crate::process::Scratch;
use crate::requirements::Profile;

const CACHE_KEY: &str = "JAX, jax/_src/cache_key.py, get";

pub(super) const CHECKS: &[Entry] = &[
    check(
        "processes/load_an_executable",
        "An executable that one process serialized can be loaded and executed in another process.",
        load_an_executable,
        "PJRT_Executable_DeserializeAndLoad without PJRT_Executable_Serialize fail INTERNAL",
    )
    .host(
        "JAX, jax/_src/compilation_cache.py, get_executable_and_time",
        "Loads an executable that an earlier process wrote into the persistent compilation cache.",
    )
    .used_by(&[Profile::Jax, Profile::Zml, Profile::TorchXla]),
    check(
        "processes/fingerprints",
        "The executables of one program have the same fingerprint in each process.",
        fingerprints,
        "PJRT_Executable_Fingerprint without PJRT_Executable_Serialize set executable_fingerprint_size-1",
    )
    .header(
        "PJRT_Executable_Fingerprint",
        "Two executables that were produced by compiling with identical inputs (same program, compile options, compiler version, \
         etc.) should have the same fingerprint.",
    ),
    check(
        "processes/keys_of_caches",
        "The version of the platform and the serialized topology are the same in each process.",
        keys_of_caches,
        "PJRT_Client_PlatformVersion without PJRT_Executable_Serialize set platform_version_size-1",
    )
    .host(
        CACHE_KEY,
        "The version of the platform and the serialized topology are parts of the key of the persistent compilation cache, which \
         finds no program if they differ in each process.",
    )
    .used_by(&[Profile::Jax]),
];

/// The probable cause of a description that depends on the process.
const DEPENDS: &str = "It probably contains a time, an address or the id of the process";

/// The views of a first and a second process.
struct Both {
    here: Identity,
    there: Identity,
    /// The output of the first process's executable in the second one.
    output: Result<Vec<f32>, Finding>,
}

/// Serializes the program that adds, destroys the client, because some devices belong to one process at a time, and asks a second
/// process.
fn both(context: &Context) -> Result<Both, Finding> {
    let client = context.client()?;
    let serialized = compile_and_keep_add(&client).and_then(|program| program.serialize());
    let here = Identity::of(&client)?;
    drop(client);
    let serialized = match serialized {
        Ok(serialized) => serialized,
        Err(error) => {
            // Other checks test that programs can be compiled and serialized.
            let output = Err(Finding::Unsupported(format!("no program can be serialized: {error}")));
            return Ok(Both { here, there: ask_another(context, &context.options, None)?.identity, output });
        }
    };
    if let Err(finding) = used_here(context, serialized.bytes.clone()) {
        return Ok(Both {
            here,
            there: ask_another(context, &context.options, None)?.identity,
            output: Err(finding),
        });
    }
    let scratch = Scratch::new("processes").map_err(Finding::NotApplicable)?;
    let path = scratch.folder("executable").map_err(Finding::NotApplicable)?.join("serialized");
    std::fs::write(&path, &serialized.bytes)
        .map_err(|error| Finding::NotApplicable(format!("{}: {error}", path.display())))?;
    let there = ask_another(context, &context.options, Some(&path))?;
    let output = there.output.map_err(|error| {
        Finding::Wrong(format!(
            "an executable that one process serialized cannot be used in another one: {error}. The serialized bytes probably \
             refer to memory of the process"
        ))
    });
    Ok(Both { here, there: there.identity, output })
}

/// Uses the executable in the first process, with another client: what fails here too does not depend on the process.
fn used_here(context: &Context, bytes: Vec<u8>) -> Verdict {
    let client = context.client()?;
    let used = run_serialized(&client, bytes).map_err(Finding::from).and_then(|sum| {
        ensure!(sum == SUM, "it returns {sum:?}; expected {SUM:?}");
        Ok(())
    });
    used.map_err(|finding| match finding {
        Finding::Wrong(error) => Finding::Wrong(format!(
            "an executable that another client of the same process serialized cannot be used: {error}"
        )),
        finding => finding,
    })
}

fn load_an_executable(context: &Context) -> Verdict {
    let output = both(context)?.output?;
    ensure!(
        output == SUM,
        "an executable that one process serialized returns {output:?} in another one; expected {SUM:?}"
    );
    Ok(())
}

fn fingerprints(context: &Context) -> Verdict {
    let Both { here, there, .. } = both(context)?;
    let (Some(here), Some(there)) = (here.fingerprint, there.fingerprint) else {
        return Err(Finding::Unsupported("the plugin has no fingerprints".to_owned()));
    };
    ensure!(
        here == there,
        "the fingerprint of a program is {here:?} in one process and {there:?} in another one. {DEPENDS}"
    );
    Ok(())
}

fn keys_of_caches(context: &Context) -> Verdict {
    let Both { here, there, .. } = both(context)?;
    let (version, other) = (here.platform_version, there.platform_version);
    ensure!(
        version == other,
        "PJRT_Client_PlatformVersion returns {version:?} in one process and {other:?} in another one. {DEPENDS}"
    );
    match (here.topology, there.topology) {
        (Some(here), Some(there)) => {
            same("PJRT_TopologyDescription_Serialize in one process and in another one", &here, &there)
        }
        _ => Ok(()),
    }
}
