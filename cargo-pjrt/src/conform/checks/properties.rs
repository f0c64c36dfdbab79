//! Checks of named values: the types that hosts expect.

use std::collections::HashSet;

use super::entry::{Entry, check};
use super::program_text::{compiled, sums};
use crate::conform::harness::{Context, Finding, Verdict, add_program, compile_add, ensure, equal};
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{ElementType, HostArray, NamedValue, Value};

pub(super) const CHECKS: &[Entry] = &[
    check(
        "properties/costs_are_numbers",
        "The properties of a cost analysis are numbers of a plausible size, and not NaN.",
        costs_are_numbers,
        "PJRT_Executable_GetCostAnalysis retype string",
    )
    .host("JAX, jax/_src/stages.py, Compiled.cost_analysis", "The dictionary is passed to users, who compute with flops and bytes accessed.")
    .also(&["properties/costs_are_floats"]),
    check(
        "properties/costs_are_floats",
        "The properties flops, bytes accessed, transcendentals, optimal_seconds and utilization of a cost analysis are of type kFloat.",
        costs_are_floats,
        "PJRT_Executable_GetCostAnalysis retype int",
    )
    .advice("OpenXLA's plugins return floats, and users of JAX read the same names from all platforms."),
    check(
        "properties/costs_have_different_names",
        "Each property of a cost analysis occurs once.",
        costs_differ,
        "PJRT_Executable_GetCostAnalysis repeat properties num_properties",
    )
    .host("XLA's client, pjrt_c_api_client.cc, ConvertFromPjRtNamedValueList", "The list becomes a map, in which one of two values with a name is lost."),
    check(
        "properties/device_attributes",
        "Attributes of devices that hosts know have the types that hosts expect: numbers are of type kInt64, coords is a list, and names are strings.",
        device_attributes,
        "PJRT_DeviceDescription_Attributes attribute_of_type core_on_chip string",
    )
    .host("JAX, jax/_src/cudnn/fused_attention_stablehlo.py, check_compute_capability, and jax/_src/mesh_utils.py", "They split compute_capability as text, and compute with coords, core_on_chip and slice_index."),
    check(
        "properties/memory_of_arguments_and_outputs",
        "PJRT_Executable_GetCompiledMemoryStats reports the sizes of the arguments and of the outputs each in its own field.",
        memory_of_each,
        "PJRT_Executable_GetCompiledMemoryStats exchange argument_size_in_bytes output_size_in_bytes",
    )
    .header("PJRT_Executable_GetCompiledMemoryStats_Args", "argument_size_in_bytes, output_size_in_bytes: the memory that is used by the inputs and by the outputs of the program.")
    .also(&["compile/memory_stats"]),
    check(
        "properties/memory_of_donated_arguments",
        "alias_size_in_bytes is the size of the outputs that use the memory of arguments: 0 if the program donates none, and at most the size of those that it donates.",
        memory_of_donation,
        "PJRT_Executable_GetCompiledMemoryStats set alias_size_in_bytes=70000",
    )
    .header("PJRT_Executable_GetCompiledMemoryStats_Args::alias_size_in_bytes", "How much argument is reused for output."),
    check(
        "properties/memory_of_large_programs",
        "PJRT_Executable_GetCompiledMemoryStats returns sizes of more than 32 bits.",
        memory_of_large,
        "PJRT_Executable_GetCompiledMemoryStats low_bits argument_size_in_bytes output_size_in_bytes",
    )
    .header("PJRT_Executable_GetCompiledMemoryStats_Args", "The sizes are of type int64_t."),
];

/// Compares the sizes of a program that adds its arguments of this type, and returns the sum and a scalar argument.
fn memory_of(context: &Context, ty: &str, size: i64) -> Verdict {
    let client = context.client()?;
    let text = sums(&[ty, ty, "f32"], &[("%p2", "%p2", "f32")]);
    let stats = compiled(&client, &text, &CompileOptions::default())?.executable()?.memory_stats()?;
    // A plugin may pad arrays to pages.
    const PADDING: i64 = 1 << 16;
    let confused = stats.outputs >= 2 * size && stats.arguments < stats.outputs;
    ensure!(
        !confused,
        "a program has parameters of {} bytes, and its output is a scalar, but argument_size_in_bytes is {}, and output_size_in_bytes is \
         {}: the plugin confuses these fields",
        2 * size + 4,
        stats.arguments,
        stats.outputs
    );
    ensure!(
        stats.arguments >= 2 * size,
        "argument_size_in_bytes of a program with two parameters of {size} bytes and a scalar one is {}; expected at least {}{}",
        stats.arguments,
        2 * size,
        if stats.arguments == 2 * size % (1 << 32) + 4 {
            ": the plugin probably keeps it in 32 bits"
        } else {
            ""
        }
    );
    ensure!(
        (4..2 * size + PADDING).contains(&stats.outputs) && stats.outputs < stats.arguments,
        "output_size_in_bytes of a program whose output is a scalar, and whose parameters have {} bytes, is {}; argument_size_in_bytes \
         is {}: the plugin probably confuses these fields",
        2 * size + 4,
        stats.outputs,
        stats.arguments
    );
    Ok(())
}

fn memory_of_each(context: &Context) -> Verdict {
    memory_of(context, "100000xf32", 400_000)
}

fn memory_of_donation(context: &Context) -> Verdict {
    let client = context.client()?;
    let plain = add_program("100000x");
    let argument = "%x: tensor<100000xf32>";
    let donating = plain.replacen(argument, &format!("{argument} {{tf.aliasing_output = 0 : i32}}"), 1);
    let aliased = |text: &str| -> Result<i64, Finding> {
        let program = compiled(&client, text, &CompileOptions::default())?;
        Ok(program.executable()?.memory_stats()?.aliased)
    };
    equal("alias_size_in_bytes of a program that donates no argument", aliased(&plain)?, 0)?;
    let of_donation = aliased(&donating)?;
    // A device may store arrays with padding.
    let array = HostArray::new(&[0; 400_000], ElementType::F32, &[100_000]);
    let array = client.upload(&array, Some(client.device()?), None)?.buffer;
    let on_device = array.on_device_size().ok().and_then(|size| i64::try_from(size).ok()).unwrap_or_default();
    let most = (on_device.max(400_000) / 2).saturating_mul(3);
    ensure!(
        of_donation == 0 || (400_000..most).contains(&of_donation),
        "alias_size_in_bytes of a program that donates one argument of 400000 bytes, which occupies {on_device} bytes on the \
         device, is {of_donation}; expected one of these sizes, or 0 if the output has memory of its own"
    );
    Ok(())
}

fn memory_of_large(context: &Context) -> Verdict {
    memory_of(context, "2147483653xf32", 4 * 2_147_483_653)
}

/// Returns the cost analysis of the program that adds.
fn costs(context: &Context) -> Result<Vec<NamedValue>, Finding> {
    let client = context.client()?;
    let loaded = compile_add(&client)?;
    let costs = loaded.executable()?.cost_analysis()?;
    if costs.is_empty() {
        return Err(Finding::Unsupported("the analysis is empty".to_owned()));
    }
    Ok(costs)
}

fn costs_are_numbers(context: &Context) -> Verdict {
    for NamedValue { name, value, .. } in costs(context)? {
        let is_number = match &value {
            Value::Float(number) => !number.is_nan(),
            // No program that the kit compiles has such a cost; the bits of a float or a double are such integers.
            Value::Int64(number) => (-1..1 << 29).contains(number),
            _ => false,
        };
        ensure!(
            is_number,
            "the property {name:?} is {value}; expected a number of a plausible size: the plugin probably set another type or field of \
             PJRT_NamedValue, such as float_value with the type kInt64"
        );
    }
    Ok(())
}

fn costs_are_floats(context: &Context) -> Verdict {
    const FLOATS: &[&str] = &["flops", "bytes accessed", "transcendentals", "optimal_seconds", "utilization"];
    for NamedValue { name, value, .. } in costs(context)? {
        let is_known = FLOATS.iter().any(|known| name.starts_with(known));
        ensure!(
            !is_known || matches!(value, Value::Float(_)),
            "the property {name:?} is {value} of a different type than kFloat; users divide it, which for integers rounds in typed languages"
        );
    }
    Ok(())
}

fn costs_differ(context: &Context) -> Verdict {
    let mut seen = HashSet::new();
    for NamedValue { name, .. } in costs(context)? {
        ensure!(seen.insert(name.clone()), "the property {name:?} occurs twice");
    }
    Ok(())
}

/// The attributes that hosts know, with the names of their types.
const KNOWN: &[(&str, &str)] = &[
    ("coords", "a list of integers"),
    ("core_on_chip", "an integer"),
    ("slice_index", "an integer"),
    ("num_cores", "an integer"),
    ("core_count", "an integer"),
    ("compute_capability", "a string"),
    ("device_vendor", "a string"),
];

pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "a string",
        Value::Int64(_) => "an integer",
        Value::Int64List(_) => "a list of integers",
        Value::Float(_) => "a floating-point number",
        Value::Bool(_) => "a boolean",
        Value::Unknown(_) => "a value of an unknown type",
    }
}

fn device_attributes(context: &Context) -> Verdict {
    let client = context.client()?;
    for device in client.devices()? {
        for NamedValue { name, value, .. } in device.description()?.attributes()? {
            let expected = KNOWN.iter().find(|(known, _)| *known == name).map(|(_, type_)| *type_);
            let got = type_name(&value);
            ensure!(
                expected.is_none_or(|expected| expected == got),
                "the attribute {name:?} is {value}, which is {got}; expected {}",
                expected.unwrap_or_default()
            );
        }
    }
    Ok(())
}
