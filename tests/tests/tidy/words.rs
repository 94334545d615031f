//! Documents, messages and comments use plain words.

use regex::Regex;

use crate::source_texts::{TextKind, source_texts};
use crate::sources::{files, read};

/// A pattern that may not stand in a document or a message, and the words to use in its place.
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
    (
        r"(^|[.:] |[-*] )(What|Who) (a|an|the|is|are|was|were|stands|may|runs|comes|else|plugins|tools|people|git) ?[^?]*\.",
        CLAUSE,
    ),
];

/// A clause in the place of a noun: "What touches the system needs permission."
const CLAUSE: &str = "a noun: \"Tools that touch the system need permission.\"";

/// The same for documents alone.
const DOCUMENT_WORDS: &[(&str, &str)] = &[
    (r"(?i)\b(permission|approval) requests?\b|\brequests? for (permission|approval)\b", "prompt"),
    (r"(^|[a-z)`*][.:] |^ *[-*] (\*\*)?)(What|Who) [^?]*$", CLAUSE),
];

/// The same for comments of sources: words that have no other meaning there.
const COMMENT_WORDS: &[(&str, &str)] = &[
    (r"\bneeds? (a person's )?leave\b|\ba person's leave\b|\bwithout leave\b", "permission"),
    (r"\blent\b", "provided"),
    (r"(?i)\banew\b", "again, reload, reconnect"),
    (r"\bails\b", "the problem, is wrong"),
    (r"\b(is|are) told\b", "is reported, receives"),
    (r"\bgiven out\b", "released"),
    (r"\bput away\b", "closed, stored"),
];

/// Lines in which such a word is right, by a part of them.
const ALLOWED: &[(&str, &str)] = &[
    ("toold-lend", "an option of the Emacs client"),
    ("`lend`", "an option of the Neovim client"),
    ("not \"What", "an example of how not to write"),
    ("says what is wrong", "a question"),
    ("4. What agents see", "a heading"),
    ("Answer a Permission Request", "the name of a command"),
];

/// Sources whose messages are checked.
const MESSAGES: &[&str] = &["daemon/*/src/*.rs", "proto/*.rs", "clients/*/src/*.rs"];

/// Sources whose comments are checked. Add a folder once its comments are plain.
const COMMENTS: &[&str] = &[
    "clients/*/src/*.rs",
    "proto/*.rs",
    "daemon/builtins/src/*.rs",
    "daemon/engine/src/*.rs",
    "daemon/fleet/src/*.rs",
    "daemon/host/src/*.rs",
    "daemon/lua/src/*.rs",
    "daemon/mcp/src/*.rs",
    "daemon/mounts/src/*.rs",
    "daemon/remote/src/*.rs",
    "daemon/store/src/*.rs",
    "daemon/toold/src/*.rs",
];

#[test]
fn documents_use_plain_words() {
    let words = patterns(&[WORDS, DOCUMENT_WORDS].concat());
    let mut wrong = Vec::new();
    for document in files(&["*.md", "clients/nvim/doc/*.txt"]) {
        for (number, line) in read(&document).lines().enumerate() {
            wrong.extend(check(&words, &document, number + 1, line));
        }
    }
    assert!(wrong.is_empty(), "words that a reader stumbles over:\n{}", wrong.join("\n"));
}

#[test]
fn messages_use_plain_words() {
    check_sources(MESSAGES, TextKind::Literal, WORDS);
}

#[test]
fn comments_use_plain_words() {
    check_sources(COMMENTS, TextKind::Comment, COMMENT_WORDS);
}

#[track_caller]
fn check_sources(sources: &[&str], kind: TextKind, words: &[(&str, &'static str)]) {
    let words = patterns(words);
    let mut wrong = Vec::new();
    for path in files(sources) {
        let source = read(&path);
        // Tests quote programs and messages of others.
        let source = source.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        // A parameter of zsh (zshparam(1)).
        let is_word = |text: &str| text.trim_matches('"') != "mend";
        for (number, _, line) in source_texts(source).into_iter().filter(|text| text.1 == kind && is_word(text.2)) {
            wrong.extend(check(&words, &path, number, line));
        }
    }
    assert!(wrong.is_empty(), "words that a reader stumbles over:\n{}", wrong.join("\n"));
}

fn patterns(words: &[(&str, &'static str)]) -> Vec<(Regex, &'static str)> {
    words.iter().map(|(pattern, instead)| (Regex::new(pattern).unwrap(), *instead)).collect()
}

/// The words of a line that are not plain, with their place and better ones.
fn check(words: &[(Regex, &str)], path: &str, number: usize, line: &str) -> Vec<String> {
    if ALLOWED.iter().any(|(part, _)| line.contains(part)) {
        return Vec::new();
    }
    let found = words.iter().filter_map(|(pattern, instead)| Some((pattern.find(line)?, instead)));
    found
        .map(|(found, instead)| {
            let found: String = found.as_str().chars().take(40).collect();
            format!("{path}:{number}: {found:?}; write: {instead}")
        })
        .collect()
}
