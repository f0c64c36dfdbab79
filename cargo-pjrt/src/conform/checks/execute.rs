//! Checks of execution.

use super::donation::unless_donated;
use super::entry::{ALL, Entry, NONE, check};
use super::threads::on_threads;
use crate::conform::harness::{
    CHANGED_ARGUMENT, Context, Expected, FREED_PROGRAM, Finding, NOT_THE_DEFAULT, SAME_ARRAY_TWICE, UNKNOWN,
    Verdict, add_program, check_array, compile_add, described, ensure, equal, f32_bytes, guarded,
    is_in_memory, is_on_device, numbers, patience, refused_with, upload_four, upload_to,
};
use crate::requirements::Profile;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{Buffer, Client, Code, ElementType, ExecuteOptions, HostArray, Program};

pub(super) const CHECKS: &[Entry] = &[
    check(
        "execute/adds",
        "A program computes the correct results.",
        adds,
        "PJRT_LoadedExecutable_Execute when execute_device=0 give_other_argument",
    )
    .header("PJRT_LoadedExecutable_Execute", "Executes on devices addressable by the client.")
    .needed_by(ALL)
    .also(&["*"]),
    check(
        "execute/without_events",
        "A host that requests no events, such as ZML, receives none.",
        no_events,
        "PJRT_LoadedExecutable_Execute when device_complete_events=0 fail INVALID_ARGUMENT",
    )
    .header("PJRT_LoadedExecutable_Execute_Args::device_complete_events", "If `device_complete_events` isn't nullptr, it needs to be the same length as `output_lists`.")
    .only_used_by(NONE)
    .needed_by(&[Profile::Zml]),
    check(
        "execute/event_comes",
        "The event of a device completes without an error.",
        event_comes,
        "PJRT_LoadedExecutable_Execute when options>launch_id=901 lose_events",
    )
    .header("PJRT_LoadedExecutable_Execute_Args::device_complete_events", "Each `PJRT_Event` will become ready once the corresponding device execution is complete.")
    .needed_by(&[Profile::Jax]),
    check(
        "execute/on_a_named_device",
        "A portable program runs on the device that the host names, with one argument list.",
        named_device,
        "PJRT_LoadedExecutable_Execute when execute_device!=0 fail INTERNAL",
    )
    .header("PJRT_LoadedExecutable_Execute_Args::execute_device", "If set, must be an addressable device, and `num_devices` should be 1 with `argument_lists` only containing arguments for `execute_device`.")
    .only_used_by(NONE)
    .needed_by(&[Profile::TorchXla, Profile::Gomlx])
    .also(&["placement/outputs_of_a_named_device"]),
    check(
        "execute/output_types",
        "Outputs have the program's types and dimensions.",
        output_types,
        "PJRT_LoadedExecutable_Execute when options>launch_id=902 output_is_argument",
    )
    .header("PJRT_LoadedExecutable_Execute_Args::output_lists", "Execution output of size [`num_devices`, num_outputs`]. PJRT_Buffer_Destroy must be called on the output PJRT_Buffer*.")
    .needed_by(ALL),
    check(
        "execute/outputs_are_on_their_device",
        "Outputs are on the device that ran the program, in its default memory.",
        output_place,
        "PJRT_Buffer_Device since PJRT_LoadedExecutable_Execute set device=null",
    )
    .header("PJRT_LoadedExecutable_Execute_Args::execute_device", "If nullptr, will execute on the device(s) specified at compile time.")
    .needed_by(&[Profile::Jax]).also(&["buffer/device", "execute/on_a_named_device", "failures/outputs_have_their_dims"]),
    check(
        "execute/outputs_become_ready",
        "The ready events of outputs complete.",
        outputs_ready,
        "PJRT_Buffer_ReadyEvent since PJRT_LoadedExecutable_Execute set event=never",
    )
    .header("PJRT_Buffer_ReadyEvent", "Returns an event that is triggered when the data in the PJRT_Buffer becomes ready, or an error has occurred.")
    .needed_by(&[Profile::Jax])
    .also(&["*"]),
    check(
        "execute/the_same_argument_twice",
        "An array can be passed as two arguments.",
        same_argument,
        "PJRT_LoadedExecutable_Execute when options>launch_id=914 fail INVALID_ARGUMENT",
    )
    .host("JAX, jaxlib/pjit.cc, PrepareIfrtInputs", "Passes the same buffer twice for f(x, x).")
    .needed_by(ALL)
    .also(&["special/view_is_not_written"]),
    check(
        "execute/arguments_stay",
        "Arguments that are not donated do not change.",
        arguments_stay,
        "PJRT_LoadedExecutable_Execute when options>launch_id=903 delete_argument 0",
    )
    .header("PJRT_Buffer_IsDeleted", "True if and only if PJRT_Buffer_Delete has previously been called. The program donates no argument.")
    .needed_by(ALL),
    check(
        "execute/outputs_are_independent",
        "Outputs remain valid after the arguments and the program are destroyed.",
        independent,
        "PJRT_Buffer_ToHostBuffer since PJRT_LoadedExecutable_Destroy fail INTERNAL",
    )
    .host("JAX, jaxlib/pjit.cc, PjitFunction::Call", "Returns arrays that the user reads after the function and its arguments were collected.")
    .needed_by(ALL)
    .also(&[
        "compile/*",
        "execute/*",
        "special/*",
        "lifetime/*",
        "donation/copy_of_the_argument",
        "donation/destroying_the_argument",
        "donation/other_arguments_stay",
        "donation/overwritten_arguments_are_deleted",
        "lent/program_after_the_call",
        "lent/program_after_the_event",
        "reuse/inputs_of_a_running_program",
        "view/writes_are_seen_*",
    ]),
    check(
        "execute/results_of_results",
        "Outputs can be passed as arguments immediately, even if they are not ready.",
        chained,
        "PJRT_LoadedExecutable_Execute when options>launch_id=913 call 5 fail FAILED_PRECONDITION",
    )
    .host("JAX, jaxlib/pjit.cc, PjitFunction::Call", "Returns the outputs without waiting for them, and passes them to the next program.")
    .needed_by(ALL)
    .also(&["execute/by_many_threads", "lifetime/*"]),
    check(
        "execute/too_few_arguments",
        "Too few arguments are refused with INVALID_ARGUMENT.",
        few_arguments,
        "PJRT_LoadedExecutable_Execute when num_args=1 code INTERNAL",
    )
    .advice("The caller has to pass as many arguments as the program has parameters. JAX and go-xla count them before the call."),
    check(
        "execute/too_many_arguments",
        "Too many arguments are refused with INVALID_ARGUMENT.",
        many_arguments,
        "PJRT_LoadedExecutable_Execute when num_args=3 code INTERNAL",
    )
    .advice("The caller has to pass as many arguments as the program has parameters. JAX and go-xla count them before the call."),
    check(
        "execute/argument_of_another_size",
        "An argument of other dimensions is refused with INVALID_ARGUMENT.",
        wrong_dims,
        "PJRT_LoadedExecutable_Execute when options>launch_id=904 code INTERNAL",
    )
    .host("go-xla, compute/xla/executable.go, Executable.Execute", "Compares only the types of arguments with those of the parameters; GoMLX's compliance tests expect an error for other dimensions.")
    .needed_by(&[Profile::Gomlx]),
    check(
        "execute/argument_of_another_type",
        "An argument of the parameter's size and another type is refused with INVALID_ARGUMENT, or its bits are those of the parameter.",
        another_type,
        "PJRT_LoadedExecutable_Execute when options>launch_id=905 fail INTERNAL",
    )
    .advice("The caller has to pass arguments of the program's types. XLA's plugins read the bits as the parameter's type, and go-xla compares the types before the call."),
    check(
        "execute/too_many_devices",
        "Argument lists for more devices than the program has are refused with INVALID_ARGUMENT.",
        many_devices,
        "PJRT_LoadedExecutable_Execute when num_devices=2 options>launch_id=906 code INTERNAL",
    )
    .advice("The caller has to pass one list for each device of the program; XLA's tests of plugins expect an error."),
    check(
        "execute/of_a_deleted_argument",
        "A deleted argument is refused, or the outputs have its error.",
        deleted_argument,
        "PJRT_LoadedExecutable_Execute when options>launch_id=907 code INTERNAL",
    )
    .host("JAX, jaxlib/pjit.cc, PrepareIfrtInputs", "Passes arrays that were donated before to the plugin, whose error is what the user sees."),
    check(
        "execute/refusing_leaves_nothing",
        "An execution that is refused creates neither outputs nor events, because no host would free them.",
        leaves_nothing,
        "PJRT_LoadedExecutable_Execute when options>launch_id=908 leave_behind",
    )
    .header("PJRT_LoadedExecutable_Execute_Args::device_complete_events", "If Execute returns an error, then `device_complete_events` will not be populated.")
    .needed_by(ALL),
    check(
        "execute/after_delete",
        "A program that was deleted is refused, and is not executed.",
        after_delete,
        "PJRT_LoadedExecutable_Delete skip",
    )
    .advice("After PJRT_LoadedExecutable_Delete, callers may only use PJRT_LoadedExecutable_IsDeleted and PJRT_LoadedExecutable_Destroy. An error finds the caller's mistake.")
    .also(&["compile/delete"]),
    check(
        "execute/scalars",
        "A program of scalars runs.",
        scalars,
        "PJRT_Client_BufferFromHostBuffer when num_dims=0 fail UNKNOWN",
    )
    .header("PJRT_LoadedExecutable_Execute", "Executes on devices addressable by the client.")
    .also(&["upload/scalar", "upload/of_each_rank", "programs/outputs_have_their_dims", "view/writes_are_seen_*"])
    .needed_by(ALL),
    check(
        "execute/no_elements",
        "A program of arrays without elements runs.",
        no_elements,
        "PJRT_LoadedExecutable_Execute when options>launch_id=909 fail UNKNOWN",
    )
    .host("JAX, jaxlib/pjit.cc, PjitFunction::Call", "Runs programs of arrays without elements like any other.")
    .used_by(ALL)
    .needed_by(&[Profile::Jax]),
    check(
        "execute/donation",
        "An argument that the program donates is deleted afterwards, if the host permits the donation.",
        donation,
        "PJRT_LoadedExecutable_Execute when options>launch_id=912 delete_argument 1",
    )
    .header("PJRT_ExecuteOptions::non_donatable_input_indices", "The compiler might mark the input as `may-alias`, which could lead PjRt to donate the input buffer."),
    check(
        "execute/donation_that_the_host_forbids",
        "An argument in non_donatable_input_indices is not donated, even if the program donates it.",
        no_donation,
        "PJRT_LoadedExecutable_Execute when options>num_non_donatable_input_indices=1 delete_argument 0",
    )
    .header("PJRT_ExecuteOptions::non_donatable_input_indices", "A list of indices denoting the input buffers that should not be donated.")
    .needed_by(&[Profile::Gomlx]),
    check(
        "execute/donating_an_argument_twice",
        "An array that is donated and also passed as another argument of the same call is refused, or copied.",
        double_donation,
        "PJRT_LoadedExecutable_Execute when options>launch_id=910 fail INTERNAL",
    )
    .host("JAX, jaxlib/pjit.cc, PrepareIfrtInputs", "Passes the same buffer twice for f(x, x) with donate_argnums=0; the result must be right, or the call an error."),
    check(
        "execute/by_many_threads",
        "Several threads can execute the same program at the same time.",
        storm,
        "PJRT_LoadedExecutable_Execute call 60 fail INTERNAL",
    )
    .host("JAX, jaxlib/pjit.cc, PjitFunction::Call", "Releases Python's lock during the execution, so that several threads call a function at the same time.")
    .needed_by(ALL)
    .also(&["waiting/many_launches_ahead"]),
    check(
        "execute/destroyed_while_it_runs",
        "A program can be deleted and destroyed while one of its executions waits for an argument.",
        destroyed_running,
        "PJRT_LoadedExecutable_Destroy since PJRT_Client_CreateAliasBuffer crash",
    )
    .header("PJRT_LoadedExecutable_Delete", "The internal runtime executable will be freed after the last execution completes.")
    .used_by(&[Profile::Jax])
    .also(&[
        "special/alias_as_an_argument",
        "lifetime/deleted_while_in_use",
        "failures/event_of_a_later_failure",
        "waiting/event_comes_after_the_execution",
        "waiting/outputs_are_ready_after_the_execution",
    ])
    .since(77),
    check(
        "execute/options_of_0_54",
        "A host of 0.54 passes options of 72 bytes, and the plugin reads nothing beyond them.",
        options_72,
        "PJRT_LoadedExecutable_Execute when options>struct_size=72 read_past",
    )
    .advice("The header permits plugins to accept older hosts, and does not require it: jaxlib 0.4.30 to 0.4.38 passes this size."),
    check(
        "execute/options_of_0_75",
        "A host of 0.64 to 0.75, such as PyTorch/XLA 2.9, passes options of 80 bytes, and the plugin reads nothing beyond them.",
        options_80,
        "PJRT_LoadedExecutable_Execute when options>struct_size=80 fail INVALID_ARGUMENT",
    )
    .advice("The header permits plugins to accept older hosts, and does not require it: PyTorch/XLA 2.9 and jaxlib 0.5 to 0.6 pass this size.")
    .needed_by(&[Profile::TorchXla]),
    check(
        "execute/options_of_0_76",
        "A host of 0.76 passes options of 88 bytes, and the plugin reads nothing beyond them.",
        options_88,
        "PJRT_LoadedExecutable_Execute when options>struct_size=88 read_past",
    )
    .advice("The header permits plugins to accept older hosts, and does not require it: jaxlib 0.7.2 passes this size."),
    check(
        "execute/options_of_0_90",
        "A host of 0.78 to 0.96 passes options of 112 bytes, and the plugin reads nothing beyond them.",
        options_112,
        "PJRT_LoadedExecutable_Execute when options>struct_size=112 read_past",
    )
    .advice("The header permits plugins to accept older hosts, and does not require it: jaxlib 0.8 and TensorFlow 2.21 pass this size."),
    check(
        "execute/options_of_0_104",
        "A host of 0.97 to 0.104 passes options of 120 bytes, and the plugin reads nothing beyond them.",
        options_120,
        "PJRT_LoadedExecutable_Execute when options>struct_size=120 read_past",
    )
    .advice("The header permits plugins to accept older hosts, and does not require it: go-xla 0.3 passes this size.")
    .needed_by(&[Profile::Gomlx]),
    check(
        "execute/options_of_0_112",
        "A host of 0.112 passes options of 144 bytes, and the plugin reads nothing beyond them.",
        options_144,
        "PJRT_LoadedExecutable_Execute when options>struct_size=144 read_past",
    )
    .advice("The header permits plugins to accept older hosts, and does not require it: JAX 0.10.2 and ZML of mid-2026 pass this size.")
    .needed_by(&[Profile::Jax, Profile::Zml]),
];

fn pair(client: &Client) -> Result<(Buffer, Buffer), pjrt_testing::host::Error> {
    Ok((upload_four(client, &[1.0, 2.0, 3.0, 4.0])?, upload_four(client, &[10.0, 20.0, 30.0, 40.0])?))
}

const SUM: [f32; 4] = [11.0, 22.0, 33.0, 44.0];

fn with_id(launch_id: i32) -> ExecuteOptions {
    ExecuteOptions { launch_id, ..ExecuteOptions::default() }
}

fn adds(context: &Context) -> Verdict {
    let client = context.client()?;
    let (x, y) = pair(&client)?;
    let launched = compile_add(&client)?.run(&[&x, &y])?;
    equal("the sum", numbers(launched.output(0, 0)?)?, SUM.to_vec())?;
    // These dimensions exceed the tiles of devices, and are no multiples of them.
    const DIMS: [i64; 2] = [131, 259];
    let program =
        client.compile(&Program::mlir(&add_program("131x259x")), &CompileOptions::default().encode())?;
    let values: Vec<f32> = (1..=DIMS[0] * DIMS[1]).map(|i| i as f32).collect();
    let bytes = f32_bytes(&values);
    let array = HostArray::new(&bytes, ElementType::F32, &DIMS);
    let x = client.upload(&array, Some(client.device()?), None)?.buffer;
    let launched = program.run(&[&x, &x])?;
    let sums = f32_bytes(&values.iter().map(|x| x + x).collect::<Vec<_>>());
    let what = format!("a sum of two arrays of {DIMS:?}");
    let is_in_a_whole_tile = |at: usize| at / 259 < 128 && at % 259 < 256;
    check_array(launched.output(0, 0)?, |read| {
        let pairs = read.chunks(4).zip(sums.chunks(4)).enumerate();
        let of_tile =
            pairs.filter(|(_, (got, expected))| got != expected).all(|(at, _)| !is_in_a_whole_tile(at));
        let cause =
            if of_tile { "the plugin leaves out the last, partial tile of a dimension" } else { UNKNOWN };
        Expected::new(&what, &sums, ElementType::F32, &DIMS).otherwise(cause).check(read)
    })
}

/// Executes the program with options, and compares the result.
fn runs_with(context: &Context, options: &ExecuteOptions, with_events: bool) -> Verdict {
    let client = context.client()?;
    let (x, y) = pair(&client)?;
    let launched = compile_add(&client)?
        .launch(&[vec![&x, &y]], options, None, with_events)
        .map_err(|refused| refused.error)?;
    equal("the sum", numbers(launched.output(0, 0)?)?, SUM.to_vec())
}

fn no_events(context: &Context) -> Verdict {
    runs_with(context, &ExecuteOptions::default(), false)
}

fn event_comes(context: &Context) -> Verdict {
    let client = context.client()?;
    let (x, y) = pair(&client)?;
    let launched = compile_add(&client)?
        .launch(&[vec![&x, &y]], &with_id(901), None, true)
        .map_err(|refused| refused.error)?;
    let outcome = launched.done[0].on_ready()?.wait(patience());
    ensure!(outcome == Some(Ok(())), "the event completed with {}", described(outcome.as_ref()));
    Ok(())
}

fn named_device(context: &Context) -> Verdict {
    let client = context.client()?;
    let text = add_program("4x");
    let portable = CompileOptions { portable: true, ..CompileOptions::default() };
    let executable = client.compile(&Program::mlir(&text), &portable.encode())?;
    for device in client.addressable_devices()? {
        let x = upload_to(&client, &[1.0; 4], device)?.buffer;
        let launched = executable
            .launch(&[vec![&x, &x]], &ExecuteOptions::default(), Some(device), true)
            .map_err(|refused| refused.error)?;
        let sum = launched.output(0, 0)?;
        equal("the sum", numbers(sum)?, vec![2.0; 4])?;
        is_on_device("the output", sum, device, "The plugin probably ignores `execute_device`")?;
    }
    Ok(())
}

fn output_types(context: &Context) -> Verdict {
    let client = context.client()?;
    let array = HostArray::new(&[0; 24], ElementType::F32, &[2, 3]);
    let x = client.upload(&array, Some(client.device()?), None)?.buffer;
    let executable =
        client.compile(&Program::mlir(&add_program("2x3x")), &CompileOptions::default().encode())?;
    let launched =
        executable.launch(&[vec![&x, &x]], &with_id(902), None, true).map_err(|refused| refused.error)?;
    let output = launched.output(0, 0)?;
    equal("the dimensions", output.dims()?, vec![2, 3])?;
    equal("the type", output.element_type()?, ElementType::F32)?;
    ensure!(
        !output.is_same(&x),
        "the output is the same object as the argument, which would be destroyed twice"
    );
    Ok(())
}

fn output_place(context: &Context) -> Verdict {
    let client = context.client()?;
    let (x, y) = pair(&client)?;
    let launched = compile_add(&client)?.run(&[&x, &y])?;
    let output = launched.output(0, 0)?;
    is_on_device("the output", output, client.device()?, "Outputs are on the device that ran the program")?;
    is_in_memory("the output", output, client.device()?.default_memory()?, NOT_THE_DEFAULT)
}

fn outputs_ready(context: &Context) -> Verdict {
    let client = context.client()?;
    let (x, y) = pair(&client)?;
    let launched = compile_add(&client)?.run(&[&x, &y])?;
    let outcome = launched.output(0, 0)?.ready()?.on_ready()?.wait(patience());
    ensure!(outcome == Some(Ok(())), "the event completed with {}", described(outcome.as_ref()));
    Ok(())
}

fn same_argument(context: &Context) -> Verdict {
    let client = context.client()?;
    let x = upload_four(&client, &[1.0; 4])?;
    let program = compile_add(&client)?;
    let of_one = program.launch(&[vec![&x, &x]], &with_id(914), None, true).map_err(|refused| refused.error);
    let of_one = of_one.and_then(|launched| numbers(launched.output(0, 0)?));
    if of_one.as_ref().is_ok_and(|sum| *sum == [2.0; 4]) {
        return Ok(());
    }
    let other = upload_four(&client, &[1.0; 4])?;
    let of_two = numbers(program.run(&[&x, &other])?.output(0, 0)?)?;
    equal("the sum of two equal arrays", of_two, vec![2.0; 4])?;
    let (got, cause) = match &of_one {
        Ok(sum) if *sum == [1.0; 4] => (format!("the result {sum:?}"), "reads the second argument as zeros"),
        Ok(sum) => {
            (format!("the result {sum:?}"), "takes each argument, and has nothing left for the second one")
        }
        Err(error) => (error.to_string(), "locks or takes each argument, which fails the second time"),
    };
    Err(Finding::Wrong(format!(
        "{SAME_ARRAY_TWICE} ends with {got}, but with two equal arrays it is right; the plugin probably {cause}. Hosts pass one \
         array several times, as in f(x, x)"
    )))
}

fn arguments_stay(context: &Context) -> Verdict {
    let client = context.client()?;
    let (x, y) = pair(&client)?;
    let launched = compile_add(&client)?
        .launch(&[vec![&x, &y]], &with_id(903), None, true)
        .map_err(|refused| refused.error)?;
    launched.done[0].wait()?;
    equal("PJRT_Buffer_IsDeleted of the argument", x.is_deleted()?, false)?;
    let (after, before) = (numbers(&x)?, [1.0, 2.0, 3.0, 4.0]);
    equal("the number of elements of the argument", after.len(), before.len())?;
    ensure!(
        after == before,
        "the first argument is {after:?} after an execution; expected {before:?}: {CHANGED_ARGUMENT}. The plugin probably writes \
         the output to its memory"
    );
    Ok(())
}

fn independent(context: &Context) -> Verdict {
    let client = context.client()?;
    let (x, y) = pair(&client)?;
    let executable = compile_add(&client)?;
    let launched = executable.run(&[&x, &y])?;
    drop((x, y, executable));
    equal("the sum", numbers(launched.output(0, 0)?)?, SUM.to_vec())
}

fn chained(context: &Context) -> Verdict {
    let client = context.client()?;
    let executable = compile_add(&client)?;
    let mut x = upload_four(&client, &[1.0; 4])?;
    for _ in 0..10 {
        let launched = executable.launch(&[vec![&x, &x]], &with_id(913), None, true);
        x = launched.map_err(|refused| refused.error)?.take_output()?;
    }
    equal("ten doublings of 1", numbers(&x)?, vec![1024.0; 4])
}

/// Executes the program with arguments that must be refused, by the call or through the output.
fn refused_run(
    context: &Context,
    what: &str,
    id: i32,
    arguments: &[Vec<&Buffer>],
    client: &Client,
) -> Verdict {
    let _ = context;
    let outcome =
        compile_add(client)?.launch(arguments, &with_id(id), None, true).map_err(|refused| refused.error);
    let outcome = outcome.and_then(|launched| launched.output(0, 0)?.ready()?.wait());
    refused_with(what, outcome, &[Code::INVALID_ARGUMENT], &[])
}

fn few_arguments(context: &Context) -> Verdict {
    let client = context.client()?;
    let (x, _) = pair(&client)?;
    refused_run(context, "one argument for two parameters", 0, &[vec![&x]], &client)
}

fn many_arguments(context: &Context) -> Verdict {
    let client = context.client()?;
    let (x, y) = pair(&client)?;
    refused_run(context, "three arguments for two parameters", 0, &[vec![&x, &y, &x]], &client)
}

fn wrong_dims(context: &Context) -> Verdict {
    let client = context.client()?;
    let (x, _) = pair(&client)?;
    let array = HostArray::new(&[0; 12], ElementType::F32, &[3]);
    let short = client.upload(&array, Some(client.device()?), None)?.buffer;
    refused_run(context, "an argument f32[3] for a parameter f32[4]", 904, &[vec![&x, &short]], &client)
}

fn another_type(context: &Context) -> Verdict {
    let client = context.client()?;
    let (x, _) = pair(&client)?;
    let bits = f32_bytes(&[10.0, 20.0, 30.0, 40.0]);
    let integers =
        client.upload(&HostArray::new(&bits, ElementType::S32, &[4]), Some(client.device()?), None)?;
    let outcome = compile_add(&client)?
        .launch(&[vec![&x, &integers.buffer]], &with_id(905), None, true)
        .map_err(|refused| refused.error);
    match outcome.and_then(|launched| numbers(launched.output(0, 0)?)) {
        Ok(sum) => equal("the sum with the bits of the second argument", sum, SUM.to_vec()),
        Err(error) => {
            let what = "an argument i32[4] for a parameter f32[4]";
            refused_with::<()>(what, Err(error), &[Code::INVALID_ARGUMENT], &[])
        }
    }
}

fn many_devices(context: &Context) -> Verdict {
    let client = context.client()?;
    let (x, y) = pair(&client)?;
    refused_run(context, "two devices for a program of one", 906, &[vec![&x, &y], vec![&x, &y]], &client)
}

fn deleted_argument(context: &Context) -> Verdict {
    let client = context.client()?;
    let (x, y) = pair(&client)?;
    y.ready()?.wait()?;
    y.delete()?;
    refused_run(context, "a deleted argument", 907, &[vec![&x, &y]], &client)
}

fn leaves_nothing(context: &Context) -> Verdict {
    let client = context.client()?;
    let (x, _) = pair(&client)?;
    match compile_add(&client)?.launch(&[vec![&x]], &with_id(908), None, true) {
        Ok(_) => Err(Finding::Wrong("one argument for two parameters was accepted".to_owned())),
        Err(refused) => {
            equal("the number of outputs and events of the refused execution", refused.left_behind, 0)
        }
    }
}

fn after_delete(context: &Context) -> Verdict {
    let client = context.client()?;
    let (x, y) = pair(&client)?;
    let executable = compile_add(&client)?;
    executable.delete()?;
    let codes = [Code::INVALID_ARGUMENT, Code::FAILED_PRECONDITION, Code::INTERNAL];
    refused_with("a program that was deleted", executable.run(&[&x, &y]), &codes, &[])
}

fn scalars(context: &Context) -> Verdict {
    let client = context.client()?;
    let bytes = f32_bytes(&[2.5]);
    let x =
        client.upload(&HostArray::new(&bytes, ElementType::F32, &[]), Some(client.device()?), None)?.buffer;
    let executable = client.compile(&Program::mlir(&add_program("")), &CompileOptions::default().encode())?;
    let launched = executable.run(&[&x, &x])?;
    equal("the sum", numbers(launched.output(0, 0)?)?, vec![5.0])
}

fn no_elements(context: &Context) -> Verdict {
    let client = context.client()?;
    let x = client.upload(&HostArray::new(&[], ElementType::F32, &[0]), Some(client.device()?), None)?.buffer;
    let executable =
        client.compile(&Program::mlir(&add_program("0x")), &CompileOptions::default().encode())?;
    let launched =
        executable.launch(&[vec![&x, &x]], &with_id(909), None, true).map_err(|refused| refused.error)?;
    equal("the sum", numbers(launched.output(0, 0)?)?, Vec::new())
}

/// Returns a program whose output may overwrite its first argument.
fn donating(client: &Client) -> Result<pjrt_testing::host::LoadedExecutable, pjrt_testing::host::Error> {
    let text = add_program("4x").replacen(
        "%x: tensor<4xf32>",
        "%x: tensor<4xf32> {tf.aliasing_output = 0 : i32}",
        1,
    );
    client.compile(&Program::mlir(&text), &CompileOptions::default().encode())
}

fn donation(context: &Context) -> Verdict {
    let client = context.client()?;
    let (x, y) = pair(&client)?;
    let launched = donating(&client)?
        .launch(&[vec![&x, &y]], &with_id(912), None, true)
        .map_err(|refused| refused.error)?;
    equal("the sum", numbers(launched.output(0, 0)?)?, SUM.to_vec())?;
    equal("PJRT_Buffer_IsDeleted of the other argument", y.is_deleted()?, false)?;
    match unless_donated(&x) {
        Err(Finding::Unsupported(_)) => Err(Finding::Advice(
            "the program states with tf.aliasing_output that argument 0 may be donated, and the plugin donates no argument \
             (its list \
             of donated parameters is probably empty): a training step then needs twice the memory for its parameters"
                .to_owned(),
        )),
        verdict => verdict,
    }
}

fn no_donation(context: &Context) -> Verdict {
    let client = context.client()?;
    let (x, y) = pair(&client)?;
    let options = ExecuteOptions { non_donatable: vec![0], ..ExecuteOptions::default() };
    let launched =
        donating(&client)?.launch(&[vec![&x, &y]], &options, None, true).map_err(|refused| refused.error)?;
    equal("the sum", numbers(launched.output(0, 0)?)?, SUM.to_vec())?;
    equal("PJRT_Buffer_IsDeleted of the argument", x.is_deleted()?, false)?;
    equal("the argument", numbers(&x)?, vec![1.0, 2.0, 3.0, 4.0])
}

fn double_donation(context: &Context) -> Verdict {
    let client = context.client()?;
    let (x, _) = pair(&client)?;
    match donating(&client)?.launch(&[vec![&x, &x]], &with_id(910), None, true) {
        Ok(launched) => equal("the sum", numbers(launched.output(0, 0)?)?, vec![2.0, 4.0, 6.0, 8.0]),
        Err(refused) => refused_with::<()>(
            "an array that is both donated and used",
            Err(refused.error),
            &[Code::INVALID_ARGUMENT],
            &[],
        ),
    }
}

fn storm(context: &Context) -> Verdict {
    let client = context.client()?;
    let executable = compile_add(&client)?;
    let work = |thread: u8| -> Verdict {
        for round in 0..15 {
            let (x, y) = (f32::from(thread), f32::from(round as u8));
            let launched =
                executable.run(&[&upload_four(&client, &[x; 4])?, &upload_four(&client, &[y; 4])?])?;
            equal("the sum", numbers(launched.output(0, 0)?)?, vec![x + y; 4])?;
        }
        Ok(())
    };
    on_threads(8, work)
}

fn destroyed_running(context: &Context) -> Verdict {
    let client = context.client()?;
    let memory = client.device()?.default_memory()?;
    for is_deleted in [false, true] {
        let (alias, handle) = client.alias(ElementType::F32, &[4], memory)?;
        let four = upload_four(&client, &[1.0; 4])?;
        let executable = compile_add(&client)?;
        let launched = executable.run(&[&alias, &four])?;
        let kept = if is_deleted {
            executable.delete()?;
            Some(executable)
        } else {
            drop(executable);
            None
        };
        client.fulfill(handle, Ok(&four))?;
        let how = if is_deleted { "deleted" } else { "destroyed" };
        let what = format!("the sum of an execution whose program was {how} while it waited for an argument");
        let sum = numbers(launched.output(0, 0)?)
            .map_err(|error| Finding::Wrong(format!("{what} cannot be read: {error}; {FREED_PROGRAM}")))?;
        ensure!(sum == [2.0; 4], "{what} is {sum:?}; expected {:?}; {FREED_PROGRAM}", [2.0; 4]);
        drop(kept);
    }
    Ok(())
}

fn of_size(context: &Context, size: usize) -> Verdict {
    let options = ExecuteOptions { struct_size: Some(size), ..ExecuteOptions::default() };
    let fence = format!("a PJRT_ExecuteOptions of {size} bytes before an inaccessible page");
    guarded(&fence, || runs_with(context, &options, true))
}

fn options_72(context: &Context) -> Verdict {
    of_size(context, 72)
}

fn options_80(context: &Context) -> Verdict {
    of_size(context, 80)
}

fn options_88(context: &Context) -> Verdict {
    of_size(context, 88)
}

fn options_112(context: &Context) -> Verdict {
    of_size(context, 112)
}

fn options_120(context: &Context) -> Verdict {
    of_size(context, 120)
}

fn options_144(context: &Context) -> Verdict {
    of_size(context, 144)
}
