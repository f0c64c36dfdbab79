//! The translation of instructions on short arrays and windows.

use super::SET;
use super::pieces::{padded_pieces, pieces, vector_lanes};
use super::translate::Translation;
use super::types::Storage;
use crate::DType;
use crate::machine::program::instr::Instr;
use crate::machine::program::{Base, Outside, Place, Window};
use crate::native::{Arithmetic, is_swapped, scalar_of, tile_operation};
use refcpu_codegen::{Access, End, Index, Inst, Reg, Relation, Scalar, Type, UnaryOp};

/// The longest array in bytes on which operations are part of the code. Longer ones take the interpreter longer than its calls.
const MAX_BYTES: usize = 256;
/// The longest window in bytes that is moved by the code.
const MAX_MOVED: usize = 1024;
/// The largest number of pieces of a window.
const MAX_PIECES: usize = 128;

/// Returns the vectors and elements in which a number of bytes of this type is moved, if they are few.
fn moved_pieces(dtype: DType, bytes: usize) -> Option<Vec<(usize, Type)>> {
    if bytes > MAX_BYTES {
        return None;
    }
    match scalar_of(dtype) {
        Some(scalar) => Some(pieces(scalar, bytes / scalar.size())),
        None if bytes.is_multiple_of(4) => Some(pieces(Scalar::I32, bytes / 4)),
        None => None,
    }
}

/// A part of a window that one instruction moves.
struct Piece {
    /// The offset in bytes in the value.
    inside: usize,
    /// The offset in bytes in the array.
    outside: usize,
    ty: Type,
    /// `true` if all elements are the one at this offset.
    repeats: bool,
}

/// Returns the pieces of a window if they are few. If `repeats`, elements that repeat become one piece.
fn window_pieces(dtype: DType, w: &Window, repeats: bool) -> Option<Vec<Piece>> {
    let scalar = match scalar_of(dtype) {
        Some(scalar) => scalar,
        None if w.run.is_multiple_of(4) && w.runs.iter().all(|r| r.is_multiple_of(4)) => Scalar::I32,
        None => return None,
    };
    let size = scalar.size();
    if w.runs.len() * w.run > MAX_MOVED {
        return None;
    }
    let elements: Vec<usize> =
        w.runs.iter().flat_map(|run| (0..w.run / size).map(move |i| run + i * size)).collect();
    let mut all = Vec::new();
    let mut at = 0;
    while at < elements.len() {
        let first = elements[at];
        let found = vector_lanes(scalar).into_iter().find_map(|lanes| {
            let part = elements.get(at..at + lanes).filter(|_| lanes > 1)?;
            let adjacent = part.iter().enumerate().all(|(i, e)| *e == first + i * size);
            let same = repeats && part.iter().all(|e| *e == first);
            (adjacent || same).then_some((lanes, !adjacent))
        });
        let (lanes, repeats) = found.unwrap_or((1, false));
        let ty = Type::vector(scalar, lanes as u8);
        all.push(Piece { inside: at * size, outside: first, ty, repeats });
        at += lanes;
    }
    (all.len() <= MAX_PIECES).then_some(all)
}

impl Translation<'_> {
    /// Returns the indices of a window, or `None` if one has a type that the code does not support.
    fn indices(&mut self, w: &Window) -> Option<Vec<Index>> {
        let supported = |d: DType| matches!(d, DType::S32 | DType::S64 | DType::U32);
        if !w.starts.iter().all(|(_, dtype, ..)| supported(*dtype)) {
            return None;
        }
        let mut all = Vec::new();
        for (cell, dtype, limit, step) in &w.starts {
            let ty = if *dtype == DType::S64 { Scalar::I64 } else { Scalar::I32 };
            let mut reg = self.value(*cell, ty);
            if *dtype == DType::U32 {
                let dst = self.f.reg(Type::one(Scalar::I64));
                self.f.push(Inst::Unary { op: UnaryOp::Extend, dst, a: reg });
                reg = dst;
            }
            all.push(Index { reg, limit: *limit as u64, step: *step as u64 });
        }
        Some(all)
    }

    /// Returns the location of a piece of a window.
    fn place_in(&self, w: &Window, offset: usize, indices: &[Index]) -> Access {
        let number = usize::from(w.array.0);
        let (array, start) = match (self.arrays[number], self.code.arrays[number].base) {
            (Some(array), _) => (array, 0),
            (None, Base::Cells(cell)) => (self.cells, usize::from(cell) * 8),
            (None, _) => unreachable!("an array outside the cells has a number"),
        };
        Access { array, offset: (start + offset) as u64, indices: indices.to_vec() }
    }

    /// Returns the pieces of a window and the type of the register that holds its only element, if the code moves them.
    fn movable(&self, w: &Window, cell: u16, repeats: bool) -> Option<(Vec<Piece>, Option<Scalar>)> {
        let dtype = self.code.arrays[usize::from(w.array.0)].dtype;
        let pieces = window_pieces(dtype, w, repeats)?;
        match self.storage(cell) {
            Storage::Register(ty) => {
                (w.runs.len() == 1 && w.run == ty.size() && scalar_of(dtype) == Some(ty))
                    .then_some((pieces, Some(ty)))
            }
            _ => Some((pieces, None)),
        }
    }

    /// Returns the offset in the cells of an array that is there.
    fn offset_in_cells(&self, w: &Window) -> Option<usize> {
        match self.code.arrays[usize::from(w.array.0)].base {
            Base::Cells(cell) => Some(usize::from(cell) * 8),
            _ => None,
        }
    }

    pub(super) fn load(&mut self, at: usize, i: &Instr) {
        let w = &self.code.windows[usize::from(i.x)];
        let Some((pieces, register)) = self.movable(w, i.dst, true) else { return self.interpreted(at, i) };
        let Some(indices) = self.indices(w) else { return self.interpreted(at, i) };
        let array = self.offset_in_cells(w).and_then(|offset| self.elements.at(offset));
        if let Some((home, _)) = array {
            if indices.is_empty() {
                return self.load_of_elements(home, w, i.dst);
            }
            self.store_array(home);
        }
        if let Some(ty) = register {
            let dst = self.target(i.dst, ty);
            let at = self.place_in(w, w.runs[0], &indices);
            return self.f.push(Inst::Load { dst, at });
        }
        let in_cells = self.offset_in_cells(w).filter(|_| indices.is_empty());
        for p in pieces {
            let ty = if p.repeats { Type::one(p.ty.scalar) } else { p.ty };
            let mut value = match in_cells {
                Some(start) => self.read_cells(start + p.outside, ty),
                None => {
                    let dst = self.f.reg(ty);
                    let at = self.place_in(w, p.outside, &indices);
                    self.f.push(Inst::Load { dst, at });
                    dst
                }
            };
            if p.repeats {
                value = self.repeated(value, p.ty);
            }
            self.write_cells(usize::from(i.dst) * 8 + p.inside, value);
        }
    }

    pub(super) fn store(&mut self, at: usize, i: &Instr) {
        let w = &self.code.windows[usize::from(i.x)];
        let Some((pieces, register)) = self.movable(w, i.a, false) else { return self.interpreted(at, i) };
        let Some(indices) = self.indices(w) else { return self.interpreted(at, i) };
        let array = self.offset_in_cells(w).and_then(|offset| self.elements.at(offset));
        if let Some((home, _)) = array {
            return match *indices {
                [] => self.store_to_elements(home, w, i.a),
                [index, ..] => self.store_chosen(home, index, w.outside, i.a),
            };
        }
        let after = (w.outside == Outside::Skip && !indices.is_empty()).then(|| self.skip_outside(&indices));
        let in_cells = self.offset_in_cells(w);
        for p in pieces {
            let src = match register {
                Some(ty) => self.value(i.a, ty),
                None => self.read_cells(usize::from(i.a) * 8 + p.inside, p.ty),
            };
            match in_cells.filter(|_| indices.is_empty()) {
                Some(start) => self.write_cells(start + p.outside, src),
                None => {
                    let at = self.place_in(w, p.outside, &indices);
                    self.f.push(Inst::Store { src, at });
                }
            }
        }
        if in_cells.is_some() && !indices.is_empty() {
            self.forget();
        }
        if let Some(after) = after {
            self.end(End::Jump(after));
            self.begin(after);
        }
    }

    /// Ends the block, and continues only if no index is beyond its limits. Returns the block that follows in any case.
    fn skip_outside(&mut self, indices: &[Index]) -> refcpu_codegen::Block {
        let after = self.f.block();
        for i in indices {
            let mut a = i.reg;
            if self.f.type_of(a).scalar == Scalar::I32 {
                let dst = self.f.reg(Type::one(Scalar::I64));
                self.f.push(Inst::Unary { op: UnaryOp::Convert, dst, a });
                a = dst;
            }
            let b = self.constant(Type::one(Scalar::I64), i.limit);
            let then = self.f.block();
            self.end(End::Compare { relation: Relation::LeUnsigned, a, b, then, otherwise: after });
            self.begin(then);
        }
        after
    }

    pub(super) fn copy(&mut self, at: usize, i: &Instr) {
        let (to, from) = self.code.copies[usize::from(i.x)];
        if self.copy_elements(&to, &from) {
            return;
        }
        let Some(pieces) = moved_pieces(to.dtype, to.bytes()) else { return self.interpreted(at, i) };
        for (offset, ty) in pieces {
            let value = self.read_cells(usize::from(from.cell) * 8 + offset, ty);
            self.write_cells(usize::from(i.dst) * 8 + offset, value);
        }
    }

    pub(super) fn splat(&mut self, at: usize, i: &Instr) {
        let (to, from) = self.code.splats[usize::from(i.x)];
        let scalar = match self.storage(from.cell) {
            Storage::Register(ty) => Some(ty).filter(|ty| scalar_of(to.dtype) == Some(*ty)),
            _ => scalar_of(to.dtype),
        };
        let Some(scalar) = scalar.filter(|_| to.bytes() <= MAX_BYTES) else {
            return self.interpreted(at, i);
        };
        let one = self.value(from.cell, scalar);
        if let Some((home, 0)) = self.elements.at(usize::from(to.cell) * 8) {
            return self.repeat_element(home, one);
        }
        for (offset, ty) in pieces(scalar, to.len) {
            let value = self.repeated(one, ty);
            self.write_cells(usize::from(to.cell) * 8 + offset, value);
        }
    }

    /// Returns a vector of copies of an element.
    pub(super) fn repeated(&mut self, a: Reg, ty: Type) -> Reg {
        if ty.lanes == 1 && self.f.type_of(a) == ty {
            return a;
        }
        if let Some(bits) = self.constant_bits(a) {
            return self.constant(ty, bits);
        }
        let dst = self.f.reg(ty);
        self.f.push(Inst::Unary { op: UnaryOp::Splat, dst, a });
        dst
    }

    pub(super) fn vector(&mut self, at: usize, i: &Instr) {
        let v = &self.code.vectors[usize::from(i.x)];
        let Some(op) = tile_operation(v.opcode, v.to, v.from) else { return self.interpreted(at, i) };
        let is_padded = self.elements.at(usize::from(v.dst.cell) * 8).is_some();
        let Some(pieces) = vector_pieces(op, v.n, is_padded) else { return self.interpreted(at, i) };
        let (dst, mut src) = (v.dst, v.src);
        if is_swapped(v.opcode) {
            src.swap(0, 1);
        }
        let src = &src[..op.arity()];
        let fits = |k: usize, p: &Place| match self.storage(p.cell) {
            Storage::Register(ty) => ty == op.operand(k),
            _ => true,
        };
        if !src.iter().enumerate().all(|(k, p)| fits(k, p)) {
            return self.interpreted(at, i);
        }
        for (first, lanes) in pieces {
            let mut values = [None; 3];
            for (k, p) in src.iter().enumerate() {
                let ty = Type::vector(op.operand(k), lanes);
                values[k] = Some(if p.len == 1 {
                    let one = self.value(p.cell, ty.scalar);
                    self.repeated(one, ty)
                } else {
                    self.read_cells(usize::from(p.cell) * 8 + first * ty.scalar.size(), ty)
                });
            }
            let one = values[0].expect("an operation has an operand");
            let result = self.f.reg(Type::vector(op.result(), lanes));
            self.operation(op, result, values.map(|v| v.unwrap_or(one)));
            self.write_cells(usize::from(dst.cell) * 8 + first * op.result().size(), result);
        }
    }
}

/// Returns the first elements and the numbers of elements of the vectors in which the code performs an operation on arrays of `n`
/// elements, or `None` if it does not. If `is_padded`, the last vector may have more elements than are left.
fn vector_pieces(op: Arithmetic, n: usize, is_padded: bool) -> Option<Vec<(usize, u8)>> {
    let longest = (0..op.arity()).map(|k| op.operand(k)).chain([op.result()]).max_by_key(|s| s.size())?;
    if n * longest.size() > MAX_BYTES {
        return None;
    }
    let pieces: Vec<(usize, u8)> = if is_padded {
        padded_pieces(longest, n).into_iter().map(|(first, ty)| (first, ty.lanes)).collect()
    } else {
        pieces(longest, n).into_iter().map(|(offset, ty)| (offset / longest.size(), ty.lanes)).collect()
    };
    pieces.iter().all(|(_, lanes)| op.is_defined(*lanes, SET)).then_some(pieces)
}
