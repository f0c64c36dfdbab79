//! The report as text.

use std::fmt::Write as _;

use super::report::{OpRow, Outcome, ProgramRow, Report, Tier};
use crate::process::output::visible;

/// The maximum number of characters of a message in a table. JSON contains whole messages.
const MAX_MESSAGE: usize = 160;

/// The maximum number of operations that are listed for a refused program.
const MAX_OPS: usize = 6;

impl Report {
    /// Formats the report.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for tier in &self.tiers {
            self.tier(&mut text, tier);
            text.push('\n');
        }
        let programs = || self.tiers.iter().flat_map(|tier| &tier.programs);
        let count = programs().count();
        let unreadable = programs().filter(|program| program.unreadable.is_some()).count();
        let refused = programs().filter(|program| program.is_refused()).count();
        // Writing to a string does not fail.
        let _ = match &self.plugin {
            Some(plugin) => {
                let accepted =
                    programs().filter(|program| program.outcome == Some(Outcome::Accepted)).count();
                let failures = match self.tiers.iter().any(|tier| tier.required) {
                    true => format!("; {} required programs fail", self.failures()),
                    false => String::new(),
                };
                writeln!(
                    text,
                    "{}: {count} programs, {accepted} accepted, {refused} refused{failures}",
                    plugin.display()
                )
            }
            None => writeln!(text, "{count} programs; --plugin PATH shows which operations a plugin refuses"),
        };
        if unreadable > 0 {
            let _ = writeln!(text, "{unreadable} programs cannot be read");
        }
        visible(&text).into_owned()
    }

    fn tier(&self, text: &mut String, tier: &Tier) {
        let (count, op_width) = (tier.programs.len(), width(tier, |row| row.op.len(), "operation"));
        let type_width = width(tier, |row| row.element_types.join(", ").len(), "element types");
        let last = if self.plugin.is_some() { "plugin" } else { "decomposition" };
        let accepted = tier.programs.iter().filter(|row| row.outcome == Some(Outcome::Accepted)).count();
        let summary = match self.plugin {
            Some(_) => format!("{count} programs, {accepted} accepted"),
            None => format!("{count} programs"),
        };
        let _ = writeln!(text, "{}: {summary}", tier.name);
        let _ = writeln!(
            text,
            "  {:<op_width$}  {:<type_width$}  {:>6}  {:>8}  {last}",
            "operation", "element types", "uses", "programs"
        );
        for row in &tier.ops {
            let last = if self.plugin.is_some() { answer(row) } else { decomposition(row) };
            let line = format!(
                "  {:<op_width$}  {:<type_width$}  {:>6}  {:>8}  {last}",
                row.op,
                row.element_types.join(", "),
                row.uses,
                row.programs
            );
            let _ = writeln!(text, "{}", line.trim_end());
        }
        tier.programs.iter().for_each(|program| program_lines(text, program));
    }
}

/// Writes the lines about a program that cannot be read or is refused.
fn program_lines(text: &mut String, program: &ProgramRow) {
    // Writing to a string does not fail.
    if let Some(why) = &program.unreadable {
        let _ = writeln!(text, "  {}: cannot be read: {}", program.name, line_of(why));
    }
    let Some(Outcome::Refused(why)) = &program.outcome else { return };
    let _ = writeln!(text, "  {}: refused: {}", program.name, line_of(why));
    let ops = &program.refused_ops;
    if ops.is_empty() {
        text.push_str("    the plugin accepts each operation alone\n");
        return;
    }
    let listed = ops[..ops.len().min(MAX_OPS)].join("; ");
    let more = match ops.len().saturating_sub(MAX_OPS) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let _ = writeln!(text, "    operations that are refused alone: {listed}{more}");
}

fn width(tier: &Tier, of: impl Fn(&OpRow) -> usize, title: &str) -> usize {
    tier.ops.iter().map(of).max().unwrap_or(0).max(title.len())
}

/// Returns the plugin's answer to an operation.
fn answer(row: &OpRow) -> String {
    match &row.outcome {
        Some(Outcome::Accepted) => "accepted".to_owned(),
        Some(Outcome::Refused(why)) => format!("refused: {}", line_of(why)),
        Some(Outcome::Partly { refused, forms, difference, error }) => {
            let difference = difference.as_ref().map(|text| format!("; in no accepted form, {text}"));
            format!(
                "{refused} of {forms} forms refused{}: {}",
                difference.unwrap_or_default(),
                line_of(error)
            )
        }
        Some(Outcome::Contains(why)) => format!("contains: {}", line_of(why)),
        None => "-".to_owned(),
    }
}

/// Returns the decomposition of an operation.
fn decomposition(row: &OpRow) -> String {
    row.decomposition.clone().unwrap_or_default()
}

/// Returns the start of a message in one line, without the name of the function.
fn line_of(message: &str) -> String {
    let message = message.strip_prefix("PJRT_Client_Compile: ").unwrap_or(message);
    let message = message.replace(" [PJRT_Client_Compile]", "").replace('\n', " ");
    match message.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{} [...]", &message[..end]),
        None => message,
    }
}
