//! Operations whose parts are not simply the operation on parts: those without operands, random numbers, and what programs say
//! about shardings.

use super::{Part, Partitioner};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::mesh::with_addends;
use crate::rule::is_about_order;
use crate::said::annotation;
use pjrt_stablehlo::ir::{ElementType, Op, OpCode, OpId, Operation, TensorSharding, ops};

/// Sums of arrays of one element type within the same groups, each with the layout that it is to have.
type SumsAlike = (ElementType, Vec<Vec<usize>>, Vec<(Part, Layout)>);

impl<'m> Partitioner<'m> {
    /// A value that is split as an operation says; unless it cannot be.
    pub(super) fn constraint(&mut self, op: &Operation, sharding: &TensorSharding) -> Result<()> {
        match self.wanted(op, sharding)? {
            Some(wanted) => self.split_so(op, wanted),
            None => self.unchanged(op),
        }
    }

    /// How an operation says that its operand is to lie; `None` if it cannot.
    fn wanted(&self, op: &Operation, sharding: &TensorSharding) -> Result<Option<Layout>> {
        let Some(dims) = self.dims(op.operand(0)) else { return Ok(None) };
        let Ok(said) = with_addends(self.module, sharding, &dims, self.emit.devices.count()) else {
            return Ok(None);
        };
        let open = |dim: usize| sharding.dim_shardings.get(dim).is_some_and(|dim| !dim.is_closed);
        self.with_open(op, Layout::of(said.as_ref(), dims.len()), open)
    }

    /// A layout of an operation's operand, which may be cut as it is along dimensions that are left open.
    fn with_open(
        &self,
        op: &Operation,
        mut wanted: Layout,
        open: impl Fn(usize) -> bool,
    ) -> Result<Option<Layout>> {
        let part = self.part(op.operand(0))?;
        let devices = &self.emit.devices;
        if !devices.spread_evenly(&wanted.cuts().collect::<Vec<_>>()) {
            return Ok(None);
        }
        for dim in (0..wanted.dims.len()).filter(|dim| open(*dim)) {
            let mut finer = wanted.clone();
            finer.dims[dim] = part.layout.dims[dim].clone();
            if wanted.dims[dim].is_none() && devices.spread_evenly(&finer.cuts().collect::<Vec<_>>()) {
                wanted = finer;
            }
        }
        Ok(Some(wanted))
    }

    /// Moves an operation's operand to where it is to be.
    fn split_so(&mut self, op: &Operation, wanted: Layout) -> Result<()> {
        let value = self.moved(op.operand(0), &wanted)?;
        self.bind(op, [Part { value, layout: wanted }]);
        Ok(())
    }

    /// Where the next operation asks for a sum, those that the ones right after it ask for are made in the same exchange.
    pub(super) fn sum_together(&mut self, ops: &[OpId]) -> Result<()> {
        let mut alike: Vec<SumsAlike> = vec![];
        for (i, id) in ops.iter().enumerate() {
            if i > 0 && alike.is_empty() {
                return Ok(());
            }
            let op = self.function.body.op(*id);
            let sharding = match &op.kind {
                Op::ShardingConstraint(o) => &o.sharding,
                Op::Reshard(o) => &o.sharding,
                _ => break,
            };
            let Some(part) = self.parts.get(&op.operand(0)).cloned() else { break };
            let Some(addends) = part.layout.addends.clone() else { continue };
            let summed = Layout { addends: None, ..part.layout.clone() };
            let scatters = |to: &Layout| to.dims.iter().flatten().any(|cut| *cut == addends);
            let known = self.moved.iter().any(|moved| moved.contains_key(&(part.value, summed.clone())));
            match self.wanted(op, sharding)? {
                Some(to) if to.addends.is_none() && !scatters(&to) && !known => {}
                _ => continue,
            }
            let element = self.emit.builder.element(part.value);
            let groups = self.emit.devices.groups(&addends, &summed.cuts().collect::<Vec<_>>());
            match alike.iter_mut().find(|(e, g, _)| *e == element && *g == groups) {
                Some((_, _, sums)) if sums.iter().any(|(other, _)| other.value == part.value) => {}
                Some((_, _, sums)) => sums.push((part, summed)),
                None => alike.push((element, groups, vec![(part, summed)])),
            }
        }
        for (_, groups, sums) in alike.into_iter().filter(|(_, _, sums)| sums.len() > 1) {
            let values: Vec<_> = sums.iter().map(|(part, _)| part.value).collect();
            let results = self.emit.all_reduce_together(&values, OpCode::Add, &groups);
            let here = self.moved.last_mut().expect("a function has a block");
            here.extend(sums.into_iter().zip(results).map(|((part, to), sum)| ((part.value, to), sum)));
        }
        Ok(())
    }

    /// Results that are the first operands.
    fn unchanged(&mut self, op: &Operation) -> Result<()> {
        let parts = op.operands.iter().take(op.results.len()).map(|value| self.part(*value));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        self.bind(op, parts);
        Ok(())
    }

    pub(super) fn custom_call(&mut self, op: &'m Operation, call: &ops::CustomCall) -> Result<()> {
        let same = op.operands.len() >= op.results.len()
            && (op.operands.iter().zip(op.results))
                .all(|(operand, result)| self.function.body.ty(*operand) == self.function.body.ty(result));
        match &*call.call_target_name {
            // Operands may be futures, of which the partitioned program has none.
            _ if is_about_order(op, call) => Ok(()),
            "Sharding" if same && op.results.len() == 1 => {
                let Some(dims) = self.dims(op.operand(0)) else { return self.unchanged(op) };
                let Some(split) = annotation(op, call, &dims, self.emit.devices.count()) else {
                    return self.unchanged(op);
                };
                let wanted = Layout { dims: split.dims.clone(), addends: None };
                match self.with_open(op, wanted, |dim| !split.closed[dim])? {
                    Some(wanted) => self.split_so(op, wanted),
                    None => self.unchanged(op),
                }
            }
            // What this asks is answered elsewhere.
            "Sharding" | "InspectSharding" if same => self.unchanged(op),
            _ => self.by_rule(op),
        }
    }

    /// Counts from where a partition's part begins.
    pub(super) fn iota(&mut self, op: &'m Operation, iota: &ops::Iota) -> Result<()> {
        let dim = iota.iota_dimension as usize;
        let hint = self.hint(op.result());
        let Some((layout, cut)) = hint.and_then(|layout| Some((layout.clone(), layout.dims[dim].clone()?)))
        else {
            return self.by_rule(op);
        };
        let Some(result) = self.local_type(op.result(), &layout)?.as_tensor().cloned() else {
            return self.by_rule(op);
        };
        let size = result.dims()[dim] as usize;
        let starts: Vec<usize> = cut.of_partition.iter().map(|part| part * size).collect();
        let start = self.emit.of_partition(&starts);
        let builder = &mut self.emit.builder;
        let each = builder.iota(ElementType::I64, result.dims(), iota.iota_dimension);
        let start = builder.broadcast(start, &[], result.dims());
        let sum = builder.add(each, start);
        let value = builder.convert(sum, result.element_type());
        self.bind(op, [Part { value, layout }]);
        Ok(())
    }

    /// A part of a constant: the same element everywhere, or what is cut out of the whole.
    pub(super) fn constant(&mut self, op: &'m Operation, constant: &ops::Constant) -> Result<()> {
        let (hint, splat) = (self.hint(op.result()), constant.value.splat());
        match (hint.filter(|layout| !layout.is_whole()), splat) {
            (Some(layout), Some(element)) => {
                let local = self.local_type(op.result(), &layout)?;
                let ty = local.as_tensor().cloned();
                let ty = ty.ok_or_else(|| Error::internal("a constant that is no tensor"))?;
                let value = self.emit.builder.splat(&element, ty);
                self.bind(op, [Part { value, layout }]);
                Ok(())
            }
            // Whoever uses it takes the part that is needed.
            _ => self.on_whole_arrays(op).map(drop),
        }
    }

    /// Random numbers, which are others every time: all partitions take those of the first.
    pub(super) fn random(&mut self, op: &'m Operation) -> Result<()> {
        let values = self.on_whole_arrays(op)?;
        let devices = &self.emit.devices;
        let mut groups: Vec<Vec<usize>> = vec![];
        for (partition, array) in devices.array.iter().enumerate() {
            match groups.iter_mut().find(|group| devices.array[group[0]] == *array) {
                Some(group) => group.push(partition),
                None => groups.push(vec![partition]),
            }
        }
        if groups[0].len() > 1 {
            let value = self.emit.collective_broadcast(values[0], &groups);
            self.bind(op, [Part { value, layout: self.part(op.result())?.layout }]);
        }
        Ok(())
    }
}
