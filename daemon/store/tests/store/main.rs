//! The store, as the daemon uses it: what is kept comes back, and what cannot be kept is told.

mod audit;
mod degraded;
mod kept;
mod killed;
mod refusals;

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use toold_engine::audit::{AuditRow, DecisionRecord};
use toold_engine::policy::grants::{Grant, GrantScope};
use toold_engine::policy::pattern::Pattern;
use toold_proto::event::Outcome;
use toold_proto::permission::Action;
use toold_proto::session::{ClientInfo, Mode, ToolFilter};
use toold_proto::tool::{CallId, Category, SessionId, ToolName};
use toold_store::Retention;
use toold_store::sessions::SavedSession;

/// What is old goes at once.
fn settled() -> Retention {
    Retention { settle: Duration::ZERO, ..Retention::default() }
}

fn session_id(id: &str) -> SessionId {
    SessionId::parse(id).unwrap()
}

/// A time that a column keeps exactly.
fn now() -> SystemTime {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    SystemTime::UNIX_EPOCH + Duration::from_millis(since.as_millis() as u64)
}

fn session(id: &str) -> SavedSession {
    SavedSession {
        id: session_id(id),
        cwd: PathBuf::from("/work/a b"),
        roots: vec![PathBuf::from("/lib"), PathBuf::from("/include")],
        client: Some(ClientInfo { name: "nvim".into(), version: None }),
        model: Some("m".into()),
        mode: Mode::Plan,
        filter: ToolFilter { enable: Some(vec!["git_*".into()]), ..ToolFilter::default() },
        owner: Some("{}".to_owned()),
        opened_at: now(),
        used_at: now(),
    }
}

fn grant(id: &str, scope: GrantScope) -> Grant {
    Grant {
        id: id.into(),
        category: Category::Shell,
        pattern: Pattern::parse(Category::Shell, "git status *").unwrap(),
        action: Action::Allow,
        scope,
        tools: Some(vec!["bash".into()]),
        chain: vec!["helper".into()],
        by: Some("toolctl".into()),
        granted_at: now(),
        expires_at: None,
        asked: None,
        fleet: None,
    }
}

fn row(n: u64) -> AuditRow {
    AuditRow {
        begun: None,
        at: now(),
        call_id: CallId::parse(&format!("call_{n}")).unwrap(),
        session_id: session_id("s"),
        tool: ToolName::parse("bash").unwrap(),
        source: "builtin:toold".into(),
        client: Some("test".into()),
        connection: 7,
        decisions: vec![DecisionRecord {
            category: "shell".into(),
            target: "git status".into(),
            verdict: "allow".into(),
            rule: "grant g (git status *)".into(),
            by: Default::default(),
            ..DecisionRecord::default()
        }],
        outcome: Outcome::Ok,
        duration_ms: n,
        original: None,
        input_bytes: 10,
        output_bytes: 20,
    }
}
