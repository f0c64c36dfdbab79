//! Checks that perform the calls of one host, from the creation of a client to its destruction, in the host's
//! order, with the sizes of its structs, and with the lifetimes of its objects.

use super::entry::{Entry, check};
use crate::conform::harness::{
    Context, Finding, ONE_DEVICE, Verdict, add_program, ensure, equal, f32_bytes, patience,
};
use crate::requirements::Profile;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{
    Buffer, Client, Code, CopyLayout, CreateOption, Device, ElementType, Error, Event, ExecuteOptions,
    HostArray, HostMemory, HostSizes, Launched, Layout, LoadedExecutable, Memory, Program, Semantics, Value,
    with_host_sizes,
};

const ZML: &[Profile] = &[Profile::Zml];
const PJRT_RS: &[Profile] = &[Profile::PjrtRs];

pub(super) const CHECKS: &[Entry] = &[
    check(
        "host/zml",
        "ZML gets correct results: it passes strides and a layout, requests no events from executions, destroys arguments while they are in use, and reuses the memory of arrays that are ready.",
        zml,
        "PJRT_Client_BufferFromHostBuffer when device_layout!=0 num_byte_strides=1 host_buffer_semantics=1 give data=zeros",
    )
    .host("ZML, revision f223acc", "Loads models, runs them and reads results by these calls.")
    .needed_by(ZML),
    check(
        "host/zml_weights",
        "ZML can load arrays in pieces: it retrieves the array first, and reuses the memory of a piece in the callback of its event.",
        zml_weights,
        "PJRT_AsyncHostToDeviceTransferManager_TransferData when offset=8 transfer_size=8 give offset=0",
    )
    .host("ZML, revision f223acc", "Loads weights in pieces through transfer managers.")
    .since(62)
    .needed_by(ZML)
    .needed_since(62)
    .also(&["transfer/in_pieces"]),
    check(
        "host/zml_all_devices",
        "ZML can run a program of one partition per device, and read each device's output.",
        zml_all_devices,
        "PJRT_LoadedExecutable_Execute when num_devices=2 device_complete_events=0 fail INTERNAL",
    )
    .host("ZML, revision f223acc", "Compiles a program of one partition for each device of the platform.")
    .needed_by(ZML),
    check(
        "host/zml_cpu_device_count",
        "A plugin whose platform is \"cpu\" creates as many devices as ZML's option cpu_device_count says.",
        zml_cpu_devices,
        "PJRT_Client_Create when num_options=1 fail INVALID_ARGUMENT",
    )
    .host("ZML, revision f223acc", "Creates the client of a CPU plugin with this option.")
    .needed_by(ZML)
    .also(&["*"]),
    check(
        "host/pjrt_rs",
        "The Rust crate pjrt 0.2.0 gets correct results with the structs of C API 0.54: it destroys the arguments of an execution before it waits for the execution.",
        pjrt_rs,
        "PJRT_LoadedExecutable_Execute when options>struct_size=72 give_other_argument",
    )
    .host("crate pjrt 0.2.0", "Runs programs and reads results by these calls.")
    .needed_by(PJRT_RS)
    .also(&["execute/options_of_0_54"]),
    check(
        "host/pjrt_rs_async",
        "Futures of the Rust crate pjrt 0.2.0 complete: an event is ready when its callback runs, and then PJRT_Event_Error returns its error.",
        pjrt_rs_async,
        "PJRT_Event_Error after PJRT_Event_IsReady fail INTERNAL",
    )
    .host("crate pjrt 0.2.0", "Implements futures with PJRT_Event_OnReady, PJRT_Event_IsReady and PJRT_Event_Error.")
    .needed_by(PJRT_RS)
    .also(&["event/*"]),
];

const X: [f32; 4] = [1.0, 2.0, 3.0, 4.0];
const Y: [f32; 4] = [10.0, 20.0, 30.0, 40.0];
const SUM: [f32; 4] = [11.0, 22.0, 33.0, 44.0];

fn floats(memory: &HostMemory) -> Vec<f32> {
    memory.bytes().as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

/// The size of ZML's `PJRT_ExecuteOptions`, from C API 0.114.
const ZML_EXECUTE_OPTIONS: usize = 144;

/// Waits for an event as ZML does.
fn zml_wait(event: &Event) -> Verdict {
    if event.is_ready()? {
        return Ok(());
    }
    match event.on_ready()?.wait(patience()) {
        Some(outcome) => Ok(outcome?),
        None => Err(Finding::Wrong(format!(
            "the callback of an event was not called within {limit:?}",
            limit = patience()
        ))),
    }
}

/// Reads what ZML reads when it creates its platform, and returns the devices with their default memories, by
/// the devices' ids.
fn zml_platform(client: &Client) -> Result<Vec<(Device<'_>, Memory<'_>, i32)>, Finding> {
    let devices = client.addressable_devices()?;
    if !devices.len().is_power_of_two() {
        let text = format!("ZML accepts only powers of two as numbers of devices, not {}", devices.len());
        return Err(Finding::NotApplicable(text));
    }
    let memories = client.memories()?;
    for memory in &memories {
        let known = memory.devices()?.iter().all(|device| devices.contains(device));
        ensure!(known, "the memory {} belongs to a device that is not addressable", memory.debug_string()?);
    }
    let mut platform = Vec::new();
    for device in devices {
        let reachable = device.memories()?;
        ensure!(
            reachable.iter().all(|memory| memories.contains(memory)),
            "PJRT_Client_AddressableMemories lacks a memory of PJRT_Device_AddressableMemories"
        );
        let default = device.default_memory()?;
        ensure!(memories.contains(&default), "PJRT_Client_AddressableMemories lacks a default memory");
        let description = device.description()?;
        platform.push((device, default, description.id()?));
    }
    platform.sort_by_key(|(_, _, id)| *id);
    client.platform_name()?;
    Ok(platform)
}

/// Checks the attribute from which ZML takes the version of StableHLO for its programs.
fn zml_stablehlo_version(context: &Context) -> Verdict {
    for attribute in context.plugin.attributes()? {
        if attribute.name == "stablehlo_current_version" {
            let is_version = matches!(&attribute.value, Value::Int64List(parts) if parts.len() >= 3);
            ensure!(is_version, "stablehlo_current_version is {}; expected three integers", attribute.value);
        }
    }
    Ok(())
}

/// Compiles the program that adds on another thread, as ZML does, for one partition per device.
fn zml_compile(context: &Context, client: &Client, ids: Vec<i64>) -> Result<LoadedExecutable, Finding> {
    zml_stablehlo_version(context)?;
    let options = CompileOptions {
        partitions: ids.len() as i64,
        devices: ids,
        shardy: true,
        ..CompileOptions::default()
    };
    let (code, options) = (add_program("4x"), options.encode());
    let compiled =
        std::thread::scope(|scope| scope.spawn(|| client.compile(&Program::mlir(&code), &options)).join());
    Ok(compiled.map_err(|_| Finding::Wrong("a thread panicked".to_owned()))??)
}

/// Transfers an array to a memory. ZML destroys the event of the host's memory immediately, waits for the array,
/// and then reuses the memory.
fn zml_upload(client: &Client, values: &[f32; 4], memory: Memory<'_>) -> Result<Buffer, Finding> {
    let bytes = f32_bytes(values);
    let array = HostArray {
        strides: Some(&[4]),
        semantics: Semantics::ImmutableUntilTransferCompletes,
        device_layout: Some(Layout::Untiled(vec![0])),
        ..HostArray::new(&bytes, ElementType::F32, &[4])
    };
    let uploaded = client.upload(&array, None, Some(memory))?;
    drop(uploaded.done);
    zml_wait(&uploaded.buffer.ready()?)?;
    uploaded.memory.overwrite();
    Ok(uploaded.buffer)
}

/// Runs a program. ZML knows the number of outputs, and requests no events.
fn zml_run(executable: &LoadedExecutable, arguments: &[Vec<&Buffer>]) -> Result<Launched, Finding> {
    let options = ExecuteOptions {
        struct_size: Some(ZML_EXECUTE_OPTIONS),
        garbage_in_lists: true,
        ..ExecuteOptions::default()
    };
    Ok(executable.launch_into(1, arguments, &options, None, false).map_err(|refused| refused.error)?)
}

/// Reads an array. ZML never destroys the event.
fn zml_read(buffer: &Buffer) -> Result<Vec<f32>, Finding> {
    let (destination, event) = buffer.start_read(size_of_val(&X), &CopyLayout::Unsaid)?;
    zml_wait(&event)?;
    std::mem::forget(event);
    Ok(floats(&destination))
}

fn zml(context: &Context) -> Verdict {
    let client = context.client()?;
    let platform = zml_platform(&client)?;
    let Some((_, memory, id)) = platform.first() else { return Ok(()) };
    let executable = zml_compile(context, &client, vec![i64::from(*id)])?;
    let (x, y) = (zml_upload(&client, &X, *memory)?, zml_upload(&client, &Y, *memory)?);
    let once = zml_run(&executable, &[vec![&x, &y]])?;
    drop(x);
    let twice = zml_run(&executable, &[vec![once.output(0, 0)?, &y]])?;
    drop((once, y));
    equal("the sum", zml_read(twice.output(0, 0)?)?, vec![21.0, 42.0, 63.0, 84.0])?;
    drop(twice);
    drop(executable);
    drop(client);
    Ok(())
}

fn zml_weights(context: &Context) -> Verdict {
    let client = context.client()?;
    let platform = zml_platform(&client)?;
    let Some((_, memory, id)) = platform.first() else { return Ok(()) };
    let manager = client.transfer_manager(&[(ElementType::F32, vec![4])], *memory)?;
    let weights = manager.retrieve(0)?;
    let mut previous = None;
    for (part, offset) in [(&X[..2], 0), (&X[2..], 8)] {
        let piece = HostMemory::new(&f32_bytes(part), 0);
        let event = manager.write_from(0, &piece, offset, offset == 8)?;
        let outcome = event.on_ready_then(move || piece.overwrite())?;
        let last = previous.replace((event, outcome));
        zml_finish_piece(last)?;
    }
    zml_finish_piece(previous)?;
    drop(manager);
    let executable = zml_compile(context, &client, vec![i64::from(*id)])?;
    let y = zml_upload(&client, &Y, *memory)?;
    let launched = zml_run(&executable, &[vec![&weights, &y]])?;
    equal("the sum", zml_read(launched.output(0, 0)?)?, SUM.to_vec())
}

/// Waits for the callback of a piece, and destroys its event.
fn zml_finish_piece(piece: Option<(Event, std::sync::Arc<pjrt_testing::host::Outcome>)>) -> Verdict {
    let Some((event, outcome)) = piece else { return Ok(()) };
    match outcome.wait(patience()) {
        Some(outcome) => outcome?,
        None => return Err(Finding::Wrong("the callback of a piece was not called".to_owned())),
    }
    drop(event);
    Ok(())
}

fn zml_all_devices(context: &Context) -> Verdict {
    let client = context.client()?;
    let platform = zml_platform(&client)?;
    if platform.len() < 2 {
        return Err(Finding::NotApplicable(ONE_DEVICE.to_owned()));
    }
    let ids = platform.iter().map(|(_, _, id)| i64::from(*id)).collect();
    let executable = zml_compile(context, &client, ids)?;
    let upload_to_all = |values| -> Result<Vec<Buffer>, Finding> {
        platform.iter().map(|(_, memory, _)| zml_upload(&client, values, *memory)).collect()
    };
    let (x, y) = (upload_to_all(&X)?, upload_to_all(&Y)?);
    let arguments: Vec<Vec<&Buffer>> = x.iter().zip(&y).map(|(x, y)| vec![x, y]).collect();
    let launched = zml_run(&executable, &arguments)?;
    drop((x, y));
    for (outputs, (_, _, id)) in launched.outputs.iter().zip(&platform) {
        equal(&format!("the sum on device {id}"), zml_read(&outputs[0])?, SUM.to_vec())?;
    }
    drop(launched);
    drop(executable);
    Ok(())
}

fn zml_cpu_devices(context: &Context) -> Verdict {
    let platform = context.client()?.platform_name()?;
    if platform != "cpu" {
        let text = format!("ZML passes the option only to plugins for the CPU; the platform is {platform:?}");
        return Err(Finding::NotApplicable(text));
    }
    let mut options = context.options.clone();
    options.push(CreateOption::new("cpu_device_count", Value::Int64(4)));
    let client = context.plugin.create_client(&options).map_err(|error| match error.code {
        Code::INVALID_ARGUMENT => Finding::Unsupported(error.to_string()),
        _ => error.into(),
    })?;
    equal("the number of devices with cpu_device_count=4", client.addressable_devices()?.len(), 4)
}

/// The structs of C API 0.54 that are smaller than in this version.
const SIZES_0_54: HostSizes = &[("PJRT_Client_Create", 72)];

/// The size of `PJRT_ExecuteOptions` in C API 0.54.
const EXECUTE_OPTIONS_0_54: usize = 72;

/// Reports a plugin that refuses the struct of an older host, as XLA's plugins do, as one that does not support
/// this host.
fn of_old_struct<T>(outcome: Result<T, Error>) -> Result<T, Finding> {
    outcome.map_err(|error| match error.code {
        Code::INVALID_ARGUMENT => Finding::Unsupported(error.to_string()),
        _ => error.into(),
    })
}

/// The way in which a program of the crate `pjrt` waits for events.
type Wait = fn(Event) -> Verdict;

/// Waits for an event as functions of the crate that block.
fn blocking(event: Event) -> Verdict {
    if event.is_ready()? { Ok(()) } else { Ok(event.wait()?) }
}

/// Waits for an event as a future of the crate: after the callback, it is polled once more.
fn polling(event: Event) -> Verdict {
    if !event.is_ready()? {
        let plugin = event.plugin();
        // The crate destroys the error of the callback without looking at it, even if it is null.
        let outcome = event.on_ready_then(move || drop(plugin.destroy_null("PJRT_Error_Destroy")))?;
        ensure!(outcome.wait(patience()).is_some(), "the callback of an event was not called");
        ensure!(event.is_ready()?, "an event is not ready after its callback; the future never completes");
    }
    Ok(event.error()?)
}

/// Transfers an array to the first device, and waits for both events.
fn pjrt_rs_upload(client: &Client, values: &[f32; 4], wait: Wait) -> Result<Buffer, Finding> {
    let bytes = f32_bytes(values);
    let array = HostArray {
        semantics: Semantics::ImmutableUntilTransferCompletes,
        ..HostArray::new(&bytes, ElementType::F32, &[4])
    };
    let uploaded = client.upload(&array, Some(client.device()?), None)?;
    wait(uploaded.done)?;
    wait(uploaded.buffer.ready()?)?;
    uploaded.memory.overwrite();
    Ok(uploaded.buffer)
}

/// Runs a program. The crate owns the arguments, and destroys them before it waits.
fn pjrt_rs_run(
    loaded: &LoadedExecutable,
    arguments: Vec<Buffer>,
    wait: Wait,
) -> Result<Vec<Vec<Buffer>>, Finding> {
    let executable = loaded.executable()?;
    let options = ExecuteOptions {
        struct_size: Some(EXECUTE_OPTIONS_0_54),
        garbage_in_lists: true,
        ..ExecuteOptions::default()
    };
    let lists = [arguments.iter().collect()];
    let launched = loaded.launch_into(executable.num_outputs()?, &lists, &options, None, true);
    let launched = of_old_struct(launched.map_err(|refused| refused.error))?;
    drop(executable);
    drop(arguments);
    launched.done.into_iter().try_for_each(wait)?;
    Ok(launched.outputs)
}

/// Reads an array, and what the crate keeps with it.
fn pjrt_rs_read(buffer: &Buffer, wait: Wait) -> Result<Vec<f32>, Finding> {
    let size = buffer.host_size(&CopyLayout::Unsaid)?;
    let (destination, event) = buffer.start_read(size, &CopyLayout::Unsaid)?;
    wait(event)?;
    equal("the type", buffer.element_type()?, ElementType::F32)?;
    equal("the dimensions", buffer.dims()?, vec![4])?;
    if let Some(order) = buffer.memory_layout()? {
        equal("minor_to_major", order, vec![0])?;
    }
    Ok(floats(&destination))
}

fn pjrt_rs_program(context: &Context, wait: Wait) -> Verdict {
    let attributes = of_old_struct(context.plugin.attributes_of_old_struct())?;
    ensure!(
        attributes.is_some(),
        "PJRT_Plugin_Attributes with a struct_size of 24 did not write num_attributes"
    );
    let client = of_old_struct(context.client())?;
    client.platform_name()?;
    let code = add_program("4x");
    let loaded = client.compile(&Program::mlir(&code), &CompileOptions::default().encode())?;
    let (x, y) = (pjrt_rs_upload(&client, &X, wait)?, pjrt_rs_upload(&client, &Y, wait)?);
    let outputs = pjrt_rs_run(&loaded, vec![x, y], wait)?;
    equal("the sum", pjrt_rs_read(&outputs[0][0], wait)?, SUM.to_vec())?;
    drop(outputs);
    drop(loaded);
    drop(client);
    Ok(())
}

/// Runs the program with the structs of C API 0.54. A client with the structs of this version is created first:
/// if that fails, the check does not apply; if the other one fails, the plugin refuses old structs.
fn with_old_structs(context: &Context, wait: Wait) -> Verdict {
    drop(context.client()?);
    let outcome = with_host_sizes(SIZES_0_54, || pjrt_rs_program(context, wait));
    match outcome {
        Err(Finding::Wrong(why) | Finding::Unsupported(why)) if pjrt_rs_program(context, wait).is_ok() => {
            Err(Finding::Wrong(format!(
                "{why}. The same calls succeed with the structs of this version: the plugin probably refuses a `struct_size` of \
                 an older host, which is smaller"
            )))
        }
        outcome => outcome,
    }
}

fn pjrt_rs(context: &Context) -> Verdict {
    with_old_structs(context, blocking)
}

fn pjrt_rs_async(context: &Context) -> Verdict {
    with_old_structs(context, polling)
}
