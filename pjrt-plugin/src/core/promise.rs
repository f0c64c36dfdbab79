//! Pending values, and the promises that deliver them.

use std::fmt;
use std::marker::PhantomData;

use crate::core::error::{Error, Result};
use crate::core::event::Event;
use crate::core::oneshot::{Channel, Receiver, Sender, channel};
use crate::core::panic_guard;

/// A value that exists already, or that a [`Promise`] will deliver: the result of
/// [`PjrtClient::buffer_from_host`](crate::PjrtClient::buffer_from_host).
///
/// `Pending::from(value)` contains an existing value. [`promise`] creates a pending value and its promise.
pub struct Pending<T>(pub(crate) Source<T>);

/// The source of a pending value.
pub(crate) enum Source<T> {
    Now(T, Event),
    Later(Receiver<Delivery<T>>),
}

/// The right to deliver a [`Pending`] value. Dropping it delivers an INTERNAL error. See [`promise`].
pub struct Promise<T>(Sender<Delivery<T>>);

type Delivered<T> = Result<(T, Event)>;

/// The channel from a promise to its pending value.
pub(crate) struct Delivery<T>(PhantomData<T>);

impl<T> Channel for Delivery<T> {
    type Value = Delivered<T>;
    type Continuation = Box<dyn FnOnce(Delivered<T>) + Send>;

    fn sender_dropped() -> Delivered<T> {
        Err(panic_guard::lost("the plugin dropped a promise (Promise) before it was fulfilled"))
    }

    fn resume(receiver: Self::Continuation, value: Delivered<T>) {
        receiver(value);
    }
}

/// Creates a promise, and the value that it will deliver.
///
/// ```
/// use pjrt_plugin::{HostBuffer, Pending, promise};
///
/// /// Uploads an array on another thread.
/// fn upload(data: HostBuffer) -> Pending<Vec<u8>> {
///     let (promise, pending) = promise();
///     std::thread::spawn(move || match data.to_vec() {
///         Ok(bytes) => promise.fulfill(bytes),
///         Err(error) => promise.fail(error),
///     });
///     pending
/// }
/// ```
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
    /// Creates a value that exists but whose content is ready only when the event completes, such as storage that a queue of
    /// the device fills. If the event fails, the content is in error.
    pub fn allocated(value: T, ready: Event) -> Self {
        Self(Source::Now(value, ready))
    }
}

impl<T: Send + 'static> Pending<T> {
    /// Passes the value to a receiver: immediately if it exists, and otherwise on the thread that delivers it.
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
    /// Delivers a value whose content is ready.
    pub fn fulfill(self, value: T) {
        self.deliver(Ok((value, Event::ready())));
    }

    /// Delivers a value whose content is ready only when the event completes.
    pub fn allocated(self, value: T, ready: Event) {
        self.deliver(Ok((value, ready)));
    }

    /// Delivers an error instead of a value.
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
