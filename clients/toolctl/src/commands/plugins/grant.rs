//! `toolctl plugins grant`: the permissions that a plugin was refused, and granting them.

use std::io::Write;

use clap::Args;
use serde::Serialize;
use toold_client::Client;
use toold_proto::method::{PermissionsGrant, PluginsReload, PluginsShow};
use toold_proto::permission::GrantInfo;
use toold_proto::plugin::{NamePlugin, Plugin, PluginDetails, PluginStatus, RefusedNeed, ReloadPlugins};

use crate::commands::permissions::{GrantReach, show};
use crate::confirm::{confirm, confirm_or_choose};
use crate::exit::{NOT_RUN, OK};
use crate::globals::Globals;
use crate::output::{self, BAD, BOLD, DIM, NAME, one_line, plain, print_json};
use crate::{clock, connection};

#[derive(Debug, Args)]
pub(crate) struct GrantPluginArgs {
    /// The name of the plugin
    name: String,
    /// Grant everything that is listed, without asking
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    reach: GrantReach,
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct GrantReport {
    refused: Vec<RefusedNeed>,
    granted: Vec<GrantInfo>,
    /// As it is afterwards.
    plugin: Plugin,
}

pub(crate) async fn grant(args: GrantPluginArgs, json: bool, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    // In the folder's project, whose plugins it sees; and so that the grants record this client.
    let session = connection::open_session(&client, args.reach.cwd.clone(), None).await?;
    let status = run(&client, args, json).await;
    session.close(&client).await;
    status
}

async fn run(client: &Client, args: GrantPluginArgs, json: bool) -> anyhow::Result<u8> {
    let details = client.call::<PluginsShow>(NamePlugin { name: args.name.clone() }).await?;
    // With --json, stdout is for the report.
    if json {
        write_refused(&details, &mut output::stderr())?;
    } else {
        write_refused(&details, &mut output::stdout())?;
    }
    let grantable: Vec<&RefusedNeed> = details.refused.iter().filter(|need| need.pattern.is_some()).collect();
    let has_choice = !grantable.is_empty();
    let chosen = choose(grantable, args.yes).await?;
    let is_declined = has_choice && chosen.is_empty();
    let mut granted = Vec::new();
    for need in &chosen {
        let mut params = args.reach.allowing(need.category, need.pattern.clone().unwrap_or_default())?;
        params.chain = need.chain.clone();
        let stored = client.call::<PermissionsGrant>(params).await?;
        if !json {
            writeln!(output::stdout(), "{}", show::grant(&stored))?;
        }
        granted.push(stored);
    }
    let failed = details.plugin.status == PluginStatus::Failed;
    let plugin = match chosen.iter().any(|need| need.at_load || failed) {
        true => reload(client, &args.name).await?.unwrap_or(details.plugin),
        false => details.plugin,
    };
    let is_failed = plugin.status == PluginStatus::Failed && !granted.is_empty();
    if json {
        print_json(&GrantReport { refused: details.refused, granted, plugin })?;
    } else if let Some(error) = plugin.error.as_ref().filter(|_| is_failed) {
        write!(output::stderr(), "{}", super::explain(&plugin.name, error))?;
    }
    Ok(if is_failed || is_declined { NOT_RUN } else { OK })
}

/// A plugin that was refused something while it loaded can do without it only after another load.
async fn reload(client: &Client, name: &str) -> anyhow::Result<Option<Plugin>> {
    let list = client.call::<PluginsReload>(ReloadPlugins { name: Some(name.to_owned()) }).await?;
    Ok(list.plugins.into_iter().find(|plugin| plugin.name == name))
}

/// The needs to grant.
async fn choose(grantable: Vec<&RefusedNeed>, yes: bool) -> anyhow::Result<Vec<&RefusedNeed>> {
    if yes || grantable.is_empty() {
        return Ok(grantable);
    }
    let question = match grantable.len() {
        1 => "Grant it?".to_owned(),
        several => format!("Grant all {several}?"),
    };
    match confirm_or_choose(&question, grantable.len() > 1).await? {
        None => {
            let mut chosen = Vec::new();
            for need in grantable {
                if confirm(&format!("Grant {} {}?", need.category, one_line(&need.target))).await? {
                    chosen.push(need);
                }
            }
            Ok(chosen)
        }
        Some(true) => Ok(grantable),
        Some(false) => Ok(Vec::new()),
    }
}

fn write_refused(details: &PluginDetails, out: &mut impl Write) -> std::io::Result<()> {
    let plugin = &details.plugin;
    let version = plugin.version.as_deref().map(|version| format!(" {}", one_line(version))).unwrap_or_default();
    writeln!(out, "{NAME}{}{NAME:#}{version}  {}", one_line(&plugin.name), plugin.status.as_str())?;
    let may_use = match details.capabilities.as_deref() {
        None => "anything that you allow (its manifest declares no capabilities)".to_owned(),
        Some([]) => "none".to_owned(),
        Some(names) => one_line(&names.join(" ")),
    };
    writeln!(out, "  {DIM}may use{DIM:#}  {may_use}")?;
    for need in &details.refused {
        let target = need.pattern.as_deref().filter(|pattern| *pattern != need.target);
        let pattern = target.map(|pattern| format!(" {DIM}as {}{DIM:#}", plain(pattern))).unwrap_or_default();
        writeln!(out, "  {DIM}refused{DIM:#}  {} {BOLD}{}{BOLD:#}{pattern}", need.category, plain(&need.target))?;
        let through = match need.chain.as_slice() {
            [_] | [] => String::new(),
            chain => format!(", through {}", chain.join(", ")),
        };
        let moment = if need.at_load { " while it loaded" } else { "" };
        let times = if need.times == 1 { "once".to_owned() } else { format!("{} times", need.times) };
        let last = clock::date_and_time(&need.last_at);
        writeln!(out, "           {DIM}{times}{moment}{through}, last {last}, by {}{DIM:#}", one_line(&need.rule))?;
        if let Some(reason) = &need.reason {
            writeln!(out, "           {}", one_line(reason))?;
        }
        if need.pattern.is_none() {
            writeln!(out, "           {BAD}no grant allows it{BAD:#}")?;
        }
    }
    if details.refused.is_empty() {
        writeln!(out, "  it was refused nothing since the daemon started")?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn refused_permissions_say_what_for_when_and_why() {
        let need = |more: serde_json::Value| {
            let mut need = json!({"chain": ["weather"], "at_load": false, "times": 1,
                "first_at": "2026-11-20T19:50:03.000Z", "last_at": "2026-11-20T19:50:03.000Z"});
            need.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            need
        };
        let details = serde_json::from_value(json!({
            "plugin": {"name": "weather", "path": "/p/weather", "status": "failed", "version": "1.2.0",
                "tools": []},
            "tools": [], "hooks": [], "commands": [], "subagents": [], "resources": [], "prompts": [], "files": [],
            "capabilities": ["tools", "network", "exec", "fs_read"],
            "refused": [
                need(json!({"category": "network", "target": "wttr.in:443", "pattern": "wttr.in:443", "times": 3,
                    "rule": "default of network", "reason": "asks for the weather"})),
                need(json!({"category": "shell", "target": "cat $x", "pattern": "cat *", "chain": ["outer", "weather"],
                    "rule": "nobody to ask (default of shell)"})),
                need(json!({"category": "file.read", "target": "/p/.env", "rule": "secrets (.env)", "at_load": true})),
            ]
        }))
        .unwrap();
        let mut text = Vec::new();
        write_refused(&details, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        insta::assert_snapshot!(anstream::adapter::strip_str(&text).to_string(), @r"
        weather 1.2.0  failed
          may use  tools network exec fs_read
          refused  network wttr.in:443
                   3 times, last 2026-11-20 19:50:03Z, by default of network
                   asks for the weather
          refused  shell cat $x as cat *
                   once, through outer, weather, last 2026-11-20 19:50:03Z, by nobody to ask (default of shell)
          refused  file.read /p/.env
                   once while it loaded, last 2026-11-20 19:50:03Z, by secrets (.env)
                   no grant allows it
        ");
    }
}
