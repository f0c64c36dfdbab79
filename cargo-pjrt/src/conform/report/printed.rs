//! Formats what a plugin printed for reports.

use std::collections::HashSet;

/// Returns the paragraphs of a text, each once: a plugin that panics in many programs prints as many backtraces. Paragraphs that
/// differ only in numbers are equal, and so is a first one of which only the end is left.
pub(super) fn without_repetitions(text: &str) -> String {
    let paragraphs: Vec<&str> = text.trim_end().split("\n\n").collect();
    let kind = |paragraph: &str| paragraph.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
    let kinds: Vec<String> = paragraphs.iter().map(|paragraph| kind(paragraph)).collect();
    let mut seen = HashSet::new();
    let is_cut = |at: usize| at == 0 && kinds[1..].iter().any(|other| other.ends_with(kinds[0].as_str()));
    let shown: Vec<&str> = (0..paragraphs.len())
        .filter(|at| !is_cut(*at) && seen.insert(kinds[*at].as_str()))
        .map(|at| paragraphs[at])
        .collect();
    match paragraphs.len() - shown.len() {
        0 => text.trim_end().to_owned(),
        more => format!("{}\n\nand {more} similar texts", shown.join("\n\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_that_differ_in_numbers_are_shown_once() {
        let panic =
            |number: u32| format!("thread 'a' ({number}) panicked\nlen is {number}\nbacktrace:\n 0: b");
        let text = format!("trace:\n 0: b\n\n{}\n\nother\n\n{}\n", panic(7), panic(12));
        assert_eq!(without_repetitions(&text), format!("{}\n\nother\n\nand 2 similar texts", panic(7)));
        assert_eq!(without_repetitions("one\n\ntwo\n"), "one\n\ntwo");
    }
}
