//! How long each agent waits for a hook: one table, which [`page`] prints for the documentation.

use std::fmt::Write;

use crate::commands::hook::HookAgent;

/// The time limit where no longer one is known to work, in seconds.
pub(crate) const SHORTEST_LIMIT: u64 = 60;

/// The time limit where a longer one works, in seconds: people are asked for 10 minutes at most.
const LONG_LIMIT: u64 = 610;

/// An agent's time limit for hooks.
struct HookLimit {
    agent: HookAgent,
    /// The limit that is installed, in seconds.
    installed: u64,
    setting: &'static str,
    largest: &'static str,
    /// The agent's behaviour when the limit is over.
    killed: &'static str,
}

const TABLE: &[HookLimit] = &[
    HookLimit {
        agent: HookAgent::ClaudeCode,
        installed: LONG_LIMIT,
        setting: "`timeout`, in seconds",
        largest: "100000 was accepted",
        killed: "the tool runs (tried in bypassPermissions)",
    },
    HookLimit {
        agent: HookAgent::Codex,
        installed: LONG_LIMIT,
        setting: "`timeout`, in seconds",
        largest: "100000 was accepted",
        killed: "the tool runs (tried with approval_policy never)",
    },
    HookLimit {
        agent: HookAgent::Gemini,
        installed: LONG_LIMIT,
        setting: "`timeout`, in milliseconds",
        largest: "610000 was accepted",
        killed: "the tool runs (tried in yolo)",
    },
    HookLimit {
        agent: HookAgent::Cursor,
        installed: SHORTEST_LIMIT,
        setting: "`timeout`, in seconds",
        largest: NOT_TRIED,
        killed: "its documentation: the tool runs, unless the hook has `failClosed`",
    },
    HookLimit {
        agent: HookAgent::Copilot,
        installed: LONG_LIMIT,
        setting: "`timeoutSec`, in seconds",
        largest: "100000 was accepted",
        killed: "the tool runs (tried with --allow-all)",
    },
    HookLimit {
        agent: HookAgent::Opencode,
        installed: LONG_LIMIT,
        setting: "none: the plugin waits",
        largest: "none",
        killed: "the tool does not run: the plugin denies",
    },
    HookLimit {
        agent: HookAgent::QwenCode,
        installed: SHORTEST_LIMIT,
        setting: "`timeout`, in seconds",
        largest: "60: one of 610 ended after 60",
        killed: "the tool runs (tried in yolo)",
    },
    HookLimit {
        agent: HookAgent::Vscode,
        installed: SHORTEST_LIMIT,
        setting: "`timeout`, in seconds",
        largest: "its code: any",
        killed: "its code: the tool runs",
    },
];

/// Nothing depends on it: the hook ends well before a limit of 60 seconds.
const NOT_TRIED: &str = "not tried";

/// The limit that an installation sets for the agent, in seconds.
pub(crate) fn installed(agent: HookAgent) -> u64 {
    TABLE.iter().find(|limit| limit.agent == agent).map_or(SHORTEST_LIMIT, |limit| limit.installed)
}

/// The table in Markdown.
pub(crate) fn page() -> String {
    let mut page = String::from(
        "| agent | its limit for hooks | largest value | installed | a hook that is killed at the limit |\n|---|---|---|---|---|\n",
    );
    for HookLimit { agent, installed, setting, largest, killed } in TABLE {
        let agent = agent.title();
        // Writing to a string does not fail.
        let _ = writeln!(page, "| {agent} | {setting} | {largest} | {installed} s | {killed} |");
    }
    page
}
