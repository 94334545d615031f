//! Repositories as people and tools leave them: in which of them a command of Git only reads. Real `git` runs the commands
//! with traps in all places that are said to run nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;
use toold_proto::level::Level;
use toold_proto::permission::Verdict;

use crate::commands::folders::{git, write};
use crate::commands::judge::{CommandSetting, RuleLine, judge, judge_at};

/// Commands that only read.
const READING: &[&str] = &[
    "git status",
    "git status --short",
    "git diff",
    "git diff HEAD~1",
    "git log --oneline -5",
    "git log -p -1",
    "git show HEAD",
    "git show --stat",
    "git blame notes.txt",
    "git branch -a",
    "git ls-files",
];

/// A repository with a submodule, and a home folder.
struct Clone {
    root: TempDir,
    place: CommandSetting,
}

impl Clone {
    fn make() -> Self {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().canonicalize().unwrap();
        let home = path.join("home");
        let (workspace, library) = (home.join("app"), path.join("library"));
        write(&library, &[("lib.txt", "one\n")]);
        git(&home, &library, &["init", "--quiet", "--initial-branch=main"]);
        git(&home, &library, &["add", "."]);
        git(&home, &library, &["commit", "--quiet", "-m", "Begin"]);
        write(&workspace, &[("notes.txt", "one\n"), ("other/a.txt", "one\n"), ("src/b.txt", "one\n")]);
        let clone = Self { root, place: CommandSetting { workspace, home, config: path.join("config") } };
        clone.git(&["init", "--quiet", "--initial-branch=main"]);
        let library = library.to_str().unwrap();
        clone.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", library, "lib"]);
        clone.git(&["add", "."]);
        clone.git(&["commit", "--quiet", "-m", "Begin"]);
        write(&clone.place.workspace, &[("notes.txt", "one\ntwo\n")]);
        clone.git(&["commit", "--quiet", "-am", "Go on"]);
        // Files that have changed, so that git reads them again.
        write(&clone.place.workspace, &[("notes.txt", "one\ntwo\nthree\n"), ("lib/lib.txt", "two\n")]);
        clone
    }

    #[track_caller]
    fn git(&self, arguments: &[&str]) {
        git(&self.place.home, &self.place.workspace, arguments);
    }

    /// A program that leaves `RAN` behind, by its path.
    fn trap(&self, path: &Path) -> String {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("#!/bin/sh\n: > '{}'\ncat\n", self.root.path().join("RAN").display())).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        path.display().to_string()
    }

    /// Whether a trap was run by one of the commands.
    fn runs(&self, lines: &[&str]) -> bool {
        for line in lines {
            // The time of the index makes git refresh it.
            let index = fs::File::options().write(true).open(self.place.workspace.join("notes.txt")).unwrap();
            index.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
            self.git(&line.split(' ').skip(1).collect::<Vec<_>>());
        }
        self.root.path().join("RAN").exists()
    }

    #[track_caller]
    fn gives(&self, lines: &[&str], expected: Verdict, about: &str) {
        for line in lines {
            let judged = judge(line, &self.place, &[]);
            let rules: Vec<&str> = judged.parts.iter().map(|part| part.rule.as_str()).collect();
            assert_eq!(judged.verdict, expected, "{about}: {line}: {rules:?}");
        }
    }
}

#[test]
fn everyday_settings_leave_git_reading() {
    let clone = Clone::make();
    let workspace = clone.place.workspace.clone();
    for name in ["pre-commit", "pre-push", "post-checkout", "post-merge", "pre-auto-gc", "reference-transaction"] {
        clone.trap(&workspace.join(".husky/_").join(name));
        clone.trap(&workspace.join(".git/hooks").join(name));
    }
    let trap = clone.trap(&clone.root.path().join("trap"));
    let script = format!("!{trap}");
    write(&workspace, &[(".git-blame-ignore-revs", "# none\n")]);
    let settings = [
        ("core.hooksPath", ".husky/_"),
        ("submodule.lib.update", script.as_str()),
        ("submodule.lib.ignore", "none"),
        ("lfs.repositoryformatversion", "0"),
        ("lfs.https://example.org/info/lfs.access", "basic"),
        ("filter.lfs.required", "true"),
        ("alias.st", script.as_str()),
        ("alias.ll", "log --oneline"),
        ("credential.helper", script.as_str()),
        ("credential.https://example.org.helper", script.as_str()),
        ("url.git@example.org:.insteadOf", "https://example.org/"),
        ("http.https://example.org/.extraheader", "AUTHORIZATION: basic x"),
        ("gpg.format", "ssh"),
        ("gpg.ssh.allowedSignersFile", "signers"),
        ("blame.ignoreRevsFile", ".git-blame-ignore-revs"),
        ("core.fsmonitor", "false"),
        ("index.version", "4"),
        ("submodule.recurse", "true"),
        ("status.submoduleSummary", "true"),
    ];
    clone.gives(READING, Verdict::Allow, "as it was made");
    for (name, value) in settings {
        clone.git(&["config", name, value]);
        clone.gives(READING, Verdict::Allow, name);
    }
    clone.git(&["update-index", "--index-version", "4"]);
    clone.gives(READING, Verdict::Allow, "with an index of version 4");
    assert!(!clone.runs(READING), "a setting that is said to run nothing ran a program");
    // On Linux git refuses to start its own daemon, and reads all the same.
    clone.git(&["config", "core.fsmonitor", "true"]);
    clone.gives(READING, Verdict::Allow, "core.fsmonitor");
}

#[test]
fn a_sparse_index_and_a_partial_clone_leave_git_reading() {
    let clone = Clone::make();
    clone.git(&["stash", "--quiet"]);
    clone.git(&["sparse-checkout", "set", "--cone", "--sparse-index", "src"]);
    assert!(!clone.place.workspace.join("other").exists());
    clone.gives(READING, Verdict::Allow, "sparse");
    // The names of the files in a folder that is left out are in no list.
    clone.gives(&["git grep x"], Verdict::Ask, "sparse");
    write(&clone.place.workspace, &[("other/a.txt", "two\n")]);
    clone.gives(&["git status"], Verdict::Ask, "a folder of the sparse index that is there");

    let clone = Clone::make();
    clone.git(&["config", "extensions.partialClone", "origin"]);
    clone.git(&["config", "remote.origin.promisor", "true"]);
    clone.git(&["config", "remote.origin.partialclonefilter", "blob:none"]);
    clone.gives(READING, Verdict::Allow, "partial");
    for (name, value) in [
        ("credential.helper", "!touch x"),
        ("remote.origin.url", "ext::sh -c touch% x"),
        ("url.ext::sh -c touch% x .insteadOf", "https://example.org/"),
        ("remote.origin.uploadpack", "touch"),
    ] {
        clone.git(&["config", name, value]);
        clone.gives(&["git log -p"], Verdict::Ask, name);
        clone.git(&["config", "--unset", name]);
    }
    clone.trap(&clone.place.workspace.join(".git/hooks/pre-auto-gc"));
    clone.gives(&["git log -p"], Verdict::Ask, "a hook of fetching");
}

#[test]
fn settings_and_hooks_that_run_a_program_count_wherever_they_are() {
    let run = |prepare: &dyn Fn(&Clone, &str), line: &str, about: &str| {
        let clone = Clone::make();
        let trap = clone.trap(&clone.root.path().join("trap"));
        prepare(&clone, &trap);
        clone.gives(&[line], Verdict::Ask, about);
        assert!(clone.runs(&[line]), "{about}: git runs nothing, so this test shows nothing");
    };
    let set = |name: &'static str| move |clone: &Clone, trap: &str| clone.git(&["config", name, trap]);
    run(&set("core.fsmonitor"), "git status", "fsmonitor");
    run(
        &|clone, trap| {
            // As large as the index says: otherwise git knows without the filter that the file has changed.
            write(&clone.place.workspace, &[(".gitattributes", "*.txt filter=lfs\n"), ("notes.txt", "one\nTWO\n")]);
            clone.git(&["config", "filter.lfs.clean", trap]);
        },
        "git status",
        "another program as the filter of git-lfs",
    );
    run(
        &|clone, _| {
            clone.trap(&clone.place.workspace.join(".husky/_/post-index-change"));
            clone.git(&["config", "core.hooksPath", ".husky/_"]);
        },
        "git status",
        "a hook of reading in core.hooksPath",
    );
    run(
        &|clone, trap| git(&clone.place.home, &clone.place.workspace.join("lib"), &["config", "core.fsmonitor", trap]),
        "git status",
        "a setting of a submodule",
    );
    run(
        &|clone, trap| {
            let lib = clone.place.workspace.join("lib");
            write(&lib, &[(".gitattributes", "*.txt diff=x\n")]);
            git(&clone.place.home, &lib, &["config", "diff.x.textconv", trap]);
        },
        "git diff --submodule=diff",
        "a submodule's driver",
    );
}

/// What makes commands that do not only read run a program: a setting, or a hook.
const NAMED: &[(&str, &[&str])] = &[
    ("core.fsmonitor", &["git add .", "git commit -qam x", "git checkout -q HEAD", "git stash -q", "git reset -q"]),
    ("filter.x.clean", &["git add .", "git commit -qam x", "git stash -q"]),
    ("filter.x.smudge", &["git checkout -q -f HEAD~1", "git reset -q --hard HEAD~1"]),
    ("core.sshCommand", &["git fetch -q ssh://h/x", "git pull -q ssh://h/x", "git ls-remote ssh://h/x"]),
    ("core.editor", &["git commit --amend"]),
    ("merge.x.driver", &["git merge -q other", "git cherry-pick other"]),
    ("hook pre-commit", &["git commit -q --allow-empty -m x"]),
    ("hook post-checkout", &["git checkout -q -b b", "git worktree add -q ../w"]),
    ("hook post-merge", &["git merge -q -s ours other"]),
    ("hook reference-transaction", &["git tag v1", "git branch b2", "git fetch -q . HEAD:refs/heads/b3"]),
    ("hook post-index-change", &["git add .", "git reset -q"]),
];

/// Makes the repository in a folder run the program, with something to do for each command.
fn name_program(clone: &Clone, folder: &Path, name: &str, program: &str) {
    let git = |arguments: &[&str]| git(&clone.place.home, folder, arguments);
    write(folder, &[(".gitattributes", "*.txt filter=x merge=x\n"), ("m.txt", "one\n")]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "--no-verify", "-m", "Add"]);
    git(&["checkout", "--quiet", "-b", "other"]);
    write(folder, &[("m.txt", "two\n")]);
    git(&["commit", "--quiet", "-am", "Say two"]);
    git(&["checkout", "--quiet", "-"]);
    write(folder, &[("m.txt", "three\n")]);
    git(&["commit", "--quiet", "-am", "Say three"]);
    match name.split_once(' ') {
        Some((_, hook)) => {
            let file = folder.join(".git/hooks").join(hook);
            clone.trap(&file);
        }
        None => git(&["config", name, program]),
    }
    if !name.starts_with("merge") {
        // A change to add, to commit or to throw away.
        write(folder, &[("m.txt", "four\n"), ("n.txt", "new\n")]);
    }
}

/// A repository that lies in another one, or in a folder that is none, is not the person's choice: with its settings came the
/// program. Real git shows that it would run.
#[test]
fn what_a_nested_repository_names_is_run_by_no_pattern() {
    let patterns =
        ["allow shell git *", "allow shell git add *", "allow shell git fetch *", "allow shell git commit *"];
    let rules: Vec<RuleLine> = patterns.iter().map(|rule| RuleLine::parse(rule).unwrap()).collect();
    let everything = [RuleLine::parse("allow shell **").unwrap()];
    let clone = Clone::make();
    let mut allowed = 0;
    for (name, lines) in NAMED {
        for (at, line) in lines.iter().enumerate() {
            let nest = clone.place.workspace.join(format!("nest{}{at}", name.replace([' ', '.'], "-")));
            write(&nest, &[("first.txt", "one\n")]);
            git(&clone.place.home, &nest, &["init", "--quiet", "--initial-branch=main"]);
            let plain = format!("cd {} && {line}", nest.display());
            allowed += usize::from(judge(&plain, &clone.place, &rules).verdict == Verdict::Allow);
            let ran = clone.root.path().join("RAN");
            // What ssh would run answers Git, which waits for that.
            let program = match *name {
                "core.sshCommand" => format!(": > '{}'; false", ran.display()),
                _ => clone.trap(&clone.root.path().join("trap")),
            };
            name_program(&clone, &nest, name, &program);
            let _ = fs::remove_file(&ran);
            let or_here = format!("pushd {} > /dev/null; {line}", nest.display());
            let spelled = [plain, or_here, line.replacen("git ", &format!("git -C {} ", nest.display()), 1)];
            for spelled in &spelled {
                let judged = judge(spelled, &clone.place, &rules);
                assert_eq!(judged.verdict, Verdict::Ask, "{name}: {spelled}: {:?}", judged.parts);
                assert_eq!(judge(spelled, &clone.place, &everything).verdict, Verdict::Allow, "{name}: {spelled}");
                if line.starts_with("git add") {
                    let confined = judge_at(Level::Develop, spelled, &clone.place, &[]);
                    assert_eq!(confined.verdict, Verdict::Allow, "{name}: {spelled}: {:?}", confined.parts);
                }
            }
            run_git(&clone, &nest, line);
            assert!(ran.exists(), "{name}: {line} runs nothing, so this shows nothing");
        }
    }
    assert!(allowed >= 12, "only {allowed} lines were allowed as the repository was made");
}

/// The person's own repository, a worktree of it and its submodules run what the person has chosen, and ask where that is a file
/// that a tool may have written.
#[test]
fn what_the_own_repository_names_is_asked_about_where_it_lies_in_the_project() {
    let clone = Clone::make();
    let workspace = clone.place.workspace.clone();
    clone.git(&["worktree", "add", "--quiet", "tree"]);
    let rules = |patterns: &[&str]| -> Vec<RuleLine> {
        patterns.iter().map(|pattern| RuleLine::parse(&format!("allow shell {pattern}")).unwrap()).collect()
    };
    let narrow = rules(&["git add *", "git fetch *", "git tag *"]);
    let lines = ["git add notes.txt", "git fetch origin", "git tag v9", "cd tree && git add .", "cd lib && git add ."];
    let verdicts = |rules: &[RuleLine]| lines.map(|line| judge(line, &clone.place, rules).verdict);
    let outside = clone.trap(&clone.root.path().join("trap"));
    let inside = clone.trap(&workspace.join("tools/x.sh"));
    for name in
        ["core.sshCommand", "core.pager", "core.editor", "credential.helper", "filter.x.clean", "merge.x.driver"]
    {
        for value in [&outside, "ssh -i ~/.ssh/key -o UserKnownHostsFile=/dev/null", "less -R", "store"] {
            clone.git(&["config", name, value]);
            assert_eq!(verdicts(&narrow), [Verdict::Allow; 5], "{name} {value}");
        }
        for value in [&inside, "tools/x.sh", "!./tools/x.sh", "sh tools/x.sh %f", "ssh -F tools/x.sh", "sh notes.txt"] {
            clone.git(&["config", name, value]);
            let expected = [Verdict::Ask, Verdict::Ask, Verdict::Ask, Verdict::Ask, Verdict::Allow];
            // Those of the submodule are its own.
            assert_eq!(verdicts(&narrow), expected, "{name} {value}");
            assert_eq!(verdicts(&rules(&["git *"])), [Verdict::Allow; 5], "{name} {value}");
        }
        clone.git(&["config", "--unset", name]);
    }
    clone.git(&["config", "core.hooksPath", ".husky/_"]);
    clone.trap(&workspace.join(".husky/_/pre-commit"));
    let commit = rules(&["git commit *"]);
    assert_eq!(judge("git commit -m x", &clone.place, &commit).verdict, Verdict::Allow);
    assert_eq!(verdicts(&narrow)[0], Verdict::Allow);
    clone.trap(&workspace.join(".husky/_/reference-transaction"));
    assert_eq!(verdicts(&narrow)[2], Verdict::Ask);
}

/// Runs a command of Git, whether it fails or not.
fn run_git(clone: &Clone, folder: &Path, line: &str) {
    let mut command = std::process::Command::new("git");
    command.args(line.split(' ').skip(1)).current_dir(folder).env_clear();
    command.env("HOME", &clone.place.home).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    for person in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{person}_NAME"), "Ada").env(format!("GIT_{person}_EMAIL"), "ada@example.com");
    }
    command.stdin(std::process::Stdio::null()).output().unwrap();
}

#[test]
fn an_alias_or_a_file_of_revisions_may_be_anything() {
    let clone = Clone::make();
    clone.git(&["config", "alias.whatchanged", "!touch x"]);
    clone.gives(&["git whatchanged"], Verdict::Ask, "an alias of the same name");
    clone.gives(&["git log"], Verdict::Allow, "an alias of another name");
    // Git shows a line that is no revision.
    write(&clone.place.workspace, &[(".env", "KEY=1\n")]);
    clone.git(&["config", "blame.ignoreRevsFile", ".env"]);
    clone.gives(&["git blame notes.txt"], Verdict::Deny, "a file with secrets");
    clone.gives(&["git status"], Verdict::Allow, "a file with secrets, which only blame reads");
}

#[test]
fn the_names_in_each_version_of_the_index_are_read() {
    let clone = Clone::make();
    let name = |number: usize| format!("deep/{}/file{number}.txt", "x".repeat(1 + number * 37 % 200));
    let names: Vec<String> = (0..20).map(name).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "x\n")).collect();
    write(&clone.place.workspace, &files);
    clone.git(&["add", "."]);
    for version in ["2", "3", "4"] {
        clone.git(&["update-index", "--index-version", version]);
        clone.gives(&["git grep three", "cat $(git ls-files '*.txt')"], Verdict::Allow, version);
    }
    // A file that is refused shows that its name was read.
    for secret in ["deep/xx/secret.key", "zz/last.key"] {
        write(&clone.place.workspace, &[(secret, "x\n")]);
        clone.git(&["add", secret]);
        for version in ["2", "3", "4"] {
            clone.git(&["update-index", "--index-version", version]);
            let judged = judge("git grep three", &clone.place, &[]);
            let path = clone.place.workspace.join(secret).display().to_string();
            let names_it = judged.parts.iter().any(|part| part.rule.contains(&path));
            assert!(judged.verdict == Verdict::Deny && names_it, "version {version}: {secret}: {:?}", judged.parts);
        }
        clone.git(&["rm", "--quiet", "--force", secret]);
    }
}

/// A remote's address or a header may hold a token, which these commands would print.
#[test]
fn settings_with_a_password_are_not_shown() {
    let clone = Clone::make();
    let place = &clone.place;
    let rules = [RuleLine::parse("allow shell git *").unwrap(), RuleLine::parse("allow shell git remote *").unwrap()];
    let shown = [
        "git remote -v",
        "git remote get-url origin",
        "git config --get remote.origin.url",
        "git config remote.origin.url",
        "git config get remote.origin.url",
        "git config --list",
        "git config -l --show-origin",
        "git config --get-regexp '^remote'",
        "git -C src config -l",
    ];
    let others = ["git config --get user.name", "git config core.autocrlf", "git remote", "git status"];
    let verdict = |line: &str| judge(line, place, &rules).verdict;
    let check = |expected: Verdict| {
        for line in shown {
            assert_eq!(verdict(line), expected, "{line}");
        }
        for line in others {
            assert_eq!(verdict(line), Verdict::Allow, "{line}");
        }
    };
    clone.git(&["remote", "add", "origin", "https://me@example.com/a.git"]);
    check(Verdict::Allow);
    clone.git(&["remote", "set-url", "origin", "https://me:password@example.com/a.git"]);
    check(Verdict::Ask);
    let exactly = [RuleLine::parse("allow shell git remote -v").unwrap()];
    assert_eq!(judge("git remote -v", place, &exactly).verdict, Verdict::Allow);
    clone.git(&["remote", "set-url", "origin", "https://example.com/a.git"]);
    check(Verdict::Allow);
    // In a file of the person's that another one includes.
    write(&place.home, &[(".gitconfig", "[include]\n\tpath = git/more\n")]);
    write(&place.home, &[("git/more", "[url \"https://x:token@example.com/\"]\n\tinsteadOf = https://example.com/\n")]);
    assert_eq!(verdict("git remote -v"), Verdict::Ask);
    assert_eq!(verdict("git config --get user.email"), Verdict::Allow);
    write(&place.home, &[("git/more", "[http \"https://example.com\"]\n\textraheader = AUTHORIZATION: basic x\n")]);
    assert_eq!(verdict("git config --list"), Verdict::Ask);
    assert_eq!(verdict("git remote -v"), Verdict::Allow);
}
