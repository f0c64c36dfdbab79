//! Topologies.

use std::ffi::c_int;
use std::marker::PhantomData;

use pjrt_sys::*;

use super::call::{call, destroyed_by, text_of, value_of};
use super::element_type::ElementType;
use super::error::{Error, Result};
use super::executable::{Executable, Program};
use super::objects::DeviceDescription;
use super::plugin::Plugin;
use super::slices::given;
use super::values::{NamedValue, named_values};

/// A topology (`PJRT_TopologyDescription`), owned by the host or by a client.
#[derive(Debug)]
pub struct Topology {
    pub(crate) plugin: Plugin,
    pub(crate) raw: *mut PJRT_TopologyDescription,
    _owned: Option<OwnedTopology>,
}

// SAFETY: the interface allows the use of topologies on every thread.
unsafe impl Send for Topology {}
// SAFETY: as above.
unsafe impl Sync for Topology {}

#[derive(Debug)]
struct OwnedTopology {
    plugin: Plugin,
    raw: *mut PJRT_TopologyDescription,
}

destroyed_by!(OwnedTopology PJRT_TopologyDescription_Destroy_Args topology);

impl Topology {
    pub(crate) fn borrowed(plugin: Plugin, raw: *mut PJRT_TopologyDescription) -> Self {
        Self { plugin, raw, _owned: None }
    }

    fn owned(plugin: Plugin, raw: *mut PJRT_TopologyDescription, function: &'static str) -> Result<Self> {
        if raw.is_null() {
            return Err(Error::broken(function, "it succeeded, but the topology is a null pointer"));
        }
        Ok(Self { plugin, raw, _owned: Some(OwnedTopology { plugin, raw }) })
    }

    /// Creates a topology by name, without a client (`PJRT_TopologyDescription_Create`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn create(plugin: Plugin, name: &str) -> Result<Self> {
        let args = call!(
            plugin,
            PJRT_TopologyDescription_Create_Args {
                topology_name: name.as_ptr().cast(),
                topology_name_size: name.len(),
            }
        )?;
        Self::owned(plugin, args.topology, "PJRT_TopologyDescription_Create")
    }

    /// Deserializes a topology that [`serialize`](Self::serialize) returned
    /// (`PJRT_TopologyDescription_Deserialize`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn deserialize(plugin: Plugin, serialized: &[u8]) -> Result<Self> {
        let args = call!(
            plugin,
            PJRT_TopologyDescription_Deserialize_Args {
                serialized_topology: serialized.as_ptr().cast(),
                serialized_topology_size: serialized.len(),
            }
        )?;
        Self::owned(plugin, args.topology, "PJRT_TopologyDescription_Deserialize")
    }

    /// Compiles a program without a client (`PJRT_Compile`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn compile(&self, program: &Program<'_>, options: &[u8]) -> Result<Executable> {
        let raw = program.raw();
        let args = call!(
            self.plugin,
            PJRT_Compile_Args {
                topology: self.raw,
                program: &raw const raw,
                compile_options: options.as_ptr().cast(),
                compile_options_size: options.len(),
            }
        )?;
        Executable::from_raw(self.plugin, args.executable, "PJRT_Compile")
    }

    text_of! {
        /// Returns the name of the platform (`PJRT_TopologyDescription_PlatformName`).
        platform_name PJRT_TopologyDescription_PlatformName_Args topology -> platform_name platform_name_size;
        /// Returns the version of the platform (`PJRT_TopologyDescription_PlatformVersion`).
        platform_version PJRT_TopologyDescription_PlatformVersion_Args topology -> platform_version platform_version_size;
    }

    value_of! {
        /// Returns the fingerprint, which is the same for equal topologies
        /// (`PJRT_TopologyDescription_Fingerprint`).
        fingerprint PJRT_TopologyDescription_Fingerprint_Args topology -> fingerprint: u64;
    }

    /// Returns the devices (`PJRT_TopologyDescription_GetDeviceDescriptions`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn devices(&self) -> Result<Vec<DeviceDescription<'_>>> {
        let args =
            call!(self.plugin, PJRT_TopologyDescription_GetDeviceDescriptions_Args { topology: self.raw })?;
        const FUNCTION: &str = "PJRT_TopologyDescription_GetDeviceDescriptions";
        // SAFETY: the plugin returned the pointer and the length of an array that lives as long as the
        // topology.
        let descriptions = unsafe { given(FUNCTION, args.descriptions, args.num_descriptions) }?;
        let description = |raw: &*mut PJRT_DeviceDescription| DeviceDescription {
            plugin: self.plugin,
            raw: *raw,
            owner: PhantomData,
        };
        Ok(descriptions.iter().map(description).collect())
    }

    /// Returns a dense array's shape, with the layout that it has in memories of a kind, as a serialized
    /// `ShapeProto` (`PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace`), and whether the plugin
    /// returned a deleter for it.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn canonical_shape(
        &self,
        kind_id: c_int,
        element_type: ElementType,
        dims: &[i64],
    ) -> Result<(Vec<u8>, bool)> {
        let args = call!(
            self.plugin,
            PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args {
                topology: self.raw.cast_const(),
                memory_space_kind_id: kind_id,
                dims: dims.as_ptr(),
                num_dims: dims.len(),
                element_type: PJRT_Buffer_Type(element_type.0),
            }
        )?;
        // SAFETY: the plugin returned the pointer and the length of bytes that live until they are deleted,
        // once.
        unsafe {
            const FUNCTION: &str = "PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace";
            let read = given::<u8>(FUNCTION, args.serialized_shape.cast(), args.serialized_shape_size);
            let shape = read.map(<[u8]>::to_vec);
            if let Some(delete) = args.serialized_shape_deleter {
                delete(args.serialized_shape);
            }
            Ok((shape?, args.serialized_shape_deleter.is_some()))
        }
    }

    /// Returns the ids of the memory kinds of the devices (`PJRT_TopologyDescription_GetMemorySpaceKindIds`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn memory_kind_ids(&self) -> Result<Vec<c_int>> {
        let args =
            call!(self.plugin, PJRT_TopologyDescription_GetMemorySpaceKindIds_Args { topology: self.raw })?;
        const FUNCTION: &str = "PJRT_TopologyDescription_GetMemorySpaceKindIds";
        // SAFETY: the plugin returned the pointer and the length of an array that lives as long as the
        // topology.
        let kinds = unsafe { given(FUNCTION, args.memory_space_kind_ids, args.num_memory_space_kind_ids) }?;
        Ok(kinds.to_vec())
    }

    /// Returns the attributes (`PJRT_TopologyDescription_Attributes`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn attributes(&self) -> Result<Vec<NamedValue>> {
        let args = call!(self.plugin, PJRT_TopologyDescription_Attributes_Args { topology: self.raw })?;
        // SAFETY: the plugin returned the pointer and the length of an array that lives as long as the
        // topology.
        unsafe { named_values("PJRT_TopologyDescription_Attributes", args.attributes, args.num_attributes) }
    }

    /// Serializes the topology (`PJRT_TopologyDescription_Serialize`). Also returns whether the plugin
    /// returned a deleter.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn serialize(&self) -> Result<(Vec<u8>, bool)> {
        let args = call!(self.plugin, PJRT_TopologyDescription_Serialize_Args { topology: self.raw })?;
        // SAFETY: the plugin returned the pointer and the length of bytes that live until they are deleted,
        // once.
        unsafe {
            const FUNCTION: &str = "PJRT_TopologyDescription_Serialize";
            let read = given::<u8>(FUNCTION, args.serialized_bytes.cast(), args.serialized_bytes_size);
            let serialized = read.map(<[u8]>::to_vec);
            if let Some(delete) = args.serialized_topology_deleter {
                delete(args.serialized_topology);
            }
            Ok((serialized?, args.serialized_topology_deleter.is_some()))
        }
    }
}
