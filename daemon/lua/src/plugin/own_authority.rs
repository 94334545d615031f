//! The authority of a plugin itself, with which its script loads: rules and grants for its chain, and its profile folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use toold_engine::cx::Cx;
use toold_engine::registry::SourceScope;
use toold_engine::session::{NewSession, Session, SessionFilter, SessionOwner};
use toold_engine::tool::Denial;
use toold_host::files;
use toold_proto::tool::SessionId;

use crate::plugin::{PluginVersion, handler};
use crate::vm::script_run::LoadAuthority;

/// The authority of a plugin's script while it loads. What a call would ask is refused and recorded.
pub(crate) fn of_load(plugin: &Arc<PluginVersion>) -> LoadAuthority {
    let of = plugin.clone();
    let on_refusal =
        move |cx: &Arc<Cx>, need, denial: &Arc<Denial>| of.shared.load_refusals.note(&of.key, cx, need, denial);
    LoadAuthority { cx: context(plugin), on_refusal: Box::new(on_refusal) }
}

fn context(plugin: &PluginVersion) -> Arc<Cx> {
    let shared = &plugin.shared;
    let (project, profile) = match &plugin.key.scope {
        SourceScope::Global => (PathBuf::from("/"), profile(&shared.profile_dir)),
        // Its calls could not read the profile either, unless somebody allows it.
        SourceScope::Project(project) => (project.clone(), None),
    };
    let session = NewSession {
        id: SessionId::parse("load").expect("letters are an id"),
        cwd: plugin.real_dir().to_owned(),
        roots: Vec::new(),
        project,
        client: None,
        model: None,
        env: Default::default(),
        filter: SessionFilter::default(),
        workspace: None,
    };
    let session = Session::owned_by(session, SessionOwner::Plugin { profile });
    let about = (plugin.name().to_owned(), String::new());
    let spec = handler::spec("load", plugin.name(), about, json!({"type": "object"}), plugin);
    Cx::of_plugin(&shared.engine, &spec, session, shared.stop.child_token())
}

/// Permissions are about resolved paths.
fn profile(folder: &Path) -> Option<PathBuf> {
    folder.is_absolute().then(|| files::resolve(folder, Path::new("/")).ok()).flatten()
}
