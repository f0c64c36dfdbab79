//! A device's command queue.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use pjrt_plugin::{Error, Event, Result};

use crate::ram::Ram;

/// An action of a device, which has access to the device's memory.
type Command = Box<dyn FnOnce(&mut Ram) + Send>;

/// Commands that a device executes one at a time, in the order in which they were submitted.
///
/// The whole driver depends on this order. A command may use the results of an earlier one without waiting
/// for it, and memory can be reused as soon as the last command that uses it is *submitted*, because the
/// commands of the new owner come later. Therefore commands hold addresses instead of memory.
///
/// The queue is unbounded: submitting never blocks, because commands are also submitted on the queue's own
/// thread, by code that waited for an event.
pub(crate) struct Queue(Sender<Command>);

impl Queue {
    /// Starts the device, which is a thread with a memory. The thread stops, without being joined, when the
    /// queue is dropped and empty.
    pub(crate) fn start(name: &str, mut ram: Ram) -> Result<Self> {
        let (sender, commands) = channel::<Command>();
        let work = move || {
            for command in commands {
                // A panic ends the command, but not the device. The command's event is dropped and thereby
                // completes with an error.
                let _panic = catch_unwind(AssertUnwindSafe(|| command(&mut ram)));
            }
        };
        thread::Builder::new().name(name.to_owned()).spawn(work).map_err(|error| {
            Error::resource_exhausted(format!("cannot create the thread of {name}: {error}"))
        })?;
        Ok(Self(sender))
    }

    /// Submits a command. The returned event completes after the command was executed and everything that it
    /// owns was dropped.
    pub(crate) fn submit(&self, command: impl FnOnce(&mut Ram) -> Result<()> + Send + 'static) -> Event {
        let (done, event) = Event::pending();
        // If the thread has ended, the command is dropped here, and its event completes with an error.
        let _ = self.0.send(Box::new(move |ram| done.complete(command(ram))));
        event
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> Queue {
        Queue::start("test", Ram::new(64).unwrap()).unwrap()
    }

    #[test]
    fn commands_see_what_earlier_ones_did() {
        let queue = queue();
        for i in 1..=8 {
            drop(queue.submit(move |ram| {
                ram.at(8, 1)[0] = ram.at(8, 1)[0] * 2 + i % 2;
                Ok(())
            }));
        }
        queue
            .submit(|ram| {
                assert_eq!(ram.at(8, 1), [0b1010_1010]);
                Ok(())
            })
            .wait()
            .unwrap();
    }

    #[test]
    fn submitting_does_not_wait_for_the_device() {
        let queue = queue();
        let (go, gate) = channel::<()>();
        let first = queue.submit(move |_| gate.recv().map_err(|_| Error::internal("the gate is gone")));
        let second = queue.submit(|_| Ok(()));
        assert!(!first.is_ready() && !second.is_ready());
        go.send(()).unwrap();
        second.wait().unwrap();
        assert!(first.is_ready());
    }

    #[test]
    fn a_command_that_panics_fails_alone() {
        let queue = queue();
        let broken = queue.submit(|_| panic!("planted"));
        let next = queue.submit(|_| Ok(()));
        assert!(broken.wait().is_err());
        next.wait().unwrap();
    }

    #[test]
    fn what_is_queued_is_done_although_the_queue_is_dropped() {
        let queue = queue();
        let (go, gate) = channel::<()>();
        drop(queue.submit(move |_| gate.recv().map_err(|_| Error::internal("the gate is gone"))));
        let last = queue.submit(|_| Ok(()));
        drop(queue);
        go.send(()).unwrap();
        last.wait().unwrap();
    }
}
