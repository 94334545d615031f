//! Which tools come first where not all of them can be shown.

use std::cmp::Reverse;

use toold_proto::tool::ToolName;

use crate::Engine;

/// How likely a tool is needed, by its own name; the likelier is the smaller. Pinned tools come first, then those that were
/// called most often since the daemon started, then the others, each by name.
pub fn rank(engine: &Engine, own_name: &ToolName) -> (bool, Reverse<u64>, ToolName) {
    let is_pinned = engine.registry.snapshot().tool_settings().pins(own_name);
    (!is_pinned, Reverse(engine.latencies.calls(own_name)), own_name.clone())
}
