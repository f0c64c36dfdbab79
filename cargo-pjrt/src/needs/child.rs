//! Compiles programs in a child process.

use serde::{Deserialize, Serialize};

use super::options::ChildOptions;
use crate::process::child;
use crate::run::Job;
use pjrt_testing::host::{Client, Plugin, Program};

/// A message of a child.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Message {
    /// The library cannot be used as a plugin.
    Unusable(String),
    /// The client is created.
    Ready,
    /// The compilation of the program with this number begins.
    Begins(usize),
    /// The compilation ended: with the plugin's error, if it refused the program.
    Compiled(usize, Option<String>),
}

fn send(message: &Message) {
    if let Ok(json) = serde_json::to_string(message) {
        child::send(&json);
    }
}

/// Compiles programs, and sends the outcomes to the parent.
pub fn child(options: &ChildOptions) {
    let client = match client(options) {
        Ok(client) => client,
        Err(why) => return send(&Message::Unusable(why)),
    };
    send(&Message::Ready);
    for number in options.first..options.end {
        send(&Message::Begins(number));
        let outcome = Job::of_folder(&options.jobs.join(number.to_string())).and_then(|job| {
            let program = Program { code: &job.code, format: &job.format };
            client.compile(&program, &job.options).map(drop).map_err(|error| error.to_string())
        });
        send(&Message::Compiled(number, outcome.err()));
    }
}

fn client(options: &ChildOptions) -> Result<Client, String> {
    let plugin = Plugin::load(&options.plugin).map_err(|error| error.to_string())?;
    plugin.initialize().map_err(|error| error.to_string())?;
    plugin.create_client(&options.options).map_err(|error| error.to_string())
}
