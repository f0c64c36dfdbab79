//! The context that checks run in.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use super::message::{Step, in_step};
use super::sequences::Sequences;
use pjrt_testing::host::{Client, CreateOption, Error, Plugin, Result};

/// The maximum time that a check waits for a result that hosts wait for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// The context that checks run in.
pub(crate) struct Context {
    pub(crate) plugin: Plugin,
    pub(crate) path: PathBuf,
    pub(crate) options: Vec<CreateOption>,
    pub(crate) sequences: Sequences,
    /// The names of the checks that failed before.
    pub(crate) failed: Vec<String>,
    /// The reason why no client can be created, if that is already known.
    no_client: Option<Error>,
    /// The outcome of the first creation of a client.
    first_client: OnceLock<Result<()>>,
}

impl Context {
    pub(crate) fn new(
        plugin: Plugin,
        path: &Path,
        options: Vec<CreateOption>,
        no_client: Option<&str>,
        sequences: Sequences,
        failed: Vec<String>,
    ) -> Self {
        let no_client = no_client.map(|why| Error::broken("PJRT_Client_Create", why));
        Self {
            plugin,
            path: path.to_owned(),
            options,
            sequences,
            failed,
            no_client,
            first_client: OnceLock::new(),
        }
    }

    pub(crate) fn client(&self) -> Result<Client> {
        let client = match &self.no_client {
            Some(why) => Err(why.clone()),
            None => in_step(Step::Client, || self.plugin.create_client(&self.options)),
        };
        self.first_client.get_or_init(|| client.as_ref().map(|_| ()).map_err(Clone::clone));
        client
    }

    /// Returns the reason why no client can be created, such as missing hardware. Most rules then do not
    /// apply.
    pub(crate) fn why_no_client(&self) -> Option<&Error> {
        self.first_client.get()?.as_ref().err()
    }

    pub(crate) fn minor(&self) -> i32 {
        self.plugin.version().1
    }
}
