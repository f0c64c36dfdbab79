//! The timelines of the devices, which the host's profiler shows.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use pjrt_plugin::ext::TimelineSpan;

/// The spans by device, while a host profiles. Profilers have no client.
static SPANS: Mutex<Option<BTreeMap<String, Vec<TimelineSpan>>>> = Mutex::new(None);

/// Returns the spans of each device, or `None` if no host profiles.
pub(crate) fn spans() -> MutexGuard<'static, Option<BTreeMap<String, Vec<TimelineSpan>>>> {
    SPANS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds what a device has done since `start`, if a host profiles.
pub(crate) fn record(device: &str, name: String, start: Instant) {
    if let Some(by_device) = &mut *spans() {
        let span = TimelineSpan { name, start, duration: start.elapsed(), attributes: Vec::new() };
        by_device.entry(device.to_owned()).or_default().push(span);
    }
}
