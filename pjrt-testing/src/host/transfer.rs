//! Arrays that are transferred to a device in pieces.

use std::ptr;

use pjrt_sys::*;

use super::buffer::{Buffer, c_number};
use super::call::{call, destroyed_by, value_of};
use super::client::Client;
use super::element_type::ElementType;
use super::error::{Code, Error, Result};
use super::event::Event;
use super::handles;
use super::host_memory::HostMemory;
use super::layout::Layout;
use super::objects::{Device, Memory};
use super::plugin::Plugin;

/// A manager that fills buffers in pieces (`PJRT_AsyncHostToDeviceTransferManager`). Dropping it destroys it.
#[derive(Debug)]
pub struct TransferManager {
    pub(crate) plugin: Plugin,
    pub(crate) raw: *mut PJRT_AsyncHostToDeviceTransferManager,
}

destroyed_by!(TransferManager PJRT_AsyncHostToDeviceTransferManager_Destroy_Args transfer_manager);

impl Client {
    /// Creates buffers that are filled later (`PJRT_Client_CreateBuffersForAsyncHostToDevice`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn transfer_manager(
        &self,
        shapes: &[(ElementType, Vec<i64>)],
        memory: Memory<'_>,
    ) -> Result<TransferManager> {
        let spec = |(element_type, dims): &(ElementType, Vec<i64>)| PJRT_ShapeSpec {
            dims: dims.as_ptr(),
            num_dims: dims.len(),
            element_type: PJRT_Buffer_Type(element_type.0),
            ..PJRT_ShapeSpec::zeroed()
        };
        let mut specs: Vec<PJRT_ShapeSpec> = shapes.iter().map(spec).collect();
        const FUNCTION: &str = "PJRT_Client_CreateBuffersForAsyncHostToDevice";
        let args = call!(
            self.plugin,
            PJRT_Client_CreateBuffersForAsyncHostToDevice_Args {
                client: self.raw,
                shape_specs: specs.as_mut_ptr(),
                num_shape_specs: specs.len(),
                memory: memory.raw,
            }
        )?;
        if args.transfer_manager.is_null() {
            return Err(Error::broken(FUNCTION, "it succeeded, but the manager is a null pointer"));
        }
        handles::take(args.transfer_manager, FUNCTION)?;
        Ok(TransferManager { plugin: self.plugin, raw: args.transfer_manager })
    }
}

impl TransferManager {
    value_of! {
        /// Returns the number of buffers (`PJRT_AsyncHostToDeviceTransferManager_BufferCount`).
        buffer_count PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args transfer_manager -> buffer_count: usize;
    }

    /// Returns the size of a buffer on the device (`PJRT_AsyncHostToDeviceTransferManager_BufferSize`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn buffer_size(&self, index: usize) -> Result<usize> {
        let args = call!(
            self.plugin,
            PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args {
                transfer_manager: self.raw,
                buffer_index: c_number(index),
            }
        )?;
        Ok(args.buffer_size)
    }

    /// Returns the device (`PJRT_AsyncHostToDeviceTransferManager_Device`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn device(&self) -> Result<Device<'_>> {
        let args = call!(
            self.plugin,
            PJRT_AsyncHostToDeviceTransferManager_Device_Args { transfer_manager: self.raw }
        )?;
        Ok(Device::new(self.plugin, args.device_out))
    }

    /// Takes a buffer out of the manager, once (`PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn retrieve(&self, index: usize) -> Result<Buffer> {
        let args = call!(
            self.plugin,
            PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args {
                transfer_manager: self.raw,
                buffer_index: c_number(index),
            }
        )?;
        const FUNCTION: &str = "PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer";
        Buffer::from_raw(self.plugin, args.buffer_out, FUNCTION)
    }

    /// Writes bytes to the buffer `index`, beginning `offset` bytes after its start
    /// (`PJRT_AsyncHostToDeviceTransferManager_TransferData`). `is_last` states that this is the last write to the buffer. The
    /// returned event is ready when the bytes have been transferred.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn write(&self, index: usize, data: &[u8], offset: i64, is_last: bool) -> Result<Event> {
        self.write_from(index, &HostMemory::new(data, 0), offset, is_last)
    }

    /// The same as [`write`](Self::write), with a piece in memory that the caller overwrites after the event.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn write_from(&self, index: usize, memory: &HostMemory, offset: i64, is_last: bool) -> Result<Event> {
        let args = call!(
            self.plugin,
            PJRT_AsyncHostToDeviceTransferManager_TransferData_Args {
                transfer_manager: self.raw,
                buffer_index: c_number(index),
                data: ptr::with_exposed_provenance(memory.exposed()),
                offset,
                transfer_size: memory.len as i64,
                is_last_transfer: is_last,
            }
        )?;
        const FUNCTION: &str = "PJRT_AsyncHostToDeviceTransferManager_TransferData";
        Event::from_raw(self.plugin, args.done_with_h2d_transfer, FUNCTION)
    }

    /// Writes a whole array, whose elements have this layout in `data`, to a buffer
    /// (`PJRT_AsyncHostToDeviceTransferManager_TransferLiteral`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn write_array(
        &self,
        index: usize,
        data: &[u8],
        element_type: ElementType,
        dims: &[i64],
        layout: &Layout,
    ) -> Result<Event> {
        self.write_array_from(index, &HostMemory::new(data, 0), element_type, dims, layout)
    }

    /// The same as [`write_array`](Self::write_array), with an array in memory that the caller overwrites after the event.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn write_array_from(
        &self,
        index: usize,
        memory: &HostMemory,
        element_type: ElementType,
        dims: &[i64],
        layout: &Layout,
    ) -> Result<Event> {
        let mut layout = layout.raw();
        let args = call!(
            self.plugin,
            PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args {
                transfer_manager: self.raw,
                buffer_index: c_number(index),
                data: ptr::with_exposed_provenance(memory.exposed()),
                shape_dims: dims.as_ptr(),
                shape_num_dims: dims.len(),
                shape_element_type: PJRT_Buffer_Type(element_type.0),
                shape_layout: &raw mut layout,
            }
        )?;
        const FUNCTION: &str = "PJRT_AsyncHostToDeviceTransferManager_TransferLiteral";
        Event::from_raw(self.plugin, args.done_with_h2d_transfer, FUNCTION)
    }

    /// Sets a buffer to an error (`PJRT_AsyncHostToDeviceTransferManager_SetBufferError`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn fail(&self, index: usize, code: Code, message: &str) -> Result<()> {
        call!(
            self.plugin,
            PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args {
                transfer_manager: self.raw,
                buffer_index: c_number(index),
                error_code: PJRT_Error_Code(code.0),
                error_message: message.as_ptr().cast(),
                error_message_size: message.len(),
            }
        )
        .map(drop)
    }

    /// Adds an empty list of metadata for traces (`PJRT_AsyncHostToDeviceTransferManager_AddMetadata`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn add_no_metadata(&self) -> Result<()> {
        call!(
            self.plugin,
            PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args { transfer_manager: self.raw }
        )
        .map(drop)
    }
}
