//! The lexer, which splits text into tokens.

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The end of the text.
    End,
    /// A name or keyword: `stablehlo.add`, `dense`, `f32`.
    Bare,
    /// `12` or `0x1F`.
    Integer,
    /// `1.5e3`.
    Float,
    /// `"text"`, quotes included.
    String,
    /// `%name`.
    Value,
    /// `@name` or `@"name"`.
    Symbol,
    /// `#name` or `#dialect.name`.
    Hash,
    /// `!name` or `!dialect.name`.
    Exclamation,
    /// `^name`.
    Caret,
    /// One or several characters with a fixed meaning: `(`, `->`, `{-#`.
    Punctuation,
    /// A string without a closing quote, or with an escape that MLIR does not define.
    Damaged,
    /// A character that begins no token.
    Unknown,
}

/// A token: its kind and its position in the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
}

fn is_bare(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.')
}

fn is_suffix(byte: u8) -> bool {
    is_bare(byte) || byte == b'-'
}

/// Returns the end of the digits or the name after `%`, `^`, `#` or `!`.
fn suffix(bytes: &[u8], from: usize) -> usize {
    match bytes.get(from) {
        Some(b'0'..=b'9') => run(bytes, from, |byte| byte.is_ascii_digit()),
        _ => run(bytes, from, is_suffix),
    }
}

/// Returns the end of the name or string after `@`.
fn symbol(bytes: &[u8], from: usize) -> usize {
    match bytes.get(from) {
        Some(byte) if byte.is_ascii_alphabetic() || *byte == b'_' => run(bytes, from, is_bare),
        _ => from,
    }
}

fn run(bytes: &[u8], from: usize, accept: impl Fn(u8) -> bool) -> usize {
    bytes[from..].iter().position(|&byte| !accept(byte)).map_or(bytes.len(), |len| from + len)
}

/// Returns the position of the first byte from `at` on that is neither whitespace nor part of a comment. NUL is
/// whitespace, as in MLIR, because hosts send the NUL that terminates their strings.
pub(super) fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    loop {
        at = run(bytes, at, |byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0));
        if !bytes[at..].starts_with(b"//") {
            return at;
        }
        at = comment_end(bytes, at);
    }
}

/// Returns the end of the line, which is the end of a comment in it.
pub(super) fn comment_end(bytes: &[u8], at: usize) -> usize {
    run(bytes, at, |byte| byte != b'\n')
}

/// Returns the bytes that a quoted string represents.
pub(crate) fn unquoted(quoted: &str) -> Vec<u8> {
    let inner = quoted.as_bytes();
    let inner = inner.get(1..inner.len().saturating_sub(1)).unwrap_or_default();
    let mut bytes = Vec::with_capacity(inner.len());
    let mut at = 0;
    while let Some(&byte) = inner.get(at) {
        at += 1;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let hex = |at: usize| inner.get(at).and_then(|&digit| (digit as char).to_digit(16));
        match (hex(at), hex(at + 1)) {
            (Some(high), Some(low)) => {
                bytes.push((high << 4 | low) as u8);
                at += 2;
            }
            _ => {
                let escaped = inner.get(at).copied().unwrap_or(b'\\');
                bytes.push(match escaped {
                    b'n' => b'\n',
                    b't' => b'\t',
                    other => other,
                });
                at += 1;
            }
        }
    }
    bytes
}

/// Returns the end of the string whose opening quote is at `start`; `None` if the line ends before the closing quote,
/// or the string has an escape that MLIR does not define.
pub(crate) fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at = run(bytes, at, |byte| !matches!(byte, b'"' | b'\\' | b'\n'));
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += escape(bytes, at)?,
            _ => return None,
        }
    }
}

/// Returns the length of the escape at a backslash: a quote, a backslash, `n`, `t`, or two hexadecimal digits follow.
fn escape(bytes: &[u8], at: usize) -> Option<usize> {
    match *bytes.get(at + 1..)? {
        [b'"' | b'\\' | b'n' | b't', ..] => Some(2),
        [high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => Some(3),
        _ => None,
    }
}

/// Returns the problem of a string for which [`string_end`] returns `None`. `line` is the rest of its line.
pub(super) fn string_problem(line: &str) -> &'static str {
    let bytes = line.as_bytes();
    let escaped = bytes.iter().enumerate().filter(|&(_, &byte)| byte == b'\\').map(|(at, _)| at);
    let mut next = 0;
    for at in escaped {
        if at < next {
            continue;
        }
        match escape(bytes, at) {
            Some(len) => next = at + len,
            None if at + 1 < bytes.len() => {
                return "a string with an escape other than \\n, \\t, \\\\, \\\" and two hexadecimal digits";
            }
            None => break,
        }
    }
    "a string without a closing quote"
}

/// Returns the kind and the end of the number that begins at `start`.
fn number(bytes: &[u8], start: usize) -> (Kind, usize) {
    if bytes[start..].starts_with(b"0x") && bytes.get(start + 2).is_some_and(u8::is_ascii_hexdigit) {
        return (Kind::Integer, run(bytes, start + 2, |byte| byte.is_ascii_hexdigit()));
    }
    let digits = |from: usize| run(bytes, from, |byte| byte.is_ascii_digit());
    let mut end = digits(start);
    if bytes.get(end) != Some(&b'.') {
        return (Kind::Integer, end);
    }
    end = digits(end + 1);
    if let Some(b'e' | b'E') = bytes.get(end) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if exponent > end + 1 + sign {
            return (Kind::Float, exponent);
        }
    }
    (Kind::Float, end)
}

/// Returns the next token from byte `at` on.
pub(super) fn next(text: &str, at: usize) -> Token {
    let bytes = text.as_bytes();
    let start = skip_space(bytes, at);
    let Some(&first) = bytes.get(start) else {
        return Token { kind: Kind::End, start, end: start };
    };
    let sigil = |kind| {
        let end = suffix(bytes, start + 1);
        if end > start + 1 { (kind, end) } else { (Kind::Punctuation, end) }
    };
    let (kind, end) = match first {
        b'a'..=b'z' | b'A'..=b'Z' | b'_' => (Kind::Bare, run(bytes, start, is_bare)),
        b'0'..=b'9' => number(bytes, start),
        b'"' => match string_end(bytes, start) {
            Some(end) => (Kind::String, end),
            None => (Kind::Damaged, run(bytes, start, |byte| byte != b'\n')),
        },
        b'%' => sigil(Kind::Value),
        b'^' => sigil(Kind::Caret),
        b'@' if bytes.get(start + 1) == Some(&b'"') => match string_end(bytes, start + 1) {
            Some(end) => (Kind::Symbol, end),
            None => (Kind::Damaged, run(bytes, start, |byte| byte != b'\n')),
        },
        b'@' => match symbol(bytes, start + 1) {
            end if end > start + 1 => (Kind::Symbol, end),
            end => (Kind::Punctuation, end),
        },
        b'#' if bytes[start..].starts_with(b"#-}") => (Kind::Punctuation, start + 3),
        b'#' => sigil(Kind::Hash),
        b'!' => sigil(Kind::Exclamation),
        b'{' if bytes[start..].starts_with(b"{-#") => (Kind::Punctuation, start + 3),
        b'-' if bytes[start..].starts_with(b"->") => (Kind::Punctuation, start + 2),
        b':' if bytes[start..].starts_with(b"::") => (Kind::Punctuation, start + 2),
        b'(' | b')' | b'{' | b'}' | b'[' | b']' | b'<' | b'>' | b':' | b',' | b'=' | b'?' | b'*' | b'+'
        | b'-' | b'/' | b'|' => (Kind::Punctuation, start + 1),
        _ => {
            let len = text[start..].chars().next().map_or(1, char::len_utf8);
            (Kind::Unknown, start + len)
        }
    };
    Token { kind, start, end }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<(Kind, &str)> {
        let mut found = Vec::new();
        let mut at = 0;
        loop {
            let token = next(text, at);
            if token.kind == Kind::End {
                return found;
            }
            found.push((token.kind, &text[token.start..token.end]));
            at = token.end;
        }
    }

    #[test]
    fn splits_as_mlir_does() {
        use Kind::*;
        assert_eq!(
            tokens("%0:2 = \"a.b\"(%x#1) -> 1.5e-3 // rest\n0x1F #-} {-# @\"q\\\"\" ^bb0 #a.b !t 2.0"),
            [
                (Value, "%0"),
                (Punctuation, ":"),
                (Integer, "2"),
                (Punctuation, "="),
                (String, "\"a.b\""),
                (Punctuation, "("),
                (Value, "%x"),
                (Hash, "#1"),
                (Punctuation, ")"),
                (Punctuation, "->"),
                (Float, "1.5e-3"),
                (Integer, "0x1F"),
                (Punctuation, "#-}"),
                (Punctuation, "{-#"),
                (Symbol, "@\"q\\\"\""),
                (Caret, "^bb0"),
                (Hash, "#a.b"),
                (Exclamation, "!t"),
                (Float, "2.0"),
            ]
        );
    }

    #[test]
    fn strings_end_on_their_line() {
        assert_eq!(tokens("\"abc\nd"), [(Kind::Damaged, "\"abc"), (Kind::Bare, "d")]);
        assert_eq!(tokens("\"abc\\"), [(Kind::Damaged, "\"abc\\")]);
        assert_eq!(tokens("é"), [(Kind::Unknown, "é")]);
    }

    #[test]
    fn escapes_are_those_of_mlir() {
        assert_eq!(tokens(r#""\n\t\\\"\C3\a9""#), [(Kind::String, r#""\n\t\\\"\C3\a9""#)]);
        for text in [r#""\x41""#, r#""\0""#, r#""\r""#, r#"@"\q""#] {
            assert_eq!(tokens(text), [(Kind::Damaged, text)]);
            assert!(string_problem(text).contains("escape"), "{text}");
        }
        assert_eq!(string_problem(r#""a\\"#), "a string without a closing quote");
    }

    #[test]
    fn names_begin_as_in_mlir() {
        let found = |text| tokens(text).into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        assert_eq!(found("%0a @f-g #1x %-a"), ["%0", "a", "@f", "-", "g", "#1", "x", "%-a"]);
        assert_eq!(found("@0 1e5 1.e5 \x0c"), ["@", "0", "1", "e5", "1.e5", "\x0c"]);
    }
}
