//! The order in which events are complete.

use std::time::Duration;

use super::fact::{Tally, failed, outcome};
use super::observer::Observer;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{
    Client, CopyLayout, ElementType, HostArray, LoadedExecutable, Program, Result, Semantics, eventually,
};

/// The number of times that each order is observed.
const TIMES: usize = 20;

/// The time in which an event that does not wait for the host is complete.
const SOON: Duration = Duration::from_millis(30);

/// The number of elements of the arrays, whose transfers take a measurable time.
const ELEMENTS: usize = 1 << 16;

const UPLOADS: &[(&str, Semantics)] = &[
    ("upload, ImmutableOnlyDuringCall", Semantics::ImmutableOnlyDuringCall),
    ("upload, ImmutableUntilTransferCompletes", Semantics::ImmutableUntilTransferCompletes),
    ("upload, ImmutableZeroCopy", Semantics::ImmutableZeroCopy),
    ("upload, MutableZeroCopy", Semantics::MutableZeroCopy),
];

pub(super) fn names() -> Vec<String> {
    let uploads = UPLOADS.iter().map(|(name, _)| (*name).to_owned());
    uploads.chain(["execution", "readback", "callback"].map(str::to_owned)).collect()
}

pub(super) fn observe(observer: &Observer, name: &str) {
    let Ok(client) = observer.client() else { return };
    let upload = UPLOADS.iter().find(|(known, _)| *known == name);
    let observed = match (upload, name) {
        (Some((_, semantics)), _) => uploads(client, *semantics),
        (None, "execution") => executions(client),
        (None, "readback") => readbacks(client),
        (None, _) => callbacks(client),
    };
    if let Err(error) = observed {
        failed("outcome", &error);
    }
}

fn array(bytes: &[u8]) -> HostArray<'_> {
    HostArray::new(bytes, ElementType::F32, &[ELEMENTS as i64])
}

fn uploads(client: &Client, semantics: Semantics) -> Result<()> {
    let bytes = vec![0; 4 * ELEMENTS];
    let (mut at_return, mut ready_at_return) = (Tally::default(), Tally::default());
    let (mut before, mut after, mut in_place) = (Tally::default(), Tally::default(), Tally::default());
    for _ in 0..TIMES {
        let host = HostArray { semantics, ..array(&bytes) };
        let uploaded = client.upload(&host, Some(client.device()?), None)?;
        let ready = uploaded.buffer.ready()?;
        at_return.count(uploaded.done.is_ready()?);
        ready_at_return.count(ready.is_ready()?);
        ready.wait()?;
        before.count(eventually(SOON, || uploaded.done.is_ready().unwrap_or(true)));
        if uploaded.buffer.hold().is_ok() {
            let address = uploaded.buffer.opaque_pointer();
            in_place.count(address.is_ok_and(|address| address == uploaded.memory.address()));
            uploaded.buffer.release()?;
        }
        drop(uploaded.buffer);
        after.count(eventually(SOON, || uploaded.done.is_ready().unwrap_or(true)));
        uploaded.done.wait()?;
    }
    at_return.note("done_with_host_buffer is complete when the call returns");
    ready_at_return.note("the buffer is ready when the call returns");
    before.note("done_with_host_buffer is complete while the buffer exists");
    after.note("done_with_host_buffer is complete after the buffer is destroyed");
    in_place.note("the buffer uses the host's memory");
    Ok(())
}

/// Compiles a program that takes a measurable time.
fn program(client: &Client) -> Result<LoadedExecutable> {
    let ty = format!("tensor<{ELEMENTS}xf32>");
    let text = format!(
        "module {{\n func.func public @main(%x: {ty}) -> {ty} {{\n %0 = stablehlo.add %x, %x : {ty}\n \
         return %0 : {ty}\n }}\n}}\n"
    );
    client.compile(&Program::mlir(&text), &CompileOptions::default().encode())
}

fn executions(client: &Client) -> Result<()> {
    let program = program(client)?;
    let bytes = vec![0; 4 * ELEMENTS];
    let argument = client.upload(&array(&bytes), Some(client.device()?), None)?.buffer;
    let mut tallies: [Tally; 4] = Default::default();
    for time in 0..TIMES {
        let launched = program.run(&[&argument])?;
        let (done, output) = (&launched.done[0], launched.output(0, 0)?);
        let ready = output.ready()?;
        tallies[0].count(done.is_ready()?);
        tallies[1].count(ready.is_ready()?);
        if time % 2 == 0 {
            done.wait()?;
            tallies[2].count(eventually(SOON, || ready.is_ready().unwrap_or(true)));
            ready.wait()?;
        } else {
            ready.wait()?;
            tallies[3].count(eventually(SOON, || done.is_ready().unwrap_or(true)));
            done.wait()?;
        }
    }
    tallies[0].note("device_complete is complete when the call returns");
    tallies[1].note("the result is ready when the call returns");
    tallies[2].note("the result is ready once device_complete is complete");
    tallies[3].note("device_complete is complete once the result is ready");
    Ok(())
}

fn readbacks(client: &Client) -> Result<()> {
    let bytes = vec![0; 4 * ELEMENTS];
    let buffer = client.upload(&array(&bytes), Some(client.device()?), None)?.buffer;
    let mut at_return = Tally::default();
    for _ in 0..TIMES {
        let (_, read) = buffer.start_read(bytes.len(), &CopyLayout::Unsaid)?;
        at_return.count(read.is_ready()?);
        read.wait()?;
    }
    at_return.note("the readback is complete when the call returns");
    Ok(())
}

fn callbacks(client: &Client) -> Result<()> {
    let bytes = vec![0; 4 * ELEMENTS];
    let buffer = client.upload(&array(&bytes), Some(client.device()?), None)?.buffer;
    let ready = buffer.ready()?;
    ready.wait()?;
    let (mut during, mut soon) = (Tally::default(), Tally::default());
    for _ in 0..TIMES {
        let called = ready.on_ready()?;
        during.count(called.calls() > 0);
        soon.count(called.wait(10 * SOON).is_some());
    }
    soon.note("the callback of a complete event is called");
    during.note("the callback of a complete event is called before OnReady returns");
    outcome("error of a complete event", ready.error(), |()| "ok".to_owned());
    Ok(())
}
