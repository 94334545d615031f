//! From a model's answer to calls: [`parse`] for a whole text, [`CallParser`] for a stream.
//!
//! Three layers, each fed one character at a time, so that chunks cannot matter:
//! `thinking.rs` takes thinking out, `scan.rs` tells calls from text, `shapes/` read the calls, whose marks are in
//! [`crate::families`].
//! Each character is looked at a bounded number of times.
//!
//! No call is made that is not certain: what cannot be read is an error in words, fit to be sent
//! back to the model.

pub mod collect;
mod found_call;
pub mod known;
pub(crate) mod lenient_json;
mod markers;
mod prose_call;
mod quoting;
pub(crate) mod raw_value;
mod scan;
mod shapes;
mod thinking;
mod whole_answer;

use toold_proto::prompt::{ParsedCall, ParsedPrompt};

use collect::collect;
use known::KnownTools;

use scan::Scanner;
use thinking::{OpenThinking, QUOTES, Tag, TagMatcher, TagVerdict};

/// Reads a whole answer. With `known_tools`, calls of other names become errors.
pub fn parse(text: &str, known_tools: Option<&[String]>) -> ParsedPrompt {
    parse_with(text, known_tools.map_or_else(KnownTools::any, KnownTools::names))
}

/// As [`parse`]; [`KnownTools::tools`] also tells strings from numbers by the tools' schemas.
pub fn parse_with(text: &str, known: KnownTools) -> ParsedPrompt {
    let mut parser = CallParser::new(known);
    let mut pieces = parser.push(text);
    pieces.extend(parser.finish());
    collect(pieces)
}

/// A part of a stream, in the order of the text.
#[derive(Clone, Debug, PartialEq)]
pub enum ParsedPiece {
    /// Neither a call nor thinking. One text may come in several pieces.
    Text(String),
    Thinking(String),
    Call(ParsedCall),
    /// A part that could not be parsed with certainty, as a sentence that can be sent back to the model.
    Error(String),
    /// All that came before this piece was thinking, and here it is: a close tag stood without
    /// its open tag, as with models whose template opens the thinking. Comes at most once, and before any call.
    /// [`CallParser::inside_thinking`] avoids it where that is known beforehand.
    WasThinking(String),
}

/// Reads an answer as it comes in. [`collect`](collect()) of its pieces is what [`parse`](parse()) gives for the
/// whole text, wherever the chunks were cut.
#[derive(Debug)]
pub struct CallParser {
    scanner: Scanner,
    tag: TagMatcher,
    thinking: Option<OpenThinking>,
    /// Everything so far, until thinking has been seen.
    before: Option<String>,
    /// Some thinking has been handed out.
    thought: bool,
    /// The quote that stands directly before the next character.
    quote: Option<char>,
    /// A tag of thinking after a quote: the same quote after it says that it is only spoken of.
    quoted: Option<(char, Tag, String)>,
    /// The text that is still to be read, the last part first.
    stack: Vec<NextPiece>,
    steps: u64,
    /// From the first call or error on, as long as a close tag could still make thinking of it.
    held: Vec<ParsedPiece>,
}

#[derive(Clone, Copy, Debug)]
struct NextPiece {
    c: char,
    /// It is known to begin no tag of thinking.
    plain: bool,
}

impl CallParser {
    pub fn new(known: KnownTools) -> Self {
        Self {
            scanner: Scanner::new(known),
            tag: TagMatcher::default(),
            thinking: None,
            before: Some(String::new()),
            thought: false,
            quote: None,
            quoted: None,
            stack: Vec::new(),
            steps: 0,
            held: Vec::new(),
        }
    }

    /// For a model whose template has opened the thinking: the text begins within it.
    pub fn inside_thinking(known: KnownTools) -> Self {
        Self { thinking: Some(OpenThinking { sort: None, depth: 1 }), before: None, ..Self::new(known) }
    }

    /// For a model whose template has not opened the thinking: a close tag without its open tag is text, so that no call
    /// has to wait for it.
    pub fn outside_thinking(known: KnownTools) -> Self {
        Self { before: None, ..Self::new(known) }
    }

    /// The parts that the chunk completes. Calls come when their block is closed and nothing that follows can make
    /// thinking of them: at the end of the answer, unless thinking has been seen or [`CallParser::outside_thinking`] rules
    /// it out.
    pub fn push(&mut self, chunk: &str) -> Vec<ParsedPiece> {
        let mut out = Vec::new();
        for c in chunk.chars() {
            if let Some(before) = &mut self.before {
                before.push(c);
            }
            self.stack.push(NextPiece { c, plain: false });
            self.drain(&mut out);
        }
        self.release(out)
    }

    /// The text has ended: what was waiting for more of it.
    pub fn finish(mut self) -> Vec<ParsedPiece> {
        let mut out = Vec::new();
        self.end(&mut out);
        self.before = None;
        self.release(out)
    }

    /// The pieces that can be handed out now that there are these new ones.
    fn release(&mut self, mut new: Vec<ParsedPiece>) -> Vec<ParsedPiece> {
        if let Some(at) = new.iter().position(|piece| matches!(piece, ParsedPiece::WasThinking(_))) {
            self.held.clear();
            new.drain(..at);
        }
        // Pieces that are held already are not looked at again: there may be one for each character.
        if self.before.is_some() && self.held.is_empty() {
            let can_change = |piece: &ParsedPiece| matches!(piece, ParsedPiece::Call(_) | ParsedPiece::Error(_));
            self.held = new.split_off(new.iter().position(can_change).unwrap_or(new.len()));
            return new;
        }
        self.held.append(&mut new);
        if self.before.is_some() { Vec::new() } else { std::mem::take(&mut self.held) }
    }

    fn end(&mut self, out: &mut Vec<ParsedPiece>) {
        if let Some((_, tag, text)) = self.quoted.take() {
            self.meet(tag, text, out);
        }
        let held = self.tag.take();
        match self.thinking {
            Some(_) => self.think(&held, out),
            None => self.again_plain(&held),
        }
        self.drain(out);
        self.scanner.finish(out);
    }

    fn drain(&mut self, out: &mut Vec<ParsedPiece>) {
        while let Some(next) = self.stack.pop() {
            self.steps += 1;
            if let Some((quote, tag, text)) = self.quoted.take() {
                self.stack.push(next);
                match (next.c == quote, self.thinking.is_some()) {
                    (false, _) => self.meet(tag, text, out),
                    (true, true) => self.think(&text, out),
                    (true, false) => self.again_plain(&text),
                }
                self.quote = None;
            } else if self.thinking.is_some() {
                self.read_thinking(next.c, out);
            } else {
                self.read(next, out);
            }
        }
    }

    /// A tag of thinking has come.
    fn found(&mut self, tag: Tag, text: String, out: &mut Vec<ParsedPiece>) {
        match self.quote.take() {
            Some(quote) => self.quoted = Some((quote, tag, text)),
            None => self.meet(tag, text, out),
        }
    }

    fn meet(&mut self, tag: Tag, text: String, out: &mut Vec<ParsedPiece>) {
        if let Some(open) = &mut self.thinking {
            if open.meets(tag) {
                self.thinking = None;
            } else {
                self.think(&text, out);
            }
            return;
        }
        if let Tag::Close(_) = tag {
            match self.before.take() {
                Some(before) => self.reclassify(&before, out),
                None => self.again_plain(&text),
            }
            return;
        }
        self.before = None;
        let again = self.scanner.part(out);
        self.again(&again);
        if let Tag::Open(sort) = tag {
            self.thinking = Some(OpenThinking { sort: Some(sort), depth: 1 });
            if self.thought {
                self.think("\n", out);
            }
        }
    }

    fn read(&mut self, next: NextPiece, out: &mut Vec<ParsedPiece>) {
        // A bracket is part of a call's own syntax.
        let is_plain = next.plain || self.scanner.in_string() || (next.c == '[' && !self.scanner.is_in_text());
        if self.tag.is_idle() && is_plain {
            self.quote = QUOTES.into_iter().find(|quote| *quote == next.c);
            let again = self.scanner.push(next.c, out);
            return self.again(&again);
        }
        match self.tag.push(next.c) {
            TagVerdict::Partial => {}
            TagVerdict::None(held) if held.is_empty() => {
                self.quote = QUOTES.into_iter().find(|quote| *quote == next.c);
                let again = self.scanner.push(next.c, out);
                self.again(&again);
            }
            TagVerdict::None(held) => {
                self.stack.push(next);
                self.again_plain(&held);
            }
            TagVerdict::Tag(tag, text) => self.found(tag, text, out),
        }
    }

    fn read_thinking(&mut self, c: char, out: &mut Vec<ParsedPiece>) {
        match self.tag.push(c) {
            TagVerdict::Partial => {}
            TagVerdict::None(held) if held.is_empty() => {
                self.quote = QUOTES.into_iter().find(|quote| *quote == c);
                self.think(c.encode_utf8(&mut [0; 4]), out);
            }
            TagVerdict::None(held) => {
                self.quote = None;
                self.think(&held, out);
                self.read_thinking(c, out);
            }
            TagVerdict::Tag(tag, text) => self.found(tag, text, out),
        }
    }

    fn think(&mut self, text: &str, out: &mut Vec<ParsedPiece>) {
        self.thought |= !text.is_empty();
        match out.last_mut() {
            _ if text.is_empty() => {}
            Some(ParsedPiece::Thinking(last)) => last.push_str(text),
            _ => out.push(ParsedPiece::Thinking(text.to_owned())),
        }
    }

    /// A close tag has come without an open one: `before` ends with it, but for what is yet to be
    /// read again.
    fn reclassify(&mut self, before: &str, out: &mut Vec<ParsedPiece>) {
        let waiting: usize = self.stack.iter().map(|next| next.c.len_utf8()).sum();
        let read = &before[..before.len() - waiting];
        let thinking = &read[..read.rfind(['<', '[']).unwrap_or(0)];
        self.thought = !thinking.is_empty();
        self.scanner.forget();
        out.clear();
        out.push(ParsedPiece::WasThinking(thinking.to_owned()));
    }

    fn again(&mut self, text: &str) {
        self.stack.extend(text.chars().rev().map(|c| NextPiece { c, plain: false }));
    }

    /// For a text whose first character begins no tag of thinking.
    fn again_plain(&mut self, text: &str) {
        self.again(text);
        if let Some(first) = self.stack.last_mut().filter(|_| !text.is_empty()) {
            first.plain = true;
        }
    }
}

/// How often a character was looked at while this text was read.
#[doc(hidden)]
pub fn steps(text: &str) -> u64 {
    let mut parser = CallParser::new(KnownTools::any());
    parser.push(text);
    parser.end(&mut Vec::new());
    parser.steps
}
