//! Lists with an element for each device of a launch.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::{option, slice, vec};

/// A list with an element for each device of a launch, in the order of [`Execution::devices`](crate::Execution::devices). It
/// dereferences to a slice, and iterators can be collected into it:
///
/// ```
/// use pjrt_plugin::ByDevice;
///
/// let sizes: ByDevice<usize> = ["a", "bc"].iter().map(|text| text.len()).collect();
/// assert_eq!(*sizes, [1, 2]);
/// assert_eq!(ByDevice::from(vec![1, 2]), sizes);
/// ```
///
/// A list with one element, which most launches have, needs no allocation.
#[derive(Clone, PartialEq, Eq)]
pub struct ByDevice<T>(Elements<T>);

#[derive(Clone, PartialEq, Eq)]
enum Elements<T> {
    One(T),
    /// Never a vector of one element.
    Other(Vec<T>),
}

impl<T> ByDevice<T> {
    /// Creates the list for a launch on one device.
    #[must_use]
    pub const fn one(element: T) -> Self {
        Self(Elements::One(element))
    }

    /// Returns the element if there is exactly one, and otherwise the list.
    #[inline(always)]
    pub(crate) fn into_one(self) -> Result<T, Self> {
        match self.0 {
            Elements::One(one) => Ok(one),
            other => Err(Self(other)),
        }
    }

    /// Creates an empty list.
    pub(crate) const fn none() -> Self {
        Self(Elements::Other(Vec::new()))
    }
}

impl<T> Deref for ByDevice<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.0 {
            Elements::One(one) => slice::from_ref(one),
            Elements::Other(other) => other,
        }
    }
}

impl<T> DerefMut for ByDevice<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.0 {
            Elements::One(one) => slice::from_mut(one),
            Elements::Other(other) => other,
        }
    }
}

impl<T> FromIterator<T> for ByDevice<T> {
    #[inline]
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        let mut elements = elements.into_iter();
        let Some(first) = elements.next() else { return Self::none() };
        let Some(second) = elements.next() else { return Self::one(first) };
        Self(Elements::Other([first, second].into_iter().chain(elements).collect()))
    }
}

impl<T> From<Vec<T>> for ByDevice<T> {
    fn from(elements: Vec<T>) -> Self {
        if elements.len() == 1 { elements.into_iter().collect() } else { Self(Elements::Other(elements)) }
    }
}

impl<T> IntoIterator for ByDevice<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    #[inline]
    fn into_iter(self) -> IntoIter<T> {
        let (one, other) = match self.0 {
            Elements::One(one) => (Some(one), Vec::new()),
            Elements::Other(other) => (None, other),
        };
        IntoIter { one: one.into_iter(), other: other.into_iter() }
    }
}

impl<'a, T> IntoIterator for &'a ByDevice<T> {
    type Item = &'a T;
    type IntoIter = slice::Iter<'a, T>;

    fn into_iter(self) -> slice::Iter<'a, T> {
        self.iter()
    }
}

/// An iterator over the elements of a [`ByDevice`].
pub struct IntoIter<T> {
    one: option::IntoIter<T>,
    other: vec::IntoIter<T>,
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.one.next().or_else(|| self.other.next())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.one.len() + self.other.len();
        (left, Some(left))
    }
}

impl<T> ExactSizeIterator for IntoIter<T> {}

impl<T: fmt::Debug> fmt::Debug for ByDevice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T> fmt::Debug for IntoIter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IntoIter({} elements)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out_for_any_number_of_devices() {
        for number in 0..4 {
            let elements: Vec<String> = (0..number).map(|n: i32| n.to_string()).collect();
            let collected: ByDevice<String> = elements.iter().cloned().collect();
            assert_eq!(*collected, elements);
            assert_eq!(collected, ByDevice::from(elements.clone()));
            assert_eq!(collected.clone().into_iter().len(), elements.len());
            assert_eq!(collected.into_iter().collect::<Vec<_>>(), elements);
        }
        assert_eq!(ByDevice::one(1), ByDevice::from(vec![1]));
    }
}
