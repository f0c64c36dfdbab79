//! Executions: a program's inputs on their way in, the promise of its outputs on the way out.

use std::fmt;
use std::sync::{Arc, Mutex};

use crate::abi::guard;
use crate::client::PjrtClient;
use crate::device::DeviceId;
use crate::error::{Error, Result};
use crate::event::{Event, EventSource, after};
use crate::ext::UserData;
use crate::host_callback::HostCallbacks;
use crate::storage::{Held, Slot};
use crate::sync::lock;

/// One launch of a program on all of its devices (`PJRT_LoadedExecutable_Execute`).
///
/// It owns the promise of the outputs: completing it makes them ready, failing it puts the error into them, dropping it
/// unfinished fails it with an INTERNAL error. It can be finished inside of [`PjrtClient::execute`], or moved to a thread
/// or a queue. An input that is in error fails it without the author's doing.
pub struct Execution<C: PjrtClient> {
    launch: Launched<C::Buffer>,
    inputs: Vec<Vec<Held<C::Buffer>>>,
    /// Whether the data of all inputs was there from the start.
    settled: bool,
    target: Target,
}

/// Where and how an execution runs.
pub(crate) struct Target {
    pub(crate) devices: Arc<[DeviceId]>,
    pub(crate) launch_id: i32,
    pub(crate) callbacks: HostCallbacks,
    pub(crate) user_data: UserData,
}

/// An [`Execution`] whose inputs have storage: it can be run.
pub struct ReadyExecution<C: PjrtClient> {
    execution: Execution<C>,
    /// The inputs whose data is not there yet: none, except after [`Execution::when_allocated`].
    pending: Vec<Event>,
}

/// An input of an execution.
pub enum Input<B> {
    /// Storage that others may hold too: to be read only.
    Shared(Arc<B>),
    /// Storage that the execution consumes: results may be written into it.
    Donated(B),
}

impl<B> Input<B> {
    /// The storage, for reading.
    #[must_use]
    pub fn get(&self) -> &B {
        match self {
            Self::Shared(storage) => storage,
            Self::Donated(storage) => storage,
        }
    }
}

impl<B> std::ops::Deref for Input<B> {
    type Target = B;

    fn deref(&self) -> &B {
        self.get()
    }
}

/// The outputs of an execution are allocated; finishing this makes them ready. Dropping it fails them.
pub struct Completion {
    source: EventSource,
    /// The inputs that were not ready when the program was enqueued; an error of theirs is the outputs' error.
    inputs: Vec<Event>,
}

impl<C: PjrtClient> Execution<C> {
    pub(crate) fn new(
        inputs: Vec<Vec<Held<C::Buffer>>>,
        target: Target,
        num_outputs: usize,
    ) -> (Self, Arc<Launch<C::Buffer>>) {
        let launch = Arc::new(Launch {
            progress: Mutex::new(Progress::Running),
            num_devices: inputs.len(),
            num_outputs,
        });
        let settled = inputs.iter().flatten().all(Held::is_settled);
        (Self { launch: Launched(Some(Arc::clone(&launch))), inputs, settled, target }, launch)
    }

    /// The devices that it runs on, in the order of the outer vectors of inputs and outputs: as a rule all of those that the
    /// program was loaded for and this process has; one of them if the host launches them one by one.
    #[must_use]
    pub fn devices(&self) -> &[DeviceId] {
        &self.target.devices
    }

    /// The host's number of this launch; launches of the same program on several devices or processes that belong together
    /// have the same.
    #[must_use]
    pub fn launch_id(&self) -> i32 {
        self.target.launch_id
    }

    /// The host's functions for the program's send and receive operations; empty for most programs.
    #[must_use]
    pub fn host_callbacks(&self) -> &HostCallbacks {
        &self.target.callbacks
    }

    /// What the host handed to the handlers of custom calls; nothing without the [`Ffi`](crate::ext::Ffi) extension.
    #[must_use]
    pub fn user_data(&self) -> &UserData {
        &self.target.user_data
    }

    /// Runs a closure once the data of all inputs is there: now, or on the thread that makes the last of them ready.
    pub fn when_ready(self, run: impl FnOnce(ReadyExecution<C>) + Send + 'static) {
        self.when(|held| [held.allocated.clone(), held.ready.clone()], run);
    }

    /// Runs a closure once all inputs have storage, whether or not their data is there: for a device that orders its work
    /// itself. [`ReadyExecution::ready_events`] says which data is there.
    pub fn when_allocated(self, run: impl FnOnce(ReadyExecution<C>) + Send + 'static) {
        self.when(|held| [held.allocated.clone(), Event::ready()], run);
    }

    fn when(
        self,
        events: impl Fn(&Held<C::Buffer>) -> [Event; 2],
        run: impl FnOnce(ReadyExecution<C>) + Send + 'static,
    ) {
        if self.settled {
            return run(ReadyExecution { execution: self, pending: Vec::new() });
        }
        let start = move |execution: Self| match execution.input_error() {
            Some(error) => execution.fail(error),
            None => run(ReadyExecution::new(execution)),
        };
        let waiting: Vec<Event> =
            self.inputs.iter().flatten().flat_map(&events).filter(|event| !event.is_ready()).collect();
        if waiting.is_empty() {
            start(self);
        } else {
            after(waiting, move || start(self));
        }
    }

    /// The execution, to be run now, if the data of all inputs is there.
    ///
    /// # Errors
    ///
    /// The execution itself, if some input is not ready or is in error.
    pub fn try_ready(self) -> Result<ReadyExecution<C>, Self> {
        if self.inputs.iter().flatten().all(|held| matches!(held.outcome(), Some(Ok(())))) {
            Ok(ReadyExecution::new(self))
        } else {
            Err(self)
        }
    }

    /// Puts an error into the outputs.
    pub fn fail(mut self, error: Error) {
        self.launch.finish(Err(error), Event::ready());
    }

    /// The error of the first input that has one.
    pub(crate) fn input_error(&self) -> Option<Error> {
        if self.settled {
            return None;
        }
        self.inputs.iter().flatten().find_map(|held| held.outcome()?.err())
    }
}

impl<C: PjrtClient> ReadyExecution<C> {
    fn new(execution: Execution<C>) -> Self {
        let pending = execution.inputs.iter().flatten().filter(|held| !held.ready.is_ready());
        let pending = pending.map(|held| held.ready.clone()).collect();
        Self { execution, pending }
    }

    /// The devices; see [`Execution::devices`].
    #[must_use]
    pub fn devices(&self) -> &[DeviceId] {
        self.execution.devices()
    }

    /// The host's number of this launch; see [`Execution::launch_id`].
    #[must_use]
    pub fn launch_id(&self) -> i32 {
        self.execution.launch_id()
    }

    /// The host's functions for send and receive operations; see [`Execution::host_callbacks`].
    #[must_use]
    pub fn host_callbacks(&self) -> &HostCallbacks {
        self.execution.host_callbacks()
    }

    /// What the host handed to the handlers of custom calls; see [`Execution::user_data`].
    #[must_use]
    pub fn user_data(&self) -> &UserData {
        self.execution.user_data()
    }

    /// When the data of each input is there, by device and argument, until [`take_inputs`](Self::take_inputs). Of use
    /// after [`Execution::when_allocated`] only.
    #[must_use]
    pub fn ready_events(&self) -> Vec<Vec<Event>> {
        let device = |held: &Vec<Held<C::Buffer>>| held.iter().map(|held| held.ready.clone()).collect();
        self.execution.inputs.iter().map(device).collect()
    }

    /// The inputs, by device and argument; a second call gives none. A donated input of which nobody else holds the storage
    /// comes as [`Input::Donated`].
    #[must_use]
    pub fn take_inputs(&mut self) -> Vec<Vec<Input<C::Buffer>>> {
        let inputs = std::mem::take(&mut self.execution.inputs);
        // Every input has storage here, so none is left out.
        inputs.into_iter().map(|device| device.into_iter().filter_map(Input::of).collect()).collect()
    }

    /// The outputs, by device and output, with their data.
    ///
    /// If their number is wrong, all outputs get an INTERNAL error.
    pub fn complete(mut self, outputs: Vec<Vec<C::Buffer>>) {
        // The inputs of a device that orders its work itself can turn out to be in error only now.
        let pending = std::mem::take(&mut self.pending);
        if pending.is_empty() {
            self.execution.launch.finish(Ok(outputs), Event::ready());
        } else {
            self.execution.launch.finish(Ok(outputs), Event::all(pending));
        }
    }

    /// The outputs, by device and output, whose data will be there when the completion is finished.
    ///
    /// `enqueue` takes the completion to where the work is done. It runs before anyone learns of the outputs, so that a
    /// device that works in order gets this program before those that read what it makes.
    pub fn allocated(mut self, outputs: Vec<Vec<C::Buffer>>, enqueue: impl FnOnce(Completion)) {
        let (source, ready) = Event::pending();
        let inputs = std::mem::take(&mut self.pending);
        enqueue(Completion { source, inputs });
        self.execution.launch.finish(Ok(outputs), ready);
    }

    /// Puts an error into the outputs.
    pub fn fail(self, error: Error) {
        self.execution.fail(error);
    }
}

impl<B> Input<B> {
    fn of(held: Held<B>) -> Option<Self> {
        let storage = held.claim.redeem().ok()?;
        if !held.donated {
            return Some(Self::Shared(storage));
        }
        Some(Arc::try_unwrap(storage).map_or_else(Self::Shared, Self::Donated))
    }
}

impl Completion {
    /// The data of the outputs is there.
    pub fn finish(self) {
        let error = self.inputs.iter().find_map(|input| input.outcome()?.err());
        self.source.complete(error.map_or(Ok(()), Err));
    }

    /// The data of the outputs will never be there.
    pub fn fail(self, error: Error) {
        self.source.complete(Err(error));
    }
}

/// What an author gives: by device and output.
type Outputs<B> = Vec<Vec<B>>;

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
    /// Says how to make the host's buffers. To be called once, when the author's `execute` has returned.
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

    fn finish(&self, outputs: Result<Outputs<B>>, ready: Event) {
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

    fn check(&self, outputs: Outputs<B>) -> Result<Outputs<B>> {
        if outputs.len() == self.num_devices && outputs.iter().all(|device| device.len() == self.num_outputs)
        {
            return Ok(outputs);
        }
        Err(Error::internal(format!(
            "the program has {} outputs on each of {} devices, but the plugin gave {:?}",
            self.num_outputs,
            self.num_devices,
            outputs.iter().map(Vec::len).collect::<Vec<_>>()
        )))
    }
}

impl<B> Attached<B> {
    fn fill(self, outputs: Result<Outputs<B>>, ready: Event) {
        match outputs {
            Ok(outputs) => {
                for (slot, output) in self.slots.into_iter().zip(outputs.into_iter().flatten()) {
                    slot.fill(Ok(Arc::new(output)));
                }
                self.allocated.complete(Ok(()));
                let source = self.ready;
                ready.on_ready(move |outcome| source.complete(outcome));
            }
            Err(error) => {
                for slot in self.slots {
                    slot.fill(Err(error.clone()));
                }
                self.allocated.complete(Err(error.clone()));
                self.ready.complete(Err(error));
            }
        }
    }
}

/// The execution's end of a launch.
struct Launched<B>(Option<Arc<Launch<B>>>);

impl<B> Launched<B> {
    fn finish(&mut self, outputs: Result<Outputs<B>>, ready: Event) {
        if let Some(launch) = self.0.take() {
            launch.finish(outputs, ready);
        }
    }
}

impl<B> Drop for Launched<B> {
    fn drop(&mut self) {
        if self.0.is_some() {
            let error = guard::lost("the plugin dropped an execution before it was finished");
            self.finish(Err(error), Event::ready());
        }
    }
}

impl<C: PjrtClient> fmt::Debug for Execution<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Execution(launch {} on {:?})", self.target.launch_id, self.target.devices)
    }
}

impl<C: PjrtClient> fmt::Debug for ReadyExecution<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ready{:?}", self.execution)
    }
}

impl<B> fmt::Debug for Input<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if matches!(self, Self::Shared(_)) { "Input::Shared" } else { "Input::Donated" })
    }
}

impl fmt::Debug for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Completion")
    }
}
