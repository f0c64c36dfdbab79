//! Executions: a program's inputs on their way in, the promise of its outputs on the way out.

use std::fmt;
use std::sync::Arc;

use crate::core::by_device::ByDevice;
use crate::core::event::{Event, EventSource, after};
use crate::core::launch::{EXECUTE, Launch, Launched, fail, finish, launch};
use crate::core::storage::{BufferState, Held, Share};
use crate::core::vec_move::{move_by_words, with_capacity};
use crate::device::DeviceId;
use crate::error::{Error, Result};
use crate::host_callback::HostCallbacks;
use crate::host_view::{ReadsViews, sealed};
use crate::user_data::UserData;

/// One launch of a program on all of its devices (`PJRT_LoadedExecutable_Execute`).
///
/// It owns the promise of the outputs: completing it makes them ready, failing it puts the error into them, dropping it
/// unfinished fails it with an INTERNAL error. It can be finished inside of [`PjrtClient::execute`](crate::PjrtClient::execute), or moved to a thread
/// or a queue. An input that is in error fails it without the author's doing.
pub struct Execution<B>(Launched<Job<B>, B>);

/// What an execution does.
pub(crate) struct Job<B> {
    inputs: Inputs<B>,
    devices: ByDevice<DeviceId>,
    launch_id: i32,
    /// Nothing for most.
    rare: Option<Box<Rare>>,
}

/// What few executions have. The others carry one word for it.
pub(crate) struct Rare {
    pub(crate) callbacks: HostCallbacks,
    pub(crate) user_data: UserData,
    /// Of an execution that can be run, the inputs whose data is not there yet: none, except after [`Execution::when_allocated`].
    pending: Vec<Event>,
}

impl Rare {
    pub(crate) const fn new(callbacks: HostCallbacks, user_data: UserData) -> Self {
        Self { callbacks, user_data, pending: Vec::new() }
    }

    const NONE: &Self = &Self::new(HostCallbacks(None), UserData::none());
}

/// What an execution reads: the inputs of the first device, then those of the second, and so on.
pub(crate) enum Inputs<B> {
    /// Storage and data of all are there, as they nearly always are.
    Ready(Vec<Input<B>>),
    /// Some wait.
    Held(Vec<Held<B>>),
}

impl<B> Inputs<B> {
    /// Where shares of buffers can be put whose storage and data are there; nothing if some input waits.
    #[inline]
    pub(crate) fn ready(&mut self) -> Option<&mut Vec<Input<B>>> {
        match self {
            Self::Ready(inputs) => Some(inputs),
            Self::Held(_) => None,
        }
    }

    /// Takes a share of a buffer; its own, if it is donated.
    ///
    /// # Errors
    ///
    /// If the buffer is deleted or donated.
    #[cold]
    pub(crate) fn push(&mut self, buffer: &BufferState<B>, donated: bool) -> Result<()> {
        if let Self::Ready(inputs) = self {
            if let Some(storage) = buffer.take_if_ready(donated)? {
                inputs.push(Input { storage, donated });
                return Ok(());
            }
            *self = Self::Held(self.take().into_held());
        }
        if let Self::Held(inputs) = self {
            inputs.push(if donated { buffer.donate() } else { buffer.share() }?);
        }
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn take(&mut self) -> Self {
        std::mem::replace(self, Self::Ready(Vec::new()))
    }

    /// As they are held where some wait.
    pub(crate) fn into_held(self) -> Vec<Held<B>> {
        let held = |Input { storage, donated }| Held {
            share: Share::Storage(storage),
            allocated: Event::ready(),
            ready: Event::ready(),
            donated,
        };
        match self {
            Self::Ready(inputs) => inputs.into_iter().map(held).collect(),
            Self::Held(inputs) => inputs,
        }
    }

    /// Those of several executions, one after the other.
    fn joined(parts: Vec<Self>) -> Self {
        if parts.iter().all(|inputs| matches!(inputs, Self::Ready(_))) {
            return Self::Ready(parts.into_iter().flat_map(Self::into_inputs).collect());
        }
        Self::Held(parts.into_iter().flat_map(Self::into_held).collect())
    }

    /// Those that have storage. By the time that this is called, all have.
    #[inline(always)]
    fn into_inputs(self) -> Vec<Input<B>> {
        let input =
            |held: Held<B>| Some(Input { storage: held.share.into_storage().ok()?, donated: held.donated });
        match self {
            Self::Ready(inputs) => inputs,
            Self::Held(inputs) => inputs.into_iter().filter_map(input).collect(),
        }
    }

    /// Those of which some wait; none if none does.
    #[inline]
    fn held(&self) -> &[Held<B>] {
        match self {
            Self::Ready(_) => &[],
            Self::Held(inputs) => inputs,
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Ready(inputs) => inputs.len(),
            Self::Held(inputs) => inputs.len(),
        }
    }
}

impl<B> sealed::Sealed for ReadyExecution<B> {}
impl<B> ReadsViews for ReadyExecution<B> {}

impl<B> Job<B> {
    #[cold]
    fn take_inputs(&mut self) -> ByDevice<Vec<Input<B>>> {
        deal(self.inputs.take().into_inputs(), self.devices.len())
    }
}

/// An [`Execution`] whose inputs have storage: it can be run.
pub struct ReadyExecution<B>(Execution<B>);

/// An input of an execution: storage to be read, or to be consumed.
pub struct Input<B> {
    storage: Arc<B>,
    donated: bool,
}

impl<B> Input<B> {
    /// A share for reading.
    #[inline]
    pub(crate) fn shared(storage: Arc<B>) -> Self {
        Self { storage, donated: false }
    }

    /// The storage, for reading.
    #[must_use]
    pub fn get(&self) -> &B {
        &self.storage
    }

    /// Whether the execution consumes it: the host has donated it, and nobody else holds it.
    #[must_use]
    pub fn is_donated(&self) -> bool {
        // The buffer has given its share up, so there can be fewer others from now on, but not more.
        self.donated && Arc::strong_count(&self.storage) == 1
    }

    /// The storage itself, into which results may be written, if the execution consumes it.
    ///
    /// # Errors
    ///
    /// The input, if others may hold its storage too.
    pub fn into_donated(self) -> Result<B, Self> {
        let Self { storage, donated } = self;
        if !donated {
            return Err(Self { storage, donated });
        }
        Arc::try_unwrap(storage).map_err(|storage| Self { storage, donated })
    }

    /// A share of the storage, for reading.
    #[must_use]
    pub fn into_shared(self) -> Arc<B> {
        self.storage
    }
}

impl<B> std::ops::Deref for Input<B> {
    type Target = B;

    fn deref(&self) -> &B {
        self.get()
    }
}

/// Launches on single devices that wait for the result of the execution that they make up.
pub(crate) struct Joint<B> {
    launch: Launch<Job<B>, B>,
    parts: Vec<Launched<Job<B>, B>>,
}

impl<B: Send + Sync + 'static> Joint<B> {
    /// Runs the execution, unless one of its inputs is in error. The result, or the error of `run`, is that of the launches.
    pub(crate) fn run(self, execution: Execution<B>, run: impl FnOnce(Execution<B>) -> Result<()>) {
        let started = match execution.input_error() {
            Some(error) => Err(error),
            None => run(execution),
        };
        match started {
            Ok(()) => self.launch.divide(self.parts),
            Err(error) => self.parts.into_iter().for_each(|part| fail(part, error.clone())),
        }
    }
}

/// The outputs of an execution are allocated; finishing this makes them ready. Dropping it fails them.
pub struct Completion {
    source: EventSource,
    /// The inputs that were not ready when the program was enqueued; an error of theirs is the outputs' error.
    inputs: Vec<Event>,
}

impl<B: Send + Sync + 'static> Execution<B> {
    #[inline(always)]
    pub(crate) fn new(
        num_inputs: usize,
        num_devices: usize,
        num_outputs: usize,
    ) -> (Self, Launch<Job<B>, B>) {
        // Empty at first, and filled where it is.
        let job =
            || Job { inputs: Inputs::Ready(Vec::new()), devices: ByDevice::none(), launch_id: 0, rare: None };
        let (mut launched, launch) = launch(job, num_devices, num_outputs);
        launched.job.inputs = Inputs::Ready(with_capacity(num_inputs));
        (Self(launched), launch)
    }

    /// Says where and how it runs, before an author gets it.
    #[inline(always)]
    pub(crate) fn run_on(&mut self, devices: ByDevice<DeviceId>, launch_id: i32, rare: Option<Box<Rare>>) {
        let job = &mut self.0.job;
        job.devices = devices;
        job.launch_id = launch_id;
        job.rare = rare;
    }

    /// Joins executions on single devices, in the order of the devices, into one on all of them. The first one's number and
    /// user data are its own.
    pub(crate) fn joined(parts: Vec<Self>) -> (Self, Joint<B>) {
        let mut parts: Vec<Launched<Job<B>, B>> = parts.into_iter().map(|part| part.0).collect();
        let inputs = Inputs::joined(parts.iter_mut().map(|part| part.job.inputs.take()).collect());
        let devices = parts.iter().flat_map(|part| part.job.devices.iter().copied()).collect();
        let first = parts.first_mut();
        let num_outputs = first.as_ref().map_or(0, |part| part.num_outputs());
        let (launch_id, rare) = first.map_or((0, None), |part| (part.job.launch_id, part.job.rare.take()));
        let job = || Job { inputs, devices, launch_id, rare };
        let (launched, launch) = launch(job, parts.len(), num_outputs);
        (Self(launched), Joint { launch, parts })
    }

    fn rare(&self) -> &Rare {
        self.0.job.rare.as_deref().unwrap_or(Rare::NONE)
    }

    /// Where its inputs are put before an author gets it.
    pub(crate) fn inputs(&mut self) -> &mut Inputs<B> {
        &mut self.0.job.inputs
    }

    /// The devices that it runs on, in the order of the lists of inputs and outputs: as a rule all of those that the
    /// program was loaded for and this process has; one of them if the host launches them one by one.
    #[must_use]
    pub fn devices(&self) -> &[DeviceId] {
        &self.0.job.devices
    }

    /// The host's number of this launch; launches of the same program on several devices or processes that belong together
    /// have the same.
    #[must_use]
    pub fn launch_id(&self) -> i32 {
        self.0.job.launch_id
    }

    /// The host's functions for the program's send and receive operations; empty for most programs.
    #[must_use]
    pub fn host_callbacks(&self) -> &HostCallbacks {
        &self.rare().callbacks
    }

    /// What the host handed to the handlers of custom calls; nothing without the [`Ffi`](crate::ext::Ffi) extension.
    #[must_use]
    pub fn user_data(&self) -> &UserData {
        &self.rare().user_data
    }

    /// Runs a closure once the data of all inputs is there: now, or on the thread that makes the last of them ready.
    pub fn when_ready(self, run: impl FnOnce(ReadyExecution<B>) + Send + 'static) {
        self.when(|held| [held.allocated.clone(), held.ready.clone()], run);
    }

    /// Runs a closure once all inputs have storage, whether or not their data is there: for a device that orders its work
    /// itself. [`ReadyExecution::ready_events`] says which data is there.
    pub fn when_allocated(self, run: impl FnOnce(ReadyExecution<B>) + Send + 'static) {
        self.when(|held| [held.allocated.clone(), Event::ready()], run);
    }

    #[inline]
    fn when(
        self,
        events: impl Fn(&Held<B>) -> [Event; 2],
        run: impl FnOnce(ReadyExecution<B>) + Send + 'static,
    ) {
        if let Inputs::Ready(_) = self.0.job.inputs {
            return run(ReadyExecution(self));
        }
        let start = move |execution: Self| match execution.input_error() {
            Some(error) => execution.fail(error),
            None => run(ReadyExecution::new(execution)),
        };
        let waiting: Vec<Event> =
            self.0.job.inputs.held().iter().flat_map(&events).filter(|event| !event.is_ready()).collect();
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
    pub fn try_ready(self) -> Result<ReadyExecution<B>, Self> {
        if self.0.job.inputs.held().iter().all(|held| matches!(held.outcome(), Some(Ok(())))) {
            Ok(ReadyExecution::new(self))
        } else {
            Err(self)
        }
    }

    /// Puts an error into the outputs.
    pub fn fail(self, error: Error) {
        fail(self.0, error);
    }

    /// The error of the first input that has one.
    #[inline(always)]
    pub(crate) fn input_error(&self) -> Option<Error> {
        match &self.0.job.inputs {
            Inputs::Ready(_) => None,
            Inputs::Held(inputs) => first_error(inputs),
        }
    }
}

#[cold]
fn first_error<B>(inputs: &[Held<B>]) -> Option<Error> {
    inputs.iter().find_map(|held| held.outcome()?.err())
}

/// Deals elements out to devices, the same number to each.
#[inline(always)]
fn deal<T>(elements: Vec<T>, num_devices: usize) -> ByDevice<Vec<T>> {
    if num_devices == 1 {
        return ByDevice::one(elements);
    }
    let each = elements.len() / num_devices.max(1);
    let mut elements = elements.into_iter();
    (0..num_devices).map(|_| elements.by_ref().take(each).collect()).collect()
}

impl<B: Send + Sync + 'static> ReadyExecution<B> {
    fn new(mut execution: Execution<B>) -> Self {
        let job = &mut execution.0.job;
        let pending = job.inputs.held().iter().filter(|held| !held.ready.is_ready());
        let pending: Vec<Event> = pending.map(|held| held.ready.clone()).collect();
        if !pending.is_empty() {
            let none = || Box::new(Rare::new(HostCallbacks::default(), UserData::default()));
            job.rare.get_or_insert_with(none).pending = pending;
        }
        Self(execution)
    }

    #[inline]
    fn take_pending(&mut self) -> Vec<Event> {
        self.0.0.job.rare.as_mut().map_or_else(Vec::new, |rare| std::mem::take(&mut rare.pending))
    }

    /// The devices; see [`Execution::devices`].
    #[must_use]
    pub fn devices(&self) -> &[DeviceId] {
        self.0.devices()
    }

    /// The host's number of this launch; see [`Execution::launch_id`].
    #[must_use]
    pub fn launch_id(&self) -> i32 {
        self.0.launch_id()
    }

    /// The host's functions for send and receive operations; see [`Execution::host_callbacks`].
    #[must_use]
    pub fn host_callbacks(&self) -> &HostCallbacks {
        self.0.host_callbacks()
    }

    /// What the host handed to the handlers of custom calls; see [`Execution::user_data`].
    #[must_use]
    pub fn user_data(&self) -> &UserData {
        self.0.user_data()
    }

    /// When the data of each input is there, by device and argument, until [`take_inputs`](Self::take_inputs). Of use
    /// after [`Execution::when_allocated`] only.
    #[must_use]
    pub fn ready_events(&self) -> ByDevice<Vec<Event>> {
        let Job { inputs, devices, .. } = &self.0.0.job;
        let events = match inputs {
            Inputs::Ready(_) => vec![Event::ready(); inputs.len()],
            Inputs::Held(inputs) => inputs.iter().map(|held| held.ready.clone()).collect(),
        };
        deal(events, devices.len())
    }

    /// The inputs, by device and argument; a second call gives none.
    #[must_use]
    #[inline(always)]
    pub fn take_inputs(&mut self) -> ByDevice<Vec<Input<B>>> {
        let job = &mut self.0.0.job;
        if let Inputs::Ready(inputs) = &mut job.inputs
            && job.devices.len() == 1
        {
            return ByDevice::one(move_by_words(std::mem::take(inputs)));
        }
        job.take_inputs()
    }

    /// The outputs, by device and output, with their data.
    ///
    /// If their number is wrong, all outputs get an INTERNAL error.
    #[inline(always)]
    pub fn complete(mut self, outputs: ByDevice<Vec<B>>) {
        // The inputs of a device that orders its work itself can turn out to be in error only now.
        let ready =
            if self.0.0.job.rare.is_none() { Event::ready() } else { Event::all(self.take_pending()) };
        finish(self.0.0, outputs, ready);
    }

    /// The outputs, by device and output, whose data will be there when the completion is finished.
    ///
    /// `enqueue` takes the completion to where the work is done. It runs before anyone learns of the outputs, so that a
    /// device that works in order gets this program before those that read what it makes.
    pub fn allocated(mut self, outputs: ByDevice<Vec<B>>, enqueue: impl FnOnce(Completion)) {
        let (source, ready) = Event::pending();
        let inputs = self.take_pending();
        enqueue(Completion { source, inputs });
        finish(self.0.0, outputs, ready);
    }

    /// Puts an error into the outputs.
    pub fn fail(self, error: Error) {
        self.0.fail(error);
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
        self.source.complete(Err(error.in_function(EXECUTE)));
    }
}

impl<B: Send + Sync + 'static> fmt::Debug for Execution<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Execution(launch {} on {:?})", self.launch_id(), self.devices())
    }
}

impl<B: Send + Sync + 'static> fmt::Debug for ReadyExecution<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ready{:?}", self.0)
    }
}

impl<B> fmt::Debug for Input<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Input({})", if self.donated { "donated" } else { "shared" })
    }
}

impl fmt::Debug for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Completion")
    }
}
