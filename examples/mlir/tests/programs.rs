//! Programs on the plugin, as hosts run them.

#![forbid(unsafe_code)]

use mlir_pjrt::Vendor;
use pjrt_testing::{Array, Client, Code, CompileOptions, Result};

fn client() -> Result<Client> {
    Client::of(pjrt_plugin::api_table!(Vendor), &[])
}

/// A product and a sum.
const AFFINE: &str = "func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.multiply %x, %x : tensor<2xf32>
    %1 = stablehlo.add %0, %y : tensor<2xf32>
    return %1 : tensor<2xf32>
}";

#[test]
fn the_compiler_computes_programs() -> Result<()> {
    let arguments = [Array::from([3.0_f32, -2.0]), Array::from([1.0_f32, 0.5])];
    assert_eq!(client()?.evaluate(AFFINE, &arguments)?, [Array::from([10.0_f32, 4.5])]);
    Ok(())
}

#[test]
fn an_error_of_the_compiler_has_its_code_and_the_operation() -> Result<()> {
    let program = "func.func @main(%x: tensor<f32>) -> tensor<f32> {
        %0 = stablehlo.sine %x : tensor<f32>
        return %0 : tensor<f32>
    }";
    let error = client()?.compile(program).unwrap_err();
    assert_eq!(error.code, Code::UNIMPLEMENTED);
    assert!(error.message.contains("stablehlo.sine"), "{error}");
    Ok(())
}

#[test]
fn an_unknown_compiler_option_is_refused_by_name() -> Result<()> {
    let options = CompileOptions {
        overrides: vec![("fuse_all".to_owned(), "1".to_owned())],
        ..CompileOptions::default()
    };
    let error = client()?.compile_with(AFFINE, &options).unwrap_err();
    assert!(error.message.contains("fuse_all"), "{error}");
    Ok(())
}

#[test]
fn a_serialized_program_computes_the_same() -> Result<()> {
    let client = client()?;
    let serialized = client.compile(AFFINE)?.serialize()?;
    let x = client.upload(&Array::from([3.0_f32, -2.0]))?;
    let outputs = client.load_serialized(&serialized)?.run(&[&x, &x])?;
    assert_eq!(outputs[0].read::<f32>()?, [12.0, 2.0]);
    Ok(())
}
