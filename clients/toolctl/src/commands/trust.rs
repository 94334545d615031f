//! `toolctl plugins trust|enable|disable`: the user reviews what a project brings, and decides.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use toold_client::{Client, ClientError};
use toold_proto::event::{Event, EventBody, SubscribeEvents};
use toold_proto::method::{EventsSubscribe, PluginsDisable, PluginsEnable, PluginsTrust};
use toold_proto::plugin::{NamePlugin, PluginList, TrustItem, TrustPlugins, TrustReport, TrustedKind};

use crate::clock;
use crate::commands::author;
use crate::confirm::confirm;
use crate::connection;
use crate::exit::{NOT_RUN, OK};
use crate::globals::Globals;
use crate::output::{self, BAD, BOLD, DIM, GOOD, NAME, WARN, one_line, print_json};

#[derive(Debug, clap::Args)]
pub(crate) struct TrustArgs {
    /// A project's folder, its .toold/config.toml, or one of its plugins; defaults to the current folder
    path: Option<PathBuf>,
    /// Keep trusting every change there until you press Ctrl-C: for when you write the plugin yourself
    #[arg(long)]
    watch: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

pub(crate) async fn trust(args: TrustArgs, json: bool, globals: &Globals) -> anyhow::Result<u8> {
    let path =
        std::path::absolute(args.path.unwrap_or_else(|| ".".into())).context("can't determine the current folder")?;
    author::must_exist(&path)?;
    let client = connection::open(globals).await?;
    let asked = TrustPlugins { path: path.to_string_lossy().into_owned(), ..TrustPlugins::default() };
    let shown = client.call::<PluginsTrust>(TrustPlugins { preview: true, ..asked.clone() }).await?;
    let undecided = shown.items.iter().any(|item| !item.trusted);
    let report = match undecided {
        false => shown,
        true => {
            if !json {
                let mut err = output::stderr();
                show(&shown, &mut err)?;
            }
            if !args.yes && !confirm("Trust this as it is now?").await? {
                return Ok(NOT_RUN);
            }
            // Trusts only what was shown: files may have changed since.
            let expect: BTreeMap<String, String> =
                shown.items.into_iter().map(|item| (item.path, item.digest)).collect();
            client.call::<PluginsTrust>(TrustPlugins { expect: Some(expect), ..asked.clone() }).await?
        }
    };
    if json {
        print_json(&report)?;
    } else {
        print_trusted(&report)?;
    }
    if args.watch {
        return watch(&client, asked, &report.project).await;
    }
    Ok(OK)
}

/// Enables or disables a plugin permanently.
pub(crate) async fn switch(name: String, on: bool, globals: &Globals) -> anyhow::Result<PluginList> {
    let client = connection::open(globals).await?;
    let named = NamePlugin { name };
    Ok(match on {
        true => client.call::<PluginsEnable>(named).await?,
        false => client.call::<PluginsDisable>(named).await?,
    })
}

/// Shows what the user decides about.
fn show(report: &TrustReport, out: &mut impl Write) -> anyhow::Result<()> {
    writeln!(out, "{BOLD}{}{BOLD:#}", one_line(&report.project))?;
    for item in report.items.iter().filter(|item| !item.trusted) {
        show_item(item, out)?;
    }
    Ok(())
}

fn show_item(item: &TrustItem, out: &mut impl Write) -> anyhow::Result<()> {
    let kind = match item.kind {
        TrustedKind::Config => "configuration",
        TrustedKind::Plugin => "plugin",
    };
    let since = match &item.last {
        Some(last) => format!("changed since {}", clock::date_and_time(&last.at)),
        None => "new".to_owned(),
    };
    writeln!(out, "\n{NAME}{kind}{NAME:#} {} {WARN}{since}{WARN:#}", one_line(&item.path))?;
    if item.kind == TrustedKind::Plugin {
        for file in &item.files {
            writeln!(out, "  {DIM}{:>9} bytes{DIM:#} {}", file.bytes, one_line(&file.path))?;
        }
    }
    for rule in &item.allows {
        let only: Vec<&str> = rule.agent.iter().chain(rule.tools.iter().flatten()).map(String::as_str).collect();
        let only = if only.is_empty() { String::new() } else { format!(" for {}", only.join(", ")) };
        let (category, pattern) = (rule.category, one_line(&rule.shown_pattern()));
        writeln!(out, "  {BAD}allows{BAD:#} {category} {BOLD}{pattern}{BOLD:#}{}", one_line(&only))?;
    }
    for setting in &item.settings {
        let value = one_line(&setting.value.to_string());
        writeln!(
            out,
            "  {WARN}sets{WARN:#} {} = {value} {DIM}{}{DIM:#}",
            one_line(&setting.key),
            one_line(&setting.origin)
        )?;
    }
    Ok(())
}

fn print_trusted(report: &TrustReport) -> anyhow::Result<()> {
    let mut out = output::stdout();
    if report.items.is_empty() {
        writeln!(out, "{}: nothing that needs trust", one_line(&report.project))?;
    }
    for item in &report.items {
        writeln!(
            out,
            "{GOOD}trusted{GOOD:#} {} {DIM}{}{DIM:#}",
            one_line(&item.path),
            &item.digest[..12.min(item.digest.len())]
        )?;
    }
    out.flush()?;
    Ok(())
}

/// Trusts each change as it comes: the user at this terminal makes them.
async fn watch(client: &Client, asked: TrustPlugins, project: &str) -> anyhow::Result<u8> {
    // A session there keeps the project open, so that the daemon sees its changes.
    connection::open_session(client, Some(project.into()), None).await?;
    let kinds = ["plugin.untrusted", "config.changed"].map(str::to_owned).to_vec();
    let params = SubscribeEvents { kinds: Some(kinds), ..SubscribeEvents::default() };
    let mut events = client.subscribe::<EventsSubscribe>(params).await?;
    writeln!(output::stderr(), "watching {}: every change there is trusted until you press Ctrl-C", one_line(project))?;
    // Changes from before the subscription.
    trust_again(client, &asked).await?;
    while let Some(event) = events.next().await {
        if concerns(&event?, project) {
            trust_again(client, &asked).await?;
        }
    }
    Err(client.closed().await.into())
}

async fn trust_again(client: &Client, asked: &TrustPlugins) -> anyhow::Result<()> {
    let preview = client.call::<PluginsTrust>(TrustPlugins { preview: true, ..asked.clone() }).await;
    let all_trusted = preview.as_ref().is_ok_and(|report| report.items.iter().all(|item| item.trusted));
    if all_trusted {
        return Ok(());
    }
    match client.call::<PluginsTrust>(asked.clone()).await {
        Ok(report) => print_trusted(&report),
        // A half-written file; the next save is trusted.
        Err(ClientError::Rpc(error)) => {
            Ok(writeln!(output::stderr(), "{WARN}{}{WARN:#}", one_line(&error.to_string()))?)
        }
        Err(error) => Err(error.into()),
    }
}

fn concerns(event: &Event, project: &str) -> bool {
    match &event.body {
        EventBody::PluginUntrusted { path, .. } => std::path::Path::new(path).starts_with(project),
        EventBody::ConfigChanged { project: of, .. } => of.as_deref() == Some(project),
        _ => false,
    }
}
