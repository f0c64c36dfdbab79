//! Executions of programs.
//!
//! `PJRT_LoadedExecutable_Execute`, `PJRT_ExecuteContext_Create`, `PJRT_ExecuteContext_Destroy`.

use std::mem::{self, MaybeUninit};
use std::sync::{Arc, Mutex};
use std::vec;

use pjrt_sys::{
    PJRT_Buffer, PJRT_Device, PJRT_Event, PJRT_ExecuteContext, PJRT_ExecuteContext_Create_Args,
    PJRT_ExecuteContext_Destroy_Args, PJRT_ExecuteOptions, PJRT_LoadedExecutable_Execute_Args,
};

use crate::abi::args::{View, borrowed_slice, handle, input, null, output, slice};
use crate::abi::buffer::{BufferHandle, Spec};
use crate::abi::download::bitcast;
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
use crate::execution::{Execution, Inputs, Job, Rare};
use crate::host_callback::HostCallbacks;
use crate::input::Input;
use crate::shape::Shape;
use crate::user_data::UserData;

/// The host's options of a launch.
#[derive(Default)]
struct Options<'a> {
    launch_id: i32,
    non_donatable: &'a [i64],
    rare: Option<Box<Rare>>,
}

/// # Safety
///
/// `options` is null or points to options of the host's version for `num_devices` devices, which live for `'a`.
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

/// The object behind a `PJRT_ExecuteContext`: the data that hosts pass to custom calls through the FFI extension.
#[derive(Default)]
pub(crate) struct ExecuteContext(Mutex<UserData>);

impl ExecuteContext {
    /// Changes the data that later executions with this context receive.
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

/// `PJRT_ExecuteContext_Destroy`. Hosts call it as soon as the launch has returned.
pub(crate) fn execute_context_destroy<C: PjrtClient>(
    args: View<'_, PJRT_ExecuteContext_Destroy_Args>,
) -> Result<()> {
    // SAFETY: the host passes ownership of the context, which came from `PJRT_ExecuteContext_Create`.
    drop(unsafe { handle::from_raw::<ExecuteContext>(input!(args.context), "context") }?);
    Ok(())
}

/// `PJRT_LoadedExecutable_Execute`: launches the program on all addressable devices of the executable, or on
/// `execute_device`. If the program has other devices, of this process or of others, the client receives the launch even if an
/// argument is in error, because launches on those devices may wait for it.
pub(crate) fn loaded_executable_execute<C: PjrtClient>(
    args: View<'_, PJRT_LoadedExecutable_Execute_Args>,
) -> Result<()> {
    let loaded = handle!(args.executable: LoadedHandle<C>)?;
    let author = loaded.author()?;
    let num_devices = input!(args.num_devices);
    let mut place = [0];
    let (places, id) = launch_devices(loaded, input!(args.execute_device), num_devices, &mut place)?;
    if places.is_empty() {
        // All devices of the program belong to other processes.
        return Ok(());
    }
    // SAFETY: the field is null or points to options for all devices of the launch, which live until the call returns.
    let options = unsafe { read_options(input!(args.options), num_devices) }?;
    let num_args = input!(args.num_args);
    check_number(num_args, loaded.executable.parameters.shapes.len())?;
    let num_outputs = loaded.executable.outputs.shapes.len();
    let (lists, output_lists) = read_lists(&args, num_args, num_outputs)?;
    let lease = options.rare.as_ref().and_then(|rare| Lease::new(&rare.callbacks));
    if let Some(limit) = C::MAX_LAUNCHES_IN_FLIGHT {
        loaded.client.in_flight.admit(places, limit);
    }
    let joint = id.and_then(|_| loaded.joint_launch()).map(|joint| (joint, Event::pending()));
    if joint.is_some() && lease.is_some() {
        return Err(joint_with_callbacks(loaded.executable.name()));
    }
    let (mut execution, launch) =
        Execution::new(num_devices.saturating_mul(num_args), num_devices, num_outputs);
    execution.run_on(devices_of(loaded, id), options.launch_id, options.rare);
    // SAFETY: there is a list for each device if the program has parameters, and each has a buffer for each parameter; the
    // buffers are null or handles of this client, and live until the call returns.
    unsafe { hold_all(loaded, options.non_donatable, places, lists, execution.inputs()) }?;
    if C::MAX_LAUNCHES_IN_FLIGHT.is_some() {
        let launched = joint.iter().map(|(_, (_, launched))| launched);
        let actions = launched.chain(lease.iter().map(Lease::over)).chain(execution.inputs().host_events());
        loaded.client.in_flight.wait_for_host(actions);
    }
    let run = |execution| loaded.client.explain(loaded.client.client.execute(&author, execution));
    match (joint, execution.input_error()) {
        (Some((joint, (launched, _))), _) => joint.add(execution, launched, run)?,
        (None, Some(error)) if places.len() == loaded.assignment.devices().len() => execution.fail(error),
        (None, _) => run(execution)?,
    }
    let writer = Writer { loaded, places, lists: output_lists };
    let (mut ready, is_submitted) = match launch.finished() {
        Ok(finished) => (writer.write(finished), true),
        Err(launch) => (writer.write_later(launch, options.launch_id), false),
    };
    if let Some(lease) = lease {
        ready = lease.end_with(ready);
    }
    if !ready.is_ready() {
        loaded.client.in_flight.add(places, is_submitted, &ready);
    }
    // SAFETY: the field is null or an array of the host with an element for each device.
    unsafe { write_events(input!(args.device_complete_events), num_devices, &ready) };
    Ok(())
}

/// Returns the devices of a launch on all devices, or on the one with this id.
#[inline(always)]
fn devices_of<C: PjrtClient>(loaded: &LoadedHandle<C>, id: Option<DeviceId>) -> ByDevice<DeviceId> {
    match (id, &*loaded.device_ids) {
        (Some(id), _) | (None, &[id]) => ByDevice::one(id),
        _ => loaded.device_ids.clone(),
    }
}

/// The host's lists of arguments and of outputs, by device.
type Lists<'a> = (&'a [*const *mut PJRT_Buffer], &'a [*mut *mut PJRT_Buffer]);

/// Returns the host's lists. A program without arguments or outputs has no lists of them.
#[inline(always)]
fn read_lists<'a>(
    args: &'a View<'_, PJRT_LoadedExecutable_Execute_Args>,
    num_args: usize,
    num_outputs: usize,
) -> Result<Lists<'a>> {
    let lists: &[*const *mut PJRT_Buffer] = if num_args == 0 {
        &[]
    } else {
        slice!(args.argument_lists as *const *mut PJRT_Buffer, num_devices)?
    };
    // This is checked while no argument is held yet.
    if lists.iter().any(|list| list.is_null()) {
        return Err(null("an argument list"));
    }
    let output_lists: &[*mut *mut PJRT_Buffer] =
        if num_outputs == 0 { &[] } else { slice!(args.output_lists as *mut *mut PJRT_Buffer, num_devices)? };
    if output_lists.iter().any(|list| list.is_null()) {
        return Err(null("an output list"));
    }
    Ok((lists, output_lists))
}

/// Writes an event for each device, if the host requests events.
///
/// # Safety
///
/// `events` is null, or valid for writes of `num_devices` pointers.
#[inline(always)]
unsafe fn write_events(events: *mut *mut PJRT_Event, num_devices: usize, event: &Event) {
    if !events.is_null() {
        for device in 0..num_devices {
            // SAFETY: this function's contract.
            unsafe { events.add(device).write(event_to_raw(event.clone())) };
        }
    }
}

#[inline(always)]
fn check_number(num_args: usize, expected: usize) -> Result<()> {
    if num_args == expected { Ok(()) } else { Err(wrong_number(num_args, expected)) }
}

#[cold]
fn wrong_number(num_args: usize, expected: usize) -> Error {
    Error::invalid_argument(format!(
        "Execution supplied {num_args} buffers but compiled program expected {expected} buffers"
    ))
}

#[cold]
fn joint_with_callbacks(program: &str) -> Error {
    Error::unimplemented(format!(
        "cannot launch '{program}' on one of its devices with send or receive callbacks, because its devices communicate"
    ))
    .with_hint("launch the program on all of its devices at once")
}

/// Returns the devices of a launch as indices of the client's devices, and the id of `execute_device` if the host names one.
#[inline(always)]
fn launch_devices<'a, C: PjrtClient>(
    loaded: &'a LoadedHandle<C>,
    named: *const PJRT_Device,
    num_devices: usize,
    place: &'a mut [usize; 1],
) -> Result<(&'a [usize], Option<DeviceId>)> {
    let (places, id): (&[usize], _) = if named.is_null() {
        (&loaded.devices, None)
    } else {
        *place = [loaded.client.index_of_device(named)?];
        let id = named_device(loaded, place[0])?;
        (place, Some(id))
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
    Ok((places, id))
}

/// Returns the id of `execute_device`: any addressable device if the executable is portable, otherwise one of its own devices.
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

/// Returns whether an argument has the shape of its parameter and is on the device.
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

/// Returns an error if an argument is on a different device than its parameter, or has a different size. As in XLA's clients, an
/// argument of the same size may have a different shape or element type.
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
    if buffer.shape.packed_size() != parameter.packed_size() {
        return Err(wrong_size(index, parameter, &buffer.shape));
    }
    if !Arc::ptr_eq(&buffer.client, &loaded.client) {
        return Err(Error::invalid_argument(format!(
            "Buffer passed to Execute() as argument {index} belongs to another client"
        )));
    }
    if buffer.device == place {
        return Ok(());
    }
    Err(Error::invalid_argument(format!(
        "Buffer passed to Execute() as argument {index} is on device {}, but the executable runs on device {}",
        buffer.client.devices[buffer.device].id(),
        buffer.client.devices[place].id()
    )))
}

fn wrong_size(index: usize, parameter: &Shape, argument: &Shape) -> Error {
    Error::invalid_argument(format!(
        "Executable expected parameter {index} of size {} but got buffer with incompatible size {}: {argument} is not \
         {parameter}",
        parameter.packed_size(),
        argument.packed_size()
    ))
}

/// Adds an argument with a different shape than its parameter's: a copy with the parameter's shape. The argument is not donated.
#[cold]
fn push_bitcast<C: PjrtClient>(
    buffer: &BufferHandle<C>,
    parameter: &Shape,
    inputs: &mut Inputs<C::Buffer>,
) -> Result<()> {
    let copy = bitcast(buffer, parameter.clone())?;
    inputs.push(&copy.state, false)
}

/// Takes a share of every argument, as [`hold`] does for one device. If it fails, no argument is held.
///
/// # Safety
///
/// `lists` is empty if the program has no parameters, and has a list for each device otherwise. Each list is as for [`hold`].
#[inline(always)]
unsafe fn hold_all<C: PjrtClient>(
    loaded: &LoadedHandle<C>,
    non_donatable: &[i64],
    places: &[usize],
    lists: &[*const *mut PJRT_Buffer],
    inputs: &mut Inputs<C::Buffer>,
) -> Result<()> {
    let num_args = loaded.executable.parameters.shapes.len();
    for (device, place) in places.iter().enumerate() {
        let list: &[*mut PJRT_Buffer] = match lists.get(device) {
            None => &[],
            // SAFETY: this function's contract.
            Some(list) => unsafe { borrowed_slice(*list, num_args, "argument_lists") }?,
        };
        // SAFETY: this function's contract.
        if let Err(error) = unsafe { hold(loaded, non_donatable, *place, list, inputs) } {
            let mut held = inputs.take().into_held().into_iter();
            for list in lists {
                // SAFETY: the held buffers are the first of the lists, in order.
                unsafe {
                    let list = borrowed_slice(*list, num_args, "argument_lists")?;
                    give_back::<C>(list, held.by_ref().take(num_args));
                }
            }
            return Err(error);
        }
    }
    Ok(())
}

/// Takes a share of every argument of one device; for donated arguments, the buffer's own share. If it fails at an argument,
/// the arguments before that one are held.
///
/// # Safety
///
/// Each element of `list` is null or a live buffer of this plugin that lives until the call returns. There is one per
/// parameter.
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
        let parameter = &loaded.executable.parameters.shapes[index];
        let pushed = if buffer.shape == *parameter {
            inputs.push(&buffer.state, donated(index))
        } else {
            push_bitcast(buffer, parameter, inputs)
        };
        pushed.map_err(|error| error.context(format!("argument {index} of the execution")))?;
        index += 1;
    }
    Ok(())
}

/// The most arguments that are taken under one lock of the device, so that other threads wait for less than a microsecond.
const MOST_AT_ONCE: usize = 64;

/// Takes shares of consecutive arguments from `start` on. Stops at an argument that is not ready, is donated or does not
/// fit. Returns the number of arguments taken.
///
/// # Safety
///
/// The same as for [`hold`].
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
    // In debug builds, `borrow` takes the registry's lock while this one is held. No code takes them in the other order.
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
    // SAFETY: the vector has capacity for `shared` more inputs, and they have been written.
    unsafe { inputs.set_len(inputs.len() + shared) };
    shared
}

/// Returns an error if a donated buffer is an argument twice.
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

/// Undoes the donations of an execution that failed to launch.
///
/// # Safety
///
/// The first buffers of `list`, as many as are held, are live buffers of this plugin.
unsafe fn give_back<C: PjrtClient>(list: &[*mut PJRT_Buffer], held: impl Iterator<Item = Held<C::Buffer>>) {
    for (pointer, held) in list.iter().zip(held).filter(|(_, held)| held.donated) {
        // SAFETY: this function's contract.
        if let Ok(buffer) = unsafe { borrow::<BufferHandle<C>>(*pointer, "an argument") } {
            buffer.state.restore(held.share);
        }
    }
}

/// Writes output buffers to the host's lists.
struct Writer<'a, C: PjrtClient> {
    loaded: &'a LoadedHandle<C>,
    places: &'a [usize],
    lists: &'a [*mut *mut PJRT_Buffer],
}

impl<C: PjrtClient> Writer<'_, C> {
    /// Writes a buffer for every output, and returns the event that completes all of them.
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

    /// Writes buffers as [`write`](Self::write) does, for an execution that is still running.
    #[cold]
    fn write_later(&self, launch: Launch<Job<C::Buffer>, C::Buffer>, launch_id: i32) -> Event {
        let num_slots = self.places.len() * self.loaded.executable.outputs.shapes.len();
        match launch.attach(num_slots) {
            Outcome::Finished(finished) => self.write(finished),
            Outcome::Pending { slots, allocated, ready, unfilled } => {
                self.loaded.client.unfinished.add(launch_id, self.places, &unfilled);
                let mut slots = slots.into_iter();
                self.each(|| {
                    // There is a slot for every output, so this error does not occur.
                    let share = slots.next().map_or_else(
                        || {
                            Share::Failed(Error::internal(
                                "an output of the execution has no slot; this is a bug in pjrt-plugin",
                            ))
                        },
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

/// Moves the next value into an `Arc`, with a single copy from the vector to the allocation.
#[inline(always)]
fn next_shared<T>(values: &mut vec::IntoIter<T>) -> Option<Arc<T>> {
    let value: *const T = values.as_slice().first()?;
    let place = Arc::into_raw(Arc::new(MaybeUninit::<T>::uninit())).cast::<T>().cast_mut();
    // SAFETY: the allocation is new, has the size of a value, and is not shared. The value is the iterator's next one; it is
    // removed from the iterator without a drop, so that it has one owner.
    unsafe {
        place.copy_from_nonoverlapping(value, 1);
        mem::forget(values.next());
        Some(Arc::from_raw(place))
    }
}

/// Creates the buffer of an output and writes it to the host's list.
///
/// # Safety
///
/// `list` is valid for writes of as many buffers as the program has outputs, and `index` is less than their number.
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
