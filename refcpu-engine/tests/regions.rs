//! Reductions, windows, scatters, sorts and maps by regions that no kernel applies: with loops, calls or arrays in them.

use refcpu_engine::compile::{CompileOptions, compile};
use refcpu_engine::exec::{Input, RunOptions, Runtime, run};
use refcpu_engine::plan::{Kernel, Plan, Step};
use refcpu_engine::storage::{Allocator, AllocatorOptions, Array};
use refcpu_kernels::{DType, Pool};

fn plan(text: &str) -> Plan {
    let module = pjrt_stablehlo::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    compile(&module, &CompileOptions::default()).unwrap_or_else(|e| panic!("{e}\n{text}")).plan
}

fn array<T, const N: usize>(dtype: DType, dims: &[usize], values: &[T], bytes: fn(&T) -> [u8; N]) -> Array {
    let allocator = Allocator::new(AllocatorOptions::default());
    let bytes: Vec<u8> = values.iter().flat_map(bytes).collect();
    Array::from_bytes(&allocator, dtype, dims, &bytes).unwrap()
}

fn i32s(dims: &[usize], values: &[i32]) -> Array {
    array(DType::S32, dims, values, |v| v.to_le_bytes())
}

fn f32s(dims: &[usize], values: &[f32]) -> Array {
    array(DType::F32, dims, values, |v| v.to_le_bytes())
}

fn to_i32s(array: &Array) -> Vec<i32> {
    array.bytes().unwrap().chunks_exact(4).map(|b| i32::from_le_bytes(b.try_into().unwrap())).collect()
}

fn to_f32s(array: &Array) -> Vec<f32> {
    array.bytes().unwrap().chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

fn results(text: &str, inputs: Vec<Array>) -> Vec<Array> {
    let rt = Runtime::new(Pool::inline(), Allocator::new(AllocatorOptions::default()));
    let inputs = inputs.into_iter().map(|array| Input { array, donatable: false }).collect();
    run(&plan(text), &rt, vec![inputs], &RunOptions::default()).unwrap().remove(0)
}

/// The greatest common divisor, by Euclid's algorithm, and the region that computes it.
fn gcd(a: i32, b: i32) -> i32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

const GCD: &str = "({
    ^bb0(%gcd_a: tensor<i32>, %gcd_b: tensor<i32>):
      %gcd_zero = stablehlo.constant dense<0> : tensor<i32>
      %gcd_r:2 = stablehlo.while(%gcd_x = %gcd_a, %gcd_y = %gcd_b) : tensor<i32>, tensor<i32>
      cond {
        %gcd_p = stablehlo.compare NE, %gcd_y, %gcd_zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %gcd_p : tensor<i1>
      } do {
        %gcd_m = stablehlo.remainder %gcd_x, %gcd_y : tensor<i32>
        stablehlo.return %gcd_y, %gcd_m : tensor<i32>, tensor<i32>
      }
      stablehlo.return %gcd_r#0 : tensor<i32>
    })";

/// The sum of a number's decimal digits, and a function that computes it.
fn digits(x: i32) -> i32 {
    if x == 0 { 0 } else { x % 10 + digits(x / 10) }
}

const DIGITS: &str = "func.func private @digits(%a: tensor<i32>) -> tensor<i32> {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %ten = stablehlo.constant dense<10> : tensor<i32>
      %r:2 = stablehlo.while(%x = %a, %sum = %zero) : tensor<i32>, tensor<i32>
      cond {
        %p = stablehlo.compare NE, %x, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      } do {
        %digit = stablehlo.remainder %x, %ten : tensor<i32>
        %rest = stablehlo.divide %x, %ten : tensor<i32>
        %next = stablehlo.add %sum, %digit : tensor<i32>
        stablehlo.return %rest, %next : tensor<i32>, tensor<i32>
      }
      return %r#1 : tensor<i32>
    }";

/// Numbers with many divisors in common.
fn numbers(count: usize) -> Vec<i32> {
    (0..count as i32).map(|i| (i * 37 % 11 + 1) * (i * 5 % 7 + 1) * 12).collect()
}

#[test]
fn any_dimensions_are_reduced_by_a_loop() {
    let x = numbers(24);
    for (dims, kept, row) in [
        ("0", "3x4x", (|i| i % 12) as fn(usize) -> usize),
        ("1", "2x4x", |i| i / 12 * 4 + i % 4),
        ("2", "2x3x", |i| i / 4),
        ("0, 2", "3x", |i| i / 4 % 3),
        ("0, 1, 2", "", |_| 0),
    ] {
        let text = format!(
            r#"func.func @main(%x: tensor<2x3x4xi32>) -> tensor<{kept}xi32> {{
              %init = stablehlo.constant dense<0> : tensor<i32>
              %0 = "stablehlo.reduce"(%x, %init) <{{dimensions = array<i64: {dims}>}}> {GCD}
                : (tensor<2x3x4xi32>, tensor<i32>) -> tensor<{kept}xi32>
              return %0 : tensor<{kept}xi32>
            }}"#
        );
        let text = text.replace("xxi32", "xi32").replace("tensor<xi32>", "tensor<i32>");
        let got = to_i32s(&results(&text, vec![i32s(&[2, 3, 4], &x)])[0]);
        let mut expected = vec![0; got.len()];
        x.iter().enumerate().for_each(|(i, v)| expected[row(i)] = gcd(expected[row(i)], *v));
        assert_eq!(got, expected, "dimensions {dims}");
    }
}

/// Of two pairs the one with the larger first number, found in an array of both; of equal ones the first.
const LARGER_PAIR: &str = r#"({
    ^bb0(%a: tensor<f32>, %i: tensor<i32>, %b: tensor<f32>, %j: tensor<i32>):
      %a1 = stablehlo.reshape %a : (tensor<f32>) -> tensor<1xf32>
      %b1 = stablehlo.reshape %b : (tensor<f32>) -> tensor<1xf32>
      %both = stablehlo.concatenate %a1, %b1, dim = 0 : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
      %lowest = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %m = stablehlo.reduce(%both init: %lowest) applies stablehlo.maximum across dimensions = [0]
        : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
      %all = stablehlo.broadcast_in_dim %m, dims = [] : (tensor<f32>) -> tensor<2xf32>
      %is = stablehlo.compare EQ, %both, %all : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
      %first = stablehlo.slice %is [0:1] : (tensor<2xi1>) -> tensor<1xi1>
      %p = stablehlo.reshape %first : (tensor<1xi1>) -> tensor<i1>
      %k = stablehlo.select %p, %i, %j : tensor<i1>, tensor<i32>
      stablehlo.return %m, %k : tensor<f32>, tensor<i32>
    })"#;

#[test]
fn two_operands_are_reduced_together_by_a_region_with_arrays() {
    let text = format!(
        r#"func.func @main(%x: tensor<2x3xf32>) -> (tensor<2xf32>, tensor<2xi32>, tensor<2x2xi32>) {{
          %at = stablehlo.iota dim = 1 : tensor<2x3xi32>
          %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
          %none = stablehlo.constant dense<-1> : tensor<i32>
          %0:2 = "stablehlo.reduce"(%x, %at, %least, %none) <{{dimensions = array<i64: 1>}}> {LARGER_PAIR}
            : (tensor<2x3xf32>, tensor<2x3xi32>, tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>)
          %1:2 = "stablehlo.reduce_window"(%x, %at, %least, %none) <{{window_dimensions = array<i64: 1, 2>}}> {LARGER_PAIR}
            : (tensor<2x3xf32>, tensor<2x3xi32>, tensor<f32>, tensor<i32>) -> (tensor<2x2xf32>, tensor<2x2xi32>)
          return %0#0, %0#1, %1#1 : tensor<2xf32>, tensor<2xi32>, tensor<2x2xi32>
        }}"#
    );
    let got = results(&text, vec![f32s(&[2, 3], &[1.0, 5.0, 5.0, 7.0, -2.0, 0.5])]);
    assert_eq!(to_f32s(&got[0]), [5.0, 7.0]);
    assert_eq!(to_i32s(&got[1]), [1, 0]);
    assert_eq!(to_i32s(&got[2]), [1, 1, 0, 2]);
}

/// Attributes of windows along one dimension, and sizes.
struct Axis {
    input: usize,
    size: usize,
    stride: usize,
    base: usize,
    dilation: usize,
    padding: (i64, i64),
}

impl Axis {
    fn padded(&self) -> i64 {
        ((self.input - 1) * self.base + 1) as i64 + self.padding.0 + self.padding.1
    }

    fn windows(&self) -> usize {
        ((self.padded() - ((self.size - 1) * self.dilation + 1) as i64) / self.stride as i64 + 1) as usize
    }

    /// The element of the input that is element `at` of a window, unless that is padding.
    fn element(&self, window: usize, at: usize) -> Option<usize> {
        let place = (window * self.stride + at * self.dilation) as i64 - self.padding.0;
        let index = usize::try_from(place).ok()? / self.base;
        ((place as usize).is_multiple_of(self.base) && index < self.input).then_some(index)
    }
}

#[test]
fn windows_have_strides_dilations_and_padding_in_a_loop_too() {
    let axis =
        |input, size, stride, base, dilation, padding| Axis { input, size, stride, base, dilation, padding };
    for axes in [
        [axis(4, 2, 1, 1, 1, (0, 0)), axis(5, 3, 2, 1, 1, (1, 2))],
        [axis(4, 2, 2, 3, 2, (2, 0)), axis(5, 2, 1, 2, 3, (-1, 4))],
        [axis(4, 1, 1, 2, 1, (-2, -1)), axis(5, 4, 3, 1, 1, (3, 3))],
    ] {
        let [rows, columns] = [axes[0].windows(), axes[1].windows()];
        let list = |f: fn(&Axis) -> usize| format!("array<i64: {}, {}>", f(&axes[0]), f(&axes[1]));
        let text = format!(
            r#"func.func @main(%x: tensor<4x5xi32>) -> tensor<{rows}x{columns}xi32> {{
              %init = stablehlo.constant dense<720> : tensor<i32>
              %0 = "stablehlo.reduce_window"(%x, %init) <{{window_dimensions = {}, window_strides = {},
                base_dilations = {}, window_dilations = {},
                padding = dense<[[{}, {}], [{}, {}]]> : tensor<2x2xi64>}}> {GCD}
                : (tensor<4x5xi32>, tensor<i32>) -> tensor<{rows}x{columns}xi32>
              return %0 : tensor<{rows}x{columns}xi32>
            }}"#,
            list(|a| a.size),
            list(|a| a.stride),
            list(|a| a.base),
            list(|a| a.dilation),
            axes[0].padding.0,
            axes[0].padding.1,
            axes[1].padding.0,
            axes[1].padding.1,
        );
        let x = numbers(20);
        let got = to_i32s(&results(&text, vec![i32s(&[4, 5], &x)])[0]);
        let mut expected = Vec::new();
        for (i, j) in (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))) {
            let within = (0..axes[0].size).flat_map(|k| (0..axes[1].size).map(move |l| (k, l)));
            let value = |(k, l)| match (axes[0].element(i, k), axes[1].element(j, l)) {
                (Some(row), Some(column)) => x[row * 5 + column],
                _ => 720,
            };
            expected.push(within.map(value).fold(720, gcd));
        }
        assert_eq!(got, expected);
    }
}

#[test]
fn windows_of_updates_that_leave_the_array_are_left_out_and_those_that_meet_are_combined() {
    let text = format!(
        r#"func.func @main(%x: tensor<4x3xi32>, %at: tensor<5x1xi32>, %u: tensor<5x2x3xi32>) -> tensor<4x3xi32> {{
          %0 = "stablehlo.scatter"(%x, %at, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<
              update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> {GCD}
            : (tensor<4x3xi32>, tensor<5x1xi32>, tensor<5x2x3xi32>) -> tensor<4x3xi32>
          return %0 : tensor<4x3xi32>
        }}"#
    );
    let x: Vec<i32> = (1..=12).map(|i| i * 5040).collect();
    let starts = [1, 3, 0, -1, 1];
    let updates: Vec<i32> = numbers(30).iter().map(|v| v * 35).collect();
    let mut expected = x.clone();
    for (k, start) in starts.iter().enumerate().filter(|(_, s)| (0..=2).contains(*s)) {
        for i in 0..6 {
            let place = &mut expected[*start as usize * 3 + i];
            *place = gcd(*place, updates[k * 6 + i]);
        }
    }
    let inputs = vec![i32s(&[4, 3], &x), i32s(&[5, 1], &starts), i32s(&[5, 2, 3], &updates)];
    assert_eq!(to_i32s(&results(&text, inputs)[0]), expected);
}

#[test]
fn two_operands_are_scattered_to_along_batching_dimensions() {
    // The index vectors lie along the first dimension of the indices, the batch along the last of the operands.
    let text = format!(
        r#"{DIGITS}
        func.func @main(%x: tensor<3x4x2xi32>, %at: tensor<2x2x5xui8>, %u: tensor<2x5xi32>)
            -> (tensor<3x4x2xi32>, tensor<3x4x2xi32>) {{
          %0:2 = "stablehlo.scatter"(%x, %x, %at, %u, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<
              inserted_window_dims = [0, 1], input_batching_dims = [2], scatter_indices_batching_dims = [1],
              scatter_dims_to_operand_dims = [1, 0], index_vector_dim = 0>}}> ({{
            ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<i32>, %d: tensor<i32>):
              %e = func.call @digits(%c) : (tensor<i32>) -> tensor<i32>
              %sum = stablehlo.add %a, %e : tensor<i32>
              %difference = stablehlo.subtract %b, %d : tensor<i32>
              stablehlo.return %sum, %difference : tensor<i32>, tensor<i32>
          }}) : (tensor<3x4x2xi32>, tensor<3x4x2xi32>, tensor<2x2x5xui8>, tensor<2x5xi32>, tensor<2x5xi32>)
            -> (tensor<3x4x2xi32>, tensor<3x4x2xi32>)
          return %0#0, %0#1 : tensor<3x4x2xi32>, tensor<3x4x2xi32>
        }}"#
    );
    let x: Vec<i32> = (0..24).collect();
    let columns = [0u8, 3, 4, 3, 1, 2, 2, 200, 0, 3];
    let rows = [1u8, 2, 0, 2, 255, 0, 0, 1, 2, 2];
    let updates: Vec<i32> = (0..10).map(|i| i * 77 + 5).collect();
    let (mut sums, mut differences) = (x.clone(), x.clone());
    for k in 0..10 {
        if columns[k] < 4 && rows[k] < 3 {
            let place = (usize::from(rows[k]) * 4 + usize::from(columns[k])) * 2 + k / 5;
            sums[place] += digits(updates[k]);
            differences[place] -= updates[k];
        }
    }
    let at = array(DType::U8, &[2, 2, 5], &[columns, rows].concat(), |v| [*v]);
    let got = results(&text, vec![i32s(&[3, 4, 2], &x), at, i32s(&[2, 5], &updates)]);
    assert_eq!(to_i32s(&got[0]), sums);
    assert_eq!(to_i32s(&got[1]), differences);
}

#[test]
fn sorts_by_a_loop_keep_the_order_of_equal_elements() {
    for (rows, length) in [(1, 1), (1, 2), (2, 3), (3, 4), (1, 5), (2, 8), (3, 17), (1, 33)] {
        for first in [true, false] {
            // Along the first or the last dimension.
            let dims = if first { [length, rows] } else { [rows, length] };
            let ty = format!("tensor<{}x{}xi32>", dims[0], dims[1]);
            let text = format!(
                r#"{DIGITS}
                func.func @main(%x: {ty}, %y: {ty}) -> ({ty}, {ty}) {{
                  %0:2 = "stablehlo.sort"(%x, %y) <{{dimension = {} : i64, is_stable = true}}> ({{
                    ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<i32>, %d: tensor<i32>):
                      %e = func.call @digits(%a) : (tensor<i32>) -> tensor<i32>
                      %f = func.call @digits(%b) : (tensor<i32>) -> tensor<i32>
                      %p = stablehlo.compare LT, %e, %f : (tensor<i32>, tensor<i32>) -> tensor<i1>
                      stablehlo.return %p : tensor<i1>
                  }}) : ({ty}, {ty}) -> ({ty}, {ty})
                  return %0#0, %0#1 : {ty}, {ty}
                }}"#,
                u8::from(!first)
            );
            let x: Vec<i32> = (0..(rows * length) as i32).map(|i| i * 7919 % 1000).collect();
            let y: Vec<i32> = (0..(rows * length) as i32).collect();
            let got = results(&text, vec![i32s(&dims, &x), i32s(&dims, &y)]);
            let place = |row: usize, at: usize| if first { at * rows + row } else { row * length + at };
            let mut expected = vec![0; y.len()];
            for row in 0..rows {
                let mut sorted: Vec<usize> = (0..length).map(|at| place(row, at)).collect();
                sorted.sort_by_key(|at| digits(x[*at]));
                sorted.iter().enumerate().for_each(|(at, from)| expected[place(row, at)] = *from as i32);
            }
            assert_eq!(to_i32s(&got[1]), expected, "{rows} rows of {length}, {first}");
            let values: Vec<i32> = expected.iter().map(|at| x[*at as usize]).collect();
            assert_eq!(to_i32s(&got[0]), values);
        }
    }
}

#[test]
fn maps_call_functions_with_loops() {
    let text = format!(
        r#"{DIGITS}
        func.func @main(%x: tensor<2x3xi32>, %y: tensor<2x3xi32>) -> tensor<2x3xi32> {{
          %0 = "stablehlo.map"(%x, %y) <{{dimensions = array<i64: 0, 1>}}> ({{
            ^bb0(%a: tensor<i32>, %b: tensor<i32>):
              %c = func.call @digits(%a) : (tensor<i32>) -> tensor<i32>
              %d = stablehlo.subtract %c, %b : tensor<i32>
              stablehlo.return %d : tensor<i32>
          }}) : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi32>
          return %0 : tensor<2x3xi32>
        }}"#
    );
    let (x, y) = ([5, 99, 1234, 0, 70, 1001], [1, 2, 3, 4, 5, 6]);
    let got = results(&text, vec![i32s(&[2, 3], &x), i32s(&[2, 3], &y)]);
    assert_eq!(to_i32s(&got[0]), [4, 16, 7, -4, 2, -4]);
}

/// A region that adds `b` to `a` in three steps, of elements of any type.
fn sum_in_steps(ty: &str, third: &str) -> String {
    format!(
        "({{
        ^bb0(%s_a: tensor<{ty}>, %s_b: tensor<{ty}>):
          %s_zero = stablehlo.constant dense<0> : tensor<i32>
          %s_one = stablehlo.constant dense<1> : tensor<i32>
          %s_three = stablehlo.constant dense<3> : tensor<i32>
          %s_third = stablehlo.constant dense<{third}> : tensor<{ty}>
          %s_step = stablehlo.multiply %s_b, %s_third : tensor<{ty}>
          %s_r:2 = stablehlo.while(%s_i = %s_zero, %s_x = %s_a) : tensor<i32>, tensor<{ty}>
          cond {{
            %s_p = stablehlo.compare LT, %s_i, %s_three : (tensor<i32>, tensor<i32>) -> tensor<i1>
            stablehlo.return %s_p : tensor<i1>
          }} do {{
            %s_n = stablehlo.add %s_i, %s_one : tensor<i32>
            %s_y = stablehlo.add %s_x, %s_step : tensor<{ty}>
            stablehlo.return %s_n, %s_y : tensor<i32>, tensor<{ty}>
          }}
          stablehlo.return %s_r#1 : tensor<{ty}>
        }})"
    )
}

#[test]
fn complex_and_narrow_elements_are_combined_by_a_loop() {
    let text = |ty: &str, third: &str, zero: &str| {
        let region = sum_in_steps(ty, third);
        format!(
            r#"func.func @main(%x: tensor<5x{ty}>) -> (tensor<{ty}>, tensor<4x{ty}>) {{
              %init = stablehlo.constant dense<{zero}> : tensor<{ty}>
              %0 = "stablehlo.reduce"(%x, %init) <{{dimensions = array<i64: 0>}}> {region}
                : (tensor<5x{ty}>, tensor<{ty}>) -> tensor<{ty}>
              %1 = "stablehlo.reduce_window"(%x, %init) <{{window_dimensions = array<i64: 2>}}> {region}
                : (tensor<5x{ty}>, tensor<{ty}>) -> tensor<4x{ty}>
              return %0, %1 : tensor<{ty}>, tensor<4x{ty}>
            }}"#
        )
    };
    // With a third of 1, what is added is three times the element.
    let x: Vec<[f32; 2]> = (0..5).map(|i| [i as f32, 2.0 - i as f32]).collect();
    let x = array(DType::C64, &[5], &x, |v| {
        let [re, im] = v.map(f32::to_le_bytes);
        [re[0], re[1], re[2], re[3], im[0], im[1], im[2], im[3]]
    });
    let got = results(&text("complex<f32>", "(1.0, 0.0)", "(0.0, 0.0)"), vec![x]);
    assert_eq!(to_f32s(&got[0]), [30.0, 0.0]);
    assert_eq!(to_f32s(&got[1]), [3.0, 9.0, 9.0, 3.0, 15.0, -3.0, 21.0, -9.0]);

    let x = array(DType::S4, &[5], &[1i8, -1, 2, 0, 1], |v| v.to_le_bytes());
    let got = results(&text("i4", "1", "0"), vec![x]);
    assert_eq!(got[0].bytes().unwrap(), [(9 - 16) as u8]);
    assert_eq!(got[1].bytes().unwrap(), [0, 3, 6, 3]);
}

#[test]
fn a_region_may_combine_elements_in_a_wider_type() {
    // bf16 cannot represent 256 + 1. In a loop, the element that is added may be of its own type.
    let sum = |narrow: &str| {
        format!(
            "({{
            ^bb0(%a: tensor<f32>, %b: tensor<{narrow}>):
              %c = stablehlo.convert %b : (tensor<{narrow}>) -> tensor<f32>
              %d = stablehlo.add %a, %c : tensor<f32>
              stablehlo.return %d : tensor<f32>
            }})"
        )
    };
    for narrow in ["bf16", "f32"] {
        let region = sum(narrow);
        let text = format!(
            r#"func.func @main(%x: tensor<3xbf16>) -> (tensor<f32>, tensor<2xf32>, tensor<3xf32>, tensor<3xf32>) {{
              %init = stablehlo.constant dense<0.0> : tensor<bf16>
              %0 = "stablehlo.reduce"(%x, %init) <{{dimensions = array<i64: 0>}}> {region}
                : (tensor<3xbf16>, tensor<bf16>) -> tensor<f32>
              %1 = "stablehlo.reduce_window"(%x, %init) <{{window_dimensions = array<i64: 2>}}> {region}
                : (tensor<3xbf16>, tensor<bf16>) -> tensor<2xf32>
              %at = stablehlo.constant dense<[[1], [1], [0]]> : tensor<3x1xi32>
              %2 = "stablehlo.scatter"(%x, %at, %x) <{{scatter_dimension_numbers = #stablehlo.scatter<
                  inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> {region}
                : (tensor<3xbf16>, tensor<3x1xi32>, tensor<3xbf16>) -> tensor<3xf32>
              %source = stablehlo.slice %x [0:2] : (tensor<3xbf16>) -> tensor<2xbf16>
              %3 = "stablehlo.select_and_scatter"(%x, %source, %init) <{{window_dimensions = array<i64: 2>}}> ({{
                ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
                  %p = stablehlo.compare GE, %a, %b : (tensor<bf16>, tensor<bf16>) -> tensor<i1>
                  stablehlo.return %p : tensor<i1>
              }}, {}) : (tensor<3xbf16>, tensor<2xbf16>, tensor<bf16>) -> tensor<3xf32>
              return %0, %1, %2, %3 : tensor<f32>, tensor<2xf32>, tensor<3xf32>, tensor<3xf32>
            }}"#,
            sum("f32").trim_matches(['(', ')'])
        );
        let x = array(DType::BF16, &[3], &[1.0f32, 256.0, 2.0], |v| {
            let bits = v.to_le_bytes();
            [bits[2], bits[3]]
        });
        let got: Vec<Vec<f32>> = results(&text, vec![x]).iter().map(to_f32s).collect();
        assert_eq!(got, [vec![259.0], vec![257.0, 258.0], vec![3.0, 513.0, 2.0], vec![0.0, 257.0, 0.0]]);
    }
}

#[test]
fn a_scalar_is_sorted_as_it_is() {
    for dimension in [-1, 0] {
        let text = format!(
            r#"func.func @main(%x: tensor<i32>) -> tensor<i32> {{
              %0 = "stablehlo.sort"(%x) <{{dimension = {dimension} : i64}}> ({{
                ^bb0(%a: tensor<i32>, %b: tensor<i32>):
                  %p = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
                  stablehlo.return %p : tensor<i1>
              }}) : (tensor<i32>) -> tensor<i32>
              return %0 : tensor<i32>
            }}"#
        );
        assert_eq!(to_i32s(&results(&text, vec![i32s(&[], &[3])])[0]), [3]);
    }
}

#[test]
fn any_region_selects_and_any_scatters() {
    let sum = sum_in_steps("f32", "1.0");
    let sum = sum.trim_matches(['(', ')']);
    let text = format!(
        r#"func.func @main(%x: tensor<6xf32>, %y: tensor<3xf32>) -> tensor<6xf32> {{
          %init = stablehlo.constant dense<1.0> : tensor<f32>
          %0 = "stablehlo.select_and_scatter"(%x, %y, %init) <{{window_dimensions = array<i64: 3>,
              window_strides = array<i64: 2>, padding = dense<[[0, 1]]> : tensor<1x2xi64>}}> ({{
            ^bb0(%a: tensor<f32>, %b: tensor<f32>):
              %p = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f32>) -> tensor<2xf32>
              %q = stablehlo.broadcast_in_dim %b, dims = [] : (tensor<f32>) -> tensor<2xf32>
              %r = stablehlo.compare GE, %p, %q : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
              %true = stablehlo.constant dense<true> : tensor<i1>
              %s = stablehlo.reduce(%r init: %true) applies stablehlo.and across dimensions = [0]
                : (tensor<2xi1>, tensor<i1>) -> tensor<i1>
              stablehlo.return %s : tensor<i1>
          }}, {sum}) : (tensor<6xf32>, tensor<3xf32>, tensor<f32>) -> tensor<6xf32>
          return %0 : tensor<6xf32>
        }}"#
    );
    let x = f32s(&[6], &[1.0, -2.0, 3.0, 0.5, -4.0, -4.5]);
    let got = results(&text, vec![x, f32s(&[3], &[10.0, 20.0, 30.0])]);
    assert_eq!(to_f32s(&got[0]), [1.0, 1.0, 91.0, 1.0, 91.0, 1.0]);
}

#[test]
fn complex_elements_are_selected_and_scattered() {
    let text = r#"func.func @main(%x: tensor<4xcomplex<f32>>, %y: tensor<2xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
      %init = stablehlo.constant dense<(0.0, 0.0)> : tensor<complex<f32>>
      %0 = "stablehlo.select_and_scatter"(%x, %y, %init) <{window_dimensions = array<i64: 2>,
          window_strides = array<i64: 2>}> ({
        ^bb0(%a: tensor<complex<f32>>, %b: tensor<complex<f32>>):
          %r = stablehlo.compare GE, %a, %b, FLOAT : (tensor<complex<f32>>, tensor<complex<f32>>) -> tensor<i1>
          stablehlo.return %r : tensor<i1>
      }, {
        ^bb0(%a: tensor<complex<f32>>, %b: tensor<complex<f32>>):
          %r = stablehlo.add %a, %b : tensor<complex<f32>>
          stablehlo.return %r : tensor<complex<f32>>
      }) : (tensor<4xcomplex<f32>>, tensor<2xcomplex<f32>>, tensor<complex<f32>>) -> tensor<4xcomplex<f32>>
      return %0 : tensor<4xcomplex<f32>>
    }"#;
    let complex = |values: &[f32]| {
        let parts: Vec<u64> = values
            .chunks_exact(2)
            .map(|v| u64::from(v[0].to_bits()) | u64::from(v[1].to_bits()) << 32)
            .collect();
        array(DType::C64, &[parts.len()], &parts, |v| v.to_le_bytes())
    };
    let x = complex(&[1.0, 1.0, 1.0, 2.0, 3.0, 0.0, -3.0, 9.0]);
    let got = results(text, vec![x, complex(&[5.0, 6.0, 7.0, 8.0])]);
    assert_eq!(to_f32s(&got[0]), [0.0, 0.0, 5.0, 6.0, 7.0, 8.0, 0.0, 0.0]);
}

#[test]
fn nothing_is_combined_where_there_are_no_elements() {
    let text = format!(
        r#"{DIGITS}
        func.func @main(%x: tensor<0x3xi32>, %y: tensor<2xi32>) -> (tensor<3xi32>, tensor<0xi32>, tensor<0x2xi32>,
            tensor<0x3xi32>, tensor<0x3xi32>, tensor<2xi32>, tensor<2x3xi32>, tensor<0xi32>) {{
          %init = stablehlo.constant dense<7> : tensor<i32>
          %0 = "stablehlo.reduce"(%x, %init) <{{dimensions = array<i64: 0>}}> {GCD}
            : (tensor<0x3xi32>, tensor<i32>) -> tensor<3xi32>
          %1 = "stablehlo.reduce"(%x, %init) <{{dimensions = array<i64: 1>}}> {GCD}
            : (tensor<0x3xi32>, tensor<i32>) -> tensor<0xi32>
          %2 = "stablehlo.reduce_window"(%x, %init) <{{window_dimensions = array<i64: 1, 2>}}> {GCD}
            : (tensor<0x3xi32>, tensor<i32>) -> tensor<0x2xi32>
          %3 = "stablehlo.map"(%x) <{{dimensions = array<i64: 0, 1>}}> ({{
            ^bb0(%a: tensor<i32>):
              %c = func.call @digits(%a) : (tensor<i32>) -> tensor<i32>
              stablehlo.return %c : tensor<i32>
          }}) : (tensor<0x3xi32>) -> tensor<0x3xi32>
          %4 = "stablehlo.sort"(%x) <{{dimension = 0 : i64}}> ({{
            ^bb0(%a: tensor<i32>, %b: tensor<i32>):
              %e = func.call @digits(%a) : (tensor<i32>) -> tensor<i32>
              %p = stablehlo.compare LT, %e, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
              stablehlo.return %p : tensor<i1>
          }}) : (tensor<0x3xi32>) -> tensor<0x3xi32>
          %at = stablehlo.constant dense<0> : tensor<0x1xi32>
          %none = stablehlo.constant dense<1> : tensor<0xi32>
          %5 = "stablehlo.scatter"(%y, %at, %none) <{{scatter_dimension_numbers = #stablehlo.scatter<
              inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> {GCD}
            : (tensor<2xi32>, tensor<0x1xi32>, tensor<0xi32>) -> tensor<2xi32>
          %6 = "stablehlo.reduce_window"(%x, %init) <{{window_dimensions = array<i64: 2, 1>,
              padding = dense<[[1, 2], [0, 0]]> : tensor<2x2xi64>}}> {GCD}
            : (tensor<0x3xi32>, tensor<i32>) -> tensor<2x3xi32>
          %some = stablehlo.constant dense<0> : tensor<2x1xi32>
          %7 = "stablehlo.scatter"(%none, %some, %y) <{{scatter_dimension_numbers = #stablehlo.scatter<
              inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> {GCD}
            : (tensor<0xi32>, tensor<2x1xi32>, tensor<2xi32>) -> tensor<0xi32>
          return %0, %1, %2, %3, %4, %5, %6, %7 : tensor<3xi32>, tensor<0xi32>, tensor<0x2xi32>, tensor<0x3xi32>,
            tensor<0x3xi32>, tensor<2xi32>, tensor<2x3xi32>, tensor<0xi32>
        }}"#
    );
    let got = results(&text, vec![i32s(&[0, 3], &[]), i32s(&[2], &[4, 6])]);
    let got: Vec<Vec<i32>> = got.iter().map(to_i32s).collect();
    let expected: [&[i32]; 8] = [&[7, 7, 7], &[], &[], &[], &[], &[4, 6], &[7; 6], &[]];
    assert_eq!(got, expected);
}

#[test]
fn regions_in_regions_and_in_loops_run() {
    // Rows of a matrix are reduced in a loop; each element is combined by a reduction by another loop.
    let text = format!(
        r#"func.func @main(%x: tensor<3x4xi32>) -> tensor<3xi32> {{
          %zero = stablehlo.constant dense<0> : tensor<i32>
          %three = stablehlo.constant dense<3> : tensor<i32>
          %one = stablehlo.constant dense<1> : tensor<i32>
          %none = stablehlo.constant dense<0> : tensor<3xi32>
          %0:2 = stablehlo.while(%i = %zero, %sums = %none) : tensor<i32>, tensor<3xi32>
          cond {{
            %p = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
            stablehlo.return %p : tensor<i1>
          }} do {{
            %row = stablehlo.dynamic_slice %x, %i, %zero, sizes = [1, 4]
              : (tensor<3x4xi32>, tensor<i32>, tensor<i32>) -> tensor<1x4xi32>
            %sum = "stablehlo.reduce"(%row, %zero) <{{dimensions = array<i64: 1>}}> ({{
              ^bb0(%a: tensor<i32>, %b: tensor<i32>):
                %a1 = stablehlo.reshape %a : (tensor<i32>) -> tensor<1xi32>
                %b1 = stablehlo.reshape %b : (tensor<i32>) -> tensor<1xi32>
                %both = stablehlo.concatenate %a1, %b1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
                %n = stablehlo.constant dense<0> : tensor<i32>
                %r = "stablehlo.reduce"(%both, %n) <{{dimensions = array<i64: 0>}}> {GCD}
                  : (tensor<2xi32>, tensor<i32>) -> tensor<i32>
                stablehlo.return %r : tensor<i32>
            }}) : (tensor<1x4xi32>, tensor<i32>) -> tensor<1xi32>
            %next = stablehlo.dynamic_update_slice %sums, %sum, %i
              : (tensor<3xi32>, tensor<1xi32>, tensor<i32>) -> tensor<3xi32>
            %j = stablehlo.add %i, %one : tensor<i32>
            stablehlo.return %j, %next : tensor<i32>, tensor<3xi32>
          }}
          return %0#1 : tensor<3xi32>
        }}"#
    );
    let x = numbers(12);
    let got = results(&text, vec![i32s(&[3, 4], &x)]);
    let expected: Vec<i32> = x.chunks(4).map(|row| row.iter().copied().fold(0, gcd)).collect();
    assert_eq!(to_i32s(&got[0]), expected);
}

#[test]
fn regions_that_kernels_apply_do_not_become_loops() {
    let text = r#"func.func @main(%x: tensor<8x4xf32>) -> (tensor<4xf32>, tensor<8x4xf32>) {
      %init = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = "stablehlo.reduce"(%x, %init) <{dimensions = array<i64: 0>}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %c = stablehlo.abs %b : tensor<f32>
          %d = stablehlo.add %a, %c : tensor<f32>
          stablehlo.return %d : tensor<f32>
      }) : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
      %1 = "stablehlo.sort"(%x) <{dimension = 0 : i64}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %c = stablehlo.abs %a : tensor<f32>
          %d = stablehlo.abs %b : tensor<f32>
          %p = stablehlo.compare LT, %c, %d : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %p : tensor<i1>
      }) : (tensor<8x4xf32>) -> tensor<8x4xf32>
      return %0, %1 : tensor<4xf32>, tensor<8x4xf32>
    }"#;
    let plan = plan(text);
    let has = |f: fn(&Kernel) -> bool| {
        plan.program.steps.iter().any(|step| matches!(step, Step::Run(call) if f(&call.kernel)))
    };
    assert!(has(|k| matches!(k, Kernel::ReduceBy { .. })) && has(|k| matches!(k, Kernel::SortBy { .. })));
    assert!(!has(|k| matches!(k, Kernel::Loop(_))));
    assert!(!plan.program.steps.iter().any(|step| matches!(step, Step::Jump(_))));
}

#[test]
fn what_a_region_cannot_do_is_refused_with_its_own_place() {
    let text = r#"func.func @main(%x: tensor<8xf32>) -> tensor<f32> {
      %init = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = "stablehlo.reduce"(%x, %init) <{dimensions = array<i64: 0>}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %c = stablehlo.custom_call @unheard_of(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("here.py":3:7)
          stablehlo.return %c : tensor<f32>
      }) : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32>
    }"#;
    let module = pjrt_stablehlo::parse(text).unwrap();
    let error = compile(&module, &CompileOptions::default()).err().expect("a refusal");
    assert_eq!(error.op, "stablehlo.custom_call");
    assert!(error.message.contains("unheard_of") && error.location == "\"here.py\":3:7", "{error}");
}

#[test]
fn the_estimated_duration_of_fused_operations_does_not_count_the_arrays_between_them() {
    let nanoseconds = |count: usize| {
        let mut text =
            String::from("func.func public @main(%v0: tensor<65536xf32>) -> tensor<65536xf32> {\n");
        for k in 0..count {
            text += &format!("%v{} = stablehlo.multiply %v{k}, %v0 : tensor<65536xf32>\n", k + 1);
        }
        plan(&format!("{text} return %v{count} : tensor<65536xf32>\n}}")).stats().nanoseconds
    };
    let (one, many) = (nanoseconds(1), nanoseconds(20));
    assert!((1_000.0..100_000.0).contains(&one), "{one} ns");
    assert!(many < 10.0 * one, "{one} ns for an operation, {many} ns for 20");
}
