//! The tools of the registry.

use toold_proto::tool::Tool;

use super::{Tone, ViewCell};
use crate::output::first_sentence;

pub(crate) fn name(tool: &Tool) -> ViewCell {
    ViewCell::name(tool.name.as_str())
}

/// The permissions that the tool needs.
pub(crate) fn needs(tool: &Tool) -> ViewCell {
    let names: Vec<&str> = tool.permissions.iter().map(|category| category.as_str()).collect();
    ViewCell::new(Tone::Warn, names.join(" "))
}

/// The start of the description, in as many characters.
pub(crate) fn description(tool: &Tool, width: usize) -> ViewCell {
    ViewCell::plain(first_sentence(&tool.description, width))
}
