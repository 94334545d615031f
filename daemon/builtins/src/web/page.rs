//! Converts HTML to Markdown or text: the readable part, or the whole page if no readable part is found.
//!
//! Pages are untrusted. Elements nested ten thousand deep would cost the parser hours and overflow the converter's
//! stack, so a page is parsed in small pieces and rejected if it exceeds the limits.

use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use dom_query::{Document, NodeId};
use dom_smoothie::{Config, Readability, TextMode};
use html5ever::ParseOpts;
use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::tree_builder::TreeBuilderOpts;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::blocking::check;

/// The nesting limit of browsers.
const MAX_DEPTH: usize = 512;
const MAX_NODES: usize = 200_000;
const MAX_PARSE: Duration = Duration::from_secs(5);
/// Longer pages are converted whole, because the search for the readable part is slow.
const MAX_READABLE: usize = 1024 * 1024;
/// Bytes that are fed to the parser between two checks of the resulting tree.
const PIECE: usize = 2048;
/// Enough for `MAX_DEPTH` with a margin, in a build without optimization too.
const STACK: usize = 16 * 1024 * 1024;
const MAX_TITLE: usize = 300;

/// Elements without readable text, removed from pages that have no readable part.
const CLUTTER: [&str; 8] = ["script", "style", "head", "template", "svg", "iframe", "nav", "noscript"];

/// A page as readers see it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WebPage {
    pub(crate) title: Option<String>,
    pub(crate) text: String,
    /// Whether the text is only the readable part of the page.
    pub(crate) is_part: bool,
}

/// The output format of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageForm {
    Markdown,
    Text,
}

/// Converts a page that was fetched from `url`. Blocks. `cancel` stops it soon, except while it searches for the
/// readable part.
///
/// # Errors
/// A page that cannot be converted within the limits, in words for people; or the call was cancelled.
pub(crate) fn read(html: &str, url: &str, form: PageForm, cancel: &CancellationToken) -> anyhow::Result<WebPage> {
    let work = || convert(html, url, form, cancel);
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("page".into()).stack_size(STACK).spawn_scoped(scope, work)?;
        // A panic of the converter affects only this page.
        thread.join().unwrap_or_else(|_| Err(anyhow!("the page cannot be converted")))
    })
}

fn convert(html: &str, url: &str, form: PageForm, cancel: &CancellationToken) -> anyhow::Result<WebPage> {
    let document = parse(html, cancel)?;
    check(cancel)?;
    let title = title(&document);
    let mode = match form {
        PageForm::Markdown => TextMode::Markdown,
        PageForm::Text => TextMode::Formatted,
    };
    if html.len() <= MAX_READABLE {
        let config = Config { text_mode: mode, disable_json_ld: true, ..Config::default() };
        let mut readability = Readability::with_document(document.clone(), Some(url), Some(config))?;
        if readability.is_probably_readable()
            && let Ok(article) = readability.parse()
        {
            let text = tidy(&article.text_content);
            if !text.is_empty() {
                return Ok(WebPage { title, text, is_part: true });
            }
        }
    }
    check(cancel)?;
    lengthen_links(&document, url);
    let without_scripts = document.select("noscript").formatted_text();
    document.select(&CLUTTER.join(",")).remove();
    let text = match form {
        PageForm::Markdown => document.md(Some(&[])),
        PageForm::Text => document.formatted_text(),
    };
    let mut text = tidy(&text);
    if text.is_empty() {
        // The page of an application, which scripts fill.
        text = tidy(&without_scripts);
    }
    Ok(WebPage { title, text, is_part: false })
}

fn parse(html: &str, cancel: &CancellationToken) -> anyhow::Result<Document> {
    let start = Instant::now();
    let options = ParseOpts {
        tree_builder: TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() },
        ..ParseOpts::default()
    };
    let mut parser = html5ever::parse_document(Document::default(), options);
    let mut rest = html;
    while !rest.is_empty() {
        check(cancel)?;
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE.max(4)));
        rest = after;
        parser.process(StrTendril::from_slice(piece));
        let document = &parser.tokenizer.sink.sink;
        if document.tree.len() > MAX_NODES {
            bail!("the page has more than {MAX_NODES} elements and texts");
        }
        if depth_of_last(document) > MAX_DEPTH {
            bail!("the elements of the page nest deeper than {MAX_DEPTH} levels");
        }
        if start.elapsed() > MAX_PARSE {
            bail!("the page takes too long to read");
        }
    }
    let document = parser.finish();
    if is_deep(&document) {
        bail!("the elements of the page nest deeper than {MAX_DEPTH} levels");
    }
    Ok(document)
}

/// The depth of the element that is being read.
fn depth_of_last(document: &Document) -> usize {
    let last = |node: &NodeId| document.tree.last_child_of(node).map(|child| child.id);
    std::iter::successors(Some(document.tree.root().id), last).take(MAX_DEPTH + 2).count()
}

fn is_deep(document: &Document) -> bool {
    let mut open = vec![(document.tree.root().id, 0)];
    while let Some((node, depth)) = open.pop() {
        if depth > MAX_DEPTH {
            return true;
        }
        open.extend(document.tree.child_ids_of_it(&node, false).map(|child| (child, depth + 1)));
    }
    false
}

fn title(document: &Document) -> Option<String> {
    let text = document.select_single("title").text();
    let words: Vec<&str> = text.split_whitespace().collect();
    let title: String = words.join(" ").chars().take(MAX_TITLE).collect();
    (!title.is_empty()).then_some(title)
}

/// Makes links absolute so that they can be fetched.
fn lengthen_links(document: &Document, url: &str) {
    let Ok(page) = Url::parse(url) else { return };
    let base = document.base_uri().and_then(|base| page.join(&base).ok()).unwrap_or(page);
    for (selector, attribute) in [("a[href]", "href"), ("img[src]", "src")] {
        for node in document.select(selector).nodes() {
            match node.attr(attribute) {
                // Inline images of many kilobytes, and scripts, which only a browser can run.
                Some(link) if link.starts_with("data:") || link.starts_with("javascript:") => {
                    node.remove_attr(attribute);
                }
                Some(link) => {
                    if let Ok(whole) = base.join(&link) {
                        node.set_attr(attribute, whole.as_str());
                    }
                }
                None => {}
            }
        }
    }
}

/// Removes blank lines at both ends, and reduces runs of blank lines to one.
fn tidy(text: &str) -> String {
    let mut tidied = String::with_capacity(text.len());
    let mut blank = 0;
    for line in text.trim().lines() {
        match line.trim_end() {
            "" => blank += 1,
            // Two spaces at the end of a line are a line break in Markdown.
            _ => {
                if !tidied.is_empty() {
                    tidied.push_str(if blank > 0 { "\n\n" } else { "\n" });
                }
                blank = 0;
                tidied.push_str(line);
            }
        }
    }
    tidied
}

#[cfg(test)]
mod tests {
    use super::*;

    fn markdown(html: &str) -> anyhow::Result<WebPage> {
        read(html, "https://example.com/docs/page.html", PageForm::Markdown, &CancellationToken::new())
    }

    fn article() -> String {
        let text = "This sentence, which has a comma, is one of many in an article that is long enough to be one. ";
        let paragraph = format!("<p>{} See <a href='../other'>the other</a>.</p>", text.repeat(4));
        format!(
            "<html><head><title> The \n title </title></head><body><nav><a href=/>Home</a></nav><div class=sidebar>\
             Buy now</div><article><h1>The title</h1>{}<pre><code>let x = 1;</code></pre><table><tr><th>a</th>\
             <th>b</th></tr><tr><td>1</td><td>2</td></tr></table></article><script>evil()</script></body></html>",
            paragraph.repeat(5)
        )
    }

    #[test]
    fn the_readable_part_of_an_article_is_found() {
        let page = markdown(&article()).unwrap();
        assert_eq!(page.title.as_deref(), Some("The title"));
        assert!(page.is_part);
        let text = page.text;
        assert!(!text.contains("Buy now") && !text.contains("Home") && !text.contains("evil"), "{text}");
        assert!(text.contains("[the other](https://example.com/other)"), "{text}");
        assert!(text.contains("let x = 1;") && text.contains("| a "), "{text}");
    }

    #[test]
    fn page_without_an_article_is_shown_whole() {
        let html = "<title>List</title><body><h1>Links</h1><ul><li><a href='a'>A</a><li><a href='/b'>B</a></ul>\
                    <img src='data:image/png;base64,AAAA' alt=dot><a href='javascript:x()'>run</a><script>evil()</script>";
        let page = markdown(html).unwrap();
        assert!(!page.is_part);
        assert!(page.text.starts_with("# Links"), "{}", page.text);
        assert!(page.text.contains("[A](https://example.com/docs/a)"), "{}", page.text);
        assert!(page.text.contains("[B](https://example.com/b)"), "{}", page.text);
        for absent in ["AAAA", "javascript", "evil"] {
            assert!(!page.text.contains(absent), "{}", page.text);
        }
        let text = read(html, "https://example.com/", PageForm::Text, &CancellationToken::new()).unwrap().text;
        assert!(text.contains("Links") && !text.contains('#') && !text.contains("]("), "{text}");
    }

    #[test]
    fn a_base_element_is_heeded() {
        let page = markdown("<base href='https://other.example/x/'><a href=y>Y</a>").unwrap();
        assert_eq!(page.text, "[Y](https://other.example/x/y)");
    }

    #[test]
    fn too_deeply_nested_page_is_rejected() {
        for (open, depth) in [
            ("<div>", 1_000_000),
            ("<b><i><font>", 100_000),
            ("<ul><li>", 100_000),
            ("<table><tr><td>", 100_000),
            ("<blockquote>", 600),
            ("<svg><g>", 100_000),
            ("<template><div>", 100_000),
        ] {
            let page = markdown(&open.repeat(depth));
            assert!(page.is_err(), "{open}");
        }
        let page = markdown(&format!("{}text{}", "<div>".repeat(400), "</div>".repeat(400))).unwrap();
        assert_eq!(page.text, "text");
    }

    #[test]
    fn page_that_grows_while_parsed_is_rejected() {
        let bold: String = (0..5000).map(|n| format!("<p><b a={n}>")).collect();
        assert!(markdown(&bold).is_err());
        let closed: String = (0..5000).map(|n| format!("<p><b a={n}></p>")).collect();
        assert!(markdown(&closed).is_err());
    }

    #[test]
    fn odd_pages_are_read() {
        for html in ["", " ", "<", "<!", "<!--", "</p>", "&", "&#0;", "\0", "<title>", "<p", "<a href=\"", "text"] {
            let page = markdown(html).unwrap();
            assert!(page.text.len() < 10, "{html:?}: {page:?}");
        }
    }

    #[test]
    fn a_cancelled_page_is_not_read() {
        let cancel = CancellationToken::new();
        cancel.cancel();
        assert!(read(&article(), "https://example.com/", PageForm::Markdown, &cancel).is_err());
    }
}
