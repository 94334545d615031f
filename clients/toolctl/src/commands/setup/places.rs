//! The agents and editors of a machine, and the files in which they name MCP servers.

use std::path::{Path, PathBuf};

use crate::commands::hook::HookAgent;
use crate::commands::mcp::install::{McpClient, below_home};

/// An agent or editor that may be on a machine.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// As on the command line.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) programs: &'static [&'static str],
    /// As [`below_home`] reads them; it is here if one of them is there.
    pub(super) folders: &'static [&'static str],
    /// As [`below_home`] reads them, beside that of `client`.
    files: &'static [ServerPlace],
    /// Below a project's folder.
    of_project: &'static [ServerPlace],
    pub(super) client: Option<McpClient>,
    pub(super) hooks: Option<HookAgent>,
}

/// A file with servers: its path, and the member that holds them by name.
#[derive(Clone, Copy)]
struct ServerPlace(&'static str, &'static [&'static str]);

const MCP_SERVERS: &[&str] = &["mcpServers"];

pub(super) const PLACES: [Place; 15] = [
    Place {
        programs: &["claude"],
        folders: &[".claude"],
        of_project: &[ServerPlace(".mcp.json", MCP_SERVERS)],
        client: Some(McpClient::ClaudeCode),
        hooks: Some(HookAgent::ClaudeCode),
        ..place("claude-code", "Claude Code")
    },
    Place {
        programs: &["codex"],
        folders: &[".codex"],
        of_project: &[ServerPlace(".codex/config.toml", &["mcp_servers"])],
        client: Some(McpClient::Codex),
        hooks: Some(HookAgent::Codex),
        ..place("codex", "Codex")
    },
    Place {
        programs: &["gemini"],
        folders: &[".gemini"],
        of_project: &[ServerPlace(".gemini/settings.json", MCP_SERVERS)],
        client: Some(McpClient::GeminiCli),
        hooks: Some(HookAgent::Gemini),
        ..place("gemini", "Gemini CLI")
    },
    Place {
        programs: &["antigravity"],
        folders: &[".gemini/antigravity"],
        files: &[ServerPlace(".gemini/antigravity/mcp_config.json", MCP_SERVERS)],
        ..place("antigravity", "Antigravity")
    },
    Place {
        programs: &["cursor-agent", "cursor"],
        folders: &[".cursor"],
        of_project: &[ServerPlace(".cursor/mcp.json", MCP_SERVERS)],
        client: Some(McpClient::Cursor),
        hooks: Some(HookAgent::Cursor),
        ..place("cursor", "Cursor")
    },
    Place {
        programs: &["copilot"],
        folders: &[".copilot"],
        files: &[ServerPlace("$XDG_CONFIG_HOME/copilot/mcp-config.json", MCP_SERVERS)],
        client: Some(McpClient::Copilot),
        hooks: Some(HookAgent::Copilot),
        ..place("copilot", "Copilot CLI")
    },
    Place {
        programs: &["code"],
        folders: &["$XDG_CONFIG_HOME/Code", "Library/Application Support/Code"],
        files: &[ServerPlace("$XDG_CONFIG_HOME/Code/User/settings.json", &["mcp", "servers"])],
        of_project: &[ServerPlace(".vscode/mcp.json", &["servers"])],
        client: Some(McpClient::Vscode),
        ..place("vscode", "VS Code")
    },
    Place {
        programs: &["windsurf"],
        folders: &[".codeium/windsurf"],
        client: Some(McpClient::Windsurf),
        ..place("windsurf", "Windsurf")
    },
    Place {
        programs: &["zed", "zeditor"],
        folders: &["$XDG_CONFIG_HOME/zed"],
        of_project: &[ServerPlace(".zed/settings.json", &["context_servers"])],
        client: Some(McpClient::Zed),
        ..place("zed", "Zed")
    },
    Place {
        programs: &["opencode"],
        folders: &["$XDG_CONFIG_HOME/opencode"],
        files: &[
            ServerPlace("$XDG_CONFIG_HOME/opencode/opencode.jsonc", &["mcp"]),
            ServerPlace("$XDG_CONFIG_HOME/opencode/config.json", &["mcp"]),
        ],
        of_project: &[ServerPlace("opencode.json", &["mcp"]), ServerPlace("opencode.jsonc", &["mcp"])],
        client: Some(McpClient::Opencode),
        hooks: Some(HookAgent::Opencode),
        ..place("opencode", "opencode")
    },
    Place {
        folders: &["$XDG_CONFIG_HOME/Claude", "Library/Application Support/Claude"],
        client: Some(McpClient::ClaudeDesktop),
        ..place("claude-desktop", "Claude Desktop")
    },
    Place {
        programs: &["qwen"],
        folders: &[".qwen"],
        of_project: &[ServerPlace(".qwen/settings.json", MCP_SERVERS)],
        client: Some(McpClient::QwenCode),
        hooks: Some(HookAgent::QwenCode),
        ..place("qwen-code", "Qwen Code")
    },
    Place {
        // Not in $XDG_CONFIG_HOME: https://ravitemer.github.io/mcphub.nvim/configuration
        folders: &[".config/mcphub"],
        files: &[ServerPlace(".config/mcphub/servers.json", MCP_SERVERS)],
        ..place("mcphub", "mcphub.nvim")
    },
    Place { programs: &["nvim"], folders: &["$XDG_CONFIG_HOME/nvim"], ..place("neovim", "Neovim") },
    Place { programs: &["emacs"], folders: &[".emacs.d", "$XDG_CONFIG_HOME/emacs"], ..place("emacs", "Emacs") },
];

const fn place(name: &'static str, title: &'static str) -> Place {
    Place { name, title, programs: &[], folders: &[], files: &[], of_project: &[], client: None, hooks: None }
}

impl Place {
    /// Whether toold can be set up for it: Neovim and Emacs have clients of their own.
    pub(super) fn is_set_up(&self) -> bool {
        self.client.is_some() || self.hooks.is_some()
    }

    /// Whether a program or a folder of it is there.
    pub(super) fn is_here(&self, home: &Path) -> bool {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let has_program = |name: &&str| std::env::split_paths(&path).any(|folder| folder.join(name).is_file());
        self.folders.iter().any(|folder| home.join(below_home(folder)).is_dir())
            || self.client.is_some_and(|client| home.join(client.file()).is_file())
            || self.programs.iter().any(has_program)
    }

    /// The files of the person that name servers, and the members that hold them.
    pub(super) fn server_files(&self, home: &Path) -> Vec<(PathBuf, Vec<String>)> {
        let own = self.client.map(|client| (home.join(client.file()), vec![client.holder().to_owned()]));
        own.into_iter().chain(self.files.iter().map(|file| file.below(home))).collect()
    }

    /// The same of a project.
    pub(super) fn project_files(&self, project: &Path) -> Vec<(PathBuf, Vec<String>)> {
        self.of_project.iter().map(|file| file.below(project)).collect()
    }

    /// Where a person puts a server that overrides one of a project's file.
    pub(super) fn own_file(&self, home: &Path) -> Option<PathBuf> {
        Some(self.server_files(home).into_iter().next()?.0)
    }
}

impl ServerPlace {
    fn below(self, folder: &Path) -> (PathBuf, Vec<String>) {
        (folder.join(below_home(self.0)), self.1.iter().map(|&name| name.to_owned()).collect())
    }
}
