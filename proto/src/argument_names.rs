//! The names of a tool's arguments: which ones a schema knows, and which one an unknown name stands for.

use serde_json::{Map, Value};

use crate::nearest::nearest;

/// How many references and combinations are followed: a schema may refer to itself.
const MAX_DEPTH: u8 = 8;
/// A tool with more arguments than these has them in its schema, not in a message.
const MAX_LISTED: usize = 30;

/// The names that an object may have by its schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownArguments<'s> {
    names: Vec<&'s str>,
    /// Whether the schema describes names that it does not list, or does not describe the object at all.
    open: bool,
}

impl<'s> KnownArguments<'s> {
    /// The arguments of the object that `schema` describes. Local references are looked up in `root`; a schema that cannot be followed
    /// to its end counts as open.
    pub fn of(root: &'s Value, schema: &'s Value) -> Self {
        let mut known = Self::default();
        let described = known.add(root, schema, MAX_DEPTH);
        known.open |= !described;
        known
    }

    pub fn names(&self) -> &[&'s str] {
        &self.names
    }

    /// Whether the object may have a member of this name. A schema that lists names and says nothing about others
    /// counts as complete: a name beside its own is most likely a mistake.
    pub fn admits(&self, name: &str) -> bool {
        self.open || self.names.contains(&name)
    }

    /// Returns whether the schema says anything about members.
    fn add(&mut self, root: &'s Value, schema: &'s Value, depth: u8) -> bool {
        if depth == 0 {
            self.open = true;
            return true;
        }
        let mut described = false;
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            described = true;
            let names = properties.keys().map(String::as_str);
            let new: Vec<&str> = names.filter(|name| !self.names.contains(name)).collect();
            self.names.extend(new);
        }
        for others in ["additionalProperties", "unevaluatedProperties"] {
            if let Some(rule) = schema.get(others) {
                described = true;
                self.open |= *rule != Value::Bool(false);
            }
        }
        self.open |= schema.get("patternProperties").is_some();
        if let Some(target) = schema.get("$ref") {
            let target = target.as_str().and_then(|target| target.strip_prefix('#')).and_then(|at| root.pointer(at));
            described |= match target {
                Some(target) => self.add(root, target, depth - 1),
                None => false,
            };
        }
        for combination in ["allOf", "anyOf", "oneOf"] {
            for part in schema.get(combination).and_then(Value::as_array).into_iter().flatten() {
                described |= self.add(root, part, depth - 1);
            }
        }
        for part in ["if", "then", "else"].iter().filter_map(|key| schema.get(key)) {
            self.add(root, part, depth - 1);
        }
        for part in schema.get("dependentSchemas").and_then(Value::as_object).into_iter().flat_map(Map::values) {
            self.add(root, part, depth - 1);
        }
        described
    }
}

/// The message about an argument that a tool does not have: with the one that was probably meant, or all that there are.
pub fn explain_unknown(name: &str, known: &[&str]) -> String {
    let shown: String = name.chars().take(80).collect();
    let unknown = format!("unknown argument {shown:?}");
    if let Some(hint) = advice(name, known) {
        return format!("{unknown}: {hint}");
    }
    if let Some((meant, unit)) = alias(name, known) {
        return format!("{unknown}: use {meant:?}{unit}");
    }
    if let Some(near) = nearest(name, known.iter().copied()) {
        return format!("{unknown}: did you mean {near:?}?");
    }
    match known {
        [] => format!("{unknown}: no arguments are expected here"),
        known if known.len() <= MAX_LISTED => {
            let names: Vec<String> = known.iter().map(|name| format!("{name:?}")).collect();
            format!("{unknown}: expected {}", names.join(", "))
        }
        _ => unknown,
    }
}

/// Messages as one text. One that ends in a question needs no other mark.
pub fn in_one_text(messages: impl IntoIterator<Item = String>) -> String {
    messages.into_iter().fold(String::new(), |text, message| match text.as_str() {
        "" => message,
        asks if asks.ends_with('?') => format!("{text} {message}"),
        _ => format!("{text}; {message}"),
    })
}

/// Names that agents and their models use for one thing. A name of a row stands for the first other name of the row
/// that the tool knows.
const ALIASES: &[&[&str]] = &[
    &[
        "path",
        "file_path",
        "filepath",
        "filename",
        "file_name",
        "file",
        "absolute_path",
        "target_file",
        "notebook_path",
    ],
    &[
        "cwd",
        "path",
        "workdir",
        "working_directory",
        "working_dir",
        "dir_path",
        "directory",
        "dir",
        "folder",
        "relative_workspace_path",
        "target_directory",
    ],
    &["old", "old_string", "old_str", "old_text", "search", "find"],
    &["new", "new_string", "new_str", "new_text", "replace", "replacement"],
    &["replace_all", "allow_multiple", "global"],
    &["edits", "changes", "replacements"],
    &["content", "contents", "file_text", "file_content", "text", "fact", "memory", "step", "task", "description"],
    &["command", "cmd", "command_line", "script"],
    &["background", "run_in_background", "is_background"],
    &["shell_id", "bash_id", "task_id", "session_id", "id"],
    &["include", "glob", "include_pattern", "file_pattern", "glob_pattern"],
    &["pattern", "regex", "regexp", "glob_pattern", "search_pattern", "search", "query", "glob"],
    &["query", "q", "search_term", "search_query"],
    &["ignore_case", "i", "case_insensitive"],
    &["before", "b", "before_context"],
    &["after", "a", "after_context"],
    &["context", "c", "context_lines"],
    &["fixed", "f", "fixed_strings", "literal"],
    &["multiline", "u"],
    &["type", "file_type", "subagent_type", "agent_type", "agent", "agent_name"],
    &["max_results", "head_limit", "limit", "max_count", "num_results", "count", "n", "m", "num"],
    &["limit", "head_limit", "max_lines", "num_lines", "lines", "max_results"],
    &["offset", "start_line", "line", "start", "start_line_one_indexed"],
    &["depth", "max_depth", "level", "levels", "recursive"],
    &["include_ignored", "no_ignore", "hidden", "include_hidden"],
    &["items", "todos", "plan", "tasks"],
    &["active_form", "activeform"],
    &["prompt", "task", "instructions"],
    &["name", "skill", "skill_name"],
    &["multiple", "multi_select"],
    &["options", "choices", "answers"],
    &["memory_id", "id"],
];

/// The argument that the name stands for, with words about its unit.
fn alias<'n>(name: &str, known: &[&'n str]) -> Option<(&'n str, &'static str)> {
    let plain = snake_case(name);
    let find = |wanted: &str| known.iter().find(|known| **known == wanted).copied();
    if let Some(same) = known.iter().find(|known| snake_case(known) == plain) {
        return Some((same, ""));
    }
    let milliseconds = ", which is in milliseconds";
    match plain.as_str() {
        "timeout" | "timeout_s" | "timeout_sec" | "timeout_secs" | "timeout_seconds" => {
            if let Some(meant) = find("timeout_ms") {
                return Some((meant, milliseconds));
            }
        }
        "wait" | "wait_s" | "wait_seconds" | "timeout_ms" | "yield_time_ms" => {
            if let Some(meant) = find("wait_ms") {
                return Some((meant, milliseconds));
            }
        }
        _ => {}
    }
    let rows = ALIASES.iter().filter(|row| row.contains(&plain.as_str()));
    rows.flat_map(|row| row.iter()).find_map(|other| find(other)).map(|meant| (meant, ""))
}

/// The way to the same result, for an argument that has no equivalent.
fn advice(name: &str, known: &[&str]) -> Option<&'static str> {
    let has = |wanted: &str| known.contains(&wanted);
    match snake_case(name).as_str() {
        "n" | "line_numbers" | "show_line_numbers" if has("output_mode") => {
            Some("leave it out, lines are always numbered")
        }
        "case_sensitive" if has("ignore_case") => {
            Some("leave it out for a search that heeds case, or use \"ignore_case\"")
        }
        "exclude" | "exclude_pattern" if has("include") => Some("use \"include\" with a leading !, such as !*.lock"),
        "append" if has("mode") && has("content") => Some("use \"mode\" with \"append\""),
        "end_line" | "end" | "end_line_one_indexed" | "view_range" if has("limit") => {
            Some("use \"offset\" for the first line and \"limit\" for how many lines")
        }
        _ => None,
    }
}

/// `filePath`, `file-path` and `FilePath` as `file_path`; `-A` as `a`.
fn snake_case(name: &str) -> String {
    let mut plain = String::new();
    let mut after_lower = false;
    for c in name.trim_start_matches('-').chars() {
        if c.is_uppercase() && after_lower {
            plain.push('_');
        }
        after_lower = c.is_lowercase() || c.is_ascii_digit();
        match c {
            '-' | ' ' | '.' => plain.push('_'),
            c => plain.extend(c.to_lowercase()),
        }
    }
    plain
}

#[cfg(test)]
mod tests;
