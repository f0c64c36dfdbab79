//! The timelines of the devices' engines, which the host's profiler shows.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use pjrt_plugin::ext::{Profiler, Timeline, TimelineSpan};
use pjrt_plugin::{AttributeValue, Result};

use crate::Accelerator;

/// The spans by engine, while a host profiles. Profilers have no client.
static SPANS: Mutex<Option<BTreeMap<String, Vec<TimelineSpan>>>> = Mutex::new(None);

fn spans() -> MutexGuard<'static, Option<BTreeMap<String, Vec<TimelineSpan>>>> {
    SPANS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds what an engine has done since `start`, if a host profiles.
pub(crate) fn record(engine: &str, name: String, start: Instant, attributes: Vec<(String, AttributeValue)>) {
    if let Some(by_engine) = &mut *spans() {
        let span = TimelineSpan { name, start, duration: start.elapsed(), attributes };
        by_engine.entry(engine.to_owned()).or_default().push(span);
    }
}

impl Profiler for Accelerator {
    fn start_tracing() -> Result<()> {
        *spans() = Some(BTreeMap::new());
        Ok(())
    }

    fn stop_tracing() -> Result<Vec<Timeline>> {
        let by_engine = spans().take().unwrap_or_default();
        Ok(by_engine.into_iter().map(|(name, spans)| Timeline { name, spans }).collect())
    }
}
