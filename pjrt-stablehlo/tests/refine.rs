//! Shapes that follow from those of the arguments.

use pjrt_stablehlo::ir::{ElementType, Literal, LiteralData, TensorType, Type};
use pjrt_stablehlo::passes::{Argument, CoreOps, decompose, refine_shapes};
use pjrt_stablehlo::{Error, ErrorKind, Module, parse};

fn read(text: &str) -> Module {
    parse(text.as_bytes().to_vec()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Tensors of `f32`.
fn floats(shapes: &[&[i64]]) -> Vec<Argument> {
    shapes.iter().map(|&dims| TensorType::new(ElementType::F32, dims).into()).collect()
}

fn refined(text: &str, shapes: &[&[i64]]) -> Result<Module, Error> {
    refine_shapes(&read(text), &floats(shapes))
}

fn ops(module: &Module) -> Vec<&str> {
    module.op_counts().into_keys().filter(|op| !op.ends_with("return")).collect()
}

fn results(module: &Module) -> Vec<String> {
    module.main().unwrap().result_types().iter().map(Type::to_string).collect()
}

fn assert_static(module: &Module) {
    for (_, value) in module.functions().iter().flat_map(|function| function.body.values()) {
        assert!(value.ty.as_tensor().is_none_or(|tensor| !tensor.is_dynamic()), "{module}");
    }
}

/// The program of `jax.export` for `concatenate([x.reshape(-1), sin(y)]) + 2 * x.shape[0]` with `x` of shape `a, b`.
const EXPORTED: &str = r#"
func.func public @main(%arg0: tensor<?x?xf32>, %arg1: tensor<?xf32>) -> (tensor<?xf32> {jax.result_info = "result"}) {
  %c_1 = stablehlo.constant dense<1> : tensor<i32>
  %0 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x?xf32>) -> tensor<i32>
  %1 = stablehlo.get_dimension_size %arg0, dim = 1 : (tensor<?x?xf32>) -> tensor<i32>
  %2 = stablehlo.get_dimension_size %arg1, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %3 = stablehlo.compare GE, %0, %c_1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.custom_call @shape_assertion(%3, %0) {api_version = 2 : i32, error_message = "Expected value >= 1 for 'a', found {0}", has_side_effect = true} : (tensor<i1>, tensor<i32>) -> ()
  %5 = stablehlo.compare EQ, %2, %1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.custom_call @shape_assertion(%5, %2, %1) {api_version = 2 : i32, error_message = "Size {0} is not 'b' (= {1})", has_side_effect = true} : (tensor<i1>, tensor<i32>, tensor<i32>) -> ()
  %11 = call @_wrapped_jax_export_main(%0, %1, %arg0, %arg1) : (tensor<i32>, tensor<i32>, tensor<?x?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %11 : tensor<?xf32>
}
func.func private @_wrapped_jax_export_main(%arg0: tensor<i32>, %arg1: tensor<i32>, %arg2: tensor<?x?xf32>, %arg3: tensor<?xf32>) -> tensor<?xf32> {
  %c = stablehlo.constant dense<2> : tensor<i32>
  %0 = stablehlo.multiply %arg1, %arg0 : tensor<i32>
  %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
  %2 = stablehlo.dynamic_reshape %arg2, %1 : (tensor<?x?xf32>, tensor<1xi32>) -> tensor<?xf32>
  %3 = stablehlo.sine %arg3 : tensor<?xf32>
  %4 = stablehlo.concatenate %2, %3, dim = 0 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %6 = call @twice(%arg0, %c) : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %7 = stablehlo.convert %6 : (tensor<i32>) -> tensor<f32>
  %8 = stablehlo.multiply %arg1, %arg0 : tensor<i32>
  %9 = stablehlo.add %8, %arg1 : tensor<i32>
  %10 = stablehlo.reshape %9 : (tensor<i32>) -> tensor<1xi32>
  %11 = stablehlo.dynamic_broadcast_in_dim %7, %10, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
  %12 = stablehlo.add %4, %11 : tensor<?xf32>
  return %12 : tensor<?xf32>
}
func.func private @twice(%n: tensor<i32>, %two: tensor<i32>) -> tensor<i32> {
  %0 = stablehlo.multiply %n, %two : tensor<i32>
  return %0 : tensor<i32>
}
"#;

#[test]
fn an_exported_program_becomes_static() {
    let module = refined(EXPORTED, &[&[3, 4], &[4]]).unwrap();
    assert_static(&module);
    assert_eq!(results(&module), ["tensor<16xf32>"]);
    let expected = [
        "stablehlo.add",
        "stablehlo.broadcast_in_dim",
        "stablehlo.concatenate",
        "stablehlo.constant",
        "stablehlo.convert",
        "stablehlo.reshape",
        "stablehlo.sine",
    ];
    assert_eq!(ops(&module), expected);
    assert_eq!(module.functions().len(), 1, "functions that were inlined are gone");
    assert!(module.main().unwrap().result_attribute(0, "jax.result_info").is_some());
    decompose(&module, &CoreOps::default()).unwrap();
}

#[test]
fn shape_assertions_are_checked() {
    let error = refined(EXPORTED, &[&[3, 4], &[5]]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
    assert_eq!(error.to_string(), "stablehlo.custom_call: Size 5 is not 'b' (= 4)");
}

#[test]
fn arguments_have_to_be_those_of_the_program() {
    let error = refined(EXPORTED, &[&[3, 4]]).unwrap_err().to_string();
    assert_eq!(error, "expected 2 arguments of 'main', found 1");
    let error = refined(EXPORTED, &[&[3], &[4]]).unwrap_err().to_string();
    assert_eq!(error, "argument 0 of 'main': expected tensor<?x?xf32>, found tensor<3xf32>");
    let error = refined("func.func @other() { return }", &[]).unwrap_err().to_string();
    assert_eq!(error, "the module has no function 'main'");
}

#[test]
fn arguments_that_contradict_each_other_are_an_error() {
    let text = "func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
        %0 = stablehlo.add %x, %y : tensor<?xf32>
        return %0 : tensor<?xf32>
    }";
    let error = refined(text, &[&[3], &[4]]).unwrap_err();
    assert_eq!((error.kind, error.op.as_deref()), (ErrorKind::Invalid, Some("stablehlo.add")), "{error}");
    assert_eq!(results(&refined(text, &[&[3], &[3]]).unwrap()), ["tensor<3xf32>"]);
}

#[test]
fn custom_calls_lose_the_shapes_of_their_results() {
    let text = "func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
        %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
        %r = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
        %four = stablehlo.constant dense<4> : tensor<1xi32>
        %s = stablehlo.concatenate %r, %four, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
        %0 = stablehlo.custom_call @foo(%x, %s) {indices_of_shape_operands = dense<1> : tensor<1xi64>, mark, operand_layouts = [dense<[1, 0]> : tensor<2xindex>, dense<[0]> : tensor<1xindex>], result_layouts = [dense<[1, 0]> : tensor<2xindex>]} : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<?x4xf32>
        return %0 : tensor<?x4xf32>
    }";
    let module = refined(text, &[&[5, 4]]).unwrap();
    let printed = module.to_string();
    assert!(printed.contains("operand_layouts = [dense<[1, 0]> : tensor<2xindex>], result"), "{module}");
    assert!(printed.contains("{mark} : (tensor<5x4xf32>) -> tensor<5x4xf32>"), "{module}");
    assert_eq!(ops(&module), ["stablehlo.custom_call"]);
    assert_eq!(results(&module), ["tensor<5x4xf32>"]);
}

#[test]
fn regions_follow() {
    let text = "func.func @main(%x: tensor<?x4xf32>, %p: tensor<i1>) -> (tensor<?xf32>, tensor<?x4xf32>) {
        %zero = stablehlo.constant dense<0.0> : tensor<f32>
        %i = stablehlo.constant dense<0> : tensor<i32>
        %0:2 = stablehlo.while(%a = %x, %n = %i) : tensor<?x4xf32>, tensor<i32>
        cond {
          %c = stablehlo.compare LT, %n, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %c : tensor<i1>
        } do {
          %b = stablehlo.add %a, %a : tensor<?x4xf32>
          stablehlo.return %b, %n : tensor<?x4xf32>, tensor<i32>
        }
        %1 = \"stablehlo.if\"(%p) ({
          %s = stablehlo.sine %0#0 : tensor<?x4xf32>
          stablehlo.return %s : tensor<?x4xf32>
        }, {
          stablehlo.return %x : tensor<?x4xf32>
        }) : (tensor<i1>) -> tensor<?x4xf32>
        %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<?x4xf32>, tensor<f32>) -> tensor<?xf32>
        return %2, %1 : tensor<?xf32>, tensor<?x4xf32>
    }";
    let arguments =
        [TensorType::new(ElementType::F32, [7, 4]).into(), TensorType::new(ElementType::I1, []).into()];
    let module = refine_shapes(&read(text), &arguments).unwrap();
    assert_static(&module);
    assert_eq!(results(&module), ["tensor<7xf32>", "tensor<7x4xf32>"]);
}

#[test]
fn arguments_that_are_sizes_become_constants() {
    let text = "func.func @main(%n: tensor<i64>, %x: tensor<?xf32>) -> tensor<?x?xf32> {
        %0 = stablehlo.reshape %n : (tensor<i64>) -> tensor<1xi64>
        %1 = stablehlo.concatenate %0, %0, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
        %2 = stablehlo.dynamic_broadcast_in_dim %x, %1, dims = [1] : (tensor<?xf32>, tensor<2xi64>) -> tensor<?x?xf32>
        return %2 : tensor<?x?xf32>
    }";
    let size = TensorType::new(ElementType::I64, []);
    let value = Literal::new(size, LiteralData::Dense(3i64.to_le_bytes().to_vec().into())).unwrap();
    let arguments = [value.into(), TensorType::new(ElementType::F32, [3]).into()];
    let module = refine_shapes(&read(text), &arguments).unwrap();
    assert_eq!(module.main().unwrap().argument_types().len(), 1);
    assert_eq!(ops(&module), ["stablehlo.broadcast_in_dim"]);
    assert_eq!(results(&module), ["tensor<3x3xf32>"]);
}

#[test]
fn slices_by_data_are_of_the_size_that_was_added_to_their_start() {
    let text = "func.func @main(%x: tensor<?xf32>, %start: tensor<1xi32>) -> tensor<?xf32> {
        %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
        %two = stablehlo.constant dense<2> : tensor<i32>
        %half = stablehlo.divide %n, %two : tensor<i32>
        %size = stablehlo.reshape %half : (tensor<i32>) -> tensor<1xi32>
        %limit = stablehlo.add %start, %size : tensor<1xi32>
        %one = stablehlo.constant dense<1> : tensor<1xi32>
        %0 = stablehlo.real_dynamic_slice %x, %start, %limit, %one : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
        return %0 : tensor<?xf32>
    }";
    let arguments =
        [TensorType::new(ElementType::F32, [8]).into(), TensorType::new(ElementType::I32, [1]).into()];
    let module = refine_shapes(&read(text), &arguments).unwrap();
    assert_eq!(results(&module), ["tensor<4xf32>"]);
    assert!(ops(&module).contains(&"stablehlo.dynamic_slice"), "{module}");
}

#[test]
fn custom_calls_with_sizes_as_operands_become_operations() {
    let text = "func.func @main(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xi32>) {
        %zero = stablehlo.constant dense<0.0> : tensor<f32>
        %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
        %one = stablehlo.constant dense<1> : tensor<i32>
        %less = stablehlo.subtract %n, %one : tensor<i32>
        %window = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
        %ones = stablehlo.constant dense<1> : tensor<1xi32>
        %low = stablehlo.reshape %less : (tensor<i32>) -> tensor<1x1xi32>
        %high = stablehlo.constant dense<0> : tensor<1x1xi32>
        %padding = stablehlo.concatenate %low, %high, dim = 1 : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x2xi32>
        %0 = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %zero, %window, %ones, %ones, %ones, %padding) {called_computations = [@add]} : (tensor<?xf32>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1x2xi32>) -> tensor<?xf32>
        %1:2 = stablehlo.custom_call @stablehlo.dynamic_top_k(%x, %less) : (tensor<?xf32>, tensor<i32>) -> (tensor<?xf32>, tensor<?xi32>)
        return %0, %1#0, %1#1 : tensor<?xf32>, tensor<?xf32>, tensor<?xi32>
    }
    func.func private @add(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
        %0 = stablehlo.add %a, %b : tensor<f32>
        return %0 : tensor<f32>
    }";
    let module = refined(text, &[&[5]]).unwrap();
    assert_eq!(results(&module), ["tensor<5xf32>", "tensor<4xf32>", "tensor<4xi32>"]);
    assert_eq!(
        ops(&module),
        ["chlo.top_k", "stablehlo.add", "stablehlo.constant", "stablehlo.reduce_window"]
    );
    assert_eq!(module.functions().len(), 1);
}

#[test]
fn sizes_that_depend_on_data_stay_unknown() {
    let text = "func.func @main(%x: tensor<?xf32>, %n: tensor<1xi32>) -> tensor<?xf32> {
        %0 = stablehlo.dynamic_reshape %x, %n : (tensor<?xf32>, tensor<1xi32>) -> tensor<?xf32>
        return %0 : tensor<?xf32>
    }";
    let arguments =
        [TensorType::new(ElementType::F32, [8]).into(), TensorType::new(ElementType::I32, [1]).into()];
    let module = refine_shapes(&read(text), &arguments).unwrap();
    assert_eq!(results(&module), ["tensor<?xf32>"]);
    let error = decompose(&module, &CoreOps::default()).unwrap_err();
    assert_eq!(error.op.as_deref(), Some("stablehlo.dynamic_reshape"));
}
