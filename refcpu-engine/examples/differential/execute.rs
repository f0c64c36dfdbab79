//! Runs programs on refcpu with several options that must not change the results.

use crate::program::{GeneratedProgram, from_hex, to_hex};
use crate::table;
use pjrt_stablehlo::Module;
use pjrt_stablehlo::ir::OpCode;
use refcpu_engine::compile::{CompileErrorKind, CompileOptions, compile};
use refcpu_engine::exec::{Input, RunOptions, Runtime, run};
use refcpu_engine::storage::{Allocator, AllocatorOptions, Array};
use refcpu_kernels::{DType, Pool};
use serde::Serialize;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;

/// An array in the form that the driver reads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Output {
    #[serde(rename = "type")]
    ty: String,
    data: String,
}

/// The options of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Way {
    threads: usize,
    donated: bool,
    fuse: bool,
}

const USUAL: Way = Way { threads: 1, donated: false, fuse: true };

/// The outcome of a program.
#[derive(Default, Serialize)]
pub(crate) struct Outcome {
    /// The program as MLIR text.
    text: String,
    outputs: Vec<Output>,
    /// The reason why there are no outputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The options with which the outputs differ, and these outputs.
    variants: BTreeMap<&'static str, Result<Vec<Output>, String>>,
    /// The number of operations by name and element type.
    counts: Vec<(&'static str, String, usize)>,
}

/// The runtimes on which programs run, with one and with two threads.
pub(crate) struct Machine {
    one: Runtime,
    two: Runtime,
}

impl Machine {
    pub(crate) fn new() -> Self {
        let allocator = || Allocator::new(AllocatorOptions::default());
        Self { one: Runtime::new(Pool::inline(), allocator()), two: Runtime::new(Pool::new(2), allocator()) }
    }

    /// Runs a program with all options. One run splits it before the statement `cut`.
    pub(crate) fn outcome(&self, program: &GeneratedProgram, cut: usize) -> Outcome {
        let mut outcome = Outcome { text: program.text(false), ..Outcome::default() };
        let data: Vec<Option<Vec<u8>>> = program.arguments.iter().map(|a| from_hex(&a.data)).collect();
        let Some(data) = data.into_iter().collect::<Option<Vec<Vec<u8>>>>() else {
            outcome.error = Some("argument data is no hexadecimal number".to_owned());
            return outcome;
        };
        match guarded(|| self.run(program, &data, USUAL)) {
            Ok((module, outputs)) => {
                outcome.outputs = outputs;
                let counts = table::counts(&module);
                outcome.counts =
                    counts.into_iter().map(|((code, element), n)| (code.info().name, element, n)).collect();
            }
            Err(error) => {
                outcome.error = Some(error);
                return outcome;
            }
        }
        let has_state = outcome.counts.iter().any(|(name, ..)| *name == OpCode::Rng.info().name);
        if has_state {
            return outcome;
        }
        let ways = [
            ("threads", Way { threads: 2, ..USUAL }),
            ("donation", Way { donated: true, ..USUAL }),
            ("fusion", Way { fuse: false, ..USUAL }),
        ];
        for (name, way) in ways {
            let result = guarded(|| self.run(program, &data, way)).map(|(_, outputs)| outputs);
            outcome.compare(name, result);
        }
        if cut > 0 && cut < program.statements.len() && !crosses_other_than_tensors(program, cut) {
            let result = guarded(|| self.run_split(program, &data, cut));
            outcome.compare("split", result);
        }
        outcome
    }

    fn run(
        &self,
        program: &GeneratedProgram,
        data: &[Vec<u8>],
        way: Way,
    ) -> Result<(Module, Vec<Output>), String> {
        let text = program.text(way.donated);
        let module = pjrt_stablehlo::parse(text.into_bytes()).map_err(|e| format!("unreadable: {e}"))?;
        let options = CompileOptions { fuse: way.fuse, ..CompileOptions::default() };
        let compiled = compile(&module, &options).map_err(|e| {
            let kind = if e.kind == CompileErrorKind::Unimplemented { "unimplemented" } else { "refused" };
            format!("{kind}: {e}")
        })?;
        let runtime = if way.threads == 1 { &self.one } else { &self.two };
        let inputs = compiled.parameters.iter().zip(data).map(|(parameter, bytes)| {
            let (dtype, dims) = (parameter.shape.dtype, &parameter.shape.dims);
            let array =
                Array::from_bytes(&runtime.allocator, dtype, dims, bytes).map_err(|e| e.to_string())?;
            Ok(Input { array, donatable: way.donated })
        });
        let inputs = inputs.collect::<Result<Vec<_>, String>>()?;
        let results = run(&compiled.plan, runtime, vec![inputs], &RunOptions::default())
            .map_err(|e| format!("failed: {e}"))?;
        let outputs = results.into_iter().flatten().map(|array| output(&array)).collect();
        Ok((module, outputs))
    }

    /// Splits the program in two, and runs the parts one after the other.
    fn run_split(
        &self,
        program: &GeneratedProgram,
        data: &[Vec<u8>],
        cut: usize,
    ) -> Result<Vec<Output>, String> {
        let (first, second) = program.split(cut);
        let (_, between) = self.run(&first, data, USUAL)?;
        let between = between.iter().map(|output| from_hex(&output.data).ok_or("no hexadecimal number"));
        let between = between.collect::<Result<Vec<_>, _>>()?;
        let (_, outputs) = self.run(&second, &[data, &between].concat(), USUAL)?;
        Ok(outputs)
    }
}

impl Outcome {
    fn compare(&mut self, name: &'static str, result: Result<Vec<Output>, String>) {
        if result.as_ref() != Ok(&self.outputs) {
            self.variants.insert(name, result);
        }
    }
}

/// Returns whether a value that is not a tensor is defined before the cut and used after it.
fn crosses_other_than_tensors(program: &GeneratedProgram, cut: usize) -> bool {
    let (first, _) = program.split(cut);
    let types = first.types();
    first.results.iter().any(|name| !types[name.as_str()].starts_with("tensor"))
}

fn output(array: &Array) -> Output {
    let bytes = array.bytes().unwrap_or_default();
    let dims: String = array.dims().iter().map(|d| format!("{d}x")).collect();
    Output { ty: format!("tensor<{dims}{}>", name(array.dtype())), data: to_hex(bytes) }
}

fn name(dtype: DType) -> &'static str {
    dtype.mlir_name()
}

/// Returns the result of the function. A panic is an error.
fn guarded<T>(function: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    std::panic::catch_unwind(AssertUnwindSafe(function)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().cloned();
        let text = text.or_else(|| payload.downcast_ref::<&str>().map(|s| (*s).to_owned()));
        Err(format!("panic: {}", text.unwrap_or_default()))
    })
}
