//! Events, which represent the completion of asynchronous operations.

use std::fmt;
use std::mem;

use crate::core::callbacks::{Callback, call_back};
use crate::core::error::{Error, Result};
use crate::core::sync::{Arc, AtomicBool, AtomicU8, Condvar, Mutex, MutexGuard, Ordering, lock, wait};
use crate::core::{fork, panic_guard};

/// The completion of an asynchronous operation, with or without an error. A clone refers to the same completion.
///
/// An event that is ready when it is created needs neither an allocation nor a lock.
///
/// ```
/// use pjrt_plugin::{Error, Event};
///
/// let (source, event) = Event::pending();
/// event.on_ready(|outcome| println!("the copy is complete: {outcome:?}"));
/// std::thread::spawn(move || source.complete(Err(Error::data_loss("parity error"))));
/// assert_eq!(event.wait().unwrap_err().message(), "parity error");
/// ```
#[derive(Clone)]
pub struct Event(Option<Arc<State>>);

/// The right to complete an [`Event`]; see its example. Dropping it completes the event with an INTERNAL error.
pub struct EventSource(Option<Arc<State>>);

/// The state of an event. `phase` indicates without a lock whether the event is complete, and whether its completion must take
/// the lock because there are waiting threads or callbacks. The other fields change under the lock; `error` does not change
/// after `phase` is OK or FAILED.
pub(crate) struct State {
    pub(crate) phase: AtomicU8,
    /// `true` if the event has no source because the host created it and has not set it yet.
    pub(crate) left_to_host: AtomicBool,
    pub(crate) inner: Mutex<Inner>,
    pub(crate) completed: Condvar,
}

#[derive(Default)]
pub(crate) struct Inner {
    pub(crate) error: Option<Error>,
    pub(crate) waiting: Vec<Callback>,
    /// The number of blocked threads. If it is zero, the system call that wakes them is skipped.
    pub(crate) blocked: usize,
}

/// Pending, without waiting threads or callbacks.
const PENDING: u8 = 0;
/// Pending, with waiting threads or callbacks.
const AWAITED: u8 = 1;
pub(crate) const OK: u8 = 2;
const FAILED: u8 = 3;

impl State {
    #[inline]
    fn new(phase: u8, error: Option<Error>) -> Arc<Self> {
        let inner = Inner { error, ..Inner::default() };
        Arc::new(Self {
            phase: AtomicU8::new(phase),
            left_to_host: AtomicBool::new(false),
            inner: Mutex::new(inner),
            completed: Condvar::new(),
        })
    }

    /// Returns whether it is complete, with or without an error.
    #[inline]
    pub(crate) fn is_complete(&self) -> bool {
        self.phase.load(Ordering::Acquire) >= OK
    }

    /// Returns the outcome, or `None` while it is pending.
    pub(crate) fn outcome(&self) -> Option<Result<()>> {
        match self.phase.load(Ordering::Acquire) {
            PENDING | AWAITED => None,
            OK => Some(Ok(())),
            _ => Some(self.failure()),
        }
    }

    /// Returns the outcome of an event whose phase is FAILED.
    fn failure(&self) -> Result<()> {
        if fork::is_child() {
            // A thread that does not exist in this process may hold the lock.
            let Ok(inner) = self.inner.try_lock() else { return Err(fork::refusal()) };
            return inner.error.clone().map_or(Ok(()), Err);
        }
        lock(&self.inner).error.clone().map_or(Ok(()), Err)
    }

    /// Completes the event. Only its source calls this, once.
    #[inline]
    fn complete(&self, outcome: Result<()>) {
        if outcome.is_ok() {
            let alone = self.phase.compare_exchange(PENDING, OK, Ordering::Release, Ordering::Relaxed);
            if alone.is_ok() {
                return;
            }
        }
        self.complete_and_tell(outcome);
    }

    #[cold]
    fn complete_and_tell(&self, outcome: Result<()>) {
        let (waiting, blocked) = {
            let mut inner = lock(&self.inner);
            inner.error = outcome.as_ref().err().cloned();
            self.phase.store(if outcome.is_ok() { OK } else { FAILED }, Ordering::Release);
            (mem::take(&mut inner.waiting), inner.blocked)
        };
        if blocked > 0 {
            self.completed.notify_all();
        }
        if !waiting.is_empty() {
            call_back(waiting, &outcome);
        }
    }

    /// Locks an event that is not complete, so that its completion takes the lock too. Returns `None` if it is complete.
    fn lock_pending(&self) -> Option<MutexGuard<'_, Inner>> {
        let inner = lock(&self.inner);
        let phase = self.phase.compare_exchange(PENDING, AWAITED, Ordering::Acquire, Ordering::Acquire);
        matches!(phase, Ok(_) | Err(AWAITED)).then_some(inner)
    }

    /// Waits until it is complete.
    pub(crate) fn wait(&self) -> Result<()> {
        if fork::is_child() {
            return self.outcome().unwrap_or_else(|| Err(fork::refusal()));
        }
        if let Some(mut inner) = self.lock_pending() {
            inner.blocked += 1;
            while !self.is_complete() {
                inner = wait(&self.completed, inner);
            }
            inner.blocked -= 1;
        }
        self.outcome().unwrap_or(Ok(()))
    }
}

impl Event {
    /// Creates a pending event and the source that completes it.
    #[must_use]
    #[inline]
    pub fn pending() -> (EventSource, Self) {
        let state = State::new(PENDING, None);
        (EventSource(Some(Arc::clone(&state))), Self(Some(state)))
    }

    /// Creates an event that is complete without an error.
    #[must_use]
    pub const fn ready() -> Self {
        Self(None)
    }

    /// Creates an event that is complete with an error.
    #[must_use]
    pub fn failed(error: Error) -> Self {
        Self(Some(State::new(FAILED, Some(error))))
    }

    /// Returns whether the event is complete, with or without an error. Does not wait.
    #[must_use]
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.0.as_ref().is_none_or(|state| state.is_complete())
    }

    /// Returns the same event, or [`ready`](Self::ready) if it is complete without an error, which owns no memory.
    #[must_use]
    #[inline]
    pub(crate) fn settled(&self) -> Self {
        match &self.0 {
            Some(state) if state.phase.load(Ordering::Acquire) != OK => Self(Some(Arc::clone(state))),
            _ => Self(None),
        }
    }

    /// Returns whether the event is complete without an error.
    #[inline]
    pub(crate) fn is_ok(&self) -> bool {
        self.0.as_ref().is_none_or(|state| state.phase.load(Ordering::Acquire) == OK)
    }

    /// Returns the shared state, or `None` for an event without one, which is complete without an error.
    #[inline]
    pub(crate) fn into_state(self) -> Option<Arc<State>> {
        self.0
    }

    /// Creates an event with a shared state.
    #[inline]
    pub(crate) fn of(state: Arc<State>) -> Self {
        Self(Some(state))
    }

    /// Creates a pending event whose source is taken later.
    pub(crate) fn left_to_host() -> Arc<State> {
        let state = State::new(PENDING, None);
        state.left_to_host.store(true, Ordering::Relaxed);
        state
    }

    /// Returns the source of an event that was created without one, on the first call.
    #[inline]
    pub(crate) fn take_source(&self) -> Option<EventSource> {
        let state = self.0.as_ref().filter(|state| state.left_to_host.load(Ordering::Relaxed))?;
        state.left_to_host.swap(false, Ordering::Relaxed).then(|| EventSource(Some(Arc::clone(state))))
    }

    /// Creates a distinct event that completes with the outcome of this one.
    pub(crate) fn follower(&self) -> Arc<State> {
        let follower = State::new(PENDING, None);
        let source = EventSource(Some(Arc::clone(&follower)));
        self.on_ready(move |outcome| source.complete(outcome));
        follower
    }

    /// Returns the outcome, or `None` while the event is pending. Does not wait.
    #[must_use]
    pub fn outcome(&self) -> Option<Result<()>> {
        self.0.as_ref().map_or(Some(Ok(())), |state| state.outcome())
    }

    /// Waits until the event is complete.
    ///
    /// # Errors
    ///
    /// Returns the error with which the event was completed.
    pub fn wait(&self) -> Result<()> {
        self.0.as_ref().map_or(Ok(()), |state| state.wait())
    }

    /// Calls a callback exactly once with the outcome: immediately if the event is complete, and otherwise on the thread
    /// that completes it. No lock is held during the call. The callback is called even if all clones of the event are
    /// dropped. It must not wait for another event, whose completion may have to run later on the same thread.
    pub fn on_ready(&self, callback: impl FnOnce(Result<()>) + Send + 'static) {
        let Some(state) = &self.0 else { return callback(Ok(())) };
        if fork::is_child() {
            // The thread that would complete it may not exist in this process.
            return callback(state.outcome().unwrap_or_else(|| Err(fork::refusal())));
        }
        if !state.is_complete()
            && let Some(mut inner) = state.lock_pending()
        {
            inner.waiting.push(Box::new(callback));
            return;
        }
        callback(state.outcome().unwrap_or(Ok(())));
    }

    /// Creates an event that completes when all the given events are complete, with the error of the first one in the list
    /// that has an error.
    #[must_use]
    pub fn all(events: Vec<Event>) -> Self {
        let pending: Vec<Event> = events.iter().filter(|event| !event.is_ready()).cloned().collect();
        let error = move || events.iter().find_map(|event| event.outcome()?.err());
        if pending.is_empty() {
            return error().map_or_else(Self::ready, Self::failed);
        }
        let (source, all) = Self::pending();
        after(pending, move || source.complete(error().map_or(Ok(()), Err)));
        all
    }

    /// Creates an event that completes when this one does, without its error. Whoever waits only for the end of earlier work, such as
    /// for memory that it uses, must not fail because that work failed.
    ///
    /// ```
    /// use pjrt_plugin::{Error, Event};
    ///
    /// let (source, copy) = Event::pending();
    /// let is_free = copy.without_error();
    /// source.complete(Err(Error::data_loss("parity error")));
    /// assert!(copy.wait().is_err() && is_free.wait().is_ok());
    /// ```
    #[must_use]
    pub fn without_error(&self) -> Self {
        match self.outcome() {
            Some(_) => Self::ready(),
            None => {
                let (source, ended) = Self::pending();
                self.on_ready(|_| source.complete(Ok(())));
                ended
            }
        }
    }
}

/// Runs a function when all events are complete: immediately if they are, and otherwise on the thread that completes the
/// last one.
pub(crate) fn after(events: Vec<Event>, run: impl FnOnce() + Send + 'static) {
    let mut events = events.into_iter();
    match events.find(|event| !event.is_ready()) {
        None => run(),
        Some(event) => {
            let rest: Vec<Event> = events.collect();
            event.on_ready(move |_| after(rest, run_boxed(run)));
        }
    }
}

/// Erases the type of a closure, so that [`after`] can be used recursively.
fn run_boxed(run: impl FnOnce() + Send + 'static) -> Box<dyn FnOnce() + Send> {
    Box::new(run)
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.outcome() {
            None => f.write_str("Event(pending)"),
            Some(Ok(())) => f.write_str("Event(ready)"),
            Some(Err(error)) => write!(f, "Event({error:?})"),
        }
    }
}

impl EventSource {
    /// Completes the event. Its callbacks run on this thread before this returns, except in deeply nested callbacks, where
    /// they run later.
    #[inline]
    pub fn complete(mut self, outcome: Result<()>) {
        if let Some(state) = self.0.take() {
            state.complete(outcome);
        }
    }
}

impl Drop for EventSource {
    fn drop(&mut self) {
        if let Some(state) = self.0.take() {
            state.complete(Err(panic_guard::lost(
                "the plugin dropped the source of an event (EventSource) before it was completed",
            )));
        }
    }
}

impl fmt::Debug for EventSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventSource")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::core::error::ErrorCode;

    #[test]
    fn all_waits_for_all_and_has_the_first_error_in_order() {
        let (first, one) = Event::pending();
        let (second, two) = Event::pending();
        let all = Event::all(vec![Event::ready(), one, two]);
        second.complete(Err(Error::aborted("second")));
        assert!(!all.is_ready());
        first.complete(Err(Error::cancelled("first")));
        assert_eq!(all.wait().unwrap_err().message(), "first");
        assert!(Event::all(vec![]).is_ready());
    }

    #[test]
    fn a_dropped_source_fails_its_event() {
        let (source, event) = Event::pending();
        drop(source);
        assert_eq!(event.wait().unwrap_err().code(), ErrorCode::Internal);
    }

    #[test]
    fn a_callback_that_panics_does_not_keep_others_from_running() {
        let (source, event) = Event::pending();
        let (sender, receiver) = channel();
        event.on_ready(|_| panic!("on purpose"));
        event.on_ready(move |outcome| sender.send(outcome).unwrap());
        source.complete(Ok(()));
        receiver.try_recv().unwrap().unwrap();
    }

    #[test]
    fn a_chain_of_many_events_does_not_become_a_deep_stack() {
        let (first, mut last) = Event::pending();
        for _ in 0..100_000 {
            let (source, next) = Event::pending();
            last.on_ready(move |outcome| source.complete(outcome));
            last = next;
        }
        first.complete(Err(Error::data_loss("at the start")));
        assert_eq!(last.outcome().unwrap().unwrap_err().message(), "at the start");
    }

    #[test]
    fn many_events_are_waited_for_one_after_the_other() {
        let (sources, events): (Vec<_>, Vec<_>) = (0..1000).map(|_| Event::pending()).unzip();
        let (sender, receiver) = channel();
        after(events, move || sender.send(()).unwrap());
        for source in sources {
            assert!(receiver.try_recv().is_err());
            source.complete(Ok(()));
        }
        receiver.try_recv().unwrap();
    }
}
