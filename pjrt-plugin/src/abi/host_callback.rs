//! Calls of the host's send and receive callbacks, and the streams that receive callbacks fill.
//!
//! `PJRT_CopyToDeviceStream_Destroy`, `PJRT_CopyToDeviceStream_AddChunk`,
//! `PJRT_CopyToDeviceStream_TotalBytes`, `PJRT_CopyToDeviceStream_GranuleSize`,
//! `PJRT_CopyToDeviceStream_CurrentBytes`.

use std::ffi::c_void;
use std::sync::{Arc, Mutex};

use pjrt_sys::{
    PJRT_Chunk, PJRT_CopyToDeviceStream, PJRT_CopyToDeviceStream_AddChunk_Args,
    PJRT_CopyToDeviceStream_CurrentBytes_Args, PJRT_CopyToDeviceStream_Destroy_Args,
    PJRT_CopyToDeviceStream_GranuleSize_Args, PJRT_CopyToDeviceStream_TotalBytes_Args, PJRT_Error,
    PJRT_RecvCallbackInfo, PJRT_SendCallbackInfo,
};

use crate::abi::args::{View, borrowed_slice, handle, input, null, output};
use crate::abi::error::{callback_error, error_from_raw};
use crate::abi::event::event_to_raw;
use crate::abi::handle::{self, Handle};
use crate::client::PjrtClient;
use crate::core::event::{Event, EventSource};
use crate::core::host_memory::HostPointer;
use crate::core::sync::lock;
use crate::error::{Error, Result};
use crate::host_callback::{CallHost, HostCallbacks, Stream};

type SendFunction = unsafe extern "C" fn(
    *mut PJRT_Chunk,
    *mut pjrt_sys::PJRT_CallbackError,
    usize,
    bool,
    *mut c_void,
) -> *mut PJRT_Error;
type RecvFunction = unsafe extern "C" fn(*mut PJRT_CopyToDeviceStream, *mut c_void);

/// A function of the host, and its arguments.
struct Callback<F> {
    channel_id: i64,
    function: F,
    user_arg: HostPointer,
}

/// The callbacks of one device.
struct DeviceCallbacks {
    sends: Vec<Callback<SendFunction>>,
    recvs: Vec<Callback<RecvFunction>>,
}

/// The callbacks of an execution. The host keeps them until the execution ends, so the gate admits calls only until then.
struct Callbacks {
    devices: Vec<DeviceCallbacks>,
    gate: Gate,
}

/// Counts the running calls, and rejects new calls once it is closed.
#[derive(Default)]
struct Gate(Mutex<Calls>);

#[derive(Default)]
struct Calls {
    under_way: usize,
    closed: bool,
    /// The event that the last running call completes after the gate has closed.
    over: Option<EventSource>,
}

/// A running call.
struct Call<'a>(&'a Gate);

impl Gate {
    fn enter(&self) -> Result<Call<'_>> {
        let mut calls = lock(&self.0);
        if calls.closed {
            drop(calls);
            return Err(Error::failed_precondition(
                "a host callback was called after its execution had ended; complete an execution after the last call of its callbacks",
            ));
        }
        calls.under_way += 1;
        Ok(Call(self))
    }

    /// Rejects all further calls. The event completes when no call is running.
    fn close(&self) -> Event {
        let mut calls = lock(&self.0);
        calls.closed = true;
        if calls.under_way == 0 {
            return Event::ready();
        }
        let (source, over) = Event::pending();
        calls.over = Some(source);
        over
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let mut calls = lock(&self.0.0);
        calls.under_way -= 1;
        let over = if calls.under_way == 0 { calls.over.take() } else { None };
        drop(calls);
        if let Some(over) = over {
            over.complete(Ok(()));
        }
    }
}

impl Callbacks {
    fn find<'a, F>(
        &'a self,
        device: usize,
        channel_id: i64,
        what: &str,
        list: impl Fn(&'a DeviceCallbacks) -> &'a [Callback<F>],
    ) -> Result<&'a Callback<F>> {
        let found = self.devices.get(device).map(list).unwrap_or_default();
        found.iter().find(|callback| callback.channel_id == channel_id).ok_or_else(|| {
            let known: Vec<i64> = found.iter().map(|callback| callback.channel_id).collect();
            Error::not_found(format!(
                "the host passed no {what} callback for channel {channel_id} of device {device} of the launch; it passed {what} \
                 callbacks for the channels {known:?}"
            ))
        })
    }
}

impl CallHost for Callbacks {
    fn close(&self) -> Event {
        self.gate.close()
    }

    fn send(
        &self,
        device: usize,
        channel_id: i64,
        data: Vec<u8>,
        total_bytes: usize,
        last: bool,
    ) -> Result<()> {
        let callback = self.find(device, channel_id, "send", |device| &device.sends)?;
        let _call = self.gate.enter()?;
        let mut data = Box::new(data);
        let mut chunk = PJRT_Chunk {
            data: data.as_mut_ptr().cast(),
            size: data.len(),
            deleter: Some(free_chunk),
            deleter_arg: Box::into_raw(data).cast(),
        };
        let mut make_error = Some(callback_error as _);
        let (user_arg, make_error) = (callback.user_arg.get(), &raw mut make_error);
        // SAFETY: the gate is open, so the host still keeps the callback, which it allows to be called from any thread with
        // its argument. The chunk is fully initialized, and the returned error came from `callback_error`.
        unsafe {
            error_from_raw((callback.function)(&raw mut chunk, make_error, total_bytes, last, user_arg))
        }
    }

    fn receive(&self, device: usize, channel_id: i64, stream: Arc<Stream>) -> Result<()> {
        let callback = self.find(device, channel_id, "receive", |device| &device.recvs)?;
        let _call = self.gate.enter()?;
        let stream = handle::into_raw(StreamHandle(stream));
        // SAFETY: the gate is open, so the host still keeps the callback, which it allows to be called from any thread with
        // its argument. The call passes ownership of the stream.
        unsafe { (callback.function)(stream, callback.user_arg.get()) };
        Ok(())
    }
}

/// The deleter of the chunks that [`Callbacks::send`] makes.
///
/// # Safety
///
/// The host calls it once, with the chunk's argument.
unsafe extern "C" fn free_chunk(_data: *mut c_void, deleter_arg: *mut c_void) {
    // SAFETY: the argument is the box of the chunk's bytes, and the host calls the deleter once.
    drop(unsafe { Box::from_raw(deleter_arg.cast::<Vec<u8>>()) });
}

/// Reads the callbacks of a launch from the lists of `PJRT_ExecuteOptions`.
///
/// # Safety
///
/// Each list is null, or has one pointer for each of `num_devices` devices to an array of callbacks of the given length. All
/// of it is readable during the call. The callbacks may be called from any thread until the launch ends.
pub(crate) unsafe fn read_callbacks(
    sends: (*mut *mut PJRT_SendCallbackInfo, usize),
    recvs: (*mut *mut PJRT_RecvCallbackInfo, usize),
    num_devices: usize,
) -> Result<HostCallbacks> {
    // SAFETY: this function's contract.
    let sends = unsafe { per_device(sends, num_devices, "send_callbacks") }?;
    // SAFETY: this function's contract.
    let recvs = unsafe { per_device(recvs, num_devices, "recv_callbacks") }?;
    let device = |(sends, recvs): (&[PJRT_SendCallbackInfo], &[PJRT_RecvCallbackInfo])| {
        let send =
            |info: &PJRT_SendCallbackInfo| callback(info.channel_id, info.send_callback, info.user_arg);
        let recv =
            |info: &PJRT_RecvCallbackInfo| callback(info.channel_id, info.recv_callback, info.user_arg);
        Ok(DeviceCallbacks {
            sends: sends.iter().map(send).collect::<Result<_>>()?,
            recvs: recvs.iter().map(recv).collect::<Result<_>>()?,
        })
    };
    let devices = sends.into_iter().zip(recvs).map(device).collect::<Result<_>>()?;
    Ok(HostCallbacks(Some(Arc::new(Callbacks { devices, gate: Gate::default() }))))
}

fn callback<F>(channel_id: i64, function: Option<F>, user_arg: *mut c_void) -> Result<Callback<F>> {
    let function = function.ok_or_else(|| null(&format!("callback of channel {channel_id}")))?;
    Ok(Callback { channel_id, function, user_arg: HostPointer(user_arg) })
}

/// # Safety
///
/// The same as for [`read_callbacks`].
unsafe fn per_device<'a, T>(
    (lists, len): (*mut *mut T, usize),
    num_devices: usize,
    name: &str,
) -> Result<Vec<&'a [T]>> {
    if len == 0 {
        return Ok(vec![&[]; num_devices]);
    }
    // SAFETY: this function's contract.
    let lists = unsafe { borrowed_slice::<*mut T>(lists, num_devices, name) }?;
    // SAFETY: this function's contract.
    lists.iter().map(|list| unsafe { borrowed_slice(*list, len, name) }).collect()
}

/// Closes the gate of a launch at its end: when its event completes, or on drop if the call fails before there is an event.
pub(crate) struct Lease {
    callbacks: HostCallbacks,
    source: Option<EventSource>,
    over: Event,
}

impl Lease {
    /// Returns `None` if the host passed no callbacks.
    #[cold]
    pub(crate) fn new(callbacks: &HostCallbacks) -> Option<Self> {
        (!callbacks.is_empty()).then(|| {
            let (source, over) = Event::pending();
            Self { callbacks: callbacks.clone(), source: Some(source), over }
        })
    }

    /// Returns the event of the end of the launch.
    pub(crate) fn over(&self) -> &Event {
        &self.over
    }

    /// Returns the event of the end of the launch, given the event of its outputs.
    #[cold]
    pub(crate) fn end_with(mut self, ready: Event) -> Event {
        if let (Some(callbacks), Some(source)) = (self.callbacks.0.take(), self.source.take()) {
            ready.on_ready(move |outcome| callbacks.close().on_ready(move |_| source.complete(outcome)));
        }
        self.over.clone()
    }
}

impl Drop for Lease {
    #[cold]
    fn drop(&mut self) {
        if let Some(callbacks) = &self.callbacks.0 {
            // The host frees its callbacks when the call fails, so the calls that are running must end first.
            let _ = callbacks.close().wait();
        }
    }
}

/// The object behind a `PJRT_CopyToDeviceStream`: the host's end of a stream.
pub(crate) struct StreamHandle(Arc<Stream>);

impl Handle for StreamHandle {
    type Opaque = PJRT_CopyToDeviceStream;
    const KIND: &'static str = "PJRT_CopyToDeviceStream";
}

impl Drop for StreamHandle {
    fn drop(&mut self) {
        self.0.host_is_gone();
    }
}

/// A chunk of the host, which is freed exactly once, on drop.
struct HostChunk(PJRT_Chunk);

impl HostChunk {
    fn bytes(&self) -> Result<&[u8]> {
        // SAFETY: by the contract of `AddChunk`, data and size describe bytes of the host that live until the deleter is
        // called.
        unsafe { borrowed_slice(self.0.data.cast::<u8>(), self.0.size, "the chunk's data") }
    }
}

impl Drop for HostChunk {
    fn drop(&mut self) {
        if let Some(deleter) = self.0.deleter {
            // SAFETY: the host passed ownership of the chunk, whose deleter may be called once from any thread with its
            // argument.
            unsafe { deleter(self.0.data, self.0.deleter_arg) };
        }
    }
}

/// Converts a size of a stream to the `int64_t` of the C API.
fn size(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// `PJRT_CopyToDeviceStream_Destroy`: closes the host's end of a stream. If chunks are missing, the program's end fails.
pub(crate) fn copy_to_device_stream_destroy<C: PjrtClient>(
    args: View<'_, PJRT_CopyToDeviceStream_Destroy_Args>,
) -> Result<()> {
    // SAFETY: the host passes ownership of the stream.
    drop(unsafe { handle::from_raw::<StreamHandle>(input!(args.stream), "stream") }?);
    Ok(())
}

/// `PJRT_CopyToDeviceStream_AddChunk`: copies a chunk to the stream and frees it. An invalid chunk is an error of the event.
pub(crate) fn copy_to_device_stream_add_chunk<C: PjrtClient>(
    args: View<'_, PJRT_CopyToDeviceStream_AddChunk_Args>,
) -> Result<()> {
    let pointer = input!(args.chunk);
    if pointer.is_null() {
        return Err(null("chunk"));
    }
    // SAFETY: the field points to a chunk whose ownership the host passes, even if the call fails.
    let chunk = HostChunk(unsafe { pointer.read() });
    let stream = handle!(args.stream: StreamHandle)?;
    let added = chunk.bytes().and_then(|bytes| stream.0.add_chunk(bytes));
    drop(chunk);
    output!(args.transfer_complete = event_to_raw(added.map_or_else(Event::failed, |()| Event::ready())));
    Ok(())
}

/// `PJRT_CopyToDeviceStream_TotalBytes`: returns the number of bytes that the program waits for.
pub(crate) fn copy_to_device_stream_total_bytes<C: PjrtClient>(
    args: View<'_, PJRT_CopyToDeviceStream_TotalBytes_Args>,
) -> Result<()> {
    output!(args.total_bytes = size(handle!(args.stream: StreamHandle)?.0.total_bytes));
    Ok(())
}

/// `PJRT_CopyToDeviceStream_GranuleSize`: returns the number of bytes of which every chunk's size is a multiple.
pub(crate) fn copy_to_device_stream_granule_size<C: PjrtClient>(
    args: View<'_, PJRT_CopyToDeviceStream_GranuleSize_Args>,
) -> Result<()> {
    output!(args.granule_size_in_bytes = size(handle!(args.stream: StreamHandle)?.0.granule_bytes));
    Ok(())
}

/// `PJRT_CopyToDeviceStream_CurrentBytes`: returns the number of bytes received so far.
pub(crate) fn copy_to_device_stream_current_bytes<C: PjrtClient>(
    args: View<'_, PJRT_CopyToDeviceStream_CurrentBytes_Args>,
) -> Result<()> {
    output!(args.current_bytes = size(handle!(args.stream: StreamHandle)?.0.current_bytes()));
    Ok(())
}
