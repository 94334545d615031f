//! `toolctl plugins update`: newer revisions of installed plugins.

use std::io::Write;
use std::path::Path;

use anyhow::{bail, ensure};
use toold_client::Client;

use super::fresh_clone::{FreshClone, digest, newest};
use super::lock::{LockedPlugin, PluginLock};
use super::outcome::{PackageOutcome, PackageResult, report, short};
use super::source::{PluginSource, WantedVersion};
use super::{plugin_folder, taken_up, until_interrupted};
use crate::commands::author;
use crate::confirm::confirm;
use crate::connection;
use crate::exit::{self, USAGE, not_found};
use crate::globals::Globals;
use crate::output::{self, BOLD, WARN, plain};

#[derive(Debug, clap::Args)]
pub(crate) struct UpdateArgs {
    /// Only this plugin
    name: Option<String>,
    /// Do not ask for confirmation; a branch whose history was rewritten is not taken
    #[arg(long, short)]
    yes: bool,
    /// Also replace plugins whose files were changed since they were installed
    #[arg(long)]
    discard_changes: bool,
}

pub(crate) async fn update(args: &UpdateArgs, json: bool, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let folder = plugin_folder(&client).await?;
    until_interrupted(update_in(&client, &folder, args, json)).await
}

/// Goes on after a failure.
async fn update_in(client: &Client, folder: &Path, args: &UpdateArgs, json: bool) -> anyhow::Result<u8> {
    let mut plugins = PluginLock::read(folder)?.plugins;
    if let Some(name) = &args.name {
        let locked = plugins.remove_entry(name);
        let locked = locked.ok_or_else(|| {
            not_found(format!("{name} was not installed with `toolctl plugins install`, so its source is not known"))
        })?;
        plugins = [locked].into();
    }
    let mut outcomes = Vec::new();
    for (name, locked) in &plugins {
        outcomes.push(match update_one(name, locked, folder, args).await {
            Ok(outcome) => {
                if outcome.result == PackageResult::Updated {
                    taken_up(client, &folder.join(name)).await;
                }
                outcome
            }
            Err(error) if exit::status(&error) == USAGE => return Err(error),
            Err(error) => {
                PackageOutcome::new(name, PackageResult::Failed).at(&locked.revision).with_note(&format!("{error:#}"))
            }
        });
    }
    if plugins.is_empty() && !json {
        writeln!(output::stderr(), "no plugin was installed with `toolctl plugins install`")?;
    }
    report(&outcomes, json)
}

async fn update_one(
    name: &str,
    locked: &LockedPlugin,
    folder: &Path,
    args: &UpdateArgs,
) -> anyhow::Result<PackageOutcome> {
    let as_it_is = |result| PackageOutcome::new(name, result).at(&locked.revision);
    let source = PluginSource::parse(&locked.source)?;
    let target = folder.join(name);
    ensure!(target.exists(), "it is not there: install it with `toolctl plugins install`");
    if let WantedVersion::Pinned(reference) = &source.version {
        return Ok(as_it_is(PackageResult::Pinned).with_note(&format!("installed at {reference}")));
    }
    let revision = newest(&source).await?;
    let is_changed = digest(&target).await? != locked.digest;
    if revision == locked.revision && !(is_changed && args.discard_changes) {
        let outcome = as_it_is(PackageResult::UpToDate);
        return Ok(if is_changed { outcome.with_note("its files were changed here") } else { outcome });
    }
    if is_changed && !args.discard_changes {
        bail!("its files were changed here, so it was not replaced: use --discard-changes to lose the changes");
    }
    let clone = FreshClone::make(folder, &source, Some(&revision)).await?;
    let question = match clone.follows(&locked.revision).await? {
        true => {
            let news = clone.news(&locked.revision).await?;
            writeln!(output::stderr(), "{BOLD}{name}{BOLD:#}\n{}", plain(&news))?;
            format!("Update {name}?")
        }
        false => {
            let now = clone.commit().await?;
            writeln!(
                output::stderr(),
                "{BOLD}{name}{BOLD:#}\n{WARN}its history was rewritten:{WARN:#} {} is no longer part of it\n{now}",
                short(&locked.revision)
            )?;
            if args.yes {
                bail!("its history was rewritten: update it without --yes to review that");
            }
            format!("Take the rewritten {name}?")
        }
    };
    let errors = if author::preview(&clone.path).await? { "" } else { "It has errors. " };
    if !args.yes && !confirm(&format!("{errors}{question}")).await? {
        return Ok(as_it_is(PackageResult::Declined));
    }
    let new = clone.locked.clone();
    clone.replace(&target)?;
    PluginLock::change(folder, |plugins| drop(plugins.insert(name.to_owned(), new)))?;
    let previous = Some(locked.revision.clone());
    Ok(PackageOutcome { previous, ..PackageOutcome::new(name, PackageResult::Updated).at(&revision) })
}
