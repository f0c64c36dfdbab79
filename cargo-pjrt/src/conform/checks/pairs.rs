//! Checks of pairs of calls with one object: the answer of a function does not depend on the function that was called before.

use super::devices::id_of;
use super::entry::{ALL, Entry, check};
use super::program_text::launch;
use super::reloaded::REPORTS;
use super::samples::Shaped;
use crate::conform::harness::{
    Context, Finding, Verdict, compile_add, ensure, is_brief, patience, upload_four,
};
use pjrt_testing::host::{Buffer, Client, CopyLayout, ElementType, Error, Event, LoadedExecutable};

const STAY: &str = "PJRT_Buffer, PJRT_Executable, PJRT_LoadedExecutable";
const STAY_TEXT: &str = "The functions describe an object, and copy it, but do not change it.";

pub(super) const CHECKS: &[Entry] = &[
    check(
        "reports/of_arrays_after_each_function",
        "Each function that describes, copies or reads an array returns the same whichever of these functions was called with the array before.",
        arrays,
        "PJRT_Buffer_OnDeviceSizeInBytes after PJRT_Buffer_UnsafePointer set on_device_size_in_bytes=5",
    )
    .header(STAY, STAY_TEXT)
    .needed_by(ALL),
    check(
        "reports/of_programs_after_each_function",
        "Each function that describes a program returns the same whichever of these functions was called with the program before, and after it was executed and serialized.",
        programs,
        "PJRT_Executable_NumOutputs after PJRT_Executable_Serialize set num_outputs=0",
    )
    .header(STAY, STAY_TEXT)
    .needed_by(ALL),
    check(
        "event/observers_of_success_in_each_order",
        "PJRT_Event_Await, PJRT_Event_IsReady, PJRT_Event_Error and callbacks agree that an event completed without an error, in whatever order and however often, whichever function returned the event.",
        events,
        "PJRT_Event_IsReady after PJRT_Event_OnReady set is_ready=0",
    )
    .header("PJRT_Event_IsReady", "Returns true if this PJRT_Event has completed, including if an error has occurred.")
    .also(&["event/*"]),
];

/// A function of an array, and the call, which describes the result as text without addresses.
type OfArray = (&'static str, fn(&Client, &Buffer) -> Result<String, Error>);

fn text(value: impl std::fmt::Debug) -> String {
    format!("{value:?}")
}

/// The function that may take its operand: no sentence of the header says that a bitcast leaves it as it is.
const BITCAST: &str = "PJRT_Buffer_Bitcast";

const OF_ARRAYS: &[OfArray] = &[
    ("PJRT_Buffer_ElementType", |_, array| array.element_type().map(text)),
    ("PJRT_Buffer_Dimensions", |_, array| array.dims().map(text)),
    ("PJRT_Buffer_UnpaddedDimensions", |_, array| array.unpadded_dims().map(text)),
    ("PJRT_Buffer_DynamicDimensionIndices", |_, array| array.dynamic_dims().map(text)),
    ("PJRT_Buffer_GetMemoryLayout", |_, array| array.memory_layout().map(text)),
    ("PJRT_Layouts_PJRT_Buffer_MemoryLayout", |_, array| array.layout_text()),
    ("PJRT_Buffer_OnDeviceSizeInBytes", |_, array| array.on_device_size().map(text)),
    ("PJRT_Buffer_Device", |_, array| array.device().and_then(id_of).map(text)),
    ("PJRT_Buffer_Memory", |_, array| array.memory()?.kind()),
    ("PJRT_Buffer_IsDeleted", |_, array| array.is_deleted().map(text)),
    ("PJRT_Buffer_IsOnCpu", |_, array| array.is_on_cpu().map(text)),
    ("PJRT_Buffer_UnsafePointer", |_, array| array.unsafe_pointer().map(|address| text(address != 0))),
    ("PJRT_Buffer_ReadyEvent", |_, array| array.ready()?.wait().map(text)),
    ("PJRT_Event_OnReady of the ready event", |_, array| {
        Ok(text(array.ready()?.on_ready()?.wait(patience())))
    }),
    ("PJRT_Buffer_ToHostBuffer without a destination", |_, array| {
        array.host_size(&CopyLayout::Unsaid).map(text)
    }),
    ("PJRT_Buffer_ToHostBuffer", |_, array| array.read().map(text)),
    ("PJRT_Buffer_CopyRawToHost", |_, array| array.read_raw(0, 4)?.map(text)),
    ("PJRT_Buffer_CopyRawToHostFuture", |_, array| array.read_raw_later(0, 4)?.finish().map(text)),
    ("PJRT_Buffer_CopyToMemory", |client, array| {
        array.copy_to_memory(client.device()?.default_memory()?)?.read().map(text)
    }),
    ("PJRT_Buffer_CopyToDevice", |client, array| {
        let last = client.addressable_devices()?.pop();
        array.copy_to_device(last.map_or_else(|| client.device(), Ok)?)?.read().map(text)
    }),
    (BITCAST, |_, array| array.bitcast(ElementType::S32, &array.dims()?)?.read().map(text)),
    (
        "PJRT_Buffer_IncreaseExternalReferenceCount and PJRT_Buffer_DecreaseExternalReferenceCount",
        |_, array| {
            array.hold()?;
            let address = array.opaque_pointer();
            array.release()?;
            address.map(|address| text(address != 0))
        },
    ),
];

/// Describes a result. The text of an error may contain an address.
fn answer(outcome: Result<String, Error>) -> String {
    outcome.unwrap_or_else(|error| format!("an error with the code {}", error.code))
}

fn arrays(context: &Context) -> Verdict {
    let client = context.client()?;
    let shapes = [&[2, 3][..], &[], &[0]];
    for dims in if is_brief() { &shapes[..1] } else { &shapes[..] } {
        let sample = Shaped::new(ElementType::F32, dims, 7);
        let fresh = || -> Result<Buffer, Error> {
            let array = client.upload(&sample.host(), Some(client.device()?), None)?.buffer;
            array.ready()?.wait()?;
            Ok(array)
        };
        let data = fresh()?.read().ok();
        let keeps = |array: &Buffer| Ok::<_, Error>(array.read().ok() == data && !array.is_deleted()?);
        let mut alone = Vec::new();
        for (name, call) in OF_ARRAYS {
            let array = fresh()?;
            alone.push(answer(call(&client, &array)));
            ensure!(
                *name == BITCAST || keeps(&array)?,
                "{name} changes or deletes the array that it is called with: {sample} has other elements, or cannot be read, \
                 after {name} alone. The plugin probably takes the array for one that the caller gives up"
            );
        }
        for (first, before) in OF_ARRAYS.iter().filter(|(first, _)| *first != BITCAST) {
            for ((second, call), expected) in OF_ARRAYS.iter().zip(&alone) {
                let array = fresh()?;
                // Other checks test what each function does alone.
                drop(before(&client, &array));
                let got = answer(call(&client, &array));
                ensure!(
                    got == *expected,
                    "{second} of {sample} returns {got} after {first} was called with the array; it returns {expected} for an equal \
                     array with which nothing else was done. {first} probably changes the array"
                );
                if *second == BITCAST {
                    continue;
                }
                ensure!(
                    keeps(&array)?,
                    "{sample} is deleted, or has other elements, after {first} and then {second} was called with it, and not \
                     after either of them alone. {second} probably changes or deletes the array when it is called after {first}"
                );
            }
        }
    }
    Ok(())
}

/// A function of a program that is no report, and the call.
type OfProgram = (&'static str, fn(&Client, &LoadedExecutable) -> Result<(), Error>);

const OF_PROGRAMS: &[OfProgram] = &[
    ("PJRT_Executable_Serialize", |_, program| program.executable()?.serialize().map(drop)),
    ("PJRT_LoadedExecutable_GetExecutable", |_, program| program.executable().map(drop)),
    ("PJRT_LoadedExecutable_Execute", |client, program| {
        let array = upload_four(client, &[1.0; 4])?;
        launch(program, &[&array, &array], 0)?.output(0, 0)?.ready()?.wait()
    }),
    ("PJRT_LoadedExecutable_Execute with too few arguments", |client, program| {
        launch(program, &[&upload_four(client, &[1.0; 4])?], 0).map(drop)
    }),
];

fn programs(context: &Context) -> Verdict {
    let client = context.client()?;
    let mut alone = Vec::new();
    for (_, describe) in REPORTS {
        let program = compile_add(&client)?;
        alone.push(answer(describe(&program, &program.executable()?)));
    }
    let check = |first: &str, program: &LoadedExecutable, executable: &_| -> Verdict {
        for ((second, describe), expected) in REPORTS.iter().zip(&alone) {
            let got = answer(describe(program, executable));
            ensure!(
                got == *expected,
                "{second} returns {got} after {first} was called with the program; it returns {expected} for an equal program with \
                 which nothing else was done. {first} probably changes the program"
            );
        }
        Ok(())
    };
    for (first, before) in REPORTS {
        let program = compile_add(&client)?;
        let executable = program.executable()?;
        drop(before(&program, &executable));
        check(first, &program, &executable)?;
    }
    for (first, before) in OF_PROGRAMS {
        let program = compile_add(&client)?;
        drop(before(&client, &program));
        check(first, &program, &program.executable()?)?;
    }
    // The same object of the executable is serialized and described.
    let program = compile_add(&client)?;
    let executable = program.executable()?;
    drop(executable.serialize());
    check("PJRT_Executable_Serialize", &program, &executable)
}

/// An observer of an event.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Observer {
    Await,
    IsReady,
    Error,
    OnReady,
}

const OBSERVERS: [Observer; 4] = [Observer::Await, Observer::IsReady, Observer::Error, Observer::OnReady];

impl Observer {
    fn name(self) -> &'static str {
        match self {
            Self::Await => "PJRT_Event_Await",
            Self::IsReady => "PJRT_Event_IsReady",
            Self::Error => "PJRT_Event_Error",
            Self::OnReady => "PJRT_Event_OnReady",
        }
    }

    /// Observes an event, which is complete if `is_complete`. Returns a description of a result that is wrong.
    fn observe(self, event: &Event, is_complete: bool) -> Option<String> {
        let error = |outcome: Result<(), Error>| outcome.err().map(|error| format!("returns {error}"));
        match self {
            Self::Await => error(event.wait()),
            Self::Error => error(event.error()),
            Self::IsReady => match event.is_ready() {
                Ok(false) if is_complete => Some("says that the event is not ready".to_owned()),
                outcome => error(outcome.map(drop)),
            },
            Self::OnReady => match event.on_ready().map(|outcome| outcome.wait(patience())) {
                Ok(Some(outcome)) => outcome.err().map(|error| format!("calls its callback with {error}")),
                Ok(None) => Some("does not call its callback".to_owned()),
                Err(error) => Some(format!("returns {error}")),
            },
        }
    }
}

/// Returns the events of functions, each with its name.
fn successful(client: &Client) -> Result<Vec<(&'static str, Event)>, Finding> {
    let array = upload_four(client, &[1.0; 4])?;
    let mut events = vec![
        ("the event of PJRT_Buffer_ReadyEvent", array.ready()?),
        ("the event of PJRT_Buffer_ToHostBuffer", array.start_read(16, &CopyLayout::Unsaid)?.1),
    ];
    let host = Shaped::new(ElementType::F32, &[4], 1);
    events.push((
        "done_with_host_buffer of PJRT_Client_BufferFromHostBuffer",
        client.upload(&host.host(), Some(client.device()?), None)?.done,
    ));
    if let Ok((_, event)) = array.start_read_raw(0, 16) {
        events.push(("the event of PJRT_Buffer_CopyRawToHost", event));
    }
    if let Ok(copy) = array.copy_to_memory(client.device()?.default_memory()?) {
        events.push(("the ready event of a copy", copy.ready()?));
    }
    Ok(events)
}

/// Returns the events of an execution of a program.
fn of_execution(client: &Client, program: &LoadedExecutable) -> Result<Vec<(&'static str, Event)>, Error> {
    let array = upload_four(client, &[1.0; 4])?;
    let mut launched = launch(program, &[&array, &array], 0)?;
    Ok(vec![
        ("the ready event of an output", launched.output(0, 0)?.ready()?),
        ("the event of PJRT_LoadedExecutable_Execute", launched.done.remove(0)),
    ])
}

fn events(context: &Context) -> Verdict {
    let client = context.client()?;
    let program = compile_add(&client).ok();
    for first in OBSERVERS {
        for second in OBSERVERS {
            for third in OBSERVERS {
                let mut events = successful(&client)?;
                let executed = program.as_ref().and_then(|program| of_execution(&client, program).ok());
                events.extend(executed.unwrap_or_default());
                for (what, event) in events {
                    in_order(what, &event, [first, second, third])?;
                }
            }
        }
    }
    Ok(())
}

/// Observes an event by each of these observers.
fn in_order(what: &str, event: &Event, order: [Observer; 3]) -> Verdict {
    let mut before: Vec<&str> = Vec::new();
    let mut is_complete = false;
    for observer in order {
        // The error of an event that is not complete yet is not defined.
        if observer == Observer::Error && !is_complete {
            return Ok(());
        }
        if let Some(wrong) = observer.observe(event, is_complete) {
            let after = match before.is_empty() {
                true => "as the first observer of it".to_owned(),
                false => format!("after {} of the same event", before.join(" and ")),
            };
            return Err(Finding::Wrong(format!(
                "{} {wrong} for {what}, which completes without an error, {after}: the plugin probably lets only one observer of an \
                 event have its outcome",
                observer.name()
            )));
        }
        is_complete |= matches!(observer, Observer::Await | Observer::OnReady);
        before.push(observer.name());
    }
    Ok(())
}
