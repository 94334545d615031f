//! A person's settings for single tools: which are disabled, which have another name, which are pinned, and which
//! clients get the short list. Rules, grants, hooks, filters and the audit log call a tool by its own name, whatever it is
//! called in lists.

use std::collections::BTreeMap;

use globset::{Glob, GlobMatcher};
use toold_proto::agent_names::is_client_named;
use toold_proto::call::ListingMode;
use toold_proto::tool::ToolName;

use crate::tool::Origin;

/// Tools that are pinned when the configuration names none: those that an agent uses at each step.
pub const PINNED: &[&str] = &["bash", "edit", "glob", "grep", "list", "read", "todo", "write"];

/// The settings of tools. Replaced as a whole, with [`Registry::set_tool_settings`](crate::registry::Registry).
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSettings {
    /// Tools that are neither listed nor callable.
    pub disabled: Vec<ToolPattern>,
    /// New names by own names. No two tools have one new name.
    pub renamed: BTreeMap<ToolName, ToolRename>,
    /// Tools of the short list.
    pub pinned: Vec<ToolPattern>,
    /// The list that a client gets if it does not choose one, by the name that the client reports or another of its agent; the
    /// whole list for the others.
    pub clients: BTreeMap<String, ListingMode>,
}

impl Default for ToolSettings {
    fn default() -> Self {
        let pinned = PINNED.iter().filter_map(|name| ToolPattern::new(name, "the default").ok());
        Self { disabled: Vec::new(), renamed: BTreeMap::new(), pinned: pinned.collect(), clients: BTreeMap::new() }
    }
}

/// A glob over the own names of tools.
#[derive(Clone, Debug)]
pub struct ToolPattern {
    pub text: String,
    /// The file and line of the setting.
    pub origin: String,
    matcher: GlobMatcher,
}

/// Another name for a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRename {
    pub to: ToolName,
    /// The file and line of the setting.
    pub origin: String,
}

impl ToolPattern {
    /// # Errors
    /// The text is not a glob.
    pub fn new(text: &str, origin: &str) -> Result<Self, globset::Error> {
        let matcher = Glob::new(text)?.compile_matcher();
        Ok(Self { text: text.to_owned(), origin: origin.to_owned(), matcher })
    }

    pub fn matches(&self, own_name: &str) -> bool {
        self.matcher.is_match(own_name)
    }
}

impl PartialEq for ToolPattern {
    fn eq(&self, other: &Self) -> bool {
        (&self.text, &self.origin) == (&other.text, &other.origin)
    }
}

impl ToolSettings {
    pub fn disables(&self, own_name: &ToolName) -> Option<&ToolPattern> {
        self.disabled.iter().find(|pattern| pattern.matches(own_name.as_str()))
    }

    /// Whether the built-in tool of this name leaves its name to others: it is disabled, or has another name.
    pub(crate) fn frees(&self, own_name: &ToolName) -> bool {
        self.disables(own_name).is_some() || self.renamed.get(own_name).is_some_and(|rename| rename.to != *own_name)
    }

    pub fn pins(&self, own_name: &ToolName) -> bool {
        self.pinned.iter().any(|pattern| pattern.matches(own_name.as_str()))
    }

    /// The list that a client gets if it does not choose one.
    pub fn listing_of(&self, client: Option<&str>) -> ListingMode {
        let of_agent =
            |name: &str| self.clients.iter().find(|(key, _)| is_client_named(name, key)).map(|(_, mode)| mode);
        client.and_then(|name| self.clients.get(name).or_else(|| of_agent(name))).copied().unwrap_or_default()
    }

    /// The renames that take effect among tools, which are given by their own names. A new name is taken from a tool of a
    /// later origin, which is then hidden, never from one of the same or an earlier origin: the rename is given up instead.
    pub(crate) fn renames_among(&self, tools: &BTreeMap<&ToolName, Origin>) -> BTreeMap<ToolName, ToolRename> {
        let there = |(own, _): &(&ToolName, &ToolRename)| tools.contains_key(own);
        let mut renamed: BTreeMap<ToolName, ToolRename> =
            self.renamed.iter().filter(there).map(|(own, rename)| (own.clone(), rename.clone())).collect();
        // A tool whose rename is given up keeps the name that another one may want.
        loop {
            let is_free = |own: &ToolName, to: &ToolName| {
                renamed.contains_key(to) || tools.get(to).is_none_or(|holder| *holder > tools[own])
            };
            let given_up: Vec<ToolName> =
                renamed.iter().filter(|(own, rename)| !is_free(own, &rename.to)).map(|(own, _)| own.clone()).collect();
            if given_up.is_empty() {
                return renamed;
            }
            given_up.iter().for_each(|own| _ = renamed.remove(own));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> ToolName {
        ToolName::parse(text).unwrap()
    }

    #[track_caller]
    fn check_renames(there: &[(&str, Origin)], renames: &[(&str, &str)], expected: &[(&str, &str)]) {
        let rename = |(own, to): &(&str, &str)| (name(own), ToolRename { to: name(to), origin: "a:1".into() });
        let settings = ToolSettings { renamed: renames.iter().map(rename).collect(), ..ToolSettings::default() };
        let there: Vec<(ToolName, Origin)> = there.iter().map(|(text, origin)| (name(text), *origin)).collect();
        let found = settings.renames_among(&there.iter().map(|(name, origin)| (name, *origin)).collect());
        let found: Vec<(&str, &str)> = found.iter().map(|(own, rename)| (own.as_str(), rename.to.as_str())).collect();
        assert_eq!(found, expected);
    }

    const A: (&str, Origin) = ("a", Origin::Mcp);
    const B: (&str, Origin) = ("b", Origin::Mcp);

    #[test]
    fn two_tools_can_swap_their_names() {
        check_renames(&[A, B], &[("a", "b"), ("b", "a")], &[("a", "b"), ("b", "a")]);
    }

    #[test]
    fn a_name_that_is_taken_is_given_to_no_other_tool() {
        check_renames(&[A, B], &[("a", "b")], &[]);
        check_renames(&[A, B, ("c", Origin::Mcp)], &[("a", "b"), ("b", "c")], &[]);
        check_renames(&[A, B], &[("a", "b"), ("b", "c")], &[("a", "b"), ("b", "c")]);
        check_renames(&[A], &[("a", "b"), ("c", "d")], &[("a", "b")]);
        check_renames(&[A, ("b", Origin::Builtin)], &[("a", "b")], &[]);
    }

    #[test]
    fn a_tool_of_a_later_origin_does_not_undo_a_rename() {
        check_renames(&[A, ("b", Origin::Frontend)], &[("a", "b")], &[("a", "b")]);
    }
}
