//! The context that checks run in.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use super::message::{Step, in_step};
use super::sequences::Sequences;
use pjrt_testing::host::{Client, CreateOption, Error, Plugin, Result, limited};

/// Returns the maximum time that a check waits for a result that hosts wait for.
pub(crate) fn patience() -> Duration {
    limited(Duration::from_secs(10))
}

/// A way to create a client by the function that creates one.
pub(crate) type Creation = fn(&(dyn Fn() -> Result<Client> + Sync)) -> Result<Client>;

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
    /// The way in which clients are created, if it is not the plain call.
    creation: Mutex<Option<Creation>>,
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
            creation: Mutex::new(None),
        }
    }

    pub(crate) fn client(&self) -> Result<Client> {
        let client = match &self.no_client {
            Some(why) => Err(why.clone()),
            None => in_step(Step::Client, || self.create()),
        };
        self.first_client.get_or_init(|| client.as_ref().map(|_| ()).map_err(Clone::clone));
        client
    }

    fn create(&self) -> Result<Client> {
        let create = || self.plugin.create_client(&self.options);
        let creation = *self.creation.lock().unwrap_or_else(PoisonError::into_inner);
        creation.map_or_else(create, |creation| creation(&create))
    }

    /// Performs work whose clients are created in this way.
    pub(crate) fn with_creation<T>(&self, creation: Creation, work: impl FnOnce() -> T) -> T {
        struct Reset<'a>(&'a Context);
        impl Drop for Reset<'_> {
            fn drop(&mut self) {
                self.0.set_creation(None);
            }
        }
        self.set_creation(Some(creation));
        let _reset = Reset(self);
        work()
    }

    fn set_creation(&self, creation: Option<Creation>) {
        *self.creation.lock().unwrap_or_else(PoisonError::into_inner) = creation;
    }

    /// Returns `true` if a client was created.
    pub(crate) fn had_client(&self) -> bool {
        matches!(self.first_client.get(), Some(Ok(())))
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
