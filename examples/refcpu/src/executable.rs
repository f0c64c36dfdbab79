//! Compiled programs.

use crate::cluster::fingerprint;
use crate::config::{COMPILE_OPTIONS, PLATFORM_NAME, runs_partitioned};
use crate::element_type::to_pjrt;
use crate::errors::compile_error;
use crate::sharding::{Cut, shardings};
use pjrt_plugin::ext::ffi::Handler;
use pjrt_plugin::{
    ArraySpec, AttributeValue, CompileRequest, CompiledMemoryStats, DeserializeRequest, DeviceDescription,
    Memory, Options, PjrtClient, PjrtExecutable, Program, ProgramFormat, Result, Signature, Topology,
};
use pjrt_sharding::Sharding;
use refcpu_engine::compile::{self, ArrayInfo, CompileOptions, Compiled, Parts};
use refcpu_engine::dump::Dump;
use refcpu_engine::plan::{Donation, Stats};
use refcpu_engine::trace::pass;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

/// A compiled program, and the shards of its arrays on the devices.
pub struct RefcpuExecutable {
    program: Program,
    /// `true` if the host has partitioned custom calls, so that the program differs from the one that was passed.
    has_partitions_of_calls: bool,
    pub(crate) compiled: Compiled,
    options: CompileOptions,
    signature: Signature,
    pub(crate) parameter_cuts: Vec<Cut>,
    pub(crate) output_cuts: Vec<Cut>,
    /// The text of a program that may run in several processes, reduced to a hash ([`fingerprint`]); otherwise 0.
    pub(crate) fingerprint: u64,
    /// The bytes of each output in the memory of a device, which are zero for outputs in memory of the host.
    pub(crate) output_bytes: Vec<usize>,
    /// The bytes of the outputs and of temporary memory on each device. Devices that share a run have equal parts of its
    /// temporary memory.
    pub(crate) execution_bytes: usize,
    /// The cost of the program of one device, which is estimated when a host requests it.
    cost: OnceLock<Stats>,
    /// The dump to which executions are written.
    pub(crate) dump: Option<Arc<Dump>>,
}

impl RefcpuExecutable {
    /// Reads and compiles a program.
    ///
    /// # Errors
    /// Returns INVALID_ARGUMENT if the program cannot be read or is invalid, or UNIMPLEMENTED if it uses an operation, a
    /// type or a sharding that refcpu does not support.
    pub(crate) fn compile<C: PjrtClient>(request: CompileRequest<'_, C>) -> Result<Self> {
        let by_name = request.options.compiler_options(COMPILE_OPTIONS);
        // Programs with invalid options are dumped too.
        let folder = by_name.as_ref().map_or(Ok(String::new()), |options| options.string("refcpu_dump"))?;
        let dump = Dump::new(&folder).map(Arc::new);
        if let Some(dump) = &dump {
            let (program, options) = (request.program, request.options);
            dump.request(program.code(), program.format().name(), &options.encode());
        }
        let compiled = by_name
            .and_then(|by_name| engine_options(request.options, &by_name, dump.clone()))
            .and_then(|mut options| {
                if spans_processes(request.options, request.topology) {
                    options.parts = Parts::Always;
                }
                Self::compile_dumped(request, options)
            });
        if let (Some(dump), Err(error)) = (&dump, &compiled) {
            dump.error(error);
        }
        compiled
    }

    fn compile_dumped<C: PjrtClient>(
        request: CompileRequest<'_, C>,
        options: CompileOptions,
    ) -> Result<Self> {
        let module = pass("parse", || request.program.parse())?;
        let mut compiled = compile::compile(&module, &options).map_err(|error| compile_error(&error))?;
        let with_partitions = compiled.with_partitions_of_calls.take();
        let has_partitions_of_calls = with_partitions.is_some();
        let fingerprint = match options.parts {
            Parts::Always => fingerprint(with_partitions.as_ref().unwrap_or(&module)),
            Parts::WhereNeeded | Parts::Never => 0,
        };
        let program = with_partitions.map_or_else(
            || request.program.clone(),
            |module| Program::new(ProgramFormat::Mlir, module.to_string().into_bytes()),
        );
        let partitions = compiled.plan.num_partitions;
        let on_devices = |arrays: &[ArrayInfo]| -> (Vec<ArraySpec>, Vec<Cut>) {
            let cut = |array: &ArrayInfo| Cut::new(array.sharding.as_ref(), &array.shape.dims, partitions);
            arrays.iter().map(|array| (spec(array, &cut(array)), cut(array))).unzip()
        };
        let (parameters, parameter_cuts) = on_devices(&compiled.parameters);
        let (outputs, output_cuts) = on_devices(&compiled.results);
        let devices_of_lane = compiled.plan.num_replicas * partitions / compiled.plan.lanes();
        let temporary_bytes = compiled.plan.program.arena.div_ceil(devices_of_lane.max(1));
        let output_bytes: Vec<usize> = outputs.iter().map(device_bytes).collect();
        let is_donated = |i: &usize| compiled.parameters[*i].donation != Donation::None;
        let mut signature = Signature::new(&*compiled.name, parameters, outputs);
        signature.donated = (0..compiled.parameters.len()).filter(is_donated).collect();
        Ok(Self {
            program,
            has_partitions_of_calls,
            fingerprint,
            execution_bytes: output_bytes.iter().sum::<usize>() + temporary_bytes,
            output_bytes,
            cost: OnceLock::new(),
            compiled,
            signature,
            parameter_cuts,
            output_cuts,
            dump: options.dump.clone(),
            options,
        })
    }
}

impl RefcpuExecutable {
    /// Returns the cost of the program of one device. A program that runs on whole arrays is partitioned for it, so that hosts
    /// see the same cost as if it ran in parts.
    fn cost(&self) -> Stats {
        *self.cost.get_or_init(|| {
            let stats = self.compiled.plan.stats();
            if self.compiled.plan.lanes_are_devices() {
                return stats;
            }
            let partition = || {
                let module = self.program.parse().ok()?;
                compile::stats_of_partition(&module, &self.options).ok()
            };
            partition().unwrap_or_else(|| stats.divided(self.compiled.plan.num_partitions))
        })
    }

    /// Deserializes a program of `serialize`, in which the custom calls are already partitioned, because another host may
    /// not have the partitioners.
    ///
    /// # Errors
    /// Returns the same errors as [`compile`](Self::compile).
    pub(crate) fn deserialize<C: PjrtClient>(request: DeserializeRequest<'_, C>) -> Result<Self> {
        let program = Program::new(ProgramFormat::Mlir, request.serialized);
        let mut compile = request.compile;
        compile.program = &program;
        Ok(Self { has_partitions_of_calls: true, ..Self::compile(compile)? })
    }
}

/// Returns whether the devices of a program belong to several processes, so that each process must run the parts of its own
/// devices.
fn spans_processes(options: &pjrt_plugin::CompileOptions, topology: &Topology) -> bool {
    let devices = topology.devices();
    let of_id = |id: &i32| devices.iter().find(|device| device.id() == *id);
    let processes: BTreeSet<i32> = match &options.device_assignment {
        Some(assignment) => {
            assignment.devices().iter().filter_map(of_id).map(DeviceDescription::process_index).collect()
        }
        None => {
            let count = options.num_replicas * options.num_partitions;
            devices.iter().take(count).map(DeviceDescription::process_index).collect()
        }
    };
    processes.len() > 1
}

/// Returns the specification of a shard of an array.
fn spec(array: &ArrayInfo, cut: &Cut) -> ArraySpec {
    let dims: Vec<i64> = cut.dims().iter().map(|d| *d as i64).collect();
    let spec = ArraySpec::new(to_pjrt(array.shape.dtype), dims);
    match &array.memory_kind {
        Some(kind) => spec.with_memory_kind(kind.clone()),
        None => spec,
    }
}

/// Returns the bytes that an array occupies in the memory of a device.
fn device_bytes(spec: &ArraySpec) -> usize {
    let is_on_device = spec.memory_kind().is_none_or(|kind| kind == Memory::DEVICE);
    if is_on_device { usize::try_from(size_in_bytes(spec)).unwrap_or(0) } else { 0 }
}

fn size_in_bytes(spec: &ArraySpec) -> i64 {
    spec.dims().iter().product::<i64>() * spec.element_type().byte_size() as i64
}

/// Converts the host's options, including the compiler options by name, to those of the engine.
pub(crate) fn engine_options(
    options: &pjrt_plugin::CompileOptions,
    by_name: &Options,
    dump: Option<Arc<Dump>>,
) -> Result<CompileOptions> {
    Ok(CompileOptions {
        num_replicas: options.num_replicas,
        num_partitions: options.num_partitions,
        use_spmd_partitioning: options.use_spmd_partitioning,
        fuse: by_name.boolean("refcpu_fusion")?
            && std::env::var_os("REFCPU_FUSION").is_none_or(|value| value != "0"),
        propagate_to_parameters: options.allow_spmd_sharding_propagation_to_parameters.clone(),
        propagate_to_results: propagate_to_results(options),
        has_handler: |target| Handler::find(PLATFORM_NAME, target).is_some(),
        find_partitioner: crate::call_partitioner::find,
        parts: if runs_partitioned()? { Parts::Always } else { Parts::WhereNeeded },
        dump,
    })
}

/// Returns for each result whether propagation may split it. With Shardy, XLA splits results unless the host says otherwise.
fn propagate_to_results(options: &pjrt_plugin::CompileOptions) -> Vec<bool> {
    let given = &options.allow_spmd_sharding_propagation_to_output;
    if given.is_empty() && options.use_shardy_partitioner { vec![true] } else { given.clone() }
}

impl PjrtExecutable for RefcpuExecutable {
    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn num_replicas(&self) -> usize {
        self.compiled.plan.num_replicas
    }

    fn num_partitions(&self) -> usize {
        self.compiled.plan.num_partitions
    }

    /// Devices that run the program separately communicate through [`Rendezvous`](refcpu_engine::exec::Rendezvous). Only those
    /// whose arrays are parts of the same whole arrays must be launched together.
    fn devices_communicate(&self) -> bool {
        !self.compiled.plan.lanes_are_devices()
    }

    fn serialize(&self) -> Result<Option<Vec<u8>>> {
        Ok(self.has_partitions_of_calls.then(|| self.program.code().to_vec()))
    }

    fn optimized_program(&self) -> Option<Program> {
        if self.compiled.plan.num_partitions == 1 {
            return None;
        }
        if self.program.format() != ProgramFormat::Mlir {
            let [parameters, outputs] = shardings(&self.compiled)?;
            return Some(self.program.with_shardings(&parameters, &outputs));
        }
        let module = self.program.parse().ok()?;
        let module = compile::partitioned(&module, &self.options).ok()?;
        Some(Program::new(ProgramFormat::Mlir, module.to_string().into_bytes()))
    }

    fn cost_analysis(&self) -> Vec<(String, AttributeValue)> {
        let stats = self.cost();
        let estimates = [
            ("flops", stats.flops),
            ("bytes accessed", stats.bytes_accessed),
            ("transcendentals", stats.transcendentals),
        ];
        let estimates = estimates.map(|(name, value)| (name.to_owned(), AttributeValue::from(value as f32)));
        // The shardings that a program inspects are returned here, because PJRT has no other function for them.
        let inspected = self.compiled.inspected.iter().map(|(name, sharding)| {
            (format!("sharding of {name}"), AttributeValue::from(Sharding::to_hlo_text(sharding.as_ref())))
        });
        estimates.into_iter().chain(inspected).collect()
    }

    fn memory_stats(&self) -> Option<CompiledMemoryStats> {
        let bytes = |specs: &[ArraySpec]| -> i64 { specs.iter().map(size_in_bytes).sum() };
        let stats = self.cost();
        let (argument_size, output_size) =
            (bytes(&self.signature.parameters), bytes(&self.signature.outputs));
        let (temp_size, code) = (stats.arena_bytes as i64, stats.constant_bytes as i64);
        // A donated argument has the same shards as the result that may use its memory.
        let donors = self.signature.outputs.iter().zip(&self.compiled.plan.program.donors);
        let alias_size =
            donors.filter(|(_, donor)| donor.is_some()).map(|(spec, _)| size_in_bytes(spec)).sum();
        let peak_memory = argument_size + output_size - alias_size + temp_size;
        Some(CompiledMemoryStats {
            generated_code_size: code,
            argument_size,
            output_size,
            alias_size,
            temp_size,
            peak_memory,
            total_size: peak_memory + code,
            ..CompiledMemoryStats::default()
        })
    }

    fn generated_code_size_in_bytes(&self) -> i64 {
        self.compiled.plan.stats().constant_bytes as i64
    }
}
