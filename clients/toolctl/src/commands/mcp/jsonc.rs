//! Changing one member of a JSON text that may hold comments and trailing commas, and nothing else of it.

use anyhow::{Context, bail};
use serde_json::Value;

/// The text with this member, whose parents are made where they are missing.
///
/// # Errors
/// The text is no JSON object, or a parent is something else than an object.
pub(super) fn with_member(text: &str, path: &[&str], value: &Value) -> anyhow::Result<String> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let after = put(text, path, value)?;
    // What was understood wrongly is not written.
    if !has_member(&after, path) {
        bail!("it is not understood for certain");
    }
    Ok(after)
}

pub(super) fn has_member(text: &str, path: &[&str]) -> bool {
    let Some(mut object) = root(text) else { return false };
    for (depth, name) in path.iter().enumerate() {
        let Some(member) = members(text, object).and_then(|all| all.into_iter().find(|own| own.name == *name)) else {
            return false;
        };
        if depth + 1 == path.len() {
            return true;
        }
        object = member.value;
    }
    false
}

#[derive(Clone, Copy)]
struct Span {
    start: usize,
    end: usize,
}

struct Member {
    name: String,
    value: Span,
}

fn put(text: &str, path: &[&str], value: &Value) -> anyhow::Result<String> {
    let mut object = root(text).context("it is no JSON object")?;
    for (depth, name) in path.iter().enumerate() {
        let all = members(text, object).context("it is no JSON object")?;
        let rest = &path[depth + 1..];
        match all.iter().find(|member| member.name == *name) {
            Some(member) if rest.is_empty() => {
                let indent = "  ".repeat(depth + 1);
                return Ok(splice(text, member.value, &pretty(value, &indent)));
            }
            Some(member) if text[member.value.start..].starts_with('{') => object = member.value,
            Some(_) => bail!("{name} is no object"),
            None => {
                let nested = rest.iter().rev().fold(value.clone(), |inner, name| {
                    Value::Object(serde_json::Map::from_iter([((*name).to_owned(), inner)]))
                });
                return Ok(insert(text, object, all.last(), name, &nested, depth));
            }
        }
    }
    bail!("there is nothing to put")
}

/// Puts a member behind the last one of an object.
fn insert(text: &str, object: Span, last: Option<&Member>, name: &str, value: &Value, depth: usize) -> String {
    let indent = "  ".repeat(depth + 1);
    let member = format!("\n{indent}{}: {}", Value::from(name), pretty(value, &indent));
    match last {
        None => {
            let inside = Span { start: object.start + 1, end: object.start + 1 };
            // Comments in an empty object stay behind what is put.
            let closes = if text[inside.end..object.end - 1].trim().is_empty() {
                let all = Span { start: inside.start, end: object.end - 1 };
                return splice(text, all, &format!("{member}\n{}", "  ".repeat(depth)));
            } else {
                member
            };
            splice(text, inside, &closes)
        }
        Some(last) => {
            let after = skip(text, last.value.end);
            let at = if text[after..].starts_with(',') { after + 1 } else { last.value.end };
            let comma = if at == last.value.end { "," } else { "" };
            // A comment on the line of the last member stays with it.
            let line_end = text[at..].find('\n').map_or(text.len(), |end| at + end);
            let rest = text[at..line_end.min(object.end - 1)].trim_start();
            let place = if rest.starts_with("//") { line_end } else { at };
            let mut changed = splice(text, Span { start: place, end: place }, &member);
            changed.insert_str(at, comma);
            changed
        }
    }
}

fn pretty(value: &Value, indent: &str) -> String {
    serde_json::to_string_pretty(value).expect("a value can be written").replace('\n', &format!("\n{indent}"))
}

fn splice(text: &str, span: Span, with: &str) -> String {
    format!("{}{with}{}", &text[..span.start], &text[span.end..])
}

fn root(text: &str) -> Option<Span> {
    let start = skip(text, text.len() - text.trim_start_matches('\u{feff}').len());
    let end = value_end(text, start, 0)?;
    (text[start..].starts_with('{') && skip(text, end) == text.len()).then_some(Span { start, end })
}

/// The members of the object at this place.
fn members(text: &str, object: Span) -> Option<Vec<Member>> {
    let mut all = Vec::new();
    let mut at = skip(text, object.start + 1);
    while !text.get(at..)?.starts_with('}') {
        let name_end = value_end(text, at, 0)?;
        let name: String = serde_json::from_str(text.get(at..name_end)?).ok()?;
        let colon = skip(text, name_end);
        if !text[colon..].starts_with(':') {
            return None;
        }
        let start = skip(text, colon + 1);
        let end = value_end(text, start, 0)?;
        all.push(Member { name, value: Span { start, end } });
        at = skip(text, end);
        if text[at..].starts_with(',') {
            at = skip(text, at + 1);
        }
    }
    Some(all)
}

/// Where the value that begins here ends.
fn value_end(text: &str, start: usize, depth: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    match *bytes.get(start)? {
        b'"' => {
            let mut at = start + 1;
            while *bytes.get(at)? != b'"' {
                at += if bytes[at] == b'\\' { 2 } else { 1 };
            }
            Some(at + 1)
        }
        // Deeper than anybody's configuration.
        b'{' | b'[' if depth < 128 => {
            let mut at = skip(text, start + 1);
            while !matches!(*bytes.get(at)?, b'}' | b']') {
                at = match bytes[at] {
                    b',' | b':' => at + 1,
                    _ => value_end(text, at, depth + 1)?,
                };
                at = skip(text, at);
            }
            Some(at + 1)
        }
        _ => {
            let length = text[start..].find(|c: char| c.is_whitespace() || ",:{}[]\"/".contains(c));
            let end = length.map_or(text.len(), |length| start + length);
            (end > start).then_some(end)
        }
    }
}

/// Past blanks and comments.
fn skip(text: &str, from: usize) -> usize {
    let mut at = from;
    loop {
        let rest = &text[at..];
        let blanks = rest.len() - rest.trim_start().len();
        let rest = &rest[blanks..];
        at += blanks;
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with("/*") {
            at += rest.find("*/").map_or(rest.len(), |end| end + 2);
        } else {
            return at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(with_member(text, &["a", "b"], &json!(1)).unwrap(), expected);
    }

    #[test]
    fn a_member_is_put_where_it_belongs() {
        check("", "{\n  \"a\": {\n    \"b\": 1\n  }\n}\n");
        check("{\"x\": 1}", "{\"x\": 1,\n  \"a\": {\n    \"b\": 1\n  }}");
        check("{\"a\": {\"b\": 2, \"c\": 3}}", "{\"a\": {\"b\": 1, \"c\": 3}}");
        check("{\"a\": {\n    \"c\": 3, // see\n  }}", "{\"a\": {\n    \"c\": 3, // see\n    \"b\": 1\n  }}");
        check("{\"a\": {\n    \"c\": 3 // see\n  }}", "{\"a\": {\n    \"c\": 3, // see\n    \"b\": 1\n  }}");
        check("/* x */ {\"a\": {}}", "/* x */ {\"a\": {\n    \"b\": 1\n  }}");
    }

    #[test]
    fn what_is_no_object_is_left_alone() {
        for text in ["[]", "{", "{\"a\": 1}", "x", "{\"a\" 1}", "{} {}"] {
            assert!(with_member(text, &["a", "b"], &json!(1)).is_err(), "{text}");
        }
    }
}
