//! Checks of programs with no output, with several and with many.

use super::entry::{ALL, Entry, check};
use super::program_text::{compiled, launch, sums, with_main};
use crate::conform::harness::{
    Context, Finding, OUT_OF_ORDER, Verdict, described, ensure, equal, f32_bytes, numbers, patience,
    upload_four,
};
use crate::protobuf::hlo_tuple;
use crate::requirements::Profile;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{Buffer, Client, Code, ElementType, Error, HostArray, LoadedExecutable, Program};

pub(super) const CHECKS: &[Entry] = &[
    check(
        "programs/no_outputs",
        "A program without outputs reports that it has none, and runs: its event completes.",
        no_outputs,
        "PJRT_Executable_NumOutputs replace num_outputs 0 1",
    )
    .header("PJRT_Executable_NumOutputs", "Gets the number of outputs per device produced by `executable`.")
    .needed_by(&[Profile::Jax])
    .also(&["programs/event_without_outputs"]),
    check(
        "programs/event_without_outputs",
        "The event of a device completes even if the program has no outputs, because nothing else tells the host that it ran.",
        event_without_outputs,
        "PJRT_LoadedExecutable_Execute when options>launch_id=920 lose_event 0",
    )
    .header("PJRT_LoadedExecutable_Execute_Args::device_complete_events", "Each `PJRT_Event` will become ready once the corresponding device execution is complete.")
    .needed_by(&[Profile::Jax]),
    check(
        "programs/two_outputs",
        "The outputs are in the order in which the program returns them.",
        two_outputs,
        "PJRT_LoadedExecutable_Execute when options>launch_id=921 swap_outputs 0 1",
    )
    .header("PJRT_LoadedExecutable_Execute_Args::output_lists", "Execution output of size [`num_devices`, num_outputs`], where `num_outputs` is the number of outputs returned by this executable per device.")
    .needed_by(ALL),
    check(
        "programs/counts_two_outputs",
        "PJRT_Executable_NumOutputs is the number of outputs per device.",
        counts_two,
        "PJRT_Executable_NumOutputs replace num_outputs 2 3",
    )
    .header("PJRT_Executable_NumOutputs", "Gets the number of outputs per device produced by `executable`.")
    .needed_by(ALL)
    .also(&["programs/*"]),
    check(
        "programs/dims_of_three_outputs",
        "PJRT_Executable_OutputDimensions lists the dimensions of each output in order, and none for a scalar.",
        three_dims,
        "PJRT_Executable_OutputDimensions repeat_first dim_sizes num_outputs 8",
    )
    .header("PJRT_Executable_OutputDimensions", "Each output has an array shape, which is represented by a list of dimensions. The array shapes of all outputs are concatenated into a single list of dimensions."),
    check(
        "programs/outputs_have_their_dims",
        "Each output array has the dimensions of this output of the program: a scalar has none.",
        arrays_of_three_dims,
        "PJRT_LoadedExecutable_Execute when options>launch_id=922 swap_outputs 1 2",
    )
    .header("PJRT_LoadedExecutable_Execute_Args::output_lists", "Execution output of size [`num_devices`, num_outputs`], where `num_outputs` is the number of outputs returned by this executable per device.")
    .needed_by(ALL),
    check(
        "programs/types_of_two_outputs",
        "PJRT_Executable_OutputElementTypes lists the type of each output in order.",
        two_types,
        "PJRT_Executable_OutputElementTypes repeat_first output_types num_output_types 4",
    )
    .header("PJRT_Executable_OutputElementTypes", "Returns a list of element types for outputs."),
    check(
        "programs/memory_kinds_of_two_outputs",
        "PJRT_Executable_OutputMemoryKinds lists one kind per output, which is that of the output's memory.",
        two_kinds,
        "PJRT_Executable_OutputMemoryKinds replace num_outputs 2 1",
    )
    .header("PJRT_Executable_OutputMemoryKinds_Args::memory_kinds", "Has length `num_outputs`."),
    check(
        "programs/memory_kinds_of_stated_outputs",
        "PJRT_Executable_OutputMemoryKinds says in which memory each output is, also if the program states another memory than the default with mhlo.memory_kind.",
        stated_kinds,
        "PJRT_Executable_OutputMemoryKinds repeat_first memory_kinds num_outputs 8",
    )
    .host("JAX, jax/_src/interpreters/pxla.py, UnloadedMeshExecutable.from_hlo", "Uses the kinds for the shardings of the outputs, and fails later if an array is in another memory."),
    check(
        "programs/the_same_output_twice",
        "A program that returns a value twice has two output arrays, which the host deletes one by one.",
        repeated_output,
        "PJRT_LoadedExecutable_Execute when options>launch_id=923 output_twice",
    )
    .header("PJRT_LoadedExecutable_Execute_Args::output_lists", "PJRT_Buffer_Destroy must be called on the output PJRT_Buffer*.")
    .needed_by(&[Profile::Jax]),
    check(
        "programs/returns_its_argument",
        "An output that equals an argument is a separate array, which remains after the argument is deleted.",
        identity,
        "PJRT_LoadedExecutable_Execute when options>launch_id=924 output_is_argument",
    )
    .header("PJRT_LoadedExecutable_Execute_Args::output_lists", "PJRT_Buffer_Destroy must be called on the output PJRT_Buffer*.")
    .needed_by(&[Profile::Jax]),
    check(
        "programs/unused_parameter",
        "A parameter that the program does not use still has an argument, and the later arguments keep their places.",
        unused_parameter,
        "PJRT_LoadedExecutable_Execute when options>launch_id=929 copy_argument 1 2",
    )
    .header("PJRT_LoadedExecutable_Execute_Args::argument_lists", "Execution input of size [`num_devices`, `num_args`].")
    .needed_by(ALL),
    check(
        "programs/forty_arguments",
        "A program of 40 parameters adds all of its arguments.",
        forty_arguments,
        "PJRT_LoadedExecutable_Execute when options>launch_id=925 copy_argument 0 39",
    )
    .header("PJRT_LoadedExecutable_Execute_Args::argument_lists", "Execution input of size [`num_devices`, `num_args`].")
    .needed_by(ALL)
    .also(&["programs/forty_outputs", "programs/a_thousand_arguments"]),
    check(
        "programs/forty_outputs",
        "A program of 40 parameters and outputs returns all outputs in order.",
        forty_outputs,
        "PJRT_LoadedExecutable_Execute when options>launch_id=926 swap_outputs 38 39",
    )
    .header("PJRT_LoadedExecutable_Execute_Args::output_lists", "Execution output of size [`num_devices`, num_outputs`], where `num_outputs` is the number of outputs returned by this executable per device.")
    .needed_by(ALL),
    check(
        "programs/a_thousand_arguments",
        "A program of 1000 parameters and outputs returns all outputs in order.",
        a_thousand,
        "PJRT_LoadedExecutable_Execute when options>launch_id=938 swap_outputs 998 999",
    )
    .host("JAX, jaxlib/pjit.cc, PjitFunction::Call", "Passes each leaf of a function's arguments as an argument of the program: a model has thousands.")
    .used_by(ALL),
    check(
        "programs/hlo_tuple",
        "The elements of an HLO program's root tuple are its outputs, in order.",
        flat_tuple,
        "PJRT_LoadedExecutable_Execute when options>launch_id=927 swap_outputs 0 1",
    )
    .host("PyTorch/XLA, PjRtComputationClient::ExecuteComputation", "Every program of PyTorch/XLA returns a tuple, and each of its elements is an output.")
    .needed_by(&[Profile::TorchXla]),
    check(
        "programs/hlo_nested_tuple",
        "The leaves of nested tuples are the outputs of an HLO program, in order.",
        nested_tuple,
        "PJRT_LoadedExecutable_Execute when options>launch_id=928 swap_outputs 1 2",
    )
    .advice("The type of the root says how many arrays there are, and a host that receives fewer reads memory that nobody wrote. XLA accepts such programs in its own tests only."),
];

/// The sentence of the C header about the list of outputs.
const OUTPUT_LISTS: &str =
    "`output_lists` has the size [num_devices, num_outputs], with the outputs in the program's order";

fn one_device() -> CompileOptions {
    CompileOptions::default()
}

fn upload(client: &Client, values: &[f32], dims: &[i64]) -> Result<Buffer, Error> {
    let bytes = f32_bytes(values);
    Ok(client.upload(&HostArray::new(&bytes, ElementType::F32, dims), Some(client.device()?), None)?.buffer)
}

/// Compares outputs with the expected values, and says so if the plugin returned them in a different order.
fn in_order(outputs: &[Buffer], expected: &[Vec<f32>]) -> Verdict {
    equal("the number of outputs", outputs.len(), expected.len())?;
    let all = outputs.iter().map(numbers).collect::<Result<Vec<_>, _>>()?;
    // Equal outputs are no evidence of an order.
    let is_permutation = expected.iter().all(|wanted| all.contains(wanted));
    for (index, (got, wanted)) in all.iter().zip(expected).enumerate() {
        if got == wanted {
            continue;
        }
        let other = expected.iter().position(|other| other == got);
        let cause = match other {
            Some(other) if is_permutation => {
                format!("these are the values of output {other}, and all values occur: {OUT_OF_ORDER}")
            }
            Some(other) => format!(
                "expected {wanted:?}; these are the values of output {other}, but the expected values occur nowhere: the plugin \
                 probably returned an output twice, or ran with other arguments"
            ),
            None => format!("expected {wanted:?}; the plugin probably ran with other arguments"),
        };
        return Err(Finding::Wrong(format!("output {index} is {got:?}: {cause}. {OUTPUT_LISTS}")));
    }
    Ok(())
}

/// Compiles a program without outputs, and checks the number that it reports.
fn without_outputs(client: &Client) -> Result<LoadedExecutable, Finding> {
    let executable = compiled(client, &sums(&["4xf32"], &[]), &one_device())?;
    let reported = executable.executable()?.num_outputs()?;
    ensure!(
        reported == 0,
        "PJRT_Executable_NumOutputs is {reported} for a program without outputs; the host would take {reported} arrays \
         from `output_lists` that nobody wrote"
    );
    Ok(executable)
}

fn no_outputs(context: &Context) -> Verdict {
    let client = context.client()?;
    let executable = without_outputs(&client)?;
    let x = upload_four(&client, &[1.0; 4])?;
    let launched = launch(&executable, &[&x], 0)?;
    launched.done[0].wait()?;
    equal("the argument afterwards", numbers(&x)?, vec![1.0; 4])
}

fn event_without_outputs(context: &Context) -> Verdict {
    let client = context.client()?;
    let executable = without_outputs(&client)?;
    let x = upload_four(&client, &[1.0; 4])?;
    let outcome = launch(&executable, &[&x], 920)?.done[0].on_ready()?.wait(patience());
    ensure!(
        outcome == Some(Ok(())),
        "the event of a program without outputs completed with {outcome}; the plugin probably completes \
         `device_complete_events` together with outputs. Each event becomes ready once the execution is complete",
        outcome = described(outcome.as_ref())
    );
    Ok(())
}

const FOUR: &str = "4xf32";

/// Compiles a program that returns x + x and x + y.
fn two_sums(client: &Client) -> Result<LoadedExecutable, Finding> {
    let text = sums(&[FOUR, FOUR], &[("%p0", "%p0", FOUR), ("%p0", "%p1", FOUR)]);
    compiled(client, &text, &one_device())
}

/// Executes a program of [`two_sums`].
fn run_two(client: &Client, executable: &LoadedExecutable, id: i32) -> Result<Vec<Buffer>, Error> {
    let (x, y) = (upload_four(client, &[1.0; 4])?, upload_four(client, &[10.0; 4])?);
    launch(executable, &[&x, &y], id)?.take_outputs(2)
}

fn two_outputs(context: &Context) -> Verdict {
    let client = context.client()?;
    let executable = two_sums(&client)?;
    in_order(&run_two(&client, &executable, 921)?, &[vec![2.0; 4], vec![11.0; 4]])
}

fn counts_two(context: &Context) -> Verdict {
    let client = context.client()?;
    let loaded = two_sums(&client)?;
    equal("PJRT_Executable_NumOutputs of a program with two", loaded.executable()?.num_outputs()?, 2)
}

/// Compiles a program with outputs of rank 1, 0 and 2.
fn of_three_ranks(client: &Client) -> Result<LoadedExecutable, Finding> {
    let types = [FOUR, "f32", "2x3xf32"];
    let of = [("%p0", "%p0", types[0]), ("%p1", "%p1", types[1]), ("%p2", "%p2", types[2])];
    compiled(client, &sums(&types, &of), &one_device())
}

fn three_dims(context: &Context) -> Verdict {
    let client = context.client()?;
    let loaded = of_three_ranks(&client)?;
    equal(
        "PJRT_Executable_OutputDimensions of f32[4], f32[] and f32[2,3]",
        loaded.executable()?.output_dims()?,
        vec![vec![4], vec![], vec![2, 3]],
    )
}

fn arrays_of_three_dims(context: &Context) -> Verdict {
    let client = context.client()?;
    let executable = of_three_ranks(&client)?;
    let arguments = [
        upload(&client, &[1.0; 4], &[4])?,
        upload(&client, &[2.0], &[])?,
        upload(&client, &[3.0; 6], &[2, 3])?,
    ];
    let arguments: Vec<&Buffer> = arguments.iter().collect();
    let outputs = launch(&executable, &arguments, 922)?.take_outputs(3)?;
    for (index, dims) in [vec![4], vec![], vec![2, 3]].into_iter().enumerate() {
        let got = outputs[index].dims()?;
        ensure!(
            got == dims,
            "the list of dimensions of output {index} is {got:?}; expected {dims:?}. The plugin probably returns the outputs in \
             a different order, or scalars as arrays of one element. {OUTPUT_LISTS}"
        );
    }
    in_order(&outputs, &[vec![2.0; 4], vec![4.0], vec![6.0; 6]])
}

fn two_types(context: &Context) -> Verdict {
    let client = context.client()?;
    let types = [FOUR, "4xi32"];
    let text = sums(&types, &[("%p0", "%p0", types[0]), ("%p1", "%p1", types[1])]);
    let loaded = compiled(&client, &text, &one_device())?;
    equal(
        "PJRT_Executable_OutputElementTypes of f32[4] and s32[4]",
        loaded.executable()?.output_types()?,
        vec![ElementType::F32, ElementType::S32],
    )
}

fn two_kinds(context: &Context) -> Verdict {
    let client = context.client()?;
    let loaded = two_sums(&client)?;
    let kinds = loaded.executable()?.output_memory_kinds()?;
    ensure!(
        kinds.len() == 2,
        "there are {} memory kinds for 2 outputs; `memory_kinds` has length num_outputs, and JAX compares the numbers",
        kinds.len()
    );
    for (index, output) in run_two(&client, &loaded, 0)?.iter().enumerate() {
        let (said, actual) = (&kinds[index], output.memory()?.kind()?);
        ensure!(
            said.is_empty() || *said == actual,
            "PJRT_Executable_OutputMemoryKinds says {said:?} for output {index}, which is in the memory {actual:?}"
        );
    }
    Ok(())
}

fn stated_kinds(context: &Context) -> Verdict {
    let client = context.client()?;
    let device = client.device()?;
    let default = device.default_memory()?.kind()?;
    let mut compared = 0;
    for memory in device.memories()? {
        let stated = memory.kind()?;
        let ty = format!("tensor<{FOUR}>");
        let text = sums(&[FOUR], &[("%p0", "%p0", FOUR); 2]).replacen(
            &format!("-> ({ty}, {ty})"),
            &format!("-> ({ty} {{mhlo.memory_kind = \"{stated}\"}}, {ty})"),
            1,
        );
        let Ok(loaded) = compiled(&client, &text, &one_device()) else { continue };
        let said = loaded.executable()?.output_memory_kinds()?;
        equal("the number of memory kinds of a program with 2 outputs", said.len(), 2)?;
        let x = upload_four(&client, &[1.0; 4])?;
        let outputs = launch(&loaded, &[&x], 0)?.take_outputs(2)?;
        for (index, output) in outputs.iter().enumerate() {
            let (said, actual) = (&said[index], output.memory()?.kind()?);
            ensure!(
                said.is_empty() || *said == actual,
                "PJRT_Executable_OutputMemoryKinds says {said:?} for output {index} of a program that states the kinds \
                 {stated:?} and {default:?} (the default), but PJRT_Buffer_Memory of this output is of the kind {actual:?}"
            );
        }
        equal("the first output", numbers(&outputs[0])?, vec![2.0; 4])?;
        compared += usize::from(stated != default);
    }
    match compared {
        0 => Err(Finding::Unsupported("no program can state another memory than the default".to_owned())),
        _ => Ok(()),
    }
}

/// Fails if two arrays are one object. One of them is not destroyed then, so that the process survives.
fn distinct(first: &Buffer, second: Buffer, what: &str) -> Result<Buffer, Finding> {
    if !first.is_same(&second) {
        return Ok(second);
    }
    std::mem::forget(second);
    Err(Finding::Wrong(format!(
        "{what} are the same PJRT_Buffer, which the host destroys twice: PJRT_Buffer_Destroy must be called on each \
         output"
    )))
}

fn repeated_output(context: &Context) -> Verdict {
    let client = context.client()?;
    let lines = format!("    %s = stablehlo.add %p0, %p0 : tensor<{FOUR}>\n");
    let types = format!("tensor<{FOUR}>, tensor<{FOUR}>");
    let text = with_main(&format!("%p0: tensor<{FOUR}>"), &lines, "%s, %s", &types);
    let executable = compiled(&client, &text, &one_device())?;
    let x = upload_four(&client, &[1.0; 4])?;
    let mut outputs = launch(&executable, &[&x], 923)?.take_outputs(2)?;
    equal("the number of outputs", outputs.len(), 2)?;
    let second = outputs.pop().expect("two outputs");
    let second = distinct(&outputs[0], second, "the two outputs")?;
    equal("the first output", numbers(&outputs[0])?, vec![2.0; 4])?;
    outputs[0].delete()?;
    equal("PJRT_Buffer_IsDeleted of the second output", second.is_deleted()?, false)?;
    equal("the second output after the first was deleted", numbers(&second)?, vec![2.0; 4])
}

fn identity(context: &Context) -> Verdict {
    let client = context.client()?;
    let ty = format!("tensor<{FOUR}>");
    let text = with_main(&format!("%p0: {ty}"), "", "%p0", &ty);
    let executable = compiled(&client, &text, &one_device())?;
    let x = upload_four(&client, &[1.0, 2.0, 3.0, 4.0])?;
    let output = launch(&executable, &[&x], 924)?.take_output()?;
    let output = distinct(&x, output, "the argument and the output")?;
    equal("PJRT_Buffer_IsDeleted of the argument", x.is_deleted()?, false)?;
    x.delete()?;
    drop(x);
    // If the memory of the argument was freed, this may use it.
    let _other = upload_four(&client, &[9.0; 4])?;
    equal("the output after the argument was deleted", numbers(&output)?, vec![1.0, 2.0, 3.0, 4.0])
}

fn unused_parameter(context: &Context) -> Verdict {
    let client = context.client()?;
    let types = [FOUR, "4xf32", FOUR];
    let executable = compiled(&client, &sums(&types, &[("%p0", "%p2", FOUR)]), &one_device())?;
    let arguments = [1.0, 10.0, 100.0].map(|value| upload_four(&client, &[value; 4]));
    let [x, unused, z] = arguments;
    let output = launch(&executable, &[&x?, &unused?, &z?], 929)?.take_output()?;
    let got = numbers(&output)?;
    ensure!(
        got == [101.0; 4],
        "the sum of the arguments 0 and 2 is {got:?}; expected {:?}. The plugin probably drops a parameter that the program \
         does not use, but not its argument. `argument_lists` has the size [num_devices, num_args]",
        [101.0; 4]
    );
    Ok(())
}

const MANY: usize = 40;

/// Uploads an array for each parameter, which has the number of the parameter in all elements.
fn many_arguments(client: &Client) -> Result<Vec<Buffer>, Error> {
    (0..MANY).map(|index| upload_four(client, &[index as f32; 4])).collect()
}

fn a_thousand(context: &Context) -> Verdict {
    const COUNT: usize = 1000;
    let client = context.client()?;
    let names: Vec<String> = (0..COUNT).map(|index| format!("%p{index}")).collect();
    let all: Vec<_> = names.iter().map(|name| (name.as_str(), "%p0", "f32")).collect();
    let executable = compiled(&client, &sums(&["f32"; COUNT], &all), &one_device())?;
    let arguments =
        (0..COUNT).map(|index| upload(&client, &[index as f32 + 0.5], &[])).collect::<Result<Vec<_>, _>>()?;
    let arguments: Vec<&Buffer> = arguments.iter().collect();
    let outputs = launch(&executable, &arguments, 938)?.take_outputs(COUNT)?;
    equal("the number of outputs", outputs.len(), COUNT)?;
    for (index, output) in outputs.iter().enumerate() {
        let (got, wanted) = (numbers(output)?, [index as f32 + 1.0]);
        ensure!(
            got == wanted,
            "output {index} of {COUNT} is {got:?}; expected {wanted:?}. The plugin probably mixes up the arguments or outputs of \
             programs that have many"
        );
    }
    Ok(())
}

fn forty_arguments(context: &Context) -> Verdict {
    let client = context.client()?;
    let parameters: Vec<String> = (0..MANY).map(|index| format!("%p{index}: tensor<{MANY}xf32>")).collect();
    let mut lines = String::new();
    for index in 1..MANY {
        let before = if index == 1 { "%p0".to_owned() } else { format!("%s{}", index - 1) };
        lines += &format!("    %s{index} = stablehlo.add {before}, %p{index} : tensor<{MANY}xf32>\n");
    }
    let result = format!("%s{}", MANY - 1);
    let text = with_main(&parameters.join(", "), &lines, &result, &format!("tensor<{MANY}xf32>"));
    let executable = compiled(&client, &text, &one_device())?;
    // Only element `index` of argument `index` is not zero, so that the sum says which argument is missing.
    let one = |index: usize| {
        let mut values = [0.0; MANY];
        values[index] = 1.0 + index as f32;
        upload(&client, &values, &[MANY as i64])
    };
    let arguments: Vec<Buffer> = (0..MANY).map(one).collect::<Result<_, _>>()?;
    let arguments: Vec<&Buffer> = arguments.iter().collect();
    let sum = numbers(launch(&executable, &arguments, 925)?.output(0, 0)?)?;
    equal("the number of elements", sum.len(), MANY)?;
    for (index, value) in sum.iter().enumerate() {
        let wanted = 1.0 + index as f32;
        ensure!(
            *value == wanted,
            "argument {index} of {MANY} counts {} times instead of once: the plugin probably passes the arguments beyond \
             a fixed number wrongly. `argument_lists` has the size [num_devices, num_args]",
            value / wanted
        );
    }
    Ok(())
}

fn forty_outputs(context: &Context) -> Verdict {
    let client = context.client()?;
    let names: Vec<String> = (0..MANY).map(|index| format!("%p{index}")).collect();
    // Output i is the sum of the parameters i and 39, so that each output depends on the order of all.
    let of: Vec<_> = names.iter().map(|name| (name.as_str(), names[MANY - 1].as_str(), FOUR)).collect();
    let executable = compiled(&client, &sums(&[FOUR; MANY], &of), &one_device())?;
    let arguments = many_arguments(&client)?;
    let arguments: Vec<&Buffer> = arguments.iter().collect();
    let outputs = launch(&executable, &arguments, 926)?.take_outputs(MANY)?;
    let expected: Vec<Vec<f32>> = (0..MANY).map(|index| vec![(index + MANY - 1) as f32; 4]).collect();
    in_order(&outputs, &expected)
}

/// Compiles an HLO program with outputs x + x, x + y and y + y in a root tuple. Unsupported if the plugin
/// does not read HLO.
fn compile_tuple(client: &Client, nested: bool) -> Result<LoadedExecutable, Finding> {
    let code = hlo_tuple(&[4], nested);
    client
        .compile(&Program { code: &code, format: "hlo" }, &one_device().encode())
        .map_err(|error| Finding::Unsupported(format!("the program cannot be compiled: {error}")))
}

/// Checks a program of [`compile_tuple`].
fn tuple(context: &Context, nested: bool, id: i32) -> Verdict {
    let client = context.client()?;
    let loaded = compile_tuple(&client, nested)?;
    let program = loaded.executable()?;
    let reported = program.num_outputs()?;
    ensure!(
        reported == 3,
        "PJRT_Executable_NumOutputs is {reported} for a root tuple with 3 arrays; hosts expect one output per array"
    );
    match program.output_dims() {
        Err(error) if error.code == Code::UNIMPLEMENTED => {}
        dims => equal("PJRT_Executable_OutputDimensions", dims?, vec![vec![4]; 3])?,
    }
    in_order(&run_two(&client, &loaded, id)?, &[vec![2.0; 4], vec![11.0; 4], vec![20.0; 4]])
}

fn flat_tuple(context: &Context) -> Verdict {
    tuple(context, false, 927)
}

fn nested_tuple(context: &Context) -> Verdict {
    tuple(context, true, 928)
}
