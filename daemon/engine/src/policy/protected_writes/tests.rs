use super::*;
use crate::policy::is_secret;

#[track_caller]
fn check(policy: &Policy, path: &str, expected: bool) {
    let found = policy.protected_write(Path::new("/home/u/proj"), &Need::new(Category::FileWrite, path));
    assert_eq!(found.is_some(), expected, "{path}: {found:?}");
}

fn at_home() -> Policy {
    Policy { home: Some("/home/u".into()), ..Policy::default() }
}

/// A path that the pattern is meant for.
fn path_of(pattern: &str) -> String {
    let path = pattern.replace("**", "a/b").replace('*', "x");
    match (pattern.strip_prefix("~/"), pattern.starts_with('/')) {
        (Some(_), _) => path.replacen('~', "/home/u", 1),
        (None, true) => path,
        (None, false) => format!("/home/u/proj/{path}"),
    }
}

#[test]
fn each_line_of_the_list_matches_the_paths_that_it_is_for_in_any_case() {
    for place in list::PROTECTED_WRITES {
        ProtectedWrite::parse(place.pattern, place.reason, None).unwrap_or_else(|why| panic!("{why}"));
        let path = path_of(place.pattern);
        check(&at_home(), &path, true);
        check(&at_home(), &path.to_uppercase().replacen("/HOME/U", "/home/u", 1), true);
        check(&at_home(), &path.to_ascii_lowercase(), true);
        // Nothing of the list holds for the project as a whole.
        check(&at_home(), "/home/u/proj", false);
    }
}

#[test]
fn the_list_is_sorted_into_reasons_and_has_no_line_twice() {
    let mut patterns: Vec<&str> = list::PROTECTED_WRITES.iter().map(|place| place.pattern).collect();
    patterns.sort_unstable();
    assert!(patterns.windows(2).all(|pair| pair[0] != pair[1]), "a pattern stands in the list twice");
    let mut reasons: Vec<&str> = list::PROTECTED_WRITES.iter().map(|place| place.reason).collect();
    reasons.dedup();
    let runs = reasons.len();
    reasons.sort_unstable();
    reasons.dedup();
    assert_eq!(runs, reasons.len(), "lines with the same reason stand together");
}

#[test]
fn other_spellings_of_a_name_are_the_same_place() {
    for path in [
        "/p/.GIT/config",
        "/p/.git",
        "/p//.git/./hooks/x",
        "/srv/repo.git/hooks/post-receive",
        "/srv/repo.git/config",
        "/home/u/.\u{17f}\u{17f}h/config",
        "/home/u/.ba\u{17f}hrc",
    ] {
        check(&at_home(), path, true);
    }
    // A fullwidth letter is another letter on every file system.
    check(&at_home(), "/home/u/.bas\u{ff48}rc", false);
}

#[test]
fn a_hidden_folder_that_holds_such_places_is_one_itself() {
    for folder in ["/p/.vscode", "/p/.claude", "/p/.cargo", "/home/u/.config", "/srv/x.git", "/p/.git"] {
        check(&at_home(), folder, true);
    }
    for folder in ["/p/hooks", "/p/src/hooks", "/p/Library", "/home/u/go", "/p/x.gitter"] {
        check(&at_home(), folder, false);
    }
}

#[test]
fn everyday_files_are_not_in_the_list() {
    let everyday = "Makefile justfile package.json package-lock.json build.rs setup.py conftest.py pyproject.toml Cargo.toml \
        Cargo.lock go.mod CMakeLists.txt Dockerfile docker-compose.yml .dockerignore .gitignore \
        .gitattributes .gitmodules .gitkeep .git-blame-ignore-revs .github/workflows/ci.yml .github/copilot-instructions.md \
        .gitlab-ci.yml .editorconfig .rustfmt.toml .clippy.toml .eslintrc.json .prettierrc .babelrc \
        .rspec .rubocop.yml .pylintrc .flake8 .coveragerc .stylelintrc .browserslistrc .npmignore \
        .vscodeignore .storybook/main.ts .config/nextest.toml .cargo/audit.toml .claude/worktrees/x/src/main.rs \
        .claude/worktrees/x/Makefile .claude/plans/plan.md .claude/CLAUDE.md CLAUDE.md AGENTS.md GEMINI.md \
        .cursor/rules/style.mdc .cursor/plans/x.md .codex/worktrees/y/a.rs .gemini/plans/p.md docs/.git.md docs/hooks.md \
        src/hooks/useAuth.ts src/hooks/index.ts hooks/pre-commit.md src/hooks/post-list.tsx git/config lib/config bin/run \
        usr/bin/x etc/profile profile bashrc zshrc vimrc ssh/config model.pth checkpoints/last.pth gitconfig.md \
        src/git/hooks.rs src/settings.json settings.json tasks.json mcp.json .yarn/cache/a.zip .yarn/install-state.gz \
        .vscode.md idea/x husky.md .github/hooks.json tests/site.py public/index.html README.md a.env.example \
        src/.eslintrc.cjs vite.config.ts webpack.config.js jest.config.js tsconfig.json deno.json .swcrc";
    let mut seen = 0;
    for path in everyday.split_whitespace() {
        check(&at_home(), &format!("/home/u/proj/{path}"), false);
        assert!(!is_secret(Path::new(path)), "{path} is denied");
        seen += 1;
    }
    assert!(seen > 90, "{seen}");
    check(&at_home(), "/tmp/x", false);
    check(&at_home(), "/home/u/Documents/bin/x", false);
}

#[test]
fn a_folder_in_place_of_config_in_the_home_folder_is_protected_like_it() {
    let policy = Policy { config_home: Some("/home/u/settings".into()), ..at_home() };
    for (path, expected) in [
        ("/home/u/settings/git/config", true),
        ("/home/u/settings/fish/config.fish", true),
        ("/home/u/.config/git/config", true),
        ("/home/u/other/git/config", false),
        ("/home/u/settings/notes.txt", false),
    ] {
        check(&policy, path, expected);
    }
    assert!(policy.is_protected_place(Path::new("/home/u/settings/git")));
    assert!(!at_home().is_protected_place(Path::new("/home/u/settings/git")));
}

#[test]
fn only_writes_are_protected() {
    for category in Category::ALL {
        let found = at_home().protected_write(Path::new("/p"), &Need::new(category, "/p/.git/config"));
        assert_eq!(found.is_some(), category == Category::FileWrite, "{category}");
    }
}

#[test]
fn the_configuration_adds_patterns_everywhere_or_in_its_project() {
    let mut policy = at_home();
    policy.protect("deploy/**", "config.toml:3", None);
    policy.protect("~/scripts/*.sh", "config.toml:4", None);
    policy.protect("/srv/**/x", "config.toml:5", None);
    policy.protect("own.txt", "p/config.toml:1", Some(Path::new("/home/u/proj")));
    policy.protect("theirs.txt", "q/config.toml:1", Some(Path::new("/home/u/other")));
    for (path, expected) in [
        ("/p/deploy/a/b", true),
        ("/p/Deploy", true),
        ("/p/deploys/a", false),
        ("/home/u/scripts/a.sh", true),
        ("/home/u/scripts/a.py", false),
        ("/home/v/scripts/a.sh", false),
        ("/srv/x", true),
        ("/srv/a/b/x", true),
        ("/srv/a/b/y", false),
        ("/home/u/proj/own.txt", true),
        ("/home/u/proj/theirs.txt", false),
    ] {
        check(&policy, path, expected);
    }
    let said = policy.protected_write(Path::new("/"), &Need::new(Category::FileWrite, "/p/deploy/a")).unwrap();
    assert!(said.contains("deploy/**") && said.contains("config.toml:3"), "{said}");
}

#[test]
fn a_pattern_that_can_match_no_path_is_refused_and_denies() {
    for (bad, said) in [
        ("", "names no file"),
        ("/", "names no file"),
        ("~", "names no file"),
        ("~/", "names no file"),
        ("~other/x", "names no file"),
        ("deploy/", "did you mean deploy/**?"),
        ("a//b", "can match no file"),
        ("a/../b", "can match no file"),
        ("./a", "can match no file"),
    ] {
        let why = ProtectedWrite::parse(bad, "", None).unwrap_err();
        assert!(why.contains(said), "{bad:?}: {why}");
        let mut policy = Policy::default();
        policy.protect(bad, "config.toml:1", None);
        assert_eq!((policy.closed.len(), policy.closed[0].category), (1, Category::FileWrite));
        assert!(policy.broken[0].starts_with("config.toml:1: protected_writes: "), "{:?}", policy.broken);
    }
}

#[test]
fn many_wildcards_cost_little() {
    let pattern = format!("{}x", "**/".repeat(500));
    let place = ProtectedWrite::parse(&pattern, "", None).unwrap();
    let names = names_of(&"/a".repeat(500));
    assert!(place.matched(&names, None).is_none());
}

#[test]
fn the_document_shows_the_list() {
    let mut table = String::from("| path | why |\n|---|---|\n");
    for place in list::PROTECTED_WRITES {
        table.push_str(&format!("| `{}` | {} |\n", place.pattern, place.reason));
    }
    let document = include_str!("../../../../PROTECTED_WRITES.md");
    let shown = document.split_once("## The list\n\n").expect("the document has a section for the list").1;
    assert!(shown == table, "the list in daemon/PROTECTED_WRITES.md is to be this:\n\n{table}");
}
