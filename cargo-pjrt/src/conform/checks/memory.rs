//! Checks of memories and memory statistics.

use std::collections::HashSet;

use super::devices::id_of;
use super::entry::{Entry, check};
use super::program_text::{compiled, launch, with_main};
use crate::conform::harness::{
    Context, Finding, LEAKED_OUTPUT, Verdict, WRONG_DEFAULT, add_program, compile_add, count_of, ensure,
    equal, narrowest, numbers, patience, performing, refused, upload_four,
};
use crate::requirements::Profile;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{Buffer, Client, Code, ElementType, Error, HostArray, Memory, Program, UserData};

pub(super) const CHECKS: &[Entry] = &[
    check(
        "memory/every_device_has_one",
        "Every addressable device has at least one memory.",
        exist,
        "PJRT_Device_AddressableMemories set num_memories=0",
    )
    .host("XLA's client, PjRtCApiDevice::default_memory_space", "JAX transfers each array to the default memory of a device.")
    .used_by(&[Profile::Zml])
    .needed_by(&[Profile::Jax, Profile::TorchXla])
    .also(&["extension/memory_descriptions", "memory/the_default_is_one_of_them"]),
    check(
        "memory/the_default_is_one_of_them",
        "A device's default memory is among its memories.",
        default,
        "PJRT_Device_DefaultMemory since PJRT_Device_AddressableMemories set memory+8",
    )
    .header("PJRT_Device_DefaultMemory", "Returns the default memory of a device, i.e. which memory data processed by this device should be stored in by default.")
    .needed_by(&[Profile::Jax, Profile::TorchXla, Profile::Zml]),
    check(
        "memory/kinds_are_named",
        "A memory's kind is not empty.",
        kind,
        "PJRT_Memory_Kind set kind_size=0",
    )
    .header("PJRT_Memory_Kind", "A platform-dependent string that uniquely identifies the kind of the memory.")
    .needed_by(&[Profile::Jax, Profile::Zml])
    .also(&[
        "compile/output_memory_kinds",
        "extension/default_memory",
        "extension/memory_descriptions",
        "memory/kind_ids_tell_kinds_apart",
        "memory/one_of_a_kind",
        "programs/memory_kinds_of_two_outputs",
    ]),
    check(
        "memory/one_of_a_kind",
        "A device has at most one memory of each kind, because hosts select memories by kind.",
        one_of_a_kind,
        "PJRT_Memory_Kind set kind=text:same kind_size=4",
    )
    .host("JAX, jaxlib/py_device.cc, PyDevice::Memory", "Selects the memory of a device by its kind, and fails if the device has two of the kind.")
    .also(&[
        "compile/output_memory_kinds",
        "extension/default_memory",
        "extension/memory_descriptions",
        "memory/kind_ids_tell_kinds_apart",
        "programs/memory_kinds_of_two_outputs",
    ]),
    check("memory/ids_differ", "Ids differ between memories of a kind.", ids, "PJRT_Memory_Id fail INTERNAL")
    .header("PJRT_Memory_Id", "The ID of this memory. IDs are unique among memories of this type."),
    check(
        "memory/kind_ids_tell_kinds_apart",
        "Memories have the same kind id if and only if they have the same kind.",
        kind_ids,
        "PJRT_Memory_Kind_Id set kind_id=7",
    )
    .header("PJRT_Memory_Kind_Id", "A platform-dependent ID that uniquely identifies the kind of the memory.")
    .also(&["topology/canonical_shape", "topology/memory_kind_ids"])
    .since(48),
    check(
        "memory/knows_its_devices",
        "A device is among the devices that can use its memories.",
        devices,
        "PJRT_Memory_AddressableByDevices set num_devices=0",
    )
    .header("PJRT_Memory_AddressableByDevices", "Returns the devices that can address this memory.")
    .needed_by(&[Profile::Jax, Profile::TorchXla, Profile::Zml]),
    check(
        "memory/debug_string",
        "The debug string of a memory is not empty.",
        debug_string,
        "PJRT_Memory_DebugString set debug_string_size=0",
    )
    .header("PJRT_Memory_DebugString", "Should be verbose enough to describe the current memory unambiguously.")
    .needed_by(&[Profile::Jax]),
    check(
        "memory/to_string",
        "The short description of a memory is not empty.",
        to_text,
        "PJRT_Memory_ToString set to_string_size=0",
    )
    .header("PJRT_Memory_ToString", "Debug string suitable for reading by end users, should be reasonably terse.")
    .needed_by(&[Profile::Jax]),
    check(
        "memory/keeps_data_under_two_keys",
        "A memory stores user data of the host under several keys: JAX uses two.",
        two_keys,
        "PJRT_Device_DefaultMemory user_data forget",
    )
    .header("PJRT_Memory_FunctionTable::set_user_data", "Attaches user data to the PJRT_Memory implementation, under a key.")
    .used_by(&[Profile::Jax])
    .since(105)
    .also(&["memory/gives_data_back_at_the_end", "memory/gives_data_back_when_it_is_replaced"]),
    check(
        "memory/gives_data_back_when_it_is_replaced",
        "User data is destroyed when other data replaces it under its key.",
        replaced,
        "PJRT_Device_DefaultMemory user_data leak",
    )
    .header("PJRT_Memory_FunctionTable::set_user_data", "The caller passes a destructor of the data.")
    .since(105)
    .also(&["memory/gives_data_back_at_the_end"]),
    check(
        "memory/gives_data_back_at_the_end",
        "User data is destroyed once, at the latest with the client.",
        at_the_end,
        "PJRT_Client_Destroy skip",
    )
    .header("PJRT_Memory_FunctionTable::set_user_data", "The caller passes a destructor of the data.")
    .since(105),
    check(
        "memory/stats_count_buffers",
        "bytes_in_use grows by the size of a program's output, and shrinks when the output is destroyed or deleted.",
        stats,
        "PJRT_Device_MemoryStats set bytes_in_use=1000",
    )
    .header("PJRT_Device_MemoryStats_Args::bytes_in_use", "Number of bytes in use.")
    .also(&["memory/peak_is_not_below_use", "memory/stats_are_of_each_device"]),
    check(
        "memory/stats_say_a_limit",
        "bytes_limit is set: PyTorch/XLA reads it without checking that it is.",
        limit,
        "PJRT_Device_MemoryStats set bytes_limit_is_set=0",
    )
    .host("PyTorch/XLA, pjrt_computation_client.cpp, PjRtComputationClient::GetMemoryInfo", "Reads bytes_limit without testing whether it is set."),
    check(
        "memory/peak_is_not_below_use",
        "peak_bytes_in_use is at least bytes_in_use, and does not fall when arrays are destroyed.",
        peak,
        "PJRT_Device_MemoryStats set peak_bytes_in_use_is_set=1 peak_bytes_in_use=-1",
    )
    .header("PJRT_Device_MemoryStats_Args::peak_bytes_in_use", "The peak bytes in use."),
    check(
        "memory/stats_stay_when_peaks_are_cleared",
        "PJRT_Device_ClearMemoryStats changes no statistic but the peaks: not the bytes in use, which fall when arrays are destroyed, nor the limit, and nothing of another device.",
        cleared,
        "PJRT_Device_MemoryStats since PJRT_Device_ClearMemoryStats set bytes_in_use=0",
    )
    .header("PJRT_Device_ClearMemoryStats", "Resets the peak values of the statistics. Memory that is allocated stays in use."),
    check(
        "memory/stats_are_of_each_device",
        "bytes_in_use of a device grows with an array on this device, and not with one on another device.",
        stats_of_each,
        "PJRT_Device_MemoryStats set bytes_in_use=1000",
    )
    .header("PJRT_Device_MemoryStats", "Device memory/allocator statistics of the device.")
    .also(&[
        "memory/stats_count_buffers",
        "memory/peak_is_not_below_use",
        "memory/stats_stay_when_peaks_are_cleared",
        "last_device/memory",
    ]),
    check(
        "memory/too_large_array",
        "An array that is larger than bytes_limit is refused with RESOURCE_EXHAUSTED, in the call or through its event.",
        too_large,
        "PJRT_Client_CreateUninitializedBuffer when shape_num_dims=1 code INTERNAL",
    )
    .host(EXHAUSTED, EXHAUSTED_TEXT)
    .since(69),
    check(
        "memory/too_large_upload",
        "An upload that does not fit into memory is refused with RESOURCE_EXHAUSTED, in the call or through an event, and the client can be used afterwards.",
        too_large_upload,
        "PJRT_Client_BufferFromHostBuffer when num_byte_strides=1 byte_strides.0=0 code INTERNAL",
    )
    .host(EXHAUSTED, EXHAUSTED_TEXT)
    .used_by(&[Profile::Jax, Profile::TorchXla]),
    check(
        "memory/too_large_output",
        "A program whose output does not fit into memory is refused with RESOURCE_EXHAUSTED, by the compilation, the execution or an event, and the client can be used afterwards.",
        too_large_output,
        "PJRT_LoadedExecutable_Execute when options>launch_id=871 code INTERNAL",
    )
    .host(EXHAUSTED, EXHAUSTED_TEXT)
    .used_by(&[Profile::Jax, Profile::TorchXla]),
    check(
        "memory/overflowing_sizes",
        "An array whose number of elements or bytes is 2^64 or more is refused by each function that creates arrays from dimensions, and the client can be used afterwards.",
        |context| overflowing(context, OVERFLOWING),
        "PJRT_Client_CreateUninitializedBuffer when shape_dims.0=4294967296 give shape_dims=zeros",
    )
    .host(EXHAUSTED, EXHAUSTED_TEXT),
    check(
        "memory/negative_dims",
        "Negative dimensions are refused by each function that creates arrays from dimensions, also if their product is positive.",
        |context| overflowing(context, NEGATIVE),
        "PJRT_Client_CreateUninitializedBuffer when shape_dims.0=-4 give shape_dims=zeros",
    )
    .advice("No array has a negative dimension. An error reveals the caller's mistake before memory is accessed."),
    check(
        "memory/large_dims_of_programs",
        "PJRT_Executable_OutputDimensions returns dimensions of more than 32 bits.",
        large_dims_of_programs,
        "PJRT_Executable_OutputDimensions low_32_bits dims 1",
    )
    .header("PJRT_Executable_OutputDimensions_Args::dims", "The dimensions are of type int64_t."),
    check(
        "memory/large_dims_of_arrays",
        "PJRT_Buffer_Dimensions returns dimensions of more than 32 bits.",
        large_dims_of_arrays,
        "PJRT_Client_CreateErrorBuffer when shape_num_dims=1 give shape_dims.0=3",
    )
    .header("PJRT_Buffer_Dimensions_Args::dims", "The dimensions are of type int64_t.")
    .since(82)
    .also(&["placement/errors"]),
];

/// The host that depends on the code of an exhausted memory.
const EXHAUSTED: &str = "DeePMD-kit on JAX, deepmd/jax/utils/auto_batch_size.py, AutoBatchSize.is_oom_error, and torch_tpu, torch_tpu/common/error_utils.cc, IsXlaOomError";
const EXHAUSTED_TEXT: &str = "Recognize exhausted memory by this code, which begins the message of JAX's exception; DeePMD-kit then tries a smaller batch.";

/// The number of elements of an array of f32 that fits into no memory.
const TOO_MANY: i64 = 1 << 44;

/// A dimension of more than 32 bits.
const LARGE: i64 = (1 << 32) + 3;

fn exist(context: &Context) -> Verdict {
    for device in context.client()?.addressable_devices()? {
        ensure!(!device.memories()?.is_empty(), "a device has no memory");
    }
    Ok(())
}

/// Names the device that a memory belongs to, if another one does.
fn owner_of(client: &Client, memory: Memory<'_>) -> Result<String, Finding> {
    for device in client.addressable_devices()? {
        if device.memories()?.contains(&memory) {
            return Ok(format!(": it is a memory of the device {}", id_of(device)?));
        }
    }
    Ok(": no device of the client has it".to_owned())
}

fn default(context: &Context) -> Verdict {
    let client = context.client()?;
    for device in client.addressable_devices()? {
        let memories = device.memories()?;
        let default = device.default_memory()?;
        ensure!(
            memories.contains(&default),
            "PJRT_Device_DefaultMemory of the device {} {WRONG_DEFAULT}{}",
            id_of(device)?,
            owner_of(&client, default)?
        );
    }
    Ok(())
}

fn kind(context: &Context) -> Verdict {
    for memory in context.client()?.memories()? {
        ensure!(!memory.kind()?.is_empty(), "a kind is empty");
    }
    Ok(())
}

fn one_of_a_kind(context: &Context) -> Verdict {
    let mut seen = HashSet::new();
    let client = context.client()?;
    let memories = client.device()?.memories()?;
    for memory in &memories {
        let kind = memory.kind()?;
        ensure!(seen.insert(kind.clone()), "a device has two memories of kind {kind}");
    }
    if memories.len() < 2 {
        return Err(Finding::NotApplicable("the device has only one memory".to_owned()));
    }
    Ok(())
}

fn ids(context: &Context) -> Verdict {
    let mut seen = HashSet::new();
    for memory in context.client()?.memories()? {
        let (kind, id) = (memory.kind()?, memory.id()?);
        ensure!(seen.insert((kind.clone(), id)), "two memories of kind {kind} have the id {id}");
    }
    Ok(())
}

fn kind_ids(context: &Context) -> Verdict {
    let client = context.client()?;
    let memories = client.memories()?;
    for first in &memories {
        for second in &memories {
            let (same_kind, same_id) =
                (first.kind()? == second.kind()?, first.kind_id()? == second.kind_id()?);
            ensure!(
                same_kind == same_id,
                "memories of kind {} and {} have the kind ids {} and {}",
                first.kind()?,
                second.kind()?,
                first.kind_id()?,
                second.kind_id()?
            );
        }
    }
    if memories.len() < 2 {
        return Err(Finding::NotApplicable("there is only one memory".to_owned()));
    }
    Ok(())
}

fn devices(context: &Context) -> Verdict {
    let client = context.client()?;
    for device in client.addressable_devices()? {
        for memory in device.memories()? {
            let devices = memory.devices()?;
            ensure!(
                devices.contains(&device),
                "PJRT_Memory_AddressableByDevices of a memory that PJRT_Device_AddressableMemories of a device lists returns {}, and not \
                 this device",
                count_of(devices.len(), "device")
            );
        }
    }
    Ok(())
}

fn debug_string(context: &Context) -> Verdict {
    for memory in context.client()?.memories()? {
        ensure!(!memory.debug_string()?.is_empty(), "the string is empty");
    }
    Ok(())
}

fn to_text(context: &Context) -> Verdict {
    for memory in context.client()?.memories()? {
        ensure!(!memory.to_text()?.is_empty(), "the string is empty");
    }
    Ok(())
}

static KEYS: [u8; 2] = [0; 2];

fn no_table() -> Finding {
    Finding::Unsupported("memories have no functions of their own".to_owned())
}

fn two_keys(context: &Context) -> Verdict {
    let client = context.client()?;
    let memory = client.device()?.default_memory()?;
    let (first, second) = (UserData::default(), UserData::default());
    memory.set_user_data(&KEYS[0], &first).ok_or_else(no_table)?;
    memory.set_user_data(&KEYS[1], &second).ok_or_else(no_table)?;
    let kept = memory.has_user_data(&KEYS[0], &first) == Some(true);
    ensure!(
        kept && memory.has_user_data(&KEYS[1], &second) == Some(true),
        "the data under one of two keys is missing"
    );
    Ok(())
}

fn replaced(context: &Context) -> Verdict {
    let client = context.client()?;
    let memory = client.device()?.default_memory()?;
    let (first, second) = (UserData::default(), UserData::default());
    memory.set_user_data(&KEYS[0], &first).ok_or_else(no_table)?;
    memory.set_user_data(&KEYS[0], &second).ok_or_else(no_table)?;
    equal("the number of times that replaced data was destroyed", first.dropped(), 1)?;
    equal("the number of times that current data was destroyed", second.dropped(), 0)
}

fn at_the_end(context: &Context) -> Verdict {
    let client = context.client()?;
    let data = UserData::default();
    client.device()?.default_memory()?.set_user_data(&KEYS[0], &data).ok_or_else(no_table)?;
    drop(client);
    let once = pjrt_testing::host::eventually(patience(), || data.dropped() > 0);
    ensure!(once, "the data was not destroyed although the client was");
    equal("the number of times that the data was destroyed", data.dropped(), 1)
}

fn stats(context: &Context) -> Verdict {
    // This is an output, because an uploaded array may use the host's memory.
    const COUNT: i64 = 1 << 18;
    const SIZE: i64 = 4 * COUNT;
    let client = context.client()?;
    let device = client.device()?;
    let program = add_program(&format!("{COUNT}x"));
    let executable = client.compile(&Program::mlir(&program), &CompileOptions::default().encode())?;
    let zeros = vec![0; SIZE as usize];
    let array = HostArray::new(&zeros, ElementType::F32, &[COUNT]);
    let x = client.upload(&array, Some(device), None)?.buffer;
    x.ready()?.wait()?;
    let before = device.memory_stats()?.bytes_in_use;
    let launched = executable.run(&[&x, &x])?;
    launched.output(0, 0)?.ready()?.wait()?;
    let with = device.memory_stats()?.bytes_in_use;
    ensure!(
        with >= before + SIZE,
        "bytes_in_use went from {before} to {with} with an output of {SIZE} bytes"
    );
    drop(launched);
    let shrunk = pjrt_testing::host::eventually(patience(), || {
        device.memory_stats().is_ok_and(|stats| stats.bytes_in_use <= with - SIZE)
    });
    ensure!(
        shrunk,
        "bytes_in_use did not shrink from {with} after an output of {SIZE} bytes was destroyed: {LEAKED_OUTPUT}"
    );
    let launched = executable.run(&[&x, &x])?;
    let output = launched.output(0, 0)?;
    output.ready()?.wait()?;
    output.delete()?;
    let shrunk = pjrt_testing::host::eventually(patience(), || {
        device.memory_stats().is_ok_and(|stats| stats.bytes_in_use <= with - SIZE)
    });
    ensure!(
        shrunk,
        "bytes_in_use did not shrink from {with} after the output was deleted: PJRT_Buffer_Delete frees the device memory, and \
         does not wait for PJRT_Buffer_Destroy"
    );
    Ok(())
}

/// Formats a statistic.
fn shown(value: Option<i64>) -> String {
    value.map_or_else(|| "not set".to_owned(), |value| value.to_string())
}

fn limit(context: &Context) -> Verdict {
    for device in context.client()?.addressable_devices()? {
        let stats = device.memory_stats()?;
        ensure!(
            stats.bytes_limit.is_some_and(|limit| limit > 0),
            "bytes_limit is {}; expected a positive number",
            shown(stats.bytes_limit)
        );
    }
    Ok(())
}

fn peak(context: &Context) -> Verdict {
    let client = context.client()?;
    for device in client.addressable_devices()? {
        let bytes = vec![1; 1 << 20];
        let element_type = narrowest(&client)?;
        let dims = [bytes.len() as i64 / element_type.byte_size() as i64];
        let array = HostArray::new(&bytes, element_type, &dims);
        let buffer = client.upload(&array, Some(device), None)?.buffer;
        buffer.ready()?.wait()?;
        let with = device.memory_stats()?;
        let Some(peak) = with.peak_bytes_in_use else { continue };
        let used = with.bytes_in_use;
        ensure!(peak >= used, "peak_bytes_in_use is {peak}; expected at least bytes_in_use, which is {used}");
        drop(buffer);
        pjrt_testing::host::eventually(SHORT, || {
            device.memory_stats().is_ok_and(|stats| stats.bytes_in_use < used)
        });
        let after = device.memory_stats()?.peak_bytes_in_use;
        ensure!(
            after.is_some_and(|after| after >= peak),
            "peak_bytes_in_use went from {peak} to {after:?} when an array was destroyed; a peak does not fall"
        );
    }
    Ok(())
}

fn cleared(context: &Context) -> Verdict {
    const SIZE: i64 = 1 << 20;
    let client = context.client()?;
    let devices = client.addressable_devices()?;
    let all = || devices.iter().map(|device| device.memory_stats()).collect::<Result<Vec<_>, _>>();
    let bytes = vec![1; SIZE as usize];
    for (index, device) in devices.iter().enumerate() {
        let element_type = narrowest(&client)?;
        let dims = [SIZE / element_type.byte_size() as i64];
        let array = HostArray::new(&bytes, element_type, &dims);
        let buffer = client.upload(&array, Some(*device), None)?.buffer;
        buffer.ready()?.wait()?;
        let before = all()?;
        device.clear_memory_stats()?;
        for (other, (before, after)) in before.iter().zip(all()?).enumerate() {
            let when = format!("of device {other} after PJRT_Device_ClearMemoryStats of device {index}");
            equal(&format!("bytes_in_use {when}"), after.bytes_in_use, before.bytes_in_use)?;
            ensure!(
                after.bytes_limit == before.bytes_limit,
                "bytes_limit {when} is {}; expected {}, as before",
                shown(after.bytes_limit),
                shown(before.bytes_limit)
            );
            ensure!(
                after.peak_bytes_in_use.is_none_or(|peak| peak >= after.bytes_in_use),
                "peak_bytes_in_use {when} is {:?}, which is less than the {} bytes in use",
                after.peak_bytes_in_use,
                after.bytes_in_use
            );
            if other != index {
                equal(
                    &format!("peak_bytes_in_use {when}"),
                    after.peak_bytes_in_use,
                    before.peak_bytes_in_use,
                )?;
            }
        }
        let with = before[index].bytes_in_use;
        drop(buffer);
        let falls = pjrt_testing::host::eventually(patience(), || {
            device.memory_stats().is_ok_and(|stats| stats.bytes_in_use <= with - SIZE)
        });
        let after = device.memory_stats()?.bytes_in_use;
        ensure!(
            falls && after >= 0,
            "bytes_in_use of device {index} went from {with} to {after} when an array of {SIZE} bytes was destroyed after \
             PJRT_Device_ClearMemoryStats"
        );
    }
    Ok(())
}

/// The time that the memory of a destroyed array has to be free.
const SHORT: std::time::Duration = std::time::Duration::from_millis(200);

fn stats_of_each(context: &Context) -> Verdict {
    const SIZE: i64 = 1 << 20;
    let client = context.client()?;
    let devices = client.addressable_devices()?;
    if devices.len() < 2 {
        return Err(Finding::NotApplicable("there is only one device".to_owned()));
    }
    let in_use = || {
        devices
            .iter()
            .map(|device| Ok(device.memory_stats()?.bytes_in_use))
            .collect::<Result<Vec<_>, pjrt_testing::host::Error>>()
    };
    let bytes = vec![1; SIZE as usize];
    for (index, device) in devices.iter().enumerate() {
        let before = in_use()?;
        let element_type = narrowest(&client)?;
        let dims = [SIZE / element_type.byte_size() as i64];
        let array = HostArray::new(&bytes, element_type, &dims);
        let buffer = client.upload(&array, Some(*device), None)?.buffer;
        buffer.ready()?.wait()?;
        let with = in_use()?;
        for (other, (before, with)) in before.iter().zip(&with).enumerate() {
            let grows = with - before >= SIZE;
            ensure!(
                grows == (other == index),
                "bytes_in_use of device {other} went from {before} to {with} with a new array of {SIZE} bytes on device {index}"
            );
        }
    }
    Ok(())
}

fn too_large(context: &Context) -> Verdict {
    let client = context.client()?;
    for device in client.addressable_devices()? {
        let Some(limit) = device.memory_stats()?.bytes_limit.filter(|limit| (1..1 << 60).contains(limit))
        else {
            return Err(Finding::NotApplicable("the device reports no limit".to_owned()));
        };
        let element_type = narrowest(&client)?;
        let outcome = client
            .uninitialized(
                element_type,
                &[2 * limit / element_type.byte_size() as i64],
                device.default_memory()?,
            )
            .and_then(|buffer| buffer.ready()?.wait());
        exhausted("an array of twice bytes_limit", outcome)?;
    }
    usable(&client)
}

/// Fails the check unless the call failed with RESOURCE_EXHAUSTED.
fn exhausted<T>(what: &str, outcome: Result<T, Error>) -> Verdict {
    match refused(what, outcome, Code::RESOURCE_EXHAUSTED, &[]) {
        Err(Finding::Advice(found)) => {
            Err(Finding::Wrong(format!("{found}. Hosts recognize exhausted memory by this code")))
        }
        verdict => verdict,
    }
}

/// Uploads an array and runs a program, whose result is [`SUM`].
fn sum(client: &Client) -> Result<Vec<f32>, Finding> {
    let x = upload_four(client, &[1.0; 4])?;
    Ok(numbers(compile_add(client)?.run(&[&x, &x])?.output(0, 0)?)?)
}

const SUM: [f32; 4] = [2.0; 4];

/// Checks that arrays can be uploaded, and that programs run if the plugin can run them.
fn usable(client: &Client) -> Verdict {
    let unusable = |error: String| {
        Finding::Wrong(format!(
            "after a request for too much memory failed, the client cannot be used: {error}"
        ))
    };
    let array = upload_four(client, &SUM).and_then(|array| numbers(&array));
    let array = array.map_err(|error| unusable(error.to_string()))?;
    equal("an array after memory was exhausted", array, SUM.to_vec())?;
    match sum(client) {
        Ok(sum) => equal("the sum after memory was exhausted", sum, SUM.to_vec()),
        Err(Finding::Unsupported(_)) => Ok(()),
        Err(Finding::Wrong(error)) => Err(unusable(error)),
        Err(finding) => Err(finding),
    }
}

fn too_large_upload(context: &Context) -> Verdict {
    let client = context.client()?;
    equal("a sum", sum(&client)?, SUM.to_vec())?;
    let bytes = 1_f32.to_le_bytes();
    let dims = [TOO_MANY];
    // A stride of 0 repeats one element.
    let array = HostArray { strides: Some(&[0]), ..HostArray::new(&bytes, ElementType::F32, &dims) };
    let outcome = client.upload(&array, Some(client.device()?), None).and_then(|uploaded| {
        uploaded.done.wait()?;
        uploaded.buffer.ready()?.wait()
    });
    exhausted("an upload of 64 TiB", outcome)?;
    usable(&client)
}

/// Dimensions of arrays of F32 or F64, of which the product or the number of bytes is 0 or a small number in 64 bits.
const OVERFLOWING: &[(ElementType, &[i64])] = &[
    (ElementType::F32, &[1 << 32, 1 << 32]),
    (ElementType::F32, &[1 << 31, 1 << 31]),
    (ElementType::F64, &[1 << 61]),
    (ElementType::F64, &[(1 << 61) + 2]),
    (ElementType::F32, &[3, 1 << 62]),
    (ElementType::F32, &[i64::MAX]),
    (ElementType::F32, &[i64::MAX, i64::MAX]),
    (ElementType::F32, &[1 << 16, 1 << 16, 1 << 16, 1 << 16]),
];

const NEGATIVE: &[(ElementType, &[i64])] = &[
    (ElementType::F32, &[-4]),
    (ElementType::F32, &[-2, -2]),
    (ElementType::F32, &[2, -1]),
    (ElementType::F32, &[i64::MIN]),
    (ElementType::F32, &[0, -1]),
];

/// Fails the check if a function accepts one of the shapes.
fn overflowing(context: &Context, shapes: &[(ElementType, &[i64])]) -> Verdict {
    let client = context.client()?;
    let memory = client.device()?.default_memory()?;
    // A plugin that stores no arrays does not support the functions.
    drop(upload_four(&client, &[1.0; 4])?);
    type Create<'a> = (&'static str, &'a dyn Fn(ElementType, &[i64]) -> Result<Buffer, Error>);
    let functions: [Create<'_>; 3] = [
        ("PJRT_Client_CreateUninitializedBuffer", &|element_type, dims| {
            client.uninitialized(element_type, dims, memory)
        }),
        ("PJRT_Client_CreateBuffersForAsyncHostToDevice", &|element_type, dims| {
            client.transfer_manager(&[(element_type, dims.to_vec())], memory)?.retrieve(0)
        }),
        ("PJRT_Buffer_Bitcast", &|element_type, dims| {
            upload_four(&client, &[1.0; 4])?.bitcast(element_type, dims)
        }),
    ];
    for (function, create) in functions {
        // A plugin that lacks the function refuses all shapes.
        for (element_type, dims) in shapes {
            let what = format!("{function} with the impossible shape {element_type}{dims:?}");
            let outcome = performing(what.clone(), || create(*element_type, dims));
            ensure!(
                outcome.is_err(),
                "{what} succeeded: the plugin probably multiplies the dimensions in 64 bits without a check for overflow and for \
                 negative numbers, so that the array has less memory than its dimensions say"
            );
        }
    }
    usable(&client)
}

/// Returns a program that repeats a scalar in an array of this size.
fn repeats(count: i64) -> String {
    let ty = format!("tensor<{count}xf32>");
    let lines = format!(
        "    %s = \"stablehlo.broadcast_in_dim\"(%p0) {{broadcast_dimensions = array<i64>}} : (tensor<f32>) -> {ty}\n"
    );
    with_main("%p0: tensor<f32>", &lines, "%s", &ty)
}

fn too_large_output(context: &Context) -> Verdict {
    const WHAT: &str = "a program with an output of 64 TiB";
    let client = context.client()?;
    equal("a sum", sum(&client)?, SUM.to_vec())?;
    let options = CompileOptions::default().encode();
    // A plugin that cannot compile the operation does not support it.
    client.compile(&Program::mlir(&repeats(4)), &options).map_err(|error| {
        Finding::Unsupported(format!("a program that repeats a scalar cannot be compiled: {error}"))
    })?;
    match client.compile(&Program::mlir(&repeats(TOO_MANY)), &options) {
        Err(error) => exhausted::<()>(WHAT, Err(error))?,
        Ok(executable) => {
            let bytes = 1_f32.to_le_bytes();
            let x = client.upload(
                &HostArray::new(&bytes, ElementType::F32, &[]),
                Some(client.device()?),
                None,
            )?;
            let outcome = launch(&executable, &[&x.buffer], 871)
                .and_then(|launched| launched.output(0, 0)?.ready()?.wait());
            exhausted(WHAT, outcome)?;
        }
    }
    usable(&client)
}

/// Checks dimensions of which the first has more than 32 bits.
fn are_large(function: &str, dims: &[i64]) -> Verdict {
    // Another number of dimensions has another cause.
    let cause = if dims.len() == 1 { ": the plugin probably keeps dimensions in 32 bits" } else { "" };
    ensure!(
        dims == [LARGE],
        "{function} of an array of {LARGE} elements is {dims:?}; expected {:?}{cause}",
        [LARGE]
    );
    Ok(())
}

fn large_dims_of_programs(context: &Context) -> Verdict {
    let client = context.client()?;
    let loaded = compiled(&client, &repeats(LARGE), &CompileOptions::default())?;
    let dims = loaded.executable()?.output_dims()?;
    are_large("PJRT_Executable_OutputDimensions", dims.first().map_or(&[], Vec::as_slice))
}

fn large_dims_of_arrays(context: &Context) -> Verdict {
    let client = context.client()?;
    let memory = client.device()?.default_memory()?;
    let array = client.error_buffer((Code::ABORTED, "given up"), ElementType::F32, &[LARGE], memory)?;
    are_large("PJRT_Buffer_Dimensions", &array.dims()?)
}
