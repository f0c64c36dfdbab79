//! Buffers and copies that wait for a later call of the host.
//!
//! `PJRT_Buffer_CopyRawToHostFuture`, `PJRT_Buffer_DonateWithControlDependency`.

use std::ops::Range;
use std::ptr;

use pjrt_sys::{
    PJRT_Buffer_CopyRawToHostFuture_Args, PJRT_Buffer_CopyRawToHostFuture_Callback_Args,
    PJRT_Buffer_DonateWithControlDependency_Args, PJRT_Buffer_DonateWithControlDependency_Callback_Args,
    PJRT_Error_Code_OK,
};

use crate::abi::args::{View, handle, input, output};
use crate::abi::buffer::BufferHandle;
use crate::abi::download::{copy_range, raw_range};
use crate::abi::error::host_error;
use crate::abi::event::event_to_raw;
use crate::abi::upload::buffer_to_raw;
use crate::client::Location;
use crate::client::PjrtClient;
use crate::core::event::{Event, EventSource};
use crate::core::panic_guard;
use crate::core::storage::{BufferState, Held};
use crate::error::Result;
use crate::shape::Shape;

/// A raw copy whose destination is not known yet.
struct FutureCopy<C: PjrtClient> {
    held: Held<C::Buffer>,
    shape: Shape,
    range: Result<Range<usize>>,
    done: EventSource,
}

/// `PJRT_Buffer_CopyRawToHostFuture`: does the same as `PJRT_Buffer_CopyRawToHost`, to a destination that the host passes to
/// the callback.
pub(crate) fn buffer_copy_raw_to_host_future<C: PjrtClient>(
    args: View<'_, PJRT_Buffer_CopyRawToHostFuture_Args>,
) -> Result<()> {
    let buffer = handle!(args.buffer: BufferHandle<C>)?;
    let range = raw_range(&buffer.shape, input!(args.offset), input!(args.transfer_size));
    let held = buffer.state.share()?;
    let (done, event) = Event::pending();
    let copy = FutureCopy::<C> { held, shape: buffer.shape.clone(), range, done };
    output!(args.event = event_to_raw(event));
    output!(args.callback_data = Box::into_raw(Box::new(copy)).cast());
    output!(args.future_ready_callback = Some(destination_known::<C>));
    Ok(())
}

/// `PJRT_Buffer_DonateWithControlDependency`: moves the storage to a new buffer that is ready only after the host has also
/// called the callback.
pub(crate) fn buffer_donate_with_control_dependency<C: PjrtClient>(
    args: View<'_, PJRT_Buffer_DonateWithControlDependency_Args>,
) -> Result<()> {
    output!(args.out_buffer = ptr::null_mut());
    let buffer = handle!(args.buffer: BufferHandle<C>)?;
    let held = buffer.state.donate()?;
    let (source, dependency) = Event::pending();
    let ready = Event::all(vec![held.ready, dependency.clone()]);
    let host = Event::all(vec![held.host, dependency]);
    let place = Location { device: buffer.device, memory: buffer.memory };
    let state = BufferState::new(held.share, held.allocated, ready).after_host(host);
    output!(args.out_buffer = buffer_to_raw(&buffer.client, place, buffer.shape.clone(), state)?);
    output!(args.callback_data = Box::into_raw(Box::new(source)).cast());
    output!(args.dependency_ready_callback = Some(dependency_ready));
    Ok(())
}

/// The callback of `PJRT_Buffer_CopyRawToHostFuture`.
///
/// # Safety
///
/// The host calls it once, with the callback data of `PJRT_Buffer_CopyRawToHostFuture`, and passes either an error or memory
/// for the copy, which it lends until the event completes.
unsafe extern "C" fn destination_known<C: PjrtClient>(
    args: *mut PJRT_Buffer_CopyRawToHostFuture_Callback_Args,
) {
    let run = || {
        // SAFETY: this function's contract.
        let args = unsafe { View::new(args) }?;
        // SAFETY: the data is the box of `PJRT_Buffer_CopyRawToHostFuture`, and the host calls the callback once.
        let copy = unsafe { Box::from_raw(input!(args.callback_data).cast::<FutureCopy<C>>()) };
        let code = input!(args.error_code);
        if code != PJRT_Error_Code_OK {
            // SAFETY: message and size describe a string of the host.
            let error =
                unsafe { host_error(code, input!(args.error_message), input!(args.error_message_size)) };
            copy.done.complete(Err(error.reported()));
            return Ok(());
        }
        let FutureCopy { held, shape, range, done } = *copy;
        match range {
            // SAFETY: the host lends memory for the range until the event completes.
            Ok(range) => unsafe { copy_range::<C>(held, shape, range, input!(args.dst).cast(), done) },
            Err(error) => done.complete(Err(error)),
        }
        Ok(())
    };
    // On an error here, the copy is dropped, and with it the event's source, so that the event fails.
    let _: Result<()> = panic_guard::catch(run);
}

/// The callback of `PJRT_Buffer_DonateWithControlDependency`.
///
/// # Safety
///
/// The host calls it once, with the callback data of `PJRT_Buffer_DonateWithControlDependency`.
unsafe extern "C" fn dependency_ready(args: *mut PJRT_Buffer_DonateWithControlDependency_Callback_Args) {
    let run = || {
        // SAFETY: this function's contract.
        let args = unsafe { View::new(args) }?;
        // SAFETY: the data is the box of `PJRT_Buffer_DonateWithControlDependency`, and the host calls the callback once.
        let source = unsafe { Box::from_raw(input!(args.callback_data).cast::<EventSource>()) };
        let code = input!(args.error_code);
        source.complete(if code == PJRT_Error_Code_OK {
            Ok(())
        } else {
            // SAFETY: message and size describe a string of the host.
            let error =
                unsafe { host_error(code, input!(args.error_message), input!(args.error_message_size)) };
            Err(error.reported())
        });
        Ok(())
    };
    // A panic in a callback of the event has been caught where the callback was called.
    let _: Result<()> = panic_guard::catch(run);
}
