//! Storage for results that are too long for a model.

use futures_util::future::BoxFuture;
use toold_proto::tool::{CallId, SessionId};

/// Stores long texts whole, for `read` to open later. The files are the host's.
pub trait Spool: Send + Sync {
    /// Returns the absolute path of the stored text.
    fn keep<'a>(
        &'a self,
        session: &'a SessionId,
        call: &'a CallId,
        text: &'a str,
    ) -> BoxFuture<'a, std::io::Result<String>>;
}

/// Cuts the middle out of a text, at line ends if some are close, and returns how much. `None` when
/// it fits.
pub fn cut(text: &str, max: usize) -> Option<(String, usize)> {
    if text.len() <= max {
        return None;
    }
    let half = max / 2;
    let mut head = text.floor_char_boundary(half);
    if let Some(end) = text[..head].rfind('\n').filter(|end| *end > half / 2) {
        head = end + 1;
    }
    let mut tail = text.ceil_char_boundary(text.len() - half);
    if let Some(end) = text[tail..].find('\n').filter(|end| *end < half / 2) {
        tail += end + 1;
    }
    let left_out = tail - head;
    Some((format!("{}\n[... {left_out} bytes cut ...]\n{}", &text[..head], &text[tail..]), left_out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_at_lines_and_never_inside_a_character() {
        assert_eq!(cut("short", 10), None);
        let lines: String = (0..100).map(|n| format!("line {n}\n")).collect();
        let (text, left_out) = cut(&lines, 200).unwrap();
        assert!(text.starts_with("line 0\n") && text.ends_with("line 99\n"));
        assert!(text.contains(&format!("[... {left_out} bytes cut ...]")));
        assert!(text.lines().all(|line| line.is_empty() || line.starts_with("line ") || line.starts_with("[...")));
        for max in 1..60 {
            assert!(cut(&"é".repeat(100), max).is_some());
        }
    }
}
