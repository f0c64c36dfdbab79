//! Programs in the form that they have for one partition: they have the results of the program on whole arrays, and do
//! not communicate more than necessary.

use pjrt_sharding::Sharding;
use refcpu_engine::compile::{ArrayInfo, CompileOptions, Compiled, Parts, compile, partitioned};
use refcpu_engine::exec::{Input, RunOptions, Runtime, run};
use refcpu_engine::storage::{Allocator, AllocatorOptions, Array};
use refcpu_kernels::{DType, Pool};

/// The collective operations that are counted.
const COLLECTIVES: [&str; 6] = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "collective_permute",
    "reduce_scatter",
    "collective_broadcast",
];

/// Small integers, whose sums are exact.
fn numbers(runtime: &Runtime, dtype: DType, dims: &[usize], seed: usize) -> Array {
    let count: usize = dims.iter().product();
    let number = |i: usize| (i * 7 + seed * 3) as i32 % 11 - 4;
    let bytes: Vec<u8> = match dtype {
        DType::F32 => (0..count).flat_map(|i| (number(i) as f32).to_le_bytes()).collect(),
        DType::S32 => (0..count).flat_map(|i| number(i).to_le_bytes()).collect(),
        DType::Pred => (0..count).map(|i| u8::from(number(i) > 0)).collect(),
        other => panic!("no numbers of {other:?}"),
    };
    Array::from_bytes(&runtime.allocator, dtype, dims, &bytes).unwrap()
}

/// Returns the start and the size of a partition's part. An array to be reduced has one partial result of the part.
fn part(sharding: Option<&Sharding>, dims: &[usize], partition: usize) -> (Vec<usize>, Vec<usize>) {
    let Some(sharding) = sharding else { return (vec![0; dims.len()], dims.to_vec()) };
    (sharding.shard_starts(partition, dims), sharding.shard_dims(dims))
}

/// Compares the results of a program on a mesh `x=2, y=2` on whole arrays and in parts, and returns its partitioned
/// text. Arguments and results are `main`'s, without `func.func public @main`.
fn partitioned_text(main: &str) -> String {
    let text = format!("module {{ sdy.mesh @mesh = <[\"x\"=2, \"y\"=2]> func.func public @main{main} }}");
    let module = pjrt_stablehlo::parse(text.as_bytes()).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let options = CompileOptions {
        num_partitions: 4,
        use_spmd_partitioning: true,
        propagate_to_results: vec![true],
        ..CompileOptions::default()
    };
    let whole = compile(&module, &CompileOptions { parts: Parts::Never, ..options.clone() }).unwrap();
    let program = partitioned(&module, &options).unwrap().to_string();
    assert!(!program.contains("sdy."), "{program}");
    pjrt_stablehlo::parse(program.as_bytes()).unwrap_or_else(|e| panic!("{e}\n{program}"));
    let options = CompileOptions { parts: Parts::Always, ..options };
    let of_partition = compile(&module, &options).unwrap_or_else(|e| panic!("{e}\n{program}"));
    assert!(of_partition.in_parts && !whole.in_parts);
    same_results(&whole, &of_partition, &program);
    program
}

fn same_results(whole: &Compiled, of_partition: &Compiled, program: &str) {
    let runtime = Runtime::new(Pool::inline(), Allocator::new(AllocatorOptions::default()));
    let kept = |array: &Array| Input { array: array.clone(), donatable: false };
    let arguments: Vec<Array> = (whole.parameters.iter().enumerate())
        .map(|(i, p)| numbers(&runtime, p.shape.dtype, &p.shape.dims, i))
        .collect();
    let expected =
        run(&whole.plan, &runtime, vec![arguments.iter().map(kept).collect()], &RunOptions::default())
            .unwrap();
    let lane = |partition: usize| {
        let cut = |(array, parameter): (&Array, &ArrayInfo)| {
            let (starts, sizes) = part(parameter.sharding.as_ref(), &parameter.shape.dims, partition);
            let array = Array::window(array, &starts, &sizes).dense(&runtime.allocator).unwrap();
            let is_unreduced =
                parameter.sharding.as_ref().is_some_and(|sharding| sharding.reduction.is_some());
            let array =
                if is_unreduced { array.reinterpret(array.dtype(), sizes[1..].into()) } else { array };
            Input { array, donatable: false }
        };
        arguments.iter().zip(&whole.parameters).map(cut).collect()
    };
    let got = run(&of_partition.plan, &runtime, (0..4).map(lane).collect(), &RunOptions::default()).unwrap();
    for (k, result) in whole.results.iter().enumerate() {
        let is_unreduced = result.sharding.as_ref().is_some_and(|sharding| sharding.reduction.is_some());
        assert!(!is_unreduced, "what is still to be reduced is compared by its reduction");
        for (partition, got) in got.iter().enumerate() {
            let (starts, sizes) = part(result.sharding.as_ref(), &result.shape.dims, partition);
            let wanted = Array::window(&expected[0][k], &starts, &sizes).dense(&runtime.allocator).unwrap();
            assert_eq!(got[k].dims(), wanted.dims(), "result {k}:\n{program}");
            assert_eq!(got[k].bytes(), wanted.bytes(), "result {k} of partition {partition}:\n{program}");
        }
    }
}

/// Returns the number of each collective operation that occurs.
fn collectives(program: &str) -> Vec<(&'static str, usize)> {
    let count = |name: &str| {
        program.matches(&format!("stablehlo.{name}\"")).count()
            + program.matches(&format!("stablehlo.{name} ")).count()
            + program.matches(&format!("stablehlo.{name}(")).count()
    };
    COLLECTIVES.iter().map(|name| (*name, count(name))).filter(|(_, count)| *count > 0).collect()
}

/// Returns an argument of this type that is split along these axes.
fn split(name: &str, ty: &str, axes: &str) -> String {
    format!("%{name}: tensor<{ty}> {{sdy.sharding = #sdy.sharding<@mesh, [{axes}]>}}")
}

#[test]
fn elementwise_operations_on_arrays_that_are_split_alike_need_nothing_of_others() {
    let a = split("a", "8x6xf32", r#"{"x"}, {"y"}"#);
    let b = split("b", "8x6xf32", r#"{"x"}, {"y"}"#);
    let text = partitioned_text(&format!(
        "({a}, {b}) -> tensor<8x6xf32> {{
           %c = stablehlo.constant dense<2.0> : tensor<8x6xf32>
           %i = stablehlo.iota dim = 0 : tensor<8x6xf32>
           %0 = stablehlo.add %a, %b : tensor<8x6xf32>
           %1 = stablehlo.multiply %0, %c : tensor<8x6xf32>
           %2 = stablehlo.add %1, %i : tensor<8x6xf32>
           return %2 : tensor<8x6xf32> }}"
    ));
    assert_eq!(collectives(&text), []);
    assert!(!text.contains("8x6"), "{text}");
}

#[test]
fn arrays_that_are_split_otherwise_are_moved() {
    let program = |a: &str, b: &str| {
        partitioned_text(&format!(
            "({}, {}) -> (tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{a}]>}}) {{
               %0 = stablehlo.add %a, %b : tensor<8x8xf32>
               return %0 : tensor<8x8xf32> }}",
            split("a", "8x8xf32", a),
            split("b", "8x8xf32", b)
        ))
    };
    let moved = |a, b| collectives(&program(a, b));
    assert_eq!(moved(r#"{"x"}, {}"#, "{}, {}"), []);
    assert_eq!(moved(r#"{"x"}, {}"#, r#"{}, {"x"}"#), [("all_to_all", 1)]);
    assert_eq!(moved(r#"{"x"}, {}"#, r#"{"y"}, {}"#), [("collective_permute", 1)]);
    assert_eq!(moved(r#"{"x"}, {}"#, r#"{"x", "y"}, {}"#), [("all_gather", 1)]);
    assert_eq!(moved(r#"{"x", "y"}, {}"#, r#"{"y", "x"}, {}"#), [("collective_permute", 1)]);
    assert_eq!(moved(r#"{"x"}, {"y"}"#, r#"{"y"}, {"x"}"#), [("collective_permute", 1)]);
    assert_eq!(moved("{}, {}", r#"{"x"}, {"y"}"#), [("all_gather", 2)]);
    assert_eq!(moved(r#"{"x", "y"}, {}"#, r#"{}, {"x", "y"}"#), [("all_to_all", 1)]);
}

#[test]
fn a_contraction_of_split_dimensions_is_summed_where_it_is_needed() {
    let program = |result: &str| {
        partitioned_text(&format!(
            "({}, {}) -> (tensor<4x6xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{result}]>}}) {{
               %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
               %1 = stablehlo.add %0, %0 : tensor<4x6xf32>
               return %1 : tensor<4x6xf32> }}",
            split("a", "4x8xf32", r#"{}, {"x"}"#),
            split("b", "8x6xf32", r#"{"x"}, {}"#)
        ))
    };
    assert_eq!(collectives(&program("{}, {}")), [("all_reduce", 1)]);
    assert_eq!(collectives(&program(r#"{}, {"y"}"#)), [("all_reduce", 1)]);
}

#[test]
fn a_sum_whose_parts_are_wanted_where_its_terms_are_is_scattered() {
    let text = partitioned_text(&format!(
        "({}) -> (tensor<4xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{\"x\"}}]>}}) {{
           %z = stablehlo.constant dense<0.0> : tensor<f32>
           %b = sdy.sharding_constraint %a <@mesh, [{{\"x\"}}, {{}}]> : tensor<8x4xf32>
           %0 = stablehlo.reduce(%b init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
           %1 = sdy.sharding_constraint %0 <@mesh, [{{}}], unreduced={{\"x\"}}> : tensor<4xf32>
           %2 = sdy.sharding_constraint %1 <@mesh, [{{\"x\"}}]> : tensor<4xf32>
           return %2 : tensor<4xf32> }}",
        split("a", "8x4xf32", r#"{"x"}, {}"#)
    ));
    assert_eq!(collectives(&text), [("reduce_scatter", 1)]);
}

#[test]
fn reductions_over_split_dimensions_combine_parts() {
    for (name, init) in
        [("add", "0"), ("maximum", "-2147483648"), ("minimum", "5"), ("or", "0"), ("multiply", "1")]
    {
        let text = partitioned_text(&format!(
            "({}) -> tensor<6xi32> {{
               %z = stablehlo.constant dense<{init}> : tensor<i32>
               %0 = stablehlo.reduce(%a init: %z) applies stablehlo.{name} across dimensions = [0] : (tensor<8x6xi32>, tensor<i32>) -> tensor<6xi32>
               return %0 : tensor<6xi32> }}",
            split("a", "8x6xi32", r#"{"y"}, {"x"}"#)
        ));
        assert_eq!(collectives(&text), [("all_reduce", 1)], "{text}");
    }
}

#[test]
fn a_sum_that_begins_with_something_is_not_begun_twice() {
    partitioned_text(&format!(
        "({}) -> tensor<6xi32> {{
           %z = stablehlo.constant dense<5> : tensor<i32>
           %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8x6xi32>, tensor<i32>) -> tensor<6xi32>
           return %0 : tensor<6xi32> }}",
        split("a", "8x6xi32", r#"{"y"}, {"x"}"#)
    ));
}

#[test]
fn batches_of_matrices_stay_where_they_are() {
    let program = |axes: &str| {
        partitioned_text(&format!(
            "({}) -> (tensor<4x2x2xf32>, tensor<4x2x2xf32>) {{
               %0:2 = stablehlo.custom_call @Qr(%a) : (tensor<4x2x2xf32>) -> (tensor<4x2x2xf32>, tensor<4x2xf32>)
               %1 = stablehlo.transpose %a, dims = [0, 2, 1] : (tensor<4x2x2xf32>) -> tensor<4x2x2xf32>
               %2 = \"stablehlo.triangular_solve\"(%a, %1) <{{left_side = true, lower = true, unit_diagonal = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}}> : (tensor<4x2x2xf32>, tensor<4x2x2xf32>) -> tensor<4x2x2xf32>
               return %0#0, %2 : tensor<4x2x2xf32>, tensor<4x2x2xf32> }}",
            split("a", "4x2x2xf32", axes)
        ))
    };
    assert_eq!(collectives(&program(r#"{"x", "y"}, {}, {}"#)), []);
    let gathered = collectives(&program(r#"{}, {"x"}, {}"#));
    assert!(gathered.iter().any(|(name, _)| *name == "all_gather"), "{gathered:?}");
}

#[test]
fn reshapes_keep_the_parts_of_what_they_split_up_or_put_together() {
    let text = partitioned_text(&format!(
        "({}) -> tensor<8x6xf32> {{
           %0 = stablehlo.reshape %a : (tensor<8x6xf32>) -> tensor<2x4x6xf32>
           %1 = stablehlo.reshape %0 : (tensor<2x4x6xf32>) -> tensor<8x6xf32>
           return %1 : tensor<8x6xf32> }}",
        split("a", "8x6xf32", r#"{"x"}, {"y"}"#)
    ));
    assert_eq!(collectives(&text), []);
}

#[test]
fn loops_carry_parts() {
    let text = partitioned_text(&format!(
        "({}) -> tensor<8x6xf32> {{
           %z = stablehlo.constant dense<0> : tensor<i32>
           %n = stablehlo.constant dense<3> : tensor<i32>
           %one = stablehlo.constant dense<1> : tensor<i32>
           %0:2 = stablehlo.while(%i = %z, %b = %a) : tensor<i32>, tensor<8x6xf32>
           cond {{
             %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
             stablehlo.return %1 : tensor<i1>
           }} do {{
             %1 = stablehlo.add %i, %one : tensor<i32>
             %2 = stablehlo.add %b, %a : tensor<8x6xf32>
             stablehlo.return %1, %2 : tensor<i32>, tensor<8x6xf32>
           }}
           return %0#1 : tensor<8x6xf32> }}",
        split("a", "8x6xf32", r#"{"x"}, {"y"}"#)
    ));
    assert_eq!(collectives(&text), []);
}

#[test]
fn branches_give_parts() {
    let text = partitioned_text(&format!(
        "({}, %p: tensor<i1>) -> tensor<8x6xf32> {{
           %0 = \"stablehlo.if\"(%p) ({{
             %1 = stablehlo.negate %a : tensor<8x6xf32>
             stablehlo.return %1 : tensor<8x6xf32>
           }}, {{
             %1 = stablehlo.constant dense<1.0> : tensor<8x6xf32>
             stablehlo.return %1 : tensor<8x6xf32>
           }}) : (tensor<i1>) -> tensor<8x6xf32>
           return %0 : tensor<8x6xf32> }}",
        split("a", "8x6xf32", r#"{"x"}, {"y"}"#)
    ));
    assert!(collectives(&text).len() <= 1, "{text}");
}

#[test]
fn functions_run_in_the_place_of_their_calls() {
    let text = format!(
        "({}) -> tensor<8xf32> {{
           %0 = call @f(%a) : (tensor<8xf32>) -> tensor<8xf32>
           %1 = stablehlo.composite \"chlo.erf\" %0 {{decomposition = @g}} : (tensor<8xf32>) -> tensor<8xf32>
           return %1 : tensor<8xf32> }}
         func.func private @f(%a: tensor<8xf32>) -> tensor<8xf32> {{
           %0 = stablehlo.add %a, %a : tensor<8xf32>
           return %0 : tensor<8xf32> }}
         func.func private @g(%a: tensor<8xf32>) -> tensor<8xf32> {{
           %0 = stablehlo.tanh %a : tensor<8xf32>
           return %0 : tensor<8xf32> }}",
        split("a", "8xf32", r#"{"x"}"#)
    );
    let text = partitioned_text(&text);
    assert_eq!(collectives(&text), []);
    assert!(!text.contains("tensor<8x"), "{text}");
}

#[test]
fn manual_computations_are_on_parts_already() {
    let program = |axes: &str, inside: &str| {
        partitioned_text(&format!(
            "({}) -> tensor<8x4xf32> {{
               %r = sdy.manual_computation(%a) in_shardings=[<@mesh, [{{\"x\"}}, {{}}]>] out_shardings=[<@mesh, [{{\"x\"}}, {{}}]>]
                   manual_axes={{{axes}}} (%p: tensor<4x4xf32>) {{
                 {inside}
                 %n = stablehlo.add %s, %p : tensor<4x4xf32>
                 sdy.return %n : tensor<4x4xf32>
               }} : (tensor<8x4xf32>) -> tensor<8x4xf32>
               return %r : tensor<8x4xf32> }}",
            split("a", "8x4xf32", r#"{"x"}, {"y"}"#)
        ))
    };
    let sum = "%s = \"stablehlo.all_reduce\"(%p) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
         ^bb0(%u: tensor<f32>, %v: tensor<f32>):
           %w = stablehlo.add %u, %v : tensor<f32>
           stablehlo.return %w : tensor<f32>
         }) : (tensor<4x4xf32>) -> tensor<4x4xf32>";
    assert_eq!(collectives(&program(r#""x", "y""#, sum)), [("all_gather", 1), ("all_reduce", 1)]);
    assert_eq!(collectives(&program(r#""x""#, sum)), [("all_gather", 1), ("all_reduce", 1)]);
    // The partitioned program has no meshes that groups could be along.
    let lists = "dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>";
    let axes = "#stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = \"x\">]>";
    let along_axes = program(r#""x", "y""#, &sum.replace(lists, axes));
    assert_eq!(collectives(&along_axes), [("all_gather", 1), ("all_reduce", 1)]);
    assert!(along_axes.contains(lists), "{along_axes}");
    // Along some axes, JAX writes constraints into the region as well.
    let inner =
        "%w = stablehlo.add %u, %v : tensor<f32>\n%z = sdy.sharding_constraint %w <@mesh, []> : tensor<f32>";
    let constrained = sum
        .replace("%w = stablehlo.add %u, %v : tensor<f32>", inner)
        .replace("stablehlo.return %w", "stablehlo.return %z");
    assert_eq!(collectives(&program(r#""x""#, &constrained)), [("all_gather", 1), ("all_reduce", 1)]);
    let constraint = "%s = sdy.sharding_constraint %p <@mesh, [{}, {\"y\"}]> : tensor<4x4xf32>";
    program(r#""x""#, constraint);
}

#[test]
fn manual_regions_of_gspmd_compute_what_manual_computations_do() {
    let next = "%n = \"stablehlo.collective_permute\"(%p) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1], [1, 2], [2, 3], [3, 0]]> : tensor<4x2xi64>}> : (tensor<2xf32>) -> tensor<2xf32>";
    let inside = format!(
        "%id = stablehlo.partition_id : tensor<ui32>
         %f = stablehlo.convert %id : (tensor<ui32>) -> tensor<f32>
         %b = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<2xf32>
         {next}
         %s = stablehlo.add %n, %b : tensor<2xf32>"
    );
    let program = |region: String| {
        partitioned_text(&format!(
            "(%a: tensor<8xf32>) -> tensor<8xf32> {{
               %d = stablehlo.add %a, %a : tensor<8xf32>
               {region}
               %e = stablehlo.multiply %r, %a : tensor<8xf32>
               return %e : tensor<8xf32> }}"
        ))
    };
    let of_gspmd = program(format!(
        "%0 = stablehlo.custom_call @Sharding(%d) {{mhlo.sharding = \"{{devices=[4]<=[4]}}\"}} : (tensor<8xf32>) -> tensor<8xf32>
         %p = stablehlo.custom_call @SPMDFullToShardShape(%0) {{mhlo.sharding = \"{{manual}}\"}} : (tensor<8xf32>) -> tensor<2xf32>
         {inside}
         %1 = stablehlo.custom_call @Sharding(%s) {{mhlo.sharding = \"{{manual}}\"}} : (tensor<2xf32>) -> tensor<2xf32>
         %r = stablehlo.custom_call @SPMDShardToFullShape(%1) {{mhlo.sharding = \"{{devices=[4]<=[4]}}\"}} : (tensor<2xf32>) -> tensor<8xf32>"
    ));
    let axes = r#"<@mesh, [{"x", "y"}]>"#;
    let of_shardy = program(format!(
        "%0 = sdy.sharding_constraint %d {axes} : tensor<8xf32>
         %r = sdy.manual_computation(%0) in_shardings=[{axes}] out_shardings=[{axes}] manual_axes={{\"x\", \"y\"}} (%p: tensor<2xf32>) {{
           {inside}
           sdy.return %s : tensor<2xf32>
         }} : (tensor<8xf32>) -> tensor<8xf32>"
    ));
    assert_eq!(of_gspmd, of_shardy);
}

#[test]
fn manual_regions_of_gspmd_along_some_axes_sum_along_these() {
    // The mesh is 2 by 2, and the region is manual along its first axis.
    let manual = "{devices=[1,1,2,2]<=[4] last_tile_dims={manual, replicated}}";
    let text = partitioned_text(&format!(
        "({}) -> tensor<4x4xf32> {{
           %0 = stablehlo.custom_call @Sharding(%a) {{backend_config = \"unspecified_dims=[0,1]\", mhlo.sharding = \"{{devices=[2,1,2]<=[4] last_tile_dim_replicate}}\"}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
           %p = stablehlo.custom_call @SPMDFullToShardShape(%0) {{backend_config = \"unspecified_dims=[0,1]\", mhlo.sharding = \"{manual}\"}} : (tensor<8x4xf32>) -> tensor<4x4xf32>
           %s = \"stablehlo.all_reduce\"(%p) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, use_global_device_ids}}> ({{
             ^bb0(%u: tensor<f32>, %v: tensor<f32>):
               %w = stablehlo.add %u, %v : tensor<f32>
               %x = stablehlo.custom_call @Sharding(%w) {{mhlo.sharding = \"{{devices=[2,2]<=[4] last_tile_dims={{manual, replicated}}}}\"}} : (tensor<f32>) -> tensor<f32>
               stablehlo.return %x : tensor<f32>
           }}) : (tensor<4x4xf32>) -> tensor<4x4xf32>
           %1 = stablehlo.custom_call @Sharding(%s) {{backend_config = \"unspecified_dims=[0,1]\", mhlo.sharding = \"{manual}\"}} : (tensor<4x4xf32>) -> tensor<4x4xf32>
           %r = stablehlo.custom_call @SPMDShardToFullShape(%1) {{backend_config = \"unspecified_dims=[0,1]\", mhlo.sharding = \"{{replicated}}\"}} : (tensor<4x4xf32>) -> tensor<4x4xf32>
           return %r : tensor<4x4xf32> }}",
        split("a", "8x4xf32", r#"{"x"}, {}"#)
    ));
    assert_eq!(collectives(&text), [("all_reduce", 1)]);
    assert!(!text.contains("custom_call") && !text.contains("slice"), "{text}");
}

/// A custom call of a program for XLA's GSPMD partitioner.
fn gspmd_call(target: &str, operand: &str, sharding: &str, from: &str, to: &str) -> String {
    format!(
        "stablehlo.custom_call @{target}({operand}) {{mhlo.sharding = \"{sharding}\"}} : (tensor<{from}>) -> tensor<{to}>\n"
    )
}

#[test]
fn manual_regions_of_gspmd_have_padding_where_parts_are_unequal() {
    // Three of the four devices have elements of the array. The mesh has them in another order.
    let cut = "{devices=[4]2,0,3,1}";
    let text = partitioned_text(&format!(
        "(%a: tensor<5xf32>) -> tensor<5xf32> {{
           %0 = {}%p = {}%id = stablehlo.partition_id : tensor<ui32>
           %f = stablehlo.convert %id : (tensor<ui32>) -> tensor<f32>
           %b = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<2xf32>
           %n = \"stablehlo.collective_permute\"(%p) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1], [1, 2], [2, 3], [3, 0]]> : tensor<4x2xi64>}}> : (tensor<2xf32>) -> tensor<2xf32>
           %s = stablehlo.add %n, %b : tensor<2xf32>
           %r = {}return %r : tensor<5xf32> }}",
        gspmd_call("Sharding", "%a", cut, "5xf32", "5xf32"),
        gspmd_call("SPMDFullToShardShape", "%0", "{manual}", "5xf32", "2xf32"),
        gspmd_call("SPMDShardToFullShape", "%s", cut, "2xf32", "5xf32"),
    ));
    assert_eq!(collectives(&text), [("all_gather", 1), ("collective_permute", 1)]);
}

#[test]
fn manual_regions_of_gspmd_that_use_their_own_results_exchange_nothing() {
    let cut = "{devices=[4]<=[4]}";
    let text = partitioned_text(&format!(
        "({}) -> tensor<8xf32> {{
           %0 = {}%p = {}%w = stablehlo.cosine %p : tensor<2xf32>
           %h = {}%i = stablehlo.negate %h : tensor<8xf32>
           %1 = {}%q = {}%s = stablehlo.add %w, %q : tensor<2xf32>
           %r = {}return %r : tensor<8xf32> }}",
        split("a", "8xf32", r#"{"x", "y"}"#),
        gspmd_call("Sharding", "%a", cut, "8xf32", "8xf32"),
        gspmd_call("SPMDFullToShardShape", "%0", "{manual}", "8xf32", "2xf32"),
        gspmd_call("SPMDShardToFullShape", "%p", cut, "2xf32", "8xf32"),
        gspmd_call("Sharding", "%i", cut, "8xf32", "8xf32"),
        gspmd_call("SPMDFullToShardShape", "%1", "{manual}", "8xf32", "2xf32"),
        gspmd_call("SPMDShardToFullShape", "%s", cut, "2xf32", "8xf32"),
    ));
    assert_eq!(collectives(&text), []);
}

#[test]
fn manual_regions_of_gspmd_in_others_are_on_parts_of_parts() {
    let cut = "{devices=[2,1,2]<=[4] last_tile_dim_replicate}";
    let outer = "{devices=[1,1,2,2]<=[4] last_tile_dims={manual, replicated}}";
    let inner = "{devices=[1,2,2]<=[2,2]T(1,0) last_tile_dims={manual}}";
    let text = partitioned_text(&format!(
        "({}) -> tensor<8x6xf32> {{
           %0 = {}%p = {}%1 = {}%q = {}%id = stablehlo.partition_id : tensor<ui32>
           %f = stablehlo.convert %id : (tensor<ui32>) -> tensor<f32>
           %b = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<4x3xf32>
           %m = stablehlo.add %q, %b : tensor<4x3xf32>
           %2 = {}%n = {}%o = stablehlo.multiply %n, %p : tensor<4x6xf32>
           %3 = {}%r = {}return %r : tensor<8x6xf32> }}",
        split("a", "8x6xf32", r#"{"x"}, {"y"}"#),
        gspmd_call("Sharding", "%a", cut, "8x6xf32", "8x6xf32"),
        gspmd_call("SPMDFullToShardShape", "%0", outer, "8x6xf32", "4x6xf32"),
        gspmd_call("Sharding", "%p", inner, "4x6xf32", "4x6xf32"),
        gspmd_call("SPMDFullToShardShape", "%1", "{manual}", "4x6xf32", "4x3xf32"),
        gspmd_call("Sharding", "%m", "{manual}", "4x3xf32", "4x3xf32"),
        gspmd_call("SPMDShardToFullShape", "%2", inner, "4x3xf32", "4x6xf32"),
        gspmd_call("Sharding", "%o", outer, "4x6xf32", "4x6xf32"),
        gspmd_call("SPMDShardToFullShape", "%3", cut, "4x6xf32", "8x6xf32"),
    ));
    assert!(!text.contains("custom_call"), "{text}");
}

#[test]
fn the_program_of_a_partition_says_how_arguments_and_results_are_split() {
    let arguments = format!("{}, %b: tensor<4xf32>", split("a", "8xf32", r#"{"x"}"#));
    let text = partitioned_text(&format!("({arguments}) -> tensor<8xf32> {{ return %a : tensor<8xf32> }}"));
    for expected in [
        r#"mhlo.spmd_output_sharding = "{devices=[2,2]0,1,2,3 last_tile_dim_replicate}""#,
        r#"mhlo.spmd_parameters_shardings = ["{devices=[2,2]0,1,2,3 last_tile_dim_replicate}", "{replicated}"]"#,
    ] {
        assert!(text.contains(expected), "{text}");
    }
    let results = "(tensor<8xf32>, tensor<4xf32>) { return %a, %b : tensor<8xf32>, tensor<4xf32> }";
    let text = partitioned_text(&format!("({arguments}) -> {results}"));
    let expected =
        r#"mhlo.spmd_output_sharding = "{{devices=[2,2]0,1,2,3 last_tile_dim_replicate}, {replicated}}""#;
    assert!(text.contains(expected), "{text}");
    // Hosts expect one sharding for the empty tuple.
    let text = partitioned_text(&format!("({arguments}) {{ return }}"));
    assert!(text.contains(r#"mhlo.spmd_output_sharding = "{replicated}""#), "{text}");
}

#[test]
fn calls_about_the_order_of_collectives_are_left_out() {
    let text = partitioned_text(&format!(
        "({}) -> tensor<8xf32> {{
           %r = sdy.manual_computation(%a) in_shardings=[<@mesh, [{{\"x\"}}]>] out_shardings=[<@mesh, [{{\"x\"}}]>] manual_axes={{\"x\", \"y\"}} (%p: tensor<4xf32>) {{
             %f = \"stablehlo.async_start\"(%p) ({{
               ^bb0(%q: tensor<4xf32>):
                 %g = \"stablehlo.all_gather\"(%q) <{{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, use_global_device_ids}}> : (tensor<4xf32>) -> tensor<8xf32>
                 stablehlo.return %g : tensor<8xf32>
             }}) : (tensor<4xf32>) -> !stablehlo.future<tensor<8xf32>>
             %w = \"stablehlo.async_done\"(%f) : (!stablehlo.future<tensor<8xf32>>) -> tensor<8xf32>
             stablehlo.custom_call @control_dep(%f, %w) {{has_side_effect = true}} : (!stablehlo.future<tensor<8xf32>>, tensor<8xf32>) -> ()
             %s = stablehlo.slice %w [2:6] : (tensor<8xf32>) -> tensor<4xf32>
             sdy.return %s : tensor<4xf32>
           }} : (tensor<8xf32>) -> tensor<8xf32>
           return %r : tensor<8xf32> }}",
        split("a", "8xf32", r#"{"x"}"#)
    ));
    assert_eq!(collectives(&text), [("all_gather", 1)]);
    assert!(!text.contains("control_dep"), "{text}");
}

#[test]
fn what_has_no_rule_runs_on_whole_arrays() {
    let text = partitioned_text(&format!(
        "({}) -> tensor<8xf32> {{
           %0 = stablehlo.reverse %a, dims = [0] : tensor<8xf32>
           return %0 : tensor<8xf32> }}",
        split("a", "8xf32", r#"{"x"}"#)
    ));
    assert_eq!(collectives(&text), [("all_gather", 1)]);
}

#[test]
fn arguments_that_are_still_to_be_summed_are_summed_once() {
    let text = partitioned_text(
        "(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"y\"}], unreduced={\"x\"}>}) -> tensor<8xf32> {
           %0 = stablehlo.add %a, %a : tensor<8xf32>
           %1 = stablehlo.multiply %0, %0 : tensor<8xf32>
           return %1 : tensor<8xf32> }",
    );
    assert_eq!(collectives(&text), [("all_reduce", 1)]);
}

#[test]
fn partitions_make_the_updates_that_they_have() {
    for name in ["add", "maximum"] {
        let text = partitioned_text(&format!(
            "(%a: tensor<6xi32>, {}, {}) -> tensor<6xi32> {{
               %0 = \"stablehlo.scatter\"(%a, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
               ^bb0(%x: tensor<i32>, %y: tensor<i32>):
                 %z = stablehlo.{name} %x, %y : tensor<i32>
                 stablehlo.return %z : tensor<i32>
               }}) : (tensor<6xi32>, tensor<8x1xi32>, tensor<8xi32>) -> tensor<6xi32>
               return %0 : tensor<6xi32> }}",
            split("i", "8x1xi32", r#"{"x"}, {}"#),
            split("u", "8xi32", r#"{"x"}"#)
        ));
        assert_eq!(collectives(&text), [("all_reduce", 1)], "{text}");
    }
}

#[test]
fn sums_that_are_asked_for_at_once_are_made_at_once() {
    let text = partitioned_text(&format!(
        "({}, {}) -> (tensor<6xf32>, tensor<6xf32>) {{
           %z = stablehlo.constant dense<0.0> : tensor<f32>
           %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8x6xf32>, tensor<f32>) -> tensor<6xf32>
           %1 = stablehlo.reduce(%b init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8x6xf32>, tensor<f32>) -> tensor<6xf32>
           %2 = sdy.sharding_constraint %0 <@mesh, [{{}}]> : tensor<6xf32>
           %3 = sdy.sharding_constraint %1 <@mesh, [{{}}]> : tensor<6xf32>
           return %2, %3 : tensor<6xf32>, tensor<6xf32> }}",
        split("a", "8x6xf32", r#"{"x"}, {}"#),
        split("b", "8x6xf32", r#"{"x"}, {}"#)
    ));
    assert_eq!(collectives(&text), [("all_reduce", 1)], "{text}");
}

#[test]
fn regions_with_loops_run_in_parts() {
    let gcd = "({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %r:2 = stablehlo.while(%g = %a, %h = %b) : tensor<i32>, tensor<i32>
      cond {
        %p = stablehlo.compare NE, %h, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      } do {
        %m = stablehlo.remainder %g, %h : tensor<i32>
        stablehlo.return %h, %m : tensor<i32>, tensor<i32>
      }
      %s = stablehlo.abs %r#0 : tensor<i32>
      stablehlo.return %s : tensor<i32>
    })";
    let x = split("x", "4x6xi32", r#"{"x"}, {"y"}"#);
    for (dims, result) in [("0", "tensor<6xi32>"), ("1", "tensor<4xi32>"), ("0, 1", "tensor<i32>")] {
        let text = partitioned_text(&format!(
            "({x}) -> {result} {{
               %init = stablehlo.constant dense<0> : tensor<i32>
               %0 = \"stablehlo.reduce\"(%x, %init) <{{dimensions = array<i64: {dims}>}}> {gcd}
                 : (tensor<4x6xi32>, tensor<i32>) -> {result}
               return %0 : {result} }}"
        ));
        let gathers = collectives(&text).iter().any(|(name, _)| *name == "all_gather");
        assert!(gathers, "the dimensions {dims} are divided:\n{text}");
    }
    let text = partitioned_text(&format!(
        "({x}) -> tensor<4x6xi32> {{
           %0 = \"stablehlo.map\"(%x, %x) <{{dimensions = array<i64: 0, 1>}}> {gcd}
             : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi32>
           return %0 : tensor<4x6xi32> }}"
    ));
    assert_eq!(collectives(&text), []);
}

/// Inside the program, an array that a constraint splits into unequal parts is split along the axes along which it has equal ones.
#[test]
fn constraints_that_split_unevenly_apply_along_the_first_axes() {
    let x = split("x", "8x6xf32", r#"{"x"}, {}"#);
    let program = partitioned_text(&format!(
        r#"({x}) -> tensor<8x6xf32> {{
            %0 = sdy.sharding_constraint %x <@mesh, [{{}}, {{"x", "y"}}]> : tensor<8x6xf32>
            %1 = stablehlo.cosine %0 : tensor<8x6xf32>
            return %1 : tensor<8x6xf32>
        }}"#
    ));
    assert_eq!(collectives(&program), [("all_to_all", 1)]);
}

/// Parameters and results that the program itself splits unevenly have shards of equal sizes, the last ones padded.
#[test]
fn arrays_may_enter_and_leave_in_unequal_parts() {
    let main = |size: usize| {
        let x = split("x", &format!("{size}x4xf32"), r#"{"x", "y"}, {}"#);
        let y = split("y", &format!("4x{size}xf32"), r#"{"y"}, {"x"}"#);
        let result = format!(r#"tensor<{size}xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"y", "x"}}]>}}"#);
        format!(
            r#"({x}, {y}) -> ({result}) {{
                %0 = stablehlo.transpose %y, dims = [1, 0] : (tensor<4x{size}xf32>) -> tensor<{size}x4xf32>
                %1 = stablehlo.multiply %x, %0 : tensor<{size}x4xf32>
                %zero = stablehlo.constant dense<0.0> : tensor<f32>
                %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [1]
                  : (tensor<{size}x4xf32>, tensor<f32>) -> tensor<{size}xf32>
                return %2 : tensor<{size}xf32>
            }}"#
        )
    };
    for size in 0..10 {
        partitioned_text(&main(size));
    }
}

/// An argument that is unreduced along axes, such as `max{"x"}`.
fn unreduced(name: &str, ty: &str, dims: &str, axes: &str) -> String {
    format!("%{name}: tensor<{ty}> {{sdy.sharding = #sdy.sharding<@mesh, [{dims}], unreduced={axes}>}}")
}

#[test]
fn partial_results_stay_partial_in_operations_that_commute_with_their_reduction() {
    let program = |reduction: &str, op: &str| {
        let axes = format!(r#"{reduction}{{"x"}}"#);
        let (a, b) = (unreduced("a", "8xi32", r#"{"y"}"#, &axes), unreduced("b", "8xi32", r#"{"y"}"#, &axes));
        let text = partitioned_text(&format!(
            "({a}, {b}) -> tensor<8xi32> {{
               %0 = stablehlo.{op} %a, %b : tensor<8xi32>
               return %0 : tensor<8xi32> }}"
        ));
        collectives(&text)
    };
    for (reduction, op) in [("", "add"), ("", "subtract"), ("max", "maximum"), ("min", "minimum")] {
        assert_eq!(program(reduction, op), [("all_reduce", 1)], "{op} of unreduced={reduction}");
    }
    for (reduction, op) in [("", "maximum"), ("max", "add"), ("max", "minimum"), ("min", "subtract")] {
        assert_eq!(program(reduction, op), [("all_reduce", 2)], "{op} of unreduced={reduction}");
    }
}

#[test]
fn some_of_the_axes_of_partial_results_can_be_reduced() {
    for (left, groups) in [("x", "[0, 1], [2, 3]"), ("y", "[0, 2], [1, 3]")] {
        let a = unreduced("a", "8xi32", "{}", r#"max{"x", "y"}"#);
        let text = partitioned_text(&format!(
            "({a}) -> tensor<8xi32> {{
               %0 = sdy.sharding_constraint %a <@mesh, [{{}}], unreduced=max{{\"{left}\"}}> : tensor<8xi32>
               return %0 : tensor<8xi32> }}"
        ));
        assert_eq!(collectives(&text), [("all_reduce", 2)], "{text}");
        let first = text.split("all_reduce").nth(1).unwrap();
        assert!(first.contains(&format!("dense<[{groups}]>")), "{text}");
    }
}

#[test]
fn a_maximum_whose_parts_are_wanted_where_its_terms_are_is_scattered() {
    for (terms, parts) in
        [(r#""x""#, r#""x""#), (r#""x", "y""#, r#""x", "y""#), (r#""x", "y""#, r#""y", "x""#)]
    {
        let a = unreduced("a", "8xi32", "{}", &format!("max{{{terms}}}"));
        let text = partitioned_text(&format!(
            "({a}) -> (tensor<8xi32> {{sdy.sharding = #sdy.sharding<@mesh, [{{{parts}}}]>}}) {{
               return %a : tensor<8xi32> }}"
        ));
        assert_eq!(collectives(&text), [("reduce_scatter", 1)], "{text}");
        assert!(text.contains("stablehlo.maximum"), "{text}");
    }
}

#[test]
fn a_broadcast_sends_its_operand_and_not_its_result() {
    let text = partitioned_text(&format!(
        "({}) -> tensor<6x5xi32> {{
           %z = stablehlo.constant dense<-2147483648> : tensor<i32>
           %0 = stablehlo.reduce(%a init: %z) applies stablehlo.maximum across dimensions = [0] : (tensor<8x6xi32>, tensor<i32>) -> tensor<6xi32>
           %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<6xi32>) -> tensor<6x5xi32>
           return %1 : tensor<6x5xi32> }}",
        split("a", "8x6xi32", r#"{"x"}, {}"#)
    ));
    assert_eq!(collectives(&text), [("all_reduce", 1)]);
    assert!(text.contains(") : (tensor<6xi32>) -> tensor<6xi32>"), "{text}");
}

#[test]
fn reductions_that_are_asked_for_at_once_are_made_at_once_if_they_are_the_same() {
    for (of_b, count) in [("max", 1), ("min", 2)] {
        let (a, b) = (
            unreduced("a", "6xi32", "{}", r#"max{"x"}"#),
            unreduced("b", "6xi32", "{}", &format!(r#"{of_b}{{"x"}}"#)),
        );
        let text = partitioned_text(&format!(
            "({a}, {b}) -> (tensor<6xi32>, tensor<6xi32>) {{
               %0 = sdy.sharding_constraint %a <@mesh, [{{}}]> : tensor<6xi32>
               %1 = sdy.sharding_constraint %b <@mesh, [{{}}]> : tensor<6xi32>
               return %0, %1 : tensor<6xi32>, tensor<6xi32> }}"
        ));
        assert_eq!(collectives(&text), [("all_reduce", count)], "{text}");
    }
}
