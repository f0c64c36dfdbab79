//! Launches that have not finished, and the limit on their number.

use std::collections::VecDeque;
use std::sync::Mutex;

use crate::core::event::Event;
use crate::core::sync::lock;

/// The launches on each device of a client that have not finished, in the order in which the host started them.
pub(crate) struct InFlight(Box<[Mutex<VecDeque<Flight>>]>);

/// A launch that has not finished.
#[derive(Clone)]
struct Flight {
    /// The event of its inputs. `None` if it also waits for other actions of the host: callbacks, or launches on other devices.
    inputs: Option<Event>,
    done: Event,
}

impl Flight {
    /// Returns whether the device finishes the launch without further actions of the host.
    fn finishes_alone(&self) -> bool {
        self.inputs.as_ref().is_some_and(Event::is_ready)
    }
}

impl InFlight {
    pub(crate) fn new(num_devices: usize) -> Self {
        Self((0..num_devices).map(|_| Mutex::default()).collect())
    }

    /// Waits until fewer than `limit` launches are in flight on each device. It does not wait for a launch that may need the
    /// thread which waits here, so the number can exceed the limit.
    pub(crate) fn admit(&self, places: &[usize], limit: usize) {
        for device in places.iter().filter_map(|place| self.0.get(*place)) {
            while let Some(oldest) = Self::oldest_of(device, limit.max(1)) {
                let _ = oldest.done.wait();
                lock(device).retain(|flight| !flight.done.is_ready());
            }
        }
    }

    /// Returns the oldest launch of a device to wait for, if there is one.
    fn oldest_of(device: &Mutex<VecDeque<Flight>>, limit: usize) -> Option<Flight> {
        let mut flights = lock(device);
        if flights.len() >= limit {
            flights.retain(|flight| !flight.done.is_ready());
        }
        (flights.len() >= limit).then(|| flights.front().cloned()).flatten().filter(Flight::finishes_alone)
    }

    /// Adds a launch. Its `inputs` are `None` if it also waits for other actions of the host.
    #[cold]
    pub(crate) fn add(&self, places: &[usize], inputs: Option<&Event>, done: &Event) {
        for device in places.iter().filter_map(|place| self.0.get(*place)) {
            let mut flights = lock(device);
            while flights.front().is_some_and(|flight| flight.done.is_ready()) {
                flights.pop_front();
            }
            flights.push_back(Flight { inputs: inputs.cloned(), done: done.clone() });
        }
    }

    /// Returns the number of launches in flight on all devices. A launch on several devices counts on each of them.
    pub(crate) fn count(&self) -> usize {
        let of_device = |device: &Mutex<VecDeque<Flight>>| {
            lock(device).iter().filter(|flight| !flight.done.is_ready()).count()
        };
        self.0.iter().map(of_device).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_limit_is_that_of_each_device_and_waits_for_the_oldest_launch() {
        let in_flight = InFlight::new(2);
        let launches = [Event::pending(), Event::pending()];
        for (_, done) in &launches {
            in_flight.add(&[1], Some(&Event::ready()), done);
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
    fn a_launch_that_needs_the_host_is_not_waited_for() {
        let in_flight = InFlight::new(1);
        let (_source, inputs) = Event::pending();
        let (_first, done) = Event::pending();
        in_flight.add(&[0], Some(&inputs), &done);
        in_flight.admit(&[0], 1);
        let in_flight = InFlight::new(1);
        in_flight.add(&[0], None, &done);
        in_flight.admit(&[0], 1);
    }
}
