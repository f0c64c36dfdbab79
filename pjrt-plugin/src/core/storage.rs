//! Shares of storage that exists or will exist, and the states of buffers.

use crate::core::device_lock::device_lock;
use crate::core::error::{Error, Result};
use crate::core::event::{Event, EventSource};
use crate::core::promise::{Pending, Source};
use crate::core::spin_lock::{Guarded, SpinGuard};
use crate::core::sync::{Arc, Mutex, lock};

/// A share of the storage of a buffer. The storage is dropped with the last share. If there is only one share, it can be
/// converted to the storage itself.
pub(crate) enum Share<B> {
    Storage(Arc<B>),
    Promised(Arc<Slot<B>>),
    Failed(Error),
}

/// The place to which promised storage is delivered.
pub(crate) struct Slot<B>(Mutex<Option<Result<Arc<B>>>>);

impl<B> Clone for Share<B> {
    fn clone(&self) -> Self {
        match self {
            Self::Storage(storage) => Self::Storage(Arc::clone(storage)),
            Self::Promised(slot) => Self::Promised(Arc::clone(slot)),
            Self::Failed(error) => Self::Failed(error.clone()),
        }
    }
}

impl<B> Share<B> {
    /// Returns the storage, or `None` if it is not allocated yet.
    pub(crate) fn storage(&self) -> Option<Result<Arc<B>>> {
        match self {
            Self::Storage(storage) => Some(Ok(Arc::clone(storage))),
            Self::Promised(slot) => lock(&slot.0).clone(),
            Self::Failed(error) => Some(Err(error.clone())),
        }
    }

    /// Converts the share to the storage, which must be allocated.
    pub(crate) fn into_storage(self) -> Result<Arc<B>> {
        if let Self::Storage(storage) = self {
            return Ok(storage);
        }
        self.storage().unwrap_or_else(|| {
            Err(Error::internal(
                "the storage of a buffer was used before it was allocated; this is a bug in pjrt-plugin",
            ))
        })
    }
}

impl<B> Slot<B> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(None)))
    }

    /// Delivers the storage. It consumes the slot, so that the last share of the storage is the only reference to it.
    pub(crate) fn fill(slot: Arc<Self>, storage: Result<Arc<B>>) {
        *lock(&slot.0) = Some(storage);
    }
}

/// The state of a buffer, which has a share of its storage until it is deleted or donated.
///
/// ```text
///            fill                 ready event
/// promised ------> allocated -------------------> ready
///     |                |             |
///     +----------------+-------------+---> in error      (each until: deleted | donated)
/// ```
pub(crate) struct BufferState<B> {
    /// The content, which the lock of the buffer's device protects.
    content: Guarded<Content<B>>,
    /// The event that completes when the storage is allocated or has failed.
    allocated: Event,
    /// The event that completes when the data is ready or has failed.
    ready: Event,
    /// The event that completes when the data no longer depends on an action of the host. It is ready if `ready` is.
    host: Event,
}

struct Content<B> {
    share: Result<Share<B>, Gone>,
    pins: Option<Box<Pins<B>>>,
}

/// The number of times that the host has pinned a buffer, and the share that keeps the storage alive.
struct Pins<B> {
    number: usize,
    storage: Arc<B>,
}

/// The reason why a buffer has no storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gone {
    Deleted,
    Donated,
}

impl Gone {
    pub(crate) fn error(self) -> Error {
        Error::invalid_argument(match self {
            Self::Deleted => "the buffer has been deleted or donated: it was deleted",
            Self::Donated => "the buffer has been deleted or donated: an execution consumed it",
        })
    }
}

/// A share of a buffer's storage that an execution or a copy holds.
pub(crate) struct Held<B> {
    pub(crate) share: Share<B>,
    pub(crate) allocated: Event,
    pub(crate) ready: Event,
    /// The event that completes when the data no longer depends on an action of the host.
    pub(crate) host: Event,
    pub(crate) donated: bool,
}

impl<B> BufferState<B> {
    #[inline(always)]
    pub(crate) fn new(share: Share<B>, allocated: Event, ready: Event) -> Self {
        let content = Content { share: Ok(share), pins: None };
        Self { content: Guarded::new(device_lock(0), content), allocated, ready, host: Event::ready() }
    }

    /// Sets the event of the host's actions that the data depends on.
    pub(crate) fn after_host(mut self, host: Event) -> Self {
        self.host = host;
        self
    }

    /// Sets the device of the buffer, by its index in the client's devices.
    #[inline(always)]
    pub(crate) fn on_device(mut self, place: usize) -> Self {
        self.content.move_to(device_lock(place));
        self
    }

    /// Creates a buffer whose storage and data are delivered through the promise.
    pub(crate) fn promised() -> (Self, StoragePromise<B>) {
        let slot = Slot::new();
        let (allocated_source, allocated) = Event::pending();
        let (ready_source, ready) = Event::pending();
        let promise = StoragePromise {
            slot: Arc::clone(&slot),
            allocated: allocated_source,
            ready: ready_source,
            host: None,
        };
        (Self::new(Share::Promised(slot), allocated, ready), promise)
    }

    /// Creates a buffer whose storage and data are delivered through the promise after an action of the host.
    pub(crate) fn promised_by_host() -> (Self, StoragePromise<B>) {
        let (state, mut promise) = Self::promised();
        let (source, host) = Event::pending();
        promise.host = Some(source);
        (state.after_host(host), promise)
    }

    /// Creates a buffer from the author's storage.
    #[inline(always)]
    pub(crate) fn from_pending(pending: Pending<B>) -> Self
    where
        B: Send + Sync + 'static,
    {
        match pending.0 {
            Source::Now(storage, ready) => Self::allocated(Arc::new(storage), ready),
            later => {
                let (state, promise) = Self::promised();
                Pending(later).receive(|value| promise.deliver(value));
                state
            }
        }
    }

    /// Creates a buffer whose storage exists and whose data is ready when the event completes.
    #[inline(always)]
    pub(crate) fn allocated(storage: Arc<B>, ready: Event) -> Self {
        Self::new(Share::Storage(storage), Event::ready(), ready)
    }

    /// Creates a buffer in error.
    pub(crate) fn failed(error: Error) -> Self {
        let event = Event::failed(error.clone());
        Self::new(Share::Failed(error), event.clone(), event)
    }

    /// Returns the event of the data, or a failed event if the buffer is deleted or donated.
    pub(crate) fn ready_event(&self) -> Event {
        match self.gone() {
            None => self.ready.settled(),
            Some(gone) => Event::failed(gone.error()),
        }
    }

    #[inline]
    fn gone(&self) -> Option<Gone> {
        self.content.with(|content| content.share.as_ref().err().copied())
    }

    /// Returns a share for a reader, if the storage and the data are known to be ready. Executions call it for all arguments
    /// under one lock of the device.
    #[inline]
    pub(crate) fn share_if_ready(&self, guard: &mut SpinGuard<'_>) -> Option<Arc<B>> {
        if !self.ready.is_ok() {
            return None;
        }
        let share = |content: &mut Content<B>| match &content.share {
            Ok(Share::Storage(storage)) => Some(Arc::clone(storage)),
            _ => None,
        };
        self.content.with_guard(guard, share)?
    }

    /// Returns a share for an execution if the storage and the data are ready, or the buffer's own share if `donate`.
    /// Returns `None` if they are not ready or in error.
    #[cold]
    pub(crate) fn take_if_ready(&self, donate: bool) -> Result<Option<Arc<B>>> {
        if !(self.allocated.is_ok() && self.ready.is_ok()) {
            return Ok(None);
        }
        self.unwrap_promise();
        let taken = self.content.with(|content| match &content.share {
            Ok(Share::Storage(storage)) => {
                let storage = Arc::clone(storage);
                // The clone keeps the storage alive, so no code of the author runs under the lock.
                if donate {
                    content.share = Err(Gone::Donated);
                }
                Ok(Some(storage))
            }
            Ok(Share::Promised(_) | Share::Failed(_)) => Ok(None),
            Err(gone) => Err(*gone),
        });
        taken.map_err(Gone::error)
    }

    /// Replaces the slot of storage that has been delivered with the storage.
    fn unwrap_promise(&self) {
        let slot = self.content.with(|content| match &content.share {
            Ok(Share::Promised(slot)) => Some(Arc::clone(slot)),
            _ => None,
        });
        let Some(slot) = slot else { return };
        let Some(Ok(storage)) = lock(&slot.0).clone() else { return };
        let old = self.content.with(|content| match &mut content.share {
            Ok(share @ Share::Promised(_)) => Some(std::mem::replace(share, Share::Storage(storage))),
            _ => None,
        });
        drop(old);
    }

    /// Returns a share for a reader.
    pub(crate) fn share(&self) -> Result<Held<B>> {
        let share = self.content.with(|content| content.share.clone());
        Ok(self.hold(share.map_err(Gone::error)?, false))
    }

    /// Donates the buffer and returns its own share.
    pub(crate) fn donate(&self) -> Result<Held<B>> {
        let share = self.give_up(Gone::Donated);
        Ok(self.hold(share.map_err(Gone::error)?, true))
    }

    /// Takes the buffer's own share, unless the buffer is deleted or donated.
    fn give_up(&self, how: Gone) -> Result<Share<B>, Gone> {
        self.content.with(|content| {
            if let Err(gone) = &content.share {
                return Err(*gone);
            }
            std::mem::replace(&mut content.share, Err(how))
        })
    }

    /// Undoes a donation.
    pub(crate) fn restore(&self, share: Share<B>) {
        let mut share = Some(share);
        self.content.with(|content| {
            if content.share.as_ref().err() == Some(&Gone::Donated)
                && let Some(share) = share.take()
            {
                content.share = Ok(share);
            }
        });
    }

    fn hold(&self, share: Share<B>, donated: bool) -> Held<B> {
        let (allocated, ready) = (self.allocated.settled(), self.ready.settled());
        Held { share, allocated, ready, host: self.host.settled(), donated }
    }

    /// Deletes the buffer.
    pub(crate) fn delete(&self) {
        // The share is dropped after the lock is released, because dropping the storage runs code of the author.
        drop(self.give_up(Gone::Deleted));
    }

    pub(crate) fn is_deleted(&self) -> bool {
        self.gone().is_some()
    }

    /// Waits until the storage is allocated, and returns it.
    pub(crate) fn wait_for_storage(&self) -> Result<Arc<B>> {
        let held = self.share()?;
        held.allocated.wait()?;
        held.share.into_storage()
    }

    /// Keeps the storage alive until the host has unpinned it as often as it has pinned it.
    pub(crate) fn pin(&self) -> Result<()> {
        let mut pins = Some(Box::new(Pins { number: 1, storage: self.wait_for_storage()? }));
        self.content.with(|content| match &mut content.pins {
            Some(pins) => pins.number += 1,
            none => *none = pins.take(),
        });
        Ok(())
    }

    pub(crate) fn unpin(&self) -> Result<()> {
        let unpinned = self.content.with(|content| {
            let pins = content.pins.as_mut()?;
            pins.number -= 1;
            Some(if pins.number == 0 { content.pins.take() } else { None })
        });
        match unpinned {
            Some(last) => drop(last),
            None => {
                return Err(Error::invalid_argument(
                    "Attempting to decrease reference on a buffer with zero reference count.",
                ));
            }
        }
        Ok(())
    }

    /// Returns the storage if the host has pinned it, even after the buffer is deleted or donated.
    pub(crate) fn pinned(&self) -> Option<Arc<B>> {
        self.content.with(|content| content.pins.as_ref().map(|pins| Arc::clone(&pins.storage)))
    }
}

/// The promise of a buffer's storage and data.
pub(crate) struct StoragePromise<B> {
    slot: Arc<Slot<B>>,
    allocated: EventSource,
    ready: EventSource,
    /// The source of the event of the host's actions, if the data depends on any.
    host: Option<EventSource>,
}

impl<B> StoragePromise<B> {
    /// Records that the host has acted: the data depends on further actions only until the event completes.
    pub(crate) fn host_has_acted(&mut self, further: &Event) {
        if let Some(source) = self.host.take() {
            further.on_ready(move |_| source.complete(Ok(())));
        }
    }

    /// Delivers storage whose data is ready when the event completes.
    pub(crate) fn deliver(self, value: Result<(B, Event)>) {
        self.deliver_shared(value.map(|(storage, ready)| (Arc::new(storage), ready)));
    }

    /// Delivers storage, of which there may be other shares, as [`deliver`](Self::deliver) does.
    pub(crate) fn deliver_shared(mut self, value: Result<(Arc<B>, Event)>) {
        self.host_has_acted(&Event::ready());
        match value {
            Ok((storage, ready)) => {
                Slot::fill(self.slot, Ok(storage));
                self.allocated.complete(Ok(()));
                let source = self.ready;
                ready.on_ready(move |outcome| source.complete(outcome));
            }
            Err(error) => {
                Slot::fill(self.slot, Err(error.clone()));
                self.allocated.complete(Err(error.clone()));
                self.ready.complete(Err(error));
            }
        }
    }
}

impl<B> Held<B> {
    /// Returns the outcome of the data, or `None` while it is pending.
    pub(crate) fn outcome(&self) -> Option<Result<()>> {
        match self.allocated.outcome()? {
            Ok(()) => self.ready.outcome(),
            Err(error) => Some(Err(error)),
        }
    }
}
