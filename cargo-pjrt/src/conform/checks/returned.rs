//! Checks of the memory that functions return: calls for the same and for other objects do not change it.

use std::sync::Barrier;

use super::program_text::{compiled, sums};
use super::threads::on_threads;
use crate::conform::harness::{
    Check, Context, Finding, Source, Users, Verdict, compile_add, ensure, risky, upload_four,
};
use crate::requirements::Profile;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{
    Buffer, Client, DeviceDescription, ElementType, Error, Executable, HostArray, LoadedExecutable, Memory,
    ReadAgain, Topology,
};

/// A function that returns memory which the plugin owns.
struct Function {
    name: &'static str,
    /// The fields of the pointer and of the number of elements, and the size of an element in bytes.
    fields: &'static str,
    /// The sentence of the C header about the lifetime.
    text: &'static str,
    run: fn(&Context, How) -> Verdict,
}

const fn function(
    name: &'static str,
    fields: &'static str,
    text: &'static str,
    run: fn(&Context, How) -> Verdict,
) -> Function {
    Function { name, fields, text, run }
}

const OF_CLIENT: &str = "The memory is owned by the client and has its lifetime.";
const OF_OBJECT: &str =
    "The memory is owned by the object that the function is called for, and has its lifetime.";
const OF_DELETER: &str = "The bytes live until the caller calls their deleter.";

/// All functions that return memory. The size of a named value is that of `PJRT_NamedValue`.
const FUNCTIONS: &[Function] = &[
    function("PJRT_Client_Devices", "devices num_devices 8", OF_CLIENT, |c, how| {
        of_clients(c, how, Client::returned_devices)
    }),
    function(
        "PJRT_Client_AddressableDevices",
        "addressable_devices num_addressable_devices 8",
        OF_CLIENT,
        |c, how| of_clients(c, how, Client::returned_addressable_devices),
    ),
    function(
        "PJRT_Client_AddressableMemories",
        "addressable_memories num_addressable_memories 8",
        OF_CLIENT,
        |c, how| of_clients(c, how, Client::returned_memories),
    ),
    function("PJRT_Client_PlatformName", "platform_name platform_name_size 1", OF_CLIENT, |c, how| {
        of_clients(c, how, Client::returned_platform_name)
    }),
    function(
        "PJRT_Client_PlatformVersion",
        "platform_version platform_version_size 1",
        OF_CLIENT,
        |c, how| of_clients(c, how, Client::returned_platform_version),
    ),
    function("PJRT_Device_AddressableMemories", "memories num_memories 8", OF_OBJECT, of_devices),
    function("PJRT_DeviceDescription_Kind", "device_kind device_kind_size 1", OF_OBJECT, |c, how| {
        of_descriptions(c, how, |object| object.returned_kind())
    }),
    function(
        "PJRT_DeviceDescription_DebugString",
        "debug_string debug_string_size 1",
        OF_OBJECT,
        |c, how| of_descriptions(c, how, |object| object.returned_debug_string()),
    ),
    function("PJRT_DeviceDescription_ToString", "to_string to_string_size 1", OF_OBJECT, |c, how| {
        of_descriptions(c, how, |object| object.returned_to_string())
    }),
    function("PJRT_DeviceDescription_Attributes", "attributes num_attributes 56", OF_OBJECT, |c, how| {
        of_descriptions(c, how, |object| object.returned_attributes_and_names())
    }),
    function("PJRT_Memory_AddressableByDevices", "devices num_devices 8", OF_OBJECT, |c, how| {
        of_memories(c, how, |object| object.returned_devices())
    }),
    function("PJRT_Memory_Kind", "kind kind_size 1", OF_OBJECT, |c, how| {
        of_memories(c, how, |object| object.returned_kind())
    }),
    function("PJRT_Memory_DebugString", "debug_string debug_string_size 1", OF_OBJECT, |c, how| {
        of_memories(c, how, |object| object.returned_debug_string())
    }),
    function("PJRT_Memory_ToString", "to_string to_string_size 1", OF_OBJECT, |c, how| {
        of_memories(c, how, |object| object.returned_to_string())
    }),
    function("PJRT_Buffer_Dimensions", "dims num_dims 8", OF_OBJECT, |c, how| {
        of_buffers(c, how, Buffer::returned_dims)
    }),
    function("PJRT_Buffer_UnpaddedDimensions", "unpadded_dims num_dims 8", OF_OBJECT, |c, how| {
        of_buffers(c, how, Buffer::returned_unpadded_dims)
    }),
    function(
        "PJRT_LoadedExecutable_AddressableDevices",
        "addressable_devices num_addressable_devices 8",
        OF_OBJECT,
        |c, how| of_loaded(c, how, LoadedExecutable::returned_devices),
    ),
    function(
        "PJRT_LoadedExecutable_AddressableDeviceLogicalIds",
        "addressable_device_logical_ids num_addressable_device_logical_ids 8",
        OF_OBJECT,
        |c, how| of_loaded(c, how, LoadedExecutable::returned_logical_ids),
    ),
    function(
        "PJRT_LoadedExecutable_Fingerprint",
        "executable_fingerprint executable_fingerprint_size 1",
        OF_OBJECT,
        |c, how| of_loaded(c, how, LoadedExecutable::returned_fingerprint),
    ),
    function(
        "PJRT_LoadedExecutable_GetDeviceAssignment",
        "serialized_bytes serialized_bytes_size 1",
        OF_DELETER,
        |c, how| of_loaded(c, how, LoadedExecutable::returned_device_assignment),
    ),
    function("PJRT_Executable_Name", "executable_name executable_name_size 1", OF_OBJECT, |c, how| {
        of_programs(c, how, Executable::returned_name)
    }),
    function(
        "PJRT_Executable_Fingerprint",
        "executable_fingerprint executable_fingerprint_size 1",
        OF_OBJECT,
        |c, how| of_programs(c, how, Executable::returned_fingerprint),
    ),
    function("PJRT_Executable_OutputElementTypes", "output_types num_output_types 4", OF_OBJECT, |c, how| {
        of_programs(c, how, Executable::returned_output_types)
    }),
    function("PJRT_Executable_OutputDimensions", "dim_sizes num_outputs 8", OF_OBJECT, |c, how| {
        of_programs(c, how, Executable::returned_output_dims)
    }),
    function("PJRT_Executable_OutputMemoryKinds", "memory_kinds num_outputs 8", OF_OBJECT, |c, how| {
        of_programs(c, how, Executable::returned_output_kinds)
    }),
    function("PJRT_Executable_ParameterMemoryKinds", "memory_kinds num_parameters 8", OF_OBJECT, |c, how| {
        of_programs(c, how, Executable::returned_parameter_memory_kinds)
    }),
    function("PJRT_Executable_GetCostAnalysis", "properties num_properties 56", OF_OBJECT, |c, how| {
        of_programs(c, how, Executable::returned_costs_and_names)
    }),
    function(
        "PJRT_Executable_Serialize",
        "serialized_bytes serialized_bytes_size 1",
        OF_DELETER,
        |c, how| of_programs(c, how, Executable::returned_serialized),
    ),
    function(
        "PJRT_Executable_GetCompileOptions",
        "serialized_bytes serialized_bytes_size 1",
        OF_DELETER,
        |c, how| of_programs(c, how, Executable::returned_compile_options),
    ),
    function(
        "PJRT_TopologyDescription_PlatformName",
        "platform_name platform_name_size 1",
        OF_OBJECT,
        |c, how| of_topologies(c, how, Topology::returned_platform_name),
    ),
    function(
        "PJRT_TopologyDescription_PlatformVersion",
        "platform_version platform_version_size 1",
        OF_OBJECT,
        |c, how| of_topologies(c, how, Topology::returned_platform_version),
    ),
    function(
        "PJRT_TopologyDescription_GetDeviceDescriptions",
        "descriptions num_descriptions 8",
        OF_OBJECT,
        |c, how| of_topologies(c, how, Topology::returned_devices),
    ),
    function("PJRT_TopologyDescription_Attributes", "attributes num_attributes 56", OF_OBJECT, |c, how| {
        of_topologies(c, how, Topology::returned_attributes_and_names)
    }),
    function(
        "PJRT_TopologyDescription_Serialize",
        "serialized_bytes serialized_bytes_size 1",
        OF_DELETER,
        |c, how| of_topologies(c, how, Topology::returned_serialized),
    ),
];

/// Returns one check for each function.
pub(super) fn by_function() -> Vec<Check> {
    let check = |function: &'static Function| {
        Check {
        name: format!("ownership/{}", function.name),
        rule: format!(
            "The memory that {} returns does not change when the function is called again for the same object, or for \
             another one of its kind.",
            function.name
        ).into(),
        source: Source::Header { place: function.name, text: function.text },
        is_of_the_table: false,
        since: 0,
        needed_by: &[],
        users: Users::Callers(function.name),
        needed_since: 0,
        fault: format!("{} moving {}", function.name, function.fields).into(),
        also: ALSO.iter().find(|(name, _)| *name == function.name).map_or(&[], |(_, also)| also),
        run: Box::new(|context| (function.run)(context, How::Again)),
    }
    };
    FUNCTIONS.iter().map(check).chain([of_threads()]).collect()
}

/// The circumstances in which memory is read.
#[derive(Clone, Copy)]
enum How {
    /// The function is called again, for the same and for other objects.
    Again,
    /// Several threads call the function for these objects at once.
    AtOnce,
}

/// Returns the check that several threads ask for the memory of each function at once.
fn of_threads() -> Check {
    Check {
        name: "threads/returned_memory".to_owned(),
        rule: "Several threads can ask for each text and list that the plugin owns at the same time, and each gets the right one, which stays.".into(),
        source: Source::Host {
            place: "JAX, jaxlib/py_client.cc and jaxlib/pjit.cc",
            text: "Releases Python's lock during calls of the plugin, so that threads of one process call each function at the same time.",
        },
        is_of_the_table: false,
        since: 0,
        needed_by: &[],
        users: Users::These(&Profile::ALL),
        needed_since: 0,
        fault: "PJRT_Memory_ToString at_once set to_string_size=1".into(),
        also: &[],
        run: Box::new(of_all_at_once),
    }
}

fn of_all_at_once(context: &Context) -> Verdict {
    // Without a client, no function applies.
    drop(context.client()?);
    for function in FUNCTIONS {
        // A plugin may lack the function.
        if let Err(Finding::Wrong(why)) = (function.run)(context, How::AtOnce) {
            return Err(Finding::Wrong(format!("{}: {why}. {}", function.name, function.text)));
        }
    }
    Ok(())
}

/// Other checks that notice if a function reuses its memory.
const ALSO: &[(&str, &[&str])] = &[
    ("PJRT_Client_AddressableDevices", &["execute/by_many_threads", "upload/by_many_threads"]),
    ("PJRT_Buffer_Dimensions", &["buffer/dims_stay"]),
];

/// Checks the memory that a function returns for these objects.
fn keeps<T: Sync, M: ReadAgain>(
    objects: &[T],
    how: How,
    get: impl Fn(&T) -> Result<M, Error> + Sync,
) -> Verdict {
    if let How::AtOnce = how {
        return risky("several threads called a function that returns memory at once", || {
            at_once(objects, get)
        });
    }
    risky(
        "the plugin probably freed memory that it had returned for one object when the function was called again",
        || keeps_each(objects, get),
    )
}

/// Checks that several threads get the same as one thread does, and that it stays.
fn at_once<T: Sync, M: ReadAgain>(objects: &[T], get: impl Fn(&T) -> Result<M, Error> + Sync) -> Verdict {
    const THREADS: u8 = 4;
    const ROUNDS: usize = 6;
    let read = |object: &T| get(object)?.read_again();
    let expected = objects.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    // A list that contains addresses may be a new one each time.
    let again = objects.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let is_right = |at: usize, bytes: &[u8]| bytes == expected[at] || again[at] != expected[at];
    let start = Barrier::new(usize::from(THREADS));
    on_threads(THREADS, |thread| {
        let (mut verdict, mut held) = (Ok(()), Vec::new());
        for round in 0..ROUNDS {
            // A thread that failed still takes part, because the others wait for it.
            start.wait();
            verdict = verdict.and_then(|()| {
                let at = (usize::from(thread) + round) % objects.len().max(1);
                let Some(object) = objects.get(at) else { return Ok(()) };
                let memory = get(object)?;
                let bytes = memory.read_again()?;
                ensure!(
                    is_right(at, &bytes) && bytes.len() == expected[at].len(),
                    "{THREADS} threads called the function at once, and one got {} bytes, {:?}; alone, a thread gets {} bytes, {:?}. The \
                     plugin probably builds the result in memory that all threads share",
                    bytes.len(),
                    String::from_utf8_lossy(&bytes[..bytes.len().min(60)]),
                    expected[at].len(),
                    String::from_utf8_lossy(&expected[at][..expected[at].len().min(60)])
                );
                held.push((memory, bytes));
                Ok(())
            });
        }
        for (memory, bytes) in &held {
            let changed = "what the function returned to a thread changed while other threads called it; the plugin probably builds the \
                           result in memory that all threads share, or frees it in the next call";
            verdict = verdict.and_then(|()| {
                ensure!(memory.read_again()? == *bytes, "{changed}");
                Ok(())
            });
        }
        verdict
    })
}

/// Checks that the memory of the first object is the same after the function was called again for it, then for
/// other objects, and after the memory of those was given back.
fn keeps_each<T, M: ReadAgain>(objects: &[T], get: impl Fn(&T) -> Result<M, Error>) -> Verdict {
    let Some(owner) = objects.first() else {
        return Err(Finding::NotApplicable("there is no such object".to_owned()));
    };
    let memory = get(owner)?;
    let before = memory.read_again()?;
    let is_same = |when: &str| -> Verdict {
        let after = memory.read_again()?;
        let changed = after.iter().zip(&before).filter(|(after, before)| after != before).count();
        ensure!(
            changed == 0,
            "{changed} of the {} bytes that the function returned for one object changed in place {when}; the plugin \
             probably builds the result in memory that all calls share, or frees it in the next call. The result belongs \
             to its own object",
            before.len()
        );
        Ok(())
    };
    let mut others = vec![get(owner)?];
    is_same("when it was called again for the same object")?;
    for other in &objects[1..] {
        others.push(get(other)?);
        is_same("when it was called for another object")?;
    }
    drop(others);
    is_same("when the results of later calls were freed")?;
    match before.is_empty() {
        // Other checks tell whether there must be something.
        true => Err(Finding::NotApplicable("the function returned nothing".to_owned())),
        false => Ok(()),
    }
}

fn of_clients<M: ReadAgain>(context: &Context, how: How, get: fn(&Client) -> Result<M, Error>) -> Verdict {
    // A plugin may have no second client; another check tests that.
    let clients: Vec<Client> = std::iter::once(context.client()?).chain(context.client()).collect();
    keeps(&clients, how, get)
}

fn of_devices(context: &Context, how: How) -> Verdict {
    let client = context.client()?;
    keeps(&client.addressable_devices()?, how, |device| device.returned_memories())
}

fn of_descriptions<M: ReadAgain>(
    context: &Context,
    how: How,
    get: fn(&DeviceDescription<'_>) -> Result<M, Error>,
) -> Verdict {
    let client = context.client()?;
    let devices = client.devices()?;
    let all = devices.iter().map(|device| device.description()).collect::<Result<Vec<_>, _>>()?;
    keeps(&all, how, get)
}

fn of_memories<M: ReadAgain>(
    context: &Context,
    how: How,
    get: fn(&Memory<'_>) -> Result<M, Error>,
) -> Verdict {
    let client = context.client()?;
    let mut memories = vec![client.device()?.default_memory()?];
    memories.extend(client.memories()?);
    keeps(&memories, how, get)
}

fn of_buffers<M: ReadAgain>(context: &Context, how: How, get: fn(&Buffer) -> Result<M, Error>) -> Verdict {
    let client = context.client()?;
    let first = upload_four(&client, &[1.0; 4])?;
    let array = HostArray::new(&[0; 24], ElementType::F32, &[2, 3]);
    let second = client.upload(&array, Some(client.device()?), None)?.buffer;
    keeps(&[first, second], how, get)
}

/// Compiles programs that differ in all that functions return: the program that adds, and as far as the plugin
/// supports them, one with two outputs, with other compile options, and on another device.
fn different_programs(client: &Client) -> Result<Vec<LoadedExecutable>, Error> {
    let text = sums(&["2x3xf32"], &[("%p0", "%p0", "2x3xf32"); 2]).replacen("@sums", "@another_program", 1);
    let last = client.addressable_devices()?.last().copied().map(super::devices::id_of).transpose()?;
    let options = [
        CompileOptions { devices: last.into_iter().collect(), ..CompileOptions::default() },
        CompileOptions { portable: true, ..CompileOptions::default() },
        CompileOptions::default(),
    ];
    let others = options.iter().filter_map(|options| compiled(client, &text, options).ok());
    Ok(std::iter::once(compile_add(client)?).chain(others).collect())
}

fn of_loaded<M: ReadAgain>(
    context: &Context,
    how: How,
    get: fn(&LoadedExecutable) -> Result<M, Error>,
) -> Verdict {
    let client = context.client()?;
    keeps(&different_programs(&client)?, how, get)
}

fn of_programs<M: ReadAgain>(
    context: &Context,
    how: How,
    get: fn(&Executable) -> Result<M, Error>,
) -> Verdict {
    let client = context.client()?;
    let loaded = different_programs(&client)?;
    let programs = loaded.iter().map(LoadedExecutable::executable).collect::<Result<Vec<_>, _>>()?;
    keeps(&programs, how, get)
}

/// A function that returns memory of an executable.
type OfProgram = fn(&Executable) -> Result<Box<dyn ReadAgain>, Error>;

/// The functions that return memory which belongs to an executable.
const OF_PROGRAM: &[(&str, OfProgram)] = &[
    ("PJRT_Executable_Name", |it| Ok(Box::new(it.returned_name()?))),
    ("PJRT_Executable_Fingerprint", |it| Ok(Box::new(it.returned_fingerprint()?))),
    ("PJRT_Executable_OutputElementTypes", |it| Ok(Box::new(it.returned_output_types()?))),
    ("PJRT_Executable_OutputDimensions", |it| Ok(Box::new(it.returned_output_dims()?))),
    ("PJRT_Executable_OutputMemoryKinds", |it| Ok(Box::new(it.returned_output_kinds()?))),
    ("PJRT_Executable_ParameterMemoryKinds", |it| Ok(Box::new(it.returned_parameter_memory_kinds()?))),
    ("PJRT_Executable_GetCostAnalysis", |it| Ok(Box::new(it.returned_costs_and_names()?))),
    ("PJRT_Executable_Serialize", |it| Ok(Box::new(it.returned_serialized()?))),
    ("PJRT_Executable_GetCompileOptions", |it| Ok(Box::new(it.returned_compile_options()?))),
];

/// Checks that what functions return about an executable stays when the loaded executable ends that it came from, at the same
/// address and by a new call.
pub(super) fn of_an_outliving_program(context: &Context) -> Verdict {
    let client = context.client()?;
    for kept in 0..different_programs(&client)?.len() {
        let loaded = different_programs(&client)?.swap_remove(kept);
        let program = loaded.executable()?;
        // A plugin may lack some of the functions.
        let get = |function: &OfProgram| -> Option<(Box<dyn ReadAgain>, Vec<u8>)> {
            let memory = function(&program).ok()?;
            let bytes = memory.read_again().ok()?;
            Some((memory, bytes))
        };
        let before: Vec<_> = OF_PROGRAM
            .iter()
            .filter_map(|(name, function)| Some((*name, function, get(function)?)))
            .collect();
        drop(loaded);
        let _others = different_programs(&client)?;
        risky("the plugin probably frees what belongs to an executable with the loaded executable", || {
            for (name, function, (memory, bytes)) in &before {
                let how = "when the loaded executable was destroyed from which PJRT_LoadedExecutable_GetExecutable had made the executable; \
                           the plugin probably keeps it in the loaded executable";
                ensure!(
                    memory.read_again()? == *bytes,
                    "the memory that {name} had returned changed in place {how}"
                );
                let is_address = name.ends_with("MemoryKinds") || name.ends_with("CostAnalysis");
                let again = function(&program)?.read_again()?;
                ensure!(is_address || again == *bytes, "{name} returns something else than before {how}");
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn of_topologies<M: ReadAgain>(
    context: &Context,
    how: How,
    get: fn(&Topology) -> Result<M, Error>,
) -> Verdict {
    let clients: Vec<Client> = std::iter::once(context.client()?).chain(context.client()).collect();
    let topologies = clients.iter().map(Client::topology).collect::<Result<Vec<_>, _>>()?;
    keeps(&topologies, how, get)
}
