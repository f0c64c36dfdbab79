//! The operations that a program needs and a device lacks.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use super::narrow_integers::narrow_integers;
use super::rewrite::Origins;
use super::rules::rewrite_of;
use super::widen::is_widened;
use super::{CoreOps, isolate, run};
use crate::ir::{ElementType, Function, Location, Module, OpCode, OpId, Operation, Str};
use crate::{Error, ErrorKind};

/// The maximum number of locations of [`MissingOp`]. A program can use an operation many times.
const MAX_LOCATIONS: usize = 16;

/// The maximum number of missing operations in the decomposition of one operation that are found.
const MAX_PARTS: usize = 64;

/// The result of [`missing`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Missing {
    /// The operations that the device lacks and that cannot be replaced, by name and element types. If the list is empty,
    /// [`decompose`](super::decompose) succeeds.
    pub ops: Vec<MissingOp>,
    /// The operations that the device lacks and that are replaced, by name and element types.
    pub replaced: Vec<Replaced>,
}

/// An operation that a device lacks and that cannot be replaced.
///
/// `Display` writes a line: the operation, its element types, the reason, the number of uses and the first location.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MissingOp {
    /// The name, such as `stablehlo.sort`.
    pub op: Str,
    /// The element types of the operands and results, each once.
    pub element_types: Vec<ElementType>,
    /// The reason: that the device does not support the operation, that it does not support it for an element type, or that the
    /// operands do not permit the decomposition.
    pub reason: String,
    /// The operation of the program that is decomposed into this one; `None` if it is one of the program itself.
    pub part_of: Option<Str>,
    /// The number of uses in the program: of the operation itself, or of the operation that is decomposed into it.
    pub count: usize,
    /// The locations of the first uses, at most 16.
    pub locations: Vec<Location>,
}

/// An operation that a device lacks and that is replaced by operations that it supports.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Replaced {
    /// The name, such as `stablehlo.batch_norm_training`.
    pub op: Str,
    /// The element types of the operands and results, each once.
    pub element_types: Vec<ElementType>,
    /// The number of uses in the program.
    pub count: usize,
    /// The names of the operations that the first use becomes, without terminators, with their numbers.
    pub into: BTreeMap<Str, usize>,
}

impl fmt::Display for MissingOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.op)?;
        let types: Vec<String> = self.element_types.iter().map(ToString::to_string).collect();
        if !types.is_empty() {
            write!(f, " of {}", types.join(", "))?;
        }
        write!(f, ": {}", self.reason)?;
        if let Some(origin) = &self.part_of {
            write!(f, "; '{origin}' is decomposed into it")?;
        }
        match self.count {
            1 => f.write_str(" (once")?,
            count => write!(f, " ({count} times")?,
        }
        match self.locations.iter().find(|location| !location.is_unknown()) {
            Some(first) => write!(f, ", at {})", first.brief()),
            None => f.write_str(")"),
        }
    }
}

/// Returns all operations of a program that a device lacks: those that [`decompose`](super::decompose) cannot replace, and those
/// that it replaces, with what they become. `decompose` reports only the first.
///
/// ```
/// use pjrt_stablehlo::ir::OpCode;
/// use pjrt_stablehlo::passes::{CoreOps, missing};
///
/// let core = CoreOps::from_ops([OpCode::Add, OpCode::Multiply, OpCode::Constant]).named("mychip");
/// let program = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
///     %0 = chlo.square %x : tensor<4xf32> -> tensor<4xf32>
///     %1 = stablehlo.exponential %0 : tensor<4xf32>
///     %2 = stablehlo.logistic %1 : tensor<4xf32>
///     return %2 : tensor<4xf32>
/// }";
/// let missing = missing(&pjrt_stablehlo::parse(program.to_owned())?, &core)?;
/// let lines: Vec<String> = missing.ops.iter().map(ToString::to_string).collect();
/// let expected = "stablehlo.exponential of f32: mychip does not support this operation, and it cannot be decomposed (once)";
/// assert_eq!(lines[0], expected);
/// let parts: Vec<&str> = missing.ops.iter().filter(|op| op.part_of.is_some()).map(|op| &*op.op).collect();
/// assert_eq!(parts, ["stablehlo.exponential", "stablehlo.divide"]);
/// assert_eq!(missing.replaced[0].into.keys().map(|op| &**op).collect::<Vec<_>>(), ["stablehlo.multiply"]);
/// # Ok::<(), pjrt_stablehlo::Error>(())
/// ```
///
/// # Errors
/// Returns the errors of [`decompose`](super::decompose) except [`ErrorKind::Unsupported`], which the result describes.
pub fn missing(module: &Module, core: &CoreOps) -> Result<Missing, Error> {
    crate::verify(module)?;
    let whole = match run(module, core) {
        Err(error) if error.kind == ErrorKind::Unsupported => Some(error),
        Err(error) => return Err(error),
        Ok(_) => None,
    };
    let narrow = narrow_integers(module, core, &mut Origins::default())?;
    let module = narrow.as_ref().unwrap_or(module);
    let mut found = Found::default();
    for function in module.functions() {
        for (id, op) in function.body.all_ops() {
            if !core.supports(&function.body, op) {
                found.examine(module, function, (id, op), core, whole.is_none());
            }
        }
    }
    let mut result = found.missing;
    if let Some(error) = whole
        && result.ops.is_empty()
    {
        // The types of the program, or the context of an operation, prevent the replacement.
        result.ops.push(MissingOp {
            op: error.op.unwrap_or_else(|| "main".into()),
            element_types: Vec::new(),
            reason: error.message,
            part_of: None,
            count: 1,
            locations: vec![error.location],
        });
    }
    Ok(result)
}

/// The name and element types of an operation.
type Key = (Str, Vec<ElementType>);

/// The findings so far.
#[derive(Default)]
struct Found {
    missing: Missing,
    /// For each missing operation, and the operation that is decomposed into it, its index.
    missing_indices: HashMap<(Key, Option<Str>, String), usize>,
    replaced_indices: HashMap<Key, usize>,
}

impl Found {
    /// Records an operation that the set does not contain. `all_replaced` states that the whole program can be decomposed.
    fn examine(
        &mut self,
        module: &Module,
        function: &Function,
        (id, op): (OpId, &Operation),
        core: &CoreOps,
        all_replaced: bool,
    ) {
        let key: Key = (op.kind.name().into(), function.body.element_types(op));
        if let Some(&index) = self.replaced_indices.get(&key)
            && all_replaced
        {
            self.missing.replaced[index].count += 1;
            return;
        }
        let (parts, into) = match rewrite_of(&function.body, op) {
            None if !is_widened(core, &function.body, op) => {
                let refusal = core.refusal(&function.body, op).unwrap_or_default();
                let reason = format!("{refusal}, and it cannot be decomposed");
                (vec![Part { key: key.clone(), reason, is_part: false }], None)
            }
            _ => decomposed(module, function, id, core),
        };
        if parts.is_empty() || all_replaced {
            return self.replaced(key, into.unwrap_or_default());
        }
        for part in parts {
            let origin = part.is_part.then(|| key.0.clone());
            self.missing(part, origin, &op.location);
        }
    }

    fn replaced(&mut self, key: Key, into: BTreeMap<Str, usize>) {
        let ops = &mut self.missing.replaced;
        let index = *self.replaced_indices.entry(key.clone()).or_insert_with(|| {
            ops.push(Replaced { op: key.0, element_types: key.1, count: 0, into });
            ops.len() - 1
        });
        ops[index].count += 1;
    }

    fn missing(&mut self, part: Part, part_of: Option<Str>, location: &Location) {
        let ops = &mut self.missing.ops;
        let key = (part.key.clone(), part_of.clone(), part.reason.clone());
        let index = *self.missing_indices.entry(key).or_insert_with(|| {
            let (op, element_types) = part.key;
            ops.push(MissingOp {
                op,
                element_types,
                reason: part.reason,
                part_of,
                count: 0,
                locations: Vec::new(),
            });
            ops.len() - 1
        });
        ops[index].count += 1;
        if ops[index].locations.len() < MAX_LOCATIONS && !ops[index].locations.contains(location) {
            ops[index].locations.push(location.clone());
        }
    }
}

/// A missing operation: one of the program, or of a decomposition.
struct Part {
    key: Key,
    reason: String,
    is_part: bool,
}

/// Decomposes one operation alone. Returns the missing operations, and the operations that it becomes if none is missing.
fn decomposed(
    module: &Module,
    function: &Function,
    id: OpId,
    core: &CoreOps,
) -> (Vec<Part>, Option<BTreeMap<Str, usize>>) {
    let op = function.body.op(id);
    let whole = |error: Error| {
        let key = (op.kind.name().into(), function.body.element_types(op));
        vec![Part { key, reason: error.message, is_part: false }]
    };
    let alone = match isolate(module, function, id) {
        Ok(alone) => alone,
        Err(error) => return (whole(error), None),
    };
    // Each missing operation is added to the set, so that the next one is found.
    let mut assumed = core.clone();
    let mut reasons: Vec<(OpCode, String)> = Vec::new();
    let result = loop {
        match run(&alone, &assumed) {
            Ok(result) => break result,
            Err(error) => {
                let part = error.op.as_deref().and_then(OpCode::from_name);
                let is_new = |part: &OpCode| *part != op.kind.code() && !assumed.contains_unlimited(*part);
                match part.filter(is_new) {
                    Some(part) if reasons.len() < MAX_PARTS => {
                        assumed = assumed.with_unlimited(part);
                        reasons.push((part, reason_of(&error)));
                    }
                    _ => return (whole(error), None),
                }
            }
        }
    };
    // The operations of its regions and functions are operations of the program themselves.
    reasons.retain(|(part, _)| !alone_has(&alone, core, *part));
    if reasons.is_empty() {
        let into = result.op_counts().into_iter().filter(|(name, _)| !name.ends_with("return"));
        return (Vec::new(), Some(into.map(|(name, count)| (name.into(), count)).collect()));
    }
    let element_types = |part: OpCode| {
        let mut found = Vec::new();
        for function in result.functions() {
            let ops = function.body.all_ops().filter(|(_, op)| op.kind.code() == part);
            let ops = ops.filter(|(_, op)| !core.supports(&function.body, op));
            for element in ops.flat_map(|(_, op)| function.body.element_types(op)) {
                if !found.contains(&element) {
                    found.push(element);
                }
            }
        }
        found
    };
    let part = |(part, reason): (OpCode, String)| Part {
        key: (part.info().name.into(), element_types(part)),
        reason,
        is_part: true,
    };
    (reasons.into_iter().map(part).collect(), None)
}

/// Returns `true` if a program has an operation with this code that the set does not contain.
fn alone_has(alone: &Module, core: &CoreOps, code: OpCode) -> bool {
    alone.functions().iter().any(|function| {
        let mut ops = function.body.all_ops();
        ops.any(|(_, op)| op.kind.code() == code && !core.supports(&function.body, op))
    })
}

/// Returns the message of an error, without the operation that is decomposed, which [`MissingOp::part_of`] states.
fn reason_of(error: &Error) -> String {
    let (reason, _) = error.message.split_once("; '").unwrap_or((&error.message, ""));
    reason.to_owned()
}
