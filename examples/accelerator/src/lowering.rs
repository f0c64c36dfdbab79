//! The compiler: translates a function of StableHLO to commands of the device.

use std::collections::HashMap;

use pjrt_plugin::layout::dense_size;
use pjrt_plugin::{Error, Result};
use pjrt_stablehlo::ir::indexing::Windows;
use pjrt_stablehlo::ir::{self, Body, Function, Op, OpId, Operation, ValueId};

use crate::commands::{Block, Command, Kind, Location, Program, Value};
use crate::kernel::{Id, Kernel};
use crate::movement::{Axis, transposition};
use crate::operations::{check, is_elementwise, is_supported};
use crate::planner::plan;

/// The state of the translation.
pub(crate) struct Lowering<'a> {
    pub(crate) body: &'a Body,
    /// The values: first those of the function, with the same numbers, and then temporary ones.
    pub(crate) values: Vec<Value>,
    /// The operations that read each value.
    pub(crate) users: HashMap<ValueId, Vec<OpId>>,
    /// The kernels of elementwise operations that become part of the kernel of their only user.
    pub(crate) deferred: HashMap<ValueId, Kernel>,
    commands: Vec<Command>,
}

/// Compiles a function that contains only [`OPERATIONS`](crate::operations::OPERATIONS).
///
/// # Errors
///
/// Returns UNIMPLEMENTED if the device does not support an operation, with the operation, its types and its location in the user's
/// program. Returns RESOURCE_EXHAUSTED if an array does not fit into any memory.
pub(crate) fn lower(main: &Function) -> Result<Program> {
    let body = &main.body;
    body.all_ops().try_for_each(|(_, op)| check(body, op))?;
    let values = body.values().map(|(id, _)| value(body.ty(id))).collect::<Result<_>>()?;
    let mut users: HashMap<ValueId, Vec<OpId>> = HashMap::new();
    for (id, op) in body.all_ops() {
        op.operands.iter().for_each(|operand| users.entry(*operand).or_default().push(id));
    }
    let mut lowering = Lowering { body, values, users, deferred: HashMap::new(), commands: Vec::new() };
    let entry = match body.entry() {
        Some(entry) => lowering.block(body.block(entry))?,
        None => Block::default(),
    };
    plan(lowering.values, entry)
}

fn value(ty: &ir::Type) -> Result<Value> {
    let tensor = ty.as_tensor().filter(|tensor| is_supported(tensor.element_type()));
    let dims = tensor.and_then(|tensor| Some((tensor.element_type(), tensor.static_dims()?)));
    // `check` reports values of other types with their location, unless they are unused.
    let (ty, dims) = dims.ok_or_else(|| {
        Error::unimplemented(format!("the accelerator does not support values of type {ty}"))
    })?;
    array(ty, dims)
}

fn array(ty: ir::ElementType, dims: &[i64]) -> Result<Value> {
    dense_size(dims, ty.byte_width())?;
    Ok(Value { ty, dims: dims.into(), location: Location::None })
}

impl Lowering<'_> {
    /// Translates the operations of a block.
    fn block(&mut self, block: &ir::Block) -> Result<Block> {
        let outer = std::mem::take(&mut self.commands);
        let mut results = Vec::new();
        for id in &block.ops {
            let op = self.body.op(*id);
            match &op.kind {
                Op::FuncReturn(_) | Op::Return(_) => results = ids(&op.operands),
                _ => self.operation(*id, op)?,
            }
        }
        Ok(Block {
            arguments: ids(&block.arguments),
            commands: std::mem::replace(&mut self.commands, outer),
            results,
        })
    }

    fn operation(&mut self, id: OpId, op: &Operation) -> Result<()> {
        let mut reads = ids(&op.operands);
        let kind = match &op.kind {
            Op::Constant(constant) => Kind::Constant(constant.value.clone()),
            Op::Iota(iota) => Kind::Iota(iota.iota_dimension as usize),
            Op::Reshape(_) | Op::CustomCall(_) => Kind::Copy,
            Op::Concatenate(concatenate) => Kind::Join(concatenate.dimension as usize),
            Op::DynamicUpdateSlice(_) => Kind::Update,
            Op::If(_) => Kind::If,
            Op::While(_) => Kind::While,
            Op::Gather(gather) => Kind::Gather(Windows::of_gather(gather)),
            Op::Scatter(scatter) => {
                let kernel = self.region_kernel(id)?;
                reads.extend(&kernel.captured);
                let updates = self.dims(op.operands[op.results.len() + 1]);
                Kind::Scatter(Windows::of_scatter(scatter, &updates), kernel)
            }
            Op::DotGeneral(dot) => return self.dot_general(op, &dot.dot_dimension_numbers),
            Op::Convolution(convolution) => return self.convolution(op, convolution),
            Op::Reduce(reduce) => return self.reduce(id, op, &reduce.dimensions),
            Op::ReduceWindow(reduce) => return self.reduce_window(id, op, reduce),
            // The users of a broadcast scalar read the scalar.
            Op::BroadcastInDim(_) if self.is_scalar_for_kernels(op) => return Ok(()),
            _ if is_elementwise(&op.kind) => return self.elementwise(op),
            _ => Kind::Move { axes: self.axes(op)?, is_padded: matches!(op.kind, Op::Pad(_)) },
        };
        let body = self.body;
        let region =
            |index| body.region_block(op, index).ok_or_else(|| Error::internal("an operation has no region"));
        let count = if let Kind::If | Kind::While = kind { 2 } else { 0 };
        let blocks = (0..count).map(|index| self.block(region(index)?)).collect::<Result<_>>()?;
        let writes = op.results.map(ValueId::index).collect();
        self.commands.push(Command { kind, reads, blocks, writes });
        Ok(())
    }

    /// Returns the coordinates in the first operand of an operation that moves its elements.
    fn axes(&self, op: &Operation) -> Result<Vec<Axis>> {
        let dims = self.dims(op.operand(0));
        let each = |axis: &dyn Fn(usize) -> Axis| (0..dims.len()).map(axis).collect::<Vec<Axis>>();
        Ok(match &op.kind {
            Op::BroadcastInDim(broadcast) => each(&|d| match dims[d] {
                1 => Axis::sum([]),
                _ => Axis::along(broadcast.broadcast_dimensions[d] as usize),
            }),
            Op::Transpose(transpose) => transposition(&transpose.permutation),
            Op::Slice(slice) => each(&|d| Axis::sum([(d, slice.strides[d])]).offset(slice.start_indices[d])),
            Op::DynamicSlice(_) => each(&Axis::along),
            Op::Reverse(reverse) => each(&|d| match reverse.dimensions.contains(&(d as i64)) {
                true => Axis::sum([(d, -1)]).offset(dims[d] - 1),
                false => Axis::along(d),
            }),
            Op::Pad(pad) => {
                let step = |d: usize| pad.interior_padding[d].saturating_add(1);
                each(&|d| Axis::along(d).offset(pad.edge_padding_low[d].saturating_neg()).dilated(step(d)))
            }
            kind => {
                return Err(Error::internal(format!("the accelerator has no command for {}", kind.name())));
            }
        })
    }

    pub(crate) fn emit(&mut self, kind: Kind, reads: Vec<Id>, writes: Vec<Id>) {
        self.commands.push(Command { kind, reads, blocks: Vec::new(), writes });
    }

    /// Emits a movement to a temporary array of these dimensions. Elements out of bounds are `outside`, or zero.
    pub(crate) fn moved(
        &mut self,
        from: Id,
        axes: Vec<Axis>,
        dims: &[i64],
        outside: Option<Id>,
    ) -> Result<Id> {
        let to = self.temporary(self.values[from].ty, dims)?;
        let reads = [from].into_iter().chain(outside).collect();
        self.emit(Kind::Move { axes, is_padded: outside.is_some() }, reads, vec![to]);
        Ok(to)
    }

    pub(crate) fn temporary(&mut self, ty: ir::ElementType, dims: &[i64]) -> Result<Id> {
        self.values.push(array(ty, dims)?);
        Ok(self.values.len() - 1)
    }

    pub(crate) fn dims(&self, value: ValueId) -> Box<[i64]> {
        self.values[value.index()].dims.clone()
    }
}

pub(crate) fn ids(values: &[ValueId]) -> Vec<Id> {
    values.iter().map(|value| value.index()).collect()
}
