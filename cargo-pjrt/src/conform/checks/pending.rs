//! Arrays whose data the host withholds, and arrays that are in error.

use crate::conform::harness::{Finding, f32_bytes, upload_to};
use pjrt_testing::host::{AliasHandle, Buffer, Client, Code, Device, ElementType, Error, TransferManager};

/// An array of four numbers whose data comes later.
pub(super) struct Pending {
    pub(super) array: Buffer,
    gate: Gate,
}

/// The object through which the host provides the data.
pub(super) enum Gate {
    Alias(AliasHandle),
    Transfer(TransferManager),
}

impl Pending {
    /// Creates an array in the default memory of the first device, as [`on`](Self::on) does.
    pub(super) fn new(client: &Client) -> Result<Self, Finding> {
        Self::on(client, client.device()?)
    }

    /// Creates an array in the default memory of a device.
    ///
    /// # Errors
    ///
    /// The check does not apply if the plugin has no function that creates such an array.
    pub(super) fn on(client: &Client, device: Device<'_>) -> Result<Self, Finding> {
        let memory = device.default_memory()?;
        match client.alias(ElementType::F32, &[4], memory) {
            Ok((array, handle)) => return Ok(Self { array, gate: Gate::Alias(handle) }),
            Err(error) if error.code != Code::UNIMPLEMENTED => return Err(error.into()),
            Err(_) => {}
        }
        match client.transfer_manager(&[(ElementType::F32, vec![4])], memory) {
            Ok(manager) => Ok(Self { array: manager.retrieve(0)?, gate: Gate::Transfer(manager) }),
            Err(error) if error.code == Code::UNIMPLEMENTED => Err(Finding::NotApplicable(format!(
                "no function creates an array whose data comes later: {error}"
            ))),
            Err(error) => Err(error.into()),
        }
    }

    /// Provides the data of an array on the first device, and returns the array.
    pub(super) fn provide(self, client: &Client, values: &[f32; 4]) -> Result<Buffer, Error> {
        self.provide_on(client, client.device()?, values)
    }

    /// Provides the data of an array on a device, and returns the array.
    pub(super) fn provide_on(
        self,
        client: &Client,
        device: Device<'_>,
        values: &[f32; 4],
    ) -> Result<Buffer, Error> {
        self.gate.provide_on(client, device, values)?;
        Ok(self.array)
    }

    /// Returns the array and the object through which the host provides its data.
    pub(super) fn split(self) -> (Buffer, Gate) {
        (self.array, self.gate)
    }

    /// Reports that there will be no data, and returns the array.
    pub(super) fn fail(self, client: &Client, error: (Code, &str)) -> Result<Buffer, Error> {
        match self.gate {
            Gate::Alias(handle) => match client.fulfill(handle, Err(error)) {
                // The call may return the host's error too.
                Err(own) if own.code == error.0 && own.message.contains(error.1) => {}
                outcome => outcome?,
            },
            Gate::Transfer(manager) => manager.fail(0, error.0, error.1)?,
        }
        Ok(self.array)
    }
}

impl Gate {
    /// Provides the data of an array on the first device.
    pub(super) fn provide(self, client: &Client, values: &[f32; 4]) -> Result<(), Error> {
        self.provide_on(client, client.device()?, values)
    }

    /// Provides the data of an array on a device. The array that fulfills an alias must be in the same memory.
    fn provide_on(self, client: &Client, device: Device<'_>, values: &[f32; 4]) -> Result<(), Error> {
        match self {
            Self::Alias(handle) => client.fulfill(handle, Ok(&upload_to(client, values, device)?.buffer)),
            // The array is ready later than the host's memory, so the event says nothing about it.
            Self::Transfer(manager) => manager.write(0, &f32_bytes(values), 0, true).map(drop),
        }
    }
}

/// Returns an array of four numbers that is in error.
///
/// # Errors
///
/// The check does not apply if the plugin has no function that creates such an array.
pub(super) fn in_error(client: &Client, error: (Code, &str)) -> Result<Buffer, Finding> {
    let memory = client.device()?.default_memory()?;
    match client.error_buffer(error, ElementType::F32, &[4], memory) {
        Ok(array) => Ok(array),
        Err(lacking) if lacking.code == Code::UNIMPLEMENTED => Ok(Pending::new(client)?.fail(client, error)?),
        Err(other) => Err(other.into()),
    }
}
