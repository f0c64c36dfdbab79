//! Values now or later.

use std::fmt;
use std::marker::PhantomData;

use crate::abi::guard;
use crate::abi::meeting::{Errand, Giver, Taker, meeting};
use crate::error::{Error, Result};
use crate::event::Event;

/// A value that is there, or will be.
///
/// `Pending::from(value)` is there; [`promise`] gives one that will be.
pub struct Pending<T>(pub(crate) Source<T>);

/// Where a pending value comes from.
pub(crate) enum Source<T> {
    Now(T, Event),
    Later(Taker<Delivery<T>>),
}

/// The duty to deliver a value. Dropping it delivers an INTERNAL error.
pub struct Promise<T>(Giver<Delivery<T>>);

type Delivered<T> = Result<(T, Event)>;

/// Whichever of value and receiver comes first waits for the other.
pub(crate) struct Delivery<T>(PhantomData<T>);

impl<T> Errand for Delivery<T> {
    type Value = Delivered<T>;
    type Left = Box<dyn FnOnce(Delivered<T>) + Send>;

    fn lost() -> Delivered<T> {
        Err(guard::lost("a promise was dropped before it was kept"))
    }

    fn meet(value: Delivered<T>, receiver: Self::Left) {
        receiver(value);
    }
}

/// A promise, and the value that it will deliver.
#[must_use]
pub fn promise<T>() -> (Promise<T>, Pending<T>) {
    let (giver, taker) = meeting(|| Delivery(PhantomData));
    (Promise(giver), Pending(Source::Later(taker)))
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
                Ok(value) => receiver(value),
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

    pub(crate) fn deliver(self, value: Result<(T, Event)>) {
        self.0.give(value);
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
