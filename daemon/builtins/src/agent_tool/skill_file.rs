//! The files that Claude Code loads for its tools `Skill` and `SlashCommand`, and Qwen Code for `skill`: the commands that they run
//! and the files that they read before the model sees the text, the sub-agent that gets the text, and the tools that are used
//! without asking and the hooks that run from then on.
//!
//! Qwen Code 0.24.4 runs no commands in a skill's text, as real runs show. Its documentation has `allowedTools` and `hooks`.
//!
//! Sources for Claude Code: its documentation of skills (places, front matter, `` !`command` ``), of slash commands and of
//! plugins, and Claude Code 2.1.332, which runs such commands in fenced blocks too, puts the model's arguments into
//! them without quotes, reads `@file` as in a prompt, and knows a skill by the name of its folder and by that in its front
//! matter. Where versions differ, more is found than one of them runs.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde_json::Value;
use toold_host::environment::Environment;
use toold_host::files;
use toold_proto::agent_request::NamedNeed;
use toold_proto::cut;
use toold_proto::tool::Category;

use super::agent_folders::{
    MAX_BYTES, MAX_DEFINITIONS, first_names_in, folders, folders_below, is_same, names_in, plain, started_in,
};
use super::plugins::plugins;
use super::started_programs::StartedPrograms;
use crate::front_matter::split;

/// How deep folders of commands are nested.
const MAX_DEPTH: usize = 4;

/// Tools that a skill may use without asking and that toold would not ask about, or judges when they are used.
const FREE_TOOLS: &[&str] = &[
    "Agent",
    "AskUserQuestion",
    "BashOutput",
    "EnterPlanMode",
    "ExitPlanMode",
    "Glob",
    "Grep",
    "KillShell",
    "LS",
    "LSP",
    "NotebookRead",
    "Read",
    "Skill",
    "SlashCommand",
    "Task",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskStop",
    "TaskUpdate",
    "TodoRead",
    "TodoWrite",
    "ToolSearch",
    "WebSearch",
];

/// Commands that only read and print, whatever options and operands they have.
const READING: &[&str] = &[
    "basename",
    "cat",
    "cmp",
    "comm",
    "cut",
    "df",
    "dirname",
    "du",
    "echo",
    "egrep",
    "fgrep",
    "git blame",
    "git ls-files",
    "git rev-parse",
    "git status",
    "grep",
    "head",
    "id",
    "jq",
    "ls",
    "md5sum",
    "nl",
    "pwd",
    "readlink",
    "realpath",
    "sha256sum",
    "stat",
    "tail",
    "uname",
    "wc",
    "which",
    "whoami",
];

/// Skills and commands that come with Claude Code, and have no file.
const WITHOUT_FILE: &[&str] = &[
    "artifact-capabilities",
    "artifact-design",
    "artifact-diagramming",
    "autofix-pr",
    "batch",
    "claude-api",
    "claude-in-chrome",
    "code-review",
    "commit",
    "cowork-plugin",
    "dataviz",
    "debug",
    "design",
    "design-sync",
    "doctor",
    "explain-usage",
    "fewer-permission-prompts",
    "init",
    "insights",
    "keybindings-help",
    "loop",
    "pr",
    "pr-comments",
    "remote-control",
    "review",
    "routines",
    "run",
    "run-skill-generator",
    "schedule",
    "security-review",
    "send-to-project",
    "setup-claude",
    "simplify",
    "statusline",
    "team-onboarding",
    "teleport",
    "ultraplan",
    "ultrareview",
    "update-config",
    "verify",
    "workflow-authoring",
];

/// The same of Qwen Code 0.24.4, whose files are beside its program.
const WITHOUT_FILE_OF_QWEN_CODE: &[&str] = &[
    "batch",
    "browser-use",
    "computer-use",
    "coordinate",
    "dataviz",
    "extension-creator",
    "goal-draft",
    "loop",
    "new-app",
    "qc-helper",
    "review",
    "simplify",
    "stuck",
    "workflow-authoring",
    "workflow-creator",
    "zvec-grep-install",
];

/// Tools of Qwen Code that toold would not ask about, or judges when they are used.
const FREE_TOOLS_OF_QWEN_CODE: &[&str] = &[
    "agent",
    "ask_user_question",
    "exit_plan_mode",
    "glob",
    "grep_search",
    "list_directory",
    "read_file",
    "read_many_files",
    "skill",
    "task",
    "todo_write",
    "web_search",
];

/// Tools that change a file, which a permission may name.
const WRITING_TOOLS: &[&str] = &["Edit", "MultiEdit", "NotebookEdit", "Write"];

/// The effects of loading one file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SkillFile {
    /// Lines of shell that run as the file is loaded.
    pub(super) commands: Vec<String>,
    /// The skill's own hooks.
    pub(super) hooks: StartedPrograms,
    pub(super) permissions: Vec<SkillPermission>,
    /// The names behind `@`: files and folders that are read as the file is loaded, or resources of MCP servers. Some name
    /// nothing.
    pub(super) mentions: Vec<String>,
    /// The kind of the sub-agent that follows the file.
    pub(super) agent: Option<String>,
    /// The shell that the file names for its commands.
    pub(super) shell: Option<String>,
}

/// Something that the agent may do without asking while the skill is in use.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SkillPermission {
    /// A line of shell.
    Command(String),
    /// Lines that begin like this, and one with `$@` for each text that may be anything: for `Bash(git add:*)`, `git add` and
    /// `git add $@`.
    Commands {
        start: Option<String>,
        any: String,
    },
    Need(NamedNeed),
    /// Everything else, as it is written.
    Other(String),
}

impl SkillFile {
    /// Reads a file. `arguments` are those that the model gives, which Claude Code puts into the text before it looks
    /// for commands.
    ///
    /// # Errors
    /// The file cannot be read, its front matter is invalid, or its commands depend on the arguments in a way that is
    /// not certain.
    pub(super) fn read(agent: &str, file: &Path, arguments: &str) -> anyhow::Result<Self> {
        let text = files::read_text(file, MAX_BYTES).with_context(|| format!("can't read {}", file.display()))?;
        let folder = file.parent().and_then(Path::to_str).unwrap_or_default();
        let parsed = match agent {
            "qwen-code" => Self::of_qwen_code(&text),
            _ => Self::parse(&text, folder, arguments),
        };
        parsed.with_context(|| file.display().to_string())
    }

    fn parse(text: &str, folder: &str, arguments: &str) -> anyhow::Result<Self> {
        let parts = split::<Value>(text)?;
        let front = parts.front;
        ensure!(front.is_object() || front.is_null(), "the front matter is not a mapping");
        let body = with_arguments(&parts.body, arguments).replace("${CLAUDE_SKILL_DIR}", folder);
        let mut commands = embedded(&body);
        for command in &commands {
            ensure!(
                !has_placeholder(command) || is_plain(arguments) && !command.contains(['\'', '"', '\\']),
                "a command of it depends on the arguments"
            );
        }
        // They may be added at the end of the text.
        commands.extend(embedded(arguments));
        let mentions = mentions(&format!("{body}\n{arguments}"));
        let named = |key: &str| front.get(key).and_then(Value::as_str).map(str::to_owned);
        let is_forked = named("context").is_some_and(|context| context.trim() == "fork");
        let agent = named("agent").or_else(|| is_forked.then(|| "general-purpose".to_owned()));
        let mut found = Self { commands, mentions, agent, shell: named("shell"), ..Self::default() };
        for text in texts(front.get("allowed-tools"))? {
            found.permissions.extend(permissions(&text).iter().filter_map(|text| permission(text)));
        }
        found.hooks.add("hooks", front.get("hooks").unwrap_or(&Value::Null));
        Ok(found)
    }

    fn of_qwen_code(text: &str) -> anyhow::Result<Self> {
        let front = split::<Value>(text)?.front;
        ensure!(front.is_object() || front.is_null(), "the front matter is not a mapping");
        let mut found = Self::default();
        for tool in texts(front.get("allowedTools"))? {
            found.permissions.extend(permissions(&tool).iter().filter_map(|text| permission_of_qwen_code(text)));
        }
        found.hooks.add("hooks", front.get("hooks").unwrap_or(&Value::Null));
        Ok(found)
    }
}

/// The files that the agent may load by this name: a project's, the person's, an organization's and those of plugins.
/// All of the same name are meant, since their precedence differs between versions. Blocks.
///
/// # Errors
/// The name is no text that a file could have.
pub(super) fn find(agent: &str, name: &str, cwd: &Path, environment: &Environment) -> anyhow::Result<Vec<PathBuf>> {
    let name = bare(name);
    ensure!(!name.chars().any(char::is_control), "the name of the skill has control characters");
    let (prefix, last) = match name.rsplit_once(':') {
        Some((prefix, last)) => (Some(prefix), last),
        None => (None, name),
    };
    let mut found = Vec::new();
    let mut is_crowded = false;
    let mut collect = |folder: &Path| {
        let skills = folder.join("skills");
        let entries = first_names_in(&skills, MAX_DEFINITIONS);
        is_crowded |= entries.len() == MAX_DEFINITIONS;
        for entry in entries {
            let file = skills.join(&entry).join("SKILL.md");
            let is_named = || named(&file).is_some_and(|named| is_same(&named, last) || is_same(&named, name));
            if file.is_file() && (is_same(&entry, last) || is_named()) {
                found.push(file);
            }
        }
        collect_files(&folder.join("commands"), last, MAX_DEPTH, &mut found);
        !found.is_empty()
    };
    let mut is_found = false;
    for folder in folders(agent, prefix, cwd, environment) {
        is_found |= collect(&folder);
    }
    // One of a folder further down has the path in its name only where another one has the same name.
    if !is_found && prefix.is_none() && agent == "claude-code" {
        for top in started_in(cwd, environment) {
            folders_below(&top).iter().for_each(|folder| _ = collect(folder));
        }
    }
    for plugin in plugins(agent, cwd, environment) {
        let is_its = |own: &str| plugin.gives(name, own) || agent != "claude-code" && is_same(own, name);
        for skills in &plugin.skills {
            let entries = first_names_in(skills, MAX_DEFINITIONS);
            is_crowded |= entries.len() == MAX_DEFINITIONS;
            for folder in entries.iter().map(|entry| skills.join(entry)).chain([skills.clone()]) {
                let file = folder.join("SKILL.md");
                if !file.is_file() {
                    continue;
                }
                // The name in the file may stand alone.
                let by_file = named(&file).is_some_and(|named| is_its(&named) || plain(&named) == plain(name));
                if by_file || folder.file_name().is_some_and(|folder| is_its(&folder.to_string_lossy())) {
                    found.push(file);
                }
            }
        }
        let brings =
            plugin.names.iter().any(|own| prefix.is_some_and(|prefix| plain(prefix).starts_with(&*plain(own))));
        for commands in plugin.commands.iter().filter(|_| brings) {
            match commands.is_file() {
                true if commands.file_stem().is_some_and(|stem| is_same(&stem.to_string_lossy(), last)) => {
                    found.push(commands.clone())
                }
                true => {}
                false => collect_files(commands, last, MAX_DEPTH, &mut found),
            }
        }
        for (_, file) in plugin.named_commands.iter().filter(|(command, _)| is_its(command)) {
            found.push(file.clone().with_context(|| format!("the text of {name} is in the manifest of its plugin"))?);
        }
    }
    ensure!(!is_crowded, "a folder of skills has too many names");
    found.sort();
    found.dedup();
    Ok(found)
}

/// Whether it comes with the agent.
pub(super) fn needs_no_file(agent: &str, name: &str) -> bool {
    let without_file = if agent == "qwen-code" { WITHOUT_FILE_OF_QWEN_CODE } else { WITHOUT_FILE };
    without_file.iter().any(|known| is_same(known, bare(name)))
}

fn bare(name: &str) -> &str {
    name.trim().trim_start_matches('/')
}

/// The name in the file's front matter.
fn named(file: &Path) -> Option<String> {
    let text = files::read_text(file, MAX_BYTES).ok()?;
    split::<Value>(&text).ok()?.front.get("name")?.as_str().map(str::to_owned)
}

/// `NAME.md` in the folder, and in those below it.
fn collect_files(folder: &Path, name: &str, depth: usize, found: &mut Vec<PathBuf>) {
    for entry in names_in(folder) {
        let path = folder.join(&entry);
        if entry.strip_suffix(".md").is_some_and(|stem| is_same(stem, name)) && path.is_file() {
            found.push(path);
        } else if depth > 0 && path.is_dir() {
            collect_files(&path, name, depth - 1, found);
        }
    }
}

/// The text with the arguments in place of `$ARGUMENTS`.
fn with_arguments(text: &str, arguments: &str) -> String {
    let mut pieces = text.split("$ARGUMENTS");
    let mut filled = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        filled.push_str(if piece.starts_with('[') { "$ARGUMENTS" } else { arguments });
        filled.push_str(piece);
    }
    filled
}

/// Whether Claude Code, and not the shell, may replace a part of it by an argument.
fn has_placeholder(command: &str) -> bool {
    command
        .split('$')
        .skip(1)
        .any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()) || rest.starts_with("ARGUMENTS["))
}

/// Whether it stays the words that it is wherever a shell reads it.
fn is_plain(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || " _-./:@%+,=".contains(c))
}

/// The commands in a text: `` !`command` ``, and the lines of a block that begins with ```` ```! ````.
fn embedded(text: &str) -> Vec<String> {
    const INLINE: &str = "!`";
    const BLOCK: &str = "```!";
    let mut commands = Vec::new();
    let mut rest = text;
    loop {
        let (inline, block) = (rest.find(INLINE), rest.find(BLOCK));
        let (mark, end) = match (inline, block) {
            (Some(inline), Some(block)) if inline < block => (INLINE, "`"),
            (_, Some(_)) => (BLOCK, "```"),
            (Some(_), None) => (INLINE, "`"),
            (None, None) => break,
        };
        let Some((_, behind)) = rest.split_once(mark) else { break };
        let (command, after) = behind.split_once(end).unwrap_or((behind, ""));
        if !command.trim().is_empty() {
            commands.push(command.trim().to_owned());
        }
        rest = after;
    }
    commands
}

/// The names behind `@` in a text, where it is not within a word; without a line number, and as they are written.
fn mentions(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices('@') {
        let (before, behind) = text.split_at(at);
        if before.ends_with(|c: char| c.is_alphanumeric() || "_-./`@".contains(c)) {
            continue;
        }
        let name = cut::after_first(behind);
        let name = match name.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next().unwrap_or_default(),
            None => name.split(char::is_whitespace).next().unwrap_or_default(),
        };
        // It may be the end of a sentence, or of a file's name.
        let ends = name.trim_end_matches(|c: char| !c.is_alphanumeric() && !"_/".contains(c));
        let without_lines = name.split_once("#L").map_or(name, |(file, _)| file);
        found.extend([name, ends, without_lines].into_iter().filter(|name| !name.is_empty()).map(str::to_owned));
    }
    found.sort();
    found.dedup();
    found
}

/// A text, or a list of texts.
fn texts(value: Option<&Value>) -> anyhow::Result<Vec<String>> {
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![text.clone()]),
        Some(Value::Array(items)) => {
            let text = |item: &Value| item.as_str().map(str::to_owned).context("allowed-tools: expected texts");
            items.iter().map(text).collect()
        }
        Some(_) => anyhow::bail!("allowed-tools: expected a text or a list"),
    }
}

/// The permissions in a list that is separated by commas or spaces; those in parentheses belong to a tool's name.
fn permissions(list: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut depth = 0_usize;
    for c in list.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match found.last_mut() {
            Some(last) if depth > 0 || !(c == ',' || c.is_whitespace()) => last.push(c),
            _ => found.push(String::new()),
        }
    }
    found.retain(|text| !text.is_empty());
    found
}

/// `None` for what toold would not ask about.
fn permission(text: &str) -> Option<SkillPermission> {
    let other = || Some(SkillPermission::Other(text.to_owned()));
    let need = |category, target: &str| Some(SkillPermission::Need(NamedNeed { category, target: target.to_owned() }));
    let (tool, about) = match text.split_once('(') {
        Some((tool, about)) => (tool, about.strip_suffix(')').unwrap_or(about).trim()),
        None => (text, ""),
    };
    if let Some(names) = tool.strip_prefix("mcp__") {
        let (server, tool) = names.split_once("__").unwrap_or((names, "*"));
        return need(Category::Mcp, &format!("{server}/{tool}"));
    }
    match tool {
        "Bash" => {
            let line = about.strip_suffix(":*").map_or_else(|| about.to_owned(), |start| format!("{start} *"));
            let is_any = line.trim_matches(['*', ':', ' ']).is_empty();
            // Its wildcard would not be one in quotes.
            if is_any || line.contains('*') && line.contains(['\'', '"', '\\', '$', '`', '#']) {
                return other();
            }
            let start = line.strip_suffix(" *").map(str::trim).filter(|start| !start.contains('*'));
            Some(match start {
                Some(start) if reads_whatever_follows(start) => SkillPermission::Command(start.to_owned()),
                None if !line.contains('*') => SkillPermission::Command(line),
                _ => SkillPermission::Commands { start: start.map(str::to_owned), any: line.replace('*', "$@") },
            })
        }
        "WebFetch" => match about.strip_prefix("domain:").filter(|host| !host.is_empty() && !host.contains('*')) {
            Some(host) => need(Category::Network, &format!("https://{host}")),
            None => other(),
        },
        _ if WRITING_TOOLS.contains(&tool) && !about.is_empty() && !about.contains(['*', '?', '[', '{']) => {
            // `//` begins an absolute path there, and `/` one of the project.
            let path = match about.strip_prefix("//") {
                Some(rest) => format!("/{rest}"),
                None => about.trim_start_matches('/').to_owned(),
            };
            need(Category::FileWrite, &path)
        }
        _ if FREE_TOOLS.contains(&tool) => None,
        _ => other(),
    }
}

/// The same of Qwen Code, whose names of tools are others.
fn permission_of_qwen_code(text: &str) -> Option<SkillPermission> {
    let (tool, about) = text.split_once('(').map_or((text, None), |(tool, about)| (tool, Some(about)));
    if FREE_TOOLS_OF_QWEN_CODE.contains(&tool) {
        return None;
    }
    match (tool, about) {
        ("run_shell_command" | "Bash" | "Shell" | "ShellTool", Some(about)) => permission(&format!("Bash({about}")),
        _ if tool.starts_with("mcp__") => permission(text),
        _ => Some(SkillPermission::Other(text.to_owned())),
    }
}

fn reads_whatever_follows(start: &str) -> bool {
    let begins = |words: &&str| start.strip_prefix(*words).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
    is_plain(start) && READING.iter().any(begins)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[track_caller]
    fn commands(text: &str, arguments: &str, expected: &[&str]) {
        assert_eq!(SkillFile::parse(text, "/s", arguments).unwrap().commands, expected, "{text}");
    }

    #[test]
    fn commands_in_the_text_are_found() {
        commands("a !`git status` b !` touch x `\n", "", &["git status", "touch x"]);
        commands("(!`one`)x!`two`", "", &["one", "two"]);
        commands("```!\nmake\nrm a\n```\n!`two`", "", &["make\nrm a", "two"]);
        commands("!`one` and ```! two ``` and !`never closed", "", &["one", "two", "never closed"]);
        commands("use `git status` and ```sh\nmake\n```, wow!", "", &[]);
        commands("---\nname: x\n---\nÄ!`ü`", "", &["ü"]);
    }

    #[test]
    fn arguments_of_the_model_are_part_of_the_commands() {
        commands("!`gh pr view $ARGUMENTS`", "1; touch x", &["gh pr view 1; touch x"]);
        commands("Do $ARGUMENTS.", "!`touch x`", &["touch x", "touch x"]);
        commands("Nothing.", "!`touch x`", &["touch x"]);
        commands("!`cat ${CLAUDE_SKILL_DIR}/a`", "", &["cat /s/a"]);
        commands("!`gh pr view $1`", "12", &["gh pr view $1"]);
        for (text, arguments) in [
            ("!`gh pr view $1`", "12; touch x"),
            ("!`gh pr view $ARGUMENTS[0]`", "$(touch x)"),
            ("!`gh pr view '$1'`", "12"),
        ] {
            assert!(SkillFile::parse(text, "/s", arguments).is_err(), "{text}");
        }
    }

    #[test]
    fn permissions_are_commands_needs_or_asked_about() {
        let read = |list: &str| {
            let found = SkillFile::parse(&format!("---\nallowed-tools: {list}\n---\nx"), "/s", "").unwrap();
            let shown = |permission: &SkillPermission| match permission {
                SkillPermission::Command(line) => format!("$ {line}"),
                SkillPermission::Commands { start: Some(start), any } => format!("$ {start} | {any}"),
                SkillPermission::Commands { start: None, any } => format!("$ | {any}"),
                SkillPermission::Need(need) => format!("{} {}", need.category, need.target),
                SkillPermission::Other(text) => format!("? {text}"),
            };
            found.permissions.iter().map(shown).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(read("Read, Grep Glob,TodoWrite"), "");
        assert_eq!(
            read("Bash(git add:*), Bash(touch *) Bash(npm test)"),
            "$ git add | git add $@, $ touch | touch $@, $ npm test"
        );
        assert_eq!(read("Bash(git * main), Bash(git p*)"), "$ | git $@ main, $ | git p$@");
        assert_eq!(read("Bash(grep '*' a)"), "? Bash(grep '*' a)");
        assert_eq!(read("Bash(ls -l:*) Bash(git status *) Bash(lsx *)"), "$ ls -l, $ git status, $ lsx | lsx $@");
        assert_eq!(read("Bash(ls; rm *)"), "$ ls; rm | ls; rm $@");
        assert_eq!(read("[\"Bash(rm x, y)\", Write]"), "$ rm x, y, ? Write");
        assert_eq!(read("Bash, Bash(*), Bash(:*), Edit, PowerShell(x), Bash()").matches('?').count(), 6);
        assert_eq!(
            read("Edit(//etc/x) Write(/a.txt) Edit(src/**)"),
            "file.write /etc/x, file.write a.txt, ? Edit(src/**)"
        );
        assert_eq!(read("WebFetch(domain:a.test), WebFetch"), "network https://a.test, ? WebFetch");
        assert_eq!(read("mcp__a__b, mcp__a"), "mcp a/b, mcp a/*");
    }

    #[test]
    fn mentioned_files_are_found_and_addresses_are_not() {
        for (text, expected) in [
            ("Read @a/b.txt, then stop.", &["a/b.txt", "a/b.txt,"][..]),
            ("@a and (@~/b) @\"c d\"", &["a", "c d", "~/b", "~/b)"]),
            ("@src/x.rs#L3-9", &["src/x.rs", "src/x.rs#L3-9"]),
            ("@docs:file:///a", &["docs:file:///a"]),
            ("me@example.org `@a` @ a", &[]),
        ] {
            assert_eq!(mentions(text), expected, "{text}");
        }
        let of_arguments = SkillFile::parse("Do $ARGUMENTS.", "/s", "@a").unwrap().mentions;
        assert_eq!(of_arguments, ["a", "a."]);
    }

    #[test]
    fn the_sub_agent_of_a_skill_is_known() {
        let agent = |front: &str| SkillFile::parse(&format!("---\n{front}\n---\nx"), "/s", "").unwrap().agent;
        assert_eq!(agent("context: fork\nagent: reviewer").as_deref(), Some("reviewer"));
        assert_eq!(agent("context: fork").as_deref(), Some("general-purpose"));
        assert_eq!(agent("name: x"), None);
    }

    #[test]
    fn hooks_of_a_skill_are_commands() {
        let text = "---\nhooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        - type: command\n          command: ./x.sh\n---\n";
        assert_eq!(SkillFile::parse(text, "/s", "").unwrap().hooks.lines, ["./x.sh"]);
        assert_eq!(SkillFile::of_qwen_code(text).unwrap().hooks.lines, ["./x.sh"]);
    }

    #[test]
    fn a_skill_of_qwen_code_allows_tools_and_runs_no_commands_of_its_text() {
        let text =
            "---\nallowedTools: [read_file, \"run_shell_command(git add *)\", write_file, mcp__a__b]\n---\n!`touch x`";
        let found = SkillFile::of_qwen_code(text).unwrap();
        assert_eq!(found.commands, [""; 0]);
        let of_command = SkillPermission::Commands { start: Some("git add".to_owned()), any: "git add $@".to_owned() };
        let of_server = SkillPermission::Need(NamedNeed { category: Category::Mcp, target: "a/b".to_owned() });
        assert_eq!(found.permissions, [of_command, SkillPermission::Other("write_file".to_owned()), of_server]);
    }

    #[test]
    fn files_that_cannot_be_read_for_certain_are_errors() {
        for text in
            ["---\nname: x\n", "---\n- a\n---\n", "---\nallowed-tools: {a: b}\n---\n", "---\nallowed-tools: [1]\n---\n"]
        {
            assert!(SkillFile::parse(text, "/s", "").is_err(), "{text}");
        }
    }

    #[test]
    fn files_are_found_by_name_in_the_project_the_persons_folder_and_plugins() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let write = |path: &str, text: &str| {
            let path = top.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("work/.claude/skills/tidy/SKILL.md", "x");
        write("work/.claude/skills/other/SKILL.md", "---\nname: Neat\n---\n");
        write("work/.claude/commands/front/build.md", "x");
        write("work/sub/.claude/skills/deep/SKILL.md", "x");
        write("home/.claude/skills/tidy/SKILL.md", "x");
        write("plugin/skills/lint/SKILL.md", "x");
        write("extra/.claude/skills/more/SKILL.md", "x");
        let extra = serde_json::json!({"permissions": {"additionalDirectories": [top.join("extra")]}});
        write("work/.claude/settings.local.json", &extra.to_string());
        write("plugin/commands/ship.md", "x");
        let list = serde_json::json!({"plugins": {"tools@market": [{"installPath": top.join("plugin")}]}});
        write("home/.claude/plugins/installed_plugins.json", &list.to_string());
        let find_with = |name: &str, variable: (&str, PathBuf)| -> Vec<String> {
            let environment = Environment::default().with([(variable.0, variable.1)]);
            let found = find("claude-code", name, &top.join("work/src"), &environment).unwrap();
            found.iter().map(|file| file.strip_prefix(&top).unwrap().display().to_string()).collect()
        };
        let at_home = |name: &str| find_with(name, ("HOME", top.join("home")));
        let both = ["home/.claude/skills/tidy/SKILL.md", "work/.claude/skills/tidy/SKILL.md"];
        assert_eq!(at_home("tidy"), both);
        assert_eq!(at_home("/Tidy"), both);
        assert_eq!(at_home("neat"), ["work/.claude/skills/other/SKILL.md"]);
        assert_eq!(at_home("front:build"), ["work/.claude/commands/front/build.md"]);
        assert_eq!(at_home("sub:deep"), ["work/sub/.claude/skills/deep/SKILL.md"]);
        assert_eq!(at_home("more"), ["extra/.claude/skills/more/SKILL.md"]);
        assert_eq!(at_home("tools:lint"), ["plugin/skills/lint/SKILL.md"]);
        assert_eq!(at_home("tools:ship"), ["plugin/commands/ship.md"]);
        assert!(at_home("lint").is_empty() && at_home("../tidy").is_empty() && at_home("nothing").is_empty());
        let started_in = |folder: &str| Environment::default().with([("CLAUDE_PROJECT_DIR", top.join(folder))]);
        let beside =
            |folder: &str| find("claude-code", "other", &top.join("elsewhere"), &started_in(folder)).unwrap().len();
        assert_eq!((beside("work/src"), beside("plugin")), (1, 0));
        let elsewhere = find_with("ship", ("CLAUDE_CONFIG_DIR", top.join("plugin")));
        assert_eq!(elsewhere, ["plugin/commands/ship.md"]);
    }
}
