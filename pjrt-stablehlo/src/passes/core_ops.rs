//! The set of operations that a device has.

use std::collections::BTreeSet;

use super::rules;
use crate::ir::{Op, OpCode, Str, Trait};

/// The operations that a device implements itself: what [`decompose`](super::decompose) may leave in a program.
///
/// [`CoreOps::default`] is a set that has no two ways to say one thing. Start from it and add what the device does
/// better as a whole, or take away what it lacks:
///
/// ```
/// use pjrt_stablehlo::passes::CoreOps;
/// use pjrt_stablehlo::ir::OpCode;
///
/// let core = CoreOps::default()
///     .with(OpCode::BatchNormInference) // a kernel of the device
///     .with_composite("chlo.erf") // another, by the name of the composite
///     .without(OpCode::Tan) // made of sine and cosine
///     .without(OpCode::FuncCall); // calls are inlined: the program is one function
/// assert!(core.contains(OpCode::Add) && !core.contains(OpCode::BatchNormTraining));
/// ```
///
/// Operations that end blocks (`func.return`, `stablehlo.return`, `sdy.return`) are always in the set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreOps {
    ops: BTreeSet<OpCode>,
    others: BTreeSet<Str>,
    composites: BTreeSet<Str>,
    keeps_quantized_types: bool,
    keeps_bounded_sizes: bool,
}

impl Default for CoreOps {
    /// Every operation of the table but those that older programs have, that only name a computation, or that are
    /// made of others without a loss of accuracy or speed that matters. The page "Core operations" of the
    /// documentation lists them. Quantized types, tuples and futures are not kept.
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
    /// Exactly these operations, without composites, quantized types, and operations outside of the table.
    pub fn from_ops(ops: impl IntoIterator<Item = OpCode>) -> Self {
        let terminators = OpCode::ALL.iter().copied().filter(|op| op.info().has(Trait::Terminator));
        CoreOps {
            ops: ops.into_iter().chain(terminators).filter(|&op| op != OpCode::Other).collect(),
            others: BTreeSet::new(),
            composites: BTreeSet::new(),
            keeps_quantized_types: false,
            keeps_bounded_sizes: true,
        }
    }

    /// The same set with an operation. `stablehlo.tuple` or `stablehlo.get_tuple_element` keeps tuples altogether;
    /// `stablehlo.composite` keeps all composites. [`OpCode::Other`] is no operation: see [`CoreOps::with_other`].
    #[must_use]
    pub fn with(mut self, op: OpCode) -> Self {
        if op != OpCode::Other {
            self.ops.insert(op);
        }
        self
    }

    /// The same set without an operation. Without `func.call`, calls are inlined.
    #[must_use]
    pub fn without(mut self, op: OpCode) -> Self {
        if !op.info().has(Trait::Terminator) {
            self.ops.remove(&op);
        }
        self
    }

    /// The same set with an operation that the op table does not have, by its full name: `chlo.erf`, or an
    /// operation of another dialect.
    #[must_use]
    pub fn with_other(mut self, name: impl Into<Str>) -> Self {
        self.others.insert(name.into());
        self
    }

    /// The same set with a composite, by its name: `chlo.top_k`. Its decomposition function stays in the program.
    #[must_use]
    pub fn with_composite(mut self, name: impl Into<Str>) -> Self {
        self.composites.insert(name.into());
        self
    }

    /// The same set for a device that computes with quantized types; otherwise they become integers and explicit
    /// arithmetic.
    #[must_use]
    pub fn with_quantized_types(mut self) -> Self {
        self.keeps_quantized_types = true;
        self
    }

    /// The same set for a device all of whose sizes are known when it compiles. A tensor with a size that is known at run time
    /// only, and has a bound (`#stablehlo.bounds`), becomes one of the bound's size, and a scalar that says how many of its
    /// indices count. Arguments and results of `main` cannot have such sizes then.
    #[must_use]
    pub fn without_bounded_sizes(mut self) -> Self {
        self.keeps_bounded_sizes = false;
        self
    }

    /// Whether an operation of the table is in the set.
    pub fn contains(&self, op: OpCode) -> bool {
        self.ops.contains(&op)
    }

    /// Whether an operation can stay in a program: by its code, or a composite or an operation outside of the table
    /// by its name. A custom call that stands for one of CHLO's functions, such as `mhlo.erf`, has that function's name.
    pub fn contains_op(&self, op: &Op) -> bool {
        match op {
            Op::Other(other) => self.others.contains(&other.name),
            Op::Composite(composite) => {
                self.contains(OpCode::Composite) || self.composites.contains(&composite.name)
            }
            Op::CustomCall(call) => match rules::rule_of_call(call) {
                Some(rule) => self.others.contains(rule.name),
                None => self.contains(OpCode::CustomCall),
            },
            op => self.contains(op.code()),
        }
    }

    /// Whether quantized types stay in programs.
    pub fn keeps_quantized_types(&self) -> bool {
        self.keeps_quantized_types
    }

    /// Whether sizes that are known at run time only, and have bounds, stay in programs.
    pub fn keeps_bounded_sizes(&self) -> bool {
        self.keeps_bounded_sizes
    }

    /// Whether tuples stay in programs.
    pub fn keeps_tuples(&self) -> bool {
        self.contains(OpCode::Tuple) || self.contains(OpCode::GetTupleElement)
    }

    /// Whether futures stay in programs.
    pub fn keeps_futures(&self) -> bool {
        self.contains(OpCode::AsyncStart) || self.contains(OpCode::AsyncDone)
    }

    /// The operations of the table that are in the set, in the table's order.
    pub fn ops(&self) -> impl Iterator<Item = OpCode> + '_ {
        self.ops.iter().copied()
    }
}
