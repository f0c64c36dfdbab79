//! The inner kernel of matrix products: blocks of C += A B with all accumulators in registers.
//!
//! A tile is a few rows of A by a few vectors of B's columns. Elements of A are broadcast, so A may have any strides;
//! rows of B must be contiguous. The loops over tiles are compiled per instruction set, as one function per arithmetic.

use crate::number::Accumulator;
use std::marker::PhantomData;

/// The vectors that a tile computes with.
///
/// # Safety
/// `load`, `load_part`, `read` and `write` must not touch memory beyond the lanes that they are asked for.
pub(crate) unsafe trait Arith: Copy + 'static {
    /// What one lane of a vector of B holds, and what is broadcast from A.
    type Unit: Copy + 'static;
    /// The type of C's elements.
    type Out: Copy + 'static;
    /// A vector of units.
    type Units: Copy;
    /// A vector of accumulators.
    type Accs: Copy;
    /// Lanes of a vector.
    const LANES: usize;
    /// Rows of a full tile: 8 or 4.
    const ROWS: usize;
    /// True if `load_part` is as cheap as `load`, so that B need not be padded to whole vectors.
    const MASKED: bool;

    /// Zeros.
    ///
    /// # Safety
    /// As for every function of this trait: the machine must have the instruction set that the implementation is for.
    unsafe fn zero() -> Self::Accs;
    /// The unit at `p` in every lane.
    ///
    /// # Safety
    /// `p` must be readable.
    unsafe fn splat(p: *const Self::Unit) -> Self::Units;
    /// The units at `p`.
    ///
    /// # Safety
    /// `LANES` units at `p` must be readable.
    unsafe fn load(p: *const Self::Unit) -> Self::Units;
    /// The first `n` units at `p`.
    ///
    /// # Safety
    /// `n` units at `p` must be readable, and `n` at most `LANES`.
    unsafe fn load_part(p: *const Self::Unit, n: usize) -> Self::Units;
    /// `acc + a * b`.
    ///
    /// # Safety
    /// As for `zero`.
    unsafe fn mul_acc(acc: Self::Accs, a: Self::Units, b: Self::Units) -> Self::Accs;
    /// `a + b`.
    ///
    /// # Safety
    /// As for `zero`.
    unsafe fn add(a: Self::Accs, b: Self::Accs) -> Self::Accs;
    /// The first `n` elements at `p`.
    ///
    /// # Safety
    /// `n` elements at `p` must be readable, and `n` at most `LANES`.
    unsafe fn read(p: *const Self::Out, n: usize) -> Self::Accs;
    /// Stores the first `n` lanes.
    ///
    /// # Safety
    /// `n` elements at `p` must be writable, and `n` at most `LANES`.
    unsafe fn write(p: *mut Self::Out, v: Self::Accs, n: usize);
}

/// How B lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Panels {
    /// Rows of the array itself, this many units apart.
    Rows(usize),
    /// Panels as [`panels`] cuts the columns, one after the other, each with `depth` rows of its own width; the last
    /// panel is padded to whole vectors.
    Packed,
}

/// A block of a matrix product, for a number of matrices of the same shape. Strides count elements.
#[derive(Clone, Copy)]
pub(crate) struct Block<U, O> {
    /// The first element of A.
    pub a: *const U,
    /// Distance between rows of A.
    pub a_row: usize,
    /// Distance between columns of A.
    pub a_col: usize,
    /// The first element of B.
    pub b: *const U,
    /// How B lies in memory.
    pub b_layout: Panels,
    /// The first element of C, whose rows are contiguous.
    pub c: *mut O,
    /// Distance between rows of C.
    pub c_row: usize,
    /// Rows of A and C.
    pub rows: usize,
    /// Columns of B and C.
    pub cols: usize,
    /// Columns of A and rows of B.
    pub depth: usize,
    /// Whether C is added to, or overwritten.
    pub accumulate: bool,
    /// The number of matrices.
    pub batch: usize,
    /// Distances between matrices of A, B, C.
    pub batch_strides: [usize; 3],
}

/// The vectors per panel that `vectors` vectors of columns are cut into: threes, and twos at the end where a one would be left.
pub(crate) fn panels(vectors: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let left = vectors - at;
        let take = match left {
            0 => return None,
            4 => 2,
            n => n.min(3),
        };
        at += take;
        Some((at - take, take))
    })
}

/// Computes a block.
///
/// # Safety
/// All elements of A, B and C that the block describes must be readable (B's last panel up to `cols` only, if it is not
/// packed), those of C writable and not accessed by others. The machine must have `K`'s instruction set. If `K` is not
/// `MASKED`, B must be packed or `cols` a multiple of the lanes.
#[inline(always)]
pub(crate) unsafe fn block<K: Arith>(block: &Block<K::Unit, K::Out>) {
    for i in 0..block.batch {
        let [sa, sb, sc] = block.batch_strides;
        // SAFETY: the caller vouches for the elements of every matrix of the batch; the loops below stay within
        // `rows`, `cols` and `depth`.
        unsafe {
            let (a, b, c) = (block.a.add(i * sa), block.b.add(i * sb), block.c.add(i * sc));
            for (first, vectors) in panels(block.cols.div_ceil(K::LANES)) {
                let col = first * K::LANES;
                let width = vectors * K::LANES;
                let (b, b_row) = match block.b_layout {
                    Panels::Rows(stride) => (b.add(col), stride),
                    Panels::Packed => (b.add(col * block.depth), width),
                };
                let last = (block.cols - col).min(width) - (vectors - 1) * K::LANES;
                let mut row = 0;
                while row < block.rows {
                    let left = block.rows - row;
                    let tile = Tile::<K> {
                        a: a.add(row * block.a_row),
                        a_row: block.a_row,
                        a_col: block.a_col,
                        b,
                        b_row,
                        c: c.add(row * block.c_row + col),
                        c_row: block.c_row,
                        depth: block.depth,
                        last,
                        accumulate: block.accumulate,
                    };
                    row += match (K::ROWS, left) {
                        (8, 8..) => tile.run_vectors::<8>(vectors),
                        (_, 4..) => tile.run_vectors::<4>(vectors),
                        (_, 2..) => tile.run_vectors::<2>(vectors),
                        _ => tile.run_vectors::<1>(vectors),
                    };
                }
            }
        }
    }
}

struct Tile<K: Arith> {
    a: *const K::Unit,
    a_row: usize,
    a_col: usize,
    b: *const K::Unit,
    b_row: usize,
    c: *mut K::Out,
    c_row: usize,
    depth: usize,
    /// Columns in the last vector.
    last: usize,
    accumulate: bool,
}

impl<K: Arith> Tile<K> {
    /// # Safety
    /// As for [`block`], for `R` rows and `vectors` (1 to 3) vectors of columns.
    #[inline(always)]
    unsafe fn run_vectors<const R: usize>(&self, vectors: usize) -> usize {
        // SAFETY: the caller's contract.
        unsafe {
            match vectors {
                1 => self.run::<R, 1>(),
                2 => self.run::<R, 2>(),
                _ => self.run::<R, 3>(),
            }
        }
        R
    }

    /// # Safety
    /// As for [`block`], for `R` rows and `V` vectors of columns.
    #[inline(always)]
    unsafe fn run<const R: usize, const V: usize>(&self) {
        // SAFETY: the caller vouches for `R` rows, `depth` and `V` vectors, the last of which has `last` columns; the loops
        // read and write exactly those.
        unsafe {
            let mut acc = [[K::zero(); V]; R];
            let (mut a, mut b) = (self.a, self.b);
            for _ in 0..self.depth {
                let bs: [K::Units; V] = std::array::from_fn(|j| {
                    let p = b.add(j * K::LANES);
                    if K::MASKED && j == V - 1 { K::load_part(p, self.last) } else { K::load(p) }
                });
                for (i, row) in acc.iter_mut().enumerate() {
                    let x = K::splat(a.add(i * self.a_row));
                    for (v, y) in row.iter_mut().zip(bs) {
                        *v = K::mul_acc(*v, x, y);
                    }
                }
                a = a.wrapping_add(self.a_col);
                b = b.wrapping_add(self.b_row);
            }
            for (i, row) in acc.iter().enumerate() {
                for (j, v) in row.iter().enumerate() {
                    let n = if j == V - 1 { self.last } else { K::LANES };
                    let p = self.c.add(i * self.c_row + j * K::LANES);
                    K::write(p, if self.accumulate { K::add(K::read(p, n), *v) } else { *v }, n);
                }
            }
        }
    }
}

/// Arithmetic on arrays, left to the compiler to vectorise: for types and machines without kernels of their own.
#[derive(Clone, Copy)]
pub(crate) struct Portable<A, const LANES: usize>(PhantomData<A>);

// SAFETY: slices and loops bounded by `LANES` or `n`.
unsafe impl<A: Accumulator, const LANES: usize> Arith for Portable<A, LANES> {
    type Unit = A;
    type Out = A;
    type Units = [A; LANES];
    type Accs = [A; LANES];
    const LANES: usize = LANES;
    const ROWS: usize = 4;
    const MASKED: bool = false;

    #[inline(always)]
    unsafe fn zero() -> [A; LANES] {
        [A::ZERO; LANES]
    }
    #[inline(always)]
    unsafe fn splat(p: *const A) -> [A; LANES] {
        // SAFETY: the caller's contract.
        [unsafe { *p }; LANES]
    }
    #[inline(always)]
    unsafe fn load(p: *const A) -> [A; LANES] {
        // SAFETY: the caller's contract: `LANES` elements are readable; arrays have their elements' alignment.
        unsafe { *p.cast() }
    }
    #[inline(always)]
    unsafe fn load_part(p: *const A, n: usize) -> [A; LANES] {
        // SAFETY: the caller's contract: `n` elements are readable.
        std::array::from_fn(|i| if i < n { unsafe { *p.add(i) } } else { A::ZERO })
    }
    #[inline(always)]
    unsafe fn mul_acc(mut acc: [A; LANES], a: [A; LANES], b: [A; LANES]) -> [A; LANES] {
        for i in 0..LANES {
            acc[i] = acc[i].plus(a[i].times(b[i]));
        }
        acc
    }
    #[inline(always)]
    unsafe fn add(mut a: [A; LANES], b: [A; LANES]) -> [A; LANES] {
        for i in 0..LANES {
            a[i] = a[i].plus(b[i]);
        }
        a
    }
    #[inline(always)]
    unsafe fn read(p: *const A, n: usize) -> [A; LANES] {
        // SAFETY: the caller's contract.
        unsafe { Self::load_part(p, n) }
    }
    #[inline(always)]
    unsafe fn write(p: *mut A, v: [A; LANES], n: usize) {
        for (i, x) in v.into_iter().enumerate().take(n) {
            // SAFETY: the caller's contract: `n` elements are writable.
            unsafe { *p.add(i) = x };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_cover_the_columns_without_single_vectors_after_threes() {
        for n in 0..20 {
            let all: Vec<_> = panels(n).collect();
            assert_eq!(all.iter().map(|p| p.1).sum::<usize>(), n);
            assert!(n < 2 || all.iter().all(|p| p.1 >= 2), "{n}: {all:?}");
        }
    }
}
