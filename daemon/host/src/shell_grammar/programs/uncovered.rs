//! Patterns of rules that cover no command, since no wildcard covers what the tables do not know.

use toold_proto::nearest::{likeness, nearest};

use super::{known, parse};
use crate::shell_grammar::arg::Arg;

/// How alike a word and an operation are where one is a slip of the other: `set` is none of `get`.
const SLIP: f64 = 0.9;

/// A pattern with a wildcard whose own words make a command uncertain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UncoveredPattern {
    /// The reason, as those who are asked about such a command see it.
    pub why: String,
    /// The operation of the program that may have been meant, as the end of a sentence; else empty.
    pub near: String,
}

/// The doubt about the words in front of the first wildcard; `None` for programs without operations, and for a pattern
/// without a wildcard, which covers exactly its words.
pub fn uncovered(pattern: &str) -> Option<UncoveredPattern> {
    // A quoted word needs no shell.
    if !pattern.contains('*') || pattern.contains(['\'', '"', '\\']) {
        return None;
    }
    let words: Vec<Arg> = pattern.split_whitespace().take_while(|word| !word.contains('*')).map(Arg::text).collect();
    let (name, words) = words.split_first()?;
    let program = known::find(name.literal()?.rsplit('/').next()?).filter(|known| !known.subcommands.is_empty())?;
    let parsed = parse(program, words);
    let entry = parsed.known;
    let unknown = parsed.operands.first().and_then(Arg::literal).unwrap_or_default().to_owned();
    let reading = parsed.into_reading();
    // `docker buildx` is a plugin, and no `docker build`.
    let near = nearest(&unknown, entry.subcommands.keys().map(String::as_str))
        .filter(|near| reading.is_unknown_operation && likeness(near, &unknown) >= SLIP)
        .filter(|near| !unknown.starts_with(near) && !near.starts_with(&unknown));
    let near = near.map(|near| format!(": did you mean {near}?")).unwrap_or_default();
    // Such entries stand for operations of which nothing is known.
    let is_empty = entry.subcommands.keys().map(String::as_str).eq(["help"]);
    let why = reading.unsure.or_else(|| is_empty.then(|| format!("toold does not know what {} does", entry.name)))?;
    Some(UncoveredPattern { why, near })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_no_table_knows_are_covered_by_no_wildcard() {
        for (pattern, why, near) in [
            ("docker buildx build *", "toold does not know what docker buildx does", ""),
            ("kubectl delte *", "toold does not know what kubectl delte does", ": did you mean delete?"),
            ("npm config set *", "toold does not know what npm config set does", ""),
            ("gh extension install *", "toold does not know what gh extension install does", ""),
            ("yarn config *", "toold does not know what yarn config does", ""),
            ("docker compose -f dev.yml up *", "-f reads another file, which decides what is run", ""),
        ] {
            let found = uncovered(pattern).unwrap_or_else(|| panic!("{pattern}"));
            assert!(found.why.starts_with(why) && found.near == near, "{pattern}: {found:?}");
        }
        for pattern in [
            "git *",
            "git push *",
            "git -C src push *",
            "git stash drop *",
            "docker compose up *",
            "docker push *",
            "kubectl port-forward *",
            "kubectl -n web get *",
            "kubectl * delete *",
            "npm run build:*",
            "npm config get *",
            "cargo xtask *",
            "cargo publish --dry-run *",
            "gh -R a/b pr view *",
            "docker buildx build .",
            "mytool sub *",
            "find . -name *",
            "terraform state list *",
        ] {
            assert_eq!(uncovered(pattern), None, "{pattern}");
        }
    }
}
