//! Groups along the axes of a mesh, in every form of a program.

use std::fs;
use std::path::Path;

use pjrt_stablehlo::ir::Body;
use pjrt_stablehlo::versions::Version;
use pjrt_stablehlo::{Module, parse, parse_hlo};

/// A file that MLIR wrote of a program of the repository's `tests/data/mlir`; see `data/generate.py`.
fn sample(file: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(file)).unwrap()
}

fn module(file: &str) -> Module {
    parse(sample(file)).unwrap()
}

/// The groups of all collectives of `main`.
fn groups(module: &Module) -> Vec<Vec<Vec<i64>>> {
    let body: &Body = &module.main().unwrap().body;
    let all = body.all_ops().filter_map(|(_, op)| op.kind.replica_groups());
    all.map(|groups| groups.groups(module).unwrap()).collect()
}

fn lists(lists: &[&[i64]]) -> Vec<Vec<i64>> {
    lists.iter().map(|list| list.to_vec()).collect()
}

/// Returns the expected replica groups of the collectives of `mesh_axes.mlir`.
fn of_mesh_axes() -> Vec<Vec<Vec<i64>>> {
    vec![
        lists(&[&[0, 2, 4, 6, 1, 3, 5, 7]]),
        lists(&[&[0, 3, 7, 2], &[6, 1, 5, 4]]),
        lists(&[&[0, 2], &[1, 3], &[4, 6], &[5, 7]]),
        lists(&[&[7, 6], &[5, 4], &[3, 2], &[1, 0]]),
        lists(&[&[0, 2, 4, 6], &[1, 3, 5, 7]]),
        (0..8).map(|id| vec![id]).collect(),
    ]
}

/// Returns the same for `mesh_in_place.mlir`.
fn of_mesh_in_place() -> Vec<Vec<Vec<i64>>> {
    vec![lists(&[&[0, 2], &[1, 3], &[4, 6], &[5, 7]]), lists(&[&[7, 6], &[5, 4], &[3, 2], &[1, 0]])]
}

#[test]
fn portable_and_native_bytecode_have_the_same_groups() {
    for (name, expected) in [("mesh_axes", of_mesh_axes()), ("mesh_in_place", of_mesh_in_place())] {
        let portable = module(&format!("{name}_1.17.0.mlirbc"));
        assert_eq!(portable.source_version, Some(Version::new(1, 17, 0)));
        assert_eq!(groups(&portable), expected);
        let native = module(&format!("{name}_native.mlirbc"));
        assert_eq!(native.source_version, None);
        assert_eq!(native.to_string(), portable.to_string());
    }
}

#[test]
fn hlo_has_the_same_groups() {
    let module = parse_hlo(sample("mesh_axes.hlo")).unwrap();
    let text = module.to_string();
    assert!(text.contains("#stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<"), "{text}");
    assert_eq!(groups(&module), of_mesh_axes());
}

#[test]
fn axes_are_printed_as_they_were_read() {
    let declared: &[&str] = &[
        "sym_name = \"mesh\"}> {stablehlo.mesh = {axes = [{name = \"x\", size = 4 : i64}, ",
        "<mesh = @mesh, axes = [#stablehlo.axis_ref<name = \"y\">, #stablehlo.axis_ref<name = \"x\">]>",
        "<mesh = @line, axes = [#stablehlo.axis_ref<name = \"x\", sub_axis_info = (2)2>]>",
        "<mesh = @mesh, axes = []>",
    ];
    let in_place: &[&str] =
        &["mesh = #stablehlo.mesh<", "device_ids=dense<[7, 6, 5, 4, 3, 2, 1, 0]> : tensor<8xi64>"];
    for (name, expected, parts) in
        [("mesh_axes", of_mesh_axes(), declared), ("mesh_in_place", of_mesh_in_place(), in_place)]
    {
        let text = module(&format!("{name}_1.17.0.mlirbc")).to_string();
        for part in parts {
            assert!(text.contains(part), "expected {part} in\n{text}");
        }
        let again = parse(text.as_str()).unwrap();
        assert_eq!(again.to_string(), text);
        assert_eq!(groups(&again), expected);
    }
}

/// A program with an operation on a `tensor<4x4xf32>` in these groups of two meshes.
fn program(op: &str, attributes: &str, groups: &str, result: &str) -> Result<Module, String> {
    let region = match op {
        "all_reduce" | "reduce_scatter" | "collective_reduce" => {
            r#" ({
            ^bb0(%x: tensor<f32>, %y: tensor<f32>):
              %s = "stablehlo.add"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>
              "stablehlo.return"(%s) : (tensor<f32>) -> ()
            })"#
        }
        _ => "",
    };
    let text = format!(
        r#"module {{
          "sdy.mesh"() <{{mesh = #sdy.mesh<["x"=4, "y"=2]>, sym_name = "m"}}> : () -> ()
          func.func @main(%a: tensor<4x4xf32>) -> {result} {{
            %0 = "stablehlo.{op}"(%a) <{{{attributes}replica_groups = #stablehlo.replica_group_mesh_axes<{groups}>}}>{region} : (tensor<4x4xf32>) -> {result}
            "func.return"(%0) : ({result}) -> ()
          }}
        }}"#
    );
    parse(text.as_str()).map_err(|error| error.to_string())
}

/// The attributes of every collective besides its groups, for groups of four, and its result.
const COLLECTIVES: &[(&str, &str, &str)] = &[
    ("all_reduce", "", "tensor<4x4xf32>"),
    ("all_gather", "all_gather_dim = 1 : i64, ", "tensor<4x16xf32>"),
    (
        "all_to_all",
        "split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 4 : i64, ",
        "tensor<1x16xf32>",
    ),
    ("reduce_scatter", "scatter_dimension = 1 : i64, ", "tensor<4x1xf32>"),
    ("collective_broadcast", "", "tensor<4x4xf32>"),
    ("collective_reduce", "", "tensor<4x4xf32>"),
];

#[test]
fn every_collective_can_be_along_axes_that_the_mesh_has() {
    for (op, attributes, result) in COLLECTIVES {
        let x = r#"axes = [#stablehlo.axis_ref<name = "x">]"#;
        let module = program(op, attributes, &format!("mesh = @m, {x}"), result).unwrap();
        assert_eq!(groups(&module), [[[0, 2, 4, 6], [1, 3, 5, 7]]], "{op}");
        // MLIR reads programs whose meshes are declared elsewhere; the groups are then unknown.
        let module = program(op, attributes, &format!("mesh = @n, {x}"), result).unwrap();
        let ops = &module.main().unwrap().body;
        let groups_of = ops.all_ops().find_map(|(_, op)| op.kind.replica_groups()).unwrap();
        let error = groups_of.groups(&module).unwrap_err().to_string();
        assert!(error.contains("the module declares no mesh '@n'"), "{error}");
        for (wrong, expected) in [
            (r#"mesh = @m, axes = [#stablehlo.axis_ref<name = "z">]"#.to_owned(), "the mesh has no axis 'z'"),
            (
                r#"mesh = @m, axes = [#stablehlo.axis_ref<name = "x", sub_axis_info = (1)3>]"#.to_owned(),
                "the sub-axis (1)3 is not a proper part of the axis 'x' of size 4",
            ),
            (
                r#"mesh = @m, axes = [#stablehlo.axis_ref<name = "x">, #stablehlo.axis_ref<name = "x">]"#
                    .to_owned(),
                "the parts of the axis 'x' overlap",
            ),
            (
                format!(
                    r#"mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 0>]>, {x}"#
                ),
                "positive sizes, found \"x\"=0",
            ),
            (
                format!(
                    r#"mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 4>], device_ids = dense<[0, 1, 1, 2]> : tensor<4xi64>>, {x}"#
                ),
                "expected each device id from 0 to 3 exactly once, found 1",
            ),
        ] {
            let error = program(op, attributes, &wrong, result).unwrap_err();
            assert!(error.contains(&format!("stablehlo.{op}")), "{error}");
            assert!(
                error.contains(&format!("replica_groups: {expected}")) || error.contains(expected),
                "{error}"
            );
        }
    }
}

#[test]
fn the_size_of_groups_along_axes_counts() {
    let y = r#"mesh = @m, axes = [#stablehlo.axis_ref<name = "y">]"#;
    let of = |op: &str| *COLLECTIVES.iter().find(|(name, ..)| *name == op).unwrap();
    let (op, attributes, result) = of("all_to_all");
    let error = program(op, attributes, y, result).unwrap_err();
    assert!(error.contains("C8") && error.contains("expected groups of 4 processes, found 2"), "{error}");
    let (op, attributes, result) = of("reduce_scatter");
    let error = program(op, attributes, y, result).unwrap_err();
    assert!(error.contains("C8") && error.contains("expected 2 in dimension 1"), "{error}");
    program(op, attributes, y, "tensor<4x2xf32>").unwrap();
}

#[test]
fn meshes_have_a_limited_number_of_axes() {
    let mesh = |count: usize| {
        let axes: Vec<String> = (0..count).map(|axis| format!("\"a{axis}\"=1")).collect();
        parse(format!("sdy.mesh @m = <[{}]>", axes.join(", ")).as_str()).map_err(|error| error.to_string())
    };
    mesh(128).unwrap();
    assert!(mesh(129).unwrap_err().contains("expected at most 128 axes, found 129"));
}
