//! Programs of narrow floats that are computed in f32, compared with refcpu's kernels for narrow floats.

use pjrt_stablehlo::ir::ElementType::{BF16, F16, F32, I1, I32};
use pjrt_stablehlo::passes::{CoreOps, decompose};
use refcpu_engine::compile::{CompileOptions, compile};
use refcpu_engine::exec::{Input, RunOptions, Runtime, run};
use refcpu_engine::storage::{Allocator, AllocatorOptions, Array};
use refcpu_kernels::{DType, Pool};

const COUNT: usize = 4096;

/// Numbers of many magnitudes and both signs, as bits of a narrow float: those of a counter, so that zeros, subnormal numbers and
/// infinities are among them.
fn bits(step: u16) -> Vec<u8> {
    (0..COUNT).flat_map(|i| (i as u16).wrapping_mul(step).wrapping_add(step / 3).to_le_bytes()).collect()
}

/// Returns the bits of the results, with one NaN in place of all.
fn results(text: &str, core: &CoreOps, ty: DType) -> Vec<Vec<u16>> {
    let module = pjrt_stablehlo::parse(text.to_owned()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let module = decompose(&module, core).unwrap();
    let compiled =
        compile(&module, &CompileOptions::default()).unwrap_or_else(|error| panic!("{error}\n{module}"));
    let runtime = Runtime::new(Pool::inline(), Allocator::new(AllocatorOptions::default()));
    let input = |step: u16| Input {
        array: Array::from_bytes(&runtime.allocator, ty, &[COUNT], &bits(step)).unwrap(),
        donatable: false,
    };
    let inputs = vec![vec![input(15), input(41)]];
    let results = run(&compiled.plan, &runtime, inputs, &RunOptions::default()).unwrap().remove(0);
    let (infinity, nan) = if ty == DType::BF16 { (0x7f80, 0x7fc0) } else { (0x7c00, 0x7e00) };
    let canonical = |bytes: &[u8]| match u16::from_le_bytes(bytes.try_into().unwrap()) {
        bits if bits & 0x7fff > infinity => nan,
        bits => bits,
    };
    results.iter().map(|array| array.bytes().unwrap().chunks_exact(2).map(canonical).collect()).collect()
}

/// Compares a program on a device with narrow floats with that on one that computes in f32.
fn check(body: &str) {
    for (name, ty) in [("bf16", DType::BF16), ("f16", DType::F16)] {
        let text = format!(
            "func.func @main(%x: tensor<{COUNT}xT>, %y: tensor<{COUNT}xT>) -> tensor<{COUNT}xT> {{
                {body}
                return %r : tensor<{COUNT}xT>
            }}"
        );
        let text = text.replace("xT>", &format!("x{name}>")).replace("<T>", &format!("<{name}>"));
        let narrow = CoreOps::default();
        let wide = CoreOps::default().for_elements([F32, I32, I1]).widened(BF16, F32).widened(F16, F32);
        assert_eq!(results(&text, &wide, ty), results(&text, &narrow, ty), "{text}");
    }
}

#[test]
fn arithmetic_has_the_results_of_the_narrow_type() {
    for op in ["add", "subtract", "multiply", "divide", "maximum", "minimum"] {
        check(&format!("%r = stablehlo.{op} %x, %y : tensor<{COUNT}xT>"));
    }
    for op in ["negate", "abs", "sqrt", "floor"] {
        check(&format!("%r = stablehlo.{op} %x : tensor<{COUNT}xT>"));
    }
}

#[test]
fn each_operation_of_an_expression_is_rounded() {
    check(&format!(
        "%c = stablehlo.constant dense<0.3> : tensor<{COUNT}xT>
         %0 = stablehlo.multiply %x, %y : tensor<{COUNT}xT>
         %1 = stablehlo.add %0, %c : tensor<{COUNT}xT>
         %2 = stablehlo.subtract %1, %0 : tensor<{COUNT}xT>
         %p = stablehlo.compare LT, %2, %y : (tensor<{COUNT}xT>, tensor<{COUNT}xT>) -> tensor<{COUNT}xi1>
         %r = stablehlo.select %p, %2, %x : tensor<{COUNT}xi1>, tensor<{COUNT}xT>"
    ));
}

#[test]
fn arrays_are_moved_and_reduced_as_in_the_narrow_type() {
    check(&format!(
        "%i = stablehlo.constant dense<-100.0> : tensor<T>
         %s = stablehlo.reshape %x : (tensor<{COUNT}xT>) -> tensor<64x64xT>
         %t = stablehlo.transpose %s, dims = [1, 0] : (tensor<64x64xT>) -> tensor<64x64xT>
         %z = stablehlo.iota dim = 0 : tensor<64x64xT>
         %m = stablehlo.minimum %t, %z : tensor<64x64xT>
         %f = stablehlo.reduce(%m init: %i) applies stablehlo.maximum across dimensions = [1] : (tensor<64x64xT>, tensor<T>) -> tensor<64xT>
         %b = stablehlo.broadcast_in_dim %f, dims = [0] : (tensor<64xT>) -> tensor<64x64xT>
         %r = stablehlo.reshape %b : (tensor<64x64xT>) -> tensor<{COUNT}xT>"
    ));
}
