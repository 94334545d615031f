//! What a program writes, as it comes.

use tokio::io::{AsyncRead, AsyncReadExt};
use toold_proto::call::Stream;

use crate::kept::Kept;
use crate::utf8::Decoder;

/// One of a program's output streams.
pub(super) struct Pipe<R> {
    stream: Stream,
    reader: Option<R>,
    buffer: Vec<u8>,
    decoder: Decoder,
    pub(super) kept: Kept,
}

impl<R: AsyncRead + Unpin> Pipe<R> {
    pub(super) fn new(stream: Stream, reader: Option<R>, keep: usize) -> Self {
        Self { stream, reader, buffer: vec![0; 16 * 1024], decoder: Decoder::default(), kept: Kept::new(keep) }
    }

    pub(super) fn closed(&self) -> bool {
        self.reader.is_none()
    }

    /// Cancel-safe: bytes are taken only when it returns. Never returns once closed.
    async fn read(&mut self) -> usize {
        let Some(reader) = &mut self.reader else { return std::future::pending().await };
        // A pipe that cannot be read any more is at its end.
        let read = reader.read(&mut self.buffer).await.unwrap_or(0);
        if read == 0 {
            self.reader = None;
        }
        read
    }

    fn take(&mut self, read: usize, on_output: &mut impl FnMut(Stream, &str)) {
        let text = self.decoder.decode(&self.buffer[..read]);
        self.tell(&text, on_output);
    }

    pub(super) fn finish(&mut self, on_output: &mut impl FnMut(Stream, &str)) {
        let text = self.decoder.finish();
        self.tell(&text, on_output);
    }

    fn tell(&mut self, text: &str, on_output: &mut impl FnMut(Stream, &str)) {
        if !text.is_empty() {
            self.kept.push(text);
            on_output(self.stream, text);
        }
    }
}

/// Takes what comes first; when both have something, either, so that neither can starve the other.
pub(super) async fn read_either(
    stdout: &mut Pipe<impl AsyncRead + Unpin>,
    stderr: &mut Pipe<impl AsyncRead + Unpin>,
    on_output: &mut impl FnMut(Stream, &str),
) {
    tokio::select! {
        read = stdout.read() => stdout.take(read, on_output),
        read = stderr.read() => stderr.take(read, on_output),
    }
}
