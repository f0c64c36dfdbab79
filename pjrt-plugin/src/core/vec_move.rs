//! Moves of vectors that have just been created.
//!
//! Moving a struct of several words in wider registers immediately after its words were written separately stalls on the
//! store buffer for about 5 ns. Single words are forwarded from the store buffer without a stall.

#![allow(unsafe_code, reason = "converts vectors to their parts")]

use std::mem::ManuallyDrop;

/// Moves a vector word by word.
#[inline(always)]
pub(crate) fn move_by_words<T>(vec: Vec<T>) -> Vec<T> {
    let mut vec = ManuallyDrop::new(vec);
    let (start, len, capacity) = (vec.as_mut_ptr(), vec.len(), vec.capacity());
    // SAFETY: the three parts are those of a vector that is neither used nor dropped afterwards.
    unsafe { Vec::from_raw_parts(start, len, capacity) }
}

/// Creates an empty vector with a capacity, without the move in `Vec::with_capacity`.
#[inline(always)]
pub(crate) fn with_capacity<T>(capacity: usize) -> Vec<T> {
    let place = Box::into_raw(Box::<[T]>::new_uninit_slice(capacity));
    // SAFETY: a box of a slice has the same allocation as a vector with that capacity.
    unsafe { Vec::from_raw_parts(place.cast(), 0, capacity) }
}
