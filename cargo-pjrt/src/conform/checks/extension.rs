//! Checks of extensions.

use pjrt_sys::STRUCTS;

use super::devices::id_of;
use super::entry::{Entry, check};
use super::program_text::{compiled, sums, with_main};
use crate::conform::harness::{
    Check, Context, Expected, Finding, OFFSET_IGNORED, ONE_DEVICE, Source, Users, Verdict, add_program,
    compile_and_keep_add, ensure, equal, f32_bytes, permutations, register_type, upload_four, upload_to,
};
use crate::requirements::Profile;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{Buffer, EXTENSION_FUNCTIONS, ElementType, HostArray, Program};

pub(super) const CHECKS: &[Entry] = &[
    check(
        "extension/default_layout",
        "An array whose layout was not specified has the layout that Layouts reports as the default.",
        default_layout,
        "PJRT_Layouts_PJRT_Client_GetDefaultLayout give num_dims=1",
    )
    .header(
        "pjrt_c_api_layouts_extension.h",
        "Returns the default layout of an array of a type and dimensions.",
    )
    .used_by(&[Profile::Jax]),
    check(
        "extension/output_layouts",
        "Layouts reports a layout for each output of a program, and none of them is empty.",
        output_layouts,
        "PJRT_Layouts_PJRT_Executable_GetOutputLayouts set num_outputs=0",
    )
    .header("pjrt_c_api_layouts_extension.h", "Returns the layouts of a program's outputs.")
    .used_by(&[Profile::Jax]),
    check(
        "extension/layouts_agree_with_the_bytes",
        "The layout of an array is the same from PJRT_Buffer_GetMemoryLayout, from Layouts for the array and for the program's output, and in the bytes of PJRT_Buffer_CopyRawToHost.",
        layouts_agree,
        "PJRT_Layouts_MemoryLayout_Serialize reverse_text",
    )
    .header("pjrt_c_api_layouts_extension.h", "Returns the layout of a buffer's data on the device.")
    .used_by(&[Profile::Jax]),
    check(
        "extension/memory_descriptions",
        "MemoryDescriptions reports the kinds of the device's memories.",
        memory_descriptions,
        "PJRT_DeviceDescription_MemoryDescriptions set num_memory_descriptions=0",
    )
    .header(
        "PJRT_DeviceDescription_MemoryDescriptions",
        "Returns all memory descriptions attached to this device.",
    )
    .also(&["extension/default_memory"]),
    check(
        "extension/default_memory",
        "The default memory that MemoryDescriptions reports has the kind of the device's default memory.",
        default_memory,
        "PJRT_DeviceDescription_MemoryDescriptions set default_memory_index=77",
    )
    .header(
        "PJRT_DeviceDescription_MemoryDescriptions_Args::default_memory_index",
        "Index into memory_descriptions. -1 if there's no default.",
    ),
    check(
        "extension/output_shardings",
        "Shardings reports no shardings, or one for each output.",
        output_shardings,
        "PJRT_Shardings_PJRT_Executable_OutputShardings set shardings=zeros num_outputs=0",
    )
    .header("pjrt_c_api_shardings_extension.h", "Returns the shardings of a program's outputs.")
    .used_by(&[Profile::Jax]),
    check(
        "extension/types_of_values",
        "FFI assigns a unique id to each type of values.",
        types_of_values,
        "PJRT_FFI_Type_Register set type_id=7",
    )
    .header("pjrt_c_api_ffi_extension.h", "Registers a type of values, and returns its id.")
    .used_by(&[Profile::Jax]),
    check(
        "extension/raw_buffer_size",
        "A raw buffer of an array is at least as large as the array.",
        raw_size,
        "PJRT_RawBuffer_GetOnDeviceSizeInBytes set on_device_size_in_bytes=1",
    )
    .header(
        "pjrt_c_api_raw_buffer_extension.h",
        "Gets the number of bytes of the buffer storage on the device.",
    ),
    check(
        "extension/raw_buffer_reads",
        "A raw buffer of an array has the array's bytes, at every offset.",
        raw_reads,
        "PJRT_RawBuffer_CopyRawDeviceToHost give offset=0",
    )
    .header("pjrt_c_api_raw_buffer_extension.h", "Copies bytes of the device to the host."),
    check(
        "extension/host_memory",
        "HostMemoryAllocator returns memory that the host can write to, and a function that frees it.",
        host_memory,
        "PJRT_HostMemoryAllocator_Allocate set deleter=null",
    )
    .header(
        "host_memory_allocator_extension.h",
        "Allocates memory of the host, and returns a function that frees it.",
    ),
    check(
        "extension/host_memories_of_all_sizes",
        "HostMemoryAllocator returns memory of all sizes from 1 byte to 4 MiB, and several blocks do not overlap.",
        host_memories,
        "PJRT_HostMemoryAllocator_Allocate when size=4097 set ptr=null deleter=null",
    )
    .header(
        "host_memory_allocator_extension.h",
        "Allocates memory of the host, and returns a function that frees it.",
    ),
    check(
        "extension/parameter_shardings",
        "Shardings reports no shardings, or one for each parameter, and one for each of several outputs.",
        parameter_shardings,
        "PJRT_Shardings_PJRT_Executable_ParameterShardings set shardings=zeros num_parameters=1",
    )
    .header("pjrt_c_api_shardings_extension.h", "Returns the shardings of a program's parameters.")
    .used_by(&[Profile::Jax]),
    check(
        "extension/different_shardings",
        "Shardings reports for each parameter of a partitioned program the parameter's own sharding.",
        different_shardings,
        "PJRT_Shardings_PJRT_Executable_ParameterShardings when num_parameters=3 set shardings=zeros sharding_sizes=zeros",
    )
    .header("pjrt_c_api_shardings_extension.h", "Returns the shardings of a program's parameters.")
    .used_by(&[Profile::Jax])
    .also(&["extension/parameter_shardings"]),
    check(
        "extension/compile_phases",
        "PhaseCompile has at least one phase, and each has a name.",
        compile_phases,
        "PJRT_PhaseCompile_Get_PhaseNames set num_phase_names=0",
    )
    .header(
        "pjrt_c_api_phase_compile_extension.h",
        "Retrieves the names of all the phases in the order they are registered.",
    ),
    check(
        "extension/fatal_error",
        "Each callback that was registered for fatal errors is called once, with the code and the message.",
        fatal_error,
        "PJRT_Callback_InvokeCallback when struct_size=32 skip",
    )
    .header(
        "pjrt_c_api_callback_extension.h",
        "Registers a callback, which is called when the condition is met.",
    ),
];

/// The extensions that hosts use with any plugin, named as in the names of their structs.
const EXTENSIONS: &[&str] = &[
    "Layouts",
    "MemoryDescriptions",
    "Shardings",
    "FFI",
    "RawBuffer",
    "CrossHostTransfers",
    "HostMemoryAllocator",
    "ExecutableMetadata",
    "PhaseCompile",
    "Callback",
    "Profiler",
];

/// The extensions whose functions XLA's client calls for JAX if the plugin has them.
const USED_BY_JAX: &[&str] = &[
    "Layouts",
    "MemoryDescriptions",
    "Shardings",
    "FFI",
    "CrossHostTransfers",
    "HostMemoryAllocator",
    "Callback",
];

/// Returns the type of an extension.
fn type_of(context: &Context, extension: &str) -> Option<u32> {
    let found = context.plugin.extensions()?.into_iter().find(|found| found.name() == Some(extension));
    found.map(|found| found.type_)
}

/// Returns the checks for all extensions.
pub(super) fn by_extension() -> Vec<Check> {
    EXTENSIONS
        .iter()
        .flat_map(|extension| [functions_of(extension), small_structs_of(extension)])
        .flatten()
        .collect()
}

fn functions_of(extension: &'static str) -> Option<Check> {
    let name = format!("PJRT_{extension}_Extension");
    let layout = STRUCTS.iter().find(|layout| layout.name == name)?;
    let first = layout.fields.iter().find(|field| field.name != "base")?;
    // The field after the profiler's functions is an integer.
    let last = if extension == "Profiler" { first.end } else { layout.struct_size };
    Some(Check {
        name: format!("extension/functions_of_{extension}"),
        rule: format!(
            "The extension {extension} reports a size that includes its first function, and contains no null pointer within this size: hosts do not check for null."
        ).into(),
        source: Source::Header {
            place: "PJRT_Extension_Base",
            text: "The framework can go through this chain to find an extension and identify it with the type; the struct of the type lists the functions.",
        },
        is_of_the_table: false,
        since: 0,
        needed_by: &[],
        users: Users::These(if USED_BY_JAX.contains(&extension) { &[Profile::Jax] } else { &[] }),
        needed_since: 0,
        fault: format!("GetPjrtApi extension_null {name} {}", first.name).into(),
        also: &[],
        run: Box::new(move |context| {
            let Some((size, null)) =
                type_of(context, extension).and_then(|ty| context.plugin.null_fields_of(ty, layout))
            else {
                return Err(Finding::Unsupported(format!(
                    "the plugin does not have the extension {extension}"
                )));
            };
            ensure!(
                size >= first.end,
                "the extension reports {size} bytes, but its first function ends at {}",
                first.end
            );
            let null: Vec<&str> = null
                .into_iter()
                .filter(|name| layout.field(name).is_some_and(|field| field.end <= last))
                .collect();
            ensure!(null.is_empty(), "null: {}", null.join(", "));
            Ok(())
        }),
    })
}

fn small_structs_of(extension: &'static str) -> Option<Check> {
    // The functions of the plugin's extension say which type it is; without them, the names of the structs
    // do.
    let number = extension_number(extension)?;
    let functions = move || EXTENSION_FUNCTIONS.iter().filter(move |function| function.extension == number);
    let first = functions().find(|function| function.has_inputs)?;
    Some(Check {
        name: format!("extension/small_structs_of_{extension}"),
        rule: format!(
            "The functions of {extension} refuse a struct that ends before their inputs, and access nothing past its end."
        ).into(),
        source: Source::Advice {
            text: "The header permits plugins to use struct_size, and does not require it: no host passes such a small struct. An error reveals the caller's mistake.",
        },
        is_of_the_table: false,
        since: 0,
        needed_by: &[],
        users: Users::These(&[]),
        needed_since: 0,
        fault: format!("{} when struct_size=16 skip", first.name).into(),
        also: &[],
        run: Box::new(move |context| {
            let mut offered = false;
            for function in functions() {
                match context.plugin.refuses_small_struct(function) {
                    // An older plugin may have fewer functions.
                    Err(_) => {}
                    Ok(refused) => {
                        offered = true;
                        ensure!(
                            refused || !function.has_inputs,
                            "{} succeeded with a struct of 16 bytes",
                            function.name
                        );
                    }
                }
            }
            if offered {
                Ok(())
            } else {
                Err(Finding::Unsupported(format!("the plugin does not have the extension {extension}")))
            }
        }),
    })
}

/// Returns the type of an extension, as its functions state it.
fn extension_number(extension: &str) -> Option<u32> {
    let of = |start: &str| {
        EXTENSION_FUNCTIONS.iter().find(|function| function.name.starts_with(start)).map(|f| f.extension)
    };
    match extension {
        "MemoryDescriptions" => of("PJRT_DeviceDescription_MemoryDescriptions"),
        "CrossHostTransfers" => of("PJRT_Transfers_"),
        _ => of(&format!("PJRT_{extension}_")),
    }
}

fn default_layout(context: &Context) -> Verdict {
    let client = context.client()?;
    let bytes = f32_bytes(&[1.0; 6]);
    let array = HostArray::new(&bytes, ElementType::F32, &[2, 3]);
    let buffer = client.upload(&array, Some(client.device()?), None)?.buffer;
    let default = client.default_layout(ElementType::F32, &[2, 3])?;
    ensure!(!default.is_empty(), "the default layout is empty");
    equal(
        "the layout of an uploaded array, which PJRT_Layouts_PJRT_Client_GetDefaultLayout announces as the expected one,",
        buffer.layout_text()?,
        default,
    )
}

/// Returns the order of the dimensions, from minor to major, of a layout as text, such as `{1,0}` or
/// `{1,0:T(8,128)}`.
fn minor_to_major(text: &str) -> Option<Vec<i64>> {
    let inner = text.strip_prefix('{')?.split([':', '}']).next()?;
    inner.split(',').map(|dim| dim.trim().parse().ok()).collect()
}

/// Returns row-major elements in the order in which a layout stores them.
fn stored(elements: &[f32], dims: &[i64], minor_to_major: &[i64]) -> Vec<u8> {
    let len = elements.len();
    let mut memory = vec![0.0; len];
    for (index, element) in elements.iter().enumerate() {
        let (mut rest, mut position) = (index, vec![0; dims.len()]);
        for dim in (0..dims.len()).rev() {
            (rest, position[dim]) = (rest / dims[dim] as usize, rest % dims[dim] as usize);
        }
        let (mut at, mut stride) = (0, 1);
        for &dim in minor_to_major {
            at += position[dim as usize] * stride;
            stride *= dims[dim as usize] as usize;
        }
        memory[at] = *element;
    }
    f32_bytes(&memory)
}

fn layouts_agree(context: &Context) -> Verdict {
    let client = context.client()?;
    for dims in [&[2, 3][..], &[2, 3, 4]] {
        let text: String = dims.iter().map(|dim| format!("{dim}x")).collect();
        let executable =
            client.compile(&Program::mlir(&add_program(&text)), &CompileOptions::default().encode())?;
        let elements: Vec<f32> = (0..dims.iter().product::<i64>()).map(|index| index as f32).collect();
        let bytes = f32_bytes(&elements);
        let x = client
            .upload(&HostArray::new(&bytes, ElementType::F32, dims), Some(client.device()?), None)?
            .buffer;
        let output = executable.run(&[&x, &x])?.take_output()?;
        output.ready()?.wait()?;
        let doubled: Vec<f32> = elements.iter().map(|element| element * 2.0).collect();
        let of_program = executable.executable()?.output_layouts().ok().and_then(|all| all.first().cloned());
        for (what, array, elements, said) in
            [("an output", &output, &doubled, of_program), ("an uploaded array", &x, &elements, None)]
        {
            agrees(what, array, elements, dims, said.as_deref())?;
        }
    }
    Ok(())
}

/// Compares what the functions say about the layout of an array.
fn agrees(what: &str, array: &Buffer, elements: &[f32], dims: &[i64], said: Option<&str>) -> Verdict {
    let text = array.layout_text()?;
    let Some(order) = minor_to_major(&text) else {
        return Err(Finding::Unsupported(format!("the layout {text:?} is not one that the kit reads")));
    };
    equal(
        &format!("the number of dimensions in the layout {text} of {what} f32{dims:?}"),
        order.len(),
        dims.len(),
    )?;
    if let Some(own) = array.memory_layout().ok().flatten() {
        ensure!(
            own == order,
            "Layouts returns {text} for {what} f32{dims:?}, but PJRT_Buffer_GetMemoryLayout returns minor_to_major {own:?}; both \
             describe the same memory"
        );
    }
    if let Some(said) = said.filter(|said| minor_to_major(said).is_some_and(|said| said != order)) {
        return Err(Finding::Wrong(format!(
            "PJRT_Layouts_PJRT_Executable_GetOutputLayouts returns {said} for an output f32{dims:?} whose array has the layout \
             {text}"
        )));
    }
    let is_dense = !text.contains(':') && order.iter().all(|dim| (0..dims.len() as i64).contains(dim));
    if let Ok(Ok(raw)) = array.read_raw(0, 4 * elements.len() as i64)
        && is_dense
    {
        ensure!(
            raw == stored(elements, dims, &order),
            "Layouts returns {text} for {what} f32{dims:?}, but the bytes of PJRT_Buffer_CopyRawToHost are in another order{}",
            permutations(dims.len())
                .into_iter()
                .map(|order| order.into_iter().map(|dim| dim as i64).collect::<Vec<_>>())
                .find(|order| raw == stored(elements, dims, order))
                .map_or_else(String::new, |order| format!(": minor_to_major {order:?}"))
        );
    }
    Ok(())
}

fn output_layouts(context: &Context) -> Verdict {
    let client = context.client()?;
    let executable = compile_and_keep_add(&client)?;
    let layouts = executable.output_layouts()?;
    equal("the number of layouts", layouts.len(), 1)?;
    ensure!(layouts.iter().all(|layout| !layout.is_empty()), "a layout is empty: {layouts:?}");
    Ok(())
}

fn memory_descriptions(context: &Context) -> Verdict {
    let client = context.client()?;
    let device = client.device()?;
    let (mut described, _) = device.description()?.memory_kinds()?;
    let mut kinds = device.memories()?.iter().map(|memory| memory.kind()).collect::<Result<Vec<_>, _>>()?;
    described.sort_unstable();
    kinds.sort_unstable();
    equal("the kinds of memory", described, kinds)
}

fn default_memory(context: &Context) -> Verdict {
    let client = context.client()?;
    let device = client.device()?;
    let (kinds, default) = device.description()?.memory_kinds()?;
    if default == usize::MAX {
        return Err(Finding::Unsupported("MemoryDescriptions reports no default memory".to_owned()));
    }
    let Some(kind) = kinds.get(default) else {
        return Err(Finding::Wrong(format!(
            "the default memory has the index {default}, but there are {} memories",
            kinds.len()
        )));
    };
    equal("the kind of the default memory", kind.clone(), device.default_memory()?.kind()?)
}

fn output_shardings(context: &Context) -> Verdict {
    let client = context.client()?;
    let executable = compile_and_keep_add(&client)?;
    match executable.output_shardings()? {
        None => Ok(()),
        Some(shardings) => equal("the number of shardings", shardings.len(), 1),
    }
}

fn types_of_values(context: &Context) -> Verdict {
    let first = register_type(context, "first")?;
    let second = register_type(context, "second")?;
    ensure!(first != second, "two types have the id {first}");
    Ok(())
}

fn raw_size(context: &Context) -> Verdict {
    let client = context.client()?;
    let (size, _) = upload_four(&client, &[1.0; 4])?.read_as_raw_buffer(0, 16)?;
    ensure!(size >= 16, "an array of 16 bytes has a raw buffer of {size} bytes");
    Ok(())
}

fn raw_reads(context: &Context) -> Verdict {
    let client = context.client()?;
    let buffer = upload_to(&client, &[1.0, 2.0, 3.0, 4.0], client.device()?)?.buffer;
    let (_, read) = buffer.read_as_raw_buffer(4, 8)?;
    Expected::floats("8 bytes of a raw buffer from offset 4", &f32_bytes(&[2.0, 3.0]))
        .suspect(f32_bytes(&[1.0, 2.0]), OFFSET_IGNORED)
        .check(&read)
}

fn host_memory(context: &Context) -> Verdict {
    let (memory, freed) = context.client()?.use_host_memory(1000)?;
    ensure!(memory, "the allocation of 1000 bytes returned a null pointer");
    ensure!(freed, "the allocation returned no function that frees the memory");
    Ok(())
}

fn host_memories(context: &Context) -> Verdict {
    const SIZES: &[usize] = &[1, 2, 7, 64, 65, 4096, 4097, 1 << 16, (1 << 20) + 3, 4 << 20, 64, 4096];
    let wrong = context.client()?.use_host_memories(SIZES)?;
    ensure!(
        wrong.is_empty(),
        "of the blocks of the sizes {SIZES:?}, those of the sizes {wrong:?} are null, or changed when others were written"
    );
    Ok(())
}

fn parameter_shardings(context: &Context) -> Verdict {
    let client = context.client()?;
    let text = sums(&["4xf32"; 3], &[("%p0", "%p1", "4xf32"), ("%p1", "%p2", "4xf32")]);
    let loaded = compiled(&client, &text, &CompileOptions::default())?;
    let program = loaded.executable()?;
    if let Some(shardings) = program.parameter_shardings()? {
        equal("the number of shardings of three parameters", shardings.len(), 3)?;
    }
    match program.output_shardings()? {
        None => Ok(()),
        Some(shardings) => equal("the number of shardings of two outputs", shardings.len(), 2),
    }
}

fn different_shardings(context: &Context) -> Verdict {
    let client = context.client()?;
    let devices = client.addressable_devices()?;
    let [first, second, ..] = &devices[..] else {
        return Err(Finding::NotApplicable(ONE_DEVICE.to_owned()));
    };
    let ids = vec![id_of(*first)?, id_of(*second)?];
    const SHARDINGS: [&str; 3] = ["{devices=[2,1]<=[2]}", "{replicated}", "{devices=[1,2]<=[2]}"];
    let ty = "tensor<4x8xf32>";
    let of = |at: usize, sharding: &str| format!("%p{at}: {ty} {{mhlo.sharding = \"{sharding}\"}}");
    // The order of the parameters changes, so that each is once the first one.
    for turn in 0..SHARDINGS.len() {
        let parameters: Vec<String> = (0..3).map(|at| of(at, SHARDINGS[(at + turn) % 3])).collect();
        let text = with_main(&parameters.join(", "), "", "%p0, %p1, %p2", &[ty; 3].join(", "));
        let options = CompileOptions { partitions: 2, devices: ids.clone(), ..CompileOptions::default() };
        let loaded = compiled(&client, &text, &options)?;
        let Some(shardings) = loaded.executable()?.parameter_shardings()? else {
            return Err(Finding::Unsupported("the plugin reports no shardings".to_owned()));
        };
        equal("the number of shardings of three parameters", shardings.len(), 3)?;
        for (first, second) in [(0, 1), (0, 2), (1, 2)] {
            ensure!(
                shardings[first] != shardings[second],
                "PJRT_Shardings_PJRT_Executable_ParameterShardings reports the same sharding, {:?}, for parameter {first}, which is \
                 {}, and parameter {second}, which is {}",
                shardings[first],
                SHARDINGS[(first + turn) % 3],
                SHARDINGS[(second + turn) % 3]
            );
        }
    }
    Ok(())
}

fn compile_phases(context: &Context) -> Verdict {
    // Some plugins compile only after a client was created.
    let _client = context.client()?;
    let phases = context.plugin.compile_phases()?;
    ensure!(!phases.is_empty() && phases.iter().all(|phase| !phase.is_empty()), "the phases are {phases:?}");
    Ok(())
}

fn fatal_error(context: &Context) -> Verdict {
    let what = "the numbers of calls, with the error that the host passed, of two callbacks";
    equal(what, context.client()?.tell_of_fatal_error()?, [1, 1])
}
