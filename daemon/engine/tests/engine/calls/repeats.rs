//! Calls that a session makes again.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::FutureExt;
use serde_json::{Value, json};
use toold_engine::Settings;
use toold_engine::schema::Schema;
use toold_engine::tool::ToolOutput;
use toold_test_kit::SampleTool;

use crate::calls::test_engine::{TestEngine, session};

static RUNS: AtomicU64 = AtomicU64::new(0);

/// `same` returns its arguments, `other` something new each time, `strict` wants an integer.
fn fixture(warn: Option<u64>) -> TestEngine {
    let same = SampleTool::new("same").run(|input, _| async move { Ok(ToolOutput::text(input.to_string())) }.boxed());
    let other = SampleTool::new("other").run(|_, _| {
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        async move { Ok(ToolOutput::text(run.to_string())) }.boxed()
    });
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let strict = SampleTool::new("strict").spec(|spec| spec.input = Schema::compile_input(schema).unwrap());
    let fixture = TestEngine::new(vec![same, other, strict]);
    fixture
        .engine
        .settings
        .store(Settings { warn_repeats: warn.and_then(NonZeroU64::new), ..Settings::default() }.into());
    fixture
}

/// How often the result says that the call was made in a row, and the number of its blocks.
async fn repeated(fixture: &TestEngine, tool: &str, arguments: Value) -> (Option<u64>, usize) {
    let result = fixture.call(tool, arguments).await.unwrap();
    (result.metadata.get("repeated").map(|times| times.as_u64().unwrap()), result.content.len())
}

#[tokio::test]
async fn the_same_call_with_the_same_result_is_counted_in_a_row() {
    let fixture = fixture(None);
    assert_eq!(repeated(&fixture, "same", json!({"a": 1, "b": 2})).await, (None, 1));
    assert_eq!(repeated(&fixture, "same", json!({"a": 1, "b": 2})).await, (Some(2), 1));
    assert_eq!(repeated(&fixture, "same", json!({"a": 1, "b": 2})).await, (Some(3), 1));
    assert_eq!(repeated(&fixture, "same", json!({"a": 1})).await, (None, 1));
    assert_eq!(repeated(&fixture, "same", json!({"a": 1})).await, (Some(2), 1));
    assert_eq!(repeated(&fixture, "strict", json!({})).await, (None, 1));
    assert_eq!(repeated(&fixture, "same", json!({"a": 1})).await, (None, 1));

    // The order of members and the form of numbers do not count.
    assert_eq!(repeated(&fixture, "strict", json!({"n": 1})).await, (None, 1));
    assert_eq!(repeated(&fixture, "strict", json!({"n": 1.0})).await, (Some(2), 1));
    // A call that could not run is between the two.
    assert!(fixture.call("strict", json!({"n": "x"})).await.is_err());
    assert_eq!(repeated(&fixture, "strict", json!({"n": 1})).await, (None, 1));

    // Another result is progress.
    for _ in 0..3 {
        assert_eq!(repeated(&fixture, "other", json!({})).await, (None, 1));
    }
}

#[tokio::test]
async fn sessions_are_counted_apart() {
    let fixture = fixture(None);
    let call = |id: &str| toold_engine::call::Call { session: session(id, "/p"), ..fixture.prepare("same", json!({})) };
    for id in ["a", "b"] {
        let result = toold_engine::execute::execute(&fixture.engine, call(id)).await.unwrap();
        assert!(result.metadata.is_empty(), "{id}");
    }
}

#[tokio::test]
async fn the_model_is_told_from_the_configured_time_on() {
    let fixture = fixture(Some(3));
    for (times, blocks) in [(None, 1), (Some(2), 1), (Some(3), 2), (Some(4), 2)] {
        assert_eq!(repeated(&fixture, "same", json!({})).await, (times, blocks));
    }
    let result = fixture.call("same", json!({})).await.unwrap();
    let words = result.content.last().unwrap().as_text().unwrap();
    assert!(words.contains("5 times in a row"), "{words}");
}
