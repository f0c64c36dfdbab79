//! The set of operations that a device implements.

use std::collections::BTreeSet;

use super::rules;
use crate::ir::{Op, OpCode, Str, Trait};

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
/// The operations that terminate blocks (`func.return`, `stablehlo.return`, `sdy.return`) are always in the set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreOps {
    ops: BTreeSet<OpCode>,
    others: BTreeSet<Str>,
    composites: BTreeSet<Str>,
    keeps_quantized_types: bool,
    keeps_bounded_sizes: bool,
}

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
        CoreOps {
            ops: ops.into_iter().chain(terminators).filter(|&op| op != OpCode::Other).collect(),
            others: BTreeSet::new(),
            composites: BTreeSet::new(),
            keeps_quantized_types: false,
            keeps_bounded_sizes: true,
        }
    }

    /// Returns the set with an operation added. Adding `stablehlo.tuple` or `stablehlo.get_tuple_element` keeps all
    /// tuples; adding `stablehlo.composite` keeps all composites. [`OpCode::Other`] is ignored; see
    /// [`CoreOps::with_other`].
    #[must_use]
    pub fn with(mut self, op: OpCode) -> Self {
        if op != OpCode::Other {
            self.ops.insert(op);
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

    /// Returns `true` if the set contains an operation of the op table.
    pub fn contains(&self, op: OpCode) -> bool {
        self.ops.contains(&op)
    }

    /// Returns `true` if the set contains the operation. Composites and operations outside the op table are
    /// identified by name. Custom calls that represent functions of CHLO, such as `mhlo.erf`, are identified by that
    /// function's name, and those that represent HLO's `ragged-all-to-all` by `ragged_all_to_all`.
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

    /// Returns `true` if quantized types remain in programs.
    pub fn keeps_quantized_types(&self) -> bool {
        self.keeps_quantized_types
    }

    /// Returns `true` if dynamic sizes with bounds remain in programs.
    pub fn keeps_bounded_sizes(&self) -> bool {
        self.keeps_bounded_sizes
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
        self.ops.iter().copied()
    }
}
