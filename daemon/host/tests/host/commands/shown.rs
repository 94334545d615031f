//! Rules that deny reading files, and commands that show tracked files without naming them.

use std::process::Command;

use toold_proto::permission::Verdict;

use crate::commands::folders::{TestProject, git, write};
use crate::commands::judge::{Judged, RuleLine, judge};

use Verdict::{Allow, Ask, Deny};

/// A repository that tracks `private/plan.txt`, and a rule that denies reading it.
struct Guarded {
    project: TestProject,
    rules: Vec<RuleLine>,
}

impl Guarded {
    fn make(rule: &str) -> Self {
        let project = TestProject::make();
        let place = &project.place;
        write(&place.workspace, &[("private/plan.txt", "secret plan\n"), ("private/deep/other.txt", "other\n")]);
        git(&place.home, &place.workspace, &["add", "."]);
        git(&place.home, &place.workspace, &["commit", "--quiet", "-m", "Plan"]);
        write(&place.workspace, &[("private/plan.txt", "secret plan\nof today\n")]);
        let rules = ["allow shell **", rule].map(|rule| RuleLine::parse(rule).unwrap());
        Self { project, rules: rules.into() }
    }

    fn judge(&self, line: &str) -> Judged {
        judge(line, &self.project.place, &self.rules)
    }

    #[track_caller]
    fn check(&self, lines: &[&str], expected: Verdict) {
        for line in lines {
            let judged = self.judge(line);
            assert_eq!(judged.verdict, expected, "{line}: {:?}", judged.parts);
        }
    }

    fn output(&self, arguments: &[&str]) -> String {
        let place = &self.project.place;
        let mut command = Command::new("git");
        let output = command.arg("-C").arg(&place.workspace).args(arguments).env("HOME", &place.home).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}

/// Each shows contents of any tracked file, or puts them where the rule does not find them.
const SHOWING: &[&str] = &[
    "git diff",
    "git diff HEAD~1",
    "git -C src diff HEAD~2",
    "cd src && git diff HEAD~1",
    "git --no-pager log -p",
    "git log -p -- .",
    "git log -p -- 'priv*'",
    "git log -u --all -- '*.txt'",
    "git show",
    "git show HEAD --stat -p",
    "git diff-tree -p HEAD",
    "git reflog -p",
    "git status -v",
    "git format-patch -1 --stdout",
    "git archive HEAD",
    "git archive HEAD | tar -xO private/plan.txt",
    "git cat-file --batch-all-objects --batch",
    "git fast-export --all",
    "git bundle create all.bundle --all",
    "git difftool -y",
    "git -c diff.external=cat diff",
    "git --icase-pathspecs diff",
    "git --git-dir=.git log -p",
    "git --literal-pathspecs diff -- ':(exclude)private'",
    "git worktree add copy HEAD",
    "git clone . copy",
    "git --work-tree=copy checkout HEAD -- .",
    "git rerere diff",
    "git stash -p",
    "git rebase -x 'git show' main",
    "git log --patch-with-r",
    "git log -S plan --oneline",
    "git log -Gplan",
    "git push ../copy main",
    "git push file:///copy main",
    "git log -wp",
    "git archive --remote=. HEAD",
    "GIT_NOGLOB_PATHSPECS=1 git diff -- ':!*private*'",
    "export GIT_ICASE_PATHSPECS=1; git diff -- PRIVATE",
    "env GIT_ICASE_PATHSPECS=1 git diff -- PRIVATE",
    "git checkout-index -a --prefix=copy/",
    "echo y | git add -p",
    "git commit -v",
    "git diff \"$x\"",
    "git diff -- \"$x\"",
    "bash -c 'git diff'",
    "git diff | head",
    "x=$(git show)",
];

#[test]
fn a_file_that_may_not_be_read_is_not_shown_by_git_unasked() {
    let guarded = Guarded::make("deny file.read **/private/**");
    guarded.check(SHOWING, Ask);
    guarded.check(&["git show HEAD:private/plan.txt", "git log -p -- private/plan.txt", "git grep plan"], Deny);
    // Without the rule they are what they were.
    let project = TestProject::make();
    for line in
        ["git diff", "git log -p", "git show HEAD", "git archive HEAD", "git cat-file -p HEAD", "git worktree add copy"]
    {
        let judged = judge(line, &project.place, &[RuleLine::parse("allow shell **").unwrap()]);
        assert_eq!(judged.verdict, Allow, "{line}: {:?}", judged.parts);
    }
    for line in ["git diff", "git log -p -3", "git show HEAD~1", "git grep -n shop"] {
        assert_eq!(judge(line, &project.place, &[]).verdict, Allow, "{line}");
    }
}

#[test]
fn paths_that_leave_the_file_out_show_the_others() {
    for rule in ["deny file.read **/private/**", "ask file.read **/private/**"] {
        let guarded = Guarded::make(rule);
        guarded.check(
            &[
                "git diff -- ':(exclude)private'",
                "git diff HEAD~1 -- . ':!private'",
                "git diff ':(exclude)private'",
                "git log -p -- ':^private/'",
                "git -C src log -p -- ':(top,exclude)private'",
                "git show HEAD -- ':!private/*'",
                "git log -p -3 -- src README.md",
                "git log -p src/main.rs",
                "git diff HEAD~1 src",
                "git diff main..feature/tokens -- src/*.rs",
                "git stash list -p -- src",
                "git archive HEAD src",
                "git archive HEAD -- . ':(exclude)private'",
                "git format-patch -1 --stdout -- src",
                "git grep -n shop -- ':(exclude)private'",
                "git grep shop src",
                "git show HEAD:README.md",
                "git diff HEAD~1:README.md HEAD:README.md",
                "git cat-file -p HEAD",
                "git cat-file blob HEAD:README.md",
                // These show no contents.
                "git diff --stat",
                "git diff --name-only",
                "git log -n5 --oneline --color -Spub -- src",
                "git stash -u",
                "git log --oneline",
                "git status",
                "git stash list",
                "git ls-tree -r HEAD",
            ],
            Allow,
        );
    }
}

#[test]
fn an_ask_says_how_to_leave_the_file_out() {
    let reason_of = |guarded: &Guarded, line: &str| {
        let judged = guarded.judge(line);
        judged.parts.into_iter().find(|part| part.verdict == judged.verdict).unwrap().rule
    };
    let guarded = Guarded::make("deny file.read **/private/**");
    let reason = reason_of(&guarded, "git diff");
    assert!(reason.contains("it may show ") && reason.contains("/private/"), "{reason}");
    assert!(reason.ends_with("(leave it out with -- ':(exclude)private')"), "{reason}");
    let reason = reason_of(&guarded, "git -C src diff");
    assert!(reason.ends_with("(leave it out with -- ':(top,exclude)private')"), "{reason}");
    assert!(!reason_of(&guarded, "git stash show -p").contains("leave it out"));
    let reason = reason_of(&guarded, "grep -rn --exclude=.env plan .");
    assert!(reason.ends_with("(leave it out with --exclude-dir=private)"), "{reason}");
    let guarded = Guarded::make("deny file.read **/plan.txt");
    let reason = reason_of(&guarded, "git log -p");
    assert!(reason.ends_with("(leave it out with -- ':(exclude)private/plan.txt')"), "{reason}");
    let reason = reason_of(&guarded, "grep -rn plan private");
    assert!(reason.ends_with("/private/plan.txt (leave it out with --exclude=plan.txt)"), "{reason}");
}

/// Paths choose nothing where a revision is the name of a file's content.
#[test]
fn the_name_of_a_content_is_no_revision_that_paths_choose_from() {
    let guarded = Guarded::make("deny file.read **/private/**");
    let (commit, content) =
        (guarded.output(&["rev-parse", "HEAD"]), guarded.output(&["rev-parse", "HEAD:private/plan.txt"]));
    let check = |form: &str, expected: Verdict| {
        for name in [&commit, &commit[..8]] {
            guarded.check(&[&form.replace("NAME", name)], expected);
        }
        for name in [&content, &content[..8], &format!("{content}^{{}}")] {
            guarded.check(&[&form.replace("NAME", name)], Ask);
        }
    };
    check("git show NAME -- ':(exclude)private'", Allow);
    check("git diff NAME -- README.md", Allow);
    check("git diff NAME..HEAD -- README.md", Allow);
    check("git cat-file -p NAME", Allow);
    check("git archive NAME README.md", Allow);
    check("git show NAME", Ask);
    // The paths are those of the folder.
    let folder = guarded.output(&["rev-parse", "HEAD:private"]);
    for line in
        ["git archive NAME plan.txt", "git diff NAME HEAD -- plan.txt", "git diff-tree -p NAME HEAD -- plan.txt"]
    {
        guarded.check(&[&line.replace("NAME", &folder)], Ask);
    }
    let below = Guarded::make("deny file.read **/private/deep/**");
    below.check(&["git diff HEAD~1:private HEAD:private -- deep/other.txt", "git archive HEAD:private deep"], Ask);
}

/// Git itself says what the paths of each form choose: whatever shows the file is not allowed.
#[test]
fn git_agrees_about_the_paths() {
    let guarded = Guarded::make("deny file.read **/private/**");
    let paths = [
        "private",
        "private/",
        "./private",
        ".",
        ":/",
        ":(top)private",
        ":!private",
        ":!private/",
        ":^private",
        ":(exclude)private",
        ":(exclude)./private",
        ":(exclude)private/plan.txt",
        ":(exclude,top)private",
        ":/!private",
        ":!*private*",
        ":!private/*",
        ":!**/private/**",
        ":(exclude,glob)**/private/**",
        ":(exclude,glob)private/*",
        ":(exclude,literal)priv*",
        ":(exclude,icase)PRIVATE",
        ":(icase)PRIVATE",
        "priv*",
        "*",
        "*.rs",
        "*.txt",
        "src",
        ":(glob)**/*.txt",
        ":(glob)src/**",
        ":(exclude)src",
        ":!privat?",
        ":!private/plan*",
        ":(attr:x)private",
        "private/deep",
    ];
    let mut hidden = 0;
    for path in paths {
        for arguments in [["diff", "HEAD~1"], ["log", "-p"], ["archive", "HEAD"]] {
            let line = format!("git {} -- '{path}'", arguments.join(" "));
            let is_shown = guarded.output(&[&arguments[..], &["--", path]].concat()).contains("secret plan");
            let verdict = guarded.judge(&line).verdict;
            assert!(!is_shown || verdict != Allow, "{line} is {verdict:?}, and shows it");
            hidden += usize::from(verdict == Allow);
        }
    }
    assert!(hidden > 30, "{hidden} lines are free");
}

/// Everyday comparisons of a repository that has the file, in which something else was changed.
#[test]
fn a_file_that_is_the_same_in_both_is_not_shown() {
    let guarded = Guarded::make("deny file.read **/private/**");
    let (home, top) = (&guarded.project.place.home, &guarded.project.place.workspace);
    let run = |arguments: &[&str]| git(home, top, arguments);
    let check = |line: &str, expected: Verdict| {
        let is_shown = || guarded.output(&line.split(' ').skip(1).collect::<Vec<_>>()).contains("secret plan");
        guarded.check(&[line], expected);
        assert!(expected == Ask || !is_shown(), "{line} shows the file");
    };
    check("git diff", Ask);
    check("git diff README.md", Allow);
    run(&["commit", "--quiet", "-am", "Today"]);
    for (file, message) in [("README.md", "One"), ("src/main.rs", "Two")] {
        write(top, &[(file, message)]);
        run(&["commit", "--quiet", "-am", message]);
    }
    write(top, &[("README.md", "Three")]);
    for line in [
        "git diff",
        "git diff -U5 --stat -p",
        "git diff-files -p",
        "git show",
        "git show HEAD~1",
        "git log -p -2",
        "git diff HEAD~2 HEAD",
        "git diff HEAD~1..HEAD",
        "git log -p HEAD~2..HEAD",
        "git format-patch -2 --stdout",
        "git diff-tree -p HEAD~1",
        "git diff HEAD",
        "git diff HEAD~1 --stat -p",
        "git diff --cached",
        "git diff --staged -U1 HEAD~1",
        "git diff HEAD@{1}",
        "git diff HEAD~2...HEAD",
        "git diff HEAD~1...",
        "git diff --merge-base HEAD~1",
        "git diff --merge-base --cached HEAD~1",
        "git diff --merge-base HEAD~2 HEAD",
        "git diff-index -p HEAD",
        "git diff-index -p --cached HEAD~2",
        "git log -p --author=Ada HEAD~2..HEAD",
        "git log -p HEAD~2...HEAD",
        "git stash show -p",
        "git stash list -p",
        "git status -v",
    ] {
        check(line, Allow);
    }
    for line in [
        "git log -p",
        "git log -p -3",
        "git show HEAD~2",
        "git diff HEAD~3 HEAD",
        "git diff HEAD~3",
        "git diff --cached HEAD~3",
        "git diff HEAD~3...HEAD",
        "git diff --merge-base HEAD~3",
        "git diff-index -p HEAD~3",
        "git log -p --follow README.md",
        "git log -p --full-diff -- README.md",
        "git show --full-diff HEAD~2 -- README.md",
        "git show -C -C HEAD",
        "git log -p --boundary HEAD~2..HEAD",
        "git log -p --all",
        "git diff-tree -p HEAD~2",
        "git diff --submodule=diff",
        "git show HEAD~2 HEAD",
    ] {
        check(line, Ask);
    }
    guarded.check(&["touch private/plan.txt; git diff", "GIT_INDEX_FILE=x git diff"], Ask);
    run(&["config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"]);
    run(&["update-ref", "refs/remotes/origin/main", "HEAD~2"]);
    guarded.check(&["git diff @{upstream}"], Ask);
    run(&["config", "remote.origin.url", "https://example.com/a.git"]);
    run(&["branch", "--quiet", "--set-upstream-to=origin/main"]);
    run(&["checkout", "--quiet", "-b", "other", "HEAD~1"]);
    run(&["checkout", "--quiet", "-"]);
    for line in [
        "git diff @{upstream}",
        "git diff @{u}..HEAD",
        "git log -p @{u}..",
        "git diff HEAD@{UPSTREAM}...",
        "git diff @{0} HEAD~1",
        "git diff @{-1}",
        "git diff @{push}",
        "git log -p @{push}..",
        "git show :/Two",
        "git diff :/One",
        "git log -p :/One..",
        "git show HEAD^{/One}",
        "git bisect view",
    ] {
        check(line, Allow);
    }
    run(&["config", "remote.other.url", "https://example.com/b.git"]);
    guarded.check(&["git diff @{push}"], Ask);
    run(&["config", "--remove-section", "remote.other"]);
    for line in ["git show :/Today", "git show HEAD^{/Toda}", "git diff :/Plan HEAD", "git log -p :/Two"] {
        check(line, Ask);
    }
    guarded.check(
        &["git show ':/T.day'", "git show ':/Nobody wrote this'", "git show ':/!-Two'", "git bisect view -p"],
        Ask,
    );
    run(&["update-ref", "refs/remotes/origin/main", "HEAD~3"]);
    for line in
        ["git diff @{u}", "git log -p @{u}..", "git diff @{u} -- .", "git diff @{push}", "git diff @{yesterday}"]
    {
        check(line, Ask);
    }
    let plan = top.join("private/plan.txt");
    let times = std::fs::metadata(&plan).unwrap();
    // As long, and as old as before.
    write(top, &[("private/plan.txt", "secret plan\nof later\n")]);
    let file = std::fs::File::options().write(true).open(&plan).unwrap();
    file.set_times(std::fs::FileTimes::new().set_modified(times.modified().unwrap())).unwrap();
    check("git diff", Ask);
    run(&["add", "private/plan.txt"]);
    check("git diff --cached", Ask);
    std::fs::remove_file(&plan).unwrap();
    check("git diff", Ask);
}

/// The file was changed on one branch, and in one stash.
#[test]
fn a_file_is_shown_by_comparisons_with_the_branch_and_the_stash_that_changed_it() {
    let guarded = Guarded::make("deny file.read **/private/**");
    let (home, top) = (&guarded.project.place.home, &guarded.project.place.workspace);
    let run = |arguments: &[&str]| git(home, top, arguments);
    let change = |file: &str, text: &str| write(top, &[(file, text)]);
    let check = |line: &str, shows: bool| {
        let is_shown = guarded.output(&line.split(' ').skip(1).collect::<Vec<_>>()).contains("secret plan");
        assert_eq!(is_shown, shows, "{line}");
        guarded.check(&[line], if shows { Ask } else { Allow });
    };
    run(&["commit", "--quiet", "-am", "Today"]);
    run(&["checkout", "--quiet", "-b", "side"]);
    change("private/plan.txt", "secret plan\nof side\n");
    run(&["commit", "--quiet", "-am", "Side"]);
    run(&["checkout", "--quiet", "main"]);
    for text in ["One", "Two"] {
        change("README.md", text);
        run(&["commit", "--quiet", "-am", text]);
    }
    for (line, shows) in [
        ("git diff main side", true),
        ("git diff main...side", true),
        ("git diff side...main", false),
        ("git diff side...", false),
        ("git diff ...side", true),
        ("git diff side", true),
        ("git diff --cached side", true),
        ("git diff --merge-base side", false),
        ("git diff --merge-base main side", true),
        ("git diff --merge-base side main", false),
        ("git diff-tree -p side main", true),
        ("git diff-tree -p side..main", true),
        ("git log -p side..main", false),
        ("git log -p main..side", true),
        ("git log -p side...main", true),
        ("git log -p --since=1990-01-01 side..main", false),
        ("git diff 4b825dc642cb6eb9a060e54bf8d69288fbee4904 main", true),
        ("git diff side -- README.md", false),
    ] {
        check(line, shows);
    }
    for (file, text) in [("private/plan.txt", "secret plan\nof a stash\n"), ("README.md", "Three")] {
        change(file, text);
        run(&["stash", "--quiet"]);
    }
    for (line, shows) in [
        ("git stash show -p", false),
        ("git stash show -p stash@{0}", false),
        ("git stash show -p 1", true),
        ("git stash show -p stash@{1}", true),
        ("git stash list -p", true),
        ("git stash list -p -- README.md", false),
        ("git diff stash@{0}", false),
        ("git diff stash@{1}", true),
    ] {
        check(line, shows);
    }
    change("private/plan.txt", "secret plan\nstaged\n");
    run(&["add", "private/plan.txt"]);
    for line in ["git diff --cached", "git diff HEAD", "git status -v", "git status -v src", "git diff-index -p HEAD"] {
        check(line, true);
    }
    check("git diff -- README.md", false);
}

/// A repository in which only older commits have `old/key.txt`; `HEAD~2` added it, and `HEAD~1` removed it.
fn with_removed_file(rule: &str) -> Guarded {
    let guarded = Guarded::make(rule);
    let place = &guarded.project.place;
    write(&place.workspace, &[("old/key.txt", "old key\n")]);
    for arguments in [&["add", "."][..], &["commit", "--quiet", "-m", "Add"], &["rm", "-rq", "old"]] {
        git(&place.home, &place.workspace, arguments);
    }
    git(&place.home, &place.workspace, &["commit", "--quiet", "-m", "Remove"]);
    write(&place.workspace, &[("README.md", "# More\n")]);
    git(&place.home, &place.workspace, &["commit", "--quiet", "-am", "More"]);
    guarded
}

/// Each shows the file, or puts it back.
const SHOWING_REMOVED: &[&str] = &[
    "git show HEAD~1",
    "git show HEAD~2",
    "git show HEAD^^",
    "git show HEAD~3..HEAD~1",
    "git show main~1",
    "git log -p",
    "git log -p -2",
    "git log -p -3 --stat",
    "git log -p HEAD~1",
    "git log -p --all -1",
    "git log -p -1 --author=Ada HEAD~1",
    "git log -p HEAD~3..",
    "git log -p ^HEAD~2 HEAD",
    "git diff HEAD~2",
    "git diff HEAD~3 HEAD~2",
    "git diff HEAD~2..HEAD",
    "git diff HEAD~3...HEAD~1",
    "git diff-tree -p HEAD~1",
    "git diff-tree -p HEAD~2 HEAD",
    "git format-patch -3 --stdout",
    "git format-patch HEAD~3",
    "git archive HEAD~2",
    "git archive HEAD~2 | tar -xO old/key.txt",
    "git worktree add copy HEAD~2",
    "git clone . copy",
    "git bundle create all.bundle --all",
    "git cat-file --batch < x",
    "git checkout HEAD~2 -- old/key.txt",
    "git checkout HEAD~2 old/key.txt",
    "git checkout HEAD~2 -- .",
    "git restore --source HEAD~2 old/key.txt",
    "git restore -s HEAD~2 .",
    "git grep key HEAD~2",
    "git show describe-of-something",
    "git reset HEAD~1; git show",
    "git whatchanged -p",
];

#[test]
fn a_file_that_only_older_commits_have_is_not_shown_unasked() {
    let guarded = with_removed_file("deny file.read **/old/**");
    guarded.check(SHOWING_REMOVED, Ask);
    guarded.check(&["git show HEAD~2:old/key.txt", "git log -p -- old/key.txt"], Deny);
    let check_names = || {
        let content = guarded.output(&["rev-parse", "HEAD~2:old/key.txt"]);
        let (commit, harmless) =
            (guarded.output(&["rev-parse", "--short", "HEAD~2"]), guarded.output(&["rev-parse", "HEAD"]));
        for (form, expected) in [
            ("git show CONTENT", Ask),
            ("git cat-file -p CONTENT", Ask),
            ("git cat-file blob CONTENT", Ask),
            ("git show COMMIT", Ask),
            ("git archive COMMIT", Ask),
            ("git show HARMLESS", Allow),
            ("git archive HARMLESS", Allow),
        ] {
            let line =
                form.replace("CONTENT", &content).replace("COMMIT", &commit).replace("HARMLESS", &harmless[..10]);
            guarded.check(&[&line], expected);
        }
    };
    check_names();
    guarded.check(
        &[
            "git show",
            "git show HEAD",
            "git log -p -1",
            "git log --oneline",
            "git log --stat",
            "git diff",
            "git diff HEAD",
            "git diff HEAD~1",
            "git diff HEAD~1 HEAD",
            "git diff HEAD~3",
            "git format-patch -1 --stdout",
            "git archive HEAD",
            "git archive HEAD~2 src",
            "git worktree add copy",
            "git log -p -- src",
            "git log -p -- ':(exclude)old'",
            "git show HEAD~1 -- ':(exclude)old'",
            "git grep key",
            "git checkout HEAD~2 -- README.md",
            "git restore README.md",
            "git stash show -p",
            "git stash list -p",
            "git show 0123456789",
        ],
        Allow,
    );
    // The same of objects in a pack, with deltas.
    let place = &guarded.project.place;
    git(&place.home, &place.workspace, &["gc", "--quiet", "--aggressive", "--prune=now"]);
    guarded.check(&["git show HEAD~1", "git log -p", "git archive HEAD~2"], Ask);
    guarded.check(&["git show", "git log -p -1", "git diff HEAD~3"], Allow);
    check_names();
}

#[test]
fn a_secret_that_only_older_commits_have_is_asked_about_without_a_rule() {
    let project = TestProject::make();
    let place = &project.place;
    git(&place.home, &place.workspace, &["add", "-f", ".env"]);
    git(&place.home, &place.workspace, &["commit", "--quiet", "-m", "Add"]);
    git(&place.home, &place.workspace, &["rm", "-q", "--cached", ".env"]);
    git(&place.home, &place.workspace, &["commit", "--quiet", "-m", "Remove"]);
    for (line, expected) in [
        ("git show", Ask),
        ("git log -p -3", Ask),
        ("git diff HEAD~1", Ask),
        ("git show HEAD~2", Allow),
        ("git log -p -3 -- src", Allow),
        ("git log --oneline", Allow),
    ] {
        let judged = judge(line, place, &[]);
        assert_eq!(judged.verdict, expected, "{line}: {:?}", judged.parts);
    }
}

#[test]
fn programs_that_get_the_file_by_an_option_in_a_text_or_in_a_folder_are_asked_about() {
    let guarded = Guarded::make("deny file.read **/private/**");
    guarded.check(
        &[
            "gh api x --input private/plan.txt",
            "gh api x -F a=@private/plan.txt",
            "glab snippet create private/plan.txt",
            "docker secret create x private/plan.txt",
            "npm pack private",
            "npm --userconfig private/plan.txt config list",
            "make -f private/plan.txt",
            "7z a x.7z private",
            "7z a x.7z private/plan.txt",
            "7z a x.7z .",
            "rar a x.rar private",
            "jar cf x.jar private",
            "borg create r::a private",
            "restic backup .",
            "mksquashfs private x",
            "repomix .",
            "frob private",
            "frob --all private/deep",
            "npx serve private",
            "python3 -m http.server -d private",
            "python3 -m zipfile -c x.zip .",
            "php -S localhost:8000 -t private",
            "lftp -e 'put private/plan.txt' web1",
            "duckdb -c \"select * from 'private/plan.txt'\"",
            "vim -c 'r private/plan.txt' x",
            "yq -n 'load(\"private/plan.txt\")'",
            "emacs --batch --eval '(find-file \"private/plan.txt\")'",
            "claude -p 'read private/plan.txt'",
            "python3 -m http.server",
            "python3 -m http.server 8000",
            "php -S localhost:8000",
            "npx serve",
            "caddy file-server",
            "caddy file-server --listen :8080",
            "python3 -m http.server -b localhost 8000",
            "python3 -m http.server --directory=private",
            "busybox httpd -f -p 8080",
            "busybox httpd -h private",
            "busybox tftpd .",
            "sh -c 'cd . && busybox httpd -f'",
            "ruby -run -e httpd . -p 8000",
            "ruby -run -ehttpd -- -p 8000",
            "python2 -m SimpleHTTPServer",
            "python3 -m pyftpdlib -p 2121",
            "twistd -n web --path .",
            "uvx uploadserver",
            "deno run -A jsr:@std/http/file-server",
            "smbserver.py share .",
            "dufs",
            "kubectl create configmap x --from-file=.",
            "kubectl apply -f .",
            "docker build .",
            "tig",
            "gitk --all",
        ],
        Ask,
    );
    guarded.check(
        &[
            "nano private/plan.txt",
            "code private/plan.txt",
            "emacs private/plan.txt",
            "frob private/plan.txt",
            "psql -f private/plan.txt",
            "psql --file=private/plan.txt",
            "sqlite3 -init private/plan.txt db",
            "chromium --headless --dump-dom file://$PWD/private/plan.txt",
            "screen -c private/plan.txt",
            "aws x y --cli-input-json file://private/plan.txt",
            "patch private/plan.txt x.diff",
            "patch -o out private/plan.txt x.diff",
        ],
        Deny,
    );
    guarded.check(
        &[
            "nano README.md",
            "code .",
            "psql -f data/users.csv",
            "7z a x.7z src",
            "frob src",
            "frob .",
            "npx eslint .",
            "git commit -m 'Move private/plan.txt'",
            "echo private/plan.txt",
            "rm private/plan.txt",
            "ssh -i private/plan.txt web1",
            "npm pack",
            "python3 -m http.server -d src",
            "python3 -m http.server --directory=src 8000",
            "busybox httpd -f -h src",
            "ruby -run -e httpd src -p 8000",
            "kubectl apply -f src",
            "npx serve src",
            "docker build src",
        ],
        Allow,
    );
}

#[test]
fn a_container_that_gets_the_file_is_asked_about() {
    let guarded = Guarded::make("deny file.read **/private/**");
    guarded.check(
        &[
            "docker run --rm -v $PWD:/w alpine ls /w",
            "docker run --rm -v./private:/p alpine cat /p/plan.txt",
            "podman run --volume=private/plan.txt:/p:ro alpine cat /p",
            "docker run --mount type=bind,source=\"$PWD\",target=/w alpine ls",
            "docker compose run -v .:/w web ls",
        ],
        Ask,
    );
    guarded.check(
        &[
            "docker run --rm -v ./src:/w alpine ls /w",
            "docker run -v data:/var/lib/x alpine",
            "docker run --rm alpine ls",
        ],
        Allow,
    );
}
