//! The thread pool on which kernels run.
//!
//! One job runs at a time. The caller publishes it and works on it, and helpers that are awake join. Chunks
//! are taken from a shared counter, so a helper that is late or preempted delays nothing. After a job,
//! helpers spin for a short time, because the next one usually follows immediately, and then sleep.

use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The time for which a helper spins before it sleeps.
const SPIN: Duration = Duration::from_micros(40);
/// The minimum work of a job for which a sleeping helper is woken.
const WAKE_NS: f64 = 40_000.0;
/// The minimum work of a job that is shared with helpers that are awake.
const SHARE_NS: f64 = 3_000.0;
/// The assumed cost of a chunk in [`Pool::run`].
const DEFAULT_CHUNK_NS: f64 = 8_000.0;

/// Runs the chunks of a kernel on the calling thread and on helper threads.
///
/// A kernel divides its work into chunks by the size of the data alone, never by the number of threads, so
/// that results do not depend on the machine.
///
/// Threads start at the first job that is worth sharing, and end when the pool is dropped. Several threads
/// can call the pool concurrently: while one job is shared, other callers execute theirs alone. A call from
/// within a chunk runs on the calling thread, as does every call in a process forked from the one that
/// created the pool.
pub struct Pool {
    threads: usize,
    helpers: OnceLock<Helpers>,
}

/// The threads that were started.
struct Helpers {
    shared: Arc<Shared>,
    handles: Vec<JoinHandle<()>>,
    /// The value of [`FORKS`] when the threads were started.
    forks: u32,
}

/// A value on its own cache lines, because sharing a line with values that other threads write costs hundreds
/// of nanoseconds.
#[repr(align(128))]
struct Padded<T>(T);

/// A pointer to the `work` of the current job.
type Work = *const (dyn Fn(usize) + Sync + 'static);

struct Job {
    work: Work,
    chunks: usize,
}

struct Shared {
    /// The number of jobs so far. Helpers wait for it to change.
    epoch: Padded<AtomicU64>,
    /// [`OPEN`] while the job can be joined, plus the number of helpers that have joined.
    gate: Padded<AtomicUsize>,
    /// The next chunk.
    next: Padded<AtomicUsize>,
    /// Held by the caller whose job is shared.
    busy: Padded<AtomicBool>,
    /// The number of helpers that sleep or are about to.
    sleepers: Padded<AtomicUsize>,
    stop: AtomicBool,
    job: UnsafeCell<Job>,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    lock: Mutex<()>,
    wake: Condvar,
}

/// The flag in [`Shared::gate`] that is set while a job can be joined.
const OPEN: usize = 1 << (usize::BITS - 1);

// SAFETY: `job` is written only by the holder of `busy` while the gate is closed and no helper is inside, and
// read only by helpers inside an open gate; opening (Release) and joining (Acquire) order these accesses. All
// other fields are atomic or locked. The work that it points to is `Sync`, so any thread may call it.
unsafe impl Sync for Shared {}
// SAFETY: as above; no field belongs to a particular thread.
unsafe impl Send for Shared {}

/// The number of forks between the first process that started a pool and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

extern "C" fn count_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Registers a handler that counts forks in [`FORKS`], because threads do not survive a fork.
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
    /// `true` while this thread works on a chunk.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

impl Pool {
    /// Creates a pool that runs everything on the calling thread.
    pub const fn inline() -> Self {
        Self { threads: 1, helpers: OnceLock::new() }
    }

    /// Creates a pool of `threads` threads (at least one), which include the calling one. Threads are not
    /// started yet.
    pub const fn new(threads: usize) -> Self {
        Self { threads: if threads == 0 { 1 } else { threads }, helpers: OnceLock::new() }
    }

    /// Returns the number of threads that the system and the control group allow this process. The system is asked once, because it
    /// reads files for the answer.
    pub fn default_threads() -> usize {
        static THREADS: OnceLock<usize> = OnceLock::new();
        *THREADS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
    }

    /// Returns the maximum number of threads that work concurrently, including the caller.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Calls `work(i)` once for each `i` below `chunks`, in any order and possibly concurrently, and returns
    /// when all calls have returned.
    ///
    /// # Panics
    /// Panics if a chunk panics: resumes the panic of the first such chunk after all running chunks have finished.
    pub fn run(&self, chunks: usize, work: &(dyn Fn(usize) + Sync)) {
        self.run_costed(chunks, DEFAULT_CHUNK_NS, work);
    }

    /// Does the same as [`Self::run`], for chunks that take about `ns_per_chunk` nanoseconds. This time determines whether
    /// the job is shared.
    ///
    /// # Panics
    /// Panics in the same cases as [`Self::run`].
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

    /// Returns the helpers if the work justifies them, and starts them if necessary.
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
        // If the system refuses to start a thread, there is one helper less.
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
            // The threads belong to another process, so there is nothing to join.
            return;
        }
        self.shared.stop.store(true, Ordering::SeqCst);
        self.shared.epoch.0.fetch_add(1, Ordering::SeqCst);
        drop(self.shared.lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.shared.wake.notify_all();
        let this = std::thread::current().id();
        for h in self.handles.drain(..) {
            if h.thread().id() != this {
                // Helpers never panic, because panics of chunks are caught.
                drop(h.join());
            }
        }
    }
}

impl Shared {
    /// Runs a job on the calling thread, which holds `busy`.
    fn lead(&self, chunks: usize, total_ns: f64, work: &(dyn Fn(usize) + Sync)) {
        // SAFETY: only the lifetime changes. `lead` returns only after all helpers have left the gate, and
        // none reads the pointer afterwards.
        let work: Work = unsafe { std::mem::transmute::<*const (dyn Fn(usize) + Sync), Work>(work) };
        // SAFETY: this thread holds `busy`, and the gate has been closed and empty since the end of the last
        // job, so no thread reads the job.
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

    /// Executes chunks until none are left.
    fn work_on(&self, work: Work, chunks: usize) {
        INSIDE.set(true);
        loop {
            let i = self.next.0.fetch_add(1, Ordering::Relaxed);
            if i >= chunks {
                break;
            }
            // SAFETY: the caller of the job waits for this thread to leave, so the work that is pointed to is
            // alive.
            let work = unsafe { &*work };
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| work(i))) {
                let mut first = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
                first.get_or_insert(payload);
            }
        }
        INSIDE.set(false);
    }

    fn wake_one(&self) {
        // The lock ensures that a helper either has not read the epoch for the last time, or is already
        // waiting.
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.wake.notify_one();
    }

    /// Runs the main loop of a helper.
    fn help(&self) {
        let mut seen = 0;
        loop {
            let slept = self.await_epoch(&mut seen);
            if self.stop.load(Ordering::SeqCst) {
                return;
            }
            let gate = self.gate.0.fetch_add(1, Ordering::Acquire);
            if gate & OPEN != 0 {
                // SAFETY: the job does not change while this helper is inside the open gate.
                let (work, chunks) = unsafe {
                    let job = &*self.job.get();
                    (job.work, job.chunks)
                };
                // Each helper wakes the next one, so that the caller only spends time on waking one.
                let left = chunks.saturating_sub(self.next.0.load(Ordering::Relaxed));
                if slept && left > 1 && self.sleepers.0.load(Ordering::SeqCst) > 0 {
                    self.wake_one();
                }
                self.work_on(work, chunks);
            }
            self.gate.0.fetch_sub(1, Ordering::Release);
        }
    }

    /// Waits for a new epoch. Returns `true` if the helper had to sleep.
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
