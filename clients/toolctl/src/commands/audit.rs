//! `toolctl audit`: past calls, their callers, and who allowed them; [`fleet`] shows those on all machines.

mod fleet;
mod verify;

use std::io::Write;

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use toold_client::{Client, ClientError};
use toold_proto::audit::{AuditEntry, AuditList, AuditQuery};
use toold_proto::event::{Outcome, SubscribeEvents};
use toold_proto::fleet::FleetAuditQuery;
use toold_proto::method::{self, EventsSubscribe};
use toold_proto::tool::{SessionId, ToolName};

use crate::clock::{self, date_and_time, time_of_day};
use crate::commands::call::session_id;
use crate::commands::hook::HookAgent;
use crate::exit::OK;
use crate::globals::Globals;
use crate::output::{self, BAD, DIM, one_line, print_json, print_json_line, shorten};
use crate::person::PersonWrites;
use crate::tool_title::entry_title;
use crate::views::{self, ViewCell, audit, column};
use crate::{amount, connection};

/// Show past calls
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    action: Option<AuditAction>,
    /// Only calls that began at this time or later: 2026-01-31T12:00:00Z, or how long ago, such as 15m
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Only calls of this session
    #[arg(long, value_name = "ID", value_parser = session_id)]
    session: Option<SessionId>,
    /// Only calls of this tool
    #[arg(long, value_name = "NAME", value_parser = tool_name)]
    tool: Option<ToolName>,
    /// Only calls of this agent, with those of its sub-agents, or of this client
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Only calls with this outcome: ok, error, denied, timed_out, cancelled, ...
    #[arg(long, value_parser = outcome)]
    outcome: Option<Outcome>,
    /// Calls on all machines of the fleet, as their daemons report them to its NATS server
    #[arg(long)]
    fleet: bool,
    /// With --fleet: only calls on this machine
    #[arg(long = "on", value_name = "DAEMON", requires = "fleet")]
    daemon: Option<String>,
    /// Show at most this many of the last calls; defaults to 100, at most 1,000
    #[arg(long, short = 'n', value_name = "N", value_parser = amount::at_least_1)]
    limit: Option<u64>,
    /// Show the decision on each permission that a call needed
    #[arg(long, short)]
    decisions: bool,
    /// Keep showing calls as they end
    #[arg(long, short)]
    follow: bool,
    /// Print JSON; one document per line with --follow
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum AuditAction {
    /// Check whether rows of the audit log were removed or changed
    ///
    /// Each row has a hash over itself and the row before. This shows loss; it does not show a forger who has your
    /// rights, and who could write a whole log that is right in itself.
    Verify {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(crate) async fn run(args: AuditArgs, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    if let Some(AuditAction::Verify { json }) = args.action {
        return verify::run(&client, json).await;
    }
    // `gemini-cli` is the name of a package, and `gemini` that of the agent here.
    let agent = args.agent.map(|name| match HookAgent::from_str(&name, true) {
        Ok(agent) => agent.name().to_owned(),
        Err(_) => name,
    });
    let format = match (args.json, args.decisions) {
        (true, _) => AuditFormat::Json,
        (false, true) => AuditFormat::Decisions,
        (false, false) => AuditFormat::Line,
    };
    let since = args.since.as_deref().map(clock::moment);
    if args.fleet {
        let query = FleetAuditQuery {
            daemon: args.daemon,
            since,
            after: None,
            before: None,
            session_id: args.session,
            tool: args.tool,
            agent,
            outcome: args.outcome,
            limit: args.limit,
        };
        return match args.follow {
            true => fleet::follow(&client, query, format).await,
            false => fleet::list(&client, query, format).await,
        };
    }
    let query = AuditQuery {
        since,
        after: None,
        session_id: args.session,
        tool: args.tool,
        agent,
        outcome: args.outcome,
        limit: args.limit,
    };
    if args.follow {
        return follow(&client, query, format).await;
    }
    let list = client.call::<method::AuditQuery>(query).await?;
    if args.json {
        print_json(&list)?;
        return Ok(OK);
    }
    // A program that may write configurations sees all calls.
    let sees_all = !list.entries.is_empty() || PersonWrites::with(Some(&client)).await.is_ok();
    print_calls(&local(&list), list.more, args.decisions)?;
    if !sees_all {
        writeln!(output::stderr(), "an agent or a tool started this program, so it is shown only its own calls")?;
    }
    let mut err = output::stderr();
    if list.lost > 0 {
        writeln!(err, "{BAD}calls that could not be recorded in time: {}{BAD:#}", list.lost)?;
    }
    Ok(OK)
}

/// On fewer columns than these, the cells of a table would have a word in each line.
const NARROW: u16 = 60;

/// A call to show.
struct PastCall<'a> {
    /// The machine that it ran on, if there are several.
    daemon: Option<&'a str>,
    entry: &'a AuditEntry,
}

fn local(list: &AuditList) -> Vec<PastCall<'_>> {
    list.entries.iter().map(|entry| PastCall { daemon: None, entry }).collect()
}

fn print_calls(calls: &[PastCall<'_>], more: bool, decisions: bool) -> anyhow::Result<()> {
    output::print(&render(calls, decisions, output::terminal_width()))?;
    let mut err = output::stderr();
    match (calls.is_empty(), more) {
        (true, _) => writeln!(err, "no matching calls")?,
        (false, true) => writeln!(err, "{DIM}there are earlier calls: use --limit or --since{DIM:#}")?,
        (false, false) => {}
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum AuditFormat {
    Line,
    Decisions,
    Json,
}

/// The calls that were found since the last time, with their documents.
fn print_new_calls<T: Serialize>(calls: &[PastCall<'_>], documents: &[T], format: AuditFormat) -> anyhow::Result<()> {
    let mut out = output::stdout();
    for (call, document) in calls.iter().zip(documents) {
        match format {
            AuditFormat::Line => writeln!(out, "{}", line(call))?,
            AuditFormat::Decisions => write!(out, "{}", with_decisions(call))?,
            AuditFormat::Json => print_json_line(document)?,
        }
    }
    out.flush()?;
    Ok(())
}

/// Past calls, then each call as it ends; until the daemon stops.
async fn follow(client: &Client, mut query: AuditQuery, format: AuditFormat) -> anyhow::Result<u8> {
    // Before the first query, so that no call that ends between the two is missed.
    let ended = SubscribeEvents {
        kinds: Some(vec!["call.finished".to_owned()]),
        session_id: query.session_id.clone(),
        since: None,
        epoch: None,
    };
    let mut ended = client.subscribe::<EventsSubscribe>(ended).await?;
    loop {
        let list = client.call::<method::AuditQuery>(query.clone()).await?;
        print_new_calls(&local(&list), &list.entries, format)?;
        let more = query.after.is_some() && list.more;
        if let Some(last) = list.entries.last() {
            // A call is new when it ends, however long ago it began.
            query.since = None;
            query.after = Some(last.id);
            query.limit = None;
        }
        if more {
            continue;
        }
        match ended.next().await {
            // Calls whose events were lost are in the audit log all the same.
            Some(Ok(_) | Err(ClientError::Lagged)) => {}
            Some(Err(error)) => return Err(error.into()),
            None => return Err(client.closed().await.into()),
        }
    }
}

fn line(call: &PastCall<'_>) -> String {
    let PastCall { entry, .. } = call;
    let outcome = audit::outcome(entry);
    let style = outcome.tone.style();
    format!(
        "{DIM}{}{DIM:#} {}{} {style}{}{style:#} in {} {DIM}{}{DIM:#} {}",
        date_and_time(&entry.at),
        place(call),
        entry_title(entry),
        outcome.text,
        audit::took(entry).text,
        one_line(entry.client.as_deref().unwrap_or("-")),
        audit::needs(entry)
    )
}

/// Two lines: how the call ended, and below it who called and what for, as much as fits.
fn narrow(call: &PastCall<'_>, width: usize) -> String {
    let PastCall { entry, .. } = call;
    let outcome = audit::outcome(entry);
    let style = outcome.tone.style();
    let at = time_of_day(&entry.at);
    let ended = format!("{} in {}", outcome.text, output::duration(entry.duration_ms));
    let taken = at.chars().count() + ended.chars().count() + 2;
    let title = shorten(&format!("{}{}", place(call), entry_title(entry)), width.saturating_sub(taken).max(4));
    let by = entry.client.as_deref().filter(|_| entry.agent.is_none()).map(|client| format!("{} ", one_line(client)));
    let about = shorten(&format!("{}{}", by.unwrap_or_default(), audit::needs(entry)), width.saturating_sub(2));
    format!("{DIM}{at}{DIM:#} {title} {style}{ended}{style:#}\n  {about}\n")
}

/// The machine, before the name of a tool there.
fn place(call: &PastCall<'_>) -> String {
    call.daemon.map(|daemon| format!("{} ", one_line(daemon))).unwrap_or_default()
}

fn render(calls: &[PastCall<'_>], decisions: bool, width: Option<u16>) -> String {
    let Some(first) = calls.first() else { return String::new() };
    if decisions {
        return calls.iter().map(with_decisions).collect();
    }
    if width.is_some_and(|width| width < NARROW) && !output::presentation().plain {
        let width = width.map_or(usize::from(NARROW), usize::from);
        return calls.iter().map(|call| narrow(call, width)).collect();
    }
    let mut columns = audit::COLUMNS.to_vec();
    if first.daemon.is_some() {
        columns.insert(1, column("DAEMON", 6, 20, 1));
    }
    let rows = calls.iter().map(|PastCall { daemon, entry }| {
        let mut row = audit::cells(entry, clock::zone());
        row.splice(1..1, daemon.map(ViewCell::plain));
        row
    });
    views::render(&columns, rows, width)
}

fn with_decisions(call: &PastCall<'_>) -> String {
    let PastCall { entry, .. } = call;
    let outcome = audit::outcome(entry);
    let style = outcome.tone.style();
    let mut text = format!(
        "{DIM}{}{DIM:#} {}{} {style}{}{style:#} {DIM}{}{DIM:#}\n",
        date_and_time(&entry.at),
        place(call),
        title_with_client(entry),
        outcome.text,
        entry.call_id
    );
    for decision in &entry.decisions {
        let (tone, what, by) = audit::decision(decision);
        let (style, verdict) = (tone.style(), one_line(&decision.verdict));
        text.push_str(&format!("  {style}{verdict:<5}{style:#} {what} {DIM}{by}{DIM:#}\n"));
    }
    text
}

/// With the agent that called a tool of toold, such as `claude-code: bash`.
fn title_with_client(entry: &AuditEntry) -> String {
    let title = entry_title(entry);
    match &entry.client {
        Some(client) if entry.agent.is_none() && client != "toolctl" => format!("{}: {title}", one_line(client)),
        _ => title,
    }
}

fn tool_name(text: &str) -> Result<ToolName, String> {
    ToolName::parse(text).map_err(|error| error.to_string())
}

fn outcome(text: &str) -> Result<Outcome, String> {
    let known = |outcome: &&Outcome| outcome.as_str() == text;
    Outcome::ALL.iter().find(known).copied().ok_or_else(|| {
        let names: Vec<&str> = Outcome::ALL.iter().map(|outcome| outcome.as_str()).collect();
        format!("expected one of {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_call_is_a_row_or_its_decisions() {
        let list: AuditList = serde_json::from_value(json!({"more": false, "lost": 0, "entries": [{
            "id": 1, "at": "2026-01-02T03:04:05.678Z", "call_id": "c", "session_id": "s", "tool": "bash",
            "source": "builtin:toold", "client": "nvim", "connection": 3, "outcome": "denied", "duration_ms": 3,
            "input_bytes": 1, "output_bytes": 2,
            "decisions": [{"category": "shell", "target": "rm x", "verdict": "deny", "rule": "default of shell"}]
        }]}))
        .unwrap();
        let cached = AuditEntry { cached: true, original_ms: Some(1500), ..list.entries[0].clone() };
        let calls = local(&list);
        let on_build = PastCall { daemon: Some("build"), entry: &cached };
        let text = [render(&calls, false, None), render(&calls, true, None), line(&calls[0])].concat();
        let text = [text, line(&on_build), render(&[on_build], false, None)].join("\n");
        insta::assert_snapshot!(anstream::adapter::strip_str(&text).to_string(), @r"
         BEGAN                 TOOL  OUTCOME  TOOK  CLIENT  SESSION  NEEDED
         2026-01-02 03:04:05Z  bash  denied   3 ms  nvim    s        shell rm x
        2026-01-02 03:04:05Z nvim: bash denied c
          deny  shell rm x by default of shell
        2026-01-02 03:04:05Z bash denied in 3 ms nvim shell rm x
        2026-01-02 03:04:05Z build bash denied in 3 ms, cached (saved 1.5 s) nvim shell rm x
         BEGAN                 DAEMON  TOOL  OUTCOME  TOOK                        CLIENT  SESSION  NEEDED
         2026-01-02 03:04:05Z  build   bash  denied   3 ms, cached (saved 1.5 s)  nvim    s        shell rm x
        ");
    }
}
