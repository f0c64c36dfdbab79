//! Reads the checked-in programs, which JAX sent, in several VHLO versions. See `data/generate.py`.

use std::fs;
use std::path::{Path, PathBuf};

use pjrt_stablehlo::ir::ops::{Reduce, While};
use pjrt_stablehlo::ir::{
    Attribute, Definition, ElementType, LiteralData, MeshReference, Op, OpCode, Trait, Type, Visibility,
};
use pjrt_stablehlo::versions::Version;
use pjrt_stablehlo::{Bytes, ErrorKind, Module, parse};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

fn bytes(name: &str) -> Vec<u8> {
    fs::read(folder().join(format!("{name}.mlirbc"))).unwrap()
}

fn module(name: &str) -> Module {
    parse(bytes(name)).unwrap()
}

/// The first operation of a kind in `main`.
fn find(module: &Module, code: OpCode) -> &pjrt_stablehlo::ir::Operation {
    let main = module.main().unwrap();
    main.body.all_ops().map(|(_, op)| op).find(|op| op.kind.code() == code).unwrap()
}

#[test]
fn versions_of_one_program_give_the_same_module() {
    let newest = module("mlp_1.17.0");
    for version in ["0.17.0", "1.0.0", "1.8.0", "1.13.7"] {
        let older = module(&format!("mlp_{version}"));
        assert_eq!(older.to_string(), newest.to_string(), "version {version}");
        assert_eq!(older.source_version.unwrap().to_string(), version);
    }
    assert_eq!(newest.source_version, Some(Version::new(1, 17, 0)));
}

#[test]
fn signature_and_attributes_of_main() {
    let module = module("mlp_1.17.0");
    assert_eq!(module.name.as_deref(), Some("jit_mlp"));
    assert_eq!(module.integer_attribute("mhlo.num_replicas"), Some(1));
    let main = module.main().unwrap();
    assert_eq!(main.visibility, Some(Visibility::Public));
    let types: Vec<_> = main.argument_types().iter().map(ToString::to_string).collect();
    assert_eq!(types[0], "tensor<64x32xf32>");
    assert_eq!(main.result_types()[0].to_string(), "tensor<8x10xf32>");
    assert_eq!(main.result_attribute(0, "jax.result_info").and_then(Attribute::as_str), Some("result"));
    assert_eq!(main.returned().len(), 1);
}

#[test]
fn typed_attributes() {
    let module = module("convolution_1.17.0");
    let Op::Convolution(convolution) = &find(&module, OpCode::Convolution).kind else { panic!() };
    assert_eq!(*convolution.window_strides, [2, 1]);
    assert_eq!(*convolution.rhs_dilation, [1, 2]);
    assert_eq!(*convolution.lhs_dilation, [1, 1]);
    assert_eq!(*convolution.padding, [[1, 2], [0, 1]]);
    assert_eq!(convolution.dimension_numbers.input_feature_dimension, 3);
    assert_eq!(*convolution.dimension_numbers.kernel_spatial_dimensions, [0, 1]);
    let Op::ReduceWindow(window) = &find(&module, OpCode::ReduceWindow).kind else { panic!() };
    assert_eq!(*window.window_dimensions, [1, 2, 2, 1]);
    assert_eq!(*window.base_dilations, [1, 1, 1, 1]);
}

#[test]
fn operand_groups_of_variadic_operations() {
    let module = module("branches_1.17.0");
    let op = find(&module, OpCode::Reduce);
    assert_eq!(Reduce::inputs(op).len(), 1);
    assert_eq!(Reduce::init_values(op), &op.operands[1..]);
    let main = module.main().unwrap();
    assert_eq!(main.body.ty(Reduce::init_values(op)[0]).to_string(), "tensor<f32>");
}

#[test]
fn regions_of_loops_and_branches() {
    let module = module("collatz_1.17.0");
    let main = module.main().unwrap();
    let (id, op) = main.body.all_ops().find(|(_, op)| op.kind.code() == OpCode::While).unwrap();
    assert_eq!(While::operand(op).len(), op.results.len());
    for region in 0..2 {
        let block = main.body.region_block(op, region).unwrap();
        assert_eq!(block.arguments.len(), op.operands.len());
        let last = main.body.op(*block.ops.last().unwrap());
        assert!(last.info().has(Trait::Terminator));
        assert_eq!(main.body.region(block.region).parent, Some(id));
    }
    let branches = self::module("branches_1.17.0");
    assert_eq!(find(&branches, OpCode::Case).regions.len(), 3);
}

#[test]
fn constants_of_every_storage() {
    let bytes = Bytes::from(bytes("constants_1.17.0"));
    let module = parse(bytes.clone()).unwrap();
    let main = module.main().unwrap();
    let literal = |ty: &str| {
        let constants = main.body.all_ops().filter_map(|(_, op)| match &op.kind {
            Op::Constant(constant) => Some(&constant.value),
            _ => None,
        });
        constants.into_iter().find(|value| value.ty().to_string() == ty).unwrap_or_else(|| panic!("no {ty}"))
    };
    let floats = literal("tensor<2x2xf32>").dense_bytes().unwrap().into_owned();
    assert_eq!(floats[..8], [1.5f32.to_le_bytes(), (-2f32).to_le_bytes()].concat());
    let booleans = literal("tensor<12xi1>");
    assert!(matches!(booleans.data(), LiteralData::Bits(_)));
    assert_eq!(booleans.to_i64s(12).unwrap(), [1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0]);
    let splat = literal("tensor<3x5xui8>");
    assert_eq!(splat.splat().as_deref(), Some(&[7][..]));
    assert_eq!(splat.dense_bytes().unwrap().len(), 15);
    assert_eq!(literal("tensor<3xi4>").to_i64s(3).unwrap(), [-8, 7, 3]);
    assert_eq!(literal("tensor<2xcomplex<f32>>").dense_len(), 16);
    let numbers = literal("tensor<100xi16>");
    let LiteralData::Dense(window) = numbers.data() else { panic!("expected dense data") };
    // Shared with the input, not copied.
    let input = bytes.as_ptr() as usize..bytes.as_ptr() as usize + bytes.len();
    assert!(input.contains(&(window.as_ptr() as usize)));
}

#[test]
fn shardy_operations_are_typed() {
    let module = module("manual_1.17.0");
    let mesh = &module.meshes()[0];
    assert_eq!(mesh.mesh.axes.iter().map(|axis| axis.size).collect::<Vec<_>>(), [2, 4]);
    let op = find(&module, OpCode::ManualComputation);
    let Op::ManualComputation(manual) = &op.kind else { panic!() };
    assert_eq!(manual.in_shardings.len(), 1);
    assert_eq!(manual.manual_axes.len(), 2);
    let MeshReference::Symbol(name) = &manual.in_shardings[0].mesh else { panic!("expected a symbol") };
    assert!(module.mesh(name).is_some());
    assert_eq!(manual.in_shardings[0].dim_shardings[1].axes[0].name, "model");
    let Op::ShardingConstraint(constraint) = &find(&module, OpCode::ShardingConstraint).kind else {
        panic!()
    };
    assert_eq!(constraint.sharding.dim_shardings[0].axes[0].name, "data");
}

#[test]
fn casts_between_vhlo_types_and_their_meaning_leave_no_trace() {
    let module = module("manual_1.17.0");
    let counts = module.op_counts();
    assert!(
        counts.contains_key("sdy.manual_computation")
            && !counts.contains_key("builtin.unrealized_conversion_cast"),
        "{counts:?}"
    );
}

#[test]
fn composites_name_their_decomposition() {
    let module = module("composite_1.17.0");
    let Op::Composite(composite) = &find(&module, OpCode::Composite).kind else { panic!() };
    assert_eq!(composite.name, "example.double");
    assert_eq!(composite.version, 1);
    assert!(module.function(&composite.decomposition).is_some());
}

#[test]
fn locations_read_like_jax_prints_them() {
    let module = module("mlp_1.17.0");
    let op = find(&module, OpCode::DotGeneral);
    let location = op.location.to_string();
    assert!(location.contains("dot_general") && location.contains("generate.py"), "{location}");
}

#[test]
fn every_sample_reads_and_prints() {
    let mut count = 0;
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "mlirbc") {
            let module = parse(fs::read(&path).unwrap()).unwrap();
            let text = module.to_string();
            assert!(text.contains("func.return"), "{}", path.display());
            assert!(format!("{module:#}").contains(" loc("));
            count += 1;
        }
    }
    assert!(count > 10);
}

#[test]
fn values_know_their_definitions() {
    let module = module("mlp_1.17.0");
    let body = &module.main().unwrap().body;
    for (id, op) in body.all_ops() {
        for (index, result) in op.results.enumerate() {
            let definition = Definition::Result { op: id, index: index as u32 };
            assert_eq!(body.value(result).definition, definition);
        }
        for &operand in &op.operands {
            if let Some(defining) = body.defining_op(operand) {
                assert!(defining < id || body.op(defining).block != op.block);
            }
        }
    }
}

#[test]
fn truncated_programs_say_where() {
    let whole = bytes("mlp_1.17.0");
    for len in 0..whole.len() {
        let error = parse(&whole[..len]).unwrap_err();
        assert!(len < 4 || error.offset.is_some(), "{len}: {error}");
    }
    let error = parse(b"\x08\xff\xfe neither bytecode nor text".to_vec()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported);
}

#[test]
fn flipped_bits_give_errors_or_modules() {
    let whole = bytes("branches_1.17.0");
    for bit in 0..whole.len() * 8 {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        if let Ok(module) = parse(damaged) {
            let _ = module.to_string();
        }
    }
}

#[test]
fn types_of_values_are_tensors_with_known_elements() {
    let module = module("random_1.17.0");
    let main = module.main().unwrap();
    let Type::Tensor(result) = &main.result_types()[0] else { panic!() };
    assert_eq!(result.element_type(), ElementType::BF16);
    assert_eq!(result.static_dims(), Some(&[4][..]));
}
