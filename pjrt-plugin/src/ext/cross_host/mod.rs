//! The CrossHostTransfers extension, which sends buffers from one client to another.

mod mailbox;
mod store;

use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mailbox::{Key, Message};
use pjrt_sys::{
    PJRT_Buffer, PJRT_Buffer_Type, PJRT_CrossHostTransfers_Extension, PJRT_Error_Code, PJRT_Extension_Base,
    PJRT_Extension_Type_CrossHostTransfers, PJRT_Transfers_CrossHostOnCanceledCallback,
    PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice_Args,
    PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args,
    PJRT_Transfers_PJRT_Client_CrossHostSendBuffers_Args,
    PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers_Args, SizedStruct,
};

use crate::abi::args::{View, borrowed_slice, element_type, handle, input, null, output, slice};
use crate::abi::buffer::BufferHandle;
use crate::abi::client_state::ClientState;
use crate::abi::download::read_back;
use crate::abi::error::{host_error, outcome_to_raw};
use crate::abi::event::{event_to_raw, take_event};
use crate::abi::guard::shim;
use crate::abi::handle::{self, borrow};
use crate::abi::upload::buffer_to_raw;
use crate::client::Location;
use crate::client::PjrtClient;
use crate::core::event::Event;
use crate::core::host_memory::HostPointer;
use crate::core::panic_guard;
use crate::core::storage::{BufferState, Held, StoragePromise};
use crate::device::DeviceId;
use crate::distributed::Processes;
use crate::error::{Error, Result};
use crate::host_buffer::{CopyToHost, HostBuffer};
use crate::shape::Shape;

/// Sends buffers from one client to another (`PJRT_CrossHostTransfers_Extension`), through host memory. See the
/// [example](crate::ext#example).
///
/// Between clients of one process, the SDK does it: `impl CrossHostTransfers for MyClient {}`. A buffer that is not received
/// occupies memory until the process ends. Hosts assume that a plugin with this extension supports copies between all processes,
/// so a client with [`MULTI_PROCESS`](PjrtClient::MULTI_PROCESS) implements the methods: either the second and the third one with its
/// transport, or only the first one. The older functions of the extension, with descriptors, work only within a process.
pub trait CrossHostTransfers: PjrtClient {
    /// Returns the processes whose key-value store carries the arrays ([`Processes::send`]), if the client has no transport. This is
    /// for small arrays, because the store keeps them.
    fn store_of_processes(&self) -> Option<&Processes> {
        None
    }

    /// Sends an array to another process, where the client receives it with the same transfer, and calls `done`. The bytes are
    /// dense and row-major. If they are an error, the receiver must fail too. The default uses
    /// [`store_of_processes`](Self::store_of_processes), and returns UNIMPLEMENTED without it.
    fn send_to_process(&self, transfer: RemoteTransfer, bytes: Result<Vec<u8>>, done: Sent) {
        match self.store_of_processes() {
            Some(processes) => done(store::send(self, processes, transfer, bytes)),
            None => done(Err(no_transport::<Self>(transfer))),
        }
    }

    /// Receives an array of `size` bytes from another process, and passes it to `done`. The call does not wait for the array. The
    /// default uses [`store_of_processes`](Self::store_of_processes), and returns UNIMPLEMENTED without it.
    fn receive_from_process(&self, transfer: RemoteTransfer, size: usize, done: Received) {
        match self.store_of_processes() {
            Some(processes) => store::receive(self, processes, transfer, size, done),
            None => done(Err(no_transport::<Self>(transfer))),
        }
    }
}

/// The function that receives the outcome of [`CrossHostTransfers::send_to_process`].
pub type Sent = Box<dyn FnOnce(Result<()>) + Send>;

/// The function that receives the array of [`CrossHostTransfers::receive_from_process`].
pub type Received = Box<dyn FnOnce(Result<Vec<u8>>) + Send>;

/// A transfer of an array between devices of two processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct RemoteTransfer {
    /// The device that sends.
    pub from: DeviceId,
    /// The device that receives.
    pub to: DeviceId,
    /// The host's key, which is the same on both sides, and no other transfer between these devices has.
    pub key: i64,
}

fn no_transport<C: PjrtClient>(transfer: RemoteTransfer) -> Error {
    Error::unimplemented(format!(
        "the plugin '{}' cannot copy a buffer from device {} to device {} of another process",
        C::PLATFORM_NAME,
        transfer.from,
        transfer.to
    ))
}

pub(super) fn link<C: CrossHostTransfers>(next: *mut PJRT_Extension_Base) -> *mut PJRT_Extension_Base {
    super::leak(PJRT_CrossHostTransfers_Extension {
        base: PJRT_Extension_Base {
            struct_size: PJRT_CrossHostTransfers_Extension::STRUCT_SIZE,
            type_: PJRT_Extension_Type_CrossHostTransfers,
            next,
        },
        PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers: Some(shim(make_receive_buffers::<C>)),
        PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice: Some(copy_to_remote_device::<C>),
        PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers: Some(shim(receive_buffers::<C>)),
        PJRT_Transfers_PJRT_Client_CrossHostSendBuffers: Some(shim(send_buffers::<C>)),
    })
}

/// Returns the transfer of a key, if one of its devices belongs to another process.
fn remote<C: PjrtClient>(client: &ClientState<C>, key: &Key) -> Option<RemoteTransfer> {
    let Key::Numbered(_, from, to, key) = *key else { return None };
    let is_remote = |id| client.device_index(id).is_some_and(|index| !client.devices[index].addressable);
    (is_remote(from) || is_remote(to)).then_some(RemoteTransfer { from, to, key })
}

/// The beginning of the descriptors of this process.
fn own_descriptors<C: PjrtClient>() -> String {
    format!("{}/{}/", C::PLATFORM_NAME, std::process::id())
}

/// Returns an error for descriptors of other processes.
fn check_descriptor<C: PjrtClient>(key: &Key) -> Result<()> {
    match key {
        Key::Described(bytes) if !bytes.starts_with(own_descriptors::<C>().as_bytes()) => {
            Err(Error::unimplemented(format!(
                "the plugin '{}' cannot copy a buffer to the descriptor '{}', which is not one of this process",
                C::PLATFORM_NAME,
                String::from_utf8_lossy(bytes)
            )))
        }
        _ => Ok(()),
    }
}

/// Sends a buffer when its data is ready, and passes the outcome to `done`.
fn send<C: CrossHostTransfers>(
    client: &Arc<ClientState<C>>,
    held: Held<C::Buffer>,
    shape: Shape,
    key: Key,
    done: impl FnOnce(Result<()>) + Send + 'static,
) {
    if let Err(error) = check_descriptor::<C>(&key) {
        return done(Err(error));
    }
    let (element_type, dims) = (shape.element_type, shape.dims().to_vec());
    let remote = remote(client, &key).map(|transfer| (transfer, Arc::clone(client)));
    let copy = CopyToHost::collected(shape, move |bytes| {
        if let Some((transfer, client)) = remote {
            return client.client.send_to_process(transfer, bytes, Box::new(done));
        }
        // The receiving buffer gets the error of the sent one.
        let failed = bytes.as_ref().err().cloned();
        let sent = mailbox::send(key, bytes.map(|bytes| Message { element_type, dims, bytes }));
        done(failed.map_or(sent, Err));
    });
    if let Some(copy) = copy {
        read_back::<C>(held, copy);
    }
}

/// Creates a buffer that waits for a transfer.
fn receive<C: CrossHostTransfers>(
    client: &ClientState<C>,
    place: Location,
    shape: Shape,
    key: Key,
) -> Result<*mut PJRT_Buffer> {
    let (state, promise) = BufferState::promised_by_host();
    let size = shape.host_size();
    let buffer = buffer_to_raw(client, place, shape.clone(), state)?;
    let client = client.share()?;
    if let Some(transfer) = remote(&client, &key) {
        let receiver = Arc::clone(&client);
        let done: Received = Box::new(move |bytes| {
            let (element_type, dims) = (shape.element_type, shape.dims().to_vec());
            let message = bytes.map(|bytes| Message { element_type, dims, bytes });
            deliver(&receiver, place, &shape, message, promise);
        });
        client.client.receive_from_process(transfer, size, done);
        return Ok(buffer);
    }
    mailbox::receive(key, Box::new(move |message| deliver(&client, place, &shape, message, promise)));
    Ok(buffer)
}

/// Uploads an array that has been received.
fn deliver<C: PjrtClient>(
    client: &ClientState<C>,
    place: Location,
    shape: &Shape,
    message: Result<Message>,
    promise: StoragePromise<C::Buffer>,
) {
    let upload = || {
        let Message { element_type, dims, bytes } = message?;
        if (element_type, dims.as_slice()) != (shape.element_type, shape.dims()) {
            return Err(Error::invalid_argument(format!(
                "an array of shape {element_type}{dims:?} was sent to a buffer of shape {shape}"
            )));
        }
        let data = HostBuffer::from_vec(element_type, dims, bytes)?;
        client.client.buffer_from_host(data, place.placement(client, None)?)
    };
    match panic_guard::catch(upload) {
        Ok(pending) => pending.receive(move |value| promise.deliver(value)),
        Err(error) => promise.deliver(Err(error)),
    }
}

/// Reads the shapes of buffers to be received from lists with one element per buffer. The layouts are ignored.
///
/// # Safety
///
/// All lists have the same length, and each element of `dims` points to as many dimensions as the element of `ranks` says.
unsafe fn shapes(ranks: &[usize], dims: &[*const i64], types: &[PJRT_Buffer_Type]) -> Result<Vec<Shape>> {
    let shape = |((rank, dims), ty): ((&usize, &*const i64), &PJRT_Buffer_Type)| {
        // SAFETY: this function's contract.
        let dims = unsafe { borrowed_slice(*dims, *rank, "the dimensions of a buffer") }?;
        Shape::new(element_type(*ty)?, dims)
    };
    ranks.iter().zip(dims).zip(types).map(shape).collect()
}

/// Frees buffers that are not passed to the host because a later one cannot be created.
fn give_up<C: PjrtClient>(buffers: Vec<*mut PJRT_Buffer>) {
    for buffer in buffers {
        // SAFETY: `receive` created the buffer, and there is no other handle to it.
        let _ = unsafe { handle::from_raw::<BufferHandle<C>>(buffer, "buffer") };
    }
}

/// Creates a buffer for each shape, and writes the buffers to the host's array.
///
/// # Safety
///
/// `place_for` is null or valid for writes of as many buffers as there are shapes.
unsafe fn receive_all<C: CrossHostTransfers>(
    client: &ClientState<C>,
    device: *const pjrt_sys::PJRT_Device,
    shapes: Vec<Shape>,
    place_for: *mut *mut PJRT_Buffer,
    key: impl Fn(usize, i32) -> Key,
) -> Result<()> {
    if place_for.is_null() && !shapes.is_empty() {
        return Err(null("buffers"));
    }
    let place = Location::of(client, device, ptr::null())?;
    let to = client.devices[place.device].id();
    let mut made = Vec::with_capacity(shapes.len());
    for (index, shape) in shapes.into_iter().enumerate() {
        match receive(client, place, shape, key(index, to)) {
            Ok(buffer) => made.push(buffer),
            Err(error) => {
                give_up::<C>(made);
                return Err(error);
            }
        }
    }
    for (index, buffer) in made.into_iter().enumerate() {
        // SAFETY: this function's contract.
        unsafe { place_for.add(index).write(buffer) };
    }
    Ok(())
}

/// The number of the next descriptor.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Sends buffers, each with a key that the receiver also has.
fn send_buffers<C: CrossHostTransfers>(
    args: View<'_, PJRT_Transfers_PJRT_Client_CrossHostSendBuffers_Args>,
) -> Result<()> {
    let client = handle!(args.client: ClientState<C>)?;
    let buffers = slice!(args.buffers as *mut PJRT_Buffer, num_buffers)?;
    let to = slice!(args.dst_global_device_ids as i32, num_buffers)?;
    let keys = slice!(args.transfer_keys as i64, num_buffers)?;
    let place_for = input!(args.send_events);
    if place_for.is_null() && !buffers.is_empty() {
        return Err(null("send_events"));
    }
    let mut sends = Vec::with_capacity(buffers.len());
    for buffer in buffers {
        // SAFETY: each element is null or a buffer of this plugin.
        let buffer = unsafe { borrow::<BufferHandle<C>>(*buffer, "a buffer") }?;
        sends.push((buffer, buffer.state.share()?));
    }
    for (index, (buffer, held)) in sends.into_iter().enumerate() {
        let from = client.devices[buffer.device].id();
        let (source, event) = Event::pending();
        let key = Key::Numbered(C::PLATFORM_NAME, from, to[index], keys[index]);
        send::<C>(&buffer.client, held, buffer.shape.clone(), key, move |outcome| source.complete(outcome));
        // SAFETY: the host's array is valid for writes of as many events as there are buffers.
        unsafe { place_for.add(index).write(event_to_raw(event)) };
    }
    Ok(())
}

/// Creates buffers that wait for the arrays with their keys.
fn receive_buffers<C: CrossHostTransfers>(
    args: View<'_, PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args>,
) -> Result<()> {
    let client = handle!(args.client: ClientState<C>)?;
    let ranks = slice!(args.shape_num_dims as usize, num_shapes)?;
    let dims = slice!(args.num_dims as *const i64, num_shapes)?;
    let types = slice!(args.element_types as PJRT_Buffer_Type, num_shapes)?;
    let from = slice!(args.src_global_device_ids as i32, num_shapes)?;
    let keys = slice!(args.transfer_keys as i64, num_shapes)?;
    // SAFETY: the lists have an element for each shape.
    let shapes = unsafe { shapes(ranks, dims, types) }?;
    let key = |index: usize, to| Key::Numbered(C::PLATFORM_NAME, from[index], to, keys[index]);
    // SAFETY: the host's array has room for as many buffers as there are shapes.
    unsafe { receive_all(client, input!(args.device), shapes, input!(args.buffers), key) }
}

/// Creates buffers that wait for the arrays that are sent to their descriptors, which the host forwards to the sender.
fn make_receive_buffers<C: CrossHostTransfers>(
    args: View<'_, PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers_Args>,
) -> Result<()> {
    let client = handle!(args.client: ClientState<C>)?;
    let ranks = slice!(args.shape_num_dims as usize, num_shapes)?;
    let dims = slice!(args.num_dims as *const i64, num_shapes)?;
    let types = slice!(args.element_types as PJRT_Buffer_Type, num_shapes)?;
    let notifier = input!(args.notifier);
    let notify = notifier.notifier.ok_or_else(|| null("notifier"))?;
    // SAFETY: the lists have an element for each shape.
    let shapes = unsafe { shapes(ranks, dims, types) }?;
    let describe = |_: &Shape| {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        format!("{}{number}", own_descriptors::<C>()).into_bytes()
    };
    let descriptions: Vec<Vec<u8>> = shapes.iter().map(describe).collect();
    let count = shapes.len();
    let key = |index: usize, _| Key::Described(descriptions[index].clone());
    // SAFETY: the host's array has room for as many buffers as there are shapes.
    unsafe { receive_all(client, input!(args.device), shapes, input!(args.buffers), key) }?;
    output!(args.num_buffers = count);
    let mut pointers: Vec<*const c_char> =
        descriptions.iter().map(|bytes| crate::abi::args::chars(bytes)).collect();
    let mut sizes: Vec<usize> = descriptions.iter().map(Vec::len).collect();
    // SAFETY: the host allows one call of the function with these strings, which live during the call, and with a function
    // that it may call at any time.
    unsafe {
        notify(
            ptr::null_mut(),
            pointers.as_mut_ptr(),
            sizes.as_mut_ptr(),
            count,
            notifier.user_arg,
            Some(cancel),
            ptr::null_mut(),
        );
    }
    Ok(())
}

/// Cancels the transfer to a buffer with a descriptor.
///
/// # Safety
///
/// The strings are readable; `on_canceled` is null or can be called once with its argument.
unsafe extern "C" fn cancel(
    description: *const c_char,
    description_size: usize,
    reason: PJRT_Error_Code,
    message: *const c_char,
    message_size: usize,
    on_canceled: PJRT_Transfers_CrossHostOnCanceledCallback,
    on_canceled_user_arg: *mut c_void,
    _: *mut c_void,
) {
    let body = || {
        // SAFETY: this function's contract.
        let description =
            unsafe { borrowed_slice::<u8>(description.cast(), description_size, "description") }?;
        // SAFETY: this function's contract.
        let error = unsafe { host_error(reason, message, message_size) };
        if mailbox::cancel(&Key::Described(description.to_vec()), error) {
            return Ok(());
        }
        Err(Error::not_found(
            "no buffer waits for the transfer with this descriptor; it is complete, cancelled or unknown",
        ))
    };
    let outcome = panic_guard::catch(body);
    if let Some(on_canceled) = on_canceled {
        // SAFETY: this function's contract.
        unsafe { on_canceled(outcome_to_raw(outcome), on_canceled_user_arg) };
    }
}

/// Sends a buffer to one with a descriptor, when the host has received the descriptor. Errors are passed to the host's
/// callback.
///
/// # Safety
///
/// `args` is as the PJRT C API requires for `PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice_Args`.
unsafe extern "C" fn copy_to_remote_device<C: CrossHostTransfers>(
    args: *mut PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice_Args,
) {
    // SAFETY: this function's contract.
    let Ok(args) = (unsafe { View::new(args) }) else { return };
    let (on_done, user_arg) = (input!(args.on_done).on_done, HostPointer(input!(args.on_done).user_arg));
    let tell = move |outcome: Result<()>| {
        if let Some(on_done) = on_done {
            let enqueued = outcome.is_ok();
            // SAFETY: the host allows one call of the callback with its argument, on any thread.
            unsafe { on_done(outcome_to_raw(outcome), enqueued, user_arg.get()) };
        }
    };
    let start = || {
        let buffer = handle!(args.buffer: BufferHandle<C>)?;
        let (shape, held) = (buffer.shape.clone(), buffer.state.share()?);
        let client = Arc::clone(&buffer.client);
        // SAFETY: the host passes ownership of the event, which came from `PJRT_Event_Create`.
        let event = unsafe { take_event(input!(args.event)) }?.unwrap_or_else(Event::ready);
        Ok((client, shape, held, event))
    };
    let (client, shape, held, event) = match panic_guard::catch(start) {
        Ok(started) => started,
        Err(error) => return tell(Err(error)),
    };
    let description = Description {
        bytes: HostPointer(input!(args.serialized_descriptor).cast()),
        size: HostPointer(input!(args.serialized_descriptor_size).cast()),
        destructor: input!(args.descriptor_destructor),
    };
    event.on_ready(move |outcome| {
        let description = outcome.and_then(|()| {
            // SAFETY: the event has completed, so the host has written the descriptor.
            unsafe { description.read() }
        });
        match description {
            Ok(description) => send::<C>(&client, held, shape, Key::Described(description), tell),
            Err(error) => tell(Err(error)),
        }
    });
}

/// The places to which the host writes a receiver's descriptor, and the function that frees it.
struct Description {
    bytes: HostPointer,
    size: HostPointer,
    destructor: pjrt_sys::PJRT_Transfers_DescriptorDestructor,
}

impl Description {
    /// Copies the descriptor and frees it.
    ///
    /// # Safety
    ///
    /// The places are null, or the host has written a descriptor to them.
    unsafe fn read(&self) -> Result<Vec<u8>> {
        let (bytes, size) = (self.bytes.get().cast::<*mut c_char>(), self.size.get().cast::<usize>());
        if bytes.is_null() || size.is_null() {
            return Err(null("serialized_descriptor"));
        }
        // SAFETY: this function's contract.
        unsafe {
            let read = borrowed_slice::<u8>((*bytes).cast_const().cast(), *size, "serialized_descriptor")
                .map(<[u8]>::to_vec);
            if let Some(destructor) = self.destructor {
                destructor(bytes, size);
            }
            read
        }
    }
}
