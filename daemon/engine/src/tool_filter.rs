//! Selects the tools of a mounted server, by globs over the server's own names.

use globset::{Glob, GlobSet, GlobSetBuilder};

/// All tools that `allow` matches, or all without it, except those that `deny` matches.
#[derive(Debug)]
pub struct AllowDenyFilter {
    allow: Option<GlobSet>,
    deny: GlobSet,
}

impl AllowDenyFilter {
    /// Invalid globs match nothing: they were reported when the configuration was loaded.
    pub fn new(allow: Option<&[String]>, deny: &[String]) -> Self {
        Self { allow: allow.map(globs), deny: globs(deny) }
    }

    pub fn takes(&self, own: &str) -> bool {
        self.allow.as_ref().is_none_or(|allow| allow.is_match(own)) && !self.deny.is_match(own)
    }
}

fn globs(texts: &[String]) -> GlobSet {
    let mut set = GlobSetBuilder::new();
    for glob in texts.iter().filter_map(|text| Glob::new(text).ok()) {
        set.add(glob);
    }
    set.build().unwrap_or_default()
}
