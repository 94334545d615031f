//! Calls of a client whose folder no person has chosen yet.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use toold_engine::level::ConfiguredLevels;
use toold_engine::need::Need;
use toold_engine::policy::Policy;
use toold_engine::session::{NewSession, Session};
use toold_engine::workspace::{Workspace, WorkspaceFolder, WorkspaceGate};
use toold_proto::level::Level;
use toold_proto::permission::Action;
use toold_proto::tool::Category;
use toold_test_kit::{SampleTool, new_session};

use crate::calls::asks::{answer, next_ask, ran};
use crate::calls::test_engine::TestEngine;

/// Opens every folder, since clients are started there, and no person has chosen one.
struct StartedThere;

impl WorkspaceGate for StartedThere {
    fn is_open(&self, _: &Path) -> bool {
        true
    }

    fn is_chosen(&self, _: &Path) -> bool {
        false
    }

    fn refuses(&self, _: &Path) -> Option<String> {
        None
    }

    fn is_too_broad(&self, _: &Path) -> bool {
        false
    }

    fn remember(&self, _: &[PathBuf]) {}

    fn open_to_all(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    fn client(&self) -> &str {
        "test"
    }
}

#[tokio::test(start_paused = true)]
async fn call_that_asks_just_before_its_folder_is_opened_does_not_wait_for_another_answer() {
    let write = SampleTool::new("write").needs(|_| vec![Need::new(Category::FileWrite, "/p/a.txt")]);
    let levels = ConfiguredLevels { user: Level::Edit, ..ConfiguredLevels::default() };
    let policy = Policy { levels, ..Policy::default() };
    let mut fixture = TestEngine::with(vec![write], |engine| engine.policy.store(Arc::new(policy)));
    let folder = WorkspaceFolder { named: "/p".into(), real: "/p".into() };
    let workspace = Some(Workspace::new(Arc::new(StartedThere), vec![folder]));
    fixture.session = Arc::new(Session::new(NewSession { workspace, ..new_session("s1", "/p") }));
    let mut frontend = fixture.frontend();

    let first = fixture.begin("write", json!({}));
    let ask = next_ask(&mut frontend).await;
    // This task runs before the first call sees its answer.
    let second = fixture.begin("write", json!({}));
    fixture.reply(answer(&ask, Action::Allow)).unwrap();
    ran(first.await.unwrap());
    ran(second.await.unwrap());
}
