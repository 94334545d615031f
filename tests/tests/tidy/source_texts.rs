//! The comments and the string literals of a Rust source.

use std::sync::LazyLock;

use regex::Regex;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TextKind {
    Comment,
    Literal,
}

/// A comment, a string literal, or a character, whose quotes and slashes begin nothing.
static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r##"(?s)'(?:\\u\{\w+\}|\\.|[^\\'])'|(?P<comment>//[^\n]*|/\*.*?\*/)|\bb?r(?P<raw>"[^"]*"|#+".*?"#+)|"(?P<literal>(?:\\.|[^\\"])*)""##,
    )
    .unwrap()
});

/// The comments and string literals of a source, each line of them with its number, from 1.
pub(crate) fn source_texts(source: &str) -> Vec<(usize, TextKind, &str)> {
    let mut texts = Vec::new();
    for found in TOKEN.captures_iter(source) {
        let (kind, text) = match (found.name("comment"), found.name("literal").or_else(|| found.name("raw"))) {
            (Some(comment), _) => (TextKind::Comment, comment),
            (None, Some(literal)) => (TextKind::Literal, literal),
            (None, None) => continue,
        };
        let first = source[..text.start()].matches('\n').count() + 1;
        texts.extend(text.as_str().lines().enumerate().map(|(number, line)| (first + number, kind, line)));
    }
    texts
}

#[test]
fn comments_and_literals_are_found() {
    let source =
        "let a = \"one // two\"; // three \"four\"\nlet b = ('\"', '/'); /* five\nsix */ r#\"seven \"eight\"\"#";
    let texts = source_texts(source);
    let of = |kind| texts.iter().filter(|text| text.1 == kind).map(|text| (text.0, text.2)).collect::<Vec<_>>();
    assert_eq!(of(TextKind::Comment), [(1, "// three \"four\""), (2, "/* five"), (3, "six */")]);
    assert_eq!(of(TextKind::Literal), [(1, "one // two"), (3, "#\"seven \"eight\"\"#")]);
}
