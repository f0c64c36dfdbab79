//! Checks of the places of arrays: each way to create an array puts it where the host says, on every device and in
//! every memory.

use super::entry::{Entry, NONE, check};
use super::program_text::{compiled, launch, with_main};
use crate::conform::harness::{
    Context, Finding, NOT_THE_DEFAULT, OF_ANOTHER_DEVICE, ONE_DEVICE, Verdict, add_program, device_name,
    ensure, equal, f32_bytes, is_in_memory, is_on_device, narrowest, numbers, patience, upload_to,
};
use crate::requirements::Profile;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{
    Buffer, Client, Code, Device, ElementType, Error, ExecuteOptions, HostArray, Memory, Result, ViewMemory,
    eventually,
};

pub(super) const CHECKS: &[Entry] = &[
    check(
        "placement/uploads",
        "An array that is uploaded to a device is on this device, in its default memory.",
        uploads,
        "PJRT_Client_BufferFromHostBuffer first device",
    )
    .header("PJRT_Client_BufferFromHostBuffer_Args::memory", "If nullptr, host data will be copied to `device`, otherwise we copy data to `memory`.")
    .also(&["devices/*", "placement/*", "memory/stats_are_of_each_device", "buffer/copy_to_another_device", "upload/of_each_rank"]),
    check(
        "placement/uninitialized",
        "An array without initial data is in the memory that the host names, of any device.",
        uninitialized,
        "PJRT_Client_CreateUninitializedBuffer first memory",
    )
    .header("PJRT_Client_CreateUninitializedBuffer_Args::memory", "The destination of the array; PJRT_Buffer_Memory returns it.")
    .since(69),
    check(
        "placement/errors",
        "An array that is in error is in the memory that the host names, of any device.",
        errors,
        "PJRT_Client_CreateErrorBuffer first memory",
    )
    .header("PJRT_Client_CreateErrorBuffer", "Creates a buffer in the given memory space that carries an error future without allocating memory.")
    .since(82),
    check(
        "placement/aliases",
        "An alias is in the memory that the host names, of any device, before and after it is fulfilled.",
        aliases,
        "PJRT_Client_CreateAliasBuffer first memory",
    )
    .host("XLA's client, PjRtCApiClient::CreateAliasBuffer", "Returns a buffer in the memory that the caller names.")
    .only_used_by(NONE)
    .since(77),
    check(
        "placement/transfers",
        "A transfer manager reports the device of its memory, and its arrays are in this memory, before and after the transfer.",
        transfers,
        "PJRT_Client_CreateBuffersForAsyncHostToDevice first memory",
    )
    .header("PJRT_Client_CreateBuffersForAsyncHostToDevice_Args::memory", "The memory of the arrays; PJRT_AsyncHostToDeviceTransferManager_Device returns its device.")
    .since(57),
    check(
        "placement/views",
        "A view is on the device that the host names.",
        views,
        "PJRT_Client_CreateViewOfDeviceBuffer first device",
    )
    .header("PJRT_Client_CreateViewOfDeviceBuffer_Args::device", "The device where the view is created.")
    .since(33),
    check(
        "placement/copies_to_memories",
        "A copy to a memory is in this memory, of any device, and has the type and the dimensions of its source.",
        copies_to_memories,
        "PJRT_Buffer_CopyToMemory first dst_memory",
    )
    .header("PJRT_Buffer_CopyToMemory", "Copies the buffer to memory `dst_memory`.")
    .also(&["buffer/copy_to_each_memory"]),
    check(
        "placement/copies_to_devices",
        "A copy to a device is on this device, in its default memory, and has the type and the dimensions of its source.",
        copies_to_devices,
        "PJRT_Buffer_CopyToDevice first dst_device",
    )
    .header("PJRT_Buffer_CopyToDevice", "Copies the buffer to device `dst_device` within the same client.")
    .also(&["devices/*", "buffer/copy_to_another_device", "bits/copies_to_devices", "sizes/copies_to_devices"]),
    check(
        "placement/outputs",
        "The outputs of a program are on the device that it was compiled for, in the device's default memory, for each device.",
        outputs,
        "PJRT_Client_Compile first_options",
    )
    .header("PJRT_LoadedExecutable_Execute_Args::execute_device", "If nullptr, will execute on the device(s) specified at compile time.")
    .also(&["*"]),
    check(
        "placement/outputs_without_arguments",
        "The outputs of a program without parameters, and of one that ignores its argument, are on the device that it was compiled for, for each device.",
        outputs_without_arguments,
        "PJRT_LoadedExecutable_Execute on_another_device when options>launch_id=720 swap_outputs 0 1",
    )
    .header("PJRT_LoadedExecutable_Execute_Args::execute_device", "If nullptr, will execute on the device(s) specified at compile time."),
    check(
        "placement/outputs_of_a_named_device",
        "The outputs of an execution on a device that the host names are on this device, in its default memory, for each device.",
        outputs_of_a_named_device,
        "PJRT_LoadedExecutable_Execute first execute_device",
    )
    .header("PJRT_LoadedExecutable_Execute_Args::execute_device", "The device to execute on, for programs that were compiled for a portable executable.")
    .only_used_by(&[Profile::TorchXla, Profile::Gomlx])
    .also(&["executables/overridden_portable"]),
    check(
        "placement/copies_leave_the_device",
        "A copy to a memory whose arrays do not count as bytes_in_use does not count either: copying arrays to the host and deleting them frees memory of the device.",
        copies_leave,
        "PJRT_Device_MemoryStats since PJRT_Buffer_CopyToMemory set bytes_in_use+8388608",
    )
    .host("JAX, jax.device_put to the memory kind pinned_host", "Moves arrays out of the device's memory, which does not hold all of them.")
    .also(&["memory/*", "failures/leave_no_memory"]),
];

const VALUES: [f32; 4] = [1.0, 2.0, 3.0, 4.0];

/// Returns the devices, if there are several.
fn several(client: &Client) -> std::result::Result<Vec<Device<'_>>, Finding> {
    let devices = client.addressable_devices()?;
    match devices.len() {
        0 | 1 => Err(Finding::NotApplicable(ONE_DEVICE.to_owned())),
        _ => Ok(devices),
    }
}

/// Checks that an array is on a device and in a memory. `function` created it, with the argument `field`.
fn is_in(array: &Buffer, (device, memory): (Device<'_>, Memory<'_>), function: &str, field: &str) -> Verdict {
    let cause = format!("The plugin probably ignores `{field}`, or uses that of an earlier call");
    is_on_device(&format!("an array that {function} created"), array, device, &cause)?;
    let cause = match device.default_memory() {
        Ok(default) if default == memory => format!("{cause}, or {NOT_THE_DEFAULT}"),
        _ => cause,
    };
    is_in_memory(&format!("an array that {function} created"), array, memory, &cause)
}

/// Runs a check for each place, if there are several. A plugin may refuse memories that are not the default ones.
fn for_each_place<'a>(
    client: &'a Client,
    work: impl Fn(Device<'a>, Memory<'a>) -> Result<Verdict>,
) -> Verdict {
    let places = client.places()?;
    if places.len() < 2 {
        return Err(Finding::NotApplicable("there is only one memory".to_owned()));
    }
    for (device, memory) in places {
        match work(device, memory) {
            Ok(verdict) => verdict?,
            Err(error) if memory == device.default_memory()? => return Err(error.into()),
            Err(_) => {}
        }
    }
    Ok(())
}

fn uploads(context: &Context) -> Verdict {
    let client = context.client()?;
    for device in several(&client)? {
        let array = upload_to(&client, &VALUES, device)?.buffer;
        is_in(&array, (device, device.default_memory()?), "PJRT_Client_BufferFromHostBuffer", "device")?;
        equal("the array", numbers(&array)?, VALUES.to_vec())?;
    }
    Ok(())
}

fn uninitialized(context: &Context) -> Verdict {
    let client = context.client()?;
    for_each_place(&client, |device, memory| {
        let array = client.uninitialized(ElementType::F32, &[2, 3], memory)?;
        Ok(is_in(&array, (device, memory), "PJRT_Client_CreateUninitializedBuffer", "memory"))
    })
}

fn errors(context: &Context) -> Verdict {
    let client = context.client()?;
    for_each_place(&client, |device, memory| {
        let array = client.error_buffer((Code::ABORTED, "given up"), ElementType::F32, &[4], memory)?;
        Ok(is_in(&array, (device, memory), "PJRT_Client_CreateErrorBuffer", "memory"))
    })
}

fn aliases(context: &Context) -> Verdict {
    const FUNCTION: &str = "PJRT_Client_CreateAliasBuffer";
    let client = context.client()?;
    for_each_place(&client, |device, memory| {
        let (alias, handle) = client.alias(ElementType::F32, &[4], memory)?;
        let before = is_in(&alias, (device, memory), FUNCTION, "memory");
        let source = upload_to(&client, &VALUES, device)?.buffer;
        let source =
            if memory == device.default_memory()? { source } else { source.copy_to_memory(memory)? };
        client.fulfill(handle, Ok(&source))?;
        alias.ready()?.wait()?;
        Ok(before.and_then(|()| is_in(&alias, (device, memory), FUNCTION, "memory")))
    })
}

fn transfers(context: &Context) -> Verdict {
    const FUNCTION: &str = "PJRT_Client_CreateBuffersForAsyncHostToDevice";
    let client = context.client()?;
    for_each_place(&client, |device, memory| {
        let manager = client.transfer_manager(&[(ElementType::F32, vec![4])], memory)?;
        let on = manager.device()?;
        let array = manager.retrieve(0)?;
        let before = is_in(&array, (device, memory), FUNCTION, "memory");
        manager.write(0, &f32_bytes(&VALUES), 0, true)?.wait()?;
        array.ready()?.wait()?;
        let read = numbers(&array)?;
        Ok(before.and_then(|()| {
            ensure!(
                on == device,
                "PJRT_AsyncHostToDeviceTransferManager_Device of a manager for a memory of {} is {}; the plugin probably \
                 reports the first device",
                device_name(device),
                device_name(on)
            );
            is_in(&array, (device, memory), FUNCTION, "memory")?;
            equal("the array that was transferred", read, VALUES.to_vec())
        }))
    })
}

fn views(context: &Context) -> Verdict {
    let client = context.client()?;
    for device in several(&client)? {
        let memory = ViewMemory::new(&f32_bytes(&VALUES));
        let view = client.view(&memory, ElementType::F32, &[4], device)?;
        let cause = "The plugin probably ignores `device`, or uses that of an earlier call";
        is_on_device("a view", &view, device, cause)?;
        ensure!(
            device.memories()?.contains(&view.memory()?),
            "the memory of a view on {} is not one of the device's memories",
            device_name(device)
        );
    }
    Ok(())
}

/// Checks that a copy has the type and the dimensions of its source.
fn has_type_and_dims(copy: &Buffer) -> Verdict {
    equal("the type of the copy", copy.element_type()?, ElementType::F32)?;
    equal("the dimensions of the copy", copy.dims()?, vec![4])
}

/// Checks that a copy has the type, the dimensions and the elements of [`VALUES`].
fn is_copy(copy: &Buffer) -> Verdict {
    has_type_and_dims(copy)?;
    equal("the copy", numbers(copy)?, VALUES.to_vec())
}

fn copies_to_memories(context: &Context) -> Verdict {
    let client = context.client()?;
    let sources = client
        .addressable_devices()?
        .into_iter()
        .map(|device| Ok(upload_to(&client, &VALUES, device)?.buffer))
        .collect::<Result<Vec<_>>>()?;
    for source in &sources {
        for_each_place(&client, |device, memory| {
            let copy = source.copy_to_memory(memory)?;
            let place = is_in(&copy, (device, memory), "PJRT_Buffer_CopyToMemory", "dst_memory");
            Ok(place.and_then(|()| is_copy(&copy)))
        })?;
    }
    Ok(())
}

fn copies_to_devices(context: &Context) -> Verdict {
    let client = context.client()?;
    let devices = several(&client)?;
    // The arrays of all devices exist at once, and may be at equal addresses.
    let values = |number: usize| [10.0_f32, 20.0, 30.0, 40.0].map(|value| value + number as f32);
    let sources = devices.iter().enumerate().map(|(at, from)| upload_to(&client, &values(at), *from));
    let sources = sources.collect::<Result<Vec<_>>>()?;
    for (at, from) in devices.iter().enumerate() {
        for to in devices.iter().filter(|to| *to != from) {
            let copy = sources[at].buffer.copy_to_device(*to)?;
            is_in(&copy, (*to, to.default_memory()?), "PJRT_Buffer_CopyToDevice", "dst_device")?;
            has_type_and_dims(&copy)?;
            let (found, expected) = (numbers(&copy)?, values(at));
            let other = (0..devices.len()).find(|other| found == values(*other));
            let whose = other.map_or_else(String::new, |other| {
                format!(": these elements {OF_ANOTHER_DEVICE}, {}", device_name(devices[other]))
            });
            ensure!(
                found == expected,
                "a copy from {} to {} is {found:?}; expected {expected:?}{whose}",
                device_name(*from),
                device_name(*to)
            );
        }
    }
    Ok(())
}

fn outputs(context: &Context) -> Verdict {
    let client = context.client()?;
    for device in several(&client)? {
        let id = i64::from(device.description()?.id()?);
        let options = CompileOptions { devices: vec![id], ..CompileOptions::default() };
        let executable = compiled(&client, &add_program("4x"), &options)?;
        ensure!(
            executable.devices()? == [device],
            "a program that is compiled for {} reports other devices in PJRT_LoadedExecutable_AddressableDevices; the plugin \
             probably ignores the device assignment in `compile_options`, or uses that of an earlier call",
            device_name(device)
        );
        let x = upload_to(&client, &VALUES, device)?.buffer;
        let output = launch(&executable, &[&x, &x], 0)?.take_output()?;
        is_in(
            &output,
            (device, device.default_memory()?),
            "PJRT_LoadedExecutable_Execute",
            "compile_options",
        )?;
        equal("the sum", numbers(&output)?, vec![2.0, 4.0, 6.0, 8.0])?;
    }
    Ok(())
}

fn outputs_without_arguments(context: &Context) -> Verdict {
    let ty = "tensor<4xf32>";
    let lines = format!(
        "    %c = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : {ty}\n    %s = stablehlo.add %c, %c : {ty}\n"
    );
    let client = context.client()?;
    for device in several(&client)? {
        let options = CompileOptions {
            devices: vec![i64::from(device.description()?.id()?)],
            ..CompileOptions::default()
        };
        for parameters in ["", "%p0: tensor<4xf32>"] {
            let text = with_main(parameters, &lines, "%c, %s", &format!("{ty}, {ty}"));
            let executable = compiled(&client, &text, &options)?;
            let x = upload_to(&client, &VALUES, device)?.buffer;
            let arguments: &[&Buffer] = if parameters.is_empty() { &[] } else { &[&x] };
            let launched = launch(&executable, arguments, 720)?;
            let expected = [VALUES.to_vec(), vec![2.0, 4.0, 6.0, 8.0]];
            for (output, expected) in launched.outputs_of(0, 2)?.iter().zip(expected) {
                let place = (device, device.default_memory()?);
                is_in(output, place, "PJRT_LoadedExecutable_Execute", "compile_options")?;
                equal("the output of a program that uses no argument", numbers(output)?, expected)?;
            }
        }
    }
    Ok(())
}

fn outputs_of_a_named_device(context: &Context) -> Verdict {
    let client = context.client()?;
    let devices = several(&client)?;
    let options = CompileOptions { portable: true, ..CompileOptions::default() };
    let executable = compiled(&client, &add_program("4x"), &options)?;
    for device in devices {
        let x = upload_to(&client, &VALUES, device)?.buffer;
        let launched = executable
            .launch(&[vec![&x, &x]], &ExecuteOptions::default(), Some(device), true)
            .map_err(|refused| match refused.error.code {
                Code::UNIMPLEMENTED => Finding::from(refused.error),
                _ => Finding::Wrong(format!(
                    "a portable program does not run with `execute_device` {}: {}; the plugin probably ignores \
                     `execute_device`, or uses that of an earlier call",
                    device_name(device),
                    refused.error
                )),
            })?;
        let output = launched.output(0, 0)?;
        is_in(output, (device, device.default_memory()?), "PJRT_LoadedExecutable_Execute", "execute_device")?;
        equal("the sum", numbers(output)?, vec![2.0, 4.0, 6.0, 8.0])?;
    }
    Ok(())
}

fn copies_leave(context: &Context) -> Verdict {
    const SIZE: i64 = 1 << 20;
    let client = context.client()?;
    let (device, element_type) = (client.device()?, narrowest(&client)?);
    let bytes = vec![1; SIZE as usize];
    let dims = [SIZE / element_type.byte_size() as i64];
    let array = HostArray::new(&bytes, element_type, &dims);
    let in_use = || Ok::<_, Error>(device.memory_stats()?.bytes_in_use);
    let (default, mut compared) = (device.default_memory()?.kind()?, false);
    for memory in device.memories()? {
        let kind = memory.kind()?;
        let counts = || {
            let before = in_use()?;
            let uploaded = client.upload(&array, None, Some(memory))?.buffer;
            uploaded.ready()?.wait()?;
            Ok::<_, Error>(in_use()? - before >= SIZE)
        };
        // Memory of an earlier array that the plugin frees meanwhile hides that one counts, but not twice.
        if kind == default || counts()? || counts()? {
            continue;
        }
        compared = true;
        let source = client.upload(&array, Some(device), None)?.buffer;
        source.ready()?.wait()?;
        let with_source = in_use()?;
        let copy = source.copy_to_memory(memory)?;
        copy.ready()?.wait()?;
        drop(source);
        ensure!(
            eventually(patience(), || in_use().is_ok_and(|now| with_source - now >= SIZE)),
            "an array of {SIZE} bytes was copied to the memory {kind:?} and destroyed, and bytes_in_use of the device went from \
             {with_source} to {}. An array that is uploaded to {kind:?} does not count as bytes_in_use. The plugin probably ignores \
             `dst_memory`, and stores the copy in the memory {default:?}",
            in_use()?
        );
        equal("the copy that was read back", copy.read()?, bytes.clone())?;
    }
    match compared {
        true => Ok(()),
        false => Err(Finding::NotApplicable("the arrays of all memories count as bytes_in_use".to_owned())),
    }
}
