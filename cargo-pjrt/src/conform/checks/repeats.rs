//! Checks of programs that run several times: each run uses its own arguments, whatever happened before.

use std::cell::{Cell, RefCell};

use super::arrays::numbered;
use super::devices::id_of;
use super::entry::{ALL, Entry, check};
use super::pending::in_error;
use super::program_text::{compiled, launch, sums};
use crate::conform::harness::{
    CHANGES_WITH_RUNS, Context, EARLIER_ARGUMENT, Expected, Finding, ONE_DEVICE, OVERWRITTEN_OUTPUT, Verdict,
    add_program, ensure, f32_bytes, numbers, upload_four,
};
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{
    Buffer, Client, Code, Device, ElementType, Error, ExecuteOptions, HostArray, LoadedExecutable,
};

const EXECUTE: &str = "PJRT_LoadedExecutable_Execute";
const EXECUTE_TEXT: &str = "Executes on devices addressable by the client, with the arguments of this call.";

pub(super) const CHECKS: &[Entry] = &[
    check(
        "repeats/other_values",
        "A program that runs again uses the arguments of this run, at each rank from 0 to 2, and the outputs of earlier runs do not change.",
        other_values,
        "PJRT_LoadedExecutable_Execute when options>launch_id=602 of_rank 0 first_arguments",
    )
    .header(EXECUTE, EXECUTE_TEXT)
    .needed_by(ALL),
    check(
        "repeats/on_each_device",
        "A program that runs again on one device, between runs on other devices, uses the arguments of this run.",
        on_each_device,
        "PJRT_LoadedExecutable_Execute when options>launch_id=603 of_rank 0 first_arguments",
    )
    .header(EXECUTE, EXECUTE_TEXT)
    .needed_by(ALL),
    check(
        "repeats/after_other_programs",
        "A program runs as before after other programs were compiled, executed and destroyed.",
        after_other_programs,
        "PJRT_LoadedExecutable_Execute when options>launch_id=604 call 2 zeroed_output 0",
    )
    .header(EXECUTE, EXECUTE_TEXT)
    .needed_by(ALL),
    check(
        "repeats/after_its_outputs_are_gone",
        "A program runs as before after its outputs and arguments were deleted and destroyed.",
        after_outputs,
        "PJRT_LoadedExecutable_Execute when options>launch_id=605 of_rank 0 call 3 zeroed_output 0",
    )
    .header(EXECUTE, EXECUTE_TEXT)
    .needed_by(ALL),
    check(
        "repeats/after_a_failure",
        "A program runs as before after an execution with too few arguments, with a deleted one, or with one that is in error.",
        after_failure,
        "PJRT_LoadedExecutable_Execute when options>launch_id=606 failed PJRT_LoadedExecutable_Execute zeroed_output 0",
    )
    .header(EXECUTE, EXECUTE_TEXT)
    .needed_by(ALL),
    check(
        "repeats/interleaved",
        "Two programs of the same types that run alternately, without waiting, compute their own results.",
        interleaved,
        "PJRT_LoadedExecutable_Execute when options>launch_id=607 first executable",
    )
    .header(EXECUTE, EXECUTE_TEXT)
    .needed_by(ALL),
    check(
        "repeats/arguments_of_several_ranks",
        "A program of a scalar, a vector and a matrix, and one of an integer, use the arguments of each run.",
        several_ranks,
        "PJRT_LoadedExecutable_Execute when options>launch_id=608 first_arguments",
    )
    .header(EXECUTE, EXECUTE_TEXT)
    .needed_by(ALL),
    check(
        "repeats/arguments_that_stay",
        "A program that doubles its two arguments uses those of each run, although the host keeps the arrays that it passed in earlier runs.",
        living_arguments,
        "PJRT_LoadedExecutable_Execute when options>launch_id=986 first_arguments",
    )
    .header(EXECUTE, EXECUTE_TEXT)
    .needed_by(ALL),
    check(
        "repeats/the_same_run",
        "A program that runs 24 times with the same arguments returns the same results each time.",
        same_run,
        "PJRT_LoadedExecutable_Execute when options>launch_id=988 call 20 zeroed_output 0",
    )
    .header(EXECUTE, EXECUTE_TEXT)
    .needed_by(ALL),
    check(
        "repeats/hundreds_of_runs",
        "Each of 1100 runs of a program of scalars returns its own result.",
        many_runs,
        "PJRT_LoadedExecutable_Execute when options>launch_id=609 call 1050 zeroed_output 0",
    )
    .header(EXECUTE, EXECUTE_TEXT)
    .needed_by(ALL),
    check(
        "repeats/hundreds_of_transfers",
        "Each of 1100 arrays that are uploaded and kept has its own elements, and so do their readbacks, copies and second readbacks.",
        many_transfers,
        "PJRT_Client_BufferFromHostBuffer when num_dims=1 dims.0=37 call 1050 give data=zeros",
    )
    .header("PJRT_Client_BufferFromHostBuffer", "Asynchronously copies a buffer stored on host to device memory.")
    .needed_by(ALL),
];

/// The shapes of the arguments.
const SHAPES: &[&[i64]] = &[&[], &[1], &[4], &[2, 3], &[1000]];

/// A program of one kind that runs several times on one device.
struct Repeated<'c> {
    client: &'c Client,
    device: Device<'c>,
    program: LoadedExecutable,
    dims: &'static [i64],
    id: i32,
    /// The program adds its arguments, or else doubles the first one.
    adds: bool,
    /// The expected results of the runs until now.
    history: RefCell<Vec<Vec<f32>>>,
}

/// A run, and its expected results.
struct Run {
    number: usize,
    output: Buffer,
    expected: Vec<f32>,
    /// The output was right when it was read before.
    was_right: Cell<bool>,
}

impl<'c> Repeated<'c> {
    fn new(
        client: &'c Client,
        device: Device<'c>,
        dims: &'static [i64],
        id: i32,
        adds: bool,
    ) -> Result<Self, Finding> {
        let of_dims: String = dims.iter().map(|dim| format!("{dim}x")).collect();
        let text = add_program(&of_dims);
        let text = if adds { text } else { text.replace("stablehlo.add %x, %y", "stablehlo.add %x, %x") };
        let options = CompileOptions { devices: vec![id_of(device)?], ..CompileOptions::default() };
        let program = compiled(client, &text, &options)?;
        Ok(Self { client, device, program, dims, id, adds, history: RefCell::default() })
    }

    fn array(&self, values: &[f32]) -> Result<Buffer, Error> {
        let bytes = f32_bytes(values);
        Ok(self
            .client
            .upload(&HostArray::new(&bytes, ElementType::F32, self.dims), Some(self.device), None)?
            .buffer)
    }

    /// Returns an argument whose elements begin with this number.
    fn values(&self, first: f32) -> Vec<f32> {
        (0..self.dims.iter().product::<i64>()).map(|index| first + (index % 100) as f32).collect()
    }

    /// Runs the program with arguments that begin with these numbers.
    fn run(&self, x: f32, y: f32) -> Result<Run, Finding> {
        let (x, y) = (self.values(x), self.values(y));
        let (first, second) = (self.array(&x)?, self.array(&y)?);
        let output = launch(&self.program, &[&first, &second], self.id)?.take_output()?;
        let second = if self.adds { &y } else { &x };
        let expected: Vec<f32> = x.iter().zip(second).map(|(x, y)| x + y).collect();
        self.history.borrow_mut().push(expected.clone());
        Ok(Run { number: self.history.borrow().len(), output, expected, was_right: Cell::new(false) })
    }

    /// Compares the output of a run.
    fn check(&self, run: &Run, when: &str) -> Verdict {
        let got = numbers(&run.output)?;
        if got == run.expected {
            return Ok(());
        }
        let what =
            format!("the output of run {} of a program that adds f32{:?}, {when},", run.number, self.dims);
        let expected = f32_bytes(&run.expected);
        let array = Expected::new(&what, &expected, ElementType::F32, self.dims);
        let other = self.history.borrow().iter().position(|expected| *expected == got);
        let cause = match other {
            Some(other) if run.was_right.get() => {
                format!("it was right, and is now that of run {}: {OVERWRITTEN_OUTPUT}", other + 1)
            }
            Some(other) => format!(
                "these are the results of run {}: the plugin probably uses arguments or outputs of another run",
                other + 1
            ),
            None if got.iter().all(|value| *value == 0.0) && run.number > 1 => {
                "all are zero: the plugin probably did not run the program again".to_owned()
            }
            None if run.number > 1 => {
                let state = "the plugin probably keeps state of an earlier run, such as arguments, addresses or sizes";
                return array.otherwise(state).check(&f32_bytes(&got));
            }
            None => return array.check(&f32_bytes(&got)),
        };
        array.suspect(f32_bytes(&got), &cause).check(&f32_bytes(&got))
    }

    /// Runs the program, and compares the output.
    fn runs(&self, x: f32, y: f32, when: &str) -> Result<Run, Finding> {
        let run = self.run(x, y)?;
        self.check(&run, when)?;
        Ok(run)
    }
}

/// The first numbers of the arguments: one changes, the other changes, both do, none does, and they change places.
const VALUES: [(f32, f32); 7] =
    [(1.0, 10.0), (2.0, 10.0), (2.0, 20.0), (3.0, 30.0), (3.0, 30.0), (30.0, 4.0), (1.0, 10.0)];

fn other_values(context: &Context) -> Verdict {
    let client = context.client()?;
    for dims in SHAPES {
        let program = Repeated::new(&client, client.device()?, dims, 602, true)?;
        let runs = VALUES.iter().map(|(x, y)| program.runs(*x, *y, "with arguments of its own"));
        let runs = runs.collect::<Result<Vec<_>, _>>()?;
        let ahead = VALUES.iter().map(|(x, y)| program.run(x + 50.0, *y)).collect::<Result<Vec<_>, _>>()?;
        for run in ahead.iter().rev().chain(&runs) {
            program.check(run, "read after later runs")?;
        }
    }
    Ok(())
}

fn on_each_device(context: &Context) -> Verdict {
    let client = context.client()?;
    let devices = client.addressable_devices()?;
    if devices.len() < 2 {
        return Err(Finding::NotApplicable(ONE_DEVICE.to_owned()));
    }
    let portable = CompileOptions { portable: true, ..CompileOptions::default() };
    for dims in &SHAPES[..3] {
        let programs = devices
            .iter()
            .map(|device| Repeated::new(&client, *device, dims, 603, true))
            .collect::<Result<Vec<_>, _>>()?;
        let mut kept = Vec::new();
        for (round, (x, y)) in VALUES.iter().enumerate() {
            for (index, program) in programs.iter().enumerate() {
                let run = program.runs(x + 100.0 * index as f32, *y, "between runs on other devices")?;
                kept.push((index, run));
            }
            ensure!(kept.len() == (round + 1) * programs.len(), "a run is missing");
        }
        for (index, run) in &kept {
            programs[*index].check(run, "read after runs on all devices")?;
        }
    }
    let Ok(program) = compiled(&client, &add_program(""), &portable) else { return Ok(()) };
    for (round, device) in devices.iter().cycle().take(3 * devices.len()).enumerate() {
        let bytes = f32_bytes(&[round as f32 + 0.5]);
        let x = client.upload(&HostArray::new(&bytes, ElementType::F32, &[]), Some(*device), None)?.buffer;
        let options = ExecuteOptions { launch_id: 603, ..ExecuteOptions::default() };
        let launched = program
            .launch(&[vec![&x, &x]], &options, Some(*device), true)
            .map_err(|refused| refused.error)?;
        let got = numbers(launched.output(0, 0)?)?;
        ensure!(
            got == [2.0 * round as f32 + 1.0],
            "run {} of a portable program of scalars, on device {}, returned {got:?}; expected {}",
            round + 1,
            id_of(*device)?,
            2 * round + 1
        );
    }
    Ok(())
}

fn after_other_programs(context: &Context) -> Verdict {
    let client = context.client()?;
    let device = client.device()?;
    for dims in SHAPES {
        let program = Repeated::new(&client, device, dims, 604, true)?;
        let first = program.runs(1.0, 10.0, "the first one")?;
        let others = SHAPES
            .iter()
            .flat_map(|dims| [true, false].map(|adds| Repeated::new(&client, device, dims, 0, adds)))
            .collect::<Result<Vec<_>, _>>()?;
        for other in &others {
            other.runs(5.0, 6.0, "the first one")?;
        }
        program.runs(2.0, 20.0, "after other programs were executed")?;
        drop(others);
        program.runs(3.0, 30.0, "after other programs were destroyed")?;
        program.check(&first, "read after other programs were destroyed")?;
    }
    Ok(())
}

fn after_outputs(context: &Context) -> Verdict {
    let client = context.client()?;
    for dims in SHAPES {
        let program = Repeated::new(&client, client.device()?, dims, 605, true)?;
        program.runs(1.0, 10.0, "the first one")?.output.delete()?;
        let kept = program.runs(2.0, 20.0, "after its output was deleted")?;
        drop(program.runs(3.0, 30.0, "after its output was destroyed")?);
        let pending = program.run(4.0, 40.0)?;
        pending.output.delete()?;
        program.runs(5.0, 50.0, "after an output was deleted that may have been pending")?;
        program.check(&kept, "read after other outputs were deleted and destroyed")?;
    }
    Ok(())
}

/// Fails if the execution with these arguments succeeds.
fn fails(program: &Repeated<'_>, arguments: &[&Buffer], what: &str) -> Verdict {
    let outcome = launch(&program.program, arguments, 0);
    let outcome = outcome.and_then(|launched| launched.output(0, 0)?.ready()?.wait());
    match outcome {
        Err(_) => Ok(()),
        Ok(()) => Err(Finding::NotApplicable(format!("an execution with {what} does not fail"))),
    }
}

fn after_failure(context: &Context) -> Verdict {
    let client = context.client()?;
    for dims in SHAPES {
        let program = Repeated::new(&client, client.device()?, dims, 606, true)?;
        let first = program.runs(1.0, 10.0, "the first one")?;
        let (x, gone) = (program.array(&program.values(1.0))?, program.array(&program.values(2.0))?);
        fails(&program, &[&x], "too few arguments")?;
        program.runs(2.0, 20.0, "after an execution with too few arguments")?;
        gone.ready()?.wait()?;
        gone.delete()?;
        fails(&program, &[&x, &gone], "a deleted argument")?;
        program.runs(3.0, 30.0, "after an execution with a deleted argument")?;
        if *dims == [4] {
            match in_error(&client, (Code::DATA_LOSS, "all gone")) {
                Err(Finding::NotApplicable(_)) => {}
                bad => fails(&program, &[&x, &bad?], "an argument in error")?,
            }
            program.runs(4.0, 40.0, "after an execution with an argument in error")?;
        }
        program.check(&first, "read after executions that failed")?;
    }
    Ok(())
}

fn interleaved(context: &Context) -> Verdict {
    let client = context.client()?;
    let device = client.device()?;
    for dims in SHAPES {
        let programs = [
            Repeated::new(&client, device, dims, 607, true)?,
            Repeated::new(&client, device, dims, 607, false)?,
        ];
        let mut runs = Vec::new();
        for (x, y) in VALUES {
            for (index, program) in programs.iter().enumerate() {
                runs.push((index, program.run(x, y)?));
            }
        }
        for (index, run) in &runs {
            programs[*index].check(run, "which alternates with another program")?;
        }
    }
    Ok(())
}

fn several_ranks(context: &Context) -> Verdict {
    const TYPES: [(&str, &[i64]); 3] = [("f32", &[]), ("4xf32", &[4]), ("2x3xf32", &[2, 3])];
    let client = context.client()?;
    let all = [("%p0", "%p0", TYPES[0].0), ("%p1", "%p1", TYPES[1].0), ("%p2", "%p2", TYPES[2].0)];
    let program = compiled(&client, &sums(&TYPES.map(|(ty, _)| ty), &all), &CompileOptions::default())?;
    // One argument differs from the run before, then another one, and so on.
    let rounds = [[1.0, 2.0, 3.0], [9.0, 2.0, 3.0], [9.0, 8.0, 3.0], [9.0, 8.0, 7.0], [1.0, 2.0, 3.0]];
    for (round, values) in rounds.into_iter().enumerate() {
        let mut arguments = Vec::new();
        for (value, (_, dims)) in values.into_iter().zip(TYPES) {
            let bytes = f32_bytes(&vec![value; dims.iter().product::<i64>() as usize]);
            arguments.push(
                client
                    .upload(&HostArray::new(&bytes, ElementType::F32, dims), Some(client.device()?), None)?
                    .buffer,
            );
        }
        let launched = launch(&program, &arguments.iter().collect::<Vec<_>>(), 608)?;
        for (index, output) in launched.outputs_of(0, 3)?.iter().enumerate() {
            let got = numbers(output)?;
            ensure!(
                !got.is_empty() && got.iter().all(|got| *got == 2.0 * values[index]),
                "run {} of a program of f32[], f32[4] and f32[2,3] with the values {values:?}: output {index} is {got:?}; \
                 expected {} everywhere. The plugin probably keeps an argument of an earlier run",
                round + 1,
                2.0 * values[index]
            );
        }
    }
    of_integers(&client)
}

fn living_arguments(context: &Context) -> Verdict {
    const ARRAYS: usize = 5;
    // The numbers of the arrays that are passed in each run: one or both differ from those of the run before.
    const RUNS: [[usize; 2]; 10] =
        [[0, 1], [0, 2], [3, 2], [3, 4], [0, 4], [1, 0], [1, 0], [2, 3], [4, 4], [0, 1]];
    let client = context.client()?;
    let ty = "4xf32";
    let text = sums(&[ty, ty], &[("%p0", "%p0", ty), ("%p1", "%p1", ty)]);
    let program = compiled(&client, &text, &CompileOptions::default())?;
    let value = |number: usize| 10.0 * (number + 1) as f32;
    let arrays = (0..ARRAYS).map(|number| upload_four(&client, &[value(number); 4]));
    let arrays = arrays.collect::<Result<Vec<_>, _>>()?;
    for (run, passed) in RUNS.into_iter().enumerate() {
        let launched = launch(&program, &passed.map(|number| &arrays[number]), 986)?;
        for (index, output) in launched.outputs_of(0, 2)?.iter().enumerate() {
            let (got, expected) = (numbers(output)?, [2.0 * value(passed[index]); 4]);
            let is_of = |earlier: &usize| got == [2.0 * value(RUNS[*earlier][index]); 4];
            let cause = match (0..run).rev().find(is_of) {
                Some(earlier) => format!(
                    "it is {EARLIER_ARGUMENT} {}, and still holds: the plugin probably keeps the arguments of an earlier run, or \
                     their addresses",
                    earlier + 1
                ),
                None => "the plugin probably mixes up the arguments".to_owned(),
            };
            ensure!(
                got == expected,
                "run {} of a program that doubles its arguments: output {index} is {got:?}; expected {expected:?}; {cause}",
                run + 1
            );
        }
    }
    Ok(())
}

/// Runs a program again and again with the same arguments, and says from which run on its results are others.
fn same_run(context: &Context) -> Verdict {
    const RUNS: usize = 24;
    let client = context.client()?;
    let program = compiled(&client, &add_program("4x"), &CompileOptions::default())?;
    let arguments = [upload_four(&client, &[1.5, 2.0, -3.0, 4.25])?, upload_four(&client, &[1.0; 4])?];
    let expected = vec![2.5, 3.0, -2.0, 5.25];
    let run = |_| {
        let launched = launch(&program, &[&arguments[0], &arguments[1]], 988)?;
        launched.done[0].wait()?;
        numbers(launched.output(0, 0)?)
    };
    let results = (0..RUNS).map(run).collect::<Result<Vec<_>, Error>>()?;
    let wrong: Vec<usize> = (1..=RUNS).filter(|number| results[number - 1] != expected).collect();
    let Some(first) = wrong.first().copied() else { return Ok(()) };
    let got = &results[first - 1];
    let cause = if first > 1 && wrong.len() > 1 && wrong.len() == RUNS + 1 - first {
        format!(
            "Each run from number {first} on {CHANGES_WITH_RUNS}: the plugin probably keeps state from run to run, such as a counter \
             or memory that the program fills"
        )
    } else {
        format!("The wrong ones of {RUNS} runs with the same arguments are {wrong:?}")
    };
    Err(Finding::Wrong(format!("run {first} of a program is {got:?}; expected {expected:?}. {cause}")))
}

/// Runs a program of an integer, which may be the number of rounds of a loop or the start of a slice.
fn of_integers(client: &Client) -> Verdict {
    let text = sums(&["i32"], &[("%p0", "%p0", "i32")]);
    // A device may have no integers.
    let Ok(program) = compiled(client, &text, &CompileOptions::default()) else { return Ok(()) };
    for (round, value) in [3, 5, 5, 0, 9, 3].into_iter().enumerate() {
        let bytes = i32::to_le_bytes(value);
        let array = HostArray::new(&bytes, ElementType::S32, &[]);
        let argument = client.upload(&array, Some(client.device()?), None)?.buffer;
        let got = launch(&program, &[&argument], 0)?.output(0, 0)?.read()?;
        let got = got.first_chunk().map(|bytes| i32::from_le_bytes(*bytes));
        ensure!(
            got == Some(2 * value),
            "run {} of a program that doubles s32[] with the value {value} returned {}; expected {}. The plugin probably keeps \
             an argument of an earlier run, such as a number that it took for a part of the program",
            round + 1,
            got.map_or_else(|| "no number".to_owned(), |got| got.to_string()),
            2 * value
        );
    }
    Ok(())
}

/// The number of runs and transfers.
const MANY: usize = 1100;

fn many_runs(context: &Context) -> Verdict {
    let client = context.client()?;
    let program = Repeated::new(&client, client.device()?, &[], 609, true)?;
    let runs = (0..MANY)
        .map(|count| program.runs(count as f32, 0.5, "one of 1100"))
        .collect::<Result<Vec<_>, _>>()?;
    runs.iter().try_for_each(|run| program.check(run, "one of 1100, read after the last one"))
}

fn many_transfers(context: &Context) -> Verdict {
    let client = context.client()?;
    let memory = client.device()?.default_memory()?;
    let bytes = |count: usize| {
        let mut bytes = numbered(ElementType::F32, 37);
        bytes.rotate_left(4 * (count % 37));
        bytes[..4].copy_from_slice(&(count as f32).to_le_bytes());
        bytes
    };
    let mut kept = Vec::new();
    for count in 0..MANY {
        let array = bytes(count);
        kept.push(
            client
                .upload(&HostArray::new(&array, ElementType::F32, &[37]), Some(client.device()?), None)?
                .buffer,
        );
    }
    for (count, array) in kept.iter().enumerate() {
        let expected = bytes(count);
        let what = format!("array {count} of {MANY}");
        Expected::floats(&what, &expected).check_array(array)?;
        if count % 3 == 0 {
            let copy = array.copy_to_memory(memory);
            if let Ok(copy) = copy {
                Expected::floats(&format!("a copy of {what}"), &expected).check_array(&copy)?;
            }
        }
    }
    for (count, array) in kept.iter().enumerate() {
        Expected::floats(&format!("array {count} of {MANY}, read a second time,"), &bytes(count))
            .check_array(array)?;
    }
    // The client is still usable.
    upload_four(&client, &[1.0; 4])?.ready()?.wait()?;
    Ok(())
}
