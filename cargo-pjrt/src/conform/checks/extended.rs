//! Checks of extensions through which data moves: transfers between clients, and handlers of custom calls.

use std::sync::Arc;

use super::entry::{Entry, check};
use super::failures::DONE;
use super::pending::Pending;
use super::program_text::{launch, with_main};
use super::samples::Shaped;
use crate::conform::harness::{
    Context, Finding, Verdict, compile_add, described, ensure, equal, lost_error, numbers, patience,
    register_type, upload_four,
};
use crate::requirements::Profile;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{
    Buffer, CallData, Client, Code, Device, ElementType, Error, Event, ExecuteOptions, HANDLER_ERROR,
    LoadedExecutable, NamedValue, Program, Value, handler_asks_for_data, handler_calls,
};

pub(super) const CHECKS: &[Entry] = &[
    check(
        "extension/transfers_between_clients",
        "An array that one client sends to another arrives under its own key, of 64 bits, with its type, dimensions and elements, in whatever order arrays are sent and received.",
        transfers,
        "PJRT_Transfers_PJRT_Client_CrossHostSendBuffers when num_buffers=3 give transfer_keys.0=77",
    )
    .header("PJRT_Transfers_PJRT_Client_CrossHostSendBuffers_Args::transfer_keys", "A key for each buffer, which is the same on the receiving side.")
    .used_by(&[Profile::Jax]),
    check(
        "extension/handlers_are_called",
        "A handler that the host registered runs in each execution of a program that calls it, with the arguments and the data of this execution; its error is the execution's.",
        handlers,
        "PJRT_FFI_UserData_Add skip",
    )
    .header("pjrt_c_api_ffi_extension.h", "Registers a handler of custom calls for a platform, and adds user data to the context of an execution.")
    .used_by(&[Profile::Jax]),
    check(
        "device/poisoned_executions_fail",
        "If PJRT_Device_PoisonExecution reports that it poisoned an execution, the outputs and the event of this execution have the host's error, and no other execution has it.",
        poison,
        "PJRT_Device_PoisonExecution when launch_id=770 set poisoned=1",
    )
    .header("PJRT_Device_PoisonExecution", "Poisons the earliest execution on this device with the given launch_id; returns whether it was poisoned.")
    .since(84),
    check(
        "error/payloads_are_kept",
        "The error of an array of PJRT_Client_CreateErrorBuffer has the payloads that the host passed.",
        payloads,
        "PJRT_Client_CreateErrorBuffer give payload=null num_payload=0",
    )
    .header("PJRT_Client_CreateErrorBuffer_Args::payload", "Payloads to attach to the error, as named values.")
    .since(107),
];

/// A key of more than 32 bits whose low bits are those of another key.
const HIGH: i64 = 1 << 32;

/// Fails unless an event is complete without an error.
fn completes(what: &str, event: &Event) -> Verdict {
    let outcome = event.on_ready()?.wait(patience());
    ensure!(
        outcome == Some(Ok(())),
        "{what} completed with {outcome}",
        outcome = described(outcome.as_ref())
    );
    Ok(())
}

/// Compares an array that was received.
fn received(array: &Buffer, sample: &Shaped, others: &[Shaped], when: &str) -> Verdict {
    let outcome = array.ready()?.on_ready()?.wait(patience());
    ensure!(
        outcome.is_some(),
        "an array that one client sends to another, {when}, does not arrive: the plugin probably confuses keys, of which it may use \
         only some of the 64 bits"
    );
    ensure!(
        outcome == Some(Ok(())),
        "an array that one client sends to another, {when}, completed with {outcome}",
        outcome = described(outcome.as_ref())
    );
    let what = format!("an array that one client sent to another, {when},");
    equal(&format!("the type of {what}"), array.element_type()?, sample.element_type)?;
    equal(&format!("the dimensions of {what}"), array.dims()?, sample.dims.clone())?;
    let read = array.read()?;
    let is_other = others.iter().any(|other| other.bytes == read && other.bytes != sample.bytes);
    ensure!(
        !is_other,
        "{what} has the elements of another array that was sent under another key: the plugin probably confuses keys, of which it may \
         use only some of the 64 bits"
    );
    sample.check(&what, &read)
}

fn transfers(context: &Context) -> Verdict {
    let here = context.client()?;
    let there = context
        .client()
        .map_err(|error| Finding::NotApplicable(format!("there can be only one client: {error}")))?;
    let (source, target) = (here.device()?.description()?.id()?, there.device()?.description()?.id()?);
    let shape = |sample: &Shaped| (sample.element_type, sample.dims.clone());
    let upload = |sample: &Shaped| -> Result<Buffer, Error> {
        Ok(here.upload(&sample.host(), Some(here.device()?), None)?.buffer)
    };
    // A plugin may be unable to transfer between clients of one process.
    let first = Shaped::new(ElementType::F32, &[4], 1);
    let array = upload(&first)?;
    let sent = here.send(&[&array], target, &[5])?;
    let got = there.receive(&[shape(&first)], there.device()?, source, &[5])?;
    if got[0].ready()?.on_ready()?.wait(patience()) != Some(Ok(())) {
        return Err(Finding::NotApplicable("clients of one process exchange no arrays".to_owned()));
    }
    received(&got[0], &first, &[], "after the call of the sender")?;
    completes("the event of a send", &sent[0])?;
    let samples = [
        Shaped::new(ElementType::F32, &[2, 3], 2),
        Shaped::new(ElementType::F32, &[2, 3], 3),
        Shaped::new(ElementType::F32, &[2, 3], 4),
        Shaped::new(ElementType::S32, &[], 5),
        Shaped::new(ElementType::F32, &[1000], 6),
    ];
    let keys = [HIGH + 9, 9, -(HIGH + 9), 3 * HIGH, 4 * HIGH];
    let arrays = samples.iter().map(upload).collect::<Result<Vec<_>, _>>()?;
    let send = |of: &[usize]| {
        let arrays: Vec<&Buffer> = of.iter().map(|index| &arrays[*index]).collect();
        here.send(&arrays, target, &of.iter().map(|index| keys[*index]).collect::<Vec<_>>())
    };
    let receive = |of: &[usize]| {
        let shapes: Vec<_> = of.iter().map(|index| shape(&samples[*index])).collect();
        let keys: Vec<i64> = of.iter().map(|index| keys[*index]).collect();
        there.receive(&shapes, there.device()?, source, &keys)
    };
    // Three arrays in one call, received one by one in another order; then the receiver is first.
    let mut events = send(&[0, 1, 2])?;
    let mut all: Vec<(usize, Buffer)> = Vec::new();
    for index in [2, 0, 1] {
        all.push((index, receive(&[index])?.remove(0)));
    }
    let early = receive(&[4, 3])?;
    events.extend(send(&[3])?);
    events.extend(send(&[4])?);
    all.extend([4, 3].into_iter().zip(early));
    for (index, array) in &all {
        received(array, &samples[*index], &samples, &format!("under the key {}", keys[*index]))?;
    }
    events.iter().try_for_each(|event| completes("the event of a send", event))
}

/// The name of the custom calls.
const TARGET: &str = "conform_weigh";

/// The numbers that the host passes to the handler.
pub(super) static ADDED: [f32; 2] = [100.0, 7.0];

/// Registers the handler, and compiles a program that calls it.
pub(super) fn with_handler(
    context: &Context,
    client: &Client,
    options: &CompileOptions,
) -> Result<LoadedExecutable, Finding> {
    let ty = "tensor<4xf32>";
    let line = format!(
        "    %r:2 = \"stablehlo.custom_call\"(%p0, %p1) {{call_target_name = \"{TARGET}\", api_version = 4 : i32, \
         backend_config = {{}}}} : ({ty}, {ty}) -> ({ty}, {ty})\n"
    );
    let text = with_main(&format!("%p0: {ty}, %p1: {ty}"), &line, "%r#0, %r#1", &format!("{ty}, {ty}"));
    let platform = client.platform_name()?;
    context.plugin.register_handler(TARGET, &platform)?;
    let compiled = client.compile(&Program::mlir(&text), &options.encode());
    compiled.map_err(|error| {
        Finding::Wrong(format!(
            "PJRT_FFI_Register_Handler succeeded for the custom call {TARGET:?} on the platform {platform:?}, but a program that calls \
             it cannot be compiled: {error}. The plugin probably loses the registration"
        ))
    })
}

/// Runs the program on a device, or on the one that it was compiled for, and compares its outputs.
pub(super) fn weighs(
    program: &LoadedExecutable,
    on: Option<Device<'_>>,
    data: Option<&Arc<CallData>>,
    added: f32,
    arguments: [&Buffer; 2],
) -> Verdict {
    let options = ExecuteOptions { data: data.cloned(), ..ExecuteOptions::default() };
    handler_asks_for_data(data.is_some());
    let before = handler_calls();
    let launched =
        program.launch(&[arguments.to_vec()], &options, on, true).map_err(|refused| refused.error)?;
    let got = numbers(launched.output(0, 0)?)?;
    let (x, y) = (numbers(arguments[0])?, numbers(arguments[1])?);
    let of = |added: f32| x.iter().zip(&y).map(|(x, y)| x - 2.0 * y + added).collect::<Vec<f32>>();
    let swapped: Vec<f32> = x.iter().zip(&y).map(|(x, y)| y - 2.0 * x + added).collect();
    let cause = match () {
        () if handler_calls() == before => ": the handler was not called",
        () if got == swapped => ": the arguments changed places",
        () if got == of(0.0) => {
            ": the handler did not find the data that PJRT_FFI_UserData_Add added to the context of the execution"
        }
        () if ADDED.iter().any(|other| got == of(*other)) => {
            ": the handler found the data of another execution"
        }
        () => "",
    };
    ensure!(
        got == of(added),
        "a custom call that computes x - 2 y + {added} of {x:?} and {y:?} returned {got:?}; expected {:?}{cause}",
        of(added)
    );
    equal("the number of calls of the handler in one execution", handler_calls() - before, 1)?;
    equal(
        "the second result of the custom call, which is its second argument,",
        numbers(launched.output(0, 1)?)?,
        y,
    )
}

fn handlers(context: &Context) -> Verdict {
    let client = context.client()?;
    let (x, y) =
        (upload_four(&client, &[1.0, 2.0, 3.0, 4.0])?, upload_four(&client, &[10.0, 30.0, 20.0, 40.0])?);
    if !x.is_on_cpu()? {
        return Err(Finding::NotApplicable(
            "the handler of the kit cannot read the memory of the device".to_owned(),
        ));
    }
    let program = with_handler(context, &client, &CompileOptions::default())?;
    weighs(&program, None, None, 0.0, [&x, &y])?;
    weighs(&program, None, None, 0.0, [&y, &x])?;
    let type_id = register_type(context, "added")?;
    let data = ADDED.iter().map(|added| CallData::new(context.plugin, type_id, added).map(Arc::new));
    let data = data.collect::<Result<Vec<_>, _>>()?;
    for index in [0, 1, 0] {
        weighs(&program, None, Some(&data[index]), ADDED[index], [&x, &y])?;
    }
    weighs(&program, None, None, 0.0, [&x, &y])?;
    let bad = upload_four(&client, &[-1.0; 4])?;
    let outcome =
        launch(&program, &[&bad, &y], 0).and_then(|launched| launched.output(0, 0)?.ready()?.wait());
    let error = outcome.err();
    ensure!(
        error.as_ref().is_some_and(|error| error.message.contains(HANDLER_ERROR)),
        "a handler returned the error {HANDLER_ERROR:?}, and the execution ended with {error:?}: the plugin probably ignores what \
         handlers return"
    );
    weighs(&program, None, Some(&data[1]), ADDED[1], [&y, &x])
}

fn poison(context: &Context) -> Verdict {
    const MESSAGE: &str = "poisoned on purpose";
    const IDS: [i32; 2] = [771, 772];
    let client = context.client()?;
    let program = compile_add(&client)?;
    let other = upload_four(&client, &[1.0; 4])?;
    let pending = Pending::new(&client)?;
    let device = client.device()?;
    let unknown = device.poison_execution(770, MESSAGE)?;
    ensure!(
        !unknown,
        "PJRT_Device_PoisonExecution reports that it poisoned an execution with an id that none has"
    );
    let launched = IDS.map(|id| launch(&program, &[&pending.array, &other], id));
    let [poisoned, healthy] = launched;
    let (poisoned, healthy) = (poisoned?, healthy?);
    let payload = NamedValue {
        name: "conform.poison".to_owned(),
        name_is_terminated: false,
        value: Value::String("a\0b".to_owned()),
    };
    let error = (Code::DATA_LOSS, MESSAGE);
    let is_poisoned = device.poison_execution_with(IDS[0], error, std::slice::from_ref(&payload))?;
    let _array = pending.provide(&client, &[2.0; 4])?;
    equal("the output of an execution that was not poisoned", numbers(healthy.output(0, 0)?)?, vec![3.0; 4])?;
    if !is_poisoned {
        return Err(Finding::NotApplicable("the plugin poisons no waiting execution".to_owned()));
    }
    for (what, event) in [
        ("the ready event of the output", poisoned.output(0, 0)?.ready()?),
        (
            DONE,
            poisoned.done.into_iter().next().ok_or_else(|| Finding::Wrong("there is no event".to_owned()))?,
        ),
    ] {
        let outcome = event.on_ready()?.wait(patience());
        let cause = matches!(outcome, Some(Ok(()))).then(|| format!("; {}", lost_error(what)));
        ensure!(
            matches!(&outcome, Some(Err(error)) if error.message.contains(MESSAGE) && error.code == Code::DATA_LOSS),
            "PJRT_Device_PoisonExecution reports that it poisoned an execution with DATA_LOSS, and {what} completed with \
             {}{}",
            described(outcome.as_ref()),
            cause.unwrap_or_default()
        );
        // Old versions have no payloads.
        if let Some(Err(error)) = &outcome
            && context.minor() >= 115
        {
            ensure!(
                error.payloads.iter().any(|(name, value)| *name == payload.name && value == b"a\0b"),
                "the error with which PJRT_Device_PoisonExecution poisoned an execution has the payloads {:?} in {what}; \
                 expected the value \"a\\0b\", of three bytes, under {:?}",
                error.payloads,
                payload.name
            );
        }
    }
    Ok(())
}

fn payloads(context: &Context) -> Verdict {
    let client = context.client()?;
    let named = |name: &str, value: &str| NamedValue {
        name: name.to_owned(),
        name_is_terminated: false,
        value: Value::String(value.to_owned()),
    };
    let passed = [
        named("conform.first", "one"),
        named("conform.second", "another value"),
        named("conform.bytes", "\0a\0\u{7f}b\0"),
        named("conform.empty", ""),
    ];
    let memory = client.device()?.default_memory()?;
    let array =
        client.error_buffer_with((Code::ABORTED, "given up"), &passed, ElementType::F32, &[4], memory)?;
    let error = array.ready()?.on_ready()?.wait(patience()).and_then(Result::err);
    let Some(error) = error else {
        return Err(Finding::Wrong("the ready event of an array in error has no error".to_owned()));
    };
    for NamedValue { name, value, .. } in &passed {
        let found = error.payloads.iter().find(|(key, _)| key == name);
        let is_single = error.payloads.iter().filter(|(key, _)| key == name).count() == 1;
        let is_right = is_single
            && matches!((found, value), (Some((_, found)), Value::String(value)) if found == value.as_bytes());
        ensure!(
            is_right,
            "the error of an array to which the host attached the payload {name:?} once, with the value {value:?}, has the payloads {:?}. A \
             value has as many bytes as its size says, also zero bytes: a plugin that reads it as a C string cuts it",
            error.payloads
        );
    }
    Ok(())
}
