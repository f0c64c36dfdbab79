//! Hosts that end while executions are in flight.

use std::mem;
use std::time::Duration;

use super::arrays::{self, Numbers, compile, read_and_check};
use super::message::{Message, Verdict, send};
use super::options::ChildOptions;
use super::scenario::{AFTER_KILLED, KILLED};
use crate::array::random::Random;
use pjrt_testing::host::{Buffer, Client, ExecuteOptions, Launched, LoadedExecutable, Semantics};

/// The number of elements of the arrays: 4 MiB each, so that an execution takes a measurable time.
const MOST: usize = 1 << 20;

/// The number of elements of the arrays on a device with little memory.
const LEAST: usize = 1 << 10;

/// The number of executions in flight.
const LAUNCHES: usize = 16;

/// A host with executions in flight. The fields are destroyed in this order.
struct Host {
    launched: Vec<Launched>,
    program: LoadedExecutable,
    argument: Buffer,
    numbers: Numbers,
    client: Client,
}

/// The part of a device's free memory that the arrays use, as a divisor: blocks that are rounded up, programs, and the memory of
/// a process that was killed need some too.
const PART: usize = 4;

/// Returns the number of elements with which all arrays of the executions in flight, and as many temporary ones, fit into
/// a part of this many bytes.
fn fitting(free: Option<i64>) -> usize {
    let arrays = PART * 2 * (LAUNCHES + 1);
    let elements = free.and_then(|free| usize::try_from(free).ok()).map_or(MOST, |free| free / arrays / 4);
    elements.clamp(LEAST, MOST)
}

/// Launches executions, and ends the process in the way that the scenario names.
pub(super) fn run(client: Client, options: &ChildOptions) -> Verdict {
    let host = launch(client)?;
    let mut random = Random::new(options.seed, 0);
    std::thread::sleep(Duration::from_micros(random.below(3000) as u64));
    send(&Message::At(format!("ending with {LAUNCHES} executions in flight")));
    match options.scenario.as_str() {
        "ending/main_returns" => drop(host),
        "ending/main_returns_without_destroying" => mem::forget(host),
        "ending/client_destroyed_first" => {
            let Host { launched, program, argument, client, .. } = host;
            drop((client, program, argument, launched));
        }
        "ending/exit_on_another_thread" => {
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_micros(random.below(2000) as u64));
                std::process::exit(0);
            });
            loop {
                let last = &host.launched[LAUNCHES - 1];
                last.done[0].wait()?;
                read_and_check(last.output(0, 0)?, host.numbers.plus(host.numbers), "a result")?;
            }
        }
        KILLED => loop {
            std::thread::park();
        },
        AFTER_KILLED => {
            for launched in &host.launched {
                read_and_check(launched.output(0, 0)?, host.numbers.plus(host.numbers), "a result")?;
            }
        }
        _ => {}
    }
    Ok(format!("{LAUNCHES} executions in flight"))
}

fn launch(client: Client) -> Verdict<Host> {
    let stats = client.device()?.memory_stats().ok();
    let free = stats.and_then(|stats| Some(stats.bytes_limit? - stats.bytes_in_use));
    let numbers = Numbers { len: fitting(free), start: 1, step: 1 };
    let program = compile(&client, numbers.len, false)?;
    let argument = arrays::upload(&client, numbers, client.device()?, Semantics::ImmutableOnlyDuringCall)?;
    let mut launched = Vec::new();
    for _ in 0..LAUNCHES {
        let lists = [vec![&argument, &argument]];
        let one = program.launch(&lists, &ExecuteOptions::default(), None, true);
        launched.push(one.map_err(|refused| refused.error)?);
    }
    Ok(Host { launched, program, argument, numbers, client })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arrays_fit_into_the_memory_of_a_device() {
        assert_eq!(fitting(None), MOST);
        assert_eq!(fitting(Some(1 << 40)), MOST);
        for memory in [16 << 20, 64 << 20] {
            let small = fitting(Some(memory as i64));
            assert!(small > LEAST && 4 * small * 2 * (LAUNCHES + 1) <= memory / PART, "{small}");
        }
        assert_eq!(fitting(Some(0)), LEAST);
    }
}
