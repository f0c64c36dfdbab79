//! The inner kernel of matrix products: blocks of C += A B with all accumulators in registers.
//!
//! A tile consists of a few rows of A and a few vectors of columns of B. Elements of A are broadcast, so A
//! can have any strides; rows of B must be contiguous. The loops over tiles are compiled per instruction set,
//! as one function per arithmetic.

use crate::number::Accumulator;
use std::marker::PhantomData;

/// The vector operations of a tile.
///
/// # Safety
/// `load`, `load_part`, `read` and `write` must not access memory beyond the requested lanes.
pub(crate) unsafe trait Arith: Copy + 'static {
    /// The type of a lane of a vector of B, and of the elements of A that are broadcast.
    type Unit: Copy + 'static;
    /// The type of C's elements.
    type Out: Copy + 'static;
    /// A vector of units.
    type Units: Copy;
    /// A vector of accumulators.
    type Accs: Copy;
    /// The number of lanes of a vector.
    const LANES: usize;
    /// The number of rows of a full tile: 8 or 4.
    const ROWS: usize;
    /// `true` if `load_part` is as fast as `load`, so that B need not be padded to whole vectors.
    const MASKED: bool;

    /// Returns zeros.
    ///
    /// # Safety
    /// The machine must have the instruction set of the implementation. This applies to every function of
    /// this trait.
    unsafe fn zero() -> Self::Accs;
    /// Returns the unit at `p` in every lane.
    ///
    /// # Safety
    /// `p` must be readable.
    unsafe fn splat(p: *const Self::Unit) -> Self::Units;
    /// Loads the units at `p`.
    ///
    /// # Safety
    /// `LANES` units at `p` must be readable.
    unsafe fn load(p: *const Self::Unit) -> Self::Units;
    /// Loads the first `n` units at `p`.
    ///
    /// # Safety
    /// `n` units at `p` must be readable, and `n` at most `LANES`.
    unsafe fn load_part(p: *const Self::Unit, n: usize) -> Self::Units;
    /// Returns `acc + a * b`.
    ///
    /// # Safety
    /// See `zero`.
    unsafe fn mul_acc(acc: Self::Accs, a: Self::Units, b: Self::Units) -> Self::Accs;
    /// Returns `a + b`.
    ///
    /// # Safety
    /// See `zero`.
    unsafe fn add(a: Self::Accs, b: Self::Accs) -> Self::Accs;
    /// Reads the first `n` elements at `p`.
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

/// The layout of B in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Panels {
    /// The rows of the array itself, this many units apart.
    Rows(usize),
    /// The panels into which [`panels`] divides the columns, one after the other, each with `depth` rows of
    /// its own width. The last panel is padded to whole vectors.
    Packed,
}

/// A block of a matrix product, for a number of matrices of the same shape. Strides count elements.
#[derive(Clone, Copy)]
pub(crate) struct Block<U, O> {
    /// The first element of A.
    pub a: *const U,
    /// The distance between rows of A.
    pub a_row: usize,
    /// The distance between columns of A.
    pub a_col: usize,
    /// The first element of B.
    pub b: *const U,
    /// The layout of B in memory.
    pub b_layout: Panels,
    /// The first element of C, whose rows are contiguous.
    pub c: *mut O,
    /// The distance between rows of C.
    pub c_row: usize,
    /// The number of rows of A and C.
    pub rows: usize,
    /// The number of columns of B and C.
    pub cols: usize,
    /// The number of columns of A and rows of B.
    pub depth: usize,
    /// `true` to add to C, `false` to overwrite it.
    pub accumulate: bool,
    /// The number of matrices.
    pub batch: usize,
    /// The distances between matrices of A, B, C.
    pub batch_strides: [usize; 3],
}

/// Returns the number of vectors in each panel, for `vectors` vectors of columns: three, and two at the end
/// where one would be left.
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
/// All elements of A, B and C that the block describes must be readable (of B's last panel, only those up to
/// `cols` if B is not packed). Those of C must be writable, and nothing else may access them. The machine
/// must have `K`'s instruction set. If `K` is not `MASKED`, B must be packed, or `cols` a multiple of the
/// lanes.
#[inline(always)]
pub(crate) unsafe fn block<K: Arith>(block: &Block<K::Unit, K::Out>) {
    for i in 0..block.batch {
        let [sa, sb, sc] = block.batch_strides;
        // SAFETY: the caller guarantees the elements of every matrix of the batch; the loops below stay
        // within `rows`, `cols` and `depth`.
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
    /// The number of columns in the last vector.
    last: usize,
    accumulate: bool,
}

impl<K: Arith> Tile<K> {
    /// # Safety
    /// The same as [`block`], for `R` rows and `vectors` (1 to 3) vectors of columns.
    #[inline(always)]
    unsafe fn run_vectors<const R: usize>(&self, vectors: usize) -> usize {
        // SAFETY: guaranteed by the caller.
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
    /// The same as [`block`], for `R` rows and `V` vectors of columns.
    #[inline(always)]
    unsafe fn run<const R: usize, const V: usize>(&self) {
        // SAFETY: the caller guarantees `R` rows, `depth` and `V` vectors, the last of which has `last`
        // columns; the loops access exactly these.
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

/// Arithmetic on arrays that the compiler vectorizes, for types and machines without specific kernels.
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
        // SAFETY: guaranteed by the caller.
        [unsafe { *p }; LANES]
    }
    #[inline(always)]
    unsafe fn load(p: *const A) -> [A; LANES] {
        // SAFETY: guaranteed by the caller: `LANES` elements are readable; arrays have the alignment of their
        // elements.
        unsafe { *p.cast() }
    }
    #[inline(always)]
    unsafe fn load_part(p: *const A, n: usize) -> [A; LANES] {
        // SAFETY: guaranteed by the caller: `n` elements are readable.
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
        // SAFETY: guaranteed by the caller.
        unsafe { Self::load_part(p, n) }
    }
    #[inline(always)]
    unsafe fn write(p: *mut A, v: [A; LANES], n: usize) {
        for (i, x) in v.into_iter().enumerate().take(n) {
            // SAFETY: guaranteed by the caller: `n` elements are writable.
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
