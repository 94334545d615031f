//! `toolctl setup --undo --purge`: packs what the person wrote or nobody else has, then removes all data of toold.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use chrono::Local;
use toold_client::Client;
use toold_client::place::{find_socket, state_folder};
use toold_proto::daemon::NoParams;
use toold_proto::method::{SecretsList, SecretsRemove};
use toold_proto::secret::NameSecret;
use toold_proto::socket::{database_path, lock_path, log_path, record_path};

use crate::commands::agents::hooks_file;
use crate::commands::hook::HookAgent;
use crate::commands::mcp::install;
use crate::commands::setup::SetupArgs;
use crate::commands::setup::servers::is_tracked;
use crate::commands::stop;
use crate::commands::upgrade::Installation;
use crate::config_file;
use crate::confirm::confirm;
use crate::exit::OK;
use crate::globals::Globals;
use crate::output::{self, one_line};

/// Entries of the state folder that toold makes again, or that nobody needs without its programs. All others are packed: the
/// database with grants and the audit log, what undo needs, notes, and files that toold does not know.
const MADE_AGAIN: [&str; 25] = [
    "agent-processes",
    "agent-programs.json",
    "bundled",
    "daemon.json",
    "daemon.lock",
    "hooks",
    "log",
    "made-folders.json",
    "mcp",
    "observing.json",
    "observing.new",
    "paused.json",
    "paused.new",
    "provided-tools.json",
    "registrations",
    "remotes",
    "setup.json",
    "spool",
    "strict-rules.json",
    "toold.json",
    "toold.lock",
    "toold.sock",
    "toold.sock.json",
    "toold.sock.lock",
    "toold.sock.log",
];
/// Secrets, tokens and keys.
const SECRETS: [&str; 7] =
    ["admin-token", "fleet", "instance", "mcp-token", "mcp-tokens", "secrets.json", "secrets.new"];

/// Whether there is nothing to pack and to remove.
pub(super) async fn is_needless() -> anyhow::Result<bool> {
    let config = config_file::find().await?;
    Ok(!config.parent().is_some_and(Path::exists) && !state_folder().is_some_and(|state| state.exists()))
}

/// The files and folders that exist now and belong in the archive.
fn to_pack(config: &Path, state: &Path, with_secrets: bool) -> anyhow::Result<Vec<PathBuf>> {
    let mut packed: Vec<PathBuf> = config.exists().then(|| config.to_owned()).into_iter().collect();
    let entries = match std::fs::read_dir(state) {
        Ok(entries) => entries.collect::<Result<Vec<_>, _>>()?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error).with_context(|| format!("can't read {}", state.display())),
    };
    let is_packed = |path: &PathBuf| {
        let is_in = |names: &[&str]| names.iter().any(|name| path.file_name() == Some(OsStr::new(name)));
        !is_in(&MADE_AGAIN) && (with_secrets || !is_in(&SECRETS))
    };
    let mut of_state: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).filter(is_packed).collect();
    of_state.sort();
    packed.extend(of_state);
    Ok(packed)
}

/// A file in the home folder that is not there yet.
fn archive_name(home: &Path) -> PathBuf {
    let date = Local::now().format("%Y-%m-%d-%H%M%S").to_string();
    let others = (2..).map(|number| format!("{date}-{number}"));
    let names = [date.clone()].into_iter().chain(others).map(|name| home.join(format!("toold-{name}.tar.gz")));
    names.into_iter().find(|archive| !archive.exists()).unwrap_or_else(|| home.join(format!("toold-{date}.tar.gz")))
}

pub(super) async fn run(args: &SetupArgs, client: &Client, globals: &Globals) -> anyhow::Result<u8> {
    let home = install::home()?;
    let state = state_folder().context("there is no state folder: set HOME or XDG_STATE_HOME")?;
    let config_file = config_file::find().await?;
    let config = config_file.parent().context("the configuration is in no folder")?.to_owned();
    let is_kept = is_tracked(&config_file) || config.join(".git").exists();
    let archive = archive_name(&home);
    let socket = find_socket().ok();
    let packed = to_pack(&config, &state, args.with_secrets)?;
    let mut removed = vec![state.clone()];
    if !is_kept {
        removed.push(config.clone());
    }
    removed.retain(|path| path.exists());
    let mut out = output::stdout();
    let show = |path: &Path| one_line(&path.display().to_string());
    writeln!(out, "Will be packed into {}, for you alone:", show(&archive))?;
    // The files beside the database are a part of it, and go when the daemon stops.
    let is_part =
        |path: &&PathBuf| path.to_string_lossy().starts_with(&*format!("{}-", database_path(&state).display()));
    for path in packed.iter().filter(|path| !is_part(path)) {
        writeln!(out, "  {}", show(path))?;
    }
    if !args.with_secrets {
        writeln!(
            out,
            "  without the stored secrets; --with-secrets packs their file, too, if they are in one, and the daemon's tokens"
        )?;
    }
    writeln!(out, "Will be removed:")?;
    for path in &removed {
        writeln!(out, "  {}", show(path))?;
    }
    if is_kept {
        writeln!(out, "Will stay: {}, which Git tracks", show(&config))?;
    }
    for agent in HookAgent::ALL.into_iter().filter(|agent| hooks_file::is_installed(*agent, &home)) {
        let name = agent.name();
        writeln!(
            out,
            "Will stay: the hooks of {name}, which setup did not install: toolctl agents install {name} --undo"
        )?;
    }
    if !args.yes && !confirm("Pack and remove this?").await? {
        return Ok(OK);
    }
    let secrets = client.call::<SecretsList>(NoParams {}).await?;
    stop::run(stop::StopArgs::default(), globals).await?;
    // The daemon removed some as it stopped.
    pack(&archive, &to_pack(&config, &state, args.with_secrets)?)?;
    // A keyring is outside of the folders. The daemon is started once more for it, and stopped.
    if secrets.store == toold_proto::secret::SecretStoreKind::Keyring
        && !secrets.secrets.is_empty()
        && !args.with_secrets
    {
        let client = crate::connection::open(globals).await?;
        for secret in secrets.secrets.iter().filter(|secret| secret.is_set == Some(true)) {
            client.call::<SecretsRemove>(NameSecret { name: secret.name.clone() }).await?;
        }
        stop::run(stop::StopArgs::default(), globals).await?;
    }
    for path in &removed {
        std::fs::remove_dir_all(path).with_context(|| format!("can't remove {}", path.display()))?;
    }
    // The folder of the daemon's socket, unless something else is in it.
    if let Some(socket) = socket.filter(|socket| socket.parent().is_some_and(|folder| folder.ends_with("toold"))) {
        for left in [record_path(&socket), lock_path(&socket), log_path(&socket), socket.clone()] {
            let _ = std::fs::remove_file(left);
        }
        let _ = socket.parent().map(std::fs::remove_dir);
    }
    let installed = Installation::find()?;
    writeln!(out, "Packed {}.", show(&archive))?;
    writeln!(out, "To remove the programs: {}", installed.remove())?;
    Ok(OK)
}

/// # Errors
/// There is no `tar`, or it failed; then nothing is left of the archive.
fn pack(archive: &Path, paths: &[PathBuf]) -> anyhow::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(archive);
    let file = file.with_context(|| format!("can't create {}", archive.display()))?;
    let mut tar = Command::new("tar");
    tar.args(["-C", "/", "-czf", "-", "--"]);
    tar.args(paths.iter().map(|path| path.strip_prefix("/").unwrap_or(path)));
    let status = tar.stdin(Stdio::null()).stdout(file).status().context("can't run tar");
    match status {
        Ok(status) if status.success() => Ok(()),
        failed => {
            let _ = std::fs::remove_file(archive);
            let status = failed?;
            bail!("tar failed ({status}); nothing is removed")
        }
    }
}
