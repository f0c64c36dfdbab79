//! Arrays on a device, and their transfers.

use std::sync::Arc;

use pjrt_plugin::queue::Block;
use pjrt_plugin::{
    ArraySpec, BufferRef, CopyToHost, HostBuffer, Memory, Pending, PjrtBuffer, Placement, Result,
};

use crate::Accelerator;
use crate::array::{Array, Place};
use crate::chip::Chip;
use crate::ram::Ram;

/// The address of the first byte of a device's memory that hosts see, which is not 0.
const FIRST_ADDRESS: usize = 1 << 32;

/// An array in the memory of a device, or in host memory that the device can access. Clones refer to the same array.
#[derive(Clone)]
pub struct Buffer {
    pub(crate) array: Array,
    chip: Arc<Chip>,
    /// The array's block of device memory. The commands of the copy engine own it until they were executed, because the pool
    /// orders only those of the processor.
    memory: Option<Arc<Block>>,
}

impl Buffer {
    /// Allocates an array in a memory of the given kind. A later command writes its data. `holder` describes
    /// the array.
    ///
    /// # Errors
    ///
    /// Returns RESOURCE_EXHAUSTED if there is not enough memory.
    pub(crate) fn allocate(chip: &Arc<Chip>, spec: &ArraySpec, holder: &str) -> Result<Self> {
        let (chip, size) = (Arc::clone(chip), spec.dense_size());
        if is_in_host_memory(spec) {
            let array = Array { size, place: Place::Host(Arc::default()) };
            return Ok(Self { array, chip, memory: None });
        }
        let memory = chip.memory.allocate(size, describe(spec, holder))?;
        let place = Place::Device(memory.address());
        Ok(Self { array: Array { size, place }, chip, memory: Some(Arc::new(memory)) })
    }

    /// Returns `true` if an array of a type can replace this one.
    pub(crate) fn fits(&self, spec: &ArraySpec) -> bool {
        self.memory.is_some() && !is_in_host_memory(spec) && spec.dense_size() == self.array.size
    }

    /// Replaces this array, which will not be read again, with one of a type that [`fits`](Self::fits).
    pub(crate) fn reuse(self, spec: &ArraySpec, holder: &str) -> Self {
        self.memory.iter().for_each(|memory| memory.set_holder(describe(spec, holder)));
        self
    }

    /// Starts to transfer a host array to a device.
    pub(crate) fn upload(data: HostBuffer, to: Placement<'_, Accelerator>) -> Result<Pending<Self>> {
        let spec = ArraySpec::new(data.element_type(), data.dims()).with_memory_kind(to.memory.kind());
        let buffer = Self::allocate(to.device.chip()?, &spec, "from the host")?;
        let target = buffer.clone();
        // The command owns the right to read the host's memory, and releases it when it has finished.
        let ready = to.device.chip()?.copies.submit(move |engine| {
            engine.copy("upload", data.dense_size(), |ram| target.write(ram, data.to_vec()?))
        });
        Ok(Pending::allocated(buffer, ready))
    }

    /// Starts to copy the array to another memory, of this device or another one. The data of the array is ready.
    pub(crate) fn copy(
        from: BufferRef<'_, Accelerator>,
        to: Placement<'_, Accelerator>,
    ) -> Result<Pending<Self>> {
        let spec = ArraySpec::new(from.element_type, from.dims).with_memory_kind(to.memory.kind());
        let buffer = Self::allocate(to.device.chip()?, &spec, "copied")?;
        let (source, target, size) = (Arc::clone(from.storage), buffer.clone(), buffer.array.size);
        // One command for each device; the devices are connected by a link.
        let ready = from.device.chip()?.copies.transfer(
            &to.device.chip()?.copies,
            move |engine| engine.copy("send", size, |ram| source.array.read(ram)),
            move |engine, data| engine.copy("receive", size, |ram| target.write(ram, data)),
        );
        Ok(Pending::allocated(buffer, ready))
    }

    /// Writes the array when the processor no longer uses its memory for another one.
    fn write(&self, ram: &Ram, data: Vec<u8>) -> Result<()> {
        if let Some(memory) = &self.memory {
            memory.free_since().wait()?;
        }
        self.array.write(ram, data)
    }
}

fn is_in_host_memory(spec: &ArraySpec) -> bool {
    spec.memory_kind() == Some(Memory::PINNED_HOST)
}

fn describe(spec: &ArraySpec, holder: &str) -> String {
    format!("{}{:?} {holder}", spec.element_type(), spec.dims())
}

impl PjrtBuffer for Buffer {
    fn size_in_bytes(&self) -> usize {
        self.array.size
    }

    fn copy_to_host(self: Arc<Self>, copy: CopyToHost) {
        let chip = Arc::clone(&self.chip);
        let _done = chip.copies.submit(move |engine| {
            match engine.copy("readback", self.array.size, |ram| self.array.read(ram)) {
                Ok(data) => copy.finish_with(&data),
                Err(error) => copy.fail(error),
            }
            Ok(())
        });
    }

    fn host_bytes(&self) -> Result<Option<&[u8]>> {
        Ok(match &self.array.place {
            Place::Device(_) => None,
            Place::Host(bytes) => bytes.get().map(Vec::as_slice),
        })
    }

    fn device_address(&self) -> Result<Option<usize>> {
        match &self.array.place {
            Place::Device(address) => Ok(Some(FIRST_ADDRESS + address)),
            Place::Host(_) => Ok(self.host_bytes()?.map(|bytes| bytes.as_ptr().expose_provenance())),
        }
    }
}
