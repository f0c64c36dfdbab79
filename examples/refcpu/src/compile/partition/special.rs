//! Operations whose parts are not simply the operation on parts: those without operands, random numbers, and what programs say
//! about shardings.

use super::layout::Layout;
use super::{Part, Partitioner};
use crate::compile::error::{CompileError, Result};
use crate::compile::lower::unspecified_dims;
use crate::compile::sharding::{annotation, with_addends};
use pjrt_stablehlo::ir::{
    Attribute, BackendConfig, ElementType, Literal, LiteralData, Op, Operation, TensorSharding, TensorType,
    ops,
};

impl<'m> Partitioner<'m> {
    /// A value that is split as an operation says; unless it cannot be.
    pub(super) fn constraint(&mut self, op: &Operation, sharding: &TensorSharding) -> Result<()> {
        let Some(dims) = self.dims(op.operand(0)) else { return self.unchanged(op) };
        let Ok(said) = with_addends(self.module, sharding, &dims, self.emit.devices.count()) else {
            return self.unchanged(op);
        };
        let open = |dim: usize| sharding.dim_shardings.get(dim).is_some_and(|dim| !dim.is_closed);
        let wanted = Layout::of(said.as_ref(), dims.len());
        self.split_so(op, wanted, open)
    }

    /// Moves an operation's operand to where it is to be; along dimensions that are left open it may be cut as it is.
    fn split_so(&mut self, op: &Operation, mut wanted: Layout, open: impl Fn(usize) -> bool) -> Result<()> {
        let part = self.part(op.operand(0))?;
        let devices = &self.emit.devices;
        if !devices.spread_evenly(&wanted.cuts().collect::<Vec<_>>()) {
            return self.unchanged(op);
        }
        for dim in (0..wanted.dims.len()).filter(|dim| open(*dim)) {
            let mut finer = wanted.clone();
            finer.dims[dim] = part.layout.dims[dim].clone();
            if wanted.dims[dim].is_none() && devices.spread_evenly(&finer.cuts().collect::<Vec<_>>()) {
                wanted = finer;
            }
        }
        let value = self.moved_part(&part, &wanted)?;
        self.bind(op, [Part { value, layout: wanted }]);
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
            "Sharding" if same && op.results.len() == 1 => {
                let said = op.attributes.get("mhlo.sharding").and_then(Attribute::as_str);
                let (Some(text), Some(dims)) = (said, self.dims(op.operand(0))) else {
                    return self.unchanged(op);
                };
                let open = match &call.backend_config {
                    BackendConfig::Bytes(config) => unspecified_dims(&String::from_utf8_lossy(config)),
                    _ => vec![],
                };
                match annotation(text, &open, &dims, self.emit.devices.count()) {
                    Some(split) => {
                        let wanted = Layout { dims: split.dims.clone(), addends: None };
                        self.split_so(op, wanted, |dim| !split.closed[dim])
                    }
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
        let numbers = TensorType::new(ElementType::I64, result.dims());
        let each = self.emit.op(Op::Iota(iota.clone()), &[], numbers.clone());
        let size = result.dims()[dim] as usize;
        let starts: Vec<usize> = cut.of_partition.iter().map(|part| part * size).collect();
        let start = self.emit.of_partition(&starts)?;
        let broadcast = ops::BroadcastInDim { broadcast_dimensions: Box::default() };
        let start = self.emit.op(Op::BroadcastInDim(broadcast), &[start], numbers.clone());
        let sum = self.emit.op(Op::Add(ops::Add {}), &[each, start], numbers);
        let value = self.emit.op(Op::Convert(ops::Convert {}), &[sum], result);
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
                let ty = ty.ok_or_else(|| CompileError::internal("a constant that is no tensor"))?;
                let value = Literal::new(ty.clone(), LiteralData::Splat(element.into_owned().into()));
                let value = value.map_err(|error| CompileError::internal(error.to_string()))?;
                let value = self.emit.op(Op::Constant(ops::Constant { value }), &[], ty);
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
            let value = self.emit.collective_broadcast(values[0], &groups)?;
            self.bind(op, [Part { value, layout: self.part(op.result())?.layout }]);
        }
        Ok(())
    }
}
