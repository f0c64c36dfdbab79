//! Checks of the sessions of the extension Profiler.

use super::entry::{Entry, check};
use super::program_text::launch;
use crate::conform::harness::{Context, Finding, Verdict, compile_add, ensure, upload_four};
use crate::protobuf::events_of_trace;
use crate::requirements::Profile;
use pjrt_testing::host::{Buffer, Error, LoadedExecutable};

const COLLECT: &str = "PLUGIN_Profiler_CollectData";

pub(super) const CHECKS: &[Entry] = &[
    check(
        "extension/profiler_traces",
        "A session of Profiler returns the trace of its own time, between PLUGIN_Profiler_Start and PLUGIN_Profiler_Stop, and not that of an earlier session.",
        traces,
        "GetPjrtApi profiler stale_trace",
    )
    .header(COLLECT, "Returns the trace: what the session recorded from its start to its stop.")
    .used_by(&[Profile::Jax])
    .also(&["extension/profilers_at_once"]),
    check(
        "extension/profiler_collects_twice",
        "PLUGIN_Profiler_CollectData returns the size of a trace and then its bytes, and the same again if it is called again; PLUGIN_Profiler_Consume returns these bytes too.",
        twice,
        "GetPjrtApi profiler empty_second_trace",
    )
    .header(COLLECT, "Called twice: with a null `buffer` for the size, then with a buffer of that size.")
    .used_by(&[Profile::Jax])
    .also(&["extension/profiler_traces"]),
    check(
        "extension/profilers_at_once",
        "Two sessions of Profiler exist at the same time, unless the plugin refuses the second one: each returns its own trace, and destroying one leaves the other.",
        at_once,
        "GetPjrtApi profiler shared_sessions",
    )
    .header("PLUGIN_Profiler_Create", "Creates a session, which the caller owns.")
    .used_by(&[Profile::Jax])
    .also(&["extension/profiler_traces", "extension/profiler_collects_twice"]),
];

/// The number of executions in a session that has some.
const LAUNCHES: usize = 20;

/// A program that runs in a session, and its argument.
struct Work {
    program: LoadedExecutable,
    argument: Buffer,
}

impl Work {
    fn new(client: &pjrt_testing::host::Client) -> Result<Self, Error> {
        Ok(Self { program: compile_add(client)?, argument: upload_four(client, &[1.0; 4])? })
    }

    fn run(&self) -> Result<(), Error> {
        for _ in 0..LAUNCHES {
            let launched = launch(&self.program, &[&self.argument, &self.argument], 0)?;
            launched.output(0, 0)?.ready()?.wait()?;
            launched.done[0].wait()?;
        }
        Ok(())
    }
}

/// Returns the number of events of a trace.
fn events(trace: &[u8]) -> Result<usize, Finding> {
    events_of_trace(trace).ok_or_else(|| {
        Finding::Wrong(format!("the {} bytes of a trace are no XSpace, which hosts parse", trace.len()))
    })
}

/// Performs work in a new session, and returns its trace.
fn traced(context: &Context, work: impl FnOnce() -> Result<(), Error>) -> Result<Vec<u8>, Error> {
    let session = context.plugin.profiler()?;
    session.start()?;
    let done = work();
    session.stop()?;
    done?;
    session.collect()
}

fn traces(context: &Context) -> Verdict {
    let client = context.client()?;
    let work = Work::new(&client)?;
    work.run()?;
    let (mut traces, mut counts) = (Vec::new(), Vec::new());
    for is_busy in [true, false, true, false] {
        let trace = traced(context, || if is_busy { work.run() } else { Ok(()) })?;
        counts.push(events(&trace)?);
        traces.push(trace);
    }
    let [busy, idle, busy_again, last] = counts[..] else { return Ok(()) };
    let is_repeated = busy > 0 && traces[1..].iter().any(|trace| *trace == traces[0]);
    if busy < LAUNCHES && !is_repeated {
        return Err(Finding::NotApplicable("the plugin's traces have no events of executions".to_owned()));
    }
    ensure!(
        !is_repeated && idle < busy && last < busy_again,
        "four sessions of the profiler, with {LAUNCHES} executions, without one, with {LAUNCHES} and without one, have {counts:?} events. \
         The plugin probably returns the trace of an earlier session again, or never discards what it recorded"
    );
    ensure!(
        busy_again < 2 * busy && busy < 2 * busy_again,
        "two sessions with {LAUNCHES} executions have {busy} and {busy_again} events. A session returns what it recorded from its start \
         to its stop: the plugin probably loses events, or never discards what it recorded"
    );
    Ok(())
}

fn twice(context: &Context) -> Verdict {
    let client = context.client()?;
    let work = Work::new(&client)?;
    let session = context.plugin.profiler()?;
    session.start()?;
    work.run()?;
    session.stop()?;
    let first = session.collect()?;
    let again = session.collect()?;
    ensure!(
        first == again,
        "{COLLECT} returned {} bytes, and {} bytes when it was called again for the same session, which did not trace in between. The \
         first call of a host obtains the size, so a trace must remain until its session is destroyed",
        first.len(),
        again.len()
    );
    events(&first)?;
    match session.consume()? {
        Some(consumed) => {
            ensure!(
                consumed == first,
                "PLUGIN_Profiler_Serialize returned {} bytes of the trace of which {COLLECT} returned {}; both are the session's trace",
                consumed.len(),
                first.len()
            );
            Ok(())
        }
        None => Ok(()),
    }
}

/// Creates two sessions, of which the first runs during the work. Returns their traces, or `None` if the plugin refuses the
/// second.
fn of_two(context: &Context, work: &Work, second_first: bool) -> Result<Option<[usize; 2]>, Finding> {
    let busy = context.plugin.profiler()?;
    let Ok(idle) = context.plugin.profiler() else { return Ok(None) };
    busy.start()?;
    work.run()?;
    busy.stop()?;
    if idle.start().is_err() {
        return Ok(None);
    }
    idle.stop()?;
    let (of_busy, of_idle) = if second_first {
        let of_idle = idle.collect()?;
        drop(idle);
        (busy.collect()?, of_idle)
    } else {
        let of_busy = busy.collect()?;
        drop(busy);
        (of_busy, idle.collect()?)
    };
    Ok(Some([events(&of_busy)?, events(&of_idle)?]))
}

/// Ends a session while it traces, and another one before its trace is collected.
fn unfinished(context: &Context, work: &Work) -> Result<(), Error> {
    let running = context.plugin.profiler()?;
    running.start()?;
    work.run()?;
    drop(running);
    let uncollected = context.plugin.profiler()?;
    uncollected.start()?;
    work.run()?;
    uncollected.stop()
}

fn at_once(context: &Context) -> Verdict {
    let client = context.client()?;
    let work = Work::new(&client)?;
    let of_busy = events(&traced(context, || work.run())?)?;
    let alone = [events(&traced(context, || Ok(()))?)?, of_busy];
    if alone[1] <= alone[0] {
        return Err(Finding::NotApplicable("the plugin's traces have no events of executions".to_owned()));
    }
    for second_first in [true, false] {
        let Some([busy, idle]) = of_two(context, &work, second_first)? else {
            return Err(Finding::Unsupported("the plugin refuses a second session".to_owned()));
        };
        ensure!(
            busy > alone[0] && idle < busy,
            "of two sessions that existed at the same time, the one during {LAUNCHES} executions has {busy} events, and the one after \
             them {idle}; alone, such sessions have {} and {}. The plugin probably keeps one trace for all sessions",
            alone[1],
            alone[0]
        );
    }
    unfinished(context, &work)?;
    let after = events(&traced(context, || Ok(()))?)?;
    ensure!(
        after < alone[1],
        "a session in which nothing ran has {after} events, and had {} before; in between, a session was destroyed while it traced, and \
         another one before its trace was collected. The plugin probably keeps what they recorded",
        alone[0]
    );
    Ok(())
}
