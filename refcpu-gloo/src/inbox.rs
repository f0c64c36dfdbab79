//! The messages that this process expects from another one.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::MESSAGE_SIZE;
use crate::library::{Connections, Posted};

/// The number of messages for which a process is ready.
const AHEAD: u64 = 4;

/// The bits that the tags of messages have in addition to their number. Transfers have no tags with the first of them.
const TAG: u64 = 1 << 63;

/// The receives of the next messages of a process, which are started before they are expected. Gloo sends bytes only after it knows
/// that the receiver has memory for them; it knows that of these before they are sent.
pub(crate) struct Inbox {
    connections: Arc<Connections>,
    peer: usize,
    /// The number of the first message whose receive has not been started.
    next: u64,
    posted: BTreeMap<u64, Posted>,
}

impl Inbox {
    /// Creates an inbox, which is ready for no messages yet.
    pub(crate) fn new(connections: Arc<Connections>, peer: usize) -> Self {
        Self { connections, peer, next: 0, posted: BTreeMap::new() }
    }

    /// Returns the tag of a message.
    pub(crate) fn tag(number: u64) -> u64 {
        TAG | number
    }

    /// Becomes ready for the first messages.
    ///
    /// # Errors
    ///
    /// Returns the process and Gloo's message if the connection is broken.
    pub(crate) fn open(&mut self) -> Result<(), (usize, String)> {
        self.post_until(AHEAD)
    }

    /// Returns the receive of a message, and becomes ready for later ones.
    ///
    /// # Errors
    ///
    /// Returns the process and Gloo's message if the connection is broken.
    ///
    /// # Panics
    ///
    /// Panics if the message was taken before.
    pub(crate) fn take(&mut self, number: u64) -> Result<Posted, (usize, String)> {
        self.post_until(number + 1 + AHEAD)?;
        Ok(self.posted.remove(&number).expect("a message is taken once"))
    }

    fn post_until(&mut self, end: u64) -> Result<(), (usize, String)> {
        while self.next < end {
            let posted = self.connections.post(self.peer, Self::tag(self.next), MESSAGE_SIZE)?;
            self.posted.insert(self.next, posted);
            self.next += 1;
        }
        Ok(())
    }
}
