//! A launch, where an execution and the buffers of its outputs meet.

use crate::by_device::ByDevice;
use crate::error::{Error, Result};
use crate::event::{Event, EventSource};
use crate::storage::Slot;
use crate::sync::{Arc, Mutex, lock};

/// What an author gives: by device and output.
pub(crate) type Outputs<B> = ByDevice<Vec<B>>;

/// Where an execution and the buffers of its outputs meet. The execution may finish before the host's buffers are made
/// (then they are made ready, with nothing to wait for) or after (then it fills them).
pub(crate) struct Launch<B> {
    progress: Mutex<Progress<B>>,
    num_devices: usize,
    num_outputs: usize,
}

enum Progress<B> {
    /// Neither has the execution finished nor are there buffers.
    Running,
    /// The execution came first.
    Finished(Finished<B>),
    /// The buffers came first.
    Attached(Attached<B>),
    /// They have met.
    Over,
}

/// What an execution ended with: outputs whose data is there once the event is complete, or an error.
pub(crate) struct Finished<B> {
    pub(crate) outputs: Result<Outputs<B>>,
    pub(crate) ready: Event,
}

struct Attached<B> {
    slots: Vec<Arc<Slot<B>>>,
    allocated: EventSource,
    ready: EventSource,
}

/// What the host's buffers are made of.
pub(crate) enum Outcome<B> {
    Finished(Finished<B>),
    /// One slot per output, device by device, and what all of them wait for.
    Pending {
        slots: Vec<Arc<Slot<B>>>,
        allocated: Event,
        ready: Event,
    },
}

impl<B> Launch<B> {
    #[inline]
    pub(crate) fn new(num_devices: usize, num_outputs: usize) -> Self {
        Self { progress: Mutex::new(Progress::Running), num_devices, num_outputs }
    }

    /// Says how to make the host's buffers. To be called once, when the author's `execute` has returned.
    #[inline]
    pub(crate) fn attach(&self) -> Outcome<B> {
        let mut progress = lock(&self.progress);
        match std::mem::replace(&mut *progress, Progress::Over) {
            Progress::Finished(finished) => Outcome::Finished(finished),
            Progress::Running | Progress::Attached(_) | Progress::Over => {
                let slots: Vec<_> = (0..self.num_devices * self.num_outputs).map(|_| Slot::new()).collect();
                let (allocated_source, allocated) = Event::pending();
                let (ready_source, ready) = Event::pending();
                let attached =
                    Attached { slots: slots.clone(), allocated: allocated_source, ready: ready_source };
                *progress = Progress::Attached(attached);
                Outcome::Pending { slots, allocated, ready }
            }
        }
    }

    /// The execution has finished: fills the buffers, or leaves what it gives to them. Only the first time counts.
    #[inline]
    pub(crate) fn finish(&self, outputs: Result<Outputs<B>>, ready: Event) {
        let outputs = outputs.and_then(|outputs| self.check(outputs));
        let mut progress = lock(&self.progress);
        match std::mem::replace(&mut *progress, Progress::Over) {
            Progress::Running => *progress = Progress::Finished(Finished { outputs, ready }),
            Progress::Attached(attached) => {
                drop(progress);
                attached.fill(outputs, ready);
            }
            Progress::Finished(_) | Progress::Over => {}
        }
    }

    /// Puts an error into the outputs, if the execution has not given them yet; what it gives later is dropped.
    pub(crate) fn poison(&self, error: Error) -> bool {
        let mut progress = lock(&self.progress);
        match std::mem::replace(&mut *progress, Progress::Over) {
            Progress::Attached(attached) => {
                drop(progress);
                attached.fill(Err(error), Event::ready());
                true
            }
            other => {
                *progress = other;
                false
            }
        }
    }

    #[inline]
    fn check(&self, outputs: Outputs<B>) -> Result<Outputs<B>> {
        if outputs.len() == self.num_devices && outputs.iter().all(|device| device.len() == self.num_outputs)
        {
            return Ok(outputs);
        }
        Err(Error::internal(format!(
            "the program has {} outputs on each of {} devices, but the plugin gave {:?}",
            self.num_outputs,
            self.num_devices,
            outputs.iter().map(Vec::len).collect::<ByDevice<_>>()
        )))
    }
}

impl<B> Attached<B> {
    fn fill(self, outputs: Result<Outputs<B>>, ready: Event) {
        match outputs {
            Ok(outputs) => {
                for (slot, output) in self.slots.into_iter().zip(outputs.into_iter().flatten()) {
                    Slot::fill(slot, Ok(Arc::new(output)));
                }
                self.allocated.complete(Ok(()));
                let source = self.ready;
                ready.on_ready(move |outcome| source.complete(outcome));
            }
            Err(error) => {
                for slot in self.slots {
                    Slot::fill(slot, Err(error.clone()));
                }
                self.allocated.complete(Err(error.clone()));
                self.ready.complete(Err(error));
            }
        }
    }
}
