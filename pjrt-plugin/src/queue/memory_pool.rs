//! The memory of a device with a queue.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{AddressSpace, Queue};
use crate::core::event::Event;
use crate::error::{Error, Result};
use crate::stats::MemoryStats;

/// The largest number of uses of memory that an error about exhausted memory lists.
const MOST_HOLDERS: usize = 4;

/// The memory of a device, as its driver allocates it: in the order in which commands are submitted to the queue of the device.
/// A clone refers to the same memory.
///
/// ```
/// use std::sync::Arc;
///
/// use pjrt_plugin::queue::{MemoryPool, Queue};
///
/// let queue = Arc::new(Queue::start("chip", vec![0_u8; 1024])?);
/// let pool = MemoryPool::new("chip 0", 1024, 32, &queue);
/// let weights = pool.allocate(1000, "weights")?;
/// let address = weights.address();
/// queue.submit(move |memory| { memory[address] = 1; Ok(()) });
/// // The command is submitted, so later commands can use the memory.
/// drop(weights);
/// let gradients = pool.allocate(500, "gradients")?;
/// assert_eq!((gradients.address(), pool.stats().bytes_in_use), (address, 512));
/// let error = pool.allocate(600, "momentum").unwrap_err();
/// assert!(error.message().contains("1 x gradients (512 bytes)"));
/// # Ok::<(), pjrt_plugin::Error>(())
/// ```
#[derive(Clone)]
pub struct MemoryPool(Arc<Pool>);

struct Pool {
    name: String,
    /// Returns the event of all commands that were submitted so far.
    submitted: Box<dyn Fn() -> Event + Send + Sync>,
    state: Mutex<State>,
}

struct State {
    space: AddressSpace,
    peak: usize,
    allocations: i64,
    largest: usize,
    /// The descriptions of the blocks' uses, by address.
    holders: BTreeMap<usize, Arc<str>>,
    /// Ranges that were freed before the commands that use them were executed, with the event of the last of these commands.
    freed: Vec<(Range<usize>, Event)>,
}

/// A block of a device's memory. Dropping it frees the memory for the commands that are submitted from now on, so submit the
/// last command that uses it first. A command of a queue whose commands the pool does not order owns the block until it was
/// executed: see [`MemoryPool::new`].
pub struct Block {
    pool: Arc<Pool>,
    address: usize,
    size: usize,
    free_since: Event,
}

impl MemoryPool {
    /// Creates the pool of a memory whose addresses are multiples of `alignment`. `name` denotes the device in errors. `queue` executes the
    /// programs of the device.
    ///
    /// The pool orders the commands of `queue`, which contain addresses. It does not know commands of other queues, such as
    /// those of a copy engine: each of them owns the blocks that it reads or writes until it was executed, for example as an
    /// `Arc<Block>` or as a share of the buffer, and waits for [`Block::free_since`] before it writes. Otherwise the pool gives
    /// the memory of a deleted array to a program while the command still uses it. [`shared`](Self::shared) creates a pool
    /// that orders the commands of several queues.
    pub fn new<D: Send + 'static>(
        name: impl Into<String>,
        size: usize,
        alignment: usize,
        queue: &Arc<Queue<D>>,
    ) -> Self {
        let queue = Arc::clone(queue);
        Self::shared(name, size, alignment, move || queue.last())
    }

    /// Creates the pool of a memory that the commands of several queues use, or those of a driver's own queue. `submitted`
    /// returns an event that completes when all commands that were submitted so far to any of these queues were executed. Its error is
    /// ignored. Commands of these queues contain addresses, and own no blocks.
    ///
    /// The queues have no order among each other, so every command that is the first to write to a block waits for
    /// [`Block::free_since`], and a command that overwrites a donated array waits for [`submitted`](Self::submitted). The
    /// [module](super#several-queues) has an example.
    pub fn shared(
        name: impl Into<String>,
        size: usize,
        alignment: usize,
        submitted: impl Fn() -> Event + Send + Sync + 'static,
    ) -> Self {
        let space = AddressSpace::new(size, alignment);
        let (holders, freed) = (BTreeMap::new(), Vec::new());
        let state = State { space, peak: 0, allocations: 0, largest: 0, holders, freed };
        Self(Arc::new(Pool { name: name.into(), submitted: Box::new(submitted), state: Mutex::new(state) }))
    }

    /// Allocates a block. `holder` describes its use in errors.
    ///
    /// # Errors
    ///
    /// Returns RESOURCE_EXHAUSTED if no free range is large enough. The message lists the largest uses of the memory, and the SDK
    /// adds the host's buffers as a hint.
    pub fn allocate(&self, size: usize, holder: impl Into<Arc<str>>) -> Result<Block> {
        let (pool, holder) = (Arc::clone(&self.0), holder.into());
        let mut state = pool.state();
        let Some(address) = state.space.allocate(size) else {
            let (space, name) = (&state.space, &pool.name);
            return Err(Error::resource_exhausted(format!(
                "{name} cannot allocate {holder} of {size} bytes: {} of its {} bytes are in use, and the largest free block has \
                 {} bytes; in use: {}",
                space.in_use(),
                space.size(),
                space.largest_gap(),
                state.describe_holders()
            )));
        };
        state.holders.insert(address, holder);
        state.peak = state.peak.max(state.space.in_use());
        state.allocations += 1;
        state.largest = state.largest.max(size);
        let range = address..address + state.space.size_at(address);
        state.freed.retain(|(_, used)| !used.is_ready());
        let overlaps =
            state.freed.iter().filter(|(freed, _)| freed.start < range.end && range.start < freed.end);
        let free_since = Event::all(overlaps.map(|(_, used)| used.clone()).collect()).without_error();
        drop(state);
        Ok(Block { pool, address, size, free_since })
    }

    /// Returns an event that completes, without an error, when all commands that were submitted so far were executed. With several
    /// queues, a command that writes results to a donated array is submitted after this event, because commands of other
    /// queues may still read the array.
    #[must_use]
    pub fn submitted(&self) -> Event {
        (self.0.submitted)().without_error()
    }

    /// Returns the statistics of the memory, for [`PjrtDevice::memory_stats`](crate::PjrtDevice::memory_stats).
    #[must_use]
    pub fn stats(&self) -> MemoryStats {
        let state = self.0.state();
        let bytes = |n: usize| n as i64;
        MemoryStats {
            bytes_in_use: bytes(state.space.in_use()),
            peak_bytes_in_use: Some(bytes(state.peak)),
            num_allocs: Some(state.allocations),
            largest_alloc_size: Some(bytes(state.largest)),
            bytes_limit: Some(bytes(state.space.size())),
            largest_free_block_bytes: Some(bytes(state.space.largest_gap())),
            ..MemoryStats::default()
        }
    }

    /// Resets the peak of the statistics to the memory in use, for
    /// [`PjrtDevice::clear_memory_stats`](crate::PjrtDevice::clear_memory_stats).
    pub fn clear_stats(&self) {
        let mut state = self.0.state();
        state.peak = state.space.in_use();
    }
}

impl Pool {
    fn state(&self) -> MutexGuard<'_, State> {
        // Every change leaves the state consistent, so a panic in another thread does not matter.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Describes the uses of the memory, in descending order of size: `2 x activations (64 bytes), ...`.
    fn describe_holders(&self) -> String {
        let mut by_holder: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for (address, holder) in &self.holders {
            let (count, bytes) = by_holder.entry(holder).or_default();
            *count += 1;
            *bytes += self.space.size_at(*address);
        }
        let mut holders: Vec<_> = by_holder.into_iter().collect();
        holders.sort_by_key(|(_, (_, bytes))| std::cmp::Reverse(*bytes));
        let others = holders.split_off(holders.len().min(MOST_HOLDERS));
        let mut texts: Vec<String> = holders
            .into_iter()
            .map(|(holder, (count, bytes))| format!("{count} x {holder} ({bytes} bytes)"))
            .collect();
        if !others.is_empty() {
            let bytes: usize = others.iter().map(|(_, (_, bytes))| bytes).sum();
            texts.push(format!("others ({bytes} bytes)"));
        }
        if texts.is_empty() { "nothing".to_owned() } else { texts.join(", ") }
    }
}

impl Block {
    /// Returns the address of the first byte.
    #[must_use]
    pub fn address(&self) -> usize {
        self.address
    }

    /// Returns the size in bytes that was requested.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns an event that completes, without an error, when the commands that used the memory before were executed. If the pool
    /// was created with one queue, the commands of that queue come later anyway. The first command of another queue that writes
    /// to the block, such as one of a copy engine, is [submitted after](Queue::submit_after) this event.
    #[must_use]
    pub fn free_since(&self) -> Event {
        self.free_since.clone()
    }

    /// Changes the description of the block's use.
    pub fn set_holder(&self, holder: impl Into<Arc<str>>) {
        self.pool.state().holders.insert(self.address, holder.into());
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let used = Event::all(vec![(self.pool.submitted)(), self.free_since.clone()]);
        let mut state = self.pool.state();
        state.holders.remove(&self.address);
        if let Some(range) = state.space.free(self.address)
            && !used.is_ready()
        {
            state.freed.push((range, used));
        }
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Block({} bytes at {:#x})", self.size, self.address)
    }
}

impl fmt::Debug for MemoryPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryPool({})", self.0.name)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::error::ErrorCode;

    fn pool() -> (Arc<Queue<()>>, MemoryPool) {
        let queue = Arc::new(Queue::start("test", ()).unwrap());
        let pool = MemoryPool::new("device 3", 1024, 32, &queue);
        (queue, pool)
    }

    #[test]
    fn another_queue_waits_for_the_commands_that_used_the_memory_before() {
        let (queue, pool) = pool();
        let [used, other] = ["used", "other"].map(|holder| pool.allocate(512, holder).unwrap());
        assert!(used.free_since().is_ready());
        drop(other);
        let (go, gate) = channel::<()>();
        let command = queue.submit(move |()| gate.recv().map_err(|_| Error::internal("a failed command")));
        drop(used);
        let again = pool.allocate(512, "first").unwrap();
        let unused = pool.allocate(512, "second").unwrap();
        assert!(!again.free_since().is_ready() && unused.free_since().is_ready());
        // A block that is freed before its predecessor's command has run waits for that command too.
        drop(again);
        let again = pool.allocate(512, "third").unwrap();
        assert!(!again.free_since().is_ready());
        drop(go);
        command.wait().unwrap_err();
        again.free_since().wait().unwrap();
    }

    #[test]
    fn memory_of_several_queues_is_free_when_the_commands_of_all_of_them_are_executed() {
        let queues = [0, 1].map(|_| Arc::new(Queue::start("test", ()).unwrap()));
        let all = queues.clone();
        let last = move || Event::all(all.iter().map(|queue| queue.last()).collect());
        let pool = MemoryPool::shared("device", 512, 32, last);
        let used = pool.allocate(512, "used").unwrap();
        let (go, gates): (Vec<_>, Vec<_>) = [0, 1].map(|_| channel::<()>()).into_iter().unzip();
        let wait = |(queue, gate): (&Arc<Queue<()>>, std::sync::mpsc::Receiver<()>)| {
            queue.submit(move |()| gate.recv().map_err(|_| Error::internal("a failed command")))
        };
        let commands: Vec<Event> = queues.iter().zip(gates).map(wait).collect();
        let (submitted, _) = (pool.submitted(), drop(used));
        let again = pool.allocate(512, "again").unwrap();
        for (go, command) in go.into_iter().zip(commands) {
            assert!(!again.free_since().is_ready() && !submitted.is_ready());
            drop(go);
            command.wait().unwrap_err();
        }
        again.free_since().wait().unwrap();
        submitted.wait().unwrap();
    }

    #[test]
    fn out_of_memory_lists_the_largest_uses() {
        let (_queue, pool) = pool();
        let sizes = [(32, "a"), (64, "b"), (32, "a"), (512, "c"), (128, "d"), (1, "e"), (1, "f")];
        let blocks: Vec<Block> =
            sizes.iter().map(|(size, holder)| pool.allocate(*size, *holder).unwrap()).collect();
        let error = pool.allocate(500, "gradients").unwrap_err();
        assert_eq!((error.code(), error.hint()), (ErrorCode::ResourceExhausted, None));
        for part in [
            "device 3 cannot allocate gradients of 500 bytes: 832 of its 1024 bytes",
            "1 x c (512 bytes), 1 x d (128 bytes), 2 x a (64 bytes), 1 x b (64 bytes), others (64 bytes)",
        ] {
            assert!(error.message().contains(part), "{part}: {error}");
        }
        drop(blocks);
        assert_eq!((pool.stats().bytes_in_use, pool.stats().peak_bytes_in_use), (0, Some(832)));
        pool.clear_stats();
        assert_eq!(pool.stats().peak_bytes_in_use, Some(0));
        assert_eq!(pool.stats().num_allocs, Some(7));
    }
}
