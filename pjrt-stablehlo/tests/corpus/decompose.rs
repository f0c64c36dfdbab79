//! Decompositions: each program must become a valid program of core operations, or produce an error that names the
//! operation. `cargo xtask corpus -- --decompose` shows that the results are the same.

use std::collections::BTreeMap;
use std::path::Path;

use pjrt_stablehlo::ir::{Literal, LiteralData, OpCode, Trait};
use pjrt_stablehlo::passes::{Argument, CoreOps, decompose, refine_shapes};
use pjrt_stablehlo::{Error, ErrorKind, Module};
use serde_json::Value;

use crate::files::{corpus, folder};

/// A form of a record that can be read.
struct Program {
    name: String,
    category: String,
    form: String,
    bytes: Vec<u8>,
}

/// The forms `vhlo` and `mlir` of all records, which hold different operations: composites, and CHLO.
fn programs(folder: &Path) -> Vec<Program> {
    let mut programs = Vec::new();
    for mut record in corpus(folder) {
        for form in ["vhlo", "mlir", "vhlo_dynamic"] {
            let Some(bytes) = record.forms.remove(form) else { continue };
            let (name, category) = (record.name.clone(), record.category().to_owned());
            programs.push(Program { name, category, form: form.to_owned(), bytes });
        }
    }
    programs
}

/// Checks that a decomposed program consists of core operations.
fn assert_core(name: &str, module: &Module, core: &CoreOps) {
    for function in module.functions() {
        for (_, op) in function.body.all_ops() {
            assert!(core.contains_op(&op.kind), "{name}: {} is not a core operation", op.kind);
        }
        for (_, value) in function.body.values() {
            let quantized = value.ty.as_tensor().is_some_and(|tensor| tensor.quantization().is_some());
            let is_complex = value.ty.as_tensor().is_some_and(|tensor| tensor.element_type().is_complex());
            assert!(!is_complex || core.keeps_complex_numbers(), "{name}: {} is complex", value.ty);
            assert!(!quantized || core.keeps_quantized_types(), "{name}: {} is quantized", value.ty);
        }
    }
    pjrt_stablehlo::verify(module).unwrap_or_else(|error| panic!("{name}: {error}"));
}

/// Returns the smallest set of core operations that the rules reach: all operations that can be decomposed are.
fn smallest() -> CoreOps {
    let decomposed = [
        OpCode::FuncCall,
        OpCode::If,
        OpCode::OptimizationBarrier,
        OpCode::ShardingConstraint,
        OpCode::Reshard,
        OpCode::ShardingGroup,
        OpCode::Clamp,
        OpCode::Cbrt,
        OpCode::ExponentialMinusOne,
        OpCode::IsFinite,
        OpCode::LogPlusOne,
        OpCode::Logistic,
        OpCode::RoundNearestAfz,
        OpCode::RoundNearestEven,
        OpCode::Rsqrt,
        OpCode::Tan,
    ];
    decomposed.into_iter().fold(CoreOps::default(), CoreOps::without)
}

fn decompose_all(set: &str, core: &CoreOps, expected_failures: &[(&str, &str)]) {
    let Some(folder) = folder("PJRT_CORPUS") else { return };
    let mut counts: BTreeMap<(String, String), [usize; 2]> = BTreeMap::new();
    let mut reasons: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for program in programs(&folder) {
        // What the reader does not take is another test's matter.
        let Ok(original) = pjrt_stablehlo::parse(program.bytes) else { continue };
        let count = counts.entry((program.category.clone(), program.form.clone())).or_default();
        let outcome: Result<Module, Error> = decompose(&original, core);
        match outcome {
            Ok(module) => {
                count[0] += 1;
                assert_core(&program.name, &module, core);
            }
            Err(error) => {
                count[1] += 1;
                assert_eq!(error.kind, ErrorKind::Unsupported, "{} {}: {error}", program.name, program.form);
                let op = error.op.as_deref().unwrap_or_else(|| panic!("{}: {error}", program.name));
                reasons.entry(format!("{op}: {}", error.message)).or_default().push(program.name);
            }
        }
    }
    for ((category, form), [done, failed]) in &counts {
        println!("{set} {category} {form}: {done} decomposed, {failed} cannot be");
    }
    let mut unexpected = Vec::new();
    for (reason, programs) in &reasons {
        println!("{set} {:4} {reason} ({})", programs.len(), programs[0]);
        if !expected_failures.iter().any(|(op, text)| reason.starts_with(op) && reason.contains(text)) {
            unexpected.push(reason);
        }
    }
    assert!(unexpected.is_empty(), "programs that should decompose do not: {unexpected:#?}");
    assert!(counts.values().map(|[done, _]| done).sum::<usize>() > 5000, "expected a corpus");
}

/// The reasons for which programs of the corpus cannot be decomposed: the operation, and a part of the message.
const EXPECTED_FAILURES: &[(&str, &str)] = &[
    // Dynamic shapes.
    ("", "is not a constant, so the shapes of the program depend on its data"),
    ("", "expected static sizes"),
    ("stablehlo.get_dimension_size", "has a dynamic size"),
    ("stablehlo.real_dynamic_slice", "the shape of the result depends on data"),
    ("stablehlo.set_dimension_size", "can be expressed only by"),
    // Other dialects.
    ("arith.", "the device does not support this operation"),
    ("builtin.", "the device does not support this operation"),
    ("shape.", "the device does not support this operation"),
    ("tensor.", "the device does not support this operation"),
    // Functions of complex numbers that the default set has.
    ("stablehlo.", "complex"),
    ("chlo.ragged_dot", "expected a vector of group sizes"),
    // A module with nearly every attribute that there is.
    ("stablehlo.custom_call", "tuples with layouts or aliases"),
    // Quantized differently within one operation.
    ("stablehlo.", "expected equal quantization parameters of all operands and results"),
];

#[test]
fn programs_become_core_operations() {
    decompose_all("default", &CoreOps::default(), EXPECTED_FAILURES);
}

#[test]
fn programs_become_the_smallest_set() {
    decompose_all("smallest", &smallest(), EXPECTED_FAILURES);
}

#[test]
fn programs_become_those_of_real_numbers() {
    let core = CoreOps::default().without_complex_numbers();
    decompose_all("real", &core, EXPECTED_FAILURES);
}

#[test]
fn a_set_of_everything_changes_nothing() {
    let Some(folder) = folder("PJRT_CORPUS") else { return };
    let all = OpCode::ALL.iter().copied().fold(CoreOps::default(), CoreOps::with).with_quantized_types();
    let all = ["Qr", "ProductOfElementaryHouseholderReflectors"].into_iter().fold(all, CoreOps::with_other);
    for program in programs(&folder).into_iter().filter(|program| program.form == "vhlo").step_by(7) {
        let module = pjrt_stablehlo::parse(program.bytes).unwrap();
        let decomposed = decompose(&module, &all).unwrap();
        assert_eq!(decomposed.to_string(), module.to_string(), "{}", program.name);
    }
    assert!(OpCode::ALL.iter().filter(|op| op.info().has(Trait::Terminator)).all(|&op| all.contains(op)));
}

fn sizes(value: &Value) -> Vec<i64> {
    value.as_array().into_iter().flatten().map(|size| size.as_i64().unwrap()).collect()
}

#[test]
fn programs_of_unknown_shapes_become_core_operations_once_their_arguments_are_known() {
    let Some(folder) = folder("PJRT_CORPUS") else { return };
    let mut count = 0;
    for record in corpus(&folder) {
        let Some(bytes) = record.forms.get("vhlo_dynamic") else { continue };
        let (name, record) = (&*record.name, &record.manifest);
        let module = pjrt_stablehlo::parse(bytes.clone()).unwrap();
        // Sizes as numbers come first, then the tensors.
        let mut declared =
            module.main().unwrap().argument_types().iter().map(|ty| ty.as_tensor().unwrap().clone());
        let mut arguments: Vec<Argument> = Vec::new();
        for size in sizes(&record["dim_args"]) {
            let data = LiteralData::Dense(size.to_le_bytes().to_vec().into());
            arguments.push(Literal::new(declared.next().unwrap(), data).unwrap().into());
        }
        let inputs = record["inputs"].as_array().unwrap();
        arguments.extend(
            inputs.iter().zip(declared).map(|(input, ty)| ty.with_dims(sizes(&input["shape"])).into()),
        );
        let core = CoreOps::default();
        let refined = refine_shapes(&module, &arguments).unwrap_or_else(|error| panic!("{name}: {error}"));
        let decomposed = decompose(&refined, &core).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_core(name, &decomposed, &core);
        let found = decomposed.main().unwrap().result_types().iter();
        let found: Vec<Vec<i64>> = found.map(|ty| ty.as_tensor().unwrap().dims().to_vec()).collect();
        let expected = record["outputs"].as_array().unwrap().iter();
        assert_eq!(found, expected.map(|output| sizes(&output["shape"])).collect::<Vec<_>>(), "{name}");
        count += 1;
    }
    assert!(count > 200, "expected a corpus");
}
