//! Checks of the state after calls that fail: a failed call changes nothing.

use super::pending::in_error;
use super::program_text::with_main;
use super::uses::{Objects, USES, Use, X};
use crate::conform::harness::{
    Check, Context, Finding, NO_FAILURE, Source, Users, Verdict, add_program, compile_add, ensure, f32_bytes,
    is_brief, numbers, patience, upload_four, upload_to,
};
use crate::requirements::Profile;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{
    Buffer, Code, CopyLayout, CreateOption, ElementType, Error, ExecuteOptions, HostArray, LoadedExecutable,
    Program, Topology, Value, eventually,
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
        "PJRT_Buffer_CopyToMemory failed PJRT_Buffer_Bitcast fail INTERNAL",
    ),
    way(
        "raw_copy_from_a_negative_offset",
        "a raw copy from a negative offset",
        |s| Failure::of(s.x.read_raw(-4, 4).and_then(|copied| copied)),
        "PJRT_Buffer_CopyRawToHost when offset=-4 fail_from_then_on always",
    ),
    way(
        "late_raw_copy_past_the_end",
        "a raw copy past the end of an array, whose destination the host names later,",
        |s| Failure::of(s.x.read_raw_later(12, 9).and_then(|copy| copy.finish())),
        "PJRT_Buffer_CopyRawToHostFuture when transfer_size=9 fail_from_then_on always",
    ),
    way(
        "cancelled_raw_copy",
        "a raw copy that the host cancelled with an error",
        |s| {
            Failure::of(
                s.x.read_raw_later(8, 7).and_then(|copy| copy.cancel(Code::CANCELLED, "no destination")),
            )
        },
        "PJRT_Buffer_CopyRawToHostFuture when transfer_size=7 fail_from_then_on always",
    ),
    way(
        "copy_of_a_deleted_array_to_a_device",
        "a copy of a deleted array to a device",
        |s| {
            let last = s.client.addressable_devices()?.pop();
            let device = last.map_or_else(|| s.client.device(), Ok)?;
            Failure::of(s.deleted()?.copy_to_device(device).and_then(|copy| copy.ready()?.wait()))
        },
        "PJRT_Buffer_ToHostBuffer failed PJRT_Buffer_CopyToDevice fail INTERNAL",
    ),
    way(
        "copy_of_an_array_in_error",
        "a copy of an array that is in error",
        |s| {
            let bad = in_error(&s.client, (Code::DATA_LOSS, "all gone"))?;
            let copy = bad.copy_to_memory(s.client.device()?.default_memory()?);
            Failure::of(copy.and_then(|copy| copy.ready()?.wait()))
        },
        "PJRT_Buffer_CopyToMemory since PJRT_Client_CreateErrorBuffer fail INTERNAL",
    ),
    way(
        "donation_of_a_deleted_array",
        "PJRT_Buffer_DonateWithControlDependency of a deleted array",
        |s| {
            Failure::of(s.deleted()?.donate().and_then(|(array, dependency)| {
                dependency.finish(Ok(()));
                array.ready()?.wait()
            }))
        },
        "PJRT_Buffer_ToHostBuffer failed PJRT_Buffer_DonateWithControlDependency fail INTERNAL",
    ),
    way(
        "release_without_a_hold",
        "PJRT_Buffer_DecreaseExternalReferenceCount of an array that is not held",
        |s| Failure::of(s.x.release()),
        "PJRT_Buffer_ToHostBuffer failed PJRT_Buffer_DecreaseExternalReferenceCount fail INTERNAL",
    ),
    way(
        "bitcast_of_a_deleted_array",
        "a bitcast of a deleted array",
        |s| {
            let cast = s.deleted()?.bitcast(ElementType::S32, &[4]);
            Failure::of(cast.and_then(|cast| cast.ready()?.wait()))
        },
        "PJRT_Buffer_ToHostBuffer failed PJRT_Buffer_Bitcast fail INTERNAL",
    ),
    way(
        "piece_past_the_end",
        "a piece past the end of an array of a transfer manager",
        |s| {
            let shapes = [(ElementType::F32, vec![4])];
            let manager = s.client.transfer_manager(&shapes, s.client.device()?.default_memory()?)?;
            Failure::of(manager.write(0, &[7; 12], 8, false).and_then(|event| event.wait()))
        },
        "PJRT_Client_CreateBuffersForAsyncHostToDevice failed PJRT_AsyncHostToDeviceTransferManager_TransferData fail INTERNAL",
    ),
    way(
        "too_many_replicas",
        "the compilation of a program for more replicas than devices",
        |s| {
            let replicas = s.client.addressable_devices()?.len() as i64 + 1;
            let options = CompileOptions { replicas, ..CompileOptions::default() };
            s.compile(add_program("4x").as_bytes(), &options.encode())
        },
        "PJRT_LoadedExecutable_Execute failed PJRT_Client_Compile fail INTERNAL",
    ),
    way(
        "unknown_device",
        "the compilation of a program for a device that does not exist",
        |s| {
            let options = CompileOptions { devices: vec![12_345], ..CompileOptions::default() };
            s.compile(add_program("4x").as_bytes(), &options.encode())
        },
        "PJRT_Buffer_ToHostBuffer failed PJRT_Client_Compile fail INTERNAL",
    ),
    way(
        "garbage_options_of_an_executable",
        "loading a serialized program with bytes that are no compile options",
        |s| Failure::of(s.client.deserialize_with(&s.serialized, &[0xFF; 7])),
        "PJRT_Executable_DeserializeAndLoad failed PJRT_Executable_DeserializeAndLoad fail INTERNAL",
    ),
    way(
        "execution_of_a_deleted_program",
        "the execution of a deleted program",
        |s| {
            let program = compile_add(&s.client)?;
            program.delete()?;
            Failure::of(program.run(&[&s.x, &s.y]).and_then(|launched| launched.done[0].wait()))
        },
        "PJRT_LoadedExecutable_Execute failed PJRT_LoadedExecutable_Execute fail INTERNAL",
    ),
    way(
        "lookup_of_an_unknown_id",
        "the lookup of a device with an unknown id",
        |s| Failure::of(s.client.lookup_device(12_345)),
        "PJRT_Client_LookupDevice failed PJRT_Client_LookupDevice fail INTERNAL",
    ),
    way(
        "default_assignment_without_room",
        "PJRT_Client_DefaultDeviceAssignment without room for the assignment",
        |s| Failure::of(s.client.default_assignment(1, 1, 0)),
        "PJRT_Client_DefaultDeviceAssignment failed PJRT_Client_DefaultDeviceAssignment fail INTERNAL",
    ),
    way(
        "garbage_topology",
        "the deserialization of bytes that are no topology",
        |s| Failure::of(Topology::deserialize(s.client.plugin(), &[0xFF; 9])),
        "PJRT_TopologyDescription_Deserialize failed PJRT_TopologyDescription_Deserialize fail INTERNAL",
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
    let check = |way: &'static Way| {
        Check {
        name: format!("failures/after_{}", way.name),
        rule: format!(
            "After {} failed, everything is as before: arguments are not deleted and can be read, and the program, the \
             client and other arrays can be used.",
            way.what
        ).into(),
        source: Source::Host {
            place: "JAX, jaxlib/pjit.cc, PjitFunction::Call, and jax/_src/compiler.py",
            text: "An error becomes an exception, which users catch; then they go on with the same arrays, functions and client.",
        },
        is_of_the_table: false,
        since: 0,
        needed_by: &[],
        users: Users::These(&Profile::ALL),
        needed_since: 0,
        fault: way.fault.into(),
        also: match way.fault {
            fault if fault.contains(" failed ") => &["failures/*"],
            fault if fault.starts_with("PJRT_LoadedExecutable_Execute") => OF_EXECUTIONS,
            fault if fault.starts_with("PJRT_Client_Compile") => OF_COMPILATIONS,
            _ => &[],
        },
        run: Box::new(|context| changes_nothing(context, way)),
    }
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
    y: Buffer,
    /// The output of an earlier execution.
    output: Buffer,
    /// The uses of [`USES`] that the plugin supported before the call; none if the check [runs again](is_brief).
    uses: Vec<&'static Use>,
    /// The last field, because the client is destroyed after its objects.
    objects: Objects,
}

impl std::ops::Deref for State {
    type Target = Objects;

    fn deref(&self) -> &Objects {
        &self.objects
    }
}

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
        let output = compile_add(&client)?.run(&[&x, &y])?.take_output()?;
        output.ready()?.wait()?;
        let serialized = compile_add(&client)?.executable()?.serialize();
        let serialized = serialized.map_or_else(|_| Vec::new(), |serialized| serialized.bytes);
        let objects = Objects { x, serialized, options: context.options.clone(), client };
        // A use that works only once says nothing about a failure between two uses.
        let works = |of: &&Use| (0..2).all(|_| matches!((of.call)(&objects), Ok(true)));
        let uses = if is_brief() { Vec::new() } else { USES.iter().filter(works).collect() };
        Ok(Self { executable, is_donating, y, output, uses, objects })
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
            Ok(launched) => match launched.output(0, 0)?.ready()?.wait() {
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
        }
        self.has(&self.y, "argument 1, which the program does not donate,", Y)?;
        self.has(&self.output, "the output of an earlier execution", SUM)?;
        let fails = |what: &'static str| move |error: Error| format!("{what}: {error}");
        let x = upload_four(&self.client, &X).map_err(fails("no array can be uploaded"))?;
        self.has(&x, "an array that was uploaded afterwards", X)?;
        let launched = self.executable.run(&[&x, &self.y]);
        let launched = launched.map_err(fails("the program cannot be executed any more"))?;
        let output = launched.output(0, 0).map_err(fails("the program has no output any more"))?;
        self.has(output, "the output of the next execution", SUM)?;
        let next = compile_add(&self.client).map_err(fails("no program can be compiled any more"))?;
        let launched = next.run(&[&self.y, &self.y]).map_err(fails("another program cannot be executed"))?;
        let output = launched.output(0, 0).map_err(fails("another program has no output"))?;
        self.has(output, "the output of another program", Y.map(|y| y + y))?;
        for of in self.uses.iter().filter(|of| !(of.is_of_x && may_be_donated)) {
            match (of.call)(&self.objects) {
                Ok(true) => {}
                Ok(false) => {
                    return Err(format!("{} has other elements or another result than before", of.what));
                }
                Err(error) => return Err(format!("{} fails, and succeeded before: {error}", of.what)),
            }
        }
        Ok(())
    }
}

fn changes_nothing(context: &Context, way: &Way) -> Verdict {
    let mut failed = false;
    let programs = if is_brief() { &[false][..] } else { &[false, true] };
    for &is_donating in programs {
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
        if let Err(changed) = state.is_as_before(error.1) {
            works_twice(context, is_donating)?;
            let program = if is_donating { " of a program that donates argument 0" } else { "" };
            return Err(Finding::Wrong(format!(
                "after {}{program} failed with \"{}\": {changed}. A call that fails changes nothing: the plugin probably keeps \
                 an error or a part of this call",
                way.what, error.0
            )));
        }
    }
    if !failed {
        return Err(Finding::NotApplicable(format!("{} does not fail", way.what)));
    }
    Ok(())
}

/// Fails with another message if the objects do not work a second time even though no call failed.
fn works_twice(context: &Context, is_donating: bool) -> Verdict {
    State::new(context, is_donating)?.is_as_before(false).map_err(|changed| {
        Finding::Wrong(format!(
            "{changed}. {NO_FAILURE}: the plugin probably changes objects when they are used"
        ))
    })
}

/// Checks that further calls that fail do not increase the memory in use, for each way to fail.
pub(super) fn leave_no_memory(context: &Context) -> Verdict {
    const CALLS: usize = 4;
    let state = State::new(context, false)?;
    let in_use =
        || state.client.device().and_then(|device| device.memory_stats()).map(|stats| stats.bytes_in_use);
    in_use()?;
    for way in WAYS {
        // The first call may fill caches.
        if !matches!((way.call)(&state), Ok(Failure::Refused(_) | Failure::Later(_))) {
            continue;
        }
        let before = in_use()?;
        for _ in 0..CALLS {
            drop((way.call)(&state));
        }
        let is_freed = eventually(patience() / 5, || in_use().is_ok_and(|now| now <= before));
        ensure!(
            is_freed,
            "bytes_in_use was {before} after {} had failed, and is {} after it failed {CALLS} more times; the plugin \
             probably does not \
             free what it allocates before a call fails",
            way.what,
            in_use()?
        );
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
        Ok(launched) => match launched.output(0, 0)?.ready()?.wait() {
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
