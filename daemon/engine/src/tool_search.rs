//! Finds tools by words: BM25 over the name, the label, the description and the names of arguments.
//!
//! Each tool's terms are made once, when it is first searched, and kept with it. A search compares them one by one, which
//! takes some microseconds for a hundred tools, so there is no index that a change of the registry would have to renew.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::tool::ToolSpec;

/// How much a word counts, by where it stands.
const NAME: f32 = 4.0;
const LABEL: f32 = 2.0;
const TEXT: f32 = 1.0;
const ARGUMENT: f32 = 0.5;

/// The usual constants of BM25: how soon more of a word counts no more, and how much long texts lose.
const SATURATION: f32 = 1.2;
const LENGTH: f32 = 0.5;

/// How much of a word counts that only begins with the one that was asked for.
const PREFIX: f32 = 0.4;
/// How much of another word for the same thing counts.
const SYNONYM: f32 = 0.6;

/// Words of a long question that are looked for.
const MAX_WORDS: usize = 32;

/// Words that say nothing about a tool.
const STOP_WORDS: &[&str] = &[
    "a", "all", "an", "and", "any", "are", "as", "at", "be", "by", "can", "do", "for", "from", "how", "i", "if", "in",
    "into", "is", "it", "its", "me", "my", "of", "on", "or", "that", "the", "this", "to", "tool", "want", "was",
    "what", "which", "with",
];

/// Words that tools and those who look for them use for the same thing, as stems.
const SYNONYMS: &[&[&str]] = &[
    &["histor", "log"],
    &["delet", "remov", "eras"],
    &["folder", "director", "dir"],
    &["find", "search", "grep", "lookup"],
    &["run", "execut", "shell", "command"],
    &["fetch", "download", "get", "retriev"],
    &["creat", "add", "new", "mak"],
    &["edit", "updat", "modif", "chang", "replac"],
    &["show", "view", "display", "read"],
    &["list", "enumerat"],
    &["send", "post"],
    &["repo", "repositor"],
    &["doc", "document"],
    &["db", "databas"],
    &["pr", "pull"],
    &["url", "link", "web"],
    &["ask", "question"],
    &["memor", "remember"],
];

/// The words of a tool, with their weights.
pub(crate) struct SearchTerms {
    /// Sorted by the stem.
    weights: Vec<(Box<str>, f32)>,
    length: f32,
}

impl SearchTerms {
    pub(crate) fn of(spec: &ToolSpec) -> Self {
        let mut weights = BTreeMap::<String, f32>::new();
        let mut add = |text: &str, weight: f32| {
            stems(text).for_each(|stem| *weights.entry(stem).or_default() += weight);
        };
        add(spec.name.as_str(), NAME);
        add(&spec.label, LABEL);
        add(&spec.description, TEXT);
        let arguments = spec.input.as_value().get("properties").and_then(Value::as_object);
        arguments.into_iter().flatten().for_each(|(name, _)| add(name, ARGUMENT));
        let weights: Vec<(Box<str>, f32)> =
            weights.into_iter().map(|(stem, weight)| (stem.into_boxed_str(), weight)).collect();
        let length = weights.iter().map(|(_, weight)| weight).sum();
        Self { weights, length }
    }

    fn weight(&self, word: &SearchWord) -> f32 {
        let at = |stem: &str| self.weights.partition_point(|(known, _)| known.as_ref() < stem);
        let exact = |stem: &str| match self.weights.get(at(stem)) {
            Some((known, weight)) if known.as_ref() == stem => *weight,
            _ => 0.0,
        };
        let own = exact(&word.stem);
        if own > 0.0 {
            return own;
        }
        let longer = self.weights[at(&word.stem)..].iter().take_while(|(known, _)| known.starts_with(&*word.stem));
        let prefix = match word.stem.len() >= 3 {
            true => longer.map(|(_, weight)| weight * PREFIX).fold(0.0, f32::max),
            false => 0.0,
        };
        word.synonyms.iter().map(|stem| exact(stem) * SYNONYM).fold(prefix, f32::max)
    }
}

/// A word that is looked for.
struct SearchWord {
    stem: String,
    synonyms: Vec<&'static str>,
}

/// The places of the tools that have any of the words, the best first; of equals, the earlier. Without words, all places.
pub(crate) fn search_tools(words: &str, tools: &[&SearchTerms]) -> Vec<usize> {
    let words = search_words(words);
    if words.is_empty() {
        return (0..tools.len()).collect();
    }
    let average = tools.iter().map(|terms| terms.length).sum::<f32>() / tools.len().max(1) as f32;
    let mut scores = HashMap::<usize, (f32, f32)>::new();
    for word in &words {
        let found: Vec<(usize, f32)> = tools
            .iter()
            .enumerate()
            .map(|(place, terms)| (place, terms.weight(word)))
            .filter(|(_, weight)| *weight > 0.0)
            .collect();
        let (all, with) = (tools.len() as f32, found.len() as f32);
        let rarity = (1.0 + (all - with + 0.5) / (with + 0.5)).ln();
        for (place, weight) in found {
            let long = 1.0 - LENGTH + LENGTH * tools[place].length / average;
            let (score, fitting) = scores.entry(place).or_default();
            *score += rarity * weight * (SATURATION + 1.0) / (weight + SATURATION * long);
            *fitting += 1.0;
        }
    }
    // A tool that has all words is more likely meant than one that has a single rare one.
    let score = |(score, fitting): &(f32, f32)| score * (fitting / words.len() as f32).sqrt();
    let mut found: Vec<(usize, f32)> = scores.iter().map(|(place, sums)| (*place, score(sums))).collect();
    found.sort_by(|(a, one), (b, other)| other.total_cmp(one).then(a.cmp(b)));
    found.into_iter().map(|(place, _)| place).collect()
}

fn search_words(text: &str) -> Vec<SearchWord> {
    let mut words: Vec<SearchWord> = Vec::new();
    for stem in stems(text) {
        if words.len() < MAX_WORDS && words.iter().all(|known| known.stem != stem) {
            let groups = SYNONYMS.iter().filter(|group| group.contains(&stem.as_str()));
            let synonyms = groups.flat_map(|group| group.iter().copied()).filter(|other| *other != stem).collect();
            words.push(SearchWord { stem, synonyms });
        }
    }
    words
}

/// The words of a text, each without its English ending.
fn stems(text: &str) -> impl Iterator<Item = String> {
    let words = split(text).into_iter().map(|word| word.to_lowercase());
    words.filter(|word| !STOP_WORDS.contains(&word.as_str())).map(|word| stem(&word))
}

/// `readFile`, `read_file` and `HTTPServer2` are words too: they are split where a person would.
fn split(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut start = 0;
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    let mut end_word = |start: usize, end: usize| {
        if start < end {
            words.push(&text[start..end]);
        }
    };
    for (n, &(at, letter)) in chars.iter().enumerate() {
        let before = n.checked_sub(1).map(|n| chars[n].1);
        let next = chars.get(n + 1).map(|(_, next)| *next);
        if !letter.is_alphanumeric() {
            end_word(start, at);
            start = at + letter.len_utf8();
        } else if before.is_some_and(|before| {
            letter.is_uppercase()
                && (before.is_lowercase() || before.is_uppercase() && next.is_some_and(char::is_lowercase))
        }) {
            end_word(start, at);
            start = at;
        }
    }
    end_word(start, text.len());
    words
}

/// `files`, `filing` and `filed` are `fil`: the ending is taken from tools and questions alike, so it need not be a word.
fn stem(word: &str) -> String {
    if word.len() <= 3 || !word.is_ascii() {
        return word.to_owned();
    }
    let mut stem = word;
    if let Some(rest) = stem.strip_suffix('s').filter(|rest| !rest.ends_with(['s', 'u', 'i'])) {
        stem = rest;
    }
    for ending in ["ing", "ed"] {
        if let Some(rest) = stem.strip_suffix(ending).filter(|rest| rest.len() >= 3 && rest.contains(is_vowel)) {
            stem = match rest.as_bytes() {
                [.., a, b] if a == b && !is_vowel(*a as char) && !b"lsz".contains(a) => &rest[..rest.len() - 1],
                _ => rest,
            };
            break;
        }
    }
    for ending in ["ie", "e", "y"] {
        if let Some(rest) = stem.strip_suffix(ending).filter(|rest| rest.len() >= 3) {
            return rest.to_owned();
        }
    }
    stem.to_owned()
}

fn is_vowel(letter: char) -> bool {
    "aeiouy".contains(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<String> {
        stems(text).collect()
    }

    #[test]
    fn names_are_split_as_people_read_them() {
        assert_eq!(
            split("git_log readFile HTTPServer2 a-b, ü"),
            ["git", "log", "read", "File", "HTTP", "Server2", "a", "b", "ü"]
        );
    }

    #[test]
    fn forms_of_a_word_have_one_stem() {
        for forms in [
            &["file", "files", "filed", "filing"][..],
            &["commit", "commits", "committed", "committing"],
            &["history", "histories"],
            &["search", "searches", "searched", "searching"],
            &["write", "writes", "writing"],
            &["status"],
            &["process", "processes", "processed"],
            &["query", "queries"],
        ] {
            let stems: Vec<String> = forms.iter().flat_map(|form| all(form)).collect();
            assert!(stems.iter().all(|stem| *stem == stems[0]), "{stems:?}");
        }
    }

    #[test]
    fn synonyms_are_stems() {
        for word in SYNONYMS.iter().copied().flatten() {
            let forms =
                [word.to_string(), format!("{word}e"), format!("{word}y"), format!("{word}s"), format!("{word}er")];
            assert!(forms.iter().any(|form| stem(form) == *word), "{word}");
        }
    }
}
