//! The state of one device during a run.

use super::kernels::call;
use super::process::Process;
use super::{Cx, Input, Result, RunError, host, manual, row_blocks};
use crate::plan::{Home, Program, ResultSource, Step};
use crate::storage::{Array, Frame};
use crate::trace;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The state of one device during a run.
pub(super) struct Lane {
    pub(super) frame: Frame,
    /// The index of the next step.
    pub(super) pc: usize,
    pub(super) process: Process,
    /// The arguments; `None` for an argument whose memory a result uses.
    inputs: Vec<Option<Array>>,
}

/// The reason why a lane stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The program has ended.
    Done,
    /// The next step is a collective.
    Collective,
}

impl Lane {
    /// Binds arguments, results and the arena to the slots of the program.
    pub(super) fn start(
        program: &Program,
        inputs: Vec<Input>,
        process: Process,
        cx: &Cx<'_>,
    ) -> Result<Self> {
        check(program, &inputs)?;
        let allocator = &cx.runtime.allocator;
        let mut donatable = Vec::with_capacity(inputs.len());
        let mut arrays = Vec::with_capacity(inputs.len());
        for input in inputs {
            donatable.push(input.donatable);
            let dense =
                if input.array.as_window().is_some() { input.array.dense(allocator)? } else { input.array };
            arrays.push(Some(dense));
        }
        let mut frame = program.frames.take();
        frame.begin(program.slots.len(), allocator.allocate(program.arena)?);
        // Results are bound first because they may take the memory of arguments.
        let mut taken: Vec<Option<u32>> = vec![None; arrays.len()];
        for (k, source) in program.results.iter().enumerate() {
            let ResultSource::Computed { slot } = source else { continue };
            let shape = &program.result_shapes[k];
            let donor = program.donors[k]
                .filter(|p| donatable[*p] && arrays[*p].as_mut().is_some_and(Array::is_writable));
            let array = match donor.and_then(|p| Some((p, arrays[p].take()?))) {
                Some((p, array)) => {
                    taken[p] = Some(*slot);
                    array.into_reinterpreted(shape.dtype, Arc::clone(&shape.dims))
                }
                None => Array::allocate(allocator, shape.dtype, Arc::clone(&shape.dims))?,
            };
            frame.bind_result(*slot, k, array);
        }
        let constants = program.constant_arrays(allocator)?;
        for (slot, spec) in program.slots.iter().enumerate() {
            let slot = slot as u32;
            match spec.home {
                Home::Arena(offset) => frame.bind_arena(slot, offset, spec.bytes),
                Home::Parameter(p) => match (&arrays[p as usize], taken[p as usize]) {
                    (Some(array), _) => frame.bind_array(slot, array),
                    (None, Some(result)) => frame.bind_alias(slot, result),
                    (None, None) => unreachable!("an argument without memory belongs to a result"),
                },
                Home::Constant(c) => frame.bind_array(slot, &constants[c as usize]),
                Home::Result(_) => {}
            }
        }
        Ok(Self { frame, pc: 0, process, inputs: arrays })
    }

    /// Runs steps until the program ends or the next step is a collective.
    pub(super) fn advance(&mut self, program: &Program, cx: &Cx<'_>) -> Result<Stop> {
        let traced = trace::is_on();
        while let Some(step) = program.steps.get(self.pc) {
            match step {
                Step::Run(c) => {
                    let _span = traced.then(|| trace::step(program, self.pc));
                    call(c, &mut self.frame, self.process, cx)?;
                    self.pc += 1;
                }
                Step::RowBlocks(step) => {
                    let _span = traced.then(|| trace::step(program, self.pc));
                    row_blocks::run(step, &mut self.frame, self.process, cx)?;
                    self.pc += 1;
                }
                Step::Jump(to) => {
                    if *to < self.pc && cx.cancel.is_some_and(|c| c.load(Ordering::Relaxed)) {
                        return Err(RunError::cancelled());
                    }
                    self.pc = *to;
                }
                Step::JumpIfNot { predicate, to } => {
                    self.pc = if self.frame.bytes(predicate)[0] == 0 { *to } else { self.pc + 1 };
                }
                Step::Branch { index, to } => {
                    let bytes = self.frame.bytes(index);
                    let i = i32::from_le_bytes(
                        bytes.try_into().expect("the verifier requires branch indices of type i32"),
                    );
                    let last = to.len() - 1;
                    self.pc = to[usize::try_from(i).map_or(last, |i| i.min(last))];
                }
                Step::Swap(a, b) => {
                    self.frame.swap(*a, *b);
                    self.pc += 1;
                }
                Step::Settle(slot) => {
                    self.frame.settle(*slot);
                    self.pc += 1;
                }
                Step::Collective(_) => return Ok(Stop::Collective),
                Step::Send { channel, read } => {
                    let _span = traced.then(|| trace::step(program, self.pc));
                    host::send(&self.frame, self.process, *channel, read, cx)?;
                    self.pc += 1;
                }
                Step::Receive { channel, write } => {
                    let _span = traced.then(|| trace::step(program, self.pc));
                    host::receive(&mut self.frame, self.process, *channel, write, cx)?;
                    self.pc += 1;
                }
                Step::Manual(m) => {
                    let _span = traced.then(|| trace::step(program, self.pc));
                    manual::run(m, &mut self.frame, self.process, cx)?;
                    self.pc += 1;
                }
            }
        }
        Ok(Stop::Done)
    }

    /// Returns the results.
    pub(super) fn finish(mut self, program: &Program, cx: &Cx<'_>) -> Result<Vec<Array>> {
        let mut results: Vec<Option<Array>> = Vec::with_capacity(program.results.len());
        for (k, source) in program.results.iter().enumerate() {
            let ResultSource::Computed { slot } = source else {
                results.push(None);
                continue;
            };
            results.push(Some(
                self.frame
                    .take_result(*slot, k)
                    .expect("every computed result is bound at the start and taken once"),
            ));
        }
        // The frame also holds arguments. A donated one may itself be a result.
        program.frames.give(self.frame);
        for (k, source) in program.results.iter().enumerate() {
            let shape = &program.result_shapes[k];
            let array = match source {
                ResultSource::Computed { .. } => continue,
                ResultSource::Parameter(p) => {
                    let array = self.inputs[*p as usize]
                        .as_mut()
                        .expect("no result uses the memory of an argument that is itself a result");
                    if array.is_writable() {
                        array.reinterpret(shape.dtype, Arc::clone(&shape.dims))
                    } else {
                        // The caller keeps the argument, so the result must be a copy. A program returns a parameter only to
                        // copy it. Memory of the host may also change after the argument is released.
                        let bytes = array.bytes().expect("arguments are dense");
                        Array::from_bytes(&cx.runtime.allocator, shape.dtype, &shape.dims, bytes)?
                    }
                }
                ResultSource::Constant(c) => {
                    let constants = program.constant_arrays(&cx.runtime.allocator)?;
                    constants[*c as usize].reinterpret(shape.dtype, Arc::clone(&shape.dims))
                }
                ResultSource::Same(j) => results[*j as usize].clone().expect("the result precedes this one"),
            };
            results[k] = Some(array);
        }
        Ok(results.into_iter().flatten().collect())
    }
}

/// Checks the arguments of one lane.
fn check(program: &Program, inputs: &[Input]) -> Result<()> {
    if inputs.len() != program.parameters.len() {
        return Err(RunError::invalid(format!(
            "the run has {} arguments, but the program has {} parameters",
            inputs.len(),
            program.parameters.len()
        )));
    }
    for (i, (input, shape)) in inputs.iter().zip(&program.parameters).enumerate() {
        if input.array.dtype() != shape.dtype || input.array.dims() != &*shape.dims {
            return Err(RunError::invalid(format!(
                "argument {i} is {:?}, but the program expects {shape}",
                input.array
            )));
        }
    }
    Ok(())
}
