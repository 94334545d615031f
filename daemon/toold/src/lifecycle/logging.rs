//! Structured logs: on stderr, and in a rotated file. Nothing but the stdio transport writes to
//! stdout.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use file_rotate::compression::Compression;
use file_rotate::suffix::AppendCount;
use file_rotate::{ContentLimit, FileRotate};
use parking_lot::Mutex;
use serde_json::Value;
use toold_engine::redact::redact;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::{DefaultFields, FormatFields, Writer};
use tracing_subscriber::fmt::{self as lines, MakeWriter};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, reload};

use crate::config::active_config::ActiveConfig;
use crate::config::paths::private_dir;
use crate::config::process::{LogConfig, LogFilter, LogFormat};
use crate::lifecycle::traces::Traces;

/// The log of this process.
#[derive(Clone)]
pub struct Logging {
    filter: reload::Handle<EnvFilter, Registry>,
    /// `$TOOLD_LOG`, which overrides the configuration.
    given: Option<LogFilter>,
    config: LogConfig,
    outputs: Arc<LogOutputs>,
    traces: Option<Traces>,
}

/// The outputs of the log.
#[derive(Default)]
struct LogOutputs {
    /// Stderr is no longer used.
    off_stderr: AtomicBool,
    json: bool,
    file: Mutex<LogFile>,
}

enum LogFile {
    /// Not known yet. Buffers lines up to [`MAX_WAITING`] bytes.
    Waiting(Vec<u8>),
    Open(Box<OpenLog>),
    None,
}

/// An open log, and how to reopen it.
struct OpenLog {
    file: FileRotate<AppendCount>,
    config: LogConfig,
    path: PathBuf,
    /// The process's stderr is redirected there, too.
    alone: bool,
    /// When the existence of the file was last checked.
    looked: Instant,
}

/// How often the existence of the file is checked.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl OpenLog {
    /// Writes a line, to a new file if the open one, or its folder, was removed.
    fn write(&mut self, line: &[u8]) {
        if self.looked.elapsed() >= LOOK_EVERY {
            self.looked = Instant::now();
            // If it cannot be reopened now, a later line retries.
            if self.path.symlink_metadata().is_err()
                && let Ok((file, for_stderr)) = open(&self.config, &self.path)
            {
                self.file = file;
                if self.alone {
                    // As before: stderr has no other target.
                    let _ = rustix::stdio::dup2_stderr(&for_stderr);
                }
            }
        }
        // Fails when the disk is full, which cannot be reported to anybody.
        let _ = self.file.write_all(line);
    }
}

impl Default for LogFile {
    fn default() -> Self {
        Self::Waiting(Vec::new())
    }
}

const MAX_WAITING: usize = 256 * 1024;
/// Larger files are as good as unbounded.
const MAX_KIB: u64 = 16 << 20;

/// Starts logging on stderr. `given` is `$TOOLD_LOG`, a filter that overrides the configured one.
/// Calls are traced if a collector is configured.
///
/// # Errors
/// An invalid filter.
pub fn init(config: LogConfig, given: Option<String>, traces: Option<Traces>) -> anyhow::Result<Logging> {
    let given = given.map(LogFilter);
    let (filter, handle) = reload::Layer::new(given.as_ref().unwrap_or(&config.filter).read()?);
    let outputs = Arc::new(LogOutputs { json: config.format == LogFormat::Json, ..LogOutputs::default() });
    let (to_stderr, to_file) = (ToStderr(outputs.clone()), ToFile(outputs.clone()));
    let layer: Box<dyn Layer<Registry> + Send + Sync> = match config.format {
        LogFormat::Text => {
            let on_stderr = lines::layer().with_ansi(io::stderr().is_terminal()).with_writer(to_stderr);
            let in_file = lines::layer().fmt_fields(InFile::default()).with_ansi(false).with_writer(to_file);
            Box::new(on_stderr.and_then(in_file))
        }
        LogFormat::Json => {
            let on_stderr = lines::layer().json().flatten_event(true).with_writer(to_stderr);
            Box::new(on_stderr.and_then(lines::layer().json().flatten_event(true).with_writer(to_file)))
        }
    };
    let traced = traces.as_ref().map(Traces::layer);
    tracing_subscriber::registry().with(layer.with_filter(filter)).with(traced).init();
    log_panics();
    Ok(Logging { filter: handle, given, config, outputs, traces })
}

/// A panic becomes a log line: a daemon in the background has no other place for it.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let words = panic.payload_as_str().unwrap_or("no message");
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let thread = std::thread::current().name().unwrap_or("unnamed").to_owned();
        let trace = std::backtrace::Backtrace::capture();
        match trace.status() {
            std::backtrace::BacktraceStatus::Captured => tracing::error!(place, thread, %trace, "panicked: {words}"),
            _ => tracing::error!(place, thread, "panicked: {words}"),
        }
    }));
}

impl Logging {
    /// There is no file: lines that were buffered for it are dropped.
    pub fn without_file(&self) {
        *self.outputs.file.lock() = LogFile::None;
    }

    /// Also logs to a file, if configured. Earlier lines come first. With `alone`, nothing more is
    /// logged to stderr, and other output on stderr goes to the file.
    ///
    /// If the file cannot be opened, this is reported on stderr, where the log continues.
    pub fn open_file(&self, path: &Path, alone: bool) {
        if !self.config.file {
            return self.without_file();
        }
        // That of a daemon which takes over from one in the background.
        let alone = alone || stderr_is(path);
        match open(&self.config, path) {
            Ok((mut file, taking_over)) => {
                let waiting = std::mem::replace(&mut *self.outputs.file.lock(), LogFile::None);
                if let LogFile::Waiting(lines) = waiting {
                    // Fails when the disk is full, which cannot be reported to anybody.
                    let _ = file.write_all(&lines);
                }
                let (config, path) = (self.config.clone(), path.to_owned());
                let log = OpenLog { file, config, path, alone, looked: Instant::now() };
                *self.outputs.file.lock() = LogFile::Open(Box::new(log));
                if alone && rustix::stdio::dup2_stderr(&taking_over).is_ok() {
                    self.outputs.off_stderr.store(true, Ordering::Relaxed);
                }
            }
            Err(error) => {
                self.without_file();
                tracing::error!("the log goes to stderr alone: {error:#}");
            }
        }
    }

    /// Sends the last traces. Call it when the daemon has stopped.
    pub async fn end(self) {
        if let Some(traces) = self.traces {
            traces.end().await;
        }
    }

    /// Follows the configuration's filter until the daemon stops, and starts sending traces.
    pub fn follow(self, config: &Arc<ActiveConfig>) {
        if let Some(traces) = &self.traces {
            traces.begin();
        }
        config.follow(move |config| {
            if self.given.is_some() {
                return;
            }
            let filter = config.loaded().config.log.filter.read();
            // Neither fails: the filter was parsed before, and the subscriber exists as long as the
            // process.
            let changed = filter.and_then(|filter| Ok(self.filter.reload(filter)?));
            if let Err(error) = changed {
                tracing::error!("the log's filter stays as it was: {error:#}");
            }
        });
    }
}

/// Whether stderr is redirected to this log already, or to a file that it became when it was rotated.
fn stderr_is(log: &Path) -> bool {
    let target = std::fs::read_link("/proc/self/fd/2").unwrap_or_default();
    target.as_os_str().as_encoded_bytes().starts_with(log.as_os_str().as_encoded_bytes())
}

type OpenedLog = (FileRotate<AppendCount>, std::fs::File);

/// The file, plus stderr.
fn open(config: &LogConfig, path: &Path) -> anyhow::Result<OpenedLog> {
    let dir = path.parent().context("the log's path has no folder")?;
    private_dir(dir).with_context(|| format!("can't make {}", dir.display()))?;
    let mut options = std::fs::OpenOptions::new();
    let no_follow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    options.read(true).create(true).append(true).mode(0o600).custom_flags(no_follow);
    let opened = options.open(path).with_context(|| format!("can't open {}", path.display()))?;
    let limit = ContentLimit::BytesSurpassed(config.max_kib.clamp(16, MAX_KIB) as usize * 1024);
    let suffixes = AppendCount::new(config.keep.min(1000));
    Ok((FileRotate::new(path, suffixes, limit, Compression::None, Some(options)), opened))
}

impl LogOutputs {
    /// Redacts likely secrets in a line.
    fn clean<'l>(&self, line: &'l [u8]) -> Cow<'l, [u8]> {
        let Ok(text) = std::str::from_utf8(line) else { return Cow::Borrowed(line) };
        match redact(text) {
            Cow::Borrowed(_) => Cow::Borrowed(line),
            Cow::Owned(redacted) if !self.json => Cow::Owned(redacted.into_bytes()),
            // Member by member, or it may no longer be valid JSON.
            Cow::Owned(redacted) => match serde_json::from_str::<Value>(text) {
                Ok(mut value) => {
                    clean_value(&mut value);
                    Cow::Owned(format!("{value}\n").into_bytes())
                }
                Err(_) => Cow::Owned(redacted.into_bytes()),
            },
        }
    }
}

fn clean_value(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(redacted) = redact(text) {
                *text = redacted;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(clean_value),
        Value::Object(members) => members.values_mut().for_each(clean_value),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Fields of spans as formatted for the file: without terminal colours, whose form is stored under
/// another type.
#[derive(Default)]
struct InFile(DefaultFields);

impl<'w> FormatFields<'w> for InFile {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'w>, fields: R) -> fmt::Result {
        self.0.format_fields(writer, fields)
    }
}

struct ToStderr(Arc<LogOutputs>);
struct ToFile(Arc<LogOutputs>);

/// Accepts one whole line.
struct OneLine<'p>(&'p LogOutputs, OutputStream);

#[derive(Clone, Copy)]
enum OutputStream {
    Stderr,
    File,
}

impl<'p> MakeWriter<'p> for ToStderr {
    type Writer = OneLine<'p>;

    fn make_writer(&'p self) -> OneLine<'p> {
        OneLine(&self.0, OutputStream::Stderr)
    }
}

impl<'p> MakeWriter<'p> for ToFile {
    type Writer = OneLine<'p>;

    fn make_writer(&'p self) -> OneLine<'p> {
        OneLine(&self.0, OutputStream::File)
    }
}

impl Write for OneLine<'_> {
    /// Never fails: a lost line cannot be reported to anybody.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let outputs = self.0;
        match self.1 {
            OutputStream::Stderr if outputs.off_stderr.load(Ordering::Relaxed) => {}
            OutputStream::Stderr => _ = io::stderr().write_all(&outputs.clean(line)),
            OutputStream::File => match &mut *outputs.file.lock() {
                LogFile::None => {}
                LogFile::Waiting(waiting) => {
                    if waiting.len() + line.len() <= MAX_WAITING {
                        waiting.extend_from_slice(&outputs.clean(line));
                    }
                }
                LogFile::Open(log) => log.write(&outputs.clean(line)),
            },
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_levels_or_parts_with_levels() {
        for good in ["info", "WARN", "info,toold_mcp=debug", "off,toold=trace"] {
            assert!(LogFilter::try_from(good.to_owned()).is_ok(), "{good}");
        }
        let refused = LogFilter::try_from("info,toold_mcp".to_owned()).unwrap_err();
        assert!(refused.contains("toold_mcp") && refused.contains("warn"), "{refused}");
        assert!(LogFilter::try_from("inof".to_owned()).is_err());
        assert!(LogFilter::try_from("toold=many".to_owned()).is_err());
    }

    #[test]
    fn a_line_loses_its_secrets_and_stays_json() {
        let text = LogOutputs::default();
        assert_eq!(text.clean(b"INFO x: --token abc\n").as_ref(), b"INFO x: --token [redacted]\n");
        let json = LogOutputs { json: true, ..LogOutputs::default() };
        let line = br#"{"message":"no token: ","command":"curl -u me:pw x","n":1}"#;
        let cleaned: Value = serde_json::from_slice(&json.clean(line)).unwrap();
        assert_eq!(cleaned["command"], "curl -u me:[redacted] x");
        assert_eq!(cleaned["n"], 1);
    }
}
