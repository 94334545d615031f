//! Why a name is not among the tools of the mounted sources.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use toold_engine::registry::SourceScope;

use crate::adapter::{ListedTool, MountAdapter, MountState};
use crate::mount::MountedSource;
use crate::{MountSupervisor, names};

impl<A: MountAdapter> MountSupervisor<A> {
    /// Why sessions of a project have no tool of this name, if its name is that of a mounted source that they see: a
    /// sentence without a full stop. `None` if the source is connected and has no such tool. Never blocks.
    pub fn absence(&self, name: &str, project: &Path) -> Option<String> {
        let sees = |scope: &SourceScope| match scope {
            SourceScope::Global => true,
            SourceScope::Project(own) => own == project,
        };
        let mounts = self.all().into_iter().filter(|mount| sees(&mount.config.scope));
        let named = mounts.filter(|mount| name.starts_with(&names::prefix(&mount.config.name)));
        // The names of one mount may begin with those of another.
        let mount = named.max_by_key(|mount| mount.config.name.len())?;
        self.absence_of(&mount, name)
    }

    /// Waits until the sources that may have a tool of this name, and are new, have listed their tools or failed; at most for
    /// `limit` after each was mounted.
    pub async fn first_list_with(&self, name: &str, limit: Duration) {
        let named = |mount: &Arc<MountedSource<A>>| name.starts_with(&names::prefix(&mount.config.name));
        for mount in self.all().into_iter().filter(named) {
            mount.first_list(limit).await;
        }
    }

    fn absence_of(&self, mount: &Arc<MountedSource<A>>, name: &str) -> Option<String> {
        let label = mount.label();
        let prefix = names::prefix(&mount.config.name);
        let summary = mount.summary(Vec::new(), Vec::new());
        if summary.shared.state == MountState::Disabled {
            return Some(format!("{label}, whose tools are called {prefix}..., is disabled in the configuration"));
        }
        let Some(listed) = mount.listed_tools() else {
            return Some(match summary.shared.error {
                Some(why) => format!("{label}, whose tools are called {prefix}..., is not available: {why}"),
                None => format!(
                    "{label}, whose tools are called {prefix}..., has not listed them yet: try again in a moment"
                ),
            });
        };
        if let Some((own, why)) = mount.left_out(name) {
            return Some(format!("{label} lists {own}, but it cannot be used: {why}"));
        }
        let own: Vec<&str> = listed.iter().map(|known| known.tool.upstream_name()).collect();
        let place = names::assign(&mount.config.name, &own).iter().position(|known| known.as_str() == name)?;
        match mount.takes(own[place]) {
            true => Some(format!("{label} has it, and its name is taken by another source")),
            false => Some(format!("{label} has it, and `allow` or `deny` of its configuration leaves it out")),
        }
    }
}
