//! Sending arrays to the host and receiving arrays from it.

use super::process::Process;
use super::{Cx, Result, RunError, RunErrorKind};
use crate::storage::{Frame, View};

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

fn host<'a>(cx: &Cx<'a>) -> Result<&'a dyn HostTransfer> {
    cx.host.ok_or_else(|| {
        RunError::new(
            RunErrorKind::FailedPrecondition,
            "the program communicates with the host, and there is none",
        )
    })
}

pub(super) fn send(frame: &Frame, process: Process, channel: i64, read: &View, cx: &Cx<'_>) -> Result<()> {
    host(cx)?.send(process, channel, frame.bytes(read).to_vec())
}

pub(super) fn receive(
    frame: &mut Frame,
    process: Process,
    channel: i64,
    write: &View,
    cx: &Cx<'_>,
) -> Result<()> {
    let array = host(cx)?.receive(process, channel, write.byte_len())?;
    let to = frame.bytes_mut(write);
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
