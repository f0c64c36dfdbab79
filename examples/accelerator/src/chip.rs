//! A device as its driver sees it: a memory, and two engines with a command queue each.

use std::sync::Arc;
use std::time::Instant;

use pjrt_plugin::queue::{MemoryPool, Queue};
use pjrt_plugin::{AttributeValue, DeviceId, Event, Result};

use crate::array::ALIGNMENT;
use crate::options::Faults;
use crate::ram::Ram;
use crate::timeline::TIMELINES;

/// The driver of a device. Buffers and programs share it with [`Device`](crate::Device).
pub(crate) struct Chip {
    pub(crate) memory: MemoryPool,
    /// The queue of the processor. Memory is allocated and freed in the order of its commands.
    programs: Arc<Queue<Engine>>,
    /// The queue of the copy engine, which works at the same time as the processor. Its commands own the blocks that they use,
    /// and wait for the commands of the processor that used the same memory before.
    pub(crate) copies: Queue<Engine>,
}

/// The state of an engine, which belongs to the thread of its queue.
pub(crate) struct Engine {
    name: String,
    device: String,
    ram: Arc<Ram>,
    faults: Faults,
}

impl Chip {
    /// Starts a device with a memory of this size.
    pub(crate) fn start(id: DeviceId, memory_limit: usize, faults: Faults) -> Result<Arc<Self>> {
        let device = format!("device {id}");
        let ram = Arc::new(Ram::new(&device, faults.memory_end.unwrap_or(memory_limit))?);
        let engine = |kind: &str| Engine {
            name: format!("{device} {kind}"),
            device: device.clone(),
            ram: Arc::clone(&ram),
            faults: faults.clone(),
        };
        let programs = Arc::new(Queue::start(format!("accelerator-{id}"), engine("processor"))?);
        let copies = Queue::start(format!("accelerator-{id}-copy"), engine("copy engine"))?;
        let memory = MemoryPool::new(device, memory_limit, ALIGNMENT, &programs);
        Ok(Arc::new(Self { memory, programs, copies }))
    }

    /// Submits a program that waits for events.
    pub(crate) fn submit_after(
        &self,
        events: Vec<Event>,
        name: String,
        program: impl FnOnce(&Ram) -> Result<()> + Send + 'static,
    ) -> Event {
        self.programs.submit_after(events, move |engine| engine.execute(name, Vec::new(), program))
    }
}

impl Engine {
    /// Executes a command, and records it in the timeline of the engine.
    fn execute<T>(
        &self,
        name: String,
        attributes: Vec<(String, AttributeValue)>,
        command: impl FnOnce(&Ram) -> Result<T>,
    ) -> Result<T> {
        let start = Instant::now();
        let result = self.faults.command(&self.device).and_then(|()| command(&self.ram));
        TIMELINES.record(&self.name, name, start, attributes);
        result
    }

    /// Executes a command that copies this number of bytes.
    pub(crate) fn copy<T>(
        &self,
        name: &str,
        bytes: usize,
        copy: impl FnOnce(&Ram) -> Result<T>,
    ) -> Result<T> {
        let attributes = vec![("bytes".to_owned(), AttributeValue::Int64(bytes as i64))];
        self.execute(name.to_owned(), attributes, |ram| {
            self.faults.copy(&self.device)?;
            copy(ram)
        })
    }
}
