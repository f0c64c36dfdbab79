//! The callbacks of a host for the data that programs send to it and receive from it.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pjrt_sys::*;

use super::call::call;
use super::error::{Code, Error, Result};
use super::event::Event;
use super::plugin::Plugin;

/// The data that a program sent with one call of a callback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// The channel of the callback.
    pub channel: i64,
    /// The bytes of the chunk.
    pub bytes: Vec<u8>,
    /// The total size that the plugin reported.
    pub total: usize,
    /// `true` if the plugin reported that this is the last chunk.
    pub done: bool,
}

/// The answer to a program that receives through a channel.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// The channel.
    pub channel: i64,
    /// The bytes, in chunks.
    pub chunks: Vec<Vec<u8>>,
    /// The time after the callback until the host answers on another thread, or `None` for an answer within the callback.
    pub after: Option<Duration>,
}

/// The stream of an answer, as the host observed it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answered {
    /// The channel of the callback.
    pub channel: i64,
    /// The total size.
    pub total: i64,
    /// The granule.
    pub granule: i64,
    /// The current size at first, and after each chunk.
    pub current: Vec<i64>,
    /// The number of calls of the deleter of each chunk.
    pub frees: Vec<usize>,
    /// The first error.
    pub error: Option<Error>,
}

/// The callbacks of one device, and the record of their calls.
#[derive(Debug)]
pub struct DeviceChannels {
    plugin: Plugin,
    /// The channels through which the program sends.
    sends: Vec<i64>,
    answers: Vec<Answer>,
    /// The error that the callbacks for sent data return.
    refusal: Option<(Code, String)>,
    record: Mutex<Record>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Record {
    sent: Vec<Sent>,
    answered: Vec<Answered>,
}

impl DeviceChannels {
    /// Creates the callbacks of a device. The plugin can call them at any time, so they are never freed.
    #[must_use]
    pub fn new(
        plugin: Plugin,
        sends: &[i64],
        answers: &[Answer],
        refusal: Option<(Code, &str)>,
    ) -> &'static Self {
        Box::leak(Box::new(Self {
            plugin,
            sends: sends.to_vec(),
            answers: answers.to_vec(),
            refusal: refusal.map(|(code, message)| (code, message.to_owned())),
            record: Mutex::default(),
            changed: Condvar::new(),
        }))
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the data that was sent, in the order of the calls.
    #[must_use]
    pub fn sent(&self) -> Vec<Sent> {
        self.record().sent.clone()
    }

    /// Waits until the host has given this number of answers, or until the timeout, and returns them.
    #[must_use]
    pub fn answered(&self, count: usize, timeout: Duration) -> Vec<Answered> {
        let waiting =
            self.changed.wait_timeout_while(self.record(), timeout, |record| record.answered.len() < count);
        let (record, _) = waiting.unwrap_or_else(PoisonError::into_inner);
        record.answered.clone()
    }

    /// Answers a program.
    fn answer(&self, stream: Stream, answer: &Answer) {
        let mut answered = Answered { channel: answer.channel, ..Answered::default() };
        answered.error = stream.fill(answer, &mut answered).err();
        drop(stream);
        self.record().answered.push(answered);
        self.changed.notify_all();
    }
}

/// The argument of a callback.
struct Callback {
    channels: &'static DeviceChannels,
    channel: i64,
}

/// The lists of callbacks, one list for each device. They are never freed.
pub(crate) struct Lists {
    sends: &'static mut [*mut PJRT_SendCallbackInfo],
    recvs: &'static mut [*mut PJRT_RecvCallbackInfo],
    num_sends: usize,
    num_recvs: usize,
}

impl Lists {
    pub(crate) fn new(devices: &[&'static DeviceChannels]) -> Self {
        let argument = |channels: &'static DeviceChannels, channel: i64| {
            Box::into_raw(Box::new(Callback { channels, channel })).cast::<c_void>()
        };
        let sends = devices.iter().map(|device| {
            let info = |channel: &i64| PJRT_SendCallbackInfo {
                channel_id: *channel,
                user_arg: argument(device, *channel),
                send_callback: Some(sent),
            };
            Vec::leak(device.sends.iter().map(info).collect()).as_mut_ptr()
        });
        let recvs = devices.iter().map(|device| {
            let info = |answer: &Answer| PJRT_RecvCallbackInfo {
                channel_id: answer.channel,
                user_arg: argument(device, answer.channel),
                recv_callback: Some(asked),
            };
            Vec::leak(device.answers.iter().map(info).collect()).as_mut_ptr()
        });
        Self {
            sends: Vec::leak(sends.collect()),
            recvs: Vec::leak(recvs.collect()),
            num_sends: devices.first().map_or(0, |device| device.sends.len()),
            num_recvs: devices.first().map_or(0, |device| device.answers.len()),
        }
    }

    /// Adds the callbacks to the options of an execution.
    pub(crate) fn set(&mut self, options: &mut PJRT_ExecuteOptions) {
        options.num_send_ops = self.num_sends;
        options.num_recv_ops = self.num_recvs;
        if self.num_sends > 0 {
            options.send_callbacks = self.sends.as_mut_ptr();
        }
        if self.num_recvs > 0 {
            options.recv_callbacks = self.recvs.as_mut_ptr();
        }
    }
}

/// A stream, which the host owns.
struct Stream {
    plugin: Plugin,
    raw: *mut PJRT_CopyToDeviceStream,
}

// SAFETY: the interface allows the use and destruction of its objects on every thread.
unsafe impl Send for Stream {}

impl Drop for Stream {
    fn drop(&mut self) {
        drop(call!(self.plugin, PJRT_CopyToDeviceStream_Destroy_Args { stream: self.raw }));
    }
}

impl Stream {
    fn current(&self) -> Result<i64> {
        let args = call!(self.plugin, PJRT_CopyToDeviceStream_CurrentBytes_Args { stream: self.raw })?;
        Ok(args.current_bytes)
    }

    fn fill(&self, answer: &Answer, answered: &mut Answered) -> Result<()> {
        let stream = self.raw;
        answered.total = call!(self.plugin, PJRT_CopyToDeviceStream_TotalBytes_Args { stream })?.total_bytes;
        answered.granule =
            call!(self.plugin, PJRT_CopyToDeviceStream_GranuleSize_Args { stream })?.granule_size_in_bytes;
        answered.current.push(self.current()?);
        for bytes in &answer.chunks {
            let frees = Arc::new(AtomicUsize::new(0));
            let added = self.add(bytes, &frees);
            answered.frees.push(frees.load(Ordering::SeqCst));
            added?;
            answered.current.push(self.current()?);
        }
        Ok(())
    }

    /// Adds a chunk, and waits for its event.
    fn add(&self, bytes: &[u8], frees: &Arc<AtomicUsize>) -> Result<()> {
        let data: &'static mut [u8] = Vec::leak(bytes.to_vec());
        let argument = Box::into_raw(Box::new((Arc::clone(frees), data.len())));
        let mut chunk = PJRT_Chunk {
            data: data.as_mut_ptr().cast(),
            size: data.len(),
            deleter: Some(freed),
            deleter_arg: argument.cast(),
        };
        let args = call!(
            self.plugin,
            PJRT_CopyToDeviceStream_AddChunk_Args { stream: self.raw, chunk: &raw mut chunk }
        )?;
        Event::from_raw(self.plugin, args.transfer_complete, "PJRT_CopyToDeviceStream_AddChunk")?.wait()
    }
}

/// The deleter of the host's chunks, which overwrites them. A second call is counted, and does not crash.
///
/// # Safety
///
/// The plugin passes the data and the argument of a chunk.
unsafe extern "C" fn freed(data: *mut c_void, argument: *mut c_void) {
    // SAFETY: guaranteed by the caller; neither is freed.
    unsafe {
        let (frees, size) = &*argument.cast::<(Arc<AtomicUsize>, usize)>();
        data.cast::<u8>().write_bytes(super::host_memory::OVERWRITTEN, *size);
        frees.fetch_add(1, Ordering::SeqCst);
    }
}

/// The callback for data that a program sends.
///
/// # Safety
///
/// The plugin passes a chunk, which the host owns, its function that creates errors, and the argument of the callback.
unsafe extern "C" fn sent(
    chunk: *mut PJRT_Chunk,
    create_error: *mut PJRT_CallbackError,
    total: usize,
    done: bool,
    argument: *mut c_void,
) -> *mut PJRT_Error {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let callback = &*argument.cast::<Callback>();
        let chunk = chunk.read();
        let bytes = super::slices::bytes(chunk.data, chunk.size).to_vec();
        if let Some(delete) = chunk.deleter {
            delete(chunk.data, chunk.deleter_arg);
        }
        let channels = callback.channels;
        channels.record().sent.push(Sent { channel: callback.channel, bytes, total, done });
        match (&channels.refusal, create_error.read()) {
            (Some((code, message)), Some(create)) => {
                create(PJRT_Error_Code(code.0), message.as_ptr().cast(), message.len())
            }
            _ => ptr::null_mut(),
        }
    }
}

/// The callback for a program that receives data.
///
/// # Safety
///
/// The plugin passes a stream, which the host owns, and the argument of the callback.
unsafe extern "C" fn asked(stream: *mut PJRT_CopyToDeviceStream, argument: *mut c_void) {
    // SAFETY: guaranteed by the caller.
    let callback = unsafe { &*argument.cast::<Callback>() };
    let channels = callback.channels;
    let stream = Stream { plugin: channels.plugin, raw: stream };
    let Some(answer) = channels.answers.iter().find(|answer| answer.channel == callback.channel) else {
        return;
    };
    match answer.after {
        None => channels.answer(stream, answer),
        Some(time) => drop(std::thread::spawn(move || {
            std::thread::sleep(time);
            channels.answer(stream, answer);
        })),
    }
}
