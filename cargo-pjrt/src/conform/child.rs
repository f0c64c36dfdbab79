//! Runs checks in a child process.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::checks::note_start;
use super::harness::{
    CLIENT, Check, Context, Finding, Finished, KEPT_ERROR, KEPT_POINTER, MISSED_CALLBACKS, Message,
    Sequences, Status, send, upload_four,
};
use super::list::checks;
use super::options::ChildOptions;
use super::process::TRIES;
use crate::process::child::mark;
use pjrt_testing::host::{
    Error, PASSED_OVERWRITTEN, Plugin, begin_period, limit_waiting, on_compilations, on_first_calls,
    returned_earlier, take_called, take_refused_destroy, take_waits_in_vain, trace_calls,
};

/// Runs checks in the child process, and reports the outcome of each. Without checks, reports whether arrays are in the memory of
/// the host's processor. The caller then returns from the main function.
pub fn child(options: &ChildOptions) {
    let ChildOptions { plugin: path, checks: names, no_client, .. } = options;
    let sequences = Sequences { seed: options.seed, rounds: options.rounds };
    let mut waited = options.waited;
    let mut failed = options.failed.clone();
    note_start();
    if let Some(path) = &options.calls {
        // Without the file, reports do not name the call in which the process ended.
        let _ = trace_calls(path);
    }
    let plugin = match Plugin::load(path) {
        Ok(plugin) => plugin,
        Err(error) => return send(&Message::Unusable(error.to_string())),
    };
    send(&Message::Loaded(plugin.version()));
    // A panic in a check is recorded as a failure; its message goes to the report, not to the terminal.
    std::panic::set_hook(Box::new(|_| {}));
    // If the process crashes, the parent knows which functions the check called.
    on_first_calls(|name| send(&Message::Called(name.to_owned())));
    on_compilations(|| send(&Message::Compiled));
    if names.is_empty() {
        return report_cpu(options, plugin);
    }
    let checks = checks();
    let mut is_initialized = false;
    for name in names {
        let Some(check) = checks.iter().find(|check| check.name == *name) else { continue };
        if !check.is_of_the_table && !is_initialized {
            send(&Message::Initializing);
            if let Err(error) = plugin.initialize() {
                return send(&Message::Uninitialized(error.to_string()));
            }
            is_initialized = true;
        }
        mark(name);
        send(&Message::Started(name.clone()));
        drop(take_called());
        take_waits_in_vain();
        begin_period();
        drop(take_refused_destroy());
        let limit = Duration::from_millis(options.timeout) / WAITS;
        limit_waiting(if waited >= TRIES { limit.min(IMPATIENCE) } else { limit });
        let known = if check.runs_again() { failed.clone() } else { Vec::new() };
        let context =
            Context::new(plugin, path, options.options.clone(), no_client.as_deref(), sequences, known);
        let (status, mut message) = one(check, &context);
        failed.extend(status.is_failure().then(|| name.clone()));
        let in_vain = status.is_failure() && take_waits_in_vain() > 0;
        waited += usize::from(in_vain);
        let functions = take_called().into_iter().map(str::to_owned).collect();
        if status.is_failure() {
            message = with_cause(&context, message, in_vain);
        }
        let lacks_client = status == Status::NotApplicable && context.why_no_client().is_some();
        let had_client = context.had_client();
        send(&Message::Finished(Finished { status, message, functions, had_client, lacks_client, in_vain }));
    }
}

/// Adds the cause to the message of a failure, if the events of the plugin have a fault that makes many checks fail. `in_vain` is
/// `true` if the check waited in vain.
fn with_cause(context: &Context, message: String, in_vain: bool) -> String {
    if let Some(function) = returned_earlier(&message) {
        return format!(
            "An event has the error that {function} returned in an earlier check: {KEPT_ERROR}. {message}"
        );
    }
    if in_vain && !message.contains(MISSED_CALLBACKS) && misses_callbacks(context) {
        return format!("{message}. {MISSED_CALLBACKS}");
    }
    message
}

fn report_cpu(options: &ChildOptions, plugin: Plugin) {
    let is_on_cpu = || -> Result<bool, Error> {
        plugin.initialize()?;
        upload_four(&plugin.create_client(&options.options)?, &[1.0; 4])?.is_on_cpu()
    };
    if is_on_cpu().unwrap_or(false) {
        send(&Message::OnCpu);
    }
}

/// The number of times that a check can wait in vain before it exceeds its time limit. A check that ends says what it waited for.
const WAITS: u32 = 3;

/// The maximum time that checks wait after several of them waited in vain.
const IMPATIENCE: Duration = Duration::from_secs(1);

/// Returns `true` if the plugin does not call the callback of an event that is ready already.
fn misses_callbacks(context: &Context) -> bool {
    let of_ready_event = || -> Result<bool, Error> {
        let client = context.client()?;
        let event = upload_four(&client, &[1.0; 4])?.ready()?;
        event.wait()?;
        Ok(event.on_ready()?.wait(IMPATIENCE).is_none())
    };
    of_ready_event().unwrap_or(false)
}

/// The sentence about an error of a function that destroys an object.
const REFUSED_DESTROY: &str = "The destruction of an object cannot fail: XLA's client, MakeBufferDeleter and the like, ends the process \
                               if it does";

/// Runs one check, and returns its outcome and the reason, unless the check passed.
fn one(check: &Check, context: &Context) -> (Status, String) {
    if context.minor() < check.since {
        let message = format!(
            "the plugin reports version 0.{}, but the rule applies from 0.{}",
            context.minor(),
            check.since
        );
        return (Status::Unsupported, message);
    }
    match catch_unwind(AssertUnwindSafe(|| (check.run)(context))) {
        Ok(Ok(())) => match take_refused_destroy() {
            Some(error) => (Status::Wrong, format!("{error}. {REFUSED_DESTROY}")),
            None => (Status::Passed, String::new()),
        },
        Ok(Err(Finding::Wrong(message))) => match context.why_no_client() {
            Some(why) if check.name != CLIENT => {
                (Status::NotApplicable, format!("no client can be created: {why}"))
            }
            _ => (Status::Wrong, with_kept_pointer(message)),
        },
        Ok(Err(Finding::Advice(message))) => (Status::Advice, message),
        Ok(Err(Finding::Unsupported(message))) => match context.why_no_client() {
            None => (Status::Unsupported, message),
            // Every host requires clients.
            Some(_) if check.name == CLIENT => (Status::Wrong, message),
            Some(why) => (Status::NotApplicable, format!("no client can be created: {why}")),
        },
        Ok(Err(Finding::NotApplicable(message))) => (Status::NotApplicable, message),
        Err(panic) => {
            let text = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            (Status::Wrong, format!("the check panicked: {}", text.unwrap_or_default()))
        }
    }
}

/// Adds the reason to a message about a number whose bytes are those that the host writes over what it passed.
fn with_kept_pointer(message: String) -> String {
    let of = |bytes: [u8; 8]| [i64::from_le_bytes(bytes).to_string(), u64::from_le_bytes(bytes).to_string()];
    let number = of([PASSED_OVERWRITTEN; 8]).into_iter().find(|number| message.contains(number));
    match number {
        Some(number) => format!("{}. {number} {KEPT_POINTER}", message.trim_end_matches('.')),
        None => message,
    }
}
