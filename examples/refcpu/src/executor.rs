//! Where programs run that are too long for the caller's thread.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};

/// Work for a device's thread.
type Job = Box<dyn FnOnce() + Send>;

/// A device's in-order queue and the thread that empties it.
///
/// The thread starts with the first job, so that a process which only ever runs small programs has none, and ends
/// when the executor is dropped and its queue is empty. Nobody joins it: the last reference to a client can go on that
/// very thread.
pub(crate) struct Executor {
    name: String,
    sender: Mutex<Option<Sender<Job>>>,
}

impl Executor {
    /// An executor without a thread yet. `name` becomes the thread's.
    pub(crate) fn new(name: String) -> Self {
        Self { name, sender: Mutex::new(None) }
    }

    /// Queues a job behind those already there.
    ///
    /// Where the system refuses a thread, the job runs on the caller's.
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

/// Runs a job on a thread of its own, which ends with it.
///
/// Where the system refuses a thread, the job runs on the caller's.
pub(crate) fn run_apart(name: &str, job: Job) {
    // The closure of a thread that cannot be started is lost, so the job waits outside of it.
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

/// Runs one job. A panic ends the job and not the thread: what the job owned reports the error when it is dropped.
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
