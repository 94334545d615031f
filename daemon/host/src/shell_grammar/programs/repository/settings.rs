//! The settings of a repository, and which of them make a command that reads run a program.
//!
//! Source: `git help config` of git 2.47, and for `filter.lfs` and `lfs` git-lfs-config(5) of git-lfs 3.6.

use crate::git_settings::{Setting, section_of, setting_of};

/// Settings that run nothing during a read, whatever their values: sections and names in small letters.
const HARMLESS: &[(&str, &[&str])] = &[
    (
        "core",
        &[
            "repositoryformatversion",
            "filemode",
            "bare",
            "logallrefupdates",
            "ignorecase",
            "precomposeunicode",
            "symlinks",
            "autocrlf",
            "eol",
            "safecrlf",
            "abbrev",
            "quotepath",
            "longpaths",
            "untrackedcache",
            "preloadindex",
            "sharedrepository",
            "commitgraph",
            "compression",
            "loosecompression",
            "whitespace",
            "checkstat",
            "trustctime",
            "sparsecheckout",
            "sparsecheckoutcone",
            "multipackindex",
            "splitindex",
            "fscache",
            "protectntfs",
            "protecthfs",
            "hidedotfiles",
            "bigfilethreshold",
        ],
    ),
    (
        "remote",
        &[
            "fetch",
            "push",
            "pushdefault",
            "prune",
            "tagopt",
            "mirror",
            "skipdefaultupdate",
            "followremotehead",
            "gh-resolved",
            "lfsurl",
        ],
    ),
    (
        "branch",
        &[
            "remote",
            "merge",
            "rebase",
            "pushremote",
            "description",
            "autosetupmerge",
            "autosetuprebase",
            "vscode-merge-base",
            "gh-merge-base",
            "github-pr-owner-number",
        ],
    ),
    ("user", &["name", "email", "signingkey", "useconfigonly"]),
    ("author", &["name", "email"]),
    ("committer", &["name", "email"]),
    ("init", &["defaultbranch"]),
    ("pull", &["rebase", "ff", "octopus"]),
    ("push", &["default", "autosetupremote", "followtags", "recursesubmodules"]),
    ("fetch", &["prune", "prunetags", "parallel", "recursesubmodules", "writecommitgraph"]),
    ("merge", &["ff", "conflictstyle", "renames", "log"]),
    ("rebase", &["autostash", "autosquash", "updaterefs"]),
    ("rerere", &["enabled", "autoupdate"]),
    ("color", &["ui", "status", "branch", "diff", "interactive"]),
    ("advice", &["*"]),
    ("gc", &["auto", "autodetach", "autopacklimit"]),
    ("pack", &["threads", "windowmemory"]),
    ("commit", &["gpgsign", "verbose", "cleanup"]),
    ("tag", &["gpgsign", "sort"]),
    ("log", &["decorate", "date", "abbrevcommit"]),
    ("status", &["short", "branch", "showuntrackedfiles", "submodulesummary"]),
    (
        "diff",
        &[
            "renames",
            "algorithm",
            "context",
            "noprefix",
            "mnemonicprefix",
            "colormoved",
            "indentheuristic",
            "renamelimit",
            "ignoresubmodules",
        ],
    ),
    ("extensions", &["worktreeconfig", "relativeworktrees", "preciousobjects"]),
    ("feature", &["manyfiles", "experimental"]),
    ("index", &["version", "threads", "skiphash", "sparse", "recordendofindexentries", "recordoffsettable"]),
    ("receive", &["denycurrentbranch", "denynonfastforwards"]),
    ("maintenance", &["auto", "strategy"]),
    ("safe", &["directory"]),
    // `update` may be a command, which only `git submodule update` runs.
    ("submodule", &["active", "url", "update", "branch", "fetchrecursesubmodules", "ignore", "shallow"]),
    ("fsmonitor", &["allowremote", "socketdir"]),
    // Signatures are checked only on demand; `gpg.program` and `gpg.ssh.program` name who does it.
    ("gpg", &["format", "mintrustlevel", "allowedsignersfile", "revocationfile"]),
    (
        "blame",
        &["markignoredlines", "markunblamablelines", "coloring", "date", "showroot", "showemail", "blankboundary"],
    ),
    ("credential", &["username", "usehttppath", "provider", "interactive"]),
    (
        "http",
        &[
            "extraheader",
            "proxy",
            "sslverify",
            "sslcainfo",
            "postbuffer",
            "version",
            "followredirects",
            "lowspeedlimit",
            "lowspeedtime",
        ],
    ),
    (
        "lfs",
        &[
            "repositoryformatversion",
            "url",
            "pushurl",
            "access",
            "locksverify",
            "setlockablereadonly",
            "lockignoredfiles",
            "fetchinclude",
            "fetchexclude",
            "fetchrecentrefsdays",
            "fetchrecentremoterefs",
            "fetchrecentcommitsdays",
            "concurrenttransfers",
            "basictransfersonly",
            "tustransfers",
            "allowincompletepush",
            "skipdownloaderrors",
            "dialtimeout",
            "tlstimeout",
            "activitytimeout",
        ],
    ),
];

/// Settings that make reading run a program. The effects of all that are in no list are unknown.
const RUNS: &[(&str, &[&str])] = &[
    ("core", &["fsmonitor", "pager", "sshcommand", "gitproxy", "askpass", "editor", "alternaterefscommand"]),
    ("diff", &["external", "textconv", "command", "cachetextconv"]),
    ("filter", &["clean", "smudge", "process"]),
    ("pager", &["*"]),
    ("gpg", &["program"]),
    ("interactive", &["difffilter"]),
    ("include", &["path"]),
    ("includeif", &["path"]),
];

/// Settings that make other commands run a program, besides those above.
const RUNS_TO_CHANGE: &[(&str, &[&str])] = &[
    ("credential", &["helper"]),
    ("gpg", &["defaultkeycommand"]),
    ("hook", &["command"]),
    ("merge", &["driver"]),
    ("remote", &["uploadpack", "receivepack"]),
    ("sequence", &["editor"]),
    ("submodule", &["update"]),
    ("trailer", &["command", "cmd"]),
];

/// The filter of git-lfs, as `git lfs install` sets it.
const LFS_FILTER: &[(&str, &[&str])] = &[
    ("clean", &["git-lfs clean -- %f"]),
    ("smudge", &["git-lfs smudge -- %f", "git-lfs smudge --skip -- %f"]),
    ("process", &["git-lfs filter-process", "git-lfs filter-process --skip"]),
    ("required", &["true", "false"]),
];

/// The helpers that come with Git. Others are programs that the setting names.
const OWN_HELPERS: &[&str] = &["", "store", "cache", "osxkeychain", "libsecret", "wincred", "manager", "manager-core"];

/// Why a command of Git might do more than read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum RepositoryProblem {
    /// This is uncertain, so the command needs approval like any other.
    NotKnown(String),
    /// The repository names a program that the command runs.
    Runs(String),
    /// Git might use a different folder as the repository, or any tool could have written its settings.
    Odd(String),
    /// No person has chosen what it may run: it lies in the session's folders, and is not the repository of one of them.
    Nested(String),
}

impl RepositoryProblem {
    /// The worst has the highest.
    pub(super) fn rank(&self) -> u8 {
        match self {
            Self::NotKnown(_) => 0,
            Self::Runs(_) => 1,
            Self::Nested(_) => 2,
            Self::Odd(_) => 3,
        }
    }
}

impl From<String> for RepositoryProblem {
    fn from(why: String) -> Self {
        Self::NotKnown(why)
    }
}

/// The settings of a repository that matter to commands that read, from all its files together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RepositorySettings {
    /// Folders with hooks, as they are written: `core.hooksPath`.
    pub(super) hooks: Vec<String>,
    /// The folder with the files, relative to the repository's own: `core.worktree`.
    pub(super) worktrees: Vec<String>,
    /// Files with revisions that `git blame` reads.
    pub(super) ignored_revisions: Vec<String>,
    pub(super) aliases: Vec<String>,
    /// Commands with such an option enter submodules.
    pub(super) recurses: bool,
    /// Reading fetches objects that are not there.
    pub(super) is_partial: bool,
    /// A setting that runs a program of the repository's choice when something is fetched.
    pub(super) runs_to_fetch: Option<String>,
    /// Settings whose values are commands, or files that may name some, with their values.
    pub(super) commands: Vec<SettingWithCommand>,
}

/// A setting that names a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SettingWithCommand {
    /// `core.editor`
    pub(super) key: String,
    /// `None` when it is not a plain text.
    pub(super) value: Option<String>,
}

impl RepositorySettings {
    /// Adds the settings of a file, all that it can.
    ///
    /// # Errors
    /// The first that runs a program, else the last that is not known to be harmless.
    pub(super) fn read(&mut self, text: &str) -> Result<(), RepositoryProblem> {
        let mut problem = Ok(());
        let mut section = (String::new(), None);
        for line in text.lines() {
            let mut line = line.trim();
            if let Some(rest) = line.strip_prefix('[') {
                let Some((header, behind)) = rest.split_once(']') else { return Err(unparsed()) };
                section = section_of(header).ok_or_else(unparsed)?;
                line = behind.trim();
            }
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            // The next line is a part of the value for Git, and is read as a setting here.
            if line.ends_with('\\') {
                problem = Err(unparsed());
            }
            let added = self.add(setting_of(&section, line));
            if added.is_err() && !matches!(problem, Err(RepositoryProblem::Runs(_))) {
                problem = added;
            }
        }
        problem
    }

    fn add(&mut self, setting: Setting) -> Result<(), RepositoryProblem> {
        let Setting { section, subsection, name, value } = setting;
        let not_known =
            || RepositoryProblem::NotKnown(format!("its setting {section}.{name} is not known to be harmless"));
        if names_command(&section, subsection.as_deref(), &name, value.as_deref()) {
            self.commands.push(SettingWithCommand { key: format!("{section}.{name}"), value: value.clone() });
        }
        match (section.as_str(), name.as_str()) {
            ("core", "hookspath") => self.hooks.push(value.ok_or_else(not_known)?),
            ("core", "worktree") => self.worktrees.push(value.ok_or_else(not_known)?),
            // The built-in daemon; anything else is a program.
            ("core", "fsmonitor") if value.as_deref().is_some_and(is_boolean) => {}
            ("blame", "ignorerevsfile") => self.ignored_revisions.push(value.ok_or_else(not_known)?),
            ("alias", _) => self.aliases.push(subsection.unwrap_or(name)),
            ("submodule", "recurse") => self.recurses |= value.as_deref() != Some("false"),
            ("extensions", "partialclone") | ("remote", "promisor" | "partialclonefilter") => self.is_partial = true,
            ("remote", "url" | "pushurl") => {
                if value.is_none_or(|url| url.contains("::")) {
                    self.runs_to_fetch = Some("remote.url may name a program".to_owned());
                }
            }
            ("url", "insteadof" | "pushinsteadof") => {
                if subsection.is_none_or(|url| url.contains("::")) {
                    self.runs_to_fetch = Some("url.insteadOf may name a program".to_owned());
                }
            }
            ("credential", "helper") => {
                if !value.is_some_and(|value| OWN_HELPERS.contains(&value.as_str())) {
                    self.runs_to_fetch = Some("credential.helper names a program".to_owned());
                }
            }
            ("filter", of) if subsection.as_deref() == Some("lfs") && is_of_lfs(of, value.as_deref()) => {}
            _ if is_in(RUNS, &section, &name) => {
                return Err(RepositoryProblem::Runs(format!(
                    "the repository's setting {section}.{name} runs a program"
                )));
            }
            _ if is_in(HARMLESS, &section, &name) => {}
            _ => return Err(not_known()),
        }
        Ok(())
    }
}

fn names_command(section: &str, subsection: Option<&str>, name: &str, value: Option<&str>) -> bool {
    if !is_in(RUNS, section, name) && !is_in(RUNS_TO_CHANGE, section, name) {
        return false;
    }
    !match (section, name) {
        ("credential", _) => value.is_some_and(|value| OWN_HELPERS.contains(&value)),
        // Otherwise one of Git's own ways to update.
        ("submodule", _) => value.is_some_and(|value| !value.starts_with('!')),
        ("filter", of) if subsection == Some("lfs") => is_of_lfs(of, value),
        _ => value.is_some_and(is_boolean),
    }
}

fn unparsed() -> RepositoryProblem {
    RepositoryProblem::NotKnown("its settings cannot be parsed".to_owned())
}

fn is_in(list: &[(&str, &[&str])], section: &str, name: &str) -> bool {
    let names = list.iter().find(|(known, _)| *known == section).map(|(_, names)| *names);
    names.is_some_and(|names| names.contains(&"*") || names.contains(&name))
}

fn is_of_lfs(name: &str, value: Option<&str>) -> bool {
    let known = LFS_FILTER.iter().find(|(known, _)| *known == name).map(|(_, values)| *values);
    known.zip(value).is_some_and(|(values, value)| values.contains(&value))
}

fn is_boolean(value: &str) -> bool {
    matches!(&*value.to_ascii_lowercase(), "" | "true" | "yes" | "on" | "false" | "no" | "off" | "1" | "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<RepositorySettings, RepositoryProblem> {
        let mut settings = RepositorySettings::default();
        settings.read(text).map(|()| settings)
    }

    #[test]
    fn settings_that_run_nothing_are_known() {
        for plain in [
            "[core]\n\trepositoryformatversion = 0\n\tbare = false\n[remote \"origin\"]\n\turl = git@h:x.git\n\
             [branch \"main\"]\n\tremote = origin ; here\n# x\n",
            "[core]\n\thooksPath = .husky/_",
            "[core]\nfsmonitor = true",
            "[core]\nfsmonitor",
            "[core]\nfsmonitor = \"false\"",
            "[submodule \"lib\"]\n\tactive = true\n\turl = ../lib\n\tupdate = !touch x",
            "[lfs]\n\trepositoryformatversion = 0\n[lfs \"https://h/info/lfs\"]\n\taccess = basic\n\tlocksverify = false",
            "[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n\tsmudge = git-lfs smudge --skip -- %f\n\
             \tprocess = git-lfs filter-process\n\trequired = true",
            "[extensions]\n\tpartialClone = origin",
            "[remote \"o\"]\n\tpromisor = true\n\tpartialclonefilter = blob:none",
            "[alias]\n\tst = !touch x\n[alias \"log\"]\n\tcommand = !touch x",
            "[credential]\n\thelper = store",
            "[credential \"https://h\"]\n\thelper = !/opt/helper",
            "[url \"git@h:\"]\n\tinsteadOf = https://h/",
            "[http \"https://h/\"]\n\textraheader = AUTHORIZATION: basic x",
            "[gpg]\n\tformat = ssh\n[gpg \"ssh\"]\n\tallowedSignersFile = ~/.config/signers",
            "[blame]\n\tignoreRevsFile = .git-blame-ignore-revs",
            "[index]\n\tversion = 4\n\tsparse = true",
        ] {
            assert!(read(plain).is_ok(), "{plain}: {:?}", read(plain));
        }
    }

    #[test]
    fn settings_that_may_run_something_are_not_accepted() {
        for runs in [
            "[core]\nfsmonitor = x",
            "[core]\nfsmonitor = .git/hooks/fsmonitor-watchman",
            "[core]\nfsmonitor = true # \"",
            "[core]\npager=x",
            "[diff]\nexternal = x",
            "[diff \"x\"]\ntextconv = y",
            "[filter \"x\"]\nclean = y",
            "[filter \"x\"]\nclean = git-lfs clean -- %f",
            "[filter \"lfs\"]\nclean = git-lfs clean -- %f; touch x",
            "[filter \"lfs\"]\nprocess = ./git-lfs filter-process",
            "[filter \"lfs\"]\nprocess = git-lfs filter-process \\\n--x",
            "[FILTER \"lfs\"]\nSMUDGE = touch x",
            "[lfs \"extension.x\"]\nclean = touch x",
            "[lfs \"customtransfer.x\"]\npath = touch",
            "[lfs]\nstorage = /",
            "[include]\npath = x",
            "[CORE]\nsshCommand = x",
            "[gpg]\nprogram = x",
            "[gpg \"ssh\"]\nprogram = x",
            "[gpg \"ssh\"]\ndefaultKeyCommand = x",
            "[core]\nbare = false \\\nfsmonitor = x",
            "[core]\nwhitespace = tab \\\n[advice]\nfsmonitor = x",
            "[core]fsmonitor=touch x # ]",
            "[core]\nhooksPath = \"a\\tb\"",
            "[remote \"a]b\"]\nfetch = x",
            "core.x = 1",
            "[includeif \"x\"]\npath = y",
            "[remote \"o\"]\nuploadpack = x",
            "[remote \"o\"]\nvcs = x",
            "[protocol \"ext\"]\nallow = always",
            "[hook \"x\"]\ncommand = touch x",
            "[http]\ncookieFile = x",
            "[format]\npretty = %G?",
            "[log]\nshowSignature = true",
            "[extensions]\nobjectFormat = sha256",
        ] {
            assert!(read(runs).is_err(), "{runs}");
        }
    }

    #[test]
    fn settings_with_commands_are_collected_behind_others() {
        let mut settings = RepositorySettings::default();
        let text = "[gui]\n\tx = 1\n[core]\n\tfsmonitor = a\n\teditor = \"b \\\"c\\\"\"\n[credential]\n\thelper = store\n\
             \thelper = !d\n[submodule \"l\"]\n\tupdate = merge\n[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n\
             [merge \"m\"]\n\tdriver = e %A\n";
        assert!(matches!(settings.read(text), Err(RepositoryProblem::Runs(why)) if why.contains("core.fsmonitor")));
        let found: Vec<(&str, Option<&str>)> =
            settings.commands.iter().map(|found| (found.key.as_str(), found.value.as_deref())).collect();
        let expected = [
            ("core.fsmonitor", Some("a")),
            ("core.editor", None),
            ("credential.helper", Some("!d")),
            ("merge.driver", Some("e %A")),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn settings_that_run_a_program_to_fetch_are_noted() {
        for (text, expected) in [
            ("[credential]\nhelper = store", false),
            ("[credential]\nhelper =", false),
            ("[credential]\nhelper = !x", true),
            ("[credential]\nhelper = /x", true),
            ("[credential]\nhelper = store --file x", true),
            ("[remote \"o\"]\nurl = https://h/x", false),
            ("[remote \"o\"]\nurl = ext::sh -c x", true),
            ("[url \"ext::sh -c x \"]\ninsteadOf = https://h/", true),
            ("[url \"git@h:\"]\ninsteadOf = https://h/", false),
        ] {
            assert_eq!(read(text).unwrap().runs_to_fetch.is_some(), expected, "{text}");
        }
    }
}
