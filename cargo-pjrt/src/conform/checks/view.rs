//! Checks of views: buffers over memory that the host continues to write to.

use super::devices::others;
use super::entry::{Entry, check};
use super::program_text::{compiled, with_main};
use super::upload::{pattern, same_elements};
use crate::conform::harness::{
    Check, Context, Finding, Source, Users, Verdict, add_program, ensure, equal, f32_bytes, numbers,
    patience, refused,
};
use crate::requirements::Profile;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{
    Buffer, Client, Code, ElementType, ExecuteOptions, HostArray, LoadedExecutable, Program, Result,
    ViewMemory, eventually,
};

pub(super) const CHECKS: &[Entry] = &[
    check(
        "view/donated",
        "The callback of a view that a program donates, or could donate, is called once after the view and the output are destroyed.",
        donated,
        "PJRT_LoadedExecutable_Execute when options>launch_id=615 zeroed_output 0",
    )
    .header("PJRT_Client_CreateViewOfDeviceBuffer_Args::on_delete_callback", "The callback is called when the buffer is deleted or no longer needed.")
    .only_used_by(&[Profile::Jax]),
    check(
        "view/seen_by_executions",
        "Every execution that starts after a write of the host to a view's memory sees the written values.",
        seen_by_executions,
        "PJRT_Client_CreateViewOfDeviceBuffer when num_dims=2 dims.0=1 dims.1=4 copy_memory",
    )
    .header("PJRT_Client_CreateViewOfDeviceBuffer", "Creates a PJRT buffer that is a non-owned view of an on-device buffer.")
    .only_used_by(&[Profile::Gomlx])
    .since(33),
    check(
        "view/output_is_no_view",
        "An output does not share the memory of an argument that is a view: it does not change when the host writes to that memory.",
        output_stays,
        "PJRT_LoadedExecutable_Execute when options>launch_id=978 view_of_argument",
    )
    .header("PJRT_LoadedExecutable_Execute_Args::output_lists", "PJRT_Buffer_Destroy must be called on the output PJRT_Buffer*: outputs are separate buffers.")
    .since(33),
    check(
        "view/copies_stay",
        "A copy of a view has the contents at the time of the copy: it does not change when the host writes to the view's memory.",
        copies_stay,
        "PJRT_Buffer_CopyToMemory since PJRT_Client_CreateViewOfDeviceBuffer view_of_source",
    )
    .header("PJRT_Buffer_CopyToMemory", "Copies the buffer to memory `dst_memory` within the same client.")
    .since(33),
    check(
        "view/address",
        "The address of a view is that of the host's memory.",
        address,
        "PJRT_Buffer_UnsafePointer since PJRT_Client_CreateViewOfDeviceBuffer set buffer_pointer+64",
    )
    .host("go-xla, pjrt/buffers_shared.go, Buffer.Data", "Reads and writes the elements of a shared buffer at the address that PJRT_Buffer_UnsafePointer returns.")
    .since(33),
    check(
        "view/of_no_elements",
        "The pointer of a view without elements can be null.",
        no_elements,
        "PJRT_Client_CreateViewOfDeviceBuffer when device_buffer_ptr=0 dims.1=0 fail INVALID_ARGUMENT",
    )
    .host("JAX, jaxlib/dlpack.cc", "Passes the pointer of a DLPack tensor, which is null for PyTorch's empty tensors.")
    .since(33),
    check(
        "view/unaligned",
        "A view of memory that is not aligned for its elements has the elements that are there, or is refused with INVALID_ARGUMENT, and then its callback is not called.",
        unaligned,
        "PJRT_Client_CreateViewOfDeviceBuffer when device_buffer_ptr%8=4 element_type=12 code INTERNAL",
    )
    .host("JAX, jaxlib/dlpack.cc", "Copies an array of DLPack if the view is refused with INVALID_ARGUMENT, and raises every other error.")
    .since(33),
    check(
        "view/is_needed_by_executions",
        "A view's callback is called once, after the array was destroyed and all executions that read it have ended.",
        needed_by_executions,
        "PJRT_Client_CreateViewOfDeviceBuffer when num_dims=1 dims.0=8 give on_delete_callback=null",
    )
    .header("PJRT_Client_CreateViewOfDeviceBuffer_Args::on_delete_callback", "A callback to be performed when the PJRT_Buffer is done with the on-device buffer.")
    .only_used_by(&[Profile::Jax])
    .since(33),
];

/// Returns a check for each element type, which writes to a view's memory and reads the view.
pub(super) fn by_type() -> Vec<Check> {
    const TOKEN: u32 = 23;
    let of_type = |number: u32| {
        let element_type = ElementType(number);
        Check {
            name: format!("view/writes_are_seen_{element_type}"),
            rule: format!(
                "Values that the host writes to the memory of a view of {element_type} are read back, and are seen by programs."
            ).into(),
            source: Source::Header {
                place: "PJRT_Client_CreateViewOfDeviceBuffer",
                text: "Creates a buffer that is a non-owned view of the memory at device_buffer_ptr.",
            },
            is_of_the_table: false,
            since: element_type.since().max(33),
            needed_by: &[],
            users: Users::These(&[Profile::Gomlx]),
            needed_since: 0,
            fault: format!(
                "PJRT_Client_CreateViewOfDeviceBuffer when element_type={number} dims.0=7 copy_memory"
            ).into(),
            also: &[],
            run: Box::new(move |context| writes_are_seen(context, element_type)),
        }
    };
    (1..=33).filter(|number| *number != TOKEN).map(of_type).collect()
}

/// The dimensions of the arrays: one element, few elements, a number that is not a power of two, and more
/// elements than a plugin is likely to copy.
const SHAPES: &[&[i64]] = &[&[], &[7], &[3, 5], &[40_000]];

/// The largest number of elements of arrays that are tried at every offset.
const SMALL: usize = 100;

/// Compiles a program that returns its argument. Returns `None` if the plugin cannot compile it for such
/// arrays.
fn identity(client: &Client, element_type: ElementType, dims: &[i64]) -> Result<Option<LoadedExecutable>> {
    // Types of StableHLO that hosts read as booleans, or that do not exist there.
    if matches!(element_type.stablehlo_name(), "ui1" | "i1s") {
        return Ok(None);
    }
    let dims: String = dims.iter().map(|dim| format!("{dim}x")).collect();
    let ty = format!("tensor<{dims}{}>", element_type.stablehlo_name());
    let program = format!(
        "module @identity {{\n  func.func public @main(%x: {ty}) -> {ty} {{\n    return %x : {ty}\n  }}\n}}\n"
    );
    match client.compile(&Program::mlir(&program), &CompileOptions::default().encode()) {
        // The code depends on what the plugin cannot compile: the type, or its name in MLIR.
        Err(error) if error.code != Code::INTERNAL => Ok(None),
        outcome => outcome.map(Some),
    }
}

/// Returns the offsets of arrays from a multiple of 64 bytes, for an alignment of arrays: each power of two,
/// and the largest offset.
fn skews(alignment: usize) -> Vec<usize> {
    let powers = (0..6).map(|power| 1 << power).filter(|skew| *skew >= alignment);
    std::iter::once(0).chain(powers).chain([64 - alignment]).collect()
}

fn writes_are_seen(context: &Context, element_type: ElementType) -> Verdict {
    let client = context.client()?;
    for dims in SHAPES {
        let program = identity(&client, element_type, dims)?;
        let elements = dims.iter().product::<i64>() as usize;
        let skews = skews(element_type.alignment());
        // Small arrays show how a plugin treats each offset.
        let skews = if elements > SMALL { &skews[..1] } else { &skews[..] };
        for &skew in skews {
            let mut written = pattern(element_type, elements);
            let size = stored(&client, element_type, dims, &written)?.len();
            let memory = ViewMemory::skewed(&vec![0; size], skew);
            let view = match client.view(&memory, element_type, dims, client.device()?) {
                // Some engines require more than the alignment of an element.
                Err(error) if skew > 0 && error.code == Code::INVALID_ARGUMENT => continue,
                view => view?,
            };
            for _ in 0..2 {
                memory.write(&stored(&client, element_type, dims, &written)?);
                same_elements(element_type, dims, &view.read()?, &written)?;
                if let Some(program) = &program {
                    let output = program.run(&[&view])?.output(0, 0)?.read()?;
                    same_elements(element_type, dims, &output, &written)?;
                }
                written.rotate_left(element_type.byte_size());
            }
        }
    }
    Ok(())
}

/// Returns elements as the device stores them: a device may store several elements of less than a byte in one
/// byte, so that the plugin is asked for the bytes of an array with these elements.
fn stored(
    client: &Client,
    element_type: ElementType,
    dims: &[i64],
    elements: &[u8],
) -> std::result::Result<Vec<u8>, Finding> {
    if element_type.fills_bytes() {
        return Ok(elements.to_vec());
    }
    let array = HostArray::new(elements, element_type, dims);
    let buffer = client.upload(&array, Some(client.device()?), None)?.buffer;
    // The size on the device may include padding. An element has at most a byte.
    let size = buffer.on_device_size()?.min(elements.len());
    Ok(buffer.read_raw(0, size as i64)??)
}

/// Creates a view of four numbers.
fn view_of(client: &Client, memory: &ViewMemory) -> Result<Buffer> {
    client.view(memory, ElementType::F32, &[4], client.device()?)
}

fn seen_by_executions(context: &Context) -> Verdict {
    let client = context.client()?;
    let program =
        client.compile(&Program::mlir(&add_program("1x4x")), &CompileOptions::default().encode())?;
    let memory = ViewMemory::new(&[0; 16]);
    let view = client.view(&memory, ElementType::F32, &[1, 4], client.device()?)?;
    for round in [1.0_f32, 2.0, 3.0] {
        memory.write(&f32_bytes(&[round, 10.0, 20.0, 30.0]));
        let launched = program.run(&[&view, &view])?;
        equal("the sum", numbers(launched.output(0, 0)?)?, vec![2.0 * round, 20.0, 40.0, 60.0])?;
    }
    Ok(())
}

fn output_stays(context: &Context) -> Verdict {
    let client = context.client()?;
    let Some(program) = identity(&client, ElementType::F32, &[4])? else {
        return Err(Finding::Unsupported(
            "the plugin cannot compile a program that returns its argument".to_owned(),
        ));
    };
    let memory = ViewMemory::new(&f32_bytes(&[1.0, 2.0, 3.0, 4.0]));
    let view = view_of(&client, &memory)?;
    let options = ExecuteOptions { launch_id: 978, ..ExecuteOptions::default() };
    let launched = program.launch(&[vec![&view]], &options, None, true).map_err(|refused| refused.error)?;
    let output = launched.output(0, 0)?;
    output.ready()?.wait()?;
    memory.write(&f32_bytes(&[9.0; 4]));
    equal("the output after the view was written", numbers(output)?, vec![1.0, 2.0, 3.0, 4.0])
}

fn copies_stay(context: &Context) -> Verdict {
    let client = context.client()?;
    let memory = ViewMemory::new(&f32_bytes(&[1.0; 4]));
    let view = view_of(&client, &memory)?;
    memory.write(&f32_bytes(&[1.0, 2.0, 3.0, 4.0]));
    let mut copies = Vec::new();
    for memory in client.device()?.memories()? {
        copies.push(view.copy_to_memory(memory)?);
    }
    for device in others(&client)? {
        copies.push(view.copy_to_device(device)?);
    }
    for copy in &copies {
        copy.ready()?.wait()?;
    }
    memory.write(&f32_bytes(&[9.0; 4]));
    for copy in &copies {
        equal("the copy after the view was written", numbers(copy)?, vec![1.0, 2.0, 3.0, 4.0])?;
    }
    Ok(())
}

fn address(context: &Context) -> Verdict {
    let client = context.client()?;
    let memory = ViewMemory::new(&[0; 16]);
    equal("the address", view_of(&client, &memory)?.unsafe_pointer()?, memory.address())
}

fn no_elements(context: &Context) -> Verdict {
    let client = context.client()?;
    let memory = ViewMemory::null();
    let view = client.view(&memory, ElementType::F32, &[3, 0], client.device()?)?;
    equal("the array that was read back", view.read()?, Vec::new())?;
    drop(view);
    ensure!(
        eventually(patience(), || memory.deleted() > 0),
        "the callback of a view without elements was not called"
    );
    Ok(())
}

fn unaligned(context: &Context) -> Verdict {
    let client = context.client()?;
    let bytes: Vec<u8> = (1..=32).collect();
    let memory = ViewMemory::skewed(&bytes, 4);
    let outcome = client.view(&memory, ElementType::F64, &[4], client.device()?);
    if let Ok(view) = outcome {
        return equal("the array that was read back", view.read()?, bytes);
    }
    refused("a view of f64 at a multiple of 4 bytes", outcome, Code::INVALID_ARGUMENT, &[])?;
    equal("the number of calls of the callback of a view that was refused", memory.deleted(), 0)
}

fn donated(context: &Context) -> Verdict {
    let client = context.client()?;
    let lines = "    %s = stablehlo.add %p0, %p0 : tensor<4xf32>\n";
    let parameter = "%p0: tensor<4xf32> {tf.aliasing_output = 0 : i32}";
    let program =
        compiled(&client, &with_main(parameter, lines, "%s", "tensor<4xf32>"), &CompileOptions::default())?;
    for is_protected in [false, true] {
        let memory = ViewMemory::new(&f32_bytes(&[1.0; 4]));
        let view = view_of(&client, &memory)?;
        let non_donatable = if is_protected { vec![0] } else { Vec::new() };
        let options = ExecuteOptions { launch_id: 615, non_donatable, ..ExecuteOptions::default() };
        let launched =
            program.launch(&[vec![&view]], &options, None, true).map_err(|refused| refused.error)?;
        equal("the sum", numbers(launched.output(0, 0)?)?, vec![2.0; 4])?;
        drop((view, launched));
        ensure!(
            eventually(patience(), || memory.deleted() > 0),
            "on_delete_callback of a view that was an argument of a donating program was not called after the view and the output \
             were destroyed: the other owner of the memory never frees it"
        );
        equal("the number of calls of the callback", memory.deleted(), 1)?;
    }
    Ok(())
}

fn needed_by_executions(context: &Context) -> Verdict {
    let client = context.client()?;
    let program = client.compile(&Program::mlir(&add_program("8x")), &CompileOptions::default().encode())?;
    let memory = ViewMemory::new(&f32_bytes(&[1.0; 8]));
    let view = client.view(&memory, ElementType::F32, &[8], client.device()?)?;
    let launched = program.run(&[&view, &view])?;
    drop(view);
    equal("the sum", numbers(launched.output(0, 0)?)?, vec![2.0; 8])?;
    drop(launched);
    let called = eventually(patience(), || memory.deleted() > 0);
    ensure!(
        called,
        "the callback was not called although the array is destroyed and the execution has ended"
    );
    equal("the number of calls of the callback", memory.deleted(), 1)
}
