//! Custom calls that the host partitions.

use pjrt_sharding::{CallPartitioner, Error, ErrorKind, PartitionedCall, Sharding, WholeCall};
use refcpu_engine::compile::{CompileError, CompileErrorKind, CompileOptions, Parts, compile};
use refcpu_engine::exec::{Input, RunOptions, Runtime, run};
use refcpu_engine::storage::{Allocator, AllocatorOptions, Array};
use refcpu_kernels::{DType, Pool};
use std::sync::Arc;

/// The host of the tests: calls of `sums` are the sums of rows, less the operand's error function, computed by columns.
struct Host(&'static str);

/// A mesh of 2 by 2.
const PARTITIONS: usize = 4;

/// Returns the sharding that splits each dimension along one of these axes of the mesh.
fn along(axes: &[Option<usize>]) -> Option<Sharding> {
    let of_partition =
        |p: usize| axes.iter().map(|axis| axis.map_or(0, |axis| [p / 2, p % 2][axis])).collect();
    axes.iter().any(Option::is_some).then(|| Sharding {
        parts: axes.iter().map(|axis| if axis.is_some() { 2 } else { 1 }).collect(),
        position: (0..PARTITIONS).map(of_partition).collect(),
        reduction: None,
    })
}

/// On one partition: half of the columns of all rows.
const BY_COLUMNS: &str = r#"
module {
  func.func public @main(%a: tensor<4x3xf32>) -> tensor<4x3xf32> {
    %e = stablehlo.composite "chlo.erf" %a {decomposition = @erf} : (tensor<4x3xf32>) -> tensor<4x3xf32>
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %s = func.call @rows(%a, %z) : (tensor<4x3xf32>, tensor<f32>) -> tensor<4xf32>
    %t = "stablehlo.all_reduce"(%s) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
        replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %sum = stablehlo.add %x, %y : tensor<f32>
        stablehlo.return %sum : tensor<f32>
      }) : (tensor<4xf32>) -> tensor<4xf32>
    %b = stablehlo.broadcast_in_dim %t, dims = [0] : (tensor<4xf32>) -> tensor<4x3xf32>
    %r = stablehlo.subtract %b, %e : tensor<4x3xf32>
    return %r : tensor<4x3xf32>
  }
  func.func private @rows(%a: tensor<4x3xf32>, %z: tensor<f32>) -> tensor<4xf32> {
    %s = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1]
      : (tensor<4x3xf32>, tensor<f32>) -> tensor<4xf32>
    return %s : tensor<4xf32>
  }
  func.func private @erf(%a: tensor<4x3xf32>) -> tensor<4x3xf32> {
    %r = chlo.erf %a : tensor<4x3xf32> -> tensor<4x3xf32>
    return %r : tensor<4x3xf32>
  }
}"#;

/// The sum of the parts of the partitions along the second axis.
const SUM_ALONG_Y: &str = r#"
func.func public @main(%a: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %s = "stablehlo.all_reduce"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
      replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %sum = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %sum : tensor<f32>
    }) : (tensor<4x3xf32>) -> tensor<4x3xf32>
  return %s : tensor<4x3xf32>
}"#;

impl CallPartitioner for Host {
    fn partition(&self, call: &WholeCall<'_>) -> Result<PartitionedCall, Error> {
        let columns = along(&[None, Some(0)]);
        let given = |operand, result| {
            Ok(PartitionedCall { program: BY_COLUMNS.into(), operands: vec![operand], results: vec![result] })
        };
        match self.0 {
            "sums" => {
                assert_eq!((call.partitions, call.backend_config), (PARTITIONS, &b"key"[..]));
                let (ty, sharding) = &call.operands[0];
                assert_eq!((ty.dims(), sharding), (&[4, 6][..], &along(&[Some(1), Some(0)])));
                assert_eq!(call.results, call.operands);
                given(columns.clone(), columns)
            }
            "whole" => {
                assert_eq!(call.operands[0].1, None);
                let program = SUM_ALONG_Y.into();
                Ok(PartitionedCall { program, operands: vec![None], results: vec![None] })
            }
            "cuts" => {
                let program = BY_COLUMNS
                    .replace("4x3", "2x3")
                    .replace("tensor<4x", "tensor<2x")
                    .replace("<4xf32>", "<2xf32>");
                let rows = along(&[Some(0), None]);
                Ok(PartitionedCall {
                    program: program.into(),
                    operands: vec![rows.clone()],
                    results: vec![rows],
                })
            }
            "other_type" => given(columns, None),
            "crossed" => {
                let mut crossed = columns.clone();
                for (p, position) in crossed.iter_mut().flat_map(|c| c.position.iter_mut().enumerate()) {
                    *position = vec![0, usize::from(p == 1 || p == 2)];
                }
                given(crossed.clone(), crossed)
            }
            "unreadable" => {
                Ok(PartitionedCall { program: b"module {".into(), operands: vec![None], results: vec![None] })
            }
            _ => Err(Error::new(ErrorKind::Invalid, "not today")),
        }
    }

    fn infer(&self, _: &WholeCall<'_>) -> Result<Option<Vec<Option<Sharding>>>, Error> {
        panic!("a program for Shardy has rules")
    }
}

fn find(target: &str) -> Option<Arc<dyn CallPartitioner>> {
    let known = ["sums", "whole", "cuts", "other_type", "crossed", "unreadable", "refused"];
    let name = known.into_iter().find(|known| *known == target)?;
    Some(Arc::new(Host(name)))
}

fn options() -> CompileOptions {
    CompileOptions {
        num_partitions: PARTITIONS,
        use_spmd_partitioning: true,
        propagate_to_results: vec![true],
        find_partitioner: find,
        parts: Parts::Never,
        ..CompileOptions::default()
    }
}

const RULE: &str = "sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=4, j=6}, custom>";

/// A program that calls a target in a function, with a function of the name that the host's program has, too.
fn program(target: &str) -> String {
    format!(
        r#"module {{
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func public @main(%a: tensor<4x6xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"y"}}, {{"x"}}]>}}) -> tensor<4x6xf32> {{
    %0 = stablehlo.composite "chlo.erf" %a {{decomposition = @erf}} : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %1 = func.call @calls(%0) : (tensor<4x6xf32>) -> tensor<4x6xf32>
    return %1 : tensor<4x6xf32>
  }}
  func.func private @calls(%a: tensor<4x6xf32>) -> tensor<4x6xf32> {{
    %0 = stablehlo.custom_call @{target}(%a) {{backend_config = "key", {RULE}}}
      : (tensor<4x6xf32>) -> tensor<4x6xf32>
    return %0 : tensor<4x6xf32>
  }}
  func.func private @erf(%a: tensor<4x6xf32>) -> tensor<4x6xf32> {{
    %r = chlo.erf %a : tensor<4x6xf32> -> tensor<4x6xf32>
    return %r : tensor<4x6xf32>
  }}
}}"#
    )
}

fn partition(text: &str, options: &CompileOptions) -> Result<String, CompileError> {
    let module = pjrt_stablehlo::parse(text.as_bytes()).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let program = compile(&module, options)?.with_partitions_of_calls;
    Ok(program.expect("there is such a call").to_string())
}

fn results(text: &str) -> Vec<f32> {
    let module = pjrt_stablehlo::parse(text.as_bytes()).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let plan = compile(&module, &options()).unwrap_or_else(|e| panic!("{e}\n{text}")).plan;
    let runtime = Runtime::new(Pool::inline(), Allocator::new(AllocatorOptions::default()));
    let bytes: Vec<u8> = (0..24u8).flat_map(|i| (f32::from(i) / 8.0 - 1.0).to_le_bytes()).collect();
    let array = Array::from_bytes(&runtime.allocator, DType::F32, &[4, 6], &bytes).unwrap();
    let inputs = vec![vec![Input { array, donatable: false }]];
    let results = run(&plan, &runtime, inputs, &RunOptions::default()).unwrap();
    let bytes = results[0][0].bytes().unwrap().to_vec();
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

#[test]
fn the_hosts_program_takes_the_place_of_a_call() {
    let text = partition(&program("sums"), &options()).unwrap();
    assert!(text.contains("sdy.manual_computation") && !text.contains("custom_call"), "{text}");
    let whole = program("sums").replace(
        &format!("%0 = stablehlo.custom_call @sums(%a) {{backend_config = \"key\", {RULE}}}"),
        r#"%e = stablehlo.composite "chlo.erf" %a {decomposition = @erf} : (tensor<4x6xf32>) -> tensor<4x6xf32>
           %z = stablehlo.constant dense<0.0> : tensor<f32>
           %s = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1]
             : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
           %b = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
           %0 = stablehlo.subtract %b, %e"#,
    );
    let whole = whole.replace(
        "%0 = stablehlo.subtract %b, %e\n      : (tensor<4x6xf32>) -> tensor<4x6xf32>",
        "%0 = stablehlo.subtract %b, %e : tensor<4x6xf32>",
    );
    let (got, expected) = (results(&text), results(&whole));
    assert!(got.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-5), "{got:?}\n{expected:?}");
}

#[test]
fn a_result_that_is_wanted_whole_is_split_as_the_rule_says_of_the_operands() {
    // The host of the tests checks that it is told so.
    let text = program("sums").replacen(
        "-> tensor<4x6xf32> {",
        "-> (tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {",
        1,
    );
    let options = CompileOptions { propagate_to_results: vec![false], ..options() };
    let text = partition(&text, &options).unwrap();
    assert!(text.contains("sdy.manual_computation"), "{text}");
}

#[test]
fn a_program_without_such_calls_stays_as_it_is() {
    let module = pjrt_stablehlo::parse(program("unknown").as_bytes()).unwrap();
    assert!(!pjrt_sharding::has_partitioned_calls(&module, find));
    let error = compile(&module, &options()).err().unwrap();
    assert_eq!(error.kind, CompileErrorKind::Unimplemented);
    assert!(error.to_string().contains("\"unknown\""), "{error}");
}

#[test]
fn what_does_not_fit_is_an_error_of_the_call() {
    for (target, kind, said) in [
        ("other_type", CompileErrorKind::InvalidArgument, "(tensor<4x3xf32>) -> (tensor<4x6xf32>)"),
        ("unreadable", CompileErrorKind::InvalidArgument, "cannot be parsed"),
        ("refused", CompileErrorKind::InvalidArgument, "not today"),
    ] {
        let error = partition(&program(target), &options()).unwrap_err();
        assert_eq!((error.kind, &*error.op), (kind, "stablehlo.custom_call"), "{error}");
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[test]
fn calls_may_split_along_a_mesh_with_another_order_of_devices() {
    let text = partition(&program("crossed"), &options()).unwrap();
    assert!(text.contains("device_ids=[0, 3, 1, 2]"), "{text}");
}

#[test]
fn calls_on_parts_are_not_partitioned_once_more() {
    let of_one = CompileOptions { use_spmd_partitioning: false, ..options() };
    let error = partition(&program("sums"), &of_one).unwrap_err();
    assert_eq!(
        (error.kind, &*error.op),
        (CompileErrorKind::Unimplemented, "stablehlo.custom_call"),
        "{error}"
    );
}

#[test]
fn in_a_computation_on_parts_a_call_is_on_each_part_what_the_partition_of_whole_arrays_is() {
    let text = |target: &str| {
        format!(
            r#"module {{
      sdy.mesh @mesh = <["x"=2, "y"=2]>
      func.func public @main(%a: tensor<4x6xf32>) -> tensor<4x6xf32> {{
        %r = sdy.manual_computation(%a) in_shardings=[<@mesh, [{{}}, {{"x"}}]>] out_shardings=[<@mesh, [{{}}, {{"x"}}]>]
            manual_axes={{"x"}} (%b: tensor<4x3xf32>) {{
          %c = stablehlo.custom_call @{target}(%b) : (tensor<4x3xf32>) -> tensor<4x3xf32>
          sdy.return %c : tensor<4x3xf32>
        }} : (tensor<4x6xf32>) -> tensor<4x6xf32>
        return %r : tensor<4x6xf32>
      }}
    }}"#
        )
    };
    let inner = partition(&text("whole"), &options()).unwrap();
    assert_eq!(inner.matches("\"sdy.manual_computation\"").count(), 2, "{inner}");
    let twice: Vec<f32> = (0..24u8).map(|i| f32::from(i) / 4.0 - 2.0).collect();
    assert_eq!(results(&inner), twice);
    let error = partition(&text("cuts"), &options()).unwrap_err();
    assert_eq!(error.kind, CompileErrorKind::Unimplemented);
    assert!(error.to_string().contains("on parts already"), "{error}");
}
