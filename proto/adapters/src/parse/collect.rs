//! Puts the pieces of a stream together.

use toold_proto::prompt::ParsedPrompt;

use super::ParsedPiece;

/// The whole that the pieces of one text make. White space around text and thinking is left out,
/// and so is a code fence that held nothing but calls.
pub fn collect(pieces: impl IntoIterator<Item = ParsedPiece>) -> ParsedPrompt {
    let mut whole = ParsedPrompt::default();
    let mut text = String::new();
    // Where in the text calls stood.
    let mut places: Vec<usize> = Vec::new();
    for piece in pieces {
        match piece {
            ParsedPiece::Text(piece) => text.push_str(&piece),
            ParsedPiece::Thinking(piece) => whole.thinking.push_str(&piece),
            ParsedPiece::Call(call) => {
                whole.calls.push(call);
                places.push(text.len());
            }
            ParsedPiece::Error(error) => {
                whole.errors.push(error);
                places.push(text.len());
            }
            ParsedPiece::WasThinking(thinking) => {
                whole = ParsedPrompt { thinking, ..ParsedPrompt::default() };
                text.clear();
                places.clear();
            }
        }
    }
    whole.text = without_fences(&text, &places).trim().to_owned();
    whole.thinking = whole.thinking.trim().to_owned();
    whole
}

/// Drops the fences that hold only places. Looks at each stretch between places twice at most.
fn without_fences(text: &str, places: &[usize]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    let mut from = 0;
    let mut places = places.iter().copied().peekable();
    while let Some(first) = places.next() {
        let mut last = first;
        // Places with only white space between them stand in the same fence.
        while let Some(next) = places.next_if(|next| text[last..*next].trim_start().is_empty()) {
            last = next;
        }
        if let Some((start, end)) = fence_around(text, from, first, last) {
            out.push_str(&text[copied..start]);
            copied = end;
        }
        from = last.max(copied);
    }
    out.push_str(&text[copied..]);
    out
}

/// The beginning of the fence's first line, and the end of its last.
fn fence_around(text: &str, from: usize, first: usize, last: usize) -> Option<(usize, usize)> {
    let before = text.get(from..first)?.trim_end();
    let start = match before.rfind('\n') {
        Some(newline) => newline + 1,
        None if from == 0 => 0,
        None => return None,
    };
    let info = before[start..].trim_start().strip_prefix("```")?;
    if !info.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return None;
    }
    let rest = text[last..].trim_start().strip_prefix("```")?.trim_start_matches([' ', '\t', '\r']);
    (rest.is_empty() || rest.starts_with('\n')).then_some((from + start, text.len() - rest.len()))
}
