//! Checks of numbers of which a plugin may use only some bits: offsets, sizes and dimensions of more than 32 bits, and ids that
//! differ only in their high bits.

use super::entry::{ALL, Entry, check};
use super::pending::Pending;
use super::program_text::launch;
use crate::conform::harness::{
    Context, Finding, OFFSET_IGNORED, Verdict, compile_add, described, ensure, equal, f32_bytes, numbers,
    patience, risky, upload_four,
};
use crate::requirements::Profile;
use pjrt_testing::host::{Buffer, Client, Code, ElementType, Error, HostArray};

pub(super) const CHECKS: &[Entry] = &[
    check(
        "extremes/wide_offsets",
        "An offset is a number of 64 bits: one of more than 32 bits, or a negative one, which lies outside of the array, is refused by each function that has an offset.",
        offsets,
        "PJRT_Buffer_CopyRawToHost when offset=4294967296 give offset=0",
    )
    .header("PJRT_Buffer_CopyRawToHost_Args::offset", "The first byte that is copied, an int64_t. A range outside of the array is an error."),
    check(
        "extremes/wide_sizes",
        "A size is a number of 64 bits: one of more than 32 bits, which is larger than the array, is refused, and nothing is copied.",
        sizes,
        "PJRT_Buffer_CopyRawToHost when transfer_size=4294967300 give transfer_size=4",
    )
    .header("PJRT_Buffer_CopyRawToHost_Args::transfer_size", "The number of bytes that are copied, an int64_t. A range outside of the array is an error."),
    check(
        "extremes/wide_dims",
        "Dimensions of more than 32 bits stay as they are: in the unpadded dimensions of an array, in its type, and in the canonical shape and the default layout of a topology.",
        dims,
        "PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace when dims.0=8589934595 give dims.0=3",
    )
    .header("PJRT_Buffer_UnpaddedDimensions_Args::unpadded_dims", "The dimensions are of type int64_t.")
    .used_by(&[Profile::Jax]),
    check(
        "extremes/many_arrays_at_once",
        "A client can have thousands of arrays at once, as large models have, and each keeps its data.",
        many_arrays,
        "PJRT_Client_BufferFromHostBuffer call 2500 fail RESOURCE_EXHAUSTED",
    )
    .host("JAX, a model with its optimizer", "Holds an array for each parameter, and several for its states.")
    .needed_by(ALL),
    check(
        "extremes/ids_of_devices",
        "An id that differs from that of a device in any bit is refused: all 32 bits of an id are compared.",
        ids,
        "PJRT_Client_LookupDevice when id=65536 give id=0",
    )
    .header("PJRT_Client_LookupDevice", "Returns a PJRT_Device* with the specified ID as returned by PJRT_DeviceDescription_Id, an int."),
    check(
        "extremes/indices_of_transfers",
        "An index of an array of a transfer manager that differs from an existing one in its high bits is refused.",
        indices,
        "PJRT_AsyncHostToDeviceTransferManager_BufferSize when buffer_index=256 give buffer_index=0",
    )
    .advice("The header does not say what happens with an index of no array. A plugin that uses only some bits of it takes another array.")
    .since(62),
    check(
        "extremes/poisoned_launch_ids",
        "PJRT_Device_PoisonExecution compares all 32 bits of a launch_id, also of negative and extreme ones: it poisons the execution with this id, and none whose id has the same low bits.",
        poisoned,
        "PJRT_Device_PoisonExecution when launch_id=2147483647 skip",
    )
    .header("PJRT_Device_PoisonExecution", "Poisons the earliest execution on this device with the given launch_id; returns whether it was poisoned.")
    .since(84)
    .also(&["device/poisoned_executions_fail"]),
];

/// The offsets, whose low 32 bits are an offset of the array, and those that are extreme.
const OFFSETS: [i64; 8] =
    [1 << 32, (1 << 32) + 4, 3 << 32, -(1 << 32), -(1 << 32) + 8, 1 << 48, i64::MIN, i64::MAX - 3];

/// A function with an offset: its name, and the call, which returns the bytes that it copied or nothing.
type Offset<'a> = (&'static str, &'a dyn Fn(i64) -> Result<Vec<u8>, Error>);

fn offsets(context: &Context) -> Verdict {
    let client = context.client()?;
    let array = upload_four(&client, &[1.0, 2.0, 3.0, 4.0])?;
    array.ready()?.wait()?;
    let target = upload_four(&client, &[0.0; 4])?;
    target.ready()?.wait()?;
    let manager =
        || client.transfer_manager(&[(ElementType::F32, vec![4])], client.device()?.default_memory()?);
    let calls: [Offset<'_>; 5] = [
        ("PJRT_Buffer_CopyRawToHost", &|offset| array.read_raw(offset, 4)?),
        ("PJRT_Buffer_CopyRawToHostFuture", &|offset| array.read_raw_later(offset, 4)?.finish()),
        ("PJRT_RawBuffer_CopyRawDeviceToHost", &|offset| {
            array.read_as_raw_buffer(offset, 4).map(|(_, bytes)| bytes)
        }),
        ("PJRT_RawBuffer_CopyRawHostToDevice", &|offset| {
            target.write_as_raw_buffer(offset, &f32_bytes(&[9.0])).map(|()| Vec::new())
        }),
        ("PJRT_AsyncHostToDeviceTransferManager_TransferData", &|offset| {
            manager()?.write(0, &f32_bytes(&[9.0]), offset, false)?.wait().map(|()| Vec::new())
        }),
    ];
    let mut checked = false;
    for (function, call) in calls {
        // A plugin may lack the function.
        match call(4) {
            Err(error) if error.code == Code::UNIMPLEMENTED => continue,
            usual => {
                let usual = usual?;
                let is_same = !usual.is_empty() && call(0)? == usual;
                ensure!(!is_same, "{function} with the offsets 0 and 4: {OFFSET_IGNORED}");
            }
        }
        checked = true;
        for offset in OFFSETS {
            let why =
                format!("{function} was called with the offset {offset}, which lies outside of the array");
            let outcome = risky(&why, || call(offset));
            ensure!(
                outcome.is_err(),
                "{function} with the offset {offset} of an array of 16 bytes succeeded{}; the plugin probably uses only the low 32 bits \
                 of `offset`, or adds to it before it compares, which overflows",
                outcome.map_or(String::new(), |bytes| format!(" with the bytes {bytes:?}"))
            );
        }
    }
    // The calls with valid offsets wrote one element.
    if let Ok(got) = numbers(&target) {
        let is_right = got == [0.0; 4] || got == [0.0, 9.0, 0.0, 0.0];
        ensure!(is_right, "an array is {got:?} after writes at offsets outside of it were refused");
    }
    match checked {
        true => Ok(()),
        false => Err(Finding::Unsupported("the plugin has no function with an offset".to_owned())),
    }
}

fn sizes(context: &Context) -> Verdict {
    const ROOM: usize = 64;
    let client = context.client()?;
    let array = upload_four(&client, &[1.0, 2.0, 3.0, 4.0])?;
    array.ready()?.wait()?;
    array.read_raw(0, 16)??;
    for (offset, size) in [(0, (1 << 32) + 4), (4, 1 << 32), (0, i64::MAX), (8, i64::MAX - 4), (16, 1 << 48)]
    {
        let why = format!("PJRT_Buffer_CopyRawToHost was called for {size} bytes of an array of 16 bytes");
        let outcome = risky(&why, || array.read_raw_into(ROOM, offset, size))?;
        ensure!(
            outcome.is_err(),
            "PJRT_Buffer_CopyRawToHost of {size} bytes at the offset {offset} of an array of 16 bytes succeeded; the plugin probably uses \
             only the low 32 bits of `transfer_size`, or its sum with `offset` overflows"
        );
    }
    Ok(())
}

/// The varint of a dimension in a serialized shape.
fn encoded(mut dim: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while dim >= 0x80 {
        bytes.push(dim as u8 | 0x80);
        dim >>= 7;
    }
    bytes.push(dim as u8);
    bytes
}

fn dims(context: &Context) -> Verdict {
    const DIMS: [i64; 2] = [(1 << 33) + 3, 5];
    let client = context.client()?;
    let memory = client.device()?.default_memory()?;
    let mut checked = false;
    if let Ok(array) = client.error_buffer((Code::ABORTED, "given up"), ElementType::F32, &DIMS, memory) {
        equal("PJRT_Buffer_Dimensions of an array with a large dimension", array.dims()?, DIMS.to_vec())?;
        if let Ok(unpadded) = array.unpadded_dims() {
            equal(
                "PJRT_Buffer_UnpaddedDimensions of an array with a large dimension",
                unpadded,
                DIMS.to_vec(),
            )?;
        }
        checked = true;
    }
    let empty = [DIMS[0], 0];
    if let Ok(uploaded) =
        client.upload(&HostArray::new(&[], ElementType::F32, &empty), Some(client.device()?), None)
    {
        equal(
            "the dimensions of an upload with a large dimension and no elements",
            uploaded.buffer.dims()?,
            empty.to_vec(),
        )?;
        checked = true;
    }
    if let (Ok(topology), Ok(kind)) = (client.topology(), memory.kind_id())
        && let Ok((shape, _)) = topology.canonical_shape(kind, ElementType::F32, &DIMS)
    {
        let wanted = encoded(DIMS[0].cast_unsigned());
        ensure!(
            shape.windows(wanted.len()).any(|bytes| bytes == wanted),
            "PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace for the dimensions {DIMS:?} returned the ShapeProto {shape:?}, \
             which does not contain {}; the plugin probably uses only the low 32 bits of dimensions",
            DIMS[0]
        );
        checked = true;
    }
    if let (Ok(large), Ok(small)) =
        (client.default_layout(ElementType::F32, &DIMS), client.default_layout(ElementType::F32, &[3, 5]))
    {
        equal("the default layout of an array with a large dimension", large, small)?;
    }
    match checked {
        true => Ok(()),
        false => Err(Finding::Unsupported("the plugin has no function for such dimensions".to_owned())),
    }
}

/// The differences between an id and one with the same low bits.
const HIGH_BITS: [i32; 5] = [1 << 8, 1 << 16, 1 << 24, 3 << 16, i32::MIN];

fn ids(context: &Context) -> Verdict {
    let client = context.client()?;
    let devices = client.devices()?;
    let all = devices.iter().map(|device| device.description()?.id()).collect::<Result<Vec<_>, _>>()?;
    let local: Vec<i32> =
        client.addressable_devices()?.iter().filter_map(|device| device.local_hardware_id().ok()).collect();
    for high in HIGH_BITS {
        for id in all.iter().map(|id| id ^ high).filter(|id| !all.contains(id)) {
            ensure!(
                client.lookup_device(id).is_err(),
                "PJRT_Client_LookupDevice found a device with the id {id}, although the ids are {all:?}; the plugin probably compares \
                 only some bits of the id"
            );
        }
        for id in local.iter().map(|id| id ^ high).filter(|id| !local.contains(id)) {
            ensure!(
                client.lookup_addressable_device(id).is_err(),
                "PJRT_Client_LookupAddressableDevice found a device with the local hardware id {id}, although the ids are {local:?}; the \
                 plugin probably compares only some bits of the id"
            );
        }
    }
    Ok(())
}

fn many_arrays(context: &Context) -> Verdict {
    const ARRAYS: usize = 3000;
    let client = context.client()?;
    let mut arrays = Vec::with_capacity(ARRAYS);
    for number in 0..ARRAYS {
        let array = upload_four(&client, &[number as f32; 4]).map_err(|error| match error.code {
            Code::UNIMPLEMENTED => Finding::from(error),
            _ => Finding::Wrong(format!(
                "with {number} arrays of 16 bytes, the client has no room for another one: {error}; the plugin probably \
                 keeps arrays in a table of a fixed size"
            )),
        })?;
        arrays.push(array);
    }
    for (number, array) in arrays.iter().enumerate().step_by(123) {
        equal(&format!("array {number} of {ARRAYS}"), numbers(array)?, vec![number as f32; 4])?;
    }
    Ok(())
}

fn indices(context: &Context) -> Verdict {
    let client = context.client()?;
    let shapes = [(ElementType::F32, vec![4]), (ElementType::F32, vec![2])];
    let manager = client.transfer_manager(&shapes, client.device()?.default_memory()?)?;
    let size = manager.buffer_size(1)?;
    ensure!(size >= 8, "the size of the second array is {size}; expected at least 8");
    for index in [256, 257, 1 << 16, (1 << 16) + 1, 1 << 24, i32::MAX as usize] {
        let outcomes: [(&str, Result<(), Error>); 4] = [
            ("BufferSize", manager.buffer_size(index).map(drop)),
            ("RetrieveBuffer", manager.retrieve(index).map(drop)),
            ("TransferData", manager.write(index, &[1; 8], 0, false).and_then(|event| event.wait())),
            ("SetBufferError", manager.fail(index, Code::ABORTED, "no")),
        ];
        for (function, outcome) in outcomes {
            ensure!(
                outcome.is_err(),
                "PJRT_AsyncHostToDeviceTransferManager_{function} of the array {index} of a manager of two arrays succeeded; the plugin \
                 probably uses only some bits of `buffer_index`"
            );
        }
    }
    Ok(())
}

/// Poisons the execution with an id while executions with other ids wait too. Returns `true` if the plugin poisoned one.
fn poisons(client: &Client, id: i32, others: &[i32]) -> Result<bool, Finding> {
    const MESSAGE: &str = "poisoned by its id";
    let program = compile_add(client)?;
    let other = upload_four(client, &[1.0; 4])?;
    let pending = Pending::new(client)?;
    let ids: Vec<i32> = others.iter().copied().chain([id]).collect();
    let launch_one = |id: &i32| launch(&program, &[&pending.array, &other], *id);
    let launched = ids.iter().map(launch_one).collect::<Result<Vec<_>, _>>()?;
    let is_poisoned = client.device()?.poison_execution(id, MESSAGE)?;
    let _array: Buffer = pending.provide(client, &[2.0; 4])?;
    for (launched_id, launched) in ids.iter().zip(launched) {
        let outcome = launched.output(0, 0)?.ready()?.on_ready()?.wait(patience());
        let has_failed = matches!(&outcome, Some(Err(error)) if error.message.contains(MESSAGE));
        let should_fail = is_poisoned && *launched_id == id;
        ensure!(
            has_failed == should_fail && outcome.is_some(),
            "PJRT_Device_PoisonExecution with the launch_id {id}, while executions with the ids {ids:?} waited, returned {is_poisoned}, and \
             the execution with the id {launched_id} completed with {got}; the plugin probably compares only some bits of the id",
            got = described(outcome.as_ref())
        );
    }
    Ok(is_poisoned)
}

fn poisoned(context: &Context) -> Verdict {
    let client = context.client()?;
    if !poisons(&client, 5, &[])? {
        return Err(Finding::NotApplicable("the plugin poisons no waiting execution".to_owned()));
    }
    for id in [i32::MIN, -1, i32::MAX, 5, 1 << 16] {
        let others = [id ^ i32::MIN, id ^ 1 << 16, id ^ 1 << 8];
        ensure!(
            poisons(&client, id, &others)?,
            "PJRT_Device_PoisonExecution poisons a waiting execution with the launch_id 5, and none with the launch_id {id}; a launch_id \
             may be any number"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_are_encoded_as_in_protocol_buffers() {
        assert_eq!(encoded(5), [5]);
        assert_eq!(encoded(300), [0xAC, 2]);
    }
}
