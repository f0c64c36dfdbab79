//! Events.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pjrt_sys::*;

use super::call::{call, destroyed_by};
use super::error::{Code, Error, Result};
use super::error_object;
use super::handles;
use super::plugin::Plugin;

/// An event of a plugin. Dropping it destroys it; its callbacks must be called nevertheless.
#[derive(Debug)]
pub struct Event {
    pub(crate) plugin: Plugin,
    pub(crate) raw: *mut PJRT_Event,
}

destroyed_by!(Event PJRT_Event_Destroy_Args event);

/// Records the calls of an event's callback.
#[derive(Debug, Default)]
pub struct Outcome {
    calls: Mutex<Vec<Result<()>>>,
    changed: Condvar,
}

impl Outcome {
    /// Waits for the first call and returns its error, or returns `None` at the timeout.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> Option<Result<()>> {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = self.changed.wait_timeout_while(calls, limited(timeout), |calls| calls.is_empty());
        let (calls, _) = waiting.unwrap_or_else(PoisonError::into_inner);
        if calls.is_empty() {
            IN_VAIN.fetch_add(1, Ordering::SeqCst);
        }
        calls.first().cloned()
    }

    /// Returns the number of calls of the callback.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn note(&self, outcome: Result<()>) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
        self.changed.notify_all();
    }
}

/// The argument that the plugin passes to the callback.
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
        handles::note(raw, function);
        Ok(Self { plugin, raw })
    }

    /// Returns the plugin.
    #[must_use]
    pub fn plugin(&self) -> Plugin {
        self.plugin
    }

    /// Creates an event that the host completes (`PJRT_Event_Create`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn create(plugin: Plugin) -> Result<Self> {
        let args = call!(plugin, PJRT_Event_Create_Args {})?;
        Self::from_raw(plugin, args.event, "PJRT_Event_Create")
    }

    /// Completes an event that the host created (`PJRT_Event_Set`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn set(&self, code: Code, message: &str) -> Result<()> {
        let (event, error_code) = (self.raw, PJRT_Error_Code(code.0));
        let (error_message, error_message_size) = (message.as_ptr().cast(), message.len());
        call!(self.plugin, PJRT_Event_Set_Args { event, error_code, error_message, error_message_size })
            .map(drop)
    }

    /// Returns `true` if the event is complete, with or without an error (`PJRT_Event_IsReady`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn is_ready(&self) -> Result<bool> {
        Ok(call!(self.plugin, PJRT_Event_IsReady_Args { event: self.raw })?.is_ready)
    }

    /// Returns the error of a complete event (`PJRT_Event_Error`).
    ///
    /// # Errors
    ///
    /// Returns the event's error.
    pub fn error(&self) -> Result<()> {
        call!(self.plugin, PJRT_Event_Error_Args { event: self.raw }).map(drop)
    }

    /// Queries the error twice. Returns both errors, and whether they are two objects, as they must be,
    /// because each caller destroys the error that it received.
    ///
    /// # Errors
    ///
    /// Returns an error if the table has no such function.
    pub fn error_twice(&self) -> Result<(Option<Error>, Option<Error>, bool)> {
        let mut args = [PJRT_Event_Error_Args { event: self.raw, ..PJRT_Event_Error_Args::zeroed() }; 2];
        let [first, second] = &mut args;
        let (first, second) = (self.plugin.call_raw(first)?, self.plugin.call_raw(second)?);
        let distinct = first != second;
        const EVENT_ERROR: usize = 7;
        let first = error_object::take(self.plugin, EVENT_ERROR, first);
        let second =
            if distinct { error_object::take(self.plugin, EVENT_ERROR, second) } else { first.clone() };
        Ok((first, second, distinct))
    }

    /// Returns the event's error as the error's own function table reports it, together with the error as the
    /// plugin's table reports it. Returns `None` if the event has no error, or if the error has no table.
    ///
    /// # Errors
    ///
    /// Returns an error if the table has no such function.
    #[allow(clippy::type_complexity, reason = "the only caller destructures the result immediately")]
    pub fn error_through_own_table(&self) -> Result<Option<((Code, String), Error)>> {
        let mut args = PJRT_Event_Error_Args { event: self.raw, ..PJRT_Event_Error_Args::zeroed() };
        let raw = self.plugin.call_raw(&mut args)?;
        if raw.is_null() {
            return Ok(None);
        }
        let through_own_table = error_object::through_own_table(raw);
        const EVENT_ERROR: usize = 7;
        Ok(through_own_table.zip(error_object::take(self.plugin, EVENT_ERROR, raw)))
    }

    /// Queries the payloads of the event's error (`PJRT_Error_ForEachPayload`), and returns whether that
    /// succeeded.
    ///
    /// # Errors
    ///
    /// Returns an error if the table has no such function.
    pub fn payloads_of_error(&self) -> Result<std::result::Result<(), String>> {
        let mut args = PJRT_Event_Error_Args { event: self.raw, ..PJRT_Event_Error_Args::zeroed() };
        let error = self.plugin.call_raw(&mut args)?;
        if error.is_null() {
            return Ok(Err("the event has no error".to_owned()));
        }
        let failed = error_object::payloads_fail(self.plugin, error)?;
        const EVENT_ERROR: usize = 7;
        error_object::take(self.plugin, EVENT_ERROR, error);
        Ok(if failed { Err("it returned an error".to_owned()) } else { Ok(()) })
    }

    /// Waits until the event is complete (`PJRT_Event_Await`).
    ///
    /// # Errors
    ///
    /// Returns the event's error.
    pub fn wait(&self) -> Result<()> {
        call!(self.plugin, PJRT_Event_Await_Args { event: self.raw }).map(drop)
    }

    /// Registers a callback (`PJRT_Event_OnReady`), and returns the record of its calls.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn on_ready(&self) -> Result<Arc<Outcome>> {
        self.on_ready_then(|| {})
    }

    /// The same as [`on_ready`](Self::on_ready); `also` runs within the callback's first call.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn on_ready_then(&self, also: impl FnOnce() + Send + 'static) -> Result<Arc<Outcome>> {
        let outcome = Arc::new(Outcome::default());
        let callback = Callback {
            plugin: self.plugin,
            outcome: Arc::clone(&outcome),
            also: Mutex::new(Some(Box::new(also))),
        };
        // The box is leaked, so that a second call of the callback is counted and does not crash.
        let user_arg = Box::into_raw(Box::new(callback)).cast();
        call!(
            self.plugin,
            PJRT_Event_OnReady_Args { event: self.raw, callback: Some(called_back), user_arg }
        )?;
        Ok(outcome)
    }
}

/// The callback of all events.
///
/// # Safety
///
/// The plugin calls this function with the argument that `on_ready_then` passed, and an error that the callee
/// owns.
unsafe extern "C" fn called_back(error: *mut PJRT_Error, user_arg: *mut c_void) {
    // SAFETY: the argument is the box that `on_ready_then` created, which is never freed.
    let callback = unsafe { &*user_arg.cast::<Callback>() };
    const ON_READY: usize = 9;
    let outcome = error_object::take(callback.plugin, ON_READY, error).map_or(Ok(()), Err);
    let also = callback.also.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(also) = also {
        also();
    }
    callback.outcome.note(outcome);
}

/// The maximum time of all waiting, in milliseconds.
static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);

/// The number of times that a callback or a condition was waited for in vain.
static IN_VAIN: AtomicUsize = AtomicUsize::new(0);

/// Limits the time of all later waiting for callbacks and conditions, for a plugin with which waiting is often in vain.
pub fn limit_waiting(limit: Duration) {
    LIMIT.store(limit.as_millis().try_into().unwrap_or(u64::MAX), Ordering::SeqCst);
}

/// Returns the number of times that a callback or a condition was waited for in vain since the last call of this function.
pub fn take_waits_in_vain() -> usize {
    IN_VAIN.swap(0, Ordering::SeqCst)
}

/// Returns the timeout, or the limit of [`limit_waiting`] if that is shorter.
#[must_use]
pub fn limited(timeout: Duration) -> Duration {
    timeout.min(Duration::from_millis(LIMIT.load(Ordering::SeqCst)))
}

/// Polls a condition until it holds or the timeout expires. Returns `true` if it held.
pub fn eventually(timeout: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limited(timeout);
    loop {
        if holds() {
            return true;
        }
        if Instant::now() >= end {
            IN_VAIN.fetch_add(1, Ordering::SeqCst);
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
