//! The table of tests: the operations, and the element types for which the verifier accepts them.

use crate::generator;
use crate::types::{Element, elements};
use pjrt_stablehlo::Module;
use pjrt_stablehlo::ir::{Body, ElementType, OpCode, Type};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// The number of programs of each pair that the verifier must reject before the pair is excluded.
const ATTEMPTS: u64 = 4;

static ALLOWED: OnceLock<BTreeSet<(OpCode, &'static str)>> = OnceLock::new();

thread_local! {
    /// `true` while the table is computed, when the allowed pairs are not known.
    static MAKING: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether the verifier accepts the operation on elements of this type.
pub(crate) fn is_allowed(code: OpCode, element: Element) -> bool {
    if MAKING.get() {
        return is_basic(code, element);
    }
    allowed().contains(&(code, element.family()))
}

/// Returns whether a program that computes the table may contain the operation on elements of this type.
fn is_basic(code: OpCode, element: Element) -> bool {
    use pjrt_stablehlo::ir::ElementKind::*;
    match code {
        OpCode::Add
        | OpCode::Multiply
        | OpCode::Subtract
        | OpCode::Reshape
        | OpCode::Reverse
        | OpCode::Transpose => !(code == OpCode::Subtract && element.kind() == Boolean),
        OpCode::Maximum | OpCode::Minimum => element.kind() != Complex,
        OpCode::And | OpCode::Or | OpCode::Xor | OpCode::Not => {
            matches!(element.kind(), Boolean | SignedInteger | UnsignedInteger)
        }
        _ => false,
    }
}

/// Returns all pairs of an operation and an element type that programs contain.
pub(crate) fn allowed() -> &'static BTreeSet<(OpCode, &'static str)> {
    ALLOWED.get_or_init(|| {
        MAKING.set(true);
        let all = elements();
        let pairs = OpCode::ALL.iter().flat_map(|&code| all.iter().map(move |&element| (code, element)));
        let found = pairs.filter(|&(code, element)| {
            (0..ATTEMPTS).any(|n| {
                let program = generator::program(0x7ab1e, n, code, element);
                program.is_some_and(|p| {
                    let text = p.text(false);
                    let module = pjrt_stablehlo::parse(text.into_bytes());
                    module.is_ok_and(|m| counts(&m).contains_key(&(code, element.family().to_owned())))
                })
            })
        });
        let found = found.map(|(code, element)| (code, element.family())).collect();
        MAKING.set(false);
        found
    })
}

/// Returns the number of operations in all functions and regions of a module, by operation and element type.
pub(crate) fn counts(module: &Module) -> BTreeMap<(OpCode, String), usize> {
    let mut counts = BTreeMap::new();
    for function in module.functions() {
        for (_, op) in function.body.all_ops() {
            *counts.entry((op.kind.code(), element_of(&function.body, op))).or_default() += 1;
        }
    }
    counts
}

/// Returns the element type of an operation: that of its first tensor operand, or of its result if there is none. For operations
/// that generate random numbers, it is that of the numbers, not of the state.
fn element_of(body: &Body, op: &pjrt_stablehlo::ir::Operation) -> String {
    let family = |ty: &Type| {
        let tensor = ty.as_tensor()?;
        let element = tensor.element_type();
        Some(if element == ElementType::Quantized { "quantized" } else { element.name() })
    };
    let operands = op.operands.iter().map(|&value| family(body.ty(value)));
    let results: Vec<_> = op.results.map(|value| family(body.ty(value))).collect();
    let mut kinds: Vec<_> = operands.collect();
    match op.kind.code() {
        OpCode::RngBitGenerator => kinds = results.into_iter().rev().collect(),
        OpCode::DynamicIota | OpCode::If | OpCode::Case => kinds = results,
        OpCode::Select => kinds = kinds.into_iter().skip(1).collect(),
        _ => kinds.extend(results),
    }
    kinds.into_iter().flatten().next().unwrap_or_default().to_owned()
}
