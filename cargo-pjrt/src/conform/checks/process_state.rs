//! Checks of the state of the process that hosts depend on: a plugin does not change it.

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::OnceLock;

use super::entry::{ALL, Entry, check};
use crate::conform::harness::{Context, Finding, Verdict, compile_add, ensure, numbers, upload_four};

pub(super) const CHECKS: &[Entry] = &[check(
    "plugin/leaves_the_process_as_it_was",
    "A plugin leaves the host's rounding, handlers of SIGINT and SIGTERM, working directory and standard streams.",
    leaves_process,
    "PJRT_Client_Create flush_denormals",
)
.host("NumPy, numpy/_core/getlimits.py, and Python's signal module", "NumPy warns if the smallest denormal number is zero; Ctrl+C raises KeyboardInterrupt, and relative paths stay valid, after a plugin was loaded.")
.used_by(ALL)];

/// Numbers that the compiler cannot compute in advance: the smallest normal number, the smallest denormal one, and those with
/// which a sum is rounded.
fn arithmetic() -> Result<(), &'static str> {
    let half = |number: f32| black_box(number) * black_box(0.5);
    if half(f32::MIN_POSITIVE) == 0.0 {
        return Err("denormal results are flushed to zero");
    }
    if black_box(f32::from_bits(1)) * black_box(2.0_f32.powi(30)) == 0.0 {
        return Err("denormal operands are read as zero");
    }
    let one = black_box(1.0_f32);
    let (quarter, less) = (black_box(f32::EPSILON / 4.0), black_box(f32::EPSILON * 0.375));
    let three_quarters = black_box(f32::EPSILON * 0.75);
    let is_nearest = one + quarter == 1.0 && one - less < 1.0 && one + three_quarters > 1.0;
    if is_nearest { Ok(()) } else { Err("results are not rounded to the nearest number") }
}

/// The signals whose handlers hosts set, with their numbers.
const SIGNALS: [(&str, u32); 2] = [("SIGINT", 2), ("SIGTERM", 15)];

/// Returns the signals that the process catches or ignores, as the system reports them, or `None` if it reports none.
fn handled() -> Option<Vec<&'static str>> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let mask = |field: &str| {
        let line = status.lines().find(|line| line.starts_with(field))?;
        u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok()
    };
    let masks = mask("SigCgt:")? | mask("SigIgn:")? | mask("SigBlk:")?;
    Some(SIGNALS.iter().filter(|(_, number)| masks >> (number - 1) & 1 == 1).map(|(name, _)| *name).collect())
}

/// The state of the process before the plugin was loaded.
struct Start {
    directory: Option<PathBuf>,
    signals: Vec<&'static str>,
    streams: [Option<PathBuf>; 3],
}

/// The names of the standard streams, in the order of their descriptors.
const STREAMS: [&str; 3] = ["standard input", "standard output", "standard error"];

/// Returns what the descriptors of the standard streams refer to, as far as the system reports it.
fn streams() -> [Option<PathBuf>; 3] {
    [0, 1, 2].map(|descriptor| std::fs::read_link(format!("/proc/self/fd/{descriptor}")).ok())
}

static START: OnceLock<Start> = OnceLock::new();

/// Notes the state of the process, before a plugin is loaded.
pub(crate) fn note_start() {
    START.get_or_init(|| Start {
        directory: std::env::current_dir().ok(),
        signals: handled().unwrap_or_default(),
        streams: streams(),
    });
}

fn leaves_process(context: &Context) -> Verdict {
    note_start();
    let use_plugin = || -> Result<(), Finding> {
        let client = context.client()?;
        let x = upload_four(&client, &[1.0; 4])?;
        numbers(compile_add(&client)?.run(&[&x, &x])?.output(0, 0)?)?;
        Ok(())
    };
    let used = use_plugin();
    if let Err(changed) = arithmetic() {
        return Err(Finding::Wrong(format!(
            "after a client was created and a program executed, {changed} on the host's thread: the plugin, or a library that it \
             loads, probably sets a control register, as code that is compiled with -ffast-math does"
        )));
    }
    used?;
    let Some(start) = START.get() else { return Ok(()) };
    let mut new = handled().unwrap_or_default();
    new.retain(|name| !start.signals.contains(name));
    ensure!(
        new.is_empty(),
        "after a client was created, the process handles, ignores or blocks {}: the plugin probably installs a handler, which replaces \
         the host's",
        new.join(" and ")
    );
    let streams = streams();
    if let Some(changed) = (0..STREAMS.len()).find(|&at| streams[at] != start.streams[at]) {
        return Err(Finding::Wrong(format!(
            "the host's {} was {:?} before the plugin was loaded, and is {:?} after a client was created: the plugin probably \
             closes or replaces it, and what the host reads or writes is lost",
            STREAMS[changed], start.streams[changed], streams[changed]
        )));
    }
    let now = std::env::current_dir().ok();
    ensure!(
        now == start.directory,
        "the working directory was {:?} before the plugin was loaded, and is {now:?} after a client was created: the plugin probably \
         changes it, and relative paths of the host are invalid",
        start.directory
    );
    Ok(())
}
