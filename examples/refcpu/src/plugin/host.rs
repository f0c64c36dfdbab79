//! The host's callbacks as the engine wants them.

use crate::exec::{HostTransfer, Process, RunError, RunErrorKind};
use pjrt_plugin::{Error, HostCallbacks};
use std::cell::{Cell, RefCell};

thread_local! {
    /// How many of the host's functions this thread is in.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// True if the host's function that this thread is in has called us.
pub(super) fn is_inside_callback() -> bool {
    DEPTH.get() > 0
}

/// Marks this thread as inside of a function of the host.
struct Inside;

impl Inside {
    fn enter() -> Self {
        DEPTH.set(DEPTH.get() + 1);
        Self
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// The callbacks of one execution.
pub(super) struct Host<'a> {
    callbacks: &'a HostCallbacks,
    /// Partitions of each replica.
    partitions: usize,
    failure: RefCell<Option<Error>>,
}

impl<'a> Host<'a> {
    pub(super) fn new(callbacks: &'a HostCallbacks, partitions: usize) -> Self {
        Self { callbacks, partitions, failure: RefCell::new(None) }
    }

    /// The host's own error, with its code and payloads, once a run has failed because of it.
    pub(super) fn take_failure(&self) -> Option<Error> {
        self.failure.take()
    }

    fn device(&self, process: Process) -> usize {
        process.replica * self.partitions + process.partition
    }

    fn failed(&self, error: Error) -> RunError {
        let message = error.message().to_owned();
        self.failure.replace(Some(error));
        RunError::new(RunErrorKind::Host, message)
    }
}

impl HostTransfer for Host<'_> {
    fn send(&self, process: Process, channel: i64, array: Vec<u8>) -> Result<(), RunError> {
        let _inside = Inside::enter();
        self.callbacks.send(self.device(process), channel, array).map_err(|error| self.failed(error))
    }

    fn receive(&self, process: Process, channel: i64, bytes: usize) -> Result<Vec<u8>, RunError> {
        let _inside = Inside::enter();
        let stream = self.callbacks.receive(self.device(process), channel, bytes, 1);
        stream.and_then(|stream| stream.wait()).map_err(|error| self.failed(error))
    }
}
