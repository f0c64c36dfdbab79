//! Ids of the values, operations, blocks and regions of a body.

use std::fmt;
use std::iter::FusedIterator;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $sigil:literal;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
            pub struct $name(pub(crate) u32);

            impl $name {
                /// Returns the position of the item among those of its kind. The ids of one [`Body`](super::Body) count from
                /// 0 without gaps, so that side tables can be plain vectors.
                pub fn index(self) -> usize {
                    self.0 as usize
                }
            }

            impl fmt::Debug for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    write!(f, concat!($sigil, "{}"), self.0)
                }
            }
        )*
    };
}

ids! {
    /// A value of a [`Body`](super::Body): a block argument or a result of an operation.
    ValueId "%";
    /// An operation of a [`Body`](super::Body).
    OpId "op";
    /// A block of a [`Body`](super::Body).
    BlockId "^";
    /// A region of a [`Body`](super::Body).
    RegionId "region";
}

/// A range of consecutive values: the results of an operation. Iterates over [`ValueId`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueRange {
    pub(super) start: u32,
    pub(super) end: u32,
}

impl ValueRange {
    /// Returns the number of values.
    pub fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// Returns `true` if the range is empty.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Returns the value at position `index` of the range, or `None` if `index` is out of range.
    pub fn get(&self, index: usize) -> Option<ValueId> {
        (index < self.len()).then(|| ValueId(self.start + index as u32))
    }

    /// Returns `true` if the range contains the value.
    pub fn contains(&self, value: ValueId) -> bool {
        (self.start..self.end).contains(&value.0)
    }

    /// Returns an iterator over the values. The range itself does not advance.
    pub fn iter(&self) -> ValueRange {
        *self
    }
}

impl Iterator for ValueRange {
    type Item = ValueId;

    fn next(&mut self) -> Option<ValueId> {
        let next = self.get(0)?;
        self.start += 1;
        Some(next)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len(), Some(self.len()))
    }
}

impl DoubleEndedIterator for ValueRange {
    fn next_back(&mut self) -> Option<ValueId> {
        let last = self.get(self.len().checked_sub(1)?)?;
        self.end -= 1;
        Some(last)
    }
}

impl ExactSizeIterator for ValueRange {}
impl FusedIterator for ValueRange {}
