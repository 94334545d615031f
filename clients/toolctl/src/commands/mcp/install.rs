//! `toolctl mcp install`: adds an entry to the configuration of MCP clients, so that they start `toolctl mcp`.

use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use toold_proto::mcp::{ALL_TOOLS, WITHOUT_FILES_AND_SHELL};

use crate::commands::mcp::{jsonc, toml_table};
use crate::config_file::{behind_links, difference, read, replace};
use crate::confirm::confirm;
use crate::exit::OK;
use crate::globals::Globals;
use crate::output;
use crate::person::PersonWrites;
use crate::{made_folders, profiles};

/// Add toold to the configuration of an MCP client
///
/// Shows the change and asks for confirmation. The rest of the file stays as it is, including comments and other members
/// of the entry. The original file is kept beside it. --undo restores it, or removes only the entry if the file has changed
/// since.
///
/// Clients that read and write files and run commands with tools of their own get the profile without-files-and-shell, which
/// leaves out the tools of toold that do the same. --profile all offers them too.
#[derive(Debug, Args)]
pub(crate) struct McpInstallArgs {
    /// The MCP client to set up
    client: McpClient,
    /// Change this file instead of the client's default one
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The profile that the client gets: one of [mcp.profiles] of the configuration, or a built-in one (all,
    /// without-files-and-shell). An entry that is there keeps its own by default
    #[arg(long, value_name = "NAME", conflicts_with = "undo")]
    profile: Option<String>,
    /// Remove the entry
    #[arg(long)]
    undo: bool,
    /// Show the change, and make none
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum McpClient {
    ClaudeCode,
    ClaudeDesktop,
    Codex,
    Copilot,
    Cursor,
    #[value(alias = "gemini")]
    GeminiCli,
    Opencode,
    QwenCode,
    Vscode,
    Windsurf,
    Zed,
}

/// The name of the entry.
const NAME: &str = "toold";

impl McpClient {
    /// Its configuration: [`Self::file`], or the other one of the two that opencode reads, if only that is there.
    pub(crate) fn found_file(self, home: &Path) -> PathBuf {
        let file = home.join(self.file());
        let other = file.with_extension("jsonc");
        if self == Self::Opencode && !file.exists() && other.exists() { other } else { file }
    }

    /// Where its configuration is: below the home folder, or in the folder that the client's own variable or the system's
    /// names.
    pub(crate) fn file(self) -> PathBuf {
        let mac = cfg!(target_os = "macos");
        let moved = match self {
            Self::ClaudeCode => in_named_folder("CLAUDE_CONFIG_DIR", ".claude.json"),
            Self::Codex => in_named_folder("CODEX_HOME", "config.toml"),
            Self::GeminiCli => in_named_folder("GEMINI_CLI_HOME", ".gemini/settings.json"),
            Self::QwenCode => in_named_folder("QWEN_HOME", "settings.json"),
            _ => None,
        };
        if let Some(moved) = moved {
            return moved;
        }
        below_home(match self {
            Self::ClaudeCode => ".claude.json",
            Self::ClaudeDesktop if mac => "Library/Application Support/Claude/claude_desktop_config.json",
            Self::ClaudeDesktop => "$XDG_CONFIG_HOME/Claude/claude_desktop_config.json",
            Self::Codex => ".codex/config.toml",
            Self::Copilot => ".copilot/mcp-config.json",
            Self::Cursor => ".cursor/mcp.json",
            Self::GeminiCli => ".gemini/settings.json",
            Self::Opencode => "$XDG_CONFIG_HOME/opencode/opencode.json",
            Self::QwenCode => ".qwen/settings.json",
            Self::Vscode if mac => "Library/Application Support/Code/User/mcp.json",
            Self::Vscode => "$XDG_CONFIG_HOME/Code/User/mcp.json",
            Self::Windsurf => ".codeium/windsurf/mcp_config.json",
            // https://zed.dev/docs/configuring-zed: only on Linux.
            Self::Zed if mac => ".config/zed/settings.json",
            Self::Zed => "$XDG_CONFIG_HOME/zed/settings.json",
        })
    }

    /// The member that holds servers by name.
    pub(crate) fn holder(self) -> &'static str {
        match self {
            Self::ClaudeCode
            | Self::ClaudeDesktop
            | Self::Copilot
            | Self::Cursor
            | Self::GeminiCli
            | Self::QwenCode
            | Self::Windsurf => "mcpServers",
            Self::Codex => "mcp_servers",
            Self::Opencode => "mcp",
            Self::Vscode => "servers",
            Self::Zed => "context_servers",
        }
    }

    /// Whether it reads and writes files and runs commands with tools of its own.
    fn has_own_tools(self) -> bool {
        match self {
            // Chats without a project.
            Self::ClaudeDesktop => false,
            Self::ClaudeCode // https://code.claude.com/docs/en/tools-reference
            | Self::Codex // https://developers.openai.com/codex/cli
            | Self::Copilot // https://docs.github.com/en/copilot/reference/hooks-reference
            | Self::Cursor // https://cursor.com/docs/agent/overview
            | Self::GeminiCli // https://geminicli.com/docs/reference/tools
            | Self::Opencode // https://opencode.ai/docs/tools
            | Self::QwenCode // https://qwenlm.github.io/qwen-code-docs
            | Self::Vscode // https://code.visualstudio.com/docs/copilot/concepts/tools
            | Self::Windsurf // https://docs.windsurf.com/windsurf/cascade/cascade
            | Self::Zed => true, // https://zed.dev/docs/ai/tools
        }
    }

    pub(crate) fn entry(self, program: &str, arguments: &[String]) -> Value {
        let entry = json!({"command": program, "args": arguments});
        match self {
            Self::ClaudeCode | Self::Vscode => json!({"type": "stdio", "command": program, "args": arguments}),
            Self::Copilot => json!({"type": "local", "command": program, "args": arguments, "tools": ["*"]}),
            Self::Opencode => {
                let command: Vec<&str> = [program].into_iter().chain(arguments.iter().map(String::as_str)).collect();
                json!({"type": "local", "command": command, "enabled": true})
            }
            Self::ClaudeDesktop
            | Self::Codex
            | Self::Cursor
            | Self::GeminiCli
            | Self::QwenCode
            | Self::Windsurf
            | Self::Zed => entry,
        }
    }

    /// The arguments in the entry of the file's text.
    pub(super) fn arguments(self, text: &str) -> Option<Vec<String>> {
        match self {
            Self::Codex => toml_table::strings(text, self.holder(), NAME, "args"),
            Self::Opencode => {
                let command: Vec<String> =
                    serde_json::from_value(jsonc::member(text, &[self.holder(), NAME, "command"])?).ok()?;
                Some(command.get(1..)?.to_vec())
            }
            _ => serde_json::from_value(jsonc::member(text, &[self.holder(), NAME, "args"])?).ok(),
        }
    }

    /// The profile in the entry of the file's text.
    pub(super) fn profile(self, text: &str) -> Option<String> {
        profile_in(&self.arguments(text)?).map(|(_, profile)| profile)
    }

    /// The file's text with the entry in it. `profile`: the one that the user chose.
    fn with_entry(self, text: &str, program: &str, profile: Option<&str>) -> anyhow::Result<String> {
        let own = if self.has_own_tools() { Some(WITHOUT_FILES_AND_SHELL) } else { None };
        let arguments = with_profile(self.arguments(text).unwrap_or_default(), profile, own);
        let entry = self.entry(program, &arguments);
        match self {
            Self::Codex => {
                toml_table::with_table(text, self.holder(), NAME, entry.as_object().context("an entry has members")?)
            }
            _ => jsonc::with_member(text, &[self.holder(), NAME], &entry),
        }
    }

    /// The file's text without the entry, or with the one that it had `before`.
    fn without_entry(self, text: &str, before: &str) -> anyhow::Result<String> {
        match self {
            Self::Codex => toml_table::without_table(text, self.holder(), NAME, before),
            _ => jsonc::without_member(text, self.holder(), NAME, before),
        }
    }

    /// As on the command line.
    pub(super) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Whether the entry starts this program, of this installation or another.
    fn has_own_entry(self, text: &str) -> bool {
        let command = match self {
            Self::Codex => toml_table::member(text, self.holder(), NAME, "command"),
            _ => jsonc::member(text, &[self.holder(), NAME, "command"]),
        };
        let command = command.map(|command| command.get(0).cloned().unwrap_or(command));
        let is_ours = |command: &Value| {
            command.as_str().is_some_and(|command| Path::new(command).file_name() == Path::new("toolctl").file_name())
        };
        command.as_ref().is_some_and(is_ours) && self.arguments(text).is_some_and(|words| words.contains(&"mcp".into()))
    }

    pub(crate) fn has_entry(self, text: &str) -> bool {
        match self {
            Self::Codex => toml_table::has_table(text, self.holder(), NAME),
            _ => jsonc::has_member(text, &[self.holder(), NAME]),
        }
    }
}

impl McpInstallArgs {
    /// For the client's own file.
    pub(crate) fn of(client: McpClient, profile: Option<String>) -> Self {
        Self { client, file: None, profile, undo: false, dry_run: false, yes: false }
    }

    /// As the options of another command say.
    pub(crate) fn with(self, undo: bool, dry_run: bool, yes: bool) -> Self {
        Self { undo, dry_run, yes, ..self }
    }
}

pub(crate) async fn run(install: McpInstallArgs, globals: &Globals) -> anyhow::Result<u8> {
    let right = PersonWrites::of(globals).await?;
    let file = match &install.file {
        Some(file) => std::path::absolute(file)?,
        None => install.client.found_file(&home()?),
    };
    let file = behind_links(&file);
    let backup = backup_of(&file);
    let program = program()?;
    let now = read(&file)?;
    let (after, question) = if install.undo {
        let before = read(&backup)?;
        let (after, is_original) = undone(install.client, now.as_deref().unwrap_or_default(), before, &program)
            .with_context(|| format!("can't change {}", file.display()))?;
        (after, format!("{} {}?", if is_original { "Restore" } else { "Write" }, file.display()))
    } else {
        if let Some(profile) = &install.profile {
            profiles::check_with_daemon(profile, globals).await?;
        }
        let (text, profile) = (now.as_deref().unwrap_or_default(), install.profile.as_deref());
        let after = install.client.with_entry(text, &program, profile);
        let after = after.with_context(|| format!("can't change {}", file.display()))?;
        (Some(after), format!("Write {}?", file.display()))
    };
    let before = now.clone().unwrap_or_default();
    let mut out = output::stdout();
    if now == after {
        writeln!(out, "{} already has the entry", file.display())?;
        return Ok(OK);
    }
    let text = after.as_deref().unwrap_or_default();
    write!(out, "{}", difference(&file, &before, text))?;
    if !install.undo {
        writeln!(out, "{}", about_profile(install.client, install.client.profile(text).as_deref()))?;
    }
    if install.dry_run || !install.yes && !confirm(&question).await? {
        return Ok(OK);
    }
    if install.undo {
        put_back(&file, &backup, after.as_deref(), &right)?;
        writeln!(out, "removed the entry from {}", file.display())?;
        return Ok(OK);
    }
    made_folders::create_for(&file)?;
    // When the entry is only updated, the backup from before the first one stays. One of the same name may be the person's.
    if !install.client.has_own_entry(&before) {
        back_up(&backup, now.as_deref(), &right)?;
    }
    replace(&file, text, &right)?;
    match backup.exists() {
        true => writeln!(out, "done; the original is {}", backup.display())?,
        false => writeln!(out, "done")?,
    }
    Ok(OK)
}

/// Keeps the text of the file as it is before a change; `None` for a file that does not exist.
pub(crate) fn back_up(backup: &Path, before: Option<&str>, right: &PersonWrites) -> anyhow::Result<()> {
    match before {
        Some(before) => replace(backup, before, right),
        // One of an earlier file.
        None => remove(backup),
    }
}

/// Writes the text without our part, and removes the backup. `None`: we created the file, which is removed, with the
/// folders that we made for it.
pub(crate) fn put_back(file: &Path, backup: &Path, after: Option<&str>, right: &PersonWrites) -> anyhow::Result<()> {
    match after {
        Some(after) => replace(file, after, right)?,
        None => remove(file)?,
    }
    remove(backup)?;
    match after {
        Some(_) => Ok(()),
        None => made_folders::remove_above(file),
    }
}

fn remove(file: &Path) -> anyhow::Result<()> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("can't remove {}", file.display()))
        }
        _ => Ok(()),
    }
}

/// The text without the entry, `None` when there was no file before, and whether it is the original as it was kept.
fn undone(
    client: McpClient,
    now: &str,
    before: Option<String>,
    program: &str,
) -> anyhow::Result<(Option<String>, bool)> {
    let text = before.as_deref().unwrap_or_default();
    if client.has_entry(now)
        && client.with_entry(text, program, client.profile(now).as_deref()).is_ok_and(|after| after == now)
    {
        return Ok((before, true));
    }
    let after = client.without_entry(now, text)?;
    if !client.has_entry(now) {
        bail!("there is nothing to undo: it has no entry {NAME}");
    }
    Ok((Some(after), false))
}

/// Says which tools the profile leaves out, and how to choose another one.
fn about_profile(client: McpClient, profile: Option<&str>) -> String {
    let name = client.name();
    match profile {
        Some(WITHOUT_FILES_AND_SHELL) => format!(
            "profile {WITHOUT_FILES_AND_SHELL}: {name} reads and writes files and runs commands with tools of its own, so \
             toold's are left out;\nto have them too: toolctl mcp install {name} --profile {ALL_TOOLS}"
        ),
        Some(ALL_TOOLS) | None => format!("profile {ALL_TOOLS}: {name} gets all tools"),
        Some(profile) => format!("profile {profile}: as [mcp.profiles.{profile}] of the configuration says"),
    }
}

/// The arguments of an entry, with the others that it had. `chosen`: the profile that the user chose. `own`: the one for an
/// entry that has none.
fn with_profile(mut arguments: Vec<String>, chosen: Option<&str>, own: Option<&str>) -> Vec<String> {
    if !arguments.iter().any(|argument| argument == "mcp") {
        arguments = vec!["mcp".to_owned()];
    }
    match (profile_in(&arguments), chosen, own) {
        (Some((at, _)), Some(chosen), _) => drop(arguments.splice(at, [PROFILE.to_owned(), chosen.to_owned()])),
        (None, Some(profile), _) | (None, None, Some(profile)) => {
            arguments.extend([PROFILE.to_owned(), profile.to_owned()]);
        }
        (Some(_), None, _) | (None, None, None) => {}
    }
    arguments
}

const PROFILE: &str = "--profile";

/// The place of the option for the profile, and the profile.
fn profile_in(arguments: &[String]) -> Option<(Range<usize>, String)> {
    let at = arguments.iter().position(|argument| argument.strip_prefix(PROFILE).is_some_and(is_end))?;
    match arguments[at].split_once('=') {
        Some((_, profile)) => Some((at..at + 1, profile.to_owned())),
        None => Some((at..(at + 2).min(arguments.len()), arguments.get(at + 1).cloned().unwrap_or_default())),
    }
}

/// Whether the name of an option ends here.
fn is_end(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('=')
}

/// A path of another program below the home folder, or the absolute path in its place: one that begins with `$XDG_CONFIG_HOME`
/// is in the folder that this variable names, or else in `.config`.
pub(crate) fn below_home(path: &str) -> PathBuf {
    match path.strip_prefix("$XDG_CONFIG_HOME/") {
        Some(rest) => in_named_folder("XDG_CONFIG_HOME", rest).unwrap_or_else(|| Path::new(".config").join(rest)),
        None => PathBuf::from(path),
    }
}

/// The file in the folder that a variable of an agent names; `None` without an absolute path in it.
pub(crate) fn in_named_folder(variable: &str, file: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(variable).map(PathBuf::from).filter(|folder| folder.is_absolute())?;
    Some(folder.join(file))
}

pub(crate) fn home() -> anyhow::Result<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    home.context("HOME is not set")
}

/// The path of this program, for other programs to start it.
pub(crate) fn program() -> anyhow::Result<String> {
    let own = std::env::current_exe().context("can't find the path of this program")?;
    own.into_os_string().into_string().ok().context("this program's path is not UTF-8")
}

/// The copy that an installation keeps of the file as it was.
pub(crate) fn backup_of(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".before-toold");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_other_servers_stay() {
        let text = "{\n  // mine\n  \"context_servers\": {\n    \"other\": {\"command\": \"x\"}, // theirs\n  },\n  \"theme\": \"One\"\n}\n";
        let after = McpClient::Zed.with_entry(text, "/bin/toolctl", None).unwrap();
        assert!(
            after.contains("// mine") && after.contains("// theirs") && after.contains("\"theme\": \"One\""),
            "{after}"
        );
        assert!(McpClient::Zed.has_entry(&after) && !McpClient::Zed.has_entry(text));
        assert_eq!(McpClient::Zed.with_entry(&after, "/bin/toolctl", None).unwrap(), after);
    }

    #[test]
    fn an_empty_file_gets_a_whole_one() {
        let after = McpClient::Cursor.with_entry("", "/bin/toolctl", Some("web")).unwrap();
        let read: Value = serde_json::from_str(&after).unwrap();
        assert_eq!(
            read,
            json!({"mcpServers": {"toold": {"command": "/bin/toolctl", "args": ["mcp", "--profile", "web"]}}})
        );
    }

    #[test]
    fn other_arguments_stay_when_the_profile_changes() {
        let check = |before: &[&str], chosen, own, after: &[&str]| {
            let before = before.iter().map(|&argument| argument.to_owned()).collect();
            assert_eq!(with_profile(before, chosen, own), after);
        };
        let own = Some(WITHOUT_FILES_AND_SHELL);
        check(&[], None, None, &["mcp"]);
        check(&["serve"], None, own, &["mcp", "--profile", WITHOUT_FILES_AND_SHELL]);
        check(&["mcp", "--cwd", "/x"], Some("web"), own, &["mcp", "--cwd", "/x", "--profile", "web"]);
        check(&["mcp", "--profile", "all", "--cwd", "/x"], None, own, &["mcp", "--profile", "all", "--cwd", "/x"]);
        check(&["mcp", "--profile=all", "--cwd", "/x"], Some("web"), own, &["mcp", "--profile", "web", "--cwd", "/x"]);
        check(&["mcp", "--profile"], Some("web"), own, &["mcp", "--profile", "web"]);
    }

    #[test]
    fn a_difference_shows_the_lines_that_come() {
        let shown = difference(Path::new("f"), "a\nb\nc\n", "a\nb\nnew\nc\n");
        assert_eq!(shown, "f\n  a\n  b\n+ new\n  c\n");
    }
}
