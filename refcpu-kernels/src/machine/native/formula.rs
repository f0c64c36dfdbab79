//! The calls of kernels whose results have formulas. Their elements are combined in the order of the kernels.

use super::translate::Translation;
use crate::machine::program::{Base, Call, Formula, Operand};
use crate::native::scalar_of;
use refcpu_codegen::{Access, BinaryOp, Inst, Reg, Type};

impl Translation<'_> {
    /// Translates a call by its formula. Returns `false` if it has none, or if the code would be too long.
    pub(super) fn formula(&mut self, call: &Call) -> bool {
        let (Some(formula), [result, ..]) = (call.formula, &*call.writes) else { return false };
        let Some(scalar) = scalar_of(result.dtype) else { return false };
        match formula {
            Formula::Rows(op, n) => self.rows(op, call, n, scalar),
            Formula::Columns { op, rows, inner } => self.columns(op, call, [rows, inner], scalar),
            Formula::Cumulative { op, n, inner, reverse } => {
                self.cumulative(op, call, [n, inner], reverse, scalar)
            }
            Formula::Extremes { maximum, n } => self.extremes(call, maximum, n, scalar),
            Formula::MatrixVector { .. } => self.matrix_vector(formula, call, scalar),
            Formula::Matrices(m) => self.matrices(&m, call, scalar),
        }
    }

    /// Returns the elements of an operand from an index on.
    pub(super) fn element(&mut self, o: &Operand, index: usize, ty: Type) -> Reg {
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

    /// Loads the elements of an operand from an index on, even if they are in registers.
    pub(super) fn loaded(&mut self, o: &Operand, index: usize, ty: Type) -> Reg {
        match self.code.arrays[usize::from(o.array.0)].base {
            Base::Cells(cell) if self.elements.at(usize::from(cell) * 8).is_some() => {
                self.element(o, index, ty)
            }
            Base::Cells(cell) => {
                let at = Access::fixed(self.cells, usize::from(cell) * 8 + index * ty.scalar.size());
                let dst = self.f.reg(ty);
                self.f.push(Inst::Load { dst, at });
                dst
            }
            _ => self.element(o, index, ty),
        }
    }

    pub(super) fn set_result(&mut self, o: &Operand, index: usize, value: Reg) {
        let Base::Cells(cell) = self.code.arrays[usize::from(o.array.0)].base else {
            unreachable!("calls write to cells")
        };
        let size = self.f.type_of(value).scalar.size();
        self.write_cells(usize::from(cell) * 8 + index * size, value);
    }

    pub(super) fn binary(&mut self, op: BinaryOp, a: Reg, b: Reg) -> Reg {
        let dst = self.f.reg(self.f.type_of(a));
        self.f.push(Inst::Binary { op, dst, a, b });
        dst
    }
}
