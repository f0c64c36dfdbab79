//! Tests of propagation.

use super::*;
use pjrt_stablehlo::ir::OpCode;
use pjrt_stablehlo::passes::{CoreOps, decompose};

/// Returns the shardings of a program's results on a 2x2 mesh.
fn results(program: &str) -> Vec<Option<Sharding>> {
    let text = format!("module {{ sdy.mesh @mesh = <[\"x\"=2, \"y\"=2]> func.func public @main{program} }}");
    let module = pjrt_stablehlo::parse(text.as_bytes()).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let core = CoreOps::from_ops(OpCode::ALL.iter().copied()).without(OpCode::FuncCall);
    let module = decompose(&module, &core).unwrap();
    let options = Options { num_partitions: 4, propagate_to_results: vec![true], ..Options::default() };
    propagate(&module, &options).unwrap().results
}

/// Returns the sharding along these axes of the mesh: 0 is `x`, 1 is `y`.
fn along(axes: &[Option<usize>]) -> Option<Sharding> {
    Some(Sharding {
        parts: axes.iter().map(|axis| if axis.is_some() { 2 } else { 1 }).collect(),
        position: (0..4)
            .map(|p| axes.iter().map(|axis| axis.map_or(0, |axis| [p / 2, p % 2][axis])).collect())
            .collect(),
        reduction: None,
    })
}

const XY: &str = "{sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, {\"y\"}]>}";

#[test]
fn an_elementwise_result_is_split_as_its_operand() {
    let program = format!(
        "(%a: tensor<8x2xf32> {XY}) -> tensor<8x2xf32> {{
           %c = stablehlo.constant dense<2.0> : tensor<8x2xf32>
           %r = stablehlo.multiply %a, %c : tensor<8x2xf32>
           return %r : tensor<8x2xf32> }}"
    );
    assert_eq!(results(&program), [along(&[Some(0), Some(1)])]);
}

#[test]
fn a_manual_computation_passes_splits_along_other_axes_on() {
    let program = format!(
        "(%a: tensor<8x2xf32> {XY}) -> tensor<2x8xf32> {{
           %r = sdy.manual_computation(%a) in_shardings=[<@mesh, [{{?}}, {{\"y\"}}]>]
               out_shardings=[<@mesh, [{{\"y\"}}, {{?}}]>] manual_axes={{\"y\"}} (%b: tensor<8x1xf32>) {{
             %t = stablehlo.transpose %b, dims = [1, 0] : (tensor<8x1xf32>) -> tensor<1x8xf32>
             %s = stablehlo.add %t, %t : tensor<1x8xf32>
             sdy.return %s : tensor<1x8xf32>
           }} : (tensor<8x2xf32>) -> tensor<2x8xf32>
           return %r : tensor<2x8xf32> }}"
    );
    assert_eq!(results(&program), [along(&[Some(1), Some(0)])]);
}

#[test]
fn no_two_dimensions_of_a_product_are_split_along_one_axis() {
    let program = format!(
        "(%a: tensor<8x2xf32> {XY}) -> tensor<8x8xf32> {{
           %r = stablehlo.dot_general %a, %a, contracting_dims = [1] x [1]
             : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x8xf32>
           return %r : tensor<8x8xf32> }}"
    );
    assert_eq!(results(&program), [along(&[Some(0), None])]);
}

#[test]
fn dimensions_move_with_transpositions_reshapes_and_reductions() {
    let program = format!(
        "(%a: tensor<8x6xf32> {XY}) -> (tensor<6x8xf32>, tensor<48xf32>, tensor<8xf32>) {{
           %t = stablehlo.transpose %a, dims = [1, 0] : (tensor<8x6xf32>) -> tensor<6x8xf32>
           %f = stablehlo.reshape %a : (tensor<8x6xf32>) -> tensor<48xf32>
           %z = stablehlo.constant dense<0.0> : tensor<f32>
           %s = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1]
             : (tensor<8x6xf32>, tensor<f32>) -> tensor<8xf32>
           return %t, %f, %s : tensor<6x8xf32>, tensor<48xf32>, tensor<8xf32> }}"
    );
    assert_eq!(results(&program), [along(&[Some(1), Some(0)]), along(&[Some(0)]), along(&[Some(0)])]);
}

#[test]
fn a_constraint_goes_before_what_operands_suggest() {
    let program = format!(
        "(%a: tensor<8x2xf32> {XY}) -> tensor<8x2xf32> {{
           %n = stablehlo.negate %a : tensor<8x2xf32>
           %r = sdy.sharding_constraint %n <@mesh, [{{}}, {{\"x\"}}]> : tensor<8x2xf32>
           return %r : tensor<8x2xf32> }}"
    );
    assert_eq!(results(&program), [along(&[None, Some(0)])]);
}

#[test]
fn a_constraint_that_gives_a_result_decides_how_it_is_split() {
    let function = |result: &str| {
        format!(
            "(%a: tensor<8x2xf32> {XY}) -> tensor<8x2xf32> {{
               %r = func.call @f(%a) : (tensor<8x2xf32>) -> tensor<8x2xf32>
               return %r : tensor<8x2xf32> }}
             func.func private @f(%a: tensor<8x2xf32>) -> tensor<8x2xf32> {{
               %b = sdy.sharding_constraint %a <@mesh, [{{}}, {{}}]> : tensor<8x2xf32>
               %r = sdy.sharding_constraint %b {result} : tensor<8x2xf32>
               return %r : tensor<8x2xf32> }}"
        )
    };
    assert_eq!(results(&function("<@mesh, [{}, {\"x\"}]>")), [along(&[None, Some(0)])]);
    assert_eq!(results(&function("<@mesh, [{}, {}]>")), [None]);
    // A dimension that the first constraint makes whole stays whole where the second constraint leaves it open.
    assert_eq!(results(&function("<@mesh, [{\"x\"}, {?}]>")), [along(&[Some(0), None])]);
    let open = format!(
        "(%a: tensor<8x2xf32> {XY}) -> tensor<8x2xf32> {{
           %r = sdy.sharding_constraint %a <@mesh, [{{\"x\"}}, {{?}}]> : tensor<8x2xf32>
           return %r : tensor<8x2xf32> }}"
    );
    assert_eq!(results(&open), [along(&[Some(0), Some(1)])]);
}

#[test]
fn arrays_of_a_group_are_split_alike() {
    let program = format!(
        "(%a: tensor<8x2xf32> {XY}) -> tensor<8x2xf32> {{
           %i = stablehlo.iota dim = 0 : tensor<8x2xf32>
           sdy.sharding_group %a group_id=0 : tensor<8x2xf32>
           sdy.sharding_group %i group_id=0 : tensor<8x2xf32>
           return %i : tensor<8x2xf32> }}"
    );
    assert_eq!(results(&program), [along(&[Some(0), Some(1)])]);
}

#[test]
fn what_the_program_says_of_a_result_stays_and_open_dimensions_may_be_split() {
    let closed = "{sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}";
    let open = "{sdy.sharding = #sdy.sharding<@mesh, [{?}, {}]>}";
    let program = format!(
        "(%a: tensor<8x2xf32> {XY}) -> (tensor<8x2xf32> {closed}, tensor<8x2xf32> {open}) {{
           %n = stablehlo.negate %a : tensor<8x2xf32>
           %e = stablehlo.exponential %a : tensor<8x2xf32>
           return %n, %e : tensor<8x2xf32>, tensor<8x2xf32> }}"
    );
    assert_eq!(results(&program), [None, along(&[Some(0), None])]);
}

#[test]
fn splits_move_along_factors_that_need_communication() {
    let program = format!(
        "(%a: tensor<8x2xf32> {XY}) -> (tensor<4x2xf32>, tensor<10x2xf32>, tensor<16x2xf32>) {{
           %z = stablehlo.constant dense<0.0> : tensor<f32>
           %s = stablehlo.slice %a [2:6, 0:2] : (tensor<8x2xf32>) -> tensor<4x2xf32>
           %p = stablehlo.pad %a, %z, low = [1, 0], high = [1, 0], interior = [0, 0]
             : (tensor<8x2xf32>, tensor<f32>) -> tensor<10x2xf32>
           %c = stablehlo.concatenate %a, %a, dim = 0 : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<16x2xf32>
           return %s, %p, %c : tensor<4x2xf32>, tensor<10x2xf32>, tensor<16x2xf32> }}"
    );
    assert_eq!(results(&program), vec![along(&[Some(0), Some(1)]); 3]);
}

#[test]
fn a_split_passes_through_an_array_without_equal_parts() {
    let program = format!(
        "(%a: tensor<8x2xf32> {XY}) -> tensor<8x2xf32> {{
           %z = stablehlo.constant dense<0.0> : tensor<f32>
           %s = stablehlo.slice %a [1:8, 0:2] : (tensor<8x2xf32>) -> tensor<7x2xf32>
           %p = stablehlo.pad %s, %z, low = [0, 0], high = [1, 0], interior = [0, 0]
             : (tensor<7x2xf32>, tensor<f32>) -> tensor<8x2xf32>
           return %p : tensor<8x2xf32> }}"
    );
    assert_eq!(results(&program), [along(&[Some(0), Some(1)])]);
}

#[test]
fn a_broadcast_splits_its_result_last() {
    // The result of the addition is split as the product, not as the operand of the broadcast.
    let program = format!(
        "(%a: tensor<8x2xf32> {XY}, %b: tensor<8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{\"y\"}}]>}})
           -> tensor<8x2xf32> {{
           %w = stablehlo.broadcast_in_dim %b, dims = [0] : (tensor<8xf32>) -> tensor<8x2xf32>
           %r = stablehlo.add %w, %a : tensor<8x2xf32>
           return %r : tensor<8x2xf32> }}"
    );
    assert_eq!(results(&program), [along(&[Some(0), Some(1)])]);
}

#[test]
fn a_result_is_split_along_whole_axes() {
    let parts = |dims: &str| {
        let text = format!(
            "module {{ sdy.mesh @mesh = <[\"x\"=4]>
               func.func public @main(%a: tensor<8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{\"x\"}}]>}})
                   -> (tensor<{dims}xf32>, tensor<8xf32>) {{
                 %r = stablehlo.reshape %a : (tensor<8xf32>) -> tensor<{dims}xf32>
                 %b = stablehlo.reshape %r : (tensor<{dims}xf32>) -> tensor<8xf32>
                 return %r, %b : tensor<{dims}xf32>, tensor<8xf32> }} }}"
        );
        let module = pjrt_stablehlo::parse(text.as_bytes()).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let options = Options { num_partitions: 4, propagate_to_results: vec![true], ..Options::default() };
        let results = propagate(&module, &options).unwrap().results;
        results.into_iter().map(|sharding| sharding.map(|sharding| sharding.parts)).collect::<Vec<_>>()
    };
    assert_eq!(parts("4x2"), [Some(vec![4, 1]), Some(vec![4])]);
    // Each dimension of the first result is split along a part of the axis, which hosts cannot describe.
    assert_eq!(parts("2x4"), [None, Some(vec![4])]);
}

#[test]
fn gspmd_splits_results_into_unequal_parts_only_if_their_number_is_not_stated() {
    let text = "func.func public @main(%a: tensor<8x2xf32> {mhlo.sharding = \"{devices=[2,2]<=[4]}\"})
            -> (tensor<7x2xf32>, tensor<4x2xf32>) {
          %s = stablehlo.slice %a [1:8, 0:2] : (tensor<8x2xf32>) -> tensor<7x2xf32>
          %t = stablehlo.slice %a [4:8, 0:2] : (tensor<8x2xf32>) -> tensor<4x2xf32>
          return %s, %t : tensor<7x2xf32>, tensor<4x2xf32> }";
    let module = pjrt_stablehlo::parse(text).unwrap();
    let both = along(&[Some(0), Some(1)]);
    for (propagate_to_results, expected) in [
        (vec![true; 2], [None, both.clone()]),
        (vec![true], [both.clone(), both.clone()]),
        (vec![false], [None, None]),
    ] {
        let options = Options { num_partitions: 4, propagate_to_results, ..Options::default() };
        assert_eq!(propagate(&module, &options).unwrap().results, expected, "{options:?}");
    }
}

#[test]
fn arrays_that_do_not_divide_stay_whole() {
    let program = format!(
        "(%a: tensor<8x2xf32> {XY}) -> tensor<7x2xf32> {{
           %r = stablehlo.slice %a [0:7, 0:2] : (tensor<8x2xf32>) -> tensor<7x2xf32>
           return %r : tensor<7x2xf32> }}"
    );
    assert_eq!(results(&program), [along(&[None, Some(1)])]);
}

#[test]
fn a_constraint_in_a_loop_decides_how_the_loops_result_is_split() {
    let program = "(%n: tensor<i32>, %a: tensor<8x2xf32>) -> tensor<8x2xf32> {
        %r:2 = stablehlo.while(%i = %n, %x = %a) : tensor<i32>, tensor<8x2xf32>
        cond {
          %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %p : tensor<i1>
        } do {
          %c = sdy.sharding_constraint %x <@mesh, [{\"x\"}, {\"y\"}]> : tensor<8x2xf32>
          stablehlo.return %i, %c : tensor<i32>, tensor<8x2xf32>
        }
        return %r#1 : tensor<8x2xf32> }";
    assert_eq!(results(program), [along(&[Some(0), Some(1)])]);
}

#[test]
fn a_factor_that_needs_replication_is_one_that_shardings_are_spread_along() {
    let program = format!(
        "(%a: tensor<8x2xf32> {XY}, %b: tensor<4x2xf32>, %i: tensor<i32>) -> tensor<8x2xf32> {{
           %r = stablehlo.dynamic_update_slice %a, %b, %i, %i
             : (tensor<8x2xf32>, tensor<4x2xf32>, tensor<i32>, tensor<i32>) -> tensor<8x2xf32>
           return %r : tensor<8x2xf32> }}"
    );
    assert_eq!(results(&program), [along(&[Some(0), Some(1)])]);
}

#[test]
fn calls_are_refused_with_their_place() {
    let text = "module { sdy.mesh @mesh = <[\"x\"=2]>
        func.func public @main(%a: tensor<8xf32>) -> tensor<8xf32> {
          %r = func.call @f(%a) : (tensor<8xf32>) -> tensor<8xf32>
          return %r : tensor<8xf32> }
        func.func private @f(%a: tensor<8xf32>) -> tensor<8xf32> { return %a : tensor<8xf32> } }";
    let options = Options { num_partitions: 2, ..Options::default() };
    let error = propagate(&pjrt_stablehlo::parse(text).unwrap(), &options).unwrap_err();
    assert_eq!((error.kind, &*error.op), (crate::ErrorKind::Unsupported, "func.call"), "{error}");
    assert!(error.message.contains('f') && error.message.contains("inlined"), "{error}");
}
