//! Sends arrays to the host and receives arrays from it.

use super::process::Process;
use super::{Cx, Result, RunError, RunErrorKind};
use crate::storage::{Frame, View};

/// The host side of `stablehlo.send` and `stablehlo.recv`. The methods may block.
///
/// Arrays are dense bytes in row-major order. Elements smaller than a byte occupy one byte each.
pub trait HostTransfer {
    /// Sends an array. Returns when the host has accepted it.
    ///
    /// # Errors
    /// Returns [`RunErrorKind::Host`] with the error of the host.
    fn send(&self, process: Process, channel: i64, array: Vec<u8>) -> Result<()>;

    /// Receives an array of this number of bytes.
    ///
    /// # Errors
    /// Returns [`RunErrorKind::Host`] with the error of the host.
    fn receive(&self, process: Process, channel: i64, bytes: usize) -> Result<Vec<u8>>;
}

fn host<'a>(cx: &Cx<'a>) -> Result<&'a dyn HostTransfer> {
    cx.host.ok_or_else(|| {
        RunError::new(
            RunErrorKind::FailedPrecondition,
            "the program communicates with the host, but this run has no host callbacks",
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
                "the host sent {} bytes on channel {channel}, but the program expects {}",
                array.len(),
                to.len()
            ),
        ));
    }
    to.copy_from_slice(&array);
    Ok(())
}
