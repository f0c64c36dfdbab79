//! Products of small matrices and vectors.

use super::SET;
use super::pieces::pieces;
use super::translate::Translation;
use crate::machine::program::{Call, Formula, Matrices, Operand};
use refcpu_codegen::{BinaryOp, Inst, Reg, Scalar, Type};

/// The number of accumulators of a sum of products along a row.
const DOT_LANES: usize = 16;
/// The largest number of elements that are combined one by one.
const MAX_ELEMENTS: usize = 128;
/// The largest number of elements that are combined as vectors.
const MAX_VECTOR_ELEMENTS: usize = 1024;
/// The number of vectors of a matrix that stay in registers while the rows of the other one are multiplied.
const FEW: usize = 6;
/// The largest number of products of elements or vectors of a product of matrices.
const MAX_PRODUCTS: usize = 640;

impl Translation<'_> {
    /// Multiplies a matrix and a vector.
    pub(super) fn matrix_vector(&mut self, formula: Formula, call: &Call, scalar: Scalar) -> bool {
        let Formula::MatrixVector { matrix, depth, stride, adjacent } = formula else { return false };
        let ([a, b], [result]) = (&*call.reads, &*call.writes) else { return false };
        let count: usize = result.dims.iter().product();
        let (matrix, vector) = if matrix == 0 { (a, b) } else { (b, a) };
        let whole = depth.is_multiple_of(SET.vector() / scalar.size()) || !adjacent;
        let most = if whole { MAX_VECTOR_ELEMENTS } else { MAX_ELEMENTS };
        if !scalar.is_float() || depth * count > most {
            return false;
        }
        match (adjacent, whole) {
            (false, _) => self.rows_times(matrix, vector, result, [count, depth, stride], scalar, false),
            // One product for each result: the elements of neighboring results are adjacent too.
            (true, _) if depth == 1 && stride == 1 => {
                self.rows_times(matrix, vector, result, [count, depth, stride], scalar, true);
            }
            (true, whole) => {
                for row in 0..count {
                    let value = if whole {
                        self.dot_of_vectors(matrix, row * stride, vector, depth, scalar)
                    } else {
                        self.dot_of_elements(matrix, row * stride, vector, depth, scalar)
                    };
                    self.set_result(result, row, value);
                }
            }
        }
        true
    }

    /// Multiplies matrices. Each element of the result is a chain of fused products and sums along the depth, as in the kernel.
    pub(super) fn matrices(&mut self, m: &Matrices, call: &Call, scalar: Scalar) -> bool {
        let ([a, b], [result]) = (&*call.reads, &*call.writes) else { return false };
        let pieces = match m.rhs[2] {
            1 => pieces(scalar, m.cols),
            _ => (0..m.cols).map(|j| (j * scalar.size(), Type::one(scalar))).collect(),
        };
        if !scalar.is_float() || m.batch * m.rows * m.depth * pieces.len() > MAX_PRODUCTS {
            return false;
        }
        for member in 0..m.batch {
            for row in 0..m.rows {
                let ones: Vec<Reg> = (0..m.depth)
                    .map(|k| {
                        let at = member * m.lhs[0] + row * m.lhs[1] + k * m.lhs[2];
                        self.element(a, at, Type::one(scalar))
                    })
                    .collect();
                for (offset, ty) in &pieces {
                    let column = offset / scalar.size();
                    let mut sum = self.constant(*ty, 0);
                    for (k, one) in ones.iter().enumerate() {
                        let at = member * m.rhs[0] + k * m.rhs[1] + column * m.rhs[2];
                        // Few of the elements fit into registers.
                        let y = if m.depth * pieces.len() > FEW {
                            self.loaded(b, at, *ty)
                        } else {
                            self.element(b, at, *ty)
                        };
                        let x = self.repeated(*one, *ty);
                        sum = self.fma(x, y, sum);
                    }
                    self.set_result(result, (member * m.rows + row) * m.cols + column, sum);
                }
            }
        }
        true
    }

    fn fma(&mut self, a: Reg, b: Reg, c: Reg) -> Reg {
        let dst = self.f.reg(self.f.type_of(a));
        self.f.push(Inst::Fma { dst, a, b, c });
        dst
    }

    /// Returns the sum of the products along a row whose length is a multiple of a vector's.
    fn dot_of_vectors(&mut self, m: &Operand, from: usize, x: &Operand, depth: usize, scalar: Scalar) -> Reg {
        let lanes = SET.vector() / scalar.size();
        let ty = Type::vector(scalar, lanes as u8);
        let zero = self.constant(ty, 0);
        let mut acc = vec![zero; DOT_LANES / lanes];
        for k in 0..depth / lanes {
            let a = self.element(m, from + k * lanes, ty);
            let b = self.element(x, k * lanes, ty);
            let l = k % acc.len();
            acc[l] = self.fma(a, b, acc[l]);
        }
        self.combine_lanes(BinaryOp::Add, acc)
    }

    /// Returns the sum of the products along a row, element by element.
    fn dot_of_elements(
        &mut self,
        m: &Operand,
        from: usize,
        x: &Operand,
        depth: usize,
        scalar: Scalar,
    ) -> Reg {
        let ty = Type::one(scalar);
        let zero = self.constant(ty, 0);
        let mut acc: Vec<Option<Reg>> = vec![None; DOT_LANES];
        for k in 0..depth {
            let (a, b) = (self.element(m, from + k, ty), self.element(x, k, ty));
            let l = k % DOT_LANES;
            acc[l] = Some(self.fma(a, b, acc[l].unwrap_or(zero)));
        }
        let mut gap = DOT_LANES / 2;
        while gap > 0 {
            for l in 0..gap {
                acc[l] = match (acc[l], acc[l + gap]) {
                    // The sum with an empty accumulator is not -0, so that the next such sum changes nothing.
                    (Some(a), None) if gap == DOT_LANES / 2 => Some(self.binary(BinaryOp::Add, a, zero)),
                    (a, None) => a,
                    (None, b) => b,
                    (Some(a), Some(b)) => Some(self.binary(BinaryOp::Add, a, b)),
                };
            }
            gap /= 2;
        }
        acc[0].unwrap_or(zero)
    }

    /// Adds rows multiplied by the elements of a vector. If `add_zero`, the results are added to zero, as those of sums along
    /// rows.
    fn rows_times(
        &mut self,
        m: &Operand,
        x: &Operand,
        result: &Operand,
        [count, depth, stride]: [usize; 3],
        scalar: Scalar,
        add_zero: bool,
    ) {
        for (offset, ty) in pieces(scalar, count) {
            let at = offset / scalar.size();
            let zero = self.constant(ty, 0);
            let mut sum = zero;
            for k in 0..depth {
                let one = self.element(x, k, Type::one(scalar));
                let factor = self.repeated(one, ty);
                let row = self.element(m, k * stride + at, ty);
                sum = self.fma(row, factor, sum);
            }
            if add_zero {
                sum = self.binary(BinaryOp::Add, sum, zero);
            }
            self.set_result(result, at, sum);
        }
    }
}
