//! `PJRT_Event`: slots 5 to 9, 126 and 127.

use std::ffi::c_void;
use std::sync::Mutex;

use pjrt_sys::{PJRT_Error_Code_OK, PJRT_Event};

use crate::abi::args::{handle, input, null, output, shims};
use crate::abi::error::{host_error, outcome_to_raw};
use crate::abi::handle::{self, Handle};
use crate::error::{Error, Result};
use crate::event::{Event, EventSource};
use crate::sync::lock;

/// An event as the host sees it. Destroying it leaves the work behind it, and its callbacks, alone.
pub(crate) struct EventHandle {
    event: Event,
    /// The other end, of an event that the host made and will set.
    source: Mutex<Option<EventSource>>,
}

impl Handle for EventHandle {
    type Opaque = PJRT_Event;
    const KIND: &'static str = "PJRT_Event";
}

/// The event of everything that is done when the host gets it. All such events are this one, so that they need no memory; in debug
/// builds each is one of its own, so that a host that destroys one twice is told.
static READY: EventHandle = EventHandle { event: Event::ready(), source: Mutex::new(None) };

/// Hands an event to the host.
#[inline]
pub(crate) fn event_to_raw(event: Event) -> *mut PJRT_Event {
    if event.is_settled() && !cfg!(debug_assertions) {
        return handle::lend_into_raw(&READY);
    }
    handle::into_raw(EventHandle { event, source: Mutex::new(None) })
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
    if event.cast_const() == (&raw const READY).cast() {
        handle::take_lent(&READY, "event")?;
        return Ok(Some(Event::ready()));
    }
    // SAFETY: this function's contract; every other event is a box.
    let handle = unsafe { handle::from_raw::<EventHandle>(event, "event") }?;
    Ok(handle.map(|handle| handle.event.clone()))
}

shims! {
    /// Slot 5: frees an event. Legal at any time, in its own callback too; cancels nothing.
    event_destroy(PJRT_Event_Destroy_Args) |args, C| {
        // SAFETY: the host gives the event up.
        drop(unsafe { take_event(input!(args.event)) }?);
        Ok(())
    }

    /// Slot 6: whether it is complete, with or without an error.
    event_is_ready(PJRT_Event_IsReady_Args) |args, C| {
        output!(args.is_ready = handle!(args.event: EventHandle)?.event.is_ready());
        Ok(())
    }

    /// Slot 7: the error of a complete event, a new one at each call.
    event_error(PJRT_Event_Error_Args) |args, C| {
        match handle!(args.event: EventHandle)?.event.outcome() {
            Some(outcome) => outcome.map_err(Error::reported),
            None => Err(Error::failed_precondition("the event is not ready, so nobody knows its error yet")),
        }
    }

    /// Slot 8: waits; then as slot 7.
    event_await(PJRT_Event_Await_Args) |args, C| {
        handle!(args.event: EventHandle)?.event.wait().map_err(Error::reported)
    }

    /// Slot 9: calls back once, with an error that belongs to the callback.
    event_on_ready(PJRT_Event_OnReady_Args) |args, C| {
        let event = &handle!(args.event: EventHandle)?.event;
        let callback = input!(args.callback).ok_or_else(|| null("callback"))?;
        let user_arg = HostPointer(input!(args.user_arg));
        event.clone().on_ready(move |outcome| {
            // SAFETY: the host gave the callback to be called once, on any thread, with its own argument.
            unsafe { callback(outcome_to_raw(outcome), user_arg.get()) };
        });
        Ok(())
    }

    /// Slot 126: an event that the host sets.
    event_create(PJRT_Event_Create_Args) |args, C| {
        let (source, event) = Event::pending();
        output!(args.event = handle::into_raw(EventHandle { event, source: Mutex::new(Some(source)) }));
        Ok(())
    }

    /// Slot 127: sets it.
    event_set(PJRT_Event_Set_Args) |args, C| {
        let source = lock(&handle!(args.event: EventHandle)?.source).take();
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
