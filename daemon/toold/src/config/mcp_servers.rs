//! `[mcp]` of the configuration, and the MCP servers that it mounts.
//!
//! `import` reads the files of other programs, `expand` substitutes variables.

pub(super) mod expand;
mod import;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde::Deserialize;
use toml::Spanned;
use toold_engine::registry::SourceScope;
use toold_host::environment::Environment;
use toold_host::secret_text::SecretText;
use toold_host::secrets::SecretStore;
use toold_mcp::client::adapter::{McpServers, ServerOptions, known_revisions, pinned_revision};
use toold_mcp::client::endpoint::{IdentityProvider, LoginRedirect, OAuthGrant, OAuthSettings, ServerEndpoint};
use toold_mounts::config::MountConfig;
use toold_proto::agent_names::is_client_named;
use toold_proto::call::ListingMode;
use toold_proto::mcp::InstanceScope;

use crate::config::active_config::ActiveConfig;
use crate::config::listen::listen_address;
use crate::config::mcp_profiles::ProfileConfigs;
use crate::config::mount_mistakes::Mistake;
use crate::config::options::Options;
use crate::config::paths::DaemonPaths;
use crate::config::workspaces::folder;
use crate::config::{self, expand_home};

/// `[mcp]`: the Model Context Protocol, as a client and as a server.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct McpConfig {
    /// `mcp.json` files of other programs whose servers are mounted too; `~/` is the home folder. Missing files are
    /// skipped. A name in `servers`, or in an earlier file, wins.
    pub import: Vec<String>,
    /// MCP servers by name, shared by all sessions: their tools are called `NAME_tool`.
    pub servers: BTreeMap<String, McpServerConfig>,
    /// The base URL of the registry that `toolctl mcp search` and `add` use: one with the API of the generic registry
    /// specification. The official one when absent.
    pub registry: Option<String>,
    /// Also serve clients on HTTP at this address, such as `127.0.0.1:7345`: MCP at `/mcp`, and JSON-RPC at `/rpc`, on
    /// a WebSocket or one request at a time. Clients need the token that `toolctl mcp token` shows.
    pub listen: Option<String>,
    /// Allow `listen` to be an address that other machines can reach. Everyone who has the token can run tools as you.
    pub allow_remote: bool,
    /// Host names that clients may use in addition to `localhost` and the loopback addresses.
    pub hosts: Vec<String>,
    /// Origins of web pages that may connect, such as `http://localhost:*`. None when empty.
    pub origins: Vec<String>,
    /// The maximum number of HTTP sessions at one time (protocol revisions up to 2025-11-25; later ones have no
    /// sessions).
    pub max_sessions: Option<usize>,
    /// How long an HTTP client may take to send a request's body, and to begin its next request, in milliseconds;
    /// 20,000 when absent. Headers that have begun must arrive within 2 seconds.
    pub body_timeout_ms: Option<u64>,
    /// Whether clients get `tools_search` and `tools_call`, which reach tools that were added after the client read
    /// the list. `auto`: all clients except those with `list_changed = true`.
    pub meta_tools: MetaToolsConfig,
    /// A call that takes longer than this many milliseconds becomes a task, for clients that support tasks
    /// (2026-07-28); 20,000 when absent, 0 means never. A tool's own setting takes precedence.
    pub task_after_ms: Option<u64>,
    /// The identity of the daemon where remote servers ask for a login.
    pub oauth: McpOAuthConfig,
    /// What limits the token that may call tools.
    pub token: TokenConfig,
    /// What clients may do, by the name that they report.
    pub clients: BTreeMap<String, McpClientConfig>,
    /// Which tools clients get, by names that `profile` in `mcp.clients.NAME`, `toolctl mcp --profile` and tokens refer to.
    /// `all` and `without-files-and-shell` are built in. Only in the user's configuration.
    pub profiles: ProfileConfigs,
}

impl McpConfig {
    /// The sections of a client that reports this name: its own, and then those under other names of its agent.
    pub(crate) fn sections_of<'a>(&'a self, client: &'a str) -> impl Iterator<Item = &'a McpClientConfig> {
        let of_agent = self.clients.iter().filter(move |(name, _)| *name != client && is_client_named(client, name));
        self.clients.get(client).into_iter().chain(of_agent.map(|(_, section)| section))
    }

    /// The address that `listen` names; `None` without it.
    ///
    /// # Errors
    /// It is no address, or one that other machines reach, which `allow_remote` does not allow. The words begin with the key.
    pub(crate) fn address(&self) -> anyhow::Result<Option<SocketAddr>> {
        let Some(listen) = &self.listen else { return Ok(None) };
        let address = listen_address(listen).with_context(|| {
            format!("mcp.listen: {listen:?} is not an address and port, such as \"127.0.0.1:7345\"")
        })?;
        ensure!(
            address.ip().is_loopback() || self.allow_remote,
            "mcp.listen: other machines can reach {address}; set mcp.allow_remote = true to allow that"
        );
        Ok(Some(address))
    }
}

/// `[mcp] meta_tools`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "snake_case")]
pub enum MetaToolsConfig {
    Off,
    On,
    #[default]
    Auto,
}

/// `[mcp.clients.NAME]`: a client by the name that it reports, or an agent by any of its names, such as `codex`, whose client is
/// called `codex-mcp-client`. Any program can report any name, so this rests on trust in the programs that you start, not on proof.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct McpClientConfig {
    /// The client also shows the permission prompts of its own calls (elicitation), and its answers count: once or for
    /// its session, never for longer. Set it only for clients that show the prompts to a person.
    pub approve: bool,
    /// The client reads the list of tools again when it is notified of a change.
    pub list_changed: bool,
    /// Names of tools that are longer are listed shortened, since hosts put a prefix such as `mcp__toold__` before them, and
    /// the APIs of models accept 64 characters; from 24 to 256, 52 when absent.
    pub name_length: Option<u16>,
    /// Which tools the client is listed if it does not choose: `all`, or `deferred` for the pinned ones with `tools_search`
    /// and `tools_call`, which find and call the others. For a client of any protocol; `all` when absent.
    #[cfg_attr(test, schemars(schema_with = "crate::config::schema::foreign::optional_listing"))]
    pub listing: Option<ListingMode>,
    /// The profile that the client always gets, whichever other one it is started with; each leaves out more tools. Only
    /// for clients that speak MCP.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub profile: Option<Spanned<String>>,
}

/// `[mcp.token]`: the token that may call, which `toolctl mcp token` shows.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct TokenConfig {
    /// Among the folders that you chose, only these and the folders in them are workspaces for this token: absolute
    /// paths, which may begin with `~/`. All when absent.
    pub workspaces: Option<Vec<String>>,
}

impl TokenConfig {
    /// The folders; `None` when it is not narrowed.
    pub fn only(&self, home: Option<&Path>) -> Option<Vec<PathBuf>> {
        let names = self.workspaces.as_ref()?;
        let folders = names.iter().filter_map(|name| folder(name, home).ok());
        Some(folders.map(|folder| folder.canonicalize().unwrap_or(folder)).collect())
    }

    /// The errors of each.
    pub fn problems(&self, home: Option<&Path>) -> Vec<String> {
        self.workspaces.iter().flatten().filter_map(|name| folder(name, home).err()).collect()
    }
}

/// `[mcp.oauth]`: logins at remote servers, which `toolctl mcp login NAME` makes.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct McpOAuthConfig {
    /// The https URL of a client metadata document that you host. It is the daemon's client id at authorization servers
    /// that accept such documents; elsewhere the daemon registers itself. The document lists `http://127.0.0.1/callback`
    /// in `redirect_uris`.
    pub client_id_url: Option<String>,
}

impl McpOAuthConfig {
    /// Why the URL cannot be a client's id.
    pub fn problems(&self) -> Option<String> {
        let url = self.client_id_url.as_deref()?;
        let is_good = url
            .strip_prefix("https://")
            .and_then(|rest| rest.split_once('/'))
            .is_some_and(|(host, path)| !host.is_empty() && !path.is_empty());
        (!is_good).then(|| format!("client_id_url: expected https://HOST/PATH, not {url:?}"))
    }
}

/// `[mcp.servers.NAME.oauth]`: the daemon as a client that is registered at the server's authorization server.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ServerOAuthConfig {
    /// The client's id there. When absent, the daemon registers itself or uses `[mcp.oauth] client_id_url`.
    pub client_id: Option<String>,
    /// For a confidential client: `${secret:NAME}`, rather than the secret itself.
    pub client_secret: Option<String>,
    /// The scopes to ask for; those that the server names when empty.
    pub scopes: Vec<String>,
    /// Where the page of a login sends your browser back to, for a client that is registered with one address: a port, or
    /// `localhost`, `localhost:PORT` or `localhost:PORT/PATH`. Any free port of 127.0.0.1 and `/callback` when absent.
    pub redirect: Option<RedirectConfig>,
    pub grant: ServerOAuthGrant,
    /// The file with a JSON Web Token, which another program renews: that of the workload for the grant `jwt_bearer`, your
    /// identity token for `id_jag`.
    pub assertion_file: Option<String>,
    /// Your organisation's, for the grant `id_jag`.
    pub identity_provider: Option<IdentityProviderConfig>,
}

/// A port of 127.0.0.1, or an address of this machine.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum RedirectConfig {
    Port(u16),
    Address(String),
}

impl RedirectConfig {
    fn read(&self) -> Result<LoginRedirect, String> {
        match self {
            Self::Port(port) => LoginRedirect::parse(&format!("127.0.0.1:{port}")),
            Self::Address(address) => LoginRedirect::parse(address),
        }
    }
}

/// Where your identity token is exchanged, and the daemon's client there.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct IdentityProviderConfig {
    /// The URL that exchanges the identity token.
    pub token_endpoint: String,
    /// The id of the daemon's client.
    pub client_id: String,
}

/// How the daemon gets tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ServerOAuthGrant {
    /// A person logs in.
    #[default]
    AuthorizationCode,
    /// The client itself has access, with `client_id` and `client_secret`. Nobody logs in.
    ClientCredentials,
    /// The workload as which the daemon runs has access, with the token in `assertion_file`. Nobody logs in.
    JwtBearer,
    /// You have access as your organisation's identity provider decides (enterprise-managed authorization). Nobody logs in
    /// here: another program keeps your identity token in `assertion_file`.
    IdJag,
}

/// One `[mcp.servers.NAME]`. Set exactly one of `command`, `url` and `socket`. In all texts, `${env:NAME}` stands for
/// a variable of the daemon's environment, and `${env:NAME:-text}` has a default. `${secret:NAME}` stands for a secret
/// that `toolctl secrets set NAME` stored; paths can't hold one.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct McpServerConfig {
    /// The program, which speaks MCP on its stdin and stdout; no shell.
    pub command: Option<String>,
    /// The program's arguments.
    pub args: Vec<String>,
    /// Added to the environment, which holds little more than `PATH` and `HOME`.
    pub env: BTreeMap<String, String>,
    /// The program's working folder; the home folder when absent. It is never a client's folder.
    pub cwd: Option<String>,
    /// The URL of a server of Streamable HTTP, or of HTTP with SSE.
    pub url: Option<String>,
    /// Sent with each request to `url`.
    pub headers: BTreeMap<String, String>,
    /// How to log in to `url`, where the server's own metadata is not enough.
    pub oauth: ServerOAuthConfig,
    /// The path of a Unix socket, with one message per line.
    pub socket: Option<String>,
    /// The server is stopped after this many milliseconds without a call; 0 means never.
    pub idle_timeout_ms: u64,
    /// Which sessions share a process of the server, or a connection to it: `shared` is one for all, `project` one for
    /// the sessions of each project, `session` one for each session, which ends with it. `shared` when absent. Set it for
    /// servers that remember something of a conversation, such as a browser.
    #[cfg_attr(test, schemars(schema_with = "crate::config::schema::foreign::instance_scope"))]
    pub scope: InstanceScope,
    /// With the scopes `project` and `session`: so many run at one time, and calls that would start another one are
    /// refused.
    pub max_instances: usize,
    /// The timeout of a call, in milliseconds; that of other tools when absent.
    pub timeout_ms: Option<u64>,
    /// Whether its calls run at the same time: `true` for all, `false` for none. When absent, those of tools that only read
    /// do, and others wait for the calls of their session that began within the same turn.
    pub parallel: Option<bool>,
    /// You trust what the server says of its tools: one that only reads by its `readOnlyHint` is among those that `mcp:read`
    /// and `NAME/mcp:read` allow. A hint is no proof. Only in your own configuration.
    pub trust_hints: bool,
    /// The revision of the protocol to speak, such as `2025-06-18`, or `legacy` for the last one with `initialize`. The
    /// newest that the server knows when absent.
    pub protocol: Option<String>,
    /// The timeout for starting the server and listing its tools, in milliseconds.
    pub start_timeout_ms: u64,
    /// Whether the server is mounted.
    pub enabled: bool,
    pub tools: McpToolFilter,
}

/// Which of the server's tools are mounted, as globs over the server's names.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct McpToolFilter {
    /// All when absent.
    pub allow: Option<Vec<String>>,
    /// Not these, whatever `allow` says.
    pub deny: Vec<String>,
}

impl Default for McpServerConfig {
    fn default() -> Self {
        Self {
            command: None,
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            url: None,
            headers: BTreeMap::new(),
            oauth: ServerOAuthConfig::default(),
            socket: None,
            idle_timeout_ms: 15 * 60 * 1000,
            scope: InstanceScope::Shared,
            max_instances: 16,
            timeout_ms: None,
            parallel: None,
            trust_hints: false,
            protocol: None,
            start_timeout_ms: 60 * 1000,
            enabled: true,
            tools: McpToolFilter::default(),
        }
    }
}

/// The settings that all servers of a daemon share.
pub fn options(options: &Options, secrets: &Arc<SecretStore>) -> ServerOptions {
    let home = options.paths.home.clone().filter(|home| home.is_dir());
    ServerOptions {
        cache_dir: kept(&options.paths),
        environment: Environment::inherited(options.environment.iter().cloned()),
        home: home.unwrap_or_else(|| "/".into()),
        secrets: secrets.clone(),
    }
}

/// The folder of the last known tools of servers. A program that could write there could make a
/// tool look unchanged.
pub fn kept(places: &DaemonPaths) -> PathBuf {
    places.state.join("mcp")
}

/// Mounts the configured servers, those of projects once trusted, and follows changes.
pub fn follow(config: &Arc<ActiveConfig>, mcp_servers: &Arc<McpServers>) {
    let mcp_servers = mcp_servers.clone();
    config.follow(move |config| configure(config, &mcp_servers));
}

fn configure(active: &ActiveConfig, mcp_servers: &Arc<McpServers>) {
    let home = active.options.paths.home.as_deref();
    let var = |name: &str| active.options.variable(name);
    let mut all = mounts(&active.loaded().config.mcp, &SourceScope::Global, home, &var);
    for project in active.trusted_configs() {
        let scope = SourceScope::Project(project.project.clone());
        let theirs = mounts(&project.config.mcp, &scope, home, &var);
        all.servers.extend(theirs.servers);
        all.problems.extend(theirs.problems);
    }
    for problem in &all.problems {
        tracing::warn!(problem, "not all MCP servers are mounted");
    }
    mcp_servers.configure(all.servers);
}

/// The servers that a configuration mounts. Errors of a server are reported in its own state;
/// `problems` are those of files.
pub struct ConfiguredServers {
    pub servers: Vec<MountConfig<ServerEndpoint>>,
    pub problems: Vec<String>,
}

/// Reads `[mcp]` and the files that it imports. `scope` limits who sees the servers; `var` reads
/// the daemon's environment.
pub fn mounts(
    config: &McpConfig,
    scope: &SourceScope,
    home: Option<&Path>,
    var: &dyn Fn(&str) -> Option<String>,
) -> ConfiguredServers {
    let mut mounts = ConfiguredServers { servers: Vec::new(), problems: Vec::new() };
    let id_url = config.oauth.client_id_url.as_deref();
    for (name, server) in &config.servers {
        mounts.add(server_config(name, server, scope, home, var, id_url));
    }
    for file in &config.import {
        let path = expand_home(file, home);
        match import::read(&path) {
            Ok(imported) => {
                for (name, server) in imported {
                    let read = match server {
                        Ok(server) => server_config(&name, &server, scope, home, var, id_url),
                        Err(why) => unusable(&name, scope, why),
                    };
                    mounts.add(read);
                }
            }
            Err(error) => mounts.problems.push(format!("{error:#}")),
        }
    }
    mounts
}

impl ConfiguredServers {
    /// The first server of a name counts.
    fn add(&mut self, server: MountConfig<ServerEndpoint>) {
        if !self.servers.iter().any(|known| known.name == server.name) {
            self.servers.push(server);
        }
    }
}

fn server_config(
    name: &str,
    config: &McpServerConfig,
    scope: &SourceScope,
    home: Option<&Path>,
    var: &dyn Fn(&str) -> Option<String>,
    client_id_url: Option<&str>,
) -> MountConfig<ServerEndpoint> {
    let endpoint = match endpoint(config, home, var, client_id_url) {
        Ok(_) if !is_name(name) => ServerEndpoint::Unusable { why: BAD_NAME.into() },
        Ok(endpoint) => endpoint,
        Err(why) => ServerEndpoint::Unusable { why },
    };
    MountConfig {
        name: name.to_owned(),
        scope: scope.clone(),
        endpoint,
        enabled: config.enabled,
        instances: config.scope,
        max_instances: config.max_instances,
        parallel: config.parallel,
        trusts_hints: config.trust_hints && *scope == SourceScope::Global,
        revision: config.protocol.clone(),
        idle_timeout: Some(config.idle_timeout_ms).filter(|ms| *ms > 0).map(Duration::from_millis),
        timeout: config.timeout_ms.map(Duration::from_millis),
        start_timeout: Duration::from_millis(config.start_timeout_ms),
        allow: config.tools.allow.clone(),
        deny: config.tools.deny.clone(),
    }
}

fn unusable(name: &str, scope: &SourceScope, why: String) -> MountConfig<ServerEndpoint> {
    let nothing = McpServerConfig::default();
    let config = server_config(name, &nothing, scope, None, &|_| None, None);
    MountConfig { endpoint: ServerEndpoint::Unusable { why }, ..config }
}

/// Every mistake in a server, where [`mounts`] reports the first.
pub(super) fn mistakes(
    name: &str,
    config: &McpServerConfig,
    home: Option<&Path>,
    var: &dyn Fn(&str) -> Option<String>,
    client_id_url: Option<&str>,
) -> Vec<Mistake> {
    let mut found: Vec<Mistake> = Vec::new();
    if !is_name(name) {
        found.push((None, BAD_NAME.to_owned()));
    }
    let harmless = McpServerConfig {
        command: Some("true".to_owned()),
        args: Vec::new(),
        env: BTreeMap::new(),
        cwd: None,
        url: None,
        headers: BTreeMap::new(),
        oauth: ServerOAuthConfig::default(),
        socket: None,
        protocol: None,
        max_instances: 1,
        tools: McpToolFilter::default(),
        ..config.clone()
    };
    let without = || McpServerConfig { command: None, ..harmless.clone() };
    let a_url = || McpServerConfig { url: Some("https://a.example".to_owned()), ..without() };
    let mut check = |key: Option<&'static str>, alone: &McpServerConfig| {
        found.extend(endpoint(alone, home, var, client_id_url).err().map(|why| (key, why)));
    };
    for glob in config.tools.allow.iter().flatten() {
        let tools = McpToolFilter { allow: None, deny: vec![glob.clone()] };
        check(Some("tools"), &McpServerConfig { tools, ..harmless.clone() });
    }
    for glob in &config.tools.deny {
        let tools = McpToolFilter { allow: None, deny: vec![glob.clone()] };
        check(Some("tools"), &McpServerConfig { tools, ..harmless.clone() });
    }
    check(Some("max_instances"), &McpServerConfig { max_instances: config.max_instances, ..harmless.clone() });
    check(Some("protocol"), &McpServerConfig { protocol: config.protocol.clone(), ..harmless.clone() });
    let count = [&config.command, &config.url, &config.socket].into_iter().flatten().count();
    if count != 1 {
        // Which of them the user meant, nobody knows: the error is the whole table's.
        let (command, url, socket) = (config.command.clone(), config.url.clone(), config.socket.clone());
        check(None, &McpServerConfig { command, url, socket, ..harmless.clone() });
    }
    if config.command.is_some() {
        check(Some("command"), &McpServerConfig { command: config.command.clone(), ..without() });
        check(Some("args"), &McpServerConfig { args: config.args.clone(), ..harmless.clone() });
        check(Some("env"), &McpServerConfig { env: config.env.clone(), ..harmless.clone() });
        check(Some("cwd"), &McpServerConfig { cwd: config.cwd.clone(), ..harmless.clone() });
    }
    if config.url.is_some() {
        check(Some("url"), &McpServerConfig { url: config.url.clone(), ..without() });
        check(Some("headers"), &McpServerConfig { headers: config.headers.clone(), ..a_url() });
        check(Some("oauth"), &McpServerConfig { oauth: config.oauth.clone(), ..a_url() });
    }
    if config.socket.is_some() {
        check(Some("socket"), &McpServerConfig { socket: config.socket.clone(), ..without() });
    }
    found
}

const BAD_NAME: &str = "its name must be 1 to 64 printable characters without / and must not begin with remote:";

/// The prefix of targets in rules and grants: `NAME/tool`.
fn is_name(name: &str) -> bool {
    // Targets of other daemons' tools begin with `remote:`.
    !name.is_empty()
        && !name.starts_with("remote:")
        && name.len() <= 64
        && !name.contains('/')
        && !name.chars().any(char::is_control)
}

fn endpoint(
    config: &McpServerConfig,
    home: Option<&Path>,
    var: &dyn Fn(&str) -> Option<String>,
    client_id_url: Option<&str>,
) -> Result<ServerEndpoint, String> {
    for glob in config.tools.allow.iter().flatten().chain(&config.tools.deny) {
        globset::Glob::new(glob).map_err(|error| format!("tools: {error}"))?;
    }
    if config.max_instances == 0 {
        return Err("max_instances must be at least 1; to mount the server but not run it, set enabled = false".into());
    }
    if let Some(protocol) = config.protocol.as_deref().filter(|name| pinned_revision(name).is_none()) {
        return Err(format!(
            "protocol: {protocol:?} is no revision that toold speaks: expected legacy or one of {}",
            known_revisions().join(", ")
        ));
    }
    let text = |text: &str| expand::variables(text, var);
    let texts = |map: &BTreeMap<String, String>| -> Result<BTreeMap<String, SecretText>, String> {
        map.iter().map(|(name, value)| Ok((name.clone(), text(value)?))).collect()
    };
    // Paths are shown and logged.
    let plain = |given: &str| {
        let text = text(given)?;
        text.plain().map(str::to_owned).ok_or_else(|| format!("{given:?} is a path, which can't hold a secret"))
    };
    let path = |given: &str| config::absolute(&plain(given)?, home);
    match (&config.command, &config.url, &config.socket) {
        (Some(program), None, None) => {
            let program = config::program(plain(program)?, home)?;
            let is_own = |name: &str| config.env.contains_key(name);
            let args = config.args.iter().map(|arg| expand::argument(arg, var, &is_own)).collect::<Result<_, _>>()?;
            let cwd = config.cwd.as_deref().map(path).transpose()?;
            Ok(ServerEndpoint::Stdio { program, args, env: texts(&config.env)?, cwd })
        }
        (None, Some(url), None) => {
            let text = text(url)?;
            let shown = text.filled(|_| Ok::<_, String>("secret".to_owned()))?;
            if !shown.starts_with("http://") && !shown.starts_with("https://") {
                return Err(format!("{url:?} is not an http or https URL"));
            }
            let oauth = OAuthSettings {
                client_id: config.oauth.client_id.as_deref().map(plain).transpose()?,
                client_secret: config
                    .oauth
                    .client_secret
                    .as_deref()
                    .map(|secret| expand::variables(secret, var))
                    .transpose()?,
                client_id_url: client_id_url.map(str::to_owned),
                scopes: config.oauth.scopes.clone(),
                redirect: config.oauth.redirect.as_ref().map(RedirectConfig::read).transpose()?,
                grant: match config.oauth.grant {
                    ServerOAuthGrant::AuthorizationCode => OAuthGrant::AuthorizationCode,
                    ServerOAuthGrant::ClientCredentials => OAuthGrant::ClientCredentials,
                    ServerOAuthGrant::JwtBearer => OAuthGrant::JwtBearer,
                    ServerOAuthGrant::IdJag => OAuthGrant::IdJag,
                },
                assertion_file: config.oauth.assertion_file.as_deref().map(path).transpose()?,
                identity_provider: config.oauth.identity_provider.as_ref().map(|provider| IdentityProvider {
                    token_endpoint: provider.token_endpoint.clone(),
                    client_id: provider.client_id.clone(),
                }),
            };
            match oauth.grant {
                OAuthGrant::ClientCredentials if oauth.client_id.is_none() || oauth.client_secret.is_none() => {
                    return Err("oauth: the grant client_credentials needs client_id and client_secret".into());
                }
                OAuthGrant::JwtBearer if oauth.assertion_file.is_none() => {
                    return Err("oauth: the grant jwt_bearer needs assertion_file".into());
                }
                OAuthGrant::IdJag if oauth.assertion_file.is_none() || oauth.identity_provider.is_none() => {
                    return Err("oauth: the grant id_jag needs assertion_file and identity_provider".into());
                }
                OAuthGrant::AuthorizationCode
                | OAuthGrant::ClientCredentials
                | OAuthGrant::JwtBearer
                | OAuthGrant::IdJag => {}
            }
            Ok(ServerEndpoint::Http { url: text, headers: texts(&config.headers)?, oauth })
        }
        (None, None, Some(socket)) => Ok(ServerEndpoint::Socket { path: path(socket)? }),
        (None, None, None) => Err("set one of command, url and socket: none of them is set".into()),
        _ => Err("set only one of command, url and socket: more than one is set".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(toml: &str) -> Vec<MountConfig<ServerEndpoint>> {
        let config: McpConfig = toml::from_str(toml).unwrap();
        let var = |name: &str| (name == "TOKEN").then(|| "secret".to_owned());
        mounts(&config, &SourceScope::Global, Some(Path::new("/home/u")), &var).servers
    }

    #[track_caller]
    fn check_unusable(toml: &str, words: &str) {
        match &read(&format!("[servers.a]\n{toml}"))[0].endpoint {
            ServerEndpoint::Unusable { why } => assert!(why.contains(words), "{why}"),
            other => panic!("{other:?} should not be usable"),
        }
    }

    #[test]
    fn variables_and_the_home_folder_are_put_in() {
        let servers = read(
            "[servers.web]\nurl = \"https://x.example/mcp\"\nheaders = { Authorization = \"Bearer ${env:TOKEN}\" }\n\
             [servers.files]\ncommand = \"~/bin/files\"\nargs = [\"${env:DIR:-/srv}\"]\ncwd = \"~/w\"\n",
        );
        let ServerEndpoint::Stdio { program, args, cwd, .. } = &servers[0].endpoint else { panic!("{servers:?}") };
        let expected = ("/home/u/bin/files", vec![SecretText::from("/srv")], Some(PathBuf::from("/home/u/w")));
        assert_eq!((program.as_str(), args.clone(), cwd.clone()), expected);
        let ServerEndpoint::Http { headers, .. } = &servers[1].endpoint else { panic!("{servers:?}") };
        assert_eq!(headers["Authorization"], SecretText::from("Bearer secret"));
    }

    #[test]
    fn secrets_are_named_and_not_put_in() {
        let servers = read(
            "[servers.web]\nurl = \"https://x.example/mcp?key=${secret:KEY}\"\n\
             headers = { Authorization = \"Bearer ${secret:TOKEN}\" }\n",
        );
        assert_eq!(servers[0].endpoint.secrets(), ["KEY", "TOKEN"]);
        check_unusable("command = \"/bin/${secret:A}\"", "can't hold a secret");
        check_unusable("command = \"a\"\nenv = { A = \"${secret:a b}\" }", "not the name of a secret");
    }

    #[test]
    fn invalid_server_is_reported_and_does_not_affect_others() {
        check_unusable("", "none of");
        check_unusable("command = \"a\"\nurl = \"http://x\"", "more than one");
        check_unusable("command = \"bin/a\"", "absolute");
        check_unusable("socket = \"run/a\"", "absolute");
        check_unusable("url = \"ftp://x\"", "http");
        check_unusable("command = \"a\"\nargs = [\"${env:NOT_THERE}\"]", "NOT_THERE");
        check_unusable("command = \"a\"\nargs = [\"${env:NOT_THERE}\"]\nenv = { NOT_THERE = \"x\" }", "NOT_THERE");
        check_unusable("command = \"a\"\ntools = { deny = [\"[\"] }", "tools");
    }

    #[test]
    fn servers_of_other_programs_are_taken_and_ours_comes_first() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mcp.json");
        let json = r#"{
            // As VS Code allows.
            "mcpServers": {
                "a": {"command": "theirs"},
                "b": {"command": "b", "args": ["${env:TOKEN}", "//no comment"], "disabled": true},
                "c": {"type": "http", "url": "http://127.0.0.1:1/", "headers": {"X": "1"}},
                "old": {"type": "sse", "url": "http://127.0.0.1:1/"},
                "socket": {"type": "ws", "url": "ws://127.0.0.1:1/"},
                "self": {"command": "/usr/bin/toolctl", "args": ["mcp"]},
                "odd": 7,
            },
        }"#;
        std::fs::write(&file, json).unwrap();
        let toml = format!("import = [\"/not/there.json\", {:?}]\n[servers.a]\ncommand = \"ours\"\n", file);
        let servers = read(&toml);
        let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c", "odd", "old", "socket"]);
        assert!(matches!(&servers[0].endpoint, ServerEndpoint::Stdio { program, .. } if program == "ours"));
        assert!(
            matches!(&servers[1].endpoint, ServerEndpoint::Stdio { args, .. } if *args == ["secret", "//no comment"].map(SecretText::from))
        );
        assert!(!servers[1].enabled && matches!(servers[2].endpoint, ServerEndpoint::Http { .. }));
        assert!(matches!(servers[3].endpoint, ServerEndpoint::Unusable { .. }));
        assert!(matches!(servers[4].endpoint, ServerEndpoint::Http { .. }));
        assert!(matches!(&servers[5].endpoint, ServerEndpoint::Unusable { why } if why.contains("kind ws")));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_a_problem_with_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mcp.json");
        std::fs::write(&file, "{\"mcpServers\": [").unwrap();
        let config = McpConfig { import: vec![file.display().to_string()], ..McpConfig::default() };
        let mounts = mounts(&config, &SourceScope::Global, None, &|_| None);
        assert!(mounts.servers.is_empty() && mounts.problems[0].contains("mcp.json"), "{:?}", mounts.problems);
    }
}
