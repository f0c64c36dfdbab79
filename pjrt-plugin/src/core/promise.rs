//! Values that exist or are promised.

use std::fmt;
use std::marker::PhantomData;

use crate::core::error::{Error, Result};
use crate::core::event::Event;
use crate::core::oneshot::{Channel, Receiver, Sender, channel};
use crate::core::panic_guard;

/// A value that exists, or that a [`Promise`] will deliver.
///
/// `Pending::from(value)` is a value that exists; [`promise`] makes one that will be delivered.
pub struct Pending<T>(pub(crate) Source<T>);

/// The source of a pending value.
pub(crate) enum Source<T> {
    Now(T, Event),
    Later(Receiver<Delivery<T>>),
}

/// The obligation to deliver a [`Pending`] value. Dropping it delivers an INTERNAL error.
pub struct Promise<T>(Sender<Delivery<T>>);

type Delivered<T> = Result<(T, Event)>;

/// The channel from a promise to its pending value.
pub(crate) struct Delivery<T>(PhantomData<T>);

impl<T> Channel for Delivery<T> {
    type Value = Delivered<T>;
    type Continuation = Box<dyn FnOnce(Delivered<T>) + Send>;

    fn sender_dropped() -> Delivered<T> {
        Err(panic_guard::lost("a promise was dropped before it was fulfilled"))
    }

    fn resume(receiver: Self::Continuation, value: Delivered<T>) {
        receiver(value);
    }
}

/// Makes a promise, and the value that it will deliver.
#[must_use]
pub fn promise<T>() -> (Promise<T>, Pending<T>) {
    let (sender, receiver) = channel(|| Delivery(PhantomData));
    (Promise(sender), Pending(Source::Later(receiver)))
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
            Source::Later(later) => match later.try_receive() {
                Ok(value) => receiver(value),
                Err(later) => {
                    if let Some((value, receiver)) = later.resume_with(Box::new(receiver)) {
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
        self.0.send(value);
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
