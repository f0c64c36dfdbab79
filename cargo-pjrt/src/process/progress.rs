//! The progress of a run of many parts.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use super::output;

/// Shows on standard error how far a run is: in place on a terminal, and otherwise a line from time to time.
pub(crate) struct Progress {
    total: usize,
    /// The name of the parts, in the plural.
    parts: &'static str,
    is_terminal: bool,
    next: Instant,
}

impl Progress {
    pub(crate) fn new(total: usize, parts: &'static str) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let mut new = Self { total, parts, is_terminal, next: Instant::now() };
        new.next += new.interval();
        new
    }

    /// Returns the time between two lines.
    fn interval(&self) -> Duration {
        Duration::from_millis(if self.is_terminal { 100 } else { 10_000 })
    }

    /// Shows the number of parts that are done, and the name of the next one.
    pub(crate) fn show(&mut self, done: usize, next: &str) {
        if Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + self.interval();
        let line = format!("{done} of {} {}: {next}", self.total, self.parts);
        if self.is_terminal {
            eprint!("\r\x1b[K{}", output::visible(&line));
        } else {
            output::print_error(&line);
        }
    }

    /// Removes the line from a terminal.
    pub(crate) fn end(&self) {
        if self.is_terminal {
            eprint!("\r\x1b[K");
        }
    }
}
