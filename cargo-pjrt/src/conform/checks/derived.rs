//! Checks of arrays that are derived from others: an array and its copy or output end independently of each other.

use super::entry::{ALL, Entry, check};
use super::program_text::{compiled, launch, with_main};
use crate::conform::harness::{
    Context, Finding, Verdict, ensure, f32_bytes, memory_name, patience, upload_four,
};
use crate::requirements::Profile;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{Buffer, Client, ElementType, Error, ViewMemory, eventually};

const COPY: &str = "PJRT_Buffer_CopyToDevice_Args::dst_buffer";
const COPY_TEXT: &str =
    "The copy is a new buffer, which the caller owns and destroys independently of its source.";

pub(super) const CHECKS: &[Entry] = &[
    check(
        "lifetime/derived_arrays_stay",
        "A copy on each device and in each memory, and an output that is an argument stay as they are when the array that they come from is deleted or destroyed.",
        derived_stay,
        "PJRT_Buffer_CopyToMemory end_with_source",
    )
    .header(COPY, COPY_TEXT)
    .used_by(ALL),
    check(
        "lifetime/sources_of_arrays_stay",
        "An array stays as it is when its copy, or an output that it became, is deleted or destroyed.",
        sources_stay,
        "PJRT_Buffer_CopyToMemory end_source_too",
    )
    .header(COPY, COPY_TEXT)
    .used_by(ALL),
    check(
        "view/released_in_each_way",
        "The callback of a view is called exactly once, in whichever way the host releases the view, and whatever it did with the view before.",
        released,
        "PJRT_Client_CreateViewOfDeviceBuffer when num_dims=4 give on_delete_callback=null",
    )
    .header("PJRT_Client_CreateViewOfDeviceBuffer_Args::on_delete_callback", "A callback to be performed when the PJRT_Buffer is done with the on-device buffer.")
    .only_used_by(&[Profile::Jax, Profile::TorchXla])
    .since(33),
];

/// A way to derive an array from another one: the phrase for messages, and the way itself.
type Way<'c> = (String, Box<dyn Fn(&Buffer) -> Result<Buffer, Finding> + 'c>);

/// The maximum number of devices and memories to which arrays are copied.
const MOST: usize = 12;

/// Returns the ways to derive an array, except `PJRT_Buffer_Bitcast`: no sentence of the header says that a bitcast leaves its
/// operand as it is.
fn ways(client: &Client) -> Result<Vec<Way<'_>>, Finding> {
    let here = client.device()?;
    let mut all: Vec<Way<'_>> = Vec::new();
    for device in client.addressable_devices()?.into_iter().filter(|device| *device != here).take(MOST) {
        let id = device.description()?.id()?;
        let copy = move |array: &Buffer| Ok(array.copy_to_device(device)?);
        all.push((format!("the copy that PJRT_Buffer_CopyToDevice made on the device {id}"), Box::new(copy)));
    }
    for (device, memory) in client.places()?.into_iter().take(MOST) {
        let (id, name) = (device.description()?.id()?, memory_name(memory));
        let copy = move |array: &Buffer| Ok(array.copy_to_memory(memory)?);
        let what = format!("the copy that PJRT_Buffer_CopyToMemory made in {name} of the device {id}");
        all.push((what, Box::new(copy)));
    }
    let text = with_main("%p0: tensor<4xf32>", "", "%p0", "tensor<4xf32>");
    if let Ok(program) = compiled(client, &text, &CompileOptions::default()) {
        let run = move |array: &Buffer| Ok(launch(&program, &[array], 0)?.take_output()?);
        all.push(("the output of a program that returns its argument".to_owned(), Box::new(run)));
    }
    Ok(all)
}

/// The ways in which an array ends. The object of one that was only deleted still exists.
type End = (&'static str, fn(Buffer) -> Result<Option<Buffer>, Error>);

const ENDS: [End; 3] = [
    ("PJRT_Buffer_Destroy", |array| {
        drop(array);
        Ok(None)
    }),
    ("PJRT_Buffer_Delete and PJRT_Buffer_Destroy", |array| array.delete().map(|()| None)),
    ("PJRT_Buffer_Delete", |array| array.delete().map(|()| Some(array))),
];

/// The cause of an array that changes when another one ends.
const SHARED: &str = "the plugin probably lets both share one object, ends one together with the other, or frees memory that the \
                      other needs";

/// Checks that an array is as before, after something happened to another one.
fn stays(array: &Buffer, values: &[f32; 4], what: &str, after: &str, cause: &str) -> Verdict {
    let is_deleted = array.is_deleted()?;
    ensure!(!is_deleted, "{what} is deleted after {after}: {cause}");
    let read = array.ready().and_then(|ready| ready.wait()).and_then(|()| array.read());
    match read {
        Ok(read) if read == f32_bytes(values) => Ok(()),
        Ok(read) => Err(Finding::Wrong(format!(
            "{what} has the bytes {read:?} after {after}; expected {:?}: {cause}",
            f32_bytes(values)
        ))),
        Err(error) => Err(Finding::Wrong(format!("{what} cannot be read after {after}: {error}: {cause}"))),
    }
}

/// Derives an array in each way, ends one of the two in each way, and checks the other.
fn each(context: &Context, ends_source: bool) -> Verdict {
    let client = context.client()?;
    let mut checked = false;
    for (number, (what, derive)) in ways(&client)?.iter().enumerate() {
        for (function, end) in ENDS {
            for waits in [true, false] {
                let start = (10 * number) as f32;
                let values = [start + 1.0, start + 2.5, -start - 3.0, 4.0];
                let source = upload_four(&client, &values)?;
                // Other checks test that each way works, or is refused.
                let Ok(derived) = derive(&source) else { continue };
                if waits {
                    derived.ready()?.wait()?;
                    let made = format!("{what} was made, while both exist");
                    stays(
                        &source,
                        &values,
                        "an array",
                        &made,
                        "the plugin probably moves the array, or takes it for a donation",
                    )?;
                }
                let when = if waits { "" } else { ", before it was ready" };
                let (gone, stay, subject, after) = if ends_source {
                    (source, derived, what.clone(), format!("{function} of its source{when}"))
                } else {
                    (derived, source, "an array".to_owned(), format!("{function} of {what}{when}"))
                };
                let _gone = end(gone)?;
                stays(&stay, &values, &subject, &after, SHARED)?;
                checked = true;
            }
        }
    }
    match checked {
        true => Ok(()),
        false => Err(Finding::Unsupported("no array can be derived from another one".to_owned())),
    }
}

fn derived_stay(context: &Context) -> Verdict {
    each(context, true)
}

fn sources_stay(context: &Context) -> Verdict {
    each(context, false)
}

/// The uses of a view before it is released: the phrase for messages, and the use itself. A use may be refused.
type Use = (&'static str, fn(&Client, &Buffer) -> Verdict);

const USES: &[Use] = &[
    ("was not used", |_, _| Ok(())),
    ("was read", |_, view| Ok(view.read().map(drop)?)),
    ("was read twice", |_, view| {
        view.read()?;
        Ok(view.read().map(drop)?)
    }),
    ("was read raw", |_, view| Ok(view.read_raw(4, 8)?.map(drop)?)),
    ("was copied", |client, view| {
        Ok(view.copy_to_memory(client.device()?.default_memory()?)?.ready()?.wait()?)
    }),
    ("was held and released", |_, view| {
        view.hold()?;
        Ok(view.release()?)
    }),
    ("was an argument", |client, view| {
        let text = with_main(
            "%p0: tensor<1x2x1x2xf32>",
            "    %s0 = stablehlo.add %p0, %p0 : tensor<1x2x1x2xf32>\n",
            "%s0",
            "tensor<1x2x1x2xf32>",
        );
        let program = compiled(client, &text, &CompileOptions::default())?;
        Ok(launch(&program, &[view], 0)?.output(0, 0)?.ready()?.wait()?)
    }),
    ("was donated with a dependency", |_, view| {
        let (taken, dependency) = view.donate()?;
        dependency.finish(Ok(()));
        Ok(taken.ready()?.wait()?)
    }),
];

fn released(context: &Context) -> Verdict {
    let client = context.client()?;
    let device = client.device()?;
    let mut good = Vec::new();
    for (used, use_it) in USES {
        for (function, end) in &ENDS {
            let memory = ViewMemory::new(&f32_bytes(&[1.0, 2.0, 3.0, 4.0]));
            let view = client.view(&memory, ElementType::F32, &[1, 2, 1, 2], device)?;
            drop(use_it(&client, &view));
            // A view that only was deleted is destroyed, too.
            drop(end(view));
            let way = match *function {
                "PJRT_Buffer_Delete" => {
                    format!("{used}, and then PJRT_Buffer_Delete, and later PJRT_Buffer_Destroy, was called")
                }
                function => format!("{used}, and then {function} was called"),
            };
            let good_ways = match good.is_empty() {
                true => String::new(),
                false => format!(" It was called for a view that {}.", good.join("; and for one that ")),
            };
            ensure!(
                eventually(patience(), || memory.deleted() > 0),
                "on_delete_callback of a view that {way} is not called: the plugin probably calls it in only one of the ways in which \
                 views end, so that the other owner of the memory never frees it.{good_ways}"
            );
            ensure!(
                memory.deleted() == 1,
                "on_delete_callback of a view that {way} is called {} times; expected 1: the other owner of the memory frees it twice",
                memory.deleted()
            );
            good.truncate(2);
            good.push(way);
        }
    }
    Ok(())
}
