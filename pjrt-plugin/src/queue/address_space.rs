//! An allocator of addresses.

use std::collections::BTreeMap;
use std::iter;
use std::ops::Range;

/// The addresses from 0 to the size of a memory, and the ranges of them that are in use. A driver allocates with it on the host,
/// without access to the memory; a compiler can assign temporary memory with it.
///
/// ```
/// use pjrt_plugin::queue::AddressSpace;
///
/// let mut space = AddressSpace::new(96, 32);
/// assert_eq!((space.allocate(20), space.allocate(40)), (Some(0), Some(32)));
/// assert_eq!(space.allocate(1), None);
/// space.free(0);
/// assert_eq!((space.in_use(), space.allocate(1)), (64, Some(0)));
/// ```
#[derive(Debug, Clone)]
pub struct AddressSpace {
    size: usize,
    alignment: usize,
    /// The sizes of the allocated ranges, by address.
    ranges: BTreeMap<usize, usize>,
    in_use: usize,
    highest: usize,
}

impl AddressSpace {
    /// Creates an address space of a size, in which all addresses are multiples of `alignment`.
    ///
    /// # Panics
    ///
    /// Panics if the alignment is 0.
    #[must_use]
    pub fn new(size: usize, alignment: usize) -> Self {
        assert!(alignment > 0, "the alignment of an address space is at least 1");
        Self { size, alignment, ranges: BTreeMap::new(), in_use: 0, highest: 0 }
    }

    /// Allocates the first free range of at least `size` bytes, and returns its address. A range of size 0 has an address of its
    /// own too. Returns `None` if no free range is large enough.
    pub fn allocate(&mut self, size: usize) -> Option<usize> {
        let size = size.max(1).checked_next_multiple_of(self.alignment)?;
        let address = self.gaps().find(|gap| gap.len() >= size)?.start;
        self.ranges.insert(address, size);
        self.in_use += size;
        self.highest = self.highest.max(address + size);
        Some(address)
    }

    /// Frees the range at an address, and returns it. Returns `None` if no range begins there.
    pub fn free(&mut self, address: usize) -> Option<Range<usize>> {
        let size = self.ranges.remove(&address)?;
        self.in_use -= size;
        Some(address..address + size)
    }

    fn gaps(&self) -> impl Iterator<Item = Range<usize>> {
        let ends = self.ranges.iter().map(|(address, size)| address + size);
        let starts = self.ranges.keys().copied().chain(iter::once(self.size));
        iter::once(0).chain(ends).zip(starts).map(|(end, start)| end..start)
    }

    /// Returns the number of addresses.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the size of the range at an address, with its padding, or 0 if no range begins there.
    #[must_use]
    pub fn size_at(&self, address: usize) -> usize {
        self.ranges.get(&address).copied().unwrap_or(0)
    }

    /// Returns the number of bytes in use, with the padding of the ranges.
    #[must_use]
    pub fn in_use(&self) -> usize {
        self.in_use
    }

    /// Returns the highest end of all ranges that have existed.
    #[must_use]
    pub fn highest(&self) -> usize {
        self.highest
    }

    /// Returns the size of the largest free range.
    #[must_use]
    pub fn largest_gap(&self) -> usize {
        self.gaps().map(|gap| gap.len()).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_free_is_given_again_and_what_is_taken_is_not() {
        let mut space = AddressSpace::new(96, 32);
        let [a, b, c] = [0, 1, 2].map(|_| space.allocate(20).unwrap());
        assert_eq!((a, b, c, space.in_use()), (0, 32, 64, 96));
        assert_eq!(space.free(b), Some(32..64));
        assert_eq!(space.free(b), None);
        assert_eq!(space.allocate(33), None, "the room is in two pieces, or too small");
        space.free(a);
        assert_eq!((space.largest_gap(), space.highest(), space.size_at(c)), (64, 96, 32));
        assert_eq!(space.allocate(64), Some(0), "neighbors that are free are one room");
    }

    #[test]
    fn a_size_that_overflows_finds_no_room() {
        assert_eq!(AddressSpace::new(64, 32).allocate(usize::MAX), None);
    }
}
