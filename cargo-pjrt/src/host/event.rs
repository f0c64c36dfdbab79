//! Events.

use std::ffi::c_void;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pjrt_sys::*;

use super::error::{self, Code, Error, Result};
use super::plugin::{Plugin, call, destroyed_by};

/// An event of a plugin. Dropping it destroys it, which must not keep its callbacks from being called.
#[derive(Debug)]
pub struct Event {
    pub(crate) plugin: Plugin,
    pub(crate) raw: *mut PJRT_Event,
}

destroyed_by!(Event PJRT_Event_Destroy_Args event);

/// What a callback of an event was called with.
#[derive(Debug, Default)]
pub struct Outcome {
    calls: Mutex<Vec<Result<()>>>,
    changed: Condvar,
}

impl Outcome {
    /// What the first call brought, once there is one; `None` if there is none in time.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> Option<Result<()>> {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = self.changed.wait_timeout_while(calls, timeout, |calls| calls.is_empty());
        let (calls, _) = waiting.unwrap_or_else(PoisonError::into_inner);
        calls.first().cloned()
    }

    /// How many times the callback was called.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn note(&self, outcome: Result<()>) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
        self.changed.notify_all();
    }
}

/// What the plugin gets as a callback's argument.
struct Callback {
    plugin: Plugin,
    outcome: Arc<Outcome>,
    also: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Event {
    pub(crate) fn from_raw(plugin: Plugin, raw: *mut PJRT_Event, function: &'static str) -> Result<Self> {
        if raw.is_null() {
            return Err(Error::broken(function, "it succeeded, but its event is a null pointer"));
        }
        Ok(Self { plugin, raw })
    }

    /// An event that the host completes (`PJRT_Event_Create`).
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn create(plugin: Plugin) -> Result<Self> {
        let args = call!(plugin, PJRT_Event_Create_Args {})?;
        Self::from_raw(plugin, args.event, "PJRT_Event_Create")
    }

    /// Completes an event that the host created (`PJRT_Event_Set`).
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn set(&self, code: Code, message: &str) -> Result<()> {
        let (event, error_code) = (self.raw, PJRT_Error_Code(code.0));
        let (error_message, error_message_size) = (message.as_ptr().cast(), message.len());
        call!(self.plugin, PJRT_Event_Set_Args { event, error_code, error_message, error_message_size })
            .map(drop)
    }

    /// Whether it is complete (`PJRT_Event_IsReady`), with or without an error.
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn is_ready(&self) -> Result<bool> {
        Ok(call!(self.plugin, PJRT_Event_IsReady_Args { event: self.raw })?.is_ready)
    }

    /// The error of a complete event (`PJRT_Event_Error`).
    ///
    /// # Errors
    ///
    /// The event's.
    pub fn error(&self) -> Result<()> {
        call!(self.plugin, PJRT_Event_Error_Args { event: self.raw }).map(drop)
    }

    /// Asks for the error twice, and gives both and whether they were two objects, as they must be: each is destroyed by
    /// whoever asked for it.
    ///
    /// # Errors
    ///
    /// If the table has no such function.
    pub fn error_twice(&self) -> Result<(Option<Error>, Option<Error>, bool)> {
        let mut args = [PJRT_Event_Error_Args { event: self.raw, ..PJRT_Event_Error_Args::zeroed() }; 2];
        let [first, second] = &mut args;
        let (first, second) = (self.plugin.call_raw(first)?, self.plugin.call_raw(second)?);
        let distinct = first != second;
        const EVENT_ERROR: usize = 7;
        let first = error::take(self.plugin, EVENT_ERROR, first);
        let second = if distinct { error::take(self.plugin, EVENT_ERROR, second) } else { first.clone() };
        Ok((first, second, distinct))
    }

    /// The event's error as the error's own function table has it, beside what the functions of the plugin's table say;
    /// `None` if the event has none, or its error no table.
    ///
    /// # Errors
    ///
    /// If the table has no such function.
    #[allow(clippy::type_complexity, reason = "one caller, which takes it apart at once")]
    pub fn error_through_own_table(&self) -> Result<Option<((Code, String), Error)>> {
        let mut args = PJRT_Event_Error_Args { event: self.raw, ..PJRT_Event_Error_Args::zeroed() };
        let raw = self.plugin.call_raw(&mut args)?;
        if raw.is_null() {
            return Ok(None);
        }
        let through_own_table = error::through_own_table(raw);
        const EVENT_ERROR: usize = 7;
        Ok(through_own_table.zip(error::take(self.plugin, EVENT_ERROR, raw)))
    }

    /// Asks for the payloads of the event's error, and gives the code with which that failed
    /// (`PJRT_Error_ForEachPayload`).
    ///
    /// # Errors
    ///
    /// If the table has no such function.
    pub fn payloads_of_error(&self) -> Result<std::result::Result<(), String>> {
        let mut args = PJRT_Event_Error_Args { event: self.raw, ..PJRT_Event_Error_Args::zeroed() };
        let error = self.plugin.call_raw(&mut args)?;
        if error.is_null() {
            return Ok(Err("the event has no error".to_owned()));
        }
        let failed = error::payloads_fail(self.plugin, error)?;
        const EVENT_ERROR: usize = 7;
        error::take(self.plugin, EVENT_ERROR, error);
        Ok(if failed { Err("it gave an error".to_owned()) } else { Ok(()) })
    }

    /// Waits until it is complete (`PJRT_Event_Await`).
    ///
    /// # Errors
    ///
    /// The event's.
    pub fn wait(&self) -> Result<()> {
        call!(self.plugin, PJRT_Event_Await_Args { event: self.raw }).map(drop)
    }

    /// Registers a callback (`PJRT_Event_OnReady`), and gives what it will be called with.
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn on_ready(&self) -> Result<Arc<Outcome>> {
        self.on_ready_then(|| {})
    }

    /// As [`on_ready`](Self::on_ready); `also` runs inside of the callback's first call.
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn on_ready_then(&self, also: impl FnOnce() + Send + 'static) -> Result<Arc<Outcome>> {
        let outcome = Arc::new(Outcome::default());
        let callback = Callback {
            plugin: self.plugin,
            outcome: Arc::clone(&outcome),
            also: Mutex::new(Some(Box::new(also))),
        };
        // Never freed: a plugin that calls back twice is to be counted, not to crash.
        let user_arg = Box::into_raw(Box::new(callback)).cast();
        call!(
            self.plugin,
            PJRT_Event_OnReady_Args { event: self.raw, callback: Some(called_back), user_arg }
        )?;
        Ok(outcome)
    }
}

/// The callback of every event.
///
/// # Safety
///
/// Called by a plugin with the argument that `on_ready_then` gave it, and an error that is the callee's.
unsafe extern "C" fn called_back(error: *mut PJRT_Error, user_arg: *mut c_void) {
    // SAFETY: the argument is the box that `on_ready_then` made, which is never freed.
    let callback = unsafe { &*user_arg.cast::<Callback>() };
    const ON_READY: usize = 9;
    let outcome = error::take(callback.plugin, ON_READY, error).map_or(Ok(()), Err);
    let also = callback.also.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(also) = also {
        also();
    }
    callback.outcome.note(outcome);
}

/// Asks again and again, until something holds or the time is over; whether it held.
pub(crate) fn eventually(timeout: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + timeout;
    loop {
        if holds() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
