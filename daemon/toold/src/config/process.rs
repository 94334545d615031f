//! `[daemon]`, `[log]`, `[trace]` and `[metrics]`: the daemon's own process.

use anyhow::Context;
use schemars::JsonSchema;
use serde::Deserialize;
use tracing_subscriber::EnvFilter;

/// `[daemon]`: the process itself.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DaemonConfig {
    /// The daemon ends when it was not used for so long: no client connected, no call and no command in the background
    /// running. The next client starts it again. 0, as by default: never; nor while MCP is served on HTTP, whose
    /// clients could not start it.
    pub idle_exit_ms: u64,
    /// A session leaves memory when it was not used for so long: no connection, no call, no command in the background.
    /// Whoever opens it by its id finds it as after a restart of the daemon, without what was granted for the session.
    /// A day by default; 0: never.
    pub session_idle_ms: u64,
    /// Sessions that nobody is connected to and that do nothing, at most. Beyond, those leave memory that were not used for
    /// the longest time, as after `session_idle_ms`. 1000 by default.
    pub max_unused_sessions: usize,
}

impl Default for DaemonConfig {
    fn default() -> Self {
        Self { idle_exit_ms: 0, session_idle_ms: 24 * 3600 * 1000, max_unused_sessions: 1_000 }
    }
}

/// `[log]`
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LogConfig {
    /// A level (`error`, `warn`, `info`, `debug`, `trace`), or levels by part, as `info,toold_mcp=debug`. `$TOOLD_LOG`
    /// counts before it.
    pub filter: LogFilter,
    /// Counts from the next start on.
    pub format: LogFormat,
    /// Whether the shared daemon keeps a log in `$XDG_STATE_HOME/toold/log`, which `toolctl logs` shows. Counts from the
    /// next start on.
    pub file: bool,
    /// A file that has grown beyond this is put aside. Counts from the next start on.
    #[schemars(range(min = 16))]
    pub max_kib: u64,
    /// How many of those that were put aside are kept. Counts from the next start on.
    #[schemars(range(max = 1000))]
    pub keep: usize,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self { filter: LogFilter::default(), format: LogFormat::Text, file: true, max_kib: 8 * 1024, keep: 4 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    Text,
    Json,
}

/// A filter that can be read.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
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
        // The library takes a word for a part of the program, whose every line is wanted then.
        let is_known = |part: &str| part.contains(['=', '[']) || levels.contains(&part.to_lowercase().as_str());
        if let Some(part) = text.split(',').map(str::trim).find(|part| !is_known(part)) {
            return Err(format!("{part:?} is no level and no PART=LEVEL: expected one of {}", levels.join(", ")));
        }
        let filter = Self(text);
        filter.read().map_err(|error| format!("{error:#}"))?;
        Ok(filter)
    }
}

impl LogFilter {
    /// # Errors
    /// It is no filter, which is so of `$TOOLD_LOG` alone.
    pub(crate) fn read(&self) -> anyhow::Result<EnvFilter> {
        let given = &self.0;
        // The MCP library logs whole messages, which may hold secrets: only who names it gets that.
        let text = if given.contains("rmcp") { given.clone() } else { format!("{given},rmcp=error") };
        EnvFilter::try_new(text).with_context(|| format!("the log's filter {given:?} cannot be read"))
    }
}

/// `[trace]`
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TraceConfig {
    /// The OpenTelemetry collector that traces of calls are sent to, over HTTP: `http://127.0.0.1:4318`. Absent: none is
    /// made. Counts from the next start on.
    pub otlp_endpoint: Option<String>,
    /// Which share of the calls is traced that belong to no trace of their caller's. Counts from the next start on.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub sample: f64,
}

impl Default for TraceConfig {
    fn default() -> Self {
        Self { otlp_endpoint: None, sample: 1.0 }
    }
}

/// `[metrics]`
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MetricsConfig {
    /// Serve `GET /metrics` for Prometheus where `mcp.listen` listens, to whoever has the token.
    pub prometheus: bool,
}
