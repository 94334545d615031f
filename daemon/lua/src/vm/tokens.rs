//! The words of a Lua source text, for looking at it before it is compiled.

/// A token and its place. Comments and white space are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    start: u32,
    end: u32,
    /// From 1.
    pub(crate) line: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// A name or a keyword.
    Name,
    Literal,
    Symbol,
}

impl Token {
    pub(crate) fn text<'a>(&self, source: &'a [u8]) -> &'a [u8] {
        &source[self.range()]
    }

    pub(crate) fn range(&self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// Longer symbols first.
const SYMBOLS: [&[u8]; 20] = [
    b"...", b"..=", b"//=", b"..", b"::", b"==", b"~=", b"<=", b">=", b"//", b"<<", b">>", b"->", b"+=", b"-=", b"*=",
    b"/=", b"%=", b"^=", b"!=",
];

/// All tokens of a text of less than 4 GiB. Text that is no Lua gives some tokens too.
pub(crate) fn tokens(source: &[u8]) -> Vec<Token> {
    let mut tokens = Vec::new();
    let (mut at, mut line) = (0, 1);
    while let Some(&byte) = source.get(at) {
        let rest = &source[at..];
        let (length, kind) = match byte {
            b' ' | b'\t' | b'\r' | b'\n' | b'\x0b' | b'\x0c' => (1, None),
            b'-' if rest.starts_with(b"--") => (comment(rest), None),
            b'[' if long_bracket(rest).is_some() => (long_string(rest), Some(TokenKind::Literal)),
            b'"' | b'\'' | b'`' => (string(rest, byte), Some(TokenKind::Literal)),
            b'0'..=b'9' => (number(rest), Some(TokenKind::Literal)),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => (prefix(rest, is_word), Some(TokenKind::Name)),
            _ => {
                let symbol = SYMBOLS.iter().find(|symbol| rest.starts_with(symbol));
                (symbol.map_or(1, |symbol| symbol.len()), Some(TokenKind::Symbol))
            }
        };
        if let Some(kind) = kind {
            tokens.push(Token { kind, start: at as u32, end: (at + length) as u32, line });
        }
        line += rest[..length].iter().filter(|byte| **byte == b'\n').count() as u32;
        at += length;
    }
    tokens
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn prefix(text: &[u8], fits: impl Fn(u8) -> bool) -> usize {
    text.iter().position(|byte| !fits(*byte)).unwrap_or(text.len())
}

fn number(text: &[u8]) -> usize {
    let mut end = prefix(text, |byte| is_word(byte) || byte == b'.');
    // The sign of an exponent belongs to the number, except in hexadecimal ones.
    if matches!(text[end - 1], b'e' | b'E') && !text.starts_with(b"0x") && matches!(text.get(end), Some(b'+' | b'-')) {
        end += 1 + prefix(&text[end + 1..], is_word);
    }
    // In `1..2` the dots are an operator.
    text[..end].windows(2).position(|pair| pair == b"..").unwrap_or(end)
}

fn comment(text: &[u8]) -> usize {
    match long_bracket(&text[2..]) {
        Some(_) => 2 + long_string(&text[2..]),
        None => prefix(text, |byte| byte != b'\n'),
    }
}

/// How many `=` an opening long bracket has.
fn long_bracket(text: &[u8]) -> Option<usize> {
    let level = prefix(text.strip_prefix(b"[")?, |byte| byte == b'=');
    (text.get(level + 1) == Some(&b'[')).then_some(level)
}

fn long_string(text: &[u8]) -> usize {
    let level = long_bracket(text).unwrap_or_default();
    let close = [b"]".as_slice(), &vec![b'='; level], b"]"].concat();
    memchr::memmem::find(text, &close).map_or(text.len(), |at| at + close.len())
}

/// A string in quotes. One with expressions in it is taken up to its end, whatever they are.
fn string(text: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'\\' => at += 1,
            b'\n' if quote != b'`' => return at,
            byte if byte == quote => return at + 1,
            _ => {}
        }
        at += 1;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, expected: &[&str]) {
        let found = tokens(source.as_bytes());
        let texts: Vec<_> = found.iter().map(|token| String::from_utf8_lossy(token.text(source.as_bytes()))).collect();
        assert_eq!(texts, expected);
    }

    #[test]
    fn comments_and_strings_hide_their_words() {
        check("a --[[ goto\nx ]] b -- c\nd", &["a", "b", "d"]);
        check("'it\\'s' .. [==[ ]] goto ]==]", &["'it\\'s'", "..", "[==[ ]] goto ]==]"]);
        check("t[1]=0x1F..1e-3", &["t", "[", "1", "]", "=", "0x1F", "..", "1e-3"]);
        check("\"open\nx", &["\"open", "x"]);
    }

    #[test]
    fn lines_count_inside_long_strings() {
        let found = tokens(b"a = [[\n\n]]\nb");
        assert_eq!(found.last().unwrap().line, 4);
    }

    #[test]
    fn any_bytes_end() {
        for text in [&b"[==["[..], b"--[[", b"'\\", b"`", b"\xff\xfe", b"1..", b"0x", b"5e"] {
            tokens(text);
        }
    }
}
