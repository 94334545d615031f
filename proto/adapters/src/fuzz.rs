//! Properties of all texts: driven by proptest and by a stored corpus.

use serde_json::Value;

use crate::parse::collect::collect;
use crate::parse::known::KnownTools;
use crate::parse::{CallParser, parse};

/// Reads the bytes as text and panics when an invariant is broken: reading does not panic, a
/// stream gives what the whole gives, and every call is made of what literally stands in the text.
///
/// The first byte chooses where the stream is cut.
pub fn fuzz_one(data: &[u8]) {
    let cut = usize::from(data.first().copied().unwrap_or(1)) % 7 + 1;
    let text = String::from_utf8_lossy(data.get(1..).unwrap_or_default());
    let whole = parse(&text, None);

    let mut parser = CallParser::new(KnownTools::any());
    let mut pieces = Vec::new();
    let chars: Vec<char> = text.chars().collect();
    for chunk in chars.chunks(cut) {
        pieces.extend(parser.push(&chunk.iter().collect::<String>()));
    }
    pieces.extend(parser.finish());
    assert_eq!(collect(pieces), whole, "cut every {cut} characters: {text:?}");

    for call in &whole.calls {
        assert!(call.arguments.is_object(), "{call:?}");
        assert!(stands(&text, &call.name), "{:?} does not stand in {text:?}", call.name);
        check_literal(&text, &call.arguments);
    }
}

fn check_literal(text: &str, value: &Value) {
    match value {
        Value::Null | Value::Bool(_) => {}
        // A float may be written in many ways.
        Value::Number(number) if number.is_f64() => {}
        Value::Number(number) => assert!(text.contains(&number.to_string()), "{number} does not stand in {text:?}"),
        Value::String(string) => assert!(stands(text, string), "{string:?} does not stand in {text:?}"),
        Value::Array(items) => items.iter().for_each(|item| check_literal(text, item)),
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            assert!(stands(text, key), "{key:?} does not stand in {text:?}");
            check_literal(text, value);
        }),
    }
}

/// Where a backslash is, a string may stand for another one.
fn stands(text: &str, string: &str) -> bool {
    text.contains('\\') || text.contains(string)
}
