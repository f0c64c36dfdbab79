//! Printing to standard output and standard error.

use std::borrow::Cow;
use std::io::{ErrorKind, Write};

/// Prints to standard output. A closed pipe, such as that of `head`, is not an error.
///
/// # Errors
///
/// Returns an error if the text cannot be written, for example because the disk is full.
pub fn print(text: &str) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(format!("standard output: {error}")),
        _ => Ok(()),
    }
}

/// Prints a line to standard error. Ignores a failure to write, because it could not be reported.
pub fn print_error(line: &str) {
    let _ = std::io::stderr().write_all(format!("{}\n", visible(line)).as_bytes());
}

/// Escapes control characters in a plugin's text, as Rust writes them, so that a terminal does not execute them, and those that change
/// the direction of writing.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    let changes_direction = |c: char| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_obeyed = |c: char| c.is_control() && c != '\n' && c != '\t' || changes_direction(c);
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| if is_obeyed(c) { c.escape_default().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(shown).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_and_lines_stay() {
        assert_eq!(visible("a\n\tb\u{1b}[31mc\r\u{9b}d"), "a\n\tb\\u{1b}[31mc\\r\\u{9b}d");
        assert_eq!(visible("ä"), "ä");
        assert_eq!(visible("a\u{202e}b"), "a\\u{202e}b");
    }
}
