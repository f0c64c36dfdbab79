//! Scans of CHLO, as operations and as the composites that XLA's clients write in their place.

use refcpu_engine::compile::{CompileOptions, compile};
use refcpu_engine::exec::{Input, RunOptions, Runtime, run};
use refcpu_engine::storage::{Allocator, AllocatorOptions, Array};
use refcpu_kernels::{DType, Pool};

const REGION: &str = "{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s, %s : tensor<f32>, tensor<f32>
    }";

const TYPES: &str = "(tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<f32>)";

/// A program that returns the results of an operation on 1, 2, 3 and 4, from 0 on.
fn program(operation: &str, more: &str) -> String {
    format!(
        "func.func public @main() -> (tensor<4xf32>, tensor<f32>) {{
           %x = stablehlo.constant dense<[1., 2., 3., 4.]> : tensor<4xf32>
           %i = stablehlo.constant dense<0.> : tensor<f32>
           %0:2 = {operation} : {TYPES}
           return %0#0, %0#1 : tensor<4xf32>, tensor<f32>
         }}
         {more}"
    )
}

fn results(text: &str) -> Vec<Vec<f32>> {
    let module = pjrt_stablehlo::parse(text.to_owned()).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let compiled = compile(&module, &CompileOptions::default()).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let runtime = Runtime::new(Pool::inline(), Allocator::new(AllocatorOptions::default()));
    let inputs: Vec<Input> = Vec::new();
    let results = run(&compiled.plan, &runtime, vec![inputs], &RunOptions::default()).unwrap().remove(0);
    let numbers = |array: &Array| {
        assert_eq!(array.dtype(), DType::F32);
        let bytes = array.bytes().unwrap();
        bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
    };
    results.iter().map(numbers).collect()
}

/// The scan in every form that texts have for it.
fn forms(attribute: &str) -> Vec<String> {
    let attributes = format!(
        "dimension = 0 : i64, {attribute}operandSegmentSizes = array<i32: 1, 1>, \
         resultSegmentSizes = array<i32: 1, 1>"
    );
    let forwards = format!(
        "func.func private @impl(%x: tensor<4xf32>, %i: tensor<f32>) -> (tensor<4xf32>, tensor<f32>) {{
           %0:2 = chlo.scan(%x) inits(%i) dimension=0 {REGION} : {TYPES}
           return %0#0, %0#1 : tensor<4xf32>, tensor<f32>
         }}"
    );
    let own = format!("attributes {{{}}}", attribute.trim_end_matches(", "));
    let composite = |middle: &str| format!("\"stablehlo.composite\"(%x, %i) {middle}");
    let of_composite = format!(
        "composite_attributes = {{{attributes}}}, decomposition = @impl, name = \"chlo.scan\", version = 1 : i32"
    );
    vec![
        program(&format!("chlo.scan(%x) inits(%i) dimension=0 {own} {REGION}"), ""),
        program(&format!("\"chlo.scan\"(%x, %i) <{{{attributes}}}> ({REGION})"), ""),
        program(&format!("\"chlo.scan\"(%x, %i) ({REGION}) {{{attributes}}}"), ""),
        program(&composite(&format!("<{{{of_composite}}}> ({REGION})")), &forwards),
        program(&composite(&format!("({REGION}) {{{of_composite}}}")), &forwards),
        program(
            &format!(
                "stablehlo.composite \"chlo.scan\" %x, %i ({REGION}) {{composite_attributes = {{{attributes}}}, \
                 decomposition = @impl, version = 1 : i32}}"
            ),
            &forwards,
        ),
    ]
}

#[test]
fn scans_run_forwards_and_backwards_in_every_form() {
    for text in forms("").into_iter().chain(forms("is_reverse = false, ")) {
        assert_eq!(results(&text), [vec![1., 3., 6., 10.], vec![10.]], "{text}");
    }
    for text in forms("is_reverse = true, ") {
        assert_eq!(results(&text), [vec![10., 9., 7., 4.], vec![10.]], "{text}");
    }
}
