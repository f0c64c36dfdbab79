//! Launching programs.

use std::sync::Arc;

use pjrt_plugin::queue::Block;
use pjrt_plugin::{Input, PjrtExecutable, Prepared, ReadyExecution, Result};

use crate::array::Array;
use crate::buffer::Buffer;
use crate::chip::Chip;
use crate::executable::Executable;
use crate::processor::Processor;
use crate::ram::Ram;

/// The command that executes a program on a device. It contains addresses, and owns no memory.
struct Run {
    executable: Arc<Executable>,
    arguments: Vec<Array>,
    results: Vec<Array>,
    scratch: usize,
}

impl Run {
    fn carry_out(self, ram: &Ram) -> Result<()> {
        let program = &self.executable.program;
        Processor { program, ram, scratch: self.scratch, arguments: &self.arguments }.run(&self.results)
    }
}

/// Submits a program to the queues of its devices. The memory of its inputs is allocated, but their data may not be ready.
pub(crate) fn launch(executable: &Arc<Executable>, chips: &[Arc<Chip>], ready: ReadyExecution<Buffer>) {
    ready.enqueue(
        |device, inputs| prepare(executable, &chips[device], inputs),
        // The arguments may come from the copy engine.
        |device, run, arrivals| {
            chips[device]
                .submit_after(arrivals, executable.signature().name.clone(), move |ram| run.carry_out(ram))
        },
    );
}

/// Allocates the outputs and the scratch memory of a program, and creates its command. An output takes the memory of a donated
/// argument of the same size.
fn prepare(
    executable: &Arc<Executable>,
    chip: &Arc<Chip>,
    inputs: &mut Vec<Input<Buffer>>,
) -> Result<Prepared<Buffer, Run, Block>> {
    let name = &executable.signature().name;
    let arguments = inputs.iter().map(|input| input.array.clone()).collect();
    let mut outputs = Vec::new();
    for (index, spec) in executable.signature().outputs.iter().enumerate() {
        let holder = format!("output {index} of '{name}'");
        outputs.push(match Input::take_donated(inputs, |buffer| buffer.fits(spec)) {
            Some(buffer) => buffer.reuse(spec, &holder),
            None => Buffer::allocate(chip, spec, &holder)?,
        });
    }
    let scratch =
        chip.memory.allocate(executable.program.scratch_size, format!("scratch memory of '{name}'"))?;
    let command = Run {
        executable: Arc::clone(executable),
        arguments,
        results: outputs.iter().map(|output| output.array.clone()).collect(),
        scratch: scratch.address(),
    };
    Ok(Prepared { outputs, command, until_submitted: scratch })
}
