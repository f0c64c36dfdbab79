//! The reader of functions, and of the computations that become their regions.

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

/// The reader of a module's functions.
pub(super) struct Reader {
    pub(super) computations: Computations,
    pub(super) locations: Locations,
    /// The builder of the function that is being read.
    pub(super) code: Builder,
    /// The computations that are being read, from the function's own to the innermost.
    frames: Vec<Frame>,
    /// The index of the frame with the current instruction. The frames above it belong to the instruction's regions.
    current: usize,
    /// The names of the functions that computations become.
    functions: HashMap<usize, Str>,
    /// The computations that have not been read as functions.
    pending: VecDeque<usize>,
    /// The names of functions.
    names: HashSet<Str>,
    /// The names of decomposition functions, by the operation that they decompose.
    pub(super) decompositions: HashMap<String, Str>,
    /// The decomposition functions that have not been added to the module.
    pub(super) additions: Vec<Function>,
    /// The sharding of the last function's result.
    pub(super) root_sharding: Option<proto::Sharding>,
    /// The number of operations and values that may still be added.
    expansion: usize,
    /// The number of attribute elements that may still be added, in addition to those in the program.
    numbers: usize,
}

/// A computation that is being read.
struct Frame {
    computation: usize,
    /// The number of enclosing regions.
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

    /// Returns the name of the function for a computation, and schedules it to be read.
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

    /// Names the function of a computation.
    pub(super) fn name_function(&mut self, computation: usize, name: &str) {
        self.names.insert(name.into());
        self.functions.insert(computation, name.into());
    }

    /// Returns a name that no function has.
    pub(super) fn unique_name(&mut self, wanted: &str) -> Str {
        let mut name: Str = wanted.into();
        let mut number = 0;
        while !self.names.insert(name.clone()) {
            name = format!("{wanted}_{number}").into();
            number += 1;
        }
        name
    }

    /// Reads the functions that others call, and returns them with the decomposition functions.
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

    /// Reads a computation as a function, and returns the function and the shape of its result.
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
            let message = format!("regions are nested more than {MAX_REGION_DEPTH} deep");
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        self.frames.push(Frame { computation, depth, next: 0, block, parameters, values: HashMap::new() });
        Ok(())
    }

    /// Reads the computations on the stack, and returns the result of the first.
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
        unreachable!("the last frame to be popped is that of the function")
    }

    /// Decodes an instruction, and finds its operands.
    fn instruction(&mut self, bytes: prost::bytes::Bytes) -> Result<Instruction, Error> {
        let frame = &self.frames[self.current];
        let computation = self.computations.get(frame.computation);
        let proto = proto::Instruction::decode(bytes).map_err(|error| {
            malformed(&format!("instruction {} of '{}'", frame.next - 1, computation.name), &error)
        })?;
        let location = self.locations.location(&proto.name, proto.metadata.as_ref());
        let error = |message: String| error_in(&proto, &location, ErrorKind::Malformed, message);
        let shape = proto.shape.as_ref().ok_or_else(|| error("the instruction has no shape".to_owned()))?;
        let shape = Shape::read(shape)
            .map_err(|error| error.in_op(format!("{} '{}'", proto.opcode, proto.name), &location))?;
        let operands = proto.operand_ids.iter().map(|&id| {
            frame.values.get(&local_id(id)).cloned().ok_or_else(|| {
                error(format!(
                    "the operand with the id {id} is not a preceding instruction of '{}'",
                    computation.name
                ))
            })
        });
        let operands = operands.collect::<Result<_, _>>()?;
        Ok(Instruction { shape, operands, location, computation: frame.computation, proto })
    }

    /// Adds the operations for an instruction, and returns its value.
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
                        "expected a parameter number below {1}, found {0}",
                        at.proto.parameter_number,
                        frame.parameters.len()
                    ))
                })?;
                parameter.leaves.clone()
            }
            _ => self.leaves_of(at)?,
        };
        self.attach_attributes(at, before)?;
        // The value of an asynchronous operation is available where it starts.
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
                "expected a value of the shape ({}), found ({})",
                list(&declared),
                list(&found)
            )));
        }
        Ok(Value { shape: at.shape.clone(), leaves, order: at.order()? })
    }

    /// Adds the attributes of an instruction to the last operation that was created for it.
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

    /// Returns the discardable attributes for a sharding and for frontend attributes.
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

    /// Returns the number of operations and values in the body.
    fn expanded(&self) -> usize {
        self.code.body.num_ops() + self.code.body.num_values()
    }

    /// Returns an error if the body has too many operations and values.
    fn check_expansion(&self) -> Result<(), Error> {
        if self.expanded() <= self.expansion {
            return Ok(());
        }
        let message = "copies of shared computations create too many operations";
        Err(Error::new(ErrorKind::TooLarge, message))
    }

    /// Counts elements of attributes.
    pub(super) fn spend_numbers(&mut self, count: usize) -> Result<(), Error> {
        self.numbers = self.numbers.checked_sub(count).ok_or_else(|| {
            Error::new(
                ErrorKind::TooLarge,
                "the attributes of the program's operations have too many elements in total",
            )
        })?;
        Ok(())
    }

    /// Returns the index of a computation that an instruction calls.
    pub(super) fn called(&self, at: &Instruction, index: usize) -> Result<usize, Error> {
        let ids = &at.proto.called_computation_ids;
        let id = ids.get(index).ok_or_else(|| {
            at.invalid(format!("expected at least {} called computations, found {}", index + 1, ids.len()))
        })?;
        let position = self.computations.position(*id);
        position.filter(|&position| position < at.computation).ok_or_else(|| {
            at.error(
                ErrorKind::Malformed,
                format!("the called computation with the id {id} does not precede the calling one"),
            )
        })
    }

    /// Adds a called computation as a region with arguments.
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

    /// Adds a called computation as a region without arguments. The parameters of the computation are values of the
    /// enclosing region.
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

/// Returns `true` if the opcode starts an asynchronous operation.
fn is_start(opcode: &str) -> bool {
    opcode.ends_with("-start") || matches!(opcode, "async-update" | "send" | "recv")
}

/// Groups leaves into values of these shapes.
fn grouped(shapes: Vec<Shape>, mut leaves: &[ValueId]) -> Vec<Rc<Value>> {
    let values = shapes.into_iter().map(|shape| {
        let (own, rest) = leaves.split_at(shape.leaf_count());
        leaves = rest;
        Rc::new(Value::new(shape, own.to_vec()))
    });
    values.collect()
}

/// Returns the attribute `mhlo.frontend_attributes`, unless there are none.
pub(super) fn frontend_attributes(attributes: &proto::FrontendAttributes) -> Option<(Str, Attribute)> {
    let entries = attributes.map.iter().map(|(name, value)| (name.as_str().into(), value.as_str().into()));
    let entries: Vec<(Str, Attribute)> = entries.collect();
    (!entries.is_empty()).then(|| {
        ("mhlo.frontend_attributes".into(), Attribute::Dictionary(DictionaryAttribute::new(entries)))
    })
}
