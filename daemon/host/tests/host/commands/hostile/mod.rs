//! Lines that no one allowed, spelled in every way. Lines that are allowed nevertheless run in real `bash` and `zsh`, in a
//! temporary root, and everything that was run, written or shown beyond the rules is a failure.
//!
//! The same lines each time. For a search of any length: `COMMAND_LINES=1000000 COMMAND_SEED=7`. Lines that occur again, with
//! the same rules, do not run again: in a million, that is about half of them.

mod generate;
mod heredocs;
mod kits;
mod oracle;
mod proved;
mod root;
mod shell;

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use toold_proto::level::Level;
use toold_proto::permission::Verdict;

use self::generate::{HostileCase, generate};
use self::kits::KITS;
use self::oracle::{EscapeFailure, EscapeKind, LineOutcome, failures};
use self::root::ThrowAwayRoot;
use self::shell::{ShellKind, TestShell};
use crate::commands::corpus::read;
use crate::commands::judge::{RuleLine, judge, judge_in};
use crate::commands::random::setting;

const THREADS: u64 = 2;
/// For bash, and half as many for each other kind.
const USUAL: u64 = 2000;
/// This many failures are shown; all are counted.
const SHOWN: usize = 25;

/// A thread reports its progress after this many lines: a million take a while.
const TOLD: u64 = 25_000;

type JudgeFn = fn(&HostileBench, &str, &[RuleLine]) -> bool;

/// A root with a shell in it.
struct HostileBench {
    /// Ends before its folders are removed.
    shell: TestShell,
    kind: ShellKind,
    root: ThrowAwayRoot,
}

struct Failed {
    at: u64,
    case: HostileCase,
    found: Vec<EscapeFailure>,
}

#[derive(Default)]
struct Summary {
    lines: u64,
    /// Lines that differ from all others, by their text or by their rules.
    different: u64,
    allowed: u64,
    /// The different ones of them.
    ran: u64,
    failed: u64,
    kinds: BTreeMap<EscapeKind, u64>,
    /// By the first rule of the set.
    rules: BTreeMap<String, u64>,
    first: Vec<Failed>,
    /// The lines ran in namespaces of their own.
    confined: bool,
}

impl HostileBench {
    fn make(kind: ShellKind) -> Self {
        let root = ThrowAwayRoot::make();
        let shell = TestShell::start(&root, kind);
        Self { shell, kind, root }
    }

    /// Whether the policy allows it.
    fn allows(&self, line: &str, rules: &[RuleLine]) -> bool {
        judge_in(self.kind.name(), Level::Read, line, &self.root.place, rules).verdict == Verdict::Allow
    }

    fn run(&mut self, line: &str) -> LineOutcome {
        self.shell.run(line);
        let (ran, shown) = self.root.recorded();
        let uses_default_path = line.contains("command -p");
        LineOutcome { ran, shown, uses_default_path, changes: self.root.changes() }
    }

    /// `None` if the line is not allowed, and so did not run.
    fn attempt(&mut self, case: &HostileCase, judge: JudgeFn) -> Option<Vec<EscapeFailure>> {
        let line = self.root.put_into(&case.line());
        let rules = self.rules(case);
        // Without its own network namespace, a root must not contact other machines.
        let is_kept_back = !self.shell.is_confined && line.contains("ssh");
        if is_kept_back || line.contains('\0') || !judge(self, &line, &rules) {
            return None;
        }
        Some(failures(&rules, &self.run(&line)))
    }

    fn rules(&self, case: &HostileCase) -> Vec<RuleLine> {
        let put = |rule: &RuleLine| RuleLine { pattern: self.root.put_into(&rule.pattern), ..rule.clone() };
        case.rules.iter().map(put).collect()
    }

    /// Drops pieces as long as the line still fails in the same way.
    fn smaller(&mut self, failed: &Failed, judge: JudgeFn) -> HostileCase {
        let kind = failed.found[0].kind;
        let mut case = failed.case.clone();
        let mut at = 0;
        while at < case.pieces.len() {
            let mut without = case.clone();
            without.pieces.remove(at);
            let found = self.attempt(&without, judge).unwrap_or_default();
            match found.iter().any(|failure| failure.kind == kind) {
                true => case = without,
                false => at += 1,
            }
        }
        case
    }
}

/// The same for equal lines with equal rules.
fn hash(case: &HostileCase) -> u64 {
    let mut hasher = DefaultHasher::new();
    case.line().hash(&mut hasher);
    case.rules.iter().for_each(|rule| (&rule.action, &rule.category, &rule.pattern).hash(&mut hasher));
    hasher.finish()
}

/// Tries one of `THREADS` parts of the lines: equal ones are in the same part.
fn work(kind: ShellKind, seed: u64, lines: u64, part: u64, judge: JudgeFn) -> Summary {
    let mut bench = HostileBench::make(kind);
    let mut summary = Summary { confined: bench.shell.is_confined, ..Summary::default() };
    // Whether each was allowed.
    let mut tried: HashMap<u64, bool> = HashMap::new();
    for at in 0..lines {
        let case = generate(kind, seed, at);
        let hash = hash(&case);
        if hash % THREADS != part {
            continue;
        }
        summary.lines += 1;
        if summary.lines.is_multiple_of(TOLD) {
            eprintln!("part {part}: {} lines, {} ran, {} failed", summary.lines, summary.ran, summary.failed);
        }
        if let Some(was_allowed) = tried.get(&hash) {
            summary.allowed += u64::from(*was_allowed);
            continue;
        }
        summary.different += 1;
        let found = bench.attempt(&case, judge);
        tried.insert(hash, found.is_some());
        let Some(found) = found else { continue };
        summary.allowed += 1;
        summary.ran += 1;
        let Some(failure) = found.first() else { continue };
        summary.failed += 1;
        *summary.kinds.entry(failure.kind).or_default() += 1;
        *summary.rules.entry(named(&case.rules)).or_default() += 1;
        if summary.first.len() < SHOWN {
            let mut failed = Failed { at, case, found };
            failed.case = bench.smaller(&failed, judge);
            summary.first.push(failed);
        }
    }
    let HostileBench { shell, root, .. } = bench;
    drop(shell);
    root.close();
    summary
}

fn named(rules: &[RuleLine]) -> String {
    match rules {
        [] => "no rules".to_owned(),
        rules => rules.iter().map(RuleLine::shown).collect::<Vec<_>>().join(", "),
    }
}

fn search(kind: ShellKind, seed: u64, lines: u64, judge: JudgeFn) -> (Summary, Duration) {
    let started = Instant::now();
    let parts: Vec<Summary> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..THREADS).map(|part| scope.spawn(move || work(kind, seed, lines, part, judge))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread that runs lines ends")).collect()
    });
    let mut all = Summary::default();
    for part in parts {
        all.lines += part.lines;
        all.different += part.different;
        all.confined = part.confined;
        all.allowed += part.allowed;
        all.ran += part.ran;
        all.failed += part.failed;
        part.kinds.into_iter().for_each(|(kind, count)| *all.kinds.entry(kind).or_default() += count);
        part.rules.into_iter().for_each(|(rules, count)| *all.rules.entry(rules).or_default() += count);
        all.first.extend(part.first);
    }
    all.first.sort_by_key(|failed| failed.at);
    (all, started.elapsed())
}

/// Fails if a line goes beyond its rules. Returns how many lines were allowed, of how many.
fn try_lines(kind: ShellKind, lines: u64) -> (u64, u64) {
    let seed = setting("COMMAND_SEED", 1);
    let (summary, took) = search(kind, seed, lines, HostileBench::allows);
    let Summary { different, allowed, ran, failed, .. } = summary;
    for one in summary.first.iter().take(SHOWN) {
        println!("line {} of seed {seed}, smallest form: {:?}", one.at, one.case.line());
        println!("    rules: {}", named(&one.case.rules));
        println!("    as it was: {:?}", generate(kind, seed, one.at).line());
        one.found.iter().for_each(|failure| println!("    {:?}: {:?}", failure.kind, failure.detail));
    }
    for (rules, count) in &summary.rules {
        println!("{count:6} failures under {rules}");
    }
    let (speed, shell) = (lines as f64 / took.as_secs_f64(), kind.name());
    println!(
        "hostile lines in {shell}: {lines} of seed {seed}, {allowed} were allowed; {different} are different, {ran} of these \
         were allowed and ran, {failed} went beyond their rules"
    );
    let walls = if summary.confined { "in namespaces of their own" } else { "without namespaces, ssh left out" };
    println!("    {:?}; {:.0} s, {speed:.0} lines per second, {walls}", summary.kinds, took.as_secs_f64());
    assert_eq!(failed, 0, "{failed} of {ran} lines that ran in {shell} went beyond their rules");
    (allowed, lines)
}

#[test]
fn nothing_goes_beyond_its_rules() {
    let (allowed, lines) = try_lines(ShellKind::Bash, setting("COMMAND_LINES", USUAL));
    assert!(allowed * 3 >= lines, "only {allowed} of {lines} lines were allowed");
}

#[test]
fn nothing_goes_beyond_its_rules_in_zsh() {
    if !ShellKind::Zsh.is_installed() {
        return toold_test_kit::skip_uninstalled("zsh");
    }
    let (allowed, lines) = try_lines(ShellKind::Zsh, setting("COMMAND_LINES", USUAL) / 2);
    assert!(allowed * 6 >= lines, "only {allowed} of {lines} lines were allowed");
}

/// The test above proves only as much as it can observe.
#[test]
fn a_judge_that_allows_everything_is_caught() {
    let (summary, _) = search(ShellKind::Bash, 2, 300, |_, _, _| true);
    println!("a judge that allows everything: {} of 300 lines went beyond their rules", summary.failed);
    for kind in [EscapeKind::Ran, EscapeKind::Wrote, EscapeKind::ShowedSecret, EscapeKind::ShowedOutside] {
        assert!(summary.kinds.contains_key(&kind), "no failure of kind {kind:?} in {:?}", summary.kinds);
    }
    assert_eq!(summary.allowed, 300);
}

#[test]
fn effects_of_lines_are_observed() {
    let mut bench = HostileBench::make(ShellKind::Bash);
    let mut kinds = |line: &str, rules: &[&str]| {
        let rules = rules.iter().map(|rule| RuleLine::parse(rule).unwrap()).collect();
        let case = HostileCase { rules, pieces: vec![line.to_owned()] };
        let found = bench.attempt(&case, |_, _, _| true).unwrap();
        let mut kinds: Vec<EscapeKind> = found.into_iter().map(|failure| failure.kind).collect();
        kinds.dedup();
        kinds
    };
    let evil = &["allow shell evil *"][..];
    assert_eq!(kinds("git status; git log -1; ls; cat README.md | head -1", &[]), []);
    assert_eq!(kinds("evil x", &[]), [EscapeKind::Ran]);
    assert_eq!(kinds("evil x", evil), []);
    assert_eq!(kinds("evil x", &["allow shell **", "deny shell evil *"]), [EscapeKind::Ran]);
    assert_eq!(kinds("find . -maxdepth 0 -exec evil ';'", &["allow shell find *"]), [EscapeKind::Ran]);
    assert_eq!(kinds("/bin/rm V", &["allow shell **", "deny shell rm *"]), [EscapeKind::Ran]);
    assert_eq!(kinds("cd nest && git status", &["allow shell git *"]), [EscapeKind::Ran]);
    assert_eq!(kinds("echo a > V", &["allow shell echo *"]), [EscapeKind::Wrote]);
    assert_eq!(kinds("echo a > out/x", &["allow file.write {root}/work/out/**"]), []);
    assert_eq!(kinds("/bin/chmod 600 V", &[]), [EscapeKind::Wrote]);
    assert_eq!(kinds("/bin/chmod 000 src", &[]).first(), Some(&EscapeKind::Wrote));
    assert_eq!(kinds("/bin/rm -r docs", &[]).first(), Some(&EscapeKind::Wrote));
    assert_eq!(kinds("/bin/touch -d yesterday V", &[]), [EscapeKind::Wrote]);
    assert_eq!(kinds("echo a | tee V", &["allow shell tee *"]), []);
    assert_eq!(kinds("echo a | tee ../outside/data.txt", &["allow shell tee *"]), [EscapeKind::Wrote]);
    assert_eq!(kinds("git log -1 --output=V", &["allow shell git *"]), [EscapeKind::Wrote]);
    assert_eq!(kinds("git checkout -q HEAD~1", &["allow shell git *"]), []);
    assert_eq!(kinds("git config core.pager evil", &["allow shell git *"]), [EscapeKind::Wrote]);
    assert_eq!(kinds("cat .env", &["allow shell cat *"]), [EscapeKind::ShowedSecret]);
    assert_eq!(kinds("cp .env W", &["allow shell cp *"]), [EscapeKind::ShowedSecret]);
    assert_eq!(kinds("cat ../outside/data.txt", &["allow shell cat *"]), [EscapeKind::ShowedOutside]);
    // And everything is reverted each time.
    assert_eq!(kinds("cat V; ls; git status", &[]), []);
    let (ran, shown) = {
        bench.run("(setsid bash -c 'sleep 9; evil' &) ; while :; do :; done");
        bench.root.recorded()
    };
    assert!(!ran.iter().any(|ran| ran[0] == "evil"), "{ran:?} {shown}");
}

/// On a system without user namespaces for everyone.
#[test]
fn lines_run_without_a_namespace_too() {
    let root = ThrowAwayRoot::make();
    let mut shell = TestShell::start_as(&root, ShellKind::Bash, false).unwrap();
    shell.run("(sleep 9; evil late) & evil x");
    assert_eq!(root.recorded().0, [["evil", "x"]]);
    shell.run("echo $((6 * 7))");
    assert_eq!(root.recorded(), (Vec::new(), "42\n".to_owned()));
}

#[test]
fn the_findings_are_refused() {
    let bench = HostileBench::make(ShellKind::Bash);
    let entries = read("findings.txt", include_str!("findings.txt"));
    assert!(entries.len() >= 150, "only {} lines", entries.len());
    let mut wrong = Vec::new();
    for entry in &entries {
        let rules: Vec<RuleLine> = bench.rules(&HostileCase { rules: entry.rules.clone(), pieces: Vec::new() });
        let line = bench.root.put_into(&entry.line.replace('⏎', "\n"));
        let judged = judge(&line, &bench.root.place, &rules);
        // Where only a doubt says that a rule denies it, a person is asked.
        if judged.verdict == Verdict::Allow {
            let by: Vec<&str> = judged.parts.iter().map(|part| part.rule.as_str()).collect();
            wrong.push(format!(
                "{}:{} ({}) is {}: {:?}  ({})",
                entry.file,
                entry.number,
                entry.section,
                judged.verdict.as_str(),
                entry.line,
                bench.root.take_out_of(&by.join(", ")),
            ));
        }
    }
    println!("findings: {} of {} are judged as they must be", entries.len() - wrong.len(), entries.len());
    assert!(wrong.is_empty(), "{} of {} findings:\n{}", wrong.len(), entries.len(), wrong.join("\n"));
}

/// Ordinary lines do nothing beyond their rules: a failure would be the oracle's.
#[test]
fn ordinary_lines_stay_within_their_rules() {
    let mut bench = HostileBench::make(ShellKind::Bash);
    for kit in KITS {
        for plain in generate::everyday(kit) {
            let found = bench.attempt(&plain, |_, _, _| true).unwrap_or_default();
            let reported: Vec<&str> = found.iter().map(|failure| failure.detail.as_str()).collect();
            assert!(reported.is_empty(), "{:?} under {}: {reported:?}", plain.line(), named(&plain.rules));
        }
    }
}
