//! A second process, which uses the plugin as the process of a check does, and says what it sees.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::context::{Context, patience};
use super::fixtures::{compile_add, numbers, upload_four};
use super::heap::overwrite_freed;
use super::verdict::Finding;
use crate::process::child::{self, Prints, Received, Worker};
use pjrt_testing::host::{Client, CreateOption, Error, ExecuteOptions, LoadedExecutable, Plugin};

/// The arguments of the hidden subcommand that is the second process.
#[derive(Debug, Clone, clap::Args)]
pub struct AnotherOptions {
    /// Client option
    #[arg(long = "option")]
    options: Vec<CreateOption>,
    /// Path of a file with the serialized program that adds, which the process loads and runs
    #[arg(long)]
    executable: Option<PathBuf>,
    /// Path of the plugin's shared library
    plugin: PathBuf,
}

/// Descriptions that must not depend on the process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) platform_version: String,
    pub(crate) devices: usize,
    /// The serialized topology, if the plugin can serialize it.
    pub(crate) topology: Option<Vec<u8>>,
    /// The fingerprint of the program that adds, if the plugin has one.
    pub(crate) fingerprint: Option<String>,
}

impl Identity {
    /// Asks the plugin.
    pub(crate) fn of(client: &Client) -> Result<Self, Error> {
        let topology = client.topology().and_then(|topology| topology.serialize());
        let fingerprint = compile_add(client).and_then(|program| program.executable()?.fingerprint());
        Ok(Self {
            platform_version: client.platform_version()?,
            devices: client.devices()?.len(),
            topology: topology.ok().map(|(bytes, _)| bytes),
            fingerprint: fingerprint.ok(),
        })
    }
}

/// The elements of the arguments of the program that adds.
const ARGUMENTS: [[f32; 4]; 2] = [[1.0, 2.0, 3.0, 4.0], [10.0, 20.0, 30.0, 40.0]];

/// The elements of its output.
pub(crate) const SUM: [f32; 4] = [11.0, 22.0, 33.0, 44.0];

/// The view of the second process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Seen {
    pub(crate) identity: Identity,
    /// The output of the program that was loaded, or the error.
    pub(crate) output: Result<Vec<f32>, String>,
}

/// A message of the second process.
#[derive(Debug, Serialize, Deserialize)]
enum Message {
    /// The process does this next.
    At(String),
    /// The plugin cannot be used, perhaps because only one process can use the device.
    Unusable(String),
    /// The process saw this.
    Seen(Seen),
}

fn send(message: &Message) {
    if let Ok(json) = serde_json::to_string(message) {
        child::send(&json);
    }
}

/// Uses the plugin in the second process, and reports what it sees to the first one.
pub fn another_process(options: &AnotherOptions) {
    send(&see(options).map_or_else(Message::Unusable, Message::Seen));
}

fn see(options: &AnotherOptions) -> Result<Seen, String> {
    let at = |what: &str| send(&Message::At(what.to_owned()));
    at("creating a client");
    let plugin = Plugin::load(&options.plugin).map_err(|error| error.to_string())?;
    let create = || plugin.initialize().and_then(|()| plugin.create_client(&options.options));
    let client = create().map_err(|error| error.to_string())?;
    let mut output = Err("there is no executable".to_owned());
    if let Some(path) = &options.executable {
        let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        at("loading and running the executable");
        output = run_serialized(&client, bytes).map_err(|error| error.to_string());
    }
    at("describing the plugin");
    let identity = Identity::of(&client).map_err(|error| error.to_string())?;
    Ok(Seen { identity, output })
}

/// Loads the serialized program that adds, frees the bytes, and runs it.
pub(crate) fn run_serialized(client: &Client, bytes: Vec<u8>) -> Result<Vec<f32>, Error> {
    let program = client.deserialize(&bytes);
    drop(bytes);
    let _memory = overwrite_freed();
    sum(client, &program?)
}

/// Runs the program that adds.
fn sum(client: &Client, program: &LoadedExecutable) -> Result<Vec<f32>, Error> {
    let [x, y] = ARGUMENTS.map(|values| upload_four(client, &values));
    let (x, y) = (x?, y?);
    let launched = program
        .launch(&[vec![&x, &y]], &ExecuteOptions::default(), None, true)
        .map_err(|refused| refused.error)?;
    launched.done[0].wait()?;
    numbers(launched.output(0, 0)?)
}

/// Starts the second process, with these options of the client and perhaps a file that contains the serialized program that
/// adds, and returns what it sees.
pub(crate) fn ask_another(
    context: &Context,
    options: &[CreateOption],
    executable: Option<&Path>,
) -> Result<Seen, Finding> {
    let program = std::env::current_exe().map_err(|error| {
        Finding::NotApplicable(format!("the path of this program cannot be determined: {error}"))
    })?;
    let mut arguments: Vec<OsString> = vec!["conform-another-child".into(), context.path.clone().into()];
    arguments.extend(options.iter().map(|option| format!("--option={option}").into()));
    arguments
        .extend(executable.map(|path| [OsString::from("--executable"), path.into()]).into_iter().flatten());
    let mut worker = Worker::start(&program, &arguments, Prints::Through)
        .map_err(|error| Finding::NotApplicable(format!("a second process cannot be started: {error}")))?;
    let mut at = "starting".to_owned();
    loop {
        match worker.receive(patience()) {
            Received::Line(line) => match serde_json::from_str(&line) {
                Ok(Message::At(what)) => at = what,
                Ok(Message::Seen(seen)) => return Ok(seen),
                Ok(Message::Unusable(why)) => {
                    let why = format!("a second process cannot use the plugin: {why}");
                    return Err(Finding::NotApplicable(why));
                }
                Err(_) => {}
            },
            Received::Ended(ending) => {
                return Err(Finding::Wrong(format!("a second process ended with {ending} while {at}")));
            }
            Received::TimedOut => {
                let seconds = patience().as_secs_f64();
                let why = format!("a second process made no progress for {seconds:.0} s while {at}");
                return Err(Finding::Wrong(why));
            }
        }
    }
}
