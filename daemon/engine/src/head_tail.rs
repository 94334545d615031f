//! The first and the last bytes of a text of any length, in bounded memory.

use std::collections::VecDeque;

/// Adjacent small pushes are joined up to this size, so that each does not cost an allocation.
const JOIN_BELOW: usize = 4096;

/// Keeps the head and the tail of a text, and drops the middle when the text is too long.
#[derive(Debug)]
pub struct HeadTail {
    /// Bytes of the head, and bytes of the tail.
    half: usize,
    head: String,
    tail: VecDeque<String>,
    tail_bytes: usize,
    total: u64,
}

impl HeadTail {
    /// Keeps about `max` bytes, half of them from the beginning.
    pub fn new(max: usize) -> Self {
        Self { half: max / 2, head: String::new(), tail: VecDeque::new(), tail_bytes: 0, total: 0 }
    }

    pub fn push(&mut self, text: &str) {
        self.append(text);
        self.trim();
    }

    /// As `push`, but drops nothing: call [`HeadTail::trim`] next. In between, a caller can still save the whole text.
    pub fn append(&mut self, text: &str) {
        self.total += text.len() as u64;
        let rest = self.fill_head(text);
        if rest.is_empty() {
            return;
        }
        self.tail_bytes += rest.len();
        match self.tail.back_mut() {
            Some(last) if last.len() + rest.len() <= JOIN_BELOW.min(self.half) => last.push_str(rest),
            Some(_) | None => self.tail.push_back(rest.to_owned()),
        }
    }

    /// Drops the part of the tail that is no longer needed.
    pub fn trim(&mut self) {
        while let Some(first) = self.tail.front()
            && self.tail_bytes - first.len() >= self.half
        {
            self.tail_bytes -= first.len();
            self.tail.pop_front();
        }
    }

    /// Bytes that were pushed.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Whether the text is too long to be kept whole.
    pub fn is_too_long(&self) -> bool {
        self.total > 2 * self.half as u64
    }

    /// All that is in memory: the whole text until the first [`HeadTail::trim`] after it became too long.
    pub fn kept(&self) -> String {
        std::iter::once(self.head.as_str()).chain(self.tail.iter().map(String::as_str)).collect()
    }

    /// Head and tail, and how many bytes between them are cut.
    pub fn parts(&self) -> (&str, String, u64) {
        let mut tail: String = self.tail.iter().map(String::as_str).collect();
        if self.is_too_long() && tail.len() > self.half {
            tail.drain(..tail.ceil_char_boundary(tail.len() - self.half));
        }
        let cut = self.total - self.head.len() as u64 - tail.len() as u64;
        (&self.head, tail, cut)
    }

    /// The text. If bytes were cut, a line in the middle says how many.
    pub fn to_text(&self) -> String {
        let (head, tail, cut) = self.parts();
        match cut {
            0 => format!("{head}{tail}"),
            _ => format!("{head}\n[... {cut} bytes cut ...]\n{tail}"),
        }
    }

    fn fill_head<'a>(&mut self, text: &'a str) -> &'a str {
        if !self.tail.is_empty() {
            return text;
        }
        let room = self.half.saturating_sub(self.head.len());
        let (head, rest) = text.split_at(text.floor_char_boundary(room));
        self.head.push_str(head);
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_push_is_cut_at_characters() {
        let mut text = HeadTail::new(101);
        text.push(&"é".repeat(10_000));
        let (head, tail, cut) = text.parts();
        assert_eq!((head.len(), tail.len(), cut), (50, 50, 19_900));
    }

    #[test]
    fn limit_of_zero_keeps_nothing() {
        let mut text = HeadTail::new(0);
        text.push("text");
        text.push("more");
        assert_eq!(text.total(), 8);
        let (head, tail, cut) = text.parts();
        assert_eq!((head, tail.as_str(), cut), ("", "", 8));
    }
}
