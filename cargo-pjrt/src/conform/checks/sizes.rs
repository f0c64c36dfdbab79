//! Checks of all ways to move bytes, with arrays of many sizes.

use super::devices::others;
use super::entry::{ALL, Entry, NONE, check};
use crate::conform::harness::{
    Context, Finding, OFFSET_IGNORED, ONE_DEVICE, READBACK_SIZE, Sample, Verdict, equal, for_each_size,
};
use crate::requirements::Profile;
use pjrt_testing::host::{
    Buffer, Client, CopyLayout, Error, HostArray, HostMemory, Layout, Semantics, ViewMemory,
};

const UPLOAD: &str = "PJRT_Client_BufferFromHostBuffer";
const UPLOAD_TEXT: &str = "Asynchronously copies a buffer stored on host to device memory.";
const MANAGER: &str = "PJRT_AsyncHostToDeviceTransferManager_TransferData";

pub(super) const CHECKS: &[Entry] = &[
    check(
        "sizes/upload_only_during_call",
        "With kImmutableOnlyDuringCall, arrays of all sizes are copied completely.",
        |context| uploaded(context, Semantics::ImmutableOnlyDuringCall),
        "PJRT_Client_BufferFromHostBuffer when dims.0=4194305 host_buffer_semantics=0 give data=zeros",
    )
    .header(UPLOAD, UPLOAD_TEXT)
    .needed_by(ALL)
    .also(&["sizes/*"]),
    check(
        "sizes/upload_until_transfer_completes",
        "With kImmutableUntilTransferCompletes, arrays of all sizes are copied completely.",
        |context| uploaded(context, Semantics::ImmutableUntilTransferCompletes),
        "PJRT_Client_BufferFromHostBuffer when dims.0=1048577 host_buffer_semantics=1 give data=zeros",
    )
    .header(UPLOAD, UPLOAD_TEXT)
    .needed_by(ALL),
    check(
        "sizes/upload_zero_copy",
        "With kImmutableZeroCopy, arrays of all sizes have the contents of the host's memory.",
        |context| uploaded(context, Semantics::ImmutableZeroCopy),
        "PJRT_Client_BufferFromHostBuffer when dims.0=4194305 host_buffer_semantics=2 give data=zeros",
    )
    .header(UPLOAD, UPLOAD_TEXT)
    .needed_by(ALL),
    check(
        "sizes/upload_mutable_zero_copy",
        "With kMutableZeroCopy, arrays of all sizes have the contents of the host's memory.",
        |context| uploaded(context, Semantics::MutableZeroCopy),
        "PJRT_Client_BufferFromHostBuffer when dims.0=4194305 host_buffer_semantics=3 give data=zeros",
    )
    .header(UPLOAD, UPLOAD_TEXT)
    .only_used_by(NONE),
    check(
        "sizes/readback",
        "Arrays of all sizes are read completely, and nothing is written before or after the destination.",
        readback,
        "PJRT_Buffer_ToHostBuffer when dst_size=15 overrun",
    )
    .header("PJRT_Buffer_ToHostBuffer_Args::dst_size", "Size of `dst` in bytes.")
    .needed_by(ALL)
    .also(&["sizes/*"]),
    check(
        "sizes/raw_copies",
        "PJRT_Buffer_CopyRawToHost copies arrays of all sizes completely, and writes nothing outside the destination.",
        raw,
        "PJRT_Buffer_CopyRawToHost when transfer_size=16777220 offset=0 fail INTERNAL",
    )
    .header("PJRT_Buffer_CopyRawToHost", "Copies raw bytes of the buffer to the host."),
    check(
        "sizes/raw_copies_at_offsets",
        "PJRT_Buffer_CopyRawToHost begins at each offset, also at one that is not a multiple of an alignment.",
        raw_offsets,
        "PJRT_Buffer_CopyRawToHost when offset=65 give offset=64",
    )
    .header("PJRT_Buffer_CopyRawToHost_Args::offset", "The offset in the buffer at which the copy begins."),
    check(
        "sizes/raw_copies_later",
        "PJRT_Buffer_CopyRawToHostFuture copies arrays of all sizes completely before its event completes.",
        raw_later,
        "PJRT_Buffer_CopyRawToHostFuture when transfer_size=16777220 give transfer_size=16777216",
    )
    .header("PJRT_Buffer_CopyRawToHostFuture_Args::event", "Event that signals when the copy has completed.")
    .since(84),
    check(
        "sizes/copies_to_memories",
        "PJRT_Buffer_CopyToMemory copies arrays of all sizes completely, to each memory of each device.",
        to_memories,
        "PJRT_Buffer_CopyToMemory call 40 set dst_buffer=null",
    )
    .header("PJRT_Buffer_CopyToMemory", "Copies the buffer to memory `dst_memory` within the same client.")
    .needed_by(&[Profile::Jax, Profile::TorchXla]),
    check(
        "sizes/copies_to_devices",
        "PJRT_Buffer_CopyToDevice copies arrays of all sizes completely, to each other device.",
        to_devices,
        "PJRT_Buffer_CopyToDevice call 40 set dst_buffer=null",
    )
    .header("PJRT_Buffer_CopyToDevice", "Copies the buffer to device `dst_device` within the same client."),
    check(
        "sizes/transfers",
        "A transfer manager fills arrays of all sizes, in one piece and in two pieces of unequal size.",
        transfers,
        "PJRT_AsyncHostToDeviceTransferManager_TransferData when transfer_size=16777220 give data=zeros",
    )
    .header(MANAGER, "data, offset, transfer_size: the piece; is_last_transfer completes the buffer.")
    .needed_by(&[Profile::Zml])
    .since(62),
    check(
        "sizes/literals",
        "PJRT_AsyncHostToDeviceTransferManager_TransferLiteral writes arrays of all sizes completely.",
        literals,
        "PJRT_AsyncHostToDeviceTransferManager_TransferLiteral when shape_dims.0=4194305 give data=zeros",
    )
    .header("PJRT_AsyncHostToDeviceTransferManager_TransferLiteral", "Asynchronously copies a host literal to a buffer managed by a transfer manager.")
    .since(83),
    check(
        "sizes/views",
        "Views of all sizes have the contents of the host's memory.",
        views,
        "PJRT_Client_CreateViewOfDeviceBuffer when dims.0=4194305 give device_buffer_ptr=zeros",
    )
    .header("PJRT_Client_CreateViewOfDeviceBuffer", "Creates a PJRT buffer that is a non-owned view of an on-device buffer.")
    .only_used_by(&[Profile::Gomlx])
    .since(33),
];

/// Uploads an array to the first device, and recycles the host's memory once the plugin has copied it.
fn upload(client: &Client, sample: &Sample) -> Result<Buffer, Error> {
    let array = HostArray::new(sample.bytes, sample.element_type, &sample.dims);
    let uploaded = client.upload(&array, Some(client.device()?), None)?;
    uploaded.memory.recycle();
    Ok(uploaded.buffer)
}

fn uploaded(context: &Context, semantics: Semantics) -> Verdict {
    let client = context.client()?;
    for_each_size(&client, |sample| {
        let array =
            HostArray { semantics, ..HostArray::new(sample.bytes, sample.element_type, &sample.dims) };
        let uploaded = client.upload(&array, Some(client.device()?), None)?;
        match semantics {
            Semantics::ImmutableOnlyDuringCall => uploaded.memory.overwrite(),
            Semantics::ImmutableUntilTransferCompletes => {
                uploaded.done.wait()?;
                uploaded.memory.overwrite();
            }
            Semantics::ImmutableZeroCopy | Semantics::MutableZeroCopy => {}
        }
        sample.check_array("an array that was uploaded and read back", &uploaded.buffer)?;
        drop(uploaded.buffer);
        uploaded.done.wait()?;
        uploaded.memory.recycle();
        Ok(())
    })
}

fn readback(context: &Context) -> Verdict {
    let client = context.client()?;
    for_each_size(&client, |sample| {
        let buffer = upload(&client, sample)?;
        equal(READBACK_SIZE, buffer.host_size(&CopyLayout::Unsaid)?, sample.bytes.len())?;
        let layout = CopyLayout::Layout(Layout::dense(sample.dims.len()));
        sample.check("a readback", &buffer.read_into(sample.bytes.len(), &layout)?)
    })
}

fn raw(context: &Context) -> Verdict {
    let client = context.client()?;
    for_each_size(&client, |sample| {
        let size = sample.bytes.len() as i64;
        sample.check("a raw copy", &upload(&client, sample)?.read_raw(0, size)??)
    })
}

fn raw_later(context: &Context) -> Verdict {
    let client = context.client()?;
    for_each_size(&client, |sample| {
        let copy = upload(&client, sample)?.read_raw_later(0, sample.bytes.len() as i64)?;
        sample.check("a raw copy whose destination the host named later", &copy.finish()?)
    })
}

fn raw_offsets(context: &Context) -> Verdict {
    let client = context.client()?;
    let sample = Sample::new(&client, 8209)?;
    let buffer = upload(&client, &sample)?;
    let last = sample.bytes.len() - 1;
    for offset in [1, 63, 64, 65, 100, 255, 4095, 4097, last] {
        for size in [1, 7, 64, 4100].into_iter().filter(|size| offset + size <= last + 1) {
            let read = buffer.read_raw(offset as i64, size as i64)??;
            let expected = &sample.bytes[offset..offset + size];
            let start = sample.bytes.windows(size).position(|bytes| bytes == read);
            if read != expected {
                return Err(Finding::Wrong(format!(
                    "a raw copy of {size} bytes at the offset {offset} has other bytes; {}",
                    start.map_or_else(
                        || "they are not part of the array".to_owned(),
                        |start| match start {
                            0 => OFFSET_IGNORED.to_owned(),
                            _ => format!("they are those at the offset {start}"),
                        }
                    )
                )));
            }
        }
    }
    Ok(())
}

fn to_memories(context: &Context) -> Verdict {
    let client = context.client()?;
    let mut memories = client.device()?.memories()?;
    for device in others(&client)? {
        memories.push(device.default_memory()?);
    }
    for_each_size(&client, |sample| {
        let buffer = upload(&client, sample)?;
        memories
            .iter()
            .try_for_each(|memory| sample.check_array("a copy to a memory", &buffer.copy_to_memory(*memory)?))
    })
}

fn to_devices(context: &Context) -> Verdict {
    let client = context.client()?;
    let devices = others(&client)?;
    if devices.is_empty() {
        return Err(Finding::NotApplicable(ONE_DEVICE.to_owned()));
    }
    for_each_size(&client, |sample| {
        let buffer = upload(&client, sample)?;
        // Large arrays are copied to the last device only.
        let all = if sample.bytes.len() < 1 << 20 { &devices[..] } else { &devices[devices.len() - 1..] };
        for device in all {
            let copy = buffer.copy_to_device(*device)?;
            sample.check_array("a copy on another device", &copy)?;
            let back = copy.copy_to_device(client.device()?)?;
            sample.check_array("a copy of it on the first device", &back)?;
        }
        Ok(())
    })
}

fn transfers(context: &Context) -> Verdict {
    let client = context.client()?;
    for_each_size(&client, |sample| {
        let shape = (sample.element_type, sample.dims.to_vec());
        let memory = client.device()?.default_memory()?;
        let manager = client.transfer_manager(&[shape.clone(), shape], memory)?;
        let (whole, parts) = (manager.retrieve(0)?, manager.retrieve(1)?);
        let write = |index, piece: &[u8], offset, is_last| {
            let memory = HostMemory::new(piece, 0);
            manager.write_from(index, &memory, offset, is_last)?.wait()?;
            memory.recycle();
            Ok::<_, Error>(())
        };
        write(0, sample.bytes, 0, true)?;
        sample.check_array("an array that was transferred in one piece", &whole)?;
        let width = sample.element_type.byte_size();
        let (first, second) = sample.bytes.split_at(sample.bytes.len() / width / 3 * width);
        if !first.is_empty() {
            write(1, first, 0, false)?;
        }
        write(1, second, first.len() as i64, true)?;
        sample.check_array("an array that was transferred in two pieces", &parts)
    })
}

fn literals(context: &Context) -> Verdict {
    let client = context.client()?;
    for_each_size(&client, |sample| {
        let shape = (sample.element_type, sample.dims.to_vec());
        let manager = client.transfer_manager(&[shape], client.device()?.default_memory()?)?;
        let buffer = manager.retrieve(0)?;
        let (memory, layout) = (HostMemory::new(sample.bytes, 0), Layout::dense(sample.dims.len()));
        manager.write_array_from(0, &memory, sample.element_type, &sample.dims, &layout)?.wait()?;
        memory.recycle();
        sample.check_array("an array that was transferred as a literal", &buffer)
    })
}

fn views(context: &Context) -> Verdict {
    let client = context.client()?;
    for_each_size(&client, |sample| {
        let memory = ViewMemory::new(sample.bytes);
        let view = client.view(&memory, sample.element_type, &sample.dims, client.device()?)?;
        sample.check_array("a view", &view)
    })
}
