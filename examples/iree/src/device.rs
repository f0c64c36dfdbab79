//! Devices as hosts see them, and their threads.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use iree_runtime::{Array, Code, Driver, ElementType, Fence};
use pjrt_plugin::queue::Queue;
use pjrt_plugin::{DeviceDescription, DeviceId, Error, Event, Memory, MemoryStats, PjrtDevice, Result};

use crate::memory::Account;
use crate::options::Settings;
use crate::{convert, timeline};

/// A device of IREE.
pub struct Device {
    description: DeviceDescription,
    memories: [Memory; 1],
    pub(crate) threads: Arc<Threads>,
}

/// A device, and the threads that use it. Buffers and launches share them.
pub(crate) struct Threads {
    pub(crate) iree: iree_runtime::Device,
    /// `true` if hosts read the memory of the device in place, because it is theirs.
    pub(crate) is_host_memory: bool,
    pub(crate) memory: Arc<Account>,
    pub(crate) health: Arc<Health>,
    /// Starts calls that block, in the order of the launches. A program whose control flow depends on data starts its last
    /// operations when the device has computed these data.
    launches: Queue<()>,
    /// Runs transfers that block.
    transfers: Queue<()>,
}

/// The state of a device, which is lost for good after some errors.
pub(crate) struct Health {
    /// The name of the device in profiles and errors.
    pub(crate) name: String,
    /// The error with which the device was lost.
    lost: OnceLock<Error>,
}

impl Health {
    /// Converts an error of the device. If the device is lost, all later uses of it fail.
    pub(crate) fn failed(&self, error: iree_runtime::Error) -> Error {
        if !is_lost(error.code()) {
            return convert::error(error);
        }
        let lost = convert::error(error).context(format!("the device {} is lost", self.name));
        let hint = "end the process: what this device has computed cannot be used any more";
        self.lost.get_or_init(|| lost.with_hint(hint)).clone()
    }

    /// Checks that the device can be used.
    ///
    /// # Errors
    ///
    /// Returns the error with which the device was lost.
    pub(crate) fn check(&self) -> Result<()> {
        self.lost.get().map_or(Ok(()), |lost| Err(lost.clone()))
    }
}

impl Threads {
    /// Runs a function that starts a call, after those that were submitted before.
    pub(crate) fn launch(&self, start: impl FnOnce() + Send + 'static) {
        let _started = self.launches.submit(move |()| {
            start();
            Ok(())
        });
    }

    /// Returns an event that completes when a call of a program is done, on the thread of IREE that notices it.
    pub(crate) fn completion(&self, done: &Fence, program: String, start: Instant) -> Event {
        let (health, (source, event)) = (Arc::clone(&self.health), Event::pending());
        let registered = done.on_reached(move |outcome| {
            timeline::record(&health.name, program, start);
            source.complete(outcome.map_err(|error| health.failed(error)));
        });
        registered.map_or_else(|error| Event::failed(convert::error(error)), |()| event)
    }

    /// Runs a transfer, which blocks a thread.
    pub(crate) fn transfer(&self, run: impl FnOnce() + Send + 'static) {
        let _done = self.transfers.submit(move |()| {
            run();
            Ok(())
        });
    }
}

/// Returns `true` if a device that reports an error with this code does not work any more: Vulkan's drivers report
/// VK_ERROR_DEVICE_LOST as DATA_LOSS, and CUDA's report a fault of a kernel, which ends the context, as ABORTED.
fn is_lost(code: Code) -> bool {
    matches!(code, Code::DataLoss | Code::Aborted)
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
            is_host_memory,
            memory: Account::new(name.clone(), settings.memory_limit, is_host_memory),
            health: Arc::new(Health { name: name.clone(), lost: OnceLock::new() }),
            launches: Queue::start(format!("iree-{id}-launch"), ())?,
            transfers: Queue::start(format!("iree-{id}-transfer"), ())?,
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

#[cfg(test)]
mod tests {
    use super::*;
    use pjrt_plugin::ErrorCode;

    #[test]
    fn a_lost_device_stays_lost_and_other_errors_are_errors_of_one_call() {
        let health = Health { name: "vulkan:0".to_owned(), lost: OnceLock::new() };
        let error = |code| iree_runtime::Error::new(code, "a message");
        assert_eq!(health.failed(error(Code::ResourceExhausted)).code(), ErrorCode::ResourceExhausted);
        health.check().unwrap();
        let lost = health.failed(error(Code::DataLoss));
        assert!(lost.message().contains("vulkan:0 is lost") && lost.hint().is_some(), "{lost}");
        assert_eq!(health.check().unwrap_err().message(), lost.message());
        assert_eq!(health.failed(error(Code::Aborted)).message(), lost.message());
    }
}
