//! Checks of memory that the plugin owns and the host reads: it remains valid until its owner is destroyed.

use super::entry::{ALL, Entry, check};
use super::program_text::{compiled, sums};
use crate::conform::harness::{Context, Finding, Verdict, compile_add, ensure, equal};
use crate::host::{Client, Error, Executable, LoadedExecutable, Returned, ReturnedBytes};
use crate::protobuf::CompileOptions;
use crate::requirements::Profile;

pub(super) const CHECKS: &[Entry] = &[
    check(
        "ownership/error_messages",
        "Each error has its own message, which remains valid until the error is destroyed, even if other calls fail in the meantime.",
        error_messages,
        "PJRT_Error_Message static_message",
    )
    .header("PJRT_Error_Message_Args::message", "Has the lifetime of `error`.")
    .used_by(ALL)
    .also(&["error/own_functions_agree"]),
    check(
        "ownership/serialized_program",
        "The bytes of PJRT_Executable_Serialize remain valid until their deleter is called, even if the executable is destroyed before.",
        serialized,
        "PJRT_Executable_Serialize dies_with_the_executable",
    )
    .header("PJRT_Executable_Serialize_Args::serialized_bytes", "Lives only as long as serialized_executable.")
    .used_by(&[Profile::Jax]),
    check(
        "ownership/compile_options",
        "The bytes of PJRT_Executable_GetCompileOptions remain valid until their deleter is called, even if the executable is destroyed before.",
        compile_options,
        "PJRT_Executable_GetCompileOptions dies_with_the_executable",
    )
    .header("PJRT_Executable_GetCompileOptions_Args::serialized_bytes", "Lives only as long as serialized_compile_options."),
    check(
        "ownership/device_assignment",
        "The bytes of PJRT_LoadedExecutable_GetDeviceAssignment remain valid until their deleter is called, even if the program is destroyed before.",
        device_assignment,
        "PJRT_LoadedExecutable_GetDeviceAssignment dies_with_the_executable",
    )
    .header("PJRT_LoadedExecutable_GetDeviceAssignment", "The serialized data is valid as long as `serialized_device_assignment` is alive.")
    .since(79),
    check(
        "ownership/devices",
        "The list of PJRT_Client_Devices belongs to its client, and lives as long as the client.",
        |context| of_client(context, Client::returned_devices),
        "PJRT_Client_Devices moving devices num_devices 8",
    )
    .host("JAX, PjRtCApiClient::InitDevicesAndMemorySpaces", "Reads the list while it calls other functions, and keeps its elements.")
    .used_by(ALL),
    check(
        "ownership/addressable_devices",
        "The list of PJRT_Client_AddressableDevices belongs to its client, and lives as long as the client.",
        |context| of_client(context, Client::returned_addressable_devices),
        "PJRT_Client_AddressableDevices moving addressable_devices num_addressable_devices 8",
    )
    .host("JAX, PjRtCApiClient::InitDevicesAndMemorySpaces", "Reads the list while it calls other functions, and keeps its elements.")
    .used_by(ALL)
    .also(&["execute/by_many_threads", "upload/by_many_threads"]),
    check(
        "ownership/memories",
        "The list of PJRT_Client_AddressableMemories belongs to its client, and lives as long as the client.",
        |context| of_client(context, Client::returned_memories),
        "PJRT_Client_AddressableMemories moving addressable_memories num_addressable_memories 8",
    )
    .host("JAX, PjRtCApiClient::InitDevicesAndMemorySpaces", "Reads the list while it calls other functions, and keeps its elements.")
    .used_by(&[Profile::Jax]),
    check(
        "ownership/platform_name",
        "The name of the platform lives as long as the client.",
        |context| of_client(context, Client::returned_platform_name),
        "PJRT_Client_PlatformName moving platform_name platform_name_size 1",
    )
    .header("PJRT_Client_PlatformName_Args::platform_name", "Has the same lifetime as `client`. It is owned by `client`.")
    .used_by(ALL),
    check(
        "ownership/memories_of_a_device",
        "The list of PJRT_Device_AddressableMemories belongs to its device, and lives as long as the client.",
        memories_of_devices,
        "PJRT_Device_AddressableMemories moving memories num_memories 8",
    )
    .header("PJRT_Device_AddressableMemories_Args::memories", "Has the lifetime of `device`.")
    .used_by(&[Profile::Jax]),
    check(
        "ownership/devices_of_a_memory",
        "The list of PJRT_Memory_AddressableByDevices belongs to its memory, and lives as long as the client.",
        devices_of_memories,
        "PJRT_Memory_AddressableByDevices moving devices num_devices 8",
    )
    .host("JAX, PjRtCApiClient::InitDevicesAndMemorySpaces", "Reads the list of each memory while it looks up devices.")
    .used_by(&[Profile::Jax]),
    check(
        "ownership/memory_kinds",
        "The string of PJRT_Memory_Kind belongs to its memory, and lives as long as the client.",
        kinds_of_memories,
        "PJRT_Memory_Kind moving kind kind_size 1",
    )
    .header("PJRT_Memory_Kind_Args::kind", "`memory_kind` has same lifetime as `memory`.")
    .used_by(&[Profile::Jax]),
    check(
        "ownership/devices_of_a_program",
        "The list of PJRT_LoadedExecutable_AddressableDevices belongs to its program, and lives as long as the program.",
        |context| of_loaded(context, LoadedExecutable::returned_devices),
        "PJRT_LoadedExecutable_AddressableDevices moving addressable_devices num_addressable_devices 8",
    )
    .host("JAX, PjRtCApiLoadedExecutable::InitDevices", "Reads the list while it looks up each device.")
    .used_by(&[Profile::Jax]),
    check(
        "ownership/name_of_a_program",
        "The string of PJRT_Executable_Name belongs to its executable, and lives as long as the executable.",
        |context| of_program(context, Executable::returned_name),
        "PJRT_Executable_Name moving executable_name executable_name_size 1",
    )
    .header("PJRT_Executable_Name_Args::executable_name", "Has the same lifetime as `executable`. It is owned by `executable`.")
    .used_by(&[Profile::Jax]),
    check(
        "ownership/output_types",
        "The list of PJRT_Executable_OutputElementTypes belongs to its executable, and lives as long as the executable.",
        |context| of_program(context, Executable::returned_output_types),
        "PJRT_Executable_OutputElementTypes moving output_types num_output_types 4",
    )
    .host("JAX, PjRtCApiExecutable::GetOutputElementTypes", "Reads the list after the call.")
    .used_by(&[Profile::Jax]),
    check(
        "ownership/output_dims",
        "The lists of PJRT_Executable_OutputDimensions belong to their executable, and live as long as the executable.",
        |context| of_program(context, Executable::returned_output_ranks),
        "PJRT_Executable_OutputDimensions moving dim_sizes num_outputs 8",
    )
    .header("PJRT_Executable_OutputDimensions_Args::dim_sizes", "Has length `num_outputs`.")
    .used_by(&[Profile::Jax]),
    check(
        "ownership/output_memory_kinds",
        "The list of PJRT_Executable_OutputMemoryKinds belongs to its executable, and lives as long as the executable.",
        |context| of_program(context, Executable::returned_output_memory_kinds),
        "PJRT_Executable_OutputMemoryKinds moving memory_kinds num_outputs 8",
    )
    .header("PJRT_Executable_OutputMemoryKinds_Args::memory_kinds", "Has length `num_outputs`.")
    .used_by(&[Profile::Jax]),
];

fn error_messages(context: &Context) -> Verdict {
    let client = context.client()?;
    let unaccepted =
        || Finding::NotApplicable("PJRT_Client_LookupDevice finds devices that no one has".to_owned());
    let first = client.held_lookup_error(-2)?.ok_or_else(unaccepted)?;
    let before = first.message()?;
    let second = client.held_lookup_error(-12_345_678)?.ok_or_else(unaccepted)?;
    let other = second.message()?;
    if before == other {
        return Err(Finding::NotApplicable(format!("two errors have the same message, {before:?}")));
    }
    for (after, how) in [
        (first.message()?, "at the address that PJRT_Error_Message returned"),
        (first.message_again()?, "by a second call of PJRT_Error_Message"),
    ] {
        ensure!(
            after == before,
            "the message of an error was {before:?}, and is {after:?} {how} after a second error was created; the plugin \
             probably keeps all messages in one buffer. `message` has the lifetime of `error`"
        );
    }
    drop(first);
    equal("the message of the second error after the first was destroyed", second.message()?, other)
}

/// Checks that bytes are the same before and after something happens to their owner.
fn stay_after(bytes: &ReturnedBytes, what: &str, end: impl FnOnce()) -> Verdict {
    let before = bytes.read()?;
    end();
    let after = bytes.read()?;
    ensure!(
        after == before,
        "{} of the {} bytes of {what} changed when their executable was destroyed before the deleter was called; the plugin \
         probably keeps the bytes in the executable. The bytes live as long as the object that the deleter destroys",
        after.iter().zip(&before).filter(|(after, before)| after != before).count(),
        before.len()
    );
    Ok(())
}

fn serialized(context: &Context) -> Verdict {
    let client = context.client()?;
    let loaded = compile_add(&client)?;
    let executable = loaded.executable()?;
    let bytes = executable.returned_serialized()?;
    stay_after(&bytes, "PJRT_Executable_Serialize", || {
        drop(executable);
        drop(loaded);
        drop(compile_add(&client));
    })?;
    Ok(())
}

fn compile_options(context: &Context) -> Verdict {
    let client = context.client()?;
    let loaded = compile_add(&client)?;
    let executable = loaded.executable()?;
    let bytes = executable.returned_compile_options()?;
    stay_after(&bytes, "PJRT_Executable_GetCompileOptions", || {
        drop(executable);
        drop(loaded);
        drop(compile_add(&client));
    })
}

fn device_assignment(context: &Context) -> Verdict {
    let client = context.client()?;
    let loaded = compile_add(&client)?;
    let bytes = loaded.returned_device_assignment()?;
    stay_after(&bytes, "PJRT_LoadedExecutable_GetDeviceAssignment", || {
        drop(loaded);
        drop(compile_add(&client));
    })
}

/// Checks that a list is the same after the function was called for the same and for other objects.
fn stays<T>(owner: &T, others: &[T], get: impl Fn(&T) -> Result<Returned, Error>) -> Verdict {
    let list = get(owner)?;
    let before = list.read()?;
    for other in std::iter::once(owner).chain(others) {
        get(other)?;
        let after = list.read()?;
        ensure!(
            after == before,
            "what the function returned for the first object changed in place from {before:?} to {after:?} (bytes) when it \
             was called again; the plugin probably builds the result in memory that all calls share, or frees it in the \
             next call. The result is owned by its object and has its lifetime"
        );
    }
    match before.is_empty() {
        // Other checks tell whether there must be something.
        true => Err(Finding::NotApplicable("the function returned nothing".to_owned())),
        false => Ok(()),
    }
}

fn of_client(context: &Context, get: fn(&Client) -> Result<Returned, Error>) -> Verdict {
    let client = context.client()?;
    // A plugin may have no second client; another check tests that.
    let others: Vec<Client> = context.client().into_iter().collect();
    stays(&client, &others, get)
}

fn memories_of_devices(context: &Context) -> Verdict {
    let client = context.client()?;
    let devices = client.addressable_devices()?;
    stays(&client.device()?, &devices, |device| device.returned_memories())
}

fn devices_of_memories(context: &Context) -> Verdict {
    let client = context.client()?;
    stays(&client.device()?.default_memory()?, &client.memories()?, |memory| memory.returned_devices())
}

fn kinds_of_memories(context: &Context) -> Verdict {
    let client = context.client()?;
    stays(&client.device()?.default_memory()?, &client.memories()?, |memory| memory.returned_kind())
}

/// Compiles the program that adds, and another one with two outputs if the plugin supports it.
fn two_programs(client: &Client) -> Result<(LoadedExecutable, Vec<LoadedExecutable>), Error> {
    let text = sums(&["2x3xf32"], &[("%p0", "%p0", "2x3xf32"); 2]);
    let other = compiled(client, &text, &CompileOptions::default()).ok();
    Ok((compile_add(client)?, other.into_iter().collect()))
}

fn of_loaded(context: &Context, get: fn(&LoadedExecutable) -> Result<Returned, Error>) -> Verdict {
    let client = context.client()?;
    let (loaded, others) = two_programs(&client)?;
    stays(&loaded, &others, get)
}

fn of_program(context: &Context, get: fn(&Executable) -> Result<Returned, Error>) -> Verdict {
    let client = context.client()?;
    let (loaded, others) = two_programs(&client)?;
    let programs = others.iter().map(LoadedExecutable::executable).collect::<Result<Vec<_>, _>>()?;
    stays(&loaded.executable()?, &programs, get)
}
