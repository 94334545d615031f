//! `toolctl plugins show|logs`: the details of one plugin, and the logs of plugins.

use std::io::Write;
use std::time::Duration;

use serde_json::{Value, json};
use toold_proto::event::{EventBody, SubscribeEvents};
use toold_proto::method::{EventsSubscribe, PluginsList, PluginsLogs, PluginsShow};
use toold_proto::plugin::{ListPlugins, NamePlugin, PluginDetails, PluginTimer};
use toold_proto::plugin_log::LogsOfPlugin;

use crate::clock;
use crate::commands::agents::prompt_hooks;
use crate::commands::plugins::packages::changed::{InstalledPlugin, installed};
use crate::connection;
use crate::event_line::{event_line, traceback};
use crate::exit::{OK, not_found};
use crate::globals::Globals;
use crate::output::{self, DIM, NAME, one_line, plain, print_json};

pub(crate) async fn show(name: String, json: bool, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let details = client.call::<PluginsShow>(NamePlugin { name }).await?;
    let installed = installed(&client, std::slice::from_ref(&details.plugin)).await?.remove(&details.plugin.path);
    let users = PartUsers::find();
    if json {
        let used_by = users.of_all(&details);
        let mut details = serde_json::to_value(&details)?;
        if let Some(installed) = installed {
            details["plugin"]["installed"] = serde_json::to_value(installed)?;
        }
        details["used_by"] = used_by;
        print_json(&details)?;
        return Ok(OK);
    }
    let mut out = output::stdout();
    write_details(&details, installed.as_ref(), &users, &mut out)?;
    out.flush()?;
    Ok(OK)
}

fn write_details(
    details: &PluginDetails,
    installed: Option<&InstalledPlugin>,
    users: &PartUsers,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let plugin = &details.plugin;
    let version = plugin.version.as_deref().map(|version| format!(" {}", one_line(version))).unwrap_or_default();
    writeln!(out, "{NAME}{}{NAME:#}{version}  {}", one_line(&plugin.name), plugin.status.as_str())?;
    if let Some(description) = &plugin.description {
        writeln!(out, "{}", one_line(description))?;
    }
    let mut line = |what: &str, text: String| writeln!(out, "  {DIM}{what:<10}{DIM:#} {text}");
    line("path", one_line(&plugin.path))?;
    if let Some(installed) = installed {
        line("source", one_line(&installed.source))?;
        let changed = if installed.changed { ", but its files were changed here" } else { "" };
        line("revision", format!("{}{changed}", installed.revision))?;
    }
    if let Some(at) = &plugin.loaded_at {
        line("loaded", clock::date_and_time(at))?;
    }
    if let Some(capabilities) = &details.capabilities {
        let names = if capabilities.is_empty() { "none".to_owned() } else { one_line(&capabilities.join(" ")) };
        line("may use", names)?;
    }
    if let Some(trusted) = &details.trusted {
        line("trusted", clock::date_and_time(&trusted.at))?;
    }
    for tool in &details.tools {
        line("tool", format!("{}  {DIM}{}{DIM:#}", one_line(tool.name.as_str()), one_line(&tool.description)))?;
    }
    for hook in &details.hooks {
        let used = users.of_hook(&hook.event);
        let event = one_line(&hook.event);
        line("hook", format!("{}  {DIM}{event}  used by: {used}{DIM:#}", one_line(&hook.name)))?;
    }
    for command in &details.commands {
        let (name, about) = (one_line(&command.name), one_line(&command.description));
        let used = users.of_command(&command.name);
        line("command", format!("/{name}  {DIM}{about}  used by: {used}{DIM:#}"))?;
    }
    for name in &details.subagents {
        let used = users.of_subagent();
        line("sub-agent", format!("{}  {DIM}used by: {used}{DIM:#}", one_line(name)))?;
    }
    let is_part = |name: &&String| {
        details.commands.iter().any(|command| command.name == **name) || details.subagents.contains(name)
    };
    let prompts: Vec<String> = details.prompts.iter().filter(|name| !is_part(name)).cloned().collect();
    for (what, names) in [("resource", &details.resources), ("prompt", &prompts)] {
        for name in names {
            line(what, one_line(name))?;
        }
    }
    for timer in &details.timers {
        line("timer", timer_line(timer))?;
    }
    for need in &details.refused {
        let when = if need.at_load { "while it loaded" } else { "in a call" };
        let target = one_line(&need.target);
        line("refused", format!("{} {target}  {DIM}{when}, by {}{DIM:#}", need.category, one_line(&need.rule)))?;
    }
    for file in &details.files {
        line("file", format!("{}  {DIM}{} bytes{DIM:#}", one_line(&file.path), file.bytes))?;
    }
    for warning in &plugin.warnings {
        line("warning", plain(warning).to_string())?;
    }
    match &plugin.error {
        Some(error) => write!(out, "{}", super::explain(&plugin.name, error)),
        None => Ok(()),
    }
}

/// The clients of this person that use the parts of a plugin.
struct PartUsers {
    /// Agents that run hooks at their prompts.
    at_prompts: Vec<&'static str>,
    /// Agents that have toold as an MCP server.
    of_mcp: Vec<&'static str>,
}

impl PartUsers {
    fn find() -> Self {
        Self { at_prompts: prompt_hooks::installed(), of_mcp: prompt_hooks::with_entry() }
    }

    fn of_hook(&self, event: &str) -> String {
        match event.ends_with("_tool") {
            true => "every call of a tool".to_owned(),
            false if self.at_prompts.is_empty() => {
                "nobody yet: `toolctl agents install AGENT` lets an agent run it at its prompts".to_owned()
            }
            false => self.at_prompts.join(", "),
        }
    }

    fn of_command(&self, name: &str) -> String {
        let own = format!("`toolctl do {}`", one_line(name));
        std::iter::once(own.as_str()).chain(self.of_mcp.iter().copied()).collect::<Vec<_>>().join(", ")
    }

    fn of_subagent(&self) -> String {
        std::iter::once("the tool `agent`").chain(self.of_mcp.iter().copied()).collect::<Vec<_>>().join(", ")
    }

    fn of_all(&self, details: &PluginDetails) -> Value {
        let hooks = details.hooks.iter().map(|hook| (hook.name.clone(), self.of_hook(&hook.event).into()));
        let commands = details.commands.iter().map(|one| (one.name.clone(), self.of_command(&one.name).into()));
        let subagents = details.subagents.iter().map(|name| (name.clone(), self.of_subagent().into()));
        let map = |parts: Vec<(String, Value)>| Value::Object(parts.into_iter().collect());
        json!({"hooks": map(hooks.collect()), "commands": map(commands.collect()), "subagents": map(subagents.collect())})
    }
}

fn timer_line(timer: &PluginTimer) -> String {
    let interval = Duration::from_millis(timer.interval_ms);
    let mut text = format!("{}  {DIM}every {interval:?}", one_line(&timer.name));
    match &timer.last_run {
        Some(at) => {
            text += &format!(
                ", {} {}, the last at {}",
                timer.runs,
                if timer.runs == 1 { "run" } else { "runs" },
                one_line(at)
            )
        }
        None => text += ", has not run yet",
    }
    if timer.stopped {
        text += ", stopped";
    }
    if let Some(error) = &timer.last_error {
        text += &format!(", failed: {}", one_line(error));
    }
    format!("{text}{DIM:#}")
}

/// Logs, notices, messages and errors of plugins, and whether they loaded: those that the daemon still has, and with
/// `follow` those that come.
pub(crate) async fn logs(name: Option<String>, follow: bool, json: bool, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let logs = client.call::<PluginsLogs>(LogsOfPlugin { name: name.clone() }).await?;
    for event in &logs.events {
        write_event(&serde_json::to_value(event)?, json)?;
    }
    if let Some(name) = name.as_ref().filter(|_| logs.events.is_empty()) {
        let known = client.call::<PluginsList>(ListPlugins { all: true }).await?.plugins;
        if !known.iter().any(|plugin| plugin.name == *name) {
            return Err(not_found(format!("there is no plugin {name}")));
        }
    }
    if !follow {
        return Ok(OK);
    }
    let kinds = EventBody::OF_PLUGINS.iter().map(|kind| (*kind).to_owned()).collect();
    let params =
        SubscribeEvents { kinds: Some(kinds), session_id: None, since: Some(logs.seq), epoch: Some(logs.epoch) };
    let mut events = client.subscribe_as::<EventsSubscribe, Value>(params).await?;
    while let Some(event) = events.next().await {
        let event = event?;
        // Lost events are reported, whichever plugin they were about.
        let is_meant = name.as_ref().is_none_or(|name| event["plugin"] == name.as_str() || event["kind"] == "lagged");
        if is_meant {
            write_event(&event, json)?;
        }
    }
    Err(client.closed().await.into())
}

fn write_event(event: &Value, json: bool) -> anyhow::Result<()> {
    let mut out = output::stdout();
    match json {
        true => output::print_json_line(event)?,
        false => write!(out, "{}\n{}", event_line(event), traceback(event))?,
    }
    out.flush()?;
    Ok(())
}
