//! Checks of host memory that a transfer uses: the host overwrites it at the earliest moment that its
//! guarantee permits.

use std::time::Duration;

use super::arrays::{FIRST, Floats, SECOND, launch, numbered};
use super::entry::{ALL, Entry, check};
use crate::conform::harness::{Context, Expected, Finding, NEVER_COMPLETE, Verdict, add_program, patience};
use crate::requirements::Profile;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{
    Buffer, Client, Code, CopyLayout, ElementType, Event, HostArray, HostMemory, Layout, OVERWRITTEN,
    Program, Semantics, UNWRITTEN, Uploaded,
};

const DURING: &str = "PJRT_HostBufferSemantics_kImmutableOnlyDuringCall";
const DURING_TEXT: &str = "The host may change or free the memory as soon as the call returns.";
const UNTIL: &str = "PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes";
const UNTIL_TEXT: &str = "The host may change or free the memory once done_with_host_buffer is ready.";
const ZERO_COPY: &str = "PJRT_HostBufferSemantics_kImmutableZeroCopy";
const ZERO_COPY_TEXT: &str = "The buffer may use the memory in place, which it must not change, and done_with_host_buffer is ready once the plugin no longer uses the memory.";
const MUTABLE: &str = "PJRT_HostBufferSemantics_kMutableZeroCopy";
const MUTABLE_TEXT: &str = "The buffer may use the memory in place and change it, and done_with_host_buffer is ready once the plugin no longer uses the memory.";

pub(super) const CHECKS: &[Entry] = &[
    check(
        "lent/program_after_the_call",
        "With kImmutableOnlyDuringCall, a program reads the elements at the time of the call, even if the host overwrites its memory before the program starts.",
        program_after_call,
        "PJRT_Client_BufferFromHostBuffer when host_buffer_semantics=0 dims.0=1103 read_later",
    )
    .header(DURING, DURING_TEXT)
    .needed_by(ALL),
    check(
        "lent/strides_after_the_call",
        "With kImmutableOnlyDuringCall, an array with strides does not change if the host overwrites its memory after the call.",
        strides_after_call,
        "PJRT_Client_BufferFromHostBuffer when host_buffer_semantics=0 num_byte_strides=2 dims.0=1109 read_later",
    )
    .header(DURING, DURING_TEXT)
    .needed_by(&[Profile::Jax]),
    check(
        "lent/program_after_the_event",
        "With kImmutableUntilTransferCompletes, a program reads the elements at the time of the call, even if the host overwrites its memory once the event is complete.",
        program_after_event,
        "PJRT_Client_BufferFromHostBuffer when host_buffer_semantics=1 dims.0=1117 read_later",
    )
    .header(UNTIL, UNTIL_TEXT)
    .needed_by(ALL),
    check(
        "lent/immutable_after_the_event",
        "With kImmutableZeroCopy, neither the array nor what was computed or copied from it changes if the host overwrites its memory once the event is complete.",
        zero_copy_after_event,
        "PJRT_Client_BufferFromHostBuffer when host_buffer_semantics=2 dims.0=1123 set done_with_host_buffer=complete read_later",
    )
    .header(ZERO_COPY, ZERO_COPY_TEXT)
    .needed_by(&[Profile::Jax]),
    check(
        "lent/mutable_after_the_event",
        "With kMutableZeroCopy, neither the array nor what was computed or copied from it changes if the host overwrites its memory once the event is complete.",
        mutable_after_event,
        "PJRT_Client_BufferFromHostBuffer when host_buffer_semantics=3 dims.0=1129 set done_with_host_buffer=complete read_later",
    )
    .header(MUTABLE, MUTABLE_TEXT),
    check(
        "lent/immutable_memory_of_a_donated_array",
        "With kImmutableZeroCopy, the host's memory does not change if a program donates the array.",
        donated,
        "PJRT_LoadedExecutable_Execute when options>launch_id=950 write_lent 0",
    )
    .header(ZERO_COPY, ZERO_COPY_TEXT)
    .needed_by(&[Profile::Jax]),
    check(
        "lent/event_of_a_donated_array",
        "With kMutableZeroCopy, the event of an array that is donated completes, and an output that took over the memory does not change if the host overwrites the memory then.",
        donated_mutable,
        "PJRT_Client_BufferFromHostBuffer when host_buffer_semantics=3 dims.0=1151 set done_with_host_buffer=complete read_later",
    )
    .header(MUTABLE, MUTABLE_TEXT),
    check(
        "lent/transfers_after_their_events",
        "A piece or a literal that a transfer manager copies does not change if the host overwrites its memory once the event is complete.",
        transfers,
        "PJRT_AsyncHostToDeviceTransferManager_TransferData late_transfer",
    )
    .header("PJRT_AsyncHostToDeviceTransferManager_TransferData_Args::done_with_h2d_transfer", "The event is ready when the piece is transferred; the host may then use its memory for something else.")
    .since(62)
    .also(&["host/zml_weights", "waiting/*", "event/*"]),
    check(
        "lent/memory_stays",
        "A transfer never writes to the host's memory, unless the guarantee is kMutableZeroCopy.",
        memory_stays,
        "PJRT_Client_BufferFromHostBuffer when host_buffer_semantics=0 dims.0=1171 scribble data",
    )
    .header("PJRT_Client_BufferFromHostBuffer_Args::data", "The data is const: the plugin only reads it.")
    .needed_by(ALL),
    check(
        "lent/programs_stay",
        "Compiling, executing and loading a program does not write to its bytes or to the compile options.",
        programs_stay,
        "PJRT_Client_Compile when program>code_size=4099 scribble compile_options",
    )
    .header("PJRT_Client_Compile_Args::compile_options", "The options are const: the plugin only reads them.")
    .needed_by(ALL),
    check(
        "lent/unaligned_destination",
        "A readback can write to memory of any alignment, and its event is complete only after the bytes are there.",
        unaligned_destination,
        "PJRT_Buffer_ToHostBuffer when dst%64=3 give dst=scratch",
    )
    .header("PJRT_Buffer_ToHostBuffer_Args::event", "The event is ready when the transfer is complete.")
    .needed_by(ALL),
];

/// The time that a plugin has to release memory that it does not use in place.
const SHORT: Duration = Duration::from_millis(100);

/// Returns contents that the host writes to its memory afterwards: other numbers, which a program adds like
/// the first ones.
fn later(floats: &Floats<'_>) -> Vec<u8> {
    floats.bytes(5)
}

/// Transfers an array without waiting.
fn upload(client: &Client, bytes: &[u8], semantics: Semantics) -> Result<Uploaded, Finding> {
    let dims = [(bytes.len() / 4) as i64];
    let array = HostArray { semantics, ..HostArray::new(bytes, ElementType::F32, &dims) };
    Ok(client.upload(&array, Some(client.device()?), None)?)
}

/// Compares an array that was computed from host memory which the host has overwritten.
fn unaffected(floats: &Floats<'_>, what: &str, buffer: &Buffer, expected: &[u8]) -> Verdict {
    let cause = "the plugin still reads the host's memory after the host was permitted to overwrite it";
    Expected::floats(what, expected)
        .suspect(later(floats), cause)
        .suspect(floats.sum(5, 5), cause)
        .suspect(floats.sum(5, SECOND), cause)
        .check_array(buffer)
}

/// Waits for the event of the host's memory, which must be complete some time after an action of the host.
fn wait(done: &Event, since: &str) -> Verdict {
    match done.on_ready()?.wait(patience()) {
        Some(outcome) => Ok(outcome?),
        None => Err(Finding::Wrong(format!(
            "done_with_host_buffer {NEVER_COMPLETE} and can never free its memory: it was not ready {:?} after {since}",
            patience()
        ))),
    }
}

/// Overwrites the memory of an array before a program reads the array.
fn program_reads(context: &Context, len: usize, semantics: Semantics) -> Verdict {
    let client = context.client()?;
    for len in [len, 100_043] {
        let floats = Floats::new(&client, len);
        let program = floats.program()?;
        let uploaded = upload(&client, &floats.bytes(FIRST), semantics)?;
        if semantics == Semantics::ImmutableUntilTransferCompletes {
            wait(&uploaded.done, "the transfer, although the buffer must not use the memory in place")?;
        }
        uploaded.memory.write(&later(&floats));
        let output = launch(&program, [&uploaded.buffer, &uploaded.buffer], 0)?;
        unaffected(&floats, "the sum of the array with itself", &output, &floats.sum(FIRST, FIRST))?;
    }
    Ok(())
}

fn program_after_call(context: &Context) -> Verdict {
    program_reads(context, 1103, Semantics::ImmutableOnlyDuringCall)
}

fn program_after_event(context: &Context) -> Verdict {
    program_reads(context, 1117, Semantics::ImmutableUntilTransferCompletes)
}

fn strides_after_call(context: &Context) -> Verdict {
    const DIMS: [i64; 2] = [1109, 37];
    let client = context.client()?;
    let bytes = numbered(ElementType::S32, (DIMS[0] * DIMS[1]) as usize);
    let strides = [4, 4 * DIMS[0]];
    let array = HostArray { strides: Some(&strides), ..HostArray::new(&bytes, ElementType::S32, &DIMS) };
    let uploaded = client.upload(&array, Some(client.device()?), None)?;
    uploaded.memory.overwrite();
    let elements = bytes.as_chunks::<4>().0;
    let [rows, columns] = DIMS.map(|dim| dim as usize);
    let expected: Vec<u8> = (0..rows)
        .flat_map(|row| (0..columns).flat_map(move |column| elements[column * rows + row]))
        .collect();
    let cause =
        "the plugin applied the strides after the call had returned, to memory that the host had overwritten";
    Expected::new("the array", &expected, ElementType::S32, &DIMS)
        .suspect(vec![OVERWRITTEN; expected.len()], cause)
        .check_array(&uploaded.buffer)
}

/// Overwrites lent memory once the event is complete. If the plugin uses the memory in place, the event is
/// complete only after all buffers that may use it were destroyed; what was computed and copied remains.
fn lent_memory(context: &Context, len: usize, semantics: Semantics) -> Verdict {
    let client = context.client()?;
    let floats = Floats::new(&client, len);
    let program = floats.program()?;
    let uploaded = upload(&client, &floats.bytes(FIRST), semantics)?;
    let output = launch(&program, [&uploaded.buffer, &uploaded.buffer], 0)?;
    let copy = uploaded.buffer.copy_to_memory(client.device()?.default_memory()?);
    let is_done = uploaded.done.on_ready()?;
    if is_done.wait(SHORT).is_some() {
        uploaded.memory.write(&later(&floats));
        unaffected(&floats, "the array after its event", &uploaded.buffer, &floats.bytes(FIRST))?;
        let again = launch(&program, [&uploaded.buffer, &uploaded.buffer], 0)?;
        unaffected(&floats, "a sum after the event", &again, &floats.sum(FIRST, FIRST))?;
    } else {
        let Uploaded { buffer, done, memory } = uploaded;
        drop(buffer);
        // A copy may use the memory in place as well, until it is destroyed.
        let in_place = is_done.wait(SHORT).is_none();
        if in_place {
            if let Ok(copy) = &copy {
                unaffected(&floats, "a copy of the array", copy, &floats.bytes(FIRST))?;
            }
            drop(copy);
            return wait(&done, "the array and its copy were destroyed");
        }
        memory.write(&later(&floats));
    }
    unaffected(&floats, "a sum that was computed before the event", &output, &floats.sum(FIRST, FIRST))?;
    match copy {
        Ok(copy) => unaffected(&floats, "a copy that was made before the event", &copy, &floats.bytes(FIRST)),
        Err(_) => Ok(()),
    }
}

fn zero_copy_after_event(context: &Context) -> Verdict {
    lent_memory(context, 1123, Semantics::ImmutableZeroCopy)
}

fn mutable_after_event(context: &Context) -> Verdict {
    lent_memory(context, 1129, Semantics::MutableZeroCopy)
}

/// Checks that the plugin did not write to memory that it may only read.
fn is_unchanged(what: &str, now: &[u8], before: &[u8]) -> Verdict {
    match now.iter().zip(before).position(|(now, before)| now != before) {
        None => Ok(()),
        Some(at) => Err(Finding::Wrong(format!(
            "the plugin wrote to {what}: byte {at} was 0x{:02x} and is 0x{:02x}. It may only read this memory, which is \
             the user's",
            before[at], now[at]
        ))),
    }
}

fn memory_stays(context: &Context) -> Verdict {
    let client = context.client()?;
    let floats = Floats::new(&client, 1171);
    let program = floats.program()?;
    let matrix = [1171, 3];
    let column_major = [4, 4 * 1171];
    for semantics in Semantics::ALL.into_iter().filter(|it| *it != Semantics::MutableZeroCopy) {
        let bytes = floats.bytes(FIRST);
        let uploaded = upload(&client, &bytes, semantics)?;
        let what = format!("the host's memory of an array that was transferred with {semantics:?}");
        is_unchanged(&what, &uploaded.memory.bytes(), &bytes)?;
        launch(&program, [&uploaded.buffer, &uploaded.buffer], 0)?.read()?;
        is_unchanged(
            &format!("{what}, before or while a program read it"),
            &uploaded.memory.bytes(),
            &bytes,
        )?;
        let bytes = numbered(ElementType::F32, 3 * 1171);
        let dense = HostArray { semantics, ..HostArray::new(&bytes, ElementType::F32, &matrix) };
        let uploaded = client.upload(
            &HostArray { strides: Some(&column_major), ..dense },
            Some(client.device()?),
            None,
        )?;
        uploaded.buffer.read()?;
        is_unchanged(&format!("{what} and strides"), &uploaded.memory.bytes(), &bytes)?;
    }
    Ok(())
}

/// Uses a program in each way in which the plugin receives its bytes. Every call compares what the host passes before and after.
fn programs_stay(context: &Context) -> Verdict {
    let client = context.client()?;
    let floats = Floats::new(&client, 1171);
    // The number of bytes is the same for each plugin.
    let text = format!("{:<4099}", add_program("1171x").trim_start());
    let program = client.compile(&Program::mlir(&text), &CompileOptions::default().encode())?;
    let (x, y) = (floats.upload(FIRST)?, floats.upload(SECOND)?);
    floats.check("the output", &launch(&program, [&x, &y], 0)?, &floats.sum(FIRST, SECOND), "")?;
    // The plugin need not be able to save programs.
    let Ok(serialized) = program.executable()?.serialize() else { return Ok(()) };
    let loaded = launch(&client.deserialize(&serialized.bytes)?, [&x, &y], 0)?;
    floats.check("the output of the loaded program", &loaded, &floats.sum(FIRST, SECOND), "")
}

fn donated(context: &Context) -> Verdict {
    let client = context.client()?;
    // Plugins copy small arrays.
    [1153, 16_411, 262_147].iter().try_for_each(|len| donated_of(&client, *len))
}

fn donated_of(client: &Client, len: usize) -> Verdict {
    let floats = Floats::new(client, len);
    let (program, y) = (floats.donating_program()?, floats.upload(SECOND)?);
    let uploaded = upload(client, &floats.bytes(FIRST), Semantics::ImmutableZeroCopy)?;
    let output = launch(&program, [&uploaded.buffer, &y], 950)?;
    output.ready()?.wait()?;
    let expected = floats.bytes(FIRST);
    Expected::floats("the host's memory after the array was donated", &expected)
        .otherwise(
            "the plugin wrote to immutable memory of the host, perhaps because the output took it over",
        )
        .check(&uploaded.memory.bytes())?;
    floats.check("the output", &output, &floats.sum(FIRST, SECOND), "")
}

fn donated_mutable(context: &Context) -> Verdict {
    let client = context.client()?;
    let floats = Floats::new(&client, 1151);
    let (program, y) = (floats.donating_program()?, floats.upload(SECOND)?);
    let Uploaded { buffer, done, memory } =
        upload(&client, &floats.bytes(FIRST), Semantics::MutableZeroCopy)?;
    let output = launch(&program, [&buffer, &y], 0)?;
    let is_done = done.on_ready()?;
    drop(buffer);
    if is_done.wait(SHORT).is_some() {
        memory.write(&later(&floats));
        return unaffected(&floats, "the output after the event", &output, &floats.sum(FIRST, SECOND));
    }
    floats.check("the output", &output, &floats.sum(FIRST, SECOND), "")?;
    drop(output);
    wait(&done, "the array and the output were destroyed")
}

fn unaligned_destination(context: &Context) -> Verdict {
    let client = context.client()?;
    for len in [1163, 100_049] {
        let floats = Floats::new(&client, len);
        let (array, expected) = (floats.upload(FIRST)?, floats.bytes(FIRST));
        for skew in [1, 3, 4, 8, 32] {
            let (memory, event) = array.start_read_at(skew, expected.len(), &CopyLayout::Unsaid)?;
            event.wait()?;
            let what = format!("memory {skew} bytes after a multiple of 64, at the end of a readback");
            Expected::floats(&what, &expected)
                .suspect(
                    vec![UNWRITTEN; expected.len()],
                    "the event was complete before the bytes were written, perhaps because the plugin copies to an aligned \
                     buffer first",
                )
                .check(&memory.bytes())?;
        }
    }
    Ok(())
}

/// Waits for the event of a transfer, overwrites the host's memory, and compares the array.
fn stays(what: &str, array: &Buffer, done: &Event, memory: &HostMemory, expected: &[u8]) -> Verdict {
    wait(done, "a transfer")?;
    memory.overwrite();
    Expected::floats(what, expected).check_array(array)
}

fn transfers(context: &Context) -> Verdict {
    let client = context.client()?;
    // Small pieces may be copied during the call, and large ones later by other threads.
    for len in [4, 1000, 1 << 18] {
        let bytes = numbered(ElementType::F32, len);
        let shapes = [(ElementType::F32, vec![len as i64]), (ElementType::F32, vec![len as i64])];
        let manager = client.transfer_manager(&shapes, client.device()?.default_memory()?)?;
        let (array, memory) = (manager.retrieve(0)?, HostMemory::new(&bytes, 0));
        let done = manager.write_from(0, &memory, 0, true)?;
        let what = "an array whose transfer's event was complete before the host overwrote its memory";
        stays(what, &array, &done, &memory, &bytes)?;
        let (array, memory) = (manager.retrieve(1)?, HostMemory::new(&bytes, 0));
        let dims = [len as i64];
        match manager.write_array_from(1, &memory, ElementType::F32, &dims, &Layout::dense(1)) {
            Err(error) if error.code == Code::UNIMPLEMENTED => {}
            done => stays(&what.replace("transfer's", "literal's"), &array, &done?, &memory, &bytes)?,
        }
    }
    Ok(())
}
