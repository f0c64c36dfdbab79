//! Runs the checks of other areas again, with the last device in place of the first one, or while another client exists.

use std::sync::LazyLock;

use super::devices::id_of;
use crate::conform::harness::{
    Check, Context, Finding, ONE_DEVICE, Source, Verdict, compile_add, matches, performing, upload_four,
};
use crate::requirements::Profile;
use pjrt_testing::preferred::{Preferred, with_preferred};

const EXECUTE: &str = "PJRT_LoadedExecutable_Execute on_another_device fail INTERNAL";
const UPLOAD: &str = "PJRT_Client_BufferFromHostBuffer on_another_device fail INTERNAL";

const SECOND_UPLOAD: &str = "PJRT_Client_BufferFromHostBuffer clients 2 fail INTERNAL";
const SECOND_EXECUTE: &str = "PJRT_LoadedExecutable_Execute clients 2 fail INTERNAL";

/// The areas of checks that depend on a device, each with a fault of the other devices.
const AREAS: &[(&str, &str)] = &[
    ("memory", "PJRT_Device_MemoryStats on_another_device fail INTERNAL"),
    ("upload", UPLOAD),
    ("readback", "PJRT_Buffer_ToHostBuffer on_another_device fail INTERNAL"),
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
    ("buffer", "PJRT_Buffer_Dimensions clients 2 set num_dims=0"),
    ("special", "PJRT_Client_CreateAliasBuffer clients 2 fail INTERNAL"),
    ("transfer", "PJRT_Client_CreateBuffersForAsyncHostToDevice clients 2 fail INTERNAL"),
    ("compile", "PJRT_Client_Compile clients 2 fail INTERNAL"),
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

/// The checks that do not run again, because they do not depend on the choice of a device, or depend on the defaults of the plugin.
const EXCLUDED: &[&str] = &["upload/type_*", "client/can_be_made", "plugin/*"];

/// Returns one check for each area and each variation.
pub(super) fn by_area() -> Vec<Check> {
    let check = |name: String, rule: String, source: Source, fault: &str, run: Run| Check {
        name,
        rule,
        source,
        is_of_the_table: false,
        since: 0,
        needed_by: &[],
        used_by: Profile::ALL.to_vec(),
        needed_since: 0,
        fault: fault.to_owned(),
        also: &[],
        run,
    };
    let on_last = AREAS.iter().map(|&(area, fault)| {
        let rule = format!("The rules of the area {area} hold for the last device as well as for the first one.");
        let text = "Returns a list of devices addressable to the client: the client can issue commands to each of them.";
        let source = Source::Header { place: "PJRT_Client_AddressableDevices", text };
        check(format!("last_device/{area}"), rule, source, fault, Box::new(move |context| on_last(context, area)))
    });
    let with_another = OF_CLIENTS.iter().map(|&(area, fault)| {
        let rule = format!(
            "The rules of the area {area} hold for a client that is created and used while an older one has arrays and programs."
        );
        let text = "Creates and initializes a new PJRT_Client and returns in `client`: it is independent of other clients.";
        let source = Source::Header { place: "PJRT_Client_Create", text };
        check(format!("second_client/{area}"), rule, source, fault, Box::new(move |context| with_another(context, area)))
    });
    on_last.chain(with_another).collect()
}

type Run = Box<dyn Fn(&Context) -> Verdict + Send + Sync>;

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

/// Runs the checks of an area with a variation. A check that fails without it as well says so itself.
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
    let checks = CHECKS.iter().filter(is_of_area).filter(|check| !is_excluded(check) && !has_failed(check));
    let mut has_passed = false;
    for check in checks.filter(|check| !check.is_of_the_table && check.since <= context.minor()) {
        let varied = || performing(format!("{} {with}", check.name), || vary(check));
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
