//! Running programs.
//!
//! `PJRT_LoadedExecutable_Execute`, `PJRT_ExecuteContext_Create`, `PJRT_ExecuteContext_Destroy`.

use std::mem::{self, MaybeUninit};
use std::sync::{Arc, Mutex};
use std::vec;

use pjrt_sys::{
    PJRT_Buffer, PJRT_ExecuteContext, PJRT_ExecuteContext_Create_Args, PJRT_ExecuteContext_Destroy_Args,
    PJRT_ExecuteOptions, PJRT_LoadedExecutable_Execute_Args,
};

use crate::abi::args::{View, borrowed_slice, handle, input, null, output, slice};
use crate::abi::buffer::{BufferHandle, Spec};
use crate::abi::event::event_to_raw;
use crate::abi::handle::{self, Handle, borrow};
use crate::abi::host_callback::{Lease, read_callbacks};
use crate::abi::loaded::LoadedHandle;
use crate::client::PjrtClient;
use crate::core::by_device::ByDevice;
use crate::core::device_lock::device_lock;
use crate::core::event::Event;
use crate::core::launch::{Finished, Launch, Outcome, Outputs};
use crate::core::storage::{BufferState, Held, Share};
use crate::core::sync::lock;
use crate::core::vec_move::move_by_words;
use crate::device::DeviceId;
use crate::error::{Error, Result};
use crate::execution::{Execution, Input, Inputs, Job, Rare};
use crate::host_callback::HostCallbacks;
use crate::shape::Shape;
use crate::user_data::UserData;

/// What the host says about a launch.
#[derive(Default)]
struct Options<'a> {
    launch_id: i32,
    non_donatable: &'a [i64],
    rare: Option<Box<Rare>>,
}

/// # Safety
///
/// `options` is null or points to options of the host's version for so many devices, which live for `'a`.
#[inline]
unsafe fn read_options<'a>(options: *mut PJRT_ExecuteOptions, num_devices: usize) -> Result<Options<'a>> {
    if options.is_null() {
        return Ok(Options::default());
    }
    // SAFETY: this function's contract.
    let options = unsafe { View::new(options) }?;
    let sends = (input!(options.send_callbacks), input!(options.num_send_ops));
    let recvs = (input!(options.recv_callbacks), input!(options.num_recv_ops));
    let (pointer, len) =
        (input!(options.non_donatable_input_indices), input!(options.num_non_donatable_input_indices));
    let context = input!(options.context);
    let user_data = if context.is_null() {
        UserData::default()
    } else {
        // SAFETY: the field is a live context, from `PJRT_ExecuteContext_Create`.
        lock(&unsafe { borrow::<ExecuteContext>(context, "context") }?.0).clone()
    };
    let callbacks = if sends.1 == 0 && recvs.1 == 0 {
        HostCallbacks::default()
    } else {
        // SAFETY: the lists and numbers describe the callbacks of the host, by device.
        unsafe { read_callbacks(sends, recvs, num_devices) }?
    };
    let any = !callbacks.is_empty() || !user_data.is_empty();
    Ok(Options {
        rare: any.then(|| Box::new(Rare::new(callbacks, user_data))),
        launch_id: input!(options.launch_id),
        // SAFETY: pointer and length describe an array of the host.
        non_donatable: unsafe { borrowed_slice(pointer, len, "non_donatable_input_indices") }?,
    })
}

/// What hosts hang data for custom calls on. They do so through the FFI extension; without it, it stays empty.
#[derive(Default)]
pub(crate) struct ExecuteContext(Mutex<UserData>);

impl ExecuteContext {
    /// Changes the data that later executions with this context take along.
    pub(crate) fn change(&self, change: impl FnOnce(&mut UserData)) {
        change(&mut lock(&self.0));
    }
}

impl Handle for ExecuteContext {
    type Opaque = PJRT_ExecuteContext;
    const KIND: &'static str = "PJRT_ExecuteContext";
}

/// `PJRT_ExecuteContext_Create`.
pub(crate) fn execute_context_create<C: PjrtClient>(
    args: View<'_, PJRT_ExecuteContext_Create_Args>,
) -> Result<()> {
    output!(args.context = handle::into_raw(ExecuteContext::default()));
    Ok(())
}

/// `PJRT_ExecuteContext_Destroy`. Hosts destroy it as soon as the launch has returned.
pub(crate) fn execute_context_destroy<C: PjrtClient>(
    args: View<'_, PJRT_ExecuteContext_Destroy_Args>,
) -> Result<()> {
    // SAFETY: the host gives the context up, which came from `PJRT_ExecuteContext_Create`.
    drop(unsafe { handle::from_raw::<ExecuteContext>(input!(args.context), "context") }?);
    Ok(())
}

/// `PJRT_LoadedExecutable_Execute`: one launch on all devices of the executable, or on the one that is named.
pub(crate) fn loaded_executable_execute<C: PjrtClient>(
    args: View<'_, PJRT_LoadedExecutable_Execute_Args>,
) -> Result<()> {
    let loaded = handle!(args.executable: LoadedHandle<C>)?;
    let author = loaded.author()?;
    let num_devices = input!(args.num_devices);
    let named = input!(args.execute_device);
    let place;
    // Places among the client's devices, and the id of the one that is named.
    let (places, id): (&[usize], _) = if named.is_null() {
        (&loaded.devices, None)
    } else {
        place = [loaded.client.index_of_device(named)?];
        (&place, Some(named_device(loaded, place[0])?))
    };
    if places.len() != num_devices {
        return Err(Error::invalid_argument(format!(
            "Attempted to execute with {num_devices} argument lists when local device count is {} (total replica \
             count: {}, partition count: {})",
            places.len(),
            loaded.assignment.replicas(),
            loaded.assignment.partitions()
        )));
    }
    // SAFETY: the field is null or points to options for all devices of the launch, which live until the call returns.
    let options = unsafe { read_options(input!(args.options), num_devices) }?;
    let num_args = input!(args.num_args);
    if num_args != loaded.executable.parameters.shapes.len() {
        return Err(Error::invalid_argument(format!(
            "Execution supplied {num_args} buffers but compiled program expected {} buffers",
            loaded.executable.parameters.shapes.len()
        )));
    }
    let lists = if num_args == 0 {
        &[]
    } else {
        slice!(args.argument_lists as *const *mut PJRT_Buffer, num_devices)?
    };
    // Here, where no argument is held yet.
    if lists.iter().any(|list| list.is_null()) {
        return Err(null("an argument list"));
    }
    let num_outputs = loaded.executable.outputs.shapes.len();
    let output_lists: &[*mut *mut PJRT_Buffer] =
        if num_outputs == 0 { &[] } else { slice!(args.output_lists as *mut *mut PJRT_Buffer, num_devices)? };
    if output_lists.iter().any(|list| list.is_null()) {
        return Err(null("an output list"));
    }
    let lease = options.rare.as_ref().and_then(|rare| Lease::new(&rare.callbacks));
    let num_inputs = num_devices.saturating_mul(num_args);
    let (mut execution, launch) = Execution::new(num_inputs, num_devices, num_outputs);
    let devices = match (id, &*loaded.device_ids) {
        (Some(id), _) | (None, &[id]) => ByDevice::one(id),
        _ => loaded.device_ids.clone(),
    };
    execution.run_on(devices, options.launch_id, options.rare);
    let inputs = execution.inputs();
    for (device, place) in places.iter().enumerate() {
        let list: &[*mut PJRT_Buffer] = match lists.get(device) {
            None => &[],
            // SAFETY: each list of the host has `num_args` buffers.
            Some(list) => unsafe { borrowed_slice(*list, num_args, "argument_lists") }?,
        };
        // SAFETY: the buffers are null or handles of this client, and live until the call returns.
        if let Err(error) = unsafe { hold(loaded, options.non_donatable, *place, list, inputs) } {
            let mut held = inputs.take().into_held().into_iter();
            for list in lists {
                // SAFETY: the buffers that are held are the first ones of the lists, one list after the other.
                unsafe {
                    let list = borrowed_slice(*list, num_args, "argument_lists")?;
                    give_back::<C>(list, held.by_ref().take(num_args));
                }
            }
            return Err(error);
        }
    }
    match execution.input_error() {
        Some(error) => execution.fail(error),
        None => loaded.client.explain(loaded.client.client.execute(&author, execution))?,
    }
    let writer = Writer { loaded, places, lists: output_lists };
    let ready = match launch.finished() {
        Ok(finished) => writer.write(finished),
        Err(launch) => writer.write_later(launch, options.launch_id),
    };
    let over = match lease {
        None => ready,
        Some(lease) => lease.end_with(ready),
    };
    let events = input!(args.device_complete_events);
    if !events.is_null() {
        for device in 0..num_devices {
            // SAFETY: the host's array has room for `num_devices` events.
            unsafe { events.add(device).write(event_to_raw(over.clone())) };
        }
    }
    Ok(())
}

/// The id of the device of a launch on one: any one if the executable is portable, otherwise one of its own.
fn named_device<C: PjrtClient>(loaded: &LoadedHandle<C>, place: usize) -> Result<DeviceId> {
    let device = &loaded.client.devices[place];
    if !device.addressable || !(loaded.portable || loaded.devices.contains(&place)) {
        return Err(Error::invalid_argument(format!(
            "the executable cannot run on device {}, which is not one of {:?}",
            device.id(),
            loaded.device_ids
        )));
    }
    Ok(device.id())
}

/// Whether an argument is one for its parameter, on the device.
#[inline]
fn fits<C: PjrtClient>(
    loaded: &LoadedHandle<C>,
    place: usize,
    parameter: &Shape,
    buffer: &BufferHandle<C>,
) -> bool {
    let spec: &Spec<C> = buffer;
    spec.shape == *parameter && Arc::ptr_eq(&spec.client, &loaded.client) && spec.device == place
}

/// An error if an argument does not fit.
#[cold]
fn check<C: PjrtClient>(
    loaded: &LoadedHandle<C>,
    place: usize,
    index: usize,
    buffer: &BufferHandle<C>,
) -> Result<()> {
    let parameter = &loaded.executable.parameters.shapes[index];
    if fits(loaded, place, parameter, buffer) {
        return Ok(());
    }
    if buffer.shape != *parameter {
        return Err(wrong_shape(index, parameter, &buffer.shape));
    }
    Err(Error::invalid_argument(if Arc::ptr_eq(&buffer.client, &loaded.client) {
        format!(
            "Buffer passed to Execute() as argument {index} is on device {}, but the executable runs on device {}",
            buffer.client.devices[buffer.device].id(),
            buffer.client.devices[place].id()
        )
    } else {
        format!("Buffer passed to Execute() as argument {index} belongs to another client")
    }))
}

fn wrong_shape(index: usize, parameter: &Shape, argument: &Shape) -> Error {
    let (expected, given) = (parameter.host_size(), argument.host_size());
    Error::invalid_argument(if expected == given {
        format!(
            "Executable expected parameter {index} of type {parameter} but got buffer with incompatible type {argument}"
        )
    } else {
        format!(
            "Executable expected parameter {index} of size {expected} but got buffer with incompatible size {given}: \
             {argument} is not {parameter}"
        )
    })
}

/// Takes a share of every argument of one device; the own share of those that are donated. If one does not fit or cannot
/// be had, those before it are held.
///
/// # Safety
///
/// Each of `list` is null or a buffer of this client, and lives until the call returns. There is one per parameter.
unsafe fn hold<C: PjrtClient>(
    loaded: &LoadedHandle<C>,
    non_donatable: &[i64],
    place: usize,
    list: &[*mut PJRT_Buffer],
    inputs: &mut Inputs<C::Buffer>,
) -> Result<()> {
    let any_donated = loaded.executable.any_donated;
    let donated = |index: usize| {
        any_donated && loaded.executable.donated[index] && !non_donatable.contains(&(index as i64))
    };
    if any_donated {
        refuse_double_use(list, donated)?;
    }
    let mut index = 0;
    while index < list.len() {
        if !loaded.executable.donated[index]
            && let Some(ready) = inputs.ready()
        {
            // SAFETY: this function's contract.
            let shared = unsafe { share_first(loaded, place, index, list, ready) };
            if shared > 0 {
                index += shared;
                continue;
            }
        }
        // SAFETY: this function's contract.
        let buffer = unsafe { borrow::<BufferHandle<C>>(list[index], "an argument") }?;
        check(loaded, place, index, buffer)?;
        let pushed = inputs.push(&buffer.state, donated(index));
        pushed.map_err(|error| error.context(format!("argument {index} of the execution")))?;
        index += 1;
    }
    Ok(())
}

/// For how many arguments the lock of the device is held, so that no other thread waits for microseconds.
const MOST_AT_ONCE: usize = 64;

/// Takes shares of arguments from `start` on, up to one that is not simply there and fits: that is not ready, donated, or wrong.
/// Says how many.
///
/// # Safety
///
/// As for [`hold`].
#[inline(never)]
unsafe fn share_first<C: PjrtClient>(
    loaded: &LoadedHandle<C>,
    place: usize,
    start: usize,
    list: &[*mut PJRT_Buffer],
    inputs: &mut Vec<Input<C::Buffer>>,
) -> usize {
    let end = list.len().min(start + MOST_AT_ONCE);
    let list = &list[start..end];
    let parameters = &loaded.executable.parameters.shapes[start..end];
    let donated = &loaded.executable.donated[start..end];
    let places = &mut inputs.spare_capacity_mut()[..list.len()];
    // In debug builds, `borrow` takes the registry's lock under this one, which is never the other way round.
    let mut guard = device_lock(place).lock();
    let mut shared = 0;
    while shared < list.len() {
        // SAFETY: this function's contract.
        let Ok(buffer) = (unsafe { borrow::<BufferHandle<C>>(list[shared], "an argument") }) else { break };
        if donated[shared] || !fits(loaded, place, &parameters[shared], buffer) {
            break;
        }
        let Some(storage) = buffer.state.share_if_ready(&mut guard) else { break };
        places[shared].write(Input::shared(storage));
        shared += 1;
    }
    // SAFETY: there was room for so many inputs behind the others, and they have been written.
    unsafe { inputs.set_len(inputs.len() + shared) };
    shared
}

/// A buffer that is donated cannot be an argument twice.
fn refuse_double_use(list: &[*mut PJRT_Buffer], donated: impl Fn(usize) -> bool) -> Result<()> {
    let mut all: Vec<(*mut PJRT_Buffer, usize)> = list.iter().copied().zip(0..).collect();
    all.sort_unstable();
    for pair in all.windows(2) {
        let ((first, a), (second, b)) = (pair[0], pair[1]);
        if first == second && (donated(a) || donated(b)) {
            return Err(Error::invalid_argument(if donated(a) && donated(b) {
                format!("Attempt to donate the same buffer twice in Execute() (arguments {a} and {b})")
            } else {
                format!(
                    "Attempt to donate a buffer which is also used by the same call to Execute() (arguments {a} and {b})"
                )
            }));
        }
    }
    Ok(())
}

/// Undoes the donations of an execution that does not take place.
///
/// # Safety
///
/// As many of `list` as are held are live buffers of this client.
unsafe fn give_back<C: PjrtClient>(list: &[*mut PJRT_Buffer], held: impl Iterator<Item = Held<C::Buffer>>) {
    for (pointer, held) in list.iter().zip(held).filter(|(_, held)| held.donated) {
        // SAFETY: this function's contract.
        if let Ok(buffer) = unsafe { borrow::<BufferHandle<C>>(*pointer, "an argument") } {
            buffer.state.restore(held.share);
        }
    }
}

/// Makes the host's buffers.
struct Writer<'a, C: PjrtClient> {
    loaded: &'a LoadedHandle<C>,
    places: &'a [usize],
    lists: &'a [*mut *mut PJRT_Buffer],
}

impl<C: PjrtClient> Writer<'_, C> {
    /// Writes a buffer for every output, and gives the event that all of them wait for.
    #[inline(always)]
    fn write(&self, Finished { outputs, ready }: Finished<C::Buffer>) -> Event {
        let outputs = match outputs {
            Ok(outputs) => outputs,
            Err(error) => return self.fail(error),
        };
        match outputs.into_one() {
            Ok(outputs) => self.write_device(0, move_by_words(outputs), &ready),
            Err(outputs) => self.write_devices(outputs, &ready),
        }
        ready
    }

    #[cold]
    fn write_devices(&self, outputs: Outputs<C::Buffer>, ready: &Event) {
        for (device, outputs) in outputs.into_iter().enumerate() {
            self.write_device(device, outputs, ready);
        }
    }

    #[inline(always)]
    fn write_device(&self, device: usize, outputs: Vec<C::Buffer>, ready: &Event) {
        let (Some(place), Some(list)) = (self.places.get(device), self.lists.get(device)) else { return };
        let mut outputs = outputs.into_iter();
        for (index, spec) in self.loaded.outputs_on(*place).iter().enumerate() {
            let Some(storage) = next_shared(&mut outputs) else { return };
            // SAFETY: the list is the host's for this device, and the index that of an output.
            unsafe { put(*list, index, *place, spec, || BufferState::allocated(storage, ready.clone())) };
        }
    }

    #[cold]
    fn fail(&self, error: Error) -> Event {
        let error = self.loaded.client.explain::<()>(Err(error.clone())).err().unwrap_or(error);
        let failed = Event::failed(error.clone());
        self.each(|| BufferState::new(Share::Failed(error.clone()), failed.clone(), failed.clone()));
        failed
    }

    /// As [`write`](Self::write), for an execution that goes on.
    #[cold]
    fn write_later(&self, launch: Launch<Job<C::Buffer>, C::Buffer>, launch_id: i32) -> Event {
        let num_slots = self.places.len() * self.loaded.executable.outputs.shapes.len();
        match launch.attach(num_slots) {
            Outcome::Finished(finished) => self.write(finished),
            Outcome::Pending { slots, allocated, ready, unfilled } => {
                self.loaded.client.unfinished.add(launch_id, self.places, &unfilled);
                let mut slots = slots.into_iter();
                self.each(|| {
                    // There is a slot for every output; without one the buffer could only be in error.
                    let share = slots.next().map_or_else(
                        || Share::Failed(Error::internal("an output has no place")),
                        Share::Promised,
                    );
                    BufferState::new(share, allocated.clone(), ready.clone())
                });
                ready
            }
        }
    }

    fn each(&self, mut state: impl FnMut() -> BufferState<C::Buffer>) {
        for (place, list) in self.places.iter().zip(self.lists) {
            for (index, spec) in self.loaded.outputs_on(*place).iter().enumerate() {
                // SAFETY: the list is the host's for this device, and the index that of an output.
                unsafe { put(*list, index, *place, spec, &mut state) };
            }
        }
    }
}

/// The next value, to be shared, which is moved once: from its place in the vector to that where it will be.
#[inline(always)]
fn next_shared<T>(values: &mut vec::IntoIter<T>) -> Option<Arc<T>> {
    let value: *const T = values.as_slice().first()?;
    let place = Arc::into_raw(Arc::new(MaybeUninit::<T>::uninit())).cast::<T>().cast_mut();
    // SAFETY: the place is new, has room for a value, and nobody else knows it. The value is the iterator's next one, which is taken
    // from it without a drop, so there is one owner of it again.
    unsafe {
        place.copy_from_nonoverlapping(value, 1);
        mem::forget(values.next());
        Some(Arc::from_raw(place))
    }
}

/// Makes the host's buffer of an output.
///
/// # Safety
///
/// `list` has room for as many buffers as the program has outputs, of which `index` is one.
#[inline(always)]
unsafe fn put<C: PjrtClient>(
    list: *mut *mut PJRT_Buffer,
    index: usize,
    place: usize,
    spec: &Arc<Spec<C>>,
    state: impl FnOnce() -> BufferState<C::Buffer>,
) {
    let buffer = handle::make_raw(|| BufferHandle::of_output(Arc::clone(spec), place, state()));
    // SAFETY: this function's contract.
    unsafe { list.add(index).write(buffer) };
}
