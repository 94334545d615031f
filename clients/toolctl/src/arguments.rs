//! Converts `key=value` pairs of the command line to the types that the tool's schema asks for.
//!
//! The daemon validates the values. A text that does not convert stays a text, so that the daemon's message shows it.

use std::io::Read;

use anyhow::Context;
use serde_json::{Map, Value};
use toold_proto::argument_names::{KnownArguments, explain_unknown, in_one_text};
use toold_proto::nearest::nearest;

use crate::exit::usage;
use crate::output::{one_line, shorten};

mod types;

use types::SchemaTypes;

/// The arguments of a call: `base`, overridden by the pairs.
///
/// A key may be repeated if the schema takes an array. `@file` is the content of a file, `@-` that of stdin, `@@x` the
/// text `@x`.
///
/// # Errors
/// A name that the schema does not know, in a pair or in `base`, unless it says that others are welcome: many tools
/// ignore such arguments. All mistakes are named, those too that the daemon would find: the call does not get there.
pub(crate) fn read(base: Map<String, Value>, pairs: &[String], schema: &Value) -> anyhow::Result<Map<String, Value>> {
    let (arguments, mut mistakes) = read_some(base, pairs, schema)?;
    if mistakes.is_empty() {
        return Ok(arguments);
    }
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    // One that was misspelt is not missing, too.
    let is_meant = |name: &str| mistakes.iter().any(|mistake| mistake.ends_with(&format!("did you mean {name:?}?")));
    let missing: Vec<&str> =
        required.filter(|name| !arguments.contains_key(*name) && !is_given(pairs, name) && !is_meant(name)).collect();
    mistakes.extend(missing.into_iter().map(|name| format!("missing argument {name:?}")));
    mistakes.extend(arguments.iter().filter_map(|(name, value)| {
        let expected = SchemaTypes::of_property(schema, name).mismatch(value)?;
        Some(format!("argument {name:?}: expected {expected}, got {}", shorten(&value.to_string(), 80)))
    }));
    Err(usage(in_one_text(mistakes)))
}

/// As [`read`], for a caller that asks for the rest.
///
/// # Errors
/// As for [`read`]; what is missing is none.
pub(crate) fn read_given(
    base: Map<String, Value>,
    pairs: &[String],
    schema: &Value,
) -> anyhow::Result<Map<String, Value>> {
    let (arguments, mistakes) = read_some(base, pairs, schema)?;
    if mistakes.is_empty() { Ok(arguments) } else { Err(usage(in_one_text(mistakes))) }
}

fn is_given(pairs: &[String], name: &str) -> bool {
    pairs.iter().any(|pair| pair.split_once('=').is_some_and(|(key, _)| key == name))
}

/// The arguments that could be read, and the mistakes in the others.
fn read_some(
    base: Map<String, Value>,
    pairs: &[String],
    schema: &Value,
) -> anyhow::Result<(Map<String, Value>, Vec<String>)> {
    let groups = grouped(pairs)?;
    let known = KnownArguments::of(schema, schema);
    let names = base.keys().map(String::as_str).chain(groups.iter().map(|(key, _)| *key));
    let mut mistakes: Vec<String> =
        names.filter(|name| !known.admits(name)).map(|name| explain_unknown(name, known.names())).collect();
    mistakes.dedup();
    let mut arguments = base;
    arguments.retain(|name, _| known.admits(name));
    for (key, texts) in groups.into_iter().filter(|(key, _)| known.admits(key)) {
        match value(&texts, key, &SchemaTypes::of_property(schema, key)) {
            Ok(value) => {
                arguments.insert(key.to_owned(), value);
            }
            Err(error) => mistakes.push(format!("{error:#}")),
        }
    }
    Ok((arguments, mistakes))
}

fn value(texts: &[&str], key: &str, types: &SchemaTypes) -> anyhow::Result<Value> {
    if let [text] = texts {
        return Ok(one(&content(text)?, types));
    }
    let Some(items) = types.items() else {
        return Err(usage(format!("{key} is given {} times, but takes one value", texts.len())));
    };
    let read = |text: &&str| Ok(one(&content(text)?, &items));
    Ok(Value::Array(texts.iter().map(read).collect::<anyhow::Result<_>>()?))
}

/// The arguments that the schema does not name, each as a sentence for the user: the tool accepts any, so they are sent,
/// but they may be misspelt.
pub(crate) fn unnamed(arguments: &Map<String, Value>, schema: &Value) -> Vec<String> {
    let known = KnownArguments::of(schema, schema);
    let unnamed = arguments.keys().filter(|name| !known.names().contains(&name.as_str()));
    unnamed.map(|name| explain_unnamed(&one_line(name), known.names())).collect()
}

fn explain_unnamed(name: &str, known: &[&str]) -> String {
    let sent = format!("the tool's schema does not name the argument {name:?}, which is passed on as it is");
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("{sent}: did you mean {near:?}?"),
        None => sent,
    }
}

/// The names of an object's members, the required ones first.
pub(crate) fn members(schema: &Value) -> Vec<String> {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let names = schema["properties"].as_object().into_iter().flat_map(Map::keys).map(String::as_str);
    let others = names.filter(|name| !required.contains(name)).map(|name| format!("{}?", one_line(name)));
    let first = required.iter().filter(|name| schema["properties"].get(name).is_some()).map(|name| one_line(name));
    first.chain(others).collect()
}

/// The pairs that are none: without a `=`, or without a key before it.
pub(crate) fn malformed(pairs: &[String]) -> Vec<&str> {
    pairs.iter().map(String::as_str).filter(|pair| split(pair).is_none()).collect()
}

/// The pair that a text was probably meant as, where the tool wants one more argument and no other.
pub(crate) fn meant(text: &str, pairs: &[String], schema: &Value) -> Option<String> {
    let required = schema["required"].as_array()?.iter().filter_map(Value::as_str);
    let mut missing = required.filter(|name| !is_given(pairs, name));
    let (name, None) = (missing.next()?, missing.next()) else { return None };
    Some(format!("{name}={text}"))
}

fn split(pair: &str) -> Option<(&str, &str)> {
    pair.split_once('=').filter(|(key, _)| !key.is_empty())
}

/// The texts of each key, in the order of the keys' first occurrence.
fn grouped(pairs: &[String]) -> anyhow::Result<Vec<(&str, Vec<&str>)>> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    let malformed: Vec<String> = malformed(pairs).into_iter().map(|pair| format!("{pair:?}")).collect();
    if !malformed.is_empty() {
        return Err(usage(format!("expected key=value, got {}", malformed.join(" and "))));
    }
    for (key, text) in pairs.iter().filter_map(|pair| split(pair)) {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, texts)) => texts.push(text),
            None => groups.push((key, vec![text])),
        }
    }
    Ok(groups)
}

fn content(text: &str) -> anyhow::Result<String> {
    let Some(rest) = text.strip_prefix('@') else { return Ok(text.to_owned()) };
    if rest.starts_with('@') {
        return Ok(rest.to_owned());
    }
    if rest == "-" {
        let mut content = String::new();
        std::io::stdin().read_to_string(&mut content).context("can't read stdin")?;
        return Ok(content);
    }
    std::fs::read_to_string(rest)
        .map_err(|error| usage(format!("can't read {rest}: {error} (write @@ for a value that begins with @)")))
}

/// The value of a text where these types are allowed. The narrower type wins: a number before a text, JSON before a
/// list with commas.
fn one(text: &str, types: &SchemaTypes) -> Value {
    let trimmed = text.trim();
    let json = || serde_json::from_str::<Value>(trimmed).ok();
    if types.any {
        return json().unwrap_or_else(|| Value::from(text));
    }
    if types.null && !types.string && trimmed == "null" {
        return Value::Null;
    }
    if types.boolean
        && let Some(value) = boolean(trimmed, types)
    {
        return Value::Bool(value);
    }
    if (types.integer || types.number)
        && let Some(value) = number(trimmed, types)
    {
        return value;
    }
    if types.object
        && trimmed.starts_with('{')
        && let Some(value @ Value::Object(_)) = json()
    {
        return value;
    }
    if types.array
        && trimmed.starts_with('[')
        && let Some(value @ Value::Array(_)) = json()
    {
        return value;
    }
    if types.string {
        return Value::from(text);
    }
    if types.array {
        let items = types.items().unwrap_or_else(SchemaTypes::any);
        return Value::Array(list(trimmed, &items));
    }
    Value::from(text)
}

fn list(text: &str, items: &SchemaTypes) -> Vec<Value> {
    if text.is_empty() {
        return Vec::new();
    }
    // An object has commas of its own.
    if items.object && text.starts_with('{') {
        return vec![one(text, items)];
    }
    text.split(',').map(|item| one(item.trim(), items)).collect()
}

fn boolean(text: &str, types: &SchemaTypes) -> Option<bool> {
    match text {
        "true" => Some(true),
        "false" => Some(false),
        // These may be meant as texts or numbers, if the tool takes those too.
        _ if types.string || types.integer || types.number => None,
        "yes" | "on" | "1" => Some(true),
        "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

fn number(text: &str, types: &SchemaTypes) -> Option<Value> {
    if let Ok(value) = text.parse::<i64>() {
        return Some(Value::from(value));
    }
    if let Ok(value) = text.parse::<u64>() {
        return Some(Value::from(value));
    }
    let value = text.parse::<f64>().ok().filter(|value| value.is_finite())?;
    // A tool that takes integers or texts gets 1.5 as a text.
    (types.number || !types.string).then(|| Value::from(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "limit": {"type": "integer"},
                "ratio": {"type": "number"},
                "all": {"type": "boolean"},
                "names": {"type": "array", "items": {"type": "string"}},
                "counts": {"type": "array", "items": {"type": "integer"}},
                "edits": {"type": "array", "items": {"$ref": "#/$defs/edit"}},
                "env": {"type": "object"},
                "either": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
                "maybe": {"type": ["integer", "null"]},
                "mode": {"enum": ["a", "b"]},
                "level": {"enum": [1, 2]},
                "anything": {}
            },
            "$defs": {"edit": {"type": "object"}}
        })
    }

    #[track_caller]
    fn check(pairs: &[&str], expected: Value) {
        let pairs: Vec<String> = pairs.iter().map(|pair| (*pair).to_owned()).collect();
        assert_eq!(Value::Object(read(Map::new(), &pairs, &schema()).unwrap()), expected);
    }

    #[track_caller]
    fn check_usage(pairs: &[&str]) {
        let pairs: Vec<String> = pairs.iter().map(|pair| (*pair).to_owned()).collect();
        let error = read(Map::new(), &pairs, &schema()).unwrap_err();
        assert!(crate::exit::status(&error) == crate::exit::USAGE, "{error}");
    }

    #[test]
    fn schema_decides_how_a_text_is_parsed() {
        check(&["path=12", "limit=12"], json!({"path": "12", "limit": 12}));
        check(&["ratio=0.5"], json!({"ratio": 0.5}));
        check(&["ratio=3"], json!({"ratio": 3}));
        check(&["limit=18446744073709551615"], json!({"limit": u64::MAX}));
        check(&["all=true"], json!({"all": true}));
        check(&["all=no"], json!({"all": false}));
        check(&[r#"env={"A": "1"}"#], json!({"env": {"A": "1"}}));
        check(&["mode=a", "level=2"], json!({"mode": "a", "level": 2}));
    }

    #[test]
    fn a_text_that_does_not_convert_is_sent_unchanged() {
        check(&["limit=many"], json!({"limit": "many"}));
        check(&["limit=1.5"], json!({"limit": 1.5}));
        check(&["all=perhaps"], json!({"all": "perhaps"}));
        check(&["env={"], json!({"env": "{"}));
    }

    #[test]
    fn a_text_is_taken_as_it_stands() {
        check(&["path= a=b "], json!({"path": " a=b "}));
        check(&["path="], json!({"path": ""}));
        check(&["path=null"], json!({"path": "null"}));
        check(&["path=[1]"], json!({"path": "[1]"}));
    }

    #[test]
    fn a_list_is_commas_or_repetition_or_json() {
        check(&["names=a, b"], json!({"names": ["a", "b"]}));
        check(&["names=a,b", "names=c"], json!({"names": ["a,b", "c"]}));
        check(&[r#"names=["a,b"]"#], json!({"names": ["a,b"]}));
        check(&["names="], json!({"names": []}));
        check(&["names=a"], json!({"names": ["a"]}));
        check(&["counts=1,2"], json!({"counts": [1, 2]}));
        check(&[r#"edits={"a": 1, "b": 2}"#], json!({"edits": [{"a": 1, "b": 2}]}));
        check(&[r#"edits={"a": 1}"#, r#"edits={"b": 2}"#], json!({"edits": [{"a": 1}, {"b": 2}]}));
    }

    #[test]
    fn a_choice_of_types_takes_the_narrowest() {
        check(&["either=a,b"], json!({"either": "a,b"}));
        check(&[r#"either=["a"]"#], json!({"either": ["a"]}));
        check(&["either=a", "either=b"], json!({"either": ["a", "b"]}));
        check(&["maybe=null"], json!({"maybe": null}));
        check(&["maybe=3"], json!({"maybe": 3}));
    }

    #[test]
    fn without_a_type_json_is_json_and_the_rest_text() {
        check(&["anything=3"], json!({"anything": 3}));
        check(&["anything=abc"], json!({"anything": "abc"}));
    }

    #[test]
    fn a_key_that_the_schema_does_not_know_is_refused_unless_others_are_welcome() {
        check_usage(&["limit=1", "limt=2"]);
        let pairs = ["unknown=true".to_owned()];
        for open in [json!({"type": "object"}), json!({"properties": {"a": {}}, "additionalProperties": true})] {
            let arguments = read(Map::new(), &pairs, &open).unwrap();
            assert_eq!(Value::Object(arguments), json!({"unknown": true}), "{open}");
        }
        let base = json!({"limt": 1}).as_object().cloned().unwrap();
        assert!(read(base, &["limit=2".to_owned()], &schema()).unwrap_err().to_string().contains("\"limit\""));
    }

    #[test]
    fn what_an_open_schema_does_not_name_is_reported() {
        let open = json!({"properties": {"to": {}}, "additionalProperties": true});
        let given = json!({"to": 1, "too": 2, "else": 3}).as_object().cloned().unwrap();
        let unnamed = unnamed(&given, &open);
        assert_eq!(unnamed.len(), 2, "{unnamed:?}");
        assert!(unnamed[0].contains("\"too\"") && unnamed[0].ends_with("did you mean \"to\"?"), "{unnamed:?}");
    }

    #[test]
    fn every_mistake_is_named() {
        let schema = json!({
            "properties": {"to": {"type": "integer"}, "from": {"type": "integer"}, "names": {"type": "array"}},
            "required": ["to", "from"],
        });
        let pairs = ["too=3", "to=x", "names=@/nonexistent/file", "elsee=1"].map(str::to_owned);
        let error = read(Map::new(), &pairs, &schema).unwrap_err().to_string();
        for part in [
            "\"too\": did you mean \"to\"?",
            "\"elsee\"",
            "can't read /nonexistent/file",
            "did you mean \"to\"? unknown argument",
            "missing argument \"from\"",
            "argument \"to\": expected an integer, got \"x\"",
        ] {
            assert!(error.contains(part), "{part}: {error}");
        }
        assert!(!error.contains("missing argument \"to\""), "{error}");
        let given = read_given(Map::new(), &["too=3".to_owned()], &schema).unwrap_err().to_string();
        assert!(!given.contains("missing"), "{given}");
        let malformed = super::grouped(&["a".to_owned(), "=b".to_owned()]).unwrap_err().to_string();
        assert_eq!(malformed, "expected key=value, got \"a\" and \"=b\"");
        assert!(
            !read(Map::new(), &["too=3".to_owned(), "from=1".to_owned()], &schema)
                .unwrap_err()
                .to_string()
                .contains("missing")
        );
    }

    #[test]
    fn an_at_sign_reads_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("names");
        std::fs::write(&file, "[\"a\",\n\"b\"]\n").unwrap();
        check(&[&format!("names=@{}", file.display())], json!({"names": ["a", "b"]}));
        check(&[&format!("path=@{}", file.display())], json!({"path": "[\"a\",\n\"b\"]\n"}));
        check(&["path=@@home"], json!({"path": "@home"}));
        check_usage(&["path=@/nonexistent/file"]);
    }

    #[test]
    fn a_mistyped_pair_is_wrong_usage() {
        check_usage(&["path"]);
        check_usage(&["=x"]);
        check_usage(&["limit=1", "limit=2"]);
    }

    #[test]
    fn pairs_lie_over_the_json() {
        let base = json!({"path": "a", "limit": 1}).as_object().cloned().unwrap();
        let arguments = read(base, &["limit=2".to_owned()], &schema()).unwrap();
        assert_eq!(Value::Object(arguments), json!({"path": "a", "limit": 2}));
    }
}
