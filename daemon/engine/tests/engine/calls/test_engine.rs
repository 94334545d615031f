//! An engine with a session in it, and tools that are closures.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use toold_engine::Engine;
use toold_engine::audit::{AuditLog, AuditRow};
use toold_engine::call::{Call, CallError, Caller};
use toold_engine::events::EventSelection;
use toold_engine::execute::execute;
use toold_engine::need::{Need, Word};
use toold_engine::progress::ProgressSink;
use toold_engine::registry::{SourceKey, SourceScope};
use toold_engine::session::Session;
use toold_proto::call::Progress;
use toold_proto::event::EventBody;
use toold_proto::tool::{CallId, Category, Source, ToolResult};
use toold_test_kit::{SampleTool, new_session, person, prepare_call};

pub(crate) type CallAnswer = Result<ToolResult, CallError>;
/// Keeps what it is told.
pub(crate) struct RecordedValues<T>(pub(crate) Mutex<Vec<T>>);

impl<T> Default for RecordedValues<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl AuditLog for RecordedValues<AuditRow> {
    fn begin(&self, _row: &AuditRow) -> Result<u64, String> {
        Ok(1)
    }

    fn record(&self, row: &AuditRow) -> Result<(), String> {
        self.0.lock().unwrap().push(row.clone());
        Ok(())
    }
}

impl ProgressSink for RecordedValues<(u64, Progress)> {
    fn send(&self, seq: u64, progress: &Progress) {
        self.0.lock().unwrap().push((seq, progress.clone()));
    }
}

pub(crate) struct TestEngine {
    pub(crate) engine: Arc<Engine>,
    pub(crate) session: Arc<Session>,
    pub(crate) caller: Arc<Caller>,
    pub(crate) audit: Arc<RecordedValues<AuditRow>>,
}

impl TestEngine {
    pub(crate) fn new(tools: Vec<SampleTool>) -> Self {
        Self::with(tools, |_| {})
    }

    pub(crate) fn with(tools: Vec<SampleTool>, change: impl FnOnce(&mut Engine)) -> Self {
        let audit = Arc::new(RecordedValues::default());
        let mut engine = Engine::new("0123456789abcdef");
        engine.audit = Some(audit.clone());
        change(&mut engine);
        let engine = Arc::new(engine);
        for fake in tools {
            let Source { kind, name, .. } = fake.spec.source.clone();
            let key = SourceKey { kind, name: format!("{name}/{}", fake.spec.name), scope: SourceScope::Global };
            let origin = fake.spec.origin;
            engine.registry.put(key, origin, vec![Arc::new(fake)]).unwrap();
        }
        let session = session("s1", "/p");
        let caller = person();
        Self { engine, session, caller, audit }
    }

    pub(crate) fn prepare(&self, name: &str, arguments: Value) -> Call {
        Call { caller: self.caller.clone(), ..prepare_call(&self.session, name, arguments) }
    }

    pub(crate) fn prepare_as(&self, id: &str, name: &str, arguments: Value) -> Call {
        Call { call_id: Some(CallId::parse(id).unwrap()), ..self.prepare(name, arguments) }
    }

    pub(crate) async fn call(&self, name: &str, arguments: Value) -> CallAnswer {
        execute(&self.engine, self.prepare(name, arguments)).await
    }

    /// Runs a call beside the test.
    pub(crate) fn start(&self, call: Call) -> tokio::task::JoinHandle<CallAnswer> {
        let engine = self.engine.clone();
        tokio::spawn(async move { execute(&engine, call).await })
    }

    /// The kinds of all events so far.
    pub(crate) fn kinds(&self) -> Vec<&'static str> {
        self.events().iter().map(EventBody::kind).filter(|kind| *kind != "tools.changed").collect()
    }

    pub(crate) fn events(&self) -> Vec<EventBody> {
        self.engine
            .events
            .subscribe_from_start(EventSelection::All)
            .replay
            .iter()
            .map(|event| event.body.clone())
            .collect()
    }

    /// Waits until no work is left, and sees that each call that started has finished, with one row.
    #[track_caller]
    pub(crate) fn records_are_closed(&self) {
        let count = |kind: &str| self.kinds().iter().filter(|found| **found == kind).count();
        let rows = self.audit.0.lock().unwrap().len();
        assert_eq!((count("call.started"), count("call.finished")), (rows, rows), "{:?}", self.kinds());
    }
}

pub(crate) fn session(id: &str, cwd: &str) -> Arc<Session> {
    Arc::new(Session::new(new_session(id, cwd)))
}

/// The need of a command; words that begin with `$` are not literal.
pub(crate) fn shell(line: &str) -> Need {
    let word = |text: &str| Word { text: text.into(), literal: !text.starts_with('$') };
    let words = Some(line.split(' ').map(word).collect());
    Need::new(Category::Shell, line).with_command(|command| command.words = words)
}

/// Lets everything that can run do so.
pub(crate) async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}
