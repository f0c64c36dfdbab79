//! A launch, where an execution and the buffers of its outputs meet.

use crate::abi::meeting::{Giver, Taker, meeting};
use crate::by_device::ByDevice;
use crate::error::{Error, Result};
use crate::event::{Event, EventSource};
use crate::storage::Slot;
use crate::sync::{Arc, Mutex, lock};

/// What an author gives: by device and output.
pub(crate) type Outputs<B> = ByDevice<Vec<B>>;

/// The execution's end of a launch. The execution may finish before the host's buffers are made (then they are made ready, with
/// nothing to wait for) or after (then it fills them).
pub(crate) struct Running<B> {
    meeting: Giver<Finished<B>, Arc<Unfilled<B>>>,
    num_devices: usize,
    num_outputs: usize,
}

/// The host's end of a launch.
pub(crate) struct Launch<B> {
    meeting: Taker<Finished<B>, Arc<Unfilled<B>>>,
    num_slots: usize,
}

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
#[inline]
pub(crate) fn launch<B>(num_devices: usize, num_outputs: usize) -> (Running<B>, Launch<B>) {
    let (giver, taker) = meeting();
    (
        Running { meeting: giver, num_devices, num_outputs },
        Launch { meeting: taker, num_slots: num_devices * num_outputs },
    )
}

impl<B> Launch<B> {
    /// Says how to make the host's buffers. To be called when the author's `execute` has returned.
    #[inline]
    pub(crate) fn attach(self) -> Outcome<B> {
        match self.meeting.try_take() {
            Ok(finished) => Outcome::Finished(finished.unwrap_or_else(Finished::never)),
            Err(meeting) => wait(meeting, self.num_slots),
        }
    }
}

/// Makes the places that the execution fills; it may come first after all.
#[cold]
fn wait<B>(meeting: Taker<Finished<B>, Arc<Unfilled<B>>>, num_slots: usize) -> Outcome<B> {
    let slots: Vec<_> = (0..num_slots).map(|_| Slot::new()).collect();
    let (allocated_source, allocated) = Event::pending();
    let (ready_source, ready) = Event::pending();
    let unfilled = Slots { slots: slots.clone(), allocated: allocated_source, ready: ready_source };
    let unfilled = Arc::new(Unfilled(Mutex::new(Some(unfilled))));
    match meeting.leave(Arc::clone(&unfilled)) {
        None => Outcome::Pending { slots, allocated, ready, unfilled },
        Some((finished, _)) => Outcome::Finished(finished),
    }
}

impl<B> Running<B> {
    /// The execution has finished: fills the buffers, or leaves what it gives to them.
    #[inline]
    pub(crate) fn finish(self, outputs: Result<Outputs<B>>, ready: Event) {
        let outputs = outputs.and_then(|outputs| self.check(outputs));
        if let Some((finished, unfilled)) = self.meeting.give(Finished { outputs, ready }) {
            unfilled.fill(finished);
        }
    }

    #[inline]
    fn check(&self, outputs: Outputs<B>) -> Result<Outputs<B>> {
        if outputs.len() == self.num_devices && outputs.iter().all(|device| device.len() == self.num_outputs)
        {
            return Ok(outputs);
        }
        Err(self.wrong_number(&outputs))
    }

    #[cold]
    fn wrong_number(&self, outputs: &Outputs<B>) -> Error {
        Error::internal(format!(
            "the program has {} outputs on each of {} devices, but the plugin gave {:?}",
            self.num_outputs,
            self.num_devices,
            outputs.iter().map(Vec::len).collect::<ByDevice<_>>()
        ))
    }
}

impl<B> Finished<B> {
    /// The end of an execution that was given up without one, which none is.
    fn never() -> Self {
        Self { outputs: Err(Error::internal("an execution has no end")), ready: Event::ready() }
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
