//! Lowers a StableHLO module to a graph: inlines calls and composites, flattens tuples and tokens, and closes regions over the
//! values that they capture.

mod array;
mod collective;
mod control;
mod custom_call;
mod dynamic;
mod elementwise;
mod foreign;
mod host;
mod indexing;
mod lapack;
mod linalg;
mod manual;
mod partial;
mod reducer;

pub(super) use control::composites_with_kernels;
pub(super) use custom_call::{calls_the_host, parameters};
pub(super) use partial::{Terms, Unreduced};

use super::api::{CompileError, CompileOptions, Result};
use crate::graph::{Builder, Constant, Graph, Op as Core, Shape, ValueId};
use pjrt_stablehlo::Module;
use pjrt_stablehlo::ir::{self, Block, Function, Op, OpId, Operation, TensorType, Type};
use refcpu_kernels::DType;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// The maximum nesting depth of calls and regions.
const MAX_DEPTH: usize = 200;

/// The maximum number of operations of a program after its calls are inlined.
const MAX_OPERATIONS: usize = 4_000_000;

/// Lowers the function `main` to a graph with flattened parameters and results.
///
/// # Errors
/// Returns an error if the program has no `main`, is invalid, or uses a feature that refcpu does not implement.
pub(super) fn lower(module: &Module, options: &CompileOptions, unreduced: &Unreduced) -> Result<Graph> {
    let main = module.main().ok_or_else(|| CompileError::invalid("the module has no function named main"))?;
    let entry = main.body.entry().ok_or_else(|| CompileError::invalid("the function main has no body"))?;
    let mut scope = Scope::new(module, options, main, 0);
    let mut arguments = Vec::new();
    let mut terms = unreduced.parameters.iter().copied().chain(std::iter::repeat(None));
    for argument in &main.body.block(entry).arguments {
        let shapes = shapes_of(main.body.ty(*argument))?;
        let parameter = |s: Shape| match terms.next().flatten() {
            Some(terms) => {
                let value = scope.b.parameter(s.with_dims(&[&[terms.count], &*s.dims].concat()));
                scope.reduce_terms(value, terms.reduction)
            }
            None => scope.b.parameter(s),
        };
        arguments.push(shapes.into_iter().map(parameter).collect::<Vec<_>>());
    }
    scope.bind_all(&main.body.block(entry).arguments, arguments);
    let mut results = scope.block(main.body.block(entry))?;
    for (result, terms) in results.iter_mut().zip(&unreduced.results) {
        if let Some(terms) = terms {
            *result = scope.as_terms(*result, *terms);
        }
    }
    Ok(scope.b.finish(results))
}

/// Returns the types of the arrays in a value of this type. A token is an array without elements.
///
/// # Errors
/// Returns an error if the type has dynamic sizes or quantized elements, or is not the type of a value.
pub(super) fn shapes_of(ty: &Type) -> Result<Vec<Shape>> {
    match ty {
        Type::Tensor(t) | Type::Buffer(t) => Ok(vec![shape_of(t)?]),
        Type::Token => Ok(vec![Shape::new(DType::Pred, &[0])]),
        Type::Tuple(parts) | Type::Future(parts) => {
            let mut all = Vec::new();
            for part in parts.iter() {
                all.extend(shapes_of(part)?);
            }
            Ok(all)
        }
        other => Err(CompileError::unimplemented(format!("values of type {other} are not supported"))),
    }
}

/// Returns the array type of a tensor.
pub(super) fn shape_of(t: &TensorType) -> Result<Shape> {
    if t.quantization().is_some() {
        return Err(CompileError::unimplemented(format!(
            "the type {t} has quantized elements, which are not supported"
        )));
    }
    let dtype = dtype_of(t)?;
    let sizes = t.static_dims().ok_or_else(|| {
        CompileError::unimplemented(format!("the type {t} has dynamic sizes, which are not supported"))
    })?;
    let dims = usizes(sizes)?;
    Shape::checked(dtype, &dims)
        .ok_or_else(|| CompileError::invalid(format!("the size in bytes of {t} is too large to address")))
}

fn dtype_of(t: &TensorType) -> Result<DType> {
    let name = match t.element_type() {
        ir::ElementType::Index => "i64",
        other => other.name(),
    };
    DType::from_mlir_name(name)
        .ok_or_else(|| CompileError::unimplemented(format!("the element type {name} is not supported")))
}

/// Converts sizes or dimension numbers of an attribute.
fn usizes(values: &[i64]) -> Result<Vec<usize>> {
    values
        .iter()
        .map(|v| {
            usize::try_from(*v)
                .map_err(|_| CompileError::invalid(format!("the list {values:?} contains a negative number")))
        })
        .collect()
}

/// Converts a number of an attribute.
fn to_usize(value: i64) -> Result<usize> {
    usize::try_from(value).map_err(|_| CompileError::invalid(format!("the number {value} is negative")))
}

/// The state of lowering a function or region.
struct Scope<'m> {
    module: &'m Module,
    options: &'m CompileOptions,
    function: &'m Function,
    b: Builder,
    /// The arrays of each value of the function.
    values: HashMap<ir::ValueId, Vec<ValueId>>,
    depth: usize,
    /// The number of operations lowered so far, in all scopes of the program. Inlining can multiply the operations of a program.
    lowered: Rc<Cell<usize>>,
}

impl<'m> Scope<'m> {
    fn new(module: &'m Module, options: &'m CompileOptions, function: &'m Function, depth: usize) -> Self {
        Self {
            module,
            options,
            function,
            b: Builder::new(),
            values: HashMap::new(),
            depth,
            lowered: Rc::default(),
        }
    }

    /// Creates a scope for a body in this one.
    fn inner(&self) -> Self {
        let inner = Self::new(self.module, self.options, self.function, self.depth + 1);
        Self { lowered: self.lowered.clone(), ..inner }
    }

    fn bind_all(&mut self, names: &[ir::ValueId], values: Vec<Vec<ValueId>>) {
        self.values.extend(names.iter().copied().zip(values));
    }

    /// Lowers the operations of a block. Returns the flattened operands of its terminator.
    fn block(&mut self, block: &Block) -> Result<Vec<ValueId>> {
        for id in &block.ops {
            let op = self.function.body.op(*id);
            if op.info().has(ir::Trait::Terminator) {
                return self.flat(&op.operands);
            }
            self.operation(*id, op)?;
        }
        Ok(vec![])
    }

    /// Adds the operation to an error that has none.
    fn placed(&self, op: &Operation, mut error: CompileError) -> CompileError {
        if error.op.is_empty() {
            error.op = op.kind.name().to_string();
            error.types = self.types(op);
            error.location = op.location.brief().to_string();
        }
        error
    }

    fn operation(&mut self, id: OpId, op: &'m Operation) -> Result<()> {
        self.b.set_location(&op.location);
        self.lowered.update(|count| count + 1);
        if self.lowered.get() > MAX_OPERATIONS {
            let message =
                format!("the program has more than {MAX_OPERATIONS} operations after its calls are inlined");
            return Err(CompileError::unimplemented(message));
        }
        let values = self.values_of(id, op).map_err(|error| self.placed(op, error))?;
        let mut rest = values.into_iter();
        for result in op.results {
            let count = flat_len(self.function.body.ty(result));
            self.values.insert(result, rest.by_ref().take(count).collect());
        }
        Ok(())
    }

    /// Returns the types of an operation for messages.
    fn types(&self, op: &Operation) -> String {
        let list = |ids: &mut dyn Iterator<Item = ir::ValueId>| {
            ids.map(|v| self.function.body.ty(v).to_string()).collect::<Vec<_>>().join(", ")
        };
        format!("({}) -> {}", list(&mut op.operands.iter().copied()), list(&mut op.results.iter()))
    }

    /// Returns the arrays of these values.
    fn flat(&self, values: &[ir::ValueId]) -> Result<Vec<ValueId>> {
        let mut all = Vec::with_capacity(values.len());
        for v in values {
            all.extend(
                self.values
                    .get(v)
                    .ok_or_else(|| CompileError::internal("a value is used before its definition"))?,
            );
        }
        Ok(all)
    }

    /// Returns the array of an operand.
    fn operand(&self, op: &Operation, index: usize) -> Result<ValueId> {
        match self.flat(&op.operands[index..=index])?[..] {
            [one] => Ok(one),
            _ => Err(CompileError::unimplemented(
                "an operand of this operation must be one array, not a tuple",
            )),
        }
    }

    fn shape(&self, value: ValueId) -> Shape {
        self.b.shape(value).clone()
    }

    /// Returns the types of an operation's results, flattened.
    fn result_shapes(&self, op: &Operation) -> Result<Vec<Shape>> {
        let mut all = Vec::new();
        for r in op.results {
            all.extend(shapes_of(self.function.body.ty(r))?);
        }
        Ok(all)
    }

    /// Returns the type of an operation's only result.
    fn result_shape(&self, op: &Operation) -> Result<Shape> {
        match &self.result_shapes(op)?[..] {
            [one] => Ok(one.clone()),
            other => Err(CompileError::internal(format!("expected one result, found {}", other.len()))),
        }
    }

    fn region(&self, op: OpId, index: usize) -> Result<&'m Block> {
        self.function
            .body
            .region_block(self.function.body.op(op), index)
            .ok_or_else(|| CompileError::invalid(format!("region {index} has no block")))
    }

    /// Returns the values of this scope that blocks use, in a fixed order.
    fn captures(&self, blocks: &[&Block]) -> Vec<ir::ValueId> {
        let (mut seen, mut found) = (HashSet::new(), Vec::new());
        let mut work: Vec<&Block> = blocks.to_vec();
        while let Some(block) = work.pop() {
            for id in &block.ops {
                let op = self.function.body.op(*id);
                for v in &op.operands {
                    if self.values.contains_key(v) && seen.insert(*v) {
                        found.push(*v);
                    }
                }
                for r in &op.regions {
                    work.extend(
                        self.function.body.region(*r).blocks.iter().map(|b| self.function.body.block(*b)),
                    );
                }
            }
        }
        found.sort_unstable();
        found
    }

    /// Lowers a block to a closed graph. Its parameters are the arguments of the block, flattened and with these types,
    /// followed by the arrays of `captures` that are not constants.
    fn body(&self, block: &Block, arguments: &[Shape], captures: &[ir::ValueId]) -> Result<Graph> {
        if self.depth >= MAX_DEPTH {
            return Err(CompileError::unimplemented(format!(
                "regions and calls are nested more than {MAX_DEPTH} levels deep"
            )));
        }
        let mut inner = self.inner();
        let mut shapes = arguments.iter();
        for a in &block.arguments {
            let count = flat_len(self.function.body.ty(*a));
            let values: Vec<ValueId> =
                shapes.by_ref().take(count).map(|s| inner.b.parameter(s.clone())).collect();
            inner.values.insert(*a, values);
        }
        for c in captures {
            let values = self.values[c].iter().map(|v| match self.b.graph().constant(*v) {
                Some(constant) => inner.b.constant(constant.clone()),
                None => inner.b.parameter(self.shape(*v)),
            });
            let values = values.collect();
            inner.values.insert(*c, values);
        }
        let results = inner.block(block)?;
        Ok(inner.b.finish(results))
    }

    /// Returns the arrays that [`Self::body`] adds parameters for.
    fn captured(&self, captures: &[ir::ValueId]) -> Vec<ValueId> {
        let all = captures.iter().flat_map(|c| &self.values[c]).copied();
        all.filter(|v| self.b.graph().constant(*v).is_none()).collect()
    }

    /// Lowers a region over scalars of these types, such as that of a reduction, to a closed graph. All values that it captures
    /// must be constants. The region may declare narrower arguments.
    fn scalar_body(&self, block: &Block, arguments: &[Shape]) -> Result<Graph> {
        let captures = self.captures(&[block]);
        if !self.captured(&captures).is_empty() {
            return Err(CompileError::unimplemented(
                "the region captures values of the program that are not constants, which is not supported here",
            ));
        }
        let declared = self.declared(block)?;
        let mut body = self.body(block, &declared, &captures)?;
        if declared != arguments {
            let mut b = Builder::new();
            let given: Vec<ValueId> = arguments.iter().map(|shape| b.parameter(shape.clone())).collect();
            let given: Vec<ValueId> =
                given.iter().zip(&declared).map(|(v, shape)| b.convert(*v, shape.dtype)).collect();
            let results = b.inline(&body, &given);
            body = b.finish(results);
        }
        if body.nodes().iter().any(|node| node.op.has_effect()) {
            // Kernels run such regions for several elements at once, and an unspecified number of times.
            return Err(CompileError::unimplemented(
                "the region communicates with other devices or the host, which is not supported here",
            ));
        }
        Ok(body)
    }

    /// Returns the types of a block's arguments, flattened.
    fn declared(&self, block: &Block) -> Result<Vec<Shape>> {
        let types = block.arguments.iter().map(|argument| shapes_of(self.function.body.ty(*argument)));
        Ok(types.collect::<Result<Vec<_>>>()?.concat())
    }

    /// Lowers a function to a separate graph, with parameters of these types.
    fn function_body(&self, name: &str, parameters: &[Shape]) -> Result<Graph> {
        let mut inner = self.inner();
        let arguments = parameters.iter().map(|s| inner.b.parameter(s.clone())).collect();
        let results = inner.call(name, arguments)?;
        Ok(inner.b.finish(results))
    }

    /// Inlines the body of a function.
    fn call(&mut self, callee: &str, arguments: Vec<ValueId>) -> Result<Vec<ValueId>> {
        if self.depth >= MAX_DEPTH {
            return Err(CompileError::unimplemented(format!(
                "calls are nested more than {MAX_DEPTH} levels deep; the function {callee} may be recursive"
            )));
        }
        let function = self.module.function(callee).ok_or_else(|| {
            CompileError::invalid(format!("the module does not define the function {callee}"))
        })?;
        let entry = function
            .body
            .entry()
            .ok_or_else(|| CompileError::invalid(format!("the function {callee} has no body")))?;
        let block = function.body.block(entry);
        let mut values = HashMap::new();
        let mut rest = arguments.into_iter();
        for a in &block.arguments {
            let count = flat_len(function.body.ty(*a));
            values.insert(*a, rest.by_ref().take(count).collect());
        }
        let outer =
            (std::mem::replace(&mut self.function, function), std::mem::replace(&mut self.values, values));
        self.depth += 1;
        let results = self.block(block);
        self.depth -= 1;
        (self.function, self.values) = outer;
        results
    }

    /// Returns the elements of an operand that must be a constant.
    fn constant_integers(&self, value: ValueId, what: &str) -> Result<Vec<i64>> {
        self.b.graph().constant(value).and_then(|c| c.integers(1024)).ok_or_else(|| {
            CompileError::unimplemented(format!("{what} must be a constant of at most 1024 integers"))
        })
    }

    fn values_of(&mut self, id: OpId, op: &'m Operation) -> Result<Vec<ValueId>> {
        if let Some(values) = self.elementwise(op)? {
            return Ok(values);
        }
        match &op.kind {
            Op::Constant(c) => {
                let constant = constant(&c.value, self.result_shape(op)?)?;
                Ok(vec![self.b.constant(constant)])
            }
            Op::Iota(iota) => {
                let shape = self.result_shape(op)?;
                let dim = to_usize(iota.iota_dimension)?;
                Ok(vec![self.b.iota(shape, dim)])
            }
            Op::CreateToken(_) | Op::AfterAll(_) => {
                Ok(vec![self.b.constant(Constant::zero(Shape::new(DType::Pred, &[0])))])
            }
            Op::Tuple(_) => self.flat(&op.operands),
            Op::GetTupleElement(get) => {
                let Type::Tuple(parts) = self.function.body.ty(op.operand(0)) else {
                    return Err(CompileError::invalid("the operand is not a tuple"));
                };
                let index = to_usize(get.index)?;
                let skip = parts.iter().take(index).map(flat_len).sum();
                let count = parts.get(index).map_or(0, flat_len);
                Ok(self.flat(&op.operands)?.into_iter().skip(skip).take(count).collect())
            }
            Op::OptimizationBarrier(_) => {
                let operands = self.flat(&op.operands)?;
                let shapes = operands.iter().map(|v| self.shape(*v)).collect();
                Ok(self.b.node(Core::Barrier, operands, shapes))
            }
            // A sharding has no effect on whole arrays.
            Op::ShardingConstraint(_) | Op::Reshard(_) => self.flat(&op.operands),
            Op::ShardingGroup(_) => Ok(vec![]),
            _ => self.values_of_family(id, op),
        }
    }

    /// Lowers an operation of one of the other files.
    fn values_of_family(&mut self, id: OpId, op: &'m Operation) -> Result<Vec<ValueId>> {
        let families = [
            Self::array_op,
            Self::indexing_op,
            Self::control_op,
            Self::collective_op,
            Self::host_op,
            Self::dynamic_op,
        ];
        for family in families {
            if let Some(values) = family(self, id, op)? {
                return Ok(values);
            }
        }
        Err(CompileError::unimplemented("refcpu does not implement this operation"))
    }
}

/// Returns the number of arrays in a value of this type.
fn flat_len(ty: &Type) -> usize {
    match ty {
        Type::Tuple(parts) | Type::Future(parts) => parts.iter().map(flat_len).sum(),
        _ => 1,
    }
}

/// Converts a literal to a constant of this type.
fn constant(value: &ir::Literal, shape: Shape) -> Result<Constant> {
    let dtype = shape.dtype;
    Ok(match (value.splat(), value.data()) {
        (Some(element), _) => Constant::splat(shape, extended(element.into_owned(), dtype)),
        (None, ir::LiteralData::Dense(bytes)) if dtype.bits() >= 8 => Constant::dense(shape, bytes.clone()),
        _ => {
            let dense = value.dense_bytes().map_err(|e| CompileError::invalid(e.to_string()))?;
            Constant::dense(shape, extended(dense.into_owned(), dtype))
        }
    })
}

/// Sign-extends signed integers of less than a byte, as kernels require. Programs need not.
fn extended(mut elements: Vec<u8>, dtype: DType) -> Vec<u8> {
    let unused = 8u32.saturating_sub(dtype.bits() as u32);
    if unused > 0 && dtype.compute().is_signed_integer() {
        elements.iter_mut().for_each(|e| *e = (((*e << unused) as i8) >> unused) as u8);
    }
    elements
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_call_others_twice_are_refused_once_they_are_too_many_operations() {
        let mut text =
            "func.func private @f0(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }".to_owned();
        let ty = "(tensor<f32>) -> tensor<f32>";
        for k in 1..=40 {
            let callee = k - 1;
            text.push_str(&format!(
                "func.func @{}(%x: tensor<f32>) -> tensor<f32> {{
                   %0 = func.call @f{callee}(%x) : {ty}
                   %1 = func.call @f{callee}(%x) : {ty}
                   return %1 : tensor<f32>
                 }}",
                if k == 40 { "main".to_owned() } else { format!("f{k}") }
            ));
        }
        let module = pjrt_stablehlo::parse(text).unwrap();
        let error =
            lower(&module, &CompileOptions::default(), &Unreduced::default()).map(|_| ()).unwrap_err();
        assert!(error.message.contains(&MAX_OPERATIONS.to_string()), "{error}");
    }
}
