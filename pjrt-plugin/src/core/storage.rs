//! Shares on storage that exists or will exist, and the state of a buffer that is made of them.

use crate::core::device_lock::device_lock;
use crate::core::error::{Error, Result};
use crate::core::event::{Event, EventSource};
use crate::core::promise::{Pending, Source};
use crate::core::spin_lock::{Guarded, SpinGuard};
use crate::core::sync::{Arc, Mutex, lock};

/// A share in the storage of a buffer. The storage goes when the last share does; a share that is the only one can be
/// turned into the storage itself.
pub(crate) enum Share<B> {
    Storage(Arc<B>),
    Promised(Arc<Slot<B>>),
    Failed(Error),
}

/// Where promised storage arrives.
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
    /// The storage, once it is allocated.
    pub(crate) fn storage(&self) -> Option<Result<Arc<B>>> {
        match self {
            Self::Storage(storage) => Some(Ok(Arc::clone(storage))),
            Self::Promised(slot) => lock(&slot.0).clone(),
            Self::Failed(error) => Some(Err(error.clone())),
        }
    }

    /// Gives the share up for the storage.
    pub(crate) fn into_storage(self) -> Result<Arc<B>> {
        if let Self::Storage(storage) = self {
            return Ok(storage);
        }
        self.storage().unwrap_or_else(|| Err(Error::internal("storage was used before it was allocated")))
    }
}

impl<B> Slot<B> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(None)))
    }

    /// Lets the storage arrive. The slot is given up first, so that a share that is the only one knows it.
    pub(crate) fn fill(slot: Arc<Self>, storage: Result<Arc<B>>) {
        *lock(&slot.0) = Some(storage);
    }
}

/// The life of a buffer: it has a share on its storage until it is deleted or donated.
///
/// ```text
///            fill                 ready event
/// promised ------> allocated -------------------> ready
///     |                |             |
///     +----------------+-------------+---> in error      (each until: deleted | donated)
/// ```
pub(crate) struct BufferState<B> {
    /// Behind the lock of the buffer's device.
    content: Guarded<Content<B>>,
    /// Complete once the storage exists (or never will).
    allocated: Event,
    /// Complete once the data is there (or never will be).
    ready: Event,
}

struct Content<B> {
    share: Result<Share<B>, Gone>,
    pins: Option<Box<Pins<B>>>,
}

/// How often the host has pinned a buffer, and what keeps the storage for it.
struct Pins<B> {
    number: usize,
    storage: Arc<B>,
}

/// Why a buffer has no storage any more.
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

/// What an execution or a copy holds of a buffer.
pub(crate) struct Held<B> {
    pub(crate) share: Share<B>,
    pub(crate) allocated: Event,
    pub(crate) ready: Event,
    pub(crate) donated: bool,
}

impl<B> BufferState<B> {
    #[inline(always)]
    pub(crate) fn new(share: Share<B>, allocated: Event, ready: Event) -> Self {
        let content = Content { share: Ok(share), pins: None };
        Self { content: Guarded::new(device_lock(0), content), allocated, ready }
    }

    /// The state of a buffer on the device at that place among the client's.
    #[inline(always)]
    pub(crate) fn on_device(mut self, place: usize) -> Self {
        self.content.move_to(device_lock(place));
        self
    }

    /// A buffer whose storage and data arrive through the promise.
    pub(crate) fn promised() -> (Self, StoragePromise<B>) {
        let slot = Slot::new();
        let (allocated_source, allocated) = Event::pending();
        let (ready_source, ready) = Event::pending();
        let promise =
            StoragePromise { slot: Arc::clone(&slot), allocated: allocated_source, ready: ready_source };
        (Self::new(Share::Promised(slot), allocated, ready), promise)
    }

    /// A buffer of what an author gave.
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

    /// A buffer whose storage exists and whose data is there once the event is complete.
    #[inline(always)]
    pub(crate) fn allocated(storage: Arc<B>, ready: Event) -> Self {
        Self::new(Share::Storage(storage), Event::ready(), ready)
    }

    /// A buffer that will never have data.
    pub(crate) fn failed(error: Error) -> Self {
        let event = Event::failed(error.clone());
        Self::new(Share::Failed(error), event.clone(), event)
    }

    /// The event that the data is there; an error if the buffer is gone.
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

    /// A share for a reader, if storage and data are known to be there. Executions ask for those of all their arguments, under the
    /// lock of the device.
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

    /// What an execution gets if storage and data are there: a share, or the buffer's own, which is donated from now on. Nothing
    /// if they are not, or never will be.
    #[cold]
    pub(crate) fn take_if_ready(&self, donate: bool) -> Result<Option<Arc<B>>> {
        if !(self.allocated.is_ok() && self.ready.is_ok()) {
            return Ok(None);
        }
        self.unwrap_promise();
        let taken = self.content.with(|content| match &content.share {
            Ok(Share::Storage(storage)) => {
                let storage = Arc::clone(storage);
                // The clone keeps the storage, so nothing of the author's is dropped here.
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

    /// The way to storage that has arrived is not needed any more.
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

    /// A share for a reader.
    pub(crate) fn share(&self) -> Result<Held<B>> {
        let share = self.content.with(|content| content.share.clone());
        Ok(self.hold(share.map_err(Gone::error)?, false))
    }

    /// The buffer's own share: it is donated from now on.
    pub(crate) fn donate(&self) -> Result<Held<B>> {
        let share = self.give_up(Gone::Donated);
        Ok(self.hold(share.map_err(Gone::error)?, true))
    }

    /// Takes the buffer's share, unless it is gone.
    fn give_up(&self, how: Gone) -> Result<Share<B>, Gone> {
        self.content.with(|content| {
            if let Err(gone) = &content.share {
                return Err(*gone);
            }
            std::mem::replace(&mut content.share, Err(how))
        })
    }

    /// Undoes a donation that came to nothing.
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
        Held { share, allocated: self.allocated.settled(), ready: self.ready.settled(), donated }
    }

    /// Gives up the buffer's share.
    pub(crate) fn delete(&self) {
        // The author's storage may do anything when it is dropped, so not under the lock.
        drop(self.give_up(Gone::Deleted));
    }

    pub(crate) fn is_deleted(&self) -> bool {
        self.gone().is_some()
    }

    /// The storage, waiting until it is allocated.
    pub(crate) fn wait_for_storage(&self) -> Result<Arc<B>> {
        let held = self.share()?;
        held.allocated.wait()?;
        held.share.into_storage()
    }

    /// Keeps the storage where it is until the host has unpinned it as often as it has pinned it.
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

    /// The storage that the host has pinned, also after the buffer is gone.
    pub(crate) fn pinned(&self) -> Option<Arc<B>> {
        self.content.with(|content| content.pins.as_ref().map(|pins| Arc::clone(&pins.storage)))
    }
}

/// The duty to give a buffer its storage and its data.
pub(crate) struct StoragePromise<B> {
    slot: Arc<Slot<B>>,
    allocated: EventSource,
    ready: EventSource,
}

impl<B> StoragePromise<B> {
    /// Delivers storage whose data is there once the event is complete.
    pub(crate) fn deliver(self, value: Result<(B, Event)>) {
        self.deliver_shared(value.map(|(storage, ready)| (Arc::new(storage), ready)));
    }

    /// As [`deliver`](Self::deliver), with storage that others may share.
    pub(crate) fn deliver_shared(self, value: Result<(Arc<B>, Event)>) {
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
    /// How the data came to be: nothing while it is not there.
    pub(crate) fn outcome(&self) -> Option<Result<()>> {
        match self.allocated.outcome()? {
            Ok(()) => self.ready.outcome(),
            Err(error) => Some(Err(error)),
        }
    }
}
