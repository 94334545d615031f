//! The shell that an agent runs commands in. Hooks inherit the agent's environment.

use std::fs;
use std::path::Path;

use crate::commands::hook::HookAgent;

/// Shells that read a line as bash does, or refuse it.
const LIKE_BASH: &[&str] = &["bash", "sh", "dash"];

/// The agent's shell, unless it is bash or one that reads lines as bash does.
pub(crate) fn other_than_bash(agent: HookAgent) -> Option<String> {
    let shell = match agent {
        HookAgent::ClaudeCode | HookAgent::Opencode | HookAgent::Cursor | HookAgent::Vscode => {
            of_environment().or_else(of_user)
        }
        HookAgent::Codex => of_user().or_else(of_environment),
        HookAgent::Gemini | HookAgent::Copilot | HookAgent::QwenCode => None,
    };
    shell.filter(|shell| !is_like_bash(shell))
}

fn is_like_bash(shell: &str) -> bool {
    Path::new(shell).file_name().is_some_and(|name| LIKE_BASH.iter().any(|known| name == *known))
}

fn of_environment() -> Option<String> {
    std::env::var("SHELL").ok().filter(|shell| !shell.is_empty())
}

/// The login shell. Without the user's entry in the file, it is not known.
fn of_user() -> Option<String> {
    let user = rustix::process::getuid().as_raw().to_string();
    shell_in(&fs::read_to_string("/etc/passwd").ok()?, &user)
}

/// `name:password:uid:gid:comment:home:shell`
fn shell_in(passwd: &str, user: &str) -> Option<String> {
    let entry = passwd.lines().find(|line| line.split(':').nth(2) == Some(user))?;
    entry.split(':').nth(6).filter(|shell| !shell.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_login_shell_is_the_last_field() {
        let passwd =
            "root:x:0:0:root:/root:/bin/bash\nme:x:1000:1000:Me,,,:/home/me:/usr/bin/zsh\nno:x:5:5::/:\nbroken\n";
        assert_eq!(shell_in(passwd, "1000").as_deref(), Some("/usr/bin/zsh"));
        assert_eq!(shell_in(passwd, "0").as_deref(), Some("/bin/bash"));
        assert_eq!((shell_in(passwd, "5"), shell_in(passwd, "7")), (None, None));
    }

    #[test]
    fn only_other_shells_are_passed_on() {
        for shell in ["/bin/bash", "bash", "/bin/sh", "/usr/bin/dash"] {
            assert!(is_like_bash(shell), "{shell}");
        }
        for shell in ["/bin/zsh", "/usr/bin/fish", "nu", "", "/"] {
            assert!(!is_like_bash(shell), "{shell}");
        }
    }
}
