//! Checks of extreme and uncommon numbers: ids of launches, offsets of transfers, and sizes around the widths of vectors.

use super::entry::{Entry, check};
use super::program_text::{compiled, launch, sums, with_main};
use super::samples::{Shaped, element_types, uploaded};
use crate::conform::harness::{
    Context, Expected, Finding, OFFSET_IGNORED, Verdict, compile_add, equal, numbers, performing, risky,
    upload_four,
};
use crate::requirements::Profile;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{
    Buffer, Client, Code, CopyLayout, ElementType, Event, ExecuteOptions, Fence, HostArray, Layout,
    ViewMemory, fenced,
};

pub(super) const CHECKS: &[Entry] = &[
    check(
        "extremes/launch_ids",
        "An execution accepts each launch_id, also negative and extreme ones, with and without `execute_device`.",
        launch_ids,
        "PJRT_LoadedExecutable_Execute when options>launch_id=-2147483648 fail INVALID_ARGUMENT",
    )
    .host("XLA's client, and jaxlib/py_executable.cc, GetBaseLaunchId", "The ids are hashes whose bits are converted to int32, so that half of them are negative."),
    check(
        "extremes/null_lists",
        "A pointer to a list of no elements may be null: no arguments, no dimensions, no options, and no text.",
        null_lists,
        "PJRT_Event_Set when error_message=0 fail INVALID_ARGUMENT",
    )
    .host("go-xla, pjrt/loadedexecutables.go", "Passes null as the list of arguments of a program without parameters."),
    check(
        "extremes/null_lists_in_structs",
        "A pointer to a list of no elements may also be null in a struct that the host points to: options of executions, layouts and shapes of scalars.",
        null_lists_in_structs,
        "PJRT_LoadedExecutable_Execute when options>non_donatable_input_indices=0 fail INVALID_ARGUMENT",
    )
    .host("XLA's client, pjrt_c_api_client.cc", "Passes the data() of empty vectors and spans, which is null: without donated arguments, callbacks and dimensions. go-xla passes null without donated arguments, too.")
    .used_by(&[Profile::Gomlx])
    .also(&["extremes/null_lists"]),
    check(
        "extremes/offsets",
        "Raw copies read every range of an array, also at offsets that are no multiple of a vector's width, and the last byte.",
        offsets,
        "PJRT_Buffer_CopyRawToHost when offset=1 give offset=0",
    )
    .header("PJRT_Buffer_CopyRawToHost_Args::offset", "The first byte that is copied.")
    .also(&["shapes/*", "buffer/*"]),
    check(
        "extremes/sizes",
        "A program returns every element of arrays of each element type, with sizes from 1 to 1025 around the widths of vectors.",
        sizes,
        "PJRT_LoadedExecutable_Execute when options>launch_id=691 zeroed_output 7",
    )
    .header("PJRT_LoadedExecutable_Execute", "Executes on devices addressable by the client."),
];

/// A call with a list of no elements.
type Empty<'a> = (&'static str, &'a dyn Fn() -> Verdict);

fn null_lists(context: &Context) -> Verdict {
    let client = context.client()?;
    let device = client.device()?;
    let memory = device.default_memory()?;
    let bytes = 2.5_f32.to_le_bytes();
    let scalar = HostArray::new(&bytes, ElementType::F32, &[]);
    let is_scalar = |array: Buffer| -> Verdict {
        equal("the dimensions of a scalar", array.dims()?, Vec::new())?;
        equal("a scalar", numbers(&array)?, vec![2.5])
    };
    let constant = "    %c = stablehlo.constant dense<2.5> : tensor<f32>\n";
    let no_parameters = with_main("", constant, "%c", "tensor<f32>");
    let views = ViewMemory::new(&bytes);
    let calls: [Empty<'_>; 6] = [
        ("PJRT_Client_BufferFromHostBuffer", &|| {
            is_scalar(client.upload(&scalar, Some(device), None)?.buffer)
        }),
        ("PJRT_Client_CreateViewOfDeviceBuffer", &|| {
            is_scalar(client.view(&views, ElementType::F32, &[], device)?)
        }),
        ("PJRT_LoadedExecutable_Execute", &|| {
            let program = compiled(&client, &no_parameters, &CompileOptions::default())?;
            is_scalar(launch(&program, &[], 616)?.take_output()?)
        }),
        ("PJRT_Client_CreateAliasBuffer", &|| {
            let (alias, handle) = client.alias(ElementType::F32, &[], memory)?;
            client.fulfill(handle, Ok(&client.upload(&scalar, Some(device), None)?.buffer))?;
            is_scalar(alias)
        }),
        ("PJRT_Client_Create", &|| match context.plugin.create_client(&[]) {
            Ok(client) => {
                drop(client);
                Ok(())
            }
            // The plugin may need options.
            Err(error) => Err(Finding::NotApplicable(error.to_string())),
        }),
        ("PJRT_Event_Set", &|| Ok(Event::create(context.plugin)?.set(Code::OK, "")?)),
    ];
    each_with_null_lists(&calls)
}

/// Performs calls whose lists of no elements are null pointers.
fn each_with_null_lists(calls: &[Empty<'_>]) -> Verdict {
    let mut checked = false;
    for (function, call) in calls {
        let work = || fenced(function, Fence::NullLists, call);
        let (verdict, ..) = risky(&format!("{function} with null pointers to lists of no elements"), work);
        match verdict {
            Err(Finding::Unsupported(_) | Finding::NotApplicable(_)) => {}
            Err(Finding::Wrong(why)) => {
                return Err(Finding::Wrong(format!(
                    "{function} with null pointers to lists of no elements: {why}"
                )));
            }
            _ => checked = true,
        }
    }
    if checked { Ok(()) } else { Err(Finding::Unsupported("the plugin accepts no such call".to_owned())) }
}

fn null_lists_in_structs(context: &Context) -> Verdict {
    let client = context.client()?;
    let device = client.device()?;
    let memory = device.default_memory()?;
    let bytes = 2.5_f32.to_le_bytes();
    let scalar = HostArray::new(&bytes, ElementType::F32, &[]);
    let with_layout = HostArray { device_layout: Some(Layout::dense(0)), ..scalar.clone() };
    let is_scalar = |array: &Buffer| equal("a scalar", numbers(array)?, vec![2.5]);
    let array = client.upload(&scalar, Some(device), None)?.buffer;
    let program = compile_add(&client)?;
    let x = upload_four(&client, &[1.0; 4])?;
    let calls: [Empty<'_>; 7] = [
        ("PJRT_LoadedExecutable_Execute", &|| {
            equal("a sum", numbers(launch(&program, &[&x, &x], 0)?.output(0, 0)?)?, vec![2.0; 4])
        }),
        ("PJRT_Client_BufferFromHostBuffer", &|| {
            is_scalar(&client.upload(&with_layout, Some(device), None)?.buffer)
        }),
        ("PJRT_Buffer_ToHostBuffer", &|| {
            let layout = CopyLayout::Layout(Layout::dense(0));
            equal("the bytes of a scalar", array.read_into(4, &layout)?, bytes.to_vec())
        }),
        ("PJRT_Client_CreateBuffersForAsyncHostToDevice", &|| {
            let manager = client.transfer_manager(&[(ElementType::F32, Vec::new())], memory)?;
            let array = manager.retrieve(0)?;
            manager.write(0, &bytes, 0, true)?.wait()?;
            is_scalar(&array)
        }),
        ("PJRT_Client_CreateUninitializedBuffer", &|| {
            equal("the dimensions", client.uninitialized(ElementType::F32, &[], memory)?.dims()?, Vec::new())
        }),
        ("PJRT_Client_CreateErrorBuffer", &|| {
            let array = client.error_buffer((Code::ABORTED, "no"), ElementType::F32, &[], memory)?;
            equal("the dimensions", array.dims()?, Vec::new())
        }),
        ("PJRT_Buffer_Bitcast", &|| {
            let bits = array.bitcast(ElementType::S32, &[])?;
            equal("the bits of a scalar", bits.read()?, bytes.to_vec())
        }),
    ];
    each_with_null_lists(&calls)
}

fn launch_ids(context: &Context) -> Verdict {
    let client = context.client()?;
    let program = compile_add(&client)?;
    let portable = CompileOptions { portable: true, ..CompileOptions::default() };
    let portable = compiled(&client, &crate::conform::harness::add_program("4x"), &portable).ok();
    let x = upload_four(&client, &[1.0, 2.0, 3.0, 4.0])?;
    for launch_id in [i32::MIN, i32::MIN + 1, -65_536, -2, -1, 0, 1, 0x1234_5678, i32::MAX - 1, i32::MAX] {
        let options = ExecuteOptions { launch_id, ..ExecuteOptions::default() };
        let device = Some(client.device()?);
        for (program, on) in [(Some(&program), None), (portable.as_ref(), device)] {
            let Some(program) = program else { continue };
            let launched = program.launch(&[vec![&x, &x]], &options, on, true).map_err(|refused| {
                Finding::Wrong(format!(
                    "an execution with the launch_id {launch_id} was refused: {}; a launch_id may be any number",
                    refused.error
                ))
            })?;
            let what = format!("the sum of an execution with the launch_id {launch_id}");
            equal(&what, numbers(launched.output(0, 0)?)?, vec![2.0, 4.0, 6.0, 8.0])?;
        }
    }
    Ok(())
}

fn offsets(context: &Context) -> Verdict {
    const LEN: usize = 400;
    let client = context.client()?;
    let sample = Shaped::new(ElementType::F32, &[LEN as i64 / 4], 3);
    let array = client.upload(&sample.host(), Some(client.device()?), None)?.buffer;
    array.ready()?.wait()?;
    for offset in [0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 127, 128, 129, 256, LEN - 1] {
        // A few bytes are found somewhere by chance, so the largest copy is the first.
        for size in [LEN - offset, 65, 64, 63, 16, 4, 1].map(|size| size.min(LEN - offset)) {
            let got = array.read_raw(offset as i64, size as i64)??;
            let expected = &sample.bytes[offset..offset + size];
            let what = format!("PJRT_Buffer_CopyRawToHost of {size} bytes at offset {offset}");
            let dims = [size as i64];
            let mut comparison = Expected::new(&what, expected, ElementType::U8, &dims);
            let elsewhere = sample.bytes.windows(size).position(|bytes| bytes == got).filter(|_| size >= 4);
            let cause = elsewhere.map(|at| match at {
                0 => OFFSET_IGNORED.to_owned(),
                at => format!("these are the bytes at offset {at}"),
            });
            if let Some(cause) = &cause {
                comparison = comparison.suspect(got.clone(), cause);
            }
            comparison.check(&got)?;
        }
    }
    Ok(())
}

/// Returns the sizes: each remainder of the widths of vectors, and sizes beside larger powers of two.
fn lengths() -> Vec<i64> {
    let small = (1..=9).chain(15..=17).chain([23, 24, 25]).chain(31..=41).chain([47, 57]).chain(63..=70);
    small.chain(127..=129).chain(1023..=1025).collect()
}

/// Returns `true` if adding an array of zero bytes changes no element.
fn has_neutral_zero(element_type: ElementType) -> bool {
    let name = element_type.stablehlo_name();
    let lacks_minus_zero = !name.starts_with("f4") && !name.starts_with("f6");
    // Types of StableHLO that hosts read as booleans, or that do not exist there.
    lacks_minus_zero && !matches!(name, "f8E8M0FNU" | "ui1" | "i1s")
}

fn sizes(context: &Context) -> Verdict {
    let client = context.client()?;
    let mut checked = false;
    for element_type in element_types(context).filter(|element_type| has_neutral_zero(*element_type)) {
        checked |= performing(format!("sums of {element_type}"), || sums_of(&client, element_type))?;
    }
    match checked {
        true => Ok(()),
        false => Err(Finding::Unsupported("no program of many sizes can be compiled".to_owned())),
    }
}

/// Adds zeros to arrays of all sizes. Returns `false` if the plugin does not support the type or the program.
fn sums_of(client: &Client, element_type: ElementType) -> Result<bool, Finding> {
    let lengths = lengths();
    let count = lengths.len();
    let of_length = |len: &i64| format!("{len}x{}", element_type.stablehlo_name());
    let types: Vec<String> = lengths.iter().chain(&lengths).map(of_length).collect();
    let names: Vec<String> = (0..2 * count).map(|index| format!("%p{index}")).collect();
    let additions: Vec<_> = (0..count)
        .map(|index| (names[index].as_str(), names[count + index].as_str(), types[index].as_str()))
        .collect();
    let text = sums(&types.iter().map(String::as_str).collect::<Vec<_>>(), &additions);
    let samples: Vec<Shaped> =
        lengths.iter().enumerate().map(|(number, len)| Shaped::new(element_type, &[*len], number)).collect();
    let zeros = samples.iter().map(|sample| Shaped { bytes: vec![0; sample.bytes.len()], ..sample.clone() });
    let mut arrays = Vec::new();
    for sample in samples.iter().cloned().chain(zeros) {
        let Some(array) = uploaded(client, client.device()?, &sample)? else { return Ok(false) };
        arrays.push(array);
    }
    let Ok(program) = compiled(client, &text, &CompileOptions::default()) else { return Ok(false) };
    let options = ExecuteOptions { launch_id: 691, ..ExecuteOptions::default() };
    let launched = match program.launch(&[arrays.iter().collect()], &options, None, true) {
        Err(refused) if refused.error.code == Code::UNIMPLEMENTED => return Ok(false),
        launched => launched.map_err(|refused| refused.error)?,
    };
    for (index, sample) in samples.iter().enumerate() {
        sample.check("an uploaded array", &arrays[index].read()?)?;
        sample.check("an array to which a program added zeros", &launched.output(0, index)?.read()?)?;
    }
    Ok(true)
}
