//! Replaces calls with the host's programs.

use crate::error::{Error, Result};
use crate::partition::without_shardings;
use pjrt_stablehlo::Module;
use pjrt_stablehlo::ir::{BlockId, Body, Function, Location, Op, OpId, Str, Type, ValueId, ops};
use std::collections::HashMap;

/// The replacement of a call.
pub(super) struct Partition {
    pub(super) module: Module,
    pub(super) computation: ops::ManualComputation,
}

/// Replaces a call with a manual computation whose body is the host's program.
pub(super) fn put(program: &mut Module, body: &mut Body, call: OpId, partition: Partition) -> Result<()> {
    let Partition { module, computation } = partition;
    let mut names: HashMap<Str, Str> = HashMap::new();
    for function in module.functions() {
        let new = (0..)
            .map(|n| format!("{}_of_partition_{n}", function.name))
            .find(|name| program.function(name).is_none());
        names.extend(new.map(|new| (function.name.clone(), new.as_str().into())));
    }
    for mesh in module.meshes() {
        match program.mesh(&mesh.name) {
            None => program.add_mesh(mesh.clone()),
            Some(other) if *other == mesh.mesh => {}
            Some(_) => {
                let why = format!(
                    "the mesh @{} in the host's program for this call differs from the mesh of that name in \
                     the program",
                    mesh.name
                );
                return Err(Error::unsupported(why));
            }
        }
    }
    for function in module.functions().iter().filter(|function| &*function.name != "main") {
        let mut function = function.clone();
        function.name = names[&function.name].clone();
        let ids: Vec<OpId> = function.body.all_ops().map(|(id, _)| id).collect();
        for id in ids {
            rename(&mut function.body.op_mut(id).kind, &names);
        }
        add_function(program, function)?;
    }
    let Some((main, entry)) = module.main().and_then(|main| Some((main, main.body.entry()?))) else {
        return Err(Error::invalid("the host's program for this call has no function named main"));
    };
    let op = body.op_mut(call);
    op.kind = Op::ManualComputation(computation);
    op.attributes = without_shardings(&op.attributes);
    let location = op.location.clone();
    let region = body.add_region(Some(call));
    let to = body.add_block(region);
    let mut copy = Copy { from: &main.body, into: body, values: HashMap::new(), names: &names, location };
    copy.block(entry, to)
}

pub(super) fn add_function(program: &mut Module, function: Function) -> Result<()> {
    program
        .add_function(function)
        .map_err(|function| Error::internal(format!("two functions are named @{}", function.name)))
}

/// Replaces the names of functions that an operation refers to.
fn rename(kind: &mut Op, names: &HashMap<Str, Str>) {
    let new = |name: &mut Str| {
        if let Some(new) = names.get(name) {
            *name = new.clone();
        }
    };
    match kind {
        Op::CustomCall(call) => call.called_computations.iter_mut().for_each(new),
        Op::Composite(composite) => new(&mut composite.decomposition),
        Op::FuncCall(call) => new(&mut call.callee),
        _ => {}
    }
}

/// Copies operations from one function into another.
struct Copy<'a> {
    from: &'a Body,
    into: &'a mut Body,
    values: HashMap<ValueId, ValueId>,
    names: &'a HashMap<Str, Str>,
    /// The location of copied operations that have none.
    location: Location,
}

impl Copy<'_> {
    fn block(&mut self, block: BlockId, to: BlockId) -> Result<()> {
        for argument in &self.from.block(block).arguments {
            let new = self.into.add_argument(to, self.from.ty(*argument).clone());
            self.values.insert(*argument, new);
        }
        for id in &self.from.block(block).ops {
            let op = self.from.op(*id);
            let mut kind = match &op.kind {
                Op::FuncReturn(_) => Op::SdyReturn(ops::SdyReturn {}),
                kind => kind.clone(),
            };
            rename(&mut kind, self.names);
            let operand = |value: &ValueId| self.values.get(value).copied();
            let operands: Option<Vec<ValueId>> = op.operands.iter().map(operand).collect();
            let operands =
                operands.ok_or_else(|| Error::internal("a value is used before its definition"))?;
            let types: Vec<Type> = op.results.iter().map(|result| self.from.ty(result).clone()).collect();
            let location = if op.location.is_unknown() { &self.location } else { &op.location };
            let new = self.into.add_op(to, kind, operands, types, location.clone());
            self.into.op_mut(new).attributes = op.attributes.clone();
            self.values.extend(op.results.iter().zip(self.into.op(new).results));
            for region in &op.regions {
                let into = self.into.add_region(Some(new));
                for block in &self.from.region(*region).blocks {
                    let to = self.into.add_block(into);
                    self.block(*block, to)?;
                }
            }
        }
        Ok(())
    }
}
