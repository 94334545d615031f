//! `toolctl mcp login`, `logout` and `status`: logins at remote MCP servers.

use std::io::{IsTerminal, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anyhow::Context;
use clap::Args;
use comfy_table::{Cell, Color};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, stdin};
use tokio::net::{TcpListener, TcpStream};
use toold_client::{Client, ClientError};
use toold_proto::daemon::NoParams;
use toold_proto::mcp::{BeginMcpLogin, FinishMcpLogin, McpLoginState, McpServerList, NameMcpLogin};
use toold_proto::method::{McpLoginBegin, McpLoginFinish, McpLogout, McpServersList};
use toold_proto::secret::SecretValue;

use crate::commands::secrets;
use crate::exit::{self, OK};
use crate::globals::Globals;
use crate::output::{self, one_line, print_json};
use crate::{browser, connection, table};

/// Log in to a remote MCP server, for all clients of the daemon
///
/// Opens the server's page in your browser, or prints its address. When the browser is on another machine, paste the
/// address that it ends at: the page there does not load, which does no harm.
#[derive(Debug, Args)]
pub(crate) struct McpLoginArgs {
    /// The name of the server
    name: String,
    /// Print the address of the page, and open no browser
    #[arg(long)]
    no_browser: bool,
    /// The port of this machine that the page redirects to, for a client that is registered with one; that of `redirect`
    /// in the server's configuration by default, else any free port
    #[arg(long, value_parser = crate::amount::port)]
    port: Option<u16>,
}

/// Log out of a remote MCP server: the daemon forgets its tokens, and has them revoked
#[derive(Debug, Args)]
pub(crate) struct McpLogoutArgs {
    /// The name of the server
    name: String,
}

/// Show the logins at remote MCP servers
#[derive(Debug, Args)]
pub(crate) struct McpStatusArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The address that the page redirects to, when the configuration does not say.
const HOST: &str = "127.0.0.1";
const CALLBACK: &str = "/callback";
/// The size limit of the request that a browser makes there, and of a pasted address.
const MAX_REQUEST: u64 = 64 * 1024;

pub(crate) async fn login(args: &McpLoginArgs, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    secrets::unlock_if_asked(&client).await?;
    let servers = client.call::<McpServersList>(NoParams {}).await?.servers;
    let server = servers.into_iter().find(|server| server.name == args.name);
    let redirect = RedirectAddress::of(server.and_then(|server| server.login_redirect).as_deref(), args.port);
    let listener = RedirectListener::bind(&redirect).await?;
    let done = match log_in(args, &client, &listener).await {
        Err(error) if is_client_refused(&error) => {
            writeln!(output::stderr(), "{}: trying once more with another one", output::plain(&format!("{error:#}")))?;
            log_in(args, &client, &listener).await?
        }
        done => done?,
    };
    writeln!(output::stderr(), "logged in to {}", one_line(&done))?;
    Ok(OK)
}

/// Whether the authorization server does not know the client that it registered for this login.
fn is_client_refused(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref::<ClientError>(), Some(ClientError::Rpc(rpc)) if rpc.kind() == "login_client_refused")
}

/// Has the person log in on the server's page. Returns the server.
async fn log_in(args: &McpLoginArgs, client: &Client, listener: &RedirectListener) -> anyhow::Result<String> {
    let begin = BeginMcpLogin { name: args.name.clone(), redirect_uri: listener.uri.clone() };
    let begun = client.call::<McpLoginBegin>(begin).await?;
    if args.no_browser || !browser::open(&begun.url).await {
        writeln!(output::stdout(), "{}", one_line(&begun.url))?;
        output::stdout().flush()?;
        writeln!(output::stderr(), "open this address in a browser, and log in")?;
        if std::io::stdin().is_terminal() {
            writeln!(output::stderr(), "if the browser is on another machine, paste the address that it ends at here")?;
        }
    } else {
        writeln!(output::stderr(), "log in to {} in your browser", one_line(&args.name))?;
    }
    tokio::select! {
        done = answer_browser(listener, client) => done,
        pasted = pasted(client) => pasted,
        () = interrupted() => Err(exit::interrupted("nobody logged in")),
    }
}

/// The address that a page redirects to.
struct RedirectAddress {
    host: String,
    /// 0 for any free one.
    port: u16,
    path: String,
}

impl RedirectAddress {
    /// `configured`: `HOST`, `HOST:PORT` or `HOST:PORT/PATH`.
    fn of(configured: Option<&str>, port: Option<u16>) -> Self {
        let configured = configured.unwrap_or(HOST);
        let (authority, path) = match configured.find('/') {
            Some(at) => configured.split_at(at),
            None => (configured, CALLBACK),
        };
        // The address of IPv6 stands in brackets.
        let colon = authority.rfind(':').filter(|colon| !authority[*colon..].contains(']'));
        let (host, configured_port) = match colon {
            Some(colon) => (&authority[..colon], authority[colon + 1..].parse().ok()),
            None => (authority, None),
        };
        Self { host: host.to_owned(), port: port.or(configured_port).unwrap_or(0), path: path.to_owned() }
    }
}

/// Waits for the browser at an address of this machine.
struct RedirectListener {
    listener: TcpListener,
    /// With the name `localhost`, a browser may come by either address.
    also: Option<TcpListener>,
    uri: String,
    path: String,
}

impl RedirectListener {
    async fn bind(redirect: &RedirectAddress) -> anyhow::Result<Self> {
        let RedirectAddress { host, port, path } = redirect;
        let address = if host == "[::1]" { IpAddr::from(Ipv6Addr::LOCALHOST) } else { Ipv4Addr::LOCALHOST.into() };
        let listener = TcpListener::bind((address, *port)).await;
        let listener = listener.with_context(|| format!("can't listen on port {port} of {address}"))?;
        let port = listener.local_addr()?.port();
        let also = match host.as_str() {
            // A machine without IPv6 does not need it.
            "localhost" => TcpListener::bind((Ipv6Addr::LOCALHOST, port)).await.ok(),
            _ => None,
        };
        Ok(Self { listener, also, uri: format!("http://{host}:{port}{path}"), path: path.clone() })
    }

    async fn accept(&self) -> std::io::Result<TcpStream> {
        let also = async {
            match &self.also {
                Some(also) => also.accept().await,
                None => std::future::pending().await,
            }
        };
        let accepted = tokio::select! {
            accepted = self.listener.accept() => accepted,
            accepted = also => accepted,
        };
        accepted.map(|(stream, _)| stream)
    }
}

pub(crate) async fn logout(args: &McpLogoutArgs, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let done = client.call::<McpLogout>(NameMcpLogin { name: args.name.clone() }).await?;
    let name = one_line(&args.name);
    match &done.not_revoked {
        None => writeln!(output::stderr(), "logged out of {name}; its tokens are revoked")?,
        Some(why) => writeln!(
            output::stderr(),
            "logged out of {name}; its tokens are forgotten here, but may stay valid until they expire: {}",
            one_line(why)
        )?,
    }
    Ok(OK)
}

pub(crate) async fn status(args: &McpStatusArgs, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let mut list = client.call::<McpServersList>(NoParams {}).await?;
    list.servers.retain(|server| server.login.is_some());
    if args.json {
        print_json(&list)?;
        return Ok(OK);
    }
    output::print(&render(&list, output::terminal_width()))?;
    if list.servers.is_empty() {
        writeln!(output::stderr(), "no mounted server has a login or asks for one")?;
    }
    Ok(OK)
}

/// Waits for the browser's redirect, and shows there how the login ended. Other requests, such as for an icon, and
/// redirects that belong to no login do not end the wait.
async fn answer_browser(listener: &RedirectListener, client: &Client) -> anyhow::Result<String> {
    let RedirectListener { uri, path: own, .. } = listener;
    let origin = uri.strip_suffix(own.as_str()).unwrap_or(uri);
    loop {
        let stream = listener.accept().await.context("can't accept the browser's connection")?;
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        let read = (&mut stream).take(MAX_REQUEST).read_line(&mut line).await;
        let path = read.ok().and_then(|_| line.strip_prefix("GET ")?.split(' ').next().map(str::to_owned));
        let path = path.filter(|path| path.strip_prefix(own.as_str()).is_some_and(|rest| rest.starts_with('?')));
        let Some(path) = path else {
            respond(stream.into_inner(), "404 Not Found", "There is nothing here.").await;
            continue;
        };
        match finish(client, format!("{origin}{path}")).await {
            Ok(name) => {
                respond(stream.into_inner(), "200 OK", "You are logged in. You can close this page.").await;
                return Ok(name);
            }
            Err(error) => {
                let text = "The login failed. The terminal says why. You can close this page.";
                respond(stream.into_inner(), "400 Bad Request", text).await;
                return Err(error);
            }
        }
    }
}

async fn respond(mut stream: TcpStream, status: &str, text: &str) {
    let page = format!("<!doctype html><title>toold</title><p>{text}</p>\n");
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
        page.len()
    );
    // The browser may be gone, which changes nothing.
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
}

/// Waits for a person to paste where the browser ended; for ever when there is no terminal.
async fn pasted(client: &Client) -> anyhow::Result<String> {
    if !std::io::stdin().is_terminal() {
        return std::future::pending().await;
    }
    let mut lines = BufReader::new(stdin().take(MAX_REQUEST)).lines();
    loop {
        let Some(line) = lines.next_line().await.context("can't read the terminal")? else {
            return std::future::pending().await;
        };
        if line.trim().is_empty() {
            continue;
        }
        match finish(client, line.trim().to_owned()).await {
            Ok(name) => return Ok(name),
            Err(error) => writeln!(output::stderr(), "{}", output::plain(&format!("{error:#}")))?,
        }
    }
}

async fn finish(client: &Client, redirected_to: String) -> anyhow::Result<String> {
    let finish = FinishMcpLogin { redirected_to: SecretValue(redirected_to) };
    Ok(client.call::<McpLoginFinish>(finish).await?.name)
}

async fn interrupted() {
    // Without the signal there is nothing to wait for.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn render(list: &McpServerList, width: Option<u16>) -> String {
    if list.servers.is_empty() {
        return String::new();
    }
    let mut rows = table::new(width);
    rows.set_header(table::header(&["SERVER", "LOGIN", "SCOPES", "EXPIRES", "AT"]));
    for server in &list.servers {
        let Some(login) = &server.login else { continue };
        let (state, color) = match login.state {
            McpLoginState::LoggedIn => ("logged in", Color::Green),
            McpLoginState::Required => ("required", Color::Red),
            McpLoginState::Locked => ("locked", Color::Yellow),
        };
        rows.add_row([
            table::name(&one_line(&server.name)),
            Cell::new(state).fg(color),
            Cell::new(one_line(&login.scopes.join(" "))),
            Cell::new(login.expires.as_deref().map(one_line).unwrap_or_default()),
            Cell::new(login.issuer.as_deref().map(one_line).unwrap_or_default()),
        ]);
    }
    table::render(&rows)
}
