//! Templates of URIs (RFC 6570): `{name}`, `{+name}`, and `{?a,b}` at the end.

use serde_json::{Map, Value};

/// A parsed template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    text: String,
    parts: Vec<TemplatePart>,
    /// Variables of the query, each of which may be absent.
    query: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePart {
    Literal(String),
    /// A segment of a path.
    Name(String),
    /// Of any length, slashes included.
    Reserved(String),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error("a brace is not closed")]
    Open,
    #[error("{{{0}}} is not a template expression: expected {{name}}, {{+name}}, or {{?a,b}} at the end")]
    Expression(String),
    #[error("the variable {0} appears twice")]
    Twice(String),
    #[error("it has no variable: use uri instead")]
    NoVariable,
}

impl Template {
    /// # Errors
    /// An expression that is none of the three kinds.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let (mut parts, mut query, mut rest) = (Vec::new(), Vec::new(), text);
        while let Some((literal, after)) = rest.split_once('{') {
            if !literal.is_empty() {
                parts.push(TemplatePart::Literal(literal.to_owned()));
            }
            let (expression, after) = after.split_once('}').ok_or(TemplateError::Open)?;
            let wrong = || TemplateError::Expression(expression.to_owned());
            match expression.strip_prefix('?') {
                Some(names) if after.is_empty() => query = names.split(',').map(str::to_owned).collect(),
                Some(_) => return Err(wrong()),
                None => parts.push(match expression.strip_prefix('+') {
                    Some(name) => TemplatePart::Reserved(name.to_owned()),
                    None => TemplatePart::Name(expression.to_owned()),
                }),
            }
            let template = Self { text: String::new(), parts: parts.clone(), query: query.clone() };
            if !template.variables().all(is_name) {
                return Err(wrong());
            }
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(TemplatePart::Literal(rest.to_owned()));
        }
        let template = Self { text: text.to_owned(), parts, query };
        let names: Vec<&str> = template.variables().collect();
        if let Some((_, twice)) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
            return Err(TemplateError::Twice((*twice).to_owned()));
        }
        if names.is_empty() { Err(TemplateError::NoVariable) } else { Ok(template) }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// In the order of the text.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        let of_path = self.parts.iter().filter_map(|part| match part {
            TemplatePart::Literal(_) => None,
            TemplatePart::Name(name) | TemplatePart::Reserved(name) => Some(name.as_str()),
        });
        of_path.chain(self.query.iter().map(String::as_str))
    }

    /// The variables' values in a URI, percent-decoded; `None` when it is not of this template.
    pub fn matches(&self, uri: &str) -> Option<Map<String, Value>> {
        let (path, query) = match self.query.is_empty() {
            true => (uri, ""),
            false => uri.split_once('?').unwrap_or((uri, "")),
        };
        let mut values = Map::new();
        match_parts(&self.parts, path, &mut values).then_some(())?;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if self.query.iter().any(|known| known == name) {
                values.insert(name.to_owned(), decoded(value)?.into());
            }
        }
        Some(values)
    }
}

/// Tries the shortest value of each variable first: there are few variables, and URIs are short.
fn match_parts(parts: &[TemplatePart], text: &str, values: &mut Map<String, Value>) -> bool {
    let Some((first, rest)) = parts.split_first() else { return text.is_empty() };
    let (name, stops_at_slash) = match first {
        TemplatePart::Literal(literal) => {
            return text.strip_prefix(literal.as_str()).is_some_and(|text| match_parts(rest, text, values));
        }
        TemplatePart::Name(name) => (name, true),
        TemplatePart::Reserved(name) => (name, false),
    };
    let end = if stops_at_slash { text.find(['/', '?', '#']).unwrap_or(text.len()) } else { text.len() };
    let ends = text[..end].char_indices().skip(1).map(|(at, _)| at).chain((end > 0).then_some(end));
    // Where nothing follows, the whole rest is the value.
    let ends: Vec<usize> = if rest.is_empty() { ends.filter(|at| *at == text.len()).collect() } else { ends.collect() };
    ends.into_iter().any(|at| {
        let Some(value) = decoded(&text[..at]) else { return false };
        let found = match_parts(rest, &text[at..], values);
        if found {
            values.insert(name.clone(), value.into());
        }
        found
    })
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        bytes.push((digit()? * 16 + digit()?) as u8);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(template: &str, uri: &str, expected: Value) {
        let found = Template::parse(template).unwrap().matches(uri);
        assert_eq!(found.map_or(Value::Null, Value::Object), expected, "{template} {uri}");
    }

    #[test]
    fn variables_are_read_from_the_uri() {
        check("note://{id}", "note://7", json!({"id": "7"}));
        check("note://{id}", "note://", Value::Null);
        check("note://{id}", "note://a/b", Value::Null);
        check("note://{id}/raw", "note://a%20b/raw", json!({"id": "a b"}));
        check("note://{id}/raw", "note://a", Value::Null);
        check("file:///{+path}", "file:///a/b.txt", json!({"path": "a/b.txt"}));
        check("x://{a}-{b}", "x://1-2-3", json!({"a": "1", "b": "2-3"}));
        check("x://é{a}", "x://éü", json!({"a": "ü"}));
        check("find://all{?query,limit}", "find://all?limit=3&other=1", json!({"limit": "3"}));
        check("find://all{?query,limit}", "find://all", json!({}));
        check("x://{a}", "x://%zz", Value::Null);
        check("x://{+a}/{b}", &format!("x://{}", "a/".repeat(200)), Value::Null);
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(Template::parse("x://{a"), Err(TemplateError::Open));
        assert_eq!(Template::parse("x://{}"), Err(TemplateError::Expression(String::new())));
        assert_eq!(Template::parse("x://{a*}"), Err(TemplateError::Expression("a*".into())));
        assert_eq!(Template::parse("x://{?a}/b"), Err(TemplateError::Expression("?a".into())));
        assert_eq!(Template::parse("x://{a}/{a}"), Err(TemplateError::Twice("a".into())));
        assert_eq!(Template::parse("x://a"), Err(TemplateError::NoVariable));
    }
}
