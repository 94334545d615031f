//! The calls of every family, as its models write them: each text whole, in every cut of one character, and with what
//! models put around calls.
//!
//! The cases of a family are calls that [`render_calls`] writes in its format, and texts from public examples.
//! `UPDATE=1 cargo test -p toold-adapters --test adapters formats::` writes the table in FORMATS.md.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};
use toold_adapters::families::{FORMATS, Family};
use toold_adapters::fuzz::fuzz_one;
use toold_adapters::parse::collect::collect;
use toold_adapters::parse::known::KnownTools;
use toold_adapters::parse::{CallParser, parse_with};
use toold_adapters::prompt::calls::render_calls;
use toold_proto::prompt::{ParsedCall, ParsedPrompt};
use toold_proto::tool::{Annotations, Source, SourceKind, Tool, ToolName};

mod examples;

/// The tools that the cases call.
fn tools() -> Vec<Tool> {
    let tool = |name: &str, properties: Value| Tool {
        name: ToolName::parse(name).unwrap(),
        label: name.to_owned(),
        description: String::new(),
        input_schema: json!({"type": "object", "properties": properties}),
        output_schema: None,
        source: Source { kind: SourceKind::Builtin, name: "test".to_owned(), path: None },
        parallelizable: false,
        permissions: Vec::new(),
        annotations: Annotations::default(),
        version: None,
        grammar: None,
        timeout_ms: None,
        cacheable: false,
    };
    vec![
        tool(
            "get_weather",
            json!({"city": {"type": "string"}, "days": {"type": "integer"}, "unit": {"type": ["string", "null"]}}),
        ),
        tool(
            "run",
            json!({"command": {"type": "string"}, "env": {"type": "object"}, "args": {"type": "array"}, "wait": {"type": "boolean"}}),
        ),
        tool("now", json!({})),
    ]
}

fn known() -> KnownTools {
    KnownTools::tools(&tools())
}

fn call(name: &str, arguments: Value) -> ParsedCall {
    ParsedCall { name: name.to_owned(), arguments }
}

/// Calls that every family can write.
fn call_sets() -> Vec<Vec<ParsedCall>> {
    let city = |city: &str| call("get_weather", json!({"city": city}));
    let run = |command: &str| call("run", json!({"command": command}));
    vec![
        vec![city("Paris")],
        vec![city("São Paulo 🦀")],
        vec![call("get_weather", json!({"city": "Oslo", "days": 3}))],
        vec![call("get_weather", json!({"city": "1234567"}))],
        vec![call("get_weather", json!({"city": "true", "unit": null}))],
        vec![call("now", json!({}))],
        vec![city("Paris"), city("Berlin")],
        vec![call("now", json!({})), city("Rome"), call("now", json!({}))],
        vec![run("ls -la | grep 'x y' > \"/tmp/a b\"")],
        vec![run("cat <<EOF\nline one\n\nline two\nEOF")],
        vec![run("\n  leading and trailing  \n")],
        vec![run("echo '{\"name\": \"now\", \"arguments\": {}}'")],
        vec![run("a\\b\\\\c \\n \\u0041 %s $1 & | < >")],
        vec![run("if a < b && b > c { return [1, 2] }")],
        vec![run("<b>bold</b> <!-- comment --> </tool>")],
        vec![run("")],
        vec![call("run", json!({"command": "x", "env": {"A": "1", "B": {"c": [1, 2.5, null, true]}}}))],
        vec![call("run", json!({"command": "x", "args": ["a", "b c", "-1", ""], "wait": true}))],
        vec![call("run", json!({"command": "x", "args": [[1], [2, 3], []], "wait": false}))],
        vec![call("run", json!({"command": "x".repeat(2_000)}))],
    ]
}

/// The texts that models put around calls, with the text and the thinking that is left.
const SURROUNDINGS: &[(&str, &str, &str, &str)] = &[
    ("", "", "", ""),
    ("", "\n", "", ""),
    ("\n\n", "\n\n", "", ""),
    ("<think>I need a tool.</think>\n\n", "", "", "I need a tool."),
    ("I need a tool.\n</think>\n\n", "", "", "I need a tool."),
    ("<think>Not `</think>` yet.</think>", "", "", "Not `</think>` yet."),
    ("", "<|im_end|>", "", ""),
    ("", "\n<|im_end|>\n<|endoftext|>", "", ""),
    ("", "</s>", "", ""),
    ("", "<end_of_turn>", "", ""),
    ("", "<|eot_id|>", "", ""),
    ("", "<｜end▁of▁sentence｜>", "", ""),
];

/// Families whose calls are calls only if nothing else stands in the answer.
fn is_whole_answer(family: Family) -> bool {
    matches!(family, Family::Llama3 | Family::Xlam | Family::Phi4Mini | Family::Gigachat | Family::HyperclovaX)
}

fn streamed(text: &str) -> ParsedPrompt {
    let mut parser = CallParser::new(known());
    let mut pieces = Vec::new();
    for c in text.chars() {
        pieces.extend(parser.push(c.encode_utf8(&mut [0; 4])));
    }
    pieces.extend(parser.finish());
    collect(pieces)
}

#[track_caller]
fn check(family: &str, text: &str, calls: &[ParsedCall], rest: &str, thinking: &str) {
    let parsed = parse_with(text, known());
    assert_eq!(parsed.errors, Vec::<String>::new(), "{family}: {text}");
    assert_eq!(parsed.calls, calls, "{family}: {text}");
    assert_eq!((parsed.text.as_str(), parsed.thinking.as_str()), (rest, thinking), "{family}: {text}");
    assert_eq!(streamed(text), parsed, "{family}, one character at a time: {text}");
}

/// The number of texts that were read for a family.
fn read_all(family: Family) -> usize {
    let mut count = 0;
    for calls in call_sets() {
        let text = render_calls(family, &calls);
        for (before, after, rest, thinking) in SURROUNDINGS {
            check(family.as_str(), &format!("{before}{text}{after}"), &calls, rest, thinking);
            count += 1;
        }
        if !is_whole_answer(family) {
            check(family.as_str(), &format!("I look.\n{text}"), &calls, "I look.", "");
            count += 1;
        }
    }
    for (of, text, expected) in examples::EXAMPLES {
        if *of == family.as_str() {
            let expected: Vec<ParsedCall> = serde_json::from_str(expected).unwrap();
            check(of, text, &expected, "", "");
            count += 1;
        }
    }
    count
}

#[test]
fn every_family_is_read_whole_and_one_character_at_a_time() {
    for family in Family::all() {
        assert!(read_all(family) >= 20);
    }
}

#[test]
fn a_text_may_be_cut_anywhere() {
    for family in Family::all() {
        let text = render_calls(family, &call_sets()[16]);
        let whole = parse_with(&text, known());
        for (cut, _) in text.char_indices() {
            let mut parser = CallParser::new(known());
            let mut pieces = parser.push(&text[..cut]);
            pieces.extend(parser.push(&text[cut..]));
            pieces.extend(parser.finish());
            assert_eq!(collect(pieces), whole, "{family}: cut at {cut} of {text}");
        }
    }
}

#[test]
fn a_text_that_ends_too_early_makes_no_other_call() {
    for family in Family::all() {
        let calls = &call_sets()[17];
        let text = render_calls(family, calls);
        for (cut, _) in text.char_indices() {
            let parsed = parse_with(&text[..cut], known());
            assert!(parsed.calls.is_empty() || parsed.calls == *calls, "{family}: cut at {cut} of {text}: {parsed:?}");
        }
    }
}

#[test]
fn calls_that_are_spoken_of_are_not_made() {
    for family in Family::all().filter(|family| !is_whole_answer(*family)) {
        let text = render_calls(family, &call_sets()[0]);
        let prose = format!("So one calls it:\n```text\nExample:\n{text}\n```\nThat is all.");
        assert_eq!(parse_with(&prose, known()).calls, [], "{family}: {prose}");
        if !text.contains('\n') {
            let prose = format!("One writes `{text}` for that.");
            assert_eq!(parse_with(&prose, known()).calls, [], "{family}: {prose}");
        }
    }
}

/// For fuzzers, whose first byte chooses the cuts.
fn as_input(cut: u8, text: &str) -> Vec<u8> {
    [cut].into_iter().chain(text.bytes()).collect()
}

#[test]
fn the_cases_of_all_families_keep_the_invariants_of_all_texts() {
    for family in Family::all() {
        for (cut, calls) in call_sets().iter().enumerate() {
            let text = render_calls(family, calls);
            for (place, (before, after, ..)) in SURROUNDINGS.iter().enumerate() {
                fuzz_one(&as_input((cut * 40 + place * 20) as u8, &format!("{before}{text}{after}")));
            }
        }
    }
    for (place, (_, text, _)) in examples::EXAMPLES.iter().enumerate() {
        fuzz_one(&as_input(place as u8, text));
        fuzz_one(&as_input(255, text));
    }
}

/// A fuzzer finds no marks of twenty characters by itself.
#[test]
fn the_fuzzer_starts_with_calls_of_all_families() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz/corpus/model_text");
    for family in Family::all() {
        let seed = as_input(b'z', &render_calls(family, &call_sets()[16]));
        let path = folder.join(format!("family_{family}"));
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, &seed).unwrap();
        }
        assert_eq!(std::fs::read(&path).unwrap_or_default(), seed, "run with UPDATE=1 to write {}", path.display());
    }
}

#[test]
fn unreadable_calls_are_errors_that_name_the_format() {
    for (text, family) in [
        ("<｜DSML｜function_calls><｜DSML｜invoke name=\"now\"><｜DSML｜parameter>", "deepseek_v3_2"),
        ("<longcat_tool_call>{\"name\": now}</longcat_tool_call>", "longcat"),
        ("<|tool_calls_section_begin|>now{}<|tool_calls_section_end|>x<|tool_calls_section_begin|>!", "kimi_k2"),
    ] {
        let parsed = parse_with(text, known());
        assert!(parsed.errors.iter().any(|error| error.contains(&format!("(format {family})"))), "{parsed:?}");
    }
}

#[test]
fn calls_in_prose_are_errors_that_name_the_format() {
    for (text, family) in [
        ("I call {\"name\": \"now\", \"arguments\": {}} then.", "llama_3"),
        ("{\"name\": \"now\", \"parameters\": {}} and that is it.", "llama_3"),
        ("So: [get_weather(city=\"Paris\")]", "pythonic"),
        ("<|tool_call_start|>[now()]<|tool_call_end|>[now()]<|tool_call_end|>", "pythonic"),
        ("functools[{\"name\": \"now\", \"arguments\": {}", "phi_4_mini"),
        ("function call{\"name\": \"now\", \"arguments\": {x}}", "gigachat"),
        ("<tool_call>get_weather<arg_key>city</arg_key></tool_call>", "glm"),
        ("to=now<|message|><atem:function_calls><atem:invoke name=\"no\"/></atem:function_calls>", "muse"),
    ] {
        let parsed = parse_with(text, known());
        assert!(parsed.calls.len() < 2, "{parsed:?}");
        assert_eq!(parsed.errors.len(), 1, "{parsed:?}");
        assert!(parsed.errors[0].contains(&format!("(format {family})")), "{parsed:?}");
        assert_eq!(streamed(text), parsed);
    }
}

#[test]
fn prose_that_only_looks_like_a_call_is_prose() {
    for text in [
        "Write `{\"name\": \"now\", \"arguments\": {}}` for that.",
        "Like this:\n```json\n{\"name\": \"now\", \"arguments\": {}}\n```\nThat is all.",
        "The entry is {\"name\": \"now\", \"size\": 1}.",
        "It is {\"name\": \"later\", \"arguments\": {}}.",
        "{\"name\": \"now\"}",
        "See [now](https://example.org) and [later(x)].",
        "to=do list: <b>now</b>",
        "to",
        "Example:\n<atem:function_calls>\n<atem:invoke name=\"now\">",
        "The header to=now<|message|> names the tool.",
    ] {
        let parsed = parse_with(text, known());
        assert_eq!((parsed.calls.as_slice(), parsed.errors.as_slice()), (&[][..], &[][..]), "{text}");
        assert_eq!(parsed.text, text);
        assert_eq!(streamed(text), parsed);
    }
}

#[test]
fn a_call_may_be_a_message_of_its_own() {
    let now = [call("now", json!({}))];
    check(
        "gigachat",
        "I look.<|message_sep|>\n\nfunction call<|role_sep|>\n{\"name\": \"now\", \"arguments\": {}}",
        &now,
        "I look.",
        "",
    );
    check(
        "muse",
        " to=self<|message|>I may write <atem:invoke name=\"now\"/>.<|eom|><|start|>assistant to=now<|message|><atem:function_calls><atem:invoke name=\"now\"/></atem:function_calls><|eom|><|start|>assistant to=user<|message|>Done.<|eot|>",
        &now,
        "Done.",
        "I may write <atem:invoke name=\"now\"/>.",
    );
    check(
        "inkling",
        "<|message_model|><|content_thinking|>Hm.<|end_message|><|message_model|>now<|content_invoke_tool_json|>{\"name\": \"now\", \"args\": {}}<|end_message|><|message_model|><|content_text|>Done.<|end_message|>",
        &now,
        "Done.",
        "Hm.",
    );
    check("granite", "<|tool_call|>[{\"name\": \"now\", \"arguments\": {}}]\nDone.", &now, "Done.", "");
}

#[test]
fn the_table_of_formats_is_current() {
    let mut table = String::from(
        "# Formats of calls\n\n\
         The formats in which models write calls, as `prompt.parse` reads them and `prompt.render` teaches them. The cases are \
         texts that the tests read whole and one character at a time.\n\n\
         | family | shape | cases | source |\n|---|---|---|---|\n",
    );
    for format in FORMATS {
        let (family, shape) = (format.family, format.shape.as_str());
        writeln!(table, "| `{family}` | {shape} | {} | {} |", read_all(family), format.source).unwrap();
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("FORMATS.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &table).unwrap();
    }
    let current = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(current, table, "run with UPDATE=1 to write it");
}
