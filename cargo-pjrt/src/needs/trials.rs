//! The operations of programs, and programs of one operation.

use std::collections::{BTreeMap, HashMap, HashSet};

use pjrt_stablehlo::Module;
use pjrt_stablehlo::ir::{Body, Op, Operation, Trait};
use pjrt_stablehlo::passes::isolate;

use crate::run::Job;
use crate::run::features::{Feature, of_module};
use pjrt_testing::CompileOptions;

/// The maximum size in bytes of a constant that is compiled alone.
const MAX_CONSTANT: u64 = 1 << 20;
/// The maximum number of operations in the regions and called functions of an operation that is compiled alone.
const MAX_OPS: usize = 1000;

/// An operation with its element types, as a row of the table shows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) op: String,
    pub(super) element_types: Vec<String>,
}

impl Key {
    fn of(body: &Body, op: &Operation) -> Self {
        let target = match &op.kind {
            Op::CustomCall(call) => format!(" @{}", call.call_target_name),
            Op::Composite(composite) => format!(" {}", composite.name),
            _ => String::new(),
        };
        let element_types = body.element_types(op).iter().map(ToString::to_string).collect();
        Key { op: format!("{}{target}", op.kind.name()), element_types }
    }

    /// Returns the name of the operation, without the target of a custom call or the name of a composite.
    pub(super) fn name(&self) -> &str {
        self.op.split(' ').next().unwrap_or(&self.op)
    }
}

/// Returns the operations of a program, without those that terminate blocks, and the numbers of their uses.
pub(super) fn uses(module: &Module) -> BTreeMap<Key, usize> {
    let mut uses = BTreeMap::new();
    for function in module.functions() {
        for (_, op) in function.body.all_ops().filter(|(_, op)| !op.info().has(Trait::Terminator)) {
            *uses.entry(Key::of(&function.body, op)).or_default() += 1;
        }
    }
    uses
}

/// A program of one operation.
pub(super) struct Trial {
    pub(super) key: Key,
    pub(super) job: Job,
    /// The operations in the regions and the called functions of the operation.
    pub(super) contents: HashSet<Key>,
    /// The properties by which the operation differs from others with the same key.
    pub(super) features: Vec<Feature>,
}

/// The programs of one operation that have been created.
#[derive(Default)]
pub(super) struct Trials {
    pub(super) all: Vec<Trial>,
    /// The indices by program text.
    by_text: HashMap<String, usize>,
}

impl Trials {
    /// Adds a program for each operation of a program, unless an equal one exists. Returns the indices of the programs of this
    /// program's operations.
    pub(super) fn add(&mut self, module: &Module) -> Vec<usize> {
        let mut of_program = Vec::new();
        for function in module.functions() {
            for (id, op) in function.body.all_ops() {
                if op.info().has(Trait::Terminator) || is_large(op) {
                    continue;
                }
                let Ok(alone) = isolate(module, function, id) else { continue };
                if alone.num_ops() > MAX_OPS {
                    continue;
                }
                let text = alone.to_string();
                let key = Key::of(&function.body, op);
                let all = &mut self.all;
                let index = *self.by_text.entry(text).or_insert_with(|| {
                    let contents = uses(&alone).into_keys().filter(|inner| *inner != key).collect();
                    // The plugin's message can name the location.
                    let job = Job::of_text(&format!("{alone:#}")).with_options(options(&alone));
                    let features = of_module(&alone, op.info().mnemonic());
                    all.push(Trial { key, job, contents, features });
                    all.len() - 1
                });
                of_program.push(index);
            }
        }
        of_program.sort_unstable();
        of_program.dedup();
        of_program
    }
}

/// Returns `true` for a constant that is too large to be printed as text.
fn is_large(op: &Operation) -> bool {
    matches!(&op.kind, Op::Constant(constant) if constant.value.dense_len() > MAX_CONSTANT)
}

/// Returns compile options with the numbers of replicas and partitions that a module states.
fn options(module: &Module) -> Vec<u8> {
    let number = |name| module.integer_attribute(name).unwrap_or(1).max(1);
    let (replicas, partitions) = (number("mhlo.num_replicas"), number("mhlo.num_partitions"));
    let shardy = !module.meshes().is_empty();
    CompileOptions { replicas, partitions, shardy, ..CompileOptions::default() }.encode()
}
