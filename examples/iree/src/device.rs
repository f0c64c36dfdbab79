//! Devices as hosts see them, and their threads.

use std::sync::Arc;

use iree_runtime::{Array, Driver, ElementType, Fence};
use pjrt_plugin::queue::Queue;
use pjrt_plugin::{DeviceDescription, DeviceId, Event, Memory, MemoryStats, PjrtDevice, Result};

use crate::convert;
use crate::memory::Account;
use crate::options::Settings;

/// A device of IREE.
pub struct Device {
    description: DeviceDescription,
    memories: [Memory; 1],
    pub(crate) threads: Arc<Threads>,
}

/// A device, and the threads that use it. Buffers and launches share them.
pub(crate) struct Threads {
    pub(crate) iree: iree_runtime::Device,
    /// The name in profiles and errors.
    pub(crate) name: String,
    pub(crate) memory: Arc<Account>,
    /// Starts calls, in the order of the launches. A program whose control flow depends on data starts its last operations when
    /// the device has computed these data.
    launches: Queue<()>,
    /// Waits for calls, in the order in which they were started, and for transfers.
    waits: Queue<()>,
}

impl Threads {
    /// Runs a function that starts a call, after those that were submitted before.
    pub(crate) fn launch(&self, start: impl FnOnce() + Send + 'static) {
        let _started = self.launches.submit(move |()| {
            start();
            Ok(())
        });
    }

    /// Returns an event that completes when a call is done.
    pub(crate) fn completion(&self, done: Fence, then: impl FnOnce() + Send + 'static) -> Event {
        self.waits.submit(move |()| {
            let outcome = done.wait();
            then();
            outcome.map_err(convert::error)
        })
    }

    /// Runs a transfer, which blocks a thread.
    pub(crate) fn transfer(&self, run: impl FnOnce() + Send + 'static) {
        let _done = self.waits.submit(move |()| {
            run();
            Ok(())
        });
    }
}

impl Device {
    /// Starts a device of a driver.
    ///
    /// # Errors
    ///
    /// Returns an error if the device cannot be used.
    pub(crate) fn start(
        id: DeviceId,
        driver: &Driver,
        settings: &Settings,
        ordinal: usize,
        model: &str,
    ) -> Result<Self> {
        let kind = settings.target.driver;
        let iree = driver.device(ordinal).map_err(convert::error)?;
        let memory = Memory::new(id, Memory::DEVICE);
        // Hosts read the memory in place if it is their own.
        let probe = Array::upload(&iree, ElementType::I8, &[64], &[0; 64]).map_err(convert::error)?;
        let is_host_memory = kind.starts_with("local-") && probe.bytes().map_err(convert::error)?.is_some();
        let name = format!("{kind}:{ordinal}");
        let threads = Threads {
            iree,
            memory: Account::new(name.clone(), settings.memory_limit, is_host_memory),
            name: name.clone(),
            launches: Queue::start(format!("iree-{id}-launch"), ())?,
            waits: Queue::start(format!("iree-{id}-wait"), ())?,
        };
        let debug = if model.is_empty() { format!("IREE {name}") } else { format!("IREE {name} ({model})") };
        Ok(Self {
            description: DeviceDescription::new(id, kind).with_debug(debug),
            memories: [if is_host_memory { memory.with_host_access() } else { memory }],
            threads: Arc::new(threads),
        })
    }

    pub(crate) fn iree(&self) -> &iree_runtime::Device {
        &self.threads.iree
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
        Some(self.threads.memory.stats())
    }

    fn clear_memory_stats(&self) {
        self.threads.memory.clear_stats();
    }
}
