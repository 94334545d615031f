//! Tools of plugins that are not in service.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use toold_proto::plugin::PluginStatus;

/// A plugin with tools that it does not serve.
#[derive(Clone, Debug)]
pub(crate) struct AbsentPlugin {
    pub(crate) name: String,
    pub(crate) path: String,
    /// The only project whose sessions may hear of it.
    pub(crate) project: Option<PathBuf>,
    pub(crate) bundled: bool,
    /// `None` while it is loaded for the first time.
    pub(crate) status: Option<PluginStatus>,
    pub(crate) error: Option<String>,
    /// Their names, as far as they are known.
    pub(crate) tools: BTreeSet<String>,
}

/// Bytes of an error that are quoted.
const MAX_ERROR: usize = 300;

/// Why there is no tool of this name, and what to do, if it is one of these plugins'. Failed plugins come first, then those
/// that wait for a decision.
pub(crate) fn reason(absent: &[AbsentPlugin], name: &str, project: &Path) -> Option<String> {
    let seen = || absent.iter().filter(|plugin| plugin.project.as_deref().is_none_or(|own| own == project));
    let has_it = seen().filter(|plugin| plugin.tools.contains(name));
    if let Some(plugin) = has_it.min_by_key(|plugin| (rank(plugin.status), plugin.bundled)) {
        return plugin.reason();
    }
    let loading: Vec<&str> =
        seen().filter(|plugin| plugin.status.is_none()).map(|plugin| plugin.name.as_str()).collect();
    match loading[..] {
        [] => None,
        [one] => Some(format!("the plugin {one} is still loading and may have it: try again in a moment")),
        [first, ..] => {
            Some(format!("{} plugins are still loading, {first} among them: try again in a moment", loading.len()))
        }
    }
}

fn rank(status: Option<PluginStatus>) -> u8 {
    match status {
        Some(PluginStatus::Failed) => 0,
        Some(PluginStatus::Untrusted) => 1,
        Some(PluginStatus::Disabled) => 2,
        Some(PluginStatus::Shadowed) => 3,
        Some(PluginStatus::Loaded) | None => 4,
    }
}

impl AbsentPlugin {
    fn reason(&self) -> Option<String> {
        let name = &self.name;
        Some(match self.status? {
            PluginStatus::Failed => {
                let error = self.error.as_deref().unwrap_or_default();
                let error = &error[..error.floor_char_boundary(MAX_ERROR)];
                format!(
                    "the plugin {name} has it, but its newest version did not load ({error}): `toolctl plugins show {name}`"
                )
            }
            PluginStatus::Untrusted => {
                format!(
                    "the plugin {name} of this project has it, and nobody has trusted its files: `toolctl plugins trust`"
                )
            }
            PluginStatus::Disabled if self.bundled => {
                format!(
                    "the plugin {name}, which ships with the daemon, has it and is not enabled: `toolctl plugins enable {name}`"
                )
            }
            PluginStatus::Disabled => {
                format!("the plugin {name} has it and is disabled: `toolctl plugins enable {name}`")
            }
            PluginStatus::Shadowed => {
                format!(
                    "the plugin {name} in {} has it, and another plugin of that name serves: rename one of them",
                    self.path
                )
            }
            PluginStatus::Loaded => return None,
        })
    }
}
