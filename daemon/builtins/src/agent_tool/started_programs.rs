//! Programs and servers that files of agents name, such as those of skills and sub-agents: hooks, MCP servers, other agents.
//! They run as they are, whatever confines the commands of the agent's tools.

use serde_json::Value;
use toold_proto::shell_word::quoted;

/// The programs that such a file starts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct StartedPrograms {
    /// Lines of shell.
    pub(super) lines: Vec<String>,
    pub(super) urls: Vec<String>,
    /// Everything else, as it is named in the file.
    pub(super) others: Vec<String>,
}

impl StartedPrograms {
    /// Adds what a member of a front matter names: a text is the name of something that is configured elsewhere.
    pub(super) fn add(&mut self, member: &str, value: &Value) {
        match value {
            Value::Object(members) => match (text(value, "command"), text_of_any(value, ADDRESSES)) {
                (Some(command), _) => self.lines.push(line(command, value)),
                (None, Some(url)) => self.urls.push(url.to_owned()),
                // A hook that asks a model, or one that the agent knows and toold does not.
                (None, None) if value.get("type").is_some_and(Value::is_string) => self.others.push(member.to_owned()),
                (None, None) => members.values().for_each(|inner| self.add(member, inner)),
            },
            Value::Array(items) => items.iter().for_each(|item| self.add(member, item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// The members that have the address of a server.
const ADDRESSES: &[&str] = &["url", "httpUrl", "http_url", "serverUrl"];

fn text<'a>(value: &'a Value, member: &str) -> Option<&'a str> {
    value.get(member)?.as_str()
}

fn text_of_any<'a>(value: &'a Value, members: &[&str]) -> Option<&'a str> {
    members.iter().find_map(|member| text(value, member))
}

/// The line of shell that does the same: a command without a list of arguments is one already.
fn line(command: &str, value: &Value) -> String {
    let folder = text(value, "cwd").map(|folder| format!("cd {} &&", quoted(folder)));
    let variables = value.get("env").and_then(Value::as_object).into_iter().flatten();
    let variables = variables.map(|(name, value)| format!("{name}={}", quoted(&plain(value))));
    let arguments = value.get("args").and_then(Value::as_array);
    let command = arguments.map_or_else(|| command.to_owned(), |_| quoted(command));
    let arguments = arguments.into_iter().flatten().map(|argument| quoted(&plain(argument)));
    folder.into_iter().chain(variables).chain([command]).chain(arguments).collect::<Vec<_>>().join(" ")
}

/// As it is given to a program.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(value: &Value, lines: &[&str], urls: &[&str], others: &[&str]) {
        let mut found = StartedPrograms::default();
        found.add("x", value);
        assert_eq!((found.lines, found.urls, found.others), (owned(lines), owned(urls), owned(others)), "{value}");
    }

    fn owned(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn hooks_are_lines_addresses_or_something_else() {
        let hook = |hook: Value| json!({"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]});
        check(&hook(json!({"type": "command", "command": "./x.sh a | b"})), &["./x.sh a | b"], &[], &[]);
        check(&hook(json!({"command": "./x", "args": ["a b", "$HOME"]})), &["./x 'a b' '$HOME'"], &[], &[]);
        check(&hook(json!({"type": "http", "url": "http://a.test"})), &[], &["http://a.test"], &[]);
        check(&hook(json!({"type": "prompt", "prompt": "is it safe?"})), &[], &[], &["x"]);
        check(&json!({"Stop": [{"hooks": [{"type": "agent"}, {"command": "b"}]}]}), &["b"], &[], &["x"]);
        check(&json!(null), &[], &[], &[]);
    }

    #[test]
    fn servers_are_lines_with_their_variables_or_addresses() {
        let local = json!({"command": "node", "args": ["a.js", 1], "env": {"NODE_OPTIONS": "-r ./b", "N": 2}});
        let line = "NODE_OPTIONS='-r ./b' N=2 node a.js 1";
        check(&json!({"one": local}), &[line], &[], &[]);
        check(&json!({"one": {"command": "./x", "cwd": "a b"}}), &["cd 'a b' && ./x"], &[], &[]);
        check(&json!(["configured", {"one": local}]), &[line], &[], &[]);
        check(
            &json!({"a": {"type": "http", "url": "https://a.test"}, "b": {"httpUrl": "b"}}),
            &[],
            &["https://a.test", "b"],
            &[],
        );
        check(&json!({"one": {"type": "sdk"}}), &[], &[], &["x"]);
    }
}
