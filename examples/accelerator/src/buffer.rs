//! Arrays on a device, and their ways to and from it.

use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};

use pjrt_plugin::{
    ArraySpec, BufferRef, CopyToHost, Error, HostBuffer, Memory, Pending, PjrtBuffer, Placement, Result,
};

use crate::Accelerator;
use crate::array::{Array, Place, Rows};
use crate::chip::{Allocation, Chip};

/// The address of the first byte of a device's memory, as hosts see it: theirs is not 0.
const FIRST_ADDRESS: usize = 1 << 32;

/// An array in the memory of a device, or in host memory that the device can reach.
pub struct Buffer {
    pub(crate) array: Array,
    chip: Arc<Chip>,
    /// The memory of an array on the device.
    memory: Option<Allocation>,
}

impl Buffer {
    /// Makes room for an array of a type, in a memory of a kind. Its data comes later, with a command. The holder is what the
    /// array is, in words.
    ///
    /// # Errors
    ///
    /// RESOURCE_EXHAUSTED if there is no room.
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

    /// Whether an array of a type can take the place of this one.
    pub(crate) fn fits(&self, spec: &ArraySpec) -> bool {
        self.memory.is_some()
            && !is_in_host_memory(spec)
            && rows(spec).is_ok_and(|rows| rows.padded_size() == self.array.rows.padded_size())
    }

    /// Makes an array of a type that [`fits`](Self::fits) in the place of this one, which nobody will read any more.
    pub(crate) fn reuse(self, spec: &ArraySpec, holder: &str) -> Result<Self> {
        if let Some(memory) = &self.memory {
            memory.rename(describe(spec, holder));
        }
        let array = Array { rows: rows(spec)?, place: self.array.place };
        Ok(Self { array, ..self })
    }

    /// An array of the host on its way to a device.
    pub(crate) fn upload(data: HostBuffer, to: Placement<'_, Accelerator>) -> Result<Pending<Self>> {
        let spec = ArraySpec::new(data.element_type(), data.dims()).with_memory_kind(to.memory.kind());
        let buffer = Self::allocate(&to.device.chip, &spec, "from the host")?;
        let array = buffer.array.clone();
        // The command owns the right to read the host's memory, and gives it back when it is done.
        let ready = to.device.chip.queue.submit(move |ram| {
            array.write(ram, data.to_vec()?);
            Ok(())
        });
        Ok(Pending::allocated(buffer, ready))
    }

    /// A copy on its way to another memory, of this device or another one.
    ///
    /// The devices have a link: one sends, the other receives, each when its turn comes. The sending comes first into its
    /// queue. So whatever a device waits for was submitted before the waiting, and no two can wait for each other.
    pub(crate) fn copy(
        from: BufferRef<'_, Accelerator>,
        to: Placement<'_, Accelerator>,
    ) -> Result<Pending<Self>> {
        let spec = ArraySpec::new(from.element_type, from.dims).with_memory_kind(to.memory.kind());
        let buffer = Self::allocate(&to.device.chip, &spec, "copied")?;
        let (link, arrival) = channel();
        let (source, target) = (from.storage.array.clone(), buffer.array.clone());
        let _sent = from.device.chip.queue.submit(move |ram| {
            // If the receiver is gone, so is whoever wanted the copy.
            let _ = link.send(source.read(ram));
            Ok(())
        });
        let ready = to.device.chip.queue.submit(move |ram| {
            let data = arrival.recv().map_err(|_| Error::internal("the other device sent nothing"))?;
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
        Error::resource_exhausted(format!("{}{:?} fits into no memory", spec.element_type(), spec.dims()))
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
        // The copy reports for itself.
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
