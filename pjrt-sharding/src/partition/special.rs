//! Partitions operations without a sharding rule of the usual form: constants and iotas, random numbers, constraints and
//! annotations.

use super::{Part, Partitioner, rank};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::mesh::with_partial;
use crate::rule::{combiner, is_about_order};
use crate::said::{annotation, single_partition};
use pjrt_stablehlo::ir::{
    ComparisonDirection, ElementType, Op, OpId, Operation, Reduction, TensorSharding, Type, ValueId, ops,
};

/// The properties that partial results must share to be reduced in one operation.
#[derive(PartialEq)]
struct Alike {
    element: ElementType,
    reduction: Reduction,
    groups: Vec<Vec<usize>>,
}

/// Partial results that can be reduced in one operation, each with the layout of the result.
type ReducedAlike = (Alike, Vec<(Part, Layout)>);

impl<'m> Partitioner<'m> {
    /// Moves a value to the layout that a constraint states, if it can have it.
    pub(super) fn constraint(&mut self, op: &Operation, sharding: &TensorSharding) -> Result<()> {
        match self.wanted(op, sharding)? {
            Some(wanted) => self.split_so(op, wanted),
            None => self.unchanged(op),
        }
    }

    /// Returns the layout that a constraint states for its operand; `None` if the operand cannot have it.
    fn wanted(&self, op: &Operation, sharding: &TensorSharding) -> Result<Option<Layout>> {
        let Some(dims) = self.dims(op.operand(0)) else { return Ok(None) };
        let Ok(said) = with_partial(self.module, sharding, &dims, self.emit.devices.count()) else {
            return Ok(None);
        };
        let open = |dim: usize| sharding.dim_shardings.get(dim).is_some_and(|dim| !dim.is_closed);
        self.with_open(op, Layout::of(said.as_ref(), dims.len()).equal_parts(&dims), open)
    }

    /// Completes the layout of an operation's operand: dimensions that are left open keep their present split. Returns `None`
    /// if the array cannot have the layout.
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

    /// Moves an operation's operand to a layout, and binds the result to it.
    fn split_so(&mut self, op: &Operation, wanted: Layout) -> Result<()> {
        let value = self.moved(op.operand(0), &wanted)?;
        self.bind(op, [Part { value, layout: wanted }]);
        Ok(())
    }

    /// If the next operations are constraints that each require a reduction, reduces the partial results in one all-reduce.
    pub(super) fn reduce_together(&mut self, ops: &[OpId]) -> Result<()> {
        let mut alike: Vec<ReducedAlike> = vec![];
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
            let Some(to) = self.wanted(op, sharding)? else { continue };
            let Some(step) = part.layout.reduce_step(&to) else { continue };
            let reduced = Layout { partial: step.left, ..part.layout.clone() };
            let known = self.moved.iter().any(|moved| moved.contains_key(&(part.value, reduced.clone())));
            if step.scatter.is_some() || step.along.parts == 1 || known {
                continue;
            }
            let key = Alike {
                element: self.emit.builder.element(part.value),
                reduction: step.reduction,
                groups: self.emit.devices.groups(&step.along, &reduced.cuts().collect::<Vec<_>>()),
            };
            match alike.iter_mut().find(|(other, _)| *other == key) {
                Some((_, parts)) if parts.iter().any(|(other, _)| other.value == part.value) => {}
                Some((_, parts)) => parts.push((part, reduced)),
                None => alike.push((key, vec![(part, reduced)])),
            }
        }
        for (key, parts) in alike.into_iter().filter(|(_, parts)| parts.len() > 1) {
            let values: Vec<_> = parts.iter().map(|(part, _)| part.value).collect();
            let results = self.emit.all_reduce_together(&values, combiner(key.reduction), &key.groups);
            let here = self.moved.last_mut().expect("a function has a block");
            here.extend(parts.into_iter().zip(results).map(|((part, to), value)| ((part.value, to), value)));
        }
        Ok(())
    }

    /// Binds the results to the operands of the same index.
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
            // The operands may be futures, which the partitioned program does not have.
            _ if is_about_order(op, call) => Ok(()),
            "Sharding" if same && op.results.len() == 1 => {
                let Some(dims) = self.dims(op.operand(0)) else { return self.unchanged(op) };
                let Some(split) = annotation(op, call, &dims, self.emit.devices.count()) else {
                    return self.unchanged(op);
                };
                let wanted = Layout { dims: split.dims.clone(), partial: None }.equal_parts(&dims);
                match self.with_open(op, wanted, |dim| !split.closed[dim])? {
                    Some(wanted) => self.split_so(op, wanted),
                    None => self.unchanged(op),
                }
            }
            // The answer to `InspectSharding` is in [`Shardings`](crate::Shardings).
            "Sharding" | "InspectSharding" if same => self.unchanged(op),
            _ => self.on_stated_partition(op),
        }
    }

    /// Partitions an operation that calls the host or communicates with it: runs it on the one partition that the program states,
    /// if it states one.
    pub(super) fn on_stated_partition(&mut self, op: &'m Operation) -> Result<()> {
        let stated = single_partition(self.module, op).filter(|one| *one < self.emit.devices.count());
        let is_token = |value: &ValueId| self.function.body.ty(*value).is_token();
        let token = op.operands.iter().copied().find(is_token);
        let can_bind = |result: ValueId| self.dims(result).is_some() || is_token(&result) && token.is_some();
        match stated {
            Some(partition) if op.results.into_iter().all(can_bind) => {
                self.on_one_partition(op, partition, token)
            }
            _ => self.by_rule(op),
        }
    }

    /// Runs an operation on whole arrays, on one of the partitions that share the arrays: `partition` if it is among them, otherwise
    /// the first one. It sends the results to the others. Operations run in the order of the program, so a token that the operation
    /// returns is `token`, which is one of its operands.
    fn on_one_partition(
        &mut self,
        op: &'m Operation,
        partition: usize,
        token: Option<ValueId>,
    ) -> Result<()> {
        let mut groups = self.emit.devices.sharing();
        for group in &mut groups {
            if let Some(position) = group.iter().position(|member| *member == partition) {
                group.swap(0, position);
            }
        }
        let operands = op.operands.iter().map(|value| self.whole(*value)).collect::<Result<Vec<_>>>()?;
        let mut runs = vec![0; self.emit.devices.count()];
        groups.iter().for_each(|group| runs[group[0]] = 1);
        let number = self.emit.of_partition(&runs);
        let runs = self.emit.builder.compare_with(ComparisonDirection::Ne, number, 0.0);
        let types: Vec<Type> = op.results.map(|result| self.function.body.ty(result).clone()).collect();
        let arrays: Vec<Type> = types.iter().filter(|ty| !ty.is_token()).cloned().collect();
        let branches = self.emit.builder.add_op(Op::If(ops::If {}), &[runs], arrays.clone());
        self.within_region(branches, |this| {
            let results = this.copy(op, op.kind.clone(), &operands, types.clone())?;
            Ok(results
                .into_iter()
                .zip(&types)
                .filter(|(_, ty)| !ty.is_token())
                .map(|(value, _)| value)
                .collect())
        })?;
        self.within_region(branches, |this| {
            let zeros = |ty: &Type| ty.as_tensor().cloned().map(|ty| this.emit.builder.zeros(ty));
            Ok(arrays.iter().filter_map(zeros).collect())
        })?;
        let mut received = self.emit.builder.all_results(branches).into_iter();
        let mut parts = Vec::with_capacity(types.len());
        for ty in &types {
            let array = if ty.is_token() { None } else { received.next() };
            parts.push(match (array, token) {
                (Some(value), _) => {
                    let layout = Layout::whole(rank(ty));
                    Part { value: self.emit.collective_broadcast(value, &groups), layout }
                }
                (None, Some(token)) => self.part(token)?,
                (None, None) => return Err(Error::internal("an operation returns a token but has none")),
            });
        }
        self.bind(op, parts);
        Ok(())
    }

    /// Partitions an iota: adds the index at which a partition's part begins.
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

    /// Partitions a constant. A splat becomes a smaller splat; any other constant stays whole.
    pub(super) fn constant(&mut self, op: &'m Operation, constant: &ops::Constant) -> Result<()> {
        let (hint, splat) = (self.hint(op.result()), constant.value.splat());
        match (hint.filter(|layout| !layout.is_whole()), splat) {
            (Some(layout), Some(element)) => {
                let local = self.local_type(op.result(), &layout)?;
                let ty = local.as_tensor().cloned();
                let ty = ty.ok_or_else(|| {
                    Error::internal(format!("expected a tensor type of a constant, found {local}"))
                })?;
                let value = self.emit.builder.splat(&element, ty);
                self.bind(op, [Part { value, layout }]);
                Ok(())
            }
            // Users of the constant slice the part that they need.
            _ => self.on_whole_arrays(op).map(drop),
        }
    }

    /// Runs a random number generator on whole arrays. Every run returns other numbers, so the first partition sends its own to
    /// the others.
    pub(super) fn random(&mut self, op: &'m Operation) -> Result<()> {
        let values = self.on_whole_arrays(op)?;
        let groups = self.emit.devices.sharing();
        if groups[0].len() > 1 {
            let value = self.emit.collective_broadcast(values[0], &groups);
            self.bind(op, [Part { value, layout: self.part(op.result())?.layout }]);
        }
        Ok(())
    }
}
