//! Reductions of short rows, and products of small matrices and vectors. Their elements are combined in the order of the kernels.

use super::memory::pieces;
use super::scalar::scalar_of;
use super::translate::Translation;
use crate::ReduceOp;
use crate::machine::program::{Base, Call, Formula, Operand};
use refcpu_codegen::{Access, BinaryOp, Inst, MAX_VECTOR, Reg, Relation, Scalar, Type, UnaryOp};

/// The number of accumulators of a row that is reduced; shorter rows are combined one element after the other.
const REDUCE_LANES: usize = 8;
/// The length from which the kernel uses more accumulators.
const LONG_ROW: usize = 64;
/// The number of accumulators of a sum of products along a row.
const DOT_LANES: usize = 16;
/// The largest number of elements that are combined one by one.
const MAX_ELEMENTS: usize = 128;
/// The largest number of elements that are combined as vectors.
const MAX_VECTOR_ELEMENTS: usize = 1024;

impl Translation<'_> {
    /// Translates a call by its formula. Returns `false` if it has none, or if the code would be too long.
    pub(super) fn formula(&mut self, call: &Call) -> bool {
        let (Some(formula), [a, b], [result]) = (call.formula, &*call.reads, &*call.writes) else {
            return false;
        };
        let Some(scalar) = scalar_of(result.dtype).filter(|s| *s != Scalar::Bool) else { return false };
        let count: usize = result.dims.iter().product();
        match formula {
            Formula::Rows(op, n) => {
                let unsigned = matches!(result.dtype, crate::DType::U32 | crate::DType::U64);
                if n >= LONG_ROW || n * count > MAX_ELEMENTS || unsigned {
                    return false;
                }
                let init = self.element(b, 0, Type::one(scalar));
                for row in 0..count {
                    let sum = self.row(op, a, row * n, n, scalar);
                    let value = self.combine(op, init, sum);
                    self.set_result(result, row, value);
                }
            }
            Formula::MatrixVector { matrix, depth, stride, adjacent } => {
                let (matrix, vector) = if matrix == 0 { (a, b) } else { (b, a) };
                let whole = depth.is_multiple_of(MAX_VECTOR / scalar.size()) || !adjacent;
                let most = if whole { MAX_VECTOR_ELEMENTS } else { MAX_ELEMENTS };
                if !scalar.is_float() || depth * count > most {
                    return false;
                }
                match (adjacent, whole) {
                    (false, _) => {
                        self.rows_times(matrix, vector, result, [count, depth, stride], scalar, false)
                    }
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
            }
        }
        true
    }

    /// Returns the elements of an operand from an index on.
    fn element(&mut self, o: &Operand, index: usize, ty: Type) -> Reg {
        let number = usize::from(o.array.0);
        let offset = index * ty.scalar.size();
        match (self.code.arrays[number].base, self.arrays[number]) {
            (Base::Cells(cell), _) => self.read_cells(usize::from(cell) * 8 + offset, ty),
            (_, array) => {
                let dst = self.f.reg(ty);
                let array = array.expect("an array outside the cells has a number");
                self.f.push(Inst::Load { dst, at: Access::fixed(array, offset) });
                dst
            }
        }
    }

    fn set_result(&mut self, o: &Operand, index: usize, value: Reg) {
        let Base::Cells(cell) = self.code.arrays[usize::from(o.array.0)].base else {
            unreachable!("calls write to cells")
        };
        let size = self.f.type_of(value).scalar.size();
        self.write_cells(usize::from(cell) * 8 + index * size, value);
    }

    fn binary(&mut self, op: BinaryOp, a: Reg, b: Reg) -> Reg {
        let dst = self.f.reg(self.f.type_of(a));
        self.f.push(Inst::Binary { op, dst, a, b });
        dst
    }

    /// Combines two elements as a reduction does.
    fn combine(&mut self, op: ReduceOp, a: Reg, b: Reg) -> Reg {
        let ty = self.f.type_of(a);
        let op = match op {
            ReduceOp::Add => BinaryOp::Add,
            ReduceOp::Multiply => BinaryOp::Multiply,
            ReduceOp::And => BinaryOp::And,
            ReduceOp::Or => BinaryOp::Or,
            ReduceOp::Xor => BinaryOp::Xor,
            ReduceOp::Minimum if !ty.scalar.is_float() => BinaryOp::Minimum,
            ReduceOp::Maximum if !ty.scalar.is_float() => BinaryOp::Maximum,
            ReduceOp::Minimum => return self.extreme(a, b, [a, b]),
            ReduceOp::Maximum => return self.extreme(a, b, [b, a]),
        };
        self.binary(op, a, b)
    }

    /// Returns `a` if it is NaN, or if the first float of `ordered` is not above the second; otherwise `b`.
    fn extreme(&mut self, a: Reg, b: Reg, ordered: [Reg; 2]) -> Reg {
        let boolean = Type::one(Scalar::Bool);
        let [first, nan, condition] = [(); 3].map(|()| self.f.reg(boolean));
        let [x, y] = ordered;
        self.f.push(Inst::Compare { relation: Relation::Le, dst: first, a: x, b: y });
        self.f.push(Inst::Compare { relation: Relation::Ne, dst: nan, a, b: a });
        self.f.push(Inst::Binary { op: BinaryOp::Or, dst: condition, a: first, b: nan });
        let dst = self.f.reg(self.f.type_of(a));
        self.f.push(Inst::Select { dst, condition, a, b });
        dst
    }

    /// Combines the elements of a row. The identity, with which the kernel begins, changes no element.
    fn row(&mut self, op: ReduceOp, o: &Operand, from: usize, n: usize, scalar: Scalar) -> Reg {
        let lanes = if n < REDUCE_LANES { 1 } else { REDUCE_LANES };
        let mut acc: Vec<Reg> = (0..lanes).map(|l| self.element(o, from + l, Type::one(scalar))).collect();
        for i in lanes..n {
            let x = self.element(o, from + i, Type::one(scalar));
            acc[i % lanes] = self.combine(op, acc[i % lanes], x);
        }
        let mut gap = lanes / 2;
        while gap > 0 {
            for l in 0..gap {
                acc[l] = self.combine(op, acc[l], acc[l + gap]);
            }
            gap /= 2;
        }
        acc[0]
    }

    fn fma(&mut self, a: Reg, b: Reg, c: Reg) -> Reg {
        let dst = self.f.reg(self.f.type_of(a));
        self.f.push(Inst::Fma { dst, a, b, c });
        dst
    }

    /// Returns the sum of the products along a row whose length is a multiple of a vector's.
    fn dot_of_vectors(&mut self, m: &Operand, from: usize, x: &Operand, depth: usize, scalar: Scalar) -> Reg {
        let lanes = MAX_VECTOR / scalar.size();
        let ty = Type::vector(scalar, lanes as u8);
        let zero = self.constant(ty, 0);
        let mut acc = vec![zero; DOT_LANES / lanes];
        for k in 0..depth / lanes {
            let a = self.element(m, from + k * lanes, ty);
            let b = self.element(x, k * lanes, ty);
            let l = k % acc.len();
            acc[l] = self.fma(a, b, acc[l]);
        }
        while acc.len() > 1 {
            let half = acc.len() / 2;
            for l in 0..half {
                acc[l] = self.binary(BinaryOp::Add, acc[l], acc[l + half]);
            }
            acc.truncate(half);
        }
        let mut sum = acc[0];
        while self.f.type_of(sum).lanes > 1 {
            let ty = self.f.type_of(sum);
            let half = Type { lanes: ty.lanes / 2, ..ty };
            let [low, high] = [UnaryOp::Low, UnaryOp::High].map(|op| {
                let dst = self.f.reg(half);
                self.f.push(Inst::Unary { op, dst, a: sum });
                dst
            });
            sum = self.binary(BinaryOp::Add, low, high);
        }
        sum
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

    /// Adds rows multiplied by the elements of a vector. If `add_zero`, the results are added to zero, as those of sums along rows.
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
