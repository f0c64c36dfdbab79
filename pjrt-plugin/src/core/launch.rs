//! The channel between an execution and the buffers of its outputs.

use std::marker::PhantomData;

use crate::core::by_device::ByDevice;
use crate::core::error::{Error, Result};
use crate::core::event::{Event, EventSource};
use crate::core::oneshot::{Channel, Receiver, Sender, channel};
use crate::core::panic_guard;
use crate::core::storage::Slot;
use crate::core::sync::{Arc, Mutex, lock};
use crate::core::vec_move::move_by_words;

/// The outputs of an execution, by device and output.
pub(crate) type Outputs<B> = ByDevice<Vec<B>>;

/// The state of an execution until it finishes. If it finishes before the host's buffers are created, they are created
/// ready; otherwise it fills them.
pub(crate) struct Running<J, B> {
    pub(crate) job: J,
    num_devices: usize,
    num_outputs: usize,
    outputs: PhantomData<fn(B)>,
}

/// The use of the result of an execution that finishes after the host's call has returned.
pub(crate) enum Continuation<J, B> {
    /// The host's buffers are filled with it.
    Fill(Arc<Unfilled<B>>),
    /// Launches on single devices are finished with it, in the order of the devices.
    Divide(Vec<Launched<J, B>>),
}

impl<J, B> Channel for Running<J, B> {
    type Value = Finished<B>;
    type Continuation = Continuation<J, B>;

    fn sender_dropped() -> Finished<B> {
        let error = panic_guard::lost("the plugin dropped an execution (Execution) before it was completed");
        let error = error.in_function(EXECUTE);
        Finished { outputs: Err(error), ready: Event::ready() }
    }

    fn resume(continuation: Continuation<J, B>, finished: Finished<B>) {
        match continuation {
            Continuation::Fill(unfilled) => unfilled.fill(finished),
            Continuation::Divide(parts) => divide(parts, finished),
        }
    }
}

/// The function in errors of executions, regardless of the function that returns them to the host.
pub(crate) const EXECUTE: &str = "PJRT_LoadedExecutable_Execute";

/// The execution's end of a launch.
pub(crate) type Launched<J, B> = Sender<Running<J, B>>;

/// The host's end of a launch.
pub(crate) struct Launch<J, B>(Receiver<Running<J, B>>);

/// The result of an execution: outputs whose data is ready when the event completes, or an error.
pub(crate) struct Finished<B> {
    pub(crate) outputs: Result<Outputs<B>>,
    pub(crate) ready: Event,
}

/// The result of attaching to a launch.
pub(crate) enum Outcome<B> {
    Finished(Finished<B>),
    /// One slot per output, in the order of the devices, and the events of all of them.
    Pending {
        slots: Vec<Arc<Slot<B>>>,
        allocated: Event,
        ready: Event,
        unfilled: Arc<Unfilled<B>>,
    },
}

/// Buffers that an execution fills later, unless they are poisoned first.
pub(crate) struct Unfilled<B>(Mutex<Option<Slots<B>>>);

struct Slots<B> {
    slots: Vec<Arc<Slot<B>>>,
    allocated: EventSource,
    ready: EventSource,
}

/// Creates the two ends of a launch.
#[inline(always)]
pub(crate) fn launch<J, B>(
    job: impl FnOnce() -> J,
    num_devices: usize,
    num_outputs: usize,
) -> (Launched<J, B>, Launch<J, B>) {
    let (launched, launch) =
        channel(|| Running { job: job(), num_devices, num_outputs, outputs: PhantomData });
    (launched, Launch(launch))
}

impl<J, B> Launch<J, B> {
    /// Returns the result of the execution, if it has finished. It is called after the author's `execute` has returned.
    ///
    /// # Errors
    ///
    /// Returns the launch if the execution has not finished.
    #[inline(always)]
    pub(crate) fn finished(self) -> Result<Finished<B>, Self> {
        self.0.try_receive().map_err(Self)
    }

    /// Creates slots for the execution to fill, unless it has finished in the meantime.
    #[cold]
    pub(crate) fn attach(self, num_slots: usize) -> Outcome<B> {
        let slots: Vec<_> = (0..num_slots).map(|_| Slot::new()).collect();
        let (allocated_source, allocated) = Event::pending();
        let (ready_source, ready) = Event::pending();
        let unfilled = Slots { slots: slots.clone(), allocated: allocated_source, ready: ready_source };
        let unfilled = Arc::new(Unfilled(Mutex::new(Some(unfilled))));
        match self.0.resume_with(Continuation::Fill(Arc::clone(&unfilled))) {
            None => Outcome::Pending { slots, allocated, ready, unfilled },
            Some((finished, _)) => Outcome::Finished(finished),
        }
    }
}

impl<J, B> Launch<J, B> {
    /// Finishes launches on single devices with the result, in the order of the devices.
    #[cold]
    pub(crate) fn divide(self, parts: Vec<Launched<J, B>>) {
        let resumed = self.0.resume_with(Continuation::Divide(parts));
        if let Some((finished, Continuation::Divide(parts))) = resumed {
            divide(parts, finished);
        }
    }
}

/// Finishes each of the launches with its part of a result.
fn divide<J, B>(parts: Vec<Launched<J, B>>, Finished { outputs, ready }: Finished<B>) {
    match outputs {
        Ok(outputs) => {
            for (part, outputs) in parts.into_iter().zip(outputs) {
                finish(part, ByDevice::one(outputs), ready.clone());
            }
        }
        Err(error) => {
            for part in parts {
                part.send(Finished { outputs: Err(error.clone()), ready: Event::ready() });
            }
        }
    }
}

/// Finishes the execution with its outputs.
#[inline(always)]
pub(crate) fn finish<J, B>(launched: Launched<J, B>, outputs: Outputs<B>, ready: Event) {
    match outputs.into_one() {
        // The common case.
        Ok(outputs) if launched.num_devices == 1 && outputs.len() == launched.num_outputs => {
            launched.send(Finished { outputs: Ok(ByDevice::one(move_by_words(outputs))), ready });
        }
        Ok(outputs) => finish_any(launched, ByDevice::one(outputs), ready),
        Err(outputs) => finish_any(launched, outputs, ready),
    }
}

#[cold]
fn finish_any<J, B>(launched: Launched<J, B>, outputs: Outputs<B>, ready: Event) {
    let right = outputs.len() == launched.num_devices
        && outputs.iter().all(|device| device.len() == launched.num_outputs);
    let outputs = if right { Ok(outputs) } else { Err(launched.wrong_number(&outputs)) };
    launched.send(Finished { outputs, ready });
}

/// Finishes the execution with an error.
#[cold]
pub(crate) fn fail<J, B>(launched: Launched<J, B>, error: Error) {
    let error = error.in_function(EXECUTE);
    launched.send(Finished { outputs: Err(error), ready: Event::ready() });
}

impl<J, B> Running<J, B> {
    /// Returns the number of outputs on each device.
    pub(crate) fn num_outputs(&self) -> usize {
        self.num_outputs
    }

    /// Returns the error for a wrong number of outputs.
    fn wrong_number(&self, outputs: &Outputs<B>) -> Error {
        Error::internal(format!(
            "the program has {} outputs on each of {} devices, but ReadyExecution was completed with {:?}",
            self.num_outputs,
            self.num_devices,
            outputs.iter().map(Vec::len).collect::<ByDevice<_>>()
        ))
        .in_function(EXECUTE)
    }
}

impl<B> Unfilled<B> {
    /// Fills the buffers, unless they have been poisoned.
    fn fill(&self, Finished { outputs, ready }: Finished<B>) {
        let slots = lock(&self.0).take();
        match (slots, outputs) {
            (None, _) => {}
            (Some(slots), Ok(outputs)) => slots.fill(outputs, ready),
            (Some(slots), Err(error)) => slots.fail(error),
        }
    }

    /// Sets an error on the outputs, unless the execution has filled them. Returns whether it did. Later outputs are
    /// dropped.
    pub(crate) fn poison(&self, error: Error) -> bool {
        let slots = lock(&self.0).take();
        slots.map(|slots| slots.fail(error)).is_some()
    }
}

impl<B> Slots<B> {
    fn fill(self, outputs: Outputs<B>, ready: Event) {
        for (slot, output) in self.slots.into_iter().zip(outputs.into_iter().flatten()) {
            Slot::fill(slot, Ok(Arc::new(output)));
        }
        self.allocated.complete(Ok(()));
        let source = self.ready;
        ready.on_ready(move |outcome| source.complete(outcome));
    }

    fn fail(self, error: Error) {
        for slot in self.slots {
            Slot::fill(slot, Err(error.clone()));
        }
        self.allocated.complete(Err(error.clone()));
        self.ready.complete(Err(error));
    }
}
