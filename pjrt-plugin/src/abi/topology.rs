//! `PJRT_TopologyDescription`: slots 82 to 88, 95, 114, 133, 136 and 137.

use pjrt_sys::{PJRT_DeviceDescription, PJRT_TopologyDescription};

use crate::abi::args::{bytes, handle, input, output, output_slice, output_str, shims, text};
use crate::abi::client_state::ClientState;
use crate::abi::device::DescriptionHandle;
use crate::abi::handle::{self, Handle, registry};
use crate::abi::pinned::{NamedValues, delete_serialized, read_named_values, serialized};
use crate::client::PjrtClient;
use crate::error::{Error, Result};
use crate::options::{OptionValue, Options};
use crate::topology::Topology;

/// A topology as the host sees it: its own, or its client's.
pub(crate) struct TopologyHandle {
    pub(crate) topology: Topology,
    // A vector, because pointers into it were made before it was moved here, which a box does not allow.
    _descriptions: Vec<DescriptionHandle>,
    pointers: Vec<*mut PJRT_DeviceDescription>,
    attributes: NamedValues,
}

// SAFETY: `pointers` point into `_descriptions`, which never changes; the rest is `Send` and `Sync`.
unsafe impl Send for TopologyHandle {}
// SAFETY: as above.
unsafe impl Sync for TopologyHandle {}

impl Handle for TopologyHandle {
    type Opaque = PJRT_TopologyDescription;
    const KIND: &'static str = "PJRT_TopologyDescription";
}

impl TopologyHandle {
    pub(crate) fn new(topology: Topology) -> Self {
        let descriptions: Vec<DescriptionHandle> =
            topology.devices().iter().cloned().map(DescriptionHandle::new).collect();
        let start = descriptions.as_ptr();
        let pointers: Vec<_> =
            (0..descriptions.len()).map(|index| start.wrapping_add(index).cast_mut().cast()).collect();
        for pointer in &pointers {
            registry::add::<DescriptionHandle>(*pointer);
        }
        let attributes = NamedValues::new(topology.attributes());
        Self { topology, _descriptions: descriptions, pointers, attributes }
    }
}

impl Drop for TopologyHandle {
    fn drop(&mut self) {
        for pointer in &self.pointers {
            let _ = registry::remove::<DescriptionHandle>(*pointer, "description");
        }
    }
}

/// Asks the author for a topology, and makes sure that it is one of this platform.
fn create<C: PjrtClient>(name: &str, given: Vec<(String, OptionValue)>) -> Result<Topology> {
    let topology = C::create_topology(name, &Options::new(C::TOPOLOGY_OPTIONS, given)?)?;
    if topology.platform_name() == C::PLATFORM_NAME {
        return Ok(topology);
    }
    Err(Error::internal(format!(
        "the plugin '{}' describes a topology of platform '{}'",
        C::PLATFORM_NAME,
        topology.platform_name()
    )))
}

shims! {
    /// Slot 82.
    topology_description_create(PJRT_TopologyDescription_Create_Args) |args, C| {
        output!(args.topology = std::ptr::null_mut());
        let name = text(bytes!(args.topology_name, topology_name_size)?);
        // SAFETY: pointer and length describe an array of the host.
        let given = unsafe { read_named_values(input!(args.create_options), input!(args.num_options)) }?;
        output!(args.topology = handle::into_raw(TopologyHandle::new(create::<C>(&name, given)?)));
        Ok(())
    }

    /// Slot 83: frees one that the host owns.
    topology_description_destroy(PJRT_TopologyDescription_Destroy_Args) |args, C| {
        // SAFETY: the host gives the topology up, which came from slot 82 or 114.
        drop(unsafe { handle::from_raw::<TopologyHandle>(input!(args.topology), "topology") }?);
        Ok(())
    }

    /// Slot 84.
    topology_description_platform_name(PJRT_TopologyDescription_PlatformName_Args) |args, C| {
        let handle = handle!(args.topology: TopologyHandle)?;
        output_str!(args.platform_name, platform_name_size = handle.topology.platform_name());
        Ok(())
    }

    /// Slot 85.
    topology_description_platform_version(PJRT_TopologyDescription_PlatformVersion_Args) |args, C| {
        let handle = handle!(args.topology: TopologyHandle)?;
        output_str!(args.platform_version, platform_version_size = handle.topology.platform_version());
        Ok(())
    }

    /// Slot 86.
    topology_description_get_device_descriptions(PJRT_TopologyDescription_GetDeviceDescriptions_Args) |args, C| {
        let handle = handle!(args.topology: TopologyHandle)?;
        output_slice!(args.descriptions, num_descriptions = &handle.pointers);
        Ok(())
    }

    /// Slot 87.
    topology_description_serialize(PJRT_TopologyDescription_Serialize_Args) |args, C| {
        let handle = handle!(args.topology: TopologyHandle)?;
        let (pointer, size, holder) = serialized(handle.topology.serialize());
        output!(args.serialized_bytes = pointer);
        output!(args.serialized_bytes_size = size);
        output!(args.serialized_topology = holder);
        output!(args.serialized_topology_deleter = Some(delete_serialized));
        Ok(())
    }

    /// Slot 88.
    topology_description_attributes(PJRT_TopologyDescription_Attributes_Args) |args, C| {
        let handle = handle!(args.topology: TopologyHandle)?;
        output_slice!(args.attributes, num_attributes = handle.attributes.as_slice());
        Ok(())
    }

    /// Slot 95: the client's, which it keeps.
    client_topology_description(PJRT_Client_TopologyDescription_Args) |args, C| {
        let client = handle!(args.client: ClientState<C>)?;
        output!(args.topology = (&raw const client.topology).cast_mut().cast());
        Ok(())
    }

    /// Slot 114.
    topology_description_deserialize(PJRT_TopologyDescription_Deserialize_Args) |args, C| {
        let topology = Topology::deserialize(bytes!(args.serialized_topology, serialized_topology_size)?)?;
        if topology.platform_name() != C::PLATFORM_NAME {
            return Err(Error::invalid_argument(format!(
                "the topology is of platform '{}', not of '{}'",
                topology.platform_name(),
                C::PLATFORM_NAME
            )));
        }
        output!(args.topology = handle::into_raw(TopologyHandle::new(topology)));
        Ok(())
    }

    /// Slot 133.
    topology_description_fingerprint(PJRT_TopologyDescription_Fingerprint_Args) |args, C| {
        output!(args.fingerprint = handle!(args.topology: TopologyHandle)?.topology.fingerprint());
        Ok(())
    }
}
