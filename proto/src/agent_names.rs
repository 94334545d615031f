//! The names of agents: one that toold uses, and others by which their clients and packages go.

/// The agents that toold knows, by the names that it uses.
pub const AGENTS: [&str; AGENT_NAMES.len()] = {
    let mut names = [""; AGENT_NAMES.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = AGENT_NAMES[at].0;
        at += 1;
    }
    names
};

/// The agents, each by the name that toold uses, with its others: those of its packages and programs, and those that it reports as
/// an MCP client.
const AGENT_NAMES: &[(&str, &[&str])] = &[
    ("claude-code", &[]),
    ("codex", &["codex-cli", "codex-mcp-client"]),
    ("gemini", &["gemini-cli", "gemini-cli-mcp-client"]),
    ("cursor", &["cursor-agent", "cursor-vscode"]),
    ("copilot", &["copilot-cli", "github-copilot", "github-copilot-cli", "github-copilot-developer"]),
    ("opencode", &["opencode-ai"]),
    ("qwen-code", &["qwen", "qwen-cli-mcp-client"]),
    ("vscode", &["vs-code", "visual-studio-code"]),
];

/// The agent that goes by exactly this name, whatever its case, and whether words are parted by `-`, `_` or a blank.
pub fn agent_named(name: &str) -> Option<&'static str> {
    let name = plain(name);
    AGENT_NAMES.iter().find(|(agent, others)| *agent == name || others.contains(&&*name)).map(|(agent, _)| *agent)
}

/// The agent whose client reports this name, which may go on behind that of the agent: `qwen-cli-mcp-client-toold`.
pub fn agent_of_client(client: &str) -> Option<&'static str> {
    let client = plain(client);
    let begins = |name: &&str| client.strip_prefix(*name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
    let is_of = |(agent, others): &&(&str, &[&str])| std::iter::once(agent).chain(*others).any(begins);
    AGENT_NAMES.iter().find(is_of).map(|(agent, _)| *agent)
}

/// Whether `name`, which a person wrote, is the name of this client, or of the agent that it is.
pub fn is_client_named(client: &str, name: &str) -> bool {
    client == name || agent_named(name).is_some_and(|agent| agent_of_client(client) == Some(agent))
}

fn plain(name: &str) -> String {
    name.to_ascii_lowercase().replace(['_', ' '], "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_of_an_agent_is_its_own() {
        for (agent, others) in AGENT_NAMES {
            for name in std::iter::once(agent).chain(*others) {
                assert_eq!((agent_named(name), agent_of_client(name)), (Some(*agent), Some(*agent)), "{name}");
                assert_eq!(agent_of_client(&format!("{name} 1.2")), Some(*agent), "{name}");
                assert!(AGENT_NAMES.iter().all(|(_, others)| is_client_named(name, agent) && !others.contains(agent)));
            }
        }
        for (client, agent) in [
            ("Visual Studio Code - Insiders", Some("vscode")),
            ("qwen-cli-mcp-client-toold", Some("qwen-code")),
            ("claude_code", Some("claude-code")),
            ("claude", None),
            ("claude-codex", None),
            ("codexx", None),
            ("", None),
        ] {
            assert_eq!(agent_of_client(client), agent, "{client}");
        }
        assert_eq!((agent_named("codex two"), agent_of_client("codex two")), (None, Some("codex")));
        for (client, name, is_named) in [
            ("codex-mcp-client", "codex", true),
            ("gemini-cli-mcp-client", "gemini-cli", true),
            ("codex", "codex-mcp-client", true),
            ("mine", "mine", true),
            ("mine-too", "mine", false),
            ("gemini", "codex", false),
        ] {
            assert_eq!(is_client_named(client, name), is_named, "{client} {name}");
        }
    }
}
