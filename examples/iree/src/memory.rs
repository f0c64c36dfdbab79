//! The memory of a device that arrays occupy.
//!
//! IREE's statistics do not contain the results of programs, which its drivers take from pools.

use std::fs;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pjrt_plugin::{Error, MemoryStats, Result};

/// The account of a device's memory.
pub(crate) struct Account {
    device: String,
    /// The bytes that arrays can occupy; `None` if the number is not known.
    limit: Option<i64>,
    stats: Mutex<MemoryStats>,
}

/// The memory of an array. It is free when this is dropped.
pub(crate) struct Reserved {
    account: Arc<Account>,
    size: i64,
}

impl Account {
    /// Creates the account of a device. If the limit is 0, it is the memory of the host for a device that uses this memory.
    pub(crate) fn new(device: String, limit: i64, is_host_memory: bool) -> Arc<Self> {
        let limit = match limit {
            0 if is_host_memory => host_memory(),
            0 => None,
            limit => Some(limit),
        };
        let stats = MemoryStats { bytes_limit: limit, ..MemoryStats::default() };
        Arc::new(Self { device, limit, stats: Mutex::new(stats) })
    }

    fn lock(&self) -> MutexGuard<'_, MemoryStats> {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves the memory of an array.
    ///
    /// # Errors
    ///
    /// Returns RESOURCE_EXHAUSTED if the array exceeds the limit.
    pub(crate) fn reserve(self: &Arc<Self>, size: usize) -> Result<Reserved> {
        let size = i64::try_from(size).unwrap_or(i64::MAX);
        let mut stats = self.lock();
        let in_use = stats.bytes_in_use.saturating_add(size);
        if let Some(limit) = self.limit.filter(|limit| in_use > *limit) {
            let (device, free) = (&self.device, limit - stats.bytes_in_use);
            return Err(Error::resource_exhausted(format!(
                "{device} has {free} of {limit} bytes free; an array needs {size}; delete arrays, or set memory_limit"
            )));
        }
        stats.bytes_in_use = in_use;
        stats.peak_bytes_in_use = stats.peak_bytes_in_use.max(Some(in_use));
        stats.num_allocs = Some(stats.num_allocs.unwrap_or(0) + 1);
        stats.largest_alloc_size = stats.largest_alloc_size.max(Some(size));
        Ok(Reserved { account: Arc::clone(self), size })
    }

    /// Returns the statistics.
    pub(crate) fn stats(&self) -> MemoryStats {
        *self.lock()
    }

    /// Resets the peak.
    pub(crate) fn clear_stats(&self) {
        let mut stats = self.lock();
        stats.peak_bytes_in_use = Some(stats.bytes_in_use);
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.account.lock().bytes_in_use -= self.size;
    }
}

/// Returns the size of the host's memory in bytes, if it is known.
fn host_memory() -> Option<i64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let kib = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.split_whitespace().next()?;
    kib.parse::<i64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pjrt_plugin::ErrorCode;

    #[test]
    fn an_array_occupies_memory_until_it_is_dropped() {
        let account = Account::new("chip".to_owned(), 100, true);
        let first = account.reserve(60).unwrap();
        let error = account.reserve(41).err().unwrap();
        assert_eq!(error.code(), ErrorCode::ResourceExhausted);
        assert!(error.message().starts_with("chip has 40 of 100 bytes free; an array needs 41; "));
        drop(first);
        let stats = account.stats();
        assert_eq!(
            (stats.bytes_in_use, stats.peak_bytes_in_use, stats.bytes_limit),
            (0, Some(60), Some(100))
        );
        account.clear_stats();
        assert_eq!(account.stats().peak_bytes_in_use, Some(0));
    }

    #[test]
    fn the_limit_of_a_processor_is_the_memory_of_the_host() {
        assert!(Account::new("chip".to_owned(), 0, true).stats().bytes_limit > Some(0));
        assert_eq!(Account::new("chip".to_owned(), 0, false).stats().bytes_limit, None);
    }
}
