//! Replays a recorded session on a plugin and compares the results.

mod difference;
mod options;
mod replayer;
mod report;

pub(crate) use difference::{Difference, difference, in_words};
pub use options::Options;
pub(crate) use options::tolerance;
pub(crate) use replayer::{Observed, Replayer};

use super::log::{Entry, Log};
use crate::process::child;
use crate::process::output::{self, visible};
use pjrt_testing::host::Plugin;

/// Replays a log, and prints the outcome. Returns `true` if nothing differs.
///
/// # Errors
///
/// Returns an error if the log cannot be read, if the plugin cannot be used, or if nothing could be compared.
pub fn replay(options: &Options) -> Result<bool, String> {
    let log = Log::open(&options.log)?;
    child::next("loading the plugin");
    let plugin =
        Plugin::load(&options.plugin).map_err(|error| format!("{}: {error}", options.plugin.display()))?;
    child::next("initializing the plugin");
    plugin.initialize().map_err(|error| error.to_string())?;
    let mut replayer = Replayer::new(&log, plugin, options);
    for (index, entry) in log.entries.iter().enumerate() {
        child::next(&format!("replaying entry {} of the log: {}", index + 1, entry.name()));
        replayer.step(index, entry)?;
    }
    child::next("destroying the remaining objects");
    let report = replayer.end();
    output::print(&format!("{}\n", visible(&report.text())))?;
    if log.is_cut_off {
        return Err(format!(
            "{}: the log ends in the middle of entry {}, because the host crashed or the file is damaged. The entries before it were \
             replayed",
            options.log.display(),
            log.entries.len() + 1
        ));
    }
    if report.same + report.close + report.different.len() == 0 {
        let why = if log.entries.iter().any(|entry| matches!(entry, Entry::Read { .. })) {
            "no result could be compared"
        } else {
            "there is nothing to compare, because the host read no result during the recording"
        };
        return Err(format!("{}: {why}", options.log.display()));
    }
    Ok(report.different.is_empty())
}
