//! Replies of a call that wait for room in its window: in memory, and in a file when they are many.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;

use toold_proto::call::Stream;

use crate::messages::ReplyEvent;

/// Bytes in memory.
const MAX_MEMORY: usize = 4 * 1024 * 1024;
/// Bytes in the file.
const MAX_FILE: u64 = 1024 * 1024 * 1024;
/// Bytes before the text of an output in the file: its stream and its length.
const HEADER: usize = 5;

type OpenSpool = Box<dyn Fn() -> std::io::Result<File> + Send + Sync>;

pub(crate) struct Backlog {
    waiting: VecDeque<(ReplyEvent, usize)>,
    bytes: usize,
    /// Outputs that follow those in memory.
    file: Option<SpooledOutput>,
    open: OpenSpool,
    max_memory: usize,
}

/// Outputs, one after another. Read and written at its ends.
struct SpooledOutput {
    file: File,
    read: u64,
    written: u64,
}

impl Backlog {
    /// `open` returns an empty file that nobody else sees.
    pub(crate) fn new(open: impl Fn() -> std::io::Result<File> + Send + Sync + 'static) -> Self {
        Self { waiting: VecDeque::new(), bytes: 0, file: None, open: Box::new(open), max_memory: MAX_MEMORY }
    }

    #[cfg(test)]
    pub(crate) fn with_memory(self, max_memory: usize) -> Self {
        Self { max_memory, ..self }
    }

    /// Messages in memory.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.file.is_none()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
            + self.file.as_ref().map_or(0, |file| usize::try_from(file.written - file.read).unwrap_or(usize::MAX))
    }

    /// Adds something else than output. There must be room in memory.
    pub(crate) fn push(&mut self, event: ReplyEvent, bytes: usize) {
        // Behind outputs in a file it would overtake them, which only matters for output.
        self.bytes += bytes;
        self.waiting.push_back((event, bytes));
    }

    /// Adds an output; joins it with the one before it, if both have at most `max_text` bytes.
    ///
    /// # Errors
    /// When it cannot be stored, as a sentence.
    pub(crate) fn push_output(&mut self, stream: Stream, text: &str, max_text: usize) -> Result<(), String> {
        if self.file.is_some() || self.bytes + text.len() > self.max_memory {
            return self.store(stream, text);
        }
        self.bytes += text.len();
        if let Some((ReplyEvent::Output { stream: last, text: before }, bytes)) = self.waiting.back_mut()
            && *last == stream
            && before.len() + text.len() <= max_text
        {
            before.push_str(text);
            *bytes += text.len();
            return Ok(());
        }
        self.waiting.push_back((ReplyEvent::Output { stream, text: text.to_owned() }, text.len()));
        Ok(())
    }

    fn store(&mut self, stream: Stream, text: &str) -> Result<(), String> {
        let failed = |error: std::io::Error| {
            format!("the caller reads the output more slowly than it is written, and it cannot be stored: {error}")
        };
        let spooled = match &mut self.file {
            Some(spooled) => spooled,
            none => none.insert(SpooledOutput { file: (self.open)().map_err(failed)?, read: 0, written: 0 }),
        };
        if spooled.written - spooled.read + text.len() as u64 > MAX_FILE {
            return Err(format!(
                "the caller reads the output more slowly than it is written: more than {MAX_FILE} bytes of it wait"
            ));
        }
        let length = u32::try_from(text.len()).expect("outputs are cut to a message's size");
        let mut record = Vec::with_capacity(HEADER + text.len());
        record.push(u8::from(stream == Stream::Stderr));
        record.extend_from_slice(&length.to_le_bytes());
        record.extend_from_slice(text.as_bytes());
        spooled.file.write_all_at(&record, spooled.written).map_err(failed)?;
        spooled.written += record.len() as u64;
        Ok(())
    }

    /// The oldest, with the bytes of its text.
    pub(crate) fn pop(&mut self) -> Option<(ReplyEvent, usize)> {
        if let Some((event, bytes)) = self.waiting.pop_front() {
            self.bytes -= bytes;
            return Some((event, bytes));
        }
        let spooled = self.file.as_mut()?;
        let output = spooled.next();
        if spooled.read >= spooled.written {
            self.file = None;
        }
        let bytes = output.1.len();
        Some((ReplyEvent::Output { stream: output.0, text: output.1 }, bytes))
    }
}

impl SpooledOutput {
    /// A part that cannot be read is replaced by a text that says so.
    fn next(&mut self) -> (Stream, String) {
        let read = || -> std::io::Result<(Stream, Vec<u8>)> {
            let mut header = [0; HEADER];
            self.file.read_exact_at(&mut header, self.read)?;
            let [stream, a, b, c, d] = header;
            let mut text = vec![0; u32::from_le_bytes([a, b, c, d]) as usize];
            self.file.read_exact_at(&mut text, self.read + HEADER as u64)?;
            Ok((if stream == 0 { Stream::Stdout } else { Stream::Stderr }, text))
        };
        match read() {
            Ok((stream, text)) => {
                self.read += (HEADER + text.len()) as u64;
                (stream, String::from_utf8_lossy(&text).into_owned())
            }
            Err(error) => {
                let lost = self.written - self.read;
                self.read = self.written;
                (
                    Stream::Stderr,
                    format!("[{lost} bytes of the output are lost, because their file cannot be read: {error}]"),
                )
            }
        }
    }
}
