//! The reference of `hygge`, which is made from the type stubs: every function has a sentence and an example, and the
//! examples run.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;

use crate::world::{TestPlugins, TestStore};

fn plugins() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins")
}

/// A function as the stubs describe it.
struct StubFunction {
    /// With its parameters.
    call: String,
    sentences: Vec<String>,
    errors: Option<String>,
    parameters: Vec<String>,
    returns: Option<String>,
    example: String,
}

impl StubFunction {
    fn name(&self) -> &str {
        self.call.split('(').next().unwrap()
    }
}

fn functions() -> Vec<StubFunction> {
    let stubs = std::fs::read_to_string(plugins().join("types/hygge.lua")).unwrap();
    let (mut found, mut doc) = (Vec::new(), Vec::new());
    for line in stubs.lines() {
        if let Some(comment) = line.strip_prefix("---") {
            doc.push(comment.to_owned());
            continue;
        }
        let call = line.strip_prefix("function ").and_then(|rest| rest.strip_suffix(" end"));
        if let Some(call) = call.filter(|call| call.starts_with("hygge.") || call.starts_with("ctx.")) {
            found.push(described(call, &doc));
        }
        doc.clear();
    }
    found
}

fn described(call: &str, doc: &[String]) -> StubFunction {
    let (mut sentences, mut example, mut in_example) = (Vec::new(), Vec::new(), false);
    let (mut errors, mut parameters, mut returns) = (None, Vec::new(), None);
    for line in doc {
        if line.starts_with("```") {
            in_example = !in_example;
        } else if in_example {
            example.push(line.clone());
        } else if let Some(why) = line.strip_prefix("Raises: ") {
            errors = Some(why.to_owned());
        } else if let Some(parameter) = line.strip_prefix("@param ") {
            parameters.push(parameter.to_owned());
        } else if let Some(value) = line.strip_prefix("@return ") {
            returns = Some(value.to_owned());
        } else if !line.starts_with('@') && !line.is_empty() {
            sentences.push(line.clone());
        }
    }
    StubFunction { call: call.to_owned(), sentences, errors, parameters, returns, example: example.join("\n") }
}

#[test]
fn every_function_has_a_sentence_and_an_example() {
    let functions = functions();
    assert!(functions.len() >= 48, "{}", functions.len());
    for function in &functions {
        assert!(!function.sentences.is_empty(), "{} has no sentence", function.call);
        assert!(!function.example.is_empty(), "{} has no example", function.call);
    }
}

/// An example with `--> TEXT` runs in a call, whose result is the text; the others are scripts that load.
#[tokio::test(flavor = "multi_thread")]
async fn the_examples_give_what_they_say() {
    for function in functions() {
        let (name, example) = (function.name(), &function.example);
        let Some((body, expected)) = example.split_once(" --> ") else {
            let world = TestPlugins::new(&[("p.lua", example)]).await;
            assert_eq!(world.plugin("p").error, None, "{name}:\n{example}");
            continue;
        };
        let script = format!("hygge.register_tool{{name = 't', execute = function(ctx, input)\n{body}\nend}}");
        let world = TestPlugins::with(&[("p.lua", &script)], |options| {
            options.store = Some(Arc::<TestStore>::default());
        })
        .await;
        assert_eq!(world.plugin("p").error, None, "{name}:\n{example}");
        world.allow_all();
        let result = world.call("t", json!({})).await;
        assert_eq!((result.is_error, result.text()), (false, expected.replace("\\n", "\n")), "{name}:\n{example}");
    }
}

/// The type at the start of an annotation, and the words behind it. A type has spaces in brackets and beside `|` and `:`.
fn type_and_words(text: &str) -> (&str, &str) {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '{' | '[' | '<' => depth += 1,
            ')' | '}' | ']' | '>' => depth -= 1,
            ' ' if depth == 0 => {
                let (before, behind) = (&text[..at], &text[at + 1..]);
                if !before.ends_with(['|', ':', ',']) && !behind.starts_with('|') {
                    return (before, behind);
                }
            }
            _ => {}
        }
    }
    (text, "")
}

#[test]
fn words_behind_a_type_are_no_part_of_it() {
    for (text, kind, words) in [
        ("boolean allowed", "boolean", "allowed"),
        ("string | hygge.SampleRequest A text.", "string | hygge.SampleRequest", "A text."),
        ("{a?: string, b: (x | y)[]} `a` or `b`.", "{a?: string, b: (x | y)[]}", "`a` or `b`."),
        ("fun(a: string): number | nil Which.", "fun(a: string): number | nil", "Which."),
        ("any", "any", ""),
    ] {
        assert_eq!(type_and_words(text), (kind, words));
    }
}

/// `UPDATE=1` writes the page.
#[test]
fn the_page_is_made_from_the_stubs() {
    let mut page =
        "# The functions of `hygge` and `ctx`\n\nMade from [the type stubs](types/hygge.lua), whose types it uses. \
                    Each example runs in a test; behind `-->` stands its result.\n"
            .to_owned();
    for function in functions() {
        let _ = write!(page, "\n## `{}`\n\n{}\n", function.call, function.sentences.join("\n"));
        for parameter in &function.parameters {
            let (name, rest) = parameter.split_once(' ').unwrap();
            let (kind, words) = type_and_words(rest);
            let words = if words.is_empty() { String::new() } else { format!(". {words}") };
            let _ = write!(page, "\n- `{name}`: `{kind}`{words}");
        }
        if !function.parameters.is_empty() {
            page.push('\n');
        }
        if let Some(returns) = &function.returns {
            let (kind, words) = type_and_words(returns);
            let (name, words) = words.split_once(' ').unwrap_or((words, ""));
            let name = if name.is_empty() { String::new() } else { format!("{name}: ") };
            let words = if words.is_empty() { ".".to_owned() } else { format!(". {words}") };
            let _ = write!(page, "\nReturns `{name}{kind}`{words}\n");
        }
        if let Some(errors) = &function.errors {
            let _ = write!(page, "\nRaises: {errors}\n");
        }
        let _ = write!(page, "\n```lua\n{}\n```\n", function.example);
    }
    let path = plugins().join("REFERENCE.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), page, "run this test with UPDATE=1");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_plugins_of_the_porting_guide_load_and_answer() {
    let guide = std::fs::read_to_string(plugins().join("PORTING.md")).unwrap();
    let scripts: Vec<&str> =
        guide.split("```lua\n").skip(1).filter_map(|part| Some(part.split_once("\n```")?.0)).collect();
    assert_eq!(scripts.len(), 5);
    let files: Vec<(String, &str)> =
        scripts.into_iter().enumerate().map(|(number, script)| (format!("p{number}.lua"), script)).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, script)| (name.as_str(), *script)).collect();
    let world = TestPlugins::new(&files).await;
    let errors: Vec<_> = world.host.list().iter().filter_map(|plugin| plugin.error.clone()).collect();
    assert_eq!(errors, []);
    world.allow_all();
    let program = world.work().join(".agents/tools/word_count");
    let text = guide.split_once("```python\n").and_then(|(_, rest)| rest.split_once("```")).unwrap().0;
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(world.text("word_count", json!({"text": "a b c"})).await.trim(), "3");
    assert_eq!(world.text("repeat_text", json!({"text": "ab"})).await, "abab");
    assert_eq!(world.text("trimmed", json!({"text": "  a "})).await, "a");
}

/// The answers of hygge's own host, recorded there, for what it passes to plugins and takes from them.
const HYGGE: [(&str, &str); 12] = [
    ("return hygge.exec('echo', {'a', nil, 'b'}).stdout", "a b\n"),
    ("return hygge.exec('echo', {'a', true}).stdout", "a true\n"),
    ("return hygge.exec('echo', {1, 2.5}).stdout", "1 2.5\n"),
    ("return hygge.exec('echo', {'a'}, {timeout = '30'}).stdout", "a\n"),
    ("return hygge.exec('sh', {'-c', 'exit 7'}).code", "7"),
    ("return hygge.exec('sh', {'-c', 'kill -9 $$'}).code", "-1"),
    ("return hygge.exec('sleep', {'5'}, {timeout = '50ms'}).code", "-1"),
    ("return #hygge.exec('printf', {[[\\211PNG\\r\\n\\377]]}).stdout", "7"),
    (
        "local t = {} for i = 1, 5 do t[i] = {n = 1} end table.sort(t, function(a, b) return a.n <= b.n end) return #t",
        "5",
    ),
    ("return '\\u' .. \"\\u0041\"", "uu0041"),
    ("return tostring(math.nan)", "nil"),
    ("return tostring(loadstring(string.dump(function() end)))", "nil"),
];

#[tokio::test(flavor = "multi_thread")]
async fn programs_give_what_hygge_gives() {
    for (body, expected) in HYGGE {
        let world =
            TestPlugins::of(&format!("hygge.register_tool{{name = 't', execute = function(ctx, input)\n{body}\nend}}"))
                .await;
        world.allow_all();
        let result = world.call("t", json!({})).await;
        assert_eq!((result.is_error, result.text().as_str()), (false, expected), "{body}");
    }
}
