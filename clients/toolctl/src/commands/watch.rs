//! `toolctl watch`: every running call, each with a line of progress.

use std::collections::HashMap;
use std::io::{self, Write};
use std::time::Duration;

use clap::Args;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget};
use serde_json::Value;
use toold_proto::call::Progress;
use toold_proto::event::{Event, EventBody, SubscribeEvents};
use toold_proto::method::EventsSubscribe;
use toold_proto::tool::{CallId, SessionId};

use crate::commands::call::session_id;
use crate::event_line::{event_line, started_by};
use crate::globals::Globals;
use crate::live;
use crate::output::{self, one_line, shorten};
use crate::tool_title::tool_title;
use crate::{connection, keys};

/// Watch the calls of all clients as they run
///
/// On a terminal, each running call has a line with its progress, below the calls that have ended. Ctrl-C stops
/// watching; the calls continue.
#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Only the calls of this session
    #[arg(long, value_name = "ID", value_parser = session_id)]
    session: Option<SessionId>,
    /// Print one JSON document per line, as the daemon sends it
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: WatchArgs, globals: &Globals) -> anyhow::Result<u8> {
    let mut client = connection::open(globals).await?;
    let kinds = ["call.started", "call.progress", "call.finished"].map(str::to_owned).to_vec();
    let mut params = SubscribeEvents { kinds: Some(kinds), session_id: args.session, ..SubscribeEvents::default() };
    writeln!(output::stderr(), "watching calls; press Ctrl-C to stop")?;
    loop {
        let mut events = client.subscribe_as::<EventsSubscribe, Value>(params.clone()).await?;
        let mut bars = CallBars::new();
        while let Some(event) = events.next().await {
            let event = event?;
            match args.json {
                true => output::print_json_line(&event)?,
                false => bars.show(&event)?,
            }
        }
        client = connection::next(&client).await?;
        // From the first event there.
        params.since = Some(0);
    }
}

/// The calls that run, as bars; lines where there is no terminal.
struct CallBars {
    bars: Option<MultiProgress>,
    calls: HashMap<(SessionId, CallId), ProgressBar>,
    /// The last progress of each call, where each is a line.
    last: HashMap<(String, String), String>,
    /// What each running call does and for whom, for the line that says how it ended.
    started: HashMap<(SessionId, CallId), String>,
}

impl CallBars {
    fn new() -> Self {
        let on_terminal = keys::has_terminal() && output::stdout_is_terminal() && output::overwrites_stderr();
        let bars = on_terminal.then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr()));
        Self { bars, calls: HashMap::new(), last: HashMap::new(), started: HashMap::new() }
    }

    fn show(&mut self, event: &Value) -> io::Result<()> {
        let Ok(Event { body: what, .. }) = serde_json::from_value::<Event>(event.clone()) else {
            return self.line(event, "");
        };
        match what {
            EventBody::CallStarted { call_id, session_id, tool, agent, client, cwd, arguments, .. } => {
                let by = started_by(client.as_deref(), cwd.as_deref(), arguments.as_deref());
                self.started.insert((session_id.clone(), call_id.clone()), by.clone());
                let Some(bars) = &self.bars else { return self.line(event, "") };
                let bar = bars.add(ProgressBar::new_spinner());
                bar.set_style(live::spinner());
                bar.set_prefix(tool_title(agent.as_deref(), tool.as_str()));
                bar.set_message(by);
                bar.enable_steady_tick(Duration::from_millis(100));
                self.calls.insert((session_id, call_id), bar);
                Ok(())
            }
            EventBody::CallProgress { call_id, session_id, progress } => {
                if self.bars.is_none() {
                    return if self.repeats(event) { Ok(()) } else { self.line(event, "") };
                }
                if let Some(bar) = self.calls.get(&(session_id, call_id)) {
                    show_progress(bar, &progress);
                }
                Ok(())
            }
            EventBody::CallFinished { call_id, session_id, .. } => {
                let call = (session_id, call_id);
                if let Some(bar) = self.calls.remove(&call) {
                    bar.finish_and_clear();
                }
                let by = self.started.remove(&call).unwrap_or_default();
                self.repeats(event);
                self.line(event, &by)
            }
            _ => self.line(event, ""),
        }
    }

    /// Whether the call has just reported the same progress: while nothing changes, that is one line.
    fn repeats(&mut self, event: &Value) -> bool {
        let id = |event: &Value| (event["session_id"].to_string(), event["call_id"].to_string());
        match event["kind"].as_str() {
            Some("call.progress") => {
                let progress = event["progress"].to_string();
                let last = self.last.insert(id(event), progress.clone());
                last.is_some_and(|last| last == progress)
            }
            Some("call.finished") => {
                self.last.remove(&id(event));
                false
            }
            _ => false,
        }
    }

    /// The event on a line, and behind it what the call did, for whom and where.
    fn line(&self, event: &Value, by: &str) -> io::Result<()> {
        let write = || {
            let mut out = output::stdout();
            let gap = if by.is_empty() { "" } else { " " };
            writeln!(out, "{}{gap}{by}", event_line(event))?;
            out.flush()
        };
        self.bars.as_ref().map_or_else(write, |bars| bars.suspend(write))
    }
}

fn show_progress(bar: &ProgressBar, progress: &Progress) {
    let last_line =
        |text: &str| text.lines().rfind(|line| !line.trim().is_empty()).map(|line| shorten(&one_line(line), 200));
    match progress {
        Progress::Output { text, .. } | Progress::Message { text } => {
            if let Some(line) = last_line(text) {
                bar.set_message(line);
            }
        }
        Progress::Update { progress, total, message, .. } => {
            live::set_amount(bar, *progress, *total);
            if let Some(line) = message.as_deref().and_then(last_line) {
                bar.set_message(line);
            }
        }
    }
}
