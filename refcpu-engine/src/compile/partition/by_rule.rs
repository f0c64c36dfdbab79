//! Operations that run on parts as a rule says.

use super::emit::ints;
use super::hints::{Hints, shapes};
use super::layout::{Layout, refines};
use super::rule::{Rule, linear_in, reducer, rule};
use super::{Part, Partitioner};
use crate::compile::error::{CompileError, Result};
use crate::compile::propagate::Cut;
use pjrt_stablehlo::ir::{ElementKind, Op, OpCode, Operation, Type, ValueId};

impl<'m> Partitioner<'m> {
    /// Runs an operation on parts if there is a rule for it, else on whole arrays.
    pub(super) fn by_rule(&mut self, op: &'m Operation) -> Result<()> {
        let body = &self.function.body;
        let shapes = (shapes(body, op.operands.iter().copied()), shapes(body, op.results));
        let reducer = reducer(body, op);
        let (Some(operands), Some(results)) = shapes else {
            return self.on_whole_arrays(op).map(drop);
        };
        let Some(mut rule) = rule(op, &operands, &results, reducer) else {
            return self.on_whole_arrays(op).map(drop);
        };
        if matches!(op.kind, Op::Reduce(_)) && !self.begins_with_nothing(op, rule.by) {
            self.keep_whole(&mut rule);
        }
        let addends = self.addends_of(op, reducer, &rule);
        let cuts = self.cuts(op, &rule, &operands, &results, addends.as_ref().map(|(_, cut)| cut))?;
        let layout = |factors: &Vec<Option<usize>>| Layout {
            dims: factors.iter().map(|factor| cuts[(*factor)?].clone()).collect(),
            addends: None,
        };
        let reduced: Vec<&Cut> = rule.reduced.iter().filter_map(|factor| cuts[*factor].as_ref()).collect();
        let mut inputs = Vec::with_capacity(operands.len());
        for (i, value) in op.operands.iter().enumerate() {
            let mut to = layout(&rule.operands[i]);
            if let Some((linear, cut)) = &addends {
                to.addends = linear.contains(&i).then(|| cut.clone());
            }
            if matches!(op.kind, Op::Scatter(_)) && i == 0 && rule.by == OpCode::Add {
                // What updates are added to counts once.
                to.addends = product(&reduced);
            }
            inputs.push(self.moved(*value, &to)?);
        }
        let mut layouts: Vec<Layout> = rule.results.iter().map(layout).collect();
        let types = (op.results.zip(&layouts))
            .map(|(result, layout)| self.local_type(result, layout))
            .collect::<Result<Vec<_>>>()?;
        let kind = self.local_kind(op, &inputs, &types, &layouts)?;
        let mut values = self.copy(op, kind, &inputs, types)?;
        let spread: Vec<&Cut> = reduced.iter().copied().chain(addends.iter().map(|(_, cut)| cut)).collect();
        if let Some(spread) = product(&spread) {
            if rule.by == OpCode::Add {
                layouts.iter_mut().for_each(|layout| layout.addends = Some(spread.clone()));
            } else {
                let kept: Vec<&Cut> = layouts[0].cuts().collect();
                let groups = self.emit.devices.groups(&spread, &kept);
                values[0] = self.emit.all_reduce(values[0], rule.by, &groups)?;
            }
        }
        let parts = values.into_iter().zip(layouts).map(|(value, layout)| Part { value, layout });
        self.bind(op, parts.collect::<Vec<_>>());
        Ok(())
    }

    /// Whether the first value of a reduction may be combined in more than once.
    fn begins_with_nothing(&self, op: &Operation, by: OpCode) -> bool {
        let [_, init] = op.operands[..] else { return false };
        let defining = self.function.body.defining_op(init).map(|id| &self.function.body.op(id).kind);
        match (by, defining) {
            (OpCode::Maximum | OpCode::Minimum | OpCode::And | OpCode::Or, _) => true,
            (OpCode::Add, Some(Op::Constant(constant))) => {
                constant.value.splat().is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0))
            }
            (OpCode::Multiply, Some(Op::Constant(constant))) => {
                constant.value.to_f64s(1).is_some_and(|values| values == [1.0])
                    || constant.value.to_i64s(1).is_some_and(|values| values == [1])
            }
            _ => false,
        }
    }

    /// Takes the factors from a rule along which an operation reduces.
    fn keep_whole(&self, rule: &mut Rule) {
        let reduced = std::mem::take(&mut rule.reduced);
        for factor in rule.operands.iter_mut().flatten() {
            *factor = factor.filter(|factor| !reduced.contains(factor));
        }
    }

    /// The operands that are addends which the operation takes as such, and how these are spread.
    fn addends_of(&self, op: &Operation, reducer: Option<OpCode>, rule: &Rule) -> Option<(Vec<usize>, Cut)> {
        let tensor = |value: ValueId| self.function.body.ty(value).as_tensor().cloned();
        let widens = match (op.operands.first().and_then(|v| tensor(*v)), op.results.get(0).and_then(tensor))
        {
            (Some(from), Some(to)) => {
                let (from, to) = (from.element_type(), to.element_type());
                from.kind() == ElementKind::Float
                    && to.kind() == ElementKind::Float
                    && from.exponent_bits() <= to.exponent_bits()
                    && from.mantissa_bits() <= to.mantissa_bits()
            }
            _ => false,
        };
        let linear = linear_in(op, reducer, widens);
        let addends = self.parts.get(op.operands.get(*linear.first()?)?)?.layout.addends.clone()?;
        let all = linear.iter().all(|i| {
            self.parts
                .get(&op.operands[*i])
                .is_some_and(|part| part.layout.addends.as_ref() == Some(&addends))
        });
        // A reduction that begins with something else than nothing would count it once for every addend.
        let counts = matches!(op.kind, Op::Reduce(_)) && !self.begins_with_nothing(op, rule.by);
        (all && !counts).then_some((linear, addends))
    }

    /// How each factor is cut: as results are to be, else as operands are, the larger ones first.
    fn cuts(
        &self,
        op: &Operation,
        rule: &Rule,
        operands: &[Vec<usize>],
        results: &[Vec<usize>],
        addends: Option<&Cut>,
    ) -> Result<Vec<Option<Cut>>> {
        let mut sizes: Vec<Vec<usize>> = vec![vec![]; rule.factors];
        let arrays = rule.operands.iter().zip(operands).chain(rule.results.iter().zip(results));
        for (factors, dims) in arrays {
            for (factor, size) in factors.iter().zip(dims) {
                if let Some(factor) = factor {
                    sizes[*factor].push(*size);
                }
            }
        }
        let mut wanted: Vec<(Vec<Option<usize>>, Layout)> = vec![];
        for (result, factors) in op.results.zip(&rule.results) {
            wanted.extend(self.hint(result).map(|layout| (factors.clone(), layout)));
        }
        let mut order: Vec<usize> = (0..operands.len()).collect();
        order.sort_by_key(|i| std::cmp::Reverse(operands[*i].iter().product::<usize>()));
        for i in order {
            wanted.push((rule.operands[i].clone(), self.part(op.operands[i])?.layout));
        }
        let mut cuts: Vec<Option<Cut>> = vec![None; rule.factors];
        for (factors, layout) in &wanted {
            for (factor, cut) in factors.iter().zip(&layout.dims) {
                let (Some(factor), Some(cut)) = (*factor, cut) else { continue };
                let finer = cuts[factor].as_ref().is_none_or(|now| now != cut && refines(cut, now));
                if !finer || sizes[factor].iter().any(|size| *size == 0 || !size.is_multiple_of(cut.parts)) {
                    continue;
                }
                let others = cuts.iter().enumerate().filter(|(i, _)| *i != factor);
                let mut all: Vec<&Cut> = others.filter_map(|(_, cut)| cut.as_ref()).collect();
                all.push(cut);
                all.extend(addends);
                if self.emit.devices.spread_evenly(&all) {
                    cuts[factor] = Some(cut.clone());
                }
            }
        }
        Ok(cuts)
    }

    /// What the operation is on parts: sizes among its attributes are those of parts.
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
                let mut composite = o.clone();
                let function = self.module.function(&o.decomposition);
                let function =
                    function.ok_or_else(|| CompileError::invalid("a composite without decomposition"))?;
                let name = format!("{}.{}", &*o.decomposition, self.functions.len());
                let devices = self.emit.devices.clone();
                let none = Hints::new();
                let mut inner = Partitioner::new(self.module, function, devices, &none);
                inner.functions = std::mem::take(&mut self.functions);
                let parameters: Vec<Layout> =
                    function.argument_types().iter().map(|_| layouts[0].clone()).collect();
                let function = inner.function(name.as_str().into(), &parameters, layouts)?;
                self.functions = inner.functions;
                self.functions.push(function);
                composite.decomposition = name.as_str().into();
                Op::Composite(composite)
            }
            kind => kind.clone(),
        })
    }
}

/// The cut along which partitions have parts of all of these; `None` of none.
fn product(cuts: &[&Cut]) -> Option<Cut> {
    let (first, rest) = cuts.split_first()?;
    Some(rest.iter().fold((*first).clone(), |all, cut| {
        Cut {
            parts: all.parts * cut.parts,
            of_partition: all
                .of_partition
                .iter()
                .zip(&*cut.of_partition)
                .map(|(major, minor)| major * cut.parts + minor)
                .collect(),
        }
    }))
}
