//! The dry run of `decompose`, and sets with limits.

use pjrt_stablehlo::ir::{ElementType, OpCode};
use pjrt_stablehlo::passes::{CoreOps, Missing, decompose, decompositions, missing};

use crate::read;
use crate::samples::{function, sample};

fn found(text: &str, core: &CoreOps) -> Missing {
    missing(&read(text), core).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn names(missing: &Missing) -> Vec<&str> {
    missing.ops.iter().map(|op| &*op.op).collect()
}

#[test]
fn operations_are_missing_exactly_if_the_program_cannot_be_decomposed() {
    let smallest =
        CoreOps::from_ops([OpCode::Add, OpCode::Constant, OpCode::FuncCall, OpCode::BroadcastInDim]);
    let few = CoreOps::from_ops([]).with(OpCode::Convert).for_elements([ElementType::F32]);
    let mut counts = [0, 0];
    for decomposition in decompositions() {
        let text = sample(decomposition.op);
        for core in [CoreOps::default(), crate::core_without(decomposition.op), smallest.clone(), few.clone()]
        {
            let error = decompose(&read(&text), &core).err();
            let missing = found(&text, &core);
            assert_eq!(missing.ops.is_empty(), error.is_none(), "{text}\n{error:?}\n{missing:?}");
            counts[usize::from(error.is_none())] += 1;
        }
    }
    assert!(counts.iter().all(|&count| count > 50), "{counts:?}");
}

#[test]
fn every_missing_operation_is_listed_with_its_uses() {
    let text = "func.func @main(%x: tensor<4xf32>, %y: tensor<4xf64>) -> (tensor<4xf32>, tensor<4xf64>) {
        %0 = stablehlo.exponential %x : tensor<4xf32> loc(\"first\")
        %1 = stablehlo.exponential %0 : tensor<4xf32> loc(\"second\")
        %2 = stablehlo.exponential %y : tensor<4xf64> loc(\"third\")
        %3 = stablehlo.log %2 : tensor<4xf64> loc(\"fourth\")
        %4 = stablehlo.add %1, %1 : tensor<4xf32>
        return %4, %3 : tensor<4xf32>, tensor<4xf64>
    }";
    let core = CoreOps::from_ops([OpCode::Add]).named("mychip");
    let lines: Vec<String> = found(text, &core).ops.iter().map(ToString::to_string).collect();
    let reason = "mychip does not support this operation, and it cannot be decomposed";
    assert_eq!(
        lines,
        [
            format!("stablehlo.exponential of f32: {reason} (2 times, at \"first\")"),
            format!("stablehlo.exponential of f64: {reason} (once, at \"third\")"),
            format!("stablehlo.log of f64: {reason} (once, at \"fourth\")"),
        ]
    );
}

#[test]
fn an_operation_is_replaced_for_the_element_types_that_the_device_lacks() {
    let core = CoreOps::default().with_elements(OpCode::Tan, [ElementType::F32]);
    let program = |ty: &str| function(&format!("%x: {ty}"), &format!("stablehlo.tan %x : {ty}"), ty);
    let kept = decompose(&read(&program("tensor<4xf32>")), &core).unwrap();
    assert!(kept.op_counts().contains_key("stablehlo.tan"));
    let missing = found(&program("tensor<4xf64>"), &core);
    assert_eq!((missing.ops.len(), &*missing.replaced[0].op), (0, "stablehlo.tan"));
    assert!(missing.replaced[0].into.contains_key("stablehlo.sine"));
}

#[test]
fn refusals_name_the_device_and_its_element_types() {
    let ty = "tensor<4xf64>";
    let text = function(&format!("%x: {ty}"), &format!("stablehlo.exponential %x : {ty} loc(\"here\")"), ty);
    let core = CoreOps::default().named("mychip").for_elements([ElementType::F32, ElementType::BF16]);
    assert_eq!(
        decompose(&read(&text), &core).unwrap_err().to_string(),
        "stablehlo.exponential: mychip supports this operation for bf16, f32, but not for f64, and it cannot be decomposed at \"here\""
    );
    // The elements of one operation replace those of the device.
    let core = core.with_elements(OpCode::Exponential, [ElementType::F64]);
    assert_eq!(names(&found(&text, &core)), [""; 0]);
    let never = CoreOps::default().with_condition(OpCode::Exponential, |_, _| false);
    let error = decompose(&read(&text), &never).unwrap_err().to_string();
    assert!(error.contains("with these operands or attributes"), "{error}");
}

#[test]
fn shapes_that_are_constants_do_not_count_as_missing() {
    let text = "func.func @main(%x: tensor<4xf32>) -> tensor<2x2xf32> {
        %c = stablehlo.constant dense<[1, 1]> : tensor<2xi64>
        %s = stablehlo.add %c, %c : tensor<2xi64>
        %0 = stablehlo.dynamic_reshape %x, %s : (tensor<4xf32>, tensor<2xi64>) -> tensor<2x2xf32>
        return %0 : tensor<2x2xf32>
    }";
    let missing = found(text, &CoreOps::default());
    assert_eq!(names(&missing), [""; 0]);
    assert!(missing.replaced[0].into.contains_key("stablehlo.reshape"), "{missing:?}");
}

#[test]
fn operations_in_functions_and_regions_are_found() {
    let text = "func.func @main(%x: tensor<f32>) -> tensor<f32> {
        %0 = call @f(%x) : (tensor<f32>) -> tensor<f32>
        return %0 : tensor<f32>
    }
    func.func private @f(%x: tensor<f32>) -> tensor<f32> {
        %c = stablehlo.constant dense<true> : tensor<i1>
        %0 = \"stablehlo.if\"(%c) ({
            %1 = stablehlo.exponential %x : tensor<f32>
            stablehlo.return %1 : tensor<f32>
        }, {
            stablehlo.return %x : tensor<f32>
        }) : (tensor<i1>) -> tensor<f32>
        return %0 : tensor<f32>
    }";
    let core = CoreOps::default().without(OpCode::Exponential).without(OpCode::If);
    let missing = found(text, &core);
    assert_eq!(names(&missing), ["stablehlo.exponential"]);
    assert_eq!(missing.ops[0].part_of, None, "{missing:?}");
    let replaced: Vec<&str> = missing.replaced.iter().map(|op| &*op.op).collect();
    assert_eq!(replaced, ["stablehlo.if"]);
}
