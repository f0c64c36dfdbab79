//! Reductions, cumulative operations and the positions of extremes, of few elements.

use super::SET;
use super::pieces::pieces;
use super::translate::Translation;
use crate::ReduceOp;
use crate::machine::program::{Call, Operand};
use crate::native::scalar_of;
use refcpu_codegen::{BinaryOp, Inst, Reg, Relation, Scalar, Type, UnaryOp};

/// The number of accumulators of a row that is reduced; shorter rows are combined one element after the other.
const REDUCE_LANES: usize = 8;
/// The length from which the kernel uses more accumulators.
const LONG_ROW: usize = 64;
/// The number of rows that the kernel combines at a time, element by element.
const ROWS: usize = 8;
/// The width of the tiles that the kernel accumulates.
const TILE: usize = 512;
/// The number of values in a block of a cumulative operation.
const BLOCK: usize = 32;
/// The largest number of operations of a formula.
const MAX_OPERATIONS: usize = 256;

fn operation(op: ReduceOp, is_float: bool) -> BinaryOp {
    match op {
        ReduceOp::Add => BinaryOp::Add,
        ReduceOp::Multiply => BinaryOp::Multiply,
        ReduceOp::And => BinaryOp::And,
        ReduceOp::Or => BinaryOp::Or,
        ReduceOp::Xor => BinaryOp::Xor,
        ReduceOp::Minimum if is_float => BinaryOp::Least,
        ReduceOp::Maximum if is_float => BinaryOp::Greatest,
        ReduceOp::Minimum => BinaryOp::Minimum,
        ReduceOp::Maximum => BinaryOp::Maximum,
    }
}

/// Returns the vectors and elements that `n` elements consist of, for an operation.
fn defined_pieces(op: BinaryOp, scalar: Scalar, n: usize) -> Vec<(usize, Type)> {
    let one = Type::one(scalar);
    let all = pieces(scalar, n);
    if all.iter().all(|(_, ty)| op.is_defined(*ty, SET)) {
        return all;
    }
    (0..n).map(|i| (i * scalar.size(), one)).collect()
}

impl Translation<'_> {
    /// Reduces rows of `n` adjacent elements.
    pub(super) fn rows(&mut self, op: ReduceOp, call: &Call, n: usize, scalar: Scalar) -> bool {
        let ([a, init], [result]) = (&*call.reads, &*call.writes) else { return false };
        let count: usize = result.dims.iter().product();
        let (op, one) = (operation(op, scalar.is_float()), Type::one(scalar));
        if n >= LONG_ROW || n * count > MAX_OPERATIONS || !op.is_defined(one, SET) {
            return false;
        }
        let init = self.element(init, 0, one);
        for row in 0..count {
            let value = self.row(op, a, row * n, n, scalar);
            let value = self.binary(op, init, value);
            self.set_result(result, row, value);
        }
        true
    }

    /// Combines the elements of a row. The identity, with which the kernel begins, changes no element.
    fn row(&mut self, op: BinaryOp, o: &Operand, from: usize, n: usize, scalar: Scalar) -> Reg {
        let vectors = defined_pieces(op, scalar, REDUCE_LANES);
        let size = scalar.size();
        let is_whole = n.is_multiple_of(REDUCE_LANES) && vectors[0].1.lanes > 1;
        if is_whole {
            let mut acc = Vec::new();
            for (offset, ty) in vectors {
                let mut sum = self.element(o, from + offset / size, ty);
                for block in 1..n / REDUCE_LANES {
                    let x = self.element(o, from + block * REDUCE_LANES + offset / size, ty);
                    sum = self.binary(op, sum, x);
                }
                acc.push(sum);
            }
            return self.combine_lanes(op, acc);
        }
        let lanes = if n < REDUCE_LANES { 1 } else { REDUCE_LANES };
        let mut acc: Vec<Reg> = (0..lanes).map(|l| self.element(o, from + l, Type::one(scalar))).collect();
        for i in lanes..n {
            let x = self.element(o, from + i, Type::one(scalar));
            acc[i % lanes] = self.binary(op, acc[i % lanes], x);
        }
        self.combine_lanes(op, acc)
    }

    /// Combines the first half of the elements with the second until one element is left.
    pub(super) fn combine_lanes(&mut self, op: BinaryOp, mut acc: Vec<Reg>) -> Reg {
        while acc.len() > 1 {
            let half = acc.len() / 2;
            for l in 0..half {
                acc[l] = self.binary(op, acc[l], acc[l + half]);
            }
            acc.truncate(half);
        }
        let mut value = acc[0];
        while self.f.type_of(value).lanes > 1 {
            let ty = self.f.type_of(value);
            let half = Type { lanes: ty.lanes / 2, ..ty };
            let [low, high] = [UnaryOp::Low, UnaryOp::High].map(|op| {
                let dst = self.f.reg(half);
                self.f.push(Inst::Unary { op, dst, a: value });
                dst
            });
            value = self.binary(op, low, high);
        }
        value
    }

    /// Combines rows of `inner` elements element by element.
    pub(super) fn columns(
        &mut self,
        op: ReduceOp,
        call: &Call,
        [rows, inner]: [usize; 2],
        scalar: Scalar,
    ) -> bool {
        let ([a, init], [result]) = (&*call.reads, &*call.writes) else { return false };
        let outer = result.dims.iter().product::<usize>() / inner;
        let op = operation(op, scalar.is_float());
        let pieces = defined_pieces(op, scalar, inner);
        if outer * rows * pieces.len() > MAX_OPERATIONS || !op.is_defined(Type::one(scalar), SET) {
            return false;
        }
        // The kernel reads several short rows as one longer row, and combines its parts at the end.
        let parts = if inner < TILE / 2 { (TILE / inner).min(rows / ROWS).max(1) } else { 1 };
        let whole = rows / parts * parts;
        let init = self.element(init, 0, Type::one(scalar));
        for o in 0..outer {
            for (offset, ty) in &pieces {
                let at = |row: usize| (o * rows + row) * inner + offset / scalar.size();
                let mut sum = None;
                for part in 0..parts {
                    let mut acc = None;
                    let strided: Vec<usize> = (part..whole).step_by(parts).map(at).collect();
                    self.rows_of_vectors(op, a, &strided, *ty, &mut acc);
                    if part == 0 {
                        let rest: Vec<usize> = (whole..rows).map(at).collect();
                        self.rows_of_vectors(op, a, &rest, *ty, &mut acc);
                    }
                    sum = self.combined(op, sum, acc.expect("a part has rows"));
                }
                let first = self.repeated(init, *ty);
                let value = self.binary(op, first, sum.expect("there is a part"));
                self.set_result(result, o * inner + offset / scalar.size(), value);
            }
        }
        true
    }

    fn combined(&mut self, op: BinaryOp, a: Option<Reg>, b: Reg) -> Option<Reg> {
        Some(a.map_or(b, |a| self.binary(op, a, b)))
    }

    /// Combines the elements at some indices with `acc`: eight at a time in pairs, and others one by one.
    fn rows_of_vectors(&mut self, op: BinaryOp, o: &Operand, at: &[usize], ty: Type, acc: &mut Option<Reg>) {
        let mut groups = at.chunks_exact(ROWS);
        for group in &mut groups {
            let mut x: Vec<Reg> = group.iter().map(|i| self.element(o, *i, ty)).collect();
            while x.len() > 1 {
                x = x.chunks(2).map(|pair| self.binary(op, pair[0], pair[1])).collect();
            }
            *acc = self.combined(op, *acc, x[0]);
        }
        for i in groups.remainder() {
            let x = self.element(o, *i, ty);
            *acc = self.combined(op, *acc, x);
        }
    }

    /// Combines each element with all before it (or after it, if `reverse`) along the middle one of three dimensions.
    pub(super) fn cumulative(
        &mut self,
        op: ReduceOp,
        call: &Call,
        [n, inner]: [usize; 2],
        reverse: bool,
        scalar: Scalar,
    ) -> bool {
        let ([a, init], [result]) = (&*call.reads, &*call.writes) else { return false };
        let outer = result.dims.iter().product::<usize>() / (n * inner);
        let op = operation(op, scalar.is_float());
        let pieces = defined_pieces(op, scalar, inner);
        if outer * n * pieces.len() > MAX_OPERATIONS || !op.is_defined(Type::one(scalar), SET) {
            return false;
        }
        let init = self.element(init, 0, Type::one(scalar));
        for o in 0..outer {
            for (offset, ty) in &pieces {
                // The combinations of the blocks before the present one, and of the elements of that.
                let (mut done, mut carry) = (None, None);
                let first = self.repeated(init, *ty);
                let mut before = first;
                for i in 0..n {
                    if i > 0 && i % BLOCK == 0 {
                        done = self.combined(op, done, carry.take().expect("a block has elements"));
                        before = self.binary(op, first, done.expect("just assigned"));
                    }
                    let row = if reverse { n - 1 - i } else { i };
                    let at = (o * n + row) * inner + offset / scalar.size();
                    let x = self.element(a, at, *ty);
                    carry = self.combined(op, carry, x);
                    let value = self.binary(op, before, carry.expect("just assigned"));
                    self.set_result(result, at, value);
                }
            }
        }
        true
    }

    /// Finds the first extreme of each row of `n` elements, and its index.
    pub(super) fn extremes(&mut self, call: &Call, maximum: bool, n: usize, scalar: Scalar) -> bool {
        let ([a], [values, indices]) = (&*call.reads, &*call.writes) else { return false };
        let count: usize = values.dims.iter().product();
        let Some(index) = scalar_of(indices.dtype).filter(|s| matches!(s, Scalar::I32 | Scalar::I64)) else {
            return false;
        };
        if scalar == Scalar::Bool || 4 * n * count > MAX_OPERATIONS {
            return false;
        }
        for row in 0..count {
            let mut best = self.element(a, row * n, Type::one(scalar));
            let mut position = self.constant(Type::one(index), 0);
            for i in 1..n {
                let x = self.element(a, row * n + i, Type::one(scalar));
                let condition = self.is_better(x, best, maximum);
                let number = self.constant(Type::one(index), i as u64);
                best = self.chosen(condition, x, best);
                position = self.chosen(condition, number, position);
            }
            self.set_result(values, row, best);
            self.set_result(indices, row, position);
        }
        true
    }

    fn chosen(&mut self, condition: Reg, a: Reg, b: Reg) -> Reg {
        let dst = self.f.reg(self.f.type_of(a));
        self.f.push(Inst::Select { dst, condition, a, b });
        dst
    }

    /// Returns whether an element is strictly better than another. NaN is better than any number.
    fn is_better(&mut self, x: Reg, best: Reg, maximum: bool) -> Reg {
        let compare = |t: &mut Self, relation, a, b| {
            let dst = t.f.reg(Type::one(Scalar::Bool));
            t.f.push(Inst::Compare { relation, dst, a, b });
            dst
        };
        let (a, b) = if maximum { (best, x) } else { (x, best) };
        let better = compare(self, Relation::Lt, a, b);
        if !self.f.type_of(x).scalar.is_float() {
            return better;
        }
        let (is_nan, is_number) =
            (compare(self, Relation::Ne, x, x), compare(self, Relation::Eq, best, best));
        let first_nan = self.binary(BinaryOp::And, is_nan, is_number);
        self.binary(BinaryOp::Or, better, first_nan)
    }
}
