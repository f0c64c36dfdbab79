//! The elements of arrays in registers.
//!
//! Between the instructions of a block, the content of such an array is a list that names, for each element, a register and the
//! number of an element in it. Slices, concatenations and other moves only change these lists. An operation on vectors shuffles
//! the elements that it needs into a register. At the end of a block, the content becomes the values of the array's variables.

use super::homes::{Home, Homes, homes};
use super::types::Storage;
use crate::machine::program::{Cell, Program};
use refcpu_codegen::{Reg, Scalar, Type};
use std::collections::{BTreeMap, HashMap, HashSet};

/// An element of a register.
pub(super) type Element = (Reg, u8);

/// The arrays in registers.
#[derive(Debug)]
pub(super) struct Elements {
    pub(super) homes: Homes,
    /// The variables of each array: its vectors.
    pub(super) variables: HashMap<usize, Vec<Reg>>,
    pub(super) is_variable: HashSet<Reg>,
    /// The elements of the arrays that the block has changed.
    pub(super) contents: BTreeMap<usize, Vec<Element>>,
    /// The arrays whose cells have their contents.
    pub(super) in_memory: HashSet<usize>,
    /// The vectors that the block has put together.
    pub(super) known: HashMap<(Vec<Element>, Type), Reg>,
}

impl Elements {
    pub(super) fn new(code: &Program, storage: &[Storage]) -> Self {
        let register = |cell: usize| match storage[cell] {
            Storage::Register(ty) => Some(ty),
            _ => None,
        };
        Self {
            homes: homes(code, register),
            variables: HashMap::new(),
            is_variable: HashSet::new(),
            contents: BTreeMap::new(),
            in_memory: HashSet::new(),
            known: HashMap::new(),
        }
    }

    /// Returns the array that has an element at an offset in the cells, and the number of the element.
    pub(super) fn at(&self, offset: usize) -> Option<(usize, usize)> {
        let home = self.homes.of_cell.get(offset / 8).copied().flatten()?;
        let h = self.home(home);
        Some((home, (offset - h.cell * 8) / h.scalar.size()))
    }

    /// Returns the element type of the array that a cell belongs to.
    pub(super) fn scalar_of_cell(&self, cell: Cell) -> Option<Scalar> {
        self.homes.of_cell[usize::from(cell)].map(|home| self.home(home).scalar)
    }

    pub(super) fn home(&self, number: usize) -> &Home {
        &self.homes.all[number]
    }

    /// Returns the variables, and the offset of each in the cells.
    pub(super) fn variables(&self) -> impl Iterator<Item = (Reg, usize)> + '_ {
        self.variables.iter().flat_map(|(home, regs)| {
            let home = self.home(*home);
            let offsets =
                home.vectors().into_iter().map(|(first, _)| home.cell * 8 + first * home.scalar.size());
            regs.iter().copied().zip(offsets)
        })
    }
}
