//! The setting of Claude Code that puts `toolctl confine` before its command lines, and whether it counts here.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::Context;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, socket};
use serde_json::{Value, json};
use toold_client::place;

use crate::commands::agents::switched_off::MANAGED;
use crate::commands::hook::FailArg;
use crate::commands::mcp::jsonc;
use crate::config_file;

/// The variable. Claude Code takes it from its environment and from its settings, also from those of a repository.
pub(crate) const VARIABLE: &str = "CLAUDE_CODE_SHELL_PREFIX";

/// Variables that make a shell or the linker run something before the first program does. With `SHELLOPTS=xtrace`, bash expands
/// `PS4` in front of each command.
const RUN_BEFORE: &[&str] = &[
    "BASHOPTS",
    "BASH_ENV",
    "DYLD_INSERT_LIBRARIES",
    "ENV",
    "GCONV_PATH",
    "LD_AUDIT",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "PROMPT_COMMAND",
    "PS4",
    "SHELLOPTS",
    "ZDOTDIR",
];

/// The names of the links to this program; by its name it knows what it is asked to do. Claude Code runs servers by a prefix too, and
/// then takes all of it for the path of a program, so that it cannot have arguments.
const NAMES: [(FailArg, &str); 2] =
    [(FailArg::Open, "toolctl-confine-open"), (FailArg::Closed, "toolctl-confine-closed")];

/// The value of the setting: the path of a link, which [`make_link`] makes. `None` without a state folder.
pub(crate) fn value(fail: FailArg) -> Option<String> {
    let (_, name) = NAMES.into_iter().find(|(of, _)| *of == fail)?;
    place::state_folder()?.join("hooks").join(name).into_os_string().into_string().ok()
}

/// What a program of this path does without a daemon; `None` for a value that is not ours.
pub(crate) fn fail_of(value: &Path) -> Option<FailArg> {
    let name = value.file_name()?;
    NAMES.into_iter().find(|(_, known)| name == *known).map(|(fail, _)| fail)
}

/// Makes the link that a setting names.
///
/// # Errors
/// It cannot be made.
pub(crate) fn make_link(value: &Path, program: &Path) -> anyhow::Result<()> {
    let words = || format!("can't make {}", value.display());
    let folder = value.parent().with_context(words)?;
    std::fs::create_dir_all(folder).with_context(words)?;
    let beside = value.with_extension(format!("new-{}", std::process::id()));
    // Left behind by a process of the same number.
    let _ = std::fs::remove_file(&beside);
    symlink(program, &beside).and_then(|()| std::fs::rename(&beside, value)).with_context(words)
}

/// Whether Claude Code, whose hook this process is, runs its command lines through this program, and nothing before it.
pub(crate) fn is_in_use() -> bool {
    let value = std::env::var(VARIABLE).unwrap_or_default();
    let value = Path::new(&value);
    let (theirs, own) = (value.canonicalize().ok(), std::env::current_exe().ok());
    let is_own = theirs.is_some() && theirs == own.and_then(|own| own.canonicalize().ok());
    fail_of(value).is_some() && is_own && runs_nothing_before() && !settings_here().any(|text| bypasses(&text, value))
}

/// The settings of Claude Code that count here.
fn settings_here() -> impl Iterator<Item = String> {
    let own = std::env::var_os("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    let own = own.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".claude")));
    let of_project = std::env::var_os("CLAUDE_PROJECT_DIR").map(|project| PathBuf::from(project).join(".claude"));
    let of_project = of_project
        .into_iter()
        .flat_map(|folder| ["settings.json", "settings.local.json"].map(|name| folder.join(name)));
    let files = own.map(|folder| folder.join("settings.json")).into_iter().chain(of_project).chain([MANAGED.into()]);
    files.filter_map(|file| config_file::read(&file).ok().flatten())
}

/// Whether settings let command lines past this program. They have a sandbox of their own, in which nothing can be asked of the
/// daemon, and which a repository's settings may widen. Or they set variables otherwise, which Claude Code may do only after it
/// has started this hook.
fn bypasses(settings: &str, value: &Path) -> bool {
    let variable = |name: &str| jsonc::member(settings, &["env", name]);
    let is_other = |set: Value| set.as_str().is_none_or(|set| Path::new(set) != value);
    jsonc::member(settings, &["sandbox", "enabled"]) == Some(json!(true))
        || variable(VARIABLE).is_some_and(is_other)
        || RUN_BEFORE.iter().any(|name| variable(name).is_some_and(|set| set != json!("")))
}

/// Whether this process is in a sandbox that lets it reach no program of this machine, as that of Claude Code does.
pub(super) fn is_in_a_sandbox() -> bool {
    socket(AddressFamily::UNIX, SocketType::STREAM, None).is_err_and(|error| error == Errno::PERM)
}

/// A variable that Claude Code was started with is the person's; another one comes from settings, such as a repository's.
fn runs_nothing_before() -> bool {
    let set: Vec<_> = RUN_BEFORE.iter().filter_map(|name| Some((*name, std::env::var_os(name)?))).collect();
    if set.is_empty() {
        return true;
    }
    let pid = std::env::var("CLAUDE_PID").ok().and_then(|pid| pid.parse::<u32>().ok());
    let Some(own) = pid.and_then(|pid| std::fs::read(format!("/proc/{pid}/environ")).ok()) else { return false };
    set.iter().all(|(name, value)| {
        let line = [name.as_bytes(), b"=", value.as_encoded_bytes()].concat();
        own.split(|byte| *byte == 0).any(|known| known == line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_ours_by_its_name() {
        for (fail, name) in NAMES {
            assert_eq!(fail_of(&Path::new("/h/.local/state/toold/hooks").join(name)), Some(fail));
        }
        for other in ["", "/usr/bin/toolctl", "/usr/bin/log -x", "/tmp/toolctl-confine-closed/x"] {
            assert_eq!(fail_of(Path::new(other)), None, "{other}");
        }
    }

    #[test]
    fn settings_may_let_lines_past_it() {
        let value = Path::new("/h/toolctl-confine-closed");
        let settings = |env: Value| json!({"env": env}).to_string();
        for (text, expected) in [
            (settings(json!({VARIABLE: value})), false),
            (settings(json!({"OTHER": "x", "BASH_ENV": ""})), false),
            ("{}".to_owned(), false),
            ("not JSON".to_owned(), false),
            (settings(json!({VARIABLE: ""})), true),
            (settings(json!({VARIABLE: 1})), true),
            (settings(json!({VARIABLE: value, "BASH_ENV": "x"})), true),
            (json!({"sandbox": {"enabled": true}}).to_string(), true),
        ] {
            assert_eq!(bypasses(&text, value), expected, "{text}");
        }
    }

    #[test]
    fn a_link_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("deep/toolctl-confine-open");
        for program in ["/usr/bin/toolctl", "/opt/toolctl"] {
            make_link(&link, Path::new(program)).unwrap();
            assert_eq!(std::fs::read_link(&link).unwrap(), Path::new(program));
        }
    }
}
