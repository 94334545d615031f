//! The day as data: the person's rules, how they answer prompts, and the steps from morning on.

mod afternoon;
mod morning;

use serde_json::{Value, json};

/// The ten rules: category, pattern. All of them allow.
///
/// `{src}` is the folder of the person's projects, `{docs}` the address of the documentation that they read.
pub(crate) const RULES: [(&str, &str); 10] = [
    ("file.write", "{src}/**"),
    ("network", "{docs}"),
    ("shell", "make *"),
    ("shell", "python3 -m unittest *"),
    ("shell", "git status *"),
    ("shell", "git diff *"),
    ("shell", "git log *"),
    ("shell", "git add *"),
    ("shell", "git commit *"),
    ("shell", "python3 -m textstats *"),
];

/// The most approvals allowed in the whole day.
pub(crate) const ENOUGH: usize = 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PersonAnswer {
    Once,
    /// For the session, by this pattern, which is one that was offered.
    Session(String),
    Deny,
}

/// Commands that the person allows with any arguments for the session, once they are asked about one.
const HARMLESS: &[&str] = &["git branch", "git stash", "git fetch"];

/// How the person answers: as they would in any frontend, by a choice that is offered there.
pub(crate) fn answer_to(category: &str, target: &str, offered: &[&str]) -> PersonAnswer {
    let session = |pattern: Option<&&str>| {
        pattern.map_or(PersonAnswer::Once, |pattern| PersonAnswer::Session((*pattern).to_owned()))
    };
    match category {
        // The widest offered pattern is the folder with everything in it.
        "file.read" if target.contains("/home/src/") => session(offered.last()),
        "file.read" => PersonAnswer::Deny,
        "file.write" if target.contains("/.git/") => PersonAnswer::Deny,
        "shell" if target.contains("permissions grant") => PersonAnswer::Deny,
        "shell" => match HARMLESS.iter().find(|known| begins(target, known)) {
            // Without arguments only the command itself is offered.
            Some(known) => {
                session(offered.iter().find(|pattern| **pattern == format!("{known} *")).or(offered.first()))
            }
            None => PersonAnswer::Once,
        },
        _ => PersonAnswer::Once,
    }
}

fn begins(target: &str, command: &str) -> bool {
    target.strip_prefix(command).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

pub(crate) struct DayStep {
    pub(crate) does: DayAction,
    pub(crate) ends: Ends,
}

pub(crate) enum DayAction {
    /// The agent calls a tool over MCP.
    Tool(&'static str, Value),
    /// The agent runs a line in its own shell, outside the daemon.
    OwnShell(&'static str),
    /// The agent waits for a list of tools with this text.
    ToolsUntil(&'static str),
    /// The agent starts its bridge again, when the daemon was restarted.
    Reconnect,
    /// The agent ends and is started again, in the same folder.
    NewAgent,
    /// The agent is started in the second project.
    AgentInOther,
    /// The person runs `toolctl` in a terminal in the project.
    Toolctl(&'static [&'static str]),
    /// The person does this in Neovim.
    Editor(&'static str),
}

/// How a step ends, and what its output shows.
#[derive(Clone, Copy)]
pub(crate) enum Ends {
    Well(&'static str),
    /// An ordinary failure: a failing test, a missing file.
    Badly(&'static str),
    /// Denied; the agent learns why.
    Refused(&'static str),
}

impl DayStep {
    fn new(does: DayAction) -> Self {
        Self { does, ends: Ends::Well("") }
    }

    fn shows(self, text: &'static str) -> Self {
        Self { ends: Ends::Well(text), ..self }
    }

    fn fails(self, text: &'static str) -> Self {
        Self { ends: Ends::Badly(text), ..self }
    }

    fn refused(self, text: &'static str) -> Self {
        Self { ends: Ends::Refused(text), ..self }
    }

    pub(crate) fn who(&self) -> &'static str {
        match &self.does {
            DayAction::Tool(..) | DayAction::OwnShell(_) | DayAction::ToolsUntil(_) | DayAction::Reconnect => "agent",
            DayAction::NewAgent | DayAction::AgentInOther => "person",
            DayAction::Toolctl(_) => "toolctl",
            DayAction::Editor(_) => "neovim",
        }
    }

    /// The action, for the table.
    pub(crate) fn text(&self) -> String {
        match &self.does {
            DayAction::Tool("bash", arguments) => format!("$ {}", arguments["command"].as_str().unwrap_or_default()),
            DayAction::Tool(name, arguments) => format!("{name} {arguments}"),
            DayAction::OwnShell(line) => format!("(own shell) $ {line}"),
            DayAction::ToolsUntil(text) => format!("hears that the tools changed: {text}"),
            DayAction::Reconnect => "connects again".to_owned(),
            DayAction::NewAgent => "starts the agent again".to_owned(),
            DayAction::AgentInOther => "starts the agent in the second project".to_owned(),
            DayAction::Toolctl(arguments) => format!("toolctl {}", arguments.join(" ")),
            DayAction::Editor(lua) => (*lua).to_owned(),
        }
    }
}

pub(crate) fn day() -> Vec<DayStep> {
    [morning::steps(), afternoon::steps()].into_iter().flatten().collect()
}

fn tool(name: &'static str, arguments: Value) -> DayStep {
    DayStep::new(DayAction::Tool(name, arguments))
}

fn bash(line: &'static str) -> DayStep {
    tool("bash", json!({"command": line}))
}

fn read(path: &'static str) -> DayStep {
    tool("read", json!({"path": path}))
}

fn edit(path: &'static str, old: &'static str, new: &'static str) -> DayStep {
    tool("edit", json!({"path": path, "old": old, "new": new}))
}

fn write(path: &'static str, content: &'static str) -> DayStep {
    tool("write", json!({"path": path, "content": content}))
}

fn own_shell(line: &'static str) -> DayStep {
    DayStep::new(DayAction::OwnShell(line))
}

fn toolctl(arguments: &'static [&'static str]) -> DayStep {
    DayStep::new(DayAction::Toolctl(arguments))
}

fn editor(lua: &'static str) -> DayStep {
    DayStep::new(DayAction::Editor(lua))
}
