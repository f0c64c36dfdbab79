//! The state of a recording: the log, and the host's objects that it names.

use std::collections::HashMap;

use pjrt_sys::{PJRT_Buffer, PJRT_Client};

use super::log::{Entry, Writer};
use crate::process::output;

/// A buffer of the host that the log names.
pub(super) struct Known {
    pub(super) id: u64,
    pub(super) is_read: bool,
}

/// A client of the host.
pub(super) struct KnownClient {
    pub(super) id: u64,
    /// The addresses of its devices.
    pub(super) devices: Vec<usize>,
}

/// A loaded program of the host.
pub(super) struct Loaded {
    pub(super) id: u64,
    pub(super) num_outputs: usize,
}

/// A compiled program that the host may load later.
pub(super) struct Compiled {
    pub(super) format: String,
    pub(super) options: Vec<u8>,
    pub(super) code: Vec<u8>,
}

/// The state of a recording.
#[derive(Default)]
pub(super) struct State {
    /// The log; `None` once a write has failed.
    log: Option<Writer>,
    last_id: u64,
    /// The clients, by address.
    pub(super) clients: HashMap<usize, KnownClient>,
    pub(super) buffers: HashMap<usize, Known>,
    pub(super) executables: HashMap<usize, Loaded>,
    pub(super) compiled: HashMap<usize, Compiled>,
    /// The number of arrays that are being read.
    pub(super) pending: usize,
}

impl State {
    /// Creates the state of a recording that has no objects yet.
    pub(super) fn new(log: Writer) -> Self {
        Self { log: Some(log), ..Self::default() }
    }

    /// Writes an entry. If that fails, no more entries are written.
    pub(super) fn note(&mut self, entry: Entry, bytes: &[u8]) {
        let Some(log) = &mut self.log else { return };
        if let Err(error) = log.append(entry, bytes) {
            output::print_error(&format!("the recorder cannot write its log, and stops: {error}"));
            self.log = None;
        }
    }

    /// Returns a number that no object has.
    pub(super) fn new_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// Assigns a number to a buffer.
    pub(super) fn adopt(&mut self, raw: *mut PJRT_Buffer) -> u64 {
        let id = self.new_id();
        self.buffers.insert(raw.addr(), Known { id, is_read: false });
        id
    }

    /// Returns the number of a client, or 0 if no logged function created it.
    pub(super) fn client(&self, raw: *mut PJRT_Client) -> u64 {
        self.clients.get(&raw.addr()).map_or(0, |client| client.id)
    }
}
