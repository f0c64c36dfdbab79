//! Calls with objects in a state that does not allow them, and with arguments that do not fit.

use super::fact::outcome;
use super::observer::Observer;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{Buffer, Client, ElementType, Error, HostArray, LoadedExecutable, Program, Result};

/// A call of a host with a deleted or donated array.
type Query = fn(&Buffer) -> Result<String>;

/// Calls with a deleted array.
const OF_DELETED: &[(&str, Query)] = &[
    ("is deleted", |buffer| buffer.is_deleted().map(|deleted| deleted.to_string())),
    ("element type", |buffer| buffer.element_type().map(|type_| type_.to_string())),
    ("dimensions", |buffer| buffer.dims().map(|dims| format!("{dims:?}"))),
    ("layout", |buffer| buffer.memory_layout().map(|layout| format!("{layout:?}"))),
    ("size on the device", |buffer| buffer.on_device_size().map(|_| "a size".to_owned())),
    ("contents", |buffer| buffer.read().map(|_| "some bytes".to_owned())),
    ("ready event", |buffer| buffer.ready()?.wait().map(|()| "ok".to_owned())),
    ("deleted again", |buffer| buffer.delete().map(|()| "ok".to_owned())),
    ("copy to the same device", |buffer| {
        buffer.copy_to_device(buffer.device()?)?.read().map(|_| "a copy".to_owned())
    }),
    ("hold", |buffer| buffer.hold().map(|()| "ok".to_owned())),
    ("memory", |buffer| buffer.memory().map(|_| "a memory".to_owned())),
];

/// Executions with arguments that do not fit.
const EXECUTIONS: &[&str] = &[
    "execution with a deleted argument",
    "execution with an argument of another shape",
    "execution with an argument of another type",
    "execution with an argument that is an error",
    "second donation of an argument",
];

pub(super) fn names() -> Vec<String> {
    let of_deleted = OF_DELETED.iter().map(|(name, _)| format!("deleted array: {name}"));
    of_deleted.chain(EXECUTIONS.iter().map(|name| (*name).to_owned())).collect()
}

pub(super) fn observe(observer: &Observer, name: &str) {
    let Ok(client) = observer.client() else { return };
    let done = match name.strip_prefix("deleted array: ") {
        Some(query) => of_deleted(client, query),
        None => execution(client, name),
    };
    outcome("outcome", done, Clone::clone);
}

fn four(client: &Client, element_type: ElementType, dims: &[i64]) -> Result<Buffer> {
    let array = HostArray::new(&[0; 16], element_type, dims);
    client.upload(&array, Some(client.device()?), None).map(|uploaded| uploaded.buffer)
}

fn of_deleted(client: &Client, name: &str) -> Result<String> {
    let buffer = four(client, ElementType::F32, &[4])?;
    buffer.ready()?.wait()?;
    buffer.delete()?;
    let Some((_, query)) = OF_DELETED.iter().find(|(known, _)| *known == name) else {
        return Ok("unknown".to_owned());
    };
    query(&buffer)
}

fn doubles(client: &Client, attribute: &str) -> Result<LoadedExecutable> {
    let text = format!(
        "module {{\n func.func public @main(%x: tensor<4xf32>{attribute}) -> tensor<4xf32> {{\n \
         %0 = stablehlo.add %x, %x : tensor<4xf32>\n return %0 : tensor<4xf32>\n }}\n}}\n"
    );
    client.compile(&Program::mlir(&text), &CompileOptions::default().encode())
}

/// Executes a program, and reads its result.
fn executed(program: &LoadedExecutable, argument: &Buffer) -> Result<String> {
    let launched = program.run(&[argument])?;
    let done: Result<()> = launched.done.iter().try_for_each(|done| done.wait());
    let read = launched.outputs.iter().flatten().try_for_each(|output| output.read().map(drop));
    let code = |outcome: &Result<()>| match outcome {
        Ok(()) => "ok".to_owned(),
        Err(Error { code, .. }) => code.to_string(),
    };
    Ok(format!("launched; complete event {}; result {}", code(&done), code(&read)))
}

fn execution(client: &Client, name: &str) -> Result<String> {
    let program = doubles(client, "")?;
    match name {
        "execution with a deleted argument" => {
            let argument = four(client, ElementType::F32, &[4])?;
            argument.delete()?;
            executed(&program, &argument)
        }
        "execution with an argument of another shape" => {
            executed(&program, &four(client, ElementType::F32, &[2, 2])?)
        }
        "execution with an argument of another type" => {
            executed(&program, &four(client, ElementType::S32, &[4])?)
        }
        "execution with an argument that is an error" => {
            let memory = client.device()?.default_memory()?;
            let error = (pjrt_testing::host::Code::INTERNAL, "an error of the host");
            executed(&program, &client.error_buffer(error, ElementType::F32, &[4], memory)?)
        }
        _ => {
            let donates = doubles(client, " {tf.aliasing_output = 0 : i32}")?;
            let argument = four(client, ElementType::F32, &[4])?;
            executed(&donates, &argument)?;
            let is_deleted = argument.is_deleted()?;
            let again = executed(&donates, &argument);
            let again = again.unwrap_or_else(|error| format!("error {}", error.code));
            Ok(format!("is deleted: {is_deleted}; again: {again}"))
        }
    }
}
