//! Checks of calls that a plugin must not block: within a callback, and while another thread waits.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::entry::{Entry, check};
use super::pending::Pending;
use super::program_text::launch;
use crate::conform::harness::{
    Context, Finding, Verdict, compile_add, ensure, equal, numbers, patience, upload_four,
};
use crate::requirements::Profile;
use pjrt_testing::host::{Buffer, Client, Code, CopyLayout, Error, Event, HostMemory, LoadedExecutable};

pub(super) const CHECKS: &[Entry] = &[
    check(
        "event/work_in_a_callback",
        "A callback can call every function that does not wait: it compiles, uploads, executes, copies and reads, and destroys its results.",
        work_in_callback,
        "PJRT_LoadedExecutable_Execute inside_callback hang",
    )
    .host("XLA's client, pjrt_c_api_helpers.cc, ConvertCEventToCppFuture", "The callback fulfills a future, whose continuations may call the plugin.")
    .since(89),
    check(
        "waiting/while_another_thread_waits",
        "While a thread waits in PJRT_Event_Await, other threads can call every function: no lock is held while a thread waits.",
        while_another_waits,
        "PJRT_Event_Await with_lock_of PJRT_Client_LookupDevice",
    )
    .header("PJRT_Event_Await", "Blocks the calling thread until `event` is ready. It says so of no other thread.")
    .since(89)
    .also(&["waiting/await_*", "waiting/reports_of_pending_arrays", "event/many_threads_wait"]),
    check(
        "waiting/reports_of_pending_arrays",
        "Functions that describe an array return immediately, although the data of the array is not there yet.",
        reports_of_pending,
        "PJRT_Buffer_OnDeviceSizeInBytes wait_for_data",
    )
    .host("JAX, jaxlib/py_array.cc", "Asks for the type, dimensions, layout and size of outputs as soon as the execution is launched, to launch the next one.")
    .used_by(&[Profile::Jax, Profile::TorchXla])
    .since(77),
];

/// Steps that another thread takes.
#[derive(Default)]
struct Steps(Mutex<State>);

#[derive(Default)]
struct State {
    /// The function that was called last.
    step: &'static str,
    outcome: Option<Verdict>,
}

impl Steps {
    /// Begins a step, which calls this function.
    fn step(&self, function: &'static str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).step = function;
    }

    fn end(&self, outcome: Verdict) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).outcome = Some(outcome);
    }

    /// Waits until the steps are complete. `when` completes the sentence about a function that does not return.
    fn wait(&self, when: &str, cause: &str) -> Verdict {
        let state = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let end = Instant::now() + patience();
        while state().outcome.is_none() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        let state = state();
        match &state.outcome {
            Some(Ok(())) => Ok(()),
            Some(Err(Finding::Wrong(why))) => {
                Err(Finding::Wrong(format!("{} {when} fails: {why}", state.step)))
            }
            Some(Err(finding)) => Err(finding.clone()),
            None => Err(Finding::Wrong(format!(
                "{} {when} does not return in {limit:?}: the plugin probably {cause}",
                state.step,
                limit = patience()
            ))),
        }
    }

    /// Takes steps on another thread, which remains if a call does not return.
    fn on_thread(work: impl FnOnce(&Self) -> Verdict + Send + 'static) -> Arc<Self> {
        let steps = Arc::new(Self::default());
        let own = Arc::clone(&steps);
        std::thread::spawn(move || own.end(work(&own)));
        steps
    }
}

/// The objects that calls use.
struct Host {
    program: LoadedExecutable,
    array: Buffer,
    client: Client,
}

/// The work that functions which do not wait have started.
struct Work {
    output: Buffer,
    /// The destination and the event of a readback.
    readback: (HostMemory, Event),
}

impl Work {
    /// Waits for the readback, which needs the client. Returns the output of the execution.
    fn end(self) -> Result<Buffer, Error> {
        self.readback.1.wait()?;
        Ok(self.output)
    }
}

impl Host {
    fn new(context: &Context) -> Result<Self, Error> {
        let client = context.client()?;
        let (program, array) = (compile_add(&client)?, upload_four(&client, &[1.5; 4])?);
        array.ready()?.wait()?;
        Ok(Self { program, array, client })
    }

    /// Calls functions that do not wait.
    fn call_all(&self, steps: &Steps) -> Result<Work, Finding> {
        let client = &self.client;
        steps.step("PJRT_Client_Devices");
        client.devices()?;
        steps.step("PJRT_Client_LookupDevice");
        client.lookup_device(client.device()?.description()?.id()?)?;
        steps.step("PJRT_Event_Create");
        let event = Event::create(client.plugin())?;
        steps.step("PJRT_Event_OnReady");
        event.on_ready()?;
        steps.step("PJRT_Event_Set");
        event.set(Code::OK, "")?;
        steps.step("PJRT_Client_BufferFromHostBuffer");
        let array = upload_four(client, &[2.5; 4])?;
        steps.step("PJRT_Buffer_ReadyEvent");
        let ready = array.ready()?;
        steps.step("PJRT_Event_IsReady");
        ready.is_ready()?;
        steps.step("PJRT_Client_Compile");
        drop(compile_add(client)?);
        steps.step("PJRT_LoadedExecutable_Execute");
        let output = launch(&self.program, &[&self.array, &self.array], 0)?.take_output()?;
        steps.step("PJRT_Buffer_CopyToMemory");
        // A plugin may lack the function.
        drop(array.copy_to_memory(client.device()?.default_memory()?));
        steps.step("PJRT_Buffer_ToHostBuffer");
        let readback = array.start_read(16, &CopyLayout::Unsaid)?;
        steps.step("PJRT_Buffer_Delete");
        array.delete()?;
        steps.step("PJRT_Buffer_Destroy");
        drop(array);
        Ok(Work { output, readback })
    }
}

/// Completes an event, whose callback calls all functions.
fn in_callback_of(
    host: &Arc<Host>,
    event: &Event,
    what: &str,
    complete: impl FnOnce() -> Result<(), Error> + Send + 'static,
) -> Verdict {
    let steps = Arc::new(Steps::default());
    let work = Arc::new(Mutex::new(None));
    let (own, own_work, own_host) = (Arc::clone(&steps), Arc::clone(&work), Arc::clone(host));
    event.on_ready_then(move || {
        let outcome = own_host.call_all(&own);
        let outcome = outcome.map(|work| {
            *own_work.lock().unwrap_or_else(PoisonError::into_inner) = Some(work);
        });
        own.end(outcome);
    })?;
    // The callback may run within the call that completes the event.
    std::thread::spawn(complete);
    let when = format!("within a callback of {what}");
    steps
        .wait(&when, "holds a lock while it calls callbacks, or waits for the thread that calls them")
        .inspect_err(|_| {
            // Their destruction would wait for the same lock.
            std::mem::forget(Arc::clone(host));
        })?;
    let work: Option<Work> = work.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(work) = work else { return Err(Finding::Wrong(format!("there is no output {when}"))) };
    let output = numbers(&work.end()?)?;
    equal(&format!("the output of an execution that was launched {when}"), output, vec![3.0; 4])
}

fn work_in_callback(context: &Context) -> Verdict {
    let host = Arc::new(Host::new(context)?);
    let event = Arc::new(Event::create(context.plugin)?);
    let own = Arc::clone(&event);
    in_callback_of(&host, &event, "an event that the host completes", move || own.set(Code::OK, ""))?;
    let pending = match Pending::new(&host.client) {
        Err(Finding::NotApplicable(_)) => return Ok(()),
        pending => pending?,
    };
    let ready = pending.array.ready()?;
    let own = Arc::clone(&host);
    in_callback_of(&host, &ready, "an array that receives its data", move || {
        pending.provide(&own.client, &[1.0; 4]).map(drop)
    })
}

fn while_another_waits(context: &Context) -> Verdict {
    let host = Arc::new(Host::new(context)?);
    let pending = match Pending::new(&host.client) {
        Ok(pending) => Some(pending),
        Err(Finding::NotApplicable(_)) => None,
        Err(other) => return Err(other),
    };
    let created = Arc::new(Event::create(context.plugin)?);
    let mut events = vec![Arc::clone(&created)];
    events.extend(pending.as_ref().map(|pending| pending.array.ready()).transpose()?.map(Arc::new));
    for event in &events {
        let event = Arc::clone(event);
        std::thread::spawn(move || event.wait());
    }
    std::thread::sleep(Duration::from_millis(20));
    let own = Arc::clone(&host);
    let steps = Steps::on_thread(move |steps| Ok(own.call_all(steps)?.end().map(drop)?));
    let outcome = steps.wait(
        "while another thread waits in PJRT_Event_Await for an event that is not complete",
        "holds a lock while it waits, which the function needs",
    );
    if outcome.is_err() {
        // Their destruction would wait for the same lock.
        std::mem::forget((host, events, created, pending));
        return outcome;
    }
    created.set(Code::OK, "")?;
    if let Some(pending) = pending {
        drop(pending.provide(&host.client, &[1.0; 4])?);
    }
    Ok(())
}

/// A function that describes an array: its name, and its call.
type Report = (&'static str, fn(&Buffer) -> Result<(), Error>);

const REPORTS: &[Report] = &[
    ("PJRT_Buffer_ElementType", |array| array.element_type().map(drop)),
    ("PJRT_Buffer_Dimensions", |array| array.dims().map(drop)),
    ("PJRT_Buffer_UnpaddedDimensions", |array| array.unpadded_dims().map(drop)),
    ("PJRT_Buffer_DynamicDimensionIndices", |array| array.dynamic_dims().map(drop)),
    ("PJRT_Buffer_GetMemoryLayout", |array| array.memory_layout().map(drop)),
    ("PJRT_Buffer_OnDeviceSizeInBytes", |array| array.on_device_size().map(drop)),
    ("PJRT_Buffer_Device", |array| array.device().map(drop)),
    ("PJRT_Buffer_Memory", |array| array.memory().map(drop)),
    ("PJRT_Buffer_IsDeleted", |array| array.is_deleted().map(drop)),
    ("PJRT_Buffer_IsOnCpu", |array| array.is_on_cpu().map(drop)),
    ("PJRT_Buffer_ReadyEvent", |array| array.ready().map(drop)),
    ("PJRT_Layouts_PJRT_Buffer_MemoryLayout", |array| array.layout_text().map(drop)),
];

fn reports_of_pending(context: &Context) -> Verdict {
    let host = Host::new(context)?;
    let pending = Pending::new(&host.client)?;
    let output = launch(&host.program, &[&pending.array, &host.array], 0)?.take_output()?;
    let output = Arc::new(output);
    let own = Arc::clone(&output);
    let steps = Steps::on_thread(move |steps| {
        for (function, call) in REPORTS {
            steps.step(function);
            // A plugin may lack a function.
            let _ = call(&own);
        }
        Ok(())
    });
    let outcome = steps.wait(
        "of an output whose execution waits for an argument",
        "waits for the data of the array, which the function is not about",
    );
    let _array = pending.provide(&host.client, &[1.0; 4])?;
    outcome?;
    let sum = numbers(&output)?;
    ensure!(sum == [2.5; 4], "the output is {sum:?}; expected 2.5 everywhere");
    Ok(())
}
