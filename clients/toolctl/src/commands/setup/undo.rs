//! `toolctl setup --undo`: gives each file back, and each server with its secrets.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::ValueEnum;
use serde_json::Value;
use toold_proto::daemon::NoParams;
use toold_proto::method::{
    DaemonReload, PermissionsRevoke, SecretsGiveBack, SecretsList, SecretsRemove, WorkspacesForget,
};
use toold_proto::permission::RevokePermission;
use toold_proto::secret::{NameSecret, SecretStoreState};
use toold_proto::workspace::NameWorkspace;

use crate::commands::agents::{self, hooks_file};
use crate::commands::hook::HookAgent;
use crate::commands::mcp::install::{self, McpClient};
use crate::commands::mcp::{jsonc, toml_table};
use crate::commands::secrets::unlock_if_asked;
use crate::commands::setup::page::counted_hooks;
use crate::commands::setup::record::{ChangedEntry, ChangedFile, SetupLock, SetupRecord, escaped, is_bridge};
use crate::commands::setup::text::{ConfigForm, spliced};
use crate::commands::setup::{SetupArgs, purge};
use crate::config_file::{behind_links, difference, read, remove_leftovers, replace};
use crate::confirm::confirm;
use crate::exit::OK;
use crate::globals::Globals;
use crate::output::{self, print_json};
use crate::person::PersonWrites;
use crate::{connection, keys, made_folders};

/// A file as it will be; `None` if setup made it.
struct Restored {
    path: PathBuf,
    now: Option<String>,
    then: Option<String>,
    /// Byte for byte as before.
    is_exact: bool,
    notes: Vec<String>,
    /// The agent whose hooks setup installed there.
    hooks: Option<HookAgent>,
}

pub(super) async fn run(args: &SetupArgs, record: Option<SetupRecord>, globals: &Globals) -> anyhow::Result<u8> {
    // A daemon that is started only for this would make what is to be removed.
    if args.purge && record.is_none() && purge::is_needless().await? {
        writeln!(output::stderr(), "there is nothing of toold here to remove")?;
        return Ok(OK);
    }
    let client = connection::open(globals).await?;
    let right = PersonWrites::with(Some(&client)).await?;
    let list = client.call::<SecretsList>(NoParams {}).await?;
    let Some(record) = record else {
        if args.purge {
            return purge::run(args, &client, globals).await;
        }
        if args.json {
            print_json(&described(&[], &[], false))?;
        }
        writeln!(output::stderr(), "setup has changed nothing here")?;
        return Ok(OK);
    };
    // Before anything is changed.
    if !record.secrets.is_empty() && list.state != SecretStoreState::Unlocked {
        match keys::has_terminal() {
            true => unlock_if_asked(&client).await?,
            false => bail!("secrets go back into files, and they are locked: run `toolctl secrets unlock` first"),
        }
    }
    let mut secrets = BTreeMap::new();
    for name in &record.secrets {
        let given = client.call::<SecretsGiveBack>(NameSecret { name: name.clone() }).await;
        let given = given.with_context(|| format!("can't read the secret {name}; nothing is changed"))?;
        secrets.insert(name.clone(), given.value.0);
    }
    let secret = |name: &str| secrets.get(name).cloned();
    let homeless = homeless(&record.files)?;
    let mut restored = Vec::new();
    for file in &record.files {
        restored.push(
            restore(file, &homeless, &secret)
                .with_context(|| format!("can't change {}; nothing is changed", file.path.display()))?,
        );
    }
    let restored: Vec<Restored> = restored.into_iter().filter(|file| file.now != file.then).collect();
    if !args.json {
        let mut out = output::stdout();
        for file in &restored {
            // What comes back as it was needs no look; a dry run shows it, too.
            if file.is_exact && !args.dry_run {
                let path = output::one_line(&file.path.display().to_string());
                writeln!(out, "{path}: {}", if file.then.is_some() { "as before, byte for byte" } else { "goes" })?;
                continue;
            }
            let (now, then) = (file.now.as_deref().unwrap_or_default(), file.then.as_deref().unwrap_or_default());
            let (bare, less) = counted_hooks(file.hooks, now, then);
            let is_all = file.hooks.is_some() && file.then.is_none();
            if bare != then && !is_all {
                write!(out, "{}", output::plain(&hidden(difference(&file.path, &bare, then), &secrets)))?;
            }
            if less > 0 || is_all {
                let path = output::one_line(&file.path.display().to_string());
                let lines = if is_all { now.lines().count() } else { less };
                writeln!(out, "{path}: the hooks of toold, {lines} lines less")?;
            }
            for note in &file.notes {
                writeln!(out, "  {}", output::plain(note))?;
            }
        }
    }
    if args.dry_run || args.json && !args.yes {
        return if args.json { print_json(&described(&restored, &[], false)).map(|()| OK) } else { Ok(OK) };
    }
    if !args.yes && !confirm(&format!("Give back {}?", output::counted(restored.len() as u64, "file"))).await? {
        return Ok(OK);
    }
    let lock = SetupLock::take(Some(&record))?;
    record.files.iter().for_each(|file| remove_leftovers(&file.path));
    write_all(&restored, &right)?;
    let copies = remove_copies(&install::home()?);
    for folder in &record.workspaces {
        // The person may have forgotten it before.
        let _ = client.call::<WorkspacesForget>(NameWorkspace { path: folder.clone() }).await;
    }
    for id in &record.grants {
        let _ = client.call::<PermissionsRevoke>(RevokePermission { id: id.clone() }).await;
    }
    client.call::<DaemonReload>(NoParams {}).await?;
    for name in &record.secrets {
        let _ = client.call::<SecretsRemove>(NameSecret { name: name.clone() }).await;
    }
    SetupRecord::remove()?;
    drop(lock);
    report(args, &restored, &copies)?;
    if args.purge { purge::run(args, &client, globals).await } else { Ok(OK) }
}

/// Removes the copies that `toolctl mcp install` and `toolctl agents install` kept, of files that have nothing of toold any
/// more; returns them.
fn remove_copies(home: &Path) -> Vec<PathBuf> {
    let now = |file: &Path| read(file).ok().flatten().unwrap_or_default();
    let of_entries = McpClient::value_variants().iter().filter_map(|client| {
        let file = client.found_file(home);
        (!client.has_entry(&now(&file))).then(|| install::backup_of(&behind_links(&file)))
    });
    let of_hooks = HookAgent::ALL.into_iter().filter_map(|agent| {
        let file = home.join(hooks_file::file(agent));
        (!hooks_file::has_hooks(agent, &now(&file))).then(|| {
            agents::chosen_fail::forget(agent);
            agents::install::backup_of(&behind_links(&file))
        })
    });
    // One that cannot be removed is not named.
    of_entries.chain(of_hooks).filter(|copy| std::fs::remove_file(copy).is_ok()).collect()
}

fn report(args: &SetupArgs, restored: &[Restored], copies: &[PathBuf]) -> anyhow::Result<()> {
    if args.json {
        return print_json(&described(restored, copies, true));
    }
    let exact = restored.iter().filter(|file| file.is_exact).count();
    let mut out = output::stdout();
    writeln!(out, "Given back: {exact} byte for byte, {} entry by entry.", restored.len() - exact)?;
    for copy in copies {
        writeln!(
            out,
            "Removed the copy of an earlier installation: {}",
            output::one_line(&copy.display().to_string())
        )?;
    }
    Ok(())
}

/// `applied`: whether it was done, or only shown.
fn described(restored: &[Restored], copies: &[PathBuf], applied: bool) -> Value {
    let files: Vec<Value> = restored
        .iter()
        .map(|file| serde_json::json!({"file": file.path, "exact": file.is_exact, "notes": file.notes}))
        .collect();
    serde_json::json!({"undone": files, "removed_copies": copies, "applied": applied})
}

fn hidden(mut text: String, secrets: &BTreeMap<String, String>) -> String {
    for value in secrets.values() {
        text = text.replace(&escaped(value), "***").replace(value, "***");
    }
    text
}

fn restore(
    file: &ChangedFile,
    homeless: &BTreeSet<&str>,
    secret: &dyn Fn(&str) -> Option<String>,
) -> anyhow::Result<Restored> {
    let path = file.path.clone();
    let hooks = file.hooks.as_deref().and_then(HookAgent::named);
    let Some(now) = read(&file.path)? else { return with_its_servers(file, secret) };
    if let Some(original) = file.original(&now, secret)? {
        let then = file.existed.then_some(original);
        return Ok(Restored { path, now: Some(now), then, is_exact: true, notes: Vec::new(), hooks });
    }
    let mut notes = Vec::new();
    let mut text = now.clone();
    for entry in &file.entries {
        let (after, note) = put_back(file.form(), &text, entry, homeless, secret)?;
        text = after;
        notes.extend(note);
    }
    for path in &file.added {
        text = without_entry(file.form(), &text, path)?;
    }
    if let Some(agent) = hooks {
        text = hooks_file::without_hooks(agent, &text, "")?;
        if !file.existed && hooks_file::is_bare(&text) {
            return Ok(Restored { path, now: Some(now), then: None, is_exact: false, notes, hooks });
        }
    }
    for block in &file.blocks {
        match without_block(&text, block) {
            Some(after) => text = after,
            None => {
                notes.push(format!("not removed, as you have changed it: {}", block.lines().next().unwrap_or_default()))
            }
        }
    }
    Ok(Restored { path, now: Some(now), then: Some(text), is_exact: false, notes, hooks })
}

/// A file that is gone: its servers are nowhere else, so that it is written again where it had some.
fn with_its_servers(file: &ChangedFile, secret: &dyn Fn(&str) -> Option<String>) -> anyhow::Result<Restored> {
    let mut text = String::new();
    for entry in &file.entries {
        text = file.form().with_entry(&text, &entry.path, &entry.members(&entry.old.filled(secret)?)?)?;
    }
    let (then, notes) = match file.entries.is_empty() {
        true => (None, vec!["the file is gone".to_owned()]),
        false => {
            (Some(text), vec!["the file is gone: it is written again, with the servers that were in it".to_owned()])
        }
    };
    Ok(Restored { path: file.path.clone(), now: None, then, is_exact: false, notes, hooks: None })
}

/// The text with the server in place of its bridge, and a note for the person, if there is one to make.
fn put_back(
    form: ConfigForm,
    text: &str,
    entry: &ChangedEntry,
    homeless: &BTreeSet<&str>,
    secret: &dyn Fn(&str) -> Option<String>,
) -> anyhow::Result<(String, Option<String>)> {
    let name = entry.path.last().map_or("", String::as_str);
    let left = |why: &str| Ok((text.to_owned(), Some(format!("{name} is not put back: {why}"))));
    let old = entry.old.filled(secret)?;
    let Some(span) = form.find(text, &entry.path) else {
        return match (form.lacks(text, &entry.path), homeless.contains(entry.source.as_str())) {
            (false, _) => left("its entry cannot be changed safely"),
            (true, false) => left("its entry is gone"),
            (true, true) => match form.with_entry(text, &entry.path, &entry.members(&old)?) {
                Ok(after) => {
                    Ok((after, Some(format!("{name} is put back: its entry is gone, and no other file has it"))))
                }
                Err(error) => left(&format!("its entry is gone, and {error:#}")),
            },
        };
    };
    let there = &text[span.range.clone()];
    if !is_bridge(there, &entry.source) {
        return left("its entry is one of your own now");
    }
    let now = span.kind.value_of(&entry.path, there).with_context(|| format!("the entry {name} cannot be read"))?;
    let mut members = entry.members(&old)?;
    let changed = entry.take_settings(&mut members, &now)?;
    let old = match changed.is_empty() && span.kind == entry.kind {
        true => old,
        false => span.kind.text_of(&entry.path, &members).context("the entry cannot be written")?,
    };
    let after = spliced(text, span.range, &old);
    if form.read(&after).is_none() {
        bail!("the entry {name} cannot be put back safely");
    }
    let note = format!("{name} keeps the settings of its entry that were changed since: {}", changed.join(", "));
    Ok((after, (!changed.is_empty()).then_some(note)))
}

/// The servers whose entries are gone from all files, while the files are there: nobody else has them.
fn homeless(files: &[ChangedFile]) -> anyhow::Result<BTreeSet<&str>> {
    let (mut gone, mut there) = (BTreeSet::new(), BTreeSet::new());
    for file in files {
        let now = read(&file.path)?;
        for entry in &file.entries {
            match now.as_ref().is_some_and(|now| file.form().lacks(now, &entry.path)) {
                true => gone.insert(entry.source.as_str()),
                false => there.insert(entry.source.as_str()),
            };
        }
    }
    Ok(&gone - &there)
}

fn without_entry(form: ConfigForm, text: &str, path: &[String]) -> anyhow::Result<String> {
    let [holder, name] = path else { return Ok(text.to_owned()) };
    match form {
        ConfigForm::Json => jsonc::without_member(text, holder, name, ""),
        ConfigForm::Toml => toml_table::without_table(text, holder, name, ""),
    }
}

/// The text without this part and the empty line before it.
fn without_block(text: &str, block: &str) -> Option<String> {
    let at = text.find(block)?;
    let start = if text[..at].ends_with("\n\n") { at - 1 } else { at };
    Some(spliced(text, start..at + block.len(), ""))
}

/// Puts all files back when one cannot be written.
fn write_all(restored: &[Restored], right: &PersonWrites) -> anyhow::Result<()> {
    let mut done: Vec<&Restored> = Vec::new();
    for file in restored {
        // An agent may have written it while the person was asked.
        let is_same = read(&file.path).is_ok_and(|now| now == file.now);
        let written = match is_same {
            true => write(file, file.then.as_deref(), right),
            false => Err(anyhow::anyhow!("{} was changed meanwhile: run it again", file.path.display())),
        };
        if let Err(error) = written {
            for file in done.into_iter().rev() {
                write(file, file.now.as_deref(), right)?;
            }
            return Err(error.context("nothing is changed"));
        }
        done.push(file);
    }
    Ok(())
}

fn write(file: &Restored, text: Option<&str>, right: &PersonWrites) -> anyhow::Result<()> {
    match text {
        Some(text) => {
            made_folders::create_for(&file.path)?;
            replace(&file.path, text, right)
        }
        None => match std::fs::remove_file(&file.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("can't remove {}", file.path.display()))
            }
            _ => made_folders::remove_above(&file.path),
        },
    }
}
