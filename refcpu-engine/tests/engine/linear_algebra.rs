//! Products and linear algebra.

use super::*;

#[test]
fn a_product_of_numbers_of_two_types_is_one_of_the_results_type() {
    let text = "func.func @main(%x: tensor<2x2xf32>, %y: tensor<2x2xi32>) -> tensor<2x2xf32> {
        %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
            : (tensor<2x2xf32>, tensor<2x2xi32>) -> tensor<2x2xf32>
        return %0 : tensor<2x2xf32>
    }";
    let runtime = runtime();
    let x = f32s(&runtime, &[2, 2], &[0.5, 1.0, 2.0, 3.0]);
    let y = i32s(&runtime, &[2, 2], &[2, 4, 6, 8]);
    assert_eq!(to_f32s(&run_one(text, &runtime, vec![x, y])[0]), [7.0, 10.0, 22.0, 32.0]);
}

#[test]
fn matrices_of_eight_bit_floats_are_decomposed_and_solved() {
    let text = r#"func.func @main(%a: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
      %0 = stablehlo.convert %a : (tensor<2x2xf32>) -> tensor<2x2xf8E4M3FN>
      %1 = "stablehlo.cholesky"(%0) {lower = true} : (tensor<2x2xf8E4M3FN>) -> tensor<2x2xf8E4M3FN>
      %2 = "stablehlo.triangular_solve"(%1, %0) {left_side = true, lower = true, unit_diagonal = false,
        transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<2x2xf8E4M3FN>, tensor<2x2xf8E4M3FN>) -> tensor<2x2xf8E4M3FN>
      %3 = stablehlo.convert %1 : (tensor<2x2xf8E4M3FN>) -> tensor<2x2xf32>
      %4 = stablehlo.convert %2 : (tensor<2x2xf8E4M3FN>) -> tensor<2x2xf32>
      return %3, %4 : tensor<2x2xf32>, tensor<2x2xf32>
    }"#;
    let rt = runtime();
    let input = Input { array: f32s(&rt, &[2, 2], &[4., 2., 2., 10.]), donatable: false };
    let results = run(&plan(text), &rt, vec![vec![input]], &RunOptions::default()).unwrap();
    assert_eq!(to_f32s(&results[0][0]), [2., 0., 1., 3.]);
    assert_eq!(to_f32s(&results[0][1]), [2., 1., 0., 3.]);
}

/// The custom call of PyTorch/XLA's `torch.linalg.eigh` reads one triangle of the matrix.
#[test]
fn xlas_call_for_eigenvalues_reads_the_triangle_that_its_configuration_names() {
    let program = |config: &str| {
        format!(
            "func.func @main(%a: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>) {{
               %0:2 = stablehlo.custom_call @Eigh(%a) {{backend_config = {config:?}}}
                   : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>)
               return %0#0, %0#1 : tensor<2x2xf32>, tensor<2xf32>
             }}"
        )
    };
    let rt = runtime();
    for (config, expected) in [("1,1,100,1e-6", [1., 3.]), ("0,1,100,1e-6", [-6., 10.])] {
        let results = run_one(&program(config), &rt, vec![f32s(&rt, &[2, 2], &[2., 8., 1., 2.])]);
        for (found, expected) in to_f32s(&results[1]).iter().zip(expected) {
            assert!((found - expected).abs() < 1e-5, "{config}: {found} {expected}");
        }
    }
    let module = pjrt_stablehlo::parse(program("").as_str()).unwrap();
    let error = compile(&module, &CompileOptions::default()).err().unwrap();
    assert!(error.to_string().contains("backend_config"), "{error}");
}
