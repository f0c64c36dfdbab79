//! Transfers of arrays from one client to another (the CrossHostTransfers extension).

use std::ptr;

use pjrt_sys::*;

use super::buffer::Buffer;
use super::client::Client;
use super::element_type::ElementType;
use super::error::Result;
use super::event::Event;
use super::objects::Device;

impl Client {
    /// Sends arrays to the devices with these ids, each under a key that the receiver passes too
    /// (`PJRT_Transfers_PJRT_Client_CrossHostSendBuffers`). Returns an event for each array.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn send(&self, arrays: &[&Buffer], to: i32, keys: &[i64]) -> Result<Vec<Event>> {
        const FUNCTION: &str = "PJRT_Transfers_PJRT_Client_CrossHostSendBuffers";
        let mut buffers: Vec<*mut PJRT_Buffer> = arrays.iter().map(|array| array.raw).collect();
        let devices = vec![to; arrays.len()];
        let mut events = vec![ptr::null_mut(); arrays.len()];
        self.plugin.call_extension(PJRT_Transfers_PJRT_Client_CrossHostSendBuffers_Args {
            client: self.raw,
            num_buffers: buffers.len(),
            buffers: buffers.as_mut_ptr(),
            dst_global_device_ids: devices.as_ptr(),
            transfer_keys: keys.as_ptr(),
            send_events: events.as_mut_ptr(),
            ..SizedStruct::zeroed()
        })?;
        events.into_iter().map(|event| Event::from_raw(self.plugin, event, FUNCTION)).collect()
    }

    /// Creates arrays that receive those that the device with this id sends under these keys
    /// (`PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn receive(
        &self,
        shapes: &[(ElementType, Vec<i64>)],
        device: Device<'_>,
        from: i32,
        keys: &[i64],
    ) -> Result<Vec<Buffer>> {
        const FUNCTION: &str = "PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers";
        let mut ranks: Vec<usize> = shapes.iter().map(|(_, dims)| dims.len()).collect();
        let mut dims: Vec<*const i64> = shapes.iter().map(|(_, dims)| dims.as_ptr()).collect();
        let mut types: Vec<PJRT_Buffer_Type> =
            shapes.iter().map(|(element_type, _)| PJRT_Buffer_Type(element_type.0)).collect();
        let mut layouts = vec![ptr::null_mut(); shapes.len()];
        let devices = vec![from; shapes.len()];
        let mut buffers = vec![ptr::null_mut(); shapes.len()];
        self.plugin.call_extension(PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args {
            client: self.raw,
            num_shapes: shapes.len(),
            shape_num_dims: ranks.as_mut_ptr(),
            num_dims: dims.as_mut_ptr(),
            element_types: types.as_mut_ptr(),
            layouts: layouts.as_mut_ptr(),
            device: device.raw,
            src_global_device_ids: devices.as_ptr(),
            transfer_keys: keys.as_ptr(),
            buffers: buffers.as_mut_ptr(),
            ..SizedStruct::zeroed()
        })?;
        buffers.into_iter().map(|buffer| Buffer::from_raw(self.plugin, buffer, FUNCTION)).collect()
    }
}
