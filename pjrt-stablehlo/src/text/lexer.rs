//! Splits text into tokens.

/// What a token is.
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
    /// A character or a few with a meaning of their own: `(`, `->`, `{-#`.
    Punctuation,
    /// A string without its closing quote.
    Unterminated,
    /// A character that no token begins with.
    Unknown,
}

/// A token: what it is and where.
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

fn run(bytes: &[u8], from: usize, accept: impl Fn(u8) -> bool) -> usize {
    bytes[from..].iter().position(|&byte| !accept(byte)).map_or(bytes.len(), |len| from + len)
}

/// The first byte from `at` on that is neither space nor part of a comment. NUL is space, as in MLIR: hosts send the one that
/// ends their strings.
fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    loop {
        at = run(bytes, at, |byte| byte.is_ascii_whitespace() || byte == 0);
        if !bytes[at..].starts_with(b"//") {
            return at;
        }
        at = run(bytes, at, |byte| byte != b'\n');
    }
}

/// The bytes that a quoted text stands for.
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

/// The end of the string that begins with the quote at `start`; `None` when the line ends before.
pub(crate) fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at = run(bytes, at, |byte| !matches!(byte, b'"' | b'\\' | b'\n'));
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            // Whatever is escaped does not end the string.
            b'\\' if at + 2 <= bytes.len() => at += 2,
            _ => return None,
        }
        if at > bytes.len() {
            return None;
        }
    }
}

/// The end of the number that begins at `start`.
fn number(bytes: &[u8], start: usize) -> (Kind, usize) {
    if bytes[start..].starts_with(b"0x") && bytes.get(start + 2).is_some_and(u8::is_ascii_hexdigit) {
        return (Kind::Integer, run(bytes, start + 2, |byte| byte.is_ascii_hexdigit()));
    }
    let digits = |from: usize| run(bytes, from, |byte| byte.is_ascii_digit());
    let mut end = digits(start);
    let mut kind = Kind::Integer;
    if bytes.get(end) == Some(&b'.') {
        kind = Kind::Float;
        end = digits(end + 1);
    }
    if let Some(b'e' | b'E') = bytes.get(end) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if exponent > end + 1 + sign {
            return (Kind::Float, exponent);
        }
    }
    (kind, end)
}

/// The next token from byte `at` on.
pub(super) fn next(text: &str, at: usize) -> Token {
    let bytes = text.as_bytes();
    let start = skip_space(bytes, at);
    let Some(&first) = bytes.get(start) else {
        return Token { kind: Kind::End, start, end: start };
    };
    let sigil = |kind| {
        let end = run(bytes, start + 1, is_suffix);
        if end > start + 1 { (kind, end) } else { (Kind::Punctuation, end) }
    };
    let (kind, end) = match first {
        b'a'..=b'z' | b'A'..=b'Z' | b'_' => (Kind::Bare, run(bytes, start, is_bare)),
        b'0'..=b'9' => number(bytes, start),
        b'"' => match string_end(bytes, start) {
            Some(end) => (Kind::String, end),
            None => (Kind::Unterminated, run(bytes, start, |byte| byte != b'\n')),
        },
        b'%' => sigil(Kind::Value),
        b'^' => sigil(Kind::Caret),
        b'@' if bytes.get(start + 1) == Some(&b'"') => match string_end(bytes, start + 1) {
            Some(end) => (Kind::Symbol, end),
            None => (Kind::Unterminated, run(bytes, start, |byte| byte != b'\n')),
        },
        b'@' => sigil(Kind::Symbol),
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
        assert_eq!(tokens("\"abc\nd"), [(Kind::Unterminated, "\"abc"), (Kind::Bare, "d")]);
        assert_eq!(tokens("\"abc\\"), [(Kind::Unterminated, "\"abc\\")]);
        assert_eq!(tokens("é"), [(Kind::Unknown, "é")]);
    }
}
