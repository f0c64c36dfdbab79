//! Launches that have not finished, and the limit on their number.

use std::collections::VecDeque;
use std::sync::Mutex;

use crate::core::event::Event;
use crate::core::sync::lock;

/// The launches on each device of a client that have not finished, in the order in which the host started them.
///
/// A queue of a device executes commands in order, and devices wait for each other, so a launch may wait for everything that any
/// device received before it. The events of the actions of the host that launches wait for are therefore collected for all
/// devices, before the author receives the launch.
pub(crate) struct InFlight {
    devices: Box<[Mutex<VecDeque<Flight>>]>,
    /// The event that completes when no launch so far waits for an action of the host.
    host: Mutex<Event>,
}

/// A launch that has not finished.
#[derive(Clone)]
struct Flight {
    /// The event of the host's actions for this launch and all before it. `None` if the author may submit its commands after
    /// those of later launches, because it waits for inputs: then it may wait for the actions for any launch.
    host: Option<Event>,
    done: Event,
}

impl InFlight {
    pub(crate) fn new(num_devices: usize) -> Self {
        let devices = (0..num_devices).map(|_| Mutex::default()).collect();
        Self { devices, host: Mutex::new(Event::ready()) }
    }

    /// Waits until fewer than `limit` launches are in flight on each device. It does not wait for a launch that may need an
    /// action of the host, because the host may act on the thread which waits here, so the number can exceed the limit.
    pub(crate) fn admit(&self, places: &[usize], limit: usize) {
        for device in places.iter().filter_map(|place| self.devices.get(*place)) {
            while let Some(oldest) = self.oldest_of(device, limit.max(1)) {
                let _ = oldest.done.wait();
                lock(device).retain(|flight| !flight.done.is_ready());
            }
        }
    }

    /// Returns the oldest launch of a device to wait for, if there is one.
    fn oldest_of(&self, device: &Mutex<VecDeque<Flight>>, limit: usize) -> Option<Flight> {
        let mut flights = lock(device);
        if flights.len() >= limit {
            flights.retain(|flight| !flight.done.is_ready());
        }
        let oldest = flights.front().filter(|_| flights.len() >= limit).cloned();
        drop(flights);
        oldest.filter(|flight| {
            flight.host.as_ref().map_or_else(|| lock(&self.host).is_ready(), Event::is_ready)
        })
    }

    /// Records that the launch which the author receives next waits for actions of the host until the events complete.
    #[inline]
    pub(crate) fn wait_for_host<'a>(&self, events: impl Iterator<Item = &'a Event>) {
        let mut pending = events.filter(|event| !event.is_ready()).cloned().peekable();
        if pending.peek().is_some() {
            let mut host = lock(&self.host);
            *host = Event::all(pending.chain([host.clone()]).collect());
        }
    }

    /// Adds a launch that the author has received. If the author has not delivered its outputs, its commands may not be
    /// submitted yet.
    #[cold]
    pub(crate) fn add(&self, places: &[usize], is_submitted: bool, done: &Event) {
        let host = is_submitted.then(|| lock(&self.host).settled());
        for device in places.iter().filter_map(|place| self.devices.get(*place)) {
            let mut flights = lock(device);
            while flights.front().is_some_and(|flight| flight.done.is_ready()) {
                flights.pop_front();
            }
            flights.push_back(Flight { host: host.clone(), done: done.clone() });
        }
    }

    /// Returns the number of launches in flight on all devices. A launch on several devices counts on each of them.
    pub(crate) fn count(&self) -> usize {
        let of_device = |device: &Mutex<VecDeque<Flight>>| {
            lock(device).iter().filter(|flight| !flight.done.is_ready()).count()
        };
        self.devices.iter().map(of_device).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::error::Error;

    #[test]
    fn the_limit_is_that_of_each_device_and_waits_for_the_oldest_launch() {
        let in_flight = InFlight::new(2);
        let launches = [Event::pending(), Event::pending()];
        for (_, done) in &launches {
            in_flight.add(&[1], true, done);
        }
        in_flight.admit(&[0], 1);
        in_flight.admit(&[1], 3);
        assert_eq!(in_flight.count(), 2);
        let [(first, _), _second] = launches;
        let admitted = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                in_flight.admit(&[0, 1], 2);
                admitted.store(true, Ordering::SeqCst);
            });
            thread::sleep(Duration::from_millis(20));
            assert!(!admitted.load(Ordering::SeqCst));
            first.complete(Ok(()));
        });
        assert_eq!(in_flight.count(), 1);
    }

    #[test]
    fn a_launch_that_needs_the_host_and_those_behind_it_are_not_waited_for() {
        let (_done, done) = Event::pending();
        for is_submitted in [true, false] {
            let in_flight = InFlight::new(2);
            let (source, host) = Event::pending();
            in_flight.wait_for_host([&host].into_iter());
            in_flight.add(&[0], is_submitted, &done);
            in_flight.add(&[1], is_submitted, &done);
            in_flight.admit(&[0, 1], 1);
            assert!(in_flight.oldest_of(&in_flight.devices[1], 1).is_none());
            source.complete(Err(Error::aborted("the host has acted all the same")));
            assert!(in_flight.oldest_of(&in_flight.devices[0], 1).is_some());
        }
    }

    #[test]
    fn a_launch_waits_for_the_host_of_later_launches_only_if_it_may_be_submitted_after_them() {
        let (_done, done) = Event::pending();
        let in_flight = InFlight::new(2);
        in_flight.add(&[0], true, &done);
        in_flight.add(&[1], false, &done);
        let (_source, host) = Event::pending();
        in_flight.wait_for_host([&host].into_iter());
        let waits = [0, 1].map(|device| in_flight.oldest_of(&in_flight.devices[device], 1).is_some());
        assert_eq!(waits, [true, false]);
    }
}
