//! Decomposition, rule by rule, and the page of the documentation that lists the rules.

mod missing;
mod narrowed;
mod samples;
mod widened;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use pjrt_stablehlo::ir::{Body, ElementType, Op, OpCode, Operation, TensorType, Trait, Type};
use pjrt_stablehlo::passes::{CoreOps, Decomposition, decompose, decompositions};
use pjrt_stablehlo::{Error, ErrorKind, Module, parse};
use samples::{F32, STARTED, function, sample};

fn read(text: &str) -> Module {
    parse(text.as_bytes().to_vec()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn ops(module: &Module) -> BTreeMap<String, usize> {
    module.op_counts().into_iter().map(|(op, count)| (op.to_owned(), count)).collect()
}

/// The operations that a program becomes, without returns and constants.
fn decomposed_ops(text: &str, core: &CoreOps) -> Vec<String> {
    let module = decompose(&read(text), core).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let is_shown = |op: &String| !op.ends_with("return") && op != "stablehlo.constant";
    ops(&module).into_keys().filter(is_shown).collect()
}

/// The operations of which only the uses with complex numbers have a rule.
const OF_COMPLEX_NUMBERS: &[OpCode] =
    &[OpCode::Constant, OpCode::Divide, OpCode::Exponential, OpCode::Log, OpCode::Multiply];

/// Returns the set that a rule applies to: the default without its operation, or with the uses of it that the rule produces.
fn core_without(op: &str) -> CoreOps {
    match OpCode::from_name(op) {
        Some(OpCode::Compare) => CoreOps::default().with_condition(OpCode::Compare, |body, op| {
            !body.element_types(op).iter().any(|element| element.is_float())
        }),
        Some(code) if OF_COMPLEX_NUMBERS.contains(&code) => CoreOps::default()
            .with_condition(code, |body, op| {
                !body.element_types(op).iter().any(|element| element.is_complex())
            }),
        Some(OpCode::Select) => CoreOps::default().with_condition(OpCode::Select, |body, op| {
            let rank = |value| body.ty(value).as_tensor().map(TensorType::rank);
            rank(op.operand(0)) == rank(op.result())
        }),
        Some(code) => CoreOps::default().without(code),
        None => CoreOps::default(),
    }
}

#[test]
fn every_rule_replaces_its_operation_by_what_its_documentation_names() {
    for Decomposition { op, into, .. } in decompositions() {
        let text = sample(op);
        assert!(ops(&read(&text)).contains_key(op), "the sample for {op} has it:\n{text}");
        let module =
            decompose(&read(&text), &core_without(op)).unwrap_or_else(|error| panic!("{op}: {error}"));
        let found = ops(&module);
        let is_core = OpCode::from_name(op).is_some_and(|code| core_without(op).contains(code));
        assert!(!found.contains_key(op) || is_core, "{op} stays: {found:?}");
        for name in into.split('`').skip(1).step_by(2).filter(|name| !name.contains("chlo")) {
            let is_there = found.contains_key(&format!("stablehlo.{name}")) || found.contains_key(name);
            assert!(is_there, "{op}: documented to become {into}, became {found:?}");
        }
    }
}

#[test]
fn a_product_without_terms_is_zeros() {
    let has_terms = |body: &Body, op: &Operation| body.ty(op.operands[0]).as_tensor().unwrap().dims()[1] != 0;
    let core = CoreOps::default().with_condition(OpCode::DotGeneral, has_terms);
    let text = "func.func @main(%x: tensor<3x0xbf16>, %y: tensor<0x4xbf16>) -> tensor<3x4xf32> {
        %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] :
            (tensor<3x0xbf16>, tensor<0x4xbf16>) -> tensor<3x4xf32>
        return %0 : tensor<3x4xf32>
    }";
    let is_product = |op: &String| op == "stablehlo.dot_general" || op == "stablehlo.multiply";
    assert!(!decomposed_ops(text, &core).iter().any(is_product));
}

#[test]
fn conversions_of_narrow_floats_have_a_step_at_f32() {
    let has_f32 = |body: &Body, op: &Operation| body.element_types(op).contains(&ElementType::F32);
    let core = CoreOps::default().with_condition(OpCode::Convert, has_f32);
    for (from, to) in [("i32", "bf16"), ("f16", "f8E5M2"), ("f8E5M2", "f64"), ("bf16", "i8")] {
        let text = format!(
            "func.func @main(%x: tensor<4x{from}>) -> tensor<4x{to}> {{
                %0 = stablehlo.convert %x : (tensor<4x{from}>) -> tensor<4x{to}>
                return %0 : tensor<4x{to}>
            }}"
        );
        let module = decompose(&read(&text), &core).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(ops(&module)["stablehlo.convert"], 2, "{from} to {to}");
    }
}

#[test]
fn decomposed_programs_are_left_alone() {
    for Decomposition { op, .. } in decompositions() {
        let core = core_without(op);
        let once = decompose(&read(&sample(op)), &core).unwrap();
        assert_eq!(decompose(&once, &core).unwrap().to_string(), once.to_string(), "{op}");
    }
}

#[test]
fn functions_of_complex_numbers_become_real_functions_of_their_parts() {
    let mnemonics = ["acos", "acosh", "asin", "asinh", "atan", "atanh", "conj", "cosh", "sinh", "square"];
    for mnemonic in mnemonics {
        for element in ["complex<f32>", "complex<f64>"] {
            let ty = format!("tensor<2x3x{element}>");
            let op = format!("\"chlo.{mnemonic}\"(%x) : ({ty}) -> {ty}");
            let text = function(&format!("%x: {ty}"), &op, &ty);
            let module = decompose(&read(&text), &CoreOps::default()).unwrap();
            for (_, op) in module.functions()[0].body.all_ops() {
                let is_part = matches!(op.kind, Op::Real(_) | Op::Imag(_));
                let is_whole = matches!(op.kind, Op::Complex(_) | Op::FuncReturn(_));
                for (values, is_allowed) in
                    [(op.operands.to_vec(), is_part || is_whole), (op.results.collect(), is_whole)]
                {
                    for value in values {
                        let ty = module.functions()[0].body.ty(value).as_tensor().unwrap();
                        assert!(!ty.element_type().is_complex() || is_allowed, "{mnemonic}: {}", op.kind);
                    }
                }
            }
        }
    }
}

#[test]
fn errors_name_operation_and_location() {
    let text =
        function(&format!("%x: {F32}"), &format!("stablehlo.exponential %x : {F32} loc(\"here\")"), F32);
    let error: Error = decompose(&read(&text), &CoreOps::default().without(OpCode::Exponential)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported);
    assert_eq!(
        error.to_string(),
        "stablehlo.exponential: the device does not support this operation, and it cannot be decomposed at \"here\""
    );
    let text = function(
        "%x: tensor<4xf32>, %s: tensor<2xi64>",
        "stablehlo.dynamic_reshape %x, %s : (tensor<4xf32>, tensor<2xi64>) -> tensor<?x?xf32>",
        "tensor<?x?xf32>",
    );
    let error = decompose(&read(&text), &CoreOps::default()).unwrap_err().to_string();
    assert!(error.contains("stablehlo.dynamic_reshape: operand 'output_shape' is not a constant"), "{error}");
}

#[test]
fn errors_name_the_operation_that_needs_a_missing_one() {
    let text =
        function(&format!("%x: {F32}"), &format!("chlo.erf_inv %x : {F32} -> {F32} loc(\"here\")"), F32);
    let error = decompose(&read(&text), &CoreOps::default().without(OpCode::Log)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "stablehlo.log: the device does not support this operation, and it cannot be decomposed; 'chlo.erf_inv' is decomposed into it \
         at \"here\""
    );
    // By way of another that is decomposed, too.
    let text = function(&format!("%x: {F32}"), &format!("chlo.cosh %x : {F32} -> {F32}"), F32);
    let core = CoreOps::default().without(OpCode::Exponential);
    let error = decompose(&read(&text), &core).unwrap_err().to_string();
    assert!(error.contains("stablehlo.exponential") && error.contains("chlo.cosh"), "{error}");
}

#[test]
fn a_set_with_neither_if_nor_case_is_an_error() {
    let core = CoreOps::default().without(OpCode::If).without(OpCode::Case);
    let error = decompose(&read(&sample("stablehlo.if")), &core).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("its decomposition contains operations that the device does not support either"),
        "{error}"
    );
}

#[test]
fn composites_stay_by_name() {
    let text = sample("stablehlo.composite");
    let keep = CoreOps::default().with_composite("my.f");
    assert_eq!(decomposed_ops(&text, &keep), ["stablehlo.composite", "stablehlo.multiply"]);
    let other = CoreOps::default().with_composite("my.g");
    assert_eq!(decomposed_ops(&text, &other), ["func.call", "stablehlo.multiply"]);
    let inline = CoreOps::default().without(OpCode::FuncCall);
    assert_eq!(decomposed_ops(&text, &inline), ["stablehlo.multiply"]);
}

#[test]
fn composites_of_chlo_functions_become_what_the_functions_become() {
    let program = |ty: &str, attributes: &str| {
        format!(
            "func.func private @f(%x: {ty}) -> {ty} {{
               return %x : {ty}
             }}
             func.func @main(%x: {ty}) -> {ty} {{
               %0 = stablehlo.composite \"chlo.lgamma\" %x {{decomposition = @f{attributes}}} : ({ty}) -> {ty}
               return %0 : {ty}
             }}"
        )
    };
    let core = CoreOps::default();
    let direct = "func.func @main(%x: tensor<4xbf16>) -> tensor<4xbf16> {
        %0 = chlo.lgamma %x : tensor<4xbf16> -> tensor<4xbf16>
        return %0 : tensor<4xbf16>
    }";
    let whole = program("tensor<4xbf16>", "");
    assert_eq!(decomposed_ops(&whole, &core), decomposed_ops(direct, &core));
    let kept = core.clone().with_composite("chlo.lgamma");
    assert_eq!(decomposed_ops(&whole, &kept), ["stablehlo.composite"]);
    // What the rules are not for is computed as the program says.
    for other in [
        program("tensor<4xcomplex<f32>>", ""),
        program("tensor<4xi32>", ""),
        program("tensor<?xf32>", ""),
        program("tensor<4xf32>", ", composite_attributes = {digits = 3 : i64}"),
    ] {
        assert_eq!(decomposed_ops(&other, &core), ["func.call"], "{other}");
    }
}

#[test]
fn operations_of_other_dialects_stay_by_name() {
    let text = sample("chlo.erf");
    assert_eq!(decomposed_ops(&text, &CoreOps::default().with_other("chlo.erf")), ["chlo.erf"]);
}

#[test]
fn inlined_operations_tell_of_their_call() {
    let text = "func.func @main(%x: tensor<f32>) -> tensor<f32> {
        %0 = call @f(%x) : (tensor<f32>) -> tensor<f32> loc(\"first\")
        %1 = call @f(%0) : (tensor<f32>) -> tensor<f32> loc(\"second\")
        return %1 : tensor<f32>
    }
    func.func private @f(%x: tensor<f32>) -> tensor<f32> {
        %0 = stablehlo.sine %x : tensor<f32> loc(\"inside\")
        return %0 : tensor<f32>
    }";
    let module = decompose(&read(text), &CoreOps::default().without(OpCode::FuncCall)).unwrap();
    assert_eq!(module.functions().len(), 1, "functions that are inlined go away");
    let sines = module.main().unwrap().body.all_ops().filter(|(_, op)| matches!(op.kind, Op::Sine(_)));
    let locations: Vec<_> = sines.map(|(_, op)| op.location.to_string()).collect();
    assert_eq!(locations, ["callsite(\"inside\" at \"first\")", "callsite(\"inside\" at \"second\")"]);
}

#[test]
fn inlining_has_a_limit() {
    let mut text = String::from("func.func @main(%x: tensor<f32>) -> tensor<f32> {\n");
    for level in 0..40 {
        let next = format!("%0 = call @f{level}(%x) : (tensor<f32>) -> tensor<f32>");
        let again = format!("%1 = call @f{level}(%0) : (tensor<f32>) -> tensor<f32>");
        write!(text, "{next}\n{again}\nreturn %1 : tensor<f32>\n}}\n").unwrap();
        writeln!(text, "func.func private @f{level}(%x: tensor<f32>) -> tensor<f32> {{").unwrap();
    }
    text.push_str("%0 = stablehlo.sine %x : tensor<f32>\nreturn %0 : tensor<f32>\n}\n");
    let error = decompose(&read(&text), &CoreOps::default().without(OpCode::FuncCall)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::TooLarge);
}

#[test]
fn decomposing_has_a_limit() {
    let mut text = String::from(
        "func.func @main(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {\n%0 = stablehlo.add %x, %y : tensor<f32>\n",
    );
    let count = 20_000;
    for index in 0..count {
        writeln!(
            text,
            "%{} = chlo.polygamma %{index}, %y : tensor<f32>, tensor<f32> -> tensor<f32>",
            index + 1
        )
        .unwrap();
    }
    writeln!(text, "return %{count} : tensor<f32>\n}}").unwrap();
    let error = decompose(&read(&text), &CoreOps::default()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::TooLarge);
    let text = error.to_string();
    assert!(text.contains("chlo.polygamma") && text.contains("2097152"), "{text}");
}

#[test]
fn numbers_are_shared_by_what_a_block_is_decomposed_into() {
    let text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
        %0 = chlo.erf %x : tensor<4xf32> -> tensor<4xf32>
        %1 = chlo.erf %0 : tensor<4xf32> -> tensor<4xf32>
        return %1 : tensor<4xf32>
    }";
    let constants = |module: &Module| {
        let ops = module.functions()[0].body.all_ops();
        ops.filter(|(_, op)| matches!(op.kind, Op::Constant(_))).count()
    };
    let once = text
        .replace("%1 = chlo.erf %0", "%1 = stablehlo.abs %0")
        .replace("tensor<4xf32> -> tensor<4xf32>\n        return", "tensor<4xf32>\n        return");
    let core = CoreOps::default();
    let (once, twice) = (decompose(&read(&once), &core).unwrap(), decompose(&read(text), &core).unwrap());
    assert!(constants(&once) > 10);
    assert_eq!(constants(&once), constants(&twice));
}

#[test]
fn tuples_that_are_kept_have_the_storage_types_of_quantized_tensors() {
    const TY: &str = "tensor<2x!quant.uniform<i8:f32, 5.0e-1>>";
    let text = format!(
        "func.func @main(%x: {TY}) -> {TY} {{
            %0 = stablehlo.tuple %x : tuple<{TY}>
            %1 = stablehlo.tuple %0 : tuple<tuple<{TY}>>
            %2 = stablehlo.get_tuple_element %1[0] : (tuple<tuple<{TY}>>) -> tuple<{TY}>
            %3 = stablehlo.get_tuple_element %2[0] : (tuple<{TY}>) -> {TY}
            return %3 : {TY}
        }}"
    );
    let core = CoreOps::default().with(OpCode::Tuple).with(OpCode::GetTupleElement);
    let module = decompose(&read(&text), &core).unwrap();
    let main = module.main().unwrap();
    let types: Vec<String> = main
        .body
        .all_ops()
        .filter(|(_, op)| !op.results.is_empty())
        .map(|(_, op)| main.body.ty(op.result()).to_string())
        .collect();
    let expected =
        ["tuple<tensor<2xi8>>", "tuple<tuple<tensor<2xi8>>>", "tuple<tensor<2xi8>>", "tensor<2xi8>"];
    assert_eq!(types, expected);
}

#[test]
fn tuples_in_signatures_become_their_elements() {
    let module = decompose(&read(&sample("stablehlo.tuple")), &CoreOps::default()).unwrap();
    let main = module.main().unwrap();
    let results: Vec<_> = main.result_types().iter().map(Type::to_string).collect();
    assert_eq!(results, ["tensor<3xi32>", "tensor<2xf32>"]);
    assert_eq!(main.returned(), [main.arguments()[1], main.arguments()[0]]);
}

#[test]
fn quantized_types_become_their_storage() {
    let quantized = "tensor<4x!quant.uniform<i8:f32, 0.5:3>>";
    let text = function(
        &format!("%x: {quantized}"),
        &format!("stablehlo.add %x, %x : ({quantized}, {quantized}) -> {quantized}"),
        quantized,
    );
    let module = decompose(&read(&text), &CoreOps::default()).unwrap();
    assert_eq!(module.main().unwrap().argument_types()[0].to_string(), "tensor<4xi8>");
    assert_eq!(module.main().unwrap().result_types()[0].to_string(), "tensor<4xi8>");
    let kept = decompose(&read(&text), &CoreOps::default().with_quantized_types()).unwrap();
    assert_eq!(kept.to_string(), read(&text).to_string());
}

#[test]
fn elements_that_are_quantized_differently_do_not_mix() {
    let text = "func.func @main(%x: tensor<2x!quant.uniform<i8:f32, 0.5:3>>, %y: tensor<2x!quant.uniform<i8:f32, 0.25>>)
            -> tensor<4x!quant.uniform<i8:f32, 0.5:3>> {
        %0 = stablehlo.concatenate %x, %y, dim = 0 : (tensor<2x!quant.uniform<i8:f32, 0.5:3>>,
            tensor<2x!quant.uniform<i8:f32, 0.25>>) -> tensor<4x!quant.uniform<i8:f32, 0.5:3>>
        return %0 : tensor<4x!quant.uniform<i8:f32, 0.5:3>>
    }";
    let error = decompose(&read(text), &CoreOps::default()).unwrap_err().to_string();
    assert!(
        error.contains(
            "stablehlo.concatenate: expected equal quantization parameters of all operands and results"
        ),
        "{error}"
    );
}

#[test]
fn results_that_nothing_uses_go_away_and_effects_stay() {
    let text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
        %0 = chlo.square %x : tensor<4xf32> -> tensor<4xf32>
        %1 = stablehlo.sine %x : tensor<4xf32>
        %2 = stablehlo.custom_call @print(%x) {has_side_effect = true} : (tensor<4xf32>) -> tensor<4xf32>
        return %0 : tensor<4xf32>
    }";
    assert_eq!(decomposed_ops(text, &CoreOps::default()), ["stablehlo.custom_call", "stablehlo.multiply"]);
}

#[test]
fn attributes_stay_with_the_result() {
    let text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
        %0 = \"chlo.square\"(%x) {mhlo.sharding = \"{replicated}\"} : (tensor<4xf32>) -> tensor<4xf32>
        return %0 : tensor<4xf32>
    }";
    let module = decompose(&read(text), &CoreOps::default()).unwrap();
    let (_, multiply) = module.main().unwrap().body.all_ops().next().unwrap();
    assert_eq!(
        multiply.attributes.get("mhlo.sharding").and_then(|sharding| sharding.as_str()),
        Some("{replicated}")
    );
}

#[test]
fn a_map_of_more_than_elementwise_operations_is_an_error() {
    let text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
        %0 = \"stablehlo.map\"(%x) ({
        ^bb0(%a: tensor<f32>):
          %1 = stablehlo.reshape %a : (tensor<f32>) -> tensor<1xf32>
          %2 = stablehlo.reshape %1 : (tensor<1xf32>) -> tensor<f32>
          stablehlo.return %2 : tensor<f32>
        }) {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<4xf32>
        return %0 : tensor<4xf32>
    }";
    let error = decompose(&read(text), &CoreOps::default()).unwrap_err().to_string();
    assert!(error.contains("all its operations are elementwise"), "{error}");
    assert_eq!(
        decomposed_ops(text, &CoreOps::default().with(OpCode::Map)),
        ["stablehlo.map", "stablehlo.reshape"]
    );
}

#[test]
fn a_call_of_ragged_all_to_all_becomes_collectives_and_a_gather() {
    let call = |groups: &str, operand: &str| {
        format!(
            "func.func @main(%x: {operand}, %y: tensor<5x3xf32>, %o: tensor<4xi32>, %n: tensor<4xi32>) -> tensor<5x3xf32> {{
               %0 = stablehlo.custom_call @ragged_all_to_all(%x, %y, %o, %n, %o, %n) {{
                 api_version = 4 : i32, backend_config = {{channel_id = 1 : i64, replica_groups = dense<{groups}> : tensor<1x2xi64>}}
               }} : ({operand}, tensor<5x3xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) -> tensor<5x3xf32>
               return %0 : tensor<5x3xf32>
             }}"
        )
    };
    let text = call("[[0, 1]]", "tensor<7x3xf32>");
    let core = CoreOps::default();
    let ops = decomposed_ops(&text, &core);
    for op in ["stablehlo.all_gather", "stablehlo.all_to_all", "stablehlo.gather"] {
        assert!(ops.contains(&op.to_owned()), "{ops:?}");
    }
    assert!(!ops.iter().any(|op| op == "stablehlo.custom_call"), "{ops:?}");
    let kept = core.clone().with_other("ragged_all_to_all");
    assert_eq!(decomposed_ops(&text, &kept), ["stablehlo.custom_call"]);
    let of_wrong_type = call("[[0, 1]]", "tensor<7x4xf32>");
    let error = decompose(&read(&of_wrong_type), &core).unwrap_err().to_string();
    assert!(error.contains("custom_call"), "{error}");
}

/// The operations that the decomposition of an operation's sample consists of.
fn needed_ops(op: &str) -> Vec<String> {
    let before = ops(&read(&sample(op)));
    let after = decompose(&read(&sample(op)), &core_without(op)).unwrap();
    let is_new = |(name, count): &(&str, usize)| before.get(*name).is_none_or(|before| before < count);
    let names = after.op_counts().into_iter().filter(is_new).map(|(name, _)| name.to_owned());
    let names = names.filter(|name| !name.ends_with(".return"));
    names.map(|name| format!("`{}`", name.trim_start_matches("stablehlo."))).collect()
}

/// The page of the documentation that lists the decomposition of each operation.
fn page() -> String {
    let mut page = String::from(
        "# Core operations\n\nA device implements a part of StableHLO. `pjrt_stablehlo::passes` rewrites programs to the \
         operations of the device. This page lists the operations of the op table and of CHLO. A test generates it:\n\
         `UPDATE_DOCS=1 cargo test -p pjrt-stablehlo --test decompose` updates the page.\n\n\
         * **Core**: the operation is in `CoreOps::default()`.\n\
         * **Core, or**: the operation is in `CoreOps::default()`; for a device that lacks it, the rest of the cell names its \
         replacement. The same replacement serves a device that has the operation for other operands or element types only.\n\
         * Other operations are decomposed, unless they are added to the set.\n\n\
         The last column lists the StableHLO operations that a decomposition produces with `CoreOps::default()`, for floating-point \
         operands if the operation supports them. If a device lacks one of them and it cannot be decomposed further, the error names \
         both operations.\n\n\
         `decompose` replaces quantized types with their storage types. Operations on quantized types dequantize their operands, \
         compute on floats and quantize their results. Tuples become their elements. A composite is kept if the set contains its \
         name. Otherwise it becomes the CHLO function of its name, if that is a function of real numbers, or a call of its \
         decomposition. Operations with attributes as operands are decomposed if these operands are constants.\n\n\
         `CoreOps` limits an operation to element types (`for_elements`, `with_elements`) and to operands and attributes \
         (`with_condition`, which adds the operation and takes a function or a closure that captures nothing); uses beyond the limits are \
         replaced as if the set did not contain the operation. `Reducer::of` recognizes the computation of a reduction for such a \
         condition. `widened` declares that a device computes one float type in another one: \
         with `widened(BF16, F32)`, operations on bf16 that the device lacks are computed in f32, and rounded after each operation. \
         Numbers of i64 and ui64, of which `for_elements` does not name the type, are computed in 32 bits if they are known to fit, such as \
         the counters of JAX's random numbers.\n\n\
         The predicate of `select` may be a scalar, as may the bounds of `clamp`. A device whose `select` needs a predicate for each \
         element limits it by a condition, and receives the predicate broadcast.\n\n\
         A `gather` or `scatter` that is replaced becomes a loop over its indices, unless there are only a few and they are constant, so a \
         device without them needs `while`, `dynamic_slice` and `dynamic_update_slice`.\n\n\
         CHLO's functions of complex numbers become real functions of their parts. `without_complex_numbers` declares that a device has \
         no complex numbers: each tensor of them becomes one of real and one of imaginary parts, and arguments and results of `main` have \
         one more dimension for the parts, so that the bytes of their arrays are the same.\n\n| Operation | | Needs |\n| --- | --- | --- |\n",
    );
    let rules: BTreeMap<_, _> = decompositions().map(|rule| (rule.op, rule)).collect();
    let table = OpCode::ALL.iter().filter(|op| !op.info().has(Trait::Terminator)).map(|op| op.info().name);
    let chlo = decompositions().map(|rule| rule.op).filter(|op| op.starts_with("chlo."));
    for op in table.chain(chlo) {
        let what = match rules.get(op) {
            None => "Core".to_owned(),
            Some(rule) if rule.by_default => rule.into.to_owned(),
            Some(rule) => format!("Core, or {}", rule.into),
        };
        let needs = if rules.contains_key(op) { needed_ops(op).join(", ") } else { String::new() };
        writeln!(page, "| `{op}` | {what} | {needs} |").unwrap();
    }
    page
}

#[test]
fn the_page_of_core_operations_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/core-ops.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, page()).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page(), "docs/core-ops.md is not what the op table says: run with UPDATE_DOCS=1");
}

/// A quantized type of a different scale than the program's inputs have.
const OTHER: &str = "!quant.uniform<i8:f32, 2.0>";

#[test]
fn quantized_values_do_not_change_their_scale_on_the_way_into_a_region_or_future() {
    const SAME: &str = "!quant.uniform<i8:f32, 1.0>";
    let programs = [
        "func.func @main(%x: tensor<4xQ>, %z: tensor<Q>) -> tensor<Q> {
            %0 = \"stablehlo.reduce\"(%x, %z) ({
            ^bb0(%a: tensor<I>, %b: tensor<I>):
                %1 = stablehlo.add %a, %b : tensor<I>
                stablehlo.return %1 : tensor<I>
            }) {dimensions = array<i64: 0>} : (tensor<4xQ>, tensor<Q>) -> tensor<Q>
            return %0 : tensor<Q>
        }",
        "func.func @main(%x: tensor<Q>) -> tensor<Q> {
            %0 = \"stablehlo.while\"(%x) ({
            ^bb0(%a: tensor<I>):
                %1 = stablehlo.constant dense<false> : tensor<i1>
                stablehlo.return %1 : tensor<i1>
            }, {
            ^bb0(%a: tensor<I>):
                stablehlo.return %a : tensor<I>
            }) : (tensor<Q>) -> tensor<Q>
            return %0 : tensor<Q>
        }",
        "func.func @main(%x: tensor<4xQ>) -> tensor<4xQ> {
            %0 = \"stablehlo.sort\"(%x) ({
            ^bb0(%a: tensor<I>, %b: tensor<I>):
                %1 = stablehlo.compare LT, %a, %b : (tensor<I>, tensor<I>) -> tensor<i1>
                stablehlo.return %1 : tensor<i1>
            }) : (tensor<4xQ>) -> tensor<4xQ>
            return %0 : tensor<4xQ>
        }",
        "func.func @main(%x: tensor<4xQ>) -> tensor<4xQ> {
            %0 = \"stablehlo.async_start\"(%x) ({
            ^bb0(%a: tensor<4xI>):
                %1 = stablehlo.slice %a [0:4] : (tensor<4xI>) -> tensor<4xI>
                stablehlo.return %1 : tensor<4xI>
            }) : (tensor<4xQ>) -> !stablehlo.future<tensor<4xI>>
            %2 = \"stablehlo.async_done\"(%0) : (!stablehlo.future<tensor<4xI>>) -> tensor<4xI>
            return %x : tensor<4xQ>
        }",
    ];
    for program in programs {
        let decomposed = |inner: &str| {
            let program = program
                .replace("tensor<4xQ>", &format!("tensor<4x{SAME}>"))
                .replace("<Q>", &format!("<{SAME}>"));
            let program =
                program.replace("<I>", &format!("<{inner}>")).replace("<4xI>", &format!("<4x{inner}>"));
            decompose(&pjrt_stablehlo::parse(program.into_bytes()).unwrap(), &CoreOps::default())
        };
        decomposed(SAME).unwrap();
        let error = decomposed(OTHER).unwrap_err();
        assert!(error.message.contains("without requantization"), "{error}");
    }
}

#[test]
fn what_is_started_takes_the_place_of_its_start() {
    let found = decomposed_ops(STARTED, &CoreOps::default());
    assert_eq!(found, ["stablehlo.add", "stablehlo.all_reduce", "stablehlo.multiply", "stablehlo.negate"]);
    let one = CoreOps::default().with(OpCode::AsyncDone);
    let error = decompose(&read(STARTED), &one).unwrap_err().to_string();
    assert!(error.contains("have both, or neither"), "{error}");
    let both = one.with(OpCode::AsyncStart);
    assert_eq!(decompose(&read(STARTED), &both).unwrap().to_string(), read(STARTED).to_string());
}

#[test]
fn what_is_quantized_in_the_same_way_already_is_left_alone() {
    let ty = "tensor<4x!quant.uniform<i8:f32, 0.5:3>>";
    let text = |from: &str| {
        let op = format!("\"stablehlo.uniform_quantize\"(%x) : ({from}) -> {ty}");
        function(&format!("%x: {from}"), &op, ty)
    };
    assert!(decomposed_ops(&text(ty), &CoreOps::default()).is_empty());
    let other = "tensor<4x!quant.uniform<i8:f32, 0.25:3>>";
    assert!(!decomposed_ops(&text(other), &CoreOps::default()).is_empty());
}

#[test]
fn selecting_of_nothing_gives_zeros() {
    let text = |dims: &str, result: &str| {
        let (operand, result) = (format!("tensor<{dims}xf32>"), format!("tensor<{result}xf32>"));
        let op = format!(
            "\"stablehlo.torch_index_select\"(%x, %i) {{dim = 1 : i64, batch_dims = 0 : i64}} : \
             ({operand}, tensor<2xi32>) -> {result}"
        );
        function(&format!("%x: {operand}, %i: tensor<2xi32>"), &op, &result)
    };
    assert!(decomposed_ops(&text("3x0", "3x2"), &CoreOps::default()).is_empty());
    assert_eq!(decomposed_ops(&text("0x3", "0x2"), &CoreOps::default()), ["stablehlo.gather"]);
}

#[test]
fn calls_in_place_of_chlos_functions_become_what_these_do() {
    let erf = |target: &str, result: &str| {
        format!(
            "func.func @main(%x: tensor<3xf32>) -> tensor<{result}> {{
               %0 = stablehlo.custom_call @{target}(%x) {{mhlo.attributes = {{}}, mhlo.version = 1 : i64}}
                   : (tensor<3xf32>) -> tensor<{result}>
               return %0 : tensor<{result}>
             }}"
        )
    };
    let chlo = "func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
      %0 = chlo.erf %x : tensor<3xf32> -> tensor<3xf32>
      return %0 : tensor<3xf32>
    }";
    let core = CoreOps::default();
    assert_eq!(decomposed_ops(&erf("mhlo.erf", "3xf32"), &core), decomposed_ops(chlo, &core));
    assert_eq!(
        decomposed_ops(&erf("mhlo.erf", "3xf32"), &core.clone().with_other("chlo.erf")),
        ["stablehlo.custom_call"]
    );
    assert_eq!(decomposed_ops(&erf("vendor.erf", "3xf32"), &core), ["stablehlo.custom_call"]);
    for wrong in ["4xf32", "3xf64"] {
        let error = decompose(&read(&erf("mhlo.erf", wrong)), &core).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unsupported, "{error}");
    }
    let top_k = |largest: bool, k: usize| {
        format!(
            "func.func @main(%x: tensor<2x5xf32>) -> (tensor<2x{k}xf32>, tensor<2x{k}xi32>) {{
               %0:2 = stablehlo.custom_call @mhlo.topk(%x) {{mhlo.attributes = {{k = 3 : i64, largest = {largest}}}}}
                   : (tensor<2x5xf32>) -> (tensor<2x{k}xf32>, tensor<2x{k}xi32>)
               return %0#0, %0#1 : tensor<2x{k}xf32>, tensor<2x{k}xi32>
             }}"
        )
    };
    assert!(decomposed_ops(&top_k(true, 3), &core).contains(&"stablehlo.sort".to_owned()));
    assert!(decompose(&read(&top_k(false, 3)), &core).is_err());
    assert!(decompose(&read(&top_k(true, 4)), &core).is_err());
}

#[test]
fn sizes_of_results_that_become_known_are_in_the_signature() {
    let module = decompose(
        &read(
            "func.func @main(%x: tensor<3xf32>) -> tensor<?x?xf32> {
               %shape = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
               %0 = stablehlo.dynamic_broadcast_in_dim %x, %shape, dims = [1] : (tensor<3xf32>, tensor<2xi64>) -> tensor<?x?xf32>
               return %0 : tensor<?x?xf32>
             }",
        ),
        &CoreOps::default(),
    );
    let module = module.unwrap();
    assert_eq!(module.main().unwrap().result_types()[0].to_string(), F32);
    pjrt_stablehlo::verify(&module).unwrap();
}

#[test]
fn errors_about_einsums_name_them() {
    for (config, result, words) in [
        ("ij,jk->ik", "2x4", "expected equal sizes of 'j' in \"ij,jk->ik\", found 3 and 5"),
        ("ij,kl->ik", "2x4", "result 0: expected tensor<2x5xf32>, found tensor<2x4xf32>"),
    ] {
        let text = format!(
            "func.func @main(%a: tensor<2x3xf32>, %b: tensor<5x4xf32>) -> tensor<{result}xf32> {{\n\
             %0 = stablehlo.einsum %a, %b, config = \"{config}\" \
             : (tensor<2x3xf32>, tensor<5x4xf32>) -> tensor<{result}xf32>\n\
             return %0 : tensor<{result}xf32>\n}}"
        );
        let error = decompose(&parse(text).unwrap(), &CoreOps::default()).unwrap_err();
        assert_eq!(error.op.as_deref(), Some("stablehlo.einsum"), "{error}");
        assert!(error.message.contains(words), "{error}");
    }
}

#[test]
fn errors_about_unknown_sizes_say_what_makes_them_known() {
    let text = "func.func @main(%a: tensor<?x4xf32>) -> tensor<?x4xf32> {\n\
                %0 = chlo.erf %a : tensor<?x4xf32> -> tensor<?x4xf32>\nreturn %0 : tensor<?x4xf32>\n}";
    let error = decompose(&parse(text).unwrap(), &CoreOps::default()).unwrap_err();
    assert!(error.message.contains("refine_shapes"), "{error}");
    let refused = "func.func @main(%a: tensor<4xf32>) {\n\"x.y\"(%a) : (tensor<4xf32>) -> ()\nreturn\n}";
    let error = decompose(&parse(refused).unwrap(), &CoreOps::default()).unwrap_err();
    assert!(!error.message.contains("refine_shapes"), "{error}");
}
