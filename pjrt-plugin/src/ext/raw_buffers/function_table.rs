//! The function table to which the first word of a raw buffer points.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;

use pjrt_sys::{
    PJRT_DeviceEvent, PJRT_DeviceEventPromise, PJRT_DeviceEventVector, PJRT_Error, PJRT_Memory,
    PJRT_RawBuffer, PJRT_RawBuffer_FunctionTable, SizedStruct,
};

use super::device_event::{self, Promise};
use super::{RawBuffer, RawBuffers, after_all};
use crate::abi::args::null;
use crate::abi::error::outcome_to_raw;
use crate::abi::handle::{self, borrow};
use crate::core::event::Event;
use crate::core::host_memory::HostPointer;
use crate::core::panic_guard;
use crate::element_type::ElementType;
use crate::error::Result;
use crate::host_buffer::HostBuffer;

/// The table of the raw buffers of a client.
pub(super) struct TableOf<C>(PhantomData<C>);

impl<C: RawBuffers> TableOf<C> {
    pub(super) const TABLE: &'static PJRT_RawBuffer_FunctionTable = &PJRT_RawBuffer_FunctionTable {
        struct_size: PJRT_RawBuffer_FunctionTable::STRUCT_SIZE,
        instance_size: size_of::<RawBuffer<C>>(),
        extension_start: ptr::null_mut(),
        inc_ref: Some(inc_ref::<C>),
        dec_ref: Some(dec_ref::<C>),
        get_on_device_size_in_bytes: Some(get_on_device_size_in_bytes::<C>),
        get_memory_space: Some(get_memory_space::<C>),
        get_host_pointer: Some(get_host_pointer::<C>),
        copy_raw_host_to_device_and_return_event: Some(copy_raw_host_to_device::<C>),
        copy_raw_device_to_host_and_return_event: Some(copy_raw_device_to_host::<C>),
        opaque_device_memory_data_pointer: Some(get_host_pointer::<C>),
        make_allocation_ready_event: Some(make_allocation_ready_event::<C>),
        get_raw_buffer_async_value: Some(get_raw_buffer_async_value::<C>),
        is_mutable: Some(is_mutable),
        slice: Some(slice::<C>),
        schedule_copy_to: Some(schedule_copy_to::<C>),
    };
}

/// Runs the body of a function that returns an error.
fn guarded(function: &'static str, body: impl FnOnce() -> Result<()>) -> *mut PJRT_Error {
    outcome_to_raw(panic_guard::catch(body).map_err(|error| error.in_function(function)))
}

/// # Safety
///
/// `raw` is a raw buffer of this plugin.
unsafe extern "C" fn inc_ref<C: RawBuffers>(raw: *mut PJRT_RawBuffer) {
    // SAFETY: this function's contract: the host has a share.
    let share = unsafe {
        Arc::increment_strong_count(raw.cast::<RawBuffer<C>>().cast_const());
        Arc::from_raw(raw.cast::<RawBuffer<C>>().cast_const())
    };
    handle::share_into_raw(share);
}

/// # Safety
///
/// `raw` is a raw buffer of this plugin, of which the host passes ownership of a share.
unsafe extern "C" fn dec_ref<C: RawBuffers>(raw: *mut PJRT_RawBuffer) {
    let body = || {
        // SAFETY: this function's contract.
        drop(unsafe { handle::share_from_raw::<RawBuffer<C>>(raw, "raw_buffer") }?);
        Ok(())
    };
    // This function cannot return an error; the panic hook has printed a panic.
    let _ = panic_guard::catch(body);
}

/// # Safety
///
/// `raw` is null or a raw buffer of this plugin.
unsafe extern "C" fn get_on_device_size_in_bytes<C: RawBuffers>(raw: *const PJRT_RawBuffer) -> usize {
    // SAFETY: this function's contract.
    unsafe { borrow::<RawBuffer<C>>(raw, "raw_buffer") }.map_or(0, |raw| raw.range.len())
}

/// # Safety
///
/// `raw` is null or a raw buffer of this plugin.
unsafe extern "C" fn get_memory_space<C: RawBuffers>(raw: *const PJRT_RawBuffer) -> *mut PJRT_Memory {
    // SAFETY: this function's contract.
    let raw = unsafe { borrow::<RawBuffer<C>>(raw, "raw_buffer") };
    raw.map_or(ptr::null_mut(), |raw| raw.client.memory_pointer(raw.place.memory))
}

/// Returns the address of the bytes, or null if the host cannot read them or the buffer is in error.
///
/// # Safety
///
/// `raw` is null or a raw buffer of this plugin.
unsafe extern "C" fn get_host_pointer<C: RawBuffers>(raw: *const PJRT_RawBuffer) -> *mut c_void {
    // SAFETY: this function's contract.
    let pointer = panic_guard::catch(|| unsafe { borrow::<RawBuffer<C>>(raw, "raw_buffer") }?.host_pointer());
    pointer.map_or(ptr::null_mut(), <*mut u8>::cast)
}

/// # Safety
///
/// `raw` is null or a raw buffer of this plugin. The host lends the bytes from `src` on until the event completes.
/// `dependencies` is null or a list of live events. `event` is null or valid for writes.
unsafe extern "C" fn copy_raw_host_to_device<C: RawBuffers>(
    raw: *mut PJRT_RawBuffer,
    src: *const c_void,
    offset: i64,
    transfer_size: i64,
    dependencies: *mut PJRT_DeviceEventVector,
    event: *mut PJRT_DeviceEvent,
) -> *mut PJRT_Error {
    guarded("PJRT_RawBuffer.copy_raw_host_to_device_and_return_event", || {
        // SAFETY: this function's contract.
        unsafe {
            let raw = borrow::<RawBuffer<C>>(raw, "raw_buffer")?;
            let dependencies = device_event::from_list(dependencies)?;
            write_event(event, raw.write_from(src.cast(), (offset, transfer_size), dependencies)?)
        }
    })
}

/// # Safety
///
/// The same as for [`copy_raw_host_to_device`]; the plugin has exclusive access to the bytes from `dst` on until the event
/// completes.
unsafe extern "C" fn copy_raw_device_to_host<C: RawBuffers>(
    raw: *mut PJRT_RawBuffer,
    dst: *mut c_void,
    offset: i64,
    transfer_size: i64,
    dependencies: *mut PJRT_DeviceEventVector,
    event: *mut PJRT_DeviceEvent,
) -> *mut PJRT_Error {
    guarded("PJRT_RawBuffer.copy_raw_device_to_host_and_return_event", || {
        // SAFETY: this function's contract.
        unsafe {
            let raw = borrow::<RawBuffer<C>>(raw, "raw_buffer")?;
            let dependencies = device_event::from_list(dependencies)?;
            write_event(event, raw.read_into(dst.cast(), (offset, transfer_size), dependencies)?)
        }
    })
}

/// # Safety
///
/// `place` is null or valid for writes.
unsafe fn write_event(place: *mut PJRT_DeviceEvent, event: Event) -> Result<()> {
    if place.is_null() {
        return Err(null("event"));
    }
    // SAFETY: this function's contract.
    unsafe { place.write(device_event::to_raw(event)) };
    Ok(())
}

/// # Safety
///
/// `raw` is null or a raw buffer of this plugin; `event` is null or valid for writes.
unsafe extern "C" fn make_allocation_ready_event<C: RawBuffers>(
    raw: *mut PJRT_RawBuffer,
    event: *mut PJRT_DeviceEvent,
) -> *mut PJRT_Error {
    guarded("PJRT_RawBuffer.make_allocation_ready_event", || {
        // SAFETY: this function's contract.
        unsafe { write_event(event, borrow::<RawBuffer<C>>(raw, "raw_buffer")?.allocated.clone()) }
    })
}

/// # Safety
///
/// The same as for [`make_allocation_ready_event`].
unsafe extern "C" fn get_raw_buffer_async_value<C: RawBuffers>(
    raw: *mut PJRT_RawBuffer,
    event: *mut PJRT_DeviceEvent,
) -> *mut PJRT_Error {
    guarded("PJRT_RawBuffer.get_raw_buffer_async_value", || {
        // SAFETY: this function's contract.
        unsafe { write_event(event, borrow::<RawBuffer<C>>(raw, "raw_buffer")?.ready.clone()) }
    })
}

/// Returns true. A write to storage that is not mutable, such as borrowed host memory, returns an error.
///
/// # Safety
///
/// The function has no preconditions.
unsafe extern "C" fn is_mutable(_: *const PJRT_RawBuffer) -> bool {
    true
}

/// # Safety
///
/// `raw` is null or a raw buffer of this plugin; `sliced` is null or valid for writes.
unsafe extern "C" fn slice<C: RawBuffers>(
    raw: *mut PJRT_RawBuffer,
    offset: i64,
    size: i64,
    sliced: *mut *mut PJRT_RawBuffer,
) -> *mut PJRT_Error {
    guarded("PJRT_RawBuffer.slice", || {
        if sliced.is_null() {
            return Err(null("sliced_buffer"));
        }
        // SAFETY: this function's contract.
        unsafe {
            let part = borrow::<RawBuffer<C>>(raw, "raw_buffer")?.slice(offset, size)?;
            sliced.write(handle::share_into_raw(Arc::new(part)));
        }
        Ok(())
    })
}

/// Copies all bytes of a raw buffer to another one, through host memory. `allocation` is called when the destination has
/// storage. `definition` and `usage` are completed when the copy is complete.
///
/// # Safety
///
/// `source` and `destination` are null or raw buffers of this plugin; `dependencies` is null or a list of live events;
/// `definition` and `usage` are null or live promises; `allocation` is null or can be called once, on any thread, with an
/// error whose ownership it takes and `user_data`.
unsafe extern "C" fn schedule_copy_to<C: RawBuffers>(
    source: *mut PJRT_RawBuffer,
    dependencies: *mut PJRT_DeviceEventVector,
    destination: *mut PJRT_RawBuffer,
    definition: *mut PJRT_DeviceEventPromise,
    usage: *mut PJRT_DeviceEventPromise,
    allocation: Option<unsafe extern "C" fn(*mut PJRT_Error, *mut c_void)>,
    user_data: *mut c_void,
) {
    // SAFETY: this function's contract.
    let promises = unsafe { [Promise::new(definition), Promise::new(usage)] };
    let [definition, usage] = promises.map(|promise| promise.ok().flatten());
    let user_data = HostPointer(user_data);
    let tell = move |outcome: Result<()>| {
        if let Some(allocation) = allocation {
            // SAFETY: this function's contract.
            unsafe { allocation(outcome_to_raw(outcome), user_data.get()) };
        }
    };
    let (copied, done) = Event::pending();
    let start = || {
        // SAFETY: this function's contract.
        let (source, destination, dependencies) = unsafe {
            (
                borrow::<RawBuffer<C>>(source, "source")?,
                borrow::<RawBuffer<C>>(destination, "destination")?,
                device_event::from_list(dependencies)?,
            )
        };
        let size = source.range.len() as i64;
        let target = destination.slice(0, size)?;
        Ok((source, target, dependencies))
    };
    match panic_guard::catch(start) {
        Err(error) => {
            tell(Err(error.clone()));
            copied.complete(Err(error));
        }
        Ok((source, target, dependencies)) => {
            after_all(vec![target.allocated.clone()], tell);
            source.read(source.range.clone(), dependencies, move |bytes| {
                let data = bytes
                    .and_then(|bytes| HostBuffer::from_vec(ElementType::U8, vec![bytes.len() as i64], bytes));
                match data {
                    Ok(data) => target.write(target.range.start, data, Vec::new(), copied),
                    Err(error) => copied.complete(Err(error)),
                }
            });
        }
    }
    done.on_ready(move |outcome| {
        for promise in [definition, usage].into_iter().flatten() {
            promise.complete(outcome.clone());
        }
    });
}
