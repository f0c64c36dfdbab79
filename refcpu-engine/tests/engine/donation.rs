//! Results in the memory of donated arguments.

use super::*;

#[test]
fn a_donated_array_becomes_the_result() {
    let rt = runtime();
    let plan = plan(DONATING);
    let (x, y) = (f32s(&rt, &[1024], &[1.0; 1024]), f32s(&rt, &[1024], &[2.0; 1024]));
    let address = x.as_ptr();
    let inputs = vec![Input { array: x, donatable: true }, kept(y.clone())];
    let result = run(&plan, &rt, vec![inputs], &RunOptions::default()).unwrap().remove(0).remove(0);
    assert_eq!(result.as_ptr(), address);
    assert_eq!(to_f32s(&result), [3.0; 1024]);

    // Somebody else holds it: it must not be written.
    let held = f32s(&rt, &[1024], &[1.0; 1024]);
    let inputs = vec![Input { array: held.clone(), donatable: true }, kept(y)];
    let result = run(&plan, &rt, vec![inputs], &RunOptions::default()).unwrap().remove(0).remove(0);
    assert_eq!(to_f32s(&held), [1.0; 1024]);
    assert_eq!(to_f32s(&result), [3.0; 1024]);
}

#[test]
fn a_donated_array_that_is_read_later_is_not_overwritten() {
    let text = "func.func public @main(%arg0: tensor<64xf32> {tf.aliasing_output = 0 : i32}) -> (tensor<64xf32>, tensor<64xf32>) {
       %0 = stablehlo.negate %arg0 : tensor<64xf32>
       %1 = stablehlo.reverse %arg0, dims = [0] : tensor<64xf32>
       %2 = stablehlo.add %1, %0 : tensor<64xf32>
       return %0, %2 : tensor<64xf32>, tensor<64xf32>
     }";
    let rt = runtime();
    let x: Vec<f32> = (0..64).map(|i| i as f32).collect();
    let input = Input { array: f32s(&rt, &[64], &x), donatable: true };
    let results = run(&plan(text), &rt, vec![vec![input]], &RunOptions::default()).unwrap().remove(0);
    assert_eq!(to_f32s(&results[0]), x.iter().map(|v| -v).collect::<Vec<_>>());
    assert_eq!(to_f32s(&results[1]), (0..64).map(|i| 63.0 - 2.0 * i as f32).collect::<Vec<_>>());
}

/// Runs with all arguments donated.
fn run_donated(text: &str, rt: &Runtime, inputs: Vec<Array>) -> Vec<Array> {
    let inputs = inputs.into_iter().map(|array| Input { array, donatable: true }).collect();
    run(&plan(text), rt, vec![inputs], &RunOptions::default()).unwrap().remove(0)
}

#[test]
fn a_donated_array_that_is_a_result_itself_is_not_copied() {
    let text = "func.func public @main(%x: tensor<64xf32> {tf.aliasing_output = 0 : i32}) -> (tensor<64xf32>, tensor<64xf32>) {
       %0 = stablehlo.negate %x : tensor<64xf32>
       return %x, %0 : tensor<64xf32>, tensor<64xf32>
     }";
    let rt = runtime();
    let x = f32s(&rt, &[64], &[2.0; 64]);
    let address = x.as_ptr();
    let results = run_donated(text, &rt, vec![x]);
    assert_eq!(results[0].as_ptr(), address);
    assert_eq!((to_f32s(&results[0]), to_f32s(&results[1])), (vec![2.0; 64], vec![-2.0; 64]));
}

#[test]
fn a_donated_array_that_is_two_results_is_there_twice() {
    let text = "func.func public @main(%x: tensor<64xf32> {jax.buffer_donor = true}) -> (tensor<64xf32>, tensor<64xf32>) {
       return %x, %x : tensor<64xf32>, tensor<64xf32>
     }";
    let rt = runtime();
    let results = run_donated(text, &rt, vec![f32s(&rt, &[64], &[2.0; 64])]);
    assert_ne!(results[0].as_ptr(), results[1].as_ptr());
    assert_eq!((to_f32s(&results[0]), to_f32s(&results[1])), (vec![2.0; 64], vec![2.0; 64]));
}

#[test]
fn a_donation_for_another_result_than_the_array_itself_is_withdrawn() {
    // The other result is computed, a constant that is filled in, or what a loop starts from.
    for other in [
        "%0 = stablehlo.negate %x : tensor<2048xf32>",
        "%0 = stablehlo.constant dense<7.0> : tensor<2048xf32>",
        "%c = stablehlo.constant dense<7.0> : tensor<2048xf32>
         %p = stablehlo.constant dense<false> : tensor<i1>
         %0 = stablehlo.while(%a = %c) : tensor<2048xf32> cond { stablehlo.return %p : tensor<i1> }
           do { stablehlo.return %a : tensor<2048xf32> }",
    ] {
        let text = format!(
            "func.func public @main(%x: tensor<2048xf32> {{tf.aliasing_output = 1 : i32}}) -> (tensor<2048xf32>, tensor<2048xf32>) {{
               {other}
               return %x, %0 : tensor<2048xf32>, tensor<2048xf32>
             }}"
        );
        let rt = runtime();
        let expected = if other.contains("negate") { -2.0 } else { 7.0 };
        let results = run_donated(&text, &rt, vec![f32s(&rt, &[2048], &[2.0; 2048])]);
        assert_eq!(to_f32s(&results[0]), [2.0; 2048], "{other}");
        assert_eq!(to_f32s(&results[1]), [expected; 2048], "{other}");
    }
}

#[test]
fn a_constant_does_not_overwrite_the_donated_array_that_is_still_read() {
    let text = "func.func public @main(%x: tensor<2048xf32> {tf.aliasing_output = 0 : i32}) -> (tensor<2048xf32>, tensor<2048xf32>) {
       %c = stablehlo.constant dense<7.0> : tensor<2048xf32>
       %s = \"stablehlo.sort\"(%c) <{dimension = 0 : i64}> ({
       ^bb0(%a: tensor<f32>, %b: tensor<f32>):
         %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
         stablehlo.return %p : tensor<i1>
       }) : (tensor<2048xf32>) -> tensor<2048xf32>
       %r = stablehlo.reverse %x, dims = [0] : tensor<2048xf32>
       %0 = stablehlo.add %r, %s : tensor<2048xf32>
       return %c, %0 : tensor<2048xf32>, tensor<2048xf32>
     }";
    let rt = runtime();
    let results = run_donated(text, &rt, vec![f32s(&rt, &[2048], &[2.0; 2048])]);
    assert_eq!(to_f32s(&results[0]), [7.0; 2048]);
    assert_eq!(to_f32s(&results[1]), [9.0; 2048]);
}
