//! Arrays on a device, and their transfers.

use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};

use pjrt_plugin::{
    ArraySpec, BufferRef, CopyToHost, Error, HostBuffer, Memory, Pending, PjrtBuffer, Placement, Result,
};

use crate::Accelerator;
use crate::array::{Array, Place, Rows};
use crate::chip::{Allocation, Chip};

/// The address of the first byte of a device's memory that hosts see, which is not 0.
const FIRST_ADDRESS: usize = 1 << 32;

/// An array in the memory of a device, or in host memory that the device can access.
pub struct Buffer {
    pub(crate) array: Array,
    chip: Arc<Chip>,
    /// The array's block of device memory.
    memory: Option<Allocation>,
}

impl Buffer {
    /// Allocates an array in a memory of the given kind. A later command writes its data. `holder` describes
    /// the array.
    ///
    /// # Errors
    ///
    /// Returns RESOURCE_EXHAUSTED if there is not enough memory.
    pub(crate) fn allocate(chip: &Arc<Chip>, spec: &ArraySpec, holder: &str) -> Result<Self> {
        let rows = rows(spec)?;
        let chip = Arc::clone(chip);
        if is_in_host_memory(spec) {
            let place = Place::Host(Arc::new(OnceLock::new()));
            return Ok(Self { array: Array { rows, place }, chip, memory: None });
        }
        let memory = chip.allocate(rows.padded_size(), describe(spec, holder))?;
        let place = Place::Device(memory.address);
        Ok(Self { array: Array { rows, place }, chip, memory: Some(memory) })
    }

    /// Returns `true` if an array of a type can replace this one.
    pub(crate) fn fits(&self, spec: &ArraySpec) -> bool {
        self.memory.is_some()
            && !is_in_host_memory(spec)
            && rows(spec).is_ok_and(|rows| rows.padded_size() == self.array.rows.padded_size())
    }

    /// Replaces this array, which will not be read again, with one of a type that [`fits`](Self::fits).
    pub(crate) fn reuse(self, spec: &ArraySpec, holder: &str) -> Result<Self> {
        if let Some(memory) = &self.memory {
            memory.rename(describe(spec, holder));
        }
        let array = Array { rows: rows(spec)?, place: self.array.place };
        Ok(Self { array, ..self })
    }

    /// Starts to transfer a host array to a device.
    pub(crate) fn upload(data: HostBuffer, to: Placement<'_, Accelerator>) -> Result<Pending<Self>> {
        let spec = ArraySpec::new(data.element_type(), data.dims()).with_memory_kind(to.memory.kind());
        let buffer = Self::allocate(&to.device.chip, &spec, "from the host")?;
        let array = buffer.array.clone();
        // The command owns the right to read the host's memory, and releases it when it has finished.
        let ready = to.device.chip.queue.submit(move |ram| {
            array.write(ram, data.to_vec()?);
            Ok(())
        });
        Ok(Pending::allocated(buffer, ready))
    }

    /// Starts to copy the array to another memory, of this device or another one.
    ///
    /// The devices are connected by a link: one sends and the other receives, when the respective command is
    /// executed. The command to send is submitted first. Thus a device only waits for commands that were
    /// submitted earlier, and no two devices can wait for each other.
    pub(crate) fn copy(
        from: BufferRef<'_, Accelerator>,
        to: Placement<'_, Accelerator>,
    ) -> Result<Pending<Self>> {
        let spec = ArraySpec::new(from.element_type, from.dims).with_memory_kind(to.memory.kind());
        let buffer = Self::allocate(&to.device.chip, &spec, "copied")?;
        let (link, arrival) = channel();
        let (source, target) = (from.storage.array.clone(), buffer.array.clone());
        let _sent = from.device.chip.queue.submit(move |ram| {
            // If the receiver no longer exists, nobody needs the copy.
            let _ = link.send(source.read(ram));
            Ok(())
        });
        let ready = to.device.chip.queue.submit(move |ram| {
            let data = arrival.recv().map_err(|_| {
                Error::internal("the device that holds the source of the copy failed to send it")
            })?;
            target.write(ram, data);
            Ok(())
        });
        Ok(Pending::allocated(buffer, ready))
    }
}

fn is_in_host_memory(spec: &ArraySpec) -> bool {
    spec.memory_kind() == Some(Memory::PINNED_HOST)
}

fn rows(spec: &ArraySpec) -> Result<Rows> {
    Rows::of(spec.dims(), spec.element_type().byte_size()).ok_or_else(|| {
        Error::resource_exhausted(format!(
            "the size of an array {}{:?} overflows the address space",
            spec.element_type(),
            spec.dims()
        ))
    })
}

fn describe(spec: &ArraySpec, holder: &str) -> String {
    format!("{}{:?} {holder}", spec.element_type(), spec.dims())
}

impl PjrtBuffer for Buffer {
    fn size_in_bytes(&self) -> usize {
        match self.memory {
            Some(_) => self.array.rows.padded_size(),
            None => self.array.rows.dense_size(),
        }
    }

    fn copy_to_host(self: Arc<Self>, copy: CopyToHost) {
        let array = self.array.clone();
        // The event of the copy reports errors of this command.
        let _read = self.chip.queue.submit(move |ram| {
            copy.finish_with(&array.read(ram));
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
