//! `PJRT_Executable`.
//!
//! `PJRT_Executable_Destroy`, `PJRT_Executable_Name`, `PJRT_Executable_NumReplicas`,
//! `PJRT_Executable_NumPartitions`, `PJRT_Executable_NumOutputs`,
//! `PJRT_Executable_SizeOfGeneratedCodeInBytes`, `PJRT_Executable_GetCostAnalysis`,
//! `PJRT_Executable_OutputMemoryKinds`, `PJRT_Executable_OptimizedProgram`, `PJRT_Executable_Serialize`,
//! `PJRT_Executable_OutputElementTypes`, `PJRT_Executable_OutputDimensions`, `PJRT_Executable_Fingerprint`,
//! `PJRT_Executable_GetCompiledMemoryStats`, `PJRT_Executable_GetCompileOptions`,
//! `PJRT_Executable_ParameterMemoryKinds`.

use std::borrow::Cow;
use std::ffi::c_char;
use std::ptr;
use std::sync::{Arc, OnceLock};

use pjrt_sys::{
    PJRT_Buffer_Type, PJRT_Executable, PJRT_Executable_Destroy_Args, PJRT_Executable_Fingerprint_Args,
    PJRT_Executable_GetCompileOptions_Args, PJRT_Executable_GetCompiledMemoryStats_Args,
    PJRT_Executable_GetCostAnalysis_Args, PJRT_Executable_Name_Args, PJRT_Executable_NumOutputs_Args,
    PJRT_Executable_NumPartitions_Args, PJRT_Executable_NumReplicas_Args,
    PJRT_Executable_OptimizedProgram_Args, PJRT_Executable_OutputDimensions_Args,
    PJRT_Executable_OutputElementTypes_Args, PJRT_Executable_OutputMemoryKinds_Args,
    PJRT_Executable_ParameterMemoryKinds_Args, PJRT_Executable_Serialize_Args,
    PJRT_Executable_SizeOfGeneratedCodeInBytes_Args, PJRT_Program,
};

use crate::abi::args::{View, chars, handle, input, null, output, output_slice, output_str};
use crate::abi::c_arrays::{NamedValues, Strings, delete_serialized, serialized};
use crate::abi::handle::{self, Handle};
use crate::abi::layout::Layouts;
use crate::client::PjrtClient;
use crate::compile_options::CompileOptions;
use crate::core::fingerprint::Fingerprint;
use crate::device::PjrtDevice;
use crate::error::{Error, Result};
use crate::executable::PjrtExecutable;
use crate::memory::Memory;
use crate::program::Program;
use crate::serialized::SerializedExecutable;
use crate::shape::Shape;
use crate::signature::ArraySpec;
use crate::stats::CompiledMemoryStats;

/// The object behind a `PJRT_Executable`, with the arrays that its getters return.
pub(crate) struct ExecutableState<C: PjrtClient> {
    pub(crate) executable: Arc<C::Executable>,
    pub(crate) program: Program,
    pub(crate) options: CompileOptions,
    name: String,
    pub(crate) parameters: Arrays,
    pub(crate) outputs: Arrays,
    /// For each parameter, whether its argument is donated.
    pub(crate) donated: Vec<bool>,
    pub(crate) any_donated: bool,
    pub(crate) parameter_shardings: OnceLock<Option<Strings>>,
    pub(crate) output_shardings: OnceLock<Option<Strings>>,
    cost: OnceLock<NamedValues>,
    optimized: OnceLock<Program>,
    fingerprint: OnceLock<String>,
}

/// The parameters or outputs of a program, with the arrays that the getters return.
pub(crate) struct Arrays {
    pub(crate) shapes: Vec<Shape>,
    pub(crate) memory_kinds: Vec<Option<String>>,
    kinds: Strings,
    types: Vec<PJRT_Buffer_Type>,
    dims: Vec<i64>,
    ranks: Vec<usize>,
    layouts: OnceLock<Layouts>,
}

impl Arrays {
    fn new(specs: &[ArraySpec], default_kind: &str) -> Result<Self> {
        let shapes: Vec<Shape> =
            specs.iter().map(|spec| Shape::new(spec.element_type(), spec.dims())).collect::<Result<_>>()?;
        // jaxlib before 0.9 compares these with the memory kinds of buffers, so the default memory's kind must be explicit.
        let kinds = specs.iter().map(|spec| spec.memory_kind().unwrap_or(default_kind));
        Ok(Self {
            memory_kinds: specs.iter().map(|spec| spec.memory_kind().map(str::to_owned)).collect(),
            kinds: Strings::new(kinds),
            types: shapes.iter().map(|shape| PJRT_Buffer_Type(shape.element_type as u32)).collect(),
            dims: shapes.iter().flat_map(|shape| shape.dims().iter().copied()).collect(),
            ranks: shapes.iter().map(|shape| shape.dims().len()).collect(),
            shapes,
            layouts: OnceLock::new(),
        })
    }

    /// Returns the layouts, which are created on the first call.
    pub(crate) fn layouts(&self) -> &Layouts {
        self.layouts.get_or_init(|| Layouts::row_major(self.ranks.iter().copied()))
    }

    fn size(&self) -> i64 {
        self.shapes.iter().map(|shape| shape.host_size()).fold(0, usize::saturating_add) as i64
    }
}

/// Returns UNIMPLEMENTED if a program was compiled for other numbers of replicas and partitions than the host requested,
/// because the plugin ignored them.
fn check_counts<C: PjrtClient>(executable: &C::Executable, options: &CompileOptions) -> Result<()> {
    let counts = [
        ("replicas", options.num_replicas, executable.num_replicas()),
        ("partitions", options.num_partitions, executable.num_partitions()),
    ];
    for (name, requested, compiled) in counts {
        if requested != compiled {
            return Err(Error::unimplemented(format!(
                "the plugin '{}' does not support a program with {requested} {name}; it compiled the program for {compiled}",
                C::PLATFORM_NAME
            ))
            .with_hint("put all arrays of a program on one device"));
        }
    }
    Ok(())
}

impl<C: PjrtClient> Handle for ExecutableState<C> {
    type Opaque = PJRT_Executable;
    const KIND: &'static str = "PJRT_Executable";
}

impl<C: PjrtClient> ExecutableState<C> {
    pub(crate) fn new(
        executable: C::Executable,
        program: Program,
        options: CompileOptions,
        client: Option<&C>,
    ) -> Result<Arc<Self>> {
        check_counts::<C>(&executable, &options)?;
        let device = client.and_then(|client| client.devices().first());
        let default_kind =
            device.and_then(|device| device.memories().first()).map_or(Memory::DEVICE, Memory::kind);
        let signature = executable.signature();
        let parameters = Arrays::new(&signature.parameters, default_kind)?;
        let outputs = Arrays::new(&signature.outputs, default_kind)?;
        let mut donated = vec![false; parameters.shapes.len()];
        for parameter in &signature.donated {
            let Some(donated) = donated.get_mut(*parameter) else {
                return Err(Error::internal(format!(
                    "Signature::donated has the index {parameter} for a program with {} parameters",
                    parameters.shapes.len()
                )));
            };
            *donated = true;
        }
        Ok(Arc::new(Self {
            name: signature.name.clone(),
            executable: Arc::new(executable),
            program,
            options,
            parameters,
            outputs,
            any_donated: donated.contains(&true),
            donated,
            parameter_shardings: OnceLock::new(),
            output_shardings: OnceLock::new(),
            cost: OnceLock::new(),
            optimized: OnceLock::new(),
            fingerprint: OnceLock::new(),
        }))
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the optimized program. It is read once, so that both calls of the protocol get the same program.
    fn optimized(&self) -> Result<&Program> {
        if let Some(optimized) = self.optimized.get() {
            return Ok(optimized);
        }
        let optimized = self.executable.optimized_program();
        let optimized = optimized.as_ref().unwrap_or(&self.program).as_optimized()?;
        Ok(self.optimized.get_or_init(|| optimized))
    }

    pub(crate) fn fingerprint(&self) -> &str {
        self.fingerprint.get_or_init(|| {
            self.executable.fingerprint().unwrap_or_else(|| {
                let format = self.program.format().name().as_bytes();
                let options = self.options.encode();
                Fingerprint::of(&[C::PLATFORM_NAME.as_bytes(), format, self.program.code(), &options])
                    .to_string()
            })
        })
    }

    fn memory_stats(&self) -> CompiledMemoryStats {
        self.executable.memory_stats().unwrap_or_else(|| {
            let (argument_size, output_size) = (self.parameters.size(), self.outputs.size());
            let total = argument_size.saturating_add(output_size);
            CompiledMemoryStats {
                generated_code_size: self.executable.generated_code_size_in_bytes().max(0),
                argument_size,
                output_size,
                peak_memory: total,
                total_size: total,
                ..CompiledMemoryStats::default()
            }
        })
    }
}

/// `PJRT_Executable_Destroy`.
pub(crate) fn executable_destroy<C: PjrtClient>(args: View<'_, PJRT_Executable_Destroy_Args>) -> Result<()> {
    // SAFETY: the host passes ownership of one share.
    drop(unsafe { handle::share_from_raw::<ExecutableState<C>>(input!(args.executable), "executable") }?);
    Ok(())
}

/// `PJRT_Executable_Name`.
pub(crate) fn executable_name<C: PjrtClient>(args: View<'_, PJRT_Executable_Name_Args>) -> Result<()> {
    let executable = handle!(args.executable: ExecutableState<C>)?;
    output_str!(args.executable_name, executable_name_size = &executable.name);
    Ok(())
}

/// `PJRT_Executable_NumReplicas`.
pub(crate) fn executable_num_replicas<C: PjrtClient>(
    args: View<'_, PJRT_Executable_NumReplicas_Args>,
) -> Result<()> {
    let executable = handle!(args.executable: ExecutableState<C>)?;
    output!(args.num_replicas = executable.executable.num_replicas());
    Ok(())
}

/// `PJRT_Executable_NumPartitions`.
pub(crate) fn executable_num_partitions<C: PjrtClient>(
    args: View<'_, PJRT_Executable_NumPartitions_Args>,
) -> Result<()> {
    let executable = handle!(args.executable: ExecutableState<C>)?;
    output!(args.num_partitions = executable.executable.num_partitions());
    Ok(())
}

/// `PJRT_Executable_NumOutputs`: returns the number of outputs per device. Hosts call it before every execution.
pub(crate) fn executable_num_outputs<C: PjrtClient>(
    args: View<'_, PJRT_Executable_NumOutputs_Args>,
) -> Result<()> {
    output!(args.num_outputs = handle!(args.executable: ExecutableState<C>)?.outputs.shapes.len());
    Ok(())
}

/// `PJRT_Executable_SizeOfGeneratedCodeInBytes`.
pub(crate) fn executable_size_of_generated_code_in_bytes<C: PjrtClient>(
    args: View<'_, PJRT_Executable_SizeOfGeneratedCodeInBytes_Args>,
) -> Result<()> {
    let executable = handle!(args.executable: ExecutableState<C>)?;
    output!(args.size_in_bytes = executable.executable.generated_code_size_in_bytes());
    Ok(())
}

/// `PJRT_Executable_GetCostAnalysis`.
pub(crate) fn executable_get_cost_analysis<C: PjrtClient>(
    args: View<'_, PJRT_Executable_GetCostAnalysis_Args>,
) -> Result<()> {
    let executable = handle!(args.executable: ExecutableState<C>)?;
    let cost = executable.cost.get_or_init(|| NamedValues::new(&executable.executable.cost_analysis()));
    output_slice!(args.properties, num_properties = cost.as_slice());
    Ok(())
}

/// `PJRT_Executable_OutputMemoryKinds`.
pub(crate) fn executable_output_memory_kinds<C: PjrtClient>(
    args: View<'_, PJRT_Executable_OutputMemoryKinds_Args>,
) -> Result<()> {
    let kinds = &handle!(args.executable: ExecutableState<C>)?.outputs.kinds;
    output_slice!(args.memory_kinds, num_outputs = kinds.pointers());
    output!(args.memory_kind_sizes = kinds.lengths().as_ptr());
    Ok(())
}

/// `PJRT_Executable_ParameterMemoryKinds`.
pub(crate) fn executable_parameter_memory_kinds<C: PjrtClient>(
    args: View<'_, PJRT_Executable_ParameterMemoryKinds_Args>,
) -> Result<()> {
    let kinds = &handle!(args.executable: ExecutableState<C>)?.parameters.kinds;
    output_slice!(args.memory_kinds, num_parameters = kinds.pointers());
    output!(args.memory_kind_sizes = kinds.lengths().as_ptr());
    Ok(())
}

/// `PJRT_Executable_OutputElementTypes`.
pub(crate) fn executable_output_element_types<C: PjrtClient>(
    args: View<'_, PJRT_Executable_OutputElementTypes_Args>,
) -> Result<()> {
    let outputs = &handle!(args.executable: ExecutableState<C>)?.outputs;
    output_slice!(args.output_types, num_output_types = &outputs.types);
    Ok(())
}

/// `PJRT_Executable_OutputDimensions`.
pub(crate) fn executable_output_dimensions<C: PjrtClient>(
    args: View<'_, PJRT_Executable_OutputDimensions_Args>,
) -> Result<()> {
    let outputs = &handle!(args.executable: ExecutableState<C>)?.outputs;
    output!(args.num_outputs = outputs.ranks.len());
    output!(args.dims = outputs.dims.as_ptr());
    output!(args.dim_sizes = outputs.ranks.as_ptr());
    Ok(())
}

/// `PJRT_Executable_OptimizedProgram`. Hosts call it twice: without memory for the code to get its size, and then with
/// memory.
pub(crate) fn executable_optimized_program<C: PjrtClient>(
    args: View<'_, PJRT_Executable_OptimizedProgram_Args>,
) -> Result<()> {
    let executable = handle!(args.executable: ExecutableState<C>)?;
    let program = input!(args.program);
    if program.is_null() {
        return Err(null("program"));
    }
    // SAFETY: the field points to a program of the host's version.
    write_program(&unsafe { View::new(program) }?, executable.optimized()?)
}

/// `PJRT_Executable_Serialize`.
pub(crate) fn executable_serialize<C: PjrtClient>(
    args: View<'_, PJRT_Executable_Serialize_Args>,
) -> Result<()> {
    let executable = handle!(args.executable: ExecutableState<C>)?;
    let whole = SerializedExecutable {
        program: executable.program.clone(),
        options: executable.options.clone(),
        compiled: executable.executable.serialize()?.map(Cow::Owned),
    };
    let (bytes, size, holder) = serialized(whole.encode(C::PLATFORM_NAME)?);
    output!(args.serialized_bytes = bytes);
    output!(args.serialized_bytes_size = size);
    output!(args.serialized_executable = holder);
    output!(args.serialized_executable_deleter = Some(delete_serialized));
    Ok(())
}

/// `PJRT_Executable_Fingerprint`.
pub(crate) fn executable_fingerprint<C: PjrtClient>(
    args: View<'_, PJRT_Executable_Fingerprint_Args>,
) -> Result<()> {
    let executable = handle!(args.executable: ExecutableState<C>)?;
    output_str!(args.executable_fingerprint, executable_fingerprint_size = executable.fingerprint());
    Ok(())
}

/// `PJRT_Executable_GetCompiledMemoryStats`.
pub(crate) fn executable_get_compiled_memory_stats<C: PjrtClient>(
    args: View<'_, PJRT_Executable_GetCompiledMemoryStats_Args>,
) -> Result<()> {
    let stats = handle!(args.executable: ExecutableState<C>)?.memory_stats();
    output!(args.generated_code_size_in_bytes = stats.generated_code_size);
    output!(args.argument_size_in_bytes = stats.argument_size);
    output!(args.output_size_in_bytes = stats.output_size);
    output!(args.alias_size_in_bytes = stats.alias_size);
    output!(args.temp_size_in_bytes = stats.temp_size);
    output!(args.host_generated_code_size_in_bytes = stats.host_generated_code_size);
    output!(args.host_argument_size_in_bytes = stats.host_argument_size);
    output!(args.host_output_size_in_bytes = stats.host_output_size);
    output!(args.host_alias_size_in_bytes = stats.host_alias_size);
    output!(args.host_temp_size_in_bytes = stats.host_temp_size);
    output!(args.peak_memory_in_bytes = stats.peak_memory);
    output!(args.total_size_in_bytes = stats.total_size);
    output!(args.total_allocation_bytes = stats.total_size);
    output!(args.indefinite_allocations = 0);
    output!(args.peak_unpadded_heap_bytes = stats.peak_memory);
    Ok(())
}

/// `PJRT_Executable_GetCompileOptions`.
pub(crate) fn executable_get_compile_options<C: PjrtClient>(
    args: View<'_, PJRT_Executable_GetCompileOptions_Args>,
) -> Result<()> {
    let executable = handle!(args.executable: ExecutableState<C>)?;
    let (bytes, size, holder) = serialized(executable.options.encode());
    output!(args.serialized_bytes = bytes);
    output!(args.serialized_bytes_size = size);
    output!(args.serialized_compile_options = holder);
    output!(args.serialized_compile_options_deleter = Some(delete_serialized));
    Ok(())
}

/// Writes to a program of the host. The format is a static string. The code is copied if the host provides memory; otherwise
/// only its size is written.
fn write_program(target: &View<'_, PJRT_Program>, program: &Program) -> Result<()> {
    let (code, format) = (program.code(), program.format().name());
    output_str!(target.format, format_size = format);
    let memory: *mut c_char = input!(target.code);
    if memory.is_null() {
        output!(target.code_size = code.len());
        return Ok(());
    }
    let room = input!(target.code_size);
    if room < code.len() {
        return Err(Error::invalid_argument(format!(
            "the optimized program has {} bytes, but 'code_size' provides only {room}",
            code.len()
        )));
    }
    // SAFETY: the host's memory has `code_size` bytes, which are at least as many as are copied, and does not overlap the
    // code.
    unsafe { ptr::copy_nonoverlapping(chars(code), memory, code.len()) };
    output!(target.code_size = code.len());
    Ok(())
}
