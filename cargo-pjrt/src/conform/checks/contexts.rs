//! Checks of the contexts of executions, with which hosts pass data to the handlers of custom calls.

use std::sync::Arc;

use super::entry::{Entry, check};
use super::extended::{ADDED, weighs, with_handler};
use super::pending::Pending;
use super::program_text::compiled;
use crate::conform::harness::{
    Context, Finding, Verdict, add_program, compile_add, ensure, equal, numbers, upload_four, upload_to,
};
use crate::requirements::Profile;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{
    Buffer, CallData, Client, Code, Device, Error, ExecuteOptions, LoadedExecutable, handler_asks_for_data,
};

const CONTEXT: &str = "PJRT_ExecuteOptions::context";
const CONTEXT_TEXT: &str =
    "The context of the execution: user data for custom calls. Programs without custom calls ignore it.";

pub(super) const CHECKS: &[Entry] = &[
    check(
        "execute/with_a_context",
        "An execution with a context computes what it computes without one, on each device, with and without `execute_device`, also if the host destroys the context right after the call.",
        with_a_context,
        "PJRT_LoadedExecutable_Execute when options>context!=0 execute_device!=0 fail INTERNAL",
    )
    .header(CONTEXT, CONTEXT_TEXT)
    .since(52)
    .used_by(&[Profile::Jax])
    .also(&["extension/handlers_on_a_named_device"]),
    check(
        "extension/handlers_on_a_named_device",
        "A handler finds the data of its own execution in a program that runs on the device that the host names, on each device.",
        on_named_devices,
        "PJRT_LoadedExecutable_Execute when execute_device!=0 give options>context=null",
    )
    .header("PJRT_FFI_UserData_Add", "Adds a value to an execution's context, in which handlers find it by type.")
    .used_by(&[Profile::Jax]),
    check(
        "extension/contexts_of_waiting_executions",
        "An execution that waits for an argument keeps the data of its context, which the host destroys right after the call.",
        waiting,
        "PJRT_LoadedExecutable_Execute when options>launch_id=655 give options>context=null",
    )
    .host("XLA's client, pjrt_c_api_client.cc, PjRtCApiLoadedExecutable::Execute", "Destroys the context when the call returns.")
    .used_by(&[Profile::Jax]),
];

/// Returns a context, with data if the plugin has the extension FFI.
fn new_context(context: &Context) -> Result<CallData, Finding> {
    match context.plugin.register_type("conform::in_a_context") {
        Ok(type_id) => Ok(CallData::new(context.plugin, type_id, &ADDED[0])?),
        Err(error) if error.code == Code::UNIMPLEMENTED => Ok(CallData::empty(context.plugin)?),
        Err(error) => Err(error.into()),
    }
}

/// Executes the program that adds with a context that is destroyed right after the call.
fn adds(
    context: &Context,
    program: &LoadedExecutable,
    on: Option<Device<'_>>,
    arguments: [&Buffer; 2],
    then: impl FnOnce() -> Verdict,
) -> Verdict {
    let how = if on.is_some() { "with `execute_device`" } else { "without `execute_device`" };
    let options = ExecuteOptions { data: Some(Arc::new(new_context(context)?)), ..ExecuteOptions::default() };
    let launched = program.launch(&[arguments.to_vec()], &options, on, true).map_err(|refused| {
        Finding::Wrong(format!(
            "an execution with a context, {how}, was refused: {}. The program has no custom calls, and runs without a context",
            refused.error
        ))
    })?;
    drop(options);
    then()?;
    let output = &launched.outputs[0][0];
    equal(
        &format!("the sum of an execution with a context, {how},"),
        numbers(output)?,
        vec![11.0, 22.0, 33.0, 44.0],
    )?;
    if let Some(device) = on {
        ensure!(
            output.device()? == device,
            "the output of an execution with a context and `execute_device` is on another device: the plugin probably ignores \
             `execute_device` if there is a context"
        );
    }
    Ok(launched.done[0].wait()?)
}

const X: [f32; 4] = [1.0, 2.0, 3.0, 4.0];
const Y: [f32; 4] = [10.0, 20.0, 30.0, 40.0];

/// Compiles the program that adds for the device that an execution names, unless the plugin lacks such programs.
fn portable(client: &Client) -> Option<LoadedExecutable> {
    let options = CompileOptions { portable: true, ..CompileOptions::default() };
    let program = compiled(client, &add_program("4x"), &options).ok()?;
    let (x, y) = (upload_four(client, &X).ok()?, upload_four(client, &Y).ok()?);
    let options = ExecuteOptions::default();
    let runs = program.launch(&[vec![&x, &y]], &options, Some(client.device().ok()?), true).is_ok();
    runs.then_some(program)
}

fn with_a_context(context: &Context) -> Verdict {
    let client = context.client()?;
    let program = compile_add(&client)?;
    let (x, y) = (upload_four(&client, &X)?, upload_four(&client, &Y)?);
    adds(context, &program, None, [&x, &y], || Ok(()))?;
    if let Some(portable) = portable(&client) {
        for device in client.addressable_devices()? {
            let (x, y) = (upload_to(&client, &X, device)?.buffer, upload_to(&client, &Y, device)?.buffer);
            adds(context, &portable, Some(device), [&x, &y], || Ok(()))?;
        }
    }
    match Pending::new(&client) {
        Ok(pending) => {
            let (array, gate) = pending.split();
            adds(context, &program, None, [&array, &y], || {
                drop(new_context(context)?);
                Ok(gate.provide(&client, &X)?)
            })
        }
        Err(_) => Ok(()),
    }
}

/// Registers a type of values, for a plugin whose handlers can read the memory of arrays.
fn registered(context: &Context, client: &Client) -> Result<i64, Finding> {
    if !upload_four(client, &X)?.is_on_cpu()? {
        let why = "the handler of the kit cannot read the memory of the device";
        return Err(Finding::NotApplicable(why.to_owned()));
    }
    Ok(context.plugin.register_type("conform::added_elsewhere")?)
}

/// Returns the contexts with each number.
fn numbered(context: &Context, type_id: i64) -> Result<Vec<Arc<CallData>>, Error> {
    let data = ADDED.iter().map(|added| CallData::new(context.plugin, type_id, added).map(Arc::new));
    data.collect()
}

fn on_named_devices(context: &Context) -> Verdict {
    let client = context.client()?;
    let data = numbered(context, registered(context, &client)?)?;
    let options = CompileOptions { portable: true, ..CompileOptions::default() };
    let program = with_handler(context, &client, &options)?;
    for device in client.addressable_devices()? {
        let (x, y) = (upload_to(&client, &X, device)?.buffer, upload_to(&client, &Y, device)?.buffer);
        for index in [0, 1, 0] {
            weighs(&program, Some(device), Some(&data[index]), ADDED[index], [&x, &y])?;
        }
        weighs(&program, Some(device), None, 0.0, [&y, &x])?;
    }
    Ok(())
}

fn waiting(context: &Context) -> Verdict {
    let client = context.client()?;
    let type_id = registered(context, &client)?;
    let mut data = numbered(context, type_id)?.into_iter();
    let program = with_handler(context, &client, &CompileOptions::default())?;
    let (array, gate) = Pending::new(&client)?.split();
    let y = upload_four(&client, &Y)?;
    handler_asks_for_data(true);
    let options = ExecuteOptions { launch_id: 655, data: data.next(), ..ExecuteOptions::default() };
    let launched =
        program.launch(&[vec![&array, &y]], &options, None, true).map_err(|refused| refused.error)?;
    // Destroys the context, and creates others in its place.
    drop(options);
    drop(data);
    let others = numbered(context, type_id)?;
    gate.provide(&client, &X)?;
    let got = numbers(&launched.outputs[0][0])?;
    drop(others);
    let expected: Vec<f32> = X.iter().zip(Y).map(|(x, y)| x - 2.0 * y + ADDED[0]).collect();
    ensure!(
        got == expected,
        "the handler of an execution that waited for an argument returned {got:?}; expected {expected:?}: the plugin probably looks \
         the data up in the context, which the host destroyed when the call returned"
    );
    Ok(())
}
