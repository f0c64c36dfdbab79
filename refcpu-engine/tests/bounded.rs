//! Programs with bounded sizes that are known only at run time, through the whole engine.

use refcpu_engine::compile::{CompileErrorKind, CompileOptions, compile};
use refcpu_engine::exec::{Input, RunOptions, Runtime, run};
use refcpu_engine::storage::{Allocator, AllocatorOptions, Array};
use refcpu_kernels::{DType, Pool};

const X: [f32; 4] = [3.0, 1.0, 4.0, 1.5];

/// Returns the result of the body for each number of valid elements, from 0 to 4.
fn results(body: &str) -> Vec<f32> {
    let text = format!(
        r#"!v = tensor<?xf32, #stablehlo.bounds<4>>
        !m = tensor<?x3xf32, #stablehlo.bounds<4, ?>>
        !w = tensor<?xf32, #stablehlo.bounds<12>>
        func.func @main(%a: tensor<4xf32>, %n: tensor<i32>) -> tensor<f32> {{
          %zero = stablehlo.constant dense<0.0> : tensor<f32>
          %x = "stablehlo.set_dimension_size"(%a, %n) <{{dimension = 0 : i64}}> : (tensor<4xf32>, tensor<i32>) -> !v
          {body}
          return %r : tensor<f32>
        }}
        func.func private @twice(%x: !v) -> !v {{
          %y = stablehlo.add %x, %x : !v
          return %y : !v
        }}
        func.func private @sum(%x: !v) -> tensor<f32> {{
          %zero = stablehlo.constant dense<0.0> : tensor<f32>
          %r = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (!v, tensor<f32>) -> tensor<f32>
          return %r : tensor<f32>
        }}
        func.func private @weighted(%x: !w) -> tensor<f32> {{
          %zero = stablehlo.constant dense<0.0> : tensor<f32>
          %size = "stablehlo.get_dimension_size"(%x) <{{dimension = 0 : i64}}> : (!w) -> tensor<i32>
          %index = stablehlo.iota dim = 0 : tensor<12xf32>
          %weights = "stablehlo.set_dimension_size"(%index, %size) <{{dimension = 0 : i64}}>
            : (tensor<12xf32>, tensor<i32>) -> !w
          %products = stablehlo.multiply %x, %weights : !w
          %r = stablehlo.reduce(%products init: %zero) applies stablehlo.add across dimensions = [0] : (!w, tensor<f32>) -> tensor<f32>
          return %r : tensor<f32>
        }}"#
    );
    let module = pjrt_stablehlo::parse(text.as_str()).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let plan = compile(&module, &CompileOptions::default()).unwrap_or_else(|e| panic!("{e}\n{text}")).plan;
    let runtime = Runtime::new(Pool::inline(), Allocator::new(AllocatorOptions::default()));
    let input = |ty, dims: &[usize], bytes: &[u8]| Input {
        array: Array::from_bytes(&runtime.allocator, ty, dims, bytes).unwrap(),
        donatable: false,
    };
    let x: Vec<u8> = X.iter().flat_map(|x| x.to_le_bytes()).collect();
    let result = |size: i32| {
        let inputs = vec![input(DType::F32, &[4], &x), input(DType::S32, &[], &size.to_le_bytes())];
        let results = run(&plan, &runtime, vec![inputs], &RunOptions::default()).unwrap().remove(0);
        f32::from_le_bytes(results[0].bytes().unwrap().try_into().unwrap())
    };
    (0..=4).map(result).collect()
}

/// Returns the result of a function of the valid elements, for each number of them.
fn expected(f: impl Fn(&[f32]) -> f32) -> Vec<f32> {
    (0..=4).map(|size| f(&X[..size])).collect()
}

fn sum(x: &[f32]) -> f32 {
    x.iter().sum()
}

/// Returns the sum of the products of the numbers and their positions.
fn weighted(x: &[f32]) -> f32 {
    x.iter().zip(0u8..).map(|(x, index)| x * f32::from(index)).sum()
}

fn assert_results(body: &str, f: impl Fn(&[f32]) -> f32) {
    assert_eq!(results(body), expected(f), "{body}");
}

#[test]
fn reductions_leave_padding_out() {
    assert_results("%r = func.call @sum(%x) : (!v) -> tensor<f32>", sum);
    assert_results(
        "%low = stablehlo.constant dense<0xFF800000> : tensor<f32>
         %y = stablehlo.negate %x : !v
         %r = stablehlo.reduce(%y init: %low) applies stablehlo.maximum across dimensions = [0] : (!v, tensor<f32>) -> tensor<f32>",
        |x| x.iter().fold(f32::NEG_INFINITY, |most, x| most.max(-x)),
    );
    assert_results(
        "%b = stablehlo.broadcast_in_dim %x, dims = [0] : (!v) -> !m
         %q = stablehlo.reduce(%b init: %zero) applies stablehlo.add across dimensions = [1] : (!m, tensor<f32>) -> !v
         %r = func.call @sum(%q) : (!v) -> tensor<f32>",
        |x| 3.0 * sum(x),
    );
}

#[test]
fn the_size_of_a_dimension_is_what_was_set_within_the_bound() {
    assert_results(
        r#"%y = stablehlo.add %x, %x : !v
        %size = "stablehlo.get_dimension_size"(%y) <{dimension = 0 : i64}> : (!v) -> tensor<i32>
        %r = stablehlo.convert %size : (tensor<i32>) -> tensor<f32>"#,
        |x| x.len() as f32,
    );
    assert_results(
        r#"%more = stablehlo.add %n, %n : tensor<i32>
        %y = "stablehlo.set_dimension_size"(%a, %more) <{dimension = 0 : i64}> : (tensor<4xf32>, tensor<i32>) -> !v
        %r = func.call @sum(%y) : (!v) -> tensor<f32>"#,
        |x| sum(&X[..(2 * x.len()).min(4)]),
    );
}

#[test]
fn products_sum_what_counts() {
    assert_results(
        "%r = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0] : (!v, !v) -> tensor<f32>",
        |x| x.iter().map(|x| x * x).sum(),
    );
    // One operand is not padded: its numbers there do not count either.
    assert_results(
        "%r = stablehlo.dot_general %x, %a, contracting_dims = [0] x [0] : (!v, tensor<4xf32>) -> tensor<f32>",
        |x| x.iter().map(|x| x * x).sum(),
    );
}

#[test]
fn sorting_puts_padding_last() {
    assert_results(
        r#"%o = "stablehlo.sort"(%x) <{dimension = 0 : i64, is_stable = true}> ({
          ^bb0(%p: tensor<f32>, %q: tensor<f32>):
            %c = stablehlo.compare GT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
            stablehlo.return %c : tensor<i1>
        }) : (!v) -> !v
        %w = stablehlo.concatenate %o, dim = 0 : (!v) -> !v
        %wide = stablehlo.pad %w, %zero, low = [0], high = [8], interior = [0] : (!v, tensor<f32>) -> !w
        %r = func.call @weighted(%wide) : (!w) -> tensor<f32>"#,
        |x| {
            let mut x = x.to_vec();
            x.sort_by(|a, b| b.total_cmp(a));
            weighted(&x)
        },
    );
}

#[test]
fn parts_follow_each_other_without_padding_between() {
    assert_results(
        "%y = stablehlo.concatenate %x, %a, %x, dim = 0 : (!v, tensor<4xf32>, !v) -> !w
         %r = func.call @weighted(%y) : (!w) -> tensor<f32>",
        |x| weighted(&[x, &X, x].concat()),
    );
    assert_results(
        "%ten = stablehlo.constant dense<10.0> : tensor<f32>
         %y = stablehlo.pad %x, %ten, low = [1], high = [7], interior = [0] : (!v, tensor<f32>) -> !w
         %r = func.call @weighted(%y) : (!w) -> tensor<f32>",
        |x| weighted(&[&[10.0], x, &[10.0; 7]].concat()),
    );
}

#[test]
fn shapes_change_where_elements_keep_their_order() {
    for reshape in [
        "%y = stablehlo.reshape %m : (!m) -> !w",
        "%three = stablehlo.constant dense<3> : tensor<i32>
         %count = stablehlo.multiply %n, %three : tensor<i32>
         %shape = stablehlo.reshape %count : (tensor<i32>) -> tensor<1xi32>
         %y = stablehlo.dynamic_reshape %m, %shape : (!m, tensor<1xi32>) -> !w",
    ] {
        let body = format!(
            r#"%b = stablehlo.broadcast_in_dim %x, dims = [0] : (!v) -> !m
            %i = stablehlo.iota dim = 1 : tensor<4x3xf32>
            %ib = "stablehlo.set_dimension_size"(%i, %n) <{{dimension = 0 : i64}}> : (tensor<4x3xf32>, tensor<i32>) -> !m
            %m = stablehlo.add %b, %ib : !m
            {reshape}
            %r = func.call @weighted(%y) : (!w) -> tensor<f32>"#
        );
        assert_results(&body, |x| {
            weighted(&x.iter().flat_map(|x| [*x, x + 1.0, x + 2.0]).collect::<Vec<_>>())
        });
    }
}

#[test]
fn sizes_go_through_control_flow() {
    assert_results(
        "%y = func.call @twice(%x) : (!v) -> !v
         %r = func.call @sum(%y) : (!v) -> tensor<f32>",
        |x| 2.0 * sum(x),
    );
    assert_results(
        r#"%two = stablehlo.constant dense<2> : tensor<i32>
        %c = stablehlo.compare GE, %n, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %y = "stablehlo.if"(%c) ({
          %one = stablehlo.constant dense<1> : tensor<i32>
          %z = "stablehlo.set_dimension_size"(%a, %one) <{dimension = 0 : i64}> : (tensor<4xf32>, tensor<i32>) -> !v
          stablehlo.return %z : !v
        }, {
          stablehlo.return %x : !v
        }) : (tensor<i1>) -> !v
        %r = func.call @sum(%y) : (!v) -> tensor<f32>"#,
        |x| sum(&x[..x.len().min(1)]),
    );
    assert_results(
        "%t = stablehlo.tuple %x, %n : tuple<!v, tensor<i32>>
         %y = stablehlo.get_tuple_element %t[0] : (tuple<!v, tensor<i32>>) -> !v
         %r = func.call @sum(%y) : (!v) -> tensor<f32>",
        sum,
    );
    // Each turn takes one off the end.
    assert_results(
        r#"%i0 = stablehlo.constant dense<0> : tensor<i32>
        %one = stablehlo.constant dense<1> : tensor<i32>
        %two = stablehlo.constant dense<2> : tensor<i32>
        %l:2 = stablehlo.while(%i = %i0, %y = %x) : tensor<i32>, !v
        cond {
          %c = stablehlo.compare LT, %i, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %c : tensor<i1>
        } do {
          %j = stablehlo.add %i, %one : tensor<i32>
          %size = "stablehlo.get_dimension_size"(%y) <{dimension = 0 : i64}> : (!v) -> tensor<i32>
          %less = stablehlo.subtract %size, %one : tensor<i32>
          %full = stablehlo.constant dense<4> : tensor<i32>
          %whole = "stablehlo.set_dimension_size"(%y, %full) <{dimension = 0 : i64}> : (!v, tensor<i32>) -> tensor<4xf32>
          %z = "stablehlo.set_dimension_size"(%whole, %less) <{dimension = 0 : i64}> : (tensor<4xf32>, tensor<i32>) -> !v
          stablehlo.return %j, %z : tensor<i32>, !v
        }
        %r = func.call @sum(%l#1) : (!v) -> tensor<f32>"#,
        |x| sum(&x[..x.len().saturating_sub(2)]),
    );
}

#[test]
fn indices_that_do_not_count_read_and_write_nothing() {
    let indices = r#"%all = stablehlo.constant dense<[3, 1, 2, 0]> : tensor<4xi32>
        %i = "stablehlo.set_dimension_size"(%all, %n) <{dimension = 0 : i64}>
          : (tensor<4xi32>, tensor<i32>) -> tensor<?xi32, #stablehlo.bounds<4>>"#;
    assert_results(
        &format!(
            r#"{indices}
            %g = "stablehlo.gather"(%a, %i) <{{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}}> : (tensor<4xf32>, tensor<?xi32, #stablehlo.bounds<4>>) -> !v
            %r = func.call @sum(%g) : (!v) -> tensor<f32>"#
        ),
        |x| [1.5, 1.0, 4.0, 3.0][..x.len()].iter().sum(),
    );
    assert_results(
        &format!(
            r#"{indices}
            %g = "stablehlo.scatter"(%a, %i, %x) <{{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
              ^bb0(%p: tensor<f32>, %q: tensor<f32>):
                %c = stablehlo.add %p, %q : tensor<f32>
                stablehlo.return %c : tensor<f32>
            }}) : (tensor<4xf32>, tensor<?xi32, #stablehlo.bounds<4>>, !v) -> tensor<4xf32>
            %index = stablehlo.iota dim = 0 : tensor<4xf32>
            %p = stablehlo.multiply %g, %index : tensor<4xf32>
            %r = stablehlo.reduce(%p init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>"#
        ),
        |x| {
            let mut all = X;
            [3, 1, 2, 0].iter().zip(x).for_each(|(&index, x): (&usize, _)| all[index] += x);
            weighted(&all)
        },
    );
}

#[test]
fn slices_have_what_counts_of_their_part() {
    assert_results(
        "%y = stablehlo.slice %x [1:4:2] : (!v) -> tensor<?xf32, #stablehlo.bounds<2>>
         %r = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0]
           : (tensor<?xf32, #stablehlo.bounds<2>>, tensor<f32>) -> tensor<f32>",
        |x| x.iter().skip(1).step_by(2).sum(),
    );
    // From the first to the size, which may be the first.
    assert_results(
        "%one = stablehlo.constant dense<1> : tensor<1xi32>
         %vector = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
         %end = stablehlo.maximum %vector, %one : tensor<1xi32>
         %y = stablehlo.real_dynamic_slice %a, %one, %end, %one
           : (tensor<4xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> !v
         %r = func.call @sum(%y) : (!v) -> tensor<f32>",
        |x| x.iter().skip(1).sum(),
    );
}

#[test]
fn what_has_no_place_for_sizes_is_refused_by_name() {
    let refusal = |text: &str| {
        let module = pjrt_stablehlo::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let error = compile(&module, &CompileOptions::default()).err().expect("the program is refused");
        assert_eq!(error.kind, CompileErrorKind::Unimplemented, "{error}");
        error.to_string()
    };
    let result = refusal(
        r#"func.func @main(%a: tensor<4xf32>, %n: tensor<i32>) -> tensor<?xf32, #stablehlo.bounds<4>> {
          %x = "stablehlo.set_dimension_size"(%a, %n) <{dimension = 0 : i64}>
            : (tensor<4xf32>, tensor<i32>) -> tensor<?xf32, #stablehlo.bounds<4>>
          return %x : tensor<?xf32, #stablehlo.bounds<4>>
        }"#,
    );
    assert!(result.contains("result 0 of 'main'"), "{result}");
    let reverse = refusal(
        r#"func.func @main(%a: tensor<4xf32>, %n: tensor<i32>) -> tensor<i32> {
          %x = "stablehlo.set_dimension_size"(%a, %n) <{dimension = 0 : i64}>
            : (tensor<4xf32>, tensor<i32>) -> tensor<?xf32, #stablehlo.bounds<4>>
          %y = stablehlo.reverse %x, dims = [0] : tensor<?xf32, #stablehlo.bounds<4>>
          %r = "stablehlo.get_dimension_size"(%y) <{dimension = 0 : i64}> : (tensor<?xf32, #stablehlo.bounds<4>>) -> tensor<i32>
          return %r : tensor<i32>
        }"#,
    );
    assert!(reverse.contains("stablehlo.reverse") && reverse.contains("dimension 0"), "{reverse}");
}
