//! `toolctl logs`: what the daemon logs, whether or not it runs. What a line is, is [`entry`]; where lines come from,
//! [`files`].

mod entry;
mod files;

use std::collections::VecDeque;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use clap::Args;

use crate::commands::logs::entry::{EntryAssembler, LogEntry, LogLevel};
use crate::commands::logs::files::LogFiles;
use crate::connection;
use crate::exit::{NOT_RUN, OK};
use crate::globals::Globals;
use crate::output::{self, one_line};

/// Show what the daemon logs, whether or not it runs
///
/// It reads $XDG_STATE_HOME/toold/log, where the shared daemon logs to unless `log.file` of the configuration is off.
/// `log.filter` sets what is logged; with `debug`, every call is.
#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// Go on with what comes, from the last lines on; Ctrl-C leaves
    #[arg(long, short)]
    follow: bool,
    /// Only the last so many entries; 10 with --follow, else all that are kept
    #[arg(long, short = 'n', value_name = "N")]
    lines: Option<usize>,
    /// Only what is newer: a time, as 2026-01-31T12:00:00Z, or how long ago, as 10min
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    since: Option<SystemTime>,
    /// Only what is at least as grave
    #[arg(long, value_enum, value_name = "LEVEL")]
    level: Option<LogLevel>,
    /// Only what names this tool
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Only what names this session
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// One JSON document a line
    #[arg(long)]
    json: bool,
}

/// How often a file is looked at that is followed.
const LOOK_EVERY: Duration = Duration::from_millis(200);

pub(crate) async fn run(args: LogsArgs, globals: &Globals) -> anyhow::Result<u8> {
    let socket = connection::socket(globals)?;
    let path = toold_proto::socket::log_file(&socket, |name| std::env::var(name).ok())
        .context("can't tell where the log is: neither XDG_STATE_HOME nor HOME is an absolute path")?;
    let mut files = LogFiles::open(&path)?;
    let mut last = LogTail::new(match (args.lines, args.follow) {
        (Some(lines), _) => Some(lines),
        (None, true) if args.since.is_none() => Some(10),
        (None, _) => None,
    });
    let mut lines = EntryAssembler::default();
    let mut show = |entry: LogEntry| if args.wants(&entry) { last.take(entry, &args) } else { Ok(()) };
    files.read(|line| lines.take(line).map_or(Ok(()), &mut show))?;
    if !args.follow {
        lines.end().map_or(Ok(()), &mut show)?;
        last.flush(&args)?;
        return Ok(if files.found_any() { OK } else { nothing(&path)? });
    }
    last.flush(&args)?;
    last.forget_limit();
    loop {
        let mut show = |entry: LogEntry| if args.wants(&entry) { last.take(entry, &args) } else { Ok(()) };
        // What is written is written in whole lines, so that an entry whose next has not come is whole, too.
        lines.end().map_or(Ok(()), &mut show)?;
        tokio::time::sleep(LOOK_EVERY).await;
        files.read(|line| lines.take(line).map_or(Ok(()), &mut show))?;
    }
}

fn nothing(path: &Path) -> anyhow::Result<u8> {
    let shown = one_line(&path.display().to_string());
    writeln!(output::stderr(), "there is no {shown}: no daemon has logged there, or log.file is off")?;
    Ok(NOT_RUN)
}

impl LogsArgs {
    fn wants(&self, entry: &LogEntry) -> bool {
        let names = |key: &str, wanted: &Option<String>| wanted.as_deref().is_none_or(|value| entry.names(key, value));
        self.level.is_none_or(|level| entry.level.is_some_and(|of| of <= level))
            && self.since.is_none_or(|since| entry.at().is_some_and(|at| at >= since))
            && names("tool", &self.tool)
            && names("session", &self.session)
    }
}

/// Holds entries back until it is known which are the last ones.
struct LogTail {
    limit: Option<usize>,
    held: VecDeque<LogEntry>,
}

impl LogTail {
    fn new(limit: Option<usize>) -> Self {
        Self { limit, held: VecDeque::new() }
    }

    fn take(&mut self, entry: LogEntry, args: &LogsArgs) -> anyhow::Result<()> {
        let Some(limit) = self.limit else { return print(&entry, args) };
        self.held.push_back(entry);
        if self.held.len() > limit {
            self.held.pop_front();
        }
        Ok(())
    }

    fn flush(&mut self, args: &LogsArgs) -> anyhow::Result<()> {
        self.held.drain(..).try_for_each(|entry| print(&entry, args))
    }

    /// From now on all are shown at once.
    fn forget_limit(&mut self) {
        self.limit = None;
    }
}

fn print(entry: &LogEntry, args: &LogsArgs) -> anyhow::Result<()> {
    let mut out = output::stdout();
    match args.json {
        true => writeln!(out, "{}", entry.to_json())?,
        false => writeln!(out, "{}", entry.render())?,
    }
    out.flush()?;
    Ok(())
}

fn moment(text: &str) -> Result<SystemTime, String> {
    if let Ok(ago) = humantime::parse_duration(text) {
        return SystemTime::now().checked_sub(ago).ok_or_else(|| format!("{text} is too long ago"));
    }
    humantime::parse_rfc3339_weak(text)
        .map_err(|_| format!("{text:?} is no time such as 2026-01-31T12:00:00Z, and no span such as 10min or 2h"))
}
