//! The timelines of the devices, which the host's profiler shows.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use pjrt_plugin::Result;
use pjrt_plugin::ext::{Profiler, Timeline, TimelineSpan};

use crate::client::Iree;

/// The spans by device, while a host profiles. Profilers have no client.
static SPANS: Mutex<Option<BTreeMap<String, Vec<TimelineSpan>>>> = Mutex::new(None);

fn spans() -> MutexGuard<'static, Option<BTreeMap<String, Vec<TimelineSpan>>>> {
    SPANS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds what a device has done since `start`, if a host profiles.
pub(crate) fn record(device: &str, name: String, start: Instant) {
    if let Some(by_device) = &mut *spans() {
        let span = TimelineSpan { name, start, duration: start.elapsed(), attributes: Vec::new() };
        by_device.entry(device.to_owned()).or_default().push(span);
    }
}

impl Profiler for Iree {
    fn start_tracing() -> Result<()> {
        *spans() = Some(BTreeMap::new());
        Ok(())
    }

    fn stop_tracing() -> Result<Vec<Timeline>> {
        let by_device = spans().take().unwrap_or_default();
        Ok(by_device.into_iter().map(|(name, spans)| Timeline { name, spans }).collect())
    }
}
