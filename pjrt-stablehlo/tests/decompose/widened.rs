//! Devices that compute narrow floats in a wider type.

use pjrt_stablehlo::ir::ElementType::{BF16, F16, F32, I1, I32};
use pjrt_stablehlo::ir::OpCode;
use pjrt_stablehlo::passes::{CoreOps, decompose, is_core, missing};

use super::{ops, read};

/// A device that computes with f32, and holds arrays of bf16 and f16.
fn core() -> CoreOps {
    CoreOps::default().for_elements([F32, I32, I1]).widened(BF16, F32).widened(F16, F32)
}

/// Decomposes a program, and checks that only conversions and operations that pass on arrays have narrow types.
fn widened(text: &str) -> String {
    let module = decompose(&read(text), &core()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert!(is_core(&module, &core()));
    for (_, op) in module.functions().iter().flat_map(|function| function.body.all_ops()) {
        let elements = module.main().unwrap().body.element_types(op);
        let is_narrow = elements.iter().any(|element| [BF16, F16].contains(element));
        let passes_on = matches!(
            op.kind.code(),
            OpCode::Convert
                | OpCode::While
                | OpCode::Return
                | OpCode::FuncReturn
                | OpCode::OptimizationBarrier
        );
        assert!(!is_narrow || passes_on, "{}: {elements:?}\n{module}", op.kind);
    }
    module.to_string()
}

#[test]
fn the_result_of_each_operation_is_rounded() {
    let text = "func.func @main(%x: tensor<4xbf16>, %y: tensor<4xbf16>) -> tensor<4xbf16> {
        %0 = stablehlo.add %x, %y : tensor<4xbf16>
        %1 = stablehlo.tanh %0 : tensor<4xbf16>
        return %1 : tensor<4xbf16>
    }";
    widened(text);
    let module = decompose(&read(text), &core()).unwrap();
    let ops = module.main().unwrap().ops().map(|(_, op)| op.kind.name().to_owned());
    let (convert, add, tanh) = ("stablehlo.convert", "stablehlo.add", "stablehlo.tanh");
    let expected = [convert, convert, add, convert, convert, tanh, convert, "func.return"];
    assert_eq!(ops.collect::<Vec<_>>(), expected);
}

#[test]
fn operations_of_all_kinds_are_widened_with_their_regions_and_attributes() {
    let text = "func.func @main(%x: tensor<2x3xbf16>, %s: tensor<bf16>, %h: tensor<3x2xf16>, %i: tensor<i32>)
            -> (tensor<bf16>, tensor<2xbf16>, tensor<2x2xf32>, tensor<2x3xi1>, tensor<2x3xf16>, tensor<2x3xi32>) {
        %c = stablehlo.constant dense<[[1.5, -0.0, 0x7F80], [2.0, 3.0, 4.0]]> : tensor<2x3xbf16>
        %iota = stablehlo.iota dim = 1 : tensor<2x3xbf16>
        %0 = stablehlo.multiply %x, %c {mhlo.note = \"kept\"} : tensor<2x3xbf16>
        %1 = stablehlo.add %0, %iota : tensor<2x3xbf16>
        %2 = stablehlo.reduce(%1 init: %s) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x3xbf16>, tensor<bf16>) -> tensor<bf16>
        %3 = stablehlo.reduce(%1 init: %s) across dimensions = [1] : (tensor<2x3xbf16>, tensor<bf16>) -> tensor<2xbf16>
            reducer(%a: tensor<bf16>, %b: tensor<bf16>) {
                %two = stablehlo.constant dense<2.0> : tensor<bf16>
                %w = stablehlo.convert %a : (tensor<bf16>) -> tensor<f32>
                %n = stablehlo.convert %w : (tensor<f32>) -> tensor<bf16>
                %m = stablehlo.multiply %n, %two : tensor<bf16>
                %t = stablehlo.multiply %m, %s : tensor<bf16>
                %r = stablehlo.add %t, %b : tensor<bf16>
                stablehlo.return %r : tensor<bf16>
            }
        %hb = stablehlo.convert %h : (tensor<3x2xf16>) -> tensor<3x2xbf16>
        %4 = stablehlo.dot_general %x, %hb, contracting_dims = [1] x [0] : (tensor<2x3xbf16>, tensor<3x2xbf16>) -> tensor<2x2xf32>
        %5 = stablehlo.compare LT, %x, %1 : (tensor<2x3xbf16>, tensor<2x3xbf16>) -> tensor<2x3xi1>
        %6 = stablehlo.transpose %h, dims = [1, 0] : (tensor<3x2xf16>) -> tensor<2x3xf16>
        %7 = stablehlo.convert %x : (tensor<2x3xbf16>) -> tensor<2x3xi32>
        return %2, %3, %4, %5, %6, %7 : tensor<bf16>, tensor<2xbf16>, tensor<2x2xf32>, tensor<2x3xi1>, tensor<2x3xf16>, tensor<2x3xi32>
    }";
    let text = widened(text);
    assert!(text.contains("mhlo.note = \"kept\""), "{text}");
    assert!(text.contains("dense<[[1.5") && text.contains("0x7F800000"), "{text}");
}

#[test]
fn loops_and_calls_pass_on_narrow_arrays() {
    let text = "func.func @main(%x: tensor<4xbf16>) -> tensor<4xbf16> {
        %c = stablehlo.constant dense<0> : tensor<i32>
        %0:2 = stablehlo.while(%i = %c, %a = %x) : tensor<i32>, tensor<4xbf16>
            cond {
                %n = stablehlo.constant dense<3> : tensor<i32>
                %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
                stablehlo.return %p : tensor<i1>
            } do {
                %one = stablehlo.constant dense<1> : tensor<i32>
                %j = stablehlo.add %i, %one : tensor<i32>
                %d = stablehlo.add %a, %a : tensor<4xbf16>
                stablehlo.return %j, %d : tensor<i32>, tensor<4xbf16>
            }
        %1 = stablehlo.optimization_barrier %0#1 : tensor<4xbf16>
        return %1 : tensor<4xbf16>
    }";
    widened(text);
}

#[test]
fn an_operation_that_the_device_has_for_the_narrow_type_is_not_widened() {
    let text = "func.func @main(%x: tensor<4xbf16>) -> tensor<4xbf16> {
        %0 = stablehlo.negate %x : tensor<4xbf16>
        return %0 : tensor<4xbf16>
    }";
    let core = core().with_elements(OpCode::Negate, [F32, BF16]);
    let module = decompose(&read(text), &core).unwrap();
    assert!(!ops(&module).contains_key("stablehlo.convert"));
}

#[test]
fn what_cannot_be_widened_is_refused_and_missing() {
    let bits = "func.func @main(%x: tensor<4xbf16>) -> tensor<4xi16> {
        %0 = stablehlo.bitcast_convert %x : (tensor<4xbf16>) -> tensor<4xi16>
        return %0 : tensor<4xi16>
    }";
    let error = decompose(&read(bits), &core()).unwrap_err().to_string();
    assert!(error.contains("but not for bf16"), "{error}");
    let text = "func.func @main(%x: tensor<4xbf16>) -> tensor<4xbf16> {
        %0 = stablehlo.exponential %x : tensor<4xbf16>
        %1 = stablehlo.log %0 : tensor<4xbf16>
        return %1 : tensor<4xbf16>
    }";
    let missing = missing(&read(text), &core().without(OpCode::Exponential)).unwrap();
    let lines: Vec<String> = missing.ops.iter().map(ToString::to_string).collect();
    assert!(
        matches!(&lines[..], [line] if line.starts_with("stablehlo.exponential of bf16: the device does not support")),
        "{lines:?}"
    );
    let replaced: Vec<&str> = missing.replaced.iter().map(|op| &*op.op).collect();
    assert_eq!(replaced, ["stablehlo.log"]);
}

#[test]
fn a_refused_conversion_is_named_with_both_element_types() {
    let text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf64> {
        %0 = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xf64>
        return %0 : tensor<4xf64>
    }";
    let limited = CoreOps::default().named("mychip").for_elements([F32, I32]);
    let error = decompose(&read(text), &limited).unwrap_err().message;
    assert!(
        error.contains("mychip supports this operation for i32, f32, but not from f32 to f64"),
        "{error}"
    );
    let limited = CoreOps::default().named("mychip").with_condition(OpCode::Convert, |_, _| false);
    let error = decompose(&read(text), &limited).unwrap_err().message;
    assert!(error.contains("mychip does not support this operation from f32 to f64"), "{error}");
}

#[test]
#[should_panic(expected = "bf16 is no wider float type than f16")]
fn a_type_is_widened_to_a_wider_one() {
    let _ = CoreOps::default().widened(F16, BF16);
}
