//! Operations that are wrong only if the host does not wait between them.

use std::time::Duration;

use crate::conform::harness::{Finding, HAZARD, NO_HAZARD, TOO_EARLY, Verdict};
use pjrt_testing::host::Error;

/// The description of a wrong array, or `None`.
pub(super) type Wrong = Option<String>;

/// The time after which operations whose events are complete have certainly ended.
pub(super) const MOMENT: Duration = Duration::from_millis(50);

/// The waits of the host between two operations.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    /// Nothing: the plugin orders them.
    Never,
    /// It waits for the event of the first operation.
    ForEvents,
    /// It also waits for a [`MOMENT`].
    Longer,
}

impl Waits {
    /// Waits for operations, for whose events `wait` waits.
    pub(super) fn until(self, wait: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        if self != Self::Never {
            wait()?;
        }
        if self == Self::Longer {
            std::thread::sleep(MOMENT);
        }
        Ok(())
    }
}

/// Runs a case without waiting between its operations. If something is wrong, runs it again and waits, which tells a hazard
/// from events that are complete too early, and from operations that are wrong by themselves. `cause` says what a plugin with
/// the hazard probably does.
pub(super) fn is_without_hazard(cause: &str, case: impl Fn(Waits) -> Result<Wrong, Finding>) -> Verdict {
    let Some(wrong) = case(Waits::Never)? else { return Ok(()) };
    if wrong.contains(TOO_EARLY) {
        return Err(Finding::Wrong(wrong));
    }
    if case(Waits::ForEvents)?.is_none() {
        return Err(Finding::Wrong(format!("{wrong}, {HAZARD}: the plugin probably {cause}")));
    }
    Err(Finding::Wrong(match case(Waits::Longer)? {
        None => format!(
            "{wrong}, also if the host waits for the event of each operation, but none if it waits a moment longer: {TOO_EARLY}"
        ),
        Some(_) => format!(
            "{wrong}, {NO_HAZARD}. The plugin probably performs one of them wrongly by itself, or both use the same memory"
        ),
    }))
}
