//! A meeting of two, each with something for the other: who comes first leaves it and goes, who comes second gets both.

use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use crate::sync::{AtomicBool, Ordering, UnsafeCell};

/// Where the two meet. It belongs to whoever comes second.
struct Place<A, B> {
    /// Whether one has come. It wrote its own cell before, and touches nothing here after.
    one_came: AtomicBool,
    given: UnsafeCell<Option<A>>,
    left: UnsafeCell<Option<B>>,
}

/// The end of the one that brings a value. Dropping it brings none.
pub(crate) struct Giver<A, B>(NonNull<Place<A, B>>);

/// The end of the one that wants the value, and leaves something if it is not there yet. Dropping it leaves nothing.
pub(crate) struct Taker<A, B>(NonNull<Place<A, B>>);

// SAFETY: an end gives its thread an `A` and a `B` that others made, or gives its own to another thread, and no two threads look at
// either at the same time.
unsafe impl<A: Send, B: Send> Send for Giver<A, B> {}
// SAFETY: as above.
unsafe impl<A: Send, B: Send> Send for Taker<A, B> {}
// SAFETY: nothing can be done with a shared reference.
unsafe impl<A: Send, B: Send> Sync for Giver<A, B> {}
// SAFETY: as above.
unsafe impl<A: Send, B: Send> Sync for Taker<A, B> {}

/// The two ends of a meeting.
#[inline]
pub(crate) fn meeting<A, B>() -> (Giver<A, B>, Taker<A, B>) {
    let place = Box::new(Place {
        one_came: AtomicBool::new(false),
        given: UnsafeCell::new(None),
        left: UnsafeCell::new(None),
    });
    let place = NonNull::from(Box::leak(place));
    (Giver(place), Taker(place))
}

impl<A, B> Giver<A, B> {
    /// Brings the value. Whoever comes second gets it, with what the other has left.
    #[inline]
    pub(crate) fn give(self, value: A) -> Option<(A, B)> {
        let place = ManuallyDrop::new(self).0;
        // SAFETY: this end has not come before and will not again, and the cell is its own.
        let place = unsafe { come(place, |place| place.given.with_mut(|given| given.write(Some(value)))) }?;
        place.given.into_inner().zip(place.left.into_inner())
    }
}

impl<A, B> Taker<A, B> {
    /// The value, if it is there. Nothing is, if the other end was dropped.
    ///
    /// # Errors
    ///
    /// This end, if the other has not come.
    #[inline]
    pub(crate) fn try_take(self) -> Result<Option<A>, Self> {
        // SAFETY: this end has not come, so the place is there.
        if !unsafe { self.0.as_ref() }.one_came.load(Ordering::Acquire) {
            return Err(self);
        }
        let place = ManuallyDrop::new(self).0;
        // SAFETY: the other end has come, so the place belongs to this one.
        Ok(unsafe { Box::from_raw(place.as_ptr()) }.given.into_inner())
    }

    /// Leaves something. Whoever comes second gets it, with the value.
    #[inline]
    pub(crate) fn leave(self, what: B) -> Option<(A, B)> {
        let place = ManuallyDrop::new(self).0;
        // SAFETY: this end has not come before and will not again, and the cell is its own.
        let place = unsafe { come(place, |place| place.left.with_mut(|left| left.write(Some(what)))) }?;
        place.given.into_inner().zip(place.left.into_inner())
    }
}

/// Fills one's own cell; gives the place to whoever comes second.
///
/// # Safety
///
/// Each end comes once, and `fill` touches no cell but that of its end.
#[inline]
unsafe fn come<A, B>(
    place: NonNull<Place<A, B>>,
    fill: impl FnOnce(&Place<A, B>),
) -> Option<Box<Place<A, B>>> {
    {
        // SAFETY: the place is there until both ends have come, and this one has not.
        let place = unsafe { place.as_ref() };
        fill(place);
        // An end that is the first leaves the place to the other with this, and one that is the second sees what the first did.
        if !place.one_came.swap(true, Ordering::AcqRel) {
            return None;
        }
    }
    // SAFETY: the place came from a box, and the other end, which has come, does not touch it any more.
    Some(unsafe { Box::from_raw(place.as_ptr()) })
}

impl<A, B> Drop for Giver<A, B> {
    fn drop(&mut self) {
        // SAFETY: an end that has come is not dropped; this one comes now.
        drop(unsafe { come(self.0, |_| ()) });
    }
}

impl<A, B> Drop for Taker<A, B> {
    fn drop(&mut self) {
        // SAFETY: as above.
        drop(unsafe { come(self.0, |_| ()) });
    }
}
