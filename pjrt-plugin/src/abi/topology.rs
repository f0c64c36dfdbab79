//! `PJRT_TopologyDescription`.
//!
//! `PJRT_TopologyDescription_Create`, `PJRT_TopologyDescription_Destroy`,
//! `PJRT_TopologyDescription_PlatformName`, `PJRT_TopologyDescription_PlatformVersion`,
//! `PJRT_TopologyDescription_GetDeviceDescriptions`, `PJRT_TopologyDescription_Serialize`,
//! `PJRT_TopologyDescription_Attributes`, `PJRT_TopologyDescription_Deserialize`,
//! `PJRT_TopologyDescription_Fingerprint`, `PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace`,
//! `PJRT_TopologyDescription_GetMemorySpaceKindIds`.

use pjrt_sys::{
    PJRT_DeviceDescription, PJRT_TopologyDescription, PJRT_TopologyDescription_Attributes_Args,
    PJRT_TopologyDescription_Create_Args, PJRT_TopologyDescription_Deserialize_Args,
    PJRT_TopologyDescription_Destroy_Args, PJRT_TopologyDescription_Fingerprint_Args,
    PJRT_TopologyDescription_GetDeviceDescriptions_Args, PJRT_TopologyDescription_GetMemorySpaceKindIds_Args,
    PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args,
    PJRT_TopologyDescription_PlatformName_Args, PJRT_TopologyDescription_PlatformVersion_Args,
    PJRT_TopologyDescription_Serialize_Args,
};

use prost::Message;

use crate::abi::args::{
    View, bytes, element_type, handle, input, output, output_slice, output_str, slice, text,
};
use crate::abi::c_arrays::{
    NamedValues, copy_to_c, delete_serialized, free_c, read_named_values, serialized,
};
use crate::abi::device_description::DescriptionHandle;
use crate::abi::handle::{self, Handle, registry};
use crate::abi::layout::{HostLayout, read_layout};
use crate::client::PjrtClient;
use crate::element_type::ElementType;
use crate::error::{Error, Result};
use crate::layout::{Layout, dense_size};
use crate::options::{OptionValue, Options};
use crate::proto;
use crate::topology::Topology;

/// The object behind a `PJRT_TopologyDescription`, which the host or a client owns.
pub(crate) struct TopologyHandle {
    pub(crate) topology: Topology,
    // This is a vector because pointers into it are created before it is moved here. Moving a box would invalidate them.
    _descriptions: Vec<DescriptionHandle>,
    pointers: Vec<*mut PJRT_DeviceDescription>,
    attributes: NamedValues,
    memory_kind_ids: Vec<i32>,
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
        let memory_kind_ids = topology.memory_kind_ids();
        Self { topology, _descriptions: descriptions, pointers, attributes, memory_kind_ids }
    }
}

impl Drop for TopologyHandle {
    fn drop(&mut self) {
        for pointer in &self.pointers {
            let _ = registry::remove::<DescriptionHandle>(*pointer, "description");
        }
    }
}

/// Returns whether a topology has a name of this platform.
fn is_own<C: PjrtClient>(topology: &Topology) -> bool {
    let name = topology.platform_name();
    name == C::PLATFORM_NAME || C::PLATFORM_ALIASES.contains(&name)
}

/// Checks that the topology that one of the author's functions returned is of this platform. Otherwise the plugin could not read
/// it after the host serialized it.
pub(crate) fn check_own<C: PjrtClient>(topology: &Topology, function: &str) -> Result<()> {
    if is_own::<C>(topology) {
        return Ok(());
    }
    Err(Error::internal(format!(
        "PjrtClient::{function} of the plugin '{}' returned a topology of platform '{}'",
        C::PLATFORM_NAME,
        topology.platform_name()
    ))
    .with_hint("PjrtClient::PLATFORM_ALIASES declares other names of the platform"))
}

/// Creates a topology with the author's function.
fn create<C: PjrtClient>(name: &str, given: Vec<(String, OptionValue)>) -> Result<Topology> {
    let topology = C::create_topology(name, &Options::new(C::TOPOLOGY_OPTIONS, given)?)?;
    check_own::<C>(&topology, "create_topology")?;
    Ok(topology)
}

/// `PJRT_TopologyDescription_Create`.
pub(crate) fn topology_description_create<C: PjrtClient>(
    args: View<'_, PJRT_TopologyDescription_Create_Args>,
) -> Result<()> {
    output!(args.topology = std::ptr::null_mut());
    let name = text(bytes!(args.topology_name, topology_name_size)?);
    // SAFETY: pointer and length describe an array of the host.
    let given = unsafe { read_named_values(input!(args.create_options), input!(args.num_options)) }?;
    output!(args.topology = handle::into_raw(TopologyHandle::new(create::<C>(&name, given)?)));
    Ok(())
}

/// `PJRT_TopologyDescription_Destroy`: frees a topology that the host owns.
pub(crate) fn topology_description_destroy<C: PjrtClient>(
    args: View<'_, PJRT_TopologyDescription_Destroy_Args>,
) -> Result<()> {
    // SAFETY: the host passes ownership of the topology, which came from `PJRT_TopologyDescription_Create` or
    // `PJRT_TopologyDescription_Deserialize`.
    drop(unsafe { handle::from_raw::<TopologyHandle>(input!(args.topology), "topology") }?);
    Ok(())
}

/// `PJRT_TopologyDescription_PlatformName`.
pub(crate) fn topology_description_platform_name<C: PjrtClient>(
    args: View<'_, PJRT_TopologyDescription_PlatformName_Args>,
) -> Result<()> {
    let handle = handle!(args.topology: TopologyHandle)?;
    output_str!(args.platform_name, platform_name_size = handle.topology.platform_name());
    Ok(())
}

/// `PJRT_TopologyDescription_PlatformVersion`.
pub(crate) fn topology_description_platform_version<C: PjrtClient>(
    args: View<'_, PJRT_TopologyDescription_PlatformVersion_Args>,
) -> Result<()> {
    let handle = handle!(args.topology: TopologyHandle)?;
    output_str!(args.platform_version, platform_version_size = handle.topology.platform_version());
    Ok(())
}

/// `PJRT_TopologyDescription_GetDeviceDescriptions`.
pub(crate) fn topology_description_get_device_descriptions<C: PjrtClient>(
    args: View<'_, PJRT_TopologyDescription_GetDeviceDescriptions_Args>,
) -> Result<()> {
    let handle = handle!(args.topology: TopologyHandle)?;
    output_slice!(args.descriptions, num_descriptions = &handle.pointers);
    Ok(())
}

/// `PJRT_TopologyDescription_Serialize`.
pub(crate) fn topology_description_serialize<C: PjrtClient>(
    args: View<'_, PJRT_TopologyDescription_Serialize_Args>,
) -> Result<()> {
    let handle = handle!(args.topology: TopologyHandle)?;
    let (pointer, size, holder) = serialized(handle.topology.serialize());
    output!(args.serialized_bytes = pointer);
    output!(args.serialized_bytes_size = size);
    output!(args.serialized_topology = holder);
    output!(args.serialized_topology_deleter = Some(delete_serialized));
    Ok(())
}

/// `PJRT_TopologyDescription_Attributes`.
pub(crate) fn topology_description_attributes<C: PjrtClient>(
    args: View<'_, PJRT_TopologyDescription_Attributes_Args>,
) -> Result<()> {
    let handle = handle!(args.topology: TopologyHandle)?;
    output_slice!(args.attributes, num_attributes = handle.attributes.as_slice());
    Ok(())
}

/// `PJRT_TopologyDescription_Deserialize`.
pub(crate) fn topology_description_deserialize<C: PjrtClient>(
    args: View<'_, PJRT_TopologyDescription_Deserialize_Args>,
) -> Result<()> {
    let topology = Topology::deserialize(bytes!(args.serialized_topology, serialized_topology_size)?)?;
    if !is_own::<C>(&topology) {
        return Err(Error::invalid_argument(format!(
            "the serialized topology is of platform '{}'; expected '{}'",
            topology.platform_name(),
            C::PLATFORM_NAME
        )));
    }
    output!(args.topology = handle::into_raw(TopologyHandle::new(topology)));
    Ok(())
}

/// `PJRT_TopologyDescription_Fingerprint`.
pub(crate) fn topology_description_fingerprint<C: PjrtClient>(
    args: View<'_, PJRT_TopologyDescription_Fingerprint_Args>,
) -> Result<()> {
    output!(args.fingerprint = handle!(args.topology: TopologyHandle)?.topology.fingerprint());
    Ok(())
}

/// `PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace`: returns a shape with the layout of its arrays in a memory,
/// which is the requested layout, or row-major if the host requests none.
pub(crate) fn topology_description_make_canonical_shape_for_memory_space<C: PjrtClient>(
    args: View<'_, PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args>,
) -> Result<()> {
    output!(args.serialized_shape = std::ptr::null());
    output!(args.serialized_shape_size = 0);
    output!(args.serialized_shape_deleter = Some(free_c));
    let handle = handle!(args.topology: TopologyHandle)?;
    let kind = input!(args.memory_space_kind_id);
    if !handle.memory_kind_ids.contains(&kind) {
        return Err(Error::invalid_argument(format!("no memory of the topology has the kind id {kind}"))
            .with_hint(format!("the kind ids of its memories are {:?}", handle.memory_kind_ids)));
    }
    let element_type = element_type(input!(args.element_type))?;
    let dims = slice!(args.dims as i64, num_dims)?;
    dense_size(dims, element_type.byte_size())?;
    // SAFETY: the field is null or a layout of the host.
    let layout = match unsafe { read_layout(input!(args.layout), dims.len()) }? {
        None => Layout::row_major(dims.len()),
        Some(HostLayout::Tiled(layout)) => layout,
        Some(HostLayout::Strides(_)) => {
            return Err(Error::unimplemented(
                "a canonical shape cannot have a layout of byte strides; pass a layout with minor_to_major",
            ));
        }
    };
    let shape = canonical_shape(element_type, dims, &layout).encode_to_vec();
    let place = copy_to_c(&shape)?;
    output!(args.serialized_shape = place);
    output!(args.serialized_shape_size = shape.len());
    Ok(())
}

/// `PJRT_TopologyDescription_GetMemorySpaceKindIds`.
pub(crate) fn topology_description_get_memory_space_kind_ids<C: PjrtClient>(
    args: View<'_, PJRT_TopologyDescription_GetMemorySpaceKindIds_Args>,
) -> Result<()> {
    let handle = handle!(args.topology: TopologyHandle)?;
    output_slice!(args.memory_space_kind_ids, num_memory_space_kind_ids = &handle.memory_kind_ids);
    Ok(())
}

fn canonical_shape(element_type: ElementType, dims: &[i64], layout: &Layout) -> proto::Shape {
    proto::Shape {
        element_type: element_type.xla_number(),
        dimensions: dims.to_vec(),
        layout: Some(proto::Layout {
            minor_to_major: layout.minor_to_major().iter().map(|dimension| *dimension as i64).collect(),
            tiles: layout.tiles().iter().map(|tile| proto::Tile { dimensions: tile.clone() }).collect(),
        }),
        is_dynamic_dimension: vec![false; dims.len()],
        tuple_shapes: Vec::new(),
    }
}
