//! The translation of instructions on arrays in registers.

use super::elements::Element;
use super::pieces::{pieces, vector_lanes};
use super::translate::Translation;
use crate::machine::program::instr::{Instr, Op};
use crate::machine::program::{Cell, Outside, Place, Window};
use refcpu_codegen::{Access, BinaryOp, Index, Inst, Reg, Relation, Scalar, Type, UnaryOp};

impl Translation<'_> {
    /// Returns the variables of an array.
    fn vectors_of(&mut self, home: usize) -> Vec<Reg> {
        if let Some(regs) = self.elements.variables.get(&home) {
            return regs.clone();
        }
        let types = self.elements.home(home).vectors();
        let regs: Vec<Reg> = types.into_iter().map(|(_, ty)| self.f.reg(ty)).collect();
        self.elements.is_variable.extend(&regs);
        self.elements.variables.insert(home, regs.clone());
        regs
    }

    /// Returns the elements of an array.
    fn contents(&mut self, home: usize) -> Vec<Element> {
        if let Some(list) = self.elements.contents.get(&home) {
            return list.clone();
        }
        let len = self.elements.home(home).len;
        let vectors = self.vectors_of(home);
        let lanes = |r: Reg| (0..self.f.type_of(r).lanes).map(move |lane| (r, lane));
        vectors.into_iter().flat_map(lanes).take(len).collect()
    }

    fn set_contents(&mut self, home: usize, list: Vec<Element>) {
        debug_assert_eq!(list.len(), self.elements.home(home).len);
        self.elements.in_memory.remove(&home);
        self.elements.contents.insert(home, list);
    }

    /// Returns the elements of an array from one on as a vector.
    pub(super) fn read_elements(&mut self, home: usize, first: usize, ty: Type) -> Reg {
        debug_assert_eq!(self.elements.home(home).scalar, ty.scalar);
        let list = self.contents(home);
        let end = (first + usize::from(ty.lanes)).min(list.len());
        self.joined(&list[first..end], ty)
    }

    /// Replaces the elements of an array from one on with those of a register. Elements behind the array are ignored.
    pub(super) fn write_elements(&mut self, home: usize, first: usize, src: Reg) {
        let src = self.unchanging(src);
        let mut list = self.contents(home);
        let ty = self.f.type_of(src);
        debug_assert_eq!(self.elements.home(home).scalar, ty.scalar);
        for (lane, element) in list[first..].iter_mut().take(usize::from(ty.lanes)).enumerate() {
            *element = (src, lane as u8);
        }
        self.set_contents(home, list);
    }

    /// Replaces all elements of an array with one.
    pub(super) fn repeat_element(&mut self, home: usize, one: Reg) {
        let one = self.unchanging(one);
        let len = self.elements.home(home).len;
        self.set_contents(home, vec![(one, 0); len]);
    }

    /// Returns a register with the value of another that stays the same in the block.
    fn unchanging(&mut self, src: Reg) -> Reg {
        if !self.variables.contains(&src) {
            return src;
        }
        let dst = self.f.reg(self.f.type_of(src));
        self.f.push(Inst::Unary { op: UnaryOp::Copy, dst, a: src });
        dst
    }

    /// Returns a register with a list of elements. Elements of the register behind the list are arbitrary.
    fn joined(&mut self, list: &[Element], ty: Type) -> Reg {
        let (first, lane) = list[0];
        let from = self.f.type_of(first);
        let in_place = list.iter().enumerate().all(|(i, e)| *e == (first, i as u8));
        if in_place && from == ty {
            return first;
        }
        let key = (list.to_vec(), ty);
        if let Some(r) = self.elements.known.get(&key) {
            return *r;
        }
        let is_uniform = list.iter().all(|e| *e == list[0]);
        let mut sources: Vec<Reg> = Vec::new();
        list.iter().for_each(|(r, _)| {
            if !sources.contains(r) {
                sources.push(*r);
            }
        });
        let dst = if is_uniform && list.len() > 1 {
            let one = if from.lanes == 1 {
                first
            } else {
                self.shuffled([first; 2], &[(first, lane)], Type::one(ty.scalar))
            };
            self.repeated(one, ty)
        } else if sources.len() <= 2 {
            self.shuffled([sources[0], sources[sources.len() - 1]], list, ty)
        } else {
            // The half may be shorter than the shortest vector.
            let half = usize::from(ty.lanes) / 2;
            let shortest = vector_lanes(ty.scalar)[2];
            let part = |n: usize| Type { lanes: if n == 1 { 1 } else { n.max(shortest) as u8 }, ..ty };
            let a = self.joined(&list[..half], part(half));
            let b = self.joined(&list[half..], part(half));
            let halves: Vec<Element> = (0..list.len())
                .map(|i| if i < half { (a, i as u8) } else { (b, (i - half) as u8) })
                .collect();
            self.shuffled([a, b], &halves, ty)
        };
        self.elements.known.insert(key, dst);
        dst
    }

    /// Shuffles elements of two registers.
    fn shuffled(&mut self, [a, b]: [Reg; 2], list: &[Element], ty: Type) -> Reg {
        let count = self.f.type_of(a).lanes;
        let mut lanes = [0; 16];
        for (i, lane) in lanes[..usize::from(ty.lanes)].iter_mut().enumerate() {
            // Elements behind the list are those that need no move.
            *lane = match list.get(i) {
                Some((r, l)) => {
                    if *r == a {
                        *l
                    } else {
                        count + l
                    }
                }
                None => (i as u8).min(count - 1),
            };
        }
        let dst = self.f.reg(ty);
        self.f.push(Inst::Shuffle { dst, a, b, lanes });
        dst
    }

    /// Assigns the variables of the arrays that the block has changed.
    pub(super) fn assign_variables(&mut self) {
        let contents = std::mem::take(&mut self.elements.contents);
        let mut moves = Vec::new();
        for (home, list) in &contents {
            let vectors = self.elements.home(*home).vectors();
            for ((first, ty), variable) in vectors.into_iter().zip(self.vectors_of(*home)) {
                let end = (first + usize::from(ty.lanes)).min(list.len());
                let value = self.joined(&list[first..end], ty);
                if value != variable {
                    moves.push((variable, value));
                }
            }
        }
        // A variable that another one becomes may itself change.
        for (_, value) in &mut moves {
            if self.elements.is_variable.contains(value) {
                let dst = self.f.reg(self.f.type_of(*value));
                self.f.push(Inst::Unary { op: UnaryOp::Copy, dst, a: *value });
                *value = dst;
            }
        }
        for (dst, a) in moves {
            self.f.push(Inst::Unary { op: UnaryOp::Copy, dst, a });
        }
        self.elements.known.clear();
        self.elements.in_memory.clear();
    }

    /// Stores an array to its cells.
    pub(super) fn store_array(&mut self, home: usize) {
        if !self.elements.in_memory.insert(home) {
            return;
        }
        let h = *self.elements.home(home);
        for (first, ty) in h.vectors() {
            let src = self.read_elements(home, first, ty);
            let at = Access::fixed(self.cells, h.cell * 8 + first * h.scalar.size());
            self.f.push(Inst::Store { src, at });
        }
    }

    /// Stores the arrays that an instruction reads, which the interpreter executes.
    pub(super) fn store_read_arrays(&mut self, i: &Instr) {
        for range in self.code.reads_of(i) {
            self.elements.homes.within(range).into_iter().for_each(|home| self.store_array(home));
        }
        // A part of an array may be written.
        for home in self.written_arrays(i) {
            self.store_array(home);
        }
    }

    /// Loads the arrays that an instruction has written.
    pub(super) fn load_written_arrays(&mut self, i: &Instr) {
        for home in self.written_arrays(i) {
            let h = *self.elements.home(home);
            for (first, ty) in h.vectors() {
                let dst = self.f.reg(ty);
                let at = Access::fixed(self.cells, h.cell * 8 + first * h.scalar.size());
                self.f.push(Inst::Load { dst, at });
                self.write_elements(home, first, dst);
            }
            self.elements.in_memory.insert(home);
        }
    }

    fn written_arrays(&self, i: &Instr) -> Vec<usize> {
        let x = usize::from(i.x);
        let mut cells: Vec<_> = self.code.writes_of(i).into_iter().collect();
        match i.op {
            Op::Store => cells.extend(self.code.array_cells(usize::from(self.code.windows[x].array.0))),
            Op::Call => {
                let writes = &self.code.calls[x].writes;
                cells.extend(writes.iter().filter_map(|o| self.code.array_cells(usize::from(o.array.0))));
            }
            _ => {}
        }
        cells.into_iter().flat_map(|c| self.elements.homes.within(c)).collect()
    }

    /// Copies an array if either is in registers. Returns `false` if neither is.
    pub(super) fn copy_elements(&mut self, to: &Place, from: &Place) -> bool {
        let [to, from] = [to, from].map(|p| self.elements.at(usize::from(p.cell) * 8));
        let (Some((to, _)), Some((from, _))) = (to, from) else { return false };
        let list = self.contents(from);
        self.set_contents(to, list);
        true
    }

    /// Returns the numbers of the elements of a window without indices.
    fn numbers(w: &Window, size: usize) -> Vec<usize> {
        w.runs.iter().flat_map(|run| (0..w.run / size).map(move |i| run / size + i)).collect()
    }

    /// Loads a window of an array in registers.
    pub(super) fn load_of_elements(&mut self, home: usize, w: &Window, dst: Cell) {
        let h = *self.elements.home(home);
        let list = self.contents(home);
        let list: Vec<Element> = Self::numbers(w, h.scalar.size()).into_iter().map(|n| list[n]).collect();
        if let Some((to, _)) = self.elements.at(usize::from(dst) * 8) {
            return self.set_contents(to, list);
        }
        if list.len() == 1 {
            let a = self.joined(&list, Type::one(h.scalar));
            let value = self.target(dst, h.scalar);
            self.f.push(Inst::Unary { op: UnaryOp::Copy, dst: value, a });
            return self.assigned(dst, value);
        }
        for (offset, ty) in pieces(h.scalar, list.len()) {
            let first = offset / h.scalar.size();
            let value = self.joined(&list[first..first + usize::from(ty.lanes)], ty);
            self.write_cells(usize::from(dst) * 8 + offset, value);
        }
    }

    /// Stores to a window of an array in registers.
    pub(super) fn store_to_elements(&mut self, home: usize, w: &Window, src: Cell) {
        let h = *self.elements.home(home);
        let numbers = Self::numbers(w, h.scalar.size());
        let mut list = self.contents(home);
        if let Some((from, _)) = self.elements.at(usize::from(src) * 8) {
            let from = self.contents(from);
            numbers.iter().zip(from).for_each(|(n, element)| list[*n] = element);
            return self.set_contents(home, list);
        }
        if numbers.len() == 1 {
            let value = self.value(src, h.scalar);
            return self.write_elements(home, numbers[0], value);
        }
        for (offset, ty) in pieces(h.scalar, numbers.len()) {
            let value = self.read_cells(usize::from(src) * 8 + offset, ty);
            let first = offset / h.scalar.size();
            for lane in 0..ty.lanes {
                list[numbers[first + usize::from(lane)]] = (value, lane);
            }
        }
        self.set_contents(home, list);
    }

    /// Stores an element of an array in registers, which an index chooses.
    pub(super) fn store_chosen(&mut self, home: usize, index: Index, outside: Outside, src: Cell) {
        let h = *self.elements.home(home);
        let value = self.value(src, h.scalar);
        let scalar = if h.scalar.size() == 8 { Scalar::I64 } else { Scalar::I32 };
        let index = self.chosen_number(index, outside, scalar);
        for (first, ty) in h.vectors() {
            let old = self.read_elements(home, first, ty);
            let of = |scalar| Type { scalar, ..ty };
            let (number, condition, dst) =
                (self.f.reg(of(scalar)), self.f.reg(of(Scalar::Bool)), self.f.reg(ty));
            self.f.push(Inst::Sequence { dst: number, first: first as u32 });
            let [b, a] = [(index, of(scalar)), (value, ty)].map(|(one, ty)| self.repeated(one, ty));
            self.f.push(Inst::Compare { relation: Relation::Eq, dst: condition, a: number, b });
            self.f.push(Inst::Select { dst, condition, a, b: old });
            self.write_elements(home, first, dst);
        }
    }

    /// Returns the number of the element that an index chooses; that of no element if the index is outside and `Skip`.
    fn chosen_number(&mut self, index: Index, outside: Outside, scalar: Scalar) -> Reg {
        let mut reg = index.reg;
        let own = self.f.type_of(reg).scalar;
        if outside == Outside::Clamp {
            for (op, limit) in [(BinaryOp::Maximum, 0), (BinaryOp::Minimum, index.limit)] {
                let limit = self.constant(Type::one(own), limit);
                reg = self.binary(op, reg, limit);
            }
        }
        if own == scalar {
            return reg;
        }
        if outside == Outside::Skip && own == Scalar::I64 {
            // An index that does not fit into 32 bits is not one of an element.
            let limit = self.constant(Type::one(own), index.limit + 1);
            let (condition, chosen) = (self.f.reg(Type::one(Scalar::Bool)), self.f.reg(Type::one(own)));
            self.f.push(Inst::Compare { relation: Relation::LtUnsigned, dst: condition, a: reg, b: limit });
            self.f.push(Inst::Select { dst: chosen, condition, a: reg, b: limit });
            reg = chosen;
        }
        let dst = self.f.reg(Type::one(scalar));
        self.f.push(Inst::Unary { op: UnaryOp::Convert, dst, a: reg });
        dst
    }
}
