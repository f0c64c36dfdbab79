//! Checks that a call affects only its own object: a failure, a deletion or a value of one of several objects does not
//! reach the others.

use std::time::Duration;

use super::entry::{Entry, check};
use super::pending::in_error;
use super::program_text::{compiled, launch, sums};
use super::samples::Shaped;
use crate::conform::harness::{
    Context, Expected, FREED_WHILE_HELD, Finding, Verdict, array_fails_with, compile_add, described, ensure,
    equal, f32_bytes, hangs, numbers, patience, upload_four,
};
use crate::requirements::Profile;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{Buffer, Client, Code, ElementType, Error, Event};

const JAX: &[Profile] = &[Profile::Jax];
const TRANSFER: &str = "PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args::buffer_index";
const TRANSFER_TEXT: &str =
    "The host passes an error code and a message for one buffer, which it names with buffer_index.";

pub(super) const CHECKS: &[Entry] = &[
    check(
        "isolation/failed_transfers",
        "PJRT_AsyncHostToDeviceTransferManager_SetBufferError puts only its own array into error: the manager's other arrays receive their data, before and after it.",
        failed_transfers,
        "PJRT_AsyncHostToDeviceTransferManager_SetBufferError fail_next_buffer",
    )
    .header(TRANSFER, TRANSFER_TEXT)
    .used_by(&[Profile::Zml])
    .since(62),
    check(
        "isolation/transfers",
        "Each array of a transfer manager has its own type, size and data, in whatever order the arrays are retrieved and filled.",
        transfers,
        "PJRT_AsyncHostToDeviceTransferManager_BufferSize when buffer_index=3 give buffer_index=1",
    )
    .header("PJRT_AsyncHostToDeviceTransferManager_TransferData_Args::buffer_index", "The array that the piece belongs to.")
    .since(62),
    check(
        "isolation/aliases",
        "Each of several aliases receives the array or the error that the host fulfills it with, in whatever order.",
        aliases,
        "PJRT_Client_FulfillAliasBuffer first buffer",
    )
    .header("PJRT_Client_FulfillAliasBuffer_Args::fulfill_alias_buffer_cb", "The callback of the alias that is fulfilled.")
    .since(77),
    check(
        "isolation/dependencies",
        "Each of several donated arrays waits for its own dependency, and a failed dependency is an error of its own array only.",
        dependencies,
        "PJRT_Buffer_DonateWithControlDependency swallow_error",
    )
    .header("PJRT_Buffer_DonateWithControlDependency_Args::callback_data", "The data of this call's callback.")
    .since(88)
    .also(&["buffer/donate_with_failed_dependency"]),
    check(
        "isolation/events",
        "Completing one of several events, with or without an error, neither completes nor changes the others.",
        events,
        "PJRT_Event_Set first event",
    )
    .header("PJRT_Event_Set_Args::event", "The event to complete.")
    .since(89)
    .also(&["event/*", "waiting/await_waits_for_the_host"]),
    check(
        "isolation/raw_copies",
        "Each of several raw copies whose destinations the host names later copies its own array, and one that the host cancels fails alone.",
        raw_copies,
        "PJRT_Buffer_CopyRawToHostFuture first buffer",
    )
    .header("PJRT_Buffer_CopyRawToHostFuture_Args::callback_data", "The data of this call's callback.")
    .since(84),
    check(
        "isolation/deleted_arrays",
        "Deleting or destroying an array leaves its copies, its source, other outputs of its execution and arrays with equal elements as they were.",
        deleted_arrays,
        "PJRT_Buffer_Delete first buffer",
    )
    .header("PJRT_Buffer_IsDeleted", "True if and only if PJRT_Buffer_Delete has previously been called for this buffer.")
    .needed_by(JAX)
    .also(&["buffer/*", "donation/*", "reuse/*", "programs/*", "repeats/*", "failures/*"]),
    check(
        "isolation/failed_executions",
        "An execution that fails because of an argument, in each place, leaves its other argument, the program, and the executions before and after it as they are.",
        failed_executions,
        "PJRT_LoadedExecutable_Execute when options>launch_id=611 since PJRT_Client_CreateErrorBuffer zeroed_output 0",
    )
    .header("PJRT_Client_CreateErrorBuffer", "If this buffer is passed to an Execute call, the execution will fail; it says so of no other execution.")
    .used_by(JAX),
    check(
        "isolation/held_arrays",
        "Holding and releasing one array does not release another one: each array has its own count.",
        held_arrays,
        "PJRT_Buffer_DecreaseExternalReferenceCount first buffer",
    )
    .header("PJRT_Buffer_IncreaseExternalReferenceCount", "Increments the reference count for the buffer.")
    .also(&["buffer/hold_and_release", "buffer/held_*", "shapes/bytes_in_place"]),
];

/// The elements of one of several arrays.
fn values(index: usize) -> [f32; 4] {
    let first = 10.0 * index as f32 + 1.0;
    [first, first + 1.0, first + 2.0, first + 3.0]
}

/// Fails unless an array has its own elements.
fn has_own(array: &Buffer, index: usize, what: &str) -> Verdict {
    // An array that another failure reached may never be ready.
    let ready = array.ready()?;
    match ready.on_ready()?.wait(patience()) {
        None => return Err(hangs(&format!("the ready event of {what}"), &ready)),
        Some(Err(error)) => {
            return Err(Finding::Wrong(format!(
                "{what} has the error {error}, which belongs to another object"
            )));
        }
        Some(Ok(())) => {}
    }
    let got = numbers(array).map_err(|error| Finding::Wrong(format!("{what} cannot be read: {error}")))?;
    let other = (0..8).find(|other| values(*other)[..] == got[..] && *other != index);
    ensure!(
        got == values(index),
        "{what} is {got:?}; expected {:?}{}",
        values(index),
        other.map_or(String::new(), |other| format!("; these are the elements of number {other}"))
    );
    Ok(())
}

const LOST: (Code, &str) = (Code::DATA_LOSS, "all gone");

/// The number of objects of which one fails.
const COUNT: usize = 4;

fn failed_transfers(context: &Context) -> Verdict {
    let client = context.client()?;
    let memory = client.device()?.default_memory()?;
    for failing in 0..COUNT {
        // The others are filled before, after, or on both sides of the failure.
        for before in [0, 2, COUNT] {
            let manager = client.transfer_manager(&vec![(ElementType::F32, vec![4]); COUNT], memory)?;
            let arrays = (0..COUNT).map(|index| manager.retrieve(index)).collect::<Result<Vec<_>, _>>()?;
            let fill = |from: usize, to: usize| -> Verdict {
                for index in (from..to).filter(|index| *index != failing) {
                    manager.write(index, &f32_bytes(&values(index)), 0, true).and_then(|event| event.wait()).map_err(
                        |error| match error.code {
                            Code::UNIMPLEMENTED => error.into(),
                            _ => Finding::Wrong(format!(
                                "array {index} of a transfer manager cannot be filled after array {failing} was set to an error: \
                                 {error}. The plugin probably puts the whole manager into error"
                            )),
                        },
                    )?;
                }
                Ok(())
            };
            fill(0, before)?;
            manager.fail(failing, LOST.0, LOST.1)?;
            fill(before, COUNT)?;
            for (index, array) in arrays.iter().enumerate() {
                let what = format!(
                    "array {index} of {COUNT} of a transfer manager of which array {failing} was set to an error"
                );
                match index == failing {
                    true => array_fails_with(&what, array, LOST)?,
                    false => has_own(array, index, &what)?,
                }
            }
        }
    }
    Ok(())
}

fn transfers(context: &Context) -> Verdict {
    let client = context.client()?;
    let samples = [
        Shaped::new(ElementType::F32, &[2, 3], 1),
        Shaped::new(ElementType::S32, &[], 2),
        Shaped::new(ElementType::F32, &[0], 3),
        Shaped::new(ElementType::F32, &[17], 4),
        Shaped::new(ElementType::S32, &[2, 1, 2], 5),
        Shaped::new(ElementType::F32, &[2, 3], 6),
    ];
    let shapes: Vec<_> = samples.iter().map(|sample| (sample.element_type, sample.dims.clone())).collect();
    let manager = client.transfer_manager(&shapes, client.device()?.default_memory()?)?;
    equal("the number of arrays of a transfer manager", manager.buffer_count()?, samples.len())?;
    let mut arrays: Vec<(usize, Buffer)> = Vec::new();
    for index in [3, 0, 5, 1, 2, 4] {
        let size = manager.buffer_size(index)?;
        ensure!(
            size >= samples[index].bytes.len(),
            "PJRT_AsyncHostToDeviceTransferManager_BufferSize of array {index}, {}, is {size}; expected at least {}",
            samples[index],
            samples[index].bytes.len()
        );
        arrays.push((index, manager.retrieve(index)?));
    }
    // The first pieces of all arrays come before the last pieces.
    for index in [5, 3, 0] {
        manager.write(index, &samples[index].bytes[..8], 0, false)?.wait()?;
    }
    for index in [0, 1, 2, 3, 4, 5] {
        let from = if [0, 3, 5].contains(&index) { 8 } else { 0 };
        manager.write(index, &samples[index].bytes[from..], from as i64, true)?.wait()?;
    }
    for (index, array) in &arrays {
        let (sample, what) = (&samples[*index], format!("array {index} of a transfer manager"));
        equal(&format!("the type of {what}"), array.element_type()?, sample.element_type)?;
        equal(&format!("the dimensions of {what}"), array.dims()?, sample.dims.clone())?;
        sample.check_array(&what, array)?;
    }
    Ok(())
}

fn aliases(context: &Context) -> Verdict {
    let client = context.client()?;
    let memory = client.device()?.default_memory()?;
    for failing in 0..COUNT {
        // A plugin may donate the array that an alias is fulfilled with.
        let sources =
            (0..COUNT).map(|index| upload_four(&client, &values(index))).collect::<Result<Vec<_>, _>>()?;
        let (mut arrays, mut handles) = (Vec::new(), Vec::new());
        for _ in 0..COUNT {
            let (alias, handle) = client.alias(ElementType::F32, &[4], memory)?;
            arrays.push(alias);
            handles.push(Some(handle));
        }
        for index in [2, 0, 3, 1] {
            let handle = handles[index].take().expect("each index occurs once");
            match index == failing {
                // The call may return the host's error too.
                true => drop(client.fulfill(handle, Err(LOST))),
                false => client.fulfill(handle, Ok(&sources[index]))?,
            }
        }
        for (index, array) in arrays.iter().enumerate() {
            let what =
                format!("alias {index} of {COUNT}, of which alias {failing} was fulfilled with an error,");
            match index == failing {
                true => array_fails_with(&what, array, LOST)?,
                false => has_own(array, index, &what)?,
            }
        }
    }
    Ok(())
}

fn dependencies(context: &Context) -> Verdict {
    let client = context.client()?;
    for failing in 0..COUNT {
        let (mut arrays, mut waiting) = (Vec::new(), Vec::new());
        for index in 0..COUNT {
            let (array, dependency) = upload_four(&client, &values(index))?.donate()?;
            arrays.push(array);
            waiting.push(Some(dependency));
        }
        for (at, index) in [2, 0, 3, 1].into_iter().enumerate() {
            let dependency = waiting[index].take().expect("each index occurs once");
            dependency.finish(if index == failing { Err(LOST) } else { Ok(()) });
            if at == 0 {
                let early = arrays[1].ready()?.is_ready()?;
                ensure!(
                    !early,
                    "a donated array is ready although only the dependency of another one is complete"
                );
            }
        }
        for (index, array) in arrays.iter().enumerate() {
            let what = format!(
                "array {index} of {COUNT} donated ones, of which the dependency of array {failing} failed,"
            );
            match index == failing {
                true => array_fails_with(&what, array, LOST)?,
                false => has_own(array, index, &what)?,
            }
        }
    }
    Ok(())
}

fn events(context: &Context) -> Verdict {
    let all = (0..COUNT).map(|_| Event::create(context.plugin)).collect::<Result<Vec<_>, Error>>()?;
    let calls = all.iter().map(Event::on_ready).collect::<Result<Vec<_>, _>>()?;
    for (at, index) in [2, 0, 3, 1].into_iter().enumerate() {
        let (code, message) = if index % 2 == 0 { LOST } else { (Code::OK, "") };
        all[index].set(code, message)?;
        for (other, event) in all.iter().enumerate() {
            let is_set = [2, 0, 3, 1][..=at].contains(&other);
            ensure!(
                event.is_ready()? == is_set,
                "event {other} of {COUNT} is {}ready after only the events {:?} were completed",
                if is_set { "not " } else { "" },
                &[2, 0, 3, 1][..=at]
            );
            if is_set {
                let (got, failed) = (event.wait(), other % 2 == 0);
                ensure!(
                    got.is_err() == failed,
                    "event {other} of {COUNT} completed with {got}, which is the outcome of another one",
                    got = described(Some(&got))
                );
            } else {
                equal(
                    "the number of calls of a callback of an event that is not complete",
                    calls[other].calls(),
                    0,
                )?;
            }
        }
    }
    for (index, call) in calls.iter().enumerate() {
        let got = call.wait(patience());
        let is_right = got.as_ref().is_some_and(|got| got.is_err() == (index % 2 == 0));
        ensure!(is_right, "the callback of event {index} of {COUNT} received {got:?}");
    }
    Ok(())
}

fn raw_copies(context: &Context) -> Verdict {
    let client = context.client()?;
    let arrays =
        (0..COUNT).map(|index| upload_four(&client, &values(index))).collect::<Result<Vec<_>, _>>()?;
    let mut copies = Vec::new();
    for array in &arrays {
        copies.push(Some(array.read_raw_later(0, 16)?));
    }
    for index in [2, 0, 3, 1] {
        let copy = copies[index].take().expect("each index occurs once");
        if index == 3 {
            let outcome = copy.cancel(LOST.0, LOST.1);
            ensure!(outcome.is_err(), "a raw copy that the host canceled completed without an error");
            continue;
        }
        let got = copy.finish().map_err(|error| {
            Finding::Wrong(format!(
                "raw copy {index} of {COUNT} failed with {error}; another one was canceled"
            ))
        })?;
        equal(&format!("the bytes of raw copy {index} of {COUNT}"), got, f32_bytes(&values(index)))?;
    }
    for (index, array) in arrays.iter().enumerate() {
        has_own(array, index, "an array after raw copies of it")?;
    }
    Ok(())
}

/// Arrays with equal elements that do not depend on each other.
fn family(client: &Client) -> Result<Vec<(&'static str, Buffer)>, Finding> {
    let source = upload_four(client, &values(1))?;
    let mut all = vec![("an array with equal elements", upload_four(client, &values(1))?)];
    let optional = [
        ("a copy in the same memory", source.copy_to_memory(client.device()?.default_memory()?)),
        ("a second copy in the same memory", source.copy_to_memory(client.device()?.default_memory()?)),
    ];
    all.extend(optional.into_iter().filter_map(|(what, copy)| Some((what, copy.ok()?))));
    // The sums of zeros and the values are equal to the values.
    let zeros = upload_four(client, &[0.0; 4])?;
    let text = sums(&["4xf32", "4xf32"], &[("%p0", "%p1", "4xf32"), ("%p1", "%p0", "4xf32")]);
    if let Ok(program) = compiled(client, &text, &CompileOptions::default()) {
        let names = ["the first output of a program", "the second output of the program"];
        all.extend(names.into_iter().zip(launch(&program, &[&source, &zeros], 0)?.take_outputs(2)?));
    }
    all.push(("the source of the copies and argument of the program", source));
    Ok(all)
}

fn deleted_arrays(context: &Context) -> Verdict {
    let client = context.client()?;
    let count = family(&client)?.len();
    for victim in 0..count {
        for is_destroyed in [false, true] {
            let mut all = family(&client)?;
            let (gone, array) = all.remove(victim);
            let how = if is_destroyed { "destroyed" } else { "deleted" };
            let kept = if is_destroyed {
                drop(array);
                None
            } else {
                array.delete()?;
                equal(
                    &format!("PJRT_Buffer_IsDeleted of {gone}, which was deleted,"),
                    array.is_deleted()?,
                    true,
                )?;
                Some(array)
            };
            // These use the memory if it was freed.
            let _others = (0..4).map(|_| upload_four(&client, &[-1.0; 4])).collect::<Result<Vec<_>, _>>()?;
            for (what, array) in &all {
                ensure!(
                    !array.is_deleted()?,
                    "PJRT_Buffer_IsDeleted of {what} is true after {gone} was {how}; each array is deleted on its own"
                );
                has_own(array, 1, &format!("{what} after {gone} was {how}"))?;
            }
            drop(kept);
        }
    }
    Ok(())
}

fn failed_executions(context: &Context) -> Verdict {
    let client = context.client()?;
    let program = compile_add(&client)?;
    let (x, y) = (upload_four(&client, &values(1))?, upload_four(&client, &values(2))?);
    let sum: Vec<f32> = values(1).iter().zip(values(2)).map(|(x, y)| x + y).collect();
    for places in [[true, false], [false, true], [true, true]] {
        let bad = in_error(&client, LOST)?;
        let pick = |is_bad: bool, good| if is_bad { &bad } else { good };
        let before = launch(&program, &[&x, &y], 611)?;
        let failed = launch(&program, &[pick(places[0], &x), pick(places[1], &y)], 0);
        let after = launch(&program, &[&x, &y], 611).map_err(|error| {
            Finding::Wrong(format!(
                "an execution is refused after another one failed because of its argument: {error}"
            ))
        })?;
        for (what, launched) in [("before", before), ("after", after)] {
            let what =
                format!("an execution that was launched {what} one that fails because of its argument");
            let got = numbers(launched.output(0, 0)?)
                .map_err(|error| Finding::Wrong(format!("the output of {what} has the error {error}")))?;
            ensure!(got == sum, "the output of {what} is {got:?}; expected {sum:?}");
            let outcome = launched.done[0].on_ready()?.wait(patience());
            ensure!(
                outcome == Some(Ok(())),
                "the event of {what} completed with {outcome}",
                outcome = described(outcome.as_ref())
            );
        }
        has_own(&x, 1, "the first good argument of an execution that failed")?;
        has_own(&y, 2, "the second good argument of an execution that failed")?;
        drop(failed);
    }
    Ok(())
}

fn held_arrays(context: &Context) -> Verdict {
    let client = context.client()?;
    let arrays = (0..3).map(|index| upload_four(&client, &values(index))).collect::<Result<Vec<_>, _>>()?;
    for array in &arrays {
        array.ready()?.wait()?;
        array.hold()?;
    }
    let held = arrays[2].is_on_cpu()?.then(|| arrays[2].held_bytes()).transpose()?;
    let release = |index: usize| {
        arrays[index].release().map_err(|error| {
            Finding::Wrong(format!(
                "PJRT_Buffer_DecreaseExternalReferenceCount of array {index}, which the host holds once, failed: {error}. The plugin \
                 probably counts for all arrays together, or released another array"
            ))
        })
    };
    release(0)?;
    release(1)?;
    arrays[2].delete()?;
    let _other = upload_four(&client, &[9.0; 4])?;
    std::thread::sleep(Duration::from_millis(1));
    if let Some(held) = held {
        let got = held.read();
        let what = "an array that was deleted, to which the host holds an external reference, after others were released";
        Expected::floats(what, &f32_bytes(&values(2)))
            .otherwise(FREED_WHILE_HELD)
            .check(got.get(..16).unwrap_or(&got))?;
    }
    release(2)
}
