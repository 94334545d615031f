//! Globals that no file of a plugin sets, and uses of the host that need a capability, found in source texts.

use std::collections::BTreeSet;

use crate::vm::members::hygge_paths;
use crate::vm::words::{SourceWord, words};

/// The globals of a Lua state before any script runs in it.
const KNOWN: [&str; 50] = [
    "_G",
    "_VERSION",
    "arg",
    "assert",
    "bit",
    "bit32",
    "buffer",
    "collectgarbage",
    "coroutine",
    "debug",
    "dofile",
    "error",
    "gcinfo",
    "getfenv",
    "getmetatable",
    "hygge",
    "integer",
    "io",
    "ipairs",
    "load",
    "loadfile",
    "loadstring",
    "math",
    "module",
    "newproxy",
    "next",
    "os",
    "package",
    "pairs",
    "pcall",
    "print",
    "rawequal",
    "rawget",
    "rawlen",
    "rawset",
    "require",
    "select",
    "self",
    "setfenv",
    "setmetatable",
    "string",
    "table",
    "tonumber",
    "tostring",
    "type",
    "typeof",
    "unpack",
    "utf8",
    "vector",
    "xpcall",
];
/// The globals of test files.
const OF_TESTS: [&str; 11] =
    ["before", "call", "command", "describe", "expect", "fake", "it", "needs", "read", "render", "run"];
const KEYWORDS: [&str; 22] = [
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in", "local", "nil",
    "not", "or", "repeat", "return", "then", "true", "until", "while",
];

/// The names that a text declares or sets anywhere: variables, parameters, globals.
pub(crate) fn set_names(source: &[u8]) -> BTreeSet<String> {
    let words = words(source);
    let mut names = BTreeSet::new();
    for at in 0..words.len() {
        let is_field = at > 0 && (words[at - 1].is(".") || words[at - 1].is(":"));
        let Some(name) = words[at].name().filter(|name| !KEYWORDS.contains(name)) else {
            if words[at].is("function") {
                names.extend(parameters(&words, at));
            } else if words[at].is("local") || words[at].is("for") {
                names.extend(list(&words, at + 1));
            }
            continue;
        };
        let is = |place: usize, text: &str| words.get(place).is_some_and(|word| word.is(text));
        if !is_field && (is(at + 1, "=") || is(at + 1, ",") || (at > 0 && is(at - 1, "function"))) {
            names.insert(name.to_owned());
        }
    }
    names
}

/// The parameters of the function whose keyword stands here.
fn parameters(words: &[SourceWord], function: usize) -> Vec<String> {
    let open = (function..words.len().min(function + 12)).find(|place| words[*place].is("("));
    open.map(|open| list(words, open + 1)).unwrap_or_default()
}

/// Names that are separated by commas.
fn list(words: &[SourceWord], mut at: usize) -> Vec<String> {
    let mut names = Vec::new();
    if words.get(at).is_some_and(|word| word.is("function")) {
        at += 1;
    }
    while let Some(name) = words.get(at).and_then(|word| word.name()) {
        names.push(name.to_owned());
        if !words.get(at + 1).is_some_and(|word| word.is(",")) {
            break;
        }
        at += 2;
    }
    names
}

/// The names that a text reads although neither it nor the host has them, with their lines. `set` are those that the files of
/// the plugin set. A name that is tested somewhere is expected to be absent; so is any in a text that makes its globals at run
/// time, or that has type annotations, whose names are no variables.
pub(crate) fn undefined(source: &[u8], set: &BTreeSet<String>, is_test: bool) -> Vec<(u32, String)> {
    let words = words(source);
    let makes_globals = ["_G", "setfenv", "getfenv", "module", "_ENV", "dofile", "loadstring", "load"]
        .iter()
        .any(|name| words.iter().any(|word| word.is(name)));
    let has_types = (0..words.len()).any(|at| {
        let is = |place: usize, text: &str| words.get(place).is_some_and(|word| word.is(text));
        words[at].is("->")
            || words[at].is("::")
            || (words[at].is("type") && is(at + 2, "="))
            || (is(at, "-") && is(at + 1, ">"))
            || (words[at].is("local") && is(at + 2, ":"))
    });
    if makes_globals || has_types {
        return Vec::new();
    }
    let is_known = |name: &str| {
        KNOWN.contains(&name) || KEYWORDS.contains(&name) || set.contains(name) || (is_test && OF_TESTS.contains(&name))
    };
    let mut found: Vec<(u32, String)> = Vec::new();
    let mut expected = BTreeSet::new();
    for at in 0..words.len() {
        let Some(name) = words[at].name().filter(|name| !is_known(name)) else { continue };
        let before = |text: &str| at > 0 && words[at - 1].is(text);
        let after = |text: &str| words.get(at + 1).is_some_and(|word| word.is(text));
        if before(".") || before(":") || before("goto") || after(":") || after("+=") || after("-=") {
            continue;
        }
        // Luau's own words are no reserved ones.
        if matches!(name, "continue" | "export" | "type") {
            continue;
        }
        let is_tested = ["if", "elseif", "and", "or", "not", "while"].iter().any(|word| before(word))
            || ["and", "or", "then", "==", "~="].iter().any(|word| after(word))
            || (before("(") && at > 1 && ["type", "pcall", "rawget"].iter().any(|word| words[at - 2].is(word)));
        if is_tested {
            expected.insert(name.to_owned());
        }
        found.push((words[at].line, name.to_owned()));
    }
    found.retain(|(_, name)| !expected.contains(name));
    found.dedup();
    found
}

/// What the members of the host need, by the beginning of their paths.
const CAPABILITIES: [(&str, &str); 19] = [
    ("hygge.exec", "exec"),
    ("io.popen", "exec"),
    ("os.execute", "exec"),
    ("hygge.http", "network"),
    ("hygge.fs.write", "fs_write"),
    ("hygge.fs.append", "fs_write"),
    ("hygge.fs.mkdir", "fs_write"),
    ("hygge.fs.remove", "fs_write"),
    ("os.remove", "fs_write"),
    ("os.rename", "fs_write"),
    ("hygge.fs.", "fs_read"),
    ("io.open", "fs_read"),
    ("io.lines", "fs_read"),
    ("hygge.send_message", "messages"),
    ("hygge.register_tool", "tools"),
    ("hygge.tools.register", "tools"),
    ("hygge.register_hook", "hooks"),
    ("hygge.register_command", "commands"),
    ("hygge.register_subagent", "subagents"),
];

/// The uses of the host that need a capability, each with its line: the capability, and the member.
pub(crate) fn needed(source: &[u8]) -> Vec<(u32, &'static str, String)> {
    let words = words(source);
    let mut uses = hygge_paths(&words);
    let mut needed = Vec::new();
    for at in 0..words.len() {
        let is = |place: usize, text: &str| words.get(place).is_some_and(|word| word.is(text));
        let is_library = (is(at, "io") || is(at, "os")) && !(at > 0 && (is(at - 1, ".") || is(at - 1, ":")));
        if let (true, true, Some(member)) =
            (is_library, is(at + 1, "."), words.get(at + 2).and_then(|word| word.name()))
        {
            let library = words[at].name().unwrap_or_default();
            // The mode of `io.open` says which of the two it needs.
            let writes = library == "io"
                && member == "open"
                && (at + 3..words.len().min(at + 16)).take_while(|place| !is(*place, ")")).any(|place| {
                    is(place, ",")
                        && words
                            .get(place + 1)
                            .and_then(|word| word.quoted())
                            .is_some_and(|mode| !mode.starts_with('r'))
                });
            let path = format!("{library}.{member}");
            if writes {
                needed.push((words[at].line, "fs_write", path));
            } else {
                uses.push((words[at].line, path));
            }
        }
    }
    let of = |(line, path): (u32, String)| {
        let (_, capability) = CAPABILITIES.iter().find(|(start, _)| path.starts_with(start))?;
        Some((line, *capability, path))
    };
    needed.extend(uses.into_iter().filter_map(of));
    needed.sort();
    needed.dedup();
    needed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, expected: &[&str]) {
        let set = set_names(source.as_bytes());
        let found = undefined(source.as_bytes(), &set, false);
        let found: Vec<String> = found.into_iter().map(|(line, name)| format!("{line}: {name}")).collect();
        assert_eq!(found, expected, "{source}");
    }

    #[test]
    fn names_that_nothing_sets_are_found() {
        check("local a = b\nreturn c(a)", &["1: b", "2: c"]);
        check("print(tostring(undefned_name))", &["1: undefned_name"]);
        check("function f(x, y) return x + y + z end", &["1: z"]);
        check("local function g(...) local a, b = ... return a, b end g()", &[]);
        check("for i, v in ipairs{} do print(i, v) end", &[]);
        check("t = { key = 1, other = 2 } print(t.key, t.other)", &[]);
    }

    #[test]
    fn names_that_are_tested_or_made_at_run_time_are_fine() {
        check("if vim then vim.foo() end", &[]);
        check("local f = unpack or table.unpack f()", &[]);
        check("setfenv(1, {}) x()", &[]);
        check("local x: number = 1 return y", &[]);
    }

    #[test]
    fn uses_of_the_host_name_their_capability() {
        let found = |source: &str| {
            let found = needed(source.as_bytes()).into_iter();
            found.map(|(line, capability, path)| format!("{line} {capability} {path}")).collect::<Vec<_>>()
        };
        assert_eq!(
            found("hygge.exec('ls')\nlocal h = hygge.http\nh.get('x')"),
            ["1 exec hygge.exec", "2 network hygge.http", "3 network hygge.http.get"]
        );
        assert_eq!(
            found("io.open('a')\nio.open('a', 'w')\nx.io.open('a')"),
            ["1 fs_read io.open", "2 fs_write io.open"]
        );
        assert_eq!(
            found("hygge.fs.write('a', 'b') hygge.fs.read('a')"),
            ["1 fs_read hygge.fs.read", "1 fs_write hygge.fs.write"]
        );
    }
}
