//! The person's own rules in the files of agents: denials, which toold takes over for all agents, and what each agent
//! allows by itself, which goes on to count there and nowhere else.

use std::path::{Path, PathBuf};

use serde_json::Value;
use toml::Table;

use crate::commands::mcp::install::below_home;
use crate::commands::mcp::jsonc;
use crate::commands::setup::checked::refusal;
use crate::commands::setup::servers::read;
use crate::commands::setup::text::ConfigForm;

/// A denial of an agent, as a rule of toold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AgentDenial {
    pub(super) category: &'static str,
    pub(super) pattern: String,
    pub(super) file: PathBuf,
}

/// The rules of all agents.
#[derive(Clone, Default)]
pub(super) struct AgentRules {
    pub(super) denials: Vec<AgentDenial>,
    /// Denials that have no equal here; with the agent and their text there.
    pub(super) left: Vec<(&'static str, String)>,
    /// The rules by which an agent runs something without asking.
    pub(super) allowed: Vec<(&'static str, String)>,
    /// The rules by which an agent always asks.
    pub(super) asked: Vec<(&'static str, String)>,
}

impl AgentDenial {
    /// The same for a server that has another name here; `None` for a denial of other servers, or of none.
    pub(super) fn for_source(&self, server: &str, source: &str) -> Option<Self> {
        let tool = self.pattern.strip_prefix(server)?.strip_prefix('/').filter(|_| self.category == "mcp")?;
        (server != source).then(|| Self { pattern: format!("{source}/{tool}"), ..self.clone() })
    }

    /// A rule of toold's configuration.
    pub(super) fn table(&self) -> Table {
        let members = [("category", self.category), ("pattern", &self.pattern), ("action", "deny")];
        members.map(|(name, value)| (name.to_owned(), value.into())).into_iter().collect()
    }
}

/// Reads the person's own files. A project's file is the text of whoever wrote the project.
pub(super) fn read_all(home: &Path) -> AgentRules {
    rules_in(home, &home.join(below_home("$XDG_CONFIG_HOME/opencode")))
}

/// `of_opencode`: its folder.
fn rules_in(home: &Path, of_opencode: &Path) -> AgentRules {
    let mut rules = AgentRules::default();
    claude_code(home, &mut rules);
    cursor(home, &mut rules);
    for (agent, file) in [("gemini", ".gemini/settings.json"), ("qwen-code", ".qwen/settings.json")] {
        gemini(agent, &home.join(file), &mut rules);
    }
    for name in ["opencode.json", "opencode.jsonc"] {
        opencode(&of_opencode.join(name), &mut rules);
    }
    gemini_policies(&home.join(".gemini/policies"), &mut rules);
    codex(&home.join(".codex/rules"), &mut rules);
    rules
}

impl AgentRules {
    /// Leaves the denials whose patterns toold does not take to their agents: one of them must not stop the others.
    ///
    /// # Errors
    /// There is no `toold`, or no place for a file that it checks.
    pub(super) async fn only_valid(mut self) -> anyhow::Result<Self> {
        if are_valid(self.denials.iter().map(AgentDenial::table)).await? {
            return Ok(self);
        }
        for denial in std::mem::take(&mut self.denials) {
            match are_valid([denial.table()]).await? {
                true => self.denials.push(denial),
                false => self.left.push(("an agent", format!("{} {}", denial.category, denial.pattern))),
            }
        }
        Ok(self)
    }

    /// Without a pattern, the denial has no equal here.
    fn add(&mut self, agent: &'static str, file: &Path, text: &str, category: &'static str, patterns: Vec<String>) {
        if patterns.is_empty() {
            return self.left.push((agent, text.to_owned()));
        }
        for pattern in patterns {
            let is_known = |known: &AgentDenial| known.category == category && known.pattern == pattern;
            if !self.denials.iter().any(is_known) {
                self.denials.push(AgentDenial { category, pattern, file: file.to_owned() });
            }
        }
    }
}

/// Whether toold takes these rules.
///
/// # Errors
/// As [`AgentRules::only_valid`].
pub(super) async fn are_valid(rules: impl IntoIterator<Item = Table>) -> anyhow::Result<bool> {
    let rules: Vec<toml::Value> = rules.into_iter().map(toml::Value::Table).collect();
    let permission = Table::from_iter([("rules".to_owned(), rules.into())]);
    let configuration = Table::from_iter([("permission".to_owned(), toml::Value::Table(permission))]);
    Ok(refusal(&configuration).await?.is_none())
}

fn value(file: &Path) -> Value {
    read(file).ok().and_then(|text| ConfigForm::Json.read(&text)).unwrap_or_default()
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// The parts of `Name(inside)`; nothing for a whole tool, which one agent may do without and another not.
pub(super) fn parts(rule: &str) -> Option<(&str, &str)> {
    let (name, rest) = rule.split_once('(')?;
    Some((name.trim(), rest.strip_suffix(')')?.trim())).filter(|(_, inside)| !inside.is_empty())
}

fn claude_code(home: &Path, rules: &mut AgentRules) {
    let folder = std::env::var_os("CLAUDE_CONFIG_DIR").map_or_else(|| home.join(".claude"), PathBuf::from);
    for name in ["settings.json", "settings.local.json"] {
        let file = folder.join(name);
        let settings = value(&file);
        for text in texts(&settings["permissions"]["deny"]) {
            let (category, patterns) = match parts(text) {
                Some(("Bash", command)) => ("shell", commands(command)),
                Some(("Read", path)) => ("file.read", ignored_globs(path)),
                Some(("Edit" | "Write", path)) => ("file.write", ignored_globs(path)),
                Some(("WebFetch", site)) => {
                    ("network", site.strip_prefix("domain:").map(str::to_owned).into_iter().collect())
                }
                Some(_) => ("shell", Vec::new()),
                None => {
                    let names = text.strip_prefix("mcp__").map(|names| match names.split_once("__") {
                        Some((server, tool)) => format!("{server}/{tool}"),
                        None => format!("{names}/*"),
                    });
                    ("mcp", names.into_iter().collect())
                }
            };
            rules.add("claude-code", &file, text, category, patterns);
        }
        let named = |list: &str| texts(&settings["permissions"][list]).map(|text| ("claude-code", text.to_owned()));
        rules.allowed.extend(named("allow"));
        rules.asked.extend(named("ask"));
    }
}

fn cursor(home: &Path, rules: &mut AgentRules) {
    let file = home.join(".cursor/cli-config.json");
    let settings = value(&file);
    for text in texts(&settings["permissions"]["deny"]) {
        let (category, patterns) = match parts(text) {
            Some(("Shell", command)) => ("shell", beginnings(command)),
            Some(("Read", path)) => ("file.read", vec![file_glob(path)]),
            Some(("Write", path)) => ("file.write", vec![file_glob(path)]),
            Some(("Mcp", server)) => {
                let names = server.split_once(':').map(|(server, tool)| format!("{server}/{tool}"));
                ("mcp", names.into_iter().collect())
            }
            Some(_) | None => ("shell", Vec::new()),
        };
        rules.add("cursor", &file, text, category, patterns);
    }
    rules.allowed.extend(texts(&settings["permissions"]["allow"]).map(|text| ("cursor", text.to_owned())));
}

fn gemini(agent: &'static str, file: &Path, rules: &mut AgentRules) {
    let settings = value(file);
    for list in [&settings["tools"]["exclude"], &settings["excludeTools"], &settings["permissions"]["deny"]] {
        for text in texts(list) {
            let patterns = match parts(text) {
                Some(("run_shell_command" | "ShellTool" | "Bash", command)) => beginnings(command),
                Some(_) | None => Vec::new(),
            };
            rules.add(agent, file, text, "shell", patterns);
        }
    }
    for list in [&settings["tools"]["allowed"], &settings["permissions"]["allow"]] {
        rules.allowed.extend(texts(list).map(|text| (agent, text.to_owned())));
    }
    rules.asked.extend(texts(&settings["permissions"]["ask"]).map(|text| (agent, text.to_owned())));
}

fn opencode(file: &Path, rules: &mut AgentRules) {
    let settings = value(file);
    for (name, category) in [("bash", "shell"), ("edit", "file.write"), ("read", "file.read")] {
        for (pattern, action) in settings["permission"][name].as_object().into_iter().flatten() {
            let text = format!("{name} {pattern}");
            match action.as_str() {
                Some("deny") => {
                    let patterns = if category == "shell" { commands(pattern) } else { wide_globs(pattern) };
                    rules.add("opencode", file, &text, category, patterns);
                }
                Some("allow") => rules.allowed.push(("opencode", text)),
                Some("ask") => rules.asked.push(("opencode", text)),
                _ => {}
            }
        }
    }
}

/// `prefix_rule(pattern = ["git", "push"], decision = "forbidden")` in files of Starlark.
fn codex(folder: &Path, rules: &mut AgentRules) {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = files.filter(|file| file.extension().is_some_and(|end| end == "rules")).collect();
    files.sort();
    for file in files {
        let Ok(text) = read(&file) else { continue };
        for rule in text.split("prefix_rule(").skip(1) {
            let list = rule.split_once("pattern").and_then(|(_, rest)| first_list(rest));
            let rest = list.and_then(|list| rule.split_once(list)).map_or(rule, |(_, rest)| rest);
            let decision = rest.split_once(')').map_or(rest, |(rest, _)| rest);
            let lines = list.and_then(|list| word_lists(&jsonc::whole(list)?));
            // A word with blanks is one word.
            let shown = |words: &Vec<String>| match words.iter().any(|word| word.contains(' ')) {
                true => format!("{words:?}"),
                false => words.join(" "),
            };
            let texts: Vec<String> = match &lines {
                Some(lines) => lines.iter().map(shown).collect(),
                None => vec![rule.split_whitespace().collect::<Vec<_>>().join(" ")],
            };
            if decision.contains("\"forbidden\"") {
                for (at, text) in texts.iter().enumerate() {
                    let words = lines.as_ref().and_then(|lines| lines.get(at)).filter(|words| !words.is_empty());
                    let pattern = words.map(|words| format!("{} *", words.join(" ")));
                    rules.add("codex", &file, text, "shell", pattern.into_iter().collect());
                }
            } else if decision.contains("\"allow\"") {
                rules.allowed.extend(texts.into_iter().map(|text| ("codex", text)));
            } else if decision.contains("\"prompt\"") {
                rules.asked.extend(texts.into_iter().map(|text| ("codex", text)));
            }
        }
    }
}

/// The first list in the text, with its brackets.
fn first_list(text: &str) -> Option<&str> {
    let start = text.find('[')?;
    let (mut depth, mut is_quoted, mut is_escaped) = (0_usize, false, false);
    for (at, c) in text[start..].char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            '[' if !is_quoted => depth += 1,
            ']' if !is_quoted => {
                depth -= 1;
                if depth == 0 {
                    return text.get(start..=start + at);
                }
            }
            _ => {}
        }
    }
    None
}

/// The lists of words that a list means, in which a list stands for one of its words; `None` if it is another one, or means too
/// many.
fn word_lists(list: &Value) -> Option<Vec<Vec<String>>> {
    const MAX_LISTS: usize = 100;
    let mut lines: Vec<Vec<String>> = vec![Vec::new()];
    for word in list.as_array()? {
        let words: Vec<&str> = match word {
            Value::Array(words) => words.iter().map(Value::as_str).collect::<Option<_>>()?,
            word => vec![word.as_str()?],
        };
        let with = |line: &Vec<String>| {
            let line = line.clone();
            words.iter().map(move |word| [line.as_slice(), &[(*word).to_owned()]].concat()).collect::<Vec<_>>()
        };
        lines = lines.iter().flat_map(with).collect();
        if lines.len() > MAX_LISTS {
            return None;
        }
    }
    Some(lines)
}

/// `[[rule]]` in files of TOML, where of several rules the one of the highest priority counts.
fn gemini_policies(folder: &Path, rules: &mut AgentRules) {
    const READ: [&str; 5] = ["toolName", "commandPrefix", "decision", "priority", "denyMessage"];
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = files.filter(|file| file.extension().is_some_and(|end| end == "toml")).collect();
    files.sort();
    let policies = files.into_iter().flat_map(|file| {
        let whole = read(&file).ok().and_then(|text| ConfigForm::Toml.read(&text)).unwrap_or_default();
        let policies = whole["rule"].as_array().cloned().unwrap_or_default();
        policies.into_iter().map(move |policy| (file.clone(), policy))
    });
    let policies: Vec<(PathBuf, Value)> = policies.collect();
    let one_or_more = |value: &Value| -> Vec<String> {
        let one = value.as_str().map(str::to_owned).into_iter();
        one.chain(texts(value).map(str::to_owned)).collect()
    };
    let priority = |policy: &Value| policy["priority"].as_f64().unwrap_or_default();
    for (file, policy) in &policies {
        let tools = one_or_more(&policy["toolName"]);
        let prefixes = one_or_more(&policy["commandPrefix"]);
        let is_read = policy.as_object().is_some_and(|members| members.keys().all(|name| READ.contains(&&**name)));
        let is_command = is_read && !prefixes.is_empty() && tools == ["run_shell_command"];
        let texts: Vec<String> = match is_command {
            true => prefixes.iter().map(|prefix| format!("run_shell_command({prefix})")).collect(),
            false => vec![policy.to_string()],
        };
        match policy["decision"].as_str() {
            Some("deny") => {
                for (at, text) in texts.iter().enumerate() {
                    let prefix = prefixes.get(at).filter(|_| is_command);
                    // Another rule that counts more frees a part of it there.
                    let has_exception = policies.iter().any(|(_, other)| {
                        let others = one_or_more(&other["commandPrefix"]);
                        let is_part = |other: &String| prefix.is_some_and(|prefix| other.starts_with(prefix.as_str()));
                        other["decision"] != "deny"
                            && priority(other) >= priority(policy)
                            && (others.is_empty() || others.iter().any(is_part))
                    });
                    let patterns = prefix.filter(|_| !has_exception).map(|prefix| beginnings(prefix));
                    rules.add("gemini", file, text, "shell", patterns.unwrap_or_default());
                }
            }
            Some("allow") => rules.allowed.extend(texts.into_iter().map(|text| ("gemini", text))),
            Some("ask_user") => rules.asked.extend(texts.into_iter().map(|text| ("gemini", text))),
            _ => {}
        }
    }
}

/// The patterns for a command of an agent whose `*` stands for any text, also over several words; `git push:*` is a beginning
/// in Claude Code. Here a `*` stands for further words only at the end, and elsewhere for a part of one word.
fn commands(command: &str) -> Vec<String> {
    let Some(start) = command.strip_suffix('*') else {
        return if command.contains('*') { Vec::new() } else { vec![command.to_owned()] };
    };
    let start = start.strip_suffix(':').map_or_else(|| start.to_owned(), |start| format!("{start} "));
    match start.trim_end() {
        words if words.is_empty() || words.contains('*') => Vec::new(),
        words if words.len() < start.len() => vec![format!("{words} *")],
        // `git push*` is also `git push origin` and `git pushx origin`.
        words => vec![format!("{words} *"), format!("{words}* *")],
    }
}

/// The patterns for a command of an agent whose rules are beginnings of commands.
fn beginnings(command: &str) -> Vec<String> {
    commands(&format!("{} *", command.trim_end_matches('*').trim_end_matches(':').trim_end()))
}

/// The globs for a path of an agent whose `*` also stands for several folders.
fn wide_globs(path: &str) -> Vec<String> {
    let glob = file_glob(path);
    let parts: Vec<&str> = glob.split('/').collect();
    let Some((last, folders)) = parts.split_last().filter(|_| path != "*" && path != "**") else { return Vec::new() };
    let is_whole = |part: &&str| !part.contains('*') || matches!(*part, "*" | "**");
    let ends_with_star = last.strip_suffix('*').is_some_and(|start| !start.contains('*'));
    let begins_with_star = last.strip_prefix('*').is_some_and(|end| !end.contains('*'));
    if !folders.iter().all(is_whole) || !(is_whole(last) || begins_with_star || ends_with_star) {
        return Vec::new();
    }
    let mut folders: Vec<&str> = folders.iter().map(|part| if *part == "*" { "**" } else { part }).collect();
    if begins_with_star && !is_whole(last) && folders.last() != Some(&"**") {
        folders.push("**");
    }
    let folders = folders.join("/");
    match *last {
        "*" | "**" => vec![format!("{folders}/**")],
        last if ends_with_star => vec![format!("{folders}/{last}"), format!("{folders}/{last}/**")],
        last => vec![format!("{folders}/{last}")],
    }
}

/// The globs for a path of an agent whose rules are read like lines of `.gitignore`: a folder's name covers all that lies in it.
fn ignored_globs(path: &str) -> Vec<String> {
    let glob = file_glob(path.trim_end_matches('/'));
    let last = glob.rsplit('/').next().unwrap_or_default();
    let is_file = last.starts_with(".env") || last.char_indices().any(|(at, c)| at > 0 && c == '.');
    match last {
        "**" => vec![glob],
        "*" => vec![format!("{glob}*")],
        _ if path.ends_with('/') => vec![format!("{glob}/**")],
        _ if is_file => vec![glob],
        _ => vec![glob.clone(), format!("{glob}/**")],
    }
}

/// A path of a rule as a glob of toold: relative ones hold in every folder.
fn file_glob(path: &str) -> String {
    if path.starts_with("~/") {
        return path.to_owned();
    }
    match path.strip_prefix("//") {
        Some(absolute) => format!("/{absolute}"),
        None => format!("/**/{}", path.trim_start_matches("./").trim_start_matches('/').trim_start_matches("**/")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denials_forbid_here_what_they_forbid_there() {
        let none: [&str; 0] = [];
        assert_eq!(commands("git push"), ["git push"]);
        for beginning in ["git push *", "git push:*"] {
            assert_eq!(commands(beginning), ["git push *"]);
        }
        assert_eq!(commands("git push*"), ["git push *", "git push* *"]);
        for wide in ["*", "*--force*", "git * main", "* rm", ":*"] {
            assert_eq!(commands(wide), none, "{wide}");
        }
        for text in ["git push", "git push*", "git push *", "git push:*"] {
            assert_eq!(beginnings(text), ["git push *"]);
        }
        for (path, globs) in [
            ("secret.txt", vec!["/**/secret.txt"]),
            ("*.env", vec!["/**/*.env"]),
            ("src/*.env", vec!["/**/src/**/*.env"]),
            ("keys/*", vec!["/**/keys/**"]),
            ("~/keys/*", vec!["~/keys/**"]),
            ("config*", vec!["/**/config*", "/**/config*/**"]),
            ("a*b", vec![]),
            ("a*/b", vec![]),
            ("*", vec![]),
        ] {
            assert_eq!(wide_globs(path), globs, "{path}");
        }
        for (path, globs) in [
            ("secrets", vec!["/**/secrets", "/**/secrets/**"]),
            ("secrets/", vec!["/**/secrets/**"]),
            ("./b/*", vec!["/**/b/**"]),
            ("~/priv", vec!["~/priv", "~/priv/**"]),
            ("~/.ssh", vec!["~/.ssh", "~/.ssh/**"]),
            ("~/keys/**", vec!["~/keys/**"]),
            ("//etc/x", vec!["/etc/x", "/etc/x/**"]),
            (".env", vec!["/**/.env"]),
            ("secret.txt", vec!["/**/secret.txt"]),
            ("*.pem", vec!["/**/*.pem"]),
        ] {
            assert_eq!(ignored_globs(path), globs, "{path}");
        }
    }

    #[test]
    fn denials_of_all_agents_become_rules() {
        let home = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = home.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(
            ".claude/settings.json",
            r#"{"permissions": {"deny": ["Bash(git push:*)", "Read(./.env)", "Read(//etc/x)", "WebFetch(domain:a.example)", "mcp__github__delete", "Bash"], "allow": ["Bash(npm test)"]}}"#,
        );
        write(".cursor/cli-config.json", r#"{"permissions": {"deny": ["Shell(rm)"], "allow": ["Shell(ls)"]}}"#);
        write(
            ".gemini/settings.json",
            "{\n// mine\n\"tools\": {\"exclude\": [\"run_shell_command(dd)\", \"web_fetch\"]}}",
        );
        write(
            ".config/opencode/opencode.json",
            r#"{"permission": {"bash": {"git push*": "deny", "terraform *": "deny", "*": "ask", "*--force*": "deny"}}}"#,
        );
        write(
            ".codex/rules/default.rules",
            "prefix_rule(pattern = [\"sudo\"], decision = \"forbidden\")\nprefix_rule(pattern=[\"ls\"], decision=\"allow\")\n\
             prefix_rule(\n  pattern = [\"git\", [\"fetch\", \"pull)\"],],\n  decision = \"forbidden\",\n)\n",
        );
        write(
            ".gemini/policies/a.toml",
            "[[rule]]\ntoolName = \"run_shell_command\"\ncommandPrefix = [\"shutdown\", \"npm\"]\ndecision = \"deny\"\npriority = 100\n\
             [[rule]]\ntoolName = \"run_shell_command\"\ncommandPrefix = \"npm test\"\ndecision = \"allow\"\npriority = 200\n\
             [[rule]]\ntoolName = \"run_shell_command\"\ncommandRegex = \"rm .*\"\ndecision = \"deny\"\npriority = 300\n",
        );
        let rules = rules_in(home.path(), &home.path().join(".config/opencode"));
        let shown: Vec<String> =
            rules.denials.iter().map(|rule| format!("{} {}", rule.category, rule.pattern)).collect();
        assert_eq!(
            shown,
            [
                "shell git push *",
                "file.read /**/.env",
                "file.read /etc/x",
                "file.read /etc/x/**",
                "network a.example",
                "mcp github/delete",
                "shell rm *",
                "shell dd *",
                "shell git push* *",
                "shell terraform *",
                "shell shutdown *",
                "shell sudo *",
                "shell git fetch *",
                "shell git pull) *"
            ]
        );
        let left: Vec<(&str, &str)> = rules.left.iter().map(|(agent, text)| (*agent, text.as_str())).collect();
        assert_eq!(left[..3], [("claude-code", "Bash"), ("gemini", "web_fetch"), ("opencode", "bash *--force*")]);
        assert_eq!(left[3], ("gemini", "run_shell_command(npm)"));
        assert!(left[4].1.contains("rm .*") && left.len() == 5, "{left:?}");
        let allowed: Vec<&str> = rules.allowed.iter().map(|(agent, _)| *agent).collect();
        assert_eq!(allowed, ["claude-code", "cursor", "gemini", "codex"]);
    }
}
