//! The fuzzers' corpora, replayed: inputs that once failed must never fail again.

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toold_tests::fuzz::{self, ClosedAtEnd, METHODS};

type FuzzTarget = fn(&[u8]);

/// Each fuzz target with the function that it calls.
const TARGETS: &[(&str, FuzzTarget)] = &[
    ("shell_line", toold_host::shell_grammar::fuzz_one),
    ("pattern", toold_engine::policy::fuzz::fuzz_one),
    ("config", toold::config::fuzz::fuzz_user),
    ("project_config", toold::config::fuzz::fuzz_project),
    ("model_text", toold_adapters::fuzz::fuzz_one),
    ("frames", toold_tests::fuzz::frames),
    ("stream", toold_tests::fuzz::stream),
    ("methods", toold_tests::fuzz::methods),
    ("plugin_manifest", toold_lua::fuzz::fuzz_manifest),
    ("plugin_source", toold_lua::fuzz::fuzz_source),
];

fn fuzz_dir() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz"))
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn every_kept_input_still_passes() {
    let _closing = ClosedAtEnd;
    for (target, run) in TARGETS {
        let corpus = fuzz_dir().join("corpus").join(target);
        let inputs = names(&corpus);
        assert!(inputs.len() >= 5, "{target} has no corpus");
        for input in inputs {
            // A panic names no file by itself.
            println!("{target}/{input}");
            run(&std::fs::read(corpus.join(input)).unwrap());
        }
    }
}

#[test]
fn every_target_calls_the_function_that_is_replayed() {
    let files: Vec<String> = TARGETS.iter().map(|(target, _)| format!("{target}.rs")).collect();
    let mut expected = files.clone();
    expected.sort();
    assert_eq!(names(&fuzz_dir().join("fuzz_targets")), expected);
    let manifest = std::fs::read_to_string(fuzz_dir().join("Cargo.toml")).unwrap();
    for (target, file) in TARGETS.iter().map(|(target, _)| target).zip(&files) {
        assert!(manifest.contains(&format!("name = \"{target}\"")), "{target} is in no manifest");
        let source = std::fs::read_to_string(fuzz_dir().join("fuzz_targets").join(file)).unwrap();
        assert!(source.contains("fuzz_target!(|data: &[u8]| toold"), "{source}");
    }
}

/// Input that programs do not expect.
fn odd_value() -> impl Strategy<Value = Value> {
    let plain = [
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(1e308),
        json!(""),
        json!("x"),
        json!("*"),
        json!("/"),
        json!("../.."),
        json!("a\u{0}b"),
        json!("\u{202e}[(\n"),
        json!("y".repeat(5_000)),
        json!([]),
        json!({}),
        json!("shell"),
        json!("always"),
        json!("read"),
    ];
    prop::sample::select(plain.to_vec()).prop_recursive(2, 8, 3, |inner| {
        let key = prop::sample::select(vec!["name", "path", "id", "type", "category", "pattern", ""]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            prop::collection::vec((key, inner), 0..3)
                .prop_map(|members| members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

/// A method with some of the parameters that it knows.
fn odd_request() -> impl Strategy<Value = String> {
    let methods: Vec<(&str, &[String])> =
        METHODS.iter().map(|(method, known)| (method.as_str(), known.as_slice())).collect();
    prop::sample::select(methods).prop_flat_map(|(method, known)| {
        let values = prop::collection::vec(prop::option::weighted(0.7, odd_value()), known.len());
        values.prop_map(move |values| {
            let given = known.iter().cloned().zip(values).filter_map(|(key, value)| Some((key, value?)));
            format!("{method} {}", Value::Object(given.collect::<Map<_, _>>()))
        })
    })
}

const PIECES: &[&str] = &[
    r#"{"jsonrpc":"2.0","id":1,"method":"daemon.status"}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"tools.list","params":{}}"#,
    r#"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}"#,
    r#"{"jsonrpc":"2.0","id":3,"result":1}"#,
    r#"{"jsonrpc":"2.0","id":4,"method":"no.such","params":7}"#,
    "\n",
    "\n",
    "\r\n",
    "[",
    "]",
    ",",
    "{",
    "}",
    "Content-Length: 49\r\n\r\n",
    "\"",
    "\u{fffd}",
];

/// PROPTEST_CASES sets the number of cases.
fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

#[test]
fn odd_parameters_are_answered() {
    let _closing = ClosedAtEnd;
    proptest!(config(), |(request in odd_request())| fuzz::methods(request.as_bytes()));
}

#[test]
fn odd_streams_are_answered() {
    let _closing = ClosedAtEnd;
    let pieces = prop::collection::vec(prop::sample::select(PIECES), 0..16);
    proptest!(config(), |(pieces in pieces, size in 1u8..)| {
        let text = pieces.concat();
        fuzz::stream(text.as_bytes());
        fuzz::frames(&[&[size], text.as_bytes()].concat());
    });
}
