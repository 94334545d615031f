//! The scripts of the shells, and the answers to them.
//!
//! The library's scripts for bash, zsh and fish complete no `key=value`: bash splits words at `=`, and zsh puts a space
//! behind it. Those here pass the line on as it is typed.

use std::io::{self, Write};

use clap::Command;
use clap_complete::CompleteEnv;
use clap_complete::engine::{CompletionCandidate, complete};
use clap_complete::env::Shells;

use crate::completion::line::{OpenWord, set_words, split};

const BASH: &str = r#"_toolctl() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        COMPREPLY+=("$line")
    done < <(COMPLETE=bash toolctl -- "${COMP_LINE:0:COMP_POINT}" "$2" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/:,] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o nosort -F _toolctl toolctl 2>/dev/null || complete -F _toolctl toolctl
"#;

const ZSH: &str = r#"#compdef toolctl
_toolctl() {
    local line value
    local -a open open_shown closed closed_shown
    for line in "${(@f)$(COMPLETE=zsh toolctl -- "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}"; do
        [[ -n $line ]] || continue
        value=${line%%$'\t'*}
        [[ $line == *$'\t'* ]] && line="$value  -- ${line#*$'\t'}"
        if [[ $value == *[=/:,] ]]; then
            open+=("$value")
            open_shown+=("$line")
        else
            closed+=("$value")
            closed_shown+=("$line")
        fi
    done
    (( $#open )) && compadd -l -V toolctl-open -S '' -d open_shown -a open
    (( $#closed )) && compadd -l -V toolctl -d closed_shown -a closed
}
compdef _toolctl toolctl
"#;

const FISH: &str = r#"function __toolctl_complete
    COMPLETE=fish toolctl -- (commandline --current-process --tokenize --cut-at-cursor) (commandline --current-token --cut-at-cursor) 2>/dev/null
end
complete --keep-order --no-files --command toolctl --arguments "(__toolctl_complete)"
"#;

/// Writes the script that a shell sources.
///
/// # Errors
/// The shell is unknown, or the output cannot be written.
pub(crate) fn write_script(shell: &str, out: &mut impl Write) -> io::Result<()> {
    match shell {
        "bash" => out.write_all(BASH.as_bytes()),
        "zsh" => out.write_all(ZSH.as_bytes()),
        "fish" => out.write_all(FISH.as_bytes()),
        other => {
            let shells = Shells::builtins();
            let completer = shells.completer(other).ok_or(io::ErrorKind::Unsupported)?;
            completer.write_registration("COMPLETE", "toolctl", "toolctl", "toolctl", out)
        }
    }
}

/// Prints the candidates for the line that the shell passes.
///
/// # Errors
/// The shell is unknown, there is nothing to complete, or stdout is closed.
pub(super) fn answer(shell: &str, command: impl Fn() -> Command) -> io::Result<()> {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--").skip(1);
    let mut out = io::stdout().lock();
    match shell {
        "bash" => {
            let (line, current) = (arguments.next().unwrap_or_default(), arguments.next().unwrap_or_default());
            let (words, last) = split(&line);
            let found = candidates(&mut command(), words, &last.text)?;
            for value in found.iter().filter_map(|candidate| for_bash(candidate, &last, &current)) {
                writeln!(out, "{value}")?;
            }
        }
        "zsh" | "fish" => {
            let mut words: Vec<String> = arguments.collect();
            let last = words.pop().unwrap_or_default();
            let last = if shell == "fish" { split(&last).1.text } else { last };
            for candidate in candidates(&mut command(), words, &last)? {
                let help = candidate.get_help().map(|help| format!("\t{}", first_line(&help.to_string())));
                writeln!(out, "{}{}", candidate.get_value().to_string_lossy(), help.unwrap_or_default())?;
            }
        }
        _ => {
            let arguments = std::env::args_os();
            let folder = std::env::current_dir().ok();
            CompleteEnv::with_factory(command).try_complete(arguments, folder.as_deref()).map_err(io::Error::other)?;
        }
    }
    out.flush()
}

fn candidates(command: &mut Command, mut words: Vec<String>, last: &str) -> io::Result<Vec<CompletionCandidate>> {
    words.push(last.to_owned());
    set_words(&words);
    let index = words.len() - 1;
    let folder = std::env::current_dir().ok();
    let words = words.into_iter().map(Into::into).collect();
    let mut found = complete(command, words, index, folder.as_deref())?;
    // A line break would be another candidate.
    found.retain(|candidate| !candidate.get_value().to_string_lossy().contains(char::is_control));
    // Options are many, and few of them are wanted where a value stands: they come once a dash is typed.
    let is_option = |candidate: &CompletionCandidate| candidate.get_value().to_string_lossy().starts_with('-');
    if !last.starts_with('-') && !found.iter().all(is_option) {
        found.retain(|candidate| !is_option(candidate));
    }
    Ok(found)
}

/// The part of a candidate that bash puts in place of `current`, which begins behind the last `=` or `:` of the word.
fn for_bash(candidate: &CompletionCandidate, word: &OpenWord, current: &str) -> Option<String> {
    let value = candidate.get_value().to_string_lossy().into_owned();
    let typed_before = word.typed.strip_suffix(current).unwrap_or_default();
    let before = split(typed_before).1.text;
    let rest = value.strip_prefix(&before)?;
    Some(if word.quote.is_some() { rest.to_owned() } else { escaped(rest) })
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    // Here it stands for the home folder.
    let home = if text.starts_with("~/") { "~/" } else { "" };
    escaped.push_str(home);
    for c in text[home.len()..].chars() {
        if c.is_whitespace() || "\"'\\$`&;|<>()*?[]{}#~!".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: &str, line: &str, current: &str, expected: &str) {
        let (_, word) = split(line);
        assert_eq!(for_bash(&CompletionCandidate::new(value), &word, current).as_deref(), Some(expected));
    }

    #[test]
    fn bash_gets_the_part_behind_the_equals_sign() {
        check("count", "toolctl call cou", "cou", "count");
        check("mode=fast", "toolctl call count mode=f", "f", "fast");
        check("mode=fast", "toolctl call count mode=", "", "fast");
        check("path=my file", "toolctl call read path=my", "my", "my\\ file");
        check("path=my file", "toolctl call read path=\"my", "my", "my file");
    }
}
