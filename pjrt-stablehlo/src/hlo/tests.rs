//! Programs that the corpus does not have, and damaged ones.

use std::collections::BTreeMap;

use prost::Message;

use super::{elementwise, proto};
use crate::ir::{Attribute, Module};
use crate::{Error, ErrorKind, parse, parse_hlo, parse_hlo_with_config};

const PRED: i32 = 1;
const S32: i32 = 4;
const F32: i32 = 11;
const TUPLE: i32 = 13;
const TOKEN: i32 = 17;

fn shape(element_type: i32, dimensions: &[i64]) -> proto::Shape {
    proto::Shape { element_type, dimensions: dimensions.into(), ..proto::Shape::default() }
}

fn tuple(tuple_shapes: &[proto::Shape]) -> proto::Shape {
    proto::Shape { element_type: TUPLE, tuple_shapes: tuple_shapes.into(), ..proto::Shape::default() }
}

/// Returns an instruction named after its opcode and id.
fn instruction(id: i64, opcode: &str, shape: proto::Shape, operands: &[i64]) -> proto::Instruction {
    proto::Instruction {
        name: format!("{opcode}.{id}"),
        opcode: opcode.to_owned(),
        shape: Some(shape),
        id,
        operand_ids: operands.into(),
        ..proto::Instruction::default()
    }
}

fn parameter(id: i64, number: i64, shape: proto::Shape) -> proto::Instruction {
    proto::Instruction { parameter_number: number, ..instruction(id, "parameter", shape, &[]) }
}

/// Returns a computation whose root is its last instruction.
fn computation(id: i64, instructions: &[proto::Instruction]) -> proto::Computation {
    proto::Computation {
        name: format!("computation.{id}"),
        id,
        root_id: instructions.last().map_or(0, |last| last.id),
        instructions: instructions.iter().map(|instruction| instruction.encode_to_vec().into()).collect(),
    }
}

/// Returns a module whose entry is its last computation.
fn module(computations: Vec<proto::Computation>) -> proto::Module {
    proto::Module {
        name: "test".to_owned(),
        entry_computation_id: computations.last().map_or(0, |last| last.id),
        computations,
        ..proto::Module::default()
    }
}

fn read(computations: Vec<proto::Computation>) -> Result<Module, Error> {
    let bytes = module(computations).encode_to_vec();
    let found = parse(bytes.clone());
    assert_eq!(found.as_ref().err(), parse_hlo(bytes).as_ref().err());
    found
}

/// Reads one computation.
fn read_entry(instructions: &[proto::Instruction]) -> Result<Module, Error> {
    read(vec![computation(0, instructions)])
}

/// Returns the addition of two numbers.
fn addition(id: i64) -> proto::Computation {
    let scalar = || shape(F32, &[]);
    computation(
        id,
        &[parameter(0, 0, scalar()), parameter(1, 1, scalar()), instruction(2, "add", scalar(), &[0, 1])],
    )
}

#[track_caller]
fn assert_contains(module: &Module, parts: &[&str]) {
    let text = module.to_string();
    for part in parts {
        assert!(text.contains(part), "expected {part} in\n{text}");
    }
}

#[test]
fn tuples_of_parameters_and_results_are_taken_apart() {
    let (a, b) = (shape(F32, &[2]), shape(S32, &[]));
    let module = read_entry(&[
        parameter(0, 0, tuple(&[a.clone(), b.clone()])),
        proto::Instruction { tuple_index: 0, ..instruction(1, "get-tuple-element", a.clone(), &[0]) },
        instruction(2, "negate", a.clone(), &[1]),
        instruction(3, "tuple", tuple(&[tuple(&[a.clone(), b]), a]), &[0, 2]),
    ])
    .unwrap();
    let main = module.main().unwrap();
    assert_eq!((main.argument_types().len(), main.result_types().len()), (2, 3));
    assert_eq!(main.body.num_ops(), 2);
}

#[test]
fn ids_may_have_a_computation_in_their_upper_half() {
    let array = shape(F32, &[2]);
    let upper = 7 << 32;
    let mut entry =
        computation(7, &[parameter(upper, 0, array.clone()), instruction(upper | 1, "abs", array, &[0])]);
    entry.root_id = upper | 1;
    assert_contains(&read(vec![entry]).unwrap(), &["stablehlo.abs"]);
}

#[test]
fn operands_and_called_computations_stand_before_their_users() {
    let array = shape(F32, &[2]);
    let error = read_entry(&[instruction(0, "abs", array.clone(), &[1]), parameter(1, 0, array.clone())])
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Malformed);
    assert!(error.to_string().contains("abs 'abs.0'"), "{error}");

    let call = |id| proto::Instruction {
        called_computation_ids: vec![id],
        ..instruction(1, "call", array.clone(), &[0])
    };
    let entry = |id| computation(0, &[parameter(0, 0, array.clone()), call(id)]);
    for id in [0, 5] {
        let error = read(vec![entry(id)]).unwrap_err();
        assert!(error.message.contains("does not precede the calling one"), "{error}");
    }
    let twice = [parameter(0, 0, array.clone()), parameter(0, 1, array.clone())];
    assert!(read_entry(&twice).unwrap_err().message.contains("the same id"));
    let error = read(vec![proto::Computation { root_id: 9, ..entry(5) }]).unwrap_err();
    assert!(error.message.contains("called") || error.message.contains("calls"), "{error}");
    let gap = [parameter(0, 1, array)];
    assert!(read_entry(&gap).unwrap_err().message.contains("expected parameter 0"));
}

/// Computations of which each applies the one before `times` times.
fn tower(height: i64, times: i64) -> Vec<proto::Computation> {
    let scalar = || shape(F32, &[]);
    let mut computations =
        vec![computation(0, &[parameter(0, 0, scalar()), instruction(1, "abs", scalar(), &[0])])];
    for id in 1..=height {
        let mut instructions = vec![parameter(0, 0, scalar())];
        for place in 1..=times {
            instructions.push(proto::Instruction {
                called_computation_ids: vec![id - 1],
                ..instruction(place, "map", scalar(), &[place - 1])
            });
        }
        computations.push(computation(id, &instructions));
    }
    computations
}

#[test]
fn shared_and_nested_computations_have_limits() {
    assert!(read(tower(4, 2)).is_ok());
    let error = read(tower(40, 2)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::TooLarge, "{error}");
    assert!(read(tower(500, 1)).is_ok());
    let error = read(tower(600, 1)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::TooLarge, "{error}");
}

#[test]
fn both_messages_are_recognised() {
    let array = shape(F32, &[2]);
    let module = module(vec![computation(0, &[parameter(0, 0, array)])]);
    let config = proto::ModuleConfig { replica_count: 2, num_partitions: 4 };
    let wrapped =
        proto::ModuleWithConfig { module: Some(module.clone()), config: Some(config) }.encode_to_vec();
    let read = parse(wrapped.clone()).unwrap();
    assert_eq!(read.integer_attribute("mhlo.num_replicas"), Some(2));
    assert_eq!(read.integer_attribute("mhlo.num_partitions"), Some(4));
    assert_eq!(read.to_string(), parse_hlo_with_config(wrapped.clone()).unwrap().to_string());
    assert!(parse_hlo(wrapped).is_err());
    assert_eq!(parse(module.encode_to_vec()).unwrap().name.as_deref(), Some("test"));
    assert!(parse_hlo_with_config(module.encode_to_vec()).is_err());
    for other in [vec![], vec![0x0a, 0x01], vec![0xff; 40]] {
        assert_eq!(
            parse(other.clone()).unwrap_err().kind == ErrorKind::Unsupported,
            !other.is_empty(),
            "{other:?}"
        );
        assert!(parse_hlo(other).is_err());
    }
}

#[test]
fn what_stablehlo_lacks_is_named() {
    let array = shape(F32, &[2]);
    let operand = || parameter(0, 0, array.clone());
    for opcode in ["rng-get-and-update-state", "add_two", "uniform-quantize", "return"] {
        let error = read_entry(&[operand(), instruction(1, opcode, array.clone(), &[0])]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unsupported);
        assert!(error.to_string().contains(&format!("{opcode} '{opcode}.1'")), "{error}");
    }
    let sparse = proto::Instruction {
        dot_sparsity: vec![prost::bytes::Bytes::new()],
        ..instruction(1, "dot", array.clone(), &[0, 0])
    };
    assert_eq!(read_entry(&[operand(), sparse]).unwrap_err().kind, ErrorKind::Unsupported);
    let message = prost::bytes::Bytes::from_static(b"\x0a\x00");
    let sparse = proto::Instruction {
        sparsity_config: message.clone(),
        ..instruction(1, "multiply", array.clone(), &[0, 0])
    };
    let configured = proto::Instruction {
        custom_call_target: "f".to_owned(),
        backend_config_payload: message,
        ..instruction(1, "custom-call", array.clone(), &[0])
    };
    for (instruction, field) in [(sparse, "sparsity_config"), (configured, "backend_config_payload")] {
        let error = read_entry(&[operand(), instruction]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unsupported);
        assert!(error.message.contains(field), "{error}");
    }
}

#[test]
fn shapes_must_be_those_of_values() {
    let array = shape(F32, &[2]);
    let copy = instruction(1, "copy", shape(F32, &[3]), &[0]);
    let error = read_entry(&[parameter(0, 0, array.clone()), copy]).unwrap_err();
    assert_eq!(error.message, "expected a value of the shape (tensor<3xf32>), found (tensor<2xf32>)");
    let element =
        proto::Instruction { tuple_index: 2, ..instruction(1, "get-tuple-element", array.clone(), &[0]) };
    let error = read_entry(&[parameter(0, 0, tuple(&[array])), element]).unwrap_err();
    assert!(error.message.contains("a tuple with an element 2"), "{error}");
}

#[test]
fn every_elementwise_opcode_has_a_counterpart() {
    let opcodes = "abs add and atan2 cbrt ceil clamp compare complex convert cosine count-leading-zeros divide exponential \
        exponential-minus-one floor imag is-finite log log-plus-one logistic maximum minimum multiply negate not or \
        partition-id popcnt power real reduce-precision remainder replica-id round-nearest-afz round-nearest-even rsqrt \
        select shift-left shift-right-arithmetic shift-right-logical sign sine sqrt subtract tan tanh xor";
    for opcode in opcodes.split_whitespace() {
        assert!(elementwise::counterpart(opcode).is_some(), "{opcode}");
    }
}

#[test]
fn aliases_donors_and_attributes_belong_to_arrays() {
    let array = shape(F32, &[2]);
    let sharding = proto::Sharding { r#type: 4, ..proto::Sharding::default() };
    let attributes = proto::FrontendAttributes { map: BTreeMap::from([("a".to_owned(), "b".to_owned())]) };
    let mut module = module(vec![computation(
        0,
        &[
            proto::Instruction {
                sharding: Some(sharding.clone()),
                frontend_attributes: Some(attributes.clone()),
                ..parameter(0, 0, tuple(&[array.clone(), array.clone()]))
            },
            parameter(1, 1, array.clone()),
            proto::Instruction {
                frontend_attributes: Some(attributes),
                ..instruction(2, "abs", array.clone(), &[1])
            },
            proto::Instruction {
                sharding: Some(proto::Sharding {
                    r#type: 2,
                    tuple_shardings: vec![proto::Sharding::default(), sharding],
                    ..proto::Sharding::default()
                }),
                ..instruction(3, "tuple", tuple(&[array.clone(), array]), &[1, 2])
            },
        ],
    )]);
    let alias =
        proto::AliasEntry { output_shape_index: vec![1], parameter_number: 1, parameter_shape_index: vec![] };
    module.input_output_alias = Some(proto::InputOutputAlias { entries: vec![alias.clone()] });
    let donor = proto::BufferDonorEntry { parameter_number: 0, parameter_shape_index: vec![1] };
    module.buffer_donor = Some(proto::BufferDonor { entries: vec![donor] });
    let read = parse(module.encode_to_vec()).unwrap();
    let main = read.main().unwrap();
    assert_eq!(main.argument_attribute(2, "tf.aliasing_output").and_then(Attribute::as_i64), Some(1));
    assert_eq!(main.argument_attribute(1, "jax.buffer_donor").and_then(Attribute::as_bool), Some(true));
    assert_eq!(main.argument_attribute(0, "mhlo.sharding").and_then(Attribute::as_str), Some("{manual}"));
    assert_eq!(main.result_attribute(0, "mhlo.sharding").and_then(Attribute::as_str), Some("{replicated}"));
    assert!(main.argument_attribute(1, "mhlo.frontend_attributes").is_some());
    assert_contains(&read, &["mhlo.frontend_attributes = {a = \"b\"}"]);

    let outside = proto::AliasEntry { output_shape_index: vec![2], ..alias };
    module.input_output_alias = Some(proto::InputOutputAlias { entries: vec![outside] });
    assert!(parse(module.encode_to_vec()).unwrap_err().message.contains("input_output_alias"));
}

#[test]
fn asynchronous_operations_run_where_they_start() {
    let (part, whole) = (shape(F32, &[2]), shape(F32, &[4]));
    let context = shape(8, &[]);
    let module = read(vec![
        addition(5),
        computation(
            6,
            &[
                parameter(0, 0, part.clone()),
                proto::Instruction {
                    called_computation_ids: vec![5],
                    ..instruction(1, "all-reduce-start", part.clone(), &[0])
                },
                instruction(2, "all-reduce-done", part.clone(), &[1]),
                proto::Instruction {
                    dimensions: vec![0],
                    replica_groups: vec![proto::ReplicaGroup { replica_ids: vec![0, 1] }],
                    ..instruction(3, "all-gather-start", tuple(&[part.clone(), whole.clone()]), &[2])
                },
                instruction(4, "all-gather-done", whole.clone(), &[3]),
                proto::Instruction {
                    source_target_pairs: vec![proto::SourceTarget { source: 0, target: 1 }],
                    ..instruction(
                        5,
                        "collective-permute-start",
                        tuple(&[whole.clone(), whole.clone(), context.clone()]),
                        &[4],
                    )
                },
                instruction(6, "collective-permute-done", whole.clone(), &[5]),
                instruction(7, "copy-start", tuple(&[whole.clone(), whole.clone(), context]), &[6]),
                instruction(8, "copy-done", whole, &[7]),
            ],
        ),
    ])
    .unwrap();
    let ops: Vec<&str> = module.main().unwrap().body.all_ops().map(|(_, op)| op.kind.name()).collect();
    let kept = ["all_reduce", "all_gather", "collective_permute"].map(|name| format!("stablehlo.{name}"));
    assert!(kept.iter().all(|name| ops.contains(&&**name)), "{ops:?}");
    assert_eq!(ops.len(), 6, "{ops:?}");
}

#[test]
fn transfers_lose_their_contexts() {
    let (array, token) = (shape(F32, &[2]), shape(TOKEN, &[]));
    let triple = tuple(&[array.clone(), shape(8, &[]), token.clone()]);
    let pairs = ("_xla_send_recv_source_target_pairs".to_owned(), "{{0,1},{1,2}}".to_owned());
    let transfer = |id, opcode: &str, operands: &[i64]| proto::Instruction {
        channel_id: 3,
        frontend_attributes: Some(proto::FrontendAttributes { map: BTreeMap::from([pairs.clone()]) }),
        ..instruction(id, opcode, triple.clone(), operands)
    };
    let module = read_entry(&[
        parameter(0, 0, array.clone()),
        instruction(1, "after-all", token.clone(), &[]),
        transfer(2, "send", &[0, 1]),
        instruction(3, "send-done", token.clone(), &[2]),
        transfer(4, "recv", &[3]),
        instruction(5, "recv-done", tuple(&[array.clone(), token.clone()]), &[4]),
        proto::Instruction { tuple_index: 1, ..instruction(6, "get-tuple-element", token.clone(), &[5]) },
        proto::Instruction {
            infeed_config: b"config".to_vec(),
            ..instruction(7, "infeed", tuple(&[tuple(&[array.clone(), array]), token.clone()]), &[6])
        },
        proto::Instruction { tuple_index: 1, ..instruction(8, "get-tuple-element", token.clone(), &[7]) },
        instruction(9, "outfeed", token, &[0, 8]),
    ])
    .unwrap();
    assert_contains(
        &module,
        &[
            "#stablehlo.channel_handle<handle = 3, type = 1>",
            "dense<[[0, 1], [1, 2]]>",
            "infeed_config = \"config\"",
            "(!stablehlo.token) -> (tensor<2xf32>, tensor<2xf32>, !stablehlo.token)",
            "(tensor<2xf32>, !stablehlo.token) -> !stablehlo.token",
        ],
    );
}

#[test]
fn replica_groups_are_spelled_out() {
    let array = shape(F32, &[4]);
    let reduce = |iota| proto::Instruction {
        called_computation_ids: vec![5],
        iota_collective_device_list: Some(iota),
        ..instruction(1, "all-reduce", array.clone(), &[0])
    };
    let read_with =
        |iota| read(vec![addition(5), computation(6, &[parameter(0, 0, array.clone()), reduce(iota)])]);
    let iota = proto::IotaReplicaGroupList {
        num_replica_groups: 3,
        num_devices_per_group: 2,
        iota_reshape_dims: vec![2, 3],
        iota_transpose_perm: vec![1, 0],
    };
    assert_contains(&read_with(iota.clone()).unwrap(), &["dense<[[0, 3], [1, 4], [2, 5]]>"]);
    for damaged in [
        proto::IotaReplicaGroupList { num_replica_groups: 4, ..iota.clone() },
        proto::IotaReplicaGroupList { iota_transpose_perm: vec![1, 1], ..iota.clone() },
        proto::IotaReplicaGroupList { iota_reshape_dims: vec![2, -3], ..iota.clone() },
    ] {
        assert_eq!(read_with(damaged).unwrap_err().kind, ErrorKind::Malformed);
    }
    let huge = proto::IotaReplicaGroupList {
        num_replica_groups: 1 << 31,
        num_devices_per_group: 1 << 31,
        iota_reshape_dims: vec![1 << 62],
        iota_transpose_perm: vec![0],
    };
    assert_eq!(read_with(huge).unwrap_err().kind, ErrorKind::TooLarge);
}

/// Groups along the axes with these numbers of a mesh of 3 by 2, of which the second is also taken in part.
fn along(axes: &[(i64, Option<i64>)]) -> Option<proto::MeshAxesReplicaGroupList> {
    let axis = |name: &str, size| proto::MeshAxis { name: name.to_owned(), size };
    let axes = axes.iter().map(|&(mesh_axis_index, size)| proto::AxisRef {
        mesh_axis_index,
        sub_axis_info: size.map(|size| proto::SubAxis { pre_size: 1, size }),
    });
    let mesh = proto::Mesh { axes: vec![axis("a", 3), axis("b", 2)], device_ids: vec![5, 4, 3, 2, 1, 0] };
    Some(proto::MeshAxesReplicaGroupList { mesh: Some(mesh), axes: axes.collect() })
}

#[test]
fn groups_along_mesh_axes_are_kept() {
    let array = shape(F32, &[6]);
    let exchange = |axes: &[(i64, Option<i64>)]| {
        let exchange = proto::Instruction {
            mesh_axes_collective_device_list: along(axes),
            dimensions: vec![0],
            ..instruction(1, "all-to-all", array.clone(), &[0])
        };
        read_entry(&[parameter(0, 0, array.clone()), exchange])
    };
    let expected = &[
        "replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<",
        "axes = [#stablehlo.axis_ref<name = \"a\">]>",
        // The size of the groups, which HLO does not say.
        "split_count = 3 : i64",
    ];
    assert_contains(&exchange(&[(0, None)]).unwrap(), expected);
    assert_contains(&exchange(&[(1, None), (0, None)]).unwrap(), &["split_count = 6 : i64"]);
    assert_contains(&exchange(&[(1, Some(2))]).unwrap(), &["sub_axis_info = (1)2>", "split_count = 2 : i64"]);
    assert_eq!(exchange(&[(2, None)]).unwrap_err().kind, ErrorKind::Malformed);
    assert_eq!(exchange(&[(0, None), (0, None)]).unwrap_err().kind, ErrorKind::Invalid);
    assert_eq!(exchange(&[(0, Some(2))]).unwrap_err().kind, ErrorKind::Invalid);
}

#[test]
fn operands_of_all_to_all_become_parts_of_one_array() {
    let array = shape(F32, &[3]);
    let exchange = proto::Instruction {
        replica_groups: vec![proto::ReplicaGroup { replica_ids: vec![0, 1] }],
        ..instruction(2, "all-to-all", tuple(&[array.clone(), array.clone()]), &[0, 1])
    };
    let operands = [parameter(0, 0, array.clone()), parameter(1, 1, array.clone())];
    let module = read_entry(&[operands[0].clone(), operands[1].clone(), exchange]).unwrap();
    assert_contains(&module, &["split_count = 2", "(tensor<2x3xf32>) -> tensor<2x3xf32>"]);
    let all = instruction(2, "all-to-all", tuple(&[array.clone(), array.clone()]), &[0, 1]);
    let module = read_entry(&[operands[0].clone(), operands[1].clone(), all]).unwrap();
    assert_contains(&module, &["replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>", "split_count = 2"]);
    let whole = proto::Instruction { dimensions: vec![0], ..instruction(1, "all-to-all", array, &[0]) };
    assert_eq!(read_entry(&[operands[0].clone(), whole]).unwrap_err().kind, ErrorKind::Unsupported);
}

#[test]
fn a_ragged_exchange_is_the_call_that_jax_makes() {
    let (array, numbers) = (shape(F32, &[3]), shape(S32, &[2]));
    let exchange = proto::Instruction {
        replica_groups: vec![proto::ReplicaGroup { replica_ids: vec![0, 1] }],
        channel_id: 3,
        ..instruction(3, "ragged-all-to-all", array.clone(), &[0, 1, 2, 2, 2, 2])
    };
    let operands = [parameter(0, 0, array.clone()), parameter(1, 1, array), parameter(2, 2, numbers)];
    let module = read_entry(&[&operands[..], std::slice::from_ref(&exchange)].concat()).unwrap();
    assert_contains(
        &module,
        &[
            "(%arg0, %arg1, %arg2, %arg2, %arg2, %arg2) <{call_target_name = \"ragged_all_to_all\"",
            "{channel_id = 3 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}",
        ],
    );
    // The call has no other form than a list.
    let exchange = proto::Instruction {
        replica_groups: Vec::new(),
        mesh_axes_collective_device_list: along(&[(0, None)]),
        ..exchange
    };
    let module = read_entry(&[&operands[..], &[exchange]].concat()).unwrap();
    assert_contains(&module, &["replica_groups = dense<[[5, 3, 1], [4, 2, 0]]> : tensor<2x3xi64>}"]);
}

#[test]
fn composites_keep_their_name_and_attributes() {
    let array = shape(F32, &[2]);
    let attributes = [
        ("composite.name", "foo.bar"),
        ("composite.attributes", "{n = 1 : i64}"),
        ("composite.version", "2"),
    ];
    let attributes: BTreeMap<String, String> =
        attributes.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    let call = |attributes| proto::Instruction {
        called_computation_ids: vec![5],
        is_composite: true,
        frontend_attributes: Some(proto::FrontendAttributes { map: attributes }),
        ..instruction(1, "call", array.clone(), &[0])
    };
    let body =
        || computation(5, &[parameter(0, 0, array.clone()), instruction(1, "abs", array.clone(), &[0])]);
    let entry = |attributes| computation(6, &[parameter(0, 0, array.clone()), call(attributes)]);
    let module = read(vec![body(), entry(attributes.clone())]).unwrap();
    assert_contains(&module, &["name = \"foo.bar\"", "{n = 1 : i64}", "version = 2", "@computation.5"]);
    let mut damaged = attributes;
    damaged.insert("composite.attributes".to_owned(), "{n = ".to_owned());
    assert_eq!(read(vec![body(), entry(damaged)]).unwrap_err().kind, ErrorKind::Malformed);
}

#[test]
fn decompositions_are_shared_and_verify() {
    for (code, bits) in [(10, "f16"), (F32, "f32"), (12, "f64")] {
        for opcode in ["acos", "acosh", "asin", "asinh", "atanh", "cosh", "erf", "sinh"] {
            let array = shape(code, &[2]);
            let module = read_entry(&[
                parameter(0, 0, array.clone()),
                instruction(1, opcode, array.clone(), &[0]),
                instruction(2, opcode, array, &[1]),
            ])
            .unwrap();
            assert_eq!(module.functions().len(), 2, "{opcode} of {bits}");
            assert_contains(&module, &[&format!("\"chlo.{opcode}\""), &format!("@chlo.{opcode}.impl")]);
        }
    }
    for code in [2, 21, S32, 5, 9] {
        let array = shape(code, &[2]);
        let module =
            read_entry(&[parameter(0, 0, array.clone()), instruction(1, "mulhi", array, &[0, 0])]).unwrap();
        assert_contains(&module, &["\"chlo.mulhi\""]);
    }
    let complex = shape(15, &[2]);
    let error =
        read_entry(&[parameter(0, 0, complex.clone()), instruction(1, "acos", complex, &[0])]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported);
}

#[test]
fn branches_capture_what_they_are_given() {
    let array = shape(F32, &[2]);
    let branch = |id, opcode: &str| {
        computation(id, &[parameter(0, 0, array.clone()), instruction(1, opcode, array.clone(), &[0])])
    };
    let conditional = |ids: &[i64]| proto::Instruction {
        called_computation_ids: ids.into(),
        ..instruction(2, "conditional", array.clone(), &[0, 1, 1])
    };
    let entry = |code, ids: &[i64]| {
        computation(9, &[parameter(0, 0, shape(code, &[])), parameter(1, 1, array.clone()), conditional(ids)])
    };
    let branches = || vec![branch(1, "abs"), branch(2, "negate")];
    let with = |entry| branches().into_iter().chain([entry]).collect::<Vec<_>>();
    assert_contains(&read(with(entry(PRED, &[1, 2]))).unwrap(), &["stablehlo.if", "stablehlo.abs"]);
    assert_contains(&read(with(entry(S32, &[1, 2]))).unwrap(), &["stablehlo.case", "stablehlo.negate"]);
    assert!(read(with(entry(PRED, &[1]))).unwrap_err().message.contains("two branches"));
    assert!(read(with(entry(S32, &[1, 2, 1]))).unwrap_err().message.contains("expected at least 4 operands"));
}

#[test]
fn errors_in_nested_messages_name_each_of_them_once() {
    let deep = (0..200).fold(shape(F32, &[2]), |inner, _| tuple(&[inner]));
    let error =
        parse_hlo(module(vec![computation(0, &[parameter(0, 0, deep)])]).encode_to_vec()).unwrap_err();
    assert_eq!(error.message.matches("Shape.tuple_shapes").count(), 1, "{error}");
    assert!(error.message.contains("recursion"), "{error}");
}

#[test]
fn errors_of_the_verifier_name_the_instruction() {
    let error =
        read_entry(&[parameter(0, 0, shape(F32, &[2])), instruction(1, "add", shape(F32, &[3]), &[0, 0])])
            .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
    assert!(error.to_string().contains("\"add.1\""), "{error}");
}

#[test]
fn dot_algorithms_are_those_of_the_frameworks() {
    let dot = |algorithm: i32, element: i32| {
        let matrix = || shape(element, &[2, 2]);
        let numbers = proto::DotDimensionNumbers {
            lhs_contracting_dimensions: vec![1],
            rhs_contracting_dimensions: vec![0],
            ..proto::DotDimensionNumbers::default()
        };
        let config = proto::PrecisionConfig { algorithm, ..proto::PrecisionConfig::default() };
        let dot = proto::Instruction {
            dot_dimension_numbers: Some(numbers),
            precision_config: Some(config),
            ..instruction(1, "dot", shape(F32, &[2, 2]), &[0, 0])
        };
        read_entry(&[parameter(0, 0, matrix()), dot])
    };
    const F8E4M3FN: i32 = 20;
    // Number in XLA, elements, types of precision, products, imprecise sums: what JAX writes for its presets.
    for (algorithm, element, precision, products, imprecise) in [
        (1, F8E4M3FN, "f8E4M3FN", 1, false),
        (2, F32, "f8E5M2", 1, true),
        (6, F32, "bf16", 1, false),
        (7, F32, "bf16", 3, false),
        (8, F32, "bf16", 6, false),
        (9, F32, "tf32", 1, false),
        (10, F32, "tf32", 3, false),
        (13, F32, "bf16", 9, false),
    ] {
        let expected = format!(
            "#stablehlo.dot_algorithm<lhs_precision_type = {precision}, rhs_precision_type = {precision}, \
             accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, \
             num_primitive_operations = {products}, allow_imprecise_accumulation = {imprecise}>"
        );
        assert_contains(&dot(algorithm, element).unwrap(), &[&expected]);
    }
    assert_eq!(dot(14, F32).unwrap_err().kind, ErrorKind::Unsupported);
}

#[test]
fn what_is_printed_reads_as_the_same_text() {
    let array = shape(F32, &[2]);
    let branch = |id, opcode: &str| {
        computation(id, &[parameter(0, 0, array.clone()), instruction(1, opcode, array.clone(), &[0])])
    };
    let conditional = proto::Instruction {
        called_computation_ids: vec![1, 2],
        ..instruction(3, "conditional", array.clone(), &[0, 2, 2])
    };
    let entry = computation(
        9,
        &[
            parameter(0, 0, shape(S32, &[])),
            parameter(1, 1, array.clone()),
            instruction(2, "negate", array.clone(), &[1]),
            conditional,
        ],
    );
    let scalar = || shape(PRED, &[]);
    let condition = computation(3, &[parameter(0, 0, scalar()), instruction(1, "not", scalar(), &[0])]);
    let body = computation(4, &[parameter(0, 0, scalar()), instruction(1, "not", scalar(), &[0])]);
    let looped =
        proto::Instruction { called_computation_ids: vec![4, 3], ..instruction(1, "while", scalar(), &[0]) };
    for computations in [
        vec![branch(1, "abs"), branch(2, "negate"), entry],
        vec![condition, body, computation(9, &[parameter(0, 0, scalar()), looped])],
    ] {
        let printed = format!("{:#}", read(computations).unwrap());
        assert_eq!(format!("{:#}", parse(printed.as_bytes().to_vec()).unwrap()), printed);
    }
}
