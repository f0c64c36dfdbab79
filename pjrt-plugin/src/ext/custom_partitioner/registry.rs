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

pub(super) fn find(platform: &str, target: &str) -> Option<Arc<CustomPartitioner>> {
    lock(&PARTITIONERS).get(&key(platform, target)).cloned()
}

pub(super) fn register_batch_partitionable(platform: &str, target: String) {
    lock(&BATCH_PARTITIONABLE).insert((platform.to_lowercase(), target));
}

pub(super) fn is_batch_partitionable(platform: &str, target: &str) -> bool {
    lock(&BATCH_PARTITIONABLE).contains(&key(platform, target))
}
