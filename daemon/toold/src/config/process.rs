//! `[daemon]`, `[log]`, `[trace]` and `[metrics]`: the daemon's own process.

use anyhow::Context;
use serde::Deserialize;
use tracing_subscriber::EnvFilter;

/// `[daemon]`: the daemon's process.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct DaemonConfig {
    /// The daemon stops after this many milliseconds without use: no client connected, and no call or background
    /// command running. The next client starts it again. 0, the default, means never. It also never stops by itself
    /// while MCP is served on HTTP, whose clients could not start it.
    pub idle_exit_ms: u64,
    /// A session is unloaded after this many milliseconds without use: no connection, no call, no background command.
    /// A client that opens it by its id gets it back as after a restart of the daemon, without the grants for the
    /// session. One day by default; 0 means never.
    pub session_idle_ms: u64,
    /// The maximum number of idle sessions without a connection. When there are more, those unused for the longest
    /// time are unloaded, as after `session_idle_ms`. 1000 by default.
    pub max_unused_sessions: usize,
}

impl Default for DaemonConfig {
    fn default() -> Self {
        Self { idle_exit_ms: 0, session_idle_ms: 24 * 3600 * 1000, max_unused_sessions: 1_000 }
    }
}

/// `[log]`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct LogConfig {
    /// A level (`error`, `warn`, `info`, `debug`, `trace`), or levels by module, such as `info,toold_mcp=debug`.
    /// `$TOOLD_LOG` takes precedence.
    pub filter: LogFilter,
    /// The format of the log. Takes effect at the next start.
    pub format: LogFormat,
    /// Whether the shared daemon writes a log file in `$XDG_STATE_HOME/toold/log`, which `toolctl logs` shows. Takes
    /// effect at the next start.
    pub file: bool,
    /// The log file is rotated when it is larger than this. Takes effect at the next start.
    #[cfg_attr(test, schemars(range(min = 16)))]
    pub max_kib: u64,
    /// How many rotated files are kept. Takes effect at the next start.
    #[cfg_attr(test, schemars(range(max = 1000)))]
    pub keep: usize,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self { filter: LogFilter::default(), format: LogFormat::Text, file: true, max_kib: 8 * 1024, keep: 4 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    Text,
    Json,
}

/// Libraries that log whole messages, which may hold secrets, below these levels: they do so only if the filter names them.
const LOG_MESSAGES: [(&str, &str); 2] = [("rmcp", "error"), ("async_nats", "warn")];

/// A valid filter.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema, serde::Serialize))]
#[serde(try_from = "String")]
pub struct LogFilter(pub(crate) String);

impl Default for LogFilter {
    fn default() -> Self {
        Self("info".to_owned())
    }
}

impl TryFrom<String> for LogFilter {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let levels = ["off", "error", "warn", "info", "debug", "trace"];
        // The library takes a bare word for a module, all of whose lines are then logged.
        let is_known = |part: &str| part.contains(['=', '[']) || levels.contains(&part.to_lowercase().as_str());
        if let Some(part) = text.split(',').map(str::trim).find(|part| !is_known(part)) {
            return Err(format!("{part:?} is neither a level nor PART=LEVEL: expected one of {}", levels.join(", ")));
        }
        let filter = Self(text);
        filter.read().map_err(|error| format!("{error:#}"))?;
        Ok(filter)
    }
}

impl LogFilter {
    /// # Errors
    /// The filter is invalid, which can only happen with `$TOOLD_LOG`.
    pub(crate) fn read(&self) -> anyhow::Result<EnvFilter> {
        let given = &self.0;
        let mut text = given.clone();
        for (library, level) in LOG_MESSAGES {
            if !given.contains(library) {
                text.push_str(&format!(",{library}={level}"));
            }
        }
        EnvFilter::try_new(text).with_context(|| format!("the log's filter {given:?} cannot be read"))
    }
}

/// `[trace]`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct TraceConfig {
    /// The OpenTelemetry collector to which traces of calls are sent over HTTP, such as `http://127.0.0.1:4318`. No
    /// traces are made when absent. Takes effect at the next start.
    pub otlp_endpoint: Option<String>,
    /// The share of calls to trace among those that do not belong to a caller's trace. Takes effect at the next start.
    #[cfg_attr(test, schemars(range(min = 0.0, max = 1.0)))]
    pub sample: f64,
}

impl Default for TraceConfig {
    fn default() -> Self {
        Self { otlp_endpoint: None, sample: 1.0 }
    }
}

/// `[metrics]`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct MetricsConfig {
    /// Serve `GET /metrics` for Prometheus at the address of `mcp.listen`, to clients with the token.
    pub prometheus: bool,
}
