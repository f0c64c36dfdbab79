//! The registry of transfers between clients of a process, which matches sent arrays with their receivers.

#![deny(unsafe_code)]

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use crate::core::sync::lock;
use crate::element_type::ElementType;
use crate::error::{Error, Result};

/// The identity of a transfer, which the sender and the receiver know.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// The platform, the sending and the receiving device, and the host's key.
    Numbered(&'static str, i32, i32, i64),
    /// The descriptor of the receiver.
    Described(Vec<u8>),
}

/// An array that has been sent.
pub(super) struct Message {
    pub(super) element_type: ElementType,
    pub(super) dims: Vec<i64>,
    /// Dense and row-major.
    pub(super) bytes: Vec<u8>,
}

pub(super) type Receiver = Box<dyn FnOnce(Result<Message>) + Send>;

/// The side of a transfer that was registered first, which waits for the other side.
enum Entry {
    Message(Result<Message>),
    Receiver(Receiver),
}

static ENTRIES: LazyLock<Mutex<HashMap<Key, Entry>>> = LazyLock::new(Mutex::default);

/// Passes an array, or its error, to its receiver: immediately, or when the receiver is registered.
pub(super) fn send(key: Key, message: Result<Message>) -> Result<()> {
    let mut entries = lock(&ENTRIES);
    match entries.remove(&key) {
        Some(Entry::Receiver(receiver)) => {
            drop(entries);
            receiver(message);
            Ok(())
        }
        Some(other) => {
            let error =
                Error::already_exists(format!("another array has already been sent with the key {key:?}"));
            entries.insert(key, other);
            Err(error)
        }
        None => {
            entries.insert(key, Entry::Message(message));
            Ok(())
        }
    }
}

/// Receives an array: immediately, or when it is sent.
pub(super) fn receive(key: Key, receiver: Receiver) {
    let mut entries = lock(&ENTRIES);
    match entries.remove(&key) {
        Some(Entry::Message(message)) => {
            drop(entries);
            receiver(message);
        }
        Some(other) => {
            let error = Error::already_exists(format!(
                "another buffer already receives the transfer with the key {key:?}"
            ));
            entries.insert(key, other);
            drop(entries);
            receiver(Err(error));
        }
        None => {
            entries.insert(key, Entry::Receiver(receiver));
        }
    }
}

/// Sets an error on the buffer that waits for a transfer. Returns whether there was one.
pub(super) fn cancel(key: &Key, error: Error) -> bool {
    let entry = {
        let mut entries = lock(&ENTRIES);
        match entries.get(key) {
            Some(Entry::Receiver(_)) => entries.remove(key),
            _ => None,
        }
    };
    let Some(Entry::Receiver(receiver)) = entry else { return false };
    receiver(Err(error));
    true
}
