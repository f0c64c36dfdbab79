//! Compiled programs as hosts see them.

use pjrt_plugin::{
    ArraySpec, AttributeValue, CompileRequest, CompiledMemoryStats, Error, Memory, PjrtExecutable,
    ProgramFormat, Result, ext,
};
use pjrt_stablehlo::ErrorKind;
use pjrt_stablehlo::ir::{Attribute, Function, OpCode, Type};
use pjrt_stablehlo::passes::{CoreOps, decompose};

use crate::Accelerator;
use crate::array::Rows;
use crate::cost::Cost;
use crate::element_type::to_pjrt;
use crate::program::{OPERATIONS, Program};

/// A compiled program. It contains no device, because it can run on any device.
pub struct Executable {
    pub(crate) name: String,
    pub(crate) program: Program,
    parameters: Vec<ArraySpec>,
    outputs: Vec<ArraySpec>,
    donated: Vec<usize>,
    replicas: usize,
}

impl Executable {
    /// Compiles a program.
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if the program is invalid, and UNIMPLEMENTED if the device does not support
    /// an operation; the error names the operation and its location in the user's program.
    pub(crate) fn compile(request: CompileRequest<'_, Accelerator>) -> Result<Self> {
        if request.options.num_partitions > 1 {
            let message = format!(
                "programs with {} partitions are not supported; expected 1",
                request.options.num_partitions
            );
            return Err(Error::unimplemented(message).with_hint("put all arrays of a program on one device"));
        }
        let code = request.program.code();
        let module = match request.program.format() {
            ProgramFormat::Mlir => pjrt_stablehlo::parse(code),
            ProgramFormat::Hlo => pjrt_stablehlo::parse_hlo(code),
            ProgramFormat::HloWithConfig => pjrt_stablehlo::parse_hlo_with_config(code),
        };
        let module = module.map_err(convert_error)?;
        // Calls are inlined first; then operations that the device lacks are decomposed. These are two
        // passes, so that an error in the second one has the location of the call.
        let module =
            decompose(&module, &CoreOps::default().without(OpCode::FuncCall)).map_err(convert_error)?;
        let core = CoreOps::from_ops(OPERATIONS.iter().copied()).named("the accelerator");
        let module = decompose(&module, &core).map_err(convert_error)?;
        let main =
            module.main().ok_or_else(|| Error::invalid_argument("the program has no function 'main'"))?;
        let program = Program::new(main.clone())?;
        let arguments = main.argument_types().iter().enumerate();
        let parameter = |(index, ty)| array_spec(ty, main.argument_attribute(index, MEMORY_KIND));
        let results = main.result_types().iter().enumerate();
        let output = |(index, ty)| array_spec(ty, main.result_attribute(index, MEMORY_KIND));
        Ok(Self {
            name: module.name.as_deref().unwrap_or("main").to_owned(),
            parameters: arguments.map(parameter).collect::<Result<_>>()?,
            outputs: results.map(output).collect::<Result<_>>()?,
            donated: (0..main.argument_types().len()).filter(|index| is_donated(main, *index)).collect(),
            replicas: request.options.num_replicas,
            program,
        })
    }
}

fn convert_error(error: pjrt_stablehlo::Error) -> Error {
    match error.kind {
        ErrorKind::Unsupported => Error::unimplemented(error.to_string()),
        _ => Error::invalid_argument(error.to_string()),
    }
}

/// The attribute by which JAX specifies the memory of an argument or a result.
const MEMORY_KIND: &str = "mhlo.memory_kind";

fn array_spec(ty: &Type, memory_kind: Option<&Attribute>) -> Result<ArraySpec> {
    let unsupported =
        || Error::unimplemented(format!("the accelerator does not support arrays of type {ty}"));
    let tensor = ty.as_tensor().ok_or_else(unsupported)?;
    let element_type = to_pjrt(tensor.element_type()).ok_or_else(unsupported)?;
    let spec = ArraySpec::new(element_type, tensor.static_dims().ok_or_else(unsupported)?);
    match memory_kind.and_then(Attribute::as_str) {
        None => Ok(spec),
        Some(kind) if [Memory::DEVICE, Memory::PINNED_HOST].contains(&kind) => {
            Ok(spec.with_memory_kind(kind))
        }
        Some(kind) => {
            Err(Error::unimplemented(format!("the accelerator does not have the memory kind {kind}")))
        }
    }
}

/// Returns `true` if the program may write its results to the memory of an argument. The device does not need
/// to know which result the argument is meant for (`tf.aliasing_output`).
fn is_donated(main: &Function, index: usize) -> bool {
    main.argument_attribute(index, "tf.aliasing_output").is_some()
        || main.argument_attribute(index, "jax.buffer_donor").and_then(Attribute::as_bool) == Some(true)
}

/// Programs have one partition, so no shardings are reported. JAX compiles faster if a plugin reports this.
impl ext::Shardings for Accelerator {
    fn parameter_shardings(_: &Executable) -> Option<Vec<ext::Sharding>> {
        None
    }

    fn output_shardings(_: &Executable) -> Option<Vec<ext::Sharding>> {
        None
    }
}

impl PjrtExecutable for Executable {
    fn name(&self) -> &str {
        &self.name
    }

    fn num_replicas(&self) -> usize {
        self.replicas
    }

    fn parameters(&self) -> &[ArraySpec] {
        &self.parameters
    }

    fn outputs(&self) -> &[ArraySpec] {
        &self.outputs
    }

    fn donated_parameters(&self) -> &[usize] {
        &self.donated
    }

    fn cost_analysis(&self) -> Vec<(String, AttributeValue)> {
        let Cost { flops, bytes } = Cost::of(&self.program);
        vec![("flops".to_owned(), flops.into()), ("bytes accessed".to_owned(), bytes.into())]
    }

    fn memory_stats(&self) -> Option<CompiledMemoryStats> {
        let size = |spec: &ArraySpec| {
            let rows = Rows::of(spec.dims(), spec.element_type().byte_size());
            rows.and_then(|rows| i64::try_from(rows.padded_size()).ok()).unwrap_or(i64::MAX)
        };
        let sum = |specs: &[ArraySpec]| specs.iter().map(size).fold(0, i64::saturating_add);
        let (arguments, outputs) = (sum(&self.parameters), sum(&self.outputs));
        let temporary = self.program.scratch_size as i64;
        let total = arguments.saturating_add(outputs).saturating_add(temporary);
        Some(CompiledMemoryStats {
            argument_size: arguments,
            output_size: outputs,
            temp_size: temporary,
            peak_memory: total,
            total_size: total,
            ..CompiledMemoryStats::default()
        })
    }
}
