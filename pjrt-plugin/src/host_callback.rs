//! Host callbacks: a running program sends arrays to functions of the host, and receives arrays from them.

use std::fmt;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::core::event::{Event, EventSource};
use crate::core::sync::lock;
use crate::error::{Error, Result};

/// The host's functions for the send and receive operations of one execution (`send_callbacks` and `recv_callbacks` of
/// `PJRT_ExecuteOptions`), by device and channel.
///
/// JAX's `pure_callback`, `io_callback` and `jax.debug.print` become such operations: StableHLO's `send` and `recv` with
/// `is_host_transfer`, which name their function by the channel's handle. A function is called each time that an operation
/// runs, so in a loop it is called often.
///
/// A function of the host may block: JAX's need Python's global lock. So they are to be called on a thread of the plugin's
/// own, without locks held, and never inside of [`PjrtClient::execute`](crate::PjrtClient::execute).
///
/// Cloning gives another handle to the same functions. They can be called, from any thread, until the execution is
/// finished; then every call is a FAILED_PRECONDITION error. The host learns that the device is done only when the calls
/// that are under way have returned.
///
/// ```
/// use pjrt_plugin::{HostCallbacks, Result};
///
/// /// What a program does that sends to channel 1 and receives from channel 2, on the first device of the launch.
/// fn ask(host: &HostCallbacks, question: &[u8], bytes_of_answer: usize) -> Result<Vec<u8>> {
///     host.send(0, 1, question.to_vec())?;
///     host.receive(0, 2, bytes_of_answer, 1)?.wait()
/// }
///
/// // A launch for which the host gave no functions.
/// assert!(ask(&HostCallbacks::default(), b"how many?", 4).is_err());
/// ```
#[derive(Clone, Default)]
pub struct HostCallbacks(pub(crate) Option<Arc<dyn CallHost>>);

/// Calls the host's functions of one launch.
pub(crate) trait CallHost: Send + Sync {
    /// Sends a chunk, which belongs to the host from then on, whatever the outcome.
    fn send(
        &self,
        device: usize,
        channel_id: i64,
        data: Vec<u8>,
        total_bytes: usize,
        last: bool,
    ) -> Result<()>;

    /// Passes the host its end of a stream, which it fills now or later.
    fn receive(&self, device: usize, channel_id: i64, stream: Arc<Stream>) -> Result<()>;

    /// Refuses further calls. The event completes when no call is under way.
    fn close(&self) -> Event;
}

impl HostCallbacks {
    /// Whether the host gave no function at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn get(&self) -> Result<&dyn CallHost> {
        self.0.as_deref().ok_or_else(|| {
            Error::failed_precondition(
                "the program communicates with the host, but the host gave no functions for it",
            )
            .with_hint(
                "the program was made for another launch, or by a host without send and receive callbacks",
            )
        })
    }

    /// Sends a whole array: its dense bytes in row-major order, a byte for each element of less than one. Returns when the
    /// host has taken it, which for JAX means that the Python function has run if this was its last operand.
    ///
    /// `device` is a position in [`Execution::devices`](crate::Execution::devices).
    ///
    /// # Errors
    ///
    /// NOT_FOUND if the host has no function for this device and channel, FAILED_PRECONDITION if the execution is over,
    /// or the error of the host's function.
    pub fn send(&self, device: usize, channel_id: i64, data: Vec<u8>) -> Result<()> {
        let total_bytes = data.len();
        self.send_chunk(device, channel_id, data, total_bytes, true)
    }

    /// Sends a part of an array of `total_bytes`: the parts follow each other, and `last` says that the array ends with
    /// this one. JAX takes arrays in one piece only; see [`send`](Self::send).
    ///
    /// # Errors
    ///
    /// As for [`send`](Self::send).
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

    /// Asks the host for an array of `total_bytes`, which arrives in the stream, now or later, in chunks that are
    /// multiples of `granule_bytes` (1: of any size).
    ///
    /// # Errors
    ///
    /// NOT_FOUND if the host has no function for this device and channel, FAILED_PRECONDITION if the execution is over,
    /// INVALID_ARGUMENT if the granule is zero or does not divide the total, RESOURCE_EXHAUSTED if there is no memory for
    /// the array.
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
                "an array of {total_bytes} bytes cannot be received in granules of {granule_bytes} bytes"
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

/// An array on its way from the host: the plugin's end of a `PJRT_CopyToDeviceStream`.
///
/// It fails if the host sends too much or in wrong granules, or destroys its end before everything is there. Dropping it
/// refuses what is still to come.
pub struct HostStream {
    stream: Arc<Stream>,
    arrived: Event,
}

impl HostStream {
    /// Complete when the array is there, or never will be.
    #[must_use]
    pub fn arrived(&self) -> &Event {
        &self.arrived
    }

    /// Waits for the array: dense bytes in row-major order.
    ///
    /// # Errors
    ///
    /// INVALID_ARGUMENT if the host sent too much or in wrong granules, ABORTED if it destroyed the stream before everything
    /// was there.
    pub fn wait(self) -> Result<Vec<u8>> {
        self.arrived.wait()?;
        Ok(self.stream.take())
    }

    /// The same, for a limited time.
    ///
    /// # Errors
    ///
    /// As for [`wait`](Self::wait), and DEADLINE_EXCEEDED if the time is over.
    pub fn wait_timeout(self, timeout: Duration) -> Result<Vec<u8>> {
        let (sender, outcome) = channel();
        self.arrived.on_ready(move |outcome| {
            // Nobody listens any more if the time is over.
            let _ = sender.send(outcome);
        });
        match outcome.recv_timeout(timeout) {
            Ok(outcome) => outcome.map(|()| self.stream.take()),
            Err(_) => Err(Error::deadline_exceeded(format!(
                "the host sent {} of {} bytes on channel {} within {timeout:?}",
                self.stream.current_bytes(),
                self.stream.total_bytes,
                self.stream.channel_id
            ))),
        }
    }
}

impl Drop for HostStream {
    fn drop(&mut self) {
        let who = "the program does not wait for it any more";
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

/// Where the two ends of a stream meet.
pub(crate) struct Stream {
    channel_id: i64,
    pub(crate) total_bytes: usize,
    pub(crate) granule_bytes: usize,
    progress: Mutex<Progress>,
}

struct Progress {
    data: Vec<u8>,
    /// How much came, also after the data has been taken.
    current_bytes: usize,
    /// To be completed when everything is there; nothing once that, or an error, has happened.
    arrived: Option<EventSource>,
}

impl Stream {
    fn new(channel_id: i64, total_bytes: usize, granule_bytes: usize) -> Result<(Arc<Self>, Event)> {
        let mut data = Vec::new();
        data.try_reserve_exact(total_bytes).map_err(|_| {
            Error::resource_exhausted(format!(
                "there is no memory for the {total_bytes} bytes that channel {channel_id} receives"
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

    /// Appends a chunk of the host. One that cannot be right fails the stream.
    pub(crate) fn add_chunk(&self, chunk: &[u8]) -> Result<()> {
        let mut progress = lock(&self.progress);
        let (current, total) = (progress.current_bytes, self.total_bytes);
        if progress.arrived.is_none() {
            drop(progress);
            return Err(Error::failed_precondition(format!(
                "a chunk of {} bytes for channel {}, whose stream is complete or cancelled",
                chunk.len(),
                self.channel_id
            )));
        }
        let problem = if !chunk.len().is_multiple_of(self.granule_bytes) {
            Some(format!("is no multiple of its granule of {} bytes", self.granule_bytes))
        } else if chunk.len() > total - current {
            Some(format!("is too long: {current} of {total} bytes are there already"))
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

    /// The host has given up its end.
    pub(crate) fn host_is_gone(&self) {
        if self.total_bytes == 0 {
            return self.end(Ok(()));
        }
        self.end(Err(Error::aborted(self.incomplete("it destroyed the stream before everything was there"))));
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
