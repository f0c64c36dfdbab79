//! Checks of donation: an execution that takes over the memory of an argument.

use super::arrays::{FIRST, Floats, OTHER, SECOND, launch};
use super::devices::{id_of, two};
use super::entry::{Entry, check};
use super::program_text::{compiled, launch_on_all, with_main};
use super::readers::in_programs;
use super::samples::{Shaped, for_each_sample};
use crate::conform::harness::{
    Context, Expected, Finding, Verdict, add_program, ensure, equal, f32_bytes, hangs, numbers, patience,
    upload_four, upload_to,
};
use crate::requirements::Profile;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{Buffer, Client, CopyLayout, ElementType, Error, ExecuteOptions, HostArray};

const IS_DELETED: &str = "PJRT_Buffer_IsDeleted";
const IS_DELETED_TEXT: &str = "The function returns true if the buffer was deleted, or donated to an execution. The data of all other buffers remains.";

pub(super) const CHECKS: &[Entry] = &[
    check(
        "donation/overwritten_arguments_are_deleted",
        "An argument that the program donates either is deleted afterwards or keeps its elements.",
        deleted_or_kept,
        "PJRT_LoadedExecutable_Execute when options>launch_id=940 overwrite_argument 0",
    )
    .header(IS_DELETED, IS_DELETED_TEXT)
    .needed_by(&[Profile::Jax, Profile::TorchXla]),
    check(
        "donation/other_arguments_stay",
        "Donating an argument neither deletes nor changes the others.",
        others_stay,
        "PJRT_LoadedExecutable_Execute when options>launch_id=941 overwrite_argument 1",
    )
    .header(IS_DELETED, IS_DELETED_TEXT)
    .used_by(&[Profile::Jax, Profile::TorchXla]),
    check(
        "donation/destroying_the_argument",
        "Destroying an argument that was donated does not free the memory of the output.",
        destroyed,
        "PJRT_LoadedExecutable_Execute when options>launch_id=942 share_argument 0",
    )
    .header("PJRT_Buffer_Destroy", "The function deletes the buffer, if it was neither deleted nor donated yet, and frees the object."),
    check(
        "donation/argument_that_is_being_read",
        "If an array is donated while it is read, the readback returns the elements from before the donation.",
        being_read,
        "PJRT_Buffer_ToHostBuffer when dst_size=4324 late_readback",
    )
    .header("PJRT_Buffer_ToHostBuffer", "The function copies the buffer's data at the time of the call; its event is ready once the copy is made."),
    check(
        "donation/argument_of_an_earlier_launch",
        "If an array is donated while an earlier execution reads it, that execution reads the elements from before the donation.",
        earlier_launch,
        "PJRT_LoadedExecutable_Execute when options>launch_id=943 late_execution",
    )
    .header("PJRT_LoadedExecutable_Execute", "Executions read their arguments as they are at the time of the call, in the order of the calls."),
    check(
        "donation/copy_of_the_argument",
        "A copy of an array keeps its elements when the array is donated.",
        copy_stays,
        "PJRT_Buffer_CopyToMemory share_source",
    )
    .header("PJRT_Buffer_CopyToMemory", "The result is a new buffer that the caller destroys, independently of its source.")
    .also(&["reuse/copy_in_the_same_memory"]),
    check(
        "donation/twice",
        "Executing a program with an argument that was donated before is an error of the call or of the outputs, and no crash.",
        twice,
        "PJRT_LoadedExecutable_Execute when options>launch_id=946 call 2 crash",
    )
    .host("JAX, jax/_src/interpreters/pxla.py, ExecuteReplicated.__call__", "A user who passes a donated array again expects an exception."),
    check(
        "donation/is_deleted_agrees_with_reading",
        "An argument of a program that donates it is deleted and cannot be read, or is not deleted and can be read.",
        agrees,
        "PJRT_LoadedExecutable_Execute when options>launch_id=821 hide_deleted 0",
    )
    .header(IS_DELETED, IS_DELETED_TEXT)
    .used_by(&[Profile::Jax, Profile::TorchXla])
    .also(&["donation/*", "execute/donation", "donation/on_each_device"]),
    check(
        "donation/ready_event_of_the_argument",
        "The ready event of an argument that the program donated is complete immediately, with an error.",
        donated_ready,
        "PJRT_Buffer_ReadyEvent after PJRT_Buffer_IsDeleted set event=complete",
    )
    .header("PJRT_Buffer_ReadyEvent", "If the buffer has been deleted or donated, the returned event will immediately indicate an error."),
    check(
        "donation/on_each_device",
        "A program of two replicas that donates an argument donates it on both devices.",
        on_each,
        "PJRT_LoadedExecutable_Execute when options>launch_id=822 hide_deleted 1",
    )
    .header("PJRT_LoadedExecutable_Execute_Args::argument_lists", "The arguments that the program donates are consumed, on each device."),
    check(
        "donation/several_protected_arguments",
        "Each argument in non_donatable_input_indices keeps its data, in whatever order the indices are.",
        several_protected,
        "PJRT_LoadedExecutable_Execute when options>launch_id=861 give options>num_non_donatable_input_indices=1",
    )
    .header("PJRT_ExecuteOptions::non_donatable_input_indices", "A list of indices denoting the input buffers that should not be donated.")
    .also(&["passed/execute_options"]),
    check(
        "donation/of_each_type",
        "An argument of each element type, of rank 0, 1 and 3, that a program donates and returns is right, is deleted or unchanged, and its memory is not used for other arrays.",
        of_each_type,
        "PJRT_LoadedExecutable_Execute when options>launch_id=613 of_type 5 of_rank 0 zeroed_output 1",
    )
    .header("PJRT_LoadedExecutable_Execute_Args::output_lists", "Execution output of size [`num_devices`, num_outputs`]."),
    check(
        "donation/in_another_order",
        "A program that returns its donated arguments in another order, each in the memory of another one, returns the right elements.",
        in_another_order,
        "PJRT_LoadedExecutable_Execute when options>launch_id=616 copy_argument 2 0",
    )
    .header("PJRT_LoadedExecutable_Execute_Args::output_lists", "The outputs are in the order in which the program returns them: an output in the memory of an argument must not change another output that is made of this argument.")
    .also(&["donation/of_each_type"]),
    check(
        "donation/equal_numbers_of_elements",
        "If a program donates arrays of different dimensions with equal numbers of elements, its outputs are right, and no other array changes: their sizes with padding may differ.",
        equal_numbers,
        "PJRT_LoadedExecutable_Execute when options>launch_id=612 zeroed_output 1",
    )
    .header("PJRT_ExecuteOptions::non_donatable_input_indices", "The compiler might mark the input as `may-alias`, which could lead PjRt to donate the input buffer: the output must fit into it."),
    check(
        "donation/in_a_loop",
        "A value that a loop of donating executions updates is right after each execution, while other arrays of its size come and go.",
        in_a_loop,
        "PJRT_LoadedExecutable_Execute when options>launch_id=977 call 7 share_argument 1",
    )
    .host("A training loop of JAX or PyTorch/XLA", "Parameters are donated in each step, and the next step uses the new ones.")
    .needed_by(&[Profile::Jax, Profile::TorchXla]),
];

/// Executes the donating program, and waits for the output.
fn donate(floats: &Floats<'_>, arguments: [&Buffer; 2], launch_id: i32) -> Result<Buffer, Finding> {
    let output = launch(&floats.donating_program()?, arguments, launch_id)?;
    output.ready()?.wait()?;
    Ok(output)
}

/// Returns `true` if an argument that the program donates is deleted. Fails if the plugin reports that it is not,
/// although its data is gone.
pub(super) fn is_donated(argument: &Buffer, what: &str) -> Result<bool, Finding> {
    let is_deleted = argument.is_deleted()?;
    match argument.read() {
        Err(error) if !is_deleted => Err(Finding::Wrong(format!(
            "PJRT_Buffer_IsDeleted of {what} returns false after the program donated it, but it cannot be read: {error}. The \
             plugin donates the array, and probably does not mark it as deleted, so that hosts use it again"
        ))),
        Ok(_) if is_deleted => Err(Finding::Wrong(format!(
            "PJRT_Buffer_IsDeleted of {what} returns true after the program donated it, but it can still be read"
        ))),
        _ => Ok(is_deleted),
    }
}

/// Ends a check that needs a plugin which donates arguments.
pub(super) fn unless_donated(argument: &Buffer) -> Verdict {
    if is_donated(argument, "the argument")? {
        return Ok(());
    }
    Err(Finding::Unsupported("the plugin does not donate arguments".to_owned()))
}

fn agrees(context: &Context) -> Verdict {
    let client = context.client()?;
    let floats = Floats::new(&client, 1103);
    let (x, y) = (floats.upload(FIRST)?, floats.upload(SECOND)?);
    let _output = donate(&floats, [&x, &y], 821)?;
    unless_donated(&x)
}

fn donated_ready(context: &Context) -> Verdict {
    const READY: &str =
        "the event that PJRT_Buffer_ReadyEvent returns for an argument that the program donated";
    let client = context.client()?;
    let floats = Floats::new(&client, 1087);
    let (x, y) = (floats.upload(FIRST)?, floats.upload(SECOND)?);
    let _output = donate(&floats, [&x, &y], 0)?;
    unless_donated(&x)?;
    // A plugin may refuse the call instead.
    let Ok(ready) = x.ready() else { return Ok(()) };
    let outcome = ready.on_ready()?.wait(patience());
    match outcome.ok_or_else(|| hangs(READY, &ready))? {
        Err(_) => Ok(()),
        Ok(()) => {
            Err(Finding::Wrong(format!("{READY} completes without an error; the array has no data any more")))
        }
    }
}

fn on_each(context: &Context) -> Verdict {
    let client = context.client()?;
    let devices = two(&client)?;
    let argument = "%x: tensor<4xf32>";
    let donated = format!("{argument} {{tf.aliasing_output = 0 : i32}}");
    let text = add_program("4x").replacen(argument, &donated, 1);
    let ids = vec![id_of(devices[0])?, id_of(devices[1])?];
    let options = CompileOptions { replicas: 2, devices: ids, ..CompileOptions::default() };
    let program = compiled(&client, &text, &options)?;
    let upload = |value: f32, device| upload_to(&client, &[value; 4], device).map(|uploaded| uploaded.buffer);
    let x = [upload(1.0, devices[0])?, upload(2.0, devices[1])?];
    let y = [upload(10.0, devices[0])?, upload(20.0, devices[1])?];
    let launched = launch_on_all(&program, &[vec![&x[0], &y[0]], vec![&x[1], &y[1]]], 822)?;
    for (index, expected) in [11.0, 22.0].into_iter().enumerate() {
        let output = launched.output(index, 0)?;
        equal(&format!("the sum on device {index}"), numbers(output)?, vec![expected; 4])?;
        equal(&format!("the argument of device {index} that is not donated"), y[index].is_deleted()?, false)?;
    }
    let donated = [
        is_donated(&x[0], "the argument of the first device")?,
        is_donated(&x[1], "the argument of the second device")?,
    ];
    match donated {
        [true, true] => Ok(()),
        [false, false] => Err(Finding::Unsupported("the plugin does not donate arguments".to_owned())),
        _ => Err(Finding::Wrong(format!(
            "the donated argument of the {} device is deleted after the execution, and that of the other is not: the plugin \
             probably donates the arguments of one device only, and the other needs twice the memory",
            if donated[0] { "first" } else { "second" }
        ))),
    }
}

fn deleted_or_kept(context: &Context) -> Verdict {
    let client = context.client()?;
    let floats = Floats::new(&client, 1071);
    let (x, y) = (floats.upload(FIRST)?, floats.upload(SECOND)?);
    let output = donate(&floats, [&x, &y], 940)?;
    if !is_donated(&x, "the argument")? {
        let kept = floats.bytes(FIRST);
        let cause =
            "the output was written to the memory of the argument, which reports that it is not deleted";
        Expected::floats("an argument that is not deleted", &kept)
            .suspect(floats.sum(FIRST, SECOND), cause)
            .check_array(&x)?;
    }
    floats.check("the output", &output, &floats.sum(FIRST, SECOND), "")
}

fn others_stay(context: &Context) -> Verdict {
    let client = context.client()?;
    let floats = Floats::new(&client, 1073);
    let (x, y) = (floats.upload(FIRST)?, floats.upload(SECOND)?);
    let output = donate(&floats, [&x, &y], 941)?;
    equal("PJRT_Buffer_IsDeleted of an argument that is not donated", y.is_deleted()?, false)?;
    let kept = floats.bytes(SECOND);
    Expected::floats("an argument that is not donated", &kept)
        .suspect(
            output.read()?,
            "the output was written to the memory of an argument that the program does not donate",
        )
        .check_array(&y)
}

fn destroyed(context: &Context) -> Verdict {
    let client = context.client()?;
    let floats = Floats::new(&client, 1077);
    for is_deleted in [false, true] {
        let (x, y) = (floats.upload(FIRST)?, floats.upload(SECOND)?);
        let output = donate(&floats, [&x, &y], 942)?;
        unless_donated(&x)?;
        if is_deleted {
            x.delete()?;
        }
        drop(x);
        let _others = floats.reuse()?;
        let cause = "destroying the donated argument freed the memory that the output had taken over";
        let what = "the output after the donated argument was destroyed";
        floats.check(what, &output, &floats.sum(FIRST, SECOND), cause)?;
    }
    Ok(())
}

fn being_read(context: &Context) -> Verdict {
    let client = context.client()?;
    let floats = Floats::new(&client, 1081);
    let program = floats.donating_program()?;
    let (x, y) = (floats.upload(FIRST)?, floats.upload(SECOND)?);
    let (bytes, event) = x.start_read(4 * 1081, &CopyLayout::Unsaid)?;
    launch(&program, [&x, &y], 0)?.ready()?.wait()?;
    unless_donated(&x)?;
    event.wait()?;
    let expected = floats.bytes(FIRST);
    let cause = "the output was written to the donated memory before a readback that had been started earlier was finished";
    Expected::floats("the bytes of an array that was donated while it was read", &expected)
        .suspect(floats.sum(FIRST, SECOND), cause)
        .check(&bytes.written("PJRT_Buffer_ToHostBuffer")?)
}

fn earlier_launch(context: &Context) -> Verdict {
    let client = context.client()?;
    let floats = Floats::new(&client, 1087);
    let (first, donating) = (floats.program()?, floats.donating_program()?);
    let (x, y, other) = (floats.upload(FIRST)?, floats.upload(SECOND)?, floats.upload(OTHER)?);
    let output = launch(&first, [&x, &y], 943)?;
    let donated = launch(&donating, [&x, &other], 0)?;
    donated.ready()?.wait()?;
    unless_donated(&x)?;
    let expected = floats.sum(FIRST, SECOND);
    let changed: Vec<f32> =
        floats.sum(FIRST, OTHER).as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
    let second: Vec<f32> =
        floats.bytes(SECOND).as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
    let late: Vec<u8> = changed.iter().zip(&second).flat_map(|(x, y)| (x + y).to_le_bytes()).collect();
    let cause = "an execution read its argument after a later execution had overwritten it";
    Expected::floats("the sum of an array that a later execution donated", &expected)
        .suspect(late, cause)
        .check_array(&output)
}

fn copy_stays(context: &Context) -> Verdict {
    let client = context.client()?;
    let floats = Floats::new(&client, 1091);
    let (x, y) = (floats.upload(FIRST)?, floats.upload(SECOND)?);
    let copy = x.copy_to_memory(client.device()?.default_memory()?)?;
    let _output = donate(&floats, [&x, &y], 0)?;
    unless_donated(&x)?;
    let expected = floats.bytes(FIRST);
    Expected::floats("the copy after its source was donated", &expected)
        .suspect(
            floats.sum(FIRST, SECOND),
            "the copy shares the memory of its source, to which the output was written",
        )
        .check_array(&copy)
}

fn twice(context: &Context) -> Verdict {
    let client = context.client()?;
    let floats = Floats::new(&client, 1093);
    let (x, y) = (floats.upload(FIRST)?, floats.upload(SECOND)?);
    let program = floats.donating_program()?;
    launch(&program, [&x, &y], 946)?.ready()?.wait()?;
    unless_donated(&x)?;
    let again = launch(&program, [&x, &y], 946).and_then(|output| output.ready()?.wait());
    ensure!(
        again.is_err(),
        "an execution with an argument that was donated before succeeded; expected an error"
    );
    Ok(())
}

/// Returns a program that donates all of its three parameters.
fn donating_three() -> String {
    let parameters: Vec<String> =
        (0..3).map(|at| format!("%p{at}: tensor<4xf32> {{tf.aliasing_output = {at} : i32}}")).collect();
    let lines: String = (0..3)
        .map(|at| format!("    %s{at} = stablehlo.add %p{at}, %p{} : tensor<4xf32>\n", (at + 1) % 3))
        .collect();
    let types = ["tensor<4xf32>"; 3].join(", ");
    with_main(&parameters.join(", "), &lines, "%s0, %s1, %s2", &types)
}

fn several_protected(context: &Context) -> Verdict {
    let client = context.client()?;
    let program = compiled(&client, &donating_three(), &CompileOptions::default())?;
    let run = |protected: &[i64]| -> Result<Vec<bool>, Finding> {
        let values = [1.0, 10.0, 100.0];
        let arrays = values.map(|value| upload_four(&client, &[value; 4]));
        let arrays = arrays.into_iter().collect::<Result<Vec<_>, _>>()?;
        let options =
            ExecuteOptions { launch_id: 861, non_donatable: protected.to_vec(), ..Default::default() };
        let arguments = vec![arrays.iter().collect::<Vec<_>>()];
        let launched = program.launch(&arguments, &options, None, true).map_err(|refused| refused.error)?;
        for (output, sum) in launched.outputs_of(0, 3)?.iter().zip([11.0, 110.0, 101.0]) {
            let found = numbers(output)?;
            let cause = match protected {
                [] => {
                    "the memory of a donated argument was reused before the program had read it for the last time"
                }
                _ => {
                    "the memory of a donated argument was reused before the program had read it, or an output took that of a \
                     protected argument"
                }
            };
            ensure!(
                found == [sum; 4],
                "a sum is {found:?}, expected {:?}, with the protected arguments {protected:?}. Probable cause: {cause}",
                [sum; 4]
            );
        }
        for &index in protected {
            let (array, value) = (&arrays[index as usize], values[index as usize]);
            ensure!(
                !array.is_deleted()?,
                "the argument {index} was donated, although non_donatable_input_indices is {protected:?}; the plugin probably \
                 honors only some of the indices"
            );
            let what = format!(
                "the argument {index} after the execution with non_donatable_input_indices {protected:?}"
            );
            equal(&what, numbers(array)?, vec![value; 4])?;
        }
        arrays.iter().map(|array| Ok(array.is_deleted()?)).collect()
    };
    let donated = run(&[])?;
    for protected in [&[0, 1][..], &[2, 0], &[2, 1], &[0, 1, 2]] {
        run(protected)?;
    }
    if donated.contains(&true) {
        return Ok(());
    }
    Err(Finding::Unsupported("the plugin does not donate arguments".to_owned()))
}

fn in_a_loop(context: &Context) -> Verdict {
    let client = context.client()?;
    let floats = Floats::new(&client, 1097);
    let program = floats.donating_program()?;
    let (mut x, mut y) = (floats.upload(0)?, floats.upload(0)?);
    for round in 1..=20_u8 {
        let step = floats.upload(1)?;
        let output = launch(&program, [&x, &step], 977)?;
        // The argument is destroyed here, while the program runs.
        x = output;
        drop(step);
        y = floats.upload(OTHER)?;
        let element = |at: usize| f32::from(round) * 1000.0 + f32::from(round + 1) * (at % 509) as f32;
        let expected: Vec<u8> =
            (0..1097).map(|at| element(at).to_le_bytes()).collect::<Vec<_>>().into_flattened();
        let cause = "the memory of the updated value was freed or reused while it was in use";
        floats.check(&format!("the value after {round} donating executions"), &x, &expected, cause)?;
    }
    floats.check("the newest other array", &y, &floats.bytes(OTHER), "")
}

fn of_each_type(context: &Context) -> Verdict {
    let client = context.client()?;
    let first = client.device()?;
    for_each_sample(context, &client, |device, sample, other| {
        let is_tried = [&[][..], &[11], &[2, 1, 3]].contains(&&sample.dims[..]);
        let Some(name) = in_programs(sample.element_type).filter(|_| is_tried && device == first) else {
            return Ok(());
        };
        let dims: String = sample.dims.iter().map(|dim| format!("{dim}x")).collect();
        let ty = format!("tensor<{dims}{name}>");
        let parameters = format!("%p0: {ty} {{tf.aliasing_output = 1 : i32}}, %p1: {ty}");
        let text = with_main(&parameters, "", "%p1, %p0", &format!("{ty}, {ty}"));
        let program = compiled(&client, &text, &CompileOptions::default())?;
        for round in 0..2 {
            let donated = Shaped::new(sample.element_type, &sample.dims, 20 + round);
            let x = client.upload(&donated.host(), Some(device), None)?.buffer;
            let launched = launch_on_all(&program, &[vec![&x, other]], 613)?;
            launched.done[0].wait()?;
            let what = format!("an argument {sample} that the program donates");
            if !is_donated(&x, &what)? {
                donated.check("an argument that is not deleted after a program donated it", &x.read()?)?;
            }
            drop(x);
            // These use the memory if it was freed.
            let noise = Shaped::new(sample.element_type, &sample.dims, 40);
            let _others = (0..3)
                .map(|_| client.upload(&noise.host(), Some(device), None))
                .collect::<Result<Vec<_>, _>>()?;
            for (output, expected) in launched.outputs_of(0, 2)?.iter().zip([sample, &donated]) {
                expected.check("an output of a program that donates an argument", &output.read()?)?;
            }
            sample.check("an argument that the program does not donate", &other.read()?)?;
        }
        Ok(())
    })
}

fn in_another_order(context: &Context) -> Verdict {
    const OVERWRITTEN: &str = "the plugin probably writes an output to the memory of a donated argument before it has \
                               read this argument for another output";
    let client = context.client()?;
    for len in [4, 1031] {
        let ty = format!("tensor<{len}xf32>");
        let parameters: Vec<String> =
            (0..3).map(|at| format!("%p{at}: {ty} {{tf.aliasing_output = {at} : i32}}")).collect();
        let text = with_main(&parameters.join(", "), "", "%p2, %p0, %p1", &[ty.as_str(); 3].join(", "));
        let program = compiled(&client, &text, &CompileOptions::default())?;
        let elements = |argument: usize| {
            f32_bytes(&(0..len).map(|at| (1000 * argument + at % 900) as f32 + 0.5).collect::<Vec<_>>())
        };
        let upload = |argument: usize| {
            let (bytes, dims) = (elements(argument), [len as i64]);
            let array = HostArray::new(&bytes, ElementType::F32, &dims);
            Ok::<_, Error>(client.upload(&array, Some(client.device()?), None)?.buffer)
        };
        let arguments = [upload(1)?, upload(2)?, upload(3)?];
        let launched = launch_on_all(&program, &[arguments.iter().collect()], 616)?;
        launched.done[0].wait()?;
        for (at, (output, argument)) in launched.outputs_of(0, 3)?.iter().zip([3, 1, 2]).enumerate() {
            let what = format!(
                "output {at} of a program that donates three arguments and returns them in the order 2, 0, 1"
            );
            let bytes = elements(argument);
            let others = (1..=3).filter(|other| *other != argument);
            let expected = Expected::floats(&what, &bytes);
            others
                .fold(expected, |expected, other| expected.suspect(elements(other), OVERWRITTEN))
                .check_array(output)?;
        }
    }
    Ok(())
}

/// Dimensions of arrays with equal numbers of elements, whose sizes differ if dimensions are padded: in a small array the
/// padding may be less than the alignment of memory.
const EQUAL_NUMBERS: [[&[i64]; 4]; 2] =
    [[&[12, 1], &[1, 12], &[3, 4], &[12]], [&[1023, 1], &[1, 1023], &[31, 33], &[1023]]];

fn equal_numbers(context: &Context) -> Verdict {
    let client = context.client()?;
    EQUAL_NUMBERS.iter().try_for_each(|dims| donated_in_turn(&client, dims))
}

/// Runs a program that donates arrays with equal numbers of elements, in which output `at` has the dimensions of the next
/// parameter. Checks the outputs, and other arrays that were uploaded before and after the execution.
fn donated_in_turn(client: &Client, all: &[&[i64]; 4]) -> Verdict {
    let (device, len) = (client.device()?, all[0].iter().product::<i64>() as usize);
    let next = |at: usize| (at + 1) % all.len();
    let program = compiled(client, &sums_of_the_next(all), &CompileOptions::default())?;
    let upload = |dims: &[i64], value: f32| {
        let bytes = f32_bytes(&vec![value; len]);
        Ok::<_, Error>(
            client.upload(&HostArray::new(&bytes, ElementType::F32, dims), Some(device), None)?.buffer,
        )
    };
    for round in 0..3 {
        let value = |at: usize| (10 * round + at + 1) as f32;
        let (mut arrays, mut neighbors) = (Vec::new(), Vec::new());
        for (at, dims) in all.iter().enumerate() {
            arrays.push(upload(dims, value(at))?);
            neighbors.push((upload(dims, -value(at))?, -value(at)));
        }
        let launched = launch_on_all(&program, &[arrays.iter().collect()], 612)?;
        launched.done[0].wait()?;
        drop(arrays);
        for (at, dims) in all.iter().enumerate() {
            neighbors.push((upload(dims, 100.0 + value(at))?, 100.0 + value(at)));
        }
        let outputs = launched
            .outputs_of(0, all.len())?
            .iter()
            .enumerate()
            .map(|(at, output)| (output, 2.0 * value(next(at)), "an output"));
        let others = neighbors.iter().map(|(array, value)| (array, *value, "another array"));
        for (array, expected, what) in outputs.chain(others) {
            let (got, dims) = (numbers(array)?, array.dims()?);
            let wrong: Vec<usize> = (0..got.len()).filter(|at| got[*at] != expected).collect();
            ensure!(
                wrong.is_empty() && got.len() == len,
                "{what}, f32{dims:?}, of a program that donates arrays of {len} elements with the dimensions {all:?} has {} elements, \
                 of which {} are wrong{}; expected {expected} everywhere. The plugin probably \
                 gives a donated array's memory to an output with as many elements, whose size with padding is larger",
                got.len(),
                wrong.len(),
                wrong.first().map_or_else(String::new, |at| format!(": element {at} is {}", got[*at]))
            );
        }
    }
    Ok(())
}

/// Returns a program that donates arrays of these dimensions, and whose output `at` is twice the next parameter.
fn sums_of_the_next(all: &[&[i64]; 4]) -> String {
    let next = |at: usize| (at + 1) % all.len();
    let types = all
        .map(|dims| format!("tensor<{}f32>", dims.iter().map(|dim| format!("{dim}x")).collect::<String>()));
    let parameters: Vec<String> = types
        .iter()
        .enumerate()
        .map(|(at, ty)| format!("%p{at}: {ty} {{jax.buffer_donor = true}}"))
        .collect();
    let lines: String = (0..all.len())
        .map(|at| format!("    %s{at} = stablehlo.add %p{0}, %p{0} : {1}\n", next(at), types[next(at)]))
        .collect();
    let results: Vec<&str> = (0..all.len()).map(|at| types[next(at)].as_str()).collect();
    with_main(&parameters.join(", "), &lines, "%s0, %s1, %s2, %s3", &results.join(", "))
}
