//! Links of all documents lead somewhere.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use crate::sources::{files, read, root};

/// A document without its fenced blocks and without code in its lines: brackets there are no links.
fn prose(text: &str) -> String {
    let (mut prose, mut fenced) = (String::new(), false);
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            prose.push_str(line);
        }
        prose.push('\n');
    }
    regex::Regex::new(r"`[^`\n]*`").unwrap().replace_all(&prose, "").into_owned()
}

/// The anchors of a document, as GitHub makes them of its headings.
fn anchors(text: &str) -> Vec<String> {
    let link = regex::Regex::new(r"\[([^\]]*)\]\([^)]*\)").unwrap();
    let (mut anchors, mut times, mut fenced) = (Vec::new(), BTreeMap::<String, usize>::new(), false);
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let heading = line.trim_start_matches('#');
        let depth = line.len() - heading.len();
        if fenced || !(1..=6).contains(&depth) || !heading.starts_with(' ') {
            continue;
        }
        let plain = link.replace_all(heading.trim(), "$1").to_lowercase();
        let kept = plain.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ' '));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let before = times.entry(anchor.clone()).or_default();
        anchors.push(if *before == 0 { anchor } else { format!("{anchor}-{before}") });
        *before += 1;
    }
    anchors
}

/// `a/./b/../c` as `a/c`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

#[test]
fn links_of_all_documents_lead_somewhere() {
    let target = regex::Regex::new(r#"\]\(<?([^)\s>]+)|^\[[^\]]+\]:\s+(\S+)|(?:src|href|srcset)="([^"]+)""#).unwrap();
    let mut wrong = Vec::new();
    for document in files(&["*.md"]) {
        let text = read(&document);
        for (number, line) in prose(&text).lines().enumerate() {
            for found in target.captures_iter(line) {
                let link = (1..=3).find_map(|group| found.get(group)).unwrap().as_str();
                if link.contains("://") || link.starts_with("mailto:") {
                    continue;
                }
                let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor)));
                let named = if path.is_empty() {
                    PathBuf::from(&document)
                } else {
                    normal(&Path::new(&document).parent().unwrap().join(path))
                };
                let is_document = named.extension().is_some_and(|extension| extension == "md");
                if !root().join(&named).exists() {
                    wrong.push(format!("{document}:{}: {link}: no such file", number + 1));
                } else if let Some(anchor) = anchor.filter(|_| is_document)
                    && !anchors(&read(named.to_str().unwrap())).iter().any(|known| known == anchor)
                {
                    wrong.push(format!("{document}:{}: {link}: no such heading", number + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "links that lead nowhere:\n{}", wrong.join("\n"));
}

#[test]
fn anchors_are_those_of_github() {
    let text = "# A `b`, c\n## [Same](x.md)\n## Same\n```\n# no heading\n```\n#no heading\n";
    assert_eq!(anchors(text), ["a-b-c", "same", "same-1"]);
}

/// A line break in a cell ends the table, so that the rows below it are shown as text.
#[test]
fn rows_of_tables_are_whole_lines() {
    let mut wrong = Vec::new();
    for document in files(&["*.md"]) {
        for (number, line) in prose(&read(&document)).lines().enumerate().filter(|(_, line)| line.starts_with('|')) {
            if !line.ends_with('|') || line.contains('`') {
                wrong.push(format!("{document}:{}: {line}", number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "rows that do not end, or code in them that does not:\n{}", wrong.join("\n"));
}
