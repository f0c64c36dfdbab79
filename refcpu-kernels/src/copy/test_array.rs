//! Arrays for tests: owned, aligned for every type, and read by index.

use crate::view::Element;
use crate::{DType, Dst, Src};

/// An array with different bytes everywhere, aligned for every type.
pub(crate) struct Array {
    pub(crate) words: Vec<u128>,
    pub(crate) dtype: DType,
    pub(crate) dims: Vec<usize>,
}

impl Array {
    pub(crate) fn new(dtype: DType, dims: &[usize]) -> Self {
        let bytes = dims.iter().product::<usize>() * dtype.size();
        let words = (0..bytes.div_ceil(16) as u128)
            .map(|w| w.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
            .collect();
        Self { words, dtype, dims: dims.to_vec() }
    }

    pub(crate) fn of<T: Element>(dtype: DType, dims: &[usize], values: &[T]) -> Self {
        let mut array = Self::new(dtype, dims);
        array.dst().as_mut_slice::<T>().copy_from_slice(values);
        array
    }

    pub(crate) fn values<T: Element>(&self) -> Vec<T> {
        self.src().as_slice::<T>().to_vec()
    }

    pub(crate) fn src(&self) -> Src<'_> {
        // SAFETY: the vector holds the array's bytes, initialized, and is borrowed for as long as the view.
        unsafe { Src::from_raw(std::ptr::NonNull::from(&self.words[..]).cast(), self.dtype, &self.dims) }
    }

    pub(crate) fn dst(&mut self) -> Dst<'_> {
        // SAFETY: as above, borrowed mutably.
        unsafe { Dst::from_raw(std::ptr::NonNull::from(&mut self.words[..]).cast(), self.dtype, &self.dims) }
    }

    pub(crate) fn element(&self, index: &[usize]) -> Vec<u8> {
        let flat = index.iter().zip(&self.dims).fold(0, |n, (i, d)| n * d + i);
        let size = self.dtype.size();
        self.src().bytes()[flat * size..(flat + 1) * size].to_vec()
    }
}

/// Returns every index of an array, in row-major order.
pub(crate) fn indices(dims: &[usize]) -> impl Iterator<Item = Vec<usize>> + '_ {
    (0..dims.iter().product::<usize>()).map(move |flat| {
        let mut rest = flat;
        let mut index: Vec<usize> = dims
            .iter()
            .rev()
            .map(|d| {
                let i = rest % d;
                rest /= d;
                i
            })
            .collect();
        index.reverse();
        index
    })
}
