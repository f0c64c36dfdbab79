//! Test utilities: arrays of any element type, and their elements.

use crate::view::Element;
use crate::{DType, Dst, Src};

/// An array that owns its bytes, aligned for every element type.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    pub(crate) dtype: DType,
    pub(crate) dims: Vec<usize>,
    pub(crate) words: Vec<u128>,
}

impl Array {
    /// Creates an array with different bytes everywhere.
    pub(crate) fn new(dtype: DType, dims: &[usize]) -> Self {
        let bytes = dims.iter().product::<usize>() * dtype.size();
        let words = (0..bytes.div_ceil(16) as u128)
            .map(|w| w.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
            .collect();
        Self { words, dtype, dims: dims.to_vec() }
    }

    /// Creates an array with these elements.
    pub(crate) fn of<T: Element>(dtype: DType, dims: &[usize], values: &[T]) -> Self {
        let mut array = Self::new(dtype, dims);
        array.dst().as_mut_slice::<T>().copy_from_slice(values);
        array
    }

    pub(crate) fn values<T: Element>(&self) -> Vec<T> {
        self.src().as_slice::<T>().to_vec()
    }

    /// Creates an array whose elements are to be overwritten.
    pub(crate) fn unset(dtype: DType, dims: &[usize]) -> Self {
        let bytes = dims.iter().product::<usize>() * dtype.size();
        Self { dtype, dims: dims.to_vec(), words: vec![0x5a5a_5a5a; bytes.div_ceil(16)] }
    }

    /// Creates an array whose elements are the results of `of` for their flat indices, converted by `encode`.
    pub(crate) fn from_fn(dtype: DType, dims: &[usize], of: impl Fn(usize) -> i64) -> Self {
        let mut array = Self::unset(dtype, dims);
        let mut dst = array.dst();
        let size = dtype.size();
        for (i, element) in dst.bytes_mut().chunks_exact_mut(size).enumerate() {
            element.copy_from_slice(&encode(dtype, of(i))[..size]);
        }
        array
    }

    pub(crate) fn src(&self) -> Src<'_> {
        let len = self.dims.iter().product::<usize>() * self.dtype.size();
        // SAFETY: the words hold at least `len` initialized bytes.
        let bytes = unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), len) };
        Src::new(bytes, self.dtype, &self.dims)
    }

    pub(crate) fn dst(&mut self) -> Dst<'_> {
        let len = self.dims.iter().product::<usize>() * self.dtype.size();
        // SAFETY: the words hold at least `len` initialized bytes, borrowed mutably here.
        let bytes = unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), len) };
        Dst::new(bytes, self.dtype, &self.dims)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.src().bytes()
    }

    /// Returns the bytes of an element.
    pub(crate) fn element(&self, index: &[usize]) -> Vec<u8> {
        let flat = index.iter().zip(&self.dims).fold(0, |n, (i, d)| n * d + i);
        let size = self.dtype.size();
        self.src().bytes()[flat * size..(flat + 1) * size].to_vec()
    }
}

/// Returns the bytes of an integer as an element: rounded for real types, `(v, -v)` for complex ones, wrapped
/// for integers, and `v != 0` for booleans.
pub(crate) fn encode(dtype: DType, v: i64) -> [u8; 16] {
    let mut out = [0; 16];
    let mut put = |bytes: &[u8]| out[..bytes.len()].copy_from_slice(bytes);
    match dtype {
        DType::Pred => put(&[u8::from(v != 0)]),
        DType::S2 => put(&[((v as i8) << 6 >> 6) as u8]),
        DType::S4 => put(&[((v as i8) << 4 >> 4) as u8]),
        DType::U2 => put(&[v as u8 & 3]),
        DType::U4 => put(&[v as u8 & 15]),
        DType::F32 => put(&(v as f32).to_le_bytes()),
        DType::F64 => put(&(v as f64).to_le_bytes()),
        DType::C64 => put(&[(v as f32).to_le_bytes(), (-v as f32).to_le_bytes()].concat()),
        DType::C128 => put(&[(v as f64).to_le_bytes(), (-v as f64).to_le_bytes()].concat()),
        d if d.is_float() => {
            put(&crate::convert::f32_to_narrow(d, v as f32).unwrap().to_le_bytes()[..d.size()])
        }
        d => put(&v.to_le_bytes()[..d.size()]),
    }
    out
}

/// Returns a pseudorandom number below `below`, whose sequence depends on the seed.
pub(crate) fn noise(seed: u64, i: usize, below: u64) -> i64 {
    let mut x = (i as u64).wrapping_add(seed << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^= x >> 29;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^= x >> 32;
    (x % below) as i64
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
