//! Makes the changes of a plan: all of them, or none.

use std::path::PathBuf;

use anyhow::{Context, bail};
use toold_client::Client;
use toold_proto::daemon::NoParams;
use toold_proto::method::{
    DaemonReload, PermissionsGrant, PermissionsList, SecretsRemove, SecretsSet, WorkspacesAllow,
};
use toold_proto::permission::{GrantPermission, Scope};
use toold_proto::secret::{NameSecret, SecretValue, SetSecret};
use toold_proto::tool::Category;
use toold_proto::workspace::NameWorkspace;

use crate::commands::agents::hooks_file;
use crate::commands::hook::HookAgent;
use crate::commands::mcp::install;
use crate::commands::setup::plan::{SetupChange, SetupPlan};
use crate::commands::setup::record::{SetupLock, SetupRecord};
use crate::config_file::{self, read, replace};
use crate::made_folders;
use crate::new_grant::allowing;
use crate::person::PersonWrites;

/// What the person chose beside the plan.
#[derive(Default)]
pub(super) struct Choices {
    pub(super) folders: Vec<PathBuf>,
    /// Servers whose tools need no question.
    pub(super) allowed: Vec<String>,
}

/// The record is written before the files: a process that is killed in between leaves what `--undo` takes back.
pub(super) async fn run(
    plan: &SetupPlan,
    record: Option<SetupRecord>,
    choices: &Choices,
    program: &str,
    client: &Client,
    right: &PersonWrites,
) -> anyhow::Result<()> {
    let _lock = SetupLock::take(record.as_ref())?;
    let earlier = record.clone();
    let mut record = record.unwrap_or_else(|| SetupRecord::new(program));
    program.clone_into(&mut record.program);
    let secrets = plan.secrets();
    let mut stored: Vec<&str> = Vec::new();
    for (name, value) in &secrets {
        let set = SetSecret { name: name.clone(), value: SecretValue(value.clone()), from_file: true };
        if let Err(error) = client.call::<SecretsSet>(set).await {
            forget(client, &stored).await;
            return Err(anyhow::Error::new(error).context(format!("can't store the secret {name}; nothing is changed")));
        }
        if !record.secrets.contains(name) {
            record.secrets.push(name.clone());
            stored.push(name);
        }
    }
    for folder in &choices.folders {
        let folder = folder.display().to_string();
        if !record.workspaces.contains(&folder) {
            record.workspaces.push(folder);
        }
    }
    record.files.iter_mut().for_each(|file| file.hide(&secrets));
    for change in &plan.changes {
        add(&mut record, change);
    }
    let written = match record.write() {
        Ok(()) => write_all(plan, right).await,
        Err(error) => Err(error),
    };
    if let Err(error) = written {
        forget(client, &stored).await;
        match earlier {
            Some(earlier) => earlier.write()?,
            None => SetupRecord::remove()?,
        }
        return Err(error.context("nothing is changed"));
    }
    let known: Vec<String> = match choices.allowed.is_empty() {
        true => Vec::new(),
        false => client.call::<PermissionsList>(NoParams {}).await?.grants.into_iter().map(|grant| grant.id).collect(),
    };
    for name in &choices.allowed {
        let grant = client.call::<PermissionsGrant>(for_server(name)).await?;
        // One that is only renewed stays when setup is taken back, unless it is of setup.
        if !known.contains(&grant.id) {
            record.grants.push(grant.id);
        }
    }
    record.write()?;
    for folder in &record.workspaces {
        client.call::<WorkspacesAllow>(NameWorkspace { path: folder.clone() }).await?;
    }
    let reloaded = client.call::<DaemonReload>(NoParams {}).await?;
    if !reloaded.applied {
        bail!("the daemon keeps its previous configuration: {}", reloaded.problems.join("; "));
    }
    Ok(())
}

/// Its tools, for all agents, until setup is taken back.
fn for_server(name: &str) -> GrantPermission {
    allowing(Category::Mcp, format!("{name}/*"), Scope::Always, None)
}

async fn forget(client: &Client, names: &[&str]) {
    for name in names {
        // The error that led here is the one to report.
        let _ = client.call::<SecretsRemove>(NameSecret { name: (*name).to_owned() }).await;
    }
}

fn add(record: &mut SetupRecord, change: &SetupChange) {
    let before = change.before.as_deref();
    let file = record.file(&change.path, before);
    file.extend(before.unwrap_or_default(), &change.after, change.steps.iter().cloned());
    for entry in &change.entries {
        file.entries.retain(|known| known.path != entry.path);
        file.entries.push(entry.clone());
    }
    // A setup that was killed may have named them.
    let new = change.added.iter().filter(|path| !file.added.contains(path)).cloned().collect::<Vec<_>>();
    file.added.extend(new);
    let new = change.blocks.iter().filter(|block| !file.blocks.contains(block)).cloned().collect::<Vec<_>>();
    file.blocks.extend(new);
    if let Some(agent) = change.hooks.as_deref().and_then(HookAgent::named) {
        file.hooks.clone_from(&change.hooks);
        file.confines = hooks_file::has_own_prefix(agent, &change.after);
    }
}

/// Puts all files back when one cannot be written.
async fn write_all(plan: &SetupPlan, right: &PersonWrites) -> anyhow::Result<()> {
    let mut done: Vec<&SetupChange> = Vec::new();
    for change in &plan.changes {
        let written = match (change.path == plan.config, made_folders::create_for(&change.path)) {
            (_, Err(error)) => Err(error),
            (true, Ok(())) => config_file::write_checked(&change.path, &change.after, right).await,
            (false, Ok(())) => write(change, right),
        };
        if let Err(error) = written {
            for change in done.iter().rev() {
                put_back(change, right)?;
            }
            made_folders::remove_above(&change.path)?;
            return Err(error);
        }
        done.push(change);
    }
    Ok(())
}

fn write(change: &SetupChange, right: &PersonWrites) -> anyhow::Result<()> {
    if read(&change.path)? != change.before {
        bail!("{} was changed meanwhile: run setup again", change.path.display());
    }
    if let Some(agent) = change.hooks.as_deref().and_then(HookAgent::named) {
        hooks_file::prepare(agent, &change.after, &install::program()?)?;
    }
    replace(&change.path, &change.after, right)
}

fn put_back(change: &SetupChange, right: &PersonWrites) -> anyhow::Result<()> {
    match &change.before {
        Some(before) => replace(&change.path, before, right),
        None => {
            std::fs::remove_file(&change.path).with_context(|| format!("can't remove {}", change.path.display()))?;
            made_folders::remove_above(&change.path)
        }
    }
}
