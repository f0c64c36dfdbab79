//! Vectors that are moved soon after they are made.
//!
//! A struct of several words that has been written word by word and is at once moved in wider registers has to wait for the store
//! buffer, some 5 ns. A word comes out of the store buffer at once.

use std::mem::ManuallyDrop;

/// The same vector, moved word by word.
#[inline(always)]
pub(crate) fn in_words<T>(vec: Vec<T>) -> Vec<T> {
    let mut vec = ManuallyDrop::new(vec);
    let (start, len, capacity) = (vec.as_mut_ptr(), vec.len(), vec.capacity());
    // SAFETY: the three are those of a vector, which is not used or dropped any more.
    unsafe { Vec::from_raw_parts(start, len, capacity) }
}

/// An empty vector with room for so many elements: `Vec::with_capacity`, which moves what it has made.
#[inline(always)]
pub(crate) fn with_room<T>(capacity: usize) -> Vec<T> {
    let place = Box::into_raw(Box::<[T]>::new_uninit_slice(capacity));
    // SAFETY: a box of a slice is allocated as a vector of that capacity is.
    unsafe { Vec::from_raw_parts(place.cast(), 0, capacity) }
}
