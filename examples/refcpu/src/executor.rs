//! The threads on which long programs run.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};

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
}

impl Executor {
    /// Creates an executor. `name` becomes the name of its thread.
    pub(crate) fn new(name: String) -> Self {
        Self { name, sender: Mutex::new(None) }
    }

    /// Adds a job to the queue.
    ///
    /// If no thread can be created, the job runs on the caller's thread.
    pub(crate) fn submit(&self, job: Job) {
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
    use std::sync::Arc;

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
