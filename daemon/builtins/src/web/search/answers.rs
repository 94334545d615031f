//! Parses the answers of search services and commands.

use anyhow::{Context, bail};
use serde::Serialize;
use serde_json::Value;
use toold_proto::cut::cut_chars;

const MAX_TITLE: usize = 200;
const MAX_SNIPPET: usize = 400;

/// One search result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct WebResult {
    pub(crate) title: String,
    pub(crate) url: String,
    pub(crate) snippet: String,
    /// In the service's own format.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) published: Option<String>,
}

/// `{"results": [{"url", "title", "content", "publishedDate"}], "unresponsive_engines": [[name, reason]]}`
pub(crate) fn searxng(body: &[u8]) -> anyhow::Result<Vec<WebResult>> {
    let answer: Value = serde_json::from_slice(body)?;
    let found = list(answer.get("results").context("it has no results")?)?;
    let silent = answer["unresponsive_engines"].as_array().filter(|engines| !engines.is_empty());
    if let (true, Some(silent)) = (found.is_empty(), silent) {
        // Otherwise the answer would look as if nothing was found.
        let names = silent.iter().map(|engine| match engine.as_array().map(Vec::as_slice) {
            Some([name, reason, ..]) => format!("{}: {}", plain(name, 40), plain(reason, 80)),
            _ => plain(engine, 80),
        });
        bail!("no engine answered ({})", names.take(8).collect::<Vec<_>>().join(", "));
    }
    Ok(found)
}

/// `{"web": {"results": [{"url", "title", "description", "page_age"}]}}`; `web` is absent if there are no results.
pub(crate) fn brave(body: &[u8]) -> anyhow::Result<Vec<WebResult>> {
    let answer: Value = serde_json::from_slice(body)?;
    match answer.pointer("/web/results") {
        Some(results) => list(results),
        None if answer["type"] == "search" => Ok(Vec::new()),
        None => bail!("it has no results"),
    }
}

/// The output of a user's command.
pub(crate) fn command(output: &[u8]) -> anyhow::Result<Vec<WebResult>> {
    let answer: Value = serde_json::from_slice(output).context("expected JSON")?;
    match answer.get("results") {
        Some(results) => list(results),
        None => list(&answer),
    }
}

/// The reason in an error answer, if it contains one.
pub(crate) fn complaint(body: &[u8]) -> String {
    let Ok(answer) = serde_json::from_slice::<Value>(body) else { return String::new() };
    let places = ["/error/detail", "/error/message", "/error", "/message", "/detail"];
    let reason = places.iter().find_map(|place| answer.pointer(place)?.as_str());
    reason.map_or_else(String::new, |reason| format!(": {}", shortened(reason, 300)))
}

fn list(results: &Value) -> anyhow::Result<Vec<WebResult>> {
    let results = results.as_array().context("the results are no list")?;
    Ok(results.iter().filter_map(found).collect())
}

fn found(result: &Value) -> Option<WebResult> {
    let field = |names: &[&str]| names.iter().find_map(|name| result.get(name).filter(|value| !value.is_null()));
    let url = field(&["url", "link", "href"])?.as_str()?.trim().to_owned();
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return None;
    }
    let text = |names: &[&str], max: usize| field(names).map(|value| plain(value, max)).unwrap_or_default();
    let title = text(&["title"], MAX_TITLE);
    Some(WebResult {
        title: if title.is_empty() { url.clone() } else { title },
        snippet: text(&["snippet", "content", "description", "abstract", "body"], MAX_SNIPPET),
        published: field(&["published", "publishedDate", "page_age"]).and_then(Value::as_str).map(str::to_owned),
        url,
    })
}

/// One line of text, without the highlighting that services add to words.
fn plain(value: &Value, max: usize) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut untagged = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        untagged.push_str(before);
        let is_tag = tag[1..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
        match tag.find('>').filter(|_| is_tag) {
            Some(end) => rest = &tag[end + 1..],
            None => {
                untagged.push('<');
                rest = &tag[1..];
            }
        }
    }
    untagged.push_str(rest);
    let named = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&#x27;", "'"), ("&nbsp;", " ")];
    for (entity, character) in named {
        untagged = untagged.replace(entity, character);
    }
    shortened(&untagged.replace("&amp;", "&"), max)
}

fn shortened(text: &str, max: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    cut_chars(&line, max, "...").into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_and_entities_are_taken_out() {
        let plain = |text: &str| plain(&Value::from(text), 40);
        assert_eq!(plain("<strong>Rust</strong>  &amp;\n C&#39;s &lt;b&gt;"), "Rust & C's <b>");
        assert_eq!(plain("a < b and Vec<T> or 1 <2"), "a < b and Vec or 1 <2");
        assert_eq!(plain("&amp;lt;"), "&lt;");
        assert_eq!(plain(&"ü".repeat(50)), format!("{}...", "ü".repeat(40)));
    }

    #[test]
    fn results_without_a_place_are_left_out() {
        let body = br#"{"results": [{"title": "x"}, {"url": 1}, {"url": "magnet:?x"}, {"url": "https://a.test/"}, 7]}"#;
        let found = searxng(body).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].title.as_str(), found[0].snippet.as_str()), ("https://a.test/", ""));
    }

    #[test]
    fn silent_engines_are_no_empty_result() {
        let body = br#"{"results": [], "unresponsive_engines": [["brave", "too many requests"], ["x", "CAPTCHA"]]}"#;
        let error = searxng(body).unwrap_err().to_string();
        assert_eq!(error, "no engine answered (brave: too many requests, x: CAPTCHA)");
        assert_eq!(searxng(br#"{"results": [], "unresponsive_engines": []}"#).unwrap(), []);
    }
}
