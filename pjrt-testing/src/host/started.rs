//! Copies that a host starts, and waits for later.

use std::ptr;

use super::buffer::Buffer;
use super::call::call;
use super::error::Result;
use super::event::Event;
use super::host_memory::HostMemory;

impl Buffer {
    /// Starts to copy bytes as they are stored on the device (`PJRT_Buffer_CopyRawToHost`), and returns the host memory and the
    /// event.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn start_read_raw(&self, offset: i64, size: usize) -> Result<(HostMemory, Event)> {
        let destination = HostMemory::destination(size, 0);
        let args = call!(
            self.plugin,
            PJRT_Buffer_CopyRawToHost_Args {
                buffer: self.raw,
                dst: ptr::with_exposed_provenance_mut(destination.exposed()),
                offset,
                transfer_size: size as i64,
            }
        )?;
        Ok((destination, Event::from_raw(self.plugin, args.event, "PJRT_Buffer_CopyRawToHost")?))
    }
}
