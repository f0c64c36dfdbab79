//! The decompositions of `pjrt_stablehlo::passes` against the operations that they replace: the engine runs each operation as
//! it is and decomposed.

use crate::program::{self, Argument, GeneratedProgram, Statement, to_hex};
use crate::results::{Tolerance, difference};
use crate::types::{self, Element};
use crate::{generator, on_large_stack, ops, table};
use pjrt_stablehlo::ir::{ComparisonType, ElementType, Op, OpCode, TensorType};
use pjrt_stablehlo::passes::{CoreOps, decompose, decompositions};
use pjrt_stablehlo::{ErrorKind, Module};
use refcpu_engine::compile::{CompileOptions, compile};
use refcpu_engine::exec::{Input, RunOptions, Runtime, run};
use refcpu_engine::storage::{Allocator, AllocatorOptions, Array};
use refcpu_kernels::Pool;
use std::collections::{BTreeMap, BTreeSet};

/// The number of programs for each operation and element type. Each has several uses of the operation.
const PROGRAMS: u64 = 6;

/// Returns the set for a device that lacks an operation, or some of its uses.
fn core_without(op: OpCode) -> CoreOps {
    match op {
        OpCode::Compare => CoreOps::default().with_condition(op, |body, op| {
            let Op::Compare(compare) = &op.kind else { return false };
            let elements = body.element_types(op);
            compare.compare_type != ComparisonType::TotalOrder
                && !elements.iter().any(|element| element.is_complex())
        }),
        OpCode::Select => CoreOps::default().with_condition(op, |body, op| {
            let rank = |value| body.ty(value).as_tensor().map(TensorType::rank);
            rank(op.operand(0)) == rank(op.result())
        }),
        op => CoreOps::default().without(op),
    }
}

pub(crate) fn runtime() -> Runtime {
    Runtime::new(Pool::inline(), Allocator::new(AllocatorOptions::default()))
}

/// Runs a program on the engine. The arrays are the results in the order of the program's.
fn results_of(module: &Module, runtime: &Runtime, data: &[Vec<u8>]) -> Result<Vec<Array>, String> {
    let compiled = compile(module, &CompileOptions::default()).map_err(|error| error.to_string())?;
    let inputs = compiled.parameters.iter().zip(data).map(|(parameter, bytes)| {
        let (dtype, dims) = (parameter.shape.dtype, &parameter.shape.dims);
        let array = Array::from_bytes(&runtime.allocator, dtype, dims, bytes).unwrap();
        Input { array, donatable: false }
    });
    let inputs = inputs.collect();
    let results = run(&compiled.plan, runtime, vec![inputs], &RunOptions::default());
    Ok(results.map_err(|error| error.to_string())?.remove(0))
}

fn parsed(program: &GeneratedProgram) -> Option<Module> {
    pjrt_stablehlo::parse(program.text(false)).ok()
}

fn data_of(program: &GeneratedProgram) -> Vec<Vec<u8>> {
    program.arguments.iter().map(|argument| program::from_hex(&argument.data).unwrap()).collect()
}

/// The programs that consist of one statement each, with the values that it uses in the whole program as arguments.
fn single_statements(program: &GeneratedProgram, op: &str, runtime: &Runtime) -> Vec<GeneratedProgram> {
    let uses_of = |statement: &Statement| statement.uses.iter().cloned().collect::<BTreeSet<String>>();
    let wanted: Vec<&Statement> = program.statements.iter().filter(|statement| statement.op == op).collect();
    let used: BTreeSet<String> = wanted.iter().flat_map(|statement| uses_of(statement)).collect();
    let whole = GeneratedProgram { results: used.iter().cloned().collect(), ..program.clone() };
    let Some(module) = parsed(&whole) else { return Vec::new() };
    let Ok(values) = results_of(&module, runtime, &data_of(&whole)) else { return Vec::new() };
    let data: BTreeMap<&String, String> =
        used.iter().zip(values.iter().map(|value| to_hex(value.bytes().unwrap()))).collect();
    let types = program.types();
    let is_constant = |name: &String| {
        let mut definitions = program.statements.iter();
        definitions.find(|s| s.op == "stablehlo.constant" && s.defines.iter().any(|v| v.name == *name))
    };
    let single = wanted.into_iter().map(|statement| {
        let uses = uses_of(statement);
        let constants = uses.iter().filter_map(is_constant);
        let arguments = uses.iter().filter(|name| is_constant(name).is_none()).map(|name| Argument {
            value: program::Typed { name: name.clone(), ty: types[name.as_str()].to_owned() },
            data: data[name].clone(),
        });
        GeneratedProgram {
            arguments: arguments.collect(),
            statements: constants.chain([statement]).cloned().collect(),
            results: statement.defines.iter().map(|value| value.name.clone()).collect(),
            functions: program.functions.clone(),
        }
    });
    single.collect()
}

/// The outcome of a use of an operation.
pub(crate) enum Outcome {
    Same,
    Refused(String),
    /// The engine does not run the operation itself.
    NotRun,
}

/// Runs a program as it is and decomposed.
pub(crate) fn compared(
    program: &GeneratedProgram,
    core: &CoreOps,
    tolerance: Tolerance,
    runtime: &Runtime,
) -> Outcome {
    let Some(module) = parsed(program) else { return Outcome::NotRun };
    let data = data_of(program);
    let Ok(direct) = results_of(&module, runtime, &data) else { return Outcome::NotRun };
    let text = program.text(false);
    let decomposed = match decompose(&module, core) {
        Ok(decomposed) => decomposed,
        Err(error) if error.kind == ErrorKind::Unsupported => return Outcome::Refused(error.to_string()),
        Err(error) => panic!("{error}\n{text}"),
    };
    let found = results_of(&decomposed, runtime, &data)
        .unwrap_or_else(|error| panic!("{error}\n{text}\ndecomposed:\n{decomposed}"));
    for (index, (direct, found)) in direct.iter().zip(&found).enumerate() {
        if let Some(difference) = difference(direct, found, tolerance) {
            let inputs: Vec<String> = data.iter().map(|data| to_hex(data)).collect();
            panic!("result {index}: {difference}\n{text}\narguments: {inputs:?}\ndecomposed:\n{decomposed}");
        }
    }
    Outcome::Same
}

/// The units in the last place by which the results of a decomposition may differ from those of the engine.
fn tolerance(op: OpCode, element: ElementType) -> Tolerance {
    let is_wide = matches!(element, ElementType::F32 | ElementType::F64) || element.is_complex();
    let units = match op {
        OpCode::Power if is_wide => 130.0,
        OpCode::Abs if element.is_complex() => 4.0,
        OpCode::Cbrt
        | OpCode::ExponentialMinusOne
        | OpCode::LogPlusOne
        | OpCode::Logistic
        | OpCode::Rsqrt
        | OpCode::Sqrt
        | OpCode::Tan
        | OpCode::Tanh
            if is_wide =>
        {
            8.0
        }
        OpCode::Power
        | OpCode::Cbrt
        | OpCode::ExponentialMinusOne
        | OpCode::LogPlusOne
        | OpCode::Logistic
        | OpCode::Rsqrt
        | OpCode::Sqrt
        | OpCode::Tan
        | OpCode::Tanh => 1.0,
        OpCode::DotGeneral | OpCode::Convolution => 16.0,
        OpCode::Reduce | OpCode::ReduceWindow | OpCode::Scatter => 4.0,
        _ => 0.0,
    };
    Tolerance { units, any_zero: matches!(op, OpCode::Maximum | OpCode::Minimum | OpCode::Clamp) }
}

/// Compares an operation with its decomposition for all element types. Returns the types for which it was compared, and the
/// messages about the others.
fn compare_all(
    op: OpCode,
    core: &CoreOps,
    seed: u64,
) -> (BTreeSet<&'static str>, BTreeMap<&'static str, String>) {
    let runtime = runtime();
    let (mut same, mut refused) = (BTreeSet::new(), BTreeMap::new());
    for element in types::elements() {
        let Element::Plain(ty) = element else { continue };
        if !table::is_allowed(op, element) {
            continue;
        }
        for number in 0..PROGRAMS {
            let Some(program) = generator::program(seed, number, op, element) else { continue };
            for single in single_statements(&program, op.info().name, &runtime) {
                match compared(&single, core, tolerance(op, ty), &runtime) {
                    Outcome::Same => drop(same.insert(ty.name())),
                    Outcome::Refused(message) => drop(refused.insert(ty.name(), message)),
                    Outcome::NotRun => {}
                }
            }
        }
    }
    (same, refused)
}

/// The operations with decompositions that the default set contains and programs can have.
fn decomposable() -> Vec<OpCode> {
    let all = decompositions().filter(|rule| !rule.by_default);
    let codes = all.filter_map(|rule| OpCode::from_name(rule.op));
    codes.filter(|&code| ops::reason(code).is_empty()).collect()
}

#[test]
fn a_decomposed_operation_computes_what_the_operation_does() {
    on_large_stack(|| {
        for op in decomposable() {
            let core = core_without(op);
            let (same, refused) = compare_all(op, &core, 19);
            println!("{op:?}: {same:?}; {refused:#?}");
            let is_tested = !same.is_empty();
            assert!(is_tested, "{op:?}: {refused:?}");
        }
    });
}
