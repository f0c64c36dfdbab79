//! Computations of several processes: the exchange of data before the first program runs.
//!
//! A host that runs one computation in several processes passes a [`KeyValueStore`] to each client. A client that declares
//! [`MULTI_PROCESS`](crate::PjrtClient::MULTI_PROCESS) creates a [`Processes`] from its [`ClientConfig`]. It exchanges the
//! devices of all processes ([`Processes::devices`]), and then whatever its transport needs to connect them, such as network
//! addresses ([`Processes::exchange`]). The store is for small values before and between programs; arrays of programs need a
//! transport of the device's own.
//!
//! ```
//! # use std::collections::HashMap;
//! # use std::sync::{Condvar, Mutex};
//! # use std::time::Duration;
//! # use pjrt_plugin::{Error, KeyValueBackend, KeyValueStore, Options};
//! # #[derive(Default)]
//! # struct InMemory(Mutex<HashMap<String, Vec<u8>>>, Condvar);
//! # impl KeyValueBackend for InMemory {
//! #     fn get(&self, key: &str, timeout: Duration) -> Result<Vec<u8>> {
//! #         let (values, _) = self.1.wait_timeout_while(self.0.lock().unwrap(), timeout, |it| !it.contains_key(key)).unwrap();
//! #         values.get(key).cloned().ok_or_else(|| Error::deadline_exceeded("too late"))
//! #     }
//! #     fn try_get(&self, key: &str) -> Result<Option<Vec<u8>>> { Ok(self.0.lock().unwrap().get(key).cloned()) }
//! #     fn put(&self, key: &str, value: &[u8]) -> Result<()> {
//! #         self.0.lock().unwrap().insert(key.to_owned(), value.to_vec());
//! #         self.1.notify_all();
//! #         Ok(())
//! #     }
//! # }
//! # let store = KeyValueStore::new(InMemory::default());
//! # let config = |node_id| {
//! #     let mut config = ClientConfig::new(Options::new(&[], vec![]).unwrap());
//! #     (config.node_id, config.num_nodes, config.kv_store) = (node_id, 2, Some(store.clone()));
//! #     config
//! # };
//! use pjrt_plugin::distributed::Processes;
//! use pjrt_plugin::{ClientConfig, DeviceDescription, Result};
//!
//! /// Returns the devices of all processes, and the address of each process.
//! fn connect(config: &ClientConfig) -> Result<(Vec<DeviceDescription>, Vec<Vec<u8>>)> {
//!     let local = [DeviceDescription::new(0, "chip"), DeviceDescription::new(1, "chip")];
//!     let Some(processes) = Processes::join(config, "chips")? else { return Ok((local.to_vec(), vec![])) };
//!     let devices = processes.devices(&local)?;
//!     let address = format!("10.0.0.{}:8471", processes.index());
//!     Ok((devices, processes.exchange("addresses", address.as_bytes())?))
//! }
//!
//! // The host starts two processes, which are threads here.
//! std::thread::scope(|threads| {
//!     let (first, second) = (config(0), config(1));
//!     let other = threads.spawn(move || connect(&second).unwrap());
//!     let (devices, addresses) = connect(&first).unwrap();
//!     assert_eq!((devices.clone(), addresses.clone()), other.join().unwrap());
//!     assert_eq!(devices[2].id(), 2);
//!     assert_eq!(devices[2].process_index(), 1);
//!     assert_eq!(addresses[1], b"10.0.0.1:8471");
//! });
//! ```

use std::time::{Duration, Instant};

use crate::client::ClientConfig;
use crate::device::{DeviceDescription, DeviceId};
use crate::error::{Error, ErrorCode, Result};
use crate::kv_store::{KeyValueBackend, KeyValueStore};
use crate::topology::Topology;

/// The time that a process waits for the others in an exchange, unless [`Processes::with_timeout`] sets another one.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);

/// The interval at which a process that waits for others looks whether one of them has failed.
const FAILURE_INTERVAL: Duration = Duration::from_millis(500);

/// Returns the key of the error of the first process that cannot create its client.
fn failure_key(generation: u64) -> String {
    format!("pjrt-plugin/failure/{generation}")
}

/// Tells the other processes that this one cannot create its client. Those that wait in an exchange fail with the error. An error
/// of the store, such as that of a process that tells this second, has no consequence.
pub(crate) fn report_failure(store: &dyn KeyValueBackend, index: i64, generation: u64, error: &Error) {
    let text = format!("process {index} cannot create its client: {error}");
    let _ = store.put(&failure_key(generation), text.as_bytes());
}

/// The size in bytes of the pieces in which the store receives a message. The stores of hosts limit the size of a value.
const PIECE: usize = 1 << 20;

/// The processes of a computation, as one of them sees them. See the [example](self) of the module.
#[derive(Debug, Clone)]
pub struct Processes {
    store: KeyValueStore,
    index: usize,
    count: usize,
    prefix: String,
    /// The number of clients that the host created in this process before this one.
    generation: u64,
    timeout: Duration,
}

impl Processes {
    /// Joins the processes of a client's configuration; `None` if there is one process.
    ///
    /// The keys begin with `job`, which is the same on all processes and in no other use of the store, and with the number of
    /// clients that the host created in this process before this one. A client that is created again, for example after
    /// `jax.clear_backends`, therefore does not read the values of the first one.
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if the host passed no store, or INTERNAL if its numbers are out of range.
    pub fn join(config: &ClientConfig, job: &str) -> Result<Option<Self>> {
        if config.num_nodes <= 1 {
            return Ok(None);
        }
        let number = |value: i64| usize::try_from(value).map_err(|error| Error::internal(error.to_string()));
        let store = config.kv_store.clone().ok_or_else(|| {
            Error::invalid_argument(format!(
                "the host asked for process {} of {}, but passed no key-value store",
                config.node_id, config.num_nodes
            ))
        })?;
        Ok(Some(Self {
            store,
            index: number(config.node_id)?,
            count: number(config.num_nodes)?,
            prefix: format!("{job}/{}", config.generation),
            generation: config.generation,
            timeout: DEFAULT_TIMEOUT,
        }))
    }

    /// Sets the time that this process waits for the others in an exchange.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Returns the index of this process.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the number of processes.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the store, for values other than those of exchanges.
    #[must_use]
    pub fn store(&self) -> &KeyValueStore {
        &self.store
    }

    /// Returns the key of a value, which no other client of this or another job has.
    #[must_use]
    pub fn key(&self, name: &str) -> String {
        format!("{}/{name}", self.prefix)
    }

    /// Passes a value to all processes, and returns those of all processes in the order of their indices. Each process calls this
    /// with the same name, which no other exchange of the client has.
    ///
    /// # Errors
    ///
    /// Returns DEADLINE_EXCEEDED, with the process that is missing, if a process does not come in time; ALREADY_EXISTS if the
    /// name has been used; or any other error of the store.
    pub fn exchange(&self, name: &str, value: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.store.put(&self.key(&format!("{name}/{}", self.index)), value)?;
        self.collect(name, |from| format!("{name}/{from}"), value)
    }

    /// Passes a value to each process, and returns the values that the processes passed to this one, in the order of their
    /// indices. `values` has one value for each process. Otherwise, this is the same as [`exchange`](Self::exchange).
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if the number of values is wrong, and the same errors as [`exchange`](Self::exchange).
    pub fn exchange_each(&self, name: &str, values: &[Vec<u8>]) -> Result<Vec<Vec<u8>>> {
        if values.len() != self.count {
            return Err(Error::invalid_argument(format!(
                "{} values were passed to '{name}'; expected one for each of the {} processes",
                values.len(),
                self.count
            )));
        }
        for (to, value) in values.iter().enumerate().filter(|(to, _)| *to != self.index) {
            self.store.put(&self.key(&format!("{name}/{}/{to}", self.index)), value)?;
        }
        self.collect(name, |from| format!("{name}/{from}/{}", self.index), &values[self.index])
    }

    /// Sends a message to a process, which receives it with [`receive`](Self::receive) and the same name. No exchange and no
    /// other message of this process to that one has the name. The call does not wait for the receiver.
    ///
    /// The store keeps every message until the job ends, in one process for all. Messages are therefore for what is small or
    /// rare: addresses, tests, and the arrays of examples. A plugin for real devices uses their own network, or a library for it.
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if there is no such process, ALREADY_EXISTS if the name has been used, or any other error of the
    /// store.
    pub fn send(&self, to: usize, name: &str, bytes: &[u8]) -> Result<()> {
        let key = self.message(name, self.index, to)?;
        self.store.put(&key, bytes.len().to_string().as_bytes())?;
        for (number, piece) in bytes.chunks(PIECE).enumerate() {
            self.store.put(&format!("{key}/{number}"), piece)?;
        }
        Ok(())
    }

    /// Receives a message of a process, which sends it with [`send`](Self::send) and the same name. Each message is received
    /// once.
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if there is no such process, DEADLINE_EXCEEDED with its index if the message does not come in
    /// time ([`with_timeout`](Self::with_timeout)), or any other error of the store, for example because the host's service has
    /// ended.
    pub fn receive(&self, from: usize, name: &str) -> Result<Vec<u8>> {
        let key = self.message(name, from, self.index)?;
        let get = |key: &str| self.get(key, self.timeout).map_err(|error| self.late(name, from, error));
        let size = String::from_utf8(get(&key)?).ok().and_then(|size| size.parse().ok());
        let size: usize =
            size.ok_or_else(|| Error::data_loss(format!("the value of '{key}' is not a size")))?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(size).map_err(|error| Error::resource_exhausted(error.to_string()))?;
        for number in 0..size.div_ceil(PIECE) {
            bytes.extend_from_slice(&get(&format!("{key}/{number}"))?);
        }
        if bytes.len() != size {
            let found = bytes.len();
            return Err(Error::data_loss(format!("the message '{key}' has {found} bytes; expected {size}")));
        }
        Ok(bytes)
    }

    /// Returns the key of a message between two processes.
    fn message(&self, name: &str, from: usize, to: usize) -> Result<String> {
        if from.max(to) >= self.count {
            return Err(Error::invalid_argument(format!(
                "there is no process {}; expected one of 0..{}",
                from.max(to),
                self.count
            )));
        }
        Ok(self.key(&format!("{name}/{from}/{to}")))
    }

    /// Waits until all processes have called this with the same name.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`exchange`](Self::exchange).
    pub fn barrier(&self, name: &str) -> Result<()> {
        self.exchange(name, b"").map(drop)
    }

    /// Checks that all processes have the same value, such as a version or the fingerprint of a configuration. `what` describes
    /// the value in the error.
    ///
    /// # Errors
    ///
    /// Returns FAILED_PRECONDITION, with the processes that differ, if the values are not equal, and the same errors as
    /// [`exchange`](Self::exchange).
    pub fn agree(&self, name: &str, what: &str, value: &str) -> Result<()> {
        let values = self.exchange(name, value.as_bytes())?;
        let Some(other) = values.iter().position(|other| other != value.as_bytes()) else { return Ok(()) };
        Err(Error::failed_precondition(format!(
            "the processes of the computation differ in {what}: process {} has '{value}', process {other} has '{}'",
            self.index,
            String::from_utf8_lossy(&values[other])
        )))
    }

    /// Exchanges the devices of all processes, and returns all of them, ordered by process and within a process as they were
    /// passed. Every process receives the same list.
    ///
    /// A device's id is its position in the list, and its process index is that of its process. If the id is part of the
    /// description's texts, set these again ([`DeviceDescription::with_display`]).
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`exchange`](Self::exchange).
    pub fn devices(&self, local: &[DeviceDescription]) -> Result<Vec<DeviceDescription>> {
        let own = Topology::new("", "", local.to_vec()).serialize();
        let mut all = Vec::new();
        for (process, bytes) in self.exchange("devices", &own)?.iter().enumerate() {
            let topology = Topology::deserialize(bytes)
                .map_err(|error| error.context(format!("the devices of process {process}")))?;
            all.extend(topology.devices().iter().map(|device| (process, device.clone())));
        }
        let number = |value: usize| i32::try_from(value).map_err(|error| Error::internal(error.to_string()));
        let numbered = all.into_iter().enumerate().map(|(id, (process, device))| {
            let id: DeviceId = number(id)?;
            Ok(device.with_id(id).with_process_index(number(process)?))
        });
        numbered.collect()
    }

    /// Waits for the value of a key, which another process sets, unless the creation of a client fails on a process.
    fn get(&self, key: &str, timeout: Duration) -> Result<Vec<u8>> {
        let begin = Instant::now();
        loop {
            let left = timeout.saturating_sub(begin.elapsed());
            let value = self.store.get(key, left.min(FAILURE_INTERVAL));
            let Err(error) = &value else { return value };
            if error.code() != ErrorCode::DeadlineExceeded {
                return value;
            }
            // A host that is older than C API 0.61 cannot look.
            if let Ok(Some(failure)) = self.store.try_get(&failure_key(self.generation)) {
                return Err(Error::unavailable(String::from_utf8_lossy(&failure)));
            }
            if left <= FAILURE_INTERVAL {
                return value;
            }
        }
    }

    /// Collects the values of all processes. The time limit is for all of them together.
    fn collect(&self, name: &str, key: impl Fn(usize) -> String, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        let begin = Instant::now();
        let value = |from: usize| {
            if from == self.index {
                return Ok(own.to_vec());
            }
            // A value that is already there is read even if the time is over.
            let left = self.timeout.saturating_sub(begin.elapsed()).max(Duration::from_millis(1));
            self.get(&self.key(&key(from)), left).map_err(|error| self.late(name, from, error))
        };
        (0..self.count).map(value).collect()
    }

    fn late(&self, name: &str, from: usize, error: Error) -> Error {
        if error.code() != ErrorCode::DeadlineExceeded {
            return error.context(format!("'{name}' of process {from}"));
        }
        Error::deadline_exceeded(format!(
            "process {from} of {} did not reach the exchange '{name}' within {:?} of process {}: {}",
            self.count,
            self.timeout,
            self.index,
            error.message()
        ))
        .with_hint(
            "look at the output of that process: it has ended, waits elsewhere, or has created fewer clients",
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::{Condvar, Mutex};
    use std::thread;

    use super::*;
    use crate::options::Options;

    /// A store in which keys cannot be overwritten, as in JAX's.
    #[derive(Default)]
    struct InMemory(Mutex<HashMap<String, Vec<u8>>>, Condvar);

    impl KeyValueBackend for InMemory {
        fn get(&self, key: &str, timeout: Duration) -> Result<Vec<u8>> {
            let values = self.0.lock().unwrap();
            let (values, _) =
                self.1.wait_timeout_while(values, timeout, |values| !values.contains_key(key)).unwrap();
            values.get(key).cloned().ok_or_else(|| Error::deadline_exceeded(format!("no value of {key}")))
        }

        fn try_get(&self, key: &str) -> Result<Option<Vec<u8>>> {
            Ok(self.0.lock().unwrap().get(key).cloned())
        }

        fn put(&self, key: &str, value: &[u8]) -> Result<()> {
            let before = self.0.lock().unwrap().insert(key.to_owned(), value.to_vec());
            self.1.notify_all();
            before.map_or(Ok(()), |_| Err(Error::already_exists(format!("the key '{key}' has a value"))))
        }
    }

    fn config(store: &KeyValueStore, node_id: i64, num_nodes: i64) -> ClientConfig {
        let mut config = ClientConfig::new(Options::new(&[], vec![]).unwrap());
        (config.node_id, config.num_nodes, config.kv_store) = (node_id, num_nodes, Some(store.clone()));
        config
    }

    /// Runs a function on a thread for each process, and returns the results in the order of the processes.
    fn on_each<R: Send>(count: i64, run: impl Fn(Processes) -> R + Sync) -> Vec<R> {
        let store = KeyValueStore::new(InMemory::default());
        thread::scope(|threads| {
            let start = |index| {
                let processes = Processes::join(&config(&store, index, count), "job").unwrap().unwrap();
                let processes = processes.with_timeout(Duration::from_millis(300));
                let run = &run;
                threads.spawn(move || run(processes))
            };
            let started: Vec<_> = (0..count).map(start).collect();
            started.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    #[test]
    fn one_process_has_nothing_to_exchange() {
        let config = ClientConfig::new(Options::new(&[], vec![]).unwrap());
        assert!(Processes::join(&config, "job").unwrap().is_none());
    }

    #[test]
    fn every_process_receives_the_same_devices() {
        let lists = on_each(3, |processes| {
            let local: Vec<_> = (0..=processes.index() as i32)
                .map(|slot| DeviceDescription::new(slot, "chip").with_attribute("slot", i64::from(slot)))
                .collect();
            processes.devices(&local).unwrap()
        });
        assert!(lists.iter().all(|list| *list == lists[0]));
        let places: Vec<_> = lists[0].iter().map(|device| (device.id(), device.process_index())).collect();
        assert_eq!(places, [(0, 0), (1, 1), (2, 1), (3, 2), (4, 2), (5, 2)]);
        assert_eq!(lists[0][4].attributes(), [("slot".to_owned(), 1_i64.into())]);
        assert_eq!(lists[0][4].display(), "chip(id=4)");
    }

    #[test]
    fn each_process_receives_the_values_that_are_for_it() {
        let received = on_each(3, |processes| {
            let own = processes.index() as u8;
            let values: Vec<_> = (0..3).map(|to| vec![own, to]).collect();
            processes.exchange_each("pairs", &values).unwrap()
        });
        for (to, values) in received.iter().enumerate() {
            assert_eq!(*values, [0, 1, 2].map(|from: u8| vec![from, to as u8]));
        }
    }

    #[test]
    fn messages_of_every_size_arrive_at_the_process_that_they_are_for() {
        let sizes = [0, 1, PIECE, 2 * PIECE + 3];
        let received = on_each(3, |processes| {
            let (own, next) = (processes.index(), (processes.index() + 1) % 3);
            for size in sizes {
                processes.send(next, &format!("{size}"), &vec![own as u8; size]).unwrap();
            }
            sizes.map(|size| processes.receive((own + 2) % 3, &format!("{size}")).unwrap())
        });
        for (own, messages) in received.iter().enumerate() {
            assert_eq!(*messages, sizes.map(|size| vec![((own + 2) % 3) as u8; size]));
        }
    }

    #[test]
    fn a_message_that_is_not_sent_names_the_sender_and_another_process_does_not_exist() {
        on_each(2, |processes| {
            let error = processes.receive(1 - processes.index(), "weights").unwrap_err();
            assert_eq!(error.code(), ErrorCode::DeadlineExceeded);
            let sender = format!("process {} of 2", 1 - processes.index());
            assert!(error.message().contains(&sender) && error.message().contains("weights"), "{error}");
            let error = processes.send(2, "weights", b"").unwrap_err();
            assert!(error.message().contains("no process 2"), "{error}");
        });
    }

    #[test]
    fn a_process_that_does_not_come_is_named() {
        let results = on_each(3, |processes| match processes.index() {
            2 => Ok(()),
            _ => processes.barrier("start"),
        });
        for result in &results[..2] {
            let error = result.as_ref().unwrap_err();
            assert_eq!(error.code(), ErrorCode::DeadlineExceeded);
            assert!(error.message().contains("process 2 of 3 did not reach the exchange 'start'"), "{error}");
        }
    }

    #[test]
    fn the_error_of_a_process_that_cannot_create_its_client_reaches_those_that_wait() {
        let results = on_each(3, |processes| {
            let processes = processes.with_timeout(Duration::from_secs(60));
            if processes.index() == 2 {
                let error = Error::not_found("there is no library");
                report_failure(&*processes.store().0, 2, 0, &error);
                return Ok(());
            }
            processes.barrier("start")
        });
        for result in &results[..2] {
            let error = result.as_ref().unwrap_err();
            assert_eq!(error.code(), ErrorCode::Unavailable);
            assert!(
                error.message().contains("process 2 cannot create its client: there is no library"),
                "{error}"
            );
        }
    }

    #[test]
    fn values_that_differ_are_found_on_every_process() {
        let results = on_each(2, |processes| {
            let version = ["1.0", "1.1"][processes.index()];
            processes.agree("version", "the version of the compiler", version)
        });
        for result in results {
            let error = result.unwrap_err();
            assert_eq!(error.code(), ErrorCode::FailedPrecondition);
            for part in ["the version of the compiler", "'1.0'", "'1.1'"] {
                assert!(error.message().contains(part), "{error}");
            }
        }
        on_each(2, |processes| processes.agree("version", "the version", "1").unwrap());
    }

    #[test]
    fn clients_of_other_jobs_and_later_clients_have_other_keys() {
        let store = KeyValueStore::new(InMemory::default());
        let mut config = config(&store, 0, 2);
        let key = |config: &ClientConfig, job| Processes::join(config, job).unwrap().unwrap().key("name");
        let (first, other_job) = (key(&config, "a"), key(&config, "b"));
        config.generation = 1;
        let later = key(&config, "a");
        assert!(first != other_job && first != later);
    }

    #[test]
    fn a_host_without_a_store_is_an_error() {
        let store = KeyValueStore::new(InMemory::default());
        let mut config = config(&store, 1, 2);
        config.kv_store = None;
        let error = Processes::join(&config, "job").unwrap_err();
        assert!(error.message().contains("process 1 of 2"), "{error}");
    }
}
