//! Loops, branches and asynchronous operations.

use super::*;

#[test]
fn carried_values_change_places_correctly_for_any_number_of_iterations() {
    let rt = runtime();
    let start: Vec<f32> = (0..WIDE).map(|i| (i % 7) as f32).collect();
    for (n, (a, b)) in [(0, (1., 1.)), (1, (1., 2.)), (2, (2., 3.)), (7, (21., 34.))] {
        let inputs = vec![f32s(&rt, &[WIDE], &start), i32s(&rt, &[], &[n])];
        let results = run_one(&fibonacci(), &rt, inputs);
        for (result, factor) in results.iter().zip([a, b]) {
            assert!(to_f32s(result).iter().zip(&start).all(|(r, s)| *r == s * factor), "{n} iterations");
        }
    }
}

#[test]
fn a_loop_updates_an_array_in_place() {
    let text = "func.func public @main(%arg0: tensor<4x3xf32>) -> tensor<4x3xf32> {
       %c = stablehlo.constant dense<0> : tensor<i32>
       %z = stablehlo.constant dense<0.0> : tensor<4x3xf32>
       %0:3 = stablehlo.while(%i = %c, %x = %arg0, %acc = %z) : tensor<i32>, tensor<4x3xf32>, tensor<4x3xf32>
       cond {
         %n = stablehlo.constant dense<4> : tensor<i32>
         %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
         stablehlo.return %1 : tensor<i1>
       } do {
         %zero = stablehlo.constant dense<0> : tensor<i32>
         %one = stablehlo.constant dense<1> : tensor<i32>
         %row = stablehlo.dynamic_slice %x, %i, %zero, sizes = [1, 3] : (tensor<4x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x3xf32>
         %two = stablehlo.add %row, %row : tensor<1x3xf32>
         %new = stablehlo.dynamic_update_slice %acc, %two, %i, %zero : (tensor<4x3xf32>, tensor<1x3xf32>, tensor<i32>, tensor<i32>) -> tensor<4x3xf32>
         %next = stablehlo.add %i, %one : tensor<i32>
         stablehlo.return %next, %x, %new : tensor<i32>, tensor<4x3xf32>, tensor<4x3xf32>
       }
       return %0#2 : tensor<4x3xf32>
     }";
    let rt = runtime();
    let x: Vec<f32> = (0..12).map(|i| i as f32).collect();
    let results = run_one(text, &rt, vec![f32s(&rt, &[4, 3], &x)]);
    assert_eq!(to_f32s(&results[0]), x.iter().map(|v| v * 2.0).collect::<Vec<_>>());
}

#[test]
fn what_is_started_asynchronously_is_done_when_it_is_waited_for() {
    let text = "func.func public @main(%arg0: tensor<3xf32>) -> tensor<2xf32> {
       %twice = stablehlo.add %arg0, %arg0 : tensor<3xf32>
       %future = \"stablehlo.async_start\"(%twice) ({
       ^bb0(%x: tensor<3xf32>):
         %y = stablehlo.slice %x [1:3] : (tensor<3xf32>) -> tensor<2xf32>
         stablehlo.return %y : tensor<2xf32>
       }) : (tensor<3xf32>) -> !stablehlo.future<tensor<2xf32>>
       %done = \"stablehlo.async_done\"(%future) : (!stablehlo.future<tensor<2xf32>>) -> tensor<2xf32>
       return %done : tensor<2xf32> }";
    let rt = runtime();
    let results = run_one(text, &rt, vec![f32s(&rt, &[3], &[1., 2., 3.])]);
    assert_eq!(to_f32s(&results[0]), [4., 6.]);
}

#[test]
fn branches_give_the_same_result_buffers() {
    let text =
        "func.func public @main(%arg0: tensor<i32>, %arg1: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
       %y = stablehlo.add %arg1, %arg1 : tensor<3xf32>
       %0:2 = \"stablehlo.case\"(%arg0) ({
         stablehlo.return %arg1, %y : tensor<3xf32>, tensor<3xf32>
       }, {
         stablehlo.return %y, %arg1 : tensor<3xf32>, tensor<3xf32>
       }, {
         %1 = stablehlo.negate %y : tensor<3xf32>
         stablehlo.return %1, %1 : tensor<3xf32>, tensor<3xf32>
       }) : (tensor<i32>) -> (tensor<3xf32>, tensor<3xf32>)
       return %0#0, %0#1 : tensor<3xf32>, tensor<3xf32>
     }";
    let rt = runtime();
    let want = |i: i32| match i {
        0 => ([1., 2., 3.], [2., 4., 6.]),
        1 => ([2., 4., 6.], [1., 2., 3.]),
        _ => ([-2., -4., -6.], [-2., -4., -6.]),
    };
    for i in [-1, 0, 1, 2, 9] {
        let results = run_one(text, &rt, vec![i32s(&rt, &[], &[i]), f32s(&rt, &[3], &[1., 2., 3.])]);
        let got = (to_f32s(&results[0]), to_f32s(&results[1]));
        assert_eq!(got, (want(i).0.to_vec(), want(i).1.to_vec()), "branch {i}");
    }
}
