//! Checks of raw buffers, which share the memory of arrays of every element type and of many shapes.

use super::entry::{Entry, check};
use super::readers::unless_padded;
use super::samples::{Shaped, for_each_sample};
use crate::conform::harness::{Context, Finding, Verdict, equal, memory_name};

pub(super) const CHECKS: &[Entry] = &[
    check(
        "shapes/writes_to_raw_buffers",
        "Bytes that are written into an array through a raw buffer, at an offset, are read back, and the rest stays.",
        raw_writes,
        "PJRT_RawBuffer_CopyRawHostToDevice give offset=0",
    )
    .header("pjrt_c_api_raw_buffer_extension.h", "Copies host memory into a range of the buffer."),
    check(
        "shapes/places_of_raw_buffers",
        "A raw buffer reports the memory of its array, and an address that the host can read has the array's bytes.",
        raw_places,
        "PJRT_RawBuffer_GetMemorySpace set memory_space=null",
    )
    .header("pjrt_c_api_raw_buffer_extension.h", "Returns the memory that the buffer is in, and its address if the host can read it."),
];

fn raw_writes(context: &Context) -> Verdict {
    let client = context.client()?;
    for_each_sample(context, &client, |device, sample, array| {
        let size = unless_padded(array, sample)? as usize;
        let other = Shaped::new(sample.element_type, &sample.dims, 50);
        let target = client.upload(&sample.host(), Some(device), None)?.buffer;
        target.ready()?.wait()?;
        // The second half changes first, and then all of it.
        let half = size / 2 / sample.element_type.byte_size() * sample.element_type.byte_size();
        target.write_as_raw_buffer(half as i64, &other.bytes[half..])?;
        let bytes = [&sample.bytes[..half], &other.bytes[half..]].concat();
        let mixed = Shaped { bytes, ..other.clone() };
        mixed.check("an array whose second half was written through a raw buffer", &target.read()?)?;
        target.write_as_raw_buffer(0, &other.bytes)?;
        other.check("an array that was written through a raw buffer", &target.read()?)
    })
}

fn raw_places(context: &Context) -> Verdict {
    let client = context.client()?;
    for_each_sample(context, &client, |_, sample, array| {
        array.ready()?.wait()?;
        let (memory, host) = array.place_of_raw_buffer()?;
        let expected = array.memory()?;
        if memory != expected {
            let (got, wanted) = (memory_name(memory), memory_name(expected));
            return Err(Finding::Wrong(format!(
                "PJRT_RawBuffer_GetMemorySpace of {sample} is {got}; PJRT_Buffer_Memory of the array is {wanted}"
            )));
        }
        let is_readable = array.is_on_cpu().unwrap_or(false);
        match (host, array.unsafe_pointer()) {
            (0, _) | (_, Err(_)) => Ok(()),
            (_, Ok(address)) if is_readable => {
                equal(&format!("PJRT_RawBuffer_GetHostPointer of {sample}"), host, address)
            }
            _ => Ok(()),
        }
    })
}
