//! Straight-line programs on single elements, which the processor runs for many elements at once.

use pjrt_stablehlo::ir::scalar::Function;

/// The number of a value of the program.
pub(crate) type Id = usize;

/// A function of elements. Fusion joins kernels, so that the elements between them never reach the memory.
#[derive(Clone, Default)]
pub(crate) struct Kernel {
    /// The values of the program that the kernel reads: an array of as many elements as the result, or of one.
    pub(crate) captured: Vec<Id>,
    pub(crate) steps: Vec<Step>,
    pub(crate) results: Vec<Source>,
}

/// A function whose operands are the results of earlier steps, or come from outside.
#[derive(Clone)]
pub(crate) struct Step {
    pub(crate) function: Function,
    pub(crate) operands: Vec<Source>,
}

/// The origin of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The element is passed to the kernel by the command, such as the operands of a reduction.
    Parameter(usize),
    /// The element belongs to a captured value.
    Captured(usize),
    Step(usize),
}

impl Kernel {
    /// Returns the source of a captured value, which is added if the kernel does not capture it yet.
    pub(crate) fn capture(&mut self, value: Id) -> Source {
        let known = self.captured.iter().position(|captured| *captured == value);
        Source::Captured(known.unwrap_or_else(|| {
            self.captured.push(value);
            self.captured.len() - 1
        }))
    }

    pub(crate) fn step(&mut self, function: Function, operands: Vec<Source>) -> Source {
        self.steps.push(Step { function, operands });
        Source::Step(self.steps.len() - 1)
    }

    /// Adds the steps of another kernel, and returns the source of its only result.
    pub(crate) fn fuse(&mut self, other: Kernel) -> Source {
        let captured: Vec<Source> = other.captured.iter().map(|value| self.capture(*value)).collect();
        let first = self.steps.len();
        let moved = |source: &Source| match *source {
            Source::Parameter(index) => Source::Parameter(index),
            Source::Captured(index) => captured[index],
            Source::Step(index) => Source::Step(first + index),
        };
        let steps = other.steps.into_iter().map(|step| {
            let operands = step.operands.iter().map(moved).collect();
            Step { operands, ..step }
        });
        self.steps.extend(steps);
        moved(&other.results[0])
    }

    /// Computes the results for one element of each parameter and captured value. `registers` is reused between calls.
    pub(crate) fn run(
        &self,
        parameters: &[u64],
        captured: impl Fn(usize) -> u64,
        registers: &mut Vec<u64>,
    ) -> Vec<u64> {
        registers.clear();
        let mut operands = Vec::new();
        let element = |source: &Source, registers: &[u64]| match *source {
            Source::Parameter(index) => parameters[index],
            Source::Captured(index) => captured(index),
            Source::Step(index) => registers[index],
        };
        for step in &self.steps {
            operands.clear();
            operands.extend(step.operands.iter().map(|source| element(source, registers)));
            registers.push((step.function)(&operands));
        }
        self.results.iter().map(|source| element(source, registers)).collect()
    }
}
