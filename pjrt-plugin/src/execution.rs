//! Executions: a program's inputs on their way in, the promise of its outputs on the way out.

use std::fmt;
use std::sync::Arc;

use crate::abi::guard;
use crate::client::PjrtClient;
use crate::device::DeviceId;
use crate::error::{Error, Result};
use crate::event::{Event, EventSource, after};
use crate::ext::UserData;
use crate::host_callback::HostCallbacks;
use crate::launch::{Launch, Outputs};
use crate::storage::{Held, Taken};

/// One launch of a program on all of its devices (`PJRT_LoadedExecutable_Execute`).
///
/// It owns the promise of the outputs: completing it makes them ready, failing it puts the error into them, dropping it
/// unfinished fails it with an INTERNAL error. It can be finished inside of [`PjrtClient::execute`], or moved to a thread
/// or a queue. An input that is in error fails it without the author's doing.
pub struct Execution<C: PjrtClient> {
    launch: Launched<C::Buffer>,
    /// Those of the first device, then those of the second, and so on.
    inputs: Vec<Held<C::Buffer>>,
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
        inputs: Vec<Held<C::Buffer>>,
        target: Target,
        num_outputs: usize,
    ) -> (Self, Arc<Launch<C::Buffer>>) {
        let launch = Arc::new(Launch::new(target.devices.len(), num_outputs));
        let settled = inputs.iter().all(Held::is_settled);
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
            self.inputs.iter().flat_map(&events).filter(|event| !event.is_ready()).collect();
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
        if self.inputs.iter().all(|held| matches!(held.outcome(), Some(Ok(())))) {
            Ok(ReadyExecution::new(self))
        } else {
            Err(self)
        }
    }

    /// Puts an error into the outputs.
    pub fn fail(mut self, error: Error) {
        self.launch.finish(Err(error), Event::ready());
    }

    /// The inputs of each device.
    fn by_device<'a>(&self, inputs: &'a [Held<C::Buffer>]) -> impl Iterator<Item = &'a [Held<C::Buffer>]> {
        let num_devices = self.target.devices.len();
        let num_arguments = inputs.len() / num_devices.max(1);
        (0..num_devices).map(move |device| &inputs[device * num_arguments..(device + 1) * num_arguments])
    }

    /// The error of the first input that has one.
    pub(crate) fn input_error(&self) -> Option<Error> {
        if self.settled {
            return None;
        }
        self.inputs.iter().find_map(|held| held.outcome()?.err())
    }
}

impl<C: PjrtClient> ReadyExecution<C> {
    fn new(execution: Execution<C>) -> Self {
        let pending = execution.inputs.iter().filter(|held| !held.ready.is_ready());
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
        let ready = |held: &Held<C::Buffer>| held.ready.clone();
        let by_device = self.execution.by_device(&self.execution.inputs);
        by_device.map(|inputs| inputs.iter().map(ready).collect()).collect()
    }

    /// The inputs, by device and argument; a second call gives none. A donated input of which nobody else holds the storage
    /// comes as [`Input::Donated`].
    #[must_use]
    pub fn take_inputs(&mut self) -> Vec<Vec<Input<C::Buffer>>> {
        let num_devices = self.execution.target.devices.len();
        let all = std::mem::take(&mut self.execution.inputs);
        let num_arguments = all.len() / num_devices.max(1);
        let mut all = all.into_iter();
        let device = |_| {
            let mut inputs = Vec::with_capacity(num_arguments);
            // Every input has storage here, so none is left out.
            for held in all.by_ref().take(num_arguments) {
                if held.donated {
                    inputs.extend(Input::of(held));
                } else if let Ok(storage) = held.claim.redeem() {
                    // Nearly all are shared. By the other way each would move the size of whole storage several times.
                    inputs.push(Input::Shared(storage));
                }
            }
            inputs
        };
        (0..num_devices).map(device).collect()
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
        Some(match held.take().ok()? {
            Taken::Shared(storage) => Self::Shared(storage),
            Taken::Whole(storage) => Self::Donated(storage),
        })
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
