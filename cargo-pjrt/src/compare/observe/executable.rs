//! The attributes of compiled programs, and the results of their execution.

use super::COMPILATION;
use super::client::types_of;
use super::contents::contents;
use super::fact::{behavior, failed, identity, outcome, own, skipped};
use super::observer::Observer;
use crate::array::Array;
use crate::run;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{Buffer, Executable, LoadedExecutable, Program};

/// A program that every plugin for hosts such as JAX can run: its name, arguments, results and operations.
struct Sample {
    name: &'static str,
    parameters: &'static str,
    results: &'static str,
    body: &'static str,
}

const SAMPLES: &[Sample] = &[
    Sample {
        name: "that adds",
        parameters: "%x: tensor<2x3xf32>, %y: tensor<2x3xf32>",
        results: "tensor<2x3xf32>",
        body: "%0 = stablehlo.add %x, %y : tensor<2x3xf32>\n return %0 : tensor<2x3xf32>",
    },
    Sample {
        name: "with two results",
        parameters: "%x: tensor<2x3xf32>, %y: tensor<4xi32>",
        results: "(tensor<4xi32>, tensor<2x3xf32>)",
        body: "%0 = stablehlo.add %x, %x : tensor<2x3xf32>\n %1 = stablehlo.add %y, %y : tensor<4xi32>\n \
               return %1, %0 : tensor<4xi32>, tensor<2x3xf32>",
    },
    Sample {
        name: "that donates",
        parameters: "%x: tensor<8xf32> {tf.aliasing_output = 0 : i32}",
        results: "tensor<8xf32>",
        body: "%0 = stablehlo.add %x, %x : tensor<8xf32>\n return %0 : tensor<8xf32>",
    },
    Sample {
        name: "that returns its argument twice",
        parameters: "%x: tensor<2x3xf32>",
        results: "(tensor<2x3xf32>, tensor<2x3xf32>)",
        body: "return %x, %x : tensor<2x3xf32>, tensor<2x3xf32>",
    },
    Sample { name: "without results", parameters: "%x: tensor<2xf32>", results: "()", body: "return" },
    Sample {
        name: "of a scalar and an empty array",
        parameters: "%x: tensor<f32>, %y: tensor<0x2xf32>",
        results: "(tensor<f32>, tensor<0x2xf32>)",
        body: "%0 = stablehlo.add %x, %x : tensor<f32>\n %1 = stablehlo.add %y, %y : tensor<0x2xf32>\n \
               return %0, %1 : tensor<f32>, tensor<0x2xf32>",
    },
];

pub(super) fn names() -> Vec<String> {
    SAMPLES.iter().map(|sample| sample.name.to_owned()).collect()
}

pub(super) fn observe(observer: &Observer, name: &str) {
    let Some(sample) = SAMPLES.iter().find(|sample| sample.name == name) else { return };
    let Sample { parameters, results, body, .. } = sample;
    let text = format!(
        "module @sample {{\n func.func public @main({parameters}) -> {results} {{\n {body}\n }}\n}}\n"
    );
    let options = CompileOptions::default().encode();
    observe_program(observer, &Program::mlir(&text), &options, || {
        run::Job::of_text(&text).random_arguments()
    });
}

/// Compiles a program, and notes its attributes and the results of an execution.
pub(super) fn observe_program(
    observer: &Observer,
    program: &Program<'_>,
    options: &[u8],
    arguments: impl FnOnce() -> Result<Vec<Array>, String>,
) {
    let Ok(client) = observer.client() else { return };
    let compiled = outcome(COMPILATION, client.compile(program, options), |_| "ok".to_owned());
    let Some(loaded) = compiled else { return };
    if let Some(executable) = outcome("executable", loaded.executable(), |_| "ok".to_owned()) {
        attributes(&executable);
    }
    of_loaded(&loaded);
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(why) => return skipped("not executed", &why),
    };
    match run::launch(client, &loaded, &arguments) {
        Ok(launched) => {
            behavior("execution", "ok");
            for (index, output) in launched.outputs.iter().flatten().enumerate() {
                result(observer, &format!("result {index}"), output);
            }
        }
        Err(error) => failed("execution", &error),
    }
}

fn attributes(executable: &Executable) {
    outcome("name", executable.name(), Clone::clone);
    own("fingerprint", executable.fingerprint(), Clone::clone);
    outcome("replicas", executable.num_replicas(), ToString::to_string);
    outcome("partitions", executable.num_partitions(), ToString::to_string);
    outcome("outputs", executable.num_outputs(), ToString::to_string);
    own("size of the code", executable.code_size(), ToString::to_string);
    outcome("output types", executable.output_types(), |types| format!("{types:?}"));
    outcome("output dimensions", executable.output_dims(), |dims| format!("{dims:?}"));
    outcome("output memory kinds", executable.output_memory_kinds(), |kinds| kinds.join(", "));
    outcome("parameter memory kinds", executable.parameter_memory_kinds(), |kinds| kinds.join(", "));
    if let Some(costs) = outcome("cost analysis", executable.cost_analysis(), |costs| types_of(costs)) {
        let values: Vec<String> = costs.iter().map(|cost| format!("{}={}", cost.name, cost.value)).collect();
        identity("costs", values.join(", "));
    }
    // Sizes contain what the plugin adds to the elements: padding, or the table of pointers of several outputs.
    let memory = own("size of arguments and outputs", executable.memory_stats(), |memory| {
        format!("{} and {} bytes", memory.arguments, memory.outputs)
    });
    if let Some(memory) = memory {
        identity("size of temporaries", memory.temporaries);
    }
    let optimized = executable.optimized_program();
    if let Some((code, _)) =
        outcome("format of the optimized program", optimized, |(_, format)| format.clone())
    {
        behavior("optimized program", if code.is_empty() { "empty" } else { "some bytes" });
        identity("size of the optimized program", code.len());
    }
    own("serialized", executable.serialize(), |serialized| format!("{} bytes", serialized.bytes.len()));
    own("compile options", executable.compile_options(), |options| format!("{} bytes", options.bytes.len()));
}

fn of_loaded(loaded: &LoadedExecutable) {
    outcome("devices", loaded.devices(), |devices| devices.len().to_string());
    outcome("logical ids", loaded.logical_ids(), |ids| format!("{ids:?}"));
    own("device assignment", loaded.device_assignment(), |bytes| format!("{} bytes", bytes.bytes.len()));
    own("fingerprint when loaded", loaded.fingerprint(), Clone::clone);
    outcome("is deleted", loaded.is_deleted(), ToString::to_string);
}

/// Notes the attributes and the contents of a result.
fn result(observer: &Observer, what: &str, output: &Buffer) {
    let of = |name: &str| format!("{what}: {name}");
    outcome(&of("layout"), output.memory_layout(), |layout| format!("{layout:?}"));
    outcome(&of("memory kind"), output.memory().and_then(|memory| memory.kind()), Clone::clone);
    own(&of("size on the device"), output.on_device_size(), ToString::to_string);
    if let Err(error) = contents(observer, what, output) {
        failed(what, &error);
    }
}
