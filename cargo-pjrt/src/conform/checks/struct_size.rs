//! Checks that no function accesses memory past its caller's struct.

use super::calls::{CALLS, Call, Objects};
use crate::conform::harness::{Check, Context, Finding, Source, Users, Verdict, ensure, guarded};
use crate::requirements::Profile;
use pjrt_sys::SLOTS;
use pjrt_testing::host::{Code, Fence, fenced};

/// The functions to which hosts pass extensions, so that `extension_start` must be valid.
const EXTENDED: [&str; 3] = ["PJRT_Client_Compile", "PJRT_Compile", "PJRT_LoadedExecutable_Execute"];

/// Returns the checks of each function: one with the current size of its struct, a larger one, and an invalid
/// `extension_start`, and one for each size that the struct had.
pub(super) fn by_function() -> Vec<Check> {
    let older = |(function, call, older): &'static (&'static str, Call, &'static [usize])| {
        older.iter().map(|size| of_older_hosts(function, *call, *size))
    };
    CALLS
        .iter()
        .map(|(function, call, _)| of_function(function, *call))
        .chain(CALLS.iter().flat_map(older))
        .collect()
}

fn of_function(function: &'static str, call: Call) -> Check {
    let is_extended = EXTENDED.contains(&function);
    let extension = if is_extended { "" } else { ", and does not dereference extension_start" };
    Check {
        name: format!("struct_size/{function}"),
        rule: format!(
            "{function} accesses nothing past the struct_size of its caller, even if that is larger than it expects{extension}."
        ).into(),
        source: Source::Header {
            place: "PJRT_API_MINOR",
            text: "Implementations can use the `struct_size` fields to detect how many struct fields the caller is aware of.",
        },
        is_of_the_table: false,
        since: 0,
        needed_by: &[],
        users: Users::Callers(function),
        needed_since: 0,
        fault: format!("{function} write_past").into(),
        also: &[],
        run: Box::new(move |context| {
            let newest =
                SLOTS.iter().find(|slot| slot.name == function).map_or(0, |slot| slot.args.struct_size);
            let wild = (!is_extended).then_some(Fence::WildExtension);
            let fences: Vec<Fence> =
                [Fence::Enlarged].into_iter().chain(wild).chain([Fence::Guarded(newest)]).collect();
            watched(context, function, call, &fences)
        }),
    }
}

/// The hosts that pass a struct of an older size, with the function and the size.
const HOSTS: &[(&str, usize, &[Profile])] = &[
    ("PJRT_Device_MemoryStats", 185, &[Profile::Jax, Profile::TorchXla, Profile::Gomlx, Profile::PjrtRs]),
    ("PJRT_Executable_GetCompiledMemoryStats", 112, &[Profile::TorchXla]),
];

/// Returns the hosts that pass a struct of this size to the function.
fn hosts_with(function: &str, size: usize) -> &'static [Profile] {
    let row = HOSTS.iter().find(|(of, bytes, _)| (*of, *bytes) == (function, size));
    row.map_or(&[], |(.., hosts)| hosts)
}

fn of_older_hosts(function: &'static str, call: Call, size: usize) -> Check {
    Check {
        name: format!("struct_size/{function}_of_{size}_bytes"),
        rule: format!(
            "{function} accepts the struct of older hosts, which has {size} bytes, and accesses nothing past its end."
        ).into(),
        source: Source::Header {
            place: "PJRT_API_MINOR",
            text: "Implementations can use the `struct_size` fields to detect how many struct fields the caller is aware of.",
        },
        is_of_the_table: false,
        since: 0,
        needed_by: &[],
        users: Users::These(hosts_with(function, size)),
        needed_since: 0,
        fault: format!("{function} when struct_size={size} fail INVALID_ARGUMENT").into(),
        also: &[],
        run: Box::new(move |context| {
            let is_passed = !hosts_with(function, size).is_empty();
            // The header does not require plugins to accept older hosts, but to leave memory alone.
            match watched(context, function, call, &[Fence::Guarded(size)]) {
                Err(Finding::Wrong(why)) if !is_passed && !why.contains(WROTE) => Err(Finding::Advice(why)),
                verdict => verdict,
            }
        }),
    }
}

/// The finding that a function changed memory of its caller.
const WROTE: &str = "the function wrote past the end of the struct";

fn watched(context: &Context, function: &'static str, call: Call, fences: &[Fence]) -> Verdict {
    let client = context.client()?;
    let objects = Objects { plugin: context.plugin, client: &client, context };
    // A failure that does not depend on the size is not a failure of this check.
    if let Err(error) = call(&objects) {
        return Err(match error.code {
            Code::UNIMPLEMENTED => error.into(),
            _ => Finding::NotApplicable(format!("the function fails with any struct_size: {error}")),
        });
    }
    for fence in fences.iter().copied() {
        let (outcome, touched, used) =
            guarded(&fence.to_string(), || fenced(function, fence, || call(&objects)));
        if let Some(at) = touched {
            return Err(Finding::Wrong(format!(
                "with {fence}, {WROTE}: byte {} after the end changed",
                at + 1
            )));
        }
        if let Err(error) = outcome {
            return Err(Finding::Wrong(format!("with {fence}: {error}")));
        }
        ensure!(used, "the check did not call the function");
    }
    Ok(())
}
