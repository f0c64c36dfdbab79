//! Lowers calls, composites, loops and branches.

use super::{CompileError, Result, Scope};
use crate::graph::{Body, Builder, Graph, Op as Core, Shape, ValueId, ops as core_ops};
use pjrt_stablehlo::ir::{Attribute, Op, OpId, Operation, ops};
use refcpu_kernels::DType;
use refcpu_kernels::tile::TileOp;

/// The composites that have an elementwise kernel, for real elements.
const COMPOSITE_KERNELS: &[(&str, TileOp)] = &[
    ("chlo.acos", TileOp::Acos),
    ("chlo.acosh", TileOp::Acosh),
    ("chlo.asin", TileOp::Asin),
    ("chlo.asinh", TileOp::Asinh),
    ("chlo.atan", TileOp::Atan),
    ("chlo.atanh", TileOp::Atanh),
    ("chlo.cosh", TileOp::Cosh),
    ("chlo.erf", TileOp::Erf),
    ("chlo.erf_inv", TileOp::ErfInv),
    ("chlo.erfc", TileOp::Erfc),
    ("chlo.mulhi", TileOp::MulHi),
    ("chlo.sinh", TileOp::Sinh),
    ("chlo.tan", TileOp::Tan),
];

/// The composite of `jax.lax.top_k`.
const TOP_K: &str = "chlo.top_k";

/// Returns the names of the composites that [`Scope::composite`] has kernels for, at least for some types.
pub(in crate::compile) fn composites_with_kernels() -> impl Iterator<Item = &'static str> {
    COMPOSITE_KERNELS.iter().map(|(name, _)| *name).chain([TOP_K])
}

impl<'m> Scope<'m> {
    /// Lowers an operation of this file; returns `None` for other operations.
    pub(super) fn control_op(&mut self, id: OpId, op: &'m Operation) -> Result<Option<Vec<ValueId>>> {
        match &op.kind {
            Op::FuncCall(o) => {
                let operands = self.flat(&op.operands)?;
                self.call(&o.callee, operands).map(Some)
            }
            Op::Composite(o) => self.composite(op, o).map(Some),
            Op::While(_) => self.while_loop(id, op).map(Some),
            Op::Case(_) => {
                let index = self.operand(op, 0)?;
                self.branches(id, op, index).map(Some)
            }
            Op::If(_) => {
                // Branch 0 is the one for true.
                let p = self.operand(op, 0)?;
                let not = self.b.tile(TileOp::Not, &[p]);
                let index = self.b.convert(not, DType::S32);
                self.branches(id, op, index).map(Some)
            }
            // An asynchronous operation runs at its start: the future is bound to the results.
            Op::AsyncStart(_) => self.inlined_region(id, op).map(Some),
            Op::AsyncDone(_) => self.flat(&op.operands).map(Some),
            Op::CustomCall(o) => self.custom_call(op, o).map(Some),
            Op::ManualComputation(o) => self.manual_computation(id, op, o).map(Some),
            _ => Ok(None),
        }
    }

    /// Inlines the only region of an operation, with its operands as arguments.
    fn inlined_region(&mut self, id: OpId, op: &'m Operation) -> Result<Vec<ValueId>> {
        let block = self.region(id, 0)?;
        let mut operands = self.flat(&op.operands)?;
        let shapes: Vec<Shape> = operands.iter().map(|v| self.shape(*v)).collect();
        let captures = self.captures(&[block]);
        let body = self.body(block, &shapes, &captures)?;
        operands.extend(self.captured(&captures));
        Ok(self.b.inline(&body, &operands))
    }

    fn while_loop(&mut self, id: OpId, op: &'m Operation) -> Result<Vec<ValueId>> {
        let (condition, body) = (self.region(id, 0)?, self.region(id, 1)?);
        let mut operands = self.flat(&op.operands)?;
        let shapes: Vec<Shape> = operands.iter().map(|v| self.shape(*v)).collect();
        let captures = self.captures(&[condition, body]);
        let condition = self.body(condition, &shapes, &captures)?;
        let body = self.body(body, &shapes, &captures)?;
        let got: Vec<&Shape> = body.results().iter().map(|r| body.shape(*r)).collect();
        if !got.iter().copied().eq(&shapes) {
            return Err(CompileError::invalid(format!(
                "the body of the loop returns {got:?}, but its arguments are {shapes:?}"
            )));
        }
        operands.extend(self.captured(&captures));
        Ok(self.loop_without_invariants(&operands, &shapes, &condition, &body))
    }

    /// Adds a loop. Values that the body returns unchanged, as JAX passes the constants of a loop, are captured instead of
    /// carried, and constants become part of the bodies.
    fn loop_without_invariants(
        &mut self,
        operands: &[ValueId],
        carried: &[Shape],
        condition: &Graph,
        body: &Graph,
    ) -> Vec<ValueId> {
        let varies = |j: &usize| *j < carried.len() && body.results()[*j] != body.parameters()[*j];
        let varying: Vec<usize> = (0..operands.len()).filter(varies).collect();
        let fixed: Vec<usize> = (0..operands.len()).filter(|j| !varies(j)).collect();
        let specialised = |outer: &Builder, graph: &Graph, results: &dyn Fn(&[ValueId]) -> Vec<ValueId>| {
            let mut inner = Builder::new();
            let mut arguments = vec![None; operands.len()];
            for j in varying.iter().chain(&fixed) {
                let known = outer.graph().constant(operands[*j]).filter(|_| fixed.contains(j));
                arguments[*j] = Some(match known {
                    Some(constant) => inner.constant(constant.clone()),
                    None => inner.parameter(outer.shape(operands[*j]).clone()),
                });
            }
            let arguments: Vec<ValueId> = arguments.into_iter().flatten().collect();
            let all = inner.inline(graph, &arguments);
            inner.finish(results(&all))
        };
        let condition = specialised(&self.b, condition, &<[ValueId]>::to_vec);
        let body = specialised(&self.b, body, &|all| varying.iter().map(|j| all[*j]).collect());
        let unknown = fixed.iter().filter(|j| self.b.graph().constant(operands[**j]).is_none());
        let inputs = varying.iter().chain(unknown).map(|j| operands[*j]).collect();
        let shapes = varying.iter().map(|j| carried[*j].clone()).collect();
        let core = Core::While(core_ops::While {
            carried: varying.len(),
            condition: Body::new(condition),
            body: Body::new(body),
        });
        let mut results = operands[..carried.len()].to_vec();
        for (j, r) in varying.iter().zip(self.b.node(core, inputs, shapes)) {
            results[*j] = r;
        }
        results
    }

    fn branches(&mut self, id: OpId, op: &'m Operation, index: ValueId) -> Result<Vec<ValueId>> {
        let blocks = (0..op.regions.len()).map(|r| self.region(id, r)).collect::<Result<Vec<_>>>()?;
        if let Some(known) = self.b.graph().constant(index).and_then(|c| c.as_integer()) {
            let last = blocks.len() - 1;
            let chosen = usize::try_from(known).map_or(last, |i| i.min(last));
            return self.block(blocks[chosen]);
        }
        let captures = self.captures(&blocks);
        let branches = blocks
            .iter()
            .map(|block| Ok(Body::new(self.body(block, &[], &captures)?)))
            .collect::<Result<Vec<_>>>()?;
        let first = &branches[0];
        let shapes: Vec<Shape> = first.results().iter().map(|r| first.shape(*r).clone()).collect();
        for branch in &branches {
            let got: Vec<&Shape> = branch.results().iter().map(|r| branch.shape(*r)).collect();
            if !got.iter().copied().eq(&shapes) {
                return Err(CompileError::invalid(format!(
                    "the branches return different types: {shapes:?} and {got:?}"
                )));
            }
        }
        let mut operands = vec![index];
        operands.extend(self.captured(&captures));
        Ok(self.b.node(Core::Case(core_ops::Case { branches }), operands, shapes))
    }

    /// Lowers a composite to its kernel, or else to its decomposition.
    fn composite(&mut self, op: &'m Operation, composite: &'m ops::Composite) -> Result<Vec<ValueId>> {
        let operands = self.flat(&op.operands)?;
        let real = operands.iter().all(|v| !self.b.shape(*v).dtype.is_complex());
        let kernel = COMPOSITE_KERNELS.iter().find(|(name, _)| **name == *composite.name);
        if let Some((_, tile)) = kernel.filter(|(_, tile)| real && tile.arity() == operands.len()) {
            let shape = self.result_shape(op)?;
            return Ok(vec![self.b.add(Core::Tile(*tile), &operands, shape)]);
        }
        if &*composite.name == TOP_K && real && operands.len() == 1 {
            let largest =
                composite.composite_attributes.get("largest").and_then(Attribute::as_bool).unwrap_or(true);
            let shapes = self.result_shapes(op)?;
            if shapes.len() == 2 && shapes[1].dtype == DType::S32 {
                return Ok(self.b.node(Core::TopK(core_ops::TopK { largest }), operands, shapes));
            }
        }
        self.call(&composite.decomposition, operands)
    }
}
