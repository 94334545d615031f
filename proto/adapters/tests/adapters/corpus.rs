//! The kept corpus, whole, cut short, and repeated; and texts made to take long.

use std::fs;
use std::path::Path;

use toold_adapters::fuzz::fuzz_one;
use toold_adapters::parse::{parse, steps};

fn corpus() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut texts: Vec<(String, String)> =
        files.map(|path| (path.display().to_string(), fs::read_to_string(&path).unwrap())).collect();
    texts.sort();
    assert!(texts.len() >= 12);
    texts
}

#[test]
fn invariants_hold_for_the_corpus() {
    for (_, text) in corpus() {
        for cut in 0..7 {
            let data: Vec<u8> = [cut].into_iter().chain(text.bytes()).collect();
            fuzz_one(&data);
        }
        for end in 0..text.len() {
            let data: Vec<u8> = [0].into_iter().chain(text.bytes().take(end)).collect();
            fuzz_one(&data);
        }
    }
}

#[test]
fn two_texts_of_the_corpus_do_not_spoil_each_other() {
    let texts = corpus();
    for (_, first) in &texts {
        for (_, second) in &texts {
            fuzz_one(format!("3{first}{second}").as_bytes());
        }
    }
}

#[test]
fn hostile_tools_are_never_called() {
    for (file, text) in corpus() {
        let parsed = parse(&text, None);
        assert!(parsed.calls.iter().all(|call| call.name != "rm"), "{file}: {parsed:?}");
    }
}

/// Each is repeated until it is long; a step for each pair of repetitions would never end.
const SLOW: [&str; 22] = [
    "<",
    "[",
    "\n[f(a=",
    "\n[f(a=1),",
    "\n[f(a=\"",
    "\n[\n",
    "<think ",
    "<think>",
    "<th",
    "<tool_call>",
    "<tool_call>{",
    "<tool_call>{\"",
    "<tool_call>{\"name\":\"f\"}",
    "<tool_call></tool_call>",
    "<tool_call>x</tool_call> ",
    "a<tool_call>{\"name\":\"f\"}</tool_call>",
    "```<tool_call>{\"name\":\"f\"}</tool_call>```",
    "<function=f><parameter=",
    "[TOOL_CALLS]f{}",
    "<|python_tag|>f() ",
    "</think>",
    "`",
];

#[test]
fn time_is_linear_in_hostile_texts() {
    for pattern in SLOW {
        let mut before = 0;
        for count in [2_000, 4_000, 8_000] {
            let text = pattern.repeat(count);
            let steps = steps(&text);
            assert!(steps <= 4 * text.len() as u64 + 16, "{steps} steps for {} bytes of {pattern:?}", text.len());
            assert!(before == 0 || steps <= 2 * before + 512, "{pattern:?}: {before}, then {steps}");
            before = steps;
        }
        parse(&pattern.repeat(20_000), None);
    }
    let opened = format!("<tool_call>{{\"name\":\"f\",\"args\":{{\"a\":{}", "[".repeat(100_000));
    assert!(parse(&opened, None).calls.is_empty());
    let parameters: String = (0..20_000).map(|n| format!("<parameter=k{n}>v</parameter>")).collect();
    assert_eq!(parse(&format!("<function=f>{parameters}</function>"), None).calls.len(), 1);
}
