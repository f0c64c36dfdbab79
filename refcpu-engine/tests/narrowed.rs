//! Programs of 64-bit integers that are computed in 32-bit ones, compared with the wide integers.

use pjrt_stablehlo::ir::ElementType::{F32, I1, I8, I32, Ui32};
use pjrt_stablehlo::passes::{CoreOps, decompose};
use refcpu_engine::compile::{CompileOptions, compile};
use refcpu_engine::exec::{Input, RunOptions, Runtime, run};
use refcpu_engine::storage::{Allocator, AllocatorOptions, Array};
use refcpu_kernels::{DType, Pool};

const COUNT: usize = 256;

/// Returns the bytes of the results of a program for these arguments.
fn results(text: &str, core: &CoreOps, arguments: &[(DType, &[usize], Vec<u8>)]) -> Vec<Vec<u8>> {
    let module = pjrt_stablehlo::parse(text.to_owned()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let module = decompose(&module, core).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let compiled =
        compile(&module, &CompileOptions::default()).unwrap_or_else(|error| panic!("{error}\n{module}"));
    let runtime = Runtime::new(Pool::inline(), Allocator::new(AllocatorOptions::default()));
    let inputs = arguments.iter().map(|(ty, dims, bytes)| Input {
        array: Array::from_bytes(&runtime.allocator, *ty, dims, bytes).unwrap(),
        donatable: false,
    });
    let inputs = vec![inputs.collect()];
    let results = run(&compiled.plan, &runtime, inputs, &RunOptions::default()).unwrap().remove(0);
    results.iter().map(|array| array.bytes().unwrap().to_vec()).collect()
}

/// Compares a program on a device with integers of 64 bits with that on one without. The program computes `%r` from `%a` and `%b`,
/// which have all numbers of 8 bits, from `%n` and `%m`, which have the natural ones among them, and from `%i`, a counter.
fn check(body: &str) {
    let (bytes, wide) = (format!("tensor<{COUNT}xi8>"), format!("tensor<{COUNT}xi64>"));
    let text = format!(
        "func.func @main(%x: {bytes}, %y: {bytes}) -> (tensor<{COUNT}xi32>, tensor<{COUNT}xf32>) {{
            %a = stablehlo.convert %x : ({bytes}) -> WIDE
            %b = stablehlo.convert %y : ({bytes}) -> WIDE
            %i = stablehlo.iota dim = 0 : WIDE
            %zero = stablehlo.constant dense<0> : WIDE
            %one = stablehlo.constant dense<1> : WIDE
            %n = stablehlo.maximum %a, %zero : WIDE
            %m = stablehlo.maximum %b, %zero : WIDE
            {body}
            %r32 = stablehlo.convert %r : (WIDE) -> tensor<{COUNT}xi32>
            %rf = stablehlo.convert %r : (WIDE) -> tensor<{COUNT}xf32>
            return %r32, %rf : tensor<{COUNT}xi32>, tensor<{COUNT}xf32>
        }}"
    );
    let text = text.replace("WIDE", &wide);
    let narrow = CoreOps::default().for_elements([F32, I8, I32, Ui32, I1]);
    // All numbers of 8 bits, in two orders.
    let argument = |step: u8| {
        let bytes: Vec<u8> = (0..COUNT).map(|at| (at as u8).wrapping_mul(step)).collect();
        (DType::S8, &[COUNT][..], bytes)
    };
    let arguments = [argument(1), argument(107)];
    assert_eq!(
        results(&text, &narrow, &arguments),
        results(&text, &CoreOps::default(), &arguments),
        "{text}"
    );
}

#[test]
fn operations_on_small_numbers_have_the_results_of_wide_integers() {
    for op in ["add", "subtract", "multiply", "maximum", "minimum"] {
        check(&format!("%r = stablehlo.{op} %a, %b : WIDE"));
        check(&format!("%r = stablehlo.{op} %i, %b : WIDE"));
    }
    for op in ["divide", "remainder"] {
        check(&format!("%d = stablehlo.add %m, %one : WIDE %r = stablehlo.{op} %n, %d : WIDE"));
    }
    check("%r = stablehlo.and %n, %m : WIDE");
    check(
        "%most = stablehlo.constant dense<31> : WIDE
         %bits = stablehlo.minimum %m, %most : WIDE
         %r = stablehlo.shift_right_logical %n, %bits : WIDE",
    );
    check(
        "%p = stablehlo.compare GT, %a, %b : (WIDE, WIDE) -> tensor<256xi1> %r = stablehlo.select %p, %i, %b : tensor<256xi1>, WIDE",
    );
    check("%s = stablehlo.slice %i [1:256:5] : (WIDE) -> tensor<51xi64> %t = stablehlo.slice %a [0:205] : (WIDE) -> tensor<205xi64>
           %r = stablehlo.concatenate %s, %t, dim = 0 : (tensor<51xi64>, tensor<205xi64>) -> WIDE");
}

#[test]
fn chains_of_operations_have_the_results_of_wide_integers() {
    check(
        "%0 = stablehlo.multiply %a, %b : WIDE
         %1 = stablehlo.multiply %0, %i : WIDE
         %2 = stablehlo.subtract %1, %n : WIDE
         %3 = stablehlo.reverse %2, dims = [0] : WIDE
         %4 = stablehlo.reshape %3 : (WIDE) -> tensor<16x16xi64>
         %5 = stablehlo.transpose %4, dims = [1, 0] : (tensor<16x16xi64>) -> tensor<16x16xi64>
         %6 = stablehlo.reshape %5 : (tensor<16x16xi64>) -> WIDE
         %r = stablehlo.minimum %6, %2 : WIDE",
    );
}

#[test]
fn random_numbers_of_jax_are_the_same_without_wide_integers() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../cargo-pjrt/data/needs/random.mlir");
    let programs = std::fs::read_to_string(path).unwrap();
    let narrow = CoreOps::default().for_elements([F32, I32, Ui32, I1]);
    let key =
        (DType::U32, &[2][..], [7_u32, 1 << 31].into_iter().flat_map(u32::to_le_bytes).collect::<Vec<_>>());
    let mut compared = 0;
    for program in programs.split("// ----- ").skip(1) {
        let (name, text) = program.split_once('\n').unwrap();
        // The others have arguments of other types, or results of bf16.
        if text.contains("@main(%arg0: tensor<2xui32>) ->") && !text.contains("bf16") {
            let of = |core: &CoreOps| results(text, core, std::slice::from_ref(&key));
            assert_eq!(of(&narrow), of(&CoreOps::default()), "{name}");
            compared += usize::from(text.contains("ui64"));
        }
    }
    assert!(compared >= 5, "{compared} programs with counters of 64 bits were compared");
}
