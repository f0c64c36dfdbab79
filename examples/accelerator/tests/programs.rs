//! Programs on the plugin, as hosts run them.

#![forbid(unsafe_code)]

use accelerator_pjrt::Accelerator;
use pjrt_testing::{Array, Client, Code, CompileOptions, CreateOption, Result, Value};

fn client(options: &[(&str, i64)]) -> Result<Client> {
    let option = |(name, value): &(&str, i64)| CreateOption::new(name, Value::Int64(*value));
    let options: Vec<CreateOption> = options.iter().map(option).collect();
    Client::of(pjrt_plugin::api_table!(Accelerator), &options)
}

/// A matrix product and its cosine.
const PRODUCT: &str = "func.func @main(%x: tensor<2x2xf32>, %y: tensor<2x2xf32>) -> tensor<2x2xf32> {
    %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
        : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %1 = stablehlo.cosine %0 : tensor<2x2xf32>
    return %1 : tensor<2x2xf32>
}";

/// Adds an array to itself. The argument is donated.
const DONATED: &str = "func.func @main(%x: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4xf32> {
    %0 = stablehlo.add %x, %x : tensor<4xf32>
    return %0 : tensor<4xf32>
}";

#[test]
fn values_are_those_of_rust() -> Result<()> {
    let x = Array::new(&[2, 2], &[1.0_f32, 2.0, 3.0, 4.0])?;
    let identity = Array::new(&[2, 2], &[1.0_f32, 0.0, 0.0, 1.0])?;
    let outputs = client(&[])?.evaluate(PRODUCT, &[x, identity])?;
    assert_eq!(outputs[0].dims, [2, 2]);
    for (number, found) in [1.0_f32, 2.0, 3.0, 4.0].iter().zip(outputs[0].elements::<f32>()?) {
        assert!((number.cos() - found).abs() < 1e-6, "cos({number}) = {found}");
    }
    Ok(())
}

#[test]
fn a_donated_argument_is_deleted() -> Result<()> {
    let client = client(&[])?;
    let x = client.upload(&Array::from([1.0_f32, 2.0, 3.0, 4.0]))?;
    let outputs = client.compile(DONATED)?.run(&[&x])?;
    assert_eq!(outputs[0].read::<f32>()?, [2.0, 4.0, 6.0, 8.0]);
    assert!(x.is_deleted()?);
    assert!(x.to_array().is_err());
    Ok(())
}

#[test]
fn replicas_run_on_their_own_devices() -> Result<()> {
    let client = client(&[])?;
    let devices = client.devices()?;
    let options = CompileOptions { replicas: 2, devices: vec![0, 1], ..CompileOptions::default() };
    let program = client.compile_with(DONATED, &options)?;
    let x = client.upload_to(&Array::from([1.0_f32; 4]), devices[0])?;
    let y = client.upload_to(&Array::from([5.0_f32; 4]), devices[1])?;
    let outputs = program.run_on_devices(&[vec![&x], vec![&y]])?;
    assert_eq!(outputs[0][0].read::<f32>()?, [2.0; 4]);
    assert_eq!(outputs[1][0].read::<f32>()?, [10.0; 4]);
    Ok(())
}

#[test]
fn arrays_move_between_devices() -> Result<()> {
    let client = client(&[])?;
    let devices = client.devices()?;
    let x = client.upload_to(&Array::from([1_i32, 2, 3]), devices[0])?;
    let moved = x.copy_to(devices[3])?;
    assert_eq!(moved.read::<i32>()?, [1, 2, 3]);
    assert!(!x.is_deleted()?);
    Ok(())
}

#[test]
fn exhausted_memory_is_an_error_with_its_code() -> Result<()> {
    let client = client(&[("memory_limit", 4096)])?;
    let uploaded = client.upload(&Array::from([0.0_f32; 4096])).and_then(|buffer| buffer.to_array());
    assert_eq!(uploaded.unwrap_err().code, Code::RESOURCE_EXHAUSTED);
    Ok(())
}

#[test]
fn the_loss_of_a_device_is_the_error_of_its_executions() -> Result<()> {
    // The commands of the upload and of the program.
    let client = client(&[("lose_device", 1)])?;
    let x = client.upload(&Array::from([1.0_f32; 4]))?;
    let error = client.compile(DONATED)?.run(&[&x]).unwrap_err();
    assert_eq!(error.code, Code::UNAVAILABLE);
    assert!(error.message.contains("lost"), "{error}");
    Ok(())
}
