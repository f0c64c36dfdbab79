//! The compiler: translates a function of StableHLO to commands of the device.

use std::collections::HashMap;

use pjrt_plugin::{Error, Result};
use pjrt_stablehlo::ir::{self, Body, Function, Op, OpId, Operation, ValueId};

use crate::array::Rows;
use crate::commands::{Block, Command, Id, Location, Program, Value};
use crate::element_type::is_supported;
use crate::indexing::Windows;
use crate::kernel::Kernel;
use crate::movement::{Axis, transposition};
use crate::operations::{check, is_elementwise};
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
    let arguments = main.arguments().iter().map(|value| value.index()).collect();
    plan(Program { values: lowering.values, arguments, main: entry, scratch_size: 0 })
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
    let rows = Rows::of(dims, ty.byte_width()).ok_or_else(|| {
        let name = ty.name();
        Error::resource_exhausted(format!("the size of an array {name}{dims:?} overflows the address space"))
    })?;
    Ok(Value { ty, dims: dims.into(), rows, location: Location::None })
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
        let to = || op.results.map(ValueId::index).collect::<Vec<Id>>();
        let command = match &op.kind {
            Op::Constant(constant) => {
                Command::Constant { literal: constant.value.clone(), to: op.result().index() }
            }
            Op::Iota(iota) => {
                Command::Iota { dimension: iota.iota_dimension as usize, to: op.result().index() }
            }
            Op::Reshape(_) | Op::CustomCall(_) => {
                Command::Copy { from: op.operand(0).index(), to: op.result().index() }
            }
            Op::If(_) => {
                let branches = [self.region(id, 0)?, self.region(id, 1)?];
                Command::If { condition: op.operand(0).index(), branches, to: to() }
            }
            Op::While(_) => {
                let [condition, body] = [self.region(id, 0)?, self.region(id, 1)?];
                Command::While { init: ids(&op.operands), condition, body, to: to() }
            }
            Op::Gather(gather) => Command::Gather {
                from: op.operand(0).index(),
                indices: op.operand(1).index(),
                windows: Windows::of_gather(gather),
                to: op.result().index(),
            },
            Op::Scatter(scatter) => Command::Scatter {
                arrays: ids(op.operand_group(0)),
                indices: op.operand(op.operand_group(0).len()).index(),
                updates: ids(op.operand_group(2)),
                windows: Windows::of_scatter(scatter),
                kernel: self.region_kernel(id)?,
                to: to(),
            },
            Op::DotGeneral(dot) => return self.dot_general(op, &dot.dot_dimension_numbers),
            Op::Convolution(convolution) => return self.convolution(op, convolution),
            Op::Reduce(reduce) => return self.reduce(id, op, &reduce.dimensions),
            Op::ReduceWindow(reduce) => return self.reduce_window(id, op, reduce),
            _ if is_elementwise(&op.kind) => return self.elementwise(op),
            _ => return self.movement(op),
        };
        self.emit(command);
        Ok(())
    }

    fn region(&mut self, op: OpId, index: usize) -> Result<Block> {
        let block = self.body.region_block(op, index);
        self.block(block.ok_or_else(|| Error::internal("an operation has no region"))?)
    }

    /// Translates an operation that only moves elements.
    fn movement(&mut self, op: &Operation) -> Result<()> {
        let (to, from) = (op.result().index(), op.operand(0).index());
        let dims = self.values[from].dims.clone();
        let each = |axis: &dyn Fn(usize) -> Axis| (0..dims.len()).map(axis).collect::<Vec<Axis>>();
        let operands = |first: usize| ids(&op.operands[first..]);
        let (mut starts, mut outside) = (Vec::new(), None);
        let axes = match &op.kind {
            // The users of a broadcast scalar read the scalar.
            Op::BroadcastInDim(_) if self.is_scalar_for_kernels(op) => return Ok(()),
            Op::BroadcastInDim(broadcast) => each(&|d| match dims[d] {
                1 => Axis::sum([]),
                _ => Axis::along(broadcast.broadcast_dimensions[d] as usize),
            }),
            Op::Transpose(transpose) => transposition(&transpose.permutation),
            Op::Slice(slice) => each(&|d| Axis::sum([(d, slice.strides[d])]).offset(slice.start_indices[d])),
            Op::Reverse(reverse) => each(&|d| match reverse.dimensions.contains(&(d as i64)) {
                true => Axis::sum([(d, -1)]).offset(dims[d] - 1),
                false => Axis::along(d),
            }),
            Op::Pad(pad) => {
                outside = Some(op.operand(1).index());
                let step = |d: usize| pad.interior_padding[d].saturating_add(1);
                each(&|d| Axis::along(d).offset(pad.edge_padding_low[d].saturating_neg()).dilated(step(d)))
            }
            Op::DynamicSlice(_) => {
                starts = operands(1);
                each(&Axis::along)
            }
            Op::DynamicUpdateSlice(_) => {
                let blocks = vec![(op.operand(1).index(), vec![0; dims.len()])];
                self.emit(Command::Insert { base: Some(from), blocks, starts: operands(2), to });
                return Ok(());
            }
            Op::Concatenate(concatenate) => {
                let (along, mut start) = (concatenate.dimension as usize, vec![0; dims.len()]);
                let block = |part: &ValueId| {
                    let at = start.clone();
                    start[along] += self.values[part.index()].dims[along];
                    (part.index(), at)
                };
                let blocks = op.operands.iter().map(block).collect();
                self.emit(Command::Insert { base: None, blocks, starts: Vec::new(), to });
                return Ok(());
            }
            kind => {
                return Err(Error::internal(format!("the accelerator has no command for {}", kind.name())));
            }
        };
        self.emit(Command::Move { from, axes, starts, outside, to });
        Ok(())
    }

    pub(crate) fn emit(&mut self, command: Command) {
        self.commands.push(command);
    }

    /// Emits a movement to a temporary array of these dimensions.
    pub(crate) fn moved(
        &mut self,
        from: Id,
        axes: Vec<Axis>,
        dims: &[i64],
        outside: Option<Id>,
    ) -> Result<Id> {
        let to = self.temporary(self.values[from].ty, dims)?;
        self.emit(Command::Move { from, axes, starts: Vec::new(), outside, to });
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
