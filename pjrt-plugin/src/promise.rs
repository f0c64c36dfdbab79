//! Values now or later.

use std::fmt;

use crate::abi::guard;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::sync::{Arc, Mutex, lock};

/// A value that is there, or will be.
///
/// `Pending::from(value)` is there; [`promise`] gives one that will be.
pub struct Pending<T>(pub(crate) Source<T>);

/// Where a pending value comes from.
pub(crate) enum Source<T> {
    Now(T, Event),
    Later(Arc<Shared<T>>),
}

/// The duty to deliver a value. Dropping it delivers an INTERNAL error.
pub struct Promise<T>(Option<Arc<Shared<T>>>);

type Receiver<T> = Box<dyn FnOnce(Result<(T, Event)>) + Send>;

/// Whichever of value and receiver comes first waits here for the other.
pub(crate) struct Shared<T>(Mutex<Rendezvous<T>>);

enum Rendezvous<T> {
    Empty,
    Value(Result<(T, Event)>),
    Receiver(Receiver<T>),
}

/// A promise, and the value that it will deliver.
#[must_use]
pub fn promise<T>() -> (Promise<T>, Pending<T>) {
    let shared = Arc::new(Shared(Mutex::new(Rendezvous::Empty)));
    (Promise(Some(Arc::clone(&shared))), Pending(Source::Later(shared)))
}

impl<T> From<T> for Pending<T> {
    fn from(value: T) -> Self {
        Self(Source::Now(value, Event::ready()))
    }
}

impl<T> Pending<T> {
    /// A value that exists but whose content is complete only when the event is: storage that a queue of the device
    /// still fills. If the event fails, so does the value.
    pub fn allocated(value: T, ready: Event) -> Self {
        Self(Source::Now(value, ready))
    }
}

impl<T: Send + 'static> Pending<T> {
    /// Hands the value over: at once if it is there, otherwise on the thread that delivers it.
    pub(crate) fn receive(self, receiver: impl FnOnce(Result<(T, Event)>) + Send + 'static) {
        match self.0 {
            Source::Now(value, ready) => receiver(Ok((value, ready))),
            Source::Later(shared) => {
                let mut state = lock(&shared.0);
                match std::mem::replace(&mut *state, Rendezvous::Empty) {
                    Rendezvous::Value(value) => {
                        drop(state);
                        receiver(value);
                    }
                    Rendezvous::Empty | Rendezvous::Receiver(_) => {
                        *state = Rendezvous::Receiver(Box::new(receiver));
                    }
                }
            }
        }
    }
}

impl<T> Shared<T> {
    fn deliver(&self, value: Result<(T, Event)>) {
        let mut state = lock(&self.0);
        match std::mem::replace(&mut *state, Rendezvous::Empty) {
            Rendezvous::Receiver(receiver) => {
                drop(state);
                receiver(value);
            }
            Rendezvous::Empty | Rendezvous::Value(_) => *state = Rendezvous::Value(value),
        }
    }
}

impl<T> Promise<T> {
    /// Delivers the value, complete.
    pub fn fulfil(self, value: T) {
        self.deliver(Ok((value, Event::ready())));
    }

    /// Delivers a value that exists but whose content is complete only when the event is.
    pub fn allocated(self, value: T, ready: Event) {
        self.deliver(Ok((value, ready)));
    }

    /// Delivers an error instead.
    pub fn fail(self, error: Error) {
        self.deliver(Err(error));
    }

    pub(crate) fn deliver(mut self, value: Result<(T, Event)>) {
        if let Some(shared) = self.0.take() {
            shared.deliver(value);
        }
    }
}

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        if let Some(shared) = self.0.take() {
            shared.deliver(Err(guard::lost("a promise was dropped before it was kept")));
        }
    }
}

impl<T> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Source::Now(_, ready) => write!(f, "Pending(allocated, {ready:?})"),
            Source::Later(_) => f.write_str("Pending(promised)"),
        }
    }
}

impl<T> fmt::Debug for Promise<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Promise")
    }
}
