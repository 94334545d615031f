//! PDFs as text, by pages, through `pdftotext` of poppler.

use toold_engine::cx::Cx;

use crate::reader_program::{ReadOutput, ReaderError, ReaderProgram};
use crate::toolkit::Toolkit;

/// The number of pages that are read at once.
const MAX_PAGES: u32 = 100;

/// Pages of a PDF, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PdfPages {
    first: u32,
    last: u32,
}

/// The text of some pages.
pub(crate) struct PdfText {
    /// Each page after a line with its number.
    pub(crate) text: String,
    /// The number of pages in it.
    pub(crate) pages: usize,
    /// What else is to be said.
    pub(crate) note: Option<String>,
}

impl PdfPages {
    /// Reads `3`, `2-5` or `2-`; without a text, the first pages.
    ///
    /// # Errors
    /// It is something else, or more pages than are read at once.
    pub(crate) fn parse(text: Option<&str>) -> anyhow::Result<Self> {
        let Some(text) = text else { return Ok(Self { first: 1, last: MAX_PAGES }) };
        let number = |text: &str| text.trim().parse::<u32>().ok().filter(|page| *page > 0);
        let pages = match text.split_once('-') {
            None => number(text).map(|page| Self { first: page, last: page }),
            Some((first, "")) => number(first).map(|first| Self { first, last: first.saturating_add(MAX_PAGES - 1) }),
            Some((first, last)) => number(first).zip(number(last)).map(|(first, last)| Self { first, last }),
        };
        match pages.filter(|pages| pages.first <= pages.last) {
            Some(pages) if pages.last - pages.first < MAX_PAGES => Ok(pages),
            Some(_) => anyhow::bail!("pages {text} are too many: read at most {MAX_PAGES} at once"),
            None => anyhow::bail!("pages is a page or a range of them, such as 3 or 2-5, and not {text:?}"),
        }
    }
}

/// The text of these pages of a PDF.
///
/// # Errors
/// `pdftotext` is missing, or cannot read it; in words for people that name the file.
pub(crate) async fn text_of(
    shown: &str,
    content: Vec<u8>,
    pages: PdfPages,
    toolkit: &Toolkit,
    cx: &Cx,
) -> anyhow::Result<PdfText> {
    let program = ReaderProgram {
        names: &["pdftotext"],
        package: "poppler (the package poppler-utils)",
        arguments: [
            "-enc",
            "UTF-8",
            "-layout",
            "-f",
            &pages.first.to_string(),
            "-l",
            &pages.last.to_string(),
            "-",
            "-",
        ]
        .map(str::to_owned)
        .into(),
    };
    let ReadOutput { bytes, cut } = match program.read(content, toolkit, cx).await {
        Ok(read) => read,
        Err(ReaderError::Missing(what)) => {
            anyhow::bail!("{shown} is a PDF, and there is no pdftotext to read it: {what}")
        }
        Err(ReaderError::Failed(words)) => anyhow::bail!("{shown} is a PDF: {words}"),
        Err(ReaderError::Call(error)) => return Err(error.into()),
    };
    let text = String::from_utf8_lossy(&bytes);
    // Each page ends with a form feed.
    let found: Vec<&str> = text.split_terminator('\u{c}').collect();
    if found.iter().all(|page| page.trim().is_empty()) {
        let of = if found.is_empty() { "there is no such page".to_owned() } else { format!("pages: {}", found.len()) };
        anyhow::bail!(
            "{shown} is a PDF without text in these pages ({of}): they may be scanned pictures, which `pdftoppm -png` \
             makes of them"
        );
    }
    let mut text = String::new();
    for (number, page) in (pages.first..).zip(&found) {
        text.push_str(&format!("[page {number}]\n{}\n", page.trim_end()));
    }
    let next = u64::from(pages.first) + found.len() as u64;
    let note = match () {
        () if cut => Some(format!("[cut in page {}; read fewer pages]", next - 1)),
        () if next > u64::from(pages.last) && pages.last > pages.first => {
            Some(format!("[pages {} to {}; continue with pages=\"{next}-\"]", pages.first, next - 1))
        }
        () => None,
    };
    Ok(PdfText { text, pages: found.len(), note })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_a_number_or_a_range() {
        let pages = |text| PdfPages::parse(Some(text)).map_err(|error| error.to_string());
        assert_eq!(pages("3"), Ok(PdfPages { first: 3, last: 3 }));
        assert_eq!(pages(" 2 - 5 "), Ok(PdfPages { first: 2, last: 5 }));
        assert_eq!(pages("7-"), Ok(PdfPages { first: 7, last: 106 }));
        assert_eq!(pages("4294967295-"), Ok(PdfPages { first: u32::MAX, last: u32::MAX }));
        for bad in ["", "0", "x", "-", "-3", "5-2", "1-2-3", "1,2"] {
            assert!(pages(bad).is_err_and(|error| error.contains("such as 3 or 2-5")), "{bad}");
        }
        assert_eq!(pages("1-101"), Err("pages 1-101 are too many: read at most 100 at once".to_owned()));
    }
}
