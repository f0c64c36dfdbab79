//! The set of operations that a device implements.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use super::rules;
use super::split_complex::{is_complex, is_split};
use crate::ir::{Body, ElementType, Op, OpCode, Operation, Str, Trait};

/// The operations that a device implements, which are those that [`decompose`](super::decompose) may leave in a
/// program.
///
/// [`CoreOps::default`] is a small set without redundant operations. Add the operations that the device implements more
/// efficiently as a whole, and remove those that it lacks:
///
/// ```
/// use pjrt_stablehlo::passes::CoreOps;
/// use pjrt_stablehlo::ir::OpCode;
///
/// let core = CoreOps::default()
///     .with(OpCode::BatchNormInference) // implemented by a kernel of the device
///     .with_composite("chlo.erf") // also implemented by a kernel
///     .without(OpCode::Tan) // computed from sine and cosine
///     .without(OpCode::FuncCall); // calls are inlined
/// assert!(core.contains(OpCode::Add) && !core.contains(OpCode::BatchNormTraining));
/// ```
///
/// A device may implement an operation for some element types, or for some operands. [`decompose`](super::decompose)
/// replaces the other uses of the operation as if it were not in the set. [`CoreOps::for_elements`] limits all
/// operations, [`CoreOps::with_elements`] limits one, and [`CoreOps::with_condition`] decides by a function:
///
/// ```
/// use pjrt_stablehlo::passes::{CoreOps, decompose};
/// use pjrt_stablehlo::ir::{ElementType, OpCode};
///
/// let core = CoreOps::default()
///     .named("mychip") // in errors
///     .for_elements([ElementType::F32, ElementType::BF16, ElementType::I32, ElementType::I1])
///     .with_elements(OpCode::Exponential, [ElementType::F32]);
/// let program = "func.func @main(%x: tensor<4xbf16>) -> tensor<4xbf16> {
///     %0 = stablehlo.exponential %x : tensor<4xbf16>
///     return %0 : tensor<4xbf16>
/// }";
/// let error = decompose(&pjrt_stablehlo::parse(program.to_owned())?, &core).unwrap_err();
/// let message =
///     "stablehlo.exponential: mychip supports this operation for f32, but not for bf16, and it cannot be decomposed";
/// assert_eq!(error.message, message.trim_start_matches("stablehlo.exponential: "));
/// # Ok::<(), pjrt_stablehlo::Error>(())
/// ```
///
/// The operations that terminate blocks (`func.return`, `stablehlo.return`, `sdy.return`) are always in the set.
#[derive(Clone, Debug)]
pub struct CoreOps {
    name: Str,
    ops: BTreeMap<OpCode, Limits>,
    /// The element types of the device; `None` if it has all.
    elements: Option<BTreeSet<ElementType>>,
    /// The float types that the device computes in wider ones.
    wider: BTreeMap<ElementType, ElementType>,
    others: BTreeSet<Str>,
    composites: BTreeSet<Str>,
    keeps_quantized_types: bool,
    keeps_bounded_sizes: bool,
    keeps_complex_numbers: bool,
}

/// A function that returns `true` if the device implements an operation of the body.
pub type Condition = fn(&Body, &Operation) -> bool;

/// The uses of an operation that the device implements.
#[derive(Clone, Debug, Default)]
struct Limits {
    /// The element types; `None` for all that the device has.
    elements: Option<BTreeSet<ElementType>>,
    condition: Option<Condition>,
    /// `true` if the element types of the device do not limit the operation either.
    is_unlimited: bool,
}

/// The name of a device in errors, unless [`CoreOps::named`] sets another.
const UNNAMED: &str = "the device";

impl Default for CoreOps {
    /// Creates the default set: every operation of the op table, except those that are deprecated, that only name a
    /// computation, or that decompose without a significant loss of accuracy or speed. The page "Core operations" of
    /// the documentation lists the set. Quantized types, tuples and futures are not kept.
    fn default() -> Self {
        let mut core = CoreOps::from_ops(OpCode::ALL.iter().copied());
        for rule in rules::RULES {
            if rule.by_default {
                core.ops.remove(&rule.op);
            }
        }
        core
    }
}

impl CoreOps {
    /// Creates the set of exactly these operations, without composites, quantized types, and operations outside the
    /// op table.
    pub fn from_ops(ops: impl IntoIterator<Item = OpCode>) -> Self {
        let terminators = OpCode::ALL.iter().copied().filter(|op| op.info().has(Trait::Terminator));
        let ops = ops.into_iter().chain(terminators).filter(|&op| op != OpCode::Other);
        CoreOps {
            name: UNNAMED.into(),
            ops: ops.map(|op| (op, Limits::default())).collect(),
            elements: None,
            wider: BTreeMap::new(),
            others: BTreeSet::new(),
            composites: BTreeSet::new(),
            keeps_quantized_types: false,
            keeps_bounded_sizes: true,
            keeps_complex_numbers: true,
        }
    }

    /// Returns the set with this name of the device, which errors contain: "mychip does not support this operation".
    #[must_use]
    pub fn named(mut self, name: impl Into<Str>) -> Self {
        self.name = name.into();
        self
    }

    /// Returns the set for a device that has only these element types: no operation with another element type among its
    /// operands and results is in the set. Composites and operations outside the op table are not limited.
    ///
    /// Without 64-bit integers, `decompose` computes in 32-bit integers what it knows to have only numbers of these, such as the
    /// counters of JAX's random numbers.
    #[must_use]
    pub fn for_elements(mut self, elements: impl IntoIterator<Item = ElementType>) -> Self {
        self.elements = Some(elements.into_iter().collect());
        self
    }

    /// Returns `true` if the device does not have this element type.
    pub(super) fn lacks(&self, element: ElementType) -> bool {
        self.elements.as_ref().is_some_and(|elements| !elements.contains(&element))
    }

    /// Returns the set with an operation added for these element types only: those of all its operands and results. They
    /// replace those of [`CoreOps::for_elements`] for this operation.
    #[must_use]
    pub fn with_elements(mut self, op: OpCode, elements: impl IntoIterator<Item = ElementType>) -> Self {
        self = self.with(op);
        if let Some(limits) = self.ops.get_mut(&op) {
            limits.elements = Some(elements.into_iter().collect());
        }
        self
    }

    /// Returns the set for a device that holds arrays of one float type, and computes them in a wider one: `decompose` converts
    /// the operands of each operation that the set does not contain for `narrow` to `wide`, and its results back. The results
    /// are those of `narrow`, because they are rounded after each operation. A reduction, a product or a convolution is one
    /// operation, so its sums are not rounded in between. The conversions between the two types are added to the set. Loops,
    /// branches and calls may pass on arrays of `narrow`.
    ///
    /// ```
    /// use pjrt_stablehlo::ir::ElementType;
    /// use pjrt_stablehlo::passes::{CoreOps, decompose};
    ///
    /// let core = CoreOps::default()
    ///     .for_elements([ElementType::F32, ElementType::I32, ElementType::I1])
    ///     .widened(ElementType::BF16, ElementType::F32);
    /// let program = "func.func @main(%x: tensor<4xbf16>) -> tensor<4xbf16> {
    ///     %0 = stablehlo.sine %x : tensor<4xbf16>
    ///     return %0 : tensor<4xbf16>
    /// }";
    /// let program = decompose(&pjrt_stablehlo::parse(program.to_owned())?, &core)?;
    /// let main = program.main().unwrap();
    /// let ops: Vec<_> = main.ops().map(|(_, op)| op.kind.name()).collect();
    /// assert_eq!(ops, ["stablehlo.convert", "stablehlo.sine", "stablehlo.convert", "func.return"]);
    /// # Ok::<(), pjrt_stablehlo::Error>(())
    /// ```
    ///
    /// # Panics
    /// Panics if one of the types is no float type, or if `wide` has no more bits than `narrow`.
    #[must_use]
    pub fn widened(mut self, narrow: ElementType, wide: ElementType) -> Self {
        let is_wider = narrow.is_float() && wide.is_float() && wide.bits() > narrow.bits();
        assert!(is_wider, "{wide} is no wider float type than {narrow}");
        self.wider.insert(narrow, wide);
        self.with(OpCode::Convert)
    }

    /// Returns the set with an operation added if a function returns `true` for it, for conditions other than element types.
    /// The limits of element types apply in addition. A second condition for an operation replaces the first one: write
    /// conditions that all must hold as one function.
    ///
    /// ```
    /// use pjrt_stablehlo::ir::{OpCode, Type};
    /// use pjrt_stablehlo::passes::CoreOps;
    ///
    /// // Transposes matrices only.
    /// let core = CoreOps::default().with_condition(OpCode::Transpose, |body, op| {
    ///     body.ty(op.result()).as_tensor().is_some_and(|ty| ty.rank() == 2)
    /// });
    /// # assert!(core.contains(OpCode::Transpose));
    /// ```
    #[must_use]
    pub fn with_condition(mut self, op: OpCode, condition: Condition) -> Self {
        self = self.with(op);
        if let Some(limits) = self.ops.get_mut(&op) {
            limits.condition = Some(condition);
        }
        self
    }

    /// Returns the set with an operation added. Adding `stablehlo.tuple` or `stablehlo.get_tuple_element` keeps all
    /// tuples; adding `stablehlo.composite` keeps all composites. An operation that is in the set already keeps its limits.
    /// [`OpCode::Other`] is ignored; see [`CoreOps::with_other`].
    #[must_use]
    pub fn with(mut self, op: OpCode) -> Self {
        if op != OpCode::Other {
            self.ops.entry(op).or_default();
        }
        self
    }

    /// Returns the set with an operation removed. Without `func.call`, calls are inlined.
    #[must_use]
    pub fn without(mut self, op: OpCode) -> Self {
        if !op.info().has(Trait::Terminator) {
            self.ops.remove(&op);
        }
        self
    }

    /// Returns the set with an operation outside the op table added, given by its full name, such as `chlo.erf`.
    #[must_use]
    pub fn with_other(mut self, name: impl Into<Str>) -> Self {
        self.others.insert(name.into());
        self
    }

    /// Returns the set with a composite added, given by its name, such as `chlo.top_k`. The composite's decomposition
    /// function remains in the program.
    #[must_use]
    pub fn with_composite(mut self, name: impl Into<Str>) -> Self {
        self.composites.insert(name.into());
        self
    }

    /// Returns the set for a device that computes with quantized types. By default, quantized types are replaced by integers
    /// and explicit arithmetic.
    #[must_use]
    pub fn with_quantized_types(mut self) -> Self {
        self.keeps_quantized_types = true;
        self
    }

    /// Returns the set for a device that needs to know all sizes at compile time. A tensor with a dynamic size that has a
    /// bound (`#stablehlo.bounds`) becomes a tensor of the bound's size and a scalar with the number of valid indices. The
    /// arguments and results of `main` must then have static sizes.
    #[must_use]
    pub fn without_bounded_sizes(mut self) -> Self {
        self.keeps_bounded_sizes = false;
        self
    }

    /// Returns the set for a device that has no complex numbers. Each complex tensor becomes two tensors, of the real and of the
    /// imaginary parts, and the functions of complex numbers become those of the parts. The limits of the set apply to the
    /// operations on parts.
    ///
    /// A complex argument or result of `main` becomes an array of floats with one more dimension, of size 2, for the two parts.
    /// Its bytes are those of the complex numbers, so that the buffers of hosts need no conversion. Its shardings are removed:
    /// divide a program among devices before.
    ///
    /// ```
    /// use pjrt_stablehlo::passes::{CoreOps, decompose};
    ///
    /// let core = CoreOps::default().without_complex_numbers();
    /// let program = "func.func @main(%x: tensor<4xcomplex<f32>>) -> tensor<4xf32> {
    ///     %0 = stablehlo.multiply %x, %x : tensor<4xcomplex<f32>>
    ///     %1 = stablehlo.real %0 : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
    ///     return %1 : tensor<4xf32>
    /// }";
    /// let program = decompose(&pjrt_stablehlo::parse(program.to_owned())?, &core)?;
    /// assert_eq!(program.main().unwrap().argument_types()[0].to_string(), "tensor<4x2xf32>");
    /// # Ok::<(), pjrt_stablehlo::Error>(())
    /// ```
    #[must_use]
    pub fn without_complex_numbers(mut self) -> Self {
        self.keeps_complex_numbers = false;
        self
    }

    /// Returns the name of the device.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns `true` if the set contains an operation of the op table, perhaps with limits.
    pub fn contains(&self, op: OpCode) -> bool {
        self.ops.contains_key(&op)
    }

    /// Returns `true` if the set contains an operation of the op table for all element types and operands.
    pub(super) fn contains_unlimited(&self, op: OpCode) -> bool {
        let limits = self.ops.get(&op);
        limits.is_some_and(|limits| limits.is_unlimited)
    }

    /// Returns the set with an operation added for all element types and operands, even those that the device lacks.
    pub(super) fn with_unlimited(mut self, op: OpCode) -> Self {
        self.ops.insert(op, Limits { is_unlimited: true, ..Limits::default() });
        self
    }

    /// Returns `true` if the set contains the operation, perhaps with limits. Composites and operations outside the op table are
    /// identified by name. Custom calls that represent functions of CHLO, such as `mhlo.erf`, are identified by that
    /// function's name, and those that represent operations of HLO by their targets: `ragged_all_to_all`, `Qr` and
    /// `ProductOfElementaryHouseholderReflectors`.
    pub fn contains_op(&self, op: &Op) -> bool {
        match op {
            Op::Other(other) => self.others.contains(&other.name),
            Op::Composite(composite) => {
                self.contains(OpCode::Composite) || self.composites.contains(&composite.name)
            }
            Op::CustomCall(call) => match rules::function_of_call(call) {
                Some(name) => self.others.contains(name),
                None => self.contains(OpCode::CustomCall),
            },
            op => self.contains(op.code()),
        }
    }

    /// Returns `true` if the set contains this use of an operation: the operation is in the set, and its element types and
    /// operands are within the limits.
    pub fn supports(&self, body: &Body, op: &Operation) -> bool {
        self.refusal(body, op).is_none()
    }

    /// Returns the reason why the set does not contain this use of an operation, as a sentence without a period; `None` if
    /// it contains it.
    pub fn refusal(&self, body: &Body, op: &Operation) -> Option<String> {
        if !self.keeps_complex_numbers && !matches!(op.kind, Op::FuncCall(_)) && is_complex(body, op) {
            let name = &self.name;
            return (!is_split(&op.kind))
                .then(|| format!("{name} does not support this operation for complex numbers"));
        }
        if !self.contains_op(&op.kind) {
            return Some(format!("{} does not support this operation", self.name));
        }
        self.limit(body, op).map(|limit| format!("{} {limit}", self.name))
    }

    /// Returns the limit that an operation of the set exceeds, as the predicate of a sentence.
    fn limit(&self, body: &Body, op: &Operation) -> Option<String> {
        if op.info().has(Trait::Terminator) {
            return None;
        }
        let limits = self.ops.get(&op.kind.code()).filter(|limits| !limits.is_unlimited)?;
        let found = body.element_types(op);
        // A conversion is named with both types, of which one may be of no help.
        let use_of = |foreign: &dyn Display| match (&op.kind, &found[..]) {
            (Op::Convert(_), [from, to]) => format!("from {from} to {to}"),
            _ => format!("for {foreign}"),
        };
        if let Some(allowed) = limits.elements.as_ref().or(self.elements.as_ref())
            && !self.is_conversion_to_wider(op, &found)
        {
            let passes_on = passes_on(&op.kind);
            let is_allowed = |element: &ElementType| {
                allowed.contains(element) || passes_on && self.wider.contains_key(element)
            };
            if let Some(foreign) = found.iter().find(|element| !is_allowed(element)) {
                let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
                let allowed = allowed.join(", ");
                return Some(format!("supports this operation for {allowed}, but not {}", use_of(foreign)));
            }
        }
        let is_met = limits.condition.is_none_or(|condition| condition(body, op));
        (!is_met).then(|| match op.kind {
            Op::Convert(_) => format!("does not support this operation {}", use_of(&"these operands")),
            _ => "does not support this operation with these operands or attributes".to_owned(),
        })
    }

    /// Returns the type in which the device computes a float type, if it is another one.
    pub(super) fn wider(&self, element: ElementType) -> Option<ElementType> {
        self.wider.get(&element).copied()
    }

    /// Returns `true` if the operation converts between a type and the one in which it is computed. `elements` are those of the
    /// operation.
    pub(super) fn is_conversion_to_wider(&self, op: &Operation, elements: &[ElementType]) -> bool {
        let [from, to] = elements else { return false };
        matches!(op.kind, Op::Convert(_))
            && (self.wider(*from) == Some(*to) || self.wider(*to) == Some(*from))
    }

    /// Returns `true` if quantized types remain in programs.
    pub fn keeps_quantized_types(&self) -> bool {
        self.keeps_quantized_types
    }

    /// Returns `true` if dynamic sizes with bounds remain in programs.
    pub fn keeps_bounded_sizes(&self) -> bool {
        self.keeps_bounded_sizes
    }

    /// Returns `true` if complex numbers remain in programs.
    pub fn keeps_complex_numbers(&self) -> bool {
        self.keeps_complex_numbers
    }

    /// Returns `true` if tuples remain in programs.
    pub fn keeps_tuples(&self) -> bool {
        self.contains(OpCode::Tuple) || self.contains(OpCode::GetTupleElement)
    }

    /// Returns `true` if futures remain in programs.
    pub fn keeps_futures(&self) -> bool {
        self.contains(OpCode::AsyncStart) || self.contains(OpCode::AsyncDone)
    }

    /// Returns the operations of the op table that are in the set, in the order of the table.
    pub fn ops(&self) -> impl Iterator<Item = OpCode> + '_ {
        self.ops.keys().copied()
    }
}

/// Returns `true` if an operation passes on arrays without access to their elements.
fn passes_on(op: &Op) -> bool {
    matches!(
        op,
        Op::AsyncDone(_)
            | Op::AsyncStart(_)
            | Op::Case(_)
            | Op::FuncCall(_)
            | Op::GetTupleElement(_)
            | Op::If(_)
            | Op::OptimizationBarrier(_)
            | Op::ManualComputation(_)
            | Op::Reshard(_)
            | Op::ShardingConstraint(_)
            | Op::ShardingGroup(_)
            | Op::Tuple(_)
            | Op::While(_)
    )
}
