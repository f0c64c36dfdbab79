//! Reads the instructions of functions, those of computations that become regions in their place.

use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;

use prost::Message;

use super::computations::{Computations, local_id, malformed};
use super::instruction::{Instruction, Value, error_in};
use super::locations::Locations;
use super::shape::Shape;
use super::{proto, sharding};
use crate::build::Builder;
use crate::ir::{
    Attribute, BlockId, DictionaryAttribute, Function, FunctionType, OpId, Str, Type, ValueId, Visibility,
    ops,
};
use crate::limits::{
    ATTRIBUTE_NUMBERS_BASE, ATTRIBUTE_NUMBERS_PER_BYTE, EXPANSION_BASE, EXPANSION_PER_BYTE, MAX_REGION_DEPTH,
};
use crate::{Error, ErrorKind};

/// Reads functions of one module.
pub(super) struct Reader {
    pub(super) computations: Computations,
    pub(super) locations: Locations,
    /// The body that is being read, and the place in it.
    pub(super) code: Builder,
    /// Computations that are being read, from the function's own to the innermost.
    frames: Vec<Frame>,
    /// The frame whose instruction is being read; above it are those of the instruction's regions.
    current: usize,
    /// Functions that computations became: their names.
    functions: HashMap<usize, Str>,
    /// Computations that are to become functions.
    pending: VecDeque<usize>,
    /// Names of functions.
    names: HashSet<Str>,
    /// Decompositions by what they are of.
    pub(super) decompositions: HashMap<String, Str>,
    /// Decompositions that are to be added to the module.
    pub(super) additions: Vec<Function>,
    /// The sharding of the last function's result.
    pub(super) root_sharding: Option<proto::Sharding>,
    /// Operations and values that may still be added.
    expansion: usize,
    /// Numbers that attributes may still have beyond those in the program.
    numbers: usize,
}

/// A computation that is being read.
struct Frame {
    computation: usize,
    /// Regions around it.
    depth: usize,
    next: usize,
    block: BlockId,
    parameters: Vec<Rc<Value>>,
    values: HashMap<u32, Rc<Value>>,
}

impl Reader {
    pub(super) fn new(computations: Computations, locations: Locations, program_len: usize) -> Self {
        Reader {
            computations,
            locations,
            code: Builder::default(),
            frames: Vec::new(),
            current: 0,
            functions: HashMap::new(),
            pending: VecDeque::new(),
            names: HashSet::new(),
            decompositions: HashMap::new(),
            additions: Vec::new(),
            root_sharding: None,
            expansion: program_len.saturating_mul(EXPANSION_PER_BYTE).saturating_add(EXPANSION_BASE),
            numbers: program_len
                .saturating_mul(ATTRIBUTE_NUMBERS_PER_BYTE)
                .saturating_add(ATTRIBUTE_NUMBERS_BASE),
        }
    }

    /// The name of the function that a computation becomes.
    pub(super) fn function(&mut self, computation: usize) -> Str {
        if let Some(name) = self.functions.get(&computation) {
            return name.clone();
        }
        let wanted = self.computations.get(computation).name.clone();
        let name = self.unique_name(if wanted.is_empty() { "computation" } else { &wanted });
        self.functions.insert(computation, name.clone());
        self.pending.push_back(computation);
        name
    }

    /// Makes a computation the function of this name.
    pub(super) fn name_function(&mut self, computation: usize, name: &str) {
        self.names.insert(name.into());
        self.functions.insert(computation, name.into());
    }

    /// A name that no function has.
    pub(super) fn unique_name(&mut self, wanted: &str) -> Str {
        let mut name: Str = wanted.into();
        let mut number = 0;
        while !self.names.insert(name.clone()) {
            name = format!("{wanted}_{number}").into();
            number += 1;
        }
        name
    }

    /// Reads the functions that others call, until there are no more; decompositions come last.
    pub(super) fn called_functions(&mut self) -> Result<Vec<Function>, Error> {
        let mut functions = Vec::new();
        while let Some(computation) = self.pending.pop_front() {
            let mut function = self.read_function(computation)?.0;
            function.visibility = Some(Visibility::Private);
            functions.push(function);
        }
        functions.append(&mut self.additions);
        Ok(functions)
    }

    /// Reads a computation as a function. Gives the shape of its result too.
    pub(super) fn read_function(&mut self, computation: usize) -> Result<(Function, Shape), Error> {
        let name = self.function(computation);
        let parameters = self.computations.parameters(computation)?;
        let inputs: Vec<Type> = parameters.iter().flat_map(|parameter| parameter.shape.leaves()).collect();
        self.code = Builder::new(inputs.iter().cloned());
        let block = self.code.block();
        let shapes: Vec<Shape> = parameters.iter().map(|parameter| parameter.shape.clone()).collect();
        let mut place = 0;
        for parameter in parameters.iter() {
            let location = self.locations.location("", parameter.metadata.as_ref());
            for _ in 0..parameter.shape.leaf_count() {
                let argument = self.code.body.block(block).arguments[place];
                self.code.body.set_argument_location(argument, location.clone());
                place += 1;
            }
        }
        let arguments = self.code.arguments();
        self.push_frame(computation, block, 0, grouped(shapes, &arguments))?;
        let root = self.run()?;
        let results: Vec<Type> = root.shape.leaves();
        self.expansion = self.expansion.saturating_sub(self.expanded());
        let function = Function {
            name,
            ty: FunctionType { inputs, results },
            body: std::mem::take(&mut self.code).into_body()?,
            ..Function::default()
        };
        Ok((function, root.shape.clone()))
    }

    fn push_frame(
        &mut self,
        computation: usize,
        block: BlockId,
        depth: usize,
        parameters: Vec<Rc<Value>>,
    ) -> Result<(), Error> {
        if depth > MAX_REGION_DEPTH {
            let message = format!("regions nest deeper than {MAX_REGION_DEPTH}");
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        self.frames.push(Frame { computation, depth, next: 0, block, parameters, values: HashMap::new() });
        Ok(())
    }

    /// Reads the computations on the stack; gives the result of the first.
    fn run(&mut self) -> Result<Rc<Value>, Error> {
        while let Some(frame) = self.frames.last_mut() {
            let computation = self.computations.get(frame.computation);
            let computation_root = computation.root;
            self.code.set_block(frame.block);
            if let Some(bytes) = computation.instructions.get(frame.next).cloned() {
                frame.next += 1;
                self.current = self.frames.len() - 1;
                let instruction = self.instruction(bytes)?;
                let id = local_id(instruction.proto.id);
                if self.current == 0 && id == computation_root {
                    self.root_sharding.clone_from(&instruction.proto.sharding);
                }
                let value = self.read_instruction(&instruction)?;
                self.code.check().map_err(|error| instruction.placed(error))?;
                self.check_expansion().map_err(|error| instruction.placed(error))?;
                if self.frames[self.current].values.insert(id, Rc::new(value)).is_some() {
                    return Err(
                        instruction.error(ErrorKind::Malformed, "another instruction has the same id")
                    );
                }
                continue;
            }
            let Some(root) = frame.values.get(&computation.root).cloned() else {
                let message =
                    format!("computation '{}' has no instruction that is its root", computation.name);
                return Err(Error::new(ErrorKind::Malformed, message));
            };
            self.frames.pop();
            self.code.location = crate::ir::Location::UNKNOWN;
            if self.frames.is_empty() {
                self.code.add_op(ops::FuncReturn {}, &root.leaves, []);
                return Ok(root);
            }
            self.code.add_op(ops::Return {}, &root.leaves, []);
        }
        unreachable!("the frame of the function is popped last, and gives its result")
    }

    /// Decodes an instruction and finds its operands.
    fn instruction(&mut self, bytes: prost::bytes::Bytes) -> Result<Instruction, Error> {
        let frame = &self.frames[self.current];
        let computation = self.computations.get(frame.computation);
        let proto = proto::Instruction::decode(bytes).map_err(|error| {
            malformed(&format!("instruction {} of '{}'", frame.next - 1, computation.name), &error)
        })?;
        let location = self.locations.location(&proto.name, proto.metadata.as_ref());
        let error = |message: String| error_in(&proto, &location, ErrorKind::Malformed, message);
        let shape = proto.shape.as_ref().ok_or_else(|| error("lacks a shape".to_owned()))?;
        let shape = Shape::read(shape)
            .map_err(|error| error.in_op(format!("{} '{}'", proto.opcode, proto.name), &location))?;
        let operands = proto.operand_ids.iter().map(|&id| {
            frame.values.get(&local_id(id)).cloned().ok_or_else(|| {
                error(format!(
                    "its operand with the id {id} is not an instruction of '{}' before it",
                    computation.name
                ))
            })
        });
        let operands = operands.collect::<Result<_, _>>()?;
        Ok(Instruction { shape, operands, location, computation: frame.computation, proto })
    }

    /// Adds what an instruction stands for and gives its value.
    fn read_instruction(&mut self, at: &Instruction) -> Result<Value, Error> {
        self.code.location = at.location.clone();
        let before = self.code.body.num_ops();
        let leaves = match &*at.proto.opcode {
            "parameter" => {
                let number = usize::try_from(at.proto.parameter_number).ok();
                let frame = &self.frames[self.current];
                let parameter = number.and_then(|number| frame.parameters.get(number));
                let parameter = parameter.ok_or_else(|| {
                    at.invalid(format!(
                        "parameter {} of {} that are passed",
                        at.proto.parameter_number,
                        frame.parameters.len()
                    ))
                })?;
                parameter.leaves.clone()
            }
            _ => self.leaves_of(at)?,
        };
        self.attach_attributes(at, before)?;
        // What an asynchronous operation gives is there from its start.
        if is_start(&at.proto.opcode) {
            let pending = Shape::tuple(
                leaves.iter().map(|&leaf| Shape::Leaf(self.code.body.ty(leaf).clone())).collect(),
            );
            return Ok(Value::new(pending, leaves));
        }
        let declared = at.shape.leaves();
        let found: Vec<&Type> = leaves.iter().map(|&leaf| self.code.body.ty(leaf)).collect();
        if !declared.iter().eq(found.iter().copied()) {
            let list = |types: &[String]| types.join(", ");
            let declared: Vec<String> = declared.iter().map(Type::to_string).collect();
            let found: Vec<String> = found.iter().map(|ty| ty.to_string()).collect();
            return Err(at.invalid(format!(
                "its shape is ({}), its value is ({})",
                list(&declared),
                list(&found)
            )));
        }
        Ok(Value { shape: at.shape.clone(), leaves, order: at.order()? })
    }

    /// Attributes of an instruction go to the last operation that it became.
    fn attach_attributes(&mut self, at: &Instruction, before: usize) -> Result<(), Error> {
        let attributes = self.attributes(
            at.proto.sharding.as_ref(),
            at.proto.frontend_attributes.as_ref().filter(|_| !at.proto.is_composite),
        );
        let attributes = attributes.map_err(|error| at.placed(error))?;
        let block = self.frames[self.current].block;
        let last = self.code.body.block(block).ops.last().copied();
        if let Some(op) = last.filter(|op| op.index() >= before && !attributes.is_empty()) {
            self.code.body.op_mut(op).attributes = DictionaryAttribute::new(attributes);
        }
        Ok(())
    }

    /// The discardable attributes for a sharding and the attributes of a framework.
    pub(super) fn attributes(
        &mut self,
        sharding: Option<&proto::Sharding>,
        frontend: Option<&proto::FrontendAttributes>,
    ) -> Result<Vec<(Str, Attribute)>, Error> {
        let mut attributes = Vec::new();
        if let Some(sharding) = sharding {
            attributes.push(sharding::attribute(sharding)?);
        }
        attributes.extend(frontend.and_then(frontend_attributes));
        Ok(attributes)
    }

    /// Operations and values of the body so far.
    fn expanded(&self) -> usize {
        self.code.body.num_ops() + self.code.body.num_values()
    }

    /// Fails when the body has more operations and values than may still be added.
    fn check_expansion(&self) -> Result<(), Error> {
        if self.expanded() <= self.expansion {
            return Ok(());
        }
        let message = "computations that are shared by operations become more operations than is supported";
        Err(Error::new(ErrorKind::TooLarge, message))
    }

    /// Takes numbers of attributes from those that attributes may have.
    pub(super) fn spend_numbers(&mut self, count: usize) -> Result<(), Error> {
        self.numbers = self.numbers.checked_sub(count).ok_or_else(|| {
            Error::new(ErrorKind::TooLarge, "the program's attributes have more numbers than is supported")
        })?;
        Ok(())
    }

    /// The computation that an instruction calls.
    pub(super) fn called(&self, at: &Instruction, index: usize) -> Result<usize, Error> {
        let ids = &at.proto.called_computation_ids;
        let id = ids.get(index).ok_or_else(|| {
            at.invalid(format!("expected at least {} called computations, found {}", index + 1, ids.len()))
        })?;
        let position = self.computations.position(*id);
        position.filter(|&position| position < at.computation).ok_or_else(|| {
            at.error(
                ErrorKind::Malformed,
                format!("calls the computation with the id {id}, which does not stand before its own"),
            )
        })
    }

    /// Makes a called computation a region of an operation that takes arguments.
    pub(super) fn region(&mut self, at: &Instruction, op: OpId, index: usize) -> Result<(), Error> {
        let computation = self.called(at, index)?;
        let parameters = self.computations.parameters(computation)?;
        let shapes: Vec<Shape> = parameters.iter().map(|parameter| parameter.shape.clone()).collect();
        let types = shapes.iter().flat_map(Shape::leaves);
        let outer = self.code.begin_region(op, types);
        let (block, arguments) = (self.code.block(), self.code.arguments());
        self.code.set_block(outer);
        let depth = self.frames[self.current].depth + 1;
        self.push_frame(computation, block, depth, grouped(shapes, &arguments))
            .map_err(|error| at.placed(error))
    }

    /// Makes a called computation a region of an operation that takes no arguments: the computation's parameters are values
    /// from outside of the region.
    pub(super) fn capturing_region(
        &mut self,
        at: &Instruction,
        op: OpId,
        index: usize,
        parameters: Vec<Rc<Value>>,
    ) -> Result<(), Error> {
        let computation = self.called(at, index)?;
        let outer = self.code.begin_region(op, []);
        let block = self.code.block();
        self.code.set_block(outer);
        let depth = self.frames[self.current].depth + 1;
        self.push_frame(computation, block, depth, parameters).map_err(|error| at.placed(error))
    }
}

/// Whether an instruction starts what another one ends.
fn is_start(opcode: &str) -> bool {
    opcode.ends_with("-start") || matches!(opcode, "async-update" | "send" | "recv")
}

/// Values of these shapes from their leaves.
fn grouped(shapes: Vec<Shape>, mut leaves: &[ValueId]) -> Vec<Rc<Value>> {
    let values = shapes.into_iter().map(|shape| {
        let (own, rest) = leaves.split_at(shape.leaf_count());
        leaves = rest;
        Rc::new(Value::new(shape, own.to_vec()))
    });
    values.collect()
}

/// `mhlo.frontend_attributes`, unless there are none.
pub(super) fn frontend_attributes(attributes: &proto::FrontendAttributes) -> Option<(Str, Attribute)> {
    let entries = attributes.map.iter().map(|(name, value)| (name.as_str().into(), value.as_str().into()));
    let entries: Vec<(Str, Attribute)> = entries.collect();
    (!entries.is_empty()).then(|| {
        ("mhlo.frontend_attributes".into(), Attribute::Dictionary(DictionaryAttribute::new(entries)))
    })
}
