//! The plugin and the client that are observed.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::fact::{Message, send};
use pjrt_testing::host::{Client, CreateOption, Plugin, Result};

/// The plugin and the client that are observed.
pub(crate) struct Observer {
    pub(super) plugin: Plugin,
    pub(super) options: Vec<CreateOption>,
    /// The folder for arrays.
    pub(super) scratch: PathBuf,
    initialized: OnceLock<Result<()>>,
    client: OnceLock<Result<Client>>,
}

impl Observer {
    pub(crate) fn new(plugin: Plugin, options: &[CreateOption], scratch: &Path) -> Self {
        Self {
            plugin,
            options: options.to_owned(),
            scratch: scratch.to_owned(),
            initialized: OnceLock::new(),
            client: OnceLock::new(),
        }
    }

    /// Initializes the plugin and creates a client, unless that was done.
    pub(crate) fn prepare(&self) {
        if self.client.get().is_none() {
            send(&Message::Creating);
            let _ = self.client();
        }
    }

    /// Returns the outcome of the initialization.
    pub(super) fn initialize(&self) -> Result<()> {
        self.initialized.get_or_init(|| self.plugin.initialize()).clone()
    }

    /// Returns the client, which all subjects share, or the error of its creation.
    pub(super) fn client(&self) -> Result<&Client> {
        self.initialize()?;
        let client = self.client.get_or_init(|| self.plugin.create_client(&self.options));
        client.as_ref().map_err(Clone::clone)
    }
}
