//! Step 2 of the tutorial: the device has a memory, to which hosts upload arrays.

#![forbid(unsafe_code)]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pjrt_plugin::queue::AddressSpace;
use pjrt_plugin::{
    ClientConfig, CompileRequest, CopyToHost, DeviceAssignment, DeviceDescription, Error, Execution,
    HostBuffer, Memory, Pending, PjrtBuffer, PjrtClient, PjrtDevice, PjrtExecutable, Placement,
    PluginAttributes, Result, Signature, pjrt_plugin,
};

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

/// A compiled program. There are none yet.
pub enum Executable {}

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

    fn compile(_: CompileRequest<'_, Self>) -> Result<Executable> {
        Err(Error::unimplemented("the tutorial device cannot run programs yet"))
    }

    fn load(&self, executable: &Arc<Executable>, _: &DeviceAssignment) -> Result<Arc<Executable>> {
        match **executable {}
    }

    fn execute(&self, loaded: &Arc<Executable>, _: Execution<Buffer>) -> Result<()> {
        match **loaded {}
    }

    fn buffer_from_host(&self, data: HostBuffer, to: Placement<'_, Self>) -> Result<Pending<Buffer>> {
        let buffer = Buffer::allocate(&to.device.chip, data.dense_size())?;
        data.copy_into(buffer.bytes(&mut buffer.chip.ram()))?;
        Ok(Pending::from(buffer))
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
        match *self {}
    }
}
