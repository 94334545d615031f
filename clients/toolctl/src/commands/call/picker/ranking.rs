//! Which tools match a search, and in what order.

use std::cmp::Reverse;

use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use toold_proto::tool::Tool;

pub(super) struct Ranking {
    matcher: Matcher,
}

impl Default for Ranking {
    fn default() -> Self {
        Self { matcher: Matcher::new(Config::DEFAULT) }
    }
}

/// How well a tool matches. A name that matches is better than any description that does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum MatchQuality {
    /// Every word is in the name, the label or the description.
    Described(u32),
    /// The letters of the search are in the name, in this order.
    Named(u32),
}

impl Ranking {
    /// Positions of the tools that match, the best first; all in their order for an empty search.
    pub(super) fn order(&mut self, query: &str, tools: &[Tool]) -> Vec<usize> {
        if query.trim().is_empty() {
            return (0..tools.len()).collect();
        }
        let pattern = |kind| Pattern::new(query, CaseMatching::Ignore, Normalization::Smart, kind);
        let (fuzzy, words) = (pattern(AtomKind::Fuzzy), pattern(AtomKind::Substring));
        let mut found: Vec<(MatchQuality, usize, usize)> = Vec::new();
        for (at, tool) in tools.iter().enumerate() {
            let name = tool.name.as_str();
            let text = format!("{name} {} {}", tool.label, tool.description);
            let quality = match self.score(&fuzzy, name) {
                Some(score) => Some(MatchQuality::Named(score)),
                None => self.score(&words, &text).map(MatchQuality::Described),
            };
            found.extend(quality.map(|quality| (quality, name.len(), at)));
        }
        // Among equal matches, the shorter name has less that was not searched for.
        found.sort_by_key(|(quality, length, at)| (Reverse(*quality), *length, *at));
        found.into_iter().map(|(_, _, at)| at).collect()
    }

    fn score(&mut self, pattern: &Pattern, text: &str) -> Option<u32> {
        let mut characters = Vec::new();
        pattern.score(Utf32Str::new(text, &mut characters), &mut self.matcher)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::json;

    pub(in crate::commands::call::picker) fn tools() -> Vec<Tool> {
        let described = [
            ("bash", "Runs a command"),
            ("git_read_tree", "Lists the files of a commit"),
            ("list", "Lists a folder, as read does not"),
            ("read", "Reads a file"),
            ("web_fetch", "Fetches a page"),
        ];
        let tool = |(name, description): (&str, &str)| {
            serde_json::from_value(json!({
                "name": name, "label": name, "description": description, "input_schema": {"type": "object"},
                "source": {"kind": "builtin", "name": "builtin"}, "parallelizable": true, "permissions": [],
                "cacheable": false, "annotations": {},
            }))
            .unwrap()
        };
        described.into_iter().map(tool).collect()
    }

    #[track_caller]
    fn check(query: &str, expected: &[&str]) {
        let tools = tools();
        let found = Ranking::default().order(query, &tools);
        let names: Vec<&str> = found.iter().map(|at| tools[*at].name.as_str()).collect();
        assert_eq!(names, expected, "{query}");
    }

    #[test]
    fn names_come_before_descriptions() {
        check("read", &["read", "git_read_tree", "list"]);
        check("grt", &["git_read_tree"]);
        check("wf", &["web_fetch"]);
        check("lists", &["list", "git_read_tree"]);
        check("folder lists", &["list"]);
        check("nothing of this", &[]);
        check(" ", &["bash", "git_read_tree", "list", "read", "web_fetch"]);
    }
}
