//! A plugin for two devices with a memory and a command queue each, which train small networks.
//!
//! `program.rs` is the compiler, and `processor.rs` the simulated hardware.

#![forbid(unsafe_code)]

mod processor;
mod program;

use std::ops::Range;
use std::sync::Arc;

use pjrt_plugin::layout::dense_size;
use pjrt_plugin::queue::{Block, MemoryPool, Queue};
use pjrt_plugin::stablehlo;
use pjrt_plugin::{
    ArraySpec, BufferRef, ClientConfig, CompileRequest, CompiledMemoryStats, CopyToHost, DeviceAssignment,
    DeviceDescription, DeviceId, Error, Execution, HostBuffer, Input, Memory, MemoryStats, OptionSpec,
    Pending, PjrtBuffer, PjrtClient, PjrtDevice, PjrtExecutable, Placement, PluginAttributes, Prepared,
    Result, Signature, pjrt_plugin,
};
use pjrt_stablehlo::passes::decompose;

use crate::processor::Launch;
use crate::program::{ALIGNMENT, Program};

/// The number of devices.
const NUM_DEVICES: DeviceId = 2;

/// The option that users set with `jax.config.update("jax_pjrt_client_create_options", ...)`.
const MEMORY_LIMIT: OptionSpec =
    OptionSpec::integer("memory_limit", 64 << 20, "bytes of memory of each device");

/// The plugin. A host creates one client, and obtains all other objects from it.
pub struct Tutorial {
    devices: Vec<Device>,
}

/// A device as hosts see it.
pub struct Device {
    description: DeviceDescription,
    memories: [Memory; 1],
    chip: Arc<Chip>,
}

/// A device as its driver sees it: a queue, whose thread owns the bytes of the memory, and the addresses of the memory.
pub struct Chip {
    queue: Arc<Queue<Vec<u8>>>,
    memory: MemoryPool,
}

/// An array on the device, which is freed when the value is dropped.
pub struct Buffer {
    chip: Arc<Chip>,
    block: Block,
    size: usize,
}

/// A compiled program as hosts see it.
pub struct Executable {
    signature: Signature,
    program: Arc<Program>,
}

#[pjrt_plugin]
impl PjrtClient for Tutorial {
    type Device = Device;
    type Buffer = Buffer;
    type Executable = Executable;
    type Loaded = Arc<Executable>;

    const PLATFORM_NAME: &'static str = "tutorial";
    const CREATE_OPTIONS: &'static [OptionSpec] = &[MEMORY_LIMIT];
    const MAX_LAUNCHES_IN_FLIGHT: Option<usize> = Some(32);

    fn plugin_attributes() -> PluginAttributes {
        PluginAttributes::new().with_stablehlo_versions()
    }

    fn create(config: ClientConfig) -> Result<Self> {
        let memory_limit = config.options.integer("memory_limit")?;
        let memory_size = usize::try_from(memory_limit).ok().filter(|size| *size <= 1 << 32);
        let memory_size = memory_size.ok_or_else(|| {
            Error::invalid_argument(format!(
                "memory_limit={memory_limit}: expected 0 to {} bytes",
                1_u64 << 32
            ))
        })?;
        let devices = (0..NUM_DEVICES).map(|id| Device::start(id, memory_size));
        Ok(Self { devices: devices.collect::<Result<_>>()? })
    }

    fn devices(&self) -> &[Device] {
        &self.devices
    }

    fn platform_version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn compile(request: CompileRequest<'_, Self>) -> Result<Executable> {
        let module = decompose(&request.program.parse()?, &program::core_ops())?;
        let program = Arc::new(program::compile(stablehlo::main(&module)?)?);
        Ok(Executable { signature: Signature::of(&module)?, program })
    }

    fn load(&self, executable: &Arc<Executable>, _: &DeviceAssignment) -> Result<Arc<Executable>> {
        Ok(Arc::clone(executable))
    }

    fn execute(&self, loaded: &Arc<Executable>, execution: Execution<Buffer>) -> Result<()> {
        // Programs have one replica, so an execution has one device. The ids of the devices are their indices.
        let device = &self.devices[execution.devices()[0] as usize];
        let (executable, chip) = (Arc::clone(loaded), Arc::clone(&device.chip));
        // The closure runs when the inputs have memory. Their data may be the result of commands that are still in the queue.
        execution.when_allocated(move |ready| {
            ready.enqueue(
                |_, inputs| executable.prepare(&chip, inputs),
                // The arguments come from commands that are in the same queue already.
                |_, launch, _| {
                    chip.queue.submit(move |ram| {
                        launch.carry_out(ram);
                        Ok(())
                    })
                },
            );
        });
        Ok(())
    }

    fn buffer_from_host(&self, data: HostBuffer, to: Placement<'_, Self>) -> Result<Pending<Buffer>> {
        let buffer = Buffer::allocate(&to.device.chip, data.dense_size(), "array from the host")?;
        let range = buffer.range();
        // The command owns `data`, and so the right to read the host's memory.
        let ready = buffer.chip.queue.submit(move |ram| data.copy_into(&mut ram[range]));
        Ok(Pending::allocated(buffer, ready))
    }

    fn copy_buffer(&self, from: BufferRef<'_, Self>, to: Placement<'_, Self>) -> Result<Pending<Buffer>> {
        let buffer = Buffer::allocate(&to.device.chip, from.storage.size, "copied array")?;
        let (source, target) = (from.storage.range(), buffer.range());
        let ready = from.storage.chip.queue.transfer(
            &buffer.chip.queue,
            move |ram| Ok(ram[source].to_vec()),
            move |ram, data| {
                ram[target].copy_from_slice(&data);
                Ok(())
            },
        );
        Ok(Pending::allocated(buffer, ready))
    }
}

impl Executable {
    /// Allocates the outputs and the temporary memory of a launch, and creates its command.
    fn prepare(
        &self,
        chip: &Arc<Chip>,
        inputs: &mut Vec<Input<Buffer>>,
    ) -> Result<Prepared<Buffer, Launch, Block>> {
        let name = &self.signature.name;
        let temporary =
            chip.memory.allocate(self.program.temporary_size, format!("temporary memory of '{name}'"))?;
        let values = self.program.values.iter();
        let mut addresses: Vec<usize> = values.map(|value| temporary.address() + value.offset).collect();
        for (argument, input) in self.program.arguments.iter().zip(&*inputs) {
            addresses[*argument] = input.block.address();
        }
        let mut outputs = Vec::new();
        for (index, spec) in self.signature.outputs.iter().enumerate() {
            let (size, holder) = (dense_size(spec.dims(), 4)?, format!("output {index} of '{name}'"));
            // An output takes the memory of a donated argument of the same size.
            outputs.push(match Input::take_donated(inputs, |buffer| buffer.size == size) {
                Some(buffer) => {
                    buffer.block.set_holder(holder);
                    buffer
                }
                None => Buffer::allocate(chip, size, &holder)?,
            });
        }
        let targets = outputs.iter().map(|output| output.block.address()).collect();
        let command = Launch { program: Arc::clone(&self.program), addresses, targets };
        Ok(Prepared { outputs, command, until_submitted: temporary })
    }
}

impl Device {
    fn start(id: DeviceId, memory_size: usize) -> Result<Self> {
        let name = format!("tutorial device {id}");
        let queue = Arc::new(Queue::start(&name, vec![0; memory_size])?);
        let memory = MemoryPool::new(name, memory_size, ALIGNMENT, &queue);
        Ok(Self {
            description: DeviceDescription::new(id, "tutorial"),
            memories: [Memory::new(id, Memory::DEVICE)],
            chip: Arc::new(Chip { queue, memory }),
        })
    }
}

impl PjrtDevice for Device {
    fn description(&self) -> &DeviceDescription {
        &self.description
    }

    fn memories(&self) -> &[Memory] {
        &self.memories
    }

    fn memory_stats(&self) -> Option<MemoryStats> {
        Some(self.chip.memory.stats())
    }

    fn clear_memory_stats(&self) {
        self.chip.memory.clear_stats();
    }
}

impl Buffer {
    /// Allocates an array. `holder` describes it in errors about exhausted memory.
    fn allocate(chip: &Arc<Chip>, size: usize, holder: &str) -> Result<Self> {
        Ok(Self { chip: Arc::clone(chip), block: chip.memory.allocate(size, holder)?, size })
    }

    fn range(&self) -> Range<usize> {
        self.block.address()..self.block.address() + self.size
    }
}

impl PjrtBuffer for Buffer {
    fn size_in_bytes(&self) -> usize {
        self.size
    }

    fn copy_to_host(self: Arc<Self>, copy: CopyToHost) {
        // Addresses suffice because the programs are in the same queue. A command of another queue owns `self`.
        let range = self.range();
        self.chip.queue.submit(move |ram| {
            copy.finish_with(&ram[range]);
            Ok(())
        });
    }
}

impl PjrtExecutable for Executable {
    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn memory_stats(&self) -> Option<CompiledMemoryStats> {
        let temporary = self.program.temporary_size;
        // Arrays are dense on this device. One that pads them returns their sizes with padding.
        Some(CompiledMemoryStats::of_arrays(&self.signature, temporary, ArraySpec::dense_size))
    }
}
