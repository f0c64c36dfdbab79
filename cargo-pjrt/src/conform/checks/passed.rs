//! Checks of what a host passes to a call: the plugin copies what it needs later, because the host reuses the memory
//! of its structs and lists when the call returns.

use super::donation::unless_donated;
use super::entry::{ALL, Entry, check};
use super::program_text::{compiled, sums, with_main};
use crate::conform::harness::{
    AFTER_THE_CALL, CHANGED_ARGUMENT, Context, EARLIER_PROGRAM, Finding, Verdict, add_program, compile_add,
    ensure, equal, f32_bytes, numbers, risky, upload_four,
};
use crate::requirements::Profile;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{
    Buffer, Client, CreateOption, ElementType, ExecuteOptions, HostMemory, LoadedExecutable, Program, Value,
    keep_passed,
};

pub(super) const CHECKS: &[Entry] = &[
    check(
        "passed/argument_lists",
        "An execution does not use `argument_lists` and its lists after the call.",
        argument_lists,
        "PJRT_LoadedExecutable_Execute previous argument_lists",
    )
    .host("XLA's client, PjRtCApiLoadedExecutable::Execute", "The lists are local variables, which end when the function returns.")
    .used_by(ALL)
    .also(&["*"]),
    check(
        "passed/execute_options",
        "An execution does not use `options` and its lists after the call.",
        execute_options,
        "PJRT_LoadedExecutable_Execute previous options>non_donatable_input_indices",
    )
    .host("XLA's client, PjRtCApiLoadedExecutable::GetCommonExecuteArgs", "The options are local variables, which end when the function returns.")
    .used_by(&[Profile::Jax, Profile::Gomlx])
    .also(&["donation/*", "execute/*", "host/*"]),
    check(
        "passed/compile_options",
        "A compilation does not use the bytes of `compile_options` after the call.",
        compile_options,
        "PJRT_Client_Compile previous compile_options",
    )
    .host("XLA's client, InitializeArgsAndCompile", "The bytes are a local string, which ends when the function returns.")
    .used_by(ALL)
    .also(&["*"]),
    check(
        "passed/program",
        "A compilation does not use `program` and its bytes after the call.",
        program,
        "PJRT_Client_Compile previous program>code",
    )
    .host("XLA's client, InitializeArgsAndCompile", "The program is a local variable, which ends when the function returns.")
    .used_by(ALL)
    .also(&["*"]),
    check(
        "passed/serialized_executable",
        "A loaded program does not use the bytes of `serialized_executable` after the call.",
        serialized_executable,
        "PJRT_Executable_DeserializeAndLoad previous serialized_executable",
    )
    .host("XLA's client, PjRtCApiClient::LoadSerializedExecutable", "The bytes are those of its caller, who may free them when the function returns: JAX reads them from a file of its compilation cache.")
    .used_by(&[Profile::Zml, Profile::PjrtRs])
    .also(&["*"]),
    check(
        "passed/create_options",
        "A client does not use the names and the values of its options after PJRT_Client_Create returned.",
        create_options,
        "PJRT_Client_Create previous create_options",
    )
    .host("XLA's client, pjrt_c_api_client.cc, GetCApiClient", "The options are local variables, which end when the function returns.")
    .used_by(ALL)
    .also(&["*"]),
    check(
        "passed/host_memory_again",
        "An array has the contents that the host's memory has during the upload, although an earlier array came from the same address.",
        host_memory_again,
        "PJRT_Client_BufferFromHostBuffer remember_data",
    )
    .host("NumPy, in every host", "Allocates new arrays at the addresses of arrays that were freed.")
    .also(&["*"]),
    check(
        "passed/host_memory_that_changed_in_part",
        "An upload transfers all bytes, although an earlier array with most of these bytes came from the same address.",
        host_memory_in_part,
        "PJRT_Client_BufferFromHostBuffer remember_data 64",
    )
    .host("NumPy, in every host", "Changes elements of an array in place between two uploads.")
    .also(&["*"]),
    check(
        "passed/programs_of_one_name",
        "Programs of the same name and length are different programs.",
        programs_of_one_name,
        "PJRT_Client_Compile first_program",
    )
    .host("JAX, jax/_src/interpreters/mlir.py, lower_jaxpr_to_module", "Names modules after the Python function, such as jit__lambda, so that many programs have the same name.")
    .used_by(ALL)
    .also(&["*"]),
    check(
        "passed/programs_of_other_constants",
        "Programs that differ only in the elements of a constant are different programs, also with another fingerprint.",
        programs_of_other_constants,
        "PJRT_Client_Compile first_program without_constants",
    )
    .host("JAX, jax/_src/interpreters/mlir.py, ir_constant", "Writes the values of Python numbers into programs.")
    .used_by(ALL)
    .also(&["*"]),
    check(
        "passed/executables_of_one_size",
        "Serialized executables of the same size that differ only in a few bytes are different executables.",
        executables_of_one_size,
        "PJRT_Executable_DeserializeAndLoad first_executable",
    )
    .host("JAX, jax/_src/compilation_cache.py, get_executable_and_time", "Loads executables that differ only in a constant.")
    .used_by(&[Profile::TorchXla])
    .also(&["*"]),
    check(
        "passed/executable_of_another_client",
        "A serialized executable can be loaded by a new client, after the client and the program that it came from were destroyed.",
        executable_of_another_client,
        "PJRT_Executable_DeserializeAndLoad without PJRT_Executable_Serialize fail INTERNAL",
    )
    .host("JAX, jax/_src/compilation_cache.py, get_executable_and_time", "Loads executables that an earlier process compiled.")
    .used_by(&[Profile::TorchXla]),
];

/// Describes a crash or a failure of a plugin that uses the host's memory after the call. A plugin that cannot run one program at
/// all, or that fails even if the memory stays as it is, has another fault.
fn kept(context: &Context, what: &str, work: impl Fn() -> Verdict) -> Verdict {
    let client = context.client()?;
    let x = upload_four(&client, &[1.0; 4])?;
    compile_add(&client)?.run(&[&x, &x])?;
    let why = format!("the plugin uses {what} {AFTER_THE_CALL}; the plugin must copy what it needs later");
    // What fails now and then does so in one of several runs.
    const RUNS: usize = 6;
    let fails_anyway = || (0..RUNS).find_map(|_| keep_passed(&work).err());
    match risky(&why, &work) {
        Err(Finding::Wrong(found)) => match fails_anyway() {
            Some(Finding::Wrong(found)) => Err(Finding::Wrong(found)),
            _ => Err(Finding::Wrong(format!("{found}; probably, {why}"))),
        },
        verdict => verdict,
    }
}

fn argument_lists(context: &Context) -> Verdict {
    kept(context, "`argument_lists`", || {
        let client = context.client()?;
        let executable = compile_add(&client)?;
        let arrays = [1.0, 2.0, 3.0].map(|value| upload_four(&client, &[value; 4]));
        let [x, y, z] = arrays;
        let (x, y, z) = (x?, y?, z?);
        // All launches are queued before the first output is read.
        let launches = (0..20)
            .map(|round| match round % 2 {
                0 => executable.run(&[&x, &y]),
                _ => executable.run(&[&y, &z]),
            })
            .collect::<Result<Vec<_>, _>>()?;
        for (round, launched) in launches.iter().enumerate() {
            let sum = if round % 2 == 0 { 3.0 } else { 5.0 };
            equal("the sum", numbers(launched.output(0, 0)?)?, vec![sum; 4])?;
        }
        Ok(())
    })
}

fn execute_options(context: &Context) -> Verdict {
    kept(context, "the lists in `options`", || {
        let client = context.client()?;
        let text = add_program("4x").replacen(
            "%x: tensor<4xf32>",
            "%x: tensor<4xf32> {tf.aliasing_output = 0 : i32}",
            1,
        );
        let executable = compiled(&client, &text, &CompileOptions::default())?;
        let donated = upload_four(&client, &[1.0; 4])?;
        let kept = upload_four(&client, &[1.0; 4])?;
        let options = ExecuteOptions::default();
        let launched = executable.launch(&[vec![&donated, &kept]], &options, None, true);
        launched.map_err(|refused| refused.error)?;
        unless_donated(&donated)?;
        let options = ExecuteOptions {
            non_donatable: vec![0],
            call_location: Some("a program".to_owned()),
            ..ExecuteOptions::default()
        };
        for _ in 0..4 {
            let x = upload_four(&client, &[1.0, 2.0, 3.0, 4.0])?;
            let launched =
                executable.launch(&[vec![&x, &x]], &options, None, true).map_err(|refused| refused.error)?;
            equal("the sum", numbers(launched.output(0, 0)?)?, vec![2.0, 4.0, 6.0, 8.0])?;
            equal(
                "PJRT_Buffer_IsDeleted of an argument in non_donatable_input_indices",
                x.is_deleted()?,
                false,
            )?;
            equal("the argument", numbers(&x)?, vec![1.0, 2.0, 3.0, 4.0])?;
        }
        Ok(())
    })
}

/// Compiles some programs that double an array, and runs them once all are compiled.
fn compile_several(context: &Context) -> Verdict {
    let client = context.client()?;
    let programs: Vec<String> =
        (0..3).map(|number| add_program("4x").replacen("@add", &format!("@kept_{number}"), 1)).collect();
    // The plugin has compiled this program under another name, so that no error means that it lacks a feature.
    let executables = programs
        .iter()
        .map(|text| client.compile(&Program::mlir(text), &CompileOptions::default().encode()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| Finding::Wrong(error.to_string()))?;
    let x = upload_four(&client, &[1.0; 4])?;
    for executable in &executables {
        equal("the number of replicas", executable.executable()?.num_replicas()?, 1)?;
        equal("the sum", numbers(executable.run(&[&x, &x])?.output(0, 0)?)?, vec![2.0; 4])?;
    }
    Ok(())
}

fn compile_options(context: &Context) -> Verdict {
    kept(context, "the bytes of `compile_options`", || compile_several(context))
}

fn program(context: &Context) -> Verdict {
    kept(context, "`program`", || compile_several(context))
}

fn create_options(context: &Context) -> Verdict {
    const NAME: &str = "num_devices";
    let given = context.options.iter().find(|option| option.0.name == NAME).map(|option| &option.0.value);
    let Some(Value::Int64(count @ 2..)) = given else {
        return Err(Finding::NotApplicable(format!("no option {NAME} of at least 2 was passed")));
    };
    kept(context, "`create_options`", || {
        let counts = [*count, 1, *count];
        let clients = counts
            .map(|count| {
                let others = context.options.iter().filter(|option| option.0.name != NAME).cloned();
                let options: Vec<CreateOption> =
                    others.chain([CreateOption::new(NAME, Value::Int64(count))]).collect();
                context.plugin.create_client(&options)
            })
            .into_iter()
            .collect::<Result<Vec<_>, _>>()?;
        for (client, count) in clients.iter().zip(counts) {
            equal("the number of devices", client.devices()?.len(), count as usize)?;
            upload_four(client, &[1.0; 4])?;
        }
        Ok(())
    })
}

/// Uploads arrays from the same memory.
fn host_memory_of(context: &Context, arrays: &[Vec<f32>], how: &str) -> Verdict {
    let client = context.client()?;
    let memory = HostMemory::new(&f32_bytes(&arrays[0]), 0);
    for values in arrays {
        memory.write(&f32_bytes(values));
        let dims = [values.len() as i64];
        let uploaded = client.upload_from(&memory, ElementType::F32, &dims, client.device()?)?;
        uploaded.done.wait()?;
        let read = numbers(&uploaded.buffer)?;
        let Some(at) = read.iter().zip(values).position(|(read, expected)| read != expected) else {
            equal("the number of elements", read.len(), values.len())?;
            continue;
        };
        return Err(Finding::Wrong(format!(
            "element {at} of an array is {}; expected {}. The plugin probably recognizes the host's memory by its address{how}, \
             and does not copy it again",
            read[at], values[at]
        )));
    }
    Ok(())
}

fn host_memory_again(context: &Context) -> Verdict {
    host_memory_of(context, &[1.0, 2.0, 3.0].map(|value| vec![value; 1024]), "")
}

fn host_memory_in_part(context: &Context) -> Verdict {
    let mut values: Vec<f32> = (0..1024).map(|index| index as f32).collect();
    // The elements that change are not near the start.
    let changed = [1023, 512, 1022].map(|at| {
        values[at] += 0.5;
        values.clone()
    });
    host_memory_of(context, &changed, " and a part of its bytes")
}

fn programs_of_one_name(context: &Context) -> Verdict {
    let client = context.client()?;
    let compile = |x: &str, y: &str| {
        let text = sums(&["4xf32", "4xf32"], &[(x, y, "4xf32")]);
        compiled(&client, &text, &CompileOptions::default())
    };
    let programs = [compile("%p0", "%p0")?, compile("%p0", "%p1")?, compile("%p1", "%p1")?];
    let (x, y) = (upload_four(&client, &[1.0; 4])?, upload_four(&client, &[10.0; 4])?);
    for (program, sum) in programs.iter().zip([2.0, 11.0, 20.0]) {
        let got = numbers(program.run(&[&x, &y])?.output(0, 0)?)?;
        keeps(&x, 1.0)?;
        ensure!(
            got == [sum; 4],
            "the sum is {got:?}; expected {:?}. The program was compiled after others of the same name and length; the plugin \
             probably {EARLIER_PROGRAM}: it uses the name or the length as the key of a cache of compiled programs",
            [sum; 4]
        );
    }
    Ok(())
}

/// Compiles programs that add a constant, which is the only difference between them.
fn of_constants(client: &Client) -> Result<[(LoadedExecutable, f32); 3], Finding> {
    let ty = "tensor<4xf32>";
    let compile = |value: f32| {
        let lines = format!(
            "    %c = stablehlo.constant dense<{value:.1}> : {ty}\n    %s = stablehlo.add %x, %c : {ty}\n"
        );
        let text = with_main(&format!("%x: {ty}"), &lines, "%s", ty);
        Ok::<_, Finding>((compiled(client, &text, &CompileOptions::default())?, value))
    };
    Ok([compile(1.0)?, compile(2.0)?, compile(3.0)?])
}

/// Fails if an execution changed its argument, which explains wrong results of the next ones.
fn keeps(argument: &Buffer, value: f32) -> Verdict {
    let after = numbers(argument)?;
    equal("the number of elements of an argument", after.len(), 4)?;
    ensure!(
        after == [value; 4],
        "the argument of an execution is {after:?} afterwards; expected {value} everywhere: {CHANGED_ARGUMENT}"
    );
    Ok(())
}

/// Checks that a program adds its constant to an array of tens.
fn adds(program: &LoadedExecutable, x: &Buffer, value: f32, what: &str, cause: &str) -> Verdict {
    let got = numbers(program.run(&[x])?.output(0, 0)?)?;
    keeps(x, 10.0)?;
    ensure!(
        got == [10.0 + value; 4],
        "{what}, which adds {value} to 10, returns {got:?}. The plugin probably {cause}"
    );
    Ok(())
}

/// Checks that each of the programs adds its own constant.
fn add_their_constants(programs: &[(LoadedExecutable, f32)], x: &Buffer) -> Verdict {
    let cause = &format!(
        "{EARLIER_PROGRAM}: it does not compare the constants of programs when it looks for one that it has compiled"
    );
    programs.iter().try_for_each(|(program, value)| {
        adds(program, x, *value, "a program that was compiled after one with another constant", cause)
    })
}

fn programs_of_other_constants(context: &Context) -> Verdict {
    let client = context.client()?;
    let programs = of_constants(&client)?;
    let x = upload_four(&client, &[10.0; 4])?;
    add_their_constants(&programs, &x)?;
    let mut fingerprints = Vec::new();
    for (program, _) in &programs {
        fingerprints.extend(program.executable()?.fingerprint().ok());
    }
    for (index, fingerprint) in fingerprints.iter().enumerate() {
        ensure!(
            !fingerprints[..index].contains(fingerprint),
            "two programs that differ only in a constant have the fingerprint {fingerprint:?}. The plugin probably \
             computes it from a part of the program"
        );
    }
    Ok(())
}

fn executables_of_one_size(context: &Context) -> Verdict {
    let client = context.client()?;
    let programs = of_constants(&client)?;
    let x = upload_four(&client, &[10.0; 4])?;
    let serialized =
        programs.iter().map(|(program, value)| Ok((program.executable()?.serialize()?.bytes, *value)));
    let serialized = serialized.collect::<Result<Vec<_>, Finding>>()?;
    // Programs that are mistaken for each other when they are compiled have another fault.
    add_their_constants(&programs, &x)?;
    for (bytes, value) in serialized {
        let cause =
            &format!("{EARLIER_PROGRAM}: it recognizes an executable by its size or by a part of its bytes");
        adds(&client.deserialize(&bytes)?, &x, value, "a loaded program", cause)?;
    }
    Ok(())
}

fn serialized_executable(context: &Context) -> Verdict {
    kept(context, "`serialized_executable`", || {
        let client = context.client()?;
        let bytes = compile_add(&client)?.executable()?.serialize()?.bytes;
        let (x, y) = (upload_four(&client, &[1.0; 4])?, upload_four(&client, &[2.0; 4])?);
        let loaded = [client.deserialize(&bytes)?, client.deserialize(&bytes)?];
        for program in loaded {
            let sum = numbers(program.run(&[&x, &y])?.output(0, 0)?)?;
            equal("the sum of a loaded program", sum, vec![3.0; 4])?;
        }
        Ok(())
    })
}

fn executable_of_another_client(context: &Context) -> Verdict {
    let first = context.client()?;
    let bytes = compile_add(&first)?.executable()?.serialize()?.bytes;
    // An executable that cannot be loaded at all has another fault.
    drop(first.deserialize(&bytes)?);
    drop(first);
    let client = context.client()?;
    let loaded = client.deserialize(&bytes).map_err(|error| match Finding::from(error) {
        Finding::Wrong(error) => Finding::Wrong(format!(
            "an executable that was serialized by another client, which is destroyed, cannot be loaded: {error}; the bytes \
             probably refer to an object of that client"
        )),
        finding => finding,
    })?;
    let x = upload_four(&client, &[1.0; 4])?;
    equal("the sum", numbers(loaded.run(&[&x, &x])?.output(0, 0)?)?, vec![2.0; 4])
}
