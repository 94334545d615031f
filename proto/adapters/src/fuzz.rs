//! Properties of all texts: driven by proptest and by a stored corpus.

use serde_json::Value;
use toold_proto::prompt::{ParsedCall, ParsedPrompt};

use crate::parse::collect::collect;
use crate::parse::known::KnownTools;
use crate::parse::{CallParser, ParsedPiece, parse, parse_with};

/// Reads the bytes as text and panics when an invariant is broken: reading does not panic, a stream gives what the whole
/// gives, every call is made of what literally stands in the text, and none is wrong: there is none in a text without
/// marks, in a quoted text, or of an unknown name, and one that a stream hands out stays one however the text goes on.
///
/// The first byte chooses where the stream is cut.
pub fn fuzz_one(data: &[u8]) {
    let first = data.first().copied().unwrap_or(1);
    let text = String::from_utf8_lossy(data.get(1..).unwrap_or_default());
    let whole = parse(&text, None);
    check_stream(&text, usize::from(first) % 7 + 1, &whole);
    for call in &whole.calls {
        assert!(call.arguments.is_object(), "{call:?}");
        assert!(stands(&text, &call.name), "{:?} does not stand in {text:?}", call.name);
        check_literal(&text, &call.arguments);
    }
    check_names(&text, &whole);
    check_unmarked(&text);
    check_quoted(&text);
    check_kept(&text, first);
}

fn check_stream(text: &str, cut: usize, whole: &ParsedPrompt) {
    let mut parser = CallParser::new(KnownTools::any());
    let mut pieces = Vec::new();
    let chars: Vec<char> = text.chars().collect();
    for chunk in chars.chunks(cut) {
        pieces.extend(parser.push(&chunk.iter().collect::<String>()));
    }
    pieces.extend(parser.finish());
    assert_eq!(collect(pieces), *whole, "cut every {cut} characters: {text:?}");
}

/// Only tools that exist are called, and knowing them makes no call of a text that had none of that name.
fn check_names(text: &str, whole: &ParsedPrompt) {
    let Some(known) = whole.calls.first().map(|call| call.name.clone()) else { return };
    let parsed = parse_with(text, KnownTools::names(std::slice::from_ref(&known)));
    assert!(parsed.calls.iter().all(|call| call.name == known), "of {known:?} alone: {text:?}");
}

/// Each form of a call has at least one of these.
const MARKS: [char; 4] = ['<', '[', '{', '('];

fn check_unmarked(text: &str) {
    let plain = text.replace(MARKS, "");
    assert_eq!(parse(&plain, None).calls, [], "{plain:?}");
}

fn check_quoted(text: &str) {
    // The end of thinking makes thinking of all that came before it, quotes with it.
    if ["think", "channel"].iter().any(|word| text.to_lowercase().contains(word)) {
        return;
    }
    let inline = format!("See `{}` here.", text.replace(['`', '\n', '\r'], ""));
    assert_eq!(parse(&inline, None).calls, [], "{inline:?}");
    let fenced = format!("Note:\n```\nso: {}\n```\nThat was it.", text.replace('`', ""));
    assert_eq!(parse(&fenced, None).calls, [], "{fenced:?}");
}

/// Texts that close, quote, repeat or take back.
const GOING_ON: [&str; 20] = [
    "",
    "`",
    "```",
    "\n```\n",
    "\"",
    "'",
    "}",
    "]",
    ")",
    ",",
    ";",
    "\\",
    " x",
    "\n",
    "</tool_call>",
    "<|im_end|>",
    "<tool_call>",
    "</function>",
    "</think>",
    "[/THINK]",
];

fn check_kept(text: &str, first: u8) {
    let length = text.chars().count();
    let head: String = text.chars().take(length * usize::from(first) / 255).collect();
    check_kept_after(&head);
    check_kept_after(&format!("<think>so</think>{head}"));
}

fn check_kept_after(head: &str) {
    let pieces = CallParser::new(KnownTools::any()).push(head);
    let calls: Vec<ParsedCall> = pieces.into_iter().filter_map(as_call).collect();
    if calls.is_empty() {
        return;
    }
    for rest in GOING_ON {
        let parsed = parse(&format!("{head}{rest}"), None);
        assert!(parsed.calls.starts_with(&calls), "{head:?} gave {calls:?}, with {rest:?} after it {:?}", parsed.calls);
    }
}

fn as_call(piece: ParsedPiece) -> Option<ParsedCall> {
    match piece {
        ParsedPiece::Call(call) => Some(call),
        ParsedPiece::Text(_) | ParsedPiece::Thinking(_) | ParsedPiece::Error(_) | ParsedPiece::WasThinking(_) => None,
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

/// Where a backslash is, or an entity of XML, a string may stand for another one.
fn stands(text: &str, string: &str) -> bool {
    text.contains(['\\', '&']) || text.contains(string)
}
