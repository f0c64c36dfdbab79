//! Checks of executions that fail, because one of their arguments is in error.

use super::aftermath::leave_no_memory;
use super::entry::{ALL, Entry, check};
use super::pending::{Pending, in_error};
use super::program_text::launch;
use crate::conform::harness::{
    Context, Finding, NEVER_COMPLETE, NOT_SPREAD, Verdict, compile_add, ensure, equal, hangs, is_on_device,
    lost_error, numbers, patience, upload_four,
};
use crate::requirements::Profile;
use pjrt_testing::host::{
    Buffer, Client, Code, CopyLayout, ElementType, Error, Event, Launched, LoadedExecutable,
};

pub(super) const CHECKS: &[Entry] = &[
    check(
        "failures/event_completes",
        "The event of a device completes even if the execution fails.",
        event_completes,
        "PJRT_LoadedExecutable_Execute when options>launch_id=980 lose_event 0",
    )
    .header("PJRT_Event_IsReady", "Returns true if this PJRT_Event has completed, including if an error has occurred."),
    check(
        "failures/event_has_the_error",
        "The event of a failed execution has its error, because there may be no output that reports it.",
        event_has_error,
        "PJRT_LoadedExecutable_Execute when options>launch_id=981 early_events",
    )
    .header("PJRT_Event", "Informs callers when the work is complete, and reports a value of type `PJRT_Error*` or `nullptr` as error status.")
    .used_by(&[Profile::Jax]),
    check(
        "failures/event_of_a_later_failure",
        "If an execution fails after PJRT_LoadedExecutable_Execute returned, its event completes with the error.",
        later_failure,
        "PJRT_LoadedExecutable_Execute when options>launch_id=982 early_events",
    )
    .header("PJRT_Event", "Informs callers when the work is complete, and reports a value of type `PJRT_Error*` or `nullptr` as error status.")
    .used_by(&[Profile::Jax]),
    check(
        "failures/callbacks_come_once",
        "A callback of an event with an error is called once, with the error.",
        callbacks_once,
        "PJRT_Event_OnReady callback error_twice",
    )
    .header("PJRT_Event_OnReady", "Registers `callback` to be called once `event` is ready, with `event`'s error status."),
    check(
        "failures/outputs_are_ready_with_the_error",
        "The ready events of a failed execution's outputs complete with its error.",
        outputs_ready,
        "PJRT_LoadedExecutable_Execute when options>launch_id=944 mark_outputs ready",
    )
    .header("PJRT_Buffer_ReadyEvent", "Returns an event that is triggered when the data in the PJRT_Buffer becomes ready, or an error has occurred.")
    .used_by(ALL),
    check(
        "failures/outputs_cannot_be_read",
        "Reading an output of a failed execution returns the error, from the call or from its event.",
        outputs_unreadable,
        "PJRT_LoadedExecutable_Execute when options>launch_id=945 mark_outputs readable",
    )
    .header("PJRT_Buffer_ToHostBuffer_Args::event", "Event that signals when the copy has completed. A copy of data that does not exist cannot complete without an error."),
    check(
        "failures/error_spreads",
        "An execution whose argument is an output of a failed one fails with the same error.",
        error_spreads,
        "PJRT_LoadedExecutable_Execute when options>launch_id=948 mark_outputs ready",
    )
    .header("PJRT_Buffer_ReadyEvent", "Returns an event that is triggered when the data in the PJRT_Buffer becomes ready, or an error has occurred."),
    check(
        "failures/outputs_have_their_dims",
        "An output of a failed execution still has its type and its dimensions, and is deleted and destroyed like others.",
        outputs_have_dims,
        "PJRT_Buffer_Dimensions since PJRT_Client_CreateErrorBuffer set num_dims=0",
    )
    .header("PJRT_Buffer_Dimensions_Args::dims", "Has the lifetime of `buffer` and length `num_dims`.")
    .also(&["special/error_has_dims", "outputs/*", "struct_size/*"]),
    check(
        "failures/next_execution_runs",
        "After a failed execution, the same program runs with other arguments.",
        next_runs,
        "PJRT_LoadedExecutable_Execute when options>launch_id=947 fail INTERNAL",
    )
    .header("PJRT_LoadedExecutable_Execute", "Executes on devices addressable by the client."),
    check(
        "failures/leave_no_memory",
        "A call that fails leaves no memory of the device in use, whichever function and mistake it is.",
        leave_no_memory,
        "PJRT_Client_BufferFromHostBuffer when num_dims=3 num_byte_strides=1 leak_if_failed",
    )
    .header("PJRT_Device_MemoryStats_Args::bytes_in_use", "Number of bytes in use: what a failed call allocated belongs to nobody, and nobody frees it."),
];

/// The error of the argument.
const ERROR: (Code, &str) = (Code::DATA_LOSS, "all gone");

/// Executes the program that adds with an argument that is in error. The check does not apply if the plugin
/// refuses that, which tells the host more than the outputs would.
fn failing(client: &Client, executable: &LoadedExecutable, id: i32) -> Result<Launched, Finding> {
    let (good, bad) = (upload_four(client, &[1.0; 4])?, in_error(client, ERROR)?);
    launch(executable, &[&good, &bad], id).map_err(refused)
}

fn refused(error: Error) -> Finding {
    Finding::NotApplicable(format!("the plugin refuses an argument that is in error: {error}"))
}

/// Waits for an event by a callback, and returns its outcome.
fn outcome(event: &Event, what: &str) -> Result<Result<(), Error>, Finding> {
    event.on_ready()?.wait(patience()).ok_or_else(|| match event.is_ready() {
        Ok(false) => Finding::Wrong(format!(
            "{what} of a failed execution {NEVER_COMPLETE}; the plugin probably completes it only if the execution succeeds"
        )),
        _ => hangs(&format!("{what} of a failed execution"), event),
    })
}

/// Fails unless the outcome is an error with the argument's message.
fn has_error(outcome: Result<(), Error>, what: &str) -> Verdict {
    match outcome {
        Err(error) => {
            ensure!(
                error.message.contains(ERROR.1),
                "{what} of a failed execution has the error {error}; expected the error of the argument, {:?}",
                ERROR.1
            );
            Ok(())
        }
        Ok(()) => Err(Finding::Wrong(format!(
            "{what} of a failed execution completed without an error; {}. An event reports the error of its work, and the \
             host uses the outputs if there is none",
            lost_error(what)
        ))),
    }
}

pub(super) const DONE: &str = "the event in `device_complete_events`";

/// Returns the elements of an array, or the error of its readback.
fn described_numbers(array: &Buffer) -> String {
    numbers(array)
        .map_or_else(|error| format!("the error {error}"), |numbers| format!("the elements {numbers:?}"))
}

fn event_completes(context: &Context) -> Verdict {
    let client = context.client()?;
    let executable = compile_add(&client)?;
    let launched = failing(&client, &executable, 980)?;
    outcome(&launched.done[0], DONE).map(drop)
}

fn event_has_error(context: &Context) -> Verdict {
    let client = context.client()?;
    let executable = compile_add(&client)?;
    let launched = failing(&client, &executable, 981)?;
    let done = outcome(&launched.done[0], DONE)?;
    let output = launched.output(0, 0)?;
    if done.is_ok() && outcome(&output.ready()?, READY)?.is_ok() {
        return Err(Finding::Wrong(format!(
            "an execution with an argument that is in error completed without an error, and its output is ready with {}: {NOT_SPREAD}",
            described_numbers(output)
        )));
    }
    has_error(done, DONE)
}

fn later_failure(context: &Context) -> Verdict {
    let client = context.client()?;
    let (good, pending) = (upload_four(&client, &[1.0; 4])?, Pending::new(&client)?);
    let executable = compile_add(&client)?;
    let launched = launch(&executable, &[&good, &pending.array], 982).map_err(refused)?;
    let _array = pending.fail(&client, ERROR)?;
    has_error(outcome(&launched.done[0], DONE)?, DONE)
}

fn callbacks_once(context: &Context) -> Verdict {
    let client = context.client()?;
    let executable = compile_add(&client)?;
    let launched = failing(&client, &executable, 943)?;
    for (event, what) in [(&launched.done[0], DONE), (&launched.output(0, 0)?.ready()?, READY)] {
        let callback = event.on_ready()?;
        ensure!(callback.wait(patience()).is_some(), "the callback of {what} was not called");
        std::thread::sleep(std::time::Duration::from_millis(20));
        let calls = callback.calls();
        ensure!(
            calls == 1,
            "the callback of {what} of a failed execution was called {calls} times. It is called once when the event is \
             ready (PJRT_Event_OnReady), and hosts free its argument in the first call"
        );
    }
    Ok(())
}

const READY: &str = "the ready event of an output";

fn outputs_ready(context: &Context) -> Verdict {
    let client = context.client()?;
    let executable = compile_add(&client)?;
    let launched = failing(&client, &executable, 944)?;
    let ready = launched.output(0, 0)?.ready()?;
    has_error(outcome(&ready, READY)?, READY)?;
    has_error(ready.wait(), "PJRT_Event_Await on the ready event of an output")
}

fn outputs_unreadable(context: &Context) -> Verdict {
    let client = context.client()?;
    let executable = compile_add(&client)?;
    let launched = failing(&client, &executable, 945)?;
    let read = launched.output(0, 0)?.read_into(16, &CopyLayout::Unsaid);
    has_error(read.map(drop), "PJRT_Buffer_ToHostBuffer on an output")
}

fn error_spreads(context: &Context) -> Verdict {
    let client = context.client()?;
    let executable = compile_add(&client)?;
    let mut array = failing(&client, &executable, 0)?.take_output()?;
    for _ in 0..3 {
        array = launch(&executable, &[&array, &array], 948).map_err(refused)?.take_output()?;
    }
    let outcome = outcome(&array.ready()?, READY)?;
    if outcome.is_ok() {
        return Err(Finding::Wrong(format!(
            "the output of the third execution after one with an argument that is in error has no error, but {}: {NOT_SPREAD}",
            described_numbers(&array)
        )));
    }
    has_error(outcome, "the ready event of an output of the third execution after that")
}

fn outputs_have_dims(context: &Context) -> Verdict {
    let client = context.client()?;
    let executable = compile_add(&client)?;
    let launched = failing(&client, &executable, 946)?;
    let output = launched.output(0, 0)?;
    // The outcome is tested by other checks.
    let _ = outcome(&output.ready()?, READY)?;
    equal("the dimensions of an output of a failed execution", output.dims()?, vec![4])?;
    equal("the type of an output of a failed execution", output.element_type()?, ElementType::F32)?;
    let cause = "Outputs are on the device that ran the program, also if it failed";
    is_on_device("an output of a failed execution", output, client.device()?, cause)?;
    equal("PJRT_Buffer_IsDeleted of an output of a failed execution", output.is_deleted()?, false)?;
    output.delete()?;
    equal("PJRT_Buffer_IsDeleted after PJRT_Buffer_Delete", output.is_deleted()?, true)?;
    drop(launched);
    // Memory that was freed twice is detected when memory is allocated again, if not before.
    equal("an array that is uploaded afterwards", numbers(&upload_four(&client, &[3.0; 4])?)?, vec![3.0; 4])
}

fn next_runs(context: &Context) -> Verdict {
    let client = context.client()?;
    let executable = compile_add(&client)?;
    drop(failing(&client, &executable, 0)?);
    let x = upload_four(&client, &[1.0, 2.0, 3.0, 4.0])?;
    let launched = launch(&executable, &[&x, &x], 947)?;
    equal("the sum after a failed execution", numbers(launched.output(0, 0)?)?, vec![2.0, 4.0, 6.0, 8.0])
}
