//! Halves of surrogate pairs in parameters: they are no characters, so that a string with one cannot be read. JSON parsers
//! tell neither which string it is nor what is wrong with it.

/// Where a value is: the names of members and the indexes of elements that lead to it.
enum ParamStep<'a> {
    Member(&'a str),
    Element(usize),
}

/// A message about the first half of a pair that stands alone in the strings of a JSON text, and where it is. Linear.
pub(super) fn found_in(json: &str) -> Option<String> {
    let mut steps: Vec<ParamStep<'_>> = Vec::new();
    let mut rest = json;
    while let Some(at) = rest.find(['"', '{', '[', '}', ']', ',']) {
        let (found, after) = rest[at..].split_at(1);
        rest = after;
        match found {
            "{" => steps.push(ParamStep::Member("")),
            "[" => steps.push(ParamStep::Element(0)),
            "}" | "]" => _ = steps.pop(),
            "," => {
                if let Some(ParamStep::Element(index)) = steps.last_mut() {
                    *index += 1;
                }
            }
            _ => {
                let end = end_of_string(rest)?;
                let text = &rest[..end];
                rest = &rest[end + 1..];
                if let Some(half) = lone_half(text) {
                    return Some(format!(
                        "{}: {half} is half of a surrogate pair, and no character: send both halves, or leave it out",
                        place(&steps)
                    ));
                }
                if let Some(ParamStep::Member(name)) = steps.last_mut()
                    && rest.trim_start().starts_with(':')
                {
                    *name = text;
                }
            }
        }
    }
    None
}

fn place(steps: &[ParamStep<'_>]) -> String {
    let mut place = String::new();
    for step in steps {
        match step {
            ParamStep::Member("") => {}
            ParamStep::Member(name) if place.is_empty() => place.push_str(name),
            ParamStep::Member(name) => place.push_str(&format!(".{name}")),
            ParamStep::Element(index) => place.push_str(&format!("[{index}]")),
        }
    }
    place
}

/// The length of the string that begins the text, without its quote.
fn end_of_string(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let was_escaped = is_escaped;
        is_escaped = byte == b'\\' && !was_escaped;
        byte == b'"' && !was_escaped
    })
}

/// The escape of the first half that stands alone.
fn lone_half(text: &str) -> Option<&str> {
    let half = |text: &str| {
        let digits = text.strip_prefix("\\u")?.get(..4)?;
        u16::from_str_radix(digits, 16).ok().filter(|unit| (0xd800..=0xdfff).contains(unit))
    };
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        rest = &rest[at..];
        let length = match (half(rest), rest.get(6..).and_then(half)) {
            (None, _) => 2,
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(_), _) => return Some(&rest[..6]),
        };
        rest = rest.get(length..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: Option<(&str, &str)>) {
        let words = expected.map(|(place, half)| {
            format!("{place}: {half} is half of a surrogate pair, and no character: send both halves, or leave it out")
        });
        assert_eq!(found_in(json), words, "{json}");
    }

    #[test]
    fn the_string_with_a_lone_half_is_named() {
        check(r#"{"name": "read", "arguments": {"path": "a\ud800b"}}"#, Some(("arguments.path", r"\ud800")));
        check(
            r#"{"arguments": {"a": [1, {"b": "x"}, "\uD83D\uDE00", "\uDE00"]}}"#,
            Some(("arguments.a[3]", r"\uDE00")),
        );
        check(r#"{"a": {"b": 1}, "c": "\ud800\ud800\udc00"}"#, Some(("c", r"\ud800")));
        check(r#"{"a": {"\udfff": 1}}"#, Some(("a", r"\udfff")));
    }

    #[test]
    fn whole_pairs_and_escaped_backslashes_are_none() {
        for json in
            [r#"{"a": "\ud83d\ude00"}"#, r#"{"a": "\\ud800"}"#, r#"{"a": "\"\\", "b": "ü\n"}"#, "{}", r#"{"a": "\u"#]
        {
            check(json, None);
        }
    }
}
