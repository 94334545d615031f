//! Templates of URIs (RFC 6570). Plugins write `{name}`, `{+name}`, and `{?a,b}` at the end; mounted servers list templates
//! of any kind.

use regex::Regex;
use serde_json::{Map, Value};

/// A parsed template.
#[derive(Clone, Debug)]
pub struct Template {
    text: String,
    parts: Vec<TemplatePart>,
    /// Variables of the query, each of which may be absent.
    query: Vec<String>,
    /// Matches the URI, or the part before its query. Takes time in proportion to the URI, whatever the template is.
    pattern: Regex,
}

impl PartialEq for Template {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Template {}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePart {
    Literal(String),
    /// A segment of a path.
    Name(String),
    /// A text of any length, slashes included.
    Reserved(String),
    /// An expression of another kind: any text.
    Any(Vec<String>),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error("a brace is not closed")]
    Open,
    #[error("{{{0}}} is not a template expression: expected {{name}}, {{+name}}, or {{?a,b}} at the end")]
    Expression(String),
    #[error("{{{0}}} is not a template expression of RFC 6570")]
    NoRfc6570(String),
    #[error("the variable {0} appears twice")]
    Twice(String),
    #[error("it has no variable: use uri instead")]
    NoVariable,
    #[error("it is too long")]
    TooLong,
}

impl Template {
    /// # Errors
    /// An expression that is none of the three kinds.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let (mut parts, mut query) = (Vec::new(), Vec::new());
        for piece in pieces(text)? {
            let (expression, is_last) = match piece {
                TemplatePiece::Literal(literal) => {
                    parts.push(TemplatePart::Literal(literal.to_owned()));
                    continue;
                }
                TemplatePiece::Expression { text, is_last } => (text, is_last),
            };
            match simple(expression, is_last) {
                Some(SimpleExpression::Part(part)) => parts.push(part),
                Some(SimpleExpression::Query(names)) => query = names,
                None => return Err(TemplateError::Expression(expression.to_owned())),
            }
        }
        let template = Self::of(text, parts, query)?;
        let names: Vec<&str> = template.variables().collect();
        match names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
            Some((_, twice)) => Err(TemplateError::Twice((*twice).to_owned())),
            None => Ok(template),
        }
    }

    /// A template of any kind. If it has an expression that [`parse`](Self::parse) does not know, all values stay unknown.
    ///
    /// # Errors
    /// It is not a template of RFC 6570, or has no variable.
    pub fn parse_any(text: &str) -> Result<Self, TemplateError> {
        let (mut parts, mut query, mut known) = (Vec::new(), Vec::new(), Vec::new());
        for piece in pieces(text)? {
            let (expression, is_last) = match piece {
                TemplatePiece::Literal(literal) => {
                    parts.push(TemplatePart::Literal(literal.to_owned()));
                    continue;
                }
                TemplatePiece::Expression { text, is_last } => (text, is_last),
            };
            let names = rfc_6570(expression).ok_or_else(|| TemplateError::NoRfc6570(expression.to_owned()))?;
            let is_new = !names.iter().any(|name| known.contains(name));
            known.extend(names.iter().cloned());
            match simple(expression, is_last).filter(|_| is_new) {
                Some(SimpleExpression::Part(part)) => parts.push(part),
                Some(SimpleExpression::Query(names)) => query = names,
                None => parts.push(TemplatePart::Any(names)),
            }
        }
        Self::of(text, parts, query)
    }

    fn of(text: &str, parts: Vec<TemplatePart>, query: Vec<String>) -> Result<Self, TemplateError> {
        let mut pattern = String::from(r"(?s)\A");
        for part in &parts {
            match part {
                TemplatePart::Literal(literal) => pattern.push_str(&regex::escape(literal)),
                // The shortest value first.
                TemplatePart::Name(_) => pattern.push_str("([^/?#]+?)"),
                TemplatePart::Reserved(_) => pattern.push_str("(.+?)"),
                TemplatePart::Any(_) => pattern.push_str(".*?"),
            }
        }
        pattern.push_str(r"\z");
        let pattern = Regex::new(&pattern).map_err(|_| TemplateError::TooLong)?;
        let template = Self { text: text.to_owned(), parts, query, pattern };
        if template.variables().next().is_none() { Err(TemplateError::NoVariable) } else { Ok(template) }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// In the order of the text.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        let of_path = self.parts.iter().flat_map(|part| match part {
            TemplatePart::Literal(_) => &[],
            TemplatePart::Name(name) | TemplatePart::Reserved(name) => std::slice::from_ref(name),
            TemplatePart::Any(names) => names.as_slice(),
        });
        of_path.chain(&self.query).map(String::as_str)
    }

    /// The variables' values in a URI, percent-decoded; `None` when it is not of this template.
    pub fn matches(&self, uri: &str) -> Option<Map<String, Value>> {
        let (path, query) = match self.query.is_empty() {
            true => (uri, ""),
            false => uri.split_once('?').unwrap_or((uri, "")),
        };
        let found = self.pattern.captures(path)?;
        let named = self.parts.iter().filter_map(|part| match part {
            TemplatePart::Literal(_) | TemplatePart::Any(_) => None,
            TemplatePart::Name(name) | TemplatePart::Reserved(name) => Some(name),
        });
        let mut values = Map::new();
        if self.parts.iter().any(|part| matches!(part, TemplatePart::Any(_))) {
            return Some(values);
        }
        for (name, value) in named.zip(found.iter().skip(1).flatten()) {
            values.insert(name.clone(), decoded(value.as_str())?.into());
        }
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if self.query.iter().any(|known| known == name) {
                values.insert(name.to_owned(), decoded(value)?.into());
            }
        }
        Some(values)
    }
}

enum TemplatePiece<'t> {
    Literal(&'t str),
    /// The text between two braces.
    Expression {
        text: &'t str,
        is_last: bool,
    },
}

fn pieces(text: &str) -> Result<Vec<TemplatePiece<'_>>, TemplateError> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    while let Some((literal, after)) = rest.split_once('{') {
        if !literal.is_empty() {
            pieces.push(TemplatePiece::Literal(literal));
        }
        let (text, after) = after.split_once('}').ok_or(TemplateError::Open)?;
        pieces.push(TemplatePiece::Expression { text, is_last: after.is_empty() });
        rest = after;
    }
    if !rest.is_empty() {
        pieces.push(TemplatePiece::Literal(rest));
    }
    Ok(pieces)
}

enum SimpleExpression {
    Part(TemplatePart),
    Query(Vec<String>),
}

/// An expression whose values can be read from a URI.
fn simple(expression: &str, is_last: bool) -> Option<SimpleExpression> {
    if let Some(names) = expression.strip_prefix('?') {
        let names: Vec<String> = names.split(',').map(str::to_owned).collect();
        return (is_last && names.iter().all(|name| is_name(name))).then_some(SimpleExpression::Query(names));
    }
    let (name, part): (_, fn(String) -> TemplatePart) = match expression.strip_prefix('+') {
        Some(name) => (name, TemplatePart::Reserved),
        None => (expression, TemplatePart::Name),
    };
    is_name(name).then(|| SimpleExpression::Part(part(name.to_owned())))
}

/// The variables of an expression of RFC 6570, section 2.2.
fn rfc_6570(expression: &str) -> Option<Vec<String>> {
    let list = expression.strip_prefix(['+', '#', '.', '/', ';', '?', '&']).unwrap_or(expression);
    let variable = |text: &str| {
        let prefixed = text.split_once(':').map(|(name, max)| (name, matches!(max.parse(), Ok(1..10_000_u32))));
        let (name, is_good) = prefixed.unwrap_or((text.strip_suffix('*').unwrap_or(text), true));
        let is_name = !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'%'));
        (is_good && is_name).then(|| name.to_owned())
    };
    list.split(',').map(variable).collect()
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
    fn templates_of_others_may_have_expressions_of_any_kind() {
        let check = |template: &str, uri: &str, expected: Value| {
            let found = Template::parse_any(template).unwrap().matches(uri);
            assert_eq!(found.map_or(Value::Null, Value::Object), expected, "{template} {uri}");
        };
        check("note://{id}", "note://7", json!({"id": "7"}));
        check("db://{table}{/row*}", "db://people/7/8", json!({}));
        check("db://{table}{/row*}", "other://people", Value::Null);
        check("find://{a}{?b}{&c}", "find://x?b=1&c=2", json!({}));
        check("x://{a}/{a}", "x://1/2", json!({}));
        check("x://{a:3}.{b*}", "x://1.2", json!({}));
        let many = (0..60).map(|n| format!("{{+v{n}}}a")).collect::<String>();
        check(&many, &("a".repeat(5000) + "b"), Value::Null);
        let names = Template::parse_any("x://{a,b}{?c*}").unwrap();
        assert_eq!(names.variables().collect::<Vec<_>>(), ["a", "b", "c"]);
        for (wrong, error) in [
            ("x://{a", TemplateError::Open),
            ("x://{}", TemplateError::NoRfc6570(String::new())),
            ("x://{a b}", TemplateError::NoRfc6570("a b".into())),
            ("x://{a:0}", TemplateError::NoRfc6570("a:0".into())),
            ("x://{|a}", TemplateError::NoRfc6570("|a".into())),
            ("x://a", TemplateError::NoVariable),
        ] {
            assert_eq!(Template::parse_any(wrong), Err(error), "{wrong}");
        }
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
