//! Runs the checks of other areas again: with the last device in place of the first one, with arrays in another memory, while
//! another client exists, with a client that was used before, or from another thread than the one that created the client.

use std::sync::LazyLock;

use super::devices::id_of;
use super::program_text::launch;
use crate::conform::harness::{
    Check, Context, Creation, Finding, ONE_DEVICE, Source, Users, Verdict, add_program, briefly, compile_add,
    matches, performing, upload_four,
};
use crate::requirements::Profile;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{Client, Code, ElementType, Error, HostArray, Program};
use pjrt_testing::preferred::{Preferred, with_preferred, with_preferred_kind};

const EXECUTE: &str = "PJRT_LoadedExecutable_Execute on_another_device fail INTERNAL";
const UPLOAD: &str = "PJRT_Client_BufferFromHostBuffer on_another_device fail INTERNAL";

const SECOND_UPLOAD: &str = "PJRT_Client_BufferFromHostBuffer clients 2 fail INTERNAL";
const SECOND_EXECUTE: &str = "PJRT_LoadedExecutable_Execute clients 2 fail INTERNAL";

/// The areas of checks that depend on a device, each with a fault of the other devices.
const AREAS: &[(&str, &str)] = &[
    ("memory", "PJRT_Device_MemoryStats on_another_device fail INTERNAL"),
    ("upload", UPLOAD),
    ("readback", "PJRT_Buffer_ToHostBuffer on_another_device fail INTERNAL"),
    ("sizes", "PJRT_Buffer_ToHostBuffer on_another_device last_byte 65536 100000000"),
    ("buffer", "PJRT_Buffer_Dimensions on_another_device set num_dims=0"),
    ("special", "PJRT_Client_CreateAliasBuffer on_another_device fail INTERNAL"),
    ("transfer", "PJRT_Client_CreateBuffersForAsyncHostToDevice on_another_device fail INTERNAL"),
    ("compile", "PJRT_LoadedExecutable_GetExecutable on_another_device fail INTERNAL"),
    ("execute", EXECUTE),
    ("programs", EXECUTE),
    ("executables", EXECUTE),
    ("devices", EXECUTE),
    ("passed", UPLOAD),
    ("failures", EXECUTE),
    ("waiting", EXECUTE),
    ("lifetime", UPLOAD),
    ("ownership", "PJRT_LoadedExecutable_GetExecutable on_another_device fail INTERNAL"),
    ("layouts", UPLOAD),
    ("bits", UPLOAD),
    ("lent", UPLOAD),
    ("reuse", UPLOAD),
    ("donation", EXECUTE),
    ("agreement", UPLOAD),
    ("isolation", UPLOAD),
    ("reloaded", EXECUTE),
    ("reports", "PJRT_LoadedExecutable_GetExecutable on_another_device fail INTERNAL"),
    ("codes", UPLOAD),
    ("outliving", UPLOAD),
    ("extremes", UPLOAD),
    ("event", UPLOAD),
    ("extension", UPLOAD),
    ("device", "PJRT_Device_PoisonExecution on_another_device fail INTERNAL"),
    ("error", "PJRT_Client_CreateErrorBuffer on_another_device fail INTERNAL"),
    ("pending", UPLOAD),
];

/// The areas of checks that depend on a client, each with a fault of the clients after the first one.
const OF_CLIENTS: &[(&str, &str)] = &[
    ("device", "PJRT_Device_GetDescription clients 2 fail INTERNAL"),
    ("memory", "PJRT_Memory_Id clients 2 fail INTERNAL"),
    ("topology", "PJRT_Client_TopologyDescription clients 2 fail INTERNAL"),
    ("event", SECOND_UPLOAD),
    ("upload", SECOND_UPLOAD),
    ("readback", "PJRT_Buffer_ToHostBuffer clients 2 fail INTERNAL"),
    ("sizes", "PJRT_Buffer_ToHostBuffer clients 2 last_byte 65536 100000000"),
    ("bits", SECOND_UPLOAD),
    ("lent", SECOND_UPLOAD),
    ("pending", SECOND_UPLOAD),
    ("error", "PJRT_Client_CreateErrorBuffer clients 2 fail INTERNAL"),
    ("extension", SECOND_UPLOAD),
    ("results", SECOND_EXECUTE),
    ("ownership", "PJRT_LoadedExecutable_GetExecutable clients 2 fail INTERNAL"),
    ("reports", "PJRT_LoadedExecutable_GetExecutable clients 2 fail INTERNAL"),
    ("buffer", "PJRT_Buffer_Dimensions clients 2 set num_dims=0"),
    ("special", "PJRT_Client_CreateAliasBuffer clients 2 fail INTERNAL"),
    ("transfer", "PJRT_Client_CreateBuffersForAsyncHostToDevice clients 2 fail INTERNAL"),
    ("compile", "PJRT_Client_Compile clients 2 fail INTERNAL"),
    ("options", "PJRT_Client_Compile clients 2 give compile_options_size=0"),
    ("lifetime", SECOND_UPLOAD),
    ("execute", SECOND_EXECUTE),
    ("programs", SECOND_EXECUTE),
    ("executables", SECOND_EXECUTE),
    ("devices", SECOND_EXECUTE),
    ("placement", SECOND_UPLOAD),
    ("failures", SECOND_EXECUTE),
    ("donation", SECOND_EXECUTE),
    ("isolation", SECOND_UPLOAD),
    ("reloaded", SECOND_EXECUTE),
    ("agreement", SECOND_UPLOAD),
];

const THREAD_UPLOAD: &str = "PJRT_Client_BufferFromHostBuffer another_thread fail INTERNAL";
const THREAD_EXECUTE: &str = "PJRT_LoadedExecutable_Execute another_thread fail INTERNAL";
const THREAD_BUFFER: &str = "PJRT_Buffer_Dimensions another_thread set num_dims=0";

/// The areas of checks whose calls a host makes from any thread, each with a fault of the threads that did not create the client.
const OF_THREADS: &[(&str, &str)] = &[
    ("device", "PJRT_Device_GetDescription another_thread fail INTERNAL"),
    ("memory", "PJRT_Memory_Id another_thread fail INTERNAL"),
    ("topology", "PJRT_Client_TopologyDescription another_thread fail INTERNAL"),
    ("event", "PJRT_Event_IsReady another_thread set is_ready=0"),
    ("upload", THREAD_UPLOAD),
    ("readback", "PJRT_Buffer_ToHostBuffer another_thread fail INTERNAL"),
    ("sizes", "PJRT_Buffer_ToHostBuffer another_thread last_byte 262144 100000000"),
    ("shapes", THREAD_UPLOAD),
    ("buffer", THREAD_BUFFER),
    ("special", "PJRT_Client_CreateAliasBuffer another_thread fail INTERNAL"),
    ("view", "PJRT_Client_CreateViewOfDeviceBuffer another_thread crash"),
    ("transfer", "PJRT_Client_CreateBuffersForAsyncHostToDevice another_thread fail INTERNAL"),
    ("compile", "PJRT_Client_Compile another_thread fail INTERNAL"),
    ("options", "PJRT_Client_Compile another_thread give compile_options_size=0"),
    ("lifetime", THREAD_UPLOAD),
    ("execute", THREAD_EXECUTE),
    ("programs", THREAD_EXECUTE),
    ("results", THREAD_EXECUTE),
    ("executables", THREAD_EXECUTE),
    ("devices", THREAD_EXECUTE),
    ("placement", THREAD_UPLOAD),
    ("failures", THREAD_EXECUTE),
    ("layouts", THREAD_UPLOAD),
    ("bits", THREAD_UPLOAD),
    ("lent", THREAD_UPLOAD),
    ("reuse", THREAD_UPLOAD),
    ("donation", THREAD_EXECUTE),
    ("isolation", THREAD_UPLOAD),
    ("reloaded", THREAD_EXECUTE),
    ("reports", "PJRT_LoadedExecutable_GetExecutable another_thread fail INTERNAL"),
    ("agreement", THREAD_UPLOAD),
    ("pending", THREAD_UPLOAD),
    ("extension", THREAD_UPLOAD),
    ("channels", THREAD_UPLOAD),
    ("error", "PJRT_Client_CreateErrorBuffer another_thread fail INTERNAL"),
];

const MEMORY_READ: &str = "PJRT_Buffer_ToHostBuffer in_another_memory fail INTERNAL";

/// The areas of checks that transfer arrays, each with a fault of arrays in other memories than the default one.
const OF_MEMORIES: &[(&str, &str)] = &[
    ("readback", MEMORY_READ),
    ("sizes", "PJRT_Buffer_ToHostBuffer in_another_memory last_byte 65536 100000000"),
    ("shapes", "PJRT_Buffer_Dimensions in_another_memory rank_from 4 set num_dims=0"),
    ("layouts", MEMORY_READ),
    ("bits", MEMORY_READ),
    ("lent", MEMORY_READ),
    ("reuse", MEMORY_READ),
    ("isolation", MEMORY_READ),
    ("upload", MEMORY_READ),
    ("buffer", "PJRT_Buffer_IsDeleted in_another_memory set is_deleted=1"),
    ("event", "PJRT_Buffer_ReadyEvent in_another_memory fail INTERNAL"),
    ("lifetime", "PJRT_Buffer_IsDeleted in_another_memory set is_deleted=1"),
];

const USED_UPLOAD: &str = "PJRT_Client_BufferFromHostBuffer failed PJRT_Client_Compile fail INTERNAL";
const USED_EXECUTE: &str = "PJRT_LoadedExecutable_Execute failed PJRT_Client_Compile fail INTERNAL";

/// The areas of checks that depend on a client, each with a fault of clients with which the host did other work.
const OF_USED_CLIENTS: &[(&str, &str)] = &[
    ("device", "PJRT_Device_GetDescription failed PJRT_Client_Compile fail INTERNAL"),
    ("memory", "PJRT_Memory_Id failed PJRT_Client_Compile fail INTERNAL"),
    ("topology", "PJRT_Client_TopologyDescription failed PJRT_Client_Compile fail INTERNAL"),
    ("event", USED_UPLOAD),
    ("upload", USED_UPLOAD),
    ("readback", "PJRT_Buffer_ToHostBuffer failed PJRT_LoadedExecutable_Execute fail INTERNAL"),
    ("sizes", "PJRT_Buffer_ToHostBuffer failed PJRT_Client_Compile last_byte 65536 100000000"),
    ("bits", USED_UPLOAD),
    ("lent", USED_UPLOAD),
    ("buffer", "PJRT_Buffer_Dimensions failed PJRT_Client_Compile set num_dims=0"),
    ("lifetime", USED_UPLOAD),
    ("special", "PJRT_Client_CreateAliasBuffer failed PJRT_Client_Compile fail INTERNAL"),
    ("transfer", "PJRT_Client_CreateBuffersForAsyncHostToDevice failed PJRT_Client_Compile fail INTERNAL"),
    ("compile", "PJRT_Client_Compile failed PJRT_Client_Compile fail INTERNAL"),
    ("options", "PJRT_Client_Compile failed PJRT_LoadedExecutable_Execute give compile_options_size=0"),
    ("execute", USED_EXECUTE),
    ("programs", USED_EXECUTE),
    ("results", "PJRT_LoadedExecutable_Execute failed PJRT_Client_LookupDevice fail INTERNAL"),
    ("executables", USED_EXECUTE),
    ("devices", USED_EXECUTE),
    ("donation", USED_EXECUTE),
    ("reloaded", USED_EXECUTE),
    ("isolation", USED_UPLOAD),
    ("agreement", USED_UPLOAD),
    ("pending", USED_UPLOAD),
    ("error", "PJRT_Client_CreateErrorBuffer failed PJRT_Client_Compile fail INTERNAL"),
];

/// The checks that do not run again, because they do not depend on the choice of a device, or depend on the defaults of the
/// plugin, or take long: they wait for calls or writes that must not come, use large arrays, or start many threads.
const EXCLUDED: &[&str] = &[
    "upload/type_*",
    "view/writes_are_seen_*",
    "client/can_be_made",
    "plugin/*",
    "event/callbacks_*",
    "failures/callbacks_come_once",
    "layouts/large_*",
    "lifetime/clients_leave_no_threads",
    "lifetime/no_use_leaks",
    "upload/megabytes",
    "upload/by_many_threads",
    "upload/sizes_around_pages",
    "programs/a_thousand_arguments",
    "event/many_*",
    "event/completing_races_with_callbacks",
    "readback/not_written_after_its_event",
];

/// A variation: the area of its checks, the areas of the checks that run again, with a fault each, and the rule about one of
/// these areas, in which `{}` stands for its name.
struct Variation {
    name: &'static str,
    areas: &'static [(&'static str, &'static str)],
    rule: &'static str,
    source: Source,
    run: fn(&Context, &str) -> Verdict,
}

const VARIATIONS: &[Variation] = &[
    Variation {
        name: "last_device",
        areas: AREAS,
        rule: "The rules of the area {} hold for the last device as well as for the first one.",
        source: Source::Header {
            place: "PJRT_Client_AddressableDevices",
            text: "Returns a list of devices addressable to the client: the client can issue commands to each of them.",
        },
        run: on_last,
    },
    Variation {
        name: "second_client",
        areas: OF_CLIENTS,
        rule: "The rules of the area {} hold for a client that is created and used while an older one has arrays and programs.",
        source: Source::Header {
            place: "PJRT_Client_Create",
            text: "Creates and initializes a new PJRT_Client and returns in `client`: it is independent of other clients.",
        },
        run: with_another,
    },
    Variation {
        name: "another_thread",
        areas: OF_THREADS,
        rule: "The rules of the area {} hold for calls from another thread than the one that created the client.",
        source: Source::Header {
            place: "pjrt_c_api.h",
            text: "Every function may be called from any thread, and concurrently.",
        },
        run: from_another,
    },
    Variation {
        name: "another_memory",
        areas: OF_MEMORIES,
        rule: "The rules of the area {} hold for arrays in each memory of the device as well as in the default one.",
        source: Source::Header {
            place: "PJRT_Client_BufferFromHostBuffer_Args::memory",
            text: "The memory space to copy to. If nullptr, the buffer is copied to the default memory space of the device.",
        },
        run: in_other_memories,
    },
    Variation {
        name: "used_client",
        areas: OF_USED_CLIENTS,
        rule: "The rules of the area {} hold for a client with which the host did other work before, also work that failed.",
        source: Source::Header {
            place: "PJRT_Error",
            text: "An error is the result of one call: the objects of the client can be used as before.",
        },
        run: with_used,
    },
];

/// Returns one check for each area and each variation.
pub(super) fn by_area() -> Vec<Check> {
    let of_area = |variation: &'static Variation, area: &'static str, fault: &'static str| Check {
        name: format!("{}/{area}", variation.name),
        rule: variation.rule.replace("{}", area).into(),
        source: variation.source,
        is_of_the_table: false,
        since: 0,
        needed_by: &[],
        users: Users::These(&Profile::ALL),
        needed_since: 0,
        fault: fault.into(),
        also: &[],
        run: Box::new(move |context| (variation.run)(context, area)),
    };
    let areas = |variation: &'static Variation| variation.areas.iter().map(move |row| (variation, row));
    VARIATIONS
        .iter()
        .flat_map(areas)
        .map(|(variation, (area, fault))| of_area(variation, area, fault))
        .collect()
}

/// The checks of all areas.
static CHECKS: LazyLock<Vec<Check>> = LazyLock::new(super::all);

fn last_device(context: &Context) -> Result<Preferred, Finding> {
    let client = context.client()?;
    let devices = client.addressable_devices()?;
    match devices.last() {
        Some(last) if devices.len() > 1 => Ok(Preferred { position: devices.len() - 1, id: id_of(*last)? }),
        _ => Err(Finding::NotApplicable(ONE_DEVICE.to_owned())),
    }
}

/// Runs the checks of an area with a variation. A check that fails without it as well says so itself. Advice is left out: a
/// plugin that does not follow it may crash, and would fail the rules of the area.
fn again(
    context: &Context,
    area: &str,
    with: &str,
    without: &str,
    vary: impl Fn(&Check) -> Verdict,
) -> Verdict {
    let is_of_area =
        |check: &&Check| check.name.split_once('/').is_some_and(|(of_check, _)| of_check == area);
    let is_excluded = |check: &&Check| EXCLUDED.iter().any(|pattern| matches(pattern, &check.name));
    let has_failed = |check: &&Check| context.failed.contains(&check.name);
    let is_rule = |check: &&Check| !check.source.is_advice() && !is_excluded(check) && !has_failed(check);
    let checks = CHECKS.iter().filter(is_of_area).filter(is_rule);
    let mut has_passed = false;
    for check in checks.filter(|check| !check.is_of_the_table && check.since <= context.minor()) {
        let varied = || performing(format!("{} {with}", check.name), || briefly(|| vary(check)));
        let message = match varied() {
            Err(Finding::Wrong(message)) => message,
            verdict => {
                has_passed |= verdict.is_ok();
                continue;
            }
        };
        // A failure that does not come again is one of timing, and not of the variation.
        if (check.run)(context).is_ok() && varied().is_err() {
            return Err(Finding::Wrong(format!(
                "{} fails {with}, and passes {without}: {message}. {}",
                check.name, check.rule
            )));
        }
    }
    if !has_passed {
        return Err(Finding::NotApplicable(format!("no check of the area {area} applies")));
    }
    Ok(())
}

fn on_last(context: &Context, area: &str) -> Verdict {
    let last = last_device(context)?;
    let with = format!("with the last of {} devices", last.position + 1);
    again(context, area, &with, "with the first one", |check| with_preferred(last, || (check.run)(context)))
}

/// Runs the checks of an area while another client has arrays and programs, in an order and of sizes that others do not have.
fn with_another(context: &Context, area: &str) -> Verdict {
    // A process may be limited to one client.
    let two = (context.client()?, context.client());
    if two.1.is_err() {
        return Err(Finding::NotApplicable("a second client cannot be created".to_owned()));
    }
    drop(two);
    again(context, area, "while an older client exists", "without one", |check| {
        let other = context.client()?;
        let arrays: Vec<_> = (0..3).map(|value| upload_four(&other, &[value as f32 - 0.5; 4]).ok()).collect();
        let program = compile_add(&other).ok();
        let verdict = (check.run)(context);
        drop((arrays, program));
        verdict
    })
}

/// Runs the checks of an area with clients that other threads created, which have ended.
fn from_another(context: &Context, area: &str) -> Verdict {
    let elsewhere: Creation = |create| {
        let joined = std::thread::scope(|scope| scope.spawn(create).join());
        joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    };
    let with = "in calls from another thread than the one that created the client";
    again(context, area, with, "in calls from that thread", |check| {
        context.with_creation(elsewhere, || (check.run)(context))
    })
}

/// The check that arrays are in the default memory.
const OF_THE_DEFAULT: &str = "buffer/memory";

/// Runs the checks of an area with arrays in each kind of memory that is not the default one, and accepts arrays.
fn in_other_memories(context: &Context, area: &str) -> Verdict {
    let client = context.client()?;
    let device = client.device()?;
    let default = device.default_memory()?.kind()?;
    let mut kinds = Vec::new();
    for memory in device.memories()? {
        let kind = memory.kind()?;
        let array = HostArray::new(&[0; 16], ElementType::F32, &[4]);
        if kind != default && client.upload(&array, None, Some(memory)).is_ok() {
            kinds.push(kind);
        }
    }
    drop(client);
    if kinds.is_empty() {
        return Err(Finding::NotApplicable("arrays can only be in the default memory".to_owned()));
    }
    kinds.iter().try_for_each(|kind| {
        let with = format!("with arrays in the memory {kind:?}");
        again(context, area, &with, "with arrays in the default memory", |check| match check.name.as_str() {
            OF_THE_DEFAULT => Err(Finding::NotApplicable("the rule is about the default memory".to_owned())),
            _ => with_preferred_kind(kind, || (check.run)(context)),
        })
    })
}

/// Runs the checks of an area with clients that did other work before.
fn with_used(context: &Context, area: &str) -> Verdict {
    let used: Creation = |create| {
        let client = create()?;
        // Other checks test what each of these calls does.
        drop(use_client(&client));
        Ok(client)
    };
    let with = "with a client that did other work before, of which some failed";
    again(context, area, with, "with a new client", |check| {
        context.with_creation(used, || (check.run)(context))
    })
}

/// Does work of each kind with a client, in arrays and programs that other checks do not have, and makes calls that fail.
fn use_client(client: &Client) -> Result<(), Error> {
    let device = client.device()?;
    let memory = device.default_memory()?;
    let array = upload_four(client, &[-7.5; 4])?;
    array.read()?;
    drop(array.copy_to_memory(memory));
    drop(client.lookup_device(-2));
    drop(client.error_buffer((Code::ABORTED, "not needed"), ElementType::F32, &[4], memory));
    drop(client.deserialize(b"no executable"));
    if let Ok(program) =
        client.compile(&Program::mlir(&add_program("4x")), &CompileOptions::default().encode())
    {
        drop(launch(&program, &[&array, &array], 0).and_then(|launched| launched.output(0, 0)?.read()));
        drop(launch(&program, &[&array], 0));
    }
    drop(client.compile(&Program::mlir("no program"), &CompileOptions::default().encode()));
    array.delete()?;
    drop(array.read());
    if let Ok(manager) = client.transfer_manager(&[(ElementType::F32, vec![4])], memory) {
        drop(manager.fail(0, Code::DATA_LOSS, "given up"));
    }
    Ok(())
}
