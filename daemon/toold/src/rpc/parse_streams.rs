//! The answers of models that a connection has in parsing.

use std::collections::HashMap;

use parking_lot::Mutex;
use toold_adapters::parse::collect::collect;
use toold_adapters::parse::{CallParser, ParsedPiece};
use toold_proto::prompt::{ParsedStream, StreamedPiece};

/// How many streams a connection may have open.
const MAX_STREAMS: usize = 64;

/// Bytes of one stream.
const MAX_TEXT: usize = 16 << 20;

/// The streams of one connection.
#[derive(Default)]
pub struct ParseStreams(Mutex<OpenStreams>);

#[derive(Default)]
struct OpenStreams {
    last: u64,
    streams: HashMap<String, OpenStream>,
}

struct OpenStream {
    parser: CallParser,
    pieces: Vec<ParsedPiece>,
    bytes: usize,
}

impl ParseStreams {
    /// Begins a stream and returns its id.
    ///
    /// # Errors
    /// A message: the connection has too many streams.
    pub(crate) fn open(&self, parser: CallParser) -> Result<String, String> {
        let mut open = self.0.lock();
        if open.streams.len() >= MAX_STREAMS {
            return Err(format!("this connection has {MAX_STREAMS} open streams, the most there may be; end one"));
        }
        open.last += 1;
        let id = format!("s{}", open.last);
        open.streams.insert(id.clone(), OpenStream { parser, pieces: Vec::new(), bytes: 0 });
        Ok(id)
    }

    /// Reads a part of a stream.
    ///
    /// # Errors
    /// A message: there is no such stream, or its text is too long; then the stream is closed.
    pub(crate) fn push(&self, id: &str, text: &str) -> Result<ParsedStream, String> {
        let mut open = self.0.lock();
        let stream = open.streams.get_mut(id).ok_or_else(|| unknown(id))?;
        stream.bytes += text.len();
        if stream.bytes > MAX_TEXT {
            open.streams.remove(id);
            return Err(format!("the text of the stream {id} has more than {MAX_TEXT} bytes, the limit; it is closed"));
        }
        let pieces = stream.parser.push(text);
        stream.pieces.extend(pieces.iter().cloned());
        Ok(ParsedStream { stream_id: id.to_owned(), pieces: pieces.into_iter().map(piece).collect(), parsed: None })
    }

    /// Ends a stream.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub(crate) fn end(&self, id: &str, text: &str) -> Result<ParsedStream, String> {
        let mut answer = self.push(id, text)?;
        let OpenStream { parser, mut pieces, .. } = self.0.lock().streams.remove(id).ok_or_else(|| unknown(id))?;
        let rest = parser.finish();
        answer.pieces.extend(rest.iter().cloned().map(piece));
        pieces.extend(rest);
        answer.parsed = Some(collect(pieces));
        Ok(answer)
    }
}

fn unknown(id: &str) -> String {
    format!("this connection has no open stream {id:?}; begin one with the action open")
}

fn piece(piece: ParsedPiece) -> StreamedPiece {
    match piece {
        ParsedPiece::Text(text) => StreamedPiece::Text { text },
        ParsedPiece::Thinking(text) => StreamedPiece::Thinking { text },
        ParsedPiece::Call(call) => StreamedPiece::Call { call },
        ParsedPiece::Error(message) => StreamedPiece::Error { message },
        ParsedPiece::WasThinking(text) => StreamedPiece::WasThinking { text },
    }
}
