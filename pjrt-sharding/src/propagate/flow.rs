//! The graph of relations between the shardings of a function's tensors.

use super::gspmd::block_for_gspmd;
use super::relation::{Kind, Relation, TensorId};
use crate::error::{Error, Result};
use crate::mesh::{is_for_gspmd, mesh_of, of_shardy};
use crate::options::Options;
use crate::rule::{FactorKind, RuleBuilder, propagation_rule};
use crate::said::{annotation, constraint};
use crate::sharding::Sharding;
use crate::split::Split;
use pjrt_stablehlo::Module;
use pjrt_stablehlo::ir::{
    AxisRef, BackendConfig, BlockId, Body, DimensionSharding, Op, OpId, Operation, TensorSharding, Trait,
    Type, ValueId, ops,
};
use std::collections::{BTreeMap, HashMap};

/// The splits that operations state.
#[derive(Default)]
pub(super) struct Given {
    /// The splits of the results of manual computations, which take precedence over all others.
    pub(super) manual_results: Vec<(TensorId, Split)>,
    /// The splits of operands and results of constraints. The first one of a tensor counts.
    pub(super) constraints: Vec<(TensorId, Split)>,
    /// The splits of operands of manual computations, which count only if there is no other.
    pub(super) manual_operands: Vec<(TensorId, Split)>,
    /// The tensors of each sharding group, by the group's number. They are split in the same way.
    pub(super) groups: BTreeMap<i64, Vec<TensorId>>,
    /// The tensors whose shardings the program inspects, with the names in the configurations of the calls.
    pub(super) inspected: Vec<(String, TensorId)>,
}

/// The tensors of a function, and the relations between their shardings.
pub(super) struct Flow<'m> {
    module: &'m Module,
    body: &'m Body,
    options: &'m Options,
    /// Known shardings of results of the custom calls that the host partitions.
    inferred: &'m HashMap<ValueId, Sharding>,
    /// The dimensions of each tensor; empty if they are not static.
    pub(super) tensors: Vec<Vec<usize>>,
    pub(super) of_value: HashMap<ValueId, Vec<TensorId>>,
    /// The number of uses of each value.
    uses: HashMap<ValueId, usize>,
    /// The relations that the operations state, in program order.
    pub(super) relations: Vec<Relation>,
    pub(super) given: Given,
}

impl<'m> Flow<'m> {
    pub(super) fn new(
        module: &'m Module,
        body: &'m Body,
        options: &'m Options,
        inferred: &'m HashMap<ValueId, Sharding>,
    ) -> Self {
        let mut uses = HashMap::new();
        for operand in body.all_ops().flat_map(|(_, op)| op.operands.iter()) {
            *uses.entry(*operand).or_default() += 1;
        }
        Self {
            module,
            body,
            options,
            inferred,
            tensors: vec![],
            of_value: HashMap::new(),
            uses,
            relations: vec![],
            given: Given::default(),
        }
    }

    /// Adds the tensors of values.
    pub(super) fn define(&mut self, values: impl IntoIterator<Item = ValueId>) {
        for value in values {
            let first = self.tensors.len();
            let ty = self.body.ty(value);
            self.add_tensors(ty);
            self.of_value.insert(value, (first..self.tensors.len()).collect());
        }
    }

    fn add_tensors(&mut self, ty: &Type) {
        match ty {
            Type::Tuple(parts) | Type::Future(parts) => parts.iter().for_each(|part| self.add_tensors(part)),
            Type::Tensor(ty) => {
                let dims = ty.static_dims().unwrap_or_default();
                let dims: Option<Vec<usize>> = dims.iter().map(|dim| usize::try_from(*dim).ok()).collect();
                self.tensors.push(dims.unwrap_or_default());
            }
            _ => self.tensors.push(vec![]),
        }
    }

    /// Returns the tensors of values.
    pub(super) fn flat(&self, values: impl IntoIterator<Item = ValueId>) -> Result<Vec<TensorId>> {
        let mut all = vec![];
        for value in values {
            let tensors = self.of_value.get(&value);
            all.extend(tensors.ok_or_else(|| Error::internal("a value is used before its definition"))?);
        }
        Ok(all)
    }

    /// Adds the operations of a block whose arguments are defined. Returns the operands of its terminator.
    pub(super) fn block(&mut self, block: BlockId) -> Result<Vec<TensorId>> {
        for id in &self.body.block(block).ops {
            let op = self.body.op(*id);
            if op.info().has(Trait::Terminator) {
                return self.flat(op.operands.iter().copied());
            }
            self.operation(*id, op).map_err(|error| error.in_op(op.kind.name(), &op.location))?;
        }
        Ok(vec![])
    }

    fn operation(&mut self, id: OpId, op: &'m Operation) -> Result<()> {
        match &op.kind {
            Op::Tuple(_) | Op::AsyncDone(_) => {
                let tensors = self.flat(op.operands.iter().copied())?;
                self.bind(op, tensors);
                return Ok(());
            }
            Op::GetTupleElement(get) => return self.element(op, get.index as usize),
            Op::AsyncStart(_) => return self.async_start(id, op),
            Op::FuncCall(call) => {
                let why = format!(
                    "the program calls @{}; calls must be inlined before sharding propagation",
                    call.callee
                );
                return Err(Error::unsupported(why));
            }
            _ => {}
        }
        self.define(op.results.iter());
        match &op.kind {
            Op::While(_) => self.while_loop(id, op),
            Op::Case(_) | Op::If(_) => self.branches(id, op),
            Op::ManualComputation(o) => self.manual(id, op, o),
            Op::ShardingConstraint(o) => self.constraint(op, &o.sharding),
            Op::Reshard(o) => self.constraint(op, &o.sharding),
            Op::ShardingGroup(o) => {
                let tensors = self.flat(op.operands.iter().copied())?;
                self.given.groups.entry(o.group_id).or_default().extend(tensors);
                Ok(())
            }
            Op::CustomCall(o) => self.custom_call(op, o),
            _ => self.by_rule(op),
        }
    }

    /// Binds the results of an operation to these tensors.
    fn bind(&mut self, op: &Operation, tensors: Vec<TensorId>) {
        fn count(ty: &Type) -> usize {
            match ty {
                Type::Tuple(parts) | Type::Future(parts) => parts.iter().map(count).sum(),
                _ => 1,
            }
        }
        let mut rest = tensors.into_iter();
        for result in op.results.iter() {
            let tensors = rest.by_ref().take(count(self.body.ty(result))).collect();
            self.of_value.insert(result, tensors);
        }
    }

    fn element(&mut self, op: &Operation, index: usize) -> Result<()> {
        let Type::Tuple(parts) = self.body.ty(op.operand(0)) else {
            return Err(Error::invalid(format!(
                "expected a tuple as operand, found {}",
                self.body.ty(op.operand(0))
            )));
        };
        let before = self.tensors.len();
        parts.iter().take(index).for_each(|part| self.add_tensors(part));
        let skip = self.tensors.len() - before;
        self.tensors.truncate(before);
        let tensors = self.flat([op.operand(0)])?.into_iter().skip(skip).collect();
        self.bind(op, tensors);
        Ok(())
    }

    fn by_rule(&mut self, op: &Operation) -> Result<()> {
        let Some(mut rule) = propagation_rule(self.body, op, self.options.call_rule) else { return Ok(()) };
        if is_for_gspmd(self.module) {
            block_for_gspmd(self.body, op, &mut rule);
        }
        let one = |this: &Self, value: ValueId| match this.of_value.get(&value).map_or(&[][..], Vec::as_slice)
        {
            [tensor] => Some(*tensor),
            _ => None,
        };
        let tensors = op.operands.iter().copied().chain(op.results.iter());
        let tensors = tensors.map(|value| one(self, value)).collect();
        let has_other_use = |value: &ValueId| {
            self.body.ty(*value).as_tensor().is_some_and(|ty| ty.rank() > 0) && self.uses[value] > 1
        };
        let is_only_use = !op.operands.iter().any(has_other_use);
        self.relations.push(Relation { rule, tensors, kind: kind_of(op), is_only_use });
        Ok(())
    }

    /// Relates all dimensions of tensors of the same shape.
    pub(super) fn alike(&mut self, tensors: &[TensorId]) {
        let shapes: Vec<_> = tensors.iter().map(|tensor| self.tensors[*tensor].clone()).collect();
        let rank = shapes.iter().map(Vec::len).min().unwrap_or(0);
        let dims = (0..rank).map(|dim| (0..tensors.len()).map(|i| (i, dim)).collect::<Vec<_>>());
        self.relate(tensors, &shapes, dims);
    }

    /// Adds a relation with one factor for each of these sets of dimensions, which are pairs of an index in `tensors` and a
    /// dimension.
    fn relate(
        &mut self,
        tensors: &[TensorId],
        shapes: &[Vec<usize>],
        sets: impl IntoIterator<Item = Vec<(usize, usize)>>,
    ) {
        let mut rule = RuleBuilder::new(shapes, &[]);
        for dims in sets {
            rule.factor(FactorKind::PassThrough, dims, []);
        }
        let tensors = tensors.iter().copied().map(Some).collect();
        self.relations.push(Relation {
            rule: rule.finish(),
            tensors,
            kind: Kind::Movement,
            is_only_use: true,
        });
    }

    /// Returns the block of a region, after defining its arguments as new tensors.
    fn region(&mut self, id: OpId, index: usize) -> Result<BlockId> {
        let region = self.body.op(id).regions.get(index);
        let block = region.and_then(|region| self.body.region(*region).blocks.first());
        let block = *block.ok_or_else(|| Error::invalid(format!("region {index} has no block")))?;
        self.define(self.body.block(block).arguments.iter().copied());
        Ok(block)
    }

    fn arguments(&self, block: BlockId) -> Result<Vec<TensorId>> {
        self.flat(self.body.block(block).arguments.iter().copied())
    }

    fn while_loop(&mut self, id: OpId, op: &Operation) -> Result<()> {
        let (condition, body) = (self.region(id, 0)?, self.region(id, 1)?);
        self.block(condition)?;
        let next = self.block(body)?;
        let all = [
            self.flat(op.operands.iter().copied())?,
            self.flat(op.results.iter())?,
            self.arguments(condition)?,
            self.arguments(body)?,
            next,
        ];
        self.all_alike(&all);
        Ok(())
    }

    fn branches(&mut self, id: OpId, op: &Operation) -> Result<()> {
        let mut all = vec![self.flat(op.results.iter())?];
        for index in 0..op.regions.len() {
            let block = self.region(id, index)?;
            all.push(self.block(block)?);
        }
        self.all_alike(&all);
        Ok(())
    }

    /// Relates the tensors at each index of these lists.
    fn all_alike(&mut self, lists: &[Vec<TensorId>]) {
        for place in 0..lists.iter().map(Vec::len).min().unwrap_or(0) {
            self.alike(&lists.iter().map(|list| list[place]).collect::<Vec<_>>());
        }
    }

    /// Treats an asynchronous operation as if it ran at its start: the future is bound to the results.
    fn async_start(&mut self, id: OpId, op: &Operation) -> Result<()> {
        let block = self.region(id, 0)?;
        for (argument, operand) in self.body.block(block).arguments.iter().zip(&op.operands) {
            let tensors = self.flat([*operand])?;
            self.of_value.insert(*argument, tensors);
        }
        let tensors = self.block(block)?;
        self.bind(op, tensors);
        Ok(())
    }

    fn constraint(&mut self, op: &Operation, sharding: &TensorSharding) -> Result<()> {
        for tensor in self.flat(op.operands.iter().copied())? {
            let split = constraint(self.module, sharding, &self.tensors[tensor], self.options.shared_by());
            self.given_by(op, tensor, split)?;
        }
        Ok(())
    }

    /// Records the stated split of an operation's operand and of its result, and relates the two.
    fn given_by(&mut self, op: &Operation, tensor: TensorId, split: Option<Split>) -> Result<()> {
        let result = self.flat(op.results.iter())?[0];
        if let Some(split) = split {
            self.given.constraints.push((tensor, split.clone()));
            self.given.constraints.push((result, split));
        }
        self.alike(&[tensor, result]);
        Ok(())
    }

    fn custom_call(&mut self, op: &Operation, call: &ops::CustomCall) -> Result<()> {
        let operand = self.flat(op.operands.iter().copied().take(1))?;
        let is_same = || op.results.len() == 1 && self.body.ty(op.operand(0)) == self.body.ty(op.result());
        match (&*call.call_target_name, &operand[..]) {
            ("Sharding", [tensor]) if is_same() => {
                let split = annotation(op, call, &self.tensors[*tensor], self.options.shared_by());
                return self.given_by(op, *tensor, split);
            }
            ("InspectSharding", [tensor]) => {
                if let BackendConfig::Bytes(name) = &call.backend_config {
                    let name = String::from_utf8_lossy(name).into_owned();
                    self.given.inspected.push((name, *tensor));
                }
            }
            _ => {}
        }
        for result in op.results.iter() {
            if let (Some(sharding), [tensor]) = (self.inferred.get(&result), &self.of_value[&result][..]) {
                let closed = vec![true; self.tensors[*tensor].len()];
                self.given.constraints.push((*tensor, Split::new(Some(sharding), closed)));
            }
        }
        self.by_rule(op)
    }

    /// Adds a manual computation. Its tensors are split as stated along its manual axes, and freely along the others.
    fn manual(&mut self, id: OpId, op: &'m Operation, manual: &ops::ManualComputation) -> Result<()> {
        let operands = self.flat(op.operands.iter().copied())?;
        let results = self.flat(op.results.iter())?;
        let split = |this: &Self, tensor: TensorId, sharding: &TensorSharding| {
            let along = along_manual_axes(sharding, manual);
            let found = of_shardy(this.module, &along, &this.tensors[tensor], this.options.shared_by());
            let found = found.ok()?;
            if found.as_ref().is_some_and(|found| !found.is_even(&this.tensors[tensor])) {
                return None;
            }
            let mut split = Split::new(found.as_ref(), vec![false; this.tensors[tensor].len()]);
            split.closed = split.dims.iter().map(Option::is_some).collect();
            Some((tensor, split))
        };
        let given = |tensors: &[TensorId], shardings: &[TensorSharding]| {
            let all = tensors.iter().zip(shardings);
            all.filter_map(|(tensor, sharding)| split(self, *tensor, sharding)).collect::<Vec<_>>()
        };
        let (of_operands, of_results) =
            (given(&operands, &manual.in_shardings), given(&results, &manual.out_shardings));
        self.given.manual_operands.extend(of_operands);
        self.given.manual_results.extend(of_results);
        // Operations in the body constrain parts of arrays, so their splits do not propagate outside.
        let outer = (std::mem::take(&mut self.relations), std::mem::take(&mut self.given));
        let block = self.region(id, 0)?;
        let returned = self.block(block)?;
        let inner = std::mem::replace(&mut self.relations, outer.0);
        self.given = outer.1;
        if self.is_manual_along_all(manual)? {
            // Each device has all of the dimensions that are not split along manual axes.
            return Ok(());
        }
        let inside = self.arguments(block)?.into_iter().chain(returned);
        let shardings = manual.in_shardings.iter().chain(&manual.out_shardings);
        let outside = operands.into_iter().chain(results).zip(inside).zip(shardings);
        let mut sets = Sets::of(&inner);
        let mut related: BTreeMap<usize, Vec<(TensorId, usize)>> = BTreeMap::new();
        for ((tensor, inside), sharding) in outside {
            let along = along_manual_axes(sharding, manual);
            for (dim, _) in along.dim_shardings.iter().enumerate().filter(|(_, dim)| dim.axes.is_empty()) {
                related.entry(sets.set(inside, dim)).or_default().push((tensor, dim));
            }
        }
        for members in related.into_values() {
            let tensors: Vec<TensorId> = members.iter().map(|(tensor, _)| *tensor).collect();
            let shapes: Vec<_> = tensors.iter().map(|tensor| self.tensors[*tensor].clone()).collect();
            let dims = members.iter().enumerate().map(|(i, (_, dim))| (i, *dim)).collect();
            self.relate(&tensors, &shapes, [dims]);
        }
        Ok(())
    }

    fn is_manual_along_all(&self, manual: &ops::ManualComputation) -> Result<bool> {
        let Some(first) = manual.in_shardings.iter().chain(&manual.out_shardings).next() else {
            return Ok(false);
        };
        let mesh = mesh_of(self.module, first)?;
        Ok(mesh.axes.iter().all(|axis| axis.size == 1 || manual.manual_axes.contains(&axis.name)))
    }
}

/// Returns the sharding without the axes that are not manual in a computation.
fn along_manual_axes(sharding: &TensorSharding, manual: &ops::ManualComputation) -> TensorSharding {
    let kept = |axes: &[AxisRef]| {
        axes.iter().filter(|axis| manual.manual_axes.contains(&axis.name)).cloned().collect()
    };
    let dim = |dim: &DimensionSharding| DimensionSharding { axes: kept(&dim.axes), ..dim.clone() };
    TensorSharding { dim_shardings: sharding.dim_shardings.iter().map(dim).collect(), ..sharding.clone() }
}

/// Returns the kind of an operation that has a rule.
fn kind_of(op: &Operation) -> Kind {
    match &op.kind {
        Op::BroadcastInDim(_) => Kind::Broadcast,
        Op::Reshape(_) | Op::Transpose(_) | Op::OptimizationBarrier(_) => Kind::Movement,
        Op::DynamicSlice(_) | Op::DynamicUpdateSlice(_) => Kind::DynamicSlice,
        _ if op.info().has(Trait::Elementwise) => Kind::Elementwise,
        _ => Kind::Other,
    }
}

/// Disjoint sets of the dimensions that relations have in common.
struct Sets {
    of_dim: HashMap<(TensorId, usize), usize>,
    merged_into: Vec<usize>,
}

impl Sets {
    fn of(relations: &[Relation]) -> Self {
        let mut sets = Self { of_dim: HashMap::new(), merged_into: vec![] };
        for members in relations.iter().flat_map(Relation::members) {
            let Some(((tensor, dim), rest)) = members.split_first() else { continue };
            let set = sets.set(*tensor, *dim);
            for (tensor, dim) in rest {
                let other = sets.set(*tensor, *dim);
                sets.merged_into[other] = set;
            }
        }
        sets
    }

    /// Returns the set of a dimension. A dimension without relations, such as that of a returned argument, has its own set.
    fn set(&mut self, tensor: TensorId, dim: usize) -> usize {
        let next = self.merged_into.len();
        let mut set = *self.of_dim.entry((tensor, dim)).or_insert(next);
        if set == next {
            self.merged_into.push(next);
        }
        while self.merged_into[set] != set {
            set = self.merged_into[set];
        }
        set
    }
}
