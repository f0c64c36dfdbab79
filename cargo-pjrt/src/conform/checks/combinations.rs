//! Checks of combinations of the options of transfers: the host buffer semantics, the layout in host memory, the rank and the
//! size of the array, its element type, and the memory.

use std::fmt;

use super::entry::{Entry, check};
use super::layouts::{Strided, strides_of};
use crate::conform::harness::{
    Context, Expected, Finding, LAYOUT_IGNORED, STRIDES_IGNORED, UNKNOWN, Verdict, accepts, is_brief,
    memory_name, reordered,
};
use pjrt_testing::host::{
    Client, CopyLayout, Device, ElementType, Error, HostArray, Layout, Memory, Semantics, Uploaded,
    in_traced_step,
};

pub(super) const CHECKS: &[Entry] = &[
    check(
        "upload/each_combination",
        "An upload is right for each combination of host buffer semantics, strides or layout, number of dimensions, size, element type, device and memory.",
        uploads,
        "PJRT_Client_BufferFromHostBuffer when num_byte_strides=2 dims.0=65 host_buffer_semantics=2 give byte_strides=null num_byte_strides=0",
    )
    .header("PJRT_Client_BufferFromHostBuffer_Args", "The fields are independent of each other: `host_buffer_semantics` says how long the memory is valid, `byte_strides` and `device_layout` how elements are stored, `device` and `memory` where the array is created."),
    check(
        "readback/each_combination",
        "A readback is right for each combination of layout in host memory, number of dimensions, size, element type, device and memory.",
        readbacks,
        "PJRT_Buffer_ToHostBuffer when host_layout!=0 dst_size=33540 give host_layout=null",
    )
    .header("PJRT_Buffer_ToHostBuffer_Args::host_layout", "The layout of the array in the host's memory; if null, that of the array."),
];

/// The dimensions: no and one element, no elements, and sizes beyond those of vectors and tiles.
const DIMS: &[&[i64]] =
    &[&[], &[1], &[0, 3], &[7], &[3, 5], &[2, 3, 4], &[65, 129], &[2, 1, 3, 5], &[129, 257]];

/// The elements of arrays that are only checked with one element type.
const MANY: i64 = 1000;

/// The elements of arrays that are only checked in one memory.
const LARGE: i64 = 20_000;

/// Types of several widths, and one of which hosts store elements in bytes although they have fewer bits.
const TYPES: [&str; 6] = ["f32", "i1", "ui8", "i4", "bf16", "complex<f64>"];

/// The number of memories in which arrays of types other than the first are checked.
const OF_OTHER_TYPES: usize = 1;

/// The ways in which the host describes its memory.
#[derive(Clone, Copy, PartialEq)]
enum Described {
    Dense,
    RowMajorStrides,
    ColumnMajorStrides,
    BackwardStrides,
    RowMajorLayout,
}

const DESCRIBED: [Described; 5] = [
    Described::Dense,
    Described::RowMajorStrides,
    Described::ColumnMajorStrides,
    Described::BackwardStrides,
    Described::RowMajorLayout,
];

impl Described {
    /// Returns the array in host memory.
    fn array(self, element_type: ElementType, dims: &[i64]) -> Strided {
        let rank = dims.len();
        let mut order: Vec<usize> = (0..rank).collect();
        if self == Self::ColumnMajorStrides {
            order.reverse();
        }
        let mut strides = strides_of(element_type, dims, &order);
        let has_elements = dims.iter().all(|dim| *dim > 0);
        if let (Self::BackwardStrides, true, Some(first)) = (self, has_elements, strides.first_mut()) {
            *first = -*first;
        }
        Strided::new(element_type, dims, &strides)
    }
}

impl fmt::Display for Described {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dense => "neither byte_strides nor device_layout",
            Self::RowMajorStrides => "row-major byte_strides",
            Self::ColumnMajorStrides => "column-major byte_strides",
            Self::BackwardStrides => "a negative byte stride",
            Self::RowMajorLayout => "a row-major device_layout",
        })
    }
}

/// A memory, and its device.
type Place<'c> = (Device<'c>, Memory<'c>);

/// Calls `work` for each type that the plugin accepts and each shape, with the memories in which it is checked. A check that
/// [runs again](is_brief) uses one type and one memory.
fn for_each_type<'c>(
    client: &'c Client,
    mut work: impl FnMut(ElementType, &[i64], &[Place<'c>]) -> Verdict,
) -> Verdict {
    let places = places(client)?;
    let types = if is_brief() { &TYPES[..1] } else { &TYPES[..] };
    for (index, name) in types.iter().enumerate() {
        let Some(element_type) = ElementType::by_stablehlo_name(name) else { continue };
        if !accepts(client, element_type)? {
            continue;
        }
        for dims in DIMS.iter().filter(|dims| index == 0 || dims.iter().product::<i64>() < MANY) {
            let most = match (index, dims.iter().product::<i64>() > LARGE) {
                (_, true) => 1,
                (0, _) if is_brief() => 1,
                (0, _) => places.len(),
                _ => OF_OTHER_TYPES.min(places.len()),
            };
            in_traced_step(&format!("{element_type}{dims:?}"), || work(element_type, dims, &places[..most]))?;
        }
    }
    Ok(())
}

/// Describes an array and its place, for messages.
fn named(array: &Strided, (device, memory): Place<'_>) -> Result<String, Error> {
    Ok(format!(
        "{}{:?} in {} of the device {}",
        array.element_type,
        array.dims,
        memory_name(memory),
        device.description()?.id()?
    ))
}

/// Returns the places in which the plugin stores arrays: the default memory of the first device, its other memories that the
/// plugin does not refuse, and the default memories of other devices.
fn places(client: &Client) -> Result<Vec<Place<'_>>, Error> {
    const MOST: usize = 5;
    let array = HostArray::new(&[0; 16], ElementType::F32, &[4]);
    let first = client.device()?;
    let is_default =
        |(device, memory): &Place<'_>| device.default_memory().is_ok_and(|default| default == *memory);
    let mut places = vec![(first, first.default_memory()?)];
    let others = client.places()?.into_iter().filter(|place| *place != places[0]);
    let others: Vec<_> = others
        .filter(|place| match place.0 == first {
            true => client.upload(&array, None, Some(place.1)).is_ok(),
            false => is_default(place),
        })
        .collect();
    places.extend(others);
    places.truncate(MOST);
    Ok(places)
}

fn upload(
    client: &Client,
    array: &Strided,
    described: Described,
    semantics: Semantics,
    memory: Memory<'_>,
) -> Result<Uploaded, Error> {
    let is_strided = !matches!(described, Described::Dense | Described::RowMajorLayout);
    let host = HostArray {
        strides: is_strided.then_some(&array.strides[..]),
        first: array.first,
        semantics,
        device_layout: (described == Described::RowMajorLayout).then(|| Layout::dense(array.dims.len())),
        ..HostArray::new(&array.memory, array.element_type, &array.dims)
    };
    client.upload(&host, None, Some(memory))
}

fn uploads(context: &Context) -> Verdict {
    let client = context.client()?;
    for_each_type(&client, |element_type, dims, places| {
        // A layout does not say how many bits an element has.
        let can_have_layout = element_type.fills_bytes();
        for described in
            DESCRIBED.into_iter().filter(|of| can_have_layout || *of != Described::RowMajorLayout)
        {
            let array = described.array(element_type, dims);
            for (place, semantics) in
                places.iter().flat_map(|place| Semantics::ALL.map(|semantics| (*place, semantics)))
            {
                let how =
                    format!("an upload of {} with {semantics:?} and {described}", named(&array, place)?);
                let is_plain = described == Described::Dense && place == places[0];
                let cause = if is_plain { UNKNOWN } else { COMBINED };
                let uploaded = upload(&client, &array, described, semantics, place.1);
                let Uploaded { buffer, done, memory } = uploaded
                    .map_err(|error| Finding::Wrong(format!("{how} was refused: {error}{}", also(cause))))?;
                Expected::new(&how, &array.expected, element_type, dims)
                    .suspect(&array.memory[..], STRIDES_IGNORED)
                    .otherwise(cause)
                    .check_array(&buffer)?;
                drop(buffer);
                done.wait()?;
                memory.recycle();
            }
        }
        Ok(())
    })
}

/// The probable cause of a failure of one combination.
const COMBINED: &str = "the plugin probably handles one combination of options in code of its own, because other checks use each option alone";

/// Returns a probable cause as the end of a message about an error, which says by itself what is not known.
fn also(cause: &str) -> String {
    if cause == UNKNOWN { String::new() } else { format!("; {cause}") }
}

/// The orders of dimensions in host memory, from minor to major; `None` is that of the array.
fn orders(rank: usize) -> [Option<Vec<usize>>; 3] {
    [None, Some((0..rank).rev().collect()), Some((0..rank).collect())]
}

/// Returns row-major elements in an order of dimensions, from minor to major.
fn in_order(array: &Strided, minor_to_major: &[usize]) -> Vec<u8> {
    let size = array.element_type.byte_size();
    let major_to_minor: Vec<usize> = minor_to_major.iter().rev().copied().collect();
    reordered(&array.expected, size, &array.dims, &major_to_minor)
}

fn readbacks(context: &Context) -> Verdict {
    let client = context.client()?;
    for_each_type(&client, |element_type, dims, places| {
        let array = Described::Dense.array(element_type, dims);
        for order in orders(dims.len()) {
            let (expected, layout) = match &order {
                None => (array.expected.clone(), CopyLayout::Unsaid),
                Some(order) => {
                    let layout = Layout::MinorToMajor(order.iter().map(|dim| *dim as i64).collect());
                    (in_order(&array, order), CopyLayout::Layout(layout))
                }
            };
            for place in places {
                let semantics = Semantics::ImmutableOnlyDuringCall;
                let uploaded = upload(&client, &array, Described::Dense, semantics, place.1)?;
                let layout_text = match &order {
                    None => "without a host_layout".to_owned(),
                    Some(order) => format!("with the host_layout minor_to_major={order:?}"),
                };
                let how = format!("a readback of {} {layout_text}", named(&array, *place)?);
                let is_plain = order.is_none() && *place == places[0];
                let cause = if is_plain { UNKNOWN } else { COMBINED };
                let read = uploaded.buffer.read_into(expected.len(), &layout);
                let read =
                    read.map_err(|error| Finding::Wrong(format!("{how} failed: {error}{}", also(cause))))?;
                uploaded.memory.recycle();
                Expected::new(&how, &expected, element_type, dims)
                    .suspect(&array.expected[..], LAYOUT_IGNORED)
                    .otherwise(cause)
                    .check(&read)?;
            }
        }
        Ok(())
    })
}
