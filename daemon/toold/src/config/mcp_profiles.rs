//! `[mcp.profiles.NAME]`: which tools a client of the daemon's MCP server gets, and the profiles that are built in.

use std::collections::BTreeMap;
use std::path::Path;

use globset::Glob;
use serde::Deserialize;
use toml::Spanned;
use toold_engine::client_profile::ClientProfile;
use toold_engine::tool_settings::ToolPattern;
use toold_proto::agent_names::agent_of_client;
use toold_proto::call::ListingMode;
use toold_proto::level::Level;
use toold_proto::mcp::{ALL_TOOLS, WITHOUT_FILES_AND_SHELL, is_profile_name};
use toold_proto::nearest::did_you_mean;
use toold_proto::session::Mode;

use crate::config::read::ConfigText;
use crate::config::workspaces::folder;

const BUILT_IN: [&str; 2] = [ALL_TOOLS, WITHOUT_FILES_AND_SHELL];

/// The built-in tools that agents with tools of their own have twice.
const FILES_AND_SHELL: &[&str] =
    &["apply_patch", "bash", "bash_output", "edit", "glob", "grep", "kill_shell", "list", "read", "write"];

/// The tools that an agent has besides those, as it offers them to models; of Cursor and VS Code, as their documentation names
/// them. Searches of the web that some of them have only with an account or a setting do not count.
const OWN_TOOLS: &[(&str, &[&str])] = &[
    // AskUserQuestion, Skill, Agent, WebFetch, WebSearch
    ("claude-code", &["question", "skill", "subagent", "web_fetch", "web_search"]),
    // spawn_agent
    ("codex", &["subagent"]),
    // ask_user, skill, task, web_fetch
    ("copilot", &["question", "skill", "subagent", "web_fetch"]),
    // Task, WebFetch
    ("cursor", &["subagent", "web_fetch"]),
    // ask_user, activate_skill, invoke_agent, web_fetch, google_web_search
    ("gemini", &["question", "skill", "subagent", "web_fetch", "web_search"]),
    // question, skill, task, webfetch
    ("opencode", &["question", "skill", "subagent", "web_fetch"]),
    // ask_user_question, skill, agent, web_fetch
    ("qwen-code", &["question", "skill", "subagent", "web_fetch"]),
    // runSubagent, fetch_webpage
    ("vscode", &["subagent", "web_fetch"]),
];

/// Leaves out what this client has itself, too, if the profile is the one for agents with tools of their own.
pub fn leave_out_own_tools(profile: &mut ClientProfile, client: &str) {
    let agent = agent_of_client(client).filter(|_| profile.name == WITHOUT_FILES_AND_SHELL);
    let own = OWN_TOOLS.iter().find(|(name, _)| Some(*name) == agent);
    let names = own.into_iter().flat_map(|(_, tools)| *tools);
    profile.without_tools.extend(names.map(|&name| name.into()));
}

/// `[mcp.profiles.NAME]`: which tools a client gets. A profile leaves tools out, and allows nothing: the permission rules
/// apply as without it. A tool that it leaves out is not listed and cannot be called, neither by `tools_call` nor by
/// another tool.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct McpProfileConfig {
    /// Only these tools and slash commands, as globs over their names; all when absent.
    #[cfg_attr(test, schemars(with = "Option<Vec<String>>"))]
    pub tools: Option<Vec<Spanned<String>>>,
    /// Not these, as globs over their names.
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub without_tools: Vec<Spanned<String>>,
    /// Only tools, resources and prompts of these sources, as globs over kinds (`builtin`, `plugin`, `mcp`, `remote`,
    /// `frontend`) and names; all when absent.
    #[cfg_attr(test, schemars(with = "Option<Vec<String>>"))]
    pub sources: Option<Vec<Spanned<String>>>,
    /// Not of these sources.
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub without_sources: Vec<Spanned<String>>,
    /// Which tools the client is listed if it does not choose: `all`, or `deferred` for the pinned ones with `tools_search`
    /// and `tools_call`.
    #[cfg_attr(test, schemars(schema_with = "crate::config::schema::foreign::optional_listing"))]
    pub listing: Option<ListingMode>,
    /// The permission mode in which its sessions begin: `plan` or `default`. Modes that allow more are set by a person, in
    /// a session.
    pub mode: ProfileMode,
    /// Lowers `permission.level` in its sessions.
    #[cfg_attr(test, schemars(schema_with = "crate::config::schema::foreign::optional_level"))]
    pub level: Option<Level>,
    /// Among the folders that you chose, only these and the folders in them are workspaces for its clients: absolute paths,
    /// which may begin with `~/`. All when absent.
    #[cfg_attr(test, schemars(with = "Option<Vec<String>>"))]
    pub workspaces: Option<Vec<Spanned<String>>>,
}

/// The modes that the configuration can choose: none allows more than the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProfileMode {
    /// Read only.
    Plan,
    #[default]
    Default,
}

/// The profiles of a configuration, by name.
pub type ProfileConfigs = BTreeMap<String, McpProfileConfig>;

/// The profile of this name.
///
/// # Errors
/// There is none, as a sentence for the user.
pub fn find(profiles: &ProfileConfigs, name: &str, home: Option<&Path>) -> Result<ClientProfile, String> {
    let named = ClientProfile { name: name.to_owned(), ..ClientProfile::default() };
    match (name, profiles.get(name)) {
        (ALL_TOOLS, _) => Ok(named),
        (WITHOUT_FILES_AND_SHELL, _) => {
            Ok(ClientProfile { without_tools: FILES_AND_SHELL.iter().map(|&name| name.into()).collect(), ..named })
        }
        (_, Some(profile)) => Ok(profile.read(named, home)),
        (_, None) => {
            let known = || BUILT_IN.into_iter().chain(profiles.keys().map(String::as_str));
            let near = match did_you_mean(name, known()) {
                near if near.is_empty() => format!(": the profiles are {}", known().collect::<Vec<_>>().join(", ")),
                near => near,
            };
            Err(format!("there is no profile {name} ([mcp.profiles.{name}]){near}"))
        }
    }
}

impl McpProfileConfig {
    fn read(&self, named: ClientProfile, home: Option<&Path>) -> ClientProfile {
        let folders = |names: &Vec<Spanned<String>>| {
            // Those that cannot be read are reported when the configuration is.
            names.iter().filter_map(|name| folder(name.get_ref(), home).ok()).collect()
        };
        ClientProfile {
            tools: self.tools.as_deref().map(texts),
            without_tools: texts(&self.without_tools),
            sources: self.sources.as_deref().map(texts),
            without_sources: texts(&self.without_sources),
            listing: self.listing,
            mode: match self.mode {
                ProfileMode::Plan => Mode::Plan,
                ProfileMode::Default => Mode::Default,
            },
            level: self.level,
            workspaces: self.workspaces.as_ref().map(folders),
            binds_inner_calls: true,
            ..named
        }
    }

    /// Its globs, by the key that they stand in.
    fn globs(&self) -> impl Iterator<Item = (ProfileGlobs, &Spanned<String>)> {
        let keys = [
            (ProfileGlobs::Tools, self.tools.as_deref().unwrap_or_default()),
            (ProfileGlobs::WithoutTools, &self.without_tools),
            (ProfileGlobs::Sources, self.sources.as_deref().unwrap_or_default()),
            (ProfileGlobs::WithoutSources, &self.without_sources),
        ];
        keys.into_iter().flat_map(|(key, globs)| globs.iter().map(move |glob| (key, glob)))
    }
}

#[derive(Clone, Copy)]
enum ProfileGlobs {
    Tools,
    WithoutTools,
    Sources,
    WithoutSources,
}

impl ProfileGlobs {
    fn key(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::WithoutTools => "without_tools",
            Self::Sources => "sources",
            Self::WithoutSources => "without_sources",
        }
    }

    fn over(self) -> GlobSubject {
        match self {
            Self::Tools | Self::WithoutTools => GlobSubject::Tools,
            Self::Sources | Self::WithoutSources => GlobSubject::Sources,
        }
    }
}

fn texts(texts: &[Spanned<String>]) -> Vec<String> {
    texts.iter().map(|text| text.get_ref().clone()).collect()
}

/// The errors of profiles, and of clients that refer to none, as sentences for the user.
pub(super) fn problems<'c>(
    profiles: &ProfileConfigs,
    clients: impl Iterator<Item = (&'c String, &'c Spanned<String>)>,
    source: &ConfigText,
    home: Option<&Path>,
) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, profile) in profiles {
        let key = format!("mcp.profiles.{name}");
        if BUILT_IN.contains(&name.as_str()) {
            problems.push(source.placed(&format!("{key}: this profile is built in: choose another name")));
        } else if !is_profile_name(name) {
            let expected = "expected [a-z][a-z0-9_-]*, with 64 characters at most";
            problems.push(source.placed(&format!("{key}: not the name of a profile: {expected}")));
        }
        for (globs, glob) in profile.globs() {
            if let Err(error) = Glob::new(glob.get_ref()) {
                problems.push(format!("{}: {key}.{}: {error}", source.place(Some(glob.span())), globs.key()));
            }
        }
        for name in profile.workspaces.iter().flatten() {
            if let Err(error) = folder(name.get_ref(), home) {
                problems.push(format!("{}: {key}.workspaces: {error}", source.place(Some(name.span()))));
            }
        }
    }
    for (client, name) in clients {
        if let Err(error) = find(profiles, name.get_ref(), home) {
            problems.push(format!("{}: mcp.clients.{client}.profile: {error}", source.place(Some(name.span()))));
        }
    }
    problems
}

/// A glob of a profile, with its place.
#[derive(Clone, Debug)]
pub struct ProfileGlob {
    pub key: String,
    pub over: GlobSubject,
    pub pattern: ToolPattern,
}

/// What a glob is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GlobSubject {
    Tools,
    Sources,
}

/// The globs of all profiles, without those that cannot be read.
pub(super) fn all_globs(profiles: &ProfileConfigs, source: &ConfigText) -> Vec<ProfileGlob> {
    let of_profile = |(name, profile): (&String, &McpProfileConfig)| {
        let glob = |(globs, glob): (ProfileGlobs, &Spanned<String>)| {
            let pattern = ToolPattern::new(glob.get_ref(), &source.place(Some(glob.span()))).ok()?;
            Some(ProfileGlob { key: format!("mcp.profiles.{name}.{}", globs.key()), over: globs.over(), pattern })
        };
        profile.globs().filter_map(glob).collect::<Vec<_>>()
    };
    profiles.iter().flat_map(of_profile).collect()
}
