//! Collectives in groups along the axes of a mesh have the same results as in equal groups as lists.

use refcpu_engine::compile::{CompileError, CompileOptions, compile};
use refcpu_engine::exec::{Input, RunOptions, Runtime, run};
use refcpu_engine::storage::{Allocator, AllocatorOptions, Array};
use refcpu_kernels::{DType, Pool};

/// The meshes, and groups along their axes with the equal lists.
const MESHES: &str = r#"
    sdy.mesh @grid = <["x"=4, "y"=2]>
    sdy.mesh @permuted = <["a"=2, "b"=2, "c"=2], device_ids=[0, 3, 6, 1, 7, 2, 5, 4]>"#;
const GROUPS: &[(&str, &str)] = &[
    (r#"mesh = @grid, axes = [#stablehlo.axis_ref<name = "x">]"#, "[[0, 2, 4, 6], [1, 3, 5, 7]]"),
    (
        r#"mesh = @permuted, axes = [#stablehlo.axis_ref<name = "c">, #stablehlo.axis_ref<name = "a">]"#,
        "[[0, 7, 3, 2], [6, 5, 1, 4]]",
    ),
    (
        r#"mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 8>]>, axes = [#stablehlo.axis_ref<name = "x", sub_axis_info = (1)4>]"#,
        "[[0, 2, 4, 6], [1, 3, 5, 7]]",
    ),
];

/// Every collective on a `tensor<4x4xf32>` in groups of four: its attributes, and its result.
const COLLECTIVES: &[(&str, &str, &str)] = &[
    ("all_reduce", "use_global_device_ids, ", "4x4"),
    ("all_reduce", "", "4x4"),
    ("all_gather", "all_gather_dim = 1 : i64, use_global_device_ids, ", "4x16"),
    ("all_to_all", "split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 4 : i64, ", "1x16"),
    ("reduce_scatter", "scatter_dimension = 1 : i64, use_global_device_ids, ", "4x1"),
    ("collective_broadcast", "", "4x4"),
];

fn program((op, attributes, dims): (&str, &str, &str), channel: u8, groups: &str) -> String {
    let region = match op {
        "all_reduce" | "reduce_scatter" => {
            "({ ^bb0(%x: tensor<f32>, %y: tensor<f32>):
                %s = stablehlo.add %x, %y : tensor<f32>
                stablehlo.return %s : tensor<f32>
             })"
        }
        _ => "",
    };
    format!(
        r#"module {{ {MESHES}
          func.func @main(%a: tensor<4x4xf32>) -> tensor<{dims}xf32> {{
            %0 = "stablehlo.{op}"(%a) <{{{attributes}channel_handle = #stablehlo.channel_handle<handle = {channel}, type = 1>,
              replica_groups = {groups}}}> {region} : (tensor<4x4xf32>) -> tensor<{dims}xf32>
            return %0 : tensor<{dims}xf32>
          }}
        }}"#
    )
}

/// Returns the results of all devices, each of which has different elements.
fn results(text: &str, options: &CompileOptions) -> Result<Vec<Vec<f32>>, CompileError> {
    let module = pjrt_stablehlo::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let compiled = compile(&module, options)?;
    let runtime = Runtime::new(Pool::inline(), Allocator::new(AllocatorOptions::default()));
    let device = |device: usize| {
        let bytes: Vec<u8> = (0..16).flat_map(|i| ((device * 100 + i) as f32).to_le_bytes()).collect();
        let array = Array::from_bytes(&runtime.allocator, DType::F32, &[4, 4], &bytes).unwrap();
        vec![Input { array, donatable: false }]
    };
    let results =
        run(&compiled.plan, &runtime, (0..8).map(device).collect(), &RunOptions::default()).unwrap();
    let numbers = |array: &Array| {
        array.bytes().unwrap().chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
    };
    Ok(results.iter().map(|device| numbers(&device[0])).collect())
}

#[test]
fn groups_along_axes_are_those_of_the_lists() {
    let replicas = CompileOptions { num_replicas: 8, ..CompileOptions::default() };
    let partitions = CompileOptions { num_partitions: 8, ..CompileOptions::default() };
    for &collective in COLLECTIVES {
        for (axes, lists) in GROUPS {
            let axes = format!("#stablehlo.replica_group_mesh_axes<{axes}>");
            let lists = format!("dense<{lists}> : tensor<2x4xi64>");
            // Numbers of replicas without a channel, of partitions or of all processes with one.
            for (options, channel) in [(&replicas, 0), (&partitions, 1)] {
                let (op, attributes, dims) = collective;
                let is_of_replicas = op == "all_reduce" && attributes.is_empty() && channel == 1;
                if is_of_replicas || channel == 0 && attributes.contains("use_global_device_ids") {
                    continue;
                }
                let by_axes = results(&program((op, attributes, dims), channel, &axes), options).unwrap();
                let by_lists = results(&program((op, attributes, dims), channel, &lists), options).unwrap();
                assert_eq!(by_axes, by_lists, "{op} in {axes}");
                assert!(by_axes[0] != by_axes[1], "{op}: {by_axes:?}");
            }
        }
    }
}

#[test]
fn devices_are_gathered_in_the_order_of_the_axes() {
    let axes = "#stablehlo.replica_group_mesh_axes<mesh = @grid, axes = [#stablehlo.axis_ref<name = \"y\">, #stablehlo.axis_ref<name = \"x\">]>";
    let gather = ("all_gather", "all_gather_dim = 0 : i64, use_global_device_ids, ", "32x4");
    let options = CompileOptions { num_partitions: 8, ..CompileOptions::default() };
    for result in results(&program(gather, 1, axes), &options).unwrap() {
        let devices: Vec<f32> = result.iter().step_by(16).map(|first| first / 100.0).collect();
        assert_eq!(devices, [0., 2., 4., 6., 1., 3., 5., 7.]);
    }
}

#[test]
fn a_mesh_of_more_devices_than_the_program_has_is_refused() {
    let axes = "#stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = \"x\", size = 1099511627776>]>, axes = []>";
    let options = CompileOptions { num_partitions: 8, ..CompileOptions::default() };
    let error = results(&program(COLLECTIVES[0], 1, axes), &options).unwrap_err().to_string();
    assert!(error.contains("expected at most 8 positions"), "{error}");
}
