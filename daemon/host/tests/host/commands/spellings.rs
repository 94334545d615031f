//! One operation in a hundred spellings: the place and the form of its options, further options, quotes, wrappers. A rule
//! that denies the operation refuses all of them; one that allows it covers those that add no effect.
//!
//! The same spellings each time. For a search of any length: `COMMAND_SPELLINGS=2000 COMMAND_SEED=7`.

use std::sync::atomic::{AtomicUsize, Ordering};

use toold_proto::permission::Verdict;

use crate::commands::folders::TestProject;
use crate::commands::judge::{CommandSetting, RuleLine, judge};
use crate::commands::random::{SplitMix, setting};

/// Enough for each place and form of an option to occur, in a second or two.
const SPELLINGS: u64 = 30;

struct Operation {
    program: &'static str,
    /// Options before the subcommand that change nothing about it, each with its value.
    before: &'static [&'static str],
    words: &'static str,
    /// An option that the rule that denies names, and its other spellings.
    denied: &'static [&'static str],
    /// Options that add no effect.
    harmless: &'static [&'static str],
    operands: &'static str,
    /// Options that add an effect which the rule that allows does not cover.
    worse: &'static [&'static str],
}

const OPERATIONS: &[Operation] = &[
    Operation {
        program: "git",
        before: GIT,
        words: "push",
        denied: &["--force", "-f"],
        harmless: &["-q", "--quiet", "-v", "--tags", "--atomic"],
        operands: "origin main",
        worse: &["--force", "-f", "-d", "--mirror", "--prune"],
    },
    Operation {
        program: "git",
        before: GIT,
        words: "commit",
        denied: &["--no-verify", "-n"],
        harmless: &["-q", "-v", "-s", "--allow-empty"],
        operands: "-m x",
        worse: &[],
    },
    Operation {
        program: "git",
        before: GIT,
        words: "reset",
        denied: &["--hard"],
        harmless: &["-q", "--quiet"],
        operands: "HEAD",
        worse: &["--hard"],
    },
    Operation {
        program: "git",
        before: GIT,
        words: "branch",
        denied: &["-D"],
        harmless: &["-v", "-q"],
        operands: "old",
        worse: &["-D", "-M", "-f"],
    },
    Operation {
        program: "git",
        before: GIT,
        words: "fetch",
        denied: &["--prune", "-p"],
        harmless: &["-q", "--tags", "--all"],
        operands: "",
        worse: &[],
    },
    Operation {
        program: "git",
        before: GIT,
        words: "tag",
        denied: &["-f", "--force"],
        harmless: &["-m x"],
        operands: "v1",
        worse: &["-f", "--force"],
    },
    Operation {
        program: "cargo",
        before: &["-q", "--locked", "--offline", "--color never", "--color=never", "+nightly"],
        words: "publish",
        denied: &["--allow-dirty"],
        harmless: &["-v", "--dry-run", "--no-verify", "-j 4"],
        operands: "",
        worse: &[],
    },
    Operation {
        program: "cargo",
        before: &["-q", "--locked", "--offline", "+stable"],
        words: "test",
        denied: &["--release", "-r"],
        harmless: &["--lib", "--workspace", "-q", "--no-run", "-p shop"],
        operands: "works",
        worse: &[],
    },
    Operation {
        program: "rm",
        before: &[],
        words: "",
        denied: &["-r", "-R", "--recursive"],
        harmless: &["-f", "-v", "--force"],
        operands: "build/shop",
        worse: &["-r", "-R", "--recursive"],
    },
    Operation {
        program: "kubectl",
        before: &["-n prod", "--namespace=prod", "--namespace prod"],
        words: "delete",
        denied: &["--all"],
        harmless: &["--wait", "--ignore-not-found", "--grace-period 5", "--timeout=5s"],
        operands: "pod x",
        worse: &[],
    },
    Operation {
        program: "kubectl",
        before: &["-n prod", "--namespace=prod"],
        words: "get",
        denied: &["--watch", "-w"],
        harmless: &["--no-headers", "-o wide", "--show-labels", "-l app=x"],
        operands: "pods",
        worse: &[],
    },
    Operation {
        program: "docker",
        before: &["-D", "--log-level error", "-l error"],
        words: "rm",
        denied: &["-f", "--force"],
        harmless: &["-v", "--volumes"],
        operands: "web",
        worse: &[],
    },
    Operation {
        program: "docker",
        before: &["-D", "--log-level=error"],
        words: "run",
        denied: &["--privileged"],
        harmless: &["--rm", "-i", "--name x", "-e A=1"],
        operands: "alpine",
        worse: &["--privileged", "--network=host", "--cap-add ALL"],
    },
    Operation {
        program: "npm",
        before: &["-s", "--silent", "--prefix web", "--prefix=web", "-C web"],
        words: "install",
        denied: &["-D", "--save-dev"],
        harmless: &["--no-save", "--offline", "--legacy-peer-deps"],
        operands: "left-pad",
        worse: &[],
    },
    Operation {
        program: "npm",
        before: &["-s", "--silent", "--prefix web"],
        words: "run deploy",
        denied: &["--if-present"],
        harmless: &["-s", "--silent"],
        operands: "",
        worse: &[],
    },
    Operation {
        program: "make",
        before: &[],
        words: "deploy",
        denied: &["-k", "--keep-going"],
        harmless: &["-s", "-j4", "-C web"],
        operands: "",
        worse: &[],
    },
    Operation {
        program: "helm",
        before: &["-n prod", "--namespace prod", "--debug"],
        words: "uninstall",
        denied: &["--no-hooks"],
        harmless: &["--wait", "--keep-history"],
        operands: "shop",
        worse: &[],
    },
    Operation {
        program: "gh",
        before: &[],
        words: "pr merge",
        denied: &["--squash", "-s"],
        harmless: &["-d", "--delete-branch"],
        operands: "42",
        worse: &[],
    },
    Operation {
        program: "rsync",
        before: &[],
        words: "",
        denied: &["--delete"],
        harmless: &["-a", "-v", "-z", "--progress"],
        operands: "src/ docs",
        worse: &["--delete", "--delete-after", "--del"],
    },
    Operation {
        program: "cp",
        before: &[],
        words: "",
        denied: &["-r", "-R", "--recursive"],
        harmless: &["-v", "-p", "-f"],
        operands: "src docs",
        worse: &[],
    },
    Operation {
        program: "sed",
        before: &[],
        words: "",
        denied: &["-n"],
        harmless: &["-E", "-u"],
        operands: "s/a/b/ README.md",
        worse: &[],
    },
    Operation {
        program: "sort",
        before: &[],
        words: "",
        denied: &["-u", "--unique"],
        harmless: &["-n", "-r", "-k 2"],
        operands: "data/counts.txt",
        worse: &[],
    },
    Operation {
        program: "go",
        before: &["-C web", "-C ."],
        words: "test",
        denied: &["-race"],
        harmless: &["-v", "-run=X", "-short"],
        operands: "./...",
        worse: &[],
    },
];

const GIT: &[&str] = &["-P", "--no-pager", "-p", "-C .", "-C web", "--no-optional-locks"];

/// Wrappers that add nothing, by which a rule that allows holds too.
const ADD_NOTHING: &[&str] =
    &["CMD", "CMD", "timeout 5 CMD", "nice -n 5 CMD", "time CMD", "bash -lc 'CMD'", "CMD 2>&1", "true && CMD"];

const OTHERS: &[&str] = &[
    "sudo CMD",
    "sh -c 'CMD'",
    "nohup CMD",
    "docker exec web CMD",
    "ssh web1 CMD",
    "doppler run -- CMD",
    "wrap -- CMD",
    "xargs CMD",
    "mise exec -- CMD",
    "(CMD)",
    "if true; then CMD; fi",
    "for i in 1 2; do CMD; done",
    "x=$(CMD)",
    "CMD &",
    "echo a | CMD",
    "env -u X CMD",
    "kubectl exec web -- CMD",
    "setsid CMD",
    "! CMD",
];

/// The words in another form for the shell. Text within single quotes of a wrapper has none of its own.
fn quoted(word: &str, random: &mut SplitMix) -> String {
    if word.len() < 3 || !word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=".contains(c)) {
        return word.to_owned();
    }
    let (start, end) = word.split_at(1 + random.below(word.len() - 1));
    match random.below(8) {
        0 => format!("\"{word}\""),
        1 => format!("{start}\"{end}\""),
        2 => format!("{start}\\{end}"),
        3 => format!("{start}\"\"{end}"),
        _ => word.to_owned(),
    }
}

/// One spelling of the operation, with these options somewhere behind its words.
fn spelled(operation: &Operation, options: &[&str], random: &mut SplitMix) -> String {
    let mut words: Vec<String> = vec![operation.program.to_owned()];
    if !operation.before.is_empty() && random.chance(50) {
        words.push(random.pick(operation.before).to_owned());
    }
    words.extend((!operation.words.is_empty()).then(|| operation.words.to_owned()));
    let mut behind: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
    while random.chance(40) {
        behind.push(random.pick(operation.harmless).to_owned());
    }
    for at in (1..behind.len()).rev() {
        behind.swap(at, random.below(at + 1));
    }
    // Two letters in one word.
    if behind.len() > 1
        && operation.program != "go"
        && behind[..2].iter().all(|option| is_letter(option))
        && random.chance(50)
    {
        let second = behind.remove(1);
        behind[0].push_str(&second[1..]);
    }
    let place = random.below(behind.len() + 1);
    // Options of some programs end at the first operand.
    let place = if matches!(operation.program, "docker" | "go") { behind.len() } else { place };
    behind.insert(place, operation.operands.to_owned());
    words.extend(behind);
    let all = words.join(" ");
    all.split_whitespace().map(|word| quoted(word, random)).collect::<Vec<_>>().join(" ")
}

fn is_letter(option: &str) -> bool {
    option.len() == 2 && option.starts_with('-') && option.as_bytes()[1].is_ascii_alphabetic()
}

struct SpellingCheck<'a> {
    place: &'a CommandSetting,
    wrong: Vec<String>,
    count: usize,
}

impl SpellingCheck<'_> {
    fn check(&mut self, rules: &[RuleLine], line: &str, is_right: impl Fn(Verdict) -> bool) {
        let judged = judge(line, self.place, rules);
        self.count += 1;
        if !is_right(judged.verdict) {
            let why: Vec<_> = judged.parts.iter().map(|part| format!("{} ({})", part.target, part.rule)).collect();
            let rules: Vec<_> = rules.iter().map(RuleLine::shown).collect();
            self.wrong.push(format!("{rules:?}: {line}: {:?}: {}", judged.verdict, why.join("; ")));
        }
    }
}

fn rule(text: &str) -> RuleLine {
    RuleLine::parse(text).unwrap()
}

/// The operation, as a rule names it.
fn named(operation: &Operation) -> String {
    [operation.program, operation.words].join(" ").trim_end().to_owned()
}

/// Tries one operation after another, as long as there is one that nobody has tried.
fn work<'a>(place: &'a CommandSetting, next: &AtomicUsize) -> SpellingCheck<'a> {
    let mut check = SpellingCheck { place, wrong: Vec::new(), count: 0 };
    let (seed, spellings) = (setting("COMMAND_SEED", 1), setting("COMMAND_SPELLINGS", SPELLINGS));
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Some(operation) = OPERATIONS.get(number) else { return check };
        let denies = [rule("allow shell **"), rule(&format!("deny shell {} *", named(operation)))];
        let denies_option =
            [rule("allow shell **"), rule(&format!("deny shell {} {} *", named(operation), operation.denied[0]))];
        let allows = [rule(&format!("allow shell {} *", named(operation))), rule("allow file.write {project}/**")];
        for at in 0..spellings {
            let mut random = SplitMix::of_line(seed.wrapping_sub(1).wrapping_mul(1000) + number as u64, at);
            let wrap = |line: &str, wrapper: &str| wrapper.replace("CMD", line);
            let any = |random: &mut SplitMix| match random.chance(50) {
                true => random.pick(ADD_NOTHING),
                false => random.pick(OTHERS),
            };
            let line = wrap(&spelled(operation, &[], &mut random), any(&mut random));
            check.check(&denies, &line, |verdict| verdict == Verdict::Deny);
            let option = random.pick(operation.denied);
            let line = wrap(&spelled(operation, &[option], &mut random), any(&mut random));
            check.check(&denies_option, &line, |verdict| verdict == Verdict::Deny);
            let line = wrap(&spelled(operation, &[], &mut random), random.pick(ADD_NOTHING));
            check.check(&allows, &line, |verdict| verdict == Verdict::Allow);
            if !operation.worse.is_empty() {
                let option = random.pick(operation.worse);
                let line = wrap(&spelled(operation, &[option], &mut random), random.pick(ADD_NOTHING));
                check.check(&allows, &line, |verdict| verdict != Verdict::Allow);
            }
        }
    }
}

#[test]
fn a_rule_means_an_operation_in_all_its_spellings() {
    let project = TestProject::make();
    std::fs::create_dir_all(project.place.workspace.join("web")).unwrap();
    let next = AtomicUsize::new(0);
    let parts: Vec<SpellingCheck> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(|| work(&project.place, &next))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread that judges lines ends")).collect()
    });
    let count: usize = parts.iter().map(|part| part.count).sum();
    let mut wrong: Vec<String> = parts.into_iter().flat_map(|part| part.wrong).collect();
    wrong.sort();
    println!("{count} spellings of {} operations, {} wrong", OPERATIONS.len(), wrong.len());
    assert!(wrong.is_empty(), "{} of {count} wrong:\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
}
