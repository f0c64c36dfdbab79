//! Executions of programs, with their inputs and the promise of their outputs.

use std::fmt;

use crate::core::by_device::ByDevice;
use crate::core::event::{Event, EventSource, after};
use crate::core::launch::{EXECUTE, Launch, Launched, fail, finish, launch};
use crate::core::storage::{BufferState, Held, Share};
use crate::core::vec_move::{move_by_words, with_capacity};
use crate::device::DeviceId;
use crate::error::{Error, Result};
use crate::host_callback::HostCallbacks;
use crate::host_view::{ReadsViews, sealed};
use crate::input::Input;
use crate::user_data::UserData;

/// One launch of a program on all of its devices (`PJRT_LoadedExecutable_Execute`).
///
/// An execution owns the promise of its outputs. Completing the execution makes the outputs ready, failing it sets an error
/// on them, and dropping it before either sets an INTERNAL error. An execution can be completed inside
/// [`PjrtClient::execute`](crate::PjrtClient::execute), or moved to a thread or a queue. If an input is in error, the SDK
/// fails the execution with the error of the input, and drops the closure of [`when_ready`](Self::when_ready) without
/// calling it.
///
/// A program that negates its arguments, in place where they are donated:
///
/// ```
/// use pjrt_plugin::Execution;
///
/// struct Storage(Vec<f32>);
///
/// fn negate(execution: Execution<Storage>) {
///     execution.when_ready(|mut ready| {
///         let outputs = ready.take_inputs().into_iter().map(|inputs| {
///             let negated = inputs.into_iter().map(|input| {
///                 let mut values = match input.into_donated() {
///                     Ok(storage) => storage.0,
///                     Err(input) => input.0.clone(),
///                 };
///                 values.iter_mut().for_each(|value| *value = -*value);
///                 Storage(values)
///             });
///             negated.collect()
///         });
///         let outputs = outputs.collect();
///         ready.complete(outputs);
///     });
/// }
/// ```
pub struct Execution<B>(Launched<Job<B>, B>);

/// The inputs and the options of an execution.
pub(crate) struct Job<B> {
    inputs: Inputs<B>,
    devices: ByDevice<DeviceId>,
    launch_id: i32,
    /// The data that only few executions have.
    rare: Option<Box<Rare>>,
}

/// Data that only few executions have. In the others it occupies one word.
pub(crate) struct Rare {
    pub(crate) callbacks: HostCallbacks,
    pub(crate) user_data: UserData,
    /// The inputs of a [`ReadyExecution`] whose data is not ready: none, except after [`Execution::when_allocated`].
    pending: Vec<Event>,
}

impl Rare {
    pub(crate) const fn new(callbacks: HostCallbacks, user_data: UserData) -> Self {
        Self { callbacks, user_data, pending: Vec::new() }
    }

    const NONE: &Self = &Self::new(HostCallbacks(None), UserData::none());
}

/// The inputs of an execution, in the order of the devices.
pub(crate) enum Inputs<B> {
    /// All inputs have storage and data, which is the usual case.
    Ready(Vec<Input<B>>),
    /// Some inputs may not be ready.
    Held(Vec<Held<B>>),
}

impl<B> Inputs<B> {
    /// Returns the vector to which inputs with storage and data can be added, or `None` if some input is not ready.
    #[inline]
    pub(crate) fn ready(&mut self) -> Option<&mut Vec<Input<B>>> {
        match self {
            Self::Ready(inputs) => Some(inputs),
            Self::Held(_) => None,
        }
    }

    /// Adds a share of a buffer; the buffer's own share, if it is donated.
    ///
    /// # Errors
    ///
    /// Returns an error if the buffer is deleted or donated.
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

    /// Converts the inputs to the form in which some may not be ready.
    pub(crate) fn into_held(self) -> Vec<Held<B>> {
        let held = |Input { storage, donated }| Held {
            share: Share::Storage(storage),
            allocated: Event::ready(),
            ready: Event::ready(),
            host: Event::ready(),
            donated,
        };
        match self {
            Self::Ready(inputs) => inputs.into_iter().map(held).collect(),
            Self::Held(inputs) => inputs,
        }
    }

    /// Returns the inputs of several executions, in their order.
    fn joined(parts: Vec<Self>) -> Self {
        if parts.iter().all(|inputs| matches!(inputs, Self::Ready(_))) {
            return Self::Ready(parts.into_iter().flat_map(Self::into_inputs).collect());
        }
        Self::Held(parts.into_iter().flat_map(Self::into_held).collect())
    }

    /// Returns the inputs that have storage, which are all of them when this is called.
    #[inline(always)]
    fn into_inputs(self) -> Vec<Input<B>> {
        let input =
            |held: Held<B>| Some(Input { storage: held.share.into_storage().ok()?, donated: held.donated });
        match self {
            Self::Ready(inputs) => inputs,
            Self::Held(inputs) => inputs.into_iter().filter_map(input).collect(),
        }
    }

    /// Returns the inputs of which some may not be ready, or none if all are ready.
    #[inline]
    fn held(&self) -> &[Held<B>] {
        match self {
            Self::Ready(_) => &[],
            Self::Held(inputs) => inputs,
        }
    }

    /// Returns the events of the host's actions that the data of the inputs depends on.
    pub(crate) fn host_events(&self) -> impl Iterator<Item = &Event> {
        self.held().iter().map(|held| &held.host)
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

/// An [`Execution`] whose inputs have storage, so that it can run.
///
/// A device with a queue allocates the outputs immediately and computes them later:
///
/// ```
/// use std::sync::mpsc::Sender;
/// use std::sync::{Arc, Mutex};
///
/// use pjrt_plugin::{ByDevice, Error, Execution};
///
/// struct Storage(Arc<Mutex<Vec<f32>>>);
///
/// fn negate(execution: Execution<Storage>, queue: Sender<Box<dyn FnOnce() + Send>>) {
///     execution.when_allocated(move |mut ready| {
///         let inputs = ready.take_inputs();
///         let outputs: ByDevice<Vec<Arc<Mutex<Vec<f32>>>>> =
///             inputs.iter().map(|device| device.iter().map(|_| Arc::default()).collect()).collect();
///         let storage = |device: &Vec<_>| device.iter().map(|output| Storage(Arc::clone(output))).collect();
///         let allocated = outputs.iter().map(storage).collect();
///         ready.allocated(allocated, |completion| {
///             let run = move || {
///                 // The queue runs in order, so the data of the inputs is ready here.
///                 for (input, output) in inputs.iter().flatten().zip(outputs.iter().flatten()) {
///                     *output.lock().unwrap() = input.0.lock().unwrap().iter().map(|value| -value).collect();
///                 }
///                 completion.finish();
///             };
///             // If the queue is closed, the completion is dropped, which fails the outputs.
///             let _ = queue.send(Box::new(run));
///         });
///     });
/// }
/// # let _ = |error: Error| error;
/// ```
pub struct ReadyExecution<B>(Execution<B>);

/// Launches on single devices that wait for the result of the execution that they are combined into.
pub(crate) struct Joint<B> {
    launch: Launch<Job<B>, B>,
    parts: Vec<Launched<Job<B>, B>>,
}

impl<B: Send + Sync + 'static> Joint<B> {
    /// Runs the execution, unless one of its inputs is in error. The launches finish with its result, or with the error of
    /// `run`.
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

/// The part of an execution on one device whose memory is allocated: the result of `prepare` in [`ReadyExecution::enqueue`].
#[derive(Debug)]
pub struct Prepared<B, T, H> {
    /// The storage of the outputs, which the command will write.
    pub outputs: Vec<B>,
    /// The command for the device. It refers to memory by address, and owns none.
    pub command: T,
    /// The owner of memory that only the command uses, such as temporary memory.
    pub until_submitted: H,
}

/// The right to complete the data of outputs that are already allocated; see the example of [`ReadyExecution`]. Dropping it
/// before it is finished sets an INTERNAL error on the outputs.
pub struct Completion {
    source: EventSource,
    /// The inputs that were not ready when the program was enqueued. Their error becomes that of the outputs.
    inputs: Vec<Event>,
}

impl<B: Send + Sync + 'static> Execution<B> {
    #[inline(always)]
    pub(crate) fn new(
        num_inputs: usize,
        num_devices: usize,
        num_outputs: usize,
    ) -> (Self, Launch<Job<B>, B>) {
        // The inputs are empty here, because they are added without moving the job.
        let job =
            || Job { inputs: Inputs::Ready(Vec::new()), devices: ByDevice::none(), launch_id: 0, rare: None };
        let (mut launched, launch) = launch(job, num_devices, num_outputs);
        launched.job.inputs = Inputs::Ready(with_capacity(num_inputs));
        (Self(launched), launch)
    }

    /// Sets the devices and the options before the author receives the execution.
    #[inline(always)]
    pub(crate) fn run_on(&mut self, devices: ByDevice<DeviceId>, launch_id: i32, rare: Option<Box<Rare>>) {
        let job = &mut self.0.job;
        job.devices = devices;
        job.launch_id = launch_id;
        job.rare = rare;
    }

    /// Combines executions on single devices, in the order of the devices, into one on all of them, with the launch id and the
    /// user data of the first.
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

    /// Returns the inputs, to which they are added before the author receives the execution.
    pub(crate) fn inputs(&mut self) -> &mut Inputs<B> {
        &mut self.0.job.inputs
    }

    /// Returns the devices that the execution runs on, in the order of the lists of inputs and outputs. They are usually all
    /// addressable devices for which the program was loaded. If the host launches the devices separately, there is one
    /// device. It can be one that is not in the assignment of [`PjrtClient::load`](crate::PjrtClient::load) if the program was compiled
    /// as [portable](crate::CompileOptions::compile_portable_executable), so what a program keeps on a device, such as constants, is
    /// created when it is first executed there.
    #[must_use]
    pub fn devices(&self) -> &[DeviceId] {
        &self.0.job.devices
    }

    /// Returns the launch id of the host. Launches that belong together, on several devices or processes, have the same id.
    #[must_use]
    pub fn launch_id(&self) -> i32 {
        self.0.job.launch_id
    }

    /// Returns the host's callbacks for the program's send and receive operations. Most programs have none.
    #[must_use]
    pub fn host_callbacks(&self) -> &HostCallbacks {
        &self.rare().callbacks
    }

    /// Returns the data that the host passes to the handlers of custom calls. It is empty without the
    /// [`Ffi`](crate::ext::Ffi) extension.
    #[must_use]
    pub fn user_data(&self) -> &UserData {
        &self.rare().user_data
    }

    /// Runs a closure when the data of all inputs is ready: immediately, or later on the thread that completes the last
    /// input.
    pub fn when_ready(self, run: impl FnOnce(ReadyExecution<B>) + Send + 'static) {
        self.when(|held| [held.allocated.clone(), held.ready.clone()], run, |_| ());
    }

    /// Runs a closure when the data of all inputs is ready, or another one with the error of an input. The execution has failed
    /// with the error then. This is for executions on which others depend, such as those of other processes.
    pub fn when_ready_or(
        self,
        run: impl FnOnce(ReadyExecution<B>) + Send + 'static,
        failed: impl FnOnce(&Error) + Send + 'static,
    ) {
        self.when(|held| [held.allocated.clone(), held.ready.clone()], run, failed);
    }

    /// Runs a closure when all inputs have storage, even if their data is not ready: for devices that order their work
    /// themselves. [`ReadyExecution::ready_events`] returns the events of the data. It does not run while an input needs an
    /// action of the host, so a command may wait for these events.
    pub fn when_allocated(self, run: impl FnOnce(ReadyExecution<B>) + Send + 'static) {
        self.when(|held| [held.allocated.clone(), held.host.clone()], run, |_| ());
    }

    #[inline]
    fn when(
        self,
        events: impl Fn(&Held<B>) -> [Event; 2],
        run: impl FnOnce(ReadyExecution<B>) + Send + 'static,
        failed: impl FnOnce(&Error) + Send + 'static,
    ) {
        if let Inputs::Ready(_) = self.0.job.inputs {
            return run(ReadyExecution(self));
        }
        let start = move |execution: Self| match execution.input_error() {
            Some(error) => {
                execution.fail(error.clone());
                failed(&error);
            }
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

    /// Returns a [`ReadyExecution`] if the data of all inputs is ready.
    ///
    /// # Errors
    ///
    /// Returns the execution itself if an input is not ready or is in error.
    pub fn try_ready(self) -> Result<ReadyExecution<B>, Self> {
        if self.0.job.inputs.held().iter().all(|held| matches!(held.outcome(), Some(Ok(())))) {
            Ok(ReadyExecution::new(self))
        } else {
            Err(self)
        }
    }

    /// Completes the execution with an error, which is set on all outputs.
    pub fn fail(self, error: Error) {
        fail(self.0, error);
    }

    /// Returns the error of the first input that has one.
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

/// Divides elements among devices, with the same number for each.
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

    /// Returns the devices; see [`Execution::devices`].
    #[must_use]
    pub fn devices(&self) -> &[DeviceId] {
        self.0.devices()
    }

    /// Returns the launch id of the host; see [`Execution::launch_id`].
    #[must_use]
    pub fn launch_id(&self) -> i32 {
        self.0.launch_id()
    }

    /// Returns the host's callbacks for send and receive operations; see [`Execution::host_callbacks`].
    #[must_use]
    pub fn host_callbacks(&self) -> &HostCallbacks {
        self.0.host_callbacks()
    }

    /// Returns the data that the host passes to the handlers of custom calls; see [`Execution::user_data`].
    #[must_use]
    pub fn user_data(&self) -> &UserData {
        self.0.user_data()
    }

    /// Returns the events of the inputs' data, by device and argument. All of them are ready, except possibly after
    /// [`Execution::when_allocated`]. Call this before [`take_inputs`](Self::take_inputs), after which the lists are empty.
    #[must_use]
    pub fn ready_events(&self) -> ByDevice<Vec<Event>> {
        let Job { inputs, devices, .. } = &self.0.0.job;
        let events = match inputs {
            Inputs::Ready(_) => vec![Event::ready(); inputs.len()],
            Inputs::Held(inputs) => inputs.iter().map(|held| held.ready.clone()).collect(),
        };
        deal(events, devices.len())
    }

    /// Returns the inputs, by device and argument. A second call returns empty lists.
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

    /// Completes the execution with its outputs, by device and output, whose data is ready.
    ///
    /// If the number of devices or of outputs is wrong, all outputs receive an INTERNAL error. After
    /// [`Execution::when_allocated`], the outputs become ready only when the data of all inputs is, and receive the error of
    /// an input that fails.
    #[inline(always)]
    pub fn complete(mut self, outputs: ByDevice<Vec<B>>) {
        // Inputs that were not ready after `when_allocated` may have failed since then.
        let ready =
            if self.0.0.job.rare.is_none() { Event::ready() } else { Event::all(self.take_pending()) };
        finish(self.0.0, outputs, ready);
    }

    /// Completes the execution with outputs, by device and output, that are allocated. Their data is ready when the
    /// [`Completion`] is finished.
    ///
    /// `enqueue` moves the completion to the queue of the device. The SDK calls it before the outputs become visible, so
    /// that a device that works in order receives this program before the programs that read its outputs.
    pub fn allocated(mut self, outputs: ByDevice<Vec<B>>, enqueue: impl FnOnce(Completion)) {
        let (source, ready) = Event::pending();
        let inputs = self.take_pending();
        enqueue(Completion { source, inputs });
        finish(self.0.0, outputs, ready);
    }

    /// Runs the execution on devices with queues. For each device, `prepare` allocates the memory of the outputs and creates the
    /// command; then `submit` submits the command and returns its event. Both receive the index of the device in
    /// [`devices`](Self::devices). `submit` also receives the events of those inputs of the device whose data may not be ready, after
    /// [`Execution::when_allocated`]: the command must not run before they are complete, unless the data comes from commands of the
    /// same queue, which were submitted before.
    ///
    /// `prepare` removes the inputs that it [reuses](Input::into_donated) from the list. When all commands are submitted, the
    /// outputs become visible, and then the other inputs and [`Prepared::until_submitted`] are dropped, so that their memory is
    /// free for commands that are submitted later, and not before. If `prepare` fails for a device, the execution fails, and
    /// nothing is submitted. The outputs become ready with the events, or receive the error of an event or of an input.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    ///
    /// use pjrt_plugin::queue::Queue;
    /// use pjrt_plugin::{Execution, Prepared};
    ///
    /// struct Storage(Arc<Mutex<Vec<f32>>>);
    ///
    /// /// Negates the arguments.
    /// fn negate(execution: Execution<Storage>, queues: Vec<Arc<Queue<()>>>) {
    ///     execution.when_allocated(move |ready| {
    ///         ready.enqueue(
    ///             |_, inputs| {
    ///                 let outputs = inputs.iter().map(|_| Arc::default());
    ///                 let pairs: Vec<(Arc<_>, Arc<_>)> = inputs.iter().map(|input| Arc::clone(&input.0)).zip(outputs).collect();
    ///                 let outputs = pairs.iter().map(|(_, output)| Storage(Arc::clone(output))).collect();
    ///                 Ok(Prepared { outputs, command: pairs, until_submitted: () })
    ///             },
    ///             |device, pairs: Vec<(Arc<Mutex<Vec<f32>>>, Arc<Mutex<Vec<f32>>>)>, arrivals| {
    ///                 queues[device].submit_after(arrivals, move |()| {
    ///                     for (input, output) in &pairs {
    ///                         *output.lock().unwrap() = input.lock().unwrap().iter().map(|value| -value).collect();
    ///                     }
    ///                     Ok(())
    ///                 })
    ///             },
    ///         );
    ///     });
    /// }
    /// ```
    pub fn enqueue<T, H>(
        mut self,
        mut prepare: impl FnMut(usize, &mut Vec<Input<B>>) -> Result<Prepared<B, T, H>>,
        mut submit: impl FnMut(usize, T, Vec<Event>) -> Event,
    ) {
        let arrivals = self.ready_events();
        let mut inputs = self.take_inputs();
        let (mut outputs, mut commands, mut held) = (Vec::new(), Vec::new(), Vec::new());
        for (device, inputs) in inputs.iter_mut().enumerate() {
            match prepare(device, inputs) {
                Ok(prepared) => {
                    outputs.push(prepared.outputs);
                    commands.push(prepared.command);
                    held.push(prepared.until_submitted);
                }
                Err(error) => return self.fail(error),
            }
        }
        self.allocated(ByDevice::from(outputs), |completion| {
            let commands = commands.into_iter().zip(arrivals).enumerate();
            let events = commands.map(|(device, (command, mut arrivals))| {
                arrivals.retain(|event| !matches!(event.outcome(), Some(Ok(()))));
                submit(device, command, arrivals)
            });
            Event::all(events.collect()).on_ready(|outcome| match outcome {
                Ok(()) => completion.finish(),
                Err(error) => completion.fail(error),
            });
        });
        drop((inputs, held));
    }

    /// Completes the execution with an error, which is set on all outputs.
    pub fn fail(self, error: Error) {
        self.0.fail(error);
    }
}

impl Completion {
    /// Makes the data of the outputs ready. If an input has failed after the program was enqueued, sets the error of the
    /// input on the outputs instead.
    pub fn finish(self) {
        let error = self.inputs.iter().find_map(|input| input.outcome()?.err());
        self.source.complete(error.map_or(Ok(()), Err));
    }

    /// Sets an error on the outputs.
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

impl fmt::Debug for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Completion")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// A value that notes in a log that it is dropped.
    struct Noted(&'static str, Arc<Mutex<Vec<&'static str>>>);

    impl Drop for Noted {
        fn drop(&mut self) {
            self.1.lock().unwrap().push(self.0);
        }
    }

    /// Runs `enqueue` on one device with one input and one output. Returns the log, and the result of the launch.
    fn enqueue(prepare_fails: bool, command: Event) -> (Vec<&'static str>, Result<Event>) {
        let log = Arc::new(Mutex::new(Vec::new()));
        let noted = |what| Noted(what, Arc::clone(&log));
        let (mut execution, launch) = Execution::new(1, 1, 1);
        execution.run_on(ByDevice::one(0), 0, None);
        let input = Input::shared(Arc::new(noted("input freed")));
        execution.inputs().ready().unwrap().push(input);
        ReadyExecution(execution).enqueue(
            |device, inputs| {
                assert_eq!((device, inputs.len()), (0, 1));
                let (outputs, until_submitted) = (vec![noted("output freed")], noted("temporary freed"));
                match prepare_fails {
                    true => Err(Error::resource_exhausted("no room")),
                    false => Ok(Prepared { outputs, command: "submitted", until_submitted }),
                }
            },
            |_, command_name, arrivals| {
                assert!(arrivals.is_empty(), "the data of the input is ready");
                log.lock().unwrap().push(command_name);
                command.clone()
            },
        );
        let finished = launch.finished().unwrap_or_else(|_| panic!("the execution is complete"));
        let logged = log.lock().unwrap().clone();
        (logged, finished.outputs.map(|_| finished.ready))
    }

    #[test]
    fn memory_is_freed_when_the_commands_are_submitted_and_not_before() {
        let (source, command) = Event::pending();
        let (log, launched) = enqueue(false, command);
        assert_eq!(log, ["submitted", "input freed", "temporary freed"]);
        let ready = launched.unwrap();
        assert!(!ready.is_ready());
        source.complete(Err(Error::data_loss("lost")));
        assert_eq!(ready.wait().unwrap_err().message(), "lost");
    }

    #[test]
    fn a_command_is_submitted_with_the_events_of_the_data_that_is_not_ready() {
        let (source, data) = Event::pending();
        let (mut execution, launch) = Execution::new(1, 1, 1);
        execution.run_on(ByDevice::one(0), 0, None);
        for ready in [Event::ready(), data] {
            let share = Share::Storage(Arc::new(1));
            execution.inputs().push(&BufferState::new(share, Event::ready(), ready), false).unwrap();
        }
        let mut arrivals = Vec::new();
        ReadyExecution(execution).enqueue(
            |_, _| Ok(Prepared { outputs: vec![2], command: (), until_submitted: () }),
            |_, (), events| {
                arrivals = events;
                Event::ready()
            },
        );
        assert_eq!(arrivals.len(), 1);
        assert!(!arrivals[0].is_ready());
        source.complete(Ok(()));
        assert!(arrivals[0].is_ready());
        assert!(launch.finished().is_ok());
    }

    #[test]
    fn nothing_is_submitted_if_there_is_no_memory() {
        let (log, launched) = enqueue(true, Event::ready());
        assert!(!log.contains(&"submitted"), "{log:?}");
        assert_eq!(launched.unwrap_err().message(), "no room");
    }
}
