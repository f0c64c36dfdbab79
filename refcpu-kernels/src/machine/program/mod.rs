//! The parts of programs: cells, arrays, windows, and the instructions that refer to them.

pub(crate) mod instr;
pub(crate) mod optimise;

use crate::tile::{Kernel, Opcode};
use crate::{ComputeType, DType};
use instr::Instr;

/// The number of a cell.
pub(crate) type Cell = u16;

/// The maximum number of cells of a program: 256 KiB, which fit into the second-level cache.
pub(crate) const MAX_CELLS: usize = 1 << 15;

/// The cells that hold the elements of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    pub(crate) cell: Cell,
    pub(crate) dtype: DType,
    pub(crate) len: usize,
}

impl Place {
    /// Returns the element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the number of elements.
    #[allow(clippy::len_without_is_empty, reason = "a place has at least one element")]
    pub fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn bytes(&self) -> usize {
        self.len * self.dtype.size()
    }

    /// Returns the cells that the value occupies.
    pub(crate) fn cells(&self) -> std::ops::Range<usize> {
        let start = usize::from(self.cell);
        start..start + self.bytes().div_ceil(8)
    }
}

/// An array that windows and calls access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ArrayId(pub(crate) u16);

/// The description of an array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArraySpec {
    pub(crate) base: Base,
    pub(crate) dtype: DType,
    pub(crate) len: usize,
}

/// The memory of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    /// The operand with this number.
    Read(usize),
    /// The result with this number, which holds its initial value when the program begins.
    Write(usize),
    /// Cells, beginning with this one.
    Cells(Cell),
}

/// A dimension along which a window is shifted.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The index, which is a single integer.
    pub index: Place,
    /// The largest index for which the window lies inside the array.
    pub limit: usize,
    /// The number of elements by which the window is shifted per unit of the index.
    pub step: usize,
}

/// The treatment of a window that is out of bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
    /// The window is shifted inside, as by `dynamic_slice`.
    Clamp,
    /// The window is not written, as by `scatter`.
    Skip,
}

/// A part of an array: `runs` of consecutive elements, which are shifted by the same indices.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    pub(crate) array: ArrayId,
    /// For each dimension along which the window is shifted: the cell of the index, its type, the largest
    /// index, and the number of bytes per unit.
    pub(crate) starts: Vec<(Cell, DType, i64, usize)>,
    /// The offset of each run in bytes.
    pub(crate) runs: Vec<usize>,
    /// The size of a run in bytes.
    pub(crate) run: usize,
    pub(crate) outside: Outside,
}

/// A kernel for single elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScalarKernel {
    pub(crate) kernel: Kernel,
    pub(crate) opcode: Opcode,
    /// The type of the result.
    pub(crate) to: ComputeType,
    /// The type of the first operand.
    pub(crate) from: ComputeType,
}

/// A vector operation on short arrays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vector {
    pub(crate) kernel: Kernel,
    pub(crate) opcode: Opcode,
    /// The type of the result.
    pub(crate) to: ComputeType,
    /// The type of the first operand.
    pub(crate) from: ComputeType,
    pub(crate) dst: Place,
    pub(crate) src: [Place; 3],
    pub(crate) n: usize,
}

/// An array of a call.
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    pub(crate) array: ArrayId,
    pub(crate) dtype: DType,
    pub(crate) dims: Box<[usize]>,
}

/// The results of a call, in the order in which its kernel computes them. Machine code computes them without the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Formula {
    /// The first operand is an array of rows of this length, and the second a single element. A result combines the element and
    /// a row, as [`crate::reduce::reduce`] does.
    Rows(crate::ReduceOp, usize),
    /// The first operand is an array of rows of rows, and the second a single element. A result combines the element and
    /// the elements at one position of `rows` rows, as [`crate::reduce::reduce`] does.
    Columns {
        /// The operation.
        op: crate::ReduceOp,
        /// The number of rows that are combined.
        rows: usize,
        /// The number of elements of a row.
        inner: usize,
    },
    /// The first operand is an array with an element for each result, and the second a single element. A result combines the
    /// element and all elements up to its own along the middle one of three dimensions, as [`crate::window::reduce_window`] does.
    Cumulative {
        /// The operation.
        op: crate::ReduceOp,
        /// The size of the dimension.
        n: usize,
        /// The number of elements of the dimensions after it.
        inner: usize,
        /// `true` if the elements are combined from the last one on.
        reverse: bool,
    },
    /// The operand is an array of rows of `n` elements. The results are the first extreme of each row, and its index, as
    /// [`crate::reduce::arg_reduce`] finds them.
    Extremes {
        /// `true` for maxima, `false` for minima.
        maximum: bool,
        /// The number of elements of a row.
        n: usize,
    },
    /// The products of matrices that have more than one row and column, as [`crate::dot::dot_general`] computes them.
    Matrices(Matrices),
    /// The products of a matrix and a vector, as [`crate::dot::dot_general`] computes them.
    MatrixVector {
        /// The operand that is the matrix: 0 or 1. The other one is the vector.
        matrix: usize,
        /// The length of the vector.
        depth: usize,
        /// The distance between the elements of a sum, or, if `adjacent`, between those of neighboring results.
        stride: usize,
        /// `true` if the elements of a sum are adjacent, `false` if those of neighboring results are.
        adjacent: bool,
    },
}

/// A batch of products of matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matrices {
    /// The number of products.
    pub batch: usize,
    /// The number of rows of the left operand and the result.
    pub rows: usize,
    /// The number of columns of the right operand and the result.
    pub cols: usize,
    /// The number of columns of the left operand and of rows of the right one.
    pub depth: usize,
    /// The distances between the matrices, the rows and the columns of the left operand.
    pub lhs: [usize; 3],
    /// The distances between the matrices, the rows and the columns of the right operand.
    pub rhs: [usize; 3],
}

impl Matrices {
    /// Returns the numbers of elements that the operands need, or `None` if they are too large.
    fn extents(&self) -> Option<[usize; 2]> {
        let extent = |sizes: [usize; 3], strides: [usize; 3]| {
            sizes.iter().zip(strides).try_fold(1usize, |end, (size, stride)| {
                end.checked_add(size.checked_sub(1)?.checked_mul(stride)?)
            })
        };
        let Self { batch, rows, cols, depth, .. } = *self;
        Some([extent([batch, rows, depth], self.lhs)?, extent([batch, depth, cols], self.rhs)?])
    }
}

/// An action of the caller.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) what: usize,
    pub(crate) formula: Option<Formula>,
    pub(crate) reads: Vec<Operand>,
    pub(crate) writes: Vec<Operand>,
}

impl Formula {
    /// Returns the formula of a cumulative operation, whose windows contain all elements up to each position along one dimension
    /// or all from it on; `None` for other windows. The combination of the initial value with itself must be the initial value.
    pub fn of_windows(
        op: crate::ReduceOp,
        input: &[usize],
        spec: &crate::window::WindowSpec,
    ) -> Option<Self> {
        let (n, inner, reverse) = crate::window::cumulative(input, spec)?;
        Some(Self::Cumulative { op, n, inner, reverse })
    }

    /// Returns whether the operands have the elements that the formula reads.
    pub(crate) fn fits(&self, arrays: &[ArraySpec], reads: &[Operand], writes: &[Operand]) -> bool {
        let len = |o: &Operand| arrays[usize::from(o.array.0)].len;
        if let (&Self::Extremes { n, .. }, [a], [values, indices]) = (self, reads, writes) {
            let rows = len(values);
            let integers = matches!(indices.dtype, DType::S32 | DType::S64);
            return n > 0
                && len(a) == n * rows
                && len(indices) == rows
                && a.dtype == values.dtype
                && integers;
        }
        let ([a, b], [result]) = (reads, writes) else { return false };
        let count = len(result);
        let same = a.dtype == result.dtype && b.dtype == result.dtype;
        same && match *self {
            Self::Extremes { .. } => false,
            Self::Rows(_, n) => n > 0 && len(a) == n * count && len(b) == 1,
            Self::Columns { rows, inner, .. } => {
                let whole = inner > 0 && rows > 0 && count.is_multiple_of(inner);
                whole && len(a) == rows * count && len(b) == 1
            }
            Self::Cumulative { n, inner, .. } => {
                let whole = n.checked_mul(inner).is_some_and(|n| n > 0 && count.is_multiple_of(n));
                whole && len(a) == count && len(b) == 1
            }
            Self::Matrices(m) => {
                let results = m.batch.checked_mul(m.rows).and_then(|n| n.checked_mul(m.cols));
                let fits = |[lhs, rhs]: [usize; 2]| lhs <= len(a) && rhs <= len(b);
                results == Some(count) && m.extents().is_some_and(fits)
            }
            Self::MatrixVector { matrix, depth, stride, adjacent } => {
                let (matrix, vector) = if matrix == 0 { (a, b) } else { (b, a) };
                let (outer, inner) = if adjacent { (count, depth) } else { (depth, count) };
                let end = outer.checked_sub(1).and_then(|n| n.checked_mul(stride)?.checked_add(inner));
                len(vector) == depth && end.is_some_and(|end| end <= len(matrix))
            }
        }
    }
}

/// The parts of a program.
#[derive(Clone)]
pub(crate) struct Program {
    pub(crate) instrs: Vec<Instr>,
    /// The initial contents of the cells.
    pub(crate) cells: Vec<u64>,
    pub(crate) arrays: Vec<ArraySpec>,
    pub(crate) windows: Vec<Window>,
    /// The kernels for single elements.
    pub(crate) kernels: Vec<ScalarKernel>,
    pub(crate) vectors: Vec<Vector>,
    /// The copies: destination and source.
    pub(crate) copies: Vec<(Place, Place)>,
    /// The splats: array and element.
    pub(crate) splats: Vec<(Place, Place)>,
    pub(crate) calls: Vec<Call>,
    pub(crate) switches: Vec<Vec<u16>>,
    pub(crate) reads: usize,
    pub(crate) writes: usize,
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "code of {} cells:", self.cells.len())?;
        for (at, i) in self.instrs.iter().enumerate() {
            writeln!(f, "  {at:4}: {:?} {} <- {} {} {} x {}", i.op, i.dst, i.a, i.b, i.c, i.x)?;
        }
        Ok(())
    }
}

/// Returns the number of cells for `len` elements of a type in its representation in memory.
pub(crate) fn cells_of(dtype: DType, len: usize) -> usize {
    debug_assert_eq!(dtype.raw_type().size(), dtype.size());
    (len * dtype.size()).div_ceil(8)
}
