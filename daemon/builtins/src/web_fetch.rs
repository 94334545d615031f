//! `web_fetch`: fetches a web page and converts it for readers.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::tool::{ToolError, ToolOutput};
use toold_host::http::request::HttpRequest;
use toold_host::http::{BodyEnding, HttpLimits, HttpResponse};
use toold_proto::cut::cut_bytes;
use toold_proto::tool::{Annotations, Block, Category};

use crate::blocking::{blocking, with_heartbeat};
use crate::builtin::{Builtin, READS, ToolFacts};
use crate::picture::{self, PictureProblem};
use crate::toolkit::Toolkit;
use crate::web::Fetching;
use crate::web::decode::{Decoded, decode};
use crate::web::page::{self, PageForm};

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
const DEFAULT_BYTES: usize = 5 * 1024 * 1024;
const MAX_BYTES: usize = 20 * 1024 * 1024;
/// The limit of an error response's body.
const ERROR_TEXT: usize = 2000;
const ACCEPT: &str = "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, */*;q=0.5";

/// Arguments of `web_fetch`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct WebFetchInput {
    /// What to fetch: an http or https URL.
    url: String,
    /// `markdown` (the default) and `text` convert HTML, the readable part of it where there is one; `raw`
    /// gives it as it came.
    #[serde(default)]
    format: FetchFormat,
    /// How much of the body to read; 5242880 by default, at most 20971520.
    #[cfg_attr(test, schemars(range(min = 1, max = 20_971_520)))]
    max_bytes: Option<u64>,
    /// Timeout in milliseconds; 30000 by default, at most 110000.
    #[cfg_attr(test, schemars(range(min = 1, max = 110_000)))]
    timeout_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum FetchFormat {
    #[default]
    Markdown,
    Text,
    Raw,
}

pub(crate) struct WebFetchTool {
    toolkit: Arc<Toolkit>,
}

impl Builtin for WebFetchTool {
    type Input = WebFetchInput;

    const NAME: &'static str = "web_fetch";
    const FACTS: ToolFacts = ToolFacts {
        label: "Fetch a web page",
        description: "Fetches a URL and returns the page as Markdown, reduced to its readable part where it has one. JSON \
                      and other text is returned unchanged, images are shown. Redirects are followed. Addresses of this machine and \
                      of private networks are refused unless the configuration allows them.",
        parallelizable: true,
        permissions: &[Category::Network],
        timeout: None,
        annotations: Annotations { open_world: Some(true), ..READS },
    };

    fn new(toolkit: Arc<Toolkit>) -> Self {
        Self { toolkit }
    }

    async fn needs(&self, input: &WebFetchInput, _: &Cx) -> anyhow::Result<Vec<Need>> {
        Ok(vec![self.toolkit.web.http.need(&request(&input.url)?)])
    }

    async fn run(&self, input: WebFetchInput, cx: &Cx) -> anyhow::Result<ToolOutput> {
        let limits = HttpLimits {
            timeout: input.timeout_ms.map_or(DEFAULT_TIMEOUT, Duration::from_millis),
            max_bytes: input.max_bytes.map_or(DEFAULT_BYTES, |bytes| bytes.min(MAX_BYTES as u64) as usize),
            ..HttpLimits::default()
        };
        let fetching = Fetching::new(cx);
        let request = request(&input.url)?;
        let request = if cx.no_cache { request } else { request.from_cache() };
        let work = self.toolkit.web.http.send(request, limits, &fetching, &cx.cancel);
        let response = with_heartbeat(cx, work).await.map_err(ToolError::from)?;
        if response.ending == BodyEnding::Stopped && !cx.timed_out() {
            return Err(ToolError::Cancelled.into());
        }
        if response.ending == BodyEnding::Stopped {
            // After a timeout there is time to return the received part, but not to convert it.
            return Ok(shown(response, input.format, None));
        }
        let format = input.format;
        blocking(cx, move |cancel| Ok(shown(response, format, Some(cancel)))).await
    }
}

pub(crate) fn request(url: &str) -> Result<HttpRequest, ToolError> {
    Ok(HttpRequest::new("GET", url, &[("Accept".to_owned(), ACCEPT.to_owned())], None)?)
}

/// The kind of a body.
#[derive(Debug, PartialEq, Eq)]
enum BodyKind {
    Html,
    Text,
    Image(&'static str),
    /// By its media type.
    Binary(String),
}

/// The media type in a header, in lower case, and its charset.
fn media_type(header: Option<&str>) -> (Option<String>, Option<String>) {
    let Some(header) = header else { return (None, None) };
    let mut parts = header.split(';');
    let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    let charset = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"').to_owned())
    });
    (Some(essence).filter(|essence| !essence.is_empty()), charset)
}

/// The bytes decide if they are unambiguous, otherwise the header.
fn kind(media_type: Option<&str>, body: &[u8]) -> BodyKind {
    let found = infer::get(body);
    if let Some(image) = picture::media_type(found) {
        return BodyKind::Image(image);
    }
    if let Some(found) = found.filter(|found| found.matcher_type() != infer::MatcherType::Text) {
        return BodyKind::Binary(found.mime_type().to_owned());
    }
    match media_type {
        Some("text/html" | "application/xhtml+xml") => BodyKind::Html,
        None | Some("application/octet-stream" | "text/plain" | "unknown/unknown") if looks_like_html(body) => {
            BodyKind::Html
        }
        _ => BodyKind::Text,
    }
}

fn looks_like_html(body: &[u8]) -> bool {
    let start = body.trim_ascii_start();
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    let begins = |with: &[u8]| start.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with));
    begins(b"<!doctype html") || begins(b"<html")
}

/// Builds the result from a response. Without `cancel`, nothing is converted.
fn shown(
    response: HttpResponse,
    format: FetchFormat,
    cancel: Option<&tokio_util::sync::CancellationToken>,
) -> ToolOutput {
    let (media_type, charset) = media_type(response.header("content-type"));
    let whole = response.ending == BodyEnding::Whole;
    let kind = kind(media_type.as_deref(), &response.body);
    let mut output = match (&kind, response.header("content-encoding")) {
        // A server that compresses in a way that was not requested sends bytes that no one can read.
        (_, Some(encoding)) if !encoding.eq_ignore_ascii_case("identity") => {
            ToolOutput::error(format!("the body is compressed with {encoding}, which is not supported: not shown"))
        }
        (BodyKind::Image(image), _) if whole => {
            match picture::check(image, &response.body, response.body.len() as u64) {
                Ok(picture) => {
                    let (words, block) = picture.show(&response.body);
                    let mut output = ToolOutput::text(words);
                    output.content.push(block);
                    output
                }
                Err(PictureProblem::NotTaken(words)) => {
                    let words = format!("{} is {words}: not shown; {}", response.url, to_read_it(&response));
                    ToolOutput::error(words).with("binary", true)
                }
                Err(PictureProblem::Damaged(words)) => {
                    ToolOutput::error(format!("{} is {words}: not shown", response.url)).with("binary", true)
                }
            }
        }
        (BodyKind::Image(image), _) => binary(image, &response),
        (BodyKind::Binary(found), _) if found == "application/pdf" => {
            let words = format!("{} is a PDF: not shown; {}", response.url, to_read_it(&response));
            ToolOutput::error(words).with("binary", true)
        }
        (BodyKind::Binary(found), _) => binary(found, &response),
        (BodyKind::Html | BodyKind::Text, _) => {
            match decode(&response.body, charset.as_deref(), whole, kind == BodyKind::Html) {
                None => binary(media_type.as_deref().unwrap_or("of an unknown kind"), &response),
                Some(decoded) => text(decoded, &response, kind == BodyKind::Html, format, cancel),
            }
        }
    };
    if let Some(note) = note(&response) {
        output.content.push(Block::text(note));
    }
    if response.status >= 400 {
        let status = status_words(&response);
        let start = output
            .content
            .iter()
            .find_map(Block::as_text)
            .map(|text| cut_bytes(text, ERROR_TEXT, "..."))
            .unwrap_or_default();
        output.content = vec![Block::text(format!("{status}: {}\n\n{start}", response.url))];
        output.is_error = true;
    }
    if !response.redirects.is_empty() {
        output = output.with("redirects", response.redirects.clone());
    }
    if let Some(header) = response.header("content-type") {
        output = output.with("content_type", header);
    }
    output
        .with("url", response.url.as_str())
        .with("status", response.status)
        .with("bytes", response.body.len())
        .with("truncated", !whole)
        .with("from_cache", response.from_cache)
}

fn text(
    Decoded { text, charset }: Decoded,
    response: &HttpResponse,
    is_html: bool,
    format: FetchFormat,
    cancel: Option<&tokio_util::sync::CancellationToken>,
) -> ToolOutput {
    let form = match format {
        FetchFormat::Markdown => Some(PageForm::Markdown),
        FetchFormat::Text => Some(PageForm::Text),
        FetchFormat::Raw => None,
    };
    let output = match (form, cancel) {
        _ if text.is_empty() || is_html && text.trim().is_empty() => empty(response),
        (Some(form), Some(cancel)) if is_html => match page::read(&text, &response.url, form, cancel) {
            Ok(page) => {
                let mut output = ToolOutput::text(with_head(&page, response, has_scripts(&text)))
                    .with("readable_part", page.is_part);
                if let Some(title) = page.title {
                    output = output.with("title", title);
                }
                output
            }
            Err(error) => {
                let mut output = ToolOutput::text(format!("[shown as it came: {error:#}]"));
                output.content.push(Block::text(text));
                output
            }
        },
        _ => ToolOutput::text(text),
    };
    output.with("charset", charset)
}

/// A body without text: the status says what came instead.
fn empty(response: &HttpResponse) -> ToolOutput {
    let words = format!("[the body is empty: {}]", status_words(response));
    match response.ending {
        BodyEnding::Broken(_) => ToolOutput::error(words),
        _ => ToolOutput::text(words),
    }
}

fn has_scripts(html: &str) -> bool {
    html.as_bytes().windows(7).any(|bytes| bytes.eq_ignore_ascii_case(b"<script"))
}

/// The title, and the final address if it differs from the requested one, above the text.
fn with_head(page: &page::WebPage, response: &HttpResponse, has_scripts: bool) -> String {
    let mut head = String::new();
    if let Some(title) = &page.title {
        head.push_str(&format!("Title: {title}\n"));
    }
    if !response.redirects.is_empty() {
        head.push_str(&format!("URL: {}\n", response.url));
    }
    let body = match (page.text.is_empty(), has_scripts) {
        (false, _) => &page.text,
        (true, true) => "[the page has no text: it may be written by JavaScript, which is not run]",
        (true, false) => "[the page has no text]",
    };
    if head.is_empty() { body.to_owned() } else { format!("{head}\n{body}") }
}

fn binary(name: &str, response: &HttpResponse) -> ToolOutput {
    let bytes = response.body.len();
    let size =
        if response.ending == BodyEnding::Whole { format!("{bytes} bytes") } else { format!("over {bytes} bytes") };
    ToolOutput::error(format!("{} is not text ({name}, {size}): not shown", response.url)).with("binary", true)
}

/// How to see a body that only `read` shows.
fn to_read_it(response: &HttpResponse) -> String {
    let url = response.url.replace('\'', "%27");
    format!("to see it, save it in bash with `curl -fLo FILE '{url}'` and `read` the file")
}

/// Why the body is incomplete, and how to get more.
fn note(response: &HttpResponse) -> Option<String> {
    let bytes = response.body.len();
    match &response.ending {
        BodyEnding::Whole => None,
        BodyEnding::TooLong if bytes < MAX_BYTES => {
            Some(format!("[cut after {bytes} bytes; for more set max_bytes, at most {MAX_BYTES}]"))
        }
        BodyEnding::TooLong => Some(format!("[cut after {bytes} bytes, the most that is read]")),
        BodyEnding::TimedOut | BodyEnding::Stopped => {
            Some(format!("[timed out after {bytes} bytes; for more set timeout_ms]"))
        }
        BodyEnding::Broken(reason) => Some(format!("[broke off after {bytes} bytes: {reason}]")),
    }
}

fn status_words(response: &HttpResponse) -> String {
    match response.status_text() {
        Some(text) => format!("{} {text}", response.status),
        None => response.status.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_media_type_is_read_in_any_spelling() {
        let read = |header| media_type(Some(header));
        let is = |essence: &str, charset: Option<&str>| (Some(essence.to_owned()), charset.map(str::to_owned));
        assert_eq!(read("text/html"), is("text/html", None));
        assert_eq!(read("Text/HTML ; Charset = \"UTF-8\""), is("text/html", Some("UTF-8")));
        assert_eq!(read("text/html; boundary=x;charset=latin1"), is("text/html", Some("latin1")));
        assert_eq!(read(" ; charset=x"), (None, Some("x".to_owned())));
        assert_eq!(media_type(None), (None, None));
    }

    #[test]
    fn bytes_take_precedence_over_headers() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
        assert_eq!(kind(Some("text/html"), png), BodyKind::Image("image/png"));
        assert_eq!(kind(Some("text/html"), b"%PDF-1.7"), BodyKind::Binary("application/pdf".into()));
        assert_eq!(kind(Some("text/html"), b"plain"), BodyKind::Html);
        assert_eq!(kind(None, b" <!DOCTYPE HTML><p>x"), BodyKind::Html);
        assert_eq!(kind(None, b"plain"), BodyKind::Text);
        assert_eq!(kind(Some("application/json"), b"{}"), BodyKind::Text);
        assert_eq!(kind(Some("image/svg+xml"), b"<svg></svg>"), BodyKind::Text);
    }
}
