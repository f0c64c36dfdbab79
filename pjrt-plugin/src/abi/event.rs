//! `PJRT_Event`: slots 5 to 9, 126 and 127.

use std::ffi::c_void;

use pjrt_sys::{PJRT_Error_Code_OK, PJRT_Event};

use crate::abi::args::{handle, input, null, output, shims};
use crate::abi::error::{host_error, outcome_to_raw};
use crate::abi::guard;
use crate::abi::handle::{self, Handle};
use crate::error::{Error, Result};
use crate::event::{Event, Inner, OK, State};
use crate::sync::{AtomicBool, AtomicU8, Condvar, Mutex};

/// An event as the host sees it: a share of what the event's handles share. Destroying it leaves the work behind it, and its
/// callbacks, alone.
impl Handle for State {
    type Opaque = PJRT_Event;
    const KIND: &'static str = "PJRT_Event";
}

/// The event of everything that is done when the host gets it. All such events are this one, so that they need no memory.
static READY: State = State {
    phase: AtomicU8::new(OK),
    left_to_host: AtomicBool::new(false),
    inner: Mutex::new(Inner { error: None, waiting: Vec::new(), blocked: 0 }),
    completed: Condvar::new(),
};

/// Hands an event to the host. In debug builds each is one of its own, so that a host that destroys one twice is told.
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

/// A pointer of the host's, to be handed back to it and not looked at. C callers share such pointers between threads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostPointer(pub(crate) *mut c_void);

// SAFETY: the pointer is only handed back to the host, which the C API allows on any thread.
unsafe impl Send for HostPointer {}
// SAFETY: as above.
unsafe impl Sync for HostPointer {}

impl HostPointer {
    /// The pointer; a method, so that closures capture the wrapper.
    pub(crate) fn get(&self) -> *mut c_void {
        self.0
    }
}

/// Takes an event back from the host; nothing if it is null.
///
/// # Safety
///
/// `event` is null or an event of this plugin that the host gives up.
#[inline]
pub(crate) unsafe fn take_event(event: *mut PJRT_Event) -> Result<Option<Event>> {
    if is_ready(event) {
        handle::take_lent(&READY, "event")?;
        return Ok(Some(Event::ready()));
    }
    // SAFETY: this function's contract; every other event is a share.
    Ok(unsafe { handle::share_from_raw::<State>(event, "event") }?.map(Event::of))
}

/// The event of a handle, with a share of its own: callbacks of the host may destroy the handle.
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

shims! {
    call_without_floats:

    /// Slot 5: frees an event. Legal at any time, in its own callback too; cancels nothing.
    event_destroy(PJRT_Event_Destroy_Args) |args, C| {
        // SAFETY: the host gives the event up.
        let event = unsafe { take_event(input!(args.event)) }?;
        match event.and_then(|event| event.take_source()) {
            None => Ok(()),
            // The host made it and never set it, so it has failed now.
            Some(source) => guard::catch(|| {
                drop(source);
                Ok(())
            }),
        }
    }

    /// Slot 6: whether it is complete, with or without an error.
    event_is_ready(PJRT_Event_IsReady_Args) |args, C| {
        output!(args.is_ready = handle!(args.event: State)?.is_complete());
        Ok(())
    }

    /// Slot 7: the error of a complete event, a new one at each call.
    event_error(PJRT_Event_Error_Args) |args, C| {
        match handle!(args.event: State)?.outcome() {
            Some(outcome) => outcome.map_err(Error::reported),
            None => Err(Error::failed_precondition("the event is not ready, so nobody knows its error yet")),
        }
    }

}

shims! {
    /// Slot 8: waits; then as slot 7.
    event_await(PJRT_Event_Await_Args) |args, C| {
        handle!(args.event: State)?.wait().map_err(Error::reported)
    }

    /// Slot 9: calls back once, with an error that belongs to the callback.
    event_on_ready(PJRT_Event_OnReady_Args) |args, C| {
        // SAFETY: the event is a live one.
        let event = unsafe { event_of(input!(args.event)) }?;
        let callback = input!(args.callback).ok_or_else(|| null("callback"))?;
        let user_arg = HostPointer(input!(args.user_arg));
        event.on_ready(move |outcome| {
            // SAFETY: the host gave the callback to be called once, on any thread, with its own argument.
            unsafe { callback(outcome_to_raw(outcome), user_arg.get()) };
        });
        Ok(())
    }

    /// Slot 126: an event that the host sets.
    event_create(PJRT_Event_Create_Args) |args, C| {
        output!(args.event = handle::share_into_raw(Event::left_to_host()));
        Ok(())
    }

    /// Slot 127: sets it.
    event_set(PJRT_Event_Set_Args) |args, C| {
        // SAFETY: the event is a live one.
        let source = unsafe { event_of(input!(args.event)) }?.take_source();
        let Some(source) = source else {
            return Err(Error::failed_precondition("only an event from PJRT_Event_Create can be set, and only once"));
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
}
