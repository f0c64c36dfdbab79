//! Checks with random sequences of calls, and a model that knows what each call must yield.
//!
//! A check of one rule uses a few arrays, programs and orders of calls. These checks combine the features: each theme makes random
//! plans from seeds, performs them, and shortens a plan that fails, so that the message contains only the calls that matter.

mod arrays;
mod events;
mod executions;
mod facts;
mod plan;
mod programs;
mod promise;
mod references;
mod steps;
mod threads;
mod transfers;
mod values;
mod world;

use crate::conform::harness::{Check, Context, Finding, ONE_DEVICE, Source, Users, Verdict};
use crate::requirements::Profile;
use world::World;

/// A theme of random sequences.
struct Listed {
    name: &'static str,
    rule: &'static str,
    /// The function of the header that the theme is about, and its sentence.
    source: (&'static str, &'static str),
    fault: &'static str,
    also: &'static [&'static str],
    run: fn(&Context) -> Verdict,
}

const THEMES: &[Listed] = &[
    Listed {
        name: "arrays",
        rule: "Random sequences of uploads with strides and layouts, copies, readbacks, raw copies, deletions and descriptions of arrays on all devices and memories yield the elements and properties that the calls imply.",
        source: (
            "PJRT_Client_BufferFromHostBuffer",
            "Asynchronously copies a buffer stored on host to device memory; copies and readbacks have its elements.",
        ),
        fault: "PJRT_Buffer_CopyRawToHost rank_from 4 give offset=0",
        also: &[],
        run: |context| {
            with_world(context, |world| plan::run_plans(world, context.sequences, 80, &arrays::Arrays(world)))
        },
    },
    Listed {
        name: "executions",
        rule: "Random programs of up to 70 parameters and outputs, with donated, repeated, late and failed arguments, on each device have the outputs, events and remaining arguments that the program implies.",
        source: (
            "PJRT_LoadedExecutable_Execute",
            "Executes on devices addressable by the client, with a list of arguments and a list of outputs for each.",
        ),
        fault: "PJRT_LoadedExecutable_Execute least num_args 33 arguments_in_5_bits",
        also: &[],
        run: |context| with_world(context, |world| executions(context, world, false)),
    },
    Listed {
        name: "executions_on_devices",
        rule: "Random programs for several devices in a random order, as replicas and partitions, have the outputs, events and remaining arguments on each device that the program implies.",
        source: (
            "PJRT_LoadedExecutable_Execute_Args::device_complete_events",
            "Each `PJRT_Event` will become ready once the corresponding device execution is complete. An execution with an argument in error fails.",
        ),
        fault: "PJRT_LoadedExecutable_Execute hide_errors_after_first_device",
        also: &[],
        run: |context| with_world(context, |world| executions(context, world, true)),
    },
    Listed {
        name: "events",
        rule: "Events that the host creates tell each of their observers, callbacks and waiting threads, before and after they are set, the code and the message once.",
        source: (
            "PJRT_Event_OnReady",
            "Registers `callback` to be called once `event` is ready, with `event`'s error status.",
        ),
        fault: "PJRT_Event_Set least error_message_size 128 give error_message_size=128",
        also: &[],
        run: |context| {
            with_world(context, |world| {
                plan::run_plans(world, context.sequences, 100, &events::Events(world, context.plugin))
            })
        },
    },
    Listed {
        name: "references",
        rule: "The elements at the address of an array stay as they are as long as its external reference count is not 0, after any number of increases and decreases, and after a deletion.",
        source: (
            "PJRT_Buffer_IncreaseExternalReferenceCount",
            "The reference count indicates the raw buffer data is being shared with another framework (e.g. NumPy, dlpack) and should not be deleted or moved by the PJRT implementation.",
        ),
        fault: "PJRT_Buffer_DecreaseExternalReferenceCount flag_of_references",
        also: &[],
        run: |context| {
            with_world(context, |world| {
                plan::run_plans(world, context.sequences, 80, &references::References(world))
            })
        },
    },
    Listed {
        name: "transfers",
        rule: "The arrays of transfer managers that are filled in pieces in any order, by literals in any order of dimensions, or set to errors, have these elements and errors.",
        source: (
            "PJRT_AsyncHostToDeviceTransferManager_TransferData",
            "Copies a piece to an offset of the array with this index.",
        ),
        fault: "PJRT_AsyncHostToDeviceTransferManager_TransferData least buffer_index 8 when is_last_transfer=1 give offset=0",
        also: &[],
        run: |context| with_world(context, |world| transfers(context, world)),
    },
    Listed {
        name: "threads",
        rule: "2 to 8 threads that execute programs with the same arrays in different orders, donate, read, copy, describe and delete arrays get the right results, and do not wait for each other forever.",
        source: (
            "PJRT_LoadedExecutable_Execute",
            "Hosts release their locks during calls, and call each function on several threads.",
        ),
        fault: "PJRT_LoadedExecutable_Execute locks_of_arguments",
        also: &[],
        run: |context| threads::check(context, 24),
    },
];

/// Runs a check with the devices, memories and types of a new client.
fn with_world(context: &Context, check: impl FnOnce(&World<'_>) -> Verdict) -> Verdict {
    let client = context.client()?;
    check(&World::new(context, &client)?)
}

fn executions(context: &Context, world: &World<'_>, on_several: bool) -> Verdict {
    if on_several && world.devices.len() < 2 {
        return Err(Finding::NotApplicable(ONE_DEVICE.to_owned()));
    }
    plan::run_plans(world, context.sequences, 60, &executions::Executions { world, on_several })
}

fn transfers(context: &Context, world: &World<'_>) -> Verdict {
    if world.memories.is_empty() {
        return Err(Finding::Unsupported("the plugin has no memories".to_owned()));
    }
    plan::run_plans(world, context.sequences, 100, &transfers::Transfers(world))
}

/// Returns a check for each theme.
pub(super) fn by_theme() -> Vec<Check> {
    let check = |theme: &'static Listed| Check {
        name: format!("random/{}", theme.name),
        rule: theme.rule.into(),
        source: Source::Header { place: theme.source.0, text: theme.source.1 },
        is_of_the_table: false,
        since: 0,
        needed_by: &[],
        users: Users::These(&Profile::ALL),
        needed_since: 0,
        fault: theme.fault.into(),
        also: theme.also,
        run: Box::new(theme.run),
    };
    THEMES.iter().map(check).collect()
}
