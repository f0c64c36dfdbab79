//! The timelines of the devices' engines, which the host's profiler shows.

use pjrt_plugin::ext::{Profiler, Timelines};

use crate::Accelerator;

/// The spans of all engines.
pub(crate) static TIMELINES: Timelines = Timelines::new();

impl Profiler for Accelerator {
    fn timelines() -> Option<&'static Timelines> {
        Some(&TIMELINES)
    }
}
