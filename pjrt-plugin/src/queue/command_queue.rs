//! A queue of commands, and the thread that executes them.

use std::fmt;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::core::event::Event;
use crate::core::panic_guard;
use crate::error::{Error, Result};

/// A command, which has access to the state of the device.
type Command<D> = Box<dyn FnOnce(&mut D) + Send>;

/// Commands that a thread executes one at a time, in the order in which they were submitted. `D` is the state of the device that
/// belongs to the thread, such as a handle of its driver.
///
/// The queue is unbounded: submitting never blocks, because commands are also submitted on the queue's own thread, by code that
/// waits for an event.
///
/// ```
/// use pjrt_plugin::queue::Queue;
///
/// let queue = Queue::start("adder", 0_u64)?;
/// let first = queue.submit(|sum| { *sum += 40; Ok(()) });
/// let second = queue.submit(|sum| { *sum += 2; assert_eq!(*sum, 42); Ok(()) });
/// second.wait()?;
/// assert!(first.is_ready());
/// # Ok::<(), pjrt_plugin::Error>(())
/// ```
pub struct Queue<D> {
    name: String,
    /// The channel, and the event of the last command.
    last: Mutex<(Sender<Command<D>>, Event)>,
}

impl<D: Send + 'static> Queue<D> {
    /// Starts the thread. It stops, without being joined, when the queue is dropped and all commands are executed.
    ///
    /// # Errors
    ///
    /// Returns RESOURCE_EXHAUSTED if the thread cannot be created.
    pub fn start(name: impl Into<String>, mut device: D) -> Result<Self> {
        panic_guard::install_hook();
        let name = name.into();
        let (sender, commands) = channel::<Command<D>>();
        let work = move || commands.into_iter().for_each(|command| command(&mut device));
        let spawned = thread::Builder::new().name(name.clone()).spawn(work);
        spawned.map_err(|error| {
            Error::resource_exhausted(format!("cannot create the thread of {name}: {error}"))
        })?;
        Ok(Self { name, last: Mutex::new((sender, Event::ready())) })
    }

    /// Submits a command. The event completes with its result, after everything that the command owns was dropped. A panic
    /// becomes an INTERNAL error of the command, and later commands are executed.
    pub fn submit(&self, command: impl FnOnce(&mut D) -> Result<()> + Send + 'static) -> Event {
        let (done, event) = Event::pending();
        let run = move |device: &mut D| done.complete(panic_guard::catch(|| command(device)));
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        // If the thread has ended, the command is dropped here, and its event completes with an error.
        let _ = last.0.send(Box::new(run));
        last.1 = event.clone();
        event
    }

    /// Submits a command that waits for events before it runs, such as those of commands of another queue. If one of them has an
    /// error, the command does not run, and its event completes with that error.
    ///
    /// The commands behind it wait too. Pass events of commands that are submitted already: then each command waits only for
    /// earlier ones, and no cycle exists.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    ///
    /// use pjrt_plugin::queue::Queue;
    ///
    /// let data = Arc::new(Mutex::new(0));
    /// let (copies, programs) = (Queue::start("copies", Arc::clone(&data))?, Queue::start("programs", data)?);
    /// let uploaded = copies.submit(|data| { *data.lock().unwrap() = 7; Ok(()) });
    /// let doubled = programs.submit_after(vec![uploaded], |data| { *data.lock().unwrap() *= 2; Ok(()) });
    /// doubled.wait()?;
    /// programs.submit(|data| { assert_eq!(*data.lock().unwrap(), 14); Ok(()) }).wait()?;
    /// # Ok::<(), pjrt_plugin::Error>(())
    /// ```
    pub fn submit_after(
        &self,
        events: Vec<Event>,
        command: impl FnOnce(&mut D) -> Result<()> + Send + 'static,
    ) -> Event {
        self.submit(move |device| {
            events.into_iter().try_for_each(|event| event.wait())?;
            command(device)
        })
    }

    /// Returns the event of the command that was submitted last. It is ready if there is none.
    pub fn last(&self) -> Event {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    /// Submits a copy to another device: the command `send` to this queue, and then the command `receive`, which waits for the
    /// data, to the queue `to`. The event completes when the data was received, or with the error of either command.
    ///
    /// Both commands are submitted when this function returns, so that commands which are submitted to `to` from now on read the
    /// copied data. A `receive` waits only for commands that were submitted earlier, so devices that copy in both directions do
    /// not wait for each other.
    ///
    /// The pool of each device determines whether the commands contain addresses of [`Block`](super::Block)s or own the blocks:
    /// see [`MemoryPool::new`](super::MemoryPool::new).
    ///
    /// ```
    /// use pjrt_plugin::queue::Queue;
    ///
    /// let (from, to) = (Queue::start("from", 7)?, Queue::start("to", 0)?);
    /// let copied = from.transfer(&to, |value| Ok(*value), |value, received| { *value = received; Ok(()) });
    /// to.submit(|value| { assert_eq!(*value, 7); Ok(()) }).wait()?;
    /// assert!(copied.is_ready());
    /// # Ok::<(), pjrt_plugin::Error>(())
    /// ```
    pub fn transfer<E: Send + 'static, T: Send + 'static>(
        &self,
        to: &Queue<E>,
        send: impl FnOnce(&mut D) -> Result<T> + Send + 'static,
        receive: impl FnOnce(&mut E, T) -> Result<()> + Send + 'static,
    ) -> Event {
        let (link, arrival) = channel();
        let sent = self.submit(move |device| {
            let data = send(device)?;
            // If the receiver no longer exists, nobody needs the copy.
            let _ = link.send(data);
            Ok(())
        });
        to.submit(move |device| match arrival.recv() {
            Ok(data) => receive(device, data),
            // The sender was dropped, so its command has failed or will soon.
            Err(_) => sent.wait().and(Err(Error::internal("the source of a copy was not read"))),
        })
    }
}

impl<D> fmt::Debug for Queue<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queue({})", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> Queue<Vec<u8>> {
        Queue::start("test", Vec::new()).unwrap()
    }

    #[test]
    fn submitting_does_not_wait_for_the_device() {
        let queue = queue();
        let (go, gate) = channel::<()>();
        let first = queue.submit(move |_| gate.recv().map_err(|_| Error::internal("the gate is gone")));
        let second = queue.submit(|_| Ok(()));
        assert!(!first.is_ready() && !second.is_ready() && !queue.last().is_ready());
        go.send(()).unwrap();
        second.wait().unwrap();
        assert!(first.is_ready() && queue.last().is_ready());
    }

    #[test]
    fn a_command_that_panics_fails_alone() {
        let queue = queue();
        let broken = queue.submit(|_| panic!("planted"));
        let next = queue.submit(|_| Ok(()));
        assert!(broken.wait().unwrap_err().message().contains("planted"));
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

    #[test]
    fn a_command_waits_for_the_events_that_it_is_submitted_after() {
        let (a, b) = (queue(), queue());
        let (go, gate) = channel::<()>();
        let first = a.submit(move |_| gate.recv().map_err(|_| Error::data_loss("the gate is gone")));
        let second = b.submit_after(vec![Event::ready(), first.clone()], |done| {
            done.push(1);
            Ok(())
        });
        let third = b.submit(|done| {
            assert_eq!(*done, [1]);
            Ok(())
        });
        thread::sleep(std::time::Duration::from_millis(10));
        assert!(!second.is_ready() && !third.is_ready());
        go.send(()).unwrap();
        third.wait().unwrap();
    }

    #[test]
    fn a_command_after_one_that_failed_does_not_run_and_has_its_error() {
        let (a, b) = (queue(), queue());
        let failed = a.submit(|_| Err(Error::data_loss("parity")));
        let next = b.submit_after(vec![failed], |_| panic!("the command ran"));
        assert_eq!(next.wait().unwrap_err().message(), "parity");
        b.submit(|_| Ok(())).wait().unwrap();
    }

    #[test]
    fn devices_that_copy_in_both_directions_do_not_wait_for_each_other() {
        let (a, b) = (queue(), queue());
        let copies = |from: &Queue<Vec<u8>>, to: &Queue<Vec<u8>>| {
            let copy = |i: u8| {
                from.transfer(
                    to,
                    move |_| Ok(i),
                    |received: &mut Vec<u8>, i| {
                        received.push(i);
                        Ok(())
                    },
                )
            };
            (0..100).map(copy).collect::<Vec<Event>>()
        };
        thread::scope(|scope| {
            let back = scope.spawn(|| copies(&b, &a));
            Event::all(copies(&a, &b)).wait().unwrap();
            Event::all(back.join().unwrap()).wait().unwrap();
        });
        let in_order = |received: &mut Vec<u8>| {
            assert_eq!(*received, (0..100).collect::<Vec<u8>>());
            Ok(())
        };
        a.submit(in_order).wait().unwrap();
        b.submit(in_order).wait().unwrap();
    }

    #[test]
    fn a_copy_whose_source_fails_has_the_error_of_the_source() {
        let (a, b) = (queue(), queue());
        let copy = a.transfer(&b, |_| Err::<u8, _>(Error::data_loss("parity")), |_, _| Ok(()));
        assert_eq!(copy.wait().unwrap_err().message(), "parity");
        let copy = a.transfer(&b, |_| -> Result<u8> { panic!("planted") }, |_, _| Ok(()));
        assert!(copy.wait().unwrap_err().message().contains("planted"));
    }
}
