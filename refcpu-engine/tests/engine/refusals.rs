//! Programs and arguments that are refused.

use super::*;

#[test]
fn an_unknown_custom_call_names_itself_and_its_types() {
    let text = "func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
       %0 = stablehlo.custom_call @mystery(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
       return %0 : tensor<4xf32>
     }";
    let module = pjrt_stablehlo::parse(text).unwrap();
    let error = compile(&module, &CompileOptions::default()).err().unwrap();
    assert_eq!(error.kind, CompileErrorKind::Unimplemented);
    let text = error.to_string();
    assert!(
        text.contains("stablehlo.custom_call") && text.contains("mystery") && text.contains("tensor<4xf32>"),
        "{text}"
    );
}

#[test]
fn wrong_arguments_are_refused() {
    let rt = runtime();
    let plan = plan(DONATING);
    let one = f32s(&rt, &[1024], &[0.0; 1024]);
    let wrong = f32s(&rt, &[2], &[0.0; 2]);
    for inputs in [vec![one.clone()], vec![one, wrong]] {
        let inputs = vec![inputs.into_iter().map(kept).collect()];
        let error = run(&plan, &rt, inputs, &RunOptions::default()).unwrap_err();
        assert_eq!(error.kind, RunErrorKind::InvalidArgument);
    }
}

#[test]
fn a_program_that_needs_too_much_memory_fails_with_a_message() {
    let text = "func.func public @main() -> tensor<4000000000x1000xf32> {
       %0 = stablehlo.iota dim = 0 : tensor<4000000000x1000xf32>
       return %0 : tensor<4000000000x1000xf32>
     }";
    let error = run(&plan(text), &runtime(), vec![vec![]], &RunOptions::default()).unwrap_err();
    assert_eq!(error.kind, RunErrorKind::ResourceExhausted);
}
