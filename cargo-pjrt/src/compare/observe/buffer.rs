//! The attributes of arrays on devices, and their copies.

use super::contents::contents;
use super::fact::{behavior, failed, identity, outcome, own};
use super::observer::Observer;
use pjrt_testing::host::{Buffer, Client, CopyLayout, ElementType, HostArray, Layout, Result};

/// The number of element types of the newest version of the interface. The first is invalid.
const ELEMENT_TYPES: u32 = 34;

/// Arrays of f32 of different shapes.
const SHAPES: &[(&str, &[i64])] =
    &[("a scalar", &[]), ("an empty array", &[0, 2]), ("rank 6", &[1, 2, 1, 3, 1, 2])];

pub(super) fn names() -> Vec<String> {
    let types = (1..ELEMENT_TYPES).map(ElementType).filter(|type_| type_.byte_size() > 0);
    let types = types.map(|type_| type_.stablehlo_name().to_owned());
    let shapes = SHAPES.iter().map(|(name, _)| (*name).to_owned());
    let others = ["strides", "layouts", "memories", "copies"].map(str::to_owned);
    types.chain(shapes).chain(others).collect()
}

pub(super) fn observe(observer: &Observer, name: &str) {
    let Ok(client) = observer.client() else { return };
    let outcome = match name {
        "strides" => strides(observer, client),
        "layouts" => layouts(observer, client),
        "memories" => memories(observer, client),
        "copies" => copies(observer, client),
        _ => {
            let shape = SHAPES.iter().find(|(known, _)| *known == name);
            let (type_, dims) = match shape {
                Some((_, dims)) => (ElementType::F32, *dims),
                None => (ElementType::by_stablehlo_name(name).unwrap_or(ElementType::F32), &[2, 3][..]),
            };
            plain(observer, client, type_, dims)
        }
    };
    if let Err(error) = outcome {
        failed("array", &error);
    }
}

/// Returns the bytes of an array: small numbers, which every element type contains.
fn bytes(type_: ElementType, dims: &[i64]) -> Vec<u8> {
    let elements = usize::try_from(dims.iter().product::<i64>()).unwrap_or(0);
    let element = |index: usize| {
        let mut element = vec![0; type_.byte_size()];
        element[0] = (index % 2) as u8;
        element
    };
    (0..elements).flat_map(element).collect()
}

fn plain(observer: &Observer, client: &Client, type_: ElementType, dims: &[i64]) -> Result<()> {
    let bytes = bytes(type_, dims);
    let uploaded = client.upload(&HostArray::new(&bytes, type_, dims), Some(client.device()?), None)?;
    behavior("done_with_host_buffer", if uploaded.done.wait().is_ok() { "ok" } else { "an error" });
    let buffer = &uploaded.buffer;
    outcome("ready event", buffer.ready().and_then(|ready| ready.wait()), |()| "ok".to_owned());
    outcome("element type", buffer.element_type(), ToString::to_string);
    outcome("dimensions", buffer.dims(), |dims| format!("{dims:?}"));
    outcome("dimensions without padding", buffer.unpadded_dims(), |dims| format!("{dims:?}"));
    outcome("dynamic dimensions", buffer.dynamic_dims(), |dims| format!("{dims:?}"));
    outcome("layout", buffer.memory_layout(), |layout| format!("{layout:?}"));
    own("size on the device", buffer.on_device_size(), ToString::to_string);
    outcome("size on the host", buffer.host_size(&CopyLayout::Unsaid), ToString::to_string);
    own("is on the CPU", buffer.is_on_cpu(), ToString::to_string);
    outcome("memory kind", buffer.memory().and_then(|memory| memory.kind()), Clone::clone);
    outcome("is deleted", buffer.is_deleted(), ToString::to_string);
    own("unsafe pointer", buffer.unsafe_pointer(), |_| "an address".to_owned());
    contents(observer, "contents", buffer)
}

/// Uploads a transposed array.
fn strides(observer: &Observer, client: &Client) -> Result<()> {
    for type_ in [ElementType::U8, ElementType::F32, ElementType::F64] {
        let size = type_.byte_size() as i64;
        let bytes: Vec<u8> = (0..6 * size).map(|byte| byte as u8).collect();
        let strides = [size, 2 * size];
        let array = HostArray { strides: Some(&strides), ..HostArray::new(&bytes, type_, &[2, 3]) };
        let what = format!("transposed {type_}");
        match client.upload(&array, Some(client.device()?), None) {
            Ok(uploaded) => contents(observer, &what, &uploaded.buffer)?,
            Err(error) => failed(&what, &error),
        }
    }
    Ok(())
}

/// Uploads and reads arrays with layouts.
fn layouts(observer: &Observer, client: &Client) -> Result<()> {
    let bytes: Vec<u8> = (0..24).collect();
    for order in [[1, 0], [0, 1]] {
        let layout = Layout::MinorToMajor(order.to_vec());
        let array =
            HostArray { device_layout: Some(layout), ..HostArray::new(&bytes, ElementType::F32, &[2, 3]) };
        let what = format!("uploaded with {order:?}");
        match client.upload(&array, Some(client.device()?), None) {
            Ok(uploaded) => {
                outcome(&format!("{what}: layout"), uploaded.buffer.memory_layout(), |l| format!("{l:?}"));
                contents(observer, &what, &uploaded.buffer)?;
            }
            Err(error) => failed(&what, &error),
        }
        let plain = HostArray::new(&bytes, ElementType::F32, &[2, 3]);
        let buffer = client.upload(&plain, Some(client.device()?), None)?.buffer;
        let layout = CopyLayout::Layout(Layout::MinorToMajor(order.to_vec()));
        outcome(&format!("read with {order:?}"), buffer.read_into(24, &layout), |bytes| format!("{bytes:?}"));
    }
    Ok(())
}

/// Uploads an array to each memory of the first device.
fn memories(observer: &Observer, client: &Client) -> Result<()> {
    let bytes: Vec<u8> = (0..24).collect();
    for memory in client.device()?.memories()? {
        let kind = memory.kind()?;
        let array = HostArray::new(&bytes, ElementType::F32, &[2, 3]);
        match client.upload(&array, None, Some(memory)) {
            Ok(uploaded) => {
                let what = format!("in {kind}");
                let is_there = uploaded.buffer.memory().map(|there| there == memory);
                outcome(&format!("{what}: is in that memory"), is_there, ToString::to_string);
                contents(observer, &what, &uploaded.buffer)?;
            }
            Err(error) => failed(&format!("in {kind}"), &error),
        }
    }
    Ok(())
}

/// Copies an array in the ways of the interface.
fn copies(observer: &Observer, client: &Client) -> Result<()> {
    let bytes: Vec<u8> = (0..24).collect();
    let device = client.device()?;
    let array = HostArray::new(&bytes, ElementType::F32, &[2, 3]);
    let buffer = client.upload(&array, Some(device), None)?.buffer;
    let noted = |what: &str, copy: Result<Buffer>| match copy {
        Ok(copy) => contents(observer, what, &copy),
        Err(error) => {
            failed(what, &error);
            Ok(())
        }
    };
    noted("to the same device", buffer.copy_to_device(device))?;
    for memory in device.memories()? {
        noted(&format!("to {}", memory.kind()?), buffer.copy_to_memory(memory))?;
    }
    noted("as s32[6]", buffer.bitcast(ElementType::S32, &[6]))?;
    noted("as s64[6]", buffer.bitcast(ElementType::S64, &[6]))?;
    outcome("4 bytes at 4", buffer.read_raw(4, 4).and_then(|bytes| bytes), |bytes| format!("{bytes:?}"));
    let beyond = buffer.read_raw(20, 8).and_then(|bytes| bytes);
    outcome("8 bytes at 20 of 24", beyond, |bytes| format!("{bytes:?}"));
    let held = buffer.hold().and_then(|()| buffer.bytes_in_place()).and_then(|bytes| {
        buffer.release()?;
        Ok(bytes)
    });
    own("held in place", held, |bytes| format!("{bytes:?}"));
    let (donated, dependency) = buffer.donate()?;
    dependency.finish(Ok(()));
    outcome("donated: is deleted", buffer.is_deleted(), ToString::to_string);
    contents(observer, "donated: new buffer", &donated)?;
    identity("size", donated.on_device_size().unwrap_or_default());
    Ok(())
}
