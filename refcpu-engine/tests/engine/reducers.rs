//! Regions that reduce, select and compare.

use super::*;

/// The larger of two scalars by a branch, as `jax.lax.cond` writes it.
const LARGER: &str = r#"({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %p = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %r = "stablehlo.if"(%p) ({ stablehlo.return %a : tensor<f32> }, { stablehlo.return %b : tensor<f32> })
        : (tensor<i1>) -> tensor<f32>
      stablehlo.return %r : tensor<f32>
    })"#;

#[test]
fn regions_may_branch() {
    let rt = runtime();
    let reduce = format!(
        r#"func.func @main(%x: tensor<6xf32>) -> (tensor<f32>, tensor<5xf32>, tensor<6xf32>) {{
          %init = stablehlo.constant dense<0xFF800000> : tensor<f32>
          %0 = "stablehlo.reduce"(%x, %init) <{{dimensions = array<i64: 0>}}> {LARGER}
            : (tensor<6xf32>, tensor<f32>) -> tensor<f32>
          %1 = "stablehlo.reduce_window"(%x, %init) <{{window_dimensions = array<i64: 2>}}> {LARGER}
            : (tensor<6xf32>, tensor<f32>) -> tensor<5xf32>
          %at = stablehlo.constant dense<[[1], [1], [4]]> : tensor<3x1xi64>
          %updates = stablehlo.constant dense<[9.0, 8.0, -9.0]> : tensor<3xf32>
          %2 = "stablehlo.scatter"(%x, %at, %updates) <{{scatter_dimension_numbers = #stablehlo.scatter<
              inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> {LARGER}
            : (tensor<6xf32>, tensor<3x1xi64>, tensor<3xf32>) -> tensor<6xf32>
          return %0, %1, %2 : tensor<f32>, tensor<5xf32>, tensor<6xf32>
        }}"#
    );
    let got = run_one(&reduce, &rt, vec![f32s(&rt, &[6], &[0.0, 1.0, 5.0, 3.0, 4.0, 2.0])]);
    assert_eq!(to_f32s(&got[0]), [5.0]);
    assert_eq!(to_f32s(&got[1]), [1.0, 5.0, 5.0, 4.0, 4.0]);
    assert_eq!(to_f32s(&got[2]), [0.0, 9.0, 5.0, 3.0, 4.0, 2.0]);
}

#[test]
fn the_case_of_a_region_is_the_last_where_no_other_is_meant() {
    let rt = runtime();
    let text = r#"func.func @main(%x: tensor<5xi32>) -> tensor<5xi32> {
      %init = stablehlo.constant dense<5> : tensor<i32>
      %0 = "stablehlo.reduce_window"(%x, %init) <{window_dimensions = array<i64: 1>}> ({
        ^bb0(%a: tensor<i32>, %b: tensor<i32>):
          %r = "stablehlo.case"(%b) ({
            stablehlo.return %a : tensor<i32>
          }, {
            %s = stablehlo.add %a, %a : tensor<i32>
            stablehlo.return %s : tensor<i32>
          }, {
            %s = stablehlo.negate %a : tensor<i32>
            stablehlo.return %s : tensor<i32>
          }) : (tensor<i32>) -> tensor<i32>
          stablehlo.return %r : tensor<i32>
      }) : (tensor<5xi32>, tensor<i32>) -> tensor<5xi32>
      return %0 : tensor<5xi32>
    }"#;
    let got = run_one(text, &rt, vec![i32s(&rt, &[5], &[0, 1, 2, 7, -1])]);
    assert_eq!(to_i32s(&got[0]), [5, 10, -5, -5, -5]);
}

#[test]
fn windows_select_by_any_relation_and_scatter_by_any_sum() {
    let rt = runtime();
    let text = r#"func.func @main(%x: tensor<6xf32>, %y: tensor<3xf32>) -> tensor<6xf32> {
      %init = stablehlo.constant dense<1.0> : tensor<f32>
      %0 = "stablehlo.select_and_scatter"(%x, %y, %init) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %p = stablehlo.abs %a : tensor<f32>
          %q = stablehlo.abs %b : tensor<f32>
          %r = stablehlo.compare GE, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %r : tensor<i1>
      }, {
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %r = stablehlo.subtract %a, %b : tensor<f32>
          stablehlo.return %r : tensor<f32>
      }) : (tensor<6xf32>, tensor<3xf32>, tensor<f32>) -> tensor<6xf32>
      return %0 : tensor<6xf32>
    }"#;
    let x = f32s(&rt, &[6], &[1.0, -2.0, 3.0, 0.5, -4.0, 4.5]);
    let got = run_one(text, &rt, vec![x, f32s(&rt, &[3], &[10.0, 20.0, 30.0])]);
    assert_eq!(to_f32s(&got[0]), [1.0, -9.0, -19.0, 1.0, 1.0, -29.0]);
}

#[test]
fn windows_of_quantized_elements_select_and_scatter() {
    let rt = runtime();
    let text = r#"!q = !quant.uniform<i8:f32, 0.5:1>
    func.func @main(%x: tensor<4xf32>, %y: tensor<2xf32>) -> tensor<4xf32> {
      %qx = stablehlo.uniform_quantize %x : (tensor<4xf32>) -> tensor<4x!q>
      %qy = stablehlo.uniform_quantize %y : (tensor<2xf32>) -> tensor<2x!q>
      %start = stablehlo.constant dense<0.0> : tensor<f32>
      %qs = stablehlo.uniform_quantize %start : (tensor<f32>) -> tensor<!q>
      %0 = "stablehlo.select_and_scatter"(%qx, %qy, %qs) <{window_dimensions = array<i64: 3>, window_strides = array<i64: 1>}> ({
        ^bb0(%a: tensor<!q>, %b: tensor<!q>):
          %r = stablehlo.compare GE, %a, %b : (tensor<!q>, tensor<!q>) -> tensor<i1>
          stablehlo.return %r : tensor<i1>
      }, {
        ^bb0(%a: tensor<!q>, %b: tensor<!q>):
          %r = stablehlo.add %a, %b : tensor<!q>
          stablehlo.return %r : tensor<!q>
      }) : (tensor<4x!q>, tensor<2x!q>, tensor<!q>) -> tensor<4x!q>
      %1 = stablehlo.uniform_dequantize %0 : (tensor<4x!q>) -> tensor<4xf32>
      return %1 : tensor<4xf32>
    }"#;
    let x = f32s(&rt, &[4], &[1.0, 2.5, -3.0, 2.0]);
    let got = run_one(text, &rt, vec![x, f32s(&rt, &[2], &[1.5, 2.6])]);
    assert_eq!(to_f32s(&got[0]), [0.0, 4.0, 0.0, 0.0]);
}

#[test]
fn a_sort_is_along_the_last_dimension_unless_it_says_another() {
    let rt = runtime();
    let text = r#"func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
      %0 = "stablehlo.sort"(%x) ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %r = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %r : tensor<i1>
      }) : (tensor<2x3xf32>) -> tensor<2x3xf32>
      return %0 : tensor<2x3xf32>
    }"#;
    let got = run_one(text, &rt, vec![f32s(&rt, &[2, 3], &[3.0, 1.0, 2.0, 0.0, 5.0, 4.0])]);
    assert_eq!(to_f32s(&got[0]), [1.0, 2.0, 3.0, 0.0, 4.0, 5.0]);
}
