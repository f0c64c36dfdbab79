//! Values now or later.

use std::fmt;

use crate::abi::guard;
use crate::abi::meeting::{Giver, Taker, meeting};
use crate::error::{Error, Result};
use crate::event::Event;

/// A value that is there, or will be.
///
/// `Pending::from(value)` is there; [`promise`] gives one that will be.
pub struct Pending<T>(pub(crate) Source<T>);

/// Where a pending value comes from.
pub(crate) enum Source<T> {
    Now(T, Event),
    Later(Taker<Delivered<T>, Receiver<T>>),
}

/// The duty to deliver a value. Dropping it delivers an INTERNAL error.
pub struct Promise<T>(Option<Giver<Delivered<T>, Receiver<T>>>);

type Delivered<T> = Result<(T, Event)>;
type Receiver<T> = Box<dyn FnOnce(Delivered<T>) + Send>;

/// A promise, and the value that it will deliver.
#[must_use]
pub fn promise<T>() -> (Promise<T>, Pending<T>) {
    let (giver, taker) = meeting();
    (Promise(Some(giver)), Pending(Source::Later(taker)))
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
            Source::Later(taker) => match taker.try_take() {
                Ok(Some(value)) => receiver(value),
                // A promise is never dropped without a value.
                Ok(None) => {}
                Err(taker) => {
                    if let Some((value, receiver)) = taker.leave(Box::new(receiver)) {
                        receiver(value);
                    }
                }
            },
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
        if let Some(giver) = self.0.take() {
            give(giver, value);
        }
    }
}

fn give<T>(giver: Giver<Delivered<T>, Receiver<T>>, value: Delivered<T>) {
    if let Some((value, receiver)) = giver.give(value) {
        receiver(value);
    }
}

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        if let Some(giver) = self.0.take() {
            give(giver, Err(guard::lost("a promise was dropped before it was kept")));
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
