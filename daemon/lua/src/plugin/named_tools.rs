//! The names of tools in the text of a plugin, for plugins that are not loaded.

use std::collections::BTreeSet;

use toold_proto::tool::ToolName;

use crate::vm::words::words;

/// More names of one plugin are not kept.
const MAX_NAMES: usize = 1_000;

/// The texts of all `name = "..."` that can be names of tools. Names that a script computes are missing, and other things
/// that have names are among them.
pub(crate) fn named_tools(text: &[u8]) -> BTreeSet<String> {
    let words = words(text);
    let names = words.windows(3).filter_map(|window| match window[0].is("name") && window[1].is("=") {
        true => window[2].quoted(),
        false => None,
    });
    names.filter(|name| ToolName::parse(name).is_ok()).take(MAX_NAMES).map(str::to_owned).collect()
}
