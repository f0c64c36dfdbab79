//! The launches of a client whose outputs are pending.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, Weak};

use crate::core::launch::Unfilled;
use crate::core::sync::lock;
use crate::error::Error;

/// The launches whose outputs are not complete, the earliest first.
pub(crate) struct Unfinished<B>(Mutex<VecDeque<UnfinishedLaunch<B>>>);

struct UnfinishedLaunch<B> {
    id: i32,
    /// Indices in the client's devices.
    devices: Box<[usize]>,
    /// Held by the execution until it finishes.
    unfilled: Weak<Unfilled<B>>,
}

impl<B> Unfinished<B> {
    pub(crate) fn new() -> Self {
        Self(Mutex::default())
    }

    pub(crate) fn add(&self, id: i32, devices: &[usize], unfilled: &Arc<Unfilled<B>>) {
        let mut all = lock(&self.0);
        // Finished launches are removed from the front, so that the cost of a launch does not grow with their number.
        while all.front().is_some_and(|first| first.unfilled.strong_count() == 0) {
            all.pop_front();
        }
        all.push_back(UnfinishedLaunch { id, devices: devices.into(), unfilled: Arc::downgrade(unfilled) });
    }

    /// Sets an error on the outputs of the earliest unfinished launch with an id on a device. Returns whether there was one.
    pub(crate) fn poison(&self, id: i32, device: usize, error: &Error) -> bool {
        let of_id: Vec<Arc<Unfilled<B>>> = lock(&self.0)
            .iter()
            .filter(|launch| launch.id == id && launch.devices.contains(&device))
            .filter_map(|launch| launch.unfilled.upgrade())
            .collect();
        // No lock is held here, because this calls callbacks of the host.
        of_id.iter().any(|unfilled| unfilled.poison(error.clone()))
    }
}
