//! Tests of every rule: an operation that is split along a factor must fit its operands and results.

use super::*;
use crate::layout::Layout;
use crate::options::Options;
use crate::partition::partition;
use crate::propagate::Shardings;
use crate::sharding::Sharding;
use pjrt_stablehlo::ir::{Definition, OpId, ValueId};
use pjrt_stablehlo::{Module, verify};
use std::collections::HashMap;

/// Programs whose last operation has a rule, with the number of factors it can be split along. All sizes are even.
const PROGRAMS: &[(&str, usize)] = &[
    ("(%a: tensor<4x6xf32>, %b: tensor<4x6xf32>) -> tensor<4x6xf32> { %r = stablehlo.add %a, %b : tensor<4x6xf32>
       return %r : tensor<4x6xf32> }", 2),
    ("(%p: tensor<i1>, %a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
       %r = stablehlo.select %p, %a, %b : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
       return %r : tensor<4xf32> }", 1),
    ("(%a: tensor<4xf32>) -> tensor<2x4xf32> {
       %r = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<4xf32>) -> tensor<2x4xf32>
       return %r : tensor<2x4xf32> }", 2),
    ("(%a: tensor<2x6x4xf32>) -> tensor<12x4xf32> {
       %r = stablehlo.reshape %a : (tensor<2x6x4xf32>) -> tensor<12x4xf32>
       return %r : tensor<12x4xf32> }", 2),
    ("(%a: tensor<2x6x4xf32>) -> tensor<4x2x6xf32> {
       %r = stablehlo.transpose %a, dims = [2, 0, 1] : (tensor<2x6x4xf32>) -> tensor<4x2x6xf32>
       return %r : tensor<4x2x6xf32> }", 3),
    ("(%a: tensor<4x6xf32>) -> tensor<4x2xf32> {
       %r = stablehlo.slice %a [0:4, 2:4] : (tensor<4x6xf32>) -> tensor<4x2xf32>
       return %r : tensor<4x2xf32> }", 1),
    ("(%a: tensor<4x6xf32>) -> tensor<4x6xf32> { %r = stablehlo.reverse %a, dims = [0] : tensor<4x6xf32>
       return %r : tensor<4x6xf32> }", 1),
    ("(%a: tensor<4x6xf32>, %v: tensor<f32>) -> tensor<4x8xf32> {
       %r = stablehlo.pad %a, %v, low = [0, 1], high = [0, 1], interior = [0, 0]
         : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x8xf32>
       return %r : tensor<4x8xf32> }", 1),
    ("(%a: tensor<4x6xf32>, %b: tensor<4x2xf32>) -> tensor<4x8xf32> {
       %r = stablehlo.concatenate %a, %b, dim = 1 : (tensor<4x6xf32>, tensor<4x2xf32>) -> tensor<4x8xf32>
       return %r : tensor<4x8xf32> }", 1),
    ("(%a: tensor<4x6xf32>, %i: tensor<i64>) -> tensor<4x2xf32> {
       %r = stablehlo.dynamic_slice %a, %i, %i, sizes = [4, 2]
         : (tensor<4x6xf32>, tensor<i64>, tensor<i64>) -> tensor<4x2xf32>
       return %r : tensor<4x2xf32> }", 1),
    ("(%a: tensor<4x6xf32>, %b: tensor<4x2xf32>, %i: tensor<i64>) -> tensor<4x6xf32> {
       %r = stablehlo.dynamic_update_slice %a, %b, %i, %i
         : (tensor<4x6xf32>, tensor<4x2xf32>, tensor<i64>, tensor<i64>) -> tensor<4x6xf32>
       return %r : tensor<4x6xf32> }", 1),
    ("() -> tensor<4x6xi32> { %r = stablehlo.iota dim = 0 : tensor<4x6xi32>
       return %r : tensor<4x6xi32> }", 2),
    ("(%a: tensor<2x4x6xf32>, %b: tensor<2x6x8xf32>) -> tensor<2x4x8xf32> {
       %r = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1]
         : (tensor<2x4x6xf32>, tensor<2x6x8xf32>) -> tensor<2x4x8xf32>
       return %r : tensor<2x4x8xf32> }", 4),
    ("(%a: tensor<2x4x8xf32>, %b: tensor<8x3x4xf32>) -> tensor<2x4x4xf32> {
       %r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[i, 0, o]->[b, 0, f],
         window = {stride = [1], pad = [[1, 1]], lhs_dilate = [1], rhs_dilate = [1], reverse = [0]}
         {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x4x8xf32>, tensor<8x3x4xf32>) -> tensor<2x4x4xf32>
       return %r : tensor<2x4x4xf32> }", 3),
    ("(%a: tensor<4x6xf32>) -> tensor<4xf32> {
       %z = stablehlo.constant dense<0.0> : tensor<f32>
       %r = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1]
         : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
       return %r : tensor<4xf32> }", 2),
    ("(%a: tensor<4x6xf32>, %z: tensor<f32>) -> tensor<4xf32> {
       %r = stablehlo.reduce(%a init: %z) applies stablehlo.maximum across dimensions = [1]
         : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
       return %r : tensor<4xf32> }", 2),
    ("(%a: tensor<4x6xf32>, %z: tensor<f32>) -> tensor<4xf32> {
       %r = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1]
         : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
       return %r : tensor<4xf32> }", 1),
    ("(%a: tensor<4x6xf32>, %z: tensor<f32>) -> tensor<4x4xf32> {
       %r = \"stablehlo.reduce_window\"(%a, %z) <{window_dimensions = array<i64: 1, 3>}> ({
         ^bb0(%x: tensor<f32>, %y: tensor<f32>):
           %s = stablehlo.add %x, %y : tensor<f32>
           stablehlo.return %s : tensor<f32>
         }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x4xf32>
       return %r : tensor<4x4xf32> }", 1),
    ("(%a: tensor<4x6xf32>) -> tensor<4x6xf32> {
       %r = \"stablehlo.sort\"(%a) <{dimension = 1 : i64}> ({
         ^bb0(%x: tensor<f32>, %y: tensor<f32>):
           %s = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
           stablehlo.return %s : tensor<i1>
         }) : (tensor<4x6xf32>) -> tensor<4x6xf32>
       return %r : tensor<4x6xf32> }", 1),
    ("(%a: tensor<6x4xf32>, %i: tensor<8x1xi32>) -> tensor<8x4xf32> {
       %r = \"stablehlo.gather\"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0],
           start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}>
         : (tensor<6x4xf32>, tensor<8x1xi32>) -> tensor<8x4xf32>
       return %r : tensor<8x4xf32> }", 2),
    ("(%a: tensor<6x4xf32>, %i: tensor<8x1xi32>, %u: tensor<8x4xf32>) -> tensor<6x4xf32> {
       %r = \"stablehlo.scatter\"(%a, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
           inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
         ^bb0(%x: tensor<f32>, %y: tensor<f32>):
           %s = stablehlo.add %x, %y : tensor<f32>
           stablehlo.return %s : tensor<f32>
         }) : (tensor<6x4xf32>, tensor<8x1xi32>, tensor<8x4xf32>) -> tensor<6x4xf32>
       return %r : tensor<6x4xf32> }", 2),
    ("(%a: tensor<2x4x4xf32>, %b: tensor<2x4x6xf32>) -> tensor<2x4x6xf32> {
       %r = \"stablehlo.triangular_solve\"(%a, %b) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>,
           unit_diagonal = false}> : (tensor<2x4x4xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
       return %r : tensor<2x4x6xf32> }", 2),
    ("(%a: tensor<2x4x4xf32>) -> tensor<2x4x4xf32> { %r = stablehlo.cholesky %a, lower = true : tensor<2x4x4xf32>
       return %r : tensor<2x4x4xf32> }", 1),
    ("(%a: tensor<2x8xf32>) -> tensor<2x5xcomplex<f32>> {
       %r = stablehlo.fft %a, type = RFFT, length = [8] : (tensor<2x8xf32>) -> tensor<2x5xcomplex<f32>>
       return %r : tensor<2x5xcomplex<f32>> }", 1),
    ("(%a: tensor<4xf32>, %b: tensor<6xi32>) -> (tensor<4xf32>, tensor<6xi32>) {
       %r:2 = stablehlo.optimization_barrier %a, %b : tensor<4xf32>, tensor<6xi32>
       return %r#0, %r#1 : tensor<4xf32>, tensor<6xi32> }", 2),
    ("(%a: tensor<4xf32>) -> tensor<4x4xi8> {
       %r = stablehlo.bitcast_convert %a : (tensor<4xf32>) -> tensor<4x4xi8>
       return %r : tensor<4x4xi8> }", 1),
];

fn module(text: &str) -> Module {
    pjrt_stablehlo::parse(format!("func.func public @main{text}")).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Returns the operation that computes the results, and its rule.
fn ruled(module: &Module) -> (OpId, ShardingRule) {
    let main = module.main().unwrap();
    let ops = &main.body.block(main.body.entry().unwrap()).ops;
    let id = ops[ops.len() - 2];
    (id, rule_of(&main.body, main.body.op(id), |_, _, _| None).unwrap())
}

/// Returns the sharding of a tensor that splits the dimensions of a factor in two.
fn halved(tensor: &TensorMapping, factor: usize) -> Option<Sharding> {
    let parts: Vec<usize> =
        tensor.iter().map(|factors| if factors.first() == Some(&factor) { 2 } else { 1 }).collect();
    let position = (0..2).map(|p| parts.iter().map(|parts| p % parts).collect()).collect();
    parts.contains(&2).then_some(Sharding { parts, position, reduction: None })
}

#[test]
fn an_operation_that_is_cut_along_a_factor_fits_its_operands_and_results() {
    for (text, expected) in PROGRAMS {
        let module = module(text);
        let main = module.main().unwrap();
        let (id, rule) = ruled(&module);
        let op = main.body.op(id);
        let cut: Vec<usize> = (0..rule.factors.len())
            .filter(|factor| rule.can_be_cut(*factor) && rule.factors[*factor].size % 2 == 0)
            .collect();
        assert_eq!(cut.len(), *expected, "{text}: {rule:?}");
        for factor in cut {
            let mut parameters = vec![None; main.argument_types().len()];
            for (value, tensor) in op.operands.iter().zip(&rule.operands) {
                if let Definition::Argument { index, .. } = main.body.value(*value).definition {
                    parameters[index as usize] = halved(tensor, factor);
                }
            }
            let results: Vec<_> = rule.results.iter().map(|tensor| halved(tensor, factor)).collect();
            let layout = |(value, (sharding, tensor)): (ValueId, (&Option<Sharding>, &TensorMapping))| {
                (value, Layout::of(sharding.as_ref(), tensor.len()))
            };
            let values: HashMap<_, _> =
                op.results.iter().zip(results.iter().zip(&rule.results)).map(layout).collect();
            let shardings = Shardings { parameters, results, values, ..Shardings::default() };
            let options = Options { num_partitions: 2, ..Options::default() };
            let part = partition(&module, &shardings, &options).unwrap_or_else(|e| panic!("{e}\n{text}"));
            verify(&part).unwrap_or_else(|e| panic!("factor {factor} of {rule:?}: {e}\n{part}"));
            let is_collective = |name: &&&str| name.contains("all_") || name.contains("collective_");
            let counts = part.op_counts();
            let collectives: Vec<_> = counts.keys().filter(is_collective).collect();
            match rule.factors[factor].kind {
                FactorKind::Reduction => assert_eq!(collectives, [&"stablehlo.all_reduce"], "{part}"),
                _ => assert!(collectives.is_empty(), "factor {factor} of {rule:?}:\n{part}"),
            }
        }
    }
}

#[test]
fn a_dimension_that_can_be_cut_consists_of_its_factors() {
    for (text, _) in PROGRAMS {
        let module = module(text);
        let main = module.main().unwrap();
        let (id, rule) = ruled(&module);
        let op = main.body.op(id);
        let values = op.operands.iter().copied().chain(op.results.iter());
        for (value, tensor) in values.zip(rule.operands.iter().chain(&rule.results)) {
            let dims = shapes(&main.body, [value].into_iter()).unwrap().remove(0);
            for (size, factors) in dims.iter().zip(tensor) {
                let product = factors.iter().map(|factor| rule.factors[*factor].size).product::<usize>();
                let is_cut = factors.iter().any(|factor| rule.can_be_cut(*factor));
                assert!(!factors.is_empty() && (!is_cut || product == *size), "{text}: {rule:?}");
            }
        }
    }
}

#[test]
fn operands_that_are_reduced_are_padded_with_what_is_neutral() {
    let padding = |part: &str| {
        let (text, _) = PROGRAMS.iter().find(|(text, _)| text.contains(part)).unwrap();
        ruled(&module(text)).1.padding
    };
    assert_eq!(padding("stablehlo.dot_general"), [Padding::Zero; 2]);
    assert_eq!(padding("applies stablehlo.maximum"), [Padding::Lowest, Padding::Any]);
    assert_eq!(padding("stablehlo.scatter\""), [Padding::Any, Padding::Any, Padding::Zero]);
    assert_eq!(padding("stablehlo.add %a, %b"), [Padding::Any; 2]);
}
