//! The threads that kernels run on.

/// Runs the chunks of one kernel, on the calling thread and perhaps on others.
///
/// A kernel cuts its work into chunks by the size of the data alone, never by the number of threads, so that results
/// do not depend on the machine.
pub struct Pool {
    threads: usize,
}

impl Pool {
    /// A pool that does everything on the calling thread.
    pub const fn inline() -> Self {
        Self { threads: 1 }
    }

    /// How many threads may work at once, the caller included.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Calls `work(i)` once for each `i` below `chunks`, in any order, perhaps at the same time, and returns when all
    /// calls have returned.
    pub fn run(&self, chunks: usize, work: &(dyn Fn(usize) + Sync)) {
        for i in 0..chunks {
            work(i);
        }
    }
}
