//! The report as text.

use std::fmt::Write as _;

use super::report::{Report, Slot, Step};
use crate::process::output::visible;
use crate::requirements::Profile;

/// The lines of a report, which consist of a name and a value.
#[derive(Default)]
struct Lines(String);

impl Lines {
    /// Appends a line. Indents the further lines of a plugin's text, so that they do not look like lines of
    /// the report.
    fn add(&mut self, name: &str, value: &str) {
        let value = visible(value).trim_end().replace('\n', "\n             ");
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "{name:<12} {value}");
    }
}

impl Report {
    /// Returns the report as text; `all` lists every slot.
    #[must_use]
    pub fn text(&self, all: bool) -> String {
        let mut lines = Lines::default();
        lines.add("file", &format!("{}, {:.1} MB", self.path.display(), self.file_size as f64 / 1e6));
        lines.add("exports", &format!("{}; {} symbols in total", list(&self.exports), self.num_exports));
        if self.load_error.is_none() {
            self.add_table(all, &mut lines);
            self.add_client(&mut lines);
            self.add_profiles(&mut lines);
        }
        if !self.printed.is_empty() {
            lines.add("printed", &self.printed);
        }
        for fault in &self.faults {
            lines.add("WRONG", fault);
        }
        lines.0
    }

    /// Appends the version, the functions and the extensions of the table.
    fn add_table(&self, all: bool, lines: &mut Lines) {
        lines.add("version", &format!("{}.{}", self.version.0, self.version.1));
        let states = [Slot::Real, Slot::Stub, Slot::Function, Slot::Null, Slot::Absent]
            .map(|state| format!("{} {}", self.count(state), state.name()));
        lines.add("functions", &format!("table of {} bytes; {}", self.table_size, states.join(", ")));
        for (name, state) in &self.slots {
            if all || matches!(state, Slot::Null | Slot::Stub) {
                lines.add("", &format!("{:<10} {name}", state.name()));
            }
        }
        let extensions: Vec<String> =
            self.extensions.iter().map(|(number, name, _)| format!("{name} ({number})")).collect();
        let extensions =
            if self.endless_extensions { "a chain that does not end".to_owned() } else { list(&extensions) };
        lines.add("extensions", &extensions);
    }

    /// Appends the plugin's attributes, and what is known of its client.
    fn add_client(&self, lines: &mut Lines) {
        for (name, value) in &self.attributes {
            lines.add("attribute", &format!("{name} = {value}"));
        }
        lines.add("initialize", &self.initialize.text());
        lines.add("client", &self.client.text());
        if let Some(platform) = &self.platform {
            lines.add("platform", platform);
        }
        for device in &self.devices {
            lines.add("device", device);
        }
    }

    /// Appends the requirements of each host that the plugin does not meet.
    fn add_profiles(&self, lines: &mut Lines) {
        for profile in Profile::ALL {
            let missing = self.missing_for(profile);
            let verdict = if !missing.is_empty() {
                format!("lacks {}", list(&missing))
            } else if self.client == Step::Ok {
                "nothing is known to be missing; `cargo pjrt conform` tests the behavior".to_owned()
            } else {
                "nothing is known to be missing, but no client could be created".to_owned()
            };
            lines.add(profile.name(), &format!("{}: {verdict}", profile.title()));
        }
    }
}

/// Formats a list of names.
fn list(words: &[String]) -> String {
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}
