//! Checks that functions which describe an object return the same each time, whatever happened in between.

use std::collections::HashMap;
use std::time::Instant;

use super::devices::id_of;
use super::entry::{ALL, Entry, check};
use super::program_text::{compiled, sums};
use super::samples::Shaped;
use crate::conform::harness::{
    Context, Finding, STALE, Verdict, any_error, compile_add, ensure, is_brief, numbers, patience,
    upload_four,
};
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{
    Buffer, Client, Device, DeviceDescription, ElementType, Error, Executable, LoadedExecutable, Memory,
};

const STAY: &str = "PJRT_Client, PJRT_Device, PJRT_Memory, PJRT_Executable, PJRT_Buffer";
const STAY_TEXT: &str = "The functions describe an object that does not change: XLA's client and JAX read each value once and keep it.";

const DESTROY_TEXT: &str = "The function frees the object: a later object can have its address.";

pub(super) const CHECKS: &[Entry] = &[
    check(
        "reports/on_the_second_call",
        "Each function that describes a client, device, memory, topology, program or array returns the same on the second and the third call.",
        |context| stay(context, "on the second call", |_, _| Ok(())),
        "PJRT_Client_ProcessIndex after PJRT_Client_ProcessIndex set process_index=5",
    )
    .header(STAY, STAY_TEXT)
    .needed_by(ALL),
    check(
        "reports/after_a_failure",
        "Each function that describes an object returns the same after calls that failed.",
        |context| stay(context, "after calls that failed", after_failures),
        "PJRT_Executable_NumReplicas failed PJRT_LoadedExecutable_Execute set num_replicas=3",
    )
    .header(STAY, STAY_TEXT)
    .needed_by(ALL),
    check(
        "reports/after_other_objects",
        "Each function that describes an object returns the same after other arrays and programs were created, used, deleted and destroyed.",
        |context| stay(context, "after other arrays and programs came and went", after_others),
        "PJRT_Executable_OutputDimensions since PJRT_Buffer_Delete set num_outputs=0",
    )
    .header(STAY, STAY_TEXT)
    .needed_by(ALL),
    check(
        "reports/after_another_client",
        "Each function that describes an object returns the same after a second client was created, used and destroyed.",
        |context| stay(context, "after a second client was created, used and destroyed", after_client),
        "PJRT_Memory_Kind_Id since PJRT_Client_Destroy set kind_id=77",
    )
    .header(STAY, STAY_TEXT)
    .needed_by(ALL),
    check(
        "reports/of_new_arrays",
        "Each function that describes an array, or reads it, answers for it, although an earlier one had its address.",
        of_new_arrays,
        "PJRT_Buffer_OnDeviceSizeInBytes by_address on_device_size_in_bytes",
    )
    .header("PJRT_Buffer_Destroy", DESTROY_TEXT)
    .needed_by(ALL),
    check(
        "reports/of_new_programs",
        "Each function that describes a program answers for this program, although an earlier one had the same address.",
        of_new_programs,
        "PJRT_Executable_NumOutputs by_address num_outputs",
    )
    .header("PJRT_Executable_Destroy", DESTROY_TEXT)
    .needed_by(ALL)
    .also(&["*"]),
    check(
        "reports/of_two_clients",
        "Two clients with the same options describe their devices, memories and topologies in the same way.",
        of_two_clients,
        "PJRT_Client_PlatformVersion clients 2 set platform_version_size-1",
    )
    .host("JAX, jax/_src/cache_key.py", "Versions and the topology are part of the key of the persistent compilation cache, which finds no program if they differ.")
    .also(&["topology/serialized_by_two_clients"]),
];

/// The answer of a function for an object: the function, the object, and the value or the error.
struct Report {
    function: &'static str,
    object: String,
    value: String,
}

/// The reports about several objects.
#[derive(Default)]
struct Reports(Vec<Report>);

impl Reports {
    fn add<T: std::fmt::Debug>(&mut self, function: &'static str, object: &str, got: Result<T, Error>) {
        let value = match got {
            Ok(value) => format!("{value:?}"),
            // The text of an error may contain a time or an address.
            Err(error) => format!("an error with the code {}", error.code),
        };
        self.0.push(Report { function, object: object.to_owned(), value });
    }

    fn client(&mut self, client: &Client) -> Result<(), Error> {
        self.add("PJRT_Client_PlatformName", "the client", client.platform_name());
        self.add("PJRT_Client_PlatformVersion", "the client", client.platform_version());
        self.add("PJRT_Client_ProcessIndex", "the client", client.process_index());
        let ids = |devices: Vec<Device<'_>>| devices.into_iter().map(id_of).collect::<Result<Vec<_>, _>>();
        self.add("PJRT_Client_Devices", "the client", client.devices().and_then(ids));
        self.add("PJRT_Client_AddressableDevices", "the client", client.addressable_devices().and_then(ids));
        let kinds =
            |memories: Vec<Memory<'_>>| memories.iter().map(Memory::kind).collect::<Result<Vec<_>, _>>();
        self.add("PJRT_Client_AddressableMemories", "the client", client.memories().and_then(kinds));
        let count = client.addressable_devices()?.len();
        self.add(
            "PJRT_Client_DefaultDeviceAssignment",
            "the client",
            client.default_assignment(count as i32, 1, count),
        );
        for (index, device) in client.devices()?.into_iter().enumerate() {
            self.device(client, device, &format!("device {index}"))?;
        }
        for (index, memory) in client.memories()?.into_iter().enumerate() {
            self.memory(memory, &format!("memory {index}"));
        }
        self.topology(client);
        Ok(())
    }

    fn device(&mut self, client: &Client, device: Device<'_>, name: &str) -> Result<(), Error> {
        self.add("PJRT_Device_IsAddressable", name, device.is_addressable());
        self.add("PJRT_Device_LocalHardwareId", name, device.local_hardware_id());
        let kinds =
            |memories: Vec<Memory<'_>>| memories.iter().map(Memory::kind).collect::<Result<Vec<_>, _>>();
        self.add("PJRT_Device_AddressableMemories", name, device.memories().and_then(kinds));
        self.add("PJRT_Device_DefaultMemory", name, device.default_memory().and_then(|memory| memory.kind()));
        self.add("PJRT_Device_GetAttributes", name, device.attributes());
        let description = device.description()?;
        // The objects of devices differ between clients.
        let which = |found| if found == device { "the client's device" } else { "another object" };
        let found = description.id().and_then(|id| client.lookup_device(id));
        self.add("PJRT_Client_LookupDevice", name, found.map(which));
        let found = device.local_hardware_id().and_then(|id| client.lookup_addressable_device(id));
        self.add("PJRT_Client_LookupAddressableDevice", name, found.map(which));
        self.description(description, name);
        Ok(())
    }

    fn description(&mut self, description: DeviceDescription<'_>, name: &str) {
        self.add("PJRT_DeviceDescription_Id", name, description.id());
        self.add("PJRT_DeviceDescription_ProcessIndex", name, description.process_index());
        self.add("PJRT_DeviceDescription_Kind", name, description.kind());
        self.add("PJRT_DeviceDescription_DebugString", name, description.debug_string());
        self.add("PJRT_DeviceDescription_ToString", name, description.to_text());
        self.add("PJRT_DeviceDescription_Attributes", name, description.attributes());
        self.add("PJRT_DeviceDescription_MemoryDescriptions", name, description.memory_kinds());
    }

    fn memory(&mut self, memory: Memory<'_>, name: &str) {
        self.add("PJRT_Memory_Id", name, memory.id());
        self.add("PJRT_Memory_Kind", name, memory.kind());
        self.add("PJRT_Memory_Kind_Id", name, memory.kind_id());
        self.add("PJRT_Memory_DebugString", name, memory.debug_string());
        self.add("PJRT_Memory_ToString", name, memory.to_text());
        let ids = |devices: Vec<Device<'_>>| devices.into_iter().map(id_of).collect::<Result<Vec<_>, _>>();
        self.add("PJRT_Memory_AddressableByDevices", name, memory.devices().and_then(ids));
    }

    fn topology(&mut self, client: &Client) {
        let Ok(topology) = client.topology() else { return };
        let name = "the topology";
        self.add("PJRT_TopologyDescription_PlatformName", name, topology.platform_name());
        self.add("PJRT_TopologyDescription_PlatformVersion", name, topology.platform_version());
        self.add("PJRT_TopologyDescription_Attributes", name, topology.attributes());
        self.add("PJRT_TopologyDescription_Fingerprint", name, topology.fingerprint());
        for (index, description) in topology.devices().unwrap_or_default().into_iter().enumerate() {
            self.description(description, &format!("device {index} of the topology"));
        }
    }

    fn program(&mut self, loaded: &LoadedExecutable, name: &str) -> Result<(), Error> {
        let program = loaded.executable()?;
        for (function, describe) in super::reloaded::REPORTS {
            self.add(function, name, describe(loaded, &program));
        }
        self.add("PJRT_Executable_SizeOfGeneratedCodeInBytes", name, program.code_size());
        self.add("PJRT_LoadedExecutable_Fingerprint", name, loaded.fingerprint());
        self.add("PJRT_Executable_GetCompileOptions", name, program.compile_options());
        Ok(())
    }

    fn array(&mut self, array: &Buffer, name: &str) {
        for (function, describe) in OF_ARRAYS {
            self.add(function, name, describe(array));
        }
    }

    /// Compares with reports about the same objects.
    fn check(&self, before: &Self, when: &str) -> Verdict {
        for (now, before) in self.0.iter().zip(&before.0) {
            ensure!(
                now.value == before.value,
                "{} of {} is {} {when}; expected {}, as it was reported before",
                now.function,
                now.object,
                now.value,
                before.value
            );
        }
        ensure!(self.0.len() == before.0.len(), "the numbers of devices and memories differ {when}");
        Ok(())
    }
}

/// A function that describes an object as text.
type Describe<T> = fn(&T) -> Result<String, Error>;

/// The functions that describe or read an array.
const OF_ARRAYS: &[(&str, Describe<Buffer>)] = &[
    ("PJRT_Buffer_ElementType", |array| array.element_type().map(shown)),
    ("PJRT_Buffer_Dimensions", |array| array.dims().map(shown)),
    ("PJRT_Buffer_UnpaddedDimensions", |array| array.unpadded_dims().map(shown)),
    ("PJRT_Buffer_DynamicDimensionIndices", |array| array.dynamic_dims().map(shown)),
    ("PJRT_Buffer_GetMemoryLayout", |array| array.memory_layout().map(shown)),
    ("PJRT_Buffer_OnDeviceSizeInBytes", |array| array.on_device_size().map(shown)),
    ("PJRT_Buffer_Device", |array| array.device().and_then(id_of).map(shown)),
    ("PJRT_Buffer_Memory", |array| array.memory().and_then(|memory| memory.kind())),
    ("PJRT_Buffer_IsDeleted", |array| array.is_deleted().map(shown)),
    ("PJRT_Buffer_IsOnCpu", |array| array.is_on_cpu().map(shown)),
    ("PJRT_Buffer_UnsafePointer", |array| array.unsafe_pointer().map(shown)),
    ("PJRT_Layouts_PJRT_Buffer_MemoryLayout", |array| array.layout_text().map(shown)),
    ("PJRT_Buffer_ToHostBuffer", |array| array.read().map(shown)),
];

fn shown<T: std::fmt::Debug>(value: T) -> String {
    format!("{value:?}")
}

/// The cause of an answer that is that of no other object.
const OF_SOMETHING_ELSE: &str = "that is what it is for equal objects; the plugin probably makes it of something that the object \
                                 does not determine, such as an address, a time or a counter";

/// Creates objects of several kinds in turn for each function, and compares what it says of each object with what it says of one
/// of the same kind that exists at the same time as all others. Each object is destroyed right before the next one is created,
/// which then probably has its address. `create` takes the number of the kind, and `names` are the names of the kinds.
fn in_turn<T>(
    names: &[String],
    create: impl Fn(usize) -> Result<T, Finding>,
    functions: &[(&str, impl Fn(&T) -> Result<String, Error>)],
) -> Verdict {
    const ROUNDS: usize = 2;
    let two = |kind: usize| Ok([create(kind)?, create(kind)?]);
    let kept = (0..names.len()).map(two).collect::<Result<Vec<_>, Finding>>()?;
    for (function, describe) in functions {
        let expected: Vec<_> =
            kept.iter().map(|two| two.each_ref().map(|object| describe(object).ok())).collect();
        for kind in (0..ROUNDS).flat_map(|_| 0..names.len()) {
            // A plugin may lack a function.
            let [Some(first), Some(second)] = &expected[kind] else { continue };
            let now = {
                let object = create(kind)?;
                describe(&object)?
            };
            // Some answers, such as addresses, differ between equal objects.
            if now == *first || first != second {
                continue;
            }
            let is_of_another = expected.iter().flatten().flatten().any(|other| *other == now);
            let cause = if is_of_another { STALE } else { OF_SOMETHING_ELSE };
            return Err(Finding::Wrong(format!(
                "{function} of {} is {now}; expected {first}: {cause}",
                names[kind]
            )));
        }
    }
    Ok(())
}

fn of_new_arrays(context: &Context) -> Verdict {
    let client = context.client()?;
    let device = client.device()?;
    // Each follows one that differs only in its elements, and one of another shape.
    let samples: Vec<Shaped> = [&[4][..], &[4], &[2, 3], &[2, 3], &[], &[]]
        .into_iter()
        .enumerate()
        .map(|(number, dims)| Shaped::new(ElementType::F32, dims, number))
        .collect();
    let create = |kind: usize| {
        let array = client.upload(&samples[kind].host(), Some(device), None)?.buffer;
        array.ready()?.wait()?;
        Ok(array)
    };
    let names: Vec<String> = samples.iter().map(|sample| format!("an array {sample}")).collect();
    in_turn(&names, create, OF_ARRAYS)
}

fn of_new_programs(context: &Context) -> Verdict {
    let client = context.client()?;
    let (vector, matrix) = ("4xf32", "2x3xf32");
    let one = sums(&[vector], &[("%p0", "%p0", vector)]);
    let three = [("%p0", "%p1", vector), ("%p2", "%p2", matrix), ("%p1", "%p0", vector)];
    let texts = [one, sums(&[vector, vector, matrix], &three)];
    let names = ["a program of one output", "a program of three outputs"].map(str::to_owned);
    let compile = |kind: usize| compiled(&client, &texts[kind], &CompileOptions::default());
    let programs = [compile(0)?, compile(1)?];
    // So far, no program has the address of an earlier one.
    for (program, expected) in programs.iter().zip(OUTPUTS) {
        let found = program.executable()?.num_outputs()?;
        ensure!(
            found == expected,
            "PJRT_Executable_NumOutputs of a program of {expected} outputs is {found}; expected {expected}: each element of the \
             tuple in which a compiler may collect the outputs is one"
        );
    }
    let executable = |kind: usize| Ok((&programs[kind], programs[kind].executable()?));
    let of_executables = super::reloaded::REPORTS.iter().map(|(function, describe)| {
        let describe = |(loaded, program): &(&LoadedExecutable, Executable)| describe(loaded, program);
        (*function, describe)
    });
    in_turn(&names, executable, &of_executables.collect::<Vec<_>>())?;
    // A compilation allocates so much that a new program seldom has the address of the last one, but one of several has that of
    // one of several.
    let (begun, mut before, mut reused) = (Instant::now(), HashMap::new(), 0);
    for round in 0..if is_brief() { 1 } else { ROUNDS_OF_PROGRAMS } {
        if reused >= ENOUGH || begun.elapsed() > patience() / 20 {
            break;
        }
        let kinds = (0..6).map(|number| (number + round) % 2);
        let programs = kinds.clone().map(compile).collect::<Result<Vec<_>, _>>()?;
        for (program, kind) in programs.iter().zip(kinds) {
            let program = program.executable()?;
            let (found, expected) = (program.num_outputs()?, OUTPUTS[kind]);
            ensure!(
                found == expected,
                "PJRT_Executable_NumOutputs of {} is {found}; expected {expected}: {STALE}",
                names[kind]
            );
            let old = before.insert(program.address(), kind);
            reused += usize::from(old.is_some_and(|old| old != kind));
        }
    }
    Ok(())
}

/// The numbers of outputs of the two programs.
const OUTPUTS: [usize; 2] = [1, 3];

/// The maximum number of rounds in which programs are compiled until one has the address of another one.
const ROUNDS_OF_PROGRAMS: usize = 60;

/// The number of programs with the address of a different one after which no more are compiled.
const ENOUGH: usize = 3;

/// The objects that functions describe.
struct Described {
    programs: Vec<(LoadedExecutable, String)>,
    arrays: Vec<(Buffer, String)>,
    /// The last field, because the client is destroyed after its objects.
    client: Client,
}

impl Described {
    fn new(context: &Context) -> Result<Self, Error> {
        let client = context.client()?;
        let mut programs = vec![(compile_add(&client)?, "the program that adds".to_owned())];
        let types = ["2x3xf32", "f32"];
        let text = sums(&types, &[("%p1", "%p1", types[1]), ("%p0", "%p0", types[0])]);
        if let Ok(program) = compiled(&client, &text, &CompileOptions::default()) {
            programs.push((program, "a program of two outputs".to_owned()));
        }
        let mut arrays = Vec::new();
        for (index, device) in client.addressable_devices()?.into_iter().enumerate() {
            for dims in [&[][..], &[4], &[2, 3]] {
                let sample = Shaped::new(ElementType::F32, dims, index);
                let array = client.upload(&sample.host(), Some(device), None)?.buffer;
                array.ready()?.wait()?;
                arrays.push((array, format!("an array {sample} on device {index}")));
            }
        }
        let x = upload_four(&client, &[1.0; 4])?;
        let output = programs[0].0.run(&[&x, &x])?.take_output()?;
        output.ready()?.wait()?;
        arrays.push((output, "an output".to_owned()));
        Ok(Self { programs, arrays, client })
    }

    fn reports(&self) -> Result<Reports, Error> {
        let mut reports = Reports::default();
        reports.client(&self.client)?;
        for (program, name) in &self.programs {
            reports.program(program, name)?;
        }
        for (array, name) in &self.arrays {
            reports.array(array, name);
        }
        Ok(reports)
    }
}

/// Compares the reports before and after something that does not change the objects.
fn stay(
    context: &Context,
    when: &str,
    happens: impl Fn(&Context, &Described) -> Result<(), Finding>,
) -> Verdict {
    let described = Described::new(context)?;
    let before = described.reports()?;
    for _ in 0..2 {
        happens(context, &described)?;
        described.reports()?.check(&before, when)?;
    }
    Ok(())
}

fn after_failures(_: &Context, described: &Described) -> Result<(), Finding> {
    let Described { client, programs, .. } = described;
    drop(any_error(client));
    let x = upload_four(client, &[1.0; 4])?;
    // An execution with too few arguments.
    drop(programs[0].0.run(&[&x]));
    x.delete()?;
    drop(programs[0].0.run(&[&x, &x]));
    drop(
        client.compile(&pjrt_testing::host::Program::mlir("no program"), &CompileOptions::default().encode()),
    );
    Ok(())
}

fn after_others(_: &Context, described: &Described) -> Result<(), Finding> {
    let client = &described.client;
    let text =
        sums(&["3xf32"; 3], &[("%p0", "%p1", "3xf32"), ("%p1", "%p2", "3xf32"), ("%p2", "%p0", "3xf32")]);
    let other = compiled(client, &text, &CompileOptions::default());
    let (x, gone) = (upload_four(client, &[1.0; 4])?, upload_four(client, &[2.0; 4])?);
    let launched = described.programs[0].0.run(&[&x, &gone])?;
    numbers(launched.output(0, 0)?)?;
    gone.delete()?;
    drop((other, launched, x));
    Ok(())
}

fn after_client(context: &Context, described: &Described) -> Result<(), Finding> {
    let second = context
        .client()
        .map_err(|error| Finding::NotApplicable(format!("there can be only one client: {error}")))?;
    let x = upload_four(&second, &[1.0; 4])?;
    numbers(compile_add(&second)?.run(&[&x, &x])?.output(0, 0)?)?;
    drop(x);
    drop(second);
    // The first client is still in use.
    drop(upload_four(&described.client, &[1.0; 4])?);
    Ok(())
}

fn of_two_clients(context: &Context) -> Verdict {
    let (mut of_first, mut of_second) = (Reports::default(), Reports::default());
    let first = context.client()?;
    of_first.client(&first)?;
    let second = context
        .client()
        .map_err(|error| Finding::NotApplicable(format!("there can be only one client: {error}")))?;
    of_second.client(&second)?;
    of_second.check(&of_first, "for the second of two clients with the same options")
}
