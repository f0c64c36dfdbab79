//! The processes of a distributed computation, and the launches of programs whose devices belong to several of them.

use pjrt_plugin::distributed::Processes;
use pjrt_plugin::ext::RemoteTransfer;
use pjrt_plugin::{DeviceDescription, DeviceId, Error, ProcessInfo, ProcessState, Result};
use pjrt_stablehlo::Module;
use refcpu_engine::exec::{self, Nodes, RunError, RunErrorKind, Transport};
use refcpu_engine::plan::{Plan, Step};
use refcpu_gloo::{Library, Listener, MESSAGE_SIZE, Mesh, Message};
use std::collections::{BTreeSet, HashMap};
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The time in which each connection between two processes must be made.
const CONNECT_LIMIT: Duration = Duration::from_secs(60);

/// The time that a process whose host ends waits for its launches. It is JAX's limit for the end of all processes.
const END_LIMIT: Duration = Duration::from_secs(300);

/// The host name or address at which the process listens.
const HOST_VARIABLE: &str = "REFCPU_GLOO_HOST";

/// The processes of a computation, with a connection between any two of them.
pub(crate) struct Cluster {
    mesh: Mesh,
    launches: Mutex<Launches>,
    /// The number of launches and of copies that have not ended.
    unfinished: AtomicUsize,
}

/// The numbers of launches of programs that communicate.
#[derive(Default)]
struct Launches {
    /// By set of processes.
    of_set: HashMap<Vec<usize>, u64>,
    /// By other process. A launch begins with a message of this number.
    of_peer: HashMap<usize, u64>,
}

impl Cluster {
    /// Connects this process to all others. Returns the devices of all processes in addition, of which `local` are those of this
    /// one.
    ///
    /// # Errors
    /// Returns FAILED_PRECONDITION if the library of `refcpu-gloo` is missing, UNAVAILABLE if a process cannot be reached, and
    /// DEADLINE_EXCEEDED if a process does not create its client.
    pub(crate) fn connect(
        processes: &Processes,
        local: &[DeviceDescription],
    ) -> Result<(Arc<Self>, Vec<DeviceDescription>)> {
        let devices = processes.devices(local)?;
        let library = Library::find().map_err(|error| {
            Error::failed_precondition(format!("refcpu connects several processes with Gloo, but {error}")).with_hint(
                "if the wheel contains the library, unset REFCPU_GLOO; otherwise install Gloo (`apt install libgloo-dev` on \
                 Debian and Ubuntu), run `cargo xtask gloo`, and set REFCPU_GLOO to the path of the library that it builds",
            )
        })?;
        let unreachable = |error: refcpu_gloo::Error| {
            Error::unavailable(error.to_string())
                .with_hint(format!("{HOST_VARIABLE} sets the name or the address at which a process listens"))
        };
        let host = std::env::var(HOST_VARIABLE).ok().filter(|host| !host.is_empty());
        let (index, count) = (processes.index(), processes.count());
        let listener = Listener::new(Arc::clone(&library), index, count, host.as_deref(), CONNECT_LIMIT)
            .map_err(unreachable)?;
        let addresses: Vec<Vec<u8>> = (0..count).map(|peer| listener.address(peer).to_vec()).collect();
        let addresses = processes.exchange_each("addresses", &addresses)?;
        let mesh = listener.connect(&addresses).map_err(unreachable)?;
        let cluster = Arc::new(Self { mesh, launches: Mutex::default(), unfinished: AtomicUsize::new(0) });
        let weak = Arc::downgrade(&cluster);
        library.when_host_ends(move |error| {
            if let Some(cluster) = weak.upgrade() {
                cluster.end(error);
            }
        });
        Ok((cluster, devices))
    }

    /// Tells the other processes that the host of this one ends, with an error or without, after the launches and the copies of
    /// this process have ended.
    fn end(&self, error: &str) {
        let begin = Instant::now();
        while self.unfinished.load(Ordering::Acquire) > 0
            && !self.mesh.is_broken()
            && begin.elapsed() < END_LIMIT
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        let cause = if error.is_empty() { String::new() } else { format!(" with {error}") };
        self.mesh.end(&format!("process {} has ended{cause}", self.mesh.index()));
    }

    /// Fails the programs that communicate with processes of which the host knows that they have ended.
    pub(crate) fn processes_changed(&self, processes: &[ProcessInfo]) {
        let has_ended = |info: &&ProcessInfo| {
            matches!(info.state, ProcessState::Disconnected | ProcessState::Error)
                && usize::try_from(info.task_id) != Ok(self.mesh.index())
        };
        for info in processes.iter().filter(has_ended) {
            let error =
                info.error.as_ref().map_or_else(String::new, |error| format!(": {}", error.message()));
            self.mesh.fail(&format!("process {} has ended, according to the host{error}", info.task_id));
        }
    }

    /// Sends an array to a device of another process. If the array is in error, the connections break with the error, because the
    /// receiver waits for the array.
    ///
    /// # Errors
    /// Returns UNAVAILABLE if a process has failed, or the error of the array.
    pub(crate) fn send(&self, peer: usize, transfer: RemoteTransfer, bytes: Result<Vec<u8>>) -> Result<()> {
        let _unfinished = Unfinished::begin(&self.unfinished);
        let bytes = bytes.inspect_err(|error| {
            let own = self.mesh.index();
            self.mesh
                .fail(&format!("process {own}: an array for device {} is in error: {error}", transfer.to));
        })?;
        let tag = tag_of(transfer);
        let mut transfers = [refcpu_gloo::Transfer { peer, tag, bytes: refcpu_gloo::Bytes::Send(&bytes) }];
        self.mesh.transfer(&mut transfers).map_err(|error| Error::unavailable(error.to_string()))
    }

    /// Receives an array from a device of another process.
    ///
    /// # Errors
    /// Returns UNAVAILABLE if a process has failed, or RESOURCE_EXHAUSTED if there is not enough memory.
    pub(crate) fn receive(&self, peer: usize, transfer: RemoteTransfer, size: usize) -> Result<Vec<u8>> {
        let _unfinished = Unfinished::begin(&self.unfinished);
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(size).map_err(|error| Error::resource_exhausted(error.to_string()))?;
        bytes.resize(size, 0);
        let tag = tag_of(transfer);
        let mut transfers =
            [refcpu_gloo::Transfer { peer, tag, bytes: refcpu_gloo::Bytes::Receive(&mut bytes) }];
        self.mesh.transfer(&mut transfers).map_err(|error| Error::unavailable(error.to_string()))?;
        Ok(bytes)
    }

    /// Begins a launch of a program that communicates between processes. All of them launch such programs in the same order.
    pub(crate) fn launch(self: &Arc<Self>, program: &Spanning, name: &str) -> Launch {
        let mut launches = self.launches.lock().unwrap_or_else(PoisonError::into_inner);
        let number = launches.of_set.entry(program.processes.clone()).or_default();
        *number += 1;
        let number = *number;
        let mut peers = Vec::with_capacity(program.processes.len());
        for &peer in program.processes.iter().filter(|peer| **peer != self.mesh.index()) {
            let next = launches.of_peer.entry(peer).or_default();
            peers.push((peer, *next));
            *next += 1;
        }
        drop(launches);
        let header = Header::new(number, program, name);
        let set = program.processes.iter().map(|process| *process as u64);
        let tag = set.chain([number]).fold(0, |tag, part| hash(tag, &part.to_le_bytes()));
        self.unfinished.fetch_add(1, Ordering::Relaxed);
        Launch {
            cluster: Arc::clone(self),
            peers,
            header,
            devices: Arc::clone(&program.devices),
            tag,
            is_checked: AtomicBool::new(false),
            refused: OnceLock::new(),
            is_finished: false,
        }
    }
}

/// A copy that has not ended.
struct Unfinished<'a>(&'a AtomicUsize);

impl<'a> Unfinished<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// The part of a loaded program that describes its processes, if its devices belong to several.
pub(crate) struct Spanning {
    /// The process of each lane.
    of_lane: Vec<usize>,
    /// This process.
    own: usize,
    /// The processes, in ascending order.
    processes: Vec<usize>,
    /// The devices of the lanes.
    devices: Arc<[DeviceId]>,
    /// A hash of everything else that must be equal on all processes.
    fingerprint: u64,
}

impl Spanning {
    /// Creates the description of a program; `None` if all of its devices belong to this process. `of_lane` are the processes of
    /// its `devices`, and `fingerprint` is the hash of its text.
    pub(crate) fn new(
        plan: &Plan,
        fingerprint: u64,
        own: usize,
        devices: &[DeviceId],
        of_lane: Vec<usize>,
    ) -> Option<Self> {
        let processes: BTreeSet<usize> = of_lane.iter().copied().collect();
        if processes.iter().eq([&own]) {
            return None;
        }
        let fingerprint = hash(hash_of_plan(plan), &fingerprint.to_le_bytes());
        let processes = processes.into_iter().collect();
        Some(Self { of_lane, own, processes, devices: devices.into(), fingerprint })
    }

    /// Returns the position of a lane among those of this process.
    pub(crate) fn position(&self, lane: usize) -> usize {
        self.of_lane.iter().take(lane).filter(|process| **process == self.own).count()
    }

    /// Returns the processes for a run with a transport.
    pub(crate) fn nodes<'a>(&'a self, transport: &'a dyn Transport) -> Nodes<'a> {
        Nodes { of_lane: &self.of_lane, own: self.own, transport }
    }
}

/// Returns a hash of a program that is the same on all processes. It leaves out locations, and the numbers in operations that
/// call the host, which may be addresses or numbers of callbacks. Both may differ between processes that run the same program.
pub(crate) fn fingerprint(module: &Module) -> u64 {
    let calls_host = |line: &str| {
        ["custom_call\"", "send\"", "recv\""].iter().any(|op| line.contains(&format!("\"stablehlo.{op}")))
    };
    module.to_string().lines().fold(0, |seed, line| match calls_host(line) {
        true => hash(seed, line.replace(|c: char| c.is_ascii_digit(), "").as_bytes()),
        false => hash(seed, line.as_bytes()),
    })
}

/// Returns a hash of the parts of a plan that must be equal on all processes: its arrays, and its collectives. The rest may
/// differ, for example in machine code.
fn hash_of_plan(plan: &Plan) -> u64 {
    let mut text = format!("{} {}", plan.num_replicas, plan.num_partitions);
    let shapes = plan.parameters.iter().map(|parameter| &parameter.shape);
    for shape in shapes.chain(plan.results.iter().map(|result| &result.shape)) {
        let _ = write!(text, " {shape}");
    }
    for step in &plan.program.steps {
        if let Step::Collective(step) = step {
            let _ = write!(text, " {:?} {:?} {:?}", step.collective, step.read.dtype, step.read.dims);
        }
    }
    hash(0, text.as_bytes())
}

/// A launch of a program that communicates between processes: the transport of its run. If it is dropped before
/// [`finish`](Self::finish), the launches on the other processes fail.
///
/// The processes begin a launch with an exchange of messages. A message contains the header of the program and the beginning of
/// the data, or the error of a launch that has failed before. The launch then fails on all processes, and later ones can succeed.
/// After the exchange, a process that fails cannot tell at which of their transfers the others are, so the connections break.
pub(crate) struct Launch {
    cluster: Arc<Cluster>,
    /// The other processes, each with the number of the message with which the launch begins.
    peers: Vec<(usize, u64)>,
    header: Header,
    devices: Arc<[DeviceId]>,
    tag: u64,
    /// `true` after the headers of the other processes have been compared with this one.
    is_checked: AtomicBool,
    /// The kind of the error if a header differs or contains an error. All processes know it then, and later launches can
    /// succeed.
    refused: OnceLock<RunErrorKind>,
    is_finished: bool,
}

impl Launch {
    /// Compares the headers of all processes, if the run has not reached a collective.
    ///
    /// # Errors
    /// Returns FAILED_PRECONDITION if the processes run different programs, or UNAVAILABLE if one has failed.
    pub(crate) fn check(&self) -> Result<(), RunError> {
        if self.is_checked.load(Ordering::Relaxed) { Ok(()) } else { self.transfer(&mut []) }
    }

    /// Returns `true` if [`finish`](Self::finish) with an error waits until the other processes reach the launch.
    pub(crate) fn waits_to_fail(&self) -> bool {
        self.refused.get().is_none() && !self.is_checked.load(Ordering::Relaxed)
    }

    /// Ends the launch. If it has failed, the launches on the other processes fail with the same error.
    pub(crate) fn finish(mut self, outcome: Result<(), &Error>) {
        self.is_finished = true;
        if let Err(error) = outcome {
            self.fail(error.message());
        }
    }

    fn fail(&self, message: &str) {
        if self.refused.get().is_some() {
            return;
        }
        if !self.is_checked.swap(true, Ordering::Relaxed) {
            // The other processes receive the error in place of the data. The exchange waits until they reach this launch, which
            // keeps the order of the messages.
            let header = Header { is_failed: true, ..self.header.clone() };
            let text = shortened(message, ROOM);
            let mut messages =
                self.messages(&header, |_, room| room[..text.len()].copy_from_slice(text.as_bytes()));
            // An error is that of later launches too.
            let _ = self.cluster.mesh.exchange(&mut messages, |_| Ok(()), &mut []);
            return;
        }
        let (own, program) = (self.cluster.mesh.index(), &self.header.name);
        self.cluster.mesh.fail(&format!(
            "process {own}: the program '{program}' failed: {message}; since then, no program can communicate: start all \
             processes again"
        ));
    }

    /// Executes the first transfers of the launch. The messages with which it begins contain the headers and, if there is room,
    /// what is sent between the two processes.
    fn transfer_first(&self, transfers: Vec<refcpu_gloo::Transfer<'_>>) -> Result<(), refcpu_gloo::Error> {
        let mut rest = Vec::new();
        let mut short: Vec<Short<'_>> = (0..self.peers.len()).map(|_| Short::default()).collect();
        let sizes = self.peers.iter().map(|(peer, _)| sizes(*peer, &transfers)).collect::<Vec<_>>();
        for refcpu_gloo::Transfer { peer, tag, bytes } in transfers {
            let of_peer = self.peers.iter().position(|(other, _)| *other == peer);
            match (bytes, of_peer) {
                (refcpu_gloo::Bytes::Send(bytes), Some(i)) if sizes[i].0 <= ROOM => {
                    short[i].sent.push((tag, bytes))
                }
                (refcpu_gloo::Bytes::Receive(bytes), Some(i)) if sizes[i].1 <= ROOM => {
                    short[i].received.push((tag, bytes))
                }
                (bytes, _) => rest.push(refcpu_gloo::Transfer { peer, tag, bytes }),
            }
        }
        let mut messages = self.messages(&self.header, |i, room| short[i].write(room));
        let check = |messages: &[Message]| {
            messages.iter().try_for_each(|message| self.failure(message))?;
            messages.iter().try_for_each(|message| self.compare(message))
        };
        self.cluster.mesh.exchange(&mut messages, check, &mut rest)?;
        for (short, message) in short.iter_mut().zip(&messages) {
            short.read(&message.received[Header::SIZE..]);
        }
        Ok(())
    }

    /// Returns the messages with which the launch begins. `fill` writes the rest of the message for the n-th process.
    fn messages(&self, header: &Header, mut fill: impl FnMut(usize, &mut [u8])) -> Vec<Message> {
        let header = header.to_bytes();
        let message = |(i, &(peer, number)): (usize, &(usize, u64))| {
            let mut sent = [0; MESSAGE_SIZE];
            sent[..Header::SIZE].copy_from_slice(&header);
            fill(i, &mut sent[Header::SIZE..]);
            Message { peer, number, sent, received: Vec::with_capacity(MESSAGE_SIZE) }
        };
        self.peers.iter().enumerate().map(message).collect()
    }

    /// Returns the error of another process, if its launch has failed.
    fn failure(&self, message: &Message) -> Result<(), String> {
        let (header, text) = message.received.split_at(Header::SIZE);
        let header = Header::from_bytes(header);
        if !header.is_failed {
            return Ok(());
        }
        let _ = self.refused.set(RunErrorKind::Unavailable);
        let text = String::from_utf8_lossy(text);
        let text = text.trim_end_matches('\0');
        Err(format!("process {}: the program '{}' failed: {text}", message.peer, header.name))
    }

    fn compare(&self, message: &Message) -> Result<(), String> {
        let other = Header::from_bytes(&message.received[..Header::SIZE]);
        if other == self.header {
            return Ok(());
        }
        let _ = self.refused.set(RunErrorKind::FailedPrecondition);
        let (own, peer) = (self.cluster.mesh.index(), message.peer);
        if other == (Header { devices: other.devices, ..self.header.clone() }) {
            return Err(format!(
                "the processes run the program '{}' on different devices: process {own} runs it on {:?}, and process {peer} on \
                 others or in another order. All processes must create equal meshes",
                other.name, self.devices
            ));
        }
        Err(format!(
            "the processes run different programs: process {own} runs {}, process {peer} runs {other}. All processes must launch \
             the same programs in the same order; with the variable REFCPU_DUMP, each writes its programs into a folder",
            self.header
        ))
    }
}

/// Shortens a text to a number of bytes. The middle is left out: an error begins with its kind, and that of a host ends with its
/// cause.
fn shortened(text: &str, size: usize) -> String {
    const GAP: &str = " ... ";
    if text.len() <= size {
        return text.to_owned();
    }
    let (mut end, mut begin) = (size / 4, text.len() - (size - size / 4 - GAP.len()));
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    while !text.is_char_boundary(begin) {
        begin += 1;
    }
    format!("{}{GAP}{}", &text[..end], &text[begin..])
}

/// The room for data in the messages with which a launch begins.
const ROOM: usize = MESSAGE_SIZE - Header::SIZE;

/// Returns the number of bytes that are sent to a process and received from it.
fn sizes(peer: usize, transfers: &[refcpu_gloo::Transfer<'_>]) -> (usize, usize) {
    let with_peer = transfers.iter().filter(|transfer| transfer.peer == peer);
    with_peer.fold((0, 0), |(sent, received), transfer| match &transfer.bytes {
        refcpu_gloo::Bytes::Send(bytes) => (sent + bytes.len(), received),
        refcpu_gloo::Bytes::Receive(bytes) => (sent, received + bytes.len()),
    })
}

/// The transfers with a process that are part of the messages with which a launch begins, with their tags. Both processes put
/// them in the order of the tags.
#[derive(Default)]
struct Short<'a> {
    sent: Vec<(u64, &'a [u8])>,
    received: Vec<(u64, &'a mut [u8])>,
}

impl Short<'_> {
    fn write(&mut self, mut message: &mut [u8]) {
        self.sent.sort_by_key(|(tag, _)| *tag);
        for (_, bytes) in &self.sent {
            let part;
            (part, message) = message.split_at_mut(bytes.len());
            part.copy_from_slice(bytes);
        }
    }

    fn read(&mut self, mut message: &[u8]) {
        self.received.sort_by_key(|(tag, _)| *tag);
        for (_, bytes) in &mut self.received {
            let part;
            (part, message) = message.split_at(bytes.len());
            bytes.copy_from_slice(part);
        }
    }
}

impl Transport for Launch {
    fn transfer(&self, transfers: &mut [exec::Transfer<'_>]) -> Result<(), RunError> {
        let of_launch = |transfer: &mut exec::Transfer<'_>| hash(self.tag, &transfer.tag.to_le_bytes()) >> 1;
        let mut list = Vec::with_capacity(transfers.len());
        for transfer in transfers {
            let tag = of_launch(transfer);
            let bytes = match &mut transfer.bytes {
                exec::Bytes::Send(bytes) => refcpu_gloo::Bytes::Send(bytes),
                exec::Bytes::Receive(bytes) => refcpu_gloo::Bytes::Receive(bytes),
            };
            list.push(refcpu_gloo::Transfer { peer: transfer.node, tag, bytes });
        }
        let outcome = if self.is_checked.swap(true, Ordering::Relaxed) {
            self.cluster.mesh.transfer(&mut list)
        } else {
            self.transfer_first(list)
        };
        outcome.map_err(|error| {
            let kind = match error {
                refcpu_gloo::Error::Refused(_) => self.refused.get().copied(),
                _ => None,
            };
            RunError::new(kind.unwrap_or(RunErrorKind::Unavailable), error.to_string())
        })
    }
}

impl Drop for Launch {
    fn drop(&mut self) {
        if !self.is_finished {
            self.fail("it was launched, but could not run");
        }
        self.cluster.unfinished.fetch_sub(1, Ordering::Release);
    }
}

/// The beginning of a launch, which all of its processes compare.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Header {
    /// The number of the launch among those of the same processes.
    number: u64,
    fingerprint: u64,
    /// A hash of the devices, in the order of the lanes.
    devices: u64,
    /// `true` if the launch has failed. The rest of the message is then the error.
    is_failed: bool,
    /// The beginning of the program's name.
    name: String,
}

impl Header {
    const SIZE: usize = 128;

    /// The number of bytes of the name that are sent.
    const NAME: usize = Self::SIZE - 25;

    fn new(number: u64, program: &Spanning, name: &str) -> Self {
        let devices = program.devices.iter().fold(0, |seed, id| hash(seed, &id.to_le_bytes()));
        let (fingerprint, name) = (program.fingerprint, name.to_owned());
        // The name becomes as short as it is for the other processes.
        Self::from_bytes(&Self { number, fingerprint, devices, is_failed: false, name }.to_bytes())
    }

    fn to_bytes(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..8].copy_from_slice(&self.number.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.fingerprint.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.devices.to_le_bytes());
        let name = &self.name.as_bytes()[..self.name.len().min(Self::NAME)];
        bytes[24] = u8::from(self.is_failed);
        bytes[25..25 + name.len()].copy_from_slice(name);
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let number = |at: usize| {
            let bytes = bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
            u64::from_le_bytes(bytes.unwrap_or_default())
        };
        let is_failed = bytes.get(24).is_some_and(|byte| *byte != 0);
        let name = String::from_utf8_lossy(bytes.get(25..).unwrap_or_default());
        let name = name.trim_end_matches('\0').to_owned();
        Self { number: number(0), fingerprint: number(8), devices: number(16), is_failed, name }
    }
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' (fingerprint {:016x}) as launch {}", self.name, self.fingerprint, self.number)
    }
}

/// Returns the tag of a transfer between two devices. It differs from those of launches.
fn tag_of(transfer: RemoteTransfer) -> u64 {
    let ids = [i64::from(transfer.from), i64::from(transfer.to), transfer.key];
    ids.iter().fold(hash(0, b"transfer"), |tag, id| hash(tag, &id.to_le_bytes())) >> 1
}

/// Returns a hash that is the same on all processes (FNV-1a, 64 bits).
fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let begin = 0xcbf2_9ce4_8422_2325 ^ seed;
    bytes.iter().fold(begin, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_with_long_names_are_equal_on_both_sides() {
        let on = |devices: &[DeviceId]| Spanning {
            of_lane: vec![0, 1],
            own: 0,
            processes: vec![0, 1],
            devices: devices.into(),
            fingerprint: u64::MAX,
        };
        let name = "ä".repeat(100);
        let header = Header::new(3, &on(&[0, 1]), &name);
        assert_eq!(Header::from_bytes(&header.to_bytes()), header);
        assert_ne!(Header::new(4, &on(&[0, 1]), &name), header);
        assert_ne!(Header::new(3, &on(&[1, 0]), &name), header);
    }

    #[test]
    fn programs_that_differ_in_a_constant_differ_and_numbers_of_callbacks_do_not() {
        let of = |constant: u8, callback: u32, line: u32| {
            let text = format!(
                "module @m {{ func.func @main(%x: tensor<f32>) -> tensor<f32> {{
                    %0 = stablehlo.constant dense<{constant}.0> : tensor<f32> loc(\"a.py\":{line}:0)
                    %1 = stablehlo.custom_call @call(%x) {{backend_config = \"{callback}\"}} : (tensor<f32>) -> tensor<f32>
                    %2 = stablehlo.multiply %0, %1 : tensor<f32>
                    return %2 : tensor<f32> }} }}"
            );
            fingerprint(&pjrt_stablehlo::parse(text).unwrap())
        };
        assert_eq!(of(2, 1, 1), of(2, 34, 7));
        assert_ne!(of(2, 1, 1), of(3, 1, 1));
    }

    #[test]
    fn long_errors_keep_their_beginning_and_their_end() {
        let text = format!("INTERNAL: {}ValueError: planted", "é".repeat(400));
        for size in 60..70 {
            let short = shortened(&text, size);
            assert!(short.len() <= size && short.starts_with("INTERNAL: "), "{short}");
            assert!(short.ends_with("ValueError: planted"), "{short}");
        }
        assert_eq!(shortened("short", 5), "short");
    }
}
