//! Checks of transfers from devices to the host.

use std::time::Duration;

use super::entry::{ALL, Entry, NONE, check};
use super::threads::on_threads;
use crate::conform::harness::{
    Context, Expected, Finding, OFFSET_IGNORED, Verdict, ensure, equal, f32_bytes, fails_with, is_brief,
    narrowest, numbers, patience, refused_with, upload_four,
};
use crate::requirements::Profile;
use pjrt_testing::host::{Buffer, Client, Code, CopyLayout, ElementType, HostArray, Layout, UNWRITTEN};

pub(super) const CHECKS: &[Entry] = &[
    check(
        "readback/size",
        "PJRT_Buffer_ToHostBuffer without a destination returns the number of bytes that it needs.",
        size,
        "PJRT_Buffer_ToHostBuffer when dst=0 set dst_size=7",
    )
    .header("PJRT_Buffer_ToHostBuffer_Args::dst_size", "If `dst` is nullptr, then `dst_size` is set to the size needed.")
    .only_used_by(NONE)
    .needed_by(&[Profile::TorchXla, Profile::Gomlx])
    .also(&["*"]),
    check(
        "readback/twice",
        "An array can be read any number of times.",
        twice,
        "PJRT_Buffer_ToHostBuffer when dst_size=44 call 2 fail FAILED_PRECONDITION",
    )
    .header("PJRT_Buffer_ToHostBuffer", "Asynchronously copies the buffer's value into a preallocated host buffer.")
    .needed_by(ALL)
    .also(&["bits/copies_to_memories", "bits/raw_copies"]),
    check(
        "readback/too_little_room",
        "A destination that is too small is refused with INVALID_ARGUMENT, and nothing is written past its end.",
        no_room,
        "PJRT_Buffer_ToHostBuffer when dst_size=3 accept set event=complete",
    )
    .header("PJRT_Buffer_ToHostBuffer_Args::dst_size", "`dst_size` must be greater than or equal to the size needed. The host passes the size, so that the plugin can refuse a smaller destination.")
    .only_used_by(NONE),
    check(
        "readback/column_major",
        "A layout with minor_to_major is respected, so that the destination is transposed.",
        column_major,
        "PJRT_Buffer_ToHostBuffer when host_layout>type_=0 dst_size=24 give host_layout=null",
    )
    .header("PJRT_Buffer_ToHostBuffer_Args::host_layout", "The caller can specify an optional host layout.")
    .only_used_by(NONE)
    .needed_by(&[Profile::Jax])
    .also(&["bits/transposed_copies"]),
    check(
        "readback/row_major_by_layout",
        "The row-major layout, which JAX always passes, is respected.",
        row_major,
        "PJRT_Buffer_ToHostBuffer when host_layout>type_=0 dst_size=48 fail INTERNAL",
    )
    .host("XLA's client, PjRtCApiBuffer::ToLiteral", "Passes the layout of its literal, which JAX creates in row-major order.")
    .needed_by(&[Profile::Jax]),
    check(
        "readback/by_strides",
        "A layout with strides is respected.",
        strides,
        "PJRT_Buffer_ToHostBuffer when host_layout>type_=1 give host_layout=null",
    )
    .header("PJRT_Buffer_ToHostBuffer_Args::host_layout", "The caller can specify an optional host layout.")
    .only_used_by(NONE)
    .also(&["layouts/readback_by_strides_at_rank_3"]),
    check(
        "readback/no_elements",
        "Reading an array without elements returns an event, which completes.",
        no_elements,
        "PJRT_Buffer_ToHostBuffer when dst_size=0 dst!=0 set event=null",
    )
    .host("JAX, numpy.asarray of an empty array", "Waits for the event of the readback.")
    .used_by(ALL)
    .needed_by(&[Profile::Jax])
    .also(&[
        "upload/no_elements",
        "upload/no_elements_and_no_data",
        "execute/no_elements",
        "layouts/strides_of_no_elements",
        "view/of_no_elements",
    ]),
    check(
        "readback/event_comes",
        "The event of a readback completes after the bytes are written.",
        event_comes,
        "PJRT_Buffer_ToHostBuffer when dst_size=52 give dst=scratch",
    )
    .header("PJRT_Buffer_ToHostBuffer_Args::event", "Event that signals when the copy has completed.")
    .needed_by(ALL),
    check(
        "readback/not_written_after_its_event",
        "When the event of a readback or of a raw copy is complete, the plugin does not write to the host's memory any more, not even the same bytes.",
        not_written_later,
        "PJRT_Buffer_ToHostBuffer when dst_size=4396 written_again 20",
    )
    .header("PJRT_Buffer_ToHostBuffer_Args::event", "Event that signals when the copy has completed: the host frees or reuses the memory then.")
    .needed_by(ALL),
    check(
        "readback/nothing_else_is_written",
        "A readback writes exactly the array's bytes.",
        exact,
        "PJRT_Buffer_ToHostBuffer when dst_size=60 overrun",
    )
    .header("PJRT_Buffer_ToHostBuffer_Args::dst_size", "Size of `dst` in bytes.")
    .needed_by(ALL),
    check(
        "readback/of_a_deleted_array",
        "Reading an array that was deleted fails, in the call or through its event.",
        deleted,
        "PJRT_Buffer_ToHostBuffer when dst_size=68 accept set event=complete",
    )
    .advice("After PJRT_Buffer_Delete, callers may only use PJRT_Buffer_IsDeleted and PJRT_Buffer_Destroy. An error finds the caller's mistake."),
    check(
        "readback/two_at_once",
        "Two readbacks of one array that are in flight at once both write the elements, into arrays of their own.",
        two_at_once,
        "PJRT_Buffer_ToHostBuffer after PJRT_Buffer_ToHostBuffer give dst=scratch",
    )
    .header("PJRT_Buffer_ToHostBuffer_Args::event", "Event that signals when the copy has completed: each call has an event and a destination of its own.")
    .also(&["*"]),
    check(
        "readback/by_many_threads",
        "Several threads can read the same array at the same time.",
        storm,
        "PJRT_Buffer_ToHostBuffer when dst_size=256 call 40 fail INTERNAL",
    )
    .host("JAX, numpy.asarray", "Releases Python's lock during the readback, so that threads read at the same time.")
    .needed_by(ALL),
    check(
        "readback/raw_whole",
        "PJRT_Buffer_CopyRawToHost copies the bytes as they are stored on the device.",
        raw,
        "PJRT_Buffer_CopyRawToHost when offset=0 transfer_size=16 give offset=4 transfer_size=12",
    )
    .header("PJRT_Buffer_CopyRawToHost", "Copies transfer_size bytes from offset to dst.")
    .since(57),
    check(
        "readback/raw_part",
        "PJRT_Buffer_CopyRawToHost can copy a part of the bytes.",
        raw_part,
        "PJRT_Buffer_CopyRawToHost when offset=4 transfer_size=8 give offset=0",
    )
    .header("PJRT_Buffer_CopyRawToHost", "Copies transfer_size bytes from offset to dst.")
    .since(57)
    .also(&["sizes/raw_copies_at_offsets"]),
    check(
        "readback/raw_nothing",
        "PJRT_Buffer_CopyRawToHost of no bytes succeeds.",
        raw_nothing,
        "PJRT_Buffer_CopyRawToHost when transfer_size=0 fail INVALID_ARGUMENT",
    )
    .header("PJRT_Buffer_CopyRawToHost", "Copies transfer_size bytes from offset to dst. The header excludes no size.")
    .since(57),
    check(
        "readback/raw_past_the_end",
        "A raw copy past the end fails with INVALID_ARGUMENT, through the event as in XLA.",
        raw_past,
        "PJRT_Buffer_CopyRawToHost when offset=8 transfer_size=16 give offset=0",
    )
    .advice("The header does not say what happens. An error reveals the caller's mistake; XLA's tests of its GPU plugin expect an error of the event.")
    .since(57),
    check(
        "readback/raw_of_a_negative_offset",
        "A raw copy from before the start fails with INVALID_ARGUMENT, through the event as in XLA.",
        raw_negative,
        "PJRT_Buffer_CopyRawToHost when offset=-4 give offset=0",
    )
    .advice("The header does not say what happens. An error reveals the caller's mistake; XLA's tests of its GPU plugin expect an error of the event.")
    .since(57),
    check(
        "readback/raw_later",
        "PJRT_Buffer_CopyRawToHostFuture copies once the host names the destination.",
        future,
        "PJRT_Buffer_CopyRawToHostFuture when offset=0 give offset=4 transfer_size=12",
    )
    .header("PJRT_Buffer_CopyRawToHostFuture", "Similar to PJRT_Buffer_CopyRawToHost, but the transfer will not happen until `future_ready_callback` is invoked.")
    .since(84),
    check(
        "readback/raw_later_waits",
        "The event of PJRT_Buffer_CopyRawToHostFuture is not complete before the host names the destination, and the bytes are there when it is.",
        future_waits,
        "PJRT_Buffer_CopyRawToHostFuture when transfer_size=16 set event=complete",
    )
    .header("PJRT_Buffer_CopyRawToHostFuture_Args::event", "Event that signals when the copy has completed.")
    .since(84)
    .also(&["readback/raw_later", "isolation/raw_copies", "sizes/raw_copies_later"]),
    check(
        "readback/raw_never",
        "PJRT_Buffer_CopyRawToHostFuture completes with the host's error if the host provides no destination.",
        future_error,
        "PJRT_Buffer_CopyRawToHostFuture when transfer_size=12 set event=complete",
    )
    .header("PJRT_Buffer_CopyRawToHostFuture_Callback_Args", "dst is only valid if error_code is PJRT_ERROR_CODE_OK.")
    .since(84),
];

fn six(client: &Client) -> Result<Buffer, pjrt_testing::host::Error> {
    let bytes = f32_bytes(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    let array = HostArray::new(&bytes, ElementType::F32, &[2, 3]);
    client.upload(&array, Some(client.device()?), None).map(|uploaded| uploaded.buffer)
}

/// Uploads an array of `len` bytes. Each check uses a different length, so that faults recognize its array.
fn of_len(client: &Client, len: i64) -> Result<Buffer, pjrt_testing::host::Error> {
    let bytes: Vec<u8> = (1..=len).map(|byte| byte as u8).collect();
    let element_type = narrowest(client)?;
    let dims = [len / element_type.byte_size() as i64];
    let array = HostArray::new(&bytes, element_type, &dims);
    client.upload(&array, Some(client.device()?), None).map(|uploaded| uploaded.buffer)
}

fn size(context: &Context) -> Verdict {
    let client = context.client()?;
    equal("the size of f32[4]", upload_four(&client, &[1.0; 4])?.host_size(&CopyLayout::Unsaid)?, 16)
}

fn twice(context: &Context) -> Verdict {
    let client = context.client()?;
    let buffer = of_len(&client, 44)?;
    let first = buffer.read_into(44, &CopyLayout::Unsaid)?;
    equal("the second readback", buffer.read_into(44, &CopyLayout::Unsaid)?, first)
}

fn no_room(context: &Context) -> Verdict {
    let client = context.client()?;
    let outcome = upload_four(&client, &[1.0; 4])?.read_into(3, &CopyLayout::Unsaid);
    refused_with("a destination of 3 bytes", outcome, &[Code::INVALID_ARGUMENT], &[])
}

fn column_major(context: &Context) -> Verdict {
    let client = context.client()?;
    let layout = CopyLayout::Layout(Layout::MinorToMajor(vec![0, 1]));
    let expected = f32_bytes(&[0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    equal("the column-major bytes", six(&client)?.read_into(24, &layout)?, expected)
}

fn row_major(context: &Context) -> Verdict {
    let client = context.client()?;
    let bytes: Vec<u8> = (0..48).collect();
    let element_type = narrowest(&client)?;
    let dims = [6, 8 / element_type.byte_size() as i64];
    let array = HostArray::new(&bytes, element_type, &dims);
    let buffer = client.upload(&array, Some(client.device()?), None)?.buffer;
    let layout = CopyLayout::Layout(Layout::MinorToMajor(vec![1, 0]));
    equal("the row-major bytes", buffer.read_into(48, &layout)?, bytes)
}

fn strides(context: &Context) -> Verdict {
    let client = context.client()?;
    let layout = CopyLayout::Layout(Layout::Strides(vec![4, 8]));
    let expected = f32_bytes(&[0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    match six(&client)?.read_into(24, &layout) {
        // XLA's plugins refuse layouts with strides so.
        Err(error) if error.message.contains("not support") => Err(Finding::Unsupported(error.to_string())),
        bytes => equal("the bytes", bytes?, expected),
    }
}

fn no_elements(context: &Context) -> Verdict {
    let client = context.client()?;
    let array = HostArray::new(&[], ElementType::F32, &[0]);
    let buffer = client.upload(&array, Some(client.device()?), None)?.buffer;
    let (_, event) = buffer.start_read(0, &CopyLayout::Unsaid)?;
    ensure!(
        event.on_ready()?.wait(patience()) == Some(Ok(())),
        "the event does not complete, or completes with an error"
    );
    Ok(())
}

fn event_comes(context: &Context) -> Verdict {
    let client = context.client()?;
    let buffer = of_len(&client, 52)?;
    let (bytes, event) = buffer.start_read(52, &CopyLayout::Unsaid)?;
    ensure!(
        event.on_ready()?.wait(patience()) == Some(Ok(())),
        "the event does not complete, or completes with an error"
    );
    equal("the bytes when the event was complete", bytes.bytes(), (1..=52).collect())
}

fn not_written_later(context: &Context) -> Verdict {
    const FILL: u8 = 0x5A;
    const WAIT: Duration = Duration::from_millis(60);
    let client = context.client()?;
    let mut destinations = Vec::new();
    for len in [1, 1099, 1 << 12] {
        let (bytes, dims) = ([1, 2, 3, 4].repeat(len), [len as i64]);
        let host = HostArray::new(&bytes, ElementType::S32, &dims);
        let array = client.upload(&host, Some(client.device()?), None)?.buffer;
        let (memory, event) = array.start_read(4 * len, &CopyLayout::Unsaid)?;
        destinations.push(("a readback", memory, event));
        if let Ok((memory, event)) = array.start_read_raw(0, 4 * len) {
            destinations.push(("a raw copy", memory, event));
        }
    }
    for (_, memory, event) in &destinations {
        event.wait()?;
        memory.fill(FILL);
    }
    std::thread::sleep(WAIT);
    for (what, memory, _) in &destinations {
        let bytes = memory.bytes();
        let changed = bytes.iter().filter(|byte| **byte != FILL).count();
        ensure!(
            changed == 0,
            "{changed} of the {} bytes that {what} had written changed after its event was complete, and after the host had \
             written to them: the plugin probably writes to the host's memory again later, for example on another thread",
            bytes.len()
        );
    }
    Ok(())
}

fn exact(context: &Context) -> Verdict {
    let client = context.client()?;
    let bytes = of_len(&client, 60)?.read_into_part(60, 4)?;
    equal("the bytes", bytes[..60].to_vec(), (1..=60).collect())?;
    equal("the bytes after the destination", bytes[60..].to_vec(), vec![0xEE; 4])
}

fn deleted(context: &Context) -> Verdict {
    let client = context.client()?;
    let buffer = of_len(&client, 68)?;
    buffer.ready()?.wait()?;
    buffer.delete()?;
    let outcome = buffer.read_into(68, &CopyLayout::Unsaid);
    refused_with(
        "reading a deleted array",
        outcome,
        &[Code::INVALID_ARGUMENT, Code::FAILED_PRECONDITION],
        &[],
    )
}

fn storm(context: &Context) -> Verdict {
    let client = context.client()?;
    let bytes: Vec<u8> = (0..=255).collect();
    let element_type = narrowest(&client)?;
    let dims = [256 / element_type.byte_size() as i64];
    let array = HostArray::new(&bytes, element_type, &dims);
    let buffer = client.upload(&array, Some(client.device()?), None)?.buffer;
    on_threads(8, |_| {
        for _ in 0..10 {
            equal(
                "the bytes that a thread read",
                buffer.read_into(256, &CopyLayout::Unsaid)?,
                bytes.clone(),
            )?;
        }
        Ok(())
    })
}

fn raw(context: &Context) -> Verdict {
    let client = context.client()?;
    let buffer = upload_four(&client, &[1.0, 2.0, 3.0, 4.0])?;
    equal("the raw bytes", buffer.read_raw(0, 16)??, f32_bytes(&numbers(&buffer)?))
}

fn raw_part(context: &Context) -> Verdict {
    let client = context.client()?;
    let buffer = upload_four(&client, &[1.0, 2.0, 3.0, 4.0])?;
    Expected::floats("a raw readback", &f32_bytes(&[2.0, 3.0]))
        .suspect(f32_bytes(&[1.0, 2.0]), OFFSET_IGNORED)
        .check(&buffer.read_raw(4, 8)??)
}

fn raw_nothing(context: &Context) -> Verdict {
    let client = context.client()?;
    equal("the raw bytes", upload_four(&client, &[1.0; 4])?.read_raw(16, 0)??, Vec::new())
}

fn raw_refused(context: &Context, offset: i64, size: i64) -> Verdict {
    let client = context.client()?;
    let outcome = upload_four(&client, &[1.0; 4])?.read_raw(offset, size).and_then(|of_event| of_event);
    refused_with("this range", outcome, &[Code::INVALID_ARGUMENT], &[])
}

fn raw_past(context: &Context) -> Verdict {
    raw_refused(context, 8, 16)
}

fn raw_negative(context: &Context) -> Verdict {
    raw_refused(context, -4, 4)
}

fn future(context: &Context) -> Verdict {
    let client = context.client()?;
    let buffer = upload_four(&client, &[1.0, 2.0, 3.0, 4.0])?;
    let read = buffer.read_raw_later(0, 16)?.finish()?;
    Expected::floats("a raw readback to a destination that is named later", &f32_bytes(&[1.0, 2.0, 3.0, 4.0]))
        .check(&read)
}

fn two_at_once(context: &Context) -> Verdict {
    let client = context.client()?;
    for len in [4_usize, if is_brief() { 30_007 } else { 300_007 }] {
        let bytes = f32_bytes(&(0..len).map(|index| index as f32 + 1.0).collect::<Vec<_>>());
        let dims = [len as i64];
        let array = HostArray::new(&bytes, ElementType::F32, &dims);
        let array = client.upload(&array, Some(client.device()?), None)?.buffer;
        Expected::floats("the only readback of an array", &bytes).check(&array.read()?)?;
        for order in [[0, 1], [1, 0]] {
            let reads = [0, 1].map(|_| array.start_read(bytes.len(), &CopyLayout::Unsaid));
            let reads = reads.into_iter().collect::<Result<Vec<_>, _>>()?;
            for at in order {
                let (memory, event) = &reads[at];
                event.wait()?;
                let what = format!(
                    "number {} of two readbacks of one array, both of which were called before the host waited",
                    at + 1
                );
                let read = memory.bytes();
                Expected::floats(&what, &bytes)
                    .otherwise(ONE_READBACK)
                    .suspect(vec![UNWRITTEN; bytes.len()], ONE_READBACK)
                    .check(&read)?;
            }
        }
    }
    Ok(())
}

/// The cause of a wrong readback that begins while another one is in flight.
const ONE_READBACK: &str = "the plugin probably keeps one readback for each array, and loses one that is called while another one is in \
                            flight: a single one is right";

fn future_waits(context: &Context) -> Verdict {
    let client = context.client()?;
    let buffer = upload_four(&client, &[1.0, 2.0, 3.0, 4.0])?;
    let copy = buffer.read_raw_later(0, 16)?;
    std::thread::sleep(std::time::Duration::from_millis(5));
    ensure!(
        !copy.is_complete()?,
        "the event of PJRT_Buffer_CopyRawToHostFuture is complete before the host named the destination with \
         `future_ready_callback`; the plugin probably completes it in the call. It signals that the bytes are in the host's \
         memory"
    );
    let expected = f32_bytes(&[1.0, 2.0, 3.0, 4.0]);
    Expected::floats("the bytes of a raw copy when its event was complete", &expected).check(&copy.finish()?)
}

fn future_error(context: &Context) -> Verdict {
    let client = context.client()?;
    let outcome = upload_four(&client, &[1.0; 4])?.read_raw_later(4, 12)?.cancel(Code::CANCELLED, "no room");
    fails_with("the event", outcome, Code::CANCELLED, "no room")
}
