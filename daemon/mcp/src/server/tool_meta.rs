//! Statements about tools for certain clients, in `_meta` of `tools/list`.

use rmcp::model::{MetaObject, Tool};

/// How many characters a result may have at most. Claude Code shows a result up to this length, and keeps a longer one in a
/// file (<https://code.claude.com/docs/en/mcp>).
const RESULT_SIZE: &str = "anthropic/maxResultSizeChars";
/// The length that it shows anyway.
const SHOWN_ANYWAY: usize = 50_000;
const LARGEST: usize = 500_000;
/// Room for the sentence about what was cut.
const NOTE: usize = 1024;

/// Tells how long results get: the daemon cuts text at `max_result_text` bytes and keeps the whole itself.
pub(super) fn tell_result_size(tools: &mut [Tool], max_result_text: usize) {
    let size = max_result_text.saturating_add(NOTE).min(LARGEST);
    if size <= SHOWN_ANYWAY {
        return;
    }
    for tool in tools {
        tool.meta.get_or_insert_with(MetaObject::new).0.insert(RESULT_SIZE.to_owned(), size.into());
    }
}
