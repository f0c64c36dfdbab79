use super::*;
use crate::error::ErrorKind;
use pjrt_stablehlo::ir::ops;

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
    let level_of_its_own = format!(
        "%q = {}%n = {}{}",
        call("SPMDFullToShardShape", "%p", "{manual}", "2xf32", "2xf32"),
        call("SPMDShardToFullShape", "%q", "{replicated}", "2xf32", "2xf32"),
        leave("%n")
    );
    assert!(error_of(&enter, &level_of_its_own).message.contains("\"manual\" in the mhlo.sharding"));
    let rows = "{devices=[2,2]<=[4] last_tile_dim_replicate}";
    let outer = "{devices=[1,2,2]<=[4] last_tile_dims={manual, replicated}}";
    let both = format!(
        "{}%i = {}%q = {}%m = stablehlo.cosine %q : tensor<4xf32>
         %r = {}return %r : tensor<8xf32>\n",
        self::enter(rows, outer, "8xf32", "4xf32"),
        call("Sharding", "%p", outer, "4xf32", "4xf32"),
        call("SPMDFullToShardShape", "%i", "{manual}", "4xf32", "4xf32"),
        call("SPMDShardToFullShape", "%m", rows, "4xf32", "8xf32")
    );
    let error = replaced(&main_of("8xf32", &both)).unwrap_err();
    assert!(error.message.contains("a manual region in the region that this custom call leaves"), "{error}");
    let body = format!("{enter}return %p : tensor<2xf32>\n");
    let text = main_of("8xf32", &body).replace("-> tensor<8xf32> {\n", "-> tensor<2xf32> {\n");
    assert!(replaced(&text).unwrap_err().message.contains("does not pass SPMDShardToFullShape"));
}

#[test]
fn a_region_that_uses_its_own_result_is_divided() {
    let circle = format!(
        "{}%w = stablehlo.cosine %p : tensor<2xf32>
         %h = {}%j = stablehlo.negate %h : tensor<8xf32>
         %i = {}%q = {}%n = stablehlo.add %w, %q : tensor<2xf32>
         %r = {}return %r : tensor<8xf32>\n",
        enter(CUT, "{manual}", "8xf32", "2xf32"),
        call("SPMDShardToFullShape", "%p", CUT, "2xf32", "8xf32"),
        call("Sharding", "%j", CUT, "8xf32", "8xf32"),
        call("SPMDFullToShardShape", "%i", "{manual}", "8xf32", "2xf32"),
        call("SPMDShardToFullShape", "%n", CUT, "2xf32", "8xf32"),
    );
    let module = replaced(&main_of("8xf32", &circle)).unwrap();
    let body = &module.main().unwrap().body;
    let computations: Vec<_> = body
        .all_ops()
        .filter(|(_, op)| matches!(op.kind, Op::ManualComputation(_)))
        .map(|(_, op)| op)
        .collect();
    assert_eq!(computations.len(), 2);
    // The first computation gives the second its parts of the cosine, as an array with a row for each partition.
    let given = computations[0].results.iter().next_back().unwrap();
    assert_eq!(body.ty(given).to_string(), "tensor<4x2xf32>");
    assert!(computations[1].operands.contains(&given));
}

#[test]
fn regions_in_regions_are_computations_in_computations() {
    let cut = "{devices=[2,1,2]<=[4] last_tile_dim_replicate}";
    let outer = "{devices=[1,1,2,2]<=[4] last_tile_dims={manual, replicated}}";
    let inner = "{devices=[1,2,2]<=[2,2]T(1,0) last_tile_dims={manual}}";
    let body = format!(
        "%id = stablehlo.partition_id : tensor<ui32>
         %f = stablehlo.convert %id : (tensor<ui32>) -> tensor<f32>
         %fs = {}%ff = {}{}%ps = {}%q = {}%m = stablehlo.cosine %q : tensor<4x3xf32>
         %ms = {}%n = {}%b = stablehlo.broadcast_in_dim %ff, dims = [] : (tensor<f32>) -> tensor<4x6xf32>
         %o = stablehlo.add %n, %b : tensor<4x6xf32>
         %os = {}%r = {}return %r : tensor<8x6xf32>\n",
        call("Sharding", "%f", "{manual}", "f32", "f32"),
        call(
            "SPMDShardToFullShape",
            "%fs",
            "{devices=[2,2]<=[4] last_tile_dims={manual, replicated}}",
            "f32",
            "f32"
        ),
        enter(cut, outer, "8x6xf32", "4x6xf32"),
        call("Sharding", "%p", inner, "4x6xf32", "4x6xf32"),
        call("SPMDFullToShardShape", "%ps", "{manual}", "4x6xf32", "4x3xf32"),
        call("Sharding", "%m", "{manual}", "4x3xf32", "4x3xf32"),
        call("SPMDShardToFullShape", "%ms", inner, "4x3xf32", "4x6xf32"),
        call("Sharding", "%o", outer, "4x6xf32", "4x6xf32"),
        call("SPMDShardToFullShape", "%os", cut, "4x6xf32", "8x6xf32"),
    );
    let module = replaced(&main_of("8x6xf32", &body)).unwrap();
    let body = &module.main().unwrap().body;
    let computations = body.all_ops().filter_map(|(_, op)| match &op.kind {
        Op::ManualComputation(computation) => Some((op, computation)),
        _ => None,
    });
    let axes = |computation: &ops::ManualComputation| computation.manual_axes.join(" ");
    let is_outer = |op: &Operation| Some(op.block) == body.entry();
    let found: Vec<_> = computations.map(|(op, computation)| (is_outer(op), axes(computation))).collect();
    let expected = [(true, "axis_0"), (false, "axis_1"), (false, "axis_1")];
    assert_eq!(found.len(), 3);
    assert!(
        expected.iter().all(|(is_outer, axes)| found.contains(&(*is_outer, (*axes).to_owned()))),
        "{found:?}"
    );
}

#[test]
fn arrays_without_equal_parts_have_padding_in_regions() {
    let module = replaced(&main_of(
        "5xf32",
        &format!(
            "{}%m = stablehlo.cosine %p : tensor<2xf32>\n%r = {}return %r : tensor<5xf32>\n",
            enter(CUT, "{manual}", "5xf32", "2xf32"),
            call("SPMDShardToFullShape", "%m", CUT, "2xf32", "5xf32")
        ),
    ))
    .unwrap();
    let body = &module.main().unwrap().body;
    let region = body.all_ops().find(|(_, op)| matches!(op.kind, Op::ManualComputation(_))).unwrap().1;
    let types = [region.operand(0), region.result()].map(|value| body.ty(value).to_string());
    assert_eq!(types, ["tensor<8xf32>", "tensor<8xf32>"]);
    assert_eq!(["stablehlo.pad", "stablehlo.slice"].map(|name| operations(&module, name)), [1, 1]);
}

#[test]
fn regions_can_have_partitions_in_another_order() {
    let cut = "{devices=[4]2,0,3,1}";
    let module = replaced(&main_of(
        "8xf32",
        &format!(
            "{}%m = stablehlo.cosine %p : tensor<2xf32>\n%r = {}return %r : tensor<8xf32>\n",
            enter(cut, "{manual}", "8xf32", "2xf32"),
            call("SPMDShardToFullShape", "%m", cut, "2xf32", "8xf32")
        ),
    ))
    .unwrap();
    let body = &module.main().unwrap().body;
    let meshes: Vec<_> = body
        .all_ops()
        .filter_map(|(_, op)| match &op.kind {
            Op::ManualComputation(computation) => computation.in_shardings[0].mesh.mesh(&module).cloned(),
            _ => None,
        })
        .collect();
    assert_eq!(*meshes[0].device_ids, [2, 0, 3, 1]);
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

#[test]
fn tokens_enter_and_leave_regions_without_custom_calls() {
    let attributes = |kind: u8, sharding: &str| {
        format!(
            "{{channel_handle = #stablehlo.channel_handle<handle = 1, type = {kind}>, is_host_transfer = true, \
             mhlo.sharding = \"{sharding}\"}}"
        )
    };
    let send = |operand: &str, token: &str, ty: &str, sharding: &str| {
        let attributes = attributes(2, sharding);
        format!(
            "\"stablehlo.send\"({operand}, {token}) {attributes} : (tensor<{ty}>, !stablehlo.token) -> !stablehlo.token\n"
        )
    };
    let first = "{maximal device=0}";
    let module = replaced(&format!(
        "func.func @main(%t: !stablehlo.token, %a: tensor<8xf32>) -> (!stablehlo.token, tensor<8xf32>) {{
         %before = {}{}%sent = {}%q:2 = \"stablehlo.recv\"(%sent) {} : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)
         %r = {}{}%again = {}%after = {}return %after, %r : !stablehlo.token, tensor<8xf32> }}",
        send("%a", "%t", "8xf32", first),
        enter(CUT, "{manual}", "8xf32", "2xf32"),
        send("%p", "%before", "2xf32", "{manual}"),
        attributes(3, "{manual}"),
        call("SPMDShardToFullShape", "%q#0", CUT, "2xf32", "8xf32"),
        // Another region, whose only connection with the first one is the token.
        enter(CUT, "{manual}", "8xf32", "2xf32").replace("%s", "%u").replace("%p", "%v"),
        send("%v", "%q#1", "2xf32", "{manual}"),
        send("%r", "%again", "8xf32", first),
    ))
    .unwrap();
    let body = &module.main().unwrap().body;
    let names: Vec<_> = body
        .block_ops(body.entry().unwrap())
        .map(|(_, op)| op.kind.name().rsplit('.').next().unwrap().to_owned())
        .filter(|name| name != "custom_call")
        .collect();
    assert!(names.starts_with(&["send".to_owned(), "manual_computation".to_owned()]), "{names:?}");
    assert!(names.ends_with(&["send".to_owned(), "return".to_owned()]), "{names:?}");
    let outside = names.iter().filter(|name| *name == "send").count();
    assert_eq!((outside, operations(&module, "stablehlo.send")), (2, 4), "{module}");
    let options = Options { num_partitions: 4, use_spmd_partitioning: true, ..Options::default() };
    let shardings = crate::propagate(&module, &options).unwrap();
    let partition = crate::partition(&module, &shardings, &options).unwrap();
    pjrt_stablehlo::verify(&partition).unwrap_or_else(|e| panic!("{e}\n{partition}"));
}
