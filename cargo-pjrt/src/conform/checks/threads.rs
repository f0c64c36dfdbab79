//! Checks that use a plugin on several threads.

use crate::conform::harness::{Finding, Verdict};

/// Runs `work` on several threads, with the number of each thread, and returns the first finding.
pub(super) fn on_threads(threads: u8, work: impl Fn(u8) -> Verdict + Sync) -> Verdict {
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn({
                    let work = &work;
                    move || work(thread)
                })
            })
            .collect();
        for thread in running {
            thread.join().map_err(|_| Finding::Wrong("a thread panicked".to_owned()))??;
        }
        Ok(())
    })
}
