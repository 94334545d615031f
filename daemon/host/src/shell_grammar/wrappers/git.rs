//! What `git` would run: aliases, settings and subcommands that name commands.

use toold_engine::need::Word;

use super::{Looked, is};

/// Options of the configuration that name no command.
const HARMLESS_SETTINGS: &[&str] = &[
    "color.",
    "user.",
    "advice.",
    "column.",
    "core.quotepath",
    "core.autocrlf",
    "core.eol",
    "core.abbrev",
    "core.precomposeunicode",
    "core.ignorecase",
    "core.longpaths",
    "core.filemode",
    "init.defaultbranch",
    "commit.gpgsign",
    "tag.gpgsign",
    "pull.rebase",
    "pull.ff",
    "push.default",
    "merge.conflictstyle",
    "diff.renames",
    "diff.algorithm",
    "diff.context",
    "diff.noprefix",
    "diff.mnemonicprefix",
    "log.",
    "status.",
    "rerere.enabled",
    "fetch.prune",
    "gc.auto",
    "http.postbuffer",
    "safe.directory",
];

pub(super) fn look_into(words: &[Word]) -> Looked {
    if words.iter().any(|word| word.text.starts_with("ext::")) {
        return Looked::unsure();
    }
    let mut looked = Looked::default();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let text = word.text.as_str();
        at += 1;
        if !word.literal {
            return Looked::unsure();
        }
        match text {
            "-c" => {
                let Some(setting) = words.get(at).filter(|word| word.literal) else { return Looked::unsure() };
                at += 1;
                let (key, value) = setting.text.split_once('=').unwrap_or((&setting.text, ""));
                let key = key.to_ascii_lowercase();
                if key.starts_with("alias.") {
                    match value.trim_start().strip_prefix('!') {
                        Some(script) => looked.scripts.push(script.to_owned()),
                        None => looked.scripts.push(format!("git {value}")),
                    }
                } else if !HARMLESS_SETTINGS.iter().any(|harmless| key.starts_with(harmless)) {
                    return Looked::unsure();
                }
            }
            "-C" | "--git-dir" | "--work-tree" | "--namespace" => at += 1,
            "-p"
            | "-P"
            | "--paginate"
            | "--no-pager"
            | "--bare"
            | "--no-replace-objects"
            | "--literal-pathspecs"
            | "--no-optional-locks"
            | "--version"
            | "--help"
            | "-h"
            | "-v"
            | "--exec-path"
            | "--html-path" => {}
            _ if ["--git-dir=", "--work-tree=", "--namespace="].iter().any(|start| text.starts_with(start)) => {}
            _ if text.starts_with('-') => return Looked::unsure(),
            _ => {
                let subcommand = git_subcommand(text, &words[at..]);
                looked.commands.extend(subcommand.commands);
                looked.scripts.extend(subcommand.scripts);
                looked.unsure |= subcommand.unsure;
                return looked;
            }
        }
    }
    looked
}

fn git_subcommand(name: &str, words: &[Word]) -> Looked {
    let runs = |options: &[&str]| words.iter().any(|word| options.iter().any(|option| word.text.starts_with(option)));
    match name {
        "bisect" if is(words, 0, "run") => Looked::command(&words[1..]),
        "submodule" => match words.iter().position(|word| word.text == "foreach") {
            Some(at) => {
                let flags = words[at + 1..].iter().take_while(|word| word.text.starts_with('-')).count();
                Looked::script(&words[at + 1 + flags..])
            }
            None => Looked::default(),
        },
        "rebase" if runs(&["-x", "--exec"]) => Looked::unsure(),
        "filter-branch" | "daemon" | "instaweb" | "web--browse" => Looked::unsure(),
        "difftool" | "mergetool" if runs(&["-x", "--extcmd"]) => Looked::unsure(),
        "grep" if runs(&["-O", "--open-files-in-pager"]) => Looked::unsure(),
        "clone" if runs(&["-c", "--config", "-u", "--upload-pack", "--template"]) => Looked::unsure(),
        "fetch" | "pull" | "ls-remote" | "archive" if runs(&["--upload-pack", "--exec"]) => Looked::unsure(),
        "push" | "send-pack" if runs(&["--receive-pack", "--exec"]) => Looked::unsure(),
        _ => Looked::default(),
    }
}
