//! A launch, where an execution and the buffers of its outputs meet.

use std::marker::PhantomData;

use crate::abi::guard;
use crate::abi::meeting::{Errand, Giver, Taker, meeting};
use crate::abi::words::in_words;
use crate::by_device::ByDevice;
use crate::error::{Error, Result};
use crate::event::{Event, EventSource};
use crate::storage::Slot;
use crate::sync::{Arc, Mutex, lock};

/// What an author gives: by device and output.
pub(crate) type Outputs<B> = ByDevice<Vec<B>>;

/// What an execution has until it finishes. It may finish before the host's buffers are made (then they are made ready, with
/// nothing to wait for) or after (then it fills them).
pub(crate) struct Running<J, B> {
    pub(crate) job: J,
    num_devices: usize,
    num_outputs: usize,
    outputs: PhantomData<fn(B)>,
}

impl<J, B> Errand for Running<J, B> {
    type Value = Finished<B>;
    type Left = Arc<Unfilled<B>>;

    fn lost() -> Finished<B> {
        let error = guard::lost("the plugin dropped an execution before it was finished");
        let error = error.in_function(EXECUTE);
        Finished { outputs: Err(error), ready: Event::ready() }
    }

    fn meet(finished: Finished<B>, unfilled: Arc<Unfilled<B>>) {
        unfilled.fill(finished);
    }
}

/// What an error of an execution is of, whichever function the host learns of it by.
pub(crate) const EXECUTE: &str = "PJRT_LoadedExecutable_Execute";

/// The execution's end of a launch.
pub(crate) type Launched<J, B> = Giver<Running<J, B>>;

/// The host's end of a launch.
pub(crate) struct Launch<J, B>(Taker<Running<J, B>>);

/// What an execution ended with: outputs whose data is there once the event is complete, or an error.
pub(crate) struct Finished<B> {
    pub(crate) outputs: Result<Outputs<B>>,
    pub(crate) ready: Event,
}

/// What the host's buffers are made of.
pub(crate) enum Outcome<B> {
    Finished(Finished<B>),
    /// One slot per output, device by device, and what all of them wait for.
    Pending {
        slots: Vec<Arc<Slot<B>>>,
        allocated: Event,
        ready: Event,
        unfilled: Arc<Unfilled<B>>,
    },
}

/// Buffers that an execution has yet to fill, unless somebody puts an error into them before.
pub(crate) struct Unfilled<B>(Mutex<Option<Slots<B>>>);

struct Slots<B> {
    slots: Vec<Arc<Slot<B>>>,
    allocated: EventSource,
    ready: EventSource,
}

/// The two ends of a launch.
#[inline(always)]
pub(crate) fn launch<J, B>(
    job: impl FnOnce() -> J,
    num_devices: usize,
    num_outputs: usize,
) -> (Launched<J, B>, Launch<J, B>) {
    let (launched, launch) =
        meeting(|| Running { job: job(), num_devices, num_outputs, outputs: PhantomData });
    (launched, Launch(launch))
}

impl<J, B> Launch<J, B> {
    /// What the execution has ended with, if it has. To be asked when the author's `execute` has returned.
    ///
    /// # Errors
    ///
    /// The launch, if the execution goes on.
    #[inline(always)]
    pub(crate) fn finished(self) -> Result<Finished<B>, Self> {
        self.0.try_take().map_err(Self)
    }

    /// Makes places that the execution will fill; it may finish before after all.
    #[cold]
    pub(crate) fn attach(self, num_slots: usize) -> Outcome<B> {
        let slots: Vec<_> = (0..num_slots).map(|_| Slot::new()).collect();
        let (allocated_source, allocated) = Event::pending();
        let (ready_source, ready) = Event::pending();
        let unfilled = Slots { slots: slots.clone(), allocated: allocated_source, ready: ready_source };
        let unfilled = Arc::new(Unfilled(Mutex::new(Some(unfilled))));
        match self.0.leave(Arc::clone(&unfilled)) {
            None => Outcome::Pending { slots, allocated, ready, unfilled },
            Some((finished, _)) => Outcome::Finished(finished),
        }
    }
}

/// The execution has finished: fills the buffers, or leaves what it gives to them.
#[inline(always)]
pub(crate) fn finish<J, B>(launched: Launched<J, B>, outputs: Outputs<B>, ready: Event) {
    match outputs.into_one() {
        // As nearly always.
        Ok(outputs) if launched.num_devices == 1 && outputs.len() == launched.num_outputs => {
            launched.give(Finished { outputs: Ok(ByDevice::one(in_words(outputs))), ready });
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
    launched.give(Finished { outputs, ready });
}

/// The execution has failed: puts the error into the buffers.
#[cold]
pub(crate) fn fail<J, B>(launched: Launched<J, B>, error: Error) {
    let error = error.in_function(EXECUTE);
    launched.give(Finished { outputs: Err(error), ready: Event::ready() });
}

impl<J, B> Running<J, B> {
    /// What is wrong with the number of outputs.
    fn wrong_number(&self, outputs: &Outputs<B>) -> Error {
        Error::internal(format!(
            "the program has {} outputs on each of {} devices, but the plugin gave {:?}",
            self.num_outputs,
            self.num_devices,
            outputs.iter().map(Vec::len).collect::<ByDevice<_>>()
        ))
        .in_function(EXECUTE)
    }
}

impl<B> Unfilled<B> {
    /// Fills the buffers, unless there is an error in them.
    fn fill(&self, Finished { outputs, ready }: Finished<B>) {
        let slots = lock(&self.0).take();
        match (slots, outputs) {
            (None, _) => {}
            (Some(slots), Ok(outputs)) => slots.fill(outputs, ready),
            (Some(slots), Err(error)) => slots.fail(error),
        }
    }

    /// Puts an error into the outputs, if the execution has not given them yet; what it gives later is dropped.
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
