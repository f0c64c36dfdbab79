//! The events of the RawBuffer extension: those of the plugin and those of the host.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::{Arc, OnceLock};

use pjrt_sys::{
    PJRT_DeviceEvent, PJRT_DeviceEvent_AndThen, PJRT_DeviceEvent_FunctionTable, PJRT_DeviceEvent_State,
    PJRT_DeviceEvent_State_Error, PJRT_DeviceEvent_State_Ready, PJRT_DeviceEvent_State_Unavailable,
    PJRT_DeviceEventPromise, PJRT_DeviceEventVector, PJRT_Error_Code, SizedStruct,
};

use crate::abi::args::{borrowed_slice, chars, null};
use crate::abi::error::{error_to_raw, host_error};
use crate::core::event::Event;
use crate::core::host_memory::HostPointer;
use crate::error::{Error, Result};

/// An event of the plugin, which is reference-counted.
struct DeviceEvent {
    event: Event,
    /// The text of its error, which lives as long as the event.
    text: OnceLock<String>,
}

struct Table(PJRT_DeviceEvent_FunctionTable);

// SAFETY: the pointers in the table are null or functions, and nothing changes it.
unsafe impl Sync for Table {}

static TABLE: Table = Table(PJRT_DeviceEvent_FunctionTable {
    struct_size: PJRT_DeviceEvent_FunctionTable::STRUCT_SIZE,
    extension_start: ptr::null_mut(),
    inc_ref: Some(inc_ref),
    dec_ref: Some(dec_ref),
    and_then: Some(and_then),
    get_error_if_present: Some(get_error_if_present),
    parent: ptr::null(),
    get_state: Some(get_state),
    get_definition_stream: Some(get_definition_stream),
});

/// Passes ownership of one share of an event to the host.
pub(super) fn to_raw(event: Event) -> PJRT_DeviceEvent {
    let object = Arc::new(DeviceEvent { event, text: OnceLock::new() });
    PJRT_DeviceEvent { vtable: &raw const TABLE.0, device_event: Arc::into_raw(object).cast_mut().cast() }
}

/// # Safety
///
/// `event` is an event of ours.
unsafe extern "C" fn inc_ref(event: *mut c_void) {
    // SAFETY: this function's contract: the host has a share.
    unsafe { Arc::increment_strong_count(event.cast::<DeviceEvent>().cast_const()) };
}

/// # Safety
///
/// `event` is an event of ours, of which the host releases a share.
unsafe extern "C" fn dec_ref(event: *mut c_void) {
    // SAFETY: this function's contract.
    unsafe { Arc::decrement_strong_count(event.cast::<DeviceEvent>().cast_const()) };
}

/// # Safety
///
/// `event` is an event of ours; `callback` is null or can be called once with `user_arg`, on any thread.
unsafe extern "C" fn and_then(event: *mut c_void, callback: PJRT_DeviceEvent_AndThen, user_arg: *mut c_void) {
    let Some(callback) = callback else { return };
    let user_arg = HostPointer(user_arg);
    // SAFETY: this function's contract.
    let event = unsafe { &*event.cast::<DeviceEvent>() }.event.clone();
    event.on_ready(move |_| {
        // SAFETY: this function's contract.
        unsafe { callback(user_arg.get()) };
    });
}

/// # Safety
///
/// `event` is an event of ours; the other pointers are null or can be written.
unsafe extern "C" fn get_error_if_present(
    event: *mut c_void,
    code: *mut PJRT_Error_Code,
    message: *mut *const c_char,
    message_size: *mut usize,
) -> c_int {
    // SAFETY: this function's contract.
    let event = unsafe { &*event.cast::<DeviceEvent>() };
    let Some(Err(error)) = event.event.outcome() else { return 0 };
    let text = event.text.get_or_init(|| error.to_string());
    // SAFETY: this function's contract.
    unsafe {
        if let Some(code) = code.as_mut() {
            *code = PJRT_Error_Code(error.code() as u32);
        }
        if let Some(message) = message.as_mut() {
            *message = chars(text.as_bytes());
        }
        if let Some(size) = message_size.as_mut() {
            *size = text.len();
        }
    }
    1
}

/// # Safety
///
/// `event` is an event of ours.
unsafe extern "C" fn get_state(event: *mut c_void) -> PJRT_DeviceEvent_State {
    // SAFETY: this function's contract.
    match unsafe { &*event.cast::<DeviceEvent>() }.event.outcome() {
        None => PJRT_DeviceEvent_State_Unavailable,
        Some(Ok(())) => PJRT_DeviceEvent_State_Ready,
        Some(Err(_)) => PJRT_DeviceEvent_State_Error,
    }
}

/// Returns 0, because there are no streams.
///
/// # Safety
///
/// `sequence_number` is null or valid for writes.
unsafe extern "C" fn get_definition_stream(_: *mut c_void, sequence_number: *mut u64) -> isize {
    // SAFETY: this function's contract.
    if let Some(number) = unsafe { sequence_number.as_mut() } {
        *number = 0;
    }
    0
}

/// Converts a host's list of events. The host keeps ownership of the list.
///
/// # Safety
///
/// `events` is null or a list of events that live during the call.
pub(super) unsafe fn from_list(events: *const PJRT_DeviceEventVector) -> Result<Vec<Event>> {
    // SAFETY: this function's contract.
    let Some(list) = (unsafe { events.as_ref() }) else { return Ok(Vec::new()) };
    // SAFETY: this function's contract.
    let events = unsafe { borrowed_slice(list.data.cast_const(), list.size, "dependencies") }?;
    // SAFETY: this function's contract.
    events.iter().map(|event| unsafe { from_raw(*event) }).collect()
}

/// Creates an event that completes when an event of the interface does.
///
/// # Safety
///
/// `event` is an event of the plugin or of the host that lives during the call.
unsafe fn from_raw(event: PJRT_DeviceEvent) -> Result<Event> {
    // SAFETY: this function's contract.
    let Some(table) = (unsafe { event.vtable.as_ref() }) else {
        return Err(null("vtable of an event"));
    };
    let (Some(inc_ref), Some(and_then)) = (table.inc_ref, table.and_then) else {
        return Err(Error::invalid_argument("an event of the host lacks the function inc_ref or and_then"));
    };
    let (source, ours) = Event::pending();
    // The share is released in the callback.
    let finish: Finish = Box::new((HostPointer(event.device_event), table, source));
    // SAFETY: this function's contract; the callback takes the box, once.
    unsafe {
        inc_ref(event.device_event);
        and_then(event.device_event, Some(finished), Box::into_raw(finish).cast());
    }
    Ok(ours)
}

type Finish = Box<(HostPointer, &'static PJRT_DeviceEvent_FunctionTable, crate::core::event::EventSource)>;

/// # Safety
///
/// `finish` is the argument that [`from_raw`] registered, and its event is complete.
unsafe extern "C" fn finished(finish: *mut c_void) {
    // SAFETY: this function's contract.
    let (event, table, source) = *unsafe { Finish::from_raw(finish.cast()) };
    let (mut code, mut message, mut size) = (PJRT_Error_Code(0), ptr::null(), 0);
    // SAFETY: the share keeps the event alive, and the text lives as long as the event.
    let outcome = unsafe {
        match table.get_error_if_present {
            Some(get) if get(event.get(), &raw mut code, &raw mut message, &raw mut size) != 0 => {
                Err(host_error(code, message, size))
            }
            _ => Ok(()),
        }
    };
    if let Some(dec_ref) = table.dec_ref {
        // SAFETY: this releases the share that `from_raw` acquired.
        unsafe { dec_ref(event.get()) };
    }
    source.complete(outcome);
}

/// A share of a promise of the host, by which an event of the host is completed. It is released on drop.
pub(super) struct Promise(*mut PJRT_DeviceEventPromise);

// SAFETY: the host allows the use of a promise on any thread.
unsafe impl Send for Promise {}

impl Promise {
    /// # Safety
    ///
    /// `promise` is null or a promise that lives during the call.
    pub(super) unsafe fn new(promise: *mut PJRT_DeviceEventPromise) -> Result<Option<Self>> {
        if promise.is_null() {
            return Ok(None);
        }
        // SAFETY: this function's contract.
        let table = unsafe { (*promise).vtable.as_ref() };
        let inc_ref = table.and_then(|table| table.inc_ref);
        let inc_ref = inc_ref
            .ok_or_else(|| Error::invalid_argument("a promise of the host lacks the function inc_ref"))?;
        // SAFETY: this function's contract.
        unsafe { inc_ref(promise) };
        Ok(Some(Self(promise)))
    }

    /// Completes the event.
    pub(super) fn complete(self, outcome: Result<()>) {
        // SAFETY: the share keeps the promise alive. `new` has checked that there is a table. `set_error` takes ownership of
        // the error.
        unsafe {
            let table = &*(*self.0).vtable;
            match (outcome, table.set_ready, table.set_error) {
                (Ok(()), Some(set_ready), _) => set_ready(self.0),
                (Err(error), _, Some(set_error)) => set_error(self.0, error_to_raw(error)),
                _ => {}
            }
        }
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        // SAFETY: as above; this releases the share.
        unsafe {
            if let Some(dec_ref) = (*(*self.0).vtable).dec_ref {
                dec_ref(self.0);
            }
        }
    }
}
