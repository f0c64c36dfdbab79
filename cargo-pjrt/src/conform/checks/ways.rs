//! Checks of every way to create arrays, with arrays of every element type and of many shapes.

use super::samples::{Shaped, for_each_sample};
use super::shapes::{PROPERTIES, TYPES, is_good, of_name};
use crate::conform::harness::{
    Check, Context, Finding, ONE_DEVICE, Source, Users, Verdict, described, equal, patience,
};
use pjrt_testing::host::{
    Buffer, Client, Code, Device, ElementType, Error, HostArray, Layout, Memory, Semantics, ViewMemory,
};

/// Arrays, with the devices that they must be on.
type Made<'a> = Result<Vec<(Buffer, Device<'a>)>, Finding>;

/// The source from which a way creates an array.
struct Maker<'a> {
    client: &'a Client,
    device: Device<'a>,
    memory: Memory<'a>,
    sample: &'a Shaped,
    /// An uploaded array with the elements of the sample.
    source: &'a Buffer,
}

/// The contents of an array.
#[derive(PartialEq)]
enum Contents {
    /// The elements of the sample.
    Elements,
    /// Any elements.
    Any,
    /// The array is in error.
    None,
}

/// A way to create an array.
struct Way {
    name: &'static str,
    what: &'static str,
    function: &'static str,
    contents: Contents,
    /// Creates arrays, with the devices that they must be on.
    make: for<'a> fn(&Maker<'a>) -> Made<'a>,
    fault: &'static str,
    also: &'static [&'static str],
}

impl<'a> Maker<'a> {
    fn here(&self, array: Result<Buffer, Error>) -> Made<'a> {
        Ok(vec![(array?, self.device)])
    }

    fn dims(&self) -> &'a [i64] {
        &self.sample.dims
    }
}

/// Creates arrays by uploads with all host buffer semantics.
fn by_upload<'a>(maker: &Maker<'a>, array: &HostArray<'_>, named: Option<Memory<'_>>) -> Made<'a> {
    let device = if named.is_some() { None } else { Some(maker.device) };
    let mut all = Vec::new();
    // Without strides and layouts, all semantics are tried with each array.
    let is_plain = array.strides.is_none() && array.device_layout.is_none() && named.is_none();
    let number = maker.sample.element_type.0 as usize + maker.sample.bytes.len();
    let of_sample = [Semantics::ALL[number % Semantics::ALL.len()]];
    for semantics in if is_plain { &Semantics::ALL[..] } else { &of_sample } {
        let semantics = *semantics;
        let uploaded = maker.client.upload(&HostArray { semantics, ..array.clone() }, device, named)?;
        // With the others, the event completes at the latest when the array is destroyed.
        if matches!(
            semantics,
            Semantics::ImmutableOnlyDuringCall | Semantics::ImmutableUntilTransferCompletes
        ) {
            let is_ready = uploaded.done.is_ready().unwrap_or(false);
            let outcome = if is_ready { Some(Ok(())) } else { uploaded.done.on_ready()?.wait(patience()) };
            if outcome != Some(Ok(())) {
                return Err(Finding::Wrong(format!(
                    "done_with_host_buffer with {semantics:?} completed with {outcome}",
                    outcome = described(outcome.as_ref())
                )));
            }
        }
        all.push((uploaded.buffer, maker.device));
    }
    Ok(all)
}

/// Returns the row-major strides of an array.
fn row_major(sample: &Shaped) -> Vec<i64> {
    let size = sample.element_type.byte_size() as i64;
    (0..sample.dims.len()).map(|at| size * sample.dims[at + 1..].iter().product::<i64>()).collect()
}

/// Creates an array by a transfer manager, as the second of three, in two pieces if it has several elements.
fn by_transfer(maker: &Maker<'_>) -> Result<Buffer, Error> {
    let Shaped { element_type, dims, bytes } = maker.sample;
    let other = (ElementType::F32, vec![3]);
    let shapes = [other.clone(), (*element_type, dims.clone()), other];
    let manager = maker.client.transfer_manager(&shapes, maker.memory)?;
    let array = manager.retrieve(1)?;
    let size = element_type.byte_size();
    let (first, second) = bytes.split_at(bytes.len() / size / 2 * size);
    // The sizes of the pieces are those on the device, where several elements may share a byte.
    if element_type.fills_bytes() && !first.is_empty() {
        manager.write(1, first, 0, false)?.wait()?;
        manager.write(1, second, first.len() as i64, true)?.wait()?;
    } else {
        manager.write(1, bytes, 0, true)?.wait()?;
    }
    Ok(array)
}

/// Creates an array from a literal.
fn by_literal(maker: &Maker<'_>) -> Result<Buffer, Error> {
    let Shaped { element_type, dims, bytes } = maker.sample;
    let manager = maker.client.transfer_manager(&[(*element_type, dims.clone())], maker.memory)?;
    let array = manager.retrieve(0)?;
    manager.write_array(0, bytes, *element_type, dims, &Layout::dense(dims.len()))?.wait()?;
    Ok(array)
}

/// Skips types of which several elements may share a byte on the device.
fn unless_packed(maker: &Maker<'_>) -> Result<(), Finding> {
    match maker.sample.element_type.fills_bytes() {
        true => Ok(()),
        false => Err(Finding::Unsupported("the bytes of such arrays on the device are not known".to_owned())),
    }
}

const WAYS: &[Way] = &[
    Way {
        name: "uploads",
        what: "an array that was uploaded",
        function: "PJRT_Client_BufferFromHostBuffer",
        contents: Contents::Elements,
        make: |maker| by_upload(maker, &maker.sample.host(), None),
        fault: "PJRT_Client_BufferFromHostBuffer when type_=5 num_dims=0 give data=zeros",
        also: &[],
    },
    Way {
        name: "uploads_to_memories",
        what: "an array that was uploaded to a memory",
        function: "PJRT_Client_BufferFromHostBuffer",
        contents: Contents::Elements,
        make: |maker| by_upload(maker, &maker.sample.host(), Some(maker.memory)),
        fault: "PJRT_Client_BufferFromHostBuffer when type_=5 num_dims=0 device=0 give data=zeros",
        also: &[],
    },
    Way {
        name: "uploads_with_strides",
        what: "an array that was uploaded with row-major strides",
        function: "PJRT_Client_BufferFromHostBuffer",
        contents: Contents::Elements,
        make: |maker| {
            let strides = row_major(maker.sample);
            by_upload(maker, &HostArray { strides: Some(&strides), ..maker.sample.host() }, None)
        },
        fault: "PJRT_Client_BufferFromHostBuffer when type_=5 num_byte_strides=3 dims.0=2 dims.1=1 give data=zeros",
        also: &[],
    },
    Way {
        name: "uploads_with_a_layout",
        what: "an array that was uploaded with a row-major layout",
        function: "PJRT_Client_BufferFromHostBuffer",
        contents: Contents::Elements,
        make: |maker| {
            let device_layout = Some(Layout::dense(maker.sample.dims.len()));
            by_upload(maker, &HostArray { device_layout, ..maker.sample.host() }, None)
        },
        fault: "PJRT_Client_BufferFromHostBuffer when type_=5 num_dims=0 device_layout!=0 give data=zeros",
        also: &[],
    },
    Way {
        name: "copies_to_memories",
        what: "a copy of an array to a memory",
        function: "PJRT_Buffer_CopyToMemory",
        contents: Contents::Elements,
        make: |maker| {
            let memories = maker.device.memories()?;
            memories
                .into_iter()
                .map(|memory| Ok((maker.source.copy_to_memory(memory)?, maker.device)))
                .collect()
        },
        fault: "PJRT_Buffer_CopyToMemory zeroed dst_buffer 15 0",
        also: &[],
    },
    Way {
        name: "copies_to_devices",
        what: "a copy of an array on another device",
        function: "PJRT_Buffer_CopyToDevice",
        contents: Contents::Elements,
        make: |maker| {
            let others: Vec<_> = maker
                .client
                .addressable_devices()?
                .into_iter()
                .filter(|other| *other != maker.device)
                .collect();
            if others.is_empty() {
                return Err(Finding::NotApplicable(ONE_DEVICE.to_owned()));
            }
            others.into_iter().map(|other| Ok((maker.source.copy_to_device(other)?, other))).collect()
        },
        fault: "PJRT_Buffer_CopyToDevice zeroed dst_buffer 15 0",
        also: &[],
    },
    Way {
        name: "transfers",
        what: "an array that a transfer manager filled",
        function: "PJRT_AsyncHostToDeviceTransferManager_TransferData",
        contents: Contents::Elements,
        make: |maker| unless_packed(maker).and_then(|()| maker.here(by_transfer(maker))),
        fault: "PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer when buffer_index=1 zeroed buffer_out 15 0",
        also: &[],
    },
    Way {
        name: "literals",
        what: "an array that was transferred as a literal",
        function: "PJRT_AsyncHostToDeviceTransferManager_TransferLiteral",
        contents: Contents::Elements,
        make: |maker| maker.here(by_literal(maker)),
        fault: "PJRT_AsyncHostToDeviceTransferManager_TransferLiteral when shape_element_type=15 shape_num_dims=0 give \
        data=zeros",
        also: &[],
    },
    Way {
        name: "views",
        what: "a view",
        function: "PJRT_Client_CreateViewOfDeviceBuffer",
        contents: Contents::Elements,
        make: |maker| {
            unless_packed(maker)?;
            let memory = ViewMemory::new(&maker.sample.bytes);
            maker.here(maker.client.view(&memory, maker.sample.element_type, maker.dims(), maker.device))
        },
        fault: "PJRT_Client_CreateViewOfDeviceBuffer when element_type=15 num_dims=0 give device_buffer_ptr=zeros",
        also: &["view/writes_are_seen_C128"],
    },
    Way {
        name: "aliases",
        what: "an alias that was fulfilled",
        function: "PJRT_Client_CreateAliasBuffer",
        contents: Contents::Elements,
        make: |maker| {
            unless_packed(maker)?;
            let (alias, handle) =
                maker.client.alias(maker.sample.element_type, maker.dims(), maker.memory)?;
            maker.client.fulfill(handle, Ok(maker.source))?;
            maker.here(Ok(alias))
        },
        fault: "PJRT_Client_CreateAliasBuffer zeroed alias_buffer 15 0",
        also: &[],
    },
    Way {
        name: "donations",
        what: "an array that took over the data of another one",
        function: "PJRT_Buffer_DonateWithControlDependency",
        contents: Contents::Elements,
        make: |maker| {
            let source = maker.client.upload(&maker.sample.host(), Some(maker.device), None)?.buffer;
            let (array, dependency) = source.donate()?;
            dependency.finish(Ok(()));
            maker.here(Ok(array))
        },
        fault: "PJRT_Buffer_DonateWithControlDependency zeroed out_buffer 15 0",
        also: &[],
    },
    Way {
        name: "bitcasts",
        what: "a bitcast of an array to its own type",
        function: "PJRT_Buffer_Bitcast",
        contents: Contents::Elements,
        make: |maker| maker.here(maker.source.bitcast(maker.sample.element_type, maker.dims())),
        fault: "PJRT_Buffer_Bitcast zeroed out_buffer 15 0",
        also: &[],
    },
    Way {
        name: "uninitialized",
        what: "an array without initial data",
        function: "PJRT_Client_CreateUninitializedBuffer",
        contents: Contents::Any,
        make: |maker| {
            maker.here(maker.client.uninitialized(maker.sample.element_type, maker.dims(), maker.memory))
        },
        fault: "PJRT_Client_CreateUninitializedBuffer when shape_element_type=15 shape_num_dims=0 give shape_element_type=14",
        also: &[],
    },
    Way {
        name: "errors",
        what: "an array that is in error",
        function: "PJRT_Client_CreateErrorBuffer",
        contents: Contents::None,
        make: |maker| {
            let error = (Code::ABORTED, "given up");
            maker.here(maker.client.error_buffer(
                error,
                maker.sample.element_type,
                maker.dims(),
                maker.memory,
            ))
        },
        fault: "PJRT_Client_CreateErrorBuffer when shape_element_type=15 shape_num_dims=0 give shape_element_type=14",
        also: &[],
    },
];

/// Returns a check for each way.
pub(super) fn by_way() -> Vec<Check> {
    let check = |way: &'static Way| {
        Check {
        rule: format!(
            "The arrays that {} creates have their type, dimensions, size and elements, for every element type and rank, on \
             each device: here {}.",
            way.function, way.what
        ).into(),
        source: Source::Header { place: way.function, text: TYPES },
        fault: way.fault.into(),
        also: way.also,
        users: Users::Callers(way.function),
        run: Box::new(move |context| is_whole(context, way)),
        ..of_name(&format!("shapes/{}", way.name))
    }
    };
    WAYS.iter().map(check).collect()
}

fn is_whole(context: &Context, way: &Way) -> Verdict {
    let client = context.client()?;
    for_each_sample(context, &client, |device, sample, source| {
        let is_control = way.name != "uploads";
        if is_control && !is_good(device, sample, source) {
            return Ok(());
        }
        let memory = device.default_memory()?;
        let arrays = (way.make)(&Maker { client: &client, device, memory, sample, source })
            .map_err(|finding| about(finding, way.what, sample))?;
        for (array, on) in &arrays {
            if way.contents == Contents::Elements {
                array.ready()?.wait()?;
            }
            for property in PROPERTIES {
                // An array in error occupies no memory.
                if way.contents != Contents::None || !property.name.starts_with("size_") {
                    property.check(way.what, array, sample, *on)?;
                }
            }
            match way.contents {
                Contents::Elements => sample.check(way.what, &array.read()?)?,
                Contents::Any => {
                    equal("the number of bytes of a readback", array.read()?.len(), sample.bytes.len())?
                }
                Contents::None => {}
            }
        }
        Ok(())
    })
}

/// Adds the array to a message.
pub(super) fn about(finding: Finding, what: &str, sample: &Shaped) -> Finding {
    match finding {
        Finding::Wrong(why) => Finding::Wrong(format!("{what}, {sample}: {why}")),
        other => other,
    }
}
