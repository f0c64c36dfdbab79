//! Values that are computed together, and those that are not.

use super::*;

#[test]
fn many_constants_in_one_region_keep_apart() {
    let text = "func.func public @main(%arg0: tensor<5xi32>) -> tensor<5xi32> {
       %c7 = stablehlo.constant dense<7> : tensor<5xi32>
       %c1 = stablehlo.constant dense<1> : tensor<5xi32>
       %c0 = stablehlo.constant dense<0> : tensor<5xi32>
       %q = stablehlo.divide %arg0, %c7 : tensor<5xi32>
       %s = stablehlo.sign %arg0 : tensor<5xi32>
       %d = stablehlo.compare NE, %s, %c1 : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
       %r = stablehlo.remainder %arg0, %c7 : tensor<5xi32>
       %n = stablehlo.compare NE, %r, %c0 : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
       %p = stablehlo.and %d, %n : tensor<5xi1>
       %m = stablehlo.subtract %q, %c1 : tensor<5xi32>
       %f = stablehlo.select %p, %m, %q : tensor<5xi1>, tensor<5xi32>
       return %f : tensor<5xi32>
     }";
    let rt = runtime();
    let results = run_one(text, &rt, vec![i32s(&rt, &[5], &[20, -20, 7, -7, 0])]);
    assert_eq!(to_i32s(&results[0]), [2, -3, 1, -1, 0]);
}

#[test]
fn arrays_without_elements_need_nobody_to_write_them() {
    let text = "func.func @main(%x: tensor<1x1xf32>) -> tensor<1x1xf32> {
        %0 = stablehlo.slice %x [0:1, 0:0] : (tensor<1x1xf32>) -> tensor<1x0xf32>
        %1 = stablehlo.exponential %0 : tensor<1x0xf32>
        %2 = stablehlo.add %1, %1 : tensor<1x0xf32>
        %4 = stablehlo.concatenate %x, %2, dim = 1 : (tensor<1x1xf32>, tensor<1x0xf32>) -> tensor<1x1xf32>
        return %4 : tensor<1x1xf32>
    }";
    let runtime = runtime();
    let x = f32s(&runtime, &[1, 1], &[2.0]);
    assert_eq!(to_f32s(&run_one(text, &runtime, vec![x])[0]), [2.0]);
}

#[test]
fn a_value_that_passes_a_barrier_twice_stays_until_both_are_read() {
    let text = r#"
func.func @main(%arg0: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %x = stablehlo.sine %arg0 : tensor<4xf32>
  %y = stablehlo.reverse %x, dims = [0] : tensor<4xf32>
  %0:2 = stablehlo.optimization_barrier %y, %y : tensor<4xf32>, tensor<4xf32>
  %1 = stablehlo.negate %0#0 : tensor<4xf32>
  %2 = stablehlo.reverse %0#1, dims = [0] : tensor<4xf32>
  func.return %1, %2 : tensor<4xf32>, tensor<4xf32>
}"#;
    let rt = runtime();
    let x = [0.5, 1.0, 1.5, 2.0];
    for fuse in [true, false] {
        let plan = plan_for(text, &CompileOptions { fuse, ..CompileOptions::default() });
        let inputs = vec![vec![kept(f32s(&rt, &[4], &x))]];
        let got = run(&plan, &rt, inputs, &RunOptions::default()).unwrap().remove(0);
        let sines = x.map(f32::sin);
        assert_close(&to_f32s(&got[0]), &[-sines[3], -sines[2], -sines[1], -sines[0]]);
        assert_close(&to_f32s(&got[1]), &sines);
    }
}

fn assert_close(got: &[f32], expected: &[f32]) {
    let near = got.iter().zip(expected).all(|(g, e)| (g - e).abs() < 1e-6);
    assert!(got.len() == expected.len() && near, "{got:?}, not {expected:?}");
}

#[test]
fn fusion_makes_no_difference_to_what_is_computed() {
    let text = "func.func @main(%a: tensor<3xf32>) -> tensor<3xf32> {
      %0 = stablehlo.add %a, %a : tensor<3xf32>
      %1 = stablehlo.multiply %0, %a : tensor<3xf32>
      return %1 : tensor<3xf32>
    }";
    let rt = runtime();
    let steps = |fuse| {
        let plan = plan_for(text, &CompileOptions { fuse, ..CompileOptions::default() });
        let input = Input { array: f32s(&rt, &[3], &[1., 2., 3.]), donatable: false };
        let results = run(&plan, &rt, vec![vec![input]], &RunOptions::default()).unwrap();
        assert_eq!(to_f32s(&results[0][0]), [2., 8., 18.]);
        plan.program.steps.len()
    };
    assert!(steps(true) < steps(false));
}
