//! Runs checks in a child process.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use super::harness::{CLIENT, Check, Context, Finding, Finished, Message, Status, send};
use super::list::checks;
use crate::process::child::mark;
use pjrt_testing::host::{CreateOption, Plugin, on_first_calls, take_called};

/// Runs the checks with these names in the child process, and reports the outcome of each. The caller then
/// returns from the main function. If `no_client` is set, checks create no client, for this reason.
pub fn child(path: &Path, create_options: &[CreateOption], names: &[String], no_client: Option<&str>) {
    let plugin = match Plugin::load(path) {
        Ok(plugin) => plugin,
        Err(error) => return send(&Message::Unusable(error.to_string())),
    };
    send(&Message::Loaded(plugin.version()));
    // A panic in a check is recorded as a failure; its message goes to the report, not to the terminal.
    std::panic::set_hook(Box::new(|_| {}));
    // If the process crashes, the parent knows which functions the check called.
    on_first_calls(|name| send(&Message::Called(name.to_owned())));
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
        let context = Context::new(plugin, path, create_options.to_vec(), no_client);
        let (status, message) = one(check, &context);
        let functions = take_called().into_iter().map(str::to_owned).collect();
        let lacks_client = status == Status::NotApplicable && context.why_no_client().is_some();
        send(&Message::Finished(Finished { status, message, functions, lacks_client }));
    }
}

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
        Ok(Ok(())) => (Status::Passed, String::new()),
        Ok(Err(Finding::Wrong(message))) => match context.why_no_client() {
            Some(why) if check.name != CLIENT => {
                (Status::NotApplicable, format!("no client can be created: {why}"))
            }
            _ => (Status::Wrong, message),
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
