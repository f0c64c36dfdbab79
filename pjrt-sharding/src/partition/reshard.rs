//! Moves arrays from one layout to another.

use super::emit::Emitter;
use crate::cut::{Cut, has_same_parts, refines};
use crate::error::{Error, Result};
use crate::layout::{Layout, ReduceStep};
use crate::rule::combiner;
use pjrt_stablehlo::ir::{Reduction, ValueId};

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
        if now.partial.is_none() {
            value = self.parts_as_terms(value, &mut now, to)?;
        }
        if let Some(step) = now.reduce_step(to) {
            value = self.reduced(value, &mut now, step)?;
        }
        if let Some(pairs) = self.devices.exchange(&now, to) {
            if pairs.iter().any(|(from, to)| from != to) {
                value = self.collective_permute(value, &pairs);
            }
            now = to.clone();
        }
        value = self.exchange_dims(value, &mut now, to);
        for dim in 0..now.dims.len() {
            value = self.gathered(value, &mut now, dim, to.dims[dim].as_ref())?;
        }
        if now.dims != to.dims {
            value = self.cut(value, &now, to)?;
        }
        match (&now.partial, &to.partial) {
            (None, Some(sum)) if sum.reduction == Reduction::Sum => {
                let first: Vec<bool> = sum.terms.of_partition.iter().map(|term| *term == 0).collect();
                Ok(self.only_where(value, &first))
            }
            // An array is the maximum, and the minimum, of its copies.
            _ => Ok(value),
        }
    }

    /// Reduces partial results.
    fn reduced(&mut self, value: ValueId, now: &mut Layout, step: ReduceStep) -> Result<ValueId> {
        now.partial = step.left;
        if step.along.parts == 1 {
            return Ok(value);
        }
        let groups = self.devices.groups(&step.along, &now.cuts().collect::<Vec<_>>());
        let by = combiner(step.reduction);
        let Some(dim) = step.scatter else { return Ok(self.all_reduce(value, by, &groups)) };
        now.dims[dim] = Some(step.along);
        self.reduce_scatter(value, dim, by, &groups)
    }

    /// Converts parts to terms of a sum, padded with zeros, if a dimension is split in the same way as the sum is to be.
    fn parts_as_terms(&mut self, value: ValueId, now: &mut Layout, to: &Layout) -> Result<ValueId> {
        let Some(sum) = to.partial.as_ref().filter(|to| to.reduction == Reduction::Sum) else {
            return Ok(value);
        };
        let is_split_so = |cut: &Option<Cut>| cut.as_ref().is_some_and(|cut| has_same_parts(cut, &sum.terms));
        let Some(dim) = now.dims.iter().position(is_split_so) else { return Ok(value) };
        let Some(cut) = now.dims[dim].take() else { return Ok(value) };
        let mut sizes = self.dims(value)?;
        let starts: Vec<usize> = cut.of_partition.iter().map(|part| part * sizes[dim]).collect();
        sizes[dim] *= cut.parts;
        now.partial = Some(sum.clone());
        Ok(self.place(value, dim, &starts, &sizes))
    }

    /// Moves splits from one dimension to another where that is the only change.
    fn exchange_dims(&mut self, mut value: ValueId, now: &mut Layout, to: &Layout) -> ValueId {
        for from in 0..now.dims.len() {
            let Some(cut) = now.dims[from].clone().filter(|_| to.dims[from].is_none()) else { continue };
            let is_free = |dim: &usize| now.dims[*dim].is_none() && to.dims[*dim].as_ref() == Some(&cut);
            let Some(dim) = (0..now.dims.len()).find(is_free) else { continue };
            now.dims[from] = None;
            let others: Vec<&Cut> = now.cuts().collect();
            let groups = self.devices.groups(&cut, &others);
            value = self.all_to_all(value, dim, from, &groups);
            now.dims[dim] = Some(cut);
        }
        value
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
        Ok(self.slice(value, &starts, &sizes))
    }
}
