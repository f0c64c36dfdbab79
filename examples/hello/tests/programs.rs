//! Programs on the plugin, as hosts run them.

#![forbid(unsafe_code)]

use hello_pjrt::Hello;
use pjrt_testing::{Array, Client, Code, Result};

fn client() -> Result<Client> {
    Client::of(pjrt_plugin::api_table!(Hello), &[])
}

/// Returns a program that applies an operation to two arrays of a type.
fn binary(operation: &str, ty: &str) -> String {
    format!(
        "func.func @main(%x: {ty}, %y: {ty}) -> {ty} {{
            %0 = stablehlo.{operation} %x, %y : {ty}
            return %0 : {ty}
        }}"
    )
}

#[test]
fn arrays_are_added() -> Result<()> {
    let client = client()?;
    let floats = [Array::from([1.0_f32, 2.5]), Array::from([10.0_f32, -2.5])];
    assert_eq!(client.evaluate(binary("add", "tensor<2xf32>"), &floats)?, [Array::from([11.0_f32, 0.0])]);
    let integers = [Array::scalar(i32::MAX), Array::scalar(1)];
    assert_eq!(client.evaluate(binary("add", "tensor<i32>"), &integers)?, [Array::scalar(i32::MIN)]);
    Ok(())
}

#[test]
fn an_unsupported_operation_is_refused_by_name() -> Result<()> {
    let error = client()?.compile(binary("multiply", "tensor<f32>")).unwrap_err();
    assert_eq!(error.code, Code::UNIMPLEMENTED);
    assert!(error.message.contains("stablehlo.multiply"), "{error}");
    Ok(())
}
