//! Moves arrays from one layout to another.

use super::emit::Emitter;
use crate::cut::Cut;
use crate::cut::refines;
use crate::error::{Error, Result};
use crate::layout::Layout;
use pjrt_stablehlo::ir::{OpCode, ValueId};

impl Emitter {
    /// Moves a value from the layout `from` to the layout `to`.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`](crate::ErrorKind::Internal) if the layouts do not fit the array, which callers have excluded.
    pub(super) fn reshard(&mut self, mut value: ValueId, from: &Layout, to: &Layout) -> Result<ValueId> {
        if from == to {
            return Ok(value);
        }
        let mut now = from.clone();
        if now.addends.is_none() {
            value = self.parts_as_addends(value, &mut now, to)?;
        }
        if now.addends != to.addends {
            value = self.summed(value, &mut now, Some(to))?;
        }
        if let Some(pairs) = self.devices.exchange(&now, to) {
            if pairs.iter().any(|(from, to)| from != to) {
                value = self.collective_permute(value, &pairs)?;
            }
            now = to.clone();
        }
        value = self.exchange_dims(value, &mut now, to)?;
        for dim in 0..now.dims.len() {
            value = self.gathered(value, &mut now, dim, to.dims[dim].as_ref())?;
        }
        if now.dims != to.dims {
            value = self.cut(value, &now, to)?;
        }
        match (&now.addends, &to.addends) {
            (None, Some(addends)) => {
                let first: Vec<bool> = addends.of_partition.iter().map(|addend| *addend == 0).collect();
                self.only_where(value, &first)
            }
            _ => Ok(value),
        }
    }

    /// Reduces partial sums. If `to` splits a dimension in the same way as the partial sums, each partition receives only its
    /// part.
    pub(super) fn summed(
        &mut self,
        value: ValueId,
        now: &mut Layout,
        to: Option<&Layout>,
    ) -> Result<ValueId> {
        let Some(addends) = now.addends.take() else { return Ok(value) };
        let others: Vec<&Cut> = now.dims.iter().flatten().collect();
        let groups = self.devices.groups(&addends, &others);
        let wanted = |dim: &usize| {
            now.dims[*dim].is_none() && to.is_some_and(|to| to.dims[*dim].as_ref() == Some(&addends))
        };
        if let Some(dim) = (0..now.dims.len()).find(wanted) {
            now.dims[dim] = Some(addends);
            return self.reduce_scatter(value, dim, &groups);
        }
        self.all_reduce(value, OpCode::Add, &groups)
    }

    /// Converts parts to partial sums, padded with zeros, if a dimension is split in the same way as the partial sums are to be.
    fn parts_as_addends(&mut self, value: ValueId, now: &mut Layout, to: &Layout) -> Result<ValueId> {
        let Some(addends) = &to.addends else { return Ok(value) };
        let Some(dim) = now.dims.iter().position(|cut| cut.as_ref() == Some(addends)) else {
            return Ok(value);
        };
        let mut sizes = self.dims(value)?;
        let starts: Vec<usize> = addends.of_partition.iter().map(|part| part * sizes[dim]).collect();
        sizes[dim] *= addends.parts;
        now.dims[dim] = None;
        now.addends = Some(addends.clone());
        self.place(value, dim, &starts, &sizes)
    }

    /// Moves splits from one dimension to another where that is the only change.
    fn exchange_dims(&mut self, mut value: ValueId, now: &mut Layout, to: &Layout) -> Result<ValueId> {
        for from in 0..now.dims.len() {
            let Some(cut) = now.dims[from].clone().filter(|_| to.dims[from].is_none()) else { continue };
            let is_free = |dim: &usize| now.dims[*dim].is_none() && to.dims[*dim].as_ref() == Some(&cut);
            let Some(dim) = (0..now.dims.len()).find(is_free) else { continue };
            now.dims[from] = None;
            let others: Vec<&Cut> = now.cuts().collect();
            let groups = self.devices.groups(&cut, &others);
            value = self.all_to_all(value, dim, from, &groups)?;
            now.dims[dim] = Some(cut);
        }
        Ok(value)
    }

    /// Concatenates the parts along a dimension, unless the wanted split equals or refines the present one.
    fn gathered(
        &mut self,
        value: ValueId,
        now: &mut Layout,
        dim: usize,
        wanted: Option<&Cut>,
    ) -> Result<ValueId> {
        let Some(cut) = now.dims[dim].clone() else { return Ok(value) };
        if wanted.is_some_and(|wanted| refines(wanted, &cut)) {
            return Ok(value);
        }
        now.dims[dim] = wanted.filter(|wanted| refines(&cut, wanted)).cloned();
        let left = now.dims[dim].as_ref().map_or(1, |coarse| coarse.parts);
        let parts = cut.parts / left;
        let along = Cut { parts, of_partition: cut.of_partition.iter().map(|part| part % parts).collect() };
        let others: Vec<&Cut> = now.cuts().collect();
        let groups = self.devices.groups(&along, &others);
        self.all_gather(value, dim, &groups)
    }

    /// Takes slices along the dimensions that need a finer split.
    fn cut(&mut self, value: ValueId, now: &Layout, to: &Layout) -> Result<ValueId> {
        let mut sizes = self.dims(value)?;
        let mut starts = Vec::with_capacity(sizes.len());
        for (dim, size) in sizes.iter_mut().enumerate() {
            let Some(wanted) = to.dims[dim].as_ref().filter(|_| now.dims[dim] != to.dims[dim]) else {
                starts.push(None);
                continue;
            };
            let parts = wanted.parts / now.dims[dim].as_ref().map_or(1, |cut| cut.parts);
            if parts == 0 || !size.is_multiple_of(parts) {
                return Err(Error::internal(format!(
                    "{size} elements cannot be split into {parts} equal parts"
                )));
            }
            *size /= parts;
            starts.push(Some(wanted.of_partition.iter().map(|part| part % parts * *size).collect()));
        }
        self.slice(value, &starts, &sizes)
    }
}
