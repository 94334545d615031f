//! Which agents are on this machine, and what is installed for them.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::commands::agents::hooks_file;
use crate::commands::agents::programs::ProgramState;
use crate::commands::agents::switched_off::{SwitchedOff, switched_off_here};
use crate::commands::hook::last_call::{self, LastHook};
use crate::commands::hook::{FailArg, HookAgent};
use crate::commands::mcp::install::{self, McpClient};
use crate::config_file;

/// An agent whose program, folder or hooks are there.
pub(super) struct FoundAgent {
    pub(super) agent: HookAgent,
    pub(super) program: Option<PathBuf>,
    pub(super) version: Option<String>,
    pub(super) has_hooks: bool,
    /// They are as the installation wrote them.
    pub(super) has_whole_hooks: bool,
    /// Their answer when there is no daemon.
    pub(super) fail: Option<FailArg>,
    /// The setting that keeps the hooks from running here.
    pub(super) hooks_off: Option<SwitchedOff>,
    pub(super) has_mcp: bool,
    /// Its command lines run through `toolctl confine`.
    pub(super) confines: bool,
    /// Whether the daemon knows it by its program.
    pub(super) program_state: ProgramState,
    pub(super) last_call: Option<LastHook>,
}

impl HookAgent {
    /// The name of its program.
    pub(super) fn program(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Cursor => "cursor-agent",
            Self::Copilot => "copilot",
            Self::Opencode => "opencode",
            Self::QwenCode => "qwen",
            Self::Vscode => "code",
        }
    }

    /// Its folder: below the home folder, or an absolute path.
    pub(super) fn folder(self) -> PathBuf {
        install::below_home(match self {
            Self::ClaudeCode => ".claude",
            Self::Codex => ".codex",
            Self::Gemini => ".gemini",
            Self::Cursor => ".cursor",
            Self::Copilot => ".copilot",
            Self::Opencode => "$XDG_CONFIG_HOME/opencode",
            Self::QwenCode => ".qwen",
            Self::Vscode if cfg!(target_os = "macos") => "Library/Application Support/Code",
            Self::Vscode => "$XDG_CONFIG_HOME/Code",
        })
    }

    pub(super) fn mcp_client(self) -> McpClient {
        match self {
            Self::ClaudeCode => McpClient::ClaudeCode,
            Self::Codex => McpClient::Codex,
            Self::Gemini => McpClient::GeminiCli,
            Self::Cursor => McpClient::Cursor,
            Self::Copilot => McpClient::Copilot,
            Self::Opencode => McpClient::Opencode,
            Self::QwenCode => McpClient::QwenCode,
            Self::Vscode => McpClient::Vscode,
        }
    }
}

pub(super) async fn all() -> anyhow::Result<Vec<FoundAgent>> {
    let home = install::home()?;
    let mut finding = JoinSet::new();
    for agent in HookAgent::ALL {
        let home = home.clone();
        finding.spawn(async move { find(agent, &home).await });
    }
    let mut found: Vec<_> = finding.join_all().await.into_iter().flatten().collect();
    found.sort_by_key(|found| HookAgent::ALL.iter().position(|agent| *agent == found.agent));
    Ok(found)
}

async fn find(agent: HookAgent, home: &Path) -> Option<FoundAgent> {
    let program = in_path(agent.program());
    let has_hooks = hooks_file::is_installed(agent, home);
    if program.is_none() && !home.join(agent.folder()).is_dir() && !has_hooks {
        return None;
    }
    let client = agent.mcp_client();
    let hooks = config_file::read(&home.join(hooks_file::file(agent))).ok().flatten().unwrap_or_default();
    let mcp_text = config_file::read(&client.found_file(home)).ok().flatten().unwrap_or_default();
    let version = match &program {
        Some(program) => version(program).await,
        None => None,
    };
    Some(FoundAgent {
        agent,
        has_hooks,
        has_whole_hooks: hooks_file::are_as_chosen(agent, &hooks),
        fail: hooks_file::fail_in(agent, &hooks),
        hooks_off: switched_off_here(agent, home),
        has_mcp: client.has_entry(&mcp_text),
        confines: hooks_file::confines_in(agent, home),
        program_state: ProgramState::of(agent),
        last_call: last_call::read(agent),
        program,
        version,
    })
}

pub(super) fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// How long a program may take to tell its version.
const PATIENCE: Duration = Duration::from_secs(5);

/// The first word of its output that looks like a version.
async fn version(program: &Path) -> Option<String> {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output = timeout(PATIENCE, command.output()).await.ok()?.ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut words = text.split_whitespace().map(|word| word.trim_start_matches('v'));
    words.find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.')).map(str::to_owned)
}
