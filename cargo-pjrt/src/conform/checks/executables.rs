//! Checks of several executables of one program, and of the options that they are compiled and loaded with.

use std::collections::HashSet;

use super::devices::{id_of, two};
use super::entry::{Entry, check};
use super::program_text::launch;
use crate::conform::harness::{
    Context, ENDS_WITH_ANOTHER, Finding, Verdict, add_program, compile_add, ensure, equal, is_on_device,
    numbers, overwrite_freed, risky, upload_four, upload_to,
};
use crate::protobuf::DeviceAssignment;
use crate::requirements::Profile;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{Client, Code, Error, ExecuteOptions, LoadedExecutable, Program};

const DESTROY: &str = "PJRT_LoadedExecutable_Destroy";
const DESTROY_TEXT: &str =
    "Destroys one object. The caller owns each loaded executable that it compiled or loaded.";
const OVERRIDDEN: &str = "PJRT_Executable_DeserializeAndLoad_Args::overridden_serialized_compile_options";
const OVERRIDDEN_TEXT: &str = "A CompileOptionsProto to use in place of the stored one. JAX passes the device assignment of the current process.";
const IGNORE_OPTIONS: &str = "PJRT_Executable_DeserializeAndLoad give overridden_serialized_compile_options=null overridden_serialized_compile_options_size=0";

pub(super) const CHECKS: &[Entry] = &[
    check(
        "executables/destroying_one_of_two",
        "Of two executables of the same program, one runs after the other was destroyed.",
        destroyed_twin,
        "PJRT_LoadedExecutable_Execute when options>launch_id=811 since PJRT_LoadedExecutable_Destroy fail INTERNAL",
    )
    .header(DESTROY, DESTROY_TEXT)
    .needed_by(&[Profile::Jax, Profile::TorchXla])
    .also(&["failures/after_*"]),
    check(
        "executables/deleting_one_of_two",
        "Of two executables of the same program, one runs after PJRT_LoadedExecutable_Delete of the other.",
        deleted_twin,
        "PJRT_LoadedExecutable_Execute when options>launch_id=812 since PJRT_LoadedExecutable_Delete fail INTERNAL",
    )
    .header("PJRT_LoadedExecutable_Delete", "Drops `executable`'s reference to the internal runtime object."),
    check(
        "executables/two_references",
        "Each PJRT_Executable of PJRT_LoadedExecutable_GetExecutable is independent: after one was destroyed, the other and the loaded executable can be used.",
        two_references,
        "PJRT_LoadedExecutable_Execute when options>launch_id=813 since PJRT_Executable_Destroy fail INTERNAL",
    )
    .header("PJRT_LoadedExecutable_GetExecutable", "The returned executable should be freed by the caller with PJRT_Executable_Destroy.")
    .needed_by(&[Profile::Jax, Profile::TorchXla]),
    check(
        "executables/loaded_twice",
        "Of two executables that were loaded from the same bytes, one runs after the other was destroyed.",
        loaded_twice,
        "PJRT_LoadedExecutable_Execute when options>launch_id=814 since PJRT_LoadedExecutable_Destroy fail INTERNAL",
    )
    .header(DESTROY, DESTROY_TEXT)
    .used_by(&[Profile::Jax]),
    check(
        "executables/overridden_device",
        "An executable that is loaded with a device assignment runs on these devices, and not on those that it was compiled for.",
        overridden_device,
        IGNORE_OPTIONS,
    )
    .header(OVERRIDDEN, OVERRIDDEN_TEXT)
    .used_by(&[Profile::Jax])
    .since(64)
    .also(&["executables/overridden_portable", "executables/overridden_order"]),
    check(
        "executables/overridden_order",
        "Two replicas that are loaded with the reverse device assignment run on the devices in this order.",
        overridden_order,
        IGNORE_OPTIONS,
    )
    .header(OVERRIDDEN, OVERRIDDEN_TEXT)
    .used_by(&[Profile::Jax])
    .since(64)
    .also(&["executables/overridden_portable", "executables/overridden_device"]),
    check(
        "executables/overridden_portable",
        "An executable that is loaded with the option compile_portable_executable runs on the device that the host names.",
        overridden_portable,
        IGNORE_OPTIONS,
    )
    .header(OVERRIDDEN, OVERRIDDEN_TEXT)
    .used_by(&[Profile::Jax])
    .since(64)
    .also(&["executables/overridden_device", "executables/overridden_order"]),
    check(
        "executables/options_of_equal_programs",
        "A program that is compiled again with other compile options has those options, even if the plugin caches compiled programs.",
        cached,
        "PJRT_Client_Compile first_options",
    )
    .header("PJRT_Client_Compile_Args::compile_options", "Serialized CompileOptionsProto. Each call has its own options.")
    .needed_by(&[Profile::Jax, Profile::TorchXla])
    .also(&[
        "devices/copies_in_both_directions",
        "devices/device_assignment",
        "devices/order_of_devices",
        "devices/program_for_the_second",
        "devices/replicas_in_another_order",
        "devices/*",
        "compile/*",
        "execute/*",
        "executables/*",
    ]),
    check(
        "executables/default_assignment",
        "A program that is compiled without a device assignment runs on the devices of PJRT_Client_DefaultDeviceAssignment, for each number of replicas and partitions.",
        default_assignment,
        "PJRT_Client_DefaultDeviceAssignment when num_replicas=2 num_partitions=1 set default_assignment.0=1",
    )
    .host("JAX, jax/_src/interpreters/pxla.py, and xla/pjrt/pjrt_client.h, PjRtClient::GetDefaultDeviceAssignment", "Hosts compute the places of arguments from the default assignment, in row-major order of replicas and partitions.")
    .since(79)
    .used_by(&[Profile::Jax, Profile::TorchXla, Profile::Gomlx]),
];

/// Executes the program that adds.
fn runs(client: &Client, executable: &LoadedExecutable, id: i32) -> Verdict {
    let (x, y) = (upload_four(client, &[1.0, 2.0, 3.0, 4.0])?, upload_four(client, &[1.0, 2.0, 3.0, 4.0])?);
    let sum = numbers(launch(executable, &[&x, &y], id)?.output(0, 0)?)?;
    equal("the sum", sum, vec![2.0, 4.0, 6.0, 8.0])
}

/// Executes the program that adds, and describes its failure as a consequence of what happened before.
fn still_runs(client: &Client, executable: &LoadedExecutable, id: i32, what: &str) -> Verdict {
    runs(client, executable, id).map_err(|finding| match finding {
        Finding::Wrong(found) => Finding::Wrong(format!("{what}: {found}; {ENDS_WITH_ANOTHER}")),
        finding => finding,
    })
}

fn destroyed_twin(context: &Context) -> Verdict {
    let client = context.client()?;
    for first_goes in [true, false] {
        let (first, second) = (compile_add(&client)?, compile_add(&client)?);
        let (gone, stays) = if first_goes { (first, second) } else { (second, first) };
        // Programs that do not run at all have another fault.
        runs(&client, &gone, 811)?;
        drop(gone);
        let what = "after one of two executables of the same program was destroyed, the other does not run";
        still_runs(&client, &stays, 811, what)?;
        equal("PJRT_LoadedExecutable_IsDeleted of the other executable", stays.is_deleted()?, false)?;
    }
    Ok(())
}

fn deleted_twin(context: &Context) -> Verdict {
    let client = context.client()?;
    let (first, second) = (compile_add(&client)?, compile_add(&client)?);
    runs(&client, &first, 812)?;
    first.delete()?;
    let what =
        "PJRT_LoadedExecutable_IsDeleted of the second executable of a program after the first was deleted";
    equal(what, second.is_deleted()?, false)?;
    let what = "after one of two executables of the same program was deleted, the other does not run";
    still_runs(&client, &second, 812, what)
}

fn two_references(context: &Context) -> Verdict {
    let client = context.client()?;
    let loaded = compile_add(&client)?;
    runs(&client, &loaded, 813)?;
    let (first, second) = (loaded.executable()?, loaded.executable()?);
    let name = second.name()?;
    let why = format!(
        "two calls of PJRT_LoadedExecutable_GetExecutable for one program returned an executable each, and the host destroyed \
         one: {ENDS_WITH_ANOTHER}"
    );
    risky(&why, || {
        drop(first);
        let _memory = overwrite_freed();
        equal(
            "PJRT_Executable_Name after another reference to the executable was destroyed",
            second.name()?,
            name,
        )?;
        let what = "after a PJRT_Executable of a loaded executable was destroyed, the loaded executable does not run";
        still_runs(&client, &loaded, 813, what)?;
        equal("PJRT_Executable_NumOutputs after another reference was destroyed", second.num_outputs()?, 1)?;
        drop(second);
        let _more = overwrite_freed();
        still_runs(&client, &loaded, 813, what)
    })
}

fn loaded_twice(context: &Context) -> Verdict {
    let client = context.client()?;
    // No other check loads these bytes.
    let program = compile(&client, "loaded_twice", &CompileOptions::default())?;
    let bytes = program.executable()?.serialize()?.bytes;
    let first = client.deserialize(&bytes)?;
    let second = client.deserialize(&bytes).map_err(|error| {
        Finding::Wrong(format!(
            "the bytes of an executable cannot be loaded a second time: {error}. Each load returns an executable of its own, and \
             the plugin probably keeps something for each program that was loaded"
        ))
    })?;
    let x = upload_four(&client, &[1.0; 4])?;
    equal(
        "the sum of an executable that was loaded",
        numbers(&launch(&second, &[&x, &x], 814)?.take_output()?)?,
        vec![2.0; 4],
    )?;
    drop(first);
    let what = "after one of two executables that were loaded from the same bytes was destroyed, the other does not run";
    still_runs(&client, &second, 814, what)
}

/// Compiles the program that adds under this name. Programs with different names are different programs.
fn compile(client: &Client, name: &str, options: &CompileOptions) -> Result<LoadedExecutable, Finding> {
    let text = add_program("4x").replacen("@add", &format!("@{name}"), 1);
    client
        .compile(&Program::mlir(&text), &options.encode())
        .map_err(|error| Finding::Unsupported(format!("the program cannot be compiled: {error}")))
}

/// Returns the options of replicas on these devices.
fn on(devices: &[i64]) -> CompileOptions {
    CompileOptions { replicas: devices.len() as i64, devices: devices.to_vec(), ..CompileOptions::default() }
}

/// Returns the ids of the program's devices.
fn devices_of(loaded: &LoadedExecutable) -> Result<Vec<i64>, Error> {
    loaded.devices()?.into_iter().map(id_of).collect()
}

const IGNORED: &str =
    "the plugin probably ignores `overridden_serialized_compile_options`, which replace the stored options";

/// Loads the bytes of a program that was compiled for some devices onto others, and checks the devices that it
/// reports.
fn moved(client: &Client, bytes: &[u8], from: &[i64], to: &[i64]) -> Result<LoadedExecutable, Finding> {
    let loaded = client.deserialize_with(bytes, &on(to).encode()).map_err(|error| match error.code {
        Code::UNIMPLEMENTED => Finding::from(error),
        _ => Finding::Wrong(format!(
            "an executable that was compiled for the devices {from:?} cannot be loaded with compile options for {to:?}: {error}"
        )),
    })?;
    let got = devices_of(&loaded)?;
    ensure!(
        got == to,
        "an executable that was compiled for the devices {from:?} and loaded with compile options for {to:?} reports the \
         devices {got:?} in PJRT_LoadedExecutable_AddressableDevices; {IGNORED}"
    );
    if let Some(assignment) =
        loaded.device_assignment().ok().and_then(|it| DeviceAssignment::decode(&it.bytes))
    {
        ensure!(
            assignment.devices == to,
            "PJRT_LoadedExecutable_GetDeviceAssignment of an executable that was loaded with compile options for the \
             devices {to:?} returns {:?}; {IGNORED}",
            assignment.devices
        );
    }
    Ok(loaded)
}

/// Returns the bytes of the program that adds, compiled for these devices.
fn serialized(client: &Client, name: &str, devices: &[i64]) -> Result<Vec<u8>, Finding> {
    Ok(compile(client, name, &on(devices))?.executable()?.serialize()?.bytes)
}

fn overridden_device(context: &Context) -> Verdict {
    let client = context.client()?;
    let devices = two(&client)?;
    let ids = [id_of(devices[0])?, id_of(devices[1])?];
    let bytes = serialized(&client, "moved", &ids[..1])?;
    // The same bytes are loaded several times, each time with the options of this call.
    for to in [1, 0, 1] {
        let loaded = moved(&client, &bytes, &ids[..1], &ids[to..=to])?;
        let x = upload_to(&client, &[1.0; 4], devices[to])?.buffer;
        let output = launch(&loaded, &[&x, &x], 0)?.take_output()?;
        is_on_device("the output of a program with a new assignment", &output, devices[to], IGNORED)?;
        equal("the sum", numbers(&output)?, vec![2.0; 4])?;
    }
    let stored = devices_of(&client.deserialize(&bytes)?)?;
    equal(
        "the devices of an executable that is loaded without options after it was loaded with others",
        stored,
        ids[..1].to_vec(),
    )
}

fn overridden_order(context: &Context) -> Verdict {
    let client = context.client()?;
    let [first, second] = two(&client)?;
    let ids = [id_of(first)?, id_of(second)?];
    let bytes = serialized(&client, "reversed", &ids)?;
    moved(&client, &bytes, &ids, &[ids[1], ids[0]])?;
    moved(&client, &bytes, &ids, &ids).map(drop)
}

fn overridden_portable(context: &Context) -> Verdict {
    let client = context.client()?;
    let [first, second] = two(&client)?;
    let portable = CompileOptions { portable: true, ..CompileOptions::default() };
    let bytes = serialized(&client, "portable", &[id_of(first)?])?;
    // A program that does not run with the options in its bytes either has another fault.
    let x = upload_to(&client, &[1.0; 4], first)?.buffer;
    let output = launch(&client.deserialize(&bytes)?, &[&x, &x], 815)?.take_output()?;
    equal("the sum of a program that was loaded with its own options", numbers(&output)?, vec![2.0; 4])?;
    let loaded = client.deserialize_with(&bytes, &portable.encode())?;
    for device in [second, first] {
        let x = upload_to(&client, &[1.0; 4], device)?.buffer;
        let launched = loaded
            .launch(&[vec![&x, &x]], &ExecuteOptions::default(), Some(device), true)
            .map_err(|refused| {
                let id = device.description().and_then(|description| description.id()).unwrap_or(-1);
                Finding::Wrong(format!(
                    "the program does not run on the device {id}: {}; {IGNORED}",
                    refused.error
                ))
            })?;
        equal("the sum", numbers(launched.output(0, 0)?)?, vec![2.0; 4])?;
    }
    Ok(())
}

/// A description of what compile options determine.
#[derive(Debug, PartialEq)]
struct Compiled {
    devices: Vec<i64>,
    assignment: Option<DeviceAssignment>,
    logical_ids: Option<Vec<(i32, i32)>>,
    replicas: Option<usize>,
    partitions: Option<usize>,
    options: Option<Vec<u8>>,
}

impl Compiled {
    fn of(loaded: &LoadedExecutable) -> Result<Self, Error> {
        let program = loaded.executable()?;
        let assignment = loaded.device_assignment().ok();
        Ok(Self {
            devices: devices_of(loaded)?,
            assignment: assignment.and_then(|assignment| DeviceAssignment::decode(&assignment.bytes)),
            logical_ids: loaded.logical_ids().ok(),
            replicas: program.num_replicas().ok(),
            partitions: program.num_partitions().ok(),
            options: program.compile_options().ok().map(|options| options.bytes),
        })
    }
}

/// Compares what two programs report.
fn same(got: &Compiled, wanted: &Compiled, again: &str) -> Verdict {
    let changed = [
        ("devices", format!("{:?}", got.devices), format!("{:?}", wanted.devices)),
        ("device assignment", format!("{:?}", got.assignment), format!("{:?}", wanted.assignment)),
        ("logical device ids", format!("{:?}", got.logical_ids), format!("{:?}", wanted.logical_ids)),
        ("number of replicas", format!("{:?}", got.replicas), format!("{:?}", wanted.replicas)),
        ("number of partitions", format!("{:?}", got.partitions), format!("{:?}", wanted.partitions)),
        ("serialized compile options", format!("{:?}", got.options), format!("{:?}", wanted.options)),
    ];
    let Some((name, got, wanted)) = changed.iter().find(|(_, got, wanted)| got != wanted) else {
        return Ok(());
    };
    Err(Finding::Wrong(format!(
        "a program that is compiled {again}: the {name} of the second executable is {got}; expected {wanted}, as if the program \
         is compiled only with the second options. Probably, compile options are not part of the key of the plugin's cache \
         of compiled programs"
    )))
}

fn cached(context: &Context) -> Verdict {
    let client = context.client()?;
    let portable = CompileOptions { portable: true, ..CompileOptions::default() };
    let flags = CompileOptions {
        overrides: vec![("xla_embed_ir_in_executable".to_owned(), "true".to_owned())],
        ..CompileOptions::default()
    };
    let mut pairs = Vec::new();
    if let Ok([first, second]) = two(&client) {
        let (a, b) = (id_of(first)?, id_of(second)?);
        let partitions = CompileOptions { partitions: 2, devices: vec![a, b], ..CompileOptions::default() };
        pairs.extend([
            ("for the first device", on(&[a]), "for the second device", on(&[b])),
            ("for two devices", on(&[a, b]), "for the same devices in reverse", on(&[b, a])),
            ("for one device", on(&[a]), "for two replicas", on(&[a, b])),
            ("for two replicas", on(&[a, b]), "for two partitions", partitions),
        ]);
    }
    pairs.extend([
        ("without a device", CompileOptions::default(), "as a portable executable", portable),
        ("without flags", CompileOptions::default(), "with a flag", flags),
    ]);
    let mut compared = 0;
    for (index, (before, first, after, second)) in pairs.into_iter().enumerate() {
        // Programs of different names, of which a cache knows none.
        let (once, again) = (format!("once_{index}"), format!("again_{index}"));
        let Ok(alone) = compile(&client, &once, &second) else { continue };
        let Ok(_before) = compile(&client, &again, &first) else { continue };
        let both = compile(&client, &again, &second)?;
        same(&Compiled::of(&both)?, &Compiled::of(&alone)?, &format!("{before} and then {after}"))?;
        compared += 1;
    }
    match compared {
        0 => Err(Finding::Unsupported("no program can be compiled with two kinds of options".to_owned())),
        _ => Ok(()),
    }
}

fn default_assignment(context: &Context) -> Verdict {
    let client = context.client()?;
    two(&client)?;
    let count = client.addressable_devices()?.len().min(8) as i64;
    let shapes =
        (1..=count).flat_map(|replicas| (1..=count / replicas).map(move |partitions| (replicas, partitions)));
    let mut compared = 0;
    for (replicas, partitions) in shapes.filter(|(replicas, partitions)| replicas * partitions > 1) {
        let size = (replicas * partitions) as usize;
        let said = client.default_assignment(replicas as i32, partitions as i32, size)?;
        let said: Vec<i64> = said.into_iter().map(i64::from).collect();
        let text = add_program("4x").replacen(
            "@add",
            &format!("@add attributes {{mhlo.num_partitions = {partitions} : i32, mhlo.num_replicas = {replicas} : i32}}"),
            1,
        );
        let options = CompileOptions { replicas, partitions, ..CompileOptions::default() };
        let Ok(loaded) = client.compile(&Program::mlir(&text), &options.encode()) else { continue };
        let used = DeviceAssignment::decode(&loaded.device_assignment()?.bytes);
        let Some(used) = used.filter(|used| used.devices.len() == size) else { continue };
        // The message lists the devices partition by partition.
        let row_major: Vec<i64> = (0..replicas as usize)
            .flat_map(|replica| (0..partitions as usize).map(move |partition| (replica, partition)))
            .map(|(replica, partition)| used.devices[partition * replicas as usize + replica])
            .collect();
        let set = |of: &[i64]| of.iter().copied().collect::<HashSet<_>>();
        ensure!(
            row_major == said,
            "PJRT_Client_DefaultDeviceAssignment for {replicas} replicas and {partitions} partitions returns {said:?} (row-major, \
             one row per replica), but a program that is compiled without a device assignment runs on {row_major:?}; {}",
            match (set(&said).len() < said.len(), set(&said) == set(&row_major)) {
                (true, _) =>
                    "a device is in the assignment more than once; each runs one part of the program",
                (false, true) => "the plugin probably transposes or reorders one of them",
                (false, false) => "these are other devices",
            }
        );
        compared += 1;
    }
    match compared {
        0 => Err(Finding::Unsupported(
            "no program can be compiled for two devices without an assignment".to_owned(),
        )),
        _ => Ok(()),
    }
}
