//! What there is to test: operations and the element types that they are allowed on, as the verifier says.

use crate::generator;
use crate::types::{Element, elements};
use pjrt_stablehlo::Module;
use pjrt_stablehlo::ir::{Body, ElementType, OpCode, Type};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// Programs of each pair that are tried before the verifier is believed.
const ATTEMPTS: u64 = 4;

static ALLOWED: OnceLock<BTreeSet<(OpCode, &'static str)>> = OnceLock::new();

thread_local! {
    /// True while the table is made: nothing is known of any operation then.
    static MAKING: Cell<bool> = const { Cell::new(false) };
}

/// Whether the verifier takes the operation on elements of this type.
pub(crate) fn is_allowed(code: OpCode, element: Element) -> bool {
    if MAKING.get() {
        return is_basic(code, element);
    }
    allowed().contains(&(code, element.family()))
}

/// What programs may contain that find out what is allowed.
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

/// All pairs of an operation and an element type that programs are made of.
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

/// How often each operation is in a module, in all its functions and regions, by element type.
pub(crate) fn counts(module: &Module) -> BTreeMap<(OpCode, String), usize> {
    let mut counts = BTreeMap::new();
    for function in module.functions() {
        for (_, op) in function.body.all_ops() {
            *counts.entry((op.kind.code(), element_of(&function.body, op))).or_default() += 1;
        }
    }
    counts
}

/// The element type that an operation works on: that of its first tensor, or of its result where there is none. An
/// operation with generated numbers is about these, not about its state.
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
