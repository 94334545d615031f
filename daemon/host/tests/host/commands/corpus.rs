//! Data files of command lines with their rules.

use crate::commands::judge::RuleLine;

/// One command line of a data file.
pub(crate) struct CorpusEntry {
    pub(crate) file: &'static str,
    /// In its file, from 1.
    pub(crate) number: usize,
    pub(crate) section: String,
    pub(crate) rules: Vec<RuleLine>,
    pub(crate) line: String,
}

/// Text before the first section is for readers. A section begins with `== TITLE`, directly followed by its rules
/// (`allow shell cargo test *`), then after an empty line by its command lines: one per line, or one with several lines
/// between `<<<` and `>>>`.
pub(crate) fn read(file: &'static str, text: &str) -> Vec<CorpusEntry> {
    let mut found = Vec::new();
    let mut section = String::new();
    let mut rules: Vec<RuleLine> = Vec::new();
    let mut in_heading = false;
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        if let Some(title) = line.strip_prefix("== ") {
            (section, in_heading) = (title.to_owned(), true);
            rules.clear();
            continue;
        }
        if line.is_empty() || section.is_empty() {
            in_heading = false;
            continue;
        }
        if in_heading {
            rules.push(RuleLine::parse(line).unwrap_or_else(|| panic!("{file}:{}: no rule: {line}", at + 1)));
            continue;
        }
        let line = match line {
            "<<<" => {
                let block: Vec<&str> = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != ">>>").collect();
                block.join("\n")
            }
            line => line.to_owned(),
        };
        found.push(CorpusEntry { file, number: at + 1, section: section.clone(), rules: rules.clone(), line });
    }
    found
}
