//! Launching programs.

use std::sync::Arc;
use std::time::Instant;

use iree_runtime::{Array, Fence, Program};
use pjrt_plugin::{ArraySpec, Error, Input, PjrtExecutable, Prepared, ReadyExecution, Result};

use crate::buffer::Buffer;
use crate::device::Threads;
use crate::executable::Executable;
use crate::memory::Reserved;

/// The part of a launch on one device.
pub(crate) struct Part {
    pub(crate) program: Arc<Program>,
    pub(crate) threads: Arc<Threads>,
}

/// Starts the calls of an execution, whose inputs have memory but may not be written. Each call waits on its device until they
/// are.
pub(crate) fn launch(executable: &Executable, parts: &[Part], ready: ReadyExecution<Buffer>) {
    let start = Instant::now();
    ready.enqueue(
        |device, inputs| prepare(executable, &parts[device], inputs),
        |device, done, _| parts[device].threads.completion(&done, executable.signature().name.clone(), start),
    );
}

/// Starts a call. Its arguments are released by the device when it does not need them any more.
fn prepare(
    executable: &Executable,
    part: &Part,
    inputs: &[Input<Buffer>],
) -> Result<Prepared<Buffer, Fence, ()>> {
    part.threads.health.check()?;
    let outputs = &executable.signature().outputs;
    let reserve = |spec: &ArraySpec| part.threads.memory.reserve(spec.dense_size());
    let memory: Vec<Reserved> = outputs.iter().map(reserve).collect::<Result<_>>()?;
    let arguments: Vec<&Array> = inputs.iter().map(|input| &input.get().array).collect();
    let call = part.program.call(&arguments).map_err(|error| part.threads.health.failed(error))?;
    let expected = outputs.len();
    if call.results.len() != expected {
        let found = call.results.len();
        return Err(Error::internal(format!("the code returned {found} results; expected {expected}")));
    }
    let outputs = call.results.into_iter().zip(memory);
    let outputs = outputs.map(|(array, memory)| Buffer::new(array, memory, &part.threads));
    Ok(Prepared { outputs: outputs.collect(), command: call.done, until_submitted: () })
}
