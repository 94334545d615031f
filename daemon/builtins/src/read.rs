//! `read`: the lines of a text file, an image, or the text of a PDF.

use std::io::{Cursor, Read as _};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::tool::ToolOutput;
use toold_host::files;
use toold_host::files::OpenError;
use toold_proto::tool::{Block, Category};

use crate::blocking::{CancellableFile, blocking};
use crate::buffers::Buffer;
use crate::builtin::{Builtin, READS, ToolFacts};
use crate::change::ChangeTarget;
use crate::lines::LineReader;
use crate::notebook;
use crate::paths::Located;
use crate::pdf::{self, PdfPages};
use crate::picture::{self, PictureProblem};
use crate::text::{Charset, charset, counted, ends_lines_with_cr};
use crate::toolkit::Toolkit;

/// Files up to this size are read completely, which gives exact totals; longer ones only as far as requested.
const WHOLE: u64 = 10 * 1024 * 1024;
/// Files up to this size are read in place if no disk is needed for that: a thread of its own takes longer.
const IN_PLACE: usize = 64 * 1024;
const HEAD: usize = 64 * 1024;
const MAX_LINE: usize = 2000;
const DEFAULT_LIMIT: u64 = 2000;
/// The longest image or PDF that is read, in bytes.
const MAX_CONVERTED: u64 = 64 * 1024 * 1024;

/// Arguments of `read`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadInput {
    /// The file, relative to the working folder or absolute; odd names also as tools quote them.
    path: String,
    /// The first line to show; 1 by default.
    #[cfg_attr(test, schemars(range(min = 1)))]
    offset: Option<u64>,
    /// How many lines to show; 2000 by default.
    #[cfg_attr(test, schemars(range(min = 1)))]
    limit: Option<u64>,
    /// Show a notebook as the JSON that it is, for `edit`.
    #[serde(default)]
    raw: bool,
    /// The pages of a PDF to show, such as `3` or `2-5`, at most 100; the first ones by default.
    pages: Option<String>,
}

pub(crate) struct ReadTool {
    toolkit: Arc<Toolkit>,
}

impl Builtin for ReadTool {
    type Input = ReadInput;

    const NAME: &'static str = "read";
    const FACTS: ToolFacts = ToolFacts {
        label: "Read a file",
        description: "Shows a text file as numbered lines, `N: text`, or an image. A notebook (.ipynb) is shown as its \
                      cells and their outputs, a PDF as the text of its pages. Long files come in pages: continue with \
                      `offset`. Lines over 2000 characters are cut.",
        parallelizable: true,
        permissions: &[Category::FileRead],
        timeout: None,
        annotations: READS,
    };

    fn new(toolkit: Arc<Toolkit>) -> Self {
        Self { toolkit }
    }

    async fn needs(&self, input: &ReadInput, cx: &Cx) -> anyhow::Result<Vec<Need>> {
        let located = Located::new(&input.path, cx)?;
        Ok(if self.is_own(&located, cx) { Vec::new() } else { vec![located.to_read(cx)] })
    }

    async fn run(&self, input: ReadInput, cx: &Cx) -> anyhow::Result<ToolOutput> {
        let site = ChangeTarget::new(&self.toolkit, &input.path, cx)?;
        if !self.is_own(&site.located, cx) {
            site.located.require_read(cx).await?;
        }
        let page = ReadPage {
            first: input.offset.unwrap_or(1),
            lines: input.limit.unwrap_or(DEFAULT_LIMIT),
            raw: input.raw,
            bytes: cx.engine.settings.load().max_result_text.saturating_sub(512),
        };
        let pages = PdfPages::parse(input.pages.as_deref())?;
        let (shown, path) = (site.shown.clone(), site.path.clone());
        let content = match cached(&site) {
            Some(content) => open(&site, &page, Some(content), &cx.cancel)?,
            None => blocking(cx, move |cancel| open(&site, &page, None, cancel)).await?,
        };
        let (digest, output) = match content {
            FileContent::Pdf(content) => (blake3::hash(&content), self.pdf(&shown, content, pages, &page, cx).await?),
            FileContent::Image { mime_type, content, size } => {
                (blake3::hash(&content), self.image(&shown, mime_type, content, size, cx).await?)
            }
            FileContent::Shown(_) if input.pages.is_some() => {
                anyhow::bail!("{shown} is no PDF, and has no pages: use offset and limit, which count lines")
            }
            FileContent::Shown(output) => return Ok(output),
        };
        self.toolkit.stamps.saw(&cx.session, &path, digest);
        Ok(output)
    }
}

impl ReadTool {
    /// A session may read its own spooled results without permission: it has already seen part of them.
    fn is_own(&self, located: &Located, cx: &Cx) -> bool {
        let own = || self.toolkit.session_spool(cx).is_some_and(|spool| located.path.starts_with(spool));
        !located.hides_its_target() && own()
    }

    async fn pdf(
        &self,
        shown: &str,
        content: Vec<u8>,
        pages: PdfPages,
        page: &ReadPage,
        cx: &Cx,
    ) -> anyhow::Result<ToolOutput> {
        let size = content.len();
        let found = pdf::text_of(shown, content, pages, &self.toolkit, cx).await?;
        let mut output = text(lines_of(found.text.as_bytes()), shown, page, LinesFrom::Elsewhere, AfterPage::Count)?;
        output.content.extend(found.note.map(Block::text));
        Ok(output.with("pages", found.pages).with("mime_type", "application/pdf").with("size", size))
    }

    async fn image(
        &self,
        shown: &str,
        mime_type: &'static str,
        content: Vec<u8>,
        size: u64,
        cx: &Cx,
    ) -> anyhow::Result<ToolOutput> {
        let (words, block) = match picture::check(mime_type, &content, size) {
            Ok(picture) => picture.show(&content),
            Err(PictureProblem::Damaged(words)) => anyhow::bail!("{shown} is {words}"),
            Err(PictureProblem::NotTaken(words)) if (content.len() as u64) < size => {
                anyhow::bail!("{shown} is {words}: make it smaller, or cut a part out of it, and read that")
            }
            Err(PictureProblem::NotTaken(words)) => {
                let made = picture::converted(mime_type, content, &self.toolkit, cx).await;
                let (picture, made) = made.with_context(|| format!("{shown} is {words}"))?;
                let (result, block) = picture.show(&made);
                (format!("{words}, shown as {result}"), block)
            }
        };
        let mut output = ToolOutput::text(format!("{shown}: {words}"));
        output.content.push(block);
        Ok(output.with("mime_type", mime_type).with("size", size))
    }
}

#[derive(Clone, Copy)]
struct ReadPage {
    first: u64,
    lines: u64,
    raw: bool,
    bytes: usize,
}

/// The content of a file.
enum FileContent {
    Shown(ToolOutput),
    Pdf(Vec<u8>),
    /// `content` is only the beginning if `size` is more.
    Image {
        mime_type: &'static str,
        content: Vec<u8>,
        size: u64,
    },
}

/// The content of a small file that the system has in memory, unless an editor may have another text for it.
fn cached(site: &ChangeTarget) -> Option<Vec<u8>> {
    let is_file = site.located.kind.is_some_and(|kind| kind.is_file());
    (is_file && site.buffer().is_none()).then(|| files::read_cached(&site.path, IN_PLACE)).flatten()
}

/// `known` is the whole content, if it was read already; without it, this blocks.
fn open(
    site: &ChangeTarget,
    page: &ReadPage,
    known: Option<Vec<u8>>,
    cancel: &CancellationToken,
) -> anyhow::Result<FileContent> {
    let ChangeTarget { toolkit, session, path, shown, .. } = site;
    if let Some(buffer) = site.buffer()
        && !is_saved(path, &buffer)
    {
        return unsaved(&buffer, shown, page).map(FileContent::Shown);
    }
    let FileStart { mut head, size, mut rest } = match known {
        Some(content) => FileStart { size: content.len() as u64, head: content, rest: None },
        None => start_of(site, cancel)?,
    };
    let kind = infer::get(&head);
    let image = picture::media_type(kind);
    let is_pdf = kind.is_some_and(|kind| kind.mime_type() == "application/pdf");
    if (is_pdf || image.is_some())
        && size <= MAX_CONVERTED
        && let Some(rest) = rest.take()
    {
        rest.take(MAX_CONVERTED + 1).read_to_end(&mut head)?;
    }
    let whole = rest.is_none();
    let charset = charset(&head, whole);
    // A file counts as read once it is shown, and it turns out later whether an image or a PDF can be shown.
    if whole && image.is_none() && !is_pdf && charset.is_some() {
        toolkit.stamps.saw(session, path, blake3::hash(&head));
    }
    if let Some(mime_type) = image {
        let size = if whole { head.len() as u64 } else { size };
        return Ok(FileContent::Image { mime_type, content: head, size });
    }
    if is_pdf {
        anyhow::ensure!(whole, "{shown} is a PDF of {size} bytes; at most {MAX_CONVERTED} can be read");
        return Ok(FileContent::Pdf(head));
    }
    let is_notebook = whole && !page.raw && path.extension().is_some_and(|ending| ending == "ipynb");
    if is_notebook && let Some(found) = notebook::text_of(&head) {
        let mut output = text(lines_of(found.text.as_bytes()), shown, page, LinesFrom::Notebook, AfterPage::Count)?;
        output.content.push(Block::text("[a notebook, shown as text; to edit it, read it with raw=true]"));
        let output = output.with("cells", found.cells).with("path", path.to_string_lossy().as_ref()).with("size", size);
        return Ok(FileContent::Shown(output));
    }
    let Some(charset) = charset else {
        let kind = kind.map_or("of an unknown kind", |kind| kind.mime_type());
        let output = ToolOutput::error(format!("{shown} is a binary file ({kind}, {size} bytes): not shown"));
        return Ok(FileContent::Shown(output.with("binary", true).with("size", size)));
    };
    let mut output = match rest {
        None => {
            let has_cr = ends_lines_with_cr(&head, charset);
            let lines = LineReader::new(Cursor::new(head), charset, MAX_LINE).with_cr(has_cr);
            text(lines, shown, page, LinesFrom::File, AfterPage::Count)?
        }
        Some(rest) => {
            let lines = LineReader::new(Cursor::new(head).chain(rest), charset, MAX_LINE);
            text(lines, shown, page, LinesFrom::File, AfterPage::Leave)?
        }
    };
    output.metadata.insert("path".into(), path.to_string_lossy().into());
    output.metadata.insert("size".into(), size.into());
    Ok(FileContent::Shown(output))
}

/// The beginning of a file.
struct FileStart<'a> {
    head: Vec<u8>,
    size: u64,
    /// The rest of the file; `None` if `head` is all of it.
    rest: Option<CancellableFile<'a>>,
}

fn start_of<'a>(site: &ChangeTarget, cancel: &'a CancellationToken) -> anyhow::Result<FileStart<'a>> {
    let file = match files::open(&site.path) {
        Err(OpenError::Folder(_)) => anyhow::bail!("{} is a folder: use `list`", site.shown),
        Err(OpenError::NotFound(_)) => anyhow::bail!("{}", site.missing("")),
        other => other?,
    };
    let size = file.metadata()?.len();
    let mut reader = CancellableFile { file, cancel };
    let mut head = Vec::with_capacity(usize::try_from(size.min(WHOLE)).unwrap_or(0));
    let take = if size <= WHOLE { WHOLE + 1 } else { HEAD as u64 };
    let read = (&mut reader).take(take).read_to_end(&mut head);
    read.with_context(|| format!("can't read {}", site.shown))?;
    let is_whole = head.len() < take as usize;
    Ok(FileStart { head, size, rest: (!is_whole).then_some(reader) })
}

/// Whether the file contains the buffer's text, that is, whether it is saved.
fn is_saved(path: &Path, buffer: &Buffer) -> bool {
    let Ok(file) = files::open(path) else { return false };
    let mut bytes = Vec::new();
    let limit = buffer.text.len() as u64 + 1;
    file.take(limit).read_to_end(&mut bytes).is_ok() && bytes == buffer.text.as_bytes()
}

/// The text in the editor. Reading it does not count as having seen the file itself.
fn unsaved(buffer: &Buffer, shown: &str, page: &ReadPage) -> anyhow::Result<ToolOutput> {
    let mut output = text(lines_of(buffer.text.as_bytes()), shown, page, LinesFrom::Elsewhere, AfterPage::Count)?;
    let note = format!("[unsaved text in {}, version {}; the file on the disk differs]", buffer.owner, buffer.version);
    output.content.push(Block::text(note));
    Ok(output.with("buffer", serde_json::json!({"owner": buffer.owner, "version": buffer.version})))
}

/// How to handle the lines after the page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AfterPage {
    Count,
    /// The rest may be gigabytes long.
    Leave,
}

/// Where the lines that are shown come from, and so whether a command can show the rest of a long one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LinesFrom {
    File,
    /// Made of a notebook, whose own lines are JSON.
    Notebook,
    /// No file has them.
    Elsewhere,
}

fn lines_of(text: &[u8]) -> LineReader<&[u8]> {
    LineReader::new(text, Charset::UTF8, MAX_LINE)
}

fn text(
    mut lines: LineReader<impl std::io::Read>,
    shown: &str,
    page: &ReadPage,
    from: LinesFrom,
    rest: AfterPage,
) -> anyhow::Result<ToolOutput> {
    let charset = lines.charset;
    let before = lines.skip(page.first - 1)?;
    let mut text = String::new();
    let (mut count, mut crlf, mut cut_lines) = (0u64, 0u64, 0u64);
    let mut first_cut = None;
    // A line that was read but no longer fits.
    let mut taken = 0;
    let mut more = false;
    let mut endless = false;
    while lines.more()? {
        if count == page.lines {
            more = true;
            break;
        }
        let Some(line) = lines.read()? else { break };
        let mut row = format!("{}: {}", page.first + count, line.text);
        if line.cut > 0 {
            let over = if line.endless { "more than " } else { "" };
            row.push_str(&format!(" [... {over}{} characters cut]", line.cut));
        }
        row.push('\n');
        if text.len() + row.len() > page.bytes && count > 0 {
            more = true;
            taken = 1;
            break;
        }
        if line.cut > 0 {
            cut_lines += 1;
            first_cut.get_or_insert((page.first + count, line.text.len()));
        }
        text.push_str(&row);
        count += 1;
        crlf += u64::from(line.crlf);
        if line.endless {
            endless = true;
            break;
        }
    }
    let mut total = (!endless).then_some(before + count);
    if more {
        let last = page.first + count - 1;
        total = match rest {
            AfterPage::Count => Some(last + taken + lines.skip(u64::MAX)?),
            AfterPage::Leave => None,
        };
        let of = total.map_or_else(|| "more".to_owned(), |total| total.to_string());
        text.push_str(&format!("[lines {} to {last} of {of}; continue with offset={}]", page.first, last + 1));
    } else if count == 0 && page.first > 1 {
        let lines = counted(before, "line");
        return Ok(ToolOutput::error(format!("{shown} has {lines}: there is no line {}", page.first))
            .with("total_lines", before));
    } else if count == 0 {
        text.push_str("[the file is empty]");
    } else {
        text.pop();
    }
    let line_end = match (crlf, count) {
        _ if lines.has_cr() => "cr",
        (0, _) => "lf",
        (crlf, count) if crlf == count || (crlf + 1 == count && !lines.ended) => "crlf",
        _ => "mixed",
    };
    let mut output = ToolOutput::text(text)
        .with("encoding", charset.name())
        .with("line_end", line_end)
        .with("first_line", page.first)
        .with("lines", count)
        .with("truncated", more || endless);
    if let Some(total) = total {
        output = output.with("total_lines", total);
    }
    if cut_lines > 0 {
        output = output.with("cut_lines", cut_lines);
        let (first, length) = first_cut.unwrap_or((page.first, MAX_LINE));
        let more = match from {
            LinesFrom::File => {
                format!("; read on within line {first} with bash: {}", rest_of(&lines, shown, first, length))
            }
            LinesFrom::Notebook => "; read the notebook with raw=true to come to all of it".to_owned(),
            LinesFrom::Elsewhere => String::new(),
        };
        output.content.push(Block::text(format!("[lines are shown up to {MAX_LINE} characters{more}]")));
    }
    if lines.had_errors {
        let changed = match charset.encoding == encoding_rs::UTF_8 {
            true => "a change keeps them",
            false => "only `write` can replace such a file, and keeps none of them",
        };
        let note = format!("[it has bytes that are not valid {}, shown as U+FFFD; {changed}]", charset.name());
        output.content.push(Block::text(note));
        output = output.with("invalid_characters", true);
    }
    Ok(output)
}

/// The command that shows a line of the file after its first bytes, as many as `length`.
fn rest_of(lines: &LineReader<impl std::io::Read>, shown: &str, line: u64, length: usize) -> String {
    let (charset, file) = (lines.charset, shell_word(shown));
    let is_utf8 = charset.encoding == encoding_rs::UTF_8;
    // `sed` keeps a byte order mark of UTF-8, and `iconv` drops that of UTF-16 if it has to find the order by it.
    let mark = if charset.bom && is_utf8 && line == 1 { 3 } else { 0 };
    let encoding = if charset.bom { "UTF-16" } else { charset.encoding.name() };
    let text = match (is_utf8, lines.has_cr()) {
        (true, false) => format!("sed -n {line}p {file}"),
        (true, true) => format!("cat {file} | tr '\\r' '\\n' | sed -n {line}p"),
        (false, false) => format!("iconv -f {encoding} -t UTF-8 {file} | sed -n {line}p"),
        (false, true) => format!("iconv -f {encoding} -t UTF-8 {file} | tr '\\r' '\\n' | sed -n {line}p"),
    };
    format!("{text} | cut -b {}-{}", mark + length + 1, mark + length * 10)
}

/// A path as bash takes it. A quoted name has escapes that are those of `$'...'`, too.
fn shell_word(shown: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_@%+=:,./-".contains(c);
    match shown {
        quoted if quoted.starts_with('"') && quoted.len() > 1 => {
            format!("-- $'{}'", quoted[1..quoted.len() - 1].replace('\'', "\\'"))
        }
        plain if plain.chars().all(is_plain) && !plain.starts_with('-') => plain.to_owned(),
        other => format!("-- '{}'", other.replace('\'', "'\\''")),
    }
}
