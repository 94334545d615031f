//! `toolctl logs`: the daemon's log, whether or not it is running. [`entry`] reads lines, [`files`] finds them.

mod entry;
mod files;

use std::collections::VecDeque;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use clap::Args;
use toold_client::place;
use toold_proto::socket::log_file;

use crate::clock;
use crate::commands::logs::entry::{EntryAssembler, LogEntry, LogLevel};
use crate::commands::logs::files::LogFiles;
use crate::exit::{NOT_RUN, OK};
use crate::output::{self, one_line};

/// Show the daemon's log, whether or not it is running
///
/// Reads $XDG_STATE_HOME/toold/log, which the shared daemon writes unless `log.file` is off in the configuration.
/// `log.filter` sets what is logged; `debug` includes every call.
#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// Keep showing new entries, starting with the last ones, until you press Ctrl-C
    #[arg(long, short)]
    follow: bool,
    /// Only the last N entries; defaults to 10 with --follow, or else to all
    #[arg(long, short = 'n', value_name = "N", value_parser = crate::amount::whole::<usize>)]
    lines: Option<usize>,
    /// Only entries since this time, such as 2026-01-31T12:00:00Z, or for so long, such as 15m
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    since: Option<SystemTime>,
    /// This level and above
    #[arg(long, value_enum, value_name = "LEVEL")]
    level: Option<LogLevel>,
    /// Only entries about this tool
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Only entries about this session
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Print one JSON document per line
    #[arg(long)]
    json: bool,
}

/// How often a followed file is read.
const LOOK_EVERY: Duration = Duration::from_millis(200);

pub(crate) async fn run(args: LogsArgs) -> anyhow::Result<u8> {
    let path = place::state_folder()
        .map(|state| log_file(&state))
        .context("can't find the log: neither XDG_STATE_HOME nor HOME is an absolute path")?;
    let mut files = LogFiles::open(&path)?;
    let mut last = LogTail::new(match (args.lines, args.follow) {
        (Some(lines), _) => Some(lines),
        (None, true) if args.since.is_none() => Some(10),
        (None, _) => None,
    });
    let mut lines = EntryAssembler::default();
    let mut any = false;
    let mut show = |entry: LogEntry| match args.wants(&entry) {
        true => {
            any = true;
            last.take(entry, &args)
        }
        false => Ok(()),
    };
    files.read(|line| lines.take(line).map_or(Ok(()), &mut show))?;
    if !args.follow {
        lines.end().map_or(Ok(()), &mut show)?;
        last.flush(&args)?;
        if !files.found_any() {
            return nothing(&path);
        }
        if !any {
            writeln!(output::stderr(), "no matching entries")?;
        }
        return Ok(OK);
    }
    last.flush(&args)?;
    last.forget_limit();
    loop {
        let mut show = |entry: LogEntry| if args.wants(&entry) { last.take(entry, &args) } else { Ok(()) };
        // The daemon writes whole lines, so the last entry is complete even before the next one begins.
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

/// Keeps only the last entries until all were read.
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

    /// From now on, every entry is shown at once.
    fn forget_limit(&mut self) {
        self.limit = None;
    }
}

fn print(entry: &LogEntry, args: &LogsArgs) -> anyhow::Result<()> {
    match args.json {
        true => output::print_json_line(&entry.to_json()),
        false => output::print(&format!("{}\n", entry.render())),
    }
}

fn moment(text: &str) -> Result<SystemTime, String> {
    if let Ok(ago) = humantime::parse_duration(text) {
        return SystemTime::now().checked_sub(ago).ok_or_else(|| format!("{text} is too long ago"));
    }
    humantime::parse_rfc3339(&clock::moment(text))
        .map_err(|_| format!("expected a time such as 2026-01-31 12:00 or a duration such as 15m, got {text:?}"))
}
