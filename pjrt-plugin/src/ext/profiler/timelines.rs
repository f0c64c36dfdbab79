//! Timelines that a plugin records while a host profiles.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Instant;

use super::{Timeline, TimelineSpan};
use crate::attributes::AttributeValue;
use crate::core::sync::lock;

/// The spans of a plugin's engines, which are recorded while a host profiles. It is a static variable, because profilers have no
/// client; [`Profiler::timelines`](super::Profiler::timelines) returns it.
///
/// ```
/// use pjrt_plugin::ext::Timelines;
/// use std::time::Instant;
///
/// static TIMELINES: Timelines = Timelines::new();
///
/// let start = Instant::now();
/// TIMELINES.record("device 0 copy engine", "upload", start, vec![("bytes".to_owned(), 512_i64.into())]);
/// ```
#[derive(Debug)]
pub struct Timelines(Mutex<Option<BTreeMap<String, Vec<TimelineSpan>>>>);

impl Timelines {
    /// Creates a recorder, which records nothing until a host profiles.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Adds what an engine has done since `start`, if a host profiles.
    pub fn record(
        &self,
        engine: &str,
        name: impl Into<String>,
        start: Instant,
        attributes: Vec<(String, AttributeValue)>,
    ) {
        if let Some(by_engine) = &mut *lock(&self.0) {
            let span = TimelineSpan { name: name.into(), start, duration: start.elapsed(), attributes };
            by_engine.entry(engine.to_owned()).or_default().push(span);
        }
    }

    /// Starts to record, and forgets what was recorded before.
    pub(super) fn start(&self) {
        *lock(&self.0) = Some(BTreeMap::new());
    }

    /// Stops to record, and returns a timeline for each engine.
    pub(super) fn stop(&self) -> Vec<Timeline> {
        let by_engine = lock(&self.0).take().unwrap_or_default();
        by_engine.into_iter().map(|(name, spans)| Timeline { name, spans }).collect()
    }
}

impl Default for Timelines {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_recorded_only_while_a_host_profiles() {
        let timelines = Timelines::new();
        let record = |engine: &str, name: &str| timelines.record(engine, name, Instant::now(), Vec::new());
        record("a", "before");
        timelines.start();
        record("b", "first");
        record("a", "second");
        record("b", "third");
        let found = timelines.stop();
        record("a", "after");
        let names: Vec<(&str, Vec<&str>)> = found
            .iter()
            .map(|timeline| {
                (timeline.name.as_str(), timeline.spans.iter().map(|span| span.name.as_str()).collect())
            })
            .collect();
        assert_eq!(names, [("a", vec!["second"]), ("b", vec!["first", "third"])]);
        assert_eq!(timelines.stop(), []);
    }
}
