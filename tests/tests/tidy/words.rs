//! Documents use plain words.

use crate::sources::{files, read};

/// A pattern that may not stand in a document, and the words to use in its place.
const WORDS: &[(&str, &str)] = &[
    (r"(?i)\bneeds? (a person's )?leave\b|\bperson's leave\b|\bneeds your leave\b|\bwithout leave\b", "permission"),
    (r"\*\*Leave\*\*", "permission"),
    (r"(?i)\blen(t|ds|ding)\b", "provided, provides"),
    (r"(?i)\banew\b", "again, reload, reconnect"),
    (r"\bails\b", "the problem, is wrong"),
    (r"\b(is|are|was|were|been) told\b", "is reported, receives"),
    (r"\bgiven out\b", "released"),
    (r"\bput away\b", "closed, stored"),
    (r"\bmend(s|ed)?\b", "fix"),
    (r"\bhunger\b", "memory use"),
    (r"\bin force\b", "active"),
    (r"(?i)\bthe house\b", "the architecture"),
    (r"\bWhoever\b|\bWhatever\b", "a noun: \"the first client to answer\""),
    // A clause in the place of a noun: "What touches the system needs permission."
    (
        r"(^|[.:] |[-*] )(What|Who) (a|an|the|is|are|was|were|stands|may|runs|comes|else|plugins|tools|people|git) ?[^?]*\.",
        "a noun: \"Tools that touch the system need permission.\"",
    ),
];

/// Lines in which such a word is right, by a part of them.
const ALLOWED: &[(&str, &str)] = &[
    ("toold-lend", "an option of the Emacs client"),
    ("`lend`", "an option of the Neovim client"),
    ("not \"What", "an example of how not to write"),
    ("says what is wrong", "a question"),
];

#[test]
fn documents_use_plain_words() {
    let words: Vec<_> = WORDS.iter().map(|(pattern, instead)| (regex::Regex::new(pattern).unwrap(), instead)).collect();
    let mut wrong = Vec::new();
    for document in files(&["*.md", "clients/nvim/doc/*.txt"]) {
        for (number, line) in read(&document).lines().enumerate() {
            if ALLOWED.iter().any(|(part, _)| line.contains(part)) {
                continue;
            }
            for (pattern, instead) in &words {
                if let Some(found) = pattern.find(line) {
                    let found: String = found.as_str().chars().take(40).collect();
                    wrong.push(format!("{document}:{}: {found:?}; write: {instead}", number + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "words that a reader stumbles over:\n{}", wrong.join("\n"));
}
