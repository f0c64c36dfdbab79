//! Memory held over many rounds.

use super::arrays::{self, Numbers, compile, compile_with_zeros, read_and_check};
use super::message::{Message, Stop, Verdict, send};
use super::options::ChildOptions;
use super::slope::growth;
use crate::process::usage::resident_bytes;
use pjrt_testing::host::{Client, LoadedExecutable, Program, Semantics};

/// The arrays: 4 KiB each, so that one leaked array a round is found.
const NUMBERS: Numbers = Numbers { len: 1024, start: 1, step: 1 };

/// The number of samples.
const SAMPLES: u64 = 100;

/// The growth in each half of a scenario that is no leak, in bytes. Allocators and thread pools cause this much
/// of the resident memory, and operations that are not finished this much of the memory in use.
const NOISE: (i64, i64) = (256 << 10, 64 << 10);

/// The rounds of a scenario in which a program is compiled each time, as a divisor.
const ROUNDS_PER_COMPILATION: u64 = 10;

/// Repeats the actions of a scenario, and measures the memory.
pub(super) fn run(client: &Client, options: &ChildOptions) -> Verdict {
    let device = client.device()?;
    let array = || arrays::upload(client, NUMBERS, device, Semantics::ImmutableOnlyDuringCall);
    let program = || compile(client, NUMBERS.len, false);
    match options.scenario.as_str() {
        "memory/transfers" => {
            measure(client, options.rounds, || read_and_check(&array()?, NUMBERS, "a transferred array"))
        }
        "memory/executions" => {
            let (program, argument) = (program()?, array()?);
            measure(client, options.rounds, || execute(&program, &[&argument, &argument]))
        }
        "memory/donations" => {
            let (program, argument) = (compile(client, NUMBERS.len, true)?, array()?);
            measure(client, options.rounds, || execute(&program, &[&array()?, &argument]))
        }
        "memory/copies" => {
            let array = array()?;
            measure(client, options.rounds, || {
                let copy = array.copy_to_memory(device.default_memory()?)?;
                read_and_check(&copy, NUMBERS, "a copy")
            })
        }
        "memory/errors" => measure(client, options.rounds, || {
            let refused = client.compile(&Program::mlir("module {"), &[]);
            let array = array()?;
            // A queue in which transfers wait holds memory, and a host that does not wait can be faster than the device.
            array.ready()?.wait()?;
            array.delete()?;
            // Each of these calls returns an error, which the host destroys. A refused readback would leave host
            // memory behind, which is never freed.
            match (refused, array.copy_to_memory(device.default_memory()?)) {
                (Err(_), Err(_)) => Ok(()),
                _ => Err(Stop::Failed("a call with an invalid argument succeeded".to_owned())),
            }
        }),
        _ => {
            let argument = array()?;
            let rounds = options.rounds.div_ceil(ROUNDS_PER_COMPILATION).max(SAMPLES);
            let mut number = 0;
            let measured = measure(client, rounds, || {
                number += 1;
                // A plugin may have no constants.
                let compiled = compile_with_zeros(client, NUMBERS.len, number).or_else(|_| program())?;
                execute(&compiled, &[&argument, &argument])
            });
            measured.map_err(|stop| match stop {
                Stop::Failed(how) => Stop::Failed(format!(
                    "{how}; each round compiles another program, runs it and destroys it: the plugin probably keeps programs or their \
                     code, as in a cache without a limit"
                )),
                unsupported => unsupported,
            })
        }
    }
}

/// Executes a program, and checks its result.
fn execute(program: &LoadedExecutable, arguments: &[&pjrt_testing::host::Buffer]) -> Verdict<()> {
    let launched = program.run(arguments)?;
    launched.done[0].wait()?;
    read_and_check(launched.output(0, 0)?, NUMBERS.plus(NUMBERS), "a result")
}

/// Repeats a round, and reports the growth of the memory.
fn measure(client: &Client, rounds: u64, mut round: impl FnMut() -> Verdict<()>) -> Verdict {
    let device = client.device()?;
    let (mut resident, mut in_use) = (Vec::new(), Vec::new());
    for number in 0..rounds {
        round().map_err(|stop| match stop {
            Stop::Failed(how) => Stop::Failed(format!("round {number}: {how}")),
            unsupported => unsupported,
        })?;
        if number % (rounds / SAMPLES) == 0 {
            send(&Message::At(format!("running round {number}")));
            resident.push((number, resident_bytes().map_err(Stop::Failed)?));
            if let Ok(stats) = device.memory_stats() {
                in_use.push((number, stats.bytes_in_use));
            }
        }
    }
    let mut summary = Vec::new();
    let mut is_leak = false;
    for (name, samples, noise) in [("resident memory", resident, NOISE.0), ("bytes_in_use", in_use, NOISE.1)]
    {
        let Some(growth) = growth(&samples) else { continue };
        // Memory that shrinks is not growth.
        summary.push(format!("{name} +{:.1} bytes per round", growth.slope.max(0.0)));
        is_leak |= growth.steady > noise;
    }
    let summary = format!("{rounds} rounds: {}", summary.join(", "));
    if is_leak {
        Err(Stop::Failed(format!("memory use grows without bound: {summary}")))
    } else {
        Ok(summary)
    }
}
