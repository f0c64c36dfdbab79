//! The program and the arrays that many checks use.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::context::Context;
use super::message::{Step, in_step};
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{
    Buffer, Client, Device, ElementType, Error, Executable, HostArray, LoadedExecutable, Program, Result,
    Uploaded,
};

/// Returns a program that adds two arrays of f32. All checks that execute a program use this one, so that
/// plugins which support nothing else can still be checked.
pub(crate) fn add_program(dims: &str) -> String {
    let ty = format!("tensor<{dims}f32>");
    format!(
        "module @add {{\n  func.func public @main(%x: {ty}, %y: {ty}) -> {ty} {{\n    %sum = stablehlo.add %x, %y : {ty}\n    \
         return %sum : {ty}\n  }}\n}}\n"
    )
}

pub(crate) fn compile_add(client: &Client) -> Result<LoadedExecutable> {
    in_step(Step::Compilation, || {
        client.compile(&Program::mlir(&add_program("4x")), &CompileOptions::default().encode())
    })
}

/// A compiled program, and the loaded program from which it was obtained, which outlives it.
pub(crate) struct Compiled {
    executable: Executable,
    _loaded: LoadedExecutable,
}

impl std::ops::Deref for Compiled {
    type Target = Executable;

    fn deref(&self) -> &Executable {
        &self.executable
    }
}

/// Compiles the program that adds, for checks of `PJRT_Executable` functions.
pub(crate) fn compile_and_keep_add(client: &Client) -> Result<Compiled> {
    let loaded = compile_add(client)?;
    Ok(Compiled { executable: loaded.executable()?, _loaded: loaded })
}

/// Registers a type of values for the handlers of custom calls. A registry may refuse a name that it knows, so that each call
/// registers another name.
pub(crate) fn register_type(context: &Context, name: &str) -> Result<i64> {
    static REGISTERED: AtomicUsize = AtomicUsize::new(0);
    let number = REGISTERED.fetch_add(1, Ordering::Relaxed);
    context.plugin.register_type(&format!("conform::{name}_{number}"))
}

/// Returns the error of a call that must fail. Several calls are tried, because a plugin may accept some of them.
pub(crate) fn any_error(client: &Client) -> Option<Error> {
    let options = CompileOptions::default().encode();
    let calls: [&dyn Fn() -> Option<Error>; 3] = [
        &|| client.lookup_device(-2).err().filter(|error| !error.is_of_success),
        &|| client.compile(&Program::mlir("no program"), &options).err(),
        &|| client.deserialize(b"no executable").err(),
    ];
    calls.iter().find_map(|call| call())
}

pub(crate) fn f32_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().map(|value| value.to_le_bytes()).collect::<Vec<_>>().into_flattened()
}

/// Transfers four numbers to the first device.
pub(crate) fn upload_four(client: &Client, values: &[f32; 4]) -> Result<Buffer> {
    upload_to(client, values, client.device()?).map(|uploaded| uploaded.buffer)
}

pub(crate) fn upload_to(client: &Client, values: &[f32; 4], device: Device<'_>) -> Result<Uploaded> {
    in_step(Step::Upload, || {
        client.upload(&HostArray::new(&f32_bytes(values), ElementType::F32, &[4]), Some(device), None)
    })
}

pub(crate) fn numbers(buffer: &Buffer) -> Result<Vec<f32>> {
    let bytes = buffer.read()?;
    Ok(bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
}
