//! Structured logs on stderr. Nothing but the stdio transport writes to stdout.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

/// `TOOLD_LOG` is a filter such as `debug` or `toold_engine=trace`; `info` when unset, and without what the MCP SDK
/// says of every message.
/// `TOOLD_LOG_FORMAT` is `text` or `json`.
///
/// # Errors
/// A filter that cannot be read, or a format that there is not.
pub fn init(filter: Option<&str>, format: Option<&str>) -> anyhow::Result<()> {
    let given = filter.unwrap_or("info");
    // The MCP library logs whole messages, which may hold secrets: only who names it gets that.
    let filter = if given.contains("rmcp") { given.to_owned() } else { format!("{given},rmcp=error") };
    let filter = EnvFilter::try_new(filter).map_err(|error| anyhow::anyhow!("TOOLD_LOG cannot be read: {error}"))?;
    let builder =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_span_events(FmtSpan::NONE);
    match format.unwrap_or("text") {
        "text" => builder.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).init(),
        "json" => builder.json().flatten_event(true).init(),
        other => anyhow::bail!("TOOLD_LOG_FORMAT is {other:?}: expected text or json"),
    }
    Ok(())
}
