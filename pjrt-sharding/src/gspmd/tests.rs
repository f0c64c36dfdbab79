use super::*;
use crate::error::ErrorKind;

const CUT: &str = "{devices=[4]<=[4]}";

fn call(target: &str, operand: &str, sharding: &str, from: &str, to: &str) -> String {
    format!(
        "stablehlo.custom_call @{target}({operand}) {{mhlo.sharding = \"{sharding}\"}} : (tensor<{from}>) -> tensor<{to}>\n"
    )
}

/// Returns the operations that make the part `%p` of `%a`.
fn enter(sharding: &str, manual: &str, whole: &str, part: &str) -> String {
    let annotated = call("Sharding", "%a", sharding, whole, whole);
    format!("%s = {annotated}%p = {}", call("SPMDFullToShardShape", "%s", manual, whole, part))
}

/// Replaces the regions of a function `main`, and returns the result, which is verified.
fn replaced(text: &str) -> Result<Module> {
    let module = pjrt_stablehlo::parse(text.as_bytes()).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert!(has_manual_regions(&module));
    let options = Options { num_partitions: 4, ..Options::default() };
    let module = to_manual_computations(&module, &options)?;
    assert!(!has_manual_regions(&module));
    pjrt_stablehlo::verify(&module).unwrap_or_else(|e| panic!("{e}\n{module}"));
    Ok(module)
}

/// Returns the program `main` with an argument `%a` and a result, both of this type.
fn main_of(ty: &str, body: &str) -> String {
    format!("func.func @main(%a: tensor<{ty}>) -> tensor<{ty}> {{\n{body}}}")
}

fn operations(module: &Module, name: &str) -> usize {
    module.op_counts().get(name).copied().unwrap_or(0)
}

#[test]
fn a_region_is_one_computation_with_its_own_constants() {
    let leave = call("SPMDShardToFullShape", "%m", CUT, "2xf32", "8xf32");
    let module = replaced(&main_of(
        "8xf32",
        &format!(
            "%id = stablehlo.partition_id : tensor<ui32>
             %f = stablehlo.convert %id : (tensor<ui32>) -> tensor<f32>
             %c = stablehlo.constant dense<2.0> : tensor<8xf32>
             {}%b = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<2xf32>
             %n = stablehlo.add %p, %b : tensor<2xf32>
             %m = {}%r = {leave}%t = stablehlo.multiply %r, %c : tensor<8xf32>
             return %t : tensor<8xf32>\n",
            enter(CUT, "{manual}", "8xf32", "2xf32"),
            call("Sharding", "%n", "{manual}", "2xf32", "2xf32")
        ),
    ))
    .unwrap();
    let body = &module.main().unwrap().body;
    let names = |block| body.block_ops(block).map(|(_, op)| op.kind.name()).collect::<Vec<_>>();
    let outside = names(body.entry().unwrap());
    let expected = ["constant", "custom_call", "manual_computation", "multiply", "return"];
    let mnemonics: Vec<_> = outside.iter().map(|name| name.rsplit('.').next().unwrap()).collect();
    assert_eq!(mnemonics, expected);
    assert_eq!(operations(&module, "stablehlo.partition_id"), 1);
}

#[test]
fn regions_without_inputs_and_in_sequence_are_separate_computations() {
    let leave = |operand: &str| call("SPMDShardToFullShape", operand, CUT, "2xf32", "8xf32");
    let again = call("Sharding", "%r", CUT, "8xf32", "8xf32");
    let module = replaced(&main_of(
        "8xf32",
        &format!(
            "%c = stablehlo.constant dense<2.0> : tensor<2xf32>
             %x = {}{}%n = stablehlo.add %p, %c : tensor<2xf32>
             %r = {}%u = {again}%q = {}%v = stablehlo.multiply %q, %c : tensor<2xf32>
             %w = {}%t = stablehlo.add %w, %x : tensor<8xf32>
             return %t : tensor<8xf32>\n",
            leave("%c"),
            enter(CUT, "{manual}", "8xf32", "2xf32"),
            leave("%n"),
            call("SPMDFullToShardShape", "%u", "{manual}", "8xf32", "2xf32"),
            leave("%v")
        ),
    ))
    .unwrap();
    assert_eq!(operations(&module, "sdy.manual_computation"), 3);
    // Each region has a copy of the constant, and the program outside needs none.
    assert_eq!(operations(&module, "stablehlo.constant"), 3);
}

#[test]
fn axes_of_a_subgroup_are_manual_and_the_others_are_free() {
    let cut = "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}";
    let manual = "{devices=[1,1,2,2]<=[2,2]T(1,0) last_tile_dims={manual, replicated}}";
    let leave = call("SPMDShardToFullShape", "%m", cut, "4x6xf32", "8x6xf32");
    let body = format!(
        "{}%m = {}%r = {leave}return %r : tensor<8x6xf32>\n",
        enter(cut, manual, "8x6xf32", "4x6xf32"),
        call("Sharding", "%p", manual, "4x6xf32", "4x6xf32")
    );
    let module = replaced(&main_of("8x6xf32", &body)).unwrap();
    let body = &module.main().unwrap().body;
    let computation = body.all_ops().find_map(|(_, op)| match &op.kind {
        Op::ManualComputation(computation) => Some(computation.clone()),
        _ => None,
    });
    let computation = computation.unwrap();
    let names: Vec<&str> = computation.manual_axes.iter().map(|axis| &**axis).collect();
    assert_eq!(names, ["axis_1"]);
    assert_eq!(&*computation.in_shardings[0].dim_shardings[0].axes[0].name, "axis_1");
}

#[test]
fn an_argument_states_its_sharding() {
    let body = format!(
        "%p = {}%r = {}return %r : tensor<8xf32>\n",
        call("SPMDFullToShardShape", "%a", "{manual}", "8xf32", "2xf32"),
        call("SPMDShardToFullShape", "%p", CUT, "2xf32", "8xf32")
    );
    let argument = format!("%a: tensor<8xf32> {{mhlo.sharding = \"{CUT}\"}}");
    let module = replaced(&main_of("8xf32", &body).replacen("%a: tensor<8xf32>", &argument, 1)).unwrap();
    assert_eq!(operations(&module, "sdy.manual_computation"), 1);
}

#[test]
fn regions_in_loops_and_branches_are_replaced() {
    let body = format!(
        "%i = stablehlo.constant dense<0> : tensor<i32>
         %0 = \"stablehlo.case\"(%i) ({{ stablehlo.return %a : tensor<8xf32> }}, {{
           {}%r = {}stablehlo.return %r : tensor<8xf32>
         }}) : (tensor<i32>) -> tensor<8xf32>
         return %0 : tensor<8xf32>\n",
        enter(CUT, "{manual}", "8xf32", "2xf32"),
        call("SPMDShardToFullShape", "%p", CUT, "2xf32", "8xf32")
    );
    let module = replaced(&main_of("8xf32", &body)).unwrap();
    assert_eq!(operations(&module, "sdy.manual_computation"), 1);
}

/// Returns the error of a program with these operations after the part `%p`.
fn error_of(enter: &str, then: &str) -> Error {
    let body = format!("{enter}{then}return %r : tensor<8xf32>\n");
    replaced(&main_of("8xf32", &body)).unwrap_err()
}

#[test]
fn whole_arrays_that_a_region_uses_are_its_inputs() {
    let leave = call("SPMDShardToFullShape", "%m", CUT, "2xf32", "8xf32");
    let module = replaced(&main_of(
        "8xf32",
        &format!(
            "%c = stablehlo.constant dense<2.0> : tensor<8xf32>
             %d = stablehlo.multiply %a, %c : tensor<8xf32>
             {}%w = stablehlo.slice %d [0:2] : (tensor<8xf32>) -> tensor<2xf32>
             %n = stablehlo.add %p, %w : tensor<2xf32>
             %m = stablehlo.multiply %n, %w : tensor<2xf32>
             %r = {leave}return %r : tensor<8xf32>\n",
            enter(CUT, "{manual}", "8xf32", "2xf32"),
        ),
    ))
    .unwrap();
    let body = &module.main().unwrap().body;
    let region = body.all_ops().find(|(_, op)| matches!(op.kind, Op::ManualComputation(_))).unwrap().1;
    let Op::ManualComputation(computation) = &region.kind else { unreachable!() };
    assert_eq!((region.operands.len(), computation.in_shardings.len()), (2, 2));
    assert!(computation.in_shardings[1].dim_shardings[0].axes.is_empty());
    // The slice is computed once, outside the region.
    assert_eq!(operations(&module, "stablehlo.slice"), 1);
    assert_eq!(
        body.block_ops(body.entry().unwrap()).filter(|(_, op)| matches!(op.kind, Op::Slice(_))).count(),
        1
    );
}

#[test]
fn regions_that_are_not_separate_from_the_program_outside_are_refused() {
    let enter = enter(CUT, "{manual}", "8xf32", "2xf32");
    let leave =
        |operand: &str| format!("%r = {}", call("SPMDShardToFullShape", operand, CUT, "2xf32", "8xf32"));
    let nested = format!(
        "%q = {}%n = {}{}",
        call("SPMDFullToShardShape", "%p", "{manual}", "2xf32", "2xf32"),
        call("SPMDShardToFullShape", "%q", "{replicated}", "2xf32", "2xf32"),
        leave("%n")
    );
    assert!(error_of(&enter, &nested).message.contains("manual regions in manual regions"));
    let circle = format!(
        "%h = {}%q = {}%n = stablehlo.add %p, %q : tensor<2xf32>\n{}",
        call("SPMDShardToFullShape", "%p", CUT, "2xf32", "8xf32"),
        call("SPMDFullToShardShape", "%h", "{manual}", "8xf32", "2xf32"),
        leave("%n")
    );
    assert!(error_of(&enter, &circle).message.contains("depends on a result of the same region"));
    let body = format!("{enter}return %p : tensor<2xf32>\n");
    let text = main_of("8xf32", &body).replace("-> tensor<8xf32> {\n", "-> tensor<2xf32> {\n");
    assert!(replaced(&text).unwrap_err().message.contains("does not pass SPMDShardToFullShape"));
}

#[test]
fn shapes_and_axes_that_contradict_the_shardings_are_refused() {
    let leave = |part: &str| format!("%r = {}", call("SPMDShardToFullShape", "%p", CUT, part, "8xf32"));
    let error = error_of(&enter(CUT, "{manual}", "8xf32", "4xf32"), &leave("4xf32"));
    assert_eq!((error.kind, &*error.op), (ErrorKind::Invalid, "stablehlo.custom_call"));
    assert!(error.message.contains("[8]") && error.message.contains("[4]"), "{error}");
    let unknown = format!("%p = {}", call("SPMDFullToShardShape", "%a", "{manual}", "8xf32", "2xf32"));
    assert!(error_of(&unknown, &leave("2xf32")).message.contains("is unknown"));
    let reversed = enter("{devices=[4]3,2,1,0}", "{manual}", "8xf32", "2xf32");
    assert!(error_of(&reversed, &leave("2xf32")).message.contains("axes of one mesh"));
}
