//! The models. Each is named for the property that must hold in every interleaving.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use crate::core::device_lock::device_lock;
use crate::core::spin_lock::Guarded;
use crate::core::by_device::ByDevice;
use crate::core::error::{Error, ErrorCode};
use crate::core::event::Event;
use crate::core::launch::{Launch, Outcome, finish, launch};
use crate::core::promise::promise;
use crate::core::storage::{BufferState, Share};

type Model = (&'static str, fn());

pub(crate) const ALL: &[Model] = &[
    ("a callback runs once, whether it comes before or after the completion", callback_runs_once),
    ("a thread that waits is woken", waiting_thread_is_woken),
    ("a source that is dropped fails its event", dropped_source_fails),
    ("an event of several waits for the last of them", all_waits_for_the_last),
    ("a promise reaches its receiver, whichever comes first", promise_reaches_receiver),
    ("a value behind a lock has one thread at a time, whichever way it takes the lock", one_thread_has_the_lock),
    ("values behind one lock are seen together", values_change_together),
    ("of two donations of a buffer one wins", one_donation_wins),
    ("a donation gives the storage away only if nobody reads it", donation_respects_readers),
    ("an execution's share keeps the storage, or the donation came first", donation_respects_executions),
    ("storage goes when the last share does, and only then", storage_goes_with_the_last_share),
    ("storage that is pinned survives the buffer's deletion", pinned_storage_survives),
    ("storage that arrives reaches all waiters", storage_reaches_waiters),
    ("outputs reach the buffers, whichever come first", outputs_reach_buffers),
    ("outputs that no buffer waits for go", launch_is_given_up),
    ("a launch that is poisoned while it finishes gets one of the two", poison_or_outputs),
];

/// Storage that counts its drops.
struct Storage(Arc<AtomicUsize>);

impl Drop for Storage {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn storage() -> (Storage, Arc<AtomicUsize>) {
    let dropped = Arc::new(AtomicUsize::new(0));
    (Storage(Arc::clone(&dropped)), dropped)
}

fn callback_runs_once() {
    let (source, event) = Event::pending();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let registering = thread::spawn(move || {
        event.on_ready(move |outcome| {
            assert!(outcome.is_ok());
            counted.fetch_add(1, Ordering::SeqCst);
        });
    });
    source.complete(Ok(()));
    registering.join().unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

fn waiting_thread_is_woken() {
    let (source, event) = Event::pending();
    let waiting = {
        let event = event.clone();
        thread::spawn(move || event.wait().unwrap_err().code())
    };
    let polled = event.outcome();
    source.complete(Err(Error::aborted("on purpose")));
    assert!(polled.is_none());
    assert_eq!(waiting.join().unwrap(), ErrorCode::Aborted);
    assert!(event.is_ready());
}

fn dropped_source_fails() {
    let (source, event) = Event::pending();
    let dropping = thread::spawn(move || drop(source));
    assert_eq!(event.wait().unwrap_err().code(), ErrorCode::Internal);
    dropping.join().unwrap();
}

fn all_waits_for_the_last() {
    let (first, one) = Event::pending();
    let (second, two) = Event::pending();
    let threads = [first, second].map(|source| thread::spawn(move || source.complete(Ok(()))));
    let (seen_one, seen_two) = (one.clone(), two.clone());
    let all = Event::all(vec![one, two]);
    all.wait().unwrap();
    assert!(seen_one.is_ready() && seen_two.is_ready());
    for thread in threads {
        thread.join().unwrap();
    }
}

fn promise_reaches_receiver() {
    let (promise, pending) = promise::<u32>();
    let fulfilling = thread::spawn(move || promise.fulfill(7));
    let (source, event) = Event::pending();
    pending.receive(move |value| {
        assert_eq!(value.unwrap().0, 7);
        source.complete(Ok(()));
    });
    event.wait().unwrap();
    fulfilling.join().unwrap();
}

fn one_thread_has_the_lock() {
    let lock = device_lock(0);
    let value = Arc::new(Guarded::new(lock, 0));
    let other = {
        let value = Arc::clone(&value);
        thread::spawn(move || {
            value.with(|value| *value += 1);
            value.with(|value| *value += 1);
        })
    };
    // loom fails if two threads access the value at the same time, or if one does not observe a write of the other.
    value.with_guard(&mut lock.lock(), |value| *value += 1).unwrap();
    value.with(|value| *value += 1);
    other.join().unwrap();
    assert_eq!(value.with(|value| *value), 4);
}

fn values_change_together() {
    let lock = device_lock(0);
    let values = Arc::new([Guarded::new(lock, 0), Guarded::new(lock, 0)]);
    let change = |values: &[Guarded<i32>; 2]| {
        let mut guard = lock.lock();
        let first = values[0].with_guard(&mut guard, |value| std::mem::replace(value, *value + 1));
        let second = values[1].with_guard(&mut guard, |value| std::mem::replace(value, *value + 1));
        assert_eq!(first.unwrap(), second.unwrap());
    };
    let other = {
        let values = Arc::clone(&values);
        thread::spawn(move || change(&values))
    };
    change(&values);
    other.join().unwrap();
    assert_eq!(values[1].with(|value| *value), 2);
}

fn one_donation_wins() {
    let (storage, dropped) = storage();
    let buffer = Arc::new(BufferState::allocated(Arc::new(storage), Event::ready()));
    let donate = |buffer: &BufferState<Storage>| match buffer.donate() {
        Ok(held) => {
            assert!(Arc::try_unwrap(held.share.into_storage().unwrap()).is_ok());
            1
        }
        Err(_) => 0,
    };
    let other = {
        let buffer = Arc::clone(&buffer);
        thread::spawn(move || donate(&buffer))
    };
    let won = donate(&buffer);
    assert_eq!(won + other.join().unwrap(), 1);
    assert!(buffer.is_deleted());
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

fn donation_respects_readers() {
    let (storage, dropped) = storage();
    let buffer = Arc::new(BufferState::allocated(Arc::new(storage), Event::ready()));
    let reading = {
        let (buffer, dropped) = (Arc::clone(&buffer), Arc::clone(&dropped));
        thread::spawn(move || {
            let Ok(held) = buffer.share() else { return };
            let storage = held.share.into_storage().unwrap();
            assert_eq!(dropped.load(Ordering::SeqCst), 0, "the storage went away under a reader");
            drop(storage);
        })
    };
    match Arc::try_unwrap(buffer.donate().unwrap().share.into_storage().unwrap()) {
        // There is no other share, so no reader can observe writes of the execution.
        Ok(storage) => drop(storage),
        Err(storage) => {
            assert_eq!(dropped.load(Ordering::SeqCst), 0);
            drop(storage);
        }
    }
    reading.join().unwrap();
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

fn donation_respects_executions() {
    let (storage, dropped) = storage();
    let buffer = Arc::new(BufferState::allocated(Arc::new(storage), Event::ready()));
    let reading = {
        let (buffer, dropped) = (Arc::clone(&buffer), Arc::clone(&dropped));
        thread::spawn(move || {
            let shared = buffer.share_if_ready(&mut device_lock(0).lock());
            let Some(storage) = shared else {
                assert!(buffer.is_deleted());
                return;
            };
            assert_eq!(dropped.load(Ordering::SeqCst), 0, "the storage went away under an execution");
            drop(storage);
        })
    };
    let own = buffer.take_if_ready(true).unwrap().unwrap();
    // All shares were taken before the donation, so their number can only decrease.
    let alone = Arc::strong_count(&own) == 1;
    assert!(Arc::try_unwrap(own).is_ok() || !alone);
    reading.join().unwrap();
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

fn storage_goes_with_the_last_share() {
    let (storage, dropped) = storage();
    let buffer = Arc::new(BufferState::allocated(Arc::new(storage), Event::ready()));
    let deleting = {
        let buffer = Arc::clone(&buffer);
        thread::spawn(move || buffer.delete())
    };
    if let Ok(held) = buffer.share() {
        let share = held.share.into_storage().unwrap();
        assert_eq!(dropped.load(Ordering::SeqCst), 0);
        drop(share);
    }
    deleting.join().unwrap();
    assert!(buffer.share().is_err() && buffer.is_deleted());
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

fn pinned_storage_survives() {
    let (storage, dropped) = storage();
    let buffer = Arc::new(BufferState::allocated(Arc::new(storage), Event::ready()));
    let deleting = {
        let buffer = Arc::clone(&buffer);
        thread::spawn(move || buffer.delete())
    };
    if buffer.pin().is_ok() {
        assert!(buffer.pinned().is_some());
        assert_eq!(dropped.load(Ordering::SeqCst), 0);
        buffer.unpin().unwrap();
    }
    deleting.join().unwrap();
    assert!(buffer.unpin().is_err());
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

fn storage_reaches_waiters() {
    let (storage, dropped) = storage();
    let (buffer, promise) = BufferState::promised();
    let delivering = thread::spawn(move || promise.deliver(Ok((storage, Event::ready()))));
    let found = buffer.wait_for_storage().unwrap();
    buffer.ready_event().wait().unwrap();
    delivering.join().unwrap();
    assert_eq!(dropped.load(Ordering::SeqCst), 0);
    drop((found, buffer));
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

fn attach(launch: Launch<(), Storage>) -> Outcome<Storage> {
    match launch.finished() {
        Ok(finished) => Outcome::Finished(finished),
        Err(launch) => launch.attach(1),
    }
}

/// Returns the outcome of the host's buffer of a launch with one output.
fn end(outcome: Outcome<Storage>) -> Result<(), ErrorCode> {
    let share = match outcome {
        Outcome::Finished(finished) => {
            finished.ready.wait().map_err(|error| error.code())?;
            match finished.outputs {
                Ok(mut outputs) => Share::Storage(Arc::new(outputs[0].remove(0))),
                Err(error) => Share::Failed(error),
            }
        }
        Outcome::Pending { mut slots, allocated, ready, .. } => {
            let slot = slots.remove(0);
            let ended = allocated.wait().and_then(|()| ready.wait());
            ended.map_err(|error| error.code())?;
            Share::Promised(slot)
        }
    };
    share.into_storage().map(drop).map_err(|error| error.code())
}

fn outputs_reach_buffers() {
    let (storage, dropped) = storage();
    let (running, launch) = launch(|| (), 1, 1);
    let finishing = thread::spawn(move || finish(running, ByDevice::one(vec![storage]), Event::ready()));
    assert_eq!(end(attach(launch)), Ok(()));
    finishing.join().unwrap();
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

fn launch_is_given_up() {
    let (storage, dropped) = storage();
    let (running, launch) = launch(|| (), 1, 1);
    let finishing = thread::spawn(move || finish(running, ByDevice::one(vec![storage]), Event::ready()));
    drop(launch);
    finishing.join().unwrap();
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

fn poison_or_outputs() {
    let (storage, dropped) = storage();
    let (running, launch) = launch(|| (), 1, 1);
    let finishing = thread::spawn(move || finish(running, ByDevice::one(vec![storage]), Event::ready()));
    let outcome = attach(launch);
    let poisoning = match &outcome {
        Outcome::Finished(_) => None,
        Outcome::Pending { unfilled, .. } => {
            let unfilled = Arc::clone(unfilled);
            Some(thread::spawn(move || unfilled.poison(Error::aborted("poisoned"))))
        }
    };
    let ended = end(outcome);
    finishing.join().unwrap();
    let poisoned = poisoning.is_some_and(|poisoning| poisoning.join().unwrap());
    assert_eq!(ended, if poisoned { Err(ErrorCode::Aborted) } else { Ok(()) });
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}
