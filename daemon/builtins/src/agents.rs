//! The types of sub-agents: from the user's configuration, the project's configuration, Markdown files and plugins. The
//! first one with a name wins.
//!
//! Markdown files have the format that other agents use: a front matter with `name`, `description`, `tools` and
//! `model`, and the system prompt as their text. They cannot name a program to start: only the configuration can.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::RwLock;

use serde::Deserialize;
use toold_host::exclude::Exclusions;
use toold_host::files;

use crate::front_matter::split;

/// The type whose command is used for types that have none.
pub const DEFAULT: &str = "default";
const PROJECT_FOLDERS: [&str; 2] = [".toold/agents", ".claude/agents"];
const MAX_BYTES: u64 = 256 * 1024;
const MAX_FILES: usize = 200;

/// Where a type is defined.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum AgentOrigin {
    #[default]
    Config,
    File(PathBuf),
    Plugin(String),
}

/// A type of sub-agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentType {
    pub name: String,
    pub description: String,
    pub system_prompt: String,
    /// Names of tools that it may use; `None` for all. The agent's runner enforces this.
    pub tools: Option<Vec<String>>,
    pub model: Option<String>,
    /// A program and its arguments; see [`crate::subagent`] for the placeholders.
    pub command: Option<Vec<String>>,
    pub env: BTreeMap<String, String>,
    pub timeout: Option<Duration>,
    pub origin: AgentOrigin,
}

/// The placeholders in a command for text that a model writes.
const WRITTEN_BY_MODELS: &[&str] = &["{prompt}", "{system_prompt}", "{description}"];

/// Why the program could take text that a model writes for one of its options, if it could.
pub fn option_mistake(command: &[String]) -> Option<String> {
    let arguments = command.get(1..).unwrap_or_default().iter().take_while(|word| *word != "--");
    let is_first = |word: &String| WRITTEN_BY_MODELS.iter().find(|placeholder| word.starts_with(*placeholder));
    let placeholder = arguments.into_iter().find_map(is_first)?;
    Some(format!(
        "the program could take what a model writes in place of {placeholder} for an option: put \"--\" before it, begin \
         the argument with other text (\"--prompt={placeholder}\"), or leave it out, and the prompt comes on standard input"
    ))
}

/// The types that plugins register for a project. Called each time, since plugins are reloaded.
type OfPlugins = Box<dyn Fn(&Path) -> Vec<AgentType> + Send + Sync>;

/// The types that are not defined in files.
#[derive(Default)]
pub struct Agents {
    configured: RwLock<Arc<Vec<AgentType>>>,
    /// The types of trusted projects, by real path.
    of_projects: RwLock<Arc<BTreeMap<PathBuf, Vec<AgentType>>>>,
    plugins: OnceLock<OfPlugins>,
}

impl Agents {
    /// Replaces the types of the user's configuration.
    pub fn configure(&self, types: Vec<AgentType>) {
        *self.configured.write() = Arc::new(types);
    }

    /// Replaces the types of all projects' configurations.
    pub fn configure_projects(&self, types: BTreeMap<PathBuf, Vec<AgentType>>) {
        *self.of_projects.write() = Arc::new(types);
    }

    /// Sets the source of plugins' types. Called once, when the plugin host is ready.
    pub fn ask_plugins(&self, of_plugins: impl Fn(&Path) -> Vec<AgentType> + Send + Sync + 'static) {
        // A second call would mean a second plugin host.
        let _ = self.plugins.set(Box::new(of_plugins));
    }

    /// All types for a session in `project`, sorted by name. `home` is the user's home folder. Blocks.
    pub(crate) fn types(&self, project: &Path, home: Option<&Path>) -> Vec<AgentType> {
        let mut types: Vec<AgentType> = self.configured().to_vec();
        types.extend(self.of_project(project));
        let mut exclusions = Exclusions::default();
        // A project must not expose files outside of it.
        let bounds = files::resolve(project, Path::new("/")).unwrap_or(project.to_owned());
        for folder in PROJECT_FOLDERS.map(|folder| project.join(folder)) {
            if files::resolve(&folder, Path::new("/")).is_ok_and(|real| real.starts_with(&bounds)) {
                types.extend(of_folder(&folder, &mut exclusions));
            }
        }
        if let Some(home) = home {
            types.extend(of_folder(&home.join(".claude/agents"), &mut exclusions));
        }
        if let Some(of_plugins) = self.plugins.get() {
            types.extend(of_plugins(project));
        }
        let mut names = BTreeSet::new();
        types.retain(|kind| names.insert(kind.name.clone()));
        types.sort_by(|a, b| a.name.cmp(&b.name));
        types
    }

    fn of_project(&self, project: &Path) -> Vec<AgentType> {
        let all = self.of_projects.read().clone();
        all.get(project).cloned().unwrap_or_default()
    }

    fn configured(&self) -> Arc<Vec<AgentType>> {
        self.configured.read().clone()
    }
}

/// The type with this name, with the default's command if it has none.
pub(crate) fn with_command(types: &[AgentType], name: &str) -> Option<AgentType> {
    let mut found = types.iter().find(|kind| kind.name == name)?.clone();
    if found.command.is_none()
        && let Some(default) = types.iter().find(|kind| kind.name == DEFAULT)
    {
        found.command = default.command.clone();
        found.env = default.env.clone();
        found.timeout = found.timeout.or(default.timeout);
    }
    Some(found)
}

fn of_folder(folder: &Path, exclusions: &mut Exclusions) -> Vec<AgentType> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|file| file.extension().is_some_and(|ending| ending == "md"))
        .collect();
    files.sort();
    files.truncate(MAX_FILES);
    files.iter().filter_map(|file| load(folder, file, exclusions)).collect()
}

#[derive(Debug, Deserialize)]
struct AgentFrontMatter {
    name: Option<String>,
    description: Option<String>,
    tools: Option<NameList>,
    model: Option<String>,
}

/// A list, or names separated by commas.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum NameList {
    List(Vec<String>),
    Text(String),
}

/// `None` for a file that does not define an agent: `.claude/agents` also contains notes.
fn load(folder: &Path, file: &Path, exclusions: &mut Exclusions) -> Option<AgentType> {
    let real = file.canonicalize().ok()?;
    if !real.starts_with(folder.canonicalize().ok()?) || exclusions.reason(&real, false).is_some() {
        return None;
    }
    let text = files::read_text(&real, MAX_BYTES).ok()?;
    let split = split::<AgentFrontMatter>(&text).ok()?;
    let AgentFrontMatter { name, description, tools, model } = split.front;
    let name = name.or_else(|| Some(file.file_stem()?.to_str()?.to_owned()))?;
    let tools = tools.map(|tools| match tools {
        NameList::List(names) => names,
        NameList::Text(names) => {
            names.split(',').map(|name| name.trim().to_owned()).filter(|n| !n.is_empty()).collect()
        }
    });
    Some(AgentType {
        name,
        description: description?,
        system_prompt: split.body.trim().to_owned(),
        tools,
        model: model.filter(|model| model != "inherit"),
        origin: AgentOrigin::File(real),
        ..AgentType::default()
    })
}
