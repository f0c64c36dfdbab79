//! The threads on which long programs run.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// A job for a device's thread.
type Job = Box<dyn FnOnce() + Send>;

/// The in-order queue of a device, and the thread that runs its jobs.
///
/// The thread starts with the first job, so that a process that runs only short programs does not have one. It ends when the
/// executor is dropped and the queue is empty. It is not joined, because the last reference to a client may be dropped on
/// it.
pub(crate) struct Executor {
    name: String,
    sender: Mutex<Option<Sender<Job>>>,
    /// The number of jobs that have not ended.
    unfinished: Arc<AtomicUsize>,
}

impl Executor {
    /// Creates an executor. `name` becomes the name of its thread.
    pub(crate) fn new(name: String) -> Self {
        Self { name, sender: Mutex::new(None), unfinished: Arc::default() }
    }

    /// Returns whether all jobs of the queue have ended. Their effects are visible to the caller then.
    pub(crate) fn is_idle(&self) -> bool {
        self.unfinished.load(Ordering::Acquire) == 0
    }

    /// Adds a job to the queue.
    ///
    /// If no thread can be created, the job runs on the caller's thread.
    pub(crate) fn submit(&self, job: Job) {
        let unfinished = Unfinished::add(&self.unfinished);
        let job: Job = Box::new(move || {
            job();
            drop(unfinished);
        });
        let mut sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        if sender.is_none() {
            *sender = self.start();
        }
        let refused = match &*sender {
            Some(queue) => queue.send(job).err().map(|refused| refused.0),
            None => Some(job),
        };
        drop(sender);
        if let Some(job) = refused {
            run(job);
        }
    }

    fn start(&self) -> Option<Sender<Job>> {
        let (sender, jobs) = channel::<Job>();
        std::thread::Builder::new()
            .name(self.name.clone())
            .spawn(move || jobs.into_iter().for_each(run))
            .ok()
            .map(|_detached| sender)
    }
}

/// One of the jobs that are counted as not ended. It also ends when the job panics.
struct Unfinished(Arc<AtomicUsize>);

impl Unfinished {
    fn add(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// Runs a job on a new thread.
///
/// If no thread can be created, the job runs on the caller's thread.
pub(crate) fn run_apart(name: &str, job: Job) {
    // If the thread cannot be created, its closure is dropped, so the job is passed through a channel.
    let (sender, jobs) = channel::<Job>();
    let spawned =
        std::thread::Builder::new().name(name.to_owned()).spawn(move || jobs.into_iter().for_each(run));
    match spawned {
        Ok(_detached) => {
            if let Err(refused) = sender.send(job) {
                run(refused.0);
            }
        }
        Err(_) => run(job),
    }
}

/// Runs a job. A panic ends the job but not the thread. The values that the job owned report the error when they are
/// dropped.
fn run(job: Job) {
    let _panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_run_in_the_order_of_submission() {
        let executor = Executor::new("test".into());
        let (sender, results) = channel();
        for i in 0..100 {
            let sender = sender.clone();
            executor.submit(Box::new(move || sender.send(i).unwrap()));
        }
        drop(sender);
        assert_eq!(results.into_iter().collect::<Vec<_>>(), (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn a_panicking_job_does_not_stop_the_queue() {
        let executor = Executor::new("test".into());
        let (sender, results) = channel();
        executor.submit(Box::new(|| panic!("planted")));
        executor.submit(Box::new(move || sender.send(1).unwrap()));
        assert_eq!(results.recv(), Ok(1));
    }

    #[test]
    fn an_executor_is_idle_when_its_jobs_have_ended_even_by_a_panic() {
        let executor = Executor::new("test".into());
        assert!(executor.is_idle());
        let (sender, begin) = channel::<()>();
        executor.submit(Box::new(move || begin.recv().unwrap()));
        executor.submit(Box::new(|| panic!("planted")));
        assert!(!executor.is_idle());
        sender.send(()).unwrap();
        while !executor.is_idle() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn an_executor_may_be_dropped_by_its_own_job() {
        let executor = Arc::new(Executor::new("test".into()));
        let (sender, results) = channel();
        let own = Arc::clone(&executor);
        executor.submit(Box::new(move || {
            drop(own);
            sender.send(()).unwrap();
        }));
        drop(executor);
        assert_eq!(results.recv(), Ok(()));
    }
}
