//! Partitions operations by their sharding rules.

use super::commute::commuting_operands;
use super::emit::ints;
use super::{Part, Partitioner};
use crate::cut::{Cut, product, refines};
use crate::error::{Error, Result};
use crate::layout::{Layout, Partial};
use crate::propagate::Shardings;
use crate::rule::{
    ShardingRule, TensorMapping, begins_with_neutral, combiner, reducer, reduction_by, rule_of, shapes,
};
use pjrt_stablehlo::ir::{Op, OpCode, Operation, Reduction, Str, Type, ValueId, ops};

impl<'m> Partitioner<'m> {
    /// Runs an operation on parts if it has a rule, otherwise on whole arrays.
    pub(super) fn by_rule(&mut self, op: &'m Operation) -> Result<()> {
        let body = &self.function.body;
        let Some(rule) = rule_of(body, op, self.options.call_rule) else {
            return self.on_whole_arrays(op).map(drop);
        };
        let by = rule.reducer.unwrap_or(OpCode::Add);
        let partial = self.partial_of(op);
        let cuts = self.cuts(op, &rule, partial.as_ref().map(|(_, partial)| &partial.terms))?;
        let layout = |tensor: &TensorMapping| Layout {
            dims: tensor.iter().map(|factors| cuts[*factors.first()?].clone()).collect(),
            partial: None,
        };
        let reduced: Vec<&Cut> =
            rule.reduction_factors().filter_map(|factor| cuts[factor].as_ref()).collect();
        let mut inputs = Vec::with_capacity(op.operands.len());
        for (i, (value, tensor)) in op.operands.iter().zip(&rule.operands).enumerate() {
            let mut to = layout(tensor);
            if let Some((operands, partial)) = &partial {
                to.partial = operands.contains(&i).then(|| partial.clone());
            }
            if matches!(op.kind, Op::Scatter(_)) && i == 0 && by == OpCode::Add {
                // The operand that the updates are added to must be counted once.
                let terms = product(&reduced);
                to.partial = terms.map(|terms| Partial { terms, reduction: Reduction::Sum });
            }
            inputs.push(self.moved(*value, &to)?);
        }
        let mut layouts: Vec<Layout> = rule.results.iter().map(layout).collect();
        let types = (op.results.zip(&layouts))
            .map(|(result, layout)| self.local_type(result, layout))
            .collect::<Result<Vec<_>>>()?;
        let kind = self.local_kind(op, &inputs, &types, &layouts)?;
        let mut values = self.copy(op, kind, &inputs, types)?;
        let terms = reduced.iter().copied().chain(partial.iter().map(|(_, partial)| &partial.terms));
        if let Some(terms) = product(&terms.collect::<Vec<_>>()) {
            let of_operands = partial.as_ref().map(|(_, partial)| partial.reduction);
            if let Some(reduction) = of_operands.or(reduction_by(by)) {
                let partial = Partial { terms, reduction };
                layouts.iter_mut().for_each(|layout| layout.partial = Some(partial.clone()));
            } else {
                let kept: Vec<&Cut> = layouts[0].cuts().collect();
                let groups = self.emit.devices.groups(&terms, &kept);
                values[0] = self.emit.all_reduce(values[0], by, &groups);
            }
        }
        let parts = values.into_iter().zip(layouts).map(|(value, layout)| Part { value, layout });
        self.bind(op, parts.collect::<Vec<_>>());
        Ok(())
    }

    /// Returns the operands that the operation can take as partial results, and the partial results; `None` if these operands are
    /// not partial results of the same reduction, split in the same way.
    fn partial_of(&self, op: &Operation) -> Option<(Vec<usize>, Partial)> {
        let body = &self.function.body;
        let reducer = reducer(body, op);
        let partial_at = |i: usize| self.parts.get(op.operands.get(i)?)?.layout.partial.as_ref();
        let first = (0..op.operands.len()).find_map(partial_at)?;
        let operands = commuting_operands(body, op, first.reduction, reducer);
        let all = operands.iter().all(|i| partial_at(*i).is_some_and(|partial| partial.is_like(first)));
        // The initial value of a sum is counted once per term, unless it is zero.
        let counts =
            matches!(op.kind, Op::Reduce(_)) && !begins_with_neutral(body, op, combiner(first.reduction));
        (all && !counts && !operands.is_empty()).then(|| (operands, first.clone()))
    }

    /// Returns the split of each factor: that of the results if it is known, otherwise that of the operands, larger ones first.
    fn cuts(&self, op: &Operation, rule: &ShardingRule, terms: Option<&Cut>) -> Result<Vec<Option<Cut>>> {
        let mut wanted: Vec<(&TensorMapping, Layout)> = vec![];
        for (result, tensor) in op.results.zip(&rule.results) {
            wanted.extend(self.hint(result).map(|layout| (tensor, layout)));
        }
        let sizes = shapes(&self.function.body, op.operands.iter().copied()).unwrap_or_default();
        let mut order: Vec<usize> = (0..sizes.len()).collect();
        order.sort_by_key(|i| std::cmp::Reverse(sizes[*i].iter().product::<usize>()));
        for i in order {
            wanted.push((&rule.operands[i], self.part(op.operands[i])?.layout));
        }
        let mut cuts: Vec<Option<Cut>> = vec![None; rule.factors.len()];
        for (tensor, layout) in &wanted {
            for (factors, cut) in tensor.iter().zip(&layout.dims) {
                let (Some(factor), Some(cut)) = (factors.first().copied(), cut) else { continue };
                let size = rule.factors[factor].size;
                let finer = cuts[factor].as_ref().is_none_or(|now| now != cut && refines(cut, now));
                if !finer || !rule.can_be_cut(factor) || size == 0 || !size.is_multiple_of(cut.parts) {
                    continue;
                }
                let others = cuts.iter().enumerate().filter(|(i, _)| *i != factor);
                let mut all: Vec<&Cut> = others.filter_map(|(_, cut)| cut.as_ref()).collect();
                all.push(cut);
                all.extend(terms);
                if self.emit.devices.spread_evenly(&all) {
                    cuts[factor] = Some(cut.clone());
                }
            }
        }
        Ok(cuts)
    }

    /// Returns the operation on parts: sizes among its attributes become sizes of parts.
    fn local_kind(
        &mut self,
        op: &'m Operation,
        operands: &[ValueId],
        results: &[Type],
        layouts: &[Layout],
    ) -> Result<Op> {
        let result = results.first().and_then(Type::as_tensor);
        Ok(match &op.kind {
            Op::Slice(o) => {
                let (from, mut slice) = (self.emit.dims(operands[0])?, o.clone());
                for (dim, limit) in slice.limit_indices.iter_mut().enumerate() {
                    if layouts[0].dims[dim].is_some() {
                        *limit = from[dim] as i64;
                    }
                }
                Op::Slice(slice)
            }
            Op::DynamicSlice(o) => {
                let mut slice = o.clone();
                slice.slice_sizes = result.map_or(slice.slice_sizes, |ty| ty.dims().into());
                Op::DynamicSlice(slice)
            }
            Op::Gather(o) => {
                let mut gather = o.clone();
                let from = ints(&self.emit.dims(operands[0])?);
                for (size, whole) in gather.slice_sizes.iter_mut().zip(&from) {
                    *size = (*size).min(*whole);
                }
                Op::Gather(gather)
            }
            Op::Composite(o) if layouts.iter().any(|layout| !layout.is_whole()) => {
                Op::Composite(self.local_composite(o, layouts)?.into())
            }
            kind => kind.clone(),
        })
    }

    /// Returns a composite whose decomposition operates on parts.
    fn local_composite(&mut self, composite: &ops::Composite, layouts: &[Layout]) -> Result<ops::Composite> {
        let function = self.module.function(&composite.decomposition);
        let function = function.ok_or_else(|| {
            Error::invalid(format!(
                "the module does not define the decomposition @{} of this composite",
                composite.decomposition
            ))
        })?;
        let name: Str = format!("{}.{}", &*composite.decomposition, self.functions.len()).as_str().into();
        let devices = self.emit.devices.clone();
        let none = Shardings::default();
        let mut inner = Partitioner::new(self.module, function, devices, &none, self.options);
        inner.functions = std::mem::take(&mut self.functions);
        let parameters: Vec<Layout> = function.argument_types().iter().map(|_| layouts[0].clone()).collect();
        let function = inner.function(name.clone(), &parameters, layouts)?;
        self.functions = inner.functions;
        self.functions.push(function);
        Ok(ops::Composite { decomposition: name, ..composite.clone() })
    }
}
