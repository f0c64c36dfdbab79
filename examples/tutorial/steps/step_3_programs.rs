//! Step 3 of the tutorial: the plugin compiles programs to commands of the device, and runs them.

#![forbid(unsafe_code)]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pjrt_plugin::layout::dense_size;
use pjrt_plugin::queue::AddressSpace;
use pjrt_plugin::stablehlo;
use pjrt_plugin::{
    ArraySpec, ClientConfig, CompileRequest, CopyToHost, DeviceAssignment, DeviceDescription, Error,
    Execution, HostBuffer, Input, Memory, Pending, PjrtBuffer, PjrtClient, PjrtDevice, PjrtExecutable,
    Placement, PluginAttributes, Result, Signature, pjrt_plugin,
};
use pjrt_stablehlo::ir::{ElementType, Function, Op, OpCode};
use pjrt_stablehlo::passes::{CoreOps, decompose};

/// The number of bytes of a device's memory, and the alignment of arrays in it.
const MEMORY_SIZE: usize = 64 << 20;
const ALIGNMENT: usize = 64;

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

/// A device as its driver sees it. Real hardware is in the place of `ram`.
pub struct Chip {
    ram: Mutex<Vec<u8>>,
    addresses: Mutex<AddressSpace>,
}

/// An array on the device, which is freed when the value is dropped.
pub struct Buffer {
    chip: Arc<Chip>,
    address: usize,
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

    fn plugin_attributes() -> PluginAttributes {
        PluginAttributes::new().with_stablehlo_versions()
    }

    fn create(_: ClientConfig) -> Result<Self> {
        Ok(Self { devices: vec![Device::new(0)] })
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
        let (executable, chip) = (Arc::clone(loaded), Arc::clone(&self.devices[0].chip));
        // The closure runs when the inputs have their data, on this or another thread.
        execution.when_ready(move |mut ready| {
            let inputs = ready.take_inputs();
            match inputs.iter().map(|inputs| executable.run(&chip, inputs)).collect::<Result<Vec<_>>>() {
                Ok(outputs) => ready.complete(outputs.into()),
                Err(error) => ready.fail(error),
            }
        });
        Ok(())
    }

    fn buffer_from_host(&self, data: HostBuffer, to: Placement<'_, Self>) -> Result<Pending<Buffer>> {
        let buffer = Buffer::allocate(&to.device.chip, data.dense_size())?;
        data.copy_into(buffer.bytes(&mut buffer.chip.ram()))?;
        Ok(Pending::from(buffer))
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

    /// Runs the program on a device.
    fn run(&self, chip: &Arc<Chip>, inputs: &[Input<Buffer>]) -> Result<Vec<Buffer>> {
        let temporary = Buffer::allocate(chip, self.temporary_size)?;
        let outputs = self.signature.outputs.iter();
        let outputs = outputs.map(|spec| Buffer::allocate(chip, dense_size(spec.dims(), 4)?));
        let outputs: Vec<Buffer> = outputs.collect::<Result<_>>()?;
        let mut addresses: Vec<usize> =
            self.values.iter().map(|(offset, _)| temporary.address + offset).collect();
        for (argument, input) in self.arguments.iter().zip(inputs) {
            addresses[*argument] = input.address;
        }
        let targets: Vec<usize> = outputs.iter().map(|output| output.address).collect();
        self.carry_out(&mut chip.ram(), &addresses, &targets);
        Ok(outputs)
    }

    /// Carries out the commands, and copies the results to their addresses: the work of the device.
    fn carry_out(&self, ram: &mut [u8], addresses: &[usize], targets: &[usize]) {
        let read = |ram: &[u8], value: usize| ram[addresses[value]..][..4 * self.values[value].1].to_vec();
        for Command { kernel, operands, result } in &self.commands {
            let [x, y] = operands.map(|operand| read(ram, operand));
            let elements = x.as_chunks().0.iter().zip(y.as_chunks().0);
            let result = &mut ram[addresses[*result]..][..x.len()];
            for ((x, y), result) in elements.zip(result.as_chunks_mut().0) {
                let (x, y) = (f32::from_le_bytes(*x), f32::from_le_bytes(*y));
                *result = match kernel {
                    Kernel::Add => x + y,
                    Kernel::Multiply => x * y,
                }
                .to_le_bytes();
            }
        }
        for (value, target) in self.results.iter().zip(targets) {
            let result = read(ram, *value);
            ram[*target..][..result.len()].copy_from_slice(&result);
        }
    }
}

impl Device {
    fn new(id: i32) -> Self {
        let addresses = Mutex::new(AddressSpace::new(MEMORY_SIZE, ALIGNMENT));
        let chip = Chip { ram: Mutex::new(vec![0; MEMORY_SIZE]), addresses };
        let memories = [Memory::new(id, Memory::DEVICE)];
        Self { description: DeviceDescription::new(id, "tutorial"), memories, chip: Arc::new(chip) }
    }
}

impl PjrtDevice for Device {
    fn description(&self) -> &DeviceDescription {
        &self.description
    }

    fn memories(&self) -> &[Memory] {
        &self.memories
    }
}

impl Chip {
    fn ram(&self) -> MutexGuard<'_, Vec<u8>> {
        self.ram.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn addresses(&self) -> MutexGuard<'_, AddressSpace> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Buffer {
    fn allocate(chip: &Arc<Chip>, size: usize) -> Result<Self> {
        let address = chip.addresses().allocate(size);
        let address = address.ok_or_else(|| {
            Error::resource_exhausted(format!("the tutorial device has no {size} free bytes in one piece"))
        })?;
        Ok(Self { chip: Arc::clone(chip), address, size })
    }

    fn bytes<'a>(&self, ram: &'a mut [u8]) -> &'a mut [u8] {
        &mut ram[self.address..self.address + self.size]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.chip.addresses().free(self.address);
    }
}

impl PjrtBuffer for Buffer {
    fn size_in_bytes(&self) -> usize {
        self.size
    }

    fn copy_to_host(self: Arc<Self>, copy: CopyToHost) {
        let array = self.bytes(&mut self.chip.ram()).to_vec();
        copy.finish_with(&array);
    }
}

impl PjrtExecutable for Executable {
    fn signature(&self) -> &Signature {
        &self.signature
    }
}
