//! Checks of every way to read arrays, and of programs, with arrays of every element type and of many shapes.

use super::devices::id_of;
use super::program_text::{launch, with_main};
use super::samples::{Shaped, for_each_sample};
use super::shapes::{PROPERTIES, TYPES, is_good, of_name};
use super::ways::about;
use crate::conform::harness::{Check, Context, Finding, Source, Users, Verdict, ensure, equal};
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{
    Buffer, Client, Code, CopyLayout, Device, ElementType, Layout, LoadedExecutable, Program,
};

/// A way to read an array.
struct Reader {
    name: &'static str,
    what: &'static str,
    function: &'static str,
    read: fn(&Buffer, &Shaped) -> Result<Vec<u8>, Finding>,
    fault: &'static str,
}

/// Skips arrays whose bytes on the device are not those in host memory.
pub(super) fn unless_padded(array: &Buffer, sample: &Shaped) -> Result<i64, Finding> {
    match sample.element_type.fills_bytes() && array.on_device_size()? == sample.bytes.len() {
        true => Ok(sample.bytes.len() as i64),
        false => Err(Finding::Unsupported("the bytes of such arrays on the device are not known".to_owned())),
    }
}

const READERS: &[Reader] = &[
    Reader {
        name: "readbacks",
        what: "a readback",
        function: "PJRT_Buffer_ToHostBuffer",
        read: |array, sample| Ok(array.read_into(sample.bytes.len(), &CopyLayout::Unsaid)?),
        fault: "PJRT_Buffer_ToHostBuffer of_type 15 of_rank 0 when host_layout=0 dst!=0 give dst=scratch",
    },
    Reader {
        name: "readbacks_with_a_layout",
        what: "a readback with a row-major layout",
        function: "PJRT_Buffer_ToHostBuffer",
        read: |array, sample| {
            let layout = CopyLayout::Layout(Layout::dense(sample.dims.len()));
            Ok(array.read_into(sample.bytes.len(), &layout)?)
        },
        fault: "PJRT_Buffer_ToHostBuffer of_type 15 of_rank 0 when host_layout!=0 dst!=0 give dst=scratch",
    },
    Reader {
        name: "raw_copies",
        what: "a raw copy",
        function: "PJRT_Buffer_CopyRawToHost",
        read: |array, sample| Ok(array.read_raw(0, unless_padded(array, sample)?)??),
        fault: "PJRT_Buffer_CopyRawToHost of_type 15 of_rank 0 give dst=scratch",
    },
    Reader {
        name: "raw_copies_later",
        what: "a raw copy whose destination the host named later",
        function: "PJRT_Buffer_CopyRawToHostFuture",
        read: |array, sample| Ok(array.read_raw_later(0, unless_padded(array, sample)?)?.finish()?),
        fault: "PJRT_Buffer_CopyRawToHostFuture of_type 15 of_rank 0 fail INTERNAL",
    },
    Reader {
        name: "bytes_in_place",
        what: "the memory at the address of an array",
        function: "PJRT_Buffer_OpaqueDeviceMemoryDataPointer",
        read: |array, sample| {
            let size = unless_padded(array, sample)? as usize;
            array.ready()?.wait()?;
            array.hold()?;
            let bytes = array.bytes_in_place();
            array.release()?;
            match bytes? {
                Some(bytes) => Ok(bytes[..size].to_vec()),
                None => Err(Finding::NotApplicable("the host cannot read arrays in place".to_owned())),
            }
        },
        fault: "PJRT_Buffer_OpaqueDeviceMemoryDataPointer of_type 15 of_rank 2 set device_memory_ptr+16",
    },
    Reader {
        name: "raw_buffers",
        what: "a copy from a raw buffer",
        function: "PJRT_RawBuffer_CopyRawDeviceToHost",
        read: |array, sample| Ok(array.read_as_raw_buffer(0, unless_padded(array, sample)?)?.1),
        fault: "PJRT_RawBuffer_CopyRawDeviceToHost when transfer_size=384 give dst=scratch",
    },
];

/// Returns a check for each way to read arrays, and one of programs.
pub(super) fn by_reader() -> Vec<Check> {
    let check = |reader: &'static Reader| Check {
        rule: format!(
            "{} returns the elements of arrays of every element type and rank, on each device: here {}.",
            reader.function, reader.what
        )
        .into(),
        source: Source::Header { place: reader.function, text: TYPES },
        fault: reader.fault.into(),
        users: Users::Callers(reader.function),
        run: Box::new(move |context| reads(context, reader)),
        ..of_name(&format!("shapes/{}", reader.name))
    };
    READERS.iter().map(check).chain([of_programs()]).collect()
}

fn reads(context: &Context, reader: &Reader) -> Verdict {
    let client = context.client()?;
    for_each_sample(context, &client, |device, sample, array| {
        if reader.name != "readbacks" && !is_good(device, sample, array) {
            return Ok(());
        }
        let read = (reader.read)(array, sample).map_err(|finding| about(finding, reader.what, sample))?;
        sample.check(reader.what, &read)
    })
}

/// The name of a type in programs, or `None` if no program has it.
pub(super) fn in_programs(element_type: ElementType) -> Option<&'static str> {
    let name = element_type.stablehlo_name();
    // Types of StableHLO that hosts read as booleans, or that do not exist there, and types with which XLA's compiler ends the
    // process.
    (!matches!(name, "ui1" | "i1s" | "f6E2M3FN" | "f6E3M2FN")).then_some(name)
}

/// Compiles a program that returns its two arguments in reverse, for a device. Returns `None` if the plugin does not
/// compile it.
fn reversing(
    client: &Client,
    device: Device<'_>,
    sample: &Shaped,
) -> Result<Option<LoadedExecutable>, Finding> {
    let Some(name) = in_programs(sample.element_type) else { return Ok(None) };
    let dims: String = sample.dims.iter().map(|dim| format!("{dim}x")).collect();
    let ty = format!("tensor<{dims}{name}>");
    let text = with_main(&format!("%p0: {ty}, %p1: {ty}"), "", "%p1, %p0", &format!("{ty}, {ty}"));
    let options = CompileOptions { devices: vec![id_of(device)?], ..CompileOptions::default() };
    Ok(client.compile(&Program::mlir(&text), &options.encode()).ok())
}

fn of_programs() -> Check {
    Check {
        rule: "A program returns its arguments unchanged for every element type and rank, on each device, each time that it \
               runs; its outputs have their type and dimensions, and the program reports them."
            .into(),
        source: Source::Header { place: "PJRT_LoadedExecutable_Execute", text: TYPES },
        fault: "PJRT_LoadedExecutable_Execute when options>launch_id=601 of_type 5 of_rank 0 zeroed_output 1".into(),
        users: Users::Callers("PJRT_LoadedExecutable_Execute"),
        run: Box::new(programs),
        ..of_name("shapes/outputs")
    }
}

/// Checks what functions report about a program with two arguments and two outputs like this array.
fn describes(program: &LoadedExecutable, sample: &Shaped) -> Verdict {
    let executable = program.executable()?;
    let [types, dims] = [
        executable.output_types().map(|types| format!("{types:?}")),
        executable.output_dims().map(|dims| format!("{dims:?}")),
    ];
    let expected = (format!("{:?}", [sample.element_type; 2]), format!("{:?}", [&sample.dims; 2]));
    for (function, got, expected) in [
        ("PJRT_Executable_OutputElementTypes", types, expected.0),
        ("PJRT_Executable_OutputDimensions", dims, expected.1),
    ] {
        match got {
            Err(error) if error.code == Code::UNIMPLEMENTED => {}
            got => {
                equal(&format!("{function} of a program that returns two arrays {sample}"), got?, expected)?
            }
        }
    }
    let least = 2 * sample.least_size() as i64;
    if let Ok(stats) = executable.memory_stats() {
        ensure!(
            stats.arguments >= least && stats.outputs >= least,
            "PJRT_Executable_GetCompiledMemoryStats of a program with two arguments and two outputs {sample} reports {} bytes of \
             arguments and {} of outputs; expected at least {least} of each",
            stats.arguments,
            stats.outputs
        );
    }
    Ok(())
}

fn programs(context: &Context) -> Verdict {
    let client = context.client()?;
    let first = client.device()?;
    for_each_sample(context, &client, |device, sample, x| {
        // Compilation takes time: most types have two shapes, and the other devices two types.
        let is_few = [ElementType::F32, ElementType::PRED].contains(&sample.element_type);
        let is_tried = is_few || device == first && [&[][..], &[2, 1, 3]].contains(&&sample.dims[..]);
        if !is_tried || !is_good(device, sample, x) {
            return Ok(());
        }
        let Some(program) = reversing(&client, device, sample)? else {
            return Err(Finding::Unsupported(
                "no program that returns its arguments can be compiled".to_owned(),
            ));
        };
        describes(&program, sample)?;
        for round in 0..2 {
            let other = Shaped::new(sample.element_type, &sample.dims, 100 + round);
            let y = client.upload(&other.host(), Some(device), None)?.buffer;
            // The arguments change places, so that each differs from the run before.
            let (arguments, expected) =
                if round == 0 { ([x, &y], [&other, sample]) } else { ([&y, x], [sample, &other]) };
            let launched = launch(&program, &arguments, 601)?;
            let what =
                format!("output of run {} of a program that returns its arguments in reverse", round + 1);
            for (at, (output, expected)) in launched.outputs_of(0, 2)?.iter().zip(expected).enumerate() {
                for property in PROPERTIES {
                    property.check(&format!("the {what}"), output, expected, device)?;
                }
                expected.check_array(&format!("{} {what}", ["the first", "the second"][at]), output)?;
            }
            sample.check("an argument after a program read it", &x.read()?)?;
        }
        Ok(())
    })
}
