//! The text of modules.

use std::fmt::{self, Display, Formatter};

use super::attribute::fmt_entries;
use crate::ir::{Attribute, Body, Definition, Function, Location, Module, OpId, RegionId, ValueId};

impl Display for Module {
    /// Writes the module in MLIR's generic form. `{:#}` adds locations.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("\"builtin.module\"() ")?;
        if let Some(name) = &self.name {
            f.write_str("<")?;
            fmt_entries(f, &[("sym_name".into(), Attribute::String(name.clone()))])?;
            f.write_str("> ")?;
        }
        f.write_str("({\n")?;
        if self.meshes().is_empty() && self.functions().is_empty() {
            // The text of a region without operations has no block, but a module must have one.
            f.write_str("^bb0:\n")?;
        }
        for declaration in self.meshes() {
            f.write_str("  \"sdy.mesh\"() <")?;
            fmt_entries(f, &declaration.own_attributes())?;
            f.write_str(">")?;
            if !declaration.attributes.is_empty() {
                write!(f, " {}", declaration.attributes)?;
            }
            f.write_str(" : () -> ()")?;
            write_location(f, &declaration.location)?;
            f.write_str("\n")?;
        }
        for function in self.functions() {
            write_function(f, function)?;
        }
        f.write_str("})")?;
        if !self.attributes.is_empty() {
            write!(f, " {}", self.attributes)?;
        }
        f.write_str(" : () -> ()")?;
        write_location(f, &self.location)?;
        f.write_str("\n")
    }
}

fn write_location(f: &mut Formatter<'_>, location: &Location) -> fmt::Result {
    if f.alternate() { write!(f, " loc({location})") } else { Ok(()) }
}

fn write_function(f: &mut Formatter<'_>, function: &Function) -> fmt::Result {
    f.write_str("  \"func.func\"() <")?;
    fmt_entries(f, &function.own_attributes())?;
    f.write_str("> ({\n")?;
    write_body(f, &function.body)?;
    f.write_str("  })")?;
    if !function.attributes.is_empty() {
        write!(f, " {}", function.attributes)?;
    }
    f.write_str(" : () -> ()")?;
    write_location(f, &function.location)?;
    f.write_str("\n")
}

/// A region whose operations are being printed.
struct Open {
    region: RegionId,
    /// The position among the regions of its operation.
    index: usize,
    block: usize,
    op: usize,
}

/// The numbers of operations and blocks: their positions in the text, which are also the indices of their ids in the
/// module that is read from the text.
struct Numbers {
    ops: Vec<u32>,
    blocks: Vec<u32>,
}

impl Numbers {
    fn new(body: &Body) -> Numbers {
        let mut numbers = Numbers { ops: vec![0; body.num_ops()], blocks: vec![0; body.num_blocks()] };
        let (mut ops, mut blocks) = (0, 0);
        // The rest of each open region: its remaining blocks, and the position in the first of them.
        let mut open = vec![(body.region(Body::ROOT).blocks.as_slice(), 0)];
        while let Some((left, op)) = open.last_mut() {
            let Some((&block, others)) = left.split_first() else {
                open.pop();
                continue;
            };
            if *op == 0 {
                numbers.blocks[block.index()] = blocks;
                blocks += 1;
            }
            let Some(&id) = body.block(block).ops.get(*op) else {
                (*left, *op) = (others, 0);
                continue;
            };
            *op += 1;
            numbers.ops[id.index()] = ops;
            ops += 1;
            open.extend(body.op(id).regions.iter().rev().map(|&region| (&*body.region(region).blocks, 0)));
        }
        numbers
    }
}

/// Writes a body. The function keeps a stack of open regions in place of recursion.
fn write_body(f: &mut Formatter<'_>, body: &Body) -> fmt::Result {
    const ROOT_INDENT: usize = 2;
    let numbers = &Numbers::new(body);
    let mut open = vec![Open { region: Body::ROOT, index: 0, block: 0, op: 0 }];
    while let Some(top) = open.last_mut() {
        let Some(&block_id) = body.region(top.region).blocks.get(top.block) else {
            let (region, next) = (top.region, top.index + 1);
            open.pop();
            if let Some(parent) = body.region(region).parent {
                close_region(f, body, parent, next, open.len() + ROOT_INDENT - 1, &mut open)?;
            }
            continue;
        };
        let depth = open.len() + ROOT_INDENT - 1;
        let top = open.last_mut().expect("the stack is not empty");
        let block = body.block(block_id);
        if top.op == 0 && (!block.arguments.is_empty() || top.block > 0) {
            write!(f, "{:indent$}^bb{}(", "", numbers.blocks[block_id.index()], indent = depth * 2 - 2)?;
            for (index, &argument) in block.arguments.iter().enumerate() {
                f.write_str(if index == 0 { "" } else { ", " })?;
                write!(f, "{}: {}", Name(body, numbers, argument), body.ty(argument))?;
                write_location(f, block.argument_locations.get(index).unwrap_or(&Location::UNKNOWN))?;
            }
            f.write_str("):\n")?;
        }
        let Some(&op) = block.ops.get(top.op) else {
            top.block += 1;
            top.op = 0;
            continue;
        };
        top.op += 1;
        write_op_start(f, body, numbers, op, depth)?;
        match body.op(op).regions.first() {
            Some(&region) => {
                f.write_str(" ({\n")?;
                open.push(Open { region, index: 0, block: 0, op: 0 });
            }
            None => write_op_end(f, body, op)?,
        }
    }
    Ok(())
}

/// Ends a region of an operation, and begins region `index` or ends the operation if there is no such region.
fn close_region(
    f: &mut Formatter<'_>,
    body: &Body,
    op: OpId,
    index: usize,
    depth: usize,
    open: &mut Vec<Open>,
) -> fmt::Result {
    write!(f, "{:indent$}}}", "", indent = depth * 2)?;
    match body.op(op).regions.get(index) {
        Some(&region) => {
            f.write_str(", {\n")?;
            open.push(Open { region, index, block: 0, op: 0 });
            Ok(())
        }
        None => {
            f.write_str(")")?;
            write_op_end(f, body, op)
        }
    }
}

fn write_op_start(
    f: &mut Formatter<'_>,
    body: &Body,
    numbers: &Numbers,
    id: OpId,
    depth: usize,
) -> fmt::Result {
    let op = body.op(id);
    let number = numbers.ops[id.index()];
    write!(f, "{:indent$}", "", indent = depth * 2)?;
    match op.results.len() {
        0 => {}
        1 => write!(f, "%{number} = ")?,
        count => write!(f, "%{number}:{count} = ")?,
    }
    write!(f, "\"{}\"(", op.kind.name())?;
    for (index, &operand) in op.operands.iter().enumerate() {
        f.write_str(if index == 0 { "" } else { ", " })?;
        write!(f, "{}", Name(body, numbers, operand))?;
    }
    f.write_str(")")?;
    let attributes = op.kind.attributes();
    if !attributes.is_empty() {
        f.write_str(" <")?;
        fmt_entries(f, &attributes)?;
        f.write_str(">")?;
    }
    Ok(())
}

fn write_op_end(f: &mut Formatter<'_>, body: &Body, id: OpId) -> fmt::Result {
    let op = body.op(id);
    if !op.attributes.is_empty() {
        write!(f, " {}", op.attributes)?;
    }
    f.write_str(" : (")?;
    for (index, &operand) in op.operands.iter().enumerate() {
        f.write_str(if index == 0 { "" } else { ", " })?;
        write!(f, "{}", body.ty(operand))?;
    }
    f.write_str(") -> ")?;
    match op.results.len() {
        1 => write!(f, "{}", body.ty(op.result()))?,
        _ => {
            f.write_str("(")?;
            for (index, result) in op.results.enumerate() {
                f.write_str(if index == 0 { "" } else { ", " })?;
                write!(f, "{}", body.ty(result))?;
            }
            f.write_str(")")?;
        }
    }
    write_location(f, &op.location)?;
    f.write_str("\n")
}

/// The name of a value: `%arg3_0` for argument 0 of block 3, `%7` or `%7#1` for a result of operation 7.
struct Name<'a>(&'a Body, &'a Numbers, ValueId);

impl Display for Name<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Name(body, numbers, value) = *self;
        match body.value(value).definition {
            Definition::Argument { block, index } => match numbers.blocks[block.index()] {
                0 => write!(f, "%arg{index}"),
                block => write!(f, "%arg{block}_{index}"),
            },
            Definition::Result { op, index } => {
                write!(f, "%{}", numbers.ops[op.index()])?;
                if body.op(op).results.len() == 1 { Ok(()) } else { write!(f, "#{index}") }
            }
        }
    }
}
