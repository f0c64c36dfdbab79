//! Checks that no use of an array keeps its memory after the array was destroyed.

use std::cell::Cell;
use std::time::Duration;

use super::entry::{ALL, Entry, check};
use super::pending::{Pending, in_error};
use super::program_text::{compiled, launch, sums, with_main};
use crate::conform::harness::{
    Context, Finding, LEAKED_OUTPUT, Verdict, ensure, f32_bytes, patience, upload_four,
};
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{
    Buffer, Client, Code, CopyLayout, ElementType, Error, HostArray, LoadedExecutable, eventually,
};

pub(super) const CHECKS: &[Entry] = &[
    check(
        "leaks/of_programs",
        "The memory of a program, such as that of its constants, is free after the program was destroyed, whether it ran or not.",
        programs_leak,
        "PJRT_Buffer_Destroy since PJRT_LoadedExecutable_Destroy skip",
    )
    .header("PJRT_LoadedExecutable_Destroy", "Frees `executable` and deletes the underlying runtime object as if `PJRT_LoadedExecutable_Delete` were called.")
    .also(&["*"]),
    check(
    "lifetime/no_use_leaks",
    "A destroyed array uses no memory, whatever was done with it: events, readbacks, copies, holds, executions, also failed ones.",
    no_use_leaks,
    "PJRT_Buffer_Destroy after PJRT_Buffer_CopyRawToHost skip",
)
.header("PJRT_Buffer_Destroy", "Deletes the underlying runtime objects as if 'PJRT_Buffer_Delete' were called and frees `buffer`.")
.used_by(ALL),
];

/// The number of elements of the arrays, which differs from those of other checks.
const LEN: usize = 1021;

/// The number of times that each use is repeated.
const ROUNDS: usize = 12;

/// The least growth that is a leak: half of the arrays of all rounds.
const LEAST: i64 = (ROUNDS * 2 * LEN) as i64;

/// The objects that the uses need.
struct Host {
    /// A program that adds two arrays, unless none can be compiled.
    adds: Option<LoadedExecutable>,
    /// A program that donates its first argument, which no output can take over, unless none can be compiled.
    takes: Option<LoadedExecutable>,
    /// A program that donates its argument to its output, unless none can be compiled.
    reuses: Option<LoadedExecutable>,
    /// An argument of the program `takes`.
    small: Buffer,
    client: Client,
}

impl Host {
    fn new(context: &Context) -> Result<Self, Error> {
        let client = context.client()?;
        let ty = format!("{LEN}xf32");
        let adds = compiled(&client, &sums(&[&ty, &ty], &[("%p0", "%p1", &ty)]), &CompileOptions::default());
        let donor = format!("%x: tensor<{ty}> {{jax.buffer_donor = true}}, %y: tensor<4xf32>");
        let add = "    %sum = stablehlo.add %y, %y : tensor<4xf32>\n";
        let takes = with_main(&donor, add, "%sum", "tensor<4xf32>");
        let takes = compiled(&client, &takes, &CompileOptions::default());
        let aliased = format!("%x: tensor<{ty}> {{tf.aliasing_output = 0 : i32}}");
        let add = format!("    %sum = stablehlo.add %x, %x : tensor<{ty}>\n");
        let reuses = with_main(&aliased, &add, "%sum", &format!("tensor<{ty}>"));
        let reuses = compiled(&client, &reuses, &CompileOptions::default());
        let small = upload_four(&client, &[1.0; 4])?;
        Ok(Self { client, adds: adds.ok(), takes: takes.ok(), reuses: reuses.ok(), small })
    }

    fn upload(&self) -> Result<Buffer, Error> {
        let bytes = f32_bytes(&[1.0; LEN]);
        let array = HostArray::new(&bytes, ElementType::F32, &[LEN as i64]);
        let uploaded = self.client.upload(&array, Some(self.client.device()?), None)?;
        uploaded.done.wait()?;
        Ok(uploaded.buffer)
    }

    fn adds(&self) -> Result<&LoadedExecutable, Finding> {
        given(&self.adds)
    }

    fn in_use(&self) -> Result<i64, Error> {
        Ok(self.client.device()?.memory_stats()?.bytes_in_use)
    }
}

/// Returns a program that the plugin may have refused.
fn given(program: &Option<LoadedExecutable>) -> Result<&LoadedExecutable, Finding> {
    program.as_ref().ok_or_else(|| Finding::Unsupported("the program cannot be compiled".to_owned()))
}

/// A use of an array: the functions that it is about, and the use itself.
type Use = (&'static str, fn(&Host, &Buffer) -> Verdict);

const USES: &[Use] = &[
    ("PJRT_Buffer_ReadyEvent", |_, array| Ok(array.ready()?.wait()?)),
    ("PJRT_Buffer_ReadyEvent and PJRT_Event_OnReady", |_, array| {
        ensure!(array.ready()?.on_ready()?.wait(patience()).is_some(), "the callback was not called");
        Ok(())
    }),
    ("PJRT_Buffer_ToHostBuffer without a destination", |_, array| {
        array.host_size(&CopyLayout::Unsaid)?;
        Ok(())
    }),
    ("PJRT_Buffer_ToHostBuffer", |_, array| array.read().map(drop).map_err(Finding::from)),
    ("PJRT_Buffer_ToHostBuffer into too little memory", |_, array| {
        drop(array.read_into(5, &CopyLayout::Unsaid));
        Ok(())
    }),
    ("PJRT_Buffer_CopyRawToHost", |_, array| Ok(array.read_raw(4, 8)?.map(drop)?)),
    ("PJRT_Buffer_CopyRawToHostFuture", |_, array| Ok(array.read_raw_later(4, 8)?.finish().map(drop)?)),
    ("PJRT_Buffer_CopyRawToHostFuture that the host cancels", |_, array| {
        drop(array.read_raw_later(4, 8)?.cancel(Code::ABORTED, "not needed"));
        Ok(())
    }),
    ("PJRT_Buffer_CopyToMemory", |host, array| {
        Ok(array.copy_to_memory(host.client.device()?.default_memory()?)?.ready()?.wait()?)
    }),
    (
        "PJRT_Buffer_IncreaseExternalReferenceCount and PJRT_Buffer_DecreaseExternalReferenceCount",
        |_, array| {
            array.ready()?.wait()?;
            array.hold()?;
            Ok(array.release()?)
        },
    ),
    ("PJRT_Buffer_Delete", |_, array| Ok(array.delete()?)),
    ("PJRT_Buffer_Bitcast", |_, array| {
        Ok(array.bitcast(ElementType::S32, &[LEN as i64])?.ready()?.wait()?)
    }),
    ("PJRT_Buffer_DonateWithControlDependency", |_, array| {
        let (taken, dependency) = array.donate()?;
        dependency.finish(Ok(()));
        Ok(taken.ready()?.wait()?)
    }),
    ("PJRT_Buffer_DonateWithControlDependency with a failed dependency", |_, array| {
        let (taken, dependency) = array.donate()?;
        dependency.finish(Err((Code::ABORTED, "not needed")));
        drop(taken.ready()?.wait());
        Ok(())
    }),
    ("PJRT_LoadedExecutable_Execute", |host, array| {
        Ok(launch(host.adds()?, &[array, array], 0)?.output(0, 0)?.ready()?.wait()?)
    }),
    (
        "PJRT_LoadedExecutable_Execute, which takes the array over and returns none of its size",
        |host, array| {
            Ok(launch(given(&host.takes)?, &[array, &host.small], 0)?.output(0, 0)?.ready()?.wait()?)
        },
    ),
    ("PJRT_LoadedExecutable_Execute, which donates the array to an output", |host, array| {
        Ok(launch(given(&host.reuses)?, &[array], 0)?.output(0, 0)?.ready()?.wait()?)
    }),
    ("PJRT_LoadedExecutable_Execute with too few arguments", |host, array| {
        drop(launch(host.adds()?, &[array], 0));
        Ok(())
    }),
    ("PJRT_LoadedExecutable_Execute with an argument in error", |host, array| {
        let bad = in_error(&host.client, (Code::ABORTED, "not needed"))?;
        if let Ok(launched) = launch(host.adds()?, &[array, &bad], 0) {
            drop(launched.output(0, 0)?.ready()?.wait());
        }
        Ok(())
    }),
    ("PJRT_Buffer_Delete while an external reference exists", |_, array| {
        array.ready()?.wait()?;
        array.hold()?;
        let deleted = array.delete();
        array.release()?;
        Ok(deleted?)
    }),
    ("PJRT_Buffer_CopyToDevice", |host, array| {
        let last = host.client.addressable_devices()?.pop();
        Ok(array.copy_to_device(last.map_or_else(|| host.client.device(), Ok)?)?.ready()?.wait()?)
    }),
    ("PJRT_Buffer_OpaqueDeviceMemoryDataPointer", |_, array| Ok(array.opaque_pointer().map(drop)?)),
    ("PJRT_Layouts_PJRT_Buffer_MemoryLayout", |_, array| Ok(array.layout_text().map(drop)?)),
];

/// An execution that still waits for another argument when the array is destroyed.
fn outlived(host: &Host, array: Buffer) -> Verdict {
    let pending = Pending::new(&host.client)?;
    let launched = launch(host.adds()?, &[&array, &pending.array], 0);
    drop(array);
    drop(pending.provide(&host.client, &[1.0; 4])?);
    if let Ok(launched) = launched {
        drop(launched.output(0, 0)?.ready()?.wait());
    }
    Ok(())
}

/// Returns how much the memory in use grows when work that leaves no array behind is repeated. Work that the plugin does later
/// may still hold the memory of some rounds; it has this time.
fn growth(host: &Host, time: Duration, work: impl Fn() -> Verdict) -> Result<i64, Finding> {
    work()?;
    let before = host.in_use()?;
    for _ in 0..ROUNDS {
        work()?;
    }
    let grown = || host.in_use().map_or(0, |now| now - before);
    eventually(time, || grown() < LEAST);
    Ok(grown())
}

fn no_use_leaks(context: &Context) -> Verdict {
    let host = Host::new(context)?;
    if growth(&host, patience() / 4, || Ok(host.upload().map(drop)?))? >= LEAST {
        return Err(Finding::NotApplicable("an array leaks that is not used at all".to_owned()));
    }
    if !any_pair_leaks(&host)? {
        return Ok(());
    }
    let mut leaking = Vec::new();
    for (what, work) in USES {
        if leaks(&host, &mut leaking, (*what).to_owned(), || work(&host, &host.upload()?)) {
            let array = host.upload()?;
            let grown = growth(&host, Duration::ZERO, || work(&host, &array)).unwrap_or(0);
            ensure!(grown < LEAST, "{}", leaks_by_itself(what, grown));
        }
    }
    let what = "PJRT_LoadedExecutable_Execute with an argument whose data comes after the array is destroyed";
    leaks(&host, &mut leaking, what.to_owned(), || outlived(&host, host.upload()?));
    fails_if_any(&leaking, "Without this use it did not grow")?;
    for (first, second) in pairs() {
        let what = match first.0 == second.0 {
            true => format!("{} twice", first.0),
            false => format!("{}, then {}", first.0, second.0),
        };
        leaks(&host, &mut leaking, what, || {
            use_twice(&host, &host.upload()?, first, second);
            Ok(())
        });
        if leaking.len() == NAMED {
            break;
        }
    }
    fails_if_any(&leaking, "With one of the two uses alone it did not grow")
}

/// The number of elements of a program's constant: 64 KiB.
const CONSTANT: usize = 1 << 14;

/// Returns a program that adds a constant whose elements depend on a number, so that no two programs are equal.
fn with_constant(number: usize) -> String {
    let ty = format!("tensor<{CONSTANT}xf32>");
    let elements = (0..CONSTANT).flat_map(|at| ((at + number * CONSTANT) as f32).to_le_bytes());
    let digits: String = elements.map(|byte| format!("{byte:02X}")).collect();
    let lines = format!(
        "    %c = stablehlo.constant dense<\"0x{digits}\"> : {ty}\n    %s = stablehlo.add %x, %c : {ty}\n"
    );
    with_main(&format!("%x: {ty}"), &lines, "%s", &ty)
}

fn programs_leak(context: &Context) -> Verdict {
    let host = Host::new(context)?;
    let elements = vec![0; 4 * CONSTANT];
    let array = HostArray::new(&elements, ElementType::F32, &[CONSTANT as i64]);
    let argument = host.client.upload(&array, Some(host.client.device()?), None)?.buffer;
    let bytes = 4 * CONSTANT;
    let number = Cell::new(0);
    let compile = || {
        number.set(number.get() + 1);
        compiled(&host.client, &with_constant(number.get()), &CompileOptions::default())
    };
    let execute = |program: &LoadedExecutable| -> Verdict {
        Ok(launch(program, &[&argument], 0)?.output(0, 0)?.ready()?.wait()?)
    };
    let one = compile()?;
    let grown = growth(&host, patience() / 4, || execute(&one))?;
    ensure!(
        grown < (ROUNDS * bytes / 2) as i64,
        "bytes_in_use of PJRT_Device_MemoryStats grew by {grown} bytes while one program with a constant of {bytes} bytes was executed \
         {ROUNDS} times, and its output destroyed: the plugin probably does not free the temporary memory of an execution, or its output"
    );
    for runs in [false, true] {
        let work = || {
            let program = compile()?;
            if runs { execute(&program) } else { Ok(()) }
        };
        let grown = growth(&host, patience() / 4, work)?;
        let state = if runs { "compiled, executed" } else { "compiled" };
        ensure!(
            grown < (ROUNDS * bytes / 2) as i64,
            "bytes_in_use of PJRT_Device_MemoryStats grew by {grown} bytes while {ROUNDS} programs, each with another constant of {bytes} \
             bytes, were {state} and destroyed one after the other: the plugin probably does not free the constants of a program, or the \
             program itself, in PJRT_LoadedExecutable_Destroy and PJRT_Executable_Destroy"
        );
    }
    Ok(())
}

/// Returns all pairs of uses.
fn pairs() -> impl Iterator<Item = (&'static Use, &'static Use)> {
    USES.iter().flat_map(|first| USES.iter().map(move |second| (first, second)))
}

/// Uses an array twice. The first use may leave the array in a state in which the second one is refused.
fn use_twice(host: &Host, array: &Buffer, first: &Use, second: &Use) {
    drop((first.1)(host, array));
    drop((second.1)(host, array));
}

/// Returns `true` if the memory in use grows when arrays are used in all pairs of ways, each of which is destroyed.
fn any_pair_leaks(host: &Host) -> Result<bool, Finding> {
    const HALF_AN_ARRAY: i64 = 2 * LEN as i64;
    const STEP: Duration = Duration::from_millis(2);
    let all = || {
        // Other checks test the functions.
        drop(outlived(host, host.upload()?));
        pairs().try_for_each(|(first, second)| {
            use_twice(host, &host.upload()?, first, second);
            Ok::<(), Error>(())
        })
    };
    all()?;
    // Work that the plugin does later may still hold memory.
    let mut before = host.in_use()?;
    eventually(patience() / 50, || {
        std::thread::sleep(STEP);
        let last = before;
        before = host.in_use().unwrap_or(last);
        before == last
    });
    all()?;
    Ok(!eventually(patience() / 4, || host.in_use().is_ok_and(|now| now - before < HALF_AN_ARRAY)))
}

/// The number of pairs of uses that the message names.
const NAMED: usize = 5;

/// Adds a use to those that leak, and returns `true`, if it does.
fn leaks(host: &Host, leaking: &mut Vec<String>, what: String, work: impl Fn() -> Verdict) -> bool {
    // A cause that many uses have is waited for once.
    let time = if leaking.is_empty() { patience() / 4 } else { patience() / 50 };
    // Other checks test the functions.
    match growth(host, time, work) {
        Ok(grown) if grown >= LEAST => {
            leaking.push(format!("{what} ({grown} bytes)"));
            true
        }
        Ok(_) | Err(_) => false,
    }
}

/// Describes a use that leaks memory even if one array is used again and again.
fn leaks_by_itself(what: &str, grown: i64) -> String {
    let (kept, of_use) = match what.starts_with("PJRT_LoadedExecutable_Execute") {
        true => (LEAKED_OUTPUT, "Its outputs were destroyed"),
        false => ("the plugin probably does not free memory of its own", "What it returned was destroyed"),
    };
    format!(
        "bytes_in_use of PJRT_Device_MemoryStats grew by {grown} bytes while one array of {} bytes was used {ROUNDS} times, if \
         the use was: {what}. {of_use}: {kept}",
        4 * LEN
    )
}

fn fails_if_any(leaking: &[String], otherwise: &str) -> Verdict {
    ensure!(
        leaking.is_empty(),
        "bytes_in_use of PJRT_Device_MemoryStats grew while {ROUNDS} arrays of {} bytes were uploaded, used and destroyed one \
         after the other, if the use was: {}. {otherwise}: the plugin probably keeps a reference to the array \
         for the use, and does not release it",
        4 * LEN,
        leaking.join("; ")
    );
    Ok(())
}
