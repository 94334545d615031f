//! The tools that other agents bring along: an agent's own tool and its input become the actions that they stand for.
//!
//! Each agent has a file with the table of its tools, and names the version that the table was read from. A tool that is
//! not in the table is [`AgentAction::Unknown`].

mod claude_code;
mod codex;
mod copilot;
mod cursor;
mod gemini;
mod input;
mod opencode;
mod qwen_code;
#[cfg(test)]
mod unreadable;
mod vscode;

use serde_json::Value;
use toold_proto::agent_request::NamedNeed;
use toold_proto::tool::Category;

/// One thing that an agent's own tool is about to do.
///
/// Paths are as the agent wrote them. Relative ones are relative to the agent's current folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentAction {
    /// Runs a line of shell.
    Command {
        line: String,
        /// The folder that it runs in, when it is not the agent's current folder.
        cwd: Option<String>,
    },
    Read {
        path: String,
    },
    Write {
        path: String,
        /// The whole new content, when the input has it.
        text: Option<String>,
    },
    Edit {
        path: String,
        /// The text that is replaced, and the one in its place, when the input has them.
        old: Option<String>,
        new: Option<String>,
        /// Every occurrence is replaced.
        all: bool,
    },
    Delete {
        path: String,
    },
    Move {
        from: String,
        to: String,
    },
    /// Names what is in a folder.
    List {
        path: String,
    },
    /// Reads the files of a folder, or one file, to find a text in them.
    Search(ContentSearch),
    Fetch {
        url: String,
    },
    WebSearch {
        query: String,
    },
    /// Calls a tool of an MCP server that the agent has mounted, or reads a resource there, which is
    /// [`toold_proto::tool::RESOURCE_TARGET`] and its URI. Agents replace letters in the names of servers and tools: `my.dot` is
    /// `my_dot`.
    Mcp {
        server: String,
        tool: String,
    },
    /// Loads a skill, or a slash command of Claude Code, whose file may run commands and allow tools.
    Skill {
        name: String,
        arguments: String,
    },
    /// Starts a sub-agent, whose file may start programs. Each tool that it uses is judged by itself.
    SubAgent {
        kind: String,
    },
    /// Touches nothing outside of the agent: a plan, a to-do list, a question to the user.
    Nothing,
    /// Something of this category that the input does not name, such as the files that a pattern finds.
    Unclear {
        category: Category,
    },
    /// The table of the agent does not have the tool.
    Unknown,
}

impl AgentAction {
    /// Whether a shell runs command lines for it.
    pub fn may_run_commands(&self) -> bool {
        matches!(self, Self::Command { .. } | Self::Skill { .. } | Self::SubAgent { .. })
    }
}

/// Starts a sub-agent whose file starts nothing, so that only rules about agents matter.
const SUB_AGENT: AgentAction = AgentAction::Unclear { category: Category::Agent };

/// Which files a search for a text reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContentSearch {
    /// The folder or file that is searched.
    pub path: String,
    /// Globs in the form of `rg --glob`; without any, all files are searched.
    pub globs: Vec<String>,
    /// The file type in the form of `rg --type`.
    pub file_type: Option<String>,
    /// Hidden files are searched; `None` where that is not known.
    pub hidden: Option<bool>,
    /// Files that ignore files name are searched too.
    pub ignored: bool,
}

/// An agent or an input that [`actions`] cannot read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AgentInputError {
    #[error("unknown agent {0:?}: expected one of {list}", list = toold_proto::agent_names::AGENTS.join(", "))]
    UnknownAgent(String),
    /// A member is missing or has another type.
    #[error("{tool}: expected {expected} as {member:?} of the input, found {found}")]
    Member { tool: String, member: &'static str, expected: &'static str, found: String },
    /// A text is not in the form that the tool takes.
    #[error("{tool}: {problem}")]
    Text { tool: String, problem: String },
}

/// The agents whose command lines can be confined: by a setting of theirs, with which their own rules that deny hold as before.
pub const CONFINABLE: &[&str] = &["claude-code"];

/// The actions of a call of the agent's own `tool` with `input`, in the order in which they happen. Never empty.
///
/// A name that can be read as tools of several MCP servers is an action for each of them.
///
/// # Errors
/// The agent is not in [`AGENTS`](toold_proto::agent_names::AGENTS), or the input is not what its tool takes.
pub fn actions(agent: &str, tool: &str, input: &Value) -> Result<Vec<AgentAction>, AgentInputError> {
    match agent {
        "claude-code" => claude_code::actions(tool, input),
        "codex" => codex::actions(tool, input),
        "copilot" => copilot::actions(tool, input),
        "cursor" => cursor::actions(tool, input),
        "gemini" => gemini::actions(tool, input),
        "opencode" => opencode::actions(tool, input),
        "qwen-code" => qwen_code::actions(tool, input),
        "vscode" => vscode::actions(tool, input),
        _ => Err(AgentInputError::UnknownAgent(agent.to_owned())),
    }
}

/// How many needs of an unknown tool's input are looked at.
const MAX_NAMED: usize = 64;

/// The commands, files and addresses that the input of an unknown tool names, by the names of its members. The tool may do
/// something else, so that this can only be a reason to refuse it.
pub fn named_in(input: &Value) -> Vec<NamedNeed> {
    let mut needs = Vec::new();
    for (member, value) in input.as_object().into_iter().flatten() {
        let name: String = member.chars().filter(char::is_ascii_alphabetic).collect::<String>().to_ascii_lowercase();
        let categories: &[Category] = match name.as_str() {
            "cmd" | "command" | "commands" | "commandline" | "shellcommand" => &[Category::Shell],
            "absolutepath" | "directory" | "dirpath" | "file" | "filename" | "filepath" | "filepaths" | "files"
            | "folder" | "notebookpath" | "path" | "paths" => &[Category::FileRead, Category::FileWrite],
            "uri" | "url" | "urls" => &[Category::Network],
            _ => continue,
        };
        let texts = match value {
            Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
            value => Vec::from_iter(value.as_str()),
        };
        for text in texts {
            // Other addresses are of the tool's own kind.
            let is_one = match categories {
                [Category::Network] => text.starts_with("http://") || text.starts_with("https://"),
                _ => !text.trim().is_empty(),
            };
            let named = categories.iter().filter(|_| is_one);
            needs.extend(named.map(|category| NamedNeed { category: *category, target: text.to_owned() }));
        }
    }
    needs.truncate(MAX_NAMED);
    needs
}
