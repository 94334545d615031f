//! Properties of all texts and all calls.

use proptest::prelude::*;
use serde_json::{Map, Value};
use toold_adapters::families::Family;
use toold_adapters::fuzz::fuzz_one;
use toold_adapters::parse::collect::collect;
use toold_adapters::parse::known::KnownTools;
use toold_adapters::parse::{CallParser, parse, parse_with, steps};
use toold_adapters::prompt::calls::render_calls;
use toold_proto::prompt::ParsedCall;

/// Pieces of text that parsers have failed on, to be combined at random.
const SNIPPETS: &[&str] = &[
    "<tool_call>",
    "</tool_call>",
    "<|tool_call>",
    "<tool_call|>",
    "<|tool_call|>",
    "<|/tool_call|>",
    "<start_function_call>",
    "<end_function_call>",
    "[TOOL_CALLS]",
    "[ARGS]",
    "[CALL_ID]",
    "<function=",
    "f>",
    "</function>",
    "<parameter=",
    "k>",
    "</parameter>",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁sep｜>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁calls▁end｜>",
    "<｜DSML｜invoke name=\"f\">",
    "</｜DSML｜invoke>",
    "<｜DSML｜parameter name=\"k\" string=\"true\">",
    "</｜DSML｜parameter>",
    "<arg_key>",
    "</arg_key>",
    "<arg_value>",
    "</arg_value>",
    "<|tool_call_begin|>",
    "functions.f:0",
    "<|tool_call_argument_begin|>",
    "<|tool_call_end|>",
    "<|open|>",
    "<|close|>",
    "<|sep|>",
    "call tool=\"f\"",
    "argument key=\"k\" type=\"string\"",
    "]<]minimax[>[",
    "<invoke name=\"f\">",
    "</invoke>",
    "<parameter name=\"k\">",
    "<k>",
    "</k>",
    "<|start|>",
    "<|channel|>",
    "commentary to=functions.f ",
    "analysis",
    "<|message|>",
    "<|call|>",
    "<|end|>",
    "<|im_end|>",
    "</s>",
    "<|tools_prefix|>",
    "<|tools_suffix|>",
    "<function_call>",
    "functools",
    "[THINK]",
    "[/THINK]",
    "<function name=\"f\">",
    "<param name=\"k\">",
    "</param>",
    "<|python_tag|>",
    "<|python_start|>",
    "<|python_end|>",
    "<|eot_id|>",
    "<think>",
    "</think>",
    "<THINKING a='b'>",
    "</Thinking>",
    "<think/>",
    "<|channel>thought",
    "<channel|>",
    "```json\n",
    "```",
    "`",
    "\n",
    " ",
    "call:f",
    "call:",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    ",",
    ":",
    "=",
    ";",
    "\"",
    "'",
    "<|\"|>",
    "<escape>",
    "\\",
    "\\u12",
    "/*",
    "*/",
    "//",
    "#",
    "-",
    "1",
    "2.5",
    "007",
    "True",
    "null",
    "text",
    "é",
    "{\"name\":\"f\",\"args\":{\"a\":1}}",
    "{\"name\":\"f\"}",
    "\"name\":",
    "\"args\":",
    "'arguments':",
    "[f(a=1)]",
    "[f(a=\"",
    "f(a=1)",
    "f(",
    "a=",
    "[g()]",
    "{\"a\":\"</tool_call>\"}",
    "<",
    "</",
    "<|",
    "<th",
    "[f",
];

fn soup() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => prop::sample::select(SNIPPETS).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => soup(),
        2 => any::<String>(),
        1 => Just(String::new()),
        1 => Just("5".to_owned()),
        1 => Just("\"5\"".to_owned()),
    ]
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((text(), inner), 0..4).prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

fn call() -> impl Strategy<Value = ParsedCall> {
    let key = prop_oneof![3 => "[a-z][a-z0-9_]{0,8}", 1 => text()];
    let arguments =
        prop::collection::vec((key, json()), 0..5).prop_map(|pairs| pairs.into_iter().collect::<Map<_, _>>());
    ("[a-z][a-z0-9_]{0,20}", arguments)
        .prop_map(|(name, arguments)| ParsedCall { name, arguments: Value::Object(arguments) })
}

fn streamed(text: &str, cut: usize) -> toold_proto::prompt::ParsedPrompt {
    let mut parser = CallParser::new(KnownTools::any());
    let (head, tail) = text.split_at(cut);
    let mut pieces = parser.push(head);
    pieces.extend(parser.push(tail));
    pieces.extend(parser.finish());
    collect(pieces)
}

/// `MODEL_TEXTS` has more of them, for long runs.
fn cases() -> u32 {
    std::env::var("MODEL_TEXTS").ok().and_then(|cases| cases.parse().ok()).unwrap_or(400)
}

/// Calls of all families, with text that may quote, close or spoil them.
fn calls_in_text() -> impl Strategy<Value = String> {
    let family = prop::sample::select(Family::all().collect::<Vec<_>>());
    let block = (family, prop::collection::vec(call(), 1..3)).prop_map(|(family, calls)| render_calls(family, &calls));
    let piece =
        prop_oneof![2 => block, 1 => prop::sample::select(SNIPPETS).prop_map(str::to_owned), 1 => "[a-z .`\\n]{0,12}"];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rendered_calls_are_read_back(calls in prop::collection::vec(call(), 0..4)) {
        let names: Vec<String> = calls.iter().map(|call| call.name.clone()).collect();
        for family in Family::all() {
            let text = render_calls(family, &calls);
            let parsed = parse_with(&text, KnownTools::names(&names));
            prop_assert_eq!(&parsed.errors, &Vec::<String>::new(), "{}: {}", family, text);
            prop_assert_eq!(&parsed.calls, &calls, "{}: {}", family, text);
            prop_assert_eq!(parsed.text, "", "{}: {}", family, text);
        }
    }

    #[test]
    fn stream_agrees_with_the_whole_at_every_split(text in soup()) {
        let whole = parse(&text, None);
        for (cut, _) in text.char_indices() {
            prop_assert_eq!(&streamed(&text, cut), &whole, "cut at {} of {:?}", cut, text);
        }
    }

    #[test]
    fn nothing_in_thinking_is_called(text in soup(), after in soup()) {
        // Without tags of its own, what stands in a block of thinking is thinking whole.
        let text = if text.to_lowercase().contains("think") { text.replace(['<', '['], "") } else { text };
        // Between quotes, a tag is only spoken of.
        let (text, after) = (text.trim_end_matches(['`', '"', '\'']), after.trim_start_matches(['`', '"', '\'']));
        let parsed = parse(&format!("<think>{text}</think>{after}"), None);
        prop_assert_eq!(parsed.calls, parse(&format!("<think></think>{after}"), None).calls);
    }

    #[test]
    fn a_damaged_block_does_not_let_out_what_its_strings_hold(
        outer in prop::sample::select(Family::all().collect::<Vec<_>>()),
        inner in prop::sample::select(Family::all().collect::<Vec<_>>()),
        damage in prop::option::of(prop::sample::select("\"'{}[](),:;=<> x\\\n".chars().collect::<Vec<_>>())),
        place in any::<prop::sample::Index>(),
    ) {
        let evil = ParsedCall { name: "evil".to_owned(), arguments: Value::Object(Map::new()) };
        let held = format!("see {}", render_calls(inner, &[evil]));
        let arguments = Map::from_iter([("a".to_owned(), Value::from("b")), ("s".to_owned(), Value::from(held))]);
        let call = ParsedCall { name: "fine".to_owned(), arguments: Value::Object(arguments) };
        let text = render_calls(outer, &[call]);
        // Without its open tag a block is none; with Python that is `[fine(`.
        let begin = text.find("fine").unwrap() + if outer == Family::Pythonic { 5 } else { 0 };
        let known = KnownTools::names(&["fine".to_owned(), "evil".to_owned()]);
        // And it is a line, which a line break ends.
        let damage = damage.map(|c| if c == '\n' && outer == Family::Pythonic { ' ' } else { c });
        let mut chars: Vec<char> = text.chars().collect();
        let place = begin + place.index(chars.len() - begin);
        match damage {
            Some(c) => chars.insert(place, c),
            None => {
                chars.remove(place);
            }
        }
        let damaged: String = chars.into_iter().collect();
        let parsed = parse_with(&damaged, known);
        prop_assert!(parsed.calls.iter().all(|call| call.name != "evil"), "{}: {:?}", damaged, parsed);
    }

    #[test]
    fn invariants_hold_for_soup(text in soup(), cut in any::<u8>()) {
        let mut data = vec![cut];
        data.extend(text.bytes());
        fuzz_one(&data);
    }

    #[test]
    fn invariants_hold_for_calls_in_text(text in calls_in_text(), cut in any::<u8>()) {
        let mut data = vec![cut];
        data.extend(text.bytes());
        fuzz_one(&data);
    }

    #[test]
    fn invariants_hold_for_bytes(data in prop::collection::vec(any::<u8>(), 0..200)) {
        fuzz_one(&data);
    }

    #[test]
    fn time_is_linear(text in soup()) {
        // A tag of thinking is held for 256 bytes at most, a mark for far less, and a line that
        // turns out to be text is read twice.
        let length = text.chars().count() as u64;
        prop_assert!(steps(&text) <= 6 * length + 16, "{} steps for {} characters: {:?}", steps(&text), length, text);
        let many = text.repeat(20);
        prop_assert!(steps(&many) <= 6 * 20 * length + 16, "{} steps for {} characters: {:?}", steps(&many), 20 * length, text);
    }
}
