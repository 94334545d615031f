//! Members of `hygge` and `ctx` that do not exist, found in a source text, with the ones that were probably meant.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::LazyLock;

use toold_proto::nearest::nearest;

use crate::vm::words::{SourceWord, words};

/// The descriptions of all members.
const STUBS: &str = include_str!("../../../../plugins/types/hygge.lua");

/// The members of each table that scripts get, by its path. Tables whose members are up to the plugin have none.
static KNOWN: LazyLock<BTreeMap<&str, BTreeSet<&str>>> = LazyLock::new(known);

/// The fields whose function gets the context of a call as its first argument.
const HANDLER_FIELDS: [&str; 5] = ["execute", "handler", "read", "render", "complete"];

/// A use of a member that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnknownMember {
    pub(crate) line: u32,
    /// The table as the script calls it.
    owner: String,
    /// The path of the table in the stubs.
    path: String,
    member: String,
    /// How the script uses it.
    usage: MemberUsage,
    /// The script tests whether it is there, or sets it.
    is_expected: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum MemberUsage {
    Call,
    /// It reads this member of it.
    Index(String),
    Value,
}

impl UnknownMember {
    /// Whether the script probably takes it for one that exists.
    pub(crate) fn is_mistake(&self) -> bool {
        !self.is_expected
    }

    /// Whether Luau's message at its line is about it.
    pub(crate) fn explains(&self, message: &str) -> bool {
        match &self.usage {
            MemberUsage::Call => {
                message == "attempt to call a nil value"
                    || message
                        .strip_prefix("attempt to call missing method '")
                        .is_some_and(|rest| rest.split_once('\'').is_some_and(|(method, _)| method == self.member))
            }
            MemberUsage::Index(next) => message == format!("attempt to index nil with '{next}'"),
            MemberUsage::Value => false,
        }
    }
}

impl fmt::Display for UnknownMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.owner)?;
        if self.path == "ctx" && self.owner != "ctx" {
            f.write_str(", the context of the call,")?;
        }
        write!(f, " has no {}", self.member)?;
        match meant(&self.path, &self.member) {
            Some(meant) => write!(f, "; {meant} was meant"),
            None => Ok(()),
        }
    }
}

/// A text is searched for the cause of an error only up to this size, in bytes.
const MAX_SEARCHED: usize = 1 << 20;

/// The unknown member that Luau's message about a line of a source text is about.
pub(crate) fn explain(source: &[u8], line: u32, message: &str) -> Option<UnknownMember> {
    let is_about_nil =
        ["attempt to call ", "attempt to index nil with "].iter().any(|words| message.starts_with(words));
    if !is_about_nil || source.len() > MAX_SEARCHED {
        return None;
    }
    let members = unknown_members(source);
    members.into_iter().find(|member| member.line == line && member.explains(message))
}

/// All uses of unknown members in a source text, in order.
pub(crate) fn unknown_members(source: &[u8]) -> Vec<UnknownMember> {
    let words = words(source);
    let roots = roots(&words);
    let mut found: Vec<UnknownMember> = (0..words.len()).filter_map(|at| unknown_at(&words, at, &roots)).collect();
    let expected: BTreeSet<(String, String)> = found
        .iter()
        .filter(|member| member.is_expected)
        .map(|member| (member.path.clone(), member.member.clone()))
        .collect();
    for member in &mut found {
        member.is_expected = expected.contains(&(member.path.clone(), member.member.clone()));
    }
    found
}

/// The members of `hygge` that a text uses, by their whole paths, with their lines.
pub(crate) fn hygge_paths(words: &[SourceWord]) -> Vec<(u32, String)> {
    let roots = roots(words);
    let mut found = Vec::new();
    for at in 0..words.len() {
        let is_field = at > 0 && (words[at - 1].is(".") || words[at - 1].is(":"));
        let Some(root) = words[at].name().filter(|_| !is_field).and_then(|name| roots.get(name)) else { continue };
        let (mut path, mut place) = (root.clone(), at);
        while words.get(place + 1).is_some_and(|link| link.is("."))
            && let Some(known) = members(&path)
            && let Some(member) = words.get(place + 2).and_then(|member| member.name())
            && known.contains(member)
        {
            path = format!("{path}.{member}");
            place += 2;
        }
        if path.starts_with("hygge.") && place > at {
            found.push((words[at].line, path));
        }
    }
    found
}

/// The variables that hold a known table, with its path.
fn roots<'a>(words: &[SourceWord<'a>]) -> BTreeMap<&'a str, String> {
    let mut roots = BTreeMap::from([("hygge", "hygge".to_owned())]);
    for name in contexts(words) {
        roots.insert(name, "ctx".to_owned());
    }
    let declared = declared(words);
    for (place, name) in &declared {
        match alias(&words[*place..]) {
            Some(path) if declared.iter().filter(|(_, other)| other == name).count() == 1 => {
                roots.insert(name, path);
            }
            // Something else that has the same name.
            Some(_) | None => _ = roots.remove(name),
        }
    }
    roots
}

/// The names of the first parameters of handlers.
fn contexts<'a>(words: &[SourceWord<'a>]) -> BTreeSet<&'a str> {
    let is = |place: usize, text: &str| words.get(place).is_some_and(|word| word.is(text));
    let name = |place: usize| words.get(place).and_then(|word| word.name());
    let mut names = BTreeSet::new();
    let mut functions = BTreeSet::new();
    for place in 0..words.len() {
        if !name(place).is_some_and(|field| HANDLER_FIELDS.contains(&field)) || !is(place + 1, "=") {
            continue;
        }
        match name(place + 2) {
            Some("function") if is(place + 3, "(") => names.extend(name(place + 4)),
            Some(function) => _ = functions.insert(function),
            None => {}
        }
    }
    for place in 0..words.len() {
        let is_handler = |place| name(place).is_some_and(|name| functions.contains(name));
        if is(place, "function") && is_handler(place + 1) && is(place + 2, "(") {
            names.extend(name(place + 3));
        } else if is_handler(place) && is(place + 1, "=") && is(place + 2, "function") && is(place + 3, "(") {
            names.extend(name(place + 4));
        }
    }
    names.remove("_");
    names
}

/// The variables that `local` and `for` declare, with the place of each name.
fn declared<'a>(words: &[SourceWord<'a>]) -> Vec<(usize, &'a str)> {
    let mut declared = Vec::new();
    for (place, word) in words.iter().enumerate() {
        let is_list = word.is("for") || word.is("local");
        if !is_list || words.get(place + 1).is_some_and(|next| next.is("function")) {
            continue;
        }
        let mut at = place + 1;
        while let Some(name) = words.get(at).and_then(|word| word.name()) {
            declared.push((at, name));
            if !words.get(at + 1).is_some_and(|next| next.is(",")) {
                break;
            }
            at += 2;
        }
    }
    declared
}

/// The path of a known table that `NAME = hygge.x` assigns.
fn alias(words: &[SourceWord]) -> Option<String> {
    let [_, equals, hygge, rest @ ..] = words else { return None };
    if !equals.is("=") || !hygge.is("hygge") {
        return None;
    }
    let mut path = "hygge".to_owned();
    let mut rest = rest;
    while let [dot, member, after @ ..] = rest
        && dot.is(".")
    {
        path = format!("{path}.{}", member.name()?);
        rest = after;
    }
    let goes_on = rest.first().is_some_and(|next| {
        next.quoted().is_some() || ["(", "{", "[", ":", ",", "and", "or"].iter().any(|word| next.is(word))
    });
    (!goes_on && members(&path).is_some()).then_some(path)
}

/// The unknown member that an expression at this place uses.
fn unknown_at(words: &[SourceWord], at: usize, roots: &BTreeMap<&str, String>) -> Option<UnknownMember> {
    let before = |steps: usize| at.checked_sub(steps).map(|place| words[place]);
    let before_is = |steps: usize, text: &str| before(steps).is_some_and(|word| word.is(text));
    if before_is(1, ".") || before_is(1, ":") {
        return None;
    }
    let root = words[at].name()?;
    let mut path = roots.get(root)?.clone();
    let mut owner = root.to_owned();
    let mut place = at;
    loop {
        let known = members(&path)?;
        let link = words.get(place + 1)?;
        if !link.is(".") && !link.is(":") {
            return None;
        }
        let member = words.get(place + 2)?;
        let name = member.name()?;
        place += 2;
        if known.contains(name) {
            path = format!("{path}.{name}");
            owner = format!("{owner}.{name}");
            continue;
        }
        let next = words.get(place + 1);
        let next_is = |texts: &[&str]| next.is_some_and(|next| texts.iter().any(|text| next.is(text)));
        let usage = match next {
            _ if link.is(":") => MemberUsage::Call,
            Some(next) if next.quoted().is_some() || next.is("(") || next.is("{") => MemberUsage::Call,
            Some(next) if next.is(".") || next.is(":") => MemberUsage::Index(words.get(place + 2)?.name()?.to_owned()),
            Some(_) | None => MemberUsage::Value,
        };
        let is_asked = ["not", "function"].iter().any(|word| before_is(1, word))
            || (before_is(1, "(") && ["type", "assert", "pcall", "tostring"].iter().any(|word| before_is(2, word)));
        let is_expected = is_asked || next_is(&["=", "==", "~=", "and", "or", "then"]);
        return Some(UnknownMember { line: member.line, owner, path, member: name.to_owned(), usage, is_expected });
    }
}

/// The members of the table at a path; `None` for anything else.
fn members(path: &str) -> Option<&'static BTreeSet<&'static str>> {
    KNOWN.get(path)
}

/// The members that were probably meant: one of this name in another table, or the one of the same table whose name is
/// most alike.
fn meant(path: &str, member: &str) -> Option<String> {
    let elsewhere: Vec<String> = KNOWN
        .iter()
        .filter(|(other, members)| !other.ends_with(".session") && members.contains(member))
        .map(|(other, _)| format!("{other}.{member}"))
        .collect();
    if !elsewhere.is_empty() && elsewhere.len() <= 2 {
        return Some(elsewhere.join(" or "));
    }
    nearest(member, members(path)?.iter().copied()).map(str::to_owned)
}

/// Reads the stubs: functions, tables and classes.
fn known() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let mut known: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let (mut class, mut table) = ("", None);
    for line in STUBS.lines() {
        if let Some(name) = line.strip_prefix("---@class ") {
            class = name.split([':', ' ']).next().unwrap_or_default();
        } else if let Some(field) = line.strip_prefix("---@field ") {
            let field = field.split([' ', '?']).next().unwrap_or_default();
            let paths: &[&str] = match class {
                "hygge" => &["hygge"],
                "hygge.Context" => &["ctx"],
                "hygge.SessionInfo" => &["hygge.session", "ctx.session"],
                _ => &[],
            };
            for path in paths {
                known.entry(path).or_default().insert(field);
            }
        } else if let Some(function) = line.strip_prefix("function ").and_then(|rest| rest.split('(').next()) {
            if let Some((path, name)) =
                function.rsplit_once('.').filter(|(path, _)| *path == "ctx" || path.starts_with("hygge"))
            {
                known.entry(path).or_default().insert(name);
            }
        } else if let Some((name, value)) = line.split_once(" = ").filter(|(name, _)| name.starts_with("hygge.")) {
            if let Some((path, member)) = name.rsplit_once('.') {
                known.entry(path).or_default().insert(member);
            }
            table = (value == "{").then_some(name);
        } else if let (Some(table), Some((field, _))) = (table, line.trim().split_once(" = ")) {
            known.entry(table).or_default().insert(field);
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mistakes in a text, as `line: message`.
    fn mistakes(source: &str) -> Vec<String> {
        let members = unknown_members(source.as_bytes());
        members.iter().filter(|member| member.is_mistake()).map(|member| format!("{}: {member}", member.line)).collect()
    }

    #[track_caller]
    fn check(source: &str, expected: &[&str]) {
        assert_eq!(mistakes(source), expected, "{source}");
    }

    #[test]
    fn misspelt_members_are_found_with_what_was_meant() {
        check("hygge.register_tol{name = 't'}", &["1: hygge has no register_tol; register_tool was meant"]);
        check("local x\nx = hygge.fs.raed('a')", &["2: hygge.fs has no raed; read was meant"]);
        check("hygge.htp.get(url)", &["1: hygge has no htp; http was meant"]);
        check("return hygge.session.ide", &["1: hygge.session has no ide; id was meant"]);
        check("hygge.frobnicate()", &["1: hygge has no frobnicate"]);
        check("hygge.glob('*')", &["1: hygge has no glob; hygge.fs.glob was meant"]);
        check("hygge.progress('x')", &["1: hygge has no progress; ctx.progress was meant"]);
    }

    #[test]
    fn the_context_is_known_by_any_name() {
        check("r{execute = function(ctx) ctx.progres('x') end}", &["1: ctx has no progres; progress was meant"]);
        check(
            "r{execute = function(c, input) c.progres('x') input.name() c.session.id() c.input.name() end}",
            &["1: c, the context of the call, has no progres; progress was meant"],
        );
        check(
            "local function run(ctx) ctx:progres() end\nr{execute = run}",
            &["1: ctx has no progres; progress was meant"],
        );
        check(
            "local run = function(ctx) ctx.log('x') end\nr{execute = run}",
            &["1: ctx has no log; hygge.log was meant"],
        );
        check("run = function(ctx) ctx.log('x') end\nr{execute = run}", &["1: ctx has no log; hygge.log was meant"]);
    }

    #[test]
    fn short_names_of_modules_are_followed() {
        check("local fs = hygge.fs\nfs.raed('x')\nfs.read('x')", &["2: fs has no raed; read was meant"]);
        check("local f = hygge.fs.read\nf.raed('x')", &[]);
        check("local fs = hygge.fs\nlocal fs = require('fs')\nfs.raed('x')", &[]);
        check("for _, hygge in ipairs(list) do hygge.foo() end", &[]);
    }

    #[test]
    fn texts_comments_tests_and_own_members_are_fine() {
        check("-- hygge.foo()\nlocal s = 'hygge.foo()' .. [[hygge.foo()]]", &[]);
        check("if hygge.foo then hygge.foo('x') end", &[]);
        check("local has = type(hygge.foo) == 'function' and hygge.foo()", &[]);
        check("hygge.mine = function() end\nhygge.mine()", &[]);
        check("function hygge.fs.mine() end\nhygge.fs.mine()", &[]);
        check("other.hygge.foo()", &[]);
        check("hygge.config.anything.at.all()", &[]);
    }

    #[test]
    fn a_message_is_explained_only_by_its_own_cause() {
        let found = unknown_members(b"hygge.foo(data.x)\nlocal v = hygge.bar.baz\nctx:go()");
        assert!(found[0].explains("attempt to call a nil value"));
        assert!(!found[0].explains("attempt to index nil with 'x'"));
        assert!(found[1].explains("attempt to index nil with 'baz'"));
        assert!(!found[1].explains("attempt to call a nil value"));
    }
}
