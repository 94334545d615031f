//! Everyday commands work.

use std::process::Command;

use toold_tests::{Setup, skip};

use crate::sandbox::{confined, run};

/// A program that it needs, the command, and what it prints.
const COMMANDS: [(&str, &str, &str); 12] = [
    ("bash", "f=$(mktemp) && echo text > $f && cat $f && rm $f", "text\n"),
    ("bash", "d=$(mktemp -d) && touch $d/a && ls $d && rm -r $d", "a\n"),
    ("bash", "ulimit -n 100 && ulimit -n", "100\n"),
    ("bash", "sleep 100 & kill $! && wait $!; echo $?", "143\n"),
    ("bash", "nice true && timeout 10 echo done", "done\n"),
    ("bash", "mkfifo $TMPDIR/p; echo x > $TMPDIR/p & cat $TMPDIR/p; wait; rm $TMPDIR/p", "x\n"),
    (
        "python3",
        "python3 -c 'import resource as r; r.setrlimit(r.RLIMIT_CORE, (0, 0)); print(r.getrlimit(r.RLIMIT_CORE))'",
        "(0, 0)\n",
    ),
    (
        "python3",
        "python3 -c 'import multiprocessing as m; q = m.Queue(); p = m.Process(target=q.put, args=(1,)); \
         p.start(); print(q.get()); p.join()'",
        "1\n",
    ),
    ("python3", "python3 -c 'import os; os.sched_setaffinity(0, os.sched_getaffinity(0)); print(1)'", "1\n"),
    ("git", "git -C repo status --short --branch", "## No commits yet on main\n?? f\n"),
    ("node", "node -e 'console.log(require(\"child_process\").execSync(\"echo in\").toString().trim())'", "in\n"),
    ("go", "go env GOOS", "linux\n"),
];

fn is_here(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

#[test]
fn everyday_commands_work_in_every_mode() {
    for mode in ["read-only", "workspace-write", "guard"] {
        let setup = Setup::new().file("repo/f", "x\n");
        let made = Command::new("git").args(["init", "-q", "-b", "main"]).current_dir(setup.path("work/repo")).status();
        assert!(made.unwrap().success());
        let Some(daemon) = confined(&format!("mode = {mode:?}"), setup) else { return };
        let mut wire = daemon.connect();
        for (program, command, expected) in COMMANDS {
            if !is_here(program) {
                skip(&format!("{program} is not installed, so this does not run: {command}"));
                continue;
            }
            let command = format!(": ${{TMPDIR:=$PWD}}; {command}");
            assert_eq!(run(&mut wire, &command), expected, "{mode}: {command}");
        }
        let cargo = run(&mut wire, &format!("{} --version", env!("CARGO")));
        assert!(cargo.starts_with("cargo "), "{mode}: {cargo}");
    }
}
