//! A client that does as little as possible. Its programs are words.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use pjrt_plugin::ext::ffi::{Array, ArrayMut, Call, Handler};
use pjrt_plugin::{
    ArraySpec, AttributeValue, ByDevice, ClientConfig, CompileRequest, CopyToHost, DeviceAssignment,
    DeviceDescription, ElementType, Error, ErrorCode, Execution, HostBuffer, HostCallbacks, HostView, Input,
    Memory, MemoryStats, OptionSpec, Options, Pending, PjrtBuffer, PjrtClient, PjrtDevice, PjrtExecutable,
    Placement, PluginAttributes, ProcessInfo, Promise, ReadsViews, ReadyExecution, Result, Signature,
    Topology, promise,
};

type Work = Box<dyn FnOnce() + Send>;

/// Work that tests run explicitly, by the number of a queue.
static QUEUES: LazyLock<Mutex<HashMap<i64, Vec<Work>>>> = LazyLock::new(Mutex::default);

/// Runs all work of a queue, and returns its amount.
pub(crate) fn run_queue(queue: i64) -> usize {
    let work = QUEUES.lock().unwrap().remove(&queue).unwrap_or_default();
    let count = work.len();
    work.into_iter().for_each(|work| work());
    count
}

/// Runs the first work of a queue.
pub(crate) fn run_first(queue: i64) {
    let work = QUEUES.lock().unwrap().get_mut(&queue).map(|work| work.remove(0));
    work.unwrap()();
}

fn enqueue(queue: i64, work: impl FnOnce() + Send + 'static) {
    QUEUES.lock().unwrap().entry(queue).or_default().push(Box::new(work));
}

pub(crate) struct Dummy {
    devices: Vec<Device>,
    /// The queue of uploads, or 0 for none.
    uploads: i64,
    /// The queue of readbacks, or 0 for none.
    readbacks: i64,
    panic_in: String,
    /// `true` if the host may write storage.
    raw: bool,
    /// The treatment of views: they are `made`, `refused` or `copied`.
    views: String,
    /// `true` if there is no memory when the host first accesses storage.
    scarce: bool,
    /// The start of the host memory that is mapped.
    mapped: Mutex<Vec<usize>>,
}

pub(crate) struct Device {
    description: DeviceDescription,
    memories: Vec<Memory>,
}

/// Dense bytes, or the host's own memory.
pub(crate) enum Storage {
    Own(Vec<u8>),
    Host(HostBuffer),
    /// Bytes whose readback is work of a queue.
    Slow(Vec<u8>, i64),
    /// Bytes that the host may write.
    Raw(Mutex<Vec<u8>>),
    /// The host's own memory, which it continues to write to.
    View(HostView),
    /// Bytes for which there is no memory when the host first accesses them.
    Scarce(Vec<u8>, AtomicBool),
}

pub(crate) struct Program {
    pub(crate) signature: Signature,
    queue: i64,
    replicas: usize,
}

impl Storage {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Own(bytes) | Self::Slow(bytes, _) | Self::Scarce(bytes, _) => bytes,
            Self::Host(host) => host.dense_bytes().unwrap(),
            Self::Raw(_) | Self::View(_) => panic!("bytes that may change"),
        }
    }

    /// Returns the bytes that an operation reads.
    fn read(&self, during: &impl ReadsViews) -> Vec<u8> {
        match self {
            Self::View(view) => view.lease(during).bytes().to_vec(),
            _ => self.bytes().to_vec(),
        }
    }
}

impl Dummy {
    fn maybe_panic(&self, method: &str) {
        assert!(self.panic_in != method, "asked to panic in {method}");
    }
}

impl PjrtClient for Dummy {
    type Device = Device;
    type Buffer = Storage;
    type Executable = Program;
    type Loaded = Arc<Program>;

    const PLATFORM_NAME: &'static str = "dummy";
    const PLATFORM_ALIASES: &'static [&'static str] = &["doll"];
    const MULTI_PROCESS: bool = true;
    const MAX_LAUNCHES_IN_FLIGHT: Option<usize> = Some(16);
    const JOINT_LAUNCH_TIMEOUT: Duration = Duration::from_secs(2);
    const CREATE_OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::integer("num_devices", 2, "how many devices"),
        OptionSpec::integer("remote", 0, "how many devices of another process there are in addition"),
        OptionSpec::boolean("opaque", true, "whether the host cannot read the memory"),
        OptionSpec::integer("uploads", 0, "the queue of uploads"),
        OptionSpec::integer("readbacks", 0, "the queue of readbacks"),
        OptionSpec::boolean("raw", false, "whether the host may write storage"),
        OptionSpec::boolean(
            "scarce",
            false,
            "whether there is no memory when the host first looks at storage",
        ),
        OptionSpec::string("panic_in", "", "the method to panic in"),
        OptionSpec::string("views", "made", "what becomes of views: made, refused or copied"),
    ];

    const TOPOLOGY_OPTIONS: &'static [OptionSpec] =
        &[OptionSpec::integer("length", 2, "how many devices there are in the row")];

    fn plugin_attributes() -> PluginAttributes {
        PluginAttributes::new()
            .with_stablehlo_current_version([1, 13, 0])
            .with_stablehlo_minimum_version([0, 9, 0])
            .with("note", "a dummy")
    }

    fn create(config: ClientConfig) -> Result<Self> {
        let options = &config.options;
        let (count, remote) = (options.integer("num_devices")?, options.integer("remote")?);
        let opaque = options.boolean("opaque")?;
        let panic_in = options.string("panic_in")?;
        assert!(panic_in != "create", "asked to panic in create");
        if let Some(store) = &config.kv_store {
            store.put("hello", b"world")?;
            assert_eq!(store.get("hello", std::time::Duration::from_secs(1))?, b"world");
            assert_eq!(store.try_get("nobody")?, None);
        }
        let device = |id: i64| {
            let id = i32::try_from(id).unwrap();
            let memory = Memory::new(id, Memory::DEVICE);
            let memory = if opaque { memory } else { memory.with_host_access() };
            let process = i32::from(i64::from(id) >= count);
            let description = DeviceDescription::new(id, "dummy").with_process_index(process);
            Device {
                description: description.with_attribute("core", i64::from(id)),
                memories: vec![memory, Memory::new(id, Memory::PINNED_HOST)],
            }
        };
        let devices = (0..count + remote).map(device).collect();
        Ok(Self {
            devices,
            uploads: options.integer("uploads")?,
            readbacks: options.integer("readbacks")?,
            panic_in,
            raw: options.boolean("raw")?,
            views: options.string("views")?,
            scarce: options.boolean("scarce")?,
            mapped: Mutex::default(),
        })
    }

    fn create_topology(name: &str, options: &Options) -> Result<Topology> {
        if name != "row" {
            return Err(Error::invalid_argument(format!("'{name}' is no topology")));
        }
        let ids = 0..i32::try_from(options.integer("length")?).unwrap();
        let devices = ids.map(|id| DeviceDescription::new(id, "dummy")).collect();
        Ok(Topology::new(Self::PLATFORM_NAME, "dummy 1", devices))
    }

    fn map_host_memory(&self, address: usize, size: usize) -> Result<()> {
        if size == 0 {
            return Err(Error::invalid_argument("nothing to map"));
        }
        self.mapped.lock().unwrap().push(address);
        Ok(())
    }

    fn unmap_host_memory(&self, address: usize) -> Result<()> {
        let mut mapped = self.mapped.lock().unwrap();
        let place = mapped.iter().position(|mapped| *mapped == address);
        let place = place.ok_or_else(|| Error::invalid_argument("nothing is mapped there"))?;
        mapped.remove(place);
        Ok(())
    }

    fn process_exit(&self) {
        if self.panic_in == "process_exit" {
            eprintln!("the dummy lets its device go");
        }
        self.maybe_panic("process_exit");
    }

    fn devices(&self) -> &[Device] {
        &self.devices
    }

    fn platform_version(&self) -> String {
        "dummy 1".to_owned()
    }

    fn process_info_changed(&self, processes: &[ProcessInfo]) {
        self.maybe_panic("process_info_changed");
        assert!(processes.iter().all(|process| process.task_id >= 0));
    }

    fn default_device_assignment(&self, replicas: usize, partitions: usize) -> Result<DeviceAssignment> {
        self.maybe_panic("default_device_assignment");
        DeviceAssignment::new(replicas, partitions, (0..(replicas * partitions) as i32).collect())
    }

    /// A program is a word and a queue: `negate`, `later 7`.
    fn compile(request: CompileRequest<'_, Self>) -> Result<Program> {
        if let Some(client) = request.client {
            client.maybe_panic("compile");
        }
        let text = String::from_utf8_lossy(request.program.code()).into_owned();
        let mut words = text.split_whitespace().map(str::to_owned);
        let word = words.next().unwrap_or_default();
        let queue = words.next().and_then(|queue| queue.parse().ok()).unwrap_or(0);
        let array = || ArraySpec::new(ElementType::F32, [4]);
        let (parameters, outputs, donated) = match word.as_str() {
            "host" | "host_late" | "host_error" | "negate" | "later" | "error" | "fail" | "drop"
            | "panic" | "panic_later" | "allocated" | "short" | "custom_call" | "rotate" | "rotate_later"
            | "rotate_error" => (1, 1, 0),
            "donate" | "donate_later" => (1, 1, 1),
            "donate_first" => (2, 1, 1),
            "two" => (1, 2, 0),
            "none" => (0, 0, 0),
            _ => {
                return Err(
                    Error::invalid_argument(format!("'{word}' is no program")).with_hint("try 'negate'")
                );
            }
        };
        // A plugin that ignores the number of replicas.
        let replicas = if word == "drop" { 1 } else { request.options.num_replicas };
        let mut signature = Signature::new(word, vec![array(); parameters], vec![array(); outputs]);
        signature.donated = (0..donated).collect();
        Ok(Program { signature, queue, replicas })
    }

    fn load(&self, executable: &Arc<Program>, _: &DeviceAssignment) -> Result<Arc<Program>> {
        self.maybe_panic("load");
        Ok(Arc::clone(executable))
    }

    fn execute(&self, loaded: &Arc<Program>, execution: Execution<Self::Buffer>) -> Result<()> {
        self.maybe_panic("execute");
        let program = Arc::clone(loaded);
        let outputs = program.signature.outputs.len();
        let run = move |mut ready: ReadyExecution<Storage>| {
            let devices = ready.devices().len();
            let inputs = ready.take_inputs();
            let results = (0..devices).map(|device| {
                let inputs = inputs.get(device).map_or(&[][..], Vec::as_slice);
                (0..outputs).map(|_| Storage::Own(negate(inputs, &ready))).collect()
            });
            let results = results.collect();
            ready.complete(results);
        };
        match loaded.signature.name.as_str() {
            "rotate" => execution.when_ready(rotate),
            "rotate_later" => enqueue(program.queue, move || execution.when_ready(rotate)),
            "error" | "rotate_error" => {
                return Err(Error::resource_exhausted("no room").with_payload("room", *b"none"));
            }
            "fail" => execution.fail(Error::data_loss("lost")),
            "drop" => drop(execution),
            "panic" => panic!("asked to panic"),
            "host" => enqueue(program.queue, move || execution.when_ready(call_host)),
            "host_late" => {
                let callbacks = execution.host_callbacks().clone();
                enqueue(program.queue, move || is_over(&callbacks));
                execution.when_ready(run);
            }
            "host_error" => {
                let callbacks = execution.host_callbacks().clone();
                enqueue(program.queue, move || is_over(&callbacks));
                return Err(Error::resource_exhausted("no room"));
            }
            "panic_later" => execution.when_ready(|_| panic!("asked to panic later")),
            "short" => execution.when_ready(|ready| ready.complete(Vec::new().into())),
            "later" | "donate_later" => enqueue(program.queue, move || execution.when_ready(run)),
            "allocated" => execution.when_allocated(move |mut ready| {
                assert_eq!(ready.ready_events().len(), 1);
                let inputs = ready.take_inputs();
                let output = Storage::Own(negate(&inputs[0], &ready));
                ready.allocated(ByDevice::one(vec![output]), |completion| {
                    enqueue(program.queue, move || completion.finish());
                });
            }),
            "custom_call" => execution.when_ready(call_handler),
            _ => execution.when_ready(run),
        }
        Ok(())
    }

    fn buffer_from_host(&self, data: HostBuffer, to: Placement<'_, Self>) -> Result<Pending<Storage>> {
        self.maybe_panic("buffer_from_host");
        assert!(to.device.memories().contains(to.memory));
        let storage = if self.scarce {
            Storage::Scarce(data.to_vec()?, AtomicBool::new(true))
        } else if data.may_alias() && data.is_dense() && to.memory.is_host_accessible() {
            Storage::Host(data)
        } else if self.raw {
            Storage::Raw(Mutex::new(data.to_vec()?))
        } else if self.readbacks != 0 {
            Storage::Slow(data.to_vec()?, self.readbacks)
        } else {
            Storage::Own(data.to_vec()?)
        };
        if self.uploads == 0 {
            return Ok(Pending::from(storage));
        }
        let (promise, pending): (Promise<Storage>, _) = promise();
        enqueue(self.uploads, move || promise.fulfill(storage));
        Ok(pending)
    }

    fn view_host_memory(&self, view: HostView, to: Placement<'_, Self>) -> Result<Storage> {
        assert!(to.memory.is_host_accessible());
        match self.views.as_str() {
            "made" => Ok(Storage::View(view)),
            "copied" => Ok(Storage::Own(vec![0; view.size_in_bytes()])),
            _ => Err(Error::unimplemented("the dummy makes no views today")),
        }
    }
}

/// Sends each device's input on channel 1, and outputs the data that it receives on channel 2.
fn call_host(mut ready: ReadyExecution<Storage>) {
    let callbacks = ready.host_callbacks().clone();
    let call = |(device, inputs): (usize, Vec<Input<Storage>>)| {
        callbacks.send(device, 1, inputs[0].bytes().to_vec())?;
        let stream = callbacks.receive(device, 2, 16, 8)?;
        Ok(vec![Storage::Own(stream.wait_timeout(std::time::Duration::from_secs(20))?)])
    };
    let inputs = ready.take_inputs();
    match inputs.into_iter().enumerate().map(call).collect() {
        Ok(outputs) => ready.complete(outputs),
        Err(error) => ready.fail(error),
    }
}

/// Returns to each device the input of the previous device.
fn rotate(mut ready: ReadyExecution<Storage>) {
    let inputs = ready.take_inputs();
    let mut outputs: Vec<Vec<Storage>> =
        inputs.iter().map(|inputs| vec![Storage::Own(inputs[0].bytes().to_vec())]).collect();
    outputs.rotate_right(1);
    ready.complete(outputs.into());
}

/// Calls the handler "negate" that the host registered.
fn call_handler(mut ready: ReadyExecution<Storage>) {
    let Some(handler) = Handler::find("DUMMY", "negate") else {
        return ready.fail(Error::not_found("the custom call 'negate' has no handler"));
    };
    let inputs = ready.take_inputs();
    let mut output = vec![0; 16];
    let outcome = handler.call(Call {
        arguments: vec![Array { element_type: ElementType::F32, dims: &[4], data: inputs[0][0].bytes() }],
        results: vec![ArrayMut { element_type: ElementType::F32, dims: &[4], data: &mut output }],
        attributes: &[],
        user_data: ready.user_data(),
        device_ordinal: 0,
        run_id: i64::from(ready.launch_id()),
    });
    match outcome {
        Ok(()) => ready.complete(ByDevice::one(vec![Storage::Own(output)])),
        Err(error) => ready.fail(error),
    }
}

/// Checks that the host's functions can no longer be called.
fn is_over(callbacks: &HostCallbacks) {
    let error = callbacks.send(0, 1, vec![]).unwrap_err();
    assert_eq!(error.code(), ErrorCode::FailedPrecondition, "{error}");
    let error = callbacks.receive(0, 2, 16, 1).unwrap_err();
    assert_eq!(error.code(), ErrorCode::FailedPrecondition, "{error}");
}

/// Returns the negated numbers of a shared input, or the numbers of a donated one plus 100.
fn negate(inputs: &[Input<Storage>], ready: &ReadyExecution<Storage>) -> Vec<u8> {
    let Some(input) = inputs.first() else { return vec![0; 16] };
    let number = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().unwrap());
    let operation = |number: f32| if input.is_donated() { number + 100.0 } else { -number };
    input.read(ready).chunks(4).flat_map(|bytes| operation(number(bytes)).to_le_bytes()).collect()
}

impl PjrtDevice for Device {
    fn description(&self) -> &DeviceDescription {
        &self.description
    }

    fn memories(&self) -> &[Memory] {
        &self.memories
    }

    fn is_addressable(&self) -> bool {
        self.description.process_index() == 0
    }

    fn memory_stats(&self) -> Option<MemoryStats> {
        Some(MemoryStats { bytes_in_use: 10, peak_allocated_bytes: Some(20), ..MemoryStats::default() })
    }
}

impl PjrtBuffer for Storage {
    fn size_in_bytes(&self) -> usize {
        match self {
            Self::Raw(bytes) => bytes.lock().unwrap().len(),
            Self::View(view) => view.size_in_bytes(),
            _ => self.bytes().len(),
        }
    }

    fn copy_to_host(self: Arc<Self>, copy: CopyToHost) {
        match &*self {
            Self::Slow(_, queue) => enqueue(*queue, move || copy.finish_with(self.bytes())),
            Self::Raw(bytes) => copy.finish_with(&bytes.lock().unwrap()),
            Self::View(view) => copy.finish_with_view(view),
            _ => copy.finish_with(self.bytes()),
        }
    }

    fn host_bytes(&self) -> Result<Option<&[u8]>> {
        match self {
            Self::View(_) => Ok(None),
            Self::Scarce(_, scarce) if scarce.swap(false, Ordering::Relaxed) => {
                Err(Error::resource_exhausted("the dummy has no room for 16 bytes"))
            }
            _ => Ok(Some(self.bytes())),
        }
    }

    fn device_address(&self) -> Result<Option<usize>> {
        match self {
            // A mistake: the device's addresses begin at 0.
            Self::Raw(_) => Ok(Some(0)),
            _ => Ok(self.host_bytes()?.map(|bytes| bytes.as_ptr().expose_provenance())),
        }
    }

    fn host_view(&self) -> Option<&HostView> {
        match self {
            Self::View(view) => Some(view),
            _ => None,
        }
    }
}

impl PjrtExecutable for Program {
    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn num_replicas(&self) -> usize {
        self.replicas
    }

    fn devices_communicate(&self) -> bool {
        self.signature.name.starts_with("rotate")
    }

    fn cost_analysis(&self) -> Vec<(String, AttributeValue)> {
        vec![("flops".to_owned(), AttributeValue::Float(4.0))]
    }
}
