//! `toolctl mcp doctor`: checks the mounted MCP servers, that MCP clients can reach the daemon, and which are set up.

use std::io::Write;
use std::os::unix::fs::MetadataExt;

use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::time::timeout;
use toold_client::client::connect_stream;
use toold_client::start::PATIENCE;
use toold_proto::daemon::NoParams;
use toold_proto::mcp::ALL_TOOLS;
use toold_proto::method::{DaemonGetStatus, McpServersList, PermissionsReview};

use crate::commands::mcp::install::{McpClient, home};
use crate::commands::mcp::token::{profile_tokens, token_file};
use crate::commands::mcp::{first_message, server_health};
use crate::connection;
use crate::exit::{NOT_RUN, OK};
use crate::finding::{any_bad, show};
use crate::globals::Globals;
use crate::output::{self, counted};
use crate::profiles;

/// Check the mounted MCP servers, and that MCP clients can reach the daemon; show which clients are set up
#[derive(Debug, Args)]
pub(crate) struct McpDoctorArgs {}

pub(crate) async fn run(_: McpDoctorArgs, globals: &Globals) -> anyhow::Result<u8> {
    let mut out = output::stdout();
    let mut well = true;
    let client = connection::open(globals).await?;
    let status = client.call::<DaemonGetStatus>(NoParams {}).await?;
    // A person's frontend from now on, if it may be one: the program that started it is no agent because of the test.
    let _ = client.call::<PermissionsReview>(NoParams {}).await;
    let spoken = timeout(PATIENCE, handshake(globals, &[])).await;
    match spoken.unwrap_or_else(|_| Err(anyhow!("no answer after {} s", PATIENCE.as_secs()))) {
        Ok((revision, tools)) => writeln!(out, "ok    stdio: revision {revision}, {}", counted(tools, "tool"))?,
        Err(error) => {
            well = false;
            writeln!(out, "bad   stdio: {error:#}")?;
        }
    }
    match &status.mcp_url {
        None => writeln!(out, "-     HTTP: off (mcp.listen)")?,
        Some(url) => {
            let file = token_file()?;
            match std::fs::metadata(&file) {
                Ok(metadata) if metadata.mode() & 0o077 == 0 => {
                    writeln!(out, "ok    HTTP: {url}, token in {}", file.display())?;
                }
                Ok(_) => {
                    well = false;
                    writeln!(out, "bad   HTTP: {} is accessible to other users", file.display())?;
                }
                Err(error) => writeln!(out, "-     HTTP: {url}; no token at {}: {error}", file.display())?,
            }
        }
    }
    for problem in status.problems.iter().filter(|problem| problem.contains("MCP")) {
        well = false;
        writeln!(out, "bad   {problem}")?;
    }
    let known = profiles::names(&client).await?;
    for profile in profiles_with_token()? {
        match profiles::check(&profile, &known) {
            Ok(()) => writeln!(out, "ok    HTTP: token of profile {profile}")?,
            Err(error) => {
                well = false;
                writeln!(
                    out,
                    "bad   HTTP: token of profile {profile}: {error}; toolctl mcp token --profile {profile} --revoke"
                )?;
            }
        }
    }
    let servers = client.call::<McpServersList>(NoParams {}).await?;
    let findings = server_health::diagnosed(&client, &servers).await;
    well &= !any_bad(&findings);
    show(&findings, &mut out)?;
    let home = home()?;
    for client in McpClient::value_variants() {
        let name = client.name();
        let file = client.found_file(&home);
        match std::fs::read_to_string(&file) {
            Ok(text) if client.has_entry(&text) => {
                let profile = client.profile(&text).unwrap_or_else(|| ALL_TOOLS.to_owned());
                let arguments = client.arguments(&text).unwrap_or_default();
                let spoken = timeout(PATIENCE, handshake(globals, &arguments)).await;
                match spoken.unwrap_or_else(|_| Err(anyhow!("no answer after {} s", PATIENCE.as_secs()))) {
                    Ok((_, tools)) => writeln!(
                        out,
                        "ok    {name}: {}, profile {profile}: {}",
                        file.display(),
                        counted(tools, "tool")
                    )?,
                    Err(error) => {
                        well = false;
                        writeln!(out, "bad   {name}: {}, profile {profile}: {error:#}", file.display())?;
                    }
                }
            }
            Ok(_) => writeln!(out, "-     {name}: not set up; toolctl mcp install {name}")?,
            Err(_) => writeln!(out, "-     {name}: no {}", file.display())?,
        }
    }
    Ok(if well { OK } else { NOT_RUN })
}

/// The names of the files of tokens, in their order.
fn profiles_with_token() -> anyhow::Result<Vec<String>> {
    let Ok(entries) = std::fs::read_dir(profile_tokens()?) else { return Ok(Vec::new()) };
    let mut names: Vec<String> = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}

/// Connects as an MCP client does whose entry has these arguments, or none; returns the protocol revision and the number of
/// tools that it is listed.
async fn handshake(globals: &Globals, arguments: &[String]) -> anyhow::Result<(String, u64)> {
    let mut stream = BufReader::new(connect_stream(&connection::socket(globals)?).await?);
    let own = json!({"name": "toolctl-doctor", "version": env!("CARGO_PKG_VERSION")});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": own});
    let hello = ask(&mut stream, 1, "initialize", params, arguments).await?;
    send(&mut stream, json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await?;
    let listed = ask(&mut stream, 2, "tools/list", json!({}), &[]).await?;
    let revision = hello["protocolVersion"].as_str().unwrap_or_default().to_owned();
    Ok((revision, listed["tools"].as_array().map_or(0, |tools| tools.len() as u64)))
}

async fn send(stream: &mut (impl AsyncWrite + Unpin), message: Value) -> anyhow::Result<()> {
    Ok(stream.write_all(format!("{message}\n").as_bytes()).await?)
}

/// Sends a request, and returns the result in its answer. `arguments`: those of the entry, if it is the first request.
async fn ask(
    stream: &mut (impl AsyncBufRead + AsyncWrite + Unpin),
    id: u64,
    method: &str,
    params: Value,
    arguments: &[String],
) -> anyhow::Result<Value> {
    let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    send(stream, if arguments.is_empty() { request } else { first_message(arguments, &request)? }).await?;
    let mut line = String::new();
    while stream.read_line(&mut line).await? > 0 {
        let mut answer: Value = serde_json::from_str(&line).context("the daemon's answer is not JSON")?;
        if let Some(error) = answer.get("error") {
            anyhow::bail!("{}", error["message"].as_str().map_or_else(|| error.to_string(), str::to_owned));
        }
        if answer["id"] == id {
            return Ok(answer["result"].take());
        }
        line.clear();
    }
    anyhow::bail!("the daemon closed the connection")
}
