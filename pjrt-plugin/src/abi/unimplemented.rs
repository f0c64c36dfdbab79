//! The functions that no plugin of this version of the crate can offer: each answers UNIMPLEMENTED with its own name, which
//! every host puts up with.

use crate::abi::args::shims;
use crate::abi::guard::function_name;
use crate::error::Error;

macro_rules! unimplemented_slots {
    ($($(#[$attribute:meta])* $name:ident($args:ident))*) => {
        shims! {$(
            $(#[$attribute])*
            $name($args) |_args, C| {
                let function = function_name::<pjrt_sys::$args>();
                Err(Error::unimplemented(format!("{function} is not implemented by this plugin")))
            }
        )*}
    };
}

unimplemented_slots! {
    /// Slot 82.
    topology_description_create(PJRT_TopologyDescription_Create_Args)
    /// Slot 98.
    execute_context_create(PJRT_ExecuteContext_Create_Args)
    /// Slot 99.
    execute_context_destroy(PJRT_ExecuteContext_Destroy_Args)
    /// Slot 101.
    async_host_to_device_transfer_manager_destroy(PJRT_AsyncHostToDeviceTransferManager_Destroy_Args)
    /// Slot 102.
    async_host_to_device_transfer_manager_transfer_data(PJRT_AsyncHostToDeviceTransferManager_TransferData_Args)
    /// Slot 103.
    client_create_buffers_for_async_host_to_device(PJRT_Client_CreateBuffersForAsyncHostToDevice_Args)
    /// Slot 104.
    async_host_to_device_transfer_manager_retrieve_buffer(PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args)
    /// Slot 105.
    async_host_to_device_transfer_manager_device(PJRT_AsyncHostToDeviceTransferManager_Device_Args)
    /// Slot 106.
    async_host_to_device_transfer_manager_buffer_count(PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args)
    /// Slot 107.
    async_host_to_device_transfer_manager_buffer_size(PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args)
    /// Slot 108.
    async_host_to_device_transfer_manager_set_buffer_error(PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args)
    /// Slot 109.
    async_host_to_device_transfer_manager_add_metadata(PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args)
    /// Slot 110.
    client_dma_map(PJRT_Client_DmaMap_Args)
    /// Slot 111.
    client_dma_unmap(PJRT_Client_DmaUnmap_Args)
    /// Slot 119.
    async_host_to_device_transfer_manager_transfer_literal(PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args)
    /// Slot 131.
    buffer_bitcast(PJRT_Buffer_Bitcast_Args)
    /// Slot 136.
    topology_description_make_canonical_shape_for_memory_space(PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args)
    /// Slot 137.
    topology_description_get_memory_space_kind_ids(PJRT_TopologyDescription_GetMemorySpaceKindIds_Args)
}
