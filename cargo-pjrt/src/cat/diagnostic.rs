//! Formats errors in programs, with the position in the program.

use std::fmt::Write;

use pjrt_stablehlo::Error;
use pjrt_stablehlo::ir::{Location, LocationKind};

/// The number of characters of a line that are shown on each side of the error.
const CONTEXT: usize = 60;

/// The number of bytes in a line of a hex dump.
const DUMPED: usize = 16;

/// Formats an error and its position in the program, in several lines.
pub(super) fn diagnostic(file: &str, program: &[u8], error: &Error) -> String {
    let text = std::str::from_utf8(program).ok();
    let place = text.and_then(|text| Place::find(text, error));
    let mut report = String::new();
    let mut line = |text: &str| report.extend([text, "\n"]);
    let message = match &place {
        // The position is shown below.
        Some(place) => error.message.strip_prefix(&*place.prefix()).unwrap_or(&error.message),
        None => &error.message,
    };
    line(&format!("error: {message}"));
    match (&place, error.offset) {
        (Some(place), _) => {
            line(&format!(" --> {file}:{}:{}", place.line, place.column));
            let number = place.line.to_string();
            let margin = " ".repeat(number.len());
            line(&format!("{margin} |"));
            line(&format!("{number} | {}", place.shown));
            line(&format!("{margin} | {}^", " ".repeat(place.caret)));
        }
        (None, Some(offset)) => {
            line(&format!(" --> {file}, byte {offset} ({offset:#x}) of {}", program.len()));
            let (dump, caret) = dump(program, offset);
            line("  |");
            line(&format!("  | {dump}"));
            line(&format!("  | {}^^", " ".repeat(caret)));
        }
        (None, None) => line(&format!(" --> {file}")),
    }
    if let Some(op) = &error.op {
        match error.constraint {
            Some(constraint) => {
                line(&format!("  = in {op}, which violates the specification's constraint {constraint}"))
            }
            None => line(&format!("  = in {op}")),
        }
    }
    if !error.location.is_unknown() && !is_in_text(&error.location) {
        line(&format!("  = from the source location {}", error.location.brief()));
    }
    report
}

/// A position in a text.
struct Place {
    /// The line number, from 1.
    line: usize,
    /// The byte in the line, from 1.
    column: usize,
    /// The line, or a part of it.
    shown: String,
    /// The number of characters of `shown` before the position.
    caret: usize,
}

impl Place {
    /// Returns the position that an error refers to.
    fn find(text: &str, error: &Error) -> Option<Place> {
        if let Some(offset) = error.offset {
            let before = text.get(..offset)?;
            let line = before.matches('\n').count() + 1;
            let column = offset - before.rfind('\n').map_or(0, |at| at + 1) + 1;
            return Place::new(text, line, column);
        }
        match error.location.kind() {
            LocationKind::File { line, column, .. } if is_in_text(&error.location) => {
                Place::new(text, *line as usize, *column as usize)
            }
            _ => None,
        }
    }

    fn new(text: &str, line: usize, column: usize) -> Option<Place> {
        let whole = text.split('\n').nth(line.checked_sub(1)?)?;
        let before = whole.get(..column.checked_sub(1)?)?;
        let after = &whole[before.len()..];
        let skipped = before.chars().count().saturating_sub(CONTEXT);
        let visible = |c: char| if c.is_control() { ' ' } else { c };
        let mut shown: String = if skipped > 0 { "...".into() } else { String::new() };
        shown.extend(before.chars().skip(skipped).map(visible));
        let caret = shown.chars().count();
        shown.extend(after.chars().take(CONTEXT).map(visible));
        if after.chars().count() > CONTEXT {
            shown.push_str("...");
        }
        Some(Place { line, column, shown: shown.trim_end().to_owned(), caret })
    }

    /// Returns the prefix of error messages about a text, which states the position.
    fn prefix(&self) -> String {
        format!("line {}, column {}: ", self.line, self.column)
    }
}

/// Returns `true` if a location is a position in the program's own text.
fn is_in_text(location: &Location) -> bool {
    matches!(location.kind(), LocationKind::File { file, .. } if *file == Location::PROGRAM_TEXT)
}

/// Returns the line of a hex dump that contains a byte, and the column of its digits.
fn dump(program: &[u8], offset: usize) -> (String, usize) {
    let start = offset / DUMPED * DUMPED;
    let bytes = program.get(start..).unwrap_or_default();
    let bytes = &bytes[..bytes.len().min(DUMPED)];
    let mut dump = format!("{start:08x} ");
    let caret = dump.len() + 1 + 3 * (offset - start);
    for index in 0..DUMPED {
        match bytes.get(index) {
            Some(byte) => write!(dump, " {byte:02x}").expect("writing to a string does not fail"),
            None => dump.push_str("   "),
        }
    }
    dump.push_str("  ");
    dump.extend(bytes.iter().map(|&byte| if (b' '..=b'~').contains(&byte) { char::from(byte) } else { '.' }));
    (dump, caret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_points_at_the_place_in_long_lines() {
        let text = format!("first\n{}X{}\n", "é".repeat(100), "b".repeat(100));
        let place = Place::new(&text, 2, 201).unwrap();
        assert_eq!(place.shown.chars().nth(place.caret), Some('X'));
        assert!(place.shown.starts_with("...é") && place.shown.ends_with("b..."), "{}", place.shown);
        assert!(Place::new(&text, 2, 2).is_none(), "in the middle of a character");
        assert!(Place::new(&text, 9, 1).is_none());
    }

    #[test]
    fn the_caret_points_at_the_byte() {
        let program: Vec<u8> = (0..40).collect();
        let (line, caret) = dump(&program, 35);
        assert!(line.starts_with("00000020  20 21 22 23 "), "{line}");
        assert_eq!(&line[caret..caret + 2], "23");
        let (line, caret) = dump(&program, 40);
        assert!(line[caret..].starts_with("  "), "{line}");
    }
}
