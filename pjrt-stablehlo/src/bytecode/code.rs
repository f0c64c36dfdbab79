//! The IR section: operations, blocks and regions. It is read without recursion.

use super::cursor::{Cursor, malformed};
use super::dialects::DIALECTS;
use super::entries::Entries;
use super::ops::{Budget, KnownName, Meaning, RawAttributes, other_op, table_op};
use super::sections::{
    FORMAT_ELIDED_LOCATIONS, FORMAT_LAZY_REGIONS, FORMAT_USE_LIST_ORDERS, File, SECTION_IR, mask, section,
};
use super::templates::{Key, Template, Templates};
use crate::ir::ops::{FuncReturn, Return};
use crate::ir::{
    Attribute, BlockId, Body, DictionaryAttribute, Function, FunctionType, Location, MeshDeclaration, Module,
    Op, OpCode, OpId, RegionId, Type, ValueId, Visibility,
};
use crate::limits::MAX_REGION_DEPTH;
use crate::versions::Version;
use crate::{Bytes, Error, ErrorKind};

/// The minimum size of an operation in bytes: its name, the mask of its parts, and its location.
const MIN_OP_BYTES: usize = 3;

/// The maximum number of operations for which memory is reserved in advance.
const MAX_RESERVED: usize = 1 << 20;

/// Reads a module without verifying it. The container and the attributes are checked.
pub(crate) fn read(input: Bytes) -> Result<Module, Error> {
    let file = File::read(input)?;
    let input = file.input.clone();
    let entries = Entries::read(&file, &input, DIALECTS)?;
    let names = file.op_names.iter().map(|op| KnownName::new(&file, op)).collect();
    let budget = Budget::new(input.len());
    let mut module = Module::new();
    module.source_version = producer_version(&file.producer);
    let code = file.required(SECTION_IR)?;
    let reader = Reader {
        file: &file,
        entries,
        names,
        templates: Templates::new(file.properties.len()),
        budget,
        module,
        function: None,
        frames: Vec::new(),
        head: OpHead::default(),
    };
    reader.read(Cursor::new(&input, code))
}

/// Returns the version in a producer string such as `StableHLO_v1.13.7`.
fn producer_version(producer: &str) -> Option<Version> {
    producer.strip_prefix("StableHLO_v")?.parse().ok()
}

/// The owner of regions that are being read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// The file, whose single block contains the module.
    File,
    /// The module.
    Module,
    /// The function that is being read.
    Function,
    /// An operation in the function.
    Op(OpId),
}

/// The regions of one owner, which are being read.
struct Frame<'a> {
    owner: Owner,
    cursor: Cursor<'a>,
    /// `true` if `cursor` reads its own section; `false` if it continues the parent's.
    own_section: bool,
    /// `true` if the regions cannot use values of enclosing regions.
    isolated: bool,
    /// The number of regions that follow the current one.
    regions_left: usize,
    /// The region that is being read; `None` before the first region and between regions.
    current: Option<Current>,
}

/// The region that is being read.
struct Current {
    /// The index of the region's first value in the numbering of the file.
    first_value: u64,
    /// The number of values that the region declares.
    value_count: u64,
    /// The values that have been read.
    values: Vec<ValueId>,
    /// The blocks of the region in the function; empty for the file and the module.
    blocks: Vec<BlockId>,
    /// The number of blocks that follow the current one.
    blocks_left: usize,
    /// The number of operations of the current block that have not been read.
    ops_left: u64,
}

struct Reader<'a> {
    file: &'a File,
    entries: Entries,
    names: Vec<Result<KnownName, Error>>,
    templates: Templates,
    budget: Budget,
    module: Module,
    function: Option<Function>,
    frames: Vec<Frame<'a>>,
    /// The operation that was read last. Its lists are reused to save allocations.
    head: OpHead,
}

/// The parts of an operation before its regions.
#[derive(Default)]
struct OpHead {
    name: usize,
    location: Location,
    /// The parts that determine the attributes of an operation of the op table, if operations can share them.
    key: Option<Key>,
    /// The attributes, which are not read if there is a template for `key`.
    attributes: RawAttributes,
    result_types: Vec<Type>,
    operands: Vec<u64>,
    region_count: usize,
    isolated: bool,
    offset: usize,
}

impl<'a> Reader<'a> {
    fn read(mut self, mut cursor: Cursor<'a>) -> Result<Module, Error> {
        let (ops_left, has_arguments) = cursor.varint_with_flag()?;
        if has_arguments {
            return Err(cursor.error("expected an outermost block without arguments"));
        }
        let current = Current {
            first_value: 0,
            value_count: 0,
            values: Vec::new(),
            blocks: Vec::new(),
            blocks_left: 0,
            ops_left,
        };
        self.frames.push(Frame {
            owner: Owner::File,
            cursor,
            own_section: true,
            isolated: true,
            regions_left: 0,
            current: Some(current),
        });
        while let Some(frame) = self.frames.last_mut() {
            let Some(current) = &mut frame.current else {
                if frame.regions_left == 0 {
                    self.finish_frame()?;
                } else {
                    frame.regions_left -= 1;
                    self.start_region()?;
                }
                continue;
            };
            if current.ops_left > 0 {
                current.ops_left -= 1;
                self.read_op()?;
            } else if current.blocks_left > 0 {
                current.blocks_left -= 1;
                self.start_block()?;
            } else {
                frame.current = None;
            }
        }
        if self.module.functions().is_empty()
            && self.module.meshes().is_empty()
            && self.module.attributes.is_empty()
        {
            // An empty program consists of a module without operations.
            return if self.module.name.is_none() && !self.saw_module() {
                Err(malformed(self.file.input.len(), "the file contains no module"))
            } else {
                Ok(self.module)
            };
        }
        Ok(self.module)
    }

    fn saw_module(&self) -> bool {
        self.names.iter().flatten().any(|name| name.meaning == Meaning::Module)
    }

    fn top(&mut self) -> &mut Frame<'a> {
        self.frames.last_mut().expect("a frame is being read")
    }

    fn cursor(&mut self) -> &mut Cursor<'a> {
        &mut self.top().cursor
    }

    fn body(&mut self) -> &mut Body {
        &mut self.function.as_mut().expect("a function is being read").body
    }

    /// Completes the regions of an owner, and continues with the parent.
    fn finish_frame(&mut self) -> Result<(), Error> {
        let Some(frame) = self.frames.pop() else { return Ok(()) };
        if frame.own_section {
            frame.cursor.finish("the region")?;
        } else if let Some(parent) = self.frames.last_mut() {
            parent.cursor = frame.cursor;
        }
        if frame.owner == Owner::Function
            && let Some(function) = self.function.take()
        {
            self.module.add_function(function).map_err(|function| {
                let message = format!("the function '{}' is defined twice", function.name);
                Error::new(ErrorKind::Invalid, message).in_op("func.func", &function.location)
            })?;
        }
        Ok(())
    }

    /// Begins the next region of the current owner.
    fn start_region(&mut self) -> Result<(), Error> {
        let frame = self.frames.last_mut().expect("a frame is being read");
        let owner = frame.owner;
        let isolated = frame.isolated;
        let block_count = frame.cursor.count()?;
        let region = match owner {
            Owner::File | Owner::Module => None,
            Owner::Function => Some(Body::ROOT),
            Owner::Op(op) => Some(self.body().add_region(Some(op))),
        };
        if block_count == 0 {
            return Ok(());
        }
        let value_count = self.cursor().varint()?;
        if value_count > self.cursor().remaining() as u64 {
            return Err(self
                .cursor()
                .error(format!("a region cannot have {value_count} values in its remaining bytes")));
        }
        // Values are numbered from the outermost region that is not isolated from its parent.
        let first_value = if isolated {
            0
        } else {
            let enclosing = self.frames.iter().rev().skip(1).find_map(|frame| frame.current.as_ref());
            enclosing.map_or(0, |enclosing| enclosing.first_value + enclosing.value_count)
        };
        let blocks = match region {
            None if block_count > 1 => {
                return Err(self
                    .cursor()
                    .error(format!("expected one block in the module, found {block_count}")));
            }
            None => Vec::new(),
            Some(region) => self.add_blocks(region, block_count),
        };
        let blocks_left = block_count;
        let values = Vec::new();
        self.top().current =
            Some(Current { first_value, value_count, values, blocks, blocks_left, ops_left: 0 });
        Ok(())
    }

    fn add_blocks(&mut self, region: RegionId, count: usize) -> Vec<BlockId> {
        let body = self.body();
        (0..count).map(|_| body.add_block(region)).collect()
    }

    /// Begins the next block, and reads its arguments.
    fn start_block(&mut self) -> Result<(), Error> {
        let (ops_left, has_arguments) = self.cursor().varint_with_flag()?;
        let block = self.current_block();
        self.current().ops_left = ops_left;
        if block.is_some() {
            // The reservation is limited by the remaining bytes, because counts in damaged input are arbitrary.
            let fitting = (self.cursor().remaining() / MIN_OP_BYTES).min(MAX_RESERVED);
            let ops = usize::try_from(ops_left).map_or(fitting, |ops| ops.min(fitting));
            self.body().reserve(ops, ops);
        }
        if !has_arguments {
            return Ok(());
        }
        let count = self.cursor().count()?;
        let Some(block) = block else {
            return Err(self.cursor().error("expected a module without arguments"));
        };
        for _ in 0..count {
            let mut cursor = *self.cursor();
            let (ty, has_location) = if self.file.format >= FORMAT_ELIDED_LOCATIONS {
                cursor.varint_with_flag()?
            } else {
                (cursor.varint()?, true)
            };
            let ty = self.entries.ty(self.file, &cursor, ty)?;
            let location = if has_location { self.location(&mut cursor)? } else { Location::UNKNOWN };
            *self.cursor() = cursor;
            let value = self.body().add_argument(block, ty);
            self.body().set_argument_location(value, location);
            self.define(value)?;
        }
        if self.file.format >= FORMAT_USE_LIST_ORDERS && self.cursor().byte()? != 0 {
            self.skip_use_list_orders(count)?;
        }
        Ok(())
    }

    fn current(&mut self) -> &mut Current {
        self.top().current.as_mut().expect("a region is being read")
    }

    /// Returns the current block of the function; `None` in the file and the module.
    fn current_block(&mut self) -> Option<BlockId> {
        let current = self.current();
        let index = current.blocks.len().checked_sub(current.blocks_left + 1)?;
        Some(current.blocks[index])
    }

    fn location(&mut self, cursor: &mut Cursor<'a>) -> Result<Location, Error> {
        let index = cursor.varint()?;
        match self.entries.attribute(self.file, cursor, index)? {
            Attribute::Location(location) => Ok(location.clone()),
            other => Err(cursor.error(format!("expected a location, found {}", other.kind()))),
        }
    }

    /// Assigns the next number of the current region to a value.
    fn define(&mut self, value: ValueId) -> Result<(), Error> {
        let current = self.current();
        if current.values.len() as u64 >= current.value_count {
            let message =
                format!("the region has more values than the {} that it declares", current.value_count);
            return Err(self.cursor().error(message));
        }
        current.values.push(value);
        Ok(())
    }

    /// Returns the value with this number.
    fn value(&self, index: u64, offset: usize) -> Result<ValueId, Error> {
        for frame in self.frames.iter().rev() {
            if let Some(current) = &frame.current
                && let Some(index) = index.checked_sub(current.first_value)
                && index < current.value_count
            {
                return current.values.get(index as usize).copied().ok_or_else(|| {
                    let message = "an operand is used before its definition, which is not supported";
                    Error::new(ErrorKind::Invalid, message).at_offset(offset)
                });
            }
            if frame.isolated {
                break;
            }
        }
        Err(malformed(offset, format!("expected the number of a value in scope, found {index}")))
    }

    fn read_op(&mut self) -> Result<(), Error> {
        let mut head = std::mem::take(&mut self.head);
        self.read_op_head(&mut head)?;
        let finished = match &self.names[head.name] {
            Ok(name) => {
                let meaning = name.meaning;
                self.finish_op(&mut head, meaning)
            }
            Err(error) => Err(error.clone()),
        };
        finished.map_err(|error| {
            let name = match &self.names[head.name] {
                Ok(known) => &known.name,
                Err(_) => &self.file.op_names[head.name].name,
            };
            error.in_op(name.clone(), &head.location).at_offset(head.offset)
        })?;
        self.head = head;
        Ok(())
    }

    /// Reads the parts of an operation before its regions.
    fn read_op_head(&mut self, head: &mut OpHead) -> Result<(), Error> {
        let mut cursor = *self.cursor();
        let offset = cursor.position();
        let index = cursor.varint()?;
        let Some(name) = usize::try_from(index).ok().filter(|&index| index < self.names.len()) else {
            return Err(malformed(offset, format!("expected the index of an operation name, found {index}")));
        };
        let parts = cursor.byte()?;
        head.name = name;
        head.offset = offset;
        head.location = self.location(&mut cursor)?;
        self.read_attributes(head, parts, &mut cursor)?;
        head.result_types.clear();
        if parts & mask::RESULTS != 0 {
            let count = cursor.count()?;
            head.result_types.reserve_exact(count);
            for _ in 0..count {
                let index = cursor.varint()?;
                head.result_types.push(self.entries.ty(self.file, &cursor, index)?);
            }
        }
        head.operands.clear();
        if parts & mask::OPERANDS != 0 {
            let count = cursor.count()?;
            head.operands.reserve_exact(count);
            for _ in 0..count {
                head.operands.push(cursor.varint()?);
            }
        }
        if parts & mask::SUCCESSORS != 0 {
            let message = "operations with successor blocks are not supported";
            return Err(Error::new(ErrorKind::Unsupported, message).at_offset(offset));
        }
        *self.cursor() = cursor;
        if parts & mask::USE_LIST_ORDERS != 0 && self.file.format >= FORMAT_USE_LIST_ORDERS {
            self.skip_use_list_orders(head.result_types.len())?;
        }
        (head.region_count, head.isolated) =
            if parts & mask::REGIONS != 0 { self.read_region_count()? } else { (0, false) };
        Ok(())
    }

    /// Reads the dictionary and the properties of an operation, unless there is a template for the two.
    fn read_attributes(
        &mut self,
        head: &mut OpHead,
        parts: u8,
        cursor: &mut Cursor<'a>,
    ) -> Result<(), Error> {
        let mut dictionary = DictionaryAttribute::default();
        let mut dictionary_index = None;
        if parts & mask::ATTRIBUTES != 0 {
            let index = cursor.varint()?;
            match self.entries.attribute(self.file, cursor, index)? {
                Attribute::Dictionary(entries) => {
                    self.budget.charge_entries(entries.len())?;
                    dictionary = entries.clone();
                    dictionary_index = Some(index);
                }
                other => return Err(cursor.error(format!("expected a dictionary, found {}", other.kind()))),
            }
        }
        let mut properties = None;
        head.key = None;
        if parts & mask::PROPERTIES != 0 {
            let index = cursor.varint()?;
            let range = usize::try_from(index).ok().and_then(|index| self.file.properties.get(index));
            let Some(range) = range else {
                return Err(cursor.error(format!("expected the index of properties, found {index}")));
            };
            properties = Some(Cursor::new_like(cursor, range.clone()));
            let (name, properties) = (head.name, index as usize);
            head.key = Some(Key { name, properties, dictionary: dictionary_index });
        }
        let has_template = head.key.is_some_and(|key| self.templates.get(key).is_some());
        if let Ok(known) = &self.names[head.name]
            && !has_template
        {
            let attributes =
                head.attributes.read(self.file, &mut self.entries, known, dictionary, properties);
            attributes.map_err(|error| error.in_op(known.name.clone(), &head.location))?;
        }
        Ok(())
    }

    /// Reads the number of an operation's regions, and whether values of enclosing regions cannot be used in them.
    fn read_region_count(&mut self) -> Result<(usize, bool), Error> {
        let (count, isolated) = self.cursor().varint_with_flag()?;
        // Each region takes at least one byte.
        if count > self.cursor().remaining() as u64 {
            let message = format!("an operation cannot have {count} regions in the remaining bytes");
            return Err(self.cursor().error(message));
        }
        Ok((count as usize, isolated))
    }

    /// Skips the orders of uses, which affect only MLIR's printer.
    fn skip_use_list_orders(&mut self, values: usize) -> Result<(), Error> {
        let cursor = self.cursor();
        let count = if values > 1 { cursor.count()? } else { 1 };
        for _ in 0..count {
            if values > 1 {
                cursor.varint()?;
            }
            let (indices, _) = cursor.varint_with_flag()?;
            if indices > cursor.remaining() as u64 {
                return Err(
                    cursor.error(format!("a use list cannot have {indices} indices in the remaining bytes"))
                );
            }
            for _ in 0..indices {
                cursor.varint()?;
            }
        }
        Ok(())
    }

    /// Adds the operation, and begins its regions.
    fn finish_op(&mut self, head: &mut OpHead, meaning: Meaning) -> Result<(), Error> {
        let (region_count, isolated) = (head.region_count, head.isolated);
        let parent = self.top().owner;
        let owner = match (parent, meaning) {
            (Owner::File, Meaning::Module) if !self.module_started() => {
                self.start_module(head);
                Owner::Module
            }
            (Owner::Module, Meaning::Function) => {
                self.function = Some(function(head)?);
                Owner::Function
            }
            (Owner::Module, Meaning::Mesh) => return self.add_mesh(head),
            (Owner::File | Owner::Module, _) => {
                let message = "expected a module with functions and meshes at the top level of the program";
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
            (Owner::Function | Owner::Op(_), Meaning::Module | Meaning::Function | Meaning::Mesh) => {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    "modules and functions cannot be nested in functions",
                ));
            }
            (Owner::Function | Owner::Op(_), Meaning::Cast) if self.changes_nothing(head)? => {
                return self.add_cast(head);
            }
            (Owner::Function | Owner::Op(_), meaning) => Owner::Op(self.add_op(head, meaning, parent)?),
        };
        if region_count == 0 {
            if owner == Owner::Function {
                self.push_frame(owner, 0, isolated)?;
            }
            return Ok(());
        }
        if matches!(owner, Owner::Function | Owner::Module) && region_count > 1 {
            return Err(Error::new(ErrorKind::Invalid, format!("expected one region, found {region_count}")));
        }
        self.push_frame(owner, region_count, isolated)
    }

    fn module_started(&self) -> bool {
        self.frames.len() > 1
    }

    fn push_frame(&mut self, owner: Owner, regions_left: usize, isolated: bool) -> Result<(), Error> {
        if self.frames.len() > MAX_REGION_DEPTH {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!("regions are nested more than {MAX_REGION_DEPTH} deep"),
            ));
        }
        let mut cursor = *self.cursor();
        let own_section = isolated && regions_left > 0 && self.file.format >= FORMAT_LAZY_REGIONS;
        if own_section {
            let (id, range) = section(&mut cursor)?;
            if id != SECTION_IR {
                return Err(cursor.error(format!("expected a section of code, found number {id}")));
            }
            *self.cursor() = cursor;
            cursor = Cursor::new_like(&cursor, range);
        }
        self.frames.push(Frame { owner, cursor, own_section, isolated, regions_left, current: None });
        Ok(())
    }

    fn start_module(&mut self, head: &OpHead) {
        if let Some(Attribute::String(name)) = head.attributes.get("sym_name") {
            self.module.name = Some(name.clone());
        }
        self.module.attributes = head.attributes.without(&["sym_name"]);
        self.module.location = head.location.clone();
    }

    fn add_mesh(&mut self, head: &OpHead) -> Result<(), Error> {
        match (head.attributes.get("sym_name"), head.attributes.get("mesh")) {
            (Some(Attribute::String(name)), Some(Attribute::Mesh(mesh))) => {
                let attributes = match &self.names[head.name] {
                    Ok(known) => head.attributes.discardable(known),
                    Err(_) => DictionaryAttribute::default(),
                };
                let (name, mesh) = (name.clone(), (**mesh).clone());
                self.module.add_mesh(MeshDeclaration {
                    name,
                    mesh,
                    attributes,
                    location: head.location.clone(),
                });
                Ok(())
            }
            _ => Err(Error::new(ErrorKind::Invalid, "expected a name and a mesh")),
        }
    }

    /// Returns the operands of an operation.
    fn operands(&self, head: &OpHead) -> Result<Box<[ValueId]>, Error> {
        // Collecting into a `Result` would not reserve capacity.
        let mut operands = Vec::with_capacity(head.operands.len());
        for &index in &head.operands {
            operands.push(self.value(index, head.offset)?);
        }
        Ok(operands.into())
    }

    /// Returns `true` if the types of an operation's results equal those of its operands.
    fn changes_nothing(&mut self, head: &OpHead) -> Result<bool, Error> {
        let operands = self.operands(head)?;
        let body = self.body();
        Ok(head.region_count == 0 && operands.iter().map(|&operand| body.ty(operand)).eq(&head.result_types))
    }

    /// Replaces the results of a cast between a VHLO type and the corresponding type by the operands, because this
    /// crate represents both types in the same way.
    fn add_cast(&mut self, head: &OpHead) -> Result<(), Error> {
        self.operands(head)?.into_iter().try_for_each(|operand| self.define(operand))
    }

    fn add_op(&mut self, head: &mut OpHead, meaning: Meaning, parent: Owner) -> Result<OpId, Error> {
        let name = match &self.names[head.name] {
            Ok(name) => name,
            Err(error) => return Err(error.clone()),
        };
        let operands = self.operands(head)?;
        let rank = operands.first().and_then(|&operand| self.function.as_ref()?.body.ty(operand).as_tensor());
        let rank = rank.map_or(0, |tensor| tensor.rank());
        let (kind, discardable) = match meaning {
            // Some hosts terminate functions with `stablehlo.return`.
            Meaning::Return | Meaning::Table(OpCode::Return) if parent == Owner::Function => {
                (Op::FuncReturn(FuncReturn {}), head.attributes.discardable(name))
            }
            Meaning::Return => (Op::Return(Return {}), head.attributes.discardable(name)),
            Meaning::Table(code) => {
                let template = head.key.and_then(|key| self.templates.get(key));
                let (mut op, discardable) = match template {
                    Some(template) => {
                        self.budget.charge_entries(template.numbers)?;
                        (template.op.clone(), template.discardable.clone())
                    }
                    None => {
                        let before = self.budget.left();
                        let op = table_op(name, code, &head.attributes, &mut self.budget, &head.location)?;
                        let discardable = head.attributes.discardable(name);
                        // Each constant has its own value, and the kind of a return depends on its parent.
                        let is_same = !matches!(code, OpCode::Constant | OpCode::Return);
                        if let Some(key) = head.key.filter(|_| is_same) {
                            let numbers = before - self.budget.left();
                            let (op, discardable) = (op.clone(), discardable.clone());
                            self.templates.set(key, Template { op, discardable, numbers });
                        }
                        (op, discardable)
                    }
                };
                op.fill_defaults(rank);
                (op, discardable)
            }
            _ => other_op(name, std::mem::take(&mut head.attributes)),
        };
        let Some(block) = self.current_block() else {
            return Err(malformed(head.offset, "expected an operation inside a block"));
        };
        let body = self.body();
        let op = body.add_op(block, kind, operands, head.result_types.drain(..), head.location.clone());
        body.op_mut(op).attributes = discardable;
        for result in body.op(op).results {
            self.define(result)?;
        }
        Ok(op)
    }
}

/// Returns a function without its body.
fn function(head: &OpHead) -> Result<Function, Error> {
    let missing = |what: &str| Error::new(ErrorKind::Invalid, format!("expected {what} of the function"));
    let get = |name: &str| head.attributes.get(name);
    let name = match get("sym_name") {
        Some(Attribute::String(name)) => name.clone(),
        _ => return Err(missing("the name")),
    };
    let ty: FunctionType = match get("function_type") {
        Some(Attribute::Type(Type::Function(ty))) => (**ty).clone(),
        _ => return Err(missing("the type")),
    };
    let visibility = match get("sym_visibility") {
        None => None,
        // VHLO represents an unstated visibility by an empty string.
        Some(Attribute::String(visibility)) if visibility.is_empty() => None,
        Some(Attribute::String(visibility)) => {
            let known = Visibility::from_name(visibility);
            let invalid = || {
                format!(
                    "sym_visibility: expected \"public\", \"private\" or \"nested\", found '{visibility}'"
                )
            };
            Some(known.ok_or_else(|| Error::new(ErrorKind::Invalid, invalid()))?)
        }
        Some(_) => return Err(missing("a visibility")),
    };
    let dictionaries = |name: &str, count: usize| match get(name).and_then(Attribute::as_array) {
        None | Some([]) => Ok(Vec::new()),
        Some(entries) if entries.len() == count => entries
            .iter()
            .map(|entry| entry.as_dictionary().cloned().ok_or_else(|| missing("dictionaries as attributes")))
            .collect::<Result<_, _>>()
            .map(DictionaryAttribute::unless_empty),
        Some(entries) => {
            let message = format!("{name}: expected {count} dictionaries, found {}", entries.len());
            Err(Error::new(ErrorKind::Invalid, message))
        }
    };
    let argument_attributes = dictionaries("arg_attrs", ty.inputs.len())?;
    let result_attributes = dictionaries("res_attrs", ty.results.len())?;
    let own = ["sym_name", "function_type", "sym_visibility", "arg_attrs", "res_attrs"];
    let others = head.attributes.without(&own);
    Ok(Function {
        name,
        visibility,
        ty,
        argument_attributes,
        result_attributes,
        attributes: others,
        body: Body::new(),
        location: head.location.clone(),
    })
}
