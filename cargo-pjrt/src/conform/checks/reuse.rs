//! Checks of the reuse of memory: what an object needs is not overwritten when other objects release memory
//! and new arrays of the same size are created.

use super::arrays::{FIRST, Floats, OTHER, SECOND, launch};
use super::entry::{ALL, Entry, check};
use super::pending::Pending;
use super::program_text::{self, compiled, with_main};
use crate::conform::harness::{Context, Expected, Finding, OVERWRITTEN_OUTPUT, UNKNOWN, Verdict, f32_bytes};
use crate::requirements::Profile;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{Buffer, Code, CopyLayout};

const DELETE: &str = "PJRT_Buffer_Delete";
const DELETE_TEXT: &str = "The function drops the buffer's reference to its memory, which frees the memory once all computations and copies that use it have ended.";

pub(super) const CHECKS: &[Entry] = &[
    check(
        "reuse/arrays_at_once",
        "Arrays of the same size that exist at the same time have separate memory.",
        at_once,
        "PJRT_Client_BufferFromHostBuffer when dims.0=1051 same_upload",
    )
    .header("PJRT_Client_BufferFromHostBuffer", "Each call creates a buffer with the data of the host's memory.")
    .needed_by(ALL),
    check(
        "reuse/copy_in_the_same_memory",
        "A copy to the memory of its source has separate memory, which deleting the source does not free.",
        copy_to_memory,
        "PJRT_Buffer_CopyToMemory share_source",
    )
    .header("PJRT_Buffer_CopyToMemory", "The result is a new buffer that the caller destroys, independently of its source.")
    .needed_by(&[Profile::Jax])
    .also(&["donation/copy_of_the_argument"]),
    check(
        "reuse/copy_to_the_same_device",
        "A copy to the device of its source, unless the plugin refuses it, has separate memory.",
        copy_to_device,
        "PJRT_Buffer_CopyToDevice share_source",
    )
    .advice("No host copies an array to its own device with this function: JAX and PyTorch/XLA copy to memories, and go-xla refuses such a copy itself. The owner of an array that shares memory could not donate it."),
    check(
        "reuse/inputs_of_a_running_program",
        "An execution keeps the memory of its arguments until it has ended, even if the host deletes or destroys them immediately.",
        running,
        "PJRT_LoadedExecutable_Execute when options>launch_id=971 late_execution",
    )
    .header(DELETE, DELETE_TEXT)
    .needed_by(ALL),
    check(
        "reuse/memory_of_a_waiting_program",
        "An execution that waits for an argument keeps the memory of its intermediate values and outputs: it does not write to arrays that the host creates meanwhile.",
        waiting,
        "PJRT_Client_BufferFromHostBuffer since PJRT_LoadedExecutable_Execute when dims.0=1063 same_upload",
    )
    .header("PJRT_LoadedExecutable_Execute", "The execution is asynchronous: until its event is complete, what it writes must be its own memory."),
    check(
        "reuse/array_that_is_being_read",
        "A readback keeps the memory of its array until its event is complete, even if the host deletes or destroys the array immediately.",
        being_read,
        "PJRT_Buffer_ToHostBuffer when dst_size=4244 late_readback",
    )
    .header(DELETE, DELETE_TEXT)
    .needed_by(&[Profile::Jax, Profile::TorchXla]),
    check(
        "reuse/arguments_after_a_launch",
        "An execution does not free its arguments, which the host still holds.",
        arguments_stay,
        "PJRT_LoadedExecutable_Execute when options>launch_id=972 free_arguments",
    )
    .header("PJRT_LoadedExecutable_Execute", "The caller retains the ownership of the arguments, except for those that the program donates.")
    .needed_by(ALL),
    check(
        "reuse/outputs_of_two_launches",
        "The outputs of an execution do not change when the same program is executed again.",
        two_launches,
        "PJRT_LoadedExecutable_Execute when options>launch_id=973 same_output",
    )
    .header("PJRT_LoadedExecutable_Execute", "Each execution creates its outputs, which the caller destroys.")
    .needed_by(ALL),
    check(
        "reuse/freed_once",
        "Destroying an array that was deleted does not free its memory a second time.",
        freed_once,
        "PJRT_Buffer_Delete free_twice",
    )
    .header("PJRT_Buffer_Destroy", "The function deletes the buffer, if this has not happened yet, and frees the object.")
    .needed_by(ALL),
];

fn at_once(context: &Context) -> Verdict {
    let client = context.client()?;
    let floats = Floats::new(&client, 1051);
    let arrays: Vec<Buffer> = (0..6).map(|number| floats.upload(number)).collect::<Result<_, _>>()?;
    for (number, array) in (0..).zip(&arrays) {
        let expected = floats.bytes(number);
        let mut comparison = Expected::floats("an array after others were created", &expected);
        for other in (0..6).filter(|other| *other != number) {
            let cause = "the array has the memory of another array that exists at the same time";
            comparison = comparison.suspect(floats.bytes(other), cause);
        }
        comparison.check_array(array)?;
    }
    Ok(())
}

/// Reads a copy after its source was deleted or destroyed, and the memory of the source was reused.
fn copy_stays(floats: &Floats<'_>, copy: impl Fn(&Buffer) -> Result<Buffer, Finding>) -> Verdict {
    for is_deleted in [true, false] {
        let source = floats.upload(FIRST)?;
        let copy = copy(&source)?;
        if is_deleted {
            // The copy may still be in progress.
            source.delete()?;
        } else {
            copy.ready()?.wait()?;
            drop(source);
        }
        let _others = floats.reuse()?;
        let cause = "the copy shares the memory of its source, which was freed with the source";
        floats.check("the copy after its source was deleted", &copy, &floats.bytes(FIRST), cause)?;
    }
    Ok(())
}

fn copy_to_memory(context: &Context) -> Verdict {
    let client = context.client()?;
    let memory = client.device()?.default_memory()?;
    copy_stays(&Floats::new(&client, 1053), |source| Ok(source.copy_to_memory(memory)?))
}

fn copy_to_device(context: &Context) -> Verdict {
    let client = context.client()?;
    let device = client.device()?;
    copy_stays(&Floats::new(&client, 1055), |source| match source.copy_to_device(device) {
        Err(error) if error.code == Code::INVALID_ARGUMENT => {
            Err(Finding::Unsupported(format!("a copy to the same device is refused: {error}")))
        }
        copy => Ok(copy?),
    })
}

fn running(context: &Context) -> Verdict {
    const LARGE: usize = 100_003;
    let client = context.client()?;
    for (len, is_deleted) in [(1057, true), (1057, false), (LARGE, true), (LARGE, false)] {
        let floats = Floats::new(&client, len);
        let program = floats.program()?;
        let (x, y) = (floats.upload(FIRST)?, floats.upload(SECOND)?);
        let output = launch(&program, [&x, &y], 971)?;
        if is_deleted {
            x.delete()?;
            y.delete()?;
        } else {
            drop((x, y));
        }
        let _others = floats.reuse()?;
        let cause = "the memory of the deleted arguments was reused before the execution had read them";
        let what = "the sum of arrays that were deleted while the program ran";
        floats.check(what, &output, &floats.sum(FIRST, SECOND), cause)?;
    }
    Ok(())
}

fn waiting(context: &Context) -> Verdict {
    const OTHERS: u8 = 12;
    let client = context.client()?;
    let floats = Floats::new(&client, 1063);
    let chain = ["%p1, %p1", "%s0, %s0", "%s1, %s0", "%s2, %s1", "%s3, %s2"].iter().enumerate();
    let lines: String = chain
        .map(|(at, operands)| format!("    %s{at} = stablehlo.add {operands} : tensor<1063xf32>\n"))
        .collect();
    let text = with_main(
        "%p0: tensor<4xf32>, %p1: tensor<1063xf32>",
        &format!("{lines}    %small = stablehlo.add %p0, %p0 : tensor<4xf32>\n"),
        "%s4, %small",
        "tensor<1063xf32>, tensor<4xf32>",
    );
    let program = compiled(&client, &text, &CompileOptions::default())?;
    let (x, pending) = (floats.upload(FIRST)?, Pending::new(&client)?);
    let launched = program_text::launch(&program, &[&pending.array, &x], 974)?;
    // In a plugin with one queue, the uploads may come after the execution.
    let others = (0..OTHERS).map(|number| floats.start_upload(10 + number)).collect::<Result<Vec<_>, _>>()?;
    let _array = pending.provide(&client, &[1.0; 4])?;
    launched.done[0].wait()?;
    for (number, other) in (0..OTHERS).zip(&others) {
        let expected = floats.bytes(10 + number);
        Expected::floats("an array that was uploaded while an execution waited for its argument", &expected)
            .otherwise(
                "the execution probably wrote its intermediate values or outputs to memory that was free when it was launched, \
                 or that was freed before it ran",
            )
            .check_array(other)?;
    }
    // The sums are 2, 4, 6, 10 and 16 times the argument.
    let bytes = floats.bytes(FIRST);
    let numbers = bytes.as_chunks().0.iter().map(|bytes| 16.0 * f32::from_le_bytes(*bytes));
    let expected = f32_bytes(&numbers.collect::<Vec<_>>());
    Expected::floats("the output of an execution that waited for its argument", &expected)
        .otherwise("an array that was uploaded meanwhile probably has the memory of an intermediate value of the execution")
        .check_array(launched.output(0, 0)?)
}

fn being_read(context: &Context) -> Verdict {
    const LARGE: usize = 100_019;
    let client = context.client()?;
    for (len, is_deleted) in [(1061, true), (1061, false), (LARGE, true), (LARGE, false)] {
        let floats = Floats::new(&client, len);
        let array = floats.upload(FIRST)?;
        let (bytes, event) = array.start_read(4 * len, &CopyLayout::Unsaid)?;
        if is_deleted {
            array.delete()?;
        } else {
            drop(array);
        }
        let _others = floats.reuse()?;
        event.wait()?;
        let cause = "the memory of the deleted array was reused before the readback had copied it";
        let what = "the bytes of an array that was deleted while it was read";
        let bytes = bytes.written("PJRT_Buffer_ToHostBuffer")?;
        floats.check_bytes(what, &bytes, &floats.bytes(FIRST), cause)?;
    }
    Ok(())
}

fn arguments_stay(context: &Context) -> Verdict {
    let client = context.client()?;
    let floats = Floats::new(&client, 1063);
    let program = floats.program()?;
    let (x, y) = (floats.upload(FIRST)?, floats.upload(SECOND)?);
    launch(&program, [&x, &y], 972)?.ready()?.wait()?;
    let _others = floats.reuse()?;
    let cause = "the execution freed the memory of its arguments, and new arrays reused it";
    floats.check("the first argument after the execution", &x, &floats.bytes(FIRST), cause)?;
    floats.check("the second argument after the execution", &y, &floats.bytes(SECOND), cause)
}

fn two_launches(context: &Context) -> Verdict {
    let client = context.client()?;
    let floats = Floats::new(&client, 1067);
    let program = floats.program()?;
    let (x, y, other) = (floats.upload(FIRST)?, floats.upload(SECOND)?, floats.upload(OTHER)?);
    let output = launch(&program, [&x, &y], 973)?;
    floats.check("the output of the first execution", &output, &floats.sum(FIRST, SECOND), UNKNOWN)?;
    let next = launch(&program, [&other, &other], 973)?;
    next.ready()?.wait()?;
    let what = "the first output, which was right before, after a second execution";
    floats.check(what, &output, &floats.sum(FIRST, SECOND), OVERWRITTEN_OUTPUT)?;
    floats.check("the second output", &next, &floats.sum(OTHER, OTHER), "")
}

fn freed_once(context: &Context) -> Verdict {
    let client = context.client()?;
    let floats = Floats::new(&client, 1069);
    let deleted = floats.upload(FIRST)?;
    deleted.delete()?;
    let array = floats.upload(SECOND)?;
    drop(deleted);
    let _others = floats.reuse()?;
    let cause = "PJRT_Buffer_Destroy freed the memory that PJRT_Buffer_Delete had freed before, although an array already used it again";
    let what = "an array that was created between the deletion and the destruction of another one";
    floats.check(what, &array, &floats.bytes(SECOND), cause)
}
