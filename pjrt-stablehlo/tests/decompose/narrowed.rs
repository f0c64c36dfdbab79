//! Devices without 64-bit integers.

use pjrt_stablehlo::ir::ElementType::{F32, I1, I32, Ui32, Ui64};
use pjrt_stablehlo::passes::{CoreOps, decompose, is_core, missing};

use super::{ops, read};

fn core() -> CoreOps {
    CoreOps::default().named("mychip").for_elements([F32, I32, Ui32, I1])
}

/// Decomposes the main function with this signature and these operations.
fn narrowed(signature: &str, body: &str) -> Result<pjrt_stablehlo::Module, pjrt_stablehlo::Error> {
    let module = decompose(&read(&format!("func.func @main{signature} {{ {body} }}")), &core())?;
    assert!(is_core(&module, &core()), "{module}");
    Ok(module)
}

/// The counters of JAX's random numbers.
const COUNTERS: &str = "
    %0 = stablehlo.iota dim = 0 : tensor<3x5xui64>
    %1 = stablehlo.iota dim = 1 : tensor<3x5xui64>
    %c = stablehlo.constant dense<5> : tensor<ui64>
    %2 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<ui64>) -> tensor<3x5xui64>
    %3 = stablehlo.multiply %2, %0 : tensor<3x5xui64>
    %4 = stablehlo.add %3, %1 : tensor<3x5xui64>
    %c_1 = stablehlo.constant dense<32> : tensor<ui64>
    %5 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<ui64>) -> tensor<3x5xui64>
    %6 = stablehlo.shift_right_logical %4, %5 : tensor<3x5xui64>
    %7 = stablehlo.convert %4 : (tensor<3x5xui64>) -> tensor<3x5xui32>
    %8 = stablehlo.convert %6 : (tensor<3x5xui64>) -> tensor<3x5xui32>
    return %7, %8 : tensor<3x5xui32>, tensor<3x5xui32>";

#[test]
fn counters_of_random_numbers_become_32_bit_integers() {
    let module = narrowed("() -> (tensor<3x5xui32>, tensor<3x5xui32>)", COUNTERS).unwrap();
    let text = module.to_string();
    assert!(!text.contains("64>") && !text.contains("shift") && !text.contains("convert"), "{text}");
    let whole = read(&format!("func.func @main() -> (tensor<3x5xui32>, tensor<3x5xui32>) {{ {COUNTERS} }}"));
    assert!(missing(&whole, &core()).unwrap().ops.is_empty());
    let wide = CoreOps::default().for_elements([F32, I32, Ui32, I1, Ui64]);
    assert_eq!(
        ops(&decompose(&whole, &wide).unwrap()),
        ops(&whole),
        "a device that has the type computes with it"
    );
}

#[test]
fn numbers_that_may_be_large_stay_wide_with_those_that_meet_them() {
    let argument = "%0 = stablehlo.iota dim = 0 : tensor<4xui64> %1 = stablehlo.add %0, %x : tensor<4xui64>
        %2 = stablehlo.convert %1 : (tensor<4xui64>) -> tensor<4xui32> return %2 : tensor<4xui32>";
    let error = narrowed("(%x: tensor<4xui64>) -> tensor<4xui32>", argument).unwrap_err();
    assert!(error.message.contains("but not for ui64"), "{error}");
    let large = "%0 = stablehlo.iota dim = 0 : tensor<4xui64> %c = stablehlo.constant dense<2147483648> : tensor<4xui64>
        %1 = stablehlo.multiply %0, %c : tensor<4xui64> %2 = stablehlo.convert %1 : (tensor<4xui64>) -> tensor<4xf32>
        return %2 : tensor<4xf32>";
    narrowed("() -> tensor<4xf32>", large).unwrap_err();
    let returned = "%0 = stablehlo.iota dim = 0 : tensor<4xui64> return %0 : tensor<4xui64>";
    narrowed("() -> tensor<4xui64>", returned).unwrap_err();
}

#[test]
fn comparisons_and_conversions_of_signed_numbers_become_narrow() {
    let body = "%0 = stablehlo.convert %x : (tensor<4xi32>) -> tensor<4xi64>
        %c = stablehlo.constant dense<[-3, 2, 5, 7]> : tensor<4xi64>
        %1 = stablehlo.minimum %0, %c : tensor<4xi64>
        %2 = stablehlo.compare LT, %1, %c, SIGNED : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi1>
        %3 = stablehlo.select %2, %1, %c : tensor<4xi1>, tensor<4xi64>
        %4 = stablehlo.convert %3 : (tensor<4xi64>) -> tensor<4xf32>
        return %4 : tensor<4xf32>";
    let module = narrowed("(%x: tensor<4xi32>) -> tensor<4xf32>", body).unwrap();
    let names: Vec<_> = module.main().unwrap().ops().map(|(_, op)| op.kind.name().to_owned()).collect();
    let expected =
        ["constant", "minimum", "compare", "select", "convert"].map(|name| format!("stablehlo.{name}"));
    assert_eq!(names[..5], expected);
    let sum = "%0 = stablehlo.convert %x : (tensor<4xi32>) -> tensor<4xi64> %1 = stablehlo.add %0, %0 : tensor<4xi64>
        %2 = stablehlo.convert %1 : (tensor<4xi64>) -> tensor<4xf32> return %2 : tensor<4xf32>";
    narrowed("(%x: tensor<4xi32>) -> tensor<4xf32>", sum).unwrap_err();
}

#[test]
fn a_device_without_unsigned_integers_computes_with_signed_ones() {
    let core = CoreOps::default().for_elements([F32, I32, I1]);
    let text = "func.func @main() -> tensor<4xf32> {
        %0 = stablehlo.iota dim = 0 : tensor<4xui64>
        %1 = stablehlo.multiply %0, %0 : tensor<4xui64>
        %2 = stablehlo.convert %1 : (tensor<4xui64>) -> tensor<4xf32>
        return %2 : tensor<4xf32>
    }";
    let module = decompose(&read(text), &core).unwrap();
    assert!(module.to_string().contains("tensor<4xi32>"), "{module}");
}

#[test]
fn a_long_chain_that_stays_wide_is_settled_in_linear_time() {
    const COUNT: usize = 20_000;
    let mut body = "%0 = stablehlo.iota dim = 0 : tensor<4xui64>\n".to_owned();
    for at in 1..COUNT {
        body += &format!("%{at} = stablehlo.reverse %{}, dims = [0] : tensor<4xui64>\n", at - 1);
    }
    body += &format!("return %{} : tensor<4xui64>", COUNT - 1);
    narrowed("() -> tensor<4xui64>", &body).unwrap_err();
}

#[test]
fn shifts_by_more_bits_than_the_narrow_type_has_stay_wide() {
    let shift = |by: &str| {
        let body = format!(
            "%0 = stablehlo.iota dim = 0 : tensor<4xui64> %c = stablehlo.constant dense<{by}> : tensor<4xui64>
             %1 = stablehlo.shift_right_logical %0, %c : tensor<4xui64>
             %2 = stablehlo.convert %1 : (tensor<4xui64>) -> tensor<4xui32> return %2 : tensor<4xui32>"
        );
        narrowed("() -> tensor<4xui32>", &body)
    };
    shift("[0, 1, 2, 31]").unwrap();
    shift("[0, 1, 2, 32]").unwrap_err();
}
