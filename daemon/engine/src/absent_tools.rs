//! The error for a tool that a session does not see, with the reason if one is known.

use std::sync::Arc;

use crate::Engine;
use crate::call::CallError;
use crate::callable::Callable;
use crate::session::Session;

/// Knows tools of sources that are not in the registry, such as those of a plugin that did not load.
pub trait AbsentTools: Send + Sync + 'static {
    /// Why there is no tool of this name and what to do about it, as a sentence without a full stop. Says nothing about
    /// sources that the session would not see. Never blocks.
    fn reason(&self, name: &str, session: &Session) -> Option<String>;
}

/// The error for a name that the session finds no tool for.
pub fn unknown_tool(engine: &Engine, session: &Session, name: &str) -> CallError {
    let snapshot = engine.registry.snapshot();
    let view = snapshot.view(session.project());
    let seen = |tool: &Arc<dyn Callable>| session.filter.allows(tool.spec());
    let mut suggestions = view.near(name);
    suggestions.retain(|name| view.find(name).is_some_and(seen));
    let reason = match view.find(name) {
        Some(_) => Some("this session was opened with a filter of tools that leaves it out".to_owned()),
        None => engine.absent_tools.get().and_then(|absent| absent.reason(name, session)),
    };
    CallError::UnknownTool { name: name.to_owned(), reason, suggestions }
}
