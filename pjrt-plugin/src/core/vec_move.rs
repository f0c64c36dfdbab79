//! Moves of vectors that were just made.
//!
//! A struct of several words that has been written word by word and is at once moved in wider registers has to wait for the store
//! buffer, about 5 ns. A word is forwarded from the store buffer at once.

#![allow(unsafe_code, reason = "takes vectors apart")]

use std::mem::ManuallyDrop;

/// Moves a vector word by word.
#[inline(always)]
pub(crate) fn move_by_words<T>(vec: Vec<T>) -> Vec<T> {
    let mut vec = ManuallyDrop::new(vec);
    let (start, len, capacity) = (vec.as_mut_ptr(), vec.len(), vec.capacity());
    // SAFETY: the three are those of a vector, which is not used or dropped any more.
    unsafe { Vec::from_raw_parts(start, len, capacity) }
}

/// Makes an empty vector with room for so many elements, without the move that `Vec::with_capacity` does.
#[inline(always)]
pub(crate) fn with_capacity<T>(capacity: usize) -> Vec<T> {
    let place = Box::into_raw(Box::<[T]>::new_uninit_slice(capacity));
    // SAFETY: a box of a slice is allocated as a vector of that capacity is.
    unsafe { Vec::from_raw_parts(place.cast(), 0, capacity) }
}
