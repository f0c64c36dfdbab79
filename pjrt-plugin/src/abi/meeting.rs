//! A meeting of two, each with something for the other: who comes first leaves it and goes, who comes second gets both.

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use crate::sync::{AtomicBool, Ordering, UnsafeCell};

/// What a meeting is for, and what the giver keeps in its place until it gives.
pub(crate) trait Errand {
    /// What the giver brings.
    type Value;
    /// What the taker leaves if it comes first.
    type Left;

    /// What a giver brings that is dropped.
    fn lost() -> Self::Value;

    /// Both have come, the giver as the second.
    fn meet(value: Self::Value, left: Self::Left);
}

/// Where the two meet. It belongs to whoever comes second.
struct Place<E: Errand> {
    /// Whether one has come. It wrote its own cell before, and touches nothing here after.
    one_came: AtomicBool,
    given: UnsafeCell<Option<E::Value>>,
    left: UnsafeCell<Option<E::Left>>,
    /// The giver's alone, and dropped when it comes.
    errand: ManuallyDrop<E>,
}

/// The end of the one that brings a value. Dropping it brings that of what is lost.
pub(crate) struct Giver<E: Errand>(NonNull<Place<E>>);

/// The end of the one that wants the value, and leaves something if it is not there yet. Dropping it leaves nothing.
pub(crate) struct Taker<E: Errand>(NonNull<Place<E>>);

// SAFETY: an end gives its thread what others made, or gives what is its own to another thread, and no two threads look at any of
// it at the same time.
unsafe impl<E: Errand<Value: Send, Left: Send> + Send> Send for Giver<E> {}
// SAFETY: as above; the errand is dropped by the giver.
unsafe impl<E: Errand<Value: Send, Left: Send>> Send for Taker<E> {}
// SAFETY: a shared reference leads to the errand and no further.
unsafe impl<E: Errand<Value: Send, Left: Send> + Sync> Sync for Giver<E> {}
// SAFETY: nothing can be done with a shared reference.
unsafe impl<E: Errand<Value: Send, Left: Send>> Sync for Taker<E> {}

/// The two ends of a meeting.
#[inline(always)]
pub(crate) fn meeting<E: Errand>(errand: impl FnOnce() -> E) -> (Giver<E>, Taker<E>) {
    let errand = || ManuallyDrop::new(errand());
    let place = NonNull::from(Box::leak(Box::<Place<E>>::new_uninit())).cast::<Place<E>>();
    let at = place.as_ptr();
    // SAFETY: the place is new and nobody else's. Each part is made where it will be.
    unsafe {
        (&raw mut (*at).one_came).write(AtomicBool::new(false));
        (&raw mut (*at).given).write(UnsafeCell::new(None));
        (&raw mut (*at).left).write(UnsafeCell::new(None));
        (&raw mut (*at).errand).write(errand());
    }
    (Giver(place), Taker(place))
}

impl<E: Errand> Giver<E> {
    /// Brings the value. If the taker has left something, they meet here.
    #[inline(always)]
    pub(crate) fn give(self, value: E::Value) {
        let place = ManuallyDrop::new(self).0;
        // SAFETY: a giver gives once, now.
        unsafe { give(place, value) };
    }
}

impl<E: Errand> Deref for Giver<E> {
    type Target = E;

    #[inline]
    fn deref(&self) -> &E {
        // SAFETY: this end has not come, so the place and the errand are there, and nobody else touches the errand.
        unsafe { &(*self.0.as_ptr()).errand }
    }
}

impl<E: Errand> DerefMut for Giver<E> {
    #[inline]
    fn deref_mut(&mut self) -> &mut E {
        // SAFETY: as above.
        unsafe { &mut (*self.0.as_ptr()).errand }
    }
}

impl<E: Errand> Drop for Giver<E> {
    #[cold]
    fn drop(&mut self) {
        // SAFETY: a giver that has given is not dropped, so it gives now.
        unsafe { give(self.0, E::lost()) };
    }
}

/// # Safety
///
/// To be called once for the giver, which is not used any more.
#[inline(always)]
unsafe fn give<E: Errand>(place: NonNull<Place<E>>, value: E::Value) {
    // SAFETY: the cell is the giver's until it has come.
    unsafe { (*place.as_ptr()).given.with_mut(|given| given.write(Some(value))) };
    // What comes with the errand may panic when it is dropped, and the taker must not wait for ever then.
    let _coming = Coming(place);
    // SAFETY: the giver has not come, so the place and the errand are there, and nobody else touches the errand.
    unsafe { ManuallyDrop::drop(&mut (*place.as_ptr()).errand) };
}

/// A giver that has nothing left to do but to come, which it does when this is dropped.
struct Coming<E: Errand>(NonNull<Place<E>>);

impl<E: Errand> Drop for Coming<E> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `give`, which makes this, is called once for a giver.
        if let Some(place) = unsafe { come(self.0) }
            && let (Some(value), Some(left)) = (place.given.into_inner(), place.left.into_inner())
        {
            E::meet(value, left);
        }
    }
}

impl<E: Errand> Taker<E> {
    /// The value, if it is there.
    ///
    /// # Errors
    ///
    /// This end, if the giver has not come.
    #[inline(always)]
    pub(crate) fn try_take(self) -> Result<E::Value, Self> {
        // SAFETY: this end has not come, so the place is there.
        if !unsafe { &(*self.0.as_ptr()).one_came }.load(Ordering::Acquire) {
            return Err(self);
        }
        let place = ManuallyDrop::new(self).0;
        // SAFETY: the giver has come, so the place belongs to this end.
        let place = unsafe { Box::from_raw(place.as_ptr()) };
        Ok(place.given.into_inner().unwrap_or_else(E::lost))
    }

    /// Leaves something. If the giver has come meanwhile, here is both.
    #[inline]
    pub(crate) fn leave(self, what: E::Left) -> Option<(E::Value, E::Left)> {
        let place = ManuallyDrop::new(self).0;
        // SAFETY: the place is there and the cell this end's until it has come.
        unsafe { (*place.as_ptr()).left.with_mut(|left| left.write(Some(what))) };
        // SAFETY: this end comes now, once.
        let place = unsafe { come(place) }?;
        place.given.into_inner().zip(place.left.into_inner())
    }
}

impl<E: Errand> Drop for Taker<E> {
    fn drop(&mut self) {
        // SAFETY: an end that has come is not dropped; this one comes now.
        drop(unsafe { come(self.0) });
    }
}

/// Gives the place to whoever comes second.
///
/// # Safety
///
/// To be called once for each end, which is not used any more.
#[inline(always)]
unsafe fn come<E: Errand>(place: NonNull<Place<E>>) -> Option<Box<Place<E>>> {
    // SAFETY: the place is there until both ends have come.
    let one_came = unsafe { &(*place.as_ptr()).one_came };
    // An end that is the first leaves the place to the other with this, and one that is the second sees what the first did.
    if !one_came.swap(true, Ordering::AcqRel) {
        return None;
    }
    // SAFETY: the place came from a box, and the other end, which has come, does not touch it any more.
    Some(unsafe { Box::from_raw(place.as_ptr()) })
}
