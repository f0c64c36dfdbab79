//! The partitioner: rewrites a program on whole arrays as the program of one partition, on parts of the arrays.
//!
//! [`propagate`](crate::propagate()) has derived the shardings of the arrays. The [rule](crate::rule) of an operation states
//! which dimensions of its arrays are split together; the operands are moved to the layouts that it requires ([`reshard`]) by
//! collective operations. Partial results are kept ([`Layout::partial`]) until an operation needs their
//! reduction. An operation without a
//! rule runs on whole arrays on every partition, so that any program can be partitioned, regardless of its shardings.

mod by_rule;
mod commute;
mod control;
mod emit;
mod manual;
mod reshard;
mod special;
mod uneven;

use crate::devices::Devices;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::options::Options;
use crate::propagate::Shardings;
use crate::rule::shapes;
use crate::sharding::Sharding;
use emit::Emitter;
pub(crate) use emit::{ints, not_built, padded, trimmed};
use pjrt_stablehlo::Module;
use pjrt_stablehlo::ir::{
    Attribute, BlockId, Body, DictionaryAttribute, Function, Op, OpId, Operation, Str, Trait, Type, ValueId,
};
use std::collections::{HashMap, HashSet};

/// Rewrites a program with these shardings as the program of one partition. Its parameters and results are the parts that the
/// shardings describe. The shardings themselves are written to HLO's attributes (`mhlo.sharding`).
///
/// ```
/// use pjrt_sharding::{Options, partition, propagate};
///
/// let module = pjrt_stablehlo::parse(
///     r#"sdy.mesh @mesh = <["x"=2]>
///     func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<f32> {
///       %zero = stablehlo.constant dense<0.0> : tensor<f32>
///       %0 = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0]
///         : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
///       return %0 : tensor<f32>
///     }"#,
/// )?;
/// let options = Options { num_partitions: 2, ..Options::default() };
/// let part = partition(&module, &propagate(&module, &options)?, &options)?;
/// assert_eq!(part.main().unwrap().argument_types()[0].to_string(), "tensor<4xf32>");
/// assert_eq!(part.op_counts()["stablehlo.all_reduce"], 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Returns [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) if the module has no function `main`, or if a sharding does not
/// fit its array; or [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if `main` has tuples among its parameters or
/// results, if the numbers of parameters and results are not those of `shardings`, if the program contains calls, or if an
/// operation cannot be partitioned.
pub fn partition(module: &Module, shardings: &Shardings, options: &Options) -> Result<Module> {
    let main = module.main().ok_or_else(|| Error::invalid("the module has no function named main"))?;
    let counts = (main.argument_types().len(), main.result_types().len());
    if counts != (shardings.parameters.len(), shardings.results.len()) {
        return Err(Error::unsupported(format!(
            "the function main has {} parameters and {} results, but there are shardings of {} and {}; tuples among them \
             cannot be partitioned",
            counts.0,
            counts.1,
            shardings.parameters.len(),
            shardings.results.len()
        )));
    }
    let partitions = options.num_partitions;
    let array = if options.use_spmd_partitioning { vec![0; partitions] } else { (0..partitions).collect() };
    let devices = Devices { array, replicas: options.num_replicas };
    let layouts = |shardings: &[Option<Sharding>], types: &[Type]| -> Vec<Layout> {
        shardings.iter().zip(types).map(|(sharding, ty)| Layout::of(sharding.as_ref(), rank(ty))).collect()
    };
    let parameters = layouts(&shardings.parameters, main.argument_types());
    let results = layouts(&shardings.results, main.result_types());
    let mut partitioner = Partitioner::new(module, main, devices, shardings, options);
    let mut function = partitioner.function(main.name.clone(), &parameters, &results)?;
    let said = |attributes: &[DictionaryAttribute], shardings: &[Option<Sharding>]| {
        let one = |(i, sharding): (usize, &Option<Sharding>)| {
            let attributes = attributes.get(i).cloned().unwrap_or_default();
            if options.shared_by() > 1 {
                with_sharding(&attributes, Sharding::to_hlo_text(sharding.as_ref()))
            } else {
                without_shardings(&attributes)
            }
        };
        shardings.iter().enumerate().map(one).collect()
    };
    function.argument_attributes = said(&main.argument_attributes, &shardings.parameters);
    function.result_attributes = said(&main.result_attributes, &shardings.results);
    let mut program = Module::new();
    program.name.clone_from(&module.name);
    program.attributes = without_shardings(&module.attributes);
    if options.shared_by() > 1 {
        program.attributes = with_shardings_of_all(&program.attributes, shardings);
    }
    for mut function in [function].into_iter().chain(partitioner.functions) {
        list_groups(module, &mut function.body)?;
        program
            .add_function(function)
            .map_err(|function| Error::internal(format!("two functions are named @{}", function.name)))?;
    }
    Ok(program)
}

/// Replaces groups of collectives that refer to axes of a mesh with lists of devices, since the program of one partition has no
/// mesh.
fn list_groups(module: &Module, body: &mut Body) -> Result<()> {
    let ops: Vec<OpId> = body.all_ops().map(|(id, _)| id).collect();
    for op in ops {
        if let Some(groups) = body.op_mut(op).kind.replica_groups_mut() {
            *groups = groups.listed(module).map_err(|error| Error::invalid(error.message))?;
        }
    }
    Ok(())
}

/// Returns the dimensions of a tensor; `None` if the value is not a tensor of static shape.
pub(crate) fn dims(body: &Body, value: ValueId) -> Option<Vec<usize>> {
    body.ty(value).as_tensor()?;
    shapes(body, [value].into_iter())?.pop()
}

fn rank(ty: &Type) -> usize {
    ty.as_tensor().map_or(0, |tensor| tensor.rank())
}

/// The attribute that contains a sharding in HLO's text form.
const SHARDING: &str = "mhlo.sharding";

/// Returns the attributes without those that state shardings.
pub(crate) fn without_shardings(attributes: &DictionaryAttribute) -> DictionaryAttribute {
    let kept =
        attributes.entries().iter().filter(|(name, _)| !name.starts_with("sdy.") && **name != *SHARDING);
    DictionaryAttribute::new(kept.cloned().collect())
}

fn with_sharding(attributes: &DictionaryAttribute, text: String) -> DictionaryAttribute {
    let kept = without_shardings(attributes);
    let said = (SHARDING.into(), Attribute::String(text.as_str().into()));
    DictionaryAttribute::new(kept.entries().iter().cloned().chain([said]).collect())
}

/// Adds the shardings of parameters and results to the attributes of a module, which is where older hosts read them.
fn with_shardings_of_all(attributes: &DictionaryAttribute, shardings: &Shardings) -> DictionaryAttribute {
    let texts = |shardings: &[Option<Sharding>]| -> Vec<String> {
        shardings.iter().map(|sharding| Sharding::to_hlo_text(sharding.as_ref())).collect()
    };
    let string = |text: &str| Attribute::String(text.into());
    let result = match &*texts(&shardings.results) {
        [one] => one.clone(),
        // Hosts expect one sharding for the empty tuple of results.
        [] => Sharding::to_hlo_text(None),
        several => format!("{{{}}}", several.join(", ")),
    };
    let parameters: Vec<Attribute> = texts(&shardings.parameters).iter().map(|text| string(text)).collect();
    let said = [
        ("mhlo.spmd_output_sharding".into(), string(&result)),
        ("mhlo.spmd_parameters_shardings".into(), Attribute::Array(parameters.into())),
    ];
    DictionaryAttribute::new(attributes.entries().iter().cloned().chain(said).collect())
}

/// The part of a value of the whole program that a partition holds.
#[derive(Clone, Debug)]
struct Part {
    /// The value in the partitioned program.
    value: ValueId,
    layout: Layout,
}

/// The state of partitioning one function.
struct Partitioner<'m> {
    module: &'m Module,
    /// The function of the whole program.
    function: &'m Function,
    /// The derived layouts of its values.
    shardings: &'m Shardings,
    options: &'m Options,
    emit: Emitter,
    /// The parts of the values computed so far.
    parts: HashMap<ValueId, Part>,
    /// The results of asynchronous operations, by their futures.
    futures: HashMap<ValueId, Vec<Part>>,
    /// Values that were moved to another layout, by value and layout, for each enclosing block.
    moved: Vec<HashMap<(ValueId, Layout), ValueId>>,
    /// The functions that the partitioned function refers to.
    functions: Vec<Function>,
}

impl<'m> Partitioner<'m> {
    fn new(
        module: &'m Module,
        function: &'m Function,
        devices: Devices,
        shardings: &'m Shardings,
        options: &'m Options,
    ) -> Self {
        Self {
            module,
            function,
            shardings,
            options,
            emit: Emitter::new(devices),
            parts: HashMap::new(),
            futures: HashMap::new(),
            moved: vec![HashMap::new()],
            functions: vec![],
        }
    }

    /// Partitions the function for parameters and results of these layouts. The caller sets the attributes.
    fn function(&mut self, name: Str, parameters: &[Layout], results: &[Layout]) -> Result<Function> {
        let old = self.function;
        let entry = old.body.entry();
        let entry = entry.ok_or_else(|| Error::invalid(format!("the function @{} has no body", old.name)))?;
        for (value, layout) in old.body.block(entry).arguments.iter().zip(parameters) {
            self.parameter(*value, layout)?;
        }
        let returned = self.block(entry)?.into_iter().zip(results);
        let returned = returned.map(|(value, to)| self.result(value, to)).collect::<Result<Vec<_>>>()?;
        let function = self.emit.finish(name, &returned)?;
        Ok(Function {
            visibility: old.visibility,
            attributes: without_shardings(&old.attributes),
            location: old.location.clone(),
            ..function
        })
    }

    /// Adds arguments to the current block: the parts of these values.
    fn arguments(&mut self, values: &[ValueId], layouts: &[Layout]) -> Result<()> {
        for (value, layout) in values.iter().zip(layouts) {
            let ty = self.local_type(*value, layout)?;
            let block = self.emit.builder.block();
            let argument = self.emit.builder.body_mut().add_argument(block, ty);
            self.parts.insert(*value, Part { value: argument, layout: layout.clone() });
        }
        Ok(())
    }

    /// Partitions the operations of a block of the whole program. Returns the operands of its terminator in the whole program.
    fn block(&mut self, block: BlockId) -> Result<Vec<ValueId>> {
        let function = self.function;
        let ops = &function.body.block(block).ops;
        for (i, id) in ops.iter().enumerate() {
            let op = function.body.op(*id);
            if op.info().has(Trait::Terminator) {
                return Ok(op.operands.to_vec());
            }
            self.emit.builder.set_location(op.location.clone());
            self.reduce_together(&ops[i..])?;
            let done = self.operation(*id, op);
            // An error of the builder is the cause of those that follow from it.
            self.emit.check().and(done).map_err(|error| error.in_op(op.kind.name(), &op.location))?;
        }
        Ok(vec![])
    }

    fn operation(&mut self, id: OpId, op: &'m Operation) -> Result<()> {
        match &op.kind {
            Op::ShardingConstraint(o) => self.constraint(op, &o.sharding),
            Op::Reshard(o) => self.constraint(op, &o.sharding),
            Op::ShardingGroup(_) => Ok(()),
            Op::ManualComputation(o) => self.manual(id, op, o),
            Op::While(_) => self.while_loop(id, op),
            Op::Case(_) | Op::If(_) => self.branches(id, op),
            Op::AsyncStart(_) => self.async_start(id, op),
            Op::AsyncDone(_) => self.async_done(op),
            Op::Iota(o) => self.iota(op, o),
            Op::Constant(o) => self.constant(op, o),
            Op::Rng(_) => self.random(op),
            Op::CustomCall(o) => self.custom_call(op, o),
            Op::Send(_) | Op::Recv(_) => self.on_stated_partition(op),
            Op::FuncCall(o) => {
                let why =
                    format!("the program calls @{}; calls must be inlined before partitioning", o.callee);
                Err(Error::unsupported(why))
            }
            _ => self.by_rule(op),
        }
    }

    fn part(&self, value: ValueId) -> Result<Part> {
        let part = self.parts.get(&value).cloned();
        part.ok_or_else(|| Error::internal("a value is used before its definition"))
    }

    /// Returns the parts of a value in this layout, moving them if necessary.
    fn moved(&mut self, value: ValueId, to: &Layout) -> Result<ValueId> {
        let part = self.part(value)?;
        self.moved_part(&part, to)
    }

    /// Returns the parts of several values in these layouts.
    fn moved_all(&mut self, values: &[ValueId], to: &[Layout]) -> Result<Vec<ValueId>> {
        values.iter().zip(to).map(|(value, to)| self.moved(*value, to)).collect()
    }

    fn moved_part(&mut self, part: &Part, to: &Layout) -> Result<ValueId> {
        if part.layout == *to {
            return Ok(part.value);
        }
        let key = (part.value, to.clone());
        if let Some(found) = self.moved.iter().rev().find_map(|moved| moved.get(&key)) {
            return Ok(*found);
        }
        let mut from = part.clone();
        if let Some(step) = from.layout.reduce_step(to) {
            // Moving the reduced value separately lets later uses find it.
            let reduced = Layout { partial: step.left, ..from.layout.clone() };
            if step.scatter.is_none() && reduced != *to {
                from = Part { value: self.moved_part(&from, &reduced)?, layout: reduced };
            }
        }
        let value = self.emit.reshard(from.value, &from.layout, to)?;
        self.moved.last_mut().expect("a function has a block").insert(key, value);
        Ok(value)
    }

    /// Returns a value as the whole array on every partition.
    fn whole(&mut self, value: ValueId) -> Result<ValueId> {
        let rank = self.part(value)?.layout.dims.len();
        self.moved(value, &Layout::whole(rank))
    }

    /// Records the parts of an operation's results.
    fn bind(&mut self, op: &Operation, parts: impl IntoIterator<Item = Part>) {
        self.parts.extend(op.results.zip(parts));
    }

    /// Returns the dimensions of a value of the whole program; `None` if it is not a tensor of static shape.
    fn dims(&self, value: ValueId) -> Option<Vec<usize>> {
        dims(&self.function.body, value)
    }

    /// Returns the type of one partition's part of a value.
    fn local_type(&self, value: ValueId, layout: &Layout) -> Result<Type> {
        let ty = self.function.body.ty(value);
        let (Some(tensor), Some(dims)) = (ty.as_tensor(), self.dims(value)) else { return Ok(ty.clone()) };
        let local = layout.local_dims(&dims).filter(|_| layout.dims.len() == dims.len());
        let local = local.ok_or_else(|| Error::internal(format!("{ty} cannot be split as {layout:?}")))?;
        Ok(tensor.with_dims(ints(&local)).into())
    }

    /// Returns the derived layout of a value; `None` if there is none, or if the value cannot have it.
    fn hint(&self, value: ValueId) -> Option<Layout> {
        let dims = self.dims(value)?;
        let layout = self.shardings.values.get(&value)?.clone();
        let cuts: Vec<_> = layout.cuts().collect();
        (layout.local_dims(&dims).is_some() && self.emit.devices.spread_evenly(&cuts)).then_some(layout)
    }

    /// Runs an operation on whole arrays.
    fn on_whole_arrays(&mut self, op: &'m Operation) -> Result<Vec<ValueId>> {
        let operands = op.operands.iter().map(|value| self.whole(*value)).collect::<Result<Vec<_>>>()?;
        let types: Vec<Type> = op.results.map(|result| self.function.body.ty(result).clone()).collect();
        let results = self.copy(op, op.kind.clone(), &operands, types)?;
        let parts: Vec<Part> = (op.results.zip(&results))
            .map(|(old, value)| Part {
                value: *value,
                layout: Layout::whole(rank(self.function.body.ty(old))),
            })
            .collect();
        self.bind(op, parts);
        Ok(results)
    }

    /// Adds an operation with the regions and remaining attributes of an operation of the whole program.
    fn copy(
        &mut self,
        op: &'m Operation,
        kind: Op,
        operands: &[ValueId],
        types: Vec<Type>,
    ) -> Result<Vec<ValueId>> {
        let mut values = HashMap::new();
        for value in self.captures(op) {
            values.insert(value, self.whole(value)?);
        }
        self.keep_functions(&kind);
        let new = self.add_like(op, kind, operands, types);
        self.copy_regions(op, new, &mut values);
        Ok(self.emit.builder.all_results(new))
    }

    /// Adds an operation with the attributes of the current one of the whole program, except those about shardings.
    fn add_like(&mut self, op: &Operation, kind: Op, operands: &[ValueId], types: Vec<Type>) -> OpId {
        let new = self.emit.builder.add_op(kind, operands, types);
        self.emit.builder.body_mut().op_mut(new).attributes = without_shardings(&op.attributes);
        new
    }

    /// Returns the values from outside that the regions of an operation use.
    fn captures(&self, op: &Operation) -> Vec<ValueId> {
        let body = &self.function.body;
        let (mut found, mut seen) = (vec![], HashSet::new());
        let mut work = op.regions.clone();
        while let Some(region) = work.pop() {
            for id in body.region(region).blocks.iter().flat_map(|block| &body.block(*block).ops) {
                let op = body.op(*id);
                work.extend(&op.regions);
                let outer = op.operands.iter().filter(|value| self.parts.contains_key(value));
                found.extend(outer.copied().filter(|value| seen.insert(*value)));
            }
        }
        found.sort_unstable();
        found
    }

    fn copy_regions(&mut self, op: &Operation, new: OpId, values: &mut HashMap<ValueId, ValueId>) {
        let body = &self.function.body;
        for region in &op.regions {
            let into = self.emit.builder.body_mut().add_region(Some(new));
            for block in &body.region(*region).blocks {
                let to = self.emit.builder.body_mut().add_block(into);
                for argument in &body.block(*block).arguments {
                    let new = self.emit.builder.body_mut().add_argument(to, body.ty(*argument).clone());
                    values.insert(*argument, new);
                }
                for id in &body.block(*block).ops {
                    let op = body.op(*id);
                    if matches!(op.kind, Op::ShardingConstraint(_) | Op::Reshard(_) | Op::ShardingGroup(_)) {
                        // The operation applies to whole arrays, and the program of one partition has no mesh.
                        let same = op.results.zip(&op.operands);
                        let same: Vec<_> =
                            same.filter_map(|(new, old)| Some((new, *values.get(old)?))).collect();
                        values.extend(same);
                        continue;
                    }
                    let operands: Vec<ValueId> =
                        op.operands.iter().filter_map(|value| values.get(value).copied()).collect();
                    let types: Vec<Type> = op.results.map(|result| body.ty(result).clone()).collect();
                    let copy = self.emit.builder.body_mut();
                    let new = copy.add_op(to, op.kind.clone(), operands, types, op.location.clone());
                    copy.op_mut(new).attributes = without_shardings(&op.attributes);
                    values.extend(op.results.zip(copy.op(new).results));
                    self.copy_regions(op, new, values);
                }
            }
        }
    }

    /// Copies the functions that an operation refers to.
    fn keep_functions(&mut self, kind: &Op) {
        let names: Vec<Str> = match kind {
            Op::CustomCall(call) => call.called_computations.to_vec(),
            Op::Composite(composite) => vec![composite.decomposition.clone()],
            _ => vec![],
        };
        for name in names {
            if self.functions.iter().all(|function| function.name != name) {
                self.functions.extend(self.module.function(&name).cloned());
            }
        }
    }
}
