//! Hosts that end while executions are in flight.

use std::mem;
use std::time::Duration;

use super::arrays::{self, Numbers, compile, read_and_check};
use super::message::{Message, Verdict, send};
use super::options::ChildOptions;
use super::random::Random;
use super::scenario::{AFTER_KILLED, KILLED};
use pjrt_testing::host::{Buffer, Client, ExecuteOptions, Launched, LoadedExecutable, Semantics};

/// The arrays: 4 MiB each, so that an execution takes a measurable time.
const NUMBERS: Numbers = Numbers { len: 1 << 20, start: 1, step: 1 };

/// The number of executions in flight.
const LAUNCHES: usize = 16;

/// A host with executions in flight. The fields are destroyed in this order.
struct Host {
    launched: Vec<Launched>,
    program: LoadedExecutable,
    argument: Buffer,
    client: Client,
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
            let Host { launched, program, argument, client } = host;
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
                read_and_check(&last.outputs[0][0], NUMBERS.plus(NUMBERS), "a result")?;
            }
        }
        KILLED => loop {
            std::thread::park();
        },
        AFTER_KILLED => {
            for launched in &host.launched {
                read_and_check(&launched.outputs[0][0], NUMBERS.plus(NUMBERS), "a result")?;
            }
        }
        _ => {}
    }
    Ok(format!("{LAUNCHES} executions in flight"))
}

fn launch(client: Client) -> Verdict<Host> {
    let program = compile(&client, NUMBERS.len, false)?;
    let argument = arrays::upload(&client, NUMBERS, client.device()?, Semantics::ImmutableOnlyDuringCall)?;
    let mut launched = Vec::new();
    for _ in 0..LAUNCHES {
        let lists = [vec![&argument, &argument]];
        let one = program.launch(&lists, &ExecuteOptions::default(), None, true);
        launched.push(one.map_err(|refused| refused.error)?);
    }
    Ok(Host { launched, program, argument, client })
}
