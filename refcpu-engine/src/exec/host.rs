//! Sending arrays to the host and receiving arrays from it.

use super::lane::Lane;
use super::{Cx, Result, RunError, RunErrorKind};
use crate::storage::View;

/// The host, as a program sees it. Its calls may block.
///
/// Arrays are dense bytes in row-major order, with a byte for each element of less than one.
pub trait HostTransfer {
    /// Sends an array. Returns when the host has taken it.
    ///
    /// # Errors
    /// What the host says, as [`RunErrorKind::Host`].
    fn send(&self, process: Process, channel: i64, array: Vec<u8>) -> Result<()>;

    /// Receives an array of so many bytes.
    ///
    /// # Errors
    /// What the host says, as [`RunErrorKind::Host`].
    fn receive(&self, process: Process, channel: i64, bytes: usize) -> Result<Vec<u8>>;
}

/// Which device of a run communicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Number of its replica.
    pub replica: usize,
    /// Number of its partition.
    pub partition: usize,
}

fn host<'a>(cx: &Cx<'a>) -> Result<&'a dyn HostTransfer> {
    cx.host.ok_or_else(|| {
        RunError::new(
            RunErrorKind::FailedPrecondition,
            "the program communicates with the host, and there is none",
        )
    })
}

fn process(lane: &Lane) -> Process {
    Process { replica: lane.replica, partition: lane.partition }
}

pub(super) fn send(lane: &Lane, channel: i64, read: &View, cx: &Cx<'_>) -> Result<()> {
    host(cx)?.send(process(lane), channel, lane.frame.bytes(read).to_vec())
}

pub(super) fn receive(lane: &mut Lane, channel: i64, write: &View, cx: &Cx<'_>) -> Result<()> {
    let array = host(cx)?.receive(process(lane), channel, write.byte_len())?;
    let to = lane.frame.bytes_mut(write);
    if array.len() != to.len() {
        return Err(RunError::new(
            RunErrorKind::Host,
            format!(
                "the host sent {} bytes on channel {channel}, the program expects {}",
                array.len(),
                to.len()
            ),
        ));
    }
    to.copy_from_slice(&array);
    Ok(())
}
