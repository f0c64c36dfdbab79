//! Host callbacks, through which a running program sends arrays to the host and receives arrays from it.

use std::fmt;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::core::event::{Event, EventSource};
use crate::core::sync::lock;
use crate::error::{Error, Result};

/// The host's callbacks for the send and receive operations of an execution (`send_callbacks` and `recv_callbacks` of
/// `PJRT_ExecuteOptions`), by device and channel.
///
/// JAX lowers `pure_callback`, `io_callback` and `jax.debug.print` to such operations: StableHLO's `send` and `recv` with
/// `is_host_transfer`. The channel handle of an operation identifies its callback, which is called each time that the
/// operation runs.
///
/// A callback may block: JAX's callbacks acquire Python's global interpreter lock. Callbacks must be called on a thread of
/// the plugin, without locks held, and never inside [`PjrtClient::execute`](crate::PjrtClient::execute).
///
/// A clone refers to the same callbacks. Any thread of the plugin may call them until the execution is completed; after
/// that, every call returns a FAILED_PRECONDITION error. The events of the execution complete only after all running calls
/// have returned.
///
/// ```
/// use pjrt_plugin::{HostCallbacks, Result};
///
/// /// Sends a question to channel 1 and receives the answer from channel 2, on the first device of the launch.
/// fn ask(host: &HostCallbacks, question: &[u8], bytes_of_answer: usize) -> Result<Vec<u8>> {
///     host.send(0, 1, question.to_vec())?;
///     host.receive(0, 2, bytes_of_answer, 1)?.wait()
/// }
///
/// // A launch without callbacks.
/// assert!(ask(&HostCallbacks::default(), b"how many?", 4).is_err());
/// ```
#[derive(Clone, Default)]
pub struct HostCallbacks(pub(crate) Option<Arc<dyn CallHost>>);

/// Calls the host's callbacks of a launch.
pub(crate) trait CallHost: Send + Sync {
    /// Sends a chunk and passes its ownership to the host, even if it fails.
    fn send(
        &self,
        device: usize,
        channel_id: i64,
        data: Vec<u8>,
        total_bytes: usize,
        last: bool,
    ) -> Result<()>;

    /// Passes the host's end of a stream to the host, which fills it during or after the call.
    fn receive(&self, device: usize, channel_id: i64, stream: Arc<Stream>) -> Result<()>;

    /// Rejects all further calls. The event completes when no call is running.
    fn close(&self) -> Event;
}

impl HostCallbacks {
    /// Returns whether the host passed no callbacks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn get(&self) -> Result<&dyn CallHost> {
        self.0.as_deref().ok_or_else(|| {
            Error::failed_precondition(
                "the program contains host callbacks, but the host passed none to PJRT_LoadedExecutable_Execute",
            )
            .with_hint(
                "callbacks exist only in the process that compiled the program; do not serialize programs with callbacks",
            )
        })
    }

    /// Sends an array as dense, row-major bytes, in which an element of less than a byte occupies one byte. Returns when the
    /// callback has returned. JAX runs the Python function during the callback of its last operand.
    ///
    /// `device` is an index in [`Execution::devices`](crate::Execution::devices).
    ///
    /// # Errors
    ///
    /// Returns NOT_FOUND if the host has no callback for this device and channel, FAILED_PRECONDITION if the host passed no
    /// callbacks at all or the execution is complete, or the error of the callback.
    pub fn send(&self, device: usize, channel_id: i64, data: Vec<u8>) -> Result<()> {
        let total_bytes = data.len();
        self.send_chunk(device, channel_id, data, total_bytes, true)
    }

    /// Sends a chunk of an array of `total_bytes` bytes. Chunks must be sent in order; `last` marks the final one. JAX
    /// supports only arrays in a single chunk; see [`send`](Self::send).
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`send`](Self::send).
    pub fn send_chunk(
        &self,
        device: usize,
        channel_id: i64,
        data: Vec<u8>,
        total_bytes: usize,
        last: bool,
    ) -> Result<()> {
        self.get()?.send(device, channel_id, data, total_bytes, last)
    }

    /// Requests an array of `total_bytes` bytes from the host. It arrives in the returned stream, during or after the call,
    /// in chunks whose sizes are multiples of `granule_bytes`. A granule of 1 allows any size.
    ///
    /// `device` is an index in [`Execution::devices`](crate::Execution::devices).
    ///
    /// # Errors
    ///
    /// Returns NOT_FOUND if the host has no callback for this device and channel, FAILED_PRECONDITION if the host passed no
    /// callbacks at all or the execution is complete, INVALID_ARGUMENT if `granule_bytes` is zero or does not divide
    /// `total_bytes`, or RESOURCE_EXHAUSTED if there is not enough memory for the array.
    pub fn receive(
        &self,
        device: usize,
        channel_id: i64,
        total_bytes: usize,
        granule_bytes: usize,
    ) -> Result<HostStream> {
        if granule_bytes == 0
            || !total_bytes.is_multiple_of(granule_bytes)
            || i64::try_from(total_bytes).is_err()
        {
            return Err(Error::invalid_argument(format!(
                "cannot receive an array of {total_bytes} bytes in granules of {granule_bytes} bytes; expected a granule of at least 1 byte that divides the array"
            )));
        }
        let (stream, arrived) = Stream::new(channel_id, total_bytes, granule_bytes)?;
        self.get()?.receive(device, channel_id, Arc::clone(&stream))?;
        Ok(HostStream { stream, arrived })
    }
}

impl fmt::Debug for HostCallbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "HostCallbacks(none)" } else { "HostCallbacks" })
    }
}

/// The plugin's end of a `PJRT_CopyToDeviceStream`, which receives an array from the host. See the example of
/// [`HostCallbacks`].
///
/// The stream fails if the host sends more bytes than requested or a chunk whose size is not a multiple of the granule, or
/// destroys its end before the array is complete. After the stream is dropped, further chunks are rejected.
pub struct HostStream {
    stream: Arc<Stream>,
    arrived: Event,
}

impl HostStream {
    /// Returns the event that completes when the array is complete or the stream has failed.
    #[must_use]
    pub fn arrived(&self) -> &Event {
        &self.arrived
    }

    /// Waits for the array, and returns its dense, row-major bytes.
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if the host sent more bytes than requested or a chunk whose size is not a multiple of the
    /// granule, or ABORTED if the host destroyed the stream before the array was complete.
    pub fn wait(self) -> Result<Vec<u8>> {
        self.arrived.wait()?;
        Ok(self.stream.take())
    }

    /// Waits for the array as [`wait`](Self::wait) does, at most for `timeout`.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`wait`](Self::wait), and DEADLINE_EXCEEDED if the timeout expires.
    pub fn wait_timeout(self, timeout: Duration) -> Result<Vec<u8>> {
        let (sender, outcome) = channel();
        self.arrived.on_ready(move |outcome| {
            // There is no receiver after the timeout.
            let _ = sender.send(outcome);
        });
        match outcome.recv_timeout(timeout) {
            Ok(outcome) => outcome.map(|()| self.stream.take()),
            Err(_) => Err(Error::deadline_exceeded(format!(
                "the timeout expired: the host sent {} of {} bytes to channel {} within {timeout:?}",
                self.stream.current_bytes(),
                self.stream.total_bytes,
                self.stream.channel_id
            ))),
        }
    }
}

impl Drop for HostStream {
    fn drop(&mut self) {
        let who = "the program stopped waiting for the rest";
        self.stream.end(Err(Error::cancelled(self.stream.incomplete(who))));
    }
}

impl fmt::Debug for HostStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "HostStream(channel {}: {} of {} bytes)",
            self.stream.channel_id,
            self.stream.current_bytes(),
            self.stream.total_bytes
        )
    }
}

/// The state that the two ends of a stream share.
pub(crate) struct Stream {
    channel_id: i64,
    pub(crate) total_bytes: usize,
    pub(crate) granule_bytes: usize,
    progress: Mutex<Progress>,
}

struct Progress {
    data: Vec<u8>,
    /// The number of bytes received, which stays valid after the data has been taken.
    current_bytes: usize,
    /// The source of the event of arrival; `None` after the event has completed.
    arrived: Option<EventSource>,
}

impl Stream {
    fn new(channel_id: i64, total_bytes: usize, granule_bytes: usize) -> Result<(Arc<Self>, Event)> {
        let mut data = Vec::new();
        data.try_reserve_exact(total_bytes).map_err(|_| {
            Error::resource_exhausted(format!(
                "cannot allocate the {total_bytes} bytes that channel {channel_id} receives"
            ))
        })?;
        let (source, arrived) = Event::pending();
        let progress = Progress { data, current_bytes: 0, arrived: Some(source) };
        Ok((
            Arc::new(Self { channel_id, total_bytes, granule_bytes, progress: Mutex::new(progress) }),
            arrived,
        ))
    }

    fn incomplete(&self, what: &str) -> String {
        let (current, total) = (self.current_bytes(), self.total_bytes);
        format!("channel {} received {current} of {total} bytes from the host: {what}", self.channel_id)
    }

    pub(crate) fn current_bytes(&self) -> usize {
        lock(&self.progress).current_bytes
    }

    /// Appends a chunk of the host. An invalid chunk fails the stream.
    pub(crate) fn add_chunk(&self, chunk: &[u8]) -> Result<()> {
        let mut progress = lock(&self.progress);
        let (current, total) = (progress.current_bytes, self.total_bytes);
        if progress.arrived.is_none() {
            drop(progress);
            return Err(Error::failed_precondition(format!(
                "cannot add a chunk of {} bytes to channel {}, whose stream is complete or cancelled",
                chunk.len(),
                self.channel_id
            )));
        }
        let problem = if !chunk.len().is_multiple_of(self.granule_bytes) {
            Some(format!("is not a multiple of its granule of {} bytes", self.granule_bytes))
        } else if chunk.len() > total - current {
            Some(format!("is too long: {current} of {total} bytes have been received already"))
        } else {
            None
        };
        if let Some(problem) = problem {
            drop(progress);
            let channel = self.channel_id;
            let error = Error::invalid_argument(format!(
                "a chunk of {} bytes for channel {channel} {problem}",
                chunk.len()
            ));
            self.end(Err(error.clone()));
            return Err(error);
        }
        progress.data.extend_from_slice(chunk);
        progress.current_bytes += chunk.len();
        let complete = progress.current_bytes == total;
        drop(progress);
        if complete {
            self.end(Ok(()));
        }
        Ok(())
    }

    /// Fails the stream, unless it is complete, because the host has destroyed its end.
    pub(crate) fn host_is_gone(&self) {
        if self.total_bytes == 0 {
            return self.end(Ok(()));
        }
        self.end(Err(Error::aborted(
            self.incomplete("the host destroyed the stream before the array was complete"),
        )));
    }

    /// Completes the stream, unless it is complete.
    fn end(&self, outcome: Result<()>) {
        let arrived = lock(&self.progress).arrived.take();
        if let Some(arrived) = arrived {
            arrived.complete(outcome);
        }
    }

    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut lock(&self.progress).data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;

    fn stream(total_bytes: usize, granule_bytes: usize) -> (Arc<Stream>, HostStream) {
        let (stream, arrived) = Stream::new(3, total_bytes, granule_bytes).unwrap();
        (Arc::clone(&stream), HostStream { stream, arrived })
    }

    #[test]
    fn chunks_arrive_in_order() {
        let (host, ours) = stream(6, 2);
        host.add_chunk(&[1, 2]).unwrap();
        assert!(!ours.arrived().is_ready());
        host.add_chunk(&[3, 4, 5, 6]).unwrap();
        assert_eq!(host.current_bytes(), 6);
        assert_eq!(ours.wait().unwrap(), [1, 2, 3, 4, 5, 6]);
        assert_eq!(host.add_chunk(&[7, 8]).unwrap_err().code(), ErrorCode::FailedPrecondition);
    }

    #[test]
    fn a_chunk_that_cannot_be_right_fails_the_stream() {
        for (chunk, text) in [(&[0; 8][..], "too long"), (&[0; 3][..], "granule of 2 bytes")] {
            let (host, ours) = stream(6, 2);
            let error = host.add_chunk(chunk).unwrap_err();
            assert!(error.message().contains(text), "{error}");
            assert_eq!(ours.wait().unwrap_err().message(), error.message());
        }
    }

    #[test]
    fn a_stream_that_the_host_destroys_too_soon_fails() {
        let (host, ours) = stream(6, 1);
        host.add_chunk(&[0; 4]).unwrap();
        host.host_is_gone();
        let error = ours.wait().unwrap_err();
        assert_eq!(error.code(), ErrorCode::Aborted);
        assert!(error.message().contains("channel 3 received 4 of 6 bytes"), "{error}");
    }

    #[test]
    fn nothing_is_there_at_once() {
        let (host, ours) = stream(0, 1);
        host.host_is_gone();
        assert_eq!(ours.wait().unwrap(), []);
        let (host, ours) = stream(0, 1);
        host.add_chunk(&[]).unwrap();
        assert_eq!(ours.wait().unwrap(), []);
    }

    #[test]
    fn waiting_can_end_before_the_host_answers() {
        let (host, ours) = stream(6, 1);
        let error = ours.wait_timeout(Duration::from_millis(1)).unwrap_err();
        assert_eq!(error.code(), ErrorCode::DeadlineExceeded);
        assert_eq!(host.add_chunk(&[0; 6]).unwrap_err().code(), ErrorCode::FailedPrecondition);
    }

    #[test]
    fn an_array_that_no_memory_can_hold_is_an_error() {
        assert_eq!(
            Stream::new(1, isize::MAX as usize, 1).err().unwrap().code(),
            ErrorCode::ResourceExhausted
        );
    }
}
