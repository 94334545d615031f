//! The error for a tool that a session does not see, with the reason if one is known.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use toold_proto::cut::cut_chars;

use crate::Engine;
use crate::call::CallError;
use crate::callable::Callable;
use crate::meta_tools::is_meta_tool;
use crate::registry::ToolView;
use crate::session::Session;
use crate::tool_settings::ToolPattern;

/// Characters of an unknown name that the error shows.
const MAX_SHOWN: usize = 200;

/// Knows tools of sources that are not in the registry, such as those of a plugin that did not load.
pub trait AbsentTools: Send + Sync + 'static {
    /// Why there is no tool of this name and what to do about it, as a sentence without a full stop. Says nothing about
    /// sources that the session would not see. Never blocks.
    fn reason(&self, name: &str, session: &Session) -> Option<String>;

    /// Waits for sources that may have a tool of this name and are about to list their tools for the first time, for some
    /// seconds at most.
    fn first_list<'a>(&'a self, name: &'a str) -> BoxFuture<'a, ()>;
}

/// The error for a name that the session finds no tool for.
pub fn unknown_tool(engine: &Engine, session: &Session, name: &str) -> CallError {
    let snapshot = engine.registry.snapshot();
    let view = snapshot.view(session.project());
    let seen = |tool: &Arc<dyn Callable>| session.filter.allows(tool.own_name(), tool.spec());
    let mut suggestions = view.near(name);
    suggestions.retain(|name| view.find(name).is_some_and(seen));
    let reason = match view.find(name) {
        // Only plugins do not find a tool that is there.
        Some(tool) if seen(tool) => Some(format!("plugins call it by its own name, {}", tool.own_name())),
        Some(_) => Some("this session was opened with a filter of tools that leaves it out".to_owned()),
        None if is_meta_tool(view, name) => Some("call it directly".to_owned()),
        None => of_settings(view, name, seen)
            .or_else(|| engine.absent_tools.get().and_then(|absent| absent.reason(name, session))),
    };
    CallError::UnknownTool { name: cut_chars(name, MAX_SHOWN, "…").into_owned(), reason, suggestions }
}

/// A tool that the session would see, if a person had not disabled or renamed it.
fn of_settings(view: &ToolView, name: &str, seen: impl Fn(&Arc<dyn Callable>) -> bool) -> Option<String> {
    if let Some(disabled) = view.disabled(name).filter(|disabled| seen(&disabled.tool)) {
        let ToolPattern { text, origin, .. } = &disabled.pattern;
        return Some(format!("a person disabled it, by {text:?} in tools.disable ({origin})"));
    }
    let rename = view.rename_of(name).filter(|_| view.find_own(name).is_some_and(seen))?;
    Some(format!("it is called {} here, by tools.rename ({}): call that", rename.to, rename.origin))
}
