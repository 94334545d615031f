//! The floors: what runs without a person's word can do no more than its effects, whatever the tables of programs say,
//! and everyday commands do the same on them as without.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use toold_test_kit::until;
use toold_tests::{Setup, TestDaemon, Wire, skip, toold};

use crate::sandbox::ALLOW;

/// Whether this machine has all floors.
pub(crate) fn machine_has_floors() -> bool {
    let arguments =
        ["sandbox-exec", "--floor", "--needs-scope", "--mask", "/etc/passwd", "--see", "/", "--", "/bin/true"];
    let has = Command::new(toold()).args(arguments).output().unwrap().status.success();
    if !has {
        skip("this machine cannot confine all commands that run without an approval");
    }
    has
}

/// The floor of commands that only read, and whether it has mounts; `None` where there is none.
fn reading_floor() -> Option<ReadingFloor> {
    let works = |more: &[&str]| {
        let arguments = [&["sandbox-exec", "--floor"][..], more, &["--see", "/", "--", "/bin/true"]].concat();
        Command::new(toold()).args(arguments).output().unwrap().status.success()
    };
    if works(&[]) {
        return Some(ReadingFloor::Mounts);
    }
    if works(&["--bare"]) {
        return Some(ReadingFloor::Bare);
    }
    skip("this machine cannot confine commands that only read");
    None
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadingFloor {
    Mounts,
    /// Settings appear as they are or not at all, and nothing is private.
    Bare,
}

fn bash(wire: &mut Wire, command: &str) -> Value {
    wire.tool("bash", json!({"command": command}))
}

#[track_caller]
fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

pub(super) fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "init.defaultBranch=main"]);
    let output = command.args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A daemon whose path begins with a folder in which `name` is this program: as if the tables were wrong about it.
pub(super) fn with_program(setup: Setup, name: &str, program: &str) -> TestDaemon {
    let folder = setup.path("programs");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(name), program).unwrap();
    std::fs::set_permissions(folder.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    setup.start_by(|setup| {
        let mut command = setup.daemon_command();
        command.env("PATH", path);
        command
    })
}

/// A project with secrets in it and beside it.
fn among_secrets() -> Setup {
    Setup::new()
        .file("kept.txt", "kept\n")
        .file("folder/x", "x\n")
        .file(".env", "KEY=secret-of-the-project\n")
        .file("deep/er/.env.local", "KEY=secret-of-the-project\n")
        .file("../home/note", "secret-of-the-person\n")
        .file("../other/code.txt", "secret-of-the-person\n")
        .file("../home/.ssh/id_ed25519", "secret-of-the-person\n")
        .file("../home/.config/git/credentials", "https://me:secret-of-the-person@host\n")
        .file("../home/.composer/auth.json", "{\"password\": \"secret-of-the-person\"}\n")
        .file("../home/.gitconfig", "[github]\n\ttoken = ghp_secret-of-the-person\n[core]\n\tpager = shown\n")
        .file("../home/.cargo/config.toml", "token = \"secret-of-the-person\"\n[shown]\n")
        .file("../home/.npmrc", "registry=https://shown.example\n//shown.example/:_authToken=secret-of-the-person\n")
}

/// What `red.py` could do that none of these names, when `line` runs it; the file `arguments` has its arguments.
#[track_caller]
fn harm_done(daemon: &TestDaemon, line: &str, floor: ReadingFloor, harmless: &[&str]) -> Vec<String> {
    std::fs::write(daemon.work().join("red.py"), include_str!("red.py")).unwrap();
    let mut outside = Command::new("sleep").arg("1000").env("OUTSIDE", "secret-of-a-process").spawn().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let arguments =
        format!("{} {port} {} {}", daemon.socket().display(), outside.id(), daemon.setup.path("home").display());
    std::fs::write(daemon.work().join("arguments"), arguments).unwrap();
    let result = bash(&mut daemon.connect(), line);
    let alive = outside.try_wait().unwrap().is_none();
    outside.kill().unwrap();
    outside.wait().unwrap();
    let said = text(&result);
    let lines: Vec<&str> = said.lines().filter(|line| !line.starts_with('[')).collect();
    assert!(lines.len() > 50 && said.contains("\nall was tried"), "{said}");
    assert!(!said.contains("secret-of"), "{said}");
    let shown = if floor == ReadingFloor::Mounts { 3 } else { 0 };
    assert_eq!(said.matches("shown").count(), shown, "the settings without tokens: {said}");
    assert!(alive, "a process outside was ended");
    let done = lines.iter().filter_map(|line| line.strip_suffix(" done"));
    done.filter(|name| !harmless.contains(name)).map(str::to_owned).collect()
}

#[test]
fn a_program_that_the_tables_wrongly_call_harmless_does_no_harm() {
    let Some(floor) = reading_floor() else { return };
    // The program of this name is in the tables as one that only reads.
    let program = "#!/bin/sh\nexec python3 \"$PWD/red.py\" $(cat \"$PWD/arguments\")\n";
    let daemon = with_program(among_secrets(), "uniq", program);
    assert_eq!(harm_done(&daemon, "uniq kept.txt", floor, &WITHOUT_TOKENS), [] as [&str; 0]);
    let mut left: Vec<_> = std::fs::read_dir(daemon.work()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, [".env", "arguments", "deep", "folder", "kept.txt", "red.py"]);
    assert_eq!(std::fs::read_to_string(daemon.work().join("kept.txt")).unwrap(), "kept\n");
}

/// Settings that are shown, without the tokens in them.
const WITHOUT_TOKENS: [&str; 3] = ["token in .gitconfig", "token in .cargo/config.toml", "token in .npmrc"];

/// Changes in the session's folders.
const CHANGES: [&str; 20] = [
    "new file",
    "append",
    "overwrite",
    "truncate",
    "truncate on opening",
    "remove",
    "rename",
    "exchange",
    "hard link",
    "soft link",
    "folder",
    "remove folder",
    "mode",
    "owner",
    "times",
    "attribute",
    "pipe",
    "unnamed file",
    "through /proc/self/root",
    "through /proc/self/cwd",
];

#[test]
fn a_build_changes_the_sessions_folders_and_nothing_else() {
    if !machine_has_floors() {
        return;
    }
    let daemon = at("develop", among_secrets());
    let build = "#!/bin/sh\nexec python3 red.py $(cat arguments)\n";
    std::fs::write(daemon.work().join("build.sh"), build).unwrap();
    // These stay in the session's own network, or write in its folders from elsewhere.
    let within = ["UDP", "bound pair", "nested namespaces", "a program in memory"];
    let harmless = [CHANGES.as_slice(), &within, &WITHOUT_TOKENS].concat();
    assert_eq!(harm_done(&daemon, "sh build.sh", ReadingFloor::Mounts, &harmless), [] as [&str; 0]);
    let beside: Vec<_> =
        std::fs::read_dir(daemon.setup.path("home")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!beside.iter().any(|path| path.ends_with(".bashrc")), "{beside:?}");
}

#[test]
fn a_rule_of_a_person_lifts_the_floor_and_a_rule_for_another_part_does_not() {
    if !machine_has_floors() {
        return;
    }
    let program = "#!/bin/sh\necho x > \"$PWD/written\"\nexit 0\n";
    let daemon = with_program(Setup::new().file("a.txt", "a\n"), "uniq", program);
    let mut wire = daemon.connect();
    bash(&mut wire, "uniq a.txt");
    assert!(!daemon.work().join("written").exists());
    let grant = |wire: &mut Wire, pattern: &str| {
        wire.result("permissions.grant", json!({"category": "shell", "pattern": pattern, "scope": "always"}));
    };
    grant(&mut wire, "cat *");
    bash(&mut wire, "cat a.txt && uniq a.txt");
    assert!(!daemon.work().join("written").exists());
    grant(&mut wire, "uniq *");
    bash(&mut wire, "cat a.txt && uniq a.txt");
    assert!(daemon.work().join("written").exists());
}

#[test]
fn a_command_that_was_stopped_says_by_what_and_how_to_allow_it() {
    if !machine_has_floors() {
        return;
    }
    let program = "#!/bin/sh\ncat \"$HOME/note\"\n";
    let daemon = with_program(Setup::new().file("../home/note", "private\n").file("a.txt", "a\n"), "uniq", program);
    let mut wire = daemon.connect();
    let result = bash(&mut wire, "uniq a.txt");
    let said = text(&result).to_owned();
    assert!(
        said.contains("note: Permission denied\n[exit code 1]\n[it ran in a sandbox: read-only, no network"),
        "{said}"
    );
    let (_, way) = said.split_once("Allow it with: toolctl ").unwrap_or_else(|| panic!("{said}"));
    let way = way.trim_end().trim_end_matches(']').replace('\'', "");
    let output = daemon.toolctl(&way.splitn(4, ' ').collect::<Vec<_>>());
    assert!(output.status.success(), "{way}: {output:?}");
    assert_eq!(text(&bash(&mut wire, "uniq a.txt")), "private\n");
    // What succeeds, and what finds nothing, says nothing about it.
    assert_eq!(text(&bash(&mut wire, "cat a.txt")), "a\n");
    assert_eq!(text(&bash(&mut wire, "grep b a.txt")), "[exit code 1]");
}

/// What runs code later and was made by a command that nobody approved is set aside, unless a rule is about exactly this file.
#[test]
fn files_that_run_code_later_are_set_aside_until_a_person_allows_them() {
    if !machine_has_floors() {
        return;
    }
    let script = "mkdir -p a/.vscode && echo x > a/.mcp.json && echo x > a/.vscode/tasks.json && echo x > a/code\n";
    let daemon = at("develop", Setup::new().file("setup.sh", script).file("old/.mcp.json", "{}\n"));
    let mut wire = daemon.connect();
    let file = |name: &str| daemon.work().join(name);
    let pattern = file("a/.mcp.json").to_string_lossy().into_owned();
    wire.result("permissions.grant", json!({"category": "file.write", "pattern": pattern, "scope": "always"}));
    let result = bash(&mut wire, "sh setup.sh");
    assert_eq!(result["metadata"]["set_aside"], json!([file("a/.vscode/tasks.json")]), "{result}");
    let expected = format!("it was set aside as {}", file("a/.vscode/tasks.json.not-allowed").display());
    assert!(text(&result).contains(&expected), "{result}");
    assert!(file("a/code").exists() && file("a/.mcp.json").exists() && !file("a/.vscode/tasks.json").exists());
    // A repository without `.git`, in which Git would run a program.
    let script = "mkdir -p b/objects b/refs; echo 'ref: refs/heads/main' > b/HEAD\n\
                  printf '[core]\\nfsmonitor=x\\n' > b/config; mkdir c; ln -s c .claude\n";
    std::fs::write(file("setup.sh"), script).unwrap();
    let result = bash(&mut wire, "sh setup.sh");
    assert_eq!(result["metadata"]["set_aside"], json!([file(".claude"), file("b/config")]), "{result}");
    // Those that are there stay as they are, and a command in the background is looked after while it runs.
    let script = "echo y > a/.mcp.json; echo y > old/.mcp.json; rm -rf old; echo x > .nvmrc; exec sleep 1000\n";
    std::fs::write(file("setup.sh"), script).unwrap();
    wire.tool("bash", json!({"command": "sh setup.sh", "background": true}));
    until("the file is set aside", || file(".nvmrc.not-allowed").exists().then_some(()));
    for (name, content) in [("a/.mcp.json", "x\n"), ("old/.mcp.json", "{}\n")] {
        assert_eq!(std::fs::read_to_string(file(name)).unwrap(), content, "{name}");
    }
    assert!(!file(".nvmrc").exists());
}

/// The programs of a project's environment are its own, but not those that everybody takes for the system's.
#[test]
fn no_command_puts_a_program_in_front_of_the_systems() {
    if !machine_has_floors() {
        return;
    }
    let script =
        "mkdir -p .venv/bin; for p in git python3 pytest; do echo x > .venv/bin/$p; done; ln -s python3 .venv/bin/ls\n";
    let setup = Setup::new().file("setup.sh", script).config("[permission]\nlevel = \"develop\"\n");
    let path = format!("{}:{}", setup.path("work/.venv/bin").display(), std::env::var("PATH").unwrap());
    let daemon = setup.start_by(|setup| {
        let mut command = setup.daemon_command();
        command.env("PATH", path);
        command
    });
    let result = bash(&mut daemon.connect(), "sh setup.sh");
    let program = |name: &str| daemon.work().join(".venv/bin").join(name);
    assert_eq!(result["metadata"]["set_aside"], json!([program("git"), program("ls")]), "{result}");
    assert!(text(&result).contains("git would run in place of the program of its name"), "{result}");
    assert!(program("python3").exists() && program("pytest").exists() && !program("git").exists());
    // Another folder in its place.
    let script = "mv .venv old; mkdir -p other/bin; echo x > other/bin/git; ln -s other .venv\n";
    std::fs::write(daemon.work().join("setup.sh"), script).unwrap();
    let result = bash(&mut daemon.connect(), "sh setup.sh");
    assert_eq!(result["metadata"]["set_aside"], json!([daemon.work().join("other/bin/git")]), "{result}");
}

/// A command of another session, in a folder above, may have put it there.
#[test]
fn a_link_in_the_place_of_a_sessions_folder_is_no_folder_of_it() {
    if !machine_has_floors() {
        return;
    }
    let mode = format!("{ALLOW}[sandbox]\nmode = \"workspace-write\"\n");
    for config in ["[permission]\nlevel = \"develop\"\n", &mode] {
        let setup = Setup::new().file("sub/x", "").file("swap.sh", "mv sub other; ln -s ~ sub\n").config(config);
        let daemon = setup.start();
        let mut inner = Wire::connect(&daemon.socket());
        inner.result("session.open", json!({"cwd": daemon.work().join("sub"), "client": {"name": "test"}}));
        assert_eq!(text(&bash(&mut inner, "ls")), "x\n");
        bash(&mut daemon.connect(), "sh swap.sh");
        assert!(daemon.work().join("sub").is_symlink());
        let said = bash(&mut inner, "python3 -c 'open(\"made\", \"w\")'");
        assert!(text(&said).contains("is not the folder any more that the session was opened in"), "{said}");
        assert!(!daemon.setup.path("home/made").exists());
    }
}

/// Programs that `PATH` finds are shown with their installations, but a command may have made what it finds.
#[test]
fn a_link_that_a_command_has_made_shows_nothing_to_the_next_one() {
    if !machine_has_floors() {
        return;
    }
    let setup = Setup::new()
        .file("../home/private/note", "secret-of-the-person\n")
        .file(".venv/bin/python", "")
        .file("bin/x", "")
        .file("link.sh", "mv .venv old; ln -s ~ .venv; ln -s ~/private/note bin/jq; ln -s ~/private cargo\n")
        .file("read.sh", "cat ~/private/note\n")
        .config("[permission]\nlevel = \"develop\"\n");
    let work = setup.path("work");
    let path = [".venv/bin", "bin"].map(|name| work.join(name).display().to_string());
    let path = format!("{}:{}", path.join(":"), std::env::var("PATH").unwrap());
    let daemon = setup.start_by(|setup| {
        let mut command = setup.daemon_command();
        command.env("PATH", path).env("CARGO_HOME", work.join("cargo"));
        command
    });
    let mut wire = daemon.connect();
    bash(&mut wire, "sh link.sh");
    assert!(work.join("bin/jq").is_symlink() && work.join(".venv").is_symlink());
    let said = bash(&mut wire, "jq . read.sh; sh read.sh");
    assert!(text(&said).contains("note: Permission denied"), "{said}");
    assert!(!text(&said).contains("secret-of"), "{said}");
}

/// Files that the daemon had open when it started are not open in a command.
#[test]
fn a_command_on_a_floor_has_its_three_descriptors_alone() {
    if !machine_has_floors() {
        return;
    }
    let script = "exec 7< \"$HOME/note\" 8> \"$HOME/written\"; exec \"$0\" \"$@\"";
    let setup = Setup::new().file("../home/note", "private\n").file("look.sh", "cat <&7; echo x >&8; true\n");
    let daemon = at("develop", setup.through(&["sh", "-c", script]));
    let mut wire = daemon.connect();
    // The fourth one is the folder itself.
    assert_eq!(text(&bash(&mut wire, "ls /dev/fd/")), "0\n1\n2\n3\n");
    let said = text(&bash(&mut wire, "sh look.sh")).to_owned();
    assert!(!said.contains("private") && said.contains("Bad file descriptor"), "{said}");
    assert_eq!(std::fs::read_to_string(daemon.setup.path("home/written")).unwrap(), "");
}

/// Git notes in its index which files are as they were; a command that only reads may not write that.
#[test]
fn a_large_index_is_refreshed_after_a_command_that_only_read_it() {
    if !machine_has_floors() {
        return;
    }
    let setup = Setup::new();
    let work = setup.path("work");
    for number in 0..1500 {
        std::fs::write(work.join(format!("a-file-with-a-long-name-{number:04}.txt")), "x\n").unwrap();
    }
    git(&work, &["init", "-q"]);
    git(&work, &["add", "-A"]);
    git(&work, &["commit", "-qm", "first"]);
    let daemon = setup.start();
    let mut wire = daemon.connect();
    let index = || std::fs::metadata(work.join(".git/index")).unwrap().modified().unwrap();
    assert!(
        Command::new("sh").args(["-c", "touch -d 2026-01-02 *.txt"]).current_dir(&work).status().unwrap().success()
    );
    let before = index();
    assert_eq!(text(&bash(&mut wire, "git status --short")), "[no output]");
    let after = index();
    assert!(after > before, "{before:?}");
    // Not each time.
    bash(&mut wire, "git status --short");
    assert_eq!(index(), after);
    assert_eq!(git(&work, &["diff-files", "--name-only"]), "");
}

/// The places where each manager of versions has its programs, below the home folder: the folder in `PATH`, the program in it, and what it
/// leads to, by a script (`>`) or by a link.
const MANAGERS: &[(&str, &str, &str)] = &[
    (".cargo/bin", "cargo", "> .rustup/toolchains/stable/bin/cargo"),
    (".pyenv/shims", "python3", "> .pyenv/versions/3.12/bin/python3"),
    (".nvm/versions/node/v1/bin", "node", ".nvm/versions/node/v1/lib/node"),
    (".local/share/mise/shims", "node", "> .local/share/mise/installs/node/1/bin/node"),
    (".asdf/shims", "node", "> .asdf/installs/nodejs/1/bin/node"),
    (".volta/bin", "node", "> .volta/tools/image/node/1/bin/node"),
    (".sdkman/candidates/java/current/bin", "java", ".sdkman/candidates/java/17/lib/java"),
    (".local/bin", "node", ".local/share/pipx/venvs/node/bin/node"),
    (".local/bin", "python3", ".local/share/uv/python/cpython/bin/python3"),
    (".nix-profile/bin", "git", ".local/state/nix/profiles/p/bin/git"),
    ("linuxbrew/bin", "git", "linuxbrew/Cellar/git/1/bin/git"),
];

#[test]
fn programs_of_version_managers_are_the_same_on_the_floor() {
    if !machine_has_floors() {
        return;
    }
    for (folder, name, leads) in MANAGERS {
        let (is_script, leads) = leads.strip_prefix("> ").map_or((false, *leads), |leads| (true, leads));
        let setup = Setup::new().file("../home/note", "x\n");
        let home = setup.path("home");
        let setup = setup.file(&format!("../home/{leads}"), format!("#!/bin/sh\necho \"{leads} $1\"\n"));
        let program = format!("{folder}/{name}");
        let setup = match is_script {
            true => setup.file(&format!("../home/{program}"), format!("#!/bin/sh\nexec \"$HOME/{leads}\" \"$@\"\n")),
            false => {
                std::fs::create_dir_all(home.join(folder)).unwrap();
                std::os::unix::fs::symlink(home.join(leads), home.join(&program)).unwrap();
                setup
            }
        };
        for file in [leads, &program] {
            std::fs::set_permissions(home.join(file), std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let path = format!("{}:{}", home.join(folder).display(), std::env::var("PATH").unwrap());
        let setup = setup.file("run.sh", format!("exec {name} --version\n"));
        let daemon = setup.config("[permission]\nlevel = \"develop\"\n").start_by(|setup| {
            let mut command = setup.daemon_command();
            command.env("PATH", path);
            command
        });
        let result = bash(&mut daemon.connect(), "sh run.sh");
        assert_eq!(text(&result), format!("{leads} --version\n"), "{program}: {result}");
    }
}

#[test]
fn a_build_makes_pseudo_terminals_of_its_own() {
    if !machine_has_floors() {
        return;
    }
    let script = "import os, pty\nown, other = pty.openpty()\nos.write(other, b'x')\n\
                  print(os.read(own, 1), sorted(os.listdir('/dev/pts')))\n";
    let daemon = at("develop", Setup::new().file("t.py", script));
    assert_eq!(text(&bash(&mut daemon.connect(), "python3 t.py")), "b'x' ['0', 'ptmx']\n");
}

/// What the person's own settings and dotfiles lead to in the session's folders decides what their programs start.
#[test]
fn settings_of_the_person_that_lie_in_the_sessions_folders_are_read_only() {
    if !machine_has_floors() {
        return;
    }
    let script = "for f in hooks/pre-commit inc/git.inc dot/bashrc; do echo x >> $f; done; echo x > hooks/pre-push; echo x > new\n";
    let setup = Setup::new().file("write.sh", script);
    let setup =
        ["hooks/pre-commit", "inc/git.inc", "dot/bashrc"].iter().fold(setup, |setup, name| setup.file(name, "own\n"));
    let work = setup.path("work");
    let settings = format!("[core]\nhooksPath = {0}/hooks\n[include]\npath = {0}/inc/git.inc\n", work.display());
    let daemon = at("develop", setup.file("../home/.gitconfig", &settings));
    std::os::unix::fs::symlink(daemon.work().join("dot/bashrc"), daemon.setup.path("home/.bashrc")).unwrap();
    let result = bash(&mut daemon.connect(), "sh write.sh");
    assert!(daemon.work().join("new").exists(), "{result}");
    for name in ["hooks/pre-commit", "inc/git.inc", "dot/bashrc"] {
        assert_eq!(std::fs::read_to_string(daemon.work().join(name)).unwrap(), "own\n", "{name}: {result}");
    }
    assert!(!daemon.work().join("hooks/pre-push").exists(), "{result}");
}

/// Rules about files hold for commands that nobody approved, whatever the command is called and however it names the file.
#[test]
fn a_rule_about_a_file_holds_for_what_runs_without_an_approval() {
    if !machine_has_floors() {
        return;
    }
    let setup =
        Setup::new().file("private/p", "CANARY 1\n").file("plain.txt", "CANARY 2\n").file("link.txt", "CANARY 3\n");
    let setup = setup.file("asked/a", "CANARY 4\n").file("asked/free", "CANARY 5\n");
    let setup = setup.file("kept.txt", "kept\n").file("keep/a/b.txt", "kept\n").file("mine.lockd", "kept\n");
    git(&setup.path("work"), &["init", "-q"]);
    let work = setup.path("work").canonicalize().unwrap();
    let rules = [
        ("file.read", format!("{}/private/**", work.display()), "deny"),
        ("file.read", format!("{}/plain.txt", work.display()), "deny"),
        ("file.read", "**/link.*".to_owned(), "deny"),
        ("file.read", format!("{}/asked/**", work.display()), "ask"),
        ("file.read", format!("{}/asked/free", work.display()), "allow"),
        ("file.write", format!("{}/kept.txt", work.display()), "deny"),
        ("file.write", format!("{}/keep/**", work.display()), "ask"),
        ("file.write", "**/*.lockd".to_owned(), "deny"),
    ];
    let rule = |(category, pattern, action): &(&str, String, &str)| {
        format!("[[permission.rules]]\ncategory = \"{category}\"\npattern = \"{pattern}\"\naction = \"{action}\"\n")
    };
    let rules: String = rules.iter().map(rule).collect();
    let daemon = setup.config(&format!("[permission]\nlevel = \"develop\"\n{rules}")).start();
    let mut wire = daemon.connect();
    for line in [
        "cat pri*/p",
        "cat private/*; true",
        "python3 -c 'print(open(\"plain.txt\").read())'; true",
        "git grep --no-index CANARY -- private plain.txt link.txt; true",
        "grep -r CANARY . --include=p --include=plain.txt --include='link*'; true",
        "ln -s plain.txt l.txt; perl -pe 1 l.txt; true",
        "python3 -c 'print(open(\"asked/a\").read())'; true",
        "cat /proc/$$/cwd/private/p; true",
    ] {
        let result = bash(&mut wire, line);
        assert!(!text(&result).contains("CANARY"), "{line}: {result}");
    }
    let result = bash(&mut wire, "python3 -c 'print(open(\"asked/free\").read())'");
    assert!(text(&result).contains("CANARY 5"), "{result}");
    let write = r#"import os, shutil, sys
for path in sys.argv[1:]:
    for attempt in (lambda: open(path, "w").write("x"), lambda: os.unlink(path), lambda: os.rename(path, path + ".o"),
                    lambda: os.rename(os.path.dirname(path) or "none", "moved"), lambda: shutil.rmtree("keep")):
        try:
            attempt()
        except OSError:
            pass
"#;
    std::fs::write(work.join("write.py"), write).unwrap();
    bash(&mut wire, "python3 write.py kept.txt keep/a/b.txt keep/new mine.lockd");
    for name in ["kept.txt", "keep/a/b.txt", "mine.lockd"] {
        assert_eq!(std::fs::read_to_string(work.join(name)).unwrap(), "kept\n", "{name}");
    }
    assert!(!work.join("keep/new").exists());
    let result = bash(&mut wire, "python3 -c 'open(\"new.lockd\", \"w\").write(\"x\")'");
    assert_eq!(result["metadata"]["set_aside"], json!([work.join("new.lockd")]), "{result}");
    assert!(text(&result).contains("is a file about whose writing there is a rule"), "{result}");
    // The configuration of the project is as the rules: nobody allowed the command to make it.
    let result =
        bash(&mut wire, "python3 -c 'import os; os.makedirs(\".toold/plugins\"); open(\".toold/config.toml\", \"w\")'");
    assert_eq!(result["metadata"]["set_aside"], json!([work.join(".toold")]), "{result}");
    // What no rule is about is free as before.
    bash(&mut wire, "python3 -c 'open(\"free.txt\", \"w\").write(\"x\")'");
    assert!(work.join("free.txt").exists() && !work.join("new.lockd").exists());
}

/// A repository with a secret that Git tracks, and one that it does not.
fn repository(ignored: bool) -> Setup {
    let setup = Setup::new().file("code.txt", "one\n").file("config/.env", "TRACKED=1\n");
    let setup = if ignored { setup.file(".gitignore", "/.env\n") } else { setup };
    git(&setup.path("work"), &["init", "-q"]);
    for (name, value) in [("user.name", "n"), ("user.email", "e@example.org")] {
        git(&setup.path("work"), &["config", name, value]);
    }
    git(&setup.path("work"), &["add", "-A"]);
    git(&setup.path("work"), &["commit", "-qm", "first"]);
    git(&setup.path("work"), &["branch", "other"]);
    setup.file(".env", "UNTRACKED=1\n")
}

pub(super) fn at(level: &str, setup: Setup) -> TestDaemon {
    setup.config(&format!("[permission]\nlevel = \"{level}\"\n")).start()
}

#[test]
fn git_works_beside_tracked_and_untracked_secrets_and_takes_none_for_empty() {
    if !machine_has_floors() {
        return;
    }
    let daemon = at("edit", repository(true));
    let mut wire = daemon.connect();
    std::fs::write(daemon.work().join("code.txt"), "two\n").unwrap();
    assert_eq!(text(&bash(&mut wire, "git status --short")), " M code.txt\n");
    assert_eq!(text(&bash(&mut wire, "git log --format=%s")), "first\n");
    for line in ["git add -A", "git commit -qam second"] {
        let result = bash(&mut wire, line);
        assert_eq!(result["is_error"], json!(false), "{line}: {result}");
    }
    let files = git(&daemon.work(), &["show", "--stat", "--format=%s", "HEAD"]);
    assert!(files.starts_with("second") && files.contains("1 file changed"), "{files}");
    std::fs::write(daemon.work().join("code.txt"), "three\n").unwrap();
    for line in ["git stash -u", "git checkout -q other", "git checkout -q main", "git stash pop"] {
        bash(&mut wire, line);
        assert_eq!(std::fs::read_to_string(daemon.work().join(".env")).unwrap(), "UNTRACKED=1\n", "{line}");
        assert_eq!(std::fs::read_to_string(daemon.work().join("config/.env")).unwrap(), "TRACKED=1\n", "{line}");
    }
    if !git(&daemon.work(), &["stash", "list"]).is_empty() {
        git(&daemon.work(), &["stash", "pop"]);
    }
    assert_eq!(git(&daemon.work(), &["status", "--short"]), " M code.txt\n");
    // What is not ignored is refused, and never added as an empty file.
    let daemon = at("edit", repository(false));
    let mut wire = daemon.connect();
    assert_eq!(text(&bash(&mut wire, "git status --short")), "?? .env\n");
    let refused = bash(&mut wire, "git add -A");
    assert!(text(&refused).contains("open(\".env\"): Permission denied"), "{refused}");
    assert!(text(&refused).contains("':(top,exclude).env' leaves it out"), "{refused}");
    assert_eq!(bash(&mut wire, "git add -A -- ':(top,exclude).env'")["is_error"], json!(false));
    assert_eq!(git(&daemon.work(), &["status", "--short"]), "?? .env\n");
    assert_eq!(std::fs::read_to_string(daemon.work().join(".env")).unwrap(), "UNTRACKED=1\n");
}

/// Git compares the content of a file that has changed with what it has.
#[test]
fn git_says_which_hidden_file_it_cannot_compare_and_how_to_leave_it_out() {
    if !machine_has_floors() {
        return;
    }
    let daemon = at("develop", repository(true));
    for (file, text) in [("config/.env", "TRACKED=2\n"), ("code.txt", "two\n")] {
        std::fs::write(daemon.work().join(file), text).unwrap();
    }
    let mut wire = daemon.connect();
    let refused = text(&bash(&mut wire, "git diff")).to_owned();
    let way = "Git can't read config/.env, which is hidden here, and not in its index as it is: ':(top,exclude)config/.env' \
               leaves it out";
    assert!(refused.contains(way), "{refused}");
    let shown = text(&bash(&mut wire, "git diff -- ':(top,exclude)config/.env'")).to_owned();
    assert!(shown.contains("+two") && !shown.contains("TRACKED") && !shown.contains("undone"), "{shown}");
}

/// Java takes no folder for temporary files from `TMPDIR`.
#[test]
fn programs_of_java_are_told_where_temporary_files_go() {
    if !machine_has_floors() {
        return;
    }
    let script = "echo $TMPDIR $JAVA_TOOL_OPTIONS $GRADLE_OPTS\n";
    let daemon = at("develop", Setup::new().file("build.sh", script));
    let mut wire = daemon.connect();
    let said = text(&bash(&mut wire, "sh build.sh")).to_owned();
    let (folder, options) = said.trim().split_once(' ').unwrap_or_else(|| panic!("{said}"));
    let of_gradle = "-Dorg.gradle.daemon=false";
    assert_eq!(options, format!("-Djava.io.tmpdir={folder} -Dmaven.repo.local={folder}/m2 {of_gradle}"));
    // Its cache has a layer.
    std::fs::create_dir(daemon.setup.path("home/.m2")).unwrap();
    let said = text(&bash(&mut wire, "sh build.sh")).to_owned();
    assert_eq!(said, format!("{folder} -Djava.io.tmpdir={folder} {of_gradle}\n"));
}

/// What Git ignores is not in undo's records.
#[test]
fn ignored_files_are_overwritten_by_no_line_that_nobody_approved() {
    if !machine_has_floors() {
        return;
    }
    let setup = Setup::new().file("a.txt", "one\ntwo\n").file(".gitignore", "/out\n");
    let work = setup.path("work");
    let run = |line: &str| git(&work, &line.split(' ').collect::<Vec<_>>());
    run("init -q -b main");
    run("config user.name n");
    run("config user.email e@example.org");
    run("add -A");
    run("commit -qm first");
    run("branch plain");
    run("checkout -q -b other");
    let setup = setup.file("out/f", "of the other branch\n");
    run("add -f out/f");
    run("commit -qm other");
    run("update-ref refs/remotes/origin/far other");
    run("checkout -q plain");
    let setup = setup.file("b.txt", "one\n");
    run("add b.txt");
    run("commit -qm plain");
    run("checkout -q main");
    let mut setup = setup;
    let files = ["f", "a", "aa", "xx00", "0001-first.patch"];
    for name in files {
        setup = setup.file(&format!("out/{name}"), "precious\n");
    }
    let daemon = at("edit", setup.file("filled/keep", "k\n"));
    let mut wire = daemon.connect();
    for line in [
        "git checkout other",
        "git checkout far",
        "git switch other",
        "git checkout -b t other",
        "git switch -c t other",
        "git merge other",
        "git rebase other",
        "git reset --keep other",
        "git cherry-pick other",
        "git checkout -q plain && git merge other",
        "bash -c 'git checkout other'",
        "split -a1 a.txt out/",
        "split a.txt out/a",
        "csplit -f out/xx a.txt 1",
        "git format-patch -1 -o out",
        // The former content stays, but undo would not take back what comes behind it.
        "echo x >> out/f",
        "echo x | tee -a out/f",
        "mkdir s; cp a.txt s/f; cp -r s/. out",
        "mkdir s; cp a.txt s/f; cp -a s/. out/",
        "mkdir s; cp a.txt s/f; cp s/* out",
        "cp a.txt filled/f; cp -r filled/. out",
        "mkdir -p s/out; cp a.txt s/out/f; cp -r s/out .",
        "for x in 1 2; do cp -r filled/. out; cp a.txt filled/f; done",
    ] {
        let result = bash(&mut wire, line);
        assert!(!result["metadata"]["permission"].is_null(), "{line}: {result}");
        for name in files {
            assert_eq!(std::fs::read_to_string(work.join("out").join(name)).unwrap(), "precious\n", "{line}");
        }
    }
    for line in [
        "git checkout -q plain",
        "git checkout -q -",
        "git merge -q plain",
        "git checkout -q -b mine",
        "git rebase -q main",
        "split -a1 a.txt part_",
        "git format-patch -1 -o patches",
        "mkdir s; cp a.txt s/f; cp -r s/. new",
        "mkdir -p s; cp a.txt s/f; cp -r s/. filled",
    ] {
        let result = bash(&mut wire, line);
        assert!(result["metadata"]["permission"].is_null() && result["is_error"] == json!(false), "{line}: {result}");
    }
}

/// A floor keeps Git's settings as they are, so what would change them needs an approval, and does not half of its work.
#[test]
fn commands_of_git_that_change_its_settings_are_asked_about() {
    if !machine_has_floors() {
        return;
    }
    let daemon = at("develop", repository(true));
    let mut wire = daemon.connect();
    git(&daemon.work(), &["worktree", "add", "-q", "tree", "-b", "of-tree"]);
    for line in [
        "git branch -m other third",
        "git -C . branch -c other third",
        "git branch -u main other",
        "git branch --set-upstream-to=main other",
        "git checkout -b t --track other",
        "git switch -c t -t other",
        "git remote add x https://example.com/x",
        "git remote set-url x y",
        "git config user.name n",
        "git config --unset user.name",
        "git worktree remove tree",
        "git worktree move tree t",
        "git sparse-checkout set config",
        "git init",
        "git init -q .",
    ] {
        let result = bash(&mut wire, line);
        assert!(!result["metadata"]["permission"].is_null(), "{line}: {result}");
    }
    for line in
        ["git -C . branch third", "git init -q new", "git worktree list", "git branch -d third", "git config core.bare"]
    {
        let result = bash(&mut wire, line);
        assert_eq!(result["is_error"], json!(false), "{line}: {result}");
    }
}

#[test]
fn a_build_reads_only_the_secrets_that_a_person_exposes() {
    if !machine_has_floors() {
        return;
    }
    let script = "#!/bin/sh\ncat .env config/.env sub/prod.env\nrm -rf config sub\necho $?\n";
    let files = |setup: Setup| {
        let setup = setup.file("build.sh", script).file("sub/prod.env", "PROD=1\n").file(".toolignore", "private\n");
        setup.file("private/data.csv", "x\n")
    };
    let daemon = at("develop", files(repository(true)));
    let said = text(&bash(&mut daemon.connect(), "sh build.sh 2>&1")).to_owned();
    for line in [
        "cat: .env: Permission denied",
        "TRACKED=1",
        "cat: sub/prod.env: Permission denied",
        "rm: cannot remove 'sub/prod.env': Device or resource busy",
    ] {
        assert!(said.lines().any(|found| found == line), "{line}\n{said}");
    }
    assert!(said.contains("To let builds read .env, add expose = [\".env\"] to [sandbox]"), "{said}");
    assert_eq!(std::fs::read_to_string(daemon.work().join("sub/prod.env")).unwrap(), "PROD=1\n");
    let config = "[permission]\nlevel = \"develop\"\n[sandbox]\nexpose = [\".env\"]\n";
    let daemon = files(repository(true)).config(config).start();
    let said = text(&bash(&mut daemon.connect(), "sh build.sh 2>&1")).to_owned();
    assert!(said.contains("UNTRACKED=1") && said.contains("sub/prod.env: Permission denied"), "{said}");
}

/// Programs and what they are asked for; each that is installed says the same on the floor as without.
const SAME: &[&str] = &[
    "cargo --version",
    "rustc --version",
    "rustup --version",
    "pyenv --version",
    "python3 --version",
    "pip --version",
    "node --version",
    "npm --version",
    "git --version",
    "go version",
    "uv --version",
    "mise --version",
    "volta --version",
    "pipx --version",
    "nix --version",
    "brew --version",
    "ls -la",
    "ls -la missing",
    "cat a.txt missing",
    "git status",
    "git log --oneline",
    "git diff HEAD~1 --stat",
    "git config --get user.name",
    "sort a.txt | uniq -c | head -3",
    "find . -name '*.txt' | wc -l",
    "wc -l < a.txt",
    "cat /etc/os-release | head -2",
    "ps -o comm= -p $$",
    "id -un",
    "timeout 5 echo in time",
    "cat <<'EOF'\ntext\nEOF",
    "diff <(echo a) <(echo b)",
    "for f in *; do echo \"$f\"; done",
];

#[test]
fn everyday_commands_say_the_same_on_the_floor_as_without() {
    if !machine_has_floors() {
        return;
    }
    let setup = || {
        let setup = Setup::new().file("a.txt", "one\ntwo\none\n").file("../home/.gitconfig", "[user]\n\tname = Ada\n");
        let work = setup.path("work");
        git(&work, &["init", "-q"]);
        let dated = |message: &str| {
            let mut command = Command::new("git");
            command.args(["-c", "user.name=n", "-c", "user.email=e@example.org", "commit", "-qam", message]);
            let at = "2026-01-01T00:00:00Z";
            command.envs([("GIT_AUTHOR_DATE", at), ("GIT_COMMITTER_DATE", at)]).current_dir(&work);
            assert!(command.status().unwrap().success());
        };
        git(&work, &["add", "a.txt"]);
        dated("first");
        std::fs::write(work.join("a.txt"), "one\ntwo\nthree\n").unwrap();
        dated("second");
        setup
    };
    let floor = setup().start();
    // The same folder, so that names and times are the same.
    let mut on_floor = floor.connect();
    let confined: Vec<Value> = SAME.iter().map(|line| bash(&mut on_floor, line)).collect();
    drop(on_floor);
    let without = floor.into_setup().config(ALLOW).start();
    let mut free = without.connect();
    for (line, confined) in SAME.iter().zip(confined) {
        if !confined["metadata"]["permission"].is_null() {
            continue;
        }
        let plain = bash(&mut free, line);
        assert_eq!(text(&confined), text(&plain), "{line}");
        assert_eq!(confined["metadata"]["exit_code"], plain["metadata"]["exit_code"], "{line}");
    }
}

/// The lines of the corpus of everyday commands that need no approval: a few, and all with `FLOOR_LINES=all`.
#[test]
fn everyday_lines_run_the_same_on_the_floor_as_without() {
    if !machine_has_floors() {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../daemon/host/tests/host/commands/everyday");
    let all = std::env::var("FLOOR_LINES").is_ok_and(|lines| lines == "all");
    let mut lines: Vec<String> = Vec::new();
    for name in ["reading.txt", "git.txt"] {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        let body = text.split("\n== ").skip(1).flat_map(|section| section.lines().skip(1));
        let is_plain = |line: &&str| {
            !line.is_empty()
                && !line.starts_with("allow ")
                && !line.contains("{project}")
                && !["<<<", ">>>"].contains(line)
        };
        lines.extend(body.filter(is_plain).map(str::to_owned));
    }
    let step = if all { 1 } else { lines.len() / 24 };
    let lines: Vec<&String> =
        lines.iter().step_by(step).filter(|line| !DIFFERENT.iter().any(|of| line.contains(of.0))).collect();
    let setup = repository(true)
        .file("README.md", "# shop\n\nA shop.\n")
        .file("src/main.rs", "fn main() {}\n")
        .file("src/lib.rs", "pub mod parser;\n")
        .file("src/parser.rs", "// TODO: quotes\npub fn parse() {}\n")
        .file("package.json", "{\"name\": \"shop\", \"scripts\": {\"test\": \"vitest\"}}\n")
        .file("Cargo.toml", "[package]\nname = \"shop\"\nversion = \"1.4.0\"\n")
        .file("docs/guide.md", "# Guide\n")
        .file("tests/test_parser.py", "def test_empty():\n    pass\n");
    let floor = setup.start();
    let mut wire = floor.connect();
    let confined: Vec<Value> = lines.iter().map(|line| bash(&mut wire, line)).collect();
    drop(wire);
    let without = floor.into_setup().config(ALLOW).start();
    let (mut free, mut ran, mut differ) = (without.connect(), 0, Vec::new());
    for (line, confined) in lines.iter().zip(confined) {
        if !confined["metadata"]["permission"].is_null() || confined["metadata"]["exit_code"].is_null() {
            continue;
        }
        ran += 1;
        let plain = bash(&mut free, line);
        if text(&confined) != text(&plain) {
            differ.push(format!("{line}\n  confined: {}\n  plain: {}", text(&confined), text(&plain)));
        }
    }
    assert!(differ.is_empty(), "{} of {ran} differ:\n{}", differ.len(), differ.join("\n"));
    assert!(ran >= lines.len() / 3, "{ran} of {}", lines.len());
}

/// What differs, and why.
const DIFFERENT: &[(&str, &str)] = &[
    ("ps ", "the processes of the moment"),
    ("free", "the memory of the moment"),
    ("uptime", "the load of the moment"),
    ("df ", "the mounts of the command's own namespace"),
    ("mount", "the mounts of the command's own namespace"),
    ("env", "the variables of the private folders"),
    ("date", "the time"),
    ("/proc/", "the moment"),
    ("man ", "man changes its user, which no confined program can"),
];

#[test]
fn many_secrets_are_hidden_from_reading_and_more_are_asked_about() {
    if !machine_has_floors() {
        return;
    }
    let program = "#!/bin/sh\ncat \"$PWD\"/*.env \"$PWD\"/*/*.env 2>/dev/null | wc -l\n";
    let daemon = with_program(Setup::new().file("a.txt", "a\n"), "uniq", program);
    let mut wire = daemon.connect();
    let write = |name: &str| {
        let path = daemon.work().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "KEY=1\n").unwrap();
    };
    (0..100).for_each(|number| write(&format!("{number}.env")));
    assert_eq!(text(&bash(&mut wire, "uniq a.txt")).trim(), "0");
    // One that appears later, and a folder that takes the place of a known one.
    ["100.env", "new/x.txt", "other/x.env"].iter().for_each(|name| write(name));
    assert_eq!(text(&bash(&mut wire, "uniq a.txt")).trim(), "0");
    std::fs::remove_dir_all(daemon.work().join("new")).unwrap();
    std::fs::rename(daemon.work().join("other"), daemon.work().join("new")).unwrap();
    assert_eq!(text(&bash(&mut wire, "uniq a.txt")).trim(), "0");
    (100..600).for_each(|number| write(&format!("{number}.env")));
    let result = bash(&mut wire, "uniq a.txt");
    assert!(!result["metadata"]["permission"].is_null(), "{result}");
}

/// Each entry beside a secret that is shown is an argument of the launcher, which gets only so many.
#[test]
fn secrets_beside_many_files_are_covered_and_too_many_of_both_are_asked_about() {
    if !machine_has_floors() {
        return;
    }
    let program = "#!/bin/sh\ncat \"$PWD\"/*/.env 2>/dev/null | wc -l\nls \"$PWD\"/0 | wc -l\n";
    let daemon = with_program(Setup::new().file("a.txt", "a\n"), "uniq", program);
    let fill = |folders: std::ops::Range<usize>| {
        for folder in folders {
            let folder = daemon.work().join(folder.to_string());
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join(".env"), "KEY=1\n").unwrap();
            (0..80).for_each(|file| std::fs::write(folder.join(format!("{file}.txt")), "").unwrap());
        }
    };
    fill(0..60);
    let mut wire = daemon.connect();
    let lines: Vec<String> = text(&bash(&mut wire, "uniq a.txt")).split_whitespace().map(str::to_owned).collect();
    assert_eq!(lines, ["0", "80"]);
    fill(60..70);
    let result = bash(&mut wire, "uniq a.txt");
    assert!(!result["metadata"]["permission"].is_null(), "{result}");
}

#[test]
fn doctor_says_where_commands_run_that_nobody_approved() {
    let daemon = Setup::new().start();
    let status = daemon.connect().result("daemon.status", json!({}));
    let said = String::from_utf8(daemon.toolctl(&["doctor"]).stdout).unwrap();
    let line = said.lines().find(|line| line.contains(" floor")).unwrap_or_else(|| panic!("{said}"));
    assert_eq!(status["floors"]["freed"], json!(line.contains("confined to its effects")), "{said}");
    // No program of such a daemon runs, and nothing says that all is well.
    let config = "[sandbox]\nmode = \"read-only\"\nwritable = [\"/tmp/x\"]\n";
    let daemon = Setup::new().config(config).start();
    let said = String::from_utf8(daemon.toolctl(&["doctor"]).stdout).unwrap();
    assert!(said.contains("no command runs: the configured sandbox is not available"), "{said}");
}

/// Without mounts nothing could protect a part of a writable folder.
#[test]
fn the_launcher_refuses_a_bare_floor_that_writes() {
    let mut command = Command::new(toold());
    command.args(["sandbox-exec", "--floor", "--bare", "--write", "/tmp", "--see", "/", "--", "/bin/cat"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(b"text\n");
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(126), b"".as_slice()), "{output:?}");
}
