//! Step 6 of the tutorial: the memory has a limit that users set, statistics, and is reused for donated arguments.

#![forbid(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use pjrt_plugin::layout::dense_size;
use pjrt_plugin::queue::{AddressSpace, Block, MemoryPool, Queue};
use pjrt_plugin::stablehlo;
use pjrt_plugin::{
    ArraySpec, BufferRef, ClientConfig, CompileRequest, CompiledMemoryStats, CopyToHost, DeviceAssignment,
    DeviceDescription, DeviceId, Error, Execution, HostBuffer, Input, Memory, MemoryStats, OptionSpec,
    Pending, PjrtBuffer, PjrtClient, PjrtDevice, PjrtExecutable, Placement, PluginAttributes, Prepared,
    Result, Signature, pjrt_plugin,
};
use pjrt_stablehlo::ir::{ElementType, Function, Op, OpCode};
use pjrt_stablehlo::passes::{CoreOps, decompose};

/// The number of devices.
const NUM_DEVICES: DeviceId = 2;

/// The alignment of arrays in the memory.
const ALIGNMENT: usize = 64;

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

/// A compiled program. Its values have numbers, and an address when the program is launched.
pub struct Executable {
    signature: Signature,
    commands: Vec<Command>,
    /// The offset of each value in the temporary memory, which arguments do not use, and its number of elements.
    values: Vec<(usize, usize)>,
    temporary_size: usize,
    arguments: Vec<usize>,
    results: Vec<usize>,
}

/// A command of the device: reads two arrays of f32, and writes one.
struct Command {
    kernel: Kernel,
    operands: [usize; 2],
    result: usize,
}

enum Kernel {
    Add,
    Multiply,
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
        let module = decompose(&request.program.parse()?, &core_ops())?;
        Executable::new(stablehlo::main(&module)?, Signature::of(&module)?)
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

/// Returns the operations of the device, with the element types.
fn core_ops() -> CoreOps {
    CoreOps::from_ops([OpCode::Add, OpCode::Multiply])
        .named("the tutorial device")
        .for_elements([ElementType::F32])
}

impl Executable {
    fn new(main: &Function, signature: Signature) -> Result<Self> {
        let mut space = AddressSpace::new(usize::MAX, ALIGNMENT);
        let mut values = Vec::new();
        for (_, value) in main.body.values() {
            let spec = ArraySpec::try_from(&value.ty)?;
            if spec.element_type() != pjrt_plugin::ElementType::F32 {
                return Err(Error::unimplemented("the tutorial device computes f32 only"));
            }
            let size = dense_size(spec.dims(), 4)?;
            let offset = space.allocate(size).ok_or_else(|| Error::resource_exhausted("too many values"))?;
            values.push((offset, size / 4));
        }
        let mut commands = Vec::new();
        for (_, op) in main.ops() {
            let kernel = match op.kind {
                Op::Add(_) => Kernel::Add,
                Op::Multiply(_) => Kernel::Multiply,
                _ => continue, // `func.return`: `decompose` leaves no other operation.
            };
            let operands = [op.operand(0).index(), op.operand(1).index()];
            commands.push(Command { kernel, operands, result: op.result().index() });
        }
        Ok(Self {
            signature,
            commands,
            values,
            temporary_size: space.highest(),
            arguments: main.arguments().iter().map(|value| value.index()).collect(),
            results: main.returned().iter().map(|value| value.index()).collect(),
        })
    }

    /// Allocates the outputs and the temporary memory of a launch, and creates its command.
    fn prepare(
        self: &Arc<Self>,
        chip: &Arc<Chip>,
        inputs: &mut Vec<Input<Buffer>>,
    ) -> Result<Prepared<Buffer, Launch, Block>> {
        let name = &self.signature.name;
        let temporary = chip.memory.allocate(self.temporary_size, format!("temporary memory of '{name}'"))?;
        let mut addresses: Vec<usize> =
            self.values.iter().map(|(offset, _)| temporary.address() + offset).collect();
        for (argument, input) in self.arguments.iter().zip(&*inputs) {
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
        let command = Launch { executable: Arc::clone(self), addresses, targets };
        Ok(Prepared { outputs, command, until_submitted: temporary })
    }
}

/// The command that runs a program. It contains addresses, and owns no memory.
struct Launch {
    executable: Arc<Executable>,
    /// The address of each value of the program.
    addresses: Vec<usize>,
    /// The addresses of the outputs.
    targets: Vec<usize>,
}

impl Launch {
    /// Carries out the commands, and copies the results to their addresses: the work of the device.
    fn carry_out(&self, ram: &mut [u8]) {
        let Executable { commands, values, results, .. } = &*self.executable;
        let read = |ram: &[u8], value: usize| ram[self.addresses[value]..][..4 * values[value].1].to_vec();
        for Command { kernel, operands, result } in commands {
            let [x, y] = operands.map(|operand| read(ram, operand));
            let elements = x.as_chunks().0.iter().zip(y.as_chunks().0);
            let result = &mut ram[self.addresses[*result]..][..x.len()];
            for ((x, y), result) in elements.zip(result.as_chunks_mut().0) {
                let (x, y) = (f32::from_le_bytes(*x), f32::from_le_bytes(*y));
                *result = match kernel {
                    Kernel::Add => x + y,
                    Kernel::Multiply => x * y,
                }
                .to_le_bytes();
            }
        }
        // An output may be in the memory of an argument that is another output, so all are read first.
        let results: Vec<Vec<u8>> = results.iter().map(|value| read(ram, *value)).collect();
        for (result, target) in results.iter().zip(&self.targets) {
            ram[*target..][..result.len()].copy_from_slice(result);
        }
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
        let temporary = self.temporary_size;
        // Arrays are dense on this device. One that pads them returns their sizes with padding.
        Some(CompiledMemoryStats::of_arrays(&self.signature, temporary, ArraySpec::dense_size))
    }
}
