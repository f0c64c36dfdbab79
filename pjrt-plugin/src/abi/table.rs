//! The function table.

use std::ffi::c_int;
use std::ptr;

use pjrt_sys::{PJRT_API_MAJOR, PJRT_API_MINOR, PJRT_Api, PJRT_Api_Version, SizedStruct, for_each_slot};

use crate::abi::buffer::*;
use crate::abi::client::*;
use crate::abi::device::*;
use crate::abi::device_description::*;
use crate::abi::download::*;
use crate::abi::error::*;
use crate::abi::event::*;
use crate::abi::executable::*;
use crate::abi::execute::*;
use crate::abi::guard::{shim, shim_without_floats};
use crate::abi::host_callback::*;
use crate::abi::host_futures::*;
use crate::abi::loaded::*;
use crate::abi::memory::*;
use crate::abi::plugin::*;
use crate::abi::topology::*;
use crate::abi::transfer::*;
use crate::abi::upload::*;
use crate::client::PjrtClient;

/// The function table of a client, without extensions.
pub(crate) struct TableOf<C>(std::marker::PhantomData<C>);

macro_rules! table {
    ($($index:literal $slot:ident $args:ident $function:ident $returns:ident;)*) => {
        impl<C: PjrtClient> TableOf<C> {
            const WITH_FLOATS: PJRT_Api = PJRT_Api {
                struct_size: PJRT_Api::STRUCT_SIZE,
                extension_start: ptr::null_mut(),
                pjrt_api_version: PJRT_Api_Version {
                    struct_size: PJRT_Api_Version::STRUCT_SIZE,
                    extension_start: ptr::null_mut(),
                    major_version: PJRT_API_MAJOR as c_int,
                    minor_version: PJRT_API_MINOR as c_int,
                },
                $($slot: Some(table!(@ $returns $function)),)*
            };
        }
    };
    (@ error $function:ident) => { shim($function::<C>) };
    (@ nothing $function:ident) => { $function::<C> };
}
for_each_slot!(table);

impl<C: PjrtClient> TableOf<C> {
    /// The function table. Frequent functions that neither compute with floats nor call the author's code do not set the
    /// floating-point environment, which would take most of their time.
    pub(crate) const TABLE: PJRT_Api = PJRT_Api {
        PJRT_Buffer_Device: Some(shim_without_floats(buffer_device::<C>)),
        PJRT_Buffer_Dimensions: Some(shim_without_floats(buffer_dimensions::<C>)),
        PJRT_Buffer_DynamicDimensionIndices: Some(shim_without_floats(buffer_dynamic_dimension_indices::<C>)),
        PJRT_Buffer_ElementType: Some(shim_without_floats(buffer_element_type::<C>)),
        PJRT_Buffer_GetMemoryLayout: Some(shim_without_floats(buffer_get_memory_layout::<C>)),
        PJRT_Buffer_IsDeleted: Some(shim_without_floats(buffer_is_deleted::<C>)),
        PJRT_Buffer_IsOnCpu: Some(shim_without_floats(buffer_is_on_cpu::<C>)),
        PJRT_Buffer_Memory: Some(shim_without_floats(buffer_memory::<C>)),
        PJRT_Buffer_ReadyEvent: Some(shim_without_floats(buffer_ready_event::<C>)),
        PJRT_Buffer_UnpaddedDimensions: Some(shim_without_floats(buffer_unpadded_dimensions::<C>)),
        PJRT_Event_Destroy: Some(shim_without_floats(event_destroy::<C>)),
        PJRT_Event_Error: Some(shim_without_floats(event_error::<C>)),
        PJRT_Event_IsReady: Some(shim_without_floats(event_is_ready::<C>)),
        ..Self::WITH_FLOATS
    };
}
