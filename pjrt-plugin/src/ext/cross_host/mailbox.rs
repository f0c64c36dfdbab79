//! Where arrays on their way from one client to another of the same process meet their receivers.

#![deny(unsafe_code)]

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use crate::core::sync::lock;
use crate::element_type::ElementType;
use crate::error::{Error, Result};

/// What a transfer is known by on both sides.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// Platform, sending and receiving device, and the number that the host gave.
    Numbered(&'static str, i32, i32, i64),
    /// What the receiver described itself with.
    Described(Vec<u8>),
}

/// An array on its way.
pub(super) struct Message {
    pub(super) element_type: ElementType,
    pub(super) dims: Vec<i64>,
    /// Dense and row-major.
    pub(super) bytes: Vec<u8>,
}

pub(super) type Receiver = Box<dyn FnOnce(Result<Message>) + Send>;

/// Whichever side comes first waits here for the other.
enum Entry {
    Message(Result<Message>),
    Receiver(Receiver),
}

static ENTRIES: LazyLock<Mutex<HashMap<Key, Entry>>> = LazyLock::new(Mutex::default);

/// Hands an array, or the error that it became, to its receiver: now, or when there is one.
pub(super) fn send(key: Key, message: Result<Message>) -> Result<()> {
    let mut entries = lock(&ENTRIES);
    match entries.remove(&key) {
        Some(Entry::Receiver(receiver)) => {
            drop(entries);
            receiver(message);
            Ok(())
        }
        Some(other) => {
            let error = Error::already_exists(format!("two arrays are sent as the same transfer, {key:?}"));
            entries.insert(key, other);
            Err(error)
        }
        None => {
            entries.insert(key, Entry::Message(message));
            Ok(())
        }
    }
}

/// Takes an array: now, or when it is sent.
pub(super) fn receive(key: Key, receiver: Receiver) {
    let mut entries = lock(&ENTRIES);
    match entries.remove(&key) {
        Some(Entry::Message(message)) => {
            drop(entries);
            receiver(message);
        }
        Some(other) => {
            let error = Error::already_exists(format!("two buffers receive the same transfer, {key:?}"));
            entries.insert(key, other);
            drop(entries);
            receiver(Err(error));
        }
        None => {
            entries.insert(key, Entry::Receiver(receiver));
        }
    }
}

/// Puts an error into the buffer that waits for a transfer; whether there was one.
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
