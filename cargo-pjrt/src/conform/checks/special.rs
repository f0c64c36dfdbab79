//! Checks of arrays that were not uploaded.

use super::entry::{Entry, NONE, check};
use crate::conform::harness::{
    Context, Finding, NOT_SPREAD, Verdict, array_fails_with, compile_add, ensure, equal, f32_bytes,
    fails_with, numbers, patience, upload_four,
};
use crate::requirements::Profile;
use pjrt_testing::host::{Code, ElementType, ViewMemory};

pub(super) const CHECKS: &[Entry] = &[
    check(
        "special/uninitialized",
        "An array without initial data has its type, dimensions and memory, and can be read.",
        uninitialized,
        "PJRT_Client_CreateUninitializedBuffer give shape_num_dims=0",
    )
    .header("PJRT_Client_CreateUninitializedBuffer_Args", "Shape fields; the destination; the output device buffer.")
    .since(69)
    .needed_by(&[Profile::Zml]),
    check(
        "special/error_is_ready",
        "An array that is in error is ready, with the host's code and message.",
        error_ready,
        "PJRT_Client_CreateErrorBuffer when error_code=15 give error_code=13",
    )
    .header("PJRT_Client_CreateErrorBuffer", "Creates a buffer in the given memory space that carries an error future without allocating memory.")
    .since(82),
    check(
        "special/error_cannot_be_read",
        "Reading an array that is in error returns that error.",
        error_read,
        "PJRT_Client_CreateErrorBuffer when error_code=10 give error_code=9",
    )
    .header("PJRT_Client_CreateErrorBuffer", "Creates a buffer in the given memory space that carries an error future without allocating memory.")
    .since(82),
    check(
        "special/error_has_dims",
        "An array that is in error has a type and dimensions.",
        error_dims,
        "PJRT_Client_CreateErrorBuffer when error_code=2 give shape_num_dims=0",
    )
    .header("PJRT_Client_CreateErrorBuffer_Args", "Shape fields.")
    .since(82),
    check(
        "special/error_spreads",
        "The outputs of an execution have the error of an argument that is in error.",
        error_spreads,
        "PJRT_Client_CreateErrorBuffer when error_code=14 give error_code=13",
    )
    .header("PJRT_Client_CreateErrorBuffer", "If this buffer is passed to an Execute call, the execution will fail with the given error code and message.")
    .since(82),
    check(
        "special/alias_waits",
        "An alias is not ready before the host fulfills it.",
        alias_waits,
        "PJRT_Buffer_ReadyEvent since PJRT_Client_CreateAliasBuffer set event=complete",
    )
    .host("XLA's client, PjRtCApiClient::CreateAliasBuffer", "Returns a buffer for data that comes later, and a function that provides it.")
    .only_used_by(NONE)
    .since(77)
    .also(&["*"]),
    check(
        "special/alias_is_fulfilled",
        "An alias becomes the array that the host fulfills it with.",
        alias_fulfilled,
        "PJRT_Client_FulfillAliasBuffer when status_code=0 fail INTERNAL",
    )
    .host("XLA's client, PjRtCApiClient::CreateAliasBuffer", "Returns a buffer for data that comes later, and a function that provides it.")
    .only_used_by(NONE)
    .since(77)
    .also(&["*"]),
    check(
        "special/alias_fails",
        "An alias becomes the error that the host fulfills it with.",
        alias_fails,
        "PJRT_Client_FulfillAliasBuffer when status_code=10 give status_code=13",
    )
    .header("PJRT_Client_FulfillAliasBuffer_Args", "The host passes an error code and a message instead of a buffer.")
    .since(77),
    check(
        "special/alias_as_an_argument",
        "A program can be started with an alias as an argument; its outputs are ready once the alias is.",
        alias_argument,
        "PJRT_LoadedExecutable_Execute fail_pending",
    )
    .host("XLA's client, PjRtCApiClient::CreateAliasBuffer", "Returns a buffer for data that comes later, with which programs can be started.")
    .only_used_by(NONE)
    .since(77)
    .also(&[
        "execute/*",
        "lifetime/deleted_while_in_use",
        "waiting/event_comes_after_the_execution",
        "waiting/outputs_are_ready_after_the_execution",
    ]),
    check(
        "special/view_reads",
        "A view of the host's memory is an array with the contents of this memory.",
        view_reads,
        "PJRT_Client_CreateViewOfDeviceBuffer when num_dims=1 dims.0=4 give device_buffer_ptr=zeros",
    )
    .header("PJRT_Client_CreateViewOfDeviceBuffer", "Creates a PJRT buffer that is a non-owned view of an on-device buffer.")
    .since(33)
    .also(&["special/view_is_not_written", "view/*"]),
    check(
        "special/view_lets_go",
        "A view's callback is called once after the array was destroyed, and not before.",
        view_deleter,
        "PJRT_Client_CreateViewOfDeviceBuffer give on_delete_callback=null",
    )
    .header("PJRT_Client_CreateViewOfDeviceBuffer_Args::on_delete_callback", "A callback to be performed when the PJRT_Buffer is done with the on-device buffer.")
    .only_used_by(&[Profile::Jax])
    .since(33)
    .also(&["view/of_no_elements", "view/is_needed_by_executions"]),
    check(
        "special/view_names_its_memory",
        "A view's callback receives the address of the view's memory and then the host's argument.",
        view_arguments,
        "PJRT_Client_CreateViewOfDeviceBuffer swapped_callback",
    )
    .header("PJRT_Client_CreateViewOfDeviceBuffer_Args::on_delete_callback", "The callback is called with device_buffer_ptr and on_delete_callback_arg.")
    .only_used_by(&[Profile::Jax])
    .since(33),
    check(
        "special/view_is_not_written",
        "A program that reads a view does not write to its memory.",
        view_not_written,
        "PJRT_Client_CreateViewOfDeviceBuffer when dims.0=4 scribble device_buffer_ptr",
    )
    .header("PJRT_Client_CreateViewOfDeviceBuffer", "The buffer may be mutated, for example, if the buffer is donated to an Execute operation. This program donates nothing.")
    .since(33)
    .also(&["special/view_reads", "view/output_is_no_view", "view/is_needed_by_executions"]),
];

fn uninitialized(context: &Context) -> Verdict {
    let client = context.client()?;
    let memory = client.device()?.default_memory()?;
    let buffer = client.uninitialized(ElementType::F32, &[2, 3], memory)?;
    equal("the dimensions", buffer.dims()?, vec![2, 3])?;
    equal("the type", buffer.element_type()?, ElementType::F32)?;
    equal("the number of bytes that were read", buffer.read()?.len(), 24)
}

fn error_ready(context: &Context) -> Verdict {
    let client = context.client()?;
    let memory = client.device()?.default_memory()?;
    let buffer = client.error_buffer((Code::DATA_LOSS, "all gone"), ElementType::F32, &[4], memory)?;
    array_fails_with("an array of PJRT_Client_CreateErrorBuffer", &buffer, (Code::DATA_LOSS, "all gone"))
}

fn error_read(context: &Context) -> Verdict {
    let client = context.client()?;
    let memory = client.device()?.default_memory()?;
    let buffer = client.error_buffer((Code::ABORTED, "given up"), ElementType::F32, &[4], memory)?;
    let outcome = buffer.read_into(16, &pjrt_testing::host::CopyLayout::Unsaid);
    fails_with("reading", outcome, Code::ABORTED, "given up")
}

fn error_dims(context: &Context) -> Verdict {
    let client = context.client()?;
    let memory = client.device()?.default_memory()?;
    let buffer = client.error_buffer((Code::UNKNOWN, "why"), ElementType::S32, &[2, 3], memory)?;
    equal("the dimensions", buffer.dims()?, vec![2, 3])?;
    equal("the type", buffer.element_type()?, ElementType::S32)
}

fn error_spreads(context: &Context) -> Verdict {
    let client = context.client()?;
    let memory = client.device()?.default_memory()?;
    let bad = client.error_buffer((Code::UNAVAILABLE, "not today"), ElementType::F32, &[4], memory)?;
    let good = upload_four(&client, &[1.0; 4])?;
    let launched = match compile_add(&client)?.run(&[&good, &bad]) {
        Ok(launched) => launched,
        refused => return fails_with("the execution", refused.map(drop), Code::UNAVAILABLE, "not today"),
    };
    let output = launched.output(0, 0)?;
    let has_no_error = output.ready()?.wait().is_ok() && output.read().is_ok();
    ensure!(
        !has_no_error,
        "the output of an execution with an argument that is in error has no error: {NOT_SPREAD}"
    );
    array_fails_with(
        "the output of an execution with an argument that is in error",
        output,
        (Code::UNAVAILABLE, "not today"),
    )
}

fn alias_waits(context: &Context) -> Verdict {
    let client = context.client()?;
    let memory = client.device()?.default_memory()?;
    let (alias, handle) = client.alias(ElementType::F32, &[4], memory)?;
    equal("PJRT_Event_IsReady", alias.ready()?.is_ready()?, false)?;
    Ok(client.fulfill(handle, Ok(&upload_four(&client, &[1.0; 4])?))?)
}

fn alias_fulfilled(context: &Context) -> Verdict {
    let client = context.client()?;
    let memory = client.device()?.default_memory()?;
    let (alias, handle) = client.alias(ElementType::F32, &[4], memory)?;
    client.fulfill(handle, Ok(&upload_four(&client, &[1.0, 2.0, 3.0, 4.0])?))?;
    equal("the alias", numbers(&alias)?, vec![1.0, 2.0, 3.0, 4.0])
}

fn alias_fails(context: &Context) -> Verdict {
    let client = context.client()?;
    let memory = client.device()?.default_memory()?;
    let (alias, handle) = client.alias(ElementType::F32, &[4], memory)?;
    // The call may return the host's error too.
    if let Err(error) = client.fulfill(handle, Err((Code::ABORTED, "given up"))) {
        fails_with::<()>("fulfilling", Err(error), Code::ABORTED, "given up")?;
    }
    array_fails_with("an alias", &alias, (Code::ABORTED, "given up"))
}

fn alias_argument(context: &Context) -> Verdict {
    let client = context.client()?;
    let memory = client.device()?.default_memory()?;
    let (alias, handle) = client.alias(ElementType::F32, &[4], memory)?;
    let four = upload_four(&client, &[1.0, 2.0, 3.0, 4.0])?;
    let launched = compile_add(&client)?.run(&[&alias, &four])?;
    client.fulfill(handle, Ok(&four))?;
    equal("the output", numbers(launched.output(0, 0)?)?, vec![2.0, 4.0, 6.0, 8.0])
}

fn view_reads(context: &Context) -> Verdict {
    let client = context.client()?;
    let memory = ViewMemory::new(&f32_bytes(&[1.0, 2.0, 3.0, 4.0]));
    let view = client.view(&memory, ElementType::F32, &[4], client.device()?)?;
    equal("the view", numbers(&view)?, vec![1.0, 2.0, 3.0, 4.0])
}

/// Creates and destroys a view, and waits for its callback.
fn let_go(context: &Context, is_deleted_first: bool) -> Result<ViewMemory, Finding> {
    let client = context.client()?;
    let memory = ViewMemory::new(&f32_bytes(&[1.0; 4]));
    let view = client.view(&memory, ElementType::F32, &[4], client.device()?)?;
    view.ready()?.wait()?;
    equal("the number of calls of the callback of a view that exists", memory.deleted(), 0)?;
    if is_deleted_first {
        view.delete()?;
    }
    drop(view);
    let called = pjrt_testing::host::eventually(patience(), || memory.deleted() > 0);
    ensure!(called, "the callback was not called although the array is destroyed");
    Ok(memory)
}

fn view_deleter(context: &Context) -> Verdict {
    for is_deleted_first in [false, true] {
        let memory = let_go(context, is_deleted_first)?;
        // A second call may come from another thread.
        std::thread::sleep(std::time::Duration::from_millis(2));
        let what = match is_deleted_first {
            true => "the number of calls of the callback of a view that was deleted and destroyed",
            false => "the number of calls of the callback of a view that was destroyed",
        };
        equal(what, memory.deleted(), 1)?;
    }
    Ok(())
}

fn view_arguments(context: &Context) -> Verdict {
    match let_go(context, false)?.wrong_arguments() {
        None => Ok(()),
        Some(wrong) => Err(Finding::Wrong(format!(
            "the plugin called the callback of a view with wrong arguments: {wrong}. Its type is \
             void (*)(void* device_buffer_ptr, void* user_arg)"
        ))),
    }
}

fn view_not_written(context: &Context) -> Verdict {
    let client = context.client()?;
    let bytes = f32_bytes(&[1.0, 2.0, 3.0, 4.0]);
    let memory = ViewMemory::new(&bytes);
    let view = client.view(&memory, ElementType::F32, &[4], client.device()?)?;
    let launched = compile_add(&client)?.run(&[&view, &view])?;
    equal("the sum", numbers(launched.output(0, 0)?)?, vec![2.0, 4.0, 6.0, 8.0])?;
    equal("the view's memory afterwards", memory.bytes(), bytes)
}
