//! `toolctl plugins install`: one plugin, or all that `plugins.lock` names.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use toold_client::Client;

use super::fresh_clone::{FreshClone, digest};
use super::lock::{LockedPlugin, PluginLock, path_in};
use super::outcome::{PackageOutcome, PackageResult, report};
use super::source::PluginSource;
use super::{plugin_folder, taken_up, until_interrupted};
use crate::commands::author;
use crate::confirm::confirm;
use crate::connection;
use crate::exit::{self, OK, USAGE, usage};
use crate::globals::Globals;
use crate::output::{self, BOLD, DIM, one_line};

/// Without a source, installs what `plugins.lock` names.
pub(crate) async fn install(source: Option<&str>, yes: bool, json: bool, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let folder = plugin_folder(&client).await?;
    match source {
        Some(source) => {
            let source = PluginSource::parse(source)?;
            until_interrupted(install_new(&client, &source, &folder, yes, json)).await
        }
        None => until_interrupted(install_locked(&client, &folder, yes, json)).await,
    }
}

async fn install_new(
    client: &Client,
    source: &PluginSource,
    folder: &Path,
    yes: bool,
    json: bool,
) -> anyhow::Result<u8> {
    let target = folder.join(&source.folder);
    ensure!(!target.exists(), "{} already exists: update it, or remove it first", target.display());
    std::fs::create_dir_all(folder).with_context(|| format!("can't create {}", folder.display()))?;
    let clone = FreshClone::make(folder, source, None).await?;
    let outcome = review_and_install(clone, source, folder, yes).await?;
    if outcome.result == PackageResult::Installed {
        taken_up(client, &target).await;
    }
    if outcome.result == PackageResult::Installed && !json {
        writeln!(output::stdout(), "{}", target.display())?;
        return Ok(OK);
    }
    report(&[outcome], json)
}

/// Goes on after a failure.
async fn install_locked(client: &Client, folder: &Path, yes: bool, json: bool) -> anyhow::Result<u8> {
    let lock = PluginLock::read(folder)?;
    if lock.plugins.is_empty() {
        return Err(usage(format!("expected the source of a plugin, since {} names none", path_in(folder).display())));
    }
    let mut outcomes = Vec::new();
    for (name, locked) in &lock.plugins {
        outcomes.push(match install_as_locked(name, locked, folder, yes).await {
            Ok(outcome) => {
                if outcome.result == PackageResult::Installed {
                    taken_up(client, &folder.join(name)).await;
                }
                outcome
            }
            Err(error) if exit::status(&error) == USAGE => return Err(error),
            Err(error) => PackageOutcome::new(name, PackageResult::Failed).with_note(&format!("{error:#}")),
        });
    }
    report(&outcomes, json)
}

async fn install_as_locked(
    name: &str,
    locked: &LockedPlugin,
    folder: &Path,
    yes: bool,
) -> anyhow::Result<PackageOutcome> {
    let target = folder.join(name);
    if target.exists() {
        if digest(&target).await? != locked.digest {
            bail!("its files are not those that plugins.lock names: remove {} to install them", target.display());
        }
        return Ok(PackageOutcome::new(name, PackageResult::UpToDate).at(&locked.revision));
    }
    let source = PluginSource::parse(&locked.source)?;
    let clone = FreshClone::make(folder, &source, Some(&locked.revision)).await?;
    ensure!(
        clone.locked.digest == locked.digest,
        "the files of {} at {} have another digest than plugins.lock names ({}): they are not what was installed",
        source.url,
        locked.revision,
        clone.locked.digest
    );
    review_and_install(clone, &source, folder, yes).await
}

/// Shows the clone, asks, and puts it in its place.
async fn review_and_install(
    clone: FreshClone,
    source: &PluginSource,
    folder: &Path,
    yes: bool,
) -> anyhow::Result<PackageOutcome> {
    let commit = clone.commit().await?;
    writeln!(output::stderr(), "{BOLD}{}{BOLD:#} {DIM}{commit}{DIM:#}", one_line(&source.url))?;
    let question = match author::preview(&clone.path).await? {
        true => "It runs under your permission rules. Install it?",
        false => "It has errors. Install it nevertheless?",
    };
    let name = &source.folder;
    if !yes && !confirm(question).await? {
        return Ok(PackageOutcome::new(name, PackageResult::Declined));
    }
    let locked = clone.locked.clone();
    let outcome = PackageOutcome::new(name, PackageResult::Installed).at(&locked.revision);
    clone.install(&folder.join(name))?;
    PluginLock::change(folder, |plugins| drop(plugins.insert(name.clone(), locked)))?;
    Ok(outcome)
}
