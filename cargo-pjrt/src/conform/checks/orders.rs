//! Checks of orders of dimensions, for each element type, for arrays that are copied in blocks, and on the device.

use super::entry::{Entry, NONE, check};
use super::samples::{Shaped, element_types, uploaded};
use crate::conform::harness::{
    Context, Expected, Finding, ORDER_IGNORED, Verdict, elements_at, ensure, equal, offsets, permutations,
    reordered,
};
use crate::requirements::Profile;
use pjrt_testing::host::{Buffer, Client, Code, CopyLayout, ElementType, HostArray, Layout};

const LAYOUT: &str = "PJRT_Buffer_ToHostBuffer_Args::host_layout";
const LAYOUT_TEXT: &str = "The caller can specify the layout of the data in host memory.";

pub(super) const CHECKS: &[Entry] = &[
    check(
        "layouts/each_type_in_each_order",
        "Uploads with strides and readbacks with a layout respect each order of two to four dimensions, for each element type.",
        each_type,
        "PJRT_Buffer_ToHostBuffer of_type 9 when host_layout!=0 give host_layout=null",
    )
    .header(LAYOUT, LAYOUT_TEXT)
    .needed_by(&[Profile::Jax]),
    check(
        "layouts/large_arrays_in_each_order",
        "Uploads with strides and readbacks with a layout respect each order of dimensions of arrays that are larger than blocks of 32, 64 and 256 elements, and no multiples of them.",
        large_arrays,
        "PJRT_Client_BufferFromHostBuffer when num_byte_strides=2 dims.0=67 give byte_strides=null num_byte_strides=0",
    )
    .header("PJRT_Client_BufferFromHostBuffer_Args::byte_strides", "The number of bytes to traverse per dimension. They may be zero or negative; then data points to the element whose indices are all 0.")
    .only_used_by(NONE)
    .needed_by(&[Profile::Jax]),
    check(
        "layouts/device_layouts",
        "`device_layout` describes the array on the device and not the host's memory: an array with any order of dimensions there, unless the plugin refuses it, has the same elements.",
        device_layouts,
        "PJRT_Client_BufferFromHostBuffer when device_layout!=0 num_dims=2 dims.0=3 dims.1=8 give data=zeros",
    )
    .header("PJRT_Client_BufferFromHostBuffer_Args::device_layout", "If nullptr, use the default device layout; the layout is that of the buffer on the device.")
    .only_used_by(&[Profile::Jax]),
];

/// Returns the elements of an array in the order in which a layout stores them; `order` is from major to minor.
fn stored(sample: &Shaped, order: &[usize]) -> Vec<u8> {
    let size = sample.element_type.byte_size();
    reordered(&sample.bytes, size, &sample.dims, order)
}

/// Returns the strides of an array that is stored in this order.
fn strides(sample: &Shaped, order: &[usize]) -> Vec<i64> {
    let mut strides = vec![0; sample.dims.len()];
    let mut next = sample.element_type.byte_size() as i64;
    for &dim in order.iter().rev() {
        strides[dim] = next;
        next *= sample.dims[dim];
    }
    strides
}

/// Returns the elements that are read with these strides from memory in which the elements are dense and row-major.
fn misread(sample: &Shaped, strides: &[i64]) -> Vec<u8> {
    let size = sample.element_type.byte_size();
    elements_at(&sample.bytes, &offsets(&sample.dims, strides, 0), size)
}

fn layout(order: &[usize]) -> Layout {
    Layout::MinorToMajor(order.iter().rev().map(|dim| *dim as i64).collect())
}

/// Fails unless elements that were read are the expected ones.
fn compare(
    what: &str,
    sample: &Shaped,
    expected: &[u8],
    dims: &[i64],
    read: &[u8],
    ignored: &[u8],
) -> Verdict {
    let used = sample.element_type.used_bits();
    let masked = |bytes: &[u8]| bytes.iter().map(|byte| byte & used).collect::<Vec<u8>>();
    Expected::new(what, &masked(expected), sample.element_type, dims)
        .suspect(masked(ignored), ORDER_IGNORED)
        .check(&masked(read))
}

/// Uploads an array in each order of dimensions, and reads an array in each order.
fn in_each_order(client: &Client, sample: &Shaped, array: &Buffer) -> Verdict {
    for order in permutations(sample.dims.len()) {
        let (ordered, strides) = (stored(sample, &order), strides(sample, &order));
        let host = HostArray {
            strides: Some(&strides),
            ..HostArray::new(&ordered, sample.element_type, &sample.dims)
        };
        let strided = client.upload(&host, Some(client.device()?), None)?.buffer;
        let what = format!("an array {sample} that was uploaded with the strides {strides:?}");
        compare(&what, sample, &sample.bytes, &sample.dims, &strided.read()?, &ordered)?;
        let layout = layout(&order);
        let read = array.read_into(sample.bytes.len(), &CopyLayout::Layout(layout.clone()))?;
        let what = format!("an array {sample} that was read with the layout {layout:?}");
        let dims: Vec<i64> = order.iter().map(|dim| sample.dims[*dim]).collect();
        compare(&what, sample, &ordered, &dims, &read, &sample.bytes)?;
    }
    Ok(())
}

/// Checks arrays of some types and dimensions, and skips types that the plugin does not support.
fn of_types(
    context: &Context,
    types: impl Iterator<Item = ElementType>,
    shapes: &[&[i64]],
    check: impl Fn(&Client, &Shaped, &Buffer) -> Verdict,
) -> Verdict {
    let client = context.client()?;
    let mut checked = false;
    for element_type in types {
        for (number, dims) in shapes.iter().enumerate() {
            let sample = Shaped::new(element_type, dims, number);
            let Some(array) = uploaded(&client, client.device()?, &sample)? else { break };
            check(&client, &sample, &array)?;
            checked = true;
        }
    }
    match checked {
        true => Ok(()),
        false => Err(Finding::Unsupported("no array can be uploaded".to_owned())),
    }
}

fn each_type(context: &Context) -> Verdict {
    of_types(context, element_types(context), &[&[3, 5], &[2, 3, 4], &[2, 1, 3, 2]], in_each_order)
}

fn large_arrays(context: &Context) -> Verdict {
    const NAMES: [&str; 5] = ["ui8", "f16", "f32", "i64", "complex<f64>"];
    let types = NAMES.iter().filter_map(|name| ElementType::by_stablehlo_name(name));
    of_types(context, types, &[&[67, 131], &[129, 66], &[3, 300], &[515, 2], &[33, 5, 65]], in_each_order)
}

/// Returns the order of dimensions that the plugin reports for an array, from minor to major.
fn reported(array: &Buffer) -> Option<Vec<i64>> {
    array.memory_layout().ok().flatten()
}

fn device_layouts(context: &Context) -> Verdict {
    let client = context.client()?;
    let mut accepted = false;
    for element_type in [ElementType::F32, ElementType::U8, ElementType::S64] {
        for (number, dims) in [&[3, 8][..], &[2, 3, 5]].into_iter().enumerate() {
            let sample = Shaped::new(element_type, dims, number);
            for order in permutations(dims.len()) {
                accepted |= with_device_layout(&client, &sample, &order)?;
            }
        }
    }
    match accepted {
        true => Ok(()),
        false => Err(Finding::Unsupported("the plugin refuses layouts other than the default".to_owned())),
    }
}

/// Uploads an array with a layout on the device, from dense and from strided memory. Returns `false` if it is refused.
fn with_device_layout(client: &Client, sample: &Shaped, order: &[usize]) -> Result<bool, Finding> {
    let (ordered, of_order) = (stored(sample, order), strides(sample, order));
    let plain = HostArray { device_layout: Some(layout(order)), ..sample.host() };
    let strided = HostArray { bytes: &ordered, strides: Some(&of_order), ..plain.clone() };
    for (how, host) in [("dense memory", plain), ("memory with strides", strided)] {
        let array = match client.upload(&host, Some(client.device()?), None) {
            Err(error) if [Code::UNIMPLEMENTED, Code::INVALID_ARGUMENT].contains(&error.code) => {
                return Ok(false);
            }
            uploaded => uploaded?.buffer,
        };
        let what = format!(
            "an array {sample} that was uploaded from {how} with the device_layout {:?}",
            layout(order)
        );
        equal(&format!("the dimensions of {what}"), array.dims()?, sample.dims.clone())?;
        let row_major = CopyLayout::Layout(Layout::dense(sample.dims.len()));
        let read = array.read_into(sample.bytes.len(), &row_major)?;
        Expected::new(&what, &sample.bytes, sample.element_type, &sample.dims)
            .suspect(
                misread(sample, &of_order),
                "the plugin reads the host's memory in the order of device_layout, which describes the array on the device",
            )
            .check(&read)?;
        let wanted: Vec<i64> = order.iter().rev().map(|dim| *dim as i64).collect();
        let row_major: Vec<i64> = (0..sample.dims.len() as i64).rev().collect();
        // Some plugins take the layout as a wish.
        ensure!(
            reported(&array).is_none_or(|got| got == wanted || got == row_major),
            "PJRT_Buffer_GetMemoryLayout of {what} reports minor_to_major {:?}, which is neither this order nor the default",
            reported(&array)
        );
    }
    Ok(true)
}
