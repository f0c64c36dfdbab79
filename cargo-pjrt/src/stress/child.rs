//! Runs one scenario in a child process.

use super::message::{Message, Stop, Verdict, send};
use super::options::ChildOptions;
use super::{ending, memory, threads};
use pjrt_testing::host::{Client, Plugin};

/// The steps with which each scenario begins.
pub(super) const BEGINNING: [&str; 2] = ["loading the plugin", "creating a client"];

/// Runs a scenario, and sends its outcome to the parent. The caller then returns from the main function.
pub fn child(options: &ChildOptions) {
    send(&Message::At(BEGINNING[0].to_owned()));
    match client(options) {
        Err(why) => send(&Message::Unusable(why)),
        Ok(client) => send(&match run(client, options) {
            Ok(summary) => Message::Done(summary),
            Err(Stop::Failed(how)) => Message::Failed(how),
            Err(Stop::Unsupported(why)) => Message::Unsupported(why),
        }),
    }
}

fn client(options: &ChildOptions) -> Result<Client, String> {
    let plugin = Plugin::load(&options.plugin).map_err(|error| error.to_string())?;
    plugin.initialize().map_err(|error| error.to_string())?;
    send(&Message::At(BEGINNING[1].to_owned()));
    plugin.create_client(&options.options).map_err(|error| error.to_string())
}

fn run(client: Client, options: &ChildOptions) -> Verdict {
    send(&Message::At("compiling programs".to_owned()));
    match options.scenario.split_once('/').map_or(options.scenario.as_str(), |(part, _)| part) {
        "threads" => threads::run(&client, options),
        "memory" => memory::run(&client, options),
        _ => ending::run(client, options),
    }
}
