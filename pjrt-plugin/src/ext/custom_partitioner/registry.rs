//! The process-wide registry of partitioners, by platform and target.

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

/// Registers a partitioner, and replaces an existing one.
pub(super) fn register(platform: &str, target: String, partitioner: CustomPartitioner) {
    let key = (platform.to_lowercase(), target);
    let replaced = lock(&PARTITIONERS).insert(key, Arc::new(partitioner));
    // The host frees the replaced partitioner and may take its own locks, so this lock is not held here.
    drop(replaced);
}

pub(super) fn register_batch_partitionable(platform: &str, target: String) {
    lock(&BATCH_PARTITIONABLE).insert((platform.to_lowercase(), target));
}

impl CustomPartitioner {
    /// Returns the partitioner that a host has registered for a platform and a target of custom calls, or `None` if there is
    /// none. The name of the platform is not case-sensitive.
    #[must_use]
    pub fn find(platform: &str, target: &str) -> Option<Arc<Self>> {
        lock(&PARTITIONERS).get(&key(platform, target)).cloned()
    }

    /// Returns whether a host has registered that custom calls of a target may be split along their leading (batch)
    /// dimensions without a partitioner. Each partition then calls the same handler with its part.
    #[must_use]
    pub fn is_batch_partitionable(platform: &str, target: &str) -> bool {
        lock(&BATCH_PARTITIONABLE).contains(&key(platform, target))
    }
}
