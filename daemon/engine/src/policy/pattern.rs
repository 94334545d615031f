//! Patterns of rules and grants, one kind for each category.

use globset::{GlobBuilder, GlobMatcher};
use toold_proto::tool::Category;

use crate::need::{Need, Word};

/// A pattern that was read and is valid for its category.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// `**`: every target of the category.
    Any,
    /// Shell: words, `*` within a word, a final `*` for any further words.
    Words { words: Vec<Part>, more: bool },
    /// All else: a glob in which `*` stays within a segment and `**` does not.
    Glob(GlobMatcher),
}

#[derive(Clone, Debug)]
enum Part {
    Exact(String),
    Wild(GlobMatcher),
}

/// How narrowly a pattern matches; greater is more specific.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Specificity {
    exact: bool,
    literal: usize,
    /// Fewer wildcards are more specific.
    wildcards: std::cmp::Reverse<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the pattern {text:?} of category {category} cannot be read: {reason}")]
pub struct BadPattern {
    pub text: String,
    pub category: Category,
    pub reason: String,
}

impl Pattern {
    pub fn parse(category: Category, text: &str) -> Result<Self, BadPattern> {
        let bad = |reason: String| BadPattern { text: text.to_owned(), category, reason };
        if text.trim().is_empty() {
            return Err(bad("it is empty".into()));
        }
        let kind = if text == "**" {
            Kind::Any
        } else if category == Category::Shell {
            words(text).map_err(bad)?
        } else {
            let glob = GlobBuilder::new(text).literal_separator(true).backslash_escape(true).build();
            Kind::Glob(glob.map_err(|error| bad(error.kind().to_string()))?.compile_matcher())
        };
        Ok(Self { text: text.to_owned(), kind })
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// How specifically it matches a need of its category; `None` when it does not.
    pub fn matches(&self, need: &Need) -> Option<Specificity> {
        let matches = match &self.kind {
            Kind::Any => true,
            Kind::Glob(glob) => glob.is_match(&need.target),
            Kind::Words { words, more } => {
                let given = need.words.as_deref()?;
                let length_fits = if *more { given.len() >= words.len() } else { given.len() == words.len() };
                length_fits && words.iter().zip(given).all(|(part, word)| part.matches(word))
            }
        };
        matches.then(|| self.specificity())
    }

    fn specificity(&self) -> Specificity {
        let wildcards = self.text.matches(['*', '?', '[', '{']).count();
        let literal = self
            .text
            .split([' ', '/'])
            .filter(|segment| !segment.is_empty() && !segment.contains(['*', '?', '[', '{']))
            .count();
        Specificity { exact: wildcards == 0, literal, wildcards: std::cmp::Reverse(wildcards) }
    }
}

impl Part {
    fn matches(&self, word: &Word) -> bool {
        match self {
            Self::Exact(text) => word.literal && word.text == *text,
            Self::Wild(glob) => (word.literal || glob.glob().glob() == "*") && glob.is_match(&word.text),
        }
    }
}

fn words(text: &str) -> Result<Kind, String> {
    let mut all: Vec<&str> = text.split_whitespace().collect();
    let more = all.last() == Some(&"*");
    if more {
        all.pop();
    }
    let parts = all.into_iter().map(|word| {
        if !word.contains(['*', '?', '[', '{']) {
            return Ok(Part::Exact(word.to_owned()));
        }
        let glob = GlobBuilder::new(word).literal_separator(false).build().map_err(|error| error.kind().to_string())?;
        Ok(Part::Wild(glob.compile_matcher()))
    });
    Ok(Kind::Words { words: parts.collect::<Result<_, String>>()?, more })
}
