//! The outcome of a replay.

use std::collections::BTreeMap;

/// The outcome of a replay.
#[derive(Debug, Clone, Default)]
pub(super) struct Report {
    pub(super) programs: usize,
    pub(super) executions: usize,
    pub(super) same: usize,
    pub(super) close: usize,
    /// Descriptions of the results that do not differ, if they were requested.
    pub(super) alike: Vec<String>,
    /// Descriptions of the differences.
    pub(super) different: Vec<String>,
    /// The reasons why results could not be compared, and the number of results for each.
    pub(super) skipped: BTreeMap<String, usize>,
    /// Further information for the user.
    pub(super) notes: Vec<String>,
}

impl Report {
    /// Formats the report as text.
    pub(super) fn text(&self) -> String {
        let mut lines: Vec<String> = self.notes.iter().map(|note| format!("note: {note}")).collect();
        lines.extend(self.alike.iter().cloned());
        lines.extend(self.different.iter().map(|difference| format!("DIFFERENT: {difference}")));
        lines.extend(self.skipped.iter().map(|(why, count)| format!("{count} results skipped: {why}")));
        lines.push(format!(
            "{} programs, {} executions, results: {} the same, {} within the tolerance, {} skipped; {} differences",
            self.programs,
            self.executions,
            self.same,
            self.close,
            self.skipped.values().sum::<usize>(),
            self.different.len()
        ));
        lines.join("\n")
    }
}
