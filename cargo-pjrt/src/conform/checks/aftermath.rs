//! Checks of the state after calls that fail: a failed call changes nothing.

use super::pending::in_error;
use super::program_text::with_main;
use crate::conform::harness::{
    Check, Context, Finding, Source, Verdict, add_program, compile_add, f32_bytes, numbers, upload_four,
    upload_to,
};
use crate::requirements::Profile;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{
    Buffer, Client, Code, CopyLayout, CreateOption, ElementType, Error, ExecuteOptions, HostArray,
    LoadedExecutable, Program, Value,
};

/// A call that fails.
struct Way {
    name: &'static str,
    /// The call, as the subject of a sentence.
    what: &'static str,
    /// Performs the call. Returns its error, or the error that its outputs have.
    call: fn(&State) -> Result<Failure, Finding>,
    fault: &'static str,
}

/// The outcome of a call that is expected to fail.
enum Failure {
    /// The call returned an error.
    Refused(Error),
    /// The call succeeded, and its outputs have an error.
    Later(Error),
    Accepted,
}

const fn way(
    name: &'static str,
    what: &'static str,
    call: fn(&State) -> Result<Failure, Finding>,
    fault: &'static str,
) -> Way {
    Way { name, what, call, fault }
}

const WAYS: &[Way] = &[
    way(
        "too_few_arguments",
        "an execution with too few arguments",
        |s| s.execute(801, &[vec![&s.x]]),
        "PJRT_LoadedExecutable_Execute when options>launch_id=801 delete_argument_if_failed 0",
    ),
    way(
        "too_many_arguments",
        "an execution with too many arguments",
        |s| s.execute(802, &[vec![&s.x, &s.y, &s.y]]),
        "PJRT_LoadedExecutable_Execute when options>launch_id=802 fail_from_then_on",
    ),
    way(
        "argument_of_another_size",
        "an execution with an argument f32[3] for a parameter f32[4]",
        |s| {
            let short = s.upload(&HostArray::new(&[0; 12], ElementType::F32, &[3]))?;
            s.execute(803, &[vec![&s.x, &short]])
        },
        "PJRT_LoadedExecutable_Execute when options>launch_id=803 delete_argument_if_failed 0",
    ),
    way(
        "argument_of_another_type",
        "an execution with an argument s32[4] for a parameter f32[4]",
        |s| {
            let integers = s.upload(&HostArray::new(&[0; 16], ElementType::S32, &[4]))?;
            s.execute(804, &[vec![&s.x, &integers]])
        },
        "PJRT_LoadedExecutable_Execute when options>launch_id=804 fail_from_then_on",
    ),
    way(
        "argument_on_another_device",
        "an execution with an argument on another device than the program's",
        |s| {
            let [_, second] = super::devices::two(&s.client)?;
            let elsewhere = upload_to(&s.client, &[1.0; 4], second)?.buffer;
            s.execute(805, &[vec![&s.x, &elsewhere]])
        },
        "PJRT_LoadedExecutable_Execute when options>launch_id=805 delete_argument_if_failed 0",
    ),
    way(
        "deleted_argument",
        "an execution with a deleted argument",
        |s| {
            let deleted = s.deleted()?;
            s.execute(806, &[vec![&s.x, &deleted]])
        },
        "PJRT_LoadedExecutable_Execute when options>launch_id=806 fail_from_then_on",
    ),
    way(
        "argument_in_error",
        "an execution with an argument that is in error",
        |s| {
            let bad = in_error(&s.client, (Code::DATA_LOSS, "all gone"))?;
            s.execute(807, &[vec![&s.x, &bad]])
        },
        "PJRT_LoadedExecutable_Execute when options>launch_id=807 fail_from_then_on always",
    ),
    way(
        "lists_for_too_many_devices",
        "an execution with argument lists for more devices than the program has",
        |s| s.execute(808, &[vec![&s.x, &s.y], vec![&s.x, &s.y]]),
        "PJRT_LoadedExecutable_Execute when options>launch_id=808 delete_argument_if_failed 0",
    ),
    way(
        "too_large_output",
        "the compilation or execution of a program whose output does not fit into memory",
        too_large,
        "PJRT_Client_Compile when program>code_size=266 fail_from_then_on always",
    ),
    way(
        "upload_with_too_few_strides",
        "an upload with fewer strides than dimensions",
        |s| {
            let array =
                HostArray { strides: Some(&[4]), ..HostArray::new(&[0; 96], ElementType::F32, &[2, 3, 4]) };
            Failure::of(s.upload(&array))
        },
        "PJRT_Client_BufferFromHostBuffer when num_dims=3 num_byte_strides=1 fail_from_then_on",
    ),
    way(
        "upload_of_a_negative_dimension",
        "an upload of an array with a negative dimension",
        |s| Failure::of(s.upload(&HostArray::new(&[0; 16], ElementType::F32, &[-5]))),
        "PJRT_Client_BufferFromHostBuffer when num_dims=1 dims.0=-5 fail_from_then_on",
    ),
    way(
        "garbage_program",
        "the compilation of bytes that are no program",
        |s| s.compile(b"this is garbage, which nobody can compile", &CompileOptions::default().encode()),
        "PJRT_Client_Compile when program>code_size=41 fail_from_then_on",
    ),
    way(
        "unknown_operation",
        "the compilation of a program with an unknown operation",
        |s| {
            let text = add_program("4x").replace("stablehlo.add %x, %y", "stablehlo.unknown_one %x, %y");
            s.compile(text.as_bytes(), &CompileOptions::default().encode())
        },
        "PJRT_Client_Compile when program>code_size=190 fail_from_then_on",
    ),
    way(
        "garbage_compile_options",
        "the compilation with bytes that are no compile options",
        |s| s.compile(add_program("4x").as_bytes(), &[0xFF; 7]),
        "PJRT_Client_Compile when compile_options_size=7 fail_from_then_on",
    ),
    way(
        "garbage_executable",
        "loading bytes that are no serialized executable",
        |s| Failure::of(s.client.deserialize(&[0xFF; 9])),
        "PJRT_Executable_DeserializeAndLoad when serialized_executable_size=9 fail_from_then_on",
    ),
    way(
        "readback_of_a_deleted_array",
        "a readback of a deleted array",
        |s| Failure::of(s.deleted()?.read_into(16, &CopyLayout::Unsaid)),
        "PJRT_Buffer_ToHostBuffer failed PJRT_Buffer_ToHostBuffer fail INTERNAL",
    ),
    way(
        "readback_into_too_little_memory",
        "a readback into too little memory",
        |s| Failure::of(s.x.read_into(13, &CopyLayout::Unsaid)),
        "PJRT_Buffer_ToHostBuffer when dst_size=13 fail_from_then_on",
    ),
    way(
        "copy_of_a_deleted_array",
        "a copy of a deleted array to a memory",
        |s| {
            let copy = s.deleted()?.copy_to_memory(s.client.device()?.default_memory()?);
            Failure::of(copy.and_then(|copy| copy.ready()?.wait()))
        },
        "PJRT_Buffer_ToHostBuffer failed PJRT_Buffer_CopyToMemory fail INTERNAL",
    ),
    way(
        "raw_copy_past_the_end",
        "a raw copy past the end of an array",
        |s| match s.x.read_raw(12, 9)? {
            Err(error) => Ok(Failure::Later(error)),
            Ok(_) => Ok(Failure::Accepted),
        },
        "PJRT_Buffer_CopyRawToHost when transfer_size=9 fail_from_then_on always",
    ),
    way(
        "bitcast_of_another_size",
        "a bitcast to a type of another size",
        |s| Failure::of(s.x.bitcast(ElementType::S64, &[4])),
        "PJRT_Buffer_Bitcast when element_type=5 fail_from_then_on",
    ),
    way(
        "unknown_option",
        "the creation of a client with an unknown option",
        |s| {
            let mut options = s.options.clone();
            options.push(CreateOption::new("no_such_option_3c", Value::Int64(1)));
            Failure::of(s.client.plugin().create_client(&options))
        },
        "PJRT_Client_Create failed PJRT_Client_Create fail INTERNAL",
    ),
];

/// The checks of executions that fail: a plugin usually handles all failures in the same way.
const OF_EXECUTIONS: &[&str] = &[
    "failures/after_too_few_arguments",
    "failures/after_too_many_arguments",
    "failures/after_argument_of_another_size",
    "failures/after_argument_of_another_type",
    "failures/after_argument_on_another_device",
    "failures/after_deleted_argument",
    "failures/after_argument_in_error",
    "failures/after_lists_for_too_many_devices",
    "failures/after_too_large_output",
];

/// The checks of compilations that fail.
const OF_COMPILATIONS: &[&str] = &[
    "failures/after_garbage_program",
    "failures/after_unknown_operation",
    "failures/after_garbage_compile_options",
    "failures/after_too_large_output",
];

/// Returns one check for each way to fail.
pub(super) fn by_way() -> Vec<Check> {
    let check = |way: &'static Way| Check {
        name: format!("failures/after_{}", way.name),
        rule: format!(
            "After {} failed, everything is as before: arguments are not deleted and can be read, and the program, the \
             client and other arrays can be used.",
            way.what
        ),
        source: Source::Host {
            place: "JAX, jaxlib/pjit.cc, PjitFunction::Call, and jax/_src/compiler.py",
            text: "An error becomes an exception, which users catch; then they go on with the same arrays, functions and client.",
        },
        is_of_the_table: false,
        since: 0,
        needed_by: &[],
        used_by: vec![Profile::Jax, Profile::TorchXla],
        needed_since: 0,
        fault: way.fault.to_owned(),
        also: match way.fault {
            fault if fault.contains(" failed ") => &["failures/*"],
            fault if fault.starts_with("PJRT_LoadedExecutable_Execute") => OF_EXECUTIONS,
            fault if fault.starts_with("PJRT_Client_Compile") => OF_COMPILATIONS,
            _ => &[],
        },
        run: Box::new(|context| changes_nothing(context, way)),
    };
    WAYS.iter().map(check).collect()
}

impl Failure {
    fn of<T>(outcome: Result<T, Error>) -> Result<Self, Finding> {
        match outcome {
            Err(error) if error.code == Code::UNIMPLEMENTED && !error.is_of_success => Err(error.into()),
            Err(error) => Ok(Self::Refused(error)),
            Ok(_) => Ok(Self::Accepted),
        }
    }
}

/// The objects that a failed call must not change.
struct State {
    executable: LoadedExecutable,
    is_donating: bool,
    x: Buffer,
    y: Buffer,
    /// The output of an earlier execution.
    output: Buffer,
    /// A serialized program, if the plugin can load one.
    serialized: Option<Vec<u8>>,
    /// `true` if the plugin can copy bytes as they are on the device.
    copies_raw: bool,
    /// `true` if the plugin can reinterpret the bytes of arrays.
    casts: bool,
    /// The options of clients, and whether there can be several clients.
    options: Vec<CreateOption>,
    makes_clients: bool,
    /// The last field, because the client is destroyed after its objects.
    client: Client,
}

const X: [f32; 4] = [1.0, 2.0, 3.0, 4.0];
const Y: [f32; 4] = [10.0, 20.0, 30.0, 40.0];
const SUM: [f32; 4] = [11.0, 22.0, 33.0, 44.0];

impl State {
    fn new(context: &Context, is_donating: bool) -> Result<Self, Error> {
        let client = context.client()?;
        let argument = "%x: tensor<4xf32>";
        let donated = format!("{argument} {{tf.aliasing_output = 0 : i32}}");
        let executable = match is_donating {
            true => client.compile(
                &Program::mlir(&add_program("4x").replacen(argument, &donated, 1)),
                &CompileOptions::default().encode(),
            )?,
            false => compile_add(&client)?,
        };
        let (x, y) = (upload_four(&client, &X)?, upload_four(&client, &Y)?);
        let output = compile_add(&client)?.run(&[&x, &y])?.outputs.remove(0).remove(0);
        output.ready()?.wait()?;
        let serialized =
            compile_add(&client)?.executable()?.serialize().ok().map(|serialized| serialized.bytes);
        let serialized = serialized.filter(|bytes| client.deserialize(bytes).is_ok());
        let copies_raw = x.read_raw(0, 16).is_ok_and(|copied| copied.is_ok());
        let casts = x.bitcast(ElementType::F32, &[4]).is_ok();
        let (options, makes_clients) = (context.options.clone(), context.client().is_ok());
        Ok(Self {
            client,
            executable,
            is_donating,
            x,
            y,
            output,
            serialized,
            copies_raw,
            casts,
            options,
            makes_clients,
        })
    }

    fn upload(&self, array: &HostArray<'_>) -> Result<Buffer, Error> {
        Ok(self.client.upload(array, Some(self.client.device()?), None)?.buffer)
    }

    fn deleted(&self) -> Result<Buffer, Error> {
        let array = upload_four(&self.client, &X)?;
        array.ready()?.wait()?;
        array.delete()?;
        Ok(array)
    }

    fn execute(&self, launch_id: i32, arguments: &[Vec<&Buffer>]) -> Result<Failure, Finding> {
        let options = ExecuteOptions { launch_id, ..ExecuteOptions::default() };
        match self.executable.launch(arguments, &options, None, true) {
            Err(refused) => Failure::of::<()>(Err(refused.error)),
            Ok(launched) => match launched.outputs[0][0].ready()?.wait() {
                Err(error) => Ok(Failure::Later(error)),
                Ok(()) => Ok(Failure::Accepted),
            },
        }
    }

    fn compile(&self, code: &[u8], options: &[u8]) -> Result<Failure, Finding> {
        match self.client.compile(&Program::mlir(code), options) {
            Ok(_) => Ok(Failure::Accepted),
            Err(error) => Ok(Failure::Refused(error)),
        }
    }

    /// Fails if an array is deleted, or has other elements than before.
    fn has(&self, array: &Buffer, name: &str, expected: [f32; 4]) -> Result<(), String> {
        if array.is_deleted().unwrap_or(false) {
            return Err(format!("{name} is deleted"));
        }
        match numbers(array) {
            Ok(got) if got == expected => Ok(()),
            Ok(got) => Err(format!("{name} is {got:?}; expected {expected:?}")),
            Err(error) => Err(format!("{name} cannot be read: {error}")),
        }
    }

    /// Uses each object, and describes the first that does not work as before.
    fn is_as_before(&self, may_be_donated: bool) -> Result<(), String> {
        if !may_be_donated {
            self.has(&self.x, "argument 0", X)?;
            if self.copies_raw {
                let copied = self.x.read_raw(0, 16).and_then(|copied| copied);
                copied
                    .map_err(|error| format!("argument 0 cannot be copied as raw bytes any more: {error}"))?;
            }
            if self.casts {
                let cast = self.x.bitcast(ElementType::F32, &[4]);
                cast.map_err(|error| format!("argument 0 cannot be reinterpreted any more: {error}"))?;
            }
        }
        self.has(&self.y, "argument 1, which the program does not donate,", Y)?;
        self.has(&self.output, "the output of an earlier execution", SUM)?;
        let fails = |what: &'static str| move |error: Error| format!("{what}: {error}");
        let x = upload_four(&self.client, &X).map_err(fails("no array can be uploaded"))?;
        self.has(&x, "an array that was uploaded afterwards", X)?;
        let launched = self.executable.run(&[&x, &self.y]);
        let launched = launched.map_err(fails("the program cannot be executed any more"))?;
        self.has(&launched.outputs[0][0], "the output of the next execution", SUM)?;
        let next = compile_add(&self.client).map_err(fails("no program can be compiled any more"))?;
        let launched = next.run(&[&self.y, &self.y]).map_err(fails("another program cannot be executed"))?;
        self.has(&launched.outputs[0][0], "the output of another program", Y.map(|y| y + y))?;
        if self.makes_clients {
            let client = self.client.plugin().create_client(&self.options);
            client.map(drop).map_err(fails("no client can be created any more"))?;
        }
        let Some(bytes) = &self.serialized else { return Ok(()) };
        self.client
            .deserialize(bytes)
            .map(drop)
            .map_err(fails("no serialized program can be loaded any more"))
    }
}

fn changes_nothing(context: &Context, way: &Way) -> Verdict {
    let mut failed = false;
    for is_donating in [false, true] {
        let state = match State::new(context, is_donating) {
            // Other checks test programs that donate arguments.
            Err(_) if is_donating => break,
            state => state?,
        };
        let error = match (way.call)(&state)? {
            Failure::Accepted => continue,
            Failure::Refused(error) => (error, false),
            Failure::Later(error) => (error, state.is_donating),
        };
        failed = true;
        let program = if is_donating { " of a program that donates argument 0" } else { "" };
        state.is_as_before(error.1).map_err(|changed| {
            Finding::Wrong(format!(
                "after {}{program} failed with \"{}\": {changed}. A call that fails changes nothing: the plugin probably keeps \
                 an error or a part of this call",
                way.what, error.0
            ))
        })?;
    }
    if !failed {
        return Err(Finding::NotApplicable(format!("{} does not fail", way.what)));
    }
    Ok(())
}

/// The number of elements of an array that no device has memory for: 256 TiB of f32.
const TOO_MANY: i64 = 1 << 46;

fn too_large(state: &State) -> Result<Failure, Finding> {
    let ty = format!("tensor<{TOO_MANY}xf32>");
    let lines = format!(
        "    %s = \"stablehlo.broadcast_in_dim\"(%p0) {{broadcast_dimensions = array<i64>}} : (tensor<f32>) -> {ty}\n"
    );
    let text = with_main("%p0: tensor<f32>", &lines, "%s", &ty);
    let executable = match state.client.compile(&Program::mlir(&text), &CompileOptions::default().encode()) {
        Ok(executable) => executable,
        Err(error) => return Ok(Failure::Refused(error)),
    };
    let scalar = state.upload(&HostArray::new(&f32_bytes(&[1.0]), ElementType::F32, &[]))?;
    match executable.run(&[&scalar]) {
        Err(error) => Ok(Failure::Refused(error)),
        Ok(launched) => match launched.outputs[0][0].ready()?.wait() {
            Err(error) => Ok(Failure::Later(error)),
            Ok(()) => Ok(Failure::Accepted),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_have_different_faults() {
        let mut faults: Vec<&str> = WAYS.iter().map(|way| way.fault).collect();
        faults.sort_unstable();
        faults.dedup();
        assert_eq!(faults.len(), WAYS.len());
    }
}
