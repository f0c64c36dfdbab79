//! Checks of objects that outlive others: what ends reaches neither another client, nor an output, nor an event.

use super::entry::{ALL, Entry, NONE, check};
use super::program_text::{compiled, launch, with_main};
use crate::conform::harness::{
    Context, Expected, Finding, OFFSET_IGNORED, Verdict, compile_add, ensure, equal, f32_bytes, numbers,
    patience, upload_four, upload_to,
};
use crate::requirements::Profile;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{Buffer, Client, CopyLayout, ElementType, Event, LoadedExecutable};

pub(super) const CHECKS: &[Entry] = &[
    check(
        "outliving/other_clients",
        "Everything that a client and its objects can do works after another client of the process was destroyed.",
        other_clients,
        "PJRT_LoadedExecutable_Execute when options>launch_id=690 since PJRT_Client_Destroy fail UNAVAILABLE",
    )
    .header("PJRT_Client_Destroy", "Shuts down and frees `client`, and no other one."),
    check(
        "outliving/outputs",
        "The outputs of a program of no, one or several parameters, also constants and arguments, keep their elements after the program, its executable and its arguments ended.",
        outputs,
        "PJRT_LoadedExecutable_Execute when options>launch_id=614 call 5 zeroed_output 0",
    )
    .header("PJRT_LoadedExecutable_Execute_Args::output_lists", "The outputs are buffers of the caller, which end with PJRT_Buffer_Destroy."),
    check(
        "outliving/descriptions_of_programs",
        "What functions returned about an executable, and return in later calls, stays the same after the loaded executable ended that it came from.",
        super::returned::of_an_outliving_program,
        "PJRT_Executable_OutputDimensions call 3 fail INTERNAL",
    )
    .header("PJRT_LoadedExecutable_GetExecutable", "The caller owns the executable, whose memory lives as long as the executable itself.")
    .only_used_by(NONE)
    .also(&["*"]),
    check(
        "outliving/events",
        "Each event, observed or not, keeps its outcome after the array, the program or the client it was obtained from was deleted or destroyed.",
        events,
        "PJRT_Event_IsReady since PJRT_Buffer_Delete fail INTERNAL",
    )
    .header("PJRT_Buffer_ReadyEvent", "If it is called before PJRT_Buffer_Delete, the returned event does not transition to an error state.")
    .used_by(ALL)
    .also(&["*"]),
    check(
        "outliving/raw_buffers",
        "A raw buffer holds the memory of its array after the array was deleted or destroyed, whatever is uploaded then.",
        raw_buffers,
        "PJRT_RawBuffer_CopyRawDeviceToHost since PJRT_Buffer_Delete give offset=0",
    )
    .header("pjrt_c_api_raw_buffer_extension.h", "The raw buffer is an alias of the buffer, which shares its memory.")
    .used_by(&[Profile::Jax])
    .also(&["*"]),
];

/// The numbers of an array.
const FOUR: [f32; 4] = [1.5, 2.0, -3.0, 4.25];

/// Uploads, copies and executes on every device of a client, and waits in each way.
fn works(client: &Client, program: &LoadedExecutable, when: &str) -> Verdict {
    let failed = |what: &str| {
        let text = format!("{what} {when}");
        move |error: pjrt_testing::host::Error| {
            let why = "the plugin probably shares state between clients, which ends with one of them";
            Finding::Wrong(format!("{text} failed: {error}; {why}"))
        }
    };
    let x = upload_four(client, &FOUR).map_err(failed("an upload"))?;
    let ready = x.ready().and_then(|event| event.on_ready()).map_err(failed("PJRT_Event_OnReady"))?;
    match ready.wait(patience()) {
        Some(outcome) => outcome.map_err(failed("an upload"))?,
        None => {
            return Err(Finding::Wrong(format!(
                "an upload {when} is not complete after {limit:?}",
                limit = patience()
            )));
        }
    }
    for device in client.addressable_devices()? {
        let array = upload_to(client, &FOUR, device).map_err(failed("an upload"))?.buffer;
        equal(
            &format!("an array uploaded {when}"),
            numbers(&array).map_err(failed("a readback"))?,
            FOUR.to_vec(),
        )?;
    }
    let launched = launch(program, &[&x, &x], 690).map_err(failed("an execution"))?;
    launched.done[0].wait().map_err(failed("the event of an execution"))?;
    let sums = numbers(launched.output(0, 0)?).map_err(failed("the readback of an output"))?;
    equal(&format!("the output of an execution {when}"), sums, FOUR.map(|value| 2.0 * value).to_vec())?;
    let copy = launched.output(0, 0)?.copy_to_memory(client.device()?.default_memory()?);
    match copy {
        Ok(copy) => equal(
            &format!("a copy made {when}"),
            numbers(&copy).map_err(failed("the readback of a copy"))?,
            FOUR.map(|value| 2.0 * value).to_vec(),
        ),
        Err(error) if error.code == pjrt_testing::host::Code::UNIMPLEMENTED => Ok(()),
        Err(error) => Err(failed("a copy")(error)),
    }
}

fn other_clients(context: &Context) -> Verdict {
    // A process may be limited to one client.
    let first = context.client()?;
    let Ok(second) = context.client() else {
        return Err(Finding::NotApplicable("a second client cannot be created".to_owned()));
    };
    let mut clients = [Some(first), Some(second)];
    for ends in [1, 0] {
        let stays = 1 - ends;
        let client = clients[stays].take().map_or_else(|| context.client(), Ok)?;
        let other = clients[ends].take().map_or_else(|| context.client(), Ok)?;
        let array = upload_four(&client, &FOUR)?;
        let program = compile_add(&client)?;
        let of_other = compile_add(&other)?;
        works(&client, &program, "while two clients exist")?;
        works(&other, &of_other, "while two clients exist")?;
        drop(of_other);
        drop(other);
        let which = if ends == 1 { "newer" } else { "older" };
        let when = format!("after the {which} of two clients was destroyed");
        works(&client, &program, &when)?;
        works(&client, &compile_add(&client)?, &when)?;
        equal(&format!("an array from before, read {when}"), numbers(&array)?, FOUR.to_vec())?;
    }
    Ok(())
}

/// A program of outputs that other objects may own: the parameters, the operations, the results and their elements.
type Owned = (&'static str, &'static str, &'static str, &'static [[f32; 4]]);

const CONSTANT: &str = "    %c = stablehlo.constant dense<[1.5, 2.0, -3.0, 4.25]> : tensor<4xf32>\n";

const CONSTANT_AND_SUM: &str = "    %c = stablehlo.constant dense<[1.5, 2.0, -3.0, 4.25]> : tensor<4xf32>\n    %s = stablehlo.add %c, %c : tensor<4xf32>\n";

const SUM_OF_PARAMETER: &str = "    %c = stablehlo.constant dense<[1.5, 2.0, -3.0, 4.25]> : tensor<4xf32>\n    %s = stablehlo.add %p0, %c : tensor<4xf32>\n";

const TWICE: [f32; 4] = [3.0, 4.0, -6.0, 8.5];

const OWNED: &[Owned] = &[
    ("", CONSTANT, "%c", &[FOUR]),
    ("", CONSTANT, "%c, %c", &[FOUR, FOUR]),
    ("", CONSTANT_AND_SUM, "%s", &[TWICE]),
    ("", CONSTANT_AND_SUM, "%c, %s", &[FOUR, TWICE]),
    ("%p0: tensor<4xf32>", "", "%p0", &[FOUR]),
    ("%p0: tensor<4xf32>", "", "%p0, %p0", &[FOUR, FOUR]),
    ("%p0: tensor<4xf32>", SUM_OF_PARAMETER, "%s, %c, %p0", &[TWICE, FOUR, FOUR]),
    ("%p0: tensor<4xf32>, %p1: tensor<4xf32>", "", "%p1, %p0", &[FOUR, FOUR]),
    (
        "%p0: tensor<4xf32>, %p1: tensor<4xf32>, %p2: tensor<4xf32>",
        SUM_OF_PARAMETER,
        "%p2, %s",
        &[FOUR, TWICE],
    ),
];

/// Uses memory that has become free.
fn use_memory(client: &Client) -> Result<Vec<Buffer>, Finding> {
    Ok((0..16).map(|_| upload_four(client, &[-77.0; 4])).collect::<Result<Vec<_>, _>>()?)
}

fn outputs(context: &Context) -> Verdict {
    let client = context.client()?;
    for (parameters, lines, results, expected) in OWNED {
        let types = vec!["tensor<4xf32>"; expected.len()].join(", ");
        let text = with_main(parameters, lines, results, &types);
        for is_deleted in [false, true] {
            let program = compiled(&client, &text, &CompileOptions::default())?;
            let count = parameters.matches('%').count();
            let arguments = (0..count).map(|_| upload_four(&client, &FOUR)).collect::<Result<Vec<_>, _>>()?;
            let launched = launch(&program, &arguments.iter().collect::<Vec<_>>(), 614)?;
            launched.done[0].wait()?;
            let executable = program.executable()?;
            if is_deleted {
                program.delete()?;
                for argument in &arguments {
                    argument.delete()?;
                }
            }
            drop((executable, program, arguments));
            let _others = use_memory(&client)?;
            for (index, output) in launched.outputs_of(0, expected.len())?.iter().enumerate() {
                let got = numbers(output)?;
                ensure!(
                    got == expected[index],
                    "output {index} of {} of a program with {count} parameters, which returns {results}, is {got:?} after the program \
                     and its arguments were destroyed; expected {:?}. The plugin probably returns memory that belongs to the program",
                    expected.len(),
                    expected[index]
                );
            }
        }
    }
    Ok(())
}

/// An observation of an event before the end of its parent.
const OBSERVATIONS: [&str; 4] = ["not observed", "awaited", "polled", "given a callback"];

fn observe(event: &Event, observation: &str) -> Verdict {
    match observation {
        "awaited" => event.wait()?,
        "polled" => drop(event.is_ready()?),
        "given a callback" => drop(event.on_ready()?.wait(patience())),
        _ => {}
    }
    Ok(())
}

/// Fails unless an event is complete without an error, in each way to ask.
fn is_fine(event: &Event, what: &str) -> Verdict {
    let wrong = |how: &str, error: pjrt_testing::host::Error| {
        Finding::Wrong(format!(
            "{what}: {how} reports {error}; expected success, as the event was obtained before. The plugin probably asks the \
             object that has ended"
        ))
    };
    event.wait().map_err(|error| wrong("PJRT_Event_Await", error))?;
    ensure!(event.is_ready().map_err(|error| wrong("PJRT_Event_IsReady", error))?, "{what}: it is not ready");
    event.error().map_err(|error| wrong("PJRT_Event_Error", error))?;
    match event.on_ready()?.wait(patience()) {
        Some(outcome) => outcome.map_err(|error| wrong("PJRT_Event_OnReady", error)),
        None => Err(Finding::Wrong(format!(
            "{what}: the callback is not called after {limit:?}",
            limit = patience()
        ))),
    }
}

/// Arrays, the events of the arrays and of the calls that made them, by name, and the program that ran.
type Obtained = (Vec<Buffer>, Vec<(&'static str, Event)>, Option<LoadedExecutable>);

fn obtained(client: &Client, program: Option<LoadedExecutable>) -> Result<Obtained, Finding> {
    let uploaded = upload_to(client, &FOUR, client.device()?)?;
    let mut events = vec![("done_with_host_buffer of an upload", uploaded.done)];
    // The host's memory must live until the readback has ended.
    let (_memory, read) = uploaded.buffer.start_read(16, &CopyLayout::Unsaid)?;
    read.wait()?;
    events.push(("the event of a readback", read));
    let mut arrays = vec![("the ready event of an upload", uploaded.buffer)];
    if let Ok(copy) = arrays[0].1.copy_to_memory(client.device()?.default_memory()?) {
        arrays.push(("the ready event of a copy", copy));
    }
    if let Some(program) = &program {
        let mut launched = program.run(&[&arrays[0].1, &arrays[0].1])?;
        events.push(("the event of an execution", launched.done.remove(0)));
        arrays.push(("the ready event of an output", launched.take_output()?));
    }
    for (_, array) in &arrays {
        array.ready()?.wait()?;
    }
    // No event is destroyed after these are created, so that a plugin which shares events also shares their state.
    for (name, array) in &arrays {
        events.push((name, array.ready()?));
    }
    Ok((arrays.into_iter().map(|(_, array)| array).collect(), events, program))
}

fn events(context: &Context) -> Verdict {
    for observation in OBSERVATIONS {
        for end in ["deleted", "destroyed", "deleted and destroyed", "destroyed with the client"] {
            let client = context.client()?;
            let (arrays, events, program) = obtained(&client, compile_add(&client).ok())?;
            for (_, event) in &events {
                observe(event, observation)?;
            }
            if end.starts_with("deleted") {
                arrays.iter().try_for_each(Buffer::delete)?;
            }
            if end.contains("destroyed") {
                drop((arrays, program));
                let _others = use_memory(&client)?;
                if end.contains("client") {
                    drop(client);
                }
            }
            for (name, event) in &events {
                is_fine(event, &format!("{name}, {observation} before the array was {end}"))?;
            }
        }
    }
    Ok(())
}

fn raw_buffers(context: &Context) -> Verdict {
    let client = context.client()?;
    let bytes = f32_bytes(&(0..64).map(|value| value as f32 + 0.5).collect::<Vec<_>>());
    for is_deleted in [false, true] {
        let host = pjrt_testing::host::HostArray::new(&bytes, ElementType::F32, &[64]);
        let array = client.upload(&host, Some(client.device()?), None)?.buffer;
        array.ready()?.wait()?;
        let (_, whole) = array.read_as_raw_buffer(4, 252)?;
        Expected::floats("252 bytes of a raw buffer from offset 4", &bytes[4..])
            .suspect(&bytes[..252], OFFSET_IGNORED)
            .check(&whole)?;
        let mut others = Vec::new();
        let read = array.read_as_raw_buffer_after_end(is_deleted, 4, 252, || {
            let other = vec![0x77; bytes.len()];
            for _ in 0..16 {
                let host = pjrt_testing::host::HostArray::new(&other, ElementType::F32, &[64]);
                others.push(client.upload(&host, Some(client.device()?), None)?.buffer);
            }
            Ok(())
        })?;
        ensure!(
            read == bytes[4..],
            "a raw buffer has other bytes after its array was {} and other arrays were uploaded: {:?}...; expected {:?}.... The raw \
             buffer probably does not hold the memory of the array",
            if is_deleted { "deleted and destroyed" } else { "destroyed" },
            &read[..8],
            &bytes[4..12]
        );
    }
    Ok(())
}
