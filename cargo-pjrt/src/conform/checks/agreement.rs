//! Checks of functions that must agree: lists that describe the same relation from both sides, and bytes that
//! describe the same object.

use super::devices::two;
use super::entry::{Entry, check};
use crate::conform::harness::{Context, Finding, Verdict, compile_and_keep_add, ensure, equal, upload_four};
use crate::requirements::Profile;
use pjrt_testing::host::{ElementType, Result, Topology};

const CACHE_KEY: &str = "JAX, jax/_src/cache_key.py, _hash_accelerator_config";
const CACHE_KEY_TEXT: &str = "The serialized topology is part of the key of the persistent compilation cache, which finds no program if the bytes differ in each process.";

pub(super) const CHECKS: &[Entry] = &[
    check(
        "agreement/devices_of_memories",
        "PJRT_Memory_AddressableByDevices lists exactly the devices whose PJRT_Device_AddressableMemories contains the memory.",
        devices_of_memories,
        "PJRT_Memory_AddressableByDevices first_list devices num_devices",
    )
    .header("PJRT_Memory_AddressableByDevices", "Returns the devices that can address this memory.")
    .also(&["memory/knows_its_devices"]),
    check(
        "agreement/memories_of_devices",
        "PJRT_Device_AddressableMemories lists exactly the memories whose PJRT_Memory_AddressableByDevices contains the device.",
        memories_of_devices,
        "PJRT_Device_AddressableMemories first_list memories num_memories",
    )
    .header("PJRT_Device_AddressableMemories", "Returns a list of memories that are addressable by this device.")
    .also(&["*"]),
    check(
        "topology/serialized_twice",
        "A topology that is serialized twice gives the same bytes.",
        serialized_twice,
        "PJRT_TopologyDescription_Serialize after PJRT_TopologyDescription_Serialize set serialized_bytes_size-1",
    )
    .host(CACHE_KEY, CACHE_KEY_TEXT)
    .used_by(&[Profile::Jax]),
    check(
        "topology/serialized_by_two_clients",
        "The topologies of two clients with the same options give the same bytes.",
        serialized_by_two_clients,
        "PJRT_TopologyDescription_Serialize clients 2 set serialized_bytes_size-1",
    )
    .host(CACHE_KEY, CACHE_KEY_TEXT)
    .used_by(&[Profile::Jax]),
    check(
        "topology/serialized_again",
        "A topology that was deserialized gives the bytes that it was read from when it is serialized again.",
        serialized_again,
        "PJRT_TopologyDescription_Serialize since PJRT_TopologyDescription_Deserialize set serialized_bytes_size-1",
    )
    .host(CACHE_KEY, CACHE_KEY_TEXT)
    .since(75),
    check(
        "agreement/texts_of_one_object",
        "The text of a layout, the serialized canonical shape and the serialized compile options of one object are the same each time.",
        texts_of_one_object,
        "PJRT_Layouts_MemoryLayout_Serialize since PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace set serialized_bytes_size=2",
    )
    .host("JAX, jaxlib/pjrt_layout.cc, PjRtLayout", "Compares and hashes layouts by their contents."),
];

/// The probable cause of lists that do not agree.
const FIRST: &str = "The plugin probably returns the same list for each object, or forgets some objects";

fn devices_of_memories(context: &Context) -> Verdict {
    let client = context.client()?;
    two(&client)?;
    for memory in client.memories()? {
        let listed = memory.devices()?;
        for device in client.addressable_devices()? {
            let (has, is_listed) = (device.memories()?.contains(&memory), listed.contains(&device));
            ensure!(
                has == is_listed,
                "PJRT_Memory_AddressableByDevices of the memory {} with the id {} {} the device {}, although \
                 PJRT_Device_AddressableMemories of this device {} the memory. {FIRST}",
                memory.kind()?,
                memory.id()?,
                if is_listed { "lists" } else { "does not list" },
                device.description()?.id()?,
                if has { "lists" } else { "does not list" },
            );
        }
    }
    Ok(())
}

fn memories_of_devices(context: &Context) -> Verdict {
    let client = context.client()?;
    two(&client)?;
    for device in client.addressable_devices()? {
        for memory in device.memories()? {
            ensure!(
                memory.devices()?.contains(&device),
                "PJRT_Device_AddressableMemories of the device {} lists the memory {} with the id {}, although \
                 PJRT_Memory_AddressableByDevices of this memory does not list the device. {FIRST}",
                device.description()?.id()?,
                memory.kind()?,
                memory.id()?,
            );
        }
        let default = device.default_memory()?;
        ensure!(
            default.devices()?.contains(&device),
            "PJRT_Device_DefaultMemory of the device {} is a memory whose PJRT_Memory_AddressableByDevices does not list the \
             device",
            device.description()?.id()?,
        );
    }
    Ok(())
}

/// Checks that two serializations have the same bytes.
pub(super) fn same(what: &str, first: &[u8], second: &[u8]) -> Verdict {
    let at = first.iter().zip(second).position(|(x, y)| x != y).unwrap_or(first.len().min(second.len()));
    ensure!(
        first == second,
        "{what} gives {} bytes, and then {} bytes; they differ from byte {at}. The bytes probably contain a time, an address, a \
         random number, or the elements of a hash table in a random order",
        first.len(),
        second.len()
    );
    Ok(())
}

fn serialized_twice(context: &Context) -> Verdict {
    let client = context.client()?;
    let topology = client.topology()?;
    let first = topology.serialize()?.0;
    same("PJRT_TopologyDescription_Serialize of one topology", &first, &topology.serialize()?.0)
}

fn serialized_by_two_clients(context: &Context) -> Verdict {
    let first_client = context.client()?;
    let first = first_client.topology()?.serialize()?.0;
    let second = context.client()?.topology()?.serialize()?.0;
    same("PJRT_TopologyDescription_Serialize of equal topologies of two clients", &first, &second)
}

fn serialized_again(context: &Context) -> Verdict {
    let client = context.client()?;
    let first = client.topology()?.serialize()?.0;
    let again = Topology::deserialize(context.plugin, &first)?.serialize()?.0;
    same(
        "PJRT_TopologyDescription_Serialize of a topology before and after it was deserialized",
        &first,
        &again,
    )
}

/// Calls a function twice, and checks that the results are equal. Skips a function that fails, which has checks of
/// its own. Returns `true` if the function succeeded.
fn twice<T: PartialEq + std::fmt::Debug>(
    what: &str,
    call: impl Fn() -> Result<T>,
) -> std::result::Result<bool, Finding> {
    let (Ok(first), Ok(second)) = (call(), call()) else { return Ok(false) };
    equal(what, second, first)?;
    Ok(true)
}

fn texts_of_one_object(context: &Context) -> Verdict {
    let client = context.client()?;
    let (array, compiled) = (upload_four(&client, &[1.0; 4])?, compile_and_keep_add(&client)?);
    let first = array.layout_text();
    let (topology, kind) = (client.topology()?, client.device()?.default_memory()?.kind_id()?);
    let shape = || topology.canonical_shape(kind, ElementType::F32, &[3, 5]);
    let found = [
        twice("the canonical shape on the second call", shape)?,
        twice("the compile options on the second call", || compiled.compile_options())?,
        twice("the text of the layout on the second call", || array.layout_text())?,
    ];
    if let (Ok(first), Ok(last)) = (first, array.layout_text()) {
        equal("the text of the layout after other calls", last, first)?;
    }
    match found {
        [false, false, false] => {
            Err(Finding::Unsupported("the plugin serializes neither layouts, shapes nor options".to_owned()))
        }
        _ => Ok(()),
    }
}
