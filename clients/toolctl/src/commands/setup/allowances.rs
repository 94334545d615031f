//! Permissions that agents have given by themselves, as rules of toold that mean the same or less, each for its agent alone. A
//! person ticks those to take along.

use toml::Table;

use crate::commands::setup::rules::parts;

/// A rule that allows, and where it is taken from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AgentAllowance {
    pub(super) agent: &'static str,
    /// As the agent has it.
    pub(super) text: String,
    pub(super) category: &'static str,
    pub(super) pattern: String,
    /// The built-in tools that do what the agent's own does; empty for those of servers.
    pub(super) tools: &'static [&'static str],
}

impl AgentAllowance {
    /// `None` for a rule that means more here than there, or for which there is no equal: a whole tool, a path that depends
    /// on the project, a text that a shell would change. `source` gives the name here of a server that moved.
    pub(super) fn of(agent: &'static str, text: &str, source: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        let (category, pattern) = match agent {
            "claude-code" | "qwen-code" => of_claude_code(text, source),
            "cursor" => of_cursor(text, source),
            "gemini" => of_gemini(text),
            "opencode" => of_opencode(text),
            "codex" => Some(("shell", with_more(text)?)),
            _ => None,
        }?;
        let tools: &[&str] = match category {
            "shell" => &["bash"],
            "file.read" => &["read"],
            "file.write" => &["write", "edit", "apply_patch"],
            "network" => &["web_fetch"],
            _ => &[],
        };
        Some(Self { agent, text: text.to_owned(), category, pattern, tools })
    }

    /// The effect that it frees, in words. Only the daemon knows which effects a command has.
    pub(super) fn frees(&self) -> &'static str {
        match self.category {
            "shell" => "runs the command",
            "file.read" => "reads these files",
            "file.write" => "changes these files",
            "network" => "fetches from there",
            _ => "calls tools of the server",
        }
    }

    /// A rule of toold's configuration.
    pub(super) fn table(&self) -> Table {
        let members =
            [("category", self.category), ("pattern", &self.pattern), ("action", "allow"), ("agent", self.agent)];
        let mut table: Table = members.map(|(name, value)| (name.to_owned(), value.into())).into_iter().collect();
        if !self.tools.is_empty() {
            table.insert("tools".to_owned(), self.tools.to_vec().into());
        }
        table
    }
}

type RuleHere = Option<(&'static str, String)>;

fn of_claude_code(text: &str, source: &dyn Fn(&str) -> Option<String>) -> RuleHere {
    match parts(text) {
        Some(("Bash", command)) => Some(("shell", command_pattern(command)?)),
        Some(("Read", path)) => Some(("file.read", absolute(path, "//")?)),
        Some(("Edit" | "Write", path)) => Some(("file.write", absolute(path, "//")?)),
        Some(("WebFetch", site)) => Some(("network", https(site.strip_prefix("domain:")?)?)),
        Some(_) => None,
        None => {
            let names = text.strip_prefix("mcp__")?;
            let (server, tool) = names.split_once("__").unwrap_or((names, "*"));
            of_server(server, tool, source)
        }
    }
}

fn of_cursor(text: &str, source: &dyn Fn(&str) -> Option<String>) -> RuleHere {
    match parts(text)? {
        // `Shell(git)` is git with any arguments; with a colon, the arguments have patterns of their own.
        ("Shell", command) if !command.contains(':') => Some(("shell", with_more(command)?)),
        ("Read", path) => Some(("file.read", absolute(path, "/")?)),
        ("Write", path) => Some(("file.write", absolute(path, "/")?)),
        ("Mcp", names) => names.split_once(':').and_then(|(server, tool)| of_server(server, tool, source)),
        _ => None,
    }
}

fn of_gemini(text: &str) -> RuleHere {
    match parts(text)? {
        ("run_shell_command" | "ShellTool", command) => Some(("shell", with_more(command)?)),
        _ => None,
    }
}

/// `bash git status *`, as [`super::rules`] writes it.
fn of_opencode(text: &str) -> RuleHere {
    match text.split_once(' ')? {
        ("bash", command) => Some(("shell", command_pattern(command)?)),
        ("read", path) => Some(("file.read", absolute(path, "/")?)),
        ("edit", path) => Some(("file.write", absolute(path, "/")?)),
        _ => None,
    }
}

fn of_server(server: &str, tool: &str, source: &dyn Fn(&str) -> Option<String>) -> RuleHere {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let source = source(server)?;
    (tool == "*" || tool.chars().all(is_name)).then(|| ("mcp", format!("{source}/{tool}")))
}

/// A whole command, or its beginning: `npm test`, `git log:*`, `git log *`.
fn command_pattern(command: &str) -> Option<String> {
    match command.strip_suffix(":*").or_else(|| command.strip_suffix(" *")) {
        Some(start) => with_more(start),
        None => plain_words(command),
    }
}

fn with_more(start: &str) -> Option<String> {
    Some(format!("{} *", plain_words(start)?))
}

/// Words in which nothing means anything to a shell or in a pattern.
fn plain_words(text: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " -_./:=@+,%".contains(c);
    let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
    (!words.is_empty() && text.chars().all(is_plain) && !text.starts_with('-')).then(|| words.join(" "))
}

/// A path below the home folder, or an absolute one, which begins with `root`. Any other depends on the project.
fn absolute(path: &str, root: &str) -> Option<String> {
    let is_plain = |c: char| c.is_alphanumeric() || " -_./*~+,@".contains(c);
    if !path.chars().all(is_plain) || path.split('/').any(|part| part == "..") {
        return None;
    }
    match path.strip_prefix(root) {
        Some(below) if !below.is_empty() && !below.starts_with(['/', '*']) => Some(format!("/{below}")),
        Some(_) => None,
        None => path.strip_prefix("~/").filter(|below| !below.starts_with('*')).map(|below| format!("~/{below}")),
    }
}

/// What the tools of agents fetch is fetched by HTTPS.
fn https(host: &str) -> Option<String> {
    let is_host = |c: char| c.is_ascii_alphanumeric() || ".-".contains(c);
    (!host.is_empty() && host.chars().all(is_host)).then(|| format!("{host}:443"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_allow_mean_the_same_or_less_or_are_left() {
        let moved = |server: &str| (server == "github").then(|| "github-codex".to_owned());
        let cases = [
            ("claude-code", "Bash(npm test)", Some("shell npm test")),
            ("claude-code", "Bash(git log:*)", Some("shell git log *")),
            ("claude-code", "Bash(git diff *)", Some("shell git diff *")),
            ("claude-code", "Bash(git * main)", None),
            ("claude-code", "Bash(a && b)", None),
            ("claude-code", "Bash(:*)", None),
            ("claude-code", "Bash(*)", None),
            ("claude-code", "Bash", None),
            ("claude-code", "Read(~/notes/**)", Some("file.read ~/notes/**")),
            ("claude-code", "Read(//srv/www/**)", Some("file.read /srv/www/**")),
            ("claude-code", "Read(./src/**)", None),
            ("claude-code", "Read(/src/**)", None),
            ("claude-code", "Edit(~/**)", None),
            ("claude-code", "Edit(//**)", None),
            ("claude-code", "Read(~/a/../../x)", None),
            ("claude-code", "WebFetch(domain:docs.example)", Some("network docs.example:443")),
            ("claude-code", "WebFetch(domain:*)", None),
            ("claude-code", "mcp__github__get_issue", Some("mcp github-codex/get_issue")),
            ("claude-code", "mcp__github", Some("mcp github-codex/*")),
            ("claude-code", "mcp__other__x", None),
            ("claude-code", "WebSearch", None),
            ("cursor", "Shell(ls)", Some("shell ls *")),
            ("cursor", "Shell(curl:*)", None),
            ("cursor", "Read(src/**)", None),
            ("cursor", "Mcp(github:search)", Some("mcp github-codex/search")),
            ("gemini", "run_shell_command(git status)", Some("shell git status *")),
            ("gemini", "run_shell_command", None),
            ("opencode", "bash git status *", Some("shell git status *")),
            ("opencode", "bash *", None),
            ("opencode", "edit docs/*", None),
            ("codex", "ls -l", Some("shell ls -l *")),
            ("codex", "[\"a b\"]", None),
            ("qwen-code", "Bash(make)", Some("shell make")),
        ];
        for (agent, text, expected) in cases {
            let here =
                AgentAllowance::of(agent, text, &moved).map(|rule| format!("{} {}", rule.category, rule.pattern));
            assert_eq!(here.as_deref(), expected, "{agent}: {text}");
        }
    }
}
