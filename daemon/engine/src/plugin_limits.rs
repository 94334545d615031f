//! The capabilities that plugins declare in their manifests: none of them, and nothing that it calls, uses more.

use std::collections::HashMap;
use std::path::Path;

use parking_lot::RwLock;
use toold_proto::tool::Category;

use crate::need::Need;
use crate::registry::{SourceKey, SourceScope};

/// The categories that the manifests of plugins in service withhold. A plugin without declared capabilities has no limit.
#[derive(Default)]
pub struct PluginLimits {
    withheld: RwLock<HashMap<(SourceScope, String), Vec<Category>>>,
}

/// A category that no grant, rule or mode allows through a chain of plugins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undeclared {
    plugin: String,
    category: Category,
}

/// The capability of a manifest that covers the needs of a category; `None` for those that need no capability.
pub fn capability_for(category: Category) -> Option<&'static str> {
    match category {
        Category::FileRead => Some("fs_read"),
        Category::FileWrite => Some("fs_write"),
        Category::Shell => Some("exec"),
        Category::Network => Some("network"),
        Category::Mcp => Some("mcp"),
        Category::Agent | Category::Plugin => None,
    }
}

/// The categories that a manifest with these capabilities withholds.
pub fn withheld_categories(declared: &[String]) -> Vec<Category> {
    let is_withheld = |category: &Category| {
        capability_for(*category).is_some_and(|capability| !declared.iter().any(|name| name == capability))
    };
    Category::ALL.into_iter().filter(is_withheld).collect()
}

impl PluginLimits {
    /// For a plugin that is about to serve: it replaces those of its name that the same sessions saw. The limit outlasts
    /// the service, for calls that still run. `declared`: the capabilities of its manifest; `None` if it declares none.
    pub fn set(&self, plugin: &SourceKey, declared: Option<&[String]>) {
        let overlaps = |scope: &SourceScope| {
            *scope == plugin.scope || *scope == SourceScope::Global || plugin.scope == SourceScope::Global
        };
        let mut limits = self.withheld.write();
        limits.retain(|(scope, name), _| *name != plugin.name || !overlaps(scope));
        if let Some(withheld) = declared.map(withheld_categories).filter(|withheld| !withheld.is_empty()) {
            limits.insert((plugin.scope.clone(), plugin.name.clone()), withheld);
        }
    }

    /// The categories that the plugins of a chain withhold, in sessions of a project.
    pub fn of_chain(&self, chain: &[String], project: &Path) -> Vec<Undeclared> {
        if chain.is_empty() {
            return Vec::new();
        }
        let withheld = self.withheld.read();
        let of = |plugin: &String| {
            let scopes = [SourceScope::Global, SourceScope::Project(project.to_owned())];
            let found = scopes.into_iter().find_map(|scope| withheld.get(&(scope, plugin.clone())));
            let categories = found.into_iter().flatten();
            categories.map(|category| Undeclared { plugin: plugin.clone(), category: *category }).collect::<Vec<_>>()
        };
        chain.iter().flat_map(of).collect()
    }
}

impl Undeclared {
    /// Why the need is denied, if it is. What a command touches is part of the command, which is a need of its own.
    pub(crate) fn denies(&self, need: &Need) -> Option<String> {
        let capability = capability_for(self.category)?;
        let of_command = need.category() != Category::Shell && need.line.is_some();
        (self.category == need.category() && !of_command).then(|| {
            format!("the plugin {} does not declare the capability {capability} in its plugin.toml", self.plugin)
        })
    }
}
