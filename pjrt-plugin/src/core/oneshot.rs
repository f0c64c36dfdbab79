//! A one-shot channel with one sender, one receiver and one value.
//!
//! If the receiver is used before the value is sent, it stores a continuation, which then runs on the sender's thread.

#![allow(unsafe_code, reason = "the two ends share memory, which the end that closes second frees")]

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use crate::core::sync::{AtomicBool, Ordering, UnsafeCell};

/// A type of channel. A value of the implementing type is the sender's state, which lives until the sender sends.
pub(crate) trait Channel {
    /// The value that is sent.
    type Value;
    /// The continuation that a receiver stores before the value is sent.
    type Continuation;

    /// Returns the value that a sender sends when it is dropped.
    fn sender_dropped() -> Self::Value;

    /// Runs a continuation with the value, on the sender's thread.
    fn resume(continuation: Self::Continuation, value: Self::Value);
}

/// The memory of a channel, which the end that closes second frees.
struct Shared<C: Channel> {
    /// `true` if one end has closed. That end wrote its cell before, and accesses nothing here afterwards.
    one_closed: AtomicBool,
    value: UnsafeCell<Option<C::Value>>,
    continuation: UnsafeCell<Option<C::Continuation>>,
    /// Accessed only by the sender, and dropped when it sends.
    state: ManuallyDrop<C>,
}

/// The sending end, which dereferences to the sender's state. Dropping it sends [`Channel::sender_dropped`].
pub(crate) struct Sender<C: Channel>(NonNull<Shared<C>>);

/// The receiving end. Dropping it drops the value.
pub(crate) struct Receiver<C: Channel>(NonNull<Shared<C>>);

// SAFETY: an end moves values of these types between threads, and no two threads access a part of the channel at the same time.
unsafe impl<C: Channel<Value: Send, Continuation: Send> + Send> Send for Sender<C> {}
// SAFETY: as above; the state is dropped by the sender.
unsafe impl<C: Channel<Value: Send, Continuation: Send>> Send for Receiver<C> {}
// SAFETY: a shared reference gives access to the state only.
unsafe impl<C: Channel<Value: Send, Continuation: Send> + Sync> Sync for Sender<C> {}
// SAFETY: a shared reference gives access to nothing.
unsafe impl<C: Channel<Value: Send, Continuation: Send>> Sync for Receiver<C> {}

/// Creates a channel. `state` creates the sender's state.
#[inline(always)]
pub(crate) fn channel<C: Channel>(state: impl FnOnce() -> C) -> (Sender<C>, Receiver<C>) {
    let state = || ManuallyDrop::new(state());
    let shared = NonNull::from(Box::leak(Box::<Shared<C>>::new_uninit())).cast::<Shared<C>>();
    let at = shared.as_ptr();
    // SAFETY: the memory is new and nothing else refers to it. Each field is initialized in place.
    unsafe {
        (&raw mut (*at).one_closed).write(AtomicBool::new(false));
        (&raw mut (*at).value).write(UnsafeCell::new(None));
        (&raw mut (*at).continuation).write(UnsafeCell::new(None));
        (&raw mut (*at).state).write(state());
    }
    (Sender(shared), Receiver(shared))
}

impl<C: Channel> Sender<C> {
    /// Sends the value. If the receiver has stored a continuation, it runs in this call.
    #[inline(always)]
    pub(crate) fn send(self, value: C::Value) {
        let shared = ManuallyDrop::new(self).0;
        // SAFETY: the sender is consumed, so this is its only call of `send`.
        unsafe { send(shared, value) };
    }
}

impl<C: Channel> Deref for Sender<C> {
    type Target = C;

    #[inline]
    fn deref(&self) -> &C {
        // SAFETY: this end is open, so the memory and the state exist, and nothing else accesses the state.
        unsafe { &(*self.0.as_ptr()).state }
    }
}

impl<C: Channel> DerefMut for Sender<C> {
    #[inline]
    fn deref_mut(&mut self) -> &mut C {
        // SAFETY: as above.
        unsafe { &mut (*self.0.as_ptr()).state }
    }
}

impl<C: Channel> Drop for Sender<C> {
    #[cold]
    fn drop(&mut self) {
        // SAFETY: `Sender::send` does not drop the sender, so this is the only call.
        unsafe { send(self.0, C::sender_dropped()) };
    }
}

/// # Safety
///
/// It must be called once for a sender, which is not used afterwards.
#[inline(always)]
unsafe fn send<C: Channel>(shared: NonNull<Shared<C>>, value: C::Value) {
    // SAFETY: the cell is the sender's until it has closed.
    unsafe { (*shared.as_ptr()).value.with_mut(|cell| cell.write(Some(value))) };
    // Dropping the state may panic, and the sender must close even then.
    let _close = CloseOnDrop(shared);
    // SAFETY: the sender is open, so the memory and the state exist, and nothing else accesses the state.
    unsafe { ManuallyDrop::drop(&mut (*shared.as_ptr()).state) };
}

/// Closes a sender whose value is written.
struct CloseOnDrop<C: Channel>(NonNull<Shared<C>>);

impl<C: Channel> Drop for CloseOnDrop<C> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `send`, which creates this value, is called once for a sender.
        if let Some(shared) = unsafe { close(self.0) }
            && let (Some(value), Some(continuation)) =
                (shared.value.into_inner(), shared.continuation.into_inner())
        {
            C::resume(continuation, value);
        }
    }
}

impl<C: Channel> Receiver<C> {
    /// Returns the value, if it has been sent.
    ///
    /// # Errors
    ///
    /// Returns the receiver if the value has not been sent.
    #[inline(always)]
    pub(crate) fn try_receive(self) -> Result<C::Value, Self> {
        // SAFETY: this end is open, so the memory exists.
        if !unsafe { &(*self.0.as_ptr()).one_closed }.load(Ordering::Acquire) {
            return Err(self);
        }
        let shared = ManuallyDrop::new(self).0;
        // SAFETY: the sender has closed, so the memory belongs to this end.
        let shared = unsafe { Box::from_raw(shared.as_ptr()) };
        Ok(shared.value.into_inner().unwrap_or_else(C::sender_dropped))
    }

    /// Stores a continuation for the sender to run. If the value has been sent in the meantime, returns both instead.
    #[inline]
    pub(crate) fn resume_with(self, continuation: C::Continuation) -> Option<(C::Value, C::Continuation)> {
        let shared = ManuallyDrop::new(self).0;
        // SAFETY: the memory exists, and the cell is this end's until it has closed.
        unsafe { (*shared.as_ptr()).continuation.with_mut(|cell| cell.write(Some(continuation))) };
        // SAFETY: the receiver is consumed, so this is its only call of `close`.
        let shared = unsafe { close(shared) }?;
        shared.value.into_inner().zip(shared.continuation.into_inner())
    }
}

impl<C: Channel> Drop for Receiver<C> {
    fn drop(&mut self) {
        // SAFETY: the methods that close the receiver do not drop it, so this is the only call.
        drop(unsafe { close(self.0) });
    }
}

/// Closes an end. Returns the memory to the end that closes second.
///
/// # Safety
///
/// It must be called once for each end, which is not used afterwards.
#[inline(always)]
unsafe fn close<C: Channel>(shared: NonNull<Shared<C>>) -> Option<Box<Shared<C>>> {
    // SAFETY: the memory exists until both ends have closed.
    let one_closed = unsafe { &(*shared.as_ptr()).one_closed };
    // The end that closes first releases its writes; the end that closes second acquires them.
    if !one_closed.swap(true, Ordering::AcqRel) {
        return None;
    }
    // SAFETY: the memory came from a box, and the other end has closed and does not access it.
    Some(unsafe { Box::from_raw(shared.as_ptr()) })
}
