//! Programs on the plugin, as hosts run them.

#![forbid(unsafe_code)]

use pjrt_testing::{Array, Client, Code, CreateOption, Result, Value};
use tutorial_pjrt::Tutorial;

fn client(options: &[CreateOption]) -> Result<Client> {
    Client::of(pjrt_plugin::api_table!(Tutorial), options)
}

/// A matrix product and its hyperbolic tangent.
const LAYER: &str = "func.func @main(%x: tensor<2x2xf32>, %w: tensor<2x2xf32>) -> tensor<2x2xf32> {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %1 = stablehlo.tanh %0 : tensor<2x2xf32>
    return %1 : tensor<2x2xf32>
}";

#[test]
fn values_are_those_of_rust() -> Result<()> {
    let x = Array::new(&[2, 2], &[1.0_f32, 2.0, 3.0, 4.0])?;
    let w = Array::new(&[2, 2], &[1.0_f32, 0.0, 0.0, -1.0])?;
    let outputs = client(&[])?.evaluate(LAYER, &[x, w])?;
    for (number, found) in [1.0_f32, -2.0, 3.0, -4.0].iter().zip(outputs[0].elements::<f32>()?) {
        assert!((number.tanh() - found).abs() < 1e-6, "tanh({number}) = {found}");
    }
    Ok(())
}

#[test]
fn other_element_types_are_refused() -> Result<()> {
    let program = LAYER.replace("f32", "f64");
    let error = client(&[])?.compile(program).unwrap_err();
    assert_eq!(error.code, Code::UNIMPLEMENTED);
    assert!(error.message.contains("f64") || error.message.contains("F64"), "{error}");
    Ok(())
}

#[test]
fn arrays_move_between_devices() -> Result<()> {
    let client = client(&[])?;
    let devices = client.devices()?;
    let x = client.upload_to(&Array::from([1.0_f32, 2.0, 3.0]), devices[0])?;
    assert_eq!(x.copy_to(devices[1])?.read::<f32>()?, [1.0, 2.0, 3.0]);
    Ok(())
}

#[test]
fn exhausted_memory_is_an_error_with_its_code() -> Result<()> {
    let client = client(&[CreateOption::new("memory_limit", Value::Int64(4096))])?;
    let uploaded = client.upload(&Array::from([0.0_f32; 4096])).and_then(|buffer| buffer.to_array());
    assert_eq!(uploaded.unwrap_err().code, Code::RESOURCE_EXHAUSTED);
    Ok(())
}
