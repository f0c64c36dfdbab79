//! Checks that copies keep the bits of floating-point numbers.

use super::arrays::numbered;
use super::devices::others;
use super::entry::{ALL, Entry, check};
use crate::array::float_format::{FloatFormat, FloatKind};
use crate::conform::harness::{Context, Expected, Finding, ONE_DEVICE, Verdict};
use crate::requirements::Profile;
use pjrt_testing::host::{Buffer, Client, Code, CopyLayout, ElementType, HostArray, Layout, Result};

const UPLOAD: &str = "PJRT_Client_BufferFromHostBuffer";
const UPLOAD_TEXT: &str = "The function copies the host's data to a buffer; it does not convert it.";

pub(super) const CHECKS: &[Entry] = &[
    check(
        "bits/signs_of_zeros",
        "An array of any floating-point type keeps the signs of zeros when it is uploaded and read back.",
        zeros,
        "PJRT_Client_BufferFromHostBuffer bits zero",
    )
    .header(UPLOAD, UPLOAD_TEXT)
    .needed_by(ALL)
    .also(&["bits/raw_copies", "bits/every_byte", "bits/transposed_copies"]),
    check(
        "bits/denormals",
        "An array of any floating-point type keeps denormal numbers when it is uploaded and read back.",
        denormals,
        "PJRT_Client_BufferFromHostBuffer bits denormal",
    )
    .header(UPLOAD, UPLOAD_TEXT)
    .needed_by(ALL)
    .also(&["bits/raw_copies", "bits/every_byte", "bits/transposed_copies", "upload/megabytes"]),
    check(
        "bits/nans",
        "An array of any floating-point type keeps all bits of NaNs when it is uploaded and read back.",
        nans,
        "PJRT_Client_BufferFromHostBuffer bits nan",
    )
    .header(UPLOAD, UPLOAD_TEXT)
    .needed_by(ALL)
    .also(&["bits/raw_copies", "bits/every_byte", "bits/transposed_copies"]),
    check(
        "bits/every_byte",
        "Arrays of one-byte types keep all 256 patterns, and arrays of f16 and bf16 all 65536, when they are uploaded and read back.",
        every_byte,
        "PJRT_Buffer_ToHostBuffer when dst_size=256 bits nan",
    )
    .header(UPLOAD, UPLOAD_TEXT)
    .needed_by(&[Profile::Jax]),
    check(
        "bits/copies_to_memories",
        "A copy to a memory keeps the bits of floating-point numbers.",
        memories,
        "PJRT_Buffer_CopyToMemory bits denormal",
    )
    .header("PJRT_Buffer_CopyToMemory", "The function copies the buffer's data; it does not convert it.")
    .needed_by(&[Profile::Jax]),
    check(
        "bits/copies_to_devices",
        "A copy to another device keeps the bits of floating-point numbers.",
        devices,
        "PJRT_Buffer_CopyToDevice bits denormal",
    )
    .header("PJRT_Buffer_CopyToDevice", "The function copies the buffer's data; it does not convert it."),
    check(
        "bits/transposed_copies",
        "An upload with strides and a readback with a layout keep the bits of floating-point numbers.",
        transposed,
        "PJRT_Client_BufferFromHostBuffer when num_byte_strides=2 bits nan",
    )
    .header(UPLOAD, UPLOAD_TEXT)
    .needed_by(&[Profile::Jax]),
    check(
        "bits/raw_copies",
        "PJRT_Buffer_CopyRawToHost keeps the bits of floating-point numbers.",
        raw,
        "PJRT_Buffer_CopyRawToHost bits denormal",
    )
    .header("PJRT_Buffer_CopyRawToHost", "The function copies the bytes as they are on the device.")
    .since(57),
];

/// Returns numbers of some kinds in a format, followed by an ordinary number.
fn special_numbers(element_type: ElementType, kinds: &[FloatKind]) -> Option<Vec<u8>> {
    let format = FloatFormat::of(element_type)?;
    let mut numbers: Vec<u64> = kinds.iter().flat_map(|kind| format.numbers(*kind)).collect();
    // The parts of complex numbers come in pairs.
    if !numbers.len().is_multiple_of(2) {
        numbers.push(numbers[0]);
    }
    Some(format.join(&numbers))
}

/// Returns an array, unless the plugin does not support the type.
fn upload(client: &Client, element_type: ElementType, bytes: &[u8]) -> Result<Option<Buffer>> {
    let dims = [(bytes.len() / element_type.byte_size()) as i64];
    match client.upload(&HostArray::new(bytes, element_type, &dims), Some(client.device()?), None) {
        Err(error) if [Code::UNIMPLEMENTED, Code::INVALID_ARGUMENT].contains(&error.code) => Ok(None),
        uploaded => Ok(Some(uploaded?.buffer)),
    }
}

/// Uploads special numbers of all types, and compares what `read` returns for each array.
fn of_all_types(
    context: &Context,
    kinds: &[FloatKind],
    read: impl Fn(&Client, &Buffer) -> std::result::Result<Vec<Vec<u8>>, Finding>,
) -> Verdict {
    let client = context.client()?;
    let mut supported = 0;
    for element_type in FloatFormat::types().filter(|element_type| element_type.since() <= context.minor()) {
        let Some(bytes) = special_numbers(element_type, kinds) else { continue };
        let Some(buffer) = upload(&client, element_type, &bytes)? else { continue };
        supported += 1;
        for copy in read(&client, &buffer)? {
            let what = format!("an array of {element_type}");
            Expected::new(&what, &bytes, element_type, &[]).check(&copy)?;
        }
    }
    match supported {
        0 => Err(Finding::Unsupported("the plugin supports no floating-point type".to_owned())),
        _ => Ok(()),
    }
}

fn plain(context: &Context, kind: FloatKind) -> Verdict {
    of_all_types(context, &[kind], |_, buffer| Ok(vec![buffer.read()?]))
}

fn zeros(context: &Context) -> Verdict {
    plain(context, FloatKind::Zero)
}

fn denormals(context: &Context) -> Verdict {
    plain(context, FloatKind::Denormal)
}

fn nans(context: &Context) -> Verdict {
    plain(context, FloatKind::Nan)
}

fn every_byte(context: &Context) -> Verdict {
    let client = context.client()?;
    let whole_bytes = FloatFormat::types().chain([ElementType::S8, ElementType::U8]);
    for element_type in whole_bytes.filter(|element_type| element_type.byte_size() <= 2) {
        if element_type.since() > context.minor() {
            continue;
        }
        let bytes: Vec<u8> = match element_type.byte_size() {
            1 => (0..=255).collect(),
            _ => (0..=u16::MAX).map(u16::to_le_bytes).collect::<Vec<_>>().into_flattened(),
        };
        if let Some(buffer) = upload(&client, element_type, &bytes)? {
            let what = format!("an array of {element_type}");
            Expected::new(&what, &bytes, element_type, &[]).check_array(&buffer)?;
        }
    }
    Ok(())
}

fn memories(context: &Context) -> Verdict {
    of_all_types(context, &FloatKind::ALL, |client, buffer| {
        let mut copies = Vec::new();
        for memory in client.device()?.memories()? {
            copies.push(buffer.copy_to_memory(memory)?.read()?);
        }
        Ok(copies)
    })
}

fn devices(context: &Context) -> Verdict {
    of_all_types(context, &FloatKind::ALL, |client, buffer| {
        let Some(other) = others(client)?.first().copied() else {
            return Err(Finding::NotApplicable(ONE_DEVICE.to_owned()));
        };
        Ok(vec![buffer.copy_to_device(other)?.read()?])
    })
}

fn transposed(context: &Context) -> Verdict {
    let client = context.client()?;
    for element_type in FloatFormat::types().filter(|element_type| element_type.since() <= context.minor()) {
        let size = element_type.byte_size();
        let Some(special) = special_numbers(element_type, &FloatKind::ALL) else { continue };
        let columns = special.len() / size;
        let bytes = [special, numbered(element_type, columns)].concat();
        let (dims, strides) = ([columns as i64, 2], [size as i64, (columns * size) as i64]);
        let array = HostArray { strides: Some(&strides), ..HostArray::new(&bytes, element_type, &dims) };
        let buffer = match client.upload(&array, Some(client.device()?), None) {
            Err(error) if [Code::UNIMPLEMENTED, Code::INVALID_ARGUMENT].contains(&error.code) => continue,
            uploaded => uploaded?.buffer,
        };
        let layout = CopyLayout::Layout(Layout::MinorToMajor(vec![0, 1]));
        let what = format!("a transposed array of {element_type}");
        let read = buffer.read_into(bytes.len(), &layout)?;
        Expected::new(&what, &bytes, element_type, &[2, columns as i64]).check(&read)?;
    }
    Ok(())
}

fn raw(context: &Context) -> Verdict {
    of_all_types(context, &FloatKind::ALL, |_, buffer| {
        let read = buffer.read()?;
        let size = buffer.on_device_size()?;
        if size != read.len() {
            return Ok(Vec::new());
        }
        Ok(vec![buffer.read_raw(0, size as i64)??])
    })
}
