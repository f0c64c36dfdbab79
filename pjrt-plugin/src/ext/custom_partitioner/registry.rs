//! What hosts register, for the whole process: partitioners by platform and target.

#![deny(unsafe_code)]

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock, Mutex};

use super::CustomPartitioner;
use crate::core::sync::lock;

/// A platform in lower case, and the target of custom calls.
type Key = (String, String);

static PARTITIONERS: LazyLock<Mutex<HashMap<Key, Arc<CustomPartitioner>>>> = LazyLock::new(Mutex::default);

static BATCH_PARTITIONABLE: LazyLock<Mutex<HashSet<Key>>> = LazyLock::new(Mutex::default);

fn key(platform: &str, target: &str) -> Key {
    (platform.to_lowercase(), target.to_owned())
}

/// Registers a partitioner, in the place of the one that was there.
pub(super) fn register(platform: &str, target: String, partitioner: CustomPartitioner) {
    let key = (platform.to_lowercase(), target);
    let replaced = lock(&PARTITIONERS).insert(key, Arc::new(partitioner));
    // The host frees it, which it may do with locks of its own, so not under this one.
    drop(replaced);
}

pub(super) fn register_batch_partitionable(platform: &str, target: String) {
    lock(&BATCH_PARTITIONABLE).insert((platform.to_lowercase(), target));
}

impl CustomPartitioner {
    /// The partitioner that a host registered for a platform and the target of custom calls; upper and lower case of the platform
    /// do not matter.
    #[must_use]
    pub fn find(platform: &str, target: &str) -> Option<Arc<Self>> {
        lock(&PARTITIONERS).get(&key(platform, target)).cloned()
    }

    /// Whether a host has registered that custom calls of a target may run on parts that are cut along their leading (batch)
    /// dimensions, without a partitioner: each partition calls the same handler with its part.
    #[must_use]
    pub fn is_batch_partitionable(platform: &str, target: &str) -> bool {
        lock(&BATCH_PARTITIONABLE).contains(&key(platform, target))
    }
}
