//! Programs through the whole engine: read, compile, run.

use refcpu_engine::compile::{CompileErrorKind, CompileOptions, Parts, compile};
use refcpu_engine::exec::{Input, RunErrorKind, RunOptions, Runtime, run};
use refcpu_engine::plan::Plan;
use refcpu_engine::storage::{Allocator, AllocatorOptions, Array};
use refcpu_kernels::{DType, Pool};

fn runtime() -> Runtime {
    Runtime::new(Pool::inline(), Allocator::new(AllocatorOptions::default()))
}

fn plan_for(text: &str, options: &CompileOptions) -> Plan {
    let module = pjrt_stablehlo::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let options = CompileOptions { parts: Parts::Never, ..options.clone() };
    compile(&module, &options).unwrap_or_else(|e| panic!("{e}\n{text}")).plan
}

fn plan(text: &str) -> Plan {
    plan_for(text, &CompileOptions::default())
}

fn f32s(runtime: &Runtime, dims: &[usize], values: &[f32]) -> Array {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    Array::from_bytes(&runtime.allocator, DType::F32, dims, &bytes).unwrap()
}

fn i32s(runtime: &Runtime, dims: &[usize], values: &[i32]) -> Array {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    Array::from_bytes(&runtime.allocator, DType::S32, dims, &bytes).unwrap()
}

fn to_f32s(array: &Array) -> Vec<f32> {
    array.bytes().unwrap().chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

fn to_i32s(array: &Array) -> Vec<i32> {
    array.bytes().unwrap().chunks_exact(4).map(|b| i32::from_le_bytes(b.try_into().unwrap())).collect()
}

fn c128s(runtime: &Runtime, values: &[[f64; 2]]) -> Array {
    let bytes: Vec<u8> = values.iter().flatten().flat_map(|v| v.to_le_bytes()).collect();
    Array::from_bytes(&runtime.allocator, DType::C128, &[values.len()], &bytes).unwrap()
}

fn to_c128s(array: &Array) -> Vec<[f64; 2]> {
    let bytes = array.bytes().unwrap();
    let part = |b: &[u8]| f64::from_le_bytes(b.try_into().unwrap());
    bytes.chunks_exact(16).map(|b| [part(&b[..8]), part(&b[8..])]).collect()
}

fn kept(array: Array) -> Input {
    Input { array, donatable: false }
}

/// Runs on one device.
fn run_one(text: &str, runtime: &Runtime, inputs: Vec<Array>) -> Vec<Array> {
    let plan = plan(text);
    let inputs: Vec<Input> = inputs.into_iter().map(kept).collect();
    run(&plan, runtime, vec![inputs], &RunOptions::default()).unwrap().remove(0)
}

/// Large enough that the loop exchanges buffers instead of copying them.
const WIDE: usize = 4096;

fn fibonacci() -> String {
    format!(
        "func.func public @main(%arg0: tensor<{WIDE}xf32>, %arg1: tensor<i32>) -> (tensor<{WIDE}xf32>, tensor<{WIDE}xf32>) {{
           %c = stablehlo.constant dense<0> : tensor<i32>
           %0:3 = stablehlo.while(%i = %c, %a = %arg0, %b = %arg0) : tensor<i32>, tensor<{WIDE}xf32>, tensor<{WIDE}xf32>
           cond {{
             %1 = stablehlo.compare LT, %i, %arg1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
             stablehlo.return %1 : tensor<i1>
           }} do {{
             %one = stablehlo.constant dense<1> : tensor<i32>
             %1 = stablehlo.add %i, %one : tensor<i32>
             %2 = stablehlo.add %a, %b : tensor<{WIDE}xf32>
             stablehlo.return %1, %b, %2 : tensor<i32>, tensor<{WIDE}xf32>, tensor<{WIDE}xf32>
           }}
           return %0#1, %0#2 : tensor<{WIDE}xf32>, tensor<{WIDE}xf32>
         }}"
    )
}

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

const DONATING: &str = "func.func public @main(%arg0: tensor<1024xf32> {tf.aliasing_output = 0 : i32}, %arg1: tensor<1024xf32>) -> tensor<1024xf32> {
   %0 = stablehlo.add %arg0, %arg1 : tensor<1024xf32>
   return %0 : tensor<1024xf32>
 }";

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
fn complex_numbers_are_compared_by_real_then_imaginary_parts() {
    let rt = runtime();
    let values = [[1.0, 2.0], [1.0, 3.0], [2.0, 0.0], [1.0, 2.0]];
    let others = [[1.0, 3.0], [1.0, 2.0], [1.0, 9.0], [1.0, 2.0]];
    for (relation, expected) in [
        ("LT", [1, 0, 0, 0]),
        ("LE", [1, 0, 0, 1]),
        ("GT", [0, 1, 1, 0]),
        ("GE", [0, 1, 1, 1]),
        ("EQ", [0, 0, 0, 1]),
    ] {
        let text = format!(
            "func.func @main(%x: tensor<4xcomplex<f64>>, %y: tensor<4xcomplex<f64>>) -> tensor<4xi1> {{
               %0 = stablehlo.compare {relation}, %x, %y
                 : (tensor<4xcomplex<f64>>, tensor<4xcomplex<f64>>) -> tensor<4xi1>
               return %0 : tensor<4xi1>
             }}"
        );
        let got = run_one(&text, &rt, vec![c128s(&rt, &values), c128s(&rt, &others)]);
        assert_eq!(got[0].bytes().unwrap(), expected, "{relation}");
    }
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

#[test]
fn a_group_meets_in_a_collective_that_others_do_not_come_to() {
    let text = r#"func.func @main(%x: tensor<f32>) -> tensor<f32> {
      %id = stablehlo.replica_id : tensor<ui32>
      %two = stablehlo.constant dense<2> : tensor<ui32>
      %first = stablehlo.compare LT, %id, %two : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
      %0 = "stablehlo.if"(%first) ({
        %sum = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}> ({
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %s = stablehlo.add %a, %b : tensor<f32>
            stablehlo.return %s : tensor<f32>
        }) : (tensor<f32>) -> tensor<f32>
        stablehlo.return %sum : tensor<f32>
      }, {
        %n = stablehlo.negate %x : tensor<f32>
        stablehlo.return %n : tensor<f32>
      }) : (tensor<i1>) -> tensor<f32>
      return %0 : tensor<f32>
    }"#;
    let rt = runtime();
    let plan = plan_for(text, &CompileOptions { num_replicas: 4, ..CompileOptions::default() });
    let inputs = [1.0, 2.0, 4.0, 8.0].map(|x| vec![kept(f32s(&rt, &[], &[x]))]);
    let got = run(&plan, &rt, inputs.to_vec(), &RunOptions::default()).unwrap();
    let got: Vec<f32> = got.iter().map(|lane| to_f32s(&lane[0])[0]).collect();
    assert_eq!(got, [3.0, 3.0, -4.0, -8.0]);
}

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

#[test]
fn replicas_meet_in_collectives() {
    let text = "func.func public @main(%arg0: tensor<f32>) -> (tensor<f32>, tensor<ui32>) {
       %0 = \"stablehlo.all_reduce\"(%arg0) <{replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>}> ({
       ^bb0(%a: tensor<f32>, %b: tensor<f32>):
         %s = stablehlo.add %a, %b : tensor<f32>
         stablehlo.return %s : tensor<f32>
       }) : (tensor<f32>) -> tensor<f32>
       %1 = stablehlo.replica_id : tensor<ui32>
       return %0, %1 : tensor<f32>, tensor<ui32>
     }";
    let rt = runtime();
    let plan = plan_for(text, &CompileOptions { num_replicas: 4, ..CompileOptions::default() });
    let inputs = (0..4).map(|i| vec![kept(f32s(&rt, &[], &[i as f32]))]).collect();
    let results = run(&plan, &rt, inputs, &RunOptions::default()).unwrap();
    let sums: Vec<f32> = results.iter().map(|r| to_f32s(&r[0])[0]).collect();
    assert_eq!(sums, [2., 4., 2., 4.]);
    assert_eq!(results.iter().map(|r| to_i32s(&r[1])[0]).collect::<Vec<_>>(), [0, 1, 2, 3]);
}

#[test]
fn a_manual_computation_runs_on_the_parts_of_its_operands() {
    let text = "module {
       sdy.mesh @mesh = <[\"i\"=4]>
       func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
         %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{\"i\"}]>] out_shardings=[<@mesh, [{\"i\"}]>] manual_axes={\"i\"} (%arg1: tensor<1xf32>) {
           %1 = \"stablehlo.all_reduce\"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
           ^bb0(%a: tensor<f32>, %b: tensor<f32>):
             %s = stablehlo.add %a, %b : tensor<f32>
             stablehlo.return %s : tensor<f32>
           }) : (tensor<1xf32>) -> tensor<1xf32>
           %2 = stablehlo.add %arg1, %1 : tensor<1xf32>
           sdy.return %2 : tensor<1xf32>
         } : (tensor<4xf32>) -> tensor<4xf32>
         return %0 : tensor<4xf32>
       }
     }";
    let rt = runtime();
    let options =
        CompileOptions { num_partitions: 4, use_spmd_partitioning: true, ..CompileOptions::default() };
    let plan = plan_for(text, &options);
    let inputs = vec![vec![kept(f32s(&rt, &[4], &[0., 1., 2., 3.]))]];
    let results = run(&plan, &rt, inputs, &RunOptions::default()).unwrap();
    assert_eq!(to_f32s(&results[0][0]), [6., 7., 8., 9.]);
}

#[test]
fn a_collective_over_devices_that_run_apart_is_refused() {
    // On whole arrays, what is within a computation over `i` runs for one position along `i` at a time.
    let text = r#"module {
      sdy.mesh @mesh = <["i"=2, "j"=2]>
      func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
        %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"i", ?}]>] out_shardings=[<@mesh, [{"i", ?}]>] manual_axes={"i"} (%y: tensor<2xf32>) {
          %1 = sdy.manual_computation(%y) in_shardings=[<@mesh, [{"j"}]>] out_shardings=[<@mesh, [{"j"}]>] manual_axes={"j"} (%z: tensor<1xf32>) {
            %2 = "stablehlo.all_reduce"(%z) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<GROUPS> : tensor<SIZExi64>, use_global_device_ids}> ({
              ^bb0(%a: tensor<f32>, %b: tensor<f32>):
                %s = stablehlo.add %a, %b : tensor<f32>
                stablehlo.return %s : tensor<f32>
            }) : (tensor<1xf32>) -> tensor<1xf32>
            sdy.return %2 : tensor<1xf32>
          } : (tensor<2xf32>) -> tensor<2xf32>
          sdy.return %1 : tensor<2xf32>
        } : (tensor<4xf32>) -> tensor<4xf32>
        return %0 : tensor<4xf32>
      }
    }"#;
    let rt = runtime();
    let options =
        CompileOptions { num_partitions: 4, use_spmd_partitioning: true, ..CompileOptions::default() };
    let run_in = |groups: &str, size: &str| {
        let plan = plan_for(&text.replace("GROUPS", groups).replace("SIZE", size), &options);
        let inputs = vec![vec![kept(f32s(&rt, &[4], &[1., 2., 3., 4.]))]];
        run(&plan, &rt, inputs, &RunOptions::default())
    };
    let along_j = run_in("[[0, 1], [2, 3]]", "2x2").unwrap();
    assert_eq!(to_f32s(&along_j[0][0]), [3., 3., 7., 7.]);
    for (groups, size) in [("[[0, 2], [1, 3]]", "2x2"), ("[[0, 1, 2, 3]]", "1x4")] {
        assert_eq!(run_in(groups, size).unwrap_err().kind, RunErrorKind::Unimplemented, "{groups}");
    }
}

#[test]
fn a_plan_serves_several_threads_at_once() {
    let rt = runtime();
    let plan = plan(&fibonacci());
    std::thread::scope(|s| {
        for t in 0..4 {
            let (rt, plan) = (&rt, &plan);
            s.spawn(move || {
                for _ in 0..20 {
                    let x = vec![t as f32; WIDE];
                    let inputs = vec![vec![kept(f32s(rt, &[WIDE], &x)), kept(i32s(rt, &[], &[4]))]];
                    let results = run(plan, rt, inputs, &RunOptions::default()).unwrap();
                    assert_eq!(to_f32s(&results[0][1]), vec![8.0 * t as f32; WIDE]);
                }
            });
        }
    });
}

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

/// Functions of complex numbers: name, arguments and values, parts of C99's Annex G and points on both sides of branch
/// cuts. Signs of zeros count.
const SPECIAL_VALUES: &[(&str, &[[[f64; 2]; 2]])] = {
    use std::f64::consts::{FRAC_PI_2, FRAC_PI_3, FRAC_PI_4, PI};
    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;
    const ACOSH_2: f64 = 1.3169578969248167;
    const ATANH_HALF: f64 = 0.5493061443340549;
    &[
        (
            "acos",
            &[
                [[2., 0.], [0., -ACOSH_2]],
                [[2., -0.], [0., ACOSH_2]],
                [[-2., 0.], [PI, -ACOSH_2]],
                [[-INF, INF], [3. * FRAC_PI_4, -INF]],
                [[INF, 1.], [0., -INF]],
                [[0., NAN], [FRAC_PI_2, NAN]],
                [[NAN, INF], [NAN, -INF]],
                [[NAN, 0.], [NAN, NAN]],
            ],
        ),
        (
            "acosh",
            &[
                [[1., 0.], [0., 0.]],
                [[0.5, -0.], [0., -FRAC_PI_3]],
                [[-1., -0.], [0., -PI]],
                [[-INF, NAN], [INF, NAN]],
                [[INF, -INF], [INF, -FRAC_PI_4]],
            ],
        ),
        (
            "asin",
            &[
                [[0., -0.], [0., -0.]],
                [[-0., 0.], [-0., 0.]],
                [[2., 0.], [FRAC_PI_2, ACOSH_2]],
                [[2., -0.], [FRAC_PI_2, -ACOSH_2]],
                [[-2., 0.], [-FRAC_PI_2, ACOSH_2]],
                [[1e-300, 1e-300], [1e-300, 1e-300]],
                [[INF, INF], [FRAC_PI_4, INF]],
                [[1., -INF], [0., -INF]],
                [[0., NAN], [0., NAN]],
            ],
        ),
        (
            "asinh",
            &[
                [[0., 2.], [ACOSH_2, FRAC_PI_2]],
                [[-0., 2.], [-ACOSH_2, FRAC_PI_2]],
                [[-INF, 1.], [-INF, 0.]],
                [[NAN, 0.], [NAN, 0.]],
            ],
        ),
        (
            "atan",
            &[
                [[0., 2.], [FRAC_PI_2, ATANH_HALF]],
                [[-0., 2.], [-FRAC_PI_2, ATANH_HALF]],
                [[0., 1.], [0., INF]],
                [[-INF, 1.], [-FRAC_PI_2, 0.]],
                [[NAN, 0.], [NAN, 0.]],
            ],
        ),
        (
            "atanh",
            &[
                [[2., 0.], [ATANH_HALF, FRAC_PI_2]],
                [[2., -0.], [ATANH_HALF, -FRAC_PI_2]],
                [[1., 0.], [INF, 0.]],
                [[1., -1e-300], [345.73433753938684, -FRAC_PI_4]],
                [[1e300, 1e300], [5e-301, FRAC_PI_2]],
                [[-0., NAN], [-0., NAN]],
                [[INF, -1.], [0., -FRAC_PI_2]],
                [[INF, NAN], [0., NAN]],
            ],
        ),
        (
            "cosh",
            &[
                [[-0., 0.], [1., -0.]],
                [[0., INF], [NAN, 0.]],
                [[-INF, 0.], [INF, -0.]],
                [[INF, 2.], [-INF, INF]],
                [[NAN, 0.], [NAN, 0.]],
            ],
        ),
        (
            "sinh",
            &[
                [[-0., INF], [-0., NAN]],
                [[INF, 0.], [INF, 0.]],
                [[INF, -2.], [-INF, -INF]],
                [[-INF, NAN], [-INF, NAN]],
                [[NAN, -0.], [NAN, -0.]],
                // The exponential of 711 is not finite.
                [[711., 1.5], [2.1478033373565021e307, INF]],
            ],
        ),
        (
            "square",
            &[
                [[f64::MAX, f64::MAX], [0., INF]],
                [[f64::MAX, -f64::MAX], [0., -INF]],
                [[-INF, 1.], [INF, -INF]],
                [[1e-200, INF], [-INF, INF]],
            ],
        ),
    ]
};

#[test]
fn functions_of_complex_numbers_have_the_special_values_of_c99() {
    let rt = runtime();
    for (name, cases) in SPECIAL_VALUES {
        let ty = format!("tensor<{}xcomplex<f64>>", cases.len());
        let text = format!(
            "func.func @main(%x: {ty}) -> {ty} {{
               %0 = chlo.{name} %x : {ty} -> {ty}
               return %0 : {ty}
             }}"
        );
        let arguments: Vec<_> = cases.iter().map(|[z, _]| *z).collect();
        let results = run_one(&text, &rt, vec![c128s(&rt, &arguments)]);
        for ([z, expected], found) in cases.iter().zip(to_c128s(&results[0])) {
            for (e, f) in expected.iter().zip(found) {
                let is_close = e == &f && e.is_sign_negative() == f.is_sign_negative()
                    || (e - f).abs() <= 1e-15 * e.abs()
                    || e.is_nan() && f.is_nan();
                assert!(is_close, "{name} of {z:?}: expected {expected:?}, found {found:?}");
            }
        }
    }
}

#[test]
fn complex_numbers_are_ordered_by_real_then_imaginary_parts() {
    const PROGRAM: &str = "func.func @main(%x: tensor<4xcomplex<f64>>, %y: tensor<4xcomplex<f64>>)
        -> (tensor<4xcomplex<f64>>, tensor<4xcomplex<f64>>, tensor<4xcomplex<f64>>, tensor<complex<f64>>) {
      %0 = stablehlo.minimum %x, %y : tensor<4xcomplex<f64>>
      %1 = stablehlo.maximum %x, %y : tensor<4xcomplex<f64>>
      %least = stablehlo.constant dense<(1.0, 3.0)> : tensor<complex<f64>>
      %most = stablehlo.constant dense<(2.0, -1.0)> : tensor<complex<f64>>
      %2 = stablehlo.clamp %least, %x, %most
          : (tensor<complex<f64>>, tensor<4xcomplex<f64>>, tensor<complex<f64>>) -> tensor<4xcomplex<f64>>
      %3 = stablehlo.reduce(%x init: %most) applies stablehlo.maximum across dimensions = [0]
          : (tensor<4xcomplex<f64>>, tensor<complex<f64>>) -> tensor<complex<f64>>
      return %0, %1, %2, %3
          : tensor<4xcomplex<f64>>, tensor<4xcomplex<f64>>, tensor<4xcomplex<f64>>, tensor<complex<f64>>
    }";
    let rt = runtime();
    let x = [[1., 5.], [1., 2.], [-0., 1.], [3., -9.]];
    let y = [[2., -7.], [1., -2.], [0., 4.], [3., -9.]];
    let results = run_one(PROGRAM, &rt, vec![c128s(&rt, &x), c128s(&rt, &y)]);
    assert_eq!(to_c128s(&results[0]), [[1., 5.], [1., -2.], [-0., 1.], [3., -9.]]);
    assert_eq!(to_c128s(&results[1]), [[2., -7.], [1., 2.], [0., 4.], [3., -9.]]);
    assert_eq!(to_c128s(&results[2]), [[1., 5.], [1., 3.], [1., 3.], [2., -1.]]);
    assert_eq!(to_c128s(&results[3]), [[3., -9.]]);
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

/// What PyTorch/XLA's `torch.linalg.eigh` becomes; the other triangle is not read.
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
