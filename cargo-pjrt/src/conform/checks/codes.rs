//! Checks of the errors that the host passes: every code and message comes back as it was, through each function.

use super::entry::{Entry, check};
use crate::conform::harness::{
    Context, Finding, ONE_CODE, Verdict, any_error, array_fails_with, described, ensure, event_fails_with,
    fails_with, patience, upload_four,
};
use pjrt_testing::host::{Buffer, Client, Code, ElementType, Error, Event};

pub(super) const CHECKS: &[Entry] = &[
    check(
        "codes/differ",
        "Errors with different codes do not all have one code: neither those that the host created, nor the plugin's own.",
        differ,
        "PJRT_Error_GetCode set code=2",
    )
    .header("PJRT_Error_GetCode_Args::code", "Receives the code of the error.")
    .since(89)
    .also(&["*"]),
    check(
        "codes/of_events",
        "PJRT_Event_Set accepts every code and message, and PJRT_Event_Await, PJRT_Event_Error and callbacks return them.",
        of_events,
        "PJRT_Event_Set when error_code=7 give error_code=13",
    )
    .header("PJRT_Event_Set", "Sets the PJRT_Event as completed with the given error code and message.")
    .since(89),
    check(
        "codes/of_error_arrays",
        "An array of PJRT_Client_CreateErrorBuffer has the code and the message that the host passed, whichever they are.",
        |context| {
            of_arrays(context, "PJRT_Client_CreateErrorBuffer", |client, error| {
                client.error_buffer(error, ElementType::F32, &[4], client.device()?.default_memory()?)
            })
        },
        "PJRT_Client_CreateErrorBuffer when error_code=7 give error_code=13",
    )
    .header("PJRT_Client_CreateErrorBuffer", "Creates a buffer in the given memory space that carries an error future without allocating memory.")
    .since(82),
    check(
        "codes/of_transfers",
        "PJRT_AsyncHostToDeviceTransferManager_SetBufferError keeps the code and the message, whichever they are.",
        |context| {
            of_arrays(context, "PJRT_AsyncHostToDeviceTransferManager_SetBufferError", |client, (code, message)| {
                let shapes = [(ElementType::F32, vec![4])];
                let manager = client.transfer_manager(&shapes, client.device()?.default_memory()?)?;
                let array = manager.retrieve(0)?;
                manager.fail(0, code, message)?;
                Ok(array)
            })
        },
        "PJRT_AsyncHostToDeviceTransferManager_SetBufferError when error_code=7 give error_code=2",
    )
    .header("PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args", "The host passes an error code and a message for a buffer.")
    .since(62),
    check(
        "codes/of_aliases",
        "PJRT_Client_FulfillAliasBuffer keeps the code and the message, whichever they are.",
        |context| {
            of_arrays(context, "PJRT_Client_FulfillAliasBuffer", |client, error| {
                let memory = client.device()?.default_memory()?;
                let (alias, handle) = client.alias(ElementType::F32, &[4], memory)?;
                // The call may return the host's error too.
                match client.fulfill(handle, Err(error)) {
                    Err(own) if own.code != error.0 => Err(own),
                    _ => Ok(alias),
                }
            })
        },
        "PJRT_Client_FulfillAliasBuffer when status_code=7 give status_code=13",
    )
    .header("PJRT_Client_FulfillAliasBuffer_Args", "The host passes an error code and a message instead of a buffer.")
    .since(77),
    check(
        "codes/of_dependencies",
        "The callback of PJRT_Buffer_DonateWithControlDependency keeps the code and the message, whichever they are.",
        |context| {
            of_arrays(context, "The callback of PJRT_Buffer_DonateWithControlDependency", |client, error| {
                let (array, dependency) = upload_four(client, &[1.0; 4])?.donate()?;
                dependency.finish(Err(error));
                Ok(array)
            })
        },
        "PJRT_Buffer_DonateWithControlDependency swallow_error",
    )
    .header("PJRT_Buffer_DonateWithControlDependency_Callback_Args", "The host passes an error code and a message to the callback.")
    .since(88)
    .also(&["buffer/donate_with_failed_dependency", "isolation/dependencies"]),
    check(
        "codes/of_raw_copies",
        "The callback of PJRT_Buffer_CopyRawToHostFuture keeps the code and the message, whichever they are.",
        of_raw_copies,
        "PJRT_Buffer_CopyRawToHostFuture when offset=12 set event=complete",
    )
    .header("PJRT_Buffer_CopyRawToHostFuture_Callback_Args", "dst is only valid if error_code is PJRT_ERROR_CODE_OK.")
    .since(84),
];

/// Calls a function with each code, and with messages of several kinds.
fn for_each_error(work: impl Fn((Code, &str)) -> Verdict) -> Verdict {
    let long = "a long message; ".repeat(400);
    for code in 1..=16 {
        work((Code(code), "an error of the host"))?;
    }
    for message in ["x", "größer – 数", "two\nlines", "100% %s %n", &long] {
        work((Code(Code::ABORTED.0), message))?;
    }
    Ok(())
}

fn differ(context: &Context) -> Verdict {
    let code_of = |code: u32| {
        let event = Event::create(context.plugin)?;
        event.set(Code(code), "an error of the host")?;
        Ok::<_, Error>(event.wait().err().map(|error| error.code))
    };
    let codes = (1..=16).map(code_of).collect::<Result<Vec<_>, _>>()?;
    let own = any_error(&context.client()?).map(|error| error.code);
    let first = codes[0].filter(|first| codes.iter().all(|code| *code == Some(*first)));
    let Some(only) = first.filter(|only| own.is_none_or(|own| own == *only)) else { return Ok(()) };
    Err(Finding::Wrong(format!(
        "PJRT_Error_GetCode returns {only} {ONE_CODE}: the plugin probably does not keep the code"
    )))
}

fn of_events(context: &Context) -> Verdict {
    for_each_error(|error| {
        let event = Event::create(context.plugin)?;
        let early = event.on_ready()?;
        event.set(error.0, error.1)?;
        event_fails_with("an event that the host completed with PJRT_Event_Set", &event, error)?;
        let got = early.wait(patience());
        ensure!(
            matches!(&got, Some(Err(got)) if got.code == error.0 && got.message.contains(error.1)),
            "the callback that was registered before PJRT_Event_Set receives {}; observers that come after it receive the host's \
             error {}. The plugin probably keeps no error for callbacks that wait",
            described(got.as_ref()),
            error.0
        );
        Ok(())
    })
}

/// Checks the errors of arrays that this function makes.
fn of_arrays(
    context: &Context,
    function: &str,
    make: impl Fn(&Client, (Code, &str)) -> Result<Buffer, Error>,
) -> Verdict {
    let client = context.client()?;
    for_each_error(|error| {
        let array = make(&client, error).map_err(|own| match own.code {
            Code::UNIMPLEMENTED if error.0 != Code::UNIMPLEMENTED => Finding::from(own),
            _ => Finding::Wrong(format!("{function} with the code {} failed: {own}", error.0)),
        })?;
        array_fails_with(&format!("an array that {function} put into error"), &array, error)
    })
}

fn of_raw_copies(context: &Context) -> Verdict {
    let client = context.client()?;
    let array = upload_four(&client, &[1.0; 4])?;
    for_each_error(|error| {
        let outcome = array.read_raw_later(12, 4)?.cancel(error.0, error.1);
        fails_with("the event of a raw copy that the host cancelled", outcome, error.0, error.1)
    })
}
