//! The function table.

use std::ffi::c_int;
use std::ptr;

use pjrt_sys::{PJRT_API_MAJOR, PJRT_API_MINOR, PJRT_Api, PJRT_Api_Version, SizedStruct, for_each_slot};

use crate::abi::buffer::*;
use crate::abi::client::*;
use crate::abi::device::*;
use crate::abi::download::*;
use crate::abi::error::*;
use crate::abi::event::*;
use crate::abi::executable::*;
use crate::abi::execute::*;
use crate::abi::host_callback::*;
use crate::abi::host_futures::*;
use crate::abi::loaded::*;
use crate::abi::memory::*;
use crate::abi::plugin::*;
use crate::abi::topology::*;
use crate::abi::transfer::*;
use crate::abi::upload::*;
use crate::client::PjrtClient;

/// The table of a client, without extensions.
pub(crate) struct TableOf<C>(std::marker::PhantomData<C>);

macro_rules! table {
    ($($index:literal $slot:ident $args:ident $shim:ident $returns:ident;)*) => {
        impl<C: PjrtClient> TableOf<C> {
            pub(crate) const TABLE: PJRT_Api = PJRT_Api {
                struct_size: PJRT_Api::STRUCT_SIZE,
                extension_start: ptr::null_mut(),
                pjrt_api_version: PJRT_Api_Version {
                    struct_size: PJRT_Api_Version::STRUCT_SIZE,
                    extension_start: ptr::null_mut(),
                    major_version: PJRT_API_MAJOR as c_int,
                    minor_version: PJRT_API_MINOR as c_int,
                },
                $($slot: Some($shim::<C>),)*
            };
        }
    };
}
for_each_slot!(table);
