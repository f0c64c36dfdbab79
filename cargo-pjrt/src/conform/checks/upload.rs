//! Checks of transfers from the host to devices.

use super::entry::{ALL, Entry, NONE, check};
use super::threads::on_threads;
use crate::conform::harness::{
    Check, Context, DIFFER, Expected, Finding, HOST_MEMORY, NEVER_COMPLETE, STRIDES_IGNORED, Source,
    TOO_EARLY, Users, Verdict, WRONG_TRANSFER, described, ensure, equal, f32_bytes, hangs, is_in_memory,
    is_on_device, narrowest, patience, refused_with,
};
use crate::requirements::Profile;
use pjrt_testing::host::{Code, ElementType, HostArray, HostMemory, Layout, Semantics, Uploaded};

pub(super) const CHECKS: &[Entry] = &[
    check(
        "upload/numbers_arrive",
        "An array that was uploaded reads back unchanged.",
        arrive,
        "PJRT_Client_BufferFromHostBuffer when num_dims=1 dims.0=5 give data=zeros",
    )
    .header("PJRT_Client_BufferFromHostBuffer", "Asynchronously copies a buffer stored on host to device memory.")
    .needed_by(ALL)
    .also(&["bits/denormals", "bits/nans"]),
    check(
        "upload/scalar",
        "An array without dimensions has one element.",
        scalar,
        "PJRT_Client_BufferFromHostBuffer when num_dims=0 give data=zeros",
    )
    .header("PJRT_Client_BufferFromHostBuffer_Args::dims", "The array dimensions of `data`. A scalar has none.")
    .needed_by(ALL).also(&["execute/scalars", "programs/outputs_have_their_dims", "view/writes_are_seen_*"]),
    check(
        "upload/of_each_rank",
        "Arrays can have any number of dimensions, from 0 to 12, and keep them after the host overwrote those that it passed.",
        each_rank,
        "PJRT_Client_BufferFromHostBuffer when num_dims=6 fail INVALID_ARGUMENT",
    )
    .header("PJRT_Client_BufferFromHostBuffer_Args::dims", "The array dimensions of `data`. The header names no limit.")
    .needed_by(ALL),
    check(
        "upload/no_elements",
        "An array with a dimension of 0 can be uploaded and read.",
        no_elements,
        "PJRT_Client_BufferFromHostBuffer when num_dims=2 dims.1=0 fail INVALID_ARGUMENT",
    )
    .host("JAX, jax.device_put", "Passes empty arrays of NumPy to the plugin.")
    .used_by(ALL)
    .needed_by(&[Profile::Jax])
    .also(&["upload/no_elements_and_no_data", "layouts/strides_of_no_elements"]),
    check(
        "upload/no_elements_and_no_data",
        "The data pointer of an array without elements may be null.",
        no_elements_null,
        "PJRT_Client_BufferFromHostBuffer when data=0 dims.1=0 fail INVALID_ARGUMENT",
    )
    .host("PyTorch/XLA, pjrt_computation_client.cpp, TransferToDevice", "Passes the data pointer of an empty tensor, which is null."),
    check(
        "upload/megabytes",
        "An array of 8 MB reads back unchanged.",
        megabytes,
        "PJRT_Client_BufferFromHostBuffer when dims.0=2097152 give data=zeros",
    )
    .header("PJRT_Client_BufferFromHostBuffer", "Asynchronously copies a buffer stored on host to device memory.")
    .also(&["upload/not_read_after_its_event", "upload/not_read_after_the_call"])
    .needed_by(ALL),
    check(
        "upload/sizes_around_pages",
        "Arrays whose sizes are close to those of pages and blocks, from 4 KiB to 1 MiB, read back unchanged.",
        around_pages,
        "PJRT_Buffer_ToHostBuffer last_byte 4095 1048577",
    )
    .header("PJRT_Client_BufferFromHostBuffer", "Asynchronously copies a buffer stored on host to device memory.")
    .needed_by(ALL)
    .also(&[
        "bits/every_byte",
        "execute/adds",
        "donation/*",
        "lent/*",
        "reuse/*",
        "view/writes_are_seen_*",
        "waiting/arguments_stay_after_launches",
        "waiting/many_launches_ahead",
        "waiting/many_uploads_ahead",
    ]),
    check(
        "upload/at_any_address",
        "Host memory can have any alignment.",
        misaligned,
        "PJRT_Client_BufferFromHostBuffer when data%64=1 give data=zeros",
    )
    .host("JAX, jaxlib/py_values.cc, HandleNumpyArray", "Passes the address of NumPy's data, which can be that of a slice.")
    .needed_by(ALL),
    check(
        "upload/with_row_major_strides",
        "Strides of a dense row-major array are accepted: JAX and PyTorch/XLA always pass strides.",
        row_major,
        "PJRT_Client_BufferFromHostBuffer when num_byte_strides=2 byte_strides.0=12 fail INTERNAL",
    )
    .header("PJRT_Client_BufferFromHostBuffer_Args::byte_strides", "Number of bytes to traverse per dimension of the input data.")
    .only_used_by(NONE)
    .needed_by(&[Profile::Jax, Profile::TorchXla, Profile::Zml]),
    check(
        "upload/with_column_major_strides",
        "Strides can describe a column-major array.",
        column_major,
        "PJRT_Client_BufferFromHostBuffer when num_byte_strides=2 byte_strides.1=8 host_buffer_semantics=1 give byte_strides=null num_byte_strides=0",
    )
    .header("PJRT_Client_BufferFromHostBuffer_Args::byte_strides", "Number of bytes to traverse per dimension of the input data.")
    .only_used_by(NONE)
    .needed_by(&[Profile::Jax])
    .also(&["bits/transposed_copies"]),
    check(
        "upload/with_permuted_strides",
        "Strides can describe any order of dimensions.",
        permuted,
        "PJRT_Client_BufferFromHostBuffer when num_byte_strides=3 give byte_strides=null num_byte_strides=0",
    )
    .header("PJRT_Client_BufferFromHostBuffer_Args::byte_strides", "Number of bytes to traverse per dimension of the input data.")
    .only_used_by(NONE)
    .needed_by(&[Profile::Jax])
    .also(&[
        "layouts/negative_strides_at_rank_3",
        "layouts/strides_of_dimensions_of_one",
        "layouts/strides_of_large_types",
        "layouts/strides_of_one_byte_types",
        "layouts/strides_of_slices",
        "layouts/strides_of_zero_at_rank_3",
    ]),
    check(
        "upload/with_negative_strides",
        "Strides can be negative, so that the first element is the last one in memory.",
        negative,
        "PJRT_Client_BufferFromHostBuffer when num_byte_strides=1 byte_strides.0=-4 fail INVALID_ARGUMENT",
    )
    .header("PJRT_Client_BufferFromHostBuffer_Args::byte_strides", "`byte_strides` are allowed to be negative, in which case `data` may need to point to the interior of the buffer.")
    .only_used_by(NONE)
    .needed_by(&[Profile::Jax]),
    check(
        "upload/with_gaps",
        "Strides can leave gaps between elements.",
        gaps,
        "PJRT_Client_BufferFromHostBuffer when num_dims=1 num_byte_strides=1 byte_strides.0=12 give byte_strides=null num_byte_strides=0",
    )
    .header("PJRT_Client_BufferFromHostBuffer_Args::byte_strides", "Number of bytes to traverse per dimension of the input data.")
    .only_used_by(NONE)
    .needed_by(&[Profile::Jax]),
    check(
        "upload/with_strides_of_zero",
        "A stride of 0 repeats an element.",
        repeated,
        "PJRT_Client_BufferFromHostBuffer when num_byte_strides=1 byte_strides.0=0 give byte_strides=null num_byte_strides=0",
    )
    .host("JAX, jaxlib/py_values.cc, HandleNumpyArray", "Passes NumPy's strides, which are 0 in arrays of numpy.broadcast_to.")
    .needed_by(&[Profile::Jax])
    .also(&["layouts/strides_of_zero_at_rank_3"]),
    check(
        "upload/with_too_few_strides",
        "If the number of strides is neither zero nor that of the dimensions, the array is refused with INVALID_ARGUMENT.",
        few_strides,
        "PJRT_Client_BufferFromHostBuffer when num_dims=2 num_byte_strides=1 give num_byte_strides=0",
    )
    .advice("The header requires the caller to pass as many strides as dimensions, or none. An error reveals the caller's mistake."),
    check(
        "upload/with_a_layout",
        "A host can request the default layout explicitly, and leave the layout's struct_size uninitialized.",
        device_layout,
        "PJRT_Client_BufferFromHostBuffer when device_layout>struct_size=2 fail INVALID_ARGUMENT",
    )
    .header("PJRT_Client_BufferFromHostBuffer_Args::device_layout", "The caller is responsible to keep the data (tiled or strides) in the device_layout alive during the call. XLA's client leaves the layout's struct_size uninitialized.")
    .only_used_by(NONE)
    .needed_by(&[Profile::Zml]),
    check(
        "upload/lent_without_a_copy",
        "With kImmutableZeroCopy, the array has the contents of the memory, and the event completes at the latest when the buffer is destroyed.",
        zero_copy,
        "PJRT_Client_BufferFromHostBuffer when host_buffer_semantics=2 set done_with_host_buffer=never",
    )
    .header("PJRT_HostBufferSemantics_kImmutableZeroCopy", "To notify the caller that the buffer may be freed, the runtime will call `done_with_host_buffer` when the PjRtBuffer is freed.")
    .needed_by(&[Profile::Jax])
    .also(&["lent/immutable_after_the_event"]),
    check(
        "upload/lent_memory_is_not_written",
        "A plugin never writes to immutable host memory, even if the array is donated.",
        not_written,
        "PJRT_Client_BufferFromHostBuffer when host_buffer_semantics=2 dims.0=1002 scribble data",
    )
    .header("PJRT_HostBufferSemantics_kImmutableZeroCopy", "The runtime promises not to mutate contents of the buffer (i.e. it will not use it for aliased output buffers).")
    .used_by(&[Profile::Jax]),
    check(
        "upload/not_read_after_the_call",
        "With kImmutableOnlyDuringCall, the array does not change if the host changes its memory after the call.",
        not_read_after_call,
        "PJRT_Client_BufferFromHostBuffer when host_buffer_semantics=0 type_=6 read_later",
    )
    .header("PJRT_HostBufferSemantics_kImmutableOnlyDuringCall", "The runtime may not hold references to `data` after the call completes.")
    .needed_by(ALL)
    .also(&[
        "layouts/negative_strides_at_rank_3",
        "layouts/readback_at_rank_4_of_one_byte",
        "layouts/strides_at_rank_4_and_5",
        "layouts/strides_of_one_byte_types",
        "layouts/strides_of_slices",
    ]),
    check(
        "upload/not_read_after_its_event",
        "With kImmutableUntilTransferCompletes, the array does not change if the host changes its memory after the event is complete.",
        not_read_after_event,
        "PJRT_Client_BufferFromHostBuffer when host_buffer_semantics=1 type_=6 read_later",
    )
    .header("PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes", "The caller promises not to mutate or free `data` until the transfer completes, at which point `done_with_host_buffer` will be triggered.")
    .needed_by(ALL),
    check(
        "upload/event_comes",
        "The event for the host's memory completes without an error.",
        event_comes,
        "PJRT_Client_BufferFromHostBuffer when dims.0=1003 set done_with_host_buffer=never",
    )
    .header("PJRT_Client_BufferFromHostBuffer_Args::done_with_host_buffer", "Event indicating when it's safe to free `data`.")
    .needed_by(ALL),
    check(
        "upload/event_destroyed_at_once",
        "The event can be destroyed immediately, as ZML does.",
        event_ignored,
        "PJRT_Client_BufferFromHostBuffer when dims.0=1004 give data=zeros",
    )
    .host("ZML, zml/buffer.zig, Buffer.from", "Destroys the event without waiting for it.")
    .needed_by(&[Profile::Zml]),
    check(
        "upload/into_each_memory",
        "An array is stored in the memory that the host names, of any device, and reports this memory and device.",
        each_memory,
        "PJRT_Buffer_Memory set memory+8",
    )
    .header("PJRT_Client_BufferFromHostBuffer_Args::memory", "If nullptr, host data will be copied to `device`, otherwise we copy data to `memory`.")
    .needed_by(&[Profile::Jax, Profile::TorchXla])
    .also(&[
        "buffer/memory",
        "buffer/copy_to_each_memory",
        "execute/outputs_are_on_their_device",
        "programs/memory_kinds_of_two_outputs",
    ]),
    check(
        "upload/of_mapped_memory",
        "Host memory can be mapped for transfers with PJRT_Client_DmaMap, and unmapped.",
        mapped,
        "PJRT_Client_DmaUnmap fail INTERNAL",
    )
    .host("ZML, zml/mem.zig", "Maps its staging memory with PJRT_Client_DmaMap, and unmaps it at the end."),
    check(
        "upload/of_a_negative_dimension",
        "A negative dimension is refused with INVALID_ARGUMENT.",
        negative_dim,
        "PJRT_Client_BufferFromHostBuffer when dims.0=-4 code INTERNAL",
    )
    .advice("No array has a negative dimension. An error reveals the caller's mistake."),
    check(
        "upload/of_too_many_elements",
        "An array whose size overflows is refused, without a crash.",
        overflow,
        "PJRT_Client_BufferFromHostBuffer when dims.0=4611686018427387904 crash",
    )
    .advice("No host has such an array. An error reveals the caller's mistake."),
    check(
        "upload/of_an_unknown_type",
        "An element type that does not exist is refused with INVALID_ARGUMENT or UNIMPLEMENTED.",
        unknown_type,
        "PJRT_Client_BufferFromHostBuffer when type_=99 code INTERNAL",
    )
    .advice("The enum lists the types; passing another one is a mistake of the host. An error lets hosts that use a newer header test for a type."),
    check(
        "upload/without_data",
        "A null pointer for an array with elements is refused with INVALID_ARGUMENT.",
        null_data,
        "PJRT_Client_BufferFromHostBuffer when data=0 dims.0=4 crash",
    )
    .advice("The caller has to pass a pointer to the data. An error reveals the caller's mistake."),
    check(
        "upload/by_many_threads",
        "Several threads can upload arrays at the same time.",
        storm,
        "PJRT_Client_BufferFromHostBuffer when dims.0=64 call 50 fail INTERNAL",
    )
    .host("JAX, jax.device_put", "Releases Python's lock during the call, so that threads upload at the same time.")
    .needed_by(ALL),
];

/// Returns a check for each element type, which uploads an array and reads it back.
pub(super) fn by_type() -> Vec<Check> {
    const TOKEN: u32 = 23;
    // PRED, S32, U32 and F32: the types of the arrays of programs of JAX with its default configuration that name no type.
    // Programs name the others, and fail with the plugin's error if it refuses them.
    const OF_JAX: &[u32] = &[1, 4, 8, 11];
    let of_type = |number: u32| {
        let element_type = ElementType(number);
        Check {
            name: format!("upload/type_{element_type}"),
            rule: format!(
                "Arrays of {element_type} read back unchanged; on the host, elements of less than a byte occupy one byte each."
            ).into(),
            source: Source::Header {
                place: "PJRT_Buffer_Type",
                text: "The enum lists the element types of arrays, which PJRT_Client_BufferFromHostBuffer copies to a device and PJRT_Buffer_ToHostBuffer copies back.",
            },
            is_of_the_table: false,
            since: element_type.since(),
            needed_by: if OF_JAX.contains(&number) { &[Profile::Jax] } else { &[] },
            users: Users::Callers("PJRT_Client_BufferFromHostBuffer"),
            needed_since: 0,
            fault: format!("PJRT_Client_BufferFromHostBuffer when type_={number} dims.0=7 give data=zeros").into(),
            also: &["view/writes_are_seen_*"],
            run: Box::new(move |context| round_trip(context, element_type)),
        }
    };
    (1..=33).filter(|number| *number != TOKEN).map(of_type).collect()
}

/// Returns elements of a type as bytes. The elements are different, and none is zero.
pub(super) fn pattern(element_type: ElementType, len: usize) -> Vec<u8> {
    let size = element_type.byte_size();
    let repeated: Vec<u8> = match element_type.stablehlo_name() {
        "i1" | "i1s" | "ui1" => vec![1],
        "i2" => vec![1, 0xfe, 0xff],
        "ui2" => (1..=3).collect(),
        "i4" => vec![1, 7, 0xf8, 0xff],
        "ui4" | "f4E2M1FN" => (1..=15).collect(),
        "f6E2M3FN" | "f6E3M2FN" => (1..=63).collect(),
        // The numbers have various exponents, and are neither NaN nor infinite.
        _ => (0x31..0x31 + 9).collect(),
    };
    repeated.into_iter().cycle().take(len * size).collect()
}

fn round_trip(context: &Context, element_type: ElementType) -> Verdict {
    let client = context.client()?;
    // The sizes are no multiples of words, at which plugins copy more than they should.
    for len in [7, 1, 2, 3, 5] {
        let bytes = pattern(element_type, len);
        let dims = [len as i64];
        let array = HostArray::new(&bytes, element_type, &dims);
        let uploaded = client.upload(&array, Some(client.device()?), None)?;
        equal("the type", uploaded.buffer.element_type()?, element_type)?;
        same_elements(element_type, &dims, &uploaded.buffer.read()?, &bytes)?;
    }
    Ok(())
}

/// Compares elements that were read back with the expected ones.
pub(super) fn same_elements(element_type: ElementType, dims: &[i64], read: &[u8], sent: &[u8]) -> Verdict {
    if read == sent {
        return Ok(());
    }
    if read.len() != sent.len() {
        return same_bytes(read, sent);
    }
    let used = element_type.used_bits();
    if read.iter().zip(sent).all(|(read, sent)| read & used == sent & used) {
        return Ok(());
    }
    Expected::new("the array that was read back", sent, element_type, dims).check(read)
}

/// Uploads an array, reads it back, and compares it with numbers.
fn comes_back(context: &Context, array: &HostArray<'_>, expected: &[f32]) -> Verdict {
    let client = context.client()?;
    for semantics in Semantics::ALL {
        let array = HostArray { semantics, ..array.clone() };
        let uploaded = client.upload(&array, Some(client.device()?), None)?;
        equal("the dimensions", uploaded.buffer.dims()?, array.dims.to_vec())?;
        let what = format!("the array {:?} that was uploaded with {semantics:?}", array.dims);
        let expected = f32_bytes(expected);
        let mut expected = Expected::new(&what, &expected, array.element_type, array.dims);
        if let Some(strides) = array.strides {
            expected = expected.suspect(array.bytes, STRIDES_IGNORED).strides(strides);
        }
        expected.check_array(&uploaded.buffer)?;
    }
    Ok(())
}

fn arrive(context: &Context) -> Verdict {
    const ATTEMPTS: usize = 4;
    const LENGTH: usize = 5;
    let outcome = of_length(context, LENGTH);
    let is_wrong = |outcome: &Verdict| match outcome {
        Err(Finding::Wrong(message)) => {
            message.contains(DIFFER) && !message.contains(TOO_EARLY) && !message.contains(HOST_MEMORY)
        }
        _ => false,
    };
    let stays_wrong = is_wrong(&outcome) && (1..ATTEMPTS).all(|_| is_wrong(&of_length(context, LENGTH)));
    match outcome {
        Err(Finding::Wrong(message)) if stays_wrong => {
            const LONGEST: usize = 40;
            let right: Vec<usize> =
                (1..=LONGEST).filter(|length| of_length(context, *length).is_ok()).collect();
            Err(Finding::Wrong(format!("{message}. {WRONG_TRANSFER}{}", right_and_padded(&right, LONGEST))))
        }
        outcome => outcome,
    }
}

/// Uploads an array with this number of elements, and reads it.
fn of_length(context: &Context, length: usize) -> Verdict {
    let values: Vec<f32> = (0..length).map(|at| 41.0 + at as f32).collect();
    comes_back(context, &HostArray::new(&f32_bytes(&values), ElementType::F32, &[length as i64]), &values)
}

/// Describes the lengths that are right, of those up to the longest one.
fn right_and_padded(right: &[usize], longest: usize) -> String {
    if right.is_empty() {
        return String::new();
    }
    let padded = (3..=longest / 2).rev().find(|size| {
        // The first element behind those of a block is often at the right place.
        let is_one_more = |length: &usize| length % size == 1;
        let multiples = (1..=longest).filter(|length| length % size == 0);
        right.iter().copied().filter(|length| !is_one_more(length)).eq(multiples)
    });
    let padded = padded.map_or_else(String::new, |size| {
        format!(". Multiples of {size} are right: the plugin probably confuses the array with one that is padded to these")
    });
    format!(". Of the arrays of 1 to {longest} elements, those of {right:?} are right{padded}")
}

fn scalar(context: &Context) -> Verdict {
    comes_back(context, &HostArray::new(&f32_bytes(&[7.5]), ElementType::F32, &[]), &[7.5])
}

fn each_rank(context: &Context) -> Verdict {
    const WITH_ONES: [i64; 12] = [1, 2, 1, 3, 1, 2, 2, 1, 1, 2, 1, 3];
    // Dimensions of 1 hide an order, and dimensions that the plugin leaves out. All arrays are small.
    const WITHOUT: [i64; 12] = [2, 3, 2, 2, 3, 2, 2, 1, 1, 1, 1, 2];
    for rank in 0..=12 {
        for dims in [&WITH_ONES[..rank], &WITHOUT[..rank]] {
            let values: Vec<f32> = (0..dims.iter().product()).map(|value: i64| value as f32).collect();
            comes_back(context, &HostArray::new(&f32_bytes(&values), ElementType::F32, dims), &values)?;
        }
    }
    Ok(())
}

/// Fails if an event of an upload without elements does not complete, or waits for a readback to complete it.
fn completes_without_elements(context: &Context, array: &HostArray<'_>) -> Verdict {
    let client = context.client()?;
    let uploaded = client.upload(array, Some(client.device()?), None)?;
    let ready = uploaded.buffer.ready()?;
    for (event, of) in [(&ready, "an array"), (&uploaded.done, "the host's memory of an array")] {
        ensure!(
            event.on_ready()?.wait(patience()).is_some(),
            "the event of {of} without elements, {:?}, {NEVER_COMPLETE}: the plugin probably waits for the end of a transfer that has \
             nothing to transfer",
            array.dims
        );
    }
    Ok(())
}

fn no_elements(context: &Context) -> Verdict {
    completes_without_elements(context, &HostArray::new(&[], ElementType::F32, &[3, 0]))?;
    comes_back(context, &HostArray::new(&[], ElementType::F32, &[3, 0]), &[])
}

fn no_elements_null(context: &Context) -> Verdict {
    let array = HostArray { null_data: true, ..HostArray::new(&[], ElementType::F32, &[3, 0]) };
    completes_without_elements(context, &array)?;
    comes_back(context, &array, &[])
}

/// Returns `size` bytes with a period of 251, so that a misplaced block of a copy is detected.
fn many_bytes(size: usize) -> Vec<u8> {
    let block: Vec<u8> = (0..=250).collect();
    let mut bytes = block.repeat(size.div_ceil(block.len()));
    bytes.truncate(size);
    bytes
}

/// Compares the bytes that were read back with the expected ones. The message contains only the first
/// difference, because both may be long.
pub(super) fn same_bytes(read: &[u8], sent: &[u8]) -> Verdict {
    if read == sent {
        return Ok(());
    }
    let first = read.iter().zip(sent).position(|(read, sent)| read != sent);
    if read.len() == sent.len() {
        return Expected::new("the array that was read back", sent, ElementType::U8, &[]).check(read);
    }
    let (first, len, size) = (first.unwrap_or(read.len().min(sent.len())), read.len(), sent.len());
    Err(Finding::Wrong(format!(
        "{len} bytes were read back; expected {size}; the first different byte is at offset {first}"
    )))
}

fn megabytes(context: &Context) -> Verdict {
    const SIZE: usize = 8 << 20;
    let client = context.client()?;
    let bytes = many_bytes(SIZE);
    let array = HostArray::new(&bytes, ElementType::F32, &[(SIZE / 4) as i64]);
    same_bytes(&client.upload(&array, Some(client.device()?), None)?.buffer.read()?, &bytes)
}

fn around_pages(context: &Context) -> Verdict {
    const KIB: usize = 1 << 10;
    let client = context.client()?;
    let element_type = narrowest(&client)?;
    let width = element_type.byte_size();
    for size in [4, 16, 64, 256, 1024]
        .map(|kib| kib * KIB)
        .into_iter()
        .flat_map(|size| [size - 1, size, size + 1, size + 4])
    {
        if size % width != 0 {
            continue;
        }
        let bytes = many_bytes(size);
        let dims = [(size / width) as i64];
        let array = HostArray::new(&bytes, element_type, &dims);
        same_bytes(&client.upload(&array, Some(client.device()?), None)?.buffer.read()?, &bytes)?;
    }
    Ok(())
}

fn misaligned(context: &Context) -> Verdict {
    let values = [1.0, 2.0, 3.0];
    let array = HostArray { skew: 1, ..HostArray::new(&[], ElementType::F32, &[3]) };
    comes_back(context, &HostArray { bytes: &f32_bytes(&values), ..array }, &values)
}

/// Uploads the numbers from 0 with strides, and compares the array that is read back.
fn strided(
    context: &Context,
    in_memory: usize,
    dims: &[i64],
    strides: &[i64],
    first: usize,
    expected: &[f32],
) -> Verdict {
    let values: Vec<f32> = (0..in_memory).map(|value| value as f32).collect();
    let bytes = f32_bytes(&values);
    let array = HostArray { strides: Some(strides), first, ..HostArray::new(&bytes, ElementType::F32, dims) };
    comes_back(context, &array, expected)
}

fn row_major(context: &Context) -> Verdict {
    strided(context, 6, &[2, 3], &[12, 4], 0, &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
}

fn column_major(context: &Context) -> Verdict {
    strided(context, 6, &[2, 3], &[4, 8], 0, &[0.0, 2.0, 4.0, 1.0, 3.0, 5.0])
}

fn permuted(context: &Context) -> Verdict {
    // The element with the indices (i, j, k) is number 4 j + 2 k + i.
    strided(context, 12, &[2, 3, 2], &[4, 16, 8], 0, &[0., 2., 4., 6., 8., 10., 1., 3., 5., 7., 9., 11.])
}

fn negative(context: &Context) -> Verdict {
    strided(context, 3, &[3], &[-4], 8, &[2.0, 1.0, 0.0])
}

fn gaps(context: &Context) -> Verdict {
    strided(context, 7, &[3], &[12], 0, &[0.0, 3.0, 6.0])
}

fn repeated(context: &Context) -> Verdict {
    let bytes = f32_bytes(&[5.0, 6.0, 7.0]);
    let array = HostArray { strides: Some(&[0]), ..HostArray::new(&bytes, ElementType::F32, &[3]) };
    comes_back(context, &array, &[5.0, 5.0, 5.0])
}

fn few_strides(context: &Context) -> Verdict {
    let client = context.client()?;
    let bytes = f32_bytes(&[0.0; 6]);
    let array = HostArray { strides: Some(&[12]), ..HostArray::new(&bytes, ElementType::F32, &[2, 3]) };
    refused_with(
        "one stride for two dimensions",
        client.upload(&array, Some(client.device()?), None),
        &[Code::INVALID_ARGUMENT],
        &[],
    )
}

fn device_layout(context: &Context) -> Verdict {
    let values = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
    let bytes = f32_bytes(&values);
    let array = HostArray {
        device_layout: Some(Layout::MinorToMajor(vec![1, 0])),
        layout_struct_size: Some(2),
        ..HostArray::new(&bytes, ElementType::F32, &[2, 3])
    };
    comes_back(context, &array, &values)
}

fn zero_copy(context: &Context) -> Verdict {
    let client = context.client()?;
    let bytes = f32_bytes(&[1.0; 100]);
    let array = HostArray {
        semantics: Semantics::ImmutableZeroCopy,
        ..HostArray::new(&bytes, ElementType::F32, &[100])
    };
    let uploaded = client.upload(&array, Some(client.device()?), None)?;
    equal("the array that was read back", uploaded.buffer.read()?, bytes)?;
    let outcome = uploaded.done.on_ready()?;
    drop(uploaded.buffer);
    ensure!(
        outcome.wait(patience()).is_some(),
        "the event for the host's memory did not complete, although the buffer is destroyed"
    );
    Ok(())
}

fn not_written(context: &Context) -> Verdict {
    let client = context.client()?;
    let bytes = f32_bytes(&[1.0; 1002]);
    let array = HostArray {
        semantics: Semantics::ImmutableZeroCopy,
        ..HostArray::new(&bytes, ElementType::F32, &[1002])
    };
    let uploaded = client.upload(&array, Some(client.device()?), None)?;
    uploaded.buffer.ready()?.wait()?;
    let read = uploaded.buffer.read()?;
    drop(uploaded.buffer);
    ensure!(uploaded.memory.bytes() == bytes, "the host's memory was overwritten");
    equal("the array that was read back", read, bytes)
}

/// Overwrites the host's memory as soon as this is permitted, and reads the array back.
fn changed_afterwards(context: &Context, semantics: Semantics) -> Verdict {
    let client = context.client()?;
    // Small arrays may be copied during the call, and large ones later by other threads.
    for size in [16, 3000, 2 << 20] {
        let bytes = many_bytes(size);
        let element_type = narrowest(&client)?;
        let dims = [(size / element_type.byte_size()) as i64];
        let array = HostArray { semantics, ..HostArray::new(&bytes, element_type, &dims) };
        let uploaded = client.upload(&array, Some(client.device()?), None)?;
        if semantics == Semantics::ImmutableUntilTransferCompletes {
            match uploaded.done.on_ready()?.wait(patience()) {
                Some(outcome) => outcome?,
                None => return Err(done_never_comes(uploaded)?),
            }
        }
        uploaded.memory.overwrite();
        same_bytes(&uploaded.buffer.read()?, &bytes)?;
    }
    Ok(())
}

/// Describes an upload whose event for the host's memory does not come.
fn done_never_comes(uploaded: Uploaded) -> Result<Finding, Finding> {
    let done = "done_with_host_buffer of an upload with kImmutableUntilTransferCompletes";
    if uploaded.done.is_ready()? {
        return Ok(hangs(done, &uploaded.done));
    }
    let late = uploaded.done.on_ready()?;
    drop(uploaded.buffer);
    let cause = match late.wait(patience() / 4) {
        Some(_) => {
            " as long as the buffer exists: it became complete when the buffer was destroyed. The plugin probably keeps the host's \
             memory as the memory of the buffer"
        }
        None => "",
    };
    Ok(Finding::Wrong(format!("{done} {NEVER_COMPLETE}{cause}")))
}

fn not_read_after_call(context: &Context) -> Verdict {
    changed_afterwards(context, Semantics::ImmutableOnlyDuringCall)
}

fn not_read_after_event(context: &Context) -> Verdict {
    changed_afterwards(context, Semantics::ImmutableUntilTransferCompletes)
}

fn event_comes(context: &Context) -> Verdict {
    let client = context.client()?;
    let bytes = f32_bytes(&[1.0; 1003]);
    let uploaded =
        client.upload(&HostArray::new(&bytes, ElementType::F32, &[1003]), Some(client.device()?), None)?;
    let outcome = uploaded.done.on_ready()?.wait(patience());
    ensure!(
        outcome == Some(Ok(())),
        "the event completed with {outcome}",
        outcome = described(outcome.as_ref())
    );
    Ok(())
}

fn event_ignored(context: &Context) -> Verdict {
    let client = context.client()?;
    let bytes = f32_bytes(&[3.0; 1004]);
    let array = HostArray {
        semantics: Semantics::ImmutableUntilTransferCompletes,
        ..HostArray::new(&bytes, ElementType::F32, &[1004])
    };
    let uploaded = client.upload(&array, Some(client.device()?), None)?;
    drop(uploaded.done);
    equal("the array that was read back", uploaded.buffer.read()?, bytes)
}

fn each_memory(context: &Context) -> Verdict {
    let client = context.client()?;
    for (device, memory) in client.places()? {
        let bytes = f32_bytes(&[3.0, 4.0]);
        let uploaded = client.upload(&HostArray::new(&bytes, ElementType::F32, &[2]), None, Some(memory))?;
        is_in_memory("the array", &uploaded.buffer, memory, "The plugin probably ignores `memory`")?;
        let what = "an array in a memory of a device";
        is_on_device(what, &uploaded.buffer, device, "The plugin probably ignores `memory`")?;
        equal("the array that was read back", uploaded.buffer.read()?, bytes)?;
    }
    Ok(())
}

fn mapped(context: &Context) -> Verdict {
    Ok(context.client()?.map_and_unmap(&HostMemory::new(&[0; 4096], 0))?)
}

fn refused_upload(context: &Context, what: &str, array: &HostArray<'_>, codes: &[Code]) -> Verdict {
    let client = context.client()?;
    refused_with(what, client.upload(array, Some(client.device()?), None), codes, &[])
}

fn negative_dim(context: &Context) -> Verdict {
    let array = HostArray::new(&[0; 16], ElementType::F32, &[-4]);
    refused_upload(context, "a negative dimension", &array, &[Code::INVALID_ARGUMENT])
}

fn overflow(context: &Context) -> Verdict {
    let array = HostArray::new(&[0; 16], ElementType::F32, &[1 << 62, 1 << 62]);
    refused_upload(context, "2^124 elements", &array, &[Code::INVALID_ARGUMENT, Code::RESOURCE_EXHAUSTED])
}

fn unknown_type(context: &Context) -> Verdict {
    let array = HostArray::new(&[0; 16], ElementType(99), &[4]);
    refused_upload(context, "the element type 99", &array, &[Code::INVALID_ARGUMENT, Code::UNIMPLEMENTED])
}

fn null_data(context: &Context) -> Verdict {
    let array = HostArray { null_data: true, ..HostArray::new(&[0; 16], ElementType::F32, &[4]) };
    refused_upload(context, "a null pointer", &array, &[Code::INVALID_ARGUMENT])
}

fn storm(context: &Context) -> Verdict {
    let client = &context.client()?;
    let element_type = narrowest(client)?;
    let work = |thread: u8| -> Verdict {
        for round in 0..25 {
            let bytes = vec![thread.wrapping_mul(31).wrapping_add(round); 64];
            let dims = [(64 / element_type.byte_size()) as i64];
            let array = HostArray::new(&bytes, element_type, &dims);
            let uploaded = client.upload(&array, Some(client.device()?), None)?;
            equal("the array that was read back", uploaded.buffer.read()?, bytes)?;
        }
        Ok(())
    };
    on_threads(8, work)
}
