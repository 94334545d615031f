//! Checks for fuzzers: an allowed line that is changed to do more must no longer be allowed.

use std::path::Path;

use toold_engine::need::Need;
use toold_engine::policy::pattern::Pattern;
use toold_proto::cut;
use toold_proto::tool::Category;

use super::{Surroundings, needs, outline};
use crate::environment::Environment;

/// Rules, and lines that they allow.
const ALLOWED: &[(&str, &str)] = &[
    ("git diff *", "git diff --stat HEAD src/main.rs"),
    ("git status", "git status"),
    ("cat *", "cat a/b.txt c.txt"),
    ("cargo test *", "cargo test -p host words"),
    ("rm *.log", "rm build.log"),
    ("ls -la *", "ls -la src tests"),
    ("grep * src", "grep needle src"),
    ("npm run build", "npm run build"),
];

/// Texts that add a command, a file or a variable wherever they are inserted outside quotes.
const ADDITIONS: &[&str] = &[
    ";evil x",
    "; evil",
    "&& evil",
    "&&evil x",
    "|| evil",
    "| evil",
    "|evil x",
    "|& evil",
    "& evil",
    "\nevil x",
    "\n evil",
    "$(evil x)",
    "`evil x`",
    "<(evil)",
    ">(evil)",
    "\"$(evil)\"",
    "\"`evil`\"",
    "${x:-$(evil)}",
    "$((x[$(evil)]))",
    " >evil",
    ">evil",
    ">>evil",
    " 2>evil",
    "&>evil",
    ">|evil",
    " </etc/passwd",
    "<<E\n$(evil)\nE\n",
    "<<<$(evil)",
    "; x=$(evil)",
    ";{ evil; }",
    ";(evil)",
    "\n! evil",
    ";if evil; then x; fi",
    ";eval evil",
    ";f() { evil; };f",
    "$'\\'';evil $'\\''",
    "'';evil ''",
    "\"\";evil \"\"",
    "\\\\;evil",
    ";#\nevil",
    " #\nevil",
    ";\\\nevil",
    ";env evil",
    ";bash -c evil",
    ";time evil",
    ";coproc evil",
    "&&\nevil",
    ";;evil",
    "<>evil",
    ">/dev/tcp/a/1",
];

/// Characters without a special meaning to the shell.
const PLAIN: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789-_./,:@%+ ";

/// Takes any bytes; panics if a rule allows more than it states.
pub fn fuzz_one(data: &[u8]) {
    needs_nowhere(&String::from_utf8_lossy(data));
    let [rule, addition, at, noise @ ..] = data else { return };
    let (pattern, line) = ALLOWED[usize::from(*rule) % ALLOWED.len()];
    let addition = ADDITIONS[usize::from(*addition) % ADDITIONS.len()];
    let pattern = Pattern::parse(Category::Shell, pattern).expect("the rules here can be read");
    assert!(is_allowed(&pattern, line), "{line:?} is allowed by {pattern:?}");
    // Behind the command's name, otherwise the addition could become a part of it.
    let start = line.find(' ').map_or(line.len(), |space| space + 1);
    let at = start + usize::from(*at) % (line.len() - start + 1);
    let mut changed = format!("{}{addition}{}", cut::before(line, at), cut::from(line, at));
    for pair in noise.chunks_exact(2).take(16) {
        let letter = char::from(PLAIN[usize::from(pair[0]) % PLAIN.len()]);
        // Only into the line itself: inside the addition it could change its meaning.
        let at = usize::from(pair[1]) % (at + 1);
        changed.insert(at, letter);
    }
    assert!(!is_allowed(&pattern, &changed), "{changed:?} is allowed by {:?}", pattern.as_str());
}

/// The decision of a policy with only this rule.
fn is_allowed(pattern: &Pattern, line: &str) -> bool {
    let is_operand = |need: &Need| need.command_naming_it().is_some() && need.target.starts_with("/nowhere");
    let allows = |need: &Need| match need.category() {
        Category::Shell => pattern.matches(need).is_some(),
        _ => is_operand(need),
    };
    needs_nowhere(line).iter().all(allows)
}

fn needs_nowhere(line: &str) -> Vec<Need> {
    let environment = Environment::default();
    outline(line, &environment);
    let cwd = Path::new("/nowhere");
    needs(line, &mut Surroundings { cwd, folders: &[], environment: &environment, may_read: &mut |_| true })
}
