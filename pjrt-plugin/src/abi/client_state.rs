//! A client with its devices and memories, at the addresses that are their handles.

use std::sync::{Arc, Weak};

use pjrt_sys::{PJRT_Client, PJRT_Device, PJRT_Memory};

use crate::abi::device::DeviceHandle;
use crate::abi::device_description::DescriptionHandle;
use crate::abi::handle::{Handle, registry};
use crate::abi::in_flight::InFlight;
use crate::abi::joint_launch::JointLaunches;
use crate::abi::kv::HostStore;
use crate::abi::memory::MemoryHandle;
use crate::abi::memory_usage::MemoryUsage;
use crate::abi::topology::{TopologyHandle, check_own};
use crate::abi::unfinished::Unfinished;
use crate::client::PjrtClient;
use crate::device::{DeviceId, PjrtDevice};
use crate::error::{Error, ErrorCode, Result};
use crate::memory::Memory;

/// A client and everything that belongs to it. Buffers and executables share it, so that they may outlive the host's handle.
pub(crate) struct ClientState<C: PjrtClient> {
    pub(crate) client: C,
    pub(crate) platform_version: String,
    pub(crate) process_index: i32,
    // These are vectors because pointers into them are created before they are moved here. Moving a box would invalidate
    // them.
    pub(crate) devices: Vec<DeviceHandle<C>>,
    pub(crate) memories: Vec<MemoryHandle>,
    pub(crate) device_pointers: Box<[*mut PJRT_Device]>,
    pub(crate) addressable_device_pointers: Box<[*mut PJRT_Device]>,
    pub(crate) addressable_memory_pointers: Box<[*mut PJRT_Memory]>,
    pub(crate) topology: TopologyHandle,
    pub(crate) unfinished: Unfinished<C::Buffer>,
    pub(crate) joint_launches: JointLaunches<C::Buffer>,
    pub(crate) memory_usage: MemoryUsage<C>,
    pub(crate) in_flight: InFlight,
    /// The host's store of a distributed client.
    pub(crate) host_store: Option<Arc<HostStore>>,
}

// SAFETY: the pointers point into `devices` and `memories`, which never move or change; the rest is `Send` and `Sync`.
unsafe impl<C: PjrtClient> Send for ClientState<C> {}
// SAFETY: as above.
unsafe impl<C: PjrtClient> Sync for ClientState<C> {}

impl<C: PjrtClient> Handle for ClientState<C> {
    type Opaque = PJRT_Client;
    const KIND: &'static str = "PJRT_Client";
}

/// Returns the address of the element at `index`, whether or not it is initialized.
fn pointer_to<H: Handle>(start: *const H, index: usize) -> *mut H::Opaque {
    start.wrapping_add(index).cast_mut().cast()
}

impl<C: PjrtClient> ClientState<C> {
    /// Creates the state, and reads everything from the author's client that does not change.
    pub(crate) fn new(client: C, host_store: Option<Arc<HostStore>>) -> Result<Arc<Self>> {
        let platform_version = client.platform_version();
        let process_index = client.process_index();
        let topology = client.topology();
        check_own::<C>(&topology, "topology")?;
        check_devices(client.devices())?;
        let memories = distinct_memories(client.devices());
        let state = Arc::new_cyclic(|weak| {
            let (devices, memories) = handles(client.devices(), memories, weak);
            let device_pointers: Box<[_]> =
                (0..devices.len()).map(|index| pointer_to(devices.as_ptr(), index)).collect();
            let addressable = devices.iter().filter(|device| device.addressable);
            let addressable_device_pointers =
                addressable.clone().map(|device| device_pointers[device.index]).collect();
            let mut used: Vec<usize> =
                addressable.flat_map(|device| device.memory_indices.iter().copied()).collect();
            used.sort_unstable();
            used.dedup();
            let addressable_memory_pointers =
                used.into_iter().map(|index| pointer_to(memories.as_ptr(), index)).collect();
            for device in &devices {
                registry::add::<DeviceHandle<C>>((&raw const *device).cast());
                registry::add::<DescriptionHandle>((&raw const device.description).cast());
            }
            for memory in &memories {
                registry::add::<MemoryHandle>((&raw const *memory).cast());
            }
            Self {
                memory_usage: MemoryUsage::new(memories.len()),
                in_flight: InFlight::new(devices.len()),
                client,
                host_store,
                platform_version,
                process_index,
                devices,
                memories,
                device_pointers,
                addressable_device_pointers,
                addressable_memory_pointers,
                topology: TopologyHandle::new(topology),
                unfinished: Unfinished::new(),
                joint_launches: JointLaunches::new(),
            }
        });
        registry::add::<TopologyHandle>((&raw const state.topology).cast());
        Ok(state)
    }

    /// Returns a share of the client, for objects that may outlive the host's handle.
    pub(crate) fn share(&self) -> Result<Arc<Self>> {
        let device = self.devices.first().and_then(|device| device.client.upgrade());
        device.ok_or_else(|| Error::failed_precondition("the client has been destroyed"))
    }

    /// Adds the statistics as a hint to a RESOURCE_EXHAUSTED error, unless the author has set a hint.
    #[inline]
    pub(crate) fn explain<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| self.explained(error))
    }

    #[cold]
    fn explained(&self, error: Error) -> Error {
        if error.code() == ErrorCode::ResourceExhausted && error.hint().is_none() {
            error.with_hint(self.memory_usage.describe(&self.memories, self.in_flight.count()))
        } else {
            error
        }
    }

    /// Returns the author's device at an index.
    pub(crate) fn author_device(&self, index: usize) -> Result<&C::Device> {
        self.client.devices().get(index).ok_or_else(|| {
            Error::internal(format!(
                "PjrtClient::devices returned fewer devices than before: none at index {index}"
            ))
        })
    }

    /// Returns the index of the device with a global id.
    pub(crate) fn device_index(&self, id: DeviceId) -> Option<usize> {
        self.devices.iter().position(|device| device.id() == id)
    }

    /// Returns the index of the device with a handle.
    pub(crate) fn index_of_device(&self, device: *const PJRT_Device) -> Result<usize> {
        let index = self.device_pointers.iter().position(|pointer| pointer.cast_const() == device);
        index.ok_or_else(|| Error::invalid_argument("the device belongs to another client"))
    }

    /// Returns the index of the memory with a handle.
    pub(crate) fn index_of_memory(&self, memory: *const PJRT_Memory) -> Result<usize> {
        let mut places = 0..self.memories.len();
        let index = places.find(|index| pointer_to(self.memories.as_ptr(), *index).cast_const() == memory);
        index.ok_or_else(|| Error::invalid_argument("the memory belongs to another client"))
    }

    /// Returns the index of a device's memory of a kind, or of its default memory if `kind` is `None`.
    #[inline]
    pub(crate) fn memory_of(&self, device: usize, kind: Option<&str>) -> Result<usize> {
        let device = &self.devices[device];
        let mut indices = device.memory_indices.iter().copied();
        let found = match kind {
            None => indices.next(),
            Some(kind) => indices.find(|index| self.memories[*index].memory.kind() == kind),
        };
        found.ok_or_else(|| {
            Error::invalid_argument(match kind {
                Some(kind) => format!("device {} has no memory of kind '{kind}'", device.id()),
                None => format!("device {} has no memory", device.id()),
            })
        })
    }

    /// Returns the index of a device that a memory belongs to, preferably of an addressable one.
    pub(crate) fn device_of_memory(&self, memory: usize) -> Result<usize> {
        let mut owners = self.devices.iter().filter(|device| device.memory_indices.contains(&memory));
        let owner = owners.clone().find(|device| device.addressable).or_else(|| owners.next());
        owner
            .map(|device| device.index)
            .ok_or_else(|| Error::internal(format!("no device has the memory at index {memory}")))
    }

    pub(crate) fn device_pointer(&self, index: usize) -> *mut PJRT_Device {
        self.device_pointers[index]
    }

    pub(crate) fn memory_pointer(&self, index: usize) -> *mut PJRT_Memory {
        pointer_to(self.memories.as_ptr(), index)
    }
}

impl<C: PjrtClient> Drop for ClientState<C> {
    fn drop(&mut self) {
        let _ = registry::remove::<TopologyHandle>((&raw const self.topology).cast(), "topology");
        for device in &self.devices {
            let _ = registry::remove::<DeviceHandle<C>>((&raw const *device).cast(), "device");
            let _ =
                registry::remove::<DescriptionHandle>((&raw const device.description).cast(), "description");
        }
        for memory in &self.memories {
            memory.clear_user_data();
            let _ = registry::remove::<MemoryHandle>((&raw const *memory).cast(), "memory");
        }
    }
}

/// Returns an error for lists of devices that no host can handle.
fn check_devices<D: PjrtDevice>(devices: &[D]) -> Result<()> {
    let mut ids: Vec<DeviceId> = devices.iter().map(|device| device.description().id()).collect();
    ids.sort_unstable();
    if let Some(twice) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Error::internal(format!(
            "PjrtClient::devices returned two devices with the id {}",
            twice[0]
        )));
    }
    let Some(without) =
        devices.iter().filter(|device| device.is_addressable()).find(|device| device.memories().is_empty())
    else {
        if devices.iter().any(PjrtDevice::is_addressable) {
            return Ok(());
        }
        return Err(Error::internal("PjrtClient::devices returned no addressable device"));
    };
    Err(Error::internal(format!(
        "the addressable device {} has no memory: PjrtDevice::memories is empty",
        without.description().id()
    )))
}

/// Returns the memories of all devices without repetitions.
fn distinct_memories<D: PjrtDevice>(devices: &[D]) -> Vec<Memory> {
    let mut distinct: Vec<Memory> = Vec::new();
    for memory in devices.iter().flat_map(PjrtDevice::memories) {
        if place_of(&distinct, memory).is_none() {
            distinct.push(memory.clone());
        }
    }
    distinct
}

fn place_of(memories: &[Memory], wanted: &Memory) -> Option<usize> {
    memories.iter().position(|memory| memory.id() == wanted.id() && memory.kind() == wanted.kind())
}

/// Creates the handles of devices and memories. They point to each other, so the addresses of both are fixed first.
fn handles<C: PjrtClient>(
    devices: &[C::Device],
    memories: Vec<Memory>,
    client: &Weak<ClientState<C>>,
) -> (Vec<DeviceHandle<C>>, Vec<MemoryHandle>) {
    let mut device_handles: Vec<DeviceHandle<C>> = Vec::with_capacity(devices.len());
    let mut memory_handles: Vec<MemoryHandle> = Vec::with_capacity(memories.len());
    // A vector does not move its elements unless it exceeds its capacity.
    let (first_device, first_memory) = (device_handles.as_ptr(), memory_handles.as_ptr());
    for (index, device) in devices.iter().enumerate() {
        let memory_indices: Box<[usize]> =
            device.memories().iter().filter_map(|memory| place_of(&memories, memory)).collect();
        device_handles.push(DeviceHandle {
            client: Weak::clone(client),
            index,
            description: DescriptionHandle::new(
                device.description().clone().with_memories(device.memories()),
            ),
            addressable: device.is_addressable(),
            local_hardware_id: device.local_hardware_id(),
            memories: memory_indices.iter().map(|index| pointer_to(first_memory, *index)).collect(),
            memory_indices,
        });
    }
    for (index, memory) in memories.into_iter().enumerate() {
        let users = device_handles.iter().filter(|device| device.memory_indices.contains(&index));
        let users = users.map(|device| pointer_to(first_device, device.index)).collect();
        memory_handles.push(MemoryHandle::new(memory, users));
    }
    (device_handles, memory_handles)
}
