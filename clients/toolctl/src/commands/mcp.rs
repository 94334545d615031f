//! `toolctl mcp`: the shared daemon as an MCP server on stdin and stdout.

pub(crate) mod add;
mod bridge;
mod doctor;
pub(crate) mod install;
pub(crate) mod jsonc;
mod login;
mod search;
pub(crate) mod server_entry;
pub(crate) mod server_health;
mod token;
pub(crate) mod toml_table;

use std::ffi::OsString;
use std::hash::{BuildHasher, RandomState};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, Parser, Subcommand, ValueEnum};
use serde_json::{Map, Value, json};
use tokio::io::{BufReader, stdin};
use tokio::net::UnixStream;
use toold_client::client::connect_stream;
use toold_client::{Client, ClientError, environment};
use toold_proto::daemon::NoParams;
use toold_proto::method::DaemonGetStatus;
use toold_proto::session::ClientRole;

use crate::commands::mcp::bridge::{Bridge, ClientInput, DaemonToReach, MAX_STARTS, answer_line, line_of, write_out};
use crate::commands::mcp_servers;
use crate::connection;
use crate::exit::OK;
use crate::globals::Globals;
use crate::{output, sources};

/// Serve MCP clients; set up MCP servers and the clients' entries
///
/// For clients that start their MCP servers themselves: set `toolctl mcp` as the command. The daemon is started if
/// none is running. If another daemon replaces it, the client's session continues there. Clients that offer roots work
/// in these, others in --cwd.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    action: Option<McpAction>,
    /// The folder the client works in; defaults to the current folder
    #[arg(long, value_name = "FOLDER")]
    cwd: Option<PathBuf>,
    /// Offer only tools of this source: builtin, plugin, frontend, mcp, or a name; can be repeated. The tools of one MCP
    /// server keep the server's own names
    #[arg(long, value_name = "SOURCE")]
    source: Vec<String>,
    /// Offer no tools of this source; can be repeated
    #[arg(long, value_name = "SOURCE")]
    without_source: Vec<String>,
    /// Which tools the client is listed; defaults to what the configuration says for it
    #[arg(long, value_enum)]
    listing: Option<ListingArg>,
    /// Offer only what this profile of the configuration offers ([mcp.profiles.NAME], or a built-in one: all,
    /// without-files-and-shell)
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ListingArg {
    /// All tools
    All,
    /// The pinned tools, with tools_search and tools_call, which find and call the others
    Deferred,
}

#[derive(Debug, Subcommand)]
enum McpAction {
    #[command(visible_aliases = ["servers", "get"])]
    List(mcp_servers::McpListArgs),
    Restart(mcp_servers::McpRestartArgs),
    Test(mcp_servers::McpTestArgs),
    Logs(mcp_servers::McpLogsArgs),
    Search(search::McpSearchArgs),
    Add(add::McpAddArgs),
    #[command(visible_alias = "rm")]
    Remove(mcp_servers::McpRemoveArgs),
    Install(install::McpInstallArgs),
    Doctor(doctor::McpDoctorArgs),
    Token(token::McpTokenArgs),
    Login(login::McpLoginArgs),
    Logout(login::McpLogoutArgs),
    Status(login::McpStatusArgs),
}

pub(crate) async fn run(mcp: McpArgs, globals: &Globals) -> anyhow::Result<u8> {
    match mcp.action {
        Some(McpAction::List(list)) => return mcp_servers::list(&list, globals).await,
        Some(McpAction::Restart(restart)) => return mcp_servers::restart(&restart, globals).await,
        Some(McpAction::Test(test)) => return mcp_servers::test(test, globals).await,
        Some(McpAction::Logs(logs)) => return mcp_servers::logs(&logs, globals).await,
        Some(McpAction::Remove(remove)) => return mcp_servers::remove(&remove, globals).await,
        Some(McpAction::Search(search)) => return search::run(search, globals).await,
        Some(McpAction::Add(add)) => return add::run(add, globals).await,
        Some(McpAction::Install(install)) => return install::run(install, globals).await,
        Some(McpAction::Doctor(doctor)) => return doctor::run(doctor, globals).await,
        Some(McpAction::Token(token)) => return token::run(&token, globals).await,
        Some(McpAction::Login(login)) => return login::login(&login, globals).await,
        Some(McpAction::Logout(logout)) => return login::logout(&logout, globals).await,
        Some(McpAction::Status(status)) => return login::status(&status, globals).await,
        None => {}
    }
    if std::io::stdin().is_terminal() {
        let hint = "toolctl mcp speaks MCP on stdin and stdout with the program that starts it, so nothing is shown here; Ctrl-C \
                    ends it\n`toolctl mcp list` shows the MCP servers, `toolctl mcp install CLIENT` makes an entry for toold, \
                    `toolctl mcp --help` lists the rest";
        writeln!(output::stderr(), "{hint}")?;
    }
    let cwd = match mcp.cwd {
        Some(cwd) => std::path::absolute(&cwd).with_context(|| format!("can't find {}", cwd.display()))?,
        None => std::env::current_dir().context("can't determine the current folder")?,
    };
    let env = passed_on(std::env::vars_os());
    let bridge = format!("{:016x}", RandomState::new().hash_one(std::process::id()));
    let meta = ConnectionMeta {
        bridge: &bridge,
        cwd: &cwd,
        env,
        only: &mcp.source,
        without: &mcp.without_source,
        listing: mcp.listing,
        profile: mcp.profile.as_deref(),
    };
    serve(&meta, globals).await?;
    Ok(OK)
}

/// The arguments of a client's entry.
#[derive(Debug, Parser)]
#[command(name = "toolctl mcp")]
struct EntryArguments {
    #[command(flatten)]
    _globals: Globals,
    #[command(flatten)]
    mcp: McpArgs,
}

/// A first message as the bridge sends it to the daemon, for a client whose entry has these arguments.
///
/// # Errors
/// `toolctl mcp` does not take the arguments, in words for people.
fn first_message(arguments: &[String], message: &Value) -> anyhow::Result<Value> {
    let EntryArguments { mcp, .. } = EntryArguments::try_parse_from(arguments).map_err(|error| {
        let words = error.to_string();
        anyhow::anyhow!("`toolctl {}`: {}", arguments.join(" "), words.lines().next().unwrap_or_default())
    })?;
    let meta = ConnectionMeta {
        bridge: "",
        cwd: mcp.cwd.as_deref().unwrap_or(Path::new("/")),
        env: Map::new(),
        only: &mcp.source,
        without: &mcp.without_source,
        listing: mcp.listing,
        profile: mcp.profile.as_deref(),
    };
    let message = meta.put_into(message.to_string().as_bytes()).context("a request of MCP has parameters")?;
    Ok(serde_json::from_slice(&message)?)
}

/// Facts about the whole connection, which the bridge adds to its first message.
struct ConnectionMeta<'a> {
    /// The name of this bridge, which no other has.
    bridge: &'a str,
    cwd: &'a Path,
    env: Map<String, Value>,
    only: &'a [String],
    without: &'a [String],
    listing: Option<ListingArg>,
    profile: Option<&'a str>,
}

/// The variables that this program was started with, for the commands of the client's sessions: a virtual environment,
/// a version of Node or a toolchain of Rust is chosen by them.
fn passed_on(variables: impl Iterator<Item = (OsString, OsString)>) -> Map<String, Value> {
    let variables = environment::passed_on(Some(ClientRole::Agent), variables);
    variables.into_iter().map(|(name, value)| (name, value.into())).collect()
}

async fn serve(meta: &ConnectionMeta<'_>, globals: &Globals) -> anyhow::Result<()> {
    let socket = connection::socket(globals)?;
    let (control, stream) = reach(&socket, globals, &[meta.only, meta.without].concat()).await?;
    let mut input = ClientInput::new(BufReader::new(stdin()));
    // Only the first message is changed; all others pass unchanged.
    let first = loop {
        match input.next().await {
            None => return Ok(()),
            Some(Ok(first)) => break line_of(&first),
            Some(Err(unreadable)) => write_out(&[answer_line(&unreadable)]).await?,
        }
    };
    let again = async |next: DaemonToReach<'_>| {
        let before = match next {
            DaemonToReach::Successor(control) => control.successor().await?,
            DaemonToReach::Running => Client::connect(&socket).await?,
            DaemonToReach::Started => return reach(&socket, globals, &[]).await,
        };
        pair(before, &socket).await
    };
    let first = match (meta.put_into(&first), meta.profile) {
        (Some(changed), _) => changed,
        (None, None) => first,
        // The daemon would serve all tools.
        (None, Some(profile)) => bail!("profile {profile}: the first message is no request of MCP that can carry it"),
    };
    Bridge::new(meta.bridge, &socket).run(first, input, control, stream, again).await
}

/// Two connections to a daemon that knows these sources. It is started if none runs, and again if it ends meanwhile.
async fn reach(socket: &Path, globals: &Globals, sources: &[String]) -> anyhow::Result<(Client, UnixStream)> {
    let mut ends = 0;
    loop {
        // Keeps the daemon from exiting because it has no clients, and learns when it is replaced.
        let client = connection::open(globals).await?;
        let reached = async {
            sources::check(&client, sources).await?;
            pair(client, socket).await
        };
        match reached.await {
            Err(error) if ends < MAX_STARTS && connection::is_lost(&error) => ends += 1,
            reached => return reached,
        }
    }
}

/// Two connections to one daemon, of which the second is for the client. The listening socket may be handed over at any
/// moment, but connections are accepted in their order: what is opened between two of one daemon is of that daemon.
async fn pair(mut before: Client, socket: &Path) -> anyhow::Result<(Client, UnixStream)> {
    // As a value: only what has always been there is read.
    let epoch = async |client: &Client| -> Result<Value, ClientError> {
        Ok(client.call_as::<DaemonGetStatus, Value>(NoParams {}).await?["epoch"].take())
    };
    loop {
        let first = epoch(&before).await?;
        let stream = connect_stream(socket).await?;
        let behind = Client::connect(socket).await?;
        if epoch(&behind).await? == first {
            return Ok((behind, stream));
        }
        before = behind;
    }
}

/// `_meta`: where requests of the connection work that do not say so themselves.
const CWD_KEY: &str = "toold/default-cwd";
/// `_meta`: the name of the bridge, with which the ids of its calls begin.
const BRIDGE_KEY: &str = "toold/bridge";
/// `_meta`: the variables of the connection's sessions.
const ENV_KEY: &str = "toold/env";

/// `_meta`: the sources whose tools the connection sees.
const SOURCES_KEY: &str = "toold/sources";
/// `_meta`: which tools the connection is listed.
const LISTING_KEY: &str = "toold/listing";
/// `_meta`: the profile that the connection is limited to.
const PROFILE_KEY: &str = "toold/profile";
/// `_meta` of requests of the stateless revisions.
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

impl ConnectionMeta<'_> {
    /// The first message with these facts in its `_meta`; `None` if it cannot carry them. A profile is carried only by a
    /// request that the daemon takes for one of MCP.
    fn put_into(&self, line: &[u8]) -> Option<Vec<u8>> {
        let mut message = serde_json::from_slice::<Value>(line).ok()?;
        if self.profile.is_some() && !opens_mcp(&message) {
            return None;
        }
        let members = message.as_object_mut().filter(|members| members.contains_key("method"))?;
        let params = members.entry("params").or_insert_with(|| json!({})).as_object_mut()?;
        let meta = params.entry("_meta").or_insert_with(|| json!({})).as_object_mut()?;
        if let Some(cwd) = self.cwd.to_str() {
            meta.entry(CWD_KEY).or_insert_with(|| cwd.into());
        }
        if !self.bridge.is_empty() {
            meta.insert(BRIDGE_KEY.to_owned(), self.bridge.into());
        }
        if !self.env.is_empty() {
            meta.insert(ENV_KEY.to_owned(), self.env.clone().into());
        }
        let mut sources = Map::new();
        for (key, named) in [("only", self.only), ("without", self.without)] {
            if !named.is_empty() {
                sources.insert(key.to_owned(), json!(named));
            }
        }
        if !sources.is_empty() {
            // The command line overrides the client.
            meta.insert(SOURCES_KEY.to_owned(), sources.into());
        }
        if let Some(listing) = self.listing.and_then(|listing| listing.to_possible_value()) {
            meta.insert(LISTING_KEY.to_owned(), listing.get_name().into());
        }
        if let Some(profile) = self.profile {
            meta.insert(PROFILE_KEY.to_owned(), profile.into());
        }
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        Some(line)
    }
}

/// Whether the daemon serves a connection that begins with this message as one of MCP, and nothing else.
fn opens_mcp(message: &Value) -> bool {
    let params = &message["params"];
    let names_revision = match message["method"].as_str() {
        Some("initialize") => params.get("protocolVersion").is_some(),
        Some("server/discover") => true,
        _ => params["_meta"].get(VERSION_KEY).is_some(),
    };
    message.get("id").is_some() && names_revision
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(cwd: &str) -> ConnectionMeta<'_> {
        ConnectionMeta {
            bridge: "",
            cwd: Path::new(cwd),
            env: Map::new(),
            only: &[],
            without: &[],
            listing: None,
            profile: None,
        }
    }

    #[track_caller]
    fn check(line: &str, expected: &str) {
        let changed = plain("/work dir").put_into(line.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(changed).unwrap().trim_end(), expected);
    }

    #[test]
    fn the_first_request_says_where_the_client_works() {
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"toold/default-cwd":"/work dir"}}}"#,
        );
        check(
            r#"{"method":"m","params":{"_meta":{"a":1}}}"#,
            r#"{"method":"m","params":{"_meta":{"a":1,"toold/default-cwd":"/work dir"}}}"#,
        );
    }

    #[test]
    fn the_first_request_says_which_variables_the_client_was_started_with() {
        let variables =
            [("PATH", "/venv/bin:/bin"), ("TOOLD_SOCKET", "/s")].map(|(name, value)| (name.into(), value.into()));
        let env = passed_on(variables.into_iter());
        let changed = ConnectionMeta { env, ..plain("/w") }.put_into(br#"{"method":"m"}"#).unwrap();
        assert_eq!(
            String::from_utf8(changed).unwrap().trim_end(),
            r#"{"method":"m","params":{"_meta":{"toold/default-cwd":"/w","toold/env":{"PATH":"/venv/bin:/bin"}}}}"#
        );
    }

    #[test]
    fn the_first_request_says_which_tools_are_shown() {
        let (only, without) = (["plugin".to_owned(), "mcp".to_owned()], ["tickets".to_owned()]);
        let listing = Some(ListingArg::Deferred);
        let meta = ConnectionMeta { only: &only, without: &without, listing, ..plain("/w") };
        let changed = meta.put_into(br#"{"method":"m"}"#).unwrap();
        assert_eq!(
            String::from_utf8(changed).unwrap().trim_end(),
            r#"{"method":"m","params":{"_meta":{"toold/default-cwd":"/w","toold/sources":{"only":["plugin","mcp"],"without":["tickets"]},"toold/listing":"deferred"}}}"#
        );
    }

    #[test]
    fn other_messages_pass_unchanged() {
        for line in ["{", "[1]", r#"{"id":1,"result":{}}"#, r#"{"method":"m","params":[1]}"#] {
            assert_eq!(plain("/w").put_into(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn a_profile_is_carried_by_requests_of_mcp_alone() {
        let meta = ConnectionMeta { profile: Some("web"), ..plain("/w") };
        for line in [
            r#"{"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#,
            r#"{"id":1,"method":"server/discover"}"#,
            r#"{"id":1,"method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","toold/profile":"all"}}}"#,
        ] {
            let changed: Value = serde_json::from_slice(&meta.put_into(line.as_bytes()).unwrap()).unwrap();
            assert_eq!(changed["params"]["_meta"]["toold/profile"], "web", "the command line overrides the client");
        }
        for line in [
            r#"{"id":1,"method":"session.open","params":{}}"#,
            r#"{"id":1,"method":"initialize","params":{"processId":1}}"#,
            r#"{"method":"server/discover"}"#,
            r#"[{"id":1,"method":"server/discover"}]"#,
            "{",
        ] {
            assert_eq!(meta.put_into(line.as_bytes()), None, "{line}");
        }
    }
}
