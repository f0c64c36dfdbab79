//! The threads that kernels run on.
//!
//! One job runs at a time: the caller publishes it, works on it itself, and helpers that are awake join in. Chunks come
//! from a shared counter, so a helper that comes late or is held up by the system costs nothing but its help. Helpers
//! spin for a short while after a job, because the next one usually follows at once, and then sleep.

use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a helper looks for the next job before it sleeps.
const SPIN: Duration = Duration::from_micros(40);
/// Work below this is not worth waking a sleeping helper for.
const WAKE_NS: f64 = 40_000.0;
/// Work below this is not worth sharing even with a helper that is awake.
const SHARE_NS: f64 = 3_000.0;
/// What a chunk costs if the caller of [`Pool::run`] does not say.
const DEFAULT_CHUNK_NS: f64 = 8_000.0;

/// Runs the chunks of one kernel, on the calling thread and perhaps on others.
///
/// A kernel cuts its work into chunks by the size of the data alone, never by the number of threads, so that results
/// do not depend on the machine.
///
/// Threads start at the first job that is worth sharing, and end when the pool is dropped. Several threads may call at
/// once: while one job is shared, other callers do theirs alone. A call from within a chunk runs on the thread it is
/// made on, as does everything in a process forked from the one that made the pool.
pub struct Pool {
    threads: usize,
    helpers: OnceLock<Helpers>,
}

/// The started threads.
struct Helpers {
    shared: Arc<Shared>,
    handles: Vec<JoinHandle<()>>,
    /// [`FORKS`] when they were started.
    forks: u32,
}

/// A value on cache lines of its own: neighbours that other threads write cost hundreds of nanoseconds.
#[repr(align(128))]
struct Padded<T>(T);

/// What `work` of the current job is.
type Work = *const (dyn Fn(usize) + Sync + 'static);

struct Job {
    work: Work,
    chunks: usize,
}

struct Shared {
    /// Counts jobs; helpers wait for it to change.
    epoch: Padded<AtomicU64>,
    /// [`OPEN`] while the job may be joined, plus the number of helpers inside.
    gate: Padded<AtomicUsize>,
    /// The next chunk to do.
    next: Padded<AtomicUsize>,
    /// Held by the caller whose job is shared.
    busy: Padded<AtomicBool>,
    /// Number of helpers asleep, or about to be.
    sleepers: Padded<AtomicUsize>,
    stop: AtomicBool,
    job: UnsafeCell<Job>,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    lock: Mutex<()>,
    wake: Condvar,
}

/// Set in [`Shared::gate`] while a job may be joined.
const OPEN: usize = 1 << (usize::BITS - 1);

// SAFETY: `job` is written only by the holder of `busy` while the gate is closed and nobody is inside, and read only by
// helpers inside an open gate; opening (Release) and joining (Acquire) order the two. Everything else is atomic or locked.
// The work that it points to is `Sync`, so any thread may call it.
unsafe impl Sync for Shared {}
// SAFETY: as above; nothing in it belongs to one thread.
unsafe impl Send for Shared {}

/// Times that this process has been forked off another since the first pool started.
static FORKS: AtomicU32 = AtomicU32::new(0);

extern "C" fn count_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Makes forked children known by [`FORKS`]: threads do not survive a fork.
fn watch_forks() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        #[cfg(unix)]
        // SAFETY: the handler only adds to an atomic, which is allowed in a forked child.
        unsafe {
            libc::pthread_atfork(None, None, Some(count_fork));
        }
    });
}

thread_local! {
    /// True while this thread works on a chunk.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

impl Pool {
    /// A pool that does everything on the calling thread.
    pub const fn inline() -> Self {
        Self { threads: 1, helpers: OnceLock::new() }
    }

    /// A pool of `threads` threads, the calling one included (at least one). None is started yet.
    pub const fn new(threads: usize) -> Self {
        Self { threads: if threads == 0 { 1 } else { threads }, helpers: OnceLock::new() }
    }

    /// The number of threads that suits this machine: what the system and its control group allow this process.
    pub fn default_threads() -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }

    /// How many threads may work at once, the caller included.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Calls `work(i)` once for each `i` below `chunks`, in any order, perhaps at the same time, and returns when all
    /// calls have returned.
    ///
    /// # Panics
    /// As the first chunk that panicked did, once no chunk is running any more.
    pub fn run(&self, chunks: usize, work: &(dyn Fn(usize) + Sync)) {
        self.run_costed(chunks, DEFAULT_CHUNK_NS, work);
    }

    /// As [`Self::run`], where each chunk takes about `ns_per_chunk` nanoseconds: decides whether sharing pays.
    ///
    /// # Panics
    /// As [`Self::run`].
    pub fn run_costed(&self, chunks: usize, ns_per_chunk: f64, work: &(dyn Fn(usize) + Sync)) {
        let total = ns_per_chunk * chunks as f64;
        if chunks > 1
            && self.threads > 1
            && total >= SHARE_NS
            && !INSIDE.get()
            && let Some(shared) = self.shared(total)
            && !shared.busy.0.swap(true, Ordering::Acquire)
        {
            return shared.lead(chunks, total, work);
        }
        for i in 0..chunks {
            work(i);
        }
    }

    /// The helpers, started if the work is worth it.
    fn shared(&self, total_ns: f64) -> Option<&Shared> {
        let helpers = match self.helpers.get() {
            Some(h) => h,
            None if total_ns < WAKE_NS => return None,
            None => self.helpers.get_or_init(|| Helpers::start(self.threads - 1)),
        };
        (helpers.forks == FORKS.load(Ordering::Relaxed)).then_some(&*helpers.shared)
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool")
            .field("threads", &self.threads)
            .field("started", &self.helpers.get().is_some())
            .finish()
    }
}

impl Helpers {
    fn start(count: usize) -> Self {
        watch_forks();
        let shared = Arc::new(Shared {
            epoch: Padded(AtomicU64::new(0)),
            gate: Padded(AtomicUsize::new(0)),
            next: Padded(AtomicUsize::new(0)),
            busy: Padded(AtomicBool::new(false)),
            sleepers: Padded(AtomicUsize::new(0)),
            stop: AtomicBool::new(false),
            job: UnsafeCell::new(Job { work: &|_| (), chunks: 0 }),
            panic: Mutex::new(None),
            lock: Mutex::new(()),
            wake: Condvar::new(),
        });
        let forks = FORKS.load(Ordering::Relaxed);
        // A thread that the system refuses is one helper less.
        let handles = (0..count)
            .filter_map(|i| {
                let shared = shared.clone();
                std::thread::Builder::new()
                    .name(format!("refcpu-{}", i + 1))
                    .spawn(move || shared.help())
                    .ok()
            })
            .collect();
        Self { shared, handles, forks }
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        if self.forks != FORKS.load(Ordering::Relaxed) {
            // The threads live in another process; nothing is there to join.
            return;
        }
        self.shared.stop.store(true, Ordering::SeqCst);
        self.shared.epoch.0.fetch_add(1, Ordering::SeqCst);
        drop(self.shared.lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.shared.wake.notify_all();
        let this = std::thread::current().id();
        for h in self.handles.drain(..) {
            if h.thread().id() != this {
                // A helper never panics: chunks are caught.
                drop(h.join());
            }
        }
    }
}

impl Shared {
    /// Runs a job as its caller, who holds `busy`.
    fn lead(&self, chunks: usize, total_ns: f64, work: &(dyn Fn(usize) + Sync)) {
        // SAFETY: only the lifetime changes; `lead` does not return before all helpers have left the gate, after which
        // none reads the pointer.
        let work: Work = unsafe { std::mem::transmute::<*const (dyn Fn(usize) + Sync), Work>(work) };
        // SAFETY: `busy` is ours and the gate is closed and empty since the last job's end: nobody reads.
        unsafe { *self.job.get() = Job { work, chunks } };
        self.next.0.store(0, Ordering::Relaxed);
        self.gate.0.fetch_or(OPEN, Ordering::Release);
        self.epoch.0.fetch_add(1, Ordering::SeqCst);
        if total_ns >= WAKE_NS && self.sleepers.0.load(Ordering::SeqCst) > 0 {
            self.wake_one();
        }
        self.work_on(work, chunks);
        self.gate.0.fetch_and(!OPEN, Ordering::AcqRel);
        let mut spins = 0u32;
        while self.gate.0.load(Ordering::Acquire) != 0 {
            spins += 1;
            if spins < 2000 { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
        let panic = self.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.busy.0.store(false, Ordering::Release);
        if let Some(payload) = panic {
            resume_unwind(payload);
        }
    }

    /// Does chunks until there are none.
    fn work_on(&self, work: Work, chunks: usize) {
        INSIDE.set(true);
        loop {
            let i = self.next.0.fetch_add(1, Ordering::Relaxed);
            if i >= chunks {
                break;
            }
            // SAFETY: the job's caller waits for this thread to leave, so what it points to is alive.
            let work = unsafe { &*work };
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| work(i))) {
                let mut first = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
                first.get_or_insert(payload);
            }
        }
        INSIDE.set(false);
    }

    fn wake_one(&self) {
        // Taken so that a helper is either before its last look at the epoch or waiting already.
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.wake.notify_one();
    }

    /// What a helper does all its life.
    fn help(&self) {
        let mut seen = 0;
        loop {
            let slept = self.await_epoch(&mut seen);
            if self.stop.load(Ordering::SeqCst) {
                return;
            }
            let gate = self.gate.0.fetch_add(1, Ordering::Acquire);
            if gate & OPEN != 0 {
                // SAFETY: inside the open gate the job does not change.
                let (work, chunks) = unsafe {
                    let job = &*self.job.get();
                    (job.work, job.chunks)
                };
                // One wakes the next, so that the caller pays for one alone.
                let left = chunks.saturating_sub(self.next.0.load(Ordering::Relaxed));
                if slept && left > 1 && self.sleepers.0.load(Ordering::SeqCst) > 0 {
                    self.wake_one();
                }
                self.work_on(work, chunks);
            }
            self.gate.0.fetch_sub(1, Ordering::Release);
        }
    }

    /// Waits for a new epoch; true if it had to sleep.
    fn await_epoch(&self, seen: &mut u64) -> bool {
        let changed = |seen: &mut u64| {
            let now = self.epoch.0.load(Ordering::SeqCst);
            let new = now != *seen;
            *seen = now;
            new
        };
        let start = Instant::now();
        loop {
            for _ in 0..32 {
                if changed(seen) {
                    return false;
                }
                std::hint::spin_loop();
            }
            if start.elapsed() > SPIN {
                break;
            }
        }
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.sleepers.0.fetch_add(1, Ordering::SeqCst);
        while !changed(seen) {
            guard = self.wake.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        self.sleepers.0.fetch_sub(1, Ordering::SeqCst);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(pool: &Pool, chunks: usize) {
        let hits: Vec<AtomicUsize> = (0..chunks).map(|_| AtomicUsize::new(0)).collect();
        pool.run_costed(chunks, 1e6, &|i| {
            hits[i].fetch_add(1, Ordering::Relaxed);
        });
        assert!(hits.iter().all(|h| h.load(Ordering::Relaxed) == 1));
    }

    #[test]
    fn every_chunk_runs_once() {
        for threads in [0, 1, 2, 5] {
            let pool = Pool::new(threads);
            for round in 0..300 {
                counted(&pool, round % 40);
                if round % 100 == 99 {
                    std::thread::sleep(Duration::from_millis(2));
                }
            }
        }
    }

    #[test]
    fn a_panic_reaches_the_caller_after_all_chunks_ran() {
        let pool = Pool::new(3);
        let ran = AtomicUsize::new(0);
        let result = catch_unwind(AssertUnwindSafe(|| {
            pool.run_costed(50, 1e6, &|i| {
                ran.fetch_add(1, Ordering::Relaxed);
                assert!(i != 7, "chunk seven");
            });
        }));
        assert!(result.is_err());
        assert_eq!(ran.load(Ordering::Relaxed), 50);
        counted(&pool, 20);
    }

    #[test]
    fn calls_from_within_chunks_and_from_many_threads_end() {
        let pool = Pool::new(3);
        let total = AtomicUsize::new(0);
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for _ in 0..50 {
                        pool.run_costed(8, 1e6, &|_| {
                            pool.run_costed(4, 1e6, &|_| {
                                total.fetch_add(1, Ordering::Relaxed);
                            });
                        });
                    }
                });
            }
        });
        assert_eq!(total.load(Ordering::Relaxed), 4 * 50 * 8 * 4);
    }

    #[test]
    fn work_spreads_over_threads() {
        let pool = Pool::new(2);
        let ids = Mutex::new(std::collections::HashSet::new());
        pool.run_costed(8, 1e7, &|_| {
            std::thread::sleep(Duration::from_millis(5));
            ids.lock().unwrap().insert(std::thread::current().id());
        });
        assert_eq!(ids.lock().unwrap().len(), 2);
    }
}
