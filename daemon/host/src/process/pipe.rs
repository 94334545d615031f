//! Reads a program's output as it arrives.

use encoding_rs::{Decoder, UTF_8};
use tokio::io::{AsyncRead, AsyncReadExt};
use toold_proto::call::Stream;

use crate::output_buffer::OutputBuffer;
use crate::process::OutputTap;

/// One of a program's output streams.
pub(super) struct OutputPipe<R> {
    stream: Stream,
    reader: Option<R>,
    buffer: Vec<u8>,
    /// Holds back an incomplete character. Bytes that are not UTF-8 become U+FFFD.
    decoder: Decoder,
    pub(super) kept: OutputBuffer,
    tap: Option<OutputTap>,
}

impl<R: AsyncRead + Unpin> OutputPipe<R> {
    pub(super) fn new(stream: Stream, reader: Option<R>, keep: usize, tap: Option<OutputTap>) -> Self {
        Self {
            stream,
            reader,
            buffer: vec![0; 16 * 1024],
            decoder: UTF_8.new_decoder_without_bom_handling(),
            kept: OutputBuffer::new(keep),
            tap,
        }
    }

    pub(super) fn closed(&self) -> bool {
        self.reader.is_none()
    }

    /// Cancel-safe: bytes are consumed only when it returns. Never returns once closed.
    async fn read(&mut self) -> usize {
        let Some(reader) = &mut self.reader else { return std::future::pending().await };
        // A pipe that can no longer be read is at its end.
        let read = reader.read(&mut self.buffer).await.unwrap_or(0);
        if read == 0 {
            self.reader = None;
        }
        read
    }

    fn take(&mut self, read: usize, on_output: &mut impl FnMut(Stream, &str)) {
        self.decode(read, false, on_output);
    }

    pub(super) fn finish(&mut self, on_output: &mut impl FnMut(Stream, &str)) {
        self.decode(0, true, on_output);
    }

    fn decode(&mut self, read: usize, last: bool, on_output: &mut impl FnMut(Stream, &str)) {
        let bytes = &self.buffer[..read];
        if let Some(tap) = self.tap.as_ref().filter(|_| !bytes.is_empty()) {
            tap.hear(self.stream, bytes);
        }
        let room = self.decoder.max_utf8_buffer_length(read).expect("a buffer of this size has no overflow");
        let mut text = String::with_capacity(room);
        let _ = self.decoder.decode_to_string(bytes, &mut text, last);
        if !text.is_empty() {
            self.kept.push(&text);
            on_output(self.stream, &text);
        }
    }
}

/// Reads whichever stream has output first. If both have some, picks one at random, so that neither starves the other.
pub(super) async fn read_either(
    stdout: &mut OutputPipe<impl AsyncRead + Unpin>,
    stderr: &mut OutputPipe<impl AsyncRead + Unpin>,
    on_output: &mut impl FnMut(Stream, &str),
) {
    tokio::select! {
        read = stdout.read() => stdout.take(read, on_output),
        read = stderr.read() => stderr.take(read, on_output),
    }
}
