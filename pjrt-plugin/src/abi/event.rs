//! `PJRT_Event`.
//!
//! `PJRT_Event_Destroy`, `PJRT_Event_IsReady`, `PJRT_Event_Error`, `PJRT_Event_Await`, `PJRT_Event_OnReady`,
//! `PJRT_Event_Create`, `PJRT_Event_Set`.

use pjrt_sys::{
    PJRT_Error_Code_OK, PJRT_Event, PJRT_Event_Await_Args, PJRT_Event_Create_Args, PJRT_Event_Destroy_Args,
    PJRT_Event_Error_Args, PJRT_Event_IsReady_Args, PJRT_Event_OnReady_Args, PJRT_Event_Set_Args,
};

use crate::abi::args::{View, handle, input, null, output};
use crate::abi::error::{host_error, outcome_to_raw};
use crate::abi::handle::{self, Handle};
use crate::client::PjrtClient;
use crate::core::event::{Event, Inner, OK, State};
use crate::core::host_memory::HostPointer;
use crate::core::panic_guard;
use crate::core::sync::{AtomicBool, AtomicU8, Condvar, Mutex};
use crate::error::{Error, Result};

/// The object behind a `PJRT_Event`: a share of the event's state. Destroying it affects neither the operation nor the
/// callbacks.
impl Handle for State {
    type Opaque = PJRT_Event;
    const KIND: &'static str = "PJRT_Event";
}

/// The event of every operation that is complete when the host receives the event. It is shared, so that it needs no
/// allocation.
static READY: State = State {
    phase: AtomicU8::new(OK),
    left_to_host: AtomicBool::new(false),
    inner: Mutex::new(Inner { error: None, waiting: Vec::new(), blocked: 0 }),
    completed: Condvar::new(),
};

/// Passes an event to the host. In debug builds each handle is distinct, so that a host that destroys one twice gets an
/// error.
#[inline]
pub(crate) fn event_to_raw(event: Event) -> *mut PJRT_Event {
    if cfg!(debug_assertions) {
        return handle::share_into_raw(event.follower());
    }
    match event.into_state() {
        Some(state) => handle::share_into_raw(state),
        None => handle::lend_into_raw(&READY),
    }
}

/// Takes an event back from the host. Returns `None` if the handle is null.
///
/// # Safety
///
/// `event` is null or an event of this plugin whose ownership the host passes.
#[inline]
pub(crate) unsafe fn take_event(event: *mut PJRT_Event) -> Result<Option<Event>> {
    if is_ready(event) {
        handle::take_lent(&READY, "event")?;
        return Ok(Some(Event::ready()));
    }
    // SAFETY: this function's contract; every other event is a share.
    Ok(unsafe { handle::share_from_raw::<State>(event, "event") }?.map(Event::of))
}

/// Returns the event of a handle, with its own share, because callbacks of the host may destroy the handle.
///
/// # Safety
///
/// `event` is null or a live event of this plugin.
unsafe fn event_of(event: *mut PJRT_Event) -> Result<Event> {
    if is_ready(event) {
        return Ok(Event::ready());
    }
    // SAFETY: this function's contract; every other event is a share.
    unsafe { handle::share_of::<State>(event, "event") }.map(Event::of)
}

fn is_ready(event: *const PJRT_Event) -> bool {
    event == (&raw const READY).cast()
}

/// `PJRT_Event_Destroy`: frees an event. It is allowed at any time, including in the event's own callback, and cancels
/// nothing.
pub(crate) fn event_destroy<C: PjrtClient>(args: View<'_, PJRT_Event_Destroy_Args>) -> Result<()> {
    // SAFETY: the host passes ownership of the event.
    let event = unsafe { take_event(input!(args.event)) }?;
    match event.and_then(|event| event.take_source()) {
        None => Ok(()),
        // The host created the event and never set it, so it fails.
        Some(source) => panic_guard::catch(|| {
            drop(source);
            Ok(())
        }),
    }
}

/// `PJRT_Event_IsReady`: returns whether the event is complete, with or without an error.
pub(crate) fn event_is_ready<C: PjrtClient>(args: View<'_, PJRT_Event_IsReady_Args>) -> Result<()> {
    output!(args.is_ready = handle!(args.event: State)?.is_complete());
    Ok(())
}

/// `PJRT_Event_Error`: returns the error of a complete event, as a new error on each call.
pub(crate) fn event_error<C: PjrtClient>(args: View<'_, PJRT_Event_Error_Args>) -> Result<()> {
    match handle!(args.event: State)?.outcome() {
        Some(outcome) => outcome.map_err(Error::reported),
        None => {
            Err(Error::failed_precondition("the event is not complete; wait for it with PJRT_Event_Await"))
        }
    }
}

/// `PJRT_Event_Await`: waits until the event is complete, and returns its error.
pub(crate) fn event_await<C: PjrtClient>(args: View<'_, PJRT_Event_Await_Args>) -> Result<()> {
    handle!(args.event: State)?.wait().map_err(Error::reported)
}

/// `PJRT_Event_OnReady`: calls the callback once, and passes it ownership of the error.
pub(crate) fn event_on_ready<C: PjrtClient>(args: View<'_, PJRT_Event_OnReady_Args>) -> Result<()> {
    // SAFETY: the event is a live one.
    let event = unsafe { event_of(input!(args.event)) }?;
    let callback = input!(args.callback).ok_or_else(|| null("callback"))?;
    let user_arg = HostPointer(input!(args.user_arg));
    event.on_ready(move |outcome| {
        // SAFETY: the host allows one call of the callback, on any thread, with its argument.
        unsafe { callback(outcome_to_raw(outcome), user_arg.get()) };
    });
    Ok(())
}

/// `PJRT_Event_Create`: creates an event that the host completes with `PJRT_Event_Set`.
pub(crate) fn event_create<C: PjrtClient>(args: View<'_, PJRT_Event_Create_Args>) -> Result<()> {
    output!(args.event = handle::share_into_raw(Event::left_to_host()));
    Ok(())
}

/// `PJRT_Event_Set`: completes an event of `PJRT_Event_Create`.
pub(crate) fn event_set<C: PjrtClient>(args: View<'_, PJRT_Event_Set_Args>) -> Result<()> {
    // SAFETY: the event is a live one.
    let source = unsafe { event_of(input!(args.event)) }?.take_source();
    let Some(source) = source else {
        return Err(Error::failed_precondition(
            "the event cannot be set: it has been set already, or PJRT_Event_Create did not create it",
        ));
    };
    let code = input!(args.error_code);
    source.complete(if code == PJRT_Error_Code_OK {
        Ok(())
    } else {
        // SAFETY: message and size describe a string of the host.
        Err(unsafe { host_error(code, input!(args.error_message), input!(args.error_message_size)) })
    });
    Ok(())
}
