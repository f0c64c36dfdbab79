//! Compiled programs as hosts see them.

use pjrt_plugin::stablehlo;
use pjrt_plugin::{
    ArraySpec, AttributeValue, CompileRequest, CompiledMemoryStats, DeserializeRequest, Error,
    PjrtExecutable, Result, Signature, ext,
};
use pjrt_stablehlo::Module;
use pjrt_stablehlo::ir::OpCode;
use pjrt_stablehlo::passes::{CoreOps, decompose};

use crate::Accelerator;
use crate::commands::Program;
use crate::cost::Cost;
use crate::lowering::lower;
use crate::operations::OPERATIONS;

/// A compiled program. It contains no device, because it can run on any device.
pub struct Executable {
    pub(crate) program: Program,
    signature: Signature,
    replicas: usize,
    /// The program in the device's operations, from which it is lowered again when it is deserialized.
    module: Module,
}

impl Executable {
    /// Compiles a program.
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if the program is invalid, and UNIMPLEMENTED if the device does not support
    /// an operation; the error names the operation and its location in the user's program.
    pub(crate) fn compile(request: CompileRequest<'_, Accelerator>) -> Result<Self> {
        let module = request.program.parse()?;
        // Calls are inlined first; then operations that the device lacks are decomposed. These are two passes, so that an error
        // in the second one has the location of the call.
        let module = decompose(&module, &CoreOps::default().without(OpCode::FuncCall))?;
        let module =
            decompose(&module, &CoreOps::from_ops(OPERATIONS.iter().copied()).named("the accelerator"))?;
        Self::of(module, request.options.num_replicas)
    }

    /// Restores a program that [`serialize`](PjrtExecutable::serialize) has saved.
    ///
    /// # Errors
    ///
    /// Returns FAILED_PRECONDITION if another version of the plugin has saved it.
    pub(crate) fn deserialize(request: DeserializeRequest<'_, Accelerator>) -> Result<Self> {
        let code = request.serialized.strip_prefix(FORMAT.as_bytes()).ok_or_else(|| {
            Error::failed_precondition(format!(
                "another version of the accelerator saved the program; expected '{FORMAT}'"
            ))
        })?;
        Self::of(pjrt_stablehlo::parse(code)?, request.compile.options.num_replicas)
    }

    fn of(module: Module, replicas: usize) -> Result<Self> {
        let program = lower(stablehlo::main(&module)?)?;
        let signature = Signature::of(&module)?;
        Ok(Self { program, signature, replicas, module })
    }
}

/// The beginning of a saved program. The version covers the set of operations.
const FORMAT: &str = concat!("accelerator ", env!("CARGO_PKG_VERSION"), "\n");

/// Programs have one partition, so no shardings are reported. JAX compiles faster if a plugin reports this.
impl ext::Shardings for Accelerator {}

impl PjrtExecutable for Executable {
    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn num_replicas(&self) -> usize {
        self.replicas
    }

    /// The compiler supports no collective operations, so each device can run a program alone. PyTorch/XLA launches one device.
    fn devices_communicate(&self) -> bool {
        false
    }

    fn serialize(&self) -> Result<Option<Vec<u8>>> {
        Ok(Some(format!("{FORMAT}{}", self.module).into_bytes()))
    }

    fn cost_analysis(&self) -> Vec<(String, AttributeValue)> {
        let Cost { flops, bytes } = Cost::of(&self.program);
        vec![("flops".to_owned(), flops.into()), ("bytes accessed".to_owned(), bytes.into())]
    }

    fn memory_stats(&self) -> Option<CompiledMemoryStats> {
        let temporary = self.program.scratch_size;
        // Arrays are dense on this device. One that pads them returns their sizes with padding.
        Some(CompiledMemoryStats::of_arrays(&self.signature, temporary, ArraySpec::dense_size))
    }
}
