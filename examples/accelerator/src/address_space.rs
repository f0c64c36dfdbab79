//! The allocator of a memory's addresses.
//!
//! The driver allocates device memory on the host, because the host cannot access the memory itself. The
//! compiler uses the same allocator for the scratch memory of a program.

use std::collections::BTreeMap;
use std::iter;
use std::ops::Range;

/// Addresses are multiples of this many bytes.
pub(crate) const ALIGNMENT: usize = 32;

/// The maximum number of holders that [`AddressSpace::holders`] names.
const NAMED_HOLDERS: usize = 4;

/// The addresses from 0 to the size of the memory.
pub(crate) struct AddressSpace {
    size: usize,
    /// The allocated blocks, by address.
    blocks: BTreeMap<usize, Block>,
    in_use: usize,
    peak: usize,
    highest: usize,
}

struct Block {
    size: usize,
    /// A description of the block's use, for errors about exhausted memory.
    holder: String,
}

impl AddressSpace {
    pub(crate) fn new(size: usize) -> Self {
        Self { size, blocks: BTreeMap::new(), in_use: 0, peak: 0, highest: 0 }
    }

    /// Allocates the first free range of at least this size, and returns its address. A block of size 0 has
    /// an address too.
    pub(crate) fn allocate(&mut self, size: usize, holder: String) -> Option<usize> {
        let size = size.max(1).checked_next_multiple_of(ALIGNMENT)?;
        let address = self.gaps().find(|gap| gap.len() >= size)?.start;
        self.blocks.insert(address, Block { size, holder });
        self.in_use += size;
        self.peak = self.peak.max(self.in_use);
        self.highest = self.highest.max(address + size);
        Some(address)
    }

    pub(crate) fn free(&mut self, address: usize) {
        if let Some(block) = self.blocks.remove(&address) {
            self.in_use -= block.size;
        }
    }

    /// Changes the description of the block at an address.
    pub(crate) fn rename(&mut self, address: usize, holder: String) {
        if let Some(block) = self.blocks.get_mut(&address) {
            block.holder = holder;
        }
    }

    fn gaps(&self) -> impl Iterator<Item = Range<usize>> {
        let ends = self.blocks.iter().map(|(address, block)| address + block.size);
        let starts = self.blocks.keys().copied().chain(iter::once(self.size));
        iter::once(0).chain(ends).zip(starts).map(|(end, start)| end..start)
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn in_use(&self) -> usize {
        self.in_use
    }

    /// Returns the peak of the memory in use.
    pub(crate) fn peak(&self) -> usize {
        self.peak
    }

    pub(crate) fn forget_peak(&mut self) {
        self.peak = self.in_use;
    }

    /// Returns the highest end of all blocks that have existed.
    pub(crate) fn highest(&self) -> usize {
        self.highest
    }

    pub(crate) fn largest_gap(&self) -> usize {
        self.gaps().map(|gap| gap.len()).max().unwrap_or(0)
    }

    /// Describes the holders of the memory, in descending order of size: `2 x x f32[4] (64 bytes), ...`.
    pub(crate) fn holders(&self) -> String {
        let mut by_holder: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for block in self.blocks.values() {
            let (count, bytes) = by_holder.entry(&block.holder).or_default();
            *count += 1;
            *bytes += block.size;
        }
        let mut holders: Vec<_> = by_holder.into_iter().collect();
        holders.sort_by_key(|(_, (_, bytes))| std::cmp::Reverse(*bytes));
        let others = holders.split_off(holders.len().min(NAMED_HOLDERS));
        let mut texts: Vec<String> = holders
            .into_iter()
            .map(|(holder, (count, bytes))| format!("{count} x {holder} ({bytes} bytes)"))
            .collect();
        if !others.is_empty() {
            let bytes: usize = others.iter().map(|(_, (_, bytes))| bytes).sum();
            texts.push(format!("others ({bytes} bytes)"));
        }
        texts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_free_is_given_again_and_what_is_taken_is_not() {
        let mut space = AddressSpace::new(96);
        let [a, b, c] = [0, 1, 2].map(|_| space.allocate(20, "array".to_owned()).unwrap());
        assert_eq!((a, b, c, space.in_use()), (0, 32, 64, 96));
        assert_eq!(space.allocate(1, "array".to_owned()), None);
        space.free(b);
        assert_eq!(space.allocate(33, "array".to_owned()), None, "the room is in two pieces, or too small");
        assert_eq!(space.allocate(32, "array".to_owned()), Some(b));
        space.free(a);
        space.free(b);
        assert_eq!(space.allocate(64, "array".to_owned()), Some(0), "neighbors that are free are one room");
        assert_eq!((space.peak(), space.largest_gap()), (96, 0));
    }

    #[test]
    fn a_size_that_overflows_finds_no_room() {
        assert_eq!(AddressSpace::new(64).allocate(usize::MAX, "array".to_owned()), None);
    }

    #[test]
    fn holders_are_added_up_and_the_largest_come_first() {
        let mut space = AddressSpace::new(1 << 20);
        for (size, holder) in [(32, "a"), (64, "b"), (32, "a"), (512, "c"), (128, "d"), (1, "e"), (1, "f")] {
            space.allocate(size, holder.to_owned()).unwrap();
        }
        let expected =
            "1 x c (512 bytes), 1 x d (128 bytes), 2 x a (64 bytes), 1 x b (64 bytes), others (64 bytes)";
        assert_eq!(space.holders(), expected);
    }
}
