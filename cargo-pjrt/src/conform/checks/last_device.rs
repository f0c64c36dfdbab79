//! Runs the checks of other areas again, with the last device in place of the first one.

use std::sync::LazyLock;

use super::devices::id_of;
use crate::conform::harness::{Check, Context, Finding, ONE_DEVICE, Source, Verdict, matches, performing};
use crate::requirements::Profile;
use pjrt_testing::preferred::{Preferred, with_preferred};

const EXECUTE: &str = "PJRT_LoadedExecutable_Execute on_another_device fail INTERNAL";
const UPLOAD: &str = "PJRT_Client_BufferFromHostBuffer on_another_device fail INTERNAL";

/// The areas of checks that depend on a device, each with a fault of the other devices.
const AREAS: &[(&str, &str)] = &[
    ("memory", "PJRT_Device_MemoryStats on_another_device fail INTERNAL"),
    ("upload", UPLOAD),
    ("readback", "PJRT_Buffer_ToHostBuffer on_another_device fail INTERNAL"),
    ("buffer", "PJRT_Buffer_Dimensions on_another_device set num_dims=0"),
    ("special", "PJRT_Client_CreateAliasBuffer on_another_device fail INTERNAL"),
    ("view", "PJRT_Client_CreateViewOfDeviceBuffer on_another_device fail INTERNAL"),
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
    ("reports", UPLOAD),
    ("codes", UPLOAD),
    ("outliving", UPLOAD),
    ("extremes", UPLOAD),
    ("observers", UPLOAD),
    ("orders", UPLOAD),
    ("event", UPLOAD),
    ("threads", UPLOAD),
    ("extension", UPLOAD),
];

/// The checks that do not run again, because they do not depend on the choice of a device, or depend on the defaults of the plugin.
const EXCLUDED: &[&str] = &["upload/type_*", "view/writes_are_seen_*"];

/// Returns one check for each area.
pub(super) fn by_area() -> Vec<Check> {
    let check = |&(area, fault): &(&'static str, &'static str)| Check {
        name: format!("last_device/{area}"),
        rule: format!("The rules of the area {area} hold for the last device as well as for the first one."),
        source: Source::Header {
            place: "PJRT_Client_AddressableDevices",
            text: "Returns a list of devices addressable to the client: the client can issue commands to each of them.",
        },
        is_of_the_table: false,
        since: 0,
        needed_by: &[],
        used_by: Profile::ALL.to_vec(),
        needed_since: 0,
        fault: fault.to_owned(),
        also: &[],
        run: Box::new(move |context| on_last(context, area)),
    };
    AREAS.iter().map(check).collect()
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

/// Runs the checks of an area with the last device. A check that fails with the first device as well says so itself.
fn on_last(context: &Context, area: &str) -> Verdict {
    let last = last_device(context)?;
    let is_of_area =
        |check: &&Check| check.name.split_once('/').is_some_and(|(of_check, _)| of_check == area);
    let is_excluded = |check: &&Check| EXCLUDED.iter().any(|pattern| matches(pattern, &check.name));
    let checks = CHECKS.iter().filter(is_of_area).filter(|check| !is_excluded(check));
    for check in checks.filter(|check| !check.is_of_the_table && check.since <= context.minor()) {
        let on_last = || {
            let step = format!("{} with the last device", check.name);
            performing(step, || with_preferred(last, || (check.run)(context)))
        };
        let Err(Finding::Wrong(message)) = on_last() else { continue };
        // A failure that does not come again is one of timing, and not of the device.
        if (check.run)(context).is_ok() && on_last().is_err() {
            return Err(Finding::Wrong(format!(
                "{} fails with the last of {} devices, and passes with the first one: {message}. {}",
                check.name,
                last.position + 1,
                check.rule
            )));
        }
    }
    Ok(())
}
