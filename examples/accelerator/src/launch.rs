//! Launching programs.

use std::sync::Arc;

use pjrt_plugin::{ByDevice, Event, Input, PjrtExecutable, ReadyExecution, Result};

use crate::array::Array;
use crate::buffer::Buffer;
use crate::chip::{Allocation, Chip};
use crate::executable::Executable;
use crate::interpreter::Interpreter;
use crate::ram::Ram;

/// The command that executes a program on a device.
struct Run {
    executable: Arc<Executable>,
    /// The events that are complete when the data of the arguments is ready.
    arrivals: Vec<Event>,
    arguments: Vec<Array>,
    results: Vec<Array>,
    scratch: usize,
}

impl Run {
    fn carry_out(self, ram: &mut Ram) -> Result<()> {
        // The data that this device computes is ready, because it was submitted before. Data from other
        // devices or from the host may not be.
        for arrival in &self.arrivals {
            arrival.wait()?;
        }
        let program = &self.executable.program;
        Interpreter { program, ram, scratch: self.scratch, arguments: &self.arguments }.run(&self.results)
    }
}

/// An execution on one device whose memory is allocated.
struct Prepared {
    arguments: Vec<Array>,
    outputs: Vec<Buffer>,
    scratch: Allocation,
    /// The inputs that are read, and the donated ones whose memory is not reused.
    _inputs: (Vec<Input<Buffer>>, Vec<Buffer>),
}

impl Prepared {
    /// Takes the inputs, and allocates the outputs and the scratch memory.
    ///
    /// # Errors
    ///
    /// Returns RESOURCE_EXHAUSTED if there is not enough memory.
    fn new(executable: &Executable, chip: &Arc<Chip>, inputs: Vec<Input<Buffer>>) -> Result<Self> {
        let name = executable.name();
        let arguments = inputs.iter().map(|input| input.array.clone()).collect();
        let (mut shared, mut donated) = (Vec::new(), Vec::new());
        for input in inputs {
            match input.into_donated() {
                Ok(buffer) => donated.push(buffer),
                Err(input) => shared.push(input),
            }
        }
        let mut outputs = Vec::new();
        for (index, spec) in executable.outputs().iter().enumerate() {
            let holder = format!("output {index} of '{name}'");
            let reusable = donated.iter().position(|buffer| buffer.fits(spec));
            outputs.push(match reusable {
                Some(position) => donated.remove(position).reuse(spec, &holder)?,
                None => Buffer::allocate(chip, spec, &holder)?,
            });
        }
        let scratch =
            chip.allocate(executable.program.scratch_size, format!("scratch memory of '{name}'"))?;
        Ok(Self { arguments, outputs, scratch, _inputs: (shared, donated) })
    }
}

/// Submits a program to the queues of its devices. The memory of its inputs is allocated, but their data may
/// not be ready.
pub(crate) fn launch(executable: &Arc<Executable>, chips: &[Arc<Chip>], mut ready: ReadyExecution<Buffer>) {
    let arrivals = ready.ready_events();
    let inputs = ready.take_inputs();
    let prepared: Result<Vec<Prepared>> =
        chips.iter().zip(inputs).map(|(chip, inputs)| Prepared::new(executable, chip, inputs)).collect();
    let mut prepared = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return ready.fail(error),
    };
    let outputs: ByDevice<Vec<Buffer>> =
        prepared.iter_mut().map(|prepared| std::mem::take(&mut prepared.outputs)).collect();
    let runs: Vec<Run> = prepared
        .iter()
        .zip(&outputs)
        .zip(arrivals)
        .map(|((prepared, outputs), arrivals)| Run {
            executable: Arc::clone(executable),
            arrivals,
            arguments: prepared.arguments.clone(),
            results: outputs.iter().map(|output| output.array.clone()).collect(),
            scratch: prepared.scratch.address,
        })
        .collect();
    ready.allocated(outputs, |completion| {
        let submit = |(chip, run): (&Arc<Chip>, Run)| chip.queue.submit(move |ram| run.carry_out(ram));
        let done = Event::all(chips.iter().zip(runs).map(submit).collect());
        done.on_ready(move |outcome| match outcome {
            Ok(()) => completion.finish(),
            Err(error) => completion.fail(error),
        });
    });
    // The commands are in the queues, so memory that only they use can be freed for later commands.
    drop(prepared);
}
