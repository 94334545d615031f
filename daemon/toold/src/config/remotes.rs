//! `[remotes.NAME]` of the configuration: other daemons whose tools are ours too.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use toold_engine::registry::SourceScope;
use toold_host::environment::Environment;
use toold_host::files;
use toold_mounts::config::MountConfig;
use toold_proto::mcp::InstanceScope;
use toold_remote::adapter::Remotes;
use toold_remote::endpoint::{Reach, RemoteEndpoint, RemoteOptions};

use crate::config;
use crate::config::active_config::ActiveConfig;
use crate::config::mount_mistakes::Mistake;
use crate::config::options::Options;
use crate::config::paths::private_dir;
use crate::config::random::{random_bytes, random_hex};

/// One `[remotes.NAME]`: another daemon, whose tools are called `NAME_tool` here. Set exactly one of `command` and
/// `url`.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct RemoteSection {
    /// A program and its arguments, whose stdin and stdout are the connection, such as `["ssh", "build", "toolctl",
    /// "connect"]`; no shell.
    pub command: Vec<String>,
    /// Added to the program's environment, which holds little more than `PATH`, `HOME` and `SSH_AUTH_SOCK`.
    pub env: BTreeMap<String, String>,
    /// The address of a WebSocket, such as `wss://build.example/rpc`.
    pub url: Option<String>,
    /// The file with the token for `url`, readable by its owner only; `~/` is the home folder.
    pub token_file: Option<String>,
    /// Send the token over a network without TLS. Everyone who reads it can run tools there.
    pub in_the_clear: bool,
    /// The folder on the other machine in which calls run; `~` is the home folder there.
    pub cwd: String,
    /// The timeout of a call, in milliseconds; the remote tool's own when absent.
    pub timeout_ms: Option<u64>,
    /// The timeout for connecting and listing the tools, in milliseconds.
    pub start_timeout_ms: u64,
    /// Whether the daemon is mounted.
    pub enabled: bool,
    pub tools: RemoteToolFilter,
}

/// Which of its tools are mounted, as globs over its own names.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct RemoteToolFilter {
    /// All when absent.
    pub allow: Option<Vec<String>>,
    /// Not these, whatever `allow` says.
    pub deny: Vec<String>,
}

impl Default for RemoteSection {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            env: BTreeMap::new(),
            url: None,
            token_file: None,
            in_the_clear: false,
            cwd: "~".into(),
            timeout_ms: None,
            start_timeout_ms: 30 * 1000,
            enabled: true,
            tools: RemoteToolFilter::default(),
        }
    }
}

/// The settings that all remotes of a daemon share.
pub fn options(options: &Options) -> RemoteOptions {
    let home = options.paths.home.clone().filter(|home| home.is_dir());
    RemoteOptions {
        instance: instance(options),
        cache_dir: options.paths.remotes(),
        environment: Environment::inherited(options.environment.iter().cloned()),
        home: home.unwrap_or_else(|| "/".into()),
        secret: random_bytes(),
    }
}

/// The identity of this daemon towards the daemons that mount it: stable across starts, and
/// different for each socket.
fn instance(options: &Options) -> String {
    blake3::hash(own_id(options).as_bytes()).to_hex()[..32].to_owned()
}

/// A secret of this daemon, the same at each start.
pub fn kept_secret(options: &Options) -> [u8; 32] {
    blake3::derive_key("toold 2026-11-25 names of sessions of the fleet", own_id(options).as_bytes())
}

/// No other daemon and no tool knows it.
fn own_id(options: &Options) -> String {
    let id = kept_id(&options.paths.instance()).unwrap_or_else(|error| {
        tracing::warn!(%error, "can't save this daemon's id");
        random_hex(16)
    });
    format!("{id}\0{:?}", options.socket)
}

/// Bytes of the file of the id.
const MAX_ID: u64 = 4_096;

fn kept_id(file: &Path) -> std::io::Result<String> {
    if let Some(dir) = file.parent() {
        private_dir(dir)?;
    }
    match files::read_text(file, MAX_ID) {
        Ok(id) if !id.trim().is_empty() => return Ok(id.trim().to_owned()),
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let id = random_hex(16);
    let mut made = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(file)?;
    made.write_all(id.as_bytes())?;
    Ok(id)
}

/// Mounts the remotes of the user's configuration, and follows changes. A project's configuration
/// may not contain any.
pub fn follow(config: &Arc<ActiveConfig>, remotes: &Arc<Remotes>) {
    let mounted = remotes.clone();
    config.follow(move |config| {
        let home = config.options.paths.home.as_deref();
        let remotes = &config.loaded().config.remotes;
        mounted.configure(remotes.iter().map(|(name, section)| remote(name, section, home)).collect());
    });
}

/// Errors are reported in the remote's own state.
fn remote(name: &str, section: &RemoteSection, home: Option<&Path>) -> MountConfig<RemoteEndpoint> {
    let reach = reach(name, section, home).unwrap_or_else(|why| Reach::Unusable { why });
    MountConfig {
        name: name.to_owned(),
        scope: SourceScope::Global,
        endpoint: RemoteEndpoint { reach, cwd: section.cwd.clone() },
        enabled: section.enabled,
        instances: InstanceScope::Shared,
        max_instances: 1,
        parallel: None,
        trusts_hints: false,
        revision: None,
        idle_timeout: None,
        timeout: section.timeout_ms.map(Duration::from_millis),
        start_timeout: Duration::from_millis(section.start_timeout_ms),
        allow: section.tools.allow.clone(),
        deny: section.tools.deny.clone(),
    }
}

fn reach(name: &str, section: &RemoteSection, home: Option<&Path>) -> Result<Reach, String> {
    if let Some((_, why)) = common_mistakes(name, section).into_iter().next() {
        return Err(why);
    }
    match (section.command.split_first(), &section.url) {
        (Some((program, args)), None) => {
            let program = config::program(program.clone(), home)?;
            Ok(Reach::Command { program, args: args.to_vec(), env: section.env.clone() })
        }
        (None, Some(url)) => {
            let file = section.token_file.as_deref().ok_or("url needs token_file")?;
            Reach::websocket(url.clone(), config::absolute(file, home)?, section.in_the_clear)
        }
        (None, None) => Err("set command or url: neither is set".to_owned()),
        (Some(_), Some(_)) => Err("set either command or url, not both".to_owned()),
    }
}

/// Every mistake in a remote.
pub(super) fn mistakes(name: &str, section: &RemoteSection, home: Option<&Path>) -> Vec<Mistake> {
    let mut found = common_mistakes(name, section);
    let harmless = RemoteSection { tools: RemoteToolFilter::default(), ..section.clone() };
    let mut check = |key: Option<&'static str>, alone: &RemoteSection| {
        found.extend(reach("a", alone, home).err().map(|why| (key, why)));
    };
    if section.command.is_empty() == section.url.is_none() {
        check(None, &harmless);
    }
    if !section.command.is_empty() {
        check(Some("command"), &RemoteSection { url: None, ..harmless.clone() });
    }
    if section.url.is_some() {
        check(Some("url"), &RemoteSection { command: Vec::new(), ..harmless });
    }
    found
}

fn common_mistakes(name: &str, section: &RemoteSection) -> Vec<Mistake> {
    let globs = section.tools.allow.iter().flatten().chain(&section.tools.deny);
    let of_glob = |glob: &String| Some((Some("tools"), format!("tools: {}", globset::Glob::new(glob).err()?)));
    let mut found: Vec<Mistake> = globs.filter_map(of_glob).collect();
    if !is_name(name) {
        let why = "its name must be 1 to 32 lower-case letters, digits or _, and begin with a letter";
        found.push((None, why.to_owned()));
    }
    found
}

/// The prefix of its tools' names.
fn is_name(name: &str) -> bool {
    name.len() <= 32
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, toml: &str) -> Reach {
        let section: RemoteSection = toml::from_str(toml).unwrap();
        remote(name, &section, Some(Path::new("/home/u"))).endpoint.reach
    }

    #[track_caller]
    fn check_unusable(name: &str, toml: &str, words: &str) {
        match read(name, toml) {
            Reach::Unusable { why } => assert!(why.contains(words), "{why}"),
            other => panic!("{other:?} should not be usable"),
        }
    }

    #[test]
    fn a_command_or_an_address_says_how_it_is_reached() {
        let ssh = read("build", "command = [\"ssh\", \"build\", \"toolctl\", \"connect\"]");
        assert!(matches!(ssh, Reach::Command { program, args, .. } if program == "ssh" && args.len() == 3));
        let web = read("web", "url = \"wss://a.example/rpc\"\ntoken_file = \"~/token\"");
        assert!(matches!(web, Reach::WebSocket { token_file, .. } if token_file == Path::new("/home/u/token")));
        let here = read("here", "url = \"ws://127.0.0.1:1/rpc\"\ntoken_file = \"/t\"");
        assert!(matches!(here, Reach::WebSocket { .. }));
    }

    #[test]
    fn invalid_remote_is_reported() {
        check_unusable("a", "", "neither");
        check_unusable("a", "command = [\"b\"]\nurl = \"wss://c\"", "both");
        check_unusable("a", "command = [\"bin/b\"]", "absolute");
        check_unusable("a", "url = \"wss://c/rpc\"", "token_file");
        check_unusable("a", "url = \"https://c\"\ntoken_file = \"/t\"", "ws:// or wss://");
        check_unusable("a", "url = \"ws://c.example/rpc\"\ntoken_file = \"/t\"", "unencrypted");
        check_unusable("A-b", "command = [\"b\"]", "lower-case letters");
        check_unusable("a", "command = [\"b\"]\ntools = { deny = [\"[\"] }", "tools");
    }

    #[test]
    fn a_daemon_is_known_by_the_same_name_at_each_start() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("state/instance");
        let first = kept_id(&file).unwrap();
        assert_eq!((first.len(), kept_id(&file).unwrap()), (32, first));
    }
}
