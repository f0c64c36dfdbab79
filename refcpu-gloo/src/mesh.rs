//! The connections between all processes, which are whole or broken.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::inbox::Inbox;
use crate::library::{Connections, Library, Outcome, Started, Waiter};
use crate::{Bytes, Error, Message, Transfer};

/// The tag of the notices. All tags with the highest bit belong to the mesh.
const NOTICE_TAG: u64 = u64::MAX;

/// The size of a notice: a byte that is [`BROKEN`] or [`ENDED`], and a reason, which is padded with zeros.
const NOTICE_SIZE: usize = 1024;

/// The first byte of a notice that says why the mesh is broken.
const BROKEN: u8 = 1;

/// The first byte of a notice that says that its sender starts no more transfers, and why.
const ENDED: u8 = 2;

/// The time that a process tries to send a notice.
const NOTICE_LIMIT: Duration = Duration::from_secs(2);

/// The time after which a transfer with a process that has ended cannot become complete. What the process has sent has arrived
/// before the notice, and a thread that waits for it has continued.
const ENDED_LIMIT: Duration = Duration::from_secs(2);

/// A process that listens, but is not connected to the others yet.
pub struct Listener {
    connections: Connections,
    index: usize,
    limit: Duration,
}

impl Listener {
    /// Listens for connections of the other processes. `index` is the index of this process, and `count` the number of processes.
    /// `host` is a name or an address of this machine, which selects the network interface; the default is the machine's host
    /// name. `limit` limits the time that the process waits for each connection.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Connect`] if the host is not an address of this machine.
    pub fn new(
        library: Arc<Library>,
        index: usize,
        count: usize,
        host: Option<&str>,
        limit: Duration,
    ) -> Result<Self, Error> {
        let connections = Connections::open(library, index, count, host, limit).map_err(|message| {
            let host = host.map_or("its host name".to_owned(), |host| format!("'{host}'"));
            Error::Connect(format!("process {index} cannot listen on {host}: {message}"))
        })?;
        Ok(Self { connections, index, limit })
    }

    /// Returns the address to which another process connects; it is empty for this process itself.
    ///
    /// # Panics
    ///
    /// Panics if there is no such process.
    pub fn address(&self, peer: usize) -> &[u8] {
        self.connections.address(peer)
    }

    /// Connects this process to all others. `addresses` has, for each process, the [`address`](Self::address) that this process
    /// has of this one. All processes must call this at about the same time.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Connect`], with the process that is missing, if a connection cannot be made within the time limit.
    ///
    /// # Panics
    ///
    /// Panics if the number of addresses is wrong.
    pub fn connect(self, addresses: &[Vec<u8>]) -> Result<Mesh, Error> {
        assert_eq!(addresses.len(), self.connections.count(), "there is an address for each process");
        let others = (0..addresses.len()).filter(|peer| *peer != self.index);
        for peer in others.clone() {
            self.connections.connect(peer, &addresses[peer]).map_err(|message| {
                Error::Connect(format!(
                    "process {} cannot connect to process {peer} within {:?}: {message}",
                    self.index, self.limit
                ))
            })?;
        }
        let connections = Arc::new(self.connections);
        let inbox =
            |peer| (peer != self.index).then(|| Mutex::new(Inbox::new(Arc::clone(&connections), peer)));
        let inboxes: Vec<_> = (0..addresses.len()).map(inbox).collect();
        for inbox in inboxes.iter().flatten() {
            // An error is that of the first message.
            let _ = inbox.lock().unwrap_or_else(PoisonError::into_inner).open();
        }
        let shared = Arc::new(Shared {
            inboxes,
            connections,
            index: self.index,
            state: Mutex::new(State::default()),
            changed: Condvar::new(),
        });
        let mut watchers = Vec::new();
        for peer in others {
            let shared = Arc::clone(&shared);
            let started = thread::Builder::new()
                .name(format!("refcpu-gloo-{peer}"))
                .spawn(move || shared.watch(peer))
                .map_err(|error| Error::Connect(format!("a thread cannot be started: {error}")))?;
            watchers.push(started);
        }
        Ok(Mesh { shared, watchers })
    }
}

/// The connections of this process to all others. See the documentation of the [crate](crate).
pub struct Mesh {
    shared: Arc<Shared>,
    /// The threads that wait for the end of each other process.
    watchers: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for Mesh {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mesh of process {} of {}", self.index(), self.count())
    }
}

struct Shared {
    /// The messages of each other process.
    inboxes: Vec<Option<Mutex<Inbox>>>,
    connections: Arc<Connections>,
    index: usize,
    state: Mutex<State>,
    /// Signalled when the mesh breaks, and when the other processes have been told.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The reason why the mesh is broken.
    broken: Option<String>,
    /// `true` once the other processes have been told the reason.
    is_told: bool,
    /// `true` once the mesh is dropped.
    is_closed: bool,
    /// The transfers that have not ended, by number.
    active: HashMap<u64, Active>,
    /// The receives of the watchers, by process.
    watched: HashMap<usize, Arc<Started>>,
    /// The number of transfers so far.
    started: u64,
    /// The processes that start no more transfers, with their reasons.
    ended: HashMap<usize, String>,
    /// The threads that send notices, or look for transfers with processes that have ended.
    threads: Vec<JoinHandle<()>>,
}

/// Transfers with a process that have been started.
struct Active {
    peer: usize,
    started: Arc<Started>,
    /// The time since when a thread waits for them.
    since: Option<Instant>,
}

impl Mesh {
    /// Returns the index of this process.
    pub fn index(&self) -> usize {
        self.shared.index
    }

    /// Returns the number of processes.
    pub fn count(&self) -> usize {
        self.shared.connections.count()
    }

    /// Executes transfers at the same time, and waits until all of them are complete. There is no time limit. Several threads may
    /// call this at once.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Broken`] if the mesh is or becomes broken.
    ///
    /// # Panics
    ///
    /// Panics if a transfer is with this process itself or with one that does not exist.
    pub fn transfer(&self, transfers: &mut [Transfer<'_>]) -> Result<(), Error> {
        self.shared.transfer(transfers, || Ok(()))
    }

    /// Exchanges messages with other processes, calls a function when they have arrived, and executes transfers. If the function
    /// returns an error, nothing is sent for the transfers. The processes on the other side must not send anything either, as
    /// they do not if the function makes the same decision on all of them.
    ///
    /// Messages arrive sooner than transfers, because every process is ready to receive the next ones of every other process.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Refused`] with the error of the function, or [`Error::Broken`] if the mesh is or becomes broken.
    ///
    /// # Panics
    ///
    /// Panics if a message or a transfer is with this process itself or with one that does not exist, or if the number of a
    /// message is used again.
    pub fn exchange(
        &self,
        messages: &mut [Message],
        check: impl FnOnce(&[Message]) -> Result<(), String>,
        transfers: &mut [Transfer<'_>],
    ) -> Result<(), Error> {
        let is_send = |transfer: &Transfer<'_>| matches!(transfer.bytes, Bytes::Send(_));
        transfers.sort_by_key(is_send);
        let (receives, sends) = transfers.split_at_mut(transfers.partition_point(|it| !is_send(it)));
        // The receives are started before the messages, so that the other processes can send at once. A receive can be abandoned
        // as long as the other process does not send: Gloo cannot skip bytes that have no memory to go to.
        self.shared.transfer(receives, || {
            self.shared.exchange(messages)?;
            check(messages).map_err(Error::Refused)?;
            self.shared.transfer(sends, || Ok(()))
        })
    }

    /// Tells the other processes that this one starts no more transfers, and why. The mesh breaks when another process needs a
    /// transfer with this one that is not complete.
    pub fn end(&self, reason: &str) {
        if self.shared.lock().broken.is_none() {
            self.shared.notify(ENDED, reason);
        }
    }

    /// Returns whether the mesh is broken.
    pub fn is_broken(&self) -> bool {
        self.shared.lock().broken.is_some()
    }

    /// Breaks the mesh on all processes, with a reason that says which process failed and why. It returns when the other
    /// processes have been told, or after two seconds, so that the caller can end the process.
    pub fn fail(&self, reason: &str) {
        self.shared.fail(reason);
        drop(self.shared.broken());
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts transfers, calls a function, and waits for the transfers unless the function returns an error.
    fn transfer(
        self: &Arc<Self>,
        transfers: &mut [Transfer<'_>],
        then: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        if transfers.is_empty() {
            return then();
        }
        self.check(transfers.iter().map(|transfer| transfer.peer))?;
        let ended = self.connections.with_transfers(transfers, |waiters| {
            let number = |waiter: &Waiter<'_>| self.register(waiter.peer, waiter.started());
            let numbers: Vec<u64> = waiters.iter().map(number).collect();
            let mut outcome = then().map(|()| Outcome::Complete);
            for (waiter, number) in waiters.into_iter().zip(&numbers) {
                if matches!(outcome, Ok(Outcome::Complete)) {
                    self.waits(*number);
                    outcome = Ok(waiter.wait(None));
                }
            }
            let mut state = self.lock();
            numbers.iter().for_each(|number| drop(state.active.remove(number)));
            outcome
        });
        match ended {
            Ok(Ok(outcome)) => self.completed(outcome),
            Ok(Err(error)) => Err(error),
            Err((peer, message)) => Err(self.lost(peer, &message)),
        }
    }

    /// Checks that the mesh is whole, and that no process has ended with which transfers are to be started.
    fn check(self: &Arc<Self>, mut peers: impl Iterator<Item = usize>) -> Result<(), Error> {
        let state = self.lock();
        if let Some(reason) = &state.broken {
            return Err(Error::Broken(reason.clone()));
        }
        let Some(reason) = peers.find_map(|peer| state.ended.get(&peer)).cloned() else { return Ok(()) };
        drop(state);
        self.fail(&reason);
        Err(self.broken())
    }

    fn completed(self: &Arc<Self>, outcome: Outcome) -> Result<(), Error> {
        match outcome {
            Outcome::Complete => Ok(()),
            Outcome::Aborted => Err(self.broken()),
            Outcome::Lost(peer, message) => Err(self.lost(peer, &message)),
        }
    }

    /// Sends messages, and receives those of the other processes.
    fn exchange(self: &Arc<Self>, messages: &mut [Message]) -> Result<(), Error> {
        self.check(messages.iter().map(|message| message.peer))?;
        let mut posted = Vec::with_capacity(messages.len());
        for message in &*messages {
            let inbox = self.inboxes[message.peer].as_ref().expect("a message is for another process");
            let taken = inbox.lock().unwrap_or_else(PoisonError::into_inner).take(message.number);
            posted.push(taken.map_err(|(peer, reason)| self.lost(peer, &reason))?);
        }
        let mut sent: Vec<Transfer<'_>> = Vec::with_capacity(messages.len());
        for Message { peer, number, sent: bytes, .. } in &*messages {
            sent.push(Transfer { peer: *peer, tag: Inbox::tag(*number), bytes: Bytes::Send(bytes) });
        }
        self.transfer(&mut sent, || Ok(()))?;
        for (message, posted) in messages.iter_mut().zip(posted) {
            let number = self.register(message.peer, posted.started());
            self.waits(number);
            let outcome = posted.wait(&mut message.received);
            self.lock().active.remove(&number);
            self.completed(outcome)?;
        }
        Ok(())
    }

    /// Adds transfers to those that are aborted when the mesh breaks. Returns their number.
    fn register(&self, peer: usize, started: Arc<Started>) -> u64 {
        let mut state = self.lock();
        state.started += 1;
        let number = state.started;
        if state.broken.is_some() {
            started.abort();
        }
        state.active.insert(number, Active { peer, started, since: None });
        number
    }

    /// Notes that a thread begins to wait for transfers.
    fn waits(&self, number: u64) {
        if let Some(active) = self.lock().active.get_mut(&number) {
            active.since = Some(Instant::now());
        }
    }

    /// Returns the error of transfers of a broken mesh. It waits until the other processes have been told the reason, because the
    /// caller may end the process.
    fn broken(&self) -> Error {
        let is_untold = |state: &mut State| state.broken.is_some() && !state.is_told && !state.is_closed;
        let waited = self.changed.wait_timeout_while(self.lock(), NOTICE_LIMIT, is_untold);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        Error::Broken(state.broken.clone().unwrap_or_else(|| "the connections are closed".to_owned()))
    }

    /// Returns the error of transfers whose connection to a process is broken. The process may have closed it because another one
    /// has failed. The watcher knows: it has received the reason before.
    fn lost(self: &Arc<Self>, peer: usize, message: &str) -> Error {
        let is_whole = |state: &mut State| state.broken.is_none() && !state.is_closed;
        let waited = self.changed.wait_timeout_while(self.lock(), NOTICE_LIMIT, is_whole);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        self.lose(peer, message);
        self.broken()
    }

    /// Breaks the mesh because the connection to a process is broken.
    fn lose(self: &Arc<Self>, peer: usize, message: &str) {
        let ended = self.lock().ended.get(&peer).cloned();
        self.fail(&ended.unwrap_or_else(|| {
            let message = without_place(message);
            format!("process {peer} has ended or cannot be reached: {message}; its own output may say why")
        }));
    }

    /// Breaks the mesh, unless it is broken.
    fn fail(self: &Arc<Self>, reason: &str) {
        let mut state = self.lock();
        if state.broken.is_some() || state.is_closed {
            return;
        }
        state.broken = Some(reason.to_owned());
        self.changed.notify_all();
        state.active.values().for_each(|active| active.started.abort());
        let (shared, reason) = (Arc::clone(self), reason.to_owned());
        // Without this thread, the other processes only find that this one has ended.
        let teller = thread::Builder::new().name("refcpu-gloo-reason".to_owned());
        // Gloo would use a processor to wait for data that arrives for transfers that have been abandoned, so the connections are
        // closed.
        let tell = move || {
            shared.notify(BROKEN, &reason);
            shared.lock().is_told = true;
            shared.changed.notify_all();
            shared.connections.disconnect();
        };
        let told = teller.spawn(tell);
        state.is_told = told.is_err();
        state.threads.extend(told);
    }

    /// Sends a notice to all other processes.
    fn notify(&self, kind: u8, reason: &str) {
        let mut bytes = [0; NOTICE_SIZE];
        bytes[0] = kind;
        let mut end = reason.len().min(NOTICE_SIZE - 1);
        while !reason.is_char_boundary(end) {
            end -= 1;
        }
        bytes[1..=end].copy_from_slice(&reason.as_bytes()[..end]);
        thread::scope(|threads| {
            for peer in (0..self.connections.count()).filter(|peer| *peer != self.index) {
                let bytes = &bytes;
                threads.spawn(move || {
                    let mut message = [Transfer { peer, tag: NOTICE_TAG, bytes: Bytes::Send(bytes) }];
                    // A process that has ended does not receive it.
                    let _ = self.connections.with_transfers(&mut message, |waiters| {
                        waiters.into_iter().for_each(|waiter| drop(waiter.wait(Some(NOTICE_LIMIT))));
                    });
                });
            }
        });
    }

    /// Receives the notices of another process, until the mesh or the connection to the process is broken.
    fn watch(self: &Arc<Self>, peer: usize) {
        loop {
            let mut bytes = [0; NOTICE_SIZE];
            let mut message = [Transfer { peer, tag: NOTICE_TAG, bytes: Bytes::Receive(&mut bytes) }];
            let outcome = self.connections.with_transfers(&mut message, |waiters| {
                let mut waiters = waiters.into_iter();
                let Some(waiter) = waiters.next() else { return Outcome::Aborted };
                let started = waiter.started();
                let mut state = self.lock();
                if state.is_closed {
                    started.abort();
                }
                state.watched.insert(peer, started);
                drop(state);
                waiter.wait(None)
            });
            match outcome {
                Ok(Outcome::Complete) => {
                    let reason = String::from_utf8_lossy(&bytes[1..]);
                    let reason = reason.trim_end_matches('\0');
                    if bytes[0] != ENDED {
                        return self.fail(reason);
                    }
                    self.peer_ends(peer, reason);
                }
                Ok(Outcome::Aborted) => return,
                Ok(Outcome::Lost(peer, message)) | Err((peer, message)) => {
                    return self.lose(peer, &message);
                }
            }
        }
    }

    /// Notes that a process starts no more transfers, and starts a thread that looks for those that wait for the process.
    fn peer_ends(self: &Arc<Self>, peer: usize, reason: &str) {
        let mut state = self.lock();
        if state.is_closed {
            return;
        }
        state.ended.insert(peer, reason.to_owned());
        let (shared, finder) =
            (Arc::clone(self), thread::Builder::new().name("refcpu-gloo-ended".to_owned()));
        state.threads.extend(finder.spawn(move || shared.find_stuck(peer)));
    }

    /// Breaks the mesh as soon as a thread waits for a transfer with a process that has ended.
    fn find_stuck(self: &Arc<Self>, peer: usize) {
        let begin = Instant::now();
        let is_stuck = |active: &Active| {
            active.peer == peer && active.since.is_some_and(|since| since.max(begin).elapsed() >= ENDED_LIMIT)
        };
        let mut state = self.lock();
        while state.broken.is_none() && !state.is_closed {
            if state.active.values().any(is_stuck) {
                drop(state);
                return self.lose(peer, "");
            }
            let waited = self.changed.wait_timeout(state, ENDED_LIMIT / 8);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Removes the place in Gloo's source from a message.
fn without_place(message: &str) -> &str {
    message.strip_prefix('[').and_then(|rest| rest.split_once("] ")).map_or(message, |(_, message)| message)
}

impl Drop for Mesh {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.is_closed = true;
        state.watched.values().for_each(|started| started.abort());
        let threads = std::mem::take(&mut state.threads);
        drop(state);
        self.shared.changed.notify_all();
        for thread in self.watchers.drain(..).chain(threads) {
            // A thread that has panicked has ended.
            let _ = thread.join();
        }
    }
}
