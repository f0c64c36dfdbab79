//! Checks of layouts in host memory: strides of uploads, and orders of dimensions of readbacks.

use super::arrays::{launch, numbered};
use super::entry::{Entry, NONE, check};
use crate::conform::harness::{
    Context, Expected, Finding, LAYOUT_IGNORED, STRIDES_IGNORED, Verdict, accepts, add_program, elements_at,
    ensure, equal, f32_bytes, narrowest, offsets, permutations, reordered,
};
use crate::requirements::Profile;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{
    Buffer, Client, Code, CopyLayout, ElementType, Error, HostArray, Layout, Program, Semantics, Tile,
    UNWRITTEN,
};

const STRIDES: &str = "PJRT_Client_BufferFromHostBuffer_Args::byte_strides";
const STRIDES_TEXT: &str = "The number of bytes to traverse per dimension. They may be zero or negative; then data points to the element whose indices are all 0.";
const LAYOUT: &str = "PJRT_Buffer_ToHostBuffer_Args::host_layout";
const LAYOUT_TEXT: &str = "The caller can specify the layout of the data in host memory.";
const JAX: &[Profile] = &[Profile::Jax];

pub(super) const CHECKS: &[Entry] = &[
    check(
        "layouts/strides_of_one_byte_types",
        "Strides are respected for element types of one byte: booleans, and integers of 8 and fewer bits.",
        one_byte,
        "PJRT_Client_BufferFromHostBuffer when type_=6 num_byte_strides=3 give byte_strides=null num_byte_strides=0",
    )
    .header(STRIDES, STRIDES_TEXT)
    .needed_by(JAX),
    check(
        "layouts/strides_of_large_types",
        "Strides are respected for element types of 2, 8 and 16 bytes.",
        large_types,
        "PJRT_Client_BufferFromHostBuffer when type_=15 num_byte_strides=2 dims.0=5 dims.1=7 give byte_strides=null num_byte_strides=0",
    )
    .header(STRIDES, STRIDES_TEXT)
    .needed_by(JAX),
    check(
        "layouts/strides_at_rank_4_and_5",
        "Strides are respected for each order of four and five dimensions.",
        rank_4_and_5,
        "PJRT_Client_BufferFromHostBuffer when num_byte_strides=4 type_=4 host_buffer_semantics=2 give byte_strides=null num_byte_strides=0",
    )
    .header(STRIDES, STRIDES_TEXT)
    .needed_by(JAX),
    check(
        "layouts/strides_of_slices",
        "Strides can describe a part of an array: some columns, every second row, and an inner block.",
        slices,
        "PJRT_Client_BufferFromHostBuffer when type_=4 num_byte_strides=2 byte_strides.0=44 host_buffer_semantics=3 give byte_strides=null num_byte_strides=0",
    )
    .header(STRIDES, STRIDES_TEXT)
    .needed_by(JAX),
    check(
        "layouts/negative_strides_at_rank_3",
        "Each of three strides can be negative.",
        negative,
        "PJRT_Client_BufferFromHostBuffer when type_=4 num_byte_strides=3 byte_strides.1=-16 give byte_strides=null num_byte_strides=0",
    )
    .header(STRIDES, STRIDES_TEXT)
    .needed_by(JAX),
    check(
        "layouts/strides_of_zero_at_rank_3",
        "Each of three strides can be zero, which repeats the elements along that dimension.",
        zero,
        "PJRT_Client_BufferFromHostBuffer when type_=4 num_byte_strides=3 byte_strides.0=0 give byte_strides=null num_byte_strides=0",
    )
    .header(STRIDES, STRIDES_TEXT)
    .needed_by(JAX),
    check(
        "layouts/strides_of_dimensions_of_one",
        "The stride of a dimension of size 1 can be any number: NumPy does not normalize them.",
        of_one,
        "PJRT_Client_BufferFromHostBuffer when num_byte_strides=3 byte_strides.0=1099511627776 fail INVALID_ARGUMENT",
    )
    .header(STRIDES, STRIDES_TEXT)
    .needed_by(JAX),
    check(
        "layouts/strides_of_no_elements",
        "The strides of an array without elements can be any numbers.",
        of_none,
        "PJRT_Client_BufferFromHostBuffer when num_byte_strides=2 dims.0=0 byte_strides.1=-12 fail INVALID_ARGUMENT",
    )
    .header(STRIDES, STRIDES_TEXT)
    .needed_by(JAX),
    check(
        "layouts/program_of_strided_arguments",
        "A program reads the elements of arguments that were uploaded with strides in their logical order, and its outputs are row-major.",
        program,
        "PJRT_LoadedExecutable_Execute when options>launch_id=960 give_other_argument",
    )
    .header(STRIDES, STRIDES_TEXT)
    .needed_by(&[Profile::Jax, Profile::TorchXla]),
    check(
        "layouts/readback_at_rank_3",
        "A readback respects each order of three dimensions in minor_to_major.",
        read_rank_3,
        "PJRT_Buffer_ToHostBuffer when host_layout>type_=0 dst_size=168 give host_layout=null",
    )
    .header(LAYOUT, LAYOUT_TEXT)
    .needed_by(JAX),
    check(
        "layouts/readback_at_rank_4_of_one_byte",
        "A readback of a one-byte type respects each order of four dimensions in minor_to_major.",
        read_rank_4,
        "PJRT_Buffer_ToHostBuffer when host_layout>type_=0 dst_size=210 give host_layout=null",
    )
    .header(LAYOUT, LAYOUT_TEXT)
    .needed_by(JAX),
    check(
        "layouts/readback_by_strides_at_rank_3",
        "A readback with strides respects each order of three dimensions, unless the plugin refuses strides.",
        read_strides,
        "PJRT_Buffer_ToHostBuffer when host_layout>type_=1 dst_size=264 give host_layout=null",
    )
    .header(LAYOUT, LAYOUT_TEXT)
    .only_used_by(NONE),
    check(
        "layouts/size_of_a_layout",
        "The size that a readback needs does not depend on the order of the dimensions.",
        size,
        "PJRT_Buffer_ToHostBuffer when dst=0 host_layout!=0 set dst_size=7",
    )
    .header("PJRT_Buffer_ToHostBuffer_Args::dst_size", "If dst is null, the function sets the size of the data in the layout.")
    .needed_by(JAX),
    check(
        "layouts/readback_with_tiles",
        "A host layout with tiles is respected or refused; the plugin does not ignore the tiles.",
        tiles,
        "PJRT_Buffer_ToHostBuffer when host_layout>type_=0 dst_size=256 accept set event=complete",
    )
    .header("PJRT_Buffer_MemoryLayout_Tiled::tile_dims", "The dimensions of the tiles of the layout."),
];

/// An array in host memory with strides.
pub(super) struct Strided {
    pub(super) element_type: ElementType,
    pub(super) dims: Vec<i64>,
    pub(super) strides: Vec<i64>,
    pub(super) memory: Vec<u8>,
    /// The offset of the element whose indices are all 0.
    pub(super) first: usize,
    /// The elements, dense and row-major.
    pub(super) expected: Vec<u8>,
}

impl Strided {
    pub(super) fn new(element_type: ElementType, dims: &[i64], strides: &[i64]) -> Self {
        let size = element_type.byte_size();
        let reach =
            || dims.iter().zip(strides).filter(|(dim, _)| **dim > 1).map(|(dim, stride)| (dim - 1) * stride);
        let before = -reach().filter(|reach| *reach < 0).sum::<i64>();
        let after: i64 = reach().filter(|reach| *reach > 0).sum();
        let elements = dims.iter().product::<i64>() as usize;
        // A plugin that ignores the strides reads a dense array from the first element, which must not crash.
        let len = (before + after) as usize / size + 1 + elements;
        let memory = numbered(element_type, len);
        let expected = elements_at(&memory, &offsets(dims, strides, before as usize), size);
        Self {
            element_type,
            dims: dims.to_vec(),
            strides: strides.to_vec(),
            memory,
            first: before as usize,
            expected,
        }
    }

    /// Returns an array whose dimensions are stored in this order, from major to minor.
    fn ordered(element_type: ElementType, dims: &[i64], order: &[usize]) -> Self {
        Self::new(element_type, dims, &strides_of(element_type, dims, order))
    }

    /// Transfers the array, reads it back, and compares it.
    fn check(&self, client: &Client) -> Verdict {
        let Self { element_type, dims, strides, memory, first, expected } = self;
        for semantics in Semantics::ALL {
            let array = HostArray {
                strides: Some(strides),
                first: *first,
                semantics,
                ..HostArray::new(memory, *element_type, dims)
            };
            let uploaded = client.upload(&array, Some(client.device()?), None)?;
            let read = uploaded.buffer.read()?;
            let what = format!(
                "an array {element_type}{dims:?} that was uploaded with the strides {strides:?} and {semantics:?}"
            );
            let positive = elements_at(
                memory,
                &offsets(dims, &strides.iter().map(|stride| stride.abs()).collect::<Vec<_>>(), 0),
                element_type.byte_size(),
            );
            Expected::new(&what, expected, *element_type, dims)
                .strides(strides)
                .suspect(positive, "the plugin takes negative strides for positive ones")
                .suspect(&memory[*first..*first + expected.len()], STRIDES_IGNORED)
                .suspect(
                    &memory[..expected.len()],
                    "the strides were ignored, and the plugin copied from the start of the memory",
                )
                .check(&read)?;
        }
        Ok(())
    }
}

/// Returns the strides of a dense array whose dimensions are stored in this order, from major to minor.
pub(super) fn strides_of(element_type: ElementType, dims: &[i64], order: &[usize]) -> Vec<i64> {
    let mut strides = vec![0; dims.len()];
    let mut next = element_type.byte_size() as i64;
    for &dim in order.iter().rev() {
        strides[dim] = next;
        next *= dims[dim];
    }
    strides
}

/// Returns the types with these names that exist in the plugin's version of the C API.
fn types(context: &Context, names: &[&str]) -> Vec<ElementType> {
    let types = names.iter().filter_map(|name| ElementType::by_stablehlo_name(name));
    types.filter(|element_type| element_type.since() <= context.minor()).collect()
}

/// Checks arrays of several types, and skips types that the plugin does not support.
fn of_types(context: &Context, names: &[&str], shapes: &[&[i64]]) -> Verdict {
    let client = context.client()?;
    let mut supported = 0;
    for element_type in types(context, names) {
        let plain = HostArray::new(&[1; 16], element_type, &[1]);
        match client.upload(&plain, Some(client.device()?), None) {
            Err(error) if [Code::UNIMPLEMENTED, Code::INVALID_ARGUMENT].contains(&error.code) => continue,
            uploaded => drop(uploaded?),
        }
        supported += 1;
        for dims in shapes {
            for order in permutations(dims.len()) {
                Strided::ordered(element_type, dims, &order).check(&client)?;
            }
        }
    }
    match supported {
        // No host needs strides of types that the device does not have.
        0 => Err(Finding::NotApplicable(format!("the plugin supports none of the types {names:?}"))),
        _ => Ok(()),
    }
}

fn one_byte(context: &Context) -> Verdict {
    let names = ["ui8", "i8", "i1", "i4", "ui4", "i2", "ui2", "f8E5M2"];
    of_types(context, &names, &[&[5, 7], &[6, 6], &[2, 3, 4], &[64, 33]])
}

fn large_types(context: &Context) -> Verdict {
    let names = ["i16", "bf16", "f16", "i64", "f64", "complex<f32>", "complex<f64>"];
    of_types(context, &names, &[&[5, 7], &[6, 6], &[2, 3, 4]])
}

fn rank_4_and_5(context: &Context) -> Verdict {
    of_types(context, &["i32", "ui8"], &[&[2, 3, 4, 5], &[2, 3, 1, 2, 3], &[2, 2, 2, 2]])
}

/// Checks arrays of integers with strides.
fn all(context: &Context, arrays: &[(&[i64], &[i64])]) -> Verdict {
    let client = context.client()?;
    for (dims, strides) in arrays {
        Strided::new(ElementType::S32, dims, strides).check(&client)?;
    }
    Ok(())
}

fn slices(context: &Context) -> Verdict {
    // Of rows with 11 columns: 3 columns, every second row, every third column, and a block of three dimensions.
    all(
        context,
        &[
            (&[5, 3], &[44, 4]),
            (&[5, 11], &[88, 4]),
            (&[5, 4], &[44, 12]),
            (&[2, 3, 2], &[220, 44, 4]),
            (&[3, 5], &[4, 44]),
        ],
    )?;
    let client = context.client()?;
    if accepts(&client, ElementType::U8)? {
        Strided::new(ElementType::U8, &[5, 3], &[11, 1]).check(&client)?;
        Strided::new(ElementType::U8, &[5, 4], &[11, 3]).check(&client)?;
    }
    Ok(())
}

fn negative(context: &Context) -> Verdict {
    let client = context.client()?;
    for signs in 1..8 {
        let sign = |bit: i32| if signs >> bit & 1 == 1 { -1 } else { 1 };
        let strides = [48 * sign(0), 16 * sign(1), 4 * sign(2)];
        Strided::new(ElementType::S32, &[2, 3, 4], &strides).check(&client)?;
    }
    if accepts(&client, ElementType::U8)? {
        Strided::new(ElementType::U8, &[3, 5], &[5, -1]).check(&client)?;
    }
    Strided::new(ElementType::S32, &[3, 5], &[-4, 12]).check(&client)
}

fn zero(context: &Context) -> Verdict {
    all(
        context,
        &[
            (&[2, 3, 4], &[0, 16, 4]),
            (&[2, 3, 4], &[16, 0, 4]),
            (&[2, 3, 4], &[12, 4, 0]),
            (&[2, 3, 4], &[0, 4, 0]),
            (&[2, 3, 4], &[0, 0, 0]),
        ],
    )
}

fn of_one(context: &Context) -> Verdict {
    const HUGE: i64 = 1 << 40;
    all(
        context,
        &[
            (&[1, 4, 1], &[0, 4, -7]),
            (&[1, 4, 1], &[HUGE, 4, 0]),
            (&[4, 1, 3], &[12, -HUGE, 4]),
            (&[1], &[3]),
            (&[1, 1], &[-4, 1]),
            (&[1, 5, 3], &[4, 4, 20]),
        ],
    )
}

fn of_none(context: &Context) -> Verdict {
    let client = context.client()?;
    for (dims, strides) in [([0, 3], [100, -12]), ([3, 0], [0, 4]), ([0, 0], [-8, -8])] {
        let array =
            HostArray { strides: Some(&strides), ..HostArray::new(&[0; 64], ElementType::S32, &dims) };
        let uploaded = client.upload(&array, Some(client.device()?), None)?;
        equal("the dimensions", uploaded.buffer.dims()?, dims.to_vec())?;
        equal("the bytes", uploaded.buffer.read()?, Vec::new())?;
    }
    Ok(())
}

fn program(context: &Context) -> Verdict {
    const DIMS: &[i64] = &[3, 5];
    let client = context.client()?;
    // The strided array holds 0, 3, 6, ... in its first row: element (i, j) is number 3 j + i of the memory.
    let memory: Vec<f32> = (0..15_u8).map(f32::from).collect();
    let bytes = f32_bytes(&memory);
    let strided = HostArray { strides: Some(&[4, 12]), ..HostArray::new(&bytes, ElementType::F32, DIMS) };
    let ones = f32_bytes(&[100.0; 15]);
    let x = client.upload(&strided, Some(client.device()?), None)?.buffer;
    let y =
        client.upload(&HostArray::new(&ones, ElementType::F32, DIMS), Some(client.device()?), None)?.buffer;
    let text = add_program("3x5x");
    let program = client.compile(&Program::mlir(&text), &CompileOptions::default().encode())?;
    let sum = launch(&program, [&x, &y], 960)?.read()?;
    let of = |order: &dyn Fn(usize) -> usize| {
        f32_bytes(&(0..15).map(|at| 100.0 + memory[order(at)]).collect::<Vec<_>>())
    };
    let expected = of(&|at| 3 * (at % 5) + at / 5);
    Expected::new("the sum of an array that was uploaded with strides", &expected, ElementType::F32, DIMS)
        .suspect(
            of(&|at| at),
            "the program read the argument in the order of the host's memory, without the strides",
        )
        .check(&sum)
}

/// Transfers a dense array.
fn dense(client: &Client, element_type: ElementType, dims: &[i64]) -> Result<(Buffer, Vec<u8>), Error> {
    let bytes = numbered(element_type, dims.iter().product::<i64>() as usize);
    let array = HostArray::new(&bytes, element_type, dims);
    Ok((client.upload(&array, Some(client.device()?), None)?.buffer, bytes))
}

/// Returns the elements of a dense array with the dimensions in this order, from major to minor.
fn in_order(element_type: ElementType, bytes: &[u8], dims: &[i64], order: &[usize]) -> Vec<u8> {
    let size = element_type.byte_size();
    reordered(bytes, size, dims, order)
}

/// Reads an array with all orders of its dimensions.
fn read_orders(
    context: &Context,
    element_type: ElementType,
    dims: &[i64],
    layout: impl Fn(&[usize]) -> Layout,
) -> Verdict {
    let client = context.client()?;
    let (buffer, bytes) = dense(&client, element_type, dims)?;
    for order in permutations(dims.len()) {
        let layout = layout(&order);
        let read = buffer.read_into(bytes.len(), &CopyLayout::Layout(layout.clone()))?;
        let expected = in_order(element_type, &bytes, dims, &order);
        let what = format!("an array {element_type}{dims:?} that was read with the layout {layout:?}");
        let stored: Vec<i64> = order.iter().map(|dim| dims[*dim]).collect();
        Expected::new(&what, &expected, element_type, &stored)
            .suspect(bytes.clone(), LAYOUT_IGNORED)
            .check(&read)?;
    }
    Ok(())
}

fn minor_to_major(order: &[usize]) -> Layout {
    Layout::MinorToMajor(order.iter().rev().map(|dim| *dim as i64).collect())
}

fn read_rank_3(context: &Context) -> Verdict {
    read_orders(context, ElementType::S32, &[2, 3, 7], minor_to_major)
}

fn read_rank_4(context: &Context) -> Verdict {
    read_orders(context, narrowest(&context.client()?)?, &[2, 3, 5, 7], minor_to_major)
}

fn read_strides(context: &Context) -> Verdict {
    const DIMS: &[i64] = &[2, 3, 11];
    let strides = |order: &[usize]| Layout::Strides(strides_of(ElementType::S32, DIMS, order));
    let client = context.client()?;
    let (buffer, bytes) = dense(&client, ElementType::S32, DIMS)?;
    let plain = CopyLayout::Layout(strides(&[0, 1, 2]));
    if let Err(error) = buffer.read_into(bytes.len(), &plain) {
        return Err(Finding::Unsupported(format!("strides are refused: {error}")));
    }
    read_orders(context, ElementType::S32, DIMS, strides)
}

fn size(context: &Context) -> Verdict {
    let client = context.client()?;
    for element_type in [ElementType::S32, narrowest(&client)?] {
        let (buffer, bytes) = dense(&client, element_type, &[2, 3, 13])?;
        for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
            let layout = CopyLayout::Layout(minor_to_major(&order));
            equal("the size that a readback with a layout needs", buffer.host_size(&layout)?, bytes.len())?;
        }
    }
    Ok(())
}

fn tiles(context: &Context) -> Verdict {
    const DIMS: &[i64] = &[8, 8];
    let client = context.client()?;
    let (buffer, bytes) = dense(&client, ElementType::S32, DIMS)?;
    // Tiles of 2 x 4 elements fill the array without padding.
    let layout = CopyLayout::Layout(Layout::Tiled(vec![1, 0], Tile::new(vec![2, 4])));
    let Ok(read) = buffer.read_into(bytes.len(), &layout) else { return Ok(()) };
    let expected = in_order(ElementType::S32, &bytes, &[4, 2, 2, 4], &[0, 2, 1, 3]);
    ensure!(
        read.iter().any(|byte| *byte != UNWRITTEN),
        "the readback succeeded, but the plugin wrote nothing"
    );
    Expected::new("an array that was read with tiles", &expected, ElementType::S32, &[])
        .suspect(bytes, "the tiles were ignored: the elements are row-major")
        .check(&read)
}
