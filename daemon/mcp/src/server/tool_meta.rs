//! Statements about tools for certain clients, in `_meta` of `tools/list`.

use rmcp::model::{MetaObject, Tool};
use serde_json::{Map, Value};

/// How many characters a result may have at most. Claude Code shows a result up to this length, and keeps a longer one in a
/// file (<https://code.claude.com/docs/en/mcp>).
const RESULT_SIZE: &str = "anthropic/maxResultSizeChars";
/// The length that it shows anyway.
const SHOWN_ANYWAY: usize = 50_000;
const LARGEST: usize = 500_000;
/// Room for the sentence about what was cut.
const NOTE: usize = 1024;

/// The icons of a mounted server's tool, among what it says of itself.
pub(crate) const ICONS: &str = "toold/icons";

/// A client that defers tools shows this one from the beginning (the same page).
const ALWAYS_LOAD: &str = "anthropic/alwaysLoad";

/// Results have at most `max_result_text` bytes of text: the daemon cuts what is longer and keeps the whole itself.
/// `own` is what the tool's server says, such as where its user interface is: it does not decide about the list.
pub(super) fn add(tool: &mut Tool, own: Option<&Map<String, Value>>, max_result_text: usize, is_pinned: bool) {
    let size = max_result_text.saturating_add(NOTE).min(LARGEST);
    let mut meta = MetaObject(own.cloned().unwrap_or_default());
    tool.icons = meta.0.remove(ICONS).and_then(|icons| serde_json::from_value(icons).ok());
    meta.0.retain(|key, _| key != RESULT_SIZE && key != ALWAYS_LOAD && !key.starts_with("toold/"));
    if size > SHOWN_ANYWAY {
        meta.0.insert(RESULT_SIZE.to_owned(), size.into());
    }
    if is_pinned {
        meta.0.insert(ALWAYS_LOAD.to_owned(), true.into());
    }
    if !meta.0.is_empty() {
        tool.meta = Some(meta);
    }
}
