//! Checks of the contexts of executions, with which hosts pass data to the handlers of custom calls.

use std::sync::Arc;

use super::entry::{Entry, check};
use super::extended::{ADDED, weighs, with_handler};
use super::pending::Pending;
use super::program_text::{compiled, with_main};
use crate::conform::harness::{
    Context, Finding, Verdict, add_program, compile_add, ensure, equal, is_on_device, numbers, register_type,
    upload_four, upload_to,
};
use crate::requirements::Profile;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{
    Buffer, COLLECTED, CallData, Client, Code, Device, Error, ExecuteOptions, LoadedExecutable, NOT_FOUND,
    handler_asks_for_data,
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
    .host("XLA's client, pjrt_c_api_client.cc, PjRtCApiLoadedExecutable::Execute", "Destroys the context when the call returns."),
    check(
        "extension/several_values_of_a_context",
        "A handler finds each of the values of different types that the host added to the context of the execution, in whatever order they were added, in each execution with this context, and no values of other contexts.",
        several_values,
        "PJRT_FFI_UserData_Add after PJRT_FFI_UserData_Add skip",
    )
    .header("PJRT_FFI_UserData_Add", "Adds a value to an execution's context, in which handlers find it by type.")
    .used_by(&[Profile::Jax, Profile::Zml]),
    check(
        "extension/several_handlers",
        "If several handlers are registered, a program that calls them calls each one, and a program that calls one calls no other.",
        several_handlers,
        "PJRT_FFI_Register_Handler since PJRT_FFI_Register_Handler when target_name_size=16 skip",
    )
    .header("PJRT_FFI_Register_Handler", "Registers the handler of custom calls of a name, for one platform.")
    .used_by(&[Profile::Jax, Profile::Zml]),
];

/// Returns a context, with data if the plugin has the extension FFI.
fn new_context(context: &Context) -> Result<CallData, Finding> {
    match register_type(context, "in_a_context") {
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
    let output = launched.output(0, 0)?;
    equal(
        &format!("the sum of an execution with a context, {how},"),
        numbers(output)?,
        vec![11.0, 22.0, 33.0, 44.0],
    )?;
    if let Some(device) = on {
        let what = "the output of an execution with a context and `execute_device`";
        let cause = "The plugin probably ignores `execute_device` if there is a context";
        is_on_device(what, output, device, cause)?;
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
    Ok(register_type(context, "added_elsewhere")?)
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

/// The name of the custom calls whose handler returns the values of several types.
const COLLECT: &str = "conform_collect";

/// The numbers that the host adds to contexts.
static VALUES: [f32; 2 * COLLECTED] = [100.0, 200.0, 300.0, 400.0, 510.0, 620.0, 730.0, 840.0];

/// Registers the types of the values, and the handler, under a name.
fn register_collector(context: &Context, client: &Client, target: &str) -> Result<[i64; COLLECTED], Finding> {
    let mut types = [0; COLLECTED];
    for (index, type_id) in types.iter_mut().enumerate() {
        *type_id = register_type(context, &format!("value_{index}"))?;
    }
    context.plugin.register_collector(target, &client.platform_name()?, types)?;
    Ok(types)
}

/// Returns the operation that calls a handler of one argument.
fn call_of(target: &str, argument: &str, result: &str) -> String {
    let ty = "tensor<4xf32>";
    format!(
        "    {result} = \"stablehlo.custom_call\"({argument}) {{call_target_name = \"{target}\", api_version = 4 : i32, \
         backend_config = {{}}}} : ({ty}) -> {ty}\n"
    )
}

/// Compiles a program that calls these handlers one after another.
fn calling(client: &Client, targets: &[&str]) -> Result<LoadedExecutable, Finding> {
    let lines: String = targets
        .iter()
        .enumerate()
        .map(|(at, target)| call_of(target, &format!("%p{at}"), &format!("%p{}", at + 1)))
        .collect();
    let ty = "tensor<4xf32>";
    let text = with_main(&format!("%p0: {ty}"), &lines, &format!("%p{}", targets.len()), ty);
    compiled(client, &text, &CompileOptions::default())
}

/// Values that the host adds to a context: the place of the type of each, and the place of the number.
type Added = &'static [(usize, usize)];

/// The contexts: none, single and several values, in different orders, with equal types and other numbers.
const CONTEXTS: &[Added] = &[
    &[(0, 0), (1, 1)],
    &[(0, 0), (1, 1), (2, 2), (3, 3)],
    &[(3, 7), (2, 6), (1, 5), (0, 4)],
    &[(2, 2)],
    &[(1, 5), (3, 3)],
];

fn several_values(context: &Context) -> Verdict {
    let client = context.client()?;
    registered(context, &client)?;
    let types = register_collector(context, &client, COLLECT)?;
    let program = calling(&client, &[COLLECT])?;
    let x = upload_four(&client, &X)?;
    let contexts = CONTEXTS.iter().map(|values| {
        let data = CallData::empty(context.plugin)?;
        values.iter().try_for_each(|(of, number)| data.add(types[*of], &VALUES[*number]))?;
        Ok(Arc::new(data))
    });
    let contexts = contexts.collect::<Result<Vec<_>, Error>>()?;
    // Each context is used again after the others.
    for round in ["first", "second"] {
        for (data, values) in contexts.iter().zip(CONTEXTS) {
            let options = ExecuteOptions { data: Some(data.clone()), ..ExecuteOptions::default() };
            let launched =
                program.launch(&[vec![&x]], &options, None, true).map_err(|refused| refused.error)?;
            let got = numbers(launched.output(0, 0)?)?;
            has_values(&got, values, round)?;
        }
    }
    Ok(())
}

/// Compares the values that a handler found with those of the context.
fn has_values(got: &[f32], values: Added, round: &str) -> Verdict {
    for (of, (got, x)) in got.iter().zip(X).enumerate() {
        let place = values.iter().position(|(index, _)| *index == of);
        let expected = place.map_or(NOT_FOUND, |place| VALUES[values[place].1]);
        let found = got - x;
        if found == expected {
            continue;
        }
        let how_many = format!("a context to which the host added values of {} types", values.len());
        return Err(Finding::Wrong(match (place, found == NOT_FOUND) {
            (Some(place), true) => format!(
                "in the {round} execution with {how_many}, the handler does not find value {place}, which PJRT_FFI_UserData_Add added \
                 without an error: the plugin probably keeps only one value of a context, or loses it after an execution"
            ),
            (Some(place), false) => format!(
                "in the {round} execution with {how_many}, the handler finds {found} as value {place}; expected {expected}: the plugin \
                 probably confuses the types of the values, or the contexts"
            ),
            (None, _) => format!(
                "in the {round} execution with {how_many}, the handler finds the value {found} of another type, which was not added to \
                 this context: the plugin probably shares one list of values between contexts, or ignores the type"
            ),
        }));
    }
    Ok(())
}

fn several_handlers(context: &Context) -> Verdict {
    const OTHER: &str = "conform_second_2";
    let client = context.client()?;
    let type_id = registered(context, &client)?;
    let weighing = with_handler(context, &client, &CompileOptions::default())?;
    register_collector(context, &client, COLLECT)?;
    register_collector(context, &client, OTHER)?;
    let x = upload_four(&client, &X)?;
    // The handlers ask for values, which plugins of XLA provide only in a context.
    let data = Arc::new(CallData::new(context.plugin, type_id, &ADDED[0])?);
    let options = || ExecuteOptions { data: Some(data.clone()), ..ExecuteOptions::default() };
    let cases: [(&[&str], usize); 4] =
        [(&[COLLECT], 1), (&[OTHER], 1), (&[COLLECT, OTHER], 2), (&[OTHER, COLLECT, OTHER], 3)];
    for (targets, calls) in cases {
        let program = calling(&client, targets).map_err(|error| {
            Finding::Wrong(format!(
                "PJRT_FFI_Register_Handler succeeded for {targets:?}, but a program that calls them cannot be compiled: {error:?}. The \
                 plugin probably keeps only some of several handlers"
            ))
        })?;
        let launched =
            program.launch(&[vec![&x]], &options(), None, true).map_err(|refused| refused.error)?;
        let expected: Vec<f32> = X.iter().map(|x| x + calls as f32 * NOT_FOUND).collect();
        equal(
            &format!(
                "the result of a program that calls the handlers {targets:?}, of which each adds {NOT_FOUND},"
            ),
            numbers(launched.output(0, 0)?)?,
            expected,
        )?;
    }
    let y = upload_four(&client, &Y)?;
    weighs(&weighing, None, Some(&data), ADDED[0], [&x, &y])
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
    let got = numbers(launched.output(0, 0)?)?;
    drop(others);
    let expected: Vec<f32> = X.iter().zip(Y).map(|(x, y)| x - 2.0 * y + ADDED[0]).collect();
    ensure!(
        got == expected,
        "the handler of an execution that waited for an argument returned {got:?}; expected {expected:?}: the plugin probably looks \
         the data up in the context, which the host destroyed when the call returned"
    );
    Ok(())
}
